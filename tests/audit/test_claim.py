from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.support.counts import FULL

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.audit.claim import Claim
from tacit.errors import ParameterError

CLAIMS = [Claim.epsilon(1), Claim.epsilon(1, delta=0.01), Claim.rho(0.5), Claim.mu(1)]
chances = st.floats(0.0, 1.0)
some = settings(max_examples=500 if FULL else 40, deadline=None)
weights = st.lists(st.integers(1, 20), min_size=2, max_size=6)


def test_claims_are_read_as_they_are_written():
    assert Claim.parse("epsilon=1, delta=1e-6") == Claim.epsilon(1, delta=1e-6)
    assert Claim.parse(" Rho = 0.5 ") == Claim.rho(0.5)
    assert Claim.parse("mu=1") == Claim.mu(Fraction(1))
    assert Claim.parse("delta=0.1,epsilon=2") == Claim.epsilon(2, 0.1)
    assert (Claim.mu(2).name, Claim.mu(2).value, Claim.mu(2).delta) == ("mu", 2.0, 0.0)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (Claim.epsilon(1, delta=1e-6), "epsilon = 1, delta = 1e-06"),
        (Claim.epsilon(0.5), "epsilon = 0.5"),
        (Claim.rho(0.5), "rho = 0.5"),
        (Claim.mu(1), "mu = 1"),
    ],
)
def test_a_claim_says_what_it_is(claim, text):
    assert str(claim) == text
    assert Claim.parse(text) == claim


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "claim"),
        ("1", "claim"),
        ("eps=1", "claim"),
        ("epsilon", "claim"),
        ("epsilon=", "epsilon"),
        ("epsilon=one", "epsilon"),
        ("epsilon=nan", "epsilon"),
        ("epsilon=inf", "epsilon"),
        ("epsilon=-1", "epsilon"),
        ("rho=-0.1", "rho"),
        ("mu=nan", "mu"),
        ("delta=0.1", "claim"),
        ("epsilon=1, delta=2", "delta"),
        ("epsilon=1, delta=-1", "delta"),
        ("epsilon=1, delta=nan", "delta"),
        ("mu=1, delta=1e-6", "delta"),
        ("mu=1, delta=0", "delta"),
        ("rho=1, delta=1e-6", "delta"),
        ("epsilon=1, rho=1", "claim"),
        ("epsilon=1, epsilon=2", "claim"),
        ("epsilon=1,", "claim"),
        (3, "claim"),
    ],
)
def test_what_is_no_guarantee_is_refused_with_a_fix(text, name):
    with pytest.raises(ParameterError) as caught:
        Claim.parse(text)
    assert caught.value.name == name and caught.value.fix


def test_an_unknown_name_is_no_claim():
    with pytest.raises(ParameterError, match="no guarantee named 'tau'"):
        Claim("tau", 1.0)
    with pytest.raises(ParameterError, match="belongs to epsilon"):
        Claim("mu", 1.0, 0.1)


def test_figures_of_one_event():
    # 3/4 against 1/4: ln 3; with delta = 0.1, ln(0.65/0.25); two normal quantiles of 0.75, 0.67449 each
    assert Claim.epsilon(1).refuted_by(0.75, 0.25) == pytest.approx(math.log(3))
    assert Claim.epsilon(1, 0.1).refuted_by(0.75, 0.25) == pytest.approx(math.log(2.6))
    assert Claim.mu(1).refuted_by(0.75, 0.25) == pytest.approx(2 * 0.6744897502)
    # between two such coins the divergence of order 1 is ln(3)/2, and of none is there more per order
    assert Claim.rho(1).refuted_by(0.75, 0.25) == pytest.approx(math.log(3) / 2)


def test_the_complement_counts_too():
    # 0.9 against 0.5: ln 1.8 for the event, but ln(0.5/0.1) = ln 5 for its complement, the other way round
    assert Claim.epsilon(1).refuted_by(0.9, 0.5) == pytest.approx(math.log(5))


def test_what_is_impossible_on_one_side_refutes_everything():
    for claim in (Claim.epsilon(5), Claim.rho(5), Claim.mu(5)):
        assert claim.refuted_by(0.5, 0.0) == math.inf
        assert claim.refuted_by(1.0, 0.5) == math.inf
    # delta = 0.6 allows an event of 0.5 on one side only
    assert Claim.epsilon(5, delta=0.6).refuted_by(0.5, 0.0) == 0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_arrays_give_arrays_and_numbers_give_numbers(claim):
    found = claim.refuted_by([0.6, 0.7, 0.2], 0.3)
    assert found.shape == (3,) and found[2] == 0
    assert type(claim.refuted_by(0.6, 0.3)) is float
    assert claim.refuted_by(0.6, 0.3) == pytest.approx(found[0])
    assert claim.refuted_by([[0.6], [0.7]], [0.1, 0.2]).shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@some
@given(p=chances, q=chances, more=chances, less=chances)
def test_a_more_telling_event_proves_no_less(claim, p, q, more, less):
    # rho is looked for among orders on a grid, which may miss its best by a little
    slack = 1e-4 if claim.name == "rho" else 1e-9
    found = claim.refuted_by(p, q)
    assert found >= 0
    assert claim.refuted_by(max(p, more), min(q, less)) >= found * (1 - slack) - 1e-12
    if p <= q:
        assert found == 0


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@some
@given(p=st.integers(0, 64), q=st.integers(0, 64))
def test_an_event_and_its_complement_prove_the_same(claim, p, q):
    # multiples of 1/64, so that 1 - p is exact
    assert claim.refuted_by(p / 64, q / 64) == pytest.approx(claim.refuted_by(1 - q / 64, 1 - p / 64), rel=1e-9)


@pytest.mark.slow
@some
@given(first=weights, second=weights, chosen=st.sets(st.integers(0, 5)), epsilon=st.floats(0, 2))
def test_no_event_proves_more_than_the_exact_epsilon(first, second, chosen, epsilon):
    size = min(len(first), len(second))
    laws = [[Fraction(weight, sum(side[:size])) for weight in side[:size]] for side in (first, second)]
    p, q = (float(sum(law[place] for place in chosen if place < size)) for law in laws)
    exact = TransitionMatrix(laws)
    assert Claim.epsilon(1).refuted_by(p, q) <= exact.epsilon + 1e-9
    # at delta = delta(epsilon) no event proves more than epsilon
    assert Claim.epsilon(1, min(exact.delta(epsilon), 1.0)).refuted_by(p, q) <= epsilon + 1e-6


@pytest.mark.slow
@some
@given(first=weights, second=weights, chosen=st.sets(st.integers(0, 5)))
def test_no_event_proves_more_than_the_exact_rho(first, second, chosen):
    size = min(len(first), len(second))
    laws = [np.array(side[:size]) / sum(side[:size]) for side in (first, second)]
    p, q = (min(sum(law[place] for place in chosen if place < size), 1 - 1e-9) for law in laws)
    orders = 1 + np.geomspace(1e-4, 1e4, 500)[:, None]

    def divergence(one, other):
        logs = orders * np.log(one) + (1 - orders) * np.log(other)
        top = logs.max(axis=1)
        return ((top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / ((orders - 1) * orders)[:, 0]).max()

    exact = max(divergence(*laws), divergence(*laws[::-1]))
    assert Claim.rho(1).refuted_by(p, q) <= exact * (1 + 1e-3) + 1e-9


@pytest.mark.slow
def test_rho_agrees_with_a_fine_search_over_orders():
    orders = 1 + np.geomspace(1e-5, 1e3, 1_000_000)
    for p, q in [(0.9, 0.3), (0.02, 0.001), (0.51, 0.5)]:
        best = 0.0
        for one, other in [(p, q), (1 - q, 1 - p)]:
            inside, outside = (
                orders * math.log(a) + (1 - orders) * math.log(b) for a, b in [(one, other), (1 - one, 1 - other)]
            )
            best = max(best, (np.logaddexp(inside, outside) / (orders * (orders - 1))).max())
        assert Claim.rho(1).refuted_by(p, q) == pytest.approx(best, rel=1e-4)


def test_half_lines_of_a_gaussian_prove_its_mu_and_less_than_its_rho():
    # N(1, 1) against N(0, 1): mu = 1 and rho = 1/2, which only all half-lines together reach
    thresholds = np.linspace(-3, 5, 81)
    p, q = ndtr(1 - thresholds), ndtr(-thresholds)
    assert Claim.mu(1).refuted_by(p, q) == pytest.approx(np.ones(81))
    found = Claim.rho(1).refuted_by(p, q)
    assert (found < 0.5).all() and found.max() > 0.4
