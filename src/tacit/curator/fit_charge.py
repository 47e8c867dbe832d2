"""What the ledger is told of a fit."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting.basic import compose_basic
from tacit.accounting.filters import GRAINS_PER_DELTA, GRAINS_PER_EPSILON, compute_charge
from tacit.privacy.loss import ApproximateDp, Compose, Loss

if TYPE_CHECKING:
    from tacit.learn.base import FitPlan, PrivateLinearModel

_MAX_ATTEMPTS = 6  # to meet an epsilon


def calibrate_to_charge(
    estimator: PrivateLinearModel, columns: int, epsilon: Fraction, delta: Fraction
) -> tuple[FitPlan, Loss, Fraction]:
    """A plan, what the ledger is told of it, and the delta that its Gaussian noise is charged.

    The ledger charges Gaussian noise by its rho, which at one delta is worth a little more epsilon than the method was
    planned for; so it is planned for a little less, until the ledger's charge is the epsilon that was named. A loss
    whose rho says nothing is told as what it is: (epsilon, delta).
    """
    aim = epsilon
    for _ in range(_MAX_ATTEMPTS):
        plan = estimator.set_params(epsilon=aim, delta=delta).plan(columns)
        room = max(Fraction(0), delta - _non_gaussian_delta(plan.privacy_loss))
        found = compute_charge(plan.privacy_loss, room)
        charged = Fraction(found.epsilon, GRAINS_PER_EPSILON)
        if charged <= epsilon and found.delta_a <= delta * GRAINS_PER_DELTA + 2:
            return plan, plan.privacy_loss, room
        if charged > 2 * epsilon:
            break
        aim *= epsilon / charged * (1 - Fraction(1, 10**6))
    plan = estimator.set_params(epsilon=epsilon, delta=delta).plan(columns)
    return plan, ApproximateDp(epsilon, delta), Fraction(0)


def _non_gaussian_delta(loss: Loss) -> Fraction:
    """The delta of what is no Gaussian noise."""
    parts = loss.parts if isinstance(loss, Compose) else (loss,)
    return sum((compose_basic(part).delta for part in parts), Fraction(0))
