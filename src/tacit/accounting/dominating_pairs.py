"""The pair of distributions that dominates each mechanism, as atoms.

`step` is how far apart losses of a distribution with a density are put; `upper` says on which side.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tacit.accounting.convert import renyi_log_delta
from tacit.accounting.privacy_loss_distribution import (
    Array,
    PrivacyLossDistribution,
    discretize_density,
    from_delta_curve,
)
from tacit.accounting.rounding import double_above, double_below
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Leaf,
    PureDp,
)

_MOST = 2**16  # atoms of a distribution, beyond which it is put on a coarser grid
_CELLS = 256  # cells of a distribution with a density, at least
_LONGEST = 2**20  # integers on each side of a discrete distribution that are listed one by one, at most
_REACH = 12.5  # standard deviations: the tail beyond is below 4e-36
_SMOOTH = 4  # the variance from which sums of discrete Gaussians are discrete Gaussian to the last bit


def typical_loss(leaf: Leaf) -> float:
    """About how large the loss of one use is."""
    match leaf:
        case LaplaceNoise(width, distance):
            return double_above(distance / width)
        case ContinuousLaplaceNoise(width):
            return double_above(1 / width)
        case PureDp(epsilon) | BoundedRange(epsilon) | ApproximateDp(epsilon, _):
            return double_above(epsilon)
        case ConcentratedDp(rho):
            return math.sqrt(double_above(2 * rho))
        case ContinuousGaussianNoise(sigma):
            return double_above(1 / sigma)
        case GaussianNoise(variance, shift, coordinates):
            return math.sqrt(double_above(Fraction(coordinates * shift**2) / variance))


def dominating_pair(leaf: Leaf, step: float, *, upper: bool) -> PrivacyLossDistribution:
    """The dominating pair (above), or one that it dominates (below). All are even: both directions are alike."""
    if typical_loss(leaf) == 0:
        lost = leaf.delta if isinstance(leaf, ApproximateDp) else Fraction(0)
        return PrivacyLossDistribution(np.zeros(1), np.array([float(1 - lost)]), double_above(lost))
    match leaf:
        case LaplaceNoise(width, distance):
            return laplace_pair(width, distance, upper=upper)
        case ContinuousLaplaceNoise(width):
            epsilon = double_above(1 / width)
            cells = min(_MOST, math.ceil(2 * epsilon / step))
            return _laplace(epsilon, cells) if upper else _laplace_below(epsilon, cells)
        case PureDp(price):
            return _laplace(double_above(price), 1)
        case ApproximateDp(price, delta):
            pure = _laplace(double_above(price), 1)
            return PrivacyLossDistribution(pure.loss, pure.mass * float(1 - delta), double_above(delta), pure.step)
        case BoundedRange(price):
            return _range(double_above(price), step, upper=upper)
        case ConcentratedDp(rho):
            spread = math.sqrt(double_above(2 * rho))
            return _zcdp_pair(double_above(rho), step) if upper else _gaussian(spread, step, upper=False)
        case ContinuousGaussianNoise(sigma):
            return _gaussian(double_above(1 / sigma), step, upper=upper)
        case GaussianNoise(variance, shift, coordinates):
            assert coordinates == 1, "coordinates are a repetition"
            return gaussian_pair(variance, shift, step, upper=upper)


def laplace_pair(width: Fraction, distance: int, *, upper: bool) -> PrivacyLossDistribution:
    """Discrete Laplace noise of scale b on integers that move by d in L1.

    **Theorem.** The pair E_d of the noise and the noise moved by d on one coordinate dominates every move of at most
    d in L1. Proof. With h = 1/b, E_d has losses (2t - d) h for t = 0..d and delta(x) = 1 - e^{(x - d h)/2} at those; in
    between its curve is linear in e^x. It grows with d, so moves of exactly d = d1 + d2, d1 >= d2, on two coordinates
    are enough, by induction. Their pair has losses of the same grid; both curves are even, so take x >= 0 on it. Given
    the second loss l2 <= d2 h, the first pair adds delta(x - l2) = max(0, 1 - e^{(x - l2 - d1 h)/2}), as
    x - l2 >= -d1 h. That is at most 1 - e^{(x - d1 h - d2 h)/2}, whatever l2 is, and so is the mean.

    Moving by one step is randomized response with epsilon = 1/b. Merging m steps into one is a chord of the same
    curve, so E_d is dominated by noise of scale b/m on moves of ceil(d/m): used where d is large.
    """
    if distance <= _MOST:
        return _laplace(double_above(distance / width), distance)
    merged = -(-distance // _MOST)
    if upper:
        cells = -(-distance // merged)
        return _laplace(double_above(cells * merged / width), cells)
    return _laplace_below(double_above(distance / width), _MOST)


def _laplace(epsilon: float, cells: int) -> PrivacyLossDistribution:
    """Losses from -epsilon to epsilon in `cells` even steps, whose curve is 1 - e^{(x - epsilon)/2} at each of them.

    It grows with epsilon, which is rounded up.
    """
    step = epsilon / cells  # half the distance of two losses
    places = np.arange(cells + 1.0)
    mass = math.tanh(step / 2) * np.exp((places - cells) * step)
    mass[-1], mass[0] = 1 / (1 + math.exp(-step)), math.exp(-epsilon) / (1 + math.exp(-step))
    return PrivacyLossDistribution((2 * places - cells) * step, mass, step=2 * step)


def _laplace_below(epsilon: float, cells: int) -> PrivacyLossDistribution:
    """Real Laplace noise, told by cells. P and Q are e^{x/2} and e^{-x/2} inside, so a cell's ratio is its middle."""
    step = 2 * epsilon / cells
    middle = -epsilon + (np.arange(cells) + 0.5) * step
    mass = np.exp((middle - epsilon) / 2) * math.sinh(step / 4)
    loss = np.concatenate([[-epsilon], middle, [epsilon]])
    return PrivacyLossDistribution(loss, np.concatenate([[math.exp(-epsilon) / 2], mass, [0.5]]), step=step / 2)


def _range(epsilon: float, step: float, *, upper: bool) -> PrivacyLossDistribution:
    """A loss in an interval of length e.

    **Theorem.** delta(x) <= (e^{e/2} - e^{x/2})^2/(e^e - 1) for x in [-e, e]: with the interval's ends t - e and t, the
    worst distribution has all its mass there, (e^e - e^t)/(e^e - 1) of it at t, and the worst t is (x + e)/2. This is
    the curve of a pair whose loss has the density e^{(e + x)/2}/(2 (e^e - 1)) on [-e, e], by differentiating.
    """
    cells = max(_CELLS, math.ceil(2 * epsilon / min(step, 2.0)))
    if cells > _MOST:
        if upper and epsilon > _MOST:
            return _laplace(epsilon, 1)  # it is epsilon-DP
        cells = _MOST
    floor = -math.log(-math.expm1(-epsilon)) - math.log(2)
    return discretize_density(
        lambda x: np.exp((x - epsilon) / 2 + floor), -epsilon, cells, 2 * epsilon / cells, upper=upper
    )


def far(leaf: Leaf, share: float) -> PrivacyLossDistribution | None:
    """The dominating pair with Gaussian tails up to 36 standard deviations above, for moments; None if it is too long.

    The grid's step is this share of the loss's scale. `infinite` says only whether there is more.
    """
    width = typical_loss(leaf)
    if not 1e-12 < width < 8:
        return None
    match leaf:
        case ContinuousGaussianNoise() | GaussianNoise(coordinates=1):
            if isinstance(leaf, ContinuousGaussianNoise):
                top = min(36.0, 2 * _REACH + 12 * width)
                cells = math.ceil((_REACH + top) / share)
                low = width**2 / 2 - _REACH * width
                normal = functools.partial(_normal, width)
                return replace(
                    discretize_density(normal, low, cells, (_REACH + top) * width / cells, upper=True), infinite=1.0
                )
            sigma = math.sqrt(double_above(leaf.variance))
            reach, above = math.ceil(_REACH * sigma) + 1, math.ceil(min(36.0, 2 * _REACH + 12 * width) * sigma) + 1
            if above > 2**12:
                return None
            k = np.arange(-reach, above + 1.0)
            weight = np.exp(-((k / sigma) ** 2) / 2)
            loss = double_above(leaf.shift / leaf.variance) * k + double_above(leaf.shift**2 / (2 * leaf.variance))
            return PrivacyLossDistribution(loss, weight / weight.sum(), 1.0, error=2.0**-36)
        case GaussianNoise():
            return None
    return dominating_pair(leaf, width * share, upper=True)


def _normal(mean: float, x: Array) -> Array:
    """The density of the loss of real Gaussian noise."""
    return np.asarray(np.exp(-(((x - mean**2 / 2) / mean) ** 2) / 2) / (mean * math.sqrt(2 * math.pi)))


def _gaussian(mean: float, step: float, *, upper: bool) -> PrivacyLossDistribution:
    """Real Gaussian noise that moves by `mean` standard deviations: the loss is normal, N(mean^2/2, mean^2)."""
    middle = mean**2 / 2
    cells = min(_MOST, max(_CELLS, math.ceil(2 * _REACH * mean / min(step, 2.0))))
    step = 2 * _REACH * mean / cells
    if upper and step > 2:  # hardly any noise: all of it at the largest loss
        return PrivacyLossDistribution(np.array([middle + _REACH * mean]), np.ones(1), 4e-36)
    found = discretize_density(functools.partial(_normal, mean), middle - _REACH * mean, cells, step, upper=upper)
    return PrivacyLossDistribution(found.loss, found.mass, 4e-36 if upper else 0.0, found.step, 2.0**-39)


def gaussian_pair(variance: Fraction, shift: int, step: float, *, upper: bool) -> PrivacyLossDistribution:
    """Discrete Gaussian noise that moves by `shift`: the loss of k is shift (2k + shift)/(2 variance), up to sign.

    **Theorem.** Noise that moves less is dominated. Proof: the best test is a threshold, as the distribution is
    log-concave; its errors are P(X >= t) and P(X < t - shift), and the second falls as the shift grows. Coordinates
    that move by less than all of it are dominated one by one, and so is their composition.

    **Theorem.** Where there are too many atoms, each mass is taken from the real distribution, with a relative error
    below (s/h)^2, s = shift/variance the distance of losses and h the grid's. Proof: g(k), the density times the share
    of a grid's point, is continuous, and |sum g(k) - integral g| <= V(g')/8, the Peano kernel of the trapezoid rule;
    V(g') is at most about 4 max g over the width h/s in k of a cell, and the integral max g times that width. That the
    density is not constant in a cell, of at most a 64th of its width, makes it at most twice as large in the far tail.
    """
    sigma = math.sqrt(double_above(variance))
    reach = math.ceil(_REACH * min(sigma, 1e150)) + 1  # of wider noise no integer is listed
    spacing = float(shift / variance)
    mean = math.sqrt(double_above(shift**2 / variance)) * (1 + 2.0**-50)
    fine = min(step, mean / 64)
    if reach > _LONGEST:
        fine = max(fine, 64 * spacing)
    if reach > _MOST and spacing < fine / 16:
        found = _gaussian(mean, fine, upper=upper)
        if found.loss.size == 1:  # hardly any noise: all of it at the largest loss, which needs no mass of an integer
            return found
        return replace(found, error=found.error + (spacing / (2 * _REACH * mean / (found.loss.size - 1))) ** 2)
    k = np.arange(-reach, reach + 1.0)
    weight = np.exp(-((k / sigma) ** 2) / 2)
    loss = spacing * k + float(shift**2 / (2 * variance))
    return PrivacyLossDistribution(loss, weight / weight.sum(), 4e-36 if upper else 0.0, spacing, 2.0**-39)


def merge_repetitions(leaf: Leaf, times: int) -> tuple[Leaf, int]:
    """One use that loses what `times` uses do, where there is one.

    **Theorem.** n uses of Gaussian noise are one use with sqrt n times the distance. For discrete noise of variance v
    on c coordinates that move by s: the loss depends on the sum K of the nc noises alone, and K is discrete
    Gaussian of variance ncv, to a relative error below 3 nc e^{-pi^2 v}. Proof: completing the square,
    sum_j f_a(j) f_b(K - j) is f_{a+b}(K) times the sum over j of a Gaussian of variance w = ab/(a+b) >= v/2, which is
    sqrt(2 pi w) up to a factor 1 +- 2.1 e^{-2 pi^2 w} wherever it is centered (Poisson summation). So n uses are
    one use of noise of variance ncv that moves by ncs: below 1e-16 nc from v = 4 on. rho adds up.
    """
    match leaf:
        case GaussianNoise(variance, shift, coordinates):
            many = times * coordinates
            if variance >= _SMOOTH:
                return GaussianNoise(variance * many, shift * many), 1
            return GaussianNoise(variance, shift), many
        case ContinuousGaussianNoise(sigma):
            return ContinuousGaussianNoise(Fraction(float(sigma) / math.sqrt(times)) * (1 - Fraction(1, 2**50))), 1
        case ConcentratedDp(rho):
            return ConcentratedDp(rho * times), 1
    return leaf, times


def merging_error(leaf: Leaf, times: int) -> float:
    """The relative error of the masses of `merge_repetitions`."""
    if isinstance(leaf, GaussianNoise) and leaf.variance >= _SMOOTH:
        return 3.0 * times * leaf.coordinates * math.exp(-(math.pi**2) * min(double_below(leaf.variance), 70.0))
    return 0.0


def _zcdp_pair(rho: float, step: float) -> PrivacyLossDistribution:
    """Anything that is rho-zCDP: its curve is at most that of the conversion, both ways."""
    width = math.sqrt(2 * rho)
    points = np.linspace(-rho - 12 * width, rho + 12 * width, min(2048, math.ceil((2 * rho + 24 * width) / step) + 2))
    near = np.log(np.maximum((np.abs(points) - rho) / (2 * rho), 1e-3))[:, None] + np.linspace(-4, 4, 81)
    order = 1 + np.exp(near)
    logs = renyi_log_delta(order, rho * order, np.abs(points)[:, None])
    logs = logs + 2.0**-46 * (1 + np.log(order) + (order - 1) * (rho * order + np.abs(points)[:, None]))
    deltas = np.exp(np.minimum(logs.min(axis=1), 0.0)) * (1 + 2.0**-44)
    below = points < 0  # the same pair the other way round: delta(-x) = 1 - e^-x + e^-x delta(x)
    deltas = np.where(below, -np.expm1(np.minimum(points, 0)) + np.exp(np.minimum(points, 0)) * deltas, deltas)
    return from_delta_curve(points, np.minimum(deltas, 1.0))
