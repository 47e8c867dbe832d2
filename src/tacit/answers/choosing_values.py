"""Values that are released first and then choose rows: WHERE total > (SELECT AVG(total) FROM orders).

**Theorem.** Let a question have members M1, ..., Mm, where what Mj asks of the engine holds placeholders for values
that are computed from what earlier members released. If for every filling of its placeholders Mj has the privacy loss
Lj, then the members together have the loss that the L1, ..., Lm compose to. *Proof.* For a fixed filling Mj is a
mechanism on the data alone. Given the releases before it the filling is fixed, because it is a function of them. This
is adaptive composition: the privacy loss of the members together is the sum of those of each, given the releases
before it, and each of them is bounded by the same Lj whatever those were. The accounting (`accounting/filters.py`) is
valid for this, as it is for questions that an analyst chooses after seeing answers. The loss Lj is that of a plan
that is made before anything is released: its bounds, caps, grids, keys, noise and salt do not depend on the filling,
since a placeholder has no bounds but those of its type and is no constant that a planner could look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from tacit.answers.program import Node, Public, Released
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, Literal, LiteralValue, Placeholder
from tacit.query.types import Type

ChosenValues = Mapping[str, LiteralValue]
"""Released values by the names of their placeholders."""
NO_VALUES: ChosenValues = {}
Told = TypeVar("Told", Aggregation, ClippedAggregation)

TYPES = frozenset({Type.INT, Type.FLOAT, Type.BOOL, Type.DATE, Type.TEXT})


@dataclass(frozen=True)
class ChoosingValue:
    """A value for the placeholders of a name: the column of a program whose table has one row, or none."""

    name: str
    program: Node
    column: str
    type: Type


def placeholders_of(node: object) -> frozenset[str]:
    """The names of the placeholders in what an engine is told."""
    if isinstance(node, Placeholder):
        return frozenset({node.name})
    return frozenset().union(*map(placeholders_of, _parts(node)))


def fill(told: Told, known: ChosenValues) -> Told:
    """What an engine is told, with constants for all placeholders."""
    return cast("Told", _fill(told, known)) if known else told


def _fill(node: Any, known: Mapping[str, LiteralValue]) -> Any:
    if isinstance(node, Placeholder):
        return Literal(known[node.name])
    if isinstance(node, tuple):
        return tuple(_fill(part, known) for part in node)
    if not is_dataclass(node) or isinstance(node, type) or not placeholders_of(node):
        return node
    return replace(node, **{field.name: _fill(getattr(node, field.name), known) for field in fields(node)})


def _parts(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node):
        yield from (getattr(node, field.name) for field in fields(node))


def reads_public(program: object) -> bool:
    """Whether a program reads public tables, too."""
    return isinstance(program, Public) or any(map(reads_public, _parts(program)))


def releases_read(program: object) -> frozenset[int]:
    """The numbers of the released tables that a program reads."""
    if isinstance(program, Released):
        return frozenset({program.index})
    return frozenset().union(*map(releases_read, _parts(program)))
