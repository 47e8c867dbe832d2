"""The profile of contributions: every engine and the reference say the same, and a clip bounds what one unit moves."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.conftest import rarely_on_spark
from tests.engines.test_differential import KEYED, VALUES, Questions
from tests.support.counts import FULL
from tests.support.engines import OneLayout

from tacit.engines import profile_copy, profile_statements, unit_stretches
from tacit.engines.base import TableSchema
from tacit.engines.dialect import DUCKDB
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.layout import CopyLayout
from tacit.engines.limit_joins import limit_clipped_joins
from tacit.engines.profile_units import find_place, find_share
from tacit.engines.readings import use_readings_of_clipped
from tacit.engines.reference import ReferenceEngine
from tacit.privacy.contribution_profile import BITS, OCTAVES, ContributionProfile, list_clips
from tacit.query.clipped_aggregation import ClippedAggregation, WeightedVector
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    Clamp,
    ColumnReference,
    ExactStatistic,
    GroupKey,
    Literal,
    Projection,
    Quantize,
    RelationalNode,
    Scalar,
    Scan,
)
from tacit.query.types import Type

pytestmark = pytest.mark.slow


class ClippedQuestions(Questions):
    """Draws questions in which a clip bounds what a unit adds."""

    def grouped(self, columns: dict[str, str]) -> tuple[tuple[GroupKey, ...], tuple[tuple[Any, ...], ...]]:
        """Keys with public values or without, and groups of which some do not occur."""
        keys, pools = [], []
        for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
            kind = self.rng.choice(KEYED)
            values = self.rng.sample(VALUES[kind], self.rng.randint(1, len(VALUES[kind])))
            keys.append(GroupKey(self.scalar(kind, columns, 1), tuple(values[:4]) if self.rng.random() < 0.4 else None))
            pools.append([*values, *([None] if self.rng.random() < 0.5 else [])])
        groups = list(itertools.product(*pools))
        return tuple(keys), tuple(self.rng.sample(groups, self.rng.randint(1, min(len(groups), 60))))

    def vector(self, columns: dict[str, str]) -> WeightedVector:
        terms, weight, most = [], self.rng.choice([1, 1, 2, 5, 1000]), 0
        for _ in range(self.rng.choice([1, 1, 2])):
            factor = self.rng.choice([1, 1, -1, 3])
            match self.rng.choice(["rows", "count", "sum", "sum", "units"]):
                case "sum":
                    bound = self.rng.choice([1, 9, 2**20, 2**40])
                    clamped = Clamp(self.scalar("int", columns, 1), Fraction(-bound), Fraction(bound), whole=True)
                    terms.append((factor, ExactStatistic("sum", clamped)))
                    most += abs(factor) * bound
                    continue
                case "count":
                    argument = self.scalar(self.rng.choice(list(VALUES)), columns, 1)
                    terms.append((factor, ExactStatistic("count", argument)))
                case "rows":
                    terms.append((factor, ExactStatistic("count", None)))
                case "units":
                    argument = self.scalar(self.rng.choice(KEYED), columns, 1) if self.rng.random() < 0.5 else None
                    terms.append((factor, ExactStatistic("units", argument)))
            most += abs(factor)
        return WeightedVector(tuple(terms), weight, weight * most)

    def clipped(self) -> ClippedAggregation:
        while True:
            source, columns = self.rows(self.rng.choice([0, 1, 1, 2]))
            units = [name for name, kind in columns.items() if kind in KEYED]
            if units:
                break
        keys, groups = self.grouped(columns)
        return ClippedAggregation(
            source=source,
            where=self.scalar("bool", columns) if self.rng.random() < 0.3 else None,
            unit=self.rng.choice(units),
            keys=keys,
            groups=groups,
            vectors=tuple(self.vector(columns) for _ in range(self.rng.choice([1, 1, 2, 3]))),
            largest=self.rng.choice([1, 3, 100, 2**30, 2**62, 2**80]),
            ratios=self.rng.choice([1, 2, 4]),
        )


def assert_equal(found: ContributionProfile, expected: ContributionProfile, node: Any = None) -> None:
    assert (found.clips, found.size, set(found.sums)) == (expected.clips, expected.size, set(expected.sums)), node
    assert node is None or set(found.sums) == ({1, 2} if node.ratios > 1 else {1}), node
    assert found.units.shape[0] == OCTAVES and found.units.tolist() == expected.units.tolist(), node
    for norm, place in itertools.product(found.sums, range(len(found.clips))):
        assert found.clip(place, norm) == expected.clip(place, norm), (norm, place, node)


SEEDS = [("duckdb", seed, 40 if FULL else 12) for seed in range(25 if FULL else 2)]
SEEDS += [("postgres", seed, 40 if FULL else 12) for seed in range(25 if FULL else 2)]
SEEDS += [("spark", 1000 + seed, 8 if FULL else 1) for seed in range(3 if FULL else 1)]


@pytest.mark.parametrize(("kind", "seed", "size"), SEEDS)
def test_random_profiles(kind, seed, size, opened):
    questions = ClippedQuestions(random.Random(seed))
    tables = questions.tables()
    engine, reference = opened(kind, tables), opened("reference", tables)
    units = 0
    try:
        for _ in range(size):
            node = limit_clipped_joins(questions.clipped(), 2)
            found = engine.profile(node)
            assert_equal(found, reference.profile(node), node)
            units += int(np.sum(found.units))
    finally:
        engine.close()
    assert units >= size // 4 or any(len(rows) <= 1 for _, rows in tables.values())  # not all are about nothing


def test_every_statement_calls_only_what_is_allowed(called, built_of, allowed):
    questions = ClippedQuestions(random.Random(7))
    seen = set()
    for _ in range(60 if FULL else 10):
        node = limit_clipped_joins(questions.clipped(), 2)
        statement = profile_statements.write_profile(node, {"r": "r", "s": "s"})
        seen |= called(statement)
        assert built_of(statement) <= allowed.operators | allowed.clauses | {"Values", "Tuple"}
    assert seen - allowed.scalars <= allowed.skeleton


# A table that a copy holds sorted by unit: g lies narrow, s as numbers of texts, n neither.
SHAPE = TableSchema(
    "t",
    (("x", Type.INT), ("g", Type.INT), ("s", Type.TEXT), ("n", Type.TEXT), ("b", Type.BOOL), ("d", Type.DATE)),
    "who",
)
NAMES = ("x", "g", "s", "n", "b", "d", "who")
KINDS = {"x": pa.int64(), "g": pa.int64(), "s": pa.string(), "n": pa.string(), "b": pa.bool_(), "d": pa.date32()}
ROWS = Scan("t", tuple((name, f"c{i}") for i, name in enumerate(NAMES)))
HERE = {name: ColumnReference(f"c{i}") for i, name in enumerate(NAMES)}
LARGE = 2**52


def clamped(name: str, bound: int, columns: Callable[[str], Scalar] = HERE.__getitem__) -> Scalar:
    return Clamp(columns(name), Fraction(-bound), Fraction(bound), whole=True)


LAYOUT = CopyLayout(
    "t",
    ROWS,
    "c6",
    (clamped("g", 9, ColumnReference), clamped("x", LARGE, ColumnReference), clamped("x", 100, ColumnReference)),
    ((-9, 9), (-LARGE, LARGE), (-100, 100)),
    ("s",),
)
DAYS = [datetime.date(2025, 1, day) for day in range(1, 6)]
LISTED: dict[str, list[Any]] = {
    "g": [*range(-9, 10)],
    "s": ["a", "b", "é", "zz"],
    "n": ["p", "q", ""],
    "b": [True, False],
    "d": DAYS,
}


def drawn_rows(rng: random.Random, count: int, units: list[Any], values: list[Any]) -> list[dict[str, Any]]:
    def maybe(pool: list[Any]) -> Any:
        return None if rng.random() < 0.1 else rng.choice(pool)

    return [
        {"who": maybe(units), "x": maybe(values)} | {name: maybe(pool[:-1]) for name, pool in LISTED.items()}
        for _ in range(count)
    ]


def open_sorted(rows: list[dict[str, Any]], unit: pa.DataType | None = None) -> DuckDBEngine:
    kinds = {**KINDS, "who": unit or pa.int64()}
    frame = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    return DuckDBEngine([SHAPE], None, {"t": frame}, layouts=OneLayout(LAYOUT))


def drawn_question(rng: random.Random, bound: int) -> ClippedAggregation:
    """A question that is one pass over the copy."""
    source: RelationalNode = ROWS
    if rng.random() < 0.3:
        some = Call(Function.UNEQUAL, (HERE["n"], Literal("q")))
        source = Projection(ROWS, tuple((c.name, c) for c in HERE.values()), some if rng.random() < 0.5 else None)
    keys, pools = [], []
    for name in rng.sample(list(LISTED), rng.choice([0, 1, 1, 2, 3])):
        values = rng.sample(LISTED[name], rng.randint(1, len(LISTED[name])))
        pools.append([*values, *([None] if rng.random() < 0.4 else [])])
        scalar = HERE[name] if rng.random() < 0.5 or name != "g" else clamped("g", 9)
        keys.append(GroupKey(scalar, tuple(values[:3]) if rng.random() < 0.4 else None))
    groups = list(itertools.product(*pools))
    vectors = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        weight, terms, most = rng.choice([1, 1, 2, 5]), [], 0
        for _ in range(rng.choice([1, 1, 2])):
            factor = rng.choice([1, 1, -1, 3])
            measure, size = rng.choice(
                [
                    (ExactStatistic("count", None), 1),
                    (ExactStatistic("count", HERE["s"]), 1),
                    (ExactStatistic("count", clamped("g", 9)), 1),
                    (ExactStatistic("units", None), 1),
                    (ExactStatistic("sum", clamped("g", 9)), 9),
                    (ExactStatistic("sum", clamped("x", 100)), 100),
                    (ExactStatistic("sum", clamped("x", bound)), bound),
                    (ExactStatistic("sum", HERE["g"]), 9),
                ]
            )
            terms.append((factor, measure))
            most += abs(factor) * size
        vectors.append(WeightedVector(tuple(terms), weight, weight * most))
    where = Call(Function.GREATER, (HERE["x"], Literal(0))) if rng.random() < 0.2 else None
    return ClippedAggregation(
        source,
        where,
        "c6",
        tuple(keys),
        tuple(rng.sample(groups, rng.randint(1, len(groups)))),
        tuple(vectors),
        rng.choice([1, 50, 2**20, 2**61, 2**70]),
        rng.choice([1, 3]),
    )


def in_sql(engine: DuckDBEngine, node: ClippedAggregation) -> ContributionProfile:
    with engine._snapshot() as cursor:

        def run(statement: str) -> list[tuple[Any, ...]]:
            return cursor.execute(statement).fetchall()

        return profile_statements.run_profile(node, engine._copy.sources, DUCKDB, run)


def is_one_pass(node: ClippedAggregation, rows: int) -> bool:
    return profile_copy.plan_profile_scan(node, {"t": LAYOUT}, {"t": rows}.__getitem__) is not None


SIZES = {"x": [None, -50, 0, 1, 2, 70], "near 2^52": [LARGE, LARGE - 1, -LARGE, 1, 0, -3]}


QUESTIONS = 30 if FULL else 5


@pytest.mark.parametrize("seed", range(25 if FULL else 2))
@pytest.mark.parametrize("values", SIZES)
def test_a_pass_over_a_sorted_copy_says_what_sql_and_the_reference_do(seed, values):
    rng = random.Random(f"{values} {seed}")
    units: list[Any] = rng.choice([list(range(40)), [f"unit {i}" for i in range(9)], [3]])
    rows = drawn_rows(rng, rng.choice([0, 1, 40, 150]), units, SIZES[values])
    engine = open_sorted(rows, pa.string() if isinstance(units[0], str) else pa.int64())
    reference = ReferenceEngine({"t": rows})
    passes = 0
    try:
        for _ in range(QUESTIONS):
            node = drawn_question(rng, 100 if values == "x" else LARGE)
            expected = reference.profile(node)
            assert_equal(engine.profile(node), expected, node)
            assert_equal(in_sql(engine, node), expected, node)
            passes += is_one_pass(node, len(rows))
    finally:
        engine.close()
    assert passes >= QUESTIONS // 2


def test_sums_that_could_overflow_or_are_too_many_are_left_to_sql():
    # A row adds up to 15 * 2^52, so 68 rows add less than 2^62, and 69 may add more.
    node = ClippedAggregation(
        ROWS,
        None,
        "c6",
        (),
        ((),),
        (WeightedVector(((3, ExactStatistic("sum", clamped("x", LARGE))),), 5, 15 * LARGE),),
        9,
    )
    assert is_one_pass(node, 68) and not is_one_pass(node, 69)
    # 10^5 groups at 121 places are below 2^24 sums, and twice as many are above.
    groups = tuple((i,) for i in range(10**5))
    wide = replace(node, keys=(GroupKey(HERE["g"], None),), groups=groups, largest=2**60)
    assert (
        len(list_clips(2**60)) == 120
        and is_one_pass(wide, 1)
        and not is_one_pass(replace(wide, vectors=node.vectors * 2), 1)
    )


@pytest.fixture(scope="module")
def long_units() -> tuple[list[dict[str, Any]], list[tuple[ClippedAggregation, ContributionProfile]]]:
    """Units of one row, of 2,500 rows, which lie in several batches, and of 7; and questions with their profiles."""
    rng = random.Random(5)
    rows = drawn_rows(rng, 10_000, [0, 1, 2, 30], [LARGE, -LARGE, 7, None])
    rows += [row | {"who": 100 + i} for i, row in enumerate(drawn_rows(rng, 3000, [0], [5, -6]))]
    rows += drawn_rows(rng, 7000, list(range(5000, 6000)), [LARGE, 1])
    reference = ReferenceEngine({"t": rows})
    nodes = [drawn_question(rng, 2**40) for _ in range(12 if FULL else 2)]
    return rows, [(node, reference.profile(node)) for node in nodes]


@pytest.mark.parametrize("batch", [2048, 1 << 20])
@pytest.mark.parametrize("is_large", [False, True])
def test_units_that_many_batches_share_are_profiled_once(batch, is_large, long_units, monkeypatch):
    monkeypatch.setattr(unit_stretches, "_BATCH", batch)
    monkeypatch.setattr(DuckDBEngine, "_is_large", is_large)
    rows, expected = long_units
    engine = open_sorted(rows)
    try:
        for node, profile in expected:
            assert_equal(engine.profile(node), profile, node)
    finally:
        engine.close()


def test_a_profile_without_the_compiled_loop_is_the_same(monkeypatch):
    rng = random.Random(11)
    rows = drawn_rows(rng, 200, list(range(30)), [1, 2, -3])
    engine = open_sorted(rows)
    node = drawn_question(rng, 100)
    expected = engine.profile(node)
    monkeypatch.setattr("tacit.engines.duckdb.has_compiler", lambda: False)
    monkeypatch.setattr(profile_copy, "profile_copy", None)
    assert_equal(engine.profile(node), expected, node)
    engine.close()


def norms() -> Iterator[int]:
    yield from range(1, 70)
    for power in range(6, 62):
        for middle in (2**power, 3 * 2 ** (power - 1)):
            yield from (n for n in range(middle - 2, middle + 3) if n < 2**62)


def test_the_place_of_a_norm_is_that_among_all_clips():
    clips = list_clips(2**63)
    for norm in norms():
        assert find_place.py_func(np.int64(norm)) == bisect_left(clips, norm), norm


def test_shares_are_rounded_down_whatever_the_size():
    rng = random.Random(3)
    for norm in norms():
        sizes = {0, 1, norm - 1, norm, norm // 2, norm // 3, *(rng.randint(0, norm) for _ in range(5))}
        for parts in range(1, 2**BITS, 2**16 - 5):  # next to where the share of a size becomes one more
            sizes |= {-(-parts * norm >> BITS) - 1, -(-parts * norm >> BITS)}
        for size in sizes:
            if 0 <= size <= norm:
                assert int(find_share.py_func(np.int64(size), np.int64(norm))) == (size << BITS) // norm, (size, norm)


def test_a_copy_that_holds_what_questions_read_has_the_same_profile():
    rng = random.Random(2)
    rows = [row | {"g": rng.choice([None, -50, 3, 9, 10, 50])} for row in drawn_rows(rng, 80, [1, 2, 3], [4, 5])]
    kinds = {**KINDS, "who": pa.int64()}
    frame = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    readings = {"t": {"g": clamped("g", 9, ColumnReference)}}
    measures = (WeightedVector(((1, ExactStatistic("sum", clamped("g", 9))),), 2, 18),)
    node = ClippedAggregation(ROWS, None, "c6", (GroupKey(clamped("g", 9), None),), ((9,), (3,), (None,)), measures, 40)
    read = use_readings_of_clipped(node, readings)
    assert read.keys[0].scalar == read.vectors[0].terms[0][1].argument == HERE["g"]
    for layouts in (OneLayout(LAYOUT), None):
        engine = DuckDBEngine([SHAPE], None, {"t": frame}, layouts=layouts, readings=readings)
        assert_equal(engine.profile(node), ReferenceEngine({"t": rows}).profile(node))
        engine.close()


@rarely_on_spark
def test_a_product_that_rounds_to_zero_raises_nowhere(every_engine_over):
    # 1e-200 squared is below the least double; PostgreSQL would raise.
    columns = {"who": "int", "f": "float"}
    rows = [{"who": who, "f": number} for who in (1, 2) for number in (1e-200, 1.5, None)]
    tables = {"t": (columns, rows)}
    near = Clamp(ColumnReference("f"), Fraction(-2), Fraction(2), whole=False)
    square = Call(Function.MULTIPLY, (near, near))
    argument = Quantize(square, Fraction(1, 4), 0, 16)
    node = ClippedAggregation(
        Scan("t", (("who", "who"), ("f", "f"))),
        Call(Function.LESS, (square, Literal(Fraction(9)))),
        "who",
        (GroupKey(Call(Function.LESS, (square, Literal(Fraction(1)))), None),),
        ((True,), (False,)),
        (WeightedVector(((1, ExactStatistic("sum", argument)), (1, ExactStatistic("count", None))), 1, 17),),
        40,
    )
    found = every_engine_over(tables).profile(node)
    assert_equal(found, ReferenceEngine({"t": rows}).profile(node))
    # Each unit adds 0 + 1 for 1e-200, and 9 quarters + 1 for 1.5: a norm of 11.
    assert found.clip(len(found.clips) - 1, 1) == [2 << BITS, 20 << BITS] and found.units[4, 0] == 2


TINY = ClippedAggregation(
    ROWS,
    None,
    "c6",
    (GroupKey(HERE["g"], None),),
    ((0,), (2,), (None,)),
    (
        WeightedVector(((1, ExactStatistic("count", None)),), 2, 2),
        WeightedVector(((1, ExactStatistic("sum", clamped("x", 100))), (-1, ExactStatistic("units", None))), 1, 101),
    ),
    150,
    3,
)


def clip_one_by_one(rows: list[dict[str, Any]], clip: int, norm: int) -> list[int]:
    """What `TINY` adds up to where each unit's vector is clipped by itself, in exact fractions."""
    total = [0] * 6
    for who in {row["who"] for row in rows} - {None}:
        vector = []
        for place in range(6):
            own = [row["x"] for row in rows if row["who"] == who and row["g"] == (0, 2, None)[place % 3]]
            values = [min(max(x, -100), 100) for x in own if x is not None]
            vector.append(2 * len(own) if place < 3 else sum(values) - bool(own))
        size = sum(abs(entry) for entry in vector)
        if norm == 2 and size:
            shares = sum(math.ceil(Fraction(abs(entry) * 2**BITS, size)) ** 2 for entry in vector)
            root = math.isqrt(shares) + (math.isqrt(shares) ** 2 < shares)
            size = min(size, math.ceil(Fraction(root * size, 2**BITS)))
            assert size**2 >= sum(entry**2 for entry in vector)
        for place, entry in enumerate(vector):
            share = Fraction(entry * 2**BITS, max(size, 1))
            steps = share.numerator // share.denominator if entry >= 0 else -(-share.numerator // share.denominator)
            total[place] += entry * 2**BITS if size <= clip else clip * steps
    return total


def tiny_rows(rng: random.Random) -> list[dict[str, Any]]:
    rows = drawn_rows(rng, rng.choice([1, 4, 12]), [1, 2, 3], [-200, -7, 0, 1, 2, 2, 60, None])
    return [row | {"g": rng.choice([0, 2, 5, None])} for row in rows]


def check_clips(seed: int, profile: Callable[[DuckDBEngine], ContributionProfile]) -> None:
    """A clipped sum is that of each unit clipped by itself, and one unit moves it by the clip at most."""
    rng = random.Random(seed)
    rows = tiny_rows(rng)
    gone = rng.choice([1, 2, 3])
    found = []
    for some in (rows, [row for row in rows if row["who"] != gone]):
        engine = open_sorted(some)
        found.append(profile(engine))
        engine.close()
        for place, clip in enumerate(found[-1].clips):
            for norm in (1, 2):
                assert found[-1].clip(place, norm) == clip_one_by_one(some, clip, norm)
    for place, clip in enumerate(found[0].clips):
        for norm in (1, 2):
            assert _distance(found[0].clip(place, norm), found[1].clip(place, norm), norm) <= (clip << BITS) ** norm


def check_sensitivities(path: str) -> None:
    """One unit, without which there are no rows, moves the clipped sum by the clip at most."""
    for seed in SOME:
        engine = open_sorted([row | {"who": 1} for row in tiny_rows(random.Random(seed))])
        found = PATHS[path](engine)
        engine.close()
        for place, clip in enumerate(found.clips):
            for norm in (1, 2):
                assert _distance(found.clip(place, norm), [0] * found.size, norm) <= (clip << BITS) ** norm


def _distance(one: list[int], other: list[int], norm: int) -> int:
    """The L1 distance, or the square of the L2 distance."""
    return sum(abs(a - b) ** norm for a, b in zip(one, other, strict=True))


PATHS: dict[str, Callable[[DuckDBEngine], ContributionProfile]] = {
    "pass": lambda engine: engine.profile(TINY),
    "sql": lambda engine: in_sql(engine, TINY),
}
SOME = range(60 if FULL else 4)


@pytest.mark.parametrize("path", PATHS)
def test_one_unit_moves_a_clipped_sum_by_the_clip_at_most(path):
    assert is_one_pass(TINY, 12)
    for seed in SOME:
        check_clips(seed, PATHS[path])
    check_sensitivities(path)


def test_a_limit_that_is_one_too_large_is_found(monkeypatch):
    limits = profile_statements.list_limits
    monkeypatch.setattr(profile_statements, "list_limits", lambda node: [limit + 1 for limit in limits(node)])
    with pytest.raises(AssertionError):
        check_sensitivities("sql")


def test_a_second_norm_that_is_one_too_small_is_found(monkeypatch):
    true = profile_statements._write_second_norm

    def smaller(*given: Any) -> str:
        return true(*given).replace(" AS second_norm", " - 1 AS second_norm")

    monkeypatch.setattr(profile_statements, "_write_second_norm", smaller)
    with pytest.raises(AssertionError):
        check_sensitivities("sql")


@pytest.mark.parametrize("norm", [0, 1])
def test_a_loop_whose_places_are_one_too_low_is_found(norm, monkeypatch):
    profiled = profile_copy.profile_units

    def lower(runs, code, low, place_of, added, totals):
        other = profile_copy.ProfileTotals(*(np.zeros_like(each) for each in totals))
        profiled(runs, code, low, place_of, added, other)
        totals.units[:-1] += other.units[1:]
        for each, found in ((totals.whole, other.whole), (totals.scaled, other.scaled)):
            each[norm, :-1] += found[norm, 1:]
            each[1 - norm] += found[1 - norm]

    monkeypatch.setattr(profile_copy, "profile_units", lower)
    with pytest.raises(AssertionError):
        check_sensitivities("pass")
