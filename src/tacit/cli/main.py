"""The command `tacit`.

Exit codes: 0 answered; 1 failed; 2 a wrong option or parameter; 3 refused; 4 the policy; 5 the data; 6 the ledger;
7 a claim of privacy was refuted.
TACIT_LOG names a file for the owner's log.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tacit import __version__
from tacit.cli import analysts, audit, ledger, survey, tables, usage
from tacit.cli.attack import attack
from tacit.cli.check import check
from tacit.cli.init import init
from tacit.cli.options import (
    DEFAULT_POLICY,
    AnalystOption,
    ConfidenceOption,
    DialectOption,
    EpsilonOption,
    JsonOption,
    PolicyOption,
    RequestOption,
    SqlArgument,
    WithinOption,
    complete_analyst,
)
from tacit.cli.output import check_plot_path, describe_error, print_json, show_progress
from tacit.cli.prepare import prepare
from tacit.cli.profile import profile
from tacit.cli.serve import serve
from tacit.errors import ErrorCode, LedgerError, ParameterError, Refused, TacitError
from tacit.statuses import STATUSES
from tacit.terminal import several_lines

if TYPE_CHECKING:
    from tacit.answers.data_profile import DataProfile
    from tacit.curator.curator import Analyst
    from tacit.plan.explain import Explanation
    from tacit.plan.question import Question
    from tacit.policy.model import Policy

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
app.add_typer(tables.app, name="tables")
app.command()(init)
app.command()(check)
app.command()(attack)
app.command()(prepare)
app.command()(profile)
app.command()(serve)


def main() -> None:
    """Run the command; an error of Tacit's own becomes a message and an exit code."""
    log = os.environ.get("TACIT_LOG")
    if log:  # the owner's log, which may name the cause of a failure
        from tacit.serve.log_redaction import OwnerFile

        logging.basicConfig(handlers=[OwnerFile(log)], format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        sys.exit(app(prog_name="tacit", standalone_mode=False) or 0)
    except TacitError as error:
        _exit_with_error(error)
    except usage.UsageError as error:
        if not usage.is_help(error):
            _exit_with_error(usage.to_tacit_error(error), 2)
        if str(error).strip():  # where it is not printed already
            typer.echo(str(error), err=True)
        sys.exit(2)
    except typer.Abort:
        typer.echo("Stopped; nothing was done.", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def _exit_with_error(error: TacitError, code: int | None = None) -> NoReturn:
    if "--json" in sys.argv:
        print_json({"error": describe_error(error)})
    else:
        typer.secho(several_lines(str(error)), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    refused = isinstance(error, Refused)  # with the code of a parameter too, where it depends on the question
    sys.exit(code or (STATUSES[ErrorCode.UNSUPPORTED] if refused else STATUSES[error.code]).exit)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
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

    from tacit.cli.show import show_tour

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.glob("clinic.ledger*")):
            raise ParameterError(
                "keep", f"{keep} holds a clinic whose budget is spent already", fix="name a new folder"
            )
        show_tour(keep, pause)
        typer.echo(
            f'Go on with it: tacit ask -p {keep / "clinic.toml"} --as ben "SELECT COUNT(*) FROM visits" --epsilon 0.5'
        )
        return
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        show_tour(Path(folder), pause)


@app.command()
def schema(policy: PolicyOption = DEFAULT_POLICY, as_json: JsonOption = False) -> None:
    """Show what may be asked about: tables, columns, bounds and keys."""
    from tacit.curator.views import Schema
    from tacit.policy.load import load

    loaded = load(policy)
    view = Schema(loaded, _read_profile(loaded))
    if as_json:
        print_json(view.to_dict())
    else:
        typer.echo(str(view))


def _read_profile(policy: Policy) -> DataProfile | None:
    """The profile that was released last; None where there is none, or the ledger cannot be read."""
    from tacit.curator.profile import find_profile
    from tacit.ledger.reader import LedgerReader

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return None
    try:
        with LedgerReader(books.store, wait=5.0) as history:
            return find_profile(history)
    except LedgerError:
        return None


@app.command()
def explain(
    question: SqlArgument,
    analyst: AnalystOption,
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    confidence: ConfidenceOption = 0.95,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a question would cost and how accurate it would be. Free; no data is touched."""
    from tacit.plan.question import Question
    from tacit.policy.load import load

    loaded = load(policy)
    if loaded.analyst(analyst) is None:
        raise Refused(
            ErrorCode.UNKNOWN_ANALYST, f"there is no analyst {analyst!r}", fix="ask the owner to add you to the policy"
        )
    asked = Question(_read_question(question), epsilon, _parse_within(within, epsilon), confidence, dialect=dialect)
    found = _explain_question(asked, analyst, loaded)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))


def _explain_question(question: Question, analyst: str, policy: Policy) -> Explanation:
    """The explanation with whether asking would be refused; a ledger that cannot be read is a note."""
    from dataclasses import replace

    from tacit.curator.admission import find_refusal, read_standings
    from tacit.curator.resources import budget_limits
    from tacit.ledger.reader import LedgerReader
    from tacit.plan.explain import explain
    from tacit.plan.planner import Planner

    def explain_with(history: LedgerReader | None) -> Explanation:
        plan = Planner(policy, knows_only=None if history is None else history.knows_only).plan(question, analyst)
        found = explain(plan, policy.asked_by(analyst), question.level)
        return found.refused_by(
            find_refusal(
                plan, analyst, *read_standings(budget_limits(policy), analyst, history), history, policy.live_tables
            )
        )

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return explain_with(None)
    try:
        with LedgerReader(books.store, wait=5.0) as history:
            return explain_with(history)
    except LedgerError as error:
        plan = Planner(policy).plan(question, analyst)
        found = explain(plan, policy.asked_by(analyst), question.level)
        note = f"The ledger was not read, so whether this fits into what is left is not known: {error.what}."
        return replace(found, notes=(*found.notes, note))


@app.command()
def ask(
    question: SqlArgument,
    analyst: AnalystOption,
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    confidence: ConfidenceOption = 0.95,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
    chart: Annotated[bool, typer.Option("--chart", help="Draw the first number with its error bars.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Save the same as a picture: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    request: RequestOption = "",
) -> None:
    """Ask a question and pay for it; the same question again is free."""
    widths = _parse_within(within, epsilon)
    if plot is not None:
        check_plot_path(plot)
    with _open_analyst(policy, analyst) as ada:
        answer = ada.ask(
            _read_question(question),
            epsilon=epsilon,
            within=widths,
            confidence=confidence,
            request=request,
            dialect=dialect,
        )
    # What is paid for is shown first: an answer may have nothing to draw.
    typer.echo(answer.to_json(indent=2) if as_json else str(answer))
    if chart and not as_json:
        from shutil import get_terminal_size

        typer.echo("\n" + answer.chart(width=min(100, get_terminal_size().columns)))
    if plot is not None:
        answer.plot(plot)


@app.command()
def budget(
    analyst: Annotated[
        str,
        typer.Option(
            "--as", help="One analyst's; without it, everyone's.", metavar="NAME", autocompletion=complete_analyst
        ),
    ] = "",
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
) -> None:
    """Show what is spent and what is left: of one analyst's budget, or, for the owner, of all."""
    from tacit.curator import curator
    from tacit.curator.views import AllBudgets

    with show_progress() as tell:
        opened = curator.open(policy, progress=lambda what, share: tell(share, what))
    with opened:
        found = opened.analyst(analyst).budget if analyst else AllBudgets.of(opened.policy, opened.ledger)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))


@contextmanager
def _open_analyst(policy: Path, analyst: str) -> Iterator[Analyst]:
    """An analyst of a curator that is open for as long as the block lasts."""
    from tacit.curator import curator

    with show_progress() as tell:
        opened = curator.open(policy, progress=lambda what, share: tell(share, what))
    with opened:
        yield opened.analyst(analyst)


def _parse_within(within: list[str] | None, epsilon: float | None) -> dict[str, float] | None:
    """Each COLUMN=WIDTH as a pair; None where an epsilon is given instead."""
    if bool(within) == (epsilon is not None):
        what = "give either --epsilon or --within"
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


def _read_question(question: str) -> str:
    return sys.stdin.read() if question == "-" else question


if __name__ == "__main__":
    main()
