"""Repeats: the kept answer under a new receipt, written down first, and in nobody's way."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import tracemalloc

import httpx
import pytest
from tests.serve.test_service import COUNT, run
from tests.support.engines import halted, reached

import tacit
from tacit.client import arrow_stream
from tacit.errors import ErrorCode, LedgerError, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import check_receipt, verify
from tacit.ledger.witness import Witness
from tacit.plan.question import Question
from tacit.serve import credentials, repeat_fast_path
from tacit.serve.cache import AnswerCache, CachedAnswer, RepeatedAnswer
from tacit.serve.service import CuratorService

ASKED = Question(COUNT, epsilon=1)

WARDS = "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward"
RATIO = "SELECT SUM(cost) / COUNT(*) AS c FROM visits"


@pytest.mark.slow
@pytest.mark.parametrize("sql", [COUNT, WARDS, RATIO])
def test_a_repeat_is_the_answer_itself_under_a_new_receipt(curator, sql):
    async def work():
        service = CuratorService(curator, first=0)
        first = await service.ask("ada", Question(sql, epsilon=1))
        again = await service.ask("ada", Question(sql, epsilon=1))
        local = curator.analyst("ada").ask(sql, epsilon=1)  # through the whole story, from what is stored
        assert isinstance(again, RepeatedAnswer) and not isinstance(first, RepeatedAnswer)
        assert again.cells() == first.cells() == local.cells()
        assert (again.notes, again.headings, again.confidence) == (local.notes, local.headings, local.confidence)
        assert again.receipt.repeat and again.receipt.charged.epsilon == 0 and not first.receipt.repeat
        assert check_receipt(curator.ledger, again.receipt.to_dict()) == []
        assert [entry.kind for entry in curator.ledger.entries()] == [
            EntryKind.OPEN,
            EntryKind.RESERVE,
            EntryKind.COMMIT,
        ]
        await service.close()

    run(work())


def test_a_repeat_is_held_to_no_step_of_time(curator):
    # Its first step would end after an hour. The answer was kept by a desk without steps.
    async def work():
        service = CuratorService(curator, first=0)
        await service.ask("ada", ASKED)
        service._first = 3600
        assert (await asyncio.wait_for(service.ask("ada", ASKED), 60)).receipt.repeat
        await service.close()

    run(work())


def test_a_repeat_does_not_wait_for_questions_that_run(curator):
    async def work():
        service = CuratorService(curator, workers=1, seats=4, first=0)
        await service.ask("ada", ASKED)
        with halted(curator) as entered:
            slow = asyncio.create_task(service.ask("ben", Question(WARDS, epsilon=1)))
            await reached(entered, 1)
            again = await asyncio.gather(*(service.ask("ada", ASKED) for _ in range(1)))
            assert again[0].receipt.repeat and not slow.done()
        await slow
        await service.close()

    run(work())


@pytest.mark.slow
def test_repeats_at_once_name_the_charge_that_paid_and_write_nothing(curator):
    async def work():
        service = CuratorService(curator, first=0)
        await asyncio.gather(*(service.ask(who, ASKED) for who in ("ada", "ben")))
        before = list(curator.ledger.entries())
        asked = [service.ask(who, ASKED) for who in ("ada", "ben") for _ in range(16)]
        entries = [answer.receipt.entry for answer in await asyncio.gather(*asked)]
        assert len(entries) == 32
        assert len(set(entries)) == 2  # ada's charge, and ben's
        assert list(curator.ledger.entries()) == before
        assert verify(curator.ledger, Witness(curator.policy.books.witness)).problems == ()
        await service.close()

    run(work())


@pytest.mark.slow
def test_too_many_repeats_of_one_person_are_busy(curator):
    async def work():
        service = CuratorService(curator, workers=1, seats=8, first=0)
        await service.ask("ada", ASKED)
        # A quarter of 8 seats is 2 that wait.
        found = await asyncio.gather(*(service.ask("ada", ASKED) for _ in range(5)), return_exceptions=True)
        assert [isinstance(each, RepeatedAnswer) for each in found] == [True, True, False, False, False]
        assert {each.code for each in found if isinstance(each, Refused)} == {ErrorCode.BUSY}
        await service.close()
        with pytest.raises(Refused) as caught:
            await service.ask("ada", ASKED)
        assert caught.value.code == ErrorCode.BUSY

    run(work())


def test_another_price_confidence_or_person_is_another_question(curator):
    async def work():
        service = CuratorService(curator, first=0)
        await service.ask("ada", ASKED)
        assert service.knows("ada", ASKED)
        for other in ({"epsilon": True}, {"epsilon": 1.0}, {"epsilon": 2}, {"epsilon": 1, "confidence": 0.9}):
            assert not service.knows("ada", Question(COUNT, **other))
        assert not service.knows("ben", ASKED)
        assert not service.knows("ada", Question(COUNT, epsilon=[]))
        # Ben pays for what ada was told, once.
        told = [(await service.ask("ben", ASKED)).receipt for _ in range(2)]
        assert [(each.repeat, each.charged.epsilon > 0) for each in told] == [(True, True), (True, False)]
        await service.close()

    run(work())


@pytest.mark.slow
def test_a_question_under_a_name_goes_the_whole_way(curator):
    async def work():
        service = CuratorService(curator, first=0)
        await service.ask("ada", Question(COUNT, epsilon=1, request="one"))
        assert not isinstance(await service.ask("ada", Question(COUNT, epsilon=1, request="one")), RepeatedAnswer)
        with pytest.raises(Refused) as caught:
            await service.ask("ada", Question(COUNT, epsilon=2, request="one"))
        assert caught.value.code == ErrorCode.REQUEST
        await service.close()

    run(work())


@pytest.mark.slow
def test_what_the_ledger_does_not_have_as_paid_is_asked(curator):
    async def work():
        service = CuratorService(curator, first=0)
        answer = await service.ask("ada", ASKED)
        question = ASKED
        service._epoch.answers.keep(
            question, CachedAnswer("ben", curator.planner.plan(question), answer, curator.ledger)
        )
        told = await service.ask("ben", ASKED)
        assert told.receipt.analyst == "ben" and told.receipt.charged.epsilon > 0
        await service.close()

    run(work())


@pytest.mark.slow
def test_a_ledger_that_cannot_be_used_shows_nothing_again(curator, clinic, tmp_path):
    async def work():
        service = CuratorService(curator, first=0)
        await service.ask("ada", ASKED)
        shutil.move(curator.policy.books.store, tmp_path / "away")
        found = await asyncio.gather(*(service.ask("ada", ASKED) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == [LedgerError] * 3
        shutil.move(tmp_path / "away", curator.policy.books.store)
        assert isinstance(await service.ask("ada", ASKED), RepeatedAnswer)
        await service.close()

    run(work())


@pytest.mark.slow
def test_a_lowered_cap_is_on_the_next_receipt(clinic, make_clinic):
    async def work(curator):
        service = CuratorService(curator, first=0)
        await service.ask("ada", ASKED)
        clinic.policy.write_text(
            clinic.policy.read_text().replace("epsilon = 1000\ndelta = 1e-6\n[analysts.ben]", LOWER)
        )
        tacit.open(clinic.policy).close()
        again = await service.ask("ada", ASKED)
        assert again.receipt.to_dict()["remaining_epsilon"] == "1"
        await service.close()

    LOWER = "epsilon = 2\ndelta = 1e-6\n[analysts.ben]"
    with tacit.open(clinic.policy) as curator:
        run(work(curator))


@pytest.mark.slow
def test_the_shelf_forgets_what_was_unused_for_longest(curator):
    answer = curator.analyst("ada").ask(COUNT, epsilon=1)
    kept = CachedAnswer("ada", curator.planner.plan(ASKED), answer, curator.ledger)
    a, b, c, d = (Question(COUNT, epsilon=epsilon) for epsilon in (1, 2, 3, 4))
    shelf = AnswerCache(cells=70)  # one cell and twenty for the rest: three answers
    for question in (a, b, c):
        shelf.keep(question, kept)
    shelf.find("ada", a)
    shelf.keep(d, kept)
    shelf.keep(d, kept)
    assert [question for question in (a, b, c, d) if shelf.find("ada", question)] == [a, c, d]
    assert shelf.find("ben", a) is None


def post(client, served, who="ada", headers=(), **fields):
    given = {"Authorization": f"Bearer {served.key(who)}", **dict(headers)}
    return client.post("/v1/ask", json={"sql": WARDS, "epsilon": 1, **fields}, headers=given)


@pytest.mark.slow
@pytest.mark.parametrize("accept", ["application/json", "text/csv", "text/plain", arrow_stream.ARROW_STREAM, "*/*"])
def test_the_short_way_answers_as_the_long_one_does(client, served, accept):
    """A query string that means nothing is enough to go the long way."""
    post(client, served)
    short = post(client, served, headers={"Accept": accept})
    given = {"Authorization": f"Bearer {served.key('ada')}", "Accept": accept}
    long = client.post("/v1/ask?long", json={"sql": WARDS, "epsilon": 1}, headers=given)
    assert short.status_code == long.status_code == 200
    moving = {"date", "tacit-entry", "content-length"}
    assert {n: v for n, v in short.headers.items() if n not in moving} == {
        n: v for n, v in long.headers.items() if n not in moving
    }
    assert int(long.headers["tacit-entry"]) == int(short.headers["tacit-entry"])
    if short.headers["content-type"] == "application/json":
        shown, full = short.json(), long.json()
        assert list(shown) == list(full) and list(shown["receipt"]) == list(full["receipt"])
        assert {**shown, "receipt": 0} == {**full, "receipt": 0}
        assert check_receipt(served.curator.ledger, shown["receipt"]) == []
        assert shown["receipt"]["entry"] == int(short.headers["tacit-entry"])
    elif accept == arrow_stream.ARROW_STREAM:
        assert arrow_stream.decode_answer(short.content).cells() == arrow_stream.decode_answer(long.content).cells()
        assert arrow_stream.decode_answer(short.content).receipt.entry == int(short.headers["tacit-entry"])
    elif accept == "text/csv":
        assert short.content == long.content


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Authorization": "Bearer tacit_wrong_key"}, {}, 401),
        ({"Authorization": "Basic abc"}, {}, 401),
        ({"Accept": "image/png"}, {}, 406),
        ({"Content-Type": "text/plain"}, {}, 400),
        ({}, {"more": 1}, 400),
        ({}, {"epsilon": "1/0"}, 400),
        ({}, {"confidence": 2}, 400),
    ],
)
def test_what_is_not_plainly_a_repeat_is_refused_by_the_application(client, served, headers, body, status):
    post(client, served)
    given = {"Authorization": f"Bearer {served.key('ada')}", "Content-Type": "application/json", **headers}
    content = json.dumps({"sql": WARDS, "epsilon": 1, **body})
    assert client.post("/v1/ask", content=content, headers=given).status_code == status
    assert client.post("/v1/ask", content=content[:-1], headers=given).status_code in {400, 401, 406}


def test_nothing_of_a_body_is_read_before_its_sender_is_known(client, served, monkeypatch):
    monkeypatch.setattr(repeat_fast_path, "json", None)
    monkeypatch.setattr(repeat_fast_path, "QuestionBody", None)
    given = {"Authorization": "Bearer tacit_wrong_key"}
    assert client.post("/v1/ask", json={"sql": WARDS, "epsilon": 1}, headers=given).status_code == 401


@pytest.mark.parametrize(("places", "key", "status"), [(150_000, "", 401), (15_000, "", 401), (15_000, "ada", 422)])
def test_a_value_in_many_places_takes_no_more_memory_than_its_request(client, served, places, key, status):
    """49,000 characters in each of the places are 7 GB, or 700 MB; the request itself has up to 500,000 bytes."""
    given = {"Authorization": f"Bearer {served.key(key) if key else 'tacit_wrong_key'}"}
    asked = {"sql": "SELECT " + "$1," * places, "epsilon": 1, "parameters": [["y" * 995] * 49]}
    tracemalloc.start()
    try:
        response = client.post("/v1/ask", json=asked, headers=given)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert response.status_code == status
    if key:
        assert response.json()["error"]["code"] == "too-large"


def test_a_repeat_is_counted_under_its_route(client, served):
    post(client, served)
    owner = {"Authorization": f"Bearer {served.key('olga')}"}

    def count():
        lines = client.get("/metrics", headers=owner).text.splitlines()
        return next(int(line.split()[-1]) for line in lines if 'route="/v1/ask",status="200"' in line)

    before = count()
    assert post(client, served).json()["receipt"]["repeat"]
    assert count() == before + 1


@pytest.mark.slow
def test_who_is_removed_gets_no_repeat(serving, make_clinic, tmp_path):
    with serving(make_clinic(tmp_path), postgres=None) as own:
        trust = ssl.create_default_context(cafile=own.cafile)
        with httpx.Client(timeout=60, base_url=own.http, verify=trust) as client:
            assert [post(client, own).status_code for _ in range(2)] == [200, 200]
            credentials.revoke_credential(own.clinic.people, "ada")
            assert post(client, own).status_code == 401
            assert post(client, own, who="ben").status_code == 200
