"""Every function in DuckDB and in plain Python: the same values, and those that the planner's bounds claim."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.engines.dialect import DUCKDB, POSTGRES, SPARK
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.evaluate import evaluate
from tacit.engines.scalars import quote_name, quote_text, write_guarded, write_literal, write_scalar
from tacit.errors import Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar, bind, domain
from tacit.query.date_formats import FIELDS
from tacit.query.functions import COMPARISONS, DATE_PARTS, DATE_UNITS, TIME_PARTS, TIME_UNITS, Function
from tacit.query.nodes import (
    Call,
    Case,
    Clamp,
    ColumnReference,
    Literal,
    Quantize,
    ReleasedKey,
    ReleasedValue,
    Scalar,
    ToFloat,
)
from tacit.query.timestamps import LAST as LAST_MICROSECOND
from tacit.query.timestamps import PERIODS, to_microseconds
from tacit.query.types import Type

pytestmark = pytest.mark.slow

EXAMPLES = 80 if FULL else 4
FIRST, LAST = datetime.date(2019, 12, 30), datetime.date(2024, 2, 29)


def _whole(column: str, lower: int, upper: int) -> TypedScalar:
    clamped = Clamp(ColumnReference(column), Fraction(lower), Fraction(upper), whole=True)
    return TypedScalar(clamped, Type.INT, Fraction(lower), Fraction(upper), Fraction(1))


def _real(column: str, lower: Fraction | None, upper: Fraction | None, step: Fraction | None = None) -> TypedScalar:
    return TypedScalar(Clamp(ColumnReference(column), lower, upper, whole=False), Type.FLOAT, lower, upper, step)


def _date(column: str, first: datetime.date, last: datetime.date) -> TypedScalar:
    here, low, high = ColumnReference(column), Literal(first), Literal(last)
    clamped = Case(((Call(Function.LESS, (here, low)), low), (Call(Function.GREATER, (here, high)), high)), here)
    return TypedScalar(clamped, Type.DATE, Fraction(first.toordinal()), Fraction(last.toordinal()), Fraction(1))


def _moment(column: str, first: datetime.datetime, last: datetime.datetime) -> TypedScalar:
    lower, upper = (Fraction(to_microseconds(end)) for end in (first, last))
    clamped = Clamp(ColumnReference(column), lower, upper, whole=True)
    return TypedScalar(clamped, Type.TIMESTAMP, lower, upper, Fraction(1))


COLUMNS = {
    "i": _whole("i", -7, 12),
    "j": _whole("j", 3, 40),
    "free": TypedScalar(ColumnReference("free"), Type.INT, LEAST_INT, MOST_INT, Fraction(1)),
    "x": _real("x", Fraction(-2), Fraction(5), Fraction(1, 4)),
    "y": _real("y", Fraction(1, 2), Fraction(100)),
    "wild": _real("wild", None, None),
    "s": TypedScalar(ColumnReference("s"), Type.TEXT),
    "t": TypedScalar(ColumnReference("t"), Type.TEXT),
    "b": TypedScalar(ColumnReference("b"), Type.BOOL),
    "d": _date("d", FIRST, LAST),
    "any": TypedScalar(ColumnReference("any"), Type.DATE),
    "m": _moment("m", datetime.datetime(2019, 12, 30, 7, 30), datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999)),
    "ever": TypedScalar(ColumnReference("ever"), Type.TIMESTAMP),
}
STORED = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.TEXT: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.int64(),
}
SCHEMA = pa.schema([(column, STORED[bound.type]) for column, bound in COLUMNS.items() if bound.type])

# Rows: plain values, and all that is hard about each type.

INTS = st.one_of(st.none(), st.integers(-15, 45), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 0]))
HARD = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, -5e-324, 0.1, 2.0**53]
QUARTERS = st.integers(-40, 420).map(lambda n: n / 4)
FLOATS = st.one_of(st.none(), QUARTERS, st.sampled_from(HARD), st.floats())
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["", " ", "  a b ", "a%b", "a_b", "a\\b", "'", '"', "a\nb", "\t", "Z" * 300, "(a|b)*", "a.b"]),
    st.text([chr(n) for n in range(1, 128)], max_size=12),
    st.text("ab", max_size=12),
)
EXTREMES = "0001-01-01 0001-12-31 1900-02-28 2000-02-29 2020-12-31 2021-01-03 2024-02-29 9999-12-27 9999-12-31"
DATES = st.one_of(
    st.none(),
    st.dates(),
    st.dates(FIRST, LAST),
    st.sampled_from([datetime.date.fromisoformat(day) for day in EXTREMES.split()]),
)
OF_TYPE = {Type.INT: INTS, Type.FLOAT: FLOATS, Type.TEXT: TEXTS, Type.BOOL: st.sampled_from([None, False, True])}
MOMENTS = st.one_of(
    st.none(),
    st.integers(0, LAST_MICROSECOND),
    st.datetimes().map(to_microseconds),
    st.datetimes(datetime.datetime(2019, 12, 30), datetime.datetime(2024, 3, 1)).map(to_microseconds),
    st.sampled_from([0, LAST_MICROSECOND]),
    st.dates().map(to_microseconds),
)
OF_TYPE |= {Type.DATE: DATES, Type.TIMESTAMP: MOMENTS}
ROWS = st.lists(
    st.fixed_dictionaries({column: OF_TYPE[bound.type] for column, bound in COLUMNS.items() if bound.type}),
    min_size=1,
    max_size=12,
)

# Arguments: columns, constants, and small expressions of them that doubles hold exactly.


def columns(*names: str) -> st.SearchStrategy[Scalar]:
    return st.sampled_from(names).map(ColumnReference)


def call(function: Function, *arguments: Scalar) -> Call:
    return Call(function, arguments)


SMALL = st.integers(-9, 9).map(Literal)
CAPPED = call(Function.GREATEST, Literal(-3), call(Function.LEAST, ColumnReference("free"), Literal(3)))
LIMITED = call(
    Function.GREATEST, Literal(Fraction(-3)), call(Function.LEAST, ColumnReference("wild"), Literal(Fraction(3)))
)
WHOLE = st.one_of(
    columns("i", "j", "free"),
    SMALL,
    st.sampled_from(
        [
            call(Function.ADD, ColumnReference("i"), ColumnReference("j")),
            call(Function.MULTIPLY, ColumnReference("i"), Literal(6)),
            CAPPED,
        ]
    ),
)
NUMBER = st.one_of(
    WHOLE,
    columns("x", "y", "wild", "x", "y"),
    st.integers(-20, 20).map(lambda n: Literal(Fraction(n, 4))),
    st.sampled_from(
        [
            call(Function.SUBTRACT, ColumnReference("x"), ColumnReference("i")),
            call(Function.MULTIPLY, ColumnReference("x"), ColumnReference("y")),
            LIMITED,
        ]
    ),
)
TEXT = st.one_of(
    columns("s", "t"),
    st.sampled_from(["", "a", " b ", "'"]).map(Literal),
    st.sampled_from(
        [call(Function.UPPER, ColumnReference("s")), call(Function.COALESCE, ColumnReference("t"), Literal("none"))]
    ),
)
DATE = st.one_of(
    columns("d", "any"),
    st.dates().map(Literal),
    st.sampled_from(
        [
            call(Function.COALESCE, ColumnReference("any"), Literal(LAST)),
            call(Function.GREATEST, ColumnReference("any"), Literal(FIRST)),
        ]
    ),
    st.sampled_from([call(Function.DATE_TRUNC, Literal(unit), ColumnReference("any")) for unit in DATE_UNITS]),
)
MOMENT = st.one_of(
    columns("m", "ever"),
    st.datetimes().map(Literal),
    st.sampled_from(
        [
            call(Function.COALESCE, ColumnReference("ever"), Literal(LAST)),
            call(Function.GREATEST, ColumnReference("ever"), Literal(datetime.datetime(2020, 1, 1, 12))),
            call(Function.CAST, ColumnReference("any"), Literal("timestamp")),
        ]
    ),
    st.sampled_from(
        [
            call(Function.DATE_TRUNC, Literal(unit), ColumnReference(column))
            for unit in DATE_UNITS + TIME_UNITS
            for column in ("m", "ever")
        ]
    ),
)
CONDITION = st.one_of(
    columns("b"), st.just(call(Function.GREATER, ColumnReference("i"), Literal(3))), st.booleans().map(Literal)
)
PATTERN = st.one_of(st.text("ab%_.", max_size=8), st.text([chr(n) for n in range(1, 128) if n != 92], max_size=6))
SOUGHT = st.sampled_from(["a", "ab", "aa", " ", "'", "%", "é"]).map(Literal)
FORMAT = st.lists(st.sampled_from([*FIELDS]), min_size=1, max_size=3).map(
    lambda fields: Literal("-".join(f"{{{field}}}" for field in fields))
)


def alike(of: st.SearchStrategy[Scalar], least: int, most: int) -> st.SearchStrategy[tuple[Scalar, ...]]:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


def several(*of: st.SearchStrategy[Scalar], least: int, most: int) -> st.SearchStrategy[tuple[Scalar, ...]]:
    return st.one_of([alike(one, least, most) for one in of])


ARGUMENTS: dict[Function, st.SearchStrategy[tuple[Scalar, ...]]] = {
    **dict.fromkeys((Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE), st.tuples(NUMBER, NUMBER)),
    **dict.fromkeys(
        (
            Function.NEGATE,
            Function.ABS,
            Function.FLOOR,
            Function.CEIL,
            Function.SQRT,
            Function.LN,
            Function.LOG10,
            Function.EXP,
            Function.SIGN,
        ),
        st.tuples(NUMBER),
    ),
    **dict.fromkeys((Function.ROUND, Function.TRUNC), st.tuples(NUMBER, st.integers(0, 4).map(Literal))),
    Function.DIV: st.tuples(WHOLE, WHOLE),
    **dict.fromkeys((Function.LEAST, Function.GREATEST), several(NUMBER, DATE, MOMENT, least=1, most=4)),
    Function.COALESCE: several(NUMBER, DATE, MOMENT, st.one_of(DATE, MOMENT), TEXT, CONDITION, least=1, most=4),
    **dict.fromkeys(COMPARISONS, several(NUMBER, DATE, st.one_of(DATE, MOMENT), least=2, most=2)),
    **dict.fromkeys((Function.EQUAL, Function.UNEQUAL), several(NUMBER, DATE, MOMENT, TEXT, least=2, most=2)),
    Function.IN: st.one_of(
        st.builds(lambda x, list_: (x, *list_), NUMBER, alike(SMALL, 1, 5)),
        st.builds(lambda x, list_: (x, *list_), TEXT, alike(st.sampled_from(["", "a", "'"]).map(Literal), 1, 3)),
    ),
    Function.IS_NULL: several(NUMBER, DATE, TEXT, CONDITION, least=1, most=1),
    **dict.fromkeys((Function.AND, Function.OR), alike(CONDITION, 2, 4)),
    Function.NOT: st.tuples(CONDITION),
    Function.MOD: st.tuples(WHOLE, WHOLE),
    Function.POWER: st.tuples(NUMBER, st.integers(0, 10).map(Literal)),
    **dict.fromkeys(
        (Function.LOWER, Function.UPPER, Function.TRIM, Function.LTRIM, Function.RTRIM, Function.LENGTH),
        st.tuples(TEXT),
    ),
    Function.RIGHT: st.tuples(TEXT, st.integers(1, 9).map(Literal)),
    Function.REPLACE: st.tuples(TEXT, SOUGHT, st.sampled_from(["", "b", "xyz"]).map(Literal)),
    **dict.fromkeys(
        (Function.LPAD, Function.RPAD), st.tuples(st.one_of(TEXT, WHOLE), st.integers(1, 9).map(Literal), SOUGHT)
    ),
    Function.SPLIT_PART: st.tuples(TEXT, SOUGHT, st.integers(1, 4).map(Literal)),
    Function.POSITION: st.tuples(TEXT, SOUGHT),
    Function.SUBSTRING: st.tuples(
        TEXT, st.one_of(st.integers(1, 9), st.just(2**31 - 1)).map(Literal), st.integers(1, 9).map(Literal)
    ),
    Function.CONCAT: alike(TEXT, 1, 8),
    Function.LIKE: st.tuples(TEXT, PATTERN.map(Literal)),
    **dict.fromkeys(DATE_PARTS, st.tuples(st.one_of(DATE, MOMENT))),
    **dict.fromkeys(TIME_PARTS, st.tuples(MOMENT)),
    Function.DATE_TRUNC: st.one_of(
        st.tuples(st.sampled_from(DATE_UNITS).map(Literal), DATE),
        st.tuples(st.sampled_from(DATE_UNITS + TIME_UNITS).map(Literal), MOMENT),
    ),
    Function.DAYS: st.tuples(st.one_of(DATE, MOMENT), st.one_of(DATE, MOMENT)),
    Function.QUOTIENT: st.tuples(MOMENT, st.sampled_from([*PERIODS.values()]).map(Literal)),
    Function.CAST: st.one_of(
        st.tuples(MOMENT, st.just(Literal("date"))),
        st.tuples(DATE, st.just(Literal("timestamp"))),
        st.tuples(NUMBER, st.just(Literal("int"))),
        st.tuples(st.one_of(WHOLE, CONDITION, DATE, MOMENT), st.just(Literal("text"))),
    ),
    Function.DATE_ADD: st.one_of(
        st.tuples(
            st.sampled_from(["month", "day", "week", "hour", "microsecond", "year", "quarter"]).map(Literal),
            st.one_of(SMALL, st.sampled_from([400, -5000, 12 * 9999]).map(Literal)),
            st.one_of(DATE, MOMENT),
        ),
        st.tuples(st.sampled_from(["day", "hour", "week"]).map(Literal), WHOLE, st.one_of(DATE, MOMENT)),
    ),
    Function.DATE_DIFF: st.tuples(
        st.sampled_from(["week", "month", "quarter", "year"]).map(Literal), st.one_of(DATE, MOMENT), DATE
    ),
    Function.ELAPSED: st.tuples(
        st.sampled_from([*PERIODS]).map(Literal), st.one_of(DATE, MOMENT), st.one_of(DATE, MOMENT)
    ),
    Function.AGE: st.tuples(st.sampled_from(["year", "month"]).map(Literal), DATE, DATE),
    Function.EPOCH: st.tuples(st.one_of(DATE, MOMENT)),
    **dict.fromkeys((Function.YEAR_WEEK, Function.LAST_DAY), st.tuples(st.one_of(DATE, MOMENT))),
    Function.WEEK_START: st.tuples(
        st.sampled_from(["sunday", "saturday", "tuesday"]).map(Literal), st.one_of(DATE, MOMENT)
    ),
    Function.TO_CHAR: st.tuples(FORMAT, st.one_of(DATE, MOMENT)),
}


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect(":memory:", config={"threads": 1}) as open_one:
        yield open_one


def leaf(node: Scalar) -> TypedScalar | None:
    return COLUMNS[node.name] if isinstance(node, ColumnReference) else None


def bound_or_none(node: Scalar) -> TypedScalar | None:
    try:
        return bind(node, leaf, rows=True)
    except Refused:
        return None


def run(connection: Any, nodes: list[Scalar], rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What DuckDB makes of scalars, for each row."""
    connection.register("here", pa.Table.from_pylist(rows, SCHEMA))
    outputs = ", ".join(f"{write_scalar(node)} AS o{n}" for n, node in enumerate(nodes))
    try:
        return connection.execute(f"SELECT {outputs} FROM here").fetchall()
    finally:
        connection.unregister("here")


def same(got: Any, expected: Any) -> bool:
    """Equal, and of one type; floats up to 1e-12, for engines take their curves from different libraries."""
    if isinstance(expected, float) and isinstance(got, float):
        return (
            got == expected or (math.isnan(got) and math.isnan(expected)) or math.isclose(got, expected, rel_tol=1e-12)
        )
    return type(got) is type(expected) and got == expected


PYTHON = {
    Type.INT: int,
    Type.FLOAT: float,
    Type.TEXT: str,
    Type.BOOL: bool,
    Type.DATE: datetime.date,
    Type.TIMESTAMP: int,
}


def check_claim(claim: TypedScalar, got: Any, on_grid: bool) -> None:
    """What the bound says of a value."""
    if got is None:
        assert claim.nullable
        return
    assert claim.type is not None and type(got) is PYTHON[claim.type]
    if claim.type is Type.INT:
        assert claim.lower is not None and claim.upper is not None
    if claim.listing is not None:  # all values that there may be
        listed = domain(claim, 2_000)
        assert listed is None or got in listed
    if claim.type in {Type.TEXT, Type.BOOL}:
        return
    number = got.toordinal() if isinstance(got, datetime.date) else got
    slack = 0.0
    if claim.type is Type.FLOAT:
        assert not math.isnan(got)
        ends = [abs(end) for end in (claim.lower, claim.upper) if end is not None]
        slack = 1e-9 * max([1.0, *map(float, ends)])
    if claim.lower is not None:
        assert number >= claim.lower - Fraction(slack)
    if claim.upper is not None:
        assert number <= claim.upper + Fraction(slack)
    if claim.step is not None and on_grid and not (claim.type is Type.FLOAT and slack > claim.step / 1000):
        assert number == 0 if claim.step == 0 else abs(number / claim.step - round(number / claim.step)) < 1e-6


def is_on_grid(row: dict[str, Any]) -> bool:
    """Whether x, once clamped to [-2, 5], is a number of quarters."""
    return row["x"] is None or math.isnan(row["x"]) or (4 * min(max(row["x"], -2.0), 5.0)).is_integer()


@pytest.mark.parametrize("function", sorted(ARGUMENTS))
def test_duckdb_means_what_python_means_and_what_bounds_claim(connection, function):
    accepted = []

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(st.lists(ARGUMENTS[function], min_size=1, max_size=6), ROWS)
    def check(drawn: list[tuple[Scalar, ...]], rows: list[dict[str, Any]]) -> None:
        claims = [bound for arguments in drawn if (bound := bound_or_none(Call(function, arguments))) is not None]
        if not claims:
            return
        accepted.append(len(claims))
        for row, values in zip(rows, run(connection, [claim.scalar for claim in claims], rows), strict=True):
            for claim, got in zip(claims, values, strict=True):
                expected = evaluate(claim.scalar, row)
                assert same(got, expected), (write_scalar(claim.scalar), row, got, expected)
                check_claim(claim, got, is_on_grid(row))

    check()
    assert sum(accepted) >= EXAMPLES  # refused for want of bounds is right too, but not always


def test_every_function_over_rows_is_tried():
    # DATE_OF is what a cast of a timestamp to a date becomes, TO_TEXT what one to text does, ADD_MONTHS what DATE_ADD
    # does; an INTERVAL is no value, and RATIO is DIV or DIVIDE.
    made = {Function.DATE_OF, Function.TO_TEXT, Function.ADD_MONTHS, Function.INTERVAL, Function.RATIO}
    assert set(ARGUMENTS) == set(Function) - made


def test_other_nodes_mean_the_same(connection):
    @settings(max_examples=2 * EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(NUMBER, CONDITION, ROWS)
    def check(number: Scalar, condition: Scalar, rows: list[dict[str, Any]]) -> None:
        claim = bind(number, leaf, rows=True)
        real = claim.scalar if claim.type is Type.FLOAT else ToFloat(claim.scalar)
        nodes = [
            claim.scalar,
            real,
            Quantize(real, Fraction(1, 4), -50, 70),
            Quantize(real, Fraction(1), -(2**40), 2**40),
            Case(((condition, claim.scalar),), Literal(None)),
        ]
        for row, values in zip(rows, run(connection, nodes, rows), strict=True):
            for node, got in zip(nodes, values, strict=True):
                assert same(got, evaluate(node, row)), (write_scalar(node), row)

    check()


# Other engines. PostgreSQL reads what is next to zero as zero where it multiplies or divides, so that nothing raises.

KINDS = {column: bound.type for column, bound in COLUMNS.items() if bound.type}
NEXT_TO_ZERO = 1e-70


def plainer(row: dict[str, Any]) -> dict[str, Any]:
    """The row, without numbers next to zero."""
    near = {c: 0.0 for c, v in row.items() if isinstance(v, float) and 0 < abs(v) < NEXT_TO_ZERO}
    return row | near


@pytest.mark.parametrize(("kind", "share"), [("postgres", 1), ("spark", 12 if FULL else 2)])
def test_every_engine_means_what_python_means(kind, share, computed):
    drawn = st.tuples(*(st.tuples(st.just(function), some) for function, some in ARGUMENTS.items()))

    @settings(
        max_examples=EXAMPLES // share,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.lists(drawn, min_size=1, max_size=2), NUMBER, ROWS)
    def check(calls: list[Any], number: Scalar, rows: list[dict[str, Any]]) -> None:
        made = [bound_or_none(Call(function, arguments)) for some in calls for function, arguments in some]
        nodes = [bound.scalar for bound in made if bound is not None]
        claim = bind(number, leaf, rows=True)
        real = claim.scalar if claim.type is Type.FLOAT else ToFloat(claim.scalar)
        steps = [(Fraction(1, 4), -50, 70), (Fraction(1), -(2**40), 2**40), (Fraction(1000), -3, 7)]
        nodes += [Quantize(real, *step) for step in steps]
        plain = [plainer(row) for row in rows]
        # Whatever rows hold, nothing raises; each day they are of the same statement, which takes longer than its rows.
        found = computed(kind, nodes, plain if FULL else plain + rows, KINDS)
        for row, values in zip(plain, found[: len(plain)], strict=True):
            for node, got in zip(nodes, values, strict=True):
                expected = evaluate(node, row)
                if isinstance(expected, float) and abs(expected) < NEXT_TO_ZERO:
                    assert isinstance(got, float) and abs(got) < NEXT_TO_ZERO, (write_scalar(node), row)
                else:
                    assert same(got, expected), (write_scalar(node), row, got, expected)
        if FULL:
            computed(kind, nodes, rows, KINDS)

    check()


# Dates that only engines hold.

FAR = ["infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "300000-01-01", "0001-12-31 (BC)", "2024-02-29"]


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=["duckdb", "postgres", "spark"])
def test_a_negated_negative_number_is_not_a_comment(dialect):
    for value in (Fraction(-1, 4), -3):
        nested = Call(Function.NEGATE, (Call(Function.NEGATE, (Literal(value),)),))
        assert "--" not in write_scalar(nested, dialect)


def test_dates_beyond_python_never_raise(connection):
    values = ", ".join(f"(DATE '{day}', DATE '{other}')" for day in FAR for other in FAR)
    everywhere: Callable[[str], Scalar] = ColumnReference
    for first in (everywhere("any"), everywhere("d"), call(Function.COALESCE, ColumnReference("any"), Literal(LAST))):
        scalars = [call(part, first) for part in sorted(DATE_PARTS)]
        scalars += [call(Function.DATE_TRUNC, Literal(unit), first) for unit in DATE_UNITS if unit != "day"]
        scalars += [
            call(Function.YEAR, call(Function.DATE_TRUNC, Literal(unit), first)) for unit in DATE_UNITS if unit != "day"
        ]
        scalars += [call(Function.DAYS, first, ColumnReference("any")), call(Function.DAYS, first, Literal(LAST))]
        claims = [bind(node, leaf, rows=True) for node in scalars]
        outputs = ", ".join(write_scalar(claim.scalar) for claim in claims)
        statement = f'SELECT {outputs} FROM (VALUES {values}) AS far("any", d)'
        for row in connection.execute(statement).fetchall():
            for claim, got in zip(claims, row, strict=True):
                check_claim(claim, got, on_grid=True)


def test_dates_outside_of_four_digits_start_no_month(connection):
    node = bind(call(Function.DATE_TRUNC, Literal("month"), ColumnReference("any")), leaf, rows=True).scalar
    values = ", ".join(f"(DATE '{day}')" for day in FAR)
    found = connection.execute(f'SELECT {write_scalar(node)} FROM (VALUES {values}) AS far("any")').fetchall()
    assert found == [(None,)] * 6 + [(datetime.date(2024, 2, 1),)]


def test_the_least_integer_divided_by_minus_one_leaves_nothing(connection):
    """The quotient would be 2**63, which does not fit: DuckDB raises, unless it divides by 1."""
    claim = bind(call(Function.MOD, ColumnReference("free"), ColumnReference("i")), leaf, rows=True)
    row = dict.fromkeys(COLUMNS) | {"free": -(2**63), "i": -1}
    assert run(connection, [claim.scalar], [row]) == [(0,)]


# Cost.


def test_patterns_take_time_that_grows_with_the_text_alone(connection):
    """A search that tried all places would take 3000**4 / 4! steps a row for the first pattern, over 10**12."""
    for pattern in ("%a_%a_%a_%b", "a%a%a%a%a%b", "_%a_%", "%" + "a" * 50 + "_" + "a" * 40 + "b%", "%_a" * 30):
        node = call(Function.LIKE, ColumnReference("s"), Literal(pattern))
        table = "SELECT repeat('a', 3000) || chr(99 + i::INT) AS s FROM range(20) AS r(i)"
        start = time.monotonic()
        connection.execute(f"SELECT COUNT(CASE WHEN {write_scalar(node)} THEN 1 END) FROM ({table})").fetchall()
        assert time.monotonic() - start < 60, pattern


def test_the_deepest_guards_that_are_admitted_run(connection):
    for function in (Function.DIVIDE, Function.SQRT, Function.LN):
        node: Scalar = ColumnReference("y")
        while True:
            deeper = call(function, Literal(1), node) if function is Function.DIVIDE else call(function, node)
            if function is Function.LN:  # with bounds of its own at every level
                deeper = call(
                    Function.GREATEST, Literal(Fraction(1, 2)), call(Function.LEAST, deeper, Literal(Fraction(9)))
                )
            if bound_or_none(deeper) is None:
                break
            node = deeper
        start = time.monotonic()
        row = dict.fromkeys(COLUMNS) | {"y": 2.0}
        claim = bind(node, leaf, rows=True)
        summed = Quantize(claim.scalar, Fraction(1, 1000), 0, 10**6)
        assert same(run(connection, [claim.scalar, summed], [row])[0][0], evaluate(claim.scalar, row))
        assert time.monotonic() - start < 60


def test_the_text_of_a_guard_names_its_operand_once():
    for function in (Function.SQRT, Function.LN):
        assert write_scalar(call(function, ColumnReference("y"))).count('"y"') == 1
    assert write_scalar(call(Function.MOD, ColumnReference("i"), ColumnReference("j"))).count('"j"') == 1


# Text.


@pytest.mark.parametrize(
    "value", ["'", "''", "a'; DROP TABLE t; --", "%_", "(", "[a]", "*", "^$", "{1}", "é", "日", "🦆"]
)
def test_patterns_are_quoted(connection, value):
    """As LIKE, and as the regular expression that stands for it where there are several texts and a _."""
    for pattern, text_of in ((value, value), (f"%{value}%x_{value}", f"a{value}bxc{value}")):
        node = call(Function.LIKE, Literal(text_of), Literal(pattern))
        assert connection.execute(f"SELECT {write_scalar(node)}").fetchall() == [(True,)]
        other = call(Function.LIKE, Literal("nothing like it"), Literal(f"{value}_%{value}%_y"))
        assert connection.execute(f"SELECT {write_scalar(other)}").fetchall() == [(False,)]


def test_forms_that_other_engines_share():
    d, s = ColumnReference("d"), ColumnReference("s")
    assert write_scalar(call(Function.YEAR, d)) == 'CAST(EXTRACT(YEAR FROM "d") AS BIGINT)'
    assert write_scalar(call(Function.WEEKDAY, d)) == 'CAST(EXTRACT(ISODOW FROM "d") AS BIGINT)'
    assert write_scalar(call(Function.DATE_TRUNC, Literal("month"), d)) == "CAST(date_trunc('month', \"d\") AS DATE)"
    assert write_scalar(call(Function.DAYS, d, d)) == 'CAST(("d" - "d") AS BIGINT)'
    assert write_scalar(call(Function.TRIM, s)) == "trim(BOTH ' ' FROM \"s\")"
    assert write_scalar(call(Function.SUBSTRING, s, Literal(2), Literal(3))) == 'substring("s", 2, 3)'
    assert write_scalar(call(Function.CONCAT, s, s, Literal("!"))) == '("s" || "s" || \'!\')'
    assert write_scalar(call(Function.LIKE, s, Literal("a_%"))) == "(\"s\" LIKE 'a_%')"
    mail = "_%@_%.__%"  # two texts to look for, and a _: where DuckDB's LIKE might try all places, RE2 does not
    assert (
        write_scalar(call(Function.LIKE, s, Literal(mail)))
        == "regexp_full_match(\"s\", '(?s)..*\\x{40}..*\\x{2e}...*')"
    )
    assert (
        write_scalar(call(Function.MOD, ColumnReference("i"), Literal(2))) == 'mod("i", NULLIF(CAST(2 AS BIGINT), 0))'
    )


def test_finishing_nodes():
    assert (
        write_scalar(call(Function.ROUND, ReleasedValue(0), Literal(2)))
        == "round(v0, CAST(CAST(2 AS BIGINT) AS INTEGER))"
    )
    assert write_scalar(call(Function.ROUND, ReleasedValue(0))) == "round(v0)"
    assert write_scalar(call(Function.UPPER, ReleasedKey(1))) == "upper(k1)"
    assert write_scalar(call(Function.IS_NULL, ReleasedValue(2))) == "(v2 IS NULL)"


@pytest.mark.parametrize("kind", ["HUGEINT", "DOUBLE"])
def test_functions_of_whole_numbers_take_released_values_and_redrawn_ones(connection, kind):
    """Released integers are wide, and those that the noise is drawn again for are doubles."""

    def released(node: Scalar) -> TypedScalar | None:
        return TypedScalar(node, Type.INT) if isinstance(node, ReleasedValue) else None

    nodes = [
        call(Function.MOD, ReleasedValue(0), Literal(-5)),
        call(Function.SIGN, ReleasedValue(0)),
        call(Function.POWER, ReleasedValue(0), Literal(2)),
    ]
    nodes += [call(Function.SQRT, ReleasedValue(0)), call(Function.LN, ReleasedValue(0))]
    outputs = ", ".join(write_scalar(bind(node, released, rows=False).scalar) for node in nodes)
    found = connection.execute(f"SELECT {outputs} FROM (VALUES (CAST(-7 AS {kind}))) AS noisy(v0)").fetchall()
    assert found == [(-2, -1, 49.0, None, None)]


def test_constants_and_names(connection):
    for value in (None, True, False, 0, 2**63 - 1, -(2**63), "it's", datetime.date(2024, 2, 29)):
        assert connection.execute(f"SELECT {write_literal(value)}").fetchall() == [(value,)]
    assert connection.execute(f"SELECT {write_literal(Fraction(1, 3))}").fetchall() == [(1 / 3,)]
    assert (quote_name('a"b'), quote_text("a'b")) == ('"a""b"', "'a''b'")
    with pytest.raises(AssertionError):
        write_literal(object())


def test_a_scalar_that_would_raise_is_null_whatever_the_others_share_with_it():
    # No bound scalar raises; this is what follows if one did.
    product = Call(Function.MULTIPLY, (ColumnReference("x"), Literal(2**62)))
    scalars = [product, Call(Function.ADD, (product, Literal(1))), Call(Function.LESS, (product, Literal(5)))]
    scalars.append(Call(Function.MULTIPLY, (ColumnReference("x"), Literal(2**64))))
    written = ", ".join(map(write_guarded, scalars))
    with connect_in_memory() as connection:
        rows = connection.execute(f"SELECT {written} FROM range(4) AS t (x)").fetchall()
        (counts,) = connection.execute(f"SELECT COUNT({write_guarded(product)}) FROM range(4) AS t (x)").fetchall()
    nothing = (None,) * 4
    assert rows == [(0, 1, True, None), (2**62, 2**62 + 1, False, None), nothing, nothing] and counts == (2,)


@pytest.mark.parametrize(
    "plain",
    [
        ColumnReference("x"),
        Literal(3),
        Clamp(ColumnReference("x"), Fraction(0), Fraction(9), whole=True),
        Call(Function.LESS, (ColumnReference("x"), Literal(3))),
    ],
)
def test_what_cannot_raise_is_written_as_it_is(plain):
    assert write_guarded(plain) == write_scalar(plain)
    assert write_guarded(Call(Function.NEGATE, (plain,)), SPARK) == write_scalar(Call(Function.NEGATE, (plain,)), SPARK)
