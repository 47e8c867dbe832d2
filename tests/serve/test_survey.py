"""The survey's endpoint: what it takes, what it refuses, and what it lets a page do."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from tacit.errors import ParameterError
from tacit.local.survey.load import from_form, survey_of
from tacit.local.survey.store import Store, read
from tacit.sampling.bits import ReplayBits
from tacit.serve.server import Settings
from tacit.serve.survey import POLICY, app_of

HOSTILE = "</main><script>alert(1)</script>\"'&"
SURVEY = survey_of(
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
    with Store(tmp_path / "lunch.reports", SURVEY) as opened:
        yield opened


@pytest.fixture
def call(store):
    """Makes requests, one after the other or at once, without a socket."""
    app = app_of(store, rate=1e6)

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
    assert read(tmp_path / "lunch.reports", SURVEY).counts.users == 1
    (again,) = call(post(report.to_json()))
    assert again.status_code == 409 and again.json()["error"]["code"] == "report"
    assert store.counts.users == 1


def test_many_reports_at_once_are_each_taken_once(call, store, tmp_path):
    sent = reports(150)
    answers = call(*(post(report.to_json()) for report in [*sent, *sent]))
    assert sorted(answer.status_code for answer in answers) == [201] * 150 + [409] * 150
    kept = read(tmp_path / "lunch.reports", SURVEY)
    assert kept.counts == store.counts and kept.counts.users == 150


def test_bad_reports_are_refused_with_a_code(call, store):
    good = json.loads(reports(1)[0].to_json())
    other = survey_of({"id": "other", "questions": [{"name": "a", "text": "?", "kind": "yes-no", "epsilon": 1}]})
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


def test_an_address_that_sends_too_often_must_wait(call, store):
    app = app_of(store, rate=0.001)
    answers = call(*(post(report.to_json()) for report in reports(70)), app=app)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 10  # a burst of sixty
    assert refused[0].json()["error"]["code"] == "rate-limit" and refused[0].headers["retry-after"] == "1"
    assert store.counts.users == 60


def test_the_page_may_load_and_send_nothing_elsewhere(call):
    (page,) = call({"method": "GET", "url": "/"})
    assert page.headers["content-security-policy"] == POLICY
    assert "default-src 'none'" in POLICY and "form-action 'none'" in POLICY and "unsafe" not in POLICY
    assert page.headers["cache-control"] == "no-store" and page.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in page.headers
    assert "<script>" not in page.text and "alert(1)&lt;/script&gt;" in page.text
    assert page.text.count("<script") == 1 and "http://" not in page.text and "https://" not in page.text


def test_the_form_that_is_served_is_the_survey(call):
    (form,) = call({"method": "GET", "url": "/survey.json"})
    assert from_form(form.text) == SURVEY
    assert form.headers["content-security-policy"].startswith("default-src 'none'")


def test_the_scripts_and_styles_are_served_with_their_types(call):
    names = ["survey.js", "survey_encoder.js", "survey.css", "console.css", "mark.svg"]
    answers = call(*({"method": "GET", "url": f"/static/{name}"} for name in names))
    assert [answer.status_code for answer in answers] == [200] * 5
    assert [answer.headers["content-type"].partition(";")[0] for answer in answers] == [
        *["text/javascript"] * 2,
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
        Settings(host="192.0.2.1", http=0, postgres=None)
