"""RAPPOR: a permanent answer that is kept for life, and noise on top of it each time it is sent.

>>> from tacit.sampling.bits import ReplayBits
>>> browser = Rappor(domain=8, epsilon=4, low=Fraction(1, 4), high=Fraction(3, 4))
>>> round(browser.after(1), 3), round(browser.after(3), 3), round(browser.after(10**6), 3)
(1.604, 3.526, 4.0)
>>> kept = browser.permanent([3, 5, 5], ReplayBits(b"once"))  # stays with each person
>>> browser.support(browser.report(kept, ReplayBits(b"today"))).shape
(8,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from tacit.arithmetic import to_integer, to_interval, working_precision
from tacit.errors import ParameterError
from tacit.local import packed_bits
from tacit.local.frequency_oracle import Reports
from tacit.local.unary_encoding import SymmetricUnaryEncoding, UnaryEncoding
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.packed import Coins


@dataclass(frozen=True)
class Rappor(UnaryEncoding):
    """Keeps `SymmetricUnaryEncoding` bits of the value for life; each report sends a kept 1 as 1 with the probability
    `high`, a kept 0 as 1 with the probability `low` (Erlingsson, Pihur, Korolova 2014, with a bit for each value).

    So `epsilon` is the price of a lifetime, and that of a single report is `after(1)`.

    **Theorem.** For a value that stays the same, all reports of a lifetime together are epsilon-DP. The first t of them
    are exactly `after(t)`-DP, which grows with t toward epsilon.

    **Proof.** Reports are drawn from what is kept, which is epsilon-DP: post-processing. Two values differ in two bits.
    With k = e^(epsilon/2)/(e^(epsilon/2) + 1) the probability that a kept bit is true, t ones have the probability
    k high^t + (1 - k) low^t at the value and (1 - k) high^t + k low^t elsewhere, whose quotient is the largest that any
    t bits have, since it is monotone in the quotient of their probabilities under a kept 1 and 0. For zeros elsewhere
    put 1 - low for high and 1 - high for low. The two quotients multiply.

    **A value that changes** is kept anew. Then the reports of a lifetime are not protected by one epsilon: each new
    value costs another. Between two histories that change and return at the same times, any t reports cost at most
    t after(1). Proof: it is the sum of after(u) over the values, with u reports each, and after(u) <= u after(1). For
    log((k + (1 - k) z)/(1 - k + k z)) is 0 at z = 1 and concave in log(1/z) >= 0: its derivative there is
    (2k - 1)/(k^2 + (1 - k)^2 + k (1 - k) (z + 1/z)), which falls. Between histories that change at different times that
    is not so: *that* a value changed shows in every bit, and costs more the more values there are.
    """

    kind: ClassVar[str] = "rappor"
    low: Fraction = Fraction(1, 4)
    high: Fraction = Fraction(3, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = check_probability("low", self.low), check_probability("high", self.high)
        if not low < high:
            raise ParameterError("high", "must be above low", fix="low=0.25, high=0.75, say")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        # Part of the name, so that summaries with other noise do not merge.
        object.__setattr__(self, "kind", f"rappor {low} {high}")

    def chances(self, root: Any) -> tuple[Any, Any]:
        """p and q of one report, over both draws."""
        truth, lie = root / (root + 1), 1 / (root + 1)
        return self._sent(truth, lie), self._sent(lie, truth)

    def _sent(self, one: Any, zero: Any) -> Any:
        high, low = self.high, self.low
        return one * high.numerator / high.denominator + zero * low.numerator / low.denominator

    def encode(self, values: Any, bits: Bits) -> Reports:
        """One report each of people who keep nothing: the distribution of a `report` of a fresh `permanent`.

        Each call costs `after(1)` once more, without end. Who is asked again sends a `report` of what they keep.
        """
        return super().encode(values, bits)

    def permanent(self, values: Any, bits: Bits) -> Reports:
        """What each person keeps: drawn once for each value that they ever have, never sent, as secret as the value."""
        return SymmetricUnaryEncoding(self.domain, self.epsilon).encode(values, bits)

    def report(self, kept: Any, bits: Bits) -> Reports:
        """What each person sends today, from what they keep."""
        rows = packed_bits.as_packed_rows(kept, self.domain)
        ones, zeros = (
            coins.octets(rows.size, bits).reshape(rows.shape) for coins in _response_coins(self.low, self.high)
        )
        sent = (rows & ones) | (~rows & zeros)
        sent[:, -1] &= ~packed_bits.padding_mask(self.domain)
        return sent

    def loss(self) -> PureDp:
        """What all reports of what is kept for one value cost together, however many there are."""
        return PureDp(self.epsilon)

    def after(self, reports: int) -> float:
        """The exact epsilon of so many reports of one value, rounded up."""
        times = to_integer("reports", reports, least=0)
        if not times:
            return 0.0
        with working_precision(256):
            truth, lie = (
                1 / (1 + (-to_interval(self.epsilon) / 2).exp()),
                1 / (1 + (to_interval(self.epsilon) / 2).exp()),
            )
            found = to_interval(Fraction(0))
            for one, zero in ((self.high, self.low), (1 - self.low, 1 - self.high)):
                rest = to_interval(zero / one) ** times
                found += ((truth + lie * rest) / (lie + truth * rest)).log()
            return min(math.nextafter(float(found), math.inf), float(self.epsilon))


@lru_cache(maxsize=64)
def _response_coins(low: Fraction, high: Fraction) -> tuple[Coins, Coins]:
    """The coins of a kept 1 and of a kept 0."""
    return Coins(high), Coins(low)
