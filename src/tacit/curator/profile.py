"""The story of a profile: noisy histograms of all columns, released once by the owner for everyone to look at.

**Theorem.** A profile is (epsilon, delta)-DP for the policy's unit and relation, and is charged so on the ledger before
data is touched; with the answers to all questions it stays within the policy's overall budget. Proof. There are H
histograms, and in each a unit moves the cells by at most s in L1, which is 1 under add-remove and 2 under replace
(`curator/profile_plan.py`). Each cell gets discrete Laplace noise of the scale H s/epsilon, so each histogram is
(epsilon/H)-DP, and all of them epsilon-DP. Which bins there are is public. Where the keys of a text are private, those
are shown whose noisy count reaches a threshold, at delta divided by the number of such columns
(`mechanisms/threshold.py`); the cell of NULL is always shown, as one more key would be. Everything that is said of a
profile is computed from these counts. An error after the charge is always the same one.

It is charged to the account of the owner, under the overall caps. **What an analyst is told is the answers charged to
them and the profile**: their own cap bounds the first only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting.filters import whole
from tacit.answers.data_profile import DataProfile, encode_profile
from tacit.arithmetic import Number, to_rational_between
from tacit.canonical import canonical_text
from tacit.curator.ask import settle
from tacit.curator.profile_plan import ProfiledColumn, ProfiledTable, plan_tables
from tacit.engines.base import Engine, MeasureValue
from tacit.engines.one_run import OneRun
from tacit.ledger.budget import OWNER
from tacit.ledger.reader import LedgerReader
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.threshold import Threshold
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON
from tacit.policy.model import Policy
from tacit.privacy.loss import ApproximateDp, Compose, LaplaceNoise, Loss, Repeat
from tacit.privacy.unit import Neighbors
from tacit.query.nodes import scanned_tables
from tacit.query.types import Type
from tacit.query.value_bins import NULL, ValueBins
from tacit.sampling.bits import Bits, refresh_bits

if TYPE_CHECKING:
    from tacit.curator.protocols import OpenCurator

Progress = Callable[[str, float], None]
_MOST_KEYS = 1000  # of a text column
_TRUTH = ("false", "true")


def release_profile(
    curator: OpenCurator,
    epsilon: Number,
    tables: Iterable[str] | None = None,
    progress: Progress = lambda what, share: None,
) -> DataProfile:
    """Return the profile of the tables; or raise Refused, at no cost. The same profile again is the same, and free."""
    plan = ChargedProfile.make(curator.policy, epsilon, tables)
    claim = settle(plan, lambda: plan.release(curator.engine, curator.bits, progress), OWNER, curator, "")
    assert claim.stored is not None
    found = DataProfile.decode(claim.stored)
    assert found is not None
    return replace(found, receipt=claim.receipt)


def find_profile(ledger: LedgerReader) -> DataProfile | None:
    """Return the profile that was released last; None where there is none. Free: it is public once it is released."""
    stored = ledger.newest_answer(OWNER)
    return None if stored is None else DataProfile.decode(stored)


@dataclass(frozen=True)
class ChargedProfile:
    """All of a profile, decided by the policy and the epsilon before any data is touched.

    `scale` is that of all noise; `key_delta` is what each column of texts with private keys may use, None where the
    policy has no delta: then only how many units miss a text is released of it.
    """

    profiled: tuple[ProfiledTable, ...]
    epoch: int
    epsilon: Fraction
    scale: Fraction
    key_delta: Fraction | None
    loss: Loss
    key: str
    delta: Fraction = Fraction(0)  # no noise is Gaussian

    @classmethod
    def make(cls, policy: Policy, epsilon: Number, tables: Iterable[str] | None = None) -> ChargedProfile:
        """Plan the profile of the private tables, or of those that are named, at an epsilon."""
        price = whole(to_rational_between("epsilon", epsilon, MIN_EPSILON, MAX_EPSILON))
        planned = plan_tables(policy, tables)
        count = sum(table.histograms for table in planned)
        moved = 1 if policy.neighbors is Neighbors.ADD_REMOVE else 2
        scale = count * moved / price
        private = sum(column.has_private_keys for table in planned for column in table.columns)
        has_delta = private > 0 and policy.question_delta > 0
        losses: list[Loss] = [Repeat(LaplaceNoise(scale, moved), count)]
        if has_delta:
            losses.append(ApproximateDp(Fraction(0), policy.question_delta))
        key_delta = policy.question_delta / private if has_delta else None
        key = _hash_plan(policy, planned, scale, key_delta)
        salted = tuple(table.with_salt(key[:16]) for table in planned)
        return cls(salted, policy.epoch, price, scale, key_delta, Compose(tuple(losses)), key)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that the engine reads."""
        sources = (column.exact.source for table in self.profiled for column in table.columns)
        return frozenset().union(*map(scanned_tables, sources))

    def release(self, engine: Engine, bits: Bits, progress: Progress = lambda what, share: None) -> bytes:
        """Return the noisy histograms, ready to be stored."""
        engine = OneRun(engine)
        fresh, steps = refresh_bits(bits), sum(table.histograms for table in self.profiled)
        found: list[dict[str, Any]] = []
        done = 0
        for table in self.profiled:
            columns = []
            for column in table.columns:
                progress(f"{table.name}.{column.name}", done / steps)
                columns.append(self._release_column(column, engine, fresh))
                done += 1
            found.append({"name": table.name, "unit": table.unit, "columns": columns})
            if table.sizes is not None:
                progress(table.name, done / steps)
                (sizes,) = engine.run(table.sizes)[()]
                found[-1]["sizes"] = self._add_noise(_count_codes(Type.INT, sizes), fresh)
                done += 1
        delta = Fraction(0) if self.key_delta is None else self.key_delta * self.private_columns
        return encode_profile(self.epoch, self.epsilon, delta, self.scale, found)

    @property
    def private_columns(self) -> int:
        """The number of columns whose keys must be selected."""
        return sum(column.has_private_keys for table in self.profiled for column in table.columns)

    def _release_column(self, column: ProfiledColumn, engine: Engine, bits: Bits) -> dict[str, Any]:
        *counted, cell = engine.run(column.exact)[()]
        assert not isinstance(cell, int)
        said = {"name": column.name, "type": str(column.type)}
        if column.type is Type.BOOL:
            null, *cells = self._add_noise([cell.get(NULL, 0), *_count_codes(column.type, cell)], bits)
            return said | {
                "null": null,
                "keys": [list(pair) for pair in zip(_TRUTH, cells, strict=True)],
                "listed": True,
            }
        if column.type is not Type.TEXT:
            null, *cells = self._add_noise([cell.get(NULL, 0), *_count_codes(column.type, cell)], bits)
            return said | {"null": null, "cells": cells}
        (rows,) = counted
        assert isinstance(rows, int)
        held = sum(cell.values())
        if column.values is not None:
            counts = [cell.get(value, 0) for value in column.values]
            null, others, *noisy = self._add_noise([rows - held, held - sum(counts), *counts], bits)
            keys = [[str(value), count] for value, count in zip(column.values, noisy, strict=True)]
            return said | {"null": null, "others": others, "keys": keys, "listed": True}
        if self.key_delta is None:
            null, others = self._add_noise([rows - held, held], bits)
            return said | {"null": null, "others": others, "keys": [], "listed": False}
        (null,) = self._add_noise([rows - held], bits)
        selection = Threshold(self.scale, self.key_delta)
        shown = selection.release({str(key): cell[key] for key in sorted(cell, key=str)}, bits)
        common = sorted(shown.items(), key=lambda pair: -pair[1])[:_MOST_KEYS]
        keys = [list(pair) for pair in common]
        return said | {"null": null, "keys": keys, "listed": False, "least": selection.least()}

    def _add_noise(self, counts: list[int], bits: Bits) -> list[int]:
        return Laplace(self.scale).release(counts, bits)


def _count_codes(kind: Type, cell: MeasureValue) -> list[int]:
    """The counts of all bins of a type, in their order, empty ones too."""
    assert isinstance(cell, Mapping)
    return [cell.get(code, 0) for code in ValueBins(kind).codes]


def _hash_plan(policy: Policy, planned: tuple[ProfiledTable, ...], scale: Fraction, key_delta: Fraction | None) -> str:
    """The name of a profile: equal for equal rows, columns, noise and epochs. Caps and analysts have no part in it."""
    from tacit.curator.profile_key import PROFILES

    values = ("profile", 1, policy.epoch, policy.neighbors, planned, scale, key_delta)
    zones = _list_zones(policy, planned)
    named = (*values, zones) if zones else values  # what is not declared is not written: keys of before stay
    return hashlib.sha256(canonical_text(named, PROFILES).encode()).hexdigest()


def _list_zones(policy: Policy, planned: tuple[ProfiledTable, ...]) -> tuple[tuple[str, str, str], ...]:
    """The columns that are profiled whose clock is not that of UTC, each with its table and its zone."""
    found = ((table, policy.table(table.name)) for table in planned)
    columns = (
        (table, declared.column(column.name)) for table, declared in found if declared for column in table.columns
    )
    return tuple((table.name, column.name, column.zone) for table, column in columns if column and column.zone)
