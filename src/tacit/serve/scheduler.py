"""Threads for work of many analysts: a bounded queue, and a fair choice of who is next.

>>> from concurrent.futures import wait
>>> scheduler = Scheduler(2, 8, "example")
>>> wait([scheduler.submit("ada", lambda: 6 * 7)]).done.pop().result()
42
>>> _ = scheduler.close()
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from tacit.errors import ErrorCode, Refused

T = TypeVar("T")

RECENT = 10.0  # seconds for which an analyst counts as active after the last question
_HALF = 10.0  # seconds in which half of the time that an analyst used is forgotten
_LITTLE = 1e-3  # seconds of use that are not worth remembering


class Scheduler:
    """Runs work in threads, `workers` at a time; at most `places` run, pause or wait, of one analyst a quarter at most.

    **Theorem.** With two workers or more, no analyst alone occupies all of them, and where n analysts are active, one
    has at most max(1, workers // n) of them at a time. Proof: `_next` starts work of an analyst only below `_share`,
    which is at most that and at most workers - 1, and work is started by nothing else. (What was started when fewer
    were active runs to its end.)

    Work that pauses (`pause`) counts for its analyst's share and for no worker: others run meanwhile, and the analyst's
    own next work does not begin any earlier. Work is started only while fewer than `workers` run and do not pause; what
    goes on after a pause goes on at once.

    Among those who wait below their share, the one with the fewest running is next, then the one who used the least
    time of late. An analyst's own work is done in the order in which it came.
    """

    def __init__(self, workers: int, places: int, name: str) -> None:
        self.closed = False
        self._workers = workers
        self._places = places
        self._own_places = max(1, places // 4)
        self._name = name
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[str] = Counter()
        self._inside: Counter[str] = Counter()
        self._futures: set[Future[Any]] = set()
        self._used: dict[str, tuple[float, float]] = {}  # seconds of work, and when there were so many
        self._free = 0  # threads that wait for work
        self._pausing = 0  # threads whose work pauses
        self._stopped = threading.Event()

    @property
    def in_use(self) -> int:
        """How many are inside, running or waiting."""
        with self._changed:
            return self._inside.total()

    def submit(self, holder: str, work: Callable[[], T]) -> Future[T]:
        """Queue some work; Refused as busy where there is no place. A future that is canceled leaves at once."""
        future: Future[T] = Future()
        with self._changed:
            if self.closed:
                raise stopping()
            if self._inside.total() >= self._places:
                raise Refused(ErrorCode.BUSY, "all places are taken", fix="ask again in a moment")
            if self._inside[holder] >= self._own_places:
                what = f"{holder} has {self._own_places} questions waiting already"
                raise Refused(ErrorCode.BUSY, what, fix="wait for one of them")
            self._inside[holder] += 1
            self._futures.add(future)
            self._waiting.setdefault(holder, deque()).append((future, work))
            self._add_thread()
            self._changed.notify()
        future.add_done_callback(lambda done: self._leave(holder, done))
        return future

    def pause(self, seconds: float) -> None:
        """Let the work of this thread wait, and others run meanwhile; it goes on at once where the scheduler closes."""
        with self._changed:
            self._pausing += 1
            self._add_thread()
            self._changed.notify_all()
        try:
            self._stopped.wait(seconds)
        finally:
            with self._changed:
                self._pausing -= 1

    def close(self) -> list[Future[Any]]:
        """Take no more work, cancel what waits, end pauses, and return what still runs."""
        with self._changed:
            self.closed = True
            waiting = [future for queue in self._waiting.values() for future, _ in queue]
            self._changed.notify_all()
        for future in waiting:
            future.cancel()
        self._stopped.set()
        with self._changed:
            return list(self._futures)

    def _add_thread(self) -> None:
        """Start one more thread where work waits that none of them would take."""
        waiting = sum(map(len, self._waiting.values()))
        if waiting > self._free and len(self._threads) < self._workers + self._pausing:
            thread = threading.Thread(target=self._work, name=f"tacit-{self._name}-{len(self._threads)}")
            thread.daemon = True  # a stop waits for them no longer than its patience
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (found := self._next()) is not None:
            holder, future, work = found
            started = time.monotonic()
            try:
                if future.set_running_or_notify_cancel():
                    _run(future, work)
            finally:
                del future, work, found  # so that nothing of an answer stays here
                self._record_end(holder, time.monotonic() - started)

    def _next(self) -> tuple[str, Future[Any], Callable[[], Any]] | None:
        """Wait for the work that is next; None once there will be none."""
        with self._changed:
            while True:
                share = self._share()
                below = [holder for holder, queue in self._waiting.items() if queue and self._running[holder] < share]
                if below and self._running.total() - self._pausing < self._workers:
                    holder = min(below, key=lambda each: (self._running[each], self._recent(each)))
                    future, work = self._waiting[holder].popleft()
                    self._forget(holder)
                    self._running[holder] += 1
                    return holder, future, work
                if self.closed and not any(self._waiting.values()):
                    return None
                self._free += 1
                # A share grows as others fall silent, of which nobody tells.
                self._changed.wait(RECENT / 10 if any(self._waiting.values()) else None)
                self._free -= 1

    def _share(self) -> int:
        """The most that one analyst may have running now."""
        active = set(self._waiting) | set(self._running)
        now = time.monotonic()
        active |= {holder for holder, (_, then) in self._used.items() if now - then < RECENT}
        return max(1, min(self._workers - 1, self._workers // max(1, len(active))))

    def _recent(self, holder: str) -> float:
        """The seconds of work of an analyst, those of long ago counted less."""
        seconds, then = self._used.get(holder, (0.0, 0.0))
        return float(seconds * 0.5 ** ((time.monotonic() - then) / _HALF))

    def _record_end(self, holder: str, seconds: float) -> None:
        with self._changed:
            self._running[holder] -= 1
            if not self._running[holder]:
                del self._running[holder]
            self._used[holder] = (self._recent(holder) + seconds, time.monotonic())
            now = time.monotonic()
            old = [
                each for each, (_, then) in self._used.items() if now - then > RECENT and self._recent(each) < _LITTLE
            ]
            for each in old:
                del self._used[each]
            self._changed.notify_all()

    def _leave(self, holder: str, done: Future[Any]) -> None:
        with self._changed:
            self._futures.discard(done)
            self._inside[holder] -= 1
            if not self._inside[holder]:
                del self._inside[holder]
            if holder in self._waiting:  # it may have been canceled while it waited
                self._waiting[holder] = deque(each for each in self._waiting[holder] if each[0] is not done)
                self._forget(holder)

    def _forget(self, holder: str) -> None:
        if not self._waiting[holder]:
            del self._waiting[holder]


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        found = work()
    except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
        future.set_exception(error)
    else:
        future.set_result(found)


def stopping(charged: str = "nothing was charged") -> Refused:
    """The refusal of a server that stops, which says what became of the charge."""
    return Refused(ErrorCode.BUSY, "the server is stopping", fix=f"ask again in a moment; {charged}")
