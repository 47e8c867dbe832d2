"""`tacit profile`: from a draft without bounds to a policy with them, for one charge."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DRAFT = """\
[data]
source = "visits.parquet"
[privacy]
epsilon = 2
delta = 1e-6
[tables.visits]
unit = "who"
max_rows = "auto"
[tables.visits.columns]
cost = { type = "float", lower = "?", upper = "?" }
ward = { type = "text" }
[analysts.ada]
epsilon = 1
delta = 1e-7
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def clinic(tmp_path):
    rng = np.random.default_rng(7)
    count = 8000
    columns = {
        "who": np.arange(count) // 2,
        "cost": rng.uniform(100, 900, count),
        "ward": rng.choice(["A", "B"], count),
    }
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    (tmp_path / "tacit.toml").write_text(DRAFT)
    return tmp_path


def test_what_would_be_released_costs_nothing(tacit, clinic):
    shown = tacit("profile", "--epsilon", "0.1", "--explain", cwd=clinic)
    assert shown.returncode == 0
    # two columns and the rows of each unit share 0.1: the noise has scale 3/0.1
    assert "3 histograms" in shown.stdout and "of scale 30 " in shown.stdout
    assert (
        json.loads(tacit("profile", "--epsilon", "0.1", "--explain", "--json", cwd=clinic).stdout)["noise_scale"] == 30
    )
    assert not (clinic / "tacit.ledger").exists()


def test_from_a_draft_to_a_policy(tacit, clinic):
    assert tacit("check", cwd=clinic).returncode == 4
    shown = tacit("profile", "--epsilon", "1", cwd=clinic)
    assert shown.returncode == 0, shown.stderr
    assert "epsilon 1, delta 1e-09 · (owner) has 1 of 2 left" in shown.stdout
    found = json.loads(tacit("profile", "--epsilon", "1", "--json", cwd=clinic).stdout)
    assert found["receipt"]["repeat"] is True
    assert found["epoch"] == 1 and set(found["tables"]["visits"]["columns"]) == {"cost", "ward"}
    lines = {each["line"] for each in found["proposals"]}
    # Costs are from 100 to 900, with hundreds of units in each bin; an empty bin beyond is shown with probability 1%.
    proposed = tomllib.loads(next(line for line in lines if line.startswith("cost = ")))["cost"]
    assert proposed["type"] == "float" and proposed["lower"] <= 100 and proposed["upper"] >= 900
    assert all(line in shown.stdout for line in lines)
    text = DRAFT
    for line in lines:
        name = line.split(" = ")[0]
        old = next(each for each in DRAFT.splitlines() if each.startswith(f"{name} = "))
        text = text.replace(old, line)
    (clinic / "tacit.toml").write_text(text)
    assert tacit("check", cwd=clinic).returncode == 0
    schema = json.loads(tacit("schema", "--json", cwd=clinic).stdout)
    assert schema["profile"]["tables"] == found["tables"]
    assert "released with epsilon 1 and delta" in tacit("schema", cwd=clinic).stdout
    asked = tacit("ask", "--as", "ada", "SELECT AVG(cost) AS c FROM visits", "--epsilon", "0.5", cwd=clinic)
    assert asked.returncode == 0, asked.stderr
    budget = json.loads(tacit("budget", "--json", cwd=clinic).stdout)
    assert budget["analysts"]["(owner)"]["spent"] == "1" and budget["overall"]["spent"] == "1.5"
    assert "all in order" in tacit("ledger", "verify", cwd=clinic).stdout


def test_errors_have_codes_and_cost_nothing(tacit, clinic):
    for arguments, code, said in (
        (("--epsilon", "3"), 3, "refused [budget]"),
        (("--epsilon", "0"), 2, "epsilon"),
        (("--epsilon", "1", "--table", "wards"), 2, "there is no table wards"),
        ((), 2, "--epsilon"),
    ):
        shown = tacit("profile", *arguments, cwd=clinic)
        assert (shown.returncode, said in shown.stderr) == (code, True), shown.stderr
    assert tacit("profile", "--epsilon", "2", cwd=clinic).returncode == 0  # all of the budget is there


def test_an_analyst_cannot_be_called_as_the_owner_is(tacit, clinic):
    named = DRAFT.replace("[analysts.ada]", '[analysts."(owner)"]')
    (clinic / "tacit.toml").write_text(named.replace(', lower = "?", upper = "?"', ""))
    shown = tacit("check", cwd=clinic)
    assert shown.returncode == 4 and "one of Tacit's own" in shown.stderr
