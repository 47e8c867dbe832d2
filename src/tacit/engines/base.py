"""What an engine is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.privacy.contribution_profile import ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, RelationalNode
from tacit.query.types import Key, Type

MeasureValue = int | Mapping[Key, int]
"""The value of a measure in a group: an integer, or for a histogram how many rows have each value."""

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is."""

GroupedMeasures = Mapping[tuple[Key | None, ...], tuple[MeasureValue, ...]]
"""The cells of each group by its keys, in the order of the measures. Without keys there is one group, ()."""


@dataclass(frozen=True)
class TableSchema:
    """What the policy declares of a table, private or public.

    `unit` is the column that says whose row it is, unless each row is a unit of its own or the table is public.
    `links` are further columns by which tables are matched. Both may be columns that analysts cannot name: then they
    have no declared type, and are read as integers if they are stored so and as texts otherwise. `zones` are those of
    columns whose clock is not that of UTC.
    """

    name: str
    columns: tuple[tuple[str, Type], ...]
    unit: str | None
    links: tuple[str, ...] = ()
    zones: tuple[tuple[str, str], ...] = ()


class NothingSent(RuntimeError):
    """A call failed before any statement of it was run: none was sent, or the server refused its text. Where no call of
    the question came before, no row can be the cause (`engines/one_run.py`).
    """


class Engine(Protocol):
    """Runs aggregations over private data. Its results are exact and never leave `ask`."""

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure."""

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each L1 norm, and what those of a norm add: `privacy/contribution_profile.py`."""

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order (`plan/public_tables.py`)."""

    def close(self) -> None:
        """Let go of the data."""


class StoredTables(Protocol):
    """Says what stored tables hold: asked at open, never by an analyst."""

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns, as they are read; NULL is no value."""

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit, or of a column that matches tables, are written, such as "integer".

        Columns that are written alike hold one value as one: where 7 and 7.0 are matched, one unit would be two.
        """

    def source_digests(self) -> Mapping[str, str]:
        """For each table a digest of the data that was read; empty where it is read whenever it is asked about."""


class TableEngine(Engine, StoredTables, Protocol):
    """An engine over stored tables."""
