"""What a question means follows from the policy's digest, the ledger's epoch or the question: each field is in one."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.policies import policy_of

from tacit.curator.copies import locate_copy
from tacit.curator.curator import open_policy
from tacit.curator.profile import ChargedProfile
from tacit.policy.load import load
from tacit.policy.model import Column, Policy, Table, UnitForeignKey
from tacit.privacy.unit import Neighbors
from tacit.query.types import Type

COLUMN: dict[str, Any] = {
    "name": "other",
    "type": Type.FLOAT,
    "lower": Fraction(1),
    "upper": Fraction(8),
    "step": Fraction(2),
    "values": (1, 2),
    "other": 3,
    "unique": True,
    "nullable": False,
    "zone": "Europe/Zurich",
}
TABLE: dict[str, Any] = {
    "name": "stays",
    "unit": "who",
    "columns": (Column("x", Type.INT),),
    "max_groups": 2,
    "max_rows_per_group": 3,
    "people": "patients",
    "max_rows": 4,
    "unique": (("x",),),
    "auto": False,
    "auto_up_to": 5,
    "has_caps": False,
}
WAY = {"column": "other", "table": "stays", "key": "number"}
POLICY: dict[str, Any] = {"epoch": 2, "neighbors": Neighbors.REPLACE, "delta_per_question": Fraction(1, 10**9)}
ELSEWHERE = {
    "source": "the ledger remembers the data of an epoch",
    "engine": "it reads the same data, in the same types",
    "copy": "it holds what the source does",
    "books": "charges lie there",
    "budget": "it bounds sums, and changes no answer",
    "analysts": "they bound sums, and hide names",
    "today": "a question that names it holds it as a constant",
    "dialect": "a question is planned as what was read",
    "has_delta": "the noise and the loss follow from it, and are in the key",
    "lists_joined_keys": "the keys that are listed are in the plan",
    "lists_dependent_keys": "the keys that are listed are in the plan",
    "weighs_keys": "the way in which keys are selected is in the plan",
    "clips_l2": "the norm that is clipped is in the plan",
    "has_fine_grids": "the grid of floats is in the plan",
    "access": "what is hidden refuses questions, and changes none",
    "declared_tables": "they stand for the tables where some are hidden",
}


@pytest.fixture(scope="module")
def policy() -> Policy:
    visits = {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9}}}
    found = load(policy_of({"visits": visits}))
    (table,) = found.tables
    return replace(found, tables=(replace(table, auto=True, auto_up_to=4),))


def test_every_field_is_looked_at() -> None:
    assert {field.name for field in fields(Column)} == COLUMN.keys()
    assert {field.name for field in fields(Table)} == TABLE.keys()
    assert {field.name for field in fields(UnitForeignKey)} == WAY.keys()
    assert {field.name for field in fields(Policy)} - {"tables"} == POLICY.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("field", COLUMN)
def test_each_field_of_a_column_is_in_the_digest(policy: Policy, field: str) -> None:
    (table,) = policy.tables
    (column,) = table.columns
    changed = replace(table, columns=(replace(column, **{field: COLUMN[field]}),))
    assert replace(policy, tables=(changed,)).digest != policy.digest


@pytest.mark.parametrize("field", TABLE)
def test_each_field_of_a_table_is_in_the_digest(policy: Policy, field: str) -> None:
    (table,) = policy.tables
    assert replace(policy, tables=(replace(table, **{field: TABLE[field]}),)).digest != policy.digest


@pytest.mark.parametrize("field", WAY)
def test_the_way_to_a_unit_is_in_the_digest(policy: Policy, field: str) -> None:
    (table,) = policy.tables
    way = UnitForeignKey("id", "people", "id")
    ways = [replace(table, unit=each) for each in (way, replace(way, **{field: WAY[field]}))]
    assert len({replace(policy, tables=(each,)).digest for each in ways}) == 2


@pytest.mark.parametrize("field", POLICY)
def test_each_other_field_that_changes_answers_is_in_the_digest(policy: Policy, field: str) -> None:
    assert replace(policy, **{field: POLICY[field]}).digest != policy.digest


def zoned(folder: Path, zone: str) -> Policy:
    column = {"type": "timestamp", "lower": "2025-01-01T00:00:00", "upper": "2025-12-31T00:00:00", "zone": zone}
    made = policy_of(
        {"visits": {"unit": "row", "columns": {"t": column}}}, epsilon=90, own={"epsilon": 90}, folder=folder
    )
    return load(
        {**made, "data": {"source": str(folder / "visits.csv"), "copy": str(folder / "visits.copy"), "epoch": 1}}
    )


def test_a_column_whose_clock_hangs_elsewhere_is_read_again_and_asked_anew(tmp_path: Path) -> None:
    # 10:30 in UTC is 12:30 in Zurich.
    (tmp_path / "visits.csv").write_text("t\n" + "2025-06-01T10:30:00Z\n" * 3000)
    found = {}
    for zone in ("UTC", "Europe/Zurich"):
        declared = zoned(tmp_path, zone)
        copy = locate_copy(declared)
        assert copy is not None
        with open_policy(declared) as curator:
            answer = curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM visits WHERE HOUR(t) = 12", epsilon=20)
            found[zone] = (round(answer.value, -3), answer.receipt.key, copy.stamp)
    assert [count for count, _, _ in found.values()] == [0, 3000]
    assert len(set(found.values())) == 2
    assert found["UTC"][1] != found["Europe/Zurich"][1] and found["UTC"][2] != found["Europe/Zurich"][2]


def test_a_profile_of_another_zone_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").touch()
    keys = [ChargedProfile.make(zoned(tmp_path, zone), 1).key for zone in ("UTC", "Europe/Zurich", "Europe/Paris")]
    assert len(set(keys)) == 3
