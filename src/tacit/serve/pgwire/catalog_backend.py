"""A connection to a PostgreSQL of the catalog, as its client: statements with their parameters, rows as they come.

Rows are not read, only counted: what PostgreSQL sends in the format that the client asked for goes to the client as it
is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tacit.serve.pgwire.protocol import VERSION, MessageReader, WireColumn
from tacit.serve.pgwire.results import EncodedRows
from tacit.serve.pgwire.sqlstate import BAD_VALUE, INTERNAL, WireError

_SOCKET = ".s.PGSQL.5432"
_LARGEST = 1_000_000  # bytes of a message that is no row
_GRACE = 1.0  # seconds that a process has to end by itself
_SET = "SELECT set_config(key, value, false) FROM json_each_text($1::json)"
_READ = "SELECT json_object_agg(name, current_setting(name, true)) FROM json_array_elements_text($1::json) AS name"
_SYNC = b"S\0\0\0\4"
_EXECUTE = b"E\0\0\0\x09\0\0\0\0\0"


@dataclass(frozen=True)
class Limits:
    """What one statement may use: bytes of memory, seconds, and the rows and bytes of its result."""

    memory: int = 200_000_000
    seconds: float = 5.0
    rows: int = 20_000
    bytes: int = 4_000_000


class Unanswered(Exception):
    """A statement has no answer. `why` is time, rows, bytes, or gone (PostgreSQL is)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class BoundParameters:
    """What Parse and Bind say: types, formats and bytes of the values, and the formats wanted of the columns."""

    types: tuple[int, ...] = ()
    formats: tuple[bool, ...] = ()
    values: tuple[bytes | None, ...] = ()
    wanted: tuple[bool, ...] = ()

    @property
    def byte_size(self) -> int:
        """How many bytes the values have."""
        return sum(len(value) for value in self.values if value is not None)


@dataclass(frozen=True)
class CatalogStatement:
    """A statement, and the settings of its session: `settings` hold while it runs, and `watched` are read after it.

    `views` are the names of the session's views, and the statements of our own that make them.
    """

    text: str
    settings: Mapping[str, str] = field(default_factory=dict)
    watched: tuple[str, ...] = ()
    parameters: BoundParameters = BoundParameters()
    views: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CatalogResult:
    """The columns and the rows, and the watched settings: before a statement, at its end, and after its transaction."""

    fields: tuple[WireColumn, ...]
    rows: EncodedRows
    watched: tuple[Mapping[str, str | None], ...]

    def changed_settings(self) -> list[tuple[str, str, bool]]:
        """The settings that the statement has set, with their values, and whether for its transaction only."""
        if not self.watched:
            return []
        before, at_once, afterward = self.watched
        made = [(name, value, False) for name, value in afterward.items() if value != before[name]]
        made += [(name, value, True) for name, value in at_once.items() if value != afterward[name]]
        return [(name, value, local) for name, value, local in made if value is not None]


class Backend:
    """One process of PostgreSQL that runs statements for us, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._process = 0
        self._handle: int | None = None
        self.clean = True  # no statement runs in it, and nothing is left of one

    @classmethod
    async def connect(cls, folder: Path, role: str, database: str) -> Backend:
        """Connect over the socket in a folder. OSError or Unanswered where there is nobody to answer.

        A PostgreSQL that starts or ends refuses connections with an error of its own, which no statement has caused.
        """
        made = cls(*await asyncio.open_unix_connection(folder / _SOCKET))
        pairs = ("user", role, "database", database, "client_encoding", "UTF8")
        body = struct.pack(">I", VERSION) + b"".join(each.encode() + b"\0" for each in pairs) + b"\0"
        made._writer.write(struct.pack(">I", len(body) + 4) + body)
        try:
            await made._until_ready(_Output(Limits()))
        except BaseException as error:
            made._writer.close()
            if isinstance(error, WireError):
                raise Unanswered("gone") from None
            raise
        with contextlib.suppress(AttributeError, OSError):  # Linux has handles of processes, macOS only numbers
            made._handle = os.pidfd_open(made._process)
        return made

    async def execute(self, text: str) -> None:
        """Run a statement of our own, by the simple protocol."""
        self._writer.write(_message(b"Q", text.encode() + b"\0"))
        await self._until_ready(_Output(Limits()))

    async def describe(self, statement: CatalogStatement) -> tuple[tuple[int, ...], tuple[WireColumn, ...] | None]:
        """The types of the parameters, and the columns."""
        await self._prepare(statement)
        self._writer.write(_parse(statement.text, statement.parameters.types) + _message(b"D", b"S\0") + _SYNC)
        output = _Output(Limits())
        await self._finish(output)
        return output.types, output.fields

    async def run(self, statement: CatalogStatement, limits: Limits) -> CatalogResult:
        """Run a statement in a transaction of its own."""
        await self._prepare(statement)
        given = statement.parameters
        watch = _parse(_READ) + _bind([json.dumps(statement.watched).encode()]) + _EXECUTE if statement.watched else b""
        before = _Output(Limits(), rows_follow=True)
        if watch:
            self._writer.write(watch + _SYNC)
            await self._until_ready(before)
        main = _parse(statement.text, given.types) + _bind(given.values, given.formats, given.wanted)
        self._writer.write(main + _message(b"D", b"P\0") + _EXECUTE + watch + _SYNC)
        output = _Output(limits)
        await self._finish(output, watch)
        read = tuple(map(_read_settings, (*before.later, *output.later)))
        return CatalogResult(output.fields or (), EncodedRows(output.rows, output.size), read)

    async def _prepare(self, statement: CatalogStatement) -> None:
        """Set the settings; those that PostgreSQL does not take are left as they are."""
        self.clean = False
        if not statement.settings:
            return
        try:
            await self._set(statement.settings)
        except WireError:
            for name, value in statement.settings.items():
                with contextlib.suppress(WireError):
                    await self._set({name: value})

    async def _set(self, settings: Mapping[str, str]) -> None:
        data = json.dumps(settings).encode()
        self._writer.write(_parse(_SET) + _bind([data]) + _EXECUTE + _SYNC)
        await self._until_ready(_Output(Limits()))

    async def _finish(self, output: _Output, watch: bytes = b"") -> None:
        """Read what a statement gives, and forget all that it has set."""
        failure: WireError | None = None
        try:
            await self._until_ready(output)
            if watch:
                self._writer.write(watch + _SYNC)
                await self._until_ready(output)
        except WireError as error:
            failure = error
        await self.execute("DISCARD ALL")
        self.clean = True
        if failure is not None:
            raise failure

    async def _until_ready(self, output: _Output) -> None:
        """Read to the end of a transaction. An error is raised when it is there."""
        failure: WireError | None = None
        while True:
            try:
                kind, size = struct.unpack(">cI", await self._reader.readexactly(5))
                output.expect(kind, size)
                body = await self._reader.readexactly(size - 4)
            except (asyncio.IncompleteReadError, OSError):
                if failure is not None:
                    raise failure from None
                raise Unanswered("gone") from None
            if kind == b"Z":
                break
            if kind == b"E":
                failure = failure or _read_error(MessageReader(body))
            elif kind == b"K":
                self._process = int.from_bytes(body[:4], "big")
            else:
                output.take(kind, body)
        if failure is not None:
            raise failure

    async def close(self) -> bool:
        """End the process, and wait until it has ended; false where it had to be killed."""
        self._writer.write(_message(b"X"))
        if not self.clean:
            self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_GRACE):
                while await self._reader.read(65_536):
                    pass
        except TimeoutError:
            self._signal(signal.SIGKILL)
            return False
        except OSError:
            pass
        finally:
            self.release()
        return True

    def release(self) -> None:
        """Close the connection. A statement that is under way ends with an error where its process has ended."""
        self._writer.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _signal(self, kind: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, kind)
            elif self._process:
                os.kill(self._process, kind)


class _Output:
    """What PostgreSQL sends until it is ready, within limits."""

    def __init__(self, limits: Limits, *, rows_follow: bool = False) -> None:
        self._limits = limits
        self._done = rows_follow  # the statement itself; what follows are rows of watched settings
        self.types: tuple[int, ...] = ()
        self.fields: tuple[WireColumn, ...] | None = None
        self.rows: list[bytes] = []
        self.later: list[bytes] = []
        self.size = 0

    def expect(self, kind: bytes, size: int) -> None:
        """Check the size of a message before it is read."""
        if size < 4:
            raise Unanswered("gone")
        if kind != b"D" and size > _LARGEST:
            raise Unanswered("bytes")
        if kind == b"D":
            self.size += size
            if self.size > self._limits.bytes:
                raise Unanswered("bytes")
            if len(self.rows) >= self._limits.rows:
                raise Unanswered("rows")

    def take(self, kind: bytes, body: bytes) -> None:
        """Note a message."""
        if kind == b"D":
            if self._done:
                self.later.append(body)
            else:
                self.rows.append(_message(b"D", body))
        elif kind == b"C":
            self._done = True
        elif kind == b"T":
            self.fields = _read_columns(MessageReader(body))
        elif kind == b"t":
            reader = MessageReader(body)
            self.types = tuple(reader.int32() & 0xFFFFFFFF for _ in range(reader.count()))


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _parse(text: str, types: Sequence[int] = ()) -> bytes:
    return _message(b"P", b"\0" + text.encode() + b"\0" + struct.pack(f">h{len(types)}I", len(types), *types))


def _bind(values: Sequence[bytes | None], formats: Sequence[bool] = (), wanted: Sequence[bool] = ()) -> bytes:
    parts = [b"\0\0", struct.pack(f">h{len(formats)}h", len(formats), *formats), struct.pack(">h", len(values))]
    parts += [b"\xff\xff\xff\xff" if each is None else struct.pack(">I", len(each)) + each for each in values]
    return _message(b"B", b"".join([*parts, struct.pack(f">h{len(wanted)}h", len(wanted), *wanted)]))


def _read_columns(body: MessageReader) -> tuple[WireColumn, ...]:
    found = []
    for _ in range(body.count()):
        name = body.text()
        table, number, oid = body.int32() & 0xFFFFFFFF, body.int16(), body.int32() & 0xFFFFFFFF
        size, modifier, binary = body.int16(), body.int32(), body.int16() == 1
        found.append(WireColumn(name, oid, size, binary, table, number, modifier))
    return tuple(found)


def _read_settings(row: bytes) -> dict[str, str | None]:
    """The settings in the only value of a row, after six bytes: how many values there are, and the length of it."""
    try:
        found: dict[str, str | None] = json.loads(row[6:])
    except ValueError:  # the statement has set another encoding
        what = "refused [parameter]: client_encoding is not spoken here"
        raise WireError(BAD_VALUE, what, "SET client_encoding = 'UTF8'") from None
    return found


def _read_error(body: MessageReader) -> WireError:
    """An error in PostgreSQL's own words; nothing in its database is private."""
    found: dict[bytes, str] = {}
    while (kind := body.take(1)) != b"\0":
        found[kind] = body.text()
    position = found.get(b"P", "0")
    place = int(position) if position.isdecimal() else 0
    state, message, hint = found.get(b"C", INTERNAL), found.get(b"M", ""), found.get(b"H", "")
    return WireError(state, message, hint, place, detail=found.get(b"D", ""), is_postgresql=True)
