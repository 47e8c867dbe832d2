"""Propose, test, release: a bound on the median's local sensitivity is proposed, and used if it safely holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, certified_floor, to_integer, to_interval, to_rational_between
from tacit.frozen import set_fields
from tacit.mechanisms.validation import check_probability, check_range
from tacit.privacy.local import clamp_and_sort, median_distance_to_bound
from tacit.privacy.loss import ApproximateDp
from tacit.sampling import laplace
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)  # epsilon


@dataclass(frozen=True, init=False)
class ProposedMedian:
    """Releases the lower median with noise for a proposed bound on its local sensitivity, or None.

    The noise is discrete Laplace of scale bound/epsilon_release; None is released where the bound is not safe.
    Let g(x) be the number of rows to change until the median's local sensitivity passes `bound`. The test passes if
    g(x) plus discrete Laplace noise of scale 1/epsilon_test is at least t, the least integer with P[noise >= t] <=
    delta.

    **Theorem** (Dwork, Lei 2009). Under REPLACE the release is (epsilon_test + epsilon_release, delta)-DP.

    Proof. Take neighbors x and y. If |f(x) - f(y)| <= bound, then g moves by at most one, being a distance to a set,
    and f by at most `bound`: two Laplace releases, the second of which may or may not be shown, compose to epsilon_test
    + epsilon_release. Otherwise both have a local sensitivity above `bound`, so that g(x) = g(y) = 0: both tests pass
    with the same probability, which is at most delta, and both releases are None otherwise: (0, delta)-DP.

    Where the bound is the whole range the local sensitivity never passes it: the test passes always, for every data.
    The number of rows is public, and the noise is exact. `passes` and `law` are certified intervals.

    A mean cannot be released so: one changed row, at an end of the range, makes its local sensitivity the global one,
    so g <= 1 for every bound below the range, and the test does not pass.

    Parameters
    ----------
    lower, upper : int
        Ends of the declared range of the values, to which the data is clamped; public, with lower <= upper.
    bound : int
        The proposed bound on the local sensitivity, at least 1. A small one gives little noise and passes the test
        only where many rows lie close to the median.
    epsilon_test, epsilon_release : number
        Privacy loss of the test and of the noisy median, each from 10^-9 to 10^6.
    delta : number
        Probability that the test passes where it must not, from 10^-100 to 0.49.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    SmoothMedian : Always releases a value, without a delta.
    Quantile : Releases a point of the grid by its rank, under either neighbor relation.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> median = ProposedMedian.calibrated(epsilon=1, delta=1e-6, lower=0, upper=100, bound=1)
    >>> median.threshold()
    27
    >>> median.release([50] * 400 + [51] * 401, ReplayBits(b"example"))
    54
    >>> median.release([50] * 10 + [90] * 11, ReplayBits(b"example")) is None
    True
    """

    lower: int
    upper: int
    bound: int
    epsilon_test: Fraction
    epsilon_release: Fraction
    delta: Fraction

    def __init__(
        self, lower: int, upper: int, bound: int, epsilon_test: Number, epsilon_release: Number, delta: Number
    ) -> None:
        low, high = check_range(lower, upper)
        set_fields(
            self,
            lower=low,
            upper=high,
            bound=to_integer("bound", bound, least=1),
            epsilon_test=to_rational_between("epsilon_test", epsilon_test, _LEAST, _MOST),
            epsilon_release=to_rational_between("epsilon_release", epsilon_release, _LEAST, _MOST),
            delta=to_rational_between("delta", delta, Fraction(1, 10**100), Fraction(49, 100)),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, delta: Number, lower: int, upper: int, bound: int) -> ProposedMedian:
        """Return the mechanism that spends half of epsilon on the test and half on the release.

        Parameters
        ----------
        epsilon : number
            Privacy loss of the test and the release together, from 2 10^-9 to 10^6.
        delta : number
            Probability that the test passes where it must not, from 10^-100 to 0.49.
        lower, upper : int
            Ends of the declared range of the values, with lower <= upper.
        bound : int
            The proposed bound on the local sensitivity, at least 1.

        Returns
        -------
        ProposedMedian
            The calibrated mechanism, which is (epsilon, delta)-DP.
        """
        half = to_rational_between("epsilon", epsilon, 2 * _LEAST, _MOST) / 2
        return cls(lower, upper, bound, half, half, delta)

    def loss(self) -> ApproximateDp:
        """Return the privacy loss of a release, under REPLACE, whether or not the test passes.

        Returns
        -------
        ApproximateDp
            What `tacit.accounting` composes.
        """
        return ApproximateDp(self.epsilon_test + self.epsilon_release, self.delta)

    def threshold(self) -> int:
        """Return t, the noisy distance from instability at which the test passes.

        It is the least m with q^m / (1 + q) <= delta, q = exp(-epsilon_test). No m makes the two equal, q being
        transcendental.

        Returns
        -------
        int
            How many rows must seem to be changeable before the local sensitivity passes `bound`.
        """

        def steps() -> arb:
            q = (-to_interval(self.epsilon_test)).exp()
            return -((1 + q) * to_interval(self.delta)).log() / to_interval(self.epsilon_test)

        return 1 + certified_floor(steps, 256)

    def release(self, values: Iterable[int], bits: Bits | None = None) -> int | None:
        """Release the noisy median, or that the test did not pass. Two draws are made in either case.

        Parameters
        ----------
        values : iterable of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int or None
            The noisy median, clamped to [lower, upper]; None where the test did not pass.

        Raises
        ------
        ParameterError
            If there are no values, or one is not an integer.
        """
        bits = bits_or_system(bits)
        x = clamp_and_sort(values, self.lower, self.upper)
        test = laplace.draw(1 / self.epsilon_test, bits)
        noise = laplace.draw(self._scale, bits)
        distance = median_distance_to_bound(x, self.lower, self.upper, self.bound)
        if distance is not None and distance + test < self.threshold():
            return None
        return min(max(x[(len(x) - 1) // 2] + noise, self.lower), self.upper)

    def passes(self, values: Sequence[int]) -> arb:
        """Return the probability that the test passes, which is private.

        Parameters
        ----------
        values : sequence of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.

        Returns
        -------
        arb
            The probability, as a certified interval at the working precision.
        """
        from flint import arb

        distance = median_distance_to_bound(values, self.lower, self.upper, self.bound)
        return arb(1) if distance is None else _at_least(1 / self.epsilon_test, self.threshold() - distance)

    def law(self, values: Iterable[int]) -> dict[int | None, arb]:
        """Return the probability of None and of every integer of the range, which depend on the private data.

        Parameters
        ----------
        values : iterable of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.

        Returns
        -------
        dict of int or None to arb
            The probability of each release, as certified intervals at the working precision.
        """
        from flint import arb

        x = clamp_and_sort(values, self.lower, self.upper)
        middle, shown = x[(len(x) - 1) // 2], self.passes(x)
        above = [arb(1), *(_at_least(self._scale, k - middle) for k in range(self.lower + 1, self.upper + 1)), arb(0)]
        found: dict[int | None, arb] = {None: 1 - shown}
        for place, k in enumerate(range(self.lower, self.upper + 1)):
            found[k] = shown * (above[place] - above[place + 1])
        return found

    def error(self, confidence: Number) -> int:
        """Return the least w such that a released median is within w of the true one.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.

        Returns
        -------
        int
            The half width of a confidence interval, in steps of the grid. It does not depend on the data.
        """
        level = check_probability("confidence", confidence)
        return laplace.tail_quantile(self._scale, 1 - level)

    @property
    def _scale(self) -> Fraction:
        return self.bound / self.epsilon_release


def _at_least(scale: Fraction, m: int) -> arb:
    """P(noise >= m) of discrete Laplace noise."""
    q = (-1 / to_interval(scale)).exp()
    return q**m / (1 + q) if m >= 0 else 1 - q ** (1 - m) / (1 + q)
