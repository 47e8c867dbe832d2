"""How far one unit moves what is measured, against what the plan charges for.

Two neighboring databases go through the real policy, plan and engine, without noise. Between them, for every part of
every question: a vector moves by at most its sensitivity in L1, and by shift * sqrt(coordinates) in L2; the rank errors
of a quantile by at most its sensitivity, the counts of a mode by at most the rows that are kept, and each in no more
groups than are paid for; the number of units that hold a private key by at most one. A failure here is a breach of
privacy. Databases are generated to be as awkward as rows can be. Known worst cases reach the sensitivity exactly, so
these tests would notice one that is too small by one.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL, some
from tests.support.engines import lent_engines
from tests.support.policies import caps

from tacit.aggregates.base import QuantileMeasurement
from tacit.aggregates.registry import read_question as parse
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.quantile import Quantile
from tacit.plan.bind_question import plan_for
from tacit.plan.contribution import contribution_to_account, l0_sensitivity, vector_l2_sensitivity
from tacit.plan.noise import Part, Pick
from tacit.plan.plan import Plan
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query.timestamps import HOUR, LAST, to_datetime, to_microseconds

pytestmark = pytest.mark.slow

NAN, INF = math.nan, math.inf
DATABASES, MATCHED_DATABASES, IN_DUCKDB = (150, 40, 15) if FULL else (1, 1, 1)  # for each source and relation
ASKED = 4 if FULL else 2  # of each of them
FIRST = datetime.date(2025, 1, 28)
DELTA = Fraction(1, 10**6)
MOMENT = to_microseconds(datetime.datetime(2025, 1, 30, 23, 30))

Row = dict[str, Any]
Database = dict[str, list[Row]]

# What visits, things and lines have in common.
COLUMNS: dict[str, dict[str, Any]] = {
    "g": {"type": "text", "values": ["A", "B", "C", "D"]},
    "h": {"type": "text", "values": ["A", "B"], "other": "rest"},
    "n": {"type": "int", "lower": 0, "upper": 3},
    "t": {"type": "text"},
    "x": {"type": "int", "lower": -3, "upper": 10},
    "y": {"type": "float", "lower": -4, "upper": 1, "step": 0.5},
    "z": {"type": "int", "lower": 2, "upper": 6, "nullable": False},
    "w": {"type": "bool"},
    "d": {"type": "date", "lower": "2025-01-28", "upper": "2025-02-06"},
    "s": {"type": "timestamp", "lower": "2025-01-30 22:30", "upper": "2025-02-01 03:15:00.5", "zone": "Europe/Zurich"},
    "ward": {"type": "text"},
}
WARDS = [
    {"ward": ward, "beds": beds, "side": side} for ward, beds, side in zip("ABZ", (3, 99, None), "NSN", strict=True)
]
TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}
TYPES |= {"timestamp": pa.timestamp("us")}


@lru_cache
def policy_of(neighbors: str, groups: int, rows: int, total: int | None = None) -> Policy:
    """The tables with caps."""
    return tables_with(neighbors, caps(groups, rows, total))


def tables_with(neighbors: str, bounds: dict[str, Any]) -> Policy:
    """Tables of each kind: units by a column, through another table, and rows that are units; a public table."""
    who = {"unit": "who", "people": "persons", **bounds}
    return load(
        {
            "privacy": {
                "epsilon": 1000,
                "neighbors": neighbors,
                "delta": float(1000 * DELTA),
                "delta_per_question": float(DELTA),
            },
            "tables": {
                "visits": {**who, "columns": {"who": {"type": "int", "lower": 0, "upper": 3}, **COLUMNS}},
                "notes": {**who, "columns": {"m": {"type": "int", "lower": 0, "upper": 5}, "k": COLUMNS["g"]}},
                "orders": {**who, "columns": {"o": {"type": "int", "lower": 0, "upper": 9}}},
                "lines": {"unit": {"through": "order_id", "to": "orders.id"}, **bounds, "columns": COLUMNS},
                "things": {"unit": "row", "columns": COLUMNS},
                "wards": {
                    "public": True,
                    "columns": {
                        "ward": {"type": "text", "unique": True},
                        "beds": {"type": "int", "lower": 0, "upper": 20},
                        "side": {"type": "text", "values": ["N", "S"]},
                    },
                },
            },
            "analysts": {"ada": {"epsilon": 1000}},
        }
    )


# Sources: FROM, and the columns that a question may name.
ALL = ["g", "h", "n", "t", "x", "y", "z", "w", "d"]
SOURCES: dict[str, tuple[str, list[str]]] = {
    "rows": ("things", ALL),
    "units": ("visits", [*ALL, "who"]),
    "through": ("lines", ALL),
    "rows with public": ("things JOIN wards USING (ward)", [*ALL, "beds", "side"]),
    "rows maybe with public": ("things LEFT JOIN wards ON things.ward = wards.ward", [*ALL, "beds", "side"]),
    "units with public": ("visits JOIN wards USING (ward)", [*ALL, "who", "beds", "side"]),
    "public with units": ("wards JOIN visits ON wards.ward = visits.ward", [*ALL, "who", "beds", "side"]),
    "through with public": ("lines LEFT JOIN wards USING (ward)", [*ALL, "beds", "side"]),
    "units with units": ("visits JOIN notes USING (who)", [*ALL, "who", "m", "k"]),
    "units maybe with units": ("visits AS a LEFT JOIN notes AS b ON a.who = b.who AND a.g = b.k", [*ALL, "m", "k"]),
    "units maybe with units never NULL": (
        "notes AS b LEFT JOIN visits AS a ON a.who = b.who AND a.g = b.k",
        [*ALL, "m", "k"],
    ),
    "units with themselves": ("visits JOIN (SELECT who, n AS m FROM visits WHERE w) AS b USING (who)", [*ALL, "m"]),
    "one row of a unit": (
        "(SELECT who, MAX(x) AS x, AVG(y) AS y, MIN(d) AS d, LEAST(COUNT(*), 3) AS n, "
        "GREATEST(-3, LEAST(SUM(x), 10)) AS z FROM visits WHERE g <> 'D' OR w GROUP BY who HAVING COUNT(*) <> 2)",
        ["x", "y", "d", "n", "z", "who"],
    ),
    "rows of a unit by more": (
        "(SELECT who, g, t, MIN(x) AS x, AVG(y) AS y, LEAST(COUNT(DISTINCT n), 3) AS n, MAX(z) AS z "
        "FROM visits GROUP BY who, g, t)",
        ["g", "t", "x", "y", "n", "z", "who"],
    ),
    "one row of a unit with units": (
        "visits JOIN (SELECT who, LEAST(COUNT(*), 5) AS m FROM notes GROUP BY who) AS b USING (who)",
        [*ALL, "who", "m"],
    ),
    "one row of a unit with one": (
        "(SELECT who, MAX(x) AS x, MIN(y) AS y FROM visits GROUP BY who) AS a "
        "JOIN (SELECT who, LEAST(SUM(m), 3) AS n FROM notes GROUP BY who) AS b USING (who)",
        ["x", "y", "n", "who"],
    ),
    "rows twice": (
        "(SELECT g, n, t, x, y, w, d FROM things UNION ALL SELECT g, n, t, -x, y, w, d FROM things WHERE w)",
        ["g", "n", "x", "y", "w", "d"],
    ),
    "units twice": (
        "(SELECT who, g, n, t, x, y, w, d FROM visits UNION ALL SELECT who, g, 3 - n, h, x + 1, y, NOT w, d "
        "FROM visits WHERE x > 0)",
        ["g", "n", "t", "x", "y", "w", "d", "who"],
    ),
    "rows of a unit in order": (
        "(SELECT who, g, t, y, LAG(x) OVER (PARTITION BY who ORDER BY n, g) AS x, ROW_NUMBER() OVER (PARTITION BY who "
        "ORDER BY x DESC) AS n, SUM(z) OVER (PARTITION BY who, g ORDER BY x) AS z, d FROM visits)",
        ["g", "t", "x", "y", "d", "who"],
    ),
    "the first rows of a unit": (
        "(SELECT who, g, t, x, y, FIRST_VALUE(n) OVER (PARTITION BY who ORDER BY x) AS n, z, w, d FROM visits "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY x DESC, g) <= 2)",
        ["g", "t", "x", "y", "n", "z", "w", "d", "who"],
    ),
    "the first row of a unit": (
        "(SELECT who, g, t, x, y, n, z, d, COUNT(*) OVER (PARTITION BY who) AS size FROM visits "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) = 1)",
        ["g", "t", "x", "y", "n", "z", "d", "who"],
    ),
    "rows of a unit, capped": (
        "(SELECT who, g, t, COUNT(*) AS size, 1 * SUM(x) AS x, AVG(y) AS y, 1 * COUNT(DISTINCT n) AS n "
        "FROM visits GROUP BY who, g, t)",
        ["g", "t", "x", "y", "who"],
    ),
    "through and units": (
        "(SELECT g, n, t, x, y, d FROM visits UNION ALL SELECT g, n, t, x, y, d FROM lines)",
        ["g", "n", "t", "x", "y", "d"],
    ),
}
# Joins along a foreign key, and rows that look for others. They are asked about less often.
MATCHED: dict[str, tuple[str, list[str]]] = {
    "parents with children": ("orders JOIN lines ON orders.id = lines.order_id", [*ALL, "who"]),
    "parents maybe with children": (
        "orders LEFT JOIN lines ON lines.order_id = orders.id AND lines.w AND orders.o > 2",
        ALL,
    ),
    "groups of children": (
        "(SELECT order_id, MAX(x) AS x, MIN(y) AS y, LEAST(COUNT(*), 3) AS n FROM lines GROUP BY order_id)",
        ["x", "y", "n"],
    ),
    "units that find others": (
        "(SELECT * FROM visits AS v WHERE EXISTS (SELECT 1 FROM notes AS b WHERE b.who = v.who AND b.k = v.g) "
        "OR ward NOT IN (SELECT ward FROM wards WHERE beds > 3))",
        [*ALL, "who"],
    ),
    "children by commas": (
        "(SELECT lines.* FROM wards, lines, orders WHERE wards.ward = lines.ward AND orders.id = lines.order_id)",
        ALL,
    ),
    "units and all of the others": (
        "visits AS a FULL JOIN notes AS b ON a.who = b.who AND a.g = b.k",
        [*ALL, "m", "k"],
    ),
    "units with values of others": (
        "(SELECT who, g, h, t, w, d, "
        "1 * (SELECT COUNT(*) FROM notes AS b WHERE b.who = v.who AND b.k = v.g AND v.w) AS x, "
        "(SELECT MAX(m) FROM notes AS b WHERE b.who = v.who) AS y, z FROM visits AS v "
        "WHERE n <> (SELECT AVG(beds) FROM wards) OR n IS NULL)",
        ["g", "h", "t", "w", "d", "x", "y", "z", "who"],
    ),
    "units maybe with some of the others": (
        "visits AS a LEFT JOIN notes AS b ON a.who = b.who AND a.n < b.m AND b.k <> 'A' AND a.w",
        [*ALL, "m", "k"],
    ),
    "units that find none of the others": ("visits AS v ANTI JOIN notes AS b ON b.who = v.who AND b.k = v.g", ALL),
    "units once": (
        "(SELECT who, g, t, x, w FROM visits UNION SELECT who, k, k, m, m > 1 FROM notes)",
        ["g", "t", "x", "w", "who"],
    ),
    "units without others": (
        "(SELECT who, g, t, x, d FROM visits EXCEPT SELECT who, g, t, x, d FROM lines JOIN orders "
        "ON orders.id = lines.order_id)",
        ["g", "t", "x", "d", "who"],
    ),
    "children with values of parents": (
        "(SELECT l.g, l.t, l.x, (SELECT o FROM orders AS o WHERE o.id = l.order_id) AS n, "
        "(SELECT SUM(k.z) FROM lines AS k WHERE k.order_id = l.order_id) AS z FROM lines AS l)",
        ["g", "t", "x", "n", "z"],
    ),
}
SOURCES |= MATCHED
# Where most of what is asked is about timestamps: few other columns may be named.
TIMED = {
    "rows at times": ("things", ["g", "s"]),
    "units at times": ("visits", ["g", "s", "who"]),
    "through at times": ("lines", ["g", "s"]),
    "units at times with public": ("visits JOIN wards USING (ward)", ["s", "side"]),
    "units at times with units": ("visits AS v JOIN notes AS b ON b.who = v.who AND b.k = v.g", ["s", "m"]),
    "units at times twice": ("(SELECT who, s, g FROM visits UNION ALL SELECT who, s, g FROM visits)", ["g", "s"]),
}
# Aggregates, and the columns they need.
AGGREGATES: list[tuple[str, str]] = [
    ("COUNT(*)", ""),
    ("COUNT(x)", "x"),
    ("COUNT(DISTINCT x)", "x"),
    ("COUNT(DISTINCT t)", "t"),
    ("COUNT(DISTINCT y)", "y"),
    ("COUNT(DISTINCT who)", "who"),
    ("SUM(x)", "x"),
    ("SUM(y)", "y"),
    ("SUM(m)", "m"),
    ("SUM(beds - 5)", "beds"),
    ("SUM(-z)", "z"),
    ("AVG(x)", "x"),
    ("AVG(y)", "y"),
    ("AVG(z)", "z"),
    ("AVG(x * y)", "x y"),
    ("VAR_SAMP(x)", "x"),
    ("STDDEV(z)", "z"),
    ("VAR_POP(y)", "y"),
    ("STDDEV_POP(COALESCE(x, 7))", "x"),
    ("MIN(x)", "x"),
    ("MAX(y)", "y"),
    ("MIN(d)", "d"),
    ("MEDIAN(d)", "d"),
    ("MEDIAN(s)", "s"),
    ("MAX(s)", "s"),
    ("SUM(DATE_DIFF('hour', TIMESTAMP '2025-01-30', s))", "s"),
    ("SUM(HOUR(s) - MINUTE(s))", "s"),
    ("MEDIAN(x)", "x"),
    ("QUANTILE_CONT(x, 0.9)", "x"),
    ("MEDIAN(y)", "y"),
    ("MODE(g)", "g"),
    ("MODE(k)", "k"),
    ("TOP_K(g, 3)", "g"),
    ("TOP_K(k, 2)", "k"),
    ("TOP_K(g, 2) FILTER (WHERE w)", "g w"),
    ("SUM(CASE WHEN y < 0 THEN x ELSE NULL END)", "x y"),
    ("SUM(x) FILTER (WHERE w)", "x w"),
    ("SUM(x / (y + 5))", "x y"),
    ("AVG(FLOOR(y))", "y"),
    ("SUM(SQRT(x) + LEAST(LENGTH(t), 2))", "x t"),
    ("SUM(GREATEST(0, LEAST(y, 0.25)))", "y"),
    ("COUNT(beds)", "beds"),
    ("SUM(DISTINCT x)", "x"),
    ("SUM(DISTINCT y)", "y"),
    ("AVG(DISTINCT x)", "x"),
    ("AVG(DISTINCT z)", "z"),
    ("VAR_POP(DISTINCT x)", "x"),
    ("STDDEV(DISTINCT y)", "y"),
    ("REGR_SLOPE(x, y)", "x y"),
    ("REGR_R2(x, y)", "x y"),
    ("REGR_COUNT(x, z), REGR_AVGX(x, z), REGR_SYY(x, z)", "x z"),
    ("SKEWNESS(x)", "x"),
    ("KURTOSIS(y)", "y"),
    ("KURTOSIS_POP(z)", "z"),
    ("APPROX_QUANTILES(x, 3)", "x"),
    ("QUANTILE_CONT(d, [0.9, 0.5])", "d"),
    ("COUNT_IF(w)", "w"),
    ("AVG_IF(x, w)", "x w"),
    ("MODE(x)", "x"),
    ("TOP_K(w, 2)", "w"),
]
# Keys: none, declared, with one for the others, ranges, computed, private, and mixed.
KEYS: list[tuple[str, str]] = [
    ("", ""),
    ("g", "g"),
    ("h", "h"),
    ("n", "n"),
    ("g, w", "g w"),
    ("MONTH(d)", "d"),
    ("DATE_TRUNC('month', d)", "d"),
    ("CAST(s AS DATE)", "s"),
    ("DATE_TRUNC('hour', s)", "s"),
    ("DATE_TRUNC('month', s), w", "s w"),
    ("s", "s"),
    ("CASE WHEN x > 3 THEN 1 ELSE 0 END", "x"),
    ("FLOOR(x / 5)", "x"),
    ("side", "side"),
    ("t", "t"),
    ("g, t", "g t"),
    ("LOWER(t)", "t"),
]
WHERE: list[tuple[str, str]] = [
    ("", ""),
    ("", ""),
    ("x <> 5", "x"),
    ("w", "w"),
    ("x >= 2 OR y IS NULL", "x y"),
    ("s > '2025-01-31'", "s"),
]


def asked(source: str, aggregates: list[str], keys: str, where: str) -> str:
    """The text of a question."""
    text = f"SELECT {', '.join(aggregates)} FROM {(SOURCES | TIMED)[source][0]}"
    return text + (f" WHERE {where}" if where else "") + (f" GROUP BY {keys}" if keys else "")


def those(pairs: list[tuple[str, str]], source: str) -> list[str]:
    """The aggregates, keys or conditions whose columns a source has."""
    return [text for text, needed in pairs if set(needed.split()) <= set((SOURCES | TIMED)[source][1])]


@lru_cache(maxsize=4096)
def planned(text: str, neighbors: str, *caps: int) -> Plan:
    return plan_for(parse(text), policy_of(neighbors, *caps), 1)


def as_stored(kind: pa.DataType, value: Any) -> Any:
    """A timestamp, which is an integer in rows, as a date and a time."""
    return to_datetime(value) if kind == TYPES["timestamp"] and value is not None else value


def arrow(policy: Policy, database: Database) -> dict[str, pa.Table]:
    """The same rows as tables that DuckDB reads."""
    hidden = {"visits": (), "notes": ("who",), "orders": ("who", "id"), "lines": ("order_id",)}
    frames = {}
    for table in policy.tables:
        kinds = {c.name: TYPES[c.type] for c in table.columns} | dict.fromkeys(hidden.get(table.name, ()), pa.int64())
        columns = {
            name: pa.array([as_stored(kind, row[name]) for row in database[table.name]], kind)
            for name, kind in kinds.items()
        }
        frames[table.name] = pa.table(columns)
    return frames


# What may move, and by how much.


def numbers(plan: Plan, part: Part, cells: tuple[Any, ...] | None) -> int:
    """The exact integer of a vector in a group."""
    if cells is None:
        return 0
    return sum(factor * cells[plan.exact.measures.index(measure)] for factor, measure in part.need.terms)


def histogram(plan: Plan, part: Pick, cells: tuple[Any, ...] | None) -> dict[Any, int]:
    """How many rows of a group have each value, days as numbers."""
    if cells is None:
        return {}
    cell = cells[plan.exact.measures.index(part.need.measure)]
    return {v.toordinal() if isinstance(v, datetime.date) else v: count for v, count in cell.items()}


def points_of(chooser: Quantile, *histograms: dict[int, int]) -> list[int]:
    """A point of every stretch of the grid in which all points have the same rows below and above."""
    ends = {chooser.lower, chooser.upper}
    near = {value + step for rows in histograms for value in rows for step in (-1, 0, 1)}
    return sorted(ends | {point for point in near if chooser.lower <= point <= chooser.upper})


def rank_errors(chooser: Quantile, rows: dict[int, int], points: list[int]) -> list[int]:
    """b times the rows by which each of these points misses its rank, as the definition says it."""
    a, b, n = chooser.share.numerator, chooser.share.denominator, sum(rows.values())
    found = []
    for point in points:
        below = sum(count for value, count in rows.items() if value < point)
        above = sum(count for value, count in rows.items() if value > point)
        if b > 1:
            found.append(max(0, b * below - a * n, b * above - (b - a) * n))
            continue
        k = min(chooser.target or 1, -(-n // 2))
        few, many = (below, above) if a == 0 else (above, below)
        found.append(max(0, few - max(k - 1, 0), many - (n - k)))
    return found


def loss(plan: Plan, one: dict, other: dict, neighbors: Neighbors) -> Fraction:
    """How much of the price a move uses up, Gaussian noise left out; every claim of the plan is checked on the way.

    A choice in a group uses up as much of its price as the rows that move there are of those it is made for.
    """
    keep, groups = plan.exact.keep, plan.recipe.groups
    priced = contribution_to_account(keep, plan.exact.unit is not None)
    felt = l0_sensitivity(keep, neighbors, groups)
    if groups is None:
        every = list({*one, *other})
    else:
        every = list(product(*(key.values or () for key in plan.exact.keys)))
        assert {*one, *other} <= set(every)
    total = Fraction(0)
    for part in plan.parts:
        if isinstance(part, Part):
            moves = [numbers(plan, part, one.get(g)) - numbers(plan, part, other.get(g)) for g in every]
            assert sum(map(abs, moves)) <= part.sensitivity, part.need.name
            shift, coordinates = vector_l2_sensitivity(part.need, priced, neighbors, groups)
            assert sum(move**2 for move in moves) <= shift**2 * coordinates, part.need.name
            assert sum(move != 0 for move in moves) <= felt
            if isinstance(part.mechanism, Laplace):
                total += sum(map(abs, moves)) / part.mechanism.scale
            continue
        pairs = [(histogram(plan, part, one.get(g)), histogram(plan, part, other.get(g))) for g in every]
        changed = [(before, after) for before, after in pairs if before != after]
        assert len(changed) <= felt, part.need.name
        for before, after in changed:
            steps = [after.get(value, 0) - before.get(value, 0) for value in {*before, *after}]
            rows = max(sum(step for step in steps if step > 0), -sum(step for step in steps if step < 0))
            assert rows <= keep.rows
            if isinstance(part.need, QuantileMeasurement):
                assert isinstance(part.mechanism, Quantile)
                points = points_of(part.mechanism, before, after)
                errors = [rank_errors(part.mechanism, rows, points) for rows in (before, after)]
                most = part.mechanism.sensitivity * Fraction(rows, keep.rows)
                assert max(abs(a - b) for a, b in zip(*errors, strict=True)) <= most, part.need.name
            else:
                assert neighbors is Neighbors.REPLACE or min(steps) >= 0 or max(steps) <= 0
            total += part.mechanism.epsilon * Fraction(rows, keep.rows)
    if plan.shown is not None:
        total += shown(plan, one, other, every, felt)
    assert total <= 1
    return total


def counted(plan: Plan, row: tuple) -> int:
    """What the selection of keys looks at in a group."""
    return plan._selection_counts({(): row})[()]


def shown(plan: Plan, one: dict, other: dict, every: list, felt: int) -> Fraction:
    """What the selection of private keys uses up, of epsilon."""
    assert plan.shown is not None
    keep = plan.exact.keep
    counts = [[0 if g not in found else counted(plan, found[g]) for g in every] for found in (one, other)]
    for found, against in ((one, other), (other, one)):
        # Keys that only one of the two has, and the rows in them, are all of one unit.
        alone = [g for g in found if g not in against]
        assert len(alone) <= keep.groups
        assert all(counted(plan, found[g]) <= keep.rows for g in alone)
    if not isinstance(plan.shown.mechanism, PartitionSelection):
        return Fraction(0)  # the count is a part, and has its price already
    moves = [abs(a - b) for a, b in zip(*counts, strict=True)]
    assert max(moves, default=0) <= 1
    assert sum(moves) <= felt <= plan.shown.mechanism.groups
    return sum(moves) * plan.shown.mechanism.epsilon / plan.shown.mechanism.groups


# Databases. Unit 8 is the one that comes and goes, and 9 takes its place; NULL is nobody.

VALUES: dict[str, list[Any]] = {
    "g": ["A", "A", "B", "C", "D", "Z", "a", "", None],
    "h": ["A", "B", "C", None],
    "n": [0, 1, 2, 3, 7, -1, None],
    "t": ["s", "u", "S", "ß", "", None],
    "x": [-3, 0, 1, 5, 10, -4, 11, 2**62, -(2**63), 2**63 - 1, None],
    "y": [-4.0, 1.0, 0.0, -0.0, 0.25, -0.1, 1e308, -1e308, 5e-324, NAN, INF, -INF, None],
    "z": [2, 3, 6, -(2**63), 2**63 - 1, None],
    "w": [True, True, True, False, None],
    "d": [FIRST, FIRST + datetime.timedelta(9), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "s": [0, LAST, MOMENT, MOMENT + 1, MOMENT + 1_799_999_999, MOMENT + 26 * HOUR, None],
    "ward": ["A", "B", "Z", "Q", None],
}
NOTES: dict[str, list[Any]] = {"m": [0, 1, 5, 99, -7, None], "k": VALUES["g"]}


def row(rng: random.Random, values: dict[str, list[Any]] = VALUES) -> Row:
    return {name: rng.choice(some) for name, some in values.items()}


def unit(rng: random.Random, most: int) -> dict[str, Any]:
    """What one unit has: visits, notes, the lines of two orders, and a thing. Often many rows, often none."""
    return {
        "visits": [row(rng) for _ in range(rng.choice([0, 1, most]))],
        "notes": [row(rng, NOTES) for _ in range(rng.choice([0, 1, 4]))],
        "lines": [(rng.randrange(2), row(rng)) for _ in range(rng.choice([0, 1, most]))],
        "thing": row(rng),
    }


def add(database: Database, who: int | None, first: int, own: dict[str, list]) -> None:
    """Put a unit's rows into the tables, its orders numbered from `first`."""
    database["visits"] += [{"who": who, **row} for row in own["visits"]]
    database["notes"] += [{"who": who, **row} for row in own["notes"]]
    database["orders"] += [{"who": who, "id": first + i, "o": i} for i in (0, 1)]
    database["lines"] += [{"order_id": first + i, **row} for i, row in own["lines"]]
    database["things"].append(own["thing"])


def database_of(others: list[tuple[int | None, dict]], who: int = 0, own: dict | None = None) -> Database:
    found: Database = {name: [] for name in ("visits", "notes", "orders", "lines", "things")}
    found["wards"] = WARDS
    for number, (owner, rows) in enumerate(others):
        add(found, owner, 2 * number, rows)
    if own is not None:
        add(found, who, 1000, own)
    return found


# Groups, rows in each, and maybe rows in all.
CAPS: list[tuple[int, ...]] = [(1, 1), (2, 1), (1, 3), (2, 2), (5, 3), (3, 3, 3), (4, 3, 5), (7, 5, 7)]


@dataclass
class World:
    """A policy with a database that lacks a unit, one that has it, and one with another unit in its place."""

    neighbors: str
    caps: tuple[int, ...]
    without: Any
    old: Any
    new: Any

    def losses(self, text: str) -> list[Fraction]:
        """What the moves to the neighbors use up: adding the one unit and the other; or replacing the one."""
        plan = planned(text, self.neighbors, *self.caps)
        epsilon, delta = plan.epsilon_delta
        assert epsilon <= 1
        assert delta <= DELTA
        relation = Neighbors(self.neighbors)
        if relation is Neighbors.REPLACE:
            return [loss(plan, self.old.run(plan.exact), self.new.run(plan.exact), relation)]
        without = self.without.run(plan.exact)
        return [loss(plan, without, engine.run(plan.exact), relation) for engine in (self.old, self.new)]


def question(rng: random.Random, source: str) -> str:
    """Up to five aggregates of a source, with a key and a condition or without."""
    possible = those(AGGREGATES, source)
    some = rng.sample(possible, min(rng.randint(1, 5), len(possible)))
    return asked(source, some, rng.choice(those(KEYS, source)), rng.choice(those(WHERE, source)))


def referenced(policy: Policy, database: Database) -> Any:
    return ReferenceEngine(database)


def in_duckdb(policy: Policy, database: Database) -> Any:
    return DuckDBEngine(table_schemas(policy), None, arrow(policy, database))


def check(
    neighbors: str, seed: str, sources: list[str], opened: Callable[[Policy, Database], Any] = referenced
) -> None:
    """Questions of a seed, over three databases of that seed: none moves by more than it charges for."""
    rng = random.Random(seed)
    caps = rng.choice(CAPS)
    others = [(rng.choice([0, 1, 2, None]), unit(rng, 4)) for _ in range(rng.randint(0, 3))]
    databases = [
        database_of(others),
        database_of(others, 8, unit(rng, 12)),
        database_of(others, 9, unit(rng, 12)),
    ]
    policy = policy_of(neighbors, *caps)
    engines = [opened(policy, database) for database in databases]
    world = World(neighbors, caps, *engines)
    for source in sources:
        text = question(rng, source)
        print(seed, caps, text)  # shown if it fails
        world.losses(text)
    for engine in engines:
        engine.close()


# By default each source under one of the relations, by turns.
RELATED = [
    (each, source)
    for number, source in enumerate(SOURCES | TIMED)
    for each in some(["add-remove", "replace"], 2, number)
]


@pytest.mark.parametrize(("neighbors", "source"), RELATED)
def test_one_unit_moves_no_more_than_is_charged(neighbors, source):
    # What is planted below is found by one database and one question.
    for number in range(MATCHED_DATABASES if source in MATCHED else DATABASES):
        check(neighbors, f"{source} {number}", [source] * ASKED)


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[[Policy, Database], Any]]:
    """Opens databases in DuckDB."""
    with lent_engines(in_duckdb) as find:
        yield find


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_same_in_duckdb(neighbors, opened):
    # By default one in eight of the sources under each relation.
    for number in range(IN_DUCKDB):
        check(neighbors, f"duckdb {number}", some(SOURCES, 8, 4 * (neighbors == "replace")), opened)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_same_of_timestamps_in_duckdb(neighbors, opened):
    # By default over the same databases as those of the other sources.
    for number in range(IN_DUCKDB):
        check(neighbors, f"times in duckdb {number}" if FULL else f"duckdb {number}", list(TIMED), opened)


@pytest.mark.parametrize(
    "aggregate",
    ["COUNT(*)", "SUM(x)", "AVG(y)", "VAR_POP(x)", "COUNT(DISTINCT who)", "MEDIAN(x)", "MAX(s)"],
)
@pytest.mark.parametrize("keys", ["g", "t", "DATE_TRUNC('hour', s)"])
def test_a_plan_that_keeps_too_much_is_noticed(aggregate, keys):
    # One group more than is charged for, or one row more in each; the number of units has no use for more rows.
    times = (MOMENT + i // 9 * HOUR + i % 9 for i in range(len(MANY)))  # those of a group of nine in an hour of its own
    rows = [{**row, "x": i, "s": time} for i, (row, time) in enumerate(zip(MANY, times, strict=True))]
    world = world_of("add-remove", (2, 3), owning(*rows))
    plan = planned(asked("units", [aggregate], keys, ""), "add-remove", 2, 3)
    wider = [ContributionBounds(3, 3)] if "who" in aggregate else [ContributionBounds(3, 3), ContributionBounds(2, 9)]
    for keep in wider:
        loose = replace(plan.exact, keep=keep)
        with pytest.raises(AssertionError):
            loss(plan, world.without.run(loose), world.old.run(loose), Neighbors.ADD_REMOVE)


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "AVG(y)", "VAR_POP(x)", "MEDIAN(x)", "TOP_K(w, 2)"])
@pytest.mark.parametrize("keys", ["g", "t"])
def test_a_plan_that_keeps_too_much_in_all_is_noticed(aggregate, keys):
    # 4 rows in all, in up to 4 groups: without that cap 16, or one row more than is charged for.
    world = world_of("add-remove", (4, 4, 4), owning(*MANY))
    plan = planned(asked("units", [aggregate], keys, ""), "add-remove", 4, 4, 4)
    for keep in (ContributionBounds(4, 4), ContributionBounds(4, 4, 5)):
        loose = replace(plan.exact, keep=keep)
        with pytest.raises(AssertionError):
            loss(plan, world.without.run(loose), world.old.run(loose), Neighbors.ADD_REMOVE)


def test_every_column_of_a_table_is_in_some_source():
    named = {column for _, columns in (SOURCES | TIMED).values() for column in columns}
    assert COLUMNS.keys() - {"ward"} <= named  # by which rows are joined with the public table
    needed = {column for pairs in (AGGREGATES, KEYS, WHERE) for _, columns in pairs for column in columns.split()}
    assert needed <= named


@pytest.mark.parametrize("source", SOURCES | TIMED)
def test_every_aggregate_and_every_key_has_a_plan(source):
    """Nothing that the tests above pick is refused, so they check what they say they check.

    By default each aggregate is asked of one source or more, with a key or without, and so is each key.
    """
    number = list(SOURCES | TIMED).index(source)
    grouped = next(key for key in ("g", "n", "side", "") if key in {*(SOURCES | TIMED)[source][1], ""})
    for aggregate, keys in some(product(those(AGGREGATES, source), ("", grouped)), 12, 2 * number):
        planned(asked(source, [aggregate], keys, ""), "add-remove", 2, 2)
    for keys in some(those(KEYS, source), 5, number):
        planned(asked(source, ["COUNT(*)"], keys, ""), "replace", 2, 2)


def test_private_keys_of_rows_that_may_stand_twice_are_refused():
    source = "(SELECT t FROM things UNION ALL SELECT t FROM things)"
    with pytest.raises(Refused) as caught:
        planned(f"SELECT COUNT(*) FROM {source} GROUP BY t", "add-remove", 2, 2)
    assert caught.value.code is ErrorCode.PRIVATE_KEY


@pytest.mark.parametrize("argument", ["x / y", "1.0 / x", "LN(x)", "POWER(x, -1)"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VAR_SAMP", "MEDIAN"])
def test_what_has_no_bound_is_refused(aggregate, argument):
    # y and x may be zero, so none of these has a bound.
    with pytest.raises(Refused):
        planned(f"SELECT {aggregate}({argument}) FROM things", "add-remove", 1, 1)


# Worst cases that use up the whole price.
# x lies in [-3, 10]: M = 10, W = 13. y lies in [-4, 1] in steps of 1/2: M = 8, W = 10.

BLANK: Row = dict.fromkeys(COLUMNS)
HIGH = BLANK | {"g": "A", "x": 99, "y": INF, "z": 9, "w": True, "t": "s", "n": 0}
LOW = HIGH | {"x": -99, "y": -INF, "z": 0}
ELSEWHERE = HIGH | {"g": "B", "y": -INF, "t": "u"}
NONE = BLANK | {"g": "A"}


def owning(*visits: Row) -> dict[str, list]:
    """A unit with these visits, the same lines, and the first of them as its thing."""
    return {"visits": list(visits), "notes": [], "lines": [(0, row) for row in visits], "thing": visits[0]}


def world_of(neighbors: str, caps: tuple[int, ...], old: dict, new: dict | None = None) -> World:
    databases = [database_of([]), database_of([], 8, old), database_of([], 9, new or old)]
    return World(neighbors, caps, *map(ReferenceEngine, databases))


@pytest.mark.parametrize(
    ("aggregate", "keys", "row", "share"),
    [
        ("COUNT(*)", "", HIGH, 1),
        ("COUNT(x)", "", HIGH, 1),
        ("COUNT(DISTINCT x)", "", HIGH, 1),
        ("SUM(x)", "", HIGH, 1),  # 10 of 10
        ("SUM(x)", "", LOW, Fraction(3, 10)),
        ("SUM(y)", "", LOW, 1),  # -8 half steps of 8
        ("SUM(y)", "", HIGH, Fraction(1, 4)),  # 2 of 8
        ("AVG(x)", "", HIGH, 1),  # centered 13 of 13, and one row of one
        ("AVG(x)", "", LOW, 1),
        ("AVG(x)", "", NONE, 0),
        ("AVG(z)", "", NONE, 1),  # a missing z is read as 2: centered -4 of 4, and one row of one
        ("VAR_SAMP(x)", "", HIGH, 1),  # 13^2 of 13^2, 13 of 13, and one row of one
        ("MEDIAN(x)", "", HIGH, 1),
        ("MAX(x)", "", HIGH, 1),
        ("MODE(g)", "", HIGH, 1),
        ("TOP_K(g, 2)", "", HIGH, 1),
        ("TOP_K(g, 2) FILTER (WHERE NOT w)", "", HIGH, 0),
        ("COUNT(*), SUM(x)", "g", HIGH, 1),
        ("MEDIAN(x), MODE(h), AVG(y)", "g", LOW | {"h": "A"}, 1),
        ("SUM(DISTINCT x)", "", HIGH, 1),  # 10 of 10
        ("SUM(DISTINCT x)", "", LOW, Fraction(3, 10)),
        ("SUM(DISTINCT y)", "", LOW, 1),  # -8 half steps of 8
        ("AVG(DISTINCT x)", "", LOW, 1),  # centered -13 of 13, and one value of one
        ("AVG(DISTINCT x)", "", NONE, 0),
        ("VAR_POP(DISTINCT x)", "", HIGH, 1),  # 13^2 of 13^2, 13 of 13, and one value of one
        ("VAR_POP(DISTINCT x)", "", LOW, 1),
        ("REGR_R2(x, y)", "", HIGH, 1),
        ("REGR_SLOPE(x, y)", "", LOW, 1),
        ("REGR_SLOPE(x, y)", "", HIGH | {"y": None}, 0),
        ("SKEWNESS(x)", "", LOW, 1),  # -13 of 13, 13^2 of 13^2, -13^3 of 13^3, and one row of one
        ("KURTOSIS(y)", "", HIGH, 1),
        ("KURTOSIS(z)", "", NONE, 1),
        ("APPROX_QUANTILES(x, 2)", "", HIGH, 1),
        ("MODE(x)", "", HIGH, 1),
    ],
)
def test_adding_a_row(aggregate, keys, row, share):
    world = world_of("add-remove", (1, 1), owning(row))
    for source in ("rows", "units", "through"):
        assert world.losses(asked(source, [aggregate], keys, ""))[0] == share


@pytest.mark.parametrize(
    ("aggregate", "keys", "old", "new", "share"),
    [
        ("COUNT(x)", "", HIGH, NONE, 1),
        ("COUNT(*)", "", HIGH, NONE, 0),  # the number of rows is public under replacement
        ("COUNT(DISTINCT x)", "", HIGH, NONE, 1),
        ("SUM(x)", "", HIGH, LOW, 1),  # 13 of 13
        ("SUM(y)", "", HIGH, LOW, 1),  # 10 half steps of 10
        ("AVG(x)", "", HIGH, LOW, Fraction(1, 2)),  # centered 26 of 26, the count does not move
        ("AVG(x)", "", HIGH, NONE, Fraction(3, 4)),  # centered 13 of 26, the count one of one
        ("SUM(DISTINCT x)", "", HIGH, LOW, 1),  # 13 of 13
        ("AVG(DISTINCT x)", "", HIGH, LOW, Fraction(1, 2)),  # as for AVG(x)
        ("AVG(DISTINCT x)", "g", HIGH, ELSEWHERE, 1),
        ("VAR_POP(DISTINCT y)", "g", HIGH, ELSEWHERE, 1),
        ("MODE(x)", "", HIGH, LOW, 1),
        ("COUNT(*)", "g", HIGH, ELSEWHERE, 1),  # one less here, one more there: 2 of 2
        ("SUM(x)", "g", HIGH, ELSEWHERE, 1),  # 20 of 20
        ("AVG(x)", "g", HIGH, ELSEWHERE, 1),
        ("MEDIAN(x)", "g", HIGH, ELSEWHERE, 1),
        ("MODE(w)", "g", HIGH, ELSEWHERE, 1),
        ("TOP_K(w, 2)", "g", HIGH, ELSEWHERE, 1),
    ],
)
def test_replacing_a_row(aggregate, keys, old, new, share):
    world = world_of("replace", (1, 1), owning(old), owning(new))
    for source in ("rows", "units", "through"):
        assert world.losses(asked(source, [aggregate], keys, ""))[0] == share


MANY = [ELSEWHERE | {"g": g, "t": g} for g in "ABCD" for _ in range(9)]


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(y)", "AVG(x)", "VAR_POP(y)", "MEDIAN(x)"])
@pytest.mark.parametrize("keys", ["", "g", "w, g"])
def test_adding_a_unit_with_many_rows_in_many_groups(aggregate, keys):
    # 3 of 9 rows in 2 of 4 groups count: k r M with k = 2 (or 1 without groups) and r = 3, reached exactly.
    world = world_of("add-remove", (2, 3), owning(*MANY))
    for source in ("units", "through"):
        assert world.losses(asked(source, [aggregate], keys, ""))[0] == 1


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)"])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 9])
def test_replacing_a_unit_whose_groups_are_elsewhere(aggregate, groups):
    # With up to 2 groups the two units need not meet: 2 k r M. With 3 of 4 they meet in 2 at least, with 4 in all.
    here, there = "ABCD"[: min(groups, 4)], "DCBA"[: min(groups, 4)]
    shared = set(here) & set(there)
    # Where both are, the rows go from the one extreme to the other; elsewhere the larger one counts.
    old = [HIGH | {"g": g, "y": INF if g in shared else -INF} for g in here for _ in range(4)]
    new = [HIGH | {"g": g, "x": -99 if g in shared else 99, "y": -INF} for g in there for _ in range(4)]
    lost = world_of("replace", (groups, 3), owning(*old), owning(*new)).losses(asked("units", [aggregate], "g", ""))[0]
    if aggregate.startswith("SUM") or groups <= 2:
        assert lost == 1
    else:
        assert 0 <= lost <= 1  # counts of groups that both have do not move


@pytest.mark.parametrize(
    "aggregate", ["COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(y)", "AVG(x)", "VAR_POP(y)", "MEDIAN(x)", "MODE(w)"]
)
@pytest.mark.parametrize("keys", ["", "g", "w, g"])
def test_adding_a_unit_with_more_rows_in_all_than_may_be_counted(aggregate, keys):
    # 6 of 36 rows in 4 groups count: T M. A choice for 3 rows is charged floor(12/4) = 3 times, for three groups of 2,
    # and uses up s/3 for s rows, which is 2 of 3. Without groups 3 rows are all that count.
    world = world_of("add-remove", (4, 3, 6), owning(*MANY))
    share = Fraction(2, 3) if keys and aggregate in {"MEDIAN(x)", "MODE(w)"} else 1
    for source in ("units", "through"):
        assert world.losses(asked(source, [aggregate], keys, ""))[0] == share


def test_adding_a_unit_whose_rows_no_cap_but_the_last_leaves_out():
    # 5 rows in all, and as many as that in one group or in five: 2 of 18 here, 3 there; a choice is one for 5 rows.
    rows = [HIGH | {"g": g, "y": -INF} for g in "AB" for _ in range(9)]
    for aggregate in ("COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)", "MEDIAN(x)", "TOP_K(w, 2)"):
        world = world_of("add-remove", (5, 5, 5), owning(*rows))
        assert world.losses(asked("units", [aggregate], "g", ""))[0] == 1


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)", "MEDIAN(x)"])
def test_replacing_a_unit_with_a_cap_on_all_rows(aggregate):
    # 3 rows in each of two groups, 6 in all, and after it 3 in each of the two others: 2 T M, and choices in all 4.
    old, new = ([ELSEWHERE | {"g": g} for g in groups for _ in range(3)] for groups in ("AB", "CD"))
    world = world_of("replace", (4, 3, 6), owning(*old), owning(*new))
    assert world.losses(asked("units", [aggregate], "g", ""))[0] == 1


def test_replacing_a_unit_that_weighs_both_ways():
    # x in [-3, 10]: M = 10, m = 3. 10 rows in all, 3 in each of 4 groups: 6 weigh 10 and 4 weigh 3, of both units. So
    # 2 (6 * 10 + 4 * 3) = 144, which is (M - m) (6 + 6) + 2 m 10.
    halves = ({"A": 99, "B": 99, "C": -99, "D": -99}, {"A": -99, "B": -99, "C": 99, "D": 99})
    sizes = ({"A": 3, "B": 3, "C": 3, "D": 1}, {"A": 3, "B": 1, "C": 3, "D": 3})
    old, new = (
        [HIGH | {"g": g, "x": x} for g, x in half.items() for _ in range(size[g])]
        for half, size in zip(halves, sizes, strict=True)
    )
    world = world_of("replace", (4, 3, 10), owning(*old), owning(*new))
    assert planned(asked("units", ["SUM(x)"], "g", ""), "replace", 4, 3, 10).parts[0].sensitivity == 144
    assert world.losses(asked("units", ["SUM(x)"], "g", ""))[0] == 1


def test_a_unit_alone_with_its_private_keys():
    # Two keys that nobody else has: both are gone without it, and nothing else moves.
    world = world_of("add-remove", (2, 3), owning(*MANY))
    for aggregate in ("COUNT(*)", "COUNT(DISTINCT who)", "SUM(x)", "MEDIAN(x)"):
        assert world.losses(asked("units", [aggregate], "t", ""))[0] > 0


BOTH = ["COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)", "VAR_POP(x)", "MEDIAN(x)", "MAX(x)", "MODE(w)", "TOP_K(w, 2)"]
STACKS = {
    "twice in one group": "SELECT g, x, y, w FROM things UNION ALL SELECT g, x, y, w FROM things",
    "once in each of two": "SELECT g, x, y, w FROM things UNION ALL SELECT h, x, y, w FROM things",
    "three times in two": "SELECT g, x, y, w FROM things UNION ALL SELECT h, x, y, w FROM things "
    "UNION ALL SELECT g, x, y, w FROM things",
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("aggregate", BOTH)
def test_a_row_that_stands_in_all_parts_of_a_union_counts_as_often_in_all(aggregate, stack):
    # HIGH is in A, and in B by its h; ELSEWHERE the other way round. With t parts a row moves a sum by 10 t, in however
    # many groups: 10 + 10 of 20, or 20 + 10 of 30. A choice is made for t rows and uses up s/t where s of them are, so
    # 1/2 + 1/2 or 2/3 + 1/3 of its price. The whole price is used up, so none of them is charged too much either.
    old, new = HIGH | {"h": "B", "y": -INF}, ELSEWHERE | {"h": "A", "w": False}
    for keys in ("", " GROUP BY g"):
        text = f"SELECT {aggregate} FROM ({STACKS[stack]}){keys}"
        assert world_of("add-remove", (1, 1), owning(old)).losses(text)[0] == 1
    # Replaced by one in the other groups: in the first case nothing of the two meets.
    lost = world_of("replace", (1, 1), owning(old), owning(new)).losses(text)[0]
    assert lost == 1 if stack == "twice in one group" else lost <= 1


def test_the_rows_of_a_union_are_charged_once():
    # Two parts, 1 row of them each: by (2 groups, 2 rows in each) it would be 4.
    for keys in ("", " GROUP BY g"):
        plan = planned(f"SELECT COUNT(*) FROM ({STACKS['once in each of two']}){keys}", "add-remove", 1, 1)
        assert [part.sensitivity for part in plan.parts] == [2]
        assert [part.mechanism.scale for part in plan.parts] == [2]


# Whose row it is does not depend on what is clamped.


def test_a_unit_is_matched_as_it_lies():
    # `who` is declared from 0 to 3. Clamped, 8 and 9 would both be 3: 9's notes would be joined to 8's visits.
    old, other = owning(HIGH), {"visits": [], "notes": [{"m": 5, "k": "A"}], "lines": [], "thing": HIGH}
    database = database_of([(9, other)], 8, old)
    text = "SELECT COUNT(*) FROM visits JOIN notes USING (who)"
    assert ReferenceEngine(database).run(planned(text, "add-remove", 2, 2).exact) == {(): (0,)}
    database = database_of([(9, owning(HIGH))], 8, old)
    for inner in ("visits", "(SELECT who, x FROM visits)"):
        text = f"SELECT COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM {inner} AS v GROUP BY who)"
        assert ReferenceEngine(database).run(planned(text, "add-remove", 2, 2).exact) == {(): (2,)}


def public(**tables: dict[str, Any]) -> Policy:
    people = {"unit": "row", "columns": {"ward": {"type": "int"}, "bed": {"type": "int"}}}
    return load(
        {
            "privacy": {"epsilon": 1},
            "tables": {"people": people} | {n: {"public": True, "columns": c} for n, c in tables.items()},
            "analysts": {"ada": {"epsilon": 1}},
        }
    )


def test_a_unique_column_is_matched_as_it_lies():
    # Clamped, wards 50 and 60 would both be ward 10, and one person would become three rows.
    policy = public(wards={"ward": {"type": "int", "lower": 0, "upper": 10, "unique": True}})
    plan = plan_for(parse("SELECT COUNT(*) FROM people JOIN wards USING (ward)"), policy, 1)
    tables = {"people": [{"ward": 10, "bed": 1}], "wards": [{"ward": ward} for ward in (10, 50, 60, None, None)]}
    assert ReferenceEngine(tables).run(plan.exact) == {(): (1,)}


def test_what_was_unique_is_not_so_after_a_join():
    # Five beds in one ward: the ward stands in five rows of the joined public tables.
    policy = public(
        wards={"ward": {"type": "int", "unique": True}},
        beds={"bed": {"type": "int", "unique": True}, "ward": {"type": "int"}},
    )
    tables = "beds JOIN wards ON beds.ward = wards.ward JOIN people"
    with pytest.raises(Refused):
        plan_for(parse(f"SELECT COUNT(*) FROM {tables} ON people.ward = wards.ward"), policy, 1)
    plan = plan_for(parse(f"SELECT COUNT(*) FROM {tables} ON people.bed = beds.bed"), policy, 1)
    data = {
        "people": [{"ward": 1, "bed": 1}],
        "wards": [{"ward": 1}],
        "beds": [{"bed": b, "ward": 1} for b in range(5)],
    }
    assert ReferenceEngine(data).run(plan.exact) == {(): (1,)}


def test_the_rows_of_a_unit_are_its_own_whatever_others_hold():
    """What is kept of a unit does not change when others come: the vectors of disjoint databases add up."""
    rows = [HIGH | {"x": x, "g": g} for x in range(-3, 9) for g in "AB"]
    alone = [database_of([(who, owning(*rows[who:]))]) for who in (1, 2)]
    together = database_of([(who, owning(*rows[who:])) for who in (1, 2)])
    for source in (
        "units",
        "through",
        "units with themselves",
        "units twice",
        "rows of a unit by more",
        "rows of a unit in order",
    ):
        plan = planned(asked(source, ["SUM(x)", "COUNT(*)"], "g", ""), "add-remove", 1, 3)
        first, second, both = (ReferenceEngine(database).run(plan.exact) for database in (*alone, together))
        for group in both:
            parts = [found.get(group, (0,) * len(plan.exact.measures)) for found in (first, second)]
            assert tuple(map(sum, zip(*parts, strict=True))) == both[group]


def test_the_order_of_rows_does_not_matter():
    # Which rows of a unit count is decided by their contents, never by where they lie.
    rows = [HIGH | {"x": i % 12, "y": i / 7, "g": "AB"[i % 2]} for i in range(50)]
    plan = planned("SELECT SUM(x), SUM(y), COUNT(*), MEDIAN(x) FROM visits GROUP BY g", "add-remove", 2, 3)
    policy = policy_of("add-remove", 2, 3)
    found = []
    for order in (rows, rows[::-1], rows[20:] + rows[:20]):
        database = database_of([], 8, owning(*order))
        found += [ReferenceEngine(database).run(plan.exact)]
        with_duckdb = DuckDBEngine(table_schemas(policy), None, arrow(policy, database))
        found += [with_duckdb.run(plan.exact)]
        with_duckdb.close()
    assert all(dict(one) == dict(found[0]) for one in found)


# Arithmetic in doubles must not open a gap between what is bounded and what is added up.


@pytest.fixture(scope="module")
def one_row_worlds():
    """For each relation a unit with one extreme row, and another with the other extreme, in DuckDB."""
    databases = [database_of([]), database_of([], 8, owning(HIGH)), database_of([], 9, owning(LOW))]
    made = []
    for neighbors in ("add-remove", "replace"):
        policy = policy_of(neighbors, 1, 1)
        made.append(World(neighbors, (1, 1), *(in_duckdb(policy, database) for database in databases)))
    yield made
    for world in made:
        for engine in (world.without, world.old, world.new):
            engine.close()


@pytest.mark.parametrize(
    "argument",
    [
        "105 + 1e-300 / (1e-200 * 1e-200)",  # the divisor underflows to zero, so the quotient is NULL
        "105 + 0.0 / (1e-200 * 1e-200)",
        "105 + COALESCE(y, 1) * 1e-300 / (1e-200 * 1e-200)",
        "105 + 1 / (COALESCE(x, 1) * 0.1 + 0.4 - 0.1)",  # 0.4 - 0.1 - 0.3 is not quite zero in doubles
        "x * 1e150 * 1e40",
    ],
)
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "COUNT", "VAR_SAMP", "MAX"])
def test_rounding_and_underflow_stay_within_the_bounds(one_row_worlds, aggregate, argument):
    text = f"SELECT {aggregate}({argument}) FROM things"
    for world in one_row_worlds:
        try:
            planned(text, world.neighbors, 1, 1)
        except Refused:
            continue  # refusing is one right answer
        world.losses(text)


TOP = 2**61 - 1


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x", TOP),
        ("-x", -TOP),
        ("ABS(x)", TOP),
        ("FLOOR(x)", TOP),
        ("CEIL(x)", TOP),
        ("FLOOR(-x)", -TOP),
        ("x - 1", TOP - 1),
        ("COALESCE(x, 0)", TOP),
    ],
)
def test_wide_integers_are_added_up_exactly(argument, value):
    # The upper bound 2^61 - 1 is no double: whatever goes through doubles becomes 2^61, one more than is charged for.
    # 100 rows do not fit 64 bits.
    column = {"type": "int", "lower": -TOP, "upper": TOP}
    plain = {"privacy": {"epsilon": 1}, "analysts": {"ada": {"epsilon": 1}}}
    policy = load(plain | {"tables": {"t": {"unit": "row", "columns": {"x": column}}}})
    plan = plan_for(parse(f"SELECT SUM({argument}) FROM t"), policy, 1)
    engine = DuckDBEngine(table_schemas(policy), None, {"t": pa.table({"x": [TOP] * 100})})
    assert plan.release(engine.run(plan.exact), Ones()).parts == [[100 * value]]
    assert plan.parts[0].sensitivity >= abs(value)
    engine.close()
