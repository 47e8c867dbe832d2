from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.support.counts import FULL

from tacit.audit.claim import Claim
from tacit.audit.search import QUERY_SHAPES, audit_worst_pair, candidate_pairs
from tacit.errors import ParameterError
from tacit.mechanisms import Laplace
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

SAMPLES = 400_000 if FULL else 20_000
BOTH = tuple(Neighbors)
SURE = 1 - 1e-9  # a true claim is refuted with at most 1e-9


def noisy(statistic, scale, seed=b"search"):
    """An integer statistic of the rows with exact discrete Laplace noise."""
    bits = ReplayBits(seed)
    noise = Laplace(Fraction(scale))
    return lambda rows, size: noise.release([statistic(rows)] * size, bits)


def distance(one, other):
    """How many rows are in one and not in the other."""
    left, right = Counter(one), Counter(other)
    return (left - right).total(), (right - left).total()


@pytest.mark.parametrize("shape", QUERY_SHAPES)
@pytest.mark.parametrize("rows", [1, 2, 7, 20])
def test_every_pair_is_a_pair_of_neighbors(shape, rows):
    for pair in candidate_pairs(shape, Neighbors.REPLACE, lower=-2, upper=5, rows=rows):
        assert distance(pair.one, pair.other) == (1, 1) and len(pair.one) == len(pair.other) == rows
    for pair in candidate_pairs(shape, Neighbors.ADD_REMOVE, lower=-2, upper=5, rows=rows):
        assert sum(distance(pair.one, pair.other)) == 1
        assert all(-2 <= value <= 5 for value in pair.one + pair.other)


def test_the_median_flips_on_its_first_pair():
    # 11 rows: 6 at 0 and 5 at 10 have the median 0; one moved up, 5 and 6 have the median 10
    first = next(candidate_pairs("median", Neighbors.REPLACE, lower=0, upper=10, rows=11))
    assert (np.median(first.one), np.median(first.other)) == (0, 10)


def test_an_empty_list_is_tried_where_rows_come_and_go():
    assert any(pair.one == [] for pair in candidate_pairs("mean", Neighbors.ADD_REMOVE, lower=0, upper=1, rows=3))


@pytest.mark.parametrize("neighbors", BOTH)
def test_a_count_with_its_noise_is_not_refuted(neighbors):
    given = {"neighbors": neighbors, "lower": 0, "upper": 1, "samples": SAMPLES}
    assert not audit_worst_pair(noisy(len, 1), "count", Claim.epsilon(1), confidence=SURE, **given).is_refuted
    finding = audit_worst_pair(noisy(len, 1), "count", Claim.epsilon(1), **given)
    # add-remove: the true epsilon is 1; replace moves no count at all
    assert finding.lower > 0.85 if neighbors is Neighbors.ADD_REMOVE else finding.lower == 0


def test_a_sum_with_the_noise_of_its_range_is_refuted():
    # rows in [50, 60], one added: the sum moves by up to 60, not by 60 - 50; the true epsilon is 6
    finding = audit_worst_pair(
        noisy(sum, 10),
        "sum",
        Claim.epsilon(1),
        neighbors=Neighbors.ADD_REMOVE,
        lower=50,
        upper=60,
        samples=SAMPLES,
    )
    assert finding.is_refuted and 4 < finding.lower <= 6
    assert finding.pair.endswith("at the upper end") and distance(finding.one, finding.other) == (0, 1)
    # where a row is replaced, 10 is right
    replaced = audit_worst_pair(
        noisy(sum, 10), "sum", Claim.epsilon(1), neighbors=Neighbors.REPLACE, lower=50, upper=60, samples=SAMPLES
    )
    assert 0.8 < replaced.lower <= 1


def test_a_median_with_noise_of_the_local_sensitivity_is_refuted():
    # all rows alike: the median does not move, and the noise is small; half and half: it moves from end to end
    def median(rows, size, rng):
        ordered = sorted(rows)
        middle = len(ordered) // 2
        local = max(1, ordered[min(middle + 1, len(ordered) - 1)] - ordered[max(middle - 1, 0)])
        return ordered[middle] + np.round(rng.laplace(scale=local, size=size))

    finding = audit_worst_pair(
        median, "median", Claim.epsilon(2), neighbors=Neighbors.REPLACE, lower=0, upper=100, rows=21, samples=SAMPLES
    )
    assert finding.is_refuted
    assert "pair" in str(finding) and finding.pair in str(finding)


def test_a_top_k_that_tells_the_winner_is_refuted_at_a_tie():
    def winner(rows, size):
        return [max(sorted(set(rows)), key=rows.count)] * size

    finding = audit_worst_pair(
        winner, "top-k", Claim.epsilon(1), neighbors=Neighbors.REPLACE, lower=0, upper=4, rows=10, samples=SAMPLES
    )
    # one vote decides: 15,000 outputs of either side that never agree
    assert finding.is_refuted and finding.lower > 5


def test_progress_ends_at_one_and_never_goes_back():
    told: list[float] = []
    audit_worst_pair(
        noisy(len, 1),
        "count",
        Claim.epsilon(1),
        neighbors=Neighbors.ADD_REMOVE,
        lower=0,
        upper=1,
        samples=4000,
        progress=told.append,
    )
    assert told == sorted(told) and told[-1] == 1.0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"shape": "mode"}, "shape"),
        ({"neighbors": "replace-ish"}, "neighbors"),
        ({"lower": 1, "upper": 1}, "upper"),
        ({"lower": float("nan")}, "lower"),
        ({"rows": 0}, "rows"),
        ({"samples": 1000}, "samples"),
    ],
)
def test_what_cannot_be_searched_is_said(change, name):
    given = {"shape": "sum", "neighbors": Neighbors.ADD_REMOVE, "lower": 0, "upper": 1, "rows": 5, "samples": 10_000}
    given |= change
    with pytest.raises(ParameterError) as caught:
        audit_worst_pair(noisy(sum, 1), given.pop("shape"), Claim.epsilon(1), **given)
    assert caught.value.name == name and caught.value.fix


def test_a_mean_that_fails_on_no_rows_is_refuted_by_that():
    found = audit_worst_pair(
        lambda rows, rng: round(sum(rows) / len(rows) + rng.laplace(scale=10)),
        "mean",
        Claim.epsilon(3),
        neighbors=Neighbors.ADD_REMOVE,
        lower=0,
        upper=10,
        samples=8000,
    )
    assert found.is_refuted
    assert "no row" in found.pair
    assert "raised ZeroDivisionError" in found.event


def test_a_mechanism_that_always_fails_is_told_with_the_pair():
    with pytest.raises(ParameterError, match="lower end, one added at the lower end: raised KeyError") as caught:
        audit_worst_pair(
            lambda rows: rows.absent if len(rows) > 1e9 else {}["x"],
            "mean",
            Claim.epsilon(1),
            neighbors=Neighbors.ADD_REMOVE,
            lower=0,
            upper=10,
            samples=4000,
        )
    assert isinstance(caught.value.__cause__.__cause__, KeyError)
