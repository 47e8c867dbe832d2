"""The cursor of an expression: the tokens of a question, what its names mean, and how to read what stands inside.

Each kind of operand, operator and call is read by functions in a module of its own. They take this cursor, and come
back to the whole grammar through its `scalar`, `query` and `subquery`.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod

from tacit.query.cursor import TokenCursor
from tacit.query.dialects import QuestionDialect
from tacit.query.function_calls import Aggregates
from tacit.query.lexer import BIGQUERY, MYSQL, QUESTION, SNOWFLAKE
from tacit.query.nodes import Query, Scalar, UnionAll
from tacit.query.operators import Precedence

SUBQUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES"})  # words that begin a query in brackets


_LEXICAL = {
    QuestionDialect.BIGQUERY: BIGQUERY,
    QuestionDialect.SNOWFLAKE: SNOWFLAKE,
    QuestionDialect.MYSQL: MYSQL,
}


class ExpressionCursor(TokenCursor, ABC):
    """The tokens of a question, and what the functions that read its expressions share."""

    def __init__(self, text: str, aggregates: Aggregates, dialect: QuestionDialect) -> None:
        super().__init__(text, _LEXICAL.get(dialect, QUESTION))
        self.aggregates = aggregates
        self.level = 0
        self.today: datetime.date | None = None  # what the policy declares as the present day, or time
        self.dialect = dialect
        self.notes: list[str] = []  # what an answer says of names that dialects have for several things

    @abstractmethod
    def scalar(self, least: int = Precedence.OR) -> Scalar:
        """An expression, of operators that bind at least so much."""

    @abstractmethod
    def query(self) -> Query | UnionAll:
        """A query in brackets."""

    @abstractmethod
    def subquery(self) -> Query | UnionAll:
        """A query in brackets inside an expression."""
