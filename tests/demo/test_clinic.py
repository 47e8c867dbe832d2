"""The bundled clinic: the same table on every build, as skewed as it says, and as its policy declares."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.demo import clinic

DUCKDB_TYPES = {"int": "INTEGER", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE"}


@pytest.fixture(scope="module")
def policy_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clinic.build_clinic(tmp_path_factory.mktemp("clinic"))


@pytest.fixture(scope="module")
def policy(policy_path: Path) -> dict[str, Any]:
    return tomllib.loads(policy_path.read_text(encoding="utf-8"))


def rows(policy_path: Path, query: str) -> list[Any]:
    """What the database beside the policy answers."""
    with duckdb.connect(str(policy_path.parent / "clinic.duckdb"), read_only=True) as connection:
        return connection.execute(query).fetchall()


def kept(policy_path: Path, key: str, groups: int, rows_per_group: int) -> float:
    """The share of rows left when each patient keeps some groups, chosen by a hash, and some rows in each."""
    query = f"""
        WITH held AS (
            SELECT count(*) AS n, row_number() OVER (PARTITION BY patient_id ORDER BY hash(patient_id, {key})) AS place
            FROM visits GROUP BY patient_id, {key}
        )
        SELECT sum(least(n, {rows_per_group})) / 100000 FROM held WHERE place <= {groups}
    """
    return float(rows(policy_path, query)[0][0])


@pytest.mark.slow
def test_exact_counts(policy_path: Path) -> None:
    query = "SELECT count(*), count(DISTINCT patient_id), min(patient_id), max(patient_id) FROM visits"
    assert rows(policy_path, query) == [(100_000, 20_000, 1, 20_000)]


@pytest.mark.slow
def test_two_builds_hold_the_same_table(policy_path: Path, tmp_path: Path) -> None:
    again = clinic.build_clinic(tmp_path)
    assert rows(again, "SELECT * FROM visits") == rows(policy_path, "SELECT * FROM visits")
    assert again.read_bytes() == policy_path.read_bytes()


@pytest.mark.slow
def test_a_second_build_keeps_what_is_there(tmp_path: Path) -> None:
    policy = clinic.build_clinic(tmp_path)
    policy.write_text("edited", encoding="utf-8")
    before = (tmp_path / "clinic.duckdb").stat()
    assert clinic.build_clinic(tmp_path) == policy
    after = (tmp_path / "clinic.duckdb").stat()
    assert policy.read_text(encoding="utf-8") == "edited"
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        path.write_bytes(b"half a database")
        raise KeyboardInterrupt

    monkeypatch.setattr(clinic, "_write_database", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clinic.build_clinic(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_columns_are_what_the_policy_declares(policy_path: Path, policy: dict[str, Any]) -> None:
    found = {name: kind for name, kind, *_ in rows(policy_path, "DESCRIBE visits")}
    declared = policy["tables"]["visits"]["columns"]
    assert found == {"patient_id": "BIGINT"} | {name: DUCKDB_TYPES[column["type"]] for name, column in declared.items()}


def test_the_wards_are_public_and_each_is_there_once(policy_path: Path, policy: dict[str, Any]) -> None:
    found = rows(policy_path, "SELECT ward, beds FROM wards ORDER BY ward")
    assert [ward for ward, _ in found] == policy["tables"]["visits"]["columns"]["ward"]["values"]
    assert sum(beds for _, beds in found) == 236  # 40 + 24 + 36 + 52 + 20 + 64
    assert policy["tables"]["wards"]["public"]
    assert policy["tables"]["wards"]["columns"]["ward"]["unique"]
    types = {name: kind for name, kind, *_ in rows(policy_path, "DESCRIBE wards")}
    assert types == {"ward": "VARCHAR", "beds": "INTEGER"}


def test_every_visit_has_a_ward_of_the_list(policy_path: Path) -> None:
    query = "SELECT count(*) FROM visits JOIN wards USING (ward)"
    assert rows(policy_path, query) == [(100_000,)]


def test_the_bounds_of_dates_are_the_year(policy: dict[str, Any]) -> None:
    visited = policy["tables"]["visits"]["columns"]["visited"]
    assert (str(visited["lower"]), str(visited["upper"])) == ("2025-01-01", "2025-12-31")


def test_declared_values_are_the_values(policy_path: Path, policy: dict[str, Any]) -> None:
    columns = policy["tables"]["visits"]["columns"]
    for name in ("sex", "ward"):
        found = rows(policy_path, f"SELECT DISTINCT {name} FROM visits ORDER BY 1")
        assert [value for (value,) in found] == columns[name]["values"]
    assert "values" not in columns["diagnosis"]


@pytest.mark.slow
def test_bounds_cover_all_but_the_costliest(policy_path: Path, policy: dict[str, Any]) -> None:
    columns = policy["tables"]["visits"]["columns"]
    for name in ("age", "nights"):
        [(least, most)] = rows(policy_path, f"SELECT min({name}), max({name}) FROM visits")
        assert columns[name]["lower"] <= least <= most <= columns[name]["upper"]
    upper = columns["cost"]["upper"]
    [(least, clamped)] = rows(policy_path, f"SELECT min(cost), avg((cost > {upper})::INT) FROM visits")
    assert least >= columns["cost"]["lower"]
    assert 0.003 < clamped < 0.007


def test_costs_are_whole_cents(policy_path: Path) -> None:
    assert rows(policy_path, "SELECT count(*) FROM visits WHERE cost <> round(cost, 2)") == [(0,)]


def test_shares_of_nulls(policy_path: Path) -> None:
    # 100,000 draws at 1 % and 3 %: standard deviations of 0.03 % and 0.05 %
    [(cost, insured)] = rows(policy_path, "SELECT avg((cost IS NULL)::INT), avg((insured IS NULL)::INT) FROM visits")
    assert cost == pytest.approx(0.01, abs=0.002)
    assert insured == pytest.approx(0.03, abs=0.003)
    others = "patient_id, age, sex, ward, visited, nights, diagnosis"
    missing = " OR ".join(f"{name} IS NULL" for name in others.split(", "))
    assert rows(policy_path, f"SELECT count(*) FROM visits WHERE {missing}") == [(0,)]


def test_most_patients_come_seldom_and_a_few_all_year(policy_path: Path) -> None:
    visits = "SELECT count(*) AS n FROM visits GROUP BY patient_id"
    query = f"SELECT avg((n <= 4)::INT), count(*) FILTER (n >= 60), max(n) FROM ({visits})"
    [(seldom, often, most)] = rows(policy_path, query)
    assert seldom > 0.55
    assert 5 <= often <= 50
    assert most > 100


@pytest.mark.slow
def test_the_caps_lose_few_rows(policy_path: Path, policy: dict[str, Any]) -> None:
    table = policy["tables"]["visits"]
    caps = table["max_groups"], table["max_rows_per_group"]
    # one group, and groups by ward
    assert 0.93 < kept(policy_path, "year(visited)", *caps) < 1
    assert 0.93 < kept(policy_path, "ward", *caps) < 1


def test_wards_have_their_own_people(policy_path: Path) -> None:
    query = "SELECT ward, min(age), max(age), avg(age), avg((sex = 'F')::INT), avg(cost) FROM visits GROUP BY ward"
    wards = {ward: facts for ward, *facts in rows(policy_path, query)}
    assert wards["Pediatrics"][1] < 18
    assert (wards["Maternity"][0], wards["Maternity"][1]) == (16, 48)
    assert wards["Maternity"][3] > 0.95
    assert max(wards, key=lambda ward: wards[ward][2]) == "Oncology"
    assert max(wards, key=lambda ward: wards[ward][4]) == "Oncology"


def test_all_visits_are_in_the_year(policy_path: Path) -> None:
    query = "SELECT min(visited)::TEXT, max(visited)::TEXT, count(DISTINCT visited) FROM visits"
    assert rows(policy_path, query) == [("2025-01-01", "2025-12-31", 365)]


def test_a_few_diagnoses_make_up_most_visits(policy_path: Path) -> None:
    counts = [n for (n,) in rows(policy_path, "SELECT count(*) FROM visits GROUP BY diagnosis ORDER BY 1 DESC")]
    assert len(counts) == 42
    assert sum(counts[:6]) > 60_000
    assert counts[-1] < 300
