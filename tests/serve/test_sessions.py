"""Sessions of the console, as an owner sees and ends them."""

from __future__ import annotations

import re
import time

import httpx
import pytest
from tests.support.console import Page

from tacit.serve.console.sessions import SessionStore
from tacit.serve.service import CuratorService


@pytest.fixture
def olga(signed):
    return signed("olga")


def session_rows(page):
    """The identifier of each session that can be ended, by what its button says."""
    found = {}
    for _, fields in page.forms:
        values = {field["name"]: field["value"] for field in fields if "name" in field}
        if "session" in values:
            found.setdefault(fields[-1]["aria-label"], []).append(values["session"])
    return found


def test_an_owner_sees_who_is_signed_in_and_ends_one_session(olga, signed):
    first, second = signed("ben"), signed("ben")
    page = Page(olga.get("/owner").text)
    name = "End the session of ben from 127.0.0.1"
    found = session_rows(page)[name]
    assert len(found) >= 2 and re.search(r"ben analyst 20\d\d-\d\d-\d\d \d\d:\d\d 20\d\d-", page.text)
    assert "this one" in page.text  # the owner's own
    tokens = [visit.client.cookies["__Host-tacit"] for visit in (first, second)]
    assert not any(each in page.text or token in found for token in tokens for each in (token, first.token))
    part = olga.post("/owner/sessions/end", {"HX-Request": "true"}, session=found[0])  # the one used last: the second
    assert "1 session was ended." in part.text and found[0] not in part.text and "<html" not in part.text
    assert second.get("/ask").status_code == 303 and first.get("/ask").status_code == 200
    assert olga.post("/owner/sessions/end", session=found[0]).headers["location"] == "/console/owner#sessions"


def test_an_owner_ends_all_sessions_but_their_own(signed):
    owner, others = signed("olga"), [signed(name) for name in ("ben", "ben", "otto")]
    assert owner.post("/owner/sessions/end-others").status_code == 303
    assert [visit.get("/learn").status_code for visit in others] == [303, 303, 303]
    page = Page(owner.get("/owner").text)
    assert session_rows(page) == {} and "End all others" not in page.text


def test_only_owners_see_and_end_sessions(signed):
    ben, otto, olga = signed("ben"), signed("otto"), signed("olga")
    assert "End all others" in olga.get("/owner").text and "Sessions" not in otto.get("/owner").text
    (found, *_) = session_rows(Page(olga.get("/owner").text))["End the session of ben from 127.0.0.1"]
    for visit in (ben, otto):
        assert visit.post("/owner/sessions/end", session=found).status_code == 403
        assert visit.post("/owner/sessions/end-others").status_code == 403
    assert ben.get("/learn").status_code == 200


def test_what_an_ended_session_still_waits_for_is_not_shown(signed, served, monkeypatch):
    ben, olga = signed("ben"), signed("olga")
    (found, *_) = session_rows(Page(olga.get("/owner").text))["End the session of ben from 127.0.0.1"]
    answer = CuratorService.ask

    async def late(self, user, question):
        given = await answer(self, user, question)
        async with httpx.AsyncClient(verify=False, base_url=served.http, cookies=olga.client.cookies) as other:
            fields = {"csrf": olga.token, "session": found}
            assert (await other.post("/console/owner/sessions/end", data=fields)).status_code == 303
        return given

    monkeypatch.setattr(CuratorService, "ask", late)
    response = ben.ask("SELECT COUNT(*) AS late FROM visits")
    assert (response.status_code, response.headers["location"]) == (303, "/console/sign-in") and not response.text


def test_a_session_says_where_it_was_opened_and_where_it_was_used_last():
    sessions = SessionStore()
    token = sessions.open("ada", b"", "192.0.2.1")
    assert [each.last_address for each in sessions.list_open()] == ["192.0.2.1"]
    sessions.find(token, address="198.51.100.9")
    (found,) = sessions.list_open()
    assert (found.address, found.last_address) == ("192.0.2.1", "198.51.100.9")
    assert sessions.list_open(time.monotonic() + 7201) == []  # over, though nobody has looked
    assert sessions.end("", "unknown") == 0 and sessions.end(found.identifier) == 1 and sessions.find(token) is None
