"""Noise on one integer, on lists and on arrays: the same draws, in the shape that was given."""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, some

import tacit.mechanisms as package
from tacit.errors import ParameterError
from tacit.mechanisms import Gaussian, Laplace
from tacit.sampling.bits import ReplayBits

BOTH = [Laplace(Fraction(10)), Gaussian(Fraction(100))]
STILL = [Laplace(Fraction(1, 60)), Gaussian(Fraction(1, 120))]  # P(noise != 0) < 1e-25: what comes out went in
WIDTHS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8"]


@pytest.mark.parametrize("mechanism", BOTH)
def test_an_array_gets_the_noise_that_the_list_gets(mechanism):
    values = np.arange(-300, 300)
    as_list = mechanism.release(values.tolist(), ReplayBits(b"same"))
    as_array = mechanism.release(values, ReplayBits(b"same"))
    assert as_array.dtype == np.int64
    assert as_array.tolist() == as_list
    table = mechanism.release(values.reshape(20, 30), ReplayBits(b"same"))
    assert table.shape == (20, 30)
    assert table.ravel().tolist() == as_list


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "dtype"), [(still, dtype) for first, still in enumerate(STILL) for dtype in some(WIDTHS, 2, first)]
)
@settings(max_examples=100 if FULL else 10)
@given(data=st.data())
def test_every_integer_of_every_width_is_read_as_it_is_up_to_the_clamp(mechanism, dtype, data):
    ends = np.iinfo(dtype)
    edges = [int(ends.min), int(ends.max), 0, 1]
    numbers = data.draw(st.lists(st.sampled_from(edges) | st.integers(int(ends.min), int(ends.max)), max_size=20))
    released = mechanism.release(np.array(numbers, dtype=dtype), ReplayBits(b"still"))
    assert released.tolist() == [max(-(2**62), min(2**62, number)) for number in numbers]


@pytest.mark.parametrize("mechanism", [Laplace(Fraction(2**48)), Gaussian(Fraction(2**78))])
def test_the_widest_noise_of_machine_integers_does_not_wrap_around(mechanism):
    # |noise| < 2^61 but for a probability below exp(-2^12); with a value of 2^62 the sum is then within 2^63
    for value in (2**63 - 1, -(2**63)):
        released = mechanism.release(np.full(1000, value), ReplayBits(b"wide"))
        assert (np.sign(released) == np.sign(value)).all()


@pytest.mark.parametrize("mechanism", [Laplace(Fraction(2**80)), Gaussian(Fraction(2**160))])
def test_noise_that_machine_integers_cannot_hold_makes_python_integers(mechanism):
    released = mechanism.release(np.zeros((5, 4), dtype=np.int8), ReplayBits(b"wide"))
    assert released.dtype == object
    assert released.shape == (5, 4)
    assert min(abs(value) for value in released.ravel()) > 2**63


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("values", [np.array([1.0]), np.array([True]), np.array(["1"]), np.array([1], dtype=object)])
def test_an_array_of_anything_else_is_refused_without_showing_it(mechanism, values):
    with pytest.raises(ParameterError, match="needs integers, got an array of"):
        mechanism.release(values)


@pytest.mark.parametrize("mechanism", BOTH)
def test_an_array_that_was_given_is_not_written_to(mechanism):
    values = np.arange(100)
    mechanism.release(values)
    assert values.tolist() == list(range(100))


@pytest.mark.parametrize("mechanism", BOTH)
def test_without_bits_noise_is_fresh(mechanism):
    # two rows of 1,000 draws agree with probability below 1e-1000
    assert mechanism.release(np.zeros(1000, dtype=int)).tolist() != mechanism.release([0] * 1000)
    assert isinstance(mechanism.release(5), int)


@pytest.mark.parametrize("name", dir(package))
def test_every_mechanism_can_be_used_without_bringing_bits(name):
    release = getattr(getattr(package, name), "release", None)
    if release is not None:
        assert inspect.signature(release).parameters["bits"].default is None


@pytest.mark.parametrize("name", sorted({*package.__all__} - {"PiecewiseLinearScore"}))  # what a mechanism is given
def test_calibration_is_by_the_same_names(name):
    # What is spent comes first, epsilon and then delta; what one unit moves is called `sensitivity`.
    names = list(inspect.signature(getattr(package, name).calibrated).parameters)
    assert names[0] == "epsilon"
    assert "delta" not in names[2:]
    assert not {"shift", "moved", "scale"} & set(names)


def test_laplace_and_gaussian_are_calibrated_alike():
    given = {"epsilon": 1, "sensitivity": 3}
    assert Laplace.calibrated(**given).scale == 3
    assert Gaussian.calibrated(**given, delta=1e-5).variance > 9
