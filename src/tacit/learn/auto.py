"""Which method to use, decided by public facts: the price, the numbers of rows, columns and classes, the loss.

All thresholds are in `MethodThresholds`. A choice that looked at the data would have to be paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from tacit.errors import ParameterError
from tacit.learn.facts import DeclaredParameters
from tacit.learn.losses import Array, ConvexLoss, HuberLoss
from tacit.learn.problem import RiskMinimization
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

METHODS = ("output", "objective", "gradient", "newton")


class Method(Protocol):
    """A way to learn: made of public facts, with a price that is known before data is touched."""

    @property
    def penalty(self) -> float:
        """Lambda, the weight of |w|^2/2."""

    @property
    def spent(self) -> Loss:
        """What a fit costs."""

    def fit(self, problem: RiskMinimization, bits: Bits) -> Array:
        """The released weights."""


@dataclass(frozen=True)
class MethodThresholds:
    """The thresholds of `choose_method`. The signal of a fit is epsilon rows/sqrt(weights): how far rows stand out of
    noise.

    `plenty`: the signal from which objective perturbation is as good as any, at the price of one fit without noise.
    `wide`: the most columns for which noise on all products of two of them is worth what these tell.
    `factored`: the most columns that a minimizer is certified for.
    The first two were settled on made-up data: benchmarks/rules.md.
    """

    plenty: float = 800.0
    wide: int = 32
    factored: int = 2000


THRESHOLDS = MethodThresholds()


def choose_method(facts: DeclaredParameters, loss: ConvexLoss, rule: MethodThresholds = THRESHOLDS) -> str:
    """The name of the method for these facts.

    - A delta of zero leaves only output perturbation, whose noise can be Laplace's.
    - A squared loss is learned from its sufficient statistics, where columns are not too many: one release, one solve.
    - Otherwise objective perturbation where the signal is plenty, else noisy gradients.
    """
    if facts.delta == 0:
        return "output"
    if isinstance(loss, HuberLoss):
        return "newton" if facts.width <= rule.wide else "gradient"
    signal = float(facts.epsilon) * facts.rows / math.sqrt(facts.width * loss.outputs)
    return "objective" if signal >= rule.plenty and facts.width <= rule.factored else "gradient"


def plan_method(name: str, facts: DeclaredParameters, loss: ConvexLoss, penalty: float | None) -> tuple[str, Method]:
    """The method of this name, `auto` among them, calibrated to the facts. No data is touched."""
    if not isinstance(name, str) or name not in (*METHODS, "auto"):
        known = ", ".join((*METHODS, "auto"))
        raise ParameterError("method", f"there is no {name!r:.60}", fix=f"choose one of {known}")
    name = choose_method(facts, loss) if name == "auto" else name
    if facts.delta == 0 and name != "output":
        raise ParameterError("delta", f"{name} needs one above 0", fix='choose a delta, or method="output"')
    public = (facts.norm, facts.width, facts.rows, facts.neighbors)
    hashable: Any = loss  # a frozen value
    return name, _calibrate(name, facts.epsilon, facts.delta, hashable, penalty, public)


@lru_cache(maxsize=128)
def _calibrate(
    name: str,
    epsilon: Fraction,
    delta: Fraction,
    loss: Any,
    penalty: float | None,
    public: tuple[float, int, int, Neighbors],
) -> Method:
    """The method by its public facts: a frozen value, so that fits with the same facts share it."""
    norm, features, rows, neighbors = public
    made: Method = _method_class(name, loss).planned(
        epsilon, delta, loss=loss, norm=norm, features=features, rows=rows, neighbors=neighbors, penalty=penalty
    )
    return made


def _method_class(name: str, loss: ConvexLoss) -> Any:
    """The class of a method. Newton's steps for a squared loss are one step, by its sufficient statistics."""
    match name:
        case "output":
            from tacit.learn.output import OutputPerturbation

            return OutputPerturbation
        case "objective":
            from tacit.learn.objective import ObjectivePerturbation

            return ObjectivePerturbation
        case "gradient":
            from tacit.learn.gradient import NoisyGradientDescent

            return NoisyGradientDescent
        case "newton" if isinstance(loss, HuberLoss):
            from tacit.learn.moments import SufficientStatistics

            return SufficientStatistics
    from tacit.learn.newton import NoisyNewton

    return NoisyNewton
