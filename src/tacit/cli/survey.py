"""`tacit survey`: ask sensitive questions under local differential privacy."""

from __future__ import annotations

import os
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import ConfidenceOption, JsonOption
from tacit.cli.output import check_plot_path, check_writable, print_json, unwritable_file
from tacit.errors import ParameterError, Refused
from tacit.terminal import one_line

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey

app = typer.Typer(
    help="Surveys under local differential privacy: write one, check it, answer it, collect, report.",
    no_args_is_help=True,
)

SurveyFile = Annotated[Path, typer.Argument(help="The survey's TOML file.", metavar="SURVEY")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="The file of collected reports. Default: beside the survey, ending in .reports."),
]
_TRUNCATED = "The last line of {} is incomplete: {}. It was not acknowledged, and is left out."


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.", metavar="[FILE]")] = Path("survey.toml"),
) -> None:
    """Write a starter survey with a question of each kind."""
    from tacit.local.survey.load import load_survey
    from tacit.local.survey.template import TEMPLATE
    from tacit.local.survey.words import epsilon_text

    _write_new("survey", file, TEMPLATE)
    survey = load_survey(file)
    total = epsilon_text(survey.total.epsilon)
    typer.echo(f"Wrote {file}: {len(survey.questions)} questions, epsilon {total} in all.")
    typer.echo(f"Change it, then see what it reveals: tacit survey check {file} --people 200")
    typer.echo(f"Answer it: tacit survey respond {file}. Put it on a page: tacit survey collect {file} --serve")


@app.command()
def check(
    file: SurveyFile,
    people: Annotated[
        int | None, typer.Option("--people", help="How many people you expect to answer.", min=1, max=10**9)
    ] = None,
    store: StoreOption = None,
    confidence: ConfidenceOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Show what a survey reveals before it is published: about each respondent, and about all of them."""
    from shutil import get_terminal_size

    from tacit.local.survey import outlook
    from tacit.local.survey.load import load_survey
    from tacit.local.survey.rounding import double_above

    survey = load_survey(file)
    found = outlook.forecast_survey(survey, people, confidence)
    warnings = [*outlook.warn_design(survey, found), *_warn_of_change(survey, _default_store(file, store))]
    if as_json:
        about = {"survey": survey.id, "title": survey.title, "digest": survey.digest, "epsilon": survey.epsilon}
        odds = double_above(survey.odds)
        level = {
            "odds": odds if isfinite(odds) else None,
            "people": people,
            "confidence": confidence,
            "doubts": warnings,
        }
        print_json({**about, **level, "questions": [each.to_dict() for each in found]})
        return
    width = min(100, max(60, get_terminal_size().columns))
    typer.echo(outlook.render_forecast(survey, found, width))
    if warnings:
        from textwrap import fill

        typer.echo("\nWarnings:")
        for each in warnings:
            typer.echo(fill(each, width, initial_indent="· ", subsequent_indent="  "))


@app.command()
def respond(
    source: Annotated[
        str,
        typer.Argument(help="The survey's TOML file, its form (.json), or a collector's address.", metavar="SURVEY"),
    ],
    answers: Annotated[
        Path | None, typer.Option("--answers", help="A TOML file with an answer under each name.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the report here, not to standard output.", metavar="FILE")
    ] = None,
    memo: Annotated[
        Path | None,
        typer.Option("--memo", help="The file that stores your reports, for the next time.", metavar="FILE"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send it to the collector without asking.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Answer though you answered another edition of it: both epsilons add up.")
    ] = False,
    at_most: Annotated[
        float | None,
        typer.Option(
            "--at-most",
            help="Refuse where the epsilons of all your reports to this survey and its editions add up to more.",
            metavar="EPSILON",
            min=0,
        ),
    ] = None,
    trust: Annotated[
        Path | None, typer.Option("--trust", help="The collector's certificate in PEM, if self-made.", metavar="FILE")
    ] = None,
) -> None:
    """Answer a survey: the answers are randomized here, and only the randomized ones are written or sent.

    They are randomized once. Answering again gives the same report, whatever is answered: it reveals nothing more.
    """
    from tacit.arithmetic import to_rational
    from tacit.cli import survey_ask, survey_memo, survey_send
    from tacit.local.survey.load import load_public_form, load_survey
    from tacit.sampling.bits import SystemBits

    if out is not None:
        _check_new("out", out)
    address = source if source.startswith(("http://", "https://")) else ""
    collector = survey_send.parse_origin(address) if address else ""
    limit = None if at_most is None else to_rational("at-most", at_most)
    survey = load_public_form(survey_send.fetch_form(address, trust)) if address else load_survey(Path(source))
    earlier = survey_memo.load_responses(memo, survey)
    report = survey_memo.find_report(earlier, survey)
    cost = survey_memo.check_total_epsilon(earlier, survey, collector, again=again, at_most=limit)
    if report is not None:
        survey_ask.print_to_stderr("You have answered this survey before: the same report is sent again.", *cost)
    else:
        survey_ask.show_introduction(survey)
        survey_ask.print_to_stderr(*cost)
        if answers is not None:
            truths = survey.read(survey_ask.read_answers(answers))
            survey_ask.show_probabilities(survey)
        else:
            truths = survey_ask.ask_questions(survey)
        report = survey.respond(truths, SystemBits())
        # before anyone sees it: answers are randomized once
        survey_memo.save_response(memo, survey, report, collector, again=again, at_most=limit)
    survey_ask.show_report(survey, report)
    if out is not None:
        _write_new("out", out, report.to_json() + "\n")
        survey_ask.print_to_stderr(f"Wrote {out}.")
    elif address:
        if yes or survey_ask.confirm("Send this?"):
            typer.echo(survey_send.send_report(address, report.to_json(), trust))
    else:
        typer.echo(report.to_json())


@app.command()
def collect(
    file: SurveyFile,
    reports: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files with a report on each line, or another collector's store; - is standard input.",
            metavar="[REPORTS]...",
        ),
    ] = None,
    store: StoreOption = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the survey's page, until Ctrl-C.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free port.", min=0, max=65535)] = 8090,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate in PEM, with its chain.", metavar="FILE")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.", metavar="FILE")] = None,
    tls_self: Annotated[bool, typer.Option("--tls-self", help="Make a certificate, beside the survey.")] = False,
    behind_proxy: Annotated[
        bool, typer.Option("--insecure-behind-proxy", help="Accept plain connections: a proxy in front terminates TLS.")
    ] = False,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", help="Trust this proxy's X-Forwarded-For. Default: one on this machine.", metavar="ADDRESS"
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Accepted reports per second from one address.", min=0.001)] = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Collect reports from files, or from a page that it serves. Malformed ones are left out, and an id counts once."""
    from tacit.cli.survey_take import collect_files, format_report_count
    from tacit.local.survey.load import load_survey
    from tacit.local.survey.store import ReportStore

    if serve == bool(reports):
        what = "needs files of reports, or --serve for a page, not both"
        raise ParameterError("reports", what, fix=f"tacit survey collect {file} --serve")
    if proxy and not behind_proxy:
        what = "is only used with --insecure-behind-proxy"
        raise ParameterError("proxy", what, fix="add --insecure-behind-proxy, or leave out --proxy")
    survey = load_survey(file)
    _print_warnings(survey)
    with ReportStore(_default_store(file, store), survey) as opened:
        if opened.is_truncated:
            typer.echo(
                _TRUNCATED.format(_default_store(file, store).name, "a collector stopped while it wrote"), err=True
            )
        if not serve:
            collect_files(opened, reports or [], as_json)
            return
        import asyncio

        from tacit.cli.serve import load_certificate
        from tacit.serve.addresses import networks_of
        from tacit.serve.log_redaction import redact_logs
        from tacit.serve.server import ServerConfig
        from tacit.serve.survey import serve_survey
        from tacit.serve.survey_place import reachable_host
        from tacit.serve.tls import is_loopback

        proxies = networks_of(proxy or ())
        made = load_certificate(file, reachable_host(host), tls_cert, tls_key, tls_self)
        settings = ServerConfig(host=host, http=port, postgres=None, certificate=made, proxied=behind_proxy)

        def ready(address: str) -> None:
            typer.echo(f"{one_line(survey.title)}: {address}")
            if tls_self and made is not None:
                typer.echo(f"Certificate {made.certificate}, SHA-256 {made.fingerprint}")
            if behind_proxy and not proxies and not is_loopback(host):
                note = "a proxy on another machine is not trusted, and all its clients share one rate limit"
                typer.echo(f"Note: {note}. Name it: --proxy ADDRESS", err=True)
            typer.echo(f"{format_report_count(opened)} so far. Stop with Ctrl-C.")

        def show_count(reports: int) -> None:
            if sys.stderr.isatty():  # one line, overwritten
                typer.echo(f"\r{format_report_count(opened)} so far. ", err=True, nl=False)

        redact_logs()
        asyncio.run(serve_survey(opened, settings, ready, rate=rate, on_count=show_count, proxies=proxies))
        typer.echo(f"Stopped with {format_report_count(opened)}: tacit survey report {file}")


@app.command()
def report(
    file: SurveyFile,
    store: StoreOption = None,
    confidence: ConfidenceOption = 0.95,
    chart: Annotated[
        Path | None, typer.Option("--chart", help="Save a chart: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the results: unbiased estimates with intervals, and how far malicious reports can have moved them."""
    from shutil import get_terminal_size

    from tacit.local.survey import draw
    from tacit.local.survey.load import load_survey
    from tacit.local.survey.results import estimate_survey
    from tacit.local.survey.store import read_store

    if chart is not None:
        check_plot_path(chart, "chart")
    survey = load_survey(file)
    _print_warnings(survey)
    stored = read_store(_default_store(file, store), survey)
    if stored.is_truncated:
        why = "it is being written, or a collector stopped while it wrote"
        typer.echo(_TRUNCATED.format(_default_store(file, store).name, why), err=True)
    found = estimate_survey(survey, stored.counts, confidence)
    if as_json:
        about = {"survey": survey.id, "title": survey.title, "digest": survey.digest, "epsilon": survey.epsilon}
        level = {"reports": stored.counts.users, "confidence": float(found[0].confidence)}
        print_json({**about, **level, "questions": [result.to_dict() for result in found]})
    else:
        typer.echo(draw.render_results(survey, found, width=min(100, max(60, get_terminal_size().columns))))
    if chart is not None:
        draw.save_chart(chart, survey, found)


def _print_warnings(survey: Survey) -> None:
    """Print warnings about large epsilons to standard error."""
    from tacit.local.survey.outlook import warn_large_epsilons

    for each in warn_large_epsilons(survey):
        typer.echo(f"Note: {each}", err=True)


def _warn_of_change(survey: Survey, store: Path) -> list[str]:
    """Return a warning about the privacy loss that a change causes to those who have answered."""
    from tacit.local.survey.store import read_store
    from tacit.local.survey.words import epsilon_text

    again = f"whoever answers again loses epsilon {epsilon_text(survey.total.epsilon)} again."
    try:
        users = read_store(store, survey).counts.users
    except Refused as error:
        return [f"{error.what}: {again}"]
    reports = "1 report is" if users == 1 else f"{users:,} reports are"
    return [f"{reports} stored already: after any change they are of another survey, and {again}"] if users else []


def _check_new(name: str, file: Path) -> None:
    """Raise ParameterError where there is such a file already, or none can be written."""
    check_writable(name, file)
    if os.path.lexists(file):
        raise ParameterError(name, f"{file} exists already", fix="name another file")


def _write_new(name: str, file: Path, text: str) -> None:
    """Write a file where none is, whole or not at all; ParameterError where one is, which stays as it is."""
    from tacit.durable_files import make_file

    _check_new(name, file)
    try:
        made = make_file(file, text.encode())
    except OSError as error:
        raise unwritable_file(name, file, error) from error
    if not made:
        raise ParameterError(name, f"{file} exists already", fix="name another file")


def _default_store(file: Path, store: Path | None) -> Path:
    return store or file.with_suffix(".reports")
