"""All aggregates, and the reading of a question in which they may stand.

>>> read_question("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").outputs[1].name
'n'
"""

from __future__ import annotations

import datetime

from tacit.aggregates.base import AggregateFunction
from tacit.aggregates.condition import CONDITION
from tacit.aggregates.correlation import CORRELATION
from tacit.aggregates.count import COUNT
from tacit.aggregates.covariance import COVARIANCE
from tacit.aggregates.extreme_by import EXTREME_BY
from tacit.aggregates.geometric_mean import GEOMETRIC_MEAN
from tacit.aggregates.mean import AVG
from tacit.aggregates.quantile import QUANTILE, QUANTILE_LIST
from tacit.aggregates.regression import REGRESSION
from tacit.aggregates.shape import SHAPE
from tacit.aggregates.top_k import MODE, TOP_K
from tacit.aggregates.total import SUM
from tacit.aggregates.variance import VARIANCE
from tacit.query.dialects import QuestionDialect
from tacit.query.nodes import Aggregate, Query
from tacit.query.parser import parse

AGGREGATES = (
    COUNT,
    SUM,
    AVG,
    VARIANCE,
    QUANTILE,
    QUANTILE_LIST,
    MODE,
    TOP_K,
    COVARIANCE,
    CORRELATION,
    REGRESSION,
    GEOMETRIC_MEAN,
    SHAPE,
    CONDITION,
    EXTREME_BY,
)
SYNTAX = {name: syntax for aggregate in AGGREGATES for name, syntax in aggregate.syntax.items()}
_BY_FUNCTION = {function: aggregate for aggregate in AGGREGATES for function in aggregate.functions}


def read_question(
    text: str, today: datetime.date | None = None, dialect: QuestionDialect = QuestionDialect.POSTGRES
) -> Query:
    """Return the question that a text asks, or raise Refused with the place and the fix.

    `today` is what CURRENT_DATE stands for, and `dialect` says what a name means that dialects have for several things.
    """
    return parse(text, SYNTAX, today, dialect)


def function_of(aggregate: Aggregate) -> AggregateFunction:
    """Return the aggregate function that a node of a question names."""
    return _BY_FUNCTION[aggregate.function]
