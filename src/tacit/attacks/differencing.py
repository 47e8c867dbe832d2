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

from tacit.accounting.interpretation import min_guessing_error
from tacit.arithmetic import to_integer, to_rational
from tacit.attacks.averaging import ask_number
from tacit.attacks.oracle import Oracle, collect_answers, noise_model
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
        """All of it, for JSON."""
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
    weights: tuple[float, float] = (1.0, 1.0),
    values: Sequence[float] = (0.0, 1.0),
    epsilon: float | None = None,
) -> DifferencingResult:
    """Ask two questions that differ in one person, and subtract.

    They may be any two conditions that differ in one person: "born before 1990" and "born before 1990 and not on
    1961-03-07". `weights` turns averages into sums: (30, 29) for averages over 30 people and 29 of them. `values` are
    those the person may have; empty for any number. `epsilon` is what the two answers cost together, if they are
    private: the verdict is then a guess, with the error it has at least.
    """
    one, other = (_finite("weights", weight) for weight in weights)
    possible = tuple(_finite("values", value) for value in values)
    if epsilon is not None:
        min_guessing_error(epsilon)  # a bad epsilon is said before anything is asked
    first, second = (ask_number(ask, question) for question in (with_person, without_person))
    return DifferencingResult(first, second, one * first - other * second, possible, epsilon)


def reconstruct_leaving_one_out(oracle: Oracle, people: int, *, truth: Any = None) -> ReconstructionResult:
    """The secret bit of everyone, by differencing: n + 1 questions about n people.

    The first counts all of them, the others all but one. Without noise every bit is exact. With noise a bit is right
    with the probability that the difference of two noises is below 1/2: for normal noise of deviation s, Phi(0.35/s).
    Reconstruction (`linear.py`) does far better with twice as many questions. Where the budget is spent before the last
    question, the bits that nothing was told of are guessed to be what most are by the first answer.
    """
    count = to_integer("people", people, least=1)
    subsets = np.ones((count + 1, count), dtype=np.bool_)
    subsets[1:][np.diag_indices(count)] = False
    given, refusal = collect_answers(oracle, subsets)
    guess = np.full(count, given[0] > count / 2)
    guess[: len(given) - 1] = given[0] - given[1:] > 0.5
    stopped = "" if refusal is None else refusal.what
    return ReconstructionResult(guess, "differencing", len(given), str(noise_model(oracle)), truth, count + 1, stopped)


def _finite(name: str, value: Any) -> float:
    return float(to_rational(name, value))
