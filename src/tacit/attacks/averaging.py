"""Averaging: ask the same thing again and again, and the noise goes away.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> found = average_answers(lambda question: 120 + rng.laplace(scale=5), ["how many?"] * 4000)
>>> found.value, found.verdict
(120, 'recovered')
>>> average_answers(lambda question: 117, ["how many?"] * 4000).verdict
'repeats are one answer'
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError, Refused

Question = TypeVar("Question")
Floats = npt.NDArray[np.float64]

_BATCHES = 30
_NEAR_NORMAL = 10  # answers that a batch needs for its mean to stand for many


@dataclass(frozen=True)
class AveragingResult:
    """The mean of many answers to one question, with its confidence interval.

    **Theorem.** The mean of t independent answers with standard deviation s is off by s/sqrt(t): what epsilon pays for
    once, t answers reveal t times. Answers that are all the same say what one of them says.

    Attributes
    ----------
    estimate : float
        The mean of the answers.
    low, high : float
        Ends of the interval for the true value; infinite where the answers prove nothing.
    confidence : float
        The probability, in (0, 1), with which the interval holds the true value.
    method : str
        How the interval was made: "Hoeffding", "batch means", "Student" or "none".
    answers : tuple of float
        All answers, in the order of the questions.
    step : float
        The grid that the true value lies on, 1 for a count.
    stopped : str
        The refusal that ended the questions early, else empty.

    Examples
    --------
    >>> found = AveragingResult(120.1, 119.8, 120.4, 0.99, "Student", (119.0, 120.0, 121.3))
    >>> found.value, found.verdict
    (120, 'recovered')
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str  # how the interval was made: "Hoeffding", "batch means", "Student" or "none"
    answers: tuple[float, ...] = field(repr=False)
    step: float = 1.0
    stopped: str = ""  # why the questions ended early: the curator's refusal

    @property
    def answer_count(self) -> int:
        """How many answers there were."""
        return len(self.answers)

    @property
    def distinct(self) -> int:
        """How many different answers there were."""
        return len(set(self.answers))

    @property
    def deviation(self) -> float:
        """The standard deviation of one answer."""
        return float(np.std(self.answers, ddof=1)) if self.answer_count > 1 else math.nan

    @property
    def standard_error(self) -> float:
        """That of their mean."""
        return self.deviation / math.sqrt(self.answer_count)

    @property
    def value(self) -> float | None:
        """The only value on the grid that the interval leaves."""
        least, largest = math.ceil(self.low / self.step) if math.isfinite(self.low) else 0, self.high / self.step
        if not math.isfinite(largest) or least != math.floor(largest):
            return None
        return least * int(self.step) if self.step == int(self.step) else least * self.step

    @property
    def verdict(self) -> str:
        """One of "recovered", "narrowed", "repeats are one answer", "one answer".

        If any answer has at most the probability c, t fresh ones are all the same by accident with at most c^(t - 1).
        """
        if self.answer_count == 1:
            return "one answer"
        if self.distinct == 1:
            return "repeats are one answer"
        return "narrowed" if self.value is None else "recovered"

    def __str__(self) -> str:
        refusal = f" Then the questions were refused: {self.stopped}." if self.stopped else ""
        if self.distinct == 1:
            fresh = "all the same: there is no noise, or a repeat is the same answer, and asking again teaches nothing"
            return f"{self.answer_count:,} answers, {fresh if self.answer_count > 1 else self.answers[0]}.{refusal}"
        found = "" if self.value is None else f" Only {self.value:,} is left on the grid: the noise is gone."
        return (
            f"{self.answer_count:,} answers, each off by {self.deviation:.3g} (standard deviation), have a mean of "
            f"{self.estimate:,.6g}, off by {self.standard_error:.3g}: {self.low:,.6g} to {self.high:,.6g} at "
            f"{self.confidence:.4g} confidence ({self.method}).{found}{refusal}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON, without the answers themselves.

        Returns
        -------
        dict
            The verdict, the estimate and its interval; ends that prove nothing are null.
        """
        ends = {name: end if math.isfinite(end) else None for name, end in (("low", self.low), ("high", self.high))}
        spread = None if self.answer_count == 1 else self.deviation
        return {
            "attack": "averaging",
            "verdict": self.verdict,
            "estimate": self.estimate,
            **ends,
            "confidence": self.confidence,
            "method": self.method,
            "value": self.value,
            "asked": self.answer_count,
            "distinct": self.distinct,
            "deviation": spread,
            "stopped": self.stopped,
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Plot the mean so far against the number of answers, with one standard error on either side.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        """
        from tacit.pictures import open_figure

        asks = np.arange(1, self.answer_count + 1)
        means = np.cumsum(self.answers) / asks
        spread = (self.deviation if self.answer_count > 1 else 0.0) / np.sqrt(asks)
        with open_figure(path, "The mean of all answers so far", "asks", "mean") as axes:
            axes.fill_between(asks, self.estimate - spread, self.estimate + spread, alpha=0.2, label="deviation/sqrt t")
            axes.plot(asks, means, label="mean of the answers")
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,.0f}")


def average_answers(
    ask: Callable[[Question], float],
    questions: Iterable[Question],
    *,
    confidence: Number = 0.99,
    bounds: tuple[Number, Number] | None = None,
    step: Number = 1.0,
) -> AveragingResult:
    """Ask questions that mean the same, and average the answers.

    With `bounds` on every answer, the interval is Hoeffding's: t independent answers in [l, u] have a mean within
    (u - l) sqrt(ln(2/a)/(2t)) of the true one, except with probability a = 1 - confidence; it holds for every
    distribution. Without, it is Student's over the means of 30 batches, which are nearly normal (over the answers
    themselves where there are few): true in the limit.

    Parameters
    ----------
    ask : callable
        Maps a question to a finite number. Its refusal for the budget ends the attack with what was learned so far.
    questions : iterable
        Questions with one true answer: `[question] * t` repeats one, and rewordings of it (`reword_condition`) may get
        fresh noise where a repeat does not.
    confidence : number
        The probability, in (0, 1), with which the interval holds the true value.
    bounds : pair of numbers, optional
        The least and the largest answer that is possible, with noise.
    step : number
        The grid that the true value lies on, positive: 1 for a count.

    Returns
    -------
    AveragingResult
        The mean with its interval, and the one grid value in it where there is just one.

    Raises
    ------
    ParameterError
        If there is no question, an answer is no finite number or outside the bounds, or an argument is out of range.
    Refused
        If the first question is refused.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> average_answers(lambda question: 120 + rng.laplace(scale=5), ["how many?"] * 4000).value
    120
    """
    level = to_rational("confidence", confidence)
    if not 0 < level < 1:
        what = f"must be between 0 and 1, both excluded, got {confidence}"
        raise ParameterError("confidence", what, fix="confidence=0.99, say")
    grid = float(to_rational("step", step))
    if grid <= 0:
        raise ParameterError("step", f"must be positive, got {step}", fix="step=1 for a count")
    heard, stopped = _collect_answers(ask, questions)
    answers = np.array(heard)
    mean = float(answers.mean())
    half, method = _half(answers, 1 - float(level), bounds)
    return AveragingResult(mean, mean - half, mean + half, float(level), method, tuple(heard), grid, stopped)


def reword_condition(condition: str, column: str, count: int, beyond: int = 10**6) -> list[str]:
    """Return conditions with the meaning of this one, all different: each adds what is true of every row.

    A curator that compares texts, or even normalized queries, sees new questions, and has to charge each of them.

    Parameters
    ----------
    condition : str
        An SQL condition on the rows.
    column : str
        A column of numbers, none of which is as large as `beyond`.
    count : int
        How many conditions are made, 1 or more.
    beyond : int
        A number above all values of the column.

    Returns
    -------
    list of str
        The conditions, each an SQL text of its own.

    Examples
    --------
    >>> reword_condition("age >= 65", "age", 2)
    ['(age >= 65) AND age < 1000000', '(age >= 65) AND age < 1000001']
    """
    many = to_integer("count", count, least=1)
    return [f"({condition}) AND {column} < {beyond + number}" for number in range(many)]


def required_answers(deviation: Number, *, step: Number = 1.0, confidence: Number = 0.99) -> int:
    """Return how many fresh answers determine a multiple of `step`, by the normal approximation.

    The half width z s/sqrt(t) has to be below step/2: t is at least (2 z s/step)^2.

    Parameters
    ----------
    deviation : number
        The standard deviation s of an answer's noise, 0 or more.
    step : number
        The grid that the true value lies on, positive: 1 for a count.
    confidence : number
        The probability, in (0, 1), with which the mean is nearest to the true value.

    Returns
    -------
    int
        The number of answers, 1 or more.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> required_answers(10 * 2**0.5)  # a count at epsilon 0.1: a total epsilon of 531
    5308
    """
    from scipy.stats import norm

    spread, grid, level = (
        float(to_rational(n, v)) for n, v in (("deviation", deviation), ("step", step), ("", confidence))
    )
    if spread < 0 or grid <= 0 or not 0 < level < 1:
        raise ParameterError(
            "deviation", "it, step or confidence is out of range", fix="required_answers(14.1, step=1), say"
        )
    return max(1, math.ceil((2 * float(norm.isf((1 - level) / 2)) * spread / grid) ** 2))


def ask_number(ask: Callable[[Question], float], question: Question) -> float:
    """The finite number that a curator answers. Its refusal passes through; any other failure is the caller's error."""
    try:
        answer: Any = ask(question)
    except Refused:
        raise
    except Exception as problem:
        raise ParameterError("ask", f"it failed: {problem!r:.200}", fix="give a callable that answers") from problem
    try:
        number = float(answer)
    except (TypeError, ValueError) as problem:
        raise ParameterError("ask", f"the answer is not a number: {answer!r:.60}", fix="return a number") from problem
    if not math.isfinite(number):
        raise ParameterError("ask", f"the answer is {number}", fix="return a finite number")
    return number


def _collect_answers(ask: Callable[[Question], float], questions: Iterable[Question]) -> tuple[list[float], str]:
    """The answers, until one is refused, and the refusal."""
    heard: list[float] = []
    for question in questions:
        try:
            heard.append(ask_number(ask, question))
        except Refused as refusal:
            if not heard:
                raise
            return heard, refusal.what
    if not heard:
        raise ParameterError("questions", "there are none", fix="questions=[question] * 1000, say")
    return heard, ""


def _half(answers: Floats, alarm: float, bounds: tuple[Number, Number] | None) -> tuple[float, str]:
    """Half the width of the interval, and the name of its theorem."""
    count = len(answers)
    if bounds is not None:
        low, high = float(to_rational("bounds", bounds[0])), float(to_rational("bounds", bounds[1]))
        if not low <= answers.min() or not answers.max() <= high:
            raise ParameterError("bounds", "an answer lies outside them", fix="give bounds of the answers, with noise")
        if count == 1 or answers.min() != answers.max():
            return (high - low) * math.sqrt(math.log(2 / alarm) / (2 * count)), "Hoeffding"
    if count == 1 or answers.min() == answers.max():
        return math.inf, "none"
    from scipy.stats import t

    batches, method = answers, "Student"
    if count >= _BATCHES * _NEAR_NORMAL:
        batches = np.array([batch.mean() for batch in np.array_split(answers, _BATCHES)])
        method = "batch means"
    spread = float(batches.std(ddof=1)) / math.sqrt(len(batches))
    return float(t.isf(alarm / 2, len(batches) - 1)) * spread, method
