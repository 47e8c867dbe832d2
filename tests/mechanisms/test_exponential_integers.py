"""The exponential mechanism over integers: the law of a list, where a list can be made, and the range of its loss."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from tests.support.counts import OFF, enough, some
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.exponential_integers import ExponentialOverIntegers, PiecewiseLinearScore
from tacit.privacy.loss import BoundedRange
from tacit.sampling.bits import ReplayBits
from tacit.sampling.exponential_pieces import Piece, draw_point, weigh_pieces

LOWER, UPPER = -12, 15

pieces = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(-9, 9), st.integers(-3, 3)), min_size=1, max_size=5, unique_by=min
).map(lambda found: sorted({start: (start, value, slope) for start, value, slope in found}.values()))
epsilons = st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(7, 2)])


def to_score(found):
    return PiecewiseLinearScore(*zip(*found, strict=True))


@pytest.mark.slow
@given(pieces, epsilons, st.booleans())
def test_the_law_is_that_of_the_list(found, epsilon, monotone):
    score = to_score(found)
    here = ExponentialOverIntegers(epsilon, 2, monotone, LOWER, UPPER)
    listed = Exponential(epsilon, 2, monotone).law([score(point) for point in range(LOWER, UPPER + 1)])
    for point, expected in zip(range(LOWER, UPPER + 1), listed, strict=True):
        law = here.law(score, point)
        assert law.overlaps(expected)
        assert law.rad() < 1e-25
    assert here.law(score, LOWER - 1) == here.law(score, UPPER + 1) == 0


@given(pieces)
def test_a_score_is_what_its_pieces_say(found):
    score = to_score(found)
    for point in range(-30, 31):
        start, value, slope = max([piece for piece in found if piece[0] <= point] or found[:1])
        assert score(point) == value + slope * (point - start)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=7))
def test_distances_add_up(centers):
    score = PiecewiseLinearScore.from_distances(centers)
    assert all(score(point) == -sum(abs(point - center) for center in centers) for point in range(-15, 16))


@given(st.integers(1, 12), st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=50))
def test_a_geometric_number_modulo_a_size_is_truncated(size, q):
    # P(G = j mod size) = (1 - q) q^j (1 + q^size + q^(2 size) + ...) = (1 - q) q^j/(1 - q^size), exactly
    truncated = [q**j / sum(q**i for i in range(size)) for j in range(size)]
    assert [(1 - q) * q**j / (1 - q**size) for j in range(size)] == truncated


def test_the_weights_of_pieces_are_sums():
    factor = Fraction(2, 3)
    with working_precision(300):
        for piece in (Piece(4, 1, 9, 3, 0), Piece(4, -1, 9, 3, 2), Piece(0, 1, 1, 5, 7)):
            total = sum(((to_interval(factor) * (piece.top - piece.drop * k)).exp() for k in range(piece.size)), arb(0))
            assert weigh_pieces([piece], factor, 0)[0].overlaps(total)
        endless = weigh_pieces([Piece(0, 1, None, 0, 3)], factor, 0)[0]
        partial = sum(((to_interval(factor) * -3 * k).exp() for k in range(60)), arb(0))
        assert 0 < float(endless - partial) < 1e-50  # e^-120 is left


def test_a_tent_is_the_discrete_laplace_distribution():
    # factor epsilon/2 at sensitivity 1: q = e^-1/2 and P(k) = (1 - q)/(1 + q) q^|k|
    mechanism, q = ExponentialOverIntegers(Fraction(1)), math.exp(-0.5)
    for point in range(-10, 11):
        found = mechanism.law(PiecewiseLinearScore.from_distances([3]), 3 + point)
        assert float(found) == pytest.approx((1 - q) / (1 + q) * q ** abs(point), rel=1e-14)


@pytest.mark.parametrize(("lower", "upper"), [(None, None), (-2, None), (None, 5), (-2, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)], ids=str)
def test_every_loss_lies_in_a_range_of_epsilon(lower, upper, epsilon):
    # Sums of distances to two values within [0, 3], of which one is replaced: they move by at most 3 at every integer.
    mechanism = ExponentialOverIntegers(epsilon, 3, lower=lower, upper=upper)
    points = range(-6 if lower is None else lower, 10 if upper is None else upper + 1)
    databases = list(combinations_with_replacement(range(4), 2))
    laws = {}
    for centers in databases:
        score = PiecewiseLinearScore.from_distances(centers)
        laws[centers] = [mechanism.law(score, point) for point in points]
    widest = 0.0
    with working_precision(128):
        limit = to_interval(epsilon) + arb(2) ** -90
        for one in databases:
            for other in databases:
                if set(one) & set(other):
                    losses = [(p / q).log() for p, q in zip(laws[one], laws[other], strict=True)]
                    assert all(abs(loss) <= limit for loss in losses)
                    widest = max(widest, float(max(losses, key=float) - min(losses, key=float)))
    # Reached: from 0 to 3 the score of 3 rises by 3 while that of 0 falls by 3.
    assert widest == pytest.approx(float(epsilon), rel=1e-12)


def test_a_sensitivity_that_is_not_true_is_found():
    # Declared 1 in place of 3: the loss is three times epsilon.
    mechanism = ExponentialOverIntegers(Fraction(1), 1, lower=0, upper=3)
    scores = [PiecewiseLinearScore.from_distances(centers) for centers in ([0, 0], [0, 3])]
    losses = [float((mechanism.law(scores[0], x) / mechanism.law(scores[1], x)).log()) for x in range(4)]
    assert max(losses) - min(losses) == pytest.approx(3)


SHAPES = {
    "steps": (PiecewiseLinearScore([-5, 2, 6], [1, 4, 0], [0, 0, 0]), -5, 9),
    "slopes": (PiecewiseLinearScore([-5, 2, 6], [1, 7, 0], [1, -2, 1]), -5, 9),
    "infinite": (PiecewiseLinearScore([-5, 2, 6], [1, 4, 1], [2, -1, -1]), None, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", some(SHAPES, 2))
def test_release_has_the_law(shape):
    # p > 1e-11 for each of 3, so a false alarm in at most 3e-11.
    score, lower, upper = SHAPES[shape]
    mechanism = ExponentialOverIntegers(Fraction(1), lower=lower, upper=upper)
    bits, count = ReplayBits(shape.encode()), enough(16_000)
    seen = Counter(mechanism.release(score, bits) for _ in range(count))
    check_law(seen, count, mechanism, score, ExponentialOverIntegers(1 + OFF, lower=lower, upper=upper))


def check_law(seen, count, mechanism, score, off):
    """Accept the law, and reject another; points beyond [-8, 12] are one outcome."""
    points = range(-8, 13)
    observed = [seen[point] for point in points]
    for each, accepted in ((mechanism, True), (off, False)):
        expected = [count * float(each.law(score, point)) for point in points]
        cells = [(seen_here, wanted) for seen_here, wanted in zip(observed, expected, strict=True) if wanted > 5]
        rest = (count - sum(cell[0] for cell in cells), count - sum(cell[1] for cell in cells))
        cells += [rest] if rest[1] > 5 else []
        p = chi_square([cell[0] for cell in cells], [cell[1] for cell in cells])
        assert p > 1e-11 if accepted else p < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lower", "upper", "start"), some([(None, None, -50), (-1, None, 40), (-3, 5, 0), (None, 4, -3)], 2)
)
def test_a_concave_score_has_the_law(lower, upper, start):
    # -3 |x - 2| as a function and as pieces: one law. p > 1e-11 for each of 4: a false alarm in at most 4e-11.
    score = PiecewiseLinearScore.from_distances([2, 2, 2])
    mechanism = ExponentialOverIntegers(Fraction(1), 2, lower=lower, upper=upper)
    bits, count = ReplayBits(b"concave %d" % start), enough(12_000)
    seen = Counter(mechanism.release_concave(score, start, bits) for _ in range(count))
    far = ExponentialOverIntegers(1 + OFF, 2, lower=lower, upper=upper)
    check_law(seen, count, mechanism, score, far)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [Fraction(1, 400), Fraction(1, 7), Fraction(5)], ids=str)
def test_one_of_seven_concave_draws_is_kept(factor, monkeypatch):
    from tacit.sampling import exponential_pieces

    drawn = []
    monkeypatch.setattr(exponential_pieces, "draw_point", lambda *given: drawn.append(1) or draw_point(*given))
    bits = ReplayBits(b"kept")
    for _ in range(300):
        exponential_pieces.draw_concave(lambda x: -(x * x), 3, factor, bits, None, None)
    assert 300 <= len(drawn) < 7 * 300


def test_ten_billion_points_and_wide_numbers():
    wide = PiecewiseLinearScore([-(2**500), 0], [0, 2**511], [2**10, -(2**511)])
    assert ExponentialOverIntegers(Fraction(2**64)).release(wide, ReplayBits(b"wide")) == 0
    flat = PiecewiseLinearScore([0], [0], [0])
    found = ExponentialOverIntegers(Fraction(1, 10**300), lower=0, upper=2**512 - 1).release(flat, ReplayBits(b"flat"))
    assert 0 <= found < 2**512
    tiny = ExponentialOverIntegers(Fraction(1, 10**30)).release(
        PiecewiseLinearScore.from_distances([0]), ReplayBits(b"t")
    )
    assert abs(tiny) > 10**28  # of a scale of 2 10^30; smaller with probability below 0.01


@pytest.mark.parametrize(("lower", "upper"), [(None, 3), (3, None), (None, None)])
@pytest.mark.parametrize("slope", [0, 1, -1])
def test_a_score_falls_toward_an_infinite_end(lower, upper, slope):
    score = PiecewiseLinearScore([0], [0], [slope])
    mechanism = ExponentialOverIntegers(1, lower=lower, upper=upper)
    if (lower is None and slope <= 0) or (upper is None and slope >= 0):
        with pytest.raises(ParameterError, match="does not fall toward an end that is infinite"):
            mechanism.release(score)
    else:
        assert isinstance(mechanism.release(score), int)


@pytest.mark.parametrize("center", [2**62, 2**62 + 1, 2**63, -(2**64) - 1, 2**511 + 12345, 2**512 - 1, 1 - 2**512])
@pytest.mark.parametrize(("lower", "upper"), [(None, None), (1 - 2**512, 2**512 - 1)])
def test_a_concave_score_is_released_wherever_its_best_integer_lies(center, lower, upper):
    # neighbors 2^62 and 2^62 + 1 too: no error tells them apart. At epsilon 1 the discrete Laplace distribution of
    # scale 2 is beyond 200 with probability below e^-100.
    mechanism = ExponentialOverIntegers(1, lower=lower, upper=upper)
    for start in (0, 2**512 - 1, 1 - 2**512):
        assert abs(mechanism.release_concave(lambda x: -abs(x - center), start) - center) < 200


@pytest.mark.slow
@pytest.mark.parametrize("fall", [2**511, 2**512, 2**513, 2**2000], ids=["2^511", "2^512", "2^513", "2^2000"])
def test_a_concave_score_that_falls_late_or_never_is_released_within_the_ends(fall):
    # -max(0, |x| - fall) and its neighbors, up to a constant score and to a center beyond all ends
    mechanism = ExponentialOverIntegers(1)
    found = [mechanism.release_concave(lambda x: -max(0, abs(x) - fall), 0) for _ in range(20)]
    # uniform over at least 2^512 integers: all of 20 within 2^450 with probability below 2^-1000
    assert 2**450 < max(map(abs, found)) < 2**512
    assert 2**512 - 200 < mechanism.release_concave(lambda x: -abs(x - 2**512 - fall), 0) < 2**512
    assert abs(mechanism.release_concave(lambda x: 0, 0)) < 2**512


@pytest.mark.parametrize(
    "centers", [[2**511 - 1, 2**511 - 3, 0], [2**511 - 1, 2**511 - 1, 0], [2**600, 2**600, -(2**700)], [1 - 2**512] * 9]
)
def test_no_sum_of_private_values_is_too_large(centers):
    score = PiecewiseLinearScore.from_distances(centers)
    for point in (0, 5, *centers, 2**512):
        assert score(point) == -sum(abs(point - center) for center in centers)
    median = sorted(centers)[len(centers) // 2]
    assert abs(ExponentialOverIntegers(2).release(score) - median) < 200
    assert -9 <= ExponentialOverIntegers(2, lower=-9, upper=9).release(score) <= 9


def test_mistakes_are_told():
    for arguments, what in [
        (([], [], []), "one number for each piece"),
        (([1], [1, 2], [1]), "one number for each piece"),
        (([1, 1], [1, 2], [0, 0]), "do not ascend"),
        (([1], [2**513], [0]), "more than 512 bits"),
        (([1.5], [1], [0]), "starts: "),
    ]:
        with pytest.raises(ParameterError, match=what):
            PiecewiseLinearScore(*arguments)
    with pytest.raises(ParameterError, match="is below lower"):
        ExponentialOverIntegers(1, lower=1, upper=0)
    with pytest.raises(ParameterError, match="needs a PiecewiseLinearScore"):
        ExponentialOverIntegers(1).release([1, 2])
    with pytest.raises(ParameterError, match="is not between lower and upper"):
        ExponentialOverIntegers(1, lower=0).release_concave(lambda x: -x, -1)
    with pytest.raises(ParameterError, match="is not between lower and upper"):
        ExponentialOverIntegers(1).release_concave(lambda x: 0, 2**512)
    with pytest.raises(ParameterError, match="score: "):
        ExponentialOverIntegers(1).release_concave(lambda x: -0.5 * abs(x), 0)


def test_the_loss_and_the_calibration():
    mechanism = ExponentialOverIntegers.calibrated(0.1, 3, lower=0)
    assert (mechanism.loss(), mechanism.factor) == (BoundedRange(Fraction(1, 10)), Fraction(1, 60))
    assert (mechanism.lower, mechanism.upper) == (0, None)
    assert ExponentialOverIntegers.calibrated(1, 0).sensitivity == 1
