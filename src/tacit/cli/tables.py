"""`tacit tables`: which tables are locked after a failure, and the owner's way to unlock one. No data is touched."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption
from tacit.cli.output import format_table, print_json

if TYPE_CHECKING:
    from tacit.curator.table_status import TableStatus
    from tacit.policy.model import Policy

app = typer.Typer(
    help="Show the tables, and unlock one that a failed question has locked.", invoke_without_command=True
)


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """The tables of the policy that is named so far, for a shell that completes; none where it cannot be read."""
    from tacit.errors import TacitError
    from tacit.policy.load import load

    try:
        policy = load(Path(context.params.get("policy") or DEFAULT_POLICY))
    except TacitError:
        return []
    return [table.name for table in policy.tables if table.name.startswith(incomplete)]


@app.callback()
def list_tables(context: typer.Context, policy: PolicyOption = DEFAULT_POLICY, as_json: JsonOption = False) -> None:
    """Show each table with its unit and its epoch, and whether it is locked and since when."""
    if context.invoked_subcommand is not None:
        return
    from tacit.policy.load import load

    found = _read_statuses(load(policy))
    if as_json:
        print_json([status.to_dict() for status in found])
        return
    rows = [
        [
            status.table.name,
            "public" if status.table.public else str(status.table.unit),
            "live" if status.live else "-" if status.table.public else "copy",
            "-" if status.lock is None else f"since {status.lock.time[:19]}",
            str(status.epoch),
        ]
        for status in found
    ]
    typer.echo(format_table(["table", "unit", "reads", "locked (UTC)", "epoch"], rows, left=4))


@app.command()
def unlock(
    table: Annotated[
        str, typer.Argument(metavar="NAME", help="The table, as the policy names it.", autocompletion=complete_table)
    ],
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Unlock a table after you have looked at why a question failed. It is written into the ledger for good."""
    from tacit.curator.resources import reopen_ledger
    from tacit.errors import ParameterError
    from tacit.policy.load import load

    loaded = load(policy)
    status = next((each for each in _read_statuses(loaded) if each.table.name.lower() == table.lower()), None)
    if status is None:
        names = ", ".join(each.name for each in loaded.tables)
        raise ParameterError("name", f"the policy has no table {table}", fix=f"name one of {names}")
    if status.lock is None:
        raise ParameterError("name", f"{status.table.name} is not locked", fix="list the tables that are: tacit tables")
    if not as_json:
        typer.echo(status.describe_cause())
    if not yes:
        typer.confirm("Is the cause mended, so that the next question may fail only by another?", abort=True, err=True)
    with reopen_ledger(loaded) as ledger:
        ledger.unlock(status.table.name, entry=status.lock.entry)
    if as_json:
        print_json({**status.to_dict(), "locked": False})
    else:
        typer.echo(f"{status.table.name} is unlocked. A server that runs has noticed.")


def _read_statuses(policy: Policy) -> list[TableStatus]:
    """What the ledger says of each table; where there is no ledger yet, nothing is locked."""
    from tacit.curator.table_status import list_table_statuses
    from tacit.ledger.reader import LedgerReader

    books = policy.books
    with ExitStack() as stack:
        absent = books is None or (isinstance(books.store, Path) and not books.store.exists())
        history = None if absent or books is None else stack.enter_context(LedgerReader(books.store))
        return list_table_statuses(policy, history)
