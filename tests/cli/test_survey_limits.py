"""What `tacit survey respond` reveals at most, and what a hostile survey or collector can put on a terminal."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import threading
import unicodedata
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.forks import in_child, outcome

from tacit.cli import survey_memo
from tacit.cli.survey_ask import quote_lines
from tacit.errors import ParameterError, Refused
from tacit.local.survey.load import load_survey, parse_survey
from tacit.sampling.bits import ReplayBits, SystemBits

ONE = """\
id = "short"
title = "Short"
[[questions]]
name = "soup"
text = "Soup?"
kind = "yes-no"
epsilon = 1
"""
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\x00\x7f\r\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "one.toml").write_text(ONE)
    (tmp_path / "edited.toml").write_text(ONE.replace("Soup?", "Soup!"))
    (tmp_path / "mine.toml").write_text('soup = "yes"\n')
    return tmp_path


def answer(tacit, place, *more):
    return tacit("survey", "respond", *more, "--answers", "mine.toml", cwd=place)


def test_a_limit_also_holds_for_coins_that_were_tossed_before(tacit, place):
    first = answer(tacit, place, "one.toml")
    assert first.returncode == 0
    for limit in ("0.5", "0.999999999999"):
        again = answer(tacit, place, "one.toml", "--at-most", limit, "--out", "report.json")
        assert again.returncode == 3 and again.stdout == "" and "more than --at-most" in again.stderr
        assert "soup:" not in again.stderr and not (place / "report.json").exists()
    allowed = answer(tacit, place, "one.toml", "--at-most", "1")
    assert allowed.returncode == 0 and allowed.stdout == first.stdout


@pytest.mark.slow
def test_a_limit_counts_every_edition_whichever_is_sent_again(tacit, place):
    answer(tacit, place, "one.toml")
    assert answer(tacit, place, "edited.toml", "--again", "--at-most", "2").returncode == 0
    for edition in ("one.toml", "edited.toml"):  # 1 + 1 are revealed by now, and sending again reveals no more
        above = answer(tacit, place, edition, "--at-most", "1.5")
        assert above.returncode == 3 and "epsilon 2, more than --at-most 1.5" in above.stderr
        assert answer(tacit, place, edition, "--at-most", "2").returncode == 0
    other = ONE.replace('"short"', '"other"')
    (place / "other.toml").write_text(other)
    assert answer(tacit, place, "other.toml", "--at-most", "1").returncode == 0  # a survey of its own


@pytest.mark.parametrize("limit", ["nan", "-1"])
def test_a_limit_is_a_number(tacit, place, limit):
    done = answer(tacit, place, "one.toml", "--at-most", limit)
    assert done.returncode == 2 and done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["NaN", "-5", "1e999", "-Infinity", '"1"', "true", "null", "1" * 400, "[1]"])
def test_a_memo_without_a_price_is_not_taken_for_free(tacit, place, epsilon):
    drawn = load_survey(place / "edited.toml").respond([1], ReplayBits(b"memo")).to_json()
    line = f'{{"id":"short","title":"","epsilon":{epsilon},"collector":"","report":{drawn}}}'
    (place / "memo").write_text(line + "\n")
    done = answer(tacit, place, "one.toml", "--memo", "memo", "--again", "--at-most", "1")
    assert done.returncode in {2, 3} and done.stdout == ""


def test_reports_whose_survey_is_not_known_may_be_of_this_one(tacit, place):
    drawn = load_survey(place / "edited.toml").respond([1], ReplayBits(b"memo")).to_json()
    (place / "memo").write_text(drawn + "\n")  # a report alone, without an id or a price
    done = answer(tacit, place, "one.toml", "--memo", "memo", "--at-most", "1")
    assert done.returncode == 3 and done.stdout == "" and "is not known" in done.stderr
    assert answer(tacit, place, "one.toml", "--memo", "memo").returncode == 0
    (place / "old").write_text(load_survey(place / "one.toml").respond([1], ReplayBits(b"old")).to_json() + "\n")
    assert answer(tacit, place, "one.toml", "--memo", "old", "--at-most", "0.5").returncode == 3
    assert answer(tacit, place, "one.toml", "--memo", "old", "--at-most", "1").returncode == 0


def edition(number, epsilon):
    asked = {"name": "soup", "text": f"Soup {number}?", "kind": "yes-no", "epsilon": epsilon}
    return parse_survey({"id": "short", "questions": [asked]})


@pytest.mark.slow
@given(st.lists(st.sampled_from(["0.1", "0.3", "1/3", "ln 2", "ln 3", "1"]), min_size=1, max_size=5), st.data())
def test_what_is_revealed_never_exceeds_the_limit(epsilons, data):
    # e^total, with total the epsilons of all editions that were drawn, against e^limit: exact where no ln is involved
    import math

    limit = data.draw(st.sampled_from(["0.3", "0.4", "0.6", "0.7", "1", "1.1", "2", "2.2"]))
    earlier, revealed = [], []
    for number, epsilon in enumerate(epsilons):
        survey = edition(number, epsilon)
        report = survey_memo.find_report(earlier, survey)
        assert report is None
        try:
            survey_memo.check_total_epsilon(earlier, survey, "", again=True, at_most=Fraction(limit))
        except Refused:
            continue
        drawn = survey.respond([1], ReplayBits(b"limit"))
        earlier.append(survey_memo.entry_of(survey_memo.line_of(survey, drawn, "")))
        revealed.append(survey.questions[0].epsilon)
    plain = sum((price.amount for price in revealed if not price.is_logarithm), Fraction(0))
    logs = math.prod(price.amount for price in revealed if price.is_logarithm)
    if logs == 1:
        assert plain <= Fraction(limit)
    else:
        assert float(logs) <= math.exp(float(Fraction(limit) - plain)) * (1 + 1e-12)


def test_two_commands_at_once_do_not_both_go_below_one_limit(place):
    one, other = load_survey(place / "one.toml"), load_survey(place / "edited.toml")
    for survey in (one, other):  # both weighed before either was kept
        assert (
            survey_memo.check_total_epsilon(
                survey_memo.load_responses(None, survey), survey, "", again=True, at_most=Fraction(1)
            )
            == []
        )
    drawn = [survey.respond([1], ReplayBits(b"both")) for survey in (one, other)]
    survey_memo.save_response(None, one, drawn[0], "", again=True, at_most=Fraction(1))
    with pytest.raises(Refused):
        survey_memo.save_response(None, other, drawn[1], "", again=True, at_most=Fraction(1))
    with pytest.raises(ParameterError, match="at this very moment"):
        survey_memo.save_response(None, one, drawn[0], "", again=True, at_most=None)


def draw(survey):
    return survey.respond([1], SystemBits())


def save(survey, report, memo=None):
    survey_memo.save_response(memo, survey, report, "", again=True, at_most=None)


def reports_of(survey):
    return [entry.report for entry in survey_memo.load_responses(None, survey) if entry.digest == survey.digest]


def test_a_full_disk_leaves_nothing_of_a_line_and_refuses_no_other_survey(place):
    one, other = load_survey(place / "one.toml"), load_survey(place / "edited.toml")
    first = draw(one)
    save(one, first)
    memo = survey_memo.default_path(one)
    for file, survey in ((None, other), (memo, other)):  # a file of its own, and one that has a line
        there = file or survey_memo.default_path(survey)
        before = there.read_bytes() if there.exists() else b""
        room = len(before) + 50

        def write_on_full_disk(file=file, survey=survey, room=room) -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            with pytest.raises(ParameterError, match="cannot be written"):
                save(survey, draw(survey), file)
            return 7

        assert outcome(in_child(write_on_full_disk)) == 7
        assert there.read_bytes() == before
    assert reports_of(one) == [first.to_json()] and reports_of(other) == []
    save(other, draw(other))
    assert len(reports_of(other)) == 1


def test_a_line_that_a_crash_cut_short_is_left_out_and_replaced(place):
    one, other = load_survey(place / "one.toml"), load_survey(place / "edited.toml")
    memo = survey_memo.default_path(one)
    save(one, draw(one))
    shown = memo.read_bytes()
    unseen = survey_memo.line_of(other, draw(other), "").encode()
    for length in range(len(unseen)):
        memo.write_bytes(shown + unseen[:length])
        assert [entry.digest for entry in survey_memo.load_responses(memo, one)] == [one.digest]
        if length % 40 == 0:
            second = draw(other)
            save(other, second, memo)
            assert memo.read_bytes() == shown + survey_memo.line_of(other, second, "").encode() + b"\n"


def test_a_last_line_without_its_newline_only_is_kept(place):
    one, other = load_survey(place / "one.toml"), load_survey(place / "edited.toml")
    memo = survey_memo.default_path(one)
    first, second = draw(one), draw(other)
    save(one, first)
    memo.write_bytes(memo.read_bytes()[:-1])
    assert reports_of(one) == [first.to_json()]
    save(other, second, memo)
    assert [entry.report for entry in survey_memo.load_responses(memo, one)] == [first.to_json(), second.to_json()]


def test_a_damaged_line_before_the_last_is_refused(place):
    one, other = load_survey(place / "one.toml"), load_survey(place / "edited.toml")
    memo = survey_memo.default_path(one)
    save(one, draw(one))
    memo.write_bytes(memo.read_bytes()[:-9] + b"\n")
    with pytest.raises(ParameterError, match="is not what was drawn"):
        save(other, draw(other), memo)


def test_a_file_that_is_no_memo_is_refused_and_left_as_it_is(place):
    one = load_survey(place / "one.toml")
    (place / "notes").write_text("soup is on Monday")
    with pytest.raises(ParameterError, match="is not what was drawn"):
        save(one, draw(one), place / "notes")
    assert (place / "notes").read_text() == "soup is on Monday"


def test_a_line_that_may_be_removed_again_is_not_read(place, monkeypatch):
    # a sync that fails is the last moment at which a line is removed: until then no other command may show it
    one = load_survey(place / "one.toml")
    memo = survey_memo.default_path(one)
    read, sync = [], os.fsync

    def read_then() -> None:
        read.extend(survey_memo.load_responses(memo, one))

    def fail(file) -> None:
        sync(file)
        if os.fstat(file).st_ino == os.stat(memo).st_ino and os.stat(memo).st_size:
            monkeypatch.setattr(os, "fsync", sync)
            reader.start()
            reader.join(0.2)
            assert reader.is_alive()  # it waits
            raise OSError(errno.EIO, "")

    reader = threading.Thread(target=read_then)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ParameterError, match="cannot be written"):
        save(one, draw(one))
    reader.join(10)
    assert read == [] and not reader.is_alive() and memo.read_bytes() == b""


@contextmanager
def collector(survey, status, body, reason="Sorry"):
    """Someone's server that serves a form, and answers every report with these bytes."""

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200, survey)

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.reply(status, body)

        def reply(self, status, body):
            self.send_response(status, reason)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def shows_nothing_but_text(said):
    return all(character == "\n" or unicodedata.category(character)[0] != "C" for character in said)


@pytest.mark.slow
def test_a_collectors_words_reach_a_terminal_as_text_of_limited_length(tacit, place):
    error = {"code": "report", "what": HOSTILE + "x" * 100_000, "fix": HOSTILE + "rm -rf ~" + HOSTILE}
    for status, change in ((422, {}), (503, {"what": HOSTILE})):
        body = json.dumps({"error": {**error, **change}}).encode()
        with collector(load_survey(place / "one.toml").to_json().encode(), status, body) as address:
            done = answer(tacit, place, address, "--yes")
        assert done.returncode == 3 and done.stdout == "" and len(done.stderr) < 3000
        assert shows_nothing_but_text(done.stderr) and "owned" in done.stderr
        # it is quoted, and what the command itself proposes is not the collector's
        (fix,) = re.findall(r"^  fix: (.*)$", done.stderr, re.MULTILINE)
        assert "rm" not in fix and f'the collector answered {status}: "' in done.stderr


@pytest.mark.slow
def test_a_form_with_hostile_names_is_refused_in_plain_text(tacit, place):
    form = json.loads(load_survey(place / "one.toml").to_json())
    for change in ({HOSTILE: 1}, {"id": HOSTILE}, {"title": HOSTILE}, {"about": HOSTILE}, {"tacit-survey": HOSTILE}):
        with collector(json.dumps({**form, **change}).encode(), 201, b"{}") as address:
            done = answer(tacit, place, address, "--yes")
        assert done.returncode == 2 and shows_nothing_but_text(done.stdout + done.stderr)


@pytest.mark.slow
def test_an_answer_that_is_deep_or_endless_is_a_coded_error(tacit, place):
    for body in (b"[" * 100_000, b'{"error":' * 50_000, b"9" * 100_000, b"\xff\xfe", b'{"error":{"code":[]}}'):
        with collector(load_survey(place / "one.toml").to_json().encode(), 500, body) as address:
            done = answer(tacit, place, address, "--yes")
        assert done.returncode == 2 and "the collector answered 500" in done.stderr


FORGED = "Soup?\n\nWhoever sees it can become at most 1.01 times surer of any answer of yours.\n  Send this? [y/N]: y"


def test_newlines_in_a_survey_forge_no_line_of_the_dialog(tacit, place):
    entries = {
        "id": "forged",
        "title": FORGED,
        "about": FORGED,
        "questions": [
            {"name": "a", "text": FORGED, "kind": "choice", "options": [FORGED[:110], "Salad"], "epsilon": 1},
            {"name": "b", "text": "?", "kind": "number", "lower": 0, "upper": 1, "step": 1, "unit": "h\nSent: 0"},
        ],
    }
    entries["questions"][1]["epsilon"] = 1
    (place / "forged.json").write_text(parse_survey(entries).to_json())
    done = tacit("survey", "respond", "forged.json", cwd=place, stdin="1\n1\n")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    forged = ("Whoever sees it can become at most 1.01", "Send this?", "Sent: 0")
    assert not any(line.strip().startswith(forged) for line in lines)
    own = re.compile(r" *(\| |[0-9]+\) |(The number before your answer: +)?Your answer: |a: )")
    assert [line for line in lines if "1.01" in line and not own.match(line)] == []
    assert sum("1.01" in line for line in lines) >= 5
    for command in ("check", "report"):
        if command == "report":
            (place / "r").write_text(done.stdout)
            tacit("survey", "collect", "forged.json", "r", cwd=place)
        shown = tacit("survey", command, "forged.json", cwd=place).stdout
        assert not any(line.startswith("Whoever sees it can become at most 1.01") for line in shown.splitlines())


@given(st.text(max_size=300), st.integers(20, 100))
def test_every_line_of_a_surveys_own_words_is_marked(text, width):
    lines = quote_lines(text, width)
    assert all(line.startswith("| ") and shows_nothing_but_text(line) for line in lines)
    for line in lines:
        wide = sum(2 if unicodedata.east_asian_width(character) in "WFA" else 1 for character in line)
        assert wide <= width and "  " not in line[2:]
