"""Queries over released tables: each clause becomes a node of a program (`answers/program.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.condition import expand_condition
from tacit.aggregates.registry import function_of
from tacit.answers.program import (
    OUTER_AGGREGATES,
    Combine,
    Compute,
    Distinct,
    Filter,
    GroupRows,
    Node,
    ProgramColumn,
    Sort,
    Windows,
    noisy_columns,
)
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar, bind
from tacit.plan.flatten import aggregates
from tacit.plan.relation import condition
from tacit.plan.released_table import ReleasedTable, TableColumn, find_column
from tacit.plan.window_checks import check_window
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.integer_types import PostgresType, type_of_aggregate, type_of_window
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Literal,
    OrderItem,
    Query,
    Scalar,
    ScalarSubquery,
    Window,
    find_location,
    is_star,
    walk,
)
from tacit.query.types import NUMERIC_TYPES, Type

_WITHOUT_EMPTY = frozenset({"sum", "max"})  # which groups of about 0 rows do not change
_WHOLE = frozenset({"row_number", "rank", "dense_rank", "ntile"})
_SHARES = frozenset({"percent_rank", "cume_dist"})


class Subqueries(Protocol):
    """What makes tables of subqueries, and names for columns: `plan/compound.py`."""

    names: Iterator[str]
    notes: list[str]

    def single(self, node: ScalarSubquery) -> ReleasedTable:
        """The released table of a subquery that has one row, or none, and one column."""


class ReleasedQuery:
    """A query over a released table. Its clauses become nodes of a program, in the order in which SQL does them."""

    def __init__(self, builder: Subqueries, query: Query, source: ReleasedTable) -> None:
        self.builder, self.query, self.source = builder, query, source
        self.groups = aggregates(query)
        self.keys: list[tuple[Scalar, ProgramColumn]] = []
        self.aggregates: dict[Aggregate, ProgramColumn] = {}
        self.windows: dict[Window, ProgramColumn] = {}
        self.subqueries: dict[ScalarSubquery, ReleasedTable] = {}
        self.opened: set[str] = set()  # names of the select list whose expressions are being bound
        self.computed: dict[str, TypedScalar] = {}  # the values of aggregates and windows, by their columns
        self.named = {output.name.lower(): output.scalar for output in query.outputs}
        self.fixed: frozenset[str] = frozenset()  # the columns of which WHERE leaves one value

    def table(self) -> ReleasedTable:
        """The table that the query gives."""
        query, node = self.query, self.source.node
        where = None if query.where is None else self._condition(query.where, "WHERE", self._row)
        node = self._with_subqueries(node)
        if where is not None:
            node = Filter(node, where)
            self.fixed = frozenset(name for part in conjuncts(where) if (name := _fixed_column(part)))
        listed = () if where is not None and self._is_noisy(where) else self.source.listed
        if query.sets is not None:
            what, fix = (
                "grouping sets over released tables are not answered",
                "write one query for each, and put them together",
            )
            raise Refused(ErrorCode.UNSUPPORTED, what, at=query.at, fix=fix)
        for key in query.keys:
            self._add_key(key)
        having = None if query.having is None else self._condition(query.having, "HAVING", self._finishing)
        qualify = None if query.qualify is None else self._condition(query.qualify, "QUALIFY", self._finishing)
        outputs = [(name, self._bind(scalar, self._leaf)) for name, scalar in self._outputs()]
        order = [(item, self._bind(item.scalar, self._finishing)) for item in query.order]
        if self.groups:
            self._note_empty_groups(listed)
            node = GroupRows(node, tuple(column for _, column in self.keys), tuple(self.aggregates.values()))
        node = self._with_subqueries(node)
        if having is not None:
            node = Filter(node, having)
        if self.windows:
            node = Windows(node, tuple(self.windows.values()))
        if qualify is not None:
            node = Filter(node, qualify)
        changed = self.groups or having is not None or qualify is not None or query.limit is not None or query.distinct
        return replace(self._finish(node, outputs, order), listed=() if changed else listed)

    def _is_noisy(self, condition: Scalar) -> bool:
        """Whether a condition depends on noise: it may have been written to leave groups without rows out."""
        noisy = noisy_columns(self.source.node)
        return any(isinstance(node, ColumnReference) and node.name in noisy for node in walk(condition))

    def _note_empty_groups(self, listed: tuple[str, ...]) -> None:
        """Say that an aggregate over released groups counts declared keys without rows, which have no group in SQL."""
        told = [quote_aggregate(node) for node in self.aggregates if node.function not in _WITHOUT_EMPTY]
        if listed and told:
            keys = " and ".join(listed)
            note = f"{told[0]} is over all declared values of {keys}, also those without rows"
            self.builder.notes.append(
                f"{note}; HAVING with a number above the noise, in the subquery, leaves them out."
            )

    def _finish(
        self, node: Node, outputs: list[tuple[str, TypedScalar]], order: list[tuple[OrderItem, TypedScalar]]
    ) -> ReleasedTable:
        """The select list, DISTINCT, ORDER BY and LIMIT."""
        query = self.query
        columns = [
            TableColumn(
                name,
                "",
                next(self.builder.names),
                bound.type,
                texts=bound.texts,
                weight=bound.weight,
                postgres_type=bound.postgres_type,
            )
            for name, bound in outputs
        ]
        computed = [
            ProgramColumn(column.column, bound.scalar, column.type or Type.INT)
            for column, (_, bound) in zip(columns, outputs, strict=True)
        ]
        sorting: list[OrderItem] = []
        for item, bound in order:
            known = next((each.name for each in computed if each.scalar == bound.scalar), None)
            if known is None and query.distinct:
                what, fix = "ORDER BY of DISTINCT names columns of the select list", "add the column to the select list"
                raise Refused(ErrorCode.SYNTAX, what, at=find_location(item.scalar), fix=fix)
            if known is None:
                known = next(self.builder.names)
                computed.append(ProgramColumn(known, bound.scalar, bound.type or Type.INT))
            sorting.append(replace(item, scalar=ColumnReference(known)))
        node = Compute(node, tuple(computed))
        if query.distinct:
            node = Distinct(node)
        if sorting or query.limit is not None or query.offset:
            node = Sort(node, tuple(sorting), query.limit, query.offset)
        rows = 1 if self.groups and not self.keys else self.source.rows
        if any(key <= self.fixed for key in self.source.unique):
            rows = min(rows, 1)
        rows = rows if query.limit is None else min(query.limit, rows)
        keys = (frozenset(column.name for _, column in self.keys),) if self.groups else self.source.unique
        passed = {each.scalar.name: each.name for each in computed if isinstance(each.scalar, ColumnReference)}
        unique = tuple(frozenset(passed[name] for name in key) for key in keys if key <= passed.keys())
        return ReleasedTable(node, tuple(columns), rows, unique)

    def _outputs(self) -> Iterator[tuple[str, Scalar]]:
        for output in self.query.outputs:
            if not isinstance(output.scalar, ColumnReference) or not is_star(output.scalar):
                yield output.name, output.scalar
                continue
            wanted, without = output.scalar.table, {name.lower() for name in output.scalar.without or ()}
            for column in self.source.columns:
                if column.name.lower() in without:
                    continue
                if not column.hidden if wanted is None else wanted.lower() == column.table.lower():
                    yield column.name, ColumnReference(column.name, column.table or None)

    def _bind(self, scalar: Scalar, leaf: Callable[[Scalar], TypedScalar | None]) -> TypedScalar:
        return bind(scalar, leaf, rows=False)

    def _condition(self, scalar: Scalar, clause: str, leaf: Callable[[Scalar], TypedScalar | None]) -> Scalar:
        return condition(self._bind(scalar, leaf), clause, find_location(scalar))

    def _row(self, node: Scalar) -> TypedScalar | None:
        """A part of WHERE, of a key or of an aggregate's argument: over rows of the source."""
        match node:
            case Aggregate() | Window():
                what = "an aggregate cannot stand inside WHERE or another aggregate"
                raise Refused(ErrorCode.AGGREGATE, what, at=node.at, fix="filter groups after they are made")
            case ScalarSubquery():
                return self._subquery(node)
            case ColumnReference():
                return find_column(node, self.source)
        return None

    def _add_key(self, key: Scalar) -> None:
        if isinstance(key, ColumnReference) and key.table is None and not self._is_column(key):
            key = self.named.get(key.name.lower(), key)
        bound = self._bind(key, self._row)
        column = ProgramColumn(next(self.builder.names), bound.scalar, bound.type or Type.INT)
        self.keys.append((bound.scalar, column))

    def _is_column(self, node: ColumnReference) -> bool:
        return any(column.name.lower() == node.name.lower() for column in self.source.columns)

    def _finishing(self, node: Scalar) -> TypedScalar | None:
        """A part of HAVING, QUALIFY or ORDER BY, where the names of the select list may be used too.

        Within the expression that has a name, the name means a column.
        """
        if isinstance(node, ColumnReference) and node.table is None and node.name.lower() in self.named:
            name = node.name.lower()
            named = self.named[name]
            if named != node and name not in self.opened:
                self.opened.add(name)
                try:
                    return self._bind(named, self._leaf)
                finally:
                    self.opened.discard(name)
        return self._leaf(node)

    def _leaf(self, node: Scalar) -> TypedScalar | None:
        """A part of the select list: of keys and aggregates where the query groups, of rows where it does not."""
        match node:
            case Window():
                return self._window(node)
            case Aggregate():
                return self._aggregate(node)
            case ScalarSubquery():
                return self._subquery(node)
        if not self.groups:
            return find_column(node, self.source) if isinstance(node, ColumnReference) else None
        if isinstance(node, ColumnReference | Call | Case) and self._is_of_rows(node):
            bound = self._bind(node, self._row)
            for scalar, column in self.keys:
                if scalar == bound.scalar:
                    return _column_of(column.name, bound)
        if isinstance(node, ColumnReference):
            what = f"{node.name} is neither grouped by nor inside an aggregate"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix="group by it too, or aggregate it")
        return None

    def _is_of_rows(self, scalar: Scalar) -> bool:
        return all(
            not isinstance(part, Aggregate | Window | ScalarSubquery)
            and (not isinstance(part, ColumnReference) or self._is_column(part))
            for part in walk(scalar)
        )

    def _aggregate(self, node: Aggregate) -> TypedScalar:
        condition = expand_condition(node)
        if condition is not None:
            return self._bind(condition, self._finishing)
        found = self.aggregates.get(node)
        if found is None:
            bound, value = self._measure(node, self._row)
            found = self.aggregates[node] = self._add_column(bound, value)
        return self.computed[found.name]

    def _add_column(self, scalar: Scalar, value: TypedScalar) -> ProgramColumn:
        """A column of the program that computes a scalar, and holds such a value."""
        column = ProgramColumn(next(self.builder.names), scalar, value.type or Type.INT)
        self.computed[column.name] = _column_of(column.name, replace(value, type=column.type))
        return column

    def _measure(self, node: Aggregate, leaf: Callable[[Scalar], TypedScalar | None]) -> tuple[Aggregate, TypedScalar]:
        """An aggregate of released values, bound, and what is known of its value."""
        if node.function not in OUTER_AGGREGATES or function_of(node).gives_list:
            what = f"{quote_aggregate(node)} over released values is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="use count, sum, avg, min, max or quantile")
        argument = None if node.argument is None else self._bind(node.argument, leaf)
        others = tuple(self._bind(other, leaf).scalar for other in node.others)
        bound = replace(node, argument=None if argument is None else argument.scalar, others=others)
        if node.function == "count" or argument is None:
            return bound, TypedScalar(bound, Type.INT, postgres_type=PostgresType.BIGINT)
        of_postgres = type_of_aggregate(node.function, argument.postgres_type)
        if node.function in {"min", "max", "mode", "arg_max", "arg_min"}:
            return bound, TypedScalar(bound, argument.type, texts=argument.texts, postgres_type=of_postgres)
        if argument.type not in NUMERIC_TYPES | {None}:
            what = f"{quote_aggregate(node)} takes numbers"
            raise Refused(ErrorCode.TYPE, what, at=node.at, fix="use count, min or max")
        whole = node.function == "sum" and argument.type is Type.INT
        return bound, TypedScalar(bound, Type.INT if whole else Type.FLOAT, postgres_type=of_postgres)

    def _window(self, node: Window) -> TypedScalar:
        found = self.windows.get(node)
        if found is None:
            partition = tuple(self._bind(each, self._inside_window).scalar for each in node.partition)
            order = tuple(replace(i, scalar=self._bind(i.scalar, self._inside_window).scalar) for i in node.order)
            arguments = [self._bind(each, self._inside_window) for each in node.arguments]
            check_window(node, arguments)
            measured = None
            if node.aggregate is not None:
                measured, value = self._measure(node.aggregate, self._inside_window)
            else:
                value = _window_value(node, arguments)
            scalars = tuple(argument.scalar for argument in arguments)
            bound = replace(node, arguments=scalars, aggregate=measured, partition=partition, order=order)
            found = self.windows[node] = self._add_column(bound, value)
        return self.computed[found.name]

    def _inside_window(self, node: Scalar) -> TypedScalar | None:
        if isinstance(node, Window):
            what, fix = "a window function inside another is not answered", "compute the inner one in a subquery"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        if not self.groups and isinstance(node, ColumnReference) and self._is_column(node):
            return self._leaf(node)
        return self._finishing(node)

    def _subquery(self, node: ScalarSubquery) -> TypedScalar:
        """The value of a subquery that has one row and one column."""
        found = self.subqueries.get(node)
        if found is None:
            found = self.builder.single(node)
            self.subqueries[node] = found
        return found.columns[0].read()

    def _with_subqueries(self, node: Node) -> Node:
        """The rows with the values of the subqueries that were met since this was done last."""
        for table in self.subqueries.values():
            node = Combine(node, table.node, (), "left")
        self.subqueries = {}
        return node


def _column_of(name: str, value: TypedScalar) -> TypedScalar:
    """A column that holds a value."""
    return TypedScalar(ColumnReference(name), value.type, texts=value.texts, postgres_type=value.postgres_type)


def _fixed_column(condition: Scalar) -> str | None:
    """The column of which a condition leaves one value at most: c = 1, c, or NOT c."""
    match condition:
        case Call(Function.EQUAL, (ColumnReference(name), Literal()) | (Literal(), ColumnReference(name))):
            return name
        case ColumnReference(name) | Call(Function.NOT, (ColumnReference(name),)):
            return name
    return None


def _window_value(node: Window, arguments: list[TypedScalar]) -> TypedScalar:
    """What is known of the value of a window function that is no aggregate."""
    of_postgres = type_of_window(node.function, (each.postgres_type for each in arguments[::2]))  # a value, a default
    texts = max((argument.texts for argument in arguments), default=1)
    return TypedScalar(node, _window_type(node, arguments), texts=texts, postgres_type=of_postgres)


def _window_type(node: Window, arguments: list[TypedScalar]) -> Type:
    if node.function in _WHOLE:
        return Type.INT
    if node.function in _SHARES:
        return Type.FLOAT
    if len(arguments) == 3 and arguments[2].type not in {arguments[0].type, None}:
        if {arguments[0].type, arguments[2].type} <= NUMERIC_TYPES:
            return Type.FLOAT
        what = f"{node.function.upper()} takes a default of the same type"
        raise Refused(ErrorCode.TYPE, what, at=node.at, fix="leave the default out")
    return arguments[0].type or Type.INT
