"""What a stranger, a careless client or a curious reader of logs can get: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import ssl

import httpx
import pytest

import tacit
from tacit.errors import ErrorCode, Failed, Refused
from tacit.serve import middleware
from tacit.serve.addresses import networks_of
from tacit.serve.authentication import Authenticator
from tacit.serve.console.requests import Console
from tacit.serve.http import build_app
from tacit.serve.log_redaction import RedactingFormatter, redact_logs
from tacit.serve.metrics import Metrics
from tacit.serve.middleware import MAX_BODY_BYTES, SECURITY_HEADERS, RequestMiddleware
from tacit.serve.service import CuratorService

COUNT = "SELECT COUNT(*) AS n FROM visits"
SECRET = "supersecretliteral"


@pytest.fixture(scope="module")
def bearer(served):
    return {"Authorization": f"Bearer {served.key('ada')}"}


@pytest.fixture
def lines():
    """Everything that is logged, as the server formats it."""
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    handler, root = Kept(), logging.getLogger()
    handler.setFormatter(RedactingFormatter("%(name)s %(levelname)s %(message)s"))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield found
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.slow
def test_no_log_has_a_key_a_password_a_question_or_a_path(client, bearer, served, lines):
    logging.getLogger("tacit.serve").setLevel(logging.INFO)
    key, password = served.key("ada"), served.clinic.secrets["ada"].password
    question = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE illness = '{SECRET}'", "epsilon": 0.0625}
    assert client.post("/v1/ask", json=question, headers=bearer).status_code == 200
    assert (
        client.post("/v1/ask", json={**question, "sql": f"SELECT {SECRET} FROM x"}, headers=bearer).status_code == 422
    )
    client.post("/v1/ask", content=SECRET.encode(), headers=bearer)
    client.get(f"/{SECRET}?key={key}&password={password}", headers=bearer)
    client.get("/v1/budget", headers={"Authorization": f"Bearer {key}x"})
    client.get("/v1/budget", headers={"Authorization": f"Basic {SECRET}", "Cookie": key})
    with httpx.Client(timeout=60, verify=ssl.create_default_context(cafile=served.cafile)) as other:
        other.get(f"{served.http}/v1/schema", headers={**bearer, "Idempotency-Key": SECRET, "User-Agent": SECRET})
    ours = [line for line in lines if not line.startswith(("httpx", "httpcore"))]
    assert "tacit.serve INFO http POST /v1/ask 200 ada" in ours
    for line in ours:
        assert SECRET not in line and key not in line and password not in line and "0.0625" not in line


@pytest.mark.slow
def test_a_failure_is_logged_by_kind_and_place_without_its_text(curator, lines, monkeypatch):
    def broken(aggregation):
        raise ValueError("patient 7 has the flu")

    monkeypatch.setattr(curator.engine, "run", broken)
    with pytest.raises(Failed):
        curator.analyst("ada").ask(COUNT, epsilon=1)
    text = "\n".join(lines)
    assert "ValueError" in text and "test_security.py" in text and "entry" in text
    assert "flu" not in text and "patient 7" not in text


def test_a_log_that_another_formatter_wrote_first_is_discreet_too():
    try:
        raise ValueError("the flu")
    except ValueError as error:
        record = logging.LogRecord("tacit", logging.ERROR, "", 0, "failed", None, (ValueError, error, None))
    assert "the flu" in logging.Formatter().format(record)  # and it is kept in the record
    assert "the flu" not in RedactingFormatter().format(record)


def test_the_log_of_a_server_is_discreet(tmp_path):
    root = logging.getLogger()
    before = root.handlers[:]
    file = logging.FileHandler(tmp_path / "log")
    try:
        root.handlers[:] = [file]
        redact_logs()
        assert isinstance(file.formatter, RedactingFormatter)
    finally:
        root.handlers[:] = before
        file.close()


async def call(application, body=b"", headers=(), pieces=None):
    """One request to an application; what it sent."""
    sent = []
    given = [body] if pieces is None else list(pieces)

    async def receive():
        if not given:
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": given.pop(0), "more_body": bool(given) or pieces is not None}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": list(headers), "path": "/"}
    await application(scope, receive, send)
    return sent


def test_a_bug_shows_and_logs_nothing_of_its_cause(lines):
    async def broken(scope, receive, send):
        raise ValueError(f"{SECRET} has the flu")

    sent = asyncio.run(call(RequestMiddleware(broken, Metrics(), secure=True)))
    assert sent[0]["status"] == 500 and SECRET.encode() not in sent[1]["body"]
    text = "\n".join(lines)
    assert "ValueError at test_security.py" in text and SECRET not in text


@pytest.mark.slow
def test_a_bug_is_answered_with_the_error_of_the_guide_or_a_page(curator, clinic, monkeypatch, lines):
    def broken(*_, **__):
        raise ValueError(f"{SECRET} has the flu")

    async def work():
        service, authenticator = CuratorService(curator), Authenticator(clinic.people, curator.policy)
        monkeypatch.setattr(service, "schema", broken)
        monkeypatch.setattr(Console, "session_of", broken)
        transport = httpx.ASGITransport(app=build_app(service, authenticator), client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://clinic") as client:
            bearer = {"Authorization": f"Bearer {clinic.secrets['ada'].key}"}
            json = await client.get("/v1/schema", headers=bearer)
            page = await client.get("/console/ask")
            part = await client.get("/console/ask", headers={"HX-Request": "true"})
        await service.close()
        return json, page, part

    json, page, part = asyncio.run(work())
    assert {json.status_code, page.status_code, part.status_code} == {500}
    assert json.json()["error"]["code"] == "failed" and "the server failed" in json.json()["error"]["what"]
    for each in (page, part):
        assert each.headers["content-type"].startswith("text/html") and "the server failed" in each.text
    assert "<html" in page.text and "<html" not in part.text
    assert all(SECRET not in each.text for each in (json, page, part))
    text = "\n".join(lines)
    assert text.count("a request failed: ValueError at test_security.py") == 3 and SECRET not in text


def test_a_body_that_never_ends_is_cut_off(monkeypatch):
    async def unused(scope, receive, send):
        raise AssertionError("it was let through")

    pieces = (b"x" * 65536 for _ in range(10**9))

    async def endless():
        sent = []

        async def receive():
            return {"type": "http.request", "body": next(pieces), "more_body": True}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "headers": [], "path": "/"}
        await RequestMiddleware(unused, Metrics(), secure=False)(scope, receive, send)
        return sent

    assert asyncio.run(endless())[0]["status"] == 413
    monkeypatch.setattr(middleware, "BODY_TIMEOUT", 0.01)
    monkeypatch.setattr(middleware, "_DRAIN_SECONDS", 0.01)
    assert asyncio.run(call(RequestMiddleware(unused, Metrics(), secure=False), pieces=[b"x"]))[0]["status"] == 408


def test_oversize_bodies_are_refused_and_others_are_served(client, bearer):
    declared = client.post("/v1/ask", content=b"x" * (MAX_BODY_BYTES + 1), headers=bearer)
    assert (declared.status_code, declared.json()["error"]["code"]) == (413, "too-large")
    pieces = client.post("/v1/ask", content=(b"x" * 65536 for _ in range(20)), headers=bearer)
    assert pieces.status_code == 413
    assert client.get("/v1/budget", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/v1/receipts/..%2f..%2fclinic.people",
        "/v1/../clinic.toml",
        "/clinic.people",
        "//etc/passwd",
        "/v1/receipts/%00",
    ],
)
def test_no_path_leads_to_a_file(client, bearer, path):
    response = client.get(path, headers=bearer)
    assert response.status_code in {400, 404}
    assert "root:" not in response.text and "scrypt" not in response.text and "[privacy]" not in response.text


def test_every_response_has_the_security_headers(client, bearer):
    for response in (
        client.get("/healthz"),
        client.get("/nothing"),
        client.get("/v1/budget"),
        client.post("/v1/ask", content=b"x" * (MAX_BODY_BYTES + 1), headers=bearer),
        client.post("/v1/ask", json={"sql": COUNT, "epsilon": 0.5}, headers=bearer),
    ):
        for name, value in SECURITY_HEADERS.items():
            assert response.headers[name.decode()] == value.decode()
        assert "max-age" in response.headers["strict-transport-security"]
        assert "server" not in response.headers


def test_a_page_may_set_a_header_of_its_own():
    async def page(scope, receive, send):
        headers = [(b"content-security-policy", b"default-src 'self'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    sent = asyncio.run(call(RequestMiddleware(page, Metrics(), secure=False)))
    found = [value for name, value in sent[0]["headers"] if name == b"content-security-policy"]
    assert found == [b"default-src 'self'"]


@pytest.mark.slow
def test_wrong_keys_read_the_same_and_lock_nobody_out(make_clinic, tmp_path, serving):
    with serving(make_clinic(tmp_path), postgres=None) as served:
        trust = ssl.create_default_context(cafile=served.cafile)
        with httpx.Client(timeout=60, base_url=served.http, verify=trust) as client:

            def budget(key: str) -> httpx.Response:
                return client.get("/v1/budget", headers={"Authorization": f"Bearer {key}"})

            good = served.key("ada")
            assert budget(good).status_code == 200
            # A known name with a wrong secret, an unknown one, and no key at all read the same.
            wrong = [budget(key) for key in (good[:-1] + "x", f"tacit_{'0' * 12}_{'0' * 48}", "hello")]
            assert {response.status_code for response in wrong} == {401}
            assert len({response.content for response in wrong}) == 1
            assert wrong[0].headers["www-authenticate"] == "Bearer"
            for _ in range(7):
                assert budget("wrong").status_code == 401
            late = budget("wrong")  # it waits a little, and is checked
            assert (late.status_code, late.content) == (401, wrong[0].content)
            assert budget(served.key("ben")).status_code == 200  # and so is whoever is right
            assert budget(good).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "believed"),
    [
        ({"proxied": True}, True),  # a proxy on this machine
        ({}, False),
        ({"proxies": networks_of(["127.0.0.1"])}, True),
        ({"proxied": True, "proxies": networks_of(["192.0.2.7"])}, False),
        ({"proxies": networks_of(["10.0.0.0/8"])}, False),
    ],
)
def test_the_word_of_a_proxy_is_taken_only_where_it_is_named(make_clinic, tmp_path, serving, lines, settings, believed):
    logging.getLogger("tacit.serve").setLevel(logging.INFO)
    with serving(make_clinic(tmp_path), postgres=None, **settings) as served:
        trust = ssl.create_default_context(cafile=served.cafile)
        headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": "198.51.100.1, 203.0.113.1"}
        assert httpx.get(f"{served.http}/v1/budget", headers=headers, verify=trust).status_code == 401
    # The one that the proxy saw comes last; what stands before it was written by the client.
    address = "203.0.113.1" if believed else "127.0.0.1"
    assert f"tacit.serve INFO http GET /v1/budget 401 - from {address}" in lines


@pytest.mark.slow
def test_one_person_who_asks_too_often_waits_and_others_do_not(make_clinic, tmp_path, serving):
    # At one request in a thousand seconds the burst is one.
    with serving(make_clinic(tmp_path), postgres=None, rate=0.001) as served:
        for who in ("ada", "ben"):
            with tacit.connect(served.http, served.key(who), cafile=served.cafile, tries=1) as person:
                assert person.budget.who == who
                with pytest.raises(Refused) as caught:
                    _ = person.budget
                assert caught.value.code == ErrorCode.RATE


def test_an_alias_that_is_markup_stays_text(client, bearer):
    sql = 'SELECT COUNT(*) AS "<script>alert(1)</script>" FROM visits'
    found = client.post("/v1/ask", json={"sql": sql, "epsilon": 0.5}, headers=bearer)
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-content-type-options"] == "nosniff"


def test_credentials_are_nowhere_in_the_folder_but_as_hashes(served):
    secrets = [part for made in served.clinic.secrets.values() for part in (made.key.split("_")[2], made.password)]
    for file in served.clinic.policy.parent.iterdir():
        data = file.read_bytes()
        assert not any(secret.encode() in data for secret in secrets), file.name
        if file.suffix in {".people", ".key"}:
            assert file.stat().st_mode & 0o077 == 0, file.name


def test_who_the_client_is_to_a_reader_of_its_text_is_no_key(served):
    with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as ada:
        assert not re.search(r"tacit_[0-9a-f]", f"{ada!r} {ada} {ada.budget!r}")


def test_a_head_without_end_is_not_read_to_its_end(served):
    place = served.http.removeprefix("https://").split(":")
    trust = ssl.create_default_context(cafile=served.cafile)
    with (
        socket.create_connection((place[0], int(place[1])), timeout=20) as plain,
        trust.wrap_socket(plain, server_hostname=place[0]) as line,
    ):
        sent = 0
        with contextlib.suppress(OSError):  # the server hangs up
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: clinic\r\n")
            while sent < 50_000_000:
                line.sendall(b"X-More: " + b"a" * 8000 + b"\r\n")
                sent += 8000
        # 64 KiB are read, and what the buffers on the way hold.
        assert sent < 20_000_000
    assert httpx.get(f"{served.http}/healthz", verify=trust).status_code == 200
