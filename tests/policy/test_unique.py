"""Keys of public tables: columns that no two rows share together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.policies import caps, policy_of

from tacit.curator.curator import open as open_curator
from tacit.errors import DataError, PolicyError
from tacit.policy.load import load
from tacit.policy.model import Policy

SALES = {"unit": "buyer", **caps(1, 9), "columns": {"drug": {"type": "text"}, "year": {"type": "int"}}}
COLUMNS = {"drug": {"type": "text"}, "year": {"type": "int"}, "price": {"type": "float"}}


def prices(folder: Path | None = None, **entries: Any) -> dict[str, Any]:
    return policy_of({"sales": SALES, "prices": {"public": True, "columns": COLUMNS, **entries}}, folder=folder)


def test_one_list_of_columns_or_several() -> None:
    assert loaded(["drug", "year"]) == (("drug", "year"),)
    assert loaded([["DRUG", "year"], ["year"]]) == (("drug", "year"), ("year",))


def loaded(unique: Any) -> Any:
    table = load(prices(unique=unique)).table("prices")
    assert table is not None
    return table.unique


@pytest.mark.parametrize("unique", [[], "drug", ["drug", "month"], ["drug", 3], [["drug"], []], ["drug", "price"]])
def test_what_is_no_list_of_columns_is_refused(unique: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        load(prices(unique=unique))
    assert 'unique = ["product", "year"]' in caught.value.fix


def test_a_private_table_has_no_such_key() -> None:
    with pytest.raises(PolicyError, match="public tables only"):
        load(policy_of({"sales": SALES | {"unique": ["drug"]}}))


def test_the_digest_of_a_policy_without_one_stays() -> None:
    def digest(policy: Policy) -> str:
        return policy.digest

    assert digest(load(prices())) != digest(load(prices(unique=["drug", "year"])))
    assert digest(load(prices(unique=["drug", "year"]))) != digest(load(prices(unique=["year", "drug"])))


def frames(*rows: tuple[str | None, int, float]) -> dict[str, Any]:
    with duckdb.connect(":memory:") as connection:
        values = ", ".join(str((d or "", y, p)) for d, y, p in rows)
        columns = "NULLIF(drug, '') AS drug, year, price"
        table = connection.sql(f"SELECT {columns} FROM (VALUES {values}) AS t (drug, year, price)").to_arrow_table()
        sales = connection.sql("SELECT 1 AS buyer, 'a' AS drug, 2025 AS year").to_arrow_table()
    return {"prices": table, "sales": sales}


@pytest.mark.slow
def test_that_they_are_unique_is_checked_when_the_data_is_opened(tmp_path: Path) -> None:
    policy = prices(tmp_path, unique=["drug", "year"])
    with open_curator(policy, frames(("a", 2024, 1.0), ("a", 2025, 2.0), (None, 2025, 1.0), (None, 2025, 3.0))):
        pass
    with pytest.raises(DataError, match=r"prices\.drug, year is declared unique, and two rows share their values"):
        open_curator(policy, frames(("a", 2025, 1.0), ("a", 2025, 2.0)))
