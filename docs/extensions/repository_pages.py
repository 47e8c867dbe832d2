"""Pages of the repository outside docs/, and links to them.

The changelog, the rules for contributors and the pages of measurements stand where a code host expects them. For the
site they are written to docs/project/, which git ignores, with their links turned to where they lead from there. Links
of pages in docs/ to files outside it are turned too: to such a page, or to an example's page in the gallery. What is
left, source files, is offered for download.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = DOCS / "project"
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def find_outside_pages() -> dict[Path, Path]:
    """Return where each page outside docs/ is written to."""
    pages = [ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
    found = {page: PROJECT / f"{page.stem.lower()}.md" for page in pages}
    found |= {page: PROJECT / "measured" / page.name for page in sorted((ROOT / "benchmarks").glob("*.md"))}
    found[ROOT / "README.md"] = DOCS / "index.md"
    found[DOCS / "README.md"] = DOCS / "index.md"
    return found


def turn_links(text: str, at: Path, to: Path, pages: dict[Path, Path]) -> str:
    """Return the text of the page `at` with its links as they are from the page `to`."""

    def turn(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = Path(os.path.normpath(at.parent / target))
        if path.parent == ROOT / "examples" and path.suffix == ".py":
            path = DOCS / "gallery" / f"{path.stem}.rst"
        elif path == ROOT / "examples" / "README.rst":
            path = DOCS / "gallery" / "index.rst"
        path = pages.get(path, path)
        return f"{found[1]}{os.path.relpath(path, to.parent)}{found[3]}"

    return LINK.sub(turn, text)


def write_outside_pages(*_: Any) -> None:
    """Write the pages whose text changed."""
    pages = find_outside_pages()
    for page, target in pages.items():
        if target.is_relative_to(PROJECT):
            text = turn_links(page.read_text(encoding="utf-8"), page, target, pages)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.write_text(text, encoding="utf-8")


def turn_links_of_page(app: Any, name: str, content: list[str]) -> None:
    """Turn the links of a page of docs/ that leave it."""
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md" and not page.is_relative_to(PROJECT):
        content[0] = turn_links(content[0], page, page, find_outside_pages())


def list_unlisted_guides(app: Any, name: str, content: list[str]) -> None:
    """Put pages of the guide that no list names at the end of How-to, so that a new page is found at once."""
    if name == "how-to/index":
        others = ("tutorials", "reference", "explanation")
        lists = [content[0], *((DOCS / folder / "index.md").read_text("utf-8") for folder in others)]
        named = set(re.findall(r"^\.\./guide/([\w-]+)$", "\n".join(lists), re.MULTILINE))
        more = sorted({page.stem for page in (DOCS / "guide").glob("*.md")} - named)
        if more:
            pages = "\n".join(f"../guide/{stem}" for stem in more)
            content[0] += f"\n```{{toctree}}\n:caption: More\n\n{pages}\n```\n"


def setup(app: Any) -> dict[str, bool]:
    """Connect the above to Sphinx."""
    app.connect("config-inited", write_outside_pages)
    app.connect("source-read", turn_links_of_page)
    app.connect("source-read", list_unlisted_guides)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
