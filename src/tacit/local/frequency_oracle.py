"""What all frequency oracles share: each user sends one report, which supports some values, and supports are counted.

>>> from tacit.local import KAryRandomizedResponse
>>> from tacit.sampling.bits import ReplayBits
>>> protocol = KAryRandomizedResponse(domain=4, epsilon=1)
>>> reports = protocol.encode([0, 0, 0, 3], ReplayBits(b"example"))  # each on its user's device
>>> protocol.support(reports).sum()  # at the collector
np.int64(4)

**Theorem.** Let a report support its sender's value with probability p and any other given value with probability q,
whatever the value. If C of n reports support v, then (C/n - q)/(p - q) is an unbiased estimate of the share f of users
whose value is v, and its variance is (f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)^2). Proof: C is a sum of n
independent Bernoulli variables, f n of them with probability p and the others with q.

**Theorem** (poisoning). A report moves the estimate of a value between -q/(p - q) and (1 - q)/(p - q), divided by n,
whatever its sender does. So if a share m of all senders is malicious, an estimate moves by at most m/(p - q) from what
the same users' honest reports would have given. The collector cannot identify such reports: see `influence`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.arithmetic import (
    Number,
    certified_floor,
    to_integer,
    to_interval,
    to_rational_between,
    working_precision,
)
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    from flint import arb

    Exact = TypeVar("Exact", Fraction, arb)  # a rational, or an interval that encloses an irrational number

MAX_DOMAIN = 2**24  # values of a domain
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**6), Fraction(100)
_MOST_BITS = 1024  # of a numerator or a denominator, so that a summary's header has a limited length
_MOST_OUTPUTS = 2**12
_NEAR = 2**160
_NONE, _ALL = Fraction(0), Fraction(1)

Report: TypeAlias = np.int64 | npt.NDArray[np.uint8]  # an integer, or a bit for each value in packed bytes
Reports: TypeAlias = npt.NDArray[Any]  # of int64, one for each user; or of uint8, one row for each user
Counts: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """The base class of protocols that estimate how common each value of a finite domain is.

    **Theorem.** A report is epsilon-LDP: P[R | x] <= e^epsilon P[R | y] for any two values x and y and any report R.
    Each subclass proves it, with its own p and q: a report supports its sender's value with probability p, and any
    other given value with probability q.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. Values are the integers 0 to domain - 1.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Raises
    ------
    ParameterError
        Where a parameter is outside its range.

    See Also
    --------
    recommend_protocol : Ranks the subclasses by error and report size.
    FrequencySummary : Counts reports as they arrive, and estimates from the counts.

    Examples
    --------
    >>> from tacit.local import FrequencyOracle, HadamardResponse
    >>> protocol: FrequencyOracle = HadamardResponse(domain=100, epsilon=2)
    >>> round(protocol.p, 4), protocol.q, protocol.report_bits
    (0.8808, 0.5, 7)
    >>> round(protocol.error(users=10_000, confidence=0.95), 4)
    0.0257
    """

    domain: int
    epsilon: Fraction
    kind: ClassVar[str]

    if TYPE_CHECKING:  # any number is converted below; subclasses inherit this signature by `init=False`

        def __init__(self, domain: int, epsilon: Number) -> None: ...

    def __post_init__(self) -> None:
        domain = to_integer("domain", self.domain, least=2)
        if domain > MAX_DOMAIN:
            raise ParameterError("domain", f"has more than {MAX_DOMAIN:,} values", fix="hash the values into fewer")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    # What a subclass defines.

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of one report in bits."""

    @property
    @abstractmethod
    def max_support(self) -> int:
        """The most values that one report can support, however its sender made it."""

    @abstractmethod
    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]: ...

    @abstractmethod
    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact: ...

    @abstractmethod
    def _list_reports(self) -> Reports: ...

    @abstractmethod
    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        """Return the reports of checked values. They may be the caller's own array, and are only read."""

    @abstractmethod
    def _to_array(self, reports: npt.ArrayLike) -> Reports: ...

    @abstractmethod
    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]: ...

    @abstractmethod
    def _count_support(self, reports: Reports) -> Counts: ...

    def _support_from_counts(self, counts: Counts) -> Counts:
        raise self._not_integers_error()

    # The client.

    def encode(self, values: npt.ArrayLike, bits: Bits) -> Reports:
        """Randomize the values of many users, one report each.

        The distribution of a report is exactly the one that the class states, without rounding.

        Parameters
        ----------
        values : array_like of int
            One value for each user, from 0 to domain - 1. With two values, booleans are accepted.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        ndarray
            One report for each user, in order: integers of shape (users,), or packed bits of shape (users, bytes).

        Raises
        ------
        ParameterError
            Where a value is not an integer of the domain. The text does not show it: values are private.
        """
        return self._encode_values(self._check_values(values), bits)

    def encode_one(self, value: int, bits: Bits) -> Report:
        """Randomize one user's value.

        Parameters
        ----------
        value : int
            The true value, from 0 to domain - 1. With two values, True is 1 and False is 0.
        bits : Bits
            Source of randomness: `SystemBits()` on a user's device.

        Returns
        -------
        int or ndarray of uint8
            The report to send, epsilon-LDP. A second report on the same value costs epsilon again.

        Raises
        ------
        ParameterError
            Where the value is not an integer of the domain.
        """
        report: Report = self.encode([value], bits)[0]
        return report

    # The collector.

    def support(self, reports: npt.ArrayLike) -> Counts:
        """Count how many reports support each value: all that an estimate depends on.

        Parameters
        ----------
        reports : array_like
            Reports as `encode` returns them; one that no client sends makes the call fail.

        Returns
        -------
        ndarray of int64, shape (domain,)
            The number of reports that support each value.

        Raises
        ------
        Refused
            With the code `report`, where a report has another shape or type, or is not one that this protocol sends.
        """
        array = self._to_array(reports)
        check_well_formed(self.kind, self._are_well_formed(array))
        return self._count_support(array)

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this number, for protocols whose reports are integers that can be grouped."""
        raise self._not_integers_error()

    def support_from_counts(self, counts: Counts) -> Counts:
        """Compute the supports from how often each report was received, as a GROUP BY counts them.

        Parameters
        ----------
        counts : ndarray of int64, shape (report_limit,)
            The number of times that each report was received, zero for those that were not.

        Returns
        -------
        ndarray of int64, shape (domain,)
            What `support` returns for the same reports one by one.

        Raises
        ------
        ParameterError
            For protocols without a `report_limit`: unary encodings, subset selection, local hashing.
        """
        return self._support_from_counts(counts)

    def to_array(self, reports: npt.ArrayLike) -> Reports:
        """Convert received reports to an array of this protocol's type and shape.

        Parameters
        ----------
        reports : array_like
            Received reports, for example a list of integers, or of `bytes` for reports of packed bits.

        Returns
        -------
        ndarray
            One report along the first axis for each sender. Well-formedness is not checked.

        Raises
        ------
        Refused
            With the code `report`, where the reports have another shape or type.
        """
        return self._to_array(reports)

    def is_well_formed(self, reports: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Test which of the reports are ones that this protocol sends.

        Parameters
        ----------
        reports : array_like
            Received reports, honest or not, of this protocol's shape and type.

        Returns
        -------
        ndarray of bool
            True for each report that some value gives with positive probability. A well-formed report may still be
            dishonest: `influence` bounds its effect.

        Raises
        ------
        Refused
            With the code `report`, where the reports have another shape or type.
        """
        return self._are_well_formed(self._to_array(reports))

    # Its properties.

    @property
    def p(self) -> float:
        """P[a report supports its sender's value], correctly rounded."""
        return _doubles(self)[0]

    @property
    def q(self) -> float:
        """P[a report supports another given value], correctly rounded."""
        return _doubles(self)[1]

    @property
    def gap(self) -> float:
        """p - q, correctly rounded: estimates divide by it."""
        return _doubles(self)[2]

    def support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        """Compute p and q in exact or interval arithmetic.

        Parameters
        ----------
        root : Fraction or arb
            e^(epsilon/2): a rational near it, or an interval that encloses it.

        Returns
        -------
        p, q : Fraction or arb
            The probabilities that a report supports its sender's value, and another given one: rationals for a
            rational `root`, intervals for an interval.
        """
        return self._support_probabilities(root)

    def report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        """Compute P[R | x] of one report R in exact or interval arithmetic.

        Parameters
        ----------
        own : bool
            Whether the value x is among the values that R supports.
        supported : int
            The number of values that R supports, from 0 to domain.
        root : Fraction or arb
            e^(epsilon/2): a rational near it, or an interval that encloses it.

        Returns
        -------
        Fraction or arb
            The probability, of the type of `root`. It depends on R and x by these two facts only.
        """
        return self._report_probability(own, supported, root)

    def list_reports(self) -> Reports:
        """List all reports that the protocol can send, for a small domain.

        Returns
        -------
        ndarray
            Each report once, in the form of `encode`; at most 4,096 of them.

        Raises
        ------
        ParameterError
            Where there are more.
        """
        return self._list_reports()

    def loss(self) -> PureDp:
        """Return the privacy loss of one report, for the accountant.

        Returns
        -------
        PureDp
            Pure differential privacy with this `epsilon`, between any two values of one user.
        """
        return PureDp(self.epsilon)

    def matrix(self) -> TransitionMatrix:
        """Compute P[report | value] exactly, for a small domain.

        e^(epsilon/2) is irrational, so it is taken as a rational r less than 2^-160 below it. The rows then add up to
        one exactly and the largest ratio is r^2 exactly: the claim, for the nearest distribution that can be written
        down.

        Returns
        -------
        TransitionMatrix
            A row for each value, a column for each of `list_reports`; its `epsilon` is that of the protocol.

        Raises
        ------
        ParameterError
            Where there are more than 4,096 reports.
        """
        root, reports = rational_exp_half(self.epsilon), self.list_reports()
        supports = [self.support(reports[i : i + 1]) for i in range(len(reports))]
        probability = {
            (own, size): self._report_probability(own, size, root)
            for own in (False, True)
            for size in {int(support.sum()) for support in supports}
        }
        return TransitionMatrix(
            [[probability[bool(support[x]), int(support.sum())] for support in supports] for x in range(self.domain)]
        )

    def variance(self, users: int, frequency: Number = 0.0) -> float:
        """Compute the variance of the estimate of a value's frequency.

        Parameters
        ----------
        users : int
            The number of reports, at least 1. The variance is in proportion to 1/users.
        frequency : number, default 0
            The share of users who truly have the value, from 0 to 1. 0 gives the error of a rare value.

        Returns
        -------
        float
            (f p (1 - p) + (1 - f) q (1 - q)) / (users (p - q)^2), in squared shares.
        """
        count = to_integer("users", users, least=1)
        part = float(to_rational_between("frequency", frequency, _NONE, _ALL))
        own, other, gap = _doubles(self)
        return (part * own * (1 - own) + (1 - part) * other * (1 - other)) / (count * gap * gap)

    def error(self, users: int, confidence: Number = 0.95) -> float:
        """Compute the half width of the interval of a rare value, by the normal approximation.

        Parameters
        ----------
        users : int
            The number of reports, at least 1. The error is in proportion to 1/sqrt(users).
        confidence : number, default 0.95
            The probability, between 0 and 1, with which the estimate is within the error.

        Returns
        -------
        float
            The error as a share: 0.01 is one percentage point.
        """
        from scipy.special import ndtri

        level = float(check_probability("confidence", confidence))
        return float(ndtri((1 + level) / 2)) * math.sqrt(self.variance(users))

    def influence(self, malicious: Number) -> float:
        """Bound how far malicious senders can move an estimate: malicious/(p - q).

        Parameters
        ----------
        malicious : number
            The share of senders, from 0 to 1, who send any well-formed report they like.

        Returns
        -------
        float
            The largest change of a value's estimated share, compared with honest reports of the same users.
        """
        return float(to_rational_between("malicious", malicious, _NONE, _ALL)) / self.gap

    # For the subclasses.

    def _check_values(self, values: npt.ArrayLike) -> Counts:
        """Return values as integers; of two values, also from booleans. They are private: an error names none."""
        given = as_array(values)
        if given.dtype.kind == "b" and self.domain == 2:
            given = given.astype(np.int64)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
            raise ParameterError("values", "needs a list of integers", fix="number the values from 0 on")
        found = given.astype(np.int64, copy=False)
        if len(found) and int(found.view(np.uint64).max()) >= self.domain:  # a negative one is far above
            raise ParameterError("values", f"must be from 0 to {self.domain - 1}", fix="number the values from 0 on")
        return found

    def _check_listable(self, count: int) -> int:
        """Return a number of reports, if it is small enough to list them."""
        if count > _MOST_OUTPUTS:
            raise ParameterError("domain", f"has more than {_MOST_OUTPUTS:,} reports to list", fix="domain=8")
        return count

    def _not_integers_error(self) -> ParameterError:
        what = f"reports of {self.kind} are not integers that can be counted by GROUP BY"
        return ParameterError("protocol", what, fix="add the reports themselves: summary.add(reports)")


def as_array(given: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return what was given as an array; rows of different lengths become an array of text, which no check accepts."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.array(["ragged"])


def check_well_formed(kind: str, good: npt.NDArray[np.bool_]) -> None:
    """Refuse reports of which some are not well-formed."""
    if not good.all():
        raise Refused(
            ErrorCode.REPORT,
            f"{int(np.count_nonzero(~good))} of {len(good)} reports are not ones that {kind} sends",
            fix="leave them out: reports[protocol.is_well_formed(reports)]",
        )


def check_integer_reports(kind: str, reports: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return reports that are one integer each, for a protocol of this kind; refuse anything else."""
    given = as_array(reports)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
        raise Refused(ErrorCode.REPORT, f"a report of {kind} is an integer", fix="send what encode returned")
    if given.dtype == np.uint64 and len(given) and int(given.max()) >= 2**63:
        raise Refused(ErrorCode.REPORT, f"a report of {kind} is below 2^63", fix="send what encode returned")
    return given.astype(np.int64, copy=False)


def check_epsilon(epsilon: Number) -> Fraction:
    """Return the epsilon of one report, from 0.000001 to 100, written with a limited number of digits."""
    return check_fraction_size("epsilon", to_rational_between("epsilon", epsilon, _LEAST_EPSILON, _MOST_EPSILON))


def check_fraction_size(name: str, number: Fraction) -> Fraction:
    """Return a number whose numerator and denominator have at most 1,024 bits: it is written into summaries."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise ParameterError(name, f"its fraction has more than {_MOST_BITS} bits", fix=f"round {name}")
    return number


def rational_exp_half(epsilon: Fraction) -> Fraction:
    """Return e^(epsilon/2), rounded down to a multiple of 2^-160."""
    return Fraction(certified_floor(lambda: to_interval(epsilon / 2).exp() * _NEAR), _NEAR)


@lru_cache(maxsize=256)
def _doubles(protocol: FrequencyOracle) -> tuple[float, float, float]:
    with working_precision(256):
        p, q = protocol.support_probabilities(to_interval(protocol.epsilon / 2).exp())
        return float(p), float(q), float(p - q)
