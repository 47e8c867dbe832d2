"""The epsilon of a question before it is asked, the budget left, and its expected error. Nothing is charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from tacit.accounting.filters import (
    GRAINS_PER_EPSILON,
    BudgetCharge,
    BudgetStatus,
    compute_charge,
    format_epsilon,
    is_admitted,
    remaining_epsilon,
)
from tacit.accounting.interpretation import min_guessing_error
from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.data_profile import DataProfile
from tacit.answers.explanation import ColumnAccuracy as Accuracy
from tacit.answers.explanation import Explanation
from tacit.curator.admission import find_second_step
from tacit.errors import Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.clip_plans import ClipChoicePlan, FixedClipPlan, format_fraction
from tacit.plan.explain import explain
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.serve.console import charts
from tacit.serve.console.charts import ChartLine, ChartMark, PercentScale
from tacit.serve.console.useless_columns import AccuracyWarning, count_most_rows, find_useless_columns

_EPSILON_GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # epsilons at which the expected error is worked out
_MANY = 1_000_000  # more questions than that are not counted
_KINDS = ("first", "second", "third")


@dataclass(frozen=True)
class ColumnEstimate:
    """How close a column would be, the class of its curve, and a warning where that tells nothing."""

    name: str
    words: str
    kind: str
    warning: AccuracyWarning | None


@dataclass(frozen=True)
class QuestionEstimate:
    """A question before it is asked: what it costs, what is left, and how accurate it would be."""

    explanation: Explanation
    error: float  # of whoever guesses whether one person took part, at least
    free: bool  # a repeat, paid before
    fits: bool
    most: str  # the epsilon that fits, where this one does not
    more: str  # how many such questions are left
    bar: Markup
    after: str  # what would be left, in words
    lines: tuple[ColumnEstimate, ...]
    curve: Markup
    first: str = ""  # what choosing a clip costs, where that is charged first
    paid: str = ""  # what it did cost, where it is charged already
    both: str = ""  # and with the rest

    @property
    def within(self) -> str:
        """The accuracy that this epsilon gives, as the form takes it; empty where no width is known beforehand."""
        known = [column for column in self.explanation.columns if column.error is not None]
        return ", ".join(f"{column.name}={_format_digits(column.error or 0, 6).replace(',', '')}" for column in known)

    @property
    def summary(self) -> str:
        """The estimate in a sentence, for who hears the page."""
        if self.free:
            return "Free: you paid for this before."
        price = f"Costs epsilon {self.explanation.epsilon:.6g}"
        fits = "" if self.fits else ", which does not fit into what is left"
        errors = [f"{line.name} {line.words}. {line.warning.text if line.warning else ''}" for line in self.lines]
        return " ".join([f"{price}{fits}.", *errors]).strip()


def estimate_question(
    question: Question, budget: AnalystBudget, planner: Planner, ledger: Ledger, profile: DataProfile | None = None
) -> QuestionEstimate:
    """What a question would cost at an epsilon or an accuracy, or Refused. Free: no data is touched."""
    plan = find_second_step(planner.plan(question, budget.who), budget.who, ledger)
    found = explain(plan, planner.policy.asked_by(budget.who), question.level)
    price = compute_charge(plan.expected_loss if isinstance(plan, ClipChoicePlan) else plan.loss, plan.delta)
    is_paid = ledger.is_free(ledger.describe_request(budget.who, plan.loss, plan.key, delta=plan.delta))
    free = is_paid and not isinstance(plan, ClipChoicePlan)
    guards = (budget.own, budget.overall)
    fits = all(is_admitted(guard.spent, price, guard.cap) for guard in guards)
    least = min(remaining_epsilon(guard.spent, guard.cap, price.delta_a, price.delta_b) for guard in guards)
    binding = find_binding_budget(budget)
    before = binding.remaining
    after = remaining_epsilon(binding.spent + price, binding.cap) if fits and not free else before
    cap = binding.cap.epsilon or 1
    warnings = find_useless_columns(plan, found, count_most_rows(planner.policy.asked_by(budget.who), profile))
    accuracies = [column for column in found.columns if _width(column) is not None][: len(_KINDS)]
    kinds = {column.name: kind for column, kind in zip(accuracies, _KINDS, strict=False)}
    return QuestionEstimate(
        explanation=found,
        error=min_guessing_error(found.epsilon),
        free=free,
        fits=fits,
        most="" if fits else format_rounded_down(least),
        more=format_count(min(count_affordable(price, guard) for guard in guards)),
        bar=charts.draw_budget_bar(before / cap, (before - after) / cap),
        after=f"{format_rounded_down(after)} of epsilon {format_epsilon(binding.cap.epsilon)} is left after it."
        if fits
        else f"{format_rounded_down(before)} of epsilon {format_epsilon(binding.cap.epsilon)} is left.",
        lines=tuple(
            ColumnEstimate(column.name, _accuracy(column), kinds.get(column.name, ""), warnings.get(column.name))
            for column in found.columns
        ),
        curve=_draw_error_curve(question, budget.who, planner, found, accuracies),
        first=format_fraction(plan.epsilon) if isinstance(plan, ClipChoicePlan) else "",
        paid=format_fraction(plan.chosen_at) if isinstance(plan, FixedClipPlan) else "",
        both=format_fraction(plan.chosen_at + plan.epsilon_delta[0]) if isinstance(plan, FixedClipPlan) else "",
    )


def find_binding_budget(budget: AnalystBudget) -> BudgetStatus:
    """What one more question may take: of one's own budget, or of all together where less is left of that."""
    return min(budget.own, budget.overall, key=lambda standing: standing.remaining)


def format_rounded_down(grains: int) -> str:
    """An epsilon that is left, in at most four decimals: so much there is at least."""
    unit = GRAINS_PER_EPSILON // 10_000
    return format_epsilon(grains // unit * unit)


def count_affordable(price: BudgetCharge, guard: BudgetStatus) -> int:
    """How often a charge is admitted from now on: sums only grow, so bisection finds it."""

    def fits(count: int) -> bool:
        total = BudgetCharge(*(count * grain for grain in price.grains))
        return is_admitted(guard.spent, total, guard.cap)

    low, high = 0, _MANY + 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def format_count(count: int) -> str:
    """A number of questions in words."""
    return f"more than {_MANY:,}" if count > _MANY else f"{count:,}"


def _width(column: Accuracy) -> float | None:
    """How far a column may be off: a mean's as if a group had a thousand rows."""
    return column.error if column.error is not None else dict(column.error_by_rows).get(1000)


def _accuracy(column: Accuracy) -> str:
    if column.said:
        return column.said
    if column.error is not None:
        return f"within {_format_digits(column.error, 6)}"
    if column.error_by_rows:
        return "within " + ", ".join(
            f"{_format_digits(error, 3)} for {rows:,} rows" for rows, error in column.error_by_rows
        )
    return "computed from the others, at no cost"


def _format_digits(error: float, digits: int) -> str:
    """So many digits of it, without an exponent."""
    return f"{float(f'{error:.{digits}g}'):,.10g}"


def _draw_error_curve(
    question: Question, analyst: str, planner: Planner, chosen: Explanation, columns: Sequence[Accuracy]
) -> Markup:
    """The expected error against epsilon, with the epsilon that is chosen."""
    policy = planner.policy.asked_by(analyst)
    prices = sorted({*_EPSILON_GRID, chosen.epsilon}) if chosen.epsilon > 0 else list(_EPSILON_GRID)
    points: dict[str, list[tuple[float, float]]] = {column.name: [] for column in columns}
    for price in prices:
        try:
            plan = planner.plan(replace(question, epsilon=price, within=None), analyst)
            found = explain(plan, policy, question.level)
        except Refused:
            continue
        for column in found.columns:
            width = _width(column)
            if column.name in points and width is not None and width > 0:
                points[column.name].append((price, width))
    heights = [height for line in points.values() for _, height in line]
    if not heights or min(map(len, points.values())) < 2:
        return Markup()
    low, high = 10 ** (_floor(min(heights))), 10 ** (_floor(max(heights)) + 1)
    marks = [ChartMark(chosen.epsilon, _width(c) or low, kind=k) for c, k in zip(columns, _KINDS, strict=False)]
    return charts.draw_plot(
        PercentScale(prices[0], prices[-1], is_log=True, left=20, right=97),
        PercentScale(low, high, is_log=True),
        [ChartLine(line, kind) for line, kind in zip(points.values(), _KINDS, strict=False)],
        marks,
        title="The expected error falls as epsilon grows",
        across="Expected error, by epsilon" + ("" if any(c.error is not None for c in columns) else "; for 1,000 rows"),
    )


def _floor(number: float) -> int:
    return math.floor(math.log10(number) + 1e-9)
