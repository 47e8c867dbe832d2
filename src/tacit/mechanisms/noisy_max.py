"""Report noisy max: the name of the largest of many numbers, at a cost that does not grow with how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_integer, to_interval, working_precision
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.selection import SelectionMechanism
from tacit.mechanisms.validation import check_probability, check_scores
from tacit.privacy.loss import PureDp
from tacit.sampling import laplace
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

_CELLS = 32  # of one scale, when the error is computed


@dataclass(frozen=True, init=False)
class NoisyMax(SelectionMechanism):
    """Releases the index of the largest noisy score, and nothing else.

    Each integer score gets its own noise z with P(z) proportional to exp(-|z|/scale); of equal sums the first is taken.
    `scale` is 2 sensitivity/epsilon, and sensitivity/epsilon where `monotone`.

    **Theorem.** If between neighbors every score moves by at most `sensitivity` (and, where `monotone`, all of them in
    the same direction), the release is epsilon-DP.

    **Proof.** Fix the noise of all but i. Let M be the largest of u(j) + z(j) + 1 for j before i and u(j) + z(j) for j
    after it: i is released just where z(i) >= M - u(i). Between neighbors M - u(i) grows by at most 2 sensitivity.
    Where all scores rise, u(i) does not fall and M rises by at most `sensitivity`; where all fall, M does not rise and
    u(i) falls by at most `sensitivity`. And P(z >= m + 1) >= exp(-1/scale) P(z >= m) for every integer m, since
    P(z = k + 1) >= exp(-1/scale) P(z = k) for every k. So ties cost nothing.

    Counts are monotone under add-remove. Under replace they are not, and half the noise costs up to twice epsilon. The
    winning sum is not released: the theorem is about the index alone.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one choice, above 0 and at most 2^64. The error is proportional to 1/epsilon.
    sensitivity : int, default 1
        The most that a score moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all scores move in the same direction between neighbors, as counts do under add-remove and not under
        replace. It halves the error; where it is not true, the choice costs up to twice epsilon.

    Raises
    ------
    ParameterError
        If epsilon or the sensitivity is out of range, or `monotone` is not a bool.

    See Also
    --------
    PermuteAndFlip : A smaller error at the same epsilon.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> mechanism = NoisyMax.calibrated(epsilon=1, sensitivity=1)
    >>> mechanism.release([0, 2, 40], ReplayBits(b"example"))
    2
    >>> mechanism.scale
    Fraction(2, 1)
    """

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each score."""
        return 1 / self.factor

    def loss(self) -> PureDp:
        """Return the privacy loss of one choice, however many scores there are.

        Returns
        -------
        PureDp
            What `tacit.accounting` composes.
        """
        return PureDp(self.epsilon)

    def release(self, scores: Iterable[int], bits: Bits | None = None) -> int:
        """Release the index of the largest noisy score, and nothing else.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least one, each of at most 512 bits. The list of choices is
            public, the scores are private.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            An index of `scores`, from 0 on.

        Raises
        ------
        ParameterError
            If there is no score, or one is not an integer or has more than 512 bits.
        """
        bits = bits_or_system(bits)
        noisy = Laplace(self.scale).release(check_scores(scores), bits)
        return max(range(len(noisy)), key=noisy.__getitem__)  # of equal ones max takes the first

    def law(self, scores: Iterable[int], digits: int = 128) -> list[arb]:
        """Return the probability of each index, which depends on the private scores; for few scores, small scales.

        The sum over the winning value v of P(v is the noisy score of i) times the probabilities that those before i are
        below v and those after it not above. Values further from all scores than `reach` are not summed: the interval
        holds all they can add.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least one, each of at most 512 bits. The list of choices is
            public, the scores are private.
        digits : int, default 128
            The intervals are about 2^-digits wide.

        Returns
        -------
        list of arb
            P(i) for each index i, as certified intervals.
        """
        from flint import arb

        values = check_scores(scores)
        reach = ceil(self.scale * (digits * 7 // 10 + 2))  # exp(-0.7 digits) < 2^-digits
        first, last = min(values) - reach, max(values) + reach
        with working_precision(digits + 64):
            q = (-1 / to_interval(self.scale)).exp()
            below = {m: _below(q, m) for score in set(values) for m in range(first - score, last - score + 2)}
            found = [arb(0) for _ in values]
            for v in range(first, last + 1):
                not_above = [below[v - score + 1] for score in values]
                are_below = [below[v - score] for score in values]
                after = [arb(1)]
                for chance in reversed(not_above[1:]):
                    after.append(after[-1] * chance)
                before = arb(1)
                for i, rest in enumerate(reversed(after)):
                    found[i] += before * (not_above[i] - are_below[i]) * rest
                    before *= are_below[i]
            unseen = arb(0).union(2 * q**reach)
            return [chance + unseen for chance in found]

    def error(self, choices: int, confidence: Number) -> int:
        """Return a w such that the score of the released choice is within w of the best, whatever the scores are.

        It is the least one, or for scales above 32 a few percent above it.

        **Proof.** "The winner falls short by a or more" only becomes more likely when one that falls short is raised to
        best - a, when another (but the best) is lowered to it, and when the best comes last. So the worst case is
        n - 1 at best - a before the best, which then loses with probability E[1 - P(z < y + a)^(n - 1)] over its noise
        y. That falls with y: cells of y, each taken at its lower end, bound the expectation from above.

        Parameters
        ----------
        choices : int
            How many choices there are, at least 1.
        confidence : number
            Probability that the released one is within w, strictly between 0 and 1.

        Returns
        -------
        int
            The shortfall w, in steps of the score. It does not depend on the data.
        """
        miss, count = 1 - check_probability("confidence", confidence), to_integer("choices", choices, least=1)
        low, high = 0, laplace.tail_quantile(self.scale, miss / count) * 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._holds(count, middle + 1, miss) else (middle + 1, high)
        return low

    def _holds(self, count: int, gap: int, miss: Fraction) -> bool:
        """Whether the best of `count` loses with probability at most `miss` where the others are at `gap` below it."""
        width = ceil(self.scale / _CELLS)
        edge = laplace.tail_quantile(self.scale, miss / 2**20) + 1
        with working_precision(128 + miss.denominator.bit_length() + count.bit_length()):
            q = (-1 / to_interval(self.scale)).exp()
            total, before = _below(q, -edge), _below(q, -edge)
            for y in range(-edge, edge, width):
                after = _below(q, y + width) if y + width < edge else before * 0 + 1
                total += (after - before) * (1 - _below(q, y + gap) ** (count - 1))
                before = after
            return bool(total <= to_interval(miss))


def _below(q: arb, m: int) -> arb:
    """P(z < m) of the discrete Laplace distribution with q = exp(-1/scale)."""
    return q ** (1 - m) / (1 + q) if m <= 0 else 1 - q**m / (1 + q)
