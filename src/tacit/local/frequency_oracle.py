"""What all frequency protocols share: people report, each report supports some values, and supports are counted.

>>> from tacit.local import KAryRandomizedResponse
>>> from tacit.sampling.bits import ReplayBits
>>> protocol = KAryRandomizedResponse(domain=4, epsilon=1)
>>> reports = protocol.encode([0, 0, 0, 3], ReplayBits(b"example"))  # on four phones
>>> protocol.support(reports).sum()  # at the collector
np.int64(4)

**Theorem.** Let a report support its sender's value with probability p and any other given value with probability q,
whatever the value. If C of n reports support v, then (C/n - q)/(p - q) is an unbiased estimate of the share f of people
whose value is v, and its variance is (f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)^2). Proof: C is a sum of n
independent coins, f n of them with probability p and the others with q.

**Theorem** (poisoning). A report moves the estimate of a value between -q/(p - q) and (1 - q)/(p - q), divided by n,
whatever its sender does. So if a share m of all senders lie as they please, an estimate moves by at most m/(p - q) from
what the same people's honest reports would have given. The collector cannot know the liars: see `influence`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.arithmetic import certified_floor, to_integer, to_interval, to_rational_between, working_precision
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits

MAX_DOMAIN = 2**24  # values of a domain
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**6), Fraction(100)
_MOST_BITS = 1024  # of a numerator or a denominator, so that what is kept has a header of limited length
_MOST_OUTPUTS = 2**12
_NEAR = 2**160
_NONE, _ALL = Fraction(0), Fraction(1)

Reports = npt.NDArray[Any]  # the first axis numbers the senders
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A protocol over the values 0 to domain - 1, at a price of epsilon to each person who sends one report.

    It is epsilon-LDP: P[R | x] <= e^epsilon P[R | y] for any two values x and y and any report R.
    """

    domain: int
    epsilon: Fraction
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        domain = to_integer("domain", self.domain, least=2)
        if domain > MAX_DOMAIN:
            raise ParameterError("domain", f"has more than {MAX_DOMAIN:,} values", fix="hash the values into fewer")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    # What each protocol says of itself.

    @abstractmethod
    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q, where `root` is e^(epsilon/2): rationals of a rational, intervals of an interval."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How many bits one report takes."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """The most values that one report can support, however its sender made it."""

    @abstractmethod
    def outputs(self) -> Reports:
        """All reports there are, for a small domain."""

    @abstractmethod
    def probability(self, own: bool, supported: int, root: Any) -> Any:
        """P[R | x] of one report R that supports so many values, x among them or not."""

    @abstractmethod
    def _encoded(self, values: Counts, bits: Bits) -> Reports:
        """The reports of checked values. They may be the caller's own, and are only read."""

    @abstractmethod
    def _shaped(self, reports: Any) -> Reports:
        """The reports as an array of this protocol's shape and type, or a refusal."""

    @abstractmethod
    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]: ...

    @abstractmethod
    def _supported(self, reports: Reports) -> Counts: ...

    # The client.

    def encode(self, values: Any, bits: Bits) -> Reports:
        """The reports of many people, a value each. Exactly the claimed distribution."""
        return self._encoded(self._known(values), bits)

    def encode_one(self, value: int, bits: Bits) -> Any:
        """One person's report. Of two values, True is 1 and False is 0."""
        return self.encode([value], bits)[0]

    # The collector.

    def support(self, reports: Any) -> Counts:
        """How many of the reports support each value: all that a collector keeps. A bad report is refused."""
        shaped = self._shaped(reports)
        check_well_formed(self.kind, self._are_well_formed(shaped))
        return self._supported(shaped)

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this, where they are integers and few enough to count each."""
        raise ParameterError("protocol", f"{self.kind} reports are no numbers to group by", fix="add the reports")

    def support_of_counts(self, counts: Counts) -> Counts:
        """The supports, from how often each report came, where there is a `report_limit`."""
        raise ParameterError("protocol", f"{self.kind} reports are no numbers to group by", fix="add the reports")

    def shaped(self, reports: Any) -> Reports:
        """The reports as an array, one after the other; refused if they have another shape or type."""
        return self._shaped(reports)

    def well_formed(self, reports: Any) -> npt.NDArray[np.bool_]:
        """Which of the reports are ones that this protocol sends; refused if they have another shape or type."""
        return self._are_well_formed(self._shaped(reports))

    # What holds of it.

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
        """p - q, correctly rounded: by how much a person's own value stands out."""
        return _doubles(self)[2]

    def loss(self) -> PureDp:
        """What one report costs its sender."""
        return PureDp(self.epsilon)

    def matrix(self) -> TransitionMatrix:
        """P[report | value], a row for each value, over all reports of a small domain.

        e^(epsilon/2) is irrational, so it is taken as a rational r less than 2^-160 below it. The rows then add up to
        one exactly and the largest ratio is r^2 exactly: the claim, for the nearest distribution that can be written
        down.
        """
        root, reports = rational_exp_half(self.epsilon), self.outputs()
        held = [self.support(reports[i : i + 1]) for i in range(len(reports))]
        chance = {
            (own, size): self.probability(own, size, root)
            for own in (False, True)
            for size in {int(h.sum()) for h in held}
        }
        return TransitionMatrix([[chance[bool(h[x]), int(h.sum())] for h in held] for x in range(self.domain)])

    def variance(self, users: int, frequency: float = 0.0) -> float:
        """The variance of the estimate of a value that this share of so many people have."""
        count, part = (
            to_integer("users", users, least=1),
            float(to_rational_between("frequency", frequency, _NONE, _ALL)),
        )
        own, other, gap = _doubles(self)
        return (part * own * (1 - own) + (1 - part) * other * (1 - other)) / (count * gap * gap)

    def error(self, users: int, confidence: Any = 0.95) -> float:
        """How far the estimate of a rare value is off at most, with about this confidence (normal approximation)."""
        from scipy.special import ndtri

        return float(ndtri((1 + float(check_probability("confidence", confidence))) / 2)) * math.sqrt(
            self.variance(users)
        )

    def influence(self, lying: float) -> float:
        """The most by which a share of `lying` senders can move an estimate: lying/(p - q), as the theorem says."""
        return float(to_rational_between("lying", lying, _NONE, _ALL)) / self.gap

    # For the protocols.

    def _known(self, values: Any) -> Counts:
        """Values as numbers, checked; of two values, also as booleans. They are private: an error names none."""
        given = as_array(values)
        if given.dtype.kind == "b" and self.domain == 2:
            given = given.astype(np.int64)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
            raise ParameterError("values", "needs a list of integers", fix="number the values from 0 on")
        found = given.astype(np.int64, copy=False)
        if len(found) and int(found.view(np.uint64).max()) >= self.domain:  # a negative one is far above
            raise ParameterError("values", f"must be from 0 to {self.domain - 1}", fix="number the values from 0 on")
        return found

    def _numbers(self, reports: Any) -> Reports:
        """Reports that are one integer each."""
        return check_integer_reports(self.kind, reports)

    def _few(self, count: int) -> int:
        """So many reports, if they can all be looked at."""
        if count > _MOST_OUTPUTS:
            raise ParameterError("domain", "there are too many reports to list", fix="choose a smaller domain")
        return count


def as_array(given: Any) -> npt.NDArray[Any]:
    """What was given as an array; an array of no numbers where rows have different lengths."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.array(["ragged"])


def check_well_formed(kind: str, good: npt.NDArray[np.bool_]) -> None:
    """Refuses reports of which some are not good."""
    if not good.all():
        raise Refused(
            ErrorCode.REPORT,
            f"{int(np.count_nonzero(~good))} of {len(good)} reports are none that {kind} sends",
            fix="leave them out: reports[protocol.well_formed(reports)]",
        )


def check_integer_reports(kind: str, reports: Any) -> npt.NDArray[np.int64]:
    """Reports that are one integer each, for a protocol of this kind; anything else is refused."""
    given = as_array(reports)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
        raise Refused(ErrorCode.REPORT, f"a report of {kind} is an integer", fix="send what encode made")
    if given.dtype == np.uint64 and len(given) and int(given.max()) >= 2**63:
        raise Refused(ErrorCode.REPORT, f"a report of {kind} is below 2^63", fix="send what encode made")
    return given.astype(np.int64, copy=False)


def check_epsilon(epsilon: Any) -> Fraction:
    """The epsilon of one report, from 0.000001 to 100, written with a limited number of digits."""
    return check_fraction_size("epsilon", to_rational_between("epsilon", epsilon, _LEAST_EPSILON, _MOST_EPSILON))


def check_fraction_size(name: str, number: Fraction) -> Fraction:
    """The number, if its numerator and denominator have at most 1,024 bits: it is written where reports are kept."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise ParameterError(name, f"its fraction has more than {_MOST_BITS} bits", fix=f"round {name}")
    return number


def rational_exp_half(epsilon: Fraction) -> Fraction:
    """e^(epsilon/2), rounded down to a multiple of 2^-160."""
    return Fraction(certified_floor(lambda: to_interval(epsilon / 2).exp() * _NEAR), _NEAR)


@lru_cache(maxsize=256)
def _doubles(protocol: FrequencyOracle) -> tuple[float, float, float]:
    with working_precision(256):
        p, q = protocol.chances(to_interval(protocol.epsilon / 2).exp())
        return float(p), float(q), float(p - q)
