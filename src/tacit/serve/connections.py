"""Every connection of the server, from the moment it is accepted: how many there may be, of whom, and who goes first.

Connections are counted where they are accepted, before TLS and before a byte is read, so HTTP and PostgreSQL's protocol
share one limit, and nobody holds a descriptor that is not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tacit.serve.addresses import Network, address_group, is_trusted
from tacit.serve.limits import RateLimiter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_log = logging.getLogger("tacit.serve")

STRANGER = 30.0  # seconds that an idle connection may stay without anyone having been let in on it; a busy one twice
IDLE = 2 * 3600.0  # seconds that an idle session may stay
SWEEP = 5.0  # seconds between two looks for those that have stayed too long
_PER_SECOND, _BURST = 20.0, 128  # new connections of one address
_CLOSING = 64  # connections that may be on their way out
_AT_ONCE = 16  # connections before others have their turn
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class ServedConnection(socket.socket):
    """An accepted connection, counted until it is closed. `is_busy` says whether something is being answered on it."""

    def __init__(self, listener: CountingListener, descriptor: int, peer: str) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=descriptor)
        self.of = listener.connections
        self.peer = peer
        self.group = address_group(peer)
        self.analyst: str | None = None
        self.proxied = is_trusted(peer, listener.proxies)  # it carries requests of many
        self.since = self.seen = time.monotonic()
        self.requests = 0  # HTTP: that are being answered
        self.is_busy: Callable[[], bool] = self._has_requests
        self.closing = False

    def _has_requests(self) -> bool:
        return self.requests > 0

    @property
    def is_stranger(self) -> bool:
        """Whether nobody was let in on it yet."""
        return self.analyst is None and not self.proxied

    @property
    def holder(self) -> str:
        """Whom it counts for."""
        return f"analyst {self.analyst}" if self.analyst is not None else f"address {self.group}"

    def came_from(self, address: str) -> None:
        """Count it for the address that a proxy named."""
        self.of.forget(self)
        self.peer, self.group, self.proxied = address, address_group(address), False
        self.of.remember(self)

    def let_in(self, analyst: str) -> bool:
        """Count it for an analyst; False where that is too many, and none of theirs is idle and can go."""
        if self.proxied or self.analyst == analyst:
            return True
        if not self.of.has_room_for(analyst):
            return False
        self.of.forget(self)
        self.analyst = analyst
        self.of.remember(self)
        return True

    def end(self) -> None:
        """End it: whoever serves it finds nothing more to read, and closes it."""
        if not self.closing:
            self.of.forget(self)
            self.closing = True
            with contextlib.suppress(OSError):
                self.shutdown(socket.SHUT_RDWR)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive, and note when."""
        self.seen = time.monotonic()
        return super().recv(size, flags)

    def recv_into(self, buffer: WriteableBuffer, size: int = 0, flags: int = 0) -> int:
        """Receive into a buffer, and note when."""
        self.seen = time.monotonic()
        return super().recv_into(buffer, size, flags)

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        """Send, and note when."""
        self.seen = time.monotonic()
        return super().send(data, flags)

    def close(self) -> None:
        """Close it, and count it no longer."""
        self.of.release(self)
        super().close()


class CountingListener(socket.socket):
    """A listening socket whose accepted connections are counted. `proxies` speak for others."""

    def __init__(self, plain: socket.socket, connections: Connections, proxies: Sequence[Network] = ()) -> None:
        family, kind, protocol = plain.family, plain.type, plain.proto
        super().__init__(family, kind, protocol, fileno=plain.detach())
        self.setblocking(False)
        self.connections = connections
        self.proxies = proxies
        self._looked = 0  # connections in this turn of the event loop

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection within the limits; those beyond them are closed at once."""
        while self._looked < _AT_ONCE:
            if not self._looked:
                asyncio.get_running_loop().call_soon(self._reset_count)
            self._looked += 1
            try:
                plain, address = super().accept()
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self.connections.shed(self)
                continue
            found = self.connections.admit(self, plain.detach(), str(address[0]) if address else "")
            if found is not None:
                return found, address
        raise BlockingIOError  # it is announced again once others had their turn

    def _reset_count(self) -> None:
        self._looked = 0


class Connections:
    """At most `most` connections, of which a quarter at most are strangers' and a quarter one analyst's.

    A stranger's connection is one on which nobody was let in yet. An address has at most a quarter of the strangers',
    and 20 new ones a second. Where strangers are too many, the oldest of the address that has most goes, so that a
    newcomer can always try: an idle one where there is one. Where all are too many, the one that was idle for longest
    goes, of whoever has most. What is being answered to somebody who was let in is never ended; what is being answered
    to a stranger is nothing that anybody paid for, and a stranger who does not read it would stay for ever.

    Where nobody logs in, as in a survey, `only_strangers` gives them all of the connections.
    """

    def __init__(self, most: int, *, only_strangers: bool = False) -> None:
        self.most = most
        self.of_strangers = most if only_strangers else max(8, min(256, most // 4))
        self.of_address = max(4, self.of_strangers // 4)
        self.of_analyst = max(4, most // 4)
        self._open: set[ServedConnection] = set()  # without those on their way out
        self._closing: set[ServedConnection] = set()
        self._numbers: dict[int, ServedConnection] = {}  # by descriptor
        self._holders: Counter[str] = Counter()
        self._strangers = 0
        self._arrivals = RateLimiter(_PER_SECOND, _BURST)
        self._spare = _spare()

    def __len__(self) -> int:
        return len(self._open) + len(self._closing)

    def listen(self, plain: socket.socket, proxies: Sequence[Network] = ()) -> CountingListener:
        """The same listening socket, with its connections counted here."""
        return CountingListener(plain, self, proxies)

    def of_transport(self, transport: asyncio.BaseTransport | asyncio.StreamWriter) -> ServedConnection | None:
        """The connection under a transport or a stream; None where it was not accepted here."""
        found = transport.get_extra_info("socket")
        return None if found is None else self._numbers.get(found.fileno())

    def admit(self, listener: CountingListener, descriptor: int, peer: str) -> ServedConnection | None:
        """The connection of a descriptor, counted; or None, with the descriptor closed."""
        if len(self._closing) >= _CLOSING or not self._has_room(listener, peer):
            os.close(descriptor)
            _log.warning("a connection from %s was closed: too many at once", address_group(peer))
            return None
        found = self._numbers[descriptor] = ServedConnection(listener, descriptor, peer)
        self.remember(found)
        return found

    def has_room_for(self, analyst: str) -> bool:
        """Whether an analyst may have one more connection, for which their oldest idle one goes where need be."""
        own = [each for each in self._open if each.analyst == analyst]
        return len(own) < self.of_analyst or _end_oldest(own)

    def sweep(self) -> None:
        """End what has been idle for too long."""
        now = time.monotonic()
        for each in list(self._open):
            busy = each.is_busy()
            if each.is_stranger:
                late = now - each.since > (2 * STRANGER if busy else STRANGER)
            else:
                late = not busy and now - each.seen > IDLE
            if late:
                each.end()

    async def sweep_forever(self) -> None:
        """Sweep every few seconds, until canceled."""
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def shed(self, listener: CountingListener) -> None:
        """Accept a connection and close it, where there is no descriptor for it but the spare one.

        Otherwise it would be announced again at once, for ever.
        """
        _log.error("there are too few descriptors: a connection was closed")
        self._relieve()
        if self._spare is not None:
            os.close(self._spare)
            with contextlib.suppress(OSError):
                socket.socket.accept(listener)[0].close()
        self._spare = _spare()
        if self._spare is None:
            time.sleep(0.005)  # another thread was quicker; better this than to spin

    def remember(self, connection: ServedConnection) -> None:
        """Count a connection."""
        self._closing.discard(connection)
        self._open.add(connection)
        self._holders[connection.holder] += 1
        self._strangers += connection.is_stranger

    def forget(self, connection: ServedConnection) -> None:
        """Count it no longer; it is on its way out, or about to count for another."""
        if connection in self._open:
            self._open.discard(connection)
            self._closing.add(connection)
            self._strangers -= connection.is_stranger
            self._holders[connection.holder] -= 1
            if not self._holders[connection.holder]:
                del self._holders[connection.holder]

    def release(self, connection: ServedConnection) -> None:
        """Its descriptor is free."""
        self.forget(connection)
        self._closing.discard(connection)
        self._numbers.pop(connection.fileno(), None)

    def _has_room(self, listener: CountingListener, peer: str) -> bool:
        """Whether one more connection from an address is within the limits; another may be closed for it."""
        if not is_trusted(peer, listener.proxies):
            group = address_group(peer)
            if self._arrivals.take(group) > 0:
                return False
            if self._holders[f"address {group}"] >= self.of_address:
                self._end_stranger(group)
            elif self._strangers >= self.of_strangers:
                heaviest = Counter(each.group for each in self._open if each.is_stranger).most_common(1)[0][0]
                self._end_stranger(heaviest)
        return len(self._open) < self.most or self._relieve()

    def _end_stranger(self, group: str) -> None:
        """Close the oldest unauthenticated connection of an address: an idle one, or else a busy one."""
        some = [each for each in self._open if each.is_stranger and each.group == group]
        if some and not _end_oldest(some):
            min(some, key=lambda each: each.since).end()

    def _relieve(self) -> bool:
        """End the connection that was idle for longest, of whoever has most of those that have an idle one."""
        idle = [each for each in self._open if not each.is_busy()]
        heaviest = max((each.holder for each in idle), key=lambda holder: self._holders[holder], default=None)
        return _end_oldest(each for each in idle if each.holder == heaviest)


def _end_oldest(some: Iterable[ServedConnection]) -> bool:
    idle = [each for each in some if not each.is_busy()]
    if idle:
        min(idle, key=lambda each: each.seen).end()
    return bool(idle)


def _spare() -> int | None:
    """A descriptor that is kept for the moment when there is no other."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
