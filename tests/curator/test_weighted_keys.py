"""Private keys that are selected by weight, under `max_rows = "auto"`: when, what a unit moves, and former answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from scipy.stats import norm
from tests.curator import test_sensitivity as worlds
from tests.curator.test_clipping import AUTO, RELATED, VISITS, planned
from tests.support.counts import FULL, enough
from tests.support.policies import policy_of
from tests.support.statistics import strangeness

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON, compute_charge
from tacit.aggregates.registry import read_question
from tacit.answers.stored import unpack, unpack_all
from tacit.curator.ask import release
from tacit.curator.copies import PolicyLayouts, readings_of
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import Refused
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.clipping import spend_clipped
from tacit.plan.compound_plan import plan_question
from tacit.plan.explain import explain
from tacit.plan.key_selection import MOST_KEYS
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.key_weights import WHOLE
from tacit.privacy.unit import Neighbors
from tacit.query.nodes import ExactStatistic
from tacit.sampling.bits import ReplayBits
from tacit.trial.trial import PolicyAuditor

ALARM = 1e-11
COUNTED = "SELECT t, COUNT(*) AS n FROM visits GROUP BY t"
LISTED = "SELECT t FROM visits GROUP BY t"
TWO = "SELECT t, g, SUM(x) AS s FROM visits WHERE x > 2 GROUP BY t, g"
CAPS = {"max_groups": 3, "max_rows_per_group": 5}


def policy(folder: Any = None, neighbors: str = "add-remove", **caps: Any) -> Policy:
    return load(declared(folder, neighbors, **caps))


def declared(folder: Any = None, neighbors: str = "add-remove", **caps: Any) -> dict[str, Any]:
    privacy = {"neighbors": neighbors, "delta": 1e-3, "delta_per_question": 1e-6}
    own = {"epsilon": 1000, "delta": 1e-3}
    return policy_of({"visits": {"unit": "who", **caps, "columns": VISITS}}, own=own, folder=folder, **privacy)


AUTOMATIC = policy(max_rows="auto")


def rows_of(words: dict[int, str]) -> list[dict[str, Any]]:
    """Rows of units, one for each letter of their words."""
    return [{"who": who, "x": 5, "g": "ab"[who % 2], "t": letter} for who, word in words.items() for letter in word]


def sorted_copy(of: Policy, rows: list[dict[str, Any]]) -> DuckDBEngine:
    kinds = {"who": pa.int64(), "x": pa.int64(), "g": pa.string(), "t": pa.string()}
    frame = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    return DuckDBEngine(table_schemas(of), None, {"visits": frame}, layouts=PolicyLayouts(of), readings=readings_of(of))


@pytest.mark.parametrize("sql", [COUNTED, LISTED, TWO, "SELECT DISTINCT t FROM visits"])
@pytest.mark.parametrize("caps", [{}, CAPS])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_keys_are_selected_by_weight_where_a_clip_is_chosen(sql, caps, neighbors):
    plan = planned(sql, policy(None, neighbors, max_rows="auto", **caps))
    assert plan.shown is not None
    selection = plan.shown.mechanism
    assert isinstance(selection, WeightedGaussianSelection)
    assert (selection.groups, selection.neighbors, selection.rounds) == (MOST_KEYS, Neighbors(neighbors), 2)
    assert plan.exact.measures == (ExactStatistic("weight", None),)
    assert (plan.exact.keep.groups, plan.exact.keep.total) == (MOST_KEYS, None)
    epsilon, delta = plan.epsilon_delta
    assert Fraction(999, 1000) < epsilon <= 1
    assert Fraction(999, 10**9) < delta <= Fraction(1, 10**6)


def test_fixed_caps_select_keys_as_before():
    for sql, kind in ((COUNTED, Threshold | PartitionSelection), (LISTED, PartitionSelection)):
        plan = planned(sql, policy(**CAPS))
        assert plan.shown is not None
        assert isinstance(plan.shown.mechanism, kind)
    # medians have no clip, so they count by the declared caps
    median = planned("SELECT t, MEDIAN(x) FROM visits GROUP BY t", policy(max_rows="auto", **CAPS))
    assert median.shown is not None
    assert not isinstance(median.shown.mechanism, WeightedGaussianSelection)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 10])
def test_the_way_that_needs_fewer_units_is_taken(epsilon, neighbors):
    # The rule, computed here for each declared maximum: never weights where plain selection needs no more units.
    kinds = []
    for most in (1, 2, 3, 5, 20, 5_000):
        of = policy(None, neighbors, max_rows={"auto_up_to": most})
        shown = planned(LISTED, of, epsilon).shown
        assert shown is not None
        keys = min(most, MOST_KEYS)
        touched = keys * (2 if neighbors == "replace" else 1)
        plain = PartitionSelection(epsilon, Fraction(1, 10**6), touched)
        weighted = WeightedGaussianSelection.calibrated(epsilon, Fraction(1, 10**6), keys, Neighbors(neighbors))
        is_plain = plain.threshold() <= weighted.units()
        assert shown.mechanism == (plain if is_plain else weighted)
        kinds.append(is_plain)
    assert kinds[0] and not kinds[-1] and kinds == sorted(kinds, reverse=True)


def test_the_smallest_prices_are_answered_as_with_caps():
    # rho would be below a grain of 10^-15; and no half of the least delta is there
    tiny = planned(COUNTED, AUTOMATIC, Fraction(1, 10**6))
    assert tiny.epsilon_delta[0] <= Fraction(1, 10**6)
    wide = ", ".join(f"SUM(x + {n}) AS s{n}" for n in range(60))
    least = planned(f"SELECT t, {wide} FROM visits GROUP BY t", AUTOMATIC, Fraction(1, 10**6))
    assert least.shown is not None
    assert isinstance(least.shown.mechanism, PartitionSelection)
    assert least.epsilon_delta[0] <= Fraction(1, 10**6)


# The first digits of the keys that these questions had before keys were selected by weight.
RECORDED = {
    "auto": ["019e4442a46ed701", "b877b69846acca27", "913cd7d333d09d0b"],
    "up to 40": ["6a3b48df901e8ee6", "8629acc7f0b008ee", "29b2244f16f2d4f9"],
    "auto with caps": ["a63ddfe64459f359", "33e2cdbb899e5f29", "10dffd7c60598194"],
    "caps": ["a90f964bbcc9501a", "d6639dcfe1e036e9", "6a1d98373e5df105"],
}
DECLARED: dict[str, dict[str, Any]] = {
    "auto": {"max_rows": "auto"},
    "up to 40": {"max_rows": {"auto_up_to": 40}},
    "auto with caps": {"max_rows": "auto", **CAPS},
    "caps": CAPS,
}


@pytest.mark.parametrize("name", RECORDED)
def test_questions_of_before_are_found(name):
    privacy = {"delta": 1e-3, "delta_per_question": 1e-6}
    of = load(policy_of({"visits": {"unit": "who", **DECLARED[name], "columns": VISITS}}, **privacy))
    for sql, recorded in zip((COUNTED, LISTED, TWO), RECORDED[name], strict=True):
        plan, former = make_plans(Question(sql, 1), of)
        assert (plan.key[:16] == recorded) is (name == "caps")
        assert recorded in {each.key[:16] for each in (plan, *former)}
        # and the former plan is the whole of what it was: no weights in it
        assert plan_question(read_question(sql), of.without_key_weights, 1).key[:16] == recorded


@pytest.mark.slow
def test_an_answer_of_before_is_given_again(tmp_path, monkeypatch):
    rows = pa.Table.from_pylist(rows_of(dict.fromkeys(range(3_000), "ab")))
    with monkeypatch.context() as before:
        unweighed = {"is_weighed": False}
        before.setattr("tacit.curator.resources.KEY_VERSION", 0)
        before.setattr(
            "tacit.plan.bind_question.spend_clipped", lambda *of, **how: spend_clipped(*of, **how | unweighed)
        )
        with tacit.open(declared(tmp_path, max_rows="auto"), {"visits": rows}) as curator:
            first = curator.analyst("ada").ask(COUNTED, epsilon=1)
    with tacit.open(declared(tmp_path, max_rows="auto"), {"visits": rows}) as curator:
        ada = curator.analyst("ada")
        left = ada.budget.remaining
        again = ada.ask(COUNTED, epsilon=1)
        assert again.to_arrow().to_pylist() == first.to_arrow().to_pylist()
        assert ada.budget.remaining == left
        other = ada.ask(COUNTED, epsilon=2)  # a question of its own, selected by weight
        assert ada.budget.remaining == pytest.approx(left - 2)
        assert [row["t"] for row in other.to_arrow().to_pylist()] == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "source"), RELATED)
def test_one_unit_moves_the_weights_by_one_at_most(source, relation):
    # Through policy, plan and engine: squares of all differences, in each round whatever was shown before.
    seen = 0
    for seed in range(60 if FULL else 1):
        rng = random.Random(f"weights {source} {seed}")
        others = [(rng.choice([0, 1, 2, None]), worlds.unit(rng, 4)) for _ in range(rng.randint(0, 3))]
        engines = [
            ReferenceEngine(worlds.database_of(others)),
            ReferenceEngine(worlds.database_of(others, 8, worlds.unit(rng, 12))),
            ReferenceEngine(worlds.database_of(others, 9, worlds.unit(rng, 12))),
        ]
        for keys in worlds.those(worlds.KEYS, source):
            try:
                plan = planned(worlds.asked(source, ["COUNT(*)"], keys, ""), AUTO[relation])
            except Refused:
                continue
            if plan.shown is None or not isinstance(plan.shown.mechanism, WeightedGaussianSelection):
                continue
            node = replace(plan.exact, keep=replace(plan.exact.keep, groups=rng.choice([1, 2, 3, 1_000])))
            known = sorted(set().union(*(engine.run(node) for engine in engines)), key=repr)
            for excluded in (None, tuple(rng.sample(known, len(known) // 2))):
                here = [engine.run(replace(node, excluded=excluded)) for engine in engines]
                for one, other, most in ((0, 1, 1), (0, 2, 1), (1, 2, 2)):
                    groups = {*here[one], *here[other]}
                    moved = sum((here[one].get(g, (0,))[0] - here[other].get(g, (0,))[0]) ** 2 for g in groups)
                    assert moved <= most * WHOLE**2
                    seen += moved > 0
    assert seen or source not in {"units", "through"}


PEOPLE = {who: "abcdefgh"[: 1 + who % 8] for who in range(1_200)} | {5_000: "xyz"}
CHOSEN = "SELECT t, COUNT(*) AS n FROM visits WHERE x > (SELECT AVG(x) - 9 FROM visits) GROUP BY t"


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[DuckDBEngine, ReferenceEngine]]:
    """A copy of the rows of these people, and the reference over the same."""
    rows = rows_of(PEOPLE)
    copy = sorted_copy(AUTOMATIC, rows)
    yield copy, ReferenceEngine({"visits": rows})
    copy.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", [COUNTED, LISTED, TWO, CHOSEN])
def test_the_copy_and_the_reference_release_the_same(sql, engines):
    # With the same bits: weights are equal in each round, and keys are taken in their own order.
    plan = plan_question(read_question(sql), AUTOMATIC, 1)
    stored, other = (release(plan, engine, ReplayBits(b"same")) for engine in engines)
    assert stored == other
    groups = next(each.groups for each in unpack_all(stored) if each.groups is not None)
    assert set("abcde") <= {key[0] for key in groups} <= set("abcdefgh")
    assert groups == sorted(groups)


def test_a_second_round_leaves_out_what_the_first_has_shown():
    # 900 units hold "a" and one of ten others, 90 of each of these: halved weights of 64, and 90 without "a".
    rows = rows_of({who: f"a{who % 10}" for who in range(900)})
    plan = planned(LISTED, AUTOMATIC)
    assert plan.shown is not None
    asked: list[Any] = []

    class Watched(ReferenceEngine):
        def run(self, aggregation: Any) -> Any:
            asked.append(aggregation.excluded)
            return super().run(aggregation)

    found = unpack(release(plan, Watched({"visits": rows}), ReplayBits(b"rounds")))
    assert asked == [None, (("a",),)]
    assert found.groups == [*((str(number),) for number in range(10)), ("a",)]
    assert found.parts == []


@pytest.mark.slow
def test_a_key_of_few_units_is_shown_as_often_as_the_mechanism_says():
    # Units with one key each and no other key: their weight is whole, so a key is shown with probability
    # 1 - (1 - p1)(1 - p2) of the two rounds; many such keys at once, all independent.
    selection = planned(LISTED, AUTOMATIC).shown.mechanism
    assert isinstance(selection, WeightedGaussianSelection)
    units, keys = selection.units() - 1, 1_500 if FULL else 300
    missed = 1.0
    for place in (1, 2):
        deviation = float(selection.noise(place).variance) ** 0.5
        missed *= float(norm.cdf((selection.threshold(place) - 0.5 - units * WHOLE) / deviation))
    rows = [
        {"who": key * units + unit, "x": 5, "g": "a", "t": f"{key:05d}"} for key in range(keys) for unit in range(units)
    ]
    engine = sorted_copy(AUTOMATIC, rows)
    plan = planned(LISTED, AUTOMATIC)
    shown, rounds = 0, 5
    try:
        for seed in range(rounds):
            found = unpack(release(plan, engine, ReplayBits(f"often {seed}".encode())))
            shown += len(found.groups or [])
    finally:
        engine.close()
    assert 0.2 < 1 - missed < 0.8
    assert strangeness(shown, rounds * keys, 1 - missed) > ALARM
    assert strangeness(shown, rounds * keys, (1 - missed) * 1.4) < ALARM
    assert strangeness(shown, rounds * keys, (1 - missed) * 0.6) < ALARM


def test_a_question_made_of_several_is_charged_what_its_members_are():
    sql = f"SELECT COUNT(*) AS keys FROM ({COUNTED}) AS one UNION ALL SELECT COUNT(*) FROM ({TWO}) AS two"
    plan = plan_question(read_question(sql), AUTOMATIC, 1)
    assert len(plan.members) == 2
    charge = compute_charge(plan.loss, plan.delta)
    assert charge.epsilon <= GRAINS_PER_EPSILON
    assert charge.delta_a <= 10**12  # 10^-6
    former = make_plans(Question(sql, 1), AUTOMATIC).former
    assert plan_question(read_question(sql), AUTOMATIC.without_key_weights, 1).key in {each.key for each in former}


@pytest.mark.slow
def test_an_ask_from_end_to_end(tmp_path):
    # 3,000 people hold five to forty of a thousand words; those of nobody else are never shown.
    draw = random.Random(3)
    words = [f"word {min(999, int(draw.paretovariate(0.7)))}" for _ in range(60_000)]
    rows = [{"who": draw.randrange(3_000), "x": 5, "g": "a", "t": word} for word in words]
    rows += [{"who": 10_000 + n, "x": 5, "g": "a", "t": f"secret {n}"} for n in range(50)]
    with tacit.open(declared(tmp_path, max_rows="auto"), {"visits": pa.Table.from_pylist(rows)}) as curator:
        # With other bits some word of fewer than 20 rows is shown with probability 5e-4, and a secret with 1e-7.
        curator.bits = ReplayBits(b"words")
        ada = curator.analyst("ada")
        listed = ada.ask(LISTED, epsilon=1)
        counted = ada.ask(COUNTED, epsilon=1)
        shown = {row["t"] for row in listed.to_arrow().to_pylist()}
        truth = {word: words.count(word) for word in shown}
        assert len(shown) >= 20
        assert min(truth.values()) >= 20
        assert not any(word.startswith("secret") for word in shown)
        # with counts, half of epsilon is left for the keys
        assert 5 <= len(counted.to_arrow()) < len(shown)
        again = ada.ask("SELECT DISTINCT t FROM visits", epsilon=1)
        assert again.to_arrow().to_pylist() == listed.to_arrow().to_pylist()
    assert json.loads(listed.to_json())["rows"]


def test_what_explain_and_answers_say():
    text = str(explain(planned(COUNTED, AUTOMATIC), AUTOMATIC, 0.95))
    selection = planned(COUNTED, AUTOMATIC).shown.mechanism
    assert (
        f"a key that {selection.units()} units (who) hold is shown every second time where they hold no other" in text
    )
    assert f"one that {selection.units(100)} hold where each holds 100 keys" in text
    assert "Which keys are shown is decided by at most 1000 of each who." in text


@pytest.mark.slow
def test_a_policy_can_be_audited():
    with PolicyAuditor(AUTOMATIC, units=20) as auditor:
        found = auditor.audit(LISTED, 1, samples=enough(400))
    assert found.lower <= 1
    assert found.samples == enough(400)
