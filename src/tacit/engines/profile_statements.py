"""The profile of contributions by one SQL statement: the same for every engine that runs SQL.

Rows are added up for each unit and group, a window gives each unit its norm, and what the units of a norm add to a
group comes back: a row for each group and place of a norm that occur. Where the L2 norm is looked at too, a second
window adds up the squares of the shares of the L1 norm, and there is a row for each pair of places.

**Theorem.** No statement raises because of what rows hold. Proof. Where an argument with its weight and factor is below
2^53 in size and a unit has fewer than 2^31 rows, an entry is below 2^84, times 2^20 below 2^104, and the sum over all
rows there can be below 2^115; every engine's widest integers hold 2^126. The divisor is at least 1. A share of the L1
norm is at most 2^20, so the squares of a unit are below 2^42 for up to 2^20 entries, and their root is at most 2^21.
The norm is divided by 2^40 before it is multiplied by the root, so that quotients fit 64 bits, which is all that some
engines give them.
"""

from __future__ import annotations

import numpy as np

from tacit.engines.dialect import DUCKDB, Dialect
from tacit.engines.listed_groups import Group, match_groups
from tacit.engines.run_statements import StatementRunner, to_exact_integer
from tacit.engines.sql_statements import TableExpressions, write_rows
from tacit.privacy.contribution_profile import BITS, OCTAVES, ContributionProfile, find_class, list_clips
from tacit.query.clipped_aggregation import ClippedAggregation, WeightedVector
from tacit.query.conditions import conjunction, conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    Literal,
    Projection,
    RelationalNode,
    Scalar,
)
from tacit.query.types import Type


def run_profile(
    node: ClippedAggregation, sources: TableExpressions, dialect: Dialect, run: StatementRunner
) -> ContributionProfile:
    """How many units there are of each norm, and what those of a norm add."""
    clips, limits = list_clips(node.largest), list_limits(node)
    units = np.zeros((OCTAVES, node.ratios), dtype=np.int64)
    norms = (1, 2) if node.ratios > 1 else (1,)
    sums: dict[int, dict[int, tuple[list[int], list[int]]]] = {norm: {} for norm in norms}
    width, columns = len(node.groups), 1 + len(norms)
    for row in run(write_profile(node, sources, dialect)) if list_groups(node) else ():
        *places, group, here = map(to_exact_integer, row[: columns + 1])
        numbers = [to_exact_integer(number) for number in row[columns + 1 :]]
        units[find_octave(limits, places[0]), find_class(places[0], places[-1], node.ratios)] += here
        for norm, at in zip(norms, places, strict=True):
            whole, scaled = sums[norm].setdefault(min(at, len(clips)), ([0] * node.size, [0] * node.size))
            for vector in range(len(node.vectors)):
                whole[vector * width + group] += numbers[columns * vector]
                scaled[vector * width + group] += numbers[columns * vector + norm]
    return ContributionProfile(tuple(clips), node.size, units, sums)


def write_profile(node: ClippedAggregation, sources: TableExpressions, dialect: Dialect = DUCKDB) -> str:
    """A row for each place of a norm among `list_limits` and each group that has units of such a norm.

    The place, or those of both norms, the number of the group, how many of the units have no group of a lower number,
    and for each vector the sum of the entries and that of the scaled ones, by each norm. So each unit is counted in one
    row.
    """
    measures = list_measures(node)
    derive, wide = dialect.derived.format, dialect.widest
    entries = [f"entry{i}" for i in range(len(node.vectors))]
    rows = derive(write_rows(_list_rows(node), sources, dialect))
    counted = [f"CAST({_write_measure(m, node, dialect)} AS {wide}) AS measure{i}" for i, m in enumerate(measures)]
    held = f"SELECT {', '.join(['unit', 'place_of_group', *counted])} FROM {rows} GROUP BY 1, 2"
    combined = [
        f"{_write_entry(vector, measures, wide)} AS {name}" for vector, name in zip(node.vectors, entries, strict=True)
    ]
    vectors = f"SELECT {', '.join(['unit', 'place_of_group', *combined])} FROM {derive(held)}"
    size = " + ".join(f"ABS({name})" for name in entries)
    owner = ["unit"] if node.ratios > 1 else []
    measured = (
        f"SELECT {', '.join([*owner, 'place_of_group', *entries])}, SUM({size}) OVER (PARTITION BY unit) AS norm, "
        f"MIN(place_of_group) OVER (PARTITION BY unit) AS least_place FROM {derive(vectors)}"
    )
    norms = {"place": ("scaled", "norm")}
    if node.ratios > 1:
        norms["second_place"] = ("shortened", "second_norm")
        measured = _write_second_norm(measured, entries, dialect)
    places = [f"{_write_place(list_limits(node), norm)} AS {name}" for name, (_, norm) in norms.items()]
    scaled = [
        f"{_write_scaled(name, norm, dialect)} AS {part}{i}"
        for i, name in enumerate(entries)
        for part, norm in norms.values()
    ]
    lowest = "CASE WHEN place_of_group = least_place THEN 1 ELSE 0 END AS is_counted"
    placed = (
        f"SELECT {', '.join([*places, 'place_of_group', lowest, *entries, *scaled])} FROM {derive(measured)}"
        " WHERE norm > 0"
    )
    parts = ("entry", *(part for part, _ in norms.values()))
    sums = [f"SUM({part}{i})" for i in range(len(entries)) for part in parts]
    grouped = ", ".join(str(number + 1) for number in range(len(norms) + 1))
    return (
        f"SELECT {', '.join([*norms, 'place_of_group', 'SUM(is_counted)', *sums])} FROM {derive(placed)} "
        f"GROUP BY {grouped}"
    )


def _write_second_norm(measured: str, entries: list[str], dialect: Dialect) -> str:
    """The rows of the units with an integer that is no less than the L2 norm (`privacy/contribution_profile.py`)."""
    derive, wide, divide = dialect.derived.format, dialect.widest, dialect.wide_quotient.format
    real = dialect.types[Type.FLOAT]
    up = [divide(f"(ABS({name}) * {2**BITS} + norm - 1)", "GREATEST(norm, 1)") for name in entries]
    squares = " + ".join(f"CAST({each} AS BIGINT) * CAST({each} AS BIGINT)" for each in up)
    kept = ", ".join(["place_of_group", *entries, "norm", "least_place"])
    rooted = (
        f"SELECT {kept}, CAST(CEIL(SQRT(CAST(SUM({squares}) OVER (PARTITION BY unit) AS {real}))) AS BIGINT) AS root "
        f" FROM {derive(measured)}"
    )
    high = f"CAST({divide('norm', str(2 ** (2 * BITS)))} AS {wide})"
    divided = f"SELECT {kept}, root, {high} AS high FROM {derive(rooted)}"
    low = divide(f"(root * (norm - high * {2 ** (2 * BITS)}) + {2**BITS - 1})", str(2**BITS))
    second = f"CAST(root * high * {2**BITS} + {low} AS {wide})"
    return f"SELECT {kept}, LEAST(norm, {second}) AS second_norm FROM {derive(divided)}"


def list_groups(node: ClippedAggregation) -> list[tuple[int, Group]]:
    """The groups that rows can be in, each with its place: a key with public values has no others."""
    known = [None if key.values is None else frozenset(key.values) for key in node.keys]
    return [
        (place, group)
        for place, group in enumerate(node.groups)
        if all(values is None or value in values for values, value in zip(known, group, strict=True))
    ]


def list_measures(node: ClippedAggregation) -> list[ExactStatistic]:
    """The measures of all vectors, each once."""
    return list(dict.fromkeys(measure for vector in node.vectors for _, measure in vector.terms))


def list_limits(node: ClippedAggregation) -> list[int]:
    """The clips, and those that go on to the last octave: the place of a norm among these says both of it."""
    return list_clips(max(node.largest, 2 ** (OCTAVES - 1)))


def find_octave(limits: list[int], place: int) -> int:
    """The octave of the norms of a place: no power of two lies between two limits."""
    return min((limits[place] - 1).bit_length(), OCTAVES - 1) if place < len(limits) else OCTAVES - 1


def _arguments(node: ClippedAggregation) -> list[Scalar]:
    return list(dict.fromkeys(measure.argument for measure in list_measures(node) if measure.argument is not None))


def _list_rows(node: ClippedAggregation) -> RelationalNode:
    """The rows that are in a listed group: the unit, the arguments and the place of the group."""
    columns: list[tuple[str, Scalar]] = [("unit", ColumnReference(node.unit))]
    columns += [(f"argument{i}", argument) for i, argument in enumerate(_arguments(node))]
    columns += [(f"key{i}", key.scalar) for i, key in enumerate(node.keys)]
    if not node.keys:
        columns.append(("place_of_group", Literal(0)))
    is_owned = Call(Function.NOT, (Call(Function.IS_NULL, (ColumnReference(node.unit),)),))
    rows = Projection(node.source, tuple(columns), conjunction([*conjuncts(node.where), is_owned]))
    return _match_groups(rows, list_groups(node)) if node.keys else rows


def _match_groups(rows: RelationalNode, groups: list[tuple[int, Group]]) -> RelationalNode:
    """The rows with the place of their group."""
    keys = [ColumnReference(f"key{i}") for i in range(len(groups[0][1]) if groups else 0)]
    places = [place for place, _ in groups]
    listed, on = match_groups(keys, [group for _, group in groups], ("place_of_group", Type.INT, places))
    return EquiJoin(rows, listed, on)


def _write_measure(measure: ExactStatistic, node: ClippedAggregation, dialect: Dialect) -> str:
    """A measure of the rows of one unit in one group, of which there is one at least."""
    argument = "*" if measure.argument is None else f"argument{_arguments(node).index(measure.argument)}"
    match measure.function:
        case "units":
            return "1" if measure.argument is None else f"CASE WHEN COUNT({argument}) > 0 THEN 1 ELSE 0 END"
        case "count":
            return f"COUNT({argument})"
        case "sum":
            return f"COALESCE({dialect.total.format(argument)}, 0)"
    raise AssertionError(f"no vector has {measure!r}")


def _write_entry(vector: WeightedVector, measures: list[ExactStatistic], wide: str) -> str:
    terms = [f"({vector.weight * factor}) * measure{measures.index(measure)}" for factor, measure in vector.terms]
    return f"CAST({' + '.join(terms) or '0'} AS {wide})"


def _write_scaled(entry: str, norm: str, dialect: Dialect) -> str:
    """The entry of a vector of norm one in steps of 2^-BITS, rounded toward zero."""
    size = dialect.wide_quotient.format(f"(ABS({entry}) * {2**BITS})", f"GREATEST({norm}, 1)")
    return f"CAST(CASE WHEN {entry} < 0 THEN - {size} ELSE {size} END AS {dialect.widest})"


def _write_place(limits: list[int], norm: str) -> str:
    """How many of the limits the norm is above, by halving."""

    def choose(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        return f"CASE WHEN {norm} <= {limits[middle]} THEN {choose(first, middle)} ELSE {choose(middle + 1, last)} END"

    return choose(0, len(limits))
