"""`tacit serve` and scripts that serve, each in a process of its own.

Such a process is forked from one that has imported what servers need, which takes longer than all that they do here.
Run as a script, this file is that one: it is given what to run with a pipe for its output and one for its end.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

IMPORTED = (
    *("duckdb", "numpy", "pyarrow", "sqlglot.dialects.duckdb", "uvicorn", "uvicorn.protocols.http.httptools_impl"),
    *("tacit.cli.main", "tacit.cli.serve", "tacit.curator.curator", "tacit.curator.resources", "tacit.engines.duckdb"),
    *("tacit.serve.authentication", "tacit.serve.http", "tacit.serve.pgwire", "tacit.serve.server", "tacit.serve.tls"),
)
COMMAND = "from tacit.cli.main import main; main()"
_BOTH = f"import os; os.dup2(1, 2); {COMMAND}"
_LONGEST = 1 << 20  # bytes of a request


class ForkedProcess:
    """Code that runs in a process which was forked elsewhere: of subprocess.Popen what tests use of it."""

    def __init__(self, code: str, *arguments: object, **environment: str) -> None:
        reading, writing = os.pipe()
        told, telling = os.pipe()
        asked = {
            "code": code,
            "arguments": list(map(str, arguments)),
            "environment": {**os.environ, **environment},
            "folder": str(Path.cwd()),
        }
        socket.send_fds(_origin(), [json.dumps(asked).encode()], [writing, telling])
        os.close(writing)
        os.close(telling)
        self.stdout = open(reading, encoding="utf-8")  # noqa: SIM115 - closed by whoever has read it
        self._told = open(told, "rb", buffering=0)  # noqa: SIM115 - closed with the status
        self.pid = int(self._read_line())
        self.returncode: int | None = None

    def send_signal(self, kind: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, kind)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """How it has ended; None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = int(self._read_line())
            self._told.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """How it has ended, once it has."""
        if self.returncode is None and not select.select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        found = self.poll()
        assert found is not None
        return found

    def _read_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            part = self._told.read(1)
            assert part, "the process that forks has ended"
            line += part
        return line

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait(60)


class ServerProcess:
    """A server that runs, where it listens, and the certificate it shows; `anew`, as a shell starts it."""

    def __init__(self, policy: Path, *options: str, anew: bool = False, tls: bool = True) -> None:
        arguments = ["serve", "-p", str(policy), *(["--tls-self"] if tls else []), *options]
        log = {"TACIT_LOG": str(policy.with_suffix(".log"))}
        self.child: Any
        if anew:
            command = [sys.executable, "-m", "tacit.cli.main", *arguments]
            self.child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **log}
            )
        else:
            self.child = ForkedProcess(_BOTH, *arguments, **log)
        self.said = ""
        for line in self.child.stdout:
            self.said += line
            if line.startswith("Stop with"):
                break
        else:
            raise AssertionError(self.said)
        self.ports = {scheme: int(port) for scheme, port in re.findall(r"on (\w+)://127.0.0.1:(\d+)", self.said)}
        self.cafile = policy.with_suffix(".tls.pem")

    def end(self, kind: signal.Signals) -> int:
        self.child.send_signal(kind)
        self.said += self.child.stdout.read()
        self.child.stdout.close()
        return int(self.child.wait(60))

    def connect(self, key: str, **options: object):
        import tacit

        return tacit.connect(f"https://127.0.0.1:{self.ports['https']}", key, cafile=self.cafile, **options)


@contextmanager
def run_server_process(policy: Path, *options: str, anew: bool = False, tls: bool = True) -> Iterator[ServerProcess]:
    running = ServerProcess(policy, "--http", "0", "--postgres", "0", *options, anew=anew, tls=tls)
    try:
        yield running
    finally:
        if running.child.poll() is None:
            running.end(signal.SIGKILL)


@cache
def _origin() -> socket.socket:
    """A line to the process that forks, which ends when this end is closed."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        there.set_inheritable(True)
        started = subprocess.Popen([sys.executable, __file__, str(there.fileno())], pass_fds=[there.fileno()])

    def end() -> None:
        here.close()
        started.wait(60)

    atexit.register(end)
    return here


def _serve_forks(line: socket.socket) -> None:
    """Fork for each request, and for each fork once more: who waits for it and says how it ended."""
    while True:
        asked, ends, _, _ = socket.recv_fds(line, _LONGEST, 2)
        if not asked:
            return
        if os.fork() == 0:
            os._exit(_watch(json.loads(asked), *ends, line))
        for end in ends:
            os.close(end)
        while _reap():
            pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _watch(asked: dict[str, Any], output: int, status: int, line: socket.socket) -> int:
    line.close()
    child = os.fork()
    if child == 0:
        os.close(status)
        os._exit(_run(output=output, **asked))
    os.close(output)
    os.write(status, b"%d\n" % child)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return 0


def _run(code: str, arguments: list[str], environment: dict[str, str], folder: str, output: int) -> int:
    """Run code as the main program, and return its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.close(output)
    sys.argv = ["tacit", *arguments]
    status: Any = 1
    try:
        exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as stopped:
        status = stopped.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    _serve_forks(socket.socket(fileno=int(sys.argv[1])))
    gc.unfreeze()
