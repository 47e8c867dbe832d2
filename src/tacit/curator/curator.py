"""The curator, and an analyst's view of it.

curator = tacit.open("clinic.toml")
ada = curator.analyst("ada")
ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tacit.accounting.filters import compute_limits
from tacit.answers.answer import Answer
from tacit.curator import ibis_expressions
from tacit.curator.admission import explain_question
from tacit.curator.ask import ask
from tacit.curator.views import AnalystBudget, Schema
from tacit.engines.base import Engine, TableEngine, TableSchema, Watched
from tacit.errors import DataError, ErrorCode, ParameterError, Refused
from tacit.ledger.budget import PUBLIC, AnalystLimit, BudgetLimits
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey
from tacit.ledger.witness import Witness
from tacit.plan.explain import Explanation
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import ROW_UNIT, LedgerLocation, Policy, UnitForeignKey
from tacit.sampling.bits import Bits, SystemBits

if TYPE_CHECKING:
    from tacit.curator.fit import EstimatorT

_log = logging.getLogger("tacit")
_log.addHandler(logging.NullHandler())  # silent unless the owner listens: its causes are not for analysts


def open(policy: str | os.PathLike[str] | Mapping[str, Any], data: Mapping[str, Any] | None = None) -> Curator:
    """A curator for a policy: a TOML file, or the same as a dict.

    `data` hands tables over in place of the policy's source: pandas, polars, Arrow or Spark tables by name.
    """
    loaded = load(policy)
    engine = open_engine(loaded, data)
    try:
        check_join_columns(loaded, engine)
        return Curator(loaded, engine, open_ledger(loaded), SystemBits())
    except BaseException:
        engine.close()
        raise


def open_engine(policy: Policy, data: Mapping[str, Any] | None = None) -> TableEngine:
    """The policy's engine over its data, or over tables that are handed over."""
    tables = table_schemas(policy)
    match policy.engine, policy.source:
        case "postgres", str(dsn) if data is None:
            from tacit.engines.postgres import PostgresEngine

            return PostgresEngine(tables, dsn)
        case "spark", str() | None as source:
            from tacit.engines.spark import SparkEngine

            return SparkEngine(tables, frames=data, source=source)
    from tacit.engines.duckdb import DuckDBEngine

    file = policy.source if isinstance(policy.source, Path) else None
    if data is None and policy.prepared is not None:
        from tacit.curator.prepare import locate_copy

        return DuckDBEngine(tables, file, prepared=locate_copy(policy))
    return DuckDBEngine(tables, file, data)


def table_schemas(policy: Policy) -> list[TableSchema]:
    """What an engine is told of the tables."""
    links: dict[str, list[str]] = {table.name: [] for table in policy.tables}
    for table in policy.tables:
        if isinstance(table.unit, UnitForeignKey):
            links[table.name].append(table.unit.column)
            links[table.unit.table].append(table.unit.key)
    return [
        TableSchema(
            table.name,
            tuple((c.name, c.type) for c in table.columns),
            table.unit if isinstance(table.unit, str) and table.unit != ROW_UNIT else None,
            tuple(links[table.name]),
        )
        for table in policy.tables
    ]


def check_join_columns(policy: Policy, engine: TableEngine) -> None:
    """What the policy says is unique must be: otherwise one row could become many, or reach two units.

    What is matched must be of one type: otherwise whether a question fails could depend on a row. And it must be stored
    alike: a unit that is 7 in one table and 7.0 in another would be two units, each with a contribution of its own.
    """
    units: dict[str, tuple[str, str]] = {}
    for table in policy.tables:
        pairs = []
        if isinstance(table.unit, UnitForeignKey):
            pairs.append(((table.name, table.unit.column), (table.unit.table, table.unit.key)))
        elif table.unit is not None and table.unit != ROW_UNIT:
            here = (table.name, table.unit)
            pairs.append((here, units.setdefault(table.people, here)))
        for one, other in pairs:
            if engine.type_of(*one) is not engine.type_of(*other):
                what = f"{'.'.join(one)} and {'.'.join(other)} are matched, and are of different types"
                raise DataError(ErrorCode.DATA, what, fix="store both as integers, or both as text")
            ours, theirs = engine.written_as(*one), engine.written_as(*other)
            if ours != theirs:
                what = f"{'.'.join(one)} is stored as {ours} and {'.'.join(other)} as {theirs}: one unit would be two"
                raise DataError(ErrorCode.DATA, what, fix="store both in the same type, integers or texts")
        columns = [(table.name, column.name) for column in table.columns if column.unique]
        if isinstance(table.unit, UnitForeignKey):
            columns.append((table.unit.table, table.unit.key))
        for name, column in columns:
            if not engine.is_unique(name, column):
                what = f"{name}.{column} is declared unique, and two rows share a value"
                raise DataError(ErrorCode.DATA, what, fix="fix the data, or name another column")


def budget_limits(policy: Policy) -> BudgetLimits:
    """The caps as the ledger takes them."""
    own = {a.name: AnalystLimit(compute_limits(a.budget.epsilon, a.budget.delta), a.monthly) for a in policy.analysts}
    units = {f"unit of {t.name}": PUBLIC if t.unit is None else str(t.unit) for t in policy.tables}
    scope = {"neighbors": str(policy.neighbors)} | units
    return BudgetLimits(compute_limits(policy.budget.epsilon, policy.budget.delta), own, scope)


def ledger_files(policy: Policy) -> LedgerLocation:
    """Where the ledger, its key and its witness lie; a policy without them is an error."""
    if policy.books is None:
        raise ParameterError(
            "policy",
            "has no [ledger] section, so spending cannot be recorded",
            fix='add "ledger": {"store": "visits.ledger"}',
        )
    return policy.books


def open_ledger(policy: Policy) -> Ledger:
    """The policy's ledger, open for charges."""
    books = ledger_files(policy)
    witness = Witness(books.witness)
    key = SigningKey.at(books.key, create=not witness.exists())
    return Ledger(books.store, budget_limits(policy), key=key, witness=witness)


class Curator:
    """Holds the data and answers for it."""

    def __init__(self, policy: Policy, engine: Engine, ledger: Ledger, bits: Bits) -> None:
        self.policy = policy
        self.engine = engine
        self.ledger = ledger
        self.bits = bits
        self.planner = Planner(policy, knows_only=ledger.knows_only)

    def analyst(self, name: str) -> Analyst:
        """The view of an analyst whom the policy names."""
        if self.policy.analyst(name) is None:
            raise Refused(
                ErrorCode.UNKNOWN_ANALYST, f"there is no analyst {name!r}", fix="ask the owner to add you to the policy"
            )
        return Analyst(self, name)

    def fit(self, estimator: EstimatorT, sql: Any, target: str, who: str, epsilon: Any, **more: Any) -> EstimatorT:
        """A model learned for an analyst from one row of each unit; see `DeclaredAnalyst.fit`."""
        return self.analyst(who).fit(estimator, sql, target=target, epsilon=epsilon, **more)

    def check_data(self) -> None:
        """Raise DataError where the data is not what was opened, so that nothing is charged for a question about it."""
        if isinstance(self.engine, Watched):
            self.engine.check_unchanged()

    def note_failure(self, claim: Reservation, cause: BaseException) -> bytes | None:
        """Record that a charge came to nothing. The cause goes to the owner's log, never to the analyst.

        Where the charge was answered meanwhile, by whoever took it up, that answer is returned: it stands.
        """
        _log.error("entry %d failed", claim.entry, exc_info=cause)
        return self.ledger.fail(claim)

    def close(self) -> None:
        """Let go of the data and the ledger."""
        self.engine.close()
        self.ledger.close()

    def __enter__(self) -> Curator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Analyst:
    """One analyst's way in: ask, explain, budget, schema."""

    def __init__(self, curator: Curator, name: str) -> None:
        self._curator = curator
        self.name = name

    def ask(
        self,
        sql: Any,
        *,
        epsilon: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        request: str = "",
    ) -> Answer:
        """The private answer to a question in SQL, at the price `epsilon`. The same question again is free.

        An Ibis expression may stand in place of the SQL.

        In place of a price, `within={"n": 50}` asks for the least one at which column n is within 50, at `confidence`.
        `request` names this question, so that asking again after a lost connection is the same one, charged once.
        """
        question = Question(ibis_expressions.to_sql(sql), epsilon, within, confidence, request)
        return ask(question, self.name, self._curator)

    def fit(
        self, estimator: EstimatorT, sql: Any, *, target: str, epsilon: Any, delta: Any = None, request: str = ""
    ) -> EstimatorT:
        """A fitted copy of an estimator of `tacit.learn`, at the price `epsilon`. The same fit again is free.

        The question selects columns of rows, among them the `target`; one row of each unit is learned from. `delta` is
        the policy's for one question where it is None. `encoding_.table` reads rows of your own as the model does.
        """
        from tacit.curator.fit import fit

        text = ibis_expressions.to_sql(sql)
        return fit(estimator, text, target, self.name, self._curator, epsilon, delta, request)

    def explain(
        self, sql: Any, *, epsilon: Any = None, within: Mapping[str, Any] | None = None, confidence: Any = 0.95
    ) -> Explanation:
        """What would be done, what it would cost and how accurate it would be. Free: no data is touched.

        `refused` says why asking it would be refused now, where it costs more than what is left.
        """
        question = Question(ibis_expressions.to_sql(sql), epsilon, within, confidence)
        plan = self._curator.planner.plan(question, self.name)
        return explain_question(question, plan, self.name, self._curator.policy, self._curator.ledger)

    def table(self, name: str) -> Any:
        """A table as Ibis has it, to build questions with. Needs ibis."""
        return ibis_expressions.make_table(self._curator.policy, name)

    @property
    def budget(self) -> AnalystBudget:
        """What is spent and what is left."""
        ledger = self._curator.ledger
        return AnalystBudget(self.name, ledger.standing(self.name), ledger.overall(), ledger.month(self.name))

    @property
    def schema(self) -> Schema:
        """What may be asked about: tables, columns, bounds and keys."""
        return Schema(self._curator.policy)

    def __repr__(self) -> str:
        return f"<Analyst {self.name}: {self.budget}>"
