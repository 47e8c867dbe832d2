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

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import integer
from tacit.errors import ParameterError
from tacit.local.attributes import Make
from tacit.local.frequency import Frequency, Reports
from tacit.local.summary import Summary
from tacit.mechanisms.given import price
from tacit.privacy.loss import Pure
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import belows


@dataclass(frozen=True)
class Counted:
    """An estimated share of people, and its deviation: that of the reports, and of collisions in the table."""

    value: float
    deviation: float


@dataclass(frozen=True)
class Sketch:
    """Each person draws one of `rows` hash functions, says which, and reports the cell of their value among `width`
    cells by a frequency protocol (Apple 2017, with the protocol of your choice in place of its own).

    **Theorem.** It is epsilon-LDP: the function drawn says nothing of the value, and given it one report is sent.

    **Theorem.** Where the functions are drawn at random, with each value in each cell with the chance 1/width, on its
    own, width/(width - 1) times (the mean of the estimated shares of the value's cells, less 1/width) is unbiased. Its
    variance is at most (width/(width - 1))^2 times that of one protocol for all users at the share of the cell, plus
    the collisions: (sum of the squared shares of other values)/(rows (width - 1)), and what the draw of people adds.
    Proof: the cell's share is f plus the others' that fall into it: in the mean f + (1 - f)/width, with the variance
    sum of squares (1/width)(1 - 1/width), independent over rows.

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
        key = row.to_bytes(8, "little") + self.seed
        return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8, key=key).digest(), "little") % self.width

    def encode(self, values: Sequence[str], bits: Bits) -> tuple[npt.NDArray[np.int64], Reports]:
        """The function that each person drew, and their report."""
        drawn = belows(self.rows, len(values), bits)
        known: dict[tuple[int, str], int] = {}
        cells = np.empty(len(values), dtype=np.int64)
        for person, pair in enumerate(zip(drawn.tolist(), values, strict=True)):
            if pair not in known:
                known[pair] = self.cell(*pair)
            cells[person] = known[pair]
        return drawn, self.protocol.encode(cells, bits)

    def collect(self, sent: tuple[npt.NDArray[np.int64], Reports], survey: str = "") -> tuple[Summary, ...]:
        """A summary for each function: all that is kept."""
        drawn, reports = sent
        empty = [Summary.empty(self.protocol, f"{survey} {self.seed.hex()} {row}") for row in range(self.rows)]
        return tuple(summary.add(reports[drawn == row]) for row, summary in enumerate(empty))

    def estimate(self, summaries: Sequence[Summary], value: str) -> Counted:
        """The share of people who have this value, unbiased over the functions."""
        cells = [self.cell(row, value) for row in range(self.rows)]
        seen = [(summary, cell) for summary, cell in zip(summaries, cells, strict=True) if summary.users]
        if not seen:
            raise ParameterError("summaries", "nobody reported", fix="collect at least one report")
        users = sum(summary.users for summary, _ in seen)
        # Each report counts the same, whichever function was drawn.
        support = sum(int(summary.support[cell]) for summary, cell in seen)
        protocol, scale = self.protocol, self.width / (self.width - 1)
        mean = (support / users - protocol.q) / protocol.gap
        share = min(max(mean, 0.0), 1.0)
        # At most all other people have one value: then a collision is all or nothing.
        other = (1 - share) ** 2 * self._shared_squares(seen, users) / self.width * (1 - 1 / self.width)
        spread = protocol.variance(users, share) + share * (1 - share) / users + other
        return Counted(scale * (mean - 1 / self.width), scale * math.sqrt(spread))

    def _shared_squares(self, seen: Sequence[tuple[Summary, int]], users: int) -> float:
        """The sum of the squared shares of the functions: 1/rows where each was drawn as often."""
        return sum((summary.users / users) ** 2 for summary, _ in seen)
