"""Programs over released tables: what plain DuckDB computes where there is no noise, and intervals that hold noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.collection.compare import difference
from tests.support.bits import Ones
from tests.support.counts import FULL
from tests.support.policies import policy_of

from tacit.analyst import Analyst
from tacit.answers.post_process import answer_columns
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits, open_engine
from tacit.ledger.ledger import Ledger
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.sampling.bits import SystemBits

pytestmark = pytest.mark.slow

WARDS, YEARS = ["A", "B", "C"], [2023, 2024, 2025]
ROWS = [
    {
        "person": i,
        "ward": WARDS[i * i % 7 % 3],
        "year": YEARS[i * 5 % 11 % 3],
        "sex": "FM"[i % 5 < 2],
        "cost": i * 7 % 40,
    }
    for i in range(300)
]
POLICY = load(
    policy_of(
        {
            "visits": {
                "unit": "person",
                "max_groups": 1,
                "max_rows_per_group": 1,
                "columns": {
                    "ward": {"type": "text", "values": WARDS},
                    "year": {"type": "int", "lower": 2023, "upper": 2025},
                    "sex": {"type": "text", "values": ["F", "M"]},
                    "cost": {"type": "int", "lower": 0, "upper": 40},
                },
            }
        },
        analysts=["ada"],
    )
)
GROUPED = "SELECT ward, year, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY ward, year"


@pytest.fixture(scope="module")
def data() -> Any:
    return pa.Table.from_pylist(ROWS)


@pytest.fixture(scope="module")
def plain(data: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.register("visits", data)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def ask(data: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Ask over the data, with a ledger for each question, and without noise unless there are bits."""
    engine = open_engine(POLICY, {"visits": data})
    folder, numbers = tmp_path_factory.mktemp("ledgers"), count()

    def answer(sql: str, epsilon: float = 5, bits: Any = None) -> Any:
        with Ledger(Path(folder) / f"{next(numbers)}.ledger", budget_limits(POLICY)) as ledger:
            analyst: Analyst = Curator(POLICY, engine, ledger, bits or Ones()).analyst("ada")
            return analyst.ask(sql, epsilon=epsilon)

    yield answer
    engine.close()


@pytest.fixture(scope="module")
def ask_once(ask: Callable[..., Any]) -> Callable[[str], Any]:
    """The answer without noise, which is asked for once."""
    return cache(ask)


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(estimate.value for estimate in row) for row in answer.cells()]


PROGRAMS = [
    " ".join(text.split()).format(grouped=GROUPED)
    for text in """
SELECT ward, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM
visits GROUP BY ward

SELECT ward, RANK() OVER (ORDER BY COUNT(*) DESC) AS r, DENSE_RANK() OVER (ORDER BY COUNT(*)) AS d FROM visits
GROUP BY ward

SELECT ward, year, n, LAG(n) OVER w AS before, LEAD(n, 1, 0) OVER w AS after, SUM(n) OVER w AS running FROM
({grouped}) WINDOW w AS (PARTITION BY ward ORDER BY year)

SELECT ward, year, AVG(n) OVER (ORDER BY ward, year ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth FROM
({grouped})

SELECT ward, year, n FROM ({grouped}) QUALIFY ROW_NUMBER() OVER (PARTITION BY ward ORDER BY n DESC, year) = 1

SELECT ward, MAX(n) AS most, MIN(n) AS least, AVG(c) AS mean, COUNT(*) AS years FROM ({grouped}) WHERE n > 0
GROUP BY ward HAVING MAX(n) > 10

SELECT ward, SUM(n) AS n FROM ({grouped}) GROUP BY ward ORDER BY n DESC LIMIT 2

SELECT ward, year, LAG(n) OVER (PARTITION BY ward ORDER BY year) AS n FROM ({grouped})

SELECT ward, year, -n AS n, RANK() OVER (PARTITION BY ward ORDER BY n) AS r FROM ({grouped})

SELECT ward, SUM(n) AS n FROM ({grouped}) GROUP BY ward ORDER BY MAX(n), MIN(n), MAX(n) LIMIT 2

SELECT COALESCE(ward, 'all') AS ward, COALESCE(sex, 'all') AS sex, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, sex)
ORDER BY GROUPING(ward), GROUPING(sex), 1, 2

SELECT ward, sex, COUNT(*) AS n, GROUPING(ward) AS g, GROUPING(ward, sex) AS gs FROM visits GROUP BY ROLLUP
(ward, sex)

SELECT ward, sex, AVG(cost) AS mean FROM visits GROUP BY CUBE (ward, sex) HAVING COUNT(*) > 20

SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (sex), ())

SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2

SELECT ward, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM visits) AS percent FROM visits GROUP BY ward

SELECT COUNT(*) AS n, (SELECT SUM(cost) FROM visits WHERE sex = 'F') AS f, (SELECT MAX(n) FROM (SELECT ward,
COUNT(*) AS n FROM visits GROUP BY ward)) AS m FROM visits

SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT COUNT(*) / 3.0 FROM visits)

SELECT 'all' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER
BY n DESC, what LIMIT 3

SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 10 EXCEPT SELECT ward FROM visits GROUP BY ward HAVING
COUNT(*) > 100

SELECT ward FROM visits GROUP BY ward INTERSECT SELECT ward FROM visits WHERE cost > 5 GROUP BY ward HAVING
COUNT(*) > 50

WITH a AS ({grouped}), b AS (SELECT ward, COUNT(*) AS all_years FROM visits GROUP BY ward) SELECT a.ward, year,
n * 1.0 / all_years AS share FROM a JOIN b USING (ward) WHERE n > 0

WITH a AS (SELECT * FROM ({grouped}) WHERE year = 2023), b AS (SELECT * FROM ({grouped}) WHERE year = 2024 AND
ward <> 'A') SELECT a.ward, a.n, b.n AS later, b.n - a.n AS change FROM a LEFT JOIN b ON a.ward = b.ward

SELECT DISTINCT CASE WHEN COUNT(*) > 90 THEN 'many' ELSE 'few' END AS size FROM visits GROUP BY ward, sex

SELECT size, COUNT(*) AS wards FROM (SELECT ward, CASE WHEN COUNT(*) > 90 THEN 'many' ELSE 'few' END AS size
FROM visits GROUP BY ward) GROUP BY size

SELECT ARG_MAX(ward, n) AS busiest, MIN_BY(ward, n) AS quietest FROM ({grouped}) WHERE year = 2024

WITH a AS (SELECT * FROM ({grouped}) WHERE year = 2023), b AS (SELECT * FROM ({grouped}) WHERE year = 2024 AND
ward <> 'A') SELECT ward, a.n, b.n AS later FROM a FULL JOIN b USING (ward)

WITH a AS (SELECT * FROM ({grouped}) WHERE year = 2023 AND ward <> 'B'), b AS (SELECT ward, COUNT(*) AS whole FROM
visits GROUP BY ward) SELECT b.ward, n, whole FROM a RIGHT JOIN b ON a.ward = b.ward

WITH a AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward), b AS (SELECT ward, SUM(cost) AS c FROM visits GROUP
BY ward) SELECT a.ward, n, c FROM a, b WHERE a.ward = b.ward

WITH a AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward), b AS (SELECT ward, SUM(cost) AS c FROM visits GROUP
BY ward) SELECT ward, n, c FROM a NATURAL JOIN b

SELECT NTILE(2) OVER (ORDER BY COUNT(*), ward) AS half, ward FROM visits GROUP BY ward

SELECT STDDEV(n) AS s, MEDIAN(n) AS m, SUM(n) FILTER (WHERE year = 2023) AS y FROM ({grouped}) WHERE n > 0

SELECT FIRST_VALUE(n) OVER (ORDER BY ward, year) AS f, LAST_VALUE(n) OVER (ORDER BY ward, year) AS l, ward, year
FROM ({grouped})
""".strip().split("\n\n")
]


@pytest.mark.parametrize("sql", PROGRAMS)
def test_without_noise_an_answer_is_what_duckdb_computes(sql: str, ask_once: Callable[..., Any], plain: Any) -> None:
    answer = ask_once(sql)
    expected = plain.execute(sql).fetchall()
    assert expected and len(answer) == len(expected)  # every public group has rows here
    assert difference(rows(answer), expected, 1e-9) == ""


def test_the_columns_are_known_before(ask_once: Callable[..., Any]) -> None:
    for sql in PROGRAMS:
        answer = ask_once(sql)
        assert answer.headings == answer_columns(make_plans(Question(sql, epsilon=5), POLICY).plan.recipe)


def test_a_repeat_shows_the_same_and_costs_nothing(data: Any, tmp_path: Path) -> None:
    sql = "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY ROLLUP (ward)"
    engine = open_engine(POLICY, {"visits": data})
    with Ledger(tmp_path / "x.ledger", budget_limits(POLICY)) as ledger:
        ada = Curator(POLICY, engine, ledger, SystemBits()).analyst("ada")
        first, before = ada.ask(sql, epsilon=0.5), ada.budget
        again = ada.ask(sql, epsilon=0.5)
        assert str(again).splitlines()[:-1] == str(first).splitlines()[:-1]
        assert ada.budget.own == before.own
    engine.close()


COVERED = (
    "SELECT ward, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share, "
    "SUM(COUNT(*)) OVER (ORDER BY ward) AS running FROM visits GROUP BY ward"
)


def test_intervals_hold_the_value_without_noise_as_often_as_they_say(ask: Callable[..., Any], plain: Any) -> None:
    """95 % intervals that are right nine times of ten: fewer hits than this have a chance below 1e-9.

    Where only 80 % of them held the value, the test would fail with a chance above 0.99 at full counts.
    """
    truth = {row[0]: row[1:] for row in plain.execute(COVERED).fetchall()}
    tries = 600 if FULL else 24
    held = asked = 0
    for _ in range(tries):
        ward, *found = next(iter(ask(COVERED, epsilon=0.5, bits=SystemBits()).cells()))
        for estimate, value in zip(found, truth[ward.value], strict=True):
            held += estimate.low <= float(value) <= estimate.high
            asked += 1
    tries = asked // 2  # two columns of one answer are no independent tries
    least = next(k for k in range(tries + 1) if _at_most(k, tries, 0.9) > 1e-9)
    assert held / asked * tries >= least


def _at_most(hits: int, tries: int, chance: float) -> float:
    return sum(comb(tries, k) * chance**k * (1 - chance) ** (tries - k) for k in range(hits + 1))
