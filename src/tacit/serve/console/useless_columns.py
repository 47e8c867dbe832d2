"""Columns of an answer that would tell nothing, found before anything is paid: by the policy and a released profile."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.aggregates.base import VectorMeasurement
from tacit.aggregates.direct import DirectEstimator
from tacit.aggregates.mean import MeanEstimator
from tacit.answers.data_profile import DataProfile
from tacit.answers.explanation import ColumnAccuracy, Explanation
from tacit.plan.compound_plan import AnyPlan, CompoundPlan
from tacit.policy.model import Policy
from tacit.query.nodes import ReleasedValue

_WHOLE = 0.99  # of the declared range: an interval as wide says nothing
_MANY = 1_000  # rows: an error of as many is remarked on


@dataclass(frozen=True)
class AccuracyWarning:
    """What an interval will not tell; nothing at all where `is_useless`."""

    text: str
    is_useless: bool


def find_useless_columns(plan: AnyPlan, found: Explanation, most_rows: int | None) -> dict[str, AccuracyWarning]:
    """Return what the intervals of columns would not tell, by the name of the column.

    A mean tells nothing where its interval is all of the declared range. A count or a sum tells nothing where it may be
    off by all that `most_rows` rows add, and cannot tell a group from an empty one that adds less than its error.
    Nothing here depends on the data: bounds are of the policy, and the number of rows, where it is known, was released
    before.
    """
    if isinstance(plan, CompoundPlan):
        return {}
    accuracies = {column.name: column for column in found.columns}
    warnings = {}
    for result in plan.recipe.results:
        column = accuracies.get(result.name)
        if column is None or not isinstance(result.scalar, ReleasedValue):
            continue
        value = plan.recipe.values[result.scalar.index]
        if isinstance(value, MeanEstimator):
            warning = _warn_of_mean(column, float(value.lower), float(value.upper))
        elif isinstance(value, DirectEstimator) and column.error is not None:
            measured = plan.parts[value.position].need
            assert isinstance(measured, VectorMeasurement)
            most = float(max(abs(measured.lower), abs(measured.upper)) * measured.unit)
            warning = _warn_of_sum(column.error / most if most else 0.0, most_rows)
        else:
            warning = None
        if warning is not None:
            warnings[result.name] = warning
    return warnings


def count_most_rows(policy: Policy, profile: DataProfile | None) -> int | None:
    """Return about how many rows any private table has at most, by a released profile; None where that is not known."""
    if profile is None:
        return None
    found = []
    for table in policy.tables:
        released = profile.table(table.name)
        if table.public:
            continue
        if released is None or not released.columns:
            return None
        each = table.max_rows if table.max_rows is not None else table.max_groups * table.max_rows_per_group
        found.append(max(column.units for column in released.columns) * each)
    return max(found, default=None)


def _warn_of_mean(column: ColumnAccuracy, lower: float, upper: float) -> AccuracyWarning | None:
    useless = [rows for rows, error in column.error_by_rows if error >= _WHOLE * (upper - lower) / 2]
    if not useless:
        return None
    everything = f"the interval is all of {lower:,.10g} to {upper:,.10g}"
    text = f"This tells nothing about a group of {useless[-1]:,} rows or fewer: {everything}."
    return AccuracyWarning(text, len(useless) == len(column.error_by_rows))


def _warn_of_sum(error_in_rows: float, most_rows: int | None) -> AccuracyWarning | None:
    """Warn of an error that is worth so many rows at the bound."""
    if most_rows is not None and error_in_rows >= most_rows:
        text = (
            f"This tells nothing: it may be off by what {error_in_rows:,.0f} rows add, of about {most_rows:,} at most."
        )
        return AccuracyWarning(text, is_useless=True)
    if error_in_rows >= _MANY:
        text = f"A group of fewer than {error_in_rows:,.0f} rows cannot be told from an empty one."
        return AccuracyWarning(text, is_useless=False)
    return None
