"""The command as a person uses it, on real files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.counts import FULL

from tacit import __version__
from tacit.cli import ledger
from tacit.cli.main import app
from tacit.demo.clinic import build_clinic

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """The bundled clinic, to copy."""
    return build_clinic(tmp_path_factory.mktemp("clinic")).parent


@pytest.fixture(scope="module")
def clinic(untouched, tmp_path_factory):
    return shutil.copytree(untouched, tmp_path_factory.mktemp("copied") / "clinic") / "clinic.toml"


@pytest.mark.slow
def test_a_question_is_answered_and_its_repeat_is_free(tacit, process, clinic):
    first = process("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--json")
    assert first.returncode == 0, first.stderr
    answer = json.loads(first.stdout)
    assert [row["ward"] for row in answer["rows"]][:2] == ["Cardiology", "Emergency"]
    assert answer["receipt"]["charged_epsilon"] == "0.25"
    again = json.loads(tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--json").stdout)
    assert again["rows"] == answer["rows"]
    assert again["receipt"]["charged_epsilon"] == "0"
    budget = json.loads(tacit("budget", "-p", clinic, "--as", "ada", "--json").stdout)
    # half of ada's delta of 1e-7 is what questions may add up to
    delta = {"spent": "0", "cap": "5e-8", "remaining": "5e-8"}
    assert budget["own"] == {"spent": "0.25", "cap": "2", "remaining": "1.75", "delta": delta}


@pytest.mark.slow
def test_the_chart_and_the_table_are_printed(tacit, clinic):
    shown = tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--chart")
    assert "●" in shown.stdout
    assert "95% interval" in shown.stdout
    assert "Oncology" in shown.stdout


@pytest.mark.slow
def test_explain_says_what_would_be_refused(tacit, folder):
    question = ("-p", folder / "t.toml", "--as", "ada", "SELECT COUNT(*) AS n FROM t", "--epsilon")
    # ada's cap is 1; of a ledger that is not there yet nothing is spent
    assert json.loads(tacit("explain", *question, "1", "--json").stdout)["refused"] is None
    assert "asking it would be refused now: it costs epsilon 3" in tacit("explain", *question, "3").stdout
    tacit("ask", *question, "0.25")
    refused = json.loads(tacit("explain", *question, "1", "--json").stdout)["refused"]
    assert refused["code"] == "budget" and "0.75 left of 1" in refused["what"]
    assert refused["fix"] == "ask for at most epsilon=0.75"
    assert json.loads(tacit("explain", *question, "0.75", "--json").stdout)["refused"] is None
    assert tacit("ask", *question, "1").returncode == 3


@pytest.mark.slow
def test_an_accuracy_is_a_price(tacit, clinic):
    question = ("-p", clinic, "--as", "ada", "SELECT COUNT(*) AS n FROM visits", "--within", "n=1000", "--json")
    told = json.loads(tacit("explain", *question).stdout)
    assert told["columns"][0]["error"] <= 1000
    # 12 rows a patient: P(|noise| <= 1000) is 0.95 at scale 1000 / ln 20 = 334, so epsilon 12 / 334 = 0.036
    assert told["epsilon"] == pytest.approx(0.036, abs=0.001)
    answer = json.loads(tacit("ask", *question).stdout)
    assert float(answer["receipt"]["charged_epsilon"]) == pytest.approx(told["epsilon"])
    shown = answer["rows"][0]["n"]
    assert shown["high"] - shown["value"] <= 1000


@pytest.mark.slow
def test_a_picture_is_saved_and_the_answer_is_printed(tacit, clinic, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "wards.svg"
    shown = tacit("ask", "-p", clinic, "--as", "ada", COUNT, "--epsilon", "0.25", "--plot", picture)
    assert shown.returncode == 0, shown.stderr
    assert "Oncology" in shown.stdout
    assert "<svg" in picture.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("way", [["--chart"], ["--plot", "age.svg"]], ids=["chart", "plot"])
def test_an_answer_with_nothing_to_draw_is_printed_all_the_same(tacit, clinic, tmp_path, way):
    sql = "SELECT MEDIAN(age) AS age FROM visits"  # it has a rank, and no interval
    shown = tacit("ask", "-p", clinic, "--as", "ben", sql, "--epsilon", "0.1", *way, cwd=tmp_path)
    assert shown.returncode == 2
    assert "entry" in shown.stdout
    assert "to draw" in shown.stderr


def test_a_schema_for_editors(tacit, tmp_path):
    shown = tacit("check", "--schema", cwd=tmp_path)  # there is no policy here
    assert shown.returncode == 0, shown.stderr
    assert set(json.loads(shown.stdout)["properties"]) == {"data", "ledger", "privacy", "tables", "analysts"}


def test_check_says_that_what_is_declared_unique_is_not(tacit, folder):
    policy = folder / "t.toml"
    for name, values in (("t", [1, 2, 3]), ("wards", [1, 1])):
        pq.write_table(pa.table({"x": values}), folder / f"{name}.parquet")
    wards = '[tables.wards]\npublic = true\ncolumns.x = { type = "int", unique = true }\n'
    policy.write_text(policy.read_text().replace('"t.parquet"', '"."') + wards)
    checked = tacit("check", "-p", policy)
    assert checked.returncode == 5
    assert "wards.x is declared unique, and two rows share a value" in checked.stderr


@pytest.mark.slow
def test_a_question_may_come_from_standard_input(tacit, clinic):
    shown = tacit("explain", "-p", clinic, "--as", "ada", "-", "--epsilon", "1", stdin=COUNT)
    assert "costs epsilon 1" in shown.stdout
    assert "scale 24" in shown.stdout  # 2 groups of 12 rows: 24 / 1


ALIKE = [  # to others of the same check
    (["explain", "--as", "nobody", COUNT, "--epsilon", "0.1"], 3, "unknown-analyst"),
    (["ask", "--as", "ada", COUNT, "--epsilon", "1e308"], 2, "epsilon: must be between"),
    (["explain", "--as", "ada", COUNT], 2, "give either --epsilon or --within"),
    (["ask", "--as", "ada", COUNT, "--within", "=5"], 2, "'=5' is no COLUMN=WIDTH"),
    (["ask", "--as", "ada", COUNT, "--within", "n=much"], 2, "'n=much' is no COLUMN=WIDTH"),
    (["ask", "--as", "ada", COUNT, "--within", "n=inf"], 2, "within: needs a finite number"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ask", "--as", "ada", "SELECT age FROM visits", "--epsilon", "0.1"], 3, "raw-column"),
        (["ask", "--as", "nobody", COUNT, "--epsilon", "0.1"], 3, "unknown-analyst"),
        (["budget", "--as", "nobody"], 3, "unknown-analyst"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0"], 2, "epsilon: must be between"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "nan"], 2, "epsilon: needs a finite number"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "much"], 2, "--epsilon"),
        (["ask", "--as", "ada", COUNT], 2, "give either --epsilon or --within"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0.1", "--within", "n=5"], 2, "give either --epsilon or --within"),
        (["ask", "--as", "ada", COUNT, "--within", "n"], 2, "'n' is no COLUMN=WIDTH"),
        (["ask", "--as", "ada", COUNT, "--within", "n=5", "--within", "n=6"], 2, "n is there twice"),
        (["ask", "--as", "ada", COUNT, "--within", "n=0"], 2, "within: n must be above zero"),
        (["ask", "--as", "ada", COUNT, "--within", "m=5"], 2, "there is no column 'm'"),
        (["ask", "--as", "ada", "SELECT AVG(age) AS age FROM visits", "--within", "age=5"], 3, "depends on the data"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0.1", "--plot", "n.gif"], 2, "end it in .svg, .png or .pdf"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0.1", "--plot", "none/n.svg"], 2, "there is no folder none"),
        (["ask", "--as", "ada", COUNT, "--epsilon", "0.1", "--confidence", "1"], 2, "confidence"),
        *(ALIKE if FULL else ()),
    ],
)
def test_what_goes_wrong_has_a_message_and_an_exit_code(tacit, clinic, arguments, code, said):
    shown = tacit(*arguments, "-p", clinic)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert said in re.sub(r"\s+", " ", shown.stderr)
    assert "Traceback" not in shown.stderr


@pytest.mark.slow
def test_policy_data_and_ledger_have_exit_codes_of_their_own(tacit, untouched, tmp_path):
    policy = shutil.copytree(untouched, tmp_path, dirs_exist_ok=True) / "clinic.toml"
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


@pytest.mark.slow
def test_errors_are_json_where_json_was_asked_for(tacit, clinic):
    shown = tacit("ask", "--as", "ada", "SELECT age FROM visits", "--epsilon", "0.1", "-p", clinic, "--json")
    error = json.loads(shown.stdout)["error"]
    assert (shown.returncode, error["code"], error["at"]["column"]) == (3, "raw-column", 8)


@pytest.mark.slow
def test_init_writes_a_policy_that_check_takes_once_it_is_filled_in(tacit, untouched, tmp_path):
    shutil.copytree(untouched, tmp_path, dirs_exist_ok=True)
    made = tacit("init", "clinic.duckdb", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    policy = tmp_path / "tacit.toml"
    unfilled = tacit("check", cwd=tmp_path)
    assert (unfilled.returncode, "fill in" in unfilled.stderr) == (4, True)
    text = policy.read_text().replace('unit = "?"', 'unit = "patient_id"', 1)
    policy.write_text(text.replace('unit = "?"', "public = true"))  # the wards
    checked = tacit("check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "the data is as declared" in checked.stdout
    assert tacit("init", "clinic.duckdb", cwd=tmp_path).returncode == 2  # it never overwrites


@pytest.mark.slow
def test_the_demo_runs_to_its_end(tacit, tmp_path):
    shown = tacit("demo", "--keep", tmp_path / "kept")
    assert shown.returncode == 0, shown.stderr
    for said in ("95% interval", "a repeat, free", "refused [unbounded]", "refused [budget]", "all in order"):
        assert said in shown.stdout
    assert tacit("demo", "--keep", tmp_path / "kept").returncode == 2  # that budget is spent


BREAKS = """
import sys
from tacit.cli.main import main
from tacit.engines.duckdb import DuckDBEngine

def run(self, aggregation):
    raise OSError("the parquet file has gone")

DuckDBEngine.run = run
main()
"""


@pytest.mark.slow
def test_the_owner_sees_the_cause_of_a_failure_and_the_analyst_does_not(tacit, folder):
    arguments = ["ask", "-p", "t.toml", "--as", "ada", "SELECT SUM(x) FROM t", "--epsilon", "0.5"]
    environment = {**os.environ, "TACIT_LOG": str(folder / "log")}
    command = [sys.executable, "-c", BREAKS, *arguments]
    shown = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 1
    assert "the engine did not finish" in shown.stderr
    assert "parquet" not in shown.stderr.lower()
    assert "entry 2 failed" in (folder / "log").read_text()
    assert "the parquet file has gone" in (folder / "log").read_text()
    assert "spent epsilon 0.5 of 1" in tacit("budget", "-p", folder / "t.toml", "--as", "ada").stdout


@pytest.mark.slow
def test_a_damaged_file_is_the_owners_error_before_any_charge(tacit, folder):
    data = folder / "t.parquet"
    whole = data.read_bytes()
    # The footer, with names and types, stays; the rows are overwritten.
    data.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    shown = tacit("ask", "-p", "t.toml", "--as", "ada", "SELECT SUM(x) FROM t", "--epsilon", "0.5", cwd=folder)
    assert shown.returncode == 5
    assert "t.x cannot be read" in shown.stderr
    assert not (folder / "t.ledger").exists()


@pytest.mark.slow
def test_a_named_question_is_asked_once(tacit, folder):
    def ask(sql, name):
        arguments = ("--as", "ada", sql, "--epsilon", "0.25", "--request", name, "--json")
        return tacit("ask", "-p", folder / "t.toml", *arguments)

    first = ask("SELECT COUNT(*) FROM t", "morning")
    again = ask("SELECT COUNT(*) FROM t", "morning")
    receipts = [json.loads(shown.stdout)["receipt"] for shown in (first, again)]
    assert receipts[0] == receipts[1]  # the same entry, and no repeat
    assert (receipts[0]["request"], receipts[0]["charged_epsilon"]) == ("morning", "0.25")
    other = ask("SELECT SUM(x) FROM t", "morning")
    assert (other.returncode, json.loads(other.stdout)["error"]["code"]) == (3, "request")
    unnamed = ask("SELECT SUM(x) FROM t", "two\nlines")
    assert (unnamed.returncode, json.loads(unnamed.stdout)["error"]["code"]) == (2, "parameter")


@pytest.mark.slow
def test_the_budget_names_the_month_where_a_cap_refreshes(tacit, folder):
    policy = folder / "t.toml"
    policy.write_text(policy.read_text().replace("[analysts.ben]", 'refresh = "monthly"\n[analysts.ben]'))
    tacit("ask", "-p", policy, "--as", "ada", "SELECT COUNT(*) FROM t", "--epsilon", "0.25")
    months = {datetime.now(UTC).isoformat()[:7]}
    shown = tacit("budget", "-p", policy, "--as", "ada").stdout
    own = json.loads(tacit("budget", "-p", policy, "--as", "ada", "--json").stdout)["own"]
    months.add(datetime.now(UTC).isoformat()[:7])
    assert own.pop("month") in months
    delta = {"spent": "0", "cap": "0", "remaining": "0"}  # the analysts have none
    assert own == {"spent": "0.25", "cap": "1", "remaining": "0.75", "delta": delta}
    said = r"ada has spent epsilon 0.25 of 1 in \d{4}-\d{2}, with 0.75 left; all analysts together epsilon 0.25 of 2"
    assert re.match(said, shown)
    assert "ada 1 in each calendar month, so 12 over a year" in tacit("check", "-p", policy).stdout
    assert " in " not in tacit("budget", "-p", policy, "--as", "ben").stdout


@pytest.mark.slow
def test_the_owner_sees_all_budgets_without_naming_anyone(tacit, folder):
    policy = folder / "t.toml"
    tacit("ask", "-p", policy, "--as", "ada", "SELECT COUNT(*) FROM t", "--epsilon", "0.25")
    assert tacit("budget", "-p", policy).stdout.splitlines() == [
        # of a delta of 1e-6 half is for filter A, and by filter B all of epsilon 2 but little is left
        "all together  epsilon 0.25 of 2 and delta 0 of 5e-7, with 1.75 left",
        "ada           epsilon 0.25 of 1, with 0.75 left",
        "ben           epsilon 0 of 1, with 1 left",
    ]
    plain = json.loads(tacit("budget", "-p", policy, "--json").stdout)
    assert plain["analysts"]["ada"] == json.loads(tacit("budget", "-p", policy, "--as", "ada", "--json").stdout)["own"]
    assert plain["overall"]["delta"] == {"spent": "0", "cap": "5e-7", "remaining": "5e-7"}


@pytest.mark.slow
def test_a_cap_below_what_is_spent_is_not_what_check_promises(tacit, folder):
    policy = folder / "t.toml"
    assert "at most exp(2), plus 1e-6, counted from an empty ledger." in tacit("check", "-p", policy).stdout
    assert not (folder / "t.ledger").exists()  # looking makes none
    tacit("ask", "-p", policy, "--as", "ada", "SELECT COUNT(*) FROM t", "--epsilon", "0.5")
    assert "at most exp(2), plus 1e-6. The caps" in tacit("check", "-p", policy).stdout
    text = policy.read_text()
    lowered = text.replace("epsilon = 2", "epsilon = 0.4").replace("epsilon = 1", "epsilon = 0.4")
    policy.write_text(lowered.replace("delta = 1e-6", "delta = 0"))
    shown = tacit("check", "-p", policy).stdout
    assert (
        "at most exp(0.5), plus 1e-6. The caps of single analysts (epsilon: ada up to 0.5 spent already; ben 0.4)"
        in shown
    )
    assert "· privacy.epsilon: up to 0.5 is spent already, more than 0.4:" in shown
    (folder / "t.ledger").write_bytes(b"this is no ledger" * 100)
    shown = tacit("check", "-p", policy)
    assert (shown.returncode, "at most exp(0.4), counted from an empty ledger." in shown.stdout) == (0, True)
    assert "· ledger.store: was not read, so what is spent is not known:" in shown.stdout


@pytest.mark.slow
def test_check_says_what_the_caps_leave_out(tacit, tmp_path):
    # one unit with 5 rows in each of 2 groups, and one with a single row: 11 rows
    rows = ["who,part"] + ["a,x"] * 5 + ["a,y"] * 5 + ["b,x", ",x"]  # and a row of nobody
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "t.toml").write_text(
        '[data]\nsource = "t.csv"\n[privacy]\nepsilon = 1\n[tables.t]\nunit = "who"\nmax_groups = 2\n'
        'max_rows_per_group = 3\n[tables.t.columns]\npart = { type = "text", values = ["x", "y"] }\n'
        "[analysts.ada]\nepsilon = 1\n"
    )
    shown = tacit("check", "-p", tmp_path / "t.toml").stdout
    # 3 of the first unit and 1 of the second without groups; 6 and 1 with them
    assert "· tables.t: an answer without groups counts 4 of 11 rows (3 of one unit at most)" in shown
    assert "count up to 7 (6)" in shown
    text = (tmp_path / "t.toml").read_text().replace("group = 3", "group = 10")
    (tmp_path / "t.toml").write_text(text)
    assert "without groups" not in tacit("check", "-p", tmp_path / "t.toml").stdout
    text = text.replace("max_groups = 2\nmax_rows_per_group = 10", 'max_rows = "auto"')
    (tmp_path / "t.toml").write_text(text)
    shown = tacit("check", "-p", tmp_path / "t.toml").stdout
    assert "· tables.t: how much one unit may add is chosen for each question" in shown


@pytest.mark.slow
def test_init_guesses_the_types_of_a_csv_file_and_leaves_the_unit_out(tacit, tmp_path):
    rows = [
        "patient_id,age,cost,visited,ward,zip,smoker,nothing",
        "1,30,1.5,2024-01-02,A,00123,true,",
        "2,,2,2024-02-02,B,10000,FALSE,",
    ]
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n")
    made = tacit("init", "visits.csv", cwd=tmp_path)
    assert 'Fill in each "?"' in made.stdout
    text = (tmp_path / "tacit.toml").read_text()
    columns = tomllib.loads(text)["tables"]["visits"]["columns"]
    assert {name: column["type"] for name, column in columns.items()} == {
        "age": "int",
        "cost": "float",
        "visited": "date",
        "ward": "text",
        "zip": "text",  # a zero in front: a code, and no number
        "smoker": "bool",
        "nothing": "text",
    }


def test_init_without_a_source_says_that_it_is_an_example(tacit, tmp_path):
    shown = tacit("init", cwd=tmp_path).stdout
    assert "It is an example" in shown and "?" not in shown
    missing = tacit("init", "nofile.csv", "-p", "other.toml", cwd=tmp_path)
    assert (missing.returncode, "policy" in missing.stderr) == (5, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (["ask", "x", "-e", "1"], "missing option '--as'", "--as NAME: the analyst who asks"),
        (
            ["ask", "x", "--as", "ada", "-e", "0,5"],
            "invalid value for '--epsilon'",
            "the privacy loss to spend, such as 0.5",
        ),
        (["nonsense"], "no such command 'nonsense'", "tacit --help shows what there is"),
        (["ask", "x", "--nope"], "no such option: --nope", "tacit ask --help shows what there is"),
        (["serve", "--http", "70000"], "http: 70000 is out of range", "--http takes a number from 0 to 65,535"),
        (["serve", "--sign-in", "x"], "sign-in: there is no sign-in 'x'", "--sign-in any, or --sign-in oidc"),
        (["serve", "--sign-in", "oidc"], "sign-in: no identity provider is named", "tacit serve --sign-in oidc"),
    ],
)
def test_a_command_line_that_cannot_be_read_has_a_code_and_a_fix(tacit, arguments, what, fix):
    shown = tacit(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    first, second = shown.stderr.splitlines()
    assert first.startswith("error [parameter]: ") and what in first
    assert second.startswith("  fix: ") and fix in second
    told = tacit(*arguments, "--json") if arguments[0] != "serve" else None
    if told is not None:
        assert json.loads(told.stdout)["error"]["code"] == "parameter"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tacit budget --as ", {"ada", "ben"}),
        ("tacit budget -p t.toml --as b", {"ben"}),
        ("tacit budget -p none.toml --as ", set()),
        ("tacit analyst add ada --role ", {"analyst", "auditor", "owner"}),
        ("tacit ledger price --by z", {"zcdp"}),
    ],
)
def test_a_shell_completes_names_roles_and_accountants(tacit, process, folder, words, offered):
    (folder / "t.toml").rename(folder / "tacit.toml")
    (folder / "t.toml").write_text((folder / "tacit.toml").read_text())
    count = len(words.split(" ")) - 1
    run = process if len(offered) == 2 else tacit  # one of them as a shell does it
    shown = run(cwd=folder, COMP_WORDS=words, COMP_CWORD=str(count), _TACIT_COMPLETE="complete_bash")
    assert set(shown.stdout.split()) == offered


@pytest.mark.slow
def test_no_option_is_cut_off_in_a_help_of_80_columns(tacit):
    assert "--insecure-behind-proxy" in tacit("serve", "--help", COLUMNS="80").stdout


def test_version_and_help(tacit):
    assert tacit("--version").stdout == f"tacit {__version__}\n"
    assert "Exit codes: 0 answered" in re.sub(r"\s+", " ", tacit("--help").stdout)


def test_every_command_and_exit_code_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`tacit {command.callback.__name__}" in text
    for command in ledger.app.registered_commands:
        assert f"`tacit ledger {command.name or command.callback.__name__}`" in text
    for code in (*range(8), 130):
        assert f"| {code} |" in text


@pytest.mark.slow
def test_a_question_of_the_command_loads_neither_a_compiler_nor_pandas(folder):
    # The unit is a column, so the rows of each are bounded; pandas and numba are installed where the tests run.
    pq.write_table(pa.table({"p": [1, 1, 2, 3], "x": [0, 1, 2, 3]}), folder / "t.parquet")
    text = (folder / "t.toml").read_text()
    (folder / "t.toml").write_text(text.replace('unit = "row"', 'unit = "p"\nmax_groups = 1\nmax_rows_per_group = 2'))
    arguments = ["ask", "-p", "t.toml", "--as", "ada", "SELECT AVG(x) FROM t", "--epsilon", "0.5"]
    command = [sys.executable, "-X", "importtime", "-m", "tacit", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tacit.curator.ask" in loaded
    assert not loaded & {"numba", "pandas.core.frame", "scipy"}
