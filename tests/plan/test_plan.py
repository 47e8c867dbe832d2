"""Plans: what moves how far, what it costs, which questions are the same, and the plan in words.

Set TACIT_WRITE=1 to write what is printed now into the fixtures, and review the difference.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.bits import Ones

from tacit.accounting import basic
from tacit.aggregates.direct import DirectEstimator
from tacit.aggregates.mean import MeanEstimator
from tacit.aggregates.registry import read_question as parse
from tacit.answers.stored import Release
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.threshold import Threshold
from tacit.plan.bind_question import plan_for
from tacit.plan.explain import explain
from tacit.plan.noise import Pick
from tacit.plan.plan import Plan
from tacit.plan.split import MAX_GROUPS
from tacit.policy.model import Policy
from tacit.privacy.loss import Compose, LaplaceNoise, decode, encode
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import Quantize, Scan
from tacit.sampling.bits import ReplayBits

MakePlan = Callable[..., Plan]
FILES = sorted((Path(__file__).parent / "fixtures").rglob("*.sql"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_plan_in_words(file: Path, policy: Policy, policy_with_delta: Policy) -> None:
    known = policy_with_delta if file.parent.name == "with_delta" else policy
    sql, _, expected = file.read_text(encoding="utf-8").partition("\n---\n")
    printed = f"{explain(plan_for(parse(sql), known, 0.5), known, 0.95)}\n"
    if os.environ.get("TACIT_WRITE") == "1":
        file.write_text(f"{sql}\n---\n{printed}", encoding="utf-8")
        return
    assert printed == expected


def test_there_are_plans_to_review():
    assert len(FILES) >= 40


def moves(plan: Plan) -> dict[str, Fraction]:
    """By how much one unit moves each vector, in the analyst's units."""
    return {part.need.name: part.sensitivity * part.need.unit for part in plan.parts}


# Sensitivities: a patient keeps k = 2 groups and r = 3 rows in each.


def test_one_patient_more_or_less(plan: MakePlan):
    # without groups r = 3 rows: 3, 3 * 110, 3 * max(20, 10), 3 * 5000
    assert moves(plan("SELECT COUNT(*) FROM visits")) == {"COUNT(*)": 3}
    assert moves(plan("SELECT SUM(age) FROM visits")) == {"SUM(age)": 330}
    assert moves(plan("SELECT SUM(score) FROM visits")) == {"SUM(score)": 60}
    assert moves(plan("SELECT SUM(cost) FROM visits")) == {"SUM(cost)": 15_000}
    # with groups kr = 6 rows
    assert moves(plan("SELECT COUNT(*) FROM visits GROUP BY ward")) == {"COUNT(*)": 6}
    assert moves(plan("SELECT SUM(score) FROM visits GROUP BY ward")) == {"SUM(score)": 120}


def test_one_patient_replaced(plan: MakePlan):
    # without groups rW: 3, 3 * 110, 3 * (10 + 20)
    assert moves(plan("SELECT COUNT(*) FROM visits", neighbors="replace")) == {"COUNT(*)": 3}
    assert moves(plan("SELECT SUM(age) FROM visits", neighbors="replace")) == {"SUM(age)": 330}
    assert moves(plan("SELECT SUM(score) FROM visits", neighbors="replace")) == {"SUM(score)": 90}
    # ward and sex make G = 6 >= 2k groups: 2kr = 12, and 12 * 20
    by = "FROM visits GROUP BY ward, sex"
    assert moves(plan(f"SELECT COUNT(*) {by}", neighbors="replace")) == {"COUNT(*)": 12}
    assert moves(plan(f"SELECT SUM(score) {by}", neighbors="replace")) == {"SUM(score)": 240}
    # ward makes 3 groups, so at least one of them holds rows before and after: 3 * 3, and 3 * 30 + 2 * 3 * 20
    assert moves(plan("SELECT COUNT(*) FROM visits GROUP BY ward", neighbors="replace")) == {"COUNT(*)": 9}
    assert moves(plan("SELECT SUM(score) FROM visits GROUP BY ward", neighbors="replace")) == {"SUM(score)": 210}


def test_one_row_more_or_less(plan: MakePlan):
    assert moves(plan("SELECT COUNT(*) FROM beds GROUP BY ward")) == {"COUNT(*)": 1}
    assert moves(plan("SELECT SUM(rate) FROM beds GROUP BY ward")) == {"SUM(rate)": 1}
    assert moves(plan("SELECT COUNT(*) FROM beds GROUP BY ward", neighbors="replace")) == {"COUNT(*)": 2}
    assert moves(plan("SELECT COUNT(*) FROM beds", neighbors="replace")) == {"COUNT(*)": 1}


def test_a_unit_is_bounded_and_a_row_needs_no_bounding(plan: MakePlan):
    made = plan("SELECT COUNT(*) FROM visits GROUP BY ward").exact
    assert isinstance(made.source, Scan)
    assert ("patient_id", made.unit) in made.source.columns
    assert plan("SELECT COUNT(*) FROM visits GROUP BY ward").exact.keep == ContributionBounds(groups=2, rows=3)
    # of one group no patient touches two
    assert plan("SELECT COUNT(*) FROM visits").exact.keep == ContributionBounds(groups=1, rows=3)
    assert plan("SELECT COUNT(*) FROM beds GROUP BY ward").exact.unit is None


def test_a_cap_on_all_rows_is_what_a_count_is_priced_by(plan: MakePlan):
    caps = {"max_groups": 3, "max_rows_per_group": 4, "max_rows": 5}
    made = plan("SELECT COUNT(*), SUM(age) FROM visits GROUP BY ward", **caps)
    # 5 rows in all, of at most 110 years: of 3 groups of 4 it would be 12 rows
    assert made.exact.keep == ContributionBounds(groups=3, rows=4, total=5)
    assert moves(made) == {"COUNT(*)": 5, "SUM(age)": 550}
    assert made.recipe.notes[1] == (
        "After WHERE, each patient_id counts with at most 5 rows in all, in at most 3 groups, with at most 4 rows in "
        "each."
    )
    # of one group 4 rows are all that count, and the cap on all of them says nothing more
    assert plan("SELECT COUNT(*) FROM visits", **caps).exact.keep == ContributionBounds(groups=1, rows=4)
    # units are counted once in each of 3 groups
    assert moves(plan("SELECT COUNT(DISTINCT patient_id) FROM visits GROUP BY ward", **caps)) == {
        "COUNT(DISTINCT patient_id)": 3
    }


def test_the_mean_is_a_centered_sum_and_a_count(plan: MakePlan):
    by_ward = plan("SELECT AVG(age) FROM visits GROUP BY ward")
    # kr (hi - lo) / 2 = 6 * 55, and kr = 6
    assert moves(by_ward) == {"centered sum of AVG(age)": 330, "count of AVG(age)": 6}
    (mean,) = by_ward.recipe.values
    assert isinstance(mean, MeanEstimator)
    assert (mean.center, mean.lower, mean.upper) == (55, 0, 110)
    # twice the age less 110, so that odd bounds have a whole center too
    (centered,) = [part.need for part in by_ward.parts if part.need.name.startswith("centered")]
    assert [factor for factor, _ in centered.terms] == [2, -110]
    assert (centered.lower, centered.upper, centered.unit) == (-110, 110, Fraction(1, 2))
    # replaced, without groups: r times the whole width
    assert moves(plan("SELECT AVG(score) FROM visits", neighbors="replace"))["centered sum of AVG(score)"] == 90


def test_the_mean_of_money(plan: MakePlan):
    (mean,) = plan("SELECT AVG(cost) FROM visits").recipe.values
    assert isinstance(mean, MeanEstimator)
    assert (mean.center, mean.lower, mean.upper) == (2500, 0, 5000)


# Price.

QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT AVG(age), AVG(cost), COUNT(*), SUM(score) FROM visits GROUP BY ward, sex",
    "SELECT AVG(rate) FROM beds",
    "SELECT SUM(cost / 3), COUNT(*) / SUM(age) FROM visits HAVING COUNT(cost) > 3 ORDER BY AVG(balance)",
]


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1, Fraction(1, 3), 1e-6, 1000, 0.7])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_price_is_epsilon_exactly(plan: MakePlan, sql: str, epsilon: Any, neighbors: str) -> None:
    made = plan(sql, epsilon, neighbors=neighbors)
    # 0.1 is a tenth; what is asked is rounded down to a grain of 1e-12, and noise and charge are of that number
    asked = epsilon if isinstance(epsilon, Fraction) else Fraction(str(epsilon))
    exactly = Fraction(math.floor(asked * 10**12), 10**12)
    assert made.epsilon_delta == (exactly, 0)
    assert basic.epsilon(made.loss) == exactly
    assert decode(encode(made.loss)) == made.loss


def test_the_loss_says_the_law_the_scale_and_the_sensitivity(plan: MakePlan):
    # a count at 1/2: scale 3 / (1/2) = 6
    assert plan("SELECT COUNT(*) FROM visits").loss == Compose((LaplaceNoise(Fraction(6), 3),))


def test_the_price_is_split_evenly(plan: MakePlan):
    made = plan("SELECT AVG(age), SUM(cost) FROM visits", epsilon=1)
    assert [Fraction(part.sensitivity) / part.mechanism.scale for part in made.parts] == [Fraction(1, 3)] * 3


def test_parts_used_twice_are_paid_once(plan: MakePlan):
    def parts(sql: str) -> int:
        return len(plan(sql).parts)

    assert parts("SELECT COUNT(*), COUNT(*) + 1, COUNT(*) / 2 FROM visits") == 1
    assert parts("SELECT COUNT(*) FROM visits HAVING COUNT(*) > 3 ORDER BY COUNT(*)") == 1
    # the count of a mean is COUNT(x), which is a part already
    assert parts("SELECT AVG(cost), COUNT(cost) FROM visits") == 2
    # a sum is the centered sum of the mean, and its center times the count
    assert parts("SELECT AVG(cost), SUM(cost), COUNT(cost) FROM visits") == 2
    assert parts("SELECT AVG(cost), SUM(age) FROM visits") == 3
    # what cannot be NULL is counted by COUNT(*)
    assert parts("SELECT COUNT(*), COUNT(1), COUNT(COALESCE(age, 0)), AVG(COALESCE(age, 0)) FROM visits") == 2
    assert parts("SELECT COUNT(*), COUNT(age) FROM visits") == 2
    # equal meaning in other words
    assert parts("SELECT SUM(age) FILTER (WHERE smoker), SUM(CASE WHEN Smoker THEN AGE END) FROM visits") == 1


def test_two_names_of_one_aggregate_read_the_same_release(plan: MakePlan):
    made = plan("SELECT COUNT(*) AS a, AVG(cost) AS m, COUNT(*) AS b FROM visits")
    first, _, last = made.recipe.results
    assert first.scalar == last.scalar
    assert [type(value) for value in made.recipe.values] == [DirectEstimator, MeanEstimator]


def test_what_cannot_move_costs_nothing(plan: MakePlan):
    made = plan("SELECT SUM(0) FROM visits")
    assert (made.epsilon_delta, moves(made)) == ((0, 0), {"SUM(0)": 0})
    assert made.parts[0].mechanism.scale == 1  # and still gets the noise of one step


# The key of a repeat.

BASE = "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age > 3 GROUP BY ward"


@pytest.mark.parametrize(
    "sql",
    [
        "select  ward,\n count( * ) as n , avg( AGE ) as a\nfrom Visits where AGE > 3 group by WARD -- the same",
        "SELECT COUNT(*) AS people, AVG(age) AS years, ward AS station FROM visits WHERE age > 3 GROUP BY ward",
        "SELECT AVG(age), COUNT(*) FROM visits AS v WHERE v.age > 3 GROUP BY v.ward",
        f"{BASE} HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 2 OFFSET 1",
        "SELECT ward, ROUND(AVG(age) * COUNT(*)) AS years FROM visits WHERE age > 3 GROUP BY ward",
        "SELECT ward, COUNT(*) FROM visits WHERE ((age > (3))) GROUP BY 1 ORDER BY AVG(age)",
    ],
)
def test_finishing_is_not_part_of_the_question(plan: MakePlan, sql: str) -> None:
    assert plan(sql).key == plan(BASE).key
    assert plan(sql).exact == plan(BASE).exact
    assert plan(sql).loss == plan(BASE).loss


@pytest.mark.parametrize(
    "sql",
    [
        BASE.replace("age > 3", "age > 4"),
        BASE.replace("age > 3", "age >= 3"),
        BASE.replace("age > 3", "age > 3.0"),
        BASE.replace(" WHERE age > 3", ""),
        BASE.replace("visits", "beds"),
        BASE.replace("AVG(age)", "AVG(score)"),
        BASE.replace("AVG(age)", "SUM(age)"),
        BASE.replace("COUNT(*)", "COUNT(cost)"),
        BASE.replace("GROUP BY ward", "GROUP BY ward, sex"),
        "SELECT COUNT(*), AVG(age) FROM visits WHERE age > 3",
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY ward",
    ],
)
def test_another_question_has_another_key(plan: MakePlan, sql: str) -> None:
    assert plan(sql).key != plan(BASE).key


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.6},
        {"epsilon": Fraction(1, 2) + Fraction(1, 10**12)},
        {"epoch": 2},
        {"neighbors": "replace"},
        {"max_groups": 1},
        {"max_rows_per_group": 4},
        {"max_rows": 4},
        {"max_rows": 6},
        {"columns": {"age": {"type": "int", "lower": 0, "upper": 111}}},
        {"columns": {"ward": {"type": "text", "values": ["A", "B", "D"]}}},
        {"columns": {"ward": {"type": "text", "values": ["B", "A", "C"]}}},
    ],
    ids=str,
)
def test_another_price_epoch_or_policy_has_another_key(plan: MakePlan, change: dict[str, Any]) -> None:
    assert plan(BASE, **change).key != plan(BASE).key


def test_constants_of_different_types_stay_apart(plan: MakePlan):
    # in Python 1 == True == 1.0: a key that took them for equal would show one question's answer to another
    keys = {
        plan(f"SELECT COUNT(*) FROM visits WHERE {condition}").key
        for condition in (
            "age = 1",
            "age = 1.0",
            "smoker = TRUE",
            "ward = '1'",
            "ward = 'TRUE'",
            "visited = '2025-01-01'",
        )
    }
    assert len(keys) == 6


def test_equal_constants_of_different_types_are_different_parts(plan: MakePlan):
    # SUM(1) is an integer and SUM(1.0) a double; the engine is told which
    made = plan("SELECT SUM(CASE WHEN smoker THEN 1 END), SUM(CASE WHEN smoker THEN 1.0 END) FROM visits")
    assert len(made.parts) == 2


def test_the_salt_follows_the_key(plan: MakePlan):
    # so that which rows are kept is another choice for each question
    one, other = plan(BASE), plan(BASE, epsilon=1)
    assert one.exact.salt == one.key[:16] != other.exact.salt


# Grids.


def grid(plan: Plan) -> tuple[Fraction, int, int]:
    (part,) = plan.parts
    argument = part.need.terms[0][1].argument
    assert isinstance(argument, Quantize)
    assert (argument.step, argument.lower, argument.upper) == (part.need.unit, part.need.lower, part.need.upper)
    return argument.step, argument.lower, argument.upper


def test_a_declared_step_is_the_grid(plan: MakePlan):
    assert grid(plan("SELECT SUM(cost) FROM visits")) == (Fraction(1, 100), 0, 500_000)


def test_the_default_grid_has_at_least_a_billion_steps(plan: MakePlan):
    # 1000 / 1e9 = 1e-6 is a power of ten
    assert grid(plan("SELECT SUM(balance) FROM visits")) == (Fraction(1, 10**6), -(10**9), 10**9)
    # 7000 / 1e9 = 7e-6, and the next power of ten below is 1e-6
    assert grid(plan("SELECT SUM(balance * 7) FROM visits")) == (Fraction(1, 10**6), -7 * 10**9, 7 * 10**9)


def test_a_grid_follows_from_the_expression(plan: MakePlan):
    assert grid(plan("SELECT SUM(cost * 2) FROM visits")) == (Fraction(1, 50), 0, 500_000)
    assert grid(plan("SELECT SUM(cost + 0.005) FROM visits")) == (Fraction(1, 200), 1, 1_000_001)
    assert grid(plan("SELECT SUM(cost / 3) FROM visits")) == (Fraction(1, 300), 0, 500_000)
    # age / 3.0 is on thirds: 110 / 3 is 110 of them
    assert grid(plan("SELECT SUM(age / 3.0) FROM visits")) == (Fraction(1, 3), 0, 110)


def test_bounds_are_rounded_outward_to_the_grid(plan: MakePlan):
    # 1000 / 3 on the default grid of 1e-7 is 3333333333.33 steps
    step, lower, upper = grid(plan("SELECT SUM(balance / 3) FROM visits"))
    assert (step, lower, upper) == (Fraction(1, 10**7), -3_333_333_334, 3_333_333_334)
    assert step * lower <= Fraction(-1000, 3) and Fraction(1000, 3) <= step * upper


def test_a_grid_too_fine_gives_way_to_its_least_multiple_that_is_not(plan: MakePlan):
    # cost * 1e-9 * cost: steps of 1e-13 up to 0.025 are 2.5e11 < 2**40; one more factor is too fine
    assert grid(plan("SELECT SUM(cost * 1e-9 * cost) FROM visits"))[0] == Fraction(1, 10**13)
    step, _, upper = grid(plan("SELECT SUM(cost * cost * cost) FROM visits"))
    # 1.25e11 in steps of 1e-6 are 1.25e17, which is 113,686.8 times 2**40
    assert (step, upper) == (Fraction(113_687, 10**6), -(-(125 * 10**15) // 113_687))


def test_integers_are_their_own_grid(plan: MakePlan):
    (part,) = plan("SELECT SUM(age * score) FROM visits").parts
    assert (part.need.unit, part.need.lower, part.need.upper) == (1, -2200, 1100)


# The release.


def test_every_declared_group_is_released_and_no_other(plan: MakePlan):
    made = plan("SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    assert made.release({("B",): (7,)}, Ones()) == Release(None, [[0, 7, 0]])
    by_both = plan("SELECT COUNT(*) FROM visits GROUP BY sex, ward")
    assert by_both.release({("M", "A"): (5,)}, Ones()) == Release(None, [[0, 0, 0, 5, 0, 0]])


def test_a_centered_sum_is_made_of_its_measures(plan: MakePlan):
    made = plan("SELECT AVG(age), COUNT(age) FROM visits")
    # three ages that add up to 130: 2 * 130 - 110 * 3 = -70
    by_function = {"sum": 130, "count": 3}
    exact = tuple(by_function[measure.function] for measure in made.exact.measures)
    released = dict(zip((part.need.name for part in made.parts), made.release({(): exact}, Ones()).parts, strict=True))
    assert released == {"centered sum of AVG(age)": [-70], "count of AVG(age)": [3]}


# The release of private keys. With bits of ones, every draw of noise is 0 and every key that may be left out is.


def test_private_groups_come_in_the_order_of_their_keys_and_null_is_last(plan: MakePlan):
    made = plan("SELECT CONCAT(ward, age) AS w, COUNT(*) FROM beds GROUP BY CONCAT(ward, age)", delta=1e-6)
    assert made.shown is not None and isinstance(made.shown.mechanism, Threshold)
    least = made.shown.mechanism.least()
    exact = {("b",): (least,), (None,): (least + 5,), ("a",): (least + 1,), ("rare",): (least - 1,), ("c",): (1,)}
    assert made.release(exact, Ones()) == Release([("a",), ("b",), (None,)], [[least + 1, least, least + 5]])
    backwards = dict(reversed(exact.items()))
    assert made.release(backwards, Ones()) == made.release(exact, Ones())


def test_selected_groups_are_those_that_enough_units_hold(plan: MakePlan):
    made = plan("SELECT diagnosis, COUNT(*), MEDIAN(age) FROM visits GROUP BY diagnosis", delta=1e-6)
    assert made.shown is not None and isinstance(made.shown.mechanism, PartitionSelection)
    always = made.shown.mechanism.always()
    functions = [measure.function for measure in made.exact.measures]
    assert sorted(functions) == ["count", "histogram", "units"]

    def cells(units: int, rows: int) -> tuple[Any, ...]:
        known = {"units": units, "count": rows, "histogram": {40: rows}}
        return tuple(known[function] for function in functions)

    # one key that is always shown, and one that many rows of a single unit hold
    release = made.release({("flu",): cells(always, 2 * always), ("rare",): cells(1, 3)}, ReplayBits(b"selected"))
    assert release.groups == [("flu",)]
    assert [len(part) for part in release.parts] == [1, 1]


def test_no_group_that_occurs_is_no_group_shown(plan: MakePlan):
    for measure in ("COUNT(*)", "SUM(age)"):
        sql = f"SELECT CONCAT(ward, age), {measure} FROM beds GROUP BY 1"
        made = plan(sql, delta=1e-6)
        assert made.release({}, Ones()) == Release([], [[] for _ in made.parts])


def test_an_answer_has_a_public_number_of_rows_at_most(plan: MakePlan):
    made = plan("SELECT CONCAT(ward, age) AS w, COUNT(*) FROM beds GROUP BY CONCAT(ward, age)", delta=1e-6)
    exact = {(f"{number:06}",): (10**6,) for number in range(MAX_GROUPS + 5)}
    release = made.release(exact, Ones())
    assert release.groups == list(exact)[:MAX_GROUPS]
    assert len(release.parts[0]) == MAX_GROUPS


def test_choices_of_groups_without_rows_are_made_too(plan: MakePlan):
    made = plan("SELECT ward, MEDIAN(age), MODE(sex) FROM visits GROUP BY ward")
    release = made.release({}, ReplayBits(b"choices"))
    assert release.groups is None
    for part, chosen in zip(made.parts, release.parts, strict=True):
        assert isinstance(part, Pick)
        upper = 110 if part.need.name == "MEDIAN(age)" else 1
        assert len(chosen) == 3 and all(0 <= number <= upper for number in chosen)


def test_a_price_is_shared_by_what_is_asked_once(plan: MakePlan):
    # a variance, its root, the mean and the count of one column are made of three vectors
    one = plan("SELECT VAR_SAMP(age) FROM visits", epsilon=1)
    all_of_them = plan("SELECT VAR_SAMP(age), STDDEV_POP(age), AVG(age), COUNT(age) FROM visits", epsilon=1)
    assert len(one.parts) == len(all_of_them.parts) == 3
    # the weights 0.45, 0.9 and 1 of 2.35; a mean asks for the sum as much as for the count
    shares = sorted(Fraction(part.sensitivity) / part.mechanism.scale for part in one.parts)
    assert shares == [Fraction(45, 235), Fraction(90, 235), Fraction(100, 235)]
    shares = sorted(Fraction(part.sensitivity) / part.mechanism.scale for part in all_of_them.parts)
    assert shares == [Fraction(45, 245), Fraction(100, 245), Fraction(100, 245)]
    # two quantiles are two choices, the same one twice is one
    assert len(plan("SELECT MEDIAN(age), QUANTILE(age, 0.5), MAX(age) FROM visits").parts) == 2


def test_where_a_mean_cannot_be_null_it_shares_the_count_of_all_rows(plan: MakePlan):
    assert len(plan("SELECT AVG(stay), COUNT(*) FROM visits").parts) == 2
    assert len(plan("SELECT AVG(age), COUNT(*) FROM visits").parts) == 3
