"""Ranks frequency oracles by their error and by the size of a report.

>>> print(recommend_protocol(domain=1024, epsilon=1, users=1_000_000))
projective: a rare share is off by 0.0019 (one standard deviation); bits a report: 11
  subset             0.00192      1,024
  optimized-unary    0.00192      1,024
  hashing            0.00192         13
  projective         0.00194         11
  symmetric-unary    0.00198      1,024
  hadamard           0.00216         11
  k-ary               0.0186         10
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import FrequencyOracle
from tacit.local.hadamard_response import HadamardResponse
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.local_hashing import OptimizedLocalHashing
from tacit.local.projective_geometry import ProjectiveGeometryResponse
from tacit.local.subset import SubsetSelection
from tacit.local.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

_KINDS: tuple[type[FrequencyOracle], ...] = (
    KAryRandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimizedLocalHashing,
    HadamardResponse,
    SubsetSelection,
    ProjectiveGeometryResponse,
)
_TOLERANCE = 1.05  # deviations within this factor count as equal


@dataclass(frozen=True)
class Candidate:
    """A protocol with its error and the size of its reports.

    Attributes
    ----------
    protocol : FrequencyOracle
        The protocol over the given domain, at the given epsilon.
    deviation : float
        The standard deviation of the estimated share of a rare value.
    report_bits : int
        The size of one report in bits.
    """

    protocol: FrequencyOracle
    deviation: float
    report_bits: int


@dataclass(frozen=True)
class Recommendation:
    """All protocols that suit a domain, ranked, and the recommended one.

    Attributes
    ----------
    candidates : tuple of Candidate
        The protocols that accept the domain, that of the least error first. Iteration yields them.
    users : int
        The number of users that the errors are for.
    """

    candidates: tuple[Candidate, ...]
    users: int

    @property
    def protocol(self) -> FrequencyOracle:
        """The recommended one: of those within 5 % of the least deviation, that of the shortest reports."""
        most = self.candidates[0].deviation * _TOLERANCE
        close = [candidate for candidate in self.candidates if candidate.deviation <= most]
        return min(close, key=lambda candidate: candidate.report_bits).protocol

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __str__(self) -> str:
        chosen = next(candidate for candidate in self if candidate.protocol == self.protocol)
        first = (
            f"{chosen.protocol.kind}: a rare share is off by {chosen.deviation:.2g} (one standard deviation); "
            f"bits a report: {chosen.report_bits:,}"
        )
        rows = [f"  {each.protocol.kind:<16} {each.deviation:>9.3g} {each.report_bits:>10,}" for each in self]
        return "\n".join([first, *rows])


def recommend_protocol(domain: int, epsilon: Number, users: int) -> Recommendation:
    """Recommend a frequency oracle: of those whose error is within 5 % of the least, that of the shortest reports.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. Protocols that do not accept so many are left out.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100.
    users : int
        The number of users who will report, at least 1. It scales all errors alike, and does not change the ranking.

    Returns
    -------
    Recommendation
        Its `protocol` is the one to use. Printed, it lists the standard deviation of the estimate of a rare value, and
        the bits of a report, for each protocol.

    Raises
    ------
    ParameterError
        Where a parameter is outside its range.

    Examples
    --------
    >>> from tacit.local import recommend_protocol
    >>> found = recommend_protocol(domain=1024, epsilon=1, users=1_000_000)
    >>> found.protocol
    ProjectiveGeometryResponse(domain=1024, epsilon=Fraction(1, 1))
    >>> [candidate.protocol.kind for candidate in found][:3]
    ['subset', 'optimized-unary', 'hashing']
    """
    exact, count = to_rational("epsilon", epsilon), to_integer("users", users, least=1)
    found = [made for kind in _KINDS if (made := _try_create(kind, domain, exact)) is not None]
    if not found:
        KAryRandomizedResponse(domain, exact)  # raises the error that names the wrong parameter
    rated = [Candidate(each, math.sqrt(each.variance(count)), each.report_bits) for each in found]
    return Recommendation(tuple(sorted(rated, key=lambda each: (each.deviation, each.report_bits))), count)


def _try_create(kind: type[FrequencyOracle], domain: int, epsilon: Fraction) -> FrequencyOracle | None:
    """Return the protocol, or None where it does not accept the domain."""
    try:
        return kind(domain, epsilon)
    except ParameterError:
        return None
