"""The command `tacit`.

Exit codes: 0 answered; 1 failed; 2 a wrong option or parameter; 3 refused; 4 the policy; 5 the data; 6 the ledger;
7 a claim of privacy was refuted; 130 stopped by Ctrl-C.
TACIT_LOG names a file for the owner's log.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb
from typing import Annotated, NoReturn

import typer

from tacit import __version__
from tacit.cli import analysts, audit, ledger, survey, tables, usage
from tacit.cli.anonymity import anonymity
from tacit.cli.attack import attack
from tacit.cli.check import check
from tacit.cli.init import init
from tacit.cli.option_fixes import fix_with_options
from tacit.cli.output import describe_error, print_json
from tacit.cli.prepare import prepare
from tacit.cli.profile import profile
from tacit.cli.questions import ask, budget, explain, schema
from tacit.cli.serve import serve
from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.statuses import STATUSES
from tacit.terminal import one_line, several_lines

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
app.command()(anonymity)
app.command()(prepare)
app.command()(profile)
app.command()(serve)
for command in (schema, explain, ask, budget):
    app.command()(command)


_LOG = "TACIT_LOG"
_AFTER_OUTPUT = {  # by command: what became of an answer that was not shown
    "ask": ["the answer is charged and stored, and asking the same again is free"],
    "profile": ["what was released is charged and stored, and the same again is free"],
    "analyst": ["a key that was not shown is lost: tacit analyst rotate NAME"],
}
_WITHOUT_PANDAS = {"schema", "explain", "ask", "budget"}


class _WithoutPandas:
    """Keeps Arrow from loading pandas, as it does at its first array, and for nothing that these commands do."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Say that there is no pandas; others are looked for further."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def main() -> None:
    """Run the command; an error of Tacit's own, or of the system, becomes a message and an exit code."""
    if sys.argv[1:] and sys.argv[1] in _WITHOUT_PANDAS and "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())
    try:
        _open_log()
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
    except OSError as error:
        if logging.getLogger().handlers:
            logging.getLogger("tacit").error("the command failed", exc_info=error)
        _exit_with_error(_describe_system_error(error))


def _open_log() -> None:
    """Write the owner's log, which may name the cause of a failure, where the environment names a file for it."""
    log = os.environ.get(_LOG)
    if log:
        from tacit.serve.log_redaction import OwnerFile

        logging.basicConfig(handlers=[OwnerFile(log)], format="%(asctime)s %(name)s %(levelname)s %(message)s")


def _exit_with_error(error: TacitError, code: int | None = None) -> NoReturn:
    error = fix_with_options(error, app)
    refused = isinstance(error, Refused)  # with the code of a parameter too, where it depends on the question
    status = code or (STATUSES[ErrorCode.UNSUPPORTED] if refused else STATUSES[error.code]).exit
    with suppress(OSError):  # of an output that nobody can read
        if "--json" in sys.argv:
            print_json({"error": describe_error(error)})
            sys.exit(status)
    _drop_output()
    with suppress(OSError):
        typer.secho(several_lines(str(error)), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    sys.exit(status)


def _describe_system_error(error: OSError) -> TacitError:
    """An error of the system that no command expected: the file and the reason, and what is left to do."""
    reason = one_line(error.strerror or "it failed")
    if any(frame.f_code is typer.echo.__code__ for frame, _ in walk_tb(error.__traceback__)):
        fix = "; ".join(["free some space, or write it elsewhere", *_AFTER_OUTPUT.get(sys.argv[1], ())])
        return TacitError(ErrorCode.FAILED, f"the output cannot be written: {reason}", fix=fix)
    name = error.filename
    file = one_line(os.fsdecode(name)) if isinstance(name, str | bytes) else "the output or a file"
    what = f"{file} cannot be read or written: {reason}"
    return TacitError(ErrorCode.FAILED, what, fix="check its path, this user's rights and the free space of the disk")


def _drop_output() -> None:
    """Drop what standard output does not take, which would fail once more when the process ends."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    port: Annotated[
        int | None, typer.Option(help="Serve the web page there; by default 8080, or a free one.", min=0, max=65535)
    ] = None,
) -> None:
    """Walk through Tacit on a bundled clinic, in half a minute."""
    import tempfile

    if port is not None and not served:
        raise ParameterError("port", "is for --serve", fix=f"tacit demo --serve --port {port}")
    if served:
        from tacit.serve.demo import serve_clinic

        with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
            serve_clinic(keep or Path(folder), typer.echo, port)
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


if __name__ == "__main__":
    main()
