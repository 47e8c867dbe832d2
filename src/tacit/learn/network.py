"""What the key of a fit says of a network and its training, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


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
    def work(self) -> int:
        """How many products a training takes, in the expected number of rows: a public number."""
        return self.parameters * self.batch * self.steps
