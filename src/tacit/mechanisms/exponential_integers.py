"""The exponential mechanism over an interval of integers, or over all of them, without a list of candidates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tacit.arithmetic import Number, to_integer, to_integers, to_interval, working_precision
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.selection import SelectionMechanism
from tacit.privacy.loss import BoundedRange
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_pieces import FARTHEST, Piece, draw_concave, draw_point, weigh_pieces
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

_WIDEST = FARTHEST.bit_length()  # bits of an end, a start, a score or a slope


@dataclass(frozen=True, init=False)
class PiecewiseLinearScore:
    """A score of integers that is linear on each of a few pieces: u(x) = values[i] + slopes[i] (x - starts[i]).

    This holds from starts[i] on, up to the next start; the first piece holds below its start too. Slopes of 0 make it
    piecewise constant.

    Parameters
    ----------
    starts : iterable of int
        Where each piece starts, ascending, at least one. They may depend on the private data.
    values : iterable of int
        The score at each start.
    slopes : iterable of int
        How much the score rises with each step to the right; negative where it falls.

    Raises
    ------
    ParameterError
        If there is no piece, the lists differ in length, the starts do not ascend, or a number has more than 512 bits.
        The message does not show the numbers. That it is never raised, whatever the private data, is a promise of
        whoever makes the pieces, as the sensitivity is.

    Examples
    --------
    >>> tent = PiecewiseLinearScore([-5, 3], [-8, 0], [1, -1])  # -|x - 3|
    >>> tent(0), tent(3), tent(10)
    (-3, 0, -7)
    """

    starts: tuple[int, ...]
    values: tuple[int, ...]
    slopes: tuple[int, ...]

    def __init__(self, starts: Iterable[int], values: Iterable[int], slopes: Iterable[int]) -> None:
        given = {
            name: tuple(to_integers(name, numbers))
            for name, numbers in (("starts", starts), ("values", values), ("slopes", slopes))
        }
        count = len(given["starts"])
        if not count or any(len(numbers) != count for numbers in given.values()):
            what = "starts, values and slopes need one number for each piece"
            raise ParameterError("starts", what, fix="starts=[0], values=[5], slopes=[-1], say")
        if any(one >= two for one, two in zip(given["starts"], given["starts"][1:], strict=False)):
            raise ParameterError("starts", "do not ascend", fix="sort the pieces by their start")
        for name, numbers in given.items():
            if any(number.bit_length() > _WIDEST for number in numbers):
                raise ParameterError(name, f"a number has more than {_WIDEST} bits", fix="score in coarser units")
        set_fields(self, **given)

    def __call__(self, point: int) -> int:
        """Return the score of a point, which is private."""
        place = max(bisect_right(self.starts, point) - 1, 0)
        return self.values[place] + self.slopes[place] * (point - self.starts[place])

    @classmethod
    def from_distances(cls, centers: Iterable[int]) -> Self:
        """Return minus the sum of the distances to some integers: the best point is their median.

        Between neighbors of which one center is replaced by another within [a, b], it moves by at most b - a.

        Centers and their sums may be of any size: nothing is refused for how large they are.

        Parameters
        ----------
        centers : iterable of int
            The private values, at least one.

        Returns
        -------
        PiecewiseLinearScore
            The score, with a piece for each different center and one before them.

        Examples
        --------
        >>> PiecewiseLinearScore.from_distances([3, 3, 7])(5)
        -6
        """
        points = sorted(to_integers("centers", centers))
        if not points:
            raise ParameterError("centers", "there is none", fix="give at least one")
        starts = sorted(set(points))
        total, passed = sum(starts[0] - 1 - point for point in points), 0
        pieces = [(starts[0] - 1, total, len(points))]
        for place, start in enumerate(starts):
            total += (len(points) - 2 * passed) * (start - (starts[place - 1] if place else start - 1))
            passed += bisect_right(points, start) - passed
            pieces.append((start, total, len(points) - 2 * passed))
        # not by __init__, whose limit would be one on sums of private values
        found = cls.__new__(cls)
        set_fields(found, **dict(zip(("starts", "values", "slopes"), zip(*pieces, strict=True), strict=True)))
        return found


@dataclass(frozen=True, init=False)
class ExponentialOverIntegers(SelectionMechanism):
    """Releases an integer x between `lower` and `upper` with P(x) proportional to exp(factor u(x)).

    Either end may be infinite (None), as long as u falls toward it. `factor` is epsilon/(2 sensitivity), and
    epsilon/sensitivity where `monotone`. Time grows with the number of pieces of u, not with that of the integers.

    **Theorem.** If between neighbors u(x) moves by at most `sensitivity` at every x between the ends (and, where
    `monotone`, in the same direction everywhere), the privacy loss lies in an interval of length `epsilon` that holds
    0. So the release is epsilon-DP, and (epsilon^2/8)-zCDP.

    **Proof.** That of `Exponential`, with series in place of sums. They converge for one of two neighbors just where
    they converge for the other: two scores that differ by at most `sensitivity` everywhere have weights within a
    constant factor, and fall toward an infinite end with the same slope. So whether a score is refused because it does
    not fall is the same for neighbors.

    The distribution is exact: no floating-point number decides (`tacit.sampling.exponential_pieces`). With u(x) =
    -|x - c|, sensitivity 1 and both ends infinite it is the discrete Laplace distribution around c.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one choice, above 0 and at most 2^64.
    sensitivity : int, default 1
        The most that the score of any one integer moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all scores move in the same direction between neighbors. It halves the error; where it is not true, the
        choice costs up to twice epsilon.
    lower, upper : int, optional
        The ends, which are public: declared, and not read from the data. Infinite by default.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or upper is below lower.

    See Also
    --------
    Exponential : The same over a list.
    Quantile : A quantile over an interval, from a histogram.
    PiecewiseLinearScore : What it chooses by.

    Examples
    --------
    A public grid of ten billion points, and the most central one for five private values within [0, 10^10]:

    >>> from tacit.sampling.bits import ReplayBits
    >>> score = PiecewiseLinearScore.from_distances([4 * 10**9, 5 * 10**9, 5 * 10**9, 5 * 10**9, 6 * 10**9])
    >>> mechanism = ExponentialOverIntegers(epsilon=9, sensitivity=10**10, lower=0, upper=10**10)
    >>> 3 * 10**9 < mechanism.release(score, ReplayBits(b"example")) < 7 * 10**9
    True
    """

    lower: int | None = None
    upper: int | None = None

    def __init__(
        self,
        epsilon: Number,
        sensitivity: int = 1,
        monotone: bool = False,
        lower: int | None = None,
        upper: int | None = None,
    ) -> None:
        SelectionMechanism.__init__(self, epsilon, sensitivity, monotone)
        ends = {
            name: None if end is None else to_integer(name, end) for name, end in (("lower", lower), ("upper", upper))
        }
        for name, end in ends.items():
            if end is not None and end.bit_length() > _WIDEST:
                raise ParameterError(name, f"has more than {_WIDEST} bits", fix="choose a coarser grid")
        if ends["lower"] is not None and ends["upper"] is not None and ends["upper"] < ends["lower"]:
            raise ParameterError("upper", "is below lower", fix="choose upper of at least lower")
        set_fields(self, **ends)

    @classmethod
    def calibrated(
        cls,
        epsilon: Number,
        sensitivity: int,
        monotone: bool = False,
        lower: int | None = None,
        upper: int | None = None,
    ) -> Self:
        """Return the mechanism with the least error that is epsilon-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one choice, above 0 and at most 2^64.
        sensitivity : int
            The most that the score of any one integer moves between neighbors, at least 0.
        monotone : bool, default False
            Whether all scores move in the same direction between neighbors.
        lower, upper : int, optional
            The ends, which are public. Infinite by default.

        Returns
        -------
        ExponentialOverIntegers
            The calibrated mechanism.
        """
        return cls(epsilon, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone, lower, upper)

    def loss(self) -> BoundedRange:
        """Return the privacy loss of one choice.

        Returns
        -------
        BoundedRange
            What `tacit.accounting` composes.
        """
        return BoundedRange(self.epsilon)

    def release(self, score: PiecewiseLinearScore, bits: Bits | None = None) -> int:
        """Release one integer, and nothing about its score.

        Parameters
        ----------
        score : PiecewiseLinearScore
            The score of each integer, which is private; higher is better.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            An integer between `lower` and `upper`.

        Raises
        ------
        ParameterError
            If the score does not fall toward an end that is infinite.
        """
        return draw_point(self._pieces(score), self.factor, bits_or_system(bits))

    def release_concave(self, score: Callable[[int], int], start: int, bits: Bits | None = None) -> int:
        """Release one integer by any concave score, given as a function: u(x + 1) - u(x) never rises with x.

        The distribution is that of the class, exactly, where an end that is not declared lies at 2^512 - 1, or at minus
        that: no integer beyond is released. So a release ends with any concave score, also one that does not fall
        toward such an end, and fails with none: whether a function falls somewhere cannot be found in a limited time,
        and a limit would be exceeded by some scores and not by their neighbors.

        It is drawn from a bound that is linear on three pieces, and kept or drawn again; how often depends on the
        score, so the time of a release does too. On average it is drawn fewer than 7 times.

        Parameters
        ----------
        score : callable
            The score of an integer, an integer, for all integers between the ends. That it is concave is a promise, as
            the sensitivity is.
        start : int
            Where to begin the search for the best integer, between the ends, which is checked: it is public. It does
            not affect the distribution.
        bits : Bits, optional
            Source of random bits; the operating system's by default.

        Returns
        -------
        int
            An integer between `lower` and `upper`.

        Raises
        ------
        ParameterError
            If `start` is not between the ends, or the score is seen not to be concave or no integer.

        Examples
        --------
        >>> from tacit.sampling.bits import ReplayBits
        >>> # a center within [0, 100] that moves by one between neighbors: (x - c)^2 moves by at most 199
        >>> mechanism = ExponentialOverIntegers(epsilon=9, sensitivity=199, lower=0, upper=100)
        >>> mechanism.release_concave(lambda x: -((x - 40) ** 2), start=0, bits=ReplayBits(b"example"))
        42
        """
        begin = to_integer("start", start)
        lower = -FARTHEST if self.lower is None else self.lower
        upper = FARTHEST if self.upper is None else self.upper
        if not lower <= begin <= upper:
            raise ParameterError("start", "is not between lower and upper", fix="start=lower, say")

        def score_exactly(point: int) -> int:
            return to_integer("score", score(point))

        return draw_concave(score_exactly, begin, self.factor, bits_or_system(bits), lower, upper)

    def law(self, score: PiecewiseLinearScore, point: int, digits: int = 128) -> arb:
        """Return the probability of one integer, which depends on the private score.

        Parameters
        ----------
        score : PiecewiseLinearScore
            The score of each integer.
        point : int
            The integer whose probability is asked for; it may lie beyond the ends.
        digits : int, default 128
            Working precision in bits; more of it narrows the interval.

        Returns
        -------
        arb
            P(point), as a certified interval; 0 beyond the ends.
        """
        from flint import arb

        place = to_integer("point", point)
        if (self.lower is not None and place < self.lower) or (self.upper is not None and place > self.upper):
            return arb(0)
        pieces = self._pieces(score)
        best = max(piece.top for piece in pieces)
        with working_precision(digits):
            weights = weigh_pieces(pieces, self.factor, best)
            return (to_interval(self.factor) * (score(place) - best)).exp() / sum(weights[1:], weights[0])

    def _pieces(self, score: PiecewiseLinearScore) -> list[Piece]:
        """The pieces between the ends, each from its best point on."""
        if not isinstance(score, PiecewiseLinearScore):
            what = f"needs a PiecewiseLinearScore, got {type(score).__name__}"
            raise ParameterError("score", what, fix="PiecewiseLinearScore([0], [5], [-1]), say, or release_concave")
        found = []
        lows: list[int | None] = [self.lower, *score.starts[1:]]
        highs: list[int | None] = [*(start - 1 for start in score.starts[1:]), self.upper]
        for low, high, slope in zip(lows, highs, score.slopes, strict=True):
            first = low if low is None or self.lower is None else max(low, self.lower)
            last = high if high is None or self.upper is None else min(high, self.upper)
            if first is not None and last is not None and last < first:
                continue
            step = -1 if slope > 0 else 1
            near = last if slope > 0 else first
            if near is None or (slope == 0 and last is None):
                what = "does not fall toward an end that is infinite"
                raise ParameterError("score", what, fix="declare lower and upper")
            size = None if first is None or last is None else last - first + 1
            found.append(Piece(near, step, size, score(near), abs(slope)))
        return found
