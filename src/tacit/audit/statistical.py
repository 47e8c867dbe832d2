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

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.audit.bound import lower_confidence_bound
from tacit.audit.claim import Claim
from tacit.audit.events import EventTest, choose_events, training_size
from tacit.audit.inputs import check_inputs_differ
from tacit.audit.outputs import OutputSample, Progress, collect_outputs
from tacit.errors import ParameterError

MIN_SAMPLES = 100
_COLLECTED, _LEARNED = 0.8, 0.9  # shares of the time, for progress


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: with the stated confidence, the claim's parameter is at least `lower` for this pair.

    Attributes
    ----------
    claim : Claim
        The guarantee that was audited.
    lower : float
        A lower bound on the claim's parameter for this pair of inputs; above `claim.value` the claim is refuted.
    confidence : float
        The probability, in (0, 1), with which `lower` is a true bound.
    samples : int
        How many outputs were drawn on each side.
    event : str
        The event in words that gives the bound.
    one_count, other_count : int
        In how many outputs of either side the event occurred.
    trials : int
        How many outputs of each side were counted: those that nothing was learned from.
    one, other : object
        The two inputs that were compared.
    pair : str
        The name of the pair where several were tried, else empty.

    Examples
    --------
    >>> found = AuditResult(Claim.epsilon(1), 1.04, 0.99, 100_000, "output >= 1", 67_523, 22_411, 90_000)
    >>> found.is_refuted, found.verdict
    (True, 'refuted')
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

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON, without the two inputs.

        Returns
        -------
        dict
            The claim, the verdict, the bound with its confidence, and the counts of the event.
        """
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
    mechanism: Callable[..., object],
    one: object,
    other: object,
    claim: Claim,
    *,
    samples: int = 100_000,
    confidence: Number = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditResult:
    """Look for an event that proves the claim wrong on the neighbors `one` and `other`.

    **Theorem.** If calls are independent, `lower` is above the parameter that the mechanism has on this pair with
    probability at most 1 - confidence, whatever the mechanism. So that is the most a true claim is refuted with.

    **Proof.** Events, weights and error allocations are chosen by a first part of the outputs. Where that part ends
    (`training_size`) and which columns and labels outputs are read in (`CollectedOutputs.lay_out`) are functions of it
    too. So, given that part, the rest are independent, the counts of an event in them are binomial, and
    `lower_confidence_bound` bounds the parameter except with the event's share of 1 - confidence. The shares add up to
    it, or to less where outputs may have to be drawn again (`collect_outputs`): the union bound. Where every call
    raises the same, there is no bound, which is not a wrong one. A bound holds both ways round and for the complement
    (`Claim.refuted_by`), so directions need no share of their own.

    "Not refuted" proves nothing: another pair, another event or more samples may refute the claim.

    Parameters
    ----------
    mechanism : callable
        `mechanism(data)` gives an output: a number, a text or another hashable, a vector or tuple of these. If it has a
        parameter `size` it gives that many, a row each; if it has a parameter `rng` it is given a generator. None, NaN
        and an exception are outputs like any other: where they depend on the data, they reveal it. Only
        KeyboardInterrupt, SystemExit and the same exception in every call end an audit.
    one, other : object
        Two neighboring inputs. Every call has a copy of its input to itself.
    claim : Claim
        The guarantee to refute.
    samples : int
        How many outputs are drawn on each side, 100 or more. More make the bound tighter.
    confidence : number
        The probability, in (0, 1), with which the bound holds.
    seed : int
        Seed of the draws and of what is learned, 0 or more: the same seed gives the same result.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The largest lower bound of all events that were tried.

    Raises
    ------
    ParameterError
        If an argument is out of range, both inputs are the same, or the mechanism raises the same exception in every
        call.

    Examples
    --------
    >>> def randomized_response(answer, size, rng):
    ...     return answer ^ (rng.random(size) < 0.25)
    >>> found = audit(randomized_response, 1, 0, Claim.epsilon(1))  # its epsilon is ln 3 = 1.0986
    >>> found.verdict, 1 < found.lower < 1.0986
    ('refuted', True)
    """
    count, sure = _check_arguments(claim, samples, confidence)
    check_inputs_differ(one, other)
    say = progress or (lambda share: None)
    draws, learner = (np.random.default_rng([to_integer("seed", seed, least=0), stream]) for stream in (0, 1))
    outputs = collect_outputs(mechanism, (one, other), count, draws, lambda share: say(_COLLECTED * share))
    start = training_size(outputs, count)
    sides = outputs.lay_out(start)
    seen, fresh = (tuple(side.part(*part) for side in sides) for part in ((0, start), (start, count)))
    checks = choose_events(seen[0], seen[1], claim, count - start, (1 - sure) * outputs.share, learner)
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


def _check_arguments(claim: Claim, samples: int, confidence: Number) -> tuple[int, float]:
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
