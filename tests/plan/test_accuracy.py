"""The price of an accuracy: enough, and hardly more than that."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, some

from tacit.accounting import basic
from tacit.aggregates.direct import DirectEstimator
from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.accuracy import plan_within
from tacit.plan.bind_question import plan_for
from tacit.plan.column_error import WantedAccuracy
from tacit.plan.plan import MAX_EPSILON, Plan
from tacit.policy.model import Policy
from tacit.query.nodes import ReleasedValue

EXAMPLES = 200 if FULL else 25
USUAL = Fraction(95, 100)
QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM visits", "n"),
    ("SELECT ward, SUM(age) AS s FROM visits GROUP BY ward", "s"),
    ("SELECT COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS c FROM visits", "s"),
    ("SELECT COUNT(DISTINCT patient_id) AS n, MEDIAN(age) AS m FROM visits", "n"),
]


def error(plan: Plan, name: str, confidence: Fraction = USUAL) -> Fraction:
    (result,) = [result for result in plan.recipe.results if result.name == name]
    assert isinstance(result.scalar, ReleasedValue)
    value = plan.recipe.values[result.scalar.index]
    assert isinstance(value, DirectEstimator)
    return value.half_width(plan.recipe.parts, confidence)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(
    st.sampled_from(QUESTIONS),
    st.one_of(st.integers(10, 2_000), st.fractions(Fraction(5), Fraction(5_000), max_denominator=10)),
    st.sampled_from([Fraction(1, 2), Fraction(9, 10), USUAL, Fraction(999, 1000)]),
)
def test_the_price_gives_the_accuracy_and_one_percent_less_does_not(
    policy: Policy, question: tuple[str, str], width: Any, confidence: Fraction
) -> None:
    sql, name = question
    try:
        made = plan_within(parse(sql), policy, {name: width}, confidence)
    except Refused:  # right where even the most that can be paid is not enough
        assert error(plan_for(parse(sql), policy, MAX_EPSILON), name, confidence) > width
        return
    price = basic.epsilon(made.loss)
    assert price is not None
    assert error(made, name, confidence) <= width
    less = plan_for(parse(sql), policy, price * Fraction(99, 100))
    assert error(less, name, confidence) > width


@pytest.mark.slow
@pytest.mark.parametrize("width", some([3, 40, 777], 3, 1))
def test_gaussian_noise_is_priced_too(policy_with_delta: Policy, width: int) -> None:
    many = ", ".join(f"COUNT(*) FILTER (WHERE age > {n}) AS n{n}" for n in range(20))
    query = parse(f"SELECT ward, {many} FROM visits GROUP BY ward")
    made = plan_within(query, policy_with_delta, {"n7": width}, USUAL)
    epsilon, delta = made.epsilon_delta
    assert error(made, "n7") <= width
    assert delta <= Fraction(1, 10**9)
    assert error(plan_for(query, policy_with_delta, epsilon * Fraction(99, 100)), "n7") > width


def test_the_hardest_of_several_columns_decides(policy: Policy):
    query = parse("SELECT COUNT(*) AS n, SUM(age) AS s FROM visits")
    both = plan_within(query, policy, {"n": 10, "s": 10_000}, USUAL)
    alone = plan_within(query, policy, {"n": 10}, USUAL)
    assert both.epsilon_delta == alone.epsilon_delta
    assert error(both, "n") <= 10 and error(both, "s") <= 10_000
    assert plan_within(query, policy, {"n": 10, "s": 100}, USUAL).epsilon_delta > both.epsilon_delta


def test_a_count_within_six(policy: Policy):
    # a patient moves it by 3, so q = exp(-e/3); P(|k| > 6) = 2 q^7/(1 + q) is 0.04996 at e = 1.371, 0.05009 at 1.370
    made = plan_within(parse("SELECT COUNT(*) AS n FROM visits"), policy, {"N": 6}, USUAL)
    (part,) = made.parts
    assert error(made, "n") == 6
    assert made.epsilon_delta[0] == Fraction(1371, 1000)
    assert part.sensitivity / part.mechanism.scale == made.epsilon_delta[0]


def test_more_confidence_costs_more(policy: Policy):
    query = parse("SELECT COUNT(*) AS n FROM visits")
    prices = [plan_within(query, policy, {"n": 50}, Fraction(c, 1000)).epsilon_delta for c in (500, 900, 950, 999)]
    assert prices == sorted(set(prices))


def test_a_price_has_four_digits(policy: Policy):
    for width in (70, 123, 4567):
        price = plan_within(parse("SELECT SUM(cost) AS s FROM visits"), policy, {"s": width}, USUAL).epsilon_delta[0]
        digits = f"{float(price):.12e}".split("e")[0].replace(".", "").rstrip("0")
        assert len(digits) <= 4


def test_a_question_without_an_aggregate_of_its_own_is_paid_like_any_other(policy: Policy):
    query = parse("SELECT COUNT(*) AS n FROM visits")
    price = plan_within(query, policy, {"n": 50}, USUAL).epsilon_delta[0]
    assert plan_within(query, policy, {"n": 50}, USUAL).key == plan_for(query, policy, price).key


@pytest.mark.parametrize(
    "column", ["AVG(age)", "STDDEV(age)", "MEDIAN(age)", "MODE(ward)", "COUNT(*) + 1", "SUM(age) / COUNT(*)"]
)
def test_what_depends_on_the_data_has_no_price(policy: Policy, column: str) -> None:
    query = parse(f"SELECT {column} AS x, COUNT(*) AS n FROM visits")
    with pytest.raises(Refused) as caught:
        plan_within(query, policy, {"x": 5}, USUAL)
    assert caught.value.code is ErrorCode.PARAMETER
    assert "depends on the data" in caught.value.what and "COUNT or SUM" in caught.value.fix
    plan_within(query, policy, {"n": 50}, USUAL)


def test_a_key_has_no_price(policy: Policy):
    with pytest.raises(Refused, match="depends on the data"):
        plan_within(parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"), policy, {"ward": 5}, USUAL)


def test_what_no_price_gives(policy: Policy):
    # the most is 1000: a sum of money moves by 15,000, so the scale of its noise is no less than 15
    query = parse("SELECT SUM(cost) AS s FROM visits")
    with pytest.raises(Refused) as caught:
        plan_within(query, policy, {"s": Fraction(1, 100)}, USUAL)
    assert caught.value.code is ErrorCode.PARAMETER
    least = error(plan_for(query, policy, MAX_EPSILON), "s")
    start = 'ask for no less than within={"s": '
    assert caught.value.fix.startswith(start) and caught.value.fix.endswith("}")
    said = Fraction(caught.value.fix.removeprefix(start)[:-1])
    assert least <= said < least * Fraction(100_001, 100_000)  # rounded up: what is said is reached
    for reached in (least, said):
        assert plan_within(query, policy, {"s": reached}, USUAL).epsilon_delta[0] <= MAX_EPSILON
    with pytest.raises(Refused, match="no epsilon is enough"):
        plan_within(query, policy, {"s": least - Fraction(1, 100)}, USUAL)


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ({}, "does not name a column"),
        ({"m": 5}, "there is no column 'm'"),
        ({"n": 0}, "above zero"),
        ({"n": -3}, "above zero"),
        ({"n": "many"}, "within"),
        ({"n": float("nan")}, "within"),
        ({"n": None}, "within"),
        ([("n", 5)], "does not name a column"),
    ],
    ids=str,
)
def test_an_accuracy_that_is_none(policy: Policy, within: Any, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plan_within(parse("SELECT COUNT(*) AS n FROM visits"), policy, within, USUAL)
    assert said in caught.value.what


def test_what_costs_nothing_needs_no_price(policy: Policy):
    made = plan_within(parse("SELECT SUM(0) AS z FROM visits"), policy, {"z": 50}, USUAL)
    assert made.epsilon_delta == (0, 0)


@pytest.mark.parametrize("width", [0, -1, float("nan"), float("inf"), "50", None])
@pytest.mark.parametrize("name", ["n", 'the "n"'])
def test_a_width_that_is_none_is_told_with_a_mapping_that_works(policy: Policy, name: str, width: Any):
    with pytest.raises(ParameterError) as caught:
        WantedAccuracy.parse({name: width}, USUAL)
    given = eval(f"dict({caught.value.fix})")
    assert given == {"within": {name: 50}}
    assert WantedAccuracy.parse(given["within"], USUAL).widths == ((name, Fraction(50)),)
