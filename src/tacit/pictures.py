"""The plots, in one style. Needs matplotlib: pip install 'tacit-dp[plot]'.

with open_figure("errors.svg", "Error", "dimension", "error") as axes:
    axes.plot(...)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit.errors import ParameterError
from tacit.extras import missing_extra

TEXT_COLOR = "#26323d"
COLORS = ("#0b6e8a", "#d1603d", "#5b8c5a", "#8a5a9e", "#b08b2e", "#7a7f87")
_WITHOUT_SCREEN = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}  # matplotlib's backends that only write files
_STYLE: Any = {
    "axes.prop_cycle": f"cycler(color={list(COLORS)!r})",
    "axes.edgecolor": TEXT_COLOR,
    "axes.labelcolor": TEXT_COLOR,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.dpi": 160,
    "svg.hashsalt": "tacit",  # the same picture is the same file
    "text.color": TEXT_COLOR,
    "text.parse_math": False,  # a key may hold dollar signs
    "xtick.color": TEXT_COLOR,
    "ytick.color": TEXT_COLOR,
}


@contextmanager
def open_figure(
    path: str | os.PathLike[str] | None,
    title: str,
    x: str,
    y: str,
    size: tuple[float, float] = (7.0, 4.0),
    panels: int = 1,
) -> Iterator[Any]:
    """Axes to draw on, saved as `path` in the end; several side by side where `panels` is more than one.

    Without a path the figure is shown where matplotlib has a screen, and left open where it has none, for whoever
    collects figures.
    """
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise missing_extra("plot", "a picture", "matplotlib") from None
    if path is not None:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(1, panels, figsize=size)
        first = axes if panels == 1 else axes[0]
        first.set_title(title)
        for each in [axes] if panels == 1 else axes:
            each.set(xlabel=x, ylabel=y)
            each.grid(visible=True)
        yield axes
        for each in [axes] if panels == 1 else axes:
            for axis in (each.xaxis, each.yaxis):
                if axis.get_scale() == "log" and type(axis.get_major_formatter()).__name__.startswith("LogFormatter"):
                    axis.set_major_formatter(lambda value, _: _power(value))
                    axis.set_minor_formatter(lambda value, _: "")
            if each.get_legend() is None and each.get_legend_handles_labels()[0]:
                each.legend()
        if path is None:
            if matplotlib.get_backend().lower() not in _WITHOUT_SCREEN:
                pyplot.show()
            return
        try:
            figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
        except OSError as error:
            what = f"{os.fspath(path)} cannot be written: {error.strerror or 'it failed'}"
            raise ParameterError(
                "path", what, fix="name a file that this user may write, on a disk with free space"
            ) from error
        finally:
            pyplot.close(figure)


def _power(value: float) -> str:
    """A number of a log axis: as it is written, or as a power of ten where that is long. Formulas are not parsed."""
    if 1e-3 <= value < 1e6:
        return f"{value:,g}" if value >= 1 else f"{value:g}"
    return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
