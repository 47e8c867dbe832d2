"""The sparse vector technique: which of many numbers are above a threshold, paid for by those that are.

>>> from tacit.sampling.bits import ReplayBits
>>> alarm = SparseVector.calibrated(epsilon=1, threshold=1000, count=1, sensitivity=1)
>>> alarm.release([0, 10, 0, 5000, 0, 7000], ReplayBits(b"example"))
[False, False, False, True]
>>> alarm.error(100, Fraction(95, 100))
36
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import to_integer, to_integers, to_interval, working_precision
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms.validation import check_epsilon, check_flag, check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling import laplace
from tacit.sampling.bits import Bits, Uncopyable
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class SparseVector:
    """Draws y once with P(y) proportional to exp(-|y|/threshold_scale); says of each integer u in turn, which may be
    chosen in view of all that was said before, whether u + z >= threshold + y, where each z is drawn anew with P(z)
    proportional to exp(-|z|/scale); and stops for good after `count` times yes.

    With a + b = epsilon, `threshold_scale` is sensitivity/a and `scale` is 2 count sensitivity/b, or
    count sensitivity/b where `monotone`.

    **Theorem.** If between neighbors every integer moves by at most `sensitivity` (and, where `monotone`, all of them
    in the same direction), all that is said is epsilon-DP together, however many times no.

    **Proof.** Given the words before, neighbors are asked the same. The probability of what is said is the sum over y
    of P(y) times, for each no, P(u + z < threshold + y), and for each yes, P(z >= threshold + y - u). Replace y by y +
    sensitivity in the neighbor's sum: P(y) falls by at most e^a; no probability of a no falls, since u moved by no more
    than y; and threshold + y - u grows by at most 2 sensitivity, so a yes falls by at most e^(b/count), because P(z >=
    m + 1) >= exp(-1/scale) P(z >= m) for every integer m. Where all u rise, the last grows by at most `sensitivity`;
    where all fall, leave y as it is: no probability of a no falls, and that of a yes by at most e^(b/count). (Lyu, Su
    and Li 2017, their algorithm 7, with discrete noise; it does not draw y anew and says no number.)

    The split a : b = 1 : (2 count)^(2/3), with count^(2/3) where `monotone`, makes the variance of z - y least (ibid.);
    it is rounded to a rational, and the sum is exactly epsilon.
    """

    epsilon: Fraction
    threshold: int
    count: int = 1
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "threshold", to_integer("threshold", self.threshold))
        object.__setattr__(self, "count", _check_limit(to_integer("count", self.count, least=1)))
        object.__setattr__(self, "sensitivity", to_integer("sensitivity", self.sensitivity, least=1))
        object.__setattr__(self, "monotone", check_flag("monotone", self.monotone))

    @classmethod
    def calibrated(
        cls, epsilon: Any, threshold: int, count: int, sensitivity: int, monotone: bool = False
    ) -> SparseVector:
        """The least noise that is epsilon-DP in all, for integers that move by at most `sensitivity`.

        Where nothing can move, the noise is that of sensitivity one.
        """
        return cls(epsilon, threshold, count, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone)

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the noise on the threshold."""
        return self.sensitivity / (self.epsilon * self._first_part())

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each integer."""
        moves = self.count * self.sensitivity * (1 if self.monotone else 2)
        return moves / (self.epsilon * (1 - self._first_part()))

    def loss(self) -> PureDp:
        """What all the words cost together."""
        return PureDp(self.epsilon)

    def watch(self, bits: Bits | None = None) -> SparseVectorRun:
        """Start, to be asked one integer at a time."""
        bits = bits_or_system(bits)
        return SparseVectorRun(self, bits)

    def release(self, values: Iterable[int], bits: Bits | None = None) -> list[bool]:
        """For each integer in turn whether it is above the threshold, up to and including the last yes that is paid."""
        bits = bits_or_system(bits)
        watch, said = self.watch(bits), []
        for value in to_integers("values", values):
            if watch.stopped:
                break
            said.append(watch.above(value))
        return said

    def law(self, values: Sequence[int], digits: int = 64) -> dict[tuple[bool, ...], arb]:
        """The probability of everything that may be said, as certified intervals about 2^-digits wide; for few integers
        and small scales.

        The sum over y. What lies beyond `reach` is not summed: the interval holds all it can add.
        """
        from flint import arb

        known = to_integers("values", values)
        reach = ceil(self.threshold_scale * (digits * 7 // 10 + 2))  # exp(-0.7 digits) < 2^-digits
        with working_precision(digits + 64):
            outer, inner = (-1 / to_interval(self.threshold_scale)).exp(), (-1 / to_interval(self.scale)).exp()
            found: dict[tuple[bool, ...], arb] = {}
            for y in range(-reach, reach + 1):
                chance = (1 - outer) / (1 + outer) * outer ** abs(y)
                yes = [_reaches(inner, self.threshold + y - value) for value in known]
                for said, share_of_it in self._words(yes):
                    found[said] = found.get(said, arb(0)) + chance * share_of_it
            unseen = arb(0).union(2 * outer**reach)
            return {said: total + unseen for said, total in found.items()}

    def error(self, queries: int, confidence: Any) -> int:
        """A w such that, with at least this probability, of so many integers every yes is for one of at least
        threshold - w and every no for one below threshold + w.

        It is the sum of two widths: y is within the first and each z within the second, each failing with half of what
        is left.
        """
        miss = (1 - check_probability("confidence", confidence)) / 2
        each = miss / to_integer("queries", queries, least=1)
        return laplace.tail_quantile(self.threshold_scale, miss) + laplace.tail_quantile(self.scale, each)

    def _first_part(self) -> Fraction:
        """The share of epsilon that is for the threshold: 1/(1 + (2 count)^(2/3)), rounded."""
        moves = self.count if self.monotone else 2 * self.count
        return Fraction(1 / (1 + moves ** (2 / 3))).limit_denominator(10**6 * moves)

    def _words(self, yes: list[arb]) -> list[tuple[tuple[bool, ...], arb]]:
        """All that may be said, with its probability, where the i-th integer gets a yes with probability yes[i]."""
        from flint import arb

        open_ones: list[tuple[tuple[bool, ...], arb]] = [((), arb(1))]
        closed: list[tuple[tuple[bool, ...], arb]] = []
        for chance in yes:
            grown = [
                ((*said, word), so_far * (chance if word else 1 - chance))
                for said, so_far in open_ones
                for word in (False, True)
            ]
            closed += [item for item in grown if sum(item[0]) == self.count]
            open_ones = [item for item in grown if sum(item[0]) < self.count]
        return closed + open_ones


class SparseVectorRun(Uncopyable):
    """One run: it keeps the noisy threshold, which is never shown, and stops for good after the last yes.

    A yes is counted before it is said, so an interrupt can lose one and never gives one for free. A copy would say
    every yes again, by the same threshold: there is none.
    """

    def __init__(self, mechanism: SparseVector, bits: Bits) -> None:
        self._lock = threading.Lock()
        self._scale = mechanism.scale
        self._bits = bits
        self._left = mechanism.count
        self._edge = mechanism.threshold + laplace.draw(mechanism.threshold_scale, bits)

    @property
    def stopped(self) -> bool:
        """Whether every yes has been said."""
        return self._left == 0

    def above(self, value: int) -> bool:
        """Whether the value is above the threshold, both with noise."""
        known = to_integer("value", value)
        with self._lock:
            if self.stopped:
                raise Refused(ErrorCode.BUDGET, "every yes has been said", fix="start another run, at its own price")
            found = known + laplace.draw(self._scale, self._bits) >= self._edge
            self._left -= found
            return found


def _check_limit(count: int) -> int:
    if count > 2**62:
        raise ParameterError("count", "must be at most 2^62", fix="count=1, say")
    return count


def _reaches(q: arb, m: int) -> arb:
    """P(z >= m) of the discrete Laplace distribution with q = exp(-1/scale)."""
    return q**m / (1 + q) if m >= 1 else 1 - q ** (1 - m) / (1 + q)
