"""The server's side of the program that catalog statements run in: its start, its statements, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.serve.pgwire.catalog_rows import BatchedRows
from tacit.serve.pgwire.catalog_worker import ENDED, KILL, LENGTH, ORDER, START

_PROGRAM = Path(__file__).with_name("catalog_worker.py")
_CHUNK = 65_536
_LARGEST_HELLO = 10_000_000
_IN_TIME = frozenset({signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM})
_SLACK = 1_000  # bytes of an answer that are not rows: how it ended


@dataclass(frozen=True)
class Limits:
    """What one statement may use: bytes of memory, seconds of CPU and of time, rows and bytes of its result."""

    memory: int = 160_000_000
    cpu: float = 2.0
    wall: float = 8.0
    rows: int = 10_000
    bytes: int = 2_000_000


class Unanswered(Exception):
    """A statement has no answer. `why` is time, memory, rows, bytes, query, busy, or gone (the program is)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class CatalogTable:
    """The names and the engine's types of columns, and the rows."""

    columns: list[tuple[str, str]]
    rows: BatchedRows


class CatalogProcess:
    """A program that runs. It ends with this process, or when it is closed."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, names: dict[str, Any]) -> None:
        self.names = names
        self._process = process
        self._control = control
        self._numbers = 0
        self._ended: dict[int, asyncio.Future[tuple[int, float]]] = {}
        self._reading = asyncio.create_task(self._read())
        self.alive = True

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @classmethod
    async def start(cls, script: str, rows: Mapping[str, Any], limits: Limits) -> CatalogProcess:
        """Start the program, and wait until it has built the catalog. OSError or Unanswered where it does not."""
        mine, its = socket.socketpair()
        starting = asyncio.ensure_future(asyncio.to_thread(_start_program, its.fileno()))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            mine.close()
            await asyncio.wait([starting])  # a thread is not canceled, and what it started must be ended
            if starting.exception() is None:
                its.close()
                await asyncio.to_thread(_end, starting.result())
            raise
        except BaseException:
            mine.close()
            raise
        finally:
            its.close()
        mine.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            setup = json.dumps({"script": script, "rows": rows, "limits": asdict(limits)}).encode()
            await loop.sock_sendall(mine, LENGTH.pack(len(setup)) + setup)
            (length,) = LENGTH.unpack(await _exactly(mine, LENGTH.size))
            names = json.loads(await _exactly(mine, min(length, _LARGEST_HELLO)))
        except BaseException:
            mine.close()
            await asyncio.to_thread(_end, process)
            raise
        return cls(process, mine, names)

    async def run(self, request: Mapping[str, str], limits: Limits, ended: Callable[[float], None]) -> CatalogTable:
        """The table of one statement, in a process of its own, or Unanswered.

        `ended` is called once, whatever happens: with the CPU seconds that it used, when its process has ended, which
        may be after this was canceled.
        """
        self._numbers += 1
        number = self._numbers
        try:
            mine, its = socket.socketpair()
        except OSError:  # no descriptor is left
            ended(0.0)
            raise Unanswered("busy") from None
        status: asyncio.Future[tuple[int, float]] = asyncio.get_running_loop().create_future()
        status.add_done_callback(lambda done: ended(done.result()[1]))
        self._ended[number] = status
        try:
            with its:
                socket.send_fds(self._control, [ORDER.pack(START, number)], [its.fileno()])
        except OSError:
            mine.close()
            self._on_exit()
            raise Unanswered("gone") from None
        try:
            with contextlib.closing(mine):
                table, last = await _exchange(mine, request, limits)
        finally:
            self._kill(number)
        if last != "end":
            code, _ = await status
            raise Unanswered(_reason(last, code))
        return table

    def close(self) -> None:
        """End the program and every statement that runs."""
        self._reading.cancel()
        self._on_exit()

    async def wait_closed(self) -> None:
        """Wait for its end."""
        await asyncio.to_thread(_end, self._process)

    def _kill(self, number: int) -> None:
        if number in self._ended and self.alive:
            with contextlib.suppress(OSError):
                self._control.send(ORDER.pack(KILL, number))

    async def _read(self) -> None:
        """Note which statements have ended, until the program has."""
        try:
            while True:
                number, code, used = ENDED.unpack(await _exactly(self._control, ENDED.size))
                done = self._ended.pop(number, None)
                if done is not None and not done.done():
                    done.set_result((code, used / 1e6))
        except (OSError, Unanswered):
            self._on_exit()

    def _on_exit(self) -> None:
        self.alive = False
        self._control.close()
        for done in self._ended.values():
            if not done.done():
                done.set_result((0, 0.0))
        self._ended.clear()


def _start_program(descriptor: int) -> subprocess.Popen[bytes]:
    """The program with one descriptor and no environment: it gets no secret that this process or its shell holds."""
    found = find_spec("duckdb")
    if found is None or found.origin is None:
        raise FileNotFoundError("duckdb")
    packages = str(Path(found.origin).parent.parent)
    return subprocess.Popen(  # noqa: S603 - this interpreter and this package's own file
        [sys.executable, "-I", "-S", str(_PROGRAM), str(descriptor), packages],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        pass_fds=(descriptor,),
        env={},
        cwd="/",
        start_new_session=True,  # a Ctrl-C is for the server, which ends it
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _exactly(control: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = await asyncio.get_running_loop().sock_recv(control, count - len(data))
        if not part:
            raise Unanswered("gone")
        data += part
    return bytes(data)


async def _exchange(stream: socket.socket, request: Mapping[str, str], limits: Limits) -> tuple[CatalogTable, str]:
    """What a statement's process sends, and how it says that it ended; "" where it does not say.

    Nothing is believed: a process that ran a hostile statement may send anything.
    """
    stream.setblocking(False)
    loop = asyncio.get_running_loop()
    table = CatalogTable([], BatchedRows(0))
    data = json.dumps(request).encode()
    with contextlib.suppress(OSError):
        await loop.sock_sendall(stream, LENGTH.pack(len(data)) + data)
    try:
        size, line = 0, bytearray()
        while part := await loop.sock_recv(stream, _CHUNK):
            size += len(part)
            if size > limits.bytes + _SLACK:
                return table, "bytes"
            *whole, rest = part.split(b"\n")
            for each in whole:
                found = bytes(line + each)
                line.clear()
                if found.startswith(b'"'):
                    return table, str(json.loads(found))
                if table.columns:
                    table.rows.add(found)
                else:
                    columns = [(str(name), str(kind)) for name, kind in json.loads(found)]
                    table = CatalogTable(columns, BatchedRows(len(columns)))
                await asyncio.sleep(0)
            line += rest
    except (OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        return table, ""
    return table, ""


def _reason(last: str, code: int) -> str:
    """Why there is no answer, by what was said and by how the process ended."""
    if last in {"memory", "rows", "bytes", "query"}:
        return last
    if not os.WIFSIGNALED(code):
        return "gone"
    return "time" if os.WTERMSIG(code) in _IN_TIME else "memory"
