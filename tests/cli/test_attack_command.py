"""`tacit attack`: why a policy is needed, shown on people who never were."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.slow

POLICY = """\
[data]
source = "nowhere.duckdb"
[privacy]
epsilon = 2
[tables.people]
unit = "row"
[tables.people.columns]
age = { type = "int", lower = 0, upper = 99 }
sick = { type = "bool" }
[analysts.ada]
epsilon = 1
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "tacit.toml").write_text(POLICY)
    return tmp_path


def test_both_sides_are_shown_and_saved(tacit, home):
    done = tacit("attack", "--people", "12", "--plot", "shares.svg", cwd=home)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "12 made-up people in people. The secret is: sick. The attacker knows age" in text
    row = r"random subsets +24 +100\.0% \(\d+% to 100%\) +\d+\.\d% \(\d+% to \d+%\) +88\.1%"
    assert re.search(row, text)
    assert "can expect more than 88.1%" in text
    assert "refused [budget]: it costs epsilon 1" in text
    assert "So: unprotected, every secret is out; protected, no attack got more than the promise allows." in text
    assert "<svg" in (home / "shares.svg").read_text(encoding="utf-8")
    assert sorted(path.name for path in home.iterdir()) == ["shares.svg", "tacit.toml"]  # no ledger, no data


def test_the_same_as_json(tacit, home):
    done = tacit("attack", "--people", "9", "--epsilon", "0.5", "--seed", "4", "--json", cwd=home)
    found = json.loads(done.stdout)
    assert (done.returncode, found["people"], found["epsilon"], found["refuted"]) == (0, 9, 0.5, False)
    assert found["most"] == pytest.approx(0.7310585786)  # e/(1 + e): a bit changes by a removal and an addition
    assert [line["unprotected"]["share"] for line in found["attacks"]] == [1.0, 1.0, 1.0]
    assert found["counted"]["unprotected"]["estimate"] == found["counted"]["truth"]


def test_an_epsilon_that_protects_little_lets_much_out(tacit, home):
    # At epsilon 30 a count is off with chance e^-15: all of it is out, and that is what the promise says too.
    done = tacit("attack", "--people", "12", "--epsilon", "30", "--json", cwd=home)
    found = json.loads(done.stdout)
    assert found["attacks"][-1]["protected"]["share"] == 1.0
    assert (done.returncode, found["refuted"]) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["--people", "3"], 2, "3 is no crowd to attack"),
        (["--people", "90"], 2, "tell 90 people apart: 50 is the most"),
        (["--epsilon", "0"], 2, "epsilon: must be between"),
        (["--plot", "shares.gif"], 2, "end it in .svg, .png or .pdf"),
        (["-p", "none.toml"], 4, "cannot read"),
    ],
)
def test_what_goes_wrong_has_a_message_and_an_exit_code(tacit, home, arguments, code, what):
    done = tacit("attack", *arguments, cwd=home)
    assert (done.returncode, done.stdout) == (code, "")
    assert what in re.sub(r"\s+", " ", done.stderr)


def test_without_a_policy_the_bundled_clinic_is_attacked(tacit, tmp_path):
    done = tacit("attack", "--people", "20", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "bundled clinic" in done.stderr and "20 made-up people" in done.stdout
    assert list(tmp_path.iterdir()) == []
    named = tacit("attack", "-p", "elsewhere.toml", cwd=tmp_path)  # what was named is not guessed
    assert (named.returncode, "cannot read" in named.stderr) == (4, True)
