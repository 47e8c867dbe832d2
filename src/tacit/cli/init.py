"""`tacit init`: begin a policy from the tables of a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, PolicyOption
from tacit.cli.owner_choices import describe_repeats, read_analyst, read_budget, read_person
from tacit.errors import DataError, ErrorCode, ParameterError

if TYPE_CHECKING:
    from tacit.policy.propose import Tables
    from tacit.policy.template import StarterChoices


def init(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A .duckdb, .parquet or .csv file, a folder of these, or postgresql://host/database.",
            metavar="SOURCE",
        ),
    ] = None,
    policy: PolicyOption = DEFAULT_POLICY,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help='The column that says whose row it is, or "row" where each row is one person.'),
    ] = None,
    epsilon: Annotated[str, typer.Option("--epsilon", help="What may be spent over all analysts together.")] = "1",
    analyst: Annotated[str, typer.Option("--analyst", help="Who may ask first.")] = "ada",
    guided: Annotated[
        bool, typer.Option("--guided", help="Ask the questions that matter, one after the other.")
    ] = False,
) -> None:
    """Write a starter policy for the tables of a source.

    It holds names and types, and what you decide. How often values repeat is looked at, to propose whose rows they are;
    that is shown to you and not written.
    """
    from tacit.policy.model import is_database_url
    from tacit.policy.template import render_template

    if policy.exists():
        raise ParameterError("policy", f"{policy} exists already", fix="name another file with --policy")
    tables: Tables = {}
    if source is not None:
        tables = _read_columns(source)
        source = source if is_database_url(source) else _path_from_policy(Path(source), policy)
    elif unit is not None or guided:
        raise ParameterError("source", "is needed to choose from its columns", fix="name a file: tacit init visits.csv")
    choices = _read_choices(tables, unit, epsilon, analyst)
    if guided:
        from tacit.cli.guided_init import ask_owner

        choices = ask_owner(tables, choices)
    text = render_template(source, tables, choices)
    policy.write_text(text, encoding="utf-8")
    for line in _describe(tables, choices, policy):
        typer.echo(line)


def _read_columns(source: str) -> Tables:
    """The tables of a source, and their columns with the types to declare, or why there is none."""
    from tacit.engines import duckdb
    from tacit.policy.model import is_database_url

    if not is_database_url(source):
        if not Path(source).exists():
            raise DataError(ErrorCode.DATA, f"there is no {source}", fix="name a file or folder that is there")
        return duckdb.read_columns(Path(source))
    from tacit.engines import postgres

    return postgres.read_columns(source)


def _path_from_policy(source: Path, policy: Path) -> str:
    """The source as the policy will name it: relative to its folder where it lies below, else in full."""
    try:
        return str(source.resolve().relative_to(policy.resolve().parent))
    except ValueError:
        return str(source.resolve())


def _read_choices(tables: Tables, unit: str | None, epsilon: str, analyst: str) -> StarterChoices:
    """The choices of the options, or ParameterError."""
    from tacit.policy.template import StarterChoices

    person = None if unit is None else read_person(tables, unit)
    return StarterChoices(person, read_budget(epsilon), read_analyst(analyst))


def _describe(tables: Tables, choices: StarterChoices, policy: Path) -> Iterator[str]:
    """What was written, what the owner should know of it, and what to do next."""
    from tacit.policy.propose import propose_person
    from tacit.policy.template import explain_left_out
    from tacit.terminal import LONGEST, one_line

    check = f"tacit check -p {policy}"
    if not tables:
        yield f"Wrote {policy}. It is an example: put your own tables and columns in, then: {check}"
        return
    yield f"Wrote {policy}."
    for table, columns in tables.items():
        reasons = [
            f"{one_line(column.name, LONGEST)} ({reason})"
            for column in columns
            if (reason := explain_left_out(column)) is not None and (table, column.name) not in choices.listed
        ]
        if reasons:
            yield f"Left out of {table}: {', '.join(reasons)}."
    if choices.person is None:
        person = propose_person(tables)
        if person is not None:
            yield f"{person} seems to say whose row it is{describe_repeats(tables, person)}."
        yield f'Fill in each "?": whose privacy is protected is for you to decide. Then: {check}'
    else:
        yield f"Next: {check}"
