"""Long computations of the server in a process of its own, so that they do not hold the interpreter's lock.

Planning a text of thousands of characters, and computing and writing out an answer of many cells, are computations in
Python that need no ledger. In a thread each of them would slow down every other thread. Here they are functions of what
is sent to a process of low priority, which is started when it is needed first and again after it has died.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, TypeVar

T = TypeVar("T")

_NICE = 5  # below the server itself, where cores are few
_LENGTH = struct.Struct(">Q")


class ProcessDied(Exception):
    """The process ended during a call, or could not be started."""


class ProcessClosed(BaseException):
    """The process was closed during a call: its owner stops. No error of the call, so nobody settles it as failed."""


class BackgroundProcess:
    """Calls functions in another process, one at a time. Threads may share it.

    A function is one that can be pickled by its name, and so can its arguments and its result. What it raises is raised
    here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what the function returns. Where the process dies during the call, it is made in this process."""
        try:
            return self.call_once(function, *arguments)
        except (ProcessDied, ProcessClosed):
            return function(*arguments)

    def call_once(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what the function returns in the other process.

        Raise ProcessDied where it does not return, and ProcessClosed where it is closed before that.
        """
        request = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            reply = self._exchange(request)
        if reply is None:
            raise ProcessClosed if self._closed else ProcessDied
        returned, value = pickle.loads(reply)  # noqa: S301 - from our own child
        if not returned:
            raise value
        found: T = value
        return found

    @property
    def has_ended(self) -> bool:
        """Whether a process was started and is gone."""
        running = self._process
        return running is not None and running.poll() is not None

    def close(self) -> None:
        """End the process, also during a call. A `call` after that is made in this process."""
        self._closed = True
        running = self._process
        if running is not None:
            running.kill()
        with self._lock:
            self._end()

    def _exchange(self, request: bytes) -> bytes | None:
        """The reply to a request; None where there is no process that replies."""
        if self._closed:
            return None
        try:
            if self._process is None:
                self._process = _start_process()
            if self._closed:  # meanwhile: whichever of the two is later sees the other
                raise EOFError
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            _send(self._process.stdin, request)
            return _receive(self._process.stdout)
        except (OSError, EOFError):
            self._end()
            return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()


def _start_process() -> subprocess.Popen[bytes]:
    """The process. It reads no input but requests, and a Ctrl-C is for the server, which ends it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(  # noqa: S603 - this interpreter and this module
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise EOFError
    return found


def main() -> None:
    """Answer requests until the server goes away."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no reply
    os.nice(_NICE)
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, arguments = pickle.loads(_receive(requests))  # noqa: S301 - from our own parent
            try:
                reply = (True, function(*arguments))
            except Exception as error:  # noqa: BLE001 - raised where the call was made
                reply = (False, error)
            _send(replies, pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
