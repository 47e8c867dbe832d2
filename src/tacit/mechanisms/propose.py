"""Propose, test, release: a bound on the median's local sensitivity is proposed, and used if it safely holds.

>>> from tacit.sampling.bits import ReplayBits
>>> median = ProposedMedian.calibrated(epsilon=1, delta=1e-6, lower=0, upper=100, bound=1)
>>> median.threshold()
27
>>> median.release([50] * 400 + [51] * 401, ReplayBits(b"example"))
54
>>> median.release([50] * 10 + [90] * 11, ReplayBits(b"example")) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import certified_floor, to_integer, to_interval, to_rational_between
from tacit.errors import ParameterError
from tacit.mechanisms.validation import check_probability
from tacit.privacy.local import clamp_and_sort, median_distance_to_bound
from tacit.privacy.loss import ApproximateDp
from tacit.sampling import laplace
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class ProposedMedian:
    """The lower median with Laplace noise of scale bound/epsilon_release, if the data is safely stable; otherwise None.

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
    """

    lower: int
    upper: int
    bound: int
    epsilon_test: Fraction
    epsilon_release: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if to_integer("lower", self.lower) > to_integer("upper", self.upper):
            raise ParameterError("upper", f"is below lower: {self.upper}", fix="choose upper of at least lower")
        to_integer("bound", self.bound, least=1)
        for name in ("epsilon_test", "epsilon_release"):
            object.__setattr__(
                self, name, to_rational_between(name, getattr(self, name), Fraction(1, 10**9), Fraction(10**6))
            )
        object.__setattr__(
            self, "delta", to_rational_between("delta", self.delta, Fraction(1, 10**100), Fraction(49, 100))
        )

    @classmethod
    def calibrated(cls, epsilon: Any, delta: Any, lower: int, upper: int, bound: int) -> ProposedMedian:
        """Half the price for the test and half for the release."""
        half = to_rational_between("epsilon", epsilon, Fraction(2, 10**9), Fraction(10**6)) / 2
        return cls(lower, upper, bound, half, half, delta)

    def loss(self) -> ApproximateDp:
        """What a release costs, under REPLACE, whether or not the test passes."""
        return ApproximateDp(self.epsilon_test + self.epsilon_release, self.delta)

    def threshold(self) -> int:
        """t: how far from instability the data must seem to be.

        The least m with q^m / (1 + q) <= delta, q = exp(-epsilon_test). No m makes the two equal, q being
        transcendental.
        """

        def steps() -> arb:
            q = (-to_interval(self.epsilon_test)).exp()
            return -((1 + q) * to_interval(self.delta)).log() / to_interval(self.epsilon_test)

        return 1 + certified_floor(steps, 256)

    def release(self, values: Sequence[int], bits: Bits | None = None) -> int | None:
        """The noisy median, clamped to the range, or None: the bound was not safe for this data, or probability says
        so.

        Two draws are made in any case.
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
        """The probability that the test passes, as an interval at the working precision. It is private."""
        from flint import arb

        distance = median_distance_to_bound(values, self.lower, self.upper, self.bound)
        return arb(1) if distance is None else _at_least(1 / self.epsilon_test, self.threshold() - distance)

    def law(self, values: Sequence[int]) -> dict[int | None, arb]:
        """The probability of None and of every integer of the range, as intervals at the working precision."""
        from flint import arb

        x = clamp_and_sort(values, self.lower, self.upper)
        middle, shown = x[(len(x) - 1) // 2], self.passes(x)
        above = [arb(1), *(_at_least(self._scale, k - middle) for k in range(self.lower + 1, self.upper + 1)), arb(0)]
        found: dict[int | None, arb] = {None: 1 - shown}
        for place, k in enumerate(range(self.lower, self.upper + 1)):
            found[k] = shown * (above[place] - above[place + 1])
        return found

    def error(self, confidence: Any) -> int:
        """The least w such that a median that is shown is within w with at least this probability; it is public."""
        level = check_probability("confidence", confidence)
        return laplace.tail_quantile(self._scale, 1 - level)

    @property
    def _scale(self) -> Fraction:
        return self.bound / self.epsilon_release


def _at_least(scale: Fraction, m: int) -> arb:
    """P(noise >= m) of discrete Laplace noise."""
    q = (-1 / to_interval(scale)).exp()
    return q**m / (1 + q) if m >= 0 else 1 - q ** (1 - m) / (1 + q)
