"""What mechanisms are given: epsilons, shares and scores, checked, with errors that never show a private value."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from tacit.arithmetic import Number, to_integer, to_integers, to_rational
from tacit.errors import ParameterError
from tacit.privacy.unit import Neighbors

_WIDEST = 512  # bits of a score, so that a weight's exponent is a double, whatever the scores are
_LARGEST = Fraction(2) ** 64


def check_positive(name: str, value: Number) -> Fraction:
    """A positive number."""
    found = to_rational(name, value)
    if found <= 0:
        raise ParameterError(name, f"must be positive, got {value!r:.40}", fix=f"choose {name} above 0")
    return found


def check_neighbors(value: Neighbors) -> Neighbors:
    """A neighbor relation."""
    if not isinstance(value, Neighbors):
        what = f"is not a neighbor relation: {value!r:.60}"
        raise ParameterError("neighbors", what, fix="Neighbors.REPLACE, say")
    return value


def check_epsilon(epsilon: Number) -> Fraction:
    """An epsilon: a positive number."""
    found = to_rational("epsilon", epsilon)
    if not 0 < found <= _LARGEST:
        got = f"{epsilon!r:.40}" if found <= 0 else "a huge number"
        raise ParameterError("epsilon", f"must be positive and at most 2^64, got {got}", fix="epsilon=0.5, say")
    return found


def check_probability(name: str, value: Number) -> Fraction:
    """A number strictly between 0 and 1."""
    found = to_rational(name, value)
    if not 0 < found < 1:
        raise ParameterError(name, "must be between 0 and 1, both excluded", fix=f"{name}=0.95, say")
    return found


def check_range(lower: int, upper: int) -> tuple[int, int]:
    """Both ends of a range of integers."""
    low, high = to_integer("lower", lower), to_integer("upper", upper)
    if high < low:
        raise ParameterError("upper", f"is below lower: {high}", fix="choose upper of at least lower")
    return low, high


def check_flag(name: str, value: bool) -> bool:
    """A boolean, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise ParameterError(name, f"needs True or False, got {type(value).__name__}", fix=f"{name}=True, say")
    return value


def check_scores(values: Iterable[int]) -> list[int]:
    """Scores: at least one integer, each of at most 512 bits."""
    scores = to_integers("scores", values)
    if not scores:
        raise ParameterError("scores", "there is nothing to choose from", fix="give at least one score")
    if any(score.bit_length() > _WIDEST for score in scores):
        raise ParameterError("scores", f"a score has more than {_WIDEST} bits", fix="score in coarser units")
    return scores
