"""How private keys are selected where a clip bounds what a unit adds (`max_rows = "auto"`): by weight, without a cap.

No cap on the keys of a unit need be declared then: at most `MOST_KEYS` of each count, and a unit of t keys adds
1/sqrt(t) to each of them (`mechanisms/weighted_selection.py`).

**Rule.** Keys are selected by weight, unless a declared maximum of a unit's rows, and so of its keys, is so low that
`PartitionSelection` shows a key with no more units than weights do where each unit holds that key alone. Weights need
more units wherever units hold more keys, so then they never show more. Both numbers follow from epsilon, delta, the
relation and the declared maximum. Where epsilon is so small that its rho is below a grain, or delta below what can be
halved, keys are selected as with caps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.filters import max_rho
from tacit.mechanisms.partition import LEAST_DELTA, PartitionSelection
from tacit.mechanisms.weighted_selection import LEAST_RHO, WeightedGaussianSelection
from tacit.plan.contribution import l0_sensitivity
from tacit.plan.noise import Setting, Shown, Spending
from tacit.plan.relation import Relation
from tacit.privacy.loss import Compose, Loss
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import ExactStatistic

MOST_KEYS = 1_000
"""Private keys of one unit that count when deciding which keys are shown."""


@dataclass(frozen=True)
class KeySelection:
    """How keys are selected, what that costs, and what its Gaussian noise is charged by basic composition."""

    shown: Shown
    losses: tuple[Loss, ...]
    delta: Fraction


def select_keys(
    epsilon: Fraction, delta: Fraction, at: Setting, relation: Relation, *, is_weighed: bool
) -> KeySelection:
    """The selection of private keys at an epsilon and a delta above zero; `is_weighed` says whether by weight.

    **Theorem.** It is (epsilon, delta)-DP. Proof: each of the two mechanisms is, at the numbers given to it. Of a unit
    `PartitionSelection` sees at most the groups of `at.each`, and weights at most their own number of groups.
    """
    weighted = _weigh_keys(epsilon, delta, at, relation) if is_weighed else None
    if weighted is not None:
        return KeySelection(Shown(weighted, None), weighted.loss().parts, delta / 2)
    touched = l0_sensitivity(at.each, at.neighbors, None)
    selection = PartitionSelection.calibrated(epsilon, delta, touched)
    return KeySelection(Shown(selection, None), (selection.loss(),), Fraction(0))


def _weigh_keys(
    epsilon: Fraction, delta: Fraction, at: Setting, relation: Relation
) -> WeightedGaussianSelection | None:
    """The selection by weight; None where the rule says otherwise."""
    if delta < 2 * LEAST_DELTA or max_rho(epsilon, delta / 2) < LEAST_RHO:
        return None
    declared = relation.most_rows
    most = MOST_KEYS if declared is None else min(MOST_KEYS, declared)
    weighted = WeightedGaussianSelection.calibrated(epsilon, delta, most, at.neighbors)
    touched = l0_sensitivity(ContributionBounds(most, 1), at.neighbors, None)
    if PartitionSelection.calibrated(epsilon, delta, touched).threshold() <= weighted.units():
        return None
    return weighted


def spend_on_keys(epsilon: Fraction, delta: Fraction, at: Setting, relation: Relation) -> Spending:
    """Spend all of epsilon on the selection of keys, where nothing else is asked for."""
    chosen = select_keys(epsilon, delta, at, relation, is_weighed=True)
    return Spending((), chosen.shown, Compose(chosen.losses), chosen.delta)


def selection_measure(shown: Shown | None) -> ExactStatistic | None:
    """What an engine computes for a selection of keys; None where a released count decides, or nothing is selected."""
    if shown is None or shown.part is not None:
        return None
    is_weighed = isinstance(shown.mechanism, WeightedGaussianSelection)
    return ExactStatistic("weight" if is_weighed else "units", None)


def selection_bounds(shown: Shown | None, each: ContributionBounds) -> ContributionBounds:
    """What is kept of a unit for a selection of keys: by weight, as many groups as the mechanism allows."""
    if shown is None or not isinstance(shown.mechanism, WeightedGaussianSelection):
        return each
    return ContributionBounds(shown.mechanism.groups, 1)
