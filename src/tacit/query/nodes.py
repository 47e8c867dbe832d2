"""The nodes of a question. All are frozen; equal nodes mean the same, wherever they stood in the text.

Three kinds: scalars (a value for each row, or for each row of an answer), the `Query` that the text says, and the
`Aggregation` that an engine runs, made of the same scalars with every column clamped and every argument on a grid.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tacit.errors import SourceLocation
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.cached_hash import keep_hash
from tacit.query.integer_types import PostgresType
from tacit.query.types import Key, Type

STAR = "*"  # the name of a column that stands for all of them
LiteralValue = int | Fraction | str | bool | datetime.date | None  # a date may have a time


def _place() -> Any:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant. A number with a point or an exponent is a Fraction and of type float."""

    value: LiteralValue
    at: SourceLocation | None = _place()

    def __eq__(self, other: object) -> bool:
        """Whether it is the same constant of the same type: 1, 1.0 and TRUE are equal in Python, and not in SQL."""
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class ColumnReference:
    """A column by name; `table` is the qualifier, if one was written. `without` are columns that * leaves out."""

    name: str
    table: str | None = None
    at: SourceLocation | None = _place()
    without: tuple[str, ...] | None = field(default=None, repr=False)


@keep_hash
@dataclass(frozen=True)
class Call:
    """A function or operator of the closed table in `query/functions.py`."""

    function: str
    arguments: tuple[Scalar, ...]
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN value ... ELSE otherwise END."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a scalar over rows; no argument means COUNT(*).

    `function` is one that `aggregates/` answers. `share` is which quantile: 1/2 is the median. `count` is how many
    values a top-k names. `others` are further arguments, as of CORR(x, y).
    """

    function: str
    argument: Scalar | None
    distinct: bool = False
    share: Fraction | None = None
    count: int | None = None
    others: tuple[Scalar, ...] = ()
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Window:
    """FUNCTION(arguments) OVER (PARTITION BY partition ORDER BY order frame), of released values or of a unit's rows.

    An aggregate over a window stands in `aggregate`, and has no function and no arguments. `frame` is as it is written,
    of whole numbers; empty where it is left out. `name` is that of a window in WINDOW, until it is read.
    """

    function: str
    arguments: tuple[Scalar, ...]
    aggregate: Aggregate | None
    partition: tuple[Scalar, ...] = ()
    order: tuple[OrderItem, ...] = ()
    frame: str = ""
    name: str = ""
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class InSubquery:
    """Whether the operand is among the values of a subquery's one column. `plan/semi_join.py` says what it means.

    Of (a, b) IN (SELECT c, d ...) the operand is a, and `others` are those after it.
    """

    operand: Scalar
    query: Query | UnionAll
    at: SourceLocation | None = _place()
    others: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class ScalarSubquery:
    """A query in brackets that stands for its only value."""

    query: Query | UnionAll
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Exists:
    """Whether a subquery has rows, which may depend on the row outside. `plan/semi_join.py` says what it means."""

    query: Query | UnionAll
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Placeholder:
    """A value that an earlier release of the same question gives; `name` says which. An engine never sees it.

    `answers/choosing_values.py` says what it means.
    """

    name: str
    type: Type
    at: SourceLocation | None = _place()
    postgres_type: PostgresType = field(default=PostgresType.INTEGER, compare=False, repr=False)


@keep_hash
@dataclass(frozen=True)
class Clamp:
    """The operand, NaN read as NULL and, where there are bounds, moved to the nearest one.

    `note` is what an answer says of it, where the bounds are nobody's declared ones.
    """

    operand: Scalar
    lower: Fraction | None
    upper: Fraction | None
    whole: bool
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class ToFloat:
    """An integer as a double."""

    operand: Scalar


@keep_hash
@dataclass(frozen=True)
class Quantize:
    """A double as the integer nearest to operand/step, at least `lower` and at most `upper`, whatever the rounding."""

    operand: Scalar
    step: Fraction
    lower: int
    upper: int


@dataclass(frozen=True)
class ReleasedValue:
    """A value of the noisy table, by its position among the released ones. Post-processing only."""

    index: int


@dataclass(frozen=True)
class ReleasedKey:
    """A key of the noisy table, by its position. Post-processing only."""

    index: int


Scalar = (
    Literal
    | ColumnReference
    | Call
    | Case
    | Aggregate
    | Window
    | ScalarSubquery
    | InSubquery
    | Exists
    | Placeholder
    | Clamp
    | ToFloat
    | Quantize
    | ReleasedValue
    | ReleasedKey
)


@dataclass(frozen=True)
class SelectItem:
    """One item of the select list, with the name it will have."""

    name: str
    scalar: Scalar


@dataclass(frozen=True)
class OrderItem:
    """One item of ORDER BY."""

    scalar: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class TableReference:
    """A table of the policy, and the name it has in the question."""

    table: str
    alias: str
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class DerivedTable:
    """A subquery, or a name that WITH gave to one."""

    query: Query | UnionAll
    alias: str
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class ConstantTable:
    """Rows of constants: VALUES (1, 'a'), (2, 'b'), or one row without columns where a query has no FROM.

    A `series` has one row of its start, its end and its step, if there is one, and means all values from the one to the
    other; the last is left out where it is "exclusive" and not "inclusive". `plan/constants.py` says what it means.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    alias: str
    series: str = ""
    at: SourceLocation | None = _place()


@dataclass(frozen=True)
class Join:
    """Two sources matched by a condition, or by the columns of USING. `outer` is a LEFT JOIN.

    A RIGHT JOIN is the LEFT JOIN of the other side, and `swapped`: its columns come in the order of the text. A FULL
    JOIN is outer and `full`. `natural` matches the columns of the same name. Without any of these it is a comma or a
    CROSS JOIN, whose condition stands in WHERE. `kept` is set by `plan/public_keys.py`.
    """

    left: FromItem
    right: FromItem
    on: Scalar | None
    using: tuple[str, ...]
    outer: bool
    at: SourceLocation | None = _place()
    natural: bool = False
    swapped: bool = False
    full: bool = False
    kept: bool = False

    @property
    def is_cross(self) -> bool:
        """Whether nothing says which rows match."""
        return self.on is None and not self.using and not self.natural


@dataclass(frozen=True)
class SemiJoin:
    """The rows of the left source that find a match in the right one, or with `anti` those that find none."""

    left: FromItem
    right: FromItem
    on: Scalar | None
    using: tuple[str, ...]
    natural: bool
    anti: bool
    at: SourceLocation | None = _place()

    @property
    def is_cross(self) -> bool:
        """Whether nothing says which rows match."""
        return False


FromItem = TableReference | DerivedTable | ConstantTable | Join | SemiJoin


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM source WHERE ... GROUP BY keys HAVING ... QUALIFY ... ORDER BY ... LIMIT ... OFFSET ...

    `sets` are the grouping sets, each of positions in `keys`; None where all of them are grouped by at once.
    """

    source: FromItem
    outputs: tuple[SelectItem, ...]
    where: Scalar | None
    keys: tuple[Scalar, ...]
    having: Scalar | None
    order: tuple[OrderItem, ...]
    limit: int | None
    offset: int
    distinct: bool = False
    sets: tuple[tuple[int, ...], ...] | None = None
    qualify: Scalar | None = None
    at: SourceLocation | None = _place()
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)  # of how the text was read


@dataclass(frozen=True)
class UnionAll:
    """UNION ALL, or what `operation` says. Columns are matched by their position, and named as in the first part."""

    parts: tuple[Query, ...]
    operation: str = "union all"
    at: SourceLocation | None = _place()


@keep_hash
@dataclass(frozen=True)
class ExactStatistic:
    """What an engine computes in each group, an integer unless said otherwise.

    count: rows where `argument` is not NULL, or all rows; sum: of the integers that `argument` gives; distinct: the
    number of its values that are not NULL; distinct_sum: the sum of these, each once; units: the number of units;
    histogram: how many rows have each of its values that are not NULL. Inside a `PerUnitAggregation` also min and max.
    weight, which is measured alone: the sum over the units of `privacy/key_weights.py`, each by the number of its
    groups that are kept.
    """

    function: str
    argument: Scalar | None


@dataclass(frozen=True)
class Scan:
    """The rows of a table, its columns by name: (the declared name, the name here)."""

    table: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Constants:
    """Rows of constants: the name and the type of each column, and the values. Timestamps are integers."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[LiteralValue, ...], ...]


@dataclass(frozen=True)
class Projection:
    """For each row of `source` where `where` is true, named scalars."""

    source: RelationalNode
    columns: tuple[tuple[str, Scalar], ...]
    where: Scalar | None = None


@dataclass(frozen=True)
class EquiJoin:
    """Each row of `left` with each row of `right` that gives the same values; NULL is the same as nothing.

    With `outer`, a row of `left` that matches nothing stays, with NULLs. The names of both sides differ. Where rows of
    both sides may match several, `units` are the columns of both that hold the unit, and `engines/limit_joins.py` says
    how many rows of a unit are matched. `finds_left` says that by the policy each row of `right` finds at most one of
    `left`, and not the other way round.
    """

    left: RelationalNode
    right: RelationalNode
    on: tuple[tuple[Scalar, Scalar], ...]
    outer: bool = False
    units: tuple[str, str] | None = field(default=None, compare=False, repr=False)  # which follow from the rest
    finds_left: bool = field(default=False, compare=False, repr=False)  # the same


@dataclass(frozen=True)
class PerUnitAggregation:
    """One row for each combination of keys that occurs, NULL being a value: the keys, and exact aggregates."""

    source: RelationalNode
    keys: tuple[tuple[str, Scalar], ...]
    measures: tuple[tuple[str, ExactStatistic], ...]


@dataclass(frozen=True)
class WindowStatistic:
    """What a `UnitWindow` computes for each row, from the rows of its partition.

    row_number, rank, dense_rank and ntile, into `number` parts, say where the row stands. lag and lead are the column
    `argument` of the row that stands `number` rows before or after it, or the column `otherwise` where there is none.
    first_value, last_value, nth_value (the one with `number`), count (of all rows without an argument), sum of
    integers, min and max are of the rows from `start` to `end`, counted from the row itself; None is as far as there
    are rows. With `peers`, `start` and `end` are None or 0, which is as far as rows are equal in the order.
    """

    function: str
    argument: str | None = None
    number: int | None = None
    otherwise: str | None = None
    start: int | None = None
    end: int | None = None
    peers: bool = False

    @property
    def breaks_ties(self) -> bool:
        """Whether it matters which of two rows comes first that are equal in the order."""
        if self.function in {"count", "sum", "min", "max"}:
            return not self.peers and (self.start, self.end) != (None, None)
        return self.function not in {"rank", "dense_rank"}


@dataclass(frozen=True)
class UnitWindow:
    """The rows of `source` with further columns, each computed from the rows that are equal in `partition`.

    All names are of columns of `source`; NULL is a value in a partition. `order` is of columns, each with whether it is
    descending and whether NULLs come first. Where ties matter, rows that are equal in it are in the order of all
    columns of `source`, ascending, NULLs last: rows that tie then are equal.
    """

    source: RelationalNode
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    columns: tuple[tuple[str, WindowStatistic], ...]


@dataclass(frozen=True)
class RowUnion:
    """The rows of all parts, which have the same names in the same order."""

    parts: tuple[RelationalNode, ...]


RelationalNode = Scan | Constants | Projection | EquiJoin | PerUnitAggregation | UnitWindow | RowUnion


@dataclass(frozen=True)
class GroupKey:
    """A grouping scalar. `values` are its public keys, which are all shown; None where those that occur are private."""

    scalar: Scalar
    values: tuple[Key, ...] | None


@dataclass(frozen=True)
class Aggregation:
    """All that an engine is told.

    Rows of `source` where `where` is true, whose keys are public ones where these are listed and whose unit is not
    NULL; of these, for each unit, at most `keep.groups` groups and `keep.rows` rows in each (all of them where `unit`,
    a column of `source`, is None); the measures of each group. Groups are ranked by a hash of the unit and the
    keys, keyed with `salt`; rows are taken evenly spaced in the order of their values, from a place that the hash
    gives. Where there is a `keep.total`, so many rows of the unit are taken first, whatever their groups, evenly spaced
    in the order of their keys and values. So the choice looks at the unit's own rows only, and never at where they lie.
    Rows in `excluded` groups, given by their keys, are left out before any are chosen.
    """

    source: RelationalNode
    where: Scalar | None
    unit: str | None
    keys: tuple[GroupKey, ...]
    keep: ContributionBounds
    measures: tuple[ExactStatistic, ...]
    salt: str = ""
    excluded: tuple[tuple[Key | None, ...], ...] | None = None


def scanned_tables(node: RelationalNode) -> frozenset[str]:
    """The tables whose rows a node reads."""
    match node:
        case Scan(table):
            return frozenset({table})
        case Constants():
            return frozenset()
        case EquiJoin(left, right):
            return scanned_tables(left) | scanned_tables(right)
        case RowUnion(parts):
            return frozenset().union(*map(scanned_tables, parts))
    return scanned_tables(node.source)


def column_names(node: RelationalNode) -> list[str]:
    """The names of the columns that a node's rows have, in their order."""
    match node:
        case Scan(_, columns):
            return [here for _, here in columns]
        case Constants(columns):
            return [name for name, _ in columns]
        case Projection(_, columns):
            return [name for name, _ in columns]
        case EquiJoin(left, right):
            return column_names(left) + column_names(right)
        case PerUnitAggregation(_, keys, measures):
            return [name for name, _ in keys] + [name for name, _ in measures]
        case UnitWindow(source, columns=made):
            return column_names(source) + [name for name, _ in made]
        case RowUnion(parts):
            return column_names(parts[0])


def is_star(scalar: Scalar) -> bool:
    """Whether this is * in a select list."""
    return isinstance(scalar, ColumnReference) and scalar.name == STAR


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """The scalars directly inside."""
    match scalar:
        case Literal() | ColumnReference():
            return ()
        case Call(_, arguments):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Aggregate(_, argument, others=others):
            return others if argument is None else (argument, *others)
        case Window(_, arguments, aggregate, partition, order):
            measured = () if aggregate is None else children(aggregate)
            return (*arguments, *measured, *partition, *(item.scalar for item in order))
        case Clamp(operand) | ToFloat(operand) | Quantize(operand):
            return (operand,)
        case InSubquery(operand, others=others):
            return (operand, *others)
        case _:
            return ()


def rebuild(scalar: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """The scalar with each outermost part that `change` has another for replaced by that."""
    found = change(scalar)
    if found is not None:
        return found

    def each(parts: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return tuple(rebuild(part, change) for part in parts)

    match scalar:
        case Call(function, arguments, at):
            return Call(function, each(arguments), at)
        case Case(branches, otherwise, at):
            parts = tuple((rebuild(when, change), rebuild(then, change)) for when, then in branches)
            return Case(parts, rebuild(otherwise, change), at)
        case Aggregate(argument=argument, others=others) if argument is not None:
            return replace(scalar, argument=rebuild(argument, change), others=each(others))
        case Window(_, arguments, aggregate, partition, order):
            if aggregate is not None and aggregate.argument is not None:
                inside = rebuild(aggregate.argument, change)
                aggregate = replace(aggregate, argument=inside, others=each(aggregate.others))
            ordered = tuple(replace(item, scalar=rebuild(item.scalar, change)) for item in order)
            return replace(
                scalar, arguments=each(arguments), aggregate=aggregate, partition=each(partition), order=ordered
            )
    return scalar


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The scalar and all inside it, outermost first."""
    rest = [scalar]
    while rest:
        node = rest.pop()
        yield node
        rest += reversed(children(node))


def walk_clauses(query: Query) -> Iterator[Scalar]:
    """Every scalar that a query holds, clause by clause."""
    yield from (output.scalar for output in query.outputs)
    yield from query.keys
    yield from (order.scalar for order in query.order)
    yield from (clause for clause in (query.where, query.having, query.qualify) if clause is not None)


def find_location(scalar: Scalar) -> SourceLocation | None:
    """Where the scalar stands in the text, if it came from there."""
    return getattr(scalar, "at", None)
