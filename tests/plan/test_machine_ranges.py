"""Random scalars over random rows, at the ends of what the machine holds: DuckDB raises for none that passes."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.scalars import write_scalar
from tacit.errors import Refused
from tacit.plan.machine_ranges import Range, Ranges, UnsafeScalar, ValueKind, range_of_type
from tacit.plan.scope import Scope
from tacit.policy.load import load
from tacit.query.bound import TypedScalar
from tacit.query.nodes import Query, Scan, TableReference
from tacit.query.timestamps import LAST
from tacit.query.types import Type

SEEDS = 40 if FULL else 2
EACH = 100  # expressions of a seed

COLUMNS: dict[str, Any] = {
    "i": {"type": "int", "lower": 0, "upper": 10},
    "n": {"type": "int", "lower": -7, "upper": 3},
    "big": {"type": "int", "lower": 0, "upper": 10**12},
    "huge": {"type": "int", "lower": -(2**62), "upper": 2**62},
    "free": {"type": "int"},
    "f": {"type": "float", "lower": 0, "upper": 100},
    "g": {"type": "float", "lower": -4, "upper": 1, "step": 0.5},
    "h": {"type": "float", "lower": -1e15, "upper": 1e15},
    "tiny": {"type": "float", "lower": 0, "upper": 1e-10, "step": 1e-20},
    "d": {"type": "date"},
    "e": {"type": "date", "lower": "2025-01-28", "upper": "2025-02-06"},
    "ts": {"type": "timestamp"},
    "tt": {"type": "timestamp", "lower": "0001-01-01T00:00:00", "upper": "9999-12-31T23:59:59"},
}
POLICY = load(
    {
        "privacy": {"epsilon": 1},
        "tables": {"v": {"unit": "row", "columns": COLUMNS}},
        "analysts": {"ada": {"epsilon": 1}},
    }
)
ODD = [0.49999999999999994, 99.99999999999999, 4503599627370495.5, 5e-324, 1e300, -1e308, math.inf, -math.inf, math.nan]
STORED: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, 5, 10, -1, -7, -9, 10**12, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63), None],
    "float": [0.0, -0.0, 0.5, -0.5, 2.5, 100.0, 1e-10, 1e15, -1e15, *ODD, None],
    "date": [
        *(datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(9999, 11, 30)),
        *(datetime.date(2024, 2, 29), datetime.date(2025, 1, 31), datetime.date(2025, 2, 1), None),
    ],
    "timestamp": [0, LAST, 63_000_000_000_000_000, 63_000_000_086_399_999, 62_135_596_799_999_999, None],
}
ARROW = {"int": pa.int64(), "float": pa.float64(), "date": pa.date32(), "timestamp": pa.int64()}

WHOLE = "0 1 2 7 -1 -7 60 365 1000000000000 9007199254740993 4611686018427387903"
WHOLE += " 9223372036854775807 -9223372036854775807"
REAL = "0.5 2.5 0.1 1e-19 1e-30 1e30 1e100 1e-150 1e-199 0.49999999999999994 4503599627370496.5 1e18 3"
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


class Writer:
    """Writes random expressions as an analyst would."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *texts: str) -> str:
        return self.random.choice(texts)

    def any(self) -> str:
        depth = self.random.choice((1, 2, 2, 3))
        return self.random.choice((self.integer, self.real, self.integer, self.date, self.moment))(depth)

    def number(self, depth: int) -> str:
        return self.real(depth) if self.random.random() < 0.5 else self.integer(depth)

    def integer(self, depth: int) -> str:
        if depth <= 0:
            return self.one("i", "n", "big", "huge", "i", "n", *self.random.choices(WHOLE.split(), k=2), "free")
        a, b, k = self.integer(depth - 1), self.integer(depth - 1), self.one(*WHOLE.split())
        x, y, c = self.real(depth - 1), self.number(depth - 1), self.condition(depth - 1)
        moments = self.moment(depth - 1), self.moment(depth - 1)
        days, unit = (self.date(depth - 1), self.date(depth - 1)), self.one(*UNITS)
        part = self.one("YEAR", "QUARTER", "MONTH", "DAY", "WEEK", "DOY", "ISODOW", "ISOYEAR", "EPOCH")
        return self.one(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"(-{a})", f"ABS({a})", f"MOD({a}, {b})", f"DIV({a}, {b})",
            f"({a} // {k})", f"LEAST({a}, {k})", f"GREATEST({a}, {k})", f"LEAST(GREATEST({a}, {k}), {b})",
            f"COALESCE({a}, {b})", f"CASE WHEN {c} THEN {a} ELSE {b} END", f"SIGN({y})", f"CAST({x} AS BIGINT)",
            f"CAST(LEAST(GREATEST({x}, -4611686018427387903), 4611686018427387903) AS BIGINT)", f"NULLIF({a}, {b})",
            f"CAST(LEAST({x}, {self.one(*REAL.split())}) AS INTEGER)", f"({days[0]} - {days[1]})",
            f"YEARWEEK({days[0]})", f"EXTRACT(YEAR FROM AGE({days[0]}, {days[1]}))",
            f"EXTRACT({part} FROM {self.one(days[0], moments[0])})", f"DATE_DIFF('{unit}', {days[0]}, {moments[1]})",
            f"EXTRACT(DAY FROM {moments[0]} - {moments[1]})",
        )  # fmt: skip

    def real(self, depth: int) -> str:
        if depth <= 0:
            return self.one("f", "g", "h", "tiny", "f", "g", *self.random.choices(REAL.split(), k=2))
        a, b, k = self.number(depth - 1), self.number(depth - 1), self.one(*REAL.split())
        return self.one(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} * {k})", f"FLOOR({a})", f"CEIL({a})",
            f"ROUND({a}, {self.one('0', '1', '2', '15')})", f"TRUNC({a}, {self.one('0', '1', '15')})", f"SQRT({a})",
            f"ROUND({a} * {k})", f"TRUNC({a} * {k})", f"POWER({a}, {self.one('0', '1', '2', '3', '10')})", f"LN({a})",
            f"EXP(LEAST(GREATEST({a}, -1000), 460))", f"LEAST({a}, {b})", f"GREATEST({a}, {b})", f"COALESCE({a}, {b})",
            f"ABS({a})", f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END",
        )  # fmt: skip

    def interval(self) -> str:
        size = self.one("1", "-1", "7", "999999", "999999999", "1000000000", "-99999999999")
        return f"INTERVAL '{size} {self.one(*UNITS)}'"

    def date(self, depth: int) -> str:
        if depth <= 0:
            return self.one("e", "e", "d", "DATE '2025-01-31'", "DATE '0001-01-01'", "DATE '9999-12-31'")
        a, b, n = self.date(depth - 1), self.date(depth - 1), self.integer(depth - 1)
        return self.one(
            f"({a} + {n})", f"({a} - {n})", f"DATE_ADD({a}, {self.interval()})", f"LAST_DAY({a})", f"LEAST({a}, {b})",
            f"CAST({a} + INTERVAL '{self.one('1', '-1', '12', '119988', '-119988')} month' AS DATE)",
            f"DATE_TRUNC('{self.one(*UNITS[:5])}', {a})", f"CAST({self.moment(depth - 1)} AS DATE)",
            f"DATE_ADD('{self.one(*UNITS)}', {n}, {a})", f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END",
        )  # fmt: skip

    def moment(self, depth: int) -> str:
        if depth <= 0:
            return self.one("tt", "tt", "ts", "TIMESTAMP '2025-01-31 10:00:00'", "TIMESTAMP '9999-12-31 23:59:59'")
        a, n, unit = self.moment(depth - 1), self.integer(depth - 1), self.one(*UNITS)
        return self.one(
            f"({a} + {self.interval()})", f"({a} - {self.interval()})", f"({a} + {n} * INTERVAL '1 {unit}')",
            f"DATE_TRUNC('{self.one(*UNITS)}', {a})", f"CAST({self.date(depth - 1)} AS TIMESTAMP)",
            f"GREATEST({a}, {self.moment(depth - 1)})", f"DATE_ADD('{self.one(*UNITS)}', {n}, {a})",
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        a, k = self.number(depth - 1), self.one(*WHOLE.split())
        sign = self.one("<", "<=", ">", ">=", "=", "<>")
        if depth <= 0:
            return self.one(f"i {sign} {k}", f"f {sign} 2.5", "d < DATE '2025-02-01'", f"{k} {sign} free")
        b, c = self.condition(depth - 1), self.condition(depth - 1)
        return self.one(
            f"{a} {sign} {k}", f"({b} AND {c})", f"({b} OR {c})", f"(NOT {b})", f"{a} IS NULL",
            f"{a} BETWEEN 0 AND {k}", f"{self.moment(depth - 1)} - ts > {self.interval()}",
            f"{self.date(depth - 1)} {sign} d",
        )  # fmt: skip


def table(seed: int, columns: dict[str, str]) -> pa.Table:
    """Random rows, by the names that a plan has for the columns."""
    chosen = random.Random(seed)
    names = {there: COLUMNS[there]["type"] for there in columns}
    drawn = {columns[there]: pa.array(chosen.choices(STORED[kind], k=60), ARROW[kind]) for there, kind in names.items()}
    return pa.table(drawn)


def is_in(value: Any, found: Range) -> bool:
    if isinstance(value, datetime.date):
        return found.kind is ValueKind.DATE and found.lower <= value.toordinal() <= found.upper
    if isinstance(value, float) and math.isnan(value):
        return found.kind is ValueKind.FLOAT and not found.is_sure
    kind = ValueKind.INT if isinstance(value, int) else ValueKind.FLOAT
    return found.kind is kind and found.lower <= value <= found.upper


def is_bounded_by(value: Any, bound: TypedScalar) -> bool:
    """Whether a value lies where it is said to; a double may be a little beyond."""
    if bound.type is Type.FLOAT:
        return True
    number = value.toordinal() if isinstance(value, datetime.date) else value
    return (bound.lower is None or bound.lower <= number) and (bound.upper is None or number <= bound.upper)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_row_makes_a_scalar_fail_that_has_a_range(seed: int) -> None:
    written, seen, connection = Writer(seed), Counter[str](), connect_in_memory()
    relation = Scope(POLICY).look(TableReference("v", "v"))
    assert isinstance(relation.rows, Scan)
    columns = dict(relation.rows.columns)
    kinds = {here: range_of_type(Type(COLUMNS[there]["type"])) for there, here in columns.items()}
    connection.register("rows", table(seed, columns))
    connection.execute("CREATE TABLE v AS SELECT * FROM rows")
    for _ in range(EACH):
        text = written.any()
        try:
            query = read_question(f"SELECT {text} AS y FROM v")
            assert isinstance(query, Query)
            bound = relation.bind(query.outputs[0].scalar)
        except Refused:
            seen["refused"] += 1
            continue
        try:
            found = Ranges(kinds).find(bound.scalar)
        except UnsafeScalar:
            seen["unsafe"] += 1
            continue
        try:
            values = connection.execute(f"SELECT {write_scalar(bound.scalar)} FROM v").fetchall()
        except duckdb.Error as error:
            pytest.fail(f"{text}: {error}")
        for (value,) in values:
            if value is None:
                assert bound.nullable, text
                assert not found.is_sure, text
                continue
            assert is_in(value, found), (text, value, found)
            assert is_bounded_by(value, bound), (text, value, bound.lower, bound.upper)
        seen["computed"] += 1
    assert seen["computed"] > EACH / 10
