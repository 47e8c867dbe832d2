"""Local sensitivity, and what makes it safe to use: its smooth bound, and the distance to where it grows.

All of it is for REPLACE: the number of rows is public and one row changes. Values are integers in [lower, upper].
Nothing here may be published, not even as a size of noise: local sensitivity depends on the data.
`mechanisms/smooth.py` and `mechanisms/propose.py` use it with a proof.

>>> scores = [50] * 15 + [51] * 14 + [90]
>>> median_local_sensitivity(scores, 0, 100)
1
>>> median_distance_to_bound(scores, 0, 100, bound=1)
14
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_integer, to_integers, to_interval, to_rational_between, working_precision
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class SmoothSensitivity:
    """The smooth sensitivity width exp(-beta steps), kept as three exact numbers: it is irrational.

    Attributes
    ----------
    width : int
        Local sensitivity of the data that is `steps` changed rows away.
    steps : int
        How many rows must change to get there.
    beta : Fraction
        How fast the smooth sensitivity decays with the distance.

    Examples
    --------
    >>> median_smooth_sensitivity([50] * 15 + [51] * 14 + [90], 0, 100, beta=1)
    SmoothSensitivity(width=1, steps=0, beta=Fraction(1, 1))
    """

    width: int
    steps: int
    beta: Fraction

    def value(self) -> arb:
        """Return the number.

        Returns
        -------
        arb
            width exp(-beta steps), as a certified interval at the working precision.
        """
        return (-to_interval(self.beta * self.steps)).exp() * self.width


def clamp_and_sort(values: Iterable[int], lower: int, upper: int) -> list[int]:
    """The values moved into [lower, upper], each on its own, and sorted; there is at least one."""
    if to_integer("lower", lower) > to_integer("upper", upper):
        raise ParameterError("upper", f"is below lower: {upper} < {lower}", fix="choose upper of at least lower")
    found = sorted(min(max(value, lower), upper) for value in to_integers("values", values))
    if not found:
        raise ParameterError(
            "values", "there are none", fix="the number of rows is public: ask only where it is positive"
        )
    return found


def median_local_sensitivity(values: Iterable[int], lower: int, upper: int) -> int:
    """Return how far one changed row can move the lower median of these values.

    It depends on the data and is private: noise of this scale would give the data away.

    Parameters
    ----------
    values : iterable of int
        The private data, at least one value; each is clamped to [lower, upper].
    lower, upper : int
        Ends of the declared range of the values, with lower <= upper.

    Returns
    -------
    int
        The local sensitivity under REPLACE.

    Examples
    --------
    >>> median_local_sensitivity([50] * 15 + [51] * 14 + [90], 0, 100)
    1
    """
    return median_sensitivity_at_distance(values, lower, upper, 0)


def median_sensitivity_at_distance(values: Iterable[int], lower: int, upper: int, changes: int) -> int:
    """The largest local sensitivity of the lower median among all data with at most `changes` rows changed.

    **Theorem** (Nissim, Raskhodnikova, Smith 2007, for any rank m). With x_1 <= ... <= x_n, x_0 = lower and
    x_(n+1) = upper, it is the largest x_j - x_i with i <= m <= j and j - i - 1 <= changes.

    Proof. One changed row moves the value of rank m to at most the next and at least the one before: the local
    sensitivity is the larger of the two gaps beside x_m. Changing k rows can empty any stretch that holds k of them;
    that makes a gap from x_i to x_j, and the emptied rows go to its two sides so that rank m is at one of them. No
    larger gap beside rank m can be made: its inside holds only rows that were changed, s of them say. If it lies
    between x_i and x_j with i > m, then i - m of the k - s other changed rows were taken from below it, so that the
    stretch from x_m to x_j is at least as wide and has at most k rows inside; likewise with j < m.
    """
    x = _pad(values, lower, upper)
    middle, reach = (len(x) - 1) // 2, to_integer("changes", changes, least=0) + 1
    return max(x[min(i + reach, len(x) - 1)] - x[i] for i in range(max(0, middle - reach), middle + 1))


def median_distance_to_bound(values: Iterable[int], lower: int, upper: int, bound: int) -> int | None:
    """Return how many rows must change before the local sensitivity of the lower median passes `bound`.

    The least k with `median_sensitivity_at_distance(k)` > bound. One changed row moves this number by at most one, as
    it moves any distance to a set. Takes one sort and one pass.

    Parameters
    ----------
    values : iterable of int
        The private data, at least one value; each is clamped to [lower, upper].
    lower, upper : int
        Ends of the declared range of the values, with lower <= upper.
    bound : int
        A local sensitivity, at least 0.

    Returns
    -------
    int or None
        The distance, which is private; None where no change of rows passes the bound.

    Examples
    --------
    >>> median_distance_to_bound([50] * 15 + [51] * 14 + [90], 0, 100, bound=1)
    14
    """
    x = _pad(values, lower, upper)
    bound = to_integer("bound", bound, least=0)
    middle = (len(x) - 1) // 2
    best, j = None, middle
    for i in range(middle + 1):  # x_i grows, so the first j beyond the bound moves right
        while j < len(x) and x[j] - x[i] <= bound:
            j += 1
        if j == len(x):
            break
        best = j - i - 1 if best is None else min(best, j - i - 1)
    return best


def median_smooth_sensitivity(values: Iterable[int], lower: int, upper: int, beta: Number) -> SmoothSensitivity:
    """Return the smooth sensitivity of the lower median, exactly.

    It is the largest median_sensitivity_at_distance(k) exp(-beta k) over all k.

    **Theorem** (Nissim, Raskhodnikova, Smith 2007). It is at least the local sensitivity, and one changed row
    multiplies it by at most exp(beta); no smaller bound does both.

    It is the largest (x_j - x_i) exp(-beta (j - i - 1)) over i <= m <= j. The best j does not fall as i grows, since
    (x_k - c)/(x_j - c) grows with c for x_k >= x_j, so halving i and the range of j takes n log n comparisons. Two
    different products are never equal, exp(beta k) being irrational: each comparison is decided with certainty.

    Parameters
    ----------
    values : iterable of int
        The private data, at least one value; each is clamped to [lower, upper].
    lower, upper : int
        Ends of the declared range of the values, with lower <= upper.
    beta : number
        How fast it decays with the distance, from 10^-9 to 10^6.

    Returns
    -------
    SmoothSensitivity
        The number, which is private.

    Examples
    --------
    >>> float(median_smooth_sensitivity([50] * 15 + [51] * 14 + [90], 0, 100, beta=1).value())
    1.0
    """
    x = _pad(values, lower, upper)
    middle = (len(x) - 1) // 2
    decay, best = _decay(beta), (0, 0)
    todo = [(0, middle, middle, len(x) - 1)]
    while todo:
        first, last, least, most = todo.pop()
        i = (first + last) // 2
        found, at = (x[most] - x[i], most - i - 1), most
        for j in range(most - 1, max(least, i + 1) - 1, -1):
            if _is_larger((x[j] - x[i], j - i - 1), found, decay):
                found, at = (x[j] - x[i], j - i - 1), j
        if _is_larger(found, best, decay):
            best = found
        if first < i:
            todo.append((first, i - 1, least, at))
        if i < last:
            todo.append((i + 1, last, at, most))
    return SmoothSensitivity(*best, decay)


def _decay(beta: Number) -> Fraction:
    return to_rational_between("beta", beta, Fraction(1, 10**9), Fraction(10**6))


def _pad(values: Iterable[int], lower: int, upper: int) -> list[int]:
    """x_0 = lower, the sorted values, x_(n+1) = upper."""
    return [lower, *clamp_and_sort(values, lower, upper), upper]


def _is_larger(one: tuple[int, int], other: tuple[int, int], beta: Fraction) -> bool:
    """Whether a exp(-beta k) > b exp(-beta m) for (a, k) and (b, m), with certainty."""
    (a, k), (b, m) = one, other
    if k == m or not a or not b:
        return a > b if k == m else bool(a) and not b
    gap = math.log(a) - math.log(b) - float(beta) * (k - m)
    if abs(gap) > 1e-12 * (2 + abs(math.log(a)) + abs(math.log(b)) + float(beta) * (k + m)):
        return gap > 0
    bits = 128
    while True:
        with working_precision(bits):
            difference = to_interval(Fraction(a, b)).log() - to_interval(beta * (k - m))
            if difference > 0 or difference < 0:
                return bool(difference > 0)
        bits *= 2
