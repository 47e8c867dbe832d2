"""BOOL_OR(c) and BOOL_AND(c): whether a condition holds in any row, or in all of them, of one unit or of an answer.

Over the rows of several units they are refused: a single row decides them, so that noise would have to hide the whole
answer. How many rows there are says more, and has an interval.
"""

from __future__ import annotations

from typing import NoReturn

from tacit.aggregates.argument import quote_aggregate, quote_argument, quote_filter
from tacit.aggregates.base import AggregateFunction, BoundAggregate, Measurement
from tacit.errors import ErrorCode, Refused
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, single_operand
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Case, Literal, Scalar
from tacit.query.types import Type

_EXTREMES = {"bool_or": "max", "bool_and": "min"}
_NAMES = {"bool_or": "bool_or logical_or boolor_agg", "bool_and": "bool_and every logical_and booland_agg"}


def expand_condition(aggregate: Aggregate) -> Scalar | None:
    """Return BOOL_OR(c) as MAX of ones and zeros, compared with one, and BOOL_AND(c) as MIN; None for other aggregates.

    Rows where c is NULL are left out, and the value is NULL where all are.
    """
    if aggregate.function not in _EXTREMES or aggregate.argument is None:
        return None
    condition = aggregate.argument
    number = Case(((condition, Literal(1)), (Call(Function.NOT, (condition,)), Literal(0))), Literal(None))
    extreme = Aggregate(_EXTREMES[aggregate.function], number, at=aggregate.at)
    return Call(Function.EQUAL, (extreme, Literal(1)), aggregate.at)


def _read(function: str) -> AggregateSyntax:
    def read(written: CallSyntax) -> Aggregate:
        return Aggregate(function, single_operand(written))

    return AggregateSyntax(read, usage="{}(x > 0)", takes_distinct=True)


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    aggregate, inner = bound.aggregate, quote_argument(bound.aggregate)
    counted, filtered = inner if aggregate.function == "bool_or" else f"NOT ({inner})", quote_filter(aggregate)
    counted = counted if filtered is None else f"({filtered}) AND ({counted})"
    what = f"{quote_aggregate(aggregate)} over rows is not answered: a single row may decide it"
    instead = f"COUNT(*) FILTER (WHERE {counted})"
    fix = f"count the rows that decide it: {instead}"
    raise Refused(ErrorCode.UNKNOWN_FUNCTION, what, at=aggregate.at, fix=fix, instead=instead)


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> NoReturn:
    raise AssertionError("nothing is measured")


CONDITION = AggregateFunction(
    syntax={name: _read(function) for function, names in _NAMES.items() for name in names.split()},
    functions=tuple(_EXTREMES),
    result_type=lambda bound: Type.BOOL,
    measure=_measure,
    estimator=_estimator,
)
