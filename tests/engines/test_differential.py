"""Random aggregations over random small tables: DuckDB and the reference say the same integers."""

from __future__ import annotations

import datetime
import math
import os
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacit.curator.curator import shapes
from tacit.engines.duckdb import DuckDB
from tacit.engines.reference import Reference
from tacit.errors import Code, Refused
from tacit.plan.plan import plan_for
from tacit.policy.load import load
from tacit.query.sql import parse

FULL = os.environ.get("TACIT_FULL") == "1"
DAYS = [datetime.date(2025, 1, 1), datetime.date(2025, 1, 2)]
TEXTS = ["a", "b", "é'", '"', ""]
COLUMNS = {
    "t": {"type": "text", "values": ["a", "b", "é'"]},
    "g": {"type": "int", "lower": 0, "upper": 3, "values": [0, 1, 2]},
    "d": {"type": "date", "values": DAYS},
    "b": {"type": "bool"},
    "i": {"type": "int", "lower": -3, "upper": 7},
    "w": {"type": "int", "lower": -(2**62), "upper": 2**62},
    "f": {"type": "float", "lower": -2, "upper": 3.5, "step": 0.25},
    "e": {"type": "float", "lower": 0, "upper": 1},
    "u": {"type": "int"},
    "p": {"type": "float"},
}
TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}

whole = st.one_of(
    st.integers(-5, 9), st.sampled_from([2**62, 2**62 + 1, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1]), st.none()
)
number = st.one_of(st.floats(-4, 4), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e300, 5e-324, 0.125, None]))
row = st.fixed_dictionaries(
    {
        "who": st.sampled_from([1, 1, 2, 3, None]),
        "t": st.one_of(st.sampled_from(TEXTS), st.none()),
        "g": st.one_of(st.integers(-1, 4), st.none()),
        "d": st.sampled_from([*DAYS, datetime.date(1999, 1, 1), None]),
        "b": st.sampled_from([True, False, None]),
        "i": whole,
        "w": whole,
        "f": number,
        "e": number,
        "u": whole,
        "p": number,
    }
)

bounded = st.sampled_from(
    ["i", "f", "e", "g", "0", "1", "3", "0.5", "2.25", "-1.5", "i", "f", "w", "FLOOR(i)", "CEIL(w)"]
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A numeric expression of smaller ones."""
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from("+-*"), inner),
        st.builds(lambda x: f"(- {x})", inner),
        st.builds(lambda f, x: f"{f}({x})", st.sampled_from(["ABS", "FLOOR", "CEIL"]), inner),
        st.builds(lambda f, xs: f"{f}({xs[0]}, {xs[1]})", st.sampled_from(["LEAST", "GREATEST", "COALESCE"]), pair),
        # a quotient, an unbounded integer and an unbounded float get bounds of their own
        st.builds(lambda xs: f"GREATEST(-5, LEAST({xs[0]} / {xs[1]}, 5))", pair),
        st.builds(lambda x: f"({x} / 4)", inner),
        st.sampled_from(["LEAST(9, GREATEST(u, -9))", "GREATEST(-1, LEAST(p, 2.5))"]),
        st.builds(lambda c, x, y: f"CASE WHEN {c} THEN {x} ELSE {y} END", simple_conditions, inner, inner),
        st.builds(lambda c, x: f"CASE WHEN {c} THEN {x} END", simple_conditions, inner),
        st.builds(lambda s, x, y: f"CASE {s} WHEN 1 THEN {x} WHEN 2 THEN {y} END", inner, inner, inner),
    )


compared = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
simple_conditions = st.one_of(
    st.builds(lambda x, op, y: f"{x} {op} {y}", st.sampled_from(["i", "f", "u", "p", "w", "e"]), compared, bounded),
    st.sampled_from(
        [
            *["b", "NOT b", "b = FALSE", "TRUE", "1 = 2", "t = 'a'", "t <> 'é'''", "t IN ('', '\"', 'b')"],
            *["d = DATE '2025-01-01'", "d < '2025-01-02'", "d BETWEEN '1999-01-01' AND '2025-01-01'", "g IN (0, 2)"],
            *["i NOT IN (1, 2.5)", "u IS NULL", "p IS NOT NULL", "f IS NULL", "i / g IS NULL", "p BETWEEN -1 AND 2.5"],
        ]
    ),
)
numbers = st.recursive(bounded, grown, max_leaves=5)
integers = st.recursive(
    st.sampled_from(["i", "i", "g", "w", "2", "LEAST(9, GREATEST(u, -9))"]),
    lambda inner: st.one_of(
        st.builds(lambda f, x: f"{f}({x})", st.sampled_from(["ABS", "FLOOR", "CEIL", "-"]), inner),
        st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from("+-*"), inner),
        st.builds(lambda c, x: f"CASE WHEN {c} THEN {x} END", simple_conditions, inner),
    ),
    max_leaves=3,
)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds(lambda x: f"NOT ({x})", inner),
        st.builds(lambda c, x, y: f"CASE WHEN {c} THEN {x} ELSE {y} END", inner, inner, inner),
    )


conditions = st.recursive(
    st.one_of(simple_conditions, st.builds(lambda x, op, y: f"{x} {op} {y}", numbers, compared, numbers)),
    joined,
    max_leaves=3,
)
measures = st.one_of(
    st.just("COUNT(*)"),
    st.builds(lambda f, x: f"{f}({x})", st.sampled_from(["SUM", "AVG"]), integers),
    st.builds(lambda f, x: f"{f}({x})", st.sampled_from(["COUNT", "SUM", "SUM", "AVG"]), numbers),
    st.builds(lambda x, c: f"SUM({x}) FILTER (WHERE {c})", numbers, conditions),
    st.builds(lambda x: f"COUNT({x})", st.sampled_from(["u", "p", "t", "b", "d", "i / f"])),
)


@st.composite
def questions(draw):
    keys = draw(st.sampled_from([[], ["g"], ["t"], ["d", "b"], ["b", "g", "t"]]))
    some = draw(st.lists(measures, min_size=1, max_size=3))
    where = draw(st.one_of(st.none(), conditions))
    outputs = ", ".join(f"{measure} AS m{n}" for n, measure in enumerate(some))
    condition = f" WHERE {where}" if where else ""
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {outputs} FROM r{condition}{grouping}"


def policy_of(groups: int, most: int, by_row: bool, neighbors: str):
    unit = {"unit": "row"} if by_row else {"unit": "who", "max_groups": groups, "max_rows_per_group": most}
    return load(
        {
            "privacy": {"epsilon": 1, "neighbors": neighbors},
            "tables": {"r": {**unit, "columns": COLUMNS}},
            "analysts": {"ada": {"epsilon": 1}},
        }
    )


def engine_over(rows, policy) -> DuckDB:
    """The rows lie in another order: what is kept of a unit does not depend on it."""
    kinds = {"who": pa.int64()} | {name: TYPES[column["type"]] for name, column in COLUMNS.items()}
    table = pa.table({name: pa.array([r[name] for r in reversed(rows)], kind) for name, kind in kinds.items()})
    return DuckDB(shapes(policy), None, {"r": table})


def compare(engine: DuckDB, rows, plan, sql: str) -> dict:
    """What both engines say."""
    found, expected = dict(engine.run(plan.exact)), dict(Reference({"r": rows}).run(plan.exact))
    assert found == expected, sql
    assert all(type(number) is int for numbers in found.values() for number in numbers)
    return expected


@settings(
    max_examples=3000 if FULL else 80,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(
    rows=st.one_of(st.lists(row, max_size=4), st.lists(row, min_size=12, max_size=20)),
    sql=questions(),
    groups=st.integers(1, 4),
    most=st.integers(1, 3),
    by_row=st.sampled_from([True, False, False, False]),
    neighbors=st.sampled_from(["add-remove", "replace"]),
)
def test_random_aggregations(rows, sql, groups, most, by_row, neighbors):
    policy = policy_of(groups, most, by_row, neighbors)
    try:
        plan = plan_for(parse(sql), policy, 1)
    except Refused:
        assume(False)
    engine = engine_over(rows, policy)
    try:
        expected = compare(engine, rows, plan, sql)
    finally:
        engine.close()
    # One unit moves each vector by no more than the plan says: take the rows of one of them away.
    nothing = (0,) * len(plan.exact.measures)
    for one in range(len(rows)) if by_row else {r["who"] for r in rows} - {None}:
        rest = [r for n, r in enumerate(rows) if (n if by_row else r["who"]) != one]
        without = dict(Reference({"r": rest}).run(plan.exact))
        for part in plan.parts:
            terms = [(factor, plan.exact.measures.index(measure)) for factor, measure in part.vector.terms]
            moved = sum(
                abs(sum(f * (expected.get(k, nothing)[i] - without.get(k, nothing)[i]) for f, i in terms))
                for k in expected.keys() | without.keys()
            )
            assert moved <= part.sensitivity, sql


def random_row(rng: random.Random) -> dict:
    """Mostly plain values, now and then a hard one."""

    def pick(hard: list, plain):
        return rng.choice(hard) if rng.random() < 0.15 else plain

    wide = [None, 2**62, 2**62 + 1, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1]
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 1e300, 5e-324, 0.125]
    return {
        "who": pick([None], rng.randint(1, 6)),
        "t": pick([None, '"', ""], rng.choice(TEXTS[:3])),
        "g": pick([None, -1, 4], rng.randint(0, 2)),
        "d": pick([None, datetime.date(1999, 1, 1)], rng.choice(DAYS)),
        "b": pick([None], rng.random() < 0.5),
        "i": pick(wide, rng.randint(-4, 8)),
        "w": pick(wide, rng.choice([rng.randint(-9, 9), rng.randint(-(2**60), 2**60)])),
        "f": pick(odd, rng.randint(-9, 15) / 4),
        "e": pick(odd, rng.random()),
        "u": pick(wide, rng.randint(-12, 12)),
        "p": pick(odd, rng.uniform(-3, 3)),
    }


def random_number(rng: random.Random, depth: int, columns: list[str]) -> str:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(columns)
    x, y = (random_number(rng, depth - 1, columns) for _ in range(2))
    condition = random_condition(rng, 0)
    forms = [f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"(- {x})", f"ABS({x})", f"FLOOR({x})", f"CEIL({x})"]
    forms += [f"LEAST({x}, {y})", f"GREATEST({x}, {y})", f"COALESCE({x}, {y})", f"CASE WHEN {condition} THEN {x} END"]
    forms += [f"CASE WHEN {condition} THEN {x} ELSE {y} END", f"CASE {x} WHEN 1 THEN {y} WHEN 2 THEN 3 END"]
    forms += [f"GREATEST(-5, LEAST({x} / {y}, 5))", f"({x} / 4)"] if "f" in columns else []
    return rng.choice(forms)


def random_condition(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        x, y = (random_number(rng, min(depth, 1), FLOATS) for _ in range(2))
        plain = ["b", "NOT b", "t = 'a'", "t <> 'b'", "t IN ('a', '')", "d >= '2025-01-02'", "u IS NULL", "g IN (0, 1)"]
        return rng.choice([*plain, f"{x} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {y}", f"p < {x}", f"u >= {x}"])
    x, y = (random_condition(rng, depth - 1) for _ in range(2))
    return rng.choice([f"({x} AND {y})", f"({x} OR {y})", f"NOT ({x})", f"CASE WHEN {x} THEN {y} ELSE b END"])


WHOLES = ["i", "i", "g", "w", "2", "-3", "LEAST(9, GREATEST(u, -9))"]
FLOATS = ["i", "f", "e", "g", "1", "0.5", "-1.5", "GREATEST(-1, LEAST(p, 2.5))"]


def random_question(rng: random.Random) -> str:
    measures = ["COUNT(*)"]
    for _ in range(rng.randint(1, 2)):
        argument = random_number(rng, rng.randint(0, 3), rng.choice([WHOLES, FLOATS]))
        condition = f" FILTER (WHERE {random_condition(rng, 1)})" if rng.random() < 0.3 else ""
        measures.append(f"{rng.choice(['SUM', 'SUM', 'AVG', 'COUNT'])}({argument}){condition}")
    where = f" WHERE {random_condition(rng, 2)}" if rng.random() < 0.5 else ""
    keys = rng.choice(["", "", " GROUP BY g", " GROUP BY t", " GROUP BY d, b", " GROUP BY b, g, t"])
    return f"SELECT {', '.join(f'{m} AS m{n}' for n, m in enumerate(measures))} FROM r{where}{keys}"


@pytest.mark.parametrize("seed", range(200 if FULL else 20))
def test_seeded_aggregations(seed):
    """Many questions over each table: quicker than drawing a table for each."""
    rng = random.Random(seed)
    rows = [random_row(rng) for _ in range(rng.choice([0, 3, 30, 60]))]
    policy = policy_of(rng.randint(1, 3), rng.randint(1, 3), seed % 4 == 0, "replace" if seed % 2 else "add-remove")
    engine = engine_over(rows, policy)
    answered, refused = 0, set()
    try:
        for _ in range(25):
            sql = random_question(rng)
            try:
                plan = plan_for(parse(sql), policy, 1)
            except Refused as refusal:
                refused.add(refusal.code)
                continue
            compare(engine, rows, plan, sql)
            answered += 1
    finally:
        engine.close()
    # Products of wide integers are refused, and little else.
    assert answered >= 12 and refused <= {Code.OVERFLOW, Code.UNBOUNDED}
