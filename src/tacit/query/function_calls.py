"""Functions by the names SQL has for them, made of the few that there are.

What a name stands for is written once, in `dialect_names.py` and the tables of builders: NULLIF, IF and STARTS_WITH
become CASE and LIKE, FILTER becomes a CASE inside the aggregate. So the planner and the engines know fewer functions
than an analyst does. Aggregates say themselves how they are written: the parser is handed their syntax.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tacit.errors import Refused
from tacit.query import date_calls, number_calls, text_calls
from tacit.query.call_syntax import Aggregates as Aggregates
from tacit.query.call_syntax import AggregateSyntax as AggregateSyntax
from tacit.query.call_syntax import Build, check_count, count_arguments
from tacit.query.call_syntax import CallSyntax as CallSyntax
from tacit.query.call_syntax import refuse_usage as refuse_usage
from tacit.query.dialect_names import ALIASES, PLAIN
from tacit.query.dialects import STRICT_DIALECTS, QuestionDialect
from tacit.query.functions import IS_CONDITION, Function
from tacit.query.nodes import Aggregate, Call, Case, Literal, Scalar
from tacit.query.refusals import MAX_ITEMS, refuse_too_large, refuse_unsupported

BUILDERS: dict[str, Build] = {**number_calls.BUILDERS, **text_calls.BUILDERS, **date_calls.BUILDERS}
_ADDS_CONDITIONS = frozenset({QuestionDialect.DUCKDB, QuestionDialect.MYSQL})
_FROM_SUNDAY = {"week": "WEEKOFYEAR(d)", "yearweek": "DATE_FORMAT(d, '%x%v')"}  # what MySQL means by them
FUNCTION_NAMES = frozenset({*PLAIN, *BUILDERS})


def find_function(name: str, aggregates: Aggregates) -> str | None:
    """The name, in small letters, under which a function is known, or None: its own, or the one it is an alias of."""
    for known in (name, ALIASES.get(name, name)):
        if known in FUNCTION_NAMES or known in aggregates:
            return known
    return None


def is_known_function(name: str, aggregates: Aggregates) -> bool:
    """Whether a function of this name, in small letters, is answered."""
    return find_function(name, aggregates) is not None


def build_call(written: CallSyntax, aggregates: Aggregates) -> Scalar:
    """What a call means, or Refused."""
    known = find_function(written.name, aggregates)
    assert known is not None  # the parser has asked
    if known in aggregates:
        return _aggregate(written, aggregates[known])
    if written.star or written.distinct or written.within is not None or written.where is not None:
        raise _only_aggregates(written)
    if len(written.arguments) > MAX_ITEMS:
        raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", written.at)
    if known in PLAIN:
        function, least, most, usage = PLAIN[known]
        check_count(written, least, most, usage)
        if written.dialect is QuestionDialect.MYSQL and written.name in _FROM_SUNDAY:
            fix = f"count ISO weeks: {_FROM_SUNDAY[written.name]}"
            raise refuse_unsupported(f"{written.name.upper()} by weeks that start on Sunday", fix, written.at)
        if written.dialect is QuestionDialect.MYSQL and written.name == "length":
            raise refuse_usage("LENGTH, which counts bytes in MySQL,", written, "CHAR_LENGTH(x)", "use CHAR_LENGTH")
        found = Call(function, written.arguments, written.at)
        is_strict = function in {Function.LEAST, Function.GREATEST} and written.dialect in STRICT_DIALECTS
        return _null_where_one_is(found) if is_strict else found
    return BUILDERS[known](written)


def _null_where_one_is(call: Call) -> Scalar:
    """A call that is NULL where one of its arguments is, which it would leave out."""
    absent = [Call(Function.IS_NULL, (each,), call.at) for each in call.arguments if not isinstance(each, Literal)]
    if not absent:
        return call
    condition = absent[0] if len(absent) == 1 else Call(Function.OR, tuple(absent), call.at)
    return Case(((condition, Literal(None)),), call, call.at)


def _only_aggregates(written: CallSyntax) -> Refused:
    if written.star:
        what = "*"
    elif written.distinct:
        what = "DISTINCT"
    else:
        what = "FILTER" if written.within is None else "WITHIN GROUP"
    return refuse_unsupported(f"{what} in {written.name.upper()}", "leave it out: only aggregates take it", written.at)


def _aggregate(written: CallSyntax, syntax: AggregateSyntax) -> Aggregate:
    """An aggregate. FILTER (WHERE c) is a CASE around the argument: all of them leave NULLs out.

    So AGG(x) FILTER (WHERE c) is AGG(CASE WHEN c THEN x END), and COUNT(*) FILTER (WHERE c) counts a constant.
    """
    name = written.name.upper()
    if written.distinct and not syntax.takes_distinct:
        plain = re.sub(r"\(\s*DISTINCT\s*", "(", written.at.written, count=1, flags=re.IGNORECASE)
        raise refuse_unsupported(f"{name}(DISTINCT ...)", f"count every row: {plain}", written.at, plain)
    if written.within is not None and not syntax.takes_order:
        raise refuse_usage(f"WITHIN GROUP in {name}", written, syntax.usage.format(name), "leave it out")
    if name in {"SUM", "AVG"} and written.dialect in _ADDS_CONDITIONS:
        written = replace(written, arguments=tuple(_as_number(each, name) for each in written.arguments))
    found = syntax.read(written)
    if written.where is None:
        return replace(found, at=written.at)
    where, chosen = written.where, Literal(1) if found.argument is None else found.argument
    match chosen:
        case Case(((condition, value),), Literal(None), at) if at == written.at:  # which COUNT_IF(c) has made
            where, chosen = Call(Function.AND, (condition, where), written.at), value
    return replace(found, argument=Case(((where, chosen),), Literal(None), written.at), at=written.at)


def _as_number(argument: Scalar, name: str) -> Scalar:
    """A condition as the number that it is in some dialects: one where it holds, and otherwise zero."""
    if not isinstance(argument, Call) or argument.function not in IS_CONDITION:
        return argument
    if name == "SUM":
        return Case(((argument, Literal(1)),), Literal(0), argument.at)
    opposite = Call(Function.NOT, (argument,), argument.at)
    return Case(((argument, Literal(1)), (opposite, Literal(0))), Literal(None), argument.at)


def single_operand(written: CallSyntax) -> Scalar:
    """The one argument of an aggregate; where it takes an order, it may stand in WITHIN GROUP."""
    name = written.name.upper()
    if written.within is not None and not written.arguments and not written.star:
        return written.within[0]
    if written.star or written.within is not None or len(written.arguments) != 1:
        found = "*" if written.star else count_arguments(len(written.arguments))
        if written.within is not None:
            found += " and WITHIN GROUP"
        raise refuse_unsupported(f"{name} of {found}", "give it one argument", written.at)
    return written.arguments[0]


def refuse_arguments(written: CallSyntax, usage: str, words: str) -> Refused:
    """The refusal of an aggregate with other arguments than it takes; `words` are for one that cannot be filled in."""
    found = "*" if written.star else count_arguments(len(written.arguments))
    return refuse_usage(f"{written.name.upper()} of {found}", written, usage, words)
