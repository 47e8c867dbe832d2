"""How a price is spent: shares add up to it, deltas stay below theirs, and the choices are made by error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.accounting.filters import GRAINS_PER_DELTA, GRAINS_PER_EPSILON, compute_charge
from tacit.accounting.zcdp import compute_rho
from tacit.aggregates.base import (
    Measurement,
    QuantileMeasurement,
    QuantizedArgument,
    TopKMeasurement,
    VectorMeasurement,
)
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.threshold import Threshold
from tacit.plan.contribution import (
    count_selections,
    l0_sensitivity,
    vector_l1_sensitivity,
    vector_l2_sensitivity,
)
from tacit.plan.noise import Part, Pick, Setting, Spending, spend
from tacit.plan.plan import Plan
from tacit.privacy.loss import Compose, ConcentratedDp
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query.nodes import ColumnReference, ExactStatistic

MakePlan = Callable[..., Plan]
EXAMPLES = 1_500 if FULL else 60
ROWS = VectorMeasurement(((1, ExactStatistic("count", None)),), 1, 1, Fraction(1))
UNITS = VectorMeasurement(((1, ExactStatistic("units", None)),), 1, 1, Fraction(1), is_per_unit=True)


def total(number: int, lower: int, upper: int) -> VectorMeasurement:
    return VectorMeasurement(((1, ExactStatistic("sum", ColumnReference(f"c{number}"))),), lower, upper, Fraction(1))


def rank(number: int, share: str, lower: int, upper: int) -> QuantileMeasurement:
    grid = QuantizedArgument(ColumnReference(f"c{number}"), Fraction(1), lower, upper)
    return QuantileMeasurement(ExactStatistic("histogram", grid.scalar), Fraction(share), grid)


MODE = TopKMeasurement(ExactStatistic("histogram", ColumnReference("c9")), ("A", "B", "C"))
BEST = TopKMeasurement(ExactStatistic("histogram", ColumnReference("c9")), ("A", "B", "C"), 3)
NEEDS: list[Measurement] = [
    ROWS, UNITS, total(1, 0, 110), total(2, -20, 10), total(3, 0, 0), total(4, 0, 500_000), total(5, -7, -3),
    rank(1, "1/2", 0, 110), rank(2, "0", -20, 10), rank(3, "9/10", 0, 10**6), MODE, BEST,
]  # fmt: skip
needed = st.dictionaries(
    st.sampled_from(NEEDS), st.sampled_from([Fraction(1), Fraction(9, 10), Fraction(45, 100)]), min_size=1
)
prices = st.one_of(
    st.sampled_from([Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(20)]),
    st.fractions(Fraction(1, 1000), Fraction(30), max_denominator=1000),
)
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**12), Fraction(1, 10**9), Fraction(1, 10**5)])
settings_of = st.builds(
    Setting,
    st.builds(ContributionBounds, st.integers(1, 40), st.integers(1, 5), st.none() | st.integers(1, 60)),
    st.sampled_from(list(Neighbors)),
    st.one_of(st.none(), st.integers(1, 500)),
)


def spent(spending: Spending) -> tuple[Fraction, Fraction]:
    """(epsilon, delta) as the ledger charges it."""
    found = compute_charge(spending.loss, spending.delta)
    return Fraction(found.epsilon, GRAINS_PER_EPSILON), Fraction(found.delta_a, GRAINS_PER_DELTA)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(needed, prices, deltas, settings_of)
def test_shares_add_up_to_the_price_and_deltas_to_at_most_theirs(
    needs: dict[Measurement, Fraction], price: Fraction, delta: Fraction, at: Setting
) -> None:
    if at.groups is not None:
        at = replace(at, each=replace(at.each, groups=min(at.each.groups, at.groups)))
    elif delta == 0:
        with pytest.raises(Refused) as caught:
            spend(needs, price, delta, at)
        assert caught.value.code is ErrorCode.PRIVATE_KEY
        return
    spending = spend(needs, price, delta, at)
    epsilon, lost = spent(spending)
    assert epsilon <= Fraction(math.ceil(price * GRAINS_PER_EPSILON), GRAINS_PER_EPSILON)
    assert lost <= delta
    still = all(isinstance(need, VectorMeasurement) and need.lower == need.upper == 0 for need in needs)
    if not still or at.groups is None:
        # Gaussian noise is rounded to a short variance, and its rho down to a grain
        assert epsilon >= price * (1 - Fraction(1, 10**4))
    assert [part.need for part in spending.parts] == list(needs)
    by_hand(spending, at)


def as_rho(noise: Gaussian) -> Callable[[int, int], ConcentratedDp]:
    return lambda shift, coordinates: ConcentratedDp(noise.rho(shift, coordinates))


def by_hand(spending: Spending, at: Setting) -> None:
    """The loss that is claimed is that of the very mechanisms that will run."""
    assert isinstance(spending.loss, Compose)
    losses = list(spending.loss.parts)
    choices = count_selections(at.each, at.neighbors, at.groups)
    for part, loss in zip(spending.parts, losses, strict=False):
        if isinstance(part, Pick):
            found = compute_charge(
                part.mechanism.loss() if isinstance(part.need, TopKMeasurement) else part.mechanism.loss(1)
            )
            assert choices * found.epsilon >= compute_charge(loss).epsilon >= choices * (found.epsilon - 1)
            assert part.mechanism.rows == at.each.rows if isinstance(part.need, QuantileMeasurement) else True
        elif isinstance(part.mechanism, Laplace):
            assert part.sensitivity == vector_l1_sensitivity(part.need, at.each, at.neighbors, at.groups)
            assert loss == part.mechanism.loss(part.sensitivity)
        else:
            shift, coordinates = vector_l2_sensitivity(part.need, at.each, at.neighbors, at.groups)
            once = at.each.total is None or part.need.is_per_unit
            # with a cap on all rows more coordinates may move, by less: rho is all that is claimed
            assert loss == (part.mechanism.loss if once else as_rho(part.mechanism))(shift, coordinates)
            assert compute_rho(loss).rho >= Fraction(shift**2 * coordinates) / (2 * part.mechanism.variance)
    assert (spending.shown is not None) == (at.groups is None)
    if spending.shown is None:
        return
    shown = spending.shown.mechanism
    if isinstance(shown, Threshold):
        counted = spending.parts[spending.shown.part or 0]
        assert isinstance(counted, Part) and isinstance(counted.mechanism, Laplace)
        # the count is drawn once, by the threshold, with the noise that is charged
        assert shown.scale == counted.mechanism.scale
        assert counted.need.is_plain_count
        assert (shown.groups, shown.rows) == (at.each.groups, 1 if counted.need.is_per_unit else at.each.rows)
    else:
        assert shown.groups == l0_sensitivity(at.each, at.neighbors, at.groups)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
@given(needed, prices, settings_of)
def test_the_noise_is_all_of_one_law_and_the_one_with_less_error(
    needs: dict[Measurement, Fraction], price: Fraction, at: Setting
) -> None:
    at = Setting(at.each, at.neighbors, at.groups or 500)
    with_delta = spend(needs, price, Fraction(1, 10**9), at)
    without = spend(needs, price, Fraction(0), at)
    laws = {type(part.mechanism) for part in with_delta.parts if isinstance(part, Part)}
    assert len(laws) <= 1
    assert all(isinstance(part.mechanism, Laplace) for part in without.parts if isinstance(part, Part))

    def contribution_to_account(spending: Spending) -> Fraction:
        return max(
            (
                Fraction(part.mechanism.error(Fraction(95, 100))) / max(1, abs(part.need.lower), abs(part.need.upper))
                for part in spending.parts
                if isinstance(part, Part) and (part.need.lower or part.need.upper)
            ),
            default=Fraction(0),
        )

    # the laws are compared as continuous ones, so up to a step of the discrete ones
    assert contribution_to_account(with_delta) <= contribution_to_account(without) * Fraction(102, 100) + 1


def test_one_count_gets_laplace_noise_and_many_groups_of_a_unit_gaussian(plan: MakePlan):
    # one count at 1/2: Laplace of scale 2r = 6 is within 18; Gaussian of rho about 1/4 / (4 ln 1e9) is not
    (part,) = plan("SELECT COUNT(*) FROM visits", delta=1e-6).parts
    assert isinstance(part.mechanism, Laplace)
    # a unit in 100 groups moves a count by 100 r in L1, and by 10 r in L2
    made = plan("SELECT age, COUNT(*) FROM visits GROUP BY age", delta=1e-6, max_groups=100)
    (part,) = made.parts
    assert isinstance(part.mechanism, Gaussian)
    assert made.epsilon_delta[0] <= Fraction(1, 2) and made.epsilon_delta[1] == Fraction(1, 10**9)
    (part,) = plan("SELECT age, COUNT(*) FROM visits GROUP BY age", max_groups=100).parts
    assert isinstance(part.mechanism, Laplace)


def test_private_keys_are_shown_by_their_count_where_that_takes_fewer_units(plan: MakePlan):
    # a unit with one row: the count is released anyway, and all of the price goes into it
    rows = plan("SELECT CONCAT(ward, age), COUNT(*) FROM beds GROUP BY CONCAT(ward, age)", delta=1e-6)
    assert rows.shown is not None and isinstance(rows.shown.mechanism, Threshold)
    assert rows.shown.part == 0
    # a unit with three rows in each of two groups is felt six times as much in a count of rows, twice as a unit
    visits = plan("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", delta=1e-6)
    assert visits.shown is not None and isinstance(visits.shown.mechanism, PartitionSelection)
    assert visits.shown.part is None
    assert ExactStatistic("units", None) in visits.exact.measures
    patients = plan("SELECT diagnosis, COUNT(DISTINCT patient_id) FROM visits GROUP BY diagnosis", delta=1e-6)
    assert patients.shown is not None and isinstance(patients.shown.mechanism, Threshold)
    # a count of what may be NULL does not say how many rows there are
    known = plan("SELECT CONCAT(ward, age), COUNT(age) FROM beds GROUP BY CONCAT(ward, age)", delta=1e-6)
    assert known.shown is not None and isinstance(known.shown.mechanism, PartitionSelection)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_delta_of_a_question_is_at_most_the_policys(plan: MakePlan, neighbors: str) -> None:
    # 1e-6 / 1000
    many = ", ".join(f"COUNT(*) FILTER (WHERE age > {n})" for n in range(20))
    for sql in (
        "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
        "SELECT CONCAT(ward, age), COUNT(*) FROM beds GROUP BY CONCAT(ward, age)",
        f"SELECT diagnosis, {many} FROM visits GROUP BY diagnosis",
        f"SELECT ward, {many} FROM visits GROUP BY ward",
    ):
        epsilon, delta = plan(sql, delta=1e-6, neighbors=neighbors).epsilon_delta
        assert epsilon <= Fraction(1, 2)
        assert 0 < delta <= Fraction(1, 10**9)


def test_gaussian_noise_and_selected_keys_halve_the_delta(plan: MakePlan):
    many = ", ".join(f"SUM(LEAST(age, {n}))" for n in range(1, 41))
    made = plan(f"SELECT diagnosis, {many} FROM visits GROUP BY diagnosis", delta=1e-6)
    assert all(isinstance(part.mechanism, Gaussian) for part in made.parts)
    assert made.shown is not None and isinstance(made.shown.mechanism, PartitionSelection)
    assert made.delta == made.shown.mechanism.delta == Fraction(1, 2 * 10**9)


@pytest.mark.parametrize("epsilon", [1e-6, 1000])
def test_the_least_and_the_largest_price_are_prices(plan: MakePlan, epsilon: float) -> None:
    for sql in (
        "SELECT diagnosis, COUNT(*), AVG(age), MEDIAN(cost), MODE(ward) FROM visits GROUP BY diagnosis",
        "SELECT ward, VAR_POP(age), MAX(born) FROM visits GROUP BY ward",
    ):
        price = plan(sql, epsilon, delta=1e-6).epsilon_delta[0]
        assert price <= Fraction(str(epsilon)) + Fraction(1, 10**11)
