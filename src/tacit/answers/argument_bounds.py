"""An argument whose bounds are chosen for the question: what is known of it before the release."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.query.types import Type


@dataclass(frozen=True)
class ArgumentBounds:
    """An argument whose bounds are chosen: the words for it, its type, and the sums and means that are made of it."""

    called: str
    type: Type
    parts: tuple[int, ...]
    values: tuple[int, ...]
