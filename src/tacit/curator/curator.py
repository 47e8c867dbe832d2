"""The curator, and an analyst's view of it.

curator = tacit.open("clinic.toml")
ada = curator.analyst("ada")
ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tacit.accounting.guard import caps
from tacit.answers.answer import Answer
from tacit.curator.ask import ask
from tacit.curator.view import Budget, Schema
from tacit.engines.base import Engine, Shape
from tacit.errors import Code, ParameterError, Refused
from tacit.ledger.budget import Grant, Limits
from tacit.ledger.entries import Claim
from tacit.ledger.keys import Key
from tacit.ledger.ledger import Ledger
from tacit.ledger.witness import Witness
from tacit.plan.explain import Explanation, explain
from tacit.plan.plan import plan_for
from tacit.policy.load import load
from tacit.policy.model import ROW, Books, Policy
from tacit.query.sql import parse
from tacit.sampling.bits import Bits, SystemBits

_log = logging.getLogger("tacit")
_log.addHandler(logging.NullHandler())  # silent unless the owner listens: its causes are not for analysts


def open(policy: str | os.PathLike[str] | Mapping[str, Any], data: Mapping[str, Any] | None = None) -> Curator:
    """A curator for a policy: a TOML file, or the same as a dict.

    `data` hands tables over in place of the policy's source: pandas, polars or Arrow tables by name.
    """
    from tacit.engines.duckdb import DuckDB

    loaded = load(policy)
    engine = DuckDB(shapes(loaded), loaded.source, data)
    try:
        return Curator(loaded, engine, ledger_of(loaded), SystemBits())
    except BaseException:
        engine.close()
        raise


def shapes(policy: Policy) -> list[Shape]:
    """What an engine is told of the tables."""
    return [
        Shape(t.name, tuple((c.name, c.type) for c in t.columns), None if t.unit == ROW else t.unit)
        for t in policy.tables
    ]


def limits(policy: Policy) -> Limits:
    """The caps as the ledger takes them."""
    own = {a.name: Grant(caps(a.budget.epsilon, a.budget.delta), a.monthly) for a in policy.analysts}
    scope = {"neighbors": str(policy.neighbors)} | {f"unit of {table.name}": table.unit for table in policy.tables}
    return Limits(caps(policy.budget.epsilon, policy.budget.delta), own, scope)


def books_of(policy: Policy) -> Books:
    """Where the ledger, its key and its witness lie; a policy without them is an error."""
    if policy.books is None:
        raise ParameterError(
            "policy", "names no ledger, so nothing could be remembered", fix='add "ledger": {"store": "visits.ledger"}'
        )
    return policy.books


def ledger_of(policy: Policy) -> Ledger:
    """The policy's ledger, open for charges."""
    books = books_of(policy)
    witness = Witness(books.witness)
    key = Key.at(books.key, create=not witness.exists())
    return Ledger(books.store, limits(policy), key=key, witness=witness)


class Curator:
    """Holds the data and answers for it."""

    def __init__(self, policy: Policy, engine: Engine, ledger: Ledger, bits: Bits) -> None:
        self.policy = policy
        self.engine = engine
        self.ledger = ledger
        self.bits = bits

    def analyst(self, name: str) -> Analyst:
        """The view of an analyst whom the policy names."""
        if self.policy.analyst(name) is None:
            raise Refused(
                Code.UNKNOWN_ANALYST, f"there is no analyst {name!r}", fix="ask the owner to add you to the policy"
            )
        return Analyst(self, name)

    def note_failure(self, claim: Claim, cause: BaseException) -> None:
        """Record that a charge came to nothing. The cause goes to the owner's log, never to the analyst."""
        _log.error("entry %d failed", claim.entry, exc_info=cause)
        self.ledger.fail(claim)

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

    def ask(self, sql: str, *, epsilon: Any, confidence: Any = 0.95, request: str = "") -> Answer:
        """The private answer to a SQL question at this price. The same question again is free.

        `request` names this question, so that asking again after a lost connection is the same one, charged once.
        """
        return ask(sql, self.name, self._curator, epsilon, confidence, request)

    def explain(self, sql: str, *, epsilon: Any, confidence: Any = 0.95) -> Explanation:
        """What would be done, what it would cost and how accurate it would be. Free: no data is touched."""
        plan = plan_for(parse(sql), self._curator.policy, epsilon)
        return explain(plan, self._curator.policy, confidence)

    @property
    def budget(self) -> Budget:
        """What is spent and what is left."""
        ledger = self._curator.ledger
        return Budget(self.name, ledger.standing(self.name), ledger.overall(), ledger.month(self.name))

    @property
    def schema(self) -> Schema:
        """What may be asked about: tables, columns, bounds and keys."""
        return Schema(self._curator.policy)

    def __repr__(self) -> str:
        return f"<Analyst {self.name}: {self.budget}>"
