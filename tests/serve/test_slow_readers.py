"""Whoever does not read an answer does not keep it in the server's memory."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
import uvicorn
from tests.support.counts import FULL

from tacit.serve import header_limits

pytestmark = pytest.mark.slow

SIZE = 32_000_000  # more than any socket's buffers hold
TIMES = 3 if FULL else 2
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def large(scope, receive, send) -> None:
    length = str(SIZE).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": bytes(SIZE)})


@contextlib.asynccontextmanager
async def serving(protocol):
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(large, http=protocol, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield server, listener.getsockname()
    finally:
        server.should_exit = True
        await running


PROTOCOLS = [header_limits.make_h11_protocol, header_limits.make_httptools_protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_connection_whose_answer_is_not_taken_is_ended(protocol, monkeypatch):
    monkeypatch.setattr(header_limits, "SLOWEST_READER", 0.2)

    async def work():
        async with serving(protocol()) as (server, place):
            reader, writer = await asyncio.open_connection(*place, limit=1000)
            writer.write(REQUEST)
            async with asyncio.timeout(30):
                await reader.readexactly(1)
                while server.server_state.connections:
                    await asyncio.sleep(0.02)
            writer.transport.abort()

    asyncio.run(work())


def test_one_that_is_taken_slowly_is_not(monkeypatch):
    monkeypatch.setattr(header_limits, "SLOWEST_READER", 1.0)
    monkeypatch.setattr(header_limits, "LEAST_READ", 1)

    async def take(protocol):
        async with serving(protocol()) as (_, place):
            reader, writer = await asyncio.open_connection(*place, limit=1_000_000)
            writer.write(REQUEST)
            await reader.readuntil(b"\r\n\r\n")
            size = 0
            while part := await reader.read(1_000_000):
                size += len(part)
                await asyncio.sleep(TIMES * len(part) / SIZE)  # in all, so often as long as one may take nothing
            assert size == SIZE
            writer.close()

    async def work():
        await asyncio.gather(*map(take, PROTOCOLS))

    asyncio.run(work())
