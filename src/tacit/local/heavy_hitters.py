"""Heavy hitters: the strings that many users have, found by extending common prefixes letter by letter.

>>> from tacit.local.hadamard_response import HadamardResponse
>>> from tacit.sampling.bits import ReplayBits
>>> letters = "abcdefghijklmnopqrstuvwxyz"
>>> search = HeavyHitterSearch(HadamardResponse, alphabet=letters, length=3, epsilon=3, threshold=0.1)
>>> texts = ["cat"] * 40_000 + ["dog"] * 30_000 + ["ox"] * 20_000
>>> found = search.find(texts, ReplayBits(b"example"))
>>> [each.text for each in found.strings], found.is_complete, found.rest.low
(['cat', 'dog', 'ox'], True, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer
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
    """A string with its estimated share of users.

    Attributes
    ----------
    text : str
        The string, or a prefix of strings.
    value : float
        The estimated share of users who have it, unbiased.
    low, high : float
        The ends of its confidence interval. The intervals of a round hold all at once.
    """

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class UncoveredShare:
    """The estimated share of users whose string has none of the prefixes of a round.

    Their strings are rare, or have a letter that is not in the alphabet.

    Attributes
    ----------
    value : float
        The estimated share, unbiased.
    low, high : float
        The ends of its confidence interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class HeavyHitters:
    """The strings that a search found.

    Attributes
    ----------
    strings : tuple of HeavyHitter
        The strings whose share may reach the threshold, the most common first.
    is_complete : bool
        False where a round had more common prefixes than `most`, so that some were dropped.
    rest : UncoveredShare
        The share of users who have none of the prefixes of the last round. Where it is large, many strings are rare,
        or have a letter that is not in the alphabet.
    """

    strings: tuple[HeavyHitter, ...]
    is_complete: bool
    rest: UncoveredShare


@dataclass(frozen=True)
class PrefixRound:
    """One round of a search: its users report which of the prefixes their string has, or that it has none."""

    search: HeavyHitterSearch
    number: int
    prefixes: tuple[str, ...]
    is_complete: bool = True

    @property
    def protocol(self) -> FrequencyOracle:
        """The protocol over the prefixes, and one more value: none of them."""
        return self.search.make(len(self.prefixes) + 1, self.search.epsilon)

    def encode(self, texts: Sequence[str], bits: Bits) -> Reports:
        """Return the reports of the users of this round."""
        indices = {text: index for index, text in enumerate(self.prefixes)}
        none, end, number = len(self.prefixes), self.search.end, self.number
        values = [
            none if end in text[:number] else indices.get(self.search.prefix(text, number), none)
            for text in _check_texts("texts", texts)
        ]
        return self.protocol.encode(np.array(values, dtype=np.int64), bits)

    def collect(self, reports: npt.ArrayLike) -> tuple[HeavyHitter, ...]:
        """Return the prefixes whose share may reach the threshold, the most common first."""
        found = [HeavyHitter(text, *each) for text, each in zip(self.prefixes, self._shares(reports), strict=False)]
        common = [each for each in found if each.high >= self.search.threshold]
        return tuple(sorted(common, key=lambda each: -each.value))

    def rest(self, reports: npt.ArrayLike) -> UncoveredShare:
        """Return the share of users who have none of the prefixes."""
        return UncoveredShare(*self._shares(reports)[-1])

    def influence(self, malicious: Number) -> float:
        """Return the most by which a share of malicious users can move an estimate of this round."""
        return self.search.influence(malicious, len(self.prefixes))

    def _shares(self, reports: npt.ArrayLike) -> list[tuple[float, float, float]]:
        """Return the estimate and the ends of its interval, for each prefix, and for none of them."""
        summary = FrequencySummary.empty(self.protocol, f"round {self.number}").add(reports)
        found = summary.estimate(1 - (1 - self.search.confidence) / self.search.length, together=True)
        return list(zip(found.frequencies.tolist(), found.low.tolist(), found.high.tolist(), strict=True))

    def next(self, survivors: Sequence[HeavyHitter]) -> PrefixRound:
        """Return the round after this one: the most common prefixes, each extended by every letter, and by the end."""
        common, letters = survivors[: self.search.most], (*self.search.alphabet, self.search.end)
        longer = [
            text
            for each in common
            for text in ([each.text] if each.text.endswith(self.search.end) else [each.text + x for x in letters])
        ]
        is_complete = self.is_complete and len(common) == len(survivors)
        return PrefixRound(self.search, self.number + 1, tuple(longer), is_complete)


@dataclass(frozen=True)
class HeavyHitterSearch:
    """Finds all strings of an alphabet that at least a given share of users have.

    Each user reports in one round, drawn at random. Round i asks for the first i letters, among the prefixes that were
    common in the round before, `most` of them at most, each with one more letter. Longer strings are truncated at
    `length`; one with another letter before that has none of the prefixes, however common it is. `HeavyHitters.rest` is
    the share of such users.

    **Theorem.** Each user sends one report, epsilon-LDP for any list of prefixes: the lists are made of other users'
    reports.

    **Theorem.** Let users be drawn independently from a population. With at least the `confidence`, every string of the
    alphabet that at least the threshold of the population has is found where `is_complete` is true, and all intervals
    returned hold. Proof: the users of a round are independent of those before, hence of its list, and counts are
    binomial. So a round's intervals hold all at once, except with probability (1 - confidence)/length. Then the prefix
    of a common string, which is at least as common, has an interval that reaches the threshold, and is extended.

    **Theorem** (poisoning). A share m of malicious users, who choose their round, moves an estimate of one by up to
    (length m/(1 + (length - 1) m))/(p - q), as `multiple_attributes.py` proves. So they can make a rare string appear,
    or a common one disappear.

    Parameters
    ----------
    make : callable (domain, epsilon) -> FrequencyOracle
        Makes the protocol of a round, usually a class such as `HadamardResponse`.
    alphabet : str
        The letters that strings are made of, all different.
    length : int
        The number of letters that are searched, at least 1, which is also the number of rounds.
    epsilon : number
        The privacy loss of a user's one report, above 0.
    threshold : number, default 0.01
        The share of users, between 0 and 1, from which on a string is to be found. A smaller one needs more users.
    most : int, default 256
        The number of prefixes, at least 1, that are extended after each round.
    confidence : number, default 0.95
        The probability, between 0 and 1, with which all common strings are found and all intervals hold.
    end : str, default a null character
        One character that is in no string; it marks the end of shorter ones.

    Raises
    ------
    ParameterError
        Where a parameter is outside its range.

    Examples
    --------
    >>> from tacit.local import HadamardResponse, HeavyHitterSearch
    >>> from tacit.sampling.bits import ReplayBits
    >>> search = HeavyHitterSearch(HadamardResponse, alphabet="acdgotx", length=3, epsilon=3, threshold=0.1)
    >>> texts = ["cat"] * 4_000 + ["dog"] * 3_000 + ["ox"] * 2_000
    >>> found = search.find(texts, ReplayBits(b"example"))
    >>> [each.text for each in found.strings], found.is_complete
    (['cat', 'dog', 'ox'], True)
    """

    make: OracleFactory
    alphabet: str
    length: int
    epsilon: Fraction
    threshold: Fraction = Fraction(1, 100)
    most: int = 256
    confidence: Fraction = Fraction(95, 100)
    end: str = "\0"

    if TYPE_CHECKING:  # any number is converted below

        def __init__(
            self,
            make: OracleFactory,
            alphabet: str,
            length: int,
            epsilon: Number,
            threshold: Number = Fraction(1, 100),
            most: int = 256,
            confidence: Number = Fraction(95, 100),
            end: str = "\0",
        ) -> None: ...

    def __post_init__(self) -> None:
        to_integer("length", self.length, least=1)
        to_integer("most", self.most, least=1)
        if not isinstance(self.end, str) or len(self.end) != 1:
            raise ParameterError("end", "needs one character that is in no string", fix="leave it out")
        if not isinstance(self.alphabet, str) or len({*self.alphabet, self.end}) != len(self.alphabet) + 1:
            what = "needs letters that are all different, without the end character"
            raise ParameterError("alphabet", what, fix='alphabet="abc"')
        if not self.alphabet:
            raise ParameterError("alphabet", "has no letters", fix='alphabet="abc"')
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "threshold", check_probability("threshold", self.threshold))
        object.__setattr__(self, "confidence", check_probability("confidence", self.confidence))

    @property
    def required_users(self) -> int:
        """The number of users from which on a rare letter's interval in the first round ends near the threshold.

        By the normal approximation, with users spread evenly over the rounds. Later rounds have more prefixes, and need
        slightly more users.
        """
        from scipy.special import ndtri

        protocol = self.first_round().protocol
        tail = (1 - self.confidence) / (2 * self.length * protocol.domain)
        wide = float(ndtri(float(tail))) / float(self.threshold)
        return self.length * math.ceil(protocol.variance(1) * wide**2)

    def influence(self, malicious: Number, prefixes: int | None = None) -> float:
        """Bound how far malicious users, all in one round, can move an estimate of it.

        Parameters
        ----------
        malicious : number
            The share of users, from 0 to 1, who choose their round and send any well-formed report.
        prefixes : int, optional
            The number of prefixes of the round, at least 1. The largest that a round can have by default.

        Returns
        -------
        float
            The largest change of a prefix's estimated share.
        """
        largest = len(self.alphabet) + 1
        for _ in range(1, self.length):
            largest = min(largest, self.most) * (len(self.alphabet) + 1)
        count = largest if prefixes is None else to_integer("prefixes", prefixes, least=1)
        return self.make(count + 1, self.epsilon).influence(poisoned_share(malicious, self.length))

    def loss(self) -> PureDp:
        """Return the privacy loss of a user's one report, for the accountant.

        Returns
        -------
        PureDp
            Pure differential privacy with this `epsilon`, between any two strings of one user.
        """
        return PureDp(self.epsilon)

    def first_round(self) -> PrefixRound:
        """Return the first round, whose prefixes are all letters and the empty string.

        Returns
        -------
        PrefixRound
            Its `encode` runs on the devices of its users, its `collect` at the collector, and its `next` is the second
            round. `find` does all of this for users whose strings are at hand.
        """
        return PrefixRound(self, 1, (*self.alphabet, self.end))

    def prefix(self, text: str, letters: int) -> str:
        """Return the prefix of a string that a round asks for.

        Parameters
        ----------
        text : str
            A user's string, without the end character.
        letters : int
            The number of letters of the prefix, at least 1.

        Returns
        -------
        str
            The first letters, or the whole string and the end character where it has fewer.
        """
        return text[:letters] if len(text) >= letters else text + self.end

    def find(self, texts: Sequence[str], bits: Bits) -> HeavyHitters:
        """Simulate all rounds for users whose strings are given.

        Parameters
        ----------
        texts : sequence of str
            One string for each user. Each is used in one round only.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        HeavyHitters
            The common strings with their estimated shares.

        Raises
        ------
        ParameterError
            Where the texts are not strings, or a round has no users.
        """
        users = _check_texts("texts", texts)
        drawn = draw_array_below(self.length, len(users), bits)
        if len(np.unique(drawn)) < self.length:
            what = f"{len(users)} users are too few for {self.length} rounds: one of them has no users"
            raise ParameterError("texts", what, fix=f"ask {self.required_users:,} users or more, for this threshold")
        current = self.first_round()
        while True:
            asked = [users[user] for user in np.flatnonzero(drawn == current.number - 1).tolist()]
            reports = current.encode(asked, bits)
            common = current.collect(reports)
            if current.number == self.length or not common:
                strings = (
                    HeavyHitter(each.text.removesuffix(self.end), each.value, each.low, each.high) for each in common
                )
                return HeavyHitters(tuple(strings), current.is_complete, current.rest(reports))
            current = current.next(common)


def _check_texts(name: str, values: Sequence[str]) -> list[str]:
    """Return a list of strings, one for each user. They are private: an error names none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(name, f"needs a list of strings, got {type(values).__name__}", fix=f'{name}=["cat"]')
    found = list(values)
    other = {type(value).__name__ for value in found if not isinstance(value, str)}
    if other:
        raise ParameterError(
            name, f"needs strings, got {', '.join(sorted(other))}", fix="make each a str, or leave it out"
        )
    return found
