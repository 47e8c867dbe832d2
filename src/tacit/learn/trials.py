"""How often to try, so that the best of all trials costs little more than one of them.

>>> from tacit.sampling.bits import ReplayBits
>>> trials = TrialCount.about(10, "logarithmic")
>>> trials.factor, round(float(trials.mean), 3)
(2, 10.0)
>>> trials.draw(ReplayBits(b"example"))
22
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tacit.arithmetic import Number, to_rational_between
from tacit.errors import ParameterError
from tacit.sampling import bernoulli, geometric
from tacit.sampling.bits import Bits

DISTRIBUTIONS = {"logarithmic": 0, "geometric": 1}
_MARGIN = 1 + Fraction(1, 2**30)  # above the rounding of a mean


@dataclass(frozen=True)
class TrialCount:
    """A distribution of the number K of trials: P(K = k) proportional to q^k/k (shape 0) or q^k (shape 1), q =
    exp(-1/scale).

    **Theorem** (Liu and Talwar 2019; Papernot and Steinke 2022). Let a trial be (e, d)-DP, with an outcome that has a
    score. Draw K, do K independent trials, and publish the first of those with the best score, and nothing else: not
    K, nor how long it took. This is ((2 + shape) e, d E[K])-DP.

    **Proof.** Let f be the generating function of K: f'(x) is proportional to (1 - q x)^-(1 + shape).
    *d = 0.* Let p be the distribution of a trial. Among trials with the best score s, the first is a draw of p given s.
    So an outcome y of score s is published with probability (f(P(<= s)) - f(P(< s))) p(y)/P(= s), which is p(y) times
    the mean of f' over [P(< s), P(<= s)]. For a neighbor's p* and the point t of the way, 1 - x = P(> s) + (1 - t) P(=
    s) is at least e^-e times its counterpart, and so is 1 - q x = 1 - q + q (1 - x). Hence f' is at most e^((1 + shape)
    e) times its counterpart, and p(y) at most e^e times p*(y). *d > 0.* Two distributions that are (e, d)-close are (1
    - d) p + d r and (1 - d) p* + d r*, where p and p* are e-close (Kairouz, Oh, Viswanath 2015). A coin for each trial
    chooses. All coins choose p with probability E[(1 - d)^K], at least 1 - d E[K], on both sides; given that, K has the
    same distribution with q (1 - d) in place of q, to which the first part applies.
    """

    shape: int
    scale: Fraction

    @classmethod
    def about(cls, mean: Number, distribution: str = "logarithmic") -> TrialCount:
        """The distribution of this name with about this mean."""
        if distribution not in DISTRIBUTIONS:
            raise ParameterError(
                "distribution", f"there is no {distribution!r:.60}", fix=f"choose one of {', '.join(DISTRIBUTIONS)}"
            )
        goal = float(to_rational_between("trials", mean, Fraction(11, 10), Fraction(10**5)))
        low, high = math.log(1e-3), math.log(1e8)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if _mean(DISTRIBUTIONS[distribution], math.exp(middle)) > goal else (middle, high)
        return cls(DISTRIBUTIONS[distribution], Fraction(math.exp(low)).limit_denominator(10**9))

    @property
    def factor(self) -> int:
        """How many times the epsilon of a trial the best one costs."""
        return 2 + self.shape

    @property
    def mean(self) -> Fraction:
        """E[K], rounded up."""
        return Fraction(_mean(self.shape, float(self.scale))) * _MARGIN

    def draw(self, bits: Bits) -> int:
        """K, exactly. The logarithmic distribution keeps a geometric k with probability 1/k."""
        while True:
            count = 1 + geometric.draw(self.scale, bits)
            if self.shape == 1 or bernoulli.draw_rational(Fraction(1, count), bits):
                return count


def _mean(shape: int, scale: float) -> float:
    """1/(1 - q), or q/((1 - q) ln(1/(1 - q)))."""
    fails = -math.expm1(-1 / scale)  # 1 - q
    return 1 / fails if shape == 1 else (1 - fails) / (fails * -math.log(fails))
