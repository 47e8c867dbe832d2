"""Audits of programs and addresses: real processes, a real server, and the clock."""

from __future__ import annotations

import json
import os
import random
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support.counts import FULL
from typer.testing import CliRunner

from tacit.audit import Claim, audit_command, audit_url, program_run, programs, statistical
from tacit.audit import fetch as fetching
from tacit.audit.programs import _fingerprint, _read, _step
from tacit.cli.main import app
from tacit.errors import ParameterError

pytestmark = pytest.mark.slow

# What a row certainly changes is refuted by the fewest runs: of 24 on each input 20 are counted, and where all of one
# and none of the other have it, epsilon is at least 1.8 with confidence 0.99.
SAMPLES, FEW = (400, 100) if FULL else (24, 24)
# Times are told by thresholds, which are learned: of 100 audits with 60 runs all found what took 50 ms more, also where
# each run was late by another 20 ms on average.
TIMED = 400 if FULL else 60
SURE = 1 - 1e-9  # a true claim is refuted with at most this probability less than one
ONE, OTHER = [0, 1], [0]
# sh has no random numbers of its own
COIN = "n=$(od -An -N1 -tu1 /dev/urandom); if [ $((n % 4)) -eq 0 ]; then flip=1; else flip=0; fi; "
HAS_ONE = 'case "$0" in *1*) row=1;; *) row=0;; esac; '


@pytest.fixture(autouse=True)
def least(monkeypatch):
    """Lets an audit take as few runs as are made here."""
    for module in (programs, statistical):
        monkeypatch.setattr(module, "MIN_SAMPLES", min(FEW, statistical.MIN_SAMPLES))


def shell(script):
    return ["sh", "-c", script, "{}"]


@pytest.mark.parametrize(
    "script",
    [
        "echo $row",
        'if [ $row = 1 ]; then echo "one"; else echo "none"; fi',
        "exit $row",
        "if [ $row = 1 ]; then echo warning >&2; fi; echo 3",
        "if [ $row = 1 ]; then echo 3 4; else echo 3; fi",
        "if [ $row = 1 ]; then echo NaN; else echo 3; fi",
        "if [ $row = 1 ]; then echo 3; fi",
    ],
)
def test_whatever_a_program_gives_away_is_found(script):
    # values, texts, the exit status, errors, another form, NaN, nothing at all
    found = audit_command(shell(HAS_ONE + script), ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES, uses_time=False)
    assert found.is_refuted


def test_a_sound_program_is_not_refuted_and_a_wrong_claim_about_it_is(tmp_path):
    # Randomized response with a flip of 1/4: ln 3 = 1.0986; of fewer runs, with one of 1/16: ln 15 = 2.708. Each run
    # takes the next of coins that are the same in all runs of the test.
    flip, claim = (0.25, 1.1) if FULL else (0.0625, 2.71)
    coins, used, chance = tmp_path / "coins", tmp_path / "used", random.Random(1)
    coins.write_text("".join(f"{int(chance.random() < flip)}\n" for _ in range(4 * SAMPLES)), encoding="utf-8")
    used.touch()
    toss = f'n=$(wc -l < {used}); echo >> {used}; flip=$(sed -n "$((n + 1))p" {coins}); '
    script = HAS_ONE + toss + "echo $((row ^ flip))"
    found = audit_command(
        shell(script), ONE, OTHER, Claim.epsilon(claim), samples=SAMPLES, confidence=SURE, uses_time=False
    )
    assert not found.is_refuted
    wrong = audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.1), samples=SAMPLES, uses_time=False)
    assert wrong.is_refuted
    assert len(used.read_text(encoding="utf-8")) == 4 * SAMPLES  # no run has failed to toss


def test_time_that_depends_on_a_row_is_found_and_constant_time_is_not():
    planted = HAS_ONE + "if [ $row = 1 ]; then sleep 0.05; fi; echo 3"
    found = audit_command(shell(planted), ONE, OTHER, Claim.epsilon(0.5), samples=TIMED)
    assert found.is_refuted
    # it is the time alone: without it nothing is seen, however long it is
    called = planted if FULL else planted.replace("0.05", "0")
    unseen = audit_command(shell(called), ONE, OTHER, Claim.epsilon(0.5), samples=FEW, uses_time=False)
    assert not unseen.is_refuted
    constant = audit_command(
        shell(HAS_ONE + "echo 3"), ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES, confidence=SURE
    )
    assert not constant.is_refuted


def test_the_input_is_read_from_standard_input_where_no_argument_holds_it():
    found = audit_command(["cat"], ONE, OTHER, Claim.epsilon(1), samples=FEW, uses_time=False)
    assert found.is_refuted


@pytest.fixture(scope="module")
def server():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(self.path.rpartition("/")[2])

        def do_POST(self):
            self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def answer(self, data):
            has_row = "1" in data.replace("%2C", "").replace("%5B", "").replace("%5D", "")
            mode = self.path.split("/")[1]
            if mode == "slow" and has_row:
                time.sleep(0.03)
            body = {"sound": str(int(has_row ^ (coin.random() < 0.25))), "dict": json.dumps({"n": has_row})}.get(
                mode, "3"
            )
            fails = mode == "failing" or (mode == "status" and has_row)
            self.send_response(500 if fails else 200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments):
            pass

    coin = random.Random(1)
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.mark.parametrize("path", ["/dict/{}", "/dict", "/status"])
def test_what_an_address_gives_away_is_found(server, path):
    found = audit_url(server + path, ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES, uses_time=False)
    assert found.is_refuted


def test_the_time_of_an_address_is_found(server):
    found = audit_url(f"{server}/slow", ONE, OTHER, Claim.epsilon(0.5), samples=TIMED)
    assert found.is_refuted


def test_a_sound_address_is_not_refuted(server):
    claim = Claim.epsilon(1.1)
    assert not audit_url(f"{server}/sound", ONE, OTHER, claim, samples=SAMPLES, confidence=SURE).is_refuted


def test_the_commands_print_the_verdict_and_exit_by_it(server, tmp_path):
    options = ["--claim", "epsilon=0.5", "--one", "[0, 1]", "--other", "[0]", "-n", str(FEW), "--no-time"]
    runner = CliRunner()
    shown = runner.invoke(app, ["audit", "command", *options, "--", "echo", "{}"])
    assert shown.exit_code == 7
    assert "echo {}\nepsilon = 0.5: refuted." in shown.stdout
    told = runner.invoke(app, ["audit", "url", f"{server}/status", *options, "--json"])
    assert told.exit_code == 7
    assert json.loads(told.stdout)["refuted"]
    card = tmp_path / "card.json"
    fine = runner.invoke(app, ["audit", "command", *options, "--card", str(card), "--", "echo", "3"])
    assert fine.exit_code == 0
    assert json.loads(card.read_text(encoding="utf-8"))["title"] == "echo"  # an argument may be a secret


def test_mistakes_are_named(server):
    claim = Claim.epsilon(1)
    for call, arguments, options, name in (
        (audit_command, ["./no-such-program"], {}, "command"),
        (audit_command, [], {}, "command"),
        (audit_command, ["cat"], {"samples": 5}, "samples"),
        (audit_command, ["cat"], {"timeout": 0}, "timeout"),
        (audit_url, "file:///etc/passwd", {}, "url"),
        (audit_url, "http://127.0.0.1:9/", {}, "url"),
    ):
        with pytest.raises(ParameterError, match=name) as caught:
            call(arguments, 1, 2, claim, **options)
        assert caught.value.fix
    with pytest.raises(ParameterError, match="JSON"):
        audit_command(["cat"], {1, 2}, 2, claim)


def test_a_run_that_does_not_end_is_an_outcome():
    script = HAS_ONE + "if [ $row = 1 ]; then sleep 5; fi"
    found = audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.5), samples=FEW, timeout=0.05, uses_time=False)
    assert found.is_refuted


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["false"], "failed in every run on both inputs, with status 1"),
        (["sh", "/nonexistent.sh", "{}"], "failed in every run"),
        (["sh", "-c", "echo $$; exit $(($$ % 2 + 3))"], "failed in every run on both inputs, with status 3, 4"),
        (["/nonexistent"], "cannot be run"),
    ],
    ids=str,
)
def test_a_program_that_never_works_has_no_verdict(words, what):
    with pytest.raises(ParameterError, match=f"command: .*{what}") as caught:
        audit_command(words, ONE, OTHER, Claim.epsilon(1), samples=FEW, uses_time=False)
    assert caught.value.fix


def test_a_program_that_always_times_out_is_ended_early():
    begin = time.monotonic()
    with pytest.raises(
        ParameterError, match=r"command: sleep has not ended within 0\.02 seconds in any of 20 runs"
    ) as caught:
        audit_command(["sleep", "5"], ONE, OTHER, Claim.epsilon(1), samples=10_000, timeout=0.02)
    assert caught.value.fix == "take a longer timeout: timeout=0.2"
    assert time.monotonic() - begin < 60  # of 400 seconds that all runs take


def test_a_program_that_fails_sometimes_or_tells_by_how_it_fails_is_audited():
    claim = Claim.epsilon(1)
    half = audit_command(
        ["sh", "-c", COIN + "exit $flip"], ONE, OTHER, claim, samples=FEW, confidence=SURE, uses_time=False
    )
    assert not half.is_refuted
    assert audit_command(
        shell(HAS_ONE + "exit $((3 + row))"), ONE, OTHER, claim, samples=FEW, uses_time=False
    ).is_refuted


def test_an_address_that_never_answers_has_no_verdict(server):
    with pytest.raises(ParameterError, match="url: every response on both inputs is an error: 500") as caught:
        audit_url(f"{server}/failing", ONE, OTHER, Claim.epsilon(1), samples=FEW, uses_time=False)
    assert caught.value.fix


@pytest.mark.parametrize(("call", "first"), [(audit_command, ["cat"]), (audit_url, "http://127.0.0.1:9/{}")])
def test_equal_inputs_test_nothing(call, first):
    for one, other in (([1], [1]), ([1], (1,)), ("[1]", [1])):  # as JSON they are the same
        with pytest.raises(ParameterError, match="other: is the same input as one"):
            call(first, one, other, Claim.epsilon(1))


def test_what_is_said_is_read_as_json_or_as_text():
    assert _read(b"3\n") == 3
    assert _read(b"[1, [2]]") == [1, [2]]
    assert _read(b'{"b": 1, "a": 2}') == '{"a": 2, "b": 1}'
    assert _read(b"3 4") == "3 4"
    assert _read(b"\xff") == "\ufffd"
    assert [_step(seconds) for seconds in (0.0, 1e-4, 2e-4, 0.1)] == [0, 0, 4, 40]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"\xff", b"\xfe"),
        (b"5 ", b"5"),
        (b"5\n", b"5"),
        (b"9007199254740993", b"9007199254740992"),
        (b"0.1", b"0.10000000000000000001"),
        (b"3.10", b"3.1"),
        (b"1e2", b"1E2"),
        (b"-0", b"0"),
        (b'"a"', b"a"),
        (b'{"a": 1, "a": 2}', b'{"a": 2}'),
        (b"[1,2]", b"[1, 2]"),
        (b"9" * 400, b"9" * 399 + b"8"),
    ],
)
def test_outputs_that_are_read_alike_have_different_fingerprints(first, second):
    assert _fingerprint(first) != _fingerprint(second)


def test_numbers_of_one_layout_share_a_fingerprint():
    # else each output of a continuous mechanism would be a category of its own
    assert _fingerprint(b"3.140000\n") == _fingerprint(b"2.718282\n") == "0.000000\n"
    assert _fingerprint(b"[1, 2]") == _fingerprint(b"[3, 4]")
    assert _fingerprint(b"") == "nothing"
    # a reading and a fingerprint give the bytes back: numbers by chance, in layouts by chance
    coin = random.Random(3)
    seen = {}
    for _ in range(20_000 if FULL else 4_000):  # of 732 texts
        text = f"{coin.randint(-30, 30) / 10:.{coin.randint(0, 3)}f}{coin.choice(['', chr(10), ' '])}".encode()
        key = repr(_read(text)), _fingerprint(text)
        assert seen.setdefault(key, text) == text


@pytest.mark.parametrize(
    "script",
    [
        'if [ $row = 1 ]; then printf "\\377"; else printf "\\376"; fi',
        "if [ $row = 1 ]; then echo 9007199254740993; else echo 9007199254740992; fi",
        "if [ $row = 1 ]; then echo Bob >&2; else echo nobody >&2; fi; echo 3",
    ],
)
def test_bytes_that_are_read_alike_are_told_apart(script):
    found = audit_command(shell(HAS_ONE + script), ONE, OTHER, Claim.epsilon(0.5), samples=FEW, uses_time=False)
    assert found.is_refuted


def test_json_that_is_nested_too_deeply_is_a_text():
    assert _read(b"[" * 100_000) == "[" * 100_000
    assert _read(b"[" * 60 + b"]" * 60) == "[" * 60 + "]" * 60
    assert _read(b"[" * 900 + b"]" * 900) == "[" * 900 + "]" * 900


def test_a_run_that_does_not_end_leaves_no_process_behind(tmp_path):
    numbers = tmp_path / "numbers"
    script = f"{HAS_ONE}if [ $row = 1 ]; then sleep 41 & echo $! >> {numbers}; wait; fi"
    options = {"samples": FEW, "timeout": 0.05, "uses_time": False}
    assert audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.5), **options).is_refuted
    started = [int(line) for line in numbers.read_text(encoding="utf-8").split()]
    assert started
    until = time.monotonic() + 30
    while left := [number for number in started if is_running(number)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def is_running(number):
    try:
        os.kill(number, 0)
        with open(f"/proc/{number}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.fixture(scope="module")
def broken_server():
    """Fails in the way that the path names, for one of the inputs."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            line = self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            head, mode = b"HTTP/1.1 200 OK\r\n", line.split(b"/")[1] if b"/with " in line else b""
            if mode == b"drop":
                return
            if mode in {b"drip", b"headers"}:
                try:
                    self.wfile.write(head + (b"\r\n" if mode == b"drip" else b"X: "))
                    while True:
                        self.wfile.write(b"5")
                        time.sleep(0.02)
                except OSError:
                    return
            said = {
                b"short": head + b"Content-Length: 10\r\n\r\n5",
                b"garbage": b"hello\r\n\r\n",
                b"long": head + b"\r\n" + b"5" * 5000,
            }
            self.wfile.write(said.get(mode, head + b"Content-Length: 1\r\n\r\n5"))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", ["drop", "short", "garbage", "long"])
def test_a_response_that_fails_is_an_outcome(broken_server, mode, monkeypatch):
    monkeypatch.setattr(fetching, "MAX_BODY", 1000)
    address = f"{broken_server}/{mode}/{{}}"
    options = {"samples": FEW, "uses_time": False, "timeout": 5}
    assert audit_url(address, "with", "without", Claim.epsilon(0.5), **options).is_refuted


@pytest.mark.parametrize("mode", ["drip", "headers"])
def test_the_time_limit_is_of_the_whole_request(broken_server, mode):
    import urllib.request

    begin, before = time.monotonic(), threading.active_count()
    found = fetching.fetch(urllib.request.Request(f"{broken_server}/{mode}/with"), 0.3)
    assert found.status == "timeout"
    assert 0.25 < time.monotonic() - begin < 30  # of an answer without end
    until = time.monotonic() + 30
    while threading.active_count() > before:  # neither the request nor the handler goes on
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_program_that_writes_without_end_is_ended(stream, monkeypatch):
    monkeypatch.setattr(program_run, "MAX_OUTPUT", 1000)
    begin = time.monotonic()
    status, out, err = program_run.run_program(["sh", "-c", f"while :; do echo {'x' * 99}{stream}; done"], None, 30)
    assert (status, max(len(out), len(err)), time.monotonic() - begin < 25) == ("too much output", 1000, True)
    # that it does is an outcome, and so is whether
    script = HAS_ONE + f"if [ $row = 1 ]; then while :; do echo {'x' * 99}{stream}; done; fi"
    found = audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.5), samples=FEW, uses_time=False)
    assert found.is_refuted


def test_a_large_input_and_a_large_output_pass_at_once():
    # more than any pipe holds, read and written in turns; and a program that does not read what it is given
    text = b"".join(b"%07d\n" % number for number in range(200_000))
    assert program_run.run_program(["cat"], text, 30) == (0, text, b"")
    assert program_run.run_program(["true"], text, 30) == (0, b"", b"")
    assert program_run.run_program(["sh", "-c", "echo a; echo b >&2; exit 3"], None, 30) == (3, b"a\n", b"b\n")


def test_inputs_and_limits_that_cannot_be_passed_on_are_named():
    claim = Claim.epsilon(1)
    for call, first, one, options, name in (
        (audit_command, ["echo", "{}"], "a\0b", {}, "one"),
        (audit_command, ["cat"], "\ud800", {}, "one"),
        (audit_command, ["ec\0ho"], 1, {}, "command"),
        (audit_command, ["true"], 1, {"timeout": 1e30}, "timeout"),
        (audit_command, ["true"], 1, {"timeout": 10**400}, "timeout"),
        (audit_url, "http://127.0.0.1:9/{}", "\ud800", {}, "one"),
        (audit_url, "http://127.0.0.1:9/a b", 1, {}, "url"),
        (audit_url, "http://[::1/", 1, {}, "url"),
        (audit_url, "http://", 1, {}, "url"),
    ):
        with pytest.raises(ParameterError, match=name) as caught:
            call(first, one, 2, claim, samples=FEW, **options)
        assert caught.value.fix
    # standard input holds what an argument cannot
    assert audit_command(["cat"], "a\0b", "c", claim, samples=FEW, uses_time=False).is_refuted
