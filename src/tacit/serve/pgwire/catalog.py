"""The catalog: PostgreSQL's tables about the policy's tables, and none of their rows.

Everything in it follows from the policy, which is public, so what clients find out here is free. Queries of it run
outside of this process, in ones that hold nothing else (`catalog_worker`): whatever a query does, it does there.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import re
from importlib import resources
from itertools import islice
from typing import Any, Protocol

from tacit.policy.model import Column, Policy, Type
from tacit.query.timestamps import to_datetime
from tacit.query.types import NUMERIC_TYPES
from tacit.serve.pgwire.catalog_process import CatalogProcess, Limits, Unanswered
from tacit.serve.pgwire.catalog_queries import ECHO_SUFFIX, HINT, CatalogNames, rewrite_query
from tacit.serve.pgwire.catalog_queue import FairQueue
from tacit.serve.pgwire.protocol import WireColumn
from tacit.serve.pgwire.results import Rows, make_column
from tacit.serve.pgwire.settings import SessionSettings
from tacit.serve.pgwire.sqlstate import CANCELED, CONNECTIONS, INTERNAL, NO_MEMORY, UNSUPPORTED, WireError
from tacit.serve.pgwire.types import duckdb_type_oid, size_of, type_oid

_log = logging.getLogger("tacit.serve")

FIRST = 16384  # the first OID of a table
_OWN = 12000  # and of one of the catalog, but for those that clients know by heart
_KNOWN = {"pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262}
_KNOWN |= {"pg_constraint": 2606, "pg_namespace": 2615}
_RUNNING = 3  # queries at a time, one of each analyst
_SHARE, _BURST = 0.25, 4.0  # of a processor for each analyst in the long run, and seconds of it at once
_SHOWN_KEYS = 8
_COLLATED = 100
_GRANTED = ["=r/owner"]  # everybody who is let in may SELECT, by the owner's grant
_CALL = re.compile(r"(?:\w+\.)?(\w+)\(.*\)$", re.DOTALL)
_UNNAMED = re.compile(r"['(0-9-]|CAST\(|NULL$")


class CatalogRunner(Protocol):
    """What answers catalog queries."""

    async def names(self) -> CatalogNames:
        """What a query may name, for nobody in particular."""
        ...

    def prepare(self, text: str, names: CatalogNames) -> str:
        """The query as the runner's engine reads it, for the session that `names` tells of. Safe from any thread."""
        ...

    async def run(self, statement: str, names: CatalogNames) -> tuple[tuple[WireColumn, ...], Rows]:
        """The columns and rows of a prepared query, or a Complaint."""
        ...

    def warm(self) -> None:
        """Begin to get ready."""
        ...

    async def close(self) -> None:
        """End everything that runs."""
        ...


class Catalog:
    """Answers catalog queries in processes of their own, each held to `limits`.

    Analysts take turns, one query of each at a time, and `share` of a processor for each in the long run.
    """

    def __init__(
        self, policy: Policy, limits: Limits | None = None, *, share: float = _SHARE, burst: float = _BURST
    ) -> None:
        self._policy = policy
        self._limits = limits or Limits()
        self._queue = FairQueue(_RUNNING, share, burst)
        self._starting = asyncio.Lock()
        self._process: CatalogProcess | None = None
        self._known: tuple[CatalogProcess, CatalogNames] | None = None
        self._warming: asyncio.Task[Any] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process that the processes of queries are copies of, where it runs."""
        return self._process.pid if self._process is not None and self._process.alive else None

    def warm(self) -> None:
        """Start the process, and wait for nothing."""
        self._warming = asyncio.create_task(self._warm())

    async def _warm(self) -> None:
        with contextlib.suppress(WireError):  # it is in the log, and the next query tries again
            await self._running()

    async def names(self) -> CatalogNames:
        """What a query may name."""
        process = await self._running()
        if self._known is None or self._known[0] is not process:
            self._known = process, _names(process.names, self._policy)
        return self._known[1]

    def prepare(self, text: str, names: CatalogNames) -> str:
        """The query for the engine; an error for whatever it may not name."""
        return rewrite_query(text, names)

    async def run(self, statement: str, names: CatalogNames) -> tuple[tuple[WireColumn, ...], Rows]:
        """The columns and rows of a query, or an error."""
        request = {"statement": statement, "database": names.database, "user": names.user}
        await self._queue.enter(names.user)
        try:
            process = await self._running()
        except BaseException:
            self._queue.leave(names.user, 0.0)
            raise
        try:
            table = await process.run(request, self._limits, lambda seconds: self._queue.leave(names.user, seconds))
        except Unanswered as error:
            raise self._complaint(error.why) from None
        fields = tuple(make_column(_column_name(name), duckdb_type_oid(kind)) for name, kind in table.columns)
        return fields, table.rows

    async def close(self) -> None:
        """End the process, and all that run."""
        self._closed = True
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        if self._process is not None:
            self._process.close()
            await self._process.wait_closed()

    async def _running(self) -> CatalogProcess:
        """The process, started where there is none or where it has ended."""
        if self._process is not None and self._process.alive:
            return self._process
        async with self._starting:
            if self._closed:
                raise WireError(INTERNAL, "the server is stopping", "connect again in a moment")
            if self._process is None or not self._process.alive:
                if self._process is not None:
                    _log.warning("the catalog's process ended, and is started again")
                    await self._process.wait_closed()
                try:
                    self._process = await CatalogProcess.start(_script(), _catalog_rows(self._policy), self._limits)
                except (OSError, ValueError, Unanswered) as error:
                    _log.error("the catalog's process does not start: %s", type(error).__name__)
                    raise WireError(INTERNAL, "the catalog does not start", "tell the data owner") from None
            return self._process

    def _complaint(self, why: str) -> WireError:
        limits = self._limits
        match why:
            case "time":
                what = f"the catalog was searched for more than {limits.cpu:g} seconds"
                return WireError(CANCELED, what, HINT)
            case "memory":
                what = f"the catalog query needs more than {limits.memory // 1_000_000:,} MB of memory"
                return WireError(NO_MEMORY, what, HINT)
            case "rows":
                what = f"the catalog shows {limits.rows:,} rows at most"
                return WireError(UNSUPPORTED, what, "look at less, with LIMIT")
            case "bytes":
                what = f"the catalog shows {limits.bytes // 1_000_000:,} MB at most"
                return WireError(UNSUPPORTED, what, "look at less, with LIMIT")
            case "busy":
                return WireError(CONNECTIONS, "refused [busy]: too many connections are open", "try again in a moment")
            case "query":
                return WireError(UNSUPPORTED, "the catalog cannot answer this", HINT)
        return WireError(CANCELED, "the catalog's process ended; it is started again", "send the query again")


def _names(found: dict[str, Any], policy: Policy) -> CatalogNames:
    relations = frozenset(str(row[0]) for row in found["relations"])
    functions = frozenset(str(row[0]) for row in found["functions"])
    numbers = {str(name): int(oid) for name, oid in found["types"]}
    numbers |= {name: _OWN + index for index, name in enumerate(sorted(relations))} | _KNOWN
    numbers |= {table.name.lower(): FIRST + index for index, table in enumerate(policy.tables)}
    return CatalogNames(relations, functions, numbers)


def _script() -> str:
    return resources.files(__package__).joinpath("shadow.sql").read_text()


def _column_name(heading: str) -> str:
    """A column's name as PostgreSQL has it: that of the function, or ?column? where an expression has none."""
    function = _CALL.match(heading)
    if function is not None:
        return function[1].removesuffix(ECHO_SUFFIX)
    return "?column?" if _UNNAMED.match(heading) else heading


def _catalog_rows(policy: Policy) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of pg_class, pg_attribute and pg_description for the policy's tables, and those of pg_settings."""
    classes: list[tuple[Any, ...]] = []
    attributes: list[tuple[Any, ...]] = []
    descriptions: list[tuple[Any, ...]] = []
    for index, table in enumerate(policy.tables):
        oid, width = FIRST + index, len(table.columns)
        flags = (False, False, "p", "r", width, 0, False, False, False, False, False, True, "d", False)
        classes.append(
            (oid, table.name, 2200, 0, 0, 10, 2, oid, 0, 0, -1.0, 0, 0, *flags, 0, 0, 0, _GRANTED, None, None, 0, 1259)
        )
        said = "public" if table.public else f"private: {table.people or table.name}"
        descriptions.append((oid, 1259, 0, said))
        for number, column in enumerate(table.columns, 1):
            kind = type_oid(column.type)
            text = column.type is Type.TEXT
            start = (oid, column.name, kind, -1, size_of(kind), number, 0, -1, -1, size_of(kind) > 0, "i", "p", "")
            state = (not column.nullable, False, False, "", "", False, True, 0, _COLLATED if text else 0)
            attributes.append((*start, *state, None, None, None, None))
            descriptions.append((oid, 1259, number, describe_column(column)))
    settings = [
        (name, value, None, "", "", None, "user", "string", "default", *[None] * 3, value, value, None, None, False)
        for name, value in SessionSettings().list_settings()
    ]
    return {
        "pg_class": classes,
        "pg_attribute": attributes,
        "pg_description": descriptions,
        "pg_settings": settings,
    }


def describe_column(column: Column) -> str:
    """What is public about a column, in a few words."""
    if column.values is not None:
        more = ", ..." if len(column.values) > _SHOWN_KEYS else ""
        shown = (str(value).lower() if isinstance(value, bool) else str(value) for value in column.values)
        return "keys " + ", ".join(islice(shown, _SHOWN_KEYS)) + more
    if column.lower is None or column.upper is None:
        return "no bounds" if column.type in NUMERIC_TYPES else "keys are private"
    ends = (column.lower, column.upper)
    if column.type is Type.DATE:
        return "from {} to {}".format(*(datetime.date.fromordinal(int(end)) for end in ends))
    if column.type is Type.TIMESTAMP:
        zone = "" if column.zone is None else f", {column.zone}"
        return "from {} to {}".format(*(to_datetime(int(end)) for end in ends)) + zone
    return "from {:g} to {:g}".format(*map(float, ends))
