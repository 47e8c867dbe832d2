"""From an aggregation to its groups, by the statements of `engines/sql_statements.py`: the same for every engine that
runs SQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from tacit.engines import sql_statements
from tacit.engines.base import GroupedMeasures
from tacit.engines.dialect import Dialect
from tacit.engines.listed_groups import leave_out_groups
from tacit.query.nodes import Aggregation
from tacit.query.types import Key

StatementRunner = Callable[[str], Iterable[tuple[Any, ...]]]
"""Runs a statement and hands back its rows; all statements of one question see one state of the tables."""


def run_aggregation(
    node: Aggregation,
    sources: sql_statements.TableExpressions,
    dialect: Dialect,
    run: StatementRunner,
    prepare: Callable[[Iterable[str]], None] | None = None,
) -> GroupedMeasures:
    """For each group that has rows, its keys and the cell of each measure.

    `prepare` is handed all statements before the first is run.
    """
    node = leave_out_groups(node)
    size, measures = len(node.keys), node.measures
    histograms = [i for i, measure in enumerate(measures) if measure.function == "histogram"]
    plain = [i for i in range(len(measures)) if i not in histograms]
    groups: dict[tuple[Key | None, ...], list[Any]] = defaultdict(
        lambda: [{} if i in histograms else 0 for i in range(len(measures))]
    )
    if size == 0:
        groups[()]  # without keys there is one group, even of no rows
    listed = {i: sql_statements.write_histogram(node, measures[i], sources, dialect) for i in histograms}
    added = [sql_statements.write_aggregation(node, sources, dialect, quick=True)] if plain or not histograms else []
    if prepare is not None:
        prepare([*added, *listed.values()])
    for statement in added:
        rows = list(run(statement))
        if any(number is None for row in rows for number in row[size:]):  # a group of very many rows
            rows = list(run(sql_statements.write_aggregation(node, sources, dialect)))
        for row in rows:
            cells = groups[row[:size]]
            for i, number in zip(plain, row[size:], strict=False):
                cells[i] = to_exact_integer(number)
    for i, statement in listed.items():
        for row in run(statement):
            cells = groups[row[:size]]
            if row[size] is not None:
                cells[i][row[size]] = to_exact_integer(row[size + 1])
    return {group: tuple(cells) for group, cells in groups.items()}


def to_exact_integer(number: object) -> int:
    """What a measure gave. Anything else would be a sum of floats, which depends on the order of the rows."""
    if isinstance(number, Decimal) and number == number.to_integral_value():
        return int(number)
    if not isinstance(number, int):
        raise TypeError("a measure gives integers only")
    return number
