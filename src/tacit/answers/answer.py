"""An answer: estimates, their error bars, what they cost, and every form a person or a program reads them in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tacit.accounting.receipt import Receipt
from tacit.answers.chart import chart_answer
from tacit.answers.columns import AnswerColumn, End, Estimate, IntervalKind
from tacit.answers.render import render_html, render_text
from tacit.charts.text import render_chart_text
from tacit.errors import ParameterError
from tacit.extras import missing_extra
from tacit.terminal import one_line

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from tacit.charts.notebook import NotebookChart


_SLICE = 64  # rows that are converted at once


class Answer:
    """The released table, with an interval for each estimate. `ask` makes one.

    `str(answer)` and notebooks show it, `answer["n"]` is the list of a column's values, and iterating gives rows as
    dictionaries of values.

    Parameters
    ----------
    table : pyarrow.Table
        The values and the ends of their intervals, in columns c0, c0_low, c0_high, c1, ...
    headings : tuple of AnswerColumn
        Name, type and kind of interval of each column.
    confidence : Fraction
        Probability with which each interval covers what the noise hides.
    notes : tuple of str
        What a reader must know: bounds, rows left out, how intervals were made.
    receipt : Receipt
        What it cost, what is left, and the proof that it was charged.

    Examples
    --------
    >>> from tacit.demo.survey import open_survey
    >>> with open_survey() as curator:
    ...     question = "SELECT region, COUNT(*) AS n FROM survey GROUP BY region"
    ...     answer = curator.analyst("ada").ask(question, epsilon=0.5)
    >>> answer.columns, answer["n"]
    (('region', 'n'), [998, 1002])
    >>> list(answer)
    [{'region': 'north', 'n': 998}, {'region': 'south', 'n': 1002}]
    >>> answer.interval("n")
    [(992, 1004), (996, 1008)]
    """

    def __init__(
        self,
        table: pyarrow.Table,
        headings: tuple[AnswerColumn, ...],
        confidence: Fraction,
        notes: tuple[str, ...],
        receipt: Receipt,
    ) -> None:
        self._table = table
        self.headings = headings
        self.confidence = float(confidence)
        self.percent = format_percent(self.confidence)
        self.notes = notes
        self.receipt = receipt

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns asked for."""
        return tuple(heading.name for heading in self.headings)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.cells():
            yield {heading.name: cell.value for heading, cell in zip(self.headings, row, strict=True)}

    def __getitem__(self, column: str) -> list[Any]:
        """The values of a column."""
        return [row[self._position(column)].value for row in self.cells()]

    def interval(self, column: str) -> list[tuple[End, End]]:
        """Return the ends of the intervals of a column.

        Parameters
        ----------
        column : str
            Name of a column of the answer.

        Returns
        -------
        list of pairs
            The low and the high end for each row; both are None where there is no interval, as for keys.

        Raises
        ------
        ParameterError
            If there is no such column.
        """
        return [(row[self._position(column)].low, row[self._position(column)].high) for row in self.cells()]

    @property
    def value(self) -> Any:
        """The one value of an answer of one row and one column."""
        if len(self) != 1 or len(self.headings) != 1:
            shape = f"{len(self)} rows and {len(self.headings)} columns"
            raise ParameterError("answer", f"has {shape}, not one value", fix='take a column: answer["n"]')
        return self[self.headings[0].name][0]

    def cells(self) -> list[tuple[Estimate, ...]]:
        """Return the rows as cells with their intervals.

        Returns
        -------
        list of tuples of Estimate
            A tuple for each row; each cell has `value`, `low` and `high`.
        """
        return list(self._iterate_cells())

    def _iterate_cells(self) -> Iterator[tuple[Estimate, ...]]:
        """The rows as cells, converted a few at a time: other threads run in between."""
        for start in range(0, len(self), _SLICE):
            table = self._table.slice(start, _SLICE)
            columns = []
            for index, heading in enumerate(self.headings):
                names = [f"c{index}"] + (
                    [] if heading.bars is IntervalKind.NONE else [f"c{index}_low", f"c{index}_high"]
                )
                parts = [table.column(name).to_pylist() for name in names]
                columns.append([Estimate(*values) for values in zip(*parts, strict=True)])
            yield from zip(*columns, strict=True)

    def to_arrow(self, intervals: bool = True) -> pyarrow.Table:
        """Return the answer as an Arrow table.

        Parameters
        ----------
        intervals : bool, default True
            Whether each estimate x is followed by the ends of its interval, x_low and x_high.

        Returns
        -------
        pyarrow.Table
            With the names of `columns`.
        """
        import pyarrow

        arrays: dict[str, Any] = {}
        taken = {heading.name for heading in self.headings}
        for index, heading in enumerate(self.headings):
            arrays[heading.name] = self._table.column(f"c{index}")
            if intervals and heading.bars is not IntervalKind.NONE:
                for end in ("low", "high"):
                    name = _free(f"{heading.name}_{end}", taken)
                    taken.add(name)
                    arrays[name] = self._table.column(f"c{index}_{end}")
        return pyarrow.table(arrays)

    def to_pandas(self, intervals: bool = True) -> pandas.DataFrame:
        """Return the answer as a pandas data frame. Needs pandas.

        Parameters
        ----------
        intervals : bool, default True
            Whether each estimate x is followed by the ends of its interval, x_low and x_high.

        Returns
        -------
        pandas.DataFrame
            With the names of `columns`.
        """
        if find_spec("pandas") is None:
            raise missing_extra("frames", "to_pandas()", "pandas")
        return self.to_arrow(intervals).to_pandas()

    def to_polars(self, intervals: bool = True) -> polars.DataFrame:
        """Return the answer as a polars data frame. Needs polars.

        Parameters
        ----------
        intervals : bool, default True
            Whether each estimate x is followed by the ends of its interval, x_low and x_high.

        Returns
        -------
        polars.DataFrame
            With the names of `columns`.
        """
        if find_spec("polars") is None:
            raise missing_extra("frames", "to_polars()", "polars")
        import polars

        frame = polars.from_arrow(self.to_arrow(intervals))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_dict(self) -> dict[str, object]:
        """Return the rows, the intervals, the notes and the receipt as plain values, as JSON has them.

        Returns
        -------
        dict
            With "columns", "rows", "confidence", "notes" and "receipt".
        """
        return {
            "columns": list(self.columns),
            "rows": list(self.plain_rows()),
            "confidence": self.confidence,
            "notes": list(self.notes),
            "receipt": self.receipt.to_dict(),
        }

    def plain_rows(self) -> Iterator[dict[str, object]]:
        """Yield each row as `to_dict` gives it.

        Yields
        ------
        dict
            A key as its value; an estimate as a dict of "value", "low", "high" and "bars".
        """
        for row in self._iterate_cells():
            shown: dict[str, object] = {}
            for heading, cell in zip(self.headings, row, strict=True):
                plain = {"value": _plain(cell.value), "low": cell.low, "high": cell.high, "bars": str(heading.bars)}
                shown[heading.name] = plain if heading.bars is not IntervalKind.NONE else _plain(cell.value)
            yield shown

    def to_json(self, indent: int | None = None) -> str:
        """Return what `to_dict` gives as JSON text.

        Parameters
        ----------
        indent : int, optional
            Spaces to indent by; on one line without it.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        return render_text(self)

    def __repr__(self) -> str:
        return one_line(f"<Answer: {len(self)} rows of {', '.join(self.columns)}; {self.receipt}>")

    def _repr_html_(self) -> str:
        return render_html(self)

    def chart(self, column: str | None = None, width: int = 60) -> str:
        """Draw one column with its intervals, in characters.

        Parameters
        ----------
        column : str, optional
            Which estimate to draw; by default the first.
        width : int, default 60
            How many characters wide the drawing may be.

        Returns
        -------
        str
            Several lines of text.
        """
        return render_chart_text(chart_answer(self, column), width)

    def plot(self, path: str | os.PathLike[str] | None = None, column: str | None = None) -> NotebookChart | None:
        """Draw one column with its intervals, for a notebook or into a file.

        Parameters
        ----------
        path : path, optional
            File to write, such as "n.png" or "n.svg", which needs matplotlib; without it the drawing is returned.
        column : str, optional
            Which estimate to draw; by default the first.

        Returns
        -------
        NotebookChart or None
            What a notebook shows as SVG and a terminal in characters; None where a file was written.
        """
        chart = chart_answer(self, column)
        if path is None:
            return chart
        from tacit.charts.files import save_chart

        save_chart(chart, path)
        return None

    def _position(self, column: str) -> int:
        if column not in self.columns:
            raise ParameterError("column", f"there is no {column!r}", fix=f"the columns are {', '.join(self.columns)}")
        return self.columns.index(column)


def format_percent(confidence: float) -> str:
    """A confidence as people say it: 95%, 99.9%."""
    return f"{100 * confidence:.10g}%"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _plain(value: Any) -> Any:
    """A value as JSON has it; dates as ISO text, lists as lists of these."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
