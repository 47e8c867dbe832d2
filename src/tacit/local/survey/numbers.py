"""Questions about a number, whose mean is estimated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.errors import ParameterError
from tacit.local.survey.questions import SurveyQuestion, TrueAnswer, check_answer_index
from tacit.local.survey.thresholds import compute_flip_threshold, flip_coin
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

MAX_STEPS = 2**20  # steps of a range
_DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


@dataclass(frozen=True)
class NumberQuestion(SurveyQuestion):
    """A number from `lower` to `upper`, in steps: rounded at random to an end, which is sent or flipped.

    **Theorem.** At the index k of `steps` the upper end is drawn with probability k/steps, then flipped with
    probability L/2^64. So 1 is sent with probability T own + (1 - T) other, T = k/steps: epsilon-LDP, since the
    probabilities of two indices are between those of the ends, whose ratio is (2^64 - L)/L <= e^epsilon. The bits are a
    number below `steps`, then one word.
    """

    lower: Fraction
    upper: Fraction
    step: Fraction
    unit: str = ""
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise ParameterError(f"{self.name}.upper", "must be above lower", fix="lower = 0, upper = 24")
        if self.step <= 0 or (self.upper - self.lower) % self.step or self.steps > MAX_STEPS:
            fix = f"choose one of which the range has a whole number, at most {MAX_STEPS:,}"
            raise ParameterError(f"{self.name}.step", "does not fit the range", fix=fix)

    @property
    def steps(self) -> int:
        """The number of steps of the range."""
        return int((self.upper - self.lower) / self.step)

    @cached_property
    def flip_threshold(self) -> int:
        """The probability of the wrong end, out of 2^64."""
        return compute_flip_threshold(self.epsilon)

    @property
    def cells(self) -> tuple[str, ...]:
        """One cell: the upper end."""
        return (f"mean, {self.unit}" if self.unit else "mean",)

    def encode(self, truth: TrueAnswer, bits: Bits) -> int:
        """Return 1 to send the upper end, 0 for the lower."""
        index = check_answer_index(self.name, truth, self.steps)
        top = draw_below(self.steps, bits) < index
        return int(top ^ flip_coin(self.flip_threshold, bits))

    def support(self, sent: object) -> tuple[int, ...]:
        """Return 1 for the upper end, 0 for the lower."""
        if type(sent) is not int or sent not in (0, 1):
            raise self._refuse("a report is 0 or 1")
        return (sent,)

    def matrix(self) -> TransitionMatrix:
        """Return P[sent | truth], a row for each index; the columns are the lower and the upper end."""
        shares = (Fraction(index, self.steps) for index in range(self.steps + 1))
        ones = [share * self.own + (1 - share) * self.other for share in shares]
        return TransitionMatrix([[1 - one, one] for one in ones])

    def read(self, given: object) -> int:
        """Return the index nearest to a number; one outside the range is an error."""
        fix = f"{self.name} = {float(self.lower):g}"
        word = str(given).strip()
        number = Fraction(word) if _DECIMAL.fullmatch(word) else None  # no exponent: a short text, no huge number
        if number is None or not self.lower <= number <= self.upper:
            what = f"needs a number from {float(self.lower):g} to {float(self.upper):g}"
            raise ParameterError(self.name, what, fix=fix)
        return int((number - self.lower) / self.step + Fraction(1, 2))

    def describe_answer(self, truth: TrueAnswer) -> str:
        """Return the number at an index, with its unit."""
        return f"{float(self.lower + int(truth) * self.step):.12g} {self.unit}".strip()

    def value(self, share: float) -> float:
        """Return the number at a share of the range."""
        return float(self.lower) + share * float(self.upper - self.lower)

    def _public_fields(self) -> dict[str, Any]:
        ends = {name: str(getattr(self, name)) for name in ("lower", "upper", "step")}
        return {**ends, "unit": self.unit, "steps": self.steps}
