"""Functions of dates in plans: their public keys, constants that fold, and the present day that the policy declares."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest
from tests.support.counts import some

from tacit.aggregates.registry import read_question as parse
from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.bounds import TypedScalar, bind, domain
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.nodes import Call, Case, ColumnReference, Literal, Scalar
from tacit.query.timestamps import to_microseconds
from tacit.query.types import Type

TODAY = datetime.date(2025, 3, 31)


def date_column(first: str, last: str) -> TypedScalar:
    ends = [Fraction(datetime.date.fromisoformat(day).toordinal()) for day in (first, last)]
    return TypedScalar(ColumnReference("d"), Type.DATE, *ends, Fraction(1))


def time_column(first: str, last: str) -> TypedScalar:
    ends = [Fraction(to_microseconds(datetime.datetime.fromisoformat(end))) for end in (first, last)]
    return TypedScalar(ColumnReference("d"), Type.TIMESTAMP, *ends, Fraction(1))


def bound(expression: str, column: TypedScalar) -> TypedScalar:
    scalar = parse(f"SELECT {expression} AS x FROM t", TODAY).outputs[0].scalar
    return bind(scalar, lambda node: column if isinstance(node, ColumnReference) else None, rows=True)


def keys(expression: str, column: TypedScalar) -> Any:
    found = domain(bound(expression, column), 1_000)
    return None if found is None else list(found)


def days(text: str) -> list[datetime.date]:
    return [datetime.date.fromisoformat(day) for day in text.split()]


YEAR = date_column("2024-11-15", "2025-02-03")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("TO_CHAR(d, 'YYYY-MM')", ["2024-11", "2024-12", "2025-01", "2025-02"]),
        ("STRFTIME(d, '%b %Y')", ["Nov 2024", "Dec 2024", "Jan 2025", "Feb 2025"]),
        ("TO_CHAR(d, 'YYYY-\"Q\"Q')", ["2024-Q4", "2025-Q1"]),
        ("TO_CHAR(d, 'YYYY')", ["2024", "2025"]),
        ("MONTHNAME(d)", ["November", "December", "January", "February"]),
        ("TO_CHAR(DATE_TRUNC('month', d), 'YYYY-MM-DD')", ["2024-11-01", "2024-12-01", "2025-01-01", "2025-02-01"]),
        ("CAST(DATE_TRUNC('quarter', d) AS TEXT)", ["2024-10-01", "2025-01-01"]),
        ("EXTRACT(YEAR FROM d)::text", ["2024", "2025"]),
        ("YEARWEEK(d)", [*range(202446, 202453), *range(202501, 202507)]),
        ("TO_CHAR(d, 'IYYY-IW')", [f"2024-{w}" for w in range(46, 53)] + [f"2025-{w:02}" for w in range(1, 7)]),
        ("LAST_DAY(d)", days("2024-11-30 2024-12-31 2025-01-31 2025-02-28")),
        ("DATE_TRUNC('month', d) + INTERVAL '1 month'", days("2024-12-01 2025-01-01 2025-02-01 2025-03-01")),
        ("DATE_DIFF('month', DATE '2024-12-01', d)", [-1, 0, 1, 2]),
        ("d >= CURRENT_DATE", [False, True]),
        ("(d > CURRENT_DATE)::text", ["false", "true"]),
    ],
)  # fmt: skip
def test_public_keys_of_a_date_with_bounds(expression: str, expected: list[Any]) -> None:
    assert keys(expression, YEAR) == expected


def test_weeks_that_start_on_sunday() -> None:
    # 2024-11-10 and 2025-02-02 are Sundays
    found = keys("DATE_TRUNC(d, WEEK(SUNDAY))", YEAR)
    assert (found[0], found[-1], len(found)) == (datetime.date(2024, 11, 10), datetime.date(2025, 2, 2), 13)
    assert all(day.isoweekday() == 7 for day in found)


def test_parts_without_a_year_list_what_occurs_in_any_year() -> None:
    long = date_column("1900-01-01", "2100-12-31")
    assert keys("DAYNAME(d)", long) == [
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ]
    assert len(keys("TO_CHAR(d, 'Mon')", long)) == 12
    assert len(keys("TO_CHAR(d, 'MM-DD')", long)) == 366
    assert len(keys("TO_CHAR(d, 'IW')", long)) == 53
    assert len(keys("TO_CHAR(d, 'DDD')", long)) == 366
    assert keys("TO_CHAR(d, 'YYYY-MM-DD')", long) is None  # more than a thousand
    assert keys("TO_CHAR(d, 'Dy DD')", long) is None  # it takes 28 years for all of them


UNITS = ["day", "week", "month", "quarter", "year"]
PATTERNS = ["D", "Day", "DD", "DDD", "IW", "MM", "Q", "Dy DD", "MM-DD", "HH24"]
TEXTS = [(pattern, UNITS[(place + shift) % 5]) for place, pattern in enumerate(PATTERNS) for shift in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "unit"), some(TEXTS, 5))
def test_texts_of_truncated_dates_list_just_what_every_day_gives(unit: str, pattern: str) -> None:
    """Seven months do not begin on all weekdays, nor twelve quarters in all weeks."""
    first, last = datetime.date(2019, 12, 30), datetime.date(2026, 2, 27)
    found = bound(f"TO_CHAR(DATE_TRUNC('{unit}', d), '{pattern}')", date_column(str(first), str(last)))
    listed = domain(found, 1_000)
    there = {
        evaluate(found.scalar, {"d": datetime.date.fromordinal(day)})
        for day in range(first.toordinal(), last.toordinal() + 1)
    }
    assert listed is not None and set(listed) == there


def test_public_keys_of_a_timestamp() -> None:
    day = time_column("2025-03-01T10:30:00", "2025-03-01T13:05:00")
    assert keys("TO_CHAR(d, 'HH24')", day) == ["10", "11", "12", "13"]
    assert keys("TO_CHAR(d, 'YYYY-MM-DD HH12 AM')", day) == [
        f"2025-03-01 {hour}" for hour in ("10 AM", "11 AM", "12 PM", "01 PM")
    ]
    assert keys("CAST(DATE_TRUNC('hour', d) AS TEXT)", day) == [f"2025-03-01 {hour}:00:00" for hour in range(10, 14)]
    years = time_column("2000-01-01T00:00:00", "2025-03-01T13:05:00")
    assert len(keys("TO_CHAR(d, 'HH24')", years)) == 24
    assert len(keys("TO_CHAR(d, 'HH24:MI')", time_column("2024-01-01T00:00:00", "2025-03-01T13:05:00")) or []) == 0


def test_without_bounds_there_is_no_list() -> None:
    assert keys("TO_CHAR(d, 'YYYY')", TypedScalar(ColumnReference("d"), Type.DATE)) is None


@pytest.mark.parametrize(
    ("expression", "day"),
    [
        ("CURRENT_DATE - INTERVAL '30 days'", "2025-03-01"),
        ("CURRENT_DATE - INTERVAL '1 month'", "2025-02-28"),
        ("CURRENT_DATE - 90", "2024-12-31"),
        ("DATEADD(year, -1, CURRENT_DATE)", "2024-03-31"),
        ("DATE_TRUNC('month', CURRENT_DATE) - INTERVAL '1 month'", "2025-02-01"),
        ("DATE '2024-01-31' + INTERVAL '1 month'", "2024-02-29"),
        ("LAST_DAY(DATE_ADD(CURRENT_DATE, INTERVAL -1 MONTH))", "2025-02-28"),
        ("DATE_ADD('2025-03-31', INTERVAL 1 DAY)", "2025-04-01"),
    ],
)
def test_an_expression_of_constants_is_a_constant(expression: str, day: str) -> None:
    expected = datetime.date.fromisoformat(day)
    found = bound(expression, YEAR)
    assert evaluate(found.scalar, {}) == expected
    if not expression.startswith("LAST_DAY"):
        assert found.scalar == Literal(expected)
    assert (found.lower, found.upper) == (expected.toordinal(), expected.toordinal())


def test_a_constant_time_is_a_constant() -> None:
    found = bound("NOW() - INTERVAL '90 minutes'", YEAR)
    assert found.scalar == Literal(to_microseconds(datetime.datetime(2025, 3, 30, 22, 30)))
    assert bound("NOW() - INTERVAL '1 month'", YEAR).scalar == Literal(to_microseconds(datetime.date(2025, 2, 28)))


def test_what_lies_outside_of_the_years_is_null_and_constants_are_refused() -> None:
    forever = TypedScalar(ColumnReference("d"), Type.DATE)
    for expression in ("d + 1", "d + INTERVAL '1 month'", "d + INTERVAL '1 hour'", "d + INTERVAL '1 year'"):
        found = bound(expression, forever)
        assert found.nullable and evaluate(found.scalar, {"d": datetime.date.max}) in {
            None,
            to_microseconds(datetime.datetime(9999, 12, 31, 1)),
        }
    assert evaluate(bound("d - INTERVAL '1 month'", forever).scalar, {"d": datetime.date(1, 1, 31)}) is None
    assert evaluate(bound("LAST_DAY(d)", forever).scalar, {"d": datetime.date.max}) == datetime.date.max
    with pytest.raises(Refused) as caught:
        bound("DATE '9999-12-31' + 1", YEAR)
    assert caught.value.code is ErrorCode.OVERFLOW


def nodes(scalar: Scalar) -> int:
    """How many parts a scalar has."""
    match scalar:
        case Call(_, arguments):
            return 1 + sum(map(nodes, arguments))
        case Case(branches, otherwise):
            return 1 + sum(nodes(part) for branch in branches for part in branch) + nodes(otherwise)
    return 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    ["DAY({} - 1)", "EXTRACT(DAY FROM {} - 1)", "EXTRACT(YEAR FROM AGE(d, d + {}))", "DATE_DIFF('month', d, d + {})"],
)
def test_functions_within_each_other_stay_small_or_are_refused(step: str) -> None:
    # each names its operand several times, so twenty of them would make millions of parts
    expression = "d" if "- 1" in step else "1"
    for _ in range(20):
        expression = step.format(f"({expression})") if "- 1" not in step else f"(d - {step.format(expression)})"
        try:
            assert nodes(bound(expression, YEAR).scalar) < 20_000
        except Refused:
            break


def policy(**data: Any) -> Policy:
    columns = {"d": {"type": "date", "lower": "2024-01-01", "upper": "2025-12-31"}}
    return load(
        {
            "data": data,
            "privacy": {"epsilon": 10},
            "tables": {"t": {"unit": "row", "columns": columns}},
            "analysts": {"ada": {"epsilon": 10}},
        }
    )


def key(sql: str, **data: Any) -> str:
    return make_plans(Question(sql, epsilon=1), policy(**data)).plan.key


def test_a_question_that_names_today_is_the_one_that_names_its_date() -> None:
    named = "SELECT COUNT(*) FROM t WHERE d >= CURRENT_DATE - INTERVAL '30 days'"
    written = "SELECT COUNT(*) FROM t WHERE d >= DATE '2025-03-01'"
    assert key(named, today=TODAY) == key(written, today=TODAY) == key(written)
    # another day is another question, and no other question changes with it
    assert key(named, today=datetime.date(2025, 4, 1)) != key(named, today=TODAY)
    with pytest.raises(Refused) as caught:
        key(named)
    assert caught.value.code is ErrorCode.UNKNOWN_FUNCTION
    assert plan_for(parse(written), policy(), 1).key
