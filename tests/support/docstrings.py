"""Read a numpydoc docstring, and compare it with the signature it describes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

_RULE = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>[*\w][\w*, ]*?)(?: : .+)?$")


def split_sections(text: str) -> dict[str, str]:
    """Return each section's text by its title; what comes before the first is under ''."""
    parts = _RULE.split(inspect.cleandoc(text))
    titles, bodies = parts[1::2], [part.strip("\n") for part in parts[2::2]]
    return {"": parts[0].strip()} | dict(zip(titles, bodies, strict=True))


def split_entries(section: str) -> dict[str, str]:
    """Return the description of each name that a Parameters or Attributes section lists."""
    entries: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        match = _ENTRY.match(line) if line and not line[0].isspace() else None
        if match:
            names = [name.strip(" *") for name in match["names"].split(",")]
            entries |= dict.fromkeys(names, "")
        else:
            entries |= {name: f"{entries[name]} {line.strip()}".strip() for name in names}
    return entries


def find_faults(label: str, thing: Any) -> Iterator[str]:
    """Yield what the docstring of a public function or class, and of a class's public methods, lacks."""
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return  # a constant or a union of types
    yield from _check_docstring(label, thing, _parameters_of(thing), needs_examples=True)
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            skip_first = not isinstance(member, staticmethod)
            parameters = list(inspect.signature(function).parameters.values())[skip_first:]
            yield from _check_docstring(f"{label}.{name}", function, parameters, needs_examples=False)


def _parameters_of(thing: Any) -> list[inspect.Parameter]:
    if inspect.isclass(thing) and (issubclass(thing, BaseException | Enum) or getattr(thing, "_is_protocol", False)):
        return []  # nobody makes one by a call
    try:
        return list(inspect.signature(thing).parameters.values())
    except ValueError:
        return []


def _check_docstring(
    label: str, thing: Any, parameters: list[inspect.Parameter], *, needs_examples: bool
) -> Iterator[str]:
    sections = split_sections(thing.__doc__ or "")
    summary = sections[""].split("\n")[0]
    if not summary.endswith("."):
        yield f"{label}: its first line is no sentence: {summary!r}"
    listed = [split_entries(sections.get(title, "")) for title in ("Attributes", "Parameters")]
    described = listed[0] | listed[1]
    expected = [parameter.name for parameter in parameters if not parameter.name.startswith("_")]
    for name in expected:
        if name not in described:
            yield f"{label}: does not describe {name}"
        elif len(described[name].split()) < 4:
            yield f"{label}: says too little of {name}: {described[name]!r}"
    for name in listed[1]:
        if name not in expected:
            yield f"{label}: describes {name}, which it does not take"
    if inspect.isfunction(thing):
        annotation = thing.__annotations__.get("return", "None")
        if annotation not in ("None", None) and not {"Returns", "Yields"} & set(sections):
            yield f"{label}: does not say what it returns"
        for name, annotation in thing.__annotations__.items():
            if re.search(r"(?<![\w.\[])Any(?!\w)", str(annotation)):
                yield f"{label}: {name} is a bare Any"
    if needs_examples and ">>>" not in (thing.__doc__ or "") and not _is_error(thing):
        yield f"{label}: has no example"


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)
