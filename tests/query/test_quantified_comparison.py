"""Comparisons with ANY and ALL of a list are those with IN, or with each item."""

from __future__ import annotations

import duckdb
import pytest

from tacit.aggregates.registry import read_question
from tacit.errors import Refused
from tacit.query.refusals import MAX_ITEMS

COUNT = "SELECT COUNT(*) FROM visits WHERE "


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("ward = ANY (ARRAY['A', 'B'])", "ward IN ('A', 'B')"),
        ("ward = SOME (ARRAY['A'])", "ward IN ('A')"),
        ("ward = ANY ((ARRAY['A', 'B']))", "ward IN ('A', 'B')"),
        ("ward <> ALL (ARRAY['A', 'B'])", "ward NOT IN ('A', 'B')"),
        ("ward != ALL (ARRAY['A', 'B']) AND age > 3", "ward NOT IN ('A', 'B') AND age > 3"),
        ("age + 1 = ANY (ARRAY[1, age, 2])", "age + 1 IN (1, age, 2)"),
        ("age < ANY (ARRAY[1, 2])", "age < 1 OR age < 2"),
        ("age >= ALL (ARRAY[1, 2])", "age >= 1 AND age >= 2"),
        ("age = ANY (ARRAY[])", "FALSE"),
        ("age <> ALL (ARRAY[])", "TRUE"),
        ("ward = ANY (SELECT ward FROM wards)", "ward IN (SELECT ward FROM wards)"),
        ("ward <> ALL (SELECT ward FROM wards)", "ward NOT IN (SELECT ward FROM wards)"),
    ],
)
def test_it_is_the_same_question(written: str, plain: str) -> None:
    assert read_question(COUNT + written) == read_question(COUNT + plain)


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("quantifier", ["ANY", "ALL"])
def test_what_it_is_read_as_holds_for_the_same_values_in_a_database(operator: str, quantifier: str) -> None:
    for items in ("1, 3", "2"):
        plain = {
            "=": {"ANY": f"x IN ({items})"},
            "<>": {"ALL": f"x NOT IN ({items})"},
        }.get(operator, {}).get(quantifier)
        joined = {"ANY": " OR ", "ALL": " AND "}[quantifier].join(f"x {operator} {item}" for item in items.split(", "))
        of_list = f"x {operator} {quantifier} (SELECT unnest([{items}]))"
        rows = duckdb.sql(f"SELECT ({of_list}) IS DISTINCT FROM ({plain or joined}) FROM range(5) AS r(x)").fetchall()
        assert rows == [(False,)] * 5


@pytest.mark.parametrize("written", ["age = ANY (3)", "age = ANY ('{1}')", "age < ANY (SELECT age FROM visits)"])
def test_what_is_no_list_is_refused_with_a_fix(written: str) -> None:
    with pytest.raises(Refused) as refused:
        read_question(COUNT + written)
    assert refused.value.code == "unsupported" and refused.value.fix and refused.value.at is not None


@pytest.mark.slow
def test_a_long_list_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        read_question(COUNT + f"age = ANY (ARRAY[{', '.join(['1'] * (MAX_ITEMS + 1))}])")
    assert refused.value.code == "too-large"
