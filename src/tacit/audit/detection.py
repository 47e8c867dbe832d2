"""What an audit would have found: the least parameter at which it refutes a mechanism whose parameter is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Claim
from tacit.audit.one_run import one_run_p_value
from tacit.audit.statistical import AuditResult, audit
from tacit.audit.training import TrainingAudit

Drawn = npt.NDArray[Any]

EXCESSES = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Multiples of the claim that are tried, from the least on."""
RUNS, POWER = 36, 35
FOUND_SHARE, CONFIDENCE = 0.8, 0.95
"""What is said to be found is found more often than this, but for what the confidence leaves, over all multiples."""
_LEAST_CLAIM = 0.01  # stands for a claim of zero, of which there are no multiples


@dataclass(frozen=True)
class Detection:
    """The least parameter that an audit of this size found in nearly all runs.

    **Theorem.** With confidence 95 %, an audit like this one finds a breach of this parameter more often than four
    times in five. Proof: where a multiple of the claim is found with at most that probability, 35 or more of 36
    independent runs find it with at most 0.33 %. There are 15 multiples, so that happens for one of them with at most
    5 %, the union bound.

    Attributes
    ----------
    mechanism : str
        The mechanism of known parameter that was audited in the same way.
    parameter : float
        Its parameter; infinite where no multiple of the claim up to ten was found (of 0.01, where the claim is zero).
    refuted, runs : int
        How many of the runs refuted the claim.

    Examples
    --------
    >>> Detection("randomized response", 1.2, 35, 36).is_found
    True
    """

    mechanism: str
    parameter: float
    refuted: int
    runs: int

    @property
    def is_found(self) -> bool:
        """Whether there is such a parameter."""
        return math.isfinite(self.parameter)


def largest_tried(claim: Claim) -> float:
    """Return the largest parameter that is tried: ten times the claim, and 0.1 where the claim is zero.

    Parameters
    ----------
    claim : Claim
        The guarantee that was audited.

    Returns
    -------
    float
        The parameter.

    Examples
    --------
    >>> largest_tried(Claim.epsilon(2)), largest_tried(Claim.epsilon(0))
    (20.0, 0.1)
    """
    return EXCESSES[-1] * max(claim.value, _LEAST_CLAIM)


def measure_detection(result: AuditResult | TrainingAudit, *, seed: int = 0) -> Detection:
    """Audit mechanisms that break the claim by more and more, as the result was audited, until 35 of 36 are refuted.

    For epsilon it is randomized response, which is as revealing as its epsilon allows; for mu and rho one Gaussian. So
    a mechanism that leaks as much in another way may be found later, or by other events.

    Parameters
    ----------
    result : AuditResult or TrainingAudit
        The audit whose size, confidence and claim are taken.
    seed : int
        Seed of the draws, 0 or more.

    Returns
    -------
    Detection
        The least parameter, of some multiples of the claim, of which 35 of 36 runs find the breach.

    Examples
    --------
    >>> audited = AuditResult(Claim.epsilon(1), 0.93, 0.99, 10_000, "output >= 1", 7_000, 2_800, 9_800)
    >>> 1 < measure_detection(audited).parameter < 1.3
    True
    """
    claim = result.claim
    name = "randomized response" if claim.name == "epsilon" else "a Gaussian"
    for excess in EXCESSES:
        value = excess * max(claim.value, _LEAST_CLAIM)
        refuted = 0
        for run in range(RUNS):
            refuted += _refutes(result, value, seed + run)
            if run + 1 - refuted > RUNS - POWER:
                break
        if refuted >= POWER:
            return Detection(name, value, refuted, RUNS)
    return Detection(name, math.inf, 0, RUNS)


def _refutes(result: AuditResult | TrainingAudit, value: float, seed: int) -> bool:
    """Whether an audit like this one refutes its claim for a mechanism of this parameter."""
    if isinstance(result, TrainingAudit):
        return _refutes_one_run(result, value, seed)
    mechanism = _known_mechanism(result.claim, value)
    return audit(
        mechanism, 1, 0, result.claim, samples=result.samples, confidence=result.confidence, seed=seed
    ).is_refuted


def _refutes_one_run(result: TrainingAudit, value: float, seed: int) -> bool:
    rng, claim, count = np.random.default_rng([seed, 3]), result.claim, result.canaries
    coins = rng.integers(0, 2, count)
    scores = _known_mechanism(claim, value)(coins, count, rng)
    ordered = coins[np.lexsort((rng.random(count), scores))].astype(bool)  # ties in random order
    miss = (1 - result.confidence) / len(result.counts)
    for tried in result.counts:
        lows = tried.guesses // 2
        right = int((~ordered[:lows]).sum()) + int(ordered[count - (tried.guesses - lows) :].sum())
        if one_run_p_value(count, tried.guesses, right, claim) <= miss:
            return True
    return False


def _known_mechanism(claim: Claim, value: float) -> Callable[..., Drawn]:
    """Return a mechanism on bits whose parameter is this one."""
    if claim.name == "epsilon":
        flip = 1 / (1 + math.exp(min(value, 700)))

        def respond(data: object, size: int, rng: np.random.Generator) -> Drawn:
            bits: Drawn = np.asarray(data)
            return np.where(rng.random(size) < flip, 1 - bits, bits)

        return respond
    shift = value if claim.name == "mu" else math.sqrt(2 * value)

    def blur(data: object, size: int, rng: np.random.Generator) -> Drawn:
        bits: Drawn = np.asarray(data)
        return np.asarray(np.round(shift * bits + rng.normal(size=size), 3))

    return blur
