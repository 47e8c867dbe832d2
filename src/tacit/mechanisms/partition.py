"""Partition selection: which private keys may be shown, by the number of units that hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from tacit.arithmetic import Number, certified_floor, to_integer, to_interval, to_rational_between
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.privacy.loss import ApproximateDp
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import is_below
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

Key = TypeVar("Key")
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
LEAST_DELTA, MOST_DELTA = Fraction(1, 10**100), Fraction(49, 100)
_WORD = 64


@dataclass(frozen=True, init=False)
class PartitionSelection:
    """Keeps each key with a probability p(n) that depends on the number n of units that hold it, n = 0 never.

    With e = epsilon/groups, d = share(delta, groups) and p(0) = 0, the distribution is

        p(n + 1) = min(exp(e) p(n) + d, 1 - exp(-e) (1 - p(n) - d), 1).

    **Theorem.** If between neighbors at most `groups` keys change their number of units, each by at most one, the set
    of kept keys is (epsilon, delta)-DP. No rule that is (e, d)-DP for one key keeps it more often, for any n.

    Proof. One key is kept or not, so (e, d)-DP for n against n + 1 is four inequalities: p(n+1) <= exp(e) p(n) + d,
    1 - p(n) <= exp(e) (1 - p(n+1)) + d, and the two with n and n + 1 exchanged, which hold since p grows. The recursion
    takes the largest p(n+1) that the first two allow, and both bounds grow with p(n): hence the optimum (Desfontaines,
    Voss, Gipson, Mandayam 2022). Keys are decided independently, and `groups` mechanisms that are
    (e, d)-DP compose to (groups e, 1 - (1 - d)^groups)-DP (Kairouz, Oh, Viswanath 2015, theorem 3.3 with i = 0).

    Under REPLACE a unit leaves k keys and joins k others: groups = 2k. `law` gives p(n) as a certified interval.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one selection, from 10^-9 to 10^6.
    delta : number
        Probability of showing a key that only one unit holds, from 10^-100 to 0.49. Far below one over the number of
        units; the number of units that a key needs grows with ln(1/delta).
    groups : int, default 1
        How many keys one unit may change, at least 1. Epsilon and delta are divided among them.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    Threshold : Releases noisy counts too, and keeps fewer keys.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> selection = PartitionSelection.calibrated(epsilon=1, delta=1e-5)
    >>> selection.threshold(), selection.always()
    (12, 23)
    >>> selection.release({"flu": 400, "measles": 1}, ReplayBits(b"example"))
    ['flu']
    """

    epsilon: Fraction
    delta: Fraction
    groups: int = 1

    def __init__(self, epsilon: Number, delta: Number, groups: int = 1) -> None:
        set_fields(
            self,
            epsilon=to_rational_between("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON),
            delta=to_rational_between("delta", delta, LEAST_DELTA, MOST_DELTA),
            groups=to_integer("groups", groups, least=1),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, delta: Number, groups: int = 1) -> PartitionSelection:
        """Return the mechanism that keeps the most keys and is (epsilon, delta)-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one selection, from 10^-9 to 10^6.
        delta : number
            Probability of showing a key that only one unit holds, from 10^-100 to 0.49.
        groups : int, default 1
            How many keys one unit may change, at least 1.

        Returns
        -------
        PartitionSelection
            The calibrated mechanism.
        """
        return cls(epsilon, delta, groups)

    def loss(self) -> ApproximateDp:
        """Return the privacy loss of one selection.

        Returns
        -------
        ApproximateDp
            What `tacit.accounting` composes.
        """
        return ApproximateDp(self.epsilon, self.delta)

    def law(self, units: int) -> arb:
        """Return the probability that a key is kept.

        Parameters
        ----------
        units : int
            How many units hold the key, at least 0.

        Returns
        -------
        arb
            p(units), as a certified interval at the working precision.
        """
        return _chance(
            self.epsilon / self.groups, split_delta(self.delta, self.groups), to_integer("units", units, least=0)
        )

    def release(self, units: Mapping[Key, int], bits: Bits | None = None) -> list[Key]:
        """Release the keys that are kept.

        Every key takes one word of randomness, certain ones too; more with a probability of 2^-64.

        Parameters
        ----------
        units : mapping of key to int
            How many units hold each key, at least 0. The order of the keys must not depend on the data: sort them.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        list of keys
            The kept keys, in the order given.

        Raises
        ------
        ParameterError
            If `units` is not a mapping, or a number is negative or not an integer.
        """
        bits = bits_or_system(bits)
        numbers = check_counts("units", units, least=0)
        cuts = {n: self._cut(n) for n in set(numbers)}
        words = bits.words(len(numbers)).tolist()
        return [
            key
            for key, n, word in zip(units, numbers, words, strict=True)
            if word < cuts[n] or (word == cuts[n] and is_below(word, _WORD, bits, partial(self.law, n)))
        ]

    def threshold(self) -> int:
        """Return the least number of units with which a key is kept at least every second time.

        Returns
        -------
        int
            The least n with p(n) >= 1/2. It does not depend on the data.
        """
        low, high = 1, self.always()
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._cut(middle) >= 1 << (_WORD - 1) else (middle + 1, high)
        return low

    def always(self) -> int:
        """Return the least number of units with which a key is always kept.

        Returns
        -------
        int
            The least n with p(n) = 1. It does not depend on the data.
        """
        return sum(_phases(self.epsilon / self.groups, split_delta(self.delta, self.groups))) + 1

    def _cut(self, units: int) -> int:
        return _cut(self.epsilon / self.groups, split_delta(self.delta, self.groups), units)


def check_counts(name: str, numbers: Mapping[Key, int], least: int) -> list[int]:
    """The integers of a mapping of keys, in its order."""
    if not isinstance(numbers, Mapping):
        raise ParameterError(name, f"needs a mapping, got {type(numbers).__name__}", fix=f'{name}={{"flu": 400}}, say')
    return [to_integer(name, number, least) for number in numbers.values()]


@lru_cache(maxsize=256)
def split_delta(delta: Fraction, groups: int) -> Fraction:
    """1 - (1 - delta)^(1/groups), rounded down in its seventieth binary digit; exact for one group."""
    if groups == 1:
        return delta
    scale = 70 + math.ceil(groups / delta).bit_length()
    return Fraction(certified_floor(lambda: split_delta_interval(delta, groups) * 2**scale, 2 * scale), 2**scale)


def split_delta_interval(delta: Fraction, groups: int) -> arb:
    """1 - (1 - delta)^(1/groups), as an interval at the working precision."""
    return -((-to_interval(delta)).log1p() / groups).expm1()


@lru_cache(maxsize=256)
def _phases(e: Fraction, d: Fraction) -> tuple[int, int]:
    """For how many n the first bound of the recursion is the least, and for how many more the second is below 1.

    With a = exp(e), the first is the least while p(n) <= (1 - d)/(1 + a), where p(n) = d (a^n - 1)/(a - 1). Then, with
    c = 1 - p, c(n + 1) = (c(n) - d)/a, which stays positive for m steps while a^m < 1 + c (a - 1)/d. None of the two
    logarithms is a multiple of e: that would be an equation for a, which is transcendental, and for d < 1/2 none of the
    two is an identity.
    """

    def first() -> arb:
        a = to_interval(e).exp()
        return ((a - 1 + 2 * to_interval(d)) / ((a + 1) * to_interval(d))).log() / to_interval(e)

    rising = 1 + certified_floor(first, 256)

    def second() -> arb:
        rest = 1 - _rising(e, d, rising)
        return (1 + rest * to_interval(e).expm1() / to_interval(d)).log() / to_interval(e)

    return rising, certified_floor(second, 256)


def _rising(e: Fraction, d: Fraction, n: int) -> arb:
    """d (a^n - 1)/(a - 1)."""
    return to_interval(d) * to_interval(e * n).expm1() / to_interval(e).expm1()


def _chance(e: Fraction, d: Fraction, n: int) -> arb:
    """p(n) at the working precision."""
    from flint import arb

    rising, falling = _phases(e, d)
    if n <= 1:
        return to_interval(d) if n else arb(0)
    if n <= rising:
        return _rising(e, d, n)
    if n > rising + falling:
        return arb(1)
    return 1 - _falling(e, d, n)


def _falling(e: Fraction, d: Fraction, n: int) -> arb:
    """1 - p(n) where the second bound is the least: a^-m c - d (a^-1 + ... + a^-m), m steps after 1 - p was c."""
    rising, _ = _phases(e, d)
    less = to_interval(e * (n - rising))
    return (1 - _rising(e, d, rising)) * (-less).exp() + to_interval(d) * (-less).expm1() / to_interval(e).expm1()


@lru_cache(maxsize=1 << 16)
def _cut(e: Fraction, d: Fraction, n: int) -> int:
    """floor(2^64 p(n)). From n = 2 on p(n) is 1 or irrational: a polynomial in exp(e), which is transcendental."""
    if n <= 1:
        return int(n * d * 2**_WORD)
    rising, falling = _phases(e, d)
    if n <= rising:
        return certified_floor(lambda: _rising(e, d, n) * 2**_WORD, 256)
    if n <= rising + falling:  # from the complement, which may be tiny
        return (1 << _WORD) - 1 - certified_floor(lambda: _falling(e, d, n) * 2**_WORD, 256)
    return 1 << _WORD
