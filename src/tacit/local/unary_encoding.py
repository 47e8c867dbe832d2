"""Unary encoding: a bit for each value, one of them set, and every bit randomized.

>>> symmetric, optimized = SymmetricUnaryEncoding(1024, 1), OptimizedUnaryEncoding(1024, 1)
>>> round(symmetric.p, 6), round(symmetric.q, 6), optimized.p, round(optimized.q, 6)
(0.622459, 0.377541, 0.5, 0.268941)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.local import packed_bits
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports
from tacit.sampling import uint16
from tacit.sampling.bits import Bits
from tacit.sampling.packed import Coins

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact


@dataclass(frozen=True, init=False)
class UnaryEncoding(FrequencyOracle):
    """The base class of unary encodings: d independent bits, that of the value 1 with probability p, the others with q.

    **Theorem.** It is epsilon-LDP, exactly, where p (1 - q) / (q (1 - p)) = e^epsilon. Proof: under two values x and y
    the distributions differ in the bits x and y only, and the ratio is largest where x is set and y is not: p (1 -
    q)/(q (1 - p)).
    """

    @property
    def report_bits(self) -> int:
        """A bit for each value."""
        return self.domain

    @property
    def max_support(self) -> int:
        """All values: a report of ones."""
        return self.domain

    def _list_reports(self) -> Reports:
        self._check_listable(1 << min(self.domain, 64))
        return packed_bits.enumerate_rows(self.domain)

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        p, q = self._support_probabilities(root)
        others = supported - own
        return (p if own else 1 - p) * q**others * (1 - q) ** (self.domain - 1 - others)

    def _probability_of_one(self, which: int) -> arb:
        found: arb = self._support_probabilities(to_interval(self.epsilon / 2).exp())[which]
        return found

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        reports = np.empty((len(values), packed_bits.bytes_per_report(self.domain)), dtype=np.uint8)
        own, put = (
            uint16.Bernoulli16(lambda: self._probability_of_one(0)).tosses(len(values), bits),
            packed_bits.choose_bit_setter(reports),
        )
        for part in packed_bits.fill_with_coins(reports, self.domain, _others(self), bits):
            put(reports[part], values[part], own[part])
        return reports

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return packed_bits.as_packed_rows(reports, self.domain)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return packed_bits.has_zero_padding(reports, self.domain)

    def _count_support(self, reports: Reports) -> Counts:
        return packed_bits.column_sums(reports, self.domain)


@dataclass(frozen=True, init=False)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Symmetric unary encoding: a bit for each value, every one flipped with the same probability.

    It has p = e^(epsilon/2)/(e^(epsilon/2) + 1) and q = 1 - p, as basic RAPPOR.

    **Theorem.** It is epsilon-LDP, exactly: p (1 - q)/(q (1 - p)) = (p/q)^2 = e^epsilon, and n times the variance is
    e^(epsilon/2)/(e^(epsilon/2) - 1)^2, whatever the frequency.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. The error does not depend on it, but a report has a bit for each value.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import SymmetricUnaryEncoding
    >>> symmetric = SymmetricUnaryEncoding(domain=1024, epsilon=1)
    >>> round(symmetric.p, 6), round(symmetric.q, 6), symmetric.report_bits
    (0.622459, 0.377541, 1024)
    """

    kind: ClassVar[str] = "symmetric-unary"

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        return root / (root + 1), 1 / (root + 1)


@dataclass(frozen=True, init=False)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Optimized unary encoding: a bit for each value, zeros flipped less often than ones.

    It has p = 1/2 and q = 1/(e^epsilon + 1), the best for rare values (Wang, Blocki, Li, Jha 2017).

    **Theorem.** It is epsilon-LDP, exactly: p (1 - q)/(q (1 - p)) = (1 - q)/q = e^epsilon, and n times the variance at
    f = 0 is 4 e^epsilon/(e^epsilon - 1)^2, the least of all unary encodings. Proof of the least: with E = e^epsilon and
    o the odds of q, those of p are E o, so q (1 - q)/(p - q)^2 = (1 + E o)^2/(o (E - 1)^2), which is least at o = 1/E,
    where p = 1/2.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. The error does not depend on it, but a report has a bit for each value.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import OptimizedUnaryEncoding
    >>> from tacit.sampling.bits import ReplayBits
    >>> optimized = OptimizedUnaryEncoding(domain=1024, epsilon=1)
    >>> optimized.p, round(optimized.q, 6)
    (0.5, 0.268941)
    >>> optimized.encode([17, 512], ReplayBits(b"example")).shape  # 1,024 bits in 128 bytes
    (2, 128)
    """

    kind: ClassVar[str] = "optimized-unary"

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        odds = root * root
        return (odds * 0 + 1) / 2, 1 / (odds + 1)


@lru_cache(maxsize=64)
def _others(protocol: UnaryEncoding) -> Coins:
    """Return the sampler of all bits but the value's own."""
    return Coins(lambda: protocol._probability_of_one(1))
