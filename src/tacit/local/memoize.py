"""The same question again and again: an answer that is drawn once and repeated costs once.

>>> from tacit.local.k_ary import KAry
>>> from tacit.sampling.bits import ReplayBits
>>> phone = Memo(KAry(domain=4, epsilon=1), most=2)
>>> bits = ReplayBits(b"example")
>>> sent = []
>>> for today in [3, 3, 3, 0, 3]:
...     report, phone = phone.answer(today, bits)
...     sent.append(int(report))
>>> sent[0] == sent[1] == sent[2] == sent[4]
True
>>> phone.lifetime()
Repeat(loss=Pure(epsilon=Fraction(1, 1)), times=2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arithmetic import integer
from tacit.errors import ParameterError
from tacit.local.frequency import Frequency, Reports
from tacit.privacy.loss import Repeat
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class Memo:
    """What one person's machine keeps: for each of the first `most` different values, the report drawn for it.

    A value seen before is answered by its report, a new one by a fresh report; after `most` of them, by the last.

    **Theorem** (one value). Whoever has the same value all the time loses epsilon in all, however often they answer.

    **Theorem** (several). Let two histories change and return at the same times. What is sent over a lifetime is
    (d epsilon)-DP between them, where d, at most `most`, is how many different values each has. Proof: it is a function
    of d independent reports, for d values each, and of the times, which both share.

    **What is not promised.** *When* a value changes may show: two different reports are never drawn for one value. So
    between histories that change at different times no epsilon holds at all. Where that matters, draw anew every time,
    at `fresh`; or send the kept answer with noise on top, as `Rappor` does, at a price that grows with the values.

    What is kept is as secret as the values.
    """

    protocol: Frequency
    most: int
    kept: tuple[tuple[int, Any], ...] = ()

    def __post_init__(self) -> None:
        integer("most", self.most, least=1)

    def answer(self, value: int, bits: Bits) -> tuple[Any, Memo]:
        """What to send for today's value, and what to keep."""
        known = dict(self.kept)
        number = integer("value", value)
        if number in known:
            return known[number], self
        report = self.protocol.encode_one(number, bits)  # also checks the value where the report is not used
        if len(self.kept) >= self.most:
            return self.kept[-1][1], self
        return report, replace(self, kept=(*self.kept, (number, report)))

    def lifetime(self) -> Repeat:
        """The most that all answers ever cost together, between histories that change at the same times."""
        return Repeat(self.protocol.loss(), self.most)


def fresh(protocol: Frequency, times: int) -> Repeat:
    """What so many answers cost that are each drawn anew: between any two histories whatsoever."""
    return Repeat(protocol.loss(), integer("times", times, least=0))


def answers(protocol: Frequency, history: Any, bits: Bits) -> list[Reports]:
    """The reports of many people over time: a row of `history` for each time, a column for each person.

    Each person keeps a report for each value they ever have. The estimate at one time has the protocol's variance; the
    errors of different times are the same where values are, so averaging over time does not lessen them.
    """
    table = np.asarray(history)
    if table.ndim != 2 or table.dtype.kind not in "iu" or not table.size:
        raise ParameterError("history", "needs a row of integers for each time", fix="give a table of values")
    if table.min() < 0 or table.max() >= protocol.domain:
        raise ParameterError("history", f"must be from 0 to {protocol.domain - 1}", fix="number the values from 0 on")
    pairs = np.arange(table.shape[1]) * protocol.domain + table
    different, place = np.unique(pairs, return_inverse=True)
    reports = protocol.encode(different % protocol.domain, bits)
    return [reports[row] for row in place.reshape(table.shape)]
