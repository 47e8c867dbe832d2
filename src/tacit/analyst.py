"""An analyst: what may be asked of a curator, in this process or served elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.answer import Answer
from tacit.answers.explanation import Explanation
from tacit.answers.schema import Schema
from tacit.arithmetic import Number
from tacit.plan.question import Question
from tacit.query import ibis_expressions
from tacit.query.ibis_expressions import IbisExpression
from tacit.query.parameters import bind_parameters

if TYPE_CHECKING:
    import ibis

    from tacit.learn.base import PrivateLinearModel

Model = TypeVar("Model", bound="PrivateLinearModel")


class Analyst(ABC):
    """Asks questions for one analyst; `Curator.analyst` and `tacit.connect` make one.

    See Also
    --------
    tacit.open : A curator in this process.
    tacit.connect : An analyst of a curator that is served elsewhere.

    Examples
    --------
    >>> from tacit.demo.survey import open_survey
    >>> with open_survey() as curator:
    ...     ada = curator.analyst("ada")
    ...     answer = ada.ask("SELECT region, COUNT(*) AS n FROM survey GROUP BY region", epsilon=0.5)
    ...     print(ada.budget)
    ada has spent epsilon 0.5 of 1, with 0.5 left; all analysts together epsilon 0.5 of 3, with 2.5 left
    >>> answer["n"]
    [998, 1002]
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Who asks: a name of the policy's [analysts], whose budget is charged."""

    def ask(
        self,
        sql: str | IbisExpression,
        parameters: Sequence[Any] = (),
        *,
        epsilon: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        request: str = "",
        dialect: str | None = None,
    ) -> Answer:
        """Answer a question with differential privacy. The same question at the same epsilon again is free.

        Parameters
        ----------
        sql : str or ibis.Expr
            One SELECT, in the dialect of the guide's "What SQL is allowed"; or an Ibis expression.
        parameters : sequence, optional
            Values for $1, $2 and so on in the text: numbers, texts, dates, conditions, None, or a list of these for
            `= ANY($1)`. They are written as literals, never read as SQL; a text beside a date is a date.
        epsilon : number, optional
            Privacy loss to spend, above 0. Exactly one of `epsilon` and `within` is given.
        within : mapping of str to number, optional
            The accuracy to reach: each named count or sum is within so much of its true value. The least epsilon that
            reaches it is spent. Where a clip is chosen from the data, that is charged first.
        confidence : number, default 0.95
            Probability with which each interval covers, from 0.01 to below 1; with `within`, with which it is reached.
        request : str, optional
            Names the question, so that asking again after a lost connection is the same one, charged once. A question
            to a server has a name of its own by default.
        dialect : str, optional
            Whose SQL it is where dialects differ: "postgres", "duckdb", "bigquery", "snowflake" or "mysql". By default
            the policy's.

        Returns
        -------
        Answer
            Estimates with intervals, and the receipt.

        Raises
        ------
        Refused
            Before any data is read; nothing is charged. After a clip was charged for `within`, the text says so.
        ParameterError
            If a parameter is out of range; nothing is charged.
        Failed
            After the charge, which stays; nothing was released.
        LedgerError
            If the ledger, or the server, cannot be reached.

        Examples
        --------
        >>> from tacit.demo.survey import open_survey
        >>> with open_survey() as curator:
        ...     ada = curator.analyst("ada")
        ...     by_epsilon = ada.ask("SELECT COUNT(*) AS n FROM survey", epsilon=0.5)
        ...     by_accuracy = ada.ask("SELECT SUM(hours) AS h FROM survey", within={"h": 1000})
        >>> by_epsilon.value, by_epsilon.interval("n")
        (1998, [(1992, 2004)])
        >>> by_accuracy.receipt.to_dict()["charged_epsilon"]
        '0.2396'
        """
        return self._ask(_make_question(sql, parameters, epsilon, within, confidence, request, dialect))

    @abstractmethod
    def _ask(self, question: Question) -> Answer: ...

    def explain(
        self,
        sql: str | IbisExpression,
        parameters: Sequence[Any] = (),
        *,
        epsilon: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        dialect: str | None = None,
    ) -> Explanation:
        """Explain what a question would cost and how accurate its answer would be. Free: no data is read.

        Parameters
        ----------
        sql : str or ibis.Expr
            One SELECT, in the dialect of the guide's "What SQL is allowed"; or an Ibis expression.
        parameters : sequence, optional
            Values for $1, $2 and so on in the text: numbers, texts, dates, conditions, None, or a list of these for
            `= ANY($1)`. They are written as literals, never read as SQL; a text beside a date is a date.
        epsilon : number, optional
            Privacy loss to spend, above 0. Exactly one of `epsilon` and `within` is given.
        within : mapping of str to number, optional
            The accuracy to reach: each named count or sum is within so much of its true value. The least epsilon that
            reaches it is spent.
        confidence : number, default 0.95
            Probability with which each interval covers, from 0.01 to below 1; with `within`, with which it is reached.
        dialect : str, optional
            Whose SQL it is where dialects differ: "postgres", "duckdb", "bigquery", "snowflake" or "mysql". By default
            the policy's.

        Returns
        -------
        Explanation
            The epsilon, the noise and the error of each column. Its `refused` is why asking would be refused now,
            where it costs more than what is left.

        Raises
        ------
        Refused
            If the question could not be answered at any epsilon.
        ParameterError
            If a parameter is out of range.
        LedgerError
            If the ledger, or the server, cannot be reached.

        Examples
        --------
        >>> from tacit.demo.survey import open_survey
        >>> with open_survey() as curator:
        ...     print(curator.analyst("ada").explain("SELECT COUNT(*) AS n FROM survey", epsilon=0.5))
        costs epsilon 0.5, delta 0; protects each row (add-remove)
        the answer has one row
          COUNT(*): one row moves it by 1; discrete Laplace noise of scale 2
          n: within 6 of the bounded value, 95% of the time
          Error bars are about the noise; what the bounds cut off is not in them.
        """
        return self._explain(_make_question(sql, parameters, epsilon, within, confidence, "", dialect))

    @abstractmethod
    def _explain(self, question: Question) -> Explanation: ...

    def fit(
        self,
        estimator: Model,
        sql: str | IbisExpression,
        *,
        target: str,
        epsilon: Number,
        delta: Number | None = None,
        request: str = "",
    ) -> Model:
        """Fit a model with differential privacy, from one row of each unit. The same fit again is free.

        Parameters
        ----------
        estimator : estimator of tacit.learn
            What to fit, such as `LogisticRegression()`; it is copied, not changed.
        sql : str or ibis.Expr
            Selects the columns of rows to learn from, the target among them.
        target : str
            The column to predict.
        epsilon : number
            Privacy loss to spend, above 0.
        delta : number, optional
            By default the policy's for one question.
        request : str, optional
            Names the fit, so that repeating it after a lost connection is the same one, charged once. A fit by a server
            has a name of its own by default.

        Returns
        -------
        estimator of tacit.learn
            A fitted copy, of the class of `estimator`. Its `encoding_.table` reads rows of your own as the model does.

        Raises
        ------
        Refused
            Before any data is read; nothing is charged.
        ParameterError
            If a parameter is out of range, or the estimator is not one of `tacit.learn`; nothing is charged.
        Failed
            After the charge, which stays; nothing was released.
        LedgerError
            If the ledger, or the server, cannot be reached.
        """
        text, dialect = ibis_expressions.to_sql(sql)
        return self._fit(estimator, text, target, epsilon, delta, request, dialect)

    @abstractmethod
    def _fit(
        self,
        estimator: Model,
        text: str,
        target: str,
        epsilon: Number,
        delta: Number | None,
        request: str,
        dialect: str | None,
    ) -> Model: ...

    def table(self, name: str) -> ibis.Table:
        """Return a table as Ibis has it, to build questions with: its names and types, and no data.

        Parameters
        ----------
        name : str
            A name of the policy's [tables].

        Returns
        -------
        ibis.Table
            `ask` takes expressions of it. Needs ibis.

        Raises
        ------
        Refused
            If the policy has no such table that this analyst may name.
        """
        return ibis_expressions.make_table(name, self.schema.table_types(name))

    @property
    @abstractmethod
    def budget(self) -> AnalystBudget:
        """What is spent and what is left."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """What this analyst may ask about: tables, columns, bounds and keys, with the profile that was released last.

        What the policy keeps from this analyst is not in it.
        """


def _make_question(
    sql: str | IbisExpression,
    parameters: Sequence[Any],
    epsilon: Number | None,
    within: Mapping[str, Number] | None,
    confidence: Number,
    request: str,
    dialect: str | None,
) -> Question:
    """The question, with parameters written out."""
    text, read_in = ibis_expressions.to_sql(sql, dialect)
    if parameters:
        text = bind_parameters(text, parameters)
    return Question(text, epsilon, within, confidence, request, read_in)
