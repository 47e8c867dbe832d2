"""What is admitted is answered: a question is refused at no cost, or it comes to an answer, and nothing else."""

from __future__ import annotations

import pytest
from tests.support.counts import some

from tacit.curator.curator import Curator
from tacit.errors import Refused

pytestmark = pytest.mark.slow

ANSWERED = """
SELECT COUNT(*) FROM visits
select count(*) from VISITS
SELECT COUNT() FROM visits
SELECT COUNT(*) AS "n" FROM "Visits" AS v WHERE v.age > 3 AND age < 90;
SELECT COUNT(ALL age) FROM visits
SELECT COUNT(NULL) FROM visits
SELECT COUNT(*) FROM visits WHERE TRUE
SELECT COUNT(*) FROM visits WHERE smoker AND NOT smoker
SELECT COUNT(*) FROM visits WHERE age NOT IN (1, 2) AND age NOT BETWEEN 1 AND 2 AND ward IS NOT NULL
SELECT COUNT(*) FROM visits WHERE age == 3 OR age != 4 OR age <> 5
SELECT COUNT(*) FROM visits WHERE age > 1_000 OR cost > .5 OR cost > 5. OR cost > 1e3
SELECT COUNT(*) FROM visits WHERE visited = '2025-01-01' OR visited IN (DATE '2025-01-02', '2025-01-03')
SELECT COUNT(*) FROM visits WHERE visited BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'
SELECT COUNT(*) FROM visits WHERE quarter = visited
SELECT COUNT(*) FROM visits WHERE prior > 9223372036854775807 OR pulse > 1 OR room < 150
SELECT COUNT(*) FROM visits WHERE diagnosis = 'a''b' OR diagnosis = 'a\\' OR diagnosis = 'é'
SELECT COUNT(*) FROM visits WHERE COALESCE(NULL, age) > 3
SELECT COUNT(*) FROM visits WHERE (CASE WHEN smoker THEN NULL ELSE NULL END) IS NULL
SELECT COUNT(*) FROM visits WHERE IFNULL(age, 0) = 0
SELECT COUNT(*) FROM visits LIMIT 0
SELECT COUNT(*) FROM visits ORDER BY 1 DESC NULLS LAST LIMIT 2 OFFSET 1
SELECT COUNT(CASE WHEN smoker THEN visited END), COUNT(COALESCE(diagnosis, 'x')) FROM visits
SELECT SUM(age) FILTER (WHERE smoker), COUNT(*) FILTER (WHERE age > 3) FROM visits
SELECT SUM(0), SUM(1), SUM(-1), SUM(0.0), AVG(0), AVG(2.5) FROM visits
SELECT SUM(points * 9000), AVG(points) FROM visits
SELECT SUM(FLOOR(cost)), SUM(FLOOR(age)), SUM(CEIL(balance)), SUM(ABS(balance)), AVG(-age), AVG(+age) FROM visits
SELECT SUM(GREATEST(0, LEAST(prior, 10))), AVG(GREATEST(0, LEAST(pulse, 10))) FROM visits
SELECT SUM(balance / 7), SUM(1 / (age + 1)), SUM(cost / 0.0001), SUM(balance * balance * balance) FROM visits
SELECT SUM(CASE ward WHEN 'A' THEN 1 WHEN 'B' THEN 2.5 END) FROM visits
SELECT ROUND(AVG(age)), ROUND(COUNT(*)) FROM visits
SELECT ROUND(AVG(cost), 2) FROM visits
SELECT ROUND(COUNT(*), 2), ROUND(SUM(cost), 15) FROM visits
SELECT -COUNT(*), ABS(AVG(age)), FLOOR(AVG(age)), CEIL(COUNT(*)), GREATEST(COUNT(*), 0) FROM visits
SELECT AVG(age) / 0, COUNT(*) / 0, 1 / COUNT(*), COUNT(*) * 9223372036854775807 FROM visits
SELECT COUNT(*) IN (1, 2), COUNT(*) IS NULL, COUNT(*) > 3 AND TRUE, COALESCE(AVG(age), 0) FROM visits
SELECT 'x' AS label, COUNT(*) FROM visits
SELECT ward, ward, COUNT(*) FROM visits GROUP BY ward
SELECT ward AS w, COUNT(*) FROM visits GROUP BY w HAVING ward = 'A' OR COUNT(*) > 0 ORDER BY w DESC, COUNT(*)
SELECT ward, CASE WHEN COUNT(*) > 0 THEN 'big' ELSE 'small' END FROM visits GROUP BY 1
SELECT smoker, quarter, COUNT(*) FROM visits GROUP BY smoker, quarter ORDER BY 2, 1
SELECT quarter > DATE '2025-03-01', COUNT(*) FROM visits GROUP BY quarter
SELECT room + 1, COUNT(*) FROM visits GROUP BY room LIMIT 3
SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 3
SELECT ward, COUNT(*), SUM(rate), AVG(rate) FROM beds GROUP BY ward
""".strip().splitlines()


EXPLAINED = some(ANSWERED, 3)


@pytest.mark.parametrize("sql", ANSWERED)
def test_answered(rich: Curator, sql: str) -> None:
    answer = rich.analyst("ada").ask(sql, epsilon=1)
    assert str(answer) and answer.to_dict()
    if sql not in EXPLAINED:
        return
    assert str(rich.analyst("ada").explain(sql, epsilon=1)).startswith("costs epsilon ")
    again = rich.analyst("ada").ask(sql, epsilon=1)
    assert again.receipt.repeat and list(again) == list(answer)


def test_what_overflows_in_finishing_is_null(rich: Curator) -> None:
    # 1e398 is no double, and infinity less infinity is not a number: neither is a value to show
    huge = "AVG(age) * 1e199 * 1e199"
    answer = rich.analyst("ada").ask(f"SELECT {huge} AS x, {huge} - {huge} AS y FROM visits", epsilon=10)
    assert list(answer) == [{"x": None, "y": None}]


# Refused, or answered: but never charged and failed, and never an error of Python or of the engine.
DOUBTFUL = [
    # a step of 1e-582 has no double, nor has the inverse of 1e-322
    "SELECT SUM(cost * 1e-290 * 1e-290) FROM visits",
    "SELECT AVG(cost * 1e-300 * 1e-20) FROM visits",
    # 1e339 is no double
    "SELECT COUNT(*) FROM visits WHERE cost > 1111111111111111111111111111111111111111e300",
    # 1e308 is one, but twice it is not
    "SELECT SUM(CASE WHEN age > 1 THEN 9999999999e298 ELSE 0 END) FROM visits",
    "SELECT AVG(CASE WHEN age > 1 THEN 9999999999e298 ELSE 0 END) FROM visits",
    "SELECT SUM(LEAST(pulse, 9999999999e298) + 1) FROM visits",
    # half a character
    "SELECT COUNT(*) FROM visits WHERE diagnosis = '\ud800'",
    'SELECT COUNT(*) AS "\ud800" FROM visits',
    'SELECT COUNT(*) FROM "\ud800"',
    'SELECT COUNT(*) AS "" FROM visits',
    "SELECT COUNT(*) AS " + "a" * 5000 + " FROM visits",
    "SELECT COUNT(*) FROM visits WHERE age IN ()",
    "SELECT COUNT(*) FROM visits WHERE COALESCE(NULL) IS NULL",
    "SELECT COUNT(*) + NULL AS x FROM visits",
    # a value that overflows to infinity and then to NaN: claimed in [0, 0], but q is 1e190 and not 1e40
    "SELECT SUM({q} * {q} - {q} * {q}) FROM visits".replace("{q}", "(1e190 / (((1e190 + 1e150) - 1e190) + 1))"),
    "SELECT COUNT(*) FROM visits WHERE " + "(" * 39 + "age > 1" + ")" * 39,
    "SELECT SUM(" + "ABS(" * 38 + "age" + ")" * 38 + ") FROM visits",
    "SELECT SUM(" + "age - " * 110 + "1) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 30 + "smoker",
    "SELECT SUM(CASE " + "WHEN age = 1 THEN 1 " * 300 + "END) FROM visits",
]


@pytest.mark.parametrize("sql", DOUBTFUL, ids=lambda sql: sql[:60].encode("ascii", "replace").decode())
def test_refused_at_no_cost_or_answered(rich: Curator, sql: str) -> None:
    before = rich.ledger.overall().spent
    try:
        answer = rich.analyst("ada").ask(sql, epsilon=1)
        assert answer.to_dict()
    except Refused:
        assert rich.ledger.overall().spent == before
