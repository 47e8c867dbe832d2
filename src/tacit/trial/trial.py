"""A policy on trial: made-up neighbors, and the real answers to questions about them, for audits and attacks.

with Trial("clinic.toml") as trial:
    print(trial.audit("SELECT COUNT(*) AS n FROM visits", epsilon=1))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tacit.arithmetic import Number
from tacit.audit.claim import Claim
from tacit.audit.statistical import AuditResult, audit
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.curator.tables import check_join_columns
from tacit.engines.base import GroupedMeasures, TableEngine
from tacit.errors import ParameterError
from tacit.ledger.ledger import Ledger
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.compound_plan import require_one
from tacit.plan.plan import MAX_EPSILON, Plan
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import DeclaredAnalyst, Policy, PrivacyBudget
from tacit.sampling.bits import Bits, ReplayBits
from tacit.trial.distance import estimate_distance, sample_releases
from tacit.trial.neighbors import NeighboringDatabases, SyntheticDatabase, generate_neighbors
from tacit.trial.questions import generate_questions
from tacit.trial.reading import AnswerEncoder, answer_rows, postprocess_all
from tacit.trial.unprotected import UnprotectedDatabase, temporary_ledgers

AUDITOR = "auditor"
_MOST_UNITS = 5_000  # of a crowd that is as large as a private key needs to be shown

Mechanism = Callable[[SyntheticDatabase, int], Any]
Progress = Callable[[float], None]


@dataclass(frozen=True)
class AuditCase:
    """A question at an epsilon: what it claims, the pair of neighbors that it tells apart best, and its answers."""

    question: str
    claim: Claim
    pair: NeighboringDatabases
    mechanism: Mechanism


class PolicyAuditor:
    """Plays neighboring databases, generated from a policy alone, through the real code.

    `units` is the size of the databases. The same seed gives the same databases and the same noise: bits are replayed,
    unless `bits` names another source. Only the real data and the real ledger are out of reach.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str] | Mapping[str, Any] | Policy,
        *,
        units: int = 100,
        seed: int = 0,
        bits: Bits | None = None,
    ) -> None:
        self.policy = _with_unlimited_budget(policy if isinstance(policy, Policy) else load(policy))
        self.bits = ReplayBits(f"tacit tries {seed}".encode()) if bits is None else bits
        self.pairs = generate_neighbors(self.policy, units, seed)
        self._seed = seed
        self._alike: dict[int, tuple[NeighboringDatabases, ...]] = {}
        self._engines: dict[SyntheticDatabase, TableEngine] = {}
        self._exact: dict[tuple[SyntheticDatabase, str], GroupedMeasures] = {}
        self._folder = temporary_ledgers()
        self._ledgers = 0

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Questions of every aggregate and clause that the policy answers."""
        return generate_questions(self.policy)

    def mechanism(self, question: str, epsilon: Number, *, whole: bool = False, stored: bool = False) -> Mechanism:
        """A function (database, size) that gives `size` independent answers to a question at an epsilon.

        With `whole`, each one comes from `DeclaredAnalyst.ask` itself: parse, plan, reserve, engine, release, commit,
        finish, with a new ledger each time, because a repeat in one ledger is the same answer.

        Without it, what does not depend on probability happens once: the question is planned once and the engine runs
        once for each database. The plan's own `release` then draws from the same bits as `ask`, `size` times, and the
        real `finish` reads all of them in one table (`reading.finish_all`). Left out are the ledger and `pack` to its
        bytes for each answer. Both ways have one distribution, and show the same for the same release.

        An output is what an analyst is shown, as `AnswerEncoder` says; error bars follow from it and are left out. With
        `stored` it is what the ledger stores: all that is shown follows from it, so it tells at least as much.
        """
        if whole and stored:
            raise ParameterError("stored", "what a whole ask gives is what is shown", fix="leave one of the two out")
        plan = require_one(Planner(self.policy).plan(Question(question, epsilon)))
        reading = AnswerEncoder(plan.recipe, self._places(plan))

        def answers(database: SyntheticDatabase, size: int) -> Any:
            if whole:
                return reading.outputs(answer_rows(self._ask(database, question, epsilon)) for _ in range(size))
            exact = self.exact(plan, database)
            releases = [plan.release(exact, self.bits, engine=self.engine(database)) for _ in range(size)]
            return (
                reading.encode_releases(releases) if stored else reading.outputs(postprocess_all(releases, plan.recipe))
            )

        return answers

    def make_unprotected(self, question: str) -> Mechanism:
        """A function (database, size) that gives the true answer `size` times: a plain DuckDB over the same tables."""

        def answers(database: SyntheticDatabase, size: int) -> Any:
            with UnprotectedDatabase(database) as twin:
                rows = twin.ask(question)
            values = [value for row in rows for value in row]
            if all(isinstance(value, int | float) for value in values):
                return np.tile(np.array(values, dtype=np.float64), (size, 1))
            return ["; ".join(map(str, values))] * size

        return answers

    def case(self, question: str, epsilon: Number, *, stored: bool = False) -> AuditCase:
        """The question at its epsilon, ready to be audited."""
        plan = require_one(Planner(self.policy).plan(Question(question, epsilon)))
        price, delta = plan.epsilon_delta
        mechanism = self.mechanism(question, epsilon, stored=stored)
        return AuditCase(question, Claim.epsilon(price, delta), self.worst(plan), mechanism)

    def audit(
        self,
        question: str,
        epsilon: Number = 1,
        *,
        samples: int = 10_000,
        confidence: float = 0.99,
        seed: int = 0,
        stored: bool = False,
        progress: Progress | None = None,
    ) -> AuditResult:
        """A statistical audit of the answers to a question, against the privacy loss that the plan claims for them."""
        case = self.case(question, epsilon, stored=stored)
        finding = audit(
            case.mechanism,
            case.pair.one,
            case.pair.other,
            case.claim,
            samples=samples,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
        return replace(finding, pair=case.pair.says)

    def worst(self, plan: Plan) -> NeighboringDatabases:
        """The pair that the plan's release tells apart best, by a rough measure. Any pair gives a valid audit."""
        found = self.pairs_for(plan)
        databases = dict.fromkeys(database for pair in found for database in (pair.one, pair.other))
        sides = {
            database: sample_releases(plan, self.exact(plan, database), self.bits, self.engine(database))
            for database in databases
        }
        return max(found, key=lambda pair: estimate_distance(plan, sides[pair.one], sides[pair.other]))

    def pairs_for(self, plan: Plan) -> tuple[NeighboringDatabases, ...]:
        """The neighbors; for private keys also those in which just enough units hold one for it to be shown."""
        if plan.shown is None:
            return self.pairs
        selection = plan.shown.mechanism
        units = _count_units(selection)
        if units > _MOST_UNITS:
            return self.pairs
        if units not in self._alike:
            self._alike[units] = generate_neighbors(self.policy, units, self._seed, ("alike",))
        return self.pairs + self._alike[units]

    def exact(self, plan: Plan, database: SyntheticDatabase) -> GroupedMeasures:
        """What the engine gives, once for each database. It never leaves an audit."""
        engine = self.engine(database)
        key = (database, plan.key)
        if key not in self._exact:
            self._exact[key] = engine.run(plan.exact)
        return self._exact[key]

    def engine(self, database: SyntheticDatabase) -> TableEngine:
        """The engine over a database, open for as long as the trial."""
        if not isinstance(database, SyntheticDatabase):
            what = f"needs a database of the trial, got {type(database).__name__}"
            raise ParameterError("data", what, fix="take one of trial.pairs, or SyntheticDatabase({name: table})")
        if database not in self._engines:
            engine = open_engine(self.policy, database.tables)
            self._engines[database] = engine
            check_join_columns(self.policy, engine)
        return self._engines[database]

    def close(self) -> None:
        """Let go of the databases and the ledgers."""
        for engine in self._engines.values():
            engine.close()
        self._folder.cleanup()

    def __enter__(self) -> PolicyAuditor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, database: SyntheticDatabase, question: str, epsilon: Number) -> Any:
        """A whole ask, of a curator whose ledger is new."""
        self._ledgers += 1
        with Ledger(Path(self._folder.name) / f"{self._ledgers}.ledger", budget_limits(self.policy)) as ledger:
            curator = Curator(self.policy, self.engine(database), ledger, self.bits)
            return curator.analyst(AUDITOR).ask(question, epsilon=epsilon)

    def _places(self, plan: Plan) -> tuple[Any, ...]:
        """The groups that may be shown: public ones, or those that occur in any of the databases; or so many rows."""
        if plan.recipe.limit is not None:
            return tuple((place,) for place in range(plan.recipe.limit))
        if plan.shown is None:
            return tuple(plan.recipe.list_groups())
        databases = dict.fromkeys(database for pair in self.pairs_for(plan) for database in (pair.one, pair.other))
        found = {group for database in databases for group in self.exact(plan, database)}
        return tuple(sorted(found, key=repr))


def _count_units(selection: PartitionSelection | Threshold | WeightedGaussianSelection) -> int:
    """How many units, in no other group, are just enough for a key to be shown."""
    match selection:
        case Threshold():
            return selection.least()
        case PartitionSelection():
            return selection.threshold()
    return selection.units()


def _with_unlimited_budget(policy: Policy) -> Policy:
    """The policy with one analyst who can pay for any one question: what an answer means does not depend on caps."""
    budget = PrivacyBudget(MAX_EPSILON, policy.budget.delta)
    return replace(policy, source=None, books=None, budget=budget, analysts=(DeclaredAnalyst(AUDITOR, budget),))
