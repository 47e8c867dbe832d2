"""What a ledger tells others: an entry for a public registry of deployments, and its privacy loss under a better
accountant.

Both read only. Neither decides anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.accounting.epsilon_delta import epsilon as price_of
from tacit.accounting.filters import GRAINS_PER_DELTA, GRAINS_PER_EPSILON, BudgetStatus, format_epsilon
from tacit.ledger.budget import OWNER, PUBLIC
from tacit.ledger.entries import EntryKind
from tacit.ledger.reader import LedgerReader
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Loss,
    OneOf,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
    decode,
)

_MECHANISMS: dict[type[Any], str] = {
    LaplaceNoise: "discrete Laplace",
    GaussianNoise: "discrete Gaussian",
    ContinuousLaplaceNoise: "Laplace",
    ContinuousGaussianNoise: "Gaussian",
    PureDp: "a pure mechanism",
    BoundedRange: "exponential mechanism",
    ApproximateDp: "partition selection",
    ConcentratedDp: "a concentrated mechanism",
}


def describe_deployment(history: LedgerReader, epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
    """The ledger as an entry for a public registry of deployments. Of the questions it tells only how many."""
    terms = history.terms()
    first = last = ""
    counts: Counter[EntryKind] = Counter()
    mechanisms: set[str] = set()
    known: set[str] = set()
    for entry in history.entries():
        first, last = first or entry.time, entry.time
        counts[entry.kind] += 1
        if entry.kind is EntryKind.RESERVE and entry.loss not in known:
            known.add(entry.loss)
            mechanisms |= {_MECHANISMS[type(leaf)] for leaf in _iter_leaves(decode(entry.loss))}
    scope = dict(terms.limits.scope) if terms is not None else {}
    spent = history.overall().spent
    return {
        "model": "central, interactive",
        "relation": scope.pop("neighbors", ""),
        "unit": {name.removeprefix("unit of "): unit for name, unit in scope.items() if unit != PUBLIC},
        "epsilon": format_epsilon(int(epsilon * GRAINS_PER_EPSILON)),
        "delta": float(delta),
        "composition": "fully adaptive: a union of the basic and the zCDP filter",
        "spent": {"epsilon": format_epsilon(spent.epsilon), "delta": spent.delta_a / GRAINS_PER_DELTA},
        "mechanisms": sorted(mechanisms),
        "analysts": len(terms.limits.analysts.keys() - {OWNER}) if terms is not None else 0,
        "refresh": sorted({"monthly" for grant in terms.limits.analysts.values() if grant.monthly}) if terms else [],
        "answers": counts[EntryKind.COMMIT],
        "failures": counts[EntryKind.FAIL],
        "repeats": counts[EntryKind.REPEAT],
        "accepted_losses": counts[EntryKind.ACCEPT],
        **({"locks": counts[EntryKind.LOCK], "unlocks": counts[EntryKind.UNLOCK]} if counts[EntryKind.LOCK] else {}),
        "first": first,
        "last": last,
        "entries": counts.total(),
        "head": history.head(),
        "public_key": terms.key if terms is not None else "",
    }


@dataclass(frozen=True)
class NonAdaptiveCost:
    """What a history would cost had its questions been fixed beforehand. It decides nothing."""

    charges: int
    epsilon: float
    delta: float
    by: str
    standing: BudgetStatus

    def __str__(self) -> str:
        return (
            f"as if the {self.charges:,} charged questions had been fixed beforehand: "
            f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.by}\n"
            f"what decides are the filters, which hold for questions chosen after seeing answers: "
            f"epsilon {self.standing}"
        )


def compose_nonadaptively(history: LedgerReader, delta: float, by: str = "pld") -> NonAdaptiveCost:
    """The charged passes over the data, composed as if their questions had been fixed beforehand.

    Shown, and labelled so, because analysts choose questions after seeing answers: then only a filter is valid.
    """
    counts = Counter(entry.loss for entry in history.entries() if entry.kind is EntryKind.RESERVE)
    loss: Loss = Compose(tuple(Repeat(decode(text), times) for text, times in sorted(counts.items())))
    value = price_of(loss, delta, by) if counts else 0.0
    return NonAdaptiveCost(counts.total(), value, delta, by, history.overall())


def _iter_leaves(loss: Loss) -> Iterator[Loss]:
    match loss:
        case Compose(parts) | Parallel(parts) | OneOf(parts):
            for part in parts:
                yield from _iter_leaves(part)
        case Repeat(part) | Sampled(part) | Group(part):
            yield from _iter_leaves(part)
        case _:
            yield loss
