"""`tacit init --guided`: the five questions that matter, each with a proposal that Enter takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TypeVar

import typer

from tacit.arithmetic import format_decimal
from tacit.cli.owner_choices import describe_repeats, read_analyst, read_budget, read_person
from tacit.engines.source_columns import SourceColumn
from tacit.errors import ParameterError
from tacit.policy.model import ROW_UNIT, Type
from tacit.policy.propose import Tables, propose_person, propose_units
from tacit.policy.template import StarterChoices, explain_left_out

Value = TypeVar("Value")

_PERSON = """
1. Whose privacy is protected?
   The column that says whose row it is: all rows of one person are protected together. "row" where each row is one
   person and nobody has two."""
_LISTED = """
2. Which columns may analysts name?
   These name or describe somebody, or are keys, and are left out:"""
_BOUNDS = """
3. Within which bounds do numbers lie?
   From what a column means, not from what is in it: the policy is public. Sums and averages are sharper with bounds.
   Without them they are chosen privately, or released once by tacit profile. Write two numbers, or press Enter."""
_BUDGET = """
4. How much may be learned in all?
   The overall epsilon: below 1 is good protection, above 5 is large. It is spent once and never refreshes."""
_ANALYST = """
5. Who asks first?
   A name without spaces; they get half of it. Others are added in the policy."""


def ask_owner(tables: Tables, choices: StarterChoices) -> StarterChoices:
    """The owner's choices, asked for in the terminal."""
    typer.echo(_PERSON)
    proposed = choices.person or propose_person(tables) or ROW_UNIT
    if proposed != ROW_UNIT:
        typer.echo(f"   {proposed} seems to be it{describe_repeats(tables, proposed)}.")
    person = _ask("   Column", proposed, lambda given: read_person(tables, given))
    asked = {table: tables[table] for table in (tables if person == ROW_UNIT else propose_units(tables, person))}
    listed = _ask_listed(asked)
    bounds = _ask_bounds(asked, listed)
    typer.echo(_BUDGET)
    budget = _ask("   Epsilon", format_decimal(choices.epsilon), read_budget)
    typer.echo(_ANALYST)
    analyst = _ask("   Name", choices.analyst, read_analyst)
    typer.echo()
    return replace(choices, person=person, listed=listed, bounds=bounds, epsilon=budget, analyst=analyst)


def _ask(prompt: str, default: str, read: Callable[[str], Value]) -> Value:
    """What is answered, asked again until it can be read."""
    while True:
        try:
            return read(str(typer.prompt(prompt, default=default, show_default=bool(default))).strip())
        except ParameterError as error:
            typer.echo(f"   {error.what}")


def _ask_listed(tables: Tables) -> frozenset[tuple[str, str]]:
    left_out = {
        (table, column.name): reason
        for table, columns in tables.items()
        for column in columns
        if isinstance(column.kind, Type) and (reason := explain_left_out(column)) is not None
    }
    if not left_out:
        return frozenset()
    typer.echo(_LISTED)
    for (table, column), reason in left_out.items():
        typer.echo(f"   {table}.{column}: {reason}")

    def read(given: str) -> frozenset[tuple[str, str]]:
        names = [name.strip().lower() for name in given.split(",") if name.strip()]
        known = {f"{table}.{column}".lower(): (table, column) for table, column in left_out}
        known |= {column.lower(): (table, column) for table, column in left_out}
        if unknown := [name for name in names if name not in known]:
            raise ParameterError("columns", f"{unknown[0]} is not one of these", fix="name columns of the list")
        return frozenset(known[name] for name in names)

    return _ask("   List all the same, separated by commas, or Enter for none", "", read)


def _ask_bounds(tables: Tables, listed: frozenset[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    numbers = [
        (table, column)
        for table, columns in tables.items()
        for column in columns
        if column.kind in {Type.INT, Type.FLOAT}
        and (explain_left_out(column) is None or (table, column.name) in listed)
    ]
    if not numbers:
        return {}
    typer.echo(_BOUNDS)
    found = {}
    for table, column in numbers:
        bounds = _ask(f"   {table}.{column.name}, lower and upper", "", partial(_read_bounds, column))
        if bounds is not None:
            found[table, column.name] = bounds
    return found


def _read_bounds(column: SourceColumn, given: str) -> tuple[str, str] | None:
    """Two numbers as TOML has them; None for nothing."""
    parts = given.replace(",", " ").split()
    if not parts:
        return None
    try:
        lower, upper = (Decimal(part) for part in parts)
        is_whole = column.kind is Type.FLOAT or lower % 1 == upper % 1 == 0
        if is_whole and lower <= upper and max(abs(lower), abs(upper)) <= 10**15:
            return f"{lower:f}", f"{upper:f}"
    except (InvalidOperation, ValueError):
        pass
    kind = "two numbers" if column.kind is Type.FLOAT else "two whole numbers"
    raise ParameterError("bounds", f"write {kind}, the smaller first, such as 0 100", fix="0 100")
