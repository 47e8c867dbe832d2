"""Permute-and-flip: its theorem from its exact law, and that it is never worse than the exponential mechanism."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import OFF, enough
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits


def by_permutations(scores, factor):
    """The law from its definition: every order, the first heads."""
    coins = [math.exp(float(factor) * (score - max(scores))) for score in scores]
    found = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        tails = 1.0 / math.factorial(len(scores))
        for index in order:
            found[index] += tails * coins[index]
            tails *= 1 - coins[index]
    return found


@pytest.mark.parametrize(
    "scores", [[3], [0, 0], [0, 2, 4], [5, 5, 1, 0], [1, 2, 3, 4, 5], [0, -9, 9, 3, 3, 2]], ids=str
)
def test_the_law_is_the_definition(scores):
    pick = PermuteAndFlip(Fraction(1))
    assert [float(p) for p in pick.law(scores)] == pytest.approx(by_permutations(scores, pick.factor), abs=1e-13)


def test_the_law_of_many_is_certified():
    # 200 scores: the coefficients reach 2^200 and cancel, and still all digits are certain.
    law = PermuteAndFlip(Fraction(1, 5)).law(list(range(200)))
    assert all(float(p.rad()) < 1e-30 for p in law)
    with working_precision(256):
        assert sum(law[1:], law[0]).overlaps(arb(1))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)], ids=str)
def test_the_largest_ratio_is_e_to_the_epsilon(epsilon, monotone):
    pick, largest = PermuteAndFlip(epsilon, monotone=monotone), 0.0
    with working_precision(160):
        bound = to_interval(epsilon).exp()
        for one in [(0, 0, 0), (0, 1, 5), (3, 3, 0), (-2, 9, 9)]:
            for move in product([-1, 0, 1], repeat=3):
                if monotone and min(move) * max(move) < 0:
                    continue
                other = [a + b for a, b in zip(one, move, strict=True)]
                for p, q in zip(pick.law(one), pick.law(other), strict=True):
                    assert not p > bound * q + arb(2) ** -100
                    assert not q > bound * p + arb(2) ** -100
        # Tight: of two, the worse at gap g wins with probability w/2, w = exp(-factor g). Where the gap grows by 2 (by
        # 1 where only one score moves), the ratio is exactly e^epsilon.
        other = [1, -1] if not monotone else [0, -1]
        largest = pick.law([0, 0])[1] / pick.law(other)[1]
        assert largest.overlaps(bound)


def test_its_loss_has_no_range_of_epsilon():
    # Scores (0, 0) against (1, -1) at epsilon 1, factor 1/2: P = (1/2, 1/2) and (1 - 1/(2e), 1/(2e)). The losses are 1
    # and ln(1/2) - ln(1 - 1/(2e)) = -0.4899: a range of 1.4899. So its zCDP cost is not epsilon^2/8.
    pick = PermuteAndFlip(Fraction(1))
    losses = [math.log(float(p) / float(q)) for p, q in zip(pick.law([0, 0]), pick.law([1, -1]), strict=True)]
    assert losses[1] - losses[0] == pytest.approx(1 + 0.489880, abs=1e-6)
    assert pick.loss() == PureDp(Fraction(1))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=12),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(4)]),
)
def test_never_worse_than_the_exponential_mechanism(scores, epsilon):
    best = max(scores)
    with working_precision(256):
        one, other = PermuteAndFlip(epsilon).law(scores), Exponential(epsilon).law(scores)
        slack = arb(2) ** -80
        assert sum((p * (best - u) for p, u in zip(one, scores, strict=True)), arb(0)) <= slack + sum(
            (p * (best - u) for p, u in zip(other, scores, strict=True)), arb(0)
        )
        for gap in sorted({best - u for u in scores}):  # nor is it more likely to fall short by any amount
            tails = [
                sum((p for p, u in zip(law, scores, strict=True) if best - u >= gap), arb(0)) for law in (one, other)
            ]
            assert tails[0] <= tails[1] + slack


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 2**53 + 1])
def test_release_has_the_law(offset):
    # p > 1e-11 for each of 2: a false alarm in at most 2e-11. More epsilon is rejected.
    scores = [offset + score for score in (0, 3, 1, 6, 5, 2)]
    pick, bits = PermuteAndFlip(Fraction(1)), ReplayBits(b"flip %d" % offset)
    count = enough(20_000)
    seen = Counter(pick.release(scores, bits) for _ in range(count))
    observed = [seen[index] for index in range(6)]
    assert chi_square(observed, [count * float(p) for p in pick.law(scores)]) > 1e-11
    assert chi_square(observed, [count * float(p) for p in PermuteAndFlip(1 + OFF).law(scores)]) < 1e-9


@pytest.mark.parametrize("choices", [1, 2, 7, 1000])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**6)], ids=str)
def test_error_is_the_least_that_holds(choices, confidence):
    pick = PermuteAndFlip(Fraction(1), 2)

    def wins(gap):
        weight = math.exp(-gap / 4)
        return (1 - (1 - weight) ** choices) / (choices * weight)

    w = pick.error(choices, confidence)
    assert wins(w + 1) >= confidence
    assert w == 0 or wins(w) < confidence
    assert w <= Exponential(Fraction(1), 2).error(choices, confidence)


def test_the_worst_case_of_the_error():
    # Six scores, one best: no others leave it less likely that the winner is within 6 than all at 7 below do.
    pick = PermuteAndFlip(Fraction(1))
    worst = 1 - float(pick.law([0, *[-7] * 5])[0])
    for others in product([0, -3, -6, -7, -9], repeat=5):
        if sorted(others) == list(others):
            law = pick.law([0, *others], digits=64)
            short = math.fsum(float(p) for p, u in zip(law, [0, *others], strict=True) if u <= -7)
            assert short <= worst + 1e-12


def test_calibration():
    assert PermuteAndFlip.calibrated(0.1, 3).factor == Fraction(1, 60)
    assert PermuteAndFlip.calibrated(0.1, 3, monotone=True).factor == Fraction(1, 30)
    assert PermuteAndFlip.calibrated(1, 0).sensitivity == 1


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        PermuteAndFlip(epsilon)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(), st.text(), st.booleans(), st.none()), min_size=1))
def test_no_such_scores(scores):
    with pytest.raises(ParameterError, match="scores: "):
        PermuteAndFlip(Fraction(1)).release(scores, ReplayBits(b""))


def test_extremes():
    assert PermuteAndFlip(Fraction(2**64)).release([-(2**512) + 1, 2**512 - 1], ReplayBits(b"wide")) == 1
    assert PermuteAndFlip(Fraction(1)).release([7], ReplayBits(b"one")) == 0
