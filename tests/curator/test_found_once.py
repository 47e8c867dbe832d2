"""What one unit moves where rows are looked up by keys that are stored beyond their declared bounds, or not listed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tacit.aggregates.registry import read_question
from tacit.curator.tables import check_join_columns, table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.policy.model import Policy

FIRST = (
    "(SELECT who, order_id, x FROM (SELECT who, order_id, x, ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) AS k"
    " FROM lines) AS t WHERE k = 1)"
)
MANY = 30


def policy_of(rows: int, *, is_listed: bool) -> Policy:
    """Orders whose key, if it is listed, is declared from 0 to 10; lines reach their unit through it."""
    key = {"id": {"type": "int", "lower": 0, "upper": 10}} if is_listed else {}
    caps = {"max_groups": 1, "max_rows_per_group": rows}
    small = {"type": "int", "lower": 0, "upper": 9}
    return load(
        {
            "privacy": {"epsilon": 10},
            "tables": {
                "orders": {"unit": "who", "people": "all", **caps, "columns": {**key, "o": small}},
                "lines": {"unit": {"through": "order_id", "to": "orders.id"}, **caps, "columns": {"x": small}},
            },
            "analysts": {"ada": {"epsilon": 5}},
        }
    )


def database(*, with_one: bool) -> dict[str, list[dict[str, int]]]:
    """One unit has an order within bounds; the other has 30 beyond them, each with a line."""
    ids = range(1000, 1000 + MANY) if with_one else ()
    orders = [{"who": 2, "id": 7, "o": 1}, *({"who": 1, "id": each, "o": 1} for each in ids)]
    lines = [{"order_id": 7, "x": 1}, *({"order_id": each, "x": 1} for each in ids)]
    return {"orders": orders, "lines": lines}


def engines(policy: Policy, data: dict[str, list[dict[str, int]]]) -> list[Any]:
    frames = {name: pa.Table.from_pylist(rows) for name, rows in data.items()}
    found = DuckDBEngine(table_schemas(policy), frames=frames)
    check_join_columns(policy, found)
    return [found, ReferenceEngine(data)]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM {FIRST} AS c"
        " WHERE (SELECT o.o FROM orders AS o WHERE o.who = c.who AND o.id = c.order_id) = 1",
        f"SELECT COUNT(*) FROM {FIRST} AS c JOIN orders AS o ON o.who = c.who AND o.id = c.order_id",
        f"SELECT COUNT(*) FROM {FIRST} AS c JOIN orders AS o ON o.id = c.order_id",
        f"SELECT COUNT(*) FROM orders AS a JOIN orders AS b ON a.who = b.who AND a.id = b.id JOIN {FIRST} AS c"
        " ON c.order_id = a.id",
        f"SELECT COUNT(*) FROM {FIRST} AS c LEFT JOIN orders AS o ON o.who = c.who AND o.id = c.order_id",
    ],
)
def test_a_row_finds_one_row_by_a_key_that_bounds_would_make_equal(text):
    # The other unit has one row at most after k = 1, and finds the one order that it names: a count moves by one.
    policy = policy_of(1, is_listed=True)
    plan = plan_for(read_question(text), policy, 1)
    with_one, without = engines(policy, database(with_one=True)), engines(policy, database(with_one=False))
    for more, fewer in zip(with_one, without, strict=True):
        (there,), (here,) = more.run(plan.exact)[()], fewer.run(plan.exact)[()]
        assert (there, here) == (2, 1)
    assert plan.parts[0].sensitivity == 1


@pytest.mark.parametrize("word", ["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
@pytest.mark.parametrize(
    "parts",
    [
        ("SELECT who, who AS u FROM orders", "SELECT who, id AS u FROM orders"),
        ("SELECT who, id AS u FROM orders", "SELECT who, who AS u FROM orders"),
        ("SELECT who, who AS u FROM orders", "SELECT who, order_id AS u FROM lines"),
        ("SELECT who, u FROM (SELECT who, id AS u FROM orders UNION ALL SELECT who, id AS u FROM orders) AS s",
         "SELECT who, who AS u FROM orders"),
        ("SELECT a.who, b.who AS u FROM orders AS a LEFT JOIN orders AS b ON a.who = b.who",
         "SELECT who, id AS u FROM orders"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_listed_is_not_taken_for_the_unit(parts, word):
    # One unit has as many keys as it likes, and COUNT(DISTINCT) of its units would be charged as one.
    text = f"SELECT COUNT(DISTINCT u) FROM ({f' {word} '.join(parts)}) AS s"
    with pytest.raises(Refused) as caught:
        plan_for(read_question(text), policy_of(500, is_listed=False), 1)
    assert "whose row it is" in str(caught.value) or "not listed" in str(caught.value)


@pytest.mark.parametrize("other", ["who", "NULL"])
def test_a_unit_beside_the_unit_or_null_is_counted_once(other):
    text = f"SELECT COUNT(DISTINCT u) FROM (SELECT who AS u FROM orders UNION ALL SELECT {other} AS u FROM orders) AS s"
    policy = policy_of(500, is_listed=False)
    plan = plan_for(read_question(text), policy, 1)
    assert plan.parts[0].sensitivity == 1
    for engine in engines(policy, database(with_one=True)):
        assert engine.run(plan.exact)[()] == (2,)


ALIKE = "(VALUES ('1'), ('01'), ('001')) AS v(k)"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who) AS s JOIN {ALIKE} ON s.who = v.k",
        f"SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who) AS s LEFT JOIN {ALIKE} ON s.who = v.k",
        f"SELECT COUNT(*) FROM (SELECT who FROM orders GROUP BY who) AS s WHERE who IN (SELECT k FROM {ALIKE})",
        f"SELECT COUNT(*) FROM orders AS s WHERE EXISTS (SELECT 1 FROM {ALIKE} WHERE v.k = s.who)",
        f"SELECT COUNT(*) FROM orders AS s WHERE (SELECT k FROM {ALIKE} WHERE v.k = s.who) = '1'",
        f"SELECT COUNT(*) FROM orders AS s JOIN {ALIKE} ON CASE WHEN s.o = 1 THEN s.who END = v.k",
        "SELECT COUNT(*) FROM orders AS s JOIN (VALUES (1), (2)) AS v(k) ON s.who = v.k",
    ],
)
def test_a_unit_that_is_not_listed_is_not_matched_with_values(text):
    # An engine would read the texts as integers, of which 1, 01 and 001 are one; or the unit, which may be no number.
    with pytest.raises(Refused) as caught:
        plan_for(read_question(text), policy_of(500, is_listed=False), 1)
    assert caught.value.code in {ErrorCode.TYPE, ErrorCode.UNSUPPORTED}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM orders AS a JOIN orders AS b ON a.who = b.who",
        "SELECT COUNT(*) FROM orders AS a WHERE who IN (SELECT who FROM orders)",
        "SELECT COUNT(*) FROM lines JOIN orders ON lines.order_id = orders.id",
        "SELECT COUNT(*) FROM orders AS a LEFT JOIN (SELECT who, COUNT(*) AS n FROM orders GROUP BY who) AS b"
        " ON a.who = b.who",
    ],
)
def test_units_are_matched_with_units_and_keys_with_keys(text):
    plan_for(read_question(text), policy_of(500, is_listed=False), 1)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) FROM lines AS c FULL JOIN orders AS o ON o.who = c.who AND o.id = c.order_id", 3),
        ("SELECT COUNT(*) FROM orders AS o WHERE EXISTS"
         " (SELECT * FROM lines AS c WHERE o.who = c.who AND o.id = c.order_id)", 2),
        ("SELECT COUNT(*) FROM orders AS o WHERE o.id NOT IN"
         " (SELECT c.order_id FROM lines AS c WHERE o.who = c.who)", 1),
    ],
)  # fmt: skip
def test_what_finds_nothing_is_told_from_what_finds_another_key_beyond_bounds(text, rows):
    # The ids of two of three orders lie beyond the declared bounds; one of the two has a line, and so has the third.
    orders = [{"who": 1, "id": 1000, "o": 1}, {"who": 1, "id": 1001, "o": 1}, {"who": 2, "id": 7, "o": 1}]
    lines = [{"order_id": 1000, "x": 1}, {"order_id": 7, "x": 1}]
    policy = policy_of(5, is_listed=True)
    plan = plan_for(read_question(text), policy, 1)
    for engine in engines(policy, {"orders": orders, "lines": lines}):
        assert engine.run(plan.exact)[()] == (rows,)


def policy_of_bounds(*uppers: int | None) -> Policy:
    """Tables of the same people, which declare the unit with other bounds; where None, it is not listed."""
    tables = {}
    for number, upper in enumerate(uppers):
        who = {} if upper is None else {"who": {"type": "int", "lower": 0, "upper": upper}}
        columns = {**who, "x": {"type": "int", "lower": 0, "upper": 9}}
        tables[f"t{number}"] = {
            "unit": "who", "people": "all", "max_groups": 1, "max_rows_per_group": 1, "columns": columns
        }  # fmt: skip
    return load({"privacy": {"epsilon": 10}, "tables": tables, "analysts": {"ada": {"epsilon": 5}}})


STACKED = "(SELECT who, x FROM t0 UNION ALL SELECT who, x FROM t1 UNION ALL SELECT who, x FROM t2) AS u"


@pytest.mark.parametrize("uppers", [(1, 2, 3), (1, 1, None), (5, 5, 5), (None, 2, 9)])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT who FROM t0 UNION SELECT who FROM t1 UNION SELECT who FROM t2) AS z",
        f"SELECT COUNT(*) FROM (SELECT who FROM {STACKED} GROUP BY who) AS z",
        f"SELECT COUNT(*) FROM (SELECT DISTINCT who FROM {STACKED}) AS z",
        f"SELECT COUNT(*) FROM (SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) AS k FROM {STACKED}) AS z"
        " WHERE k = 1",
        "SELECT COUNT(*) FROM (SELECT who FROM t0 AS a FULL JOIN t1 AS b USING (who, x) GROUP BY who) AS z",
        "SELECT COUNT(*) FROM (SELECT who FROM t0 AS a FULL JOIN t1 AS b USING (who, x) FULL JOIN t2 AS c USING (who)"
        " GROUP BY who) AS z",
        "SELECT COUNT(*) FROM (SELECT DISTINCT who FROM t0 AS a FULL JOIN t1 AS b USING (who, x)) AS z",
        "SELECT COUNT(*) FROM (SELECT who FROM (SELECT who FROM t0 UNION SELECT who FROM t1) AS z"
        " UNION SELECT who FROM t2) AS y",
        "SELECT COUNT(*) FROM (SELECT who FROM t0 INTERSECT SELECT who FROM t1) AS z",
    ],
)
def test_a_unit_that_tables_declare_otherwise_is_one_group(text, uppers):
    # Unit 50 is beyond all bounds; x differs from table to table, so FULL JOIN finds no rows of both.
    rows = {f"t{number}": [{"who": who, "x": number} for who in (0, 50)] for number in range(3)}
    fewer = {table: some[:1] for table, some in rows.items()}
    plan = plan_for(read_question(text), policy_of_bounds(*uppers), 1)
    with_one, without = (engines(policy_of_bounds(*uppers), data) for data in (rows, fewer))
    for there, here in zip(with_one, without, strict=True):
        assert (there.run(plan.exact)[()], here.run(plan.exact)[()]) == ((2,), (1,))
    assert plan.parts[0].sensitivity == 1


@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT"])
def test_a_unit_as_it_lies_has_not_the_bounds_of_the_first_part(word):
    text = f"SELECT SUM(who) FROM (SELECT who FROM t0 {word} SELECT who FROM t1) AS z"
    with pytest.raises(Refused):
        plan_for(read_question(text), policy_of_bounds(1, 2), 1)
    assert plan_for(read_question(text), policy_of_bounds(2, 2), 1).parts[0].sensitivity == 2


STACKS = {
    "UNION ALL": "(SELECT id AS k, o AS n FROM orders UNION ALL SELECT order_id AS k, x AS n FROM lines) AS u",
    "UNION ALL with NULL": "(SELECT id AS k, o AS n FROM orders UNION ALL SELECT NULL AS k, x AS n FROM lines) AS u",
    "FULL JOIN": "(SELECT id AS k, a.o AS n FROM orders AS a FULL JOIN orders AS b USING (who, id)) AS u",
    "LEFT JOIN": "(SELECT b.order_id AS k, a.o AS n FROM orders AS a LEFT JOIN lines AS b"
    " ON a.id = b.order_id AND a.o > b.x) AS u",
    "RIGHT JOIN": "(SELECT b.order_id AS k, a.o AS n FROM lines AS b RIGHT JOIN orders AS a"
    " ON a.id = b.order_id AND a.o > b.x) AS u",
}


@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(COALESCE(k, 1) * 1000000000000000000) FROM {}",
        "SELECT SUM(CASE WHEN n > 1 THEN k ELSE n END) FROM {}",
        "SELECT COUNT(DISTINCT COALESCE(k, 1)) FROM {}",
        "SELECT COUNT(DISTINCT k) FROM {}",
        "SELECT COUNT(*) FROM {} WHERE k > 5",
        "SELECT COUNT(*) FROM (SELECT k, COALESCE(k, 1) AS j FROM {}) AS w WHERE j = 1",
        "SELECT SUM(j) FROM (SELECT LAG(k, 1, 5) OVER (PARTITION BY n ORDER BY n) AS j FROM {}) AS w",
    ],
)
def test_a_key_that_is_not_listed_is_no_null(text, stack):
    """A column without a type was read as NULL, so COALESCE(k, 1) had the bounds of 1 and the values of the key."""
    with pytest.raises(Refused):
        plan_for(read_question(text.format(stack)), policy_of(5, is_listed=False), 1)


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT NULL AS k FROM orders",
        "SELECT k FROM (SELECT NULL AS k FROM orders) AS t",
        "SELECT NULL AS k FROM orders UNION ALL SELECT NULL FROM lines",
        "SELECT CASE WHEN o > 0 THEN NULL END AS k FROM orders",
        "SELECT LAG(NULL) OVER (PARTITION BY who ORDER BY o) AS k FROM orders",
    ],
)
def test_a_column_that_is_null_may_be_computed_with(inner):
    text = f"SELECT SUM(COALESCE(k, 1)) FROM ({inner}) AS u"
    plan = plan_for(read_question(text), policy_of(5, is_listed=False), 1)
    for engine in engines(policy_of(5, is_listed=False), database(with_one=False)):
        assert engine.run(plan.exact)[()][0] in (1, 2)
