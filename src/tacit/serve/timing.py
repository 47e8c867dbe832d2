"""Runs over data in steps of time, so that a clock tells little about the data.

How long a run takes may depend on rows. What anybody can measure is then which step it fell into.

>>> round_up_to_bucket(0.003), round_up_to_bucket(0.02), round_up_to_bucket(0.021), round_up_to_bucket(1.0)
(0.02, 0.02, 0.04, 1.28)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SMALLEST_BUCKET = 0.02  # seconds: above what a short run takes


def round_up_to_bucket(seconds: float, first: float = SMALLEST_BUCKET) -> float:
    """The least of first, 2 first, 4 first, ... that is not below so many seconds."""
    step = first
    while step < seconds:
        step *= 2
    return step


def delay_to_bucket(
    run: Callable[[], T], first: float = SMALLEST_BUCKET, pause: Callable[[float], object] = time.sleep
) -> T:
    """The outcome of a run over data, also a failure, at a step's edge after it began; at once where first = 0.

    A server runs every release so, in the thread of the question, after the charge is on the ledger and before its
    COMMIT or FAIL is. `pause` waits for so many seconds.

    **Claim.** Let a run begin at s and take t seconds, and let e = s + `round_up_to_bucket(t)`. Apart from the load
    that it is while it lasts, whatever an analyst sees of the run is a function of s, e and what was released. Proof.
    Before s the question was planned and charged: s is a function of questions, policy, ledger and load. From s to e
    its thread is in here: nothing is written to the ledger or into the cache of answers, no table is locked, nobody is
    answered, and the place of the question in its analyst's share is taken (`Scheduler.pause`). After e the outcome is
    written, post-processed and shown, which is work on what was released.

    So an edge is what all see: receipts, repeats, others who asked the same and wait for the answer, and the analyst's
    own questions that wait for the place. A refusal is not held. It follows from the question, the policy and the
    ledger, and the ledger changes at edges. A clip and what follows from it are two runs, and each is held.

    **What remains.** Among runs of at most T seconds there are log2(T/first) + 1 steps, so one of them tells at most
    the logarithm of that in bits: five steps up to a third of a second, sixteen up to eleven minutes. A run that takes
    close to an edge can be pushed over it by few rows.

    The load is seen too, and it ends with the run and not at the edge. Questions that run at the same time share cores,
    disks and locks, and very long ones run one after the other in a process of their own. A worker is free for other
    analysts as soon as a run ends: where all workers are busy, a question that waits for one begins at that time. So
    whoever times other questions beside a run, and several analysts together, can measure finer than a step. A stop of
    the server ends all waits at once, which tells that these runs had ended by then. The steps make such a measurement
    rare and coarse. They do not make it impossible.
    """
    started = time.monotonic()
    try:
        return run()
    finally:
        if first > 0:
            passed = time.monotonic() - started
            pause(round_up_to_bucket(passed, first) - passed)
