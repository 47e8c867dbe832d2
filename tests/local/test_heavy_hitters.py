"""Heavy hitters are found and rare strings are not; what is not looked into is told."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.local.hadamard_response import HadamardResponse
from tacit.local.heavy_hitters import HeavyHitterSearch
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.unary_encoding import OptimizedUnaryEncoding
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def crowd(shares, rare, users):
    """People with common words, and the rest with words of their own."""
    rng = np.random.default_rng(3)
    words = [word for word, share in shares.items() for _ in range(int(share * users))]
    own = rng.integers(0, 26, (users - len(words), rare))
    return words + ["".join(LETTERS[i] for i in row) for row in own]


@pytest.mark.parametrize("make", [HadamardResponse, OptimizedUnaryEncoding])
def test_all_common_strings_are_found_with_intervals_that_hold(make):
    shares = {"apple": 0.2, "apply": 0.15, "fig": 0.1, "zebra": 0.12, "": 0.08}
    people = crowd(shares, 5, 100_000)
    # misses have a chance of 1e-9: the confidence
    search = HeavyHitterSearch(
        make, LETTERS, length=5, epsilon=4, threshold=Fraction(7, 100), confidence=1 - Fraction(1, 10**9)
    )
    found = search.find(people, ReplayBits(b"words"))
    shown = {each.text: each for each in found.strings}
    assert found.is_complete and set(shares) <= set(shown)
    for word, share in shares.items():
        assert shown[word].low <= share <= shown[word].high
    # what else is shown might be at the threshold, as far as anyone can tell
    assert all(each.high >= 0.07 for each in found.strings)
    assert len(found.strings) <= 10
    assert found.strings[0].text == "apple"


def test_nothing_common_is_an_empty_list():
    people = crowd({}, 4, 60_000)
    search = HeavyHitterSearch(
        KAryRandomizedResponse, "abcdefghijklmnopqrstuvwxyz", length=4, epsilon=6, threshold=Fraction(1, 5)
    )
    assert search.find(people, ReplayBits(b"noise")).strings == ()


def test_longer_strings_are_cut_and_short_ones_end():
    search = HeavyHitterSearch(KAryRandomizedResponse, "ab", length=2, epsilon=1)
    assert [search.prefix(text, 2) for text in ("abba", "ab", "a", "")] == ["ab", "ab", "a\0", "\0"]
    first = search.first_round()
    assert first.prefixes == ("a", "b", "\0")
    survivors = first.collect(first.encode(["a"] * 50 + [""] * 50, ReplayBits(b"few")))
    assert {"a", "\0"} <= {each.text for each in survivors}
    second = first.next([each for each in survivors if each.text != "b"])
    assert set(second.prefixes) == {"aa", "ab", "a\0", "\0"}


def test_dropped_prefixes_make_a_result_incomplete():
    people = crowd({"aa": 0.3, "bb": 0.3, "cc": 0.3}, 2, 20_000)
    found = HeavyHitterSearch(
        KAryRandomizedResponse, LETTERS, length=2, epsilon=4, threshold=Fraction(1, 10), most=1
    ).find(people, ReplayBits(b"one"))
    assert not found.is_complete


def test_a_person_pays_for_one_report():
    assert HeavyHitterSearch(KAryRandomizedResponse, "ab", length=8, epsilon=2).loss() == PureDp(Fraction(2))
    for wrong in [{"alphabet": "aa"}, {"alphabet": ""}, {"length": 0}, {"threshold": 0}, {"most": 0}]:
        with pytest.raises(ParameterError):
            HeavyHitterSearch(**({"make": KAryRandomizedResponse, "alphabet": "ab", "length": 2, "epsilon": 1} | wrong))


def test_a_string_of_other_letters_is_told_as_the_rest():
    # all have CAT, and the alphabet has small letters: nothing is found, and the rest is everyone
    search, bits = (
        HeavyHitterSearch(HadamardResponse, "abc", 3, 3, 0.1, confidence=1 - Fraction(1, 10**9)),
        ReplayBits(b"capitals"),
    )
    found = search.find(["CAT"] * 50_000, bits)
    assert found.strings == () and found.is_complete
    assert 0.9 < found.rest.low <= 1 <= found.rest.high
    # the end of a string is no letter: "a\0b" is not "a"
    ended = search.find(["a\0b"] * 50_000, bits)
    assert not ended.strings and ended.rest.low > 0.9


@pytest.mark.parametrize("make", [HadamardResponse, KAryRandomizedResponse])
def test_the_interval_of_the_rest_holds(make):
    # a fifth have words of the alphabet, found in each run but for 1e-9 of its confidence; the rest have none
    people, bits = ["ab"] * 3000 + ["ba"] * 3000 + ["Ab"] * 4000, ReplayBits(b"rest")
    search = HeavyHitterSearch(
        make, "ab", length=2, epsilon=2, threshold=Fraction(1, 10), confidence=1 - Fraction(1, 10**9)
    )
    for _ in range(20):
        found = search.find(people, bits)
        assert found.rest.low <= 0.4 <= found.rest.high and found.rest.low > 0
        assert {"ab", "ba"} <= {each.text for each in found.strings}


def test_what_is_no_list_of_strings_is_an_error():
    search, bits = (
        HeavyHitterSearch(HadamardResponse, LETTERS, length=3, epsilon=3, threshold=0.1),
        ReplayBits(b"wrong"),
    )
    for wrong in ("catcat", b"cat", 5, None, [1, 2, 3] * 100, [None] * 100, ["cat", 5]):
        with pytest.raises(ParameterError, match="strings"):
            search.find(wrong, bits)
        with pytest.raises(ParameterError, match="strings"):
            search.first_round().encode(wrong, bits)


def test_the_values_of_a_column_are_taken_whatever_its_index():
    pandas = pytest.importorskip("pandas")
    search = HeavyHitterSearch(HadamardResponse, LETTERS, length=3, epsilon=3, threshold=0.1)
    words = ["cat"] * 300 + ["dog"] * 100
    plain = search.find(words, ReplayBits(b"column"))
    assert search.find(pandas.Series(words, index=range(5, 405)), ReplayBits(b"column")) == plain
    assert search.find(np.array(words), ReplayBits(b"column")) == plain


def test_too_few_people_are_told_how_many_it_takes():
    search = HeavyHitterSearch(HadamardResponse, LETTERS, length=10, epsilon=3, threshold=0.1)
    # V = ((e^3 + 1)/(e^3 - 1))^2 = 1.2206; 28 values, 10 rounds: z = 3.7475, so 10 ceil(1.2206 37.475^2)
    assert search.required_users == 17_150
    for people in ([], ["cat"], ["cat"] * 9):
        with pytest.raises(ParameterError, match="too few for 10 rounds") as caught:
            search.find(people, ReplayBits(b"few"))
        assert "17,150" in caught.value.fix
    # with so many, more than half of the letters that nobody has are ruled out in the first round; with 4 times, all
    first, bits = search.first_round(), ReplayBits(b"enough")
    for times, most in ((1, 14), (4, 2)):
        assert len(first.collect(first.encode(["cat"] * (times * search.required_users // 10), bits))) <= most


def test_the_end_is_one_character():
    for wrong in ("zz", "", "a", 5, None):
        with pytest.raises(ParameterError):
            HeavyHitterSearch(KAryRandomizedResponse, "abc", 3, 1, end=wrong)
    with pytest.raises(ParameterError):
        HeavyHitterSearch(KAryRandomizedResponse, ["a", "b"], 3, 1)


@pytest.mark.parametrize("make", [KAryRandomizedResponse, OptimizedUnaryEncoding])
def test_liars_who_choose_their_round_move_it_by_no_more_than_stated(make):
    # five rounds: 2 percent of all people, in one round, are 0.1/1.08 = 9.26 percent of it
    search, bits = HeavyHitterSearch(make, "ab", length=5, epsilon=2), ReplayBits(b"liars")
    first, honest, liars = search.first_round(), 19_600, 2_000
    assert search.influence(0.02, 3) == first.influence(0.02) == pytest.approx(2000 / 21_600 / first.protocol.gap)
    reports = first.encode(["b"] * honest, bits)
    lie = 0 if make is KAryRandomizedResponse else np.packbits([1, 0, 0, 0])
    sent = np.concatenate([reports, np.stack([lie] * liars)])
    moved = {each.text: each for each in first.collect(sent)}["a"].value
    # nobody has an "a": the noise of 19,600 honest reports is below 6.5 deviations, 1e-10
    noise = 6.5 * first.protocol.variance(honest) ** 0.5
    assert first.protocol.influence(0.02) + noise < moved < first.influence(0.02) + noise
    assert moved > 0.6 * first.influence(0.02)
    # 256 prefixes with 3 letters each is the most, and 2 + 1 letters to the fifth power are fewer
    assert search.influence(0.02) == pytest.approx(make(3**5 + 1, 2).influence(2000 / 21_600))
