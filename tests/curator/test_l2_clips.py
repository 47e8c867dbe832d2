"""Questions whose clip may bound the L2 norm, with Gaussian noise: which are, what they cost, what is stored and said.

The exact law of a tiny release is in `tests/mechanisms/test_clipped_sum.py`, and what one unit moves in
`tests/curator/test_clipping.py` and `tests/engines/test_profile.py`, in both norms.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.counts import FULL
from tests.support.policies import policy_of

import tacit
from tacit.accounting.filters import BudgetCharge, compute_charge, max_rho
from tacit.aggregates.registry import read_question
from tacit.answers.post_process import post_process
from tacit.answers.stored import unpack
from tacit.curator.ask import release
from tacit.engines.reference import ReferenceEngine
from tacit.mechanisms.clipped_sum import ClippedSum
from tacit.mechanisms.gaussian import Gaussian
from tacit.plan.bind_question import plan_for
from tacit.plan.compound_plan import plan_question
from tacit.plan.explain import explain
from tacit.plan.plan import Plan
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.loss import ConcentratedDp, PureDp
from tacit.sampling.bits import ReplayBits

GROUPS = 200
COLUMNS = {
    "g": {"type": "int", "values": list(range(GROUPS))},
    "few": {"type": "int", "values": [0, 1, 2]},
    "x": {"type": "int", "lower": 0, "upper": 10},
    "t": {"type": "int"},
}
BY_GROUP = "SELECT g, COUNT(*) AS n FROM visits GROUP BY g"
DELTA = {"delta": 1e-3, "delta_per_question": 1e-6}


def visits(**privacy: Any) -> Policy:
    return load(policy_of({"visits": {"unit": "who", "max_rows": "auto", "columns": COLUMNS}}, **privacy))


def planned(sql: str, policy: Policy, epsilon: Any = 1) -> Plan:
    return plan_for(read_question(sql), policy, epsilon)


def rows_of(units: int, each: int, seed: int = 1) -> list[dict[str, int]]:
    """Units with so many rows, which lie evenly among the groups."""
    draw = np.random.default_rng(seed)
    groups = draw.integers(0, GROUPS, (units, each)).tolist()
    return [{"who": who, "g": g, "few": g % 3, "x": 5, "t": g} for who, own in enumerate(groups) for g in own]


@cache
def stored_of(bits: bytes) -> bytes:
    """A release over units of 100 rows each."""
    return release(planned(BY_GROUP, visits(**DELTA)), ReferenceEngine({"visits": rows_of(600, 100)}), ReplayBits(bits))


def errors(plan: Plan, rows: list[dict[str, int]], stored: bytes | None = None) -> tuple[int, float]:
    """The norm of the clip of one release, and the mean error of its counts."""
    stored = stored or release(plan, ReferenceEngine({"visits": rows}), ReplayBits(b"errors"))
    truth = np.bincount([row["g"] for row in rows], minlength=GROUPS)
    receipt: Any = None
    answer = post_process(stored, plan.recipe, receipt, Fraction(95, 100)).to_arrow().to_pylist()
    clip = unpack(stored).clip
    assert clip is not None
    return clip.norm, float(np.mean([abs(row["n"] - truth[row["g"]]) for row in answer]))


@pytest.mark.slow
def test_gaussian_noise_is_taken_where_units_have_many_rows_in_many_groups():
    # At delta 1e-6 a clip C of L1 has an error of C, and one of L2 of about 4.2 C: 100 rows lie in about 80 groups, so
    # their L2 norm is about 11, and 4.2 times 12 is half of 100.
    rows = rows_of(600, 100)
    norm, error = errors(planned(BY_GROUP, visits(**DELTA)), rows, stored_of(b"errors"))
    former, larger = errors(planned(BY_GROUP, visits(**DELTA).without_l2_clips), rows)
    assert (norm, former) == (2, 1)
    assert error < 0.75 * larger


@pytest.mark.slow
def test_laplace_noise_stays_where_units_have_few_rows():
    norm, _ = errors(planned(BY_GROUP, visits(**DELTA)), rows_of(600, 3))
    assert norm == 1


@pytest.mark.parametrize(
    ("sql", "privacy"),
    [
        (BY_GROUP, {"delta": 0}),  # no delta
        ("SELECT few, COUNT(*) AS n FROM visits GROUP BY few", DELTA),  # few groups
        ("SELECT t, COUNT(*) AS n FROM visits GROUP BY t", DELTA),  # private keys, which have the delta
        (BY_GROUP.replace("COUNT(*)", "MEDIAN(x)"), DELTA),
    ],
)
def test_other_questions_have_the_plans_of_before(sql, privacy):
    capped = {"unit": "who", "max_rows": {"auto_up_to": 100}, "columns": COLUMNS}
    policy = load(policy_of({"visits": capped}, **privacy))
    plan = planned(sql, policy)
    assert plan.key == planned(sql, policy.without_l2_clips).key
    assert plan.recipe.clipping is None or plan.recipe.clipping.mechanism.delta == 0


def test_what_is_reserved_is_the_largest_of_each_number_over_both_kinds_of_noise():
    plan = planned(BY_GROUP, visits(**DELTA))
    rule = plan.recipe.clipping.mechanism
    rest, delta = rule.epsilon - rule.choosing, Fraction(1, 10**6)
    assert rule.rho == max_rho(rest, delta) > 0
    first = compute_charge(PureDp(rule.choosing))
    kinds = [compute_charge(PureDp(rest)), compute_charge(ConcentratedDp(rule.rho), delta)]
    largest = BudgetCharge(*(max(numbers) for numbers in zip(*(kind.grains for kind in kinds), strict=True)))
    assert compute_charge(plan.loss, plan.delta).grains == pytest.approx((first + largest).grains, abs=1)
    assert plan.epsilon_delta == (1, delta)
    assert compute_charge(plan.loss, plan.delta).delta_b == 0
    # and the noise that is drawn costs no more than that, whatever the clip
    for clip in (1, 12, 2**40):
        noise = rule.noise(clip, 2)
        assert isinstance(noise, Gaussian)
        assert noise.rho(clip << 20) <= rule.rho


def test_with_fewer_than_sixteen_sums_no_delta_is_charged_and_the_engine_needs_no_l2_norm():
    # At these parameters Gaussian noise would be the smaller one, and one class of units says nothing of L2 norms.
    policy = visits(delta=0.4, delta_per_question=1e-3)
    plan = planned("SELECT few, COUNT(*) AS n FROM visits GROUP BY few", policy, Fraction(1, 100))
    assert ClippedSum(Fraction(1, 100), Fraction(1, 1000), 15).ratios == 1
    assert plan.recipe.clipping.mechanism.delta == 0
    assert compute_charge(plan.loss, policy.question_delta).delta_a == 0


def test_explain_names_the_larger_of_both_noises():
    plan = planned(BY_GROUP, visits(**DELTA))
    mechanism = plan.recipe.clipping.mechanism
    (column,) = [each for each in explain(plan, visits(**DELTA), Fraction(95, 100)).columns if each.name == "n"]
    widths = [float(mechanism.noise(1, norm).error(Fraction(95, 100))) / 2**20 for norm in (1, 2)]
    assert widths[0] < widths[1]
    said = float(column.said.removeprefix("within ").split()[0])
    assert widths[1] < said < widths[1] + 0.501  # a count is rounded, and six digits are shown


def test_members_of_a_question_made_of_several_share_the_delta():
    sql = f"SELECT SUM(n) AS n FROM ({BY_GROUP}) AS a UNION ALL SELECT SUM(n) FROM ({BY_GROUP.replace('*', 'x')}) AS b"
    privacy = DELTA | {"delta_per_question": 1e-6}
    plan = plan_question(read_question(sql), visits(**privacy), 1)
    assert all(member.recipe.clipping.mechanism.delta > 0 for member in plan.members)
    assert plan.epsilon_delta <= (1, Fraction(1, 10**6))


@pytest.mark.slow
def test_the_norm_is_stored_and_said_where_it_is_l2():
    policy = visits(**DELTA)
    plan = planned(BY_GROUP, policy)
    stored = stored_of(b"clip" if FULL else b"errors")
    clip = unpack(stored).clip
    assert clip is not None
    assert json.loads(stored)["clip"] == [clip.clip, clip.lost, clip.whole, 2]
    receipt: Any = None
    answer = post_process(stored, plan.recipe, receipt, Fraction(95, 100))
    assert any("clipped in the L2 norm, with Gaussian noise" in note for note in answer.notes)
    row = answer.to_arrow().to_pylist()[0]
    width = ClippedSum.noise(plan.recipe.clipping.mechanism, clip.clip, 2).error(Fraction(95, 100)) / 2**20
    assert row["n"] - row["n_low"] == pytest.approx(width, abs=1)
    assert "or discrete Gaussian noise" in str(explain(plan, policy, 0.95))


def test_within_keeps_laplace_noise():
    plan, _ = make_plans(Question(BY_GROUP, within={"n": 100}), visits(**DELTA))
    assert plan.recipe.clipping.mechanism.delta == 0


RECORDED = (
    "6d1eb84bd7f8340f"  # of the key of BY_GROUP at epsilon 1, as the version before this kind of clip computed it
)


def test_questions_of_before_are_found():
    plan, former = make_plans(Question(BY_GROUP, 1), visits(**DELTA))
    assert plan.key[:16] != RECORDED
    assert RECORDED in {each.key[:16] for each in former}


@pytest.mark.slow
def test_an_answer_of_before_is_given_again(tmp_path, monkeypatch):
    table = {"unit": "who", "max_rows": "auto", "columns": COLUMNS}
    policy = policy_of({"visits": table}, **DELTA, epsilon=10)
    policy |= {"ledger": {"store": str(tmp_path / "ledger")}, "analysts": {"ada": {"epsilon": 5, "delta": 5e-4}}}
    rows = {"visits": pa.Table.from_pylist(rows_of(300, 60))}
    with monkeypatch.context() as before:
        before.setattr("tacit.curator.resources.KEY_VERSION", 0)
        before.setattr(ClippedSum, "may_gain_by_l2", lambda self: False)
        with tacit.open(policy, rows) as curator:
            first = curator.analyst("ada").ask(BY_GROUP, epsilon=1)
    with tacit.open(policy, rows) as curator:
        curator.bits = ReplayBits(b"as before")  # with others the clip bounds the L1 norm with probability 0.25%
        ada = curator.analyst("ada")
        left = ada.budget.remaining
        again = ada.ask(BY_GROUP, epsilon=1)
        assert again.to_arrow().to_pylist() == first.to_arrow().to_pylist()
        assert ada.budget.remaining == left
        other = ada.ask(BY_GROUP, epsilon=2)
        assert any("in the L2 norm" in note for note in other.notes)
