"""What training costs, and the noise that a guarantee needs.

>>> from fractions import Fraction
>>> plan = TrainingPlan.calibrate(Fraction(3), Fraction(1, 10**5), "poisson", Fraction(1, 64), 640, 64)
>>> round(float(plan.multiplier), 2)
0.9
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.learn.torch.correlated import column_norm
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Loss, Repeat, Sampled
from tacit.privacy.unit import Neighbors

Sampling = Literal["poisson", "shuffled"]
_LEAST, _MOST = Fraction(1, 16), Fraction(10**4)


@dataclass(frozen=True)
class TrainingPlan:
    """A number of steps, how their batches are drawn, and the noise multiplier: the deviation over the clipping norm.

    **Theorem.** So many `steps` lose at most `loss(steps)`. **Proof.** The parameters after a step are a function of
    those before it and of the noisy sum. *Poisson:* every unit is in a batch with probability `rate`, on its own, and
    one unit more moves the sum by at most the clipping norm: a sampled Gaussian mechanism, for neighbors of which one
    has one unit more. *Shuffled:* under replacement a unit is in one batch of each epoch, in the same place of the same
    order, and moves that one sum by at most twice the clipping norm; the order is drawn before the data is read, and no
    amplification is counted.

    Noise that is correlated over `bands` steps is priced by the theorem of `correlated`.

    `stray` is the probability, in each step, that exact noise is not rounded Gaussian noise (`learn.noise`).
    """

    sampling: Sampling
    rate: Fraction
    steps: int
    steps_per_epoch: int
    multiplier: Fraction
    stray: Fraction = Fraction(0)
    bands: int = 1

    @property
    def neighbors(self) -> Neighbors:
        """The neighbors that the loss is for."""
        return Neighbors.ADD_REMOVE if self.sampling == "poisson" else Neighbors.REPLACE

    def loss(self, steps: int) -> Loss:
        """Return the privacy loss of so many steps."""
        if self.sampling == "poisson":
            once: Loss = Sampled(ContinuousGaussianNoise(self.multiplier), self.rate)
            part: Loss = Repeat(once, steps)
        else:
            begun = -(-steps // self.steps_per_epoch)
            spread = 2 * (column_norm(self.bands) if self.bands > 1 else 1)
            part = Repeat(ContinuousGaussianNoise(self.multiplier / spread), begun)
        return Compose((part, ApproximateDp(Fraction(0), min(Fraction(1), steps * self.stray)))) if self.stray else part

    def epsilon(self, delta: Number, steps: int | None = None) -> float:
        """Return the epsilon of so many steps, or of all of them, at this delta."""
        from tacit.accounting import epsilon

        return epsilon(self.loss(self.steps if steps is None else steps), delta)

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        sampling: Sampling,
        rate: Fraction,
        steps: int,
        steps_per_epoch: int,
        bands: int = 1,
    ) -> TrainingPlan:
        """Return the plan with about the least noise: its epsilon is at most the one asked for, and within 0.2%."""
        if not (epsilon > 0 and 0 < delta < 1):
            raise ParameterError(
                "epsilon", "epsilon must be above 0 and delta between 0 and 1", fix="epsilon=3.0, delta=1e-6"
            )

        return cls(
            *(sampling, rate, steps, steps_per_epoch),
            _least_multiplier(epsilon, delta, sampling, rate, steps, steps_per_epoch, bands),
            bands=bands,
        )


@lru_cache(maxsize=64)  # a search of seconds, whose result depends on these alone
def _least_multiplier(
    epsilon: Fraction,
    delta: Fraction,
    sampling: Sampling,
    rate: Fraction,
    steps: int,
    steps_per_epoch: int,
    bands: int,
) -> Fraction:
    """About the least multiplier that holds, by bisection on its Renyi bound and a few exact computations."""
    from tacit.accounting import epsilon_delta

    def cost(multiplier: Fraction, by: str) -> float:
        plan = TrainingPlan(sampling, rate, steps, steps_per_epoch, multiplier, bands=bands)
        return epsilon_delta.epsilon(plan.loss(steps), delta, by=by)

    goal = float(epsilon)
    low, high = _LEAST, _LEAST
    while cost(high, "renyi") > goal:
        low, high = high, high * 2
        if high > _MOST:
            raise ParameterError("epsilon", "is too small for so many steps", fix="fewer epochs, or a larger epsilon")
    if high == _LEAST:
        return high
    while high > low * Fraction(101, 100):  # Renyi's epsilon is an upper bound: this one holds
        middle = _short(math.sqrt(low * high))
        low, high = (low, middle) if cost(middle, "renyi") <= goal else (middle, high)
    return _refine(lambda multiplier: cost(multiplier, "pld"), high, goal)


def _refine(cost: Any, start: Fraction, goal: float) -> Fraction:
    """A multiplier below one that holds, by few evaluations of a decreasing cost: secants in logarithms."""
    best, spent = start, cost(start)
    slope = -1.3  # of ln epsilon by ln sigma; corrected as it goes
    failed: tuple[Fraction, float] | None = None
    for _ in range(8):
        if spent >= goal * 0.998:
            break
        trial = _short(float(best) * (goal * 0.9992 / spent) ** (1 / slope))
        if failed is not None:
            trial = max(trial, _short(math.sqrt(best * failed[0])))
        if trial >= best:
            break
        found = cost(trial)
        slope = min(-0.2, math.log(found / spent) / math.log(trial / best))
        if found <= goal:
            best, spent = trial, found
        else:
            failed = trial, found
    return best


def _short(number: float) -> Fraction:
    """A number with few digits."""
    return Fraction(round(number * 2**20), 2**20)


def dyadic_rate(rate: Fraction) -> Fraction:
    """Return a rate that coins of 64 bits have exactly; rounded up, so that the plan counts what is drawn."""
    return min(Fraction(1), Fraction(math.ceil(rate * 2**64), 2**64))


@dataclass(frozen=True, init=False)
class TrainingGuarantee(DpGuarantee):
    """(epsilon, delta)-DP of a training run, and what is treated as exact though a machine only comes close to it.

    Parameters
    ----------
    epsilon : number
        The privacy loss, at least 0.
    delta : number
        From 0 to 1; 0 is pure differential privacy.
    neighbors : Neighbors
        Which databases are neighbors.
    idealizations : tuple of str
        What the proof takes for granted, a sentence each; empty where nothing is.

    Examples
    --------
    >>> TrainingGuarantee(3, 1e-6, Neighbors.ADD_REMOVE, idealizations=()).epsilon
    Fraction(3, 1)
    """

    idealizations: tuple[str, ...]

    def __init__(
        self, epsilon: Number, delta: Number, neighbors: Neighbors, idealizations: tuple[str, ...] = ()
    ) -> None:
        super().__init__(to_rational("epsilon", epsilon), to_rational("delta", delta), neighbors)
        object.__setattr__(self, "idealizations", tuple(idealizations))
