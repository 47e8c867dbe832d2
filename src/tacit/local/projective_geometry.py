"""Projective geometry response: a point of a finite projective space, which supports the values of a hyperplane.

>>> points = ProjectiveGeometryResponse(domain=1024, epsilon=4)
>>> points.prime, points.dimensions, points.report_bits, round(points.variance(1), 4)
(53, 3, 12, 0.0753)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports, check_integer_reports
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact

_MOST_VALUES = 2**12  # a collector compares every value with every point
_SPARE = 16  # points for each value, at most
_BLOCK = 2**21  # comparisons at a time
Digits = npt.NDArray[np.int64]


@dataclass(frozen=True, init=False)
class ProjectiveGeometryResponse(FrequencyOracle):
    """Projective geometry response: a point of a finite projective space, likely on the value's hyperplane.

    Values and reports are points of the projective space of t dimensions over the integers modulo a prime r: vectors
    up to a factor, K = (r^t - 1)/(r - 1) of them. A report y supports x where their product is 0 modulo r. Reports that
    support the value are e^epsilon times as likely as the others (Feldman, Nelson, Nguyen, Talwar 2022).

    **Theorem.** It is epsilon-LDP, exactly. With c = (r^(t-1) - 1)/(r - 1) points on a hyperplane, b = (r^(t-2) - 1)/(r
    - 1) on two of them and w = c e^epsilon + K - c, p = c e^epsilon/w and q = (b e^epsilon + c - b)/w. Near r =
    e^epsilon + 1 the variance is close to the least of any protocol, and a report takes about as many bits as a value.
    Proof: the reports that support x are the nonzero solutions, up to a factor, of one equation, those that support x
    and z of two independent ones. r and t are those of least variance among spaces of at most 16 points a value.

    **Sampling.** All coordinates but one, at which x has its leading 1, are uniform; that one is solved for, so that
    the product is 0, or is a uniform nonzero number. A zero vector, possible in the first case, is rejected. So the
    vector is uniform among those with the required product, and each point has r - 1 of them.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 4,096. The error hardly depends on it; a report has about log2(domain) bits.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import ProjectiveGeometryResponse
    >>> points = ProjectiveGeometryResponse(domain=1024, epsilon=4)
    >>> points.prime, points.dimensions, points.report_bits, round(points.variance(users=1), 4)
    (53, 3, 12, 0.0753)
    """

    kind: ClassVar[str] = "projective"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain > _MOST_VALUES:
            raise ParameterError(
                "domain",
                f"has more than {_MOST_VALUES:,} values",
                fix=f"OptimizedLocalHashing({self.domain}, {float(self.epsilon):g})",
            )

    @property
    def prime(self) -> int:
        """r, the modulus."""
        return _shape(self.domain, self.epsilon)[0]

    @property
    def dimensions(self) -> int:
        """t, the number of coordinates of a point."""
        return _shape(self.domain, self.epsilon)[1]

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this: K, the number of points."""
        return _points(*_shape(self.domain, self.epsilon))

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        r, t = _shape(self.domain, self.epsilon)
        return _incidence_probabilities(r, t, root * root)

    @property
    def report_bits(self) -> int:
        """The bits of the index of a point."""
        return (self.report_limit - 1).bit_length()

    @property
    def max_support(self) -> int:
        """The points of a hyperplane, or all values if they are fewer."""
        return min(self.domain, _points(self.prime, self.dimensions - 1))

    def _list_reports(self) -> Reports:
        return np.arange(self._check_listable(self.report_limit))

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        odds, c = root * root, _points(self.prime, self.dimensions - 1)
        return (odds if own else 1) / (c * odds + (self.report_limit - c))

    def _support_from_counts(self, counts: Counts) -> Counts:
        seen = np.flatnonzero(counts)
        found = np.zeros(self.domain, dtype=np.int64)
        # Products are below t r^2, exact in doubles; a quotient is whole just where the prime divides.
        points = _digits(seen, self.prime, self.dimensions).astype(np.float64).T
        step = max(1, _BLOCK // max(1, len(seen)))
        for start in range(0, self.domain, step):
            values = np.arange(start, min(start + step, self.domain))
            quotients = (_digits(values, self.prime, self.dimensions).astype(np.float64) @ points) / self.prime
            found[values] = (quotients == np.floor(quotients)) @ counts[seen]
        return found

    def _support_probability(self) -> arb:
        """Return P[the report supports the true value]."""
        held: arb = self._support_probabilities(to_interval(self.epsilon / 2).exp())[0]
        return held

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        held = bernoulli.draw_array_certified(self._support_probability, len(values), bits)
        found, left = np.empty(len(values), dtype=np.int64), np.arange(len(values))
        while len(left):
            drawn = self._draw_vectors(values[left], held[left], bits)
            nonzero = drawn.any(axis=1)
            found[left[nonzero]] = _numbers(drawn[nonzero], self.prime)
            left = left[~nonzero]
        return found

    def _draw_vectors(self, values: Counts, held: npt.NDArray[np.bool_], bits: Bits) -> Digits:
        """Return a vector for each value, whose product with it is 0 exactly where `held` is true."""
        r, t = _shape(self.domain, self.epsilon)
        x, rows = _digits(values, r, t), np.arange(len(values))
        y = draw_array_below(r, len(values) * t, bits).reshape(len(values), t)
        product = np.where(held, 0, 1 + draw_array_below(r - 1, len(values), bits))
        first = (x != 0).argmax(axis=1)
        y[rows, first] = 0
        y[rows, first] = (product - (x * y).sum(axis=1)) % r
        return y

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return check_integer_reports(self.kind, reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < self.report_limit))

    def _count_support(self, reports: Reports) -> Counts:
        return self._support_from_counts(np.bincount(reports, minlength=self.report_limit))


def _points(r: int, t: int) -> int:
    return int((r**t - 1) // (r - 1))


def _incidence_probabilities(r: int, t: int, odds: Any) -> tuple[Any, Any]:
    """Return p and q of a space, of the type of `odds` = e^epsilon."""
    points, c, b = _points(r, t), _points(r, t - 1), _points(r, t - 2)
    weight = c * odds + (points - c)
    return c * odds / weight, (b * odds + (c - b)) / weight


@lru_cache(maxsize=256)
def _shape(domain: int, epsilon: Fraction) -> tuple[int, int]:
    """The prime and the dimensions of least variance, up to rounding, which can only make it a worse choice."""
    odds = math.exp(float(epsilon))

    def variance(shape: tuple[int, int]) -> float:
        p, q = _incidence_probabilities(*shape, odds)
        return float(q * (1 - q) / (p - q) ** 2)

    return min(_shapes(domain), key=variance)


def _shapes(domain: int) -> Iterator[tuple[int, int]]:
    """For each prime, up to the first that makes a line long enough, the fewest dimensions with enough points."""
    for r in range(2, 2 * domain + 4):
        if any(r % factor == 0 for factor in range(2, math.isqrt(r) + 1)):
            continue
        t = 2
        while _points(r, t) < domain:
            t += 1
        if _points(r, t) <= _SPARE * domain:
            yield r, t
        if t == 2:
            return


def _digits(numbers: npt.NDArray[np.int64], r: int, t: int) -> Digits:
    """The vectors of points: the one with k digits after its leading 1 is number (r^k - 1)/(r - 1) + those digits."""
    offsets = np.array([_points(r, k) for k in range(t)])
    size = np.searchsorted(offsets, numbers, side="right") - 1
    rest, found = numbers - offsets[size], np.zeros((len(numbers), t), dtype=np.int64)
    for k in range(t):
        found[:, t - 1 - k] = np.where(k < size, rest % r, k == size)
        rest = rest // r
    return found


def _numbers(vectors: Digits, r: int) -> npt.NDArray[np.int64]:
    """The numbers of the points of nonzero vectors."""
    t = vectors.shape[1]
    first = (vectors != 0).argmax(axis=1)
    lead = vectors[np.arange(len(vectors)), first]
    inverses = np.array([0, *(pow(a, -1, r) for a in range(1, r))])
    unit = vectors * inverses[lead][:, None] % r
    size = t - 1 - first
    offsets, powers = np.array([_points(r, k) for k in range(t)]), r ** np.arange(t - 1, -1, -1)
    return np.asarray(offsets[size] + unit @ powers - powers[first])
