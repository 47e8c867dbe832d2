"""Subset selection: a random set of values that holds the true one more often than not.

>>> chosen = SubsetSelection(domain=1024, epsilon=1)
>>> chosen.size, round(chosen.p, 6), round(chosen.q, 6)
(275, 0.499508, 0.268329)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit import loops
from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.local import packed_bits
from tacit.local.frequency_oracle import Counts, FrequencyOracle, Reports
from tacit.sampling import bernoulli, uint16
from tacit.sampling.bits import Bits
from tacit.sampling.packed import Coins
from tacit.sampling.uint16 import Uint16Array

if TYPE_CHECKING:
    from flint import arb

    from tacit.local.frequency_oracle import Exact

_BLOCK = 2**15  # users at a time
_TRIES = 8  # draws for each of them at a time; those beyond what a user needs are not used
_FIRST = np.uint8(128)  # the bit of the first of eight values
_MOST_VALUES = 2**16

Move: TypeAlias = Callable[[packed_bits.PackedRows, Counts, Uint16Array, Counts, Uint16Array], None]


@dataclass(frozen=True, init=False)
class SubsetSelection(FrequencyOracle):
    """Subset selection: a random set of k values, more likely one that holds the true value.

    With probability p = k e^epsilon/(k e^epsilon + d - k) the set is uniform among those that hold the true value,
    otherwise among those that do not (Ye and Barg 2018; Wang et al. 2016). k is the integer of least variance, next to
    d/(e^epsilon + 1). A report is a bit for each value, k of them set.

    **Theorem.** It is epsilon-LDP, exactly; q = (p (k - 1) + (1 - p) k)/(d - 1). No protocol has a smaller worst-case
    squared error up to 1 + o(1) (Ye and Barg). Proof of the epsilon: a set that holds x has p/C(d - 1, k - 1), one that
    does not (1 - p)/C(d - 1, k), and their quotient is p (d - k)/((1 - p) k) = e^epsilon. Of the k values in a set, k -
    1 or k are uniform among the d - 1 others.

    **Sampling.** Every other value is included with a probability near k/d, independently. Then values drawn at random
    are included, or removed, one after the other, until the set has the required size; a value that is included
    already, or not included, or is the true one, is drawn again. The true one is added in the end, if required. The
    distribution is exact, whatever the probability: by symmetry the first set is uniform among those of its size; a
    uniform set with a uniform new value is uniform among those of one more; and likewise for one less.

    Parameters
    ----------
    domain : int
        The number d of values, from 2 to 65,536. A report has a bit for each value.
    epsilon : number
        The privacy loss of one report, from 0.000001 to 100. A larger one gives smaller errors and less privacy.

    Examples
    --------
    >>> from tacit.local import SubsetSelection
    >>> chosen = SubsetSelection(domain=1024, epsilon=1)
    >>> chosen.size, round(chosen.p, 6), round(chosen.q, 6)
    (275, 0.499508, 0.268329)
    >>> round(chosen.variance(users=1), 3)  # the least of all protocols here
    3.674
    """

    kind: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain > _MOST_VALUES:
            raise ParameterError(
                "domain",
                f"has more than {_MOST_VALUES:,} values",
                fix=f"OptimizedLocalHashing({self.domain}, {float(self.epsilon):g})",
            )

    @property
    def size(self) -> int:
        """k, the number of values in a reported set."""
        with working_precision(192):
            near = math.floor(float(self.domain / (to_interval(self.epsilon).exp() + 1)))
        choices = [k for k in (near, near + 1) if 1 <= k < self.domain]
        odds = math.exp(float(self.epsilon))
        return min(choices, key=lambda k: _variance(self.domain, k, odds))

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        odds, k, d = root * root, self.size, self.domain
        p = k * odds / (k * odds + (d - k))
        return p, (k - p) / (d - 1)

    @property
    def report_bits(self) -> int:
        """A bit for each value."""
        return self.domain

    @property
    def max_support(self) -> int:
        """k: a set of any other size is refused."""
        return self.size

    def _list_reports(self) -> Reports:
        self._check_listable(1 << min(self.domain, 64))
        rows = packed_bits.enumerate_rows(self.domain)
        return rows[self._are_well_formed(rows)]

    def _report_probability(self, own: bool, supported: int, root: Exact) -> Exact:
        p, k, others = self._support_probabilities(root)[0], self.size, self.domain - 1
        return p / math.comb(others, k - 1) if own else (1 - p) / math.comb(others, k)

    def _hold_probability(self) -> arb:
        """Return P[the set holds the true value]."""
        held: arb = self._support_probabilities(to_interval(self.epsilon / 2).exp())[0]
        return held

    def _encode_values(self, values: Counts, bits: Bits) -> Reports:
        held = bernoulli.draw_array_certified(self._hold_probability, len(values), bits)
        reports = np.empty((len(values), packed_bits.bytes_per_report(self.domain)), dtype=np.uint8)
        put, move = (
            packed_bits.choose_bit_setter(reports),
            loops.choose_implementation(reports.size, _move_by_loop, _move),
        )
        for part in packed_bits.fill_with_coins(reports, self.domain, _coins(self.size, self.domain), bits):
            put(reports[part], values[part], np.zeros(len(values[part]), dtype=np.bool_))
        for start in range(0, len(values), _BLOCK):
            part = slice(start, start + _BLOCK)
            self._fill(reports[part], values[part], self.size - held[part].astype(np.int64), move, bits)
            put(reports[part], values[part], held[part])
        return reports

    def _fill(self, reports: packed_bits.PackedRows, values: Counts, wanted: Counts, move: Move, bits: Bits) -> None:
        """Include or remove random values, until each row has as many as `wanted`."""
        octets, wide = reports.reshape(-1), reports.shape[1]
        missing = wanted - packed_bits.row_sums(reports)
        first, own = np.arange(0, len(octets), wide), values.astype(np.uint16)
        while (unfit := missing != 0).any():
            missing, first, own = missing[unfit], first[unfit], own[unfit]
            move(
                octets,
                first,
                own,
                missing,
                uint16.draw_array_below(self.domain, _TRIES * len(own), bits).reshape(_TRIES, -1),
            )

    def _to_array(self, reports: npt.ArrayLike) -> Reports:
        return packed_bits.as_packed_rows(reports, self.domain)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray(
            packed_bits.has_zero_padding(reports, self.domain) & (packed_bits.row_sums(reports) == self.size)
        )

    def _count_support(self, reports: Reports) -> Counts:
        return packed_bits.column_sums(reports, self.domain)


def _move(octets: packed_bits.PackedRows, first: Counts, own: Uint16Array, missing: Counts, drawn: Uint16Array) -> None:
    """Include, or remove, the values drawn for each row that begins with the byte `first`, until it has its size.

    The true value is never included here, so it is never removed.
    """
    lacks, step = missing > 0, np.sign(missing)
    for values in drawn:
        places, masks = first + (values >> np.uint16(3)), _FIRST >> (values & np.uint16(7)).astype(np.uint8)
        old = octets[places]
        moves = (((old & masks) == 0) == lacks) & (values != own) & (missing != 0)
        octets[places] = old ^ (masks * moves)
        missing -= step * moves


def _move_by_loop(
    octets: packed_bits.PackedRows, first: Counts, own: Uint16Array, missing: Counts, drawn: Uint16Array
) -> None:
    for row in range(len(own)):
        step = 1 if missing[row] > 0 else -1
        for turn in range(len(drawn)):
            value = drawn[turn, row]
            place, mask = first[row] + (value >> 3), 128 >> (value & 7)
            is_move = ((octets[place] & mask == 0) == (step > 0)) & (value != own[row]) & (missing[row] != 0)
            octets[place] ^= mask * is_move
            missing[row] -= step * is_move


def _variance(domain: int, size: int, odds: float) -> float:
    """q (1 - q)/(p - q)^2, up to rounding, which can only make the choice of k a worse one."""
    p = size * odds / (size * odds + domain - size)
    q = (size - p) / (domain - 1)
    return q * (1 - q) / (p - q) ** 2


@lru_cache(maxsize=64)
def _coins(size: int, domain: int) -> Coins:
    """Return Bernoulli draws that fall short of the size by as much as takes the fewest; the distribution is the same.

    To include one takes d/(d - k) draws and to remove one d/k. So it is best to be short with probability 1 - k/d,
    where a little more of either would take as many: by that quantile of the normal distribution.
    """
    short = NormalDist(0, math.sqrt(size * (domain - size) / domain)).inv_cdf(1 - size / domain)
    return Coins(Fraction(min(max(1, size - round(short)), domain - 1), domain))
