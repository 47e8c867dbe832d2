"""The commands of analysts: schema, explain, ask and budget, of a policy file or of a served curator."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tacit.cli.options import (
    DEFAULT_POLICY,
    AnalystOption,
    CertificateOption,
    ConfidenceOption,
    DialectOption,
    EpsilonOption,
    JsonOption,
    PolicyOption,
    RequestOption,
    ServerOption,
    SqlArgument,
    WithinOption,
    complete_analyst,
)
from tacit.cli.output import check_plot_path, print_json, show_progress
from tacit.errors import ErrorCode, LedgerError, ParameterError, Refused, TacitError

if TYPE_CHECKING:
    from tacit.analyst import Analyst
    from tacit.answers.data_profile import DataProfile
    from tacit.answers.explanation import Explanation
    from tacit.client.connect import RemoteAnalyst
    from tacit.plan.question import Question
    from tacit.policy.model import Policy


def schema(
    analyst: Annotated[
        str,
        typer.Option(
            "--as",
            help="What this analyst may name; without it, all that the policy declares.",
            metavar="NAME",
            autocompletion=complete_analyst,
        ),
    ] = "",
    policy: PolicyOption = DEFAULT_POLICY,
    server: ServerOption = None,
    cafile: CertificateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what may be asked about: tables, columns, bounds and keys."""
    from tacit.curator.describe_schema import describe_schema
    from tacit.policy.load import load

    if server is not None:
        with _connect(server, cafile, analyst) as far:
            _print(far.schema, as_json)
        return
    loaded = load(policy)
    if analyst:
        _check_is_declared(analyst, loaded)
    _print(describe_schema(loaded.asked_by(analyst), _read_profile(loaded)), as_json)


def _read_profile(policy: Policy) -> DataProfile | None:
    """The profile that was released last; None where there is none, or the ledger cannot be read."""
    from tacit.curator.profile import find_profile
    from tacit.ledger.reader import LedgerReader
    from tacit.ledger.witness import Witness

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return None
    try:
        with LedgerReader(books.store, wait=5.0, witness=Witness(books.witness)) as history:
            return find_profile(history)
    except LedgerError:
        return None


def explain(
    question: SqlArgument,
    analyst: AnalystOption = "",
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    server: ServerOption = None,
    cafile: CertificateOption = None,
    confidence: ConfidenceOption = 0.95,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a question would cost and how accurate it would be. Free; no data is touched."""
    from tacit.plan.question import Question
    from tacit.policy.load import load

    text, widths = _read_question(question), _parse_within(within, epsilon)
    if server is not None:
        with _connect(server, cafile, analyst) as far:
            found = far.explain(text, epsilon=epsilon, within=widths, confidence=confidence, dialect=dialect)
        _print(found, as_json)
        return
    _check_is_named(analyst)
    loaded = load(policy)
    _check_is_declared(analyst, loaded)
    asked = Question(text, epsilon, widths, confidence, dialect=dialect)
    _print(_explain_question(asked, analyst, loaded), as_json)


def _explain_question(question: Question, analyst: str, policy: Policy) -> Explanation:
    """The explanation with whether asking would be refused; a ledger that cannot be read is a note."""
    from dataclasses import replace

    from tacit.curator.admission import find_refusal, find_second_step, read_standings
    from tacit.curator.resources import budget_limits
    from tacit.ledger.reader import LedgerReader
    from tacit.ledger.witness import Witness
    from tacit.plan.explain import explain
    from tacit.plan.planner import KEY_VERSION, Planner

    def explain_with(history: LedgerReader | None) -> Explanation:
        knows_only = None if history is None else history.former_lookup(KEY_VERSION)
        plan = Planner(policy, knows_only=knows_only).plan(question, analyst)
        plan = find_second_step(plan, analyst, history)
        found = explain(plan, policy.asked_by(analyst), question.level)
        return found.refused_by(
            find_refusal(
                plan,
                analyst,
                *read_standings(budget_limits(policy), analyst, history),
                history,
                policy.live_tables,
                policy.asked_by(analyst),
            )
        )

    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return explain_with(None)
    try:
        with LedgerReader(books.store, wait=5.0, witness=Witness(books.witness)) as history:
            return explain_with(history)
    except LedgerError as error:
        plan = Planner(policy).plan(question, analyst)
        found = explain(plan, policy.asked_by(analyst), question.level)
        note = f"The ledger was not read, so whether this fits into what is left is not known: {error.what}."
        return replace(found, notes=(*found.notes, note))


def ask(
    question: SqlArgument,
    analyst: AnalystOption = "",
    epsilon: EpsilonOption = None,
    within: WithinOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    server: ServerOption = None,
    cafile: CertificateOption = None,
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
    with _open_analyst(policy, analyst) if server is None else _connect(server, cafile, analyst) as ada:
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


def budget(
    analyst: Annotated[
        str,
        typer.Option(
            "--as", help="One analyst's; without it, everyone's.", metavar="NAME", autocompletion=complete_analyst
        ),
    ] = "",
    policy: PolicyOption = DEFAULT_POLICY,
    server: ServerOption = None,
    cafile: CertificateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is spent and what is left: of one analyst's budget, or, for the owner, of all."""
    from tacit.curator import curator
    from tacit.curator.all_budgets import AllBudgets

    if server is not None:
        with _connect(server, cafile, analyst) as far:
            _print(far.budget, as_json)
        return
    with show_progress() as tell:
        opened = curator.open(policy, progress=lambda what, share: tell(share, what))
    with opened:
        found = opened.analyst(analyst).budget if analyst else AllBudgets.of(opened.policy, opened.ledger)
    _print(found, as_json)


class _View(Protocol):
    """What has a form for people, and one for programs."""

    def to_dict(self) -> dict[str, Any]: ...


def _print(found: _View, as_json: bool) -> None:
    """Print what was found, in words or as JSON."""
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))


def _connect(server: str, cafile: Path | None, analyst: str = "") -> RemoteAnalyst:
    """The analyst whose key is in TACIT_KEY, at a served curator."""
    from tacit.client.connect import connect

    if analyst:
        raise ParameterError("as", "the key says who asks at a server", fix="leave --as out")
    if not os.environ.get("TACIT_KEY"):
        raise ParameterError("TACIT_KEY", "is not set; it holds your key", fix="export TACIT_KEY=tacit_...")
    return connect(server, cafile=cafile)


def _check_is_named(analyst: str) -> None:
    if not analyst:
        fix = "--as NAME: the analyst who asks, as the policy names them; or --server URL"
        raise TacitError(ErrorCode.PARAMETER, "missing option '--as'", fix=fix)


def _check_is_declared(analyst: str, policy: Policy) -> None:
    if policy.analyst(analyst) is None:
        raise Refused(
            ErrorCode.UNKNOWN_ANALYST, f"there is no analyst {analyst!r}", fix="ask the owner to add you to the policy"
        )


@contextmanager
def _open_analyst(policy: Path, analyst: str) -> Iterator[Analyst]:
    """An analyst of a curator that is open for as long as the block lasts."""
    from tacit.curator import curator

    _check_is_named(analyst)
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
            raise ParameterError("within", what, fix=f"--within {shlex.quote(f'{name}=50' if name else 'n=50')}")
        widths[name] = number
    return widths or None


def _read_question(question: str) -> str:
    return sys.stdin.read() if question == "-" else question
