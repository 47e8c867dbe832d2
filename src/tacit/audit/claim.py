"""What a mechanism promises, and what one event can prove against it.

>>> claim = Claim.parse("epsilon=1, delta=1e-6")
>>> print(claim)
epsilon = 1, delta = 1e-06
>>> round(Claim.epsilon(1).refuted_by(0.75, 0.25), 6)
1.098612
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_rational, to_rational_between
from tacit.errors import ParameterError

Reals = npt.NDArray[np.float64]

PARAMETERS = ("epsilon", "rho", "mu")
_FIX = 'say "epsilon=1", "epsilon=1, delta=1e-6", "rho=0.5" or "mu=1"'


@dataclass(frozen=True)
class Claim:
    """One of three guarantees, for any two neighbors P and Q and every event T.

    epsilon: P(T) <= e^epsilon Q(T) + delta.
    rho: zero-concentrated, D_a(P || Q) <= rho a for every order a > 1.
    mu: Gaussian, Phi^-1(P(T)) - Phi^-1(Q(T)) <= mu.

    Parameters
    ----------
    name : str
        Which guarantee: "epsilon", "rho" or "mu".
    value : number
        The claimed parameter, 0 or more. A smaller value is a stronger claim.
    delta : number
        The delta of an epsilon, in [0, 1]; 0 for the other two guarantees.

    Raises
    ------
    ParameterError
        If the guarantee is unknown, a number is out of range, or a delta stands beside rho or mu.

    Examples
    --------
    >>> print(Claim.epsilon(1, delta=1e-6))
    epsilon = 1, delta = 1e-06
    >>> Claim.parse("rho=0.5") == Claim.rho(0.5)
    True
    """

    name: str
    value: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in PARAMETERS:
            raise ParameterError("claim", f"there is no guarantee named {self.name!r:.40}", fix=_FIX)
        value = to_rational(self.name, self.value)
        if value < 0:
            raise ParameterError(self.name, f"must not be negative, got {self.value}", fix=f"{self.name}=1, say")
        delta = to_rational_between("delta", self.delta, to_rational("", 0), to_rational("", 1))
        if delta and self.name != "epsilon":
            raise ParameterError("delta", f"belongs to epsilon, not to {self.name}", fix="leave delta out")
        object.__setattr__(self, "value", float(value))
        object.__setattr__(self, "delta", float(delta))

    @classmethod
    def epsilon(cls, epsilon: Number, delta: Number = 0.0) -> Claim:
        """Claim (epsilon, delta)-differential privacy.

        Parameters
        ----------
        epsilon : number
            The claimed epsilon, 0 or more.
        delta : number
            The claimed delta, in [0, 1]; 0 claims pure differential privacy.

        Returns
        -------
        Claim
            The claim, which an audit tries to refute.
        """
        return cls("epsilon", float(to_rational("epsilon", epsilon)), float(to_rational("delta", delta)))

    @classmethod
    def rho(cls, rho: Number) -> Claim:
        """Claim rho-zero-concentrated differential privacy.

        Parameters
        ----------
        rho : number
            The claimed rho, 0 or more.

        Returns
        -------
        Claim
            The claim, which an audit tries to refute.
        """
        return cls("rho", float(to_rational("rho", rho)))

    @classmethod
    def mu(cls, mu: Number) -> Claim:
        """Claim mu-Gaussian differential privacy.

        Parameters
        ----------
        mu : number
            The claimed mu, 0 or more.

        Returns
        -------
        Claim
            The claim, which an audit tries to refute.
        """
        return cls("mu", float(to_rational("mu", mu)))

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Read a claim from text.

        Parameters
        ----------
        text : str
            A guarantee such as "epsilon=1, delta=1e-6", "rho=0.5" or "mu=1"; spaces and case do not matter.

        Returns
        -------
        Claim
            The claim that the text states.

        Raises
        ------
        ParameterError
            If the text names no guarantee or several, or a part of it is not a number.
        """
        if not isinstance(text, str):
            raise ParameterError("claim", f"needs a text, got {type(text).__name__}", fix=_FIX)
        found: dict[str, float] = {}
        for part in text.split(","):
            name, equals, number = (piece.strip().lower() for piece in part.partition("="))
            if not equals or name not in (*PARAMETERS, "delta"):
                raise ParameterError("claim", f"{part.strip()!r:.40} is not part of a guarantee", fix=_FIX)
            if name in found:
                raise ParameterError("claim", f"{name} is given twice", fix=_FIX)
            try:
                found[name] = float(number)
            except ValueError:
                raise ParameterError(name, f"needs a number, got {number!r:.40}", fix=_FIX) from None
        given = [name for name in PARAMETERS if name in found]
        if len(given) != 1:
            what = "does not name a guarantee" if not given else f"names both {' and '.join(given)}"
            raise ParameterError("claim", f"{text!r:.60} {what}", fix=_FIX)
        if "delta" in found and given != ["epsilon"]:
            raise ParameterError("delta", f"belongs to epsilon, not to {given[0]}", fix="leave delta out")
        return cls(given[0], found[given[0]], found.get("delta", 0.0))

    @overload
    def refuted_by(self, p: float, q: float) -> float: ...
    @overload
    def refuted_by(self, p: npt.ArrayLike, q: npt.ArrayLike) -> Reals: ...
    def refuted_by(self, p: npt.ArrayLike, q: npt.ArrayLike) -> float | Reals:
        """Return the least value of the parameter that an event T with P(T) >= p and Q(T) <= q allows; 0 where p <= q.

        **Theorem.** With delta as claimed, the parameter is at least
        epsilon: ln((p - delta)/q) and ln((1 - q - delta)/(1 - p)), where these are positive;
        rho: D_a(B(p) || B(q))/a and D_a(B(q) || B(p))/a for every order a, where B(p) is Bernoulli's distribution;
        mu: Phi^-1(p) - Phi^-1(q).

        **Proof.** All three guarantees hold both ways round and for the complement of T too, where Q is at least
        1 - q and P at most 1 - p. For epsilon and mu solve the definitions. For rho, a divergence does not grow when
        all that is known of an output is whether it is in T, and for p > q it grows in p and falls in q.

        Parameters
        ----------
        p : float or array
            Lower bounds on the event's probability under one input, in [0, 1].
        q : float or array
            Upper bounds on its probability under the other input, in [0, 1]; broadcast with `p`.

        Returns
        -------
        float or ndarray
            The least parameter, infinite where no value allows the event.
        """
        high, low = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
        if self.name == "epsilon":
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ways = [(high - self.delta) / low, (1 - low - self.delta) / (1 - high)]
                found = np.log(np.fmax(np.fmax(*ways), 1.0))
        elif self.name == "mu":
            with np.errstate(invalid="ignore"):
                found = _normal_quantile(high) - _normal_quantile(low)
        else:
            found = _zcdp_parameter(np.stack([high, 1 - low]), np.stack([low, 1 - high])).max(axis=0)
        answer: Reals = np.where(high > low, np.maximum(found, 0.0), 0.0)
        return answer if answer.ndim else float(answer)

    def __str__(self) -> str:
        return f"{self.name} = {self.value:g}" + (f", delta = {self.delta:g}" if self.delta else "")


def _normal_quantile(p: Reals) -> Reals:
    from scipy.special import ndtri

    found: Reals = ndtri(p)
    return found


def _zcdp_parameter(p: Reals, q: Reals) -> Reals:
    """The largest D_a(B(p) || B(q))/a over orders a >= 1: a coarse grid of orders, then finer ones around the best.

    Every order gives a valid bound, so a grid can only give too little.
    """
    flat_p, flat_q = p.reshape(-1, 1), q.reshape(-1, 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = np.where(flat_p > 0, flat_p * np.log(flat_p / flat_q), 0.0)  # order 1: Kullback and Leibler's
        best = best + np.where(flat_p < 1, (1 - flat_p) * np.log((1 - flat_p) / (1 - flat_q)), 0.0)
    best, center, width = best[:, 0], np.zeros((len(flat_p), 1)), math.log(1e4)
    for _ in range(3):
        logs = center + width * np.linspace(-1, 1, 17)
        values = _divergence(flat_p, flat_q, np.exp(logs))
        top = np.argmax(values, axis=1)
        best = np.fmax(best, values[np.arange(len(values)), top])
        center, width = np.take_along_axis(logs, top[:, None], axis=1), width / 8
    return best.reshape(p.shape)


def _divergence(p: Reals, q: Reals, excess: Reals) -> Reals:
    """D_a(B(p) || B(q))/a for a = 1 + excess."""
    order = 1 + excess
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(p > 0, order * np.log(p) - excess * np.log(q), -np.inf)
        outside = np.where(p < 1, order * np.log1p(-p) - excess * np.log1p(-q), -np.inf)
        found: Reals = np.logaddexp(inside, outside) / (excess * order)
    return np.nan_to_num(found, nan=0.0, posinf=np.inf, neginf=0.0)
