"""What a question would cost and how accurate its answer would be, in words and as plain values.

A server sends the plain values, and its client makes the same object of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacit.answers.answer import format_percent
from tacit.errors import ErrorCode, Refused
from tacit.notebook_html import render_list, render_paragraph, render_table


@dataclass(frozen=True)
class Noise:
    """One thing that is measured or chosen, and how.

    With noise: by how much one unit moves it, and the scale of the noise, in the user's units.
    """

    name: str
    law: str
    sensitivity: float | None
    scale: float | None


@dataclass(frozen=True)
class ColumnAccuracy:
    """How accurate a column would be. `error` is the half-width of a count or sum; a mean's depends on the rows."""

    name: str
    error: float | None
    error_by_rows: tuple[tuple[int, float], ...]
    said: str = ""


@dataclass(frozen=True)
class Explanation:
    """What a question would cost and give. `groups` is None where the keys are private, or rows of public tables.

    Of a question made of several it is the most rows that the answer has, which `may_be_fewer`.

    Where what it costs follows from a clip that is chosen first, `epsilon_by_rows` is the epsilon of both steps by the
    rows of a unit that the clip lets count, and `epsilon` is that of one row.

    `refused` is why asking it would be refused now: it costs more than what is left of a budget. None where it fits, or
    where what is left was not looked at.
    """

    epsilon: float
    delta: float
    unit: str
    neighbors: str
    groups: int | None
    keys: str
    confidence: float
    noise: tuple[Noise, ...]
    columns: tuple[ColumnAccuracy, ...]
    notes: tuple[str, ...]
    refused: Refused | None = None
    may_be_fewer: bool = False
    most_rows: int | None = None  # that are shown where the keys are private
    epsilon_by_rows: tuple[tuple[int, float], ...] = ()

    def refused_by(self, refusal: Refused | None) -> Explanation:
        """The same, with the refusal that asking would meet."""
        return replace(self, refused=refusal)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "neighbors": self.neighbors,
            "groups": self.groups,
            "keys": self.keys,
            "confidence": self.confidence,
            "noise": [{"of": n.name, "law": n.law, "sensitivity": n.sensitivity, "scale": n.scale} for n in self.noise],
            "columns": [
                {"name": c.name, "error": c.error, "error_by_rows": dict(c.error_by_rows), "said": c.said}
                for c in self.columns
            ],
            "notes": list(self.notes),
            "refused": None
            if self.refused is None
            else {"code": str(self.refused.code), "what": self.refused.what, "fix": self.refused.fix},
            "may_be_fewer": self.may_be_fewer,
            "most_rows": self.most_rows,
            "epsilon_by_rows": dict(self.epsilon_by_rows),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Explanation:
        """Return the explanation that `to_dict` wrote, read from JSON or not."""
        refused = found["refused"]
        return cls(
            epsilon=found["epsilon"],
            delta=found["delta"],
            unit=found["unit"],
            neighbors=found["neighbors"],
            groups=found["groups"],
            keys=found["keys"],
            confidence=found["confidence"],
            noise=tuple(Noise(n["of"], n["law"], n["sensitivity"], n["scale"]) for n in found["noise"]),
            columns=tuple(
                ColumnAccuracy(
                    c["name"],
                    c["error"],
                    tuple((int(rows), error) for rows, error in c["error_by_rows"].items()),  # JSON has names as text
                    c["said"],
                )
                for c in found["columns"]
            ),
            notes=tuple(found["notes"]),
            refused=None
            if refused is None
            else Refused(ErrorCode(refused["code"]), refused["what"], fix=refused["fix"]),
            may_be_fewer=found["may_be_fewer"],
            most_rows=found["most_rows"],
            epsilon_by_rows=tuple((int(rows), each) for rows, each in found.get("epsilon_by_rows", {}).items()),
        )

    def __str__(self) -> str:
        lines = [self._cost(), *self._refusal(), f"the answer has {self._rows()}"]
        lines += [f"  {name}: {how}" for name, how in (*self._list_measurements(), *self._accuracies())]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        parts = [render_paragraph(self._cost(), strong=True), *map(render_paragraph, self._refusal())]
        parts.append(render_paragraph(f"The answer has {self._rows()}."))
        if accuracies := self._accuracies():
            parts.append(render_table(["column", "accuracy"], accuracies, left=[True, True]))
        if measured := self._list_measurements():
            parts.append(render_table(["measured", "how"], measured, left=[True, True]))
        return "".join(parts) + render_list(self.notes)

    def _cost(self) -> str:
        protects = f"delta {self.delta:g}; protects each {self.unit} ({self.neighbors})"
        if not self.epsilon_by_rows:
            return f"costs epsilon {self.epsilon:g}, {protects}"
        each = [f"{epsilon:g} for {rows} row{'' if rows == 1 else 's'}" for rows, epsilon in self.epsilon_by_rows]
        return f"costs epsilon {', '.join(each)} that a clip lets each {self.unit} add, {protects}"

    def _refusal(self) -> list[str]:
        if self.refused is None:
            return []
        return [f"asking it would be refused now: {self.refused.what}; {self.refused.fix}"]

    def _list_measurements(self) -> list[tuple[str, str]]:
        """What is measured or chosen, and how."""
        found = []
        for noise in self.noise:
            how = noise.law
            if noise.scale is not None and noise.sensitivity is not None:
                moved = f"one {self.unit} moves it by {noise.sensitivity:,g}"
                how = f"{moved}; {noise.law} noise of scale {noise.scale:,.6g}"
            found.append((noise.name, how))
        return found

    def _accuracies(self) -> list[tuple[str, str]]:
        """Each column with how accurate it would be."""
        often = f"{format_percent(self.confidence)} of the time"
        found = []
        for column in self.columns:
            how = column.said or "computed from released values, at no cost"
            if not column.said and column.error is not None:
                how = f"within {column.error:,.6g} of the bounded value, {often}"
            elif not column.said and column.error_by_rows:
                sizes = ", ".join(f"{error:,.3g} for {rows:,} rows" for rows, error in column.error_by_rows)
                how = f"about within {sizes}, {often}"
            found.append((column.name, how))
        return found

    def _rows(self) -> str:
        if self.groups is None and not self.keys:
            return "as many rows as public tables give"
        if self.groups is None:
            return f"a row for each group that is shown, {self.most_rows:,} at most; {self.keys}"
        if self.groups == 1:
            return "one row"
        return f"at most {self.groups:,} rows" if self.may_be_fewer else f"{self.groups:,} rows, one for each group"
