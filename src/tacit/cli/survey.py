"""`tacit survey`: ask people what nobody would tell, without ever knowing who said what."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import ConfidenceOption, JsonOption
from tacit.errors import ParameterError, Refused, TacitError

if TYPE_CHECKING:
    from tacit.local.survey.form import Survey
    from tacit.local.survey.reports import Report
    from tacit.local.survey.store import Store

app = typer.Typer(
    help="A survey that is randomized where it is answered: write one, answer it, collect, report.",
    no_args_is_help=True,
)

SurveyFile = Annotated[Path, typer.Argument(help="The survey's TOML file.", metavar="SURVEY")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="Where reports are kept. Default: beside the survey, ending in .reports."),
]
_SHOWN = 10  # bad reports that are told one by one


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.", metavar="[FILE]")] = Path("survey.toml"),
) -> None:
    """Write a starter survey with a question of each kind."""
    from tacit.local.survey.load import load
    from tacit.local.survey.template import TEMPLATE

    if file.exists():
        raise ParameterError("survey", f"{file} exists already", fix="name another file")
    if not file.absolute().parent.is_dir():
        raise ParameterError("survey", f"there is no folder {file.parent}", fix="make it first")
    file.write_text(TEMPLATE, encoding="utf-8")
    survey = load(file)
    typer.echo(f"Wrote {file}: {len(survey.questions)} questions, epsilon {survey.epsilon:.4g} in all.")
    typer.echo(f"Answer it: tacit survey respond {file}. Put it on a page: tacit survey collect {file} --serve")


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
        Path | None, typer.Option("--memo", help="Where what was drawn is kept, for the next time.", metavar="FILE")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send it to the collector without asking.")] = False,
) -> None:
    """Answer a survey: the answers are randomized here, and only what the coins leave is written or sent.

    The coins are tossed once. Answering again gives the same report, whatever is answered: it tells nothing more.
    """
    from tacit.cli import survey_memo, survey_send
    from tacit.local.survey.load import from_form, load
    from tacit.sampling.bits import SystemBits

    address = source if source.startswith(("http://", "https://")) else ""
    survey = from_form(survey_send.form_of(address)) if address else load(Path(source))
    place = memo or survey_memo.place_of(survey)
    report = survey_memo.recall(place, survey)
    if report is not None:
        typer.echo("You have answered this survey before: what was drawn then stays.", err=True)
    else:
        truths = survey.read(_written(answers)) if answers is not None else _asked(survey)
        report = survey.respond(truths, SystemBits())
        survey_memo.keep(place, report)  # before anyone sees it: coins are not tossed until they please
    _show(survey, report)
    if out is not None:
        out.write_text(report.to_json() + "\n", encoding="utf-8")
        typer.echo(f"Wrote {out}.", err=True)
    elif address:
        if yes or typer.confirm("Send this?", err=True):
            typer.echo(survey_send.send(address, report.to_json()))
    else:
        typer.echo(report.to_json())


@app.command()
def collect(
    file: SurveyFile,
    reports: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with a report on each line; - is standard input.", metavar="[REPORTS]..."),
    ] = None,
    store: StoreOption = None,
    served: Annotated[bool, typer.Option("--serve", help="Serve the survey's page, until Ctrl-C.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free port.", min=0, max=65535)] = 8090,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate in PEM, with its chain.", metavar="FILE")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.", metavar="FILE")] = None,
    tls_self: Annotated[bool, typer.Option("--tls-self", help="Make a certificate, beside the survey.")] = False,
    behind_proxy: Annotated[
        bool, typer.Option("--insecure-behind-proxy", help="Accept plain connections: a proxy in front speaks TLS.")
    ] = False,
    rate: Annotated[float, typer.Option(help="Reports a second from one address.", min=0.001)] = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Take reports in: from files, or from a page that it serves. Bad ones are left out, and an id counts once."""
    from tacit.local.survey.load import load
    from tacit.local.survey.store import Store

    if served == bool(reports):
        what = "name files of reports, or --serve a page"
        raise ParameterError("reports", what, fix=f"tacit survey collect {file} --serve")
    survey = load(file)
    with Store(_store_of(file, store), survey) as opened:
        if not served:
            _take(opened, survey, reports or [], as_json)
            return
        import asyncio

        from tacit.cli.serve import certificate_of
        from tacit.serve.logs import discreet
        from tacit.serve.server import Settings
        from tacit.serve.survey import serve

        made = certificate_of(file, host, tls_cert, tls_key, tls_self)
        settings = Settings(host=host, http=port, postgres=None, certificate=made, proxied=behind_proxy)

        def ready(address: str) -> None:
            typer.echo(f"{survey.title}: {address}")
            typer.echo(f"{_reports(opened)} so far. Stop with Ctrl-C.")

        discreet()
        asyncio.run(serve(opened, settings, ready, rate=rate))
        typer.echo(f"Stopped with {_reports(opened)}: tacit survey report {file}")


@app.command()
def report(
    file: SurveyFile,
    store: StoreOption = None,
    confidence: ConfidenceOption = 0.95,
    chart: Annotated[
        Path | None, typer.Option("--chart", help="Save a picture of it: .svg, .png or .pdf.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the reports tell: unbiased estimates with intervals, and what made-up reports could have done."""
    from shutil import get_terminal_size

    from tacit.local.survey import draw
    from tacit.local.survey.load import load
    from tacit.local.survey.results import results
    from tacit.local.survey.store import read

    if chart is not None:
        _check_chart(chart)
    survey = load(file)
    kept = read(_store_of(file, store), survey)
    found = results(survey, kept.counts, confidence)
    if as_json:
        about = {"survey": survey.id, "title": survey.title, "digest": survey.digest, "epsilon": survey.epsilon}
        level = {"reports": kept.counts.users, "confidence": float(found[0].confidence)}
        _print({**about, **level, "questions": [result.to_dict() for result in found]})
    else:
        typer.echo(draw.text(survey, found, width=min(100, max(60, get_terminal_size().columns))))
    if chart is not None:
        draw.save(chart, survey, found)


def _take(store: Store, survey: Survey, paths: list[Path], as_json: bool) -> None:
    """The reports of files, a line each. The good ones of a file are taken with one sync."""
    taken, again, bad = 0, 0, []
    for path in paths:
        good = []
        for number, line in enumerate(_lines(path), start=1):
            if line.strip():
                try:
                    good.append(survey.accept(line.strip()))
                except Refused as error:
                    bad.append({"file": str(path), "line": number, "code": str(error.code), "what": error.what})
        fresh = store.add(good)
        taken, again = taken + sum(fresh), again + len(fresh) - sum(fresh)
    if as_json:
        _print({"taken": taken, "replayed": again, "bad": bad, "reports": store.counts.users})
        return
    typer.echo(f"Taken {taken:,}, there already {again:,}, bad {len(bad):,}; {_reports(store)} in all.")
    for each in bad[:_SHOWN]:
        typer.echo(f"· {each['file']}, line {each['line']} [{each['code']}]: {each['what']}")
    if len(bad) > _SHOWN:
        typer.echo(f"· and {len(bad) - _SHOWN:,} more")


def _reports(store: Store) -> str:
    return "1 report" if store.counts.users == 1 else f"{store.counts.users:,} reports"


def _lines(path: Path) -> list[str]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ParameterError("reports", f"{path} cannot be read", fix="name files of reports") from error
    return text.split("\n")


def _written(path: Path) -> dict[str, Any]:
    """The answers of a TOML file. No error shows one."""
    import tomllib
    from decimal import Decimal

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, ValueError) as error:
        what = f"{path.name} cannot be read as TOML"
        raise ParameterError("answers", what, fix='a line for each question: cheated = "no"') from error


def _asked(survey: Survey) -> list[Any]:
    """The answers of someone at the terminal, who is told the chances first."""
    from tacit.local.survey.numbers import Number
    from tacit.local.survey.words import chances, ends, surer, surer_of_all

    typer.echo(f"{survey.title}\n{survey.about}\n{surer_of_all(survey.odds)}", err=True)
    truths = []
    for question in survey.questions:
        typer.echo(f"\n{question.text}", err=True)
        typer.echo(f"  {chances(question)} {surer(question.price.odds)}", err=True)
        if isinstance(question, Number):
            typer.echo(f"  From {' to '.join(ends(question))}.", err=True)
        else:
            for number, option in enumerate(question.cells, start=1):
                typer.echo(f"  {number}  {option}", err=True)
        hint = {"several": "Numbers, between commas", "number": "A number", "yes-no": "yes or no"}
        while True:
            given = typer.prompt(f"  {hint.get(question.kind, 'A number')}", default="", show_default=False, err=True)
            try:
                truths.append(question.read(given))
                break
            except TacitError as error:
                typer.echo(f"  {error.what}", err=True)
    return truths


def _show(survey: Survey, report: Report) -> None:
    """What goes out, in words, to whoever sends it."""
    from tacit.local.survey.words import says, surer_of_all

    typer.echo("What the coins left, and all that is sent:", err=True)
    for question, sent in zip(survey.questions, report.answers, strict=True):
        typer.echo(f"  {question.name}: {says(question, sent)}", err=True)
    typer.echo(surer_of_all(survey.odds), err=True)


def _store_of(file: Path, store: Path | None) -> Path:
    return store or file.with_suffix(".reports")


def _check_chart(file: Path) -> None:
    from importlib.util import find_spec

    if file.suffix.lower() not in {".svg", ".png", ".pdf"}:
        raise ParameterError("chart", f"{file.name} is no picture's name", fix="end it in .svg, .png or .pdf")
    if not file.absolute().parent.is_dir():
        raise ParameterError("chart", f"there is no folder {file.parent}", fix="make it first")
    if find_spec("matplotlib") is None:
        raise ParameterError("chart", "pictures need matplotlib", fix="pip install 'tacit[plot]'")


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
