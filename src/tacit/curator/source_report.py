"""What reading the data found. It is said of the data, exactly, and so to its owner only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tacit.curator.resources import check_recorded_source
from tacit.curator.tables import table_schemas
from tacit.engines.base import TableEngine
from tacit.engines.ingest import ReadTable, digest_source
from tacit.errors import LedgerError
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path
from tacit.policy.model import Policy
from tacit.query.types import Type

EXACT = "(an exact figure, for the owner alone: it must not stand in the policy, which is public)"


def list_source_remarks(policy: Policy, engine: TableEngine) -> Iterator[PolicyAdvice]:
    """What could not be read, and whether the source is still the one that the epoch began with."""
    yield from _list_changes(policy, engine)
    from tacit.engines.duckdb import DuckDBEngine

    if isinstance(engine, DuckDBEngine):
        for name, read in engine.tables.items():
            yield from _list_losses(policy, name, read)


def _list_changes(policy: Policy, engine: TableEngine) -> Iterator[PolicyAdvice]:
    """The source has changed since its copy was made, or since the ledger first saw this epoch."""
    later = f"raise epoch to {policy.epoch + 1} under [data] to ask about it"
    read = engine.source_digests()
    if policy.engine == "duckdb" and isinstance(policy.source, Path):
        now = digest_source(table_schemas(policy), policy.source)
        for name in sorted(name for name, digest in now.items() if read[name] != digest):
            what = (
                f"has changed since epoch {policy.epoch} was read, and answers are still about what was read; {later}"
            )
            yield PolicyAdvice(format_path(("tables", name)), what)
    try:
        check_recorded_source(policy, read)
    except LedgerError as error:
        yield PolicyAdvice("data.epoch", f"{error.what}; {error.fix}")


def _list_losses(policy: Policy, name: str, read: ReadTable) -> Iterator[PolicyAdvice]:
    """Values that do not fit their type, and rows that are nobody's."""
    table = policy.table(name)
    assert table is not None
    if read.without_unit:
        what = f"{read.without_unit:,} of {read.rows:,} rows have no {table.unit}, and no question counts them {EXACT}"
        yield PolicyAdvice(format_path(("tables", name)), what)
    for column, lost in read.misfits.items():
        declared = table.column(column)
        assert declared is not None
        what = f"{lost:,} of {read.rows:,} rows hold a value that is not {declared.type}, read as NULL {EXACT}"
        if declared.type is Type.FLOAT and read.has_decimal_commas:
            what += "; with semicolons 1.234 is one, which may be 1234: write it as 1234 or 1,234, or declare it int"
        yield PolicyAdvice(format_path(("tables", name, "columns", column)), what)
