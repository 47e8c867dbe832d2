"""The program that catalog statements run in: a process without secrets, forked anew for each statement.

The server starts this file as a program of its own, with no descriptor but one socket and an empty environment. It
builds the catalog from what the server sends, waits, and forks one process for each statement. That process reads the
statement from a socket of its own, answers there, and ends. It imports nothing of Tacit.

**Theorem.** No statement learns of, changes or outlives another. Proof: a statement runs in a copy of a process that
runs none, so there is nothing of another statement in its memory, and what it changes ends with it. The kernel ends it
after the allowed seconds (`setitimer` with the default action, which no code of the process can delay), refuses it
memory beyond the allowed bytes (`RLIMIT_AS`, `RLIMIT_DATA`; where a system lacks these its size is watched), and
refuses it every further descriptor, so it can open no file and no connection (`RLIMIT_NOFILE` 0).
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from decimal import Decimal
from typing import Any

START, KILL = b"S", b"K"
ORDER = struct.Struct(">cQ")  # to this program: start or kill, and the number of the statement
ENDED = struct.Struct(">QiQ")  # from it: the number, the status of the process, the microseconds of its CPU time
_NICE = 10  # below the server itself, where cores are few
LENGTH = struct.Struct(">I")

_BATCH = 100  # rows fetched at a time
_WATCH = 0.05  # seconds between two looks at the sizes of processes
_WARM = (  # each kind of value is converted once before descriptors are refused: conversions import modules
    "SELECT DATE '2000-01-01', TIMESTAMP '2000-01-01', TIME '00:00:00', INTERVAL 1 DAY, 1.5::DECIMAL(4, 1), 1::HUGEINT,"
    " 'a'::BLOB, [1], {'a': 1}, MAP {'a': 1}, uuid(), 0.5::DOUBLE, true, NULL"
)


def main() -> None:
    """Build the catalog, say what is in it, and fork a process for each statement until the server goes away."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    sys.path.append(sys.argv[2])
    setup = json.loads(_exactly(control, LENGTH.unpack(_exactly(control, LENGTH.size))[0]))
    connection = _build_catalog(setup)
    hello = json.dumps(_names(connection)).encode()
    gc.collect()
    gc.freeze()  # so that a copy shares these pages
    forks = _Forks(control, connection, setup["limits"])
    control.sendall(LENGTH.pack(len(hello)) + hello)
    forks.serve()


def _build_catalog(setup: dict[str, Any]) -> Any:
    """The catalog in memory, in one thread, with no way to files, networks or extensions."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "autoload_known_extensions": "false",
        "autoinstall_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": "",
        "threads": "1",
        "memory_limit": f"{setup['limits']['memory'] // 2}B",
    }
    connection = duckdb.connect(":memory:", config=config)
    known = connection.execute("SELECT 1 FROM duckdb_settings() WHERE name = 'async_threads'").fetchall()
    if known:
        connection.execute("SET async_threads = 0")  # a copy of a process has one thread only
    connection.execute("SET python_enable_replacements = false")
    connection.execute(setup["script"])
    for name, rows in setup["rows"].items():
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.execute(_WARM).fetchall()
    connection.execute("SET lock_configuration = true")
    return connection


def _names(connection: Any) -> dict[str, list[Any]]:
    """What a statement may name."""
    found = {
        "relations": "SELECT lower(table_name) FROM information_schema.tables",
        "functions": "SELECT lower(function_name) FROM duckdb_functions() WHERE schema_name = 'shadow'",
        "types": "SELECT lower(said), oid FROM shadow.types UNION ALL SELECT lower(typname), oid FROM shadow.types",
    }
    return {name: connection.execute(query).fetchall() for name, query in found.items()}


class _Forks:
    """The processes that run, each by the number of its statement."""

    def __init__(self, control: socket.socket, connection: Any, limits: dict[str, Any]) -> None:
        self._control = control
        self._connection = connection
        self._limits = limits
        self._most = _resident(os.getpid()) + limits["memory"]
        self._processes: dict[int, int] = {}  # numbers of statements by process
        self._wakes, wakened = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(wakened, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Start and kill as the server says, and tell it what ended. Its end is the end of all."""
        while True:
            control = self._control.fileno()
            ready = select.select([control, self._wakes], [], [], _WATCH if self._processes else None)[0]
            if self._wakes in ready:
                os.read(self._wakes, 512)
            self._reap()
            if control in ready and not self._obey():
                break
            for process in self._processes:
                if _resident(process) > self._most:
                    os.kill(process, signal.SIGKILL)
        for process in self._processes:
            os.kill(process, signal.SIGKILL)

    def _obey(self) -> bool:
        order, descriptors, _, _ = socket.recv_fds(self._control, ORDER.size, 1)
        if len(order) < ORDER.size:
            return False
        kind, number = ORDER.unpack(order)
        if kind == KILL:
            for process, known in self._processes.items():
                if known == number:
                    os.kill(process, signal.SIGKILL)  # not yet waited for, so the number is still its own
            return True
        process = os.fork()
        if not process:
            try:
                _perform(descriptors[0], self._connection, self._limits)
            finally:
                os._exit(1)
        os.close(descriptors[0])
        self._processes[process] = number
        return True

    def _reap(self) -> None:
        while self._processes:
            process, status, used = os.wait4(-1, os.WNOHANG)
            if not process:
                return
            number = self._processes.pop(process)
            self._control.sendall(ENDED.pack(number, status, int((used.ru_utime + used.ru_stime) * 1e6)))


def _perform(descriptor: int, connection: Any, limits: dict[str, Any]) -> None:
    """Read a statement, answer it, and end. Never returns to the loop that forked it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, max(descriptor + 2, 256))
    _limit(limits)
    os.nice(_NICE)
    gc.disable()
    stream = socket.socket(fileno=descriptor)
    request = json.loads(_exactly(stream, LENGTH.unpack(_exactly(stream, LENGTH.size))[0]))
    try:
        last = _answer(stream, connection, request, limits)
    except MemoryError:
        last = "memory"
    except Exception as error:  # noqa: BLE001 - its text may be of any length and of any origin: only its kind is told
        last = "memory" if type(error).__name__ == "OutOfMemoryException" else "query"
    stream.sendall(json.dumps(last).encode() + b"\n")
    os._exit(0)


def _limit(limits: dict[str, Any]) -> None:
    """What the kernel holds this process to from here on."""
    signal.setitimer(signal.ITIMER_REAL, limits["wall"])
    signal.setitimer(signal.ITIMER_PROF, limits["cpu"])
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where the machine itself runs out of memory, this process is ended first
    sizes = _sizes()
    if sizes is not None:
        mapped, data = sizes
        _cap(resource.RLIMIT_AS, mapped + limits["memory"])
        _cap(resource.RLIMIT_DATA, data + limits["memory"])
    _cap(resource.RLIMIT_CPU, int(limits["cpu"]) + 2)
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, 0)
    _cap(resource.RLIMIT_NOFILE, 0)


def _cap(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _sizes() -> tuple[int, int] | None:
    """The bytes of this process's address space and of its data, where the system tells; macOS does not limit them."""
    try:
        with open("/proc/self/statm") as file:
            fields = file.read().split()
    except OSError:
        return None
    return int(fields[0]) * resource.getpagesize(), int(fields[5]) * resource.getpagesize()


def _resident(process: int) -> int:
    """The bytes of memory that a process holds."""
    if sys.platform != "darwin":
        with contextlib.suppress(OSError), open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
        return 0
    import ctypes

    found = (ctypes.c_uint64 * 16)()  # struct proc_taskinfo: the virtual size, the resident size, and more
    size = ctypes.CDLL(None).proc_pidinfo(process, 4, ctypes.c_uint64(0), found, ctypes.sizeof(found))
    return int(found[1]) if size > 0 else 0


def _answer(stream: socket.socket, connection: Any, request: dict[str, Any], limits: dict[str, Any]) -> str:
    """Send the columns and then the rows in batches; the word that says how it ended."""
    cursor = connection.cursor()
    cursor.execute("SET search_path = 'shadow'")
    cursor.execute("SET VARIABLE database = " + _quote_text(request["database"]))
    cursor.execute("SET VARIABLE user_name = " + _quote_text(request["user"]))
    cursor.execute(request["statement"])
    size = _send(stream, [[str(each[0]), str(each[1])] for each in cursor.description or ()])
    count = 0
    while rows := cursor.fetchmany(_BATCH):
        count += len(rows)
        if count > limits["rows"]:
            return "rows"
        plain = [[_plain(value) for value in row] for row in rows]
        size += _send(stream, plain, limits["bytes"] - size)
        if size > limits["bytes"]:
            return "bytes"
    return "end"


def _send(stream: socket.socket, lines: Any, most: int | None = None) -> int:
    data = json.dumps(lines).encode() + b"\n"
    if most is None or len(data) <= most:
        stream.sendall(data)
    return len(data)


def _plain(value: Any) -> Any:
    """A value in JSON: numbers of any precision and dates are marked, all else that JSON lacks is its text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return {"number": str(value)}
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return {"date": value.isoformat()}
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            os._exit(0)  # the server is gone, or no longer waits
        data += part
    return bytes(data)


if __name__ == "__main__":
    main()
