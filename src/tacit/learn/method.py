"""What the methods of fitting a linear model have in common: the task they are calibrated to, and their protocol.

A method is a frozen value made from public facts, so its noise and its privacy loss are known before any data is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

from tacit.learn.losses import Array, ConvexLoss
from tacit.learn.problem import RiskMinimization
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class LearningTask:
    """All that a method's noise may depend on: the guarantee, the loss, and public facts about the rows.

    `norm` bounds the L2 norm of a row, `features` is its length with the constant, `rows` the declared number of rows.
    Where `penalty`, the weight of |w|^2/2, is None, the method chooses it by its own rule.
    """

    epsilon: Fraction
    delta: Fraction
    loss: ConvexLoss
    norm: float
    features: int
    rows: int
    neighbors: Neighbors
    penalty: float | None = None


class Method(Protocol):
    """A differentially private algorithm for empirical risk minimization."""

    @classmethod
    def calibrate(cls, task: LearningTask) -> Self:
        """Return the method with the noise that the task's epsilon and delta need."""

    @property
    def penalty(self) -> float:
        """The weight of |w|^2/2 in the objective."""

    @property
    def cut(self) -> float:
        """The largest residual that is learned from; larger ones are clipped to it."""

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit, as the accountants read it."""

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """Return the released weights."""
