"""What a profile would release and what it takes to be seen in it: known from the policy and the epsilon alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.answers.histogram_estimates import occupied_threshold
from tacit.curator.profile import ChargedProfile
from tacit.mechanisms.threshold import Threshold
from tacit.query.types import Type
from tacit.query.value_bins import ValueBins


@dataclass(frozen=True)
class ProfileOutlook:
    """What a profile would release, known before any data is touched."""

    epsilon: Fraction
    delta: Fraction
    histograms: int
    scale: Fraction
    bin_needs: int
    key_needs: int | None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "histograms": self.histograms,
            "noise_scale": float(self.scale),
            "units_in_a_bin": self.bin_needs,
            "units_with_a_key": self.key_needs,
        }

    def __str__(self) -> str:
        delta = f" and delta {float(self.delta):g}" if self.delta else ""
        lines = [
            f"costs epsilon {float(self.epsilon):g}{delta}, of the overall budget",
            f"  {self.histograms} histograms: one for each column, and one for how many rows a unit has",
            f"  discrete Laplace noise of scale {float(self.scale):,.4g} on the number of units in each bin",
            f"  a bin is shown where about {self.bin_needs:,} units are in it",
        ]
        if self.key_needs is not None:
            lines.append(f"  a text that is not declared is shown where about {self.key_needs:,} units have it")
        return "\n".join(lines)


def describe_plan(plan: ChargedProfile) -> ProfileOutlook:
    """Return what a profile would cost and how many units it takes to be seen in it. Free: no data is touched."""
    kinds = {column.type for table in plan.profiled for column in table.columns} - {Type.TEXT, Type.BOOL}
    most = max((len(ValueBins(kind).codes) for kind in kinds | {Type.INT}), default=1)
    key_needs = None if plan.key_delta is None else Threshold(plan.scale, plan.key_delta).least()
    return ProfileOutlook(
        plan.epsilon,
        Fraction(0) if plan.key_delta is None else plan.key_delta * plan.private_columns,
        sum(table.histograms for table in plan.profiled),
        plan.scale,
        occupied_threshold(most, plan.scale),
        key_needs,
    )
