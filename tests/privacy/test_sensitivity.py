"""How far one unit moves a vector: the formula against every way a unit's rows can be added or replaced."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import pytest
from tests.support.counts import FULL

from tacit.privacy.sensitivity import ContributionBounds, l1_sensitivity
from tacit.privacy.unit import Neighbors

Vector = tuple[int, ...]


def contributions(each: ContributionBounds, lower: int, upper: int, domain: int) -> set[Vector]:
    """All that one unit can add to the group sums: rows in at most `groups` groups, at most `rows` in each.

    A row adds an integer in [lower, upper], or nothing where it is NULL. With a `total` the rows are no more in all.
    """
    fewest: dict[int, int] = {}  # rows that make a sum
    for count in range(each.rows + 1):
        for rows in combinations_with_replacement(range(lower, upper + 1), count):
            fewest.setdefault(sum(rows), count)
    found: set[Vector] = set()
    for chosen in combinations(range(domain), min(each.groups, domain)):
        for parts in product(fewest, repeat=len(chosen)):
            if sum(fewest[part] for part in parts) > each.most:
                continue
            vector = [0] * domain
            for place, part in zip(chosen, parts, strict=True):
                vector[place] = part
            found.add(tuple(vector))
    return found


def largest_move(each: ContributionBounds, lower: int, upper: int, neighbors: Neighbors, domain: int) -> int:
    states = contributions(each, lower, upper, domain)
    if neighbors is Neighbors.ADD_REMOVE:
        return max(sum(map(abs, state)) for state in states)
    return max(sum(abs(a - b) for a, b in zip(before, after, strict=True)) for before in states for after in states)


BOUNDS = [(1, 1), (0, 1), (0, 2), (-1, 1), (-2, 1), (1, 2), (-2, -1), (0, 0), (-1, 0)]
SIZES = [(1, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2), (2, 1, 3), (3, 1, 3), (2, 1, 1), (1, 3, 2)]
WIDER = [(2, 2, 3), (2, 1, 4), (3, 1, 4)] if FULL else []


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize(("groups", "rows", "domain"), SIZES + WIDER)
def test_the_formula_is_the_largest_move_and_no_more(groups: int, rows: int, domain: int, neighbors: Neighbors) -> None:
    each = ContributionBounds(groups, rows)
    for lower, upper in BOUNDS:
        expected = largest_move(each, lower, upper, neighbors, domain)
        assert l1_sensitivity(each, lower, upper, neighbors, domain) == expected, (lower, upper)


TOTALS = [
    (2, 2, 3, 2),
    (2, 2, 3, 3),
    (2, 2, 2, 1),
    (3, 2, 2, 3),
    (3, 2, 3, 3),
    (3, 3, 2, 2),
    (2, 2, 3, 4),
    (2, 3, 5, 2),
]
WIDER_TOTALS = [(3, 2, 4, 3), (4, 2, 3, 4), (3, 3, 7, 3), (4, 1, 2, 4)] if FULL else []


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize(("groups", "rows", "total", "domain"), TOTALS + WIDER_TOTALS)
def test_with_a_cap_on_all_rows_the_formula_is_the_largest_move_and_no_more(
    groups: int, rows: int, total: int, domain: int, neighbors: Neighbors
) -> None:
    each = ContributionBounds(groups, rows, total)
    for lower, upper in BOUNDS:
        expected = largest_move(each, lower, upper, neighbors, domain)
        assert l1_sensitivity(each, lower, upper, neighbors, domain) == expected, (lower, upper)


def test_a_cap_on_all_rows_that_caps_nothing_is_none():
    # 4 groups of 5 rows are 20 rows; and of 3 rows none is in a fourth group, or a fourth of one
    assert ContributionBounds(4, 5, 20) == ContributionBounds(4, 5, 21) == ContributionBounds(4, 5)
    assert ContributionBounds(4, 5, 3) == ContributionBounds(3, 3, 3) != ContributionBounds(3, 3)
    assert ContributionBounds(1, 20, 20) == ContributionBounds(1, 20)
    assert (ContributionBounds(4, 5).most, ContributionBounds(4, 5, 19).most) == (20, 19)


def test_twenty_rows_in_all_move_a_count_as_four_groups_of_five_do():
    # min(k r, T): 20 either way, and with another unit in its place 40; of three groups of five rows it is 15
    for neighbors, far in ((Neighbors.ADD_REMOVE, 20), (Neighbors.REPLACE, 40)):
        assert l1_sensitivity(ContributionBounds(20, 20, 20), 1, 1, neighbors, 1000) == far
        assert l1_sensitivity(ContributionBounds(4, 5), 1, 1, neighbors, 1000) == far
    assert l1_sensitivity(ContributionBounds(20, 5, 20), 1, 1, Neighbors.ADD_REMOVE, 3) == 15


# Worked by hand, for k = 2 groups and r = 3 rows.

EACH = ContributionBounds(groups=2, rows=3)


def test_count_with_or_without_one_unit():
    # kr = 2 * 3
    assert l1_sensitivity(EACH, 1, 1, Neighbors.ADD_REMOVE, domain=10) == 6


def test_count_without_groups():
    # one group: r = 3, and a replaced unit moves it by no more
    assert l1_sensitivity(EACH, 1, 1, Neighbors.ADD_REMOVE, domain=1) == 3
    assert l1_sensitivity(EACH, 1, 1, Neighbors.REPLACE, domain=1) == 3


def test_count_with_one_unit_replaced():
    # k2 = min(2k, G): 4 of 10 groups, 3 of 3 groups, each by r = 3
    assert l1_sensitivity(EACH, 1, 1, Neighbors.REPLACE, domain=10) == 12
    assert l1_sensitivity(EACH, 1, 1, Neighbors.REPLACE, domain=3) == 9


def test_sum_with_or_without_one_unit():
    # kr max(|-20|, |10|) = 6 * 20
    assert l1_sensitivity(EACH, -20, 10, Neighbors.ADD_REMOVE, domain=10) == 120


def test_sum_with_one_unit_replaced():
    # 2krM = 12 * 20 where the groups before and after can differ
    assert l1_sensitivity(EACH, -20, 10, Neighbors.REPLACE, domain=10) == 240
    # without groups rW = 3 * 30
    assert l1_sensitivity(EACH, -20, 10, Neighbors.REPLACE, domain=1) == 90
    # three groups: one is in both sets and moves by rW = 90, two are in one set and move by rM = 60 each
    assert l1_sensitivity(EACH, -20, 10, Neighbors.REPLACE, domain=3) == 210


def test_the_width_counts_from_zero():
    # values in [5, 10]: the number of rows may change too, so a replaced unit moves the sum by 3 * 10, not 3 * 5
    assert l1_sensitivity(EACH, 5, 10, Neighbors.REPLACE, domain=1) == 30
    assert l1_sensitivity(EACH, -10, -5, Neighbors.REPLACE, domain=1) == 30


def test_more_groups_than_there_are_count_as_all_of_them():
    assert l1_sensitivity(ContributionBounds(groups=100, rows=3), 1, 1, Neighbors.ADD_REMOVE, domain=4) == 12
    assert l1_sensitivity(ContributionBounds(groups=100, rows=3), 1, 1, Neighbors.REPLACE, domain=4) == 12


def test_one_row_each():
    # a row is in one group; another row may be in another
    row = ContributionBounds(groups=1, rows=1)
    assert l1_sensitivity(row, 0, 100, Neighbors.ADD_REMOVE, domain=7) == 100
    assert l1_sensitivity(row, 0, 100, Neighbors.REPLACE, domain=7) == 200
    assert l1_sensitivity(row, 0, 100, Neighbors.REPLACE, domain=1) == 100


def test_integers_of_any_size():
    assert (
        l1_sensitivity(ContributionBounds(10_000, 10**6), -(2**63), 2**63, Neighbors.ADD_REMOVE, 10_000)
        == 10**10 * 2**63
    )


def test_replacing_is_at_most_a_removal_and_an_addition():
    for groups, rows, domain in product((1, 2, 5), (1, 4), (1, 2, 3, 9)):
        for lower, upper in BOUNDS:
            each = ContributionBounds(groups, rows)
            once = l1_sensitivity(each, lower, upper, Neighbors.ADD_REMOVE, domain)
            assert once <= l1_sensitivity(each, lower, upper, Neighbors.REPLACE, domain) <= 2 * once
