"""RAPPOR: a permanent randomized response, and an instantaneous one of it for each report.

>>> from tacit.sampling.bits import ReplayBits
>>> browser = Rappor(domain=8, epsilon=4, low=Fraction(1, 4), high=Fraction(3, 4))
>>> [round(browser.epsilon_after(reports), 3) for reports in (1, 3, 10**6)]
[1.604, 3.526, 4.0]
>>> permanent = browser.draw_permanent([3, 5, 5], ReplayBits(b"once"))  # stays on each user's device
>>> browser.support(browser.report(permanent, ReplayBits(b"today"))).shape
(8,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_interval, working_precision
from tacit.errors import ParameterError
from tacit.local import packed_bits
from tacit.local.frequency_oracle import Reports
from tacit.local.unary_encoding import SymmetricUnaryEncoding, UnaryEncoding
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.packed import Coins

if TYPE_CHECKING:
    from tacit.local.frequency_oracle import Exact


@dataclass(frozen=True)
class Rappor(UnaryEncoding):
    """RAPPOR (Erlingsson, Pihur, Korolova 2014), with a bit for each value: a permanent and an instantaneous response.

    The permanent randomized response of a value is a `SymmetricUnaryEncoding` of it, drawn once and stored. Each report
    sends a stored 1 as 1 with the probability `high`, a stored 0 as 1 with the probability `low`. So `epsilon` is the
    privacy loss of all reports on one value, and that of a single report is `epsilon_after(1)`.

    **Theorem.** For a value that stays the same, all reports together are epsilon-DP. The first t of them are exactly
    a(t)-DP, with a = `epsilon_after`, which grows with t toward epsilon.

    **Proof.** Reports are drawn from the permanent response, which is epsilon-DP: post-processing. Two values differ in
    two bits. With k = e^(epsilon/2)/(e^(epsilon/2) + 1) the probability that a stored bit is true, t ones have the
    probability k high^t + (1 - k) low^t at the value and (1 - k) high^t + k low^t elsewhere, whose quotient is the
    largest that any t bits have, since it is monotone in the quotient of their probabilities under a stored 1 and 0.
    For zeros elsewhere put 1 - low for high and 1 - high for low. The two quotients multiply.

    **A value that changes** needs a new permanent response. Then no single epsilon protects all reports: each new value
    costs another. Between two histories that change and return at the same times, any t reports lose at most t a(1).
    Proof: the loss is the sum of a(u) over the values, with u reports each, and a(u) <= u a(1). For
    log((k + (1 - k) z)/(1 - k + k z)) is 0 at z = 1 and concave in log(1/z) >= 0: its derivative there is
    (2k - 1)/(k^2 + (1 - k)^2 + k (1 - k) (z + 1/z)), which falls. Between histories that change at different times that
    is not so: *that* a value changed shows in every bit, and the loss grows with the number of values.

    Parameters
    ----------
    domain : int
        The number of values, from 2 to 2^24. A report has a bit for each value.
    epsilon : number
        The privacy loss of all reports on one value together, from 0.000001 to 100.
    low : number, default 1/4
        The probability, between 0 and 1, that a stored 0 is sent as 1.
    high : number, default 3/4
        The probability, above `low` and below 1, that a stored 1 is sent as 1. The closer it is to `low`, the less a
        single report reveals, and the larger the error.

    Examples
    --------
    >>> from tacit.local import Rappor
    >>> from tacit.sampling.bits import ReplayBits
    >>> browser = Rappor(domain=8, epsilon=4, low=0.25, high=0.75)
    >>> permanent = browser.draw_permanent([3, 5, 5], ReplayBits(b"once"))  # stored, never sent
    >>> browser.report(permanent, ReplayBits(b"today")).shape  # sent every day: eight bits each
    (3, 1)
    >>> [round(browser.epsilon_after(reports), 2) for reports in (1, 2, 100)]
    [1.6, 2.83, 4.0]
    """

    kind: ClassVar[str] = "rappor"
    low: Fraction = Fraction(1, 4)
    high: Fraction = Fraction(3, 4)

    if TYPE_CHECKING:  # any number is converted below

        def __init__(
            self, domain: int, epsilon: Number, low: Number = Fraction(1, 4), high: Number = Fraction(3, 4)
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = check_probability("low", self.low), check_probability("high", self.high)
        if not low < high:
            raise ParameterError("high", "must be above low", fix="low=0.25, high=0.75")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        # Part of the name, so that summaries with other noise do not merge.
        object.__setattr__(self, "kind", f"rappor {low} {high}")

    def _support_probabilities(self, root: Exact) -> tuple[Exact, Exact]:
        """Return p and q of one report, over both randomizations."""
        truth, flip = root / (root + 1), 1 / (root + 1)
        return self._one_probability(truth, flip), self._one_probability(flip, truth)

    def _one_probability(self, one: Exact, zero: Exact) -> Exact:
        """Return P[a bit is sent as 1], from the probabilities that the stored bit is 1 and 0."""
        high, low = self.high, self.low
        return one * high.numerator / high.denominator + zero * low.numerator / low.denominator

    def encode(self, values: npt.ArrayLike, bits: Bits) -> Reports:
        """Randomize the values of users who store nothing, one report each.

        The distribution is that of a `report` of a fresh `draw_permanent`. Each call costs `epsilon_after(1)` again,
        without a limit. Whoever is asked repeatedly sends a `report` of a stored permanent response instead.

        Parameters
        ----------
        values : array_like of int
            One value for each user, from 0 to domain - 1. With two values, booleans are accepted.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        ndarray of uint8, shape (users, bytes)
            One report for each user: a bit for each value, eight to a byte.

        Raises
        ------
        ParameterError
            Where a value is not an integer of the domain.
        """
        return super().encode(values, bits)

    def draw_permanent(self, values: npt.ArrayLike, bits: Bits) -> Reports:
        """Draw the permanent randomized response of each user: once for each value that they ever have.

        Parameters
        ----------
        values : array_like of int
            One value for each user, from 0 to domain - 1. With two values, booleans are accepted.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        ndarray of uint8, shape (users, bytes)
            What each user's device stores. It is never sent, and as secret as the value.

        Raises
        ------
        ParameterError
            Where a value is not an integer of the domain.
        """
        return SymmetricUnaryEncoding(self.domain, self.epsilon).encode(values, bits)

    def report(self, permanent: npt.ArrayLike, bits: Bits) -> Reports:
        """Draw the instantaneous randomized response: today's report of each user.

        Parameters
        ----------
        permanent : array_like of uint8, shape (users, bytes)
            The permanent responses, as `draw_permanent` returned them.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        ndarray of uint8, shape (users, bytes)
            One report for each user: a bit for each value, eight to a byte.

        Raises
        ------
        Refused
            With the code `report`, where the permanent responses have another shape or type.
        """
        rows = packed_bits.as_packed_rows(permanent, self.domain)
        ones, zeros = (
            coins.octets(rows.size, bits).reshape(rows.shape) for coins in _response_coins(self.low, self.high)
        )
        sent = (rows & ones) | (~rows & zeros)
        sent[:, -1] &= ~packed_bits.padding_mask(self.domain)
        return sent

    def loss(self) -> PureDp:
        """Return the privacy loss of all reports on one value together, however many there are.

        Returns
        -------
        PureDp
            Pure differential privacy with this `epsilon`. That of a single report is `epsilon_after(1)`.
        """
        return PureDp(self.epsilon)

    def epsilon_after(self, reports: int) -> float:
        """Compute the exact epsilon of so many reports on one value.

        Parameters
        ----------
        reports : int
            The number of reports, at least 0, that are drawn from one permanent response.

        Returns
        -------
        float
            The epsilon, rounded up; it grows with the reports toward `epsilon`.
        """
        times = to_integer("reports", reports, least=0)
        if not times:
            return 0.0
        with working_precision(256):
            truth, flip = (
                1 / (1 + (-to_interval(self.epsilon) / 2).exp()),
                1 / (1 + (to_interval(self.epsilon) / 2).exp()),
            )
            found = to_interval(Fraction(0))
            for one, zero in ((self.high, self.low), (1 - self.low, 1 - self.high)):
                rest = to_interval(zero / one) ** times
                found += ((truth + flip * rest) / (flip + truth * rest)).log()
            return min(math.nextafter(float(found), math.inf), float(self.epsilon))


@lru_cache(maxsize=64)
def _response_coins(low: Fraction, high: Fraction) -> tuple[Coins, Coins]:
    """Return the samplers for a stored 1 and for a stored 0."""
    return Coins(high), Coins(low)
