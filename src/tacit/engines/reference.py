"""The naive engine: plain Python over lists of rows, one definition at a time. The oracle of the tests."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np

from tacit.engines.base import GroupedMeasures, MeasureValue
from tacit.engines.evaluate import Row, evaluate
from tacit.engines.limit_joins import limit_clipped_joins, limit_joins
from tacit.engines.reference_windows import add_windows
from tacit.privacy.contribution_profile import BITS, OCTAVES, ContributionProfile, find_class, list_clips
from tacit.privacy.key_weights import weigh_key
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import (
    Aggregation,
    Constants,
    EquiJoin,
    ExactStatistic,
    Literal,
    LiteralValue,
    PerUnitAggregation,
    Projection,
    RelationalNode,
    RowUnion,
    Scan,
    UnitWindow,
    column_names,
)
from tacit.query.types import Key

Group = tuple[Key | None, ...]
RowsByTable = Mapping[str, Sequence[Row]]


class ReferenceEngine:
    """An engine over rows in memory, given as {table: [{column: value}]}."""

    def __init__(self, tables: RowsByTable) -> None:
        self._tables = tables

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure."""
        aggregation = limit_joins(aggregation)
        rows = [row for row in evaluate_rows(aggregation.source, self._tables) if _is_selected(row, aggregation)]
        if aggregation.unit is not None:
            rows = _bound_contributions(rows, aggregation, aggregation.unit)
        groups = _group_rows(rows, lambda row: _group(row, aggregation))
        if not aggregation.keys:
            groups.setdefault((), [])  # without keys there is one group, even of no rows
        measures, unit = aggregation.measures, aggregation.unit
        if any(measure.function == "weight" for measure in measures):
            return _weigh_groups(groups, unit)
        return {group: tuple(_cell(m, some, unit) for m in measures) for group, some in groups.items()}

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each norm, and what those of a norm add."""
        clips, ratios = list_clips(aggregation.largest), aggregation.ratios
        limits = list_clips(max(aggregation.largest, 2 ** (OCTAVES - 1)))
        units = np.zeros((OCTAVES, ratios), dtype=np.int64)
        norms = (1, 2) if ratios > 1 else (1,)
        sums: dict[int, dict[int, tuple[list[int], list[int]]]] = {norm: {} for norm in norms}
        for vector in _unit_vectors(limit_clipped_joins(aggregation), self._tables):
            first = sum(map(abs, vector))
            if first == 0:
                continue
            sizes = {1: first, 2: _bound_l2_norm(vector, first)}
            ratio = find_class(bisect_left(limits, first), bisect_left(limits, sizes[2]), ratios)
            units[min((first - 1).bit_length(), OCTAVES - 1), ratio] += 1
            for norm, found in sums.items():
                at = bisect_left(clips, sizes[norm])
                whole, scaled = found.setdefault(at, ([0] * len(vector), [0] * len(vector)))
                for place, entry in enumerate(vector):
                    whole[place] += entry
                    scaled[place] += (1 if entry > 0 else -1) * ((abs(entry) << BITS) // sizes[norm])
        return ContributionProfile(tuple(clips), aggregation.size, units, sums)

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order."""
        names = column_names(rows)
        return [tuple(row[name] for name in names) for row in evaluate_rows(rows, self._tables)[:most]]

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns; NULL is no value."""
        rows = [tuple(row[column] for column in columns) for row in self._tables[table]]
        values = [row for row in rows if None not in row]
        return len(set(values)) == len(values)

    def close(self) -> None:
        """Nothing to let go of."""


def _bound_l2_norm(vector: Sequence[int], first: int) -> int:
    """An integer that is no less than the L2 norm (`privacy/contribution_profile.py`); `first` is the L1 norm."""
    shares = (-(-abs(entry) * (1 << BITS) // first) for entry in vector)
    root = isqrt(sum(share * share for share in shares) - 1) + 1
    return min(first, (root * first + (1 << BITS) - 1) >> BITS)


def evaluate_rows(node: RelationalNode, tables: RowsByTable) -> list[Row]:
    """The rows of a node."""
    match node:
        case Scan(table, columns):
            return [{here: row[column] for column, here in columns} for row in tables[table]]
        case Constants(columns, values):
            names = [name for name, _ in columns]
            return [dict(zip(names, map(_to_value, row), strict=True)) for row in values]
        case Projection(source, columns, where):
            rows = [row for row in evaluate_rows(source, tables) if where is None or evaluate(where, row) is True]
            return [{name: evaluate(scalar, row) for name, scalar in columns} for row in rows]
        case EquiJoin(units=None):
            return _join(node, tables)
        case PerUnitAggregation(source, keys, measures):
            groups = _group_rows(
                evaluate_rows(source, tables), lambda row: tuple(evaluate(key, row) for _, key in keys)
            )
            names = [name for name, _ in keys]
            return [
                dict(zip(names, group, strict=True))
                | {name: _aggregate_per_unit(measure, rows) for name, measure in measures}
                for group, rows in groups.items()
            ]
        case UnitWindow():
            return add_windows(node, evaluate_rows(node.source, tables))
        case RowUnion(parts):
            return [row for part in parts for row in evaluate_rows(part, tables)]
    raise AssertionError(f"no meaning for {node!r}")


def _to_value(constant: LiteralValue) -> Any:
    return evaluate(Literal(constant), {})


def _join(node: EquiJoin, tables: RowsByTable) -> list[Row]:
    """All pairs of rows whose values are there and the same."""
    left, right = evaluate_rows(node.left, tables), evaluate_rows(node.right, tables)
    nothing = dict.fromkeys(column_names(node.right))
    found: list[Row] = []
    for one in left:
        pairs = [{**one, **other} for other in right if _is_match(one, other, node)]
        found += pairs or ([{**one, **nothing}] if node.outer else [])
    return found


def _is_match(one: Row, other: Row, node: EquiJoin) -> bool:
    values = [(evaluate(ours, one), evaluate(theirs, other)) for ours, theirs in node.on]
    return all(ours is not None and ours == theirs for ours, theirs in values)


def _is_selected(row: Row, aggregation: Aggregation) -> bool:
    if aggregation.where is not None and evaluate(aggregation.where, row) is not True:
        return False
    if aggregation.unit is not None and row[aggregation.unit] is None:
        return False
    keys = [(key.values, evaluate(key.scalar, row)) for key in aggregation.keys]
    if aggregation.excluded is not None and tuple(value for _, value in keys) in aggregation.excluded:
        return False
    return all(values is None or value in values for values, value in keys)


def _weigh_groups(groups: dict[Group, list[Row]], unit: str | None) -> GroupedMeasures:
    """The weight of each group: of each unit in it one over the root of the number of groups that it is in."""
    assert unit is not None
    holders = {group: {row[unit] for row in rows} for group, rows in groups.items()}
    held = Counter(holder for some in holders.values() for holder in some)
    return {group: (sum(weigh_key(held[holder]) for holder in some),) for group, some in holders.items()}


def _unit_vectors(node: ClippedAggregation, tables: RowsByTable) -> Iterator[list[int]]:
    """What each unit adds to every vector in every group."""
    limited = Aggregation(node.source, node.where, node.unit, node.keys, ContributionBounds(1, 1), ())
    rows = [row for row in evaluate_rows(limit_joins(limited).source, tables) if _is_selected(row, limited)]
    for own in _group_rows(rows, lambda row: row[node.unit]).values():
        groups = _group_rows(own, lambda row: _group(row, limited))
        yield [
            vector.weight
            * sum(factor * _number(measure, groups.get(group, []), node.unit) for factor, measure in vector.terms)
            for vector in node.vectors
            for group in node.groups
        ]


def _number(measure: ExactStatistic, rows: list[Row], unit: str) -> int:
    if measure.function == "units":  # of one unit's rows
        return int(bool(_non_null_values(measure, rows)))
    cell = _cell(measure, rows, unit)
    assert isinstance(cell, int)
    return cell


def _group(row: Row, aggregation: Aggregation) -> Group:
    return tuple(evaluate(key.scalar, row) for key in aggregation.keys)


def _group_rows(rows: Iterable[Row], group: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    return dict(groups)


def _non_null_values(measure: ExactStatistic, rows: list[Row]) -> list[Any]:
    """The values of a measure's argument that are not NULL; without an argument, one for each row."""
    values = [1 if measure.argument is None else evaluate(measure.argument, row) for row in rows]
    return [value for value in values if value is not None]


def _cell(measure: ExactStatistic, rows: list[Row], unit: str | None) -> MeasureValue:
    match measure.function:
        case "count":
            return len(_non_null_values(measure, rows))
        case "sum":
            return int(sum(_non_null_values(measure, rows)))
        case "distinct":
            return len(set(_non_null_values(measure, rows)))
        case "distinct_sum":
            return int(sum(set(_non_null_values(measure, rows))))
        case "units":
            return len(rows) if unit is None else len({row[unit] for row in rows})
        case "histogram":
            return dict(Counter(_non_null_values(measure, rows)))
    raise AssertionError(f"no meaning for {measure!r}")


def _aggregate_per_unit(measure: ExactStatistic, rows: list[Row]) -> Any:
    """An exact aggregate of a group inside a Fold: NULL where it is of nothing, a sum at most 64 bits wide."""
    values = _non_null_values(measure, rows)
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


def _bound_contributions(rows: list[Row], aggregation: Aggregation, unit: str) -> list[Row]:
    """Of each unit, the first groups by a hash of its own contents, and in each of them rows evenly spaced.

    Where there is a cap on all rows of a unit, rows evenly spaced among all of them come first.
    """
    keep = aggregation.keep
    arguments = list(dict.fromkeys(m.argument for m in aggregation.measures if m.argument is not None))

    def values(row: Row) -> list[tuple[bool, Any]]:
        return _order([evaluate(argument, row) for argument in arguments])

    kept: list[Row] = []
    for owner, own in _group_rows(rows, lambda row: row[unit]).items():
        left = own
        if keep.total is not None:
            ordered = sorted(own, key=lambda row: (_order(_group(row, aggregation)), values(row)))
            left = _pick_evenly_spaced(ordered, keep.total, _hash(aggregation.salt, [owner]))
        groups = _group_rows(left, lambda row: _group(row, aggregation))
        hashes = {group: _hash(aggregation.salt, [owner, *group]) for group in groups}
        for group in sorted(groups, key=lambda group: (hashes[group], _order(group)))[: keep.groups]:
            kept += _pick_evenly_spaced(sorted(groups[group], key=values), keep.rows, hashes[group])
    return kept


def _pick_evenly_spaced(rows: list[Row], most: int, number: int) -> list[Row]:
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
