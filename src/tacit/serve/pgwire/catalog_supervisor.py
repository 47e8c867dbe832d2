"""The program that one PostgreSQL of the catalog runs under: it ends, and its folder goes, when the server does.

The server starts this file as a program of its own, and holds the other end of its standard input. It imports nothing
of Tacit.

**Theorem.** No process and no file of a catalog outlives the server, however that ends. Proof: the kernel closes the
server's end of the pipe when the server ends, by whatever signal; this program then ends PostgreSQL, which ends its
own processes, and removes the folder of the catalog. Where the server asks for its end with a byte, or PostgreSQL ends
by itself, it removes its own part of that folder. Where this program itself is killed, Linux ends PostgreSQL by a
signal, and the server removes its folder. On Linux, processes that PostgreSQL leaves behind become children of
this program, which kills them all; elsewhere they end by themselves when they notice.

The limits set here hold for every process that PostgreSQL starts, since limits are inherited and no statement can
raise them: `set_config` changes PostgreSQL's settings, and nothing of the kernel's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import sys
import time

_NICE = 10  # below the server itself, where cores are few
_PATIENCE = 8.0  # seconds; PostgreSQL kills what does not end within five
_LARGEST_FILE = 256_000_000
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER of Linux
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_SHARED_LINE = 6  # of postmaster.pid: the key and the number of its segment of shared memory


def main() -> None:
    """Start PostgreSQL, and wait for its end or for that of the server."""
    folder, program, user, group, memory = sys.argv[1:]
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    wakes, wakened = os.pipe()
    for descriptor in (wakes, wakened):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
    parent = os.getpid()
    process = os.fork()
    if not process:
        try:
            _become_postgres(folder, program, int(user), int(group), int(memory), parent)
        finally:
            os._exit(1)
    ended = orphaned = False
    while not ended:
        ready = select.select([0, wakes], [], [])[0]
        ended = os.waitpid(process, os.WNOHANG)[0] != 0
        if 0 in ready:
            orphaned = not os.read(0, 1)
            break
        if wakes in ready:
            os.read(wakes, 512)
    if not ended:
        _end(process)
    _kill_orphans()
    _remove_shared_memory(folder)
    shutil.rmtree(os.path.dirname(folder) if orphaned else folder, ignore_errors=True)


def _become_postgres(folder: str, program: str, user: int, group: int, memory: int, parent: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.nice(_NICE)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where the machine itself runs out of memory, these processes are ended first
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS does not limit the address space
            resource.setrlimit(kind, (allowed, allowed))
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, 256)
    if user >= 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    with contextlib.suppress(AttributeError):  # a change of the user forgets it, so it comes last
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, int(signal.SIGQUIT), 0, 0, 0)
    if os.getppid() != parent:
        return
    os.execve(program, [program, "-D", os.path.join(folder, "data"), "-k", folder], os.environ)  # noqa: S606 - no shell is wanted


def _end(process: int) -> None:
    """End PostgreSQL at once; nothing in it is worth keeping."""
    os.kill(process, signal.SIGQUIT)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            return
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _kill_orphans() -> None:
    """Kill what PostgreSQL left running, and wait for its end."""
    with contextlib.suppress(OSError):
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                found = [int(each) for each in file.read().split()]
            for each in found:
                os.kill(each, signal.SIGKILL)
            os.waitpid(-1, 0)  # ends the loop where no child is left


def _remove_shared_memory(folder: str) -> None:
    """Remove the small segment that PostgreSQL leaves behind where it was killed."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(os.path.join(folder, "data", "postmaster.pid")) as file:
            number = int(file.read().splitlines()[_SHARED_LINE].split()[1])
        ctypes.CDLL(None).shmctl(number, 0, None)


if __name__ == "__main__":
    main()
