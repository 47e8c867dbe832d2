"""The kinds of questions: what a person answers, what is sent in its place, and with which probabilities.

>>> from tacit.local.survey.choices import YesNoQuestion
>>> from tacit.sampling.bits import ReplayBits
>>> asked = YesNoQuestion("cheated", "Have you ever cheated?", SurveyEpsilon.read("ln 3"))
>>> asked.matrix().rows[0]
(Fraction(3, 4), Fraction(1, 4))
>>> [asked.encode(1, ReplayBits(b"coins")) for _ in range(2)]  # the same coins, the same report
[1, 1]

**Theorem** (estimates). A question has cells: an option each, or one for a number. A report supports a cell whose true
answer is yes with probability `own`, and any other with probability `other`, whatever else was answered. If C of n
reports support a cell, (C/n - other)/(own - other) is unbiased for the share of people whose answer it is, or for the
mean place of a number in its range; and a report that someone makes up moves it by at most 1/(n (own - other)). Proof:
C is a sum of independent coins whose probabilities are linear in the true answers; one of them moves C by at most one.
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

RandomizedAnswer = int | str


@dataclass(frozen=True)
class SurveyQuestion(ABC):
    """A question with its price. Every report of it is epsilon-LDP, by the integer `lie` out of 2^64."""

    name: str
    text: str
    price: SurveyEpsilon
    kind: ClassVar[str]

    @cached_property
    @abstractmethod
    def lie(self) -> int:
        """The probability, out of 2^64, that a coin turns what is sent."""

    @property
    @abstractmethod
    def cells(self) -> tuple[str, ...]:
        """What is counted, by name."""

    @property
    def own(self) -> Fraction:
        """The probability that a report supports a cell which is truly answered."""
        return Fraction(TWO_TO_64 - self.lie, TWO_TO_64)

    @property
    def other(self) -> Fraction:
        """The probability that a report supports any other cell."""
        return Fraction(self.lie, TWO_TO_64)

    @property
    def gap(self) -> Fraction:
        """By how much a true answer stands out."""
        return self.own - self.other

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of two answers' probabilities of one report: at most e^epsilon, and exact."""
        return self.own / self.other

    @abstractmethod
    def encode(self, truth: Any, bits: Bits) -> RandomizedAnswer:
        """What is sent for a true answer, drawn from the bits in an order that every client keeps."""

    @abstractmethod
    def support(self, sent: Any) -> tuple[int, ...]:
        """1 for each cell that a report supports, else 0. What no client sends is refused."""

    @abstractmethod
    def matrix(self) -> TransitionMatrix:
        """P[sent | truth], exactly."""

    @abstractmethod
    def read(self, given: Any) -> Any:
        """A true answer from what a person wrote in a file: options by their words."""

    def choose(self, typed: str) -> Any:
        """A true answer from what a person typed below the numbered options: options by their numbers only.

        The two ways are apart because "1" may be an option's words and another one's number.
        """
        return self.read(typed)

    @abstractmethod
    def shown(self, truth: Any) -> str:
        """A true answer in words, for the eyes of whoever gave it."""

    def public(self) -> dict[str, Any]:
        """All that a client needs: numbers that do not fit a double are text."""
        about = {"name": self.name, "text": self.text, "kind": self.kind, "epsilon": str(self.price)}
        return {**about, "lie": str(self.lie), **self._more()}

    @abstractmethod
    def _more(self) -> dict[str, Any]: ...

    def _refuse(self, what: str) -> Refused:
        return Refused(ErrorCode.REPORT, f"{self.name}: {what}", fix="send what a client of this survey makes")


def check_answer_index(name: str, truth: Any, last: int) -> None:
    """An answer is private: the error does not show it."""
    if type(truth) is not int or not 0 <= truth <= last:
        raise ParameterError(name, f"an answer is a number from 0 to {last}", fix="use read, or the page")
