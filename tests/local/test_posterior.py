"""What a report tells about its sender."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.accounting import interpretation
from tacit.errors import ParameterError
from tacit.local import (
    HadamardResponse,
    HierarchicalHistogram,
    HybridMechanism,
    KAryRandomizedResponse,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    PiecewiseMechanism,
    ProjectiveGeometryResponse,
    Rappor,
    StochasticRounding,
    SubsetSelection,
    SymmetricUnaryEncoding,
    UniformGrid,
)
from tacit.local.posterior import (
    compute_posterior,
    describe_posterior,
    posterior_after_no,
    posterior_after_yes,
    single_report_epsilon,
)
from tacit.mechanisms import RandomizedResponse

KINDS = [
    KAryRandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimizedLocalHashing,
    HadamardResponse,
    SubsetSelection,
    ProjectiveGeometryResponse,
    Rappor,
]
LN3 = math.log(3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("domain", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_it_is_bayes_rule_on_the_matrix(kind, domain, epsilon):
    protocol, prior = kind(domain, epsilon), np.array([0.4, 0.3, 0.2, 0.1][:domain])
    prior /= prior.sum()
    matrix = protocol.matrix()
    for number, report in enumerate(protocol.list_reports()):
        joint = np.array([prior[x] * float(matrix.rows[x][number]) for x in range(domain)])
        assert compute_posterior(protocol, prior, report) == pytest.approx(joint / joint.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", [StochasticRounding, PiecewiseMechanism, HybridMechanism])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_it_is_bayes_rule_for_numbers_too(kind, epsilon):
    protocol, prior = kind(UniformGrid(0, 3, 3), epsilon), [0.4, 0.3, 0.2, 0.1]
    rows = protocol.matrix().rows
    for report in range(len(rows[0])):
        joint = np.array([chance * float(row[report]) for chance, row in zip(prior, rows, strict=True)])
        assert compute_posterior(protocol, prior, report) == pytest.approx(joint / joint.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_epsilon_of_one_report_is_that_of_the_matrix(kind):
    for domain, epsilon in [(2, 1), (3, 4), (5, Fraction(1, 3))]:
        protocol = kind(domain, epsilon)
        assert float(single_report_epsilon(protocol)) == pytest.approx(protocol.matrix().epsilon, abs=1e-12)
        assert single_report_epsilon(protocol) == (protocol.epsilon_after(1) if kind is Rappor else protocol.epsilon)


def test_one_report_of_a_kept_answer_tells_less_than_a_lifetime():
    # p = 0.690399, q = 0.309601: 0.1 p (1 - q)^2 = 0.032908 to twice 0.45 (1 - p) q (1 - q) = 0.029779
    protocol = Rappor(3, 4)
    p, q = protocol.p, protocol.q
    yes, other = 0.1 * p * (1 - q) ** 2, 0.45 * (1 - p) * q * (1 - q)
    found = compute_posterior(protocol, [0.1, 0.45, 0.45], np.packbits([1, 0, 0]))
    assert found[0] == pytest.approx(yes / (yes + 2 * other), rel=1e-12) == pytest.approx(0.356, abs=5e-4)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 30),
    st.floats(0.1, 5),
    st.lists(st.floats(0, 1), min_size=30, max_size=30),
    st.integers(0, 10**6),
)
def test_a_belief_changes_by_a_factor_of_at_most_e_to_the_epsilon(kind, domain, epsilon, weights, seed):
    from tacit.sampling.bits import ReplayBits

    protocol = kind(domain, epsilon)
    prior = np.array(weights[:domain]) + 1e-3
    prior /= prior.sum()
    after = compute_posterior(protocol, prior, protocol.encode_one(seed % domain, ReplayBits(str(seed).encode())))
    assert after.sum() == pytest.approx(1)
    assert (after <= prior * math.exp(epsilon) * (1 + 1e-9)).all()
    assert (after >= prior * math.exp(-epsilon) * (1 - 1e-9)).all()


@pytest.mark.parametrize("r", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_deniability_of_the_coins(r):
    # (3/4) r/((3/4) r + (1/4)(1 - r)) <= 3 r: at r = 1/10 it is 0.075/0.3 = 1/4.
    exact = RandomizedResponse(coin=Fraction(1, 2)).posterior(r)
    assert posterior_after_yes(LN3, r) == pytest.approx(float(exact), rel=1e-12)
    assert posterior_after_yes(LN3, r) <= 3 * r
    assert posterior_after_no(LN3, r) == pytest.approx(
        float(Fraction(1, 4) * r / (Fraction(1, 4) * r + Fraction(3, 4) * (1 - r)))
    )
    assert posterior_after_no(LN3, r) >= r / 3
    assert (posterior_after_no(LN3, r), posterior_after_yes(LN3, r)) == pytest.approx(
        interpretation.posterior_bounds(LN3, float(r))
    )


def test_the_sentence():
    # At epsilon 1 and a prior of one tenth: 0.1 e/(0.1 e + 0.9) = 0.232, e/10 = 0.272, 0.1/(0.1 + 0.9 e) = 0.0393.
    assert describe_posterior(KAryRandomizedResponse(2, 1), 0.1) == (
        "If 10 % would truly say yes, a yes makes it 23.2 % for you, never more than 27.2 %; a no makes it 3.9 %."
    )
    for other in (KAryRandomizedResponse(3, 1), StochasticRounding(UniformGrid(0, 1, 1), 1)):
        with pytest.raises(ParameterError, match="two values"):
            describe_posterior(other, 0.1)


def test_the_sentences_of_reports_that_may_support_both_or_neither():
    once = "If 10 % would truly say yes, a yes makes it 23.2 % for you, never more than 27.2 %; a no makes it 3.9 %."
    for kind in (
        SymmetricUnaryEncoding,
        OptimizedUnaryEncoding,
        OptimizedLocalHashing,
        HadamardResponse,
        ProjectiveGeometryResponse,
    ):
        assert describe_posterior(kind(2, 1), 0.1) == once + " A report for both or for neither changes nothing."
    assert describe_posterior(SubsetSelection(2, 1), 0.1) == once


def test_the_sentences_of_an_answer_that_is_kept():
    # One report at after(1) = 1.604: 0.1 e^1.604/(0.1 e^1.604 + 0.9) = 0.356; a lifetime at 4: 0.1 e^4/(0.1 e^4 + 0.9).
    assert describe_posterior(Rappor(2, 4), 0.1) == (
        "If 10 % would truly say yes, a yes makes it 35.6 % for you, never more than 49.8 %; a no makes it 2.1 %. "
        "A report for both or for neither changes nothing. "
        "A lifetime of reports makes it at most 85.9 % and at least 0.2 %."
    )


def test_a_large_epsilon_tells_everything_and_nothing_overflows():
    assert posterior_after_yes(5000, 0.001) == 1.0
    assert posterior_after_no(5000, 0.001) == 0.0
    assert compute_posterior(KAryRandomizedResponse(2, 100), [0.5, 0.5], 1)[1] == pytest.approx(1)


def test_a_report_of_several_questions_has_no_posterior_here():
    with pytest.raises(ParameterError, match="one report on one value"):
        compute_posterior(HierarchicalHistogram(KAryRandomizedResponse, 4, 1), [0.25] * 4, 1)


def test_a_prior_is_a_law():
    for prior in ([0.5, 0.4], [1.5, -0.5], [1.0], [[0.5, 0.5]]):
        with pytest.raises(ParameterError):
            compute_posterior(KAryRandomizedResponse(2, 1), prior, 1)
