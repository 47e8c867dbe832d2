"""k-ary randomized response: the true value, or another one.

>>> coin = KAryRandomizedResponse(domain=2, epsilon=1)
>>> round(coin.p, 6), round(coin.matrix().epsilon, 12)
(0.731059, 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports, check_integer_reports
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.sampling import uint16
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact

_BLOCK = 2**17  # users at a time, so that a block stays in the processor's cache


@dataclass(frozen=True, init=False)
class KAryRandomizedResponse(FrequencyOracle):
    """k-ary randomized response: the true value, or any other one, each equally likely.

    **Theorem.** With p = e^epsilon/(e^epsilon + d - 1) for the true value and q = 1/(e^epsilon + d - 1) for each other
    one, a report is epsilon-LDP, exactly. n times the variance at f = 0 is (e^epsilon + d - 2)/(e^epsilon - 1)^2: the
    least of all protocols for d < 3 e^epsilon + 2, and large for large domains. Proof: the distribution is p on the
    diagonal and q elsewhere, and p/q = e^epsilon. With E = e^epsilon, q (1 - q)/(p - q)^2 is (E + d - 2)/(E - 1)^2.

    **Sampling.** The true value with probability t = (e^epsilon - 1)/(e^epsilon + d - 1), else one of all d values,
    each equally likely. That is the same distribution: another one has (1 - t)/d = 1/(e^epsilon + d - 1) = q, and
    the value the rest. For large domains t is small, and a few random bits decide for most users.

    Parameters
    ----------
    domain : int
        The number d of values, from 2 to 2^24. The error grows with its square root.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse
    >>> from tacit.sampling.bits import ReplayBits
    >>> coin = KAryRandomizedResponse(domain=2, epsilon=1)
    >>> round(coin.p, 6), round(coin.q, 6)
    (0.731059, 0.268941)
    >>> coin.encode([True, True, True, False], ReplayBits(b"example"))
    array([1, 0, 0, 0])
    """

    kind: ClassVar[str] = "k-ary"

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        weight = root * root + (self.domain - 1)
        return root * root / weight, 1 / weight

    @property
    def report_bits(self) -> int:
        """The bits of a value: log2(domain), rounded up."""
        return (self.domain - 1).bit_length()

    @property
    def max_support(self) -> int:
        """One: the value that is reported."""
        return 1

    def _list_reports(self) -> Reports:
        return np.arange(self._check_listable(self.domain))

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        return self._support_probabilities(root)[0 if own else 1]

    def _support_from_counts(self, counts: Counts) -> Counts:
        return counts.astype(np.int64)

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this: the values."""
        return self.domain

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
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
        """Return P[the true value is taken, and none is drawn]."""
        odds: arb = to_interval(self.epsilon).exp()
        return (odds - 1) / (odds + (self.domain - 1))

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return check_integer_reports(self.kind, reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray(reports.view(np.uint64) < np.uint64(self.domain))  # a negative one is far above

    def _count_support(self, reports: Reports) -> Counts:
        return np.bincount(reports, minlength=self.domain)
