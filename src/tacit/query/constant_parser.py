"""Constants that are no texts: numbers, intervals, and the present that the policy declares."""

from __future__ import annotations

from fractions import Fraction

from tacit.query.date_calls import day_of_clock, time_of_clock
from tacit.query.dialect_names import CLOCK_DATES, UNITS
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.intervals import build_interval
from tacit.query.nodes import Call, Literal, Scalar
from tacit.query.operators import Precedence
from tacit.query.refusals import RESERVED, refuse_unknown_function, refuse_unsupported


def starts_interval(parser: ExpressionCursor) -> bool:
    """Whether the word INTERVAL is followed by a number of units, and is no name."""
    following, end = parser.tokens[parser.index + 1], parser.index + 1
    if following.kind in {"text", "number"}:
        return True
    if following.key == "(":
        end = parser.closing[parser.index + 1]
    elif following.key == "-" and parser.tokens[parser.index + 2].kind == "number":
        end += 1
    elif following.kind != "word" or following.key in RESERVED:
        return False
    unit = parser.tokens[min(end + 1, len(parser.tokens) - 1)]
    return unit.kind == "word" and unit.text.lower() in UNITS


def read_interval(parser: ExpressionCursor, start: int) -> Call:
    """INTERVAL '7 days', INTERVAL '7' DAY, INTERVAL 7 DAY, INTERVAL (n) DAY."""
    parser.index += 1
    token = parser.token
    if token.kind == "text":
        parser.index += 1
        number: Scalar | str = token.text
    else:
        number = parser.scalar(Precedence.SIGN)
    unit = UNITS.get(parser.token.text.lower()) if parser.token.kind == "word" else None
    if unit is not None and (not isinstance(number, str) or not any(c.isalpha() for c in number)):
        parser.index += 1
    elif isinstance(number, str):
        unit = None
    else:
        parser.refuse_unexpected("DAY, MONTH or another unit")
    return build_interval(number, unit, parser.since(start))


def read_clock(parser: ExpressionCursor, start: int) -> Literal:
    """The declared present: CURRENT_DATE is its day, and NOW() its time, which is midnight unless declared."""
    name = parser.token.text.lower()
    end = parser.closing[start + 1] if parser.after() == "(" else start
    if parser.today is None:
        raise refuse_unknown_function(name, parser.through(start, end))
    parser.index += 1
    if parser.accept("("):
        if parser.token.kind == "number":  # CURRENT_TIMESTAMP(0)
            parser.index += 1
        parser.expect(")")
    at = parser.since(start)
    return Literal(day_of_clock(parser.today) if name in CLOCK_DATES else time_of_clock(parser.today), at)


def read_number(parser: ExpressionCursor, text: str, start: int) -> int | Fraction:
    """The number that a token writes, of bounded length."""
    if text.isdigit():
        if len(text) > 38:
            raise refuse_unsupported("a number of more than 38 digits", "use a smaller number", parser.since(start))
        return int(text)
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > 40 or len(exponent) > 4 or abs(int(exponent or 0)) > 300:
        raise refuse_unsupported("a number as large as this", "write it as 12, 0.5 or 1e6", parser.since(start))
    return Fraction(text)
