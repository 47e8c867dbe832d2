"""The weights of groups, in one pass over rows that lie together by unit. Compiled: needs numba.

**Theorem.** Where a unit's rows come in an order that follows from those rows alone, what a unit adds is a function of
its own rows, of the question and of its salt; the squares of what it adds are at most 2^40 together. Proof. Its D
groups are numbered as they first appear, and min(k, D) of them are kept, those that `bound_contributions` keeps. Each
of n kept groups gets the same integer w with n w^2 <= 2^40 (`privacy/key_weights.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.bound_contributions import UnitRuns, divide_unsigned, mix_bits, scale_to_range
from tacit.loops import compile_lazily
from tacit.privacy.key_weights import weigh_key


def list_weights(most: int) -> NDArray[np.int64]:
    """The weight of each of so many groups of a unit, from none to `most`."""
    return np.array([0, *map(weigh_key, range(1, most + 1))], np.int64)


@compile_lazily(nogil=True, cache=True, error_model="numpy")
def weigh_groups(
    runs: UnitRuns,
    code: NDArray[Any],
    low: int,
    weight_of: NDArray[np.int64],
    key: np.uint64,
    found: NDArray[np.int64],
    weights: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> None:
    """Add to each group the weights of the units that are kept in it, and to `rows` how many these are.

    `code` less `low` numbers the groups; a row with any other number is in none. `weight_of` says the weight for each
    number of kept groups, up to the most. `found` has room for the groups of a unit, which are at most its rows.
    """
    sizes, most_groups, row = weights.shape[0], weight_of.shape[0] - 1, 0
    last = np.full(sizes, -1, np.int64)  # the unit that each group was met in last
    for run in range(runs.who.shape[0]):
        groups, end = np.int64(0), runs.ends[run]
        while row < end:
            less = np.int64(code[row]) - low
            if np.uint64(less) < np.uint64(sizes) and last[less] != run:
                last[less] = run
                found[groups] = less
                groups += 1
            row += 1
        if groups:
            step = min(most_groups, groups)
            number = mix_bits(np.uint64(runs.who[run]) ^ key)
            at, rest = divide_unsigned(groups - scale_to_range(number, groups) - 1, step)
            whole, part = divide_unsigned(groups, step)
            for _ in range(step):
                weights[found[at]] += weight_of[step]
                rows[found[at]] += 1
                over = rest + part >= step
                at += whole + over
                rest += part - step * over
