"""Connections: fewer than descriptors, shared among analysts and addresses, and closed where they stay idle."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
import subprocess
import sys
import time

import pytest

from tacit.errors import ParameterError
from tacit.serve import connections as module
from tacit.serve.addresses import networks_of
from tacit.serve.connections import Connections
from tacit.serve.descriptors import connections_allowed


class Place:
    """A listener with counted connections that reads what comes and answers nothing."""

    def __init__(self, most: int, proxies: tuple[str, ...] = ()) -> None:
        self.connections = Connections(most)
        self.proxies = networks_of(proxies)
        self.clients: list[socket.socket] = []

    async def __aenter__(self) -> Place:
        plain = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = plain.getsockname()[1]
        listener = self.connections.listen(plain, self.proxies)
        self.server = await asyncio.start_server(self.serve, sock=listener)
        return self

    async def serve(self, reader, writer) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(100):
                pass
        writer.close()

    async def __aexit__(self, *error: object) -> None:
        for client in self.clients:
            client.close()
        self.server.close()
        for each in list(self.connections._open):
            each.end()
        await until(lambda: len(self.connections) == 0)

    async def connect(self, count: int, source: str = "127.0.0.1") -> list[socket.socket]:
        made = [
            socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))
            for _ in range(count)
        ]
        self.clients += made
        await settled()
        return made

    def served(self, client: socket.socket):
        """The server's side of a client's connection."""
        name = client.getsockname()
        return next((each for each in self.connections._open if each.getpeername() == name), None)

    def live(self, clients: list[socket.socket]) -> list[bool]:
        return [self.served(client) is not None for client in clients]


async def settled() -> None:
    for _ in range(8):
        await asyncio.sleep(0.005)


async def until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def test_the_limits_add_up_to_less_than_the_descriptors_there_are():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024));"
        "from tacit.serve.descriptors import connections_allowed; print(connections_allowed());"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed, soft = map(int, done.stdout.split())
    assert soft == 1024  # raised as far as it may be
    assert 500 < allowed <= 1024 * 3 // 4 - 3  # a quarter is for the rest, and what was open is subtracted


def test_too_few_descriptors_are_said_at_once(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 100))
    with pytest.raises(ParameterError, match="100 open files are too few") as caught:
        connections_allowed()
    assert "ulimit" in caught.value.fix


@pytest.mark.slow
def test_one_address_has_a_share_of_the_strangers_and_its_newest_stay():
    async def work():
        async with Place(64) as place:  # 16 strangers, 4 of one address
            first = await place.connect(10)
            assert place.live(first) == [False] * 6 + [True] * 4
            others = [await place.connect(1, f"127.0.0.{n}") for n in range(2, 14)]
            assert all(place.live(each) == [True] for each in others)
            assert place.live(first[6:]) == [True] * 4
            # All 16 places are taken: the oldest of the address that has most goes.
            assert place.live(await place.connect(1, "127.0.0.50")) == [True]
            assert place.live(first[6:]) == [False] + [True] * 3

    asyncio.run(work())


@pytest.mark.slow
def test_one_analyst_has_a_share_and_closes_their_own_oldest_idle_one():
    async def work():
        async with Place(64) as place:  # 16 of one analyst
            held = []
            for n in range(17):
                (client,) = await place.connect(1)
                assert place.served(client).let_in("ada")
                held.append(client)
                assert place.connections._strangers == 0, n
            await settled()
            assert place.live(held) == [False] + [True] * 16
            for client in held[1:]:
                place.served(client).is_busy = lambda: True
            (client,) = await place.connect(1)
            assert not place.served(client).let_in("ada")  # none of theirs is idle
            assert place.served(client).let_in("ben")  # others are not concerned

    asyncio.run(work())


@pytest.mark.slow
def test_under_pressure_the_oldest_idle_one_of_the_heaviest_holder_goes_and_nothing_that_is_answered(monkeypatch):
    monkeypatch.setattr(Connections, "has_room_for", lambda self, analyst: True)

    async def work():
        async with Place(16) as place:

            async def let_in(who, count):
                made = []
                for _ in range(count):
                    (client,) = await place.connect(1)
                    place.served(client).let_in(who)
                    made += [client]
                return made

            ada, ben, eve = await let_in("ada", 10), await let_in("ben", 3), await let_in("eve", 3)
            place.served(ada[0]).is_busy = lambda: True
            assert place.live(await place.connect(1, "127.0.0.9")) == [True]
            assert place.live(ada) == [True, False] + [True] * 8
            assert all(place.live(ben + eve))
            for each in place.connections._open:
                each.is_busy = lambda: True
            new = await place.connect(1, "127.0.0.10")
            assert place.live(new) == [False] and new[0].recv(1) == b""  # closed at once; nobody is cut off for it

    asyncio.run(work())


def test_strangers_have_a_short_deadline_and_sessions_a_long_one():
    async def work():
        async with Place(64) as place:
            stranger, idle, busy = await place.connect(3)
            for client in (idle, busy):
                place.served(client).let_in("ada")
            place.served(busy).is_busy = lambda: True
            place.connections.sweep()
            assert place.live([stranger, idle, busy]) == [True, True, True]
            for each in place.connections._open:
                each.since -= 31  # as if so many seconds had passed
            place.connections.sweep()
            await settled()
            assert place.live([stranger, idle, busy]) == [False, True, True]
            for each in place.connections._open:
                each.seen -= 2 * 3600
            place.connections.sweep()
            await settled()
            assert place.live([stranger, idle, busy]) == [False, False, True]

    asyncio.run(work())


@pytest.mark.slow
def test_strangers_who_are_always_being_answered_have_no_more_than_others():
    async def work():
        async with Place(64) as place:  # 16 strangers, 4 of one address
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"):
                held = []
                for _ in range(6):
                    held += await place.connect(1, source)
                    place.served(held[-1]).is_busy = lambda: True
                assert place.live(held) == [False] * 2 + [True] * 4
            assert place.connections._strangers == 16
            assert place.live(await place.connect(1, "127.0.0.5")) == [True]  # a newcomer can always try
            assert place.connections._strangers == 16
            (idle,) = await place.connect(1, "127.0.0.4")
            assert place.live(held) == [False] * 3 + [True] * 3
            await place.connect(1, "127.0.0.4")
            assert place.live(held) == [False] * 3 + [True] * 3 and place.live([idle]) == [False]  # an idle one first
            for each in place.connections._open:
                each.since -= 61
            place.connections.sweep()
            assert len(place.connections._open) == 0

    asyncio.run(work())


def test_what_is_sent_counts_as_activity():
    async def work():
        async with Place(64) as place:
            (client,) = await place.connect(1)
            before = place.served(client).seen
            client.sendall(b"x")
            await until(lambda: place.served(client).seen > before)

    asyncio.run(work())


def test_one_address_opens_so_many_a_second_and_others_are_not_concerned():
    async def work():
        async with Place(4000) as place:
            place.connections._arrivals = module.RateLimiter(0.001, 5)
            assert sum(place.live(await place.connect(20))) == 5
            assert place.live(await place.connect(1, "127.0.0.2")) == [True]

    asyncio.run(work())


def test_a_proxy_that_is_named_has_no_share():
    async def work():
        async with Place(64, ("127.0.0.1",)) as place:
            assert all(place.live(await place.connect(30)))
            assert sum(place.live(await place.connect(10, "127.0.0.2"))) == 4

    asyncio.run(work())


@pytest.mark.slow
def test_without_descriptors_connections_are_closed_and_neither_loop_nor_log_spins(caplog, monkeypatch):
    async def work():
        async with Place(64) as place:
            accept = socket.socket.accept
            calls = []

            def exhausted(self):
                calls.append(1)
                if place.connections._spare is None or not os.path.exists(f"/proc/self/fd/{place.connections._spare}"):
                    return accept(self)  # the spare descriptor is free for this one
                raise OSError(errno.EMFILE, "too many open files")

            monkeypatch.setattr(socket.socket, "accept", exhausted)
            clients = await place.connect(5)
            assert [client.recv(1) for client in clients] == [b""] * 5  # closed, not left waiting
            calls.clear()
            await asyncio.sleep(0.2)
            assert not calls  # nothing is announced again
            monkeypatch.undo()
            assert place.live(await place.connect(1)) == [True]

    caplog.set_level(logging.ERROR)
    asyncio.run(work())
