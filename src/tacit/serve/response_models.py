"""The bodies of responses, as the OpenAPI has them, so that generated clients return types.

They describe what `to_dict` of an answer, an explanation, a budget, a schema and a receipt writes. Nothing is made or
checked by them when a request is served.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

Plain = str | int | float | bool | None | list[Any]


class EstimateBody(BaseModel):
    """A noisy value with its interval."""

    value: Plain
    low: int | float | None = Field(description="The low end of the interval; null where there is none.")
    high: int | float | None
    bars: str = Field(description='What the interval is: "exact", or "approximate" where it is computed from several.')


class ReceiptBody(BaseModel):
    """What an answer cost, and the proof that it was charged. Epsilons are exact decimal text."""

    entry: int = Field(description="Number of the charge in the ledger.")
    time: str = Field(description="When the charge was made, in UTC.")
    who: str
    request: str = Field(description="The Idempotency-Key under which it was asked, if there was one.")
    key: str = Field(description="What tells the question from others: the same question has the same key.")
    charged_epsilon: str = Field(description="What showing the answer cost this time; 0 for a repeat.")
    answer_epsilon: str
    answer_delta: float | str
    answer_rho: float | str
    repeat: bool
    remaining_epsilon: str
    remaining_epsilon_overall: str
    head: str = Field(description="Hash of the entry, over all entries before it.")
    signature: str
    clip_entry: int | None = Field(None, description="Where a clip was chosen and charged first, its entry.")
    clip_charged_epsilon: str | None = Field(None, description="What the clip cost this time.")
    clip_epsilon: str | None = None
    both_charged_epsilon: str | None = Field(None, description="What clip and answer cost this time together.")
    both_epsilon: str | None = None


class StoredReceiptBody(BaseModel):
    """What the ledger says of a charge or a repeat, signed again."""

    entry: int
    time: str
    who: str
    request: str
    key: str
    charged_epsilon: str
    spent_epsilon: str = Field(description="What the analyst had spent, after it.")
    repeat: bool
    answered: bool
    head: str
    signature: str


class ColumnTypeBody(BaseModel):
    """The type of a column of an answer."""

    name: str
    type: str


class AnswerBody(BaseModel):
    """The released table."""

    columns: list[str]
    types: list[ColumnTypeBody]
    rows: list[dict[str, EstimateBody | Plain]] = Field(description="A key is its value, an estimate has an interval.")
    confidence: float
    notes: list[str]
    receipt: ReceiptBody


class NoiseBody(BaseModel):
    """One thing that is measured or chosen, and how."""

    of: str
    law: str
    sensitivity: float | None
    scale: float | None


class ColumnAccuracyBody(BaseModel):
    """How accurate a column would be."""

    name: str
    error: float | None = Field(description="The half-width of a count's or a sum's interval.")
    error_by_rows: dict[str, float] = Field(description="That of a mean, by the rows of its group.")
    said: str


class RefusalBody(BaseModel):
    """Why asking would be refused now."""

    code: str
    what: str
    fix: str


class ExplanationBody(BaseModel):
    """What a question would cost and how accurate its answer would be."""

    epsilon: float
    delta: float
    unit: str
    neighbors: str
    groups: int | None
    keys: str
    confidence: float
    noise: list[NoiseBody]
    columns: list[ColumnAccuracyBody]
    notes: list[str]
    refused: RefusalBody | None
    may_be_fewer: bool
    most_rows: int | None
    epsilon_by_rows: dict[str, float] = Field(
        default={}, description="That of both steps, by the rows that a clip lets count, where it is chosen first."
    )
    text: str = Field(description="The same in words.")


class WeightsBody(BaseModel):
    """The released weights, on scaled columns, as hexadecimal digits of doubles."""

    shape: list[int]
    weights: list[str]


class FeatureBody(BaseModel):
    """How a column is read: a number between bounds, or an indicator for each of its keys."""

    name: str
    lower: float
    upper: float
    values: list[str | int | bool] | None
    other: str | int | bool | None
    days: bool


class FitResultBody(BaseModel):
    """A fitted model, as the client of Tacit makes it again."""

    parameters: dict[str, Any]
    features: list[FeatureBody]
    method: str
    released: WeightsBody
    receipt: dict[str, Any] = Field(description="With all amounts in grains.")


class AmountBody(BaseModel):
    """What is spent, capped and left, as exact decimal text."""

    spent: str
    cap: str
    remaining: str


class StandingBody(AmountBody):
    """Of epsilon, and of delta."""

    delta: AmountBody
    month: str | None = Field(None, description="In which it counts, where the cap refreshes every month.")


class BudgetBody(BaseModel):
    """What an analyst, and all of them together, have spent and have left."""

    who: str
    own: StandingBody
    overall: StandingBody
    remaining: float = Field(description="The epsilon that one more question may cost.")
    grains: dict[str, list[list[int]]] = Field(description="Spent and cap of both filters, exactly.")
    text: str = Field(description="The same in words.")


class ColumnBody(BaseModel):
    """A column that may be named, in the words of a policy."""

    type: str
    lower: int | float | str | None = None
    upper: int | float | str | None = None
    step: int | float | None = None
    zone: str | None = None
    values: list[str | int | bool] | None = None
    other: str | int | bool | None = None
    unique: bool | None = None
    nullable: bool | None = None


class UnitThroughBody(BaseModel):
    """How a table reaches its unit: `column` names a row of `table` by its unique `key`."""

    column: str
    table: str
    key: str


class TableBody(BaseModel):
    """A table that may be asked about."""

    columns: dict[str, ColumnBody]
    public: bool | None = None
    unique: list[list[str]] | None = None
    unit: str | None = Field(None, description="Whose rows they are: a column, or row.")
    unit_through: UnitThroughBody | None = None
    unit_hidden: bool = False
    people: str | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_rows: int | str | dict[str, int] | None = None


class SchemaBody(BaseModel):
    """What may be asked about."""

    neighbors: str
    tables: dict[str, TableBody]
    profile: dict[str, Any] | None = Field(None, description="What was released of the columns for everyone.")
    released_profile: dict[str, Any] | None = Field(None, description="The same as it was released.")
    text: str = Field(description="The same in words.")
