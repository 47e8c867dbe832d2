"""A question as an analyst asks it: the SQL, and the epsilon or the accuracy that it asks for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.arithmetic import Number
from tacit.arithmetic import to_rational_between as within_range
from tacit.errors import ParameterError
from tacit.query.dialects import QuestionDialect

DIALECTS = tuple(str(dialect) for dialect in QuestionDialect)
_LEAST_CONFIDENCE, _MOST_CONFIDENCE = Fraction(1, 100), 1 - Fraction(1, 10**9)


@dataclass(frozen=True)
class Question:
    """One question. Exactly one of `epsilon` and `within` is given.

    `within` asks for the least epsilon at which each named count or sum is so close, at `confidence`. `request` names
    the question, so that asking again after a lost connection is the same one, charged once. `dialect` is whose SQL it
    is where dialects differ (`query/dialects.py`); the policy's where it is None.

    >>> Question("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).level
    Fraction(19, 20)
    """

    sql: str
    epsilon: Number | None = None
    within: Mapping[str, Number] | None = None
    confidence: Number = 0.95
    request: str = ""
    dialect: str | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.within is None):
            what = "give either epsilon or within"
            raise ParameterError("epsilon", what, fix='epsilon=0.5, or within={"n": 50}')
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise ParameterError("dialect", f"is one of {', '.join(DIALECTS)}", fix=f'dialect="{DIALECTS[0]}"')

    def dialect_under(self, declared: QuestionDialect) -> QuestionDialect:
        """The dialect that the text is read in, under a policy that declares one."""
        return declared if self.dialect is None else QuestionDialect(self.dialect)

    @property
    def level(self) -> Fraction:
        """The confidence as a rational number, checked."""
        return within_range("confidence", self.confidence, _LEAST_CONFIDENCE, _MOST_CONFIDENCE)

    @cached_property
    def key(self) -> Hashable | None:
        """What a plan and an answer depend on; None where it cannot be hashed.

        Each number stands with its type, because 1 and True are equal.
        """
        if not isinstance(self.sql, str):
            return None
        try:
            widths = None if self.within is None else tuple((str(n), *_exact(w)) for n, w in self.within.items())
            key = (self.sql, *_exact(self.epsilon), widths, *_exact(self.confidence), self.dialect)
            hash(key)
        except (TypeError, AttributeError):
            return None
        return key


def _exact(number: Any) -> tuple[Any, ...]:
    """A number with its type. The hash of a fraction takes longer than that of its two integers."""
    if isinstance(number, Fraction):
        return type(number), number.numerator, number.denominator
    return type(number), number, 1
