"""Composing pairs of distributions by a Fourier transform whose error is relative, and counted.

The masses are multiplied by exp(tilt * loss) before the transform, so that the sum of the losses is likely to be near
the epsilon that is asked for. Then rounding is small beside the answer, however small delta is, and only a window
around epsilon is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.privacy_loss_distribution import PrivacyLossDistribution, discretize, infinite_of, least_step

Array = NDArray[Any]
_OUTSIDE = 1e-22  # the probability, after tilting, of falling out of the window on one side
_BLOCKS = 2048
_TINY = 1e-300
_TOO_LONG = 2**22  # points of a window
MOST_USES = 2**36  # beyond, the roundings of a coefficient of a transform may be more than its power
_ROUNDING = 2.0**-50  # eight roundings of doubles in each level of a transform


@dataclass(frozen=True)
class ComposedDistribution:
    """The tilted distribution of the sum of all losses: masses on `start + step * (0, 1, ...)`.

    **Theorem.** For tilt t, K = ln E[exp(t S)] and the tilted distribution T of the sum S of all losses,
    delta(x) = exp(K - t x) sum over s > x of T(s) exp(-t (s - x)) (1 - exp(x - s)), plus the infinite losses. The
    computed masses differ from T by less than `error` each inside the window; with probability at most `outside` S
    falls out of it, where the factor is at most one. Each mass before the transform is within a factor
    1 +- `relative`/n of the true one for n uses, and S within `shift` of the sum on the grid. A sum of N positive terms
    has a relative error of at most N 2^-53, an exponential of x one of at most (|x| + 1) 2^-52.
    """

    masses: Array
    start: float
    step: float
    tilt: float
    growth: float
    infinite: float
    error: float
    outside: float
    relative: float
    shift: float

    def delta(self, epsilon: float, *, upper: bool = True) -> float:
        """delta(epsilon), from above or from below."""
        epsilon = float(epsilon - self.shift if upper else epsilon + self.shift)
        last = self.masses.size
        first = max(0, math.floor(min(float(epsilon - self.start) / float(self.step), last)) + (not upper))
        if self.tilt > 0:  # beyond, the factor is below e^-50, and so is the share of what is left out
            last = min(last, first + math.ceil(50 / (self.tilt * self.step)) + 1)
        above = np.maximum(self.start + self.step * np.arange(first, last) - epsilon, 0.0)
        factor = np.exp(-self.tilt * above) * -np.expm1(-above)
        sign = 1 if upper else -1
        sums = float(self.masses[first:last] @ factor) + sign * (self.error * float(factor.sum()) + 2 * self.outside)
        if upper and last < self.masses.size:
            sums += math.exp(-50)
        log = self.growth - self.tilt * epsilon
        relative = self.relative + 2.0**-50 * (abs(self.growth) + abs(self.tilt * epsilon) + max(0, last - first) + 1)
        found = math.ulp(0.0) * upper  # the exponential of less than -2,000, whatever the errors are
        if log > -2000:
            found = max(found, math.exp(min(log, 700)) * max(sums, 0.0) * max(0.0, 1 + sign * relative))
        infinite = self.infinite if upper else self.infinite * (1 - 2.0**-46)
        return min(1.0, max(0.0, infinite + (1 - infinite * (not upper)) * found) * (1 + sign * 2.0**-50))


def log_moments(terms: Sequence[tuple[PrivacyLossDistribution, int]]) -> Callable[[float], float]:
    """ln E[exp(tilt S)] as a function of the tilt."""
    return lambda tilt: math.fsum(times * atoms.growth(tilt) for atoms, times in terms)


def compose_by_fft(
    terms: Sequence[tuple[PrivacyLossDistribution, int]], step: float, tilt: float
) -> ComposedDistribution:
    """The sum of the losses of all terms, each so many times, on a grid of this step, or a coarser one where it must.

    *The window.* For any u > 0, P(S >= top) <= exp(K(t + u) - K(t) - u top) under the tilted distribution, so the
    window's ends are where this is 1e-22 for the best u; masses in blocks, each at its outer end, bound K. The
    transform wraps what is outside into the window: it only adds there.

    *Rounding.* A coefficient of a transform of length N of masses that add up to one is wrong by at most
    g = 8 * 2^-53 * log2 N. The product of powers is wrong by n g (|F| + g)^{n-1} and a relative n g, and the way back
    adds g times the mean size of the coefficients. As n is at most 2^36, n g is below 2^-9, and (|F| + g)^{n-1} below
    twice |F|^{n-1} wherever that is more than e^-60.
    """
    if sum(times for _, times in terms) > MOST_USES:
        raise ArithmeticError("too many uses for the roundings of a Fourier transform")
    if infinite_of(terms) == 1:
        return ComposedDistribution(np.zeros(1), 0.0, step, tilt, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    step = float(max(step, *(max(float(np.ptp(atoms.loss)) / _TOO_LONG, least_step(atoms)) for atoms, _ in terms)))
    grids = [(*discretize(atoms, step), times) for atoms, times in terms]
    factors, relative = [], 0.0
    for (first, offset, masses, _, times), (atoms, _) in zip(grids, terms, strict=True):
        places = offset + step * (first + np.arange(masses.size))
        with np.errstate(divide="ignore"):
            logs = np.log(masses) + tilt * places
        total = float(np.logaddexp.reduce(logs))
        tilted = np.exp(logs - total)
        factors.append((first, offset, tilted, times, total, places))
        far = tilt * float(np.abs(places[tilted > 0]).max())
        relative += times * (atoms.error + 2.0**-44 + 2.0**-50 * (far + abs(total)))
    total_growth = math.fsum(times * total for *_, times, total, _ in factors)
    offset = math.fsum(times * offset for _, offset, *_, times in grids)
    low, high = _window([(masses, places, times) for _, _, masses, times, _, places in factors])
    begin = math.floor((low - offset) / step) - 1
    length = _length(math.ceil((high - offset) / step) + 2 - begin)
    if length > _TOO_LONG:  # a longer window than memory: a coarser grid is as true, and less tight
        return compose_by_fft(terms, step * 2 * length / _TOO_LONG, tilt)
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    sizes = []
    for first, _, masses, times, _, _ in factors:
        around = np.bincount((first + np.arange(masses.size)) % length, masses, length)
        spectrum = np.fft.rfft(around)
        size = np.abs(spectrum)
        sizes.append((size, times))
        product *= spectrum if times == 1 else _power(spectrum, times)
    result = np.fft.irfft(product, length)
    masses = np.maximum(np.roll(result, -(begin % length)), 0.0)
    rounding = _ROUNDING * math.log2(max(length, 2))
    uses = sum(times for _, times in terms)
    whole = np.abs(product)
    lost = np.zeros(whole.size)
    for size, times in sizes:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(size > 0, whole / size, 0.0)
        lost += times * np.maximum(share, whole) * rounding
    error = 2 * float(np.mean(lost + (uses + 1) * rounding * whole)) + math.exp(-59)
    slips = math.fsum(
        times * (atoms.slip + slip) for (atoms, times), (_, _, _, slip, _) in zip(terms, grids, strict=True)
    )
    return ComposedDistribution(
        masses,
        offset + begin * step,
        step,
        tilt,
        total_growth,
        infinite_of(terms),
        error,
        _OUTSIDE,
        math.expm1(min(relative, 700.0)),
        slips + 2.0**-44 * (abs(low) + abs(high)),
    )


def _power(spectrum: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Each coefficient to a whole power; those whose power is below e^-60 are zero."""
    size = np.abs(spectrum)
    large = np.flatnonzero(size > math.exp(-60 / times))
    power = np.zeros(spectrum.size, dtype=np.complex128)
    power[large] = np.exp(times * np.log(size[large]) + 1j * times * np.angle(spectrum[large]))
    return power


def _window(laws: Sequence[tuple[Array, Array, int]]) -> tuple[float, float]:
    """Ends that the sum of tilted losses passes with probability at most 1e-22 on each side.

    The losses of a block are replaced by its two ends, with the same mean: exp(u x) is convex, so its mean grows.
    """
    blocks = [(*_blocks(masses, places), times) for masses, places, times in laws]
    mean = math.fsum(times * float(sums @ at) for sums, at, times in blocks)
    spread = math.sqrt(math.fsum(t * float(sums @ (at - sums @ at) ** 2) for sums, at, t in blocks)) + 1e-300
    room = -math.log(_OUTSIDE)

    def end(u: float) -> float:
        total = 0.0
        for sums, at, times in blocks:
            top = max(u * at[0], u * at[-1])
            total += times * (top + math.log(float(sums @ np.exp(u * at - top)) + _TINY))
        return (total + room) / u

    largest = max(float(np.abs(at).max()) for _, at, _ in blocks) * float(sum(times for _, _, times in blocks))
    tries = math.sqrt(2 * room) / spread * np.exp(np.linspace(-4, 2, 19))
    tries = np.minimum(tries, 1e300 / max(largest, 1.0))  # any u is true; losses that do not spread need no large one
    # The sum is never beyond the sum of the largest and of the smallest.
    top = min(*(end(u) for u in tries), math.fsum(times * float(at[-1]) for _, at, times in blocks))
    bottom = max(*(end(-u) for u in tries), math.fsum(times * float(at[0]) for _, at, times in blocks))
    return min(bottom, mean), max(top, mean)


def _blocks(masses: Array, places: Array) -> tuple[Array, Array]:
    keep = masses > 0
    masses, places = masses[keep], places[keep]
    each = -(-masses.size // _BLOCKS)
    if each == 1:
        return masses, places
    starts = np.arange(0, masses.size, each)
    sums = np.add.reduceat(masses, starts)
    first, last = places[starts], places[np.minimum(starts + each, masses.size) - 1]
    moment = np.add.reduceat(masses * places, starts) - sums * first
    upper = np.clip(np.divide(moment, last - first, out=np.zeros(sums.size), where=last > first), 0.0, sums)
    return np.stack([sums - upper, upper], axis=1).ravel(), np.stack([first, last], axis=1).ravel()


def _length(least: int) -> int:
    """The least length of the form 2^a, 3 * 2^a or 5 * 2^a: quick, and as exact as a power of two."""
    power = 1 << max(1, (least - 1).bit_length())
    return min(size for size in (power, power * 3 // 4, power * 5 // 8) if size >= least and size % 2 == 0)
