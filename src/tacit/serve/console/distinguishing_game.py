"""The game of the learn page: which of two databases did an answer come from?

A hundred patients have the flu; or a hundred and one, and you are the one more. Someone asks how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.mechanisms.laplace import Laplace
from tacit.sampling.bits import Bits, SystemBits
from tacit.sampling.uniform import draw_array_below, draw_below

COUNT_WITHOUT, COUNT_WITH = 100, 101
EPSILONS = ("0.1", "0.5", "1", "2", "3", "5")
OPTIMAL_ROUNDS = 1000  # rounds that the best guesser plays


@dataclass
class GuessCount:
    """So many wrong guesses in so many rounds."""

    rounds: int = 0
    errors: int = 0

    @property
    def error(self) -> float:
        """The share of wrong guesses; half where there was none."""
        return self.errors / self.rounds if self.rounds else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """The 99 % interval of the guesser's true error."""
        return clopper_pearson_interval(self.errors, self.rounds) if self.rounds else (0.0, 1.0)


@dataclass(frozen=True)
class GameRound:
    """What was shown, and which of the two it came from."""

    output: int
    took_part: bool


class DistinguishingGame:
    """Rounds at one epsilon: yours, and those of the best guesser there is.

    **Theorem.** Whoever says "with" from 101 on errs with probability exactly 1/(e^epsilon + 1), the least possible.
    Proof: the noise k has P(k) = (1 - q)/(1 + q) q^|k| with q = e^-epsilon. At 100 the guess is wrong for k >= 1, at
    101 for k <= -1, both with the probability q/(1 + q). `min_guessing_error` says that nobody errs less.
    """

    def __init__(self, epsilon: str = "1", bits: Bits | None = None) -> None:
        self.epsilon = epsilon if epsilon in EPSILONS else "1"
        self._noise = Laplace.calibrated(Fraction(self.epsilon), sensitivity=1)
        self._bits = bits or SystemBits()
        self.yours, self.best = GuessCount(), GuessCount()
        self.last: GameRound | None = None
        self.right: bool | None = None
        self.now = self._next()

    @property
    def least(self) -> float:
        """The error that nobody is below."""
        return min_guessing_error(float(self.epsilon))

    def guess(self, took_part: bool) -> None:
        """Guess where the answer shown came from, and go on to the next."""
        self.right = took_part == self.now.took_part
        self.yours.rounds += 1
        self.yours.errors += not self.right
        self.last, self.now = self.now, self._next()

    def play(self, rounds: int = OPTIMAL_ROUNDS) -> None:
        """Let the best guesser play."""
        sides = [side == 1 for side in draw_array_below(2, rounds, self._bits).tolist()]
        outputs = self._noise.release([COUNT_WITH if side else COUNT_WITHOUT for side in sides], self._bits)
        self.best.rounds += rounds
        self.best.errors += sum((output >= COUNT_WITH) != side for output, side in zip(outputs, sides, strict=True))

    def _next(self) -> GameRound:
        took_part = draw_below(2, self._bits) == 1
        (output,) = self._noise.release([COUNT_WITH if took_part else COUNT_WITHOUT], self._bits)
        return GameRound(int(output), took_part)
