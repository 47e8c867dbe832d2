"""A curator that is served, and what belongs to its epoch and to no other: plans, answers, and a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from tacit.curator.curator import Curator
from tacit.plan.planner import Planner
from tacit.serve.cache import AnswerCache, RepeatWriter
from tacit.serve.long_questions import LongQuestions

_LOOK = 0.05  # seconds between two looks whether anything still runs


class OpenEpoch:
    """One epoch of the data, while it is served.

    **Theorem.** A question is planned, charged, computed and stored in one epoch. Proof: whoever works on a question
    takes the curator, the planner and the cache from one object of this kind. The epoch is part of the key by which the
    ledger knows a question, so no claim is answered in another epoch; and an epoch that is left is closed only when
    nobody works in it.
    """

    def __init__(
        self, curator: Curator, planner: Planner, *, most_repeats: int, repeats_of_one: int, owned: bool
    ) -> None:
        self.curator = curator
        self.planner = planner
        self.answers = AnswerCache()
        self.long_questions = LongQuestions(curator)
        self.repeat_writer = RepeatWriter(curator.ledger, most=most_repeats, share=repeats_of_one)
        self._owned = owned
        self._users = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """While someone works in it, on the event loop."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    def use(self, loop: asyncio.AbstractEventLoop) -> Callable[[Future[Any]], None]:
        """Begin some work in a thread; return what is to be called when its future is done, in whatever thread."""
        self._users += 1

        def end(_: Future[Any]) -> None:
            self._users -= 1

        def finish(future: Future[Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(end, future)

        return finish

    async def retire(self) -> None:
        """Wait until nobody works in it, and close it."""
        while self._users:
            await asyncio.sleep(_LOOK)
        await self.repeat_writer.empty(_LOOK)
        self.long_questions.close()
        self.curator.close()

    def close(self) -> None:
        """End its process, and close its curator where it was opened for the service."""
        self.long_questions.close()
        if self._owned:
            self.curator.close()
