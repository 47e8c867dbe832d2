"""Audits of programs and addresses: real processes, a real server, and the clock."""

from __future__ import annotations

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support.counts import FULL
from typer.testing import CliRunner

from tacit.audit import Claim, audit_command, audit_url
from tacit.audit.programs import _read, _step
from tacit.cli.main import app
from tacit.errors import ParameterError

pytestmark = pytest.mark.slow

SAMPLES = 400 if FULL else 100
SURE = 1 - 1e-9  # a true claim is refuted with at most this probability less than one
ONE, OTHER = [0, 1], [0]
# sh has no random numbers of its own
COIN = "n=$(od -An -N1 -tu1 /dev/urandom); if [ $((n % 4)) -eq 0 ]; then flip=1; else flip=0; fi; "
HAS_ONE = 'case "$0" in *1*) row=1;; *) row=0;; esac; '


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


def test_a_sound_program_is_not_refuted_and_a_wrong_claim_about_it_is():
    # randomized response with a flip of 1/4: ln 3 = 1.0986
    script = HAS_ONE + COIN + "echo $((row ^ flip))"
    found = audit_command(
        shell(script), ONE, OTHER, Claim.epsilon(1.1), samples=SAMPLES, confidence=SURE, uses_time=False
    )
    assert not found.is_refuted
    wrong = audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.1), samples=SAMPLES, uses_time=False)
    assert wrong.is_refuted


def test_time_that_depends_on_a_row_is_found_and_constant_time_is_not():
    planted = HAS_ONE + "if [ $row = 1 ]; then sleep 0.05; fi; echo 3"
    found = audit_command(shell(planted), ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES)
    assert found.is_refuted
    assert "output[0]" in found.event
    # it is the time alone: without it nothing is seen
    unseen = audit_command(shell(planted), ONE, OTHER, Claim.epsilon(0.5), samples=100, uses_time=False)
    assert not unseen.is_refuted
    constant = audit_command(
        shell(HAS_ONE + "echo 3"), ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES, confidence=SURE
    )
    assert not constant.is_refuted


def test_the_input_is_read_from_standard_input_where_no_argument_holds_it():
    found = audit_command(["cat"], ONE, OTHER, Claim.epsilon(1), samples=100, uses_time=False)
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
            self.send_response(500 if mode == "status" and has_row else 200)
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
    found = audit_url(f"{server}/slow", ONE, OTHER, Claim.epsilon(0.5), samples=SAMPLES)
    assert found.is_refuted
    assert "output[0]" in found.event


def test_a_sound_address_is_not_refuted(server):
    claim = Claim.epsilon(1.1)
    assert not audit_url(f"{server}/sound", ONE, OTHER, claim, samples=SAMPLES, confidence=SURE).is_refuted


def test_the_commands_print_the_verdict_and_exit_by_it(server, tmp_path):
    options = ["--claim", "epsilon=0.5", "--one", "[0, 1]", "--other", "[0]", "-n", "100", "--no-time"]
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
    assert json.loads(card.read_text(encoding="utf-8"))["title"] == "echo 3"


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
    found = audit_command(shell(script), ONE, OTHER, Claim.epsilon(0.5), samples=100, timeout=0.05, uses_time=False)
    assert found.is_refuted


def test_what_is_said_is_read_as_json_or_as_text():
    assert _read(b"3\n") == 3
    assert _read(b"[1, [2]]") == [1, [2]]
    assert _read(b'{"b": 1, "a": 2}') == '{"a": 2, "b": 1}'
    assert _read(b"3 4") == "3 4"
    assert _read(b"\xff") == "\ufffd"
    assert [_step(seconds) for seconds in (0.0, 1e-4, 2e-4, 0.1)] == [0, 0, 4, 40]
