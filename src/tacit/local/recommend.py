"""Which protocol to use, and what each would give.

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
from typing import Any

from tacit.arithmetic import to_integer, to_rational
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
    """A protocol, the standard deviation of the estimate of a rare value, and the bits of a report."""

    protocol: FrequencyOracle
    deviation: float
    report_bits: int


@dataclass(frozen=True)
class Recommendation:
    """All that could be used, the most accurate first, and the one to use."""

    candidates: tuple[Candidate, ...]
    users: int

    @property
    def protocol(self) -> FrequencyOracle:
        """Of those within 5 % of the least deviation, the one with the shortest reports."""
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


def recommend_protocol(domain: int, epsilon: Any, users: int) -> Recommendation:
    """The protocols over so many values at this price, by the error they give from so many people."""
    price, count = to_rational("epsilon", epsilon), to_integer("users", users, least=1)
    found = [made for kind in _KINDS if (made := _try_create(kind, domain, price)) is not None]
    if not found:
        KAryRandomizedResponse(domain, price)  # says what is wrong
    rated = [Candidate(each, math.sqrt(each.variance(count)), each.report_bits) for each in found]
    return Recommendation(tuple(sorted(rated, key=lambda each: (each.deviation, each.report_bits))), count)


def _try_create(kind: type[FrequencyOracle], domain: int, epsilon: Fraction) -> FrequencyOracle | None:
    """The protocol, or None where it is not made for such a domain."""
    try:
        return kind(domain, epsilon)
    except ParameterError:
        return None
