"""What a copy must hold against: keys of more than 64 bits, long texts, names in another case, and its own names."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.support.counts import some
from tests.support.policies import policy_of

import tacit
from tacit.aggregates.registry import read_question
from tacit.curator.resources import open_engine
from tacit.errors import ErrorCode, PolicyError, Refused
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load

NAMES = ["unit", "rowid", "first", "rows", "copy", "c0", "x0", "ROWID"]
MANY = {"max_groups": 100, "max_rows_per_group": 100}


def compute(tables: dict[str, Any], data: dict[str, pa.Table], question: str) -> dict[Any, Any]:
    """The exact result of a question."""
    (found,) = compute_each(tables, data, [question])
    return found


def compute_each(tables: dict[str, Any], data: dict[str, pa.Table], questions: list[str]) -> list[dict[Any, Any]]:
    """The exact results of questions over one copy."""
    policy = load(policy_of(tables, analysts=["ada"]))
    engine = open_engine(policy, data)
    try:
        return [dict(engine.run(plan_for(read_question(text), policy, 1).exact)) for text in questions]
    finally:
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["POWER(x, 10)", "POWER(CASE WHEN x > 5 THEN x ELSE 0 END, 9)"])
def test_a_key_that_may_have_more_than_64_bits_is_refused_before_anything_is_charged(key, tmp_path):
    columns = {"x": {"type": "int", "lower": 0, "upper": 100_000}}
    policy = policy_of({"t": {"unit": "who", **MANY, "columns": columns}}, analysts=["ada"])
    policy["ledger"] = {"store": str(tmp_path / "t.ledger")}
    with tacit.open(policy, data={"t": pa.table({"who": [1, 2], "x": [1, 100_000]})}) as curator:
        ada = curator.analyst("ada")
        with pytest.raises(Refused) as caught:
            ada.ask(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=0.1)
        assert caught.value.code == ErrorCode.OVERFLOW and caught.value.fix
        assert len(list(curator.ledger.entries())) == 1


def test_a_text_of_a_question_has_an_end():
    columns = {"x": {"type": "text"}}
    data = {"t": pa.table({"who": [1, 2], "x": ["a", "b"]})}
    tables = {"t": {"unit": "who", **MANY, "columns": columns}}
    assert compute(tables, data, f"SELECT COUNT(DISTINCT x || '{'a' * 250}') FROM t") == {(): (2,)}
    with pytest.raises(Refused) as caught:
        compute(tables, data, f"SELECT COUNT(DISTINCT x || '{'a' * 251}') FROM t")
    assert caught.value.code == ErrorCode.TOO_LARGE


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["who", "WHO", "Who"])
def test_a_unit_in_another_case_is_the_declared_column(unit):
    """Eight people, whom a clamp to 0..1 would make two."""
    columns = {"who": {"type": "int", "lower": 0, "upper": 1}, "x": {"type": "int", "lower": 0, "upper": 9}}
    tables = {"t": {"unit": unit, "max_groups": 1, "max_rows_per_group": 1, "columns": columns}}
    data = {"t": pa.table({"who": range(8), "x": [5] * 8})}
    assert compute(tables, data, "SELECT COUNT(*), SUM(x) FROM t") == {(): (8, 40)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "role"), some(product(NAMES, ("column", "unit", "both")), 4))
def test_columns_may_have_names_that_a_copy_uses(name, role, monkeypatch):
    from tacit.engines import ingest

    count = 50
    rows = {"who": [n // 5 for n in range(count)], "x": list(range(count)), "s": ["a", "b"] * (count // 2)}
    if role == "column":
        rows[name] = rows.pop("x")
    else:
        rows[name] = rows.pop("who")
    unit = "who" if role == "column" else name
    number = name if role == "column" else "x"
    columns: dict[str, Any] = {number: {"type": "int", "lower": 0, "upper": 99}, "s": {"type": "text", "values": ["a"]}}
    if role == "both":
        columns[name] = {"type": "int"}
    tables = {"t": {"unit": unit, **MANY, "columns": columns}}
    asked = [
        f'SELECT COUNT(*), SUM("{number}") FROM t',
        f'SELECT s, SUM("{number}") FROM t WHERE "{number}" > 4 GROUP BY s',
    ]
    for ready in (0, 10**9):
        monkeypatch.setattr(ingest, "_READY", ready)
        whole, grouped = compute_each(tables, {"t": pa.table(rows)}, asked)
        assert whole == {(): (count, sum(range(count)))}
        assert grouped == {("a",): (sum(range(6, count, 2)),)}


def test_a_name_of_a_copys_own_is_refused():
    with pytest.raises(PolicyError, match="begins with #"):
        load(policy_of({"t": {"unit": "who", **MANY, "columns": {"#row": {"type": "int"}}}}, analysts=["ada"]))
