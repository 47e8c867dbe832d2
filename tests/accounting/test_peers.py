"""Agreement with dp-accounting and OpenDP, where they price the same law."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, some

from tacit.accounting import bounds, delta, epsilon, pld
from tacit.accounting.calibrate import gaussian_sigma
from tacit.privacy.guarantee import delta_from_rho, epsilon_from_rho
from tacit.privacy.loss import (
    ApproximateDp,
    Compose,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    PureDp,
    Repeat,
    Sampled,
)

pytestmark = pytest.mark.slow

few = settings(max_examples=50 if FULL else 2, deadline=None, derandomize=True)
DELTA = 1e-6
scales = st.fractions(Fraction(1, 2), 20, max_denominator=50)


# Both libraries are slow to import: it is done where a test of this file runs.


@pytest.fixture(scope="module")
def dp_accounting():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("dp_accounting")


@pytest.fixture(scope="module")
def peer(dp_accounting):
    return dp_accounting.pld.privacy_loss_distribution


@pytest.fixture(scope="module")
def opendp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("opendp.prelude")
    found.enable_features("contrib")
    return found


def agrees(loss, other: float) -> None:
    """The peer rounds losses up on a grid of 1e-4; ours is never looser by more than that."""
    low, high = bounds(loss, DELTA)
    assert low <= other * (1 + 1e-9) + 1e-9
    assert high <= other + 2e-4 * (1 + other)
    assert high == pytest.approx(other, rel=0.01, abs=2e-3)


def ask_peer(once, times: int) -> float:
    """The epsilon of a mechanism that is run so often. Where the peer divides by a rounding error, it has none."""
    try:
        found = once.self_compose(times).get_epsilon_for_delta(DELTA)
    except RuntimeWarning:
        reject()
    return found


@few
@given(scales, st.integers(1, 200))
def test_real_laplace(peer, scale, times):
    agrees(Repeat(ContinuousLaplaceNoise(scale), times), ask_peer(peer.from_laplace_mechanism(float(scale)), times))


@few
@given(scales, st.integers(1, 6), st.integers(1, 200))
def test_discrete_laplace(peer, scale, distance, times):
    other = peer.from_discrete_laplace_mechanism(float(1 / scale), distance)
    agrees(Repeat(LaplaceNoise(scale, distance), times), ask_peer(other, times))


@few
@given(st.fractions(1, 10, max_denominator=20), st.integers(1, 3), st.integers(1, 30))
def test_discrete_gaussian(peer, sigma, shift, times):
    other = peer.from_discrete_gaussian_mechanism(float(sigma), shift)
    agrees(Repeat(GaussianNoise(sigma**2, shift), times), ask_peer(other, times))


@few
@given(st.fractions(1, 10, max_denominator=20), st.integers(1, 100))
def test_real_gaussian(peer, sigma, times):
    other = ask_peer(peer.from_gaussian_mechanism(float(sigma)), times)
    agrees(Repeat(ContinuousGaussianNoise(sigma), times), other)


@few
@given(st.fractions(Fraction(1, 20), 1, max_denominator=20), st.integers(0, 3), st.integers(1, 100))
def test_any_approximate_mechanism(peer, each, lost, times):
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    other = peer.from_privacy_parameters(DifferentialPrivacyParameters(float(each), lost * 1e-9))
    agrees(
        Repeat(ApproximateDp(each, Fraction(lost, 10**9)), times),
        ask_peer(other, times),
    )


@settings(max_examples=30 if FULL else 1, deadline=None, derandomize=True)
@given(  # the peer's grid for little noise is large
    st.fractions(Fraction(3, 4) if FULL else 2, 4, max_denominator=8), st.sampled_from([2, 10, 50]), st.integers(1, 300)
)
def test_sampled_gaussian(peer, sigma, parts, times):
    other = peer.from_gaussian_mechanism(float(sigma), sampling_prob=1 / parts).self_compose(times)
    agrees(
        Repeat(Sampled(ContinuousGaussianNoise(sigma), Fraction(1, parts)), times), other.get_epsilon_for_delta(DELTA)
    )


@settings(max_examples=30 if FULL else 1, deadline=None, derandomize=True)
@given(st.fractions(1, 6, max_denominator=10), st.sampled_from([1, 2, 20]), st.integers(1, 500))
def test_renyi_of_sampled_gaussian(dp_accounting, sigma, parts, times):
    event = dp_accounting.GaussianDpEvent(float(sigma))
    event = event if parts == 1 else dp_accounting.PoissonSampledDpEvent(1 / parts, event)
    loss = ContinuousGaussianNoise(sigma) if parts == 1 else Sampled(ContinuousGaussianNoise(sigma), Fraction(1, parts))
    ours = epsilon(Repeat(loss, times), DELTA, by="renyi")
    assert ours <= dp_accounting.rdp.RdpAccountant().compose(event, times).get_epsilon(DELTA) * 1.01
    # No bound is below the law itself.
    assert ours >= bounds(Repeat(loss, times), DELTA)[0]


# Each value of each is in every eleventh of them.
GRID = list(product([Fraction(1, 2), Fraction(1), Fraction(5)], [2, 100, 10_000], [1, 1000], [1e-3, 1e-6, 1e-12]))


@pytest.mark.parametrize(("sigma", "parts", "times", "lost"), some(GRID, 22))
def test_renyi_is_within_one_percent_of_the_peer(dp_accounting, sigma, parts, times, lost):
    # The best order is below two for little noise, and above a thousand for much noise and few uses.
    event = dp_accounting.PoissonSampledDpEvent(1 / parts, dp_accounting.GaussianDpEvent(float(sigma)))
    other = dp_accounting.rdp.RdpAccountant().compose(event, times).get_epsilon(lost)
    loss = Repeat(Sampled(ContinuousGaussianNoise(sigma), Fraction(1, parts)), times)
    ours = epsilon(loss, lost, by="renyi")
    assert ours <= other * 1.01 + 1e-12
    assert ours >= pld.epsilon(loss, lost, upper=False)


@pytest.mark.parametrize(
    ("sigma", "rate", "order"), [(1, 0.01, 1.35), (0.5, 0.001, 1.1), (2, 0.2, 2.5), (5, 0.5, 1.01)]
)
def test_moments_of_fractional_orders_are_at_least_the_integral(sigma, rate, order):
    from mpmath import mp, mpf

    from tacit.accounting import renyi

    mp.dps = 30
    a, q, s = mpf(order), mpf(rate), mpf(sigma)
    normal = lambda x: mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731 - a formula
    mixed = mp.quad(lambda x: normal(x) * (1 - q + q * mp.exp(x / s - 1 / (2 * s**2))) ** a, list(range(-20, 21, 4)))
    curve = renyi.compute_curve(Sampled(ContinuousGaussianNoise(Fraction(str(sigma))), Fraction(str(rate))))
    found = float(np.interp(order, renyi.renyi_orders(), curve.growth))
    assert float(mp.log(mixed)) <= found <= float(mp.log(mixed)) * 1.01


def test_a_mixed_workload(peer):
    other = (
        peer.from_laplace_mechanism(5.0)
        .self_compose(20)
        .compose(peer.from_gaussian_mechanism(4.0).self_compose(10))
        .compose(peer.from_discrete_laplace_mechanism(0.3, 2))
    )
    loss = Compose(
        (
            Repeat(ContinuousLaplaceNoise(Fraction(5)), 20),
            Repeat(ContinuousGaussianNoise(Fraction(4)), 10),
            LaplaceNoise(Fraction(10, 3), 2),
        )
    )
    agrees(loss, other.get_epsilon_for_delta(DELTA))
    assert delta(loss, 3.0) == pytest.approx(other.get_delta_for_epsilon(3.0), rel=0.01)


@few
@given(st.fractions(Fraction(1, 10), 5, max_denominator=50), st.integers(3, 10))
def test_the_analytic_sigma(peer, price, power):
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    other = GaussianPrivacyLoss.from_privacy_guarantee(
        DifferentialPrivacyParameters(float(price), 10.0**-power)
    ).standard_deviation
    assert float(gaussian_sigma(price, Fraction(1, 10**power))) == pytest.approx(other, rel=1e-4)


@few
@given(st.floats(1e-4, 5), st.integers(2, 12))
def test_opendp_converts_zcdp_alike(opendp, rho, power):
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    noise = opendp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    curve = opendp.c.make_zCDP_to_approxDP(noise).map(1.0)
    other = curve.epsilon(10.0**-power)
    assert epsilon_from_rho(rho, 10.0**-power) == pytest.approx(other, rel=1e-3, abs=1e-6)
    assert delta_from_rho(rho, 2 * rho + 1) == pytest.approx(curve.delta(2 * rho + 1), rel=1e-3)


@few
@given(scales, st.integers(1, 50))
def test_opendp_prices_discrete_laplace_alike(opendp, scale, distance):
    space = opendp.atom_domain(T=int), opendp.absolute_distance(T=int)
    other = opendp.m.make_laplace(*space, scale=float(scale)).map(distance)
    assert epsilon(LaplaceNoise(scale, distance), 0) == pytest.approx(other, rel=1e-9)
    assert epsilon(PureDp(Fraction(other)), 0) == pytest.approx(other)
