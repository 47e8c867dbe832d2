"""Tracing: the false positive rate holds, the power grows with d/n, and epsilon bounds what can be found.

Seeds are fixed. Binomial intervals are taken at 1 - 1e-10, so false alarms stay below 1e-9.
"""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.accounting.interpretation import max_true_positive_rate
from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks.tracing import (
    STATISTICS,
    SimulatedStudy,
    distance_score,
    expected_power,
    infer_membership,
    inner_product_score,
    likelihood_ratio_score,
)
from tacit.errors import ParameterError
from tacit.mechanisms import Gaussian
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

STUDIES = 5000 if FULL else 300
SURE = 1 - 1e-10
EPSILON, DELTA = 1.0, 1e-6


@cache
def accusations(release, statistic="inner-product", alarm=0.02, people=10, attributes=200):
    """Of many studies, each with one member and one outsider as targets: how many of each are accused.

    One of each a study, so that the accusations are independent.
    """
    rng, bits = np.random.default_rng(5), ReplayBits(b"tracing")
    accused = np.zeros(2, dtype=int)
    for _ in range(STUDIES):
        study = SimulatedStudy.draw(people, attributes, rng, outsiders=1, reference=99)
        means = np.array(release(study.counts, bits)) / people
        targets = np.vstack([study.members[:1], study.outsiders])
        found = infer_membership(
            targets,
            means,
            study.reference,
            frequencies=study.frequencies,
            false_positive_rate=alarm,
            statistic=statistic,
        )
        accused += found.is_accused
    return int(accused[0]), int(accused[1])


def exact(counts, bits):
    return counts


@cache
def noise(coordinates: int) -> Gaussian:
    """Replacing a person moves each count by one at most."""
    return Gaussian.calibrated(EPSILON, DELTA, sensitivity=1, coordinates=coordinates)


def private(counts, bits):
    return noise(len(counts)).release(counts, bits)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_exact_averages_give_members_away(statistic):
    # d/n = 20: the power at 2 % is Phi(sqrt(20) - 2.05) = 0.99
    members, outsiders = accusations(exact, statistic)
    assert clopper_pearson_interval(members, STUDIES, SURE)[0] > 0.8
    assert (
        clopper_pearson_interval(outsiders, STUDIES, SURE)[0] < 0.02
    )  # and outsiders are accused as seldom as promised


def test_private_averages_obey_the_bound_of_epsilon():
    # at a false positive rate a, at most e^1 a + 1e-6 of the members are found
    members, outsiders = accusations(private)
    most = max_true_positive_rate(EPSILON, clopper_pearson_interval(outsiders, STUDIES, SURE)[1], DELTA)
    assert clopper_pearson_interval(members, STUDIES, SURE)[0] <= most
    assert clopper_pearson_interval(members, STUDIES, SURE)[1] < 0.2


def test_the_test_of_the_bound_has_power():
    # the same test says of exact averages that they are not 1-DP
    members, outsiders = accusations(exact)
    most = max_true_positive_rate(EPSILON, clopper_pearson_interval(outsiders, STUDIES, SURE)[1], DELTA)
    assert clopper_pearson_interval(members, STUDIES, SURE)[0] > most


@pytest.mark.parametrize("ratio", [1, 4, 9])
def test_the_power_is_a_function_of_d_over_n(ratio):
    # n = 100, false positives 5 %: Phi(1 - 1.645) = 0.26, Phi(2 - 1.645) = 0.64, Phi(3 - 1.645) = 0.91. Forty studies
    # of a hundred members each: the share is known to 0.01, and the limit is off by as much; 0.06 is far beyond.
    people, rng, studies = 100, np.random.default_rng(ratio), 40
    shares = []
    for _ in range(studies):
        study = SimulatedStudy.draw(people, ratio * people, rng, outsiders=1, reference=199, spread=(0.5, 0.5))
        found = infer_membership(
            study.members, study.means, study.reference, frequencies=study.frequencies, false_positive_rate=0.05
        )
        shares.append(found.share)
    assert np.mean(shares) == pytest.approx(expected_power(ratio * people, people, 0.05), abs=0.06)
    assert (
        abs(np.mean(shares) - expected_power(ratio * people, 2 * people, 0.05)) > 0.06
    )  # twice the people is another power


def test_noise_and_a_small_reference_weaken_the_test_as_computed():
    # s = 0.1 on each average of n = 100: 1 + n/r + 4 n s^2 = 1 + 1 + 4, so g = sqrt(9)/sqrt(6)
    assert expected_power(900, 100, 0.05, noise=0.1, reference=100) == pytest.approx(
        expected_power(150, 100, 0.05), abs=1e-12
    )


def test_played_with_noise_and_estimated_frequencies():
    # The same played: 200 reference people, of whom 100 estimate the frequencies. Power Phi(1.22 - 1.645) = 0.34.
    rng, shares = np.random.default_rng(8), []
    for _ in range(40):
        study = SimulatedStudy.draw(100, 900, rng, outsiders=1, reference=200, spread=(0.5, 0.5))
        means = study.means + rng.normal(0, 0.1, 900)
        shares.append(infer_membership(study.members, means, study.reference, false_positive_rate=0.05).share)
    assert np.mean(shares) == pytest.approx(expected_power(900, 100, 0.05, noise=0.1, reference=100), abs=0.08)


def test_the_false_positive_rate_is_kept_with_estimated_frequencies_too():
    rng = np.random.default_rng(6)
    accused = 0
    for _ in range(STUDIES):
        study = SimulatedStudy.draw(10, 60, rng, outsiders=1, reference=118)
        found = infer_membership(study.outsiders, study.means, study.reference, false_positive_rate=0.1)
        accused += int(found.is_accused[0])
    low, high = clopper_pearson_interval(accused, STUDIES, SURE)
    assert low < 0.1 < high


tables = st.integers(1, 8).flatmap(
    lambda d: st.tuples(
        st.lists(st.lists(st.integers(0, 1), min_size=d, max_size=d), min_size=1, max_size=5),
        st.lists(st.floats(0.01, 0.99), min_size=d, max_size=d),
        st.lists(st.floats(0.01, 0.99), min_size=d, max_size=d),
    )
)


@given(tables)
def test_the_statistics_are_their_definitions(table):
    rows, means, known = (np.array(part) for part in table)
    bits = rows.astype(bool)
    for number, x in enumerate(rows):
        assert inner_product_score(bits, means, known)[number] == pytest.approx(
            sum((x - known) * (means - known)), abs=1e-9
        )
        assert distance_score(bits, means, known)[number] == pytest.approx(
            sum(abs(x - known) - abs(x - means)), abs=1e-9
        )
        ratio = sum(
            math.log(m / p) if b else math.log((1 - m) / (1 - p)) for b, m, p in zip(x, means, known, strict=True)
        )
        assert likelihood_ratio_score(bits, means, known)[number] == pytest.approx(ratio, abs=1e-9)


@settings(max_examples=50)
@given(st.integers(1, 60), st.floats(0, 1))
def test_of_the_reference_people_no_more_are_accused_than_the_rate_allows(count, alarm):
    # at most floor(a (R + 1)) of R + 1 scores that are all different lie above the threshold
    rng = np.random.default_rng(count)
    reference = rng.random((count, 40)) < 0.5
    found = infer_membership(reference, rng.random(40), reference, frequencies=[0.5] * 40, false_positive_rate=alarm)
    assert found.is_accused.sum() <= alarm * (count + 1)


def test_rates_grow_with_the_false_positive_rate():
    study = SimulatedStudy.draw(50, 500, np.random.default_rng(9))
    found = infer_membership(study.members, study.means, study.reference)
    rates = found.rates([0, 0.01, 0.1, 0.5, 1])
    assert rates[0] == 0 and rates[-1] == 1
    assert (np.diff(rates) >= 0).all()


def test_the_verdict_is_about_more_than_chance():
    study = SimulatedStudy.draw(50, 2000, np.random.default_rng(10))
    assert infer_membership(study.members, study.means, study.reference).verdict == "traced"
    assert infer_membership(study.outsiders, study.means, study.reference).verdict == "not traced"


def test_words_json_and_a_picture(tmp_path):
    study = SimulatedStudy.draw(50, 500, np.random.default_rng(11))
    found = infer_membership(study.members, study.means, study.reference)
    assert "said to be in the study" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["targets"] == 50
    found.plot(tmp_path / "roc.svg", epsilon=1, delta=1e-6)
    assert (tmp_path / "roc.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"means": [0.5, math.nan]}, "means"),
        ({"means": "half"}, "means"),
        ({"targets": [[0, 2]]}, "targets"),
        ({"targets": [[0, 1, 1]]}, "targets"),
        ({"reference": [[0, 1]]}, "reference"),
        ({"frequencies": [0.5]}, "frequencies"),
        ({"statistic": "guess"}, "statistic"),
        ({"false_positive_rate": 2}, "false_positive_rate"),
    ],
)
def test_what_cannot_be_traced_is_a_clear_error(change, name):
    given_ = {"targets": [[0, 1]], "means": [0.5, 0.5], "reference": [[0, 1], [1, 1]], **change}
    with pytest.raises(ParameterError) as caught:
        infer_membership(**given_)
    assert caught.value.name == name and caught.value.fix
