"""Aggregations as SQL.

No operator here depends on the order of rows, is volatile, or raises because of what a row holds. Where a window
numbers rows, those that tie are equal in all that is used of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

from tacit.engines.scalars import literal, name, scalar, text
from tacit.query.nodes import Aggregation, Fold, GroupKey, Match, Measure, Rows, Scalar, Scan, Select, Stack

Sources = Mapping[str, str]
"""For each table, what stands for it after FROM; its columns have the declared names and types."""

LEAST, MOST = -(2**63), 2**63 - 1


def aggregation(node: Aggregation, sources: Sources) -> str:
    """A row for each group: its keys, and the measures that are integers.

    Where no measure has an argument, a group's rows of one unit are all alike, so counting them says all about them:
    of n rows min(n, keep.rows) are kept, whichever they are. No row need be chosen then.
    """
    measures = [measure for measure in node.measures if measure.function != "histogram"]
    keys = _keys(node)
    if node.unit is None:
        results = [*_scalars(node), *(_measure(m, "COUNT(*)", _written) for m in measures)]
        rows = _taking_part(node, sources)
    elif all(measure.argument is None for measure in node.measures):
        results = [*keys, *("COUNT(*)" if m.function == "units" else "COALESCE(SUM(kept), 0)" for m in measures)]
        rows = f" FROM ({_chosen_groups(node, _counted(node, sources))})"
    else:
        results = [*keys, *(_measure(m, "COUNT(DISTINCT unit)", _column(node)) for m in measures)]
        rows = f" FROM ({_chosen_rows(node, sources)})"
    return f"SELECT {', '.join(results) or 'COUNT(*)'}{rows}{_grouping(len(keys))}"


def histogram(node: Aggregation, measure: Measure, sources: Sources) -> str:
    """A row for each group and value of a measure's argument: the keys, the value, and how many rows have it.

    The rows are those of `aggregation`. NULL is among the values, so that every group is seen.
    """
    if node.unit is None:
        results, rows = [*_scalars(node), _written(measure)], _taking_part(node, sources)
    else:
        results, rows = [*_keys(node), _column(node)(measure)], f" FROM ({_chosen_rows(node, sources)})"
    return f"SELECT {', '.join(results)}, COUNT(*){rows}{_grouping(len(results))}"


def rows_of(node: Rows, sources: Sources) -> str:
    """The rows of a node: a SELECT."""
    match node:
        case Scan(table, columns):
            return f"SELECT {_named((name(column), here) for column, here in columns)} FROM {sources[table]}"
        case Select(source, columns, where):
            condition = "" if where is None else f" WHERE {scalar(where)}"
            results = _named((scalar(value), here) for here, value in columns)
            return f"SELECT {results} FROM ({rows_of(source, sources)}){condition}"
        case Match(left, right, on, outer):
            # NULL = NULL is not true, so NULL matches nothing.
            condition = " AND ".join(f"{scalar(one)} = {scalar(other)}" for one, other in on) or "TRUE"
            sides = [f"({rows_of(side, sources)})" for side in (left, right)]
            join = "LEFT JOIN" if outer else "JOIN"
            return f"SELECT * FROM {sides[0]} AS left_rows {join} {sides[1]} AS right_rows ON {condition}"
        case Fold(source, keys, measures):
            parts = [(scalar(value), here) for here, value in keys]
            parts += [(_folded(measure), here) for here, measure in measures]
            # Without keys SQL would make a row of no rows.
            grouping = _grouping(len(keys)) or " HAVING COUNT(*) > 0"
            return f"SELECT {_named(parts)} FROM ({rows_of(source, sources)}){grouping}"
        case Stack(parts):
            return " UNION ALL ".join(f"({rows_of(part, sources)})" for part in parts)
    raise AssertionError(f"no SQL for {node!r}")


def _taking_part(node: Aggregation, sources: Sources) -> str:
    """FROM and WHERE: the rows before any are chosen."""
    conditions = [_is_public(key) for key in node.keys if key.values is not None]
    if node.where is not None:
        conditions.append(f"({scalar(node.where)})")
    if node.unit is not None:
        conditions.append(f"{name(node.unit)} IS NOT NULL")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f" FROM ({rows_of(node.source, sources)}){where}"


def _is_public(key: GroupKey) -> str:
    values = ", ".join(literal(value) for value in key.values or ())
    return f"({scalar(key.scalar)} IN ({values}))" if values else "FALSE"


def _counted(node: Aggregation, sources: Sources) -> str:
    """A row for each unit and group: the keys, the unit, and how many rows are kept."""
    assert node.unit is not None
    columns = [*zip(_scalars(node), _keys(node), strict=True), (name(node.unit), "unit")]
    columns.append((f"LEAST(COUNT(*), {node.keep.rows})", "kept"))
    return f"SELECT {_named(columns)}{_taking_part(node, sources)}{_grouping(len(columns) - 1)}"


def _chosen_rows(node: Aggregation, sources: Sources) -> str:
    """Of each unit, at most k = `keep.groups` groups and r = `keep.rows` rows in each.

    A group's rows of one unit are put in the order of their arguments and numbered from 1 to n. Of n > r rows, number p
    is kept where (p r + h) mod n < r, with h a hash of the unit and the keys: r rows, evenly spaced.

    **Theorem.** What is kept of a unit is a function of the unit's own rows, of the question and of its salt, up to
    rows that are equal in all that is used. So adding or removing a unit changes what is kept of no other. At most k
    groups and r rows in each are kept, and the choice is fair: over h, each row has the probability min(1, r/n).
    Proof. Groups are ranked by a hash of the unit and the keys, then by the keys: a total order. Rows whose places
    could be swapped tie in all arguments, so they are equal in all that is used, and nothing else is looked at. From p
    to p + 1 the sum p r + h passes a multiple of n just where the new remainder is below r, and from p = 0 to n it
    passes r of them. For a given p, just r of the n remainders of h keep it.
    """
    assert node.unit is not None
    keys, arguments, most = _keys(node), _arguments(node), node.keep.rows
    columns = [*zip(_scalars(node), keys, strict=True), (name(node.unit), "unit")]
    columns += [(scalar(argument), f"a{i}") for i, argument in enumerate(arguments)]
    groups = _chosen_groups(node, f"SELECT {_named(columns)}{_taking_part(node, sources)}")
    partition = f"PARTITION BY {', '.join(['unit', *keys])}"
    order = f"ORDER BY {', '.join(f'a{i}' for i in range(len(arguments)))}"
    placed = (
        f"SELECT *, ROW_NUMBER() OVER ({partition} {order}) AS place, COUNT(*) OVER ({partition}) AS size "
        f"FROM ({groups})"
    )
    # LEAST keeps the product small where r is large; all of n <= r rows are kept, because the remainder is below n.
    return f"SELECT * FROM ({placed}) WHERE (place * LEAST(size, {most}) + {_hash(node)} % size) % size < {most}"


def _chosen_groups(node: Aggregation, rows: str) -> str:
    """Of each unit, the rows in at most `keep.groups` groups: all of them where there are no more groups than that."""
    known = [key.values for key in node.keys if key.values is not None]
    if len(known) == len(node.keys) and prod(map(len, known)) <= node.keep.groups:
        return rows
    rank = f"DENSE_RANK() OVER (PARTITION BY unit ORDER BY {', '.join([_hash(node), *_keys(node)])})"
    return f"SELECT * FROM ({rows}) QUALIFY {rank} <= {node.keep.groups}"


def _hash(node: Aggregation) -> str:
    """63 bits of the salt, the unit and the keys. A 128-bit number is slow to divide."""
    values = [f"COALESCE(CAST({value} AS VARCHAR), '-')" for value in ["unit", *_keys(node)]]
    return f"CAST(md5_number({' || chr(31) || '.join([text(node.salt), *values])}) >> 65 AS BIGINT)"


def _measure(measure: Measure, units: str, argument: Callable[[Measure], str]) -> str:
    match measure.function:
        case "units":
            return units
        case "count" if measure.argument is None:
            return "COUNT(*)"
        case "count":
            return f"COUNT({argument(measure)})"
        case "sum":
            return f"COALESCE(SUM({argument(measure)}), 0)"
        case "distinct":
            return f"COUNT(DISTINCT {argument(measure)})"
    raise AssertionError(f"no SQL for {measure!r}")


def _folded(measure: Measure) -> str:
    """A measure inside a Fold, NULL where SQL says so; a sum beyond 64 bits is the nearest integer that has them."""
    argument = "*" if measure.argument is None else scalar(measure.argument)
    match measure.function:
        case "count" | "min" | "max":
            return f"{measure.function.upper()}({argument})"
        case "distinct":
            return f"COUNT(DISTINCT {argument})"
        case "sum":
            total, least, most = f"SUM({argument})", literal(LEAST), literal(MOST)
            beyond = f"WHEN {total} < {least} THEN {least} WHEN {total} > {most} THEN {most}"
            return f"CASE {beyond} ELSE TRY_CAST({total} AS BIGINT) END"
    raise AssertionError(f"no SQL for {measure!r} inside a subquery")


def _keys(node: Aggregation) -> list[str]:
    return [f"k{i}" for i in range(len(node.keys))]


def _scalars(node: Aggregation) -> list[str]:
    return [scalar(key.scalar) for key in node.keys]


def _arguments(node: Aggregation) -> list[Scalar]:
    """All that is used of a row besides its unit and its keys."""
    return list(dict.fromkeys(m.argument for m in node.measures if m.argument is not None))


def _written(measure: Measure) -> str:
    """The argument of a measure over the source."""
    assert measure.argument is not None
    return scalar(measure.argument)


def _column(node: Aggregation) -> Callable[[Measure], str]:
    """The argument of a measure over the rows that are chosen."""
    arguments = _arguments(node)

    def column(measure: Measure) -> str:
        assert measure.argument is not None
        return f"a{arguments.index(measure.argument)}"

    return column


def _named(columns: Iterable[tuple[str, str]]) -> str:
    """A select list. A SELECT needs one column at least."""
    return ", ".join(f"{value} AS {name(here)}" for value, here in columns) or "1"


def _grouping(keys: int) -> str:
    """GROUP BY the first columns."""
    return f" GROUP BY {', '.join(str(i + 1) for i in range(keys))}" if keys else ""
