"""One animal of the zoo: a mechanism, what is claimed of it, and what is true."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.audit.claim import Claim

ProbabilityMap = Mapping[Hashable, float]
Evidence = Literal["none", "samples", "exact"]
EPSILON_ONE = Claim.epsilon(1)


class SamplingFunction(Protocol):
    """Any number of independent outputs at once."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """So many outputs, a row each."""


@dataclass(frozen=True)
class KnownMechanism:
    """A mechanism with its claim, a pair of neighbors, and the parameter that is true of them.

    Attributes
    ----------
    name : str
        The name by which `specimen` finds it.
    says : str
        A description in a sentence.
    claim : Claim
        The guarantee that is claimed for it.
    true : float
        The least value of the claim's parameter that holds on this pair, at the claim's delta.
    sound : bool
        Whether the claim holds on every pair.
    mechanism : callable
        Draws outputs: `mechanism(data, size, rng)` gives an array with a row for each.
    one, other : object
        A pair of neighbors on which the mechanism reaches `true`.
    why : str
        Why the claim holds, or which mistake breaks it.
    evidence : str
        What refutes a wrong claim: "samples", "exact" where only a computation does, or "none".
    distribution : callable or None
        Maps an input to the probabilities of the outputs, where they are known; what is left out adds up to less
        than 1e-9.

    Examples
    --------
    >>> from tacit.audit import specimen
    >>> specimen("noise-reused").true
    inf
    """

    name: str
    says: str
    claim: Claim
    true: float
    sound: bool
    mechanism: SamplingFunction = field(repr=False)
    one: Any
    other: Any
    why: str
    evidence: Evidence = "none"
    distribution: Callable[[Any], ProbabilityMap] | None = field(default=None, repr=False)

    def exact(self) -> TransitionMatrix | None:
        """Return the table of both inputs' output probabilities.

        Returns
        -------
        TransitionMatrix or None
            A row for each of the two inputs; None where the probabilities are not known.
        """
        if self.distribution is None:
            return None
        one, other = self.distribution(self.one), self.distribution(self.other)
        outputs = dict.fromkeys([*one, *other])
        return TransitionMatrix([[side.get(output, 0.0) for output in outputs] for side in (one, other)])


def broken_mechanism(
    name: str,
    says: str,
    true: float,
    mechanism: SamplingFunction,
    one: object,
    other: object,
    why: str,
    *,
    claim: Claim = EPSILON_ONE,
    evidence: Evidence = "samples",
    distribution: Callable[[Any], ProbabilityMap] | None = None,
) -> KnownMechanism:
    """A specimen whose claim is wrong; it claims 1 where nothing else is said."""
    return KnownMechanism(name, says, claim, true, False, mechanism, one, other, why, evidence, distribution)
