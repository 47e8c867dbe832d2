"""One connection that sends as much as it can, and who is served beside it. Messages are counted, not seconds."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
import struct
import threading
import time
import tracemalloc

import pytest

from tacit.serve.pgwire import execution, start_listener
from tacit.serve.pgwire.execution import StatementExecutor
from tacit.serve.pgwire.session import WireSession
from tacit.serve.pgwire.tacit_schema import find_explained_questions
from tacit.serve.pgwire.tokens import tokenize_statements
from tacit.serve.service import CuratorService

SYNC = b"S\0\0\0\4"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


@pytest.fixture
def order(monkeypatch, served):
    """Whose messages and statements are handled, in their order, once nobody else is there."""
    until = time.monotonic() + 60
    while served.listener.wire.connections and time.monotonic() < until:
        time.sleep(0.01)
    found, handle, outcome = [], WireSession._handle, StatementExecutor.outcome

    async def noted(self, kind, body):
        found.append(self._performer._who)
        await handle(self, kind, body)

    async def performed(self, statement, *given):
        found.append(self._who)
        return await outcome(self, statement, *given)

    monkeypatch.setattr(WireSession, "_handle", noted)
    monkeypatch.setattr(StatementExecutor, "outcome", performed)
    return found


@contextlib.contextmanager
def held(loop):
    """The loop does nothing while the block lasts."""
    begun, go_on = threading.Event(), threading.Event()
    loop.call_soon_threadsafe(lambda: (begun.set(), go_on.wait(60)))
    begun.wait(60)
    try:
        yield
    finally:
        go_on.set()


FLOODS = {
    "sync": SYNC * 10_000,
    "empty queries": message(b"Q", b"\0") * 5_000,
    "close": message(b"C", b"Sx\0") * 5_000 + SYNC,
    "bind and describe": (message(b"P", b"\0SELECT 1\0\0\0") + message(b"C", b"S\0")) * 2_000 + SYNC,
    "skipped after an error": message(b"B", b"\0nothing\0\0\0\0\0\0\0") * 2_000 + SYNC,
    "rest of a copy": message(b"d", b"x") * 5_000 + SYNC,
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_another_connection_is_served_after_a_few_messages_of_a_flood(raw, served, order, flood):
    with raw() as loud, raw() as quiet:
        loud.login("ada")
        quiet.login("ben")
        done = threading.Event()
        with held(served.loop):  # both are there when the loop goes on
            flooding = threading.Thread(target=_flood, args=(loud.socket, flood, done))
            flooding.start()
            flooding.join(0.2)  # what its buffers take is there before the other's
            quiet.socket.sendall(SYNC)
        assert quiet.receive()[0] == b"Z"
        done.set()
        flooding.join()
    assert order.index("ben") <= 4  # what was sent is read in a few steps, and both take one at a time


def _flood(connection, data, done):
    """Send and read at once, in one thread: a TLS connection is not made for two."""
    connection.setblocking(False)
    rest = memoryview(data)
    with contextlib.suppress(ConnectionError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
        while not done.is_set():
            before = len(rest)
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                rest = rest[connection.send(rest[:16_384]) :] if rest else rest
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not connection.recv(65_536):
                    return
                continue
            if len(rest) == before:
                select.select([connection], [connection] if rest else [], [], 0.05)


def test_statements_of_one_message_give_way_too(raw, served, order):
    with raw() as loud, raw() as quiet:
        loud.login("ada")
        quiet.login("ben")
        with held(served.loop):
            loud.send(b"Q", b"SET application_name = 'a';" * 800 + b"\0")
            quiet.socket.sendall(SYNC)
        assert quiet.receive()[0] == b"Z"
        seen = loud.until(b"Z")
    assert sum(kind == b"C" for kind, _ in seen) == 800
    assert order.count("ada") == 801 and order.index("ben") <= 4


@pytest.mark.slow
def test_messages_are_counted_against_a_rate_of_the_analyst(served, raw):
    """At so low a rate a hundred messages come at once, and the next after minutes, through any connection."""

    async def begin():
        return await start_listener(CuratorService(served.curator, rate=0.001), served.authenticator, "127.0.0.1", 0)

    async def end():
        listener.close()
        await listener.wait_closed()

    listener = served.run(begin())
    port = listener.sockets[0].getsockname()[1]
    try:
        with contextlib.ExitStack() as opened:
            one, two, other = (opened.enter_context(raw(tls=False, port=port)) for _ in range(3))
            one.login("ada")
            two.login("ada")
            other.login("ben")
            one.socket.sendall(SYNC * 60)
            assert [one.receive()[0] for _ in range(60)] == [b"Z"] * 60
            two.socket.sendall(SYNC * 500)
            assert [two.receive()[0] for _ in range(40)] == [b"Z"] * 40
            for each in (one, two):
                each.socket.sendall(SYNC)
                each.socket.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    each.socket.recv(1)
            other.socket.sendall(SYNC * 3)
            assert [other.receive()[0] for _ in range(3)] == [b"Z"] * 3
    finally:
        served.run(end())


@pytest.mark.slow
def test_answers_that_nobody_takes_are_not_piled_up(raw, served, order):
    """All settings, shown again and again without a Sync to a client that reads nothing."""
    show = message(b"B", b"\0w\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0")
    with raw() as client:
        client.login()
        client.send(b"P", b"w\0SHOW ALL\0\0\0")
        client.socket.sendall(show + SYNC)
        size = sum(len(body) for _, body in client.until(b"Z"))
        rounds = 20_000
        assert rounds * size > 20_000_000
        handled = len(order)
        tracemalloc.start()
        try:
            client.socket.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                client.socket.sendall(show * rounds)
            served.run(_until_blocked(served))
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()
    until = time.monotonic() + 60
    while served.listener.wire.connections and time.monotonic() < until:
        time.sleep(0.01)
    assert len(order) - handled < 2 * rounds  # what was not answered when the client went away never was


async def _until_blocked(served):
    """Wait until a session waits for its client to take its answers, or has no message left."""
    buffered = -1
    while True:
        await asyncio.sleep(0.3)
        now = served.listener.wire.connections
        sizes = sum(
            session._channel.writer.transport.get_write_buffer_size()
            for session in served.listener.wire._sessions.values()
        )
        if (now, sizes) == buffered:
            return
        buffered = (now, sizes)


@pytest.mark.parametrize(
    "body",
    [
        b"n" * 300 + b"\0SELECT 1\0\0\0",
        b"\0SELECT 1\0" + struct.pack(">H", 30_000) + bytes(4 * 30_000),
    ],
    ids=["a long name", "many types"],
)
def test_a_statement_with_a_long_name_or_many_parameters_is_refused(raw, body):
    with raw() as client:
        client.login()
        client.send(b"P", body)
        client.socket.sendall(SYNC)
        found = dict(client.until(b"Z"))
        assert b"54000" in found[b"E"]


def test_a_bind_of_many_values_is_refused_before_they_are_read(raw):
    with raw() as client:
        client.login()
        client.send(b"P", b"\0SELECT $1\0\0\0")
        client.send(b"B", b"\0\0\0\0" + struct.pack(">H", 32_000) + b"\xff\xff\xff\xff" * 32_000 + b"\0\0")
        client.socket.sendall(SYNC)
        assert b"54000" in dict(client.until(b"Z"))[b"E"]


def test_prepared_statements_of_a_session_are_bounded_in_number_and_in_text(raw):
    with raw() as client:
        client.login()
        for number in range(300):
            client.send(b"P", b"s%d\0SELECT 1\0\0\0" % number)
            client.socket.sendall(SYNC)
        kinds = [kind for _ in range(300) for kind, _ in client.until(b"Z")]
        assert kinds.count(b"1") == 256 and kinds.count(b"E") == 44
    with raw() as client:
        client.login()
        for number in range(20):
            client.send(b"P", b"s%d\0SELECT '%s'\0\0\0" % (number, b"x" * 50_000))
            client.socket.sendall(SYNC)
        kinds = [kind for _ in range(20) for kind, _ in client.until(b"Z")]
        assert kinds.count(b"1") == 9 and kinds.count(b"E") == 11  # of 500,000 characters


def test_a_message_that_comes_byte_by_byte_holds_up_nobody(raw, served, order):
    with raw() as slow, raw() as quiet:
        slow.login("ada")
        quiet.login("ben")
        text = b"SELECT 1\0"
        for place in range(len(message(b"Q", text))):
            slow.socket.sendall(message(b"Q", text)[place : place + 1])
            quiet.socket.sendall(SYNC)
            assert quiet.receive()[0] == b"Z"
        assert slow.until(b"Z")[-1][0] == b"Z"


def test_cancel_requests_without_end_hold_up_nobody(raw, served):
    cancel = struct.pack(">III", 16, 80877102, 1) + struct.pack(">I", 1)
    with raw() as quiet:
        quiet.login("ben")
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
                client.sendall(cancel * 20)
        assert dict(quiet.query("SELECT 1"))[b"D"] == b"\0\1\0\0\0\0011"


def test_a_portal_keeps_no_rows_that_were_sent(raw, served):
    with raw() as client:
        client.login()
        client.send(b"Q", b"BEGIN\0")
        client.until(b"Z")
        for name in (b"a", b"b"):
            client.send(b"P", b"\0SELECT i FROM generate_series(1, 50) AS g(i)\0\0\0")
            client.send(b"B", name + b"\0\0\0\0\0\0\0\0")
            client.send(b"E", name + b"\0\0\0\0\0")
            client.send(b"E", name + b"\0\0\0\0\0")  # again: nothing is left
        client.socket.sendall(SYNC)
        found = client.until(b"Z")
        assert [body for kind, body in found if kind == b"C"] == [b"SELECT 50\0", b"SELECT 0\0"] * 2
        session = list(served.listener.wire._sessions.values())[-1]
        assert [len(portal.outcome.rows) for portal in session._extended.portals.values()] == [0, 0]


@pytest.mark.slow
def test_rows_that_portals_hold_for_later_are_bounded_together(raw):
    wide = b"SELECT i, '" + b"x" * 150 + b"' FROM generate_series(1, 9000) AS g(i)"
    with raw() as client:
        client.login()
        client.query("BEGIN")
        client.send(b"P", b"w\0" + wide + b"\0\0\0")
        ended = []
        for name in (b"a", b"b", b"c", b"d"):
            client.send(b"B", name + b"\0w\0\0\0\0\0\0\0")
            client.send(b"E", name + b"\0\0\0\0\1")  # one row now, and the others later
            client.socket.sendall(SYNC)
            ended.append({kind for kind, _ in client.until(b"Z")} & {b"s", b"E"})
        assert ended == [{b"s"}] * 2 + [{b"E"}] * 2  # each is about 1.5 million bytes, and 4 million are the most


@pytest.mark.slow
def test_rows_held_for_later_are_bounded_over_all_sessions_and_go_with_their_session(raw, served, monkeypatch):
    monkeypatch.setattr("tacit.serve.pgwire.prepared_statements._MOST_HELD_BY_ANALYST", 4_000_000)
    wide = b"SELECT i, '" + b"x" * 150 + b"' FROM generate_series(1, 9000) AS g(i)"  # about 1.5 million bytes
    clients, ended, held = [raw() for _ in range(4)], [], served.listener.wire._services.held
    for client in clients:
        client.login()
        client.query("BEGIN")
        client.send(b"P", b"\0" + wide + b"\0\0\0")
        client.send(b"B", b"a\0\0\0\0\0\0\0\0")
        client.send(b"E", b"a\0\0\0\0\1")  # one row now, and the others later
        client.socket.sendall(SYNC)
        ended.append({kind for kind, _ in client.until(b"Z")} & {b"s", b"E"})
    assert ended == [{b"s"}] * 2 + [{b"E"}] * 2
    assert 2_800_000 < held["ada"] < 4_000_000
    portals = [session._extended.portals for session in served.listener.wire._sessions.values()]
    clients[0].query("ROLLBACK")
    assert 1_400_000 < held["ada"] < 2_000_000
    for client in clients:
        client.socket.close()
    until = time.monotonic() + 10
    while "ada" in held and time.monotonic() < until:
        time.sleep(0.01)
    assert "ada" not in held and not any(portals)


def prepare(name: bytes, text: bytes, *types: int) -> bytes:
    """Parse."""
    return message(b"P", name + b"\0" + text + b"\0" + struct.pack(f">h{len(types)}I", len(types), *types))


def bind(portal: bytes, statement: bytes, *values: bytes) -> bytes:
    """Bind, with values as text."""
    given = b"".join(struct.pack(">I", len(value)) + value for value in values)
    return message(b"B", portal + b"\0" + statement + b"\0\0\0" + struct.pack(">h", len(values)) + given + b"\0\0")


def describe(kind: bytes, name: bytes) -> bytes:
    """Describe."""
    return message(b"D", kind + name + b"\0")


def execute(portal: bytes) -> bytes:
    """Execute, for all rows."""
    return message(b"E", portal + b"\0\0\0\0\0")


def exchange(client, *messages: bytes) -> list[tuple[bytes, bytes]]:
    """Send messages and a Sync; what comes back."""
    client.socket.sendall(b"".join(messages) + SYNC)
    return client.until(b"Z")


def test_a_value_in_many_places_takes_no_more_memory_than_its_message(raw):
    """A list of 3,300 numbers of 41 digits in 1,000 places would be a text of 140 million characters."""
    text = b"SELECT COUNT(*) FROM visits WHERE " + b" OR ".join([b"cost=$1"] * 1_000)
    value = b"{" + b",".join([b"1e40"] * 3_300) + b"}"
    with raw() as client:
        client.login(**{"tacit.epsilon": "0.1"})
        for last in (describe(b"P", b""), execute(b"")):
            tracemalloc.start()
            try:
                found = exchange(client, prepare(b"", text, 1231), bind(b"", b"", value), last)
                assert tracemalloc.get_traced_memory()[1] < 20_000_000
            finally:
                tracemalloc.stop()
            assert b"C54000" in dict(found)[b"E"]
        assert b"C22003" in dict(exchange(client, prepare(b"", text, 1231), bind(b"", b"", b"{1e400}")))[b"E"]


@pytest.fixture
def costs(served, monkeypatch):
    """What each message of ada counted as, once nobody else is there."""
    found, delay = [], served.listener.wire._services.messages.delay

    def noted(name, cost):
        if name == "ada":
            found.append(cost)
        return delay(name, cost)

    monkeypatch.setattr(served.listener.wire._services.messages, "delay", noted)
    return found


def test_a_statement_that_is_read_again_is_charged_by_its_size(raw, costs):
    """Read again, 128 characters of a statement, or 32 bytes of values, count as one message."""
    text = b"SELECT COUNT(*) FROM visits WHERE age = $1" + b" OR age = $1" * 500
    with raw() as client:
        client.login(**{"tacit.epsilon": "0.1"})
        exchange(client, prepare(b"s", text))
        costs.clear()
        again = [describe(b"S", b"s"), describe(b"S", b"s"), describe(b"P", b""), execute(b"")]
        assert b"E" not in dict(exchange(client, bind(b"", b"s", b"7" + b" " * 18), *again))
    assert len(costs) == 6
    assert all(cost > len(text) / 128 for cost in costs[1:5]) and costs[0] < 3 and costs[5] == 1


def test_a_statement_without_parameters_is_edited_once(raw, costs, monkeypatch):
    edited, adapt = [], execution.adapt_to_parser
    monkeypatch.setattr(execution, "adapt_to_parser", lambda *given: edited.append(given) or adapt(*given))
    text = b"SELECT COUNT(*) FROM visits WHERE age = 7" + b" OR age = 7" * 500
    with raw() as client:
        client.login(**{"tacit.epsilon": "0.1"})
        exchange(client, prepare(b"s", text))
        costs.clear()
        again = [*[describe(b"S", b"s")] * 3, bind(b"", b"s"), describe(b"P", b""), execute(b"")]
        assert b"E" not in dict(exchange(client, *again))
        assert len(edited) == 1 and costs[0] > len(text) / 128 and all(cost < 2 for cost in costs[1:])
        client.query("CREATE TEMP VIEW v AS SELECT ward FROM wards")  # which a question may name
        costs.clear()
        exchange(client, describe(b"S", b"s"))
        assert len(edited) == 3 and costs[0] > len(text) / 128


def test_a_cursor_that_was_not_asked_is_charged_by_its_size(raw, costs):
    text = "SELECT relname FROM pg_class" + " /* catalog */" * 500
    with raw() as client:
        client.login()
        client.query(f"DECLARE c CURSOR WITH HOLD FOR {text} LIMIT 1")
        costs.clear()
        client.query("SELECT 1; FETCH c")
        client.query("SELECT 1; FETCH c")
    assert costs[1] > len(text) / 128 and costs[3] == 1


def test_values_of_portals_take_what_was_sent(raw, served):
    """Decoded, 29,970 numbers take 3 MB; sent they are 60,000 bytes."""
    values = [b"{" + b",".join([b"7"] * 9_990) + b"}"] * 3
    text = b"SELECT COUNT(*) FROM visits WHERE " + b" OR ".join(b"cost = ANY($%d)" % i for i in range(1, 4))
    with raw() as client:
        client.login()
        client.query("BEGIN")
        exchange(client, prepare(b"p", text, *[1231] * 3))
        tracemalloc.start()
        try:
            for number in range(4):
                assert dict(exchange(client, bind(b"c%d" % number, b"p", *values)))[b"2"] == b""
            assert tracemalloc.get_traced_memory()[0] < 3 * 4 * 60_000
        finally:
            tracemalloc.stop()
        assert served.listener.wire._services.held["ada"] > 4 * 59_000


DECLARED = b" CURSOR FOR SELECT ward FROM wards WHERE beds IN (1" + b", 1" * 500 + b")\0"
VIEWED = " AS SELECT ward /* {} */ FROM wards\0".format("\N{OLD PERSIAN SIGN A}" * 45_000).encode()  # of four bytes
KEPT = {
    "values": [prepare(b"p", b"SELECT $1::text"), bind(b"a", b"p", b"x" * 199_000), bind(b"b", b"p", b"x" * 199_000)],
    "statements": [prepare(b"a", b"SELECT 1" + b" + 1" * 1_000), prepare(b"b", b"SELECT 1" + b" + 1" * 1_000)],
    "cursors": [message(b"Q", b"DECLARE a" + DECLARED), message(b"Q", b"DECLARE b" + DECLARED)],
    "views": [message(b"Q", b"CREATE TEMP VIEW a" + VIEWED), message(b"Q", b"CREATE TEMP VIEW b" + VIEWED)],
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_what_sessions_keep_is_bounded_over_all_sessions_of_an_analyst(raw, served, monkeypatch, kept):
    most, held = 1_000_000, served.listener.wire._services.held
    monkeypatch.setattr("tacit.serve.pgwire.prepared_statements._MOST_HELD_BY_ANALYST", most)
    refused = []
    with contextlib.ExitStack() as opened:
        for client in [opened.enter_context(raw()) for _ in range(5)]:
            client.login()
            client.query("BEGIN")
            for each in kept:
                client.socket.sendall(each + (b"" if each[:1] == b"Q" else SYNC))
                refused += [body for kind, body in client.until(b"Z") if kind == b"E"]
                assert held["ada"] <= most
    assert b"C54000\0Mthe sessions of this analyst hold more than 1 MB" in refused[0]
    until = time.monotonic() + 10
    while "ada" in held and time.monotonic() < until:
        time.sleep(0.01)
    assert "ada" not in held


def test_a_question_to_explain_is_read_once_however_often_it_is_named():
    found = tokenize_statements("SELECT " + "tacit.explain($1)," * 400 + "tacit.explain('a'), tacit.explain('a')")
    assert find_explained_questions(found, [b"SELECT 1"]) == ["a", "SELECT 1"]
