"""Rows joined with a question of one row, or with constants: the same as its values written out."""

from __future__ import annotations

import pytest
from tests.support.policies import caps

from tacit.errors import Refused
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.policy.load import load

POLICY = load(
    {
        "privacy": {"epsilon": 100},
        "tables": {
            name: {
                "unit": "who",
                "people": "all",
                **caps(2, 3),
                "columns": {
                    "k": {"type": "text", "values": ["a", "b"]},
                    "x": {"type": "int", "lower": 0, "upper": 9},
                    "d": {"type": "date", "lower": "2025-01-01", "upper": "2025-12-31"},
                },
            }
            for name in ("v", "w")
        },
        "analysts": {"ada": {"epsilon": 100}},
    }
)
ONE = "(SELECT COUNT(*) AS n, AVG(x) AS m FROM v) AS t"
N, M = "(SELECT COUNT(*) AS n FROM v)", "(SELECT AVG(x) AS m FROM v)"
CONSTANTS = "(SELECT DATE '2025-03-01' AS lo, 5 AS least) AS p"


# A question, and the same with the values written out.
@pytest.mark.parametrize(
    ("joined", "written"),
    [
        (
            f"SELECT k, 100.0 * COUNT(*) / t.n AS c FROM v CROSS JOIN {ONE} GROUP BY k, t.n",
            f"SELECT k, 100.0 * COUNT(*) / {N} AS c FROM v GROUP BY k",
        ),
        (
            f"SELECT k, COUNT(*) AS c, n FROM v, {ONE} GROUP BY k, n ORDER BY n, c",
            f"SELECT k, COUNT(*) AS c, {N} AS n FROM v GROUP BY k ORDER BY n, c",
        ),
        (
            f"SELECT k, COUNT(*) * 1.0 / MAX(t.n) AS c FROM v, {ONE} GROUP BY k",
            f"SELECT k, COUNT(*) * 1.0 / {N} AS c FROM v GROUP BY k",
        ),
        (f"SELECT COUNT(*) AS c FROM v CROSS JOIN {ONE} WHERE x > t.m", f"SELECT COUNT(*) AS c FROM v WHERE x > {M}"),
        (
            "SELECT COUNT(*) AS c FROM v CROSS JOIN (SELECT AVG(x) AS x FROM v) AS t WHERE v.x > t.x",
            "SELECT COUNT(*) AS c FROM v WHERE x > (SELECT AVG(x) AS x FROM v)",
        ),
        (f"SELECT COUNT(*) AS c FROM v JOIN {ONE} ON x > t.m", f"SELECT COUNT(*) AS c FROM v WHERE x > {M}"),
        (f"SELECT COUNT(*) AS c FROM {ONE} JOIN v ON v.x > m", f"SELECT COUNT(*) AS c FROM v WHERE x > {M}"),
        (
            f"SELECT COUNT(*) AS c FROM v LEFT JOIN {ONE} ON TRUE WHERE x > t.m",
            f"SELECT COUNT(*) AS c FROM v WHERE x > {M}",
        ),
        (
            f"SELECT COUNT(*) AS c FROM v JOIN w USING (who) JOIN {ONE} ON w.x > t.m",
            f"SELECT COUNT(*) AS c FROM v JOIN w USING (who) WHERE w.x > {M}",
        ),
        (
            f"SELECT k, COUNT(*) AS c FROM v CROSS JOIN {ONE} GROUP BY k HAVING COUNT(*) > 0.1 * t.n",
            f"SELECT k, COUNT(*) AS c FROM v GROUP BY k HAVING COUNT(*) > 0.1 * {N}",
        ),
        (
            f"SELECT COUNT(*) AS c FROM v CROSS JOIN {CONSTANTS} WHERE d >= p.lo AND x > least",
            "SELECT COUNT(*) AS c FROM v WHERE d >= DATE '2025-03-01' AND x > 5",
        ),
        (
            f"SELECT k, p.lo, COUNT(*) AS c FROM v, {CONSTANTS} WHERE d >= lo GROUP BY k, p.lo",
            "SELECT k, DATE '2025-03-01' AS lo, COUNT(*) AS c FROM v WHERE d >= DATE '2025-03-01' GROUP BY k",
        ),
        (
            f"SELECT AVG(s) AS c FROM (SELECT who, SUM(x) AS s FROM v, {CONSTANTS} WHERE d >= p.lo GROUP BY who) AS e",
            "SELECT AVG(s) AS c FROM (SELECT who, SUM(x) AS s FROM v WHERE d >= DATE '2025-03-01' GROUP BY who) AS e",
        ),
    ],
)
def test_a_join_with_one_row_is_its_values(joined, written):
    one, other = (make_plans(Question(sql, epsilon=1), POLICY).plan for sql in (joined, written))
    assert one.key == other.key
    assert one.epsilon_delta == other.epsilon_delta


def test_names_of_the_select_list_come_first_in_order_by():
    sql = f"SELECT k, COUNT(*) AS m FROM v CROSS JOIN {ONE} GROUP BY k HAVING m > 3 ORDER BY m"
    assert len(make_plans(Question(sql, epsilon=1), POLICY).plan.members) == 1


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS c FROM v LEFT JOIN {ONE} ON x > t.m",  # all rows are kept
        f"SELECT COUNT(*) AS c FROM {ONE} LEFT JOIN v ON TRUE",  # a row of no person where v is empty
        f"SELECT COUNT(*) AS c FROM v FULL JOIN {ONE} ON TRUE",
        f"SELECT COUNT(*) AS c FROM v JOIN {ONE} ON x = t.m",  # noise is equal to nothing
        "SELECT COUNT(*) AS c FROM v CROSS JOIN (SELECT AVG(x) AS m FROM v HAVING COUNT(*) > 3) AS t WHERE x > m",
        "SELECT COUNT(*) AS c FROM v CROSS JOIN (SELECT AVG(x) AS m FROM v LIMIT 0) AS t WHERE x > m",
        f"SELECT k, n, COUNT(*) AS c FROM v CROSS JOIN {ONE} GROUP BY ROLLUP (n, k)",  # keys by their places
        "SELECT COUNT(*) AS c FROM v CROSS JOIN (SELECT AVG(x) AS x FROM v) AS t WHERE x > t.x",  # a name of both
        "SELECT COUNT(*) AS c FROM (SELECT x AS a FROM v) CROSS JOIN (SELECT AVG(x) AS a FROM v) AS t WHERE a > t.a",
        "SELECT x, COUNT(*) AS c FROM v CROSS JOIN (SELECT AVG(x) AS x FROM v) AS t GROUP BY x",
        "SELECT COUNT(*) AS c FROM v CROSS JOIN (SELECT k, AVG(x) AS m FROM v GROUP BY k) AS t WHERE x > m",
    ],
)
def test_other_joins_with_released_rows_stay_refused(sql):
    with pytest.raises(Refused):
        make_plans(Question(sql, epsilon=1), POLICY)
