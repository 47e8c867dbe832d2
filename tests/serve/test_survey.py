"""The survey's endpoint: what it takes, what it refuses, and what it lets a page do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from fractions import Fraction
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from tacit.errors import ParameterError
from tacit.local.survey.load import load_public_form, parse_survey
from tacit.local.survey.store import ReportStore, read_store
from tacit.sampling.bits import ReplayBits
from tacit.serve import header_limits
from tacit.serve import survey as survey_server
from tacit.serve.addresses import networks_of
from tacit.serve.server import ServerConfig
from tacit.serve.survey import CONTENT_SECURITY_POLICY, build_survey_app, serve_survey
from tacit.serve.survey_page import format_posterior, state_privacy
from tacit.serve.survey_place import bind_socket, public_address, reachable_host
from tacit.serve.tls import load_self_signed

HOSTILE = "</main><script>alert(1)</script>\"'&"
SURVEY = parse_survey(
    {
        "id": "lunch",
        "title": HOSTILE,
        "questions": [
            {"name": "soup", "text": HOSTILE, "kind": "yes-no", "epsilon": 1},
            {"name": "dish", "text": "?", "kind": "several", "options": [HOSTILE, "b"], "epsilon": 1},
        ],
    }
)


@pytest.fixture
def store(tmp_path):
    with ReportStore(tmp_path / "lunch.reports", SURVEY) as opened:
        yield opened


@pytest.fixture
def call(store):
    """Makes requests, one after the other or at once, without a socket."""
    app = build_survey_app(store, rate=1e6)

    def make(*requests, app=app):
        async def main():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://survey") as client:
                return await asyncio.gather(*(client.request(**request) for request in requests))

        return asyncio.run(main())

    return make


def post(data, kind="application/json"):
    content = data if isinstance(data, bytes) else data.encode()
    return {"method": "POST", "url": "/reports", "content": content, "headers": {"content-type": kind}}


def reports(count, seed=b"lunch"):
    bits = ReplayBits(seed)
    return [SURVEY.respond([n % 2, "01"], bits) for n in range(count)]


def test_a_report_is_on_the_disk_when_it_is_acknowledged_and_counts_once(call, store, tmp_path):
    (report,) = reports(1)
    (answer,) = call(post(report.to_json()))
    assert answer.status_code == 201 and answer.json() == {"taken": True}
    assert read_store(tmp_path / "lunch.reports", SURVEY).counts.users == 1
    (again,) = call(post(report.to_json()))
    assert again.status_code == 409 and again.json()["error"]["code"] == "report"
    assert store.counts.users == 1


@pytest.mark.slow
def test_many_reports_at_once_are_each_taken_once(call, store, tmp_path):
    sent = reports(150)
    answers = call(*(post(report.to_json()) for report in [*sent, *sent]))
    assert sorted(answer.status_code for answer in answers) == [201] * 150 + [409] * 150
    kept = read_store(tmp_path / "lunch.reports", SURVEY)
    assert kept.counts == store.counts and kept.counts.users == 150


def test_bad_reports_are_refused_with_a_code(call, store):
    good = json.loads(reports(1)[0].to_json())
    other = parse_survey({"id": "other", "questions": [{"name": "a", "text": "?", "kind": "yes-no", "epsilon": 1}]})
    cases = [
        (post(b"not JSON"), 422, "report"),
        (post(b"\xff"), 422, "report"),
        (post(json.dumps({**good, "answers": [1]})), 422, "report"),  # another length
        (post(json.dumps({**good, "answers": [2, "01"]})), 422, "report"),  # out of the domain
        (post(json.dumps({**good, "answers": [True, "01"]})), 422, "report"),
        (post(json.dumps({**good, "who": "ada"})), 422, "report"),
        (post(other.respond([1], ReplayBits(b"o")).to_json()), 422, "report"),  # another survey's
        (post(b" " * 20_000), 413, "too-large"),
        (post(b" " * 600_000), 413, "too-large"),
        (post(json.dumps(good), kind="text/plain"), 400, "protocol"),  # as another site's form would send it
        ({"method": "GET", "url": "/reports"}, 405, "not-found"),
        ({"method": "GET", "url": "/static/../survey.py"}, 404, "not-found"),
        ({"method": "GET", "url": "/static/console.js"}, 404, "not-found"),
        ({"method": "GET", "url": "/nowhere"}, 404, "not-found"),
    ]
    answers = call(*(request for request, _, _ in cases))
    found = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
    assert found == [(status, code) for _, status, code in cases]
    assert store.counts.users == 0


@pytest.mark.slow
def test_an_address_that_sends_too_often_must_wait(call, store):
    app = build_survey_app(store, rate=0.001)
    answers = call(*(post(report.to_json()) for report in reports(70)), app=app)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 10  # a burst of sixty
    assert refused[0].json()["error"]["code"] == "rate-limit" and refused[0].headers["retry-after"] == "1000"
    assert store.counts.users == 60


def from_address(peer, count, forwarded="", **options):
    """How many of so many reports from one peer are taken, each with this header, where {} is its number."""

    def make(store, seed):
        app = build_survey_app(store, rate=0.001, **options)

        async def main():
            transport = httpx.ASGITransport(app=app)
            taken = 0
            async with httpx.AsyncClient(transport=transport, base_url="http://survey") as client:
                for number, report in enumerate(reports(count, seed)):
                    transport.client = (peer.format(number), 4711)
                    headers = {"content-type": "application/json"}
                    if forwarded:
                        headers["x-forwarded-for"] = forwarded.format(number)
                    sent = await client.post("/reports", content=report.to_json(), headers=headers)
                    taken += sent.status_code == 201
            return taken

        return asyncio.run(main())

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "taken"),
    [
        ("2001:db8:0:1::{:x}", "", (), 60),  # one subscriber has 2^64 addresses, and one rate
        ("2001:db8:0:{:x}::1", "", (), 70),
        ("::ffff:198.51.100.7", "", (), 60),
        ("10.0.0.9", "203.0.113.{}", (), 60),  # nobody named this neighbor as a proxy
        ("192.168.1.9", "203.0.113.{}", ("192.168.1.1",), 60),
        ("127.0.0.1", "203.0.113.{}", (), 60),
        ("192.168.1.1", "203.0.113.{}", ("192.168.1.1",), 70),  # seventy people behind the proxy that was named
        ("::ffff:192.168.1.1", "203.0.113.{}", ("192.168.1.1",), 70),
        ("192.168.1.1", "203.0.113.{}, 198.51.100.1", ("192.168.1.1",), 60),  # what a client wrote itself
        ("192.168.1.1", "2001:db8:0:1::{:x}", ("192.168.1.1",), 60),
        ("192.168.1.1", "", ("192.168.1.1",), 60),
    ],
)
def test_a_rate_is_for_an_ipv4_address_or_an_ipv6_network_behind_named_proxies(store, peer, forwarded, proxies, taken):
    found = from_address(peer, 70, forwarded, proxies=networks_of(proxies))(store, f"{peer}{forwarded}".encode())
    assert found == taken


@pytest.mark.slow
@pytest.mark.parametrize(("proxies", "status"), [(("127.0.0.1",), 201), (("192.0.2.7",), 429), ((), 201)])
def test_a_proxy_is_believed_by_its_address_over_a_socket(store, proxies, status, monkeypatch):
    monkeypatch.setattr(survey_server, "_BURST", 1)
    settings = {"proxied": True, "rate": 0.001, "proxies": proxies}
    with running(store, **settings) as (port, _):
        found = [
            httpx.post(
                f"http://127.0.0.1:{port}/reports",
                json=json.loads(report.to_json()),
                headers={"x-forwarded-for": f"203.0.113.{number}"},
            ).status_code
            for number, report in enumerate(reports(2))
        ]
    assert found == [201, status]  # without a name, a proxy is one on this machine


def test_the_page_may_load_and_send_nothing_elsewhere(call):
    (page,) = call({"method": "GET", "url": "/"})
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert (
        "default-src 'none'" in CONTENT_SECURITY_POLICY
        and "form-action 'none'" in CONTENT_SECURITY_POLICY
        and "unsafe" not in CONTENT_SECURITY_POLICY
    )
    assert page.headers["cache-control"] == "no-store" and page.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in page.headers
    assert "<script>" not in page.text and "alert(1)&lt;/script&gt;" in page.text
    assert page.text.count("<script") == 1 and "http://" not in page.text and "https://" not in page.text


def test_the_form_that_is_served_is_the_survey(call):
    (form,) = call({"method": "GET", "url": "/survey.json"})
    assert load_public_form(form.text) == SURVEY
    assert form.headers["content-security-policy"].startswith("default-src 'none'")


def test_the_scripts_and_styles_are_served_with_their_types(call):
    scripts = ["survey.js", "survey_encoder.js", "survey_memory.js", "survey_bounds.js"]
    names = [*scripts, "survey.css", "console.css", "mark.svg"]
    answers = call(*({"method": "GET", "url": f"/static/{name}"} for name in names))
    assert [answer.status_code for answer in answers] == [200] * 7
    assert [answer.headers["content-type"].partition(";")[0] for answer in answers] == [
        *["text/javascript"] * 4,
        *["text/css"] * 2,
        "image/svg+xml",
    ]


def test_a_store_that_fails_is_told_as_busy_and_takes_nothing(call, store, monkeypatch):
    from tacit.local.survey import store as storing

    def full(file):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(storing.os, "fsync", full)
    answers = call(*(post(report.to_json()) for report in reports(3)))
    assert [answer.status_code for answer in answers] == [503] * 3
    assert store.counts.users == 0


def test_a_page_is_not_served_in_the_open():
    with pytest.raises(ParameterError, match="host"):
        ServerConfig(host="192.0.2.1", http=0, postgres=None)


@pytest.mark.parametrize(
    ("epsilons", "head", "says"),
    [
        ([1], "Your true answers stay here", "nothing that is sent proves anything"),
        # e^2.9 = 18.2, within 19 to 1: 1 in 2 becomes 94.8 %
        ([2.9], "Your true answers stay here", "becomes 95 % at most"),
        # e^3 = 20.1 for one answer: 95.3 %
        ([3], "This survey hides little", "can become 96 % by one answer"),
        # e^2 = 7.39 for each, e^6 = 403 for all
        ([2, 2, 2], "Your true answers stay here", "becomes 89 % at most by one of them, 99.8 % at most"),
        ([1, 10], "This survey hides little", "can become 99.996 % by one answer"),
    ],
)
def test_a_page_promises_what_its_epsilons_bear_out(epsilons, head, says):
    asked = [{"name": f"q{n}", "text": "?", "kind": "yes-no", "epsilon": each} for n, each in enumerate(epsilons)]
    found = state_privacy(parse_survey({"id": "promise", "questions": asked}))
    assert found.head == head and says in found.proves
    assert found.hides_little == ("proves anything" not in found.proves)


@pytest.mark.parametrize("odds", [1.001, 2.5, 3.0, 19.0, 99.0, 100.0, 12345.6, 1e7])
def test_what_a_report_makes_likely_is_rounded_up_and_never_to_certainty(odds):
    told = float(format_posterior(odds).removesuffix(" %"))
    assert 100 * odds / (1 + odds) - 1e-9 <= told < 100
    assert format_posterior(Fraction(10) ** 30) == format_posterior(Fraction(10) ** 400) == "nearly 100 %"


@contextlib.contextmanager
def running(store, rate=1e6, proxies=(), **settings):
    """The survey's server in a thread of its own: its port, and what it told."""
    named = networks_of(proxies)
    begun, told, stops = threading.Event(), [], []

    async def main():
        stops.append((asyncio.get_running_loop(), asyncio.Event()))
        chosen = ServerConfig(**({"http": 0, "postgres": None} | settings))

        def ready(place):
            told.append(place)
            begun.set()

        await serve_survey(store, chosen, ready, stops[0][1], rate, told.append, named)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert begun.wait(20)
        yield int(told[0].rsplit(":", 1)[1].strip("/")), told
    finally:
        loop, stop = stops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
    assert not thread.is_alive()


def line_to(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def ended(line):
    """Whether the server hangs up; a line that stays open raises TimeoutError after 30 seconds."""
    try:
        while line.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


ENDLESS = {
    "lines": (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-More: " + b"a" * 8000 + b"\r\n"),
    "one line": (b"GET / HTTP/1.1\r\nHost: x\r\nX-More: ", b"a" * 8000),
    "lines after a body": (
        b"POST /reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n",
        b"X-More: " + b"a" * 8000 + b"\r\n",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_without_end_is_not_read_to_its_end(store, kind):
    begin, more = ENDLESS[kind]
    with running(store) as (port, _), line_to(port) as line:
        sent = 0
        with contextlib.suppress(ConnectionError):  # the server hangs up
            line.sendall(begin)
            while sent < 50_000_000:
                line.sendall(more)
                sent += len(more)
        assert sent < 20_000_000  # 64 KiB are read, and what the buffers on the way hold
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200


async def _slow(scope, receive, send):
    """Takes longer than a head may to answer: both are timers of one loop, which end in the order of their times."""
    await receive()
    await asyncio.sleep(1.25 * header_limits.HEADER_TIMEOUT)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextlib.contextmanager
def hurrying(protocol):
    """The port of a server, which answers slowly."""
    config = uvicorn.Config(_slow, http=protocol, log_config=None, lifespan="off", ws="none", timeout_keep_alive=3600)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


PROTOCOLS = {"httptools": header_limits.make_httptools_protocol, "h11": header_limits.make_h11_protocol}


@pytest.fixture(params=PROTOCOLS)
def hurried(request, monkeypatch):
    """The port of a server whose heads must come in a third of a second."""
    monkeypatch.setattr(header_limits, "HEADER_TIMEOUT", 0.3)
    with hurrying(PROTOCOLS[request.param]()) as port:
        yield port


WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.slow
def test_a_head_that_does_not_come_in_time_ends_the_connection(hurried):
    with contextlib.ExitStack() as opened:
        lines = []
        for half in (b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n"):
            line, other = (opened.enter_context(line_to(hurried)) for _ in range(2))
            line.sendall(half)
            other.sendall(WHOLE)  # the same after an answer: the server would wait for an hour
            lines.append((line, other, half))
        for _, other, half in lines:
            assert other.recv(65536).startswith(b"HTTP/1.1 200")
            other.sendall(half or b"\r")
        for line, other, half in lines:
            assert ended(line) and ended(other), half


@pytest.mark.slow
def test_a_head_that_drips_in_is_not_given_more_time(hurried):
    with line_to(hurried) as line, contextlib.suppress(ConnectionError):
        line.settimeout(0.1)
        for byte in b"GET /" + b"a" * 1000:  # for a minute and a half if need be
            line.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                if not line.recv(1):
                    break
        else:
            pytest.fail("it was read on")


@pytest.mark.slow
def test_an_answer_may_take_longer_than_a_head(monkeypatch):
    monkeypatch.setattr(header_limits, "HEADER_TIMEOUT", 1.0)  # in which the second head is sent
    with contextlib.ExitStack() as opened:
        ports = [opened.enter_context(hurrying(make())) for make in PROTOCOLS.values()]
        lines = [opened.enter_context(line_to(port)) for port in ports]
        for _ in range(2):
            for line in lines:
                line.sendall(WHOLE)
            for line in lines:
                answer = b""
                while not answer.endswith(b"ok"):
                    part = line.recv(65536)
                    assert part, answer
                    answer += part
                assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_idle_connections_of_one_address_keep_nobody_else_out(store):
    with running(store, connections=40) as (port, _):
        idle = [socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) for _ in range(60)]
        with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.3", 0), timeout=10) as other:
            other.sendall(b"GET /survey.json HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert other.recv(12) == b"HTTP/1.1 200"
        for line in idle:
            line.setblocking(False)
        still_open = 0
        for line in idle:
            try:
                still_open += bool(line.recv(1))
            except BlockingIOError:
                still_open += 1
            except OSError:
                pass  # reset
            line.close()
        assert still_open <= 10  # a quarter of the connections


@pytest.mark.slow
def test_a_port_that_is_taken_is_not_the_one_proposed(store):
    with running(store) as (port, _):
        with pytest.raises(ParameterError, match="is in use") as caught:
            bind_socket(ServerConfig(http=port, postgres=None))
        assert caught.value.fix == f"choose another: --port {port + 1}"
    with pytest.raises(ParameterError, match="not an address of this machine"):
        bind_socket(ServerConfig(host="192.0.2.1", http=0, postgres=None, proxied=True))
    with pytest.raises(ParameterError, match="not an address of this machine"):
        bind_socket(ServerConfig(host="nowhere.invalid", http=0, postgres=None, proxied=True))


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_page_that_listens_everywhere_has_an_address_that_others_can_type(tmp_path, host):
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")  # as one without IPv6
    listener = bind_socket(ServerConfig(host=host, http=0, postgres=None, proxied=True))
    certificates = {
        reachable_host(host): load_self_signed(tmp_path / "one.toml", reachable_host(host)),
        socket.gethostname(): load_self_signed(tmp_path / "two.toml", host),  # which has no number: the name fits it
    }
    with listener:
        for expected, made in certificates.items():
            settings = ServerConfig(host=host, http=0, postgres=None, certificate=made)
            found = public_address(settings, listener)
            assert found == f"https://{expected}:{listener.getsockname()[1]}/"
            assert urlsplit(found).hostname not in {"0.0.0.0", "::", "127.0.0.1", None}


def test_a_page_with_a_name_is_told_by_it(tmp_path):
    made = load_self_signed(tmp_path / "lunch.toml", "localhost")
    settings = ServerConfig(host="localhost", http=0, postgres=None, certificate=made)
    with bind_socket(settings) as listener:
        assert public_address(settings, listener) == f"https://localhost:{listener.getsockname()[1]}/"
    plain = ServerConfig(host="127.0.0.1", http=0, postgres=None)
    with bind_socket(plain) as listener:
        assert public_address(plain, listener) == f"http://127.0.0.1:{listener.getsockname()[1]}/"


@pytest.mark.slow
def test_the_count_of_reports_is_told_while_they_come(store, monkeypatch):
    monkeypatch.setattr(survey_server, "_COUNT_INTERVAL", 0.05)
    with running(store) as (port, told):
        for report in reports(3):
            sent = httpx.post(f"http://127.0.0.1:{port}/reports", json=json.loads(report.to_json()))
            assert sent.status_code == 201
        for _ in range(600):
            if told[-1] == 3:
                break
            time.sleep(0.05)
        assert told[1:] == sorted(set(told[1:])) and told[-1] == 3
