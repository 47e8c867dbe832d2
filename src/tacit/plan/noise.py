"""How epsilon is spent: which noise each vector gets, how each choice is made, which private keys are shown.

All of it follows from the question, the policy and the epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.filters import max_rho
from tacit.aggregates.base import Measurement, QuantileMeasurement, TopKMeasurement, VectorMeasurement
from tacit.answers.clipping import Clipping
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.top_k import TopK
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.contribution import count_selections, l0_sensitivity, vector_l1_sensitivity, vector_l2_sensitivity
from tacit.privacy.loss import ApproximateDp, BoundedRange, Compose, ConcentratedDp, Loss, PureDp, Repeat
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors


@dataclass(frozen=True)
class Part:
    """One vector, the noise it gets, and how far one unit can move it in L1."""

    need: VectorMeasurement
    mechanism: Laplace | Gaussian
    sensitivity: int


@dataclass(frozen=True)
class ClippedPart:
    """One vector that is clipped with all others of a question, and its weight in the norm."""

    need: VectorMeasurement
    weight: int

    @property
    def largest(self) -> int:
        """The most that a row adds to the vector, in size."""
        return max(abs(self.need.lower), abs(self.need.upper))


@dataclass(frozen=True)
class Pick:
    """One choice in each group, or several in turn."""

    need: QuantileMeasurement | TopKMeasurement
    mechanism: Quantile | PermuteAndFlip | TopK


AnyPart = Part | ClippedPart | Pick


@dataclass(frozen=True)
class Shown:
    """How private keys are selected: by the units that hold them, by weight, or by the released count at `part`."""

    mechanism: PartitionSelection | Threshold | WeightedGaussianSelection
    part: int | None


@dataclass(frozen=True)
class Spending:
    """The parts in the order needed, the selection of keys, and what all of it costs.

    `delta` is what Gaussian noise is charged by basic composition. With `clipping`, all parts are clipped together.
    """

    parts: tuple[AnyPart, ...]
    shown: Shown | None
    loss: Loss
    delta: Fraction
    clipping: Clipping | None = None


@dataclass(frozen=True)
class Setting:
    """What one unit can do to an answer: kept groups and rows, the relation, the number of groups if it is public."""

    each: ContributionBounds
    neighbors: Neighbors
    groups: int | None


def spend(needed: Mapping[Measurement, Fraction], epsilon: Fraction, delta: Fraction, at: Setting) -> Spending:
    """Share epsilon between what is needed, in proportion to its weight.

    **Theorem.** The release is (epsilon, delta)-DP. Proof. Laplace noise on a vector that moves by d in L1 and a choice
    in each of the groups that a unit is felt in cost their shares of epsilon; private keys cost theirs, and a delta;
    Gaussian noise as a whole costs what its rho converts to. The shares add up to epsilon, the deltas to at most
    `delta`.
    """
    moves = {
        need: vector_l1_sensitivity(need, at.each, at.neighbors, at.groups)
        for need in needed
        if isinstance(need, VectorMeasurement)
    }
    still = {need for need, move in moves.items() if move == 0}  # what no row can move costs nothing
    weights = {need: Fraction(0) if need in still else weight for need, weight in needed.items()}
    if at.groups is None:
        return _plan_with_private_keys(weights, moves, epsilon, delta, at)
    total = sum(weights.values()) or Fraction(1)
    shares = {need: epsilon * weight / total for need, weight in weights.items()}
    laplace, gaussian = _laplace(shares, moves), _gaussian(shares, delta, at)
    noisy = laplace if gaussian is None or _worst(laplace) <= _worst(gaussian) else gaussian
    return _spending(needed, shares, noisy, moves, at, None, delta if noisy is gaussian else Fraction(0))


def _plan_with_private_keys(
    weights: Mapping[Measurement, Fraction],
    moves: Mapping[VectorMeasurement, int],
    epsilon: Fraction,
    delta: Fraction,
    at: Setting,
) -> Spending:
    """The same with private keys, which need a delta.

    A count that is released anyway may also say which keys are shown, at no epsilon of its own: whichever way shows a
    key with fewer units, where each of them has one row.
    """
    if delta == 0:
        raise Refused(
            ErrorCode.PRIVATE_KEY,
            "which keys occur is private, and showing them needs a delta, which the policy sets to zero",
            fix="group by a column with declared values, or ask the owner for a delta",
        )
    touched = l0_sensitivity(at.each, at.neighbors, None)
    total = sum(weights.values()) + 1
    shares = {need: epsilon * weight / total for need, weight in weights.items()}
    selection = PartitionSelection.calibrated(epsilon / total, delta, touched)
    gaussian = _gaussian(shares, delta / 2, at)
    laplace = _laplace(shares, moves)
    if gaussian is not None and _worst(gaussian) < _worst(laplace):
        halved = PartitionSelection.calibrated(epsilon / total, delta / 2, touched)
        return _spending(weights, shares, gaussian, moves, at, Shown(halved, None), delta / 2)
    counted = next((need for need in weights if isinstance(need, VectorMeasurement) and need.is_plain_count), None)
    if counted is not None:
        richer = {need: epsilon * weight / (total - 1) for need, weight in weights.items()}
        rows = 1 if counted.is_per_unit else at.each.rows
        threshold = Threshold.calibrated(richer[counted], delta, at.each.groups, rows, moves[counted])
        if threshold.least() <= selection.threshold():
            shown = Shown(threshold, list(weights).index(counted))
            return _spending(weights, richer, _laplace(richer, moves), moves, at, shown, Fraction(0))
    return _spending(weights, shares, laplace, moves, at, Shown(selection, None), Fraction(0))


Noises = dict[VectorMeasurement, Laplace | Gaussian]


def _laplace(shares: Mapping[Measurement, Fraction], moves: Mapping[VectorMeasurement, int]) -> Noises:
    return {
        need: Laplace.calibrated(share or Fraction(1), moves[need])
        for need, share in shares.items()
        if isinstance(need, VectorMeasurement)
    }


def _gaussian(shares: Mapping[Measurement, Fraction], delta: Fraction, at: Setting) -> Noises | None:
    """Gaussian noise for all vectors at the epsilon of all of them together; None where there is no delta for it.

    rho is shared so that each vector has the same part of the root of it as it would have of epsilon.
    """
    vectors = [need for need, share in shares.items() if isinstance(need, VectorMeasurement) and share > 0]
    if delta == 0 or not vectors:
        return None
    rho = max_rho(sum((shares[need] for need in vectors), Fraction(0)), delta)
    squares = sum((shares[need] ** 2 for need in vectors), Fraction(0))
    if rho == 0:
        return None
    noises: Noises = {}
    for need, share in shares.items():
        if isinstance(need, VectorMeasurement):
            shift, coordinates = vector_l2_sensitivity(need, at.each, at.neighbors, at.groups)
            part = rho * share**2 / squares if share > 0 else rho
            noises[need] = Gaussian(_round_up(Gaussian.for_rho(part, shift, coordinates).variance))
    return noises


def _round_up(variance: Fraction) -> Fraction:
    """A little more, with few digits: a short name for the same noise."""
    scale = Fraction(10) ** 12
    return Fraction(-(-variance * scale // 1)) / scale if variance < 10**6 else Fraction(-(-variance // 1))


def _worst(noises: Noises) -> float:
    """About the largest error that is not exceeded 95 times of a hundred, relative to what one row may add."""
    worst = 0.0
    for need, noise in noises.items():
        size = max(abs(need.lower), abs(need.upper))
        error = 3.0 * float(noise.scale) if isinstance(noise, Laplace) else 1.96 * math.sqrt(noise.variance)
        worst = max(worst, error / size if size else 0.0)
    return worst


def _spending(
    needed: Mapping[Measurement, Fraction],
    shares: Mapping[Measurement, Fraction],
    noises: Noises,
    moves: Mapping[VectorMeasurement, int],
    at: Setting,
    shown: Shown | None,
    delta: Fraction,
) -> Spending:
    """The parts in order, with the loss of each."""
    choices = count_selections(at.each, at.neighbors, at.groups)
    parts: list[Part | Pick] = []
    losses: list[Loss] = []
    for need in needed:
        if isinstance(need, VectorMeasurement):
            noise = noises[need]
            parts.append(Part(need, noise, moves[need]))
            losses.append(noise.loss(moves[need]) if isinstance(noise, Laplace) else _gaussian_loss(need, noise, at))
        else:
            pick = _pick(need, shares[need] / choices, at)
            parts.append(pick)
            losses.append(_choosing(pick, choices))
    if shown is not None:
        selecting = shown.mechanism
        if isinstance(selecting, Threshold):
            losses.append(ApproximateDp(Fraction(0), selecting.delta))
        else:
            losses.append(selecting.loss())
    return Spending(tuple(parts), shown, Compose(tuple(losses)), delta)


def _gaussian_loss(need: VectorMeasurement, noise: Gaussian, at: Setting) -> Loss:
    """What Gaussian noise costs. A cap on all rows bounds the L2 norm, but not the coordinates: of it rho is all."""
    shift, coordinates = vector_l2_sensitivity(need, at.each, at.neighbors, at.groups)
    if at.each.total is None or need.is_per_unit:
        return noise.loss(shift, coordinates)
    return ConcentratedDp(noise.rho(shift, coordinates))


def _pick(need: QuantileMeasurement | TopKMeasurement, share: Fraction, at: Setting) -> Pick:
    """A choice at its epsilon in one group."""
    if isinstance(need, TopKMeasurement):
        monotone = at.neighbors is Neighbors.ADD_REMOVE
        if need.k > 1:
            return Pick(need, TopK.calibrated(share, need.k, at.each.rows, monotone))
        return Pick(need, PermuteAndFlip.calibrated(share, at.each.rows, monotone))
    grid = need.argument
    return Pick(need, Quantile.calibrated(share, need.level, at.each.rows, at.neighbors, grid.lower, grid.upper))


def _choosing(pick: Pick, choices: int) -> Loss:
    """What a choice costs in all groups that a unit is felt in, as so many choices.

    A top-k is as many choices in turn, each of a bounded range and of an equal part of epsilon (`TopK`).
    """
    match pick.mechanism:
        case Quantile(epsilon):
            return Repeat(BoundedRange(epsilon), choices)
        case TopK(epsilon, count):
            return Repeat(BoundedRange(epsilon / count), choices * count)
        case PermuteAndFlip(epsilon):
            return Repeat(PureDp(epsilon), choices)
