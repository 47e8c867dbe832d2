"""Alerts when a budget runs low, with real webhooks: one that answers, a slow one, one that fails, one that is down."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import tacit
from tacit.curator.all_budgets import AllBudgets
from tacit.curator.curator import Curator
from tacit.errors import ParameterError
from tacit.ledger import reader, transaction
from tacit.serve.alert_notes import AlertNotes, read_notes, write_notes
from tacit.serve.alert_webhook import ADDRESS, TOKEN, AlertWebhook
from tacit.serve.budget_alerts import OVERALL, BudgetAlert, BudgetAlerts, find_alerts, list_shares, measure_budgets
from tacit.serve.metrics import Metrics

PATIENCE = 20.0  # seconds for what takes a moment


@dataclass
class Hook:
    """A web server that notes what it is sent, and answers as it is told to."""

    statuses: list[int] = field(default_factory=list)  # of the next answers; 200 after them
    delay: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)  # no answer is held back any longer
    received: list[tuple[dict[str, Any], dict[str, str]]] = field(default_factory=list)
    port: int = 0
    on_post: Callable[[], None] = lambda: None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?secret=s3cret"

    def run(self) -> ThreadingHTTPServer:
        server = self.bind()
        self.listen(server)
        return server

    def bind(self) -> ThreadingHTTPServer:
        """A server that is down, on a port that is kept for it."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.on_post()
                hook.received.append((body, dict(self.headers)))
                hook.ended.wait(hook.delay)
                self.send_response(hook.statuses.pop(0) if hook.statuses else 200)
                self.send_header("Location", f"http://127.0.0.1:{hook.port}/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        server.server_bind()
        self.port = server.server_address[1]
        return server

    def listen(self, server: ThreadingHTTPServer) -> None:
        server.server_activate()
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def told(self) -> list[tuple[str, float]]:
        return [(body["account"], body["threshold"]) for body, _ in self.received]


@pytest.fixture
def hook(monkeypatch) -> Iterator[Hook]:
    monkeypatch.setenv("no_proxy", "*")
    made = Hook()
    server = made.run()
    yield made
    made.ended.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def curator(tmp_path) -> Iterator[Curator]:
    policy = {
        "privacy": {"epsilon": 10},
        "ledger": {"store": str(tmp_path / "x.ledger")},
        "tables": {"t": {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9}}}},
        "analysts": {"ada": {"epsilon": 1}, "bo": {"epsilon": 10}, "cy": {"epsilon": 1, "refresh": "monthly"}},
    }
    with tacit.open(policy, data={"t": pa.table({"x": [1, 2, 3] * 50})}) as opened:
        yield opened


def spend(curator: Curator, name: str, epsilon: float, column: str = "n") -> None:
    curator.analyst(name).ask(f"SELECT COUNT(*) AS {column} FROM t", epsilon=epsilon)


def wait_for(check: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def watching(curator, tmp_path) -> Iterator[Callable[..., BudgetAlerts]]:
    started: list[BudgetAlerts] = []

    def begin(hook: Hook | None, **settings: Any) -> BudgetAlerts:
        webhook = None if hook is None else AlertWebhook(hook.address, "t0ken", timeout=settings.pop("timeout", 5.0))
        options = {"poll": 0.02, "pause": 0.02, "sent": tmp_path / "clinic.alerts", **settings}
        started.append(BudgetAlerts(lambda: curator, webhook=webhook, **options))
        started[-1].start()
        return started[-1]

    yield begin
    for each in started:
        each.stop(PATIENCE)


def test_thresholds_are_those_of_the_ledger(curator):
    def reached() -> list[tuple[str, Fraction]]:
        found = find_alerts(AllBudgets.of(curator.policy, curator.ledger), (Fraction(95, 100), Fraction(8, 10)))
        return [(alert.account, alert.threshold) for alert in found]

    spend(curator, "ada", 0.79)
    assert reached() == []
    spend(curator, "ada", 0.01)  # 0.8 of 1
    assert reached() == [("ada", Fraction(8, 10))]
    spend(curator, "bo", 8.7)  # 9.5 of 10 in all
    assert reached() == [
        (OVERALL, Fraction(8, 10)),
        (OVERALL, Fraction(95, 100)),
        ("ada", Fraction(8, 10)),
        ("bo", Fraction(8, 10)),
    ]
    shares = list_shares(AllBudgets.of(curator.policy, curator.ledger))
    assert shares == {OVERALL: 0.95, "ada": 0.8, "bo": 0.87, "cy": 0.0}


def test_an_alert_of_another_month_or_another_cap_is_another_one(curator):
    spend(curator, "cy", 0.9)
    (alert,) = find_alerts(AllBudgets.of(curator.policy, curator.ledger), (Fraction(8, 10),))
    assert alert.month and alert.to_dict()["month"] == alert.month
    other = type(alert)(alert.account, alert.threshold, 0.95, "0.95", alert.cap, alert.month)
    assert other.id == alert.id  # more is spent, of the same budget
    for change in ({"month": "2031-01"}, {"cap": "2"}, {"account": "ada"}, {"threshold": Fraction(1, 2)}):
        assert type(alert)(**{**vars(alert), **change}).id != alert.id


@pytest.mark.slow
def test_each_threshold_is_posted_once_and_no_more_after_a_restart(curator, hook, watching, caplog):
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        alerts = watching(hook)
        spend(curator, "ada", 0.85)
        wait_for(lambda: len(hook.received) == 1)
        spend(curator, "ada", 0.1)
        wait_for(lambda: len(hook.received) == 2)
        time.sleep(0.2)
    assert hook.told == [("ada", 0.8), ("ada", 0.95)]
    body, headers = hook.received[0]
    assert (body["event"], body["spent_epsilon"], body["cap_epsilon"], body["share"]) == (
        "budget-low",
        "0.85",
        "1",
        0.85,
    )
    assert headers["Authorization"] == "Bearer t0ken" and headers["Idempotency-Key"] == body["id"]
    lines = [record.getMessage() for record in caplog.records if record.name == "tacit.alerts"]
    assert [json.loads(line.removeprefix("budget-low "))["threshold"] for line in lines] == [0.8, 0.95]
    alerts.stop(PATIENCE)
    watching(hook)
    spend(curator, "bo", 9.0)  # of both: 0.9 of 10, and 9.95 of 10 in all
    wait_for(lambda: len(hook.received) == 5)
    assert sorted(hook.told[2:]) == [(OVERALL, 0.8), (OVERALL, 0.95), ("bo", 0.8)]


def test_what_was_reached_while_nobody_watched_is_posted_at_the_next_start(curator, hook, watching, tmp_path):
    spend(curator, "ada", 0.9)
    alerts = watching(hook)
    wait_for((tmp_path / "clinic.alerts").exists)
    alerts.stop(PATIENCE)
    assert hook.told == [("ada", 0.8)]
    (tmp_path / "clinic.alerts").write_text("{")  # what was sent is lost: it comes again, rather than never
    watching(hook)
    wait_for(lambda: hook.told == [("ada", 0.8)] * 2)


@pytest.mark.slow
def test_a_webhook_that_fails_is_tried_again_until_it_takes_the_alert(curator, hook, watching, caplog):
    hook.statuses = [500, 503, 404, 302]  # one that points elsewhere has not taken it, and is not followed
    with caplog.at_level(logging.ERROR, "tacit.alerts"):
        watching(hook)
        spend(curator, "ada", 0.9)
        wait_for(lambda: len(hook.received) == 5)
        time.sleep(0.2)
    assert hook.told == [("ada", 0.8)] * 5
    assert len({headers["Idempotency-Key"] for _, headers in hook.received}) == 1
    assert "status 500" in caplog.text and "s3cret" not in caplog.text and "t0ken" not in caplog.text


def test_a_webhook_that_is_down_gets_the_alert_when_it_is_back(curator, watching, monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "*")
    hook = Hook()
    server = hook.bind()
    alerts = watching(hook)
    spend(curator, "ada", 0.9)
    wait_for((tmp_path / "clinic.alerts").exists)
    alerts.stop(PATIENCE)  # nor does a restart forget it
    noted = json.loads((tmp_path / "clinic.alerts").read_text())
    assert len(noted["logged"]) == 1 and noted["posted"] == []
    hook.listen(server)
    watching(hook)
    wait_for(lambda: hook.told == [("ada", 0.8)])
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_slow_webhook_delays_no_question_and_a_timeout_is_a_failure(curator, hook, watching):
    hook.delay = 60.0
    watching(hook, timeout=0.3)
    spend(curator, "ada", 0.9)
    wait_for(lambda: len(hook.received) >= 1)
    begun = time.monotonic()
    spend(curator, "bo", 0.1, "m")
    assert time.monotonic() - begun < 30  # while the webhook holds its answer back
    wait_for(lambda: len(hook.received) >= 2)  # the same again
    assert set(hook.told) == {("ada", 0.8)}


@pytest.mark.slow
def test_without_a_webhook_the_log_has_it_once(curator, watching, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        spend(curator, "ada", 0.9)
        alerts = watching(None)
        wait_for((tmp_path / "clinic.alerts").exists)
        alerts.stop(PATIENCE)
        watching(None)
        time.sleep(0.2)
    assert caplog.text.count("budget-low {") == 1


@pytest.mark.slow
def test_a_webhook_that_is_set_later_gets_what_was_reached_before(curator, hook, watching, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        spend(curator, "ada", 0.9)
        alerts = watching(None)
        wait_for((tmp_path / "clinic.alerts").exists)
        alerts.stop(PATIENCE)
        watching(hook)
        wait_for(lambda: hook.told == [("ada", 0.8)])
        time.sleep(0.2)
    assert hook.told == [("ada", 0.8)]
    assert caplog.text.count("budget-low {") == 1  # the log had it


@pytest.mark.slow
def test_a_cap_that_differs_in_delta_only_is_another_budget(tmp_path):
    ids = []
    for delta in (1e-6, 1e-5):
        policy = {
            "privacy": {"epsilon": 10, "delta": delta},
            "ledger": {"store": str(tmp_path / f"{delta}.ledger")},
            "tables": {"t": {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9}}}},
            "analysts": {"ada": {"epsilon": 1, "delta": delta}},
        }
        with tacit.open(policy, data={"t": pa.table({"x": [1, 2, 3]})}) as opened:
            spend(opened, "ada", 0.9)
            found = find_alerts(AllBudgets.of(opened.policy, opened.ledger), (Fraction(1, 100),))
            ids += [alert.id for alert in found if alert.account == "ada"]
    assert len(set(ids)) == 2


NOVEMBER, DECEMBER, JANUARY = ("2031-11-30T23:59:57+00:00", "2031-12-01T00:00:02+00:00", "2032-01-01T00:00:02+00:00")


@pytest.fixture
def set_clock(monkeypatch) -> Callable[[str], None]:
    """Sets the clock of the ledger."""

    def set_to(now: str) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return datetime.fromisoformat(now)

        monkeypatch.setattr(reader, "datetime", Clock)
        monkeypatch.setattr(transaction, "datetime", Clock)

    return set_to


def read_posted(file: Path) -> set[str]:
    return set(json.loads(file.read_text())["posted"]) if file.exists() else set()


@pytest.mark.slow
def test_what_a_month_reached_after_the_last_look_is_sent_in_the_next_month(curator, hook, watching, set_clock, caplog):
    set_clock(NOVEMBER)
    spend(curator, "cy", 0.9)
    set_clock(DECEMBER)
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        watching(hook)
        wait_for(lambda: hook.told == [("cy", 0.8)])
        spend(curator, "cy", 0.96, "m")  # December is a budget of its own
        wait_for(lambda: hook.told == [("cy", 0.8)] * 2 + [("cy", 0.95)])
        time.sleep(0.2)
    assert [(body["month"], body["spent_epsilon"]) for body, _ in hook.received] == [
        ("2031-11", "0.9"),
        ("2031-12", "0.96"),
        ("2031-12", "0.96"),
    ]
    assert caplog.text.count("budget-low {") == 3


@pytest.mark.slow
def test_the_cap_of_an_earlier_month_is_that_of_its_end(tmp_path, set_clock):
    def open_with(epsilon: float) -> Curator:
        policy = {
            "privacy": {"epsilon": 10},
            "ledger": {"store": str(tmp_path / "x.ledger")},
            "tables": {"t": {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9}}}},
            "analysts": {"cy": {"epsilon": epsilon, "refresh": "monthly"}},
        }
        return tacit.open(policy, data={"t": pa.table({"x": [1, 2, 3]})})

    set_clock("2031-11-02T00:00:00+00:00")
    with open_with(1) as opened:
        spend(opened, "cy", 0.9)
    set_clock(NOVEMBER)
    with open_with(2) as opened:
        assert opened.ledger.total_before("cy") is None
    set_clock(DECEMBER)
    with open_with(0.5) as opened:
        found = opened.ledger.total_before("cy")
        assert (found.month, str(found.standing)) == ("2031-11", "0.9 of 2")
        assert opened.ledger.standing("cy").spent.epsilon == 0


@pytest.mark.slow
def test_an_alert_that_no_webhook_took_in_its_month_is_kept_until_one_takes_it(
    curator, hook, watching, set_clock, caplog, tmp_path
):
    file = tmp_path / "clinic.alerts"
    set_clock(NOVEMBER)
    hook.statuses = [500] * 100_000
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        alerts = watching(hook)
        spend(curator, "cy", 0.9)
        wait_for(lambda: len(hook.received) >= 1)
        for month in (DECEMBER, JANUARY):  # two months later the ledger is not looked at for November
            set_clock(month)
            before = len(hook.received)
            spend(curator, "cy", 0.1, f"m{month[5:7]}")
            wait_for(lambda before=before: len(hook.received) >= before + 2)
        alerts.stop(PATIENCE)
        assert read_posted(file) == set()
        hook.received.clear()
        hook.statuses.clear()
        watching(hook)  # nor does a restart forget it
        wait_for(lambda: len(read_posted(file)) == 1)
        time.sleep(0.2)
    assert [(body["account"], body["month"]) for body, _ in hook.received] == [("cy", "2031-11")]
    assert caplog.text.count("budget-low {") == 1
    assert json.loads(file.read_text())["waiting"] == []


def test_an_alert_is_the_same_after_it_was_noted():
    alert = BudgetAlert("ada", Fraction(4, 5), 0.85, "0.85", "1", "2031-11", (10**12, 5, 7, 9))
    again = BudgetAlert.from_note(json.loads(json.dumps(alert.to_note())))
    assert (again, again.id) == (alert, alert.id)


def test_notes_that_cannot_be_written_leave_the_file_and_no_draft(tmp_path, monkeypatch, caplog):
    file = tmp_path / "clinic.alerts"
    write_notes(file, AlertNotes(logged=frozenset({"a"})))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    write_notes(file, AlertNotes(logged=frozenset({"a", "b"})))
    assert read_notes(file) == AlertNotes(logged=frozenset({"a"})) and os.listdir(tmp_path) == ["clinic.alerts"]
    assert "cannot be written, so alerts may come again: No space left on device" in caplog.text


def test_all_alerts_of_a_look_are_logged_before_any_is_posted(curator, hook, watching, caplog):
    logged: list[int] = []
    hook.on_post = lambda: logged.append(caplog.text.count("budget-low {"))
    with caplog.at_level(logging.WARNING, "tacit.alerts"):
        spend(curator, "ada", 0.96)
        watching(hook)
        wait_for(lambda: len(hook.received) == 2)
    assert logged == [2, 2]


@pytest.mark.slow
def test_the_time_limit_is_that_of_the_whole_post(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    is_ended = threading.Event()

    def send_slowly(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while True:
                    connection.sendall(b"X: y\r\n")
                    time.sleep(0.05)
            except OSError:
                is_ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=send_slowly, args=(listening,), daemon=True).start()
        begun = time.monotonic()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        assert AlertWebhook(address, timeout=0.5).post({}, "k") == "TimeoutError"
        assert 0.4 < time.monotonic() - begun < 20  # of the endless answer
        assert is_ended.wait(PATIENCE)  # the connection is closed, and no thread stays with it
    wait_for(lambda: all(each.name != "tacit-alert-post" for each in threading.enumerate()))


def test_a_closed_ledger_is_no_end_of_the_watch(curator, watching, hook, caplog):
    with caplog.at_level(logging.ERROR, "tacit.alerts"):
        curator.ledger.close()
        alerts = watching(hook)
        wait_for(lambda: "cannot be read for alerts" in caplog.text)
        assert alerts._thread.is_alive()


@pytest.mark.parametrize(
    "address", ["", "file:///etc/passwd", "ftp://x/y", "https://", "hook", "http://x:y/", "http://\n"]
)
def test_an_address_that_cannot_be_posted_to_is_refused_at_the_start(address):
    with pytest.raises(ParameterError) as error:
        AlertWebhook(address)
    assert error.value.fix.startswith(f"{ADDRESS}=https://alerts.example.org/")


@pytest.mark.parametrize(
    ("address", "token", "name"),
    [
        ("https://hookuser:s3cret@alerts.example.org/hook", "", ADDRESS),
        ("https://s3cret@alerts.example.org/hook", "", ADDRESS),
        ("https://hookuser%40s3cret/hook", "", ADDRESS),
        ("https://alerts.example.org/s3crét", "", ADDRESS),
        ("https://alerts.example.org/s3cret hook", "", ADDRESS),
        ("https://s3crét.example.org/hook", "", ADDRESS),
        ("https://s3cret..example.org/hook", "", ADDRESS),
        ("https://alerts.example.org/hook", "s3cret€", TOKEN),
        ("https://alerts.example.org/hook", "s3crét", TOKEN),
        ("https://alerts.example.org/hook", "s3cret\n", TOKEN),
    ],
)
def test_what_no_post_could_carry_is_refused_at_the_start(monkeypatch, address, token, name):
    with pytest.raises(ParameterError) as error:
        AlertWebhook(address, token)
    assert error.value.name == name and "s3cr" not in str(error.value)
    monkeypatch.setenv(ADDRESS, "https://alerts.example.org/hook")
    settings = error.value.fix.removesuffix(" tacit serve").split(" ")
    for setting in settings:
        monkeypatch.setenv(*setting.split("=", 1))
    assert settings and AlertWebhook.from_environment() is not None  # the fix works


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8080",
        "https://[::1]:8443/x",
        "http://alert_box:80/a%20b?c=d@e",
        "HTTPS://Alerts.example.org/~x",
    ],
)
def test_an_address_that_can_be_posted_to_is_accepted(address):
    assert AlertWebhook(address, "a-token 1~").address == address


def test_the_address_comes_from_the_environment_and_is_shown_nowhere(monkeypatch):
    monkeypatch.delenv(ADDRESS, raising=False)
    assert AlertWebhook.from_environment() is None
    monkeypatch.setenv(ADDRESS, "https://alerts.example.org/s3cret")
    monkeypatch.setenv(TOKEN, "t0ken")
    found = AlertWebhook.from_environment()
    assert (found.address, found.token) == (os.environ[ADDRESS], "t0ken")
    assert "s3cret" not in repr(found) and "t0ken" not in repr(found)


def test_the_gauges_name_nobody(curator):
    spend(curator, "ada", 0.75)
    spend(curator, "bo", 1.75)
    gauges = measure_budgets(AllBudgets.of(curator.policy, curator.ledger))
    assert gauges == {"budget_spent_ratio": 0.25, "analyst_budget_spent_ratio_max": 0.75}  # 2.5 of 10, and 0.75 of 1
    assert "\ntacit_analyst_budget_spent_ratio_max 0.75\n" in Metrics().text(**gauges)


@pytest.mark.slow
def test_a_server_alerts_and_shows_the_shares(tmp_path, make_clinic, serving, hook, monkeypatch):
    monkeypatch.setitem(BudgetAlerts.__init__.__kwdefaults__, "poll", 0.05)
    clinic = make_clinic(tmp_path, ada=1)
    with serving(clinic, postgres=None, webhook=AlertWebhook(hook.address), alert_at=(Fraction(1, 2),)) as served:
        with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as ada:
            ada.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.4)
            ada.ask("SELECT SUM(age) AS s FROM visits", epsilon=0.2)
        tls = ssl.create_default_context(cafile=served.cafile)
        headers = {"Authorization": f"Bearer {served.key('otto')}"}
        shown = httpx.get(f"{served.http}/metrics", headers=headers, verify=tls, timeout=60).text
        (share,) = re.findall(r"\ntacit_analyst_budget_spent_ratio_max ([0-9.]+)\n", shown)
        assert 0.5 <= float(share) <= 0.6  # by epsilon 0.6 of 1, or less by the other filter
        wait_for(lambda: hook.told == [("ada", 0.5)])
