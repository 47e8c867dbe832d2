"""What a ledger tells others: an entry for a public registry of deployments, and its price under a better accountant.

Both read only. Neither decides anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.accounting.guard import GRAINS_PER_DELTA, GRAINS_PER_EPSILON, Standing, shown
from tacit.accounting.price import epsilon as price_of
from tacit.ledger.budget import PUBLIC
from tacit.ledger.entries import Kind
from tacit.ledger.history import History
from tacit.privacy.loss import (
    Approximate,
    BoundedRange,
    Compose,
    Concentrated,
    ContinuousGaussian,
    ContinuousLaplace,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Loss,
    Parallel,
    Pure,
    Repeat,
    Sampled,
    decode,
)

_MECHANISMS: dict[type[Any], str] = {
    LaplaceNoise: "discrete Laplace",
    GaussianNoise: "discrete Gaussian",
    ContinuousLaplace: "Laplace",
    ContinuousGaussian: "Gaussian",
    Pure: "a pure mechanism",
    BoundedRange: "exponential mechanism",
    Approximate: "partition selection",
    Concentrated: "a concentrated mechanism",
}


def deployment(history: History, epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
    """The ledger as an entry for a public registry of deployments. Of the questions it tells only how many."""
    terms = history.terms()
    first = last = ""
    counts: Counter[Kind] = Counter()
    mechanisms: set[str] = set()
    known: set[str] = set()
    for entry in history.entries():
        first, last = first or entry.time, entry.time
        counts[entry.kind] += 1
        if entry.kind is Kind.RESERVE and entry.loss not in known:
            known.add(entry.loss)
            mechanisms |= {_MECHANISMS[type(leaf)] for leaf in _leaves(decode(entry.loss))}
    scope = dict(terms.limits.scope) if terms is not None else {}
    spent = history.overall().spent
    return {
        "model": "central, interactive",
        "relation": scope.pop("neighbors", ""),
        "unit": {name.removeprefix("unit of "): unit for name, unit in scope.items() if unit != PUBLIC},
        "epsilon": shown(int(epsilon * GRAINS_PER_EPSILON)),
        "delta": float(delta),
        "composition": "fully adaptive: a union of the basic and the zCDP filter",
        "spent": {"epsilon": shown(spent.epsilon), "delta": spent.delta_a / GRAINS_PER_DELTA},
        "mechanisms": sorted(mechanisms),
        "analysts": len(terms.limits.analysts) if terms is not None else 0,
        "refresh": sorted({"monthly" for grant in terms.limits.analysts.values() if grant.monthly}) if terms else [],
        "answers": counts[Kind.COMMIT],
        "failures": counts[Kind.FAIL],
        "repeats": counts[Kind.REPEAT],
        "accepted_losses": counts[Kind.ACCEPT],
        "first": first,
        "last": last,
        "entries": counts.total(),
        "head": history.head(),
        "public_key": terms.key if terms is not None else "",
    }


@dataclass(frozen=True)
class AsIf:
    """What a history would cost had its questions been fixed beforehand. It decides nothing."""

    charges: int
    epsilon: float
    delta: float
    by: str
    standing: Standing

    def __str__(self) -> str:
        return (
            f"as if the {self.charges:,} charged questions had been fixed beforehand: "
            f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.by}\n"
            f"what decides are the filters, which hold for questions chosen after seeing answers: "
            f"epsilon {self.standing}"
        )


def price(history: History, delta: float, by: str = "pld") -> AsIf:
    """The charged passes over the data, composed as if their questions had been fixed beforehand.

    Shown, and labelled so, because analysts choose questions after seeing answers: then only a filter is valid.
    """
    counts = Counter(entry.loss for entry in history.entries() if entry.kind is Kind.RESERVE)
    loss: Loss = Compose(tuple(Repeat(decode(text), times) for text, times in sorted(counts.items())))
    value = price_of(loss, delta, by) if counts else 0.0
    return AsIf(counts.total(), value, delta, by, history.overall())


def _leaves(loss: Loss) -> Iterator[Loss]:
    match loss:
        case Compose(parts) | Parallel(parts):
            for part in parts:
                yield from _leaves(part)
        case Repeat(part) | Sampled(part) | Group(part):
            yield from _leaves(part)
        case _:
            yield loss
