"""Memoization for repeated collection: a report that is drawn once for each value and repeated.

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
>>> phone.lifetime_loss()
Repeat(loss=PureDp(epsilon=Fraction(1, 1)), times=2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.arithmetic import to_integer
from tacit.local.frequency_oracle import FrequencyOracle, Report
from tacit.privacy.loss import Repeat
from tacit.sampling.bits import Bits


@dataclass(frozen=True)
class MemoizedRandomizer:
    """One user's memoized reports: for each of the first `most` different values, the report drawn for it.

    A value seen before is answered by its report, a new one by a fresh report; after `most` of them, by the last.

    **Theorem** (one value). Whoever has the same value all the time loses epsilon in all, however often they report.

    **Theorem** (several values). Let two histories change and return at the same times. All reports ever sent are
    (d epsilon)-DP between them, where d, at most `most`, is how many different values each has. Proof: they are a
    function of d independent reports, for d values each, and of the times, which both share.

    **What is not promised.** *When* a value changes may show: two different reports are never drawn for one value. So
    between histories that change at different times no epsilon holds at all. Where that matters, draw a fresh report
    every time, with the loss `Repeat(protocol.loss(), times)`; or randomize the memoized report again each time, as
    `Rappor` does, with a loss that grows with the number of values.

    The memoized reports are as secret as the values: they stay on the user's device.

    Parameters
    ----------
    protocol : FrequencyOracle
        The protocol, with its parameters, that reports are made with.
    most : int
        The number of different values that get a report of their own, at least 1. It bounds the total privacy loss.
    memo : tuple of (value, report), default ()
        The values seen so far with their reports; empty at first.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, MemoizedRandomizer
    >>> from tacit.sampling.bits import ReplayBits
    >>> bits, phone = ReplayBits(b"example"), MemoizedRandomizer(KAryRandomizedResponse(domain=4, epsilon=1), most=2)
    >>> monday, phone = phone.answer(3, bits)
    >>> tuesday, phone = phone.answer(3, bits)
    >>> bool(monday == tuesday), phone.lifetime_loss().times
    (True, 2)
    """

    protocol: FrequencyOracle
    most: int
    memo: tuple[tuple[int, Report], ...] = ()

    def __post_init__(self) -> None:
        to_integer("most", self.most, least=1)

    def answer(self, value: int, bits: Bits) -> tuple[Report, MemoizedRandomizer]:
        """Return the report to send for a value.

        Parameters
        ----------
        value : int
            Today's true value, from 0 to the protocol's domain - 1.
        bits : Bits
            Source of randomness, read only for a value that was not seen before.

        Returns
        -------
        report : int or ndarray of uint8
            What to send.
        randomizer : MemoizedRandomizer
            What to store, and to use for the next value.

        Raises
        ------
        ParameterError
            Where the value is not an integer of the domain.
        """
        known = dict(self.memo)
        number = to_integer("value", value)
        if number in known:
            return known[number], self
        report = self.protocol.encode_one(number, bits)  # also checks the value where the report is not used
        if len(self.memo) >= self.most:
            return self.memo[-1][1], self
        return report, replace(self, memo=(*self.memo, (number, report)))

    def lifetime_loss(self) -> Repeat:
        """Return the largest privacy loss of all reports ever sent, between histories that change at the same times.

        Returns
        -------
        Repeat
            `most` times the loss of one report.
        """
        return Repeat(self.protocol.loss(), self.most)
