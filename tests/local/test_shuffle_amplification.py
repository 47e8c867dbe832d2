"""Shuffling: the upper bound holds for every randomizer tried, the lower one is a real one's; both are monotone."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betainc
from tests.support.counts import FULL, examples, some

from tacit.accounting import epsilon as price
from tacit.arithmetic import working_precision
from tacit.errors import ParameterError
from tacit.local.hadamard_response import HadamardResponse
from tacit.local.hierarchical_histogram import HierarchicalHistogram
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.local_hashing import OptimizedLocalHashing
from tacit.local.mean_mechanisms import HybridMechanism, PiecewiseMechanism, StochasticRounding
from tacit.local.projective_geometry import ProjectiveGeometryResponse
from tacit.local.rappor import Rappor
from tacit.local.shuffle_amplification import ShuffleAmplification
from tacit.local.shuffle_divergence import expected_positive_part
from tacit.local.shuffle_lower_bounds import _number_probabilities, _pair_probabilities
from tacit.local.subset import SubsetSelection
from tacit.local.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding
from tacit.local.uniform_grid import UniformGrid
from tacit.privacy.loss import ApproximateDp, Repeat

DELTA = 1e-6


def histogram_law(rows):
    """The law of the histogram of independent reports, a row of chances for each person."""
    law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        law = one_more(law, row)
    return law


def one_more(law, row):
    """The law of the histogram with one more person."""
    after = {}
    for counts, chance in law.items():
        for report, share in enumerate(row):
            key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
            after[key] = after.get(key, 0.0) + chance * share
    return after


def true_delta(one, other, rest, epsilon):
    """The exact delta of the shuffled reports where person 1 reports by `one` or by `other`, the rest as given."""
    p, q = histogram_law([one, *rest]), histogram_law([other, *rest])
    return sum(max(0.0, p[key] - math.exp(epsilon) * q[key]) for key in p)


def worst_deltas(rows, users, epsilons):
    """The largest exact delta, at each epsilon, of any two crowds of so many people that differ in one of them."""
    found = np.zeros(len(epsilons))
    for rest in combinations_with_replacement(rows, users - 1):
        others = histogram_law(rest) if rest else {(0,) * len(rows[0]): 1.0}
        laws = [np.array([chance for _, chance in sorted(one_more(others, row).items())]) for row in rows]
        for p, q in permutations(laws, 2):
            found = np.maximum(found, [np.maximum(0, p - math.exp(a) * q).sum() for a in epsilons])
    return found


def table(protocol):
    return [[float(chance) for chance in row] for row in protocol.matrix().rows]


def number_of_people(reports):
    """Few enough that all crowds can be listed."""
    return (1, 2, 3, 6) if reports <= 4 else (1, 2, 3) if reports <= 8 else (1, 2)


SMALL = [
    *(
        kind(2, Fraction(2))
        for kind in (
            KAryRandomizedResponse,
            SymmetricUnaryEncoding,
            OptimizedUnaryEncoding,
            OptimizedLocalHashing,
            HadamardResponse,
            SubsetSelection,
        )
    ),
    *(
        kind(3, Fraction(3, 2))
        for kind in (
            KAryRandomizedResponse,
            SymmetricUnaryEncoding,
            OptimizedUnaryEncoding,
            OptimizedLocalHashing,
            HadamardResponse,
        )
    ),
    *(kind(4, Fraction(1, 2)) for kind in (KAryRandomizedResponse, SubsetSelection, ProjectiveGeometryResponse)),
    *(
        SubsetSelection(3, 1),
        ProjectiveGeometryResponse(3, 1),
        ProjectiveGeometryResponse(2, 1),
        Rappor(2, 4),
        Rappor(3, 4),
        KAryRandomizedResponse(5, 3),
    ),
    *(
        kind(UniformGrid(0, 1, steps), 1)
        for kind in (StochasticRounding, PiecewiseMechanism, HybridMechanism)
        for steps in (1, 2, 3)
    ),
    HybridMechanism(UniformGrid(0, 1, 2), Fraction(1, 2)),
]


@given(data=st.data())
@settings(max_examples=examples(80), deadline=None)
def test_no_randomizer_loses_more_than_the_upper_bound(data):
    inputs, reports, users = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4)), data.draw(st.integers(1, 6))
    weight = st.sampled_from([1.0, 1.0, 1.5, 2.0, 4.0])
    table = [[data.draw(weight) for _ in range(reports)] for _ in range(inputs)]
    rows = [[entry / sum(row) for entry in row] for row in table]
    local = max(math.log(a[r] / b[r]) for a, b in product(rows, rows) for r in range(reports))
    if local < 1e-3:
        return
    rest = [rows[data.draw(st.integers(0, inputs - 1))] for _ in range(users - 1)]
    crowd = ShuffleAmplification(local, users)
    for share in (0.0, 0.2, 0.5, 0.9):
        assert true_delta(rows[0], rows[1], rest, share * local) <= crowd.delta(share * local) + 1e-12


@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_known_variation_is_enough_for_the_bound(data):
    inputs, reports, users = data.draw(st.integers(2, 4)), data.draw(st.integers(3, 4)), data.draw(st.integers(1, 5))
    table = [[data.draw(st.sampled_from([1.0, 1.0, 3.0])) for _ in range(reports)] for _ in range(inputs)]
    rows = [[entry / sum(row) for entry in row] for row in table]
    local = max(math.log(a[r] / b[r]) for a, b in product(rows, rows) for r in range(reports))
    variation = sum(max(0.0, p - q) for p, q in zip(rows[0], rows[1], strict=True))
    if variation < 1e-3:
        return
    rest = [rows[data.draw(st.integers(0, inputs - 1))] for _ in range(users - 1)]
    crowd = ShuffleAmplification(local, users, variation * (1 + 1e-12))
    for part in (0.1, 0.5, 0.9):
        assert true_delta(rows[0], rows[1], rest, part * local) <= crowd.delta(part * local) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("protocol", some(SMALL, 2), ids=repr)
def test_the_bounds_of_a_protocol_hold_between_them_the_delta_of_its_worst_crowds(protocol):
    rows = table(protocol)
    for users in number_of_people(len(rows[0])):
        crowd = ShuffleAmplification.of(protocol, users)
        epsilons = [share * float(crowd.epsilon) for share in (0.0, 0.1, 0.4, 0.8)]
        for a, exact in zip(epsilons, worst_deltas(rows, users, epsilons), strict=True):
            assert crowd.least_delta(a) <= exact * (1 + 1e-12) and exact <= crowd.delta(a) * (1 + 1e-12)
            # A single person is not hidden, and the bound says all of it.
            assert crowd.least_delta(a) > (0.999999 if users == 1 else 0.5) * exact


def test_the_lower_bound_of_two_bits_is_the_enumerated_one():
    # All 6 people but one have the same value: 0.06603, where randomized response with three values has 0.146.
    protocol = SymmetricUnaryEncoding(2, 2)
    (exact,) = worst_deltas(table(protocol), 6, [0.8])
    assert exact == pytest.approx(0.06603, abs=1e-5)
    assert ShuffleAmplification.of(protocol, 6).least_delta(0.8) == pytest.approx(exact, rel=1e-6)


def test_thirty_people_who_say_yes_or_no():
    # Of the others m say yes: 0.0402 at m = 0, and 0.0408 at the worst m; with three values it would be 0.0432.
    rows, low = (
        table(KAryRandomizedResponse(2, 1)),
        ShuffleAmplification.of(KAryRandomizedResponse(2, 1), 30).least_delta(0.1),
    )
    exact = [true_delta(rows[0], rows[1], [rows[0]] * (29 - m) + [rows[1]] * m, 0.1) for m in range(30)]
    assert low == pytest.approx(max(exact[0], exact[29]), rel=1e-6) == pytest.approx(0.0402, abs=1e-4)
    assert low < max(exact) == pytest.approx(0.0408, abs=1e-4)


def test_the_classes_of_three_values_are_those_of_the_matrix():
    for kind in (
        KAryRandomizedResponse,
        SymmetricUnaryEncoding,
        OptimizedUnaryEncoding,
        OptimizedLocalHashing,
        HadamardResponse,
        SubsetSelection,
        ProjectiveGeometryResponse,
        Rappor,
    ):
        for domain, epsilon in [(3, 1), (4, 2), (5, Fraction(1, 2)), (7, 4)]:
            protocol = kind(domain, epsilon)
            rows = protocol.matrix().rows
            with working_precision(256):
                odds, b, c = map(float, _pair_probabilities(protocol))
            up = [r for r in range(len(rows[0])) if rows[1][r] > rows[2][r]]
            alone = [r for r in up if rows[0][r] == rows[2][r]]
            down = [r for r in range(len(rows[0])) if rows[2][r] > rows[1][r] == rows[0][r]]
            assert float(sum(rows[2][r] for r in up)) == pytest.approx(b, rel=1e-12)
            assert float(sum(rows[1][r] for r in up)) == pytest.approx(odds * b, rel=1e-12)
            assert float(sum(rows[1][r] for r in alone)) == pytest.approx(odds * c, rel=1e-12)
            assert float(sum(rows[0][r] for r in alone)) == pytest.approx(c, rel=1e-12)
            assert float(sum(rows[0][r] for r in down)) == pytest.approx(c, rel=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_the_classes_number_probabilities_are_those_of_the_matrix(steps, epsilon):
    for kind in (StochasticRounding, PiecewiseMechanism, HybridMechanism):
        protocol = kind(UniformGrid(0, 1, steps), epsilon)
        rows = protocol.matrix().rows
        variation = max(sum(max(0, p - q) for p, q in zip(*pair, strict=True)) for pair in permutations(rows, 2))
        with working_precision(256):
            b, c = _number_probabilities(protocol)
        assert float(variation) == pytest.approx(math.expm1(epsilon) * float(b), rel=1e-12)
        assert (c is None) == (
            steps == 1 or kind is StochasticRounding or (kind is HybridMechanism and epsilon < Fraction(61, 100))
        )
        if c is not None:  # what only one of the ends supports, and the middle does not
            lower, middle, upper = rows[0], rows[steps // 2], rows[-1]
            for one, other in ((lower, upper), (upper, lower)):
                alone = [m for x, m, y in zip(one, middle, other, strict=True) if x > y == m]
                assert float(sum(alone)) >= float(c) * (1 - 1e-12)


@pytest.mark.parametrize(
    "protocol",
    [
        KAryRandomizedResponse(20, 2),
        OptimizedUnaryEncoding(8, 2),
        SubsetSelection(6, 1),
        OptimizedLocalHashing(8, 2),
        Rappor(8, 4),
        ProjectiveGeometryResponse(9, 2),
    ],
    ids=repr,
)
def test_the_variation_of_a_protocol_is_its_gap(protocol):
    rows = protocol.matrix().rows
    variation = sum(max(Fraction(0), p - q) for p, q in zip(rows[0], rows[1], strict=True))
    assert float(variation) == pytest.approx(protocol.gap, rel=1e-12)
    assert variation < ShuffleAmplification.of(protocol, 10).variation


def test_a_kept_answer_is_shuffled_at_the_epsilon_of_one_report():
    protocol = Rappor(8, 4)
    crowd = ShuffleAmplification.of(protocol, 1000)
    assert crowd.epsilon == protocol.epsilon_after(1)
    low, high = crowd.bounds(DELTA)
    # 0.284 is enough for any randomizer of epsilon 1.604; at the 4 of a lifetime it would be 1.85.
    assert 0.15 < low < high <= ShuffleAmplification(protocol.epsilon_after(1), 1000).bounds(DELTA)[1] < 0.285


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        SymmetricUnaryEncoding,
        OptimizedUnaryEncoding,
        OptimizedLocalHashing,
        HadamardResponse,
        SubsetSelection,
        ProjectiveGeometryResponse,
    ],
)
def test_the_bounds_of_other_protocols_are_close_as_well(kind):
    low, high = ShuffleAmplification.of(kind(100, 2), 10_000).bounds(DELTA)
    assert low < high < 1.4 * low
    assert high < ShuffleAmplification(2, 10_000).bounds(DELTA)[1]


def test_numbers_are_shuffled_as_well():
    worst = ShuffleAmplification(1, 10_000).bounds(DELTA)[1]
    for kind in (StochasticRounding, PiecewiseMechanism, HybridMechanism):
        low, high = ShuffleAmplification.of(kind(UniformGrid(0, 24, 96), 1), 10_000).bounds(DELTA)
        assert low < high <= worst and high < 1.3 * low
    # randomized response of the ends
    ends, coin = (
        ShuffleAmplification.of(StochasticRounding(UniformGrid(0, 24, 96), 1), 50),
        ShuffleAmplification.of(KAryRandomizedResponse(2, 1), 50),
    )
    assert ends.least_delta(0.2) == pytest.approx(coin.least_delta(0.2), rel=1e-9)


@pytest.mark.slow
def test_the_upper_bounds_are_the_published_numbers():
    # Feldman, McMillan, Talwar 2023: C of n - 1 are clones, each with 2/(E + 1); A of them are of the first kind; the
    # person herself is of it with E/(E + 1) or with 1/(E + 1).
    for local, users in [(1.0, 1000 if FULL else 50), (4.0, 20), (0.1, 200)]:
        large = math.exp(local)
        for a in (0.05 * local, 0.3 * local):
            exact = 0.0
            c = np.arange(users)
            for clones, chance in zip(c, stats.binom.pmf(c, users - 1, 2 / (large + 1)), strict=True):
                first = np.arange(clones + 2)
                with_her, without = stats.binom.pmf(first - 1, clones, 0.5), stats.binom.pmf(first, clones, 0.5)
                one, other = large * with_her + without, with_her + large * without
                exact += chance * np.maximum(0, one - math.exp(a) * other).sum() / (large + 1)
            assert ShuffleAmplification(local, users).delta(a) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("domain", [10, 1000])
def test_a_protocol_with_many_values_hides_better(domain):
    worst, known = (
        ShuffleAmplification(4, 100_000).bounds(DELTA),
        ShuffleAmplification.of(KAryRandomizedResponse(domain, 4), 100_000).bounds(DELTA),
    )
    assert known[0] <= known[1] <= worst[1]
    # about sqrt((E + d - 1)/(E + 1)) times better: 1.07 for 10 values, 4.35 for 1,000
    gain = math.sqrt((math.exp(4) + domain - 1) / (math.exp(4) + 1))
    assert worst[1] / known[1] == pytest.approx(gain, rel=0.1)
    assert known[1] / known[0] < 1.3


@pytest.mark.parametrize("users", [2, 6])
def test_the_lower_bound_of_a_variation_is_that_of_a_real_crowd(users):
    # three values told with the chance s, else the third is sent: the variation is s (E - 1)/(E + 2)
    large, sent = math.exp(1.5), 0.4
    rows = [[sent * (large if x == r else 1) / (large + 2) + (1 - sent) * (r == 2) for r in range(3)] for x in range(3)]
    crowd = ShuffleAmplification(1.5, users, Fraction(sent * (large - 1) / (large + 2)))
    for a in (0.1, 0.6):
        exact = true_delta(rows[0], rows[1], [rows[2]] * (users - 1), a)
        assert crowd.least_delta(a) == pytest.approx(exact, rel=1e-6)
        assert exact <= crowd.delta(a)


@pytest.mark.parametrize("users", [1, 2, 5, 9])
@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
def test_the_lower_bound_is_the_delta_of_a_real_crowd(users, local):
    large = math.exp(local)
    three = [[(large if x == r else 1) / (large + 2) for r in range(3)] for x in range(3)]
    two = [[(large if x == r else 1) / (large + 1) for r in range(2)] for x in range(2)]
    for share in (0.05, 0.3, 0.8):
        a = share * local
        cases = [
            true_delta(three[0], three[1], [three[2]] * (users - 1), a),
            true_delta(two[0], two[1], [two[0]] * (users - 1), a),
            true_delta(two[1], two[0], [two[0]] * (users - 1), a),
        ]
        assert ShuffleAmplification(local, users).least_delta(a) == pytest.approx(max(cases), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("users", [1, 2, 7])
def test_the_excess_is_the_expectation_by_enumeration(users):
    # every person draws +3, -5 or -rest
    for rate, rest in [(0.5, 0.0), (0.9, 0.0), (1.0, 0.0), (0.6, 0.7)]:
        exact = 0.0
        for draws in product((3.0, -5.0, -rest), repeat=users):
            chance = math.prod(1 - rate if draw == -rest else rate / 2 for draw in draws)
            exact += chance * max(0.0, sum(draws)) / users
        assert exact <= expected_positive_part(users, rate, 3.0, 5.0, rest) == pytest.approx(exact, rel=1e-6)
        assert (
            exact >= expected_positive_part(users, rate, 3.0, 5.0, rest, upper=False) == pytest.approx(exact, rel=1e-6)
        )
    # N of 4 coins of chance h: E max(0, N - (4 - N)) = 4 h^4 + 2 * 4 h^3 (1 - h); at 1/4 4/256 + 24/256 = 28/256
    assert expected_positive_part(4, 1.0, 1.0, 1.0, half=0.25, upper=False) == pytest.approx(7 / 256, rel=1e-6)


@pytest.mark.parametrize("half", [0.05, 0.3, 0.9])
def test_the_excess_of_uneven_halves_is_the_expectation_by_enumeration(half):
    for rate, rest in [(0.5, 0.0), (1.0, 0.0), (0.6, 0.7)]:
        exact = 0.0
        for draws in product((3.0, -5.0, -rest), repeat=5):
            part = {3.0: rate * half, -5.0: rate * (1 - half), -rest: 1 - rate}
            exact += math.prod(part[draw] for draw in draws) * max(0.0, sum(draws)) / 5
        found = expected_positive_part(5, rate, 3.0, 5.0, rest, half=half, upper=False)
        assert exact * (1 - 1e-6) < found <= exact


@pytest.mark.slow
def test_the_strides_of_uneven_halves_stay_below_and_close():
    # 100,000 people: A, B and neither with 0.3, 0.1 and 0.6, a deviation of C of 155: every second c is computed
    users, plus, minus, rest = 100_000, 1.0, 2.6, 0.07
    exact = 0.0
    step = 1 if FULL else 10  # of c: a smooth sum, and far less than a deviation
    c = np.arange(40_000 - 1100, 40_000 + 1100, step)  # seven deviations on either side
    for count, chance in zip(c, step * stats.binom.pmf(c, users, 0.4), strict=True):
        a = np.arange(int(0.75 * count) - 610, int(0.75 * count) + 610)
        worth = plus * a - minus * (count - a) - rest * (users - count)
        exact += chance * (stats.binom.pmf(a, count, 0.75) @ np.maximum(0, worth)) / users
    found = expected_positive_part(users, 0.4, plus, minus, rest, half=0.75, upper=False)
    assert 0.98 * exact < found < exact


def test_the_strides_of_a_large_crowd_stay_outside_and_close():
    # 200,000 people at rate 0.5: a deviation of 224, so every third c is computed
    users, a = 200_000, 0.008
    plus, minus = math.e - math.exp(a), math.exp(1 + a) - 1
    upper = expected_positive_part(users, 0.5, plus, minus)
    c = np.arange(100_000 - 2200, 100_000 + 2200)  # ten deviations on either side
    weights = np.exp(-((c - 100_000) ** 2) / (2 * users / 4))
    weights /= weights.sum()
    k = np.floor(minus * c / (plus + minus)) + 1
    value = (plus + minus) * c / 2 * betainc(k - 1, c - k + 1, 0.5) - minus * c * betainc(k, c - k + 1, 0.5)
    assert upper == pytest.approx(weights @ value / users, rel=1e-3)
    assert expected_positive_part(users, 0.5, plus, minus, upper=False) == pytest.approx(upper, rel=1e-3)
    assert expected_positive_part(users, 0.5, plus, minus, upper=False) <= upper


@pytest.mark.slow
def test_the_machines_incomplete_beta_function_is_good_to_the_margin():
    with working_precision(256):
        for tosses in (10**3, 10**6, 10**8):
            is_all = FULL or tosses < 10**8
            for deviations in (0, 3, 7) if is_all else (7,):  # the farther the harder
                k = tosses // 2 + int(deviations * math.sqrt(tosses) / 2) + 1
                exact = arb("0.5").beta_lower(k, tosses - k + 1, regularized=1)
                assert float(abs(arb(betainc(k, tosses - k + 1, 0.5)) / exact - 1).mid()) < 2.0**-32
                for half in (0.731, 0.269, 0.018) if is_all else (0.018,):
                    k = int(tosses * half + deviations * math.sqrt(tosses * half * (1 - half))) + 1
                    exact = arb(half).beta_lower(k, tosses - k + 1, regularized=1)
                    assert float(abs(arb(betainc(k, tosses - k + 1, half)) / exact - 1).mid()) < 2.0**-32


@pytest.mark.slow
@pytest.mark.parametrize(("users", "local"), some(product([100, 10_000], [0.5, 1.0, 4.0]), 2))
def test_upper_is_at_least_lower_and_both_are_monotone(users, local):
    crowd = ShuffleAmplification(local, users)
    low, high = crowd.bounds(DELTA)
    assert 0 <= low <= high <= local
    deltas = [0.0, 0.1 * local, 0.5 * local, 0.9 * local, local]
    above, below = [crowd.delta(a) for a in deltas], [crowd.least_delta(a) for a in deltas]
    assert all(one >= other for one, other in zip(above, below, strict=True))
    assert above == sorted(above, reverse=True) and below == sorted(below, reverse=True)
    assert above[-1] == below[-1] == 0
    more = ShuffleAmplification(local, users * 4).bounds(DELTA)
    assert more[0] <= low and more[1] <= high
    noisier = ShuffleAmplification(local / 2, users).bounds(DELTA)
    assert noisier[0] <= low and noisier[1] <= high


@pytest.mark.parametrize(("local", "users"), [(1.0, 10_000), (2.0, 10_000), (4.0, 100_000)])
def test_it_is_below_the_published_closed_forms(local, users):
    high = ShuffleAmplification(local, users).bounds(DELTA)[1]
    large = math.exp(local)
    # Feldman, McMillan, Talwar 2021, theorem 3.1, for local <= ln(n/(16 ln(2/delta)))
    assert local <= math.log(users / (16 * math.log(2 / DELTA)))
    root = 8 * math.sqrt(large * math.log(4 / DELTA)) / math.sqrt(users) + 8 * large / users
    assert high < math.log1p((large - 1) / (large + 1) * root)
    # and below their numbers of 2021, where a clone has the chance e^-local in place of 2/(e^local + 1)
    old = 2 * large / (large + 1)
    plus, minus = (large - math.exp(high)) * old, (math.exp(local + high) - 1) * old
    assert expected_positive_part(users, 1 / large, plus, minus) > DELTA


def test_the_bounds_are_close_together_where_epsilon_is_large():
    low, high = ShuffleAmplification(4, 100_000).bounds(DELTA)
    assert high / low < 1.02


def test_the_epsilon_falls_with_the_root_of_the_crowd():
    # 100 times the people: a tenth of the epsilon
    small, large = (ShuffleAmplification(1, users).bounds(DELTA)[1] for users in (10_000, 1_000_000))
    assert small / large == pytest.approx(10, rel=0.3)


def test_one_person_hides_among_nobody():
    # randomized response: delta(a) = (E - e^a)/(E + 1)
    crowd = ShuffleAmplification(1, 1)
    assert crowd.delta(0.5) == pytest.approx((math.e - math.exp(0.5)) / (math.e + 1), rel=1e-6)
    assert crowd.bounds(DELTA)[1] == pytest.approx(1, rel=1e-4)


def test_the_local_epsilon_that_a_target_needs_meets_it():
    crowd = ShuffleAmplification.calibrate(epsilon=0.5, delta=DELTA, users=20_000)
    assert crowd.delta(0.5) <= DELTA < ShuffleAmplification(crowd.epsilon * Fraction(1001, 1000), 20_000).delta(0.5)
    assert ShuffleAmplification.calibrate(epsilon=2, delta=DELTA, users=2).epsilon >= 2


def test_rounds_over_time_compose():
    weekly = ShuffleAmplification(1, 10_000).loss(1e-8)
    assert weekly == ApproximateDp(Fraction(ShuffleAmplification(1, 10_000).bounds(1e-8)[1]), Fraction(1, 10**8))
    # 52 weeks: at most 52 times one, at 52 times the delta; less by composing well
    basic, well = (price(Repeat(weekly, 52), 1e-6, by=by) for by in ("basic", "optimal"))
    assert basic == pytest.approx(52 * float(weekly.epsilon)) and well < basic / 1.5
    # and far less than what the same answers cost without a shuffler
    assert well < 52


def test_what_cannot_be_is_an_error():
    for wrong in [(0, 10), (51, 10), (1, 0), (1, 10**10)]:
        with pytest.raises(ParameterError):
            ShuffleAmplification(*wrong)
    for other in (HierarchicalHistogram(KAryRandomizedResponse, 8, 1), KAryRandomizedResponse(2, 51), "KAry"):
        with pytest.raises(ParameterError):
            ShuffleAmplification.of(other, 10)
    assert ShuffleAmplification.of(KAryRandomizedResponse(2, 50), 10).variation is None  # p - q is one to the last bit
    for delta in (0, 1e-30, 1):
        with pytest.raises(ParameterError, match="delta"):
            ShuffleAmplification(1, 10).bounds(delta)
