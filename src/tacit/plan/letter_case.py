"""Texts whose letters every engine changes in the same way, so that LOWER and UPPER of them are known without it.

Of ß the capital is two letters to some, and the small form of Σ depends on where it stands. PostgreSQL before version
17 changes the letters A to Z alone. A letter that this Python does not know yet may have another case in an engine. The
language of a database or of a machine, in which ı may be the small form of I, decides nothing (`engines/dialect.py`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from tacit.query.functions import Function
from tacit.query.nodes import Call, Scalar, walk
from tacit.query.types import Key

CHANGES_CASE = frozenset({Function.LOWER, Function.UPPER})
_SIGMAS = frozenset("Σσς")


def is_case_known(scalar: Scalar, values: Iterable[Key | None], *, ascii_alone: bool) -> bool:
    """Whether a scalar of these values changes no letter of theirs in a way that engines disagree on.

    With `ascii_alone` the engine may be one that changes the letters A to Z alone.
    """
    functions = {node.function for node in walk(scalar) if isinstance(node, Call)}
    return functions.isdisjoint(CHANGES_CASE) or all(_has_known_case(value, ascii_alone) for value in values)


def _has_known_case(value: Key | None, ascii_alone: bool) -> bool:
    if not isinstance(value, str) or value.isascii():
        return True
    if ascii_alone:
        return all(letter.isascii() or (_is_assigned(letter) and letter.upper() == letter.lower()) for letter in value)
    return _SIGMAS.isdisjoint(value) and all(
        _is_assigned(letter) and len(letter.upper()) == len(letter.lower()) == 1 for letter in value
    )


def _is_assigned(letter: str) -> bool:
    return unicodedata.category(letter) != "Cn"
