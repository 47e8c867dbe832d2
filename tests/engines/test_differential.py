"""Random aggregations over random small tables: every engine and the reference say the same."""

from __future__ import annotations

import datetime
import math
import random
from fractions import Fraction
from itertools import count
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.engines import sql_statements
from tacit.engines.limit_joins import limit_joins
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import DATE_PARTS, Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    ToFloat,
    UnitWindow,
    WindowStatistic,
)
from tacit.query.timestamps import DAY, HOUR, LAST, PERIODS, to_microseconds

pytestmark = pytest.mark.slow

DAYS = [datetime.date(2025, 1, 1), datetime.date(2025, 12, 31), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
MOMENT = to_microseconds(datetime.datetime(2025, 3, 30, 2, 30, 0, 500_000))
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, 7, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 0.5, 1.0, -1.25, 1e300, 5e-324, math.nan, math.inf, -math.inf],
    "text": ["a", "b", "", "-", "é'", '"', "a\x1fb", "日本"],
    "bool": [True, False],
    "date": DAYS,
    "timestamp": [0, 1, MOMENT, MOMENT + 1, MOMENT // DAY * DAY, LAST],
}
COLUMNS = {
    "u": "int",
    "v": "text",
    "t": "text",
    "g": "int",
    "d": "date",
    "m": "timestamp",
    "b": "bool",
    "i": "int",
    "f": "float",
    "e": "float",
}
KEYED = ("int", "text", "bool", "date", "timestamp")


class Questions:
    """Draws rows and questions. `columns` are always {name: type}."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = (f"c{number}" for number in count())

    def table(self) -> list[dict[str, Any]]:
        """Few values, so that rows meet and tie; a tenth are NULL; some units have many rows."""
        few = {kind: self.rng.sample(values, min(4, len(values))) for kind, values in VALUES.items()}
        size = self.rng.choice([0, 1, 5, 12, 25])
        return [
            {name: None if self.rng.random() < 0.1 else self.rng.choice(few[kind]) for name, kind in COLUMNS.items()}
            for _ in range(size)
        ]

    def tables(self) -> dict[str, Any]:
        return {name: (COLUMNS, self.table()) for name in ("r", "s")}

    def rows(self, depth: int) -> tuple[RelationalNode, dict[str, str]]:
        """A node, and the columns that it has."""
        kinds = ["scan"] if depth == 0 else ["select", "match", "fold", "stack", "window", "scan"]
        match self.rng.choice(kinds):
            case "select":
                source, columns = self.rows(depth - 1)
                made = self.selected(columns)
                where = self.scalar("bool", columns) if self.rng.random() < 0.5 else None
                return Projection(source, tuple((n, s) for n, s, _ in made), where), {n: kind for n, _, kind in made}
            case "match":
                left, ours = self.rows(depth - 1)
                right, theirs = self.rows(0 if self.rng.random() < 0.5 else depth - 1)
                on = []
                for _ in range(self.rng.choice([1, 1, 2])):
                    kind = self.rng.choice(KEYED)
                    on.append((self.scalar(kind, ours, 0), self.scalar(kind, theirs, 0)))
                outer = self.rng.random() < 0.5
                return EquiJoin(left, right, tuple(on), outer, self.units(ours, theirs)), ours | theirs
            case "fold":
                source, columns = self.rows(depth - 1)
                kinds = [self.rng.choice(KEYED) for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]
                keys = [(next(self.names), self.scalar(kind, columns, 1)) for kind in kinds]
                measures = [(next(self.names), *self.inner(columns)) for _ in range(self.rng.randint(1, 3))]
                made = {name: kind for (name, _), kind in zip(keys, kinds, strict=True)}
                made |= {name: kind for name, _, kind in measures}
                return PerUnitAggregation(source, tuple(keys), tuple((name, m) for name, m, _ in measures)), made
            case "window":
                return self.windows(depth)
            case "stack":
                parts = [self.rows(depth - 1) for _ in range(2)]
                shape = [(next(self.names), self.rng.choice(list(VALUES))) for _ in range(4)]
                stacked = [
                    Projection(rows, tuple((name, self.scalar(kind, columns, 1)) for name, kind in shape))
                    for rows, columns in parts
                ]
                return RowUnion(tuple(stacked)), dict(shape)
        columns = {name: (next(self.names), kind) for name, kind in COLUMNS.items()}
        scanned = tuple((name, here) for name, (here, _) in columns.items())
        return Scan(self.rng.choice("rs"), scanned), dict(columns.values())

    def units(self, ours: dict[str, str], theirs: dict[str, str]) -> tuple[str, str] | None:
        """A column of each side, of one type, by which a join is limited; or none."""
        kind = self.rng.choice(KEYED)
        sides = [[name for name, of in columns.items() if of == kind] for columns in (ours, theirs)]
        if not all(sides) or self.rng.random() < 0.5:
            return None
        return self.rng.choice(sides[0]), self.rng.choice(sides[1])

    def windows(self, depth: int) -> tuple[RelationalNode, dict[str, str]]:
        """Windows over a projection, as the planner makes them: floats in it are never NaN."""
        below, columns = self.rows(depth - 1)
        made = [(name, scalar, kind) for name, scalar, kind in self.selected(columns) if kind != "float"]
        made += [(next(self.names), self.scalar(kind, columns, 1), kind) for kind in ("int", "float", "int")]
        source: RelationalNode = Projection(below, tuple((name, scalar) for name, scalar, _ in made))
        kinds = {name: kind for name, _, kind in made}
        keyed = [name for name, kind in kinds.items() if kind in KEYED]
        for _ in range(self.rng.choice([1, 1, 2])):
            order = tuple(
                (name, self.rng.random() < 0.5, self.rng.random() < 0.5)
                for name in self.rng.sample(list(kinds), self.rng.randint(0, min(2, len(kinds))))
            )
            partition = tuple(self.rng.sample(keyed, self.rng.randint(1, min(2, len(keyed)))))
            added = [(next(self.names), *self.window(kinds, bool(order))) for _ in range(self.rng.randint(1, 3))]
            source = UnitWindow(source, partition, order, tuple((name, each) for name, each, _ in added))
            kinds |= {name: kind for name, _, kind in added}
        return source, kinds

    def window(self, kinds: dict[str, str], ordered: bool) -> tuple[WindowStatistic, str]:
        """A window function, and the type of its values."""
        numbers = ["row_number", "ntile", *(["rank", "dense_rank"] if ordered else [])]
        values = ["lag", "lead", "first_value", "last_value", "nth_value"]
        function = self.rng.choice([*numbers, *values, *values, "count", "sum", "min", "max"])
        if function in numbers:
            return WindowStatistic(function, number=self.rng.randint(1, 4) if function == "ntile" else None), "int"
        ends = sorted(self.rng.choice([None, -2, -1, 0, 1, 2]) or 0 for _ in range(2))
        start, end = (None if self.rng.random() < 0.4 else each for each in ends)
        peers = ordered and function in {"count", "sum", "min", "max"} and self.rng.random() < 0.5
        if peers:
            start, end = self.rng.choice([(None, 0), (0, None), (0, 0)])
        names = [name for name, kind in kinds.items() if kind == "int" or (function != "sum" and kind != "bool")]
        argument = self.rng.choice(names)
        kind = kinds[argument]
        if function == "count" and self.rng.random() < 0.5:
            return WindowStatistic(function, None, None, None, start, end, peers), "int"
        if function in {"lag", "lead"}:
            others = [name for name, of in kinds.items() if of == kind]
            otherwise = self.rng.choice(others) if self.rng.random() < 0.3 else None
            return WindowStatistic(function, argument, self.rng.randint(0, 2), otherwise), kind
        number = self.rng.randint(1, 3) if function == "nth_value" else None
        given = WindowStatistic(function, argument, number, None, start, end, peers)
        return given, "int" if function == "count" else kind

    def selected(self, columns: dict[str, str]) -> list[tuple[str, Scalar, str]]:
        passed = [(name, ColumnReference(name), kind) for name, kind in columns.items() if self.rng.random() < 0.7]
        kinds = [self.rng.choice(list(VALUES)) for _ in range(2)]
        return [*passed, *((next(self.names), self.scalar(kind, columns, 1), kind) for kind in kinds)]

    def inner(self, columns: dict[str, str]) -> tuple[ExactStatistic, str]:
        """A measure inside a Fold, and the type of its values."""
        kind = self.rng.choice(KEYED)
        match self.rng.choice(["rows", "count", "distinct", "sum", "min", "max"]):
            case "rows":
                return ExactStatistic("count", None), "int"
            case "sum":
                return ExactStatistic("sum", self.scalar("int", columns, 1)), "int"
            case "count" | "distinct" as function:
                return ExactStatistic(function, self.scalar(self.rng.choice(list(VALUES)), columns, 1)), "int"
            case function:  # of a truth value there is none in PostgreSQL, and none that a question may ask for
                kind = "int" if kind == "bool" else kind
                return ExactStatistic(function, self.scalar(kind, columns, 1)), kind

    def literal(self, kind: str) -> Scalar:
        value = self.rng.choice(VALUES[kind])
        return Literal(Fraction(self.rng.randint(-8, 8), 4) if kind == "float" else value)

    def scalar(self, kind: str, columns: dict[str, str], depth: int = 2) -> Scalar:
        """A scalar of a type. Arithmetic is over clamped columns, and NaN never gets out, as the planner sees to."""
        own = [ColumnReference(name) for name, of in columns.items() if of == kind]
        if kind == "float":
            own = [Clamp(column, Fraction(-2), Fraction(2), whole=False) for column in own]
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice(own) if own and self.rng.random() < 0.9 else self.literal(kind)

        def inner(of: str) -> Scalar:
            return self.scalar(of, columns, depth - 1)

        def small() -> Scalar:
            return Clamp(inner("int"), Fraction(-9), Fraction(9), whole=True)

        forms = [lambda: Case(((inner("bool"), inner(kind)),), inner(kind)), lambda: inner(kind)]
        forms.append(lambda: Case(((inner("bool"), inner(kind)),), Literal(None)))
        if kind != "float":
            forms.append(lambda: Call(Function.COALESCE, (inner(kind), inner(kind))))
        part = self.rng.choice(sorted(DATE_PARTS))
        if kind == "int":
            forms += [
                lambda: Call(self.rng.choice([Function.ADD, Function.SUBTRACT, Function.MULTIPLY]), (small(), small()))
            ]
            forms += [lambda: Quantize(inner("float"), Fraction(1, 4), -8, 8), small]
            rest = Call(Function.MOD, (inner("timestamp"), Literal(DAY)))
            forms += [lambda: Call(Function.QUOTIENT, (rest, Literal(HOUR))), lambda: Call(part, (inner("date"),))]
        if kind == "timestamp":
            period = Literal(self.rng.choice([*PERIODS.values()]))
            whole = Call(Function.QUOTIENT, (inner("timestamp"), period))
            days = Call(Function.DAYS, (inner("date"), Literal(datetime.date.min)))
            forms += [lambda: Call(Function.MULTIPLY, (whole, period))]
            forms += [lambda: Call(Function.MULTIPLY, (days, Literal(DAY)))]
        if kind == "date":
            unit = Literal(self.rng.choice(["year", "quarter", "month", "week"]))
            forms += [lambda: Call(Function.DATE_OF, (inner("timestamp"),))]
            forms += [lambda: Call(Function.DATE_TRUNC, (unit, inner("date")))]
        if kind == "float":
            forms.append(lambda: ToFloat(small()))
        if kind == "bool":
            of = self.rng.choice(["int", "float", "date", "timestamp"])
            order = self.rng.choice(
                [
                    Function.LESS,
                    Function.LESS_EQUAL,
                    Function.GREATER,
                    Function.GREATER_EQUAL,
                    Function.EQUAL,
                    Function.UNEQUAL,
                ]
            )
            any_of = self.rng.choice(list(VALUES))
            forms += [lambda: Call(order, (inner(of), inner(of))), lambda: Call(Function.IS_NULL, (inner(any_of),))]
            forms += [lambda: Call(self.rng.choice([Function.AND, Function.OR]), (inner("bool"), inner("bool")))]
            forms += [
                lambda: Call(Function.NOT, (inner("bool"),)),
                lambda: Call(Function.EQUAL, (inner("text"), inner("text"))),
            ]
            forms += [lambda: Call(Function.IN, (inner("text"), self.literal("text"), self.literal("text")))]
        return self.rng.choice(forms)()

    def measure(self, columns: dict[str, str]) -> ExactStatistic:
        function = self.rng.choice(["count", "count", "sum", "distinct", "distinct_sum", "units", "histogram"])
        if function == "units" or (function == "count" and self.rng.random() < 0.5):
            return ExactStatistic(function, None)
        kinds = {"sum": ["int"], "distinct_sum": ["int"], "histogram": KEYED}.get(function, list(VALUES))
        return ExactStatistic(function, self.scalar(self.rng.choice(kinds), columns))

    def key(self, columns: dict[str, str]) -> GroupKey:
        kind = self.rng.choice(KEYED)
        values = self.rng.sample(VALUES[kind], self.rng.randint(1, len(VALUES[kind])))
        return GroupKey(self.scalar(kind, columns, 1), tuple(values) if self.rng.random() < 0.5 else None)

    def aggregation(self) -> Aggregation:
        source, columns = self.rows(self.rng.choice([0, 1, 1, 2]))
        units = [name for name, kind in columns.items() if kind in KEYED]
        unit = self.rng.choice(units) if units and self.rng.random() < 0.75 else None
        return Aggregation(
            source=source,
            where=self.scalar("bool", columns) if self.rng.random() < 0.4 else None,
            unit=unit,
            keys=tuple(self.key(columns) for _ in range(self.rng.choice([0, 1, 1, 2]))),
            keep=ContributionBounds(self.rng.randint(1, 3), self.rng.randint(1, 3), self.rng.choice([None, 2, 3, 5])),
            measures=tuple(self.measure(columns) for _ in range(self.rng.randint(1, 4))),
            salt=self.rng.choice(["", "salt", "it's"]),
        )


def typed(groups: Any) -> dict[Any, Any]:
    """Groups with the type of every value, because True == 1."""

    def shown(value: Any) -> Any:
        return (
            {(type(k), k): (type(n), n) for k, n in value.items()} if isinstance(value, dict) else (type(value), value)
        )

    return {tuple(map(shown, keys)): tuple(map(shown, cells)) for keys, cells in groups.items()}


def compare(engines: Any, node: Aggregation) -> int:
    """Both say the same, where of each unit two rows of a side are joined; how many groups there are."""
    node = limit_joins(node, 2)
    found, expected = (typed(engine.run(node)) for engine in engines)
    assert found == expected, node
    return len(found)


@settings(
    max_examples=1000 if FULL else 6,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rng=st.randoms(use_true_random=False))
def test_random_aggregations(opened, rng):
    questions = Questions(rng)
    tables = questions.tables()
    engines = (opened("duckdb", tables), opened("reference", tables))
    try:
        for _ in range(3):
            compare(engines, questions.aggregation())
    finally:
        engines[0].close()


SEEDS = [("duckdb", seed, 40 if FULL else 16) for seed in range(300 if FULL else 2)]
SEEDS += [("postgres", seed, 40 if FULL else 16) for seed in range(300 if FULL else 2)]
# Each question takes Spark a while.
SEEDS += [("spark", 1000 + seed, 8 if FULL else 3) for seed in range(20 if FULL else 1)]


@pytest.mark.parametrize(("kind", "seed", "size"), SEEDS)
def test_seeded_aggregations(kind, seed, size, opened):
    """Many questions over each table: quicker than drawing a table for each."""
    questions = Questions(random.Random(seed))
    tables = questions.tables()
    engines = (opened(kind, tables), opened("reference", tables))
    try:
        groups = [compare(engines, questions.aggregation()) for _ in range(size)]
    finally:
        engines[0].close()
    # Not all of them are about nothing.
    assert sum(groups) >= size // 4 or any(len(rows) <= 1 for _, rows in tables.values())


def test_every_statement_calls_only_what_is_allowed(called, built_of, allowed):
    questions = Questions(random.Random(77))
    sources = {"r": "r", "s": "s"}
    seen = set()
    for _ in range(120 if FULL else 60):
        node = limit_joins(questions.aggregation(), 2)
        statements = [sql_statements.write_aggregation(node, sources)]
        statements += [
            sql_statements.write_histogram(node, m, sources) for m in node.measures if m.function == "histogram"
        ]
        for statement in statements:
            seen |= called(statement)
            assert built_of(statement) <= allowed.operators | allowed.clauses
    assert seen - allowed.scalars == allowed.skeleton


def test_nothing_that_is_allowed_is_volatile(allowed):
    rows = duckdb.sql("SELECT upper(function_name), stability FROM duckdb_functions()").fetchall()
    known = {name: stability for name, stability in rows if name in allowed.skeleton | allowed.scalars}
    assert {"MD5_NUMBER", "CHR", "LEAST", "FLOOR"} <= set(known)
    assert {name for name, stability in known.items() if stability not in {None, "CONSISTENT"}} == set()
