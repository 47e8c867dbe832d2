"""Casts that types answer: to the type a value has, and of conditions to integers."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import MOST_PARTS, TypedScalar, bind
from tacit.plan.plan import Plan
from tacit.plan.rounding import released_integer
from tacit.query.functions import Function
from tacit.query.nodes import Call, ColumnReference, Literal, ReleasedValue, Scalar, walk
from tacit.query.types import Type

MakePlan = Callable[..., Plan]
BOOL = TypedScalar(ColumnReference("b"), Type.BOOL)


def of_bool(expression: str) -> TypedScalar:
    """An expression over a column b of bools, bound."""
    scalar = parse(f"SELECT {expression} AS x FROM t").outputs[0].scalar

    def leaf(node: Scalar) -> TypedScalar | None:
        return BOOL if isinstance(node, ColumnReference) else None

    return bind(scalar, leaf, rows=True)


@pytest.mark.parametrize(
    ("cast", "plain"),
    [
        ("SELECT AVG(age::int) FROM visits", "SELECT AVG(age) FROM visits"),
        ("SELECT AVG(CAST(age AS BIGINT)) FROM visits", "SELECT AVG(age) FROM visits"),
        ("SELECT COUNT(*)::int FROM visits", "SELECT COUNT(*) FROM visits"),
        ("SELECT COUNT(*) FROM visits WHERE visited::date > '2024-01-01'", "visited > '2024-01-01'"),
        ("SELECT COUNT(*) FROM visits WHERE TRY_CAST(ward AS VARCHAR(9)) = 'A'", "ward = 'A'"),
        ("SELECT COUNT(*) FROM visits WHERE smoker::bool", "smoker"),
        # a column that is grouped by, chosen from or joined on keeps what is declared of it
        ("SELECT ward::text, COUNT(*) FROM visits GROUP BY ward::text", "SELECT COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT ward::text, COUNT(*) FROM visits GROUP BY ward", "SELECT COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT COUNT(*) FROM visits GROUP BY ward ORDER BY ward::text", "SELECT COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT MODE(ward::text) FROM visits", "SELECT MODE(ward) FROM visits"),
        (
            "SELECT MODE(w) FROM (SELECT ward::text AS w FROM visits)",
            "SELECT MODE(w) FROM (SELECT ward AS w FROM visits)",
        ),
        (
            "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward::text",
            "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward",
        ),
        (
            "SELECT AVG(LEAST(n, 9)) FROM (SELECT COUNT(DISTINCT ward::text)::int AS n FROM visits "
            "GROUP BY patient_id, sex::text)",
            "SELECT AVG(LEAST(n, 9)) FROM (SELECT COUNT(DISTINCT ward) AS n FROM visits GROUP BY patient_id, sex)",
        ),
    ],
)
def test_a_cast_to_the_type_it_has_is_the_value_itself(cast: str, plain: str, plan: MakePlan) -> None:
    written = plain if plain.startswith("SELECT") else f"SELECT COUNT(*) FROM visits WHERE {plain}"
    assert plan(cast).key == plan(written).key


def test_one_measure_serves_a_column_with_and_without_its_cast(plan: MakePlan) -> None:
    both = plan("SELECT AVG(age::int) AS a, AVG(age) AS b FROM visits HAVING AVG(age::bigint) > 3")
    assert both.key == plan("SELECT AVG(age) FROM visits").key


def test_a_column_that_is_cast_keeps_its_name(plan: MakePlan) -> None:
    named = plan("SELECT ward::text, smoker::int, COUNT(*) FROM visits GROUP BY 1, 2")
    assert [result.name for result in named.recipe.results] == ["ward", "smoker", "count"]


def test_the_name_of_an_output_is_cast_as_what_it_stands_for(plan: MakePlan) -> None:
    # age is an integer as a column, and a mean in the answer, which is rounded
    (order,) = plan("SELECT ward, AVG(cost) AS age FROM visits GROUP BY ward ORDER BY age::int").recipe.order
    assert order.scalar == released_integer(Call(Function.ROUND, (ReleasedValue(0),))).scalar


def test_a_bool_as_an_integer_has_the_value_that_duckdb_gives_it() -> None:
    bound = of_bool("b::int")
    assert (bound.type, bound.lower, bound.upper, bound.step, bound.nullable) == (Type.INT, 0, 1, 1, True)
    for value, written in ((True, "TRUE"), (False, "FALSE"), (None, "NULL::BOOLEAN")):
        ((expected,),) = duckdb.sql(f"SELECT CAST({written} AS INTEGER)").fetchall()
        assert evaluate(bound.scalar, {"b": value}) == expected


def test_the_keys_of_a_bool_as_an_integer_are_0_and_1(plan: MakePlan) -> None:
    keys = plan("SELECT smoker::int, COUNT(*) FROM visits GROUP BY 1").recipe.keys
    assert [key.values for key in keys] == [(0, 1)]
    assert plan("SELECT SUM(smoker::int) FROM visits").epsilon_delta == (0.5, 0)


def test_what_a_cast_copies_is_counted() -> None:
    # a bool that is cast stands in two branches, so n of them within each other are 2^n copies
    def nested(times: int) -> str:
        text = "b"
        for _ in range(times):
            text = f"COALESCE(IF({text}::int = 1, TRUE, FALSE), TRUE)"
        return f"{text}::int"

    assert of_bool(nested(5)).weight <= MOST_PARTS
    with pytest.raises(Refused) as caught:
        of_bool(nested(20))
    assert caught.value.code is ErrorCode.TOO_LARGE


def test_no_engine_sees_a_cast(plan: MakePlan) -> None:
    made = plan(
        "SELECT sex::text, AVG(smoker::int), SUM(age::int) FROM visits "
        "WHERE smoker::int = 1 AND ward::text = 'A' AND (age > 3)::int = 1 GROUP BY sex::text"
    )
    assert "cast" not in repr(made.exact).lower()
    assert of_bool("CAST(NULL AS INTEGER)").type is None
    assert not any(isinstance(node, Literal) and node.value == "int" for node in walk(of_bool("b::int").scalar))
