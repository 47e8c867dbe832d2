"""Bins of values that need no bounds: powers of two for numbers, years for dates and timestamps, two for booleans.

Which bin a value is in is found by comparisons with powers of two, which every engine makes exactly: no logarithm is
taken, so no rounding can put one value into two bins, and no value fails.

>>> ValueBins(Type.FLOAT).edges(30)
(Fraction(512, 1), Fraction(1024, 1))
>>> ValueBins(Type.DATE).edges(2025)
(datetime.date(2025, 1, 1), datetime.date(2025, 12, 31))
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Clamp, Literal, Scalar
from tacit.query.types import Type

NULL = 1_000_000
"""The code of a value that is missing. NaN, which a column without bounds reads as NULL, has it too."""

Edge = Fraction | datetime.date | None
"""An end of a bin; None where it has no end."""

_EXPONENTS = {Type.INT: (0, 62), Type.FLOAT: (-20, 49)}  # the last float bin holds 10^15, the most that is declared
_YEARS = (1899, 2101)  # which stand for all years before 1900 and after 2100


@dataclass(frozen=True)
class ValueBins:
    """The bins of a type, each with an integer code; codes are in the order of the values.

    **Rule.** Every value has just one code: `NULL` where it is missing or NaN, and one of `codes` otherwise. Of
    integers, code k > 0 is [2^(k-1), 2^k), -k is its mirror image, and 0 is zero. Of floats, k > 0 is [2^(k-21),
    2^(k-20)), and 0 is what is nearer to zero than 2^-20. The last bins on both sides hold all beyond, infinities too.
    Of dates and timestamps the code is the year, 1899 for all before 1900 and 2101 for all after 2100.

    So a unit that gives one value is counted in one bin.
    """

    type: Type

    @property
    def codes(self) -> range:
        """The codes of all bins but that of NULL."""
        match self.type:
            case Type.INT | Type.FLOAT:
                least, most = _EXPONENTS[self.type]
                return range(least - most - 1, most - least + 2)
            case Type.DATE | Type.TIMESTAMP:
                return range(_YEARS[0], _YEARS[1] + 1)
            case Type.BOOL:
                return range(2)
        raise AssertionError(f"no bins of {self.type}")

    def write_code(self, value: Scalar) -> Scalar:
        """The code of a value, as a scalar."""
        match self.type:
            case Type.INT | Type.FLOAT:
                found: Scalar = self._search(value, 0, len(self.codes) - 1)
            case Type.DATE:
                found = _clamp_year(value)
            case Type.TIMESTAMP:
                found = _clamp_year(Call(Function.DATE_OF, (value,)))
            case _:
                found = Case(((value, Literal(1)),), Literal(0))
        return Case(((Call(Function.IS_NULL, (value,)), Literal(NULL)),), found)

    def _search(self, value: Scalar, first: int, last: int) -> Scalar:
        """The code among those from the position `first` to `last`: a binary search, in cases."""
        if first == last:
            return Literal(self.codes[first])
        middle = (first + last) // 2
        below = self._is_at_most(value, self.codes[middle])
        return Case(((below, self._search(value, first, middle)),), self._search(value, middle + 1, last))

    def _is_at_most(self, value: Scalar, code: int) -> Scalar:
        """Whether a number is in the bin of the code or in one below."""
        if code < 0:
            return Call(Function.LESS_EQUAL, (value, Literal(self._literal(-self._power(-code)))))
        return Call(Function.LESS, (value, Literal(self._literal(self._power(code + 1)))))

    def _literal(self, number: Fraction) -> int | Fraction:
        return int(number) if self.type is Type.INT else number

    def _power(self, code: int) -> Fraction:
        """The lower end of a positive bin."""
        return Fraction(2) ** (_EXPONENTS[self.type][0] + code - 1)

    def edges(self, code: int) -> tuple[Edge, Edge]:
        """The ends of a bin; of dates its first and its last day."""
        if self.type in _EXPONENTS:
            return self._number_edges(code)
        if self.type is Type.BOOL:
            return Fraction(code), Fraction(code)
        lower = None if code == _YEARS[0] else datetime.date(code, 1, 1)
        upper = None if code == _YEARS[1] else datetime.date(code, 12, 31)
        return lower, upper

    def _number_edges(self, code: int) -> tuple[Edge, Edge]:
        if code == 0:
            near = Fraction(0) if self.type is Type.INT else self._power(1)
            return -near, near
        lower = self._power(abs(code))
        upper = None if abs(code) == self.codes[-1] else 2 * lower
        return (lower, upper) if code > 0 else (None if upper is None else -upper, -lower)


def _clamp_year(day: Scalar) -> Scalar:
    return Clamp(Call(Function.YEAR, (day,)), Fraction(_YEARS[0]), Fraction(_YEARS[1]), whole=True)
