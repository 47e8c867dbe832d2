"""How HTTP is read: by httptools where that is installed, which takes a third of h11's time, and with h11's care.

A head, which is all before the body, has at most 64 KiB and 20 seconds. h11 sees to the size itself; httptools would go
on reading. Neither has a clock, and neither has one for whoever does not read the answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tacit.serve.middleware import CONNECTION

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    from tacit.serve.connections import Connections

MAX_HEADER_BYTES = 64 * 1024
MOST_AHEAD = 16  # requests of a connection that wait for the answer to the one before
HEADER_TIMEOUT = 20.0  # seconds in which all of a head must be there, as for a body
SLOWEST_READER = 30.0  # seconds in which so many bytes of an answer, or all, must be taken
LEAST_READ = 256 * 1024


def choose_http_protocol(connections: Connections | None = None) -> type[asyncio.Protocol]:
    """What uvicorn is to read HTTP with. Each request's state has its connection, where these are counted."""
    try:
        chosen: type[asyncio.Protocol] = make_httptools_protocol()
    except ImportError:
        chosen = make_h11_protocol()
    return chosen if connections is None else type("Counted", (_Counted, chosen), {"counted": connections})


def make_h11_protocol() -> type[H11Protocol]:
    """Heads by h11, which bounds them itself, with a clock."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Timely(_HeaderTimeout, H11Protocol): ...

    return Timely


def make_httptools_protocol() -> type[HttpToolsProtocol]:
    """Heads by httptools, with a bound and a clock."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Bounded(_HeaderTimeout, HttpToolsProtocol):
        """Ends a connection whose head is too long, or whose lines after a body in chunks are.

        So is one that sends many requests without waiting for their answers: each is held until its turn.

        **Theorem.** At most 64 KiB of either are held, and what one read gives. Proof: each read inside a message that
        ends no head and brings no body adds its length, and where the sum is too large, nothing more is read. Lines
        after a body are not kept.
        """

        _open = False  # a message has begun and is not complete
        _inside = False  # its head
        _moved = False  # this read ended a head or brought body
        _size = 0

        def data_received(self, data: bytes) -> None:
            self._moved = False
            super().data_received(data)
            self._size = self._size + len(data) if self._open and not self._moved else 0
            if self._size > MAX_HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

        def on_message_begin(self) -> None:
            self._open = self._inside = True
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._inside:
                super().on_header(name, value)

        def on_headers_complete(self) -> Any:
            self._inside, self._moved = False, True
            if len(self.pipeline) >= MOST_AHEAD:  # uvicorn would keep all that one read brings, after each answer anew
                raise ValueError("too many requests are sent ahead")
            return super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._moved = True
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._open = False
            super().on_message_complete()

    return Bounded


class _Counted(asyncio.Protocol):
    """Tells each request which connection it came on."""

    counted: Connections
    app_state: dict[str, Any]  # uvicorn's: what every request's state begins with

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.app_state = {**self.app_state, CONNECTION: self.counted.of_transport(transport)}
        super().connection_made(transport)


class _HeaderTimeout(asyncio.Protocol):
    """Ends a connection on which a head does not come in time, or an answer is not taken in time.

    **Theorem.** A connection on which nothing is being answered is ended 20 seconds after it began, or after the first
    byte that followed the last answer, unless a whole head comes before. Proof: the clock starts at either, runs on
    whatever comes, and only a request that is being answered, which needs a whole head, stops it. Between an answer and
    that byte uvicorn's own clock runs.

    **Theorem.** A connection that holds more than its buffer of what was not taken is ended after 30 seconds in which
    fewer than 256 KiB of it were. Proof: the clock starts when the transport says that its buffer is full, and each
    time it rings that much must have left, as nothing is added before the buffer is nearly empty, which stops it.
    """

    cycle: Any  # uvicorn's: the request that came last
    transport: Any
    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._cancel_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._cancel_timer()
        self._expect(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._cancel_timer()
        super().resume_writing()

    def _expect(self, left: int) -> None:
        """Look again after a while, at which less must be left."""
        self._reading = asyncio.get_running_loop().call_later(SLOWEST_READER, self._look, left)

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left > before - LEAST_READ:
            self.transport.abort()
        else:
            self._expect(left)

    def _cancel_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _watch(self) -> None:
        if self.transport.is_closing() or (self.cycle is not None and not self.cycle.response_complete):
            self._stop()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(HEADER_TIMEOUT, self._late)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self.transport.abort()  # whoever sends so slowly may not read either
