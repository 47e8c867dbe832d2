"""The naive engine: plain Python over lists of rows, one definition at a time. The oracle of the tests."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tacit.engines.base import Cell, Groups
from tacit.engines.evaluate import Row, evaluate
from tacit.query.nodes import Aggregation, Fold, Match, Measure, Rows, Scan, Select, Stack
from tacit.query.types import Key

Group = tuple[Key | None, ...]
Tables = Mapping[str, Sequence[Row]]


class Reference:
    """An engine over rows in memory, given as {table: [{column: value}]}."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def run(self, aggregation: Aggregation) -> Groups:
        """For each group that has rows, its keys and the cell of each measure."""
        rows = [row for row in rows_of(aggregation.source, self._tables) if _takes_part(row, aggregation)]
        if aggregation.unit is not None:
            rows = _bounded(rows, aggregation, aggregation.unit)
        groups = _grouped(rows, lambda row: _group(row, aggregation))
        if not aggregation.keys:
            groups.setdefault((), [])  # without keys there is one group, even of no rows
        measures, unit = aggregation.measures, aggregation.unit
        return {group: tuple(_cell(m, some, unit) for m in measures) for group, some in groups.items()}

    def is_unique(self, table: str, column: str) -> bool:
        """Whether no two rows have the same value in a column; NULL is no value."""
        values = [row[column] for row in self._tables[table] if row[column] is not None]
        return len(set(values)) == len(values)

    def close(self) -> None:
        """Nothing to let go of."""


def rows_of(node: Rows, tables: Tables) -> list[Row]:
    """The rows of a node."""
    match node:
        case Scan(table, columns):
            return [{here: row[column] for column, here in columns} for row in tables[table]]
        case Select(source, columns, where):
            rows = [row for row in rows_of(source, tables) if where is None or evaluate(where, row) is True]
            return [{name: evaluate(scalar, row) for name, scalar in columns} for row in rows]
        case Match():
            return _matched(node, tables)
        case Fold(source, keys, measures):
            groups = _grouped(rows_of(source, tables), lambda row: tuple(evaluate(key, row) for _, key in keys))
            names = [name for name, _ in keys]
            return [
                dict(zip(names, group, strict=True)) | {name: _folded(measure, rows) for name, measure in measures}
                for group, rows in groups.items()
            ]
        case Stack(parts):
            return [row for part in parts for row in rows_of(part, tables)]
    raise AssertionError(f"no meaning for {node!r}")


def _matched(node: Match, tables: Tables) -> list[Row]:
    """All pairs of rows whose values are there and the same."""
    left, right = rows_of(node.left, tables), rows_of(node.right, tables)
    nothing = dict.fromkeys(columns_of(node.right))
    found: list[Row] = []
    for one in left:
        pairs = [{**one, **other} for other in right if _agree(one, other, node)]
        found += pairs or ([{**one, **nothing}] if node.outer else [])
    return found


def _agree(one: Row, other: Row, node: Match) -> bool:
    values = [(evaluate(ours, one), evaluate(theirs, other)) for ours, theirs in node.on]
    return all(ours is not None and ours == theirs for ours, theirs in values)


def columns_of(node: Rows) -> list[str]:
    """The names of the columns that a node's rows have."""
    match node:
        case Scan(_, columns):
            return [here for _, here in columns]
        case Select(_, columns):
            return [name for name, _ in columns]
        case Match(left, right):
            return columns_of(left) + columns_of(right)
        case Fold(_, keys, measures):
            return [name for name, _ in keys] + [name for name, _ in measures]
        case Stack(parts):
            return columns_of(parts[0])
    raise AssertionError(f"no columns of {node!r}")


def _takes_part(row: Row, aggregation: Aggregation) -> bool:
    if aggregation.where is not None and evaluate(aggregation.where, row) is not True:
        return False
    if aggregation.unit is not None and row[aggregation.unit] is None:
        return False
    keys = [(key.values, evaluate(key.scalar, row)) for key in aggregation.keys]
    return all(values is None or value in values for values, value in keys)


def _group(row: Row, aggregation: Aggregation) -> Group:
    return tuple(evaluate(key.scalar, row) for key in aggregation.keys)


def _grouped(rows: Iterable[Row], group: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    return dict(groups)


def _present(measure: Measure, rows: list[Row]) -> list[Any]:
    """The values of a measure's argument that are not NULL; without an argument, one for each row."""
    values = [1 if measure.argument is None else evaluate(measure.argument, row) for row in rows]
    return [value for value in values if value is not None]


def _cell(measure: Measure, rows: list[Row], unit: str | None) -> Cell:
    match measure.function:
        case "count":
            return len(_present(measure, rows))
        case "sum":
            return int(sum(_present(measure, rows)))
        case "distinct":
            return len(set(_present(measure, rows)))
        case "units":
            return len(rows) if unit is None else len({row[unit] for row in rows})
        case "histogram":
            return dict(Counter(_present(measure, rows)))
    raise AssertionError(f"no meaning for {measure!r}")


def _folded(measure: Measure, rows: list[Row]) -> Any:
    """An exact aggregate of a group inside a Fold: NULL where it is of nothing, a sum at most 64 bits wide."""
    values = _present(measure, rows)
    match measure.function:
        case "count":
            return len(values)
        case "distinct":
            return len(set(values))
        case _ if not values:
            return None
        case "sum":
            return min(max(sum(values), -(2**63)), 2**63 - 1)
        case "min":
            return min(values)
        case "max":
            return max(values)
    raise AssertionError(f"no meaning for {measure!r} inside a subquery")


def _bounded(rows: list[Row], aggregation: Aggregation, unit: str) -> list[Row]:
    """Of each unit, the first groups by a hash of its own contents, and in each of them rows evenly spaced.

    Where there is a cap on all rows of a unit, rows evenly spaced among all of them come first.
    """
    keep = aggregation.keep
    arguments = list(dict.fromkeys(m.argument for m in aggregation.measures if m.argument is not None))

    def values(row: Row) -> list[tuple[bool, Any]]:
        return _order([evaluate(argument, row) for argument in arguments])

    kept: list[Row] = []
    for owner, own in _grouped(rows, lambda row: row[unit]).items():
        left = own
        if keep.total is not None:
            ordered = sorted(own, key=lambda row: (_order(_group(row, aggregation)), values(row)))
            left = _spaced(ordered, keep.total, _hash(aggregation.salt, [owner]))
        groups = _grouped(left, lambda row: _group(row, aggregation))
        hashes = {group: _hash(aggregation.salt, [owner, *group]) for group in groups}
        for group in sorted(groups, key=lambda group: (hashes[group], _order(group)))[: keep.groups]:
            kept += _spaced(sorted(groups[group], key=values), keep.rows, hashes[group])
    return kept


def _spaced(rows: list[Row], most: int, number: int) -> list[Row]:
    """At most so many of the rows, evenly spaced, from a place that the number gives."""
    size = len(rows)
    return [row for place, row in enumerate(rows, 1) if size <= most or (place * most + number) % size < most]


def _order(values: Iterable[Any]) -> list[tuple[bool, Any]]:
    """What sorts rows by their values, NULL last."""
    return [(value is None, value) for value in values]


def _hash(salt: str, values: list[Any]) -> int:
    """63 bits of the salt and the values."""
    shown = ["-" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    digest = hashlib.md5("\x1f".join([salt, *shown]).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest, "little") >> 65
