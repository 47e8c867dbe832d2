"""How the values of the data lie to what is declared of them. It is said exactly, and so to their owner only."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from tacit.curator.copies import readings_of
from tacit.curator.source_report import EXACT
from tacit.curator.tables import table_schemas
from tacit.engines.base import Engine, MeasureValue
from tacit.engines.ingest import count_clamped
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path, quote_string
from tacit.policy.model import Column, Policy, Table
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, Case, ColumnReference, ExactStatistic, Literal, Scalar, Scan
from tacit.query.types import Type

_MOST_LISTED = 1_000  # values that are not declared, of which the most frequent is named


class ValueRemarks(NamedTuple):
    """Remarks on columns: values that lie outside of their bounds or are not declared, and values that are missing."""

    unlike: list[PolicyAdvice]
    missing: list[PolicyAdvice]


def describe_values(policy: Policy, engine: Engine) -> ValueRemarks:
    """What share of the values of each column is not as declared, and what share is missing."""
    clamped = {}
    if policy.engine == "duckdb" and isinstance(policy.source, Path):  # whose copy holds values as they are read
        clamped = count_clamped(table_schemas(policy), policy.source, readings_of(policy))
    found = ValueRemarks([], [])
    for table in policy.tables:
        _describe_table(table, engine, clamped.get(table.name, {}), found)
    return found


def _describe_table(table: Table, engine: Engine, clamped: Mapping[str, int], remarks: ValueRemarks) -> None:
    asked: dict[tuple[str, str], Scalar] = {}
    for column in table.columns:
        here: Scalar = ColumnReference(column.name)
        asked[column.name, "present"] = here
        if column.lower is not None and column.upper is not None:
            below = Call(Function.LESS, (here, _literal(column, column.lower)))
            above = Call(Function.GREATER, (here, _literal(column, column.upper)))
            asked[column.name, "outside"] = _where(Call(Function.OR, (below, above)))
        if column.values is not None and column.other is None:
            asked[column.name, "undeclared"] = _where(_test_undeclared(column))
    measures = (ExactStatistic("count", None), *(ExactStatistic("count", each) for each in asked.values()))
    rows, *counts = (int(n) for n in _run(table, engine, measures) if isinstance(n, int))
    if rows == 0:
        remarks.unlike.append(PolicyAdvice(format_path(("tables", table.name)), f"has no rows {EXACT}"))
        return
    found = dict(zip(asked, counts, strict=True)) | {(name, "outside"): many for name, many in clamped.items()}
    for column in table.columns:
        at = format_path(("tables", table.name, "columns", column.name))
        present = found[column.name, "present"]
        if present < rows:
            read = "" if column.nullable else ", and are read as lower"
            remarks.missing.append(PolicyAdvice(at, f"{_share(rows - present, rows)} are NULL{read} {EXACT}"))
        if outside := found.get((column.name, "outside"), 0):
            text = "lie outside of its bounds, and are read as the nearest bound"
            remarks.unlike.append(PolicyAdvice(at, f"{_share(outside, present)} {text} {EXACT}"))
        if undeclared := found.get((column.name, "undeclared"), 0):
            text = (
                f"are none of its declared values, and in no group of them{_name_most_frequent(table, column, engine)}"
            )
            remarks.unlike.append(PolicyAdvice(at, f"{_share(undeclared, present)} {text} {EXACT}"))


def _name_most_frequent(table: Table, column: Column, engine: Engine) -> str:
    """The value that is most often there and not declared; nothing where they are too many to be looked at."""
    value = Case(((_test_undeclared(column), ColumnReference(column.name)),), Literal(None))
    (different,) = _run(table, engine, (ExactStatistic("distinct", value),))
    if not isinstance(different, int) or different > _MOST_LISTED:
        return ""
    (counts,) = _run(table, engine, (ExactStatistic("histogram", value),))
    assert not isinstance(counts, int)
    most = max(counts, key=lambda each: (counts[each], str(each)))
    return f"; the most frequent is {quote_string(most) if isinstance(most, str) else most}"


def _run(table: Table, engine: Engine, measures: tuple[ExactStatistic, ...]) -> tuple[MeasureValue, ...]:
    """Measures of all rows of a table, as they are read and before any value is clamped."""
    scan = Scan(table.name, tuple((column.name, column.name) for column in table.columns))
    exact = Aggregation(scan, None, None, (), ContributionBounds(1, 1), measures)
    nothing: tuple[MeasureValue, ...] = tuple({} if each.function == "histogram" else 0 for each in measures)
    return engine.run(exact).get((), nothing)


def _literal(column: Column, bound: Fraction) -> Literal:
    """A bound as the column's values are compared with it."""
    match column.type:
        case Type.DATE:
            return Literal(datetime.date.fromordinal(int(bound)))
        case Type.FLOAT:
            return Literal(bound)
    return Literal(int(bound))  # timestamps are integers


def _where(condition: Scalar) -> Scalar:
    return Case(((condition, Literal(1)),), Literal(None))


def _test_undeclared(column: Column) -> Scalar:
    values = (Literal(value) for value in column.values or ())
    return Call(Function.NOT, (Call(Function.IN, (ColumnReference(column.name), *values)),))


def _share(some: int, all_of_them: int) -> str:
    return f"{some:,} of {all_of_them:,} values ({_format_percentage(Fraction(100 * some, all_of_them))})"


def _format_percentage(percentage: Fraction) -> str:
    """Two digits, or as many as tell a share from nothing and from all; never an exponent.

    >>> [_format_percentage(Fraction(each)) for each in ("100", "99.99996", "99.7", "50", "1/3", "1/2000000")]
    ['100 %', 'more than 99.9 %', '99.7 %', '50 %', '0.33 %', 'less than 0.001 %']
    """
    if 0 < percentage < Fraction(1, 1000):
        return "less than 0.001 %"
    if Fraction(999, 10) < percentage < 100:
        return "more than 99.9 %"
    return f"{float(percentage):.{3 if percentage >= 99 else 2}g} %"
