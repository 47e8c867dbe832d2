"""What was done to the data, as frozen data. Accountants read it; nothing here adds anything up.

A leaf keeps the distribution, its scale and the integer sensitivity, so that a better accountant can price an old
ledger again.

>>> loss = Compose((LaplaceNoise(Fraction(10), 1), Repeat(GaussianNoise(Fraction(25), 1), 3)))
>>> decode(encode(loss)) == loss
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from tacit.errors import ParameterError
from tacit.privacy.unit import Neighbors


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent discrete Laplace noise of `scale` on integers that move by at most `sensitivity` in L1."""

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        _need(self.scale > 0 and self.sensitivity >= 0, self)


@dataclass(frozen=True)
class GaussianNoise:
    """Independent discrete Gaussian noise, P(k) proportional to exp(-k^2 / (2 variance)), on integers of which at most
    `coordinates` move, each by at most `shift`."""

    variance: Fraction
    shift: int
    coordinates: int = 1

    def __post_init__(self) -> None:
        _need(self.variance > 0 and self.shift >= 0 and self.coordinates >= 1, self)


@dataclass(frozen=True)
class ContinuousLaplaceNoise:
    """Real Laplace noise of `scale` on a number that moves by at most one. For comparison: Tacit samples integers."""

    scale: Fraction

    def __post_init__(self) -> None:
        _need(self.scale > 0, self)


@dataclass(frozen=True)
class ContinuousGaussianNoise:
    """Real Gaussian noise of standard deviation `sigma` on a vector that moves by at most one in L2."""

    sigma: Fraction

    def __post_init__(self) -> None:
        _need(self.sigma > 0, self)


@dataclass(frozen=True)
class PureDp:
    """Anything that is epsilon-DP; randomized response loses exactly this."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _need(self.epsilon >= 0, self)


@dataclass(frozen=True)
class BoundedRange:
    """Anything whose privacy loss lies in an interval of length epsilon, as that of the exponential mechanism does."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _need(self.epsilon >= 0, self)


@dataclass(frozen=True)
class ApproximateDp:
    """Anything that is (epsilon, delta)-DP."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _need(self.epsilon >= 0 and 0 <= self.delta <= 1, self)


@dataclass(frozen=True)
class ConcentratedDp:
    """Anything that is rho-zCDP."""

    rho: Fraction

    def __post_init__(self) -> None:
        _need(self.rho >= 0, self)


@dataclass(frozen=True)
class Compose:
    """All the parts were done to the same data, each knowing the outcome of those before it."""

    parts: tuple[Loss, ...]


@dataclass(frozen=True)
class Repeat:
    """The same was done `times` times, with fresh randomness each time."""

    loss: Loss
    times: int

    def __post_init__(self) -> None:
        _need(self.times >= 0, self)


@dataclass(frozen=True)
class Parallel:
    """The parts were done to disjoint sets of units: a unit is in one part, and under REPLACE may move to another."""

    parts: tuple[Loss, ...]
    neighbors: Neighbors


@dataclass(frozen=True)
class Sampled:
    """It was done to a random part of the units, each in it with probability `rate` on its own; add-remove."""

    loss: Loss
    rate: Fraction

    def __post_init__(self) -> None:
        _need(0 <= self.rate <= 1, self)


@dataclass(frozen=True)
class Group:
    """The same loss, for `size` units that change together."""

    loss: Loss
    size: int

    def __post_init__(self) -> None:
        _need(self.size >= 1, self)


Leaf = (
    LaplaceNoise
    | GaussianNoise
    | ContinuousLaplaceNoise
    | ContinuousGaussianNoise
    | PureDp
    | BoundedRange
    | ApproximateDp
    | ConcentratedDp
)
Loss = Leaf | Compose | Repeat | Parallel | Sampled | Group

# The closed table of tags. A tag is never given a new meaning.
# How a loss is stored: its tag, and a name for each of its fields in their order, whatever the attributes are called.
_STORED: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "laplace": (LaplaceNoise, ("scale", "sensitivity")),
    "gaussian": (GaussianNoise, ("variance", "shift", "coordinates")),
    "continuous-laplace": (ContinuousLaplaceNoise, ("scale",)),
    "continuous-gaussian": (ContinuousGaussianNoise, ("sigma",)),
    "pure": (PureDp, ("epsilon",)),
    "bounded-range": (BoundedRange, ("epsilon",)),
    "approximate": (ApproximateDp, ("epsilon", "delta")),
    "concentrated": (ConcentratedDp, ("rho",)),
    "compose": (Compose, ("parts",)),
    "repeat": (Repeat, ("loss", "times")),
    "parallel": (Parallel, ("parts", "neighbors")),
    "sampled": (Sampled, ("loss", "rate")),
    "group": (Group, ("loss", "size")),
}
_TAGS = {kind: tag for tag, (kind, _) in _STORED.items()}
_NUMBERS = {"scale", "variance", "sigma", "epsilon", "delta", "rho", "rate"}
_INTEGERS = {"sensitivity", "shift", "coordinates", "times", "size"}


def encode(loss: Loss) -> str:
    """The loss as canonical JSON: equal losses give equal text."""
    return json.dumps(_plain(loss), separators=(",", ":"), sort_keys=True)


def decode(text: str) -> Loss:
    """The loss that `encode` wrote. Only the tags above exist; anything else is a ValueError."""
    try:
        found: Loss = _loss(json.loads(text))
        return found
    except (KeyError, TypeError, RecursionError, ParameterError) as problem:
        raise ValueError(f"no such loss: {text:.200}") from problem


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Fraction() | Neighbors():
            return str(value)
        case int():
            return value
    tag = _TAGS[type(value)]
    attributes = (getattr(value, field.name) for field in fields(value))
    return {"did": tag} | {name: _plain(each) for name, each in zip(_STORED[tag][1], attributes, strict=True)}


def _loss(plain: Any) -> Any:
    if not isinstance(plain, Mapping):
        raise ValueError(f"no such loss: {plain!r:.200}")
    kind, names = _STORED[plain["did"]]
    if set(plain) != {"did", *names}:
        raise ValueError(f"no such loss: {plain!r:.200}")
    return kind(*(_field(name, plain[name]) for name in names))


def _field(name: str, value: Any) -> Any:
    if name in _NUMBERS and isinstance(value, str):
        return Fraction(value)
    if name in _INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        return value
    if name == "neighbors":
        return Neighbors(value)
    if name == "parts" and isinstance(value, list):
        return tuple(_loss(part) for part in value)
    if name == "loss":
        return _loss(value)
    raise ValueError(f"no such {name}: {value!r:.200}")


def _need(holds: bool, loss: Any) -> None:
    if not holds:
        raise ParameterError("loss", f"there is no {loss!r:.200}", fix="check the sign and the range of its numbers")
