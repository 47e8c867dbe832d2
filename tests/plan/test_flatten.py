"""A query around a query is one question."""

from __future__ import annotations

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import Refused
from tacit.plan.flatten import flatten_query

INNER = "(SELECT ward, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY ward) AS t"


@pytest.mark.parametrize(
    ("around", "plain"),
    [
        (f"SELECT * FROM {INNER}", "SELECT ward, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY ward"),
        (f"SELECT n FROM {INNER} WHERE n > 10", "SELECT COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 10"),
        (
            f"SELECT ward, n * 2 AS d FROM {INNER} ORDER BY d DESC LIMIT 3",
            "SELECT ward, COUNT(*) * 2 AS d FROM visits GROUP BY ward ORDER BY d DESC LIMIT 3",
        ),
        (
            f"SELECT t.ward FROM {INNER} ORDER BY t.m",
            "SELECT ward FROM visits GROUP BY ward ORDER BY AVG(cost)",
        ),
        (
            f"SELECT * FROM (SELECT ward, n FROM {INNER} WHERE n > 1) AS u WHERE u.n < 9",
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 1 AND COUNT(*) < 9",
        ),
    ],
)
def test_what_stands_around_is_finishing(around, plain):
    assert flatten_query(parse(around)) == parse(plain)


def test_rows_and_units_are_left_to_the_scope():
    for text in (
        "SELECT COUNT(*) FROM (SELECT age FROM visits)",
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
    ):
        assert flatten_query(parse(text)) == parse(text)


def test_a_name_that_the_inner_query_does_not_have():
    with pytest.raises(Refused, match="t has no column age"):
        flatten_query(parse(f"SELECT age FROM {INNER}"))


def test_a_limit_inside_that_is_filtered_again_stays_a_query_of_its_own():
    text = "SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 3) AS t WHERE n > 1"
    assert flatten_query(parse(text)) == parse(text)
