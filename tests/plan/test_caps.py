"""Bounds that the policy's caps give: where they are used, what they are, and that they change no other question."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from tacit.errors import ErrorCode, Refused
from tacit.plan.caps import Cap, cap_of
from tacit.plan.plan import Plan
from tacit.query.bound import MOST_INT, TypedScalar
from tacit.query.nodes import Aggregation, Clamp, ColumnReference, Scalar, walk
from tacit.query.types import Type

MakePlan = Callable[..., Plan]
EACH = "(SELECT patient_id, {} AS n FROM visits GROUP BY patient_id) AS t"


def clamps(exact: Aggregation) -> list[Clamp]:
    """The clamps of the policy's caps in what is measured and grouped by."""
    scalars: list[Scalar] = [measure.argument for measure in exact.measures if measure.argument is not None]
    scalars += [key.scalar for key in exact.keys]
    return [node for scalar in scalars for node in walk(scalar) if isinstance(node, Clamp) and node.note]


@pytest.mark.parametrize(
    ("inner", "least", "most"),
    [
        # Two groups of three rows are kept of a patient: six rows. A group has one row at least.
        ("COUNT(*)", 1, 6),
        ("COUNT(age)", 0, 6),
        ("COUNT(DISTINCT ward)", 0, 6),
        ("SUM(age)", 0, 660),
        ("SUM(score)", -120, 60),
        ("SUM(stay - 31)", -186, -1),
        ("SUM(cost)", 0, 30_000),
        ("SUM(balance)", -6000, 6000),
        ("COALESCE(SUM(score), 100)", -120, 100),
        ("CASE WHEN COUNT(*) > 2 THEN SUM(age) ELSE -5 END", -5, 660),
    ],
)
def test_what_the_caps_leave(inner: str, least: int, most: int, plan: MakePlan) -> None:
    made = plan(f"SELECT SUM(n) FROM {EACH.format(inner)}")
    (part,) = made.parts
    assert part.sensitivity * part.need.unit == max(abs(least), abs(most))
    assert (part.need.lower * part.need.unit, part.need.upper * part.need.unit) == (least, most)
    assert clamps(made.exact)
    assert any("as the policy's caps say" in note for note in made.recipe.notes)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM {EACH.format('COUNT(*)')}",
        f"SELECT COUNT(n) FROM {EACH.format('SUM(age)')}",
        f"SELECT COUNT(DISTINCT n) FROM {EACH.format('COUNT(*)')}",
        f"SELECT SUM(LEAST(n, 5)) FROM {EACH.format('COUNT(*)')}",
        f"SELECT AVG(GREATEST(0, LEAST(n, 5))) FROM {EACH.format('SUM(score)')}",
        f"SELECT COUNT(*) FROM {EACH.format('COUNT(*)')} WHERE n > 2",
        f"SELECT AVG(n) FROM {EACH.format('AVG(age)')}",
        f"SELECT MAX(n) FROM {EACH.format('MAX(age)')}",
    ],
)
def test_a_question_that_needs_none_is_as_it_was(text: str, plan: MakePlan) -> None:
    made = plan(text)
    assert clamps(made.exact) == []
    assert not any("caps say" in note for note in made.recipe.notes)


def test_caps_are_those_of_all_rows_of_the_source(plan: MakePlan) -> None:
    total = plan(f"SELECT SUM(n) FROM {EACH.format('COUNT(*)')}", max_rows=4)
    assert [part.sensitivity for part in total.parts] == [4]
    # of joined rows three groups are kept, the larger number, and 3 * 2 rows in each
    joined = "visits AS v JOIN labs AS l ON v.patient_id = l.patient_id"
    both = f"(SELECT v.patient_id, COUNT(*) AS n FROM {joined} GROUP BY v.patient_id) AS t"
    assert [part.sensitivity for part in plan(f"SELECT SUM(n) FROM {both}").parts] == [18]


def test_caps_go_through_subqueries_and_joins(plan: MakePlan) -> None:
    outer = f"(SELECT n, n + 1 AS m, COALESCE(n, 0) AS z FROM {EACH.format('COUNT(*)')}) AS u"
    assert [part.sensitivity for part in plan(f"SELECT SUM(n) FROM {outer}").parts] == [6]
    assert [part.sensitivity for part in plan(f"SELECT SUM(m) FROM {outer}").parts] == [7]
    assert [part.sensitivity for part in plan(f"SELECT SUM(z) FROM {outer}").parts] == [6]
    counted = EACH.format("COUNT(*)")
    joined = f"SELECT SUM(COALESCE(t.n, 0)) FROM labs AS l LEFT JOIN {counted} ON l.patient_id = t.patient_id"
    # two rows of labs in the only group, each with a count of at most six
    assert [part.sensitivity for part in plan(joined).parts] == [12]


@pytest.mark.parametrize(
    ("inner", "least", "most"),
    [
        # Six labs are kept of a patient. A visit of one without labs finds none.
        ("COUNT(*)", 0, 6),
        ("SUM(level)", 0, 60),
        ("COALESCE(MAX(age), -1)", -1, 120),
    ],
)
def test_what_the_caps_leave_of_a_value_of_a_row(inner: str, least: int, most: int, plan: MakePlan) -> None:
    made = plan(f"SELECT SUM((SELECT {inner} FROM labs l WHERE l.patient_id = v.patient_id)) FROM visits v")
    (part,) = made.parts
    assert (part.need.lower * part.need.unit, part.need.upper * part.need.unit) == (least, most)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(n) FROM visits JOIN (SELECT ward, COUNT(*) AS n FROM wards GROUP BY ward) AS w USING (ward)",
        "SELECT SUM(n) FROM visits JOIN (SELECT ward, SUM(floor) AS n FROM wards GROUP BY ward) AS w USING (ward)",
        "SELECT SUM((SELECT COUNT(*) FROM wards w WHERE w.region = v.ward)) FROM visits v",
    ],
)
def test_no_cap_is_of_public_rows(text: str, plan: MakePlan) -> None:
    # they are nobody's: clamped to the one row of a unit, a count of them would be wrong
    with pytest.raises(Refused) as caught:
        plan(text)
    assert caught.value.code is ErrorCode.UNBOUNDED


def test_what_has_no_bounds_even_so_is_refused(plan: MakePlan) -> None:
    for inner in ("SUM(prior)", "MAX(prior)", "1.0 * SUM(age) / COUNT(age)"):
        with pytest.raises(Refused) as caught:
            plan(f"SELECT SUM(n) FROM {EACH.format(inner)}")
        assert caught.value.code is ErrorCode.UNBOUNDED


def test_a_cap_beyond_64_bits_is_none() -> None:
    bound = TypedScalar(ColumnReference("c"), Type.INT, Fraction(0), MOST_INT)
    assert Cap(Fraction(0), Fraction(2**63), "").add_to(bound) == bound
    assert cap_of(bound) is None
    assert cap_of(Cap(Fraction(0), Fraction(9), "said").add_to(bound)) == Cap(Fraction(0), Fraction(9), "said")


def test_a_unit_is_counted_once_in_each_group_where_a_condition_holds(plan: MakePlan) -> None:
    def sensitivities(what: str, rest: str = "") -> list[int]:
        return [part.sensitivity for part in plan(f"SELECT {what} FROM visits{rest}").parts]

    assert sensitivities("COUNT(DISTINCT CASE WHEN age > 40 THEN patient_id END)") == [1]
    assert sensitivities("COUNT(DISTINCT patient_id) FILTER (WHERE smoker)") == [1]
    assert sensitivities("COUNT(DISTINCT CASE WHEN smoker THEN patient_id ELSE NULL END)", " GROUP BY ward") == [2]
    assert sensitivities("COUNT(CASE WHEN smoker THEN patient_id END)") == [3]
    # one that says something else for others is a value like any other, and no listed column
    with pytest.raises(Refused) as caught:
        plan("SELECT COUNT(DISTINCT CASE WHEN smoker THEN patient_id ELSE 'x' END) FROM visits")
    assert caught.value.code is ErrorCode.UNKNOWN_COLUMN
