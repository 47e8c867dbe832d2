"""From which columns of which tables the keys of a question come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tacit.query.conditions import conjuncts
from tacit.query.nodes import (
    Clamp,
    ColumnReference,
    EquiJoin,
    Projection,
    Quantize,
    RelationalNode,
    Scalar,
    Scan,
    ToFloat,
    rebuild,
    walk,
)

_MOST_PARTS = 4_000  # of what is said of the columns of a source


class RowSource(NamedTuple):
    """A node that rows are made of; where it is not `matched`, a row may have found none there and hold NULLs."""

    rows: RelationalNode
    matched: bool


@dataclass
class KeySources:
    """The sources of joined rows, and in terms of their columns the keys, what WHERE says, and the equalities.

    Every condition and every equality is true of each row.
    """

    keys: list[Scalar]
    conditions: list[Scalar]
    equalities: list[tuple[Scalar, Scalar]] = field(default_factory=list)
    sources: list[RowSource] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        rows: RelationalNode,
        keys: list[Scalar],
        where: Scalar | None,
        is_source: Callable[[RelationalNode], bool] = lambda node: False,
    ) -> KeySources:
        """What rows are made of: nodes that are a source, and below projections and joins those that are neither.

        A projection is a source too where keys and conditions would have too many parts in terms of what is below it.
        """
        found = cls(list(keys), conjuncts(where))
        found._collect(rows, is_source)
        return found

    def _count_parts(self, known: dict[str, Scalar]) -> int:
        """How many parts keys, conditions and equalities have, with what columns stand for in place of their names."""
        sizes = {name: sum(1 for _ in walk(scalar)) for name, scalar in known.items()}
        scalars = (*self.keys, *self.conditions, *(side for pair in self.equalities for side in pair))
        parts = (node for scalar in scalars for node in walk(scalar))
        return sum(sizes.get(node.name, 1) if isinstance(node, ColumnReference) else 1 for node in parts)

    def _collect(self, rows: RelationalNode, is_source: Callable[[RelationalNode], bool]) -> None:
        if is_source(rows):
            self.sources.append(RowSource(rows, matched=True))
            return
        match rows:
            case Projection(source, columns, where) if self._count_parts(dict(columns)) <= _MOST_PARTS:
                known = dict(columns)
                self.keys = [_replace(scalar, known) for scalar in self.keys]
                self.conditions = [_replace(scalar, known) for scalar in self.conditions] + conjuncts(where)
                self.equalities = [(_replace(one, known), _replace(other, known)) for one, other in self.equalities]
                self._collect(source, is_source)
            case EquiJoin(left, right, on, outer):
                if not outer:
                    self.equalities += on
                    self._collect(right, is_source)
                elif isinstance(right, Scan):  # whose columns need no other names
                    self.sources.append(RowSource(right, matched=False))
                self._collect(left, is_source)
            case _:
                self.sources.append(RowSource(rows, matched=True))


def replace_parts(scalar: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """A scalar of plans, in which values are clamped and quantized, with each outermost part that `change` changes."""

    def find(node: Scalar) -> Scalar | None:
        found = change(node)
        if found is None and isinstance(node, Clamp | ToFloat | Quantize):
            return replace(node, operand=rebuild(node.operand, find))
        return found

    return rebuild(scalar, find)


def _replace(scalar: Scalar, known: dict[str, Scalar]) -> Scalar:
    return replace_parts(scalar, lambda node: known.get(node.name) if isinstance(node, ColumnReference) else None)
