"""All aggregates, by the function that a question names."""

from __future__ import annotations

from tacit.aggregates.base import AggregateFunction
from tacit.aggregates.count import COUNT
from tacit.aggregates.mean import AVG
from tacit.aggregates.quantile import QUANTILE
from tacit.aggregates.top_k import MODE, TOP_K
from tacit.aggregates.total import SUM
from tacit.aggregates.variance import VARIANCE
from tacit.query.nodes import Aggregate

_ALL = (COUNT, SUM, AVG, VARIANCE, QUANTILE, MODE, TOP_K)
_BY_FUNCTION = {function: aggregate for aggregate in _ALL for function in aggregate.functions}


def function_of(aggregate: Aggregate) -> AggregateFunction:
    """Return the aggregate function that a node of a question names."""
    return _BY_FUNCTION[aggregate.function]
