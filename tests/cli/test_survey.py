"""`tacit survey` as a person uses it: write one, answer it, collect, report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tacit.cli import survey as commands
from tacit.local.survey.load import load_survey
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


@pytest.mark.slow
def test_a_survey_from_the_first_line_to_the_chart(tacit, place):
    survey = load_survey(place / "survey.toml")
    bits = ReplayBits(b"four hundred people")
    sent = [survey.respond([int(n < 100), n % 5, "001000", 80], bits).to_json() for n in range(400)]
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
    kept = json.loads(memo.read_text())
    assert kept["report"] == json.loads(first.stdout) and memo.stat().st_mode & 0o077 == 0
    assert (kept["id"], kept["title"], round(kept["epsilon"], 3)) == ("habits", "Habits nobody talks about", 5.099)
    memo.write_text(first.stdout)  # a report alone is taken too
    assert tacit("survey", "respond", "survey.toml", cwd=place).stdout == first.stdout
    (place / "r.json").write_text(first.stdout + again.stdout)
    taken = tacit("survey", "collect", "survey.toml", "r.json", "--json", cwd=place)
    assert json.loads(taken.stdout) == {"taken": 1, "replayed": 1, "bad": [], "reports": 1}


def test_someone_at_a_terminal_is_told_the_chances_and_asked_again(tacit, place):
    shown = tacit("survey", "respond", "survey.toml", cwd=place, stdin="perhaps\nno\n2\n1, 3\n38.5\n")
    assert shown.returncode == 0, shown.stderr
    assert "With probability 3/4 your true answer is sent" in shown.stderr
    assert "cheated: needs yes or no" in shown.stderr
    for words in ("No", "Greens", "Painkillers, Cannabis", "38.5 hours"):
        assert f"Your answer: {words}\n" in shown.stderr
    load_survey(place / "survey.toml").accept(shown.stdout)
    assert shown.stdout.startswith("{") and shown.stdout.count("\n") == 1  # nothing of the prompts is in the report


SIBLINGS = """\
id = "siblings"
title = "Siblings"
[[questions]]
name = "siblings"
text = "How many siblings have you?"
kind = "choice"
options = ["0", "1", "2", "3 or more"]
epsilon = 20
"""


@pytest.mark.slow
def test_what_is_chosen_is_what_is_randomized_where_options_are_numbers(tacit, place):
    # at epsilon 20 another option is sent with probability 3/(e^20 + 3), below 1e-8
    (place / "s.toml").write_text(SIBLINGS)
    typed = tacit("survey", "respond", "s.toml", "--memo", "typed", cwd=place, stdin="0\n3 or more\n1\n")
    assert "from 1 to 4" in typed.stderr and "Your answer: 0\n" in typed.stderr
    assert json.loads(typed.stdout)["answers"] == [0]
    for number, (line, sent) in enumerate((("1", 1), ('"2"', 2), ('"3 or more"', 3))):
        (place / "a.toml").write_text(f"siblings = {line}\n")
        done = tacit("survey", "respond", "s.toml", "--answers", "a.toml", "--memo", f"m{number}", cwd=place)
        assert json.loads(done.stdout)["answers"] == [sent]
    for line in ("3", '"4"', "true"):  # no option's words
        (place / "a.toml").write_text(f"siblings = {line}\n")
        done = tacit("survey", "respond", "s.toml", "--answers", "a.toml", "--memo", "m9", cwd=place)
        assert done.returncode == 2 and "in the same words" in done.stderr and not done.stdout


@pytest.mark.slow
def test_an_edited_survey_is_not_tossed_again_without_a_word(tacit, place):
    first = tacit("survey", "respond", "survey.toml", "--answers", "mine.toml", cwd=place)
    assert "cheated: With probability 3/4" in first.stderr  # the chances stand before what they left
    assert first.stderr.index("With probability 3/4") < first.stderr.index("What the coins left")
    text = (place / "survey.toml").read_text()
    (place / "edited.toml").write_text(text.replace("talks about", "talks  about"))
    answer = ("survey", "respond", "edited.toml", "--answers", "mine.toml")
    refused = tacit(*answer, cwd=place)
    assert refused.returncode == 3 and not refused.stdout
    # ln 3 + 1 + 2 + 1 = 5.099, twice
    assert "epsilon 5.099 more, 10.2 in all" in refused.stderr and "--again" in refused.stderr
    assert tacit(*answer, "--again", "--at-most", 10, cwd=place).returncode == 3
    accepted = tacit(*answer, "--again", "--at-most", 10.2, cwd=place)
    assert accepted.returncode == 0 and "costs you epsilon 10.2 in all" in accepted.stderr
    assert tacit(*answer, cwd=place).stdout == accepted.stdout  # and that one stays too
    assert tacit("survey", "respond", "survey.toml", cwd=place).stdout == first.stdout


@pytest.mark.slow
def test_a_file_that_is_named_is_a_memory_of_its_own(tacit, place):
    answer = ("survey", "respond", "survey.toml", "--answers", "mine.toml")
    one, two = (tacit(*answer, "--memo", name, cwd=place).stdout for name in ("one", "two"))
    assert one != two and tacit(*answer, "--memo", "one", cwd=place).stdout == one
    text = (place / "survey.toml").read_text()
    (place / "survey.toml").write_text(text.replace("talks about", "talks  about"))
    assert tacit(*answer, "--memo", "one", cwd=place).returncode == 3
    assert tacit(*answer, "--memo", "one", "--again", cwd=place).returncode == 0
    assert len((place / "one").read_text().splitlines()) == 2  # both are kept
    (place / "one").write_text("nonsense\n")
    assert "is not what was drawn" in tacit(*answer, "--memo", "one", cwd=place).stderr


def test_what_other_surveys_cost_is_said(tacit, place):
    (place / "s.toml").write_text(SIBLINGS.replace("epsilon = 20", "epsilon = 1"))
    (place / "a.toml").write_text("siblings = 0\n")
    tacit("survey", "respond", "s.toml", "--answers", "a.toml", cwd=place)
    second = tacit("survey", "respond", "survey.toml", "--answers", "mine.toml", cwd=place)
    assert "You answered 1 other survey that came as files before, at epsilon 1" in second.stderr
    assert "with this one it is 6.099 in all" in second.stderr


def test_a_dear_survey_is_refused_at_a_ceiling_and_told_without_one(tacit, place):
    (place / "s.toml").write_text(SIBLINGS)
    (place / "a.toml").write_text("siblings = 0\n")
    answer = ("survey", "respond", "s.toml", "--answers", "a.toml")
    refused = tacit(*answer, "--at-most", 5, cwd=place)
    assert refused.returncode == 3 and "epsilon 20, more than --at-most 5" in refused.stderr
    assert not list((place / "state").rglob("*.json"))  # no coin was tossed
    taken = tacit(*answer, "--at-most", 20, cwd=place)
    note = "Note: siblings: epsilon 20 hides little. The true answer is sent with probability 99.999999 %."
    assert note in taken.stderr and taken.stderr.index("Note") < taken.stderr.index("What the coins left")
    (place / "r.json").write_text(taken.stdout)
    assert note in tacit("survey", "collect", "s.toml", "r.json", cwd=place).stderr
    assert note in tacit("survey", "report", "s.toml", cwd=place).stderr


def test_a_survey_is_checked_before_it_goes_out(tacit, place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = tacit("survey", "check", "survey.toml", "--people", 200, cwd=place)
    assert shown.returncode == 0 and not shown.stderr
    assert "200 people give intervals within 14.3 points up and down; 1,574 people give 5 points." in shown.stdout
    assert "a yes makes it 25.0 % for its sender, a no 3.5 %" in shown.stdout
    assert "Warnings:\n· too few people" in shown.stdout
    assert "Warnings:" not in tacit("survey", "check", "survey.toml", cwd=place).stdout
    found = json.loads(tacit("survey", "check", "survey.toml", "--people", 200, "--json", cwd=place).stdout)
    assert [each["needed"] for each in found["questions"]] == [1574, 5949, 6483, 1840]
    assert found["people"] == 200 and len(found["doubts"]) == 1
    survey = load_survey(place / "survey.toml")
    (place / "r").write_text(survey.respond([0, 0, "000000", 0], ReplayBits(b"one")).to_json())
    tacit("survey", "collect", "survey.toml", "r", cwd=place)
    assert "1 report is stored already" in tacit("survey", "check", "survey.toml", cwd=place).stdout
    (place / "survey.toml").write_text((place / "survey.toml").read_text().replace("Habits", "Customs"))
    changed = tacit("survey", "check", "survey.toml", "--json", cwd=place)
    assert "whoever answers again loses epsilon 5.099 again" in json.loads(changed.stdout)["doubts"][0]


def test_what_two_machines_kept_is_put_together(tacit, place):
    survey, bits = load_survey(place / "survey.toml"), ReplayBits(b"two machines")
    sent = [survey.respond([0, 0, "000000", 0], bits).to_json() for _ in range(5)]
    for name, part in (("one", sent[:3]), ("two", sent[2:])):
        (place / f"{name}.jsonl").write_text("\n".join(part))
        tacit("survey", "collect", "survey.toml", f"{name}.jsonl", "--store", f"{name}.reports", cwd=place)
    both = tacit("survey", "collect", "survey.toml", "two.reports", "--store", "one.reports", cwd=place)
    assert both.stdout == "Taken 2, there already 1, bad 0; 5 reports in all.\n"
    (place / "other.toml").write_text((place / "survey.toml").read_text().replace("Habits", "Customs"))
    other = tacit("survey", "collect", "other.toml", "two.reports", cwd=place)
    assert other.returncode == 3 and "undo the change to the survey" in other.stderr


def test_a_line_that_was_cut_short_is_told(tacit, place):
    survey, bits = load_survey(place / "survey.toml"), ReplayBits(b"cut")
    (place / "r").write_text("\n".join(survey.respond([0, 0, "000000", 0], bits).to_json() for _ in range(3)))
    tacit("survey", "collect", "survey.toml", "r", cwd=place)
    kept = (place / "survey.reports").read_bytes()
    (place / "survey.reports").write_bytes(kept[:-1])
    told = "The last line of survey.reports is incomplete"
    shown = tacit("survey", "report", "survey.toml", cwd=place)
    assert told in shown.stderr and "2 reports" in shown.stdout
    merged = tacit("survey", "collect", "survey.toml", "survey.reports", "--store", "new.reports", cwd=place)
    assert told in merged.stderr and merged.stdout.startswith("Taken 2,")
    taken = tacit("survey", "collect", "survey.toml", "r", cwd=place)
    assert told in taken.stderr and taken.stdout.startswith("Taken 1, there already 2")
    assert not tacit("survey", "report", "survey.toml", cwd=place).stderr


def test_a_file_that_is_no_store_is_not_collected_into(tacit, place):
    (place / "thesis.json").write_text('{"name": "thesis"}')  # without an end of line, as programs write
    (place / "r").write_text(
        load_survey(place / "survey.toml").respond([0, 0, "000000", 0], ReplayBits(b"r")).to_json()
    )
    for kept in ("thesis.json", "r"):
        before = (place / kept).read_bytes()
        refused = tacit("survey", "collect", "survey.toml", "r", "--store", kept, cwd=place)
        assert refused.returncode == 3 and "not a store of reports" in refused.stderr
        assert (place / kept).read_bytes() == before


@pytest.mark.parametrize(
    ("out", "what"),
    [
        ("survey.toml", "survey.toml exists already"),
        ("dangling", "dangling exists already"),
        ("folder", "folder is a folder"),
        ("none/mine.jsonl", "there is no folder none"),
        ("y" * 300, "File name too long"),
    ],
)
def test_no_coins_are_drawn_for_a_report_that_cannot_be_written(tacit, place, out, what):
    (place / "folder").mkdir()
    (place / "dangling").symlink_to("nowhere")
    before = (place / "survey.toml").read_bytes()
    refused = tacit(
        "survey", "respond", "survey.toml", "--answers", "mine.toml", "--memo", "memo", "--out", out, cwd=place
    )
    assert refused.returncode == 2 and what in refused.stderr
    assert (place / "survey.toml").read_bytes() == before and not (place / "memo").exists()


def test_a_report_that_could_not_be_written_is_the_same_in_another_file(tacit, place, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    answer = ("survey", "respond", "survey.toml", "--answers", "mine.toml")
    with monkeypatch.context() as patch:
        patch.setattr("tacit.durable_files.make_file", full)
        failed = tacit(*answer, "--out", "one.jsonl", cwd=place)
    assert failed.returncode == 2 and "one.jsonl cannot be written: No space left on device" in failed.stderr
    first = tacit(*answer, "--out", "two.jsonl", cwd=place)
    assert "You have answered this survey before" in first.stderr
    assert (place / "two.jsonl").read_text() == tacit(*answer, cwd=place).stdout


def test_a_survey_is_not_begun_where_it_cannot_be_written(tacit, place):
    failed = tacit("survey", "init", "y" * 300, cwd=place)
    assert failed.returncode == 2 and "cannot be written: File name too long" in failed.stderr


def test_only_bad_reports_are_a_failure(tacit, place):
    for more in ((), ("--json",)):
        assert tacit("survey", "collect", "survey.toml", "-", *more, cwd=place, stdin="x\n").returncode == 3


def test_bad_reports_are_left_out_and_told_by_file_and_line(tacit, place):
    good = load_survey(place / "survey.toml").respond([0, 0, "000000", 0], ReplayBits(b"one")).to_json()
    lines = f'{good}\nnonsense\n{good[:-2]},7]}}\n{{"survey": 1}}\n'
    taken = tacit("survey", "collect", "survey.toml", "-", cwd=place, stdin=lines)
    assert taken.stdout.startswith("Taken 1, there already 0, bad 3; 1 report in all.")
    assert "· -, line 2 [report]: this is not JSON" in taken.stdout
    assert "line 3 [report]: a report has 4 answers" in taken.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("init",), 2, "exists already"),
        (("report", "survey.toml"), 3, "no reports to estimate from"),
        (("report", "survey.toml", "--chart", "x.txt"), 2, "no known suffix"),
        (("report", "none.toml"), 2, "cannot be read"),
        (("collect", "survey.toml"), 2, "--serve"),
        (("collect", "survey.toml", "none.jsonl"), 2, "cannot be read"),
        (("collect", "survey.toml", "--serve", "--host", "192.0.2.1"), 2, "--tls-self"),
        (("respond", "survey.toml", "--answers", "none.toml"), 2, "cannot be read"),
        (("respond", "http://127.0.0.1:9/"), 2, "does not answer"),
        (("respond", "http://192.0.2.1/"), 2, "is not encrypted"),
        (("respond", "http://survey.example:80/"), 2, "is not encrypted"),
        (("respond", "http://[::"), 2, "is no address"),
        (("respond", "https://127.0.0.1:9/", "--trust", "mine.toml"), 2, "no certificate in PEM"),
        (("respond", "survey.toml", "--at-most", "5"), 3, "more than --at-most 5"),
        (("check", "survey.toml", "--people", "0"), 2, "people"),
        (("collect", "survey.toml", "--serve", "--proxy", "192.0.2.7"), 2, "--insecure-behind-proxy"),
        (
            ("collect", "survey.toml", "--serve", "--insecure-behind-proxy", "--proxy", "proxy.example"),
            2,
            "not an address",
        ),
    ],
)
def test_a_mistake_is_told_with_an_exit_code(tacit, place, arguments, code, words):
    done = tacit("survey", *arguments, cwd=place)
    assert done.returncode == code
    assert words in done.stderr


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_self_made_certificate_is_named_and_can_be_trusted(tacit, place):
    command = [sys.executable, "-m", "tacit.cli.main", "survey", "collect", "survey.toml", "--serve", "--port", "0"]
    command += ["--tls-self", "--host", "0.0.0.0"]
    running = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert running.stdout is not None
    try:
        (port,) = re.findall(r"https://\S+:([0-9]+)/", running.stdout.readline())
        address = f"https://127.0.0.1:{port}/"
        answer = ("--answers", "mine.toml", "--yes")
        unknown = tacit("survey", "respond", address, *answer, cwd=place)
        assert unknown.returncode == 2 and "is not one that this machine trusts" in unknown.stderr
        assert "--trust FILE" in unknown.stderr
        trusted = ("--trust", "survey.tls.pem")
        elsewhere = tacit("survey", "respond", address.replace("127.0.0.1", "127.0.0.2"), *answer, *trusted, cwd=place)
        assert elsewhere.returncode == 2 and "is for another address" in elsewhere.stderr
        plain = tacit("survey", "respond", address.replace("https", "http"), *answer, cwd=place)
        assert plain.returncode == 2 and "does not answer" in plain.stderr
        sent = tacit("survey", "respond", address, *answer, *trusted, cwd=place)
        assert sent.stdout == "Thank you. It is counted.\n", sent.stderr
        (memo,) = (place / "state").rglob("*.json")
        assert json.loads(memo.read_text())["collector"] == address.rstrip("/")
    finally:
        running.send_signal(signal.SIGTERM)
        running.stdout.close()
        running.wait(20)


@pytest.mark.slow
def test_no_one_is_led_to_an_address_that_is_not_encrypted(tacit, place):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("location", "http://192.0.2.1/survey.json")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = tacit("survey", "respond", f"http://127.0.0.1:{server.server_port}/", cwd=place)
        server.shutdown()
    assert done.returncode == 2 and "is not encrypted" in done.stderr


def test_every_command_is_in_the_reference():
    text = DOCS.read_text(encoding="utf-8")
    for command in commands.app.registered_commands:
        assert f"`tacit survey {command.callback.__name__}" in text


@pytest.mark.slow
def test_the_guide_shows_what_happens(tacit, place, monkeypatch):
    page = (DOCS.parents[1] / "guide" / "survey.md").read_text(encoding="utf-8")
    (short,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (place / "short.toml").write_text(short)
    assert [question.kind for question in load_survey(place / "short.toml").questions] == ["yes-no", "number"]
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "90")
    exec(compile(code, "survey.md", "exec"), {})
    shown = tacit("survey", "check", "survey.toml", "--people", 200, cwd=place).stdout
    assert f"$ tacit survey check survey.toml --people 200\n{shown}" in page
    shown = tacit("survey", "collect", "survey.toml", "sent.jsonl", cwd=place).stdout
    assert f"$ tacit survey collect survey.toml sent.jsonl\n{shown}" in page
    shown = tacit("survey", "report", "survey.toml", cwd=place).stdout
    assert f"$ tacit survey report survey.toml --chart report.svg\n{shown}" in page
