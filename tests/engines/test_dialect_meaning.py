"""What functions of several dialects mean: DuckDB's and PostgreSQL's own functions are the witness.

An expression is read, bound and evaluated in plain Python, and compared with what an engine's own SQL gives on the same
rows. That engines compute the bound expressions as Python does is what `test_scalars.py` says.
"""

from __future__ import annotations

import datetime
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question
from tacit.engines.evaluate import evaluate
from tacit.errors import Refused
from tacit.plan.bounds import TypedScalar, bind
from tacit.query.dialects import QuestionDialect
from tacit.query.nodes import Clamp, ColumnReference, Scalar
from tacit.query.timestamps import to_datetime, to_microseconds
from tacit.query.types import Type

pytestmark = pytest.mark.slow

ROWS = 2_000 if FULL else 150
TODAY = datetime.date(2025, 3, 31)


def _whole(name: str, lower: int, upper: int) -> TypedScalar:
    clamped = Clamp(ColumnReference(name), Fraction(lower), Fraction(upper), whole=True)
    return TypedScalar(clamped, Type.INT, Fraction(lower), Fraction(upper), Fraction(1))


def _moment(name: str) -> TypedScalar:
    ends = [Fraction(to_microseconds(datetime.datetime(year, 1, 1))) for year in (2019, 2027)]
    clamped = Clamp(ColumnReference(name), *ends, whole=True)
    return TypedScalar(clamped, Type.TIMESTAMP, *ends, Fraction(1))


COLUMNS = {
    "i": _whole("i", -40, 40),
    "j": _whole("j", -3, 9),
    "x": TypedScalar(
        Clamp(ColumnReference("x"), Fraction(-9), Fraction(9), whole=False),
        Type.FLOAT,
        Fraction(-9),
        Fraction(9),
        Fraction(1, 1000),
    ),
    "s": TypedScalar(ColumnReference("s"), Type.TEXT),
    "u": TypedScalar(ColumnReference("u"), Type.TEXT),
    "b": TypedScalar(ColumnReference("b"), Type.BOOL),
    "d": TypedScalar(ColumnReference("d"), Type.DATE),
    "e": TypedScalar(ColumnReference("e"), Type.DATE),
    "m": _moment("m"),
    "n": _moment("n"),
}
STORED = {"i": "BIGINT", "j": "BIGINT", "x": "DOUBLE PRECISION", "s": "TEXT", "u": "TEXT", "b": "BOOLEAN"} | {
    "d": "DATE",
    "e": "DATE",
    "m": "TIMESTAMP",
    "n": "TIMESTAMP",
}


def _rows() -> list[dict[str, Any]]:
    """Rows of plain values and NULLs, with days at the ends of months and years among them."""
    source = random.Random(19)
    ends = [
        datetime.date(y, m, d) for y in (2023, 2024, 2025) for m, d in ((1, 31), (2, 28), (3, 31), (12, 30), (1, 1))
    ]
    ends += [datetime.date(2024, 2, 29), datetime.date(2020, 12, 31), datetime.date(2021, 1, 3)]
    texts = ["", "flu", "Flu", "influenza", "a_b", "50%", "a,b,c", " cold ", "cold", "a\nb", "naïve", "ab" * 5, "x.y"]

    def day() -> datetime.date:
        return (
            source.choice(ends)
            if source.random() < 0.5
            else datetime.date(2019, 1, 1) + datetime.timedelta(days=source.randrange(2500))
        )

    def moment() -> datetime.datetime:
        time = datetime.time(source.randrange(24), source.randrange(60), source.randrange(60), source.randrange(10**6))
        return datetime.datetime.combine(day(), time if source.random() < 0.8 else datetime.time())

    def row() -> dict[str, Any]:
        found: dict[str, Any] = {
            "i": source.randint(-40, 40),
            "j": source.randint(-3, 9),
            "x": source.randint(-9000, 9000) / 1000,
            "s": source.choice(texts),
            "u": source.choice(texts),
            "b": source.random() < 0.5,
            "d": day(),
            "e": day(),
            "m": moment(),
            "n": moment(),
        }
        return {name: None if source.random() < 0.1 else value for name, value in found.items()}

    return [row() for _ in range(ROWS)]


DATA = _rows()


def leaf(node: Scalar) -> TypedScalar | None:
    return COLUMNS[node.name] if isinstance(node, ColumnReference) else None


def ours(expression: str, dialect: QuestionDialect = QuestionDialect.POSTGRES) -> list[Any]:
    """What the expression means, for each row."""
    scalar = read_question(f"SELECT {expression} AS x FROM t", TODAY, dialect).outputs[0].scalar
    claim = bind(scalar, leaf, rows=True)
    found = []
    for row in DATA:
        numbers = {name: to_microseconds(v) if name in "mn" and v is not None else v for name, v in row.items()}
        value = evaluate(claim.scalar, numbers)
        found.append(to_datetime(value) if claim.type is Type.TIMESTAMP and value is not None else value)
    return found


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, datetime.datetime) != isinstance(got, datetime.datetime) and expected is not None:
        # a date and its midnight are one: PostgreSQL makes a timestamp of a date and an interval
        expected, got = (
            v if isinstance(v, datetime.datetime) else datetime.datetime.combine(v, datetime.time())
            for v in (expected, got)
        )
    if expected is None or got is None or isinstance(expected, str | bool | datetime.date):
        return bool(got == expected)
    return math.isclose(float(got), float(expected), rel_tol=1e-9, abs_tol=1e-9)


@pytest.fixture(scope="module")
def in_duckdb() -> Any:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        kinds = {"BIGINT": pa.int64(), "DOUBLE PRECISION": pa.float64(), "TEXT": pa.string(), "BOOLEAN": pa.bool_()}
        kinds |= {"DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us")}
        table = pa.Table.from_pylist(DATA, pa.schema([(name, kinds[kind]) for name, kind in STORED.items()]))
        connection.register("rows", table)
        connection.execute("CREATE TABLE t AS SELECT row_number() OVER () AS place, * FROM rows")
        yield lambda sql: [value for (value,) in connection.execute(f"SELECT {sql} FROM t ORDER BY place").fetchall()]


@pytest.fixture(scope="module")
def in_postgres(postgres: str) -> Any:
    import psycopg

    with psycopg.connect(postgres) as connection:
        listed = ", ".join(f"{name} {kind}" for name, kind in STORED.items())
        connection.execute(f"CREATE TEMPORARY TABLE t (place SERIAL, {listed})")
        marks = ", ".join(["%s"] * len(STORED))
        with connection.cursor() as cursor:
            names = ", ".join(STORED)
            cursor.executemany(
                f"INSERT INTO t ({names}) VALUES ({marks})".encode(), [[row[name] for name in STORED] for row in DATA]
            )
        yield lambda sql: [
            value for (value,) in connection.execute(f"SELECT {sql} FROM t ORDER BY place".encode()).fetchall()
        ]


# Expressions, each with the same in the engine's own words where these differ.
DUCKDB = """
d + 30
d - 30
d - INTERVAL 7 DAY
d + INTERVAL '1 month'
d - INTERVAL '1' MONTH
d + INTERVAL '1 year 2 months 3 days'
m + INTERVAL '90 minutes'
m - INTERVAL 36 HOUR
m + INTERVAL '1 month'
m - INTERVAL '13 months'
d + INTERVAL (j) DAY
DATE_ADD(d, INTERVAL 3 MONTH)
date_diff('month', d, e)
date_diff('quarter', d, e)
date_diff('year', d, e)
date_diff('month', m, n)
date_diff('hour', m, n)
datesub('hour', m, n)
date_sub('day', m, n)
date_sub('minute', n, m)
DATE_DIFF(e, d, DAY) | date_diff('day', d, e)
DATEDIFF(day, d, e) | date_diff('day', d, e)
DATEDIFF(e, d) | date_diff('day', d, e)
TIMESTAMP_DIFF(n, m, HOUR) | date_sub('hour', m, n)
last_day(d)
last_day(m)
dayofyear(d)
isoyear(d)
yearweek(d)
dayofweek(d)
extract(dow FROM m)
extract(doy FROM d)
extract(epoch FROM m)
extract(epoch FROM d)
extract(week FROM d)
dayname(d)
monthname(m)
strftime(d, '%Y-%m')
strftime(m, '%Y-%m-%d %H:%M:%S')
strftime(m, '%b %-d, %Y %I %p')
strftime(d, '%G-W%V-%u')
strftime(m, '%A %a %B %j %y %w')
FORMAT_DATE('%Y-%m', d) | strftime(d, '%Y-%m')
DATE_FORMAT(d, 'yyyy-MM') | strftime(d, '%Y-%m')
DATE_FORMAT(m, '%Y-%m-%d %H:%i') | strftime(m, '%Y-%m-%d %H:%M')
DATE_TRUNC(d, MONTH) | date_trunc('month', d)
DATE_TRUNC(d, ISOWEEK) | date_trunc('week', d)
DATE_TRUNC(d, WEEK(SUNDAY)) | d - extract(dow FROM d)::int
TIMESTAMP_TRUNC(m, HOUR) | date_trunc('hour', m)
DATE(m) | m::date
CURRENT_DATE - d | DATE '2025-03-31' - d
d >= CURRENT_DATE - INTERVAL '1 month' | d >= DATE '2025-02-28'
d >= '2024-02-29'
m >= '2024-02-29T10:00:00'
LEFT(s, 2)
RIGHT(s, 3)
ltrim(s)
rtrim(s)
TRIM(LEADING FROM s) | ltrim(s)
replace(s, 'a', 'xyz')
split_part(s, ',', 2)
strpos(s, 'l')
POSITION('l' IN s)
INSTR(s, 'u')
concat_ws('-', s, u)
concat_ws('', s, u, 'x')
s LIKE '%' || 'l' || '%'
s LIKE '50!%' ESCAPE '!'
s LIKE '%!_%' ESCAPE '!'
s LIKE 'a!_b' ESCAPE '!'
STARTS_WITH(s, '50%')
CONTAINS(s, '_')
ENDS_WITH(s, '%')
s ~~ 'f%'
s !~~ 'f%'
s ~~* 'F%'
s ^@ 'fl'
s LIKE ANY ('f%', '%d') | s LIKE 'f%' OR s LIKE '%d'
s IS DISTINCT FROM u
s IS NOT DISTINCT FROM u
i IS DISTINCT FROM 3
b IS DISTINCT FROM NULL
s <=> u | s IS NOT DISTINCT FROM u
i IN (j, 3, 4)
i NOT IN (j, 3, 4)
i // 7
i // -7
i // j | i // nullif(j, 0)
DIV(i, 7) | i // 7
i % 7
trunc(x)
trunc(i)
TRUNC(x, 2) | trunc(round(x * 1000) / 10) / 100
round(i)
ROUND(x, 2) | round(x::DECIMAL(18, 3), 2)
ROUND(x) | round(x::DECIMAL(18, 3))
x::numeric(10, 1) | round(x::DECIMAL(18, 3), 1)
x::int | x::DECIMAL(18, 3)::int
CAST(x AS DECIMAL) | x
i::text
d::text
b::text
CAST(DATE_TRUNC('hour', m) AS VARCHAR)
log(x)  | CASE WHEN x > 0 THEN log(x) END
log10(i) | CASE WHEN i > 0 THEN log10(i) END
log2(i + 50)
log(3, i + 50)
MONTHS_BETWEEN(DATE '2025-03-31', DATE '2025-02-28') | 1.0
MONTHS_BETWEEN(m, DATE '2025-01-15') | date_diff('month', DATE '2025-01-15', m::date) + (day(m) - 15) / 31
sign(x)
IFF(i > 3, 1, 0) | CASE WHEN i > 3 THEN 1 ELSE 0 END
NVL2(i, 1, 0) | CASE WHEN i IS NULL THEN 0 ELSE 1 END
ZEROIFNULL(i) | coalesce(i, 0)
NULLIFZERO(j) | nullif(j, 0)
DECODE(s, 'flu', 1, NULL, 2, 3) | CASE WHEN s = 'flu' THEN 1 WHEN s IS NULL THEN 2 ELSE 3 END
DIV0(i, j) | CASE WHEN j = 0 AND i IS NOT NULL THEN 0 ELSE i / j END
SAFE_DIVIDE(i, j) | i / nullif(j, 0)
WIDTH_BUCKET(x, -5, 5, 10) | CASE WHEN x < -5 THEN 0 WHEN x >= 5 THEN 11 ELSE floor(x + 5) + 1 END
lpad(s, 4, '0')
rpad(s, 4, 'xy')
LPAD(i, 3, '0') | lpad(i::text, 3, '0')
i || '-' || d || b
concat(i, '-', s, d)
b = 1
b IN (0, 1)
b <> 0
m - n > INTERVAL '2 days'
m - n <= INTERVAL '-36 hours'
TIME_BUCKET(INTERVAL '1 week', m)::date | date_trunc('week', m)::date
time_bucket(INTERVAL '1 hour', m)
ROUND(i, -1) | round(i::DECIMAL(18, 3) / 10) * 10
TRUNC(i, -1) | trunc(i / 10) * 10
date_diff('hour', DATE '2024-02-29'::timestamp, m)
DATE_DIFF('hour', DATE '2024-02-29', m) | date_diff('hour', TIMESTAMP '2024-02-29', m)
LAST_DAY(d, MONTH) | last_day(d)
GREATEST(d, e)
b IS TRUE
b IS NOT FALSE
b IS UNKNOWN | b IS NULL
""".strip().splitlines()

POSTGRES = """
TO_CHAR(d, 'YYYY-MM')
TO_CHAR(d, 'Month')
TO_CHAR(d, 'FMMonth DD, YYYY')
TO_CHAR(m, 'YYYY-MM-DD HH24:MI:SS')
TO_CHAR(m, 'HH12 AM')
TO_CHAR(d, 'IYYY-"W"IW-ID')
TO_CHAR(d, 'Q DDD D')
TO_CHAR(d, 'FMDay')
TO_CHAR(d, 'DAY Dy MON mon YY')
EXTRACT(YEAR FROM AGE(d, e))
EXTRACT(MONTH FROM AGE(d, e))
DATE_PART('year', AGE(d, e))
EXTRACT(YEAR FROM AGE(m, n))
EXTRACT(MONTH FROM AGE(m, n))
EXTRACT(YEAR FROM AGE(m, d))
EXTRACT(MONTH FROM AGE(m, d))
EXTRACT(MONTH FROM AGE(d, m))
EXTRACT(MONTH FROM AGE(m, DATE_TRUNC('month', n)))
EXTRACT(YEAR FROM AGE(m, DATE '2020-02-29')) * 12 + EXTRACT(MONTH FROM AGE(m, DATE '2020-02-29'))
EXTRACT(MONTH FROM AGE(TIMESTAMP '2023-03-31 12:00:00', m))
EXTRACT(MONTH FROM AGE(m, m - INTERVAL '1 month'))
EXTRACT(MONTH FROM AGE(m + INTERVAL '1 month', m + INTERVAL '1 second'))
EXTRACT(EPOCH FROM m - n)
EXTRACT(EPOCH FROM (m - n)) / 3600
i / 7
i / NULLIF(j, 0)
(i + 3) / (2 * 2)
COALESCE(i, 5) / 2
ABS(i) / 3
MOD(i, 5) / 2
EXTRACT(DAY FROM d) / 7
DATE_PART('doy', d) / 7
CEIL(EXTRACT(DAY FROM d) / 7)
(EXTRACT(QUARTER FROM d) - 2) / 2
(EXTRACT(MONTH FROM d) - 1) / 3 + 1
CAST(EXTRACT(DAY FROM d) AS INT) / 10
EXTRACT(DAY FROM d)::int / 10
FLOOR(x)::int / 4
EXTRACT(HOUR FROM m) / 6
FLOOR(i) / 7
CEIL(i) / 7
ROUND(i) / 7
TRUNC(i) / 7
SIGN(i) / 2
POWER(j, 2) / 8
CASE WHEN b THEN i ELSE 2 END / 4
CASE WHEN b THEN i ELSE EXTRACT(DAY FROM d) END / 4
GREATEST(i, EXTRACT(DAY FROM d)) / 4
COALESCE(EXTRACT(DAY FROM d), 1) / 4
-EXTRACT(DAY FROM d) / 4
DIV(i, 2) / 4
(DIV(i, 2) + 1) / 4
ABS(EXTRACT(DAY FROM d) - 16) / 4
MOD(CAST(EXTRACT(DAY FROM d) AS INT), 7) / 2
EXTRACT(DAY FROM m - n)
EXTRACT(ISODOW FROM d)
d + 7
d + INTERVAL '1 month'
m - INTERVAL '1 month 1 day'
DATE_TRUNC('month', CURRENT_DATE) - d | DATE '2025-03-01' - d
split_part(s, ',', 2)
s ~ 'lu'
s ~ '^fl'
s ~ 'd$'
s ~ '^(flu|cold)$'
s ~ '^[fF]lu'
s ~ 'a.b'
s ~ 'x\\.y'
s ~* 'FLU'
s !~ 'flu'
s !~* 'FLU'
s ~ '(in)?flu.+a'
s SIMILAR TO '%(flu|cold)%'
s NOT SIMILAR TO 'f__'
regexp_like(s, '^f')
ROUND(x, 2) | ROUND(x::numeric, 2)
ROUND(x, 1) | ROUND(x::numeric, 1)
TRUNC(x, 2) | TRUNC(x::numeric, 2)
x::numeric::int
x::int | x::numeric::int
x::numeric(6, 2)
DIV(i, 7)
DIV(i, -7)
width_bucket(x, -5, 5, 10)
log(i)  | CASE WHEN i > 0 THEN log(i) END
b::text
i::text
d::text
(s, u) IN (('flu', 'flu'), ('a_b', '50%'))
s LIKE '50#%' ESCAPE '#'
RIGHT(s, 2)
REPLACE(s, 'ab', '')
CONCAT_WS(',', s, u)
LPAD(s, 5, 'ab')
i || s
m - n > INTERVAL '1 day 3 hours'
i BETWEEN SYMMETRIC 9 AND -3
i BETWEEN SYMMETRIC 9 AND j
(i, j) = (3, 4)
(i, j) <> (3, 4)
""".strip().splitlines()


def split(line: str) -> tuple[str, str]:
    mine, _, theirs = line.partition(" | ")
    return mine, theirs or mine


@pytest.mark.parametrize("line", DUCKDB)
def test_an_expression_means_what_duckdb_means(line: str, in_duckdb: Any) -> None:
    mine, theirs = split(line)
    for row, got, expected in zip(DATA, ours(mine), in_duckdb(theirs), strict=True):
        assert same(got, expected), (row, got, expected)


@pytest.mark.parametrize("line", POSTGRES)
def test_an_expression_means_what_postgresql_means(line: str, in_postgres: Any) -> None:
    mine, theirs = split(line)
    for row, got, expected in zip(DATA, ours(mine), in_postgres(theirs), strict=True):
        assert same(got, expected), (row, got, expected)


# What DuckDB and its dialect here spell alike: every unit between two moments, every part of one, and every operator.
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
PARTS = (*UNITS, "dow", "isodow", "doy", "isoyear", "yearweek", "epoch")
ENDS = ("d, e", "m, n", "m, d", "d, n", "d, DATE '2024-02-29'", "'2024-02-29', m")
PATTERNS = ("flu", "fl_", "f%", "(flu|Flu)%", "flu|Flu", "f.*", ".*", "^flu", "flu$", "[Ff]lu.?", "flu?", "%_%", "")
MATCHES = ("LIKE", "NOT LIKE", "ILIKE", "SIMILAR TO", "NOT SIMILAR TO", "~", "!~", "^@", "~~", "!~~", "~~*", "=", "<>")
ALIKE = [
    *(f"{name}('{unit}', {ends})" for name in ("date_diff", "datediff") for unit, ends in product(UNITS, ENDS)),
    *(f"{name}('{unit}', {ends})" for name in ("date_sub", "datesub") for unit, ends in product(UNITS, ENDS)),
    *(f"date_trunc('{unit}', {moment})" for unit, moment in product(UNITS, "dm")),
    *(f"extract({part} FROM {moment})" for part, moment in product(PARTS, "dm")),
    *(f"{left} {sign} {right}" for left, sign, right in product("ix", ("+", "-", "*", "/", "//", "%"), ("7", "-3"))),
    *(f"i {sign} {right}" for sign, right in product(("=", "<>", "!=", "<", "<=", ">", ">="), "jx")),
    *(f"s {sign} '{pattern}'" for sign, pattern in product(MATCHES, PATTERNS)),
    *("s SIMILAR TO 'a.b'", "s NOT SIMILAR TO 'a.b'", "s SIMILAR TO '.+'"),  # of which one text has a line break
]


def read_or_none(line: str) -> list[Any] | None:
    try:
        return ours(line, QuestionDialect.DUCKDB)
    except Refused:
        return None


@pytest.mark.parametrize("line", ALIKE)
def test_what_is_spelled_alike_in_duckdbs_dialect_means_what_duckdb_means(line: str, in_duckdb: Any) -> None:
    mine = read_or_none(line)
    if mine is None:
        return
    for row, got, expected in zip(DATA, mine, in_duckdb(line), strict=True):
        assert same(got, expected), (row, got, expected)


def test_most_of_what_is_spelled_alike_is_answered() -> None:
    # refused are parts of a second, time units of dates without bounds, and // and % of floats
    assert sum(read_or_none(line) is not None for line in ALIKE) > len(ALIKE) * 3 / 5


@pytest.mark.parametrize("ends", ENDS[:5])
def test_weeks_are_counted_in_duckdbs_dialect_without_bounds(ends: str) -> None:
    assert ours(f"date_diff('week', {ends})", QuestionDialect.DUCKDB)
