"""The kinds of questions: what a respondent answers, what is sent instead, and with which probabilities.

>>> from tacit.local.survey.choices import YesNoQuestion
>>> from tacit.sampling.bits import ReplayBits
>>> asked = YesNoQuestion("cheated", "Have you ever cheated?", SurveyEpsilon.read("ln 3"))
>>> asked.matrix().rows[0]
(Fraction(3, 4), Fraction(1, 4))
>>> [asked.encode(1, ReplayBits(b"coins")) for _ in range(2)]  # the same random bits, the same report
[1, 1]

**Theorem** (estimates). A question has cells: an option each, or one for a number. A report supports a cell whose true
answer is yes with probability `own`, and any other with probability `other`, whatever else was answered. If C of n
reports support a cell, (C/n - other)/(own - other) is unbiased for the share of respondents whose answer it is, or
for the mean of a number as a part of its range; and one malicious report moves it by at most 1/(n (own - other)).
Proof: C is a sum of independent Bernoulli variables whose probabilities are linear in the true answers; one of them
moves C by at most one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.survey.thresholds import TWO_TO_64, SurveyEpsilon
from tacit.sampling.bits import Bits

TrueAnswer = int | str  # the index of an option or of a number, or a digit 0 or 1 for each option
RandomizedAnswer = int | str


@dataclass(frozen=True)
class SurveyQuestion(ABC):
    """A question with its epsilon. Every report of it is epsilon-LDP, by the integer `flip_threshold` out of 2^64."""

    name: str
    text: str
    epsilon: SurveyEpsilon
    kind: ClassVar[str]

    @cached_property
    @abstractmethod
    def flip_threshold(self) -> int:
        """The probability, out of 2^64, that what is sent is flipped."""

    @property
    @abstractmethod
    def cells(self) -> tuple[str, ...]:
        """The names of the cells that are counted."""

    @property
    def own(self) -> Fraction:
        """The probability that a report supports a cell which is truly answered."""
        return Fraction(TWO_TO_64 - self.flip_threshold, TWO_TO_64)

    @property
    def other(self) -> Fraction:
        """The probability that a report supports any other cell."""
        return Fraction(self.flip_threshold, TWO_TO_64)

    @property
    def gap(self) -> Fraction:
        """own - other: estimates divide by it."""
        return self.own - self.other

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of two answers' probabilities of one report: at most e^epsilon, and exact."""
        return self.own / self.other

    @abstractmethod
    def encode(self, truth: TrueAnswer, bits: Bits) -> RandomizedAnswer:
        """Randomize a true answer, reading the bits in an order that is the same in every client."""

    @abstractmethod
    def support(self, sent: object) -> tuple[int, ...]:
        """Return 1 for each cell that a report supports, else 0; refuse what no client sends."""

    @abstractmethod
    def matrix(self) -> TransitionMatrix:
        """Return P[sent | truth], exactly."""

    @abstractmethod
    def read(self, given: object) -> TrueAnswer:
        """Return a true answer from what a respondent wrote in a file: options by their words."""

    def choose(self, typed: str) -> TrueAnswer:
        """Return a true answer from what a respondent typed below the numbered options: options by their numbers only.

        The two are separate because "1" may be the words of one option and the number of another.
        """
        return self.read(typed)

    @abstractmethod
    def describe_answer(self, truth: TrueAnswer) -> str:
        """Return a true answer in words, to show to the respondent who gave it."""

    def public(self) -> dict[str, Any]:
        """Return all that a client needs, as JSON has it; integers that do not fit a double are text."""
        about = {"name": self.name, "text": self.text, "kind": self.kind, "epsilon": str(self.epsilon)}
        return {**about, "lie": str(self.flip_threshold), **self._public_fields()}

    @abstractmethod
    def _public_fields(self) -> dict[str, Any]: ...

    def _refuse(self, what: str) -> Refused:
        return Refused(ErrorCode.REPORT, f"{self.name}: {what}", fix="send what a client of this survey sends")


def check_answer_index(name: str, truth: object, last: int) -> int:
    """Return an answer that is an index up to `last`. It is private: the error does not show it."""
    if not isinstance(truth, int) or isinstance(truth, bool) or not 0 <= truth <= last:
        raise ParameterError(name, f"an answer is an integer from 0 to {last}", fix="use read, or the page")
    return truth
