"""The same question again and again: an answer that is drawn once and repeated costs once.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> from tacit.sampling.bits import ReplayBits
>>> phone = MemoizedRandomizer(KAryRandomizedResponse(domain=4, epsilon=1), most=2)
>>> bits = ReplayBits(b"example")
>>> sent = []
>>> for today in [3, 3, 3, 0, 3]:
...     report, phone = phone.answer(today, bits)
...     sent.append(int(report))
>>> sent[0] == sent[1] == sent[2] == sent[4]
True
>>> phone.lifetime()
Repeat(loss=PureDp(epsilon=Fraction(1, 1)), times=2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tacit.arithmetic import to_integer
from tacit.local.frequency_oracle import FrequencyOracle
from tacit.privacy.loss import Repeat
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class MemoizedRandomizer:
    """What one person's machine keeps: for each of the first `most` different values, the report drawn for it.

    A value seen before is answered by its report, a new one by a fresh report; after `most` of them, by the last.

    **Theorem** (one value). Whoever has the same value all the time loses epsilon in all, however often they answer.

    **Theorem** (several). Let two histories change and return at the same times. What is sent over a lifetime is
    (d epsilon)-DP between them, where d, at most `most`, is how many different values each has. Proof: it is a function
    of d independent reports, for d values each, and of the times, which both share.

    **What is not promised.** *When* a value changes may show: two different reports are never drawn for one value. So
    between histories that change at different times no epsilon holds at all. Where that matters, draw anew every time,
    which costs `Repeat(protocol.loss(), times)`; or send the kept answer with noise on top, as `Rappor` does, at a
    price that grows with the values.

    What is kept is as secret as the values.
    """

    protocol: FrequencyOracle
    most: int
    kept: tuple[tuple[int, Any], ...] = ()

    def __post_init__(self) -> None:
        to_integer("most", self.most, least=1)

    def answer(self, value: int, bits: Bits) -> tuple[Any, MemoizedRandomizer]:
        """What to send for today's value, and what to keep."""
        known = dict(self.kept)
        number = to_integer("value", value)
        if number in known:
            return known[number], self
        report = self.protocol.encode_one(number, bits)  # also checks the value where the report is not used
        if len(self.kept) >= self.most:
            return self.kept[-1][1], self
        return report, replace(self, kept=(*self.kept, (number, report)))

    def lifetime(self) -> Repeat:
        """The most that all answers ever cost together, between histories that change at the same times."""
        return Repeat(self.protocol.loss(), self.most)
