"""What training costs: against dp-accounting, and the noise that a guarantee needs."""

from __future__ import annotations

import warnings
from fractions import Fraction

import pytest
from tests.support.counts import FULL

from tacit.errors import ParameterError
from tacit.learn.torch.accountant import TrainingPlan
from tacit.privacy.unit import Neighbors

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def peer():
    """dp-accounting, which is slow to import: where the test runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("dp_accounting").pld.privacy_loss_distribution


CASES = [
    ("poisson", Fraction(1, 50), 100, 1.0),
    ("poisson", Fraction(1), 5, 4.0),
    ("shuffled", Fraction(1, 10), 30, 6.0),
]
if FULL:
    CASES += [
        ("poisson", Fraction(1, 4), 40, 2.5),
        ("poisson", Fraction(1, 1000), 20000, 0.7),
        ("poisson", Fraction(1, 20), 2000, 1.3),
    ]


@pytest.mark.parametrize(("sampling", "rate", "steps", "multiplier"), CASES)
def test_epsilon_is_that_of_dp_accounting(peer, sampling, rate, steps, multiplier):
    plan = TrainingPlan(sampling, rate, steps, 10, Fraction(multiplier))
    if sampling == "poisson":
        once = peer.from_gaussian_mechanism(multiplier, sampling_prob=float(rate))
        other = once.self_compose(steps).get_epsilon_for_delta(1e-6)
    else:  # three epochs, and a replacement moves a sum by two clipping norms
        other = peer.from_gaussian_mechanism(multiplier / 2).self_compose(3).get_epsilon_for_delta(1e-6)
    assert plan.epsilon(1e-6) == pytest.approx(other, rel=0.01, abs=2e-3)


@pytest.mark.parametrize(
    ("sampling", "rate", "steps", "epsilon"),
    [
        ("poisson", Fraction(1, 20), 60, 1),
        ("shuffled", Fraction(1, 8), 80, 3),
        *([("poisson", Fraction(1, 8), 80, 8)] if FULL else []),
    ],
)
def test_the_noise_is_just_enough(sampling, rate, steps, epsilon):
    plan = TrainingPlan.calibrate(Fraction(epsilon), Fraction(1, 10**6), sampling, rate, steps, 8)
    assert 0.99 * epsilon < plan.epsilon(1e-6) <= epsilon
    assert plan.neighbors is (Neighbors.ADD_REMOVE if sampling == "poisson" else Neighbors.REPLACE)


def test_an_epsilon_that_is_too_small_is_refused():
    with pytest.raises(ParameterError, match="too small for so many steps"):
        TrainingPlan.calibrate(Fraction(1, 10**6), Fraction(1, 10**9), "poisson", Fraction(1, 2), 10**6, 2)


def test_steps_that_were_taken_cost_less_than_all():
    plan = TrainingPlan("poisson", Fraction(1, 50), 500, 50, Fraction(1))
    assert 0 == plan.epsilon(1e-6, 0) < plan.epsilon(1e-6, 50) < plan.epsilon(1e-6)
