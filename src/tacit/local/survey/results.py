"""Results of a survey: counts of constant size, and estimates with confidence intervals.

>>> from tacit.local.survey.load import parse_survey
>>> question = {"name": "a", "text": "?", "kind": "yes-no", "epsilon": "ln 3"}
>>> coins = parse_survey({"id": "coins", "questions": [question]})
>>> (found,) = estimate_survey(coins, SupportCounts(1000, ((600, 400),)))
>>> [round(number, 3) for number in (found.rows[1].value, found.rows[1].low, found.rows[1].high)]
[0.3, 0.239, 0.362]
>>> found.influence, found.required_users  # one malicious report moves a share by 1/(n/2); +-5 points take 1,574
(0.002, 1574)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit.arithmetic import Number
from tacit.errors import ErrorCode, Refused
from tacit.local.confidence_intervals import binomial_interval
from tacit.local.survey.form import Survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.questions import SurveyQuestion
from tacit.local.survey.rounding import double_above
from tacit.mechanisms.validation import check_probability

Support = tuple[tuple[int, ...], ...]
TARGET_HALF_WIDTH = Fraction(1, 20)  # half the width of an interval for `required_respondents`: five percentage points
MAX_RESPONDENTS = 10**12  # a larger number is not computed


@dataclass(frozen=True)
class SupportCounts:
    """The number of reports, and how many support each cell of each question. Its size is constant.

    **Theorem.** Counts of parts of the reports add up to the counts of all, in any order. They are a function of the
    reports, so they have no privacy loss of their own.
    """

    users: int
    cells: tuple[tuple[int, ...], ...]

    @classmethod
    def empty(cls, survey: Survey) -> SupportCounts:
        """Return the counts of no reports."""
        return cls(0, tuple((0,) * len(question.cells) for question in survey.questions))

    def add(self, supports: Iterable[Support]) -> SupportCounts:
        """Return the counts with the supports of more reports."""
        totals, users = [list(cells) for cells in self.cells], self.users
        for support in supports:
            users += 1
            for total, cells in zip(totals, support, strict=True):
                for place, cell in enumerate(cells):
                    total[place] += cell
        return SupportCounts(users, tuple(map(tuple, totals)))


@dataclass(frozen=True)
class CategoryEstimate:
    """The estimate of one cell. `value` is unbiased, so that of a rare answer may be negative; the interval is clipped.

    Beside the interval, `clipped_value` is displayed, the nearest value in it, with a mark where it was clipped.
    """

    label: str
    count: int  # of reports that support it
    value: float
    low: float
    high: float

    @property
    def clipped_value(self) -> float:
        """The nearest value in the interval: the estimate itself unless it is not possible as a share or mean."""
        return min(max(self.value, self.low), self.high)

    @property
    def is_clipped(self) -> bool:
        """Whether `clipped_value` is not the unbiased estimate."""
        return self.clipped_value != self.value


@dataclass(frozen=True)
class QuestionResult:
    """The estimates of one question. `influence` is in the unit of the values."""

    question: SurveyQuestion
    rows: tuple[CategoryEstimate, ...]
    users: int
    confidence: Fraction
    influence: float  # the most by which one malicious report moves an estimate, rounded up
    required_users: int | None  # for a half width of five points, or a twentieth of the range; None: too many

    @property
    def exact_influence(self) -> Fraction:
        """The influence, exactly."""
        span = self.question.upper - self.question.lower if isinstance(self.question, NumberQuestion) else 1
        return span / (self.users * self.question.gap)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON: `value` is the unbiased estimate, `shown` the nearest one in the interval."""
        rows = [
            {"label": row.label, "count": row.count, "value": row.value, "low": row.low, "high": row.high}
            | {"shown": row.clipped_value, "clipped": row.is_clipped}
            for row in self.rows
        ]
        about = {"name": self.question.name, "text": self.question.text, "kind": self.question.kind}
        probabilities = {"own": float(self.question.own), "other": float(self.question.other)}
        bound = {"epsilon": str(self.question.epsilon), "exact_odds": float(self.question.ratio)}
        size = {"influence": self.influence, "needed": self.required_users}
        return {**about, **bound, **probabilities, "rows": rows, **size}


def estimate_survey(survey: Survey, counts: SupportCounts, confidence: Number = 0.95) -> list[QuestionResult]:
    """Estimate every question.

    **Theorem** (intervals). They are exact binomial ends for the mean probability of a report's support, mapped by the
    same function as the estimate. Each covers the true share, or mean, of the honest respondents with at least this
    confidence, however their answers are distributed; `binomial_interval` has the proof.
    """
    level = check_probability("confidence", confidence)
    if counts.users < 1:
        raise Refused(
            ErrorCode.REPORT, "there are no reports to estimate from", fix="collect some first: tacit survey collect"
        )
    pairs = zip(survey.questions, counts.cells, strict=True)
    return [_result(question, cells, counts.users, level) for question, cells in pairs]


def worst_half_width(question: SurveyQuestion, people: int, confidence: Number = 0.95) -> float:
    """Return the largest half width of an interval: a share, or a part of a number's range.

    It is that of a count of one half of the people. Where it is one half or more, the interval is of no use.
    """
    low, high = binomial_interval(people // 2, people, float(1 - check_probability("confidence", confidence)))
    return (high - low) / (2 * float(question.gap))


def required_respondents(
    question: SurveyQuestion, confidence: Number = 0.95, points: Fraction = TARGET_HALF_WIDTH
) -> int | None:
    """Return the least number of people for which the largest half width of an interval is at most `points`.

    None where it is more than `MAX_RESPONDENTS`.
    """
    return _required_people(question.gap, float(1 - check_probability("confidence", confidence)), points)


@lru_cache(maxsize=256)
def _required_people(gap: Fraction, miss: float, points: Fraction) -> int | None:
    width, few, many = 2 * float(points * gap), 1, MAX_RESPONDENTS + 1
    while few < many:
        middle = (few + many) // 2
        low, high = binomial_interval(middle // 2, middle, miss)
        few, many = (few, middle) if high - low <= width else (middle + 1, many)
    return few if few <= MAX_RESPONDENTS else None


def _result(question: SurveyQuestion, cells: Sequence[int], users: int, level: Fraction) -> QuestionResult:
    miss, gap, other = float(1 - level), float(question.gap), float(question.other)

    def unit(part: float) -> float:
        return question.value(part) if isinstance(question, NumberQuestion) else part

    rows = []
    for label, count in zip(question.cells, cells, strict=True):
        low, high = (min(1.0, max(0.0, (end - other) / gap)) for end in binomial_interval(count, users, miss))
        rows.append(CategoryEstimate(label, count, unit((count / users - other) / gap), unit(low), unit(high)))
    found = QuestionResult(question, tuple(rows), users, level, 0.0, required_respondents(question, level))
    return replace(found, influence=double_above(found.exact_influence))
