"""The select list: its expressions, and a name for each."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.dialects import QuestionDialect
from tacit.query.from_parser import FromParser
from tacit.query.functions import Function
from tacit.query.nodes import (
    STAR,
    Aggregate,
    Call,
    ColumnReference,
    Scalar,
    ScalarSubquery,
    SelectItem,
    Window,
    is_star,
    walk,
)
from tacit.query.refusals import MAX_ITEMS, RESERVED, refuse_too_large, refuse_unsupported, to_printable


def read_select_list(parser: FromParser) -> tuple[SelectItem, ...]:
    """The select list."""
    items: list[_Item] = []
    while True:
        start = parser.index
        if len(items) == MAX_ITEMS:
            raise refuse_too_large(f"more than {MAX_ITEMS:,} columns", parser.here())
        scalar = _read_star(parser) or parser.count_parts(parser.scalar())
        given = None if is_star(scalar) else _read_given_name(parser)
        items.append(_Item(scalar, given, parser.since(start)))
        if not parser.accept(",") or parser.sees("FROM"):
            _refuse_missing_comma(parser)
            return _name_items(items)


def _refuse_missing_comma(parser: FromParser) -> None:
    """Refuse SELECT ward COUNT(*), in which the name of a function was read as that of the column before it."""
    first = parser.index - 1 if parser.sees("(") else parser.index
    call = parser.tokens[first]
    if call.kind == "word" and call.key not in RESERVED and parser.tokens[first + 1].key == "(":
        what = f"a comma is missing before {to_printable(call.text)}"
        at, fix = parser.through(first, first), "write a comma between two columns"
        raise Refused(ErrorCode.SYNTAX, what, at=at, fix=fix, instead=f", {at.written}")


def _read_star(parser: FromParser) -> ColumnReference | None:
    """A column called * stands for all of them, of a subquery or of a table in it."""
    start, table = parser.index, None
    if parser.after() == "." and parser.after(2) == "*":
        table = parser.name("a table")
        parser.index += 1
    if not parser.accept("*"):
        return None
    at = parser.since(start)
    if parser.sees("REPLACE", "RENAME", "LIKE", "ILIKE"):
        raise refuse_unsupported(f"* {parser.token.key}", "list the columns", parser.through(start, parser.index))
    without: tuple[str, ...] | None = None
    if parser.accept("EXCLUDE") or parser.accept("EXCEPT"):
        without = parser.column_names() if parser.sees("(") else (parser.name("a column"),)
    return ColumnReference(STAR, table, at, without)


def _read_given_name(parser: FromParser) -> str | None:
    token = parser.token
    is_quoted = parser.dialect is QuestionDialect.MYSQL
    if parser.accept("AS"):
        token = parser.token
        if token.kind == "word" or (is_quoted and token.kind == "text"):
            parser.index += 1
            return token.text
        return parser.name("a name")
    if token.kind == "name" or (token.kind == "word" and token.key not in RESERVED):
        return parser.name("a name")
    return None


def find_output(parser: FromParser, number: object, outputs: tuple[SelectItem, ...], start: int) -> SelectItem:
    """The column that a number in GROUP BY or ORDER BY stands for."""
    if any(is_star(output.scalar) for output in outputs):
        raise refuse_unsupported("the number of a column beside *", "write its name", parser.since(start))
    if not isinstance(number, int) or not 1 <= number <= len(outputs):
        fix = f"the select list has columns 1 to {len(outputs)}"
        at = parser.since(start)
        raise Refused(ErrorCode.UNKNOWN_COLUMN, f"there is no column number {at.words:.20}", at=at, fix=fix)
    return outputs[number - 1]


def has_aggregate(scalar: Scalar) -> bool:
    """Whether a scalar holds an aggregate, or what is computed over a window of them."""
    return any(isinstance(node, Aggregate | Window | ScalarSubquery) for node in walk(scalar))


class _Item(NamedTuple):
    """An item of the select list: what it is, the name it was given, and where it stands."""

    scalar: Scalar
    given: str | None
    at: SourceLocation


def _name_items(items: list[_Item]) -> tuple[SelectItem, ...]:
    """Items with names. One that was given none gets one that is free; numbers go on, so none is tried twice."""
    taken: dict[str, int] = {}  # names in small letters, and the last number tried after each
    for item in items:
        if item.given is not None and item.given.lower() in taken:
            raise _refuse_same_name(item.given, item.at)
        if item.given is not None:
            taken[item.given.lower()] = 1
    given = set(taken)
    outputs = []
    for position, item in enumerate(items, start=1):
        name = item.given or _choose_name(item.scalar, position)
        if item.given is None and not is_star(item.scalar):
            if isinstance(item.scalar, ColumnReference) and name.lower() in given:
                raise _refuse_same_name(name, item.at)
            wanted = name
            while name.lower() in taken:
                taken[wanted.lower()] += 1
                name = f"{wanted}_{taken[wanted.lower()]}"
            taken[name.lower()] = 1
        outputs.append(SelectItem(name, item.scalar))
    return tuple(outputs)


def _refuse_same_name(name: str, at: SourceLocation) -> Refused:
    what, fix = f"two columns are named {to_printable(name)}", "give each column a name of its own"
    return Refused(ErrorCode.AMBIGUOUS, what, at=at, fix=fix)


def _choose_name(scalar: Scalar, position: int) -> str:
    """The name of a column that was given none."""
    match scalar:
        case ColumnReference(name) | Call(Function.CAST, (ColumnReference(name), _)):
            return name
        case Aggregate("count", None):
            return "count"
        case Window(function, _, aggregate):
            return function if aggregate is None else _choose_name(aggregate, position)
        case Aggregate(function, argument, distinct, share):
            word = "median" if share == Fraction(1, 2) else f"{function}_distinct" if distinct else function
            return f"{word}_{argument.name}" if isinstance(argument, ColumnReference) else word
    return f"column_{position}"
