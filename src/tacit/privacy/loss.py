"""What was done to the data, as frozen data. Accountants read it; nothing here adds anything up.

A loss keeps the law, the scale and the integer sensitivity, so that a better accountant can price an old ledger again.

>>> loss = Compose((LaplaceNoise(Fraction(10), 1), LaplaceNoise(Fraction(40), 2)))
>>> decode(encode(loss)) == loss
True
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import ParameterError


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent discrete Laplace noise of `scale` on integers that move by at most `sensitivity` in L1."""

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.sensitivity < 0:
            raise ParameterError("loss", f"no noise has scale {self.scale} and sensitivity {self.sensitivity}")


@dataclass(frozen=True)
class Compose:
    """All the parts were done to the same data, each knowing the outcome of those before it."""

    parts: tuple[Loss, ...]


Loss = LaplaceNoise | Compose


def encode(loss: Loss) -> str:
    """The loss as canonical JSON: equal losses give equal text."""
    return json.dumps(_plain(loss), separators=(",", ":"), sort_keys=True)


def decode(text: str) -> Loss:
    """The loss that `encode` wrote. Only the tags below exist; anything else is an error."""
    return _loss(json.loads(text))


def _plain(loss: Loss) -> dict[str, Any]:
    match loss:
        case LaplaceNoise(scale, sensitivity):
            return {"did": "laplace", "scale": str(scale), "sensitivity": sensitivity}
        case Compose(parts):
            return {"did": "compose", "parts": [_plain(part) for part in parts]}


def _loss(plain: dict[str, Any]) -> Loss:
    match plain:
        case {"did": "laplace", "scale": str(scale), "sensitivity": int(sensitivity)}:
            return LaplaceNoise(Fraction(scale), sensitivity)
        case {"did": "compose", "parts": list(parts)}:
            return Compose(tuple(_loss(part) for part in parts))
        case _:
            raise ValueError(f"no such loss: {plain!r}")
