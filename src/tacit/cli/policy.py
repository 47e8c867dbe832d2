"""`tacit init` and `tacit check`: begin a policy, and see what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import DEFAULT, JsonOption, PolicyOption
from tacit.cli.output import print_json
from tacit.errors import Code, DataError, LedgerError, ParameterError

if TYPE_CHECKING:
    from tacit.policy.check import Remark
    from tacit.policy.model import Policy
    from tacit.policy.promise import Spent


def init(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A .duckdb, .parquet or .csv file, a folder of these, or postgresql://host/database.",
            metavar="SOURCE",
        ),
    ] = None,
    policy: PolicyOption = DEFAULT,
) -> None:
    """Write a starter policy, from the names and types of a source. Rows are read of CSV only, which has no types."""
    from tacit.policy.model import is_database
    from tacit.policy.template import template

    if policy.exists():
        raise ParameterError("policy", f"{policy} exists already", fix="name another file with --policy")
    tables: dict[str, Any] = {}
    if source is not None:
        named = _columns(source)
        tables = {name: [(c, kind) for c, kind in found if kind is not None] for name, found in named.items()}
        source = source if is_database(source) else _relative(Path(source), policy)
    policy.write_text(template(source, tables), encoding="utf-8")
    todo = 'Fill in each "?"' if tables else "It is an example: put your own tables and columns in"
    typer.echo(f"Wrote {policy}. {todo}, then: tacit check -p {policy}")


def _columns(source: str) -> dict[str, list[tuple[str, Any]]]:
    """The tables of a source, and their columns with the types to declare."""
    from tacit.engines import duckdb
    from tacit.policy.model import is_database

    if not is_database(source):
        if not Path(source).exists():
            raise DataError(Code.DATA, f"there is no {source}", fix="name a file or folder that is there")
        return duckdb.columns_of(Path(source))
    from tacit.engines import postgres

    return postgres.columns_of(source)


def _relative(source: Path, policy: Path) -> str:
    """The source as the policy will name it: relative to its folder where it lies below, else in full."""
    try:
        return str(source.resolve().relative_to(policy.resolve().parent))
    except ValueError:
        return str(source.resolve())


def check(
    policy: PolicyOption = DEFAULT,
    as_json: JsonOption = False,
    for_editors: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of policies, for editors, and check nothing.")
    ] = False,
) -> None:
    """Check a policy and the data it points at; say what it promises."""
    from tacit.policy.check import remarks
    from tacit.policy.load import load
    from tacit.policy.promise import overspent, promise

    if for_editors:
        from tacit.policy.schema import schema

        print_json(schema())
        return
    loaded = load(policy)
    cut = [] if loaded.source is None else _check_data(loaded)
    spent, unread = _spent(loaded)
    found = (*unread, *(() if spent is None else overspent(loaded, spent)), *remarks(loaded), *cut)
    promised = promise(loaded, spent)
    if as_json:
        print_json({"promise": promised, "remarks": [{"at": r.path, "text": r.text} for r in found]})
        return
    typer.echo(f"{policy.name} is in order{'' if loaded.source is None else ', and the data is as declared'}.")
    typer.echo(promised)
    for remark in found:
        typer.echo(f"· {remark.path}: {remark.text}")


def _spent(policy: Policy) -> tuple[Spent | None, list[Remark]]:
    """What the policy's ledger has charged. None where there is none yet; and a remark where it cannot be read."""
    from tacit.curator.view import spent_of
    from tacit.ledger.history import History
    from tacit.policy.check import Remark

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return None, []
    try:
        with History(books.store, wait=5.0) as history:
            return spent_of(policy, history), []
    except LedgerError as error:
        return None, [Remark("ledger.store", f"was not read, so what is spent is not known: {error.what}")]


def _check_data(policy: Policy) -> list[Remark]:
    """The data has what the policy declares, and what is declared unique is. Remarks on what the caps leave out."""
    from tacit.curator import cut
    from tacit.curator.curator import check_links, engine_of

    engine = engine_of(policy)
    try:
        check_links(policy, engine)
        return list(cut.remarks(policy, engine))
    finally:
        engine.close()
