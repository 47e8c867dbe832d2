"""Whatever is sent, the server answers or hangs up, holds little, and serves the others."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
import tracemalloc

import psycopg
import pytest
from tests.support.counts import FULL

from tacit.serve.pgwire import listener, protocol

MANY = FULL
ROUNDS = 2_000 if MANY else 80
KINDS = b"QPBDECSHXFpdcf\0Z!"
TEXTS = [
    b"SELECT COUNT(*) FROM visits",
    b"SELECT 1; SELECT 2",
    b"SET tacit.epsilon = 0.5",
    b"SELECT $1::text, $2",
    b"SELECT * FROM pg_class WHERE relname ~ 'a'",
    b"BEGIN",
    b"SELECT E'\\xff'",
    b"/*",
]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def valid(rng: random.Random) -> bytes:
    """A message that could be meant."""
    text, name = rng.choice(TEXTS), rng.choice([b"", b"a", b"b"])
    return rng.choice(
        [
            message(b"Q", text + b"\0"),
            message(b"P", name + b"\0" + text + b"\0\0\1\0\0\0\x19"),
            message(b"B", name + b"\0" + name + b"\0\0\0\0\1\0\0\0\2ab\0\0"),
            message(b"D", rng.choice([b"S", b"P"]) + name + b"\0"),
            message(b"E", name + b"\0\0\0\0\1"),
            message(b"C", rng.choice([b"S", b"P"]) + name + b"\0"),
            message(b"S", b""),
            message(b"H", b""),
        ]
    )


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The same with some bytes changed, cut off, or put in."""
    found = bytearray(data)
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(found))
        match rng.randrange(4):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                del found[at:]
            case 2:
                found[at:at] = rng.randbytes(rng.randint(1, 8))
            case _:
                found[at : at + 1] = bytes([rng.choice(KINDS)])
        if not found:
            break
    return bytes(found)


def local_address(number: int) -> str:
    """An address of this machine, for each number another: one may open only a few connections a second."""
    return f"127.1.{number // 200}.{1 + number % 200}"


@pytest.fixture
def unharmed(served):
    """Checks afterwards: nobody is left, the loop saw no error, and another client is served."""
    problems = []
    served.loop.call_soon_threadsafe(served.loop.set_exception_handler, lambda _, context: problems.append(context))
    with psycopg.connect(served.dsn(options="-c tacit.epsilon=1"), autocommit=True) as other:

        def ask() -> int:
            return other.execute("SELECT COUNT(*) AS n FROM visits").fetchone()[0]

        before = ask()
        yield ask
        assert ask() == before
    until = time.monotonic() + 20
    while served.listener.wire.connections and time.monotonic() < until:
        time.sleep(0.02)
    assert served.listener.wire.connections == 0
    served.loop.call_soon_threadsafe(served.loop.set_exception_handler, None)
    assert problems == []


def test_strangers_who_send_anything(served, unharmed):
    rng = random.Random(1)
    starts = [
        struct.pack(">II", 8, 80877103),
        struct.pack(">II", 8, 80877104),
        struct.pack(">II", 16, 80877102) + b"a" * 8,
    ]
    starts.append(struct.pack(">II", 18, 3 << 16) + b"user\0ada\0\0")
    for index in range(ROUNDS):
        stranger = (local_address(index), 0)
        with socket.create_connection(("127.0.0.1", served.port), timeout=10, source_address=stranger) as client:
            data = rng.randbytes(rng.randint(0, 200)) if index % 2 else mutated(rng, rng.choice(starts))
            client.sendall(data)
            if rng.random() < 0.5:
                client.shutdown(socket.SHUT_WR)
                try:
                    while client.recv(4096):
                        pass
                except ConnectionError:
                    pass
        if index % 40 == 0:
            unharmed()


@pytest.mark.slow
def test_analysts_who_send_anything(raw, unharmed, monkeypatch):
    monkeypatch.setattr(protocol, "CLIENT_TIMEOUT", 0.1)  # for the rest of half a message
    rng = random.Random(2)
    for index in range(ROUNDS // 2):
        with raw(source=local_address(index)) as client:
            client.login()
            data = b"".join(mutated(rng, valid(rng)) if rng.random() < 0.5 else valid(rng) for _ in range(12))
            with contextlib.suppress(ConnectionError):
                client.socket.sendall(data + message(b"X", b""))
            found = client.until(b"")  # until the server hangs up
        assert not [body for _, body in found if b"XX000" in body]
        if index % 10 == 0:
            unharmed()


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 3, 7, 10_001, 2**31 - 1, 2**32 - 1])
def test_a_first_message_of_no_possible_length_is_hung_up_on(served, unharmed, length):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
        client.sendall(struct.pack(">I", length))
        assert b"08P01" in client.recv(4096)
        assert client.recv(4096) == b""


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 3, protocol.MAX_MESSAGE_BYTES + 5, 2**32 - 1])
def test_a_message_of_no_possible_length_is_hung_up_on(raw, unharmed, length):
    with raw() as client:
        client.login()
        client.socket.sendall(b"Q" + struct.pack(">I", length))
        kind, body = client.receive()
        assert kind == b"E" and b"08P01" in body and b"FATAL" in body
        assert client.receive()[0] == b""


def test_a_message_of_the_largest_length_is_read_and_refused(raw, unharmed):
    with raw() as client:
        client.login()
        found = client.query("SELECT '" + "a" * (protocol.MAX_MESSAGE_BYTES - 20) + "'")
        assert b"54000" in dict(found)[b"E"]
        assert not dict(client.query("SELECT 1")).get(b"E")


def test_strangers_cannot_make_the_server_hold_much(served, unharmed):
    """Each may make it hold what its reader buffers, 128 KiB and a little, whatever it sends."""
    clients = []
    tracemalloc.start()
    try:
        unharmed()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(20):
            client = socket.create_connection(("127.0.0.1", served.port), timeout=10)
            client.setblocking(False)
            clients.append(client)
            client.send(struct.pack(">I", 9_999) + b"a" * 5_000)
        junk = b"a" * 1_000_000
        for _ in range(20):
            for client in clients:
                try:
                    client.send(junk)
                except OSError:
                    continue
            time.sleep(0.01)
        unharmed()
        assert tracemalloc.get_traced_memory()[1] - before < 20 * 400_000
    finally:
        tracemalloc.stop()
        for client in clients:
            client.close()


@pytest.mark.slow
def test_who_takes_too_long_is_hung_up_on(served, raw, unharmed, monkeypatch):
    monkeypatch.setattr(listener, "AUTHENTICATION_TIMEOUT", 0.3)
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
        client.sendall(b"\0\0")
        assert client.recv(4096) == b""
    monkeypatch.undo()
    with raw() as client:
        client.login()
        monkeypatch.setattr(protocol, "CLIENT_TIMEOUT", 0.3)
        client.socket.sendall(b"Q\0\0\1\0SELECT")
        assert b"did not come" in client.receive()[1]
        assert client.receive()[0] == b""


@pytest.mark.slow
def test_too_many_strangers_make_way_for_newcomers_and_analysts_stay(served, unharmed, monkeypatch):
    monkeypatch.setattr(served.listener.wire._connections, "of_address", 3)
    clients = [socket.create_connection(("127.0.0.1", served.port), timeout=10) for _ in range(6)]
    try:
        assert [client.recv(1) for client in clients[:3]] == [b""] * 3
        unharmed()
    finally:
        for client in clients:
            client.close()


@pytest.mark.slow
def test_who_never_takes_the_answers_is_hung_up_on(raw, served, unharmed, monkeypatch):
    with raw() as client:
        client.login()
        monkeypatch.setattr(protocol, "CLIENT_TIMEOUT", 0.3)
        client.socket.sendall(40 * message(b"Q", b"SELECT i, i, i, i, i, i FROM generate_series(1, 9000) AS g(i)\0"))
        until = time.monotonic() + 20
        while served.listener.wire.connections > 1 and time.monotonic() < until:  # the other one is the well-behaved
            time.sleep(0.02)
        assert served.listener.wire.connections == 1
