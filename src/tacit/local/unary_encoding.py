"""Unary encoding: a bit for each value, one of them set, and every bit randomized.

>>> symmetric, optimized = SymmetricUnaryEncoding(1024, 1), OptimizedUnaryEncoding(1024, 1)
>>> round(symmetric.p, 6), round(symmetric.q, 6), optimized.p, round(optimized.q, 6)
(0.622459, 0.377541, 0.5, 0.268941)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

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


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """Reports d bits: that of the value is 1 with probability p, every other with probability q, on their own.

    **Theorem.** It is epsilon-LDP, exactly, where p (1 - q) / (q (1 - p)) = e^epsilon. Proof: under two values x and y
    the distributions differ in the bits x and y only, and the ratio is largest where x is set and y is not: p (1 -
    q)/(q (1 - p)).
    """

    @property
    def report_bits(self) -> int:
        """A bit for each value."""
        return self.domain

    @property
    def reach(self) -> int:
        """All of them: a report of ones."""
        return self.domain

    def outputs(self) -> Reports:
        """All rows of d bits."""
        self._few(1 << min(self.domain, 64))
        return packed_bits.enumerate_rows(self.domain)

    def probability(self, own: bool, supported: int, root: Any) -> Any:
        """A product over the bits."""
        p, q = self.chances(root)
        others = supported - own
        return (p if own else 1 - p) * q**others * (1 - q) ** (self.domain - 1 - others)

    def _chance(self, which: int) -> arb:
        found: arb = self.chances(to_interval(self.epsilon / 2).exp())[which]
        return found

    def _encoded(self, values: Counts, bits: Bits) -> Reports:
        reports = np.empty((len(values), packed_bits.bytes_per_report(self.domain)), dtype=np.uint8)
        own, put = (
            uint16.Bernoulli16(lambda: self._chance(0)).tosses(len(values), bits),
            packed_bits.choose_bit_setter(reports),
        )
        for part in packed_bits.fill_with_coins(reports, self.domain, _others(self), bits):
            put(reports[part], values[part], own[part])
        return reports

    def _shaped(self, reports: Any) -> Reports:
        return packed_bits.as_packed_rows(reports, self.domain)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return packed_bits.has_zero_padding(reports, self.domain)

    def _supported(self, reports: Reports) -> Counts:
        return packed_bits.column_sums(reports, self.domain)


@dataclass(frozen=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Unary encoding with p = e^(epsilon/2)/(e^(epsilon/2) + 1) and q = 1 - p, as basic RAPPOR has it.

    **Theorem.** p (1 - q)/(q (1 - p)) = (p/q)^2 = e^epsilon, and n times the variance is
    e^(epsilon/2)/(e^(epsilon/2) - 1)^2, whatever the frequency.
    """

    kind: ClassVar[str] = "symmetric-unary"

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q."""
        return root / (root + 1), 1 / (root + 1)


@dataclass(frozen=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Unary encoding with p = 1/2 and q = 1/(e^epsilon + 1), the best for rare values (Wang, Blocki, Li, Jha 2017).

    **Theorem.** p (1 - q)/(q (1 - p)) = (1 - q)/q = e^epsilon, and n times the variance at f = 0 is 4
    e^epsilon/(e^epsilon - 1)^2, the least of all unary encodings. Proof of the least: with E = e^epsilon and o the odds
    of q, those of p are E o, so q (1 - q)/(p - q)^2 = (1 + E o)^2/(o (E - 1)^2), which is least at o = 1/E, where p =
    1/2.
    """

    kind: ClassVar[str] = "optimized-unary"

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q."""
        odds = root * root
        return (odds * 0 + 1) / 2, 1 / (odds + 1)


@lru_cache(maxsize=64)
def _others(protocol: UnaryEncoding) -> Coins:
    """The coins of all bits but the own one."""
    return Coins(lambda: protocol._chance(1))
