"""Caps, what is spent of them, and the refusal of a price that does not fit.

>>> limits = Limits(Amount(10**12, 0), {"ada": Amount(10**11, 0)})
>>> Limits.decode(limits.encode()) == limits
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.accounting.filter import Amount, Standing, admits
from tacit.errors import Code, ParameterError, Refused

LARGEST = 2**63 - 1  # grains that a database integer can hold: an epsilon of about nine million


@dataclass(frozen=True)
class Limits:
    """The caps as values: one for all analysts together, and one for each of them."""

    overall: Amount
    analysts: Mapping[str, Amount]

    def __post_init__(self) -> None:
        object.__setattr__(self, "analysts", dict(self.analysts))
        for name, cap in [("overall", self.overall), *self.analysts.items()]:
            if not name:
                raise ParameterError("analysts", "an analyst has an empty name", fix="name every analyst")
            if not (0 <= cap.epsilon <= LARGEST and 0 <= cap.delta <= LARGEST):
                raise ParameterError(name, "the cap is below zero or too large", fix="keep epsilon at 9000000 or less")

    def encode(self) -> str:
        """The caps as canonical JSON: equal limits give equal text."""
        analysts = {name: [cap.epsilon, cap.delta] for name, cap in self.analysts.items()}
        plain = {"analysts": analysts, "overall": [self.overall.epsilon, self.overall.delta]}
        return json.dumps(plain, separators=(",", ":"), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Limits:
        """The limits that `encode` wrote; anything else is a ValueError."""
        match json.loads(text):
            case {"analysts": dict(analysts), "overall": overall}:
                return cls(_amount(overall), {name: _amount(cap) for name, cap in analysts.items()})
            case _:
                raise ValueError("these are no limits")


def _amount(plain: object) -> Amount:
    match plain:
        case [int(epsilon), int(delta)]:
            return Amount(epsilon, delta)
        case _:
            raise ValueError("this is no amount")


def stricter(one: Amount, other: Amount) -> Amount:
    """The cap that is within both."""
    return Amount(min(one.epsilon, other.epsilon), min(one.delta, other.delta))


def admit(price: Amount, who: str, own: Standing, shared: Standing | None) -> None:
    """Refuse a price unless every guard admits it: the analyst's own cap, and the shared one where it counts.

    `shared` is None where the answer is already stored: showing it to one more analyst adds nothing to what all know.
    """
    if not admits(own.spent, price, own.cap):
        whose, guard = f"{who}'s own budget", own
    elif shared is not None and not admits(shared.spent, price, shared.cap):
        whose, guard = "the budget shared by all analysts", shared
    else:
        return
    room = own.remaining if shared is None else stricter(own.remaining, shared.remaining)
    if room.epsilon > 0 and price.delta <= room.delta:
        fix = f"ask for at most epsilon={Amount(room.epsilon, 0).shown}"
    else:
        fix = "nothing remains for this question: ask the data owner for a larger budget"
    left, cap = guard.remaining.shown, guard.cap.shown
    raise Refused(Code.BUDGET, f"it costs epsilon {price.shown}, and {whose} has {left} left of {cap}", fix=fix)
