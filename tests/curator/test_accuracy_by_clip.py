"""An accuracy under `max_rows = "auto"`: a clip is released and charged first, and the rest is priced from it.

Privacy is shown exactly: the sums of all small neighboring databases are enumerated, and the probability that no cell
of the histogram is occupied is worked out and held against draws. Statistical tests raise a false alarm with
probability below 1e-9.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.counts import OFF
from tests.support.policies import policy_of

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON, BudgetCharge
from tacit.aggregates.registry import read_question
from tacit.answers.post_process import post_process
from tacit.answers.resolve_clip import resolve_parts
from tacit.answers.stored import StoredClip, read_clip, unpack
from tacit.curator.ask import release, settle_clip
from tacit.curator.curator import Curator
from tacit.curator.resources import ledger_files
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Failed, ParameterError, Refused, SecondStepRefused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import check_receipt, verify
from tacit.ledger.witness import Witness
from tacit.mechanisms import clip_for_noise
from tacit.mechanisms.clip_choice import ClipChoice, choose_clip_for_noise
from tacit.mechanisms.clip_for_noise import ClipForNoise
from tacit.mechanisms.laplace import Laplace
from tacit.plan.accuracy import plan_within
from tacit.plan.clip_plans import ClipChoicePlan, FixedClipPlan
from tacit.plan.column_error import find_column_error
from tacit.plan.explain import explain
from tacit.plan.least_epsilon import find_least_epsilon, round_up_epsilon
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.contribution_profile import BITS, OCTAVES, ContributionProfile, list_clips
from tacit.privacy.loss import PureDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

USUAL = Fraction(95, 100)
COLUMNS = {
    "x": {"type": "int", "lower": -3, "upper": 10},
    "g": {"type": "text", "values": ["a", "b"]},
    "t": {"type": "text"},
}
BY_G = "SELECT g, COUNT(*) AS n FROM visits GROUP BY g"
SUMS = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM visits GROUP BY g"


def policy_with(bound: Any = "auto", **privacy: Any) -> Policy:
    return load(policy_of({"visits": {"unit": "who", "max_rows": bound, "columns": COLUMNS}}, **privacy))


def planned(sql: str = BY_G, within: Any = None, **privacy: Any) -> ClipChoicePlan:
    plan = plan_within(read_question(sql), policy_with(**privacy), within or {"n": 50}, USUAL)
    assert isinstance(plan, ClipChoicePlan)
    return plan


def rows_of(*sizes: int) -> ReferenceEngine:
    """Units with so many rows, in both groups in turn."""
    letters = [(who, "ab"[number % 2]) for who, size in enumerate(sizes) for number in range(size)]
    return ReferenceEngine({"visits": [{"who": who, "x": 10, "g": letter, "t": letter} for who, letter in letters]})


# What is planned.


@pytest.mark.slow
def test_the_noise_is_that_of_the_accuracy_whichever_clip_is_chosen():
    plan = planned()
    # 50 less the half that rounding takes, over ln 20, is 16.52
    assert float(plan.choice.noise) == pytest.approx(49.5 / math.log(20), rel=1e-3)
    assert float(plan.row_epsilon) == pytest.approx(math.log(20) / 49.5, rel=1e-3)
    for clip in (1, 3, 8, 1024):
        second = plan.price_clip(StoredClip(clip, 0, 100))
        epsilon = second.epsilon_delta[0]
        assert float(epsilon) == pytest.approx(clip * math.log(20) / 49.5, rel=2e-3)
        assert second.noise.scale * epsilon == clip << BITS  # exactly: one unit moves it by the clip
        assert second.loss == PureDp(epsilon)
        error = second.recipe.values[0].half_width(second.recipe.parts, USUAL)
        assert error is not None
        assert error <= 50


@pytest.mark.slow
@pytest.mark.parametrize("clip", [1, 2, 48, 4096])
def test_the_epsilon_is_the_least_of_four_digits(clip):
    plan = planned(SUMS, {"n": 40, "s": 700})
    second = plan.price_clip(StoredClip(clip, 0, 100))
    found = second.epsilon_delta[0]
    parts = [
        replace_noise(second, Laplace(clip * (1 << BITS) / (found * Fraction(factor)))) for factor in ("1", "0.99")
    ]
    met = [all(width(each, name) <= most for name, most in (("n", 40), ("s", 700))) for each in parts]
    assert met == [True, False]
    assert found == round_up_epsilon(found)


def replace_noise(plan: FixedClipPlan, noise: Laplace) -> Any:
    return replace(plan.recipe, parts=resolve_parts(plan.recipe.parts, noise, Fraction(0)))


def width(recipe: Any, name: str) -> Fraction:
    return find_column_error(recipe, name, USUAL)


@pytest.mark.parametrize("wanted", [Fraction(1, 10**6), Fraction(12345678, 10**8), Fraction(77, 3), Fraction(1000)])
def test_where_it_is_looked_for_first_changes_nothing(wanted):
    plain = find_least_epsilon(lambda epsilon: epsilon >= wanted)
    for factor in ("0", "0.5", "0.9999", "1", "1.0001", "7", "100000"):
        assert find_least_epsilon(lambda epsilon: epsilon >= wanted, wanted * Fraction(factor)) == plain
    assert find_least_epsilon(lambda _: False, wanted) is None


def test_replacing_a_unit_costs_twice_as_much():
    once, twice = (planned(neighbors=name) for name in ("add-remove", "replace"))
    clip = StoredClip(8, 0, 100)
    assert twice.choice.moved == 2
    ratio = twice.price_clip(clip).epsilon_delta[0] / once.price_clip(clip).epsilon_delta[0]
    assert float(ratio) == pytest.approx(2, rel=1e-3)


def test_other_questions_have_other_keys_and_equal_ones_the_same():
    plans = [planned(), planned(within={"n": 49}), planned(BY_G.replace("GROUP", "WHERE x > 1 GROUP")), planned(SUMS)]
    seconds = [plan.price_clip(StoredClip(clip, 1, 100)) for plan in plans for clip in (4, 8)]
    keys = [plan.key for plan in (*plans, *seconds)]
    assert len(set(keys)) == len(keys)
    assert planned().key == planned().key
    # what is cut off by an estimate is no part of what is released
    assert planned().price_clip(StoredClip(4, 50, 100)).key == seconds[0].key


def test_keys_are_those_that_ledgers_hold():
    """They name what was paid for: a change of one charges it again."""
    plan = planned()
    assert plan.key[:16] == "47fdf3709619f98f"
    assert plan.price_clip(StoredClip(8, 0, 100)).key[:16] == "9ea0b82775da5951"


@pytest.mark.slow
def test_keys_that_public_tables_list_are_priced_too():
    wards = {"public": True, "columns": {"ward": {"type": "text", "unique": True}}}
    own = {"unit": "who", "max_rows": "auto", "columns": COLUMNS}
    policy = load(policy_of({"visits": own, "wards": wards}))
    sql = "SELECT ward, COUNT(*) AS n FROM visits JOIN wards ON t = ward GROUP BY ward"
    plan = plan_within(read_question(sql), policy, {"n": 50}, USUAL)
    assert isinstance(plan, ClipChoicePlan)
    assert plan.listed is not None
    rows = [{"who": n // 4, "x": 1, "g": "a", "t": "ab"[n % 2]} for n in range(4_000)]
    for listed in (["a", "b", "c"], []):
        engine = ReferenceEngine({"visits": rows, "wards": [{"ward": ward} for ward in listed]})
        clip = read_clip(release(plan, engine, ReplayBits(b"clip")))
        stored = release(plan.price_clip(clip), engine, ReplayBits(b"sums"))
        nobody: Any = None
        found = post_process(stored, plan.price_clip(clip).recipe, nobody, USUAL).to_arrow().to_pylist()
        assert [row["ward"] for row in found] == listed
        assert [abs(row["n"] - 2_000 * (row["ward"] != "c")) < 200 for row in found] == [True] * len(listed)


def test_private_keys_need_an_epsilon():
    sql = BY_G.replace("g,", "t,").replace("BY g", "BY t")
    policy = policy_with(delta=1e-3, delta_per_question=1e-6)
    with pytest.raises(Refused, match="clipped sums over private keys") as refusal:
        plan_within(read_question(sql), policy, {"n": 50}, USUAL)
    assert refusal.value.code is ErrorCode.PARAMETER
    assert "epsilon=1" in refusal.value.fix


@pytest.mark.parametrize("column", ["AVG(x)", "COUNT(*) + 1", "SUM(x) / COUNT(*)"])
def test_what_depends_on_the_rows_is_refused_before_a_clip_is_chosen(column):
    with pytest.raises(Refused, match="depends on the data"):
        planned(f"SELECT {column} AS y, COUNT(*) AS n FROM visits", {"y": 5})


def test_an_accuracy_that_no_epsilon_reaches():
    with pytest.raises(Refused, match="no epsilon is enough") as refusal:
        planned("SELECT SUM(x) AS s FROM visits", {"s": Fraction(1, 1000)})
    assert not isinstance(refusal.value, SecondStepRefused)
    (least,) = re.findall(r'"s": ([0-9.]+)', refusal.value.fix)
    plan = planned("SELECT SUM(x) AS s FROM visits", {"s": Fraction(least) * Fraction("1.001")})
    with pytest.raises(SecondStepRefused, match="stays charged"):
        plan.price_clip(StoredClip(1024 * plan.choice.row, 0, 100))


def test_what_explain_says_before_the_clip_is_paid_for():
    plan = planned(SUMS)
    found = explain(plan, policy_with(), 0.95)
    assert [rows for rows, _ in found.epsilon_by_rows] == [1, 10, 100]
    for rows, epsilon in found.epsilon_by_rows:
        clip = StoredClip(rows * plan.choice.row, 0, 0)
        assert epsilon == pytest.approx(float(plan.epsilon + plan.price_clip(clip).epsilon_delta[0]))
    assert found.epsilon == found.epsilon_by_rows[0][1]
    (n,) = [column for column in found.columns if column.name == "n"]
    assert n.error == pytest.approx(50, rel=1e-3)
    assert f"chosen first, for epsilon {float(plan.epsilon):g}" in str(found)
    assert type(found).from_dict(found.to_dict()) == found


# Privacy.


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_second_step_is_private_for_all_small_databases(neighbors):
    """Every database of two units with up to three rows, and all its neighbors: Laplace noise on sums that differ by d
    in L1 has a ratio of exp(d / scale) at most, and that is reached."""
    second = planned(neighbors=neighbors).price_clip(StoredClip(2, 0, 100))
    sizes = list(product(range(4), repeat=2))
    sums = {}
    for a, b in product(sizes, repeat=2):  # the rows of each of two units, in both groups
        units = ((0, a), (1, b))
        letters = [(who, g) for who, each in units for g, n in zip("ab", each, strict=True) for _ in range(n)]
        rows = [{"who": who, "x": 1, "g": g, "t": g} for who, g in letters]
        sums[a, b] = totals(second, ReferenceEngine({"visits": rows}))
    worst = Fraction(0)
    for a, b in product(sizes, repeat=2):
        for other in sizes if neighbors == "replace" else [(0, 0)]:
            moved = sum(abs(x - y) for x, y in zip(sums[a, b], sums[a, other], strict=True))
            worst = max(worst, Fraction(moved) / second.noise.scale)
    assert worst == second.epsilon_delta[0]


def totals(plan: FixedClipPlan, engine: Any) -> list[int]:
    """What noise is added to."""
    found: list[int] = []

    class Silent(Laplace):
        def release(self, values: Any, bits: Any = None) -> list[int]:
            found.extend(values)
            return list(values)

    replace(plan, noise=Silent(plan.noise.scale)).release({}, ReplayBits(b""), None, engine)
    return found


def tail(k: int, epsilon: float) -> float:
    """P(noise >= k) of discrete Laplace noise of the scale 1/epsilon."""
    q = math.exp(-epsilon)
    return q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q)


def threshold(octave: int, epsilon: float) -> float:
    """What a noisy count is above where its cell is occupied, no cell before it being: a row adds one."""
    return (4 + max(0, octave - 1) * 2.5 * math.log(2)) / epsilon


def chance_of_nothing(units: list[int], epsilon: float) -> float:
    """P(no cell is occupied), with so many units in each octave, at noise of the scale 1/epsilon: a product."""
    found = 1.0
    for octave in range(OCTAVES):
        count = units[octave] if octave < len(units) else 0
        found *= 1 - tail(math.floor(threshold(octave, epsilon)) + 1 - count, epsilon)
    return found


@pytest.mark.parametrize("octave", [0, 1, 2, 7, 40])
def test_a_cell_is_occupied_above_its_threshold_only(octave):
    for count, is_occupied in (
        (math.floor(threshold(octave, 0.5)), False),
        (math.floor(threshold(octave, 0.5)) + 1, True),
    ):
        cells = np.zeros((OCTAVES, 1))
        cells[octave, 0] = count
        assert (choose_clip_for_noise(cells, tuple(list_clips(100)), 1, 0.5, 10.0).whole > 0) is is_occupied


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_whether_any_unit_is_seen_is_as_private_as_claimed(neighbors):
    """Exactly, for all numbers of units about the thresholds: adding one moves the odds by exp(epsilon) at most, and
    so does moving one to another octave under replace, where the noise has twice the scale."""
    rule = ClipForNoise(Fraction(1, 2), Fraction(10), 1, neighbors)
    scale_inverse, worst = float(rule.epsilon) / rule.moved, 0.0
    for octave, count in product(range(5), range(20)):
        more = [0] * octave + [count + 1, 0, 0]
        without, elsewhere = ([0] * octave + [count, 0, other] for other in (0, 1))
        other = without if neighbors is Neighbors.ADD_REMOVE else elsewhere
        p, q = (chance_of_nothing(units, scale_inverse) for units in (more, other))
        worst = max(worst, abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))
    assert worst <= float(rule.epsilon) + 1e-12
    assert worst > 0.2 * float(rule.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_histogram_has_the_noise_that_is_claimed(neighbors, monkeypatch):
    rule = ClipForNoise(Fraction(1, 2), Fraction(10), 1, neighbors)
    cells = np.zeros((OCTAVES, 1), dtype=np.int64)
    cells[3, 0] = 77
    profile, bits, seen = ContributionProfile(tuple(list_clips(100)), 1, cells, {1: {}}), ReplayBits(b"noise"), []

    def spy(noisy: Any, *arguments: Any) -> ClipChoice:
        seen.extend((noisy - cells).ravel().tolist())
        return choose_clip_for_noise(noisy, *arguments)

    monkeypatch.setattr(clip_for_noise, "choose_clip_for_noise", spy)
    for _ in range(200):
        rule.release(profile, bits)
    epsilon, far = float(rule.epsilon) / rule.moved, 4 * rule.moved
    beyond, draws = sum(abs(noise) >= far for noise in seen), len(seen)  # 12,400
    expected = 2 * tail(far, epsilon)
    spread = 6.2 * math.sqrt(draws * expected * (1 - expected))  # beyond it with probability below 1e-9
    assert abs(beyond - draws * expected) <= spread
    assert abs(beyond - draws * 2 * tail(far, epsilon / (1 + float(OFF)))) > spread


# Accuracy.


def test_the_noise_is_within_the_width_as_often_as_it_says():
    second = planned().price_clip(StoredClip(8, 0, 100))
    draws = 20_000
    bits = ReplayBits(b"accuracy")

    def within(noise: Laplace) -> int:
        return sum(abs(step / 2**BITS) <= 49.5 for step in noise.release([0] * draws, bits))

    # 19,000 are expected, with a standard deviation of 30.8: 6 of them below is a false alarm below 1e-9
    assert within(second.noise) >= 19_000 - 6 * 30.8
    assert within(Laplace(second.noise.scale * Fraction(11, 10))) < 19_000 - 6 * 30.8


@pytest.mark.slow
def test_answers_are_within_the_width_of_what_is_clipped():
    plan, engine = planned(), rows_of(*[5] * 200)
    clip = read_clip(release(plan, engine, ReplayBits(b"clip")))
    assert clip.clip in {4, 6, 8}
    second = plan.price_clip(clip)
    exact = [total / 2**BITS for total in totals(second, engine)]
    nobody: Any = None
    held = 0
    for seed in range(50):
        stored = release(second, engine, ReplayBits(bytes([seed])))
        assert unpack(stored).clip is None
        for row, true in zip(
            post_process(stored, second.recipe, nobody, USUAL).to_arrow().to_pylist(), exact, strict=True
        ):
            held += abs(row["n"] - true) <= 50
            assert row["n"] - row["n_low"] <= 50
    assert held >= 78  # of 100; 95 are expected, and fewer than 79 have probability below 1e-9


def test_the_smallest_clip_is_taken_that_loses_no_more_than_half_the_noise():
    # a thousand units of 65 to 128 rows, and ten of 1,025 to 2,048: these lose about 1,450 each at a clip of 128
    cells = np.zeros((OCTAVES, 1))
    cells[7, 0], cells[11, 0] = 1_000, 10
    clips = tuple(list_clips(10**6))
    places = [
        choose_clip_for_noise(cells, clips, 1, 10.0, noise).place for noise in (2, 10_000, 28_000, 40_000, 10**10)
    ]
    assert [clips[place] for place in places] == [2048, 1024, 128, 96, 1]
    assert all(a >= b for a, b in pairwise(places))
    few = choose_clip_for_noise(np.zeros((OCTAVES, 1)), clips, 1, 10.0, 5.0, row=12)
    assert (clips[few.place], few.whole) == (12, 0.0)


# The curator.

TOML = """
[data]
source = "visits.csv"
[privacy]
epsilon = {overall}
[tables.visits]
unit = "who"
max_rows = "auto"
columns.g = {{ type = "text", values = ["a", "b"] }}
[analysts.ada]
epsilon = {own}
[analysts.bo]
epsilon = 100
"""


def write_visits(folder: Path, own: float = 100, overall: float = 1000, rows: int = 8) -> Path:
    """Write the policy and its data, and return its path."""
    lines = [f"{who},{'ab'[n % 2]}" for who in range(1_000) for n in range(rows)]
    (folder / "visits.csv").write_text("\n".join(["who,g", *lines]) + "\n")
    (folder / "p.toml").write_text(TOML.format(own=own, overall=overall))
    return folder / "p.toml"


@pytest.fixture
def write_policy(tmp_path: Path) -> Callable[..., Path]:
    return partial(write_visits, tmp_path)


@contextmanager
def open_seeded(path: Path) -> Iterator[Curator]:
    """Open a policy with bits that repeat: what is said of the charges holds for a clip of 8.

    With bits of the system a cell above the units is taken for occupied, and the clip larger, with probability 1.1%.
    """
    with tacit.open(path) as opened:
        opened.bits = ReplayBits(b"eight rows")
        yield opened


@pytest.fixture
def curator(write_policy: Callable[..., Path]) -> Iterator[Curator]:
    with open_seeded(write_policy()) as opened:
        yield opened


def spent(curator: Curator, analyst: str = "ada") -> Fraction:
    return Fraction(curator.ledger.standing(analyst).spent.epsilon, GRAINS_PER_EPSILON)


def reserved(curator: Curator) -> int:
    return sum(entry.kind is EntryKind.RESERVE for entry in curator.ledger.entries())


def problems(curator: Curator) -> tuple[Any, ...]:
    return tuple(verify(curator.ledger, Witness(ledger_files(curator.policy).witness)).problems)


def first_step(curator: Curator, within: Any = None) -> ClipChoicePlan:
    plan = curator.planner.plan(Question(BY_G, within=within or {"n": 50}), "ada")
    assert isinstance(plan, ClipChoicePlan)
    return plan


@pytest.mark.slow
def test_both_steps_are_charged_and_said_and_a_repeat_is_free(curator):
    ada, plan = curator.analyst("ada"), first_step(curator)
    answer = ada.ask(BY_G, within={"n": 50}, request="mine")
    clip = next(entry for entry in curator.ledger.entries() if entry.kind is EntryKind.RESERVE)
    assert clip.key == plan.key
    whole = plan.epsilon + Fraction(answer.receipt.cost.epsilon, GRAINS_PER_EPSILON)
    assert spent(curator) == whole
    assert any(
        f"epsilon {float(whole):g} in all: {float(plan.epsilon):g} of it" in note and f"entry {clip.sequence} " in note
        for note in answer.notes
    )
    step, rest = answer.receipt.clip, answer.receipt.cost
    assert step is not None
    assert (step.entry, step.charged, step.cost) == (clip.sequence, clip.charge, clip.charge)
    said = f"epsilon {float(whole):g}: {float(plan.epsilon):g} for the clip and {rest.text} for the answer"
    assert said in str(answer.receipt)
    told = answer.receipt.to_dict()
    assert (told["clip_entry"], Fraction(told["both_epsilon"])) == (clip.sequence, whole)
    assert Fraction(told["clip_epsilon"]) + Fraction(told["answer_epsilon"]) == whole
    assert check_receipt(curator.ledger, told) == []
    for name in ("clip_entry", "clip_charged_epsilon", "clip_epsilon", "both_charged_epsilon", "both_epsilon"):
        for forged in (told["entry"], 10**9, "0.001", "1e999", "1/0", "", None):
            assert check_receipt(curator.ledger, told | {name: forged}) != [], (name, forged)
    assert "clipped at what 8 rows" in " ".join(answer.notes)
    assert all(abs(row["n"] - 4_000) < 200 for row in answer.to_arrow().to_pylist())
    again = ada.ask(BY_G, within={"n": 50})
    assert (again.receipt.repeat, again["n"], again.notes) == (True, answer["n"], answer.notes)
    assert again.receipt.clip == replace(step, charged=BudgetCharge.zero())
    assert "a repeat, free" in str(again.receipt) and again.receipt.to_dict()["both_charged_epsilon"] == "0"
    assert spent(curator) == whole
    assert problems(curator) == ()


@pytest.mark.slow
def test_another_analyst_pays_for_both_steps_and_gets_the_same(curator):
    answer = curator.analyst("ada").ask(BY_G, within={"n": 50})
    other = curator.analyst("bo").ask(BY_G, within={"n": 50})
    assert other["n"] == answer["n"]
    assert spent(curator, "bo") == spent(curator, "ada")
    assert curator.ledger.overall().spent == curator.ledger.standing("ada").spent


@pytest.mark.slow
def test_explain_says_the_exact_price_to_who_paid_for_the_clip_only(curator):
    plan = first_step(curator)
    before = {name: curator.analyst(name).explain(BY_G, within={"n": 50}) for name in ("ada", "bo")}
    settle_clip(Question(BY_G, within={"n": 50}), plan, "ada", curator)
    after = curator.analyst("ada").explain(BY_G, within={"n": 50})
    assert before["ada"].epsilon_by_rows
    assert not after.epsilon_by_rows
    assert f"The clip is paid: it cost epsilon {float(plan.epsilon):g}, before" in str(after)
    assert f"makes epsilon {float(plan.epsilon) + after.epsilon:g} in all" in str(after)
    assert curator.analyst("bo").explain(BY_G, within={"n": 50}) == before["bo"]
    curator.analyst("ada").ask(BY_G, within={"n": 50})
    assert float(spent(curator)) == pytest.approx(float(plan.epsilon) + after.epsilon)


@pytest.mark.slow
def test_a_refusal_of_the_second_step_keeps_the_first_and_says_so(write_policy):
    # 8 rows at 0.0605 each need 0.484; the clip costs 0.1303 before that, and one row would fit
    path = write_policy(own=0.4)
    with open_seeded(path) as curator:
        ada, plan = curator.analyst("ada"), first_step(curator)
        for _ in range(2):
            with pytest.raises(SecondStepRefused) as refusal:
                ada.ask(BY_G, within={"n": 50})
            assert refusal.value.code is ErrorCode.BUDGET
            assert f"its epsilon {float(plan.epsilon):g} is spent" in refusal.value.what
            assert spent(curator) == plan.epsilon
        (epsilon,) = re.findall(r"epsilon=([0-9.]+)", refusal.value.fix)
        assert "asking it would be refused now" in str(ada.explain(BY_G, within={"n": 50}))
        assert len(ada.ask(BY_G, epsilon=Fraction(epsilon))) == 2
        assert spent(curator) == Fraction("0.4")
    write_policy(own=5)
    with open_seeded(path) as curator:  # with more budget it goes on from the clip
        answer = curator.analyst("ada").ask(BY_G, within={"n": 50})
        assert spent(curator) == Fraction("0.4") + Fraction(answer.receipt.charged.epsilon, GRAINS_PER_EPSILON)
        assert problems(curator) == ()


@pytest.mark.slow
def test_nothing_is_charged_where_a_clip_of_one_row_would_not_fit(write_policy):
    with open_seeded(write_policy(own=0.15)) as curator:
        ada = curator.analyst("ada")
        assert first_step(curator).epsilon < Fraction("0.15")
        with pytest.raises(Refused, match="with a clip of one row") as refusal:
            ada.ask(BY_G, within={"n": 50})
        assert not isinstance(refusal.value, SecondStepRefused)
        assert refusal.value.fix == "ask for at most epsilon=0.15, in place of within"
        assert str(ada.explain(BY_G, within={"n": 50}).refused) == str(refusal.value)
        assert (spent(curator), reserved(curator)) == (0, 0)


@pytest.mark.slow
def test_what_is_shared_admits_what_another_has_asked(write_policy):
    """Showing a stored answer to one more costs nothing of what all share, also where nothing of that is left."""
    path = write_policy(overall=1)
    with open_seeded(path) as curator:
        answer = curator.analyst("ada").ask(BY_G, within={"n": 50})
        left = Fraction(curator.ledger.overall().remaining, GRAINS_PER_EPSILON)
        curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM visits", epsilon=left)
        assert curator.analyst("bo").ask(BY_G, within={"n": 50})["n"] == answer["n"]


@pytest.mark.slow
def test_equal_questions_at_once_are_charged_once(curator):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: curator.analyst("ada").ask(BY_G, within={"n": 50})["n"], range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert reserved(curator) == 2
    assert problems(curator) == ()


KILLED = """
import json, os, signal, sys
import flint, numpy.random, pandas, pyarrow, scipy.stats
import tacit
from tacit.ledger.ledger import Ledger
for path, name, number in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        break
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
else:
    sys.exit(0)
signal.alarm(300)
true, calls = getattr(Ledger, name), []
def doomed(self, *arguments, **more):
    found = true(self, *arguments, **more)
    calls.append(1)
    if len(calls) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
setattr(Ledger, name, doomed)
with tacit.open(path) as curator:
    curator.analyst("ada").ask(sys.argv[2], within={"n": 50}, request="mine")
"""
KILLS = [("commit", 1), ("reserve", 2)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Policies whose curator was killed in a question, by where in the ledger that was."""
    found = {name: write_visits(tmp_path_factory.mktemp(name)) for name, _ in KILLS}
    places = json.dumps([(str(found[name]), name, number) for name, number in KILLS])
    done = subprocess.run([sys.executable, "-c", KILLED, places, BY_G], check=False, timeout=600)
    assert done.returncode == 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), KILLS)
def test_a_kill_between_the_steps_or_in_the_second_charges_nothing_twice(name, number, killed):
    with open_seeded(killed[name]) as curator:
        plan = first_step(curator)
        assert reserved(curator) == number
        answer = curator.analyst("ada").ask(BY_G, within={"n": 50}, request="mine")
        whole = plan.epsilon + Fraction(answer.receipt.cost.epsilon, GRAINS_PER_EPSILON)
        assert spent(curator) == whole
        assert reserved(curator) == 2
        assert problems(curator) == ()


@pytest.mark.slow
def test_a_clip_that_another_paid_for_is_not_charged_where_the_rest_does_not_fit(write_policy):
    with open_seeded(write_policy(overall=1)) as curator:
        settle_clip(Question(BY_G, within={"n": 50}), first_step(curator), "ada", curator)
        left = Fraction(curator.ledger.overall().remaining, GRAINS_PER_EPSILON)
        curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM visits", epsilon=left - Fraction("0.01"))
        with pytest.raises(Refused, match="shared by all analysts") as caught:
            curator.analyst("bo").ask(BY_G, within={"n": 50})
        assert not isinstance(caught.value, SecondStepRefused) and spent(curator, "bo") == 0


@pytest.mark.slow
@pytest.mark.parametrize("request_name", ["x" * 300, "\t", "used"])
def test_a_name_that_the_second_step_cannot_have_is_refused_before_the_first(curator, request_name):
    ada = curator.analyst("ada")
    ada.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.001, request="used")
    before = spent(curator)
    with pytest.raises((ParameterError, Refused)) as caught:
        ada.ask(BY_G, within={"n": 50}, request=request_name)
    assert not isinstance(caught.value, SecondStepRefused) and spent(curator) == before
    named = ada.ask(BY_G, within={"n": 50}, request="mine")
    whole = spent(curator)
    assert ada.ask(BY_G, within={"n": 50}, request="mine")["n"] == named["n"] and spent(curator) == whole


def test_a_first_step_that_failed_is_the_outcome_of_its_name(write_policy, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError

    with open_seeded(write_policy(own=0.25)) as curator:
        ada, plan = curator.analyst("ada"), first_step(curator)
        with monkeypatch.context() as patch:
            patch.setattr(curator.engine, "profile", fail)
            with pytest.raises(Failed):
                ada.ask(BY_G, within={"n": 50}, request="mine")
        for _ in range(2):  # the same failure, though what is left of 0.25 is too little for both steps
            with pytest.raises(Failed):
                ada.ask(BY_G, within={"n": 50}, request="mine")
        assert spent(curator) == plan.epsilon
        with pytest.raises(Refused, match="'mine' belongs to another question"):
            ada.ask(BY_G, within={"n": 51}, request="mine")
        failed = next(entry for entry in curator.ledger.entries() if entry.kind is EntryKind.RESERVE)
        assert failed.request == " clip of mine"
        with pytest.raises(ParameterError, match="it is not a name"):  # so no analyst gives it to another question
            ada.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.001, request=failed.request)
        assert problems(curator) == ()


@pytest.mark.slow
def test_under_one_name_both_steps_are_charged_once_and_said_alike(curator):
    ada = curator.analyst("ada")
    first, again = (ada.ask(BY_G, within={"n": 50}, request="mine").receipt for _ in range(2))
    assert reserved(curator) == 2
    assert again.clip == first.clip
    assert (again.charged, again.request) == (first.charged, "mine")
    assert check_receipt(curator.ledger, again.to_dict()) == []
