"""What an analyst may name, at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

POLICY = """\
[privacy]
epsilon = 2
[tables.t]
unit = "row"
columns.shown = { type = "int", lower = 0, upper = 3 }
columns.kept = { type = "int", lower = 0, upper = 3 }
[tables.other]
unit = "row"
columns.kept = { type = "int", lower = 0, upper = 3 }
[analysts.ada]
epsilon = 1
[analysts.ben]
epsilon = 1
columns = ["t.shown"]
"""


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def test_the_schema_is_that_of_an_analyst_who_is_named(tacit, owner):
    names = {
        who: set(json.loads(tacit("schema", *who, "-p", "policy.toml", "--json", cwd=owner).stdout)["tables"])
        for who in ((), ("--as", "ada"), ("--as", "ben"))
    }
    assert names == {(): {"t", "other"}, ("--as", "ada"): {"t", "other"}, ("--as", "ben"): {"t"}}
    assert "kept" not in tacit("schema", "--as", "ben", "-p", "policy.toml", cwd=owner).stdout
    refused = tacit("schema", "--as", "eve", "-p", "policy.toml", cwd=owner)
    assert refused.returncode != 0 and "there is no analyst 'eve'" in refused.stderr


def test_a_question_about_what_is_hidden_is_explained_to_who_may_name_it(tacit, owner):
    asked = ("explain", "SELECT SUM(kept) FROM t", "--epsilon", "1", "-p", "policy.toml")
    assert tacit(*asked, "--as", "ada", cwd=owner).returncode == 0
    refused = tacit(*asked, "--as", "ben", cwd=owner)
    assert refused.returncode != 0 and "fix: its columns are shown" in refused.stderr


def test_the_list_of_people_says_what_they_may_name(tacit, owner):
    for name in ("ada", "ben"):
        assert tacit("analyst", "add", name, "-p", "policy.toml", cwd=owner).returncode == 0
    ada, ben = tacit("analyst", "list", "-p", "policy.toml", cwd=owner).stdout.splitlines()
    assert ben.endswith("  may name t (shown)") and "may name" not in ada
    listed = json.loads(tacit("analyst", "list", "-p", "policy.toml", "--json", cwd=owner).stdout)
    assert [each["access"] for each in listed] == [None, {"t": ["shown"]}]


def test_check_finds_names_that_are_not_declared(tacit, owner):
    (owner / "policy.toml").write_text(POLICY.replace('"t.shown"', '"t.shwon"'))
    shown = tacit("check", "-p", "policy.toml", cwd=owner)
    assert shown.returncode != 0
    assert 'analysts.ben.columns[0]: there is no column "t.shwon"' in shown.stderr + shown.stdout
    assert "did you mean t.shown?" in shown.stderr + shown.stdout
