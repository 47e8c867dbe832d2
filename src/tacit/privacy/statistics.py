"""Global sensitivity: how far one row can move a statistic, over all databases of a declared range.

>>> global_sensitivity(mean, rows=30, lower=0, upper=100, neighbors=Neighbors.REPLACE)
Fraction(10, 3)

The statistics are here too, in exact arithmetic, so that every figure can be checked against its definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.privacy.unit import Neighbors

Exact = int | Fraction


def count(values: Sequence[Exact]) -> Fraction:
    """How many rows satisfy a condition: a row is 1 where it does and 0 where it does not."""
    return Fraction(sum(1 for value in values if value))


def total(values: Sequence[Exact]) -> Fraction:
    """The sum; 0 without rows."""
    return Fraction(sum(values))


def mean(values: Sequence[Exact]) -> Fraction:
    """The sum over the number of rows, of which there is at least one."""
    return Fraction(sum(values)) / len(values)


def variance(values: Sequence[Exact]) -> Fraction:
    """The mean of the squared distances to the mean."""
    center = mean(values)
    return mean([(value - center) ** 2 for value in values])


def median(values: Sequence[Exact]) -> Fraction:
    """The lower median: of n sorted values the one of rank ceil(n/2), so that it is always one of them."""
    return Fraction(sorted(values)[(len(values) - 1) // 2])


def histogram(values: Sequence[int], bins: int) -> tuple[int, ...]:
    """How many rows are in each of the bins 0, 1, ..., bins - 1; its sensitivity is in L1."""
    return tuple(sum(1 for value in values if value == bin) for bin in range(bins))


def mean_target_score(values: Sequence[Exact], target: Exact) -> Fraction:
    """The score -(mean - target)^2 of one candidate `target` in the range, for selecting a mean."""
    return -((mean(values) - target) ** 2)


def global_sensitivity(
    statistic: Callable[..., object],
    *,
    neighbors: Neighbors,
    rows: int | None = None,
    lower: Number | None = None,
    upper: Number | None = None,
    bins: int | None = None,
) -> Fraction:
    """The largest |f(D) - f(D')| over neighbors D and D' with values in [lower, upper], exactly.

    Under REPLACE both have `rows` rows, a public number; under ADD_REMOVE one has `rows` rows and the other one less.

    **Theorem.** With n = rows, W = upper - lower and M = max(|lower|, |upper|):

    | statistic | ADD_REMOVE | REPLACE |
    |---|---|---|
    | count | 1 | 1 |
    | total | M | W |
    | mean | W/n, n >= 2 | W/n |
    | variance | W^2 (n - 1)/n^2, n >= 2 | W^2 (n - 1)/n^2 |
    | median | W, n >= 2 | W |
    | histogram, L1 | 1 | 2, and 0 with one bin |
    | squared_distance | W^2 (2/n - 1/n^2), n >= 2 | W^2 (2/n - 1/n^2) |

    Proof. Let x be the row that goes or changes, c the mean and v the variance of the other n - 1.
    *mean*: with x it is c + (x - c)/n; without, c; a new x moves it by at most W/n.
    *variance*: with x it is v (n - 1)/n + (x - c)^2 (n - 1)/n^2. A new x moves it by at most W^2 (n - 1)/n^2; taking x
    out moves it by (x - c)^2 (n - 1)/n^2 - v/n, which lies between -W^2/(4n) and W^2 (n - 1)/n^2, the larger for n >=
    2.
    *median*: rows at both ends of the range, half at each, and the one in the middle moves across.
    *squared_distance*: two means a and b differ by at most W/n, and (a - l)^2 - (b - l)^2 = (a - b)(a + b - 2l), where
    |a + b - 2l| is at most 2W - W/n, both reached with l at one end and a at the other.
    A sum or a mean of unclamped values has no bound, and is an error here.
    """
    if not isinstance(neighbors, Neighbors):
        raise ParameterError(
            "neighbors", f"is not a neighbor relation: {neighbors!r:.60}", fix="Neighbors.REPLACE, say"
        )
    if statistic is count:
        return Fraction(1)
    replace = neighbors is Neighbors.REPLACE
    if statistic is histogram:
        several = to_integer("bins", bins, least=1) > 1
        return Fraction(2 * several if replace else 1)
    low, high = _range(lower, upper)
    width = high - low
    if statistic is total:
        return width if replace else max(abs(low), abs(high))
    n = to_integer("rows", rows, least=1 if replace else 2)
    if statistic is mean:
        return width / n
    if statistic is variance:
        return width**2 * Fraction(n - 1, n * n)
    if statistic is median:
        return width
    if statistic is mean_target_score:
        return width**2 * Fraction(2 * n - 1, n * n)
    raise ParameterError(
        "statistic", f"no sensitivity is known for {statistic!r:.60}", fix="global_sensitivity(mean, ...), say"
    )


def _range(lower: Number | None, upper: Number | None) -> tuple[Fraction, Fraction]:
    if lower is None or upper is None:
        name = "lower" if lower is None else "upper"
        raise ParameterError(name, "without it one row can move the statistic without bound", fix="clamp the values")
    low, high = to_rational("lower", lower), to_rational("upper", upper)
    if low > high:
        raise ParameterError("upper", f"is below lower: {high} < {low}", fix="choose upper of at least lower")
    return low, high
