"""Names of types, and casts to them."""

from __future__ import annotations

import datetime
from fractions import Fraction

from tacit.errors import Refused, SourceLocation
from tacit.query.call_syntax import constant_number, constant_text
from tacit.query.date_calls import build_date, build_timestamp, read_digits
from tacit.query.dialects import QuestionDialect
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.functions import DATE_PARTS, IS_CONDITION, TIME_PARTS, Function
from tacit.query.intervals import build_interval
from tacit.query.nodes import Call, Case, Literal, Scalar, find_location
from tacit.query.number_calls import MOST_DIGITS
from tacit.query.refusals import CAST_SUGGESTIONS, TIMESTAMPS, refuse_unsupported, to_printable
from tacit.query.types import EXACT_TYPES, NUMERIC_TYPES, TYPES_BY_NAME, Type

_WHOLE_DECIMALS = frozenset({QuestionDialect.MYSQL, QuestionDialect.SNOWFLAKE})  # a DECIMAL has no digits there
_IS_WHOLE = DATE_PARTS | TIME_PARTS | {Function.FLOOR, Function.CEIL}


def read_type(parser: ExpressionCursor) -> tuple[str, tuple[int, ...]]:
    """The name of a type, and its numbers: DECIMAL(10, 2)."""
    if parser.token.kind not in {"word", "name"}:
        parser.refuse_unexpected("a type")
    kind = parser.token.text.lower()
    parser.index += 1
    numbers: tuple[int, ...] = ()
    if parser.sees("("):
        inside = parser.tokens[parser.index + 1 : parser.closing[parser.index]]
        numbers = tuple(int(token.text) for token in inside if token.kind == "number" and token.text.isdigit())
        parser.index = parser.closing[parser.index] + 1
    elif kind in {"double", "character"}:
        parser.accept("PRECISION" if kind == "double" else "VARYING")
    if kind == "timestamp":
        parser.accept("WITHOUT", "TIME", "ZONE")
    return kind, numbers


def build_cast(
    parser: ExpressionCursor, operand: Scalar, start: int, kind: str, numbers: tuple[int, ...] = ()
) -> Scalar:
    """The casts there are: a text to a date or a timestamp, numbers to a float, conditions to 1 and 0, and others.

    A number as DECIMAL(10, 2) is rounded to 2 digits; that it has at most 10 is not checked, for no row can fail.
    The others change nothing, as to make an integer of what is whole already, or of a column what it is declared
    as; or go between dates and timestamps. What the form does not show is left to `plan/casts.py`.
    """
    at, wanted = parser.since(start), TYPES_BY_NAME.get(kind)
    match operand:
        case _ if kind == "interval" and (said := constant_text(operand)) is not None:
            return build_interval(said, None, at)
        case _ if wanted is None:
            raise _refuse_cast(operand, kind, at)
        case Literal(str() as text) if wanted in NUMERIC_TYPES and _is_number(text):
            return build_cast(parser, Literal(Fraction(text.strip())), start, kind, numbers)
        case Literal() if wanted is Type.INT and (value := constant_number(operand)) is not None:
            return Literal(_round_half_away(Fraction(value)), at)
        case _ if wanted is Type.FLOAT:
            number = Call(Function.MULTIPLY, (Literal(Fraction(1)), operand), at)
            is_whole = bool(numbers) or kind == "number" or parser.dialect in _WHOLE_DECIMALS
            digits = numbers[1:2] or ((0,) if is_whole else ())
            if kind not in EXACT_TYPES or not digits:
                return number
            return Call(Function.ROUND, (number, Literal(min(digits[0], MOST_DIGITS))), at)
        case Literal() if wanted is Type.DATE and not isinstance(operand.value, datetime.date):
            return build_date(operand, at)
        case Literal() if wanted is Type.TIMESTAMP and not isinstance(operand.value, datetime.date):
            return build_timestamp(operand, at)
        case Call(function=function) if wanted is Type.INT and function in _IS_WHOLE and not _is_postgres(parser):
            return operand
        case Call(Function.TO_CHAR) if wanted is Type.INT and (digits_of := read_digits(operand)) is not None:
            return digits_of
        case Call(function=function) if wanted is Type.INT and function in IS_CONDITION:
            opposite = Call(Function.NOT, (operand,), at)
            return Case(((operand, Literal(1)), (opposite, Literal(0))), Literal(None), at)
    return Call(Function.CAST, (operand, Literal(kind)), at)


def _is_postgres(parser: ExpressionCursor) -> bool:
    """Whether the type of a whole number matters to what is computed with it (`query/integer_types.py`)."""
    return parser.dialect is QuestionDialect.POSTGRES


def _refuse_cast(operand: Scalar, kind: str, at: SourceLocation) -> Refused:
    """A refusal of a cast to a type that columns do not have."""
    what, inner = f"CAST to {to_printable(kind).upper()}", find_location(operand)
    if kind in TIMESTAMPS and inner is not None:
        instead = f"CAST({inner.written} AS TIMESTAMP)"
        return refuse_unsupported(what, f"write {instead}: the time in the column's zone", at, instead)
    fix = CAST_SUGGESTIONS.get(kind, "leave it out: the types of columns are declared in the policy")
    return refuse_unsupported(what, fix, at)


def _round_half_away(number: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    size = int(abs(number) + Fraction(1, 2))
    return -size if number < 0 else size


def _is_number(text: str) -> bool:
    """Whether a text is a number as SQL writes one, and not a long one."""
    return len(text) < 30 and text.strip().lstrip("-").replace(".", "", 1).isdecimal() and text.isascii()
