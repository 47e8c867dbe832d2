"""Heavy hitters are found and rare strings are not; a sketch counts values from a domain without end."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import ParameterError, Refused
from tacit.local.hadamard import Hadamard
from tacit.local.heavy import Heavy
from tacit.local.k_ary import KAry
from tacit.local.sketch import Sketch
from tacit.local.unary import OptimizedUnary
from tacit.privacy.loss import Pure
from tacit.sampling.bits import ReplayBits

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def crowd(shares, rare, users):
    """People with common words, and the rest with words of their own."""
    rng = np.random.default_rng(3)
    words = [word for word, share in shares.items() for _ in range(int(share * users))]
    own = rng.integers(0, 26, (users - len(words), rare))
    return words + ["".join(LETTERS[i] for i in row) for row in own]


@pytest.mark.parametrize("make", [Hadamard, OptimizedUnary])
def test_all_common_strings_are_found_with_intervals_that_hold(make):
    shares = {"apple": 0.2, "apply": 0.15, "fig": 0.1, "zebra": 0.12, "": 0.08}
    people = crowd(shares, 5, 100_000)
    # misses have a chance of 1e-9: the confidence
    search = Heavy(make, LETTERS, length=5, epsilon=4, threshold=Fraction(7, 100), confidence=1 - Fraction(1, 10**9))
    found = search.find(people, ReplayBits(b"words"))
    shown = {each.text: each for each in found.strings}
    assert found.complete and set(shares) <= set(shown)
    for word, share in shares.items():
        assert shown[word].low <= share <= shown[word].high
    # what else is shown might be at the threshold, as far as anyone can tell
    assert all(each.high >= 0.07 for each in found.strings)
    assert len(found.strings) <= 10
    assert found.strings[0].text == "apple"


def test_nothing_common_is_an_empty_list():
    people = crowd({}, 4, 60_000)
    search = Heavy(KAry, "abcdefghijklmnopqrstuvwxyz", length=4, epsilon=6, threshold=Fraction(1, 5))
    assert search.find(people, ReplayBits(b"noise")).strings == ()


def test_longer_strings_are_cut_and_short_ones_end():
    search = Heavy(KAry, "ab", length=2, epsilon=1)
    assert [search.beginning(text, 2) for text in ("abba", "ab", "a", "")] == ["ab", "ab", "a\0", "\0"]
    first = search.first()
    assert first.beginnings == ("a", "b", "\0")
    survivors = first.collect(first.encode(["a"] * 50 + [""] * 50, ReplayBits(b"few")))
    assert {"a", "\0"} <= {each.text for each in survivors}
    second = first.next([each for each in survivors if each.text != "b"])
    assert set(second.beginnings) == {"aa", "ab", "a\0", "\0"}


def test_dropped_beginnings_are_told():
    people = crowd({"aa": 0.3, "bb": 0.3, "cc": 0.3}, 2, 20_000)
    found = Heavy(KAry, LETTERS, length=2, epsilon=4, threshold=Fraction(1, 10), most=1).find(
        people, ReplayBits(b"one")
    )
    assert not found.complete


def test_a_person_pays_for_one_report():
    assert Heavy(KAry, "ab", length=8, epsilon=2).loss() == Pure(Fraction(2))
    for wrong in [{"alphabet": "aa"}, {"alphabet": ""}, {"length": 0}, {"threshold": 0}, {"most": 0}]:
        with pytest.raises(ParameterError):
            Heavy(**({"make": KAry, "alphabet": "ab", "length": 2, "epsilon": 1} | wrong))


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
