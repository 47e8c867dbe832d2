"""One meaning under the names of several dialects: each pair is read as the same nodes, so it is one question."""

from __future__ import annotations

import datetime

import pytest

from tacit.aggregates.registry import SYNTAX
from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.query.dialect_names import ALIASES, CLOCK_DATES, CLOCK_TIMES, PLAIN
from tacit.query.function_calls import BUILDERS, FUNCTION_NAMES, find_function
from tacit.query.nodes import Literal, Scalar
from tacit.query.refusals import FUNCTION_SUGGESTIONS

TODAY = datetime.date(2025, 3, 31)


def read(text: str, today: datetime.date | None = TODAY) -> Scalar:
    return parse(f"SELECT {text} AS a FROM t", today).outputs[0].scalar


PAIRS = """
CAST(TO_CHAR(d, 'YYYY') AS INT)  <->  YEAR(d)
SAFE_CAST(FORMAT_DATE('%Y%m', d) AS INT64)  <->  YEAR(d) * 100 + MONTH(d)
TRY_TO_NUMBER(TO_VARCHAR(d, 'YYYYMMDD'))  <->  YEAR(d) * 10000 + (MONTH(d) * 100 + DAY(d))
TIME_SLICE(t, 1, 'WEEK')  <->  DATE_TRUNC('week', t)
x = r'a.b'  <->  x = 'a.b'
d + (-6 || ' day')::interval  <->  d + INTERVAL '-6 days'
RATIO_TO_REPORT(SUM(x)) OVER ()  <->  SAFE_DIVIDE(SUM(x), SUM(SUM(x)) OVER ())
RANGE_BUCKET(x, [5, 15])  <->  CASE WHEN x IS NULL THEN NULL WHEN x < 5 THEN 0 WHEN x < 15 THEN 1 ELSE 2 END
t >= '2025-03-31T06:00:00Z'  <->  t >= '2025-03-31T06:00:00Z'
COUNT_IF(x > 3)  <->  COUNT(*) FILTER (WHERE x > 3)
COUNTIF(x > 3)  <->  COUNT_IF(x > 3)
COUNT_IF(x > 3) FILTER (WHERE y)  <->  COUNT(*) FILTER (WHERE x > 3 AND y)
APPROX_COUNT_DISTINCT(x)  <->  COUNT(DISTINCT x)
MEAN(x)  <->  AVG(x)
FSUM(x)  <->  SUM(x)
APPROX_QUANTILE(x, 0.9)  <->  QUANTILE(x, 0.9)
TOPK(x, 3)  <->  TOP_K(x, 3)
IFF(x > 3, 1, 0)  <->  IF(x > 3, 1, 0)
NVL2(x, 1, 0)  <->  CASE WHEN x IS NULL THEN 0 ELSE 1 END
ZEROIFNULL(x)  <->  COALESCE(x, 0)
NULLIFZERO(x)  <->  NULLIF(x, 0)
SAFE_CAST(x AS INT)  <->  TRY_CAST(x AS INT)
DECODE(x, NULL, 1, 0)  <->  CASE WHEN x IS NULL THEN 1 ELSE 0 END
LOG(x)  <->  LOG10(x)
LOG(10, x)  <->  LOG10(x)
SQUARE(x)  <->  POWER(x, 2)
DIV(x, 3)  <->  x // 3
TRUNC(x, 0)  <->  TRUNC(x)
TRUNCATE(x, 2)  <->  TRUNC(x, 2)
x::numeric  <->  x::float
x::real  <->  CAST(x AS DOUBLE)
CAST(x AS DECIMAL(10, 2))  <->  ROUND(x::float, 2)
x::numeric(10)  <->  ROUND(x::float, 0)
x::number  <->  ROUND(x::float, 0)
'12'::int  <->  12
2.5::int  <->  3
-2.5::int  <->  -3
LEFT(x, 3)  <->  SUBSTRING(x, 1, 3)
TRIM(LEADING FROM x)  <->  LTRIM(x)
TRIM(TRAILING ' ' FROM x)  <->  RTRIM(x)
TRIM(BOTH FROM x)  <->  TRIM(x)
POSITION('a' IN x)  <->  STRPOS(x, 'a')
INSTR(x, 'a')  <->  STRPOS(x, 'a')
LOCATE('a', x)  <->  STRPOS(x, 'a')
CHARINDEX('a', x)  <->  STRPOS(x, 'a')
STARTSWITH(x, 'a')  <->  STARTS_WITH(x, 'a')
ENDSWITH(x, 'a')  <->  x LIKE '%a'
x ^@ 'a'  <->  x LIKE 'a%'
x ~~ 'a%'  <->  x LIKE 'a%'
x !~~ 'a%'  <->  x NOT LIKE 'a%'
x ~~* 'A%'  <->  x ILIKE 'a%'
x LIKE '%' || 'a' || '%'  <->  x LIKE '%a%'
x LIKE CONCAT('a', '%')  <->  x LIKE 'a%'
x LIKE 'a!b%' ESCAPE '!'  <->  x LIKE 'ab%'
x LIKE ANY ('a%', 'b%')  <->  x LIKE 'a%' OR x LIKE 'b%'
x LIKE ALL ('a%', '%b')  <->  x LIKE 'a%' AND x LIKE '%b'
x NOT LIKE ANY ('a%', 'b%')  <->  NOT (x LIKE 'a%' OR x LIKE 'b%')
x ~ '^a'  <->  x LIKE 'a%'
x ~ 'a$'  <->  x LIKE '%a'
x ~ 'a'  <->  x LIKE '%a%'
x ~ '^a.c.*'  <->  x LIKE 'a_c%'
x ~ '^(a|b)$'  <->  x IN ('a', 'b')
x ~ '^colou?r'  <->  x LIKE 'colour%' OR x LIKE 'color%'
x ~* '^A'  <->  LOWER(x) LIKE 'a%'
x ~ '(?i)^A'  <->  LOWER(x) LIKE 'a%'
x !~ '^a'  <->  x NOT LIKE 'a%'
REGEXP_CONTAINS(x, '^a')  <->  x LIKE 'a%'
REGEXP_LIKE(x, 'a')  <->  x LIKE '%a%'
x SIMILAR TO '(a|b)%'  <->  x LIKE 'a%' OR x LIKE 'b%'
x <=> y  <->  x IS NOT DISTINCT FROM y
x IS NOT DISTINCT FROM NULL  <->  x IS NULL
x IS DISTINCT FROM NULL  <->  x IS NOT NULL
x BETWEEN ASYMMETRIC 1 AND 2  <->  x BETWEEN 1 AND 2
x IN (y, 1, 2)  <->  x IN (1, 2) OR x = y
(x, y) = (1, 2)  <->  x = 1 AND y = 2
(x, y) IN ((1, 2), (3, 4))  <->  (x = 1 AND y = 2) OR (x = 3 AND y = 4)
DATE_TRUNC(x, MONTH)  <->  DATE_TRUNC('month', x)
DATE_TRUNC(MONTH, x)  <->  DATE_TRUNC('month', x)
DATE_TRUNC(x, ISOWEEK)  <->  DATE_TRUNC('week', x)
DATE_TRUNC(x, WEEK(MONDAY))  <->  DATE_TRUNC('week', x)
TIMESTAMP_TRUNC(x, HOUR)  <->  DATE_TRUNC('hour', x)
DATETIME_TRUNC(x, DAY)  <->  DATE_TRUNC('day', x)
DATETRUNC(quarter, x)  <->  DATE_TRUNC('quarter', x)
TRUNC(x, 'MM')  <->  DATE_TRUNC('month', x)
DATE_TRUNC('MONTHS', x)  <->  DATE_TRUNC('month', x)
EXTRACT(DAYOFWEEK FROM x)  <->  EXTRACT(DOW FROM x)
DAYOFWEEK(x)  <->  EXTRACT(DOW FROM x)
EXTRACT(DAYOFYEAR FROM x)  <->  DAYOFYEAR(x)
EXTRACT(DOY FROM x)  <->  DAYOFYEAR(x)
EXTRACT(ISOWEEK FROM x)  <->  WEEK(x)
EXTRACT(WEEK(MONDAY) FROM x)  <->  WEEK(x)
EXTRACT(ISOYEAR FROM x)  <->  ISOYEAR(x)
EXTRACT(EPOCH FROM x)  <->  EPOCH(x)
EXTRACT(DATE FROM x)  <->  CAST(x AS DATE)
UNIX_SECONDS(x)  <->  EPOCH(x)
DATE_PART(month, x)  <->  MONTH(x)
DATEPART(yy, x)  <->  YEAR(x)
DAYOFWEEKISO(x)  <->  ISODOW(x)
DATE(x)  <->  CAST(x AS DATE)
DATE(2025, 3, 1)  <->  DATE '2025-03-01'
MAKE_DATE(2025, 3, 1)  <->  DATE '2025-03-01'
DATE_FROM_PARTS(2025, 3, 1)  <->  DATE '2025-03-01'
TO_DATE('2025-03-01')  <->  DATE '2025-03-01'
TO_DATE('01/03/2025', 'DD/MM/YYYY')  <->  DATE '2025-03-01'
PARSE_DATE('%Y%m%d', '20250301')  <->  DATE '2025-03-01'
TO_TIMESTAMP('2025-03-01 10:00', 'YYYY-MM-DD HH24:MI')  <->  TIMESTAMP '2025-03-01 10:00:00'
TO_TIMESTAMP('2025-03-01T10:00:00')  <->  TIMESTAMP '2025-03-01 10:00:00'
TO_TIMESTAMP('2025-03-01 10:00:00.250000', 'YYYY-MM-DD HH24:MI:SS.US')  <->  TIMESTAMP '2025-03-01 10:00:00.25'
TO_TIMESTAMP('2025-03-01 10:00:00.250', 'YYYY-MM-DD HH24:MI:SS.MS')  <->  TIMESTAMP '2025-03-01 10:00:00.25'
STRPTIME('2025-03-01 10:00:00.250000', '%Y-%m-%d %H:%M:%S.%f')  <->  TIMESTAMP '2025-03-01 10:00:00.25'
x + INTERVAL '7 days'  <->  x + INTERVAL 7 DAY
x + INTERVAL '7' DAY  <->  x + INTERVAL '1 week'
x + INTERVAL '1 year'  <->  x + INTERVAL '12 months'
x - INTERVAL '1' MONTH  <->  x + INTERVAL '-1 month'
INTERVAL '1 day' + x  <->  x + INTERVAL '1 day'
x + 2 * INTERVAL '1 day'  <->  x + INTERVAL '2 days'
x + y * INTERVAL '1 day'  <->  x + INTERVAL (y) DAY
x + INTERVAL y DAY  <->  DATEADD(day, y, x)
DATE_ADD(x, INTERVAL 7 DAY)  <->  x + INTERVAL '7 days'
DATE_SUB(x, INTERVAL 7 DAY)  <->  x - INTERVAL '7 days'
DATEADD(day, 7, x)  <->  x + INTERVAL '7 days'
DATEADD(MONTH, -1, x)  <->  x - INTERVAL '1 month'
DATE_ADD('day', 7, x)  <->  x + INTERVAL '7 days'
DATE_ADD(x, 7)  <->  x + INTERVAL '7 days'
DATE_SUB(x, 7)  <->  x - INTERVAL '7 days'
TIMESTAMPADD(HOUR, 3, x)  <->  x + INTERVAL '3 hours'
TIMESTAMP_SUB(x, INTERVAL 90 MINUTE)  <->  x - INTERVAL '90 minutes'
ADD_MONTHS(x, 3)  <->  x + INTERVAL '3 months'
DATEDIFF(day, x, y)  <->  DATE_DIFF('day', x, y)
DATE_DIFF(y, x, DAY)  <->  DATE_DIFF('day', x, y)
DATEDIFF(y, x)  <->  DATE_DIFF('day', x, y)
TIMESTAMPDIFF(MONTH, x, y)  <->  DATE_DIFF('month', x, y)
DATETIME_DIFF(y, x, HOUR)  <->  DATE_DIFF('hour', x, y)
DATESUB('hour', x, y)  <->  TIMESTAMP_DIFF(y, x, HOUR)
DATE_PART('year', AGE(x, y))  <->  EXTRACT(YEAR FROM AGE(x, y))
EXTRACT(YEAR FROM AGE(x))  <->  EXTRACT(YEAR FROM AGE(CURRENT_DATE, x))
STRFTIME(x, '%Y-%m')  <->  TO_CHAR(x, 'YYYY-MM')
STRFTIME('%Y-%m', x)  <->  TO_CHAR(x, 'YYYY-MM')
FORMAT_DATE('%Y-%m', x)  <->  TO_CHAR(x, 'YYYY-MM')
FORMAT_TIMESTAMP('%F %T', x)  <->  TO_CHAR(x, 'YYYY-MM-DD HH24:MI:SS')
DATE_FORMAT(x, 'yyyy-MM')  <->  TO_CHAR(x, 'YYYY-MM')
DATE_FORMAT(x, '%Y-%m')  <->  TO_CHAR(x, 'YYYY-MM')
DATE_FORMAT(x, 'EEEE')  <->  DAYNAME(x)
TO_VARCHAR(x, 'YYYY')  <->  TO_CHAR(x, 'YYYY')
TO_CHAR(x)  <->  CAST(x AS TEXT)
MONTHNAME(x)  <->  TO_CHAR(x, 'FMMonth')
DAYNAME(x)  <->  TO_CHAR(x, 'FMDay')
CURRENT_DATE  <->  DATE '2025-03-31'
TODAY()  <->  DATE '2025-03-31'
NOW()  <->  TIMESTAMP '2025-03-31 00:00:00'
CURRENT_TIMESTAMP  <->  NOW()
GETDATE()  <->  NOW()
CURRENT_DATE()  <->  CURRENT_DATE
""".strip().splitlines()


@pytest.mark.parametrize("line", PAIRS)
def test_two_spellings_are_one_question(line: str) -> None:
    one, other = line.split("  <->  ")
    assert read(one) == read(other)


def test_every_alias_is_of_a_name_that_is_answered() -> None:
    assert all(known in FUNCTION_NAMES or known in SYNTAX for known in ALIASES.values())
    assert not set(PLAIN) & set(BUILDERS)
    assert not set(ALIASES) & (FUNCTION_NAMES | set(SYNTAX))


def test_no_name_that_is_answered_is_in_the_table_of_refusals() -> None:
    answered = {name for name in FUNCTION_SUGGESTIONS if find_function(name, SYNTAX) is not None}
    assert not answered


@pytest.mark.parametrize("name", sorted(CLOCK_DATES | CLOCK_TIMES))
def test_without_a_declared_day_the_clock_is_refused(name: str) -> None:
    with pytest.raises(Refused) as caught:
        read(f"{name}()", None)
    assert caught.value.code is ErrorCode.UNKNOWN_FUNCTION
    assert "the date itself" in caught.value.fix


def test_a_declared_time_is_that_of_now_and_its_day_that_of_today() -> None:
    moment = datetime.datetime(2025, 3, 31, 18, 30)
    assert read("NOW()", moment) == Literal(moment)
    assert read("CURRENT_DATE", moment) == Literal(moment.date())


def test_a_column_may_have_the_name_of_a_unit_a_clock_or_an_interval() -> None:
    for name in ("day", "month", "today", "now", "interval", "date", "left", "similar"):
        query = parse(f'SELECT "{name}" AS a FROM t WHERE "{name}" > 3')
        assert query.outputs[0].scalar == query.where.arguments[0]
    for name in ("day", "month", "today", "now", "interval", "date"):
        assert read(f"{name} - 3") == read(f'"{name}" - 3')
    assert read('DATE_TRUNC("day", MONTH)') == read("DATE_TRUNC('month', day)")


def test_expressions_that_would_take_long_are_refused_at_once() -> None:
    # each choice doubles the patterns: 2^30 of them, if they were listed
    for pattern in ("(a|b)" * 30, "[a-z][a-z][a-z]", "a?" * 30, "(" * 30 + "a" + ")" * 30, "(a|b)?" * 20):
        with pytest.raises(Refused) as caught:
            read(f"x ~ '{pattern}'")
        assert caught.value.code is ErrorCode.UNSUPPORTED
