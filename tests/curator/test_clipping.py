"""Questions whose clip is chosen from the data, `max_rows = "auto"`: what a unit moves, what is released and said.

The first tests put neighboring databases through policy, plan and engine, as `test_sensitivity.py` does with caps: for
every clip the clipped sums move by at most the clip, in L1 and in L2, and the histogram of norms by one unit, whatever
the classes of both norms are. The audit draws whole releases. It rejects with probability below 1e-9 what is private,
and must reject noise of a quarter; by default, with fewer draws, noise of an eighth.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv
from tests.curator import test_sensitivity as worlds
from tests.support.counts import FULL, examples, some
from tests.support.policies import policy_of

from tacit.aggregates.registry import read_question
from tacit.answers.answer import Answer
from tacit.answers.post_process import post_process
from tacit.answers.stored import unpack
from tacit.curator.ask import release
from tacit.curator.copies import PolicyLayouts, readings_of
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.clipped_sum import ClippedSum
from tacit.mechanisms.laplace import Laplace
from tacit.plan.accuracy import plan_within
from tacit.plan.bind_question import plan_for
from tacit.plan.clipping import clipped_aggregation
from tacit.plan.compound_plan import AnyPlan, plan_question
from tacit.plan.explain import explain
from tacit.plan.noise import ClippedPart
from tacit.plan.plan import Plan
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.contribution_profile import BITS, ContributionProfile
from tacit.sampling.bits import ReplayBits

AUTO = {relation: worlds.tables_with(relation, {"max_rows": "auto"}) for relation in ("add-remove", "replace")}
SUMS = [pair for pair in worlds.AGGREGATES if pair[0].split("(")[0] in {"COUNT", "SUM", "AVG", "COUNT_IF", "AVG_IF"}]
SUMS = [pair for pair in SUMS if "DISTINCT" not in pair[0] or pair[0] == "COUNT(DISTINCT who)"]
SEEDS = 20 if FULL else 1


def is_clipped(source: str) -> bool:
    try:
        plan = planned(worlds.asked(source, ["COUNT(*)"], "", ""), AUTO["replace"])
    except Refused:  # a number of a unit's rows has no bounds
        return False
    return plan.recipe.clipping is not None


def planned(sql: str, policy: Policy, epsilon: int = 1) -> Plan:
    return plan_for(read_question(sql), policy, epsilon)


SOURCES = [name for name in worlds.SOURCES if is_clipped(name)]
RELATIONS = ("add-remove", "replace")
# By default each source under one of the relations, by turns.
RELATED = [(each, source) for number, source in enumerate(SOURCES) for each in some(RELATIONS, 2, number)]


def test_units_are_clipped_where_they_may_have_several_rows():
    assert {"units", "through", "units with public", "units with units", "rows of a unit by more"} <= set(SOURCES)
    assert not {"rows", "rows twice", "one row of a unit"} & set(SOURCES)


def profiles(plan: Plan, engines: list[Any]) -> list[ContributionProfile]:
    """What is released from, of each database, over all groups that any of them has."""
    clipping = plan.recipe.clipping
    assert clipping is not None
    if plan.recipe.groups is None:
        groups = sorted(set().union(*(engine.run(plan.exact) for engine in engines)), key=repr)
    else:
        groups = list(product(*(key.values or () for key in plan.exact.keys)))
    parts = [part for part in plan.parts if isinstance(part, ClippedPart)]
    node = clipped_aggregation(plan.exact, parts, groups, clipping.mechanism.largest, ratios=3)
    return [engine.profile(node) for engine in engines]


def check_distance(one: ContributionProfile, other: ContributionProfile, units: int) -> None:
    """Two databases that differ by so many units differ by no more than these add."""
    assert np.abs(one.units - other.units).sum() <= units
    for place, clip in enumerate(one.clips):
        for norm in (1, 2):
            pairs = zip(one.clip(place, norm), other.clip(place, norm), strict=True)
            assert sum(abs(a - b) ** norm for a, b in pairs) <= (units * clip << BITS) ** norm


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "source"), RELATED)
def test_one_unit_moves_the_clipped_sums_by_no_more_than_the_clip(source, relation):
    possible, seen = worlds.those(SUMS, source), 0
    for seed in range(SEEDS):
        rng = random.Random(f"{source} {seed}")
        others = [(rng.choice([0, 1, 2, None]), worlds.unit(rng, 4)) for _ in range(rng.randint(0, 3))]
        engines = [
            ReferenceEngine(worlds.database_of(others)),
            ReferenceEngine(worlds.database_of(others, 8, worlds.unit(rng, 12))),
            ReferenceEngine(worlds.database_of(others, 9, worlds.unit(rng, 12))),
        ]
        for number in range(3):
            sums = rng.sample(possible, min(rng.randint(1, 3), len(possible))) if number else ["COUNT(*)"]
            keys, where = rng.choice(worlds.those(worlds.KEYS, source)), rng.choice(worlds.those(worlds.WHERE, source))
            try:
                plan = planned(worlds.asked(source, sums, keys, where), AUTO[relation])
            except Refused:  # a number of a unit's rows has no bounds
                continue
            if plan.recipe.clipping is None:  # units are counted in one group
                continue
            seen += 1
            without, old, new = profiles(plan, engines)
            check_distance(without, old, 1)
            check_distance(without, new, 1)
            check_distance(old, new, 2)
            assert plan.epsilon_delta[0] <= 1
    assert seen >= SEEDS


SMALL = {"type": "int", "lower": -3, "upper": 10}
VISITS = {"x": SMALL, "g": {"type": "text", "values": ["a", "b"]}, "t": {"type": "text"}}


def visits(bound: Any = "auto", **privacy: Any) -> Policy:
    return load(policy_of({"visits": {"unit": "who", "max_rows": bound, "columns": VISITS}}, **privacy))


def rows_of(*sizes: int) -> ReferenceEngine:
    """Units with so many rows, in both groups in turn."""
    letters = [(who, "ab"[number % 2]) for who, size in enumerate(sizes) for number in range(size)]
    return ReferenceEngine({"visits": [{"who": who, "x": 10, "g": letter, "t": letter} for who, letter in letters]})


COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_the_worst_unit_reaches_the_clip_exactly():
    nobody, many = profiles(planned(COUNT, visits()), [rows_of(1, 2), rows_of(1, 2, 64)])
    place = nobody.clips.index(16)
    for norm in (1, 2):
        assert many.clip(place, norm)[0] - nobody.clip(place, norm)[0] == 16 << BITS


@pytest.mark.parametrize("planted", [1, 2])
def test_a_clip_that_is_too_large_by_one_step_is_noticed(planted, monkeypatch):
    nobody, many = profiles(planned(COUNT, visits()), [rows_of(1, 2), rows_of(1, 2, 64)])
    check_distance(nobody, many, 1)
    true = ContributionProfile.clip

    def wrong(profile: ContributionProfile, place: int, norm: int) -> list[int]:
        return [number + len(profile.sums[1]) * (norm == planted) for number in true(profile, place, norm)]

    monkeypatch.setattr(ContributionProfile, "clip", wrong)
    with pytest.raises(AssertionError):
        check_distance(nobody, many, 1)


AUDITED, LESS = (60_000, 4) if FULL else (600, 8)
"""How many releases of each are drawn, and of what part the noise is that must be seen.

Of half of 600 none is on the wrong side of a threshold with a bound of 7.4%, and five with one of 12%: the epsilon that
these show is 2.5 and 2.0. Noise of an eighth is on the wrong side of the middle with probability exp(-5.2)/2 = 0.3%,
where one unit moves the count by the clip and the scale is the clip over 8 * 0.65 * 2: one of 300.
"""
ALARM = 1e-10


def lower_bound(plan: Plan, one: ContributionProfile, other: ContributionProfile, seed: bytes) -> float:
    """A bound on epsilon from below, wrong with probability ALARM: the best of some thresholds on half of the draws."""
    rule, bits, half = plan.recipe.clipping.mechanism, ReplayBits(seed), AUDITED // 2
    drawn = np.array([[rule.release_profile(each, bits).values[0] for _ in range(AUDITED)] for each in (one, other)])
    first, second = drawn[:, :half], drawn[:, half:]
    points = np.quantile(first, np.linspace(0.02, 0.98, 49))
    ratios = [(np.mean(first[1] > t) + 1e-3) / (np.mean(first[0] > t) + 1e-3) for t in points]
    at = points[int(np.argmax(ratios))]
    most, least = (int(np.sum(sample > at)) for sample in (second[1], second[0]))
    low = betaincinv(most, half - most + 1, ALARM) if most else 0.0
    high = 1 - betaincinv(half - least, least + 1, ALARM)
    return math.log(low / high) if low > 0 else -math.inf


@pytest.mark.slow
@pytest.mark.parametrize("is_planted", [False, True])
def test_whole_releases_stay_within_the_epsilon_claimed_and_noise_of_a_quarter_does_not(is_planted, monkeypatch):
    plan = planned(COUNT, visits(), epsilon=2)
    one, other = profiles(plan, [rows_of(*[3] * 12), rows_of(*[3] * 12, 500)])
    if is_planted:
        true = ClippedSum.laplace
        monkeypatch.setattr(ClippedSum, "laplace", lambda self, clip: Laplace(true(self, clip).scale / LESS))
    assert (lower_bound(plan, one, other, b"audit") > 2) is is_planted


def answered(plan: Plan, engine: Any, seed: bytes = b"seed") -> Answer:
    return shown(plan, release(plan, engine, ReplayBits(seed)))


def shown(plan: AnyPlan, stored: bytes) -> Answer:
    """The answer, without the receipt that a ledger would give."""
    receipt: Any = None
    return post_process(stored, plan.recipe, receipt, Fraction(95, 100))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(sizes=st.lists(st.integers(1, 9), min_size=30, max_size=60), seed=st.binary(min_size=1, max_size=4))
def test_counts_sums_and_averages_are_those_of_the_rows_up_to_noise(sizes, seed):
    """At a large epsilon nothing is clipped and the noise is small."""
    plan = planned("SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM visits GROUP BY g", visits(), epsilon=1000)
    for place, row in enumerate(answered(plan, rows_of(*sizes), seed).to_arrow().to_pylist()):
        rows = sum((size + 1 - place) // 2 for size in sizes)
        assert abs(row["n"] - rows) <= 3
        assert abs(row["s"] - 10 * rows) <= 30
        assert rows < 15 or row["a"] == pytest.approx(10, abs=1.5)


def test_a_clip_is_stored_and_shown_and_in_no_other_release():
    plan = planned("SELECT g, COUNT(*) AS n FROM visits GROUP BY g", visits())
    stored = release(plan, rows_of(*[4] * 2_000), ReplayBits(b"clip"))
    clip = unpack(stored).clip
    assert clip is not None
    assert json.loads(stored)["clip"] == [clip.clip, clip.lost, clip.whole]
    assert clip.clip in {4, 6, 8}
    answer = shown(plan, stored)
    assert any(f"clipped at what {clip.clip} rows" in note for note in answer.notes)
    (first, _) = answer.to_arrow().to_pylist()
    assert first["n_low"] <= 4_000 <= first["n_high"]
    capped = load(policy_of({"visits": {"unit": "who", "max_groups": 2, "max_rows_per_group": 2, "columns": VISITS}}))
    assert b"clip" not in release(planned(COUNT, capped), rows_of(3), ReplayBits(b"x"))


def test_intervals_reach_up_by_what_is_missing_and_once_more_by_the_noise():
    plan = planned(COUNT, visits())
    stored = b'{"clip":[8,100,1000],"groups":null,"parts":[[943718400]]}'  # 900 rows, of about 1,000
    (row,) = shown(plan, stored).to_arrow().to_pylist()
    width = row["n"] - row["n_low"]
    assert row["n"] == 900
    assert row["n_high"] == pytest.approx(900 + 2 * width + 100, abs=2)
    assert width == pytest.approx(8 / 0.65 * math.log(20), abs=2)  # a clip of 8, at 0.65 of epsilon


@pytest.mark.slow
def test_private_keys_are_selected_before_units_are_clipped():
    plan = planned("SELECT t, COUNT(*) AS n FROM visits GROUP BY t", visits(delta=1e-3, delta_per_question=1e-6))
    found = unpack(release(plan, rows_of(*[4] * 1_000), ReplayBits(b"keys")))
    assert found.groups == [("a",), ("b",)]
    assert found.clip is not None
    few = unpack(release(plan, rows_of(4), ReplayBits(b"keys")))
    assert few.groups == []
    assert few.parts == [[]]
    nothing = shown(plan, release(plan, rows_of(4), ReplayBits(b"keys")))
    assert nothing.to_arrow().num_rows == 0
    assert not any("clipped at" in note for note in nothing.notes)
    assert plan.epsilon_delta[1] <= Fraction(1, 10**6)


@pytest.mark.parametrize("aggregate", ["MEDIAN(x)", "COUNT(DISTINCT x)", "VAR_POP(x)", "COUNT(*), MODE(g)"])
def test_what_cannot_be_clipped_needs_caps(aggregate):
    sql = f"SELECT {aggregate} FROM visits"
    with pytest.raises(Refused, match="needs a cap on the rows") as refusal:
        planned(sql, visits())
    assert refusal.value.code is ErrorCode.UNBOUNDED
    assert "max_rows = { auto_up_to = 100 }" in refusal.value.fix
    plan = planned(sql, visits({"auto_up_to": 100}))
    assert plan.recipe.clipping is None
    assert plan.exact.keep.most == 100


def test_a_declared_maximum_bounds_the_clip():
    plan = planned(COUNT, visits({"auto_up_to": 12}))
    (profile,) = profiles(plan, [rows_of(*[500] * 50)])
    assert profile.clips[-1] == 12
    assert planned(COUNT, visits()).key != plan.key


def test_a_number_of_one_units_rows_has_no_bounds_without_caps():
    per_unit = "SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM visits GROUP BY who) AS often"
    with pytest.raises(Refused) as refusal:
        planned(per_unit, visits())
    assert refusal.value.code is ErrorCode.UNBOUNDED
    assert planned(per_unit, visits({"auto_up_to": 20}))
    assert planned(per_unit.replace("AVG(n)", "AVG(LEAST(n, 20))"), visits()).recipe.clipping is None


def test_units_are_counted_without_a_clip_where_there_is_one_group():
    assert planned("SELECT COUNT(DISTINCT who) FROM visits", visits()).recipe.clipping is None
    assert planned("SELECT g, COUNT(DISTINCT who) FROM visits GROUP BY g", visits()).recipe.clipping is not None


def test_what_explain_says():
    policy = visits()
    text = str(explain(planned("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM visits GROUP BY g", policy), policy, 0.95))
    assert "clipped at a bound that a part of epsilon chooses" in text
    assert "for each row that the clip lets one unit add" in text
    assert "After WHERE, what each who adds is clipped" in text


def test_the_error_of_an_average_depends_on_the_data_with_a_clip_too():
    with pytest.raises(Refused, match="depends on the data"):
        plan_within(read_question("SELECT AVG(x) AS a FROM visits"), visits(), {"a": 50}, Fraction(95, 100))


BIG = 2**52 - 1
EXTREME = {
    "x": {"type": "int", "lower": -BIG, "upper": BIG},
    "y": {"type": "float", "lower": 0, "upper": 1e9, "step": 1e-6},
    "z": {"type": "int", "lower": 0, "upper": 0},
    "g": VISITS["g"],
    "t": VISITS["t"],
}
DATABASES: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "nobody": [{"who": None, "x": 1, "y": 1.0, "z": 0, "g": "a", "t": "a"}],
    "missing": [{"who": 1, "x": None, "y": None, "z": None, "g": "a", "t": None}],
    "one": [{"who": 1, "x": 2**63 - 1, "y": math.inf, "z": 5, "g": "b", "t": "a"}],
    "heavy": [
        {"who": n % 3, "x": (-1) ** n * 2**62, "y": [1e9, math.nan, -1e308][n % 3], "z": 1, "g": "ab"[n % 2], "t": "a"}
        for n in range(500)
    ],
}
ASKED = [
    "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, SUM(y) AS m FROM visits GROUP BY g",
    "SELECT t, SUM(x) AS s, AVG(y) AS a, SUM(z) AS z FROM visits GROUP BY t",
    "SELECT g, SUM(x) / COUNT(*) AS r, AVG(y) * 2 AS w FROM visits GROUP BY g",
]


BOUNDS: list[Any] = ["auto", {"auto_up_to": 1}, {"auto_up_to": 1_000_000}]
# By default each question meets each bound, and each epsilon with one of them; both relations by turns.
EDGES = [
    (sql, epsilon, relation, bound)
    for number, sql in enumerate(ASKED)
    for place, epsilon in enumerate([Fraction(1, 10**6), 1, 1000])
    for relation in some(RELATIONS, 2, number + place)
    for bound in some(BOUNDS, 3, number + place)
]


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "epsilon", "relation", "bound"), EDGES)
def test_no_row_makes_a_clipped_question_fail(sql, epsilon, relation, bound):
    privacy = {"neighbors": relation, "delta": 1e-3, "delta_per_question": 1e-6}
    table = {"unit": "who", "max_rows": bound, "columns": EXTREME}
    plan = plan_for(read_question(sql), load(policy_of({"visits": table}, **privacy)), epsilon)
    for name, rows in DATABASES.items():
        assert answered(plan, ReferenceEngine({"visits": rows}), name.encode()).to_arrow().num_columns > 1


def test_noise_beyond_what_is_drawn_at_once_is_drawn_again_as_wide():
    """The noise of a clip of 2^40 on a grid of 2^-20 has a scale of about 2^61; an expression of it keeps its bars."""
    plan = planned("SELECT COUNT(*) * 2 AS n FROM visits", visits())
    stored = b'{"clip":[1099511627776,0,1000],"groups":null,"parts":[[0]]}'
    (row,) = shown(plan, stored).to_arrow().to_pylist()
    assert row["n_high"] - row["n_low"] == pytest.approx(2 * 2 * 2**40 / 0.65 * math.log(20), rel=0.3)


@pytest.mark.slow
def test_released_values_choose_rows_of_clipped_questions():
    """In WHERE and inside an aggregate; at a large epsilon, beside what plain counting gives."""
    rows = [{"who": n, "x": n % 11, "g": "ab"[n % 2], "t": "a"} for n in range(400)]
    average = sum(row["x"] for row in rows) / len(rows)
    above = sum(row["x"] > average for row in rows)
    inside = "SELECT SUM(CASE WHEN x > (SELECT AVG(x) FROM visits) THEN 1 ELSE 0 END) AS n FROM visits"
    for sql in (f"{COUNT} WHERE x > (SELECT AVG(x) FROM visits)", inside):
        plan = plan_question(read_question(sql), visits(), 1000)
        stored = release(plan, ReferenceEngine({"visits": rows}), ReplayBits(b"values"))
        (row,) = shown(plan, stored).to_arrow().to_pylist()
        assert abs(row["n"] - above) <= 5


@pytest.mark.slow
def test_few_units_with_large_values_are_counted_as_one_row_each_at_least():
    """A hundred units are enough for a sum of values far from one. Of five nothing can be told, and that is said."""
    wide = {"x": {"type": "int", "lower": 0, "upper": 200_000}, "g": VISITS["g"]}
    policy = load(policy_of({"visits": {"unit": "who", "max_rows": "auto", "columns": wide}}))
    plan = planned("SELECT SUM(x) AS s FROM visits", policy)
    for units, is_told in ((100, True), (5, False)):
        rows = [{"who": who, "x": 50_000, "g": "a"} for who in range(units) for _ in range(5)]
        answers = [answered(plan, ReferenceEngine({"visits": rows}), bytes([seed])) for seed in range(10)]
        found = [answer.to_arrow().to_pylist()[0] for answer in answers]
        held = sum(row["s_low"] <= 250_000 * units <= row["s_high"] for row in found)
        said = sum("What is cut off so is not known" in " ".join(answer.notes) for answer in answers)
        assert (said <= 2) is is_told
        assert held >= 7


@pytest.mark.slow
@pytest.mark.parametrize("rows", [700, 800, 1_000, 1_023])
def test_a_norm_next_to_the_largest_has_a_place(rows):
    """Norms from 2^61 to 2^62: above all clips, and in the last octave."""
    table = {"unit": "who", "max_rows": "auto", "columns": {"x": EXTREME["x"]}}
    policy = load(policy_of({"visits": table}))
    plan = planned("SELECT SUM(x) AS s FROM visits", policy)
    database = [{"who": 1, "x": BIG}] * rows
    frames, copied = {"visits": pa.Table.from_pylist(database)}, PolicyLayouts(policy)
    engine = DuckDBEngine(table_schemas(policy), None, frames, layouts=copied, readings=readings_of(policy))
    try:
        fast, exact = profiles(plan, [engine, ReferenceEngine({"visits": database})])
    finally:
        engine.close()
    assert fast.units.tolist() == exact.units.tolist()
    assert all(fast.clip(place, 1) == exact.clip(place, 1) for place in range(len(exact.clips)))


def test_many_columns_over_listed_keys_are_planned():
    wards = {"public": True, "columns": {"ward": {"type": "text", "unique": True}}}
    own = {"unit": "who", "max_rows": "auto", "max_groups": 10_000, "max_rows_per_group": 1, "columns": VISITS}
    sums = ", ".join(f"SUM(x * {number}) AS s{number}" for number in range(1, 61))
    policy = load(policy_of({"visits": own, "wards": wards}))
    plan = planned(f"SELECT ward, {sums} FROM visits JOIN wards ON t = ward GROUP BY ward", policy)
    assert plan.recipe.clipping is not None
