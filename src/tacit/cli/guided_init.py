"""`tacit init --guided`: the five questions that matter, each with a proposal that Enter takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import typer

from tacit.arithmetic import format_decimal
from tacit.errors import ParameterError
from tacit.policy.model import ROW_UNIT, Type
from tacit.policy.owner_choices import (
    ColumnName,
    describe_repeats,
    list_left_out,
    read_analyst,
    read_bounds,
    read_budget,
    read_person,
    select_tables,
)
from tacit.policy.propose import Tables, propose_person
from tacit.policy.template import StarterChoices

Value = TypeVar("Value")

_MANY_NUMBERS = 8  # of more columns the owner names those that have bounds, and is not asked for each

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
    asked = select_tables(tables, person)
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


def _ask_listed(tables: Tables) -> frozenset[ColumnName]:
    left_out = list_left_out(tables)
    if not left_out:
        return frozenset()
    typer.echo(_LISTED)
    for (table, column), reason in left_out.items():
        typer.echo(f"   {table}.{column}: {reason}")
    return frozenset(
        _ask("   List all the same, separated by commas, or Enter for none", "", partial(_read_columns, left_out))
    )


def _ask_bounds(tables: Tables, listed: frozenset[ColumnName]) -> dict[ColumnName, tuple[str, str]]:
    """Bounds of the columns that may be named; where these are many, of those that the owner names."""
    left_out = list_left_out(tables)
    numbers = {
        (table, column.name): column.kind
        for table, columns in tables.items()
        for column in columns
        if column.kind in {Type.INT, Type.FLOAT}
        and ((table, column.name) not in left_out or (table, column.name) in listed)
    }
    if not numbers:
        return {}
    typer.echo(_BOUNDS)
    asked = list(numbers)
    if len(numbers) > _MANY_NUMBERS:
        typer.echo(f"   {len(numbers)} columns are numbers: {_show_names(numbers)}")
        prompt = "   Which of them have bounds, separated by commas, or Enter for none"
        asked = _ask(prompt, "", partial(_read_columns, numbers))
    found = {}
    for table, column in asked:
        kind = numbers[table, column]
        assert isinstance(kind, Type)
        bounds = _ask(f"   {table}.{column}, lower and upper", "", partial(read_bounds, kind))
        if bounds is not None:
            found[table, column] = bounds
    return found


def _read_columns(offered: Iterable[ColumnName], given: str) -> list[ColumnName]:
    """The columns that are named, each with its table or without, in their order; or ParameterError.

    **Rule.** A name means one column: one that several tables have is not taken without its table.
    """
    known = list(offered)
    found: list[ColumnName] = []
    for name in filter(None, map(str.strip, given.split(","))):
        meant = _find_columns(known, name)
        if not meant:
            raise ParameterError("columns", f"{name} is not one of these", fix="name columns of the list")
        if len(meant) > 1:
            full = [f"{table}.{column}" for table, column in meant]
            raise ParameterError("columns", f"{name} may be {' or '.join(full)}: write which", fix=full[0])
        found += meant
    return list(dict.fromkeys(found))


def _find_columns(known: Iterable[ColumnName], name: str) -> list[ColumnName]:
    """The columns that a name may mean: the one of this table and name, else those of this name in any table."""
    full = {each: f"{each[0]}.{each[1]}" for each in known}
    return (
        [each for each, called in full.items() if called == name]
        or [each for each, called in full.items() if called.lower() == name.lower()]
        or [each for each in full if each[1].lower() == name.lower()]
    )


def _show_names(columns: Iterable[ColumnName]) -> str:
    """The names of columns in a line, each with its table where there are several tables."""
    listed = list(columns)
    is_one_table = len({table for table, _ in listed}) == 1
    return ", ".join(column if is_one_table else f"{table}.{column}" for table, column in listed)
