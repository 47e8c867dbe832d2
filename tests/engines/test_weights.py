"""The weights of private keys: every engine and the reference say the same, and what one unit moves is bounded."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.engines.test_differential import Questions, typed
from tests.engines.test_profile import HERE, LISTED, ROWS, drawn_rows, open_sorted
from tests.support.counts import FULL

from tacit.engines import sql_statements, unit_stretches
from tacit.engines.dialect import DUCKDB, POSTGRES, SPARK
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.limit_joins import limit_joins
from tacit.engines.listed_groups import leave_out_groups
from tacit.engines.reference import ReferenceEngine
from tacit.privacy.key_weights import WHOLE, weigh_key
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, ExactStatistic, GroupKey, Literal, RowUnion

pytestmark = pytest.mark.slow

WEIGHT, UNITS = ExactStatistic("weight", None), ExactStatistic("units", None)


class WeightQuestions(Questions):
    """Draws questions for the weights of groups, of which some may be left out."""

    def weighed(self) -> Aggregation:
        while True:
            node = self.aggregation()
            if node.unit is not None and node.keys:
                return replace(limit_joins(node, 2), measures=(WEIGHT,))


def some_groups(rng: random.Random, groups: Any) -> tuple[Any, ...]:
    """Some of the groups that there are, in an order of their own."""
    known = sorted(groups, key=repr)
    return tuple(rng.sample(known, rng.randint(0, len(known))))


SEEDS = [("duckdb", seed, 40 if FULL else 12) for seed in range(40 if FULL else 2)]
SEEDS += [("postgres", seed, 40 if FULL else 12) for seed in range(40 if FULL else 2)]
SEEDS += [("spark", 1000 + seed, 8 if FULL else 1) for seed in range(8 if FULL else 1)]


@pytest.mark.parametrize(("kind", "seed", "size"), SEEDS)
def test_random_weights(kind, seed, size, opened):
    rng = random.Random(f"weights {seed}")
    questions = WeightQuestions(rng)
    tables = questions.tables()
    engine, reference = opened(kind, tables), opened("reference", tables)
    groups = 0
    try:
        for _ in range(size):
            node = questions.weighed()
            expected = reference.run(node)
            assert typed(engine.run(node)) == typed(expected), node
            fewer = replace(node, excluded=some_groups(rng, expected))
            left = reference.run(fewer)
            assert not {*left} & {*fewer.excluded}
            assert typed(engine.run(fewer)) == typed(left), fewer
            groups += len(expected)
    finally:
        engine.close()
    assert groups >= size // 4 or any(len(rows) <= 1 for _, rows in tables.values())


def test_groups_can_be_left_out_of_any_measure(opened):
    # counted by hand: a row for each of a, a, b, NULL of one unit and b of another
    rows = [{"u": u, "t": t} for u, t in [(1, "a"), (1, "a"), (1, "b"), (1, None), (2, "b")]]
    tables = {"r": ({"u": "int", "t": "text"}, rows)}
    source = replace(ROWS, table="r", columns=(("u", "u"), ("t", "excluded_value0")))
    key = GroupKey(replace(HERE["s"], name="excluded_value0"), None)
    node = Aggregation(source, None, "u", (key,), ContributionBounds(9, 9), (ExactStatistic("count", None),))
    for kind in ("reference", "duckdb", "postgres"):
        engine = opened(kind, tables)
        try:
            assert engine.run(node) == {("a",): (2,), ("b",): (2,), (None,): (1,)}
            assert engine.run(replace(node, excluded=(("a",), (None,)))) == {("b",): (2,)}
            assert engine.run(replace(node, excluded=((None,),))) == {("a",): (2,), ("b",): (2,)}
            assert engine.run(replace(node, excluded=())) == engine.run(node)
            # one unit in three groups: 2^20 / sqrt 3 = 605,395.6; without a in two: 741,455.2; the other has one
            weighed = replace(node, measures=(WEIGHT,))
            assert engine.run(weighed) == {
                ("a",): (605_395,),
                ("b",): (605_395 + 2**20,),
                (None,): (605_395,),
            }
            left = replace(weighed, excluded=(("a",),))
            assert engine.run(left) == {("b",): (741_455 + 2**20,), (None,): (741_455,)}
        finally:
            engine.close()


def test_every_number_of_keys_has_its_exact_weight_in_sql(opened):
    # Unit u holds u keys: key k is held by units k to n, so its weight is the sum of their weights.
    most = 1_200 if FULL else 150
    rows = [{"u": u, "t": k} for u in range(1, most + 1) for k in range(1, u + 1)]
    source = replace(ROWS, table="r", columns=(("u", "u"), ("t", "t")))
    key = GroupKey(replace(HERE["s"], name="t"), None)
    node = Aggregation(source, None, "u", (key,), ContributionBounds(most, 1), (WEIGHT,))
    for kind in ("duckdb", "postgres"):
        engine = opened(kind, {"r": ({"u": "int", "t": "int"}, rows)})
        try:
            found = engine.run(node)
        finally:
            engine.close()
        assert found == {(k,): (sum(map(weigh_key, range(k, most + 1))),) for k in range(1, most + 1)}


def test_every_statement_calls_only_what_is_allowed(called, built_of, allowed):
    questions = WeightQuestions(random.Random(7))
    for _ in range(40 if FULL else 12):
        node = replace(questions.weighed(), excluded=None)
        if all(key.values is None for key in node.keys):
            node = leave_out_groups(replace(node, excluded=((None,) * len(node.keys),)))
        statement = sql_statements.write_aggregation(node, {"r": "r", "s": "s"})
        assert called(statement) - allowed.scalars <= allowed.skeleton
        assert built_of(statement) <= allowed.operators | allowed.clauses | {"Values", "Tuple"}


def test_a_root_that_is_too_high_is_lowered():
    # The statement corrects an engine whose doubles give one step too much: 2^20 / sqrt 3 as 605,396.
    for dialect in (DUCKDB, POSTGRES, SPARK):
        node = Aggregation(ROWS, None, "c6", (GroupKey(HERE["s"], None),), ContributionBounds(9, 1), (WEIGHT,))
        assert "near * near * held > 1099511627776 THEN near - 1" in sql_statements.write_aggregation(
            node, {"t": "t"}, dialect
        )
    assert 3 * 605_396**2 > WHOLE**2 >= 3 * 605_395**2


def drawn_weights(rng: random.Random, most: int) -> Aggregation:
    """A question over the sorted copy."""
    names = rng.sample(list(LISTED), rng.choice([1, 1, 2, 3]))
    keys = [GroupKey(HERE[n], tuple(LISTED[n][:3]) if rng.random() < 0.3 else None) for n in names]
    where = Call(Function.GREATER, (HERE["x"], Literal(0))) if rng.random() < 0.3 else None
    source = RowUnion((ROWS, ROWS)) if rng.random() < 0.3 else ROWS  # rows that are not one table are sorted first
    return Aggregation(source, where, "c6", tuple(keys), ContributionBounds(most, 1), (WEIGHT,), salt=str(rng.random()))


@pytest.mark.parametrize("seed", range(30 if FULL else 3))
def test_a_pass_over_a_sorted_copy_says_what_the_reference_does(seed):
    rng = random.Random(f"sorted {seed}")
    rows = drawn_rows(rng, rng.choice([0, 1, 40, 150]), list(range(rng.choice([1, 9, 40]))), [1, 2, -3, None])
    engine, reference = open_sorted(rows), ReferenceEngine({"t": rows})
    try:
        for _ in range(25 if FULL else 6):
            node = drawn_weights(rng, 1_000)  # more groups than there are: nothing is chosen
            expected = reference.run(node)
            assert engine.run(node) == expected, node
            fewer = replace(node, excluded=some_groups(rng, expected))
            assert engine.run(fewer) == reference.run(fewer), fewer
    finally:
        engine.close()


@pytest.mark.parametrize("seed", range(30 if FULL else 1))
def test_the_copy_keeps_the_groups_that_it_keeps_for_other_measures(seed):
    # Of each unit alone: as many groups as allowed, those in which `units` counts it, each with the weight of so many.
    rng = random.Random(f"kept {seed}")
    engine = open_sorted(drawn_rows(rng, 60, [7], [1, 2, -3]))
    try:
        for _ in range(20 if FULL else 8):
            node = drawn_weights(rng, rng.randint(1, 6))
            weights, units = engine.run(node), engine.run(replace(node, measures=(UNITS,)))
            held = len(engine.run(replace(node, keep=ContributionBounds(1_000, 1))))
            assert {*weights} == {*units} and len(weights) == min(held, node.keep.groups)
            assert {weight for (weight,) in weights.values()} <= {weigh_key(max(1, len(weights)))}
    finally:
        engine.close()


@pytest.mark.parametrize("seed", range(20) if FULL else [0, 6])  # 6 asks about a union of plain tables
def test_one_unit_moves_the_weights_by_one_at_most(seed):
    # With caps that cut: the squares of all differences add up to at most 2^40, to 2^41 where a unit is replaced, and
    # rounds without some of the keys are no different.
    rng = random.Random(f"moved {seed}")
    rows = drawn_rows(rng, 120, list(range(9)), [1, 2, -3])
    other = [row | {"who": 3} for row in drawn_rows(rng, 30, [3], [1, 2, -3])]
    without = [row for row in rows if row["who"] != 3]
    engines = [open_sorted(some) for some in (rows, without, without + other)]
    largest = Counter({1: 0, 2: 0})
    try:
        for _ in range(30 if FULL else 12):
            node = drawn_weights(rng, rng.randint(1, 8))
            node = replace(node, excluded=some_groups(rng, engines[0].run(node)) if rng.random() < 0.5 else None)
            here = [engine.run(node) for engine in engines]
            for place in (1, 2):
                moved = sum(
                    (here[0].get(group, (0,))[0] - here[place].get(group, (0,))[0]) ** 2
                    for group in {*here[0], *here[place]}
                )
                largest[place] = max(largest[place], moved)
    finally:
        for engine in engines:
            engine.close()
    assert 0.9 * WHOLE**2 < largest[1] <= WHOLE**2
    assert WHOLE**2 < largest[2] <= 2 * WHOLE**2


@pytest.fixture(scope="module")
def long_units() -> tuple[list[dict[str, Any]], list[tuple[Aggregation, Any]]]:
    """Units of more than a thousand rows, and of one; and questions with what the reference says."""
    rng = random.Random(5)
    rows = drawn_rows(rng, 5_000, [0, 1, 2, 30], [7, None])
    rows += [row | {"who": 100 + i} for i, row in enumerate(drawn_rows(rng, 3000, [0], [5, -6]))]
    reference, found = ReferenceEngine({"t": rows}), []
    for _ in range(6 if FULL else 2):
        node = drawn_weights(rng, 1_000)
        found.append((node, reference.run(node)))
        fewer = replace(node, excluded=some_groups(rng, found[-1][1]))
        found.append((fewer, reference.run(fewer)))
    return rows, found


@pytest.mark.parametrize("batch", [2048, 1 << 20])
@pytest.mark.parametrize("is_large", [False, True])
def test_units_that_many_batches_share_are_weighed_once(batch, is_large, long_units, monkeypatch):
    monkeypatch.setattr(unit_stretches, "_BATCH", batch)
    monkeypatch.setattr(DuckDBEngine, "_is_large", is_large)
    rows, expected = long_units
    engine = open_sorted(rows)
    try:
        for node, groups in expected:
            assert engine.run(node) == groups
    finally:
        engine.close()
