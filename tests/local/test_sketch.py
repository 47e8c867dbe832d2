"""A sketch counts values from a domain without end, with the variance and the intervals that it states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.support.counts import FULL

from tacit.errors import ParameterError, Refused
from tacit.local.hadamard import Hadamard
from tacit.local.k_ary import KAry
from tacit.local.sketch import Sketch, collisions
from tacit.local.unary import OptimizedUnary
from tacit.sampling.bits import ReplayBits


@pytest.mark.parametrize("make", [Hadamard, OptimizedUnary])
def test_a_sketch_is_unbiased_over_its_functions_with_the_stated_spread(make):
    shares = {"red": 0.5, "green": 0.3, "blue": 0.15, "gold": 0.05}
    people = [word for word, share in shares.items() for _ in range(int(share * 2000))]
    runs, bits, scores = 60, ReplayBits(b"sketch"), {word: [] for word in [*shares, "none"]}
    for run in range(runs):
        words = Sketch(make, width=32, rows=8, epsilon=3, seed=b"seed %d" % run)
        counts = words.collect(words.encode(people, bits))
        for word, found in scores.items():
            each = words.estimate(counts, word)
            found.append((each.value - shares.get(word, 0.0)) / each.deviation)
    for found in scores.values():
        # the mean of 60 scores is within 6.5/sqrt(60), 1e-10; the stated deviation is an upper bound, and not idle
        assert abs(np.mean(found)) < 6.5 / math.sqrt(runs)
        assert 0.3 < np.std(found) < 1.6  # chi-square of 60, below 1e-9


def test_collisions_are_part_of_the_deviation():
    # one function, two cells: a value that is not there shares its cell with everyone or with nobody
    words = Sketch(KAry, width=2, rows=1, epsilon=8)
    counts = words.collect(words.encode(["here"] * 2000, ReplayBits(b"two")))
    found = words.estimate(counts, "gone")
    assert abs(found.value) == pytest.approx(1, abs=0.01)
    assert words.estimate(counts, "here").value == pytest.approx(1, abs=0.01)


def test_sketches_of_other_functions_do_not_merge():
    one, other = (Sketch(KAry, 4, 2, 1, seed=seed) for seed in (b"a", b"b"))
    mine, theirs = (each.collect(each.encode(["x"], ReplayBits(b"x"))) for each in (one, other))
    with pytest.raises(Refused, match="two surveys"):
        mine[0].merge(theirs[0])
    with pytest.raises(Refused, match="two surveys"):
        mine[0].merge(mine[1])
    for wrong in [{"width": 3}, {"rows": 0}, {"seed": b"x" * 60}]:
        with pytest.raises(ParameterError):
            Sketch(**({"make": KAry, "width": 4, "rows": 2, "epsilon": 1} | wrong))


@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_variance_is_the_closed_form(epsilon):
    # a word that nobody has, and one of 30 percent, over functions and reports
    shares = {"red": 0.3, "green": 0.3, "blue": 0.2, "gold": 0.2}
    users, runs, bits = 300, 8000 if FULL else 1200, ReplayBits(b"closed")
    people = [word for word, share in shares.items() for _ in range(round(share * users))]
    errors = {"none": [], "red": []}
    for run in range(runs):
        words = Sketch(KAry, width=16, rows=6, epsilon=epsilon, seed=b"closed %d" % run)
        counts = words.collect(words.encode(people, bits))
        for word, found in errors.items():
            found.append(words.estimate(counts, word).value - shares.get(word, 0.0))
    for word, found in errors.items():
        squared = np.square(found)
        spread = squared.std() / math.sqrt(runs)
        share = shares.get(word, 0.0)
        others = sum(each**2 for other, each in shares.items() if other != word)
        stated = words.variance(users, share, others)
        # the mean square is within 6.5 of its deviations by the normal law, 1e-10
        assert abs(squared.mean() - stated) < 6.5 * spread
        # power: a form off by 40 percent is found out, and so is one that knows of no collisions
        assert abs(squared.mean() - 1.4 * stated) > 6.5 * spread
        if epsilon == 4:
            assert abs(squared.mean() - words.protocol.variance(users, share)) > 6.5 * spread
        assert stated < words.variance(users, share)  # the most that other people can do


def test_the_variance_worked_out_by_hand():
    # Hadamard at epsilon ln 3: p = 3/4, q = 1/2, gap 1/4; width 2: c = 1/2 + 1/8 = 5/8, c (1 - c) = 15/64
    words = Sketch(Hadamard, width=2, rows=4, epsilon=math.log(3))
    # f = 0, all different: 4 (15/64) 16/n = 15/n
    assert words.variance(100, 0.0, 1 / 100) == pytest.approx(15 / 100)
    # all alike: (1 - 1/n)/4 more
    assert words.variance(100) == pytest.approx(15 / 100 + (1 - 1 / 100) / 4)
    # f = 1: 4 (3/16) 16/n
    assert words.variance(100, 1.0) == pytest.approx(12 / 100)
    for wrong in [(0,), (100, 1.5), (100, "a"), (100, 0.5, 0.3), (100, 0.5, 0.001)]:
        with pytest.raises(ParameterError):
            words.variance(*wrong)


@pytest.mark.parametrize(("make", "epsilon"), [(Hadamard, 1), (KAry, 4)])
def test_intervals_cover_over_functions_and_reports(make, epsilon):
    shares = {"red": 0.6, "green": 0.3, "blue": 0.1}
    users, runs, bits = 1000, 2000 if FULL else 300, ReplayBits(b"cover")
    people = [word for word, share in shares.items() for _ in range(round(share * users))]
    misses, without = dict.fromkeys([*shares, "none"], 0), 0
    for run in range(runs):
        words = Sketch(make, width=16, rows=8, epsilon=epsilon, seed=b"cover %d" % run)
        counts = words.collect(words.encode(people, bits))
        for word in misses:
            found = words.estimate(counts, word, 0.9)
            misses[word] += not found.low <= shares.get(word, 0.0) <= found.high
        without += abs(found.value) > 1.645 * math.sqrt(words.protocol.variance(users))
    # more has a chance below 1e-10, if the miss is at most a tenth
    assert max(misses.values()) <= binom.isf(1e-10, runs, 0.1)
    # power: an interval of the reports alone is found out where collisions are most of the error
    assert epsilon == 1 or without > binom.isf(1e-10, runs, 0.1)
    assert found.high - found.low < 0.4


@given(rows=st.integers(1, 200), bits=st.integers(1, 10), miss=st.floats(1e-9, 0.4))
@settings(max_examples=60, deadline=None)
def test_collisions_end_where_their_tails_are_below_the_miss(rows, bits, miss):
    # the widest average of numbers from 0 to 1 is that of coins
    low, high = collisions(rows, 2.0**-bits, miss)
    assert 0 <= low < 2.0**-bits < high <= 1
    if high < 1:
        assert binom.sf(math.ceil(rows * high) - 1, rows, 2.0**-bits) <= miss * (1 + 1e-9)
    if low > 0:
        assert binom.cdf(math.floor(rows * low), rows, 2.0**-bits) <= miss * (1 + 1e-9)


def test_no_report_is_lost():
    words, bits = Sketch(Hadamard, width=16, rows=4, epsilon=3), ReplayBits(b"lost")
    drawn, reports = words.encode(["a"] * 1000, bits)
    assert sum(each.users for each in words.collect((drawn, reports))) == 1000
    assert sum(each.users for each in words.collect((drawn.tolist(), reports.tolist()))) == 1000
    strange = np.where(np.arange(1000) < 500, 99, drawn)
    with pytest.raises(Refused, match="500 of 1000"):
        words.collect((strange, reports))
    with pytest.raises(Refused, match="1000 of 1000"):
        words.collect((np.full(1000, -1), reports))
    for wrong in [
        (drawn[:10], reports),
        (drawn, reports[:10]),
        (drawn + 0.5, reports),
        (drawn, reports + 99),
        (drawn,),
        5,
    ]:
        with pytest.raises(Refused) as caught:
            words.collect(wrong)
        assert caught.value.fix
    assert [each.users for each in words.collect(words.encode([], bits))] == [0] * 4
    with pytest.raises(ParameterError, match="nobody"):
        words.estimate(words.collect(words.encode([], bits)), "a")


def test_summaries_of_another_sketch_are_refused():
    words, bits = Sketch(Hadamard, width=16, rows=4, epsilon=3), ReplayBits(b"other")
    counts = words.collect(words.encode(["a"] * 100, bits), "x")
    again = words.collect(words.encode(["a"] * 100, bits), "y")
    assert words.estimate(counts, "a").value == pytest.approx(1, abs=0.9)
    for other in [
        Sketch(Hadamard, width=16, rows=4, epsilon=3, seed=b"o"),
        Sketch(Hadamard, width=32, rows=4, epsilon=3),
        Sketch(Hadamard, width=16, rows=4, epsilon=2),
        Sketch(Hadamard, width=16, rows=5, epsilon=3),
        Sketch(KAry, width=16, rows=4, epsilon=3),
    ]:
        with pytest.raises(Refused, match="functions of this sketch"):
            other.estimate(counts, "a")
    for wrong in (counts[:2], counts[::-1], (*counts, counts[0]), (counts[0], *again[1:])):
        with pytest.raises(Refused):
            words.estimate(wrong, "a")
    # rows are told apart, and so are sketches of another number of them
    assert len({each.mark for each in (*counts, *again)}) == 8
    five = Sketch(Hadamard, width=16, rows=5, epsilon=3)
    assert five.collect(five.encode([], bits), "x")[0].mark != counts[0].mark


def test_a_string_is_not_a_list_of_strings():
    words, bits = Sketch(Hadamard, width=16, rows=4, epsilon=3), ReplayBits(b"string")
    for wrong in ("cat", b"cat", [1, 2], [None], 5):
        with pytest.raises(ParameterError, match="strings"):
            words.encode(wrong, bits)
    with pytest.raises(ParameterError, match="strings"):
        words.estimate(words.collect(words.encode(["a"], bits)), 5)
    assert len(words.encode(["\ud800"], bits)[1]) == 1  # half a character has a cell too


def test_liars_move_a_share_by_their_part_whichever_function_they_choose():
    # 50 of 1000 lie, all by one function, for the cell of one word: 0.05 (16/15)/(p - q), and no honest report has it
    words = Sketch(KAry, width=16, rows=4, epsilon=2)
    cells = [words.cell(row, "planted") for row in range(4)]
    honest = [(cell + 1) % 16 for cell in cells]
    drawn, reports = np.arange(1000) % 4, np.array(honest * 250)
    before = words.estimate(words.collect((drawn, reports)), "planted").value
    drawn[:50], reports[:50] = 2, cells[2]
    moved = words.estimate(words.collect((drawn, reports)), "planted").value - before
    assert moved == pytest.approx(words.influence(0.05)) == pytest.approx(0.05 * 16 / 15 / words.protocol.gap)
    with pytest.raises(ParameterError):
        words.influence(1.5)
