"""The command as a person uses it: real processes, real files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tacit import __version__
from tacit.cli import ledger
from tacit.cli.main import app
from tacit.demo.clinic import build

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    return build(tmp_path_factory.mktemp("clinic"))


def tacit(*arguments, cwd=None, stdin="", **environment):
    return subprocess.run(
        [sys.executable, "-m", "tacit.cli.main", *map(str, arguments)],
        check=False,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "100", **environment},
    )


def test_a_question_is_answered_and_its_repeat_is_free(clinic):
    first = tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--json")
    assert first.returncode == 0, first.stderr
    answer = json.loads(first.stdout)
    assert [row["ward"] for row in answer["rows"]][:2] == ["Cardiology", "Emergency"]
    assert answer["receipt"]["charged_epsilon"] == "0.25"
    again = json.loads(tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--json").stdout)
    assert again["rows"] == answer["rows"]
    assert again["receipt"]["charged_epsilon"] == "0"
    budget = json.loads(tacit("budget", "-p", clinic, "--as", "ada", "--json").stdout)
    assert budget["own"] == {"spent": "0.25", "cap": "2", "remaining": "1.75"}


def test_the_chart_and_the_table_are_printed(clinic):
    shown = tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--chart")
    assert "●" in shown.stdout
    assert "95% interval" in shown.stdout
    assert "Oncology" in shown.stdout


def test_a_question_may_come_from_standard_input(clinic):
    shown = tacit("explain", "-p", clinic, "--as", "ada", "-", "--epsilon", "1", stdin=COUNT)
    assert "costs epsilon 1" in shown.stdout
    assert "scale 24" in shown.stdout  # 2 groups of 12 rows: 24 / 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ask", "--as", "ada", "SELECT age FROM visits", "--epsilon", "0.1"], 3, "raw-column"),
        (["ask", "--as", "nobody", COUNT, "--epsilon", "0.1"], 3, "unknown-analyst"),
        (["explain", "--as", "nobody", COUNT, "--epsilon", "0.1"], 3, "unknown-analyst"),
        (["budget", "--as", "nobody"], 3, "unknown-analyst"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0"], 2, "epsilon: must be between"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "nan"], 2, "epsilon: needs a finite number"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "1e308"], 2, "epsilon: must be between"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "much"], 2, "--epsilon"),
        (["ask", "--as", "ada", COUNT], 2, "--epsilon"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0.1", "--confidence", "1"], 2, "confidence"),
    ],
)
def test_what_goes_wrong_has_a_message_and_an_exit_code(clinic, arguments, code, said):
    shown = tacit(*arguments, "-p", clinic)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert said in re.sub(r"\s+", " ", shown.stderr)
    assert "Traceback" not in shown.stderr


def test_policy_data_and_ledger_have_exit_codes_of_their_own(tmp_path):
    policy = build(tmp_path)
    text = policy.read_text()
    missing = tacit("check", cwd=tmp_path)
    assert (missing.returncode, "tacit init" in missing.stderr) == (4, True)
    policy.write_text(text.replace("epsilon = 5.0", "epsilon = -5.0"))
    wrong = tacit("check", "-p", policy)
    assert wrong.returncode == 4
    assert "clinic.toml, line" in wrong.stderr
    policy.write_text(text.replace("clinic.duckdb", "elsewhere.duckdb"))
    assert tacit("check", "-p", policy).returncode == 5
    policy.write_text(text)
    (tmp_path / "clinic.ledger").write_text("this is no ledger, and longer than a header of SQLite would be. " * 20)
    assert tacit("budget", "-p", policy, "--as", "ada").returncode == 6


def test_errors_are_json_where_json_was_asked_for(clinic):
    shown = tacit("ask", "--as", "ada", "SELECT age FROM visits", "--epsilon", "0.1", "-p", clinic, "--json")
    error = json.loads(shown.stdout)["error"]
    assert (shown.returncode, error["code"], error["at"]["column"]) == (3, "raw-column", 8)


def test_init_writes_a_policy_that_check_takes_once_it_is_filled_in(tmp_path):
    build(tmp_path)
    made = tacit("init", "clinic.duckdb", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    policy = tmp_path / "tacit.toml"
    unfilled = tacit("check", cwd=tmp_path)
    assert (unfilled.returncode, "fill in" in unfilled.stderr) == (4, True)
    text = policy.read_text().replace('unit = "?"', 'unit = "patient_id"\nmax_groups = 1\nmax_rows_per_group = 1')
    policy.write_text(text.replace('lower = "?"', "lower = 0").replace('upper = "?"', "upper = 1000"))
    checked = tacit("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "the data is as declared" in checked.stdout
    assert tacit("init", "clinic.duckdb", cwd=tmp_path).returncode == 2  # it never overwrites


def test_the_demo_runs_to_its_end(tmp_path):
    shown = tacit("demo", "--keep", tmp_path / "kept")
    assert shown.returncode == 0, shown.stderr
    for said in ("95% interval", "a repeat, free", "refused [private-key]", "refused [budget]", "all in order"):
        assert said in shown.stdout
    assert tacit("demo", "--keep", tmp_path / "kept").returncode == 2  # that budget is spent


def test_the_owner_sees_the_cause_of_a_failure_and_the_analyst_does_not(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "tacit.toml").write_text(
        '[data]\nsource = "t.parquet"\n[privacy]\nepsilon = 1\n[tables.t]\nunit = "row"\n'
        '[tables.t.columns]\nx = { type = "int", lower = 0, upper = 3 }\n[analysts.ada]\nepsilon = 1\n'
    )
    whole = (tmp_path / "t.parquet").read_bytes()
    # The footer, with names and types, stays; the rows are overwritten, so opening works and reading does not.
    (tmp_path / "t.parquet").write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    question = ("ask", "--as", "ada", "SELECT SUM(x) FROM t", "--epsilon", "0.5")
    shown = tacit(*question, cwd=tmp_path, TACIT_LOG=str(tmp_path / "log"))
    assert shown.returncode == 1
    assert "the engine did not finish" in shown.stderr
    assert "parquet" not in shown.stderr.lower()
    assert "entry 2 failed" in (tmp_path / "log").read_text()
    assert "spent epsilon 0.5 of 1" in tacit("budget", "--as", "ada", cwd=tmp_path).stdout


def test_the_owner_verifies_the_ledger_and_reads_it(tmp_path):
    policy = build(tmp_path)
    tacit("ask", "-p", policy, "--as", "ada", COUNT, "--epsilon", "0.25")
    tacit("ask", "-p", policy, "--as", "ada", COUNT, "--epsilon", "0.25")
    verified = tacit("ledger", "verify", "-p", policy)
    assert (verified.returncode, "4 entries, all in order" in verified.stdout) == (0, True), verified.stderr
    shown = json.loads(tacit("ledger", "history", "-p", policy, "--json").stdout)
    assert [(row["kind"], row["epsilon"]) for row in shown] == [
        ("open", "0"),
        ("reserve", "0.25"),
        ("commit", "0"),
        ("repeat", "0"),
    ]
    assert "repeat" in tacit("ledger", "history", "-p", policy, "--last", "1").stdout
    with apsw.Connection(str(tmp_path / "clinic.ledger")) as connection:
        connection.execute("DROP TRIGGER IF EXISTS " + _first_trigger(connection))
    damaged = tacit("ledger", "verify", "-p", policy)
    assert (damaged.returncode, "NOT in order" in damaged.stdout) == (6, True)
    assert tacit("budget", "-p", policy, "--as", "ada").returncode == 6


def _first_trigger(connection):
    return connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()[0][0]


def test_version_and_help():
    assert tacit("--version").stdout == f"tacit {__version__}\n"
    assert "Exit codes: 0 answered" in re.sub(r"\s+", " ", tacit("--help").stdout)


def test_every_command_and_exit_code_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`tacit {command.callback.__name__}" in text
    for command in ledger.app.registered_commands:
        assert f"`tacit ledger {command.callback.__name__}`" in text
    for code in range(7):
        assert f"| {code} |" in text
