"""The strings that many people have, found letter by letter: only beginnings that are common are looked into.

>>> from tacit.local.hadamard import Hadamard
>>> from tacit.sampling.bits import ReplayBits
>>> search = Heavy(Hadamard, alphabet="abcdefghijklmnopqrstuvwxyz", length=3, epsilon=3, threshold=0.1)
>>> people = ["cat"] * 40_000 + ["dog"] * 30_000 + ["ox"] * 20_000
>>> found = search.find(people, ReplayBits(b"example"))
>>> [each.text for each in found.strings], found.complete
(['cat', 'dog', 'ox'], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arithmetic import integer
from tacit.errors import ParameterError
from tacit.local.attributes import Make
from tacit.local.frequency import Frequency, Reports
from tacit.local.summary import Summary
from tacit.mechanisms.given import price, share
from tacit.privacy.loss import Pure
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import belows


@dataclass(frozen=True)
class String:
    """A string with its estimated share of people and the interval of it; all intervals hold at once."""

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Found:
    """The strings of the last round, the most common first. Where `complete` is False, some were dropped for room."""

    strings: tuple[String, ...]
    complete: bool


@dataclass(frozen=True)
class Round:
    """One round: the beginnings that are asked about. A person reports which one is theirs, or that none is."""

    search: Heavy
    number: int
    beginnings: tuple[str, ...]
    complete: bool = True

    @property
    def protocol(self) -> Frequency:
        """Over the beginnings, and one more value: none of them."""
        return self.search.make(len(self.beginnings) + 1, self.search.epsilon)

    def encode(self, texts: Sequence[str], bits: Bits) -> Reports:
        """The reports of the people asked in this round."""
        places = {text: place for place, text in enumerate(self.beginnings)}
        none = len(self.beginnings)
        values = [places.get(self.search.beginning(text, self.number), none) for text in texts]
        return self.protocol.encode(np.array(values, dtype=np.int64), bits)

    def collect(self, reports: Any) -> tuple[String, ...]:
        """The beginnings that may be at the threshold, the most common first."""
        summary = Summary.empty(self.protocol, f"round {self.number}").add(reports)
        shown = summary.estimate(1 - (1 - self.search.confidence) / self.search.length, together=True)
        ends = zip(shown.frequencies.tolist(), shown.low.tolist(), shown.high.tolist(), strict=True)
        found = [String(text, *each) for text, each in zip(self.beginnings, ends, strict=False)]
        common = [each for each in found if each.high >= self.search.threshold]
        return tuple(sorted(common, key=lambda each: -each.value))

    def next(self, survivors: Sequence[String]) -> Round:
        """The round after this one: the most common survivors, each with every letter after it or at its end."""
        kept, letters = survivors[: self.search.most], (*self.search.alphabet, self.search.end)
        longer = [
            text
            for each in kept
            for text in ([each.text] if each.text.endswith(self.search.end) else [each.text + x for x in letters])
        ]
        return Round(self.search, self.number + 1, tuple(longer), self.complete and len(kept) == len(survivors))


@dataclass(frozen=True)
class Heavy:
    """Looks for all strings of at most `length` letters that at least a share `threshold` of people have.

    Each person is asked in one round, drawn at random. Round i asks for the first i letters, among the beginnings that
    survived so far, `most` of them at most, each with one more letter. Longer strings are cut at `length`.

    **Theorem.** Each person sends one report, epsilon-LDP for any list of beginnings: the lists are made of other
    people's reports.

    **Theorem.** Let people be drawn independently from a population. With at least the `confidence`, every string that
    at least the threshold of it has is found where `complete` is true, and all intervals shown hold. Proof: the people
    of a round are independent of those before, hence of its list, and counts are binomial. So a round's intervals hold
    all at once, except with (1 - confidence)/length. Then the beginning of a common string, which is at least as
    common, has an interval that reaches the threshold, and survives.
    """

    make: Make
    alphabet: str
    length: int
    epsilon: Fraction
    threshold: Fraction = Fraction(1, 100)
    most: int = 256
    confidence: Fraction = Fraction(95, 100)
    end: str = "\0"

    def __post_init__(self) -> None:
        integer("length", self.length, least=1)
        integer("most", self.most, least=1)
        if len(set(self.alphabet)) != len(self.alphabet) or not self.alphabet or self.end in self.alphabet:
            raise ParameterError("alphabet", "needs different letters, without the end", fix='alphabet="abc", say')
        object.__setattr__(self, "epsilon", price(self.epsilon))
        object.__setattr__(self, "threshold", share("threshold", self.threshold))
        object.__setattr__(self, "confidence", share("confidence", self.confidence))

    def loss(self) -> Pure:
        """What one person's report costs."""
        return Pure(self.epsilon)

    def first(self) -> Round:
        """The first round: all letters, and the empty string."""
        return Round(self, 1, (*self.alphabet, self.end))

    def beginning(self, text: str, letters: int) -> str:
        """The first letters of a string, with the end where it has fewer."""
        return text[:letters] if len(text) >= letters else text + self.end

    def find(self, texts: Sequence[str], bits: Bits) -> Found:
        """All rounds, one after the other, for people whose strings are here."""
        drawn = belows(self.length, len(texts), bits)
        now = self.first()
        while True:
            asked = [texts[person] for person in np.flatnonzero(drawn == now.number - 1).tolist()]
            survivors = now.collect(now.encode(asked, bits))
            if now.number == self.length or not survivors:
                shown = (
                    String(each.text.removesuffix(self.end), each.value, each.low, each.high) for each in survivors
                )
                return Found(tuple(shown), now.complete)
            now = now.next(survivors)
