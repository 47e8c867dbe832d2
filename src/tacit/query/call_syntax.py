"""A call as the text has it, before it is known what its name stands for."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import Refused, SourceLocation
from tacit.query.dialects import QuestionDialect
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, ColumnReference, Literal, Scalar, find_location
from tacit.query.refusals import MAX_ITEMS, refuse_unsupported

MANY = MAX_ITEMS
_PLACEHOLDER = re.compile(r"'[^']*'|\b[a-z]\b")  # the letters of a usage such as DATE_PART('month', d), and its texts


@dataclass(frozen=True)
class CallSyntax:
    """A call as the text has it. `within` is the operand of WITHIN GROUP, and whether it is in descending order.

    `today` is the date, or the time, that the policy declares as the present one.
    """

    name: str
    arguments: tuple[Scalar, ...]
    at: SourceLocation
    star: bool = False
    distinct: bool = False
    within: tuple[Scalar, bool] | None = None
    where: Scalar | None = None
    today: datetime.date | None = None
    dialect: QuestionDialect = QuestionDialect.POSTGRES


@dataclass(frozen=True)
class AggregateSyntax:
    """How an aggregate is written under one of its names; `usage` is an example, with {} for the name and letters."""

    read: Callable[[CallSyntax], Aggregate]
    usage: str = "{}(x)"
    takes_distinct: bool = False
    takes_order: bool = False  # WITHIN GROUP (ORDER BY x)
    takes_list: bool = False  # an argument such as [0.25, 0.75], which is a call of LIST
    element: Callable[[Aggregate, int], Aggregate | None] | None = None  # of the list that it gives, counted from zero


Aggregates = Mapping[str, AggregateSyntax]  # by the name in small letters
Build = Callable[[CallSyntax], Scalar]


def check_count(written: CallSyntax, least: int, most: int, usage: str = "") -> None:
    """Refuse a call with another number of arguments; the usage is how one that has too few could be written."""
    if not least <= len(written.arguments) <= most:
        what = f"{written.name.upper()} with {count_arguments(len(written.arguments))}"
        wanted = count_arguments(least) if least == most else f"{least} or more arguments"
        words = f"give it {wanted}" if most in {least, MANY} else f"give it {least} to {most} arguments"
        missing = len(written.arguments) < least
        raise refuse_usage(what, written, usage if missing else "", words)


def refuse_usage(what: str, written: CallSyntax, usage: str, words: str) -> Refused:
    """A refusal of a call that is not written as its usage; where that cannot be filled in, the fix is in words."""
    filled = fill_usage(usage, written)
    return refuse_unsupported(what, words if filled is None else f"write {filled}", written.at, filled)


def fill_usage(usage: str, written: CallSyntax) -> str | None:
    """The usage with the operands of a call in the places of its letters; None where there are too few of them.

    So of NULLIF(age), whose usage is NULLIF(x, 0), it is NULLIF(age, 0).
    """
    within = () if written.within is None else (written.within[0],)
    found = [at.written for at in map(find_location, (*within, *written.arguments)) if at is not None]
    letters = list(dict.fromkeys(word for word in _PLACEHOLDER.findall(usage) if not word.startswith("'")))
    if not usage or len(found) < len(letters):
        return None
    operands = dict(zip(letters, found, strict=False))
    return _PLACEHOLDER.sub(lambda word: operands.get(word[0], word[0]), usage)


def count_arguments(number: int) -> str:
    """How many arguments there are, in words."""
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def constant_text(scalar: Scalar) -> str | None:
    """The text that a constant says, also one put together of constants by ||; None for anything else."""
    match scalar:
        case Literal(str() as value):
            return value
        case Call(Function.CONCAT, arguments):
            parts = [_as_part(argument) for argument in arguments]
            return None if None in parts else "".join(part for part in parts if part is not None)
        case Call(Function.LOWER | Function.UPPER as letters, (argument,)):
            text = constant_text(argument)
            return None if text is None or not text.isascii() else getattr(text, letters)()
    return None


def _as_part(scalar: Scalar) -> str | None:
    """What || makes of a constant: integers are their digits."""
    number = constant_number(scalar)
    return str(number) if isinstance(number, int) else constant_text(scalar)


def constant_number(scalar: Scalar) -> int | Fraction | None:
    """The number that a constant says; None for anything else."""
    value = scalar.value if isinstance(scalar, Literal) else None
    return value if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


def bare_word(scalar: Scalar) -> str | None:
    """The word in small letters, where an argument is one word: the unit in DATE_TRUNC(d, MONTH)."""
    if isinstance(scalar, ColumnReference) and scalar.table is None:
        return None if scalar.at is not None and scalar.at.words.startswith('"') else scalar.name.lower()
    return None
