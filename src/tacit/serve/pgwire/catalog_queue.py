"""A round-robin queue of catalog statements: one statement of each analyst runs at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from tacit.serve.pgwire.sqlstate import CONNECTIONS, WireError
from tacit.serve.pgwire.throttle import Throttle

MOST_WAITING = 64  # statements of one analyst


class FairQueue:
    """At most `running` statements at a time, at most one of each analyst; analysts who wait are served round robin.

    `share` is the part of one processor that an analyst may use in the long run, and `burst` the seconds of CPU time
    that may be used before that is asked for. **Theorem.** A statement waits for at most one statement of each other
    analyst before each of its own analyst's statements that came earlier, and for the delays of its own analyst. Proof:
    whoever is served goes behind all who wait, and whoever must wait for their own share is passed over.
    """

    def __init__(self, running: int, share: float, burst: float) -> None:
        self._most = running
        self._used = Throttle(share, burst)
        self._running: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, analyst: str) -> None:
        """Wait until a statement may run. Each `enter` needs a `leave`."""
        own = self._waiting.setdefault(analyst, deque())
        if len(own) >= MOST_WAITING:
            what = f"{analyst} has {MOST_WAITING} catalog queries waiting already"
            raise WireError(CONNECTIONS, f"refused [busy]: {what}", "wait for one of them")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn in own:
                own.remove(turn)
            if turn.done() and not turn.cancelled():
                self.leave(analyst, 0.0)  # the turn came together with the cancellation
            raise

    def leave(self, analyst: str, seconds: float) -> None:
        """A statement has ended, after so many seconds of CPU time."""
        self._used.delay(analyst, seconds)
        self._running.discard(analyst)
        self._next()

    def _next(self) -> None:
        """Let in whoever can be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        delays = []
        for analyst in list(self._waiting):
            own = self._waiting[analyst]
            if not own:
                del self._waiting[analyst]
                continue
            if analyst in self._running or len(self._running) >= self._most:
                continue
            delay = self._used.wait(analyst)
            if delay > 0:
                delays.append(delay)
                continue
            turn = own.popleft()
            if turn.done():
                continue
            turn.set_result(None)
            self._running.add(analyst)
            if own:
                self._waiting.move_to_end(analyst)
            else:
                del self._waiting[analyst]
        if delays and len(self._running) < self._most:
            self._timer = asyncio.get_running_loop().call_later(min(delays), self._next)
