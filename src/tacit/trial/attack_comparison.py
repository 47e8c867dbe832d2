"""The same attacks on a plain database and on the curator, side by side, on a crowd made up from the policy alone.

Each attack has the whole epsilon to spend, against a curator with a ledger of its own: the real policy, plan, engine,
noise and ledger. The curator's budget ends it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.filters import GRAINS_PER_EPSILON
from tacit.analyst import Analyst
from tacit.arithmetic import Number, to_rational_between
from tacit.attacks.averaging import AveragingResult, average_answers, reword_condition
from tacit.attacks.differencing import reconstruct_leaving_one_out
from tacit.attacks.linear import reconstruct
from tacit.attacks.oracle import NoiseModel, one_by_one
from tacit.attacks.recovered import ReconstructionResult, max_expected_accuracy
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.errors import Refused
from tacit.ledger.ledger import Ledger
from tacit.mechanisms.laplace import Laplace
from tacit.plan.compound_plan import require_one
from tacit.plan.noise import Part
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON, Plan
from tacit.plan.planner import Planner
from tacit.plan.question import Question
from tacit.policy import model
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits as Source
from tacit.sampling.bits import ReplayBits
from tacit.trial.attack_report import AttackComparison, AttackReport
from tacit.trial.target import AttackTarget, Bits, generate_target
from tacit.trial.unprotected import UnprotectedDatabase, temporary_ledgers

ATTACKER = "attacker"
_REWORDINGS = 20
_GROUPS = 5_000  # numbers that are asked for at once, at most
_LARGE = 700.0  # an epsilon whose exponential overflows

Numbers = NDArray[np.float64]
Progress = Callable[[float], None]


def attack_policy(
    policy: str | os.PathLike[str] | Mapping[str, Any] | Policy,
    people: int = 100,
    epsilon: Number = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> AttackReport:
    """Attack a crowd of so many people made up from the policy, with `epsilon` in all for each attack."""
    loaded = policy if isinstance(policy, Policy) else load(policy)
    total = to_rational_between("epsilon", epsilon, MIN_EPSILON * 10**4, MAX_EPSILON)
    crowd = generate_target(loaded, people, seed)
    with _AttackRunner(loaded, crowd, total, seed, progress or (lambda share: None)) as sides:
        lines = [sides.line("random subsets", 2 * people, sides.by_subsets)]
        lines.append(sides.line("leave one out", people + 1, sides.by_leaving_out))
        if crowd.numbered <= _GROUPS:
            lines.append(sides.line("everyone at once", 1, sides.at_once))
        counted, refusal = sides.average_count()
        deviation = sides.deviation()
    return AttackReport(crowd, float(total), loaded.neighbors, tuple(lines), *counted, refusal, deviation)


@dataclass(frozen=True)
class _SqlOracle:
    """An oracle whose answers come from questions in SQL."""

    target: AttackTarget
    ask_one: Callable[[str], float]
    noise: NoiseModel

    def ask(self, subsets: Bits) -> Numbers:
        return np.array(one_by_one(lambda subset: self.ask_one(self.target.count(subset)), subsets))


class _AttackRunner:
    """The plain database and the curator, over the same crowd."""

    def __init__(self, policy: Policy, crowd: AttackTarget, total: Fraction, seed: int, progress: Progress) -> None:
        own = model.PrivacyBudget(total, policy.budget.delta)
        self.policy = replace(
            policy, source=None, books=None, budget=own, analysts=(model.DeclaredAnalyst(ATTACKER, own),)
        )
        self.crowd = crowd
        self.total = total
        self.seed = seed
        self._progress = progress
        self._done, self._all = 0, 4 * crowd.people
        self._bits: Source = ReplayBits(f"tacit defends {seed}".encode())

    def __enter__(self) -> _AttackRunner:
        self._folder = temporary_ledgers()
        self._engine = open_engine(self.policy, self.crowd.database.tables)
        self._twin = UnprotectedDatabase(self.crowd.database)
        return self

    def __exit__(self, *unused: object) -> None:
        self._twin.close()
        self._engine.close()
        self._folder.cleanup()

    def line(
        self, name: str, questions: int, run: Callable[[Callable[[str], Any], NoiseModel], ReconstructionResult]
    ) -> AttackComparison:
        """One attack on both: what it asks costs the total."""
        plain = run(self._twin.ask, NoiseModel("no noise", bound=0.0, deviation=0.0))
        each = self._each(questions)
        plan = self._plan(self.crowd.each() if questions == 1 else self.crowd.count(~self.crowd.truth), each)
        with self._analyst(name) as attacker:

            def ask(sql: str) -> Any:
                self._tell()
                return [tuple(row.values()) for row in attacker.ask(sql, epsilon=each)]

            private = run(ask, _noise(plan))
        lost = float(questions * plan.epsilon_delta[1])
        most = max_expected_accuracy(float(self.total), self.policy.neighbors, lost)
        if self.policy.neighbors is Neighbors.ADD_REMOVE:  # a bit changes by a removal and an addition
            lost = min(1.0, lost * (1 + math.exp(min(float(self.total), _LARGE))))
        return AttackComparison(name, plain, private, most, lost)

    def by_subsets(self, ask: Callable[[str], Any], noise: NoiseModel) -> ReconstructionResult:
        """Reconstruct everyone's bit from counts over random subsets."""
        people = self.crowd.people
        return reconstruct(self._oracle(ask, noise), people, 2 * people, seed=self.seed, truth=self.crowd.truth)

    def by_leaving_out(self, ask: Callable[[str], Any], noise: NoiseModel) -> ReconstructionResult:
        """Everyone's bit as the difference of two counts."""
        return reconstruct_leaving_one_out(self._oracle(ask, noise), self.crowd.people, truth=self.crowd.truth)

    def at_once(self, ask: Callable[[str], Any], noise: NoiseModel) -> ReconstructionResult:
        """A count for each person, in one question: all of the epsilon is spent on it."""
        counts = {int(number): count for number, count in ask(self.crowd.each())}
        guess = np.array([counts.get(number, 0) > 0.5 for number in self.crowd.numbers])
        return ReconstructionResult(
            guess, method="a group for each person", queries=1, noise=str(noise), truth=self.crowd.truth
        )

    def average_count(self) -> tuple[tuple[AveragingResult, AveragingResult, AveragingResult], str]:
        """The number of people with the bit, by averaging: on both, and in new words; and the refusal at the end."""
        crowd = self.crowd
        everyone = crowd.count(np.ones(crowd.people, dtype=np.bool_))
        others = reword_condition(crowd.secret, crowd.number, _REWORDINGS, crowd.numbered)
        told = [f"SELECT COUNT(*) AS n FROM {crowd.table} WHERE {condition}" for condition in others]
        plain = average_answers(lambda sql: float(self._twin.ask(sql)[0][0]), [everyone] * 2)
        with self._analyst("repeats") as attacker:
            same = average_answers(
                lambda sql: float(attacker.ask(sql, epsilon=self.total).value), [everyone] * _REWORDINGS
            )
        each = self._each(_REWORDINGS)
        with self._analyst("rewordings") as attacker:
            fresh = average_answers(lambda sql: float(attacker.ask(sql, epsilon=each).value), told)
            try:
                attacker.ask(everyone, epsilon=self.total)
                refusal = ""
            except Refused as refused:
                refusal = str(refused).splitlines()[0]
        return (plain, same, fresh), refusal

    def deviation(self) -> float:
        """That of the noise on one count at the whole epsilon, which is public."""
        everyone = self.crowd.count(np.ones(self.crowd.people, dtype=np.bool_))
        return _noise(self._plan(everyone, self.total)).deviation or 0.0

    def _oracle(self, ask: Callable[[str], Any], noise: NoiseModel) -> _SqlOracle:
        return _SqlOracle(self.crowd, lambda sql: float(ask(sql)[0][0]), noise)

    def _each(self, questions: int) -> Fraction:
        """The epsilon of each of so many questions, such that the total pays for all of them."""
        return Fraction(int(self.total * GRAINS_PER_EPSILON) // questions, GRAINS_PER_EPSILON)

    def _plan(self, question: str, epsilon: Fraction) -> Plan:
        return require_one(Planner(self.policy).plan(Question(question, epsilon)))

    @contextmanager
    def _analyst(self, name: str) -> Iterator[Analyst]:
        """An analyst with the whole budget, of a curator with a ledger of its own."""
        with Ledger(Path(self._folder.name) / f"{name.replace(' ', '-')}.ledger", budget_limits(self.policy)) as ledger:
            yield Curator(self.policy, self._engine, ledger, self._bits).analyst(ATTACKER)

    def _tell(self) -> None:
        self._done += 1
        self._progress(min(1.0, self._done / self._all))


def _noise(plan: Plan) -> NoiseModel:
    """What the attacker knows of the noise, which is public."""
    part = plan.parts[0]
    assert isinstance(part, Part)
    if isinstance(part.mechanism, Laplace):
        scale = float(part.mechanism.scale)
        return NoiseModel(f"Laplace noise of scale {scale:.4g}", deviation=math.sqrt(2) * scale)
    deviation = math.sqrt(part.mechanism.variance)
    return NoiseModel(f"Gaussian noise of deviation {deviation:.4g}", deviation=deviation)
