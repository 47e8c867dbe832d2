"""One PostgreSQL of the catalog, which one analyst has for as long as it lives.

**Theorem.** No statement of one analyst shows or disturbs another analyst. Proof: it runs in a PostgreSQL of its own,
with its own processes, shared memory, files, roles and locks; that is started from a template that no statement has run
in, it is never given to a second analyst, and its folder is removed when it ends. The kernel holds each of its
processes to `Limits.memory` (`catalog_supervisor`), which no setting lifts, and a process that is at work at the
deadline is ended from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tacit.serve.pgwire.catalog_backend import Backend, CatalogResult, CatalogStatement, Limits, Unanswered
from tacit.serve.pgwire.catalog_programs import ENVIRONMENT, Programs
from tacit.serve.pgwire.catalog_schema import DATABASE, OWNER, ROLE, quote_name
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import WireError

_SUPERVISOR = Path(__file__).with_name("catalog_supervisor.py")
_START = 30.0  # seconds
_END = 60.0  # seconds in which PostgreSQL ends, whose priority is low, on a busy machine
_RETRY = 0.01
_IN_USE = "55006"
_GUARDED = (
    "SELECT coalesce(bool_and(row_security_active(oid)), true) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
_MAINTENANCE = "template1"
_DROP_ALL = (
    "SELECT coalesce(string_agg(format('DROP VIEW public.%I', relname), '; '), '') FROM pg_class"
    " WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
)
_ROW_START = 11  # bytes before the value in the message of a row that has one: kind, size, how many, and its length


class CatalogCluster:
    """A PostgreSQL that runs under a supervisor. `role` and `database` are what its client is told to be called."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self.folder = folder
        self.role = ROLE
        self.database = DATABASE
        self._process = process
        self._limits = limits
        self._backend: Backend | None = None
        self._asked: tuple[str, str] = (ROLE, DATABASE)
        self._broken = False
        self._views: tuple[tuple[str, str], ...] | None = ()  # None where it is not known which there are

    @property
    def alive(self) -> bool:
        """Whether it runs. After a process of it was killed it counts as ended: it may have lost its names."""
        return not self._broken and self._process.poll() is None

    def mark_broken(self) -> None:
        """Use it no longer."""
        self._broken = True

    @property
    def pid(self) -> int:
        """The number of the process that supervises it."""
        return self._process.pid

    @classmethod
    async def start(cls, programs: Programs, template: Path, folder: Path, limits: Limits) -> CatalogCluster:
        """Start one from a template, and wait until it answers. OSError or Unanswered where it does not."""
        process = await asyncio.to_thread(_start, programs, template, folder, limits)
        made = cls(folder, process, limits)
        try:
            async with asyncio.timeout(_START):
                await made._wait_started()
        except BaseException:
            await made.stop()
            raise
        return made

    async def _wait_started(self) -> None:
        while self._backend is None:
            if not self.alive:
                raise Unanswered("gone")
            try:
                self._backend = await Backend.connect(self.folder, self.role, self.database)
            except (OSError, Unanswered):  # it is starting
                await asyncio.sleep(_RETRY)
        if not await self._is_guarded():
            raise Unanswered("gone")

    async def _is_guarded(self) -> bool:
        """Whether no table of the policy can be read: checked at each start, whatever made the template."""
        found = await self.run(CatalogStatement(_GUARDED))
        return len(found.rows) == 1 and found.rows[0].endswith(b"t")

    async def assign(self, analyst: str, database: str) -> None:
        """Call the role and the database as the client does; what PostgreSQL reserves keeps its first name."""
        if self._asked == (analyst, database):
            return
        if self._backend is not None:
            await self.drop_backend()
        async with contextlib.aclosing(_Maintenance(self.folder)) as owner:
            self.role = await owner.rename("ROLE", self.role, analyst)
            self.database = await owner.rename("DATABASE", self.database, database)
        self._asked = analyst, database

    async def describe(self, statement: CatalogStatement) -> tuple[tuple[int, ...], tuple[WireColumn, ...] | None]:
        """The types of the parameters of a statement, and its columns."""
        async with asyncio.timeout(self._limits.seconds):
            await self._show_views(statement.views)
            return await (await self._connect()).describe(statement)

    async def run(self, statement: CatalogStatement) -> CatalogResult:
        """What a statement gives. After an error that is not PostgreSQL's own, `is_clean` is false."""
        async with asyncio.timeout(self._limits.seconds):
            await self._show_views(statement.views)
            return await (await self._connect()).run(statement, self._limits)

    async def _show_views(self, views: tuple[tuple[str, str], ...]) -> None:
        """Have the views of the session that asks, and no others. The owner makes them; a statement makes nothing.

        Which views there are is unknown from before the transaction that changes them until it is known to have ended:
        whatever interrupts it, the next statement drops all that it finds. A process that may be at work still could
        change them later, so then the cluster is used no longer.
        """
        if views == self._views:
            return
        owner = await Backend.connect(self.folder, OWNER, self.database)
        known, self._views = self._views, None
        try:
            made = await _drop_all(owner) if known is None else [_drop(each[0]) for each in known if each not in views]
            for name, text in views:
                if (name, text) not in (known or ()):
                    made += [text, f"GRANT SELECT ON public.{quote_name(name)} TO PUBLIC"]
            await owner.execute("SET default_transaction_read_only = off")
            await owner.execute("; ".join(made))  # one transaction: all of it, or nothing
            self._views = views
        finally:
            ended = self._views is not None  # the transaction, whatever becomes of its process
            try:
                ended = await owner.close()
            finally:
                self._broken = self._broken or not ended

    async def _connect(self) -> Backend:
        if self._backend is None:
            self._backend = await Backend.connect(self.folder, self.role, self.database)
        return self._backend

    @property
    def is_clean(self) -> bool:
        """Whether nothing runs in it."""
        return self._backend is None or self._backend.clean

    async def drop_backend(self) -> None:
        """End the process that ran statements, whatever it does; the next statement has a new one."""
        backend, self._backend = self._backend, None
        if backend is not None and not await backend.close():
            self._broken = True

    async def stop(self) -> None:
        """End it, and wait until its processes and its folder are gone."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended
            self._process.stdin.write(b"x")
            self._process.stdin.close()
        await asyncio.to_thread(self._process.wait)
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.release()
        await asyncio.to_thread(_remove, self.folder)


class _Maintenance:
    """A connection as the owner, to the database that no client sees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._backend: Backend | None = None

    async def rename(self, kind: str, old: str, new: str) -> str:
        """Rename something; what it is called then."""
        if not new or quote_name(new) == quote_name(old):
            return old
        if self._backend is None:
            self._backend = await Backend.connect(self._folder, OWNER, _MAINTENANCE)
            await self._backend.execute("SET default_transaction_read_only = off")
        until = time.monotonic() + _START
        while True:
            try:
                await self._backend.execute(f"ALTER {kind} {quote_name(old)} RENAME TO {quote_name(new)}")
            except WireError as error:
                if error.sqlstate == _IN_USE and time.monotonic() < until:
                    await asyncio.sleep(_RETRY)  # the process that was there is on its way out
                    continue
                return old
            return quote_name(new)[1:-1].replace('""', '"')

    async def aclose(self) -> None:
        if self._backend is not None:
            await self._backend.close()


def _drop(name: str) -> str:
    return f"DROP VIEW public.{quote_name(name)}"


async def _drop_all(owner: Backend) -> list[str]:
    """What drops every view that is there."""
    found = await owner.run(CatalogStatement(_DROP_ALL), Limits())
    text = found.rows[0][_ROW_START:].decode()
    return [text] if text else []


def _remove(folder: Path) -> None:
    """Remove what a supervisor that was killed has left: PostgreSQL is ending, and may write there meanwhile."""
    until = time.monotonic() + _END
    while folder.exists() and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_RETRY)


def _start(programs: Programs, template: Path, folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    try:
        return _supervise(programs, template, folder, limits)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _supervise(programs: Programs, template: Path, folder: Path, limits: Limits) -> subprocess.Popen[bytes]:
    """Copy the template, and start the program that starts PostgreSQL there, and removes the copy at its end."""
    folder.mkdir(mode=0o700)
    shutil.copytree(template, folder / "data")
    (folder / "data").chmod(0o700)
    programs.account.give(folder)
    user, group = programs.account.user, programs.account.group
    given = [str(folder), str(programs.postgres), *(str(-1 if each is None else each) for each in (user, group))]
    return subprocess.Popen(  # noqa: S603 - this interpreter and this package's own file
        [sys.executable, "-I", "-S", str(_SUPERVISOR), *given, str(limits.memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,  # a Ctrl-C is for the server, which ends it
    )
