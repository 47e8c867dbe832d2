"""The bodies of requests and errors, as the OpenAPI has them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from tacit.errors import ParameterError
from tacit.plan.question import Question
from tacit.query.parameters import MOST_PARAMETERS, bind_parameters

_DECIMAL = re.compile(r"\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,2})?|\d{1,40}/\d{1,40}", re.ASCII)

Finite = Annotated[StrictFloat, Field(allow_inf_nan=False)]  # what comes back is JSON, which has no other numbers
Scalar = StrictBool | StrictInt | Finite | Annotated[str, Field(max_length=1000)] | None
Parameter = Scalar | Annotated[list[Scalar], Field(max_length=10_000)]
Number = StrictInt | StrictFloat | Annotated[str, Field(max_length=90, examples=["1/3"])]


class QuestionBody(BaseModel):
    """A question and its privacy loss: an epsilon, or how close its counts and sums must be."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}]},
    )

    sql: str = Field(description="One SELECT.")
    epsilon: Number | None = Field(None, description="The privacy loss, as a number or as exact text such as 1/3.")
    within: dict[str, Number] | None = Field(
        None, description="In place of an epsilon: for each named count or sum, how close it must be."
    )
    parameters: list[Parameter] = Field(
        default_factory=list,
        max_length=MOST_PARAMETERS,
        description="Values for $1, $2 and so on, which are never read as SQL; a list is for = ANY($1). "
        "A text beside a date is a date.",
    )
    confidence: Number = Field(0.95, description="How often the intervals hold.")
    dialect: str | None = Field(
        None, max_length=20, description="Whose SQL it is where dialects differ; the policy's by default."
    )

    def question(self, request: str = "") -> Question:
        """The question with its numbers, exact text among them."""
        within = None if self.within is None else {name: parse_number("within", n) for name, n in self.within.items()}
        epsilon, confidence = parse_number("epsilon", self.epsilon), parse_number("confidence", self.confidence)
        sql = bind_parameters(self.sql, self.parameters) if self.parameters else self.sql
        return Question(sql, epsilon, within, confidence, request, self.dialect)


class FitBody(BaseModel):
    """A model to fit: an estimator of tacit.learn by name, its parameters, and the rows to learn from."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "estimator": "LogisticRegression",
                    "sql": "SELECT age, cost, paid FROM visits",
                    "target": "paid",
                    "epsilon": 1,
                }
            ]
        },
    )

    estimator: str = Field(
        max_length=60,
        description="The class, such as LogisticRegression or HistGradientBoostingClassifier.",
    )
    parameters: dict[str, Parameter] = Field(default_factory=dict, description="Those that differ from the defaults.")
    sql: str = Field(description="Selects the columns of rows to learn from, the target among them.")
    target: str = Field(max_length=200, description="The column to predict.")
    epsilon: Number
    delta: Number | None = Field(None, description="By default the policy's for one question.")
    dialect: str | None = Field(None, max_length=20, description="Whose SQL it is; the policy's by default.")


class ErrorBody(BaseModel):
    """What is wrong, where, and how to fix it."""

    code: str
    kind: str
    what: str
    at: dict[str, Any] | None
    fix: str
    suggestion: str | None = Field(None, description="The whole question with the fix put in, where the fix is code.")


class ErrorResponse(BaseModel):
    """An error."""

    error: ErrorBody


def parse_number(name: str, value: int | float | str | None) -> Any:
    """A number as JSON has it, or exact text as a fraction."""
    if not isinstance(value, str):
        return value
    if not _DECIMAL.fullmatch(value):
        raise ParameterError(name, "is not a number", fix=f'"{name}": 0.5, or exact text such as "1/3"')
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise ParameterError(name, "divides by zero", fix=f'"{name}": 0.5, say') from None
