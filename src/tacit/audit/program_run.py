"""One run of a program within a time limit and a limit on what it writes."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import Any

MAX_OUTPUT = 16 * 2**20
"""Bytes of each of the two outputs that are read; a program that writes more is ended."""
_CHUNK = 65536
_PIECE = 512  # of what is written: what every pipe takes whole

Ended = tuple[int | str, bytes, bytes]


def run_program(words: list[str], given: bytes | None, limit: float) -> Ended:
    """Return the exit status, the output and the errors of a program that reads `given` from standard input.

    It runs in a session of its own. Where `limit` seconds pass, all of its process group is killed, and the status is
    "timeout" without output. Where it writes more than MAX_OUTPUT bytes to either, the same happens, and the status is
    "too much output" with the bytes up to there: nothing that it writes fills the memory of whoever runs it.
    """
    with subprocess.Popen(  # noqa: S603 - the caller names the program, and no shell reads it
        words,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            return _attend(process, given or b"", time.monotonic() + limit)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return "timeout", b"", b""
        except BaseException:  # Ctrl-C does not reach another session
            _kill_group(process)
            raise


def _attend(process: subprocess.Popen[bytes], given: bytes, end: float) -> Ended:
    """Write and read whatever is ready, until both outputs have ended and the program too."""
    outputs: dict[Any, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    left = memoryview(given)
    with selectors.DefaultSelector() as ready:
        for each in outputs:
            ready.register(each, selectors.EVENT_READ)
        if process.stdin is not None:
            ready.register(process.stdin, selectors.EVENT_WRITE)
        while ready.get_map():
            for key, _ in ready.select(_seconds_left(process, end)):
                pipe: Any = key.fileobj
                if pipe not in outputs:
                    with contextlib.suppress(BrokenPipeError):  # it need not read what it is given
                        left = left[os.write(pipe.fileno(), left[:_PIECE]) :] if left else left
                        if left:
                            continue
                    ready.unregister(pipe)
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
                    continue
                chunk = os.read(pipe.fileno(), _CHUNK)
                outputs[pipe] += chunk
                if not chunk:
                    ready.unregister(pipe)
                elif len(outputs[pipe]) > MAX_OUTPUT:
                    _kill_group(process)
                    out, err = (bytes(part[:MAX_OUTPUT]) for part in outputs.values())
                    return "too much output", out, err
    process.wait(_seconds_left(process, end))
    return process.returncode, bytes(outputs[process.stdout]), bytes(outputs[process.stderr])


def _seconds_left(process: subprocess.Popen[bytes], end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise subprocess.TimeoutExpired(process.args, left)
    return left


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and what it started. It was not waited for yet, so that its number is its own."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
