"""Optimized local hashing: a random hash of the value, in a few cells, and the cell reported by randomized response.

>>> hashed = OptimizedLocalHashing(domain=1024, epsilon=1)
>>> hashed.cells, hashed.report_bits, hashed.q
(4, 13, 0.25)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_interval, working_precision
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports, check_integer_reports
from tacit.local.walsh_hadamard import walsh_hadamard
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact

_BLOCK = 2**16  # reports at a time, so that a block stays in the processor's cache
_MOST_BITS = 16  # of a cell


@dataclass(frozen=True, init=False)
class OptimizedLocalHashing(FrequencyOracle):
    """Optimized local hashing: a random hash function, and the value's hash by randomized response.

    The value x is hashed into one of g = 2^k cells; the true cell is reported with probability
    p = e^epsilon/(e^epsilon + g - 1), else another one, each equally likely. A report is the function's seed and the
    cell, and supports all values of its cell (Wang, Blocki, Li, Jha 2017, with these functions).

    *The functions.* A value is m bits x_0, ..., x_(m-1), and a function a seed of m + k - 1 random bits s. Bit i of the
    cell is the parity of the sum of s_(i+j) x_j over all j.

    **Theorem** (the functions are universal). Two different values share a cell with probability exactly 1/g. Proof:
    for v = x xor y and the largest j with v_j = 1, bit i of the cell of v is s_(i+j) plus a sum of seed bits below i +
    j. Bit after bit, each is uniform given those before it. The cells are equal where all k of them are 0.

    **Theorem.** It is epsilon-LDP, exactly, and q = 1/g. n times the variance at f = 0 is (e^epsilon + g - 1)^2/((g -
    1)(e^epsilon - 1)^2), which at g - 1 = e^epsilon would be 4 e^epsilon/(e^epsilon - 1)^2, the least. The best power
    of two is at most 8 % above it, 5 % from epsilon 0.7 on, if there are enough values. Proof: the seed says nothing of
    the value; given the seed the distribution is that of `KAryRandomizedResponse` on g cells. Another value is in the
    reported cell with p/g + (1 - 1/g)(1 - p)/(g - 1) = 1/g. With t = g - 1 and E = e^epsilon, the excess (E + t)^2/(4 E
    t) is 1 at t = E, and is largest where two powers tie, E^2 = (g - 1)(2g - 1): 1.077 for g = 2, 1.046 for g = 4 and
    less from there on.

    **Theorem** (counting without comparing each report to each value). Let a_i be the m bits of the seed from i on, z
    the cell reported. The number of reports that support y is the sum over all subsets T of the k bits, the empty one
    too, of W_T[y]/g, where W_T is the Walsh-Hadamard transform of the histogram of xor(a_i, i in T), signed by the
    parity of z on T. Proof: a report supports y where for all i the parity of a_i & y is z_i; that indicator is the
    product of (1 + (-1)^(z_i + parity(a_i & y)))/2; multiply out. It takes n g + d log d steps in place of n d.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. The error does not depend on it, the report has about log2(domain) bits.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import OptimizedLocalHashing
    >>> hashed = OptimizedLocalHashing(domain=1024, epsilon=1)
    >>> hashed.cells, hashed.report_bits, hashed.q
    (4, 13, 0.25)
    """

    kind: ClassVar[str] = "hashing"

    @property
    def cells(self) -> int:
        """g, the power of two of least variance, and at most the number of values, rounded up."""
        return _cells(self._value_bits, self.epsilon)

    @property
    def _value_bits(self) -> int:
        return (self.domain - 1).bit_length()

    @property
    def _cell_bits(self) -> int:
        return self.cells.bit_length() - 1

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        odds, size = root * root, self.cells
        return odds / (odds + (size - 1)), (odds * 0 + 1) / size

    @property
    def report_bits(self) -> int:
        """The bits of the seed and of the cell."""
        return self._value_bits + 2 * self._cell_bits - 1

    @property
    def max_support(self) -> int:
        """All values: with a seed of zeros every value is in cell 0."""
        return self.domain

    def _list_reports(self) -> Reports:
        return np.arange(self._check_listable(1 << self.report_bits))

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        odds = root * root
        return (odds if own else 1) / (odds + (self.cells - 1)) / (1 << self.report_bits - self._cell_bits)

    def _redraw_probability(self) -> arb:
        """Return P[the cell is drawn from all g]: then p is 1 less (g - 1)/g of it."""
        size = self.cells
        return size / (to_interval(self.epsilon).exp() + (size - 1))

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        """Return reports: the seed in the low bits, the cell above it."""
        wide, size = self._value_bits, self._cell_bits
        drawn = draw_array_below(1 << self.report_bits, len(values), bits)
        seeds, cells = drawn >> size, drawn & ((1 << size) - 1)
        true = np.zeros(len(values), dtype=np.int64)
        for i in range(size):
            true |= (np.bitwise_count((seeds >> i) & values) & 1).astype(np.int64) << i
        cells = np.where(bernoulli.draw_array_certified(self._redraw_probability, len(values), bits), cells, true)
        return seeds | cells << (wide + size - 1)

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return check_integer_reports(self.kind, reports)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < 1 << self.report_bits))

    def _count_support(self, reports: Reports) -> Counts:
        wide, size = self._value_bits, self._cell_bits
        signed = np.zeros(2 << wide, dtype=np.int64)
        for start in range(0, len(reports), _BLOCK):
            block = reports[start : start + _BLOCK]
            cell = block >> (wide + size - 1)
            # Row i with bit i of the cell above it: the xor of several has the parity of z there.
            rows = [((block >> i) & ((1 << wide) - 1)) | ((cell >> i) & 1) << wide for i in range(size)]
            index = np.zeros(len(block), dtype=np.int64)
            for step in range(1, 1 << size):  # all subsets but the empty one: one row comes or goes at each step
                index ^= rows[(step & -step).bit_length() - 1]
                _count(index, signed)
        transformed = walsh_hadamard(signed[: 1 << wide] - signed[1 << wide :])
        return (len(reports) + transformed[: self.domain]) // self.cells


def _count(indices: Counts, counts: Counts) -> None:
    """Add one at each index, without a pass over all counts where the indices are few."""
    if len(indices) < len(counts) // 8:
        np.add.at(counts, indices, 1)
    else:
        counts += np.bincount(indices, minlength=len(counts))


@lru_cache(maxsize=256)
def _cells(value_bits: int, epsilon: Fraction) -> int:
    most, size = min(value_bits, _MOST_BITS), 2
    with working_precision(192):
        odds = to_interval(epsilon).exp()
        # From g to 2g it gets better while E^2 > (g - 1)(2g - 1); they are never equal, E being irrational.
        while size < 1 << most and odds * odds > (size - 1) * (2 * size - 1):
            size *= 2
    return size
