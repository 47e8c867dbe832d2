"""How many rows the caps of a policy leave out. It is said of the data, exactly, and so to its owner only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.curator.prepare import planned, quoted
from tacit.engines.base import Engine
from tacit.policy.check import Remark
from tacit.policy.locate import dotted
from tacit.policy.model import ROW, Policy, Table

_ALL = 10**9  # rows of one unit, which none has


@dataclass(frozen=True)
class Cut:
    """Of a table's rows that have a unit: how many count without GROUP BY, and how many at most with it."""

    table: Table
    rows: int
    total: int
    grouped: int

    def __str__(self) -> str:
        one, many = limits(self.table)
        return (
            f"an answer without groups counts {self.total:,} of {self.rows:,} rows ({one} of one unit at most), and "
            f"groups together count up to {self.grouped:,} ({many}), so they can add up to more than the total; "
            f"larger caps count more, with more noise (these figures are exact: they are for the owner alone)"
        )


def limits(table: Table) -> tuple[int, int]:
    """The rows of one unit that count: in an answer without groups, and in all groups of one with them."""
    one = table.max_rows_per_group
    return one, table.max_groups * one if table.max_rows is None else min(table.max_groups * one, table.max_rows)


def cuts(policy: Policy, engine: Engine) -> Iterator[Cut]:
    """What the caps of each table leave out that names its unit.

    A unit with n rows has min(n, cap) of them counted, so the sum of these over all units is what an answer counts. It
    grows with the cap, which tells the three sums apart.
    """
    for table in policy.tables:
        if not isinstance(table.unit, str) or table.unit == ROW:
            continue
        one, many = limits(table)
        caps = sorted({one, many, _ALL})
        unit, sums = quoted(table.unit), ", ".join(f"SUM(LEAST(n, {cap}))" for cap in caps)
        each = f"SELECT {unit}, COUNT(*) AS n FROM {quoted(table.name)} GROUP BY {unit}"
        exact = planned(policy, f"SELECT {sums} FROM ({each})")
        if exact is not None:
            cells = next(iter(engine.run(exact).values()), (0,) * len(caps))
            counted = dict(zip(caps, sorted(cell for cell in cells if isinstance(cell, int)), strict=True))
            yield Cut(table, counted[_ALL], counted[one], counted[many])


def remarks(policy: Policy, engine: Engine) -> Iterator[Remark]:
    """The tables of which the caps leave rows out."""
    for cut in cuts(policy, engine):
        if cut.total < cut.rows:
            yield Remark(dotted(("tables", cut.table.name)), str(cut))
