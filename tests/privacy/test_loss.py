"""What was done, as data: written down, read back, and priced."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.accounting import basic
from tacit.errors import ParameterError
from tacit.privacy.loss import Compose, LaplaceNoise, Loss, decode, encode

noises = st.builds(LaplaceNoise, st.fractions(min_value=Fraction(1, 10**9)), st.integers(0, 10**30))
losses: st.SearchStrategy[Loss] = st.recursive(
    noises, lambda inner: st.lists(inner, max_size=4).map(lambda parts: Compose(tuple(parts))), max_leaves=10
)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(losses)
def test_what_is_written_is_read_back(loss: Loss) -> None:
    text = encode(loss)
    assert decode(text) == loss
    assert encode(decode(text)) == text
    assert basic.epsilon(decode(text)) == basic.epsilon(loss)


def test_the_text_is_canonical():
    # 20/40 is 1/2, and keys are sorted, so that equal losses have equal text
    half, same = LaplaceNoise(Fraction(1, 2), 3), LaplaceNoise(Fraction(20, 40), 3)
    assert encode(half) == encode(same) == '{"did":"laplace","scale":"1/2","sensitivity":3}'
    assert encode(Compose((half,))) == '{"did":"compose","parts":[{"did":"laplace","scale":"1/2","sensitivity":3}]}'


def test_integers_beyond_doubles_survive():
    loss = LaplaceNoise(Fraction(10**40 + 1, 3), 2**200 + 1)
    assert decode(encode(loss)) == loss


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "null",
        '{"did":"gauss","scale":"1","sensitivity":1}',
        '{"did":"laplace","scale":1,"sensitivity":1}',
        '{"did":"laplace","scale":"1","sensitivity":"1"}',
        '{"did":"laplace","scale":"1"}',
        '{"did":"laplace","scale":"one","sensitivity":1}',
        '{"did":"laplace","scale":"0","sensitivity":1}',
        '{"did":"laplace","scale":"-1","sensitivity":1}',
        '{"did":"laplace","scale":"1","sensitivity":-1}',
        '{"did":"laplace","scale":"1","sensitivity":1.5}',
        '{"did":"compose","parts":{}}',
        '{"did":"compose","parts":[1]}',
        "not json",
    ],
)
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        decode(text)
    assert isinstance(caught.value, ParameterError | json.JSONDecodeError | ValueError)


def test_epsilons():
    # 6/12 for a count, (6 * 110)/1320 for a sum, and nothing for nothing
    assert basic.epsilon(LaplaceNoise(Fraction(12), 6)) == Fraction(1, 2)
    assert basic.epsilon(Compose((LaplaceNoise(Fraction(12), 6), LaplaceNoise(Fraction(1320), 660)))) == 1
    assert basic.epsilon(Compose(())) == 0
    assert basic.epsilon(LaplaceNoise(Fraction(5), 0)) == 0


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(st.lists(losses, max_size=4))
def test_composition_adds_however_it_is_nested(parts: list[Loss]) -> None:
    total = sum((basic.epsilon(part) for part in parts), Fraction(0))
    assert basic.epsilon(Compose(tuple(parts))) == total
    assert basic.epsilon(Compose((Compose(tuple(parts)), Compose(())))) == total


@pytest.mark.parametrize("scale", [10, 10.0, Decimal(10), np.float64(10), np.int64(10)])
def test_any_number_is_kept_as_a_rational(scale):
    # Kept as it came, an int would be stored as a number, which is not how a scale is read back.
    loss = LaplaceNoise(scale, 1)
    assert type(loss.scale) is Fraction
    assert decode(encode(loss)) == loss == LaplaceNoise(Fraction(10), 1)


@pytest.mark.parametrize("sensitivity", [1.5, True, "1", None])
def test_a_sensitivity_is_an_integer(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity: needs an integer"):
        LaplaceNoise(10, sensitivity)
