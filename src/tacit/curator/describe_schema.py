"""A policy as its analysts see it."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

from tacit.answers.data_profile import DataProfile
from tacit.answers.schema import Schema
from tacit.policy.contribution_caps import AUTO
from tacit.policy.model import ROW_UNIT, Column, Policy, Table, UnitForeignKey
from tacit.query.timestamps import to_datetime
from tacit.query.types import TIME_TYPES


def describe_schema(policy: Policy, profile: DataProfile | None = None) -> Schema:
    """Return what may be asked about, with the profile that was released last.

    Of the policy as one analyst sees it, the profile has what this analyst may name.
    """
    if profile is not None and policy.access is not None:
        shown = {table.name: {column.name for column in table.columns} for table in policy.tables}
        profile = profile.select_columns(shown)
    tables = {table.name: _table_to_dict(table) | _tell_hidden_unit(table, policy) for table in policy.tables}
    return Schema(str(policy.neighbors), tables, profile)


def _tell_hidden_unit(table: Table, policy: Policy) -> dict[str, Any]:
    """Whether the unit is a listed column that whoever asks may not name."""
    declared = policy.declared_table(table.name)
    assert declared is not None
    if not isinstance(table.unit, str) or table.unit == ROW_UNIT or table.column(table.unit) is not None:
        return {}
    return {"unit_hidden": True} if declared.column(table.unit) is not None else {}


def _table_to_dict(table: Table) -> dict[str, Any]:
    columns = {column.name: _column_to_dict(column) for column in table.columns}
    if table.public:
        keys = {"unique": [list(key) for key in table.unique]} if table.unique else {}
        return {"public": True, **keys, "columns": columns}
    through = {}
    if isinstance(table.unit, UnitForeignKey):
        through = {"unit_through": {"column": table.unit.column, "table": table.unit.table, "key": table.unit.key}}
    return {"unit": str(table.unit), **through, "people": table.people, **_caps_to_dict(table), "columns": columns}


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


def _format_bound(column: Column, value: Fraction) -> str:
    """A bound as it is written: that of a date is a day, that of a timestamp a moment."""
    return (
        to_datetime(int(value)).isoformat() if column.type == "timestamp" else date.fromordinal(int(value)).isoformat()
    )
