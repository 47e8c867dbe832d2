"""`tacit init` and `tacit check`: begin a policy, and see what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption
from tacit.cli.output import print_json, show_progress
from tacit.errors import DataError, ErrorCode, LedgerError, ParameterError

if TYPE_CHECKING:
    from tacit.policy.check import PolicyAdvice
    from tacit.policy.model import Policy
    from tacit.policy.promise import RecordedSpending


def init(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A .duckdb, .parquet or .csv file, a folder of these, or postgresql://host/database.",
            metavar="SOURCE",
        ),
    ] = None,
    policy: PolicyOption = DEFAULT_POLICY,
) -> None:
    """Write a starter policy, from the names and types of a source. Rows are read of CSV only, which has no types."""
    from tacit.policy.model import is_database_url
    from tacit.policy.template import render_template

    if policy.exists():
        raise ParameterError("policy", f"{policy} exists already", fix="name another file with --policy")
    tables: dict[str, Any] = {}
    if source is not None:
        tables = _read_columns(source)
        source = source if is_database_url(source) else _path_from_policy(Path(source), policy)
    policy.write_text(render_template(source, tables), encoding="utf-8")
    todo = 'Fill in each "?"' if tables else "It is an example: put your own tables and columns in"
    typer.echo(f"Wrote {policy}. {todo}, then: tacit check -p {policy}")


def _read_columns(source: str) -> dict[str, list[tuple[str, Any]]]:
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


def check(
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
    for_editors: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of policies, for editors, and check nothing.")
    ] = False,
) -> None:
    """Check a policy and the data it points at; say what it promises."""
    from tacit.policy.check import check_policy
    from tacit.policy.load import load
    from tacit.policy.promise import describe_guarantee, find_overspent

    if for_editors:
        from tacit.policy.schema import build_json_schema

        print_json(build_json_schema())
        return
    loaded = load(policy)
    cut = [] if loaded.source is None else _check_data(loaded)
    spent, unread = _load_spent(loaded)
    found = (*unread, *(() if spent is None else find_overspent(loaded, spent)), *check_policy(loaded), *cut)
    promised = describe_guarantee(loaded, spent)
    if as_json:
        print_json({"promise": promised, "remarks": [{"at": r.path, "text": r.text} for r in found]})
        return
    typer.echo(f"{policy.name} is in order{'' if loaded.source is None else ', and the data is as declared'}.")
    typer.echo(promised)
    for remark in found:
        typer.echo(f"· {remark.path}: {remark.text}")


def _load_spent(policy: Policy) -> tuple[RecordedSpending | None, list[PolicyAdvice]]:
    """What the policy's ledger has charged, None where there is none yet; and remarks on locked tables, or that it
    cannot be read.
    """
    from tacit.curator.table_status import list_lock_remarks
    from tacit.curator.views import load_spent
    from tacit.ledger.reader import LedgerReader
    from tacit.policy.check import PolicyAdvice

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return None, []
    try:
        with LedgerReader(books.store, wait=5.0) as history:
            return load_spent(policy, history), list(list_lock_remarks(policy, history))
    except LedgerError as error:
        return None, [PolicyAdvice("ledger.store", f"was not read, so what is spent is not known: {error.what}")]


def _check_data(policy: Policy) -> list[PolicyAdvice]:
    """The data has what the policy declares, and what is declared unique is. Remarks on what is not counted."""
    from tacit.curator import coverage
    from tacit.curator.resources import open_engine
    from tacit.curator.source_report import list_source_remarks
    from tacit.curator.tables import check_join_columns

    with show_progress() as tell:
        engine = open_engine(policy, progress=lambda what, share: tell(share, what))
    try:
        check_join_columns(policy, engine)
        return [*list_source_remarks(policy, engine), *coverage.list_coverage_remarks(policy, engine)]
    finally:
        engine.close()
