"""ARG_MAX(x, y) and ARG_MIN(x, y): the x of the released row whose y is largest or least.

Over rows of people they are refused: they would show a value of a single row.
"""

from __future__ import annotations

from typing import NoReturn

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import AggregateFunction, BoundAggregate, Measurement
from tacit.errors import ErrorCode, Refused
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments
from tacit.query.nodes import Aggregate
from tacit.query.types import Type

_NAMES = {"arg_max": "arg_max argmax max_by", "arg_min": "arg_min argmin min_by"}


def _read(function: str) -> AggregateSyntax:
    def read(written: CallSyntax) -> Aggregate:
        if written.star or len(written.arguments) != 2:
            raise refuse_arguments(written, "", "give it a value, and what it is largest or least by")
        value, ordered = written.arguments
        return Aggregate(function, value, others=(ordered,))

    return AggregateSyntax(read, usage="{}(x, n)")


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    what = f"{quote_aggregate(bound.aggregate)} over rows is not answered: it would show a value of a single row"
    fix = "group and count in a subquery, and use it on what comes out"
    raise Refused(ErrorCode.UNKNOWN_FUNCTION, what, at=bound.aggregate.at, fix=fix)


def _estimator(bound: BoundAggregate, measured: tuple[Measurement, ...], positions: list[int]) -> NoReturn:
    raise AssertionError("nothing is measured")


EXTREME_BY = AggregateFunction(
    syntax={name: _read(function) for function, names in _NAMES.items() for name in names.split()},
    functions=tuple(_NAMES),
    result_type=lambda bound: bound.required_argument.type or Type.INT,
    measure=_measure,
    estimator=_estimator,
)
