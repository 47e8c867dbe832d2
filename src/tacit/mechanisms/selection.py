"""What the mechanisms that choose one of a public list by its score have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from tacit.arithmetic import to_integer
from tacit.mechanisms.validation import check_epsilon, check_flag


@dataclass(frozen=True)
class SelectionMechanism:
    """A choice at the price `epsilon`, by integer scores that move by at most `sensitivity` between neighbors.

    `monotone` says that all of them move in the same direction, as counts do under add-remove and not under replace.
    """

    epsilon: Fraction
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", to_integer("sensitivity", self.sensitivity, least=1))
        object.__setattr__(self, "monotone", check_flag("monotone", self.monotone))

    @classmethod
    def calibrated(cls, epsilon: Any, sensitivity: int, monotone: bool = False) -> Self:
        """The sharpest choice that is epsilon-DP for scores that move by at most `sensitivity`.

        Where nothing can move, the choice is that of sensitivity one.
        """
        return cls(epsilon, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone)

    @property
    def factor(self) -> Fraction:
        """epsilon/(2 sensitivity), and epsilon/sensitivity where `monotone`: what a step of a score is worth."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)
