"""Files as owners bring them: three decisions lead to a private answer, and no check fails on the way."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
_TOOL = Path(__file__).parents[2] / "tools" / "journeys.py"


def load_journeys():
    spec = importlib.util.spec_from_file_location("journeys", _TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["journeys"] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    return module


JOURNEYS = load_journeys()


@pytest.mark.parametrize("name", JOURNEYS.FILES)
def test_three_decisions_lead_to_a_private_answer(tacit, tmp_path, name):
    write, person, column = JOURNEYS.FILES[name]
    write(tmp_path / name)
    made = tacit("init", name, "--unit", person, "--epsilon", "2", "--analyst", "ada", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    checked = tacit("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "the data is as declared" in checked.stdout
    assert len(checked.stdout.splitlines()) < 15  # sixty questions have one remark
    sql = f'SELECT "{column}", COUNT(*) AS n FROM "{Path(name).stem}" GROUP BY "{column}"'
    asked = tacit("ask", "--as", "ada", "--epsilon", "0.5", "--json", sql, cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    assert len(json.loads(asked.stdout)["rows"]) > 1


@pytest.mark.parametrize("name", ["umsatz.csv", "trips.csv", "orders.csv", "visits.csv"])
def test_the_person_is_proposed(tacit, tmp_path, name):
    write, person, _ = JOURNEYS.FILES[name]
    write(tmp_path / name)
    assert f"{person.strip()} seems to say whose row it is" in " ".join(
        tacit("init", name, cwd=tmp_path).stdout.split()
    )


def test_a_wide_table_is_not_asked_about_column_by_column(tacit, tmp_path):
    # Enter for the person, the bounds of 61 numbers, the budget and the analyst
    JOURNEYS.FILES["survey.csv"][0](tmp_path / "survey.csv")
    made = tacit("init", "survey.csv", "--guided", cwd=tmp_path, stdin="\n\n\n\n")
    assert made.returncode == 0, made.stderr
    assert 'unit = "row"' in (tmp_path / "tacit.toml").read_text()


def test_two_columns_with_one_name_are_told_by_their_numbers(tacit, tmp_path):
    (tmp_path / "t.csv").write_text("id,Ward,ward\n1,a,b\n")
    made = tacit("init", "t.csv", cwd=tmp_path)
    assert made.returncode != 0
    assert "columns 2 and 3 of t.csv have the same name" in made.stderr
    assert "fix: give one of them another name in the first line of t.csv" in made.stderr
