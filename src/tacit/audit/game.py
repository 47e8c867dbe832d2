"""The distinguishing game, played: someone sees one output and guesses which of two neighbors it came from.

>>> def coin(answer: int, size: int, rng: np.random.Generator) -> np.ndarray:
...     return answer ^ (rng.random(size) < 0.25)
>>> played = play_game(coin, 1, 0, rounds=4000)  # its epsilon is ln 3, and no guesser errs less than 1/(3 + 1)
>>> played.low < 0.25 < played.high
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import CONFIDENCE, clopper_pearson_interval
from tacit.arithmetic import to_integer
from tacit.audit.outputs import OutputSample, collect_outputs
from tacit.audit.scores import Score, learn_scores
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits

MIN_ROUNDS = 100
EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
_LEARNED = 5  # one in so many outputs teaches the guesser


@dataclass(frozen=True)
class GameResult:
    """The result of a distinguishing game: wrong guesses, and the 99 % interval of the guesser's error.

    Attributes
    ----------
    rounds : int
        How many guesses were made, one for each output.
    errors : int
        How many of the guesses were wrong.
    low, high : float
        Ends of Clopper and Pearson's 99 % interval for the probability of a wrong guess.
    guess : str
        The guesser's rule in words: the condition under which it names the first input.

    Examples
    --------
    >>> print(GameResult(rounds=1000, errors=250, low=0.216, high=0.287, guess="output >= 1"))
    250 of 1,000 guesses were wrong: 0.2500, between 0.2160 and 0.2870 with confidence 99 %.
    The guess is one if output >= 1.
    """

    rounds: int
    errors: int
    low: float
    high: float
    guess: str = ""

    @property
    def error(self) -> float:
        """The share of wrong guesses."""
        return self.errors / self.rounds

    def __str__(self) -> str:
        return (
            f"{self.errors:,} of {self.rounds:,} guesses were wrong: {self.error:.4f}, between {self.low:.4f} and "
            f"{self.high:.4f} with confidence {100 * CONFIDENCE:g} %.\nThe guess is one if {self.guess}."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON.

        Returns
        -------
        dict
            The counts, the error with its interval and confidence, and the rule of the guesser.
        """
        return {
            "rounds": self.rounds,
            "errors": self.errors,
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "confidence": CONFIDENCE,
            "guess": self.guess,
        }


def play_game(
    mechanism: Callable[..., object], one: object, other: object, *, rounds: int = 10_000, seed: int = 0
) -> GameResult:
    """Play the distinguishing game against the best guesser that can be learned from other outputs.

    In each round a fair coin picks one of the two inputs, the mechanism gives an output, and the guesser names the
    input that it takes for the source. It has seen a quarter as many outputs of either side, and nothing else.

    **Theorem.** `low` and `high` hold the guesser's true error with confidence 99 % (Clopper and Pearson). Under
    (epsilon, delta)-DP that error is at least (1 - delta)/(1 + e^epsilon), whoever guesses (`min_guessing_error`). So
    an interval that lies below refutes the claim; one above shows only that this guesser is not the best.

    Parameters
    ----------
    mechanism : callable
        Maps an input to an output, as in `audit`: with a parameter `size` it gives that many outputs, with a
        parameter `rng` it is given a generator.
    one, other : object
        Two neighboring inputs. Each call of the mechanism has a copy of its own.
    rounds : int
        How many guesses are made, 100 or more. The interval's width falls with its square root.
    seed : int
        Seed of the draws, the coin and the guesser, 0 or more.

    Returns
    -------
    GameResult
        The errors with their interval, and the guesser's rule.

    Raises
    ------
    ParameterError
        If there are fewer than 100 rounds, or the mechanism cannot be called.

    Examples
    --------
    >>> def randomized_response(answer, size, rng):
    ...     return answer ^ (rng.random(size) < 0.25)
    >>> played = play_game(randomized_response, 1, 0, rounds=4000)
    >>> played.low < 0.25 < played.high  # epsilon is ln 3, so no guesser errs less than 1/(3 + 1)
    True
    """
    count = to_integer("rounds", rounds)
    if count < MIN_ROUNDS:
        raise ParameterError("rounds", f"{count} are too few", fix=f"play {MIN_ROUNDS} or more, 10,000 say")
    draws, coins, learner = (np.random.default_rng([to_integer("seed", seed, least=0), stream]) for stream in range(3))
    school = max(count // (_LEARNED - 1), MIN_ROUNDS // 2)
    sides = collect_outputs(mechanism, (one, other), school + count, draws, lambda share: None).lay_out(school)
    score, threshold = _train_guesser(sides[0].part(0, school), sides[1].part(0, school), learner)
    guesses = [score.of(side.part(school, school + count)) >= threshold for side in sides]
    picked = coins.random(count) < 0.5  # one
    errors = int(np.count_nonzero(np.where(picked, ~guesses[0], guesses[1])))
    low, high = clopper_pearson_interval(errors, count)
    return GameResult(count, errors, low, high, score.words(threshold, True))


def plot_games(
    path: str | os.PathLike[str] | None = None,
    *,
    epsilons: Sequence[float] = EPSILONS,
    rounds: int = 20_000,
    seed: int = 0,
) -> dict[str, dict[float, GameResult]]:
    """Plot the error of guessers against the epsilon that is claimed, with the curve that no guesser can be below.

    Randomized response and noise on a count reach it. The exponential mechanism on two candidates stays above. Half the
    noise that is needed is below: that claim is refuted.

    Parameters
    ----------
    path : path, optional
        The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the figure.
    epsilons : sequence of float
        The claimed epsilons, each positive; every second one is played for each mechanism.
    rounds : int
        How many guesses are made for each point, 100 or more.
    seed : int
        Seed of all games, 0 or more.

    Returns
    -------
    dict
        The results by mechanism and epsilon.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     games = plot_games(os.path.join(folder, "games.svg"), epsilons=[1.0, 2.0], rounds=200)
    >>> sorted(games["randomized response"])
    [1.0]
    """
    from tacit.pictures import TEXT_COLOR, open_figure

    games: dict[str, tuple[Callable[..., Any], Any, Any, Sequence[float]]] = {
        "randomized response": (_response, 1, 0, epsilons[::2]),
        "noise on a count": (_count, 101, 100, epsilons[1::2]),
        "exponential mechanism, two candidates": (_choice, (1, 0), (0, 1), epsilons[::2]),
        "half the noise on a count: refuted": (_half_noise_count, 101, 100, epsilons[::2]),
    }
    played = {
        name: {
            each: play_game(partial(law, Fraction(each)), one, other, rounds=rounds, seed=seed + place)
            for place, each in enumerate(places)
        }
        for name, (law, one, other, places) in games.items()
    }
    fine = np.linspace(0, max(epsilons), 200)
    with open_figure(path, "Guessing whether you took part", "epsilon claimed", "share of wrong guesses") as axes:
        axes.plot(
            fine,
            [min_guessing_error(float(x)) for x in fine],
            color=TEXT_COLOR,
            label="1/(e^epsilon + 1): nobody errs less",
        )
        for (name, found), mark in zip(played.items(), "osD^", strict=True):
            middle = [each.error for each in found.values()]
            ends = np.abs(np.array([(each.low, each.high) for each in found.values()]).T - middle)
            axes.errorbar(list(found), middle, yerr=ends, fmt=mark, markersize=4, capsize=2, label=name)
        axes.set_ylim(0, 0.53)
    return played


def _response(epsilon: Fraction, data: int, size: int, rng: np.random.Generator) -> Any:
    from tacit.mechanisms.randomized_response import RandomizedResponse

    return RandomizedResponse(epsilon=epsilon).release(np.full(size, data, dtype=np.int64), _bits(rng))


def _count(epsilon: Fraction, data: int, size: int, rng: np.random.Generator) -> Any:
    from tacit.mechanisms.laplace import Laplace

    return Laplace.calibrated(epsilon, sensitivity=1).release([data] * size, _bits(rng))


def _choice(epsilon: Fraction, data: tuple[int, int], size: int, rng: np.random.Generator) -> Any:
    from tacit.mechanisms.exponential import Exponential
    from tacit.sampling.exponential_weights import choices

    return choices(data, Exponential.calibrated(epsilon, sensitivity=1).factor, size, _bits(rng))


def _half_noise_count(epsilon: Fraction, data: int, size: int, rng: np.random.Generator) -> Any:
    return _count(2 * epsilon, data, size, rng)


def _bits(rng: np.random.Generator) -> ReplayBits:
    return ReplayBits(rng.bytes(32))


def _train_guesser(one: OutputSample, other: OutputSample, rng: np.random.Generator) -> tuple[Score, float]:
    """The score and threshold with the fewest errors on outputs that the score was not learned from."""
    middle = len(one) // 2
    fresh = [side.part(middle, len(side)) for side in (one, other)]
    found: list[tuple[float, int, Score, float]] = []
    for order, score in enumerate(learn_scores(one.part(0, middle), other.part(0, middle), rng)):
        first, second = (np.sort(score.of(side)) for side in fresh)
        values = np.append(np.unique(np.concatenate([first, second])), np.inf)
        misses, alarms = np.searchsorted(first, values), len(second) - np.searchsorted(second, values)
        place = int(np.argmin(misses + alarms))
        found.append((float(misses[place] + alarms[place]), order, score, float(values[place])))
    _, _, score, threshold = min(found, key=lambda each: each[:2])
    return score, threshold
