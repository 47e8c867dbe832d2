"""Which method to use, chosen by public facts: epsilon and delta, the numbers of rows, columns and classes, the loss.

All thresholds are in `MethodThresholds`. A choice that read the data would have a privacy loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tacit.errors import ParameterError
from tacit.learn.facts import DeclaredParameters
from tacit.learn.gradient import NoisyGradientDescent
from tacit.learn.losses import ConvexLoss, HuberLoss, SmoothedHinge
from tacit.learn.method import LearningTask, Method
from tacit.learn.moments import SufficientStatistics
from tacit.learn.multiclass_hinge import MulticlassHinge
from tacit.learn.newton import NoisyNewton
from tacit.learn.objective import ObjectivePerturbation
from tacit.learn.output import OutputPerturbation, decisive_score

METHODS: dict[str, type[Method]] = {
    "output": OutputPerturbation,
    "objective": ObjectivePerturbation,
    "gradient": NoisyGradientDescent,
    "newton": NoisyNewton,
}
# Newton's steps for a squared loss are one step, by its sufficient statistics.
_SQUARED_LOSS_METHODS: dict[str, type[Method]] = METHODS | {"newton": SufficientStatistics}


@dataclass(frozen=True)
class MethodThresholds:
    """The thresholds of `choose_method`. The signal of a fit is epsilon rows/sqrt(weights): how far rows stand out of
    noise.

    `plenty`: the signal from which objective perturbation is as good as any, at the time of one fit without noise.
    `wide`: the most columns for which noise on all products of two of them is worth what these tell.
    `factored`: the most columns that a minimizer is certified for.
    `faint`: the signal below which products are learned from, however many columns there are: weights that are shrunk
    by these sums leave a constant where they say nothing, which no public rule does.
    The first two were chosen on synthetic data: benchmarks/rules.md; the last one too: benchmarks/learn_defaults.md.
    """

    plenty: float = 800.0
    wide: int = 32
    factored: int = 2000
    faint: float = 0.0


THRESHOLDS = MethodThresholds()
TUNED = MethodThresholds(faint=1000.0)  # where weights are shrunk by the released sums


def choose_method(facts: DeclaredParameters, loss: ConvexLoss, rule: MethodThresholds = THRESHOLDS) -> str:
    """The name of the method for these facts.

    - A delta of zero leaves only output perturbation, whose noise can be Laplace's.
    - A hinge of several classes is learned by noisy gradients.
    - A squared loss is learned from its sufficient statistics, where columns are not too many: one release, one solve.
    - Otherwise objective perturbation where the signal is plenty, else noisy gradients.
    """
    if isinstance(loss, MulticlassHinge):
        return "gradient"
    if facts.delta == 0:
        return "output"
    signal = float(facts.epsilon) * facts.rows / math.sqrt(facts.width * loss.outputs)
    if isinstance(loss, HuberLoss):
        faint = signal < rule.faint and facts.width <= rule.factored
        return "newton" if faint or facts.width <= rule.wide else "gradient"
    return "objective" if signal >= rule.plenty and facts.width <= rule.factored else "gradient"


def plan_method(
    name: str,
    facts: DeclaredParameters,
    loss: ConvexLoss,
    penalty: float | None,
    rule: MethodThresholds = THRESHOLDS,
) -> tuple[str, Method]:
    """The method of this name, `auto` among them, calibrated to the facts. No data is touched."""
    if not isinstance(name, str) or name not in (*METHODS, "auto"):
        known = ", ".join((*METHODS, "auto"))
        raise ParameterError("method", f"there is no {name!r:.60}", fix=f"choose one of {known}")
    name = choose_method(facts, loss, rule) if name == "auto" else name
    if isinstance(loss, MulticlassHinge) and name in ("output", "objective"):
        # Its minimizer is not certified: the curvature of rows jumps in as many ways as there are sets of classes.
        what = f"{name} is not for the hinge of three classes or more"
        raise ParameterError("method", what, fix='method="gradient", or LogisticRegression')
    if facts.delta == 0 and isinstance(loss, MulticlassHinge):
        what = "the hinge of three classes or more needs one above 0"
        raise ParameterError("delta", what, fix="delta=1e-9, say, or LogisticRegression")
    if facts.delta == 0 and name != "output":
        raise ParameterError("delta", f"{name} needs one above 0", fix='choose a delta, or method="output"')
    task = LearningTask(facts.epsilon, facts.delta, loss, facts.norm, facts.width, facts.rows, facts.neighbors, penalty)
    return name, _calibrate(name, task)


def relax_hinge(name: str, facts: DeclaredParameters, loss: ConvexLoss, method: Method) -> Method:
    """The gradient method for a hinge with a penalty for scores of `decisive_score`; every other method as it is.

    `default_gradient_penalty` is for scores of a few times slope/bend. For the logistic loss that is a decisive score,
    4; for a hinge it is twice its width, however little that is, and a penalty for it leaves nothing learned from a few
    hundred rows (benchmarks/learn_defaults.md).
    """
    if name != "gradient" or not isinstance(loss, SmoothedHinge | MulticlassHinge):
        return method
    return plan_method(name, facts, loss, method.penalty * loss.slope / loss.bend / decisive_score(loss))[1]


@lru_cache(maxsize=128)
def _calibrate(name: str, task: LearningTask) -> Method:
    """Return the method for a task: a frozen value, so that fits with the same facts share it."""
    kinds = _SQUARED_LOSS_METHODS if isinstance(task.loss, HuberLoss) else METHODS
    return kinds[name].calibrate(task)
