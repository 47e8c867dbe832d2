"""Finishing: what a question does with released values. The noise is set aside, so every value is known."""

from __future__ import annotations

import datetime

import pytest
from tests.support.bits import Ones

from tacit.errors import Refused

ODD = "<script>alert('x')</script>"
# Count and integer sum of each ward; a sum of costs counts half units.
GROUPS = {"A": (10, 40), "B": (30, 90), "C": (20, 0)}


@pytest.fixture
def ask(analyst_of):
    analyst = analyst_of(GROUPS)

    def run(select: str, rest: str = "") -> list[tuple[object, ...]]:
        answer = analyst.ask(f"SELECT {select} FROM visits GROUP BY ward {rest}", epsilon=10)
        return [tuple(row.values()) for row in answer]

    return run


def test_every_declared_key_in_its_order(ask):
    assert ask("ward, COUNT(*) AS n") == [("A", 10), ("B", 30), ("C", 20), (ODD, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "wards"),
    [
        ("COUNT(*) > 10", ["B", "C"]),
        ("n > 10 AND SUM(age) > 0", ["B"]),
        ("NOT n > 10", ["A", ODD]),
        ("ward = 'A' OR ward = 'C'", ["A", "C"]),
        ("AVG(age) IS NULL", [ODD]),
        ("AVG(age) > 2", ["A", "B"]),
        ("n BETWEEN 10 AND 20", ["A", "C"]),
        ("n IN (10, 30)", ["A", "B"]),
        ("SUM(age) / n = 4", ["A"]),
        ("CASE WHEN ward = 'A' THEN n > 0 ELSE n > 25 END", ["A", "B"]),
        ("n > 1000", []),
        # 2^62 * 30 is beyond 128 bits after a few factors: NULL, and NULL is no row
        ("n * 4611686018427387904 * 4611686018427387904 * 4611686018427387904 > 0", []),
    ],
)
def test_having(condition, wards, ask):
    assert [row[0] for row in ask("ward, COUNT(*) AS n", f"HAVING {condition}")] == wards


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "wards"),
    [
        ("n", [ODD, "A", "C", "B"]),
        ("n DESC", ["B", "C", "A", ODD]),
        ("2 DESC, 1", ["B", "C", "A", ODD]),
        ("ward DESC", ["C", "B", "A", ODD]),
        ("AVG(age), ward", ["C", "B", "A", ODD]),
        ("AVG(age) NULLS FIRST", [ODD, "C", "B", "A"]),
        ("AVG(age) DESC NULLS LAST", ["A", "B", "C", ODD]),
        ("AVG(age) DESC NULLS FIRST", [ODD, "A", "B", "C"]),
        ("n > 10, n", [ODD, "A", "C", "B"]),
        ("ABS(n - 20), n", ["C", "A", "B", ODD]),
        ("CASE ward WHEN 'C' THEN 0 ELSE 1 END, ward DESC", ["C", "B", "A", ODD]),
        ("n LIMIT 2", [ODD, "A"]),
        ("n LIMIT 2 OFFSET 1", ["A", "C"]),
        ("n OFFSET 3", ["B"]),
        ("n LIMIT 0", []),
        ("n OFFSET 10", []),
    ],
)
def test_order_limit_and_offset(order, wards, ask):
    assert [row[0] for row in ask("ward, COUNT(*) AS n", f"ORDER BY {order}")] == wards


def test_rows_without_an_order_come_in_the_declared_one(ask):
    assert [row[0] for row in ask("ward, COUNT(*) AS n", "LIMIT 2")] == ["A", "B"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "value"),
    # For ward A: 10 rows, ages that add up to 40, costs that add up to 40 half units = 20.
    [
        ("COUNT(*) + 1", 11),
        ("COUNT(*) - SUM(age)", -30),
        ("COUNT(*) * 2.5", 25.0),
        ("-COUNT(*)", -10),
        ("SUM(age) / COUNT(*)", 4),
        ("SUM(cost) / COUNT(*)", 2.0),
        ("COUNT(*) / 4.0", 2.5),
        ("COUNT(*) / 4", 2),
        ("-COUNT(*) / 4", -2),
        ("CAST(COUNT(*) / 4.0 AS INT)", 3),
        ("CAST(POWER(COUNT(*) * 100.0, 10) AS BIGINT)", 2**62),
        ("AVG(cost)", 2.0),
        ("ROUND(COUNT(*) / 3)", 3),
        ("ROUND(COUNT(*) / 3.0, 2)", 3.33),
        ("ROUND(COUNT(*) / 3, 0)", 3),
        ("ROUND(COUNT(*))", 10),
        ("ROUND(SUM(age), 2)", 40),
        ("FLOOR(COUNT(*) / 3)", 3),
        ("CEIL(COUNT(*) / 3.0)", 4.0),
        ("FLOOR(COUNT(*))", 10),
        ("ABS(COUNT(*) - 15)", 5),
        ("LEAST(COUNT(*), SUM(age), 7)", 7),
        ("GREATEST(COUNT(*), SUM(cost))", 20.0),
        ("COALESCE(AVG(age), -1)", 4.0),
        ("CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END", "many"),
        ("CASE WHEN COUNT(*) > 50 THEN 1.5 END", None),
        ("CASE ward WHEN 'A' THEN COUNT(*) ELSE 0 END", 10),
        ("COUNT(*) > 5", True),
        ("COUNT(*) IN (10, 20)", True),
        ("AVG(age) IS NULL", False),
        ("ward = 'A'", True),
        ("DATE '2025-01-31'", datetime.date(2025, 1, 31)),
        ("'it''s'", "it's"),
    ],
)
def test_expressions(expression, value, ask):
    found = ask(f"{expression} AS x, COUNT(*) AS n, SUM(age) AS s")[0][0]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        "COUNT(*) / SUM(age)",
        "1 / COUNT(*)",
        "COUNT(*) / (COUNT(*) - COUNT(*))",
        "AVG(age)",
        "AVG(age) + 1",
        "COUNT(*) / 0",
        "COUNT(*) / 0.0",
    ],
)
def test_division_by_a_released_zero_is_null(expression, ask):
    # The last ward is empty: its count and sum are 0.
    assert ask(f"{expression} AS x, COUNT(*) AS n")[3][0] is None


LARGE = 2**62


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        f"COUNT(*) * {LARGE}",  # 10 * 2^62 is beyond 64 bits
        f"COUNT(*) * {LARGE} * {LARGE} * {LARGE}",  # beyond 128 bits
        f"SUM(age) * {LARGE} + SUM(age) * {LARGE}",
        "COUNT(*) * 1e199 * 1e199",  # beyond a double
        "COUNT(*) / 1e-199 / 1e-199",
        "COUNT(*) * 1e199 * 1e199 - COUNT(*) * 1e199 * 1e199",
        f"-COUNT(*) * {LARGE}",
        f"ABS(COUNT(*) * {LARGE} * {LARGE} * {LARGE})",
        f"FLOOR(COUNT(*) * {LARGE})",
    ],
)
def test_overflow_is_null(expression, ask):
    rows = ask(f"{expression} AS x, COUNT(*) AS n", "ORDER BY n")
    assert rows[-1] == (None, 30)
    assert [row[1] for row in rows] == [0, 10, 20, 30]


def test_overflow_in_order_by_is_null(ask):
    # Three wards overflow 128 bits whatever the order of multiplication: all are NULL, and the count decides.
    rows = ask("ward, COUNT(*) AS n", f"HAVING n > 0 ORDER BY n * {LARGE} * {LARGE} * {LARGE} NULLS FIRST, n DESC")
    assert [row[0] for row in rows] == ["B", "C", "A"]


@pytest.mark.parametrize("clause", ["HAVING COUNT(*) < 9999999999e300", "ORDER BY COUNT(*) + 9999999999e300", ""])
def test_a_number_beyond_a_double_is_refused_before_it_costs(clause, analyst_of):
    analyst = analyst_of(GROUPS)
    where = "" if clause else "WHERE cost < 9999999999e300"
    with pytest.raises(Refused):
        analyst.ask(f"SELECT ward, COUNT(*) AS n FROM visits {where} GROUP BY ward {clause}", epsilon=1)
    assert analyst.budget.remaining == 1000


@pytest.mark.parametrize("more", ["", ", AVG(big) AS m"])
def test_integers_beyond_64_bits_are_null_and_have_no_interval(analyst_of, more):
    # 8 rows of 2^62 are 2^65, and two are 2^63; of the third ward only the upper end of the interval is beyond.
    sums = {"A": (8, 2**65), "B": (2, -(2**63)), "C": (2, 2**63 - 2)}
    sql = f"SELECT ward, SUM(big) AS s, SUM(big) / 2 AS half, SUM(big) IS NULL AS lost{more} FROM visits GROUP BY ward"
    answer = analyst_of(sums, Ones()).ask(sql, epsilon=10)
    assert answer["s"][:3] == [None, None, 2**63 - 2] and answer["lost"] == [True, True, False, False]
    assert answer["half"][:2] == [None] * 2
    assert answer.interval("s")[:3] == [(None, None)] * 3
    assert None not in (answer["s"][3], *answer.interval("s")[3])
    assert str(answer) and answer.chart("s") and answer.to_json() and len(answer.to_pandas()) == len(answer.to_polars())


def test_averages_beyond_64_bits_are_shown_within_their_bounds(analyst_of):
    answer = analyst_of({"A": (8, 2**65), "B": (8, -(2**65))}, Ones()).ask(
        "SELECT ward, AVG(big) AS m FROM visits GROUP BY ward", epsilon=10
    )
    assert answer["m"][:2] == [2.0**62, -(2.0**62)]


@pytest.mark.slow
def test_keys_in_expressions(analyst_of):
    analyst = analyst_of({grade: (grade, 0) for grade in range(4)})
    answer = analyst.ask(
        "SELECT grade * 10 AS label, grade + COUNT(*) AS n, grade = 2 AS two FROM visits GROUP BY grade "
        "HAVING grade < 3 ORDER BY grade DESC",
        epsilon=10,
    )
    assert [tuple(row.values()) for row in answer] == [(20, 4, True), (10, 2, False), (0, 0, False)]


def test_keys_that_are_dates_and_bools(analyst_of):
    dates = analyst_of({datetime.date(2025, 1, 2): (7, 0)})
    answer = dates.ask("SELECT day, COUNT(*) AS n, day > '2025-01-01' AS late FROM visits GROUP BY day", epsilon=10)
    assert list(answer) == [
        {"day": datetime.date(2025, 1, 1), "n": 0, "late": False},
        {"day": datetime.date(2025, 1, 2), "n": 7, "late": True},
    ]
    bools = analyst_of({True: (7, 0)})
    answer = bools.ask("SELECT urgent, COUNT(*) AS n FROM visits GROUP BY urgent", epsilon=10)
    assert list(answer) == [{"urgent": False, "n": 0}, {"urgent": True, "n": 7}]


def test_chosen_rows_are_marked(analyst_of):
    analyst = analyst_of(GROUPS)
    plain = analyst.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n", epsilon=1)
    assert not any("selected" in note for note in plain.notes)
    for rest in ["ORDER BY n LIMIT 1", "HAVING COUNT(*) > 10", "ORDER BY n OFFSET 1"]:
        chosen = analyst.ask(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward {rest}", epsilon=1)
        assert any("selected by noisy values" in note for note in chosen.notes)


@pytest.mark.slow
def test_rows_that_keys_alone_choose_are_not_marked(analyst_of):
    analyst = analyst_of(GROUPS)
    for rest in [
        "HAVING ward <> 'A'",
        "LIMIT 1",
        "ORDER BY ward DESC LIMIT 2",
        "HAVING ward IN ('A', 'B') ORDER BY ward OFFSET 1",
        "ORDER BY n LIMIT 4",  # there are four wards, so all are shown
    ]:
        chosen = analyst.ask(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward {rest}", epsilon=1)
        assert not any("selected" in note for note in chosen.notes), rest
    for rest in ["HAVING ward <> 'A' OR n > 3", "ORDER BY ward, n LIMIT 1", "ORDER BY n LIMIT 4 OFFSET 1"]:
        chosen = analyst.ask(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward {rest}", epsilon=1)
        assert any("selected by noisy values" in note for note in chosen.notes), rest


def test_finishing_alone_is_free(analyst_of):
    analyst = analyst_of(GROUPS)
    analyst.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    again = analyst.ask("SELECT COUNT(*) * 2 AS m FROM visits GROUP BY ward HAVING COUNT(*) > 10 ORDER BY m", epsilon=1)
    assert again["m"] == [40, 60]
    assert again.receipt.repeat
    assert analyst.budget.remaining == 999
