"""Whether a question fails is no function of the rows: it is answered with every row and without, or refused."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from tacit.aggregates.registry import read_question
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.plan import bind_question
from tacit.plan.bind_question import bind_bounded, plan_for
from tacit.plan.check_arithmetic import ArithmeticCheck
from tacit.plan.machine_ranges import Ranges, UnsafeScalar, ValueKind, range_of_type
from tacit.policy.load import load
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    ExactStatistic,
    GroupKey,
    Literal,
    Quantize,
    Scalar,
    Scan,
    ToFloat,
)
from tacit.query.timestamps import DAY, LAST
from tacit.query.types import Type

MOMENT = datetime.datetime(2021, 3, 4)
COLUMNS: dict[str, Any] = {
    "age": {"type": "int", "lower": 0, "upper": 99},
    "x": {"type": "int", "lower": 0, "upper": 10},
    "big": {"type": "int", "lower": 0, "upper": 10**12},
    "huge": {"type": "int", "lower": -(2**62), "upper": 2**62},
    "free": {"type": "int"},
    "f": {"type": "float", "lower": 0, "upper": 100},
    "ts": {"type": "timestamp"},
    "t2": {"type": "timestamp", "lower": "2020-01-01", "upper": "2025-01-01T23:59:59"},
    "d": {"type": "date"},
    "e": {"type": "date", "lower": "2025-01-28", "upper": "2025-04-06"},
}
POLICY = load(
    {
        "privacy": {"epsilon": 10},
        "tables": {"v": {"unit": "who", "max_groups": 3, "max_rows_per_group": 3, "columns": COLUMNS}},
        "analysts": {"ada": {"epsilon": 5}},
    }
)
WHERE = " FROM v WHERE age = 47"


def rows(*, with_one: bool) -> list[dict[str, Any]]:
    ages = [10, 20, 30, *([47] if with_one else [])]
    return [
        {"who": f"w{place}", "age": age, "x": place % 11, "big": 10**11, "huge": 2**62, "free": -(2**63) + place}
        | {"f": 99.0 + place, "ts": MOMENT, "t2": MOMENT, "d": MOMENT.date(), "e": datetime.date(2025, 3, 4)}
        for place, age in enumerate(ages)
    ]


def engines(*, with_one: bool) -> list[Any]:
    data = rows(with_one=with_one)
    return [
        DuckDBEngine(table_schemas(POLICY), frames={"v": pa.Table.from_pylist(data)}),
        ReferenceEngine({"v": [row | {"ts": to_number(row["ts"]), "t2": to_number(row["t2"])} for row in data]}),
    ]


def to_number(moment: datetime.datetime) -> int:
    return (moment - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1)


ANSWERED = {
    # 10^19 and 10^30 steps of the grid in a unit, more than 64 bits hold
    "SELECT SUM(ROUND(x * 1e-19))": 0,
    "SELECT SUM(ROUND(x * 1e-30))": 0,
    "SELECT SUM(TRUNC(x * 1e-30))": 0,
    "SELECT SUM(CAST(x * 1e-30 AS INTEGER))": 0,
    # a step whose inverse no double holds
    "SELECT COUNT(*) FILTER (WHERE ROUND(x * 1e-150 * 1e-170) > 0)": 0,
    # the double next to 2^62 - 1 is 2^62, and twice that is no integer of 64 bits
    "SELECT SUM(CAST(LEAST(f * 1e30, 4611686018427387903) AS BIGINT) * 2)": 2**63 - 2,
    "SELECT SUM(0 - CAST(GREATEST(f * -1e30, -4611686018427387903) AS BIGINT) * 2)": 2**63 - 2,
    # 0.49999999999999994 and 1/2 are 1 as doubles
    "SELECT SUM(GREATEST(CAST(LEAST(f - 50, 0.49999999999999994) AS INTEGER), 0) * 9223372036854775806 + 5)": 5,
    # no two timestamps are 10^9 days apart
    "SELECT COUNT(*) FILTER (WHERE ts - t2 > INTERVAL '1000000000 days')": 0,
    "SELECT COUNT(*) FILTER (WHERE ts - t2 > INTERVAL '-999999999 weeks')": 1,
    "SELECT COUNT(ts + INTERVAL '10000000 days')": 0,
    "SELECT COUNT(d + big)": 0,
}


@pytest.mark.parametrize("text", ANSWERED)
def test_what_is_answered_is_so_with_every_row_and_without(text):
    plan = plan_for(read_question(text + WHERE), POLICY, 1)
    for more, fewer in zip(engines(with_one=True), engines(with_one=False), strict=True):
        assert fewer.run(plan.exact).get((), (0,)) == (0,)
        (found,) = more.run(plan.exact)[()]
        assert found == ANSWERED[text]


REFUSED = [
    "SELECT COUNT(ts + INTERVAL '1000000000 days')",
    "SELECT COUNT(ts - INTERVAL '100000000 weeks')",
    "SELECT COUNT(DISTINCT DATE_ADD('day', big, t2))",
    "SELECT COUNT(DISTINCT t2 + big * INTERVAL '1 week')",
    "SELECT COUNT(d + 2 * free)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_could_overflow_is_refused_before_any_row_is_read(text):
    with pytest.raises(Refused) as caught:
        plan_for(read_question(text + WHERE), POLICY, 1)
    assert caught.value.code in {ErrorCode.OVERFLOW, ErrorCode.UNBOUNDED}


@pytest.mark.parametrize("aggregate", ["CORR(2.5, f * 1e197)", "COVAR_POP(f * 1e150, f * 1e197)", "VAR_POP(f * 1e197)"])
def test_products_that_no_double_holds_are_refused(aggregate):
    with pytest.raises(Refused) as caught:
        plan_for(read_question(f"SELECT {aggregate} FROM v"), POLICY, 1)
    assert caught.value.code is ErrorCode.OVERFLOW


DAYS = [datetime.date(2025, month, day) for month, day in ((1, 31), (2, 28), (3, 31), (4, 30))]
MIDNIGHTS = [to_number(datetime.datetime.combine(day, datetime.time())) for day in DAYS]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("LAST_DAY(e)", DAYS),
        ("CAST(LAST_DAY(e) AS TIMESTAMP)", MIDNIGHTS),
        ("CAST(CAST(LAST_DAY(e) AS TIMESTAMP) AS DATE)", DAYS),
        ("DATE_TRUNC('hour', CAST(LAST_DAY(e) AS TIMESTAMP))",
         MIDNIGHTS),
        ("YEARWEEK(e) * 1", None),
    ],
)  # fmt: skip
def test_listed_keys_are_of_the_type_of_the_key(key, values):
    plan = plan_for(read_question(f"SELECT COUNT(*){WHERE} GROUP BY {key}"), POLICY, 1)
    assert values is None or list(plan.exact.keys[0].values or ()) == values
    for more, fewer in zip(engines(with_one=True), engines(with_one=False), strict=True):
        assert sum(count for (count,) in more.run(plan.exact).values()) == 1
        assert sum(count for (count,) in fewer.run(plan.exact).values()) == 0


# The check by itself, over scalars that no rule of a function would make.

COLUMN = ColumnReference("c")
X = Clamp(COLUMN, Fraction(0), Fraction(10), whole=True)


def check(scalar: Scalar, kind: str = "int", values: tuple[Any, ...] | None = None) -> None:
    columns = {"c": {"type": kind}}
    policy = load(
        {
            "privacy": {"epsilon": 1},
            "tables": {"t": {"unit": "row", "columns": columns}},
            "analysts": {"ada": {"epsilon": 1}},
        }
    )
    keys = () if values is None else (GroupKey(scalar, values),)
    measures = (ExactStatistic("count", scalar),)
    exact = Aggregation(Scan("t", (("c", "c"),)), None, None, keys, ContributionBounds(1, 1), measures)
    ArithmeticCheck(policy).check(exact)


def call(function: Function, *arguments: Scalar | int) -> Call:
    return Call(function, tuple(Literal(each) if isinstance(each, int) else each for each in arguments))


@pytest.mark.parametrize(
    ("scalar", "kind"),
    [
        (Literal(2**63), "int"),
        (Clamp(COLUMN, 0, 2**63, whole=True), "int"),
        (call(Function.ADD, COLUMN, 1), "int"),
        (call(Function.NEGATE, COLUMN), "int"),
        (call(Function.ABS, COLUMN), "int"),
        (call(Function.MULTIPLY, X, 2**60), "int"),
        (call(Function.MOD, COLUMN, -1), "int"),
        (call(Function.QUOTIENT, COLUMN, 0), "int"),
        (Quantize(COLUMN, 1, 0, 2**63 - 1), "float"),
        (call(Function.DATE_OF, call(Function.ADD, COLUMN, 1)), "timestamp"),
        (call(Function.ADD_MONTHS, COLUMN, 1), "date"),
        (Call(Function.DATE_TRUNC, (Literal("month"), COLUMN)), "date"),
        (call(Function.WEEK, COLUMN), "date"),
        (call(Function.ADD, COLUMN, 1), "text"),
        (Case(((call(Function.LESS, COLUMN, 5), call(Function.SUBTRACT, COLUMN, 1)),), Literal(None)), "int"),
    ],
)  # fmt: skip
def test_the_check_refuses_what_a_row_could_make_fail(scalar, kind):
    with pytest.raises(Refused) as caught:
        check(scalar, kind)
    assert caught.value.code is ErrorCode.OVERFLOW
    assert caught.value.fix


@pytest.mark.parametrize(
    ("scalar", "kind"),
    [
        (call(Function.MULTIPLY, X, 2**59), "int"),
        (call(Function.MOD, COLUMN, 7), "int"),
        (Case(((call(Function.LESS, COLUMN, 5), call(Function.ADD, COLUMN, 1)),), Literal(None)), "int"),
        (Case(((call(Function.LESS, COLUMN, 0), Literal(0)),), call(Function.SUBTRACT, COLUMN, 1)), "int"),
        (Quantize(ToFloat(COLUMN), 1, -(2**62), 2**62), "int"),
        (call(Function.SUBTRACT, LAST, COLUMN), "timestamp"),
        (call(Function.DATE_OF, COLUMN), "timestamp"),
        (call(Function.DAYS, COLUMN, COLUMN), "date"),
    ],
)  # fmt: skip
def test_the_check_knows_what_guards_and_clamps_leave(scalar, kind):
    check(scalar, kind)


@pytest.mark.parametrize("values", [(datetime.date(2025, 1, 1),), (1, "2"), (True,)])
def test_listed_values_of_another_type_than_the_key_are_refused(values):
    check(X, values=(1, 2))
    with pytest.raises(Refused):
        check(X, values=values)


def test_all_that_is_measured_is_checked(monkeypatch):
    # of every plan the measures of its parts and the histograms by which bounds are chosen, too
    seen: list[Aggregation] = []
    plain = ArithmeticCheck.check

    def note(self: ArithmeticCheck, exact: Aggregation, measures: Any = ()) -> None:
        seen.append(exact)
        plain(self, exact, measures)

    monkeypatch.setattr(bind_question.ArithmeticCheck, "check", note)
    bound = bind_bounded(read_question("SELECT SUM(free) FROM v"), POLICY)
    plan = bound.plan(POLICY.budget.epsilon / 10, POLICY.question_delta)
    assert plan.bounds is not None
    assert len(seen) == 2


def test_ranges_of_scalars():
    ranges = Ranges({"c": range_of_type(Type.TIMESTAMP), "d": range_of_type(Type.DATE)})
    day = ranges.find(call(Function.QUOTIENT, COLUMN, DAY))
    assert day[:3] == (ValueKind.INT, 0, LAST // DAY)
    hour = ranges.find(call(Function.MOD, COLUMN, DAY))
    assert hour[:3] == (ValueKind.INT, 0, DAY - 1)
    assert ranges.find(Quantize(ToFloat(COLUMN), Fraction(1), 0, 2**62 - 1)).upper == LAST + 1
    wide = Ranges({"c": range_of_type(Type.FLOAT)})
    assert wide.find(Quantize(COLUMN, Fraction(1), 0, 2**62 - 1)).upper == 2**62
    with pytest.raises(UnsafeScalar):
        ranges.find(call(Function.YEAR, COLUMN))
