"""An engine that a test holds up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


class OneLayout:
    """Every table lies in one way, whatever its size."""

    def __init__(self, layout: CopyLayout) -> None:
        self._layout = layout

    def find(self, table: str, *, is_ready: bool) -> CopyLayout:
        return self._layout
