"""What an owner who begins a policy decides, read from what they write: in a terminal or on a page.

What cannot be read is a `ParameterError` that says what to write.

>>> read_bounds(Type.INT, "0 100"), read_bounds(Type.DATE, "2025-01-01, 2025-12-31"), read_bounds(Type.INT, "")
(('0', '100'), ('2025-01-01', '2025-12-31'), None)
>>> read_keys("north, south, north")
('north', 'south')
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from tacit.arithmetic import to_rational
from tacit.engines.source_columns import SourceColumn
from tacit.errors import ParameterError
from tacit.policy.check import find_analyst_problem
from tacit.policy.load import MAX_EPSILON
from tacit.policy.model import ROW_UNIT, Type
from tacit.policy.propose import UNIQUE, Tables, propose_person, propose_units
from tacit.policy.template import explain_left_out

ColumnName = tuple[str, str]  # of a table and a column
BOUNDED = frozenset({Type.INT, Type.FLOAT, Type.DATE})  # types whose bounds an owner is asked for
_LARGEST = 10**15
_MOST_KEYS = 1_000


def read_person(tables: Tables, given: str) -> str:
    """The column that says whose row it is, as the source spells it, or "row"; or ParameterError."""
    names = [column.name for columns in tables.values() for column in columns]
    named = {name.strip().lower(): name for name in names} | {name.lower(): name for name in names}
    if given == ROW_UNIT:
        return given
    if given.lower() not in named:
        proposed = propose_person(tables)
        such = "" if proposed is None else f", such as {proposed}"
        fix = f'name a column of the source{such}, or "{ROW_UNIT}"'
        raise ParameterError("unit", f"there is no column {given}", fix=fix)
    return named[given.lower()]


def read_budget(given: str) -> Fraction:
    """The overall epsilon, or ParameterError."""
    try:
        budget = to_rational("epsilon", Decimal(given))
    except InvalidOperation:
        budget = Fraction(0)
    if not 0 < budget <= MAX_EPSILON:
        raise ParameterError("epsilon", f"must be a number above 0 and at most {MAX_EPSILON}", fix="--epsilon 1")
    return budget


def read_analyst(given: str) -> str:
    """The name of an analyst, or ParameterError."""
    if wrong := find_analyst_problem(given):
        raise ParameterError("analyst", wrong, fix="--analyst ada")
    return given


def read_bounds(kind: Type, given: str) -> tuple[str, str] | None:
    """Lower and upper as TOML has them, of numbers or days; None for nothing; or ParameterError."""
    return _read_pair(kind, given.replace(",", " ").split())


def read_bound_fields(kind: Type, lower: str, upper: str) -> tuple[str, str] | None:
    """Lower and upper from a field each, which holds one number or day; None where both are empty; or ParameterError.

    >>> read_bound_fields(Type.FLOAT, "1.5", "20"), read_bound_fields(Type.INT, "", "")
    (('1.5', '20'), None)
    """
    parts = [given.strip() for given in (lower, upper) if given.strip()]
    if any("," in given for given in parts):
        what = "write one number in each field, with a point and without commas, such as 1.5 or 1000"
        if kind is Type.DATE:
            what = "write one day in each field, such as 2025-01-01"
        raise ParameterError("bounds", what, fix="2025-01-01" if kind is Type.DATE else "1.5")
    return _read_pair(kind, parts)


def _read_pair(kind: Type, parts: Sequence[str]) -> tuple[str, str] | None:
    if not parts:
        return None
    try:
        lower, upper = parts
        if kind is Type.DATE:
            first, last = datetime.date.fromisoformat(lower), datetime.date.fromisoformat(upper)
            if first <= last:
                return first.isoformat(), last.isoformat()
        else:
            least, most = Decimal(lower), Decimal(upper)
            is_whole = kind is Type.FLOAT or least % 1 == most % 1 == 0
            if is_whole and least <= most and max(abs(least), abs(most)) <= _LARGEST:
                return f"{least:f}", f"{most:f}"
    except (InvalidOperation, ValueError):
        pass
    if kind is Type.DATE:
        raise ParameterError(
            "bounds", "write two days, the first one first, such as 2025-01-01 2025-12-31", fix="2025-01-01 2025-12-31"
        )
    words = "two numbers" if kind is Type.FLOAT else "two whole numbers"
    raise ParameterError("bounds", f"write {words}, the smaller first, such as 0 100", fix="0 100")


def read_keys(given: str) -> tuple[str, ...]:
    """Public keys that are separated by commas, each once; or ParameterError."""
    keys = tuple(dict.fromkeys(key.strip() for key in given.split(",") if key.strip()))
    if len(keys) > _MOST_KEYS:
        raise ParameterError("keys", f"more than {_MOST_KEYS:,} keys", fix="leave them out: keys are found privately")
    return keys


def select_tables(tables: Tables, person: str) -> dict[str, Sequence[SourceColumn]]:
    """The tables that a policy for this person has: those that a column leads to them from."""
    return {name: tables[name] for name in (tables if person == ROW_UNIT else propose_units(tables, person))}


def list_left_out(tables: Tables) -> dict[ColumnName, str]:
    """The columns that are left out unless the owner lists them, with the reasons."""
    return {
        (table, column.name): reason
        for table, columns in tables.items()
        for column in columns
        if isinstance(column.kind, Type) and (reason := explain_left_out(column)) is not None
    }


def describe_repeats(tables: Tables, column: str) -> str:
    """How often a column's values repeat, for the owner, where the rows were read."""
    shares = [each.distinct for columns in tables.values() for each in columns if each.name == column and each.distinct]
    if not shares or min(shares) >= UNIQUE:
        return ""
    each = 1 / min(shares)
    return f", with about {each:{'.2g' if each < 10 else ',.0f'}} rows for each value (for your eyes only)"
