"""The service: what the curator returns passes through, what does not fit is refused, and a stop loses nothing."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext

import pytest
from tests.support.engines import halted, reached

from tacit.errors import ErrorCode, Failed, ParameterError, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.plan.question import Question
from tacit.serve.limits import RateLimiter
from tacit.serve.service import CuratorService
from tacit.serve.timing import delay_to_bucket, round_up_to_bucket

COUNT = "SELECT COUNT(*) AS n FROM visits"
ASKED = Question(COUNT, epsilon=1)


def above(age: int) -> Question:
    return Question(f"{COUNT} WHERE age > {age}", epsilon=1)


def run(work):
    return asyncio.run(work)


@pytest.mark.slow
def test_what_the_curator_says_passes_through(curator):
    async def work():
        service = CuratorService(curator, first=0)
        local = curator.analyst("ada")
        answer = await service.ask("ada", Question(COUNT, epsilon=0.5, request="first"))
        assert answer.value == local.ask(COUNT, epsilon=0.5).value
        assert answer.receipt.request == "first"
        assert str(await service.explain("ada", Question(COUNT, within={"n": 9}))) == str(
            local.explain(COUNT, within={"n": 9})
        )
        assert (await service.budget("ada")).to_dict() == local.budget.to_dict()
        assert service.schema().to_dict() == local.schema.to_dict()
        assert [r.name for r in (await service.plan("ada", ASKED)).recipe.results] == ["n"]
        await service.close()

    run(work())


@pytest.mark.slow
def test_whoever_asks_the_same_waits_for_longer_than_a_run_may_take(curator):
    async def work():
        usual = curator.ledger._patience
        for limit, first, least in ((300, 0.02, usual), (400, 0.02, 0.02 * 2**15), (5000, 0, 5000)):
            service = CuratorService(curator, limit=limit, first=first)
            assert least <= curator.ledger._patience <= least + 30
            await service.close()

    run(work())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "price", "code"),
    [
        ("SELECT age FROM visits", {"epsilon": 1}, ErrorCode.RAW_COLUMN),
        ("SELEC", {"epsilon": 1}, ErrorCode.SYNTAX),
        (COUNT, {}, ErrorCode.PARAMETER),
        (COUNT, {"epsilon": -1}, ErrorCode.PARAMETER),
        (COUNT, {"epsilon": 999.5}, ErrorCode.BUDGET),
    ],
)
def test_refusals_pass_through_and_cost_nothing(make_clinic, tmp_path, sql, price, code):
    import tacit

    async def work(curator):
        service = CuratorService(curator)
        with pytest.raises((Refused, ParameterError)) as caught:
            await service.ask("ada", Question(sql, **price))
        assert caught.value.code == code
        assert (await service.budget("ada")).to_dict()["own"]["spent"] == "0"
        await service.close()

    with tacit.open(make_clinic(tmp_path, ada=3).policy) as curator:
        run(work(curator))


def test_who_is_not_in_the_policy_is_refused(curator):
    async def work():
        service = CuratorService(curator)
        for asked in (
            service.ask("zoe", ASKED),
            service.plan("zoe", ASKED),
            service.budget("zoe"),
        ):
            with pytest.raises(Refused) as caught:
                await asked
            assert caught.value.code == ErrorCode.UNKNOWN_ANALYST
        await service.close()

    run(work())


def test_a_full_counter_is_busy_and_others_still_look(curator):
    async def work():
        service = CuratorService(curator, workers=1, seats=8, first=0)
        with halted(curator) as entered:
            # A quarter of 8 seats is 2: ada's third question is turned away, ben's first is not.
            asked = [asyncio.create_task(service.ask("ada", above(n))) for n in (1, 2)]
            await reached(entered, 1)
            with pytest.raises(Refused) as caught:
                await service.ask("ada", Question(f"{COUNT} WHERE age > 3", epsilon=1))
            assert caught.value.code == ErrorCode.BUSY
            asked.append(asyncio.create_task(service.ask("ben", ASKED)))
            await asyncio.sleep(0)
            assert service.in_use == 3
            await service.explain("ada", ASKED)
        await asyncio.gather(*asked)
        assert service.in_use == 0
        await service.close()

    run(work())


@pytest.mark.slow
def test_all_seats_taken_is_busy(curator):
    async def work():
        service = CuratorService(curator, workers=1, seats=1, first=0)
        with halted(curator) as entered:
            asked = asyncio.create_task(service.ask("ada", ASKED))
            await reached(entered, 1)
            with pytest.raises(Refused) as caught:
                await service.ask("ben", ASKED)
            assert caught.value.code == ErrorCode.BUSY
        await asked
        await service.close()

    run(work())


@pytest.mark.slow
def test_an_asker_who_goes_away_pays_once_and_finds_the_answer(curator):
    async def work():
        service = CuratorService(curator, workers=1, first=0)
        with halted(curator) as entered:
            running = asyncio.create_task(service.ask("ada", ASKED))
            waiting = asyncio.create_task(service.ask("ada", Question(f"{COUNT} WHERE paid", epsilon=1)))
            await reached(entered, 1)
            for task in (running, waiting):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert service.in_use == 1  # the one that runs; the one that waited has charged nothing
        while service.in_use:
            await asyncio.sleep(0.01)
        again = await service.ask("ada", ASKED)
        assert again.receipt.repeat and (await service.budget("ada")).to_dict()["own"]["spent"] == "1"
        await service.close()

    run(work())


def test_a_stop_finishes_what_runs_and_turns_away_what_waits(curator):
    async def work():
        service = CuratorService(curator, workers=1, first=0)
        with halted(curator) as entered:
            running = asyncio.create_task(service.ask("ada", ASKED))
            waiting = asyncio.create_task(service.ask("ada", Question(f"{COUNT} WHERE paid", epsilon=1)))
            await reached(entered, 1)
            closing = asyncio.create_task(service.close(20))
            with pytest.raises(Refused) as caught:
                await waiting
            assert caught.value.code == ErrorCode.BUSY
            with pytest.raises(Refused):
                await service.ask("ben", ASKED)
        await closing
        assert (await running).receipt.entry and service.in_use == 0

    run(work())


@pytest.mark.slow
def test_a_stop_waits_no_longer_than_its_patience_and_what_is_cut_off_is_charged_once(curator):
    async def work():
        service = CuratorService(curator, workers=1, first=0)
        with halted(curator) as entered:
            running = asyncio.create_task(service.ask("ada", ASKED))
            await reached(entered, 1)
            await service.close(0.05)
            assert service.in_use == 1
            # It is on the ledger, although no answer is there yet.
            assert curator.ledger.standing("ada").spent.epsilon == 10**12
        await running

    run(work())
    assert curator.analyst("ada").ask(COUNT, epsilon=1).receipt.repeat


@pytest.mark.slow
def test_many_threads_on_one_curator_agree_on_every_answer_and_overspend_nothing(curator, full):
    kinds = [
        "SELECT COUNT(*) AS n FROM visits WHERE age > {}",
        "SELECT ward, AVG(cost) AS c FROM visits WHERE age > {} GROUP BY ward HAVING COUNT(*) > 1 ORDER BY c DESC",
        "SELECT illness, COUNT(*) * 2 AS n FROM visits WHERE age > {} GROUP BY illness",
        "SELECT MEDIAN(age) AS m, SUM(cost) / COUNT(*) AS x FROM visits WHERE age > {}",
    ]
    questions = [kind.format(n) for n in range(30 if full else 4) for kind in kinds]

    async def work():
        service = CuratorService(curator, workers=8, seats=4000, rate=10**6, first=0)
        asked = [(who, sql) for sql in questions for who in ("ada", "ben", "ada")]
        answers = await asyncio.gather(*(service.ask(who, Question(sql, epsilon=0.25)) for who, sql in asked))
        await service.close()
        return [(sql, answer) for (_, sql), answer in zip(asked, answers, strict=True)]

    seen: dict[str, str] = {}
    for sql, answer in run(work()):
        shown = str(answer.to_arrow().to_pydict())
        assert seen.setdefault(sql, shown) == shown  # one answer, whoever asks it and when
    kinds_of = [entry.kind for entry in curator.ledger.entries()]
    assert kinds_of.count(EntryKind.COMMIT) == kinds_of.count(EntryKind.RESERVE) == len(questions)
    for who in ("ada", "ben"):
        assert curator.ledger.standing(who).spent.epsilon == len(questions) * 10**12 // 4
    assert verify(curator.ledger, Witness(curator.policy.books.witness)).ok


@pytest.mark.slow
def test_who_asks_too_often_waits(curator):
    async def work():
        service = CuratorService(curator, rate=0.001)  # a burst of one
        await service.budget("ada")
        with pytest.raises(Refused) as caught:
            await service.budget("ada")
        assert caught.value.code == ErrorCode.RATE
        await service.budget("ben")  # is another person
        await service.close()

    run(work())


def test_a_rate_grants_its_burst_and_then_one_at_a_time():
    rate = RateLimiter(per_second=2, burst=3)
    granted = [tenth / 10 for tenth in range(31) if rate.take("ada", now=tenth / 10) == 0]
    # 3 at once is three tenths here: 0, 0.1, 0.2. Tokens come back every half second, so by 3.0 there are 3 + 6 in all.
    assert granted[:3] == [0, 0.1, 0.2] and len(granted) in (8, 9)
    assert rate.take("ben", now=3) == 0


def test_a_rate_forgets_the_unused_and_stays_small():
    rate = RateLimiter(per_second=0.001, burst=1)
    for n in range(20_100):
        rate.take(f"address {n}", now=1)
    assert len(rate._buckets) == 20_000


def test_steps_double():
    assert [round_up_to_bucket(t, 0.02) for t in (0, 0.02, 0.0201, 0.05, 0.32, 0.33)] == [
        0.02,
        0.02,
        0.04,
        0.08,
        0.32,
        0.64,
    ]


@pytest.mark.parametrize("error", [None, Failed(), ParameterError("x", "is wrong")])
def test_the_outcome_of_a_run_comes_at_the_edge_of_a_step(error):
    pauses: list[float] = []

    def run():
        time.sleep(0.002)
        if error is not None:
            raise error
        return 7

    with nullcontext() if error is None else pytest.raises(type(error)):
        assert delay_to_bucket(run, 3600, pauses.append) == 7
    (pause,) = pauses
    assert 3000 < pause <= 3600 - 0.002


def test_without_a_first_step_an_outcome_comes_at_once():
    assert delay_to_bucket(lambda: 7, 0, pytest.fail) == 7


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "seats"), [(0, 4), (4, 3)])
def test_fewer_seats_than_workers_are_an_error(curator, workers, seats):
    with pytest.raises(ParameterError, match="to the number of seats"):
        CuratorService(curator, workers=workers, seats=seats)
