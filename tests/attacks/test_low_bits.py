"""Low bits: textbook noise in doubles has gaps that tell two values apart; noise on a grid has none.

Seeds are fixed. Binomial intervals are taken at 1 - 1e-10, so false alarms stay below 1e-9.
"""

from __future__ import annotations

import json
import math
import platform
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks.low_bits import FloatLaplace, GridNoise, classify_outputs, simulate_guessing
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits

COUNT = 50_000 if FULL else 2_000
SURE = 1 - 1e-10

scales = st.floats(0.01, 1000)
values = st.floats(-1000, 1000)


@pytest.mark.slow
@given(scales, values, st.integers(8, 10))
@settings(max_examples=20)
def test_the_test_of_possibility_is_exact_by_trying_all(scale, value, bits):
    # With 2^8 to 2^10 uniforms all outputs can be listed; their neighbors among the doubles are not in the list.
    noise = FloatLaplace(scale, bits)
    listed = {noise.output(value, k, sign) for k in range(1, 2**bits + 1, 7) for sign in (1, -1)}
    everything = {noise.output(value, k, sign) for k in range(1, 2**bits + 1) for sign in (1, -1)}
    for output in sorted(listed)[:: max(1, len(listed) // 40)]:
        assert noise.is_possible(output, value)
        for neighbor in (math.nextafter(output, math.inf), math.nextafter(output, -math.inf)):
            assert noise.is_possible(neighbor, value) == (neighbor in everything)


@given(scales, values, st.integers(1, 2**53), st.sampled_from([1, -1]))
def test_whatever_is_drawn_is_possible(scale, value, k, sign):
    noise = FloatLaplace(scale)
    assert noise.is_possible(noise.output(value, k, sign), value)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_most_outputs_prove_that_the_count_was_zero(scale):
    # Measured: some 65 % of the outputs of 0 are impossible for 1. None is possible for 1 only: they are outputs of 0.
    noise = FloatLaplace(scale)
    found = classify_outputs(noise.draw(0.0, COUNT, np.random.default_rng(1)), 0.0, 1.0, noise.possible)
    assert found.neither == found.only_other == 0
    assert clopper_pearson_interval(found.only_one, found.outputs, SURE)[0] > 0.55
    assert found.verdict == "told apart"


@pytest.mark.slow
def test_a_larger_count_hides_more_of_the_gaps():
    # 1000 + noise is rounded to 2^-43: more uniforms fit each output, and few outputs tell
    noise, rng = FloatLaplace(10.0), np.random.default_rng(2)
    small = classify_outputs(noise.draw(0.0, COUNT, rng), 0.0, 1.0, noise.possible)
    large = classify_outputs(noise.draw(1000.0, COUNT, rng), 1000.0, 1001.0, noise.possible)
    assert 0 < large.only_one < small.only_one / 10
    assert large.only_other == large.neither == 0


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="elsewhere the sum may be rounded once less")
def test_the_laplace_noise_of_numpy_is_told_apart():
    outputs = np.random.default_rng(3).laplace(0.0, 10.0, COUNT)
    found = classify_outputs(outputs, 0.0, 1.0, FloatLaplace(10.0).possible)
    assert found.neither == found.only_other == 0
    assert clopper_pearson_interval(found.only_one, found.outputs, SURE)[0] > 0.5


def test_integer_noise_gives_nothing_away():
    # Every integer is possible for 0 and for 1.
    found = classify_outputs(GridNoise().draw(0, COUNT, 10, ReplayBits(b"low")), 0.0, 1.0, GridNoise().possible)
    assert (found.both, found.verdict) == (COUNT, "nothing found")


def test_nor_does_it_on_a_grid_that_doubles_do_not_have():
    # thirds of a point: 50 is 150 steps; outputs are rounded once, and are the same doubles for every true value
    grid = GridNoise(Fraction(1, 3))
    found = classify_outputs(
        grid.draw(150, COUNT, 40, ReplayBits(b"thirds")), 50.0, float(Fraction(154, 3)), grid.possible
    )
    assert found.verdict == "nothing found"


@pytest.mark.slow
def test_other_noise_is_noticed_and_nothing_is_claimed():
    # normal noise is not the textbook's: many outputs are possible for neither value
    outputs = np.random.default_rng(4).normal(0.0, 10.0, COUNT)
    found = classify_outputs(outputs, 0.0, 1.0, FloatLaplace(10.0).possible)
    assert found.verdict == "another sampler"
    assert "proves nothing" in str(found)


@pytest.mark.slow
def test_guessing_by_low_bits_breaks_the_textbook():
    # epsilon 0.1 allows 0.525 right guesses; with 65 % proven and half of the rest right it is some 0.83
    noise, rng = FloatLaplace(10.0), np.random.default_rng(5)
    guessed = simulate_guessing(
        lambda value, count: noise.draw(value, count, rng), 0.0, 1.0, noise.possible, epsilon=0.1
    )
    assert guessed.verdict == "broken"
    assert guessed.max_accuracy == pytest.approx(0.524979, abs=1e-6)
    assert clopper_pearson_interval(guessed.right, guessed.rounds, SURE)[0] > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    "possible", [FloatLaplace(10.0).possible, GridNoise().possible], ids=["by low bits", "by the grid"]
)
def test_guessing_fails_on_integer_noise(possible):
    bits = ReplayBits(b"guess")
    guessed = simulate_guessing(
        lambda value, count: GridNoise().draw(int(value), count, 10, bits),
        0.0,
        1.0,
        possible,
        epsilon=0.1,
        rounds=COUNT,
    )
    assert guessed.verdict == "nothing found"
    assert clopper_pearson_interval(guessed.right, guessed.rounds, SURE)[0] < guessed.max_accuracy


def test_words_and_json():
    noise = FloatLaplace(1.0)
    found = classify_outputs(noise.draw(0.0, 200, np.random.default_rng(6)), 0.0, 1.0, noise.possible)
    assert "prove which it was" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["outputs"] == 200
    assert "is possible for 0 and for 1" in str(classify_outputs([3.0], 0, 1, GridNoise().possible))
    guessed = simulate_guessing(
        lambda value, count: [value] * count, 0, 1, GridNoise().possible, epsilon=0.1, rounds=100
    )
    assert (guessed.right, guessed.verdict) == (100, "broken")
    assert "allows 0.5250" in str(guessed) and json.dumps(guessed.to_dict())


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: FloatLaplace(0.0), "scale"),
        (lambda: FloatLaplace(1.0, bits=64), "scale"),
        (lambda: GridNoise(0), "step"),
        (lambda: GridNoise(1).possible(np.zeros(1), 0.5), "value"),
        (lambda: classify_outputs([], 0, 1, GridNoise().possible), "outputs"),
        (lambda: classify_outputs([math.nan], 0, 1, GridNoise().possible), "outputs"),
        (lambda: classify_outputs([1.0], math.inf, 1, GridNoise().possible), "one"),
        (lambda: simulate_guessing(lambda value, count: [1.0], 0, 1, GridNoise().possible, epsilon=1), "mechanism"),
    ],
)
def test_mistakes_are_clear_errors(make, name):
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.name == name and caught.value.fix
