"""How many rows of a unit are joined with its other rows, in a join on the unit where both sides may have several.

Caps bound what counts of the joined rows, and not how many are joined: of a unit with n rows in each of two tables
there are n^2, and n^4 of four. How long that takes, or that it passes a time limit, would tell of the unit. So of each
unit at most `MOST_JOINED` rows of either side take part in such a join, and it makes at most their square. They are
fewer where the question makes texts that are longer than those of a row (`MOST_WITH_TEXTS`).

**Rule.** Rows that WHERE leaves out anyway are left out first (`_narrow`). Then a unit's n > L rows of a side are put
in the order of their columns, and number p is kept where p L mod n < L: L rows, evenly spaced.

**Theorem.** What is kept of a unit is a function of its own rows and of the question, up to rows that are equal in all
that is used. So the rule of `plan/scope.py` holds of the joined rows as before. Where no unit has more than L rows on a
side, the joined rows that WHERE keeps are those of the question as it is written.
Proof. Conditions look at one row each. Rows that tie in the order of all columns that are used are equal in them. For
n <= L every remainder is below n, hence below L, so all rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tacit.engines.layout import substitute
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.conditions import conjunction, conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    ColumnReference,
    Constants,
    EquiJoin,
    ExactStatistic,
    Literal,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
    WindowStatistic,
    column_names,
    walk,
)

MOST_JOINED = 1_000  # rows of a unit on one side of a join
MOST_WITH_TEXTS = 100  # where texts are put together: a million long ones would not fit into memory

_LONGER = frozenset({Function.CONCAT, Function.REPLACE, Function.LPAD, Function.RPAD})
_LARGEST = 200  # scalars in a condition that is put in terms of another node's columns


def limit_joins(node: Aggregation, most: int = MOST_JOINED) -> Aggregation:
    """The aggregation, with every join on the unit limited. The node itself where there is none to limit."""
    if not has_joins_on_units(node.source):
        return node
    return replace(node, source=limit_joined_rows(node.source, node.where, _list_used(node, node.measures), most))


def limit_clipped_joins(node: ClippedAggregation, most: int = MOST_JOINED) -> ClippedAggregation:
    """The same where a clip bounds what a unit adds."""
    if not has_joins_on_units(node.source):
        return node
    measures = [measure for vector in node.vectors for _, measure in vector.terms]
    return replace(node, source=limit_joined_rows(node.source, node.where, _list_used(node, measures), most))


def _list_used(node: Aggregation | ClippedAggregation, measures: Iterable[ExactStatistic]) -> list[Scalar]:
    """What is used of a row besides the condition."""
    unit: list[Scalar] = [] if node.unit is None else [ColumnReference(node.unit)]
    arguments = (measure.argument for measure in measures if measure.argument is not None)
    return [*(key.scalar for key in node.keys), *arguments, *unit]


def limit_joined_rows(
    node: RelationalNode, where: Scalar | None, used: Iterable[Scalar], most: int = MOST_JOINED
) -> RelationalNode:
    """The rows, with every join on the unit limited: what is `used` of them where `where` is true is the same."""
    if not has_joins_on_units(node):
        return node
    known, asked = conjuncts(where), list(used)
    if any(_makes_texts(scalar) for scalar in (*asked, *known, *_list_scalars(node))):
        most = min(most, MOST_WITH_TEXTS)
    return _narrow(node, known, _names([*asked, *known]), most)


def _makes_texts(scalar: Scalar) -> bool:
    """Whether a scalar makes texts that may be longer than its operands."""
    return any(isinstance(part, Call) and part.function in _LONGER for part in walk(scalar))


def _list_scalars(node: RelationalNode) -> Iterator[Scalar]:
    """What the nodes of a question compute."""
    match node:
        case Scan() | Constants():
            return
        case EquiJoin(left, right, on):
            yield from (scalar for pair in on for scalar in pair)
            yield from (*_list_scalars(left), *_list_scalars(right))
            return
        case RowUnion(parts):
            for part in parts:
                yield from _list_scalars(part)
            return
        case Projection(columns=columns, where=where):
            yield from (scalar for _, scalar in columns)
            yield from conjuncts(where)
        case PerUnitAggregation(keys=keys, measures=measures):
            yield from (scalar for _, scalar in keys)
            yield from (measure.argument for _, measure in measures if measure.argument is not None)
    yield from _list_scalars(node.source)


def has_joins_on_units(node: RelationalNode) -> bool:
    """Whether rows of a unit are matched with others of it, and both sides may have several."""
    match node:
        case Scan() | Constants():
            return False
        case EquiJoin(left, right, units=units):
            return units is not None or has_joins_on_units(left) or has_joins_on_units(right)
        case RowUnion(parts):
            return any(map(has_joins_on_units, parts))
    return has_joins_on_units(node.source)


def _narrow(node: RelationalNode, known: list[Scalar], used: set[str], most: int) -> RelationalNode:
    """The rows of a node, of which the columns `used` are looked at where all `known` conditions hold."""
    match node:
        case Scan() | Constants():
            return node
        case Projection(source, columns, where):
            columns = tuple(column for column in columns if column[0] in used) or columns[:1]  # SQL wants one
            named: dict[Scalar, Scalar] = {ColumnReference(name): scalar for name, scalar in columns}
            below = [small for part in known if (small := _keep_small(substitute(part, named))) is not None]
            below += conjuncts(where)
            return Projection(_narrow(source, below, _names([*named.values(), *below]), most), columns, where)
        case EquiJoin(left, right, on, outer, units):
            used = used | _names(scalar for pair in on for scalar in pair) | set(units or ())
            ours = [part for part in known if _is_about(part, left)]
            # A LEFT JOIN's row that finds nothing has NULL there, so what holds of it says nothing of the right side.
            theirs = [] if outer else [part for part in known if _is_about(part, right)]
            one, other = _narrow(left, ours, used, most), _narrow(right, theirs, used, most)
            if units is not None:
                one, other = _limit(one, units[0], ours, used, most), _limit(other, units[1], theirs, used, most)
            return EquiJoin(one, other, on, outer)
        case RowUnion(parts):  # which have the same names
            return RowUnion(tuple(_narrow(part, known, set(column_names(part)), most) for part in parts))
        case PerUnitAggregation() | UnitWindow():  # a row of which is made of several
            return replace(node, source=_narrow(node.source, [], set(column_names(node.source)), most))
    raise AssertionError(f"no rows of {node!r}")


def _keep_small(scalar: Scalar) -> Scalar | None:
    return scalar if sum(1 for _ in walk(scalar)) <= _LARGEST else None


def _is_about(scalar: Scalar, node: RelationalNode) -> bool:
    """Whether all columns that a scalar names are those of a node."""
    return _names([scalar]) <= set(column_names(node))


def _names(scalars: Iterable[Scalar]) -> set[str]:
    """The columns that scalars name."""
    return {part.name for scalar in scalars for part in walk(scalar) if isinstance(part, ColumnReference)}


def _limit(node: RelationalNode, unit: str, where: list[Scalar], used: set[str], most: int) -> RelationalNode:
    """What is used of the rows where all conditions hold, and of each unit at most so many of them, evenly spaced."""
    columns = tuple((name, ColumnReference(name)) for name in column_names(node) if name in used)
    rows = Projection(node, columns, conjunction(where) if where else None)
    place, size = ("place of row", WindowStatistic("row_number")), ("rows of unit", WindowStatistic("count"))
    turn = Call(Function.MULTIPLY, (ColumnReference(place[0]), Literal(most)))
    turn = Call(Function.MOD, (turn, ColumnReference(size[0])))
    return Projection(UnitWindow(rows, (unit,), (), (place, size)), columns, Call(Function.LESS, (turn, Literal(most))))
