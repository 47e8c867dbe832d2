"""Engines that tests hold up, or share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.counts import FULL

from tacit.engines.copy_tables import OpenTables
from tacit.engines.layout import CopyLayout


@contextmanager
def halted(curator: Any) -> Iterator[threading.Semaphore]:
    """The engine waits while the block lasts; yields how many questions it holds."""
    gate, entered, run = threading.Event(), threading.Semaphore(0), curator.engine.run

    def waits(aggregation: Any) -> Any:
        entered.release()
        gate.wait(20)
        return run(aggregation)

    curator.engine.run = waits
    try:
        yield entered
    finally:
        gate.set()
        curator.engine.run = run


async def reached(entered: threading.Semaphore, count: int) -> None:
    """Wait until the engine holds so many more questions."""
    for _ in range(count):
        await asyncio.get_running_loop().run_in_executor(None, entered.acquire)


class LentEngine:
    """An engine that others use too: closing it does nothing."""

    def __init__(self, engine: Any) -> None:
        self.run = engine.run

    def close(self) -> None:
        """Leave it open."""


@contextmanager
def lent_engines(open_engine: Callable[[Any, Any], Any]) -> Iterator[Callable[[Any, Any], Any]]:
    """Opens engines over databases of a policy; by default equal databases are opened once while the block lasts."""
    made: dict[str, Any] = {}

    def find(policy: Any, database: Any) -> Any:
        if FULL:
            return open_engine(policy, database)
        key = repr(database)
        if key not in made:
            made[key] = open_engine(policy, database)
        return LentEngine(made[key])

    try:
        yield find
    finally:
        for engine in made.values():
            engine.close()


class OneLayout:
    """Every table lies in one way, whatever its size."""

    def __init__(self, layout: CopyLayout) -> None:
        self._layout = layout

    def find(self, table: str, *, is_ready: bool) -> CopyLayout:
        return self._layout


class EndlessTables:
    """The tables of a copy, each of its rows ten billion times: hours of work for any question that reads rows."""

    def __init__(self, tables: OpenTables) -> None:
        self._tables = tables
        self.sources = {name: _repeat(source) for name, source in tables.sources.items()}
        self.layouts, self.texts = tables.layouts, tables.texts

    def read(self, table: str, needed: Collection[str] | None = None) -> str:
        return _repeat(self._tables.read(table, needed))


def _repeat(source: str) -> str:
    return f"(SELECT one.* FROM (SELECT * FROM {source} LIMIT 1) AS one, range(10000000000))"
