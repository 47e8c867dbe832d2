"""`tacit survey` as a person uses it: write one, answer it, collect, report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tacit.cli import survey as commands
from tacit.local.survey.load import load
from tacit.sampling.bits import ReplayBits

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
ANSWERS = 'cheated = "no"\nparty = "Greens"\ntaken = ["Cannabis"]\nhours = 38.5\n'


@pytest.fixture
def place(tacit, tmp_path, monkeypatch):
    """A folder with the starter survey and someone's answers; what they drew is kept below it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = tacit("survey", "init", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "mine.toml").write_text(ANSWERS)
    return tmp_path


def test_a_survey_from_the_first_line_to_the_chart(tacit, place):
    survey = load(place / "survey.toml")
    bits = ReplayBits(b"four hundred people")
    sent = [survey.respond([int(n < 100), n % 5, "0010", 80], bits).to_json() for n in range(400)]
    (place / "sent.jsonl").write_text("\n".join(sent) + "\n")
    taken = tacit("survey", "collect", "survey.toml", "sent.jsonl", cwd=place)
    assert taken.stdout == "Taken 400, there already 0, bad 0; 400 reports in all.\n"
    pytest.importorskip("matplotlib")
    shown = tacit("survey", "report", "survey.toml", "--chart", "chart.svg", cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert "400 reports" in shown.stdout and "●" in shown.stdout and "Cannabis" in shown.stdout
    # at ln 3 one of 400 reports moves a share by 1/(400/2): half a point
    assert "moves an estimate by at most 0.5 points" in shown.stdout
    assert "Have you ever cheated" in (place / "chart.svg").read_text(encoding="utf-8")
    # over seeds each interval misses with probability 1e-9 at most
    sure = ("--confidence", "0.999999999", "--json")
    found = json.loads(tacit("survey", "report", "survey.toml", *sure, cwd=place).stdout)
    yes = found["questions"][0]["rows"][1]
    assert found["reports"] == 400 and yes["low"] <= 0.25 <= yes["high"]
    assert found["questions"][3]["rows"][0]["low"] <= 40 <= found["questions"][3]["rows"][0]["high"]


def test_a_second_answer_is_the_first_one_again(tacit, place):
    first = tacit("survey", "respond", "survey.toml", "--answers", "mine.toml", cwd=place)
    assert first.returncode == 0, first.stderr
    assert "at most 164 times surer of anything you answered" in first.stderr
    (place / "mine.toml").write_text(ANSWERS.replace("no", "yes").replace("Greens", "Liberals"))
    again = tacit("survey", "respond", "survey.toml", "--answers", "mine.toml", cwd=place)
    assert again.stdout == first.stdout and "answered this survey before" in again.stderr
    (memo,) = (place / "state").rglob("*.json")
    assert memo.read_text() == first.stdout and memo.stat().st_mode & 0o077 == 0
    (place / "r.json").write_text(first.stdout + again.stdout)
    taken = tacit("survey", "collect", "survey.toml", "r.json", "--json", cwd=place)
    assert json.loads(taken.stdout) == {"taken": 1, "replayed": 1, "bad": [], "reports": 1}


def test_someone_at_a_terminal_is_told_the_chances_and_asked_again(tacit, place):
    shown = tacit("survey", "respond", "survey.toml", cwd=place, stdin="perhaps\nno\n2\n1, 3\n38.5\n")
    assert shown.returncode == 0, shown.stderr
    assert "With probability 3/4 your true answer is sent" in shown.stderr
    assert "cheated: needs yes or no" in shown.stderr
    load(place / "survey.toml").accept(shown.stdout.strip())


def test_bad_reports_are_left_out_and_told_by_file_and_line(tacit, place):
    good = load(place / "survey.toml").respond([0, 0, "0000", 0], ReplayBits(b"one")).to_json()
    lines = f'{good}\nnonsense\n{good[:-2]},7]}}\n{{"survey": 1}}\n'
    taken = tacit("survey", "collect", "survey.toml", "-", cwd=place, stdin=lines)
    assert taken.stdout.startswith("Taken 1, there already 0, bad 3; 1 report in all.")
    assert "· -, line 2 [report]: this is no JSON" in taken.stdout
    assert "line 3 [report]: a report has 4 answers" in taken.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("init",), 2, "exists already"),
        (("report", "survey.toml"), 3, "no reports to estimate from"),
        (("report", "survey.toml", "--chart", "x.txt"), 2, "no picture's name"),
        (("report", "none.toml"), 2, "cannot be read"),
        (("collect", "survey.toml"), 2, "--serve"),
        (("collect", "survey.toml", "none.jsonl"), 2, "cannot be read"),
        (("collect", "survey.toml", "--serve", "--host", "192.0.2.1"), 2, "--tls-self"),
        (("respond", "survey.toml", "--answers", "none.toml"), 2, "cannot be read"),
        (("respond", "http://127.0.0.1:9/"), 2, "does not answer"),
    ],
)
def test_a_mistake_is_told_with_an_exit_code(tacit, place, arguments, code, words):
    done = tacit("survey", *arguments, cwd=place)
    assert done.returncode == code
    assert words in done.stderr


def test_a_served_survey_is_answered_from_another_terminal(tacit, place):
    command = [sys.executable, "-m", "tacit.cli.main", "survey", "collect", "survey.toml", "--serve", "--port", "0"]
    running = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert running.stdout is not None
    try:
        (address,) = re.findall(r"http://\S+", running.stdout.readline())
        sent = tacit("survey", "respond", address, "--answers", "mine.toml", "--yes", cwd=place)
        assert sent.stdout == "Thank you. It is counted.\n", sent.stderr
        again = tacit("survey", "respond", address, "--yes", cwd=place)
        assert again.stdout == "It is there already, and counts once.\n"
        with urllib.request.urlopen(address) as page:
            assert "Toss the coins" in page.read().decode()
    finally:
        running.send_signal(signal.SIGTERM)
        rest = running.stdout.read()
        running.stdout.close()
        running.wait(20)
    assert running.returncode == 0 and "Stopped with 1 report" in rest
    assert json.loads(tacit("survey", "report", "survey.toml", "--json", cwd=place).stdout)["reports"] == 1


def test_every_command_is_in_the_reference():
    text = DOCS.read_text(encoding="utf-8")
    for command in commands.app.registered_commands:
        assert f"`tacit survey {command.callback.__name__}" in text


def test_the_guide_shows_what_happens(tacit, place, monkeypatch):
    page = (DOCS.parents[1] / "guide" / "survey.md").read_text(encoding="utf-8")
    (short,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (place / "short.toml").write_text(short)
    assert [question.kind for question in load(place / "short.toml").questions] == ["yes-no", "number"]
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "90")
    exec(compile(code, "survey.md", "exec"), {})
    shown = tacit("survey", "collect", "survey.toml", "sent.jsonl", cwd=place).stdout
    assert f"$ tacit survey collect survey.toml sent.jsonl\n{shown}" in page
    shown = tacit("survey", "report", "survey.toml", cwd=place).stdout
    assert f"$ tacit survey report survey.toml --chart report.svg\n{shown}" in page
