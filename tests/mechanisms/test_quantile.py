"""Quantiles by the exponential mechanism: the law against brute force, the theorem on all small histograms, the errors.

Each test of fit has a false alarm of 1e-11, less than 1e-9 together, and rejects an epsilon that is off by a tenth.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, OFF, enough, examples, some
from tests.support.statistics import chi_square

import tacit.mechanisms
from tacit.accounting.basic import epsilon as pure
from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.quantile import Quantile
from tacit.privacy.loss import BoundedRange, Repeat
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
HALF, MIN, MAX = Fraction(1, 2), Fraction(0), Fraction(1)
SHARES = [MIN, Fraction(1, 3), HALF, Fraction(9, 10), MAX]
ALARM = 1e-11


def quantile(share=HALF, epsilon=1, rows=1, neighbors=ADD, lower=0, upper=10, target=None) -> Quantile:
    return Quantile.calibrated(epsilon, share, rows, neighbors, lower, upper, target)


def missed(mechanism: Quantile, rows: list[int], g: int) -> Fraction:
    """By how many rows g misses, from the definition, row by row."""
    n, below, above = len(rows), sum(x < g for x in rows), sum(x > g for x in rows)
    if mechanism.share in (MIN, MAX):
        wanted = min(mechanism.target, math.ceil(n / 2))  # rows from the end
        if not wanted:
            return Fraction(0)
        outside, reached = (below, n - above) if mechanism.share == MIN else (above, n - below)
        return Fraction(max(0, outside - (wanted - 1), wanted - reached))
    return max(Fraction(0), below - mechanism.share * n, above - (1 - mechanism.share) * n)


def brute(mechanism: Quantile, rows: list[int]) -> dict[int, arb]:
    """The law from the misses of all grid points, at the working precision."""
    move = mechanism.rows * (1 if mechanism.neighbors is REPLACE else max(mechanism.share, 1 - mechanism.share))
    weights = {
        g: (-to_interval(mechanism.epsilon / (2 * move) * missed(mechanism, rows, g))).exp()
        for g in range(mechanism.lower, mechanism.upper + 1)
    }
    total = sum(weights.values(), arb(0))
    return {g: weight / total for g, weight in weights.items()}


# The law


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-3, 9), max_size=12),
    st.sampled_from([*SHARES, Fraction(1, 4), Fraction(997, 1000)]),
    st.sampled_from([Fraction(1, 10), Fraction(2), Fraction(30)]),
    st.integers(1, 3),
    st.sampled_from([ADD, REPLACE]),
    st.one_of(st.none(), st.integers(1, 8)),
)
def test_the_law_is_that_of_the_definition(rows, share, epsilon, most, neighbors, target):
    mechanism = quantile(
        share, epsilon, most, neighbors, lower=-3, upper=9, target=target if share in (MIN, MAX) else None
    )
    found = mechanism.law(Counter(rows))
    with working_precision(128):
        assert sorted(found) == list(range(-3, 10))
        assert sum(found.values(), arb(0)).overlaps(arb(1))
        for g, chance in brute(mechanism, rows).items():
            assert found[g].overlaps(chance)
            assert chance.rad() < arb(2) ** -100


def test_a_median_of_three_rows_by_hand():
    # Rows 1, 1, 3 on 0..3: 2 below - 3 and 2 above - 3 are at most 3 at 0, 0 at 1, 1 at 2 and 1 at 3 (two rows below).
    # Factor 1/2: weights e^-1.5, 1, e^-0.5, e^-0.5 = 0.223130, 1, 0.606531, 0.606531, together 2.436192.
    found = quantile(upper=3).law({1: 2, 3: 1})
    assert [round(float(found[g]), 6) for g in range(4)] == [0.091590, 0.410477, 0.248967, 0.248967]


def test_every_point_between_two_middle_rows_is_a_median():
    # Rows 2 and 6: at 2..6 at most one row of two is below and at most one above.
    found = quantile(upper=8).law({2: 1, 6: 1})
    assert all(found[g].overlaps(found[4]) for g in range(2, 7))
    assert all(found[g] < found[4] for g in (0, 1, 7, 8))


def test_ties_make_a_point_likelier():
    # Nine rows at 5: every other point misses by 4.5, that is 9 steps of factor 1/2. 1/(1 + 10 e^-4.5) = 0.900017.
    assert float(quantile().law({5: 9})[5]) == pytest.approx(0.900017, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("share", some(SHARES, 2), ids=str)
def test_of_no_rows_every_point_is_equally_likely(share):
    mechanism, bits = quantile(share), ReplayBits(b"empty")
    for empty in ({}, {3: 0}):
        assert all(chance.overlaps(arb(1) / 11) for chance in mechanism.law(empty).values())
    each = enough(200)
    seen = Counter(mechanism.release({}, bits) for _ in range(11 * each))
    assert chi_square([seen[g] for g in range(11)], [each] * 11) > ALARM


@pytest.mark.parametrize("share", SHARES, ids=str)
def test_a_grid_of_one_point(share):
    single = quantile(share, lower=7, upper=7)
    for rows in ({}, {7: 5}):
        assert single.release(rows, ReplayBits(b"one")) == 7
        assert single.law(rows)[7].overlaps(arb(1))
    assert single.error(0.999) == 0
    assert single.target == (1 if share in (MIN, MAX) else None)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10), max_size=9), st.sampled_from([(MIN, MAX), (Fraction(1, 3), Fraction(2, 3))]))
def test_the_mirror_image_has_the_mirrored_law(rows, shares):
    one, other = quantile(shares[0]), quantile(shares[1])
    found, mirrored = one.law(Counter(rows)), other.law(Counter(10 - x for x in rows))
    assert all(found[g].overlaps(mirrored[10 - g]) for g in range(11))


def test_the_order_of_the_points_does_not_matter():
    for seed in (b"1", b"2", b"3"):
        found = {quantile().release(rows, ReplayBits(seed)) for rows in ({1: 2, 5: 3, 9: 1}, {9: 1, 1: 2, 5: 3, 7: 0})}
        assert len(found) == 1


# The theorem


def histograms(points: int, most: int) -> list[tuple[int, ...]]:
    """All histograms of at most so many rows on 0..points - 1."""
    chosen = (rows for n in range(most + 1) for rows in combinations_with_replacement(range(points), n))
    return [tuple(rows.count(x) for x in range(points)) for rows in chosen]


def pairs(points: int, most: int, rows: int, neighbors: Neighbors) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs of histograms that differ in a unit of at most `rows` rows, before and after; `most` are of others."""

    def plus(one, other):
        return tuple(a + b for a, b in zip(one, other, strict=True))

    units, nobody = histograms(points, rows), (0,) * points
    return {
        (plus(base, before), plus(base, after))
        for base in histograms(points, most)
        for before in (units if neighbors is REPLACE else [nobody])
        for after in units
    }


@pytest.mark.slow
@pytest.mark.parametrize(("share", "neighbors", "rows"), some(product(SHARES, [ADD, REPLACE], [1, 2, 3]), 7), ids=str)
def test_no_loss_of_neighbors_passes_epsilon(share, neighbors, rows):
    # All data of up to four rows on three or four points, with any unit of up to `rows` rows, and of another number of
    # them after than before: every loss lies in a range of epsilon, so every ratio of probabilities is at most
    # e^epsilon.
    points, epsilon = 3 if rows > 2 else 4, Fraction(2)
    mechanism = quantile(share, epsilon, rows, neighbors, 0, points - 1, 2 if share in (MIN, MAX) else None)
    with working_precision(96):
        limit = to_interval(epsilon) + arb(2) ** -80
        logarithms = {
            counts: [chance.log() for chance in mechanism.law(dict(enumerate(counts)), 96).values()]
            for counts in histograms(points, 4 + rows)
        }
        for one, other in pairs(points, 4, rows, neighbors):
            losses = [p - q for p, q in zip(logarithms[one], logarithms[other], strict=True)]
            assert all(abs(loss) <= limit for loss in losses)
            assert all(loss - least <= limit for loss in losses for least in losses)


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_range_of_the_loss_is_reached(share, neighbors, rows):
    # 100 rows at 2. A unit below them or above them, or moved from one side to the other, takes points on one side
    # further away and brings points on the other nearer, by `sensitivity` each: no smaller one would do.
    mechanism = quantile(share, 1, rows, neighbors, 0, 4, 5 if share in (MIN, MAX) else None)
    data = [{2: 100}, {0: rows, 2: 100}, {2: 100, 4: rows}]
    couples = [(data[1], data[2])] if neighbors is REPLACE else [(data[0], data[1]), (data[0], data[2])]
    widest = 0.0
    for one, other in couples:
        with working_precision(128):
            found = zip(mechanism.law(one).values(), mechanism.law(other).values(), strict=True)
            losses = [float((p / q).log()) for p, q in found]
        widest = max(widest, max(losses) - min(losses))
    assert widest == pytest.approx(1, rel=1e-12)


def test_a_unit_of_fewer_rows_after_than_before_moves_no_more():
    # Share 9/10, replace, three rows: 3 come at 0 and none leave moves 10 below - 9 n by 3 at the points above; 3 come
    # at 0 and 3 leave from 10 by 30 = rows b.
    assert quantile(Fraction(9, 10), rows=3, neighbors=REPLACE).sensitivity == 30
    assert quantile(Fraction(9, 10), rows=3).sensitivity == 27
    assert quantile(Fraction(1, 10), rows=3).sensitivity == 27
    assert quantile(HALF, rows=3).sensitivity == 3
    assert quantile(HALF, rows=3, neighbors=REPLACE).sensitivity == 6
    assert {quantile(share, rows=3, neighbors=n).sensitivity for share in (MIN, MAX) for n in Neighbors} == {3}


def test_the_factor():
    # A row is worth epsilon/(2 rows max(q, 1 - q)): for 9/10 and two rows, 1/3.6, in steps of a tenth of a row 1/36.
    assert quantile(Fraction(9, 10), rows=2).factor == Fraction(1, 36)
    assert quantile(Fraction(9, 10), rows=2, neighbors=REPLACE).factor == Fraction(1, 40)
    assert quantile(MIN, rows=2).factor == Fraction(1, 4)


def test_the_loss_is_composed_over_groups():
    assert quantile(epsilon=0.1).loss() == Repeat(BoundedRange(Fraction(1, 10)), 1)
    assert quantile(epsilon=0.1).loss(4) == Repeat(BoundedRange(Fraction(1, 10)), 4)
    assert pure(quantile(epsilon=0.1).loss(4)) == Fraction(4, 10)
    assert quantile().loss(0) == Repeat(BoundedRange(Fraction(1)), 0)


# The draw


@pytest.mark.slow
@pytest.mark.parametrize("share", [MIN, Fraction(1, 3), *([MAX] if FULL else [])], ids=str)
def test_release_has_the_law(share):
    # By default the largest is left out: its law is the mirrored one, by a test above, and is drawn from likewise.
    # Three rows at each of 13 points, a row worth 1/4. By the law of 11/10 epsilon the statistic of 12,000 draws grows
    # by 12,000 times 1/100 of the variance of misses/4, some 100, where 70 would do. Rare points are taken together.
    count, rare = enough(12_000), 0.005 if FULL else 0.02
    rows, bits = dict.fromkeys(range(13), 3), ReplayBits(b"quantile %d" % (10 * share))
    epsilon = max(share, 1 - share) / 2
    mechanism = quantile(share, epsilon, upper=12, target=6 if share in (MIN, MAX) else None)
    seen = Counter(mechanism.release(rows, bits) for _ in range(count))
    often = {g for g, chance in mechanism.law(rows).items() if chance > rare}
    observed = [*(seen[g] for g in often), sum(seen[g] for g in range(13) if g not in often)]
    assert sum(observed) == count

    def fit(epsilon):
        law = {
            g: count * float(p)
            for g, p in quantile(share, epsilon, upper=12, target=mechanism.target).law(rows).items()
        }
        return chi_square(observed, [*(law[g] for g in often), sum(law[g] for g in range(13) if g not in often)])

    assert fit(epsilon) > ALARM
    assert fit(epsilon * (1 + OFF)) < 1e-9
    assert fit(epsilon * (1 - OFF)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("share", "power"), some(product(SHARES, [40, 62, 200]), 4), ids=str)
def test_huge_grids(share, power):
    # Twenty rows at 0. The points below miss by some rows and those above by others; there are as many of them on each
    # side as make either side, up to 2^power points, as likely as 0. With epsilon off by a tenth the larger side
    # becomes 2^(power/10) times as likely or as unlikely.
    count = 2_000 if FULL else 700
    target = 7 if share in (MIN, MAX) else None
    trial = quantile(share, lower=-1, upper=1, target=target)
    sides = [float(missed(trial, [0] * 20, g)) for g in (-1, 1)]
    row = power * math.log(2) / max(sides)
    epsilon = Fraction(2 * row) * max(share, 1 - share)
    below, above = (int(math.exp(row * side)) for side in sides)

    def law(epsilon):
        worth = float(epsilon / (2 * max(share, 1 - share)))
        weights = [below * math.exp(-worth * sides[0]), 1.0, above * math.exp(-worth * sides[1])]
        return [count * weight / sum(weights) for weight in weights]

    mechanism, bits = quantile(share, epsilon, lower=-below, upper=above, target=target), ReplayBits(b"%d" % power)
    drawn = [mechanism.release({0: 20}, bits) for _ in range(count)]
    observed = [sum(g < 0 for g in drawn), drawn.count(0), sum(g > 0 for g in drawn)]
    assert chi_square(observed, law(epsilon)) > ALARM
    assert chi_square(observed, law(epsilon * Fraction(11, 10))) < 1e-9
    assert chi_square(observed, law(epsilon * Fraction(9, 10))) < 1e-9
    # All points of the larger side are alike: its sixteenths are equally likely, some 40 draws each of 2,000.
    wide = max(below, above)
    inside = [16 * (abs(g) - 1) // wide for g in drawn if g and (g < 0) == (below > above)]
    assert max(inside) < 16
    assert chi_square(np.bincount(inside, minlength=16).tolist(), [len(inside) / 16] * 16) > ALARM


def test_where_integers_do_not_fit_64_bits_the_choice_is_the_same():
    # The same words; moved by 2^70; and with 2^61 times the rows at a price 2^61 times lower.
    rows, seeds = {1: 3, 2: 1, 6: 4, 10: 2}, [b"%d" % i for i in range(40)]
    plain = [quantile(Fraction(1, 3)).release(rows, ReplayBits(seed)) for seed in seeds]
    moved = {x + 2**70: count for x, count in rows.items()}
    far = quantile(Fraction(1, 3), lower=2**70, upper=2**70 + 10)
    assert [far.release(moved, ReplayBits(seed)) - 2**70 for seed in seeds] == plain
    many = {x: count * 2**61 for x, count in rows.items()}
    faint = quantile(Fraction(1, 3), epsilon=Fraction(1, 2**61))
    assert [faint.release(many, ReplayBits(seed)) for seed in seeds] == plain
    assert len(set(plain)) > 4


def test_a_share_with_a_long_denominator():
    # 0.123...: 10^25 steps a row. Of 1,000,000 rows, one at each point, the release is within the error of its rank.
    share = Fraction(1234567890123456789012345, 10**25)
    mechanism = quantile(share, upper=999)
    found = mechanism.release(dict.fromkeys(range(1000), 1000), ReplayBits(b"long"))
    assert abs(found - 123) <= 1


def test_the_same_row_as_numpy_integers():
    rows = {np.int64(3): np.int32(5), np.int8(4): 2}
    assert quantile().release(rows, ReplayBits(b"n")) == quantile().release({3: 5, 4: 2}, ReplayBits(b"n"))


@pytest.mark.slow
def test_a_hundred_thousand_points_are_quick():
    # 30 ms on a quiet machine, the best of several; a loop over the points in Python would take half a second.
    chance = np.random.default_rng(5)
    rows = dict(zip(chance.integers(0, 2**40, 100_000).tolist(), chance.integers(1, 9, 100_000).tolist(), strict=True))
    mechanism, best = quantile(upper=2**40), math.inf
    for seed in range(8):
        begin = time.process_time()
        mechanism.release(rows, ReplayBits(b"%d" % seed))
        best = min(best, time.process_time() - begin)
    assert best < 0.2


# The error


DATA = st.lists(st.integers(0, 10), max_size=40)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(DATA, st.sampled_from(SHARES), st.sampled_from([ADD, REPLACE]), st.sampled_from([0.5, 0.95, 0.999]))
def test_the_rank_is_within_the_error(rows, share, neighbors, confidence):
    mechanism = quantile(share, epsilon=3, rows=2, neighbors=neighbors)
    w, law = mechanism.error(confidence), mechanism.law(Counter(rows))
    good = math.fsum(float(p) for g, p in law.items() if missed(mechanism, rows, g) <= w)
    assert good >= confidence - 1e-12
    assert min(missed(mechanism, rows, g) for g in law) == 0


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_no_smaller_error_holds(share, neighbors):
    # The worst data: rows at both ends only, so that all points but the first (for MAX, the last) miss by a step more
    # than w - 1 rows.
    mechanism = quantile(share, epsilon=3, neighbors=neighbors)
    w, b = mechanism.error(0.95), share.denominator
    step = b * (w - 1) + 1
    assert w > 1
    if share in (MIN, MAX):
        near, far = step + mechanism.target - 1, 1000
    else:
        a = share.numerator
        near, far = next((n, m) for m in range(100) for n in range(200) if (b - a) * n - a * m == step)
    rows = [0] * near + [10] * far if share != MAX else [10] * near + [0] * far
    law = mechanism.law(Counter(rows))
    misses = Counter(missed(mechanism, rows, g) for g in law)
    assert misses == {Fraction(0): 1, Fraction(step, b): 10}
    assert math.fsum(float(p) for g, p in law.items() if missed(mechanism, rows, g) <= w - 1) < 0.95


def test_the_error_of_a_median():
    # 101 points, factor 1/2, half rows: ln(100 * 19)/(1/2) = 15.1, so 15 half rows at most, which is 8 rows.
    assert quantile(upper=100).error(0.95) == 8
    # Under replace 15 whole rows are 30 half rows at factor 1/4: floor(30.2) / 2.
    assert quantile(upper=100, neighbors=REPLACE).error(0.95) == 15
    # Twice the rows, and 2^40 points: 4 ln(19 * 2^40) = 122.7 half rows.
    assert quantile(rows=2, upper=2**40).error(0.95) == 61


# The least and the largest


def test_the_default_target_is_one_more_than_the_error():
    # 101 points, factor 1/2: the error is floor(15.1), and 16 rows are aimed at.
    for share in (MIN, MAX):
        assert quantile(share, upper=100).target == 16 == 1 + quantile(share, upper=100).error(0.95)
    assert quantile(MIN, upper=100, target=3).target == 3
    assert quantile(HALF).target is None


def test_where_epsilon_is_huge_the_least_is_the_least():
    # ln(10^6 * 19)/factor = 16.8/500: less than one row.
    mechanism = quantile(MIN, epsilon=1000, upper=10**6)
    assert mechanism.target == 1
    rows = {123_456: 1, 123_457: 1, 999_999: 3}
    assert all(mechanism.release(rows, ReplayBits(b"%d" % i)) == 123_456 for i in range(20))
    assert quantile(MAX, epsilon=1000, upper=10**6).release(rows, ReplayBits(b"x")) == 999_999


@pytest.mark.parametrize("share", [MIN, MAX], ids=str)
def test_without_a_target_the_release_would_lie_outside_all_rows(share):
    # 500 rows at 500..999 of 0..1499, one each. With target 1 each of the 500 points outside misses by one row only:
    # e^-0.5 each, 303 together, against 1 + e^-0.5 + e^-1 + ... = 2.54 for all inside and 0 for the far side.
    # By the default, 1 + floor(2 ln(1499 * 19)) = 21, they miss by 21: 500 e^-10.5 = 0.0138 against
    # (1 + e^-0.5)/(1 - e^-0.5) = 4.08.
    rows = dict.fromkeys(range(500, 1000), 1)

    def outside(target):
        law = quantile(share, upper=1499, target=target).law(rows)
        return math.fsum(float(p) for g, p in law.items() if (g < 500 if share == MIN else g > 999))

    assert outside(1) == pytest.approx(303.27 / (303.27 + 2.54), abs=1e-3)
    assert quantile(share, upper=1499).target == 21
    assert outside(None) == pytest.approx(0.01377 / 4.097, abs=1e-4)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10), min_size=0, max_size=60), st.sampled_from([2, 5, 20]))
def test_the_least_passes_over_at_most_twice_the_target(rows, epsilon):
    mechanism = quantile(MIN, epsilon=epsilon)
    if len(rows) < 2 * mechanism.target - 1:
        rows = rows + [5] * (2 * mechanism.target - 1)
    law = mechanism.law(Counter(rows))
    good = (p for g, p in law.items() if g >= min(rows) and sum(x < g for x in rows) <= 2 * mechanism.target - 2)
    assert math.fsum(map(float, good)) >= 0.95


@pytest.mark.parametrize("share", [MIN, MAX], ids=str)
def test_of_few_rows_the_one_in_the_middle_is_aimed_at(share):
    # Five rows and a target of 16: the third is the likeliest. Past all rows misses by 3, as does before all rows.
    mechanism = quantile(share, upper=100)
    law = mechanism.law({10: 1, 20: 1, 50: 1, 70: 1, 80: 1})
    assert max(law, key=lambda g: float(law[g])) == 50
    assert law[0].overlaps(law[100])
    with working_precision(128):
        assert (law[0] / law[50]).overlaps((-arb(3) / 2).exp())


# What is refused


@pytest.mark.parametrize(
    "histogram",
    [
        {11: 1},
        {-1: 1},
        {3: -1},
        {3: 1.0},
        {3.0: 1},
        {True: 1},
        {3: True},
        {"3": 1},
        [1, 2],
        None,
        {2**80: 1},
        {3: None},
    ],
    ids=repr,
)
def test_no_such_histogram(histogram):
    with pytest.raises(ParameterError, match="histogram: ") as refused:
        quantile().release(histogram, ReplayBits(b""))
    assert "11" not in str(refused.value) and "-1" not in str(refused.value)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, "0.5", None, True])
def test_no_such_share(share):
    with pytest.raises(ParameterError, match="share: "):
        quantile(share)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        quantile(epsilon=epsilon)


@pytest.mark.parametrize("rows", [0, -1, 1.0, "1", None, True])
def test_no_such_number_of_rows(rows):
    with pytest.raises(ParameterError, match="rows: "):
        quantile(rows=rows)


@pytest.mark.parametrize("neighbors", ["replace", None, 1])
def test_no_such_relation(neighbors):
    with pytest.raises(ParameterError, match="neighbors: "):
        quantile(neighbors=neighbors)


@pytest.mark.parametrize(
    ("lower", "upper", "name"), [(1, 0, "upper"), (0.0, 1, "lower"), (0, "1", "upper"), (0, 2**513, "upper")]
)
def test_no_such_grid(lower, upper, name):
    with pytest.raises(ParameterError, match=f"{name}: "):
        quantile(lower=lower, upper=upper)


@pytest.mark.parametrize("target", [0, -3, 1.0, True])
def test_no_such_target(target):
    with pytest.raises(ParameterError, match="target: "):
        quantile(MIN, target=target)


def test_a_target_is_for_the_least_and_the_largest_only():
    with pytest.raises(ParameterError, match="target: is for shares 0 and 1 only"):
        quantile(HALF, target=3)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, math.nan, "0.5", True])
def test_no_such_confidence(confidence):
    with pytest.raises(ParameterError, match="confidence: "):
        quantile().error(confidence)


def test_it_is_among_the_mechanisms():
    assert tacit.mechanisms.Quantile is Quantile
