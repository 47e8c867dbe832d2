"""The columns and rows of an answer, as clients get them. The columns follow from the plan, before it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.answer import Answer
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.query.types import Type
from tacit.serve.pgwire import protocol
from tacit.serve.pgwire.copy_out import CopyFormat, encode_copy
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import PROTOCOL, WireError
from tacit.serve.pgwire.types import FLOAT8, TEXT, encode, size_of, type_oid

Rows = Sequence[Sequence[Any]]


class EncodedRows(Sequence[bytes]):
    """Rows that are messages already, in the formats that were asked for. `size` is how many bytes they are."""

    def __init__(self, messages: Sequence[bytes], size: int) -> None:
        self._messages = messages
        self.size = size

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> EncodedRows: ...

    def __getitem__(self, index: int | slice) -> bytes | EncodedRows:
        if isinstance(index, int):
            return self._messages[index]
        return EncodedRows(self._messages[index], self.size)


@dataclass(frozen=True)
class StatementResult:
    """What a statement gave: columns and rows where it has some, a tag, and notices with their details."""

    tag: str
    fields: tuple[WireColumn, ...] | None = None
    rows: Rows | EncodedRows = ()
    notices: tuple[tuple[str, str], ...] = ()

    @property
    def command_tag(self) -> str:
        """The tag with the number of rows."""
        return self.write_tag(len(self.rows))

    def write_tag(self, rows: int) -> str:
        """The tag with so many rows."""
        return f"{self.tag} {rows}" if self.tag in {"SELECT", "FETCH"} else self.tag

    def encode_notices(self) -> list[bytes]:
        """The notices as messages."""
        return [protocol.encode_notice(*each) for each in self.notices]

    def encode_copy(self, how: CopyFormat) -> Iterator[bytes]:
        """All of it as COPY sends it, from the first message to the last."""
        assert self.fields is not None
        assert not isinstance(self.rows, EncodedRows)  # those are of the catalog
        yield from encode_copy(how, self.fields, self.rows)
        yield from self.encode_notices()
        yield protocol.encode_complete(f"COPY {len(self.rows)}")


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


def budget_row(budget: AnalystBudget, privacy: str, source: str) -> dict[str, str | None]:
    """The row of tacit.budget, by its columns, with what each question of the session spends and what set that."""
    plain = budget.to_dict()
    own, overall = plain["own"], plain["overall"]
    return {
        "who": plain["who"],
        "month": own.get("month"),
        "spent": own.get("spent"),
        "cap": own.get("cap"),
        "remaining": own.get("remaining"),
        "spent_by_all": overall.get("spent"),
        "cap_of_all": overall.get("cap"),
        "remaining_of_all": overall.get("remaining"),
        "each_question": privacy or None,
        "set_by": source or None,
    }


def apply_formats(fields: Sequence[WireColumn], formats: Sequence[bool]) -> tuple[WireColumn, ...]:
    """The columns in the formats that Bind asks for: none, one for all, or one for each."""
    if len(formats) > 1 and len(formats) != len(fields):
        what = f"there are {len(formats)} formats for {len(fields)} columns"
        raise WireError(PROTOCOL, what, "give one format, or one for each column")
    wanted = [False] * len(fields) if not formats else list(formats) * (len(fields) if len(formats) == 1 else 1)
    return tuple(replace(each, binary=binary) for each, binary in zip(fields, wanted, strict=False))


def encode_rows(fields: Sequence[WireColumn], rows: Rows | EncodedRows) -> Iterator[bytes]:
    """The rows as messages."""
    if isinstance(rows, EncodedRows):
        yield from rows
        return
    for row in rows:
        yield protocol.encode_data_row(
            [encode(value, each.oid, binary=each.binary) for each, value in zip(fields, row, strict=True)]
        )
