"""An engine for one run of a question, which remembers whether any of its statements was run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tacit.engines.base import Engine, GroupedMeasures, NothingSent
from tacit.privacy.contribution_profile import ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, RelationalNode

T = TypeVar("T")


class ConnectionLost(RuntimeError):
    """A statement of a question could not be run after others were: rows that these read may be the cause."""


class OneRun:
    """Calls an engine for one run, of which each call may be a transaction of its own.

    **Theorem.** A `NothingSent` that leaves it says that no statement of the run was run, whichever call it comes
    from. Proof: it is passed on only while every call before it ended in one.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._has_sent = False

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure."""
        return self._call(lambda: self._engine.run(aggregation))

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each L1 norm, and what those of a norm add."""
        return self._call(lambda: self._engine.profile(aggregation))

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order."""
        return self._call(lambda: self._engine.read(rows, most))

    def close(self) -> None:
        """Let go of the data."""
        self._engine.close()

    def _call(self, work: Callable[[], T]) -> T:
        try:
            found = work()
        except NothingSent as error:
            if self._has_sent:
                raise ConnectionLost("a connection was lost between two statements of a question") from error
            raise
        except BaseException:
            self._has_sent = True
            raise
        self._has_sent = True
        return found
