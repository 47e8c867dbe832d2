"""What a policy names, opened: its engine over the data, and its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tacit.accounting.filters import compute_limits
from tacit.curator.copies import PolicyLayouts, locate_copy, readings_of
from tacit.curator.tables import check_join_columns, table_schemas
from tacit.engines.base import Progress, StoredTables, TableEngine
from tacit.errors import ErrorCode, LedgerError, ParameterError
from tacit.ledger.budget import OWNER, PUBLIC, AnalystLimit, BudgetLimits
from tacit.ledger.epochs import EpochSource, check_epoch
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import SigningKey
from tacit.ledger.witness import Witness
from tacit.plan.planner import KEY_VERSION
from tacit.policy.model import LedgerLocation, Policy


def open_engine(
    policy: Policy,
    data: Mapping[str, Any] | None = None,
    progress: Progress = lambda what, share: None,
    *,
    makes_copy: bool = True,
) -> TableEngine:
    """The policy's engine over its data, or over tables that are handed over.

    Where the data has to be read into a copy first, `progress` is told how far that is. Where none is to be made
    (`makes_copy`), and the data is read into a file, it is a DataError that there is none.

    **Rule.** No copy is moved into place of data that the ledger, where it can be read, refuses under the policy's
    epoch, or whose columns do not match tables as the policy says: the next opening would find it, and would not read
    what the owner has put in order.
    """
    tables = table_schemas(policy)
    match policy.engine, policy.source:
        case "postgres", str(dsn) if data is None:
            from tacit.engines.postgres import PostgresEngine

            return PostgresEngine(tables, dsn)
        case "spark", str() | None as source:
            from tacit.engines.spark import SparkEngine

            return SparkEngine(tables, frames=data, source=source)
    from tacit.engines.duckdb import DuckDBEngine

    file = policy.source if isinstance(policy.source, Path) else None
    layouts = PolicyLayouts(policy)
    copy = locate_copy(policy, layouts) if data is None else None
    return DuckDBEngine(
        tables,
        file,
        data,
        layouts=layouts,
        readings=readings_of(policy),
        copy=copy,
        makes_copy=makes_copy,
        accept=partial(_check_copied, policy),
        progress=progress,
    )


def budget_limits(policy: Policy) -> BudgetLimits:
    """The caps as the ledger takes them. What the owner releases for everyone counts against the overall caps alone."""
    overall = compute_limits(policy.budget.epsilon, policy.budget.delta)
    own = {a.name: AnalystLimit(compute_limits(a.budget.epsilon, a.budget.delta), a.monthly) for a in policy.analysts}
    own[OWNER] = AnalystLimit(overall)
    units = {f"unit of {t.name}": PUBLIC if t.unit is None else str(t.unit) for t in policy.tables}
    scope = {"neighbors": str(policy.neighbors)} | units
    return BudgetLimits(overall, own, scope)


def ledger_files(policy: Policy) -> LedgerLocation:
    """Where the ledger, its key and its witness lie; a policy without them is an error."""
    if policy.books is None:
        raise ParameterError(
            "policy",
            "has no [ledger] section, so spending cannot be recorded",
            fix='add "ledger": {"store": "visits.ledger"}',
        )
    return policy.books


def find_last_opening(policy: Policy) -> int:
    """The number of the entry by which the policy's ledger was opened last; 0 where it never was."""
    books = policy.books
    if books is None or (isinstance(books.store, Path) and not books.store.exists()):
        return 0
    try:
        with LedgerReader(books.store) as history:
            return history.last_opening()
    except LedgerError as error:
        if error.code is not ErrorCode.LEDGER_MISSING:
            raise
        return 0  # another process makes it now


def open_ledger(policy: Policy, engine: TableEngine, known: int | None = None) -> Ledger:
    """The policy's ledger, open for charges of questions to an engine; LedgerError where the epoch is of other data.

    `known` is what `find_last_opening` said when the policy was read: it is refused where budgets have changed since.
    """
    books = ledger_files(policy)
    witness = Witness(books.witness)
    key = SigningKey.at(books.key, create=not witness.exists())
    source = _epoch_source(policy, engine.source_digests(), key)
    limits = budget_limits(policy)
    return Ledger(books.store, limits, key=key, witness=witness, source=source, key_version=KEY_VERSION, known=known)


def reopen_ledger(policy: Policy) -> Ledger:
    """The policy's ledger as it was opened last, for what the owner writes to it; the data is not looked at."""
    books = ledger_files(policy)
    if not find_last_opening(policy):
        raise ParameterError("ledger", "nothing was ever opened with it", fix="ask a question first")
    return Ledger(books.store, None, key=SigningKey.at(books.key, create=False), witness=Witness(books.witness))


def check_recorded_source(policy: Policy, digests: Mapping[str, str]) -> None:
    """Raise LedgerError where the policy's ledger, if there is one yet, refuses the data under the policy's epoch, or
    cannot be read."""
    books = policy.books
    if books is None or not books.key.exists() or (isinstance(books.store, Path) and not books.store.exists()):
        return
    key = SigningKey.at(books.key, create=False)
    with LedgerReader(books.store, wait=5.0) as ledger:
        check_epoch(ledger.sources(key.public), _epoch_source(policy, digests, key))


def _check_copied(policy: Policy, stored: StoredTables) -> None:
    """Raise where no copy may be used further. A ledger that cannot be read says so when it is opened."""
    check_join_columns(policy, stored)
    try:
        check_recorded_source(policy, stored.source_digests())
    except LedgerError as error:
        if error.code is ErrorCode.LEDGER_EPOCH:
            raise


def _epoch_source(policy: Policy, digests: Mapping[str, str], key: SigningKey) -> EpochSource:
    """The data of these digests, as the ledger remembers it."""
    macs = {table: key.compute_mac(found) if found else "" for table, found in digests.items()}
    return EpochSource(policy.epoch, macs, policy.digest)
