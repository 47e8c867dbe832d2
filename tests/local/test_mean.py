"""Means of numbers that people randomize: exact epsilon, unbiased, variances, intervals, bad reports."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc, ndtri
from scipy.stats import binom

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.confidence_intervals import binomial_interval, mean_half_width
from tacit.local.mean_mechanisms import HybridMechanism, PiecewiseMechanism, StochasticRounding
from tacit.local.mean_summary import MeanSummary
from tacit.local.uniform_grid import UniformGrid, rational_exp
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits

PROTOCOLS = [StochasticRounding, PiecewiseMechanism, HybridMechanism]
FINE = UniformGrid(-1, 1, steps=2**16)
EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(4)]


def said(protocol):
    """What each report says, in the order of the reports."""
    return np.array([segment.to_index(report) for segment in protocol.segments for report in range(segment.size)])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("steps", [1, 2, 7, 12])
def test_the_exact_epsilon_of_the_table_is_the_claim(protocol, epsilon, steps):
    asked = protocol(UniformGrid(0, 1, steps), epsilon)
    table = asked.matrix()
    # e^epsilon rounded down by at most 2^-64, and no more is lost
    assert table.ratio == rational_exp(epsilon)
    assert table.epsilon == pytest.approx(float(epsilon), abs=1e-14)
    assert asked.loss() == PureDp(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40, deadline=None)
@given(steps=st.integers(1, 40), epsilon=st.fractions(Fraction(1, 20), 8, max_denominator=100))
def test_reports_are_unbiased_and_their_variance_is_the_closed_form(protocol, steps, epsilon):
    asked = protocol(UniformGrid(0, steps, steps), epsilon)
    law = np.array([[float(p) for p in row] for row in asked.matrix().rows])
    worth = said(asked)
    for place, row in enumerate(law):
        assert row @ worth == pytest.approx(place, abs=1e-9 * steps / min(1, float(epsilon)))
        assert row @ (worth - place) ** 2 == pytest.approx(asked.variance(1, place), rel=1e-6)
        assert asked.variance(1, place) <= asked.max_variance(1) * (1 + 1e-12)


def test_the_variances_are_those_of_the_papers():
    # r = e^(1/2) = 1.648721; units of half the range. Rounding: ((e + 1)/(e - 1))^2 = 4.682696 at t = 0;
    # piecewise at t = 1: 4r/(3 (r - 1)^2) = 5.223628; the mixture: (r + 3)/(3r (r - 1)) + 4.682696/r = 4.289
    r = math.exp(0.5)
    rounding, piecewise, hybrid = (protocol(FINE, 1) for protocol in PROTOCOLS)
    assert rounding.max_variance(1) == pytest.approx(((math.e + 1) / (math.e - 1)) ** 2, rel=1e-9)
    assert piecewise.max_variance(1) == pytest.approx(4 * r / (3 * (r - 1) ** 2), rel=1e-3)
    assert hybrid.max_variance(1) == pytest.approx((r + 3) / (3 * r * (r - 1)) + rounding.max_variance(1) / r, rel=1e-3)
    # nearly the same for every value
    assert hybrid.variance(1, 0.0) == pytest.approx(hybrid.variance(1, 1.0), rel=1e-3)
    # t^2/(r - 1) + (r + 3)/(3 (r - 1)^2) at t = 1/2
    middle = 0.25 / (r - 1) + (r + 3) / (3 * (r - 1) ** 2)
    assert piecewise.variance(1, 0.5) == pytest.approx(middle, rel=1e-3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(6, 10), Fraction(1), Fraction(2), Fraction(6)], ids=str)
def test_the_mixture_is_never_worse_than_rounding_or_the_window(epsilon):
    rounding, piecewise, hybrid = (protocol(FINE, epsilon).max_variance(1) for protocol in PROTOCOLS)
    assert hybrid <= min(rounding, piecewise) * (1 + 1e-3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_sent_has_the_law_of_the_table(protocol, full):
    asked = protocol(UniformGrid(0, 6, 6), Fraction(3, 2))
    count = 400_000 if full else 60_000
    for place in (0, 2, 6):
        reports = asked.encode(np.full(count, float(place)), ReplayBits(f"law {place}".encode()))
        law = np.array([float(p) for p in asked.matrix().rows[place]])
        seen = np.bincount(reports, minlength=len(law))
        # Pearson's test; a false alarm has the chance 1e-10 in each of nine tests
        assert chdtrc(len(law) - 1, ((seen - count * law) ** 2 / (count * law)).sum()) > 1e-10
        # and the law of an epsilon that is a tenth larger is rejected
        wrong = np.array([float(p) for p in protocol(UniformGrid(0, 6, 6), Fraction(165, 100)).matrix().rows[place]])
        if len(wrong) == len(law) and place != 2:
            assert chdtrc(len(law) - 1, ((seen - count * wrong) ** 2 / (count * wrong)).sum()) < 1e-10


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_estimate_is_close_to_the_mean_of_a_crowd(protocol):
    asked = protocol(UniformGrid(0, 100, 1000), 1)
    values = np.linspace(0, 60, 40_000)
    found = asked.estimate(asked.summarize(asked.encode(values, ReplayBits(b"crowd"))))
    # 6.5 deviations of a normal: 1e-10
    assert abs(found.value - 30) < 6.5 * math.sqrt(asked.max_variance(40_000))
    assert found.low < 30 < found.high and found.users == 40_000


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("users", [20, 500])
def test_intervals_hold_the_mean_at_least_as_often_as_they_say(protocol, users, full):
    asked = protocol(UniformGrid(0, 10, 50), 1)
    runs = 4000 if full else 400
    values = np.linspace(0, 10, users) ** 2 / 10  # a crowd of different values
    truth = asked.grid.to_indices(values).mean() * asked.grid.width
    bits = ReplayBits(b"coverage")
    reports = asked.encode(np.tile(values, runs), bits).reshape(runs, users)
    found = [asked.estimate(asked.summarize(row), confidence=0.9) for row in reports]
    misses = sum(not each.low <= truth <= each.high for each in found)
    # at 90% the misses are at most binomial(runs, 0.1); more than this has a chance below 1e-10
    assert misses <= binom.isf(1e-10, runs, 0.1)
    # power: an interval a third as wide is rejected
    if users == 500:
        narrow = sum(abs(each.value - truth) > (each.high - each.low) / 6 for each in found)
        assert narrow > binom.isf(1e-10, runs, 0.1)


def test_the_reach_is_near_the_normal_law_for_many_and_bernsteins_for_few():
    # n = 10^8, variance 4, bound 4: 1.96 * 2/10^4 = 3.92e-4
    assert mean_half_width(10**8, 4, 4, 4, 0.05) == pytest.approx(1.95996 * 2e-4, rel=0.002)
    # n = 10: the normal law proves nothing (2 * 0.56 * 4/sqrt(40) = 0.71 > 0.05)
    log = math.log(40)
    few = (4 * log / 3 + math.sqrt((4 * log / 3) ** 2 + 80 * log)) / 10
    assert mean_half_width(10, 4, 4, 4, 0.05) == pytest.approx(few, rel=1e-6)
    assert mean_half_width(10**8, 4, 4, 4, 0.05) > -ndtri(0.025) * 2e-4


@given(total=st.integers(1, 400), data=st.data())
@settings(max_examples=60, deadline=None)
def test_binomial_ends_leave_out_at_most_the_miss(total, data):
    seen = data.draw(st.integers(0, total))
    low, high = binomial_interval(seen, total, 0.05)
    assert 0 <= low <= max(0, (seen - 1) / total) and min(1, (seen + 1) / total) <= high <= 1
    assert binom.cdf(seen, total, high) <= 0.025 + 1e-9 or high == 1
    assert binom.sf(seen - 1, total, low) <= 0.025 + 1e-9 or low == 0


def test_summaries_merge_and_are_serialized():
    asked = HybridMechanism(UniformGrid(0, 10, 20), 2)
    reports = asked.encode(np.linspace(0, 10, 300), ReplayBits(b"summary"))
    whole = asked.summarize(reports)
    assert asked.summarize(reports[:100]).merge(asked.summarize(reports[100:])) == whole
    assert MeanSummary.from_bytes(whole.to_bytes()) == whole
    assert len(asked.summarize(np.tile(reports, 1000)).to_bytes()) < len(whole.to_bytes()) + 20


def test_bad_reports_are_refused_with_a_code():
    asked, other = StochasticRounding(UniformGrid(0, 10, 20), 2), StochasticRounding(UniformGrid(0, 10, 20), 1)
    for bad in ([2], [-1], [0.5], [[0, 1]], ["1"]):
        with pytest.raises(Refused, match="report") as refusal:
            asked.summarize(bad)
        assert refusal.value.code is ErrorCode.REPORT
    summary = asked.summarize([0, 1])
    with pytest.raises(Refused, match="another protocol"):
        other.estimate(summary)
    with pytest.raises(Refused, match="two surveys: rounding over 0 to 10 in 20 steps at epsilon 2 and rounding"):
        summary.merge(other.summarize([1]))
    data = bytearray(summary.to_bytes())
    data[-2] ^= 1
    for damaged in (bytes(data), b"", b"x" * 10_000):
        with pytest.raises(Refused, match="truncated or changed"):
            MeanSummary.from_bytes(damaged)
    with pytest.raises(ParameterError, match="has no reports"):
        asked.estimate(asked.summarize(np.array([], dtype=np.int64)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_summaries_of_two_surveys_are_not_merged(protocol):
    asked = protocol(UniformGrid(0, 24, 96), 1)
    sleep, work = (asked.summarize([0, 1], survey) for survey in ("sleep", "work"))
    for other in (work, asked.summarize([0, 1]), MeanSummary.from_bytes(work.to_bytes())):
        with pytest.raises(Refused, match="two surveys: 'sleep', ") as refusal:
            sleep.merge(other)
        assert refusal.value.code is ErrorCode.REPORT
    assert (
        len(
            {
                each.mark
                for each in (sleep, work, asked.summarize([]), protocol(UniformGrid(0, 24, 48), 1).summarize([]))
            }
        )
        == 4
    )
    again = MeanSummary.from_bytes(sleep.to_bytes())
    assert again == sleep and again.survey == "sleep" and again.mark == sleep.mark
    assert again.merge(sleep).users == 4
    assert sleep.estimate(0.9) == asked.estimate(sleep, 0.9)
    for name in (5, "x" * 201):
        with pytest.raises(ParameterError, match="survey"):
            asked.summarize([0], name)


def written(*fields):
    """A summary as anyone could write it, checksum included."""
    body = json.dumps(fields).encode()
    return hashlib.sha256(body).digest() + body


def test_a_summary_without_a_name_is_written_as_in_the_first_version():
    found = StochasticRounding(UniformGrid(0, 24, 96), 1).summarize([0, 1, 1])
    assert found.to_bytes() == written(1, "rounding 1 0 24 96", [3], [2])


def test_a_forged_summary_is_a_possible_one_or_refused():
    name = "rounding 1/2 -3 24 96"
    assert MeanSummary.from_bytes(written(2, name, [3], [2], "s")).protocol == StochasticRounding(
        UniformGrid(-3, 24, 96), Fraction(1, 2)
    )
    bad = [
        (1, name, [3], [2], "s"),
        (2, name, [3], [2]),
        (2, name, [3], [2], ""),
        (2, name, [3], [2], "s", "t"),
        (2, name, [3], [2], 5),
        (2, name, [3], [2], "s" * 201),
        (3, name, [3], [2], "s"),
        (1, name, [3], [4]),  # three reports of at most 1 each
        (1, name, [-1], [0]),
        (1, name, [3], [-1]),
        (1, name, [3, 3], [2, 2]),
        (1, name, [3.0], [2]),
        (1, name, [True], [0]),
        (1, name, [2**63], [0]),
        (1, "rounding 1e999999999 0 24 96", [3], [2]),
        (1, "rounding 2/2 0 24 96", [3], [2]),
        (1, "rounding 1/0 0 24 96", [3], [2]),
        (1, "rounding 1000 0 24 96", [3], [2]),
        (1, "rounding 1 24 0 96", [3], [2]),
        (1, "os 1 0 24 96", [3], [2]),
        (1, "rounding", [3], [2]),
        (1, ["rounding"], [3], [2]),
        (1,),
    ]
    for fields in bad:
        with pytest.raises(Refused, match="not a summary") as refusal:
            MeanSummary.from_bytes(written(*fields))
        assert refusal.value.code is ErrorCode.REPORT


def test_the_longest_summary_is_still_read():
    wide = UniformGrid(Fraction(-(10**300) + 1, 10**300), Fraction(10**300, 10**300 - 1), 2**20)
    asked = HybridMechanism(wide, Fraction(10**300 + 1, 10**300))
    summary = asked.summarize([0, 1, 2], "\U0001f600" * 200)
    assert MeanSummary.from_bytes(summary.to_bytes()) == summary


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_person_s_report_is_that_of_a_crowd_of_one(protocol):
    asked = protocol(UniformGrid(0, 24, 96), 2)
    for seed in (b"a", b"b", b"c"):
        report = asked.encode_one(7.5, ReplayBits(seed))
        assert type(report) is int and report == asked.encode([7.5], ReplayBits(seed))[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(100)], ids=["least", "most"])
def test_the_ends_of_epsilon_give_an_estimate(protocol, epsilon):
    asked = protocol(UniformGrid(0, 24, 96), epsilon)
    found = asked.summarize(asked.encode([7.0] * 50, ReplayBits(b"ends"))).estimate()
    assert 0 <= found.low <= found.high <= 24 and math.isfinite(found.value)
    assert math.isfinite(asked.max_variance(1)) and math.isfinite(asked.influence)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_wrong_is_said(protocol):
    grid = UniformGrid(0, 24, 96)
    asked = protocol(grid, 1)
    for wrong in (
        lambda: protocol(grid, 1e-300),
        lambda: protocol(grid, 101),
        lambda: protocol(grid, Fraction(10**400 + 1, 10**400)),
        lambda: protocol((0, 24, 96), 1),
        lambda: asked.variance(0, 3),
        lambda: asked.variance(10, 300),
        lambda: asked.variance(10, "a"),
        lambda: asked.variance(1.5, 3),
        lambda: asked.max_variance(0),
        lambda: asked.encode([[1], [1, 2]], ReplayBits(b"")),
        lambda: asked.encode_one("7", ReplayBits(b"")),
        lambda: asked.estimate(None),
        lambda: asked.summarize([0]).merge(None),
    ):
        with pytest.raises(ParameterError) as caught:
            wrong()
        assert caught.value.fix
    for reports in ([[1], [1, 2]], None, "abc", [2**70], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(Refused) as refusal:
            asked.summarize(reports)
        assert refusal.value.code is ErrorCode.REPORT and refusal.value.fix
    for data in ("abc", None, 5):
        with pytest.raises(Refused, match="not a summary"):
            MeanSummary.from_bytes(data)


def test_a_grid_that_doubles_cannot_hold_is_an_error():
    for wrong in (
        (-1e308, 1e308, 10),
        (-(10**400), 10**400, 10),
        (0, 1e-320, 10),
        (0, Fraction(1, 10**101), 1),
        (10**17, 10**17 + 10, 10),  # doubles near 10^17 are 16 apart
        (Fraction(1, 10**400), 1, 10),
    ):
        with pytest.raises(ParameterError) as caught:
            UniformGrid(*wrong)
        assert caught.value.fix
    # doubles near 10^15 are 1/8 apart
    assert UniformGrid(10**15, 10**15 + 10, 10).to_indices([10**15 + 3]).tolist() == [3]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_liars_move_the_mean_by_at_most_their_share_of_the_influence(protocol):
    asked = protocol(UniformGrid(0, 10, 20), 1)
    reports = asked.encode(np.full(1000, 5.0), ReplayBits(b"liars"))
    worth = said(asked)
    bent = reports.copy()
    bent[:50] = int(worth.argmax())
    moved = asked.estimate(asked.summarize(bent)).value - asked.estimate(asked.summarize(reports)).value
    # a twentieth of the people
    assert 0 < moved <= asked.influence / 20
    assert asked.influence == pytest.approx((worth.max() - worth.min()) * asked.grid.width)


def test_values_out_of_range_are_clamped_and_what_is_no_number_is_an_error():
    grid = UniformGrid(0, 10, 10)
    assert grid.to_indices([-5, 3.4, 3.6, math.inf]).tolist() == [0, 3, 4, 10]
    with pytest.raises(ParameterError, match="NaN"):
        grid.to_indices([1.0, math.nan])
    with pytest.raises(ParameterError, match="numbers"):
        grid.to_indices(["3"])
    for wrong in [(1, 1, 5), (0, 1, 0), (0, 1, 2**21)]:
        with pytest.raises(ParameterError):
            UniformGrid(*wrong)
    with pytest.raises(ParameterError, match="epsilon"):
        StochasticRounding(grid, 0)
