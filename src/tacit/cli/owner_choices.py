"""What an owner who begins a policy decides, read from what they write."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.policy.propose import Tables


def read_person(tables: Tables, given: str) -> str:
    """The column that says whose row it is, as the source spells it, or "row"; or ParameterError."""
    from tacit.policy.model import ROW_UNIT
    from tacit.policy.propose import propose_person

    named = {column.name.lower(): column.name for columns in tables.values() for column in columns}
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
    from tacit.arithmetic import to_rational
    from tacit.policy.load import MAX_EPSILON

    try:
        budget = to_rational("epsilon", Decimal(given))
    except InvalidOperation:
        budget = Fraction(0)
    if not 0 < budget <= MAX_EPSILON:
        raise ParameterError("epsilon", f"must be a number above 0 and at most {MAX_EPSILON}", fix="--epsilon 1")
    return budget


def read_analyst(given: str) -> str:
    """The name of an analyst, or ParameterError."""
    from tacit.policy.check import find_name_problem

    wrong = find_name_problem(given) or ("it has no spaces" if any(letter.isspace() for letter in given) else "")
    if wrong:
        raise ParameterError("analyst", wrong, fix="--analyst ada")
    return given


def describe_repeats(tables: Tables, column: str) -> str:
    """How often a column's values repeat, for the owner, where the rows were read."""
    from tacit.policy.propose import UNIQUE

    shares = [each.distinct for columns in tables.values() for each in columns if each.name == column and each.distinct]
    if not shares or min(shares) >= UNIQUE:
        return ""
    return f", with about {1 / min(shares):.2g} rows for each value (for your eyes only)"
