"""k-ary randomized response: the value itself, or another one.

>>> coin = KAryRandomizedResponse(domain=2, epsilon=1)
>>> round(coin.p, 6), round(coin.matrix().epsilon, 12)
(0.731059, 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.sampling import uint16
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    from flint import arb

_BLOCK = 2**17  # people at a time, so that a block stays near the processor


@dataclass(frozen=True)
class KAryRandomizedResponse(FrequencyOracle):
    """Reports the value with probability p = e^epsilon/(e^epsilon + d - 1), else any other one, each equally likely.

    **Theorem.** It is epsilon-LDP, exactly; p is as above, q = 1/(e^epsilon + d - 1), and n times the variance at f = 0
    is (e^epsilon + d - 2)/(e^epsilon - 1)^2: the best for d < 3 e^epsilon + 2, and poor for long lists. Proof: the
    distribution is p on the diagonal and q elsewhere, and p/q = e^epsilon. With E = e^epsilon, q (1 - q)/(p - q)^2 is
    (E + d - 2)/(E
    - 1)^2.

    **How a report is drawn.** The value with probability t = (e^epsilon - 1)/(e^epsilon + d - 1), else any value at
    all, each equally likely. That is the same distribution: another one has (1 - t)/d = 1/(e^epsilon + d - 1) = q, and
    the value the rest. For long lists t is small, and a few bits tell most people that theirs is not drawn.
    """

    kind: ClassVar[str] = "k-ary"

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q."""
        weight = root * root + (self.domain - 1)
        return root * root / weight, 1 / weight

    @property
    def report_bits(self) -> int:
        """The bits of a value."""
        return (self.domain - 1).bit_length()

    @property
    def reach(self) -> int:
        """One: the value that is reported."""
        return 1

    def outputs(self) -> Reports:
        """All values."""
        return np.arange(self._few(self.domain))

    def probability(self, own: bool, supported: int, root: Any) -> Any:
        """p for the own value, q for another."""
        return self.chances(root)[0 if own else 1]

    def support_of_counts(self, counts: Counts) -> Counts:
        """The supports, from how often each report came: a group-by is enough of a collector."""
        return counts.astype(np.int64)

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""
        return self.domain

    def _encoded(self, values: Counts, bits: Bits) -> Reports:
        if self.domain > 2**uint16.WIDTH:
            return RandomizedResponse(self.epsilon, self.domain).release(values, bits)
        spare = uint16.unused_bits(self.domain)
        truth = uint16.ContinuedBernoulli(self._truth, spare)
        reports = np.empty(len(values), dtype=np.int64)
        for start in range(0, len(values), _BLOCK):
            part = reports[start : start + _BLOCK]
            drawn = uint16.draw_with_unused_bits(self.domain, len(part), bits)
            true = truth.heads(drawn & np.uint16((1 << spare) - 1), bits)
            part[:] = drawn >> np.uint16(spare)
            part[true] = values[start : start + _BLOCK][true]
        return reports

    def _truth(self) -> arb:
        """P[the value itself, and not any at all]."""
        odds: arb = to_interval(self.epsilon).exp()
        return (odds - 1) / (odds + (self.domain - 1))

    def _shaped(self, reports: Any) -> Reports:
        return self._numbers(reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray(reports.view(np.uint64) < np.uint64(self.domain))  # a negative one is far above

    def _supported(self, reports: Reports) -> Counts:
        return np.bincount(reports, minlength=self.domain)
