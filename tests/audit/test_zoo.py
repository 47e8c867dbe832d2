"""The zoo: what is true of each specimen, and whether an audit finds it."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.counts import FULL, enough

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.audit.claim import Claim
from tacit.audit.exactly import exact_parameter
from tacit.audit.statistical import audit
from tacit.audit.zoo import ZOO, specimen
from tacit.audit.zoo import releases as real
from tacit.errors import ParameterError
from tacit.mechanisms.gaussian import Gaussian
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

SEEDS = 200 if FULL else 3
SAMPLES = 100_000 if FULL else 10_000
SOUND = [each for each in ZOO if each.sound]
BROKEN = [each for each in ZOO if not each.sound]
WITH_LAW = [each for each in ZOO if each.distribution is not None]


def name(each) -> str:
    return each.name


def test_there_are_sound_ones_and_broken_ones_with_names_of_their_own():
    assert len(SOUND) >= 9 and len(BROKEN) >= 15
    assert len({each.name for each in ZOO}) == len(ZOO)
    for each in ZOO:
        assert each.sound == (each.evidence == "none") == (each.true <= each.claim.value), each.name
        assert each.says.endswith(".") and each.why.endswith(".")


def test_the_guide_lists_every_mistake_with_what_is_true_of_it():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "audits.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z0-9-]+)`.*\| ([^|]+) \|$", page, re.MULTILINE)
    assert [name for name, _ in listed] == [each.name for each in BROKEN]
    for (_, true), each in zip(listed, BROKEN, strict=True):
        shown = re.search(r"[\d.]+|infinite", true).group()
        assert shown == "infinite" if math.isinf(each.true) else float(shown) == pytest.approx(each.true, abs=5.1e-5)


def test_a_specimen_is_found_by_its_name():
    assert specimen("noise-reused").true == math.inf
    with pytest.raises(ParameterError, match="noise-reused"):
        specimen("noise-resued")


@pytest.mark.parametrize("each", WITH_LAW, ids=name)
def test_the_true_parameter_is_that_of_the_exact_law(each):
    found = exact_parameter(each.exact(), each.claim)
    assert found == each.true if math.isinf(each.true) else found == pytest.approx(each.true, abs=5e-7)


@pytest.mark.parametrize("each", BROKEN, ids=name)
def test_the_claim_of_a_broken_one_is_refuted(each):
    # That its exact law gives its true parameter, and that this is above the claim, are tests of their own above.
    table = each.exact() if FULL else None
    if table is not None:
        assert exact_parameter(table, each.claim) > each.claim.value
    if each.evidence == "samples":
        seeds, samples = (8, 100_000) if FULL else (1, 20_000)  # of three seeds each, all refuted with so few
        for seed in range(seeds):
            found = audit(each.mechanism, each.one, each.other, each.claim, samples=samples, seed=seed)
            assert found.is_refuted, str(found)
            assert found.lower <= each.true * 1.02  # seen above the truth at most once in a hundred, and then not far


def test_only_one_mistake_is_too_fine_for_samples():
    (each,) = [each for each in BROKEN if each.evidence == "exact"]
    assert each.name == "discrete-as-continuous"
    # sigma = 3.730632 at one step: delta(1) = 1.035e-5, above the claimed 1e-5
    assert each.exact().delta(1) == pytest.approx(1.0346e-5, rel=1e-4)
    assert not audit(each.mechanism, each.one, each.other, each.claim, samples=20_000).is_refuted


@pytest.mark.parametrize("each", SOUND, ids=name)
def test_a_sound_one_passes(each):
    # At 99 % confidence a true claim is refuted in at most 1 % of audits. In 200 seeds, 98 % are to pass: more than 4
    # false alarms have probability at most 0.0528 at that rate; the seeds are fixed, and the bound is conservative.
    refuted = [
        audit(each.mechanism, each.one, each.other, each.claim, samples=SAMPLES, seed=seed).is_refuted
        for seed in range(SEEDS)
    ]
    assert sum(refuted) <= 0.02 * SEEDS


@pytest.mark.parametrize("each", WITH_LAW, ids=name)
def test_samples_follow_the_law(each):
    # Pearson's chi-square at a false-alarm rate of 1e-9; outputs expected less than 25 times are taken together.
    for data in (each.one, each.other):
        assert chi_square(each.mechanism(data, size=20_000, rng=np.random.default_rng(5)), each.distribution(data)) < 1


def test_that_check_rejects_a_law_that_is_a_tenth_off():
    # noise of scale 1 against the law of scale 1.1
    off = {k: math.tanh(1 / 2.2) * math.exp(-abs(k) / 1.1) for k in range(-30, 31)}
    assert chi_square(real.noisy_counts(0, size=100_000, rng=np.random.default_rng(5)), off) > 1


def chi_square(outputs, law) -> float:
    """The statistic over its limit; infinite where something impossible came out."""
    rows = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
    seen = Counter(
        tuple(row) if isinstance(row, list) and len(row) > 1 else row[0] if isinstance(row, list) else row
        for row in rows
    )
    total, statistic, cells, rest_seen, rest_expected = len(rows), 0.0, 0, 0, 0.0
    if any(output not in law for output in seen):
        return math.inf
    for output, share in law.items():
        if total * share < 25:
            rest_seen, rest_expected = rest_seen + seen[output], rest_expected + total * share
        else:
            statistic, cells = statistic + (seen[output] - total * share) ** 2 / (total * share), cells + 1
    if rest_expected >= 25:
        statistic, cells = statistic + (rest_seen - rest_expected) ** 2 / rest_expected, cells + 1
    return statistic / chi2.isf(1e-9, cells - 1) if cells > 1 else 0.0


def test_many_releases_at_once_have_the_law_of_one_at_a_time():
    # The real release, against the law that the specimens are tested with; 1e-9 each.
    bits = ReplayBits(b"one at a time")
    pairs = [
        (real.FLIP.release, (2, 0), real.selection_law(real.FLIP)),
        (real.BEST.release, (1, *[0] * 15), real.selection_law(real.BEST)),
        (real.LARGEST.release, (6, 0), real.selection_law(real.LARGEST)),
        (real.MEDIAN.release, {2: 5, 6: 4}, real.middle_law),
        (
            lambda data, bits: len(said) - said[-1] if (said := real.ALARM.release(data, bits)) else 0,
            (*[0] * 6, 1),
            real.first_above_law,
        ),
    ]
    for release, data, law in pairs:
        assert chi_square([release(data, bits) for _ in range(enough(4000))], law(data)) < 1


def test_the_gaussian_is_the_calibrated_one():
    assert Gaussian.calibrated(epsilon=1, delta=1e-5) == real.NORMAL


def test_doubles_have_finer_digits_around_zero_than_around_one():
    # What is added to 1 is a multiple of 2^-53; of the noise alone, 1 - e^(-1/4) = 22 % is below 1/4 and finer.
    draw = specimen("double-laplace").mechanism
    for data, least_share, most_share in ((1.0, 0, 0), (0.0, 0.15, 0.5)):
        outputs = draw(data, 100_000, np.random.default_rng(3))
        small = outputs[np.abs(outputs) < 1]
        finer = np.count_nonzero(np.ldexp(small, 53) % 1) / len(outputs)
        assert least_share <= finer <= most_share


def test_permute_and_flip_costs_more_than_a_bounded_range():
    # (1/2, 1/2) against (1 - 1/(2e), 1/(2e)): D_1 = ln(1/2) - (ln(1 - 1/(2e)) + ln(1/(2e)))/2 = 0.2551 > 1/8
    each = specimen("permute-and-flip-as-exponential")
    w = 1 / (2 * math.e)
    first = math.log(0.5) - (math.log(1 - w) + math.log(w)) / 2
    assert first == pytest.approx(0.25506, abs=5e-6) and first > 0.125
    found = exact_parameter(each.exact(), each.claim)
    assert first <= found and found <= math.tanh(0.5)  # any 1-DP release: 0.4621


def test_the_exact_audit_of_all_three_guarantees():
    coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    assert exact_parameter(coin, Claim.epsilon(1)) == pytest.approx(math.log(3))
    assert exact_parameter(coin, Claim.epsilon(1, delta=0.25)) == pytest.approx(math.log(2))  # 3/4 - 2/4
    assert exact_parameter(coin, Claim.epsilon(1, delta=0.5)) == 0
    assert exact_parameter(coin, Claim.mu(1)) == pytest.approx(2 * 0.6744898)  # Phi^-1(3/4) twice
    # rho of randomized response is at least D_1 = (3/4 - 1/4) ln 3, and at most epsilon tanh(epsilon/2), the same here
    assert exact_parameter(coin, Claim.rho(1)) == pytest.approx(math.log(3) / 2)
    same = TransitionMatrix([[Fraction(1, 2)] * 2] * 2)
    shown = TransitionMatrix([[1, 0], [Fraction(1, 2), Fraction(1, 2)]])
    for claim in (Claim.epsilon(1), Claim.epsilon(1, delta=0.1), Claim.rho(1), Claim.mu(1)):
        assert exact_parameter(same, claim) == pytest.approx(0, abs=1e-12)
        assert exact_parameter(shown, claim) == math.inf
