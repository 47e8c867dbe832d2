"""Response times in steps, so that a clock tells little about the data.

How long a question runs may depend on rows. What an analyst can measure is then which step it fell into.

>>> round_up_to_bucket(0.003), round_up_to_bucket(0.02), round_up_to_bucket(0.021), round_up_to_bucket(1.0)
(0.02, 0.02, 0.04, 1.28)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from tacit.errors import ParameterError, Refused, SecondStepRefused

T = TypeVar("T")

SMALLEST_BUCKET = 0.02  # seconds: above what a short question takes


def round_up_to_bucket(seconds: float, first: float = SMALLEST_BUCKET) -> float:
    """The least of first, 2 first, 4 first, ... that is not below so many seconds."""
    step = first
    while step < seconds:
        step *= 2
    return step


async def delay_to_bucket(work: Awaitable[T], first: float = SMALLEST_BUCKET) -> T:
    """The outcome of some work, at a step's edge after it began; at once where first = 0, or where it is refused.

    A refusal depends on the question, the policy and the ledger, so its time may be seen. So may that of anything else
    that reads no data: a repeat of a kept answer, a plan, a budget. A refusal after a first step that read data comes
    at an edge, as that step's answer would.

    **What remains.** Among answers of at most T seconds there are log2(T/first) + 1 steps, so the time of one tells at
    most the logarithm of that in bits: five steps up to a third of a second, sixteen up to eleven minutes. A question
    that takes close to an edge can be pushed over it by few rows. Load moves all times, and whoever asks often for what
    comes at once can watch it. The steps make such a measurement rare and coarse. They do not make it impossible.
    """
    started = time.monotonic()
    try:
        found = await work
    except (Refused, ParameterError, asyncio.CancelledError) as error:
        if isinstance(error, SecondStepRefused):
            await _sleep_to_bucket(started, first)
        raise
    except BaseException:
        await _sleep_to_bucket(started, first)
        raise
    await _sleep_to_bucket(started, first)
    return found


async def _sleep_to_bucket(started: float, first: float) -> None:
    passed = time.monotonic() - started
    if first > 0:
        await asyncio.sleep(round_up_to_bucket(passed, first) - passed)
