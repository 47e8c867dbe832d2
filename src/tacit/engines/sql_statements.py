"""Aggregations as SQL.

No operator here depends on the order of rows, is volatile, or raises because of what a row holds. Where a window
numbers rows, those that tie are equal in all that is used of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from tacit.engines.dialect import DUCKDB, Dialect
from tacit.engines.scalars import guard, write_guarded, write_literal, write_quantized
from tacit.privacy.key_weights import WHOLE
from tacit.query.nodes import (
    Aggregation,
    Constants,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    PerUnitAggregation,
    Projection,
    Quantize,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    UnitWindow,
    WindowStatistic,
    column_names,
)
from tacit.query.types import Type

TableExpressions = Mapping[str, str]
"""For each table, what stands for it after FROM; its columns have the declared names and types."""

MIN_BIGINT, MAX_BIGINT = -(2**63), 2**63 - 1
_EXACT = 2**53  # whole numbers up to here are doubles
_AGGREGATES = {"count", "sum", "min", "max"}  # of a window's rows, whatever their order
_MANY = 2**31  # rows of a group that a quick sum takes at least


def write_aggregation(
    node: Aggregation, sources: TableExpressions, dialect: Dialect = DUCKDB, *, quick: bool = False
) -> str:
    """A row for each group: its keys, and the measures that are integers.

    Where no measure has an argument, a group's rows of one unit are all alike, so counting them says all about them:
    of n rows min(n, keep.rows) are kept, whichever they are. No row need be chosen then. How many of them a cap on all
    rows of the unit leaves is computed (`_count_rows`).

    With `quick`, sums of floats on a grid of at most 2^22 steps either way are added as doubles, and are NULL where a
    group has too many rows for that, over 2^31: then ask again without. **Such a sum is exact.** Of n rows of at most M
    in size every part of the sum, in whatever order, is a whole number of at most n M <= 2^53 in size, which is a
    double; so no addition rounds.
    """
    return _Writer(sources, dialect, quick and dialect.quick).aggregation(node)


def write_histogram(
    node: Aggregation, measure: ExactStatistic, sources: TableExpressions, dialect: Dialect = DUCKDB
) -> str:
    """A row for each group and value of a measure's argument: the keys, the value, and how many rows have it.

    The rows are those of `write_aggregation`. NULL is among the values, so that every group is seen.
    """
    return _Writer(sources, dialect).histogram(node, measure)


def write_rows(node: RelationalNode, sources: TableExpressions, dialect: Dialect = DUCKDB) -> str:
    """The rows of a node: a SELECT."""
    return _Writer(sources, dialect).rows_of(node)


def write_some_rows(node: RelationalNode, most: int, sources: TableExpressions, dialect: Dialect = DUCKDB) -> str:
    """The same, at most so many of them."""
    return f"SELECT * FROM {dialect.derived.format(write_rows(node, sources, dialect))} LIMIT {most}"


@dataclass(frozen=True)
class _Writer:
    """Writes statements over sources in a dialect."""

    sources: TableExpressions
    dialect: Dialect
    quick: bool = False

    def aggregation(self, node: Aggregation) -> str:
        measures = [measure for measure in node.measures if measure.function != "histogram"]
        keys = _keys(node)
        if node.unit is None:
            results = [*self._scalars(node), *(self._measure(m, "COUNT(*)", self._write_argument) for m in measures)]
            rows = self._taking_part(node)
        elif any(measure.function == "weight" for measure in node.measures):
            results = [*keys, self.dialect.total.format("weight")]
            rows = f" FROM {self._derive(self._weigh_groups(node))}"
        elif all(measure.argument is None for measure in node.measures):
            kept = f"COALESCE({self.dialect.total.format('kept')}, 0)"
            results = [*keys, *("COUNT(*)" if m.function == "units" else kept for m in measures)]
            rows = f" FROM {self._derive(self._chosen_groups(node, self._count_rows(node)))}"
        else:
            results = [*keys, *(self._measure(m, "COUNT(DISTINCT unit)", _column(node)) for m in measures)]
            rows = f" FROM {self._derive(self._chosen_rows(node))}"
        return f"SELECT {', '.join(results) or 'COUNT(*)'}{rows}{_grouping(len(keys))}"

    def histogram(self, node: Aggregation, measure: ExactStatistic) -> str:
        if node.unit is None:
            results, rows = [*self._scalars(node), self._write_argument(measure)], self._taking_part(node)
        else:
            results, rows = [*_keys(node), _column(node)(measure)], f" FROM {self._derive(self._chosen_rows(node))}"
        return f"SELECT {', '.join(results)}, COUNT(*){rows}{_grouping(len(results))}"

    def rows_of(self, node: RelationalNode) -> str:
        match node:
            case Scan(table, columns):
                named = self._select_list((self.dialect.name(column), here) for column, here in columns)
                return f"SELECT {named} FROM {self.sources[table]}"
            case Constants():
                return self._constants(node)
            case Projection(source, columns, where):
                condition = "" if where is None else f" WHERE {self._scalar(where)}"
                results = self._select_list((self._scalar(value), here) for here, value in columns)
                return f"SELECT {results} FROM {self._derive(self.rows_of(source))}{condition}"
            case EquiJoin(left, right, on, outer, units=None):  # others are limited first (`engines/limit_joins.py`)
                # NULL = NULL is not true, so NULL matches nothing.
                condition = " AND ".join(f"{self._scalar(one)} = {self._scalar(other)}" for one, other in on) or "TRUE"
                sides = [f"({self.rows_of(side)})" for side in (left, right)]
                join = "LEFT JOIN" if outer else "JOIN"
                return f"SELECT * FROM {sides[0]} AS left_rows {join} {sides[1]} AS right_rows ON {condition}"
            case PerUnitAggregation(source, keys, measures):
                parts = [(self._scalar(value), here) for here, value in keys]
                parts += [(self._fold_measure(measure), here) for here, measure in measures]
                # Without keys SQL would make a row of no rows.
                grouping = _grouping(len(keys)) or " HAVING COUNT(*) > 0"
                return f"SELECT {self._select_list(parts)} FROM {self._derive(self.rows_of(source))}{grouping}"
            case UnitWindow():
                return self._windows(node)
            case RowUnion(parts):
                return " UNION ALL ".join(f"({self.rows_of(part)})" for part in parts)
        raise AssertionError(f"no SQL for {node!r}")

    def _constants(self, node: Constants) -> str:
        """Rows of constants, each column in its type. Without rows or without columns SQL needs one all the same."""
        name = self.dialect.name
        shown = [f"CAST({name(here)} AS {self.dialect.types[kind]}) AS {name(here)}" for here, kind in node.columns]
        rows = [[write_literal(value, self.dialect) for value in row] for row in node.rows]
        where = "" if rows else " WHERE FALSE"
        rows = [[*row, "0"] for row in rows or [["NULL"] * len(node.columns)]]
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(name(each) for each in (*(here for here, _ in node.columns), "one"))
        return f"SELECT {', '.join(shown) or '1'} FROM (VALUES {values}) AS constants ({names}){where}"

    def _windows(self, node: UnitWindow) -> str:
        """Rows with their windows. NULLs, frames and ties are spelled out, because engines differ in what they assume.

        Sums are made as wide as they come, and then the nearest that 64 bits hold.
        """
        name = self.dialect.name
        made = [f"{self._window(node, each)} AS {name(here)}" for here, each in node.columns]
        rows = f"SELECT *, {', '.join(made)} FROM {self._derive(self.rows_of(node.source))}"
        sums = {here for here, each in node.columns if each.function == "sum"}
        if not sums:
            return rows
        least, most = write_literal(MIN_BIGINT), write_literal(MAX_BIGINT)
        results = []
        for here in column_names(node):
            column = name(here)
            beyond = f"CASE WHEN {column} < {least} THEN {least} WHEN {column} > {most} THEN {most}"
            narrow = f"{beyond} ELSE {self.dialect.narrowed.format(column)} END AS {column}"
            results.append(narrow if here in sums else column)
        return f"SELECT {', '.join(results)} FROM {self._derive(rows)}"

    def _window(self, node: UnitWindow, statistic: WindowStatistic) -> str:
        """One window function over the partition of its row.

        An aggregate to the end of the partition is one from its start in the opposite order: engines add row by row to
        the one, and compute the other anew for each row.
        """
        name, function = self.dialect.name, statistic.function
        is_turned = function in _AGGREGATES and statistic.start is not None and statistic.end is None
        if is_turned:
            statistic = replace(statistic, start=None, end=-(statistic.start or 0))
        argument = "*" if statistic.argument is None else name(statistic.argument)
        number = [] if statistic.number is None else [str(statistic.number)]
        frame = ""
        match function:
            case "row_number" | "rank" | "dense_rank":
                call = f"{function.upper()}()"
            case "ntile":
                call = f"NTILE({number[0]})"
            case "lag" | "lead":
                otherwise = [] if statistic.otherwise is None else [name(statistic.otherwise)]
                call = f"{function.upper()}({', '.join([argument, *number, *otherwise])})"
            case "sum":
                call, frame = self.dialect.total.format(argument), _frame(statistic)
            case _:
                call, frame = f"{function.upper()}({', '.join([argument, *number])})", _frame(statistic)
        order = list(node.order) if (statistic.start, statistic.end) != (None, None) or not frame else []
        if statistic.breaks_ties:
            order = list(node.order)
            known = {*node.partition, *(column for column, _, _ in node.order)}
            order += [(column, False, False) for column in column_names(node.source) if column not in known]
            order = order or [(node.partition[0], False, False)]  # Spark wants one
        items = [
            f"{name(column)} {'DESC' if descending != is_turned else 'ASC'} "
            f"NULLS {'FIRST' if nulls_first != is_turned else 'LAST'}"
            for column, descending, nulls_first in order
        ]
        over = f"PARTITION BY {', '.join(map(name, node.partition))}"
        over += f" ORDER BY {', '.join(items)}" if items else ""
        window = f"{call} OVER ({over}{frame})"
        whole = function in {"row_number", "rank", "dense_rank", "ntile", "count"}
        return f"CAST({window} AS {self.dialect.types[Type.INT]})" if whole else window

    def _taking_part(self, node: Aggregation) -> str:
        """FROM and WHERE: the rows before any are chosen."""
        conditions = [self._is_public(key) for key in node.keys if key.values is not None]
        if node.where is not None:
            conditions.append(f"({self._scalar(node.where)})")
        if node.unit is not None:
            conditions.append(f"{self.dialect.name(node.unit)} IS NOT NULL")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f" FROM {self._derive(self.rows_of(node.source))}{where}"

    def _is_public(self, key: GroupKey) -> str:
        values = ", ".join(write_literal(value, self.dialect) for value in key.values or ())
        return f"({self._scalar(key.scalar)} IN ({values}))" if values else "FALSE"

    def _count_rows(self, node: Aggregation) -> str:
        """A row for each unit and group: the keys, the unit, and how many rows are kept.

        With a cap T on all rows of a unit, these are as many as `_limit_rows` keeps. Of the unit's n rows the group's
        are those after number b up to number e, in the order of the keys. With t = min(n, T), one of them is kept
        wherever p t + h passes a multiple of n: floor((e t + h)/n) - floor((b t + h)/n) of them.
        """
        assert node.unit is not None
        most, total = node.keep.rows, node.keep.total
        columns = [*zip(self._scalars(node), _keys(node), strict=True), (self.dialect.name(node.unit), "unit")]
        if total is None:
            columns.append((f"LEAST(COUNT(*), {most})", "kept"))
            return f"SELECT {self._select_list(columns)}{self._taking_part(node)}{_grouping(len(columns) - 1)}"
        columns.append(("COUNT(*)", "held"))
        rows = f"SELECT {self._select_list(columns)}{self._taking_part(node)}{_grouping(len(columns) - 1)}"
        whole = self.dialect.types[Type.INT]
        order = f" ORDER BY {self._order(_keys(node))}" if node.keys else ""
        upto = f"PARTITION BY unit{order} ROWS UNBOUNDED PRECEDING"
        sums = ", ".join(
            f"CAST(SUM(held) OVER ({over}) AS {whole}) AS {here}"
            for over, here in ((upto, "upto"), ("PARTITION BY unit", "size"))
        )
        placed = f"SELECT *, {sums} FROM {self._derive(rows)}"
        turned = f"SELECT *, LEAST(size, {total}) AS step, {self._hash([], node)} % size AS turn"
        passed = [self.dialect.quotient.format(f"({end} * step + turn)", "size") for end in ("upto", "(upto - held)")]
        kept = [*((key, key) for key in _keys(node)), ("unit", "unit")]
        kept.append((f"LEAST({passed[0]} - {passed[1]}, {most})", "kept"))
        counted = f"SELECT {self._select_list(kept)} FROM {self._derive(f'{turned} FROM {self._derive(placed)}')}"
        return f"SELECT * FROM {self._derive(counted)} WHERE kept > 0"

    def _limit_rows(self, node: Aggregation, total: int, rows: str) -> str:
        """Of each unit, at most T = `total` rows, whatever their groups.

        The rows of a unit are put in the order of their keys and arguments and numbered from 1 to n. Of n > T rows,
        number p is kept where (p T + h) mod n < T, with h a hash of the unit: T rows, evenly spaced.

        **Theorem.** What is kept of a unit is a function of the unit's own rows, of the question and of its salt, up to
        rows that are equal in all that is used. At most T rows are kept, and fairly: over h, each row has the
        probability min(1, T/n). Proof: as in `_chosen_rows`, with the whole unit in the place of a group.
        """
        order = self._order([*_keys(node), *(f"a{i}" for i in range(len(_arguments(node))))])
        placed = (
            f"SELECT *, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY {order}) AS place_of_row, "
            f"COUNT(*) OVER (PARTITION BY unit) AS size_of_unit FROM {self._derive(rows)}"
        )
        turn = f"{self._hash([], node)} % size_of_unit"
        kept = f"(place_of_row * LEAST(size_of_unit, {total}) + {turn}) % size_of_unit < {total}"
        return f"SELECT * FROM {self._derive(placed)} WHERE {kept}"

    def _chosen_rows(self, node: Aggregation) -> str:
        """Of each unit, at most k = `keep.groups` groups and r = `keep.rows` rows in each, of `keep.total` in all.

        Where there is a cap on all rows of a unit, they are cut to it first, whatever their groups (`_limit_rows`). A
        group's rows of one unit are put in the order of their arguments and numbered from 1 to n. Of n > r rows,
        number p is kept where (p r + h) mod n < r, with h a hash of the unit and the keys: r rows, evenly spaced.

        **Theorem.** What is kept of a unit is a function of the unit's own rows, of the question and of its salt, up
        to rows that are equal in all that is used. So adding or removing a unit changes what is kept of no other. At
        most k groups and r rows in each are kept, and the choice is fair: over h, each row has the probability
        min(1, r/n).
        Proof. Groups are ranked by a hash of the unit and the keys, then by the keys: a total order. Rows whose places
        could be swapped tie in all arguments, so they are equal in all that is used, and nothing else is looked at.
        From p to p + 1 the sum p r + h passes a multiple of n just where the new remainder is below r, and from p = 0
        to n it passes r of them. For a given p, just r of the n remainders of h keep it.
        """
        assert node.unit is not None
        keys, arguments, most = _keys(node), _arguments(node), node.keep.rows
        columns = [*zip(self._scalars(node), keys, strict=True), (self.dialect.name(node.unit), "unit")]
        columns += [(self._scalar(argument), f"a{i}") for i, argument in enumerate(arguments)]
        rows = f"SELECT {self._select_list(columns)}{self._taking_part(node)}"
        if node.keep.total is not None:
            rows = self._limit_rows(node, node.keep.total, rows)
        groups = self._chosen_groups(node, rows)
        if node.keep.total is not None and most >= node.keep.total:  # so a group has no more
            return groups
        partition = f"PARTITION BY {', '.join(['unit', *keys])}"
        order = f"ORDER BY {self._order(f'a{i}' for i in range(len(arguments)))}"
        placed = (
            f"SELECT *, ROW_NUMBER() OVER ({partition} {order}) AS place, COUNT(*) OVER ({partition}) AS size "
            f"FROM {self._derive(groups)}"
        )
        # LEAST keeps the product small where r is large; all of n <= r rows are kept, because the remainder is below n.
        kept = f"(place * LEAST(size, {most}) + {self._hash(keys, node)} % size) % size < {most}"
        return f"SELECT * FROM {self._derive(placed)} WHERE {kept}"

    def _chosen_groups(self, node: Aggregation, rows: str) -> str:
        """Of each unit, the rows in at most `keep.groups` groups: all where there are no more groups than that.

        Of so many rows in all there are as many groups at most.
        """
        known = [key.values for key in node.keys if key.values is not None]
        if len(known) == len(node.keys) and prod(map(len, known)) <= node.keep.groups:
            return rows
        if node.keep.total is not None and node.keep.total <= node.keep.groups:
            return rows
        order = self._order([self._hash(_keys(node), node), *_keys(node)])
        rank = f"DENSE_RANK() OVER (PARTITION BY unit ORDER BY {order})"
        if self.dialect.qualify:
            return f"SELECT * FROM {self._derive(rows)} QUALIFY {rank} <= {node.keep.groups}"
        ranked = f"SELECT *, {rank} AS place_of_group FROM {self._derive(rows)}"
        return f"SELECT * FROM {self._derive(ranked)} WHERE place_of_group <= {node.keep.groups}"

    def _weigh_groups(self, node: Aggregation) -> str:
        """The kept groups of each unit, with their weight: w = floor(2^20 / sqrt(n)) for n of them.

        **Theorem.** w is exact, and n w^2 <= 2^40 whatever doubles are. Proof. Doubles give 2^20 / sqrt(n) to within a
        relative 2^-51. Where n is a power of four the root is exact. Otherwise it is no integer, and none is within a
        relative 2^-42 of it: for an integer k, n k^2 differs from 2^40 by one at least. So the floor is that of the
        number itself. An engine whose root is too high by one step would be found out by the product, which is exact.
        """
        assert len(node.measures) == 1
        whole, double = self.dialect.types[Type.INT], self.dialect.types[Type.FLOAT]
        groups = self._chosen_groups(node, self._count_rows(node))
        held = f"SELECT *, COUNT(*) OVER (PARTITION BY unit) AS held FROM {self._derive(groups)}"
        root = f"CAST(FLOOR({WHOLE} / SQRT(CAST(held AS {double}))) AS {whole})"
        near = f"SELECT *, {root} AS near FROM {self._derive(held)}"
        weight = f"CASE WHEN near * near * held > {WHOLE**2} THEN near - 1 ELSE near END"
        columns = ", ".join([*_keys(node), f"{weight} AS weight"])
        return f"SELECT {columns} FROM {self._derive(near)}"

    def _hash(self, keys: list[str], node: Aggregation) -> str:
        """63 bits of the salt, the unit and keys. A 128-bit number is slow to divide."""
        kind = self.dialect.types[Type.TEXT]
        values = [f"COALESCE(CAST({value} AS {kind}), '-')" for value in ["unit", *keys]]
        return self.dialect.hashed.format(" || chr(31) || ".join([self.dialect.text(node.salt), *values]))

    def _measure(self, measure: ExactStatistic, units: str, argument: Callable[[ExactStatistic], str]) -> str:
        match measure.function:
            case "units":
                return units
            case "count" if measure.argument is None:
                return "COUNT(*)"
            case "count":
                return f"COUNT({argument(measure)})"
            case "sum":
                if argument == self._write_argument and (most := self._quickly(measure)):
                    total = f"CAST(COALESCE(SUM({argument(measure)}), 0) AS HUGEINT)"
                    return f"CASE WHEN COUNT(*) <= {most} THEN {total} END"
                return f"COALESCE({self.dialect.total.format(argument(measure))}, 0)"
            case "distinct":
                return f"COUNT(DISTINCT {argument(measure)})"
            case "distinct_sum":
                total = self.dialect.total.format(argument(measure)).replace("SUM(", "SUM(DISTINCT ", 1)
                return f"COALESCE({total}, 0)"
        raise AssertionError(f"no SQL for {measure!r}")

    def _quickly(self, measure: ExactStatistic) -> int | None:
        """The most rows of which doubles add a measure's argument exactly; None where these are few, or none asked."""
        if not self.quick or not isinstance(measure.argument, Quantize):
            return None
        most = _EXACT // max(abs(measure.argument.lower), abs(measure.argument.upper), 1)
        return most if most >= _MANY else None

    def _fold_measure(self, measure: ExactStatistic) -> str:
        """A measure inside a Fold, NULL where SQL says so; a sum beyond 64 bits is the nearest that fits."""
        argument = "*" if measure.argument is None else self._scalar(measure.argument)
        match measure.function:
            case "count" | "min" | "max":
                return f"{measure.function.upper()}({argument})"
            case "distinct":
                return f"COUNT(DISTINCT {argument})"
            case "sum":
                total, least, most = (
                    self.dialect.total.format(argument),
                    write_literal(MIN_BIGINT),
                    write_literal(MAX_BIGINT),
                )
                beyond = f"WHEN {total} < {least} THEN {least} WHEN {total} > {most} THEN {most}"
                return f"CASE {beyond} ELSE {self.dialect.narrowed.format(total)} END"
        raise AssertionError(f"no SQL for {measure!r} inside a subquery")

    def _write_argument(self, measure: ExactStatistic) -> str:
        """The argument of a measure over the source. What is added quickly is counted as it is added."""
        assert measure.argument is not None
        if self._quickly(measure) and measure.function in {"count", "sum"}:
            assert isinstance(measure.argument, Quantize)
            return guard(write_quantized(measure.argument, self.dialect), measure.argument, self.dialect)
        return self._scalar(measure.argument)

    def _scalar(self, node: Scalar) -> str:
        return write_guarded(node, self.dialect)

    def _scalars(self, node: Aggregation) -> list[str]:
        return [self._scalar(key.scalar) for key in node.keys]

    def _derive(self, query: str) -> str:
        return self.dialect.derived.format(query)

    def _order(self, values: Iterable[str]) -> str:
        return ", ".join(self.dialect.order.format(value) for value in values)

    def _select_list(self, columns: Iterable[tuple[str, str]]) -> str:
        """A select list. A SELECT needs one column at least."""
        return ", ".join(f"{value} AS {self.dialect.name(here)}" for value, here in columns) or "1"


def _keys(node: Aggregation) -> list[str]:
    return [f"k{i}" for i in range(len(node.keys))]


def _arguments(node: Aggregation) -> list[Scalar]:
    """All that is used of a row besides its unit and its keys."""
    return list(dict.fromkeys(m.argument for m in node.measures if m.argument is not None))


def _column(node: Aggregation) -> Callable[[ExactStatistic], str]:
    """The argument of a measure over the rows that are chosen."""
    arguments = _arguments(node)

    def column(measure: ExactStatistic) -> str:
        assert measure.argument is not None
        return f"a{arguments.index(measure.argument)}"

    return column


def _frame(statistic: WindowStatistic) -> str:
    """The frame of a window function, with both of its ends."""
    ends = [_frame_end(statistic.start, "PRECEDING"), _frame_end(statistic.end, "FOLLOWING")]
    kind = "RANGE" if statistic.peers else "ROWS"
    return f" {kind} BETWEEN {ends[0]} AND {ends[1]}"


def _frame_end(rows: int | None, unbounded: str) -> str:
    if rows is None:
        return f"UNBOUNDED {unbounded}"
    if rows == 0:
        return "CURRENT ROW"
    return f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"


def _grouping(keys: int) -> str:
    """GROUP BY the first columns."""
    return f" GROUP BY {', '.join(str(i + 1) for i in range(keys))}" if keys else ""
