"""What an analyst may see without asking: the budget and the schema. Both are public facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    READABLE,
    BudgetStatus,
    format_epsilon,
    is_within_basic,
    is_within_zcdp,
)
from tacit.answers.data_profile import DataProfile
from tacit.ledger.budget import OWNER
from tacit.ledger.reader import LedgerReader
from tacit.policy.check import format_decimal
from tacit.policy.contribution_caps import AUTO
from tacit.policy.model import ROW_UNIT, Column, Policy, Table, UnitForeignKey
from tacit.policy.promise import RecordedSpending
from tacit.query.timestamps import to_datetime
from tacit.query.types import TIME_TYPES


@dataclass(frozen=True)
class AnalystBudget:
    """How much an analyst, and all of them together, have spent and have left."""

    who: str
    own: BudgetStatus
    overall: BudgetStatus
    month: str = ""  # in which the own standing counts, where the cap refreshes

    @property
    def remaining(self) -> float:
        """The epsilon that one more question of this analyst may cost: the smaller of the two."""
        return min(self.own.remaining, self.overall.remaining) / GRAINS_PER_EPSILON

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, amounts as exact decimal text."""
        own = {**standing_to_dict(self.own), **({"month": self.month} if self.month else {})}
        return {"who": self.who, "own": own, "overall": standing_to_dict(self.overall)}

    def __str__(self) -> str:
        month = f" in {self.month}" if self.month else ""
        own, overall = _describe_standing(self.own, month), _describe_standing(self.overall)
        return f"{self.who} has spent {own}; all analysts together {overall}"


@dataclass(frozen=True)
class AllBudgets:
    """Everyone's budget, as the owner sees them; of an analyst whose cap refreshes, that of this month."""

    overall: BudgetStatus
    analysts: dict[str, BudgetStatus]
    months: dict[str, str]

    @classmethod
    def of(cls, policy: Policy, ledger: LedgerReader) -> AllBudgets:
        """What the ledger says of the policy's analysts."""
        names = [analyst.name for analyst in policy.analysts]
        if (terms := ledger.terms()) is not None and OWNER in terms.limits.analysts and has_spent(ledger, OWNER):
            names.append(OWNER)  # what the owner has released for everyone
        months = {name: ledger.month(name) for name in names}
        return cls(ledger.overall(), {name: ledger.standing(name) for name in names}, months)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, amounts as exact decimal text."""
        months = {name: {"month": month} for name, month in self.months.items() if month}
        each = {
            name: {**standing_to_dict(standing), **months.get(name, {})} for name, standing in self.analysts.items()
        }
        return {"overall": standing_to_dict(self.overall), "analysts": each}

    def __str__(self) -> str:
        rows = [(name, _describe_standing(each, self._in(name))) for name, each in self.analysts.items()]
        rows.insert(0, ("all together", _describe_standing(self.overall)))
        wide = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{wide}}  {said}" for name, said in rows)

    def _in(self, name: str) -> str:
        return f" in {self.months[name]}" if self.months[name] else ""


def has_spent(ledger: LedgerReader, analyst: str) -> bool:
    """Whether anything was ever charged to an account that the ledger knows."""
    return any(ledger.standing(analyst).spent.grains)


def standing_to_dict(standing: BudgetStatus) -> dict[str, Any]:
    """What is spent, capped and left: of epsilon, and of the delta that questions may add up to."""
    return {
        "spent": format_epsilon(standing.spent.epsilon),
        "cap": format_epsilon(standing.cap.epsilon),
        "remaining": format_epsilon(standing.remaining),
        "delta": {
            "spent": format_delta(standing.spent.delta_a),
            "cap": format_delta(standing.cap.delta_a),
            "remaining": format_delta(remaining_delta(standing)),
        },
    }


def remaining_delta(standing: BudgetStatus) -> int:
    """The grains of delta that one more question may cost, whatever its epsilon: what the better filter has left."""
    spent, cap = standing.spent, standing.cap
    basic = cap.delta_a - spent.delta_a if spent.epsilon <= cap.epsilon else 0
    return max(0, basic, cap.delta_b - spent.delta_b if spent.rho <= cap.rho else 0)


def format_delta(grains: int) -> str:
    """Grains of delta as exact decimal text."""
    return format_decimal(Fraction(grains, GRAINS_PER_DELTA))


def describe_spent(standing: BudgetStatus) -> str:
    """What is spent of what: the sums, or, once filter B alone holds, the part of its rho."""
    spent, cap = standing.spent, standing.cap
    if is_within_zcdp(spent, cap) and not is_within_basic(spent, cap):
        return f"{100 * spent.rho / cap.rho:.3g}% of epsilon {format_epsilon(cap.epsilon)}, counted by rho"
    delta = f" and delta {format_delta(spent.delta_a)} of {format_delta(cap.delta_a)}"
    told = format_epsilon(-(-spent.epsilon // READABLE) * READABLE)
    return f"epsilon {told} of {format_epsilon(cap.epsilon)}" + (delta if spent.delta_a or cap.delta_a else "")


def _describe_standing(standing: BudgetStatus, month: str = "") -> str:
    left = standing.remaining // READABLE * READABLE
    return f"{describe_spent(standing)}{month}, with {format_epsilon(left)} left"


def load_spent(policy: Policy, ledger: LedgerReader) -> RecordedSpending:
    """What a ledger has charged to the policy's analysts, and to all together."""
    terms = ledger.terms()
    known = {} if terms is None else terms.limits.analysts
    each = {a.name: ledger.standing(a.name).spent for a in policy.analysts if a.name in known}
    return RecordedSpending(ledger.overall().spent, each)


@dataclass(frozen=True)
class Schema:
    """The tables and columns that may be named, and what was released of them for everyone."""

    policy: Policy
    profile: DataProfile | None = None

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain values."""
        return {
            "neighbors": str(self.policy.neighbors),
            "tables": {table.name: _table_to_dict(table) for table in self.policy.tables},
            **({} if self.profile is None else {"profile": self.profile.to_dict()}),
        }

    def __str__(self) -> str:
        lines = []
        for table in self.policy.tables:
            lines.append(f"{table.name}: {_describe_protection(table)}")
            wide = max(len(column.name) for column in table.columns)
            types = max(5, *(len(column.type) for column in table.columns))
            lines += [
                f"  {column.name.ljust(wide)}  {column.type.ljust(types)}  {_describe_domain(column)}".rstrip()
                for column in table.columns
            ]
        if self.profile is not None:
            lines += ["", str(self.profile)]
        return "\n".join(lines)


def _describe_protection(table: Table) -> str:
    if table.public:
        return "public"
    if table.unit == ROW_UNIT:
        return "each row is protected"
    return f"each unit, {_describe_unit(table)}, is protected; {_describe_contribution(table)}"


def _describe_contribution(table: Table) -> str:
    """How much of one unit counts: up to the caps, or as chosen for each question."""
    in_all = "" if table.max_rows is None else f", and at most {table.max_rows} in all"
    caps = f"in at most {table.max_groups} groups, with at most {table.max_rows_per_group} rows in each{in_all}"
    if not table.auto:
        return f"in one answer it counts {caps}"
    most = "" if table.auto_up_to is None else f", up to what {table.auto_up_to} rows add"
    others = f"; where a question cannot use that, it counts {caps}" if table.has_caps else ""
    return f"how much it may add is chosen for each question{most}{others}"


def _describe_unit(table: Table) -> str:
    """Whose rows they are, in words."""
    return str(table.unit) if isinstance(table.unit, UnitForeignKey) else f"a {table.unit}"


def _describe_domain(column: Column) -> str:
    if column.values is not None:
        shown = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in column.values[:8])
        return f"keys {shown}" + (f", ... ({len(column.values)} in all)" if len(column.values) > 8 else "")
    if column.lower is not None and column.upper is not None:
        zone = f", {column.zone}" if column.zone is not None else ""
        grid = f" in steps of {_format_number(column.step)}" if column.step is not None else ""
        return f"from {_format_bound(column, column.lower)} to {_format_bound(column, column.upper)}{grid}{zone}"
    can_be_summed = column.type in {"int", "float"}
    return "no bounds: compare, count, sum or average it" if can_be_summed else "compare, count or group it"


def _format_bound(column: Column, value: Fraction) -> str:
    """A bound as it is written: that of a date is a day, that of a timestamp a moment."""
    if column.type == "timestamp":
        return to_datetime(int(value)).isoformat()
    return date.fromordinal(int(value)).isoformat() if column.type == "date" else _format_number(value)


def _format_number(value: Fraction) -> str:
    return str(int(value)) if value.denominator == 1 else f"{float(value):g}"


def _table_to_dict(table: Table) -> dict[str, Any]:
    columns = {column.name: _column_to_dict(column) for column in table.columns}
    if table.public:
        keys = {"unique": [list(key) for key in table.unique]} if table.unique else {}
        return {"public": True, **keys, "columns": columns}
    return {"unit": str(table.unit), "people": table.people, **_caps_to_dict(table), "columns": columns}


def _caps_to_dict(table: Table) -> dict[str, Any]:
    """The caps, in the words of a policy: loaded again, they mean the same."""
    caps: dict[str, Any] = {}
    if table.unit != ROW_UNIT and table.has_caps:
        caps |= {"max_groups": table.max_groups, "max_rows_per_group": table.max_rows_per_group}
    if table.auto:
        caps["max_rows"] = AUTO if table.auto_up_to is None else {"auto_up_to": table.auto_up_to}
    elif table.max_rows is not None:
        caps["max_rows"] = table.max_rows
    return caps


def _column_to_dict(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": str(column.type)}
    for name in ("lower", "upper", "step"):
        value = getattr(column, name)
        if value is not None and column.type in TIME_TYPES:
            shown[name] = _format_bound(column, value)
        elif value is not None:
            shown[name] = int(value) if value.denominator == 1 else float(value)
    if column.zone is not None:
        shown["zone"] = column.zone
    if column.values is not None:
        shown["values"] = [value if isinstance(value, str | int) else value.isoformat() for value in column.values]
    if column.other is not None:
        shown["other"] = column.other
    if column.unique:
        shown["unique"] = True
    if not column.nullable:
        shown["nullable"] = False
    return shown
