"""The sparse vector technique: which of many numbers are above a threshold, paid for by those that are."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_integer, to_integers, to_interval, working_precision
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.frozen import set_fields
from tacit.mechanisms.validation import check_epsilon, check_flag, check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling import laplace
from tacit.sampling.bits import Bits, Uncopyable
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class SparseVector:
    """Releases for each of a sequence of integers whether it is above a threshold, until `count` of them were.

    y is drawn once with P(y) proportional to exp(-|y|/threshold_scale). For each integer u in turn, which may be chosen
    in view of all that was released before, a z is drawn with P(z) proportional to exp(-|z|/scale), and yes is released
    if u + z >= threshold + y, else no. After `count` times yes nothing more is released.

    With a + b = epsilon, `threshold_scale` is sensitivity/a and `scale` is 2 count sensitivity/b, or
    count sensitivity/b where `monotone`.

    **Theorem.** If between neighbors every integer moves by at most `sensitivity` (and, where `monotone`, all of them
    in the same direction), all that is released is epsilon-DP together, however many times no.

    **Proof.** Given what was released before, neighbors are asked the same. The probability of what is released is the
    sum over y of P(y) times, for each no, P(u + z < threshold + y), and for each yes, P(z >= threshold + y - u).
    Replace y by y + sensitivity in the neighbor's sum: P(y) falls by at most e^a; no probability of a no falls, since
    u moved by no more than y; and threshold + y - u grows by at most 2 sensitivity, so a yes falls by at most
    e^(b/count), because P(z >= m + 1) >= exp(-1/scale) P(z >= m) for every integer m. Where all u rise, the
    last grows by at most `sensitivity`; where all fall, leave y as it is: no probability of a no falls, and that of a
    yes by at most e^(b/count). (Lyu, Su and Li 2017, their algorithm 7, with discrete noise; it does not draw y anew
    and releases no number.)

    The split a : b = 1 : (2 count)^(2/3), with count^(2/3) where `monotone`, makes the variance of z - y least (ibid.);
    it is rounded to a rational, and the sum is exactly epsilon.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all that is released together, above 0 and at most 2^64.
    threshold : int
        What each integer is compared with; public.
    count : int, default 1
        How many times yes is released, from 1 to 2^62. The noise on each integer grows linearly with it; no is free.
    sensitivity : int, default 1
        The most that an integer moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all integers move in the same direction between neighbors, as counts do under add-remove. It halves the
        noise on each.

    Raises
    ------
    ParameterError
        If a parameter is out of range or of another type.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> alarm = SparseVector.calibrated(epsilon=1, threshold=1000, count=1, sensitivity=1)
    >>> alarm.release([0, 10, 0, 5000, 0, 7000], ReplayBits(b"example"))
    [False, False, False, True]
    >>> alarm.error(queries=100, confidence=0.95)
    36
    """

    epsilon: Fraction
    threshold: int
    count: int = 1
    sensitivity: int = 1
    monotone: bool = False

    def __init__(
        self, epsilon: Number, threshold: int, count: int = 1, sensitivity: int = 1, monotone: bool = False
    ) -> None:
        set_fields(
            self,
            epsilon=check_epsilon(epsilon),
            threshold=to_integer("threshold", threshold),
            count=_check_limit(to_integer("count", count, least=1)),
            sensitivity=to_integer("sensitivity", sensitivity, least=1),
            monotone=check_flag("monotone", monotone),
        )

    @classmethod
    def calibrated(
        cls, epsilon: Number, threshold: int, count: int, sensitivity: int, monotone: bool = False
    ) -> SparseVector:
        """Return the mechanism with the least noise that is epsilon-DP in all.

        Parameters
        ----------
        epsilon : number
            Privacy loss of all that is released together, above 0 and at most 2^64.
        threshold : int
            What each integer is compared with; public.
        count : int
            How many times yes is released, from 1 to 2^62.
        sensitivity : int
            The most that an integer moves between neighbors, at least 0. At 0 the integers are constants, which get
            the noise of sensitivity 1.
        monotone : bool, default False
            Whether all integers move in the same direction between neighbors.

        Returns
        -------
        SparseVector
            The calibrated mechanism.
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
        """Return the privacy loss of all that is released together.

        Returns
        -------
        PureDp
            What `tacit.accounting` composes.
        """
        return PureDp(self.epsilon)

    def watch(self, bits: Bits | None = None) -> SparseVectorRun:
        """Start a run that is asked one integer at a time.

        Parameters
        ----------
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        SparseVectorRun
            Its `above(value)` answers yes or no, and its `is_stopped` says whether every yes was released.
        """
        bits = bits_or_system(bits)
        return SparseVectorRun(self, bits)

    def release(self, values: Iterable[int], bits: Bits | None = None) -> list[bool]:
        """Release for each integer in turn whether it is above the threshold.

        Parameters
        ----------
        values : iterable of int
            The private integers, in a public order.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        list of bool
            An answer for each integer, up to and including the last yes that is paid for.

        Raises
        ------
        ParameterError
            If a value is not an integer.
        """
        bits = bits_or_system(bits)
        watch, said = self.watch(bits), []
        for value in to_integers("values", values):
            if watch.is_stopped:
                break
            said.append(watch.above(value))
        return said

    def law(self, values: Iterable[int], digits: int = 64) -> dict[tuple[bool, ...], arb]:
        """Return the probability of every release, which depends on the private integers; for few of them.

        The sum over y. What lies beyond `reach` is not summed: the interval holds all it can add.

        Parameters
        ----------
        values : iterable of int
            The private integers, in a public order.
        digits : int, default 64
            The intervals are about 2^-digits wide.

        Returns
        -------
        dict of tuple of bool to arb
            The probability of each sequence of answers, as certified intervals.
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

    def error(self, queries: int, confidence: Number) -> int:
        """Return a w such that every yes is for at least threshold - w and every no for less than threshold + w.

        It is the sum of two widths: y is within the first and each z within the second, each failing with half of what
        is left.

        Parameters
        ----------
        queries : int
            How many integers are asked about, at least 1.
        confidence : number
            Probability that all answers are right to within w, strictly between 0 and 1.

        Returns
        -------
        int
            The half width w. It does not depend on the data.
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
    def is_stopped(self) -> bool:
        """Whether every yes has been said."""
        return self._left == 0

    def above(self, value: int) -> bool:
        """Whether the value is above the threshold, both with noise."""
        known = to_integer("value", value)
        with self._lock:
            if self.is_stopped:
                raise Refused(ErrorCode.BUDGET, "every yes has been said", fix="start another run, at its own epsilon")
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
