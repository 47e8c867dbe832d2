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
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import to_integer, to_rational
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


def coin_counting_laplace(scale: Any) -> Sampler:
    """Discrete Laplace noise as it is often written: toss coins with exp(-1/scale) until one fails, and count.

    The distribution is right: magnitudes are geometric, the sign is a coin, and minus zero is drawn again. The work is
    not: a draw of magnitude m takes m + 1 coins.
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


def single_word_laplace(scale: Any) -> Sampler:
    """Tacit's own draw: one word of 64 bits, but for about one draw in a million."""
    width = _scale(scale)
    return lambda bits: laplace.draw(width, bits)


@dataclass(frozen=True, eq=False)
class TimingSample:
    """Draws, and what each of them took: words of random bits, and nanoseconds by the clock."""

    noise: Floats
    words: Floats
    nanoseconds: Floats


@dataclass(frozen=True, eq=False)
class TimingLeak:
    """What the work of a draw says about its size.

    `p` is that of a permutation test. **Theorem.** If work and noise are independent, p <= a has probability at most a:
    the true order is one of 1 + permutations exchangeable ones, and p is the rank of its correlation among them over
    their number, ties against the finding.

    `right` of `guesses` are right of the noise being above its median, by whether the work is above a threshold that
    was fitted on the other half of the draws. Who learns the size of the noise learns the true value up to a sign.
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
        """All of it, for JSON."""
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
    """Draw so often, and note the noise, the words that each draw took, and its time by the clock."""
    many, bits = to_integer("draws", draws, least=4), CountingBits(source)
    noise, words, clock = np.zeros(many), np.zeros(many), np.zeros(many)
    for index in range(many):
        before, start = bits.words_drawn, time.perf_counter_ns()
        noise[index] = sampler(bits)
        clock[index] = time.perf_counter_ns() - start
        words[index] = bits.words_drawn - before
    return TimingSample(noise, words, clock)


def detect_leak(timed: TimingSample, *, by: str = "words", permutations: int = 1999, seed: int = 0) -> TimingLeak:
    """Whether the work tells the size of the noise: a correlation with its p value, and a guess with its success.

    `by="words"` takes the counted work, `by="nanoseconds"` the clock, where an odd draw may be long for any reason: it
    is compared by ranks.
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


def _scale(scale: Any) -> Fraction:
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
