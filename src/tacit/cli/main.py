"""The command `tacit`.

Exit codes: 0 answered; 1 failed; 2 a wrong option or parameter; 3 refused; 4 the policy; 5 the data; 6 the ledger;
7 a claim of privacy was refuted.
TACIT_LOG names a file for the owner's log.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tacit import __version__
from tacit.cli import analysts, audit, ledger, survey
from tacit.cli.attack import attack
from tacit.cli.options import (
    DEFAULT,
    ConfidenceOption,
    EpsilonOption,
    JsonOption,
    PolicyOption,
    Question,
    RequestOption,
    WhoOption,
    WithinOption,
)
from tacit.cli.output import check_plot
from tacit.cli.prepare import prepare
from tacit.cli.serve import serve
from tacit.errors import DataError, LedgerError, ParameterError, PolicyError, Refused, TacitError

if TYPE_CHECKING:
    from tacit.curator.curator import Analyst
    from tacit.policy.model import Policy

_EXITS: tuple[tuple[type[TacitError], int], ...] = (
    (ParameterError, 2),
    (Refused, 3),
    (PolicyError, 4),
    (DataError, 5),
    (LedgerError, 6),
)

app = typer.Typer(
    name="tacit",
    help="Private answers to ordinary SQL. Start with: tacit demo",
    epilog="Exit codes: 0 answered, 1 failed, 2 wrong option, 3 refused, 4 policy, 5 data, 6 ledger, 7 claim refuted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.add_typer(analysts.app, name="analyst")
app.add_typer(survey.app, name="survey")
app.command()(attack)
app.command()(prepare)
app.command()(serve)


def main() -> None:
    """Run the command; an error of Tacit's own becomes a message and an exit code."""
    log = os.environ.get("TACIT_LOG")
    if log:  # the owner's log, which may name the cause of a failure
        logging.basicConfig(filename=log, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        app()
    except TacitError as error:
        _stop(error)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def _stop(error: TacitError) -> NoReturn:
    if "--json" in sys.argv:
        place = (
            None if error.at is None else {"line": error.at.line, "column": error.at.column, "length": error.at.length}
        )
        _print_json({"error": {"code": str(error.code), "what": error.what, "at": place, "fix": error.fix}})
    else:
        typer.secho(str(error), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    sys.exit(next((code for kind, code in _EXITS if isinstance(error, kind)), 1))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Private answers to ordinary SQL."""


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Keep the clinic in this folder, to go on with it.", metavar="FOLDER")
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Wait for Enter between the steps.")] = False,
    served: Annotated[
        bool, typer.Option("--serve", help="Serve the clinic instead: a web page, and PostgreSQL.")
    ] = False,
) -> None:
    """Walk through Tacit on a bundled clinic, in half a minute."""
    import tempfile

    if served:
        from tacit.serve.demo import serve_clinic

        with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
            serve_clinic(keep or Path(folder), typer.echo)
        return

    from tacit.cli.show import show_walk

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.glob("clinic.ledger*")):
            raise ParameterError(
                "keep", f"{keep} holds a clinic whose budget is spent already", fix="name a new folder"
            )
        show_walk(keep, pause)
        typer.echo(
            f'Go on with it: tacit ask -p {keep / "clinic.toml"} --as ben "SELECT COUNT(*) FROM visits" --epsilon 0.5'
        )
        return
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        show_walk(Path(folder), pause)


@app.command()
def init(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A .duckdb, .parquet or .csv file, a folder of these, or postgresql://host/database.",
            metavar="[SOURCE]",
        ),
    ] = None,
    policy: PolicyOption = DEFAULT,
) -> None:
    """Write a starter policy, from the names and types of a source; no row is read."""
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
    typer.echo(f"Wrote {policy}. Fill in what is marked, then: tacit check -p {policy}")


def _columns(source: str) -> dict[str, list[tuple[str, Any]]]:
    """The tables of a source, and their columns with the types to declare."""
    from tacit.engines import duckdb
    from tacit.policy.model import is_database

    if not is_database(source):
        return duckdb.columns_of(Path(source))
    from tacit.engines import postgres

    return postgres.columns_of(source)


def _relative(source: Path, policy: Path) -> str:
    """The source as the policy will name it: relative to its folder where it lies below, else in full."""
    try:
        return str(source.resolve().relative_to(policy.resolve().parent))
    except ValueError:
        return str(source.resolve())


@app.command()
def check(
    policy: PolicyOption = DEFAULT,
    as_json: JsonOption = False,
    for_editors: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of policies, for editors, and check nothing.")
    ] = False,
) -> None:
    """Check a policy and the data it points at; say what it promises."""
    from tacit.policy.check import promise, remarks
    from tacit.policy.load import load

    if for_editors:
        from tacit.policy.schema import schema

        _print_json(schema())
        return
    loaded = load(policy)
    if loaded.source is not None:
        _check_data(loaded)
    found = remarks(loaded)
    if as_json:
        _print_json({"promise": promise(loaded), "remarks": [{"at": r.path, "text": r.text} for r in found]})
        return
    typer.echo(f"{policy.name} is in order{'' if loaded.source is None else ', and the data is as declared'}.")
    typer.echo(promise(loaded))
    for remark in found:
        typer.echo(f"· {remark.path}: {remark.text}")


def _check_data(policy: Policy) -> None:
    """The data has what the policy declares, and what is declared unique is."""
    from tacit.curator.curator import check_links, engine_of

    engine = engine_of(policy)
    try:
        check_links(policy, engine)
    finally:
        engine.close()


@app.command()
def schema(policy: PolicyOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Show what may be asked about: tables, columns, bounds and keys."""
    from tacit.curator.view import Schema
    from tacit.policy.load import load

    view = Schema(load(policy))
    if as_json:
        _print_json(view.to_dict())
    else:
        typer.echo(str(view))


@app.command()
def explain(
    question: Question,
    who: WhoOption,
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT,
    confidence: ConfidenceOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Say what a question would cost and how accurate it would be. Free; no data is touched."""
    from tacit.arithmetic import rational
    from tacit.errors import Code
    from tacit.plan import explain as explaining
    from tacit.plan.accuracy import Price
    from tacit.policy.load import load
    from tacit.query.sql import parse

    loaded = load(policy)
    if loaded.analyst(who) is None:
        raise Refused(
            Code.UNKNOWN_ANALYST, f"there is no analyst {who!r}", fix="ask the owner to add you to the policy"
        )
    level = rational("confidence", confidence)
    plan = Price(epsilon, _widths(within, epsilon)).plan(parse(_read(question)), loaded, level)
    found = explaining.explain(plan, loaded, level)
    if as_json:
        _print_json(found.to_dict())
    else:
        typer.echo(str(found))


@app.command()
def ask(
    question: Question,
    who: WhoOption,
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT,
    confidence: ConfidenceOption = 0.95,
    as_json: JsonOption = False,
    chart: Annotated[bool, typer.Option("--chart", help="Draw the first number with its error bars.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save the same as a picture: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    request: RequestOption = "",
) -> None:
    """Ask a question and pay for it; the same question again is free."""
    widths = _widths(within, epsilon)
    if plot is not None:
        check_plot(plot)
    with _analyst(policy, who) as ada:
        answer = ada.ask(_read(question), epsilon=epsilon, within=widths, confidence=confidence, request=request)
    # What is paid for is shown first: an answer may have nothing to draw.
    typer.echo(answer.to_json(indent=2) if as_json else str(answer))
    if chart and not as_json:
        from shutil import get_terminal_size

        typer.echo("\n" + answer.chart(width=min(100, get_terminal_size().columns)))
    if plot is not None:
        answer.plot(plot)


@app.command()
def budget(who: WhoOption, policy: PolicyOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Show what is spent and what is left."""
    with _analyst(policy, who) as ada:
        found = ada.budget
    if as_json:
        _print_json(found.to_dict())
    else:
        typer.echo(str(found))


@contextmanager
def _analyst(policy: Path, who: str) -> Iterator[Analyst]:
    """An analyst of a curator that is open for as long as the block lasts."""
    from tacit.curator import curator

    with curator.open(policy) as opened:
        yield opened.analyst(who)


def _widths(within: list[str] | None, epsilon: float | None) -> dict[str, float] | None:
    """Each COLUMN=WIDTH as a pair; None where the price is an epsilon instead."""
    if bool(within) == (epsilon is not None):
        what = "name the price once: by --epsilon or by --within"
        raise ParameterError("epsilon", what, fix="--epsilon 0.5, or --within n=50")
    widths: dict[str, float] = {}
    for item in within or ():
        name, _, width = item.rpartition("=")
        try:
            number = float(width)
        except ValueError:
            number = None
        if not name or number is None or name in widths:
            what = f"{name} is there twice" if name in widths else f"{item!r} is no COLUMN=WIDTH"
            raise ParameterError("within", what, fix="--within n=50 --within total=1000")
        widths[name] = number
    return widths or None


def _read(question: str) -> str:
    return sys.stdin.read() if question == "-" else question


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
