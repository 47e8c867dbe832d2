"""What is computed from released tables: joins, groups, windows, unions, in the words of relational algebra.

A program is a function of releases and public tables alone, so it is post-processing: it costs nothing and may do
anything. `render`
writes it as SQL for the in-memory DuckDB of post-processing, in which every table has a column `_id` that names its
rows. Written for draws, every table also has a column `_draw`, and rows meet only rows of their own draw: so one
statement computes the whole program once for each draw of the noise.

Columns have names of their own; no word of the question stands in the SQL but quoted constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tacit.engines.scalars import write_scalar
from tacit.query.nodes import Aggregate, ColumnReference, OrderItem, Scalar, Window, walk
from tacit.query.types import Type

_SHOWN_AS = {
    Type.INT: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.BOOL: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "BIGINT",
}
_AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
    "mode": "mode",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "covar_samp": "covar_samp",
    "covar_pop": "covar_pop",
    "corr": "corr",
    "arg_max": "arg_max",
    "arg_min": "arg_min",
    **{name: name for name in ["skewness", "kurtosis", "kurtosis_pop"]},
    **{
        f"regr_{name}": f"regr_{name}"
        for name in ["count", "avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2"]
    },
    "geomean": "avg",  # of logarithms, of which EXP is taken
    "quantile": "quantile_cont",
}
OUTER_AGGREGATES = frozenset(_AGGREGATES)
_IN_ORDER = frozenset({"row_number", "ntile", "lag", "lead"})  # ties of their order are broken by the rows' names


@dataclass(frozen=True)
class ProgramColumn:
    """A column that a program computes: its name, the scalar, and its type."""

    name: str
    scalar: Scalar
    type: Type


@dataclass(frozen=True)
class Released:
    """The table of a release: for each column its name here, the one in the release, and whether it has intervals."""

    index: int
    columns: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True)
class Public:
    """The rows of public tables that are read for a program: which of them, and the name of each column here."""

    index: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Nothing:
    """A table without rows, whose columns are known."""

    columns: tuple[ProgramColumn, ...]


@dataclass(frozen=True)
class Compute:
    """For each row, columns computed from it."""

    source: Node
    columns: tuple[ProgramColumn, ...]


@dataclass(frozen=True)
class Filter:
    """The rows where a condition is true."""

    source: Node
    condition: Scalar


@dataclass(frozen=True)
class Combine:
    """Rows of both sides that give the same values, as inner, left, right or full join; without pairs, all of both."""

    left: Node
    right: Node
    on: tuple[tuple[Scalar, Scalar], ...]
    kind: str = "inner"


@dataclass(frozen=True)
class GroupRows:
    """One row for each combination of keys: the keys, and aggregates. Without keys, one row."""

    source: Node
    keys: tuple[ProgramColumn, ...]
    aggregates: tuple[ProgramColumn, ...]


@dataclass(frozen=True)
class Windows:
    """The rows, with columns computed over windows of them added."""

    source: Node
    columns: tuple[ProgramColumn, ...]


@dataclass(frozen=True)
class Stack:
    """The rows of all parts, which have the same columns: all of them, or what else `operation` says."""

    parts: tuple[Node, ...]
    operation: str = "union all"


@dataclass(frozen=True)
class Distinct:
    """Each row once."""

    source: Node


@dataclass(frozen=True)
class Sort:
    """The rows in an order, by columns of theirs, and some of them."""

    source: Node
    order: tuple[OrderItem, ...]
    limit: int | None = None
    offset: int = 0


Node = Released | Public | Nothing | Compute | Filter | Combine | GroupRows | Windows | Stack | Distinct | Sort


def names_of(node: Node) -> list[str]:
    """The names of the columns."""
    match node:
        case Released(_, columns):
            return [name for name, _, _ in columns]
        case Public(_, names):
            return list(names)
        case Compute(_, columns) | Nothing(columns):
            return [column.name for column in columns]
        case Combine(left, right):
            return names_of(left) + names_of(right)
        case GroupRows(_, keys, aggregates):
            return [column.name for column in (*keys, *aggregates)]
        case Windows(source, columns):
            return names_of(source) + [column.name for column in columns]
        case Stack(parts):
            return names_of(parts[0])
    return names_of(node.source)


def columns_with_intervals(node: Node) -> frozenset[str]:
    """The columns that are released values as they are, and so have their intervals."""
    match node:
        case Released(_, columns):
            return frozenset(name for name, _, has_interval in columns if has_interval)
        case Compute(source, columns):
            inside = columns_with_intervals(source)
            return frozenset(
                c.name for c in columns if isinstance(c.scalar, ColumnReference) and c.scalar.name in inside
            )
        case Combine(left, right):
            return columns_with_intervals(left) | columns_with_intervals(right)
        case GroupRows() | Distinct() | Nothing() | Public():
            return frozenset()
        case Stack(parts, operation):
            inside = frozenset.intersection(*map(columns_with_intervals, parts))
            return inside if operation == "union all" else frozenset()
    return columns_with_intervals(node.source)


def trace_column(node: Node, name: str) -> str:
    """The column of a release that a column is, as it is; of columns that were put together, that of the first part."""
    match node:
        case Released():
            return name
        case Compute(source, columns):
            scalar = next(column.scalar for column in columns if column.name == name)
            return trace_column(source, scalar.name) if isinstance(scalar, ColumnReference) else ""
        case Combine(left, right):
            return trace_column(left if name in names_of(left) else right, name)
        case Stack(parts):
            return trace_column(parts[0], name)
        case GroupRows() | Nothing() | Public():
            return ""
        case Windows(source, columns) if any(column.name == name for column in columns):
            return ""
    return trace_column(node.source, name)


def released_columns(node: Node) -> Iterator[tuple[int, str, str]]:
    """The columns of all releases that a program reads: which release, the name here and the name there."""
    for each in _within(node):
        if isinstance(each, Released):
            yield from ((each.index, name, source) for name, source, _ in each.columns)


def noisy_columns(node: Node) -> frozenset[str]:
    """The columns that noise may have moved."""
    match node:
        case Released(_, columns):
            return frozenset(name for name, source, _ in columns if source.startswith("v"))
        case Compute(source, columns):
            return _computed_from(columns, noisy_columns(source))
        case Combine(left, right):
            return noisy_columns(left) | noisy_columns(right)
        case GroupRows(source, keys, aggregates):
            inside = noisy_columns(source)
            moved = inside or any(isinstance(each, Filter) and _has_release(each) for each in _within(source))
            return _computed_from(keys, inside) | (frozenset(a.name for a in aggregates) if moved else frozenset())
        case Windows(source, columns):
            inside = noisy_columns(source)
            return inside | _computed_from(columns, inside)
        case Stack(parts):
            return frozenset().union(*map(noisy_columns, parts))
        case Nothing() | Public():
            return frozenset()
    return noisy_columns(node.source)


def names_rows_by_noise(node: Node) -> bool:
    """Whether a noisy value is part of what names a row, so that the row cannot be found again in another draw.

    Rows that are kept once, and groups, are named by their values and keys; others as the rows that they come from.
    """
    match node:
        case GroupRows(source, keys):
            return bool(_computed_from(keys, noisy_columns(source)))
        case Distinct(source):
            return bool(noisy_columns(source))
        case Stack(parts, operation):
            return any(map(names_rows_by_noise, parts)) if operation == "union all" else bool(noisy_columns(node))
        case Combine(left, right):
            return names_rows_by_noise(left) or names_rows_by_noise(right)
        case Released() | Nothing() | Public():
            return False
    return names_rows_by_noise(node.source)


def _has_release(node: Node) -> bool:
    return any(isinstance(each, Released) for each in _within(node))


def _computed_from(columns: tuple[ProgramColumn, ...], noisy: frozenset[str]) -> frozenset[str]:
    return frozenset(
        column.name
        for column in columns
        if any(isinstance(node, ColumnReference) and node.name in noisy for node in walk(column.scalar))
    )


def _within(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Combine(left, right):
            yield from _within(left)
            yield from _within(right)
        case Stack(parts):
            for part in parts:
                yield from _within(part)
        case Released() | Nothing() | Public():
            return
        case _:
            yield from _within(node.source)


def render(node: Node, *, draws: bool) -> str:
    """A program as SQL over tables r0, r1, ... and p0, p1, ...: once as released, or for all `draws` of the noise.

    Public rows are the same in every draw, whose numbers are in the table `draws`.
    """
    return _Writer(draws).write(node)


class _Writer:
    def __init__(self, draws: bool) -> None:
        self.draws = draws
        self.named = ["_id", *(["_draw"] if draws else [])]

    def write(self, node: Node) -> str:
        match node:
            case Released(index, columns):
                shown = [f"{source} AS {name}" for name, source, _ in columns]
                return f"SELECT {', '.join([*shown, *self.ends(node, columns), *self.named])} FROM r{index}"
            case Public(index, names):
                shown = [f"c{place} AS {name}" for place, name in enumerate(names)]
                every = " CROSS JOIN draws" if self.draws else ""
                return f"SELECT {', '.join([*shown, *self.named])} FROM p{index}{every}"
            case Nothing(columns):
                empty = [f"CAST(NULL AS {_SHOWN_AS[column.type]}) AS {column.name}" for column in columns]
                return f"SELECT {', '.join([*empty, *(f'0 AS {name}' for name in self.named)])} WHERE FALSE"
            case Compute(source, columns):
                shown = [f"{write_column(column)} AS {column.name}" for column in columns]
                ends = [] if self.draws else self._write_passed(columns, columns_with_intervals(source))
                return f"SELECT {', '.join([*shown, *ends, *self.named])} FROM ({self.write(source)})"
            case Filter(source, condition):
                return f"SELECT * FROM ({self.write(source)}) WHERE TRY({write_scalar(condition)})"
            case Combine():
                return self.combine(node)
            case GroupRows():
                return self.group(node)
            case Windows(source, columns):
                over = ", ".join(f"{self.window(column)} AS {column.name}" for column in columns)
                return f"SELECT *, {over} FROM ({self.write(source)})"
            case Stack():
                return self.stack(node)
            case Distinct(source):
                return self.distinct(source)
            case Sort():
                return self.sort(node)

    def ends(self, node: Node, columns: tuple[tuple[str, str, bool], ...]) -> list[str]:
        if self.draws:
            return []
        return [f"{source}{end} AS {name}{end}" for name, source, has in columns if has for end in ("_low", "_high")]

    def _write_passed(self, columns: tuple[ProgramColumn, ...], inside: frozenset[str]) -> list[str]:
        return [
            f"{c.scalar.name}{end} AS {c.name}{end}"
            for c in columns
            if isinstance(c.scalar, ColumnReference) and c.scalar.name in inside
            for end in ("_low", "_high")
        ]

    def combine(self, node: Combine) -> str:
        left, right = self.write(node.left), self.write(node.right)
        on = [f"{write_scalar(one)} = {write_scalar(other)}" for one, other in node.on]
        if self.draws:
            on.append("one._draw = other._draw")
        ends = () if self.draws else ("_low", "_high")
        shown = [
            f"{name}{end}"
            for side in (node.left, node.right)
            for name in names_of(side)
            for end in ("", *(ends if name in columns_with_intervals(side) else ()))
        ]
        named = ["coalesce(one._id, '') || '/' || coalesce(other._id, '') AS _id"]
        if self.draws:
            named.append("coalesce(one._draw, other._draw) AS _draw")
        join = f"{node.kind.upper()} JOIN" if on else "CROSS JOIN"
        if not on and node.kind != "inner":
            join, on = f"{node.kind.upper()} JOIN", ["TRUE"]
        where = f" ON {' AND '.join(on)}" if on else ""
        return f"SELECT {', '.join([*shown, *named])} FROM ({left}) AS one {join} ({right}) AS other{where}"

    def group(self, node: GroupRows) -> str:
        keys = [f"{write_column(key)} AS {key.name}" for key in node.keys]
        values = [f"{self.aggregate(column)} AS {column.name}" for column in node.aggregates]
        inside = f"SELECT *, {', '.join(keys)} FROM ({self.write(node.source)})" if keys else self.write(node.source)
        names = [key.name for key in node.keys]
        by = [*names, *(["_draw"] if self.draws else [])]
        shown = [*names, *values, f"{_row_name(names)} AS _id", *(["_draw"] if self.draws else [])]
        grouped = f" GROUP BY {', '.join(by)}" if by else ""
        return f"SELECT {', '.join(shown)} FROM ({inside}){grouped}"

    def aggregate(self, column: ProgramColumn) -> str:
        assert isinstance(column.scalar, Aggregate)
        return _cast(_finish_aggregate(column.scalar, _call_aggregate(column.scalar)), column.type)

    def window(self, column: ProgramColumn) -> str:
        window = column.scalar
        assert isinstance(window, Window)
        if window.aggregate is not None:
            called = _call_aggregate(window.aggregate)
        else:
            called = f"{window.function}({', '.join(f'({write_scalar(each)})' for each in window.arguments)})"
        partition = [*(f"TRY({write_scalar(each)})" for each in window.partition), *(["_draw"] if self.draws else [])]
        order = [_sort_key(item) for item in window.order]
        if window.aggregate is None and window.function in _IN_ORDER:
            order.append("_id")
        by = f"PARTITION BY {', '.join(partition)} " if partition else ""
        sort = f"ORDER BY {', '.join(order)} " if order else ""
        over = f"{called} OVER ({by}{sort}{window.frame})"
        return _cast(_finish_aggregate(window.aggregate, over), column.type)

    def stack(self, node: Stack) -> str:
        names = names_of(node)
        together = node.operation == "union all"
        kept = columns_with_intervals(node) if not self.draws else frozenset()
        ends = [f"{name}{end}" for name in names if name in kept for end in ("_low", "_high")]
        parts = []
        for index, part in enumerate(node.parts):
            own = [f"'{index:03}.' || _id AS _id", *self.named[1:]] if together else self.named[1:]
            parts.append(f"SELECT {', '.join([*names, *ends, *own])} FROM ({self.write(part)})")
        whole = f" {node.operation.upper()} ".join(parts)
        if together:
            return whole
        return f"SELECT *, {_row_name(names)} AS _id FROM ({whole})"

    def distinct(self, source: Node) -> str:
        names = names_of(source)
        rest = ["_draw"] if self.draws else []
        inside = f"SELECT DISTINCT {', '.join([*names, *rest])} FROM ({self.write(source)})"
        return f"SELECT *, {_row_name(names)} AS _id FROM ({inside})"

    def sort(self, node: Sort) -> str:
        """The rows in order; for draws, those of each draw that the order leaves."""
        order = ", ".join([*map(_sort_key, node.order), "_id"])
        if not self.draws:
            limit = "" if node.limit is None else f" LIMIT {node.limit}"
            return f"SELECT * FROM ({self.write(node.source)}) ORDER BY {order}{limit} OFFSET {node.offset}"
        if node.limit is None and not node.offset:
            return self.write(node.source)
        last = "" if node.limit is None else f" AND _place <= {node.offset + node.limit}"
        placed = f"SELECT *, row_number() OVER (PARTITION BY _draw ORDER BY {order}) AS _place"
        return (
            f"SELECT * EXCLUDE (_place) FROM ({placed} FROM ({self.write(node.source)})) "
            f"WHERE _place > {node.offset}{last}"
        )


def write_column(column: ProgramColumn) -> str:
    """A computed column: NULL where a number overflows."""
    return _cast(write_scalar(column.scalar), column.type, guarded=True)


def _cast(text: str, kind: Type, *, guarded: bool = False) -> str:
    """A value of a type; of a double, NULL where it is not finite. `guarded` catches what an expression may raise."""
    value = f"TRY(CAST({text} AS {_SHOWN_AS[kind]}))" if guarded else f"TRY_CAST({text} AS {_SHOWN_AS[kind]})"
    return f"CASE WHEN isfinite({value}) THEN {value} END" if kind is Type.FLOAT else value


def _call_aggregate(node: Aggregate) -> str:
    arguments = [f"TRY({write_scalar(each)})" for each in (node.argument, *node.others) if each is not None]
    if node.argument is None:
        return "count(*)"
    if node.function == "quantile":
        share = node.share if node.share is not None else Fraction(1, 2)
        return f"quantile_cont({arguments[0]}, {float(share)!r})"
    distinct = "DISTINCT " if node.distinct else ""
    return f"{_AGGREGATES[node.function]}({distinct}{', '.join(arguments)})"


def _finish_aggregate(node: Aggregate | None, called: str) -> str:
    """The aggregate from what was called for it, over all rows or over windows of them."""
    return f"exp({called})" if node is not None and node.function == "geomean" else called


def _sort_key(item: OrderItem) -> str:
    way, nulls = "DESC" if item.descending else "ASC", "FIRST" if item.nulls_first else "LAST"
    return f"TRY({write_scalar(item.scalar)}) {way} NULLS {nulls}"


def _row_name(names: list[str]) -> str:
    """What names a row: the text of its values."""
    if not names:
        return "''"
    return " || '|' || ".join(f"coalesce(CAST({name} AS VARCHAR), '-')" for name in names)
