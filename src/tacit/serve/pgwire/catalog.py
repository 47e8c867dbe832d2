"""The catalog: a real PostgreSQL that holds the policy's tables, and none of their rows.

Everything in it follows from the policy, which is public, so what clients find out there is free. What a client is told
is what PostgreSQL says: no part of its catalog is made up here. Analysts who may not name all tables and columns have a
PostgreSQL in which the others were never made.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tacit.extras import install_command
from tacit.policy.model import Policy, TableAccess
from tacit.serve.pgwire.catalog_backend import CatalogResult, CatalogStatement, Limits, Unanswered
from tacit.serve.pgwire.catalog_cluster import CatalogCluster
from tacit.serve.pgwire.catalog_programs import EXTRA, Programs, find_programs
from tacit.serve.pgwire.catalog_queue import FairQueue
from tacit.serve.pgwire.catalog_schema import GUARD, quote_name
from tacit.serve.pgwire.catalog_template import TemplateError, cache_folder, make_template
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.sqlstate import CANCELED, INTERNAL, UNSUPPORTED, WireError, unsupported_error

_log = logging.getLogger("tacit.serve")
T = TypeVar("T")

HINT = "look with pg_catalog and information_schema; ask about the tables of the policy"
_RUNNING = 3  # statements at a time, one of each analyst
_CLUSTERS = 8  # analysts whose PostgreSQL is kept running
_SHARE, _BURST = 0.25, 4.0  # of a processor for each analyst in the long run, and seconds of it at once
_FAILED = 0.1  # seconds that a statement that fails counts at least
_GUARDED = (f'"{GUARD}"', "query would be affected by row-level security policy")


class Catalog:
    """Answers catalog statements, each in its analyst's own PostgreSQL and held to `limits`.

    Analysts take turns, one statement of each at a time, and `share` of a processor for each in the long run. A
    statement that fails counts as 0.1 s at least: most of what it costs is spent outside of PostgreSQL, and a tool that
    looks around rarely fails. One PostgreSQL that nobody has yet is always kept ready, with all tables of the policy;
    that of an analyst who may not name them all is started for them. `programs` is the folder of PostgreSQL's programs;
    without it those of the installed extra are used.
    """

    def __init__(
        self,
        policy: Policy,
        limits: Limits | None = None,
        *,
        programs: Path | None = None,
        share: float = _SHARE,
        burst: float = _BURST,
        clusters: int = _CLUSTERS,
    ) -> None:
        self._policy = policy
        self._limits = limits or Limits()
        self._queue = FairQueue(min(_RUNNING, clusters), share, burst)
        self._most = clusters
        self._programs = find_programs(programs)
        self._numbers = count(1)
        self._place: Path | None = None
        self._preparing = threading.Lock()  # one template at a time
        self._templates: dict[TableAccess | None, asyncio.Task[tuple[Programs, Path]]] = {}  # by what may be named
        self._spare: asyncio.Task[CatalogCluster] | None = None
        self._clusters: OrderedDict[str, CatalogCluster] = OrderedDict()  # by analyst, the last used at the end
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def version(self) -> tuple[int, int] | None:
        """The version of PostgreSQL; None where there is none that runs."""
        try:
            return None if self._programs is None else self._programs.version
        except (OSError, ValueError):
            return None

    @property
    def is_installed(self) -> bool:
        """Whether there is a PostgreSQL to answer."""
        return self._programs is not None

    def pid(self, analyst: str) -> int | None:
        """The process that supervises an analyst's PostgreSQL, where there is one."""
        found = self._clusters.get(analyst)
        return found.pid if found is not None and found.alive else None

    def warm(self) -> None:
        """Begin to get a first PostgreSQL ready, and wait for nothing."""
        if self.version is None:
            _log.warning("PostgreSQL's programs are not installed, so catalog statements are refused: %s", _install())
        elif self._spare is None:
            self._spare = self._begin(self._start(None))

    async def describe(
        self, analyst: str, database: str, statement: CatalogStatement
    ) -> tuple[tuple[int, ...], tuple[WireColumn, ...] | None]:
        """The types of the parameters of a statement, and its columns."""
        return await self._perform(analyst, database, lambda cluster: cluster.describe(statement))

    async def run(self, analyst: str, database: str, statement: CatalogStatement) -> CatalogResult:
        """What a statement gives, or an error."""
        return await self._perform(analyst, database, lambda cluster: cluster.run(statement))

    async def close(self) -> None:
        """End every PostgreSQL, and remove their files."""
        self._closed = True
        while self._tasks:  # threads are not canceled, and what they started must be ended
            await asyncio.wait(list(self._tasks))
        found = list(self._clusters.values())
        if self._spare is not None and not self._spare.cancelled() and self._spare.exception() is None:
            found.append(self._spare.result())
        self._spare = None
        self._clusters.clear()
        await asyncio.gather(*(each.stop() for each in found))
        if self._place is not None:
            await asyncio.to_thread(shutil.rmtree, self._place, ignore_errors=True)

    async def _perform(self, analyst: str, database: str, work: Callable[[CatalogCluster], Awaitable[T]]) -> T:
        if self._programs is None:
            what = "statements about PostgreSQL's catalog need its programs, which are not installed on the server"
            raise WireError(UNSUPPORTED, what, f"the data owner runs: {_install()}")
        await self._queue.enter(analyst)
        started = time.monotonic()
        least = _FAILED
        cluster: CatalogCluster | None = None
        self._busy.add(analyst)
        try:
            cluster = await self._assign(analyst, database)
            started = time.monotonic()
            given = await work(cluster)
            least = 0.0
            return given
        except (Unanswered, TimeoutError, OSError) as error:
            why = _why(error)
            if why == "gone" and cluster is not None:
                cluster.mark_broken()
            raise self._complaint(why) from None
        except WireError as error:
            if any(each in error.message for each in _GUARDED):
                raise self._guard_error(analyst) from None
            raise
        finally:
            if cluster is None or (cluster.is_clean and cluster.alive):
                self._leave(analyst, started, least)
            else:
                self._begin(self._clear(cluster, analyst, started))

    def _leave(self, analyst: str, started: float, least: float) -> None:
        self._busy.discard(analyst)
        self._queue.leave(analyst, max(time.monotonic() - started, least))

    async def _clear(self, cluster: CatalogCluster, analyst: str, started: float) -> None:
        """End what an interrupted statement still does; only then may the analyst's next one run."""
        try:
            await cluster.drop_backend()
            if not cluster.alive and self._clusters.get(analyst) is cluster:
                del self._clusters[analyst]
                await cluster.stop()
        finally:
            self._leave(analyst, started, _FAILED)

    async def _assign(self, analyst: str, database: str) -> CatalogCluster:
        """The analyst's PostgreSQL, called as they call it; one that was kept ready where there is none."""
        found = self._clusters.get(analyst)
        if found is None or not found.alive:
            if found is not None:
                _log.warning("a PostgreSQL of the catalog ended, and another takes its place")
                del self._clusters[analyst]
                self._begin(found.stop())
            access = self._policy.asked_by(analyst).access
            found = await (self._take() if access is None else self._start_restricted(access))
            self._clusters[analyst] = found
            self._evict()
        self._clusters.move_to_end(analyst)
        try:
            await found.assign(analyst, database)
        except BaseException:
            found.mark_broken()  # it may have one name or the other
            raise
        return found

    async def _take(self) -> CatalogCluster:
        """The one that is ready, or the first that will be; and begin to make another."""
        if self._closed:
            raise WireError(INTERNAL, "the server is stopping", "connect again in a moment")
        taken = self._spare or self._begin(self._start(None))
        self._spare = None
        try:
            found = await asyncio.shield(taken)
        except asyncio.CancelledError:
            if not taken.done():
                self._spare = self._spare or taken  # whoever comes next has it
            elif not taken.cancelled() and taken.exception() is None:
                self._begin(taken.result().stop())
            raise
        except (OSError, ValueError, TemplateError, Unanswered) as error:
            raise _start_error(error) from None
        if self._spare is None and not self._closed:
            self._spare = self._begin(self._start(None))
        if not found.alive:  # it was ended while it waited
            self._begin(found.stop())
            return await self._take()
        return found

    async def _start_restricted(self, access: TableAccess) -> CatalogCluster:
        """A PostgreSQL with what an analyst may name, started for them."""
        if self._closed:
            raise WireError(INTERNAL, "the server is stopping", "connect again in a moment")
        started = self._begin(self._start(access))
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            self._begin(_stop_started(started))
            raise
        except (OSError, ValueError, TemplateError, Unanswered) as error:
            raise _start_error(error) from None

    def _evict(self) -> None:
        """End the PostgreSQL that was not used for longest, where there are too many."""
        for analyst in list(self._clusters):
            if len(self._clusters) <= self._most:
                return
            if analyst not in self._busy:
                self._begin(self._clusters.pop(analyst).stop())

    async def _start(self, access: TableAccess | None) -> CatalogCluster:
        made = self._templates.get(access)
        if made is None or (made.done() and made.exception() is not None):
            made = self._templates[access] = self._begin(asyncio.to_thread(self._prepare, access))
        programs, template = await asyncio.shield(made)
        assert self._place is not None
        try:
            return await CatalogCluster.start(programs, template, self._place / str(next(self._numbers)), self._limits)
        except (OSError, Unanswered):
            self._templates.pop(access, None)  # whatever is wrong with it, the next one is made anew
            await asyncio.to_thread(shutil.rmtree, template, ignore_errors=True)
            raise

    def _prepare(self, access: TableAccess | None) -> tuple[Programs, Path]:
        """The programs where they can be run, and the template with what may be named."""
        assert self._programs is not None
        with self._preparing:
            if self._place is None:
                self._place = Path(tempfile.mkdtemp(prefix="tacit-catalog-"))
                self._programs.account.give(self._place)
            programs = self._programs.reachable(self._place)
            policy = self._policy if access is None else self._policy.restrict(access)
            place = self._place / ("template" if access is None else f"template-{next(self._numbers)}")
            return programs, make_template(programs, policy, place, cache_folder())

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it is told to whoever waits; nobody may

    def _guard_error(self, analyst: str) -> WireError:
        """What is said of a statement that would read an empty table."""
        example = f"SELECT COUNT(*) FROM {quote_name(self._policy.asked_by(analyst).tables[0].name)}"
        hint = f"name tables of the policy after FROM or JOIN, and none of the catalog beside them: {example}"
        return unsupported_error("a table of the policy in a statement about the catalog", hint)

    def _complaint(self, why: str) -> WireError:
        limits = self._limits
        match why:
            case "time":
                return WireError(CANCELED, f"the catalog was searched for more than {limits.seconds:g} seconds", HINT)
            case "rows":
                return WireError(UNSUPPORTED, f"the catalog shows {limits.rows:,} rows at most", "add LIMIT 1000")
            case "bytes":
                what = f"the catalog shows {limits.bytes // 1_000_000:,} MB at most"
                return WireError(UNSUPPORTED, what, "choose fewer columns, or add LIMIT 1000")
        return WireError(CANCELED, "the catalog's PostgreSQL ended; it is started again", "send the statement again")


def _start_error(error: Exception) -> WireError:
    _log.error("the catalog's PostgreSQL does not start: %s", type(error).__name__)
    return WireError(INTERNAL, "the catalog does not start", "tell the data owner")


async def _stop_started(started: asyncio.Task[CatalogCluster]) -> None:
    """End a PostgreSQL that nobody waits for any more, as soon as it has started."""
    with suppress(OSError, ValueError, TemplateError, Unanswered):
        await (await started).stop()


def _why(error: Unanswered | OSError) -> str:
    if isinstance(error, Unanswered):
        return error.why
    return "time" if isinstance(error, TimeoutError) else "gone"


def _install() -> str:
    return install_command(EXTRA)
