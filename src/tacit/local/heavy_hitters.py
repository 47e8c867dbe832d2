"""The strings that many people have, found letter by letter: only beginnings that are common are looked into.

>>> from tacit.local.hadamard_response import HadamardResponse
>>> from tacit.sampling.bits import ReplayBits
>>> letters = "abcdefghijklmnopqrstuvwxyz"
>>> search = HeavyHitterSearch(HadamardResponse, alphabet=letters, length=3, epsilon=3, threshold=0.1)
>>> people = ["cat"] * 40_000 + ["dog"] * 30_000 + ["ox"] * 20_000
>>> found = search.find(people, ReplayBits(b"example"))
>>> [each.text for each in found.strings], found.complete, found.rest.low
(['cat', 'dog', 'ox'], True, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import FrequencyOracle, Reports
from tacit.local.multiple_attributes import OracleFactory, poisoned_share
from tacit.local.summary import FrequencySummary
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below


@dataclass(frozen=True)
class HeavyHitter:
    """A string with its estimated share of people and the interval of it; all intervals hold at once."""

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class UncoveredShare:
    """The estimated share of people to whom no beginning that was asked about belongs, and its interval.

    Their strings are rare, or have a letter that is not in the alphabet.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class HeavyHitters:
    """The strings of the last round, the most common first, and the share of people who have none that was asked about.

    Where `complete` is False, some beginnings were dropped for room. A large `rest` says that much was not looked into.
    """

    strings: tuple[HeavyHitter, ...]
    complete: bool
    rest: UncoveredShare


@dataclass(frozen=True)
class PrefixRound:
    """One round: the beginnings that are asked about. A person reports which one is theirs, or that none is."""

    search: HeavyHitterSearch
    number: int
    beginnings: tuple[str, ...]
    complete: bool = True

    @property
    def protocol(self) -> FrequencyOracle:
        """Over the beginnings, and one more value: none of them."""
        return self.search.make(len(self.beginnings) + 1, self.search.epsilon)

    def encode(self, texts: Sequence[str], bits: Bits) -> Reports:
        """The reports of the people asked in this round."""
        places = {text: place for place, text in enumerate(self.beginnings)}
        none, end, number = len(self.beginnings), self.search.end, self.number
        values = [
            none if end in text[:number] else places.get(self.search.beginning(text, number), none)
            for text in _texts_of("texts", texts)
        ]
        return self.protocol.encode(np.array(values, dtype=np.int64), bits)

    def collect(self, reports: Any) -> tuple[HeavyHitter, ...]:
        """The beginnings that may be at the threshold, the most common first."""
        found = [HeavyHitter(text, *each) for text, each in zip(self.beginnings, self._shares(reports), strict=False)]
        common = [each for each in found if each.high >= self.search.threshold]
        return tuple(sorted(common, key=lambda each: -each.value))

    def rest(self, reports: Any) -> UncoveredShare:
        """The share of those who have none of the beginnings."""
        return UncoveredShare(*self._shares(reports)[-1])

    def influence(self, lying: Any) -> float:
        """The most by which a share of `lying` people move an estimate of this round."""
        return self.search.influence(lying, len(self.beginnings))

    def _shares(self, reports: Any) -> list[tuple[float, float, float]]:
        """For each beginning, and for none of them: the estimate and the ends of its interval."""
        summary = FrequencySummary.empty(self.protocol, f"round {self.number}").add(reports)
        shown = summary.estimate(1 - (1 - self.search.confidence) / self.search.length, together=True)
        return list(zip(shown.frequencies.tolist(), shown.low.tolist(), shown.high.tolist(), strict=True))

    def next(self, survivors: Sequence[HeavyHitter]) -> PrefixRound:
        """The round after this one: the most common survivors, each with every letter after it or at its end."""
        kept, letters = survivors[: self.search.most], (*self.search.alphabet, self.search.end)
        longer = [
            text
            for each in kept
            for text in ([each.text] if each.text.endswith(self.search.end) else [each.text + x for x in letters])
        ]
        return PrefixRound(self.search, self.number + 1, tuple(longer), self.complete and len(kept) == len(survivors))


@dataclass(frozen=True)
class HeavyHitterSearch:
    """Looks for all strings of at most `length` letters of an alphabet which at least the share `threshold` have.

    Each person is asked in one round, drawn at random. Round i asks for the first i letters, among the beginnings that
    survived so far, `most` of them at most, each with one more letter. Longer strings are cut at `length`; one with
    another letter before that belongs to none of them, however common it is. `HeavyHitters.rest` is the share of such
    people.

    **Theorem.** Each person sends one report, epsilon-LDP for any list of beginnings: the lists are made of other
    people's reports.

    **Theorem.** Let people be drawn independently from a population. With at least the `confidence`, every string of
    the alphabet that at least the threshold of it has is found where `complete` is true, and all intervals shown hold.
    Proof: the people of a round are independent of those before, hence of its list, and counts are binomial. So a
    round's intervals hold all at once, except with (1 - confidence)/length. Then the beginning of a common string,
    which is at least as common, has an interval that reaches the threshold, and survives.

    **Theorem** (poisoning). A share m of liars, who choose their round, moves an estimate of one by up to (length m/(1
    + (length - 1) m))/(p - q), as `parts.py` proves. So they can show a string that few have, or hide a common one.
    """

    make: OracleFactory
    alphabet: str
    length: int
    epsilon: Fraction
    threshold: Fraction = Fraction(1, 100)
    most: int = 256
    confidence: Fraction = Fraction(95, 100)
    end: str = "\0"

    def __post_init__(self) -> None:
        to_integer("length", self.length, least=1)
        to_integer("most", self.most, least=1)
        if not isinstance(self.end, str) or len(self.end) != 1:
            raise ParameterError("end", "needs one character, which no string has", fix="leave it out")
        if not isinstance(self.alphabet, str) or len({*self.alphabet, self.end}) != len(self.alphabet) + 1:
            raise ParameterError("alphabet", "needs different letters, without the end", fix='alphabet="abc", say')
        if not self.alphabet:
            raise ParameterError("alphabet", "has no letters", fix='alphabet="abc", say')
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "threshold", check_probability("threshold", self.threshold))
        object.__setattr__(self, "confidence", check_probability("confidence", self.confidence))

    @property
    def needed(self) -> int:
        """How many people it takes, at least: then a rare letter's interval in the first round ends near the threshold.

        By the normal distribution, with people spread evenly over the rounds; the later lists are longer and take a
        little more.
        """
        from scipy.special import ndtri

        protocol = self.first().protocol
        tail = (1 - self.confidence) / (2 * self.length * protocol.domain)
        wide = float(ndtri(float(tail))) / float(self.threshold)
        return self.length * math.ceil(protocol.variance(1) * wide**2)

    def influence(self, lying: Any, beginnings: int | None = None) -> float:
        """The most by which a share of `lying` people, all in one round, move an estimate of it.

        The round has so many beginnings, or the longest list there can be.
        """
        longest = len(self.alphabet) + 1
        for _ in range(1, self.length):
            longest = min(longest, self.most) * (len(self.alphabet) + 1)
        asked = longest if beginnings is None else to_integer("beginnings", beginnings, least=1)
        return self.make(asked + 1, self.epsilon).influence(poisoned_share(lying, self.length))

    def loss(self) -> PureDp:
        """What one person's report costs."""
        return PureDp(self.epsilon)

    def first(self) -> PrefixRound:
        """The first round: all letters, and the empty string."""
        return PrefixRound(self, 1, (*self.alphabet, self.end))

    def beginning(self, text: str, letters: int) -> str:
        """The first letters of a string, with the end where it has fewer."""
        return text[:letters] if len(text) >= letters else text + self.end

    def find(self, texts: Sequence[str], bits: Bits) -> HeavyHitters:
        """All rounds, one after the other, for people whose strings are here."""
        people = _texts_of("texts", texts)
        drawn = draw_array_below(self.length, len(people), bits)
        if len(np.unique(drawn)) < self.length:
            what = f"{len(people)} people are too few for {self.length} rounds: nobody was drawn for one of them"
            raise ParameterError("texts", what, fix=f"ask {self.needed:,} people or more, for this threshold")
        now = self.first()
        while True:
            asked = [people[person] for person in np.flatnonzero(drawn == now.number - 1).tolist()]
            reports = now.encode(asked, bits)
            survivors = now.collect(reports)
            if now.number == self.length or not survivors:
                shown = (
                    HeavyHitter(each.text.removesuffix(self.end), each.value, each.low, each.high) for each in survivors
                )
                return HeavyHitters(tuple(shown), now.complete, now.rest(reports))
            now = now.next(survivors)


def _texts_of(name: str, values: Any) -> list[str]:
    """A list of strings, a person each. They are private: an error names none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(name, f"needs a list of strings, got {type(values).__name__}", fix=f'{name}=["cat"], say')
    found = list(values)
    other = {type(value).__name__ for value in found if not isinstance(value, str)}
    if other:
        raise ParameterError(
            name, f"needs strings, got {', '.join(sorted(other))}", fix="make each a str, or leave it out"
        )
    return found
