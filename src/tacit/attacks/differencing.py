"""Differencing: two questions that differ in one person, and their difference is that person's value.

>>> patients = {"ada": 1, "ben": 0, "eva": 1}
>>> found = subtract_answers(lambda names: sum(patients[name] for name in names), ["ada", "ben", "eva"], ["ben", "eva"])
>>> found.value, found.verdict
(1.0, 'exact')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.interpretation import min_guessing_error
from tacit.arithmetic import Number, to_integer, to_rational
from tacit.attacks.averaging import ask_number
from tacit.attacks.oracle import Oracle, as_bits, collect_answers, noise_model
from tacit.attacks.recovered import ReconstructionResult

Question = TypeVar("Question")

_SAME = 1e-9  # relative: the rounding of doubles


@dataclass(frozen=True)
class DifferencingResult:
    """A person's value, from one answer with the person and one without.

    **Theorem.** Without noise the difference of two sums is what the person adds; of two averages over n and n - 1
    people, n times the first less n - 1 times the second. Nothing about the others is needed.

    Under `epsilon` for both answers together, whoever guesses between two values errs with probability at least
    1/(e^epsilon + 1), whatever else is known: `least_error`.

    Attributes
    ----------
    first, second : float
        The answer with the person, and the one without.
    difference : float
        The weighted difference of the answers: an estimate of the person's value.
    values : tuple of float
        The values that the person may have; empty where any number is possible.
    epsilon : float or None
        The privacy loss of both answers together, where they are private.

    Examples
    --------
    >>> found = DifferencingResult(first=31.0, second=30.0, difference=1.0, values=(0.0, 1.0))
    >>> found.value, found.verdict
    (1.0, 'exact')
    """

    first: float
    second: float
    difference: float
    values: tuple[float, ...]  # what the person's value may be; empty where it may be any number
    epsilon: float | None = None  # what both answers cost together, where they are private

    @property
    def value(self) -> float:
        """The best guess: of the possible values the nearest to the difference."""
        return min(self.values, key=lambda value: abs(value - self.difference)) if self.values else self.difference

    @property
    def least_error(self) -> float:
        """How often a guess between two values is wrong at least: 0 where nothing protects them."""
        return 0.0 if self.epsilon is None else min_guessing_error(self.epsilon)

    @property
    def verdict(self) -> str:
        """One of "exact", "a guess" (under epsilon), "noisy": the difference is no value that a person has."""
        if self.epsilon is not None:
            return "a guess"
        size = max(abs(self.first), abs(self.second), abs(self.difference), 1.0)
        return "exact" if abs(self.value - self.difference) <= _SAME * size else "noisy"

    def __str__(self) -> str:
        shown = f"{self.first:,.6g} with the person, {self.second:,.6g} without: a difference of {self.difference:.6g}"
        if self.verdict == "exact":
            return f"{shown}. If the answers carry no noise, the person's value is {self.value:g}, exactly."
        if self.verdict == "noisy":
            return f"{shown}, which is no value that a person has: there is noise. The nearest is {self.value:g}."
        often = f"errs at least {self.least_error:.3f} of the time"
        return f"{shown}. The nearest value is {self.value:g}, a guess that {often}."

    def to_dict(self) -> dict[str, object]:
        """Return the answers, the guess and its least error as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the verdict, the guessed value and the least error.
        """
        return {
            "attack": "differencing",
            "verdict": self.verdict,
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "value": self.value,
            "epsilon": self.epsilon,
            "least_error": self.least_error,
        }


def subtract_answers(
    ask: Callable[[Question], float],
    with_person: Question,
    without_person: Question,
    *,
    weights: tuple[Number, Number] = (1.0, 1.0),
    values: Sequence[Number] = (0.0, 1.0),
    epsilon: float | None = None,
) -> DifferencingResult:
    """Ask two questions that differ in one person, and subtract the answers.

    Parameters
    ----------
    ask : callable
        Maps a question to a finite number.
    with_person, without_person : object
        Two questions that differ in one person: "born before 1990", and "born before 1990 and not on 1961-03-07".
    weights : pair of numbers
        What the answers are multiplied by: (30, 29) turns averages over 30 people and 29 of them into sums.
    values : sequence of numbers
        The values that the person may have; empty for any number.
    epsilon : number, optional
        The privacy loss of the two answers together, where they are private: the verdict is then a guess.

    Returns
    -------
    DifferencingResult
        The difference, and the person's value where it is determined.

    Raises
    ------
    ParameterError
        If an answer or an argument is no finite number.
    Refused
        If the curator refuses a question.

    Examples
    --------
    >>> patients = {"ada": 1, "ben": 0, "eva": 1}
    >>> subtract_answers(lambda names: sum(patients[name] for name in names), ["ada", "ben"], ["ben"]).value
    1.0
    """
    one, other = (_finite("weights", weight) for weight in weights)
    possible = tuple(_finite("values", value) for value in values)
    if epsilon is not None:
        min_guessing_error(epsilon)  # a bad epsilon is said before anything is asked
    first, second = (ask_number(ask, question) for question in (with_person, without_person))
    return DifferencingResult(first, second, one * first - other * second, possible, epsilon)


def reconstruct_leaving_one_out(
    oracle: Oracle, people: int, *, truth: npt.ArrayLike | None = None
) -> ReconstructionResult:
    """Reconstruct the secret bit of everyone by differencing: n + 1 questions about n people.

    The first counts all of them, the others all but one. Without noise every bit is exact. With noise a bit is right
    with the probability that the difference of two noises is below 1/2: for normal noise of deviation s, Phi(0.35/s).
    `reconstruct` does far better with twice as many questions. Where the budget is spent before the last question, the
    bits that no answer is about are guessed to be what most are by the first answer.

    Parameters
    ----------
    oracle : Oracle
        Answers counts of the secret bit over subsets.
    people : int
        How many people the oracle knows, 1 or more.
    truth : array of bits, optional
        The true bits, used only to count how many guesses are right.

    Returns
    -------
    ReconstructionResult
        The guessed bits, and how many are right where the truth is given.

    Raises
    ------
    ParameterError
        If the oracle fails or answers something other than numbers.

    Examples
    --------
    >>> from tacit.attacks import ExactOracle
    >>> reconstruct_leaving_one_out(ExactOracle([1, 0, 1]), people=3).guess.astype(int).tolist()
    [1, 0, 1]
    """
    count = to_integer("people", people, least=1)
    subsets = np.ones((count + 1, count), dtype=np.bool_)
    subsets[1:][np.diag_indices(count)] = False
    given, refusal = collect_answers(oracle, subsets)
    guess = np.full(count, given[0] > count / 2)
    guess[: len(given) - 1] = given[0] - given[1:] > 0.5
    stopped = "" if refusal is None else refusal.what
    known = None if truth is None else as_bits("truth", truth)
    return ReconstructionResult(guess, "differencing", len(given), str(noise_model(oracle)), known, count + 1, stopped)


def _finite(name: str, value: Any) -> float:
    return float(to_rational(name, value))
