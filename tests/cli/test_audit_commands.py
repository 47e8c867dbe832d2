"""`tacit audit`: the policy's answers, the zoo, and any function, with an exit code that a build can heed."""

from __future__ import annotations

import json
import os
import pty
import re
from pathlib import Path

import pytest
from tests.support.counts import FULL

from tacit.cli import audit
from tacit.cli.main import app
from tacit.sampling import laplace

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
SAMPLES = "200" if FULL else "100"  # of a policy's answers: either finds a cost of five times the claim
MINE = """\
def fair(data, size, rng):
    return rng.integers(0, 2, size)

def told(data, size, rng):
    return len(data) + rng.integers(0, 2, size)

def count(data, rng):
    return round(len(data) + rng.laplace(scale=1.0), 0)

def fails(data):
    raise RuntimeError("out of paper")

class Library:
    fair = staticmethod(fair)

number = 3
"""


def said(done) -> str:
    return re.sub(r"\s+", " ", done.stderr)


# The answers of a policy.


def test_a_policy_is_audited(tacit, folder):
    (folder / "t.parquet").unlink()  # no data is read
    done = tacit("audit", "policy", "-p", "t.toml", "--samples", SAMPLES, "--units", "10", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["question", "at", "least", "claim", "verdict"]
    assert re.match(r"SELECT COUNT\(\*\) AS n FROM t +0\.\d+ +epsilon 1 +not refuted$", lines[2])
    assert "SELECT MEDIAN(x) AS x FROM t" in done.stdout
    assert "No claim is refuted, which proves none" in lines[-1]
    assert not (folder / "t.ledger").exists()  # nor is anything charged


def test_a_policy_is_audited_as_json(tacit, folder):
    options = ("--samples", SAMPLES, "--units", "10", "--epsilon", "0.5", "--stored", "--json")
    done = tacit("audit", "policy", "-p", "t.toml", *options, cwd=folder)
    found = json.loads(done.stdout)
    assert (done.returncode, found["refuted"], found["confidence"]) == (0, False, 0.99)
    first = found["questions"][0]
    assert first["question"] == "SELECT COUNT(*) AS n FROM t"
    assert first["claim"] == {"name": "epsilon", "value": 0.5, "delta": 0.0}
    assert "one unit more" in first["pair"]
    # each of k questions is audited at 1 - 0.01/k, so that all together have 0.99
    assert first["confidence"] == pytest.approx(1 - 0.01 / len(found["questions"]))


def test_a_planted_fault_is_found(tacit, folder, monkeypatch):
    # Power: noise of a fifth of the scale that is paid for costs 5 times the price.
    draw = laplace.draw
    monkeypatch.setattr(laplace, "draw", lambda scale, bits: draw(scale / 5, bits))
    done = tacit("audit", "policy", "-p", "t.toml", "--samples", SAMPLES, "--units", "10", cwd=folder)
    assert done.returncode == 7
    assert re.search(r"SELECT COUNT\(\*\) AS n FROM t .* refuted$", done.stdout, re.MULTILINE)
    assert re.search(r"\d+ of \d+ claims are refuted", done.stdout)


# The zoo.


def test_the_zoo_is_audited(tacit):
    names = ("randomized-response", "no-noise", "discrete-as-continuous")
    done = tacit("audit", "mechanisms", *names, "--samples", "5000")
    assert done.returncode == 0, done.stderr
    assert re.search(r"randomized-response +1 +epsilon 1 +0\.\d+ +not refuted +as expected", done.stdout)
    assert re.search(r"no-noise +infinite +epsilon 1 +\d\.\d+ +refuted +as expected", done.stdout)
    assert re.search(r"discrete-as-continuous .*not refuted +as expected", done.stdout)  # too fine for samples
    assert "3 mechanisms, 5,000 samples a side: every verdict is as expected." in done.stdout


def test_a_verdict_that_is_not_expected_has_an_exit_code(tacit):
    # A hundred samples cannot tell 1.0986 from 1.
    done = tacit("audit", "mechanisms", "coin-claimed-as-one", "--samples", "100", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["as_expected"]) == (7, False)
    assert found["mechanisms"][0]["expected"] == "refuted"
    done = tacit("audit", "mechanisms", "coin-claimed-as-one", "--samples", "100")
    assert (done.returncode, "not as expected: coin-claimed-as-one" in done.stdout) == (7, True)


def test_a_bar_is_drawn_on_a_terminal_and_leaves_the_output_alone(process, tacit, tmp_path):
    command = ("audit", "mechanisms", "no-noise", "--samples", "500")
    terminal, end = pty.openpty()
    shown = process(*command, cwd=tmp_path, stderr=end, TERM="xterm")
    os.close(end)
    drawn = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert shown.stdout == tacit(*command).stdout
    assert "no-noise" in drawn and "%" in drawn


# Any function.


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of functions, which is forgotten afterwards."""
    import sys

    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "needs.py").write_text("import a_library_that_is_nowhere\n")
    yield tmp_path
    for name in ("mine", "broken", "needs"):
        sys.modules.pop(name, None)


def test_any_function_is_audited(tacit, here):
    databases = ("--one", "[1, 1]", "--other", "[1]")
    sound = tacit("audit", "callable", "mine:fair", "--claim", "epsilon=0.1", *databases, "-n", "2000", cwd=here)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert sound.stdout.startswith("mine:fair\nepsilon = 0.1: not refuted.")
    assert "Not refuted is not proved" in sound.stdout
    broken = tacit("audit", "callable", "mine:told", "--claim", "mu=1", *databases, "-n", "2000", "--json", cwd=here)
    found = json.loads(broken.stdout)
    assert (broken.returncode, found["callable"], found["verdict"]) == (7, "mine:told", "refuted")
    method = tacit("audit", "callable", "mine:Library.fair", "--claim", "rho=1", *databases, "-n", "500", cwd=here)
    assert method.returncode == 0, method.stderr


def test_neighbors_are_searched_for_a_shape(tacit, here):
    options = ("--shape", "count", "--rows", "3", "--neighbors", "add-remove", "--samples", "4000")
    done = tacit("audit", "callable", "mine:count", "--claim", "epsilon=0.2", *options, cwd=here)
    assert done.returncode == 7  # its epsilon is near 1
    assert "on the pair" in done.stdout


PAIR = ["--one", "[1]", "--other", "[]", "--samples", "200"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["mine", "--claim", "epsilon=1", *PAIR], "'mine' is no MODULE:FUNCTION"),
        (["nowhere:fair", "--claim", "epsilon=1", *PAIR], "there is no module nowhere"),
        (["broken:fair", "--claim", "epsilon=1", *PAIR], "broken cannot be imported: ZeroDivisionError"),
        (["needs:fair", "--claim", "epsilon=1", *PAIR], "needs a_library_that_is_nowhere, which is not installed"),
        (["mine:unfair", "--claim", "epsilon=1", *PAIR], "mine has no unfair"),
        (["mine:number", "--claim", "epsilon=1", *PAIR], "mine:number is a int, not a function"),
        (["mine:fails", "--claim", "epsilon=1", *PAIR], "raised RuntimeError in every call: out of paper"),
        (["mine:fair", "--claim", "epsilon=-1", *PAIR], "must not be negative"),
        (["mine:fair", "--claim", "privacy=1", *PAIR], "is not part of a guarantee"),
        (["mine:fair", "--claim", "epsilon=1", "--one", "[1]"], "name two databases"),
        (["mine:fair", "--claim", "epsilon=1"], "name two databases"),
        (["mine:fair", "--claim", "epsilon=1", "--shape", "count", *PAIR], "name two databases"),
        (["mine:fair", "--claim", "epsilon=1", "--one", "[1", "--other", "[]"], "'[1' is no JSON"),
        (["mine:fair", "--claim", "epsilon=1", "--shape", "spiral"], "spiral"),
        (
            ["mine:fair", "--claim", "epsilon=1", "--shape", "count", "--neighbors", "near"],
            "'near' is not a neighbor relation",
        ),
        (["mine:fair", "--claim", "epsilon=1", *PAIR[:-1], "3"], "too few for any verdict"),
        (["mine:fair", "--claim", "epsilon=1", *PAIR, "--confidence", "1"], "confidence"),
    ],
)
def test_what_cannot_be_audited_is_said(tacit, here, arguments, what):
    done = tacit("audit", "callable", *arguments, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert what in said(done)
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["mechanisms", "no-nois"], 2, "did you mean no-noise"),
        (["mechanisms", "no-noise", "--confidence", "2"], 2, "confidence: must be between 0 and 1"),
        (["policy", "-p", "none.toml"], 4, "cannot read"),
        (["policy", "-p", "t.toml", "--epsilon", "0"], 2, "epsilon: must be between"),
        (["policy", "-p", "t.toml", "--units", "0"], 2, "no size to generate"),
        (["policy", "-p", "t.toml", "--samples", "1"], 2, "too few for any verdict"),
    ],
)
def test_what_goes_wrong_has_a_message_and_an_exit_code(tacit, folder, arguments, code, what):
    done = tacit("audit", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert what in said(done)
    as_json = tacit("audit", *arguments, "--json", cwd=folder)
    assert set(json.loads(as_json.stdout)["error"]) == {"code", "what", "at", "fix"}


def test_every_command_is_documented(tacit):
    text = DOCS.read_text(encoding="utf-8")
    for command in audit.app.registered_commands:
        assert f"`tacit audit {command.name or command.callback.__name__}" in text
    assert "| 7 |" in text
    assert {group.name for group in app.registered_groups} >= {"audit", "ledger"}
    assert "7 claim refuted" in re.sub(r"[\s│]+", " ", tacit("--help").stdout)
