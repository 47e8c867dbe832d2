"""Questions in a notebook: a cell of SQL, and its answer below it.

%load_ext tacit
%tacit clinic.toml --as ada

%%tacit --epsilon 0.5 --plot
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.answers.answer import Answer
    from tacit.curator.curator import Analyst, Curator
    from tacit.plan.explain import Explanation


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
    parser.add_argument("policy", help="the policy file to open")
    parser.add_argument("--as", dest="who", required=True, help="the analyst who asks")
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
    """One notebook's curator and analyst."""

    def __init__(self, shell: NotebookShell) -> None:
        self._shell = shell
        self._curator: Curator | None = None
        self._analyst: Analyst | None = None

    def __call__(self, line: str, cell: str | None = None) -> Analyst | Answer | Explanation:
        """Open a policy, or ask the question in a cell."""
        return self.open(line) if cell is None else self.ask(line, cell)

    def open(self, line: str) -> Analyst:
        """`%tacit clinic.toml --as ada`: the analyst whose questions the cells ask."""
        from tacit.curator import curator

        given = _line_parser().parse_args(shlex.split(line))
        opened = curator.open(given.policy)
        try:
            self._analyst = opened.analyst(given.who)
        except BaseException:
            opened.close()
            raise
        if self._curator is not None:
            self._curator.close()
        self._curator = opened
        return self._analyst

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


def load_ipython_extension(shell: NotebookShell) -> None:
    """Register the magic command `%tacit`, as `%load_ext tacit` does.

    In the notebook, `%tacit clinic.toml --as ada` opens a policy, and a cell that begins with `%%tacit --epsilon 0.5`
    is a question in SQL.

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
