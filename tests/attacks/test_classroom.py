"""The classroom: exact chances, played chances, and a defense under which guessing fails.

Seeds are fixed. Intervals are taken at 1 - 1e-10, so false alarms stay below 1e-9.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.accounting.interpretation import min_guessing_error
from tacit.accounting.interval import clopper_pearson_interval
from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.attacks.classroom import Classroom
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

ROUNDS = 200_000 if FULL else 20_000
SURE = 1 - 1e-10


def test_one_average_in_ten_tells():
    # C(29,2)/C(30,3) = 406/4060
    room = Classroom()
    assert room.probability == Fraction(406, 4060) == Fraction(1, 10)
    assert room.telling == Fraction(190, 3)  # (50 + 50 + 90)/3 = 63.33


def test_at_least_one_of_five_tells_with_probability_40951_in_100000():
    assert Classroom().probability_of_any == Fraction(40951, 100_000)  # 1 - 0.9^5


def test_the_chance_counts_every_group():
    # of the C(6,2) = 15 groups of two among six, 5 hold student 0
    groups = list(combinations(range(6), 2))
    assert Classroom(students=6, group=2).probability == Fraction(sum(0 in group for group in groups), len(groups))


def test_played_it_is_what_is_computed():
    caught = Classroom().play(ROUNDS)
    low, high = clopper_pearson_interval(caught.times, caught.rounds, SURE)
    assert low < 0.40951 < high
    assert not low < Classroom(queries=4).probability_of_any < high  # power: four queries are another chance, 0.3439


def test_without_noise_epsilon_is_infinite():
    assert Classroom().matrix().epsilon == math.inf


def test_the_noise_of_the_defense_is_thirteen_points():
    # The averages 50 and 51.33 differ by 4/3; at epsilon 0.1 that is a scale of 40/3, exactly.
    defense = Classroom().defend(Fraction(1, 10))
    assert defense.mechanism.scale * defense.grain == Fraction(40, 3)
    assert defense.width == pytest.approx(13.3, abs=0.05)
    assert defense.shift * defense.grain == Fraction(4, 3)
    assert defense.base * defense.grain == 50


def test_the_ratio_at_the_true_average_is_e_to_the_epsilon():
    defense = Classroom().defend(Fraction(1, 10))
    assert defense.ratio == pytest.approx(math.exp(0.1)) == pytest.approx(1.105, abs=2e-4)


def test_the_best_guess_errs_more_than_the_floor():
    # e^(-0.05)/2 = 0.475615 against 1/(e^0.1 + 1) = 0.475021
    defense = Classroom().defend(Fraction(1, 10))
    assert defense.best_error == pytest.approx(math.exp(-0.05) / 2, abs=1e-12)
    assert defense.floor == pytest.approx(0.475021, abs=1e-6)
    assert defense.best_error > defense.floor


@given(st.integers(2, 12), st.fractions(Fraction(1, 20), Fraction(2)), st.integers(1, 20), st.integers(0, 20))
def test_the_best_error_is_the_overlap_of_the_two_laws(students, epsilon, odd, usual):
    assume(odd != usual)
    defense = Classroom(students=students, group=2, odd=Fraction(odd), usual=Fraction(usual)).defend(epsilon)
    scale = float(defense.mechanism.scale)
    edge = int(60 * scale) + 2 * abs(defense.shift)
    assume(edge < 5000)
    q = math.exp(-1 / scale)
    law = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-edge, edge + 1)]
    shift = abs(defense.shift)
    overlap = math.fsum(map(min, law[shift:], law[: len(law) - shift]))
    assert defense.best_error == pytest.approx(overlap / 2, abs=1e-9)
    assert defense.best_error >= min_guessing_error(float(epsilon)) - 1e-12


def test_the_defended_pair_is_private_by_its_own_table():
    # a discrete Laplace law cut at 400 steps and renormalized, shifted by 2: the exact epsilon of the middle is 0.1
    defense = Classroom().defend(Fraction(1, 10))
    q = math.exp(-1 / float(defense.mechanism.scale))
    law = [q ** abs(k) for k in range(-400, 401)]
    total, moved = math.fsum(law), [0.0] * defense.shift
    law = [p / total for p in law]
    matrix = TransitionMatrix([[*law, *moved], [*moved, *law]])
    assert matrix.delta(0.1 + 1e-9) < 1e-7  # all that is left is the cut


def test_played_guessing_fails():
    defense = Classroom().defend(Fraction(1, 10))
    wrong = defense.play(ROUNDS)
    low, high = clopper_pearson_interval(wrong.times, wrong.rounds, SURE)
    assert low < defense.best_error < high
    assert high > defense.floor
    # power: the same guess at epsilon 1 errs with e^(-1/2)/2 = 0.303
    weak = Classroom().defend(1).play(ROUNDS)
    assert clopper_pearson_interval(weak.times, weak.rounds, SURE)[1] < defense.floor


def test_a_low_grade_is_guessed_as_well_as_a_high_one():
    high, low = Classroom().defend(1), Classroom(odd=Fraction(10)).defend(1)
    assert low.shift == -high.shift
    assert low.best_error == high.best_error
    wrong = low.play(ROUNDS)
    ends = clopper_pearson_interval(wrong.times, wrong.rounds, SURE)
    assert ends[0] < low.best_error < ends[1]


def test_a_release_is_on_the_grid():
    defense = Classroom().defend(Fraction(1, 10))
    for odd in (False, True):
        answer = defense.release(odd, ReplayBits(b"grid"))
        assert answer / float(defense.grain) == pytest.approx(round(answer / float(defense.grain)))


def test_words_json_and_a_picture(tmp_path):
    room = Classroom()
    assert "0.40951" in str(room) and "infinite" in str(room)
    assert "0.4756" in str(room.defend())
    assert "an answer of 63.3" in str(room.play(100))
    assert json.dumps([room.to_dict(), room.defend().to_dict(), room.play(100).to_dict()])
    room.plot(tmp_path / "room.svg", rounds=200)
    assert (tmp_path / "room.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("given_", "name"),
    [({"group": 31}, "group"), ({"students": 0}, "students"), ({"odd": 50}, "odd"), ({"usual": math.nan}, "usual")],
)
def test_a_class_that_cannot_be_is_a_clear_error(given_, name):
    with pytest.raises(ParameterError) as caught:
        Classroom(**given_)
    assert caught.value.name == name and caught.value.fix


def test_an_epsilon_of_zero_is_a_clear_error():
    with pytest.raises(ParameterError, match="epsilon"):
        Classroom().defend(0)
