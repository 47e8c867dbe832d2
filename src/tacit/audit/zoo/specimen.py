"""One animal of the zoo: a mechanism, what is claimed of it, and what is true."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from tacit.accounting.exact import Matrix
from tacit.audit.claim import Claim

Law = Mapping[Hashable, float]
Evidence = Literal["none", "samples", "exact"]
ONE = Claim.epsilon(1)


class Mechanism(Protocol):
    """Any number of independent outputs at once."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """So many outputs, a row each."""


@dataclass(frozen=True)
class Specimen:
    """A mechanism with its claim, and a pair of neighbors on which it shows what it is.

    `true` is the least value of the claim's parameter that holds on this pair (at the claim's delta); `sound` says
    that the claim holds on every pair. `evidence` is what refutes a claim that does not: samples, or only an exact
    computation. `law(data)` is the law of one output, where it is known; what is left out adds up to less than 1e-9.
    """

    name: str
    says: str
    claim: Claim
    true: float
    sound: bool
    mechanism: Mechanism = field(repr=False)
    one: Any
    other: Any
    why: str
    evidence: Evidence = "none"
    law: Callable[[Any], Law] | None = field(default=None, repr=False)

    def exact(self) -> Matrix | None:
        """The table of both laws; None where the law is not known."""
        if self.law is None:
            return None
        one, other = self.law(self.one), self.law(self.other)
        outputs = dict.fromkeys([*one, *other])
        return Matrix([[side.get(output, 0.0) for output in outputs] for side in (one, other)])


def mistake(
    name: str,
    says: str,
    true: float,
    mechanism: Mechanism,
    one: Any,
    other: Any,
    why: str,
    *,
    claim: Claim = ONE,
    evidence: Evidence = "samples",
    law: Callable[[Any], Law] | None = None,
) -> Specimen:
    """A specimen whose claim is wrong; it claims 1 where nothing else is said."""
    return Specimen(name, says, claim, true, False, mechanism, one, other, why, evidence, law)
