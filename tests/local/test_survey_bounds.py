"""Every printed bound is rounded away from what it bounds; every estimate that is shown lies in its interval."""

from __future__ import annotations

import json
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.local import KAryRandomizedResponse, Rappor
from tacit.local.posterior import describe_posterior
from tacit.local.survey.choices import YesNoQuestion
from tacit.local.survey.draw import describe_bounds, render_results, save_chart
from tacit.local.survey.load import parse_survey
from tacit.local.survey.outlook import describe_inference, forecast_survey, format_half_width, warn_large_epsilons
from tacit.local.survey.outlook import render_forecast as before
from tacit.local.survey.results import SupportCounts, estimate_survey
from tacit.local.survey.thresholds import SurveyEpsilon
from tacit.local.survey.words import describe_answer_bound, describe_report_bound
from tacit.serve.survey_page import format_posterior, render_page

EXAMPLES = 1000 if FULL else 25
VECTORS = json.loads((Path(__file__).parent / "survey_bounds.json").read_text(encoding="utf-8"))
TINY = Decimal("1e-50")
EPSILONS = st.one_of(
    st.fractions(Fraction(1, 1000), 20, max_denominator=10**6).map(str),
    st.decimals("0.001", "20", places=3, allow_nan=False).map(str),
    st.integers(2, 10**8).map(lambda number: f"ln {number}"),
    st.sampled_from(["ln 3", "1", "13.8155", "13.9", "14", "20", "0.001", "2.302585", "ln 1000000", "ln 1000001"]),
)


def asked(*epsilons):
    questions = [{"name": f"q{n}", "text": "?", "kind": "yes-no", "epsilon": each} for n, each in enumerate(epsilons)]
    return parse_survey({"id": "bounds", "title": "T", "questions": questions})


def true_epsilon(*epsilons):
    """The sum, by another library: Python's decimals, with 60 digits."""
    found = Decimal(0)
    for part in map(SurveyEpsilon.read, epsilons):
        number = Decimal(part.amount.numerator) / part.amount.denominator
        found += number.ln() if part.is_logarithm else number
    return found


def read(found):
    return Decimal(found.replace(",", ""))


def factors(said):
    return [read(found) for found in re.findall(r"([0-9][0-9,.]*(?:e\+[0-9]+)?) times surer", said)]


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(EPSILONS, min_size=1, max_size=4))
def test_at_most_so_many_times_surer_is_rounded_up(epsilons):
    survey = asked(*epsilons)
    said = [
        describe_report_bound(survey.odds),
        before(survey, forecast_survey(survey), 1000).splitlines()[0],
        *warn_large_epsilons(survey)[-1:],
    ]
    with localcontext(prec=60):
        truth = true_epsilon(*epsilons).exp()
        for sentence in said:
            for factor in factors(sentence):
                assert truth * (1 - TINY) <= factor <= truth * Decimal("1.1")
        one = true_epsilon(epsilons[0]).exp()
        (factor,) = factors(describe_answer_bound(survey.questions[0].epsilon.odds))
        assert one * (1 - TINY) <= factor <= one * Decimal("1.1")


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(EPSILONS, min_size=1, max_size=4))
def test_an_epsilon_is_rounded_up_wherever_it_is_printed(epsilons):
    survey = asked(*epsilons)
    shown = re.findall(r"epsilon ([0-9.]+) in all", before(survey, forecast_survey(survey), 1000))
    shown += re.findall(r"epsilon ([0-9.]+) in all", render_page(survey, "Survey, epsilon {{ epsilon }} in all.", "1"))
    assert len(shown) == 2
    with localcontext(prec=60):
        truth = true_epsilon(*epsilons) * (1 - TINY)
        for found in shown:
            assert truth <= read(found) <= truth * Decimal("1.0011")
        assert truth <= Decimal(survey.epsilon) <= truth * (1 + Decimal("1e-15"))


def test_fifty_questions_at_the_largest_price_have_a_bound():
    survey = asked(*["20"] * 50)  # e^1000: no double holds it
    assert describe_report_bound(survey.odds).startswith(
        "Whoever sees all of it can become at most 2.0e+434 times surer"
    )
    assert "epsilon 1000 in all" in before(survey, forecast_survey(survey), 1000)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: " ".join(vector["epsilons"])[:40])
def test_the_shared_bounds_come_out(vector):
    from tacit.local.survey.thresholds import Total
    from tacit.local.survey.words import epsilon_text, format_factor

    total = Total.of(SurveyEpsilon.read(epsilon) for epsilon in vector["epsilons"])
    assert [epsilon_text(total.epsilon), format_factor(total.odds)] == [vector["epsilon"], vector["times"]]


@settings(max_examples=EXAMPLES, deadline=None)
@given(EPSILONS)
def test_what_is_likely_at_most_is_rounded_up(epsilon):
    survey = asked(epsilon)
    with localcontext(prec=60):
        odds = true_epsilon(epsilon).exp()
        truth = 100 * odds / (1 + odds)
        said = format_posterior(survey.odds)
        assert said == "nearly 100 %" or truth * (1 - TINY) <= read(said.removesuffix(" %")) < 100


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.fractions(Fraction(1, 100), 20, max_denominator=1000), st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
def test_a_posterior_is_rounded_away_from_the_prior(epsilon, prior):
    said = describe_posterior(KAryRandomizedResponse(2, epsilon), prior)
    yes, most, no = (Decimal(found) for found in re.findall(r"(?:makes it|more than) ([0-9.]+) %", said))
    with localcontext(prec=60):
        r = Decimal(prior.numerator) / prior.denominator
        e = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        assert 100 * r * e / (r * e + 1 - r) <= yes + TINY
        assert min(100, 100 * r * e) <= most + TINY
        assert no - TINY <= 100 * r / (r + e * (1 - r))
        assert yes <= 100 * r * e / (r * e + 1 - r) + Decimal("0.1") and no >= 100 * r / (r + e * (1 - r)) - Decimal(
            "0.1"
        )


def test_a_lifetime_of_reports_is_bounded_outward():
    said = describe_posterior(Rappor(2, 4), 0.1)
    high, low = map(float, re.search(r"at most ([0-9.]+) % and at least ([0-9.]+) %", said).groups())
    # e^4 = 54.598: 5.4598/6.3598 = 85.849 %, and 0.1/(0.1 + 54.598 (0.9)) = 0.20309 %
    assert (high, low) == (85.9, 0.2)


@settings(max_examples=EXAMPLES, deadline=None)
@given(EPSILONS)
def test_what_an_answer_makes_likely_is_rounded_away_from_the_prior(epsilon):
    question = asked(epsilon).questions[0]
    yes, no = (Fraction(found) for found in re.findall(r"([0-9.]+) %(?: for|\.)", describe_inference(question)))
    sent = Fraction(1, 10) * question.own / (Fraction(1, 10) * question.own + Fraction(9, 10) * question.other)
    unsent = Fraction(1, 10) * question.other / (Fraction(1, 10) * question.other + Fraction(9, 10) * question.own)
    assert 0 <= yes - 100 * sent < Fraction(1, 10) and 0 <= 100 * unsent - no < Fraction(1, 10)


@settings(max_examples=EXAMPLES, deadline=None)
@given(EPSILONS, st.integers(1, 10**6))
def test_what_a_made_up_report_does_is_rounded_up(epsilon, users):
    survey = asked(epsilon)
    (found,) = estimate_survey(survey, SupportCounts(users, ((users, 0),)))
    (moved,) = re.findall(r"at most ([0-9.e+,]+) points", describe_bounds(found))
    truth = 100 / (users * survey.questions[0].gap)
    assert truth <= Fraction(moved.replace(",", "")) <= truth * Fraction(102, 100)
    assert Fraction(found.influence) * 100 >= truth


def test_how_far_an_interval_reaches_is_rounded_up():
    question = YesNoQuestion("a", "?", SurveyEpsilon.read(1))
    assert (
        format_half_width(question, Fraction(1, 20)) == "5 points"
        and format_half_width(question, 0.1430001) == "14.4 points"
    )


# Estimates and their intervals.


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(EPSILONS, st.integers(1, 30), st.data())
def test_a_shown_estimate_lies_in_its_interval(epsilon, users, data):
    questions = [
        {"name": "a", "text": "?", "kind": "yes-no", "epsilon": epsilon},
        {"name": "b", "text": "?", "kind": "choice", "options": ["x", "y", "z"], "epsilon": 1},
        {"name": "c", "text": "?", "kind": "number", "lower": -3, "upper": "5/3", "step": "1/3", "epsilon": 1},
    ]
    survey = parse_survey({"id": "small", "questions": questions})
    yes, top = data.draw(st.integers(0, users)), data.draw(st.integers(0, users))
    x = data.draw(st.integers(0, users))
    cells = ((users - yes, yes), (x, users - x, 0), (top,))
    confidence = data.draw(st.sampled_from([0.01, 0.5, 0.95, 0.999999]))
    found = estimate_survey(survey, SupportCounts(users, cells), confidence)
    for result in found:
        for row in result.rows:
            assert row.low <= row.clipped_value <= row.high
            raw = (Fraction(row.count, users) - result.question.other) / result.question.gap
            inside = raw if result.question.kind != "number" else Fraction(-3) + raw * Fraction(14, 3)
            assert row.value == pytest.approx(float(inside), rel=1e-9, abs=1e-9)  # unbiased, whatever is shown
            assert row.is_clipped == (row.clipped_value != row.value)
    said = render_results(survey, found, 100)
    rows = re.findall(r"[●│]\S*  +(-?[0-9.]+)(?: %)?(\*?) +(-?[0-9.]+) to (-?[0-9.]+)", said)
    assert len(rows) == 6
    for number, _, low, high in rows:
        assert float(low) <= float(number) <= float(high)
    assert (" unbiased estimate" in said) == any(star for _, star, _, _ in rows)
    for result, shown in zip(found, [result.to_dict() for result in found], strict=True):
        for row, plain in zip(result.rows, shown["rows"], strict=True):
            assert plain["value"] == row.value and plain["low"] <= plain["shown"] <= plain["high"]
            assert plain["clipped"] == row.is_clipped


def test_six_people_of_whom_none_says_yes(tmp_path):
    # epsilon ln 3: (0/6 - 1/4)/(1/2) = -50 %, which no share is
    survey = asked("ln 3")
    found = estimate_survey(survey, SupportCounts(6, ((6, 0),)))
    no, yes = found[0].rows
    assert (yes.value, yes.clipped_value, yes.low, yes.is_clipped) == (-0.5, 0.0, 0.0, True)
    assert (no.value, no.clipped_value, no.high, no.is_clipped) == (1.5, 1.0, 1.0, True)
    said = render_results(survey, found, 100)
    assert "-50.0 %  " not in said and "0.0 %*" in said and "100.0 %*" in said
    assert "* Clipped to what is possible: the unbiased estimate is 150.0 % for No, -50.0 % for Yes." in said
    pytest.importorskip("matplotlib")
    save_chart(tmp_path / "six.svg", survey, found)
    assert "-50.0" not in (tmp_path / "six.svg").read_text(encoding="utf-8")


def test_interval_ends_are_rounded_outward():
    survey = asked("ln 3")
    for yes in range(0, 1001, 7):
        (found,) = estimate_survey(survey, SupportCounts(1000, ((1000 - yes, yes),)))
        said = render_results(survey, [found], 100)
        ends = re.findall(r"(-?[0-9.]+) to (-?[0-9.]+) %", said)
        for row, (low, high) in zip(found.rows, ends, strict=True):
            assert Fraction(low) <= 100 * Fraction(row.low) and 100 * Fraction(row.high) <= Fraction(high)
