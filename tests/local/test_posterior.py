"""What a report tells about its sender."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import meaning
from tacit.errors import ParameterError
from tacit.local import Hadamard, KAry, LocalHashing, OptimizedUnary, Projective, SubsetSelection, SymmetricUnary
from tacit.local.posterior import after_no, after_yes, posterior_of, words
from tacit.mechanisms import RandomizedResponse

KINDS = [KAry, SymmetricUnary, OptimizedUnary, LocalHashing, Hadamard, SubsetSelection, Projective]
LN3 = math.log(3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_bayes_rule_on_the_matrix(kind):
    protocol, prior = kind(4, Fraction(3, 2)), [0.4, 0.3, 0.2, 0.1]
    matrix = protocol.matrix()
    for number, report in enumerate(protocol.outputs()):
        joint = np.array([prior[x] * float(matrix.rows[x][number]) for x in range(4)])
        assert posterior_of(protocol, prior, report) == pytest.approx(joint / joint.sum(), rel=1e-12)


@settings(max_examples=80, deadline=None)
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
    after = posterior_of(protocol, prior, protocol.encode_one(seed % domain, ReplayBits(str(seed).encode())))
    assert after.sum() == pytest.approx(1)
    assert (after <= prior * math.exp(epsilon) * (1 + 1e-9)).all()
    assert (after >= prior * math.exp(-epsilon) * (1 - 1e-9)).all()


@pytest.mark.parametrize("r", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_deniability_of_the_coins(r):
    # (3/4) r/((3/4) r + (1/4)(1 - r)) <= 3 r: at r = 1/10 it is 0.075/0.3 = 1/4.
    exact = RandomizedResponse(coin=Fraction(1, 2)).posterior(r)
    assert after_yes(LN3, r) == pytest.approx(float(exact), rel=1e-12)
    assert after_yes(LN3, r) <= 3 * r
    assert after_no(LN3, r) == pytest.approx(
        float(Fraction(1, 4) * r / (Fraction(1, 4) * r + Fraction(3, 4) * (1 - r)))
    )
    assert after_no(LN3, r) >= r / 3
    assert (after_no(LN3, r), after_yes(LN3, r)) == pytest.approx(meaning.posterior(LN3, float(r)))


def test_the_sentence():
    # At epsilon 1 and a prior of one tenth: 0.1 e/(0.1 e + 0.9) = 0.232, e/10 = 0.272, 0.1/(0.1 + 0.9 e) = 0.0393.
    assert words(KAry(2, 1), 0.1) == (
        "If 10 % would truly say yes, a yes makes it 23.2 % for you, never more than 27.2 %; a no makes it 3.9 %."
    )
    with pytest.raises(ParameterError):
        words(KAry(3, 1), 0.1)


def test_a_large_epsilon_tells_everything_and_nothing_overflows():
    assert after_yes(5000, 0.001) == 1.0
    assert after_no(5000, 0.001) == 0.0
    assert posterior_of(KAry(2, 100), [0.5, 0.5], 1)[1] == pytest.approx(1)


def test_a_prior_is_a_law():
    for prior in ([0.5, 0.4], [1.5, -0.5], [1.0], [[0.5, 0.5]]):
        with pytest.raises(ParameterError):
            posterior_of(KAry(2, 1), prior, 1)
