"""How far one unit can move a vector of grouped counts or sums.

>>> each = Contribution(groups=4, rows=3)
>>> l1(each, lower=0, upper=1, neighbors=Neighbors.ADD_REMOVE, domain=10)
12
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.unit import Neighbors


@dataclass(frozen=True)
class Contribution:
    """What is left of one unit after bounding: at most `groups` groups and `rows` rows in each."""

    groups: int
    rows: int


def l1(each: Contribution, lower: int, upper: int, neighbors: Neighbors, domain: int) -> int:
    """The L1 sensitivity of a vector of `domain` group sums, each row adding an integer in [lower, upper].

    **Theorem.** Let k = min(groups, domain), r = rows, M = max(|lower|, |upper|) and
    W = max(upper, 0) - min(lower, 0).

    *Add-remove*: L1 <= k r M.
    *Replace*: with j = max(0, 2k - domain), L1 <= r (j W + 2 (k - j) M).

    Proof. Adding a unit adds at most r rows, each at most M in size, to each of at most k coordinates.
    Replacing it takes rows out of a set A of coordinates and puts rows into a set B, |A| and |B| at most k.
    A coordinate in both held a sum in [r min(lower, 0), r max(upper, 0)] of that unit's rows before and after, so it
    moves by at most rW; one in only one of them moves by at most rM. With c = |A and B| the sum is at most
    c r W + 2 (k - c) r M, which falls in c because W <= 2M, and c >= |A| + |B| - domain, so c = j is the worst when
    both sets are full; smaller sets move fewer coordinates. A row that adds nothing (a NULL) is covered because
    W and M count from zero. A count is the sum of ones: lower = upper = 1.
    """
    k = min(each.groups, domain)
    size = max(abs(lower), abs(upper))
    if neighbors is Neighbors.ADD_REMOVE:
        return k * each.rows * size
    width = max(upper, 0) - min(lower, 0)
    both = max(0, 2 * k - domain)
    return each.rows * (both * width + 2 * (k - both) * size)
