"""Exact numbers: what people type, certified floors, grids."""

from __future__ import annotations

import math
import os
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from tests.support.forks import fork, outcome

from tacit.arithmetic import (
    certified_floor,
    common_grid_step,
    largest_power_of_ten,
    to_interval,
    to_rational,
    to_rational_between,
    working_precision,
)
from tacit.errors import ErrorCode, ParameterError

POSITIVE = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),  # one tenth, not 0x1.999999999999ap-4
        (1e-6, Fraction(1, 10**6)),
        (5e-324, Fraction(5, 10**324)),
        (3, Fraction(3)),
        (10**40, Fraction(10**40)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Decimal("1e-40"), Fraction(1, 10**40)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(7), Fraction(7)),
        (np.uint8(255), Fraction(255)),
        (-0.0, Fraction(0)),
        (-2.5, Fraction(-5, 2)),
    ],
    ids=repr,
)
def test_the_number_a_person_meant(value, meant):
    found = to_rational("epsilon", value)
    assert found == meant
    assert type(found) is Fraction


NO_NUMBERS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    Decimal("nan"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    np.float64("nan"),
    np.float32("inf"),
    "0.5",
    b"1",
    None,
    True,
    False,
    np.True_,
    1j,
    [1],
    np.array([1.0]),
    object,
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_named(value):
    with pytest.raises(ParameterError) as caught:
        to_rational("epsilon", value)
    assert caught.value.code is ErrorCode.PARAMETER
    assert caught.value.name == "epsilon"
    assert caught.value.what.startswith("epsilon: needs a ")
    assert caught.value.fix == "epsilon=0.5"


def test_a_long_value_is_cut_short():
    with pytest.raises(ParameterError) as caught:
        to_rational("epsilon", "9" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, -0.5, -(10**30), 1e-7, 1001, 1e300, Decimal(0), Fraction(-1, 3), np.int64(0)]
)
def test_out_of_range(value):
    with pytest.raises(ParameterError, match=r"must be between 1e-06 and 1000, got ") as caught:
        to_rational_between("epsilon", value, Fraction(1, 10**6), Fraction(1000))
    assert caught.value.fix == "choose epsilon between 1e-06 and 1000"


@pytest.mark.parametrize(
    "value", [10**400, Fraction(10**400), 10**5000, Decimal("1e400")], ids=["int", "fraction", "long", "decimal"]
)
def test_a_number_beyond_floats_is_out_of_range(value):
    with pytest.raises(ParameterError) as caught:
        to_rational_between("epsilon", value, Fraction(0), Fraction(1))
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        (Fraction(1, 100), 1 - Fraction(1, 10**9), "0.01 and 0.999999999"),
        (Fraction(0), Fraction(1), "0 and 1"),
        (Fraction(1, 10**9), Fraction(10**6), "1e-09 and 1e+06"),
        (1 + Fraction(1, 10**7), Fraction(10**8) + 1, "1.0000001 and 100000001"),
    ],
)
def test_a_range_is_named_as_it_is(lower, upper, said):
    # 1 - 1e-9 was said to be 1, so "between 0.01 and 1, got 1" refused what it offered
    with pytest.raises(ParameterError) as caught:
        to_rational_between("confidence", upper + 1, lower, upper)
    assert f"must be between {said}, got" in caught.value.what
    assert caught.value.fix == f"choose confidence between {said}"


@pytest.mark.slow
@given(st.fractions(), st.fractions(min_value=0, max_value=10**6), st.sampled_from([1, 10**6, 10**30, 10**-30]))
def test_both_ends_that_an_error_names_are_in_the_range(lower, width, scale):
    lower, upper = lower * Fraction(scale), (lower + width) * Fraction(scale)
    with pytest.raises(ParameterError) as caught:
        to_rational_between("x", upper + 1, lower, upper)
    assert caught.value.fix is not None
    for end in caught.value.fix.removeprefix("choose x between ").split(" and "):
        assert lower <= Fraction(end) <= upper


@pytest.mark.parametrize("value", [*NO_NUMBERS])
def test_within_takes_numbers_only(value):
    with pytest.raises(ParameterError):
        to_rational_between("epsilon", value, Fraction(0), Fraction(1))


@pytest.mark.parametrize(
    "value", [1e-6, Decimal("0.000001"), 1000, 1000.0, Fraction(1000), np.float64(1000), np.int32(1)]
)
def test_the_ends_belong_to_the_range(value):
    assert to_rational_between("epsilon", value, Fraction(1, 10**6), Fraction(1000)) == to_rational("epsilon", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_it_is_printed(value):
    assert to_rational("x", value) == Fraction(repr(value))
    assert float(to_rational("x", value)) == value


@given(st.integers(0, 10**40))
def test_certified_floor_of_a_multiple(n):
    # floor(n sqrt 2) = isqrt(2 n^2), here for n + 1, since n sqrt 2 may not be zero
    assert certified_floor(lambda: arb(2).sqrt() * (n + 1)) == math.isqrt(2 * (n + 1) ** 2)


@given(st.integers(1, 10**60))
def test_certified_floor_next_to_an_integer(n):
    # sqrt(n^2 + 1) is above n by about 1/(2n), sqrt(n^2 - 1) below it: 96 bits do not tell for n of 200 bits.
    assert certified_floor(lambda: arb(n * n + 1).sqrt()) == n
    if n > 1:
        assert certified_floor(lambda: arb(n * n - 1).sqrt()) == n - 1


@given(st.integers(1, 10**60))
def test_certified_floor_below_zero(n):
    assert certified_floor(lambda: -arb(n * n + 1).sqrt()) == -n - 1


def test_an_integer_that_is_not_known_exactly_ends_in_an_error():
    # 3 times the interval around 1/3 holds 1 and its neighbors, at every precision.
    with pytest.raises(ArithmeticError, match="bits do not tell"):
        certified_floor(lambda: to_interval(Fraction(1, 3)) * 3)
    assert certified_floor(lambda: to_interval(Fraction(3, 8)) * 8) == 3  # eighths are exact


@given(st.fractions())
def test_a_ball_holds_its_number(number):
    with working_precision(60):
        found = to_interval(number)
        assert found.contains(arb(number.numerator) / number.denominator)


def test_the_precision_is_put_back():
    before = ctx.prec
    with working_precision(333):
        assert ctx.prec == 333
        with working_precision(77):
            assert ctx.prec == 77
        assert ctx.prec == 333
    assert ctx.prec == before
    with pytest.raises(ZeroDivisionError), working_precision(99):
        _ = 1 / 0
    assert ctx.prec == before


def test_threads_do_not_disturb_each_other():
    wrong: list[int] = []

    def work(bits: int) -> None:
        for _ in range(300):
            with working_precision(bits):
                if ctx.prec != bits:
                    wrong.append(bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (60, 100, 200, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_child_forked_inside_can_work():
    with working_precision(128):
        child = fork()
        if child == 0:
            code = 1
            try:
                code = 0 if certified_floor(lambda: arb(2).sqrt()) == 1 else 2
            finally:
                os._exit(code)
    assert outcome(child) == 0


@given(POSITIVE)
def test_largest_power_of_ten(number):
    power = largest_power_of_ten(number)
    assert power <= number < 10 * power
    ten = Fraction(10)
    exponent = round(math.log10(power.numerator) - math.log10(power.denominator))
    assert power == ten**exponent


@given(st.integers(-300, 300))
def test_a_power_of_ten_is_its_own(exponent):
    power = Fraction(10) ** exponent
    assert largest_power_of_ten(power) == power
    assert largest_power_of_ten(power - Fraction(1, 10**400)) == power / 10


@given(st.fractions(min_value=0), st.fractions(min_value=0))
def test_common_step_divides_both_and_is_the_largest(one, other):
    step = common_grid_step(one, other)
    if one == other == 0:
        assert step == 0
        return
    multiples = [number / step for number in (one, other)]
    assert all(multiple.denominator == 1 for multiple in multiples)
    assert math.gcd(*(multiple.numerator for multiple in multiples)) == 1  # a larger step would leave a common factor


def test_common_step_of_cents_and_thirds():
    assert common_grid_step(Fraction(1, 100), Fraction(1, 3)) == Fraction(1, 300)
    assert common_grid_step(Fraction(0), Fraction(5)) == 5  # zero lies on every grid
