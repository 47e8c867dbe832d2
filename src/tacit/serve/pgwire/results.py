"""The columns and rows of an answer, as clients get them. The columns follow from the plan, before it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.answers.answer import Answer
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.curator.views import AnalystBudget
from tacit.query.types import Type
from tacit.serve.pgwire import protocol
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import PROTOCOL, WireError
from tacit.serve.pgwire.types import FLOAT8, TEXT, encode, size_of, type_oid

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class StatementResult:
    """What a statement gave: columns and rows where it has some, a tag, and a notice with its detail."""

    tag: str
    fields: tuple[WireColumn, ...] | None = None
    rows: Rows = ()
    notice: tuple[str, str] | None = None

    @property
    def command_tag(self) -> str:
        """The tag with the number of rows."""
        return f"{self.tag} {len(self.rows)}" if self.tag == "SELECT" else self.tag


def make_column(name: str, oid: int) -> WireColumn:
    """A column."""
    return WireColumn(name, oid, size_of(oid))


def text_result(name: str, lines: Sequence[str], tag: str) -> StatementResult:
    """A column of texts."""
    return StatementResult(tag, (make_column(name, TEXT),), [(line,) for line in lines])


def answer_columns(headings: Sequence[AnswerColumn], intervals: bool) -> tuple[WireColumn, ...]:
    """The columns of an answer; with `intervals`, each estimate x is followed by x_low and x_high.

    The ends of an expression's interval come from redrawn noise, and are float8 whatever the estimate is.
    """
    taken = {heading.name for heading in headings}
    found = []
    for heading in headings:
        oid = type_oid(heading.type, heading.many)
        found.append(make_column(heading.name, oid))
        if intervals and heading.bars is not IntervalKind.NONE:
            end = oid if heading.bars is IntervalKind.EXACT and heading.type is Type.INT else FLOAT8
            for suffix in ("_low", "_high"):
                name = heading.name + suffix
                while name in taken:
                    name += "_"
                taken.add(name)
                found.append(make_column(name, end))
    return tuple(found)


def answer_rows(answer: Answer, intervals: bool) -> list[tuple[Any, ...]]:
    """The rows under these columns."""
    rows = []
    for cells in answer.cells():
        row: list[Any] = []
        for heading, cell in zip(answer.headings, cells, strict=True):
            row.append(cell.value)
            if intervals and heading.bars is not IntervalKind.NONE:
                row += [cell.low, cell.high]
        rows.append(tuple(row))
    return rows


def receipt_notice(answer: Answer) -> tuple[str, str]:
    """The receipt, and the notes."""
    return str(answer.receipt), "\n".join(answer.notes)


def budget_columns(budget: AnalystBudget | None) -> dict[str, str]:
    """The columns of tacit.budget, each as SQL; NULLs where only types are wanted."""
    plain = {"who": None, "own": {}, "overall": {}} if budget is None else budget.to_dict()
    texts_of = {"who": plain["who"], "month": plain["own"].get("month")}
    numbers = {
        "spent": plain["own"].get("spent"),
        "cap": plain["own"].get("cap"),
        "remaining": plain["own"].get("remaining"),
        "spent_by_all": plain["overall"].get("spent"),
        "cap_of_all": plain["overall"].get("cap"),
        "remaining_of_all": plain["overall"].get("remaining"),
    }
    shown = {name: _cast(value, "VARCHAR") for name, value in texts_of.items()}
    return shown | {name: _cast(value, "DOUBLE") for name, value in numbers.items()}


def _cast(value: str | None, kind: str) -> str:
    inner = "NULL" if value is None else "'" + value.replace("'", "''") + "'"
    return f"CAST({inner} AS {kind})"


def apply_formats(fields: Sequence[WireColumn], formats: Sequence[bool]) -> tuple[WireColumn, ...]:
    """The columns in the formats that Bind asks for: none, one for all, or one for each."""
    if len(formats) > 1 and len(formats) != len(fields):
        what = f"there are {len(formats)} formats for {len(fields)} columns"
        raise WireError(PROTOCOL, what, "give one format, or one for each column")
    wanted = [False] * len(fields) if not formats else list(formats) * (len(fields) if len(formats) == 1 else 1)
    return tuple(replace(each, binary=binary) for each, binary in zip(fields, wanted, strict=False))


def encode_rows(fields: Sequence[WireColumn], rows: Rows) -> Iterator[bytes]:
    """The rows as messages."""
    for row in rows:
        yield protocol.encode_data_row(
            [encode(value, each.oid, binary=each.binary) for each, value in zip(fields, row, strict=True)]
        )
