"""How many rows the caps of a policy leave out. It is said of the data, exactly, and so to its owner only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.curator.copies import plan_aggregation, plan_capped, quote_name
from tacit.engines.base import Engine
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path
from tacit.policy.model import ROW_UNIT, Policy, Table

_UNLIMITED = 10**9  # rows of one unit, which none has
_CHOSEN = (
    "how much one unit may add is chosen for each question, so there are no caps that leave rows out; an answer says "
    "the clip and an estimate of what was cut off"
)


@dataclass(frozen=True)
class Coverage:
    """Of a table's rows that have a unit: how many count without GROUP BY, and how many at most with it."""

    table: Table
    rows: int
    total: int
    grouped: int

    def __str__(self) -> str:
        one, many = rows_per_unit_limits(self.table)
        where = "for questions that cannot use a chosen clip, such as medians: " if self.table.auto else ""
        return (
            f"{where}an answer without groups counts {self.total:,} of {self.rows:,} rows ({one} of one unit at most), "
            f"and groups together count up to {self.grouped:,} ({many}), so they can add up to more than the total; "
            f"larger caps count more, with more noise (these figures are exact: they are for the owner alone, and the "
            f"policy is public, so choose caps by tacit profile, not by them)"
        )


def rows_per_unit_limits(table: Table) -> tuple[int, int]:
    """The rows of one unit that count: in an answer without groups, and in all groups of one with them."""
    one = table.max_rows_per_group
    return one, table.max_groups * one if table.max_rows is None else min(table.max_groups * one, table.max_rows)


def measure_coverage(policy: Policy, engine: Engine) -> Iterator[Coverage]:
    """What the caps of each table leave out that names its unit and has caps.

    A unit with n rows has min(n, cap) of them counted, so the sum of these over all units is what an answer counts. It
    grows with the cap, which tells the three sums apart.
    """
    for table in policy.tables:
        if not isinstance(table.unit, str) or table.unit == ROW_UNIT or not table.has_caps:
            continue
        one, many = rows_per_unit_limits(table)
        caps = sorted({one, many, _UNLIMITED})
        unit, sums = quote_name(table.unit), ", ".join(f"SUM(LEAST(n, {cap}))" for cap in caps)
        each = f"SELECT {unit}, COUNT(*) AS n FROM {quote_name(table.name)} GROUP BY {unit}"
        exact = plan_aggregation(plan_capped(policy), f"SELECT {sums} FROM ({each})")
        if exact is not None:
            cells = next(iter(engine.run(exact).values()), (0,) * len(caps))
            counted = dict(zip(caps, sorted(cell for cell in cells if isinstance(cell, int)), strict=True))
            yield Coverage(table, counted[_UNLIMITED], counted[one], counted[many])


def list_coverage_remarks(policy: Policy, engine: Engine) -> Iterator[PolicyAdvice]:
    """The tables of which the caps leave rows out, and those that have no caps because a clip is chosen."""
    for table in policy.tables:
        if not table.has_caps:
            yield PolicyAdvice(format_path(("tables", table.name)), _CHOSEN)
    for cut in measure_coverage(policy, engine):
        if cut.total < cut.rows:
            yield PolicyAdvice(format_path(("tables", cut.table.name)), str(cut))
