"""The processes that catalog queries run in: what ends them, what they leave behind, and what they can reach."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time

import psycopg
import pytest

from tacit.serve.pgwire import start_listener
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.catalog_process import Limits
from tacit.serve.pgwire.catalog_queue import MOST_WAITING, FairQueue
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.throttle import Throttle

GROWTH = 80_000_000  # bytes that the server may grow by; most of these queries ask for far more

# Some name a function that is not there, and are refused; the others run until their limits end them.
MEMORY = [
    "SELECT array_length(generate_series(1,100000000),1)",
    "SELECT generate_series(1, 30000000)",
    "SELECT array_agg(i) FROM generate_series(1, 100000000) AS g(i)",
    "SELECT string_agg(i::text, ',') FROM generate_series(1, 100000000) AS g(i)",
    "SELECT length(" + "replace(" * 9 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 9 + ")",
    "WITH a AS (SELECT generate_series(1, 3000000) AS x) SELECT array_length(x, 1) FROM a, generate_series(1, 99) AS g",
    "SELECT [x FOR x IN generate_series(1, 100000000)]",
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 1000000000)",
]
TIME = [
    "SELECT count(*) FROM generate_series(1, 10000000000000) AS g(i) WHERE i % 7 = 3",
    "SELECT count(*) FROM range(1000000000000)",
    "SELECT max(a.oid + i.oid) FROM " + ", ".join(f"pg_type {name}" for name in "abcdefghi"),
    "SELECT a.oid FROM " + ", ".join(f"pg_type {name}" for name in "abcdef") + " ORDER BY a.oid + f.oid, b.oid",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM generate_series(1, 1000000000) AS g(i) WHERE i::text ~ '(((a*)*)*)*b'",
    "SELECT regexp_replace(string_agg('ab', ''), '((a|b)*)*c', 'x') FROM generate_series(1, 9999999) AS g(i)",
    "SELECT pg_sleep(100)",
]
LARGE = [
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "NOT " * 4_000 + "true",
    "SELECT 1" + " + 1" * 2_400,
    "SELECT " + "[" * 2_000 + "]" * 2_000,
    "SELECT oid FROM pg_class WHERE oid IN (" + ", ".join(map(str, range(2_400))) + ")",
    "SELECT 1" + " UNION ALL SELECT 1" * 1_200,
    "SELECT " + "CASE WHEN true THEN " * 900 + "1" + " END" * 900,
    "SELECT '" + "x" * 59_000 + "' ~ '" + "(x?)" * 200 + "'",
    "SELECT i, " + ", ".join(["'" + "x" * 900 + "'"] * 60) + " FROM generate_series(1, 9000) AS g(i)",
]


FOREVER = "SELECT count(*) FROM generate_series(1, 10000000000000) AS g(i) WHERE i % 7 = 3"
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(scope="module")
def place(served):
    """A second listener of the same server, whose catalog has little patience: its port, and that catalog."""

    async def begin():
        limits = Limits(memory=64_000_000, cpu=0.1)
        catalog = Catalog(served.curator.policy, limits, share=10.0, burst=100.0)
        return await start_listener(served.service, served.authenticator, "127.0.0.1", 0, catalog=catalog)

    async def end():
        listener.close()
        await listener.wait_closed()

    listener = served.run(begin())
    yield listener.sockets[0].getsockname()[1], listener.wire.catalog
    served.run(end())


@pytest.fixture
def connect(served, place):
    """Connects to that listener."""

    def made(who):
        dsn = served.dsn(who, port=str(place[0]), sslmode="disable", options="-c tacit.epsilon=0.25")
        return psycopg.connect(dsn, autocommit=True)

    return made


@pytest.fixture
def run(served, place):
    """Runs a statement as it is, with nothing rewritten and nothing refused before."""

    async def answered(statement):
        names = await place[1].names()
        return list((await place[1].run(statement, names))[1])

    return lambda statement: served.run(answered(statement))


def children(process):
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(child) for child in file.read().split()]


@pytest.mark.slow
@linux
def test_hostile_queries_end_in_an_error_and_nobody_else_notices(connect, place, served, full):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak of the memory counts from here
    before, process = _peak(), served.run(_pid(place[1]))
    done, problems, answered = threading.Event(), [], []

    def others():
        try:
            with connect("ada") as ada:
                while not done.is_set():
                    ada.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall()
                    answered.append(ada.execute("SELECT COUNT(*) FROM visits").fetchone())
        except psycopg.Error as error:
            problems.append(error)

    other = threading.Thread(target=others)
    other.start()
    states = []
    with connect("ben") as ben:
        for text in (*MEMORY, *TIME, *LARGE) if full else (*MEMORY[:5], *TIME[:4], *LARGE[::2]):
            seen = len(answered)
            try:
                ben.execute(text).fetchall()
                states.append("")
            except psycopg.Error as error:
                states.append(error.sqlstate)
            assert ben.execute("SELECT 1").fetchone() == (1,), text[:60]
            while len(answered) < seen + 1 and other.is_alive():
                time.sleep(0.001)  # another analyst was answered since
    done.set()
    other.join()
    assert problems == [] and len(set(answered)) == 1  # one answer, again and again
    assert set(states) <= {"", "57014", "53200", "0A000", "54000", "42601", "42883"}
    assert states.count("53200") >= 3 and states.count("57014") >= 2
    assert _peak() - before < GROWTH
    assert served.run(_pid(place[1])) == process
    deadline = time.monotonic() + 30
    while children(process):  # the last one is being reaped
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def _pid(catalog):
    await catalog.names()
    return catalog.pid


def _peak():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


@pytest.mark.parametrize(
    ("change", "look"),
    [
        ("CREATE TABLE left_here AS SELECT 1 AS x", "SELECT x FROM left_here"),
        ("CREATE TEMP TABLE left_here AS SELECT 1 AS x", "SELECT x FROM left_here"),
        ("CREATE MACRO left_here() AS 1", "SELECT left_here()"),
        ("CREATE SEQUENCE left_here", "SELECT nextval('left_here')"),
        ("CREATE TYPE left_here AS INTEGER", "SELECT 1::left_here"),
        ("PREPARE left_here AS SELECT 1", "EXECUTE left_here"),
    ],
)
def test_what_a_statement_makes_ends_with_it(run, change, look):
    run(change)
    with pytest.raises(WireError):
        run(look)


def test_what_a_statement_changes_ends_with_it(run):
    run("SET VARIABLE left_here = 1")
    assert run("SELECT getvariable('left_here')") == [(None,)]
    before = run("SELECT count(*) FROM pg_type")
    run("DELETE FROM pg_type")
    run("DROP TABLE pg_index")
    assert run("SELECT count(*) FROM pg_type") == before and run("SELECT count(*) FROM pg_index") == [(0,)]
    run("SELECT setseed(0.5)")
    first = run("SELECT random()")
    run("SELECT setseed(0.5)")
    run("SELECT random()")
    assert len({first[0], run("SELECT random()")[0]}) <= 2  # each copy starts where the first process stood
    with pytest.raises(WireError):
        run("SET threads = 4")


def test_values_of_every_type_come_back_as_they_were(run):
    found = run(
        "SELECT 1::HUGEINT, 1.50::DECIMAL(9, 2), DATE '2025-12-31', [1, NULL], [DATE '2025-12-31'], 'a''b', true, NULL,"
        " TIMESTAMP '2025-12-31 01:02:03', 'nan'::DOUBLE, 1e300, 9223372036854775807, ['x', 'y'], ''"
    )
    kinds = "1 1.50 2025-12-31 [1, None] [datetime.date(2025, 12, 31)] a'b True None 2025-12-31T01:02:03 nan 1e+300"
    assert " ".join(map(str, found[0][:11])) == kinds
    assert found[0][11:] == (9223372036854775807, ["x", "y"], "")


@linux
def test_a_statement_can_reach_nothing(connect, place, served):
    process = served.run(_pid(place[1]))
    with open(f"/proc/{process}/environ") as file:
        assert file.read() == ""
    held = [os.readlink(f"/proc/{process}/fd/{each}") for each in os.listdir(f"/proc/{process}/fd")]
    kinds = sorted(name.partition(":")[0] for name in held)
    assert kinds == ["/dev/null"] * 3 + ["pipe"] * 2 + ["socket"]
    assert len(os.listdir(f"/proc/{process}/task")) == 1
    seen = []
    with connect("ben") as ben:

        def watch():
            until = time.monotonic() + 30
            while not seen and time.monotonic() < until:
                for child in children(process):
                    try:
                        with open(f"/proc/{child}/limits") as file:
                            limits = file.read()
                        if "Max open files            0 " in limits:
                            seen.append((limits, os.listdir(f"/proc/{child}/fd")))
                    except FileNotFoundError:
                        continue

        watcher = threading.Thread(target=watch)
        watcher.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            ben.execute(FOREVER)
        watcher.join()
    limits, held = seen[0]
    assert len(held) == 4  # three of /dev/null, and its own socket
    for name in ("Max address space", "Max data size", "Max cpu time", "Max file size"):
        line = next(line for line in limits.splitlines() if line.startswith(name))
        assert "unlimited" not in line, line


@pytest.mark.slow
@linux
def test_a_canceled_statement_ends_at_once(served):
    async def work():
        catalog = Catalog(served.curator.policy, Limits(cpu=60.0, wall=60.0))
        names = await catalog.names()
        running = asyncio.create_task(catalog.run(FOREVER, names))
        while not children(catalog.pid):
            await asyncio.sleep(0.01)
        running.cancel()
        while children(catalog.pid):
            await asyncio.sleep(0.01)
        rows = list((await catalog.run("SELECT 1", names))[1])
        await catalog.close()
        return rows

    assert served.run(work()) == [(1,)]


@pytest.mark.slow
@linux
def test_a_process_that_ends_is_replaced(served):
    async def work():
        catalog = Catalog(served.curator.policy, Limits(cpu=60.0, wall=60.0), share=100.0, burst=100.0)
        names = await catalog.names()
        first = catalog.pid
        running = asyncio.create_task(catalog.run(FOREVER, names))
        while not children(first):
            await asyncio.sleep(0.01)
        (statement,) = children(first)
        os.kill(first, signal.SIGKILL)
        os.kill(statement, signal.SIGKILL)
        with pytest.raises(WireError) as error:
            await running
        rows = list((await catalog.run("SELECT 1", names))[1])
        second = catalog.pid
        await catalog.close()
        return error.value.sqlstate, rows, first != second

    assert served.run(work()) == ("57014", [(1,)], True)


def test_analysts_take_turns_however_many_statements_one_sends():
    async def work():
        queue, order = FairQueue(running=2, share=1.0, burst=1e9), []

        async def statement(who):
            await queue.enter(who)
            order.append(who)
            await asyncio.sleep(0)
            queue.leave(who, 0.001)

        eager = [asyncio.create_task(statement("ada")) for _ in range(40)]
        await asyncio.sleep(0)
        others = [asyncio.create_task(statement(who)) for who in ("ben", "cy", "dee")]
        await asyncio.gather(*eager, *others)
        return order

    order = asyncio.run(work())
    # one of ada's was running when they came; before the last of the three come at most two more of hers
    assert max(order.index(who) for who in ("ben", "cy", "dee")) <= 1 + 3 + 2


def test_one_analyst_runs_one_statement_at_a_time_and_has_so_many_waiting():
    async def work():
        queue = FairQueue(running=3, share=1.0, burst=1e9)
        await queue.enter("ada")
        waiting = [asyncio.create_task(queue.enter("ada")) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(WireError, match="waiting already"):
            await queue.enter("ada")
        await queue.enter("ben")  # passes all of them
        assert not any(each.done() for each in waiting)
        for each in waiting[:-1]:
            each.cancel()
        await asyncio.gather(*waiting[:-1], return_exceptions=True)
        queue.leave("ada", 0.0)
        await waiting[-1]

    asyncio.run(work())


def test_cpu_time_beyond_an_analysts_share_is_waited_for_by_that_analyst_alone():
    async def work():
        queue = FairQueue(running=1, share=0.5, burst=1.0)
        await queue.enter("ada")
        queue.leave("ada", 1.05)  # 0.05 too many, at half a second a second: 0.1 seconds
        late = asyncio.create_task(queue.enter("ada"))
        await asyncio.sleep(0)
        assert not late.done()
        await queue.enter("ben")
        queue.leave("ben", 0.0)
        await late

    asyncio.run(work())


def test_a_throttle_admits_its_burst_and_its_rate_and_no_more():
    throttle = Throttle(per_second=10.0, burst=5.0)
    served = sorted(throttle.delay("ada", 1.0, now=0.0) for _ in range(105))
    assert sum(delay == 0.0 for delay in served) == 5
    assert served[-1] == pytest.approx(10.0)  # a hundred more, at ten a second
    assert throttle.delay("ada", 1.0, now=100.0) == 0.0
