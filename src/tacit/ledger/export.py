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
from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    LARGEST,
    BudgetCharge,
    BudgetStatus,
    format_epsilon,
)
from tacit.ledger.budget import OWNER, PUBLIC, Terms
from tacit.ledger.entries import EntryKind
from tacit.ledger.reader import LedgerReader
from tacit.ledger.recovery import cost_of_cap
from tacit.ledger.transaction import ZERO_COST
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
    """The ledger as an entry for a public registry of deployments. Of the questions it tells only how many.

    `epsilon` and `delta` are what is promised, given what is spent (`policy/promise.py`).
    """
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
    has_losses: bool = False  # of entries, which the owner accepted at a charge

    def __str__(self) -> str:
        lost = " and those that may be lost" if self.has_losses else ""
        return (
            f"as if the {self.charges:,} charged questions{lost} had been fixed beforehand: "
            f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.by}\n"
            f"what decides are the filters, which hold for questions chosen after seeing answers: "
            f"epsilon {self.standing}"
        )


def compose_nonadaptively(history: LedgerReader, delta: float, by: str = "pld") -> NonAdaptiveCost:
    """The charged passes over the data, composed as if their questions had been fixed beforehand.

    Shown, and labelled so, because analysts choose questions after seeing answers: then only a filter is valid.

    **Rule.** A loss of entries that the owner accepted counts as one question, of the sums of filter A that were
    charged for it. Where these are not what a witness saw, they are what was left of the cap, and filter B alone may
    have admitted what was lost: all that was told until then is together within the cap, as the sums are after the
    charge. So where they reach the cap, all until then counts as one question of these sums.
    """
    cap, passes = ZERO_COST, 0
    lost: list[Loss] = []
    counts: Counter[str] = Counter()
    for entry in history.entries():
        if entry.kind is EntryKind.OPEN:
            cap = cost_of_cap(Terms.decode(entry.note).limits.overall)
        elif entry.kind is EntryKind.RESERVE:
            passes += 1
            counts[entry.loss] += 1
        elif entry.kind is EntryKind.ACCEPT and entry.shared:
            if all(found >= whole for found, whole in zip(entry.overall.grains, cap.grains, strict=True)):
                lost, counts = [_as_one_question(entry.overall)], Counter()
            elif entry.charge != ZERO_COST:
                lost.append(_as_one_question(entry.charge))
    loss = Compose((*(Repeat(decode(text), times) for text, times in sorted(counts.items())), *lost))
    value = price_of(loss, delta, by) if counts or lost else 0.0
    return NonAdaptiveCost(passes, value, delta, by, history.overall(), bool(lost))


def _as_one_question(charge: BudgetCharge) -> Loss:
    """What has these sums of filter A; of a sum that is at its largest number no bound is known."""
    if LARGEST in (charge.epsilon, charge.delta_a):
        return ApproximateDp(0, 1)
    return ApproximateDp(
        Fraction(charge.epsilon, GRAINS_PER_EPSILON), min(Fraction(1), Fraction(charge.delta_a, GRAINS_PER_DELTA))
    )


def _iter_leaves(loss: Loss) -> Iterator[Loss]:
    match loss:
        case Compose(parts) | Parallel(parts) | OneOf(parts):
            for part in parts:
                yield from _iter_leaves(part)
        case Repeat(part) | Sampled(part) | Group(part):
            yield from _iter_leaves(part)
        case _:
            yield loss
