"""What an engine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tacit.query.nodes import Aggregation
from tacit.query.types import Key, Type

Groups = Mapping[tuple[Key, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Shape:
    """What the policy declares of a table: its columns, and the column that names the unit unless each row is one."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    unit: str | None


class Engine(Protocol):
    """Runs aggregations over private data. Its results are exact and never leave `ask`."""

    def run(self, aggregation: Aggregation) -> Groups:
        """For each group that has rows, its keys and the integer of each measure."""

    def close(self) -> None:
        """Let go of the data."""
