"""Wrong keys and passwords: tries at once count each other, waits grow and end, and places are shared."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import struct
import time

import asyncpg
import httpx
import pytest

from tacit.errors import Refused
from tacit.serve import limits
from tacit.serve.addresses import networks_of
from tacit.serve.authentication import Authenticator
from tacit.serve.console.requests import Console
from tacit.serve.http import build_app
from tacit.serve.limits import FailedAttempts
from tacit.serve.pgwire import scram, start_listener
from tacit.serve.proxy_protocol import NotProxied, client_of
from tacit.serve.service import CuratorService

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


@pytest.fixture
def quick(monkeypatch):
    """Waits are a tenth of what they are, so that tests are quick."""
    monkeypatch.setattr(limits, "LONGEST", 0.4, raising=False)
    monkeypatch.setattr(limits, "_FIRST", 0.025, raising=False)


def message(body: bytes) -> bytes:
    return b"p" + struct.pack(">i", 4 + len(body)) + body


async def begun(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A connection on which all of SCRAM was said but the proof, and a wrong proof."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        options = b"user\0ada\0database\0clinic\0\0"
        writer.write(struct.pack(">ii", 8 + len(options), 196608) + options)
        await reader.readexactly(5 + 4)
        await reader.readuntil(b"\0\0")
        first = b"n,,n=,r=0123456789"
        writer.write(message(b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first))
        head = await reader.readexactly(9)
        answer = await reader.readexactly(struct.unpack(">i", head[1:5])[0] - 8)
    except (OSError, EOFError):
        writer.close()
        raise
    proof = base64.b64encode(bytes(32))
    return reader, writer, message(b"c=biws," + answer.split(b",")[0] + b",p=" + proof)


@pytest.mark.slow
def test_of_150_guesses_at_once_over_the_wire_few_are_checked_and_the_right_password_is_let_in(
    curator, clinic, quick, monkeypatch
):
    checked = []
    final = scram.ScramExchange.final
    monkeypatch.setattr(scram.ScramExchange, "final", lambda *all: checked.append(1) or final(*all))

    async def work():
        service, authenticator = CuratorService(curator), Authenticator(clinic.people, curator.policy)
        listener = await start_listener(service, authenticator, port=0)
        port = listener.sockets[0].getsockname()[1]
        lines = await asyncio.gather(*(begun(port) for _ in range(150)), return_exceptions=True)
        for line in lines:
            if not isinstance(line, BaseException):
                line[1].write(line[2])
        for line in lines:
            if not isinstance(line, BaseException):
                with contextlib.suppress(ConnectionError):
                    told = await asyncio.wait_for(line[0].read(), 20)
                    assert not told or b"28P01" in told or b"too many tries from this address" in told
                line[1].close()
        # No more than the places that are kept for nobody; the others were refused or closed before they were checked.
        assert 10 <= len(checked) <= 48
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=port,
            user="ada",
            password=clinic.secrets["ada"].password,
            database="clinic",
            ssl=False,
        )
        await connection.close()
        listener.close()
        await listener.wait_closed()
        await service.close()

    asyncio.run(work())


@pytest.mark.slow
def test_of_150_guesses_at_once_over_http_and_the_form_few_are_checked_at_once(curator, clinic, quick, monkeypatch):
    class Counted(Authenticator):
        checked = 0

        def by_key(self, key):
            self.checked += 1
            return super().by_key(key)

        def by_password(self, name, password):
            self.checked += 1
            return super().by_password(name, password)

    monkeypatch.setattr(limits, "_MOST_WAITING", 16, raising=False)

    async def guesses(try_one):
        found = await asyncio.gather(*(try_one(n) for n in range(150)), return_exceptions=True)
        assert not [each for each in found if isinstance(each, Exception) and not isinstance(each, Refused)]
        return found

    async def work():
        service, authenticator = CuratorService(curator), Counted(clinic.people, curator.policy)
        console = Console(service, authenticator, secure=False)
        await guesses(lambda n: console.check("ada", f"wrong{n}", "192.0.2.1"))
        assert 10 <= authenticator.checked <= 16
        authenticator.checked = 0
        transport = httpx.ASGITransport(app=build_app(service, authenticator), client=("192.0.2.2", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://clinic") as client:

            async def budget(key):
                return (await client.get("/v1/budget", headers={"Authorization": f"Bearer {key}"})).status_code

            statuses = await guesses(lambda n: budget(f"tacit_{n}_wrong"))
            assert set(statuses) <= {401, 429, 503} and statuses.count(401) == authenticator.checked <= 16
            assert await budget(clinic.secrets["ada"].key) == 200
        await service.close()

    asyncio.run(work())


@pytest.mark.slow
def test_the_right_password_is_checked_at_once_elsewhere_and_soon_at_an_address_that_failed(
    curator, clinic, monkeypatch
):
    monkeypatch.setattr(limits, "LONGEST", 1.0)  # of four seconds

    async def work():
        service, authenticator = CuratorService(curator), Authenticator(clinic.people, curator.policy)
        console, password = Console(service, authenticator, secure=True), clinic.secrets["ada"].password
        for _ in range(15):
            authenticator.attempts.begin("ada", "192.0.2.1")
        assert authenticator.attempts.begin("ada", "192.0.2.2") == 0  # another address is not delayed
        started = time.monotonic()
        assert (await console.check("ada", password, "192.0.2.1")).name == "ada"
        assert time.monotonic() - started >= 0.9  # it had to wait, and it was let in
        await service.close()

    asyncio.run(work())


async def occupy(attempts, account, count, address="192.0.2.1"):
    """So many wrong tries at once; the tasks of those that wait."""
    ended = asyncio.Event()

    async def fail():
        async with attempts.trying(account, address):
            await ended.wait()

    tasks = [asyncio.create_task(fail()) for _ in range(count)]
    await asyncio.sleep(0)
    return [task for task in tasks if not (task.done() and task.exception())]


async def is_let_in(attempts, account, address="192.0.2.1"):
    with contextlib.suppress(Refused):
        async with attempts.trying(account, address) as tried:
            tried.record_success()
            return True
    return False


async def cancel(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_whoever_guesses_at_few_accounts_keeps_no_other_from_signing_in(monkeypatch):
    monkeypatch.setattr(limits, "_FIRST", 0.0)

    async def work():
        attempts = FailedAttempts()
        tasks = await occupy(attempts, "ada", 100)
        assert len(tasks) == 48
        assert not await is_let_in(attempts, "ada")
        assert await is_let_in(attempts, "ada", "192.0.2.2")
        tasks += await occupy(attempts, "ben", 100)
        tasks += await occupy(attempts, "eve", 100)
        assert len(tasks) == 48 + 2  # and a first one of each, which was of an account without failures
        for n in range(100):
            assert await is_let_in(attempts, f"other{n}")
        await cancel(tasks)

    asyncio.run(work())


def test_sixteen_places_are_kept_for_one_try_of_each_account_without_failures(monkeypatch):
    monkeypatch.setattr(limits, "_FIRST", 0.0)

    async def work():
        attempts = FailedAttempts()
        tasks = [task for name in ("ada", "ben") for task in await occupy(attempts, name, 24)]
        assert len(tasks) == 48
        attempts.begin("eve", "192.0.2.1")
        assert not await is_let_in(attempts, "eve")  # who has failed there
        for n in range(15):
            kept = await occupy(attempts, f"other{n}", 2)
            assert len(kept) == 1
            tasks += kept
        assert await is_let_in(attempts, "olga")
        tasks += await occupy(attempts, "other15", 1)
        assert not await is_let_in(attempts, "olga")  # this is what does not hold: sixteen accounts at once
        await cancel(tasks)
        assert await is_let_in(attempts, "olga") and not attempts._waiting

    asyncio.run(work())


def test_many_who_come_at_once_with_one_right_key_are_let_in():
    async def work():
        attempts = FailedAttempts()
        assert all(await asyncio.gather(*(is_let_in(attempts, "ada") for _ in range(40))))
        assert not attempts._waiting

    asyncio.run(work())


def test_people_of_an_identity_provider_are_not_one_account(monkeypatch):
    monkeypatch.setattr(limits, "_FIRST", 0.0)

    async def work():
        attempts = FailedAttempts()
        tasks = [task for name in ("ada", "ben") for task in await occupy(attempts, name, 24)]
        for n in range(5):  # each sign-in that was begun is an account of its own
            tasks += await occupy(attempts, f"\0flow{n}", 1)
        assert len(tasks) == 48 + 5
        await cancel(tasks)

    asyncio.run(work())


def test_waits_double_up_to_four_seconds_and_failures_are_forgotten():
    attempts = FailedAttempts()
    waits = [attempts.begin("ada", "192.0.2.1", now=0) for _ in range(30)]
    assert waits[:10] == [0] * 10
    assert waits[10:16] == [0.25, 0.5, 1, 2, 4, 4] and set(waits[16:]) == {4}
    # Another account from there waits too, or guesses at many would be free; other addresses do not.
    assert attempts.begin("ben", "192.0.2.1", now=0) == 4
    assert attempts.begin("ada", "192.0.2.2", now=0) == 0
    # At most 20 failures are counted, and one is forgotten every six seconds: after 66 seconds nine are left.
    assert attempts.begin("ada", "192.0.2.1", now=66) == 0


def test_a_right_password_pays_for_no_guesses_at_another():
    attempts = FailedAttempts()
    for _ in range(12):
        attempts.begin("ada", "192.0.2.1", now=0)
        attempts.begin("eve", "192.0.2.1", now=0)
        attempts.record_success("eve", "192.0.2.1", now=0)
    assert attempts.begin("ada", "192.0.2.1", now=0) == 1  # twelve failures before this one


@pytest.mark.slow
def test_the_table_of_failures_is_bounded():
    attempts = FailedAttempts()
    for n in range(10_100):
        attempts.begin("x" * 10_000, f"2001:db8:{n:x}::/64", now=0)
    assert len(attempts._failures) == 20_000
    assert {len(name) for name in attempts._failures} == {16}


@pytest.mark.slow
def test_known_and_unknown_names_wait_alike_and_read_alike(curator, clinic, quick):
    async def work():
        service, authenticator = CuratorService(curator), Authenticator(clinic.people, curator.policy)
        console = Console(service, authenticator, secure=True)
        for name, address in (("ada", "192.0.2.1"), ("nobody", "192.0.2.2")):
            assert [await console.check(name, "wrong", address) for _ in range(12)] == [None] * 12
        waits = [
            authenticator.attempts.begin(name, group, now=0)
            for name, group in (("ada", "192.0.2.1"), ("nobody", "192.0.2.2"))
        ]
        assert waits == [pytest.approx(waits[0], rel=0.5)] * 2 and waits[0] > 0  # but for the time in between
        await service.close()

    asyncio.run(work())


async def read(data: bytes, peer: str = "192.0.2.7") -> tuple[str, bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await client_of(reader, peer), await reader.read()


@pytest.mark.parametrize(
    ("head", "client"),
    [
        (b"PROXY TCP4 203.0.113.9 192.0.2.7 56324 5433\r\n", "203.0.113.9"),
        (b"PROXY TCP6 2001:db8::9 2001:db8::7 56324 5433\r\n", "2001:db8::9"),
        (b"PROXY UNKNOWN\r\n", "192.0.2.7"),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "192.0.2.7"),
        (SIGNATURE + b"\x21\x11\0\x0c" + bytes([203, 0, 113, 9, 192, 0, 2, 7, 1, 2, 3, 4]), "203.0.113.9"),
        (SIGNATURE + b"\x21\x21\0\x24" + b"\x20\x01\x0d\xb8" + bytes(11) + b"\x09" + bytes(20), "2001:db8::9"),
        (SIGNATURE + b"\x21\x11\0\x10" + bytes([203, 0, 113, 9]) + bytes(12), "203.0.113.9"),  # with more after it
        (SIGNATURE + b"\x20\0\0\0", "192.0.2.7"),  # LOCAL: the proxy looks whether we are there
    ],
)
def test_the_proxy_protocol_names_the_client(head, client):
    assert asyncio.run(read(head + b"rest")) == (client, b"rest")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\0\0\0\x08\x04\xd2\x16\x2f" + bytes(8),  # PostgreSQL's own first bytes
        b"PROXY TCP4 203.0.113.9\r\n",
        b"PROXY TCP4 not.an.address 192.0.2.7 1 2\r\n",
        b"PROXY TCP4 " + b"1" * 200,
        SIGNATURE + b"\x11\x11\0\x0c" + bytes(12),  # another version
        SIGNATURE + b"\x21\x11\xff\xff" + bytes(12),
        SIGNATURE[:9],
    ],
)
def test_what_does_not_begin_as_a_proxy_s_is_no_proxy_s(head):
    with pytest.raises(NotProxied):
        asyncio.run(read(head))


@pytest.mark.slow
@pytest.mark.parametrize("believed", [True, False])
def test_the_proxy_protocol_is_read_only_from_proxies_that_are_named(curator, clinic, believed, monkeypatch):
    counted = []
    begin = FailedAttempts.begin
    monkeypatch.setattr(
        FailedAttempts, "begin", lambda self, name, group: counted.append(group) or begin(self, name, group)
    )

    async def work():
        service, authenticator = CuratorService(curator), Authenticator(clinic.people, curator.policy)
        proxies = networks_of(["127.0.0.1"] if believed else ["192.0.2.7"])
        listener = await start_listener(service, authenticator, port=0, proxies=proxies)
        port = listener.sockets[0].getsockname()[1]
        plain = socket.create_connection(("127.0.0.1", port))
        plain.sendall(b"PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n")
        plain.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=plain)
        options = b"user\0ada\0database\0clinic\0\0"
        writer.write(struct.pack(">ii", 8 + len(options), 196608) + options)
        first = await asyncio.wait_for(reader.read(1), 20)
        assert first == (b"R" if believed else b"E")  # the header is no message of PostgreSQL's
        if believed:
            await reader.readuntil(b"\0\0")
            writer.write(message(b"SCRAM-SHA-256\0" + struct.pack(">i", 18) + b"n,,n=,r=0123456789"))
            await asyncio.wait_for(reader.readuntil(b",i=10000"), 20)
            writer.write(message(b"c=x,r=,p="))
            await asyncio.wait_for(reader.read(), 20)
            assert counted == ["203.0.113.9"]
        writer.close()
        listener.close()
        await listener.wait_closed()
        await service.close()

    asyncio.run(work())
