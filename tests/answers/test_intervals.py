"""Error bars: exact for counts and sums, at least the confidence for means and variances, close for expressions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import enough, some

from tacit.aggregates.base import ReleasedVector, Releases
from tacit.aggregates.mean import MeanEstimator, _edge
from tacit.aggregates.variance import VarianceEstimator
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.sampling import gaussian, laplace
from tacit.sampling.bits import ReplayBits

SCALES = [
    Fraction(1, 1000),
    Fraction(1, 20),
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 5),
    Fraction(10),
    Fraction(123456, 789),
    Fraction(10**6),
    Fraction(10**15 + 1, 7),
    Fraction(2) ** 60,
]
CONFIDENCES = [
    Fraction(1, 100),
    Fraction(1, 2),
    Fraction(68, 100),
    Fraction(9, 10),
    Fraction(95, 100),
    Fraction(99, 100),
    1 - Fraction(1, 10**6),
    1 - Fraction(1, 10**9),
]


def chance_within(scale: Fraction, w: int) -> arb:
    """P(|k| <= w) for P(k) = (1 - q)/(1 + q) q^|k|, q = exp(-1/scale), by adding up the law.

    The sum of q^k over 1 <= k <= w is q (1 - q^w)/(1 - q).
    """
    if w < 0:
        return arb(0)
    exponent = arb(fmpq(-scale.denominator, scale.numerator))
    q = exponent.exp()
    if w <= 200:
        total = 1 + 2 * sum((q**k for k in range(1, w + 1)), arb(0))
    else:
        total = 1 + 2 * q * (1 - (exponent * w).exp()) / (1 - q)
    return (1 - q) / (1 + q) * total


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 100)])
def test_counts_and_sums_have_the_least_width_of_the_confidence(scale, unit):
    for confidence in CONFIDENCES:
        width = ReleasedVector("n", Laplace(scale), unit).half_width(confidence) / unit
        assert width.denominator == 1
        with ctx.workprec(400):
            wanted = arb(fmpq(confidence.numerator, confidence.denominator))
            assert chance_within(scale, int(width)) >= wanted
            assert chance_within(scale, int(width) - 1) < wanted


def test_a_count_at_scale_two():
    # q = exp(-1/2) = 0.6065; P(|k| > 5) = 2 q^6/(1 + q) = 0.062 and P(|k| > 6) = 0.0376, so 95 % need 6.
    assert ReleasedVector("n", Laplace(Fraction(2)), Fraction(1)).half_width(Fraction(95, 100)) == 6
    # One step of a sum on a grid of cents: 0.06.
    assert ReleasedVector("s", Laplace(Fraction(2)), Fraction(1, 100)).half_width(Fraction(95, 100)) == Fraction(6, 100)


def test_the_bars_of_an_answer_are_these(analyst_of):
    analyst = analyst_of({"A": (100, 640)})
    # Two vectors at epsilon 1/2 each; the count moves by 1, the sum of half units by 100: scales 2 and 200.
    # P(|k| > w) = 2 q^(w+1)/(1 + q) <= 0.05 for scale 200 first at w = 599: 200 ln(40/(1 + q)) = 599.6...
    answer = analyst.ask("SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=1)
    assert answer.interval("n")[0] == (94, 106)
    assert answer.interval("s")[0] == (320 - 299.5, 320 + 299.5)
    wider = analyst.ask(
        "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=1, confidence=0.99
    )
    assert wider["n"] == answer["n"]
    assert wider.interval("n")[0][1] > 106


# A mean of values in [0, 50] on a grid of half units: the centered sum counts quarter units, -100 to 100 a row.
HOW = MeanEstimator(sum=0, count=1, center=Fraction(25), lower=Fraction(0), upper=Fraction(50))
UNIT = Fraction(1, 4)


def trial(mean: float, rows: int, scale_of_count: int, confidence: Fraction, tries: int, seed: str):
    """The true mean, and the estimates and intervals of many releases of the same group."""
    total = round((mean - 25) / float(UNIT) * rows)
    truth = 25 + float(UNIT) * total / rows
    sum_of = ReleasedVector("s", Laplace(Fraction(100 * scale_of_count)), UNIT)
    count_of = ReleasedVector("n", Laplace(Fraction(scale_of_count)), Fraction(1))
    bits = ReplayBits(seed.encode())
    sums = [total + int(z) for z in laplace.draw_array(sum_of.mechanism.scale, tries, bits)]
    counts = [rows + int(z) for z in laplace.draw_array(count_of.mechanism.scale, tries, bits)]
    low, high = HOW.interval(sums, counts, Releases((sum_of, count_of)), confidence)
    estimates = np.array([25 + float(UNIT) * s / n if n > 0 else 25.0 for s, n in zip(sums, counts, strict=True)])
    return truth, np.clip(estimates, 0, 50), low, high


ASKED = [Fraction(8, 10), Fraction(95, 100), Fraction(99, 100)]
GROUPS = [(mean, rows) for mean in (0.0, 2.0, 25.0, 40.0, 50.0) for rows in (1, 5, 30, 100, 1000, 50_000)]
CASES = [(*group, ASKED[(place // 6 + place + shift) % 3]) for place, group in enumerate(GROUPS) for shift in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "rows", "confidence"), some(CASES, 3))
def test_means_are_covered(mean, rows, confidence, at_least, full):
    tries = 20_000 if full else 2_000
    truth, _, low, high = trial(mean, rows, 4, confidence, tries, f"{mean} {rows} {confidence}")
    hits = int(np.sum((low <= truth) & (truth <= high)))
    assert at_least(hits, tries, float(confidence))
    assert np.all((low >= 0) & (low <= high) & (high <= 50))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1000, 50_000])
@pytest.mark.parametrize("mean", [10.0, 25.0, 40.0])
def test_means_narrower_by_three_tenths_are_rejected(mean, rows, at_least, full):
    # In the middle the law is nearly that of the sum alone: 1 - exp(-0.7 ln 20) = 0.877 of narrowed intervals cover.
    tries = 50_000 if full else 5_000
    truth, estimate, low, high = trial(mean, rows, 4, Fraction(95, 100), tries, f"narrow {mean} {rows}")
    assert at_least(int(np.sum((low <= truth) & (truth <= high))), tries, 0.95)
    low, high = estimate - 0.7 * (estimate - low), estimate + 0.7 * (high - estimate)
    assert not at_least(int(np.sum((low <= truth) & (truth <= high))), tries, 0.95)


def test_means_are_not_much_wider_than_needed():
    # Where the count is large, the half-width is that of the sum: scale 400 quarter units, ln 20, over 50,000 rows.
    _, _, low, high = trial(25.0, 50_000, 4, Fraction(95, 100), 200, "width")
    assert np.allclose((high - low) / 2, 400 * np.log(20) / 4 / 50_000, rtol=0.02)


@settings(max_examples=enough(50))
@given(st.integers(1, 600), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.37, 1e6, 5e-9]))
def test_the_end_of_a_mean_is_that_of_plain_bisection_to_the_last_bit(groups: int, seed: int, most: float) -> None:
    """An answer that was given is given again as it was, so how many points are tried at once changes nothing."""
    random = np.random.default_rng(seed)
    inside = random.uniform(-most, most, groups)
    ends = np.where(random.random(groups) < 0.2, np.inf, random.uniform(inside, most))
    for found, start, end in zip(_edge(lambda x: x > ends, inside, most), inside.tolist(), ends.tolist(), strict=True):
        near, far = start, most
        for _ in range(40):
            half = (near + far) / 2
            near, far = (near, half) if half > end else (half, far)
        assert found == (far if most > end else most)


@pytest.mark.parametrize("count", [-50, -1, 0, 1, 5, 12])
def test_a_count_near_zero_says_nothing_of_the_mean(count):
    # Scale 4: 4 ln 20 + 1 = 12.98, so up to 12 the count may as well be zero.
    sum_of, count_of = (
        ReleasedVector("s", Laplace(Fraction(400)), UNIT),
        ReleasedVector("n", Laplace(Fraction(4)), Fraction(1)),
    )
    for total in (-5000, 0, 77):
        low, high = HOW.interval([total], [count], Releases((sum_of, count_of)), Fraction(95, 100))
        assert (low[0], high[0]) == (0, 50)


def test_a_mean_of_an_empty_group(analyst_of):
    answer = analyst_of({}).ask("SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward", epsilon=1)
    assert answer["m"] == [None] * 4
    assert answer.interval("m") == [(0, 50)] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "truth"),
    # 900 rows whose costs add up to 40,000 half units: 20,000/900
    [("SUM(cost) / COUNT(*)", 20_000 / 900), ("COUNT(*) * 2", 1800), ("ROUND(SUM(cost)) + 1", 20_001)],
)
def test_bars_of_expressions_cover(expression, truth, analyst_of, at_least):
    # 4,000 groups alike, each with noise of its own; claimed is 0.95, asked for 0.93. Narrower by three tenths,
    # the noise of scale 2 of the lone count is within 4 with 1 - 2 q^5/(1 + q) = 0.898, the others with 0.88.
    analyst = analyst_of(dict.fromkeys(range(4000), (900, 40_000)), ReplayBits(expression.encode()))
    answer = analyst.ask(f"SELECT grade, {expression} AS x FROM visits GROUP BY grade", epsilon=0.5)
    middle = np.array(answer["x"])
    low, high = (np.array(ends) for ends in zip(*answer.interval("x"), strict=True))
    hits = int(np.sum((low <= truth) & (truth <= high)))
    assert at_least(hits, 4000, 0.93)
    assert hits < 0.975 * 4000
    low, high = middle - 0.7 * (middle - low), middle + 0.7 * (high - middle)
    assert not at_least(int(np.sum((low <= truth) & (truth <= high))), 4000, 0.93)


def test_bars_of_expressions_are_marked(analyst_of):
    answer = analyst_of({"A": (10, 20)}).ask(
        "SELECT COUNT(*) AS n, COUNT(*) + 1 AS m, ward FROM visits GROUP BY ward", epsilon=1
    )
    assert [str(heading.bars) for heading in answer.headings] == ["exact", "approximate", "none"]
    assert any("approximate" in note and " m " in note for note in answer.notes)


# Counts and sums: noise by the exact law, coverage by the binomial law. Each check has a false-alarm rate of 1e-9.

NOISES = [Laplace(Fraction(6)), Laplace(Fraction(1000, 3)), Gaussian(Fraction(40)), Gaussian(Fraction(123_456))]


def drawn(mechanism: Laplace | Gaussian, tries: int, seed: str) -> np.ndarray:
    bits = ReplayBits(seed.encode())
    if isinstance(mechanism, Laplace):
        return laplace.draw_array(mechanism.scale, tries, bits)
    return gaussian.draw_array(mechanism.variance, tries, bits)


@pytest.mark.parametrize("mechanism", NOISES, ids=str)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(99, 100)])
def test_counts_and_sums_are_covered(mechanism, confidence, at_least, full):
    tries = 100_000 if full else 5_000
    width = ReleasedVector("n", mechanism, Fraction(1)).half_width(confidence)
    hits = int(np.sum(np.abs(drawn(mechanism, tries, f"{mechanism} {confidence}")) <= int(width)))
    assert at_least(hits, tries, float(confidence))


@pytest.mark.parametrize("mechanism", NOISES, ids=str)
def test_an_interval_of_ninety_percent_is_rejected_as_one_of_ninety_five(mechanism, at_least, full):
    # 0.91 of 5,000 at most, as the steps of the law go: 4,550, which under 0.95 is 13 deviations of 15.4 too few
    tries = 100_000 if full else 5_000
    width = ReleasedVector("n", mechanism, Fraction(1)).half_width(Fraction(9, 10))
    hits = int(np.sum(np.abs(drawn(mechanism, tries, f"power {mechanism}")) <= int(width)))
    assert at_least(hits, tries, 0.90)
    assert not at_least(hits, tries, 0.95)


# Means with Gaussian noise.


def gaussian_trial(mean: float, rows: int, confidence: Fraction, tries: int, seed: str):
    total = round((mean - 25) / float(UNIT) * rows)
    sum_of = ReleasedVector("s", Gaussian(Fraction(400**2)), UNIT)
    count_of = ReleasedVector("n", Gaussian(Fraction(4**2)), Fraction(1))
    sums = [total + int(z) for z in drawn(sum_of.mechanism, tries, f"{seed} s")]
    counts = [rows + int(z) for z in drawn(count_of.mechanism, tries, f"{seed} n")]
    low, high = HOW.interval(sums, counts, Releases((sum_of, count_of)), confidence)
    estimates = np.array([25 + float(UNIT) * s / n if n > 0 else 25.0 for s, n in zip(sums, counts, strict=True)])
    return 25 + float(UNIT) * total / rows, np.clip(estimates, 0, 50), low, high


@pytest.mark.parametrize("confidence", [Fraction(8, 10), Fraction(95, 100)])
@pytest.mark.parametrize("rows", [1, 10, 100, 10_000])
@pytest.mark.parametrize("mean", [0.0, 2.0, 25.0, 50.0])
def test_means_with_gaussian_noise_are_covered(mean, rows, confidence, at_least, full):
    tries = 20_000 if full else 1_000
    truth, _, low, high = gaussian_trial(mean, rows, confidence, tries, f"{mean} {rows} {confidence}")
    assert at_least(int(np.sum((low <= truth) & (truth <= high))), tries, float(confidence))
    assert np.all((low >= 0) & (low <= high) & (high <= 50))


@pytest.mark.parametrize("mean", [10.0, 25.0])
def test_means_with_gaussian_noise_narrower_by_three_tenths_are_rejected(mean, at_least, full):
    # P(|Z| <= 0.7 * 1.96) = 0.830
    tries = 50_000 if full else 3_000
    truth, estimate, low, high = gaussian_trial(mean, 10_000, Fraction(95, 100), tries, f"narrow {mean}")
    assert at_least(int(np.sum((low <= truth) & (truth <= high))), tries, 0.95)
    low, high = estimate - 0.7 * (estimate - low), estimate + 0.7 * (high - estimate)
    assert not at_least(int(np.sum((low <= truth) & (truth <= high))), tries, 0.95)


def test_means_with_gaussian_noise_are_not_much_wider_than_needed():
    # 1.96 * 400 quarter units over 10,000 rows
    _, _, low, high = gaussian_trial(25.0, 10_000, Fraction(95, 100), 200, "width")
    assert np.allclose((high - low) / 2, 1.96 * 400 / 4 / 10_000, rtol=0.02)


# Variances of values in [0, 50] on a grid of half units: v steps, y = 2 v - 100, squares 2 y^2 - 100^2.

PARTS = (Fraction(1, 32), Fraction(1, 4), Fraction(1))


def moments(steps: np.ndarray) -> tuple[int, int, int]:
    """The exact integers that a variance is made of."""
    y = 2 * steps.astype(object) - 100
    return int(np.sum(2 * y * y - 10_000)), int(np.sum(y)), len(steps)


def how(sample: bool, root: bool) -> VarianceEstimator:
    return VarianceEstimator(0, MeanEstimator(1, 2, Fraction(25), Fraction(0), Fraction(50)), sample, root)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("root", [False, True])
def test_without_noise_a_variance_is_that_of_numpy(sample, root):
    random = np.random.default_rng(7)
    for steps in (np.array([3, 3]), np.array([0, 100]), np.array([0, 50, 100]), random.integers(0, 101, 1000)):
        scaled = [np.array([n * float(unit)]) for n, unit in zip(moments(steps), PARTS, strict=True)]
        (found,) = how(sample, root).simulate(scaled)
        wanted = (np.std if root else np.var)(steps / 2, ddof=int(sample))
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_a_variance_of_no_rows_or_of_a_sample_of_one_is_none():
    for count, sample, known in ((0, False, False), (-3, False, False), (1, True, False), (1, False, True)):
        found = how(sample, root=False).simulate([np.array([0.0]), np.array([0.0]), np.array([float(count)])])
        assert np.isfinite(found[0]) == known


def test_a_variance_is_never_beyond_what_the_range_allows():
    # 25^2 of the whole, and twice that of a sample of two
    for sample, most in ((False, 625), (True, 1250)):
        found = how(sample, root=False).simulate([np.array([1e9]), np.array([0.0]), np.array([2.0])])
        assert found[0] == most
        found = how(sample, root=False).simulate([np.array([-1e9]), np.array([0.0]), np.array([2.0])])
        assert found[0] == 0


def spread_trial(
    steps: np.ndarray, spread: VarianceEstimator, laws: tuple, confidence: Fraction, tries: int, seed: str
):
    parts = tuple(ReleasedVector("p", law, unit) for law, unit in zip(laws, PARTS, strict=True))
    released = tuple(
        [exact + int(z) for z in drawn(part.mechanism, tries, f"{seed} {index}")]
        for index, (exact, part) in enumerate(zip(moments(steps), parts, strict=True))
    )
    low, high = spread.interval(released, Releases(parts), confidence)
    truth = (np.std if spread.is_root else np.var)(steps / 2, ddof=int(spread.is_sample))
    return float(truth), low, high


SHAPES = {
    "alike": np.full(300, 40),
    "apart": np.repeat([0, 100], 150),
    "even": np.arange(303) % 101,
    "few": np.array([0, 30, 100]),
    "skewed": np.repeat([0, 100], [290, 10]),
}
LAWS = {
    "laplace": (Laplace(Fraction(20_000)), Laplace(Fraction(200)), Laplace(Fraction(2))),
    "gaussian": (Gaussian(Fraction(20_000**2)), Gaussian(Fraction(200**2)), Gaussian(Fraction(4))),
}


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("sample", "root"), [(False, False), (True, False), (True, True)])
def test_variances_are_covered(shape, sample, root, laws, at_least, full):
    tries = 20_000 if full else 1_000
    for confidence in (Fraction(8, 10), Fraction(95, 100)):
        seed = f"{shape} {sample} {root} {confidence}"
        truth, low, high = spread_trial(SHAPES[shape], how(sample, root), LAWS[laws], confidence, tries, seed)
        covered = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        assert at_least(int(np.sum(covered)), tries, float(confidence))
        assert np.all((low >= 0) & (low <= high))


def test_the_bars_of_a_variance_are_not_empty_words(at_least):
    # A box of a fifth of the confidence does not cover as one of 95 % would: the test has power.
    tries = 3_000
    truth, low, high = spread_trial(SHAPES["even"], how(False, False), LAWS["laplace"], Fraction(1, 5), tries, "power")
    assert not at_least(int(np.sum((low <= truth) & (truth <= high))), tries, 0.95)
    _, low, high = spread_trial(SHAPES["even"], how(False, False), LAWS["laplace"], Fraction(95, 100), tries, "width")
    assert np.median(high - low) < 625 / 2


def test_the_bars_of_a_variance_narrow_as_rows_grow():
    widths = []
    for copies in (1, 10, 100):
        _, low, high = spread_trial(
            np.tile(SHAPES["even"], copies), how(True, False), LAWS["laplace"], Fraction(95, 100), 200, "grow"
        )
        widths.append(float(np.median(high - low)))
    assert widths[0] > 5 * widths[1] > 25 * widths[2]
