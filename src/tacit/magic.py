"""Questions in a notebook: a cell of SQL, and its answer below it.

%load_ext tacit
%tacit clinic.toml --as ada

%%tacit --epsilon 0.5 --plot
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tacit.errors import ParameterError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from tacit.analyst import Analyst
    from tacit.answers.answer import Answer
    from tacit.answers.explanation import Explanation
    from tacit.client.connect import RemoteAnalyst
    from tacit.curator.curator import Curator


class NotebookShell(Protocol):
    """What is used of IPython's shell."""

    display_pub: Any

    def register_magic_function(self, func: Callable[..., object], magic_kind: str, magic_name: str) -> None:
        """Make a function a magic command."""

    def push(self, variables: dict[str, object]) -> None:
        """Set variables of the notebook."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ParameterError("%tacit", message, fix="%tacit clinic.toml --as ada, then %%tacit --epsilon 0.5")


def _width(item: str) -> tuple[str, float]:
    """COLUMN=WIDTH, as a pair."""
    column, _, width = item.partition("=")
    return column, float(width)


def _line_parser() -> _Parser:
    parser = _Parser(prog="%tacit", add_help=False)
    parser.add_argument("policy", help="the policy file to open, or the URL of a served curator")
    parser.add_argument("--as", dest="who", help="the analyst who asks; at a server the key in TACIT_KEY says who")
    parser.add_argument("--cafile", help="the certificate of a server to trust")
    return parser


def _cell_parser() -> _Parser:
    parser = _Parser(prog="%%tacit", add_help=False)
    parser.add_argument("--epsilon", "-e", type=float, help="the privacy loss to spend")
    parser.add_argument(
        "--within", action="append", type=_width, metavar="COLUMN=WIDTH", help="the accuracy, in place of an epsilon"
    )
    parser.add_argument("--confidence", type=float, default=0.95, help="how often the intervals hold")
    parser.add_argument("--dialect", help="whose SQL it is where dialects differ; the policy's by default")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--explain", action="store_true", help="say what it would cost, and ask nothing")
    shown.add_argument("--plot", nargs="?", const="", metavar="COLUMN", help="draw a column with its error bars too")
    parser.add_argument("--into", help="the name of a variable for the answer")
    return parser


class NotebookMagic:
    """One notebook's analyst, of a curator that is open here or served elsewhere."""

    def __init__(self, shell: NotebookShell) -> None:
        self._shell = shell
        self._open: Curator | RemoteAnalyst | None = None
        self._analyst: Analyst | None = None

    def __call__(self, line: str, cell: str | None = None) -> Analyst | Answer | Explanation:
        """Open a policy, or ask the question in a cell."""
        return self.open(line) if cell is None else self.ask(line, cell)

    def open(self, line: str) -> Analyst:
        """`%tacit clinic.toml --as ada`, or `%tacit https://...`: the analyst whose questions the cells ask."""
        given = _line_parser().parse_args(shlex.split(line))
        is_remote = given.policy.startswith(("http://", "https://"))
        if is_remote and given.who is not None:
            raise ParameterError("%tacit", "the key says who asks at a server", fix=f"%tacit {given.policy}")
        if not is_remote and (given.who is None or given.cafile is not None):
            what = "who asks is not said" if given.who is None else "a policy file needs no certificate"
            raise ParameterError("%tacit", what, fix=f"%tacit {given.policy} --as ada")
        opened, analyst = _connect(given.policy, given.cafile) if is_remote else _open_policy(given.policy, given.who)
        if self._open is not None:
            self._open.close()
        self._open, self._analyst = opened, analyst
        return analyst

    def ask(self, line: str, cell: str) -> Answer | Explanation:
        """`%%tacit --epsilon 0.5`: the answer to the cell."""
        from tacit.answers.answer import Answer
        from tacit.answers.chart import chart_answer

        given = _cell_parser().parse_args(shlex.split(line))
        if self._analyst is None:
            raise ParameterError("%%tacit", "no policy is open", fix="%tacit clinic.toml --as ada")
        widths = dict(given.within) if given.within else None
        price = {"epsilon": given.epsilon, "within": widths, "confidence": given.confidence, "dialect": given.dialect}
        found = self._analyst.explain(cell, **price) if given.explain else self._analyst.ask(cell, **price)
        if given.into:
            self._shell.push({given.into: found})
        if given.plot is not None and isinstance(found, Answer):
            drawn = chart_answer(found, given.plot or None)
            self._shell.display_pub.publish({"text/plain": repr(drawn), "image/svg+xml": drawn.to_svg()})
        return found


def _connect(url: str, cafile: str | None) -> tuple[RemoteAnalyst, RemoteAnalyst]:
    """The analyst of a served curator, who is closed with the connection; its budget says that the key is right."""
    from tacit.client.connect import connect

    analyst = connect(url, cafile=cafile)
    try:
        _ = analyst.budget
    except BaseException:
        analyst.close()
        raise
    return analyst, analyst


def _open_policy(policy: str, who: str) -> tuple[Curator, Analyst]:
    """The curator of a policy file, and one of its analysts. A bar shows how far a large source is read."""
    from tacit.curator import curator

    with _show_progress() as tell:
        opened = curator.open(policy, progress=tell)
    try:
        return opened, opened.analyst(who)
    except BaseException:
        opened.close()
        raise


@contextmanager
def _show_progress() -> Iterator[Callable[[str, float], None]]:
    """A bar in the notebook, once there is something to tell."""
    from rich.progress import Progress

    with ExitStack() as stack:
        bars: list[tuple[Progress, TaskID]] = []

        def tell(what: str, share: float) -> None:
            if not bars:
                shown = stack.enter_context(Progress(transient=True))
                bars.append((shown, shown.add_task("", total=1.0)))
            shown, task = bars[0]
            shown.update(task, completed=share, description=what)

        yield tell


def load_ipython_extension(shell: NotebookShell) -> None:
    """Register the magic command `%tacit`, as `%load_ext tacit` does.

    In the notebook, `%tacit clinic.toml --as ada` opens a policy, or `%tacit https://clinic.example:8080` a served
    curator with the key in TACIT_KEY; and a cell that begins with `%%tacit --epsilon 0.5` is a question in SQL.

    Parameters
    ----------
    shell : IPython shell
        Where the command is registered; `get_ipython()` returns it.

    Examples
    --------
    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> load_ipython_extension(shell)
    >>> "tacit" in shell.magics_manager.magics["cell"]
    True
    """
    shell.register_magic_function(NotebookMagic(shell), "line_cell", "tacit")
