"""How far one unit moves what is measured, after its contribution was bounded."""

from __future__ import annotations

from tacit.aggregates.base import VectorMeasurement
from tacit.privacy.sensitivity import ContributionBounds, l1_sensitivity
from tacit.privacy.unit import Neighbors


def vector_l1_sensitivity(
    vector: VectorMeasurement, each: ContributionBounds, neighbors: Neighbors, groups: int | None
) -> int:
    """Return the L1 sensitivity of a vector; `groups` is how many there are, None where that is private."""
    rows = ContributionBounds(each.groups, 1) if vector.is_per_unit else each
    return l1_sensitivity(rows, vector.lower, vector.upper, neighbors, 2 * each.groups if groups is None else groups)


def contribution_to_account(each: ContributionBounds, named: bool) -> ContributionBounds:
    """Return the bounds that a unit is accounted by: those it was kept within where units are `named`, else one group.

    **Theorem.** Where a row is its own unit and stands in t rows of the source, it moves vectors and choices by no more
    than t rows in one group do, however its rows lie among the groups.

    *Proof.* Go from one neighbor to the other row by row, in t steps: each adds one, takes one away, or replaces one. A
    step moves a vector by at most the norm that the sensitivity of one row in one group says (under replace of one row
    in each of two groups), and t rows in one group are charged t times that. A choice in a group that s rows come to or
    leave loses at most s/t of what it does for t rows, because the scores move by as much less. Under add-remove the s
    of all groups add up to at most t. Under replace let a come and b leave: take a group with those that grow if
    a >= b and with those that shrink if not; in each of the two sets the larger of a and b adds up to at most t, which
    is one group's loss, and two are charged. Losses whose ranges add up to a range have that range together.
    """
    return each if named else ContributionBounds(1, each.rows)


def l0_sensitivity(each: ContributionBounds, neighbors: Neighbors, groups: int | None) -> int:
    """Return the number of groups that one unit can change: its own, and under replace those of the other unit too."""
    most = each.groups if neighbors is Neighbors.ADD_REMOVE else 2 * each.groups
    return most if groups is None else min(most, groups)


def count_selections(each: ContributionBounds, neighbors: Neighbors, groups: int | None) -> int:
    """Return how many selections those in all groups cost together, each of them made for r rows of a unit.

    **Theorem.** Where a unit has at most T >= r rows in all, they cost no more than floor(2T/(r + 1)) of them, under
    replace twice as many. That is one, and two, for r = T.

    *Proof.* A choice in a group that s rows come to or leave loses at most s/r of what it does for r rows, because the
    scores move by as much less. Losses whose ranges, or whose epsilons, add up to that of one choice cost what one
    does. So put groups together as long as their s add up to at most r: into n bundles, as few as there can be. Any two
    of them have more than r rows, or they would be one; added up over all pairs, (n - 1) T >= (r + 1) n (n - 1)/2, so
    n <= 2T/(r + 1), and for n = 1 too because T >= r. Under replace let a rows come to a group and b leave it: s is the
    larger. Bundle the groups with a >= b, and then the others: in each of these two sets s adds up to at most T.
    """
    if each.total is None:
        return l0_sensitivity(each, neighbors, groups)
    bundles = 2 * each.total // (each.rows + 1)
    return min(l0_sensitivity(each, neighbors, groups), bundles if neighbors is Neighbors.ADD_REMOVE else 2 * bundles)


def vector_l2_sensitivity(
    vector: VectorMeasurement, each: ContributionBounds, neighbors: Neighbors, groups: int | None
) -> tuple[int, int]:
    """Return (shift, coordinates) such that one unit moves the vector by at most shift * sqrt(coordinates) in L2.

    With a cap on all rows it may do so along more coordinates than these.

    **Theorem.** Let a unit have at most r rows in each of k groups, M = max(|lower|, |upper|), W = max(upper, 0) -
    min(lower, 0) and j = max(0, 2k - groups). Add-remove: k coordinates by r M. Replace: with
    c coordinates in both of the units, the squared distance is at most r^2 (c W^2 + 2 (k - c) M^2), c from j to k.
    That is linear in c, so at most the larger of k W^2 and j W^2 + 2 (k - j) M^2 (times r^2). If W^2 >= 2 M^2 it is at
    most k W^2; otherwise, if j = 0, at most 2k M^2; otherwise at most (2k - j) W^2, as W >= M. With at most T rows in
    all it is that of k = ceil(T/r) groups, if these are fewer. Proof: for so many rows a and b of the units in each
    group the squared distance is at most the sum of max(a P + b N, a N + b P)^2, with P and N the largest and the least
    that a row adds, counted from zero. That is convex in the numbers of rows, so over those from 0 to r of which each
    unit has at most r ceil(T/r) it is largest in a corner, where every number is 0 or r: ceil(T/r) groups of r rows.
    """
    k = each.groups if groups is None else min(each.groups, groups)
    rows = 1 if vector.is_per_unit else each.rows
    if each.total is not None and not vector.is_per_unit:
        k = min(k, -(-each.total // rows))
    size = max(abs(vector.lower), abs(vector.upper))
    if neighbors is Neighbors.ADD_REMOVE:
        return rows * size, k
    width = max(vector.upper, 0) - min(vector.lower, 0)
    both = 0 if groups is None else max(0, 2 * k - groups)
    if width**2 >= 2 * size**2:
        return rows * width, k
    return (rows * size, 2 * k) if both == 0 else (rows * width, 2 * k - both)
