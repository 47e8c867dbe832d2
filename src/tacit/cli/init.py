"""`tacit init`: begin a policy from the tables of a source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, PolicyOption
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
    browser: Annotated[
        bool,
        typer.Option("--browser", help="Choose on a page of this machine, with previews of what each choice means."),
    ] = False,
    port: Annotated[int, typer.Option("--port", help="That of the page; 0 is any free one.", metavar="PORT")] = 0,
) -> None:
    """Write a starter policy for the tables of a source.

    It holds names and types, and what you decide. How often values repeat is looked at, to propose whose rows they are;
    that is shown to you and not written.
    """
    from tacit.policy.model import is_database_url
    from tacit.policy.template import render_template
    from tacit.policy.write_policy import require_new, write_new_policy

    require_new(policy)
    if guided and browser:
        raise ParameterError("guided", "questions are asked here or on a page", fix="leave out --guided or --browser")
    place = source
    tables: Tables = {}
    if source is not None:
        named = source if is_database_url(source) else _path_from_policy(Path(source), policy)
        _check_text(source, named)
        tables = _read_columns(source)
        source = named
    elif unit is not None or guided or browser:
        raise ParameterError("source", "is needed to choose from its columns", fix="name a file: tacit init visits.csv")
    choices = _read_choices(tables, unit, epsilon, analyst)
    if guided:
        from tacit.cli.guided_init import ask_owner

        choices = ask_owner(tables, choices)
    if browser:
        assert place is not None
        assert source is not None
        choices = _choose_on_page(place, source, policy, tables, choices, port)
    else:
        write_new_policy(policy, render_template(source, tables, choices))
    for line in _describe(tables, choices, policy):
        typer.echo(line)


def _choose_on_page(
    place: str, source: str, policy: Path, tables: Tables, choices: StarterChoices, port: int
) -> StarterChoices:
    """The owner's choices, made on a page that writes the policy; where it ends without that, the command fails."""
    from tacit.engines.source_rows import SourceRows
    from tacit.extras import missing_extra
    from tacit.policy.model import is_database_url

    try:
        from tacit.serve.console.setup_preview import SetupSource
        from tacit.serve.console.setup_server import run_setup
    except ImportError:
        raise missing_extra("serve", "the page", "starlette and uvicorn") from None
    if not 0 <= port <= 65535:
        raise ParameterError("port", f"{port} is out of range", fix="--port takes a number from 0 to 65,535")
    rows = None if is_database_url(place) else SourceRows(Path(place), tables)

    def ready(address: str) -> None:
        typer.echo("Open this address in a browser on this machine. It shows what is in the data, and works once:")
        typer.echo(f"  {address}")
        typer.echo("The page ends when the policy is written. Stop with Ctrl-C.")

    try:
        chosen = run_setup(SetupSource(source, policy, tables, rows), choices, port, ready)
    finally:
        if rows is not None:
            rows.close()
    if chosen is None:
        raise ParameterError("browser", "the page ended before a policy was written", fix="run the command again")
    return chosen


def _read_columns(source: str) -> Tables:
    """The tables of a source, and their columns with the types to declare, or why there is none."""
    from tacit.engines import duckdb
    from tacit.policy.model import is_database_url

    if not is_database_url(source):
        _check_is_there(source)
        return duckdb.read_columns(Path(source))
    from tacit.engines import postgres

    return postgres.read_columns(source)


def _check_is_there(source: str) -> None:
    """DataError where a path names nothing, or what cannot be looked at."""
    try:
        os.stat(source)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(ErrorCode.DATA, f"there is no {source}", fix="name a file or folder that is there") from None
    except OSError as error:
        what = f"{source} cannot be read: {error.strerror or 'it failed'}"
        raise DataError(ErrorCode.DATA, what, fix="name a file or folder that this user may read") from None


def _check_text(*paths: str) -> None:
    """ParameterError where a path is not UTF-8: a policy, which is, cannot name it."""
    from tacit.terminal import one_line

    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            what = f"the path {one_line(path)} is not UTF-8, so no policy can name it"
            raise ParameterError("source", what, fix="rename the file or its folder") from None


def _path_from_policy(source: Path, policy: Path) -> str:
    """The source as the policy will name it: relative to its folder where it lies below, else in full."""
    there, folder = Path(os.path.realpath(source)), Path(os.path.realpath(policy)).parent
    return str(there.relative_to(folder) if there.is_relative_to(folder) else there)


def _read_choices(tables: Tables, unit: str | None, epsilon: str, analyst: str) -> StarterChoices:
    """The choices of the options, or ParameterError."""
    from tacit.policy.owner_choices import read_analyst, read_budget, read_person
    from tacit.policy.template import StarterChoices

    person = None if unit is None else read_person(tables, unit)
    return StarterChoices(person, read_budget(epsilon), read_analyst(analyst))


def _describe(tables: Tables, choices: StarterChoices, policy: Path) -> Iterator[str]:
    """What was written, what the owner should know of it, and what to do next."""
    from tacit.policy.owner_choices import describe_repeats
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
