"""How far one unit can move a vector of grouped counts or sums.

>>> each = ContributionBounds(groups=4, rows=3)
>>> l1_sensitivity(each, lower=0, upper=1, neighbors=Neighbors.ADD_REMOVE, domain=10)
12
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.unit import Neighbors


@dataclass(frozen=True)
class ContributionBounds:
    """Contribution bounds: what is left of one unit after its rows were bounded.

    Parameters
    ----------
    groups : int
        The most groups that one unit is in.
    rows : int
        The most rows of one unit in a group.
    total : int, optional
        The most rows of one unit in all groups together. It is kept as None where groups * rows is no more, and the
        other two are never above it.

    Examples
    --------
    >>> ContributionBounds(groups=4, rows=3).most
    12
    >>> ContributionBounds(groups=4, rows=3, total=2)
    ContributionBounds(groups=2, rows=2, total=2)
    """

    groups: int
    rows: int
    total: int | None = None

    def __post_init__(self) -> None:
        if self.total is None:
            return
        groups, rows = min(self.groups, self.total), min(self.rows, self.total)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "rows", rows)
        if self.total >= groups * rows:
            object.__setattr__(self, "total", None)

    @property
    def most(self) -> int:
        """The most rows of one unit, in all groups together."""
        return self.groups * self.rows if self.total is None else self.total


def l1_sensitivity(each: ContributionBounds, lower: int, upper: int, neighbors: Neighbors, domain: int) -> int:
    """Return the L1 sensitivity of a vector of group sums, each row adding an integer in [lower, upper].

    **Theorem.** Let r = rows and T the most rows in all: `total`, or r min(groups, domain) if that is less. Let M be
    the larger and m the smaller of max(upper, 0) and max(-lower, 0).

    *Add-remove*: L1 <= T M.
    *Replace*: L1 <= (M - m) (min(T, r floor(domain/2)) + min(T, r ceil(domain/2))) + 2 m T.
    Both are reached, where rows may add nothing (a NULL) and also `lower` and `upper`.

    Proof. Adding a unit adds at most T rows, each at most M in size. Replacing it takes the rows of one unit out and
    puts those of another in. If a and b rows of the two are in a coordinate, it moves by at most a M + b m or
    a m + b M: the rows of one unit weigh M, those of the other m. Let those of the first weigh M in i coordinates. It
    has at most min(T, r i) rows there and T in all, so its rows weigh at most (M - m) min(T, r i) + m T; those of the
    other at most the same with domain - i in the place of i. The sum of the two is concave in i and symmetric about
    domain/2, so it is largest in the middle. There it is reached: T rows fit into min(groups, domain) coordinates, as
    many as can into one's own half and the others into the other. M and m count from zero because a row may add
    nothing. A count is the sum of ones: lower = upper = 1.

    Parameters
    ----------
    each : ContributionBounds
        How many groups and rows one unit has.
    lower, upper : int
        Least and largest integer that a row adds; both are 1 for counts.
    neighbors : Neighbors
        Whether a unit is added and removed, or replaced.
    domain : int
        How many groups there are, at least 1.

    Returns
    -------
    int
        The most that all the sums together move between neighbors.

    Examples
    --------
    >>> each = ContributionBounds(groups=4, rows=3)
    >>> [l1_sensitivity(each, 1, 1, neighbors, domain=10) for neighbors in Neighbors]
    [12, 24]
    """
    rows = min(each.most, each.rows * min(each.groups, domain))
    high, low = max(upper, 0), max(-lower, 0)
    more, less = max(high, low), min(high, low)
    if neighbors is Neighbors.ADD_REMOVE:
        return rows * more
    half = min(rows, each.rows * (domain // 2)) + min(rows, each.rows * (domain - domain // 2))
    return (more - less) * half + 2 * less * rows
