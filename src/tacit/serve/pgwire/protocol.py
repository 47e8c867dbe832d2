"""Messages of PostgreSQL's protocol 3.0 as bytes, and bytes as messages.

Every length is checked before anything is read: a client can make the server hold one message of the allowed size, and
no more. Before a client is known that size is small.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit.serve.pgwire.sqlstate import WireError, protocol_error

MAX_BYTES_BEFORE_LOGIN = 10_000  # bytes of a message before its sender is known
MAX_MESSAGE_BYTES = 1_000_000  # and after
CLIENT_TIMEOUT = (
    30.0  # seconds for the rest of a message whose first bytes are there, and for a client to take its answer
)

VERSION = 3 << 16
CANCEL, TLS, GSS = 80877102, 80877103, 80877104

_CHUNK = 8192  # bytes read at a time
_HELD = 8192  # bytes of messages that wait for the next one


@dataclass(frozen=True)
class WireColumn:
    """A column of a result: its name, the OID of its type, the size of that type, and whether it goes as binary.

    Where it is a column of a table of the catalog, `table` and `number` say of which, and `modifier` is its type's.
    """

    name: str
    oid: int
    size: int = -1
    binary: bool = False
    table: int = 0
    number: int = 0
    modifier: int = -1

    @property
    def byte_size(self) -> int:
        """About how many bytes it takes."""
        return 200 + sys.getsizeof(self.name)


class MessageReader:
    """The inside of a message, read from left to right. What is missing, or left over, is malformed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __len__(self) -> int:
        return len(self._data)

    def copy(self) -> MessageReader:
        """Another reader of the same message, from its start."""
        return MessageReader(self._data)

    def int16(self) -> int:
        """A small integer."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """An integer."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise protocol_error("a message is shorter than it says")
        found, self._at = self._data[self._at : end], end
        return found

    def text(self) -> str:
        """A text that ends with a zero."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise protocol_error("a text in a message never ends")
        found, self._at = self._data[self._at : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise WireError("22021", "a text in a message is not UTF-8", "SET client_encoding = 'UTF8'") from None

    def value(self) -> bytes | None:
        """A value with its length; None for NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def formats(self) -> tuple[bool, ...]:
        """Format codes, each whether it is binary."""
        codes = [self.int16() for _ in range(self.count())]
        if any(code not in {0, 1} for code in codes):
            raise protocol_error("a format is neither text nor binary")
        return tuple(code == 1 for code in codes)

    def count(self) -> int:
        """How many things follow."""
        found = self.int16()
        if found < 0:
            raise protocol_error("a count is negative")
        return found

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._data):
            raise protocol_error("a message is longer than it says")


class Disconnected(Exception):
    """The client is no longer there."""


class MessageStream:
    """A connection as messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.limit = MAX_BYTES_BEFORE_LOGIN
        self._read = bytearray()  # what was read and is not yet a whole message
        self._held: list[bytes] = []
        self._held_size = 0

    async def startup(self) -> tuple[int, MessageReader]:
        """The first message, which has no kind: its code, and what follows."""
        length = int.from_bytes(await self._exactly(4), "big")
        if not 8 <= length <= self.limit:
            raise protocol_error("this is no PostgreSQL client, or its first message is too long")
        body = MessageReader(await self._exactly(length - 4))
        return body.int32(), body

    async def message(self) -> tuple[bytes, MessageReader]:
        """The next message: its kind, and what is inside. Waits as long as it takes for the first byte, and no longer.

        A message that is too long ends the connection: nobody reads what would follow it.
        """
        if not self._read:
            await self._more()
        found = self._whole()
        if found is not None:
            return found
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT):
                while (found := self._whole()) is None:
                    await self._more()
                return found
        except TimeoutError:
            raise protocol_error("the rest of a message did not come") from None

    def _whole(self) -> tuple[bytes, MessageReader] | None:
        """The next message, where all of it is there."""
        if len(self._read) < 5:
            return None
        length = int.from_bytes(self._read[1:5], "big")
        if length < 4:
            raise protocol_error("the length of a message is less than its own")
        if length - 4 > self.limit:
            raise protocol_error(f"a message has {length - 4:,} bytes; {self.limit:,} is the most")
        if len(self._read) < 1 + length:
            return None
        kind, body = bytes(self._read[:1]), bytes(self._read[5 : 1 + length])
        del self._read[: 1 + length]
        return kind, MessageReader(body)

    async def _more(self) -> None:
        try:
            found = await self.reader.read(_CHUNK)
        except OSError:
            raise Disconnected from None
        if not found:
            raise Disconnected
        self._read += found

    async def _exactly(self, count: int) -> bytes:
        try:
            return await self.reader.readexactly(count)
        except (asyncio.IncompleteReadError, OSError):
            raise Disconnected from None

    def send(self, *messages: bytes) -> None:
        """Hand messages to the connection, after those that are held. They leave when it can take them."""
        if not self.writer.is_closing():
            self.writer.write(b"".join((*self._held, *messages)))
        self._held.clear()
        self._held_size = 0

    def hold(self, *messages: bytes) -> None:
        """Keep messages until others follow them, so that all go in one; some kilobytes at most."""
        self._held += messages
        self._held_size += sum(map(len, messages))
        if self._held_size > _HELD:
            self.send()

    async def settle(self) -> None:
        """Wait where a client has taken little of what was sent: answers to messages without a Sync add up too.

        A client that is gone is noticed here, while messages of its own are still there to be read.
        """
        if self.writer.is_closing():
            raise Disconnected
        if self.writer.transport.get_write_buffer_size() > _HELD:
            await self.flush()

    async def flush(self) -> None:
        """Wait until the client has taken most of it; a client that takes nothing is gone."""
        try:
            if self._held:
                self.send()
            async with asyncio.timeout(CLIENT_TIMEOUT):
                await self.writer.drain()
        except (TimeoutError, OSError):
            raise Disconnected from None


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _encode_text(text: str) -> bytes:
    return text.replace("\0", " ").encode() + b"\0"


def encode_authentication(code: int, data: bytes = b"") -> bytes:
    """A step of authentication: 10 offers mechanisms, 11 continues, 12 ends, 0 accepts."""
    return _message(b"R", code.to_bytes(4, "big") + data)


def encode_mechanisms(names: Iterable[str]) -> bytes:
    """The mechanisms of SASL there are."""
    return encode_authentication(10, b"".join(map(_encode_text, names)) + b"\0")


def encode_parameter_status(name: str, value: str) -> bytes:
    """A setting that clients follow."""
    return _message(b"S", _encode_text(name) + _encode_text(value))


def encode_backend_key(number: int, secret: int) -> bytes:
    """What a client shows to cancel."""
    return _message(b"K", struct.pack(">II", number, secret))


def encode_negotiation(options: Sequence[str]) -> bytes:
    """3.0 is spoken, and these options are not known."""
    return _message(b"v", struct.pack(">II", VERSION, len(options)) + b"".join(map(_encode_text, options)))


def encode_ready(status: str) -> bytes:
    """Ready for the next one: I outside of a transaction, T inside, E inside a failed one."""
    return _message(b"Z", status.encode())


def encode_error(complaint: WireError) -> bytes:
    """An error."""
    return _message(b"E", _fields(complaint.fields()))


def encode_notice(message: str, detail: str = "") -> bytes:
    """Something to know."""
    fields = [(b"S", "NOTICE"), (b"V", "NOTICE"), (b"C", "00000"), (b"M", message)]
    return _message(b"N", _fields([*fields, (b"D", detail)] if detail else fields))


def _fields(fields: Sequence[tuple[bytes, str]]) -> bytes:
    return b"".join(kind + _encode_text(text) for kind, text in fields) + b"\0"


def encode_row_description(fields: Sequence[WireColumn]) -> bytes:
    """The columns of a result."""
    parts = [len(fields).to_bytes(2, "big")]
    for field in fields:
        parts.append(_encode_text(field.name))
        type_of = (field.oid, field.size, field.modifier, int(field.binary))
        parts.append(struct.pack(">IhIhih", field.table, field.number, *type_of))
    return _message(b"T", b"".join(parts))


def encode_parameter_description(oids: Sequence[int]) -> bytes:
    """The types of the parameters of a statement."""
    return _message(b"t", len(oids).to_bytes(2, "big") + b"".join(oid.to_bytes(4, "big") for oid in oids))


def encode_data_row(values: Sequence[bytes | None]) -> bytes:
    """A row."""
    parts = [len(values).to_bytes(2, "big")]
    for value in values:
        parts += [b"\xff\xff\xff\xff"] if value is None else [len(value).to_bytes(4, "big"), value]
    return _message(b"D", b"".join(parts))


def encode_copy_out(*, binary: bool, columns: int) -> bytes:
    """Say that rows follow, in which format, and of how many columns."""
    return _message(b"H", struct.pack(f"!bh{columns}h", binary, columns, *[binary] * columns))


def encode_copy_data(data: bytes) -> bytes:
    """A part of what is copied out."""
    return _message(b"d", data)


def encode_complete(tag: str) -> bytes:
    """A statement is done."""
    return _message(b"C", _encode_text(tag))


PARSED = _message(b"1")
BOUND = _message(b"2")
CLOSED = _message(b"3")
NO_DATA = _message(b"n")
COPY_DONE = _message(b"c")
SUSPENDED = _message(b"s")
EMPTY = _message(b"I")
