"""Histograms of columns without bounds: every engine counts as Python does, at the ends of the types too."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest
from tests.query.test_value_bins import expected
from tests.support.bits import Ones
from tests.support.counts import FULL
from tests.support.policies import caps, policy_of

from tacit.aggregates.registry import read_question
from tacit.answers.choosing_values import fill
from tacit.answers.data_profile import DataProfile
from tacit.curator.ask import release
from tacit.curator.profile import ChargedProfile
from tacit.curator.tables import table_schemas
from tacit.engines.reference import ReferenceEngine
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load
from tacit.query.timestamps import LAST
from tacit.query.types import Type
from tacit.query.value_bins import NULL, ValueBins

pytestmark = pytest.mark.slow

KINDS = {"x": "float", "n": "int", "d": "date", "t": "timestamp", "b": "bool", "s": "text"}
VALUES: dict[str, list[Any]] = {
    "x": [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -(2.0**-20), 2.0**49, 700.0],
    "n": [None, -(2**63), 2**63 - 1, 2**62, -(2**62), 0, 1, -1, 2, 1023, 1024],
    "d": [None, datetime.date.min, datetime.date.max, datetime.date(1899, 12, 31), datetime.date(2025, 1, 1)],
    "t": [None, 0, LAST, LAST - 1, 63_000_000_000_000_000],
    "b": [None, True, False],
    "s": [None, "a", "b", "c"],
}
ROWS = [
    {"who": str(number), **{name: values[number % len(values)] for name, values in VALUES.items()}}
    for number in range(60)
]


@pytest.mark.parametrize("kind", ["duckdb", "postgres", *(["spark"] if FULL else [])])
def test_every_value_is_in_its_bin(opened, kind):
    columns = {
        name: {"type": kind, **({"values": ["a", "b"]} if kind == "text" else {})} for name, kind in KINDS.items()
    }
    loaded = load(policy_of({"t": {"unit": "who", "max_rows": "auto", "columns": columns}}, epsilon=1))
    with closing(opened(kind, {"t": ({"who": "text", **KINDS}, ROWS)}, table_schemas(loaded))) as engine:
        profile = DataProfile.decode(ChargedProfile.make(loaded, 1).release(engine, Ones()))
    assert profile is not None
    (table,) = profile.tables
    for name in ("x", "n", "d", "t"):
        column = table.column(name)
        assert column is not None and column.histogram is not None
        wanted = Counter(expected(Type(KINDS[name]), row[name]) for row in ROWS)
        counted = {code: n for code, n in zip(ValueBins(column.type).codes, column.histogram.cells, strict=True) if n}
        assert counted | {NULL: column.null} == wanted
    assert dict(table.column("b").keys) == {"false": 20, "true": 20} and table.column("b").null == 20
    assert dict(table.column("s").keys) == {"a": 15, "b": 15}
    assert (table.column("s").null, table.column("s").others) == (15, 15)
    # 60 units with one row each, in the bin from 1 to 2
    assert [(code, n) for code, n in zip(ValueBins(Type.INT).codes, table.sizes.cells, strict=True) if n] == [(1, 60)]


@pytest.mark.parametrize("kind", ["duckdb", "postgres", *(["spark"] if FULL else [])])
@pytest.mark.parametrize(
    "sql", ["SELECT SUM(x), AVG(n) FROM t", "SELECT b, SUM(n), AVG(x) FROM t WHERE d IS NULL GROUP BY b"]
)
def test_sums_with_chosen_bounds_are_those_of_the_reference(opened, kind, sql):
    columns = {name: {"type": kind} for name, kind in KINDS.items()}
    loaded = load(policy_of({"t": {"unit": "who", **caps(2, 1), "columns": columns}}, epsilon=1))
    plan = plan_for(read_question(sql), loaded, 1)
    assert plan.bounds is not None
    wanted = release(plan, ReferenceEngine({"t": ROWS}), Ones())
    with closing(opened(kind, {"t": ({"who": "text", **KINDS}, ROWS)}, table_schemas(loaded))) as engine:
        assert release(plan, engine, Ones()) == wanted
        for share in (Fraction(1, 2**50), Fraction(2) ** 19, Fraction(1)):  # every B is exact, and none fails
            known = dict.fromkeys((argument.name for argument in plan.bounds.arguments), share)
            exact = [each.run(fill(plan.exact, known)) for each in (engine, ReferenceEngine({"t": ROWS}))]
            assert exact[0] == exact[1]
