"""A cache of answers, and the queue in which their repeats are looked up on the ledger.

A repeat reads no data, so it waits for no question that does. The ledger says whether it was paid for, and nothing is
written; those that come while the ledger is busy go together.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from tacit.accounting.receipt import Receipt
from tacit.answers.answer import Answer
from tacit.answers.columns import Estimate
from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import ChargeRequest, Reservation
from tacit.ledger.ledger import Ledger
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.question import Question

T = TypeVar("T")

_CELLS = 200_000  # of all answers that are kept: some tens of megabytes
_LARGEST = 5_000  # cells of an answer worth keeping
_LONGEST = 5_000  # characters of a question worth keeping
_OVERHEAD = 20  # cells that any answer counts for at least


class CachedAnswer:
    """An answer that an analyst was shown, with the question that the ledger knows it by, and what was made of it."""

    def __init__(self, analyst: str, plan: AnyPlan, answer: Answer, ledger: Ledger) -> None:
        self.analyst = analyst
        self.answer = answer
        self.plan = plan
        self._ledger = ledger
        self._made: dict[Hashable, Any] = {}

    @cached_property
    def request(self) -> ChargeRequest:
        """The question, as the ledger sees it."""
        return self._ledger.describe_request(self.analyst, self.plan.loss, self.plan.key, delta=self.plan.delta)

    @property
    def weight(self) -> int:
        """How many cells it has, and something for the rest of it."""
        return _OVERHEAD + len(self.answer) * len(self.answer.headings)

    def memoize(self, name: Hashable, work: Callable[[], T]) -> T:
        """What `work` makes of the answer, made once. It must not depend on the receipt."""
        if name not in self._made:
            self._made[name] = work()
        return cast("T", self._made[name])


class RepeatedAnswer(Answer):
    """A kept answer under the receipt of a repeat."""

    def __init__(self, kept: CachedAnswer, receipt: Receipt) -> None:
        vars(self).update(vars(kept.answer))
        self.receipt = receipt
        self.kept = kept

    def cells(self) -> list[tuple[Estimate, ...]]:
        """The rows as cells with their intervals."""
        return list(self.kept.memoize("cells", self.kept.answer.cells))


def compute_once(answer: Answer, name: Hashable, work: Callable[[], T]) -> T:
    """What `work` makes of an answer, whatever its receipt: made once for all repeats of it."""
    return answer.kept.memoize(name, work) if isinstance(answer, RepeatedAnswer) else work()


class AnswerCache:
    """The answers shown last, by analyst, question and epsilon.

    **Theorem.** What is found here is what `ask` would show, but for the receipt. Proof: it is what `ask` showed to the
    same analyst for the same text, epsilon and confidence under the same policy. Its plan is a function of these, so is
    the question that the ledger knows it by, and that has one answer for ever (`Ledger`); post-processing is a function
    of the answer, the plan and the confidence.
    """

    def __init__(self, cells: int = _CELLS) -> None:
        self._most = cells
        self._cells = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, CachedAnswer] = OrderedDict()

    def find(self, analyst: str, question: Question) -> CachedAnswer | None:
        """The answer to a question that is kept for an analyst."""
        if question.key is None:
            return None
        key = (analyst, question.key)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, question: Question, kept: CachedAnswer) -> None:
        """Cache an answer, and evict those that were unused for longest."""
        if question.key is None or len(question.sql) > _LONGEST or kept.weight > _LARGEST:
            return
        key = (kept.analyst, question.key)
        with self._lock:
            before = self._kept.pop(key, None)
            self._cells += kept.weight - (before.weight if before is not None else 0)
            self._kept[key] = kept
            while self._cells > self._most:
                self._cells -= self._kept.popitem(last=False)[1].weight


class RepeatWriter:
    """Looks repeats up on the ledger, one thread for all: those that wait go together in one transaction.

    At most `most` wait, and no more than `share` of one person; the next one is refused as busy.
    """

    def __init__(self, ledger: Ledger, *, most: int, share: int) -> None:
        self.closed = False
        self._ledger = ledger
        self._most = most
        self._share = share
        self._ready = threading.Condition()
        self._waiting: list[_PendingRepeat] = []
        self._inside: Counter[str] = Counter()
        self._thread: threading.Thread | None = None

    async def claim(self, kept: CachedAnswer) -> Reservation | None:
        """The claim on an answer again; None where the ledger does not have it as paid and answered."""
        wait = _PendingRepeat(kept, asyncio.get_running_loop())
        with self._ready:
            if self.closed:
                raise Refused(
                    ErrorCode.BUSY, "the server is stopping", fix="ask again in a moment; nothing was charged"
                )
            if len(self._inside) and (self._inside.total() >= self._most or self._inside[kept.analyst] >= self._share):
                raise Refused(ErrorCode.BUSY, "too many questions wait already", fix="ask again in a moment")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tacit-again", daemon=True)
                self._thread.start()
            self._inside[kept.analyst] += 1
            self._waiting.append(wait)
            self._ready.notify()
        try:
            return await wait.future
        finally:
            with self._ready:
                self._inside[kept.analyst] -= 1
                if not self._inside[kept.analyst]:
                    del self._inside[kept.analyst]

    async def empty(self, patience: float) -> None:
        """Let the thread end, and wait for those that are inside."""
        self.closed = True
        with self._ready:
            self._ready.notify()
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join, patience)

    def _work(self) -> None:
        while self._any():
            some: list[_PendingRepeat] = []
            claims: list[Reservation | None] | Exception
            try:
                claims = self._ledger.repeats(partial(self._list_requests, some))
            except Exception as error:  # noqa: BLE001 - whoever waits raises it
                self._gather(some)
                claims = error
            with contextlib.suppress(RuntimeError):  # a loop that is closed, with nobody waiting
                some[0].loop.call_soon_threadsafe(_resolve, some, claims)

    def _list_requests(self, some: list[_PendingRepeat]) -> list[ChargeRequest]:
        return [each.kept.request for each in self._gather(some)]

    def _gather(self, some: list[_PendingRepeat]) -> list[_PendingRepeat]:
        """These, and whoever came since."""
        with self._ready:
            some += self._waiting
            self._waiting.clear()
        return some

    def _any(self) -> bool:
        """Whether anyone waits, as soon as there is someone; no once it is closed."""
        with self._ready:
            while not self._waiting and not self.closed:
                self._ready.wait()
            return bool(self._waiting)


class _PendingRepeat:
    """Someone who waits for a claim."""

    def __init__(self, kept: CachedAnswer, loop: asyncio.AbstractEventLoop) -> None:
        self.kept = kept
        self.loop = loop
        self.future: asyncio.Future[Reservation | None] = loop.create_future()


def _resolve(some: list[_PendingRepeat], claims: list[Reservation | None] | Exception) -> None:
    for position, each in enumerate(some):
        if each.future.done():  # whoever asked has gone away
            continue
        if isinstance(claims, Exception):
            each.future.set_exception(claims)
        else:
            each.future.set_result(claims[position])
