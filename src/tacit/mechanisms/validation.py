"""What mechanisms are given: prices, shares and scores, checked, with errors that never show a private value."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tacit.arithmetic import to_integers, to_rational
from tacit.errors import ParameterError

_WIDEST = 512  # bits of a score, so that a weight's exponent is a double, whatever the scores are
_LARGEST = Fraction(2) ** 64


def check_epsilon(epsilon: Any) -> Fraction:
    """An epsilon: a positive number."""
    found = to_rational("epsilon", epsilon)
    if not 0 < found <= _LARGEST:
        got = f"{epsilon!r:.40}" if found <= 0 else "a huge number"
        raise ParameterError("epsilon", f"must be positive and at most 2^64, got {got}", fix="epsilon=0.5, say")
    return found


def check_probability(name: str, value: Any) -> Fraction:
    """A number strictly between 0 and 1."""
    found = to_rational(name, value)
    if not 0 < found < 1:
        raise ParameterError(name, "must be between 0 and 1, both excluded", fix=f"{name}=0.95, say")
    return found


def check_flag(name: str, value: Any) -> bool:
    """A boolean, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise ParameterError(name, f"needs True or False, got {type(value).__name__}", fix=f"{name}=True, say")
    return value


def check_scores(values: Any) -> list[int]:
    """Scores: at least one integer, each of at most 512 bits."""
    scores = to_integers("scores", values)
    if not scores:
        raise ParameterError("scores", "there is nothing to choose from", fix="give at least one score")
    if any(score.bit_length() > _WIDEST for score in scores):
        raise ParameterError("scores", f"a score has more than {_WIDEST} bits", fix="score in coarser units")
    return scores
