"""A question may name its dialect, whoever asks it and from where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.curator.curator import Curator
from tacit.errors import ParameterError
from tacit.plan.question import Question

SQL = "SELECT SUM(x / 2) AS s FROM t"
ROWS = 200


@pytest.fixture
def curator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Curator]:
    policy: dict[str, Any] = {
        "privacy": {"epsilon": 1000},
        "tables": {"t": {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9, "nullable": False}}}},
        "ledger": {"store": str(tmp_path / "t.ledger")},
        "analysts": {"ada": {"epsilon": 1000}},
    }
    declared = getattr(request, "param", None)
    if declared is not None:
        policy["data"] = {"dialect": declared}
    with tacit.open(policy, data={"t": pa.table({"x": [3] * ROWS})}) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curator", "dialect", "each"),
    [
        (None, None, 1),
        (None, "postgres", 1),
        (None, "duckdb", 1.5),
        (None, "snowflake", 1.5),
        ("bigquery", None, 1.5),
        ("bigquery", "postgres", 1),
    ],
    indirect=["curator"],
)
def test_a_quotient_is_that_of_the_dialect(curator: Curator, dialect: str | None, each: float) -> None:
    ada = curator.analyst("ada")
    # noise of scale 4.5 / 100 at most: it is off by 2 with a probability below exp(-44)
    answer = ada.ask(SQL, epsilon=100, dialect=dialect)
    assert float(answer.value) == pytest.approx(each * ROWS, abs=2)
    assert ada.explain(SQL, epsilon=100, dialect=dialect).to_dict()["notes"] == list(answer.notes)


def test_texts_in_two_dialects_are_two_questions_and_a_repeat_is_free(curator: Curator) -> None:
    ada = curator.analyst("ada")
    assert not ada.ask(SQL, epsilon=1).receipt.repeat
    assert not ada.ask(SQL, epsilon=1, dialect="duckdb").receipt.repeat
    assert ada.ask(SQL, epsilon=1, dialect="postgres").receipt.repeat
    assert ada.ask(SQL, epsilon=1, dialect="bigquery").receipt.repeat  # it means what DuckDB's does


def test_an_ibis_expression_divides_as_ibis_does(curator: Curator) -> None:
    pytest.importorskip("ibis", reason="an extra")
    ada = curator.analyst("ada")
    t = ada.table("t")
    assert float(ada.ask(t.agg(s=(t.x / 2).sum()), epsilon=100).value) == pytest.approx(1.5 * ROWS, abs=2)


@pytest.mark.parametrize("dialect", ["tsql", "", "POSTGRES", 3])
def test_a_dialect_that_is_not_known_is_an_error_at_no_cost(curator: Curator, dialect: Any) -> None:
    ada = curator.analyst("ada")
    with pytest.raises(ParameterError) as error:
        ada.ask(SQL, epsilon=1, dialect=dialect)
    assert "postgres, duckdb, bigquery, snowflake" in str(error.value)
    assert "has spent epsilon 0 of" in str(ada.budget)


def test_the_dialect_is_part_of_what_a_plan_depends_on() -> None:
    assert Question(SQL, epsilon=1).key != Question(SQL, epsilon=1, dialect="duckdb").key
