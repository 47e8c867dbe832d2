"""An answer as bytes and back, so that it is the same object on both sides of a wire.

It travels as an Arrow stream that any Arrow library reads: a column for each estimate x, with x_low and x_high beside
it. What Arrow has no place for is in the schema's metadata as JSON: the kinds of error bars, the notes, the receipt.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits
from tacit.accounting.receipt import ClipStep, Receipt
from tacit.answers.answer import Answer
from tacit.answers.columns import AnswerColumn, IntervalKind
from tacit.errors import ErrorCode, Refused
from tacit.query.types import Type
from tacit.terminal import one_line

ARROW_STREAM = "application/vnd.apache.arrow.stream"
_METADATA = b"tacit"
_LONGEST = 2000  # characters of a note


def encode_answer(answer: Answer) -> bytes:
    """The answer as an Arrow IPC stream."""
    import pyarrow

    table = answer.to_arrow()
    told = {
        "headings": [[heading.name, str(heading.type), str(heading.bars), heading.many] for heading in answer.headings],
        "confidence": answer.confidence,
        "notes": list(answer.notes),
        "receipt": receipt_to_dict(answer.receipt),
    }
    table = table.replace_schema_metadata({_METADATA: json.dumps(told).encode()})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def decode_answer(data: bytes) -> Answer:
    """The answer that `encode_answer` wrote."""
    import pyarrow

    try:
        with pyarrow.ipc.open_stream(data) as stream:
            table = stream.read_all()
        told = json.loads(table.schema.metadata[_METADATA])
        headings = tuple(
            AnswerColumn(name, Type(kind), IntervalKind(bars), many) for name, kind, bars, many in told["headings"]
        )
        receipt = receipt_from_dict(told["receipt"])
        notes, confidence = (
            tuple(one_line(str(note), _LONGEST) for note in told["notes"]),
            Fraction(repr(float(told["confidence"]))),
        )
        table = table.replace_schema_metadata(None).rename_columns(_list_columns(headings))
    except (pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        fix = "check the address: is it a Tacit server of this version?"
        raise Refused(ErrorCode.PROTOCOL, "what came back is no answer of Tacit's", fix=fix) from error
    return Answer(table, headings, confidence, notes, receipt)


def _list_columns(headings: tuple[AnswerColumn, ...]) -> list[str]:
    """The names of an answer's columns and of the ends of their intervals."""
    names = []
    for index, heading in enumerate(headings):
        ends = () if heading.bars is IntervalKind.NONE else (f"c{index}_low", f"c{index}_high")
        names += [f"c{index}", *ends]
    return names


def receipt_to_dict(receipt: Receipt) -> dict[str, Any]:
    """All of a receipt, amounts in grains."""
    return {
        "entry": receipt.entry,
        "time": receipt.time,
        "who": receipt.analyst,
        "key": receipt.key,
        "charged": receipt.charged.grains,
        "price": receipt.cost.grains,
        "repeat": receipt.repeat,
        "analyst": [receipt.analyst_budget.spent.grains, receipt.analyst_budget.cap.grains],
        "overall": [receipt.overall_budget.spent.grains, receipt.overall_budget.cap.grains],
        "head": receipt.head,
        "signature": receipt.signature,
        "request": receipt.request,
        **({} if receipt.clip is None else {"clip": _clip_to_list(receipt.clip)}),
    }


def _clip_to_list(clip: ClipStep) -> list[Any]:
    return [clip.entry, clip.charged.grains, clip.cost.grains]


def receipt_from_dict(found: dict[str, Any]) -> Receipt:
    """Return the receipt that `receipt_to_dict` wrote. Nothing in its texts commands a terminal."""

    def text(name: str) -> str:
        return one_line(str(found[name]), _LONGEST)

    def budget(name: str) -> BudgetStatus:
        spent, cap = found[name]
        return BudgetStatus(BudgetCharge(*spent), FilterLimits(*cap))

    return Receipt(
        entry=int(found["entry"]),
        time=text("time"),
        analyst=text("who"),
        key=text("key"),
        charged=BudgetCharge(*found["charged"]),
        cost=BudgetCharge(*found["price"]),
        repeat=bool(found["repeat"]),
        analyst_budget=budget("analyst"),
        overall_budget=budget("overall"),
        head=text("head"),
        signature=text("signature"),
        request=text("request"),
        clip=_clip_from_list(found["clip"]) if found.get("clip") else None,
    )


def _clip_from_list(found: list[Any]) -> ClipStep:
    entry, charged, cost = found
    return ClipStep(int(entry), BudgetCharge(*charged), BudgetCharge(*cost))
