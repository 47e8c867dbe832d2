"""A canonical text of nested values, from which the keys of questions, fits and copies are hashed.

A key outlives the release that made it: a stored answer is found again by it, and which rows of a unit are kept depends
on it. So the text is written from a closed table of tags, which names each class and field as it is *written*, never
from what Python prints: classes and fields can be renamed without changing a key. What has no tag has no text.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Bounds:
...     low: int
...     high: int
>>> canonical_text((Bounds(0, 9), "x"), {Bounds: tag("Range", "lower=low upper=high")})
"(Range(lower=0, upper=9), 'x')"
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Tag:
    """How a class is written: its name, and its fields in order, each with the attribute that holds it.

    A field of `later` is left out where it is None: it was added after keys had been made without it. The text of a
    class that is `kept` stays on the object, which must be frozen: a plan writes its measurements several times.
    """

    name: str
    fields: tuple[tuple[str, str], ...]
    later: tuple[str, ...] = ()
    kept: bool = False


Table = Mapping[type, Tag]
KEPT_TEXT = "_kept_text"
"""Where the text of an object is kept. A class that is kept has one tag, whichever table it is in."""


def tag(name: str, fields: str = "", later: str = "", *, kept: bool = False) -> Tag:
    """Return the tag of a class: `written=attribute`, or one word where both are the same, with spaces between."""
    pairs = (field.partition("=") for field in f"{fields} {later}".split())
    added = tuple(field.partition("=")[0] for field in later.split())
    return Tag(name, tuple((written, attribute or written) for written, _, attribute in pairs), added, kept)


def canonical_text(value: Any, table: Table) -> str:
    """Return the text of a value. Values that differ have texts that differ; a class without a tag is a TypeError."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is tuple:
        comma = "," if len(value) == 1 else ""
        return f"({', '.join([canonical_text(item, table) for item in value])}{comma})"
    if kind in table:
        return _write_member(table[kind].name, value) if isinstance(value, Enum) else _write_fields(value, table)
    match value:
        case Fraction():
            return f"Fraction({value.numerator}, {value.denominator})"
        case datetime.date() if type(value) is datetime.date:
            return f"datetime.date({value.year}, {value.month}, {value.day})"
        case list():
            return f"[{', '.join(canonical_text(item, table) for item in value)}]"
        case tuple():
            return canonical_text(tuple(value), table)
    raise TypeError(f"{kind.__qualname__} has no tag, so it cannot be part of a key")


@cache
def _write_member(name: str, value: Enum) -> str:
    return f"<{name}.{value.name}: {value.value!r}>"


def _write_fields(value: Any, table: Table) -> str:
    found = table[type(value)]
    if found.kept and KEPT_TEXT in value.__dict__:
        return str(value.__dict__[KEPT_TEXT])
    fields = [
        f"{written}={canonical_text(part, table)}"
        for written, attribute in found.fields
        if (part := getattr(value, attribute)) is not None or written not in found.later
    ]
    text = f"{found.name}({', '.join(fields)})"
    if found.kept:
        value.__dict__[KEPT_TEXT] = text
    return text


_PLAIN = {type(None), bool, int, float, str}  # what Python prints of these is fixed by the language
