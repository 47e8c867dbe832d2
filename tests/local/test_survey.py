"""A survey's law, exactly: thresholds, encoders, estimates, and what a report may look like."""

from __future__ import annotations

import json
import math
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.confidence_intervals import binomial_interval
from tacit.local.posterior import posterior_after_no, posterior_after_yes
from tacit.local.survey.choices import ChoiceQuestion, MultipleChoiceQuestion, YesNoQuestion
from tacit.local.survey.draw import describe_bounds, render_results, save_chart
from tacit.local.survey.load import load_public_form, load_survey, parse_survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.outlook import describe_inference, forecast_survey, warn_design, warn_large_epsilons
from tacit.local.survey.outlook import render_forecast as before
from tacit.local.survey.reports import MAX_REPORT_BYTES, SurveyReport
from tacit.local.survey.results import (
    MAX_RESPONDENTS,
    SupportCounts,
    estimate_survey,
    required_respondents,
    worst_half_width,
)
from tacit.local.survey.template import TEMPLATE
from tacit.local.survey.thresholds import TWO_TO_64, SurveyEpsilon, compute_flip_threshold
from tacit.local.survey.words import describe_randomization, describe_sent, format_people, format_probability
from tacit.sampling.bits import ReplayBits

VECTORS = json.loads((Path(__file__).parent / "survey_vectors.json").read_text(encoding="utf-8"))
ONE, LN3 = SurveyEpsilon.read(1), SurveyEpsilon.read("ln 3")
QUESTIONS = [
    YesNoQuestion("a", "?", LN3),
    YesNoQuestion("a", "?", SurveyEpsilon.read("0.001")),
    ChoiceQuestion("a", "?", ONE, ("x", "y", "z")),
    ChoiceQuestion("a", "?", SurveyEpsilon.read(20), ("x", "y", "z", "u", "v")),
    MultipleChoiceQuestion("a", "?", ONE, ("x", "y", "z"), 3),
    MultipleChoiceQuestion("a", "?", SurveyEpsilon.read(4), ("x", "y", "z", "u"), 1),
    NumberQuestion("a", "?", ONE, Fraction(0), Fraction(10), Fraction(1, 2)),
    NumberQuestion("a", "?", LN3, Fraction(-1), Fraction(1), Fraction(2)),
]


def at_most_e_to(ratio: Fraction, price: SurveyEpsilon) -> bool:
    """Whether a ratio is certainly at most e^epsilon."""
    if price.is_logarithm:
        return ratio <= price.amount
    with working_precision(300):
        return bool(to_interval(price.amount).exp() > to_interval(ratio))


class GivenBits:
    """Words from bytes, the lowest byte first."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def words(self, count):
        part, self.left = self.left[: 8 * count], self.left[8 * count :]
        assert len(part) == 8 * count
        return np.frombuffer(part, dtype="<u8").astype(np.uint64)


# The law.


def test_at_ln_3_the_truth_is_told_with_three_quarters():
    asked = YesNoQuestion("a", "?", LN3)
    assert asked.flip_threshold == 2**62  # a quarter of 2^64, exactly
    assert asked.matrix().rows == ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    assert asked.matrix().ratio == 3


@pytest.mark.slow
@given(
    st.fractions(Fraction(1, 1000), 20, max_denominator=10**6),
    st.integers(1, 63),
    st.integers(1, 64),
)
@settings(max_examples=60, deadline=None)
def test_a_threshold_is_the_least_integer_that_keeps_the_price(epsilon, others, parts):
    lie = compute_flip_threshold(SurveyEpsilon(epsilon), others, parts)
    share = SurveyEpsilon(epsilon / parts)
    assert 0 < lie < TWO_TO_64
    assert at_most_e_to(Fraction((TWO_TO_64 - lie) * others, lie), share)
    assert not at_most_e_to(Fraction((TWO_TO_64 - lie + 1) * others, lie - 1), share)  # one less would tell too much
    assert Fraction((TWO_TO_64 - lie) * others, lie) > 1  # and the truth is still the likeliest


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.kind} {q.epsilon}")
def test_the_exact_epsilon_of_the_integers_is_at_most_the_stated_one(question):
    matrix = question.matrix()
    assert all(sum(row) == 1 for row in matrix.rows)
    assert matrix.ratio == question.ratio
    assert at_most_e_to(question.ratio, question.epsilon)
    # and it is hardly more private than that: an integer's step is 1/lie of the odds, at epsilon 20 about 2^-36
    assert matrix.epsilon > question.epsilon.value - 2**-30


@pytest.mark.parametrize("prior", [0.01, 0.1, 0.5])
def test_nobody_becomes_surer_than_the_posterior_of_the_stated_epsilon(prior):
    asked = YesNoQuestion("a", "?", ONE)
    (keep, _), (turn, own) = asked.matrix().rows
    after = prior * own / (prior * own + (1 - prior) * (1 - keep))
    assert float(after) == pytest.approx(posterior_after_yes(1, prior), rel=1e-12)
    assert float(prior * turn / (prior * turn + (1 - prior) * keep)) == pytest.approx(
        posterior_after_no(1, prior), rel=1e-12
    )
    assert float(after) <= math.e * prior


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.kind} {q.epsilon}")
def test_estimates_are_unbiased_exactly(question):
    truths = range(len(question.matrix().rows))
    if question.kind == "several":
        every = [f"{n:0{len(question.options)}b}" for n in range(2 ** len(question.options))]
        truths = [bits for bits in every if bits.count("1") <= question.most]
        sent = every
        expected = [tuple(map(Fraction, bits)) for bits in truths]
    elif question.kind == "number":
        sent, expected = [0, 1], [(Fraction(k, question.steps),) for k in truths]
    else:
        sent, expected = list(truths), [tuple(Fraction(int(v == k)) for v in truths) for k in truths]
    for row, mean in zip(question.matrix().rows, expected, strict=True):
        supports = [question.support(each) for each in sent]
        for cell, share in enumerate(mean):
            chance = sum(p * support[cell] for p, support in zip(row, supports, strict=True))
            assert (chance - question.other) / question.gap == share


@pytest.mark.parametrize("survey", VECTORS["surveys"], ids=lambda each: each["form"]["id"])
def test_the_shared_vectors_come_out(survey):
    asked = load_public_form(json.dumps(survey["form"]))
    for vector in survey["vectors"]:
        bits = GivenBits(bytes.fromhex(vector["bytes"]))
        expected = SurveyReport(asked.digest, vector["id"], tuple(vector["answers"]))
        assert asked.respond(vector["truths"], bits) == expected
        assert bits.left == b""  # to the last word
        assert asked.accept(expected.to_json()) == expected


def test_a_word_below_the_threshold_turns_the_answer_and_the_threshold_does_not():
    asked = YesNoQuestion("a", "?", ONE)
    for word, sent in ((asked.flip_threshold - 1, 0), (asked.flip_threshold, 1), (0, 0), (TWO_TO_64 - 1, 1)):
        assert asked.encode(1, GivenBits(word.to_bytes(8, "little"))) == sent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "truth"),
    [(QUESTIONS[0], 1), (QUESTIONS[2], 2), (QUESTIONS[6], 15)],
    ids=["yes-no", "choice", "number"],
)
def test_what_is_drawn_has_the_law_of_the_matrix(question, truth):
    # Fixed seed; over seeds a false alarm has probability 1e-9. The law of epsilon 1.6 is rejected.
    draws, bits = 8000, ReplayBits(b"a law of a survey")
    law = np.array([float(chance) for chance in question.matrix().rows[truth]])
    seen = np.bincount([question.encode(truth, bits) for _ in range(draws)], minlength=len(law))
    other = type(question)(
        *[SurveyEpsilon.read("1.6") if isinstance(v, SurveyEpsilon) else v for v in vars_of(question)]
    )
    wrong = np.array([float(chance) for chance in other.matrix().rows[truth]])
    assert p_value(seen, law) >= 1e-9
    assert p_value(seen, wrong) < 1e-9


def vars_of(question):
    return [getattr(question, name) for name in question.__dataclass_fields__ if name != "kind"]


def p_value(seen, law):
    expected = law * seen.sum()
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(law) - 1)


# What comes of the reports.


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_made_up_report_moves_no_estimate_by_more_than_is_stated(data):
    survey = load_template()
    people = data.draw(st.integers(2, 30))
    bits = ReplayBits(data.draw(st.binary(min_size=4, max_size=4)))
    honest = [survey.support(survey.respond([1, 2, "010000", 80], bits)) for _ in range(people)]
    lie = (data.draw(st.integers(0, 1)), data.draw(st.integers(0, 4)), data.draw(st.sampled_from(["000000", "111111"])))
    liar = survey.support(SurveyReport(survey.digest, "0" * 32, (*lie, data.draw(st.integers(0, 1)))))
    before = estimate_survey(survey, SupportCounts.empty(survey).add(honest))
    after = estimate_survey(survey, SupportCounts.empty(survey).add([*honest[1:], liar]))
    for one, other in zip(before, after, strict=True):
        for row, moved in zip(one.rows, other.rows, strict=True):
            assert abs(row.value - moved.value) <= one.influence * (1 + 1e-12)
    # 1/(n (own - other)), for a share: at ln 3 the gap is 1/2
    assert before[0].influence == pytest.approx(2 / people)


def test_a_crowd_of_liars_moves_an_estimate_by_no_more_than_the_sum():
    # 900 honest people of whom a third say yes, 100 who send yes: at ln 3 a report moves a share by 2/1000 at most,
    # 100 of them by 20 points.
    survey = parse_survey({"id": "a", "questions": [{"name": "a", "text": "?", "kind": "yes-no", "epsilon": "ln 3"}]})
    bits = ReplayBits(b"a crowd")
    honest = [survey.support(survey.respond([int(n % 3 == 0)], bits)) for n in range(1000)]
    clean = estimate_survey(survey, SupportCounts.empty(survey).add(honest))[0]
    poisoned = estimate_survey(survey, SupportCounts.empty(survey).add([*honest[:900], *[((0, 1),)] * 100]))[0]
    moved = poisoned.rows[1].value - clean.rows[1].value
    assert 0.05 < moved <= 100 * clean.influence == pytest.approx(0.2)


@pytest.mark.slow
def test_intervals_cover_with_at_least_their_confidence():
    # 2,000 surveys of 200 people, a tenth of whom say yes, at epsilon 1. Each interval misses with probability at most
    # 0.05; more than 164 misses have probability below 1e-9 then. Power: half of the width misses far more often.
    question = YesNoQuestion("a", "?", ONE)
    survey = parse_survey({"id": "a", "questions": [{"name": "a", "text": "?", "kind": "yes-no", "epsilon": 1}]})
    assert binom.sf(164, 2000, 0.05) < 1e-9
    drawn = np.random.default_rng(7)
    own, other = float(question.own), float(question.other)
    counts = drawn.binomial(20, own, 2000) + drawn.binomial(180, other, 2000)
    missed = narrow = 0
    for count in counts.tolist():
        row = estimate_survey(survey, SupportCounts(200, ((200 - count, count),)))[0].rows[1]
        missed += not row.low <= 0.1 <= row.high
        half = [(end + row.value) / 2 for end in (row.low, row.high)]
        narrow += not half[0] <= 0.1 <= half[1]
    assert missed <= 164 < narrow


def test_so_many_people_are_needed_and_no_fewer():
    question = YesNoQuestion("a", "?", LN3)
    people = required_respondents(question)
    widths = [np.diff(binomial_interval(n // 2, n, 0.05))[0] / float(question.gap) for n in (people, people - 1)]
    assert widths[0] <= 0.1 < widths[1]


def test_too_many_people_to_count_are_said_to_be_more():
    # 64 bits share epsilon 0.001: a gap of 0.001/64/2 = 8e-6, and (1.96/(2 0.05 gap))^2 is 6e12
    survey = parse_survey(
        {
            "id": "a",
            "questions": [
                {"name": "a", "text": "?", "kind": "several", "epsilon": 0.001, "options": [str(n) for n in range(64)]}
            ],
        }
    )
    (found,) = estimate_survey(survey, SupportCounts(10, ((5,) * 64,)))
    assert found.required_users is None and found.to_dict()["needed"] is None
    assert f"more than {MAX_RESPONDENTS:,} people give intervals" in describe_bounds(found)
    assert format_people(1574) == "1,574 people" and format_people(1) == "1 person"


@pytest.mark.parametrize(
    "question", [YesNoQuestion("a", "?", LN3), ChoiceQuestion("a", "?", ONE, ("x", "y", "z"))], ids=["2", "3"]
)
@pytest.mark.parametrize("size", [1, 2, 7, 200])
def test_no_count_has_an_interval_that_reaches_farther(question, size):
    ends = [binomial_interval(count, size, 0.05) for count in range(size + 1)]
    widest = max(high - low for low, high in ends) / float(2 * question.gap)
    assert worst_half_width(question, size) == pytest.approx(widest, rel=1e-12)


def test_five_points_are_reached_with_as_many_people_as_are_needed():
    for question in (YesNoQuestion("a", "?", LN3), ChoiceQuestion("a", "?", ONE, ("x", "y", "z", "u"))):
        size = required_respondents(question)
        assert size is not None and worst_half_width(question, size) <= 0.05 < worst_half_width(question, size - 1)


def test_counts_add_up_in_any_order():
    survey = load_template()
    bits = ReplayBits(b"order")
    supports = [survey.support(survey.respond([n % 2, n % 5, "001000", n], bits)) for n in range(30)]
    whole = SupportCounts.empty(survey).add(supports)
    assert whole == SupportCounts.empty(survey).add(supports[20:]).add(reversed(supports[:20]))
    assert sum(whole.cells[1]) == whole.users == 30


def test_a_report_on_no_reports_is_refused():
    survey = load_template()
    with pytest.raises(Refused) as caught:
        estimate_survey(survey, SupportCounts.empty(survey))
    assert caught.value.code is ErrorCode.REPORT


# What people read.


def test_chances_are_told_as_they_are():
    assert format_probability(Fraction(3, 4)) == "3/4"
    assert format_probability(Fraction(3, 4) + Fraction(1, 2**64)) == "75.0 %"  # not exactly three quarters
    assert format_probability(1 - Fraction(1, 10**9)) == "99.9999999 %"  # not all
    assert "each with probability 1/6" in describe_randomization(
        ChoiceQuestion("a", "?", LN3, ("x", "y", "z", "u"))
    )  # 3/(3 + 3), 1/6 each
    assert describe_sent(QUESTIONS[5], "0000") == "none of them"
    assert describe_sent(QUESTIONS[6], 1) == "10"


def test_the_text_of_a_report_says_what_made_up_ones_can_do():
    survey = load_template()
    cells = ((600, 400), (200, 200, 200, 200, 200), (400, 400, 400, 400, 400, 400), (500,))
    found = estimate_survey(survey, SupportCounts(1000, cells))
    assert "One made-up report moves an estimate by at most 0.2 points" in describe_bounds(found[0])
    assert "at most 3 times surer" in describe_bounds(found[0])
    # half of the reports say 80: the middle of the range, exactly
    assert found[3].rows[0].value == pytest.approx(40)
    shown = render_results(survey, found)
    assert "500 sent 80 hours" in shown and "600 sent\n" in shown
    assert '"sent" counts the reports as they came' in shown
    assert "1,000 reports" in shown and "●" in shown and max(map(len, shown.splitlines())) <= 90


@pytest.mark.slow
def test_the_picture_says_how_many_reports_and_how_sure(tmp_path):
    pytest.importorskip("matplotlib")
    survey = parse_survey({"id": "a", "title": "A title " * 20, "questions": [YES_NO]})
    save_chart(tmp_path / "a.svg", survey, estimate_survey(survey, SupportCounts(1000, ((600, 400),)), 0.9))
    assert "1,000 reports, intervals at 90 %" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_before_it_goes_out_an_author_is_told_what_comes_of_it():
    survey = load_template()
    found = forecast_survey(survey, people=200)
    shown = before(survey, found)
    # at ln 3: (1/10 3/4)/(1/10 3/4 + 9/10 1/4) = 3/12, and (1/10 1/4)/(1/10 1/4 + 9/10 3/4) = 1/28
    assert "a yes makes it 25.0 % for its sender, a no 3.5 %" in describe_inference(survey.questions[0])
    assert "With probability 3/4 your true answer is sent" in shown and "epsilon 5.099 in all" in shown
    # 200 people at ln 3: Clopper and Pearson's ends of 100 of 200 are 0.5 -+ 0.0713, and the gap is 1/2
    assert "200 people give intervals within 14.3 points up and down; 1,574 people give 5 points" in shown
    assert max(map(len, shown.splitlines())) <= 90
    (few,) = warn_design(survey, found)
    assert few.startswith("too few people") and "cheated (14.3 points)" in few and "hours (12.4 hours)" in few
    assert (
        warn_design(survey, forecast_survey(survey, people=10_000))
        == warn_design(survey, forecast_survey(survey))
        == []
    )
    assert "1,574 people give intervals within 5 points" in before(survey, forecast_survey(survey))
    assert "the intervals say nothing" in before(survey, forecast_survey(survey, people=3))
    with pytest.raises(ParameterError, match="people"):
        forecast_survey(survey, people=0)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.kind} {q.epsilon}")
def test_a_large_epsilon_is_told_and_a_small_one_is_not(question):
    survey = load_template()
    alone = type(survey)("a", "a", "", (question,))
    told = warn_large_epsilons(alone)
    assert bool(told) == (question.epsilon.value > math.log(19))  # what was 1 in 2 can become 95 %
    assert all(f"epsilon {question.epsilon} hides little" in each for each in told)
    assert describe_inference(question).startswith("If 10 %")
    assert warn_large_epsilons(survey) == []
    many = parse_survey({"id": "a", "questions": [{**YES_NO, "name": f"q{n}", "epsilon": 2.9} for n in range(4)]})
    assert "all answers together: epsilon 11.6" in warn_large_epsilons(many)[0]  # 4 questions at 2.9


def test_a_most_that_changes_nothing_is_told():
    def asked(options, most):
        more = {"kind": "several", "options": [str(n) for n in range(options)], "most": most}
        return parse_survey({"id": "a", "questions": [{**YES_NO, **more}]})

    # two sets of 2 of 4 differ in all 4 boxes, as any two sets may; of 6 in 4
    for options, most, useless in (
        (4, 2, True),
        (5, 3, True),
        (6, 2, False),
        (4, 1, False),
        (4, 4, False),
        (2, 1, True),
    ):
        survey, free = asked(options, most), asked(options, options)
        said = warn_design(survey, forecast_survey(survey))
        assert bool(said) == useless
        assert (survey.questions[0].flip_threshold == free.questions[0].flip_threshold) == (useless or most == options)


def test_the_starter_asks_with_a_most_that_matters():
    (asked,) = (question for question in load_template().questions if question.kind == "several")
    free = MultipleChoiceQuestion(asked.name, asked.text, asked.epsilon, asked.options, len(asked.options))
    assert asked.flip_threshold < free.flip_threshold  # fewer lies


# The file, its form, and what is refused.


def load_template():
    return parse_survey(tomllib.loads(TEMPLATE))


def test_the_starter_survey_passes_its_own_check(tmp_path):
    (tmp_path / "survey.toml").write_text(TEMPLATE, encoding="utf-8")
    survey = load_survey(tmp_path / "survey.toml")
    assert {question.kind for question in survey.questions} == {"yes-no", "choice", "several", "number"}
    (tmp_path / "form.json").write_text(survey.to_json(), encoding="utf-8")
    assert load_survey(tmp_path / "form.json") == survey


def test_a_total_is_split_over_the_questions_that_have_no_epsilon_of_their_own():
    question = {"text": "?", "kind": "yes-no"}
    given = [{"name": "a", "epsilon": 1, **question}, {"name": "b", **question}, {"name": "c", **question}]
    survey = parse_survey({"id": "s", "epsilon": 2, "questions": given})
    assert [str(q.epsilon) for q in survey.questions] == ["1", "0.5", "0.5"]
    assert survey.epsilon == pytest.approx(2)


def test_another_word_is_another_survey():
    entries = tomllib.loads(TEMPLATE)
    digests = {load_template().digest}
    entries["questions"][0]["text"] = "Have you?"
    digests.add(parse_survey(entries).digest)
    entries["questions"][0]["epsilon"] = 1
    digests.add(parse_survey(entries).digest)
    entries["questions"].reverse()
    digests.add(parse_survey(entries).digest)
    assert len(digests) == 4


def test_a_form_whose_probabilities_reveal_more_than_stated_is_refused():
    form = json.loads(load_template().to_json())
    form["questions"][0]["lie"] = str(2**62 - 1)
    with pytest.raises(ParameterError, match="do not match its epsilons"):
        load_public_form(json.dumps(form))
    for broken in ("", "[]", "{}", '{"digest": 1}', json.dumps({**form, "questions": 7})):
        with pytest.raises(ParameterError):
            load_public_form(broken)


YES_NO = {"name": "a", "text": "?", "kind": "yes-no", "epsilon": 1}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": "Not this"}, "id"),
        ({"questions": []}, "questions"),
        ({"extra": 1}, "extra"),
        ({"title": "a\u202eb"}, "title"),
        ({"questions": [{**YES_NO, "name": "A b"}]}, "question 1"),
        ({"questions": [YES_NO, YES_NO]}, "questions"),
        ({"questions": [{**YES_NO, "kind": "rank"}]}, "a.kind"),
        ({"questions": [{**YES_NO, "options": ["x"]}]}, "a.options"),
        ({"questions": [{**YES_NO, "epsilon": 0}]}, "a.epsilon"),
        ({"questions": [{**YES_NO, "epsilon": 100}]}, "a.epsilon"),
        ({"questions": [{**YES_NO, "epsilon": "ln 1"}]}, "a.epsilon"),
        ({"questions": [{**YES_NO, "epsilon": "much"}]}, "a.epsilon"),
        ({"questions": [{**YES_NO, "text": ""}]}, "a.text"),
        ({"epsilon": 1, "questions": [{**YES_NO, "epsilon": "ln 3"}]}, "epsilon"),
        ({"epsilon": 1, "questions": [{**YES_NO, "epsilon": 2}]}, "epsilon"),
        ({"questions": [{"name": "a", "text": "?", "kind": "yes-no"}]}, "epsilon"),
        ({"questions": [{**YES_NO, "kind": "choice", "options": ["x", "X "]}]}, "a.options"),
        ({"questions": [{**YES_NO, "kind": "several", "options": ["x", "y"], "most": 3}]}, "a.most"),
        ({"questions": [{**YES_NO, "kind": "several", "options": ["x", "y"], "epsilon": "ln 3"}]}, "epsilon"),
        ({"questions": [{**YES_NO, "kind": "number", "lower": 1, "upper": 0}]}, "a.upper"),
        ({"questions": [{**YES_NO, "kind": "number", "lower": 0, "upper": 1, "step": 0.3}]}, "a.step"),
        ({"questions": [{**YES_NO, "kind": "number", "lower": 0}]}, "a.upper"),
    ],
)
def test_a_mistake_in_the_file_names_its_place_and_a_fix(change, place):
    with pytest.raises(ParameterError) as caught:
        parse_survey({"id": "s", "questions": [YES_NO], **change}).form()
    assert caught.value.name.startswith(place) and caught.value.fix


@pytest.mark.parametrize("given", ["1/00", "1/0", "0/0", "1/000000"])
def test_a_ratio_over_nothing_is_no_epsilon(given):
    with pytest.raises(ParameterError, match="is not an epsilon"):
        SurveyEpsilon.read(given)
    assert SurveyEpsilon.read("2/03") == SurveyEpsilon.read("2/3")


@pytest.mark.parametrize("epsilon", ["0", "50"])
def test_an_epsilon_out_of_range_is_shown_as_it_was_written(epsilon):
    for written in (epsilon, int(epsilon), float(epsilon)):
        with pytest.raises(ParameterError, match=rf"must be between 0\.001 and 20, got {epsilon}"):
            SurveyEpsilon.read(written)


def test_two_questions_of_one_name_are_told_apart():
    other = {**YES_NO, "name": "b"}
    with pytest.raises(ParameterError, match="number 2 and number 4 are both named a"):
        parse_survey({"id": "s", "questions": [other, YES_NO, {**other, "name": "c"}, YES_NO]})


def test_a_file_that_is_no_survey_is_told(tmp_path):
    with pytest.raises(ParameterError, match="cannot be read"):
        load_survey(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("id =")
    with pytest.raises(ParameterError, match="not TOML"):
        load_survey(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answers": [1, 2, "010000"]}, "4 answers"),
        ({"answers": [1, 2, "010000", 0, 0]}, "4 answers"),
        ({"answers": [2, 2, "010000", 0]}, "from 0 to 1"),
        ({"answers": [-1, 2, "010000", 0]}, "from 0 to 1"),
        ({"answers": [1, 5, "010000", 0]}, "from 0 to 4"),
        ({"answers": [True, 2, "010000", 0]}, "numbers and texts"),
        ({"answers": [1.0, 2, "010000", 0]}, "numbers and texts"),
        ({"answers": [1, 2, "01000", 0]}, "6 digits"),
        ({"answers": [1, 2, "012000", 0]}, "6 digits"),
        ({"answers": [1, 2, "010000", 2]}, "0 or 1"),
        ({"answers": [1, "2", "010000", 0]}, "from 0 to 4"),
        ({"answers": {"cheated": 1}}, "in a list"),
        ({"survey": "0" * 32}, "another survey"),
        ({"survey": 7}, "32 hexadecimal digits"),
        ({"id": "0" * 31}, "32 hexadecimal digits"),
        ({"id": "G" * 32}, "32 hexadecimal digits"),
        ({"name": "ada"}, "nothing else"),
    ],
)
def test_a_report_that_no_client_sends_is_refused(change, words):
    survey = load_template()
    good = {"survey": survey.digest, "id": "0" * 32, "answers": [1, 2, "010000", 0]}
    survey.accept(json.dumps(good))
    with pytest.raises(Refused, match=words) as caught:
        survey.accept(json.dumps(good | change))
    assert caught.value.code is ErrorCode.REPORT


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"null", b"[" * 9000, b'{"id": 1e999}', "not JSON"])
def test_what_is_no_report_at_all_is_refused(data):
    with pytest.raises(Refused) as caught:
        load_template().accept(data)
    assert caught.value.code is ErrorCode.REPORT


def test_a_report_that_is_too_large_is_refused_unread():
    with pytest.raises(Refused) as caught:
        load_template().accept(b"[" * (MAX_REPORT_BYTES + 1))
    assert caught.value.code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"cheated": "no", "party": "Greens", "taken": []}, "hours"),
        ({"cheated": "no", "party": "Greens", "taken": [], "hours": 3, "more": 1}, "more"),
        ({"cheated": "maybe", "party": "Greens", "taken": [], "hours": 3}, "cheated"),
        ({"cheated": "no", "party": "Pirates", "taken": [], "hours": 3}, "party"),
        ({"cheated": "no", "party": "Greens", "taken": ["Cannabis", "Cocaine", "Ecstasy"], "hours": 3}, "taken"),
        ({"cheated": "no", "party": "Greens", "taken": 7, "hours": 3}, "taken"),
        ({"cheated": "no", "party": "Greens", "taken": [], "hours": 81}, "hours"),
        ({"cheated": "no", "party": "Greens", "taken": [], "hours": "1e9"}, "hours"),
    ],
)
def test_an_answer_that_cannot_be_is_asked_for_again_and_not_shown(given, name):
    with pytest.raises(ParameterError) as caught:
        load_template().read(given)
    assert caught.value.name == name
    assert "Pirates" not in str(caught.value) and "maybe" not in str(caught.value)


def test_answers_are_read_as_people_write_them():
    survey = load_template()
    assert survey.read({"cheated": True, "party": "greens", "taken": "painkillers, Cocaine", "hours": "37.3"}) == [
        1,
        1,
        "100100",
        75,
    ]
    assert survey.read({"cheated": "N", "party": "Rather not say", "taken": "", "hours": 80}) == [0, 4, "000000", 160]


SIBLINGS = ChoiceQuestion("siblings", "How many?", ONE, ("0", "1", "2", "3 or more"))
BOXES = MultipleChoiceQuestion("boxes", "Which?", ONE, ("2", "1", "a, b", "3"), 2)


def test_in_a_file_an_option_is_its_words_and_never_a_number():
    assert [SIBLINGS.read(given) for given in ("0", 0, 1, "2", "3 OR more")] == [0, 0, 1, 2, 3]
    for wrong in ("3", 3, "4", True, 1.0, None, ["1"]):  # positions, and what is no text
        with pytest.raises(ParameterError, match="in the same words"):
            SIBLINGS.read(wrong)
    assert BOXES.read([1, "3"]) == "0101" and BOXES.read("1, 3") == "0101"
    assert BOXES.read("a, b") == BOXES.read(["A, B"]) == "0010"  # words with a comma in them
    with pytest.raises(ParameterError, match="in the same words"):
        BOXES.read([4])


def test_at_a_prompt_an_option_is_its_number_and_never_its_words():
    assert [SIBLINGS.choose(typed) for typed in ("1", " 2 ", "4")] == [0, 1, 3]
    for typed in ("0", "5", "3 or more", "", "-1", "1.0", "\u0661"):
        with pytest.raises(ParameterError, match="from 1 to 4"):
            SIBLINGS.choose(typed)
    assert BOXES.choose("1, 3") == "1010" and BOXES.choose("") == "0000"
    assert YesNoQuestion("a", "?", ONE).choose("y") == 1 and QUESTIONS[6].choose("3.4") == 7  # steps of one half


@pytest.mark.parametrize(
    ("question", "truth", "words"),
    [(SIBLINGS, 0, "0"), (BOXES, "1010", "2, a, b"), (BOXES, "0000", "none of them"), (QUESTIONS[6], 7, "3.5")],
)
def test_a_true_answer_is_shown_to_whoever_gave_it(question, truth, words):
    assert question.describe_answer(truth) == words
