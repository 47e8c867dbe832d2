"""The processes that catalog statements run in: what ends them, what they leave behind, and what they can reach."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from tests.support.counts import FULL, some

from tacit.serve.pgwire import start_listener
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.catalog_backend import CatalogStatement, Limits
from tacit.serve.pgwire.catalog_programs import find_programs
from tacit.serve.pgwire.catalog_queue import MOST_WAITING, FairQueue
from tacit.serve.pgwire.catalog_template import cache_folder, make_template
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.throttle import Throttle

GROWTH = 80_000_000  # bytes that the server may grow by; most of these statements ask for far more

LIFTED = (
    "SELECT set_config('statement_timeout', '0', false), set_config('work_mem', '1GB', false), "
    "set_config('default_transaction_read_only', 'off', false), set_config('temp_buffers', '1GB', false), "
    "set_config('lock_timeout', '0', false), set_config('hash_mem_multiplier', '1000', false)"
)
MEMORY = [
    "SELECT array_length(array_agg(i), 1) FROM generate_series(1, 100000000) AS g(i)",
    "SELECT length(string_agg(i::text, ',')) FROM generate_series(1, 100000000) AS g(i)",
    "SELECT length(" + "replace(" * 9 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 9 + ")",
    "SELECT repeat('x', 900000000)",
    "SELECT lpad('x', 900000000)",
    "SELECT array_fill(0::int8, ARRAY[100000000])",
    "SELECT count(*) FROM (SELECT DISTINCT i FROM generate_series(1, 100000000) AS g(i)) d",
    "SELECT jsonb_object_agg(i, i) FROM generate_series(1, 100000000) AS g(i)",
]
TIME = [
    "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d",
    "SELECT max(a.oid::int8 + d.oid::int8) FROM pg_proc a, pg_proc b, pg_proc c, pg_proc d",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n % 2 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM pg_proc a, pg_proc b, pg_proc c WHERE a.proname || b.proname ~ '((a|b)*)*c'",
    "SELECT repeat('a', 30000) ~ '((((a*)*)*)*)*b'",
    "SELECT numeric_fac FROM (SELECT factorial(30000) AS numeric_fac) f, pg_proc a, pg_proc b, pg_proc c",
]
LARGE = [
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "NOT " * 4_000 + "true",
    "SELECT 1" + " + 1" * 2_400,
    "SELECT oid FROM pg_class WHERE oid IN (" + ", ".join(map(str, range(2_400))) + ")",
    "SELECT 1" + " UNION ALL SELECT 1" * 1_200,
    "SELECT " + "CASE WHEN true THEN " * 900 + "1" + " END" * 900,
    "SELECT i, " + ", ".join(["'" + "x" * 900 + "'"] * 60) + " FROM generate_series(1, 9000) AS g(i)",
    "SELECT generate_series(1, 100000000)",
]
FOREVER = TIME[0]
ENDED = {"57014", "53200", "53400", "54000", "54001", "0A000"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(scope="module")
def place(served):
    """A second listener of the same server, whose catalog has little patience: its port, and that catalog."""

    async def begin():
        limits = Limits(memory=120_000_000, seconds=3.0)  # of the clock, in which others are answered too
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


def children(process):
    found = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for part in found for child in part]


def commands(process):
    """The processes of PostgreSQL below a supervisor, by what they do."""
    (postmaster,) = children(process)
    found = {"postmaster": postmaster}
    for child in children(postmaster):
        with open(f"/proc/{child}/cmdline") as file:
            found[file.read().rstrip("\0 ")] = child
    return found


def is_there(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
@linux
def test_hostile_statements_end_in_an_error_and_nobody_else_notices(connect, place, served, full):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak of the memory counts from here
    before = _peak()
    done, problems, answered, others_process = threading.Event(), [], [], []

    def others():
        try:
            with connect("ada") as ada:
                while not done.is_set():
                    ada.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall()
                    others_process.append(ada.execute("SELECT pg_backend_pid()").fetchone())
                    answered.append(ada.execute("SELECT COUNT(*) FROM visits").fetchone())
        except psycopg.Error as error:
            problems.append(error)

    other = threading.Thread(target=others)
    other.start()
    states = []
    with connect("ben") as ben:
        for text in (*MEMORY, *TIME, *LARGE) if full else (*MEMORY[:4], *TIME[1:4:2], *LARGE[::2]):
            seen = len(answered)
            try:
                ben.execute(LIFTED).fetchall()
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
    assert len(set(others_process)) == 1  # from one process, which nothing has disturbed
    assert set(states) <= {"", *ENDED}, states
    assert states.count("53200") >= 1 and states.count("57014") >= 2, states
    assert _peak() - before < GROWTH


def _peak():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


@pytest.mark.slow
@linux
def test_what_runs_a_statement_has_limits_and_nothing_of_the_server(connect, place):
    with connect("ben") as ben:
        ben.execute("SELECT 1")
        found = commands(place[1].pid("ben"))
        (backend,) = [process for name, process in found.items() if "ben clinic" in name]
        with open(f"/proc/{backend}/limits") as file:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
        assert limits["Max address space"] == ["120000000"] * 2
        assert limits["Max core file size"] == ["0", "0"] and limits["Max file size"] == ["256000000"] * 2
        with open(f"/proc/{found['postmaster']}/environ") as file:
            assert {each.split("=")[0] for each in file.read().split("\0") if each} <= {
                "LC_ALL",
                "TZ",
                "PATH",
                "PGDATA",
            }
        with open(f"/proc/{backend}/status") as file:
            users = next(line.split()[1:] for line in file if line.startswith("Uid:"))
        assert "0" not in users  # not root, whoever runs the server
        for each in os.listdir(f"/proc/{backend}/fd"):
            target = os.readlink(f"/proc/{backend}/fd/{each}")
            inner = target.startswith(("socket:", "pipe:", "anon_inode:", "/dev/null", str(place[1]._place)))
            assert inner, target  # its own files, and none of the server's


@pytest.mark.slow
@linux
def test_a_canceled_statement_ends_at_once(served):
    async def work():
        catalog = Catalog(served.curator.policy, Limits(seconds=60.0))
        try:
            await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))
            (backend,) = [each for name, each in commands(catalog.pid("ada")).items() if "ada clinic" in name]
            running = asyncio.create_task(catalog.run("ada", "clinic", CatalogStatement(FOREVER)))
            await asyncio.sleep(0.1)
            running.cancel()
            started = time.monotonic()
            while is_there(backend):
                await asyncio.sleep(0.01)
            ended = time.monotonic() - started
            rows = (await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))).rows
            return ended, len(rows), running.cancelled()
        finally:
            await catalog.close()

    ended, count, canceled = served.run(work())
    assert ended < 20 and count == 1 and canceled  # of 60 seconds


@pytest.mark.slow
@linux
@pytest.mark.parametrize("which", ["postmaster", "backend", "supervisor"])
def test_a_process_that_is_killed_is_replaced(served, which):
    async def work():
        catalog = Catalog(served.curator.policy, Limits(seconds=20.0), share=100.0, burst=100.0)
        try:
            await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))
            found = commands(catalog.pid("ada"))
            (backend,) = [each for name, each in found.items() if "ada clinic" in name]
            victim = {"postmaster": found["postmaster"], "backend": backend, "supervisor": catalog.pid("ada")}[which]
            running = asyncio.create_task(catalog.run("ada", "clinic", CatalogStatement(FOREVER)))
            await asyncio.sleep(0.1)
            os.kill(victim, signal.SIGKILL)
            if which == "supervisor":
                running.cancel()
            told = ""
            try:
                await running
            except WireError as error:
                told = error.sqlstate
            except asyncio.CancelledError:
                told = "57014"
            rows, states = None, []
            for _ in range(100):  # a clear error meanwhile, and then an answer
                try:
                    rows = (await catalog.run("ada", "clinic", CatalogStatement("SELECT current_user"))).rows
                    break
                except WireError as error:
                    states.append(error.sqlstate)
                    await asyncio.sleep(0.05)
            until = time.monotonic() + 90
            while (catalog._place / "1").exists() and time.monotonic() < until:
                await asyncio.sleep(0.01)
            left = [each for each in found.values() if is_there(each)], (catalog._place / "1").exists()
            return told, states, rows is not None and rows[0].endswith(b"ada"), left
        finally:
            await catalog.close()

    told, states, answered, left = served.run(work())
    assert told == "57014" and answered and set(states) <= {"57014"}
    assert left == ([], False)  # no process and no folder, while the server goes on


@pytest.mark.slow
@linux
def test_a_catalog_that_is_closed_leaves_no_process_and_no_file(served):
    async def work():
        catalog = Catalog(served.curator.policy, clusters=1)
        for who in ("ada", "ben", "ada"):  # each takes the place of the one before
            found = await catalog.run(who, "clinic", CatalogStatement("SELECT current_user"))
            assert found.rows[0].endswith(who.encode())
        running = asyncio.create_task(catalog.run("ada", "clinic", CatalogStatement(FOREVER)))
        await asyncio.sleep(0.1)
        place, processes = catalog._place, [catalog.pid("ada"), *commands(catalog.pid("ada")).values()]
        running.cancel()
        await catalog.close()
        return place, processes

    place, processes = served.run(work())
    assert not place.exists()
    wait_for(lambda: not any(map(is_there, processes)))


@pytest.mark.slow
@linux
def test_a_catalog_is_closed_while_a_statement_runs(served):
    async def work():
        catalog = Catalog(served.curator.policy, Limits(seconds=60.0))
        await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))
        running = asyncio.create_task(catalog.run("ada", "clinic", CatalogStatement(FOREVER)))
        await asyncio.sleep(0.1)
        place, processes = catalog._place, [catalog.pid("ada"), *commands(catalog.pid("ada")).values()]
        await catalog.close()
        (told,) = await asyncio.gather(running, return_exceptions=True)
        return place, processes, told

    place, processes, told = served.run(work())
    assert not place.exists() and not any(map(is_there, processes))
    assert isinstance(told, WireError) and told.sqlstate == "57014"


@pytest.mark.slow
def test_a_stop_while_the_first_files_are_made_leaves_none_of_them(served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where no template is kept yet
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)

    async def work():
        catalog = Catalog(served.curator.policy)
        listener = await start_listener(served.service, served.authenticator, "127.0.0.1", 0, catalog=catalog)
        while catalog._place is None or not (catalog._place / "template").exists():
            await asyncio.sleep(0.01)
        listener.close()
        await listener.wait_closed(patience=0.01)
        return catalog._place

    assert not served.run(work()).exists()


@pytest.mark.slow
def test_a_cancel_at_any_moment_leaves_a_catalog_that_answers(served):
    async def work():
        catalog = Catalog(served.curator.policy, share=100.0, burst=100.0)
        wrong = []
        try:
            for step in some(range(12), one_in=3):
                name = f"clinic{step}"  # which must be renamed first
                running = asyncio.create_task(catalog.run("ada", name, CatalogStatement("SELECT pg_backend_pid()")))
                await asyncio.sleep(0.002 * step)
                running.cancel()
                await asyncio.wait([running])
                rows = (await catalog.run("ada", name, CatalogStatement("SELECT current_database()"))).rows
                wrong += [] if rows[0].endswith(name.encode()) else [(name, rows[0])]
        finally:
            await catalog.close()
        return wrong

    assert served.run(work()) == []


class CanceledAt:
    """Awaits work, and cancels it at the places of these numbers among those where it waits."""

    def __init__(self, work, places):
        self.work = work
        self.places = places
        self.waits = 0

    def __await__(self):
        steps = self.work.__await__()
        step = steps.send
        argument = None
        while True:
            try:
                waited = step(argument)
            except StopIteration as end:
                return end.value
            self.waits += 1
            if self.waits - 1 in self.places:
                waited._asyncio_future_blocking = False
                step, argument = steps.throw, asyncio.CancelledError()
                continue
            try:
                argument = yield waited
                step = steps.send
            except BaseException as error:
                step, argument = steps.throw, error


@pytest.mark.slow
@pytest.mark.parametrize("cancels", [1, 2])
def test_a_cancel_at_any_wait_leaves_the_views_of_the_session_that_asks(served, cancels):
    """The second cancel comes while the first is cleaned up after."""
    where = "relkind = 'v' AND relnamespace = 'public'::regnamespace"
    listed = f"SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE {where}"

    def show(*names):
        return CatalogStatement(
            listed, views=tuple((each, f'CREATE VIEW public."{each}" AS SELECT 1') for each in names)
        )

    async def work():
        catalog = Catalog(served.curator.policy, share=100.0, burst=100.0)
        wrong, canceled, place = [], 0, 0
        try:
            while True:
                await catalog.run("ada", "clinic", show("a", "b"))
                running = CanceledAt(catalog.run("ada", "clinic", show("b", "c")), range(place, place + cancels))
                try:
                    await running
                except asyncio.CancelledError:
                    canceled += 1
                if running.waits <= place:  # it has ended before
                    return wrong, canceled
                for names in (("a", "d"), ()):
                    row = (await catalog.run("ada", "clinic", show(*names))).rows[0]
                    wrong += [] if row[11:].decode() == ",".join(names) else [(place, names, row)]
                place += 1
        finally:
            await catalog.close()

    wrong, canceled = served.run(work())
    assert wrong == [] and canceled > 5


@pytest.mark.slow
def test_a_template_is_kept_and_one_that_is_damaged_is_made_anew(served, tmp_path, monkeypatch):
    async def answered():
        catalog = Catalog(served.curator.policy)
        started = time.monotonic()
        for _ in range(3):
            try:
                found = await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))
                break
            except WireError:
                continue
        await catalog.close()
        assert len(found.rows) == 1
        return time.monotonic() - started

    served.run(answered())
    others = make_template(find_programs(), served.curator.policy, tmp_path / "unused", cache_folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    if FULL:
        served.run(answered())
    else:  # which takes seconds: begin with a copy
        shutil.copytree(others, cache_folder() / others.name)
    (kept,) = cache_folder().iterdir()
    made = kept.stat().st_ino
    served.run(answered())
    assert kept.stat().st_ino == made  # the same folder, used again
    (kept / "global" / "pg_control").write_bytes(b"")
    served.run(answered())
    assert kept.stat().st_ino != made
    kept.chmod(0o777)  # anybody could have written in it
    from tacit.serve.pgwire.catalog_template import _is_own

    assert not _is_own(kept)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another account")
def test_programs_in_a_private_folder_are_copied_for_the_account_that_runs_them(served, tmp_path):
    source = find_programs().folder.parent
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for name in ("lib", "share"):
        shutil.copytree(source / name, private / name)
    (private / "bin").mkdir()
    for name in ("postgres", "initdb", "pg_resetwal"):
        shutil.copy2(source / "bin" / name, private / "bin" / name)

    async def work():
        catalog = Catalog(served.curator.policy, programs=private / "bin")
        try:
            return len((await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))).rows)
        finally:
            await catalog.close()

    assert served.run(work()) == 1
    assert stat.S_IMODE(private.stat().st_mode) == 0o700  # and is not opened


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


@pytest.mark.slow
def test_cpu_time_beyond_an_analysts_share_is_waited_for_by_that_analyst_alone():
    async def work():
        queue = FairQueue(running=1, share=0.5, burst=1.0)
        await queue.enter("ada")
        queue.leave("ada", 1.5)  # 0.5 too many, at half a second a second: 1 second
        late = asyncio.create_task(queue.enter("ada"))
        await asyncio.sleep(0)
        assert not late.done()
        await queue.enter("ben")
        queue.leave("ben", 0.0)
        await late

    asyncio.run(work())


def test_statements_that_fail_quickly_are_slowed_down(served):
    """Ten that fail count as a second at least, of which a quarter is free and the last is not waited for."""

    async def work():
        catalog = Catalog(served.curator.policy, share=1.0, burst=0.25)
        try:
            await catalog.run("ada", "clinic", CatalogStatement("SELECT 1"))
            started = time.monotonic()
            for _ in range(10):
                with pytest.raises(WireError, match="division by zero"):
                    await catalog.run("ada", "clinic", CatalogStatement("SELECT 1/0"))
            return time.monotonic() - started
        finally:
            await catalog.close()

    assert served.run(work()) >= 0.65


@pytest.mark.slow
def test_a_throttle_admits_its_burst_and_its_rate_and_no_more():
    throttle = Throttle(per_second=10.0, burst=5.0)
    served = sorted(throttle.delay("ada", 1.0, now=0.0) for _ in range(105))
    assert sum(delay == 0.0 for delay in served) == 5
    assert served[-1] == pytest.approx(10.0)  # a hundred more, at ten a second
    assert throttle.delay("ada", 1.0, now=100.0) == 0.0
