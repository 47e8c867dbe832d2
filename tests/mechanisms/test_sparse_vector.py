"""The sparse vector technique: its theorem from the exact law, its split, that it stops."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Ones
from tests.support.counts import OFF, enough
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.mechanisms.sparse_vector import SparseVector
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits


def discrete(scale, reach):
    q = math.exp(-1 / float(scale))
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def test_the_law_is_the_definition():
    # epsilon 8, two integers: every y and every pair of z, straight from the definition.
    alarm = SparseVector(Fraction(8), threshold=1)
    outer, inner = discrete(alarm.threshold_scale, 14), discrete(alarm.scale, 14)
    found: Counter = Counter()
    for y, one, two in product(outer, inner, inner):
        first, second = 1 + one >= 1 + y, 0 + two >= 1 + y
        found[(True,) if first else (False, second)] += outer[y] * inner[one] * inner[two]
    law = alarm.law([1, 0])
    assert set(law) == set(found)
    for said, chance in law.items():
        assert float(chance) == pytest.approx(found[said], abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_no_ratio_passes_e_to_the_epsilon(count, monotone):
    # Three integers, all moves by at most one, everything that may be said.
    alarm = SparseVector(Fraction(2), 2, count, monotone=monotone)
    laws = {}

    def law(values):
        if values not in laws:
            laws[values] = alarm.law(values, digits=48)
        return laws[values]

    with working_precision(128):
        bound = to_interval(Fraction(2)).exp()
        for one in [(0, 2, 4), (2, 2, 2), (9, 0, -9)]:
            for move in product([-1, 0, 1], repeat=3):
                if any(move) and not (monotone and min(move) * max(move) < 0):
                    other = tuple(a + b for a, b in zip(one, move, strict=True))
                    assert all(law(one)[said] < bound * law(other)[said] for said in law(one))
                    assert all(law(other)[said] < bound * law(one)[said] for said in law(one))


def loss(alarm, said, one, other):
    return math.log(float(alarm.law(one)[said]) / float(alarm.law(other)[said]))


def test_the_bound_is_approached_and_the_flag_is_a_promise():
    # Ten times no about integers at the threshold, which is then likely to be high, and a yes about one far below it.
    # The ten rise by 1 while the last falls by 1: the loss is 1.99999 at epsilon 2.
    said = (*[False] * 10, True)
    before, after = [*[0] * 10, -19], [*[1] * 10, -20]
    assert 1.999 < loss(SparseVector(Fraction(2), 0), said, before, after) < 2
    # The noise for monotone integers has a = b = 1, and such a move costs a + 2b = 3.
    assert 2.999 < loss(SparseVector(Fraction(2), 0, monotone=True), said, before, after) < 3


def test_no_is_free():
    # However many no, the loss stays below epsilon: nine integers below the threshold that all rise.
    alarm = SparseVector(Fraction(1), 0)
    said = (False,) * 9
    assert abs(loss(alarm, said, [-2] * 9, [-1] * 9)) < 1


def test_the_split():
    # count 1: a : b = 1 : 2^(2/3), a = 1/(1 + 1.587401) = 0.386488 of epsilon; sensitivity/a = 2.587401 at epsilon 1,
    # and 2/b = 2/0.613512 = 3.259921.
    alarm = SparseVector.calibrated(1, 0, 1, 1)
    assert float(alarm.threshold_scale) == pytest.approx(2.587401, abs=1e-5)
    assert float(alarm.scale) == pytest.approx(3.259921, abs=1e-5)
    for count, sensitivity, monotone in product([1, 2, 10, 10**6], [1, 7], [False, True]):
        alarm = SparseVector(Fraction(1, 3), 0, count, sensitivity, monotone)
        moves = count * sensitivity * (1 if monotone else 2)
        # The two parts are exactly epsilon together, whatever the rounding of the split.
        assert sensitivity / alarm.threshold_scale + moves / alarm.scale == Fraction(1, 3)
    assert SparseVector.calibrated(1, 0, 3, 0).sensitivity == 1
    assert SparseVector(0.1, 0, 3).loss() == PureDp(Fraction(1, 10))


def test_the_split_is_the_best():
    # The variance of z - y is 2 scale^2 + 2 threshold_scale^2: a hundredth more or less for the threshold is worse.
    for count, monotone in product([1, 5, 100], [False, True]):
        alarm = SparseVector(Fraction(1), 0, count, monotone=monotone)
        moves, part = count * (1 if monotone else 2), 1 / float(alarm.threshold_scale)

        def spread(a, moves=moves):
            return 1 / a**2 + (moves / (1 - a)) ** 2

        assert spread(part) < min(spread(0.99 * part), spread(1.01 * part))


def test_it_stops_after_the_last_yes():
    values = [0, 10, 4, 12, 5, 99]
    # Without noise: yes at 10, 12 (the second), then silence.
    assert SparseVector(Fraction(1), 5, 2).release(values, Ones()) == [False, True, False, True]
    assert SparseVector(Fraction(1), 5, 3).release(values, Ones()) == [False, True, False, True, True]
    assert SparseVector(Fraction(1), 5, 9).release(values, Ones()) == [False, True, False, True, True, True]
    assert SparseVector(Fraction(1), 5).release([], Ones()) == []


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_run_is_never_copied(again):
    # Its copy would say every yes once more, by the same noisy threshold.
    with pytest.raises(TypeError, match="a SparseVectorRun cannot be copied"):
        again(SparseVector(Fraction(1), 0, 1).watch(Ones()))


def test_one_at_a_time():
    watch = SparseVector(Fraction(1), 2**63 + 1, 1).watch(Ones())
    assert not watch.above(2**63)
    assert not watch.is_stopped
    assert watch.above(2**63 + 1)
    assert watch.is_stopped
    with pytest.raises(Refused) as refused:
        watch.above(0)
    assert refused.value.code is ErrorCode.BUDGET


def test_threads_get_no_more():
    # 40 threads ask at once what is far above: 5 of them get a yes, the others are refused.
    watch, said = SparseVector(Fraction(1), 0, 5).watch(ReplayBits(b"threads")), []

    def ask():
        try:
            said.append(watch.above(10**6))
        except Refused:
            said.append(None)

    threads = [Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(said) == {True: 5, None: 35}


def test_one_threshold_for_all():
    # The threshold's noise is drawn once, so two words about equal integers agree more often than with fresh noise:
    # both are yes with probability 0.3175, and one is with 0.5207, whose square is 0.2712.
    law = SparseVector(Fraction(1), 0, 3).law([0, 0])
    assert float(law[(True, True)]) == pytest.approx(0.317509, abs=1e-6)
    assert float(law[(True, True)]) + float(law[(True, False)]) == pytest.approx(0.520730, abs=1e-6)


@pytest.mark.slow
def test_release_has_the_law():
    # 7 things to say; a false alarm in at most 1e-11. More epsilon is rejected.
    count = enough(20_000)
    values, bits = [-6, 4, -2], ReplayBits(b"sparse")
    alarm = SparseVector(Fraction(3), 0, 2)
    seen = Counter(tuple(alarm.release(values, bits)) for _ in range(count))
    law, off = alarm.law(values), SparseVector(3 * (1 + OFF), 0, 2).law(values)
    observed = [seen[said] for said in law]
    assert sum(observed) == count
    assert chi_square(observed, [count * float(p) for p in law.values()]) > 1e-11
    assert chi_square(observed, [count * float(off[said]) for said in law]) < 1e-9


def test_the_error_holds():
    # Of 3 integers: the chance that a yes is below threshold - w or a no at threshold + w or above.
    alarm = SparseVector(Fraction(2), 0, 3)
    for confidence in (0.5, 0.8):
        w = alarm.error(3, confidence)
        values = [-w - 1, 0, w]
        wrong = math.fsum(float(p) for said, p in alarm.law(values).items() if said[0] or not said[2])
        assert wrong <= 1 - confidence


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        SparseVector(epsilon, 0)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(), st.text(), st.booleans(), st.none()))
def test_no_such_integers(bad):
    with pytest.raises(ParameterError, match="threshold: "):
        SparseVector(Fraction(1), bad)
    with pytest.raises(ParameterError, match="values: "):
        SparseVector(Fraction(1), 0).release([bad], Ones())
    with pytest.raises(ParameterError, match="value: "):
        SparseVector(Fraction(1), 0).watch(Ones()).above(bad)
    with pytest.raises(ParameterError, match="count: "):
        SparseVector(Fraction(1), 0, bad)
