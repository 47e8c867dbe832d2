"""Hadamard response: a short integer, one row of a Hadamard matrix that agrees with the value's column.

>>> short = HadamardResponse(domain=1024, epsilon=1)
>>> short.report_bits, round(short.p, 6), short.q
(11, 0.731059, 0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports, check_integer_reports
from tacit.local.walsh_hadamard import walsh_hadamard
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact


@dataclass(frozen=True, init=False)
class HadamardResponse(FrequencyOracle):
    """Hadamard response: a row of a Hadamard matrix whose entry in the value's column is likely to be +1.

    A report is an integer y below K, the least power of two above d. It supports x where y and x + 1 have an even
    number of ones in common. With probability e^epsilon/(e^epsilon + 1) y is uniform among those that support the true
    value, otherwise among those that do not (Acharya, Sun, Zhang 2019, with one block).

    **Theorem.** It is epsilon-LDP, exactly; p = e^epsilon/(e^epsilon + 1) and q = 1/2, so n times the variance at f = 0
    is ((e^epsilon + 1)/(e^epsilon - 1))^2. It is close to the least for epsilon up to about 1, and stays above 1
    however large epsilon is.

    **Proof.** Half of all y support x, since x + 1 is not 0: flipping a bit that x + 1 has changes the answer. So each
    y has 2 p/K or 2 (1 - p)/K. For z different from x, y -> (answer for x, answer for z) is linear and onto, so half of
    those that support x support z, and half of the others do: q = 1/2. All supports together are (n + W)/2, where W is
    the Walsh-Hadamard transform of the histogram of the reports.

    Parameters
    ----------
    domain : int
        The number d of values, from 2 to 2^24. The error does not depend on it, the report has log2(K) bits.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import HadamardResponse
    >>> short = HadamardResponse(domain=1024, epsilon=1)
    >>> short.report_bits, round(short.p, 6), short.q
    (11, 0.731059, 0.5)
    >>> round(short.variance(users=1), 3)
    4.683
    """

    kind: ClassVar[str] = "hadamard"

    @property
    def _bits(self) -> int:
        return self.domain.bit_length()

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this: K, a power of two."""
        return 1 << self._bits

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        odds = root * root
        return odds / (odds + 1), (odds * 0 + 1) / 2

    @property
    def report_bits(self) -> int:
        """The bits of an integer below K."""
        return self._bits

    @property
    def max_support(self) -> int:
        """All values: the report 0 supports every one."""
        return self.domain

    def _list_reports(self) -> Reports:
        return np.arange(self._check_listable(self.report_limit))

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        odds = root * root
        return (odds if own else 1) / (odds + 1) / (self.report_limit // 2)

    def _support_from_counts(self, counts: Counts) -> Counts:
        return (int(counts.sum()) + walsh_hadamard(counts)[1 : self.domain + 1]) // 2

    def _flip_probability(self) -> arb:
        return 1 / (to_interval(self.epsilon).exp() + 1)

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        flipped = bernoulli.draw_array_certified(self._flip_probability, len(values), bits)
        rows = values + 1
        found = draw_array_below(self.report_limit, len(values), bits)
        odd = (np.bitwise_count(found & rows) & 1).astype(np.bool_)
        return np.where(odd != flipped, found ^ (rows & -rows), found)  # the lowest one of x + 1

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return check_integer_reports(self.kind, reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < self.report_limit))

    def _count_support(self, reports: Reports) -> Counts:
        return self._support_from_counts(np.bincount(reports, minlength=self.report_limit))
