"""Count-mean sketch: shares of values from a domain of any size, such as words, in a table of fixed size.

>>> from tacit.local.hadamard import Hadamard
>>> from tacit.sampling.bits import ReplayBits
>>> words = Sketch(Hadamard, width=256, rows=32, epsilon=4)
>>> people = ["yes"] * 32_000 + ["no"] * 8_000
>>> counts = words.collect(words.encode(people, ReplayBits(b"example")))
>>> [abs(round(words.estimate(counts, word).value, 1)) for word in ("yes", "no", "perhaps")]
[0.8, 0.2, 0.0]
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import integer, within
from tacit.errors import Code, ParameterError, Refused
from tacit.local.attributes import Make
from tacit.local.frequency import Frequency, Reports, array_of
from tacit.local.parts import gathered, one_survey
from tacit.local.summary import Summary
from tacit.local.tails import binomial_ends
from tacit.local.texts import texts_of
from tacit.mechanisms.given import price, share
from tacit.privacy.loss import Pure
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import belows

_SLACK = 1e-9  # of rounding


@dataclass(frozen=True)
class Counted:
    """An estimated share of people, its deviation and its interval: of the reports, and of collisions in the table.

    `deviation` is the most it can be at this share; the interval covers with the confidence over functions and reports.
    """

    value: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class Sketch:
    """Each person draws one of `rows` hash functions, says which, and reports the cell of their value among `width`
    cells by a frequency protocol (Apple 2017, with the protocol of your choice in place of its own).

    **Theorem.** It is epsilon-LDP: the function drawn says nothing of the value, and given it one report is sent.

    In what follows the functions are drawn at random: each value is in each cell with the chance 1/w, w the width, on
    its own. The crowd of n people is fixed, a share f of it has the value in question, and r = rows.

    **Theorem** (the law). Given the functions, the reports that support the cell of the value are a sum of n coins,
    each on its own, with the mean n (q + (p - q)(f + (1 - f) K)). K is the share of pairs of a function and another
    person whose value shares the cell: an average over the functions of r independent numbers from 0 to 1 with the mean
    1/w. Proof: a person's function is drawn evenly, on its own; the chance of a report is the average over it.

    **Theorem** (variance). w/(w - 1) times (the estimated share of the cell, less 1/w) is unbiased. With c = q + (p -
    q)/w and S the sum of the squared shares of all other values, its variance is exactly
    (w/(w - 1))^2 (f p (1 - p) + (1 - f) c (1 - c))/(n (p - q)^2) + (S - (1 - f)/n)/(r (w - 1)).
    Proof: the chance of a person with another value is q + (p - q) k, where k has the mean 1/w and the variance (1/w)(1
    - 1/w)/r, shared by all who have that value. Add the mean of the coins' variance, in which the square of k counts
    against it, to the variance of their mean, which is that of (1 - f) K: S times that of k.

    **Theorem** (interval). `estimate` covers f with the confidence, over functions and reports. Proof: f + (1 - f) K is
    in Clopper and Pearson's interval for the coins except with half the miss. P[K >= t] for t above 1/w, and P[K <= t]
    below it, are at most exp(-r D), D the divergence t log(t w) + (1 - t) log((1 - t)/(1 - 1/w)) (Hoeffding 1963): a
    quarter of the miss each. Then solve for f. No crowd is excluded, not even all others with one value, so where they
    have many it is wide. The functions are fixed once the seed is: a value that collides does so in every survey with
    that seed, so choose the seed before looking, and a new one to check.

    **Theorem** (poisoning). A share m of liars moves an estimate by at most m (w/(w - 1))/(p - q) from what the same
    people's honest reports would have given, whichever functions they choose: each report counts the same in all.

    The functions are public and the same for all people: made of the seed by BLAKE2.
    """

    make: Make
    width: int
    rows: int
    epsilon: Fraction
    seed: bytes = b""

    def __post_init__(self) -> None:
        width = integer("width", self.width, least=2)
        if width & (width - 1):
            raise ParameterError("width", "must be a power of two, so that cells are equally likely", fix="width=1024")
        integer("rows", self.rows, least=1)
        if not isinstance(self.seed, bytes) or len(self.seed) > 48:
            raise ParameterError("seed", "needs at most 48 bytes", fix='seed=b"words", say')
        object.__setattr__(self, "epsilon", price(self.epsilon))

    @property
    def protocol(self) -> Frequency:
        """The protocol over the cells."""
        return self.make(self.width, self.epsilon)

    def loss(self) -> Pure:
        """What one report costs."""
        return Pure(self.epsilon)

    def cell(self, row: int, value: str) -> int:
        """The cell of a value by one of the functions."""
        key, text = row.to_bytes(8, "little") + self.seed, value.encode(errors="surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=key).digest(), "little") % self.width

    def encode(self, values: Sequence[str], bits: Bits) -> tuple[npt.NDArray[np.int64], Reports]:
        """The function that each person drew, and their report."""
        texts = texts_of("values", values)
        drawn = belows(self.rows, len(texts), bits)
        known: dict[tuple[int, str], int] = {}
        cells = np.empty(len(texts), dtype=np.int64)
        for person, pair in enumerate(zip(drawn.tolist(), texts, strict=True)):
            if pair not in known:
                known[pair] = self.cell(*pair)
            cells[person] = known[pair]
        return drawn, self.protocol.encode(cells, bits)

    def collect(self, sent: tuple[Any, Any], survey: str = "") -> tuple[Summary, ...]:
        """A summary for each function: all that is kept. If one report is bad, all are refused."""
        if not isinstance(sent, tuple | list) or len(sent) != 2:
            raise Refused(
                Code.REPORT, "there are not two lists, of functions and of reports", fix="send what encode made"
            )
        protocol, (drawn, reports) = self.protocol, (array_of(each) for each in sent)
        if drawn.ndim != 1 or (drawn.dtype.kind not in "iu" and len(drawn)):
            raise Refused(Code.REPORT, "a function is told by an integer", fix="send what encode made")
        if len(drawn) != len(protocol.well_formed(reports)):
            raise Refused(
                Code.REPORT, f"{len(drawn)} functions are told for {len(reports)} reports", fix="send a pair each"
            )
        strange = int(np.count_nonzero((drawn < 0) | (drawn >= self.rows)))
        if strange:
            what = f"{strange} of {len(drawn)} reports are by a function that is not from 0 to {self.rows - 1}"
            raise Refused(Code.REPORT, what, fix="leave them out, or collect them with the sketch they were made by")
        empty = [Summary.empty(protocol, f"{survey} {part}") for part in self._parts()]
        return tuple(summary.add(reports[drawn == row]) for row, summary in enumerate(empty))

    def estimate(self, summaries: Sequence[Summary], value: str, confidence: Any = 0.95) -> Counted:
        """The share of people who have this value, unbiased over the functions."""
        (text,), protocol = texts_of("value", [value]), self.protocol
        one_survey(summaries, [protocol] * self.rows, self._parts(), "functions of this sketch")
        users = sum(summary.users for summary in summaries)
        if not users:
            raise ParameterError("summaries", "nobody reported", fix="collect at least one report")
        # Each report counts the same, whichever function was drawn.
        support = sum(int(summary.support[self.cell(row, text)]) for row, summary in enumerate(summaries))
        chance = 1 / self.width
        found = ((support / users - protocol.q) / protocol.gap - chance) / (1 - chance)
        miss = float(1 - share("confidence", confidence))
        seen = [(end - protocol.q) / protocol.gap for end in binomial_ends(support, users, miss / 2)]
        fewest, most = collisions(self.rows, chance, miss / 4)
        low = (seen[0] - most) / (1 - most) if most < 1 else 0.0  # with few functions, all people may share the cells
        high = (seen[1] - fewest) / (1 - fewest)
        spread = self.variance(users, min(max(found, 0.0), 1.0))
        return Counted(found, math.sqrt(spread), min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))

    def variance(self, users: int, frequency: float = 0.0, others: float | None = None) -> float:
        """That of the estimate for a value of this share, over functions and reports, exactly as in the theorem.

        `others` is the sum of the squared shares of all other values; the most it can be, (1 - f)^2, if it is left out.
        """
        count, part = integer("users", users, least=1), within("frequency", frequency, Fraction(0), Fraction(1))
        rest = float(1 - part)
        least, most = rest / count, max(rest**2, rest / count)
        squares = most if others is None else float(within("others", others, Fraction(0), Fraction(1)))
        if not least * (1 - _SLACK) <= squares <= most * (1 + _SLACK):
            what = "is between (1 - frequency)/users, all different, and (1 - frequency)^2, all alike"
            raise ParameterError("others", what, fix="leave it out for the largest variance")
        protocol, scale = self.protocol, self.width / (self.width - 1)
        p, gap = protocol.p, protocol.gap
        chance = protocol.q + gap / self.width
        coins = float(part) * p * (1 - p) + rest * chance * (1 - chance)
        return coins / count * (scale / gap) ** 2 + (squares - rest / count) / (self.rows * (self.width - 1))

    def influence(self, lying: Any) -> float:
        """The most by which a share of `lying` people move an estimate, whichever functions they choose."""
        return self.protocol.influence(gathered(lying, 1)) * self.width / (self.width - 1)

    def _parts(self) -> list[str]:
        """What tells the functions of this sketch from all others, in the names of their summaries."""
        name = hashlib.blake2b(self.seed, digest_size=16).hexdigest()
        return [f"{name} {row} of {self.rows}" for row in range(self.rows)]


@lru_cache(maxsize=256)
def collisions(rows: int, chance: float, miss: float) -> tuple[float, float]:
    """Two ends of the average of so many independent numbers from 0 to 1 with this mean, each but for the miss.

    It is Hoeffding's bound exp(-rows D), solved by bisection, with the ends kept on the far side.
    """

    def is_beyond(end: float) -> bool:
        """Whether the average is as far as this end with at most the miss."""
        terms = [part * math.log(part / mean) for part, mean in ((end, chance), (1 - end, 1 - chance)) if part > 0]
        return rows * sum(terms) >= -math.log(miss)

    def last(far: float) -> float:
        """The end nearest to the mean that is, or the far one."""
        near = chance
        for _ in range(60 if is_beyond(far) else 0):
            middle = (near + far) / 2
            near, far = (near, middle) if is_beyond(middle) else (middle, far)
        return far

    return last(0.0), last(1.0)
