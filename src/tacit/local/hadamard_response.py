"""Hadamard response: one short number that agrees with a value in one bit.

>>> short = HadamardResponse(domain=1024, epsilon=1)
>>> short.report_bits, round(short.p, 6), short.q
(11, 0.731059, 0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports
from tacit.local.walsh_hadamard import walsh_hadamard
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class HadamardResponse(FrequencyOracle):
    """Reports a number y below K, the least power of two above d, which supports x where y and x + 1 have an even
    number of ones in common: a y that supports the value with probability e^epsilon/(e^epsilon + 1), one that does not
    otherwise, and uniform among such (Acharya, Sun, Zhang 2019, with one block).

    **Theorem.** It is epsilon-LDP, exactly; p = e^epsilon/(e^epsilon + 1) and q = 1/2, so n times the variance at f = 0
    is ((e^epsilon + 1)/(e^epsilon - 1))^2. It is close to the best for epsilon up to about 1, and stays above 1 however
    large epsilon is.

    **Proof.** Half of all y support x, since x + 1 is not 0: flipping a bit that x + 1 has changes the answer. So each
    y has 2 p/K or 2 (1 - p)/K. For z different from x, y -> (answer for x, answer for z) is linear and onto, so half of
    those that support x support z, and half of the others do: q = 1/2. All supports together are (n + W)/2, where W is
    the Walsh-Hadamard transform of how often each y came.
    """

    kind: ClassVar[str] = "hadamard"

    @property
    def _bits(self) -> int:
        return self.domain.bit_length()

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""
        return 1 << self._bits

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q."""
        odds = root * root
        return odds / (odds + 1), (odds * 0 + 1) / 2

    @property
    def report_bits(self) -> int:
        """The bits of a number below K."""
        return self._bits

    @property
    def reach(self) -> int:
        """All of them: 0 supports every value."""
        return self.domain

    def outputs(self) -> Reports:
        """All numbers below K."""
        return np.arange(self._few(self.report_limit))

    def probability(self, own: bool, supported: int, root: Any) -> Any:
        """2p/K or 2(1 - p)/K."""
        odds = root * root
        return (odds if own else 1) / (odds + 1) / (self.report_limit // 2)

    def support_of_counts(self, counts: Counts) -> Counts:
        """The supports, from how often each report came: a group-by is enough of a collector."""
        return (int(counts.sum()) + walsh_hadamard(counts)[1 : self.domain + 1]) // 2

    def _lie(self) -> arb:
        return 1 / (to_interval(self.epsilon).exp() + 1)

    def _encoded(self, values: Counts, bits: Bits) -> Reports:
        lies = bernoulli.draw_array_certified(self._lie, len(values), bits)
        rows = values + 1
        found = draw_array_below(self.report_limit, len(values), bits)
        odd = (np.bitwise_count(found & rows) & 1).astype(np.bool_)
        return np.where(odd != lies, found ^ (rows & -rows), found)  # the lowest one of x + 1

    def _shaped(self, reports: Any) -> Reports:
        return self._numbers(reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < self.report_limit))

    def _supported(self, reports: Reports) -> Counts:
        return self.support_of_counts(np.bincount(reports, minlength=self.report_limit))
