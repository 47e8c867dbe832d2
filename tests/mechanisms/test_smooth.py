"""Smooth sensitivity: the guarantee from the exact law on all tiny data, both constants of the proof, and the draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Script
from tests.support.counts import OFF, enough

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.smooth import SmoothMedian
from tacit.privacy.local import median_smooth_sensitivity
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11  # of each of two tests of fit


def neighbors(data, upper):
    return {tuple(sorted([*data[:i], value, *data[i + 1 :]])) for i in range(len(data)) for value in range(upper + 1)}


@pytest.mark.parametrize(("rows", "upper"), [(1, 4), (2, 4), (3, 4), (4, 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(6)], ids=str)
@pytest.mark.parametrize("decay", [Fraction(1, 20), Fraction(1, 4), Fraction(9, 20)], ids=str)
def test_the_guarantee_on_all_tiny_data(rows, upper, epsilon, decay):
    mechanism = SmoothMedian(0, upper, (epsilon - 2 * decay * epsilon) * Fraction(2, 3), decay * epsilon)
    assert mechanism.loss() == PureDp(epsilon)
    with working_precision(100):
        laws = {data: mechanism.law(data) for data in combinations_with_replacement(range(upper + 1), rows)}
        assert all(abs(sum(law.values()) - 1) < 1e-25 for law in laws.values())
        worst = max(
            (laws[data][k] / laws[other][k]).log()
            for data in laws
            for other in neighbors(data, upper)
            for k in laws[data]
        )
        assert 0 < worst <= to_interval(epsilon)


def test_both_constants_are_needed():
    # ln density at distance u with scale s: 2 ln s - 3/2 ln(s^2 + u^2)
    def density(u, s):
        return 2 * math.log(s) - 1.5 * math.log(s * s + u * u)

    # a shift of alpha s around u = s loses 3/2 alpha, as alpha falls
    alpha = 1e-4
    assert density(1 - alpha / 2, 1) - density(1 + alpha / 2, 1) == pytest.approx(1.5 * alpha, rel=1e-6)
    # a dilation by exp(beta) loses 2 beta in the far tail
    assert density(1e9, math.exp(0.3)) - density(1e9, 1) == pytest.approx(0.6, rel=1e-6)


def test_the_tail_shows_the_dilation():
    # 19 rows of 0 need nine changes until the median can cross the range, 18 and one at its end need eight: the same
    # median, and S larger by exp(beta). At u = 999 and s near 11 or 18 the loss is 2 beta to a thousandth.
    mechanism = SmoothMedian(0, 1_000, Fraction(1), Fraction(1, 2))
    one, other = [0] * 19, [0] * 18 + [1_000]
    steps = [median_smooth_sensitivity(values, 0, 1_000, mechanism.beta).steps for values in (one, other)]
    assert steps == [9, 8]
    with working_precision(200):
        loss = (mechanism.law(other)[999] / mechanism.law(one)[999]).log()
    assert float(loss) == pytest.approx(2 * 0.5, rel=1e-3)


def test_local_sensitivity_itself_would_not_do():
    # Noise of the local sensitivity alone: data whose median cannot move gets none, its neighbor some. Smooth noise
    # never vanishes: [0, 0, 0] in [0, 4] has local sensitivity 0 and S = 4 e^-beta.
    assert median_smooth_sensitivity([0, 0, 0], 0, 4, Fraction(1)).width == 4
    with working_precision(100):
        law = SmoothMedian(0, 4, Fraction(1), Fraction(1)).law([0, 0, 0])
        assert all(chance > 0.001 for chance in law.values())


def p_value(drawn, law):
    """Pearson's test, in bins of at least a hundredth."""
    counts = Counter(drawn)
    observed, expected, seen, share = [], [], 0, 0.0
    for k, chance in law.items():
        seen, share = seen + counts[k], share + chance
        if share > 0.01:
            observed.append(seen)
            expected.append(share * len(drawn))
            seen, share = 0, 0.0
    observed[-1] += seen
    expected[-1] += share * len(drawn)
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(arb(statistic / 2).gamma_upper((len(observed) - 1) / 2, regularized=1))


@pytest.mark.slow
@pytest.mark.parametrize("values", [[50] * 4 + [52] * 5, [10, 40, 60]], ids=len)
def test_draws_have_the_law(values):
    mechanism = SmoothMedian(0, 100, Fraction(4), Fraction(1))
    bits = ReplayBits(f"smooth SmoothMedian {len(values)}".encode())
    drawn = [mechanism.release(values, bits) for _ in range(enough(12_000))]

    def law(stretch):
        with working_precision(100):
            stretched = SmoothMedian(0, 100, mechanism.alpha * stretch, mechanism.beta)
            return {k: float(p) for k, p in stretched.law(values).items()}

    assert p_value(drawn, law(1)) > ALARM
    assert p_value(drawn, law(1 + OFF)) < ALARM
    assert p_value(drawn, law(1 - OFF)) < ALARM


@pytest.mark.parametrize("k", [46, 50, 53])
def test_next_to_a_boundary_more_bits_decide(k):
    mechanism, values = SmoothMedian.calibrated(1, 0, 100), [50] * 40 + [52] * 41
    with working_precision(400):
        law = mechanism.law(values)
        edge = sum((law[i] for i in range(k + 1)), arb(0))  # U below it gives k or less
        digits = int((edge * arb(2) ** 128).floor().unique_fmpz())
    first, second = digits >> 64, digits & (2**64 - 1)
    assert mechanism.release(values, Script(first - 1)) == k
    assert mechanism.release(values, Script(first + 1)) == k + 1
    for words, found in [((first, second - 1), k), ((first, second + 1), k + 1)]:
        script = Script(*words)
        assert mechanism.release(values, script) == found
        assert script.left == []


def test_the_ends_of_the_range_take_the_tails():
    mechanism = SmoothMedian.calibrated(1, 0, 100)
    assert mechanism.release([50] * 3, Script(1)) == 0
    assert mechanism.release([50] * 3, Script(2**64 - 2)) == 100
    assert mechanism.release([50] * 3, Script(0)) == 0
    assert mechanism.release([50] * 3, Script(2**64 - 1)) == 100
    assert SmoothMedian.calibrated(1, 7, 7).release([1, 2], Script()) == 7


def test_figures_of_the_median():
    # 1,001 rows, one on each step of [0, 1000], epsilon 1: beta = 1/4 and S = (k + 1) e^(-k/4), best at k = 3: 4
    # e^-0.75 = 1.8895, s = 5.668; at 95 %: 5.668 * 0.95/sqrt(1 - 0.95^2) = 17.2, so w = 17. Laplace noise of the global
    # sensitivity 1000 has w = 1000 ln 20 = 2996: the median is worthless with it.
    values = range(1_001)
    smooth = median_smooth_sensitivity(values, 0, 1_000, Fraction(1, 4))
    assert (smooth.width, smooth.steps) == (4, 3)
    assert SmoothMedian.calibrated(1, 0, 1_000).error(0.95, values) == 17
    assert Laplace.calibrated(Fraction(1), 1_000).error(Fraction(95, 100)) == 2_996


def test_error_is_the_least_that_covers():
    mechanism, values = SmoothMedian.calibrated(2, 0, 10_000), [5_000] * 40 + [5_002] * 41
    with working_precision(100):
        law = mechanism.law(values)
        for confidence in (0.5, 0.9, 0.99):
            w = mechanism.error(confidence, values)
            covered = [sum((law[5_002 + i] for i in range(-v, v + 1)), arb(0)) for v in (w - 1, w)]
            assert covered[0] < confidence <= covered[1]


def test_large_values_lose_nothing():
    # noise below one half: S = 2^80 e^-(50 * 10) or so
    mechanism = SmoothMedian(0, 2**80, Fraction(1), Fraction(10))
    assert mechanism.release([2**70 + 1] * 101, ReplayBits(b"large")) == 2**70 + 1


NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 1j]


@settings(deadline=None)
@given(st.sampled_from(NUMBERS))
def test_bad_numbers(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        SmoothMedian.calibrated(value, 0, 1)
    with pytest.raises(ParameterError, match="alpha: "):
        SmoothMedian(0, 1, value, Fraction(1))
    with pytest.raises(ParameterError, match="beta: "):
        SmoothMedian(0, 1, Fraction(1), value)
    with pytest.raises(ParameterError, match="confidence: "):
        SmoothMedian.calibrated(1, 0, 1).error(value, [1])


@settings(deadline=None)
@given(st.sampled_from([math.nan, math.inf, 1.0, "1", True, None]))
def test_bad_values(value):
    with pytest.raises(ParameterError, match="values: "):
        SmoothMedian.calibrated(1, 0, 1).release([value], ReplayBits(b""))
    with pytest.raises(ParameterError, match="upper: "):
        SmoothMedian.calibrated(1, 0, value)
    with pytest.raises(ParameterError, match="lower: "):
        SmoothMedian.calibrated(1, value, 3)


def test_other_mistakes():
    with pytest.raises(ParameterError, match="upper: is below lower"):
        SmoothMedian.calibrated(1, 3, 1)
    with pytest.raises(ParameterError, match="values: there are none"):
        SmoothMedian.calibrated(1, 0, 1).release([], ReplayBits(b""))
