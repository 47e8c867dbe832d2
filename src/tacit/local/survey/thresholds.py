"""Epsilons as a survey file writes them, and flip probabilities as integers out of 2^64.

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
from typing import TYPE_CHECKING

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
    """An epsilon: `amount`, or its natural logarithm, so that ln 3 is exact."""

    amount: Fraction
    is_logarithm: bool = False

    @classmethod
    def read(cls, given: object, name: str = "epsilon") -> SurveyEpsilon:
        """Read a number, or a text: 1.5, "2/3", "ln 3"."""
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
                raise ParameterError(name, f"{given[:40]!r} is not an epsilon", fix=fix)
            given = Fraction(given)
        return cls(to_rational_between(name, to_rational(name, given), _LEAST, _MOST))

    @property
    def value(self) -> float:
        """The epsilon as a double, rounded up."""
        return double_above(Total.of([self]).epsilon)

    @property
    def odds(self) -> Fraction:
        """e^epsilon, rounded up: the factor by which a report can change the odds of an answer."""
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
    def of(cls, epsilons: Iterable[SurveyEpsilon]) -> Total:
        """Return the sum of some epsilons."""
        plain, factor = Fraction(0), Fraction(1)
        for epsilon in epsilons:
            if epsilon.is_logarithm:
                factor *= epsilon.amount
            else:
                plain += epsilon.amount
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
        """e^epsilon: the factor by which all of it can change the odds of anything about its sender."""
        return _above(lambda: to_interval(self.plain).exp() * to_interval(self.factor)) if self.plain else self.factor


def _above(enclose: Callable[[], arb]) -> Fraction:
    """Return a positive irrational number, rounded up."""
    return Fraction(certified_floor(lambda: enclose() * _FINE, bits=256) + 1, _FINE)


def compute_flip_threshold(epsilon: SurveyEpsilon, others: int = 1, parts: int = 1) -> int:
    """Return the least integer L for which flipping with probability L/2^64 is (epsilon/parts)-LDP.

    **Theorem.** Let an answer be replaced by another one with probability L/2^64, each of the `others` equally likely.
    If 2^64 others/(e^(epsilon/parts) + others) <= L <= 2^64 others/(others + 1), two answers' probabilities of any
    report differ by a factor of at most e^(epsilon/parts), and by the exact ratio (2^64 - L) others/L. Proof: the
    distribution is (2^64 - L)/2^64 on the diagonal and L/(2^64 others) elsewhere. Their ratio falls in L, is
    e^(epsilon/parts) at the first end and 1 at the second.

    The first end is rounded up, so toward privacy. It is not an integer unless e^epsilon is rational, which is then
    used exactly; so its floor can be certified.
    """
    if epsilon.is_logarithm:
        if parts != 1:
            fix = "write it as a number: it is split over the options"
            raise ParameterError("epsilon", "a logarithm cannot be split", fix=fix)
        return math.ceil(TWO_TO_64 * others / (epsilon.amount + others))
    return certified_floor(lambda: TWO_TO_64 * others / (to_interval(epsilon.amount / parts).exp() + others)) + 1


def flip_coin(threshold: int, bits: Bits) -> bool:
    """Return True with probability threshold/2^64, exactly, from one random word."""
    return draw_below(TWO_TO_64, bits) < threshold


def _decimal(number: Fraction) -> str:
    """Return a decimal where the number has one of few digits, else a ratio."""
    for digits in range(10):
        scaled = number * 10**digits
        if scaled.denominator == 1:
            whole = str(int(scaled)).rjust(digits + 1, "0")
            return f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
    return str(number)
