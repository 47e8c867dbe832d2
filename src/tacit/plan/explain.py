"""A plan in words: what would be done, what it costs, and how accurate it would be. No data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.answers.answer import percent
from tacit.answers.intervals import half_width, mean
from tacit.answers.recipe import Mean, Plain, Recipe
from tacit.arithmetic import within
from tacit.plan.plan import Plan
from tacit.policy.model import ROW, Policy
from tacit.query.nodes import Released
from tacit.query.types import Type

_ROWS = (100, 1_000, 10_000)  # group sizes for which the error of a mean is shown


@dataclass(frozen=True)
class Noise:
    """One thing that is measured: by how much one unit moves it, and the scale of its noise, in the user's units."""

    name: str
    sensitivity: float
    scale: float


@dataclass(frozen=True)
class Column:
    """How accurate a column would be. `error` is the half-width of a count or sum; a mean's depends on the rows."""

    name: str
    error: float | None
    error_by_rows: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Explanation:
    """What a question would cost and give."""

    epsilon: float
    delta: float
    unit: str
    neighbors: str
    groups: int
    confidence: float
    noise: tuple[Noise, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "neighbors": self.neighbors,
            "groups": self.groups,
            "confidence": self.confidence,
            "noise": [
                {"of": n.name, "law": "discrete Laplace", "sensitivity": n.sensitivity, "scale": n.scale}
                for n in self.noise
            ],
            "columns": [
                {"name": c.name, "error": c.error, "error_by_rows": dict(c.error_by_rows)} for c in self.columns
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = f"{self.groups:,} rows, one for each group" if self.groups != 1 else "one row"
        lines = [
            f"costs epsilon {self.epsilon:g}, delta {self.delta:g}; protects each {self.unit} ({self.neighbors})",
            f"the answer has {rows}",
        ]
        for noise in self.noise:
            moved = f"one {self.unit} moves it by {noise.sensitivity:,g}"
            lines.append(f"  {noise.name}: {moved}; discrete Laplace noise of scale {noise.scale:,.6g}")
        often = f"{percent(self.confidence)} of the time"
        for column in self.columns:
            if column.error is not None:
                lines.append(f"  {column.name}: within {column.error:,.6g} of the bounded value, {often}")
            elif column.error_by_rows:
                sizes = ", ".join(f"{error:,.3g} for {rows:,} rows" for rows, error in column.error_by_rows)
                lines.append(f"  {column.name}: about within {sizes}, {often}")
            else:
                lines.append(f"  {column.name}: computed from released values, at no cost")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def explain(plan: Plan, policy: Policy, confidence: Any) -> Explanation:
    """The plan in words, at a confidence."""
    level = within("confidence", confidence, Fraction(1, 100), 1 - Fraction(1, 10**9))
    noise = tuple(
        Noise(p.vector.name, float(p.sensitivity * p.vector.unit), float(p.mechanism.scale * p.vector.unit))
        for p in plan.parts
    )
    return Explanation(
        epsilon=float(plan.epsilon),
        delta=0.0,
        unit="row" if plan.table.unit == ROW else plan.table.unit,
        neighbors=str(policy.neighbors),
        groups=plan.recipe.groups,
        confidence=float(level),
        noise=noise,
        columns=tuple(_columns(plan.recipe, level)),
        notes=plan.recipe.notes,
    )


def _columns(recipe: Recipe, confidence: Fraction) -> list[Column]:
    columns = []
    for result in recipe.results:
        if isinstance(result.scalar, Released):
            value = recipe.values[result.scalar.index]
            if isinstance(value, Plain):
                columns.append(Column(result.name, float(half_width(recipe.parts[value.part], confidence)), ()))
            else:
                columns.append(Column(result.name, None, _by_rows(recipe, value, confidence)))
        elif result.type in {Type.INT, Type.FLOAT}:
            columns.append(Column(result.name, None, ()))
    return columns


def _by_rows(recipe: Recipe, value: Mean, confidence: Fraction) -> tuple[tuple[int, float], ...]:
    """The half-width of a mean's interval when the mean lies in the middle of its range, where it is least."""
    low, high = mean(
        [0] * len(_ROWS), list(_ROWS), value, recipe.parts[value.sum], recipe.parts[value.count], confidence
    )
    return tuple((rows, float(h - lo) / 2) for rows, lo, h in zip(_ROWS, low, high, strict=True))
