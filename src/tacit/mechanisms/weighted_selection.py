"""Weighted partition selection: which private keys may be shown, where a unit may hold many of them.

>>> from tacit.sampling.bits import ReplayBits
>>> selection = WeightedGaussianSelection.calibrated(epsilon=1, delta=1e-5, groups=100)
>>> visits = {patient: ["flu", "cough"] for patient in range(400)} | {400: ["measles"]}
>>> selection.release(visits, ReplayBits(b"example"))
['cough', 'flu']
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.filters import max_rho
from tacit.arithmetic import Number, to_integer, to_rational_between
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.partition import LEAST_DELTA, LEAST_EPSILON, MOST_DELTA, MOST_EPSILON, check_counts, split_delta
from tacit.privacy.key_weights import WHOLE, weigh_key
from tacit.privacy.loss import ApproximateDp, Compose, ConcentratedDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.gaussian import tail_quantile
from tacit.sampling.system import bits_or_system

MOST_GROUPS = 10**6
MOST_ROUNDS = 3
LEAST_RHO, MOST_RHO = Fraction(1, 10**20), Fraction(10**9)
_RATIO = 9  # of the rho of a round to that of the one before

Key = TypeVar("Key", bound=Any)


@dataclass(frozen=True, init=False)
class WeightedGaussianSelection:
    """Adds up weights of the units that hold each key, adds Gaussian noise, and shows the keys that reach a threshold.

    A unit that holds t keys adds w(t) = floor(2^20 / sqrt(t)) to each of them (`privacy/key_weights.py`), so a unit of
    one key says as much as one of many, and no cap on keys need be guessed: of each unit at most `groups` keys count, a
    large public number. There are one to three rounds. In each, keys that are shown already are left out, and a unit
    shares its weight between those of its keys that are left: what it held of well-known keys it can give to others.
    Round i has the share s_i of rho and delta, where s_(i+1) = 9 s_i, since finding the well-known keys takes little.
    With G = 2^20 and c = 1 under ADD_REMOVE, 2 under REPLACE, the noise of round i is a discrete Gaussian Z of variance
    v = ceil(c G^2 / (2 s_i rho)), and the threshold T is the least integer, or the one above it, such that

        1 - (1 - P[w(t) + Z >= T])^t <= s_i delta     for every t from 1 to `groups`.

    Only keys that occur are looked at. A key that occurs nowhere is never shown.

    **Theorem.** The set of shown keys is delta-approximately rho-zCDP (Bun, Steinke 2016, definition 8.1), so it is
    (epsilon, delta + d)-DP wherever rho-zCDP is (epsilon, d)-DP.

    *Proof, one round.* What is left of a unit's keys, which of them count and their weights follow from the unit's own
    keys and from what was shown before, which is public. Let D and D' be neighbors, A the keys that have weight in D
    and none in D', A' those of D' and not D, and B those of both; other keys are never shown. A is of one unit u: any
    other unit is in both. So with t the keys of u that count, |A| <= t, and each key of A has exactly the weight w(t).
    Let E say that no key of A is shown: P[E] >= (1 - P[w(t) + Z >= T])^t >= 1 - s_i delta, and likewise for A', E' and
    D'. Noise is independent over keys, so given E the output on D is that on the keys of B alone, as on D' given E'.
    There the weights of D and D' differ by u's, by those of u' or by their difference. The squared L2 norm of that is
    at most G^2 for one unit, and at most 2 G^2 for two, because weights are not negative: |x - y|^2 <= |x|^2 + |y|^2.
    So the noisy weights have a Renyi divergence of order a of at most a c G^2 / (2 v) <= a s_i rho (`Gaussian`), and so
    has what follows from them.

    *All rounds.* Each round is private whatever was shown before. Approximate zCDP composes adaptively: rhos add up,
    and deltas do (lemma 8.2). The shares add up to one. The conversion is theorem 8.3 of Bun and Steinke.

    The weights are those of Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin (2020), the rounds those of Swanberg,
    Desfontaines and Haney (2023); here noise and weights are integers, and the threshold is certified.

    Parameters
    ----------
    rho : number
        Zero-concentrated privacy loss of all rounds together, from 10^-20 to 10^9.
    delta : number
        Probability of showing a key that only one unit holds, over all rounds, from 10^-100 to 0.49.
    groups : int, default 1000
        How many keys of one unit count, from 1 to 10^6. The threshold grows slowly with it.
    neighbors : Neighbors, default ADD_REMOVE
        The relation that is protected.
    rounds : int, optional
        From 1 to 3; by default 1 where a unit has one key, and 2 otherwise.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    PartitionSelection : Shows more where a unit holds one key or two.

    Examples
    --------
    >>> selection = WeightedGaussianSelection.calibrated(epsilon=1, delta=1e-5)
    >>> selection.units(), selection.units(keys=100)
    (26, 255)
    """

    rho: Fraction
    delta: Fraction
    groups: int = 1000
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    rounds: int = 2

    def __init__(
        self,
        rho: Number,
        delta: Number,
        groups: int = 1000,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        rounds: int | None = None,
    ) -> None:
        most = to_integer("groups", groups, least=1)
        many = (1 if most == 1 else 2) if rounds is None else to_integer("rounds", rounds, least=1)
        if most > MOST_GROUPS:
            raise ParameterError("groups", f"must be at most {MOST_GROUPS:,}, got {most}", fix="groups=1000, say")
        if many > MOST_ROUNDS:
            raise ParameterError("rounds", f"must be at most {MOST_ROUNDS}, got {many}", fix="leave it out")
        set_fields(
            self,
            rho=to_rational_between("rho", rho, LEAST_RHO, MOST_RHO),
            delta=to_rational_between("delta", delta, LEAST_DELTA, MOST_DELTA),
            groups=most,
            neighbors=Neighbors(neighbors),
            rounds=many,
        )

    @classmethod
    def calibrated(
        cls,
        epsilon: Number,
        delta: Number,
        groups: int = 1000,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        rounds: int | None = None,
    ) -> WeightedGaussianSelection:
        """Return the mechanism that is (epsilon, delta)-DP, with half of delta for the noise and half for the keys.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one selection, from 10^-9 to 10^6.
        delta : number
            Probability that the loss may be above epsilon, from 2 10^-100 to 0.49.
        groups : int, default 1000
            How many keys of one unit count, from 1 to 10^6.
        neighbors : Neighbors, default ADD_REMOVE
            The relation that is protected.
        rounds : int, optional
            From 1 to 3; by default 1 where a unit has one key, and 2 otherwise.

        Returns
        -------
        WeightedGaussianSelection
            With the largest rho that converts to epsilon at half of delta, and the other half as its own delta.

        Raises
        ------
        ParameterError
            If a parameter is out of range, or epsilon is too small for this delta.
        """
        price = to_rational_between("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON)
        half = to_rational_between("delta", delta, 2 * LEAST_DELTA, MOST_DELTA) / 2
        return cls(max_rho(price, half), half, groups, neighbors, rounds)

    def loss(self) -> Compose:
        """Return the privacy loss of one selection.

        Returns
        -------
        Compose
            The rho of the noise and the delta of the keys: what `tacit.accounting` composes.
        """
        return Compose((ConcentratedDp(self.rho), ApproximateDp(Fraction(0), self.delta)))

    def noise(self, place: int) -> Gaussian:
        """Return the noise of a round.

        Parameters
        ----------
        place : int
            The number of the round, from 1 to `rounds`.

        Returns
        -------
        Gaussian
            What is added to each weight, in steps of 2^-20.
        """
        moved = WHOLE**2 * (1 if self.neighbors is Neighbors.ADD_REMOVE else 2)
        return Gaussian(-(-moved // (2 * self._share(place) * self.rho)))

    def threshold(self, place: int) -> int:
        """Return the least noisy weight that is shown in a round.

        Parameters
        ----------
        place : int
            The number of the round, from 1 to `rounds`.

        Returns
        -------
        int
            T, in steps of 2^-20. It does not depend on the data.
        """
        return _threshold(self.noise(place).variance, self._share(place) * self.delta, self.groups)

    def units(self, keys: int = 1) -> int:
        """Return how many units show a key, at least every second time in the last round.

        Parameters
        ----------
        keys : int, default 1
            How many keys each of these units holds that no earlier round has shown, from 1 to `groups`.

        Returns
        -------
        int
            The least n with n w(keys) >= T. It does not depend on the data.
        """
        held = to_integer("keys", keys, least=1)
        return -(-self.threshold(self.rounds) // weigh_key(min(held, self.groups)))

    def release(self, units: Mapping[Hashable, Collection[Key]], bits: Bits | None = None) -> list[Key]:
        """Release the keys that are shown.

        Of a unit that holds more than `groups` keys, so many count, evenly spaced in the order of its keys.

        Parameters
        ----------
        units : mapping of unit to keys
            The keys that each unit holds; a key that it holds several times counts once. Keys must have an order.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        list of keys
            The shown keys, in their order.

        Raises
        ------
        ParameterError
            If `units` is not a mapping.
        """
        if not isinstance(units, Mapping):
            raise ParameterError("units", f"needs a mapping, got {type(units).__name__}", fix='units={"ada": ["flu"]}')
        held = [sorted(set(keys)) for keys in units.values()]
        names = sorted({key for keys in held for key in keys})
        number = {key: code for code, key in enumerate(names)}
        sizes = np.array([len(keys) for keys in held], np.int64)
        who = np.repeat(np.arange(len(held)), sizes)
        codes = np.array([number[key] for keys in held for key in keys], np.int64)

        def weigh(shown: Sequence[Key]) -> dict[Key, int]:
            is_left = np.ones(len(names), np.bool_)
            is_left[[number[key] for key in shown]] = False
            weights = add_weights(who[is_left[codes]], codes[is_left[codes]], len(names), self.groups)
            return {names[code]: int(weights[code]) for code in np.flatnonzero(weights).tolist()}

        return sorted(self.release_rounds(weigh, bits))

    def release_rounds(
        self,
        weigh: Callable[[Sequence[Key]], Mapping[Key, int]],
        bits: Bits | None = None,
        *,
        enough: int | None = None,
    ) -> list[Key]:
        """Release the keys that are shown, where the weights are added up elsewhere.

        Parameters
        ----------
        weigh : callable
            Called once for each round with the keys that are shown already. It returns the sum of the weights of each
            key that has any, of `weigh_key` for each unit, over at most `groups` of the unit's keys that are left,
            chosen by the unit's own. The order of the keys must not depend on the data: sort them.
        bits : Bits, optional
            Source of random bits; the operating system's by default.
        enough : int, optional
            No further round begins once so many keys are shown. That follows from what is released.

        Returns
        -------
        list of keys
            The shown keys, those of the first round first.

        Raises
        ------
        ParameterError
            If the weights are not a mapping, or one is below 1 or not an integer.
        """
        source = bits_or_system(bits)
        shown: list[Key] = []
        for place in range(1, self.rounds + 1):
            if enough is not None and len(shown) >= enough:
                break
            weights, least = weigh(tuple(shown)), self.threshold(place)
            noisy = self.noise(place).release(check_counts("weights", weights, least=1), source)
            shown += [key for key, weight in zip(weights, noisy, strict=True) if weight >= least]
        return shown

    def _share(self, place: int) -> Fraction:
        """The share of a round in rho and in delta."""
        if not 1 <= to_integer("place", place) <= self.rounds:
            raise ParameterError("place", f"must be from 1 to {self.rounds}, got {place}", fix="place=1, say")
        return Fraction(_RATIO ** (place - 1), sum(_RATIO**earlier for earlier in range(self.rounds)))


def add_weights(
    who: npt.NDArray[np.int64], codes: npt.NDArray[np.int64], size: int, most: int
) -> npt.NDArray[np.int64]:
    """The weight of each of `size` keys: unit `who[i]` holds key `codes[i]`, no pair twice, in the order of units.

    Of a unit's n > `most` pairs, numbered as they come, number p counts where p `most` mod n is below `most`: so many,
    evenly spaced. Exact below 2^43 units.
    """
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    many = np.diff(np.append(starts, len(who)))
    place = np.arange(1, len(who) + 1) - np.repeat(starts, many)
    held = np.repeat(many, many)
    counts = (held <= most) | (place * most % held < most)
    table = np.array([0, *map(weigh_key, range(1, int(min(most, many.max(initial=0))) + 1))], np.int64)
    weights = np.zeros(size, np.int64)
    np.add.at(weights, codes[counts], table[np.minimum(held[counts], most)])
    return weights


@lru_cache(maxsize=256)
def _threshold(variance: Fraction, delta: Fraction, groups: int) -> int:
    """The largest of w(t) + m(t) over t from 1 to `groups`, where m(t) is that of `_margin`.

    w falls with t and m grows, so from a to b the sum is at most w(a) + m(b). Ranges of which that may be above the
    largest sum found are halved.
    """
    best = max(weigh_key(t) + _margin(variance, delta, t) for t in (1, groups))
    ranges = [(1, groups)]
    while ranges:
        first, last = ranges.pop()
        if last - first < 2 or weigh_key(first + 1) + _margin(variance, delta, last - 1) <= best:
            continue  # its ends have been looked at
        middle = (first + last) // 2
        best = max(best, weigh_key(middle) + _margin(variance, delta, middle))
        ranges += [(first, middle), (middle, last)]
    return best


def _margin(variance: Fraction, delta: Fraction, keys: int) -> int:
    """An m with P[Z >= m] <= 1 - (1 - delta)^(1/keys), the least but for one: half of what lies beyond m - 1."""
    return tail_quantile(variance, 2 * split_delta(delta, keys)) + 1
