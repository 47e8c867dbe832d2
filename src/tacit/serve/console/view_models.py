"""What the pages show, worked out: answers, refusals and the schema. Templates only lay it out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from tacit.aggregates.registry import SYNTAX
from tacit.answers.answer import Answer
from tacit.answers.chart import chart_column
from tacit.answers.columns import IntervalKind
from tacit.answers.data_profile import DataProfile, TableProfile
from tacit.answers.render import format_value
from tacit.errors import SecondStepRefused, TacitError
from tacit.policy.model import ROW_UNIT, Column, Key, Policy, Table
from tacit.query.function_calls import FUNCTION_NAMES
from tacit.query.timestamps import to_datetime
from tacit.serve.console.answer_charts import draw_chart
from tacit.serve.responses import error_to_dict

ROWS = 200  # of an answer that a page shows
_CHARTS, _NUMBERS = 3, 8  # columns that are drawn: of many rows, and of one
FUNCTIONS = tuple(sorted({*SYNTAX, *FUNCTION_NAMES}))  # that an editor offers


@dataclass(frozen=True)
class AnswerView:
    """An answer as a page has it: heads and rows of text, drawings, and what stands in its receipt."""

    heads: tuple[tuple[str, bool], ...]  # the words, and whether they stand over numbers
    rows: tuple[tuple[tuple[str, bool], ...], ...]
    left_out: int
    drawings: tuple[Markup, ...]
    notes: tuple[str, ...]
    receipt: dict[str, Any]
    free: bool
    percent: str
    summary: str  # in a sentence, for who hears the page

    @property
    def table_title(self) -> str:
        """What the table is called: with how many rows it has."""
        count = len(self.rows) + self.left_out
        return "The numbers, with intervals" if count == 1 else f"All {count:,} rows, with intervals"


def view_answer(answer: Answer) -> AnswerView:
    """An answer for its page."""
    heads: list[tuple[str, bool]] = []
    for heading in answer.headings:
        heads.append((heading.name, heading.bars is not IntervalKind.NONE))
        if heading.bars is not IntervalKind.NONE:
            heads.append((f"{'≈ ' if heading.bars is IntervalKind.APPROXIMATE else ''}{answer.percent} interval", True))
    rows = []
    cells = answer.cells()
    for row in cells[:ROWS]:
        line: list[tuple[str, bool]] = []
        for heading, cell in zip(answer.headings, row, strict=True):
            line.append((format_value(cell.value, heading, cell), heading.bars is not IntervalKind.NONE))
            if heading.bars is not IntervalKind.NONE:
                line.append(
                    (f"{format_value(cell.low, heading, cell)} to {format_value(cell.high, heading, cell)}", True)
                )
        rows.append(tuple(line))
    numbers = [index for index, heading in enumerate(answer.headings) if heading.bars is not IntervalKind.NONE]
    most = _NUMBERS if len(cells) == 1 else _CHARTS
    drawings = [draw_chart(chart_column(answer, index)) for index in numbers[:most]]
    receipt = answer.receipt
    return AnswerView(
        tuple(heads),
        tuple(rows),
        max(0, len(cells) - ROWS),
        tuple(drawing for drawing in drawings if drawing),
        answer.notes,
        receipt.to_dict(),
        receipt.is_free,
        answer.percent,
        _summarize(answer),
    )


def _summarize(answer: Answer) -> str:
    """An answer in a sentence: the numbers of a single row, or how many rows there are."""
    cells = answer.cells()
    if len(cells) != 1:
        return f"Answered, with {len(cells):,} rows."
    parts = []
    for heading, cell in zip(answer.headings, cells[0], strict=True):
        words = f"{heading.name} is {format_value(cell.value, heading, cell)}"
        if cell.low is not None and cell.high is not None:
            ends = (format_value(end, heading, cell) for end in (cell.low, cell.high))
            words += f", between {' and '.join(ends)}"
        parts.append(words)
    return f"Answered: {'; '.join(parts)}."


def view_error(error: TacitError) -> dict[str, Any]:
    """An error with its place: the line, and the stretch of it to underline."""
    found: dict[str, Any] = error_to_dict(error)["error"]
    found["is_second_step"] = isinstance(error, SecondStepRefused)
    at = found["at"]
    if at is not None:
        start = at["column"] - 1 - at["offset"]
        end = start + max(1, at["length"])
        line = at["excerpt"]
        found["parts"] = (line[:start], line[start:end] or " ", line[end:])
    return found


@dataclass(frozen=True)
class TableView:
    """A table of the schema."""

    name: str
    protected: str
    columns: tuple[tuple[str, str, str, str], ...]  # a name, a type, what is declared and what was released of it
    released: str = ""  # of how many rows a unit has


def view_schema(policy: Policy, profile: DataProfile | None = None) -> tuple[TableView, ...]:
    """What may be asked about, with what a profile says of it."""
    return tuple(_view_table(table, None if profile is None else profile.table(table.name)) for table in policy.tables)


def _view_table(table: Table, profile: TableProfile | None) -> TableView:
    columns = []
    for column in table.columns:
        found = None if profile is None else profile.column(column.name)
        released = "" if found is None else found.describe()
        columns.append((column.name, str(column.type), _describe_domain(column), released))
    sizes = "" if profile is None or profile.sizes is None else f"Rows of one unit: {profile.describe_sizes()}"
    return TableView(table.name, _describe_protection(table), tuple(columns), sizes)


def _describe_protection(table: Table) -> str:
    if table.public:
        return "Public: may be joined to private tables."
    if table.unit == ROW_UNIT:
        return "Each row is protected."
    groups, rows = table.max_groups, table.max_rows_per_group
    kept = f"in at most {groups} groups, with at most {rows} rows in each"
    in_all = "" if table.max_rows is None else f" and {table.max_rows} in all"
    if not table.auto:
        return f"Each {table.unit} is protected, and counts {kept}{in_all}."
    most = "" if table.auto_up_to is None else f", up to what {table.auto_up_to} rows add"
    others = f" Where a question cannot use that, it counts {kept}{in_all}." if table.has_caps else ""
    return f"Each {table.unit} is protected. How much it may add is chosen for each question{most}.{others}"


def _describe_domain(column: Column) -> str:
    if column.values is not None:
        more = f" and {len(column.values) - 6} more" if len(column.values) > 6 else ""
        return ", ".join(_key(value) for value in column.values[:6]) + more
    if column.lower is not None and column.upper is not None:
        low, high = (_format_bound(column, end) for end in (column.lower, column.upper))
        return f"{low} to {high}" + (f", in steps of {float(column.step):g}" if column.step is not None else "")
    return "unique" if column.unique else ""


def _key(value: Key) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _format_bound(column: Column, value: Fraction) -> str:
    if column.type == "timestamp":
        return str(to_datetime(int(value)))
    return date.fromordinal(int(value)).isoformat() if column.type == "date" else f"{float(value):,.10g}"


def example_questions(policy: Policy) -> list[str]:
    """A few questions that this policy answers, to begin with."""
    table = next((table for table in policy.tables if not table.public), None)
    if table is None:
        return []
    keys = {c.name: len(c.values) for c in table.columns if c.values is not None and c.type == "text"}
    key = max((name for name in keys if keys[name] <= 12), key=keys.__getitem__, default=None)
    number = next((c.name for c in table.columns if c.step is not None), None)
    number = number or next((c.name for c in table.columns if c.type == "int" and c.lower is not None), None)
    source = _quote_name(table.name)
    found = [f"SELECT COUNT(*) AS n FROM {source}"]
    if key is not None:
        found.append(f"SELECT {_quote_name(key)}, COUNT(*) AS n FROM {source} GROUP BY {_quote_name(key)}")
    if number is not None and key is not None:
        mean = f"AVG({_quote_name(number)}) AS mean"
        found.append(f"SELECT {_quote_name(key)}, {mean} FROM {source} GROUP BY {_quote_name(key)}")
    return found


def _quote_name(name: str) -> str:
    """A name as SQL takes it."""
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'
