"""Timing: a sampler that takes longer for larger noise tells how large it was.

>>> from tacit.sampling.bits import ReplayBits
>>> detect_leak(measure_draws(coin_counting_laplace(10), 2000, ReplayBits(b"coins"))).verdict
'time tells the noise'
>>> detect_leak(measure_draws(single_word_laplace(10), 2000, ReplayBits(b"exact"))).verdict
'nothing found'
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.sampling import bernoulli, laplace
from tacit.sampling.bits import Bits, Words

Floats = npt.NDArray[np.float64]
Sampler = Callable[[Bits], int]

_LEVEL = 0.001  # of the verdict


class CountingBits:
    """A source of bits that counts what is taken: the work of a sampler, the same on every machine."""

    def __init__(self, source: Bits) -> None:
        self.words_drawn = 0
        self._take = source.words

    def words(self, count: int) -> Words:
        """The next words of the source."""
        self.words_drawn += count
        return self._take(count)


def coin_counting_laplace(scale: Number) -> Sampler:
    """Return a sampler of discrete Laplace noise as it is often written: Bernoulli trials until one fails, counted.

    The distribution is right: magnitudes are geometric, the sign is fair, and minus zero is drawn again. The work is
    not: a draw of magnitude m takes m + 1 trials.

    Parameters
    ----------
    scale : number
        The scale of the noise, positive; a trial succeeds with probability exp(-1/scale).

    Returns
    -------
    callable
        Maps a source of random bits to one draw.

    Raises
    ------
    ParameterError
        If the scale is not positive.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> isinstance(coin_counting_laplace(10)(ReplayBits(b"example")), int)
    True
    """
    step = 1 / _scale(scale)

    def draw(bits: Bits) -> int:
        while True:
            magnitude = 0
            while bernoulli.draw_exp(step, bits):
                magnitude += 1
            negative = bernoulli.draw_rational(Fraction(1, 2), bits)
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    return draw


def single_word_laplace(scale: Number) -> Sampler:
    """Return Tacit's own sampler of discrete Laplace noise: one word of 64 bits, but for about one draw in a million.

    Parameters
    ----------
    scale : number
        The scale of the noise, positive.

    Returns
    -------
    callable
        Maps a source of random bits to one draw.

    Raises
    ------
    ParameterError
        If the scale is not positive.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> isinstance(single_word_laplace(10)(ReplayBits(b"example")), int)
    True
    """
    width = _scale(scale)
    return lambda bits: laplace.draw(width, bits)


@dataclass(frozen=True, eq=False)
class TimingSample:
    """Draws of a sampler, and the work of each.

    Attributes
    ----------
    noise : array of float
        The drawn values, whole numbers.
    words : array of float
        How many 64-bit words of random bits each draw took: the same on every machine.
    nanoseconds : array of float
        The time of each draw by the clock.

    Examples
    --------
    >>> sample = TimingSample(np.array([3.0]), np.array([4.0]), np.array([812.0]))
    >>> sample.words.tolist()
    [4.0]
    """

    noise: Floats
    words: Floats
    nanoseconds: Floats


@dataclass(frozen=True, eq=False)
class TimingLeak:
    """How far the work of a draw reveals its size.

    `p` is that of a permutation test. **Theorem.** If work and noise are independent, p <= a has probability at most a:
    the true order is one of 1 + permutations exchangeable ones, and p is the rank of its correlation among them over
    their number, ties against the finding.

    Whoever learns the size of the noise learns the true value up to a sign.

    Attributes
    ----------
    by : str
        What the work is measured by: "words" or "nanoseconds".
    correlation : float
        Pearson's correlation of work and size, in [-1, 1].
    p : float
        The p value of the correlation, in (0, 1].
    permutations : int
        How many random orders it was compared with.
    right, guesses : int
        How often a guess of whether the noise is above its median was right, by a threshold of the work that was fitted
        on the other half of the draws.
    blind : float
        The share that a guess without the work gets right.

    Examples
    --------
    >>> TimingLeak("words", 0.93, 0.0005, 1999, right=970, guesses=1000, blind=0.5).verdict
    'time tells the noise'
    """

    by: str
    correlation: float
    p: float
    permutations: int
    right: int
    guesses: int
    blind: float  # the share that a guess without the work gets right

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval for the probability of a right guess."""
        return clopper_pearson_interval(self.right, self.guesses)

    @property
    def verdict(self) -> str:
        """ "time tells the noise" where the correlation is significant at 0.001, else "nothing found"."""
        return "time tells the noise" if self.p <= _LEVEL else "nothing found"

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.verdict}: {self.by} and the size of the noise have a correlation of {self.correlation:.3f} (p = "
            f"{self.p:.4g}, {self.permutations:,} permutations); whether the noise is large is guessed right "
            f"{self.right / self.guesses:.1%} of the time ({low:.1%} to {high:.1%} at 99 % confidence; blindly "
            f"{self.blind:.1%})"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the correlation, its p value and the guesses as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the verdict and the interval of a right guess.
        """
        return {
            "attack": "timing",
            "verdict": self.verdict,
            "by": self.by,
            "correlation": self.correlation,
            "p": self.p,
            "permutations": self.permutations,
            "right": self.right,
            "guesses": self.guesses,
            "blind": self.blind,
            "interval": list(self.interval),
        }


def measure_draws(sampler: Sampler, draws: int, source: Bits) -> TimingSample:
    """Draw noise repeatedly, and measure the random words and the time that each draw takes.

    Parameters
    ----------
    sampler : callable
        Maps a source of random bits to one integer.
    draws : int
        How many draws are measured, 4 or more.
    source : Bits
        The source of random bits.

    Returns
    -------
    TimingSample
        The noise, the words and the nanoseconds of each draw.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> measure_draws(single_word_laplace(10), 4, ReplayBits(b"example")).words.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    many, bits = to_integer("draws", draws, least=4), CountingBits(source)
    noise, words, clock = np.zeros(many), np.zeros(many), np.zeros(many)
    for index in range(many):
        before, start = bits.words_drawn, time.perf_counter_ns()
        noise[index] = sampler(bits)
        clock[index] = time.perf_counter_ns() - start
        words[index] = bits.words_drawn - before
    return TimingSample(noise, words, clock)


def detect_leak(timed: TimingSample, *, by: str = "words", permutations: int = 1999, seed: int = 0) -> TimingLeak:
    """Test whether the work reveals the size of the noise, by a permutation test of their correlation and by guesses.

    Parameters
    ----------
    timed : TimingSample
        The measured draws, 4 or more.
    by : str
        "words" takes the counted work; "nanoseconds" the clock, where a draw may be slow for any reason: it is compared
        by ranks.
    permutations : int
        How many random orders the correlation is compared with, 1 or more; the least p value is 1/(1 + permutations).
    seed : int
        Seed of the random orders.

    Returns
    -------
    TimingLeak
        The correlation, its p value, and how often the size is guessed right.

    Raises
    ------
    ParameterError
        If there are fewer than four draws, or `by` is not measured.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> detect_leak(measure_draws(coin_counting_laplace(10), 500, ReplayBits(b"example"))).verdict
    'time tells the noise'
    """
    if by not in {"words", "nanoseconds"}:
        raise ParameterError("by", f"{by!r:.40} is not measured", fix='by="words" or by="nanoseconds"')
    tries, rng = to_integer("permutations", permutations, least=1), np.random.default_rng(seed)
    work = timed.words if by == "words" else _ranks(timed.nanoseconds)
    size = np.abs(timed.noise)
    if work.shape != size.shape or len(size) < 4:
        raise ParameterError(
            "timed", "needs the work of each of at least four draws", fix="timed=measure_draws(sampler, 2000, bits)"
        )
    found = _correlation(work, size)
    as_large = sum(abs(_correlation(rng.permutation(work), size)) >= abs(found) - 1e-12 for _ in range(tries))
    right, guesses, blind = _guess_by_threshold(work, size)
    return TimingLeak(by, found, (1 + as_large) / (1 + tries), tries, right, guesses, blind)


def _scale(scale: Number) -> Fraction:
    width = to_rational("scale", scale)
    if width <= 0:
        raise ParameterError("scale", f"must be positive, got {scale}", fix="scale=10, say")
    return width


def _correlation(work: Floats, size: Floats) -> float:
    """Pearson's coefficient; 0 where either never changes."""
    a, b = work - work.mean(), size - size.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 0 else 0.0


def _ranks(numbers: Floats) -> Floats:
    """The place of each number in their order; equal ones share the mean of their places."""
    _, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    ends = np.cumsum(times)
    return np.asarray((ends - (times - 1) / 2)[place], dtype=np.float64)


def _guess_by_threshold(work: Floats, size: Floats) -> tuple[int, int, float]:
    """Fit a threshold of the work on one half of the draws, guess on the other; and what a blind guess gets there."""
    half = len(size) // 2
    large = size > np.median(size[:half])
    edges = np.unique(work[:half])
    ordered = np.sort(work[:half][large[:half]]), np.sort(work[:half][~large[:half]])
    above = len(ordered[0]) - np.searchsorted(ordered[0], edges, side="right")
    below = np.searchsorted(ordered[1], edges, side="right")
    best = int(np.argmax(above + below))
    said = work[half:] > edges[best]
    if above[best] + below[best] <= max(large[:half].mean(), 1 - large[:half].mean()) * half:
        said = np.full(len(size) - half, large[:half].mean() > 0.5)  # the work says nothing: guess the commoner
    right = int(np.count_nonzero(said == large[half:]))
    share = float(large[half:].mean())
    return right, len(size) - half, max(share, 1 - share)
