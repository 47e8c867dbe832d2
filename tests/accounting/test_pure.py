"""Pure epsilon: exact sums of exact quotients."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.basic import epsilon
from tacit.privacy.loss import Compose, LaplaceNoise, decode, encode

NOISE = st.builds(LaplaceNoise, st.fractions(min_value=Fraction(1, 10**9), max_value=10**12), st.integers(0, 10**20))
LOSS = st.recursive(NOISE, lambda inner: st.builds(Compose, st.lists(inner, max_size=4).map(tuple)), max_leaves=8)


def leaves(loss) -> list[LaplaceNoise]:
    return [loss] if isinstance(loss, LaplaceNoise) else [leaf for part in loss.parts for leaf in leaves(part)]


def test_three_thirds_are_one():
    # 1/3 three times: in doubles 1, in tenths 0.30000000000000004; here exactly one
    assert epsilon(Compose((LaplaceNoise(Fraction(3), 1),) * 3)) == 1
    assert epsilon(Compose((LaplaceNoise(Fraction(10), 1),) * 3)) == Fraction(3, 10)


def test_nothing_costs_nothing():
    assert epsilon(Compose(())) == 0
    assert epsilon(LaplaceNoise(Fraction(5), 0)) == 0


@pytest.mark.slow
@given(LOSS)
def test_losses_add_up_however_they_are_nested(loss):
    assert epsilon(loss) == sum((Fraction(leaf.sensitivity) / leaf.scale for leaf in leaves(loss)), Fraction(0))


@pytest.mark.slow
@given(LOSS)
def test_a_loss_that_was_written_down_costs_the_same(loss):
    assert decode(encode(loss)) == loss
    assert epsilon(decode(encode(loss))) == epsilon(loss)
