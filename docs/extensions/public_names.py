"""A page for each public package, with the names that its `__all__` has; each name then has a page by autosummary."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

API = Path(__file__).parents[1] / "reference" / "api"
PACKAGES = (
    "tacit",
    "tacit.mechanisms",
    "tacit.privacy",
    "tacit.accounting",
    "tacit.local",
    "tacit.learn",
    "tacit.learn.torch",
    "tacit.attacks",
    "tacit.audit",
)
KINDS = ("Functions", "Classes", "Exceptions", "Constants")


def kind_of(value: object) -> str:
    """Return the heading that a public name stands under."""
    if inspect.isclass(value):
        return "Exceptions" if issubclass(value, BaseException) else "Classes"
    return "Functions" if callable(value) else "Constants"


def render_package(package: str) -> str:
    """Return the page of a package."""
    module = import_module(package)
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in module.__all__:
        names[kind_of(getattr(module, name))].append(name)
    lines = [package, "=" * len(package), "", f".. automodule:: {package}", "   :no-members:", ""]
    lines += [f".. currentmodule:: {package}", ""]
    for kind, those in names.items():
        if those:
            lines += [kind, "-" * len(kind), "", ".. autosummary::", "   :toctree: names", ""]
            lines += [f"   {name}" for name in those] + [""]
    return "\n".join(lines)


def write_packages(*_: Any) -> None:
    """Write the pages whose text changed, of the packages whose extras are installed."""
    API.mkdir(parents=True, exist_ok=True)
    known = [package for package in PACKAGES if package != "tacit.learn.torch" or find_spec("torch")]
    pages = {package: render_package(package) for package in known}
    listed = "\n".join(f"   {package}" for package in known)
    title = "The Python packages\n===================\n"
    pages["index"] = (
        f"{title}\nWhat `__all__` of each package names is public.\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    )
    for name, text in pages.items():
        file = API / f"{name}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def escape_bars(*event: Any) -> None:
    """Escape the bars of absolute values in a docstring, which reStructuredText takes for substitutions.

    Examples, and what stands in backquotes, are left alone.
    """
    lines: list[str] = event[-1]
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>> "))
        if not example:
            parts = re.split(r"(`[^`]*`)", line)
            lines[number] = "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def drop_ways_back(app: Any, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Drop the links from listings of source back to the reference: names that two packages have lead nowhere."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back"[^>]*>.*?</a>', "", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Connect the above to Sphinx."""
    app.connect("config-inited", write_packages)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)  # before numpydoc reads it
    app.connect("html-page-context", drop_ways_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
