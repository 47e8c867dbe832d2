"""The exact epsilon, delta and trade-off of a discrete mechanism, from its table of probabilities.

>>> coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
>>> coin.ratio, round(coin.epsilon, 6)
(Fraction(3, 1), 1.098612)
>>> coin.repeat(2).ratio
Fraction(9, 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from tacit.arithmetic import (
    Number,
    ball_above,
    double_above,
    to_integer,
    to_integers,
    to_interval,
    to_rational,
    working_precision,
)
from tacit.errors import ParameterError

_BITS = 192
_LARGEST = 2000  # an epsilon beyond which its exponential is not computed
_HUGE = 10**868  # below e^2000
_SUM = 1e-9  # how far a row of doubles may be from one


@dataclass(frozen=True, init=False)
class TransitionMatrix:
    """P[R = r | X = x]: a row for each input, a column for each output.

    Parameters
    ----------
    rows : sequence of sequences of numbers
        A probability for each output, in a row for each input. Fractions give exact results, and their rows add up to
        1; doubles are taken as the rationals they are, and their rows add up to 1 within 10^-9.
    pairs : iterable of pairs of int, optional
        The neighboring inputs, numbered from 0; by default any two.

    Raises
    ------
    ParameterError
        If the rows differ in length or do not add up to 1, or a pair names an input that is not there.

    Examples
    --------
    >>> coin = TransitionMatrix([[0.75, 0.25], [0.25, 0.75]])
    >>> coin.ratio, round(coin.epsilon, 6)
    (Fraction(3, 1), 1.098612)
    >>> coin.repeat(2).ratio
    Fraction(9, 1)
    """

    rows: tuple[tuple[Fraction, ...], ...]
    pairs: tuple[tuple[int, int], ...]

    def __init__(self, rows: Sequence[Sequence[Number]], pairs: Iterable[tuple[int, int]] | None = None) -> None:
        table = tuple(_row(number, row) for number, row in enumerate(rows))
        if not table or len({len(row) for row in table}) != 1:
            raise ParameterError(
                "rows", "the rows have different lengths, or there are none", fix="give every input a row"
            )
        given = list(permutations(range(len(table)), 2)) if pairs is None else [tuple(pair) for pair in pairs]
        if any(not (0 <= one < len(table) and 0 <= other < len(table)) for one, other in given):
            raise ParameterError("pairs", "a pair names an input that is not there", fix="number inputs from 0")
        both = dict.fromkeys([*given, *((other, one) for one, other in given)])
        object.__setattr__(self, "rows", table)
        object.__setattr__(self, "pairs", tuple(both))

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of two neighbors' probabilities of one output: e^epsilon. None if it is infinite."""
        largest = Fraction(1)
        for one, other in self.pairs:
            for p, q in zip(self.rows[one], self.rows[other], strict=True):
                if p and not q:
                    return None
                if q:
                    largest = max(largest, p / q)
        return largest

    @property
    def epsilon(self) -> float:
        """The exact epsilon, rounded up; infinite where an output is possible for one input only."""
        ratio = self.ratio
        if ratio is None:
            return math.inf
        with working_precision(_BITS):
            return ball_above(to_interval(ratio).log())

    def delta(self, epsilon: Number) -> float:
        """Return the largest sum of max(0, p - e^epsilon q) over the outputs, rounded up.

        Parameters
        ----------
        epsilon : number
            At least 0, taken as the rational it is.

        Returns
        -------
        float
            delta(epsilon): the least delta with which the mechanism is (epsilon, delta)-DP.
        """
        if epsilon < 0:
            raise ParameterError("epsilon", "must not be negative", fix="choose an epsilon of 0 or more")
        factor = _power(Fraction(epsilon)) if epsilon < _LARGEST else None
        return max((double_above(self._excess(pair, factor)) for pair in self.pairs), default=0.0)

    def _excess(self, pair: tuple[int, int], factor: Fraction | None) -> Fraction:
        columns = zip(self.rows[pair[0]], self.rows[pair[1]], strict=True)
        if factor is None:  # beyond every ratio but the largest: those are a bound
            return sum((p for p, q in columns if p > q * _HUGE), Fraction(0))
        return sum((max(Fraction(0), p - factor * q) for p, q in columns), Fraction(0))

    def tradeoff(self, one: int, other: int) -> list[tuple[Fraction, Fraction]]:
        """Return the corners of the trade-off function of two inputs: the errors of the best tests.

        **Theorem** (Neyman, Pearson). The best tests reject outputs in the order of the ratio of `other` to `one`; in
        between, the best error is on the line between the corners, by tossing a coin.

        Parameters
        ----------
        one, other : int
            Numbers of two inputs, from 0: the null hypothesis and the alternative.

        Returns
        -------
        list of pairs of Fraction
            (false alarms, misses), from (0, 1) to (1, 0).
        """
        columns = [column for column in zip(self.rows[one], self.rows[other], strict=True) if any(column)]
        columns.sort(key=lambda column: column[0] / (column[0] + column[1]))
        corners, alarms, misses = [(Fraction(0), Fraction(1))], Fraction(0), Fraction(1)
        for p, q in columns:
            alarms, misses = alarms + p, misses - q
            corners.append((alarms, misses))
        return corners

    def merge_equal_outputs(self) -> TransitionMatrix:
        """Return the same mechanism with proportional outputs merged into one.

        **Theorem.** Where two columns are proportional, showing only that one of the two came out changes neither
        epsilon nor delta nor any trade-off. Proof: merging is post-processing; and which of the two it was can be drawn
        afterwards, by the share of each in their sum, which is the same for every input.

        Returns
        -------
        TransitionMatrix
            With at most as many outputs.
        """
        found: dict[tuple[Fraction, ...], Fraction] = {}
        for column in zip(*self.rows, strict=True):
            weight = sum(column, Fraction(0))
            if weight:
                shape = tuple(entry / weight for entry in column)
                found[shape] = found.get(shape, Fraction(0)) + weight
        return self._with([[shape[x] * weight for shape, weight in found.items()] for x in range(len(self.rows))])

    def then(self, other: TransitionMatrix) -> TransitionMatrix:
        """Return the composition of two mechanisms on the same input, with independent randomness; merged.

        **Theorem.** The pair of outputs (r, s) has the probability P[r | x] P'[s | x], so the ratios multiply: epsilon
        is at most the sum of both, and just that where their worst outputs are for the same two inputs.

        Parameters
        ----------
        other : TransitionMatrix
            A mechanism for the same inputs and pairs.

        Returns
        -------
        TransitionMatrix
            The mechanism that releases both outputs.

        Raises
        ------
        ParameterError
            If the inputs or the pairs differ.
        """
        if len(other.rows) != len(self.rows) or set(other.pairs) != set(self.pairs):
            raise ParameterError(
                "other", "is about other inputs or other neighbors", fix="give both tables the same inputs and pairs"
            )
        both = zip(self.rows, other.rows, strict=True)
        return self._with([[p * q for p in mine for q in theirs] for mine, theirs in both]).merge_equal_outputs()

    def repeat(self, times: int) -> TransitionMatrix:
        """Return the composition of several runs on the same input, with independent randomness.

        For a few hundred at most: the rationals grow with every run. `tacit.accounting.epsilon` is for more.

        Parameters
        ----------
        times : int
            How many runs, at least 0; 0 releases nothing.

        Returns
        -------
        TransitionMatrix
            The mechanism that releases all outputs, merged.
        """
        left = to_integer("times", times, least=0)
        found, power = self._with([[1] for _ in self.rows]), self.merge_equal_outputs()
        while left:
            if left % 2:
                found = found.then(power)
            left //= 2
            if left:
                power = power.then(power)
        return found

    def _with(self, rows: Sequence[Sequence[Number]]) -> TransitionMatrix:
        """Another table for the same inputs. Rows of doubles, which may miss one by a little, multiply to such rows."""
        table = object.__new__(TransitionMatrix)
        object.__setattr__(table, "rows", tuple(tuple(Fraction(entry) for entry in row) for row in rows))
        object.__setattr__(table, "pairs", self.pairs)
        return table


def of_laplace(scale: Number, values: Sequence[int]) -> TransitionMatrix:
    """The mechanism that adds to one of these integers noise k with P(k) proportional to q^|k|, where q is
    exp(-1/scale) as a double, taken as the rational it is: so ratios are powers of q, and runs of it merge.

    The outputs are "the least value or below", each integer in between, and "the largest or above": beyond all values
    the ratio of any two inputs is constant, so the tails are merged and nothing is lost. All values are neighbors.
    """
    width, places = float(to_rational("scale", scale)), to_integers("values", values)
    if width <= 0 or not places:
        raise ParameterError("scale", "needs a positive scale and a value", fix="of_laplace(2, [0, 1]), say")
    low, high = min(places), max(places)
    q = Fraction(math.exp(-1 / width))
    powers = [Fraction(1)]
    for _ in range(high - low):
        powers.append(powers[-1] * q)
    center, tail = (1 - q) / (1 + q), 1 / (1 + q)  # P(k = 0), P(k <= 0)
    rows = []
    for value in places:
        inside = [center * powers[abs(output - value)] for output in range(low + 1, high)]
        ends = [tail * powers[gap] for gap in (value - low, high - value)]
        rows.append([ends[0], *inside, ends[1]] if high > low else [Fraction(1)])
    return TransitionMatrix(rows)


def _power(epsilon: Fraction) -> Fraction:
    """A rational just below e^epsilon."""
    with working_precision(_BITS):
        mantissa, exponent = to_interval(epsilon).exp().lower().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def _row(number: int, row: Sequence[Number]) -> tuple[Fraction, ...]:
    try:
        exact = tuple(Fraction(entry) for entry in row)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ParameterError("rows", f"row {number} holds what is not a number", fix="give probabilities") from problem
    total = sum(exact, Fraction(0))
    rational = all(isinstance(entry, Fraction | int) for entry in row)
    if any(entry < 0 for entry in exact) or (total != 1 if rational else abs(total - 1) > _SUM):
        raise ParameterError(
            "rows", f"row {number} is no law: it adds up to {float(total):g}", fix="make every row add up to one"
        )
    return exact
