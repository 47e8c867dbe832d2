"""Long answers are written out in threads that analysts share fairly, and never on the event loop."""

from __future__ import annotations

import asyncio
import re
import ssl
import threading

import httpx
import psycopg
import pytest

from tacit.errors import Refused
from tacit.serve import responses
from tacit.serve.console import question_pages
from tacit.serve.pgwire import results
from tacit.serve.service import CuratorService

# 111 ages by three columns.
LONG = "SELECT age, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY age"


@pytest.fixture(scope="module")
def served(serving, make_clinic, tmp_path_factory):
    with serving(make_clinic(tmp_path_factory.mktemp("served"))) as running:
        yield running


@pytest.fixture
def writers(monkeypatch):
    """The names of the threads that wrote answers out."""
    found: list[str] = []

    def noted(work):
        def noting(*given):
            found.append(threading.current_thread().name)
            return work(*given)

        return noting

    monkeypatch.setattr(responses, "render_answer", noted(responses.render_answer))
    monkeypatch.setattr(question_pages, "render_answer", noted(question_pages.render_answer))
    monkeypatch.setattr(results, "answer_rows", noted(results.answer_rows))
    return found


def trusting(served) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=served.cafile)


def is_shared(names: list[str]) -> bool:
    return bool(names) and all(name.startswith(("tacit-write-", "tacit-look-")) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("media", responses.MEDIA_TYPES)
def test_over_http_and_so_is_a_repeat(served, writers, media):
    headers = {"Authorization": f"Bearer {served.key('ada')}", "Accept": media}
    with httpx.Client(timeout=60, base_url=served.http, verify=trusting(served), headers=headers) as client:
        for _ in range(2):
            assert client.post("/v1/ask", json={"sql": LONG, "epsilon": 0.01}).status_code == 200
    assert len(writers) == 2 and is_shared(writers)


def test_over_postgres(served, writers):
    password = served.clinic.secrets["ada"].password
    where = served.postgres.replace("://", "://ada@") + "/clinic"
    with psycopg.connect(where, password=password, sslmode="require", autocommit=True) as connection:
        connection.execute("SET tacit.epsilon = 0.01")
        assert len(connection.execute(LONG).fetchall()) == 111
    assert is_shared(writers)


def test_in_a_download_of_the_console_which_counts_as_a_request(served, writers, monkeypatch):
    token = re.compile(r'name="csrf" value="([^"]+)"')
    with httpx.Client(timeout=60, base_url=served.http, verify=trusting(served), follow_redirects=True) as browser:
        page = browser.get("/console/sign-in")
        form = {"name": "ada", "password": served.clinic.secrets["ada"].password, "csrf": token.search(page.text)[1]}
        page = browser.post("/console/sign-in", data=form)
        form = {"sql": LONG, "epsilon": "0.01", "confidence": "0.95", "csrf": token.search(page.text)[1]}
        page = browser.post("/console/ask", data=form)
        place = re.search(r"/console/answers/\d+\.csv", page.text)[0]
        assert browser.get(place).status_code == 200 and browser.get(place.replace("csv", "json")).status_code == 200
        assert is_shared(writers)
        monkeypatch.setattr("tacit.serve.limits.RateLimiter.take", lambda *_: 1.0)
        assert browser.get(place).status_code == 429


@pytest.mark.slow
def test_nobody_has_all_of_the_threads_and_what_waits_is_bounded(curator):
    async def work():
        service = CuratorService(curator, seats=4, first=0)
        go, begun = threading.Event(), threading.Semaphore(0)

        def long() -> bool:
            begun.release()
            return go.wait(60)

        waiting = [asyncio.ensure_future(service.write("ada", long)) for _ in range(16)]
        await asyncio.to_thread(begun.acquire)
        assert await asyncio.wait_for(service.write("ben", lambda: "written"), 60) == "written"
        assert not begun.acquire(blocking=False)  # of ada's, one at a time
        with pytest.raises(Refused, match="waiting already"):
            await service.write("ada", long)
        go.set()
        assert all(await asyncio.gather(*waiting))
        await service.close()

    asyncio.run(work())
