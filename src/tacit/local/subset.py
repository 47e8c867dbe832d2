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
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

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

_BLOCK = 2**15  # people at a time
_TRIES = 8  # draws for each of them at a time; a person who needs fewer leaves the rest
_FIRST = np.uint8(128)  # the bit of the first of eight values
_MOST_VALUES = 2**16

Move: TypeAlias = Callable[[packed_bits.PackedRows, Counts, Uint16Array, Counts, Uint16Array], None]


@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """Reports a set of k values: with probability p one that holds the true value, else one that does not, and uniform
    among such, where p = k e^epsilon/(k e^epsilon + d - k) (Ye and Barg 2018; Wang et al. 2016).

    k is the integer of least variance, next to d/(e^epsilon + 1). A report is a bit for each value, k of them set.

    **Theorem.** It is epsilon-LDP, exactly; q = (p (k - 1) + (1 - p) k)/(d - 1). No protocol has a smaller worst-case
    squared error up to 1 + o(1) (Ye and Barg). Proof of the price: a set that holds x has p/C(d - 1, k - 1), one that
    does not (1 - p)/C(d - 1, k), and their quotient is p (d - k)/((1 - p) k) = e^epsilon. Of the k values in a set, k -
    1 or k are uniform among the d - 1 others.

    **How a set is drawn.** Every other value is put in by a coin of probability near k/d. Then values drawn at random
    are put in, or taken out, one after the other, until the set has the size wanted; a value that is there already, or
    not there, or is the true one, is drawn anew. The true one is added in the end, if it is to be. The distribution is
    exact, whatever the probability: by symmetry the set of coins is uniform among those of its size; a uniform set with
    a uniform new value is uniform among those of one more; and likewise for one less.
    """

    kind: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain > _MOST_VALUES:
            raise ParameterError("domain", f"has more than {_MOST_VALUES:,} values", fix="use LocalHashing")

    @property
    def size(self) -> int:
        """k."""
        with working_precision(192):
            near = math.floor(float(self.domain / (to_interval(self.epsilon).exp() + 1)))
        choices = [k for k in (near, near + 1) if 1 <= k < self.domain]
        odds = math.exp(float(self.epsilon))
        return min(choices, key=lambda k: _variance(self.domain, k, odds))

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q."""
        odds, k, d = root * root, self.size, self.domain
        p = k * odds / (k * odds + (d - k))
        return p, (k - p) / (d - 1)

    @property
    def report_bits(self) -> int:
        """A bit for each value."""
        return self.domain

    @property
    def reach(self) -> int:
        """k, and a set of any other size is refused."""
        return self.size

    def outputs(self) -> Reports:
        """All sets of k values."""
        self._few(1 << min(self.domain, 64))
        rows = packed_bits.enumerate_rows(self.domain)
        return rows[self._are_well_formed(rows)]

    def probability(self, own: bool, supported: int, root: Any) -> Any:
        """One of the sets that hold the value, or of those that do not."""
        p, k, others = self.chances(root)[0], self.size, self.domain - 1
        return p / math.comb(others, k - 1) if own else (1 - p) / math.comb(others, k)

    def _held(self) -> arb:
        held: arb = self.chances(to_interval(self.epsilon / 2).exp())[0]
        return held

    def _encoded(self, values: Counts, bits: Bits) -> Reports:
        held = bernoulli.draw_array_certified(self._held, len(values), bits)
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
        """Put random values in or take them out, until each row has as many as wanted."""
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

    def _shaped(self, reports: Any) -> Reports:
        return packed_bits.as_packed_rows(reports, self.domain)

    def _are_well_formed(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray(
            packed_bits.has_zero_padding(reports, self.domain) & (packed_bits.row_sums(reports) == self.size)
        )

    def _supported(self, reports: Reports) -> Counts:
        return packed_bits.column_sums(reports, self.domain)


def _move(octets: packed_bits.PackedRows, first: Counts, own: Uint16Array, missing: Counts, drawn: Uint16Array) -> None:
    """Put in, or take out, the values drawn for each row that begins with a byte `first`, while it is of another size.

    The true value is never in here, so it is never taken out.
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
    """Coins that fall short of the size by as much as takes the fewest tries; the distribution is the same for any.

    To put one in takes d/(d - k) tries and to take one out d/k. So it is best to be short with probability 1 - k/d,
    where a little more of either would cost the same: by that quantile of the normal distribution.
    """
    short = NormalDist(0, math.sqrt(size * (domain - size) / domain)).inv_cdf(1 - size / domain)
    return Coins(Fraction(min(max(1, size - round(short)), domain - 1), domain))
