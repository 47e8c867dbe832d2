"""What `/` of whole numbers means in PostgreSQL's dialect: PostgreSQL itself is the witness.

It cuts off the quotient of integers and bigints, and that of numerics it does not: a sum of bigints, such as counts, is
numeric, and so is a part of a date. Which of them a number is has to be known wherever it comes by a name. Questions
are asked without noise, as they are written and as a generator makes them.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.bits import Ones
from tests.support.counts import FULL
from tests.support.policies import policy_of

from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.errors import Refused
from tacit.ledger.ledger import Ledger
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load

pytestmark = pytest.mark.slow

Rows = list[tuple[Any, ...]]
START = datetime.date(2024, 1, 3)
ROWS = [
    {
        "person": i % 60,
        "ward": "ABC"[i % 60 * 7 % 11 % 3],
        "visited": START + datetime.timedelta(days=i * 17 % 360),
        "cost": i * 7 % 40,
    }
    for i in range(180)
]
VISITS = {
    "unit": "person",
    "max_groups": 5,
    "max_rows_per_group": 5,
    "columns": {
        "ward": {"type": "text", "values": ["A", "B", "C"]},
        "visited": {"type": "date", "lower": datetime.date(2024, 1, 1), "upper": datetime.date(2024, 12, 31)},
        "cost": {"type": "int", "lower": 0, "upper": 40},
    },
}
WARDS = {"public": True, "columns": {"name": {"type": "text"}, "beds": {"type": "int", "lower": 0, "upper": 50}}}
BEDS = [("A", 7), ("B", 20), ("C", 9), ("B", 3)]
POLICY = load(policy_of({"visits": VISITS, "wards": WARDS}, analysts=["ada"]))


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Rows]]:
    """Ask without noise, with a ledger for each question."""
    wards = pa.table({"name": [name for name, _ in BEDS], "beds": [beds for _, beds in BEDS]})
    engine = open_engine(POLICY, {"visits": pa.Table.from_pylist(ROWS), "wards": wards})
    folder, numbers = tmp_path_factory.mktemp("ledgers"), count()

    def answer(sql: str) -> Rows:
        with Ledger(Path(folder) / f"{next(numbers)}.ledger", budget_limits(POLICY)) as ledger:
            asked = Curator(POLICY, engine, ledger, Ones()).analyst("ada").ask(sql, epsilon=5)
            return [tuple(estimate.value for estimate in row) for row in asked.cells()]

    yield answer
    engine.close()


@pytest.fixture(scope="module")
def witness(postgres: str) -> Iterator[Callable[[str], Rows]]:
    """PostgreSQL's answer. Whole numbers are stored as INT, as which declared ones are read."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE visits (person INT, ward TEXT, visited DATE, cost INT)")
        connection.execute("CREATE TEMPORARY TABLE wards (name TEXT, beds INT)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s)", [tuple(row.values()) for row in ROWS])
            cursor.executemany("INSERT INTO wards VALUES (%s, %s)", BEDS)
        yield lambda sql: connection.execute(sql.encode()).fetchall()


def plain(rows: Rows) -> list[list[Any]]:
    """Rows that can be compared: numbers as floats, in the order of what they say."""
    found = [[v if v is None or isinstance(v, str) else round(float(v), 6) for v in row] for row in rows]
    return sorted(found, key=str)


def same(got: Rows, expected: Rows) -> bool:
    one, other = plain(got), plain(expected)
    if len(one) != len(other):
        return False
    pairs = [pair for a, b in zip(one, other, strict=True) for pair in zip(a, b, strict=True)]
    return all(x == y or _is_near(x, y) for x, y in pairs)


def _is_near(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, rel_tol=1e-6, abs_tol=2e-5)


COUNTS = "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward"
WRITTEN = [
    " ".join(text.split()).format(counts=COUNTS)
    for text in """
SELECT SUM(c) / COUNT(*) AS mean FROM (SELECT person, COUNT(*) AS c FROM visits WHERE cost > 9 GROUP BY person) z

WITH m AS ({counts}), t AS (SELECT SUM(c) AS total FROM m) SELECT ward, 100 * c / total AS percent FROM m CROSS JOIN t

WITH m AS ({counts}) SELECT ward, 100 * c / (SELECT SUM(c) FROM m) AS percent FROM m

SELECT ward, 100 * c / total AS percent FROM
(SELECT ward, COUNT(*) AS c, SUM(COUNT(*)) OVER () AS total FROM visits GROUP BY ward) z

SELECT ward, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM visits GROUP BY ward

SELECT COUNT(*) AS n FROM (SELECT EXTRACT(MONTH FROM visited) AS m FROM visits) z WHERE m / 4 > 2

SELECT SUM(last / 7) AS weeks FROM (SELECT person, MAX(EXTRACT(DAY FROM visited)) AS last FROM visits GROUP BY person) z

SELECT m / 4 AS q, n FROM (SELECT EXTRACT(MONTH FROM visited) AS m, COUNT(*) AS n FROM visits GROUP BY 1) z

SELECT EXTRACT(MONTH FROM visited) / 4 AS q, COUNT(*) AS n FROM visits GROUP BY EXTRACT(MONTH FROM visited)

SELECT EXTRACT(MONTH FROM visited)::int / 4 AS q, COUNT(*) AS n FROM visits GROUP BY EXTRACT(MONTH FROM visited)::int

SELECT SUM(k) / 7 AS s FROM (SELECT ward, COUNT(*)::int AS k FROM visits GROUP BY ward) z

SELECT SUM(k) / 7 AS s FROM (SELECT ward, COUNT(*)::bigint AS k FROM visits GROUP BY ward) z

SELECT SUM(s)::bigint / 7 AS s FROM (SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward) z

SELECT SUM(cost) / 7 AS a, SUM(cost::bigint) / 7 AS b, COUNT(*) / 7 AS c, SUM(1) / 7 AS d FROM visits

SELECT SUM(EXTRACT(DAY FROM visited)) / 7 AS a, SUM(EXTRACT(DAY FROM visited)::int) / 7 AS b FROM visits

SELECT ward, SUM(c) / 7 AS s FROM ({counts} UNION ALL {counts}) z GROUP BY ward

SELECT ward, c / 7 AS s FROM (SELECT ward, SUM(c) AS c FROM ({counts}) y GROUP BY ward UNION ALL {counts}) z

SELECT ward, GROUPING(ward) / 2 AS g, COUNT(*) / 7 AS c FROM visits GROUP BY ROLLUP (ward)

SELECT a.ward, a.c / b.total AS x, b.total / a.c AS y FROM ({counts}) a JOIN
(SELECT ward, SUM(c) + 1 AS total FROM ({counts}) z GROUP BY ward) b ON a.ward = b.ward

SELECT ward, total / 7 AS x FROM ({counts}) a FULL JOIN
(SELECT ward, SUM(c) AS total FROM ({counts}) z GROUP BY ward) b USING (ward)

SELECT COUNT(*) AS n FROM (SELECT person, COUNT(*) AS c FROM visits GROUP BY person) z
WHERE LEAST(GREATEST(c, (SELECT SUM(c) FROM ({counts}) y)), 9) / 2 > 4

SELECT COUNT(*) AS n FROM (SELECT person, COUNT(*) AS c FROM visits GROUP BY person) z
WHERE LEAST(GREATEST(c, (SELECT COUNT(*) FROM visits)), 9) / 2 > 4

SELECT COUNT(*) AS n FROM (SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY visited) AS k FROM visits) z
WHERE k / 2 > 1

SELECT COUNT(*) AS n FROM (SELECT person, SUM(k) AS s FROM (SELECT person,
ROW_NUMBER() OVER (PARTITION BY person ORDER BY visited) AS k FROM visits) y GROUP BY person) z WHERE s / 4 > 1

SELECT COUNT(*) AS n FROM visits v WHERE (SELECT SUM(cost) FROM visits w WHERE w.person = v.person) / 7 > 9

SELECT COUNT(*) AS n FROM visits v WHERE
(SELECT SUM(EXTRACT(DAY FROM visited)) FROM visits w WHERE w.person = v.person) / 7 > 6

SELECT COUNT(*) FILTER (WHERE c / 4 > 2) AS n FROM (SELECT person, cost AS c FROM visits EXCEPT
SELECT person, EXTRACT(DAY FROM visited) FROM visits) z

SELECT COUNT(*) FILTER (WHERE a.c / 4 > 2) AS x, COUNT(*) FILTER (WHERE b.c / 4 > 2) AS y FROM
(SELECT person, MAX(cost) AS c FROM visits GROUP BY person) a FULL JOIN
(SELECT person, MAX(EXTRACT(DAY FROM visited)) AS c FROM visits GROUP BY person) b USING (person)

SELECT name, SUM(beds) / 2 AS a, COUNT(*) / 2 AS b, SUM(SUM(beds)) OVER () / 2 AS c FROM wards GROUP BY name

SELECT SUM(b) / 2 AS a FROM (SELECT name, SUM(beds) AS b FROM wards GROUP BY name) z

SELECT name, beds / 2 AS a, SUM(beds) OVER () / 2 AS b, RANK() OVER (ORDER BY beds) / 2 AS c FROM wards

SELECT x / 2 AS a, SUM(x) OVER () / 2 AS b, y / 2 AS c, SUM(z) OVER () / 2 AS d FROM
(VALUES (1, EXTRACT(DAY FROM DATE '2024-01-07'), 3000000001), (4, 5, 6)) v(x, y, z)

SELECT SUM(x) / 2 AS a FROM GENERATE_SERIES(1, 9) AS s(x)

SELECT ward, SUM(c) / 2 AS a FROM (SELECT ward, CASE WHEN COUNT(*) > 3000000000 THEN 3000000000 ELSE 3 END AS c
FROM visits GROUP BY ward) z GROUP BY ward

SELECT DIV(COUNT(*), 7) / 2 AS a, MOD(SUM(c), 7) / 2 AS b FROM ({counts}) z CROSS JOIN (SELECT 1 AS one) y

SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY c) / 7 AS m FROM ({counts}) z
""".strip().split("\n\n")
]


@pytest.mark.parametrize("sql", WRITTEN)
def test_quotients_are_cut_off_where_postgres_cuts_them_off(
    sql: str, ask: Callable[[str], Rows], witness: Callable[[str], Rows]
) -> None:
    got, expected = ask(sql), witness(sql)
    assert same(got, expected), (plain(got), plain(expected))


def key(number: str, wanted: str) -> str:
    """The key of a question about numbers that have a name."""
    sql = f"SELECT {wanted} AS n FROM (SELECT person, {number} AS c FROM visits) z"
    return make_plans(Question(sql, epsilon=1), POLICY).plan.key


def test_types_of_whole_numbers_are_part_of_no_key() -> None:
    numbers = ["cost", "cost::int", "cost::bigint", "FLOOR(cost)"]
    for wanted in ("SUM(c)", "COUNT(*) FILTER (WHERE c > 7)", "SUM(MOD(c, 7))"):
        assert len({key(number, wanted) for number in numbers}) == 1


def test_a_quotient_that_is_cut_off_and_one_that_is_not_have_different_keys() -> None:
    whole, exact = key("cost", "SUM(c / 7)"), key("FLOOR(cost)", "SUM(c / 7)")
    assert whole != exact
    assert key("cost::bigint", "SUM(c / 7)") == whole
    assert key("FLOOR(cost)::int", "SUM(c / 7)") == whole
    assert key("cost", "SUM(FLOOR(c) / 7)") == exact


# Whole numbers of a ward, and of a person, with all of PostgreSQL's types among them.
OF_WARDS = """
COUNT(*)
COUNT(*)::int
COUNT(DISTINCT person)
SUM(cost)
SUM(cost::bigint)
SUM(EXTRACT(DAY FROM visited))
SUM(EXTRACT(DAY FROM visited)::int)
SUM(CASE WHEN cost > 9 THEN 1 ELSE 0 END)
FLOOR(COUNT(*))
-COUNT(*)
GREATEST(COUNT(*), 2)
SUM(COUNT(*)) OVER ()
SUM(COUNT(*)::int) OVER ()
ROW_NUMBER() OVER (ORDER BY ward)
NTILE(2) OVER (ORDER BY ward)
LAG(COUNT(*), 1, 0) OVER (ORDER BY ward)
LAG(COUNT(*)::int, 1, SUM(cost)) OVER (ORDER BY ward)
""".strip().split("\n")
OF_PEOPLE = """
SELECT person, COUNT(*) AS c FROM visits GROUP BY person
SELECT person, COUNT(*)::int AS c FROM visits GROUP BY person
SELECT person, SUM(cost) AS c FROM visits GROUP BY person
SELECT person, SUM(cost::bigint) AS c FROM visits GROUP BY person
SELECT person, MAX(cost) AS c FROM visits GROUP BY person
SELECT person, MAX(EXTRACT(DAY FROM visited)) AS c FROM visits GROUP BY person
SELECT person, SUM(EXTRACT(DAY FROM visited)) AS c FROM visits GROUP BY person
SELECT person, EXTRACT(DAY FROM visited) AS c FROM visits
SELECT person, EXTRACT(DAY FROM visited)::int AS c FROM visits
SELECT person, cost AS c FROM visits
SELECT person, cost::bigint AS c FROM visits
SELECT person, visited - DATE '2024-01-01' AS c FROM visits
SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY visited) AS c FROM visits
SELECT person, SUM(cost) OVER (PARTITION BY person) AS c FROM visits
SELECT person, COUNT(*) OVER (PARTITION BY person) AS c FROM visits
SELECT person, LAG(cost, 1, 0) OVER (PARTITION BY person ORDER BY visited) AS c FROM visits
""".strip().split("\n")
CHANGED = """
c
c + 1
2 * c
c::int
c::bigint
COALESCE(c, 0)
CASE WHEN c > 2 THEN c ELSE 0 END
CASE WHEN c > 2 THEN 1 ELSE c END
GREATEST(c, 1)
LEAST(c, 30)
ABS(c)
FLOOR(LEAST(GREATEST(c, 0), 99))
c / 3
MOD(c, 7)
""".strip().split("\n")


def wrap(query: str, key: str, source: random.Random) -> str:
    """The numbers of a query under a name, and something computed from them."""
    match source.randrange(5):
        case 0:
            return f"SELECT {key}, {source.choice(['SUM', 'MIN', 'MAX'])}(c) AS c FROM ({query}) z GROUP BY {key}"
        case 1 if key == "ward":
            over = source.choice(["SUM(c)", "MAX(c)", "ROW_NUMBER()", "SUM(c::int)"])
            order = " (ORDER BY ward)" if over == "ROW_NUMBER()" else " ()"
            return f"SELECT ward, {over} OVER{order} AS c FROM ({query}) z"
        case 2:
            number = source.choice(["COUNT(*)", "COUNT(*)::int", "SUM(cost)"])
            other = f"SELECT {key}, {number} AS c FROM visits GROUP BY {key}"
            return f"SELECT {key}, c FROM (SELECT {key}, c FROM ({query}) y UNION ALL {other}) z"
    return f"SELECT {key}, {source.choice(CHANGED)} AS c FROM ({query}) z"


def of_wards(source: random.Random) -> str:
    """A question that divides released numbers."""
    query = f"SELECT ward, {source.choice(OF_WARDS)} AS c FROM visits GROUP BY ward"
    for _ in range(source.randrange(3)):
        query = wrap(query, "ward", source)
    match source.randrange(5):
        case 0:
            return f"WITH m AS ({query}) SELECT ward, 100 * c / (SELECT SUM(c) + 1000 FROM m) AS x FROM m"
        case 1:
            joined = f"m AS ({query}), t AS (SELECT SUM(c) + 1000 AS total, MAX(c) + 1000 AS most FROM m)"
            return f"WITH {joined} SELECT ward, 9000 * c / total AS x, 9000 * c / most AS y FROM m CROSS JOIN t"
        case 2:
            return f"SELECT SUM(c) / 7 AS x, MAX(c) / 7 AS y, COUNT(*) / 2 AS z FROM ({query}) z"
    return f"SELECT ward, c / 7 AS x, 1000 / NULLIF(c, 0) AS y, c / 3 / 2 AS z FROM ({query}) z"


def of_people(source: random.Random) -> str:
    """A question that counts rows by quotients of theirs."""
    query = source.choice(OF_PEOPLE)
    for _ in range(source.randrange(3)):
        query = wrap(query, "person", source)
    counts = (f"COUNT(*) FILTER (WHERE c / 7 > {most}) AS n{most}" for most in range(4))
    return f"SELECT {', '.join(counts)} FROM ({query}) z"


@pytest.mark.parametrize("make", [of_wards, of_people])
def test_generated_quotients_are_those_of_postgres(
    make: Callable[[random.Random], str], ask: Callable[[str], Rows], witness: Callable[[str], Rows]
) -> None:
    source, answered, tries = random.Random(1), 0, 200 if FULL else 20
    for _ in range(tries):
        sql = make(source)
        expected = witness(sql)
        try:
            got = ask(sql)
        except Refused:
            continue
        answered += 1
        assert same(got, expected), (sql, plain(got), plain(expected))
    assert answered > tries // 2, answered
