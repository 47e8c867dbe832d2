"""The classroom: thirty grades, five small averages, and one student who is found out.

>>> room = Classroom()
>>> room.probability, float(room.probability_of_any)
(Fraction(1, 10), 0.40951)
>>> room.matrix().epsilon
inf
>>> defense = room.defend(Fraction(1, 10))
>>> round(defense.width, 1), round(defense.ratio, 3), round(defense.best_error, 4)
(13.3, 1.105, 0.4756)
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.arithmetic import Number, common_grid_step, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.mechanisms import Laplace
from tacit.sampling.bits import Bits, ReplayBits

_BLOCK = 10_000  # rounds at a time


@dataclass(frozen=True)
class SimulatedRate:
    """How often an event occurred in a simulation, with its 99 % interval, beside its exact probability.

    Attributes
    ----------
    what : str
        The event in words.
    times, rounds : int
        In how many of the independent rounds the event occurred.
    exact : float
        The event's computed probability, in [0, 1].

    Examples
    --------
    >>> found = SimulatedRate("wrong guesses", times=4752, rounds=10_000, exact=0.4756)
    >>> found.share, found.interval[0] < found.exact < found.interval[1]
    (0.4752, True)
    """

    what: str
    times: int
    rounds: int
    exact: float

    @property
    def share(self) -> float:
        """The share of the rounds."""
        return self.times / self.rounds

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's interval for the probability; rounds are independent."""
        return clopper_pearson_interval(self.times, self.rounds)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.what}: {self.times:,} of {self.rounds:,} rounds, {self.share:.4f} ({low:.4f} to {high:.4f} at 99 % "
            f"confidence); computed: {self.exact:.6f}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts, the share and its interval as plain values, for JSON.

        Returns
        -------
        dict
            All attributes, the share and the ends of the interval.
        """
        fields = {"what": self.what, "times": self.times, "rounds": self.rounds, "exact": self.exact}
        return {**fields, "share": self.share, "interval": list(self.interval)}


@dataclass(frozen=True)
class NoisyClassAverage:
    """The average of the whole class with exact noise, against someone who knows all other grades.

    The average is counted in steps of `grain`, on which both averages lie, `shift` steps apart. Noise of scale
    shift/epsilon steps makes the pair epsilon-DP.

    **Theorem.** Whoever guesses between the two from one answer errs with probability at least 1/(e^epsilon + 1). For
    this noise and an even shift the best guess, the nearer of the two, errs with e^(-epsilon/2)/2, a little more.
    Proof: with q = exp(-epsilon/shift) and h = shift/2, the probabilities of an answer above the middle differ by
    P(k > -h) - P(k > h) = 1 - q^h/(1 + q) - q^(h+1)/(1 + q) = 1 - q^h = 1 - e^(-epsilon/2); the error is half of what
    is missing to 1.

    Attributes
    ----------
    epsilon : Fraction
        The privacy loss of one answer for this pair of classes, positive.
    grain : Fraction
        The grid's step, in points.
    shift : int
        How far the two averages are apart, in steps; negative where the odd grade is below the others.
    base : int
        The average without the odd grade, in steps.

    Examples
    --------
    >>> defense = Classroom().defend(Fraction(1, 10))
    >>> round(defense.width, 1), round(defense.best_error, 4)
    (13.3, 0.4756)
    """

    epsilon: Fraction
    grain: Fraction
    shift: int  # negative where the odd grade is below the others
    base: int  # the average without the odd grade, in steps

    @property
    def mechanism(self) -> Laplace:
        """The noise, in steps."""
        return Laplace.calibrated(self.epsilon, abs(self.shift))

    @property
    def width(self) -> float:
        """The scale of the noise in points."""
        return float(self.mechanism.scale * self.grain)

    @property
    def ratio(self) -> float:
        """How much likelier the true average is as an answer than it is in the other class: e^epsilon."""
        return math.exp(abs(self.shift) / self.mechanism.scale)

    @property
    def floor(self) -> float:
        """The least error of any guess under epsilon."""
        return min_guessing_error(float(self.epsilon))

    @property
    def best_error(self) -> float:
        """The error of the best guess, from the distribution itself: half the mass that both distributions have in
        common.
        """
        q = math.exp(-1 / float(self.mechanism.scale))
        above = abs(self.shift) // 2  # beyond so many steps the guess is the odd grade
        below = abs(self.shift) - above
        return (q**below + q ** (above + 1)) / (1 + q) / 2

    def release(self, odd: bool, bits: Bits) -> float:
        """Release the average of one of the two classes with noise.

        Parameters
        ----------
        odd : bool
            Whether the class with the odd grade is released, or the one without.
        bits : Bits
            The source of random bits.

        Returns
        -------
        float
            The noisy average, in points.
        """
        return float(self.mechanism.release([self.base + self.shift * odd], bits)[0] * self.grain)

    def play(self, rounds: int = 10_000, seed: int = 0) -> SimulatedRate:
        """Simulate the best guess: pick a class by a fair coin, release its average, guess the nearer one.

        Parameters
        ----------
        rounds : int
            How many independent guesses are made, 1 or more.
        seed : int
            Seed of the coin and of the noise.

        Returns
        -------
        SimulatedRate
            How often the guess was wrong, beside `best_error`.
        """
        many = to_integer("rounds", rounds, least=1)
        odd = np.random.default_rng(seed).random(many) < 0.5
        noisy = self.mechanism.release((self.shift * odd).tolist(), ReplayBits(b"classroom %d" % seed))
        toward = np.array(noisy, dtype=np.int64) * (1 if self.shift > 0 else -1)
        guess = 2 * toward > abs(self.shift)  # an answer in the middle says "no odd grade"
        return SimulatedRate("wrong guesses", int(np.count_nonzero(guess != odd)), many, self.best_error)

    def __str__(self) -> str:
        price = f"{float(self.epsilon):g}-DP"
        return (
            f"the average with Laplace noise of scale {self.width:.3g} points is {price} for this pair: an answer "
            f"is at most {self.ratio:.3f} times as likely with the odd grade as without, and the best guess errs "
            f"{self.best_error:.4f} of the time, never less than {self.floor:.4f}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return epsilon, the noise's scale and the guesser's errors as plain values, for JSON.

        Returns
        -------
        dict
            The figures of the release, in points and probabilities.
        """
        return {
            "epsilon": float(self.epsilon),
            "scale": self.width,
            "ratio": self.ratio,
            "best_error": self.best_error,
            "floor": self.floor,
        }


@dataclass(frozen=True)
class Classroom:
    """Grades that are all the same but one, and averages of random groups of students.

    **Theorem.** A query includes the odd grade with probability C(students - 1, group - 1)/C(students, group) =
    group/students. It then is ((group - 1) usual + odd)/group, a number that no class without the odd grade ever gives:
    epsilon is infinite. At least one of k independent queries includes it with probability 1 - (1 - group/students)^k.

    Parameters
    ----------
    students : int
        How many students the class has, 1 or more.
    group : int
        How many random students a query averages, from 1 to `students`.
    queries : int
        How many averages are published, 1 or more.
    usual : number
        The grade of all students but one, in points.
    odd : number
        The grade of the one student, other than `usual`.

    Raises
    ------
    ParameterError
        If the group is larger than the class, or the odd grade is the usual one.

    Examples
    --------
    >>> room = Classroom()
    >>> room.probability, float(room.probability_of_any)
    (Fraction(1, 10), 0.40951)
    """

    students: int = 30
    group: int = 3
    queries: int = 5
    usual: Fraction = Fraction(50)
    odd: Fraction = Fraction(90)

    def __post_init__(self) -> None:
        for name in ("students", "group", "queries"):
            object.__setattr__(self, name, to_integer(name, getattr(self, name), least=1))
        for name in ("usual", "odd"):
            object.__setattr__(self, name, to_rational(name, getattr(self, name)))
        if self.group > self.students:
            raise ParameterError("group", f"has more than {self.students} students", fix="choose a smaller group")
        if self.usual == self.odd:
            raise ParameterError("odd", "is the usual grade", fix="choose another grade: odd=90, say")

    @property
    def probability(self) -> Fraction:
        """The probability that one query includes the odd one."""
        return Fraction(math.comb(self.students - 1, self.group - 1), math.comb(self.students, self.group))

    @property
    def probability_of_any(self) -> Fraction:
        """The probability that at least one of all queries does."""
        return 1 - (1 - self.probability) ** self.queries

    @property
    def telling(self) -> Fraction:
        """The answer that gives the odd one away."""
        return ((self.group - 1) * self.usual + self.odd) / self.group

    def matrix(self) -> TransitionMatrix:
        """Return one query as a table of probabilities.

        Returns
        -------
        TransitionMatrix
            The answers `usual` and `telling`, of the class with the odd grade and of the one without.
        """
        return TransitionMatrix([[1 - self.probability, self.probability], [Fraction(1), Fraction(0)]])

    def play(self, rounds: int = 10_000, seed: int = 0) -> SimulatedRate:
        """Simulate all queries about fresh random groups.

        Parameters
        ----------
        rounds : int
            How many times all queries are asked, 1 or more.
        seed : int
            Seed of the random groups.

        Returns
        -------
        SimulatedRate
            In how many rounds an answer revealed the odd grade, beside `probability_of_any`.
        """
        many, rng = to_integer("rounds", rounds, least=1), np.random.default_rng(seed)
        grades = np.full(self.students, float(self.usual))
        grades[0] = float(self.odd)
        told = 0
        for start in range(0, many, _BLOCK):
            shape = (min(_BLOCK, many - start), self.queries, self.students)
            groups = rng.random(shape).argsort(axis=2)[:, :, : self.group]
            answers = grades[groups].mean(axis=2)
            told += int(np.isclose(answers, float(self.telling)).any(axis=1).sum())
        return SimulatedRate(f"an answer of {float(self.telling):.1f}", told, many, float(self.probability_of_any))

    def defend(self, epsilon: Number = Fraction(1, 10)) -> NoisyClassAverage:
        """Return the average of the whole class with noise that is calibrated to this pair of classes.

        A curator that does not know the pair takes the sensitivity of all grades: 10/3 for thirty in [0, 100].

        Parameters
        ----------
        epsilon : number
            The privacy loss of one answer, positive; a smaller one has more noise.

        Returns
        -------
        NoisyClassAverage
            The noisy average, with what a guesser can learn from it.

        Raises
        ------
        ParameterError
            If epsilon is not positive.
        """
        price = to_rational("epsilon", epsilon)
        if price <= 0:
            raise ParameterError("epsilon", f"must be positive, got {epsilon}", fix="epsilon=0.1, say")
        plain = self.usual
        marked = plain + (self.odd - plain) / self.students
        grain = common_grid_step(plain, marked) if plain else abs(marked)
        return NoisyClassAverage(price, grain, int((marked - plain) / grain), int(plain / grain))

    def __str__(self) -> str:
        return (
            f"{self.students} students, one {float(self.odd):g} among grades of {float(self.usual):g}: the average of "
            f"{self.group} random ones is {float(self.telling):.1f} with probability {float(self.probability):.4g}, at "
            f"least one of {self.queries} such averages with {float(self.probability_of_any):.6g}. Only the odd grade "
            "can cause that answer: epsilon is infinite."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the exact probabilities as plain values, for JSON.

        Returns
        -------
        dict
            The revealing answer, and the probabilities of seeing it.
        """
        return {
            "attack": "classroom",
            "telling": float(self.telling),
            "chance": float(self.probability),
            "chance_of_any": float(self.probability_of_any),
        }

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, epsilon: Number = Fraction(1, 10), rounds: int = 4000
    ) -> None:
        """Plot the probability of a revealing answer against the number of queries, and the answers with noise.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        epsilon : number
            The privacy loss of the noisy average in the right panel, positive.
        rounds : int
            How many simulated rounds each point of the left panel has, 1 or more.
        """
        from tacit.pictures import open_figure

        defense = self.defend(epsilon)
        counts = list(range(1, 31))
        rooms = [Classroom(self.students, self.group, count, self.usual, self.odd) for count in counts]
        names = ("averages asked", "probability")
        with open_figure(path, "Found out by small averages", *names, size=(11, 4), panels=2) as (left, right):
            left.plot(counts, [float(room.probability_of_any) for room in rooms], label="1 - (1 - group/students)^k")
            played = [room.play(rounds, seed=room.queries) for room in rooms[::4]]
            ends = np.array([(c.share - c.interval[0], c.interval[1] - c.share) for c in played]).T
            left.errorbar(counts[::4], [c.share for c in played], yerr=ends, fmt="o", capsize=3, label="played")
            left.plot(
                [self.queries],
                [float(self.probability_of_any)],
                "s",
                label=f"{self.queries}: {float(self.probability_of_any):.3%}",
            )
            left.set_ylim(0, 1)
            _draw_laws(right, defense)


def _draw_laws(axes: Any, defense: NoisyClassAverage) -> None:
    """The distributions of the noisy average of both classes."""
    scale = float(defense.mechanism.scale)
    steps = np.arange(-5 * int(scale), 5 * int(scale) + 1)
    q = math.exp(-1 / scale)
    for shift, name in ((0, "without the odd grade"), (defense.shift, "with it")):
        law = (1 - q) / (1 + q) * q ** np.abs(steps - shift)
        axes.plot((defense.base + steps) * float(defense.grain), law, label=name)
    axes.set(xlabel="released average of all", ylabel="probability")
    axes.set_title(f"With noise: the best guess errs {defense.best_error:.4f}")
