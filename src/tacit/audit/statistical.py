"""A statistical audit: samples of two neighbors' outputs, and a lower bound on what the mechanism really costs.

>>> def honest(answer: int, size: int, rng: np.random.Generator) -> np.ndarray:
...     return answer ^ (rng.random(size) < 0.25)
>>> finding = audit(honest, 1, 0, Claim.epsilon(1))  # its epsilon is ln 3 = 1.0986
>>> finding.verdict, 1 < finding.lower < 1.0986
('refuted', True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arithmetic import to_integer, to_rational
from tacit.audit.bound import lower_confidence_bound
from tacit.audit.claim import Claim
from tacit.audit.events import EventTest, choose_events, training_size
from tacit.audit.outputs import OutputSample, Progress, collect_outputs
from tacit.errors import ParameterError

MIN_SAMPLES = 100
_COLLECTED, _LEARNED = 0.8, 0.9  # shares of the time, for progress


@dataclass(frozen=True)
class AuditResult:
    """What an audit found: with the stated confidence, the claim's parameter is at least `lower` for this pair.

    The counts are of `event` among `trials` outputs of either side that nothing was learned from.
    """

    claim: Claim
    lower: float
    confidence: float
    samples: int
    event: str
    one_count: int
    other_count: int
    trials: int
    one: Any = field(default=None, repr=False, compare=False)
    other: Any = field(default=None, repr=False, compare=False)
    pair: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is wrong, at this confidence."""
        return self.lower > self.claim.value

    @property
    def verdict(self) -> str:
        """That in words."""
        return "refuted" if self.is_refuted else "not refuted"

    def __str__(self) -> str:
        counted = f"{self.one_count:,} and {self.other_count:,} of {self.trials:,} outputs"
        pair = f" on the pair: {self.pair}" if self.pair else ""
        text = (
            f"{self.claim}: {self.verdict}{pair}.\n"
            f"With confidence {100 * self.confidence:g} %, {self.claim.name} is at least {self.lower:.4g}"
            f"{f' at delta = {self.claim.delta:g}' if self.claim.delta else ''}: "
            f"{self.event} holds for {counted} of one and of other."
        )
        return text if self.is_refuted else f"{text}\nNot refuted is not proved: no event that was tried tells more."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "claim": {"name": self.claim.name, "value": self.claim.value, "delta": self.claim.delta},
            "verdict": self.verdict,
            "refuted": self.is_refuted,
            "lower": self.lower,
            "confidence": self.confidence,
            "samples": self.samples,
            "event": self.event,
            "one_count": self.one_count,
            "other_count": self.other_count,
            "trials": self.trials,
            "pair": self.pair,
        }


def audit(
    mechanism: Callable[..., Any],
    one: Any,
    other: Any,
    claim: Claim,
    *,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditResult:
    """Look for an event that proves the claim wrong on the neighbors `one` and `other`.

    `mechanism(data)` gives an output: a number, a text or another hashable, a vector or tuple of these. If it has a
    parameter `size` it gives that many, a row each; if it has a parameter `rng` it is given a generator. Every call has
    a copy of the data to itself. None, NaN and an exception are outcomes like any other: where they depend on the data,
    they tell of it. Only KeyboardInterrupt and SystemExit end an audit, and one exception in every call.

    **Theorem.** If calls are independent, `lower` is above the parameter that the mechanism has on this pair with
    probability at most 1 - confidence, whatever the mechanism. So that is the most a true claim is refuted with.

    **Proof.** Events, weights and spendings are chosen by a first part of the outputs. Given that part, the rest are
    independent, the counts of an event in them are binomial, and `certified` bounds the parameter except with the
    event's share of 1 - confidence. The shares add up to it, or to less where outputs may have to be asked for again
    (`collect`): the union bound. A bound holds both ways round and for the complement (`Reservation.refuted_by`), so
    directions need no share of their own.

    "Not refuted" proves nothing: another pair, another event or more samples may tell.
    """
    count, sure = _check_arguments(claim, samples, confidence)
    say = progress or (lambda share: None)
    draws, learner = (np.random.default_rng([to_integer("seed", seed, least=0), stream]) for stream in (0, 1))
    sides = collect_outputs(mechanism, (one, other), count, draws, lambda share: say(_COLLECTED * share))
    start = training_size(*sides)
    seen, fresh = (tuple(side.part(*part) for side in sides) for part in ((0, start), (start, count)))
    checks = choose_events(seen[0], seen[1], claim, count - start, (1 - sure) * sides[0].share, learner)
    say(_LEARNED)
    findings = []
    for check in checks:
        lower, event, counts = _count_event(check, fresh[0], fresh[1], claim)
        findings.append(AuditResult(claim, lower, sure, count, event, *counts, count - start, one, other))
        say(_LEARNED + (1 - _LEARNED) * len(findings) / len(checks))
    return max(findings, key=lambda finding: finding.lower)


def _count_event(
    check: EventTest, one: OutputSample, other: OutputSample, claim: Claim
) -> tuple[float, str, tuple[int, int]]:
    """The bound of one event, the event in words, and its counts."""
    event, trials = check.event, len(one)
    counts = int(event.holds(one).sum()), int(event.holds(other).sum())
    likelier, rarer = counts if event.under_one else counts[::-1]
    lower = float(
        lower_confidence_bound(claim, likelier, rarer, trials, check.miss, weight=check.weight, spending=check.spending)
    )
    # Tell the event or its complement, whichever has the larger ratio.
    inside = likelier * (trials - likelier) >= rarer * (trials - rarer)
    told = counts if inside else (trials - counts[0], trials - counts[1])
    return lower, event.score.words(event.threshold, inside), told


def _check_arguments(claim: Claim, samples: int, confidence: float) -> tuple[int, float]:
    if not isinstance(claim, Claim):
        raise ParameterError(
            "claim", f"needs a Claim, got {type(claim).__name__}", fix='Claim.epsilon(1) or Claim.parse("epsilon=1")'
        )
    count = to_integer("samples", samples)
    if count < MIN_SAMPLES:
        raise ParameterError(
            "samples", f"{count} are too few for any verdict", fix=f"take {MIN_SAMPLES} or more, 100,000 say"
        )
    sure = float(to_rational("confidence", confidence))
    if not 0 < sure < 1:
        what = f"must be between 0 and 1, both excluded, got {confidence}"
        raise ParameterError("confidence", what, fix="confidence=0.99, say")
    return count, sure
