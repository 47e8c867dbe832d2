"""What the key of a fit says of a network and its training, without PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

MOST_NUMBERS = 2**24
"""The most weights of a network, and the most numbers of gradients that a pass keeps."""
_PER_PASS, _PER_PRODUCT = 8e-3, 2.5e-8  # seconds


@dataclass(frozen=True)
class NetworkLoss:
    """What is minimized: "cross-entropy" of classes or "squared" error, over so many outputs."""

    name: str
    outputs: int


@dataclass(frozen=True)
class NetworkTraining:
    """A perceptron of these widths, and all that decides how it is trained but its rows and the random bits.

    Steps are those of Adam, on sums of gradients that are clipped to `clip`, with noise of `multiplier` times that;
    `stray` is the probability in each step that exact noise is not rounded Gaussian noise.
    """

    widths: tuple[int, ...]
    batch: int
    epochs: int
    learning_rate: Fraction
    clip: Fraction
    sampling: str
    rate: Fraction
    steps: int
    multiplier: Fraction
    stray: Fraction

    @property
    def parameters(self) -> int:
        """How many weights there are."""
        return sum((before + 1) * after for before, after in zip(self.widths, self.widths[1:], strict=False))

    @property
    def units_per_pass(self) -> int:
        """How many rows are taken at a time: their gradients are kept, each by itself."""
        return max(1, min(max(2 * self.batch, 256), 4096, MOST_NUMBERS // self.parameters))

    def estimate_seconds(self, rows: int) -> float:
        """About how long a training on so many rows takes, whatever they are, on one core of a few years ago."""
        passes = max(1, -(-math.ceil(self.rate * rows) // self.units_per_pass))
        return self.steps * passes * (_PER_PASS + self.units_per_pass * self.parameters * _PER_PRODUCT)
