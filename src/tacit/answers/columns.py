"""The columns of an answer: what each one holds, and the estimates in it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from tacit.accounting.receipt import Receipt
from tacit.query.types import Type

End = int | float | datetime.date | None  # of an interval


class IntervalKind(StrEnum):
    """Where an interval comes from."""

    EXACT = "exact"  # from the distribution of the noise
    APPROXIMATE = "approximate"  # by drawing the noise again
    NONE = "none"  # a key, or a condition


@dataclass(frozen=True)
class AnswerColumn:
    """A column of an answer; of lists of the type where `many`."""

    name: str
    type: Type
    bars: IntervalKind
    many: bool = False


@dataclass(frozen=True)
class Estimate:
    """An estimate and its interval; both ends are None where there is none."""

    value: Any
    low: Any = None
    high: Any = None


class AnswerTable(Protocol):
    """An answer as renderers and charts see it."""

    headings: tuple[AnswerColumn, ...]
    notes: tuple[str, ...]
    receipt: Receipt

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def percent(self) -> str:
        """The confidence of the intervals, such as 95%."""

    def cells(self) -> list[tuple[Estimate, ...]]:
        """Return the rows, each a tuple of estimates."""
