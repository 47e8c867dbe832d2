"""What was done to the data, as frozen data. Accountants read it; nothing here adds anything up.

A leaf keeps the distribution, its scale and the integer sensitivity, so that a better accountant can bound an old
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

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.privacy.unit import Neighbors


@dataclass(frozen=True, init=False)
class LaplaceNoise:
    """Independent discrete Laplace noise, P(k) proportional to exp(-|k|/scale), on integers.

    Parameters
    ----------
    scale : number
        Scale of the noise, above 0, in steps of the grid.
    sensitivity : int
        L1 sensitivity of all the integers together, at least 0; the loss is at most sensitivity/scale.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> epsilon(LaplaceNoise(scale=10, sensitivity=1), delta=0)
    0.1
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: Number, sensitivity: int) -> None:
        set_fields(self, scale=_rational("scale", scale), sensitivity=to_integer("sensitivity", sensitivity))
        _need(self.scale > 0 and self.sensitivity >= 0, self)


@dataclass(frozen=True, init=False)
class GaussianNoise:
    """Independent discrete Gaussian noise, P(k) proportional to exp(-k^2 / (2 variance)), on integers.

    Parameters
    ----------
    variance : number
        The parameter of the distribution, above 0, in squared steps of the grid.
    shift : int
        The most that any one of the integers moves between neighbors, at least 0.
    coordinates : int, default 1
        How many of the integers may move, at least 1. The L2 sensitivity is sqrt(coordinates) shift.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> round(epsilon(GaussianNoise(variance=100, shift=1), delta=1e-6), 3)
    0.397
    """

    variance: Fraction
    shift: int
    coordinates: int = 1

    def __init__(self, variance: Number, shift: int, coordinates: int = 1) -> None:
        set_fields(
            self,
            variance=_rational("variance", variance),
            shift=to_integer("shift", shift),
            coordinates=to_integer("coordinates", coordinates),
        )
        _need(self.variance > 0 and self.shift >= 0 and self.coordinates >= 1, self)


@dataclass(frozen=True, init=False)
class ContinuousLaplaceNoise:
    """Real Laplace noise on a number that moves by at most 1. For comparison: Tacit samples integers.

    Parameters
    ----------
    scale : number
        Scale of the noise, above 0, in units of the sensitivity; the loss is at most 1/scale.

    Raises
    ------
    ParameterError
        If the scale is not a positive number.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> epsilon(ContinuousLaplaceNoise(scale=10), delta=0)
    0.1
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        set_fields(self, scale=_rational("scale", scale))
        _need(self.scale > 0, self)


@dataclass(frozen=True, init=False)
class ContinuousGaussianNoise:
    """Real Gaussian noise on a vector that moves by at most 1 in L2. For comparison: Tacit samples integers.

    Parameters
    ----------
    sigma : number
        Standard deviation of the noise, above 0, in units of the L2 sensitivity: the noise multiplier.

    Raises
    ------
    ParameterError
        If sigma is not a positive number.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> round(epsilon(ContinuousGaussianNoise(sigma=10), delta=1e-6), 3)
    0.397
    """

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        set_fields(self, sigma=_rational("sigma", sigma))
        _need(self.sigma > 0, self)


@dataclass(frozen=True, init=False)
class PureDp:
    """Anything that is epsilon-DP; randomized response loses exactly this.

    Parameters
    ----------
    epsilon : number
        The privacy loss, at least 0.

    Raises
    ------
    ParameterError
        If epsilon is negative.

    Examples
    --------
    >>> PureDp(epsilon=0.1)
    PureDp(epsilon=Fraction(1, 10))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        set_fields(self, epsilon=_rational("epsilon", epsilon))
        _need(self.epsilon >= 0, self)


@dataclass(frozen=True, init=False)
class BoundedRange:
    """Anything whose privacy loss lies in an interval of length epsilon, as that of the exponential mechanism does.

    Parameters
    ----------
    epsilon : number
        Length of the interval, at least 0. It is epsilon-DP, and (epsilon^2/8)-zCDP.

    Raises
    ------
    ParameterError
        If epsilon is negative.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> many = [Repeat(kind(epsilon=0.1), times=100) for kind in (PureDp, BoundedRange)]
    >>> [round(epsilon(loss, delta=1e-6, by="zcdp"), 2) for loss in many]
    [5.22, 2.42]
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        set_fields(self, epsilon=_rational("epsilon", epsilon))
        _need(self.epsilon >= 0, self)


@dataclass(frozen=True, init=False)
class ApproximateDp:
    """Anything that is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : number
        The privacy loss, at least 0.
    delta : number
        From 0 to 1: what P[M(D) in T] may exceed e^epsilon P[M(D') in T] by.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> epsilon(ApproximateDp(epsilon=1, delta=1e-6), delta=1e-7)
    inf
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        set_fields(self, epsilon=_rational("epsilon", epsilon), delta=_rational("delta", delta))
        _need(self.epsilon >= 0 and 0 <= self.delta <= 1, self)


@dataclass(frozen=True, init=False)
class ConcentratedDp:
    """Anything that is rho-zCDP: its Renyi divergence of every order a is at most a rho.

    Parameters
    ----------
    rho : number
        The zero-concentrated privacy loss, at least 0.

    Raises
    ------
    ParameterError
        If rho is negative.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> round(epsilon(ConcentratedDp(rho=0.01), delta=1e-6), 3)
    0.622
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        set_fields(self, rho=_rational("rho", rho))
        _need(self.rho >= 0, self)


@dataclass(frozen=True)
class Compose:
    """All the parts were done to the same data, each knowing the outcome of those before it.

    Parameters
    ----------
    parts : tuple of losses
        The losses, in any order; an empty tuple loses nothing.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> epsilon(Compose((PureDp(0.5), LaplaceNoise(scale=4, sensitivity=1))), delta=0)
    0.75
    """

    parts: tuple[Loss, ...]


@dataclass(frozen=True, init=False)
class Repeat:
    """The same was done several times, with fresh randomness each time.

    Parameters
    ----------
    loss : Loss
        The loss of one time.
    times : int
        How many times, at least 0.

    Raises
    ------
    ParameterError
        If `times` is negative or not an integer.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> round(epsilon(Repeat(GaussianNoise(variance=100, shift=1), times=10), delta=1e-6), 2)
    1.37
    """

    loss: Loss
    times: int

    def __init__(self, loss: Loss, times: int) -> None:
        set_fields(self, loss=loss, times=to_integer("times", times))
        _need(self.times >= 0, self)


@dataclass(frozen=True)
class Parallel:
    """The parts were done to disjoint sets of units.

    Parameters
    ----------
    parts : tuple of losses
        The loss of each set.
    neighbors : Neighbors
        Under ADD_REMOVE a unit is in one part; under REPLACE it may move to another, so that two of them count.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> halves = (PureDp(0.5), PureDp(0.25))
    >>> [epsilon(Parallel(halves, neighbors), delta=0) for neighbors in Neighbors]
    [0.5, 0.75]
    """

    parts: tuple[Loss, ...]
    neighbors: Neighbors


@dataclass(frozen=True, init=False)
class OneOf:
    """One of the parts was done; which one follows from what was released before, whose loss is counted apart.

    Each accountant takes what is above all parts, since given what was released it is the loss of one of them. A
    budget charges the largest of each of its numbers over the parts.

    Parameters
    ----------
    parts : tuple of losses
        What may have been done.
    delta : number, default 0
        Where losses are added up as (epsilon, delta), parts that have a rho and no epsilon are converted at this
        delta; from 0 to 1, where at 0 they have no epsilon.

    Raises
    ------
    ParameterError
        If delta is not from 0 to 1.

    Examples
    --------
    >>> from tacit.accounting import compute_charge
    >>> found = compute_charge(OneOf((PureDp(epsilon=1), ConcentratedDp(rho=0.011)), delta=1e-9))
    >>> found.text
    '1, delta 1e-09'
    """

    parts: tuple[Loss, ...]
    delta: Fraction

    def __init__(self, parts: tuple[Loss, ...], delta: Number = 0) -> None:
        set_fields(self, parts=parts, delta=_rational("delta", delta))
        _need(0 <= self.delta <= 1, self)


@dataclass(frozen=True, init=False)
class Sampled:
    """It was done to a Poisson sample: each unit is in it with the same probability, on its own; under add-remove.

    Parameters
    ----------
    loss : Loss
        The loss to the units of the sample.
    rate : number
        The probability of being in it, from 0 to 1; a small one loses about rate times as much.

    Raises
    ------
    ParameterError
        If the rate is not from 0 to 1.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> round(epsilon(Sampled(PureDp(epsilon=1), rate=0.1), delta=0), 3)
    0.159
    """

    loss: Loss
    rate: Fraction

    def __init__(self, loss: Loss, rate: Number) -> None:
        set_fields(self, loss=loss, rate=_rational("rate", rate))
        _need(0 <= self.rate <= 1, self)


@dataclass(frozen=True, init=False)
class Group:
    """The same loss, for several units that change together.

    A part `ApproximateDp(0, delta)` may hold for each pair of neighbors only together with the parts beside it, as that
    of `Threshold.loss` does. What holds one is accounted as a whole: by its epsilon and delta.

    Parameters
    ----------
    loss : Loss
        The loss to one unit.
    size : int
        How many units change, at least 1.

    Raises
    ------
    ParameterError
        If the size is below 1 or not an integer.

    Examples
    --------
    >>> from tacit.accounting import epsilon
    >>> epsilon(Group(PureDp(epsilon=0.25), size=3), delta=0)
    0.75
    """

    loss: Loss
    size: int

    def __init__(self, loss: Loss, size: int) -> None:
        set_fields(self, loss=loss, size=to_integer("size", size))
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
Loss = Leaf | Compose | Repeat | Parallel | OneOf | Sampled | Group

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
    "one-of": (OneOf, ("parts", "delta")),
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


def _rational(name: str, value: Number) -> Fraction:
    return value if type(value) is Fraction else to_rational(name, value)


def _need(holds: bool, loss: Any) -> None:
    if not holds:
        raise ParameterError("loss", f"there is no {loss!r:.200}", fix="check the sign and the range of its numbers")
