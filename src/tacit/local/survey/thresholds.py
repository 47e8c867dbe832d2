"""Epsilons as people write them, and coins whose probabilities are integers out of 2^64.

>>> compute_flip_threshold(SurveyEpsilon.read("ln 3")) == TWO_TO_64 // 4  # two coins: the truth with 3/4
True
>>> round(compute_flip_threshold(SurveyEpsilon.read(1)) / TWO_TO_64, 6)
0.268941
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import certified_floor, to_interval, to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.local.survey.rounding import double_above
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

if TYPE_CHECKING:
    from flint import arb

TWO_TO_64 = 2**64
_FINE = 2**160
_LEAST, _MOST = Fraction(1, 1000), Fraction(20)
_LOGARITHM = re.compile(r"ln ?([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_RATIO = re.compile(r"[0-9]{1,30}(/0{0,30}[1-9][0-9]{0,29})?|[0-9]{1,30}\.[0-9]{1,30}")


@dataclass(frozen=True)
class SurveyEpsilon:
    """An epsilon: `amount`, or its natural logarithm, so that the two coins' ln 3 is exact."""

    amount: Fraction
    is_logarithm: bool = False

    @classmethod
    def read(cls, given: Any, name: str = "epsilon") -> SurveyEpsilon:
        """A number, or a text: 1.5, "2/3", "ln 3"."""
        fix = f'{name} = 1, or {name} = "ln 3"'
        if isinstance(given, str):
            logarithm = _LOGARITHM.fullmatch(given)
            if logarithm is not None:
                return cls(
                    to_rational_between(
                        f"{name}, the number after ln", Fraction(logarithm[1]), 1 + _LEAST, Fraction(10**8)
                    ),
                    True,
                )
            if _RATIO.fullmatch(given) is None:
                raise ParameterError(name, f"{given[:40]!r} is no epsilon", fix=fix)
            given = Fraction(given)
        return cls(to_rational_between(name, to_rational(name, given), _LEAST, _MOST))

    @property
    def epsilon(self) -> float:
        """The number, rounded up."""
        return double_above(Total.of([self]).epsilon)

    @property
    def odds(self) -> Fraction:
        """e^epsilon, rounded up: how many times surer a report can make anyone."""
        return Total.of([self]).odds

    def __str__(self) -> str:
        """As `read` reads it."""
        return f"ln {_decimal(self.amount)}" if self.is_logarithm else _decimal(self.amount)


@dataclass(frozen=True)
class Total:
    """A sum of epsilons, exactly: plain + ln(factor), both rational.

    `epsilon` and `odds` = e^epsilon are exact where they are rational, so where there is no logarithm, or nothing else.
    Otherwise they are irrational, and rounded up by at most 2^-160.
    """

    plain: Fraction = Fraction(0)
    factor: Fraction = Fraction(1)

    @classmethod
    def of(cls, prices: Iterable[SurveyEpsilon]) -> Total:
        """Return the sum of some prices."""
        plain, factor = Fraction(0), Fraction(1)
        for price in prices:
            if price.is_logarithm:
                factor *= price.amount
            else:
                plain += price.amount
        return cls(plain, factor)

    def __add__(self, other: Total) -> Total:
        return Total(self.plain + other.plain, self.factor * other.factor)

    @cached_property
    def epsilon(self) -> Fraction:
        """The sum."""
        if self.factor == 1:
            return self.plain
        return _above(lambda: to_interval(self.plain) + to_interval(self.factor).log())

    @cached_property
    def odds(self) -> Fraction:
        """How many times surer all of it can make anyone."""
        return _above(lambda: to_interval(self.plain).exp() * to_interval(self.factor)) if self.plain else self.factor


def _above(enclose: Callable[[], arb]) -> Fraction:
    """Return a positive irrational number, rounded up."""
    return Fraction(certified_floor(lambda: enclose() * _FINE, bits=256) + 1, _FINE)


def compute_flip_threshold(price: SurveyEpsilon, others: int = 1, parts: int = 1) -> int:
    """The least integer L for which a coin of probability L/2^64 keeps the price, as the theorem says.

    **Theorem.** Let an answer be replaced by another one with probability L/2^64, each of the `others` equally likely.
    If 2^64 others/(e^(epsilon/parts) + others) <= L <= 2^64 others/(others + 1), two answers' probabilities of any
    report differ by a factor of at most e^(epsilon/parts), and by the exact ratio (2^64 - L) others/L. Proof: the
    distribution is (2^64 - L)/2^64 on the diagonal and L/(2^64 others) elsewhere. Their ratio falls in L, is
    e^(epsilon/parts) at the first end and 1 at the second.

    The first end is rounded up, so toward privacy. It is not an integer unless e^epsilon is rational, which is then
    taken as it is; so its floor can be certified.
    """
    if price.is_logarithm:
        if parts != 1:
            fix = "write it as a number: it is split over the options"
            raise ParameterError("epsilon", "a logarithm cannot be split", fix=fix)
        return math.ceil(TWO_TO_64 * others / (price.amount + others))
    return certified_floor(lambda: TWO_TO_64 * others / (to_interval(price.amount / parts).exp() + others)) + 1


def flip_coin(chance: int, bits: Bits) -> bool:
    """Heads with probability probability/2^64, exactly: one word, compared."""
    return draw_below(TWO_TO_64, bits) < chance


def _decimal(number: Fraction) -> str:
    """A decimal where the number has one of few digits, else a ratio."""
    for digits in range(10):
        scaled = number * 10**digits
        if scaled.denominator == 1:
            whole = str(int(scaled)).rjust(digits + 1, "0")
            return f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
    return str(number)
