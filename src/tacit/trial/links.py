"""How the tables of a policy hang together: the columns that say whose a row is, their types, and names for units."""

from __future__ import annotations

from typing import Any

from tacit.errors import ParameterError
from tacit.policy.model import ROW_UNIT, Column, Policy, Table, UnitForeignKey
from tacit.query.types import Type


def order_by_reference(policy: Policy, people: str) -> list[Table]:
    """The tables of these people; one that reaches its unit through another comes after that."""
    left = [table for table in policy.tables if table.people == people and not table.public]
    ordered: list[Table] = []
    while left:
        done = {table.name for table in ordered}
        ready = [t for t in left if not isinstance(t.unit, UnitForeignKey) or t.unit.table in done]
        ordered += ready
        left = [table for table in left if table not in ready]
    return ordered


def referenced_keys(policy: Policy, table: Table) -> list[str]:
    """The columns of a table by which others reach it."""
    keys = [t.unit.key for t in policy.tables if isinstance(t.unit, UnitForeignKey) and t.unit.table == table.name]
    return [declared_name(policy, table.name, key) for key in dict.fromkeys(keys)]


def is_keyed_by_unit(policy: Policy, table: Table) -> bool:
    """Whether others reach a table by the very column that is its unit: then each unit has one row."""
    return isinstance(table.unit, str) and table.unit.lower() in {key.lower() for key in referenced_keys(policy, table)}


def declared_name(policy: Policy, table: str, column: str) -> str:
    """A column as it is declared, or as it is named where it is not."""
    found = policy.table(table)
    declared = None if found is None else found.column(column)
    return column if declared is None else declared.name


def link_columns(policy: Policy, table: Table) -> list[str]:
    """The columns that say whose row it is, and those by which other tables reach it."""
    own = (
        [table.unit.column]
        if isinstance(table.unit, UnitForeignKey)
        else [table.unit]
        if table.unit not in {None, ROW_UNIT}
        else []
    )
    return list(
        dict.fromkeys(
            [*(declared_name(policy, table.name, str(name)) for name in own), *referenced_keys(policy, table)]
        )
    )


def free_columns(policy: Policy, table: Table) -> list[Column]:
    """The columns that may hold anything."""
    taken = set(link_columns(policy, table))
    return [column for column in table.columns if column.name not in taken]


def column_types(policy: Policy, table: Table) -> dict[str, Type]:
    """All columns of a table with their types: the declared ones, and those that link it."""
    return {c.name: c.type for c in table.columns} | {
        name: link_type(policy, table.name, name) for name in link_columns(policy, table)
    }


def link_type(policy: Policy, table: str, column: str) -> Type:
    """The type of a linking column: what is declared for it, or for one that it is matched with; else integers."""
    matched = {(table, column.lower())}
    people = {t.name: t.people for t in policy.tables}
    grown = True
    while grown:
        before = len(matched)
        for other in policy.tables:
            if isinstance(other.unit, UnitForeignKey):
                ends = {(other.name, other.unit.column.lower()), (other.unit.table, other.unit.key.lower())}
                matched |= ends if ends & matched else set()
            elif other.unit not in {None, ROW_UNIT}:
                same = {
                    (t.name, str(t.unit).lower())
                    for t in policy.tables
                    if isinstance(t.unit, str) and t.unit != ROW_UNIT
                }
                same = {(name, unit) for name, unit in same if people[name] == other.people}
                matched |= same if same & matched else set()
        grown = len(matched) > before
    declared = [c.type for t in policy.tables for c in t.columns if (t.name, c.name.lower()) in matched]
    return declared[0] if declared else Type.INT


def key_value(policy: Policy, table: str, column: str, number: int) -> Any:
    """The unit, or the key, of this number."""
    match link_type(policy, table, column):
        case Type.INT:
            return number
        case Type.FLOAT:
            return float(number)
        case Type.TEXT:
            return f"u{number}"
    what = f"{table}.{column} says whose rows they are, and holds neither numbers nor texts"
    raise ParameterError("policy", what, fix="name units by an integer or a text")


def unit_keys(policy: Policy, table: Table, number: int) -> dict[str, Any]:
    """What says that a row is of the unit of this number."""
    return {name: key_value(policy, table.name, name, number) for name in link_columns(policy, table)}
