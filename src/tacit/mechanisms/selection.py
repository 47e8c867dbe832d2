"""What the mechanisms that choose one of a public list by its score have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from tacit.arithmetic import Number, to_integer
from tacit.frozen import set_fields
from tacit.mechanisms.validation import check_epsilon, check_flag


@dataclass(frozen=True, init=False)
class SelectionMechanism:
    """A choice that is epsilon-DP, by integer scores that move by at most `sensitivity` between neighbors.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one choice, above 0 and at most 2^64. The error is proportional to 1/epsilon.
    sensitivity : int, default 1
        The most that a score moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all scores move in the same direction between neighbors, as counts do under add-remove and not under
        replace. It halves the error; where it is not true, the choice costs up to twice epsilon.

    Raises
    ------
    ParameterError
        If epsilon or the sensitivity is out of range, or `monotone` is not a bool.
    """

    epsilon: Fraction
    sensitivity: int = 1
    monotone: bool = False

    def __init__(self, epsilon: Number, sensitivity: int = 1, monotone: bool = False) -> None:
        set_fields(
            self,
            epsilon=check_epsilon(epsilon),
            sensitivity=to_integer("sensitivity", sensitivity, least=1),
            monotone=check_flag("monotone", monotone),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, sensitivity: int, monotone: bool = False) -> Self:
        """Return the mechanism with the least error that is epsilon-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one choice, above 0 and at most 2^64.
        sensitivity : int
            The most that a score moves between neighbors, at least 0. At 0 the scores are constants, from which the
            choice is that of sensitivity 1.
        monotone : bool, default False
            Whether all scores move in the same direction between neighbors.

        Returns
        -------
        SelectionMechanism
            The calibrated mechanism, of the class it is called on.

        Raises
        ------
        ParameterError
            If epsilon or the sensitivity is out of range, or `monotone` is not a bool.
        """
        return cls(epsilon, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone)

    @property
    def factor(self) -> Fraction:
        """The weight of one step of a score: epsilon/(2 sensitivity), or epsilon/sensitivity where `monotone`."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)
