"""The owner's terms: caps, and what they are a promise about; the refusal of a cost that does not fit.

>>> ada = AnalystLimit(compute_limits(Fraction(1), Fraction(0)), monthly=True)
>>> limits = BudgetLimits(compute_limits(Fraction(10), Fraction(0)), {"ada": ada}, {"neighbors": "add-remove"})
>>> Terms.decode(Terms(limits).encode()).limits == limits
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    BudgetCharge,
    BudgetStatus,
    FilterLimits,
    compute_limits,
    format_epsilon,
    is_admitted,
    is_within_basic,
    is_within_zcdp,
    remaining_epsilon,
)
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.ledger.epochs import NO_SOURCE, EpochSource

OWNER = "(owner)"
"""Who is charged for what the owner releases for everyone: an account under the overall caps alone."""
PUBLIC = "(public)"  # in a scope, the unit of a table that protects nobody


@dataclass(frozen=True)
class AnalystLimit:
    """What one analyst may be told: in all, or in each calendar month."""

    caps: FilterLimits
    monthly: bool = False


@dataclass(frozen=True)
class BudgetLimits:
    """The caps as values: one for all analysts together, which never refreshes, and one for each of them.

    `scope` says what a cap is a promise about, such as the neighbor relation and the unit of each table. What was spent
    under one scope says nothing about another.
    """

    overall: FilterLimits
    analysts: Mapping[str, AnalystLimit]
    scope: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "analysts", dict(self.analysts))
        object.__setattr__(self, "scope", dict(self.scope))
        if "" in self.analysts:
            raise ParameterError("analysts", "an analyst has an empty name", fix="name every analyst")

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, analysts: Mapping[str, tuple[Fraction, Fraction]]) -> BudgetLimits:
        """Limits from plain numbers, without windows."""
        return cls(
            compute_limits(epsilon, delta),
            {name: AnalystLimit(compute_limits(*budget)) for name, budget in analysts.items()},
        )

    @property
    def plain(self) -> dict[str, Any]:
        """The limits as plain values."""
        return {
            "analysts": {name: [*grant.caps.grains, grant.monthly] for name, grant in self.analysts.items()},
            "overall": self.overall.grains,
            "scope": self.scope,
        }


@dataclass(frozen=True)
class Terms:
    """What an opening writes down: the limits, the public key that signs, whether there is a witness, and the data.

    `key_version` is that of the keys which questions had when the ledger was made; 0 where it was not written down.
    """

    limits: BudgetLimits
    key: str = ""
    witnessed: bool = False
    source: EpochSource = NO_SOURCE
    key_version: int = 0

    def encode(self) -> str:
        """Canonical JSON: equal terms give equal text."""
        version = {"key_version": self.key_version} if self.key_version else {}
        plain = {**self.limits.plain, "key": self.key, "witnessed": self.witnessed, **self.source.plain, **version}
        return json.dumps(plain, separators=(",", ":"), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Terms:
        """The terms that `encode` wrote; anything else is a ValueError."""
        match json.loads(text):
            case {
                "analysts": dict(analysts),
                "overall": list(overall),
                "scope": dict(scope),
                "key": str(key),
                "witnessed": bool(witnessed),
                **more,
            }:
                grants = {name: _decode_limit(plain) for name, plain in analysts.items()}
                limits = BudgetLimits(_decode_caps(overall), grants, scope)
                return cls(limits, key, witnessed, _decode_source(more), _decode_version(more.get("key_version", 0)))
            case _:
                raise ValueError("these are no terms")


def _decode_source(plain: Mapping[Any, object]) -> EpochSource:
    match plain:
        case {"epoch": int(epoch), "sources": dict(macs)}:
            return EpochSource(epoch, macs, str(plain.get("policy", "")))
    return NO_SOURCE  # from before sources were remembered


def _decode_version(plain: object) -> int:
    match plain:
        case int(version) if version >= 0 and not isinstance(plain, bool):
            return version
        case _:
            raise ValueError("these are no terms")


def _decode_limit(plain: object) -> AnalystLimit:
    match plain:
        case [*limits, bool(monthly)]:
            return AnalystLimit(_decode_caps(limits), monthly)
        case _:
            raise ValueError("this is no grant")


def _decode_caps(plain: list[object]) -> FilterLimits:
    match plain:
        case [int(epsilon), int(delta_a), int(rho), int(delta_b)]:
            return FilterLimits(epsilon, delta_a, rho, delta_b)
        case _:
            raise ValueError("these are no caps")


def strictest_caps(one: FilterLimits, other: FilterLimits) -> FilterLimits:
    """The caps that are within both: what a union of filters admits under them, it admits under each."""
    return FilterLimits(*map(min, one.grains, other.grains))


def admit(cost: BudgetCharge, analyst: str, own: BudgetStatus, shared: BudgetStatus | None) -> None:
    """Refuse a cost unless every guard admits it: the analyst's own cap, and the shared one where it counts.

    `shared` is None where the answer is already stored: showing it to one more analyst adds nothing to what all know.
    """
    if not is_admitted(own.spent, cost, own.cap):
        whose, guard = f"{analyst}'s own budget", own
    elif shared is not None and not is_admitted(shared.spent, cost, shared.cap):
        whose, guard = "the budget shared by all analysts", shared
    else:
        return
    lost = _remaining_delta(cost, guard)
    if lost is not None:
        left, cap = lost
        has = f"delta {_format_delta(left)} left of {_format_delta(cap)}" if cap else "no delta"
        fix = "ask for what needs none, such as declared keys or one number at a time, or the data owner for more delta"
        raise Refused(ErrorCode.BUDGET, f"it costs delta {_format_delta(cost.delta_a)}, and {whose} has {has}", fix=fix)
    guards = [own] if shared is None else [own, shared]
    fits = min(remaining_epsilon(g.spent, g.cap, cost.delta_a, cost.delta_b) for g in guards)
    if fits > 0:
        fix = f"ask for at most epsilon={format_epsilon(fits)}"
    else:
        fix = "nothing remains for this question: ask the data owner for a larger budget"
    remains = f"{format_epsilon(guard.remaining)} left of {format_epsilon(guard.cap.epsilon)}"
    raise Refused(ErrorCode.BUDGET, f"it costs epsilon {cost.text}, and {whose} has {remains}", fix=fix)


def _remaining_delta(cost: BudgetCharge, guard: BudgetStatus) -> tuple[int, int] | None:
    """Where it is delta alone that does not fit: what is left of it, and of how much, by the filter with more left."""
    after = guard.spent + BudgetCharge(cost.epsilon, 0, cost.rho, 0)
    found = []
    if is_within_basic(after, guard.cap):
        found.append((guard.cap.delta_a - guard.spent.delta_a, guard.cap.delta_a))
    if is_within_zcdp(after, guard.cap):
        found.append((guard.cap.delta_b - guard.spent.delta_b, guard.cap.delta_b))
    return max(found) if found else None


def _format_delta(grains: int) -> str:
    return f"{grains / GRAINS_PER_DELTA:.3g}"
