"""The curator as a service: admission control, a bounded queue, caches, and threads that run the questions.

HTTP and the PostgreSQL wire share one service. Questions run in threads of their own, so the event loop never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.answer import Answer
from tacit.answers.explanation import Explanation
from tacit.answers.post_process import post_process
from tacit.answers.schema import Schema
from tacit.curator.admission import explain_question
from tacit.curator.ask import add_first_step, answer, can_list, release, settle_clip
from tacit.curator.curator import Curator
from tacit.curator.fit import Hold
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.plan.compound_plan import AnyPlan
from tacit.plan.explain import explain
from tacit.plan.planner import KEY_VERSION, Planner, Plans, make_plans
from tacit.plan.question import Question
from tacit.policy.model import Policy
from tacit.serve.background import BackgroundProcess, ProcessClosed
from tacit.serve.cache import CachedAnswer, RepeatedAnswer
from tacit.serve.fit_requests import MAX_FIT_ROWS, warn_of_rows
from tacit.serve.limits import RateLimiter
from tacit.serve.open_epoch import OpenEpoch
from tacit.serve.scheduler import Scheduler, stopping
from tacit.serve.start_limiter import StartLimiter
from tacit.serve.timing import SMALLEST_BUCKET, delay_to_bucket, round_up_to_bucket

T = TypeVar("T")

_REPEATS_PER_SLOT = 16  # repeats that may wait for each question that may: they are quick
MAX_CELLS = 100_000  # values that a question may release or show: some seconds of work
MAX_ENGINE_SECONDS = 300.0  # that the engine may work on a question
_SHORT = 2_000  # cells of a question that is soon done; a longer one does not keep others from starting
_MANY = 25_000  # cells of a question that runs in a process of its own: more than two columns with private keys
_LONG = 2_000  # characters of a question that takes long to plan
_FREE_WORKERS = 2  # threads for what is free, so that it never waits behind a long question


class CuratorService:
    """Takes questions for a curator.

    At most `workers` questions run at a time, few of them in their first moments (`StartLimiter`), and at most `seats`
    run or wait, those that wait for the edge of a step among them; no one analyst has more than a quarter of these
    places, nor more of the workers than `Scheduler` gives them. What does not fit is refused as busy at once, before
    anything is charged. Repeats of answers that are kept have a queue of their own. `rate` is how many requests a
    second each person may make, after a burst of twice as many. `first` is the first step of the times of runs, in
    seconds; 0 turns the steps off.

    **A question's work is bounded by public numbers before it is charged**: `cells` is the most values that it may
    release or show, groups by columns. `limit` is the most seconds that the engine may work on it. Whether that is
    reached may depend on rows, so a question that reaches it has failed: the charge stays.

    **Theorem.** Whatever is cut off by a cancellation, a stop or a kill costs at most what its question costs, and
    asking it again goes on with the same charge. Proof: a question that waits for a thread has charged nothing, and one
    that runs is charged by `Ledger.reserve`, which promises it. Over live tables a question that is cut off while it
    runs has failed, and its tables are locked (`ledger/table_locks.py`).
    """

    def __init__(
        self,
        curator: Curator,
        *,
        workers: int = 4,
        seats: int = 64,
        rate: float = 50.0,
        first: float = SMALLEST_BUCKET,
        cells: int = MAX_CELLS,
        fit_rows: int = MAX_FIT_ROWS,
        limit: float = MAX_ENGINE_SECONDS,
    ) -> None:
        if workers < 1 or seats < workers:
            fix = "choose at least one worker, and at least as many seats"
            what = f"must be from 1 to the number of seats, got {workers} workers and {seats} seats"
            raise ParameterError("workers", what, fix=fix)
        self.workers = workers
        self._first = first
        self._cells = cells
        self.fit_rows = fit_rows
        self._limit = limit
        self._seats = seats
        self._background = BackgroundProcess()
        self._epoch = self._open_epoch(curator, owned=False)
        self._retiring: dict[asyncio.Task[None], OpenEpoch] = {}
        self._start_limiter = StartLimiter()
        self._rate = RateLimiter(rate, max(1, int(2 * rate)))
        self._asking = _WorkerPool(workers, seats, "ask")
        self._looking = _WorkerPool(_FREE_WORKERS, seats, "look")
        self._writing = _WorkerPool(_FREE_WORKERS, _REPEATS_PER_SLOT * seats, "write")

    @property
    def curator(self) -> Curator:
        """Who answers now."""
        return self._epoch.curator

    @property
    def planner(self) -> Planner:
        """Who plans now."""
        return self._epoch.planner

    @property
    def policy(self) -> Policy:
        """The policy under which is asked."""
        return self.curator.policy

    @property
    def rate(self) -> float:
        """How many requests a second each person may make."""
        return self._rate.per_second

    @property
    def in_use(self) -> int:
        """How many questions are inside, running or waiting."""
        return self._asking.in_use

    async def ask(self, analyst: str, question: Question) -> Answer:
        """The private answer, as `DeclaredAnalyst.ask` gives it; Refused where it is busy or too often.

        What a run over data found is written down, kept and shown from a step of time after the run began, and so is a
        failure (`delay_to_bucket`); a repeat of what is kept here reads no data and comes at once. A caller who goes
        away does not stop a question that runs: its answer is kept for the next time.
        """
        self.admit(analyst)
        self.curator.analyst(analyst)
        epoch = self._epoch
        curator = epoch.curator
        kept = epoch.answers.find(analyst, question) if not question.request else None

        def first() -> Answer:
            plan = epoch.planner.plan(question, analyst)

            def run_here(each: AnyPlan) -> bytes:
                return release(each, curator.engine, curator.bits, self._limit)

            run: Callable[[AnyPlan], bytes] = run_here
            show: Callable[..., Answer] = post_process
            if plan.cells > _MANY and epoch.long_questions.is_open():
                run = partial(epoch.long_questions.release, seconds=self._limit)
                show = partial(self._background.call, post_process)

            def hold_run(each: AnyPlan) -> bytes:
                return self._hold(partial(run, each))

            with self._start_limiter if plan.cells <= _SHORT else nullcontext():
                if self._asking.is_closed:
                    raise stopping()
                try:
                    plan = settle_clip(question, plan, analyst, curator, hold_run)
                    found = answer(question, plan, analyst, curator, hold_run, show)
                except ProcessClosed:
                    raise stopping("it goes on with the same charge") from None
                epoch.answers.keep(question, CachedAnswer(analyst, plan, found, curator.ledger))
                return found

        with epoch.enter():
            claim = None if kept is None else await epoch.repeat_writer.claim(kept)
            if kept is not None and claim is not None:
                return RepeatedAnswer(kept, add_first_step(claim.receipt, kept.plan, is_repeat=True))
            return await self._asking.run(analyst, first, epoch)

    def knows(self, analyst: str, question: Question) -> bool:
        """Whether the answer to this question is kept here, for this analyst. It takes no time to speak of."""
        return self._epoch.answers.find(analyst, question) is not None

    async def explain(self, analyst: str, question: Question) -> Explanation:
        """What would be done and what it would cost. Free."""
        self.admit(analyst)
        self.curator.analyst(analyst)

        epoch = self._epoch

        def look() -> Explanation:
            plan = epoch.planner.plan(question, analyst)
            tell = partial(self._background.call, explain) if _is_long(question) else explain
            return explain_question(question, plan, analyst, epoch.curator, tell)

        return await self._looking.run(analyst, look, epoch)

    async def plan(self, analyst: str, question: Question) -> AnyPlan:
        """The plan of a question: its columns and their types before it is asked. Free."""
        self.admit(analyst)
        self.curator.analyst(analyst)
        epoch = self._epoch
        kept = epoch.answers.find(analyst, question)
        if kept is not None:
            return kept.plan
        return await self._looking.run(analyst, lambda: epoch.planner.plan(question, analyst), epoch)

    async def fit(self, analyst: str, work: Callable[[Curator, Hold], T]) -> T:
        """Run the fit of a model, in a place of a question.

        `work` hands what reads data to the second function it is given, which holds it to a step of time.
        """
        self.admit(analyst)
        self.curator.analyst(analyst)
        epoch = self._epoch

        def run() -> T:
            if self._asking.is_closed:
                raise stopping()
            return work(epoch.curator, self._hold)

        with epoch.enter():
            return await self._asking.run(analyst, run, epoch)

    async def budget(self, analyst: str) -> AnalystBudget:
        """What is spent and what is left."""
        self.admit(analyst)
        account = self.curator.analyst(analyst)
        return await self._looking.run(analyst, lambda: account.budget, self._epoch)

    def schema(self, analyst: str | None = None) -> Schema:
        """What an analyst may ask about; all that the policy declares where None, as for the owner and auditors."""
        return self.curator.schema() if analyst is None else self.curator.analyst(analyst).schema

    async def look(self, analyst: str, work: Callable[[], T]) -> T:
        """Run something free and short in a thread, as one of the requests of this person."""
        self.admit(analyst)
        return await self._looking.run(analyst, work, self._epoch)

    async def write(
        self, analyst: str, function: Callable[..., T], *arguments: object, in_background: bool = False
    ) -> T:
        """Write out a long answer in a thread, fairly among analysts, as part of a request that was admitted.

        A very long one is written in the background process. Where an analyst has too many of these waiting it is
        refused as busy; asking again is then a free repeat.
        """
        call = partial(self._background.call, function) if in_background else function
        return await self._writing.run(analyst, lambda: call(*arguments), self._epoch)

    def replace(self, curator: Curator) -> None:
        """Go over to another epoch of the same policy, for all that is asked from now on.

        What runs goes on in the epoch in which it began. That is closed with its curator when nothing runs in it.
        """
        left, self._epoch = self._epoch, self._open_epoch(curator, owned=True)
        task = asyncio.get_running_loop().create_task(left.retire())
        self._retiring[task] = left
        task.add_done_callback(self._retiring.pop)

    async def close(self, patience: float = 10.0) -> None:
        """Take no more questions and wait for those that run. `taken` says how many are still there after that.

        Whoever waits for a thread is refused as busy; nothing was charged. The curator stays open that the service was
        made with.
        """
        epochs = [self._epoch, *self._retiring.values()]
        for epoch in epochs:
            epoch.repeat_writer.closed = True
        emptied = [pool.empty(patience) for pool in (self._asking, self._looking)]
        await asyncio.gather(*emptied, *(epoch.repeat_writer.empty(patience) for epoch in epochs))
        await self._writing.empty(patience)  # last, because it writes what the others found
        self._background.close()
        for task in list(self._retiring):
            task.cancel()
        for epoch in epochs:
            epoch.close()

    def _hold(self, run: Callable[[], bytes]) -> bytes:
        return delay_to_bucket(run, self._first, self._asking.pause)

    def _open_epoch(self, curator: Curator, *, owned: bool) -> OpenEpoch:
        warn_of_rows(curator, self.fit_rows)
        curator.ledger.outlast(round_up_to_bucket(self._limit, self._first) if self._first > 0 else self._limit)
        planner = Planner(
            curator.policy,
            knows_only=curator.ledger.former_lookup(KEY_VERSION),
            can_list=lambda read: can_list(read, curator.engine),
            most_cells=self._cells,
            make=self._make_plans,
        )
        share = max(1, self._seats // 4)
        return OpenEpoch(
            curator, planner, most_repeats=_REPEATS_PER_SLOT * self._seats, repeats_of_one=share, owned=owned
        )

    def _make_plans(self, question: Question, policy: Policy, most_cells: int | None, has_former: bool) -> Plans:
        """Plan a question; one with a long text in the background."""
        if _is_long(question):
            return self._background.call(make_plans, question, policy, most_cells, has_former)
        return make_plans(question, policy, most_cells, has_former)

    def admit(self, analyst: str) -> None:
        """Count a request of this person, or refuse it where there are too many."""
        seconds = self._rate.take(analyst)
        if seconds > 0:
            what = f"{analyst} sent more than {self._rate.per_second:g} requests a second"
            raise Refused(ErrorCode.RATE, what, fix=f"wait {seconds:.1f} seconds", retry_after=seconds)


def _is_long(question: Question) -> bool:
    return len(question.sql) > _LONG


class _WorkerPool:
    """A scheduler for callers on the event loop."""

    def __init__(self, workers: int, seats: int, name: str) -> None:
        self._scheduler = Scheduler(workers, seats, name)

    @property
    def is_closed(self) -> bool:
        return self._scheduler.closed

    @property
    def in_use(self) -> int:
        return self._scheduler.in_use

    def pause(self, seconds: float) -> None:
        """Let the work of this thread wait, and others run meanwhile."""
        self._scheduler.pause(seconds)

    async def run(self, analyst: str, work: Callable[[], T], epoch: OpenEpoch) -> T:
        """Run it in a thread; its place is free again when it is done, whether or not anyone still waits for it."""
        future = self._scheduler.submit(analyst, work)
        future.add_done_callback(epoch.use(asyncio.get_running_loop()))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if future.cancelled() and self.is_closed:
                raise stopping() from None
            raise

    async def empty(self, patience: float) -> None:
        """Turn away whoever waits, and wait for the others."""
        left = self._scheduler.close()
        if left:
            await asyncio.get_running_loop().run_in_executor(None, wait, left, patience)
