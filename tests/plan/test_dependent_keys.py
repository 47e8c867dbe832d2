"""Keys that are computed from one column: the combinations that its values have, against DuckDB's over all of them."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.curator.test_public_keys import answered, number
from tests.support.counts import FULL, some
from tests.support.policies import caps

from tacit.curator.resources import open_engine
from tacit.errors import ErrorCode, Refused
from tacit.plan.noise import Part
from tacit.plan.plan import Plan
from tacit.plan.planner import Planner, make_plans
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy

TRIES = 20 if FULL else 1
DAYS = (datetime.date(2023, 11, 20), datetime.date(2024, 3, 10))
MOMENTS = (datetime.datetime(2024, 2, 27, 21, 30), datetime.datetime(2024, 3, 2, 4, 15))
WARDS = ["north", "Nord", "west"]


@lru_cache
def policy_of(neighbors: str = "add-remove", groups: int = 30, rows: int = 30) -> Policy:
    day, moment = ({"lower": low, "upper": high} for low, high in (DAYS, MOMENTS))
    columns = {
        "day": {"type": "date", **day},
        "moment": {"type": "timestamp", **moment},
        "n": {"type": "int", "lower": -3, "upper": 12},
        "wide": {"type": "date", "lower": datetime.date(1900, 1, 1), "upper": datetime.date(2020, 12, 31)},
        "ward": {"type": "text", "values": WARDS},
        "kind": {"type": "text", "values": ["x", "y"], "other": "z"},
        "is_new": {"type": "bool"},
    }
    return load(
        {
            "privacy": {"epsilon": 1000, "neighbors": neighbors},
            "tables": {
                "v": {"unit": "who", "people": "all", **caps(groups, rows), "columns": columns},
                "w": {"unit": "who", "people": "all", **caps(groups, rows), "columns": {"day": columns["day"]}},
            },
            "analysts": {"ada": {"epsilon": 1000}},
        }
    )


def planned(sql: str, policy: Policy | None = None) -> Plan:
    plan = make_plans(Question(sql, epsilon=100), policy or policy_of()).plan
    assert isinstance(plan, Plan)
    return plan


def make_rows(rng: random.Random, size: int) -> pa.Table:
    """Rows within the bounds, at them, beyond them and with NULLs."""

    def some(*values: Any) -> Any:
        return None if rng.random() < 0.1 else rng.choice(values)

    def day(low: datetime.date, high: datetime.date) -> Any:
        within = low + datetime.timedelta(rng.randint(0, (high - low).days))
        return some(within, within, within, low, high, low - datetime.timedelta(40), high + datetime.timedelta(400))

    def moment() -> Any:
        low, high = MOMENTS
        within = low + (high - low) * rng.random()
        return some(within, within, within, low, high, low - datetime.timedelta(40), high + datetime.timedelta(400))

    rows = [
        {
            "who": rng.randint(1, 12),
            "day": day(*DAYS),
            "moment": moment(),
            "n": some(*range(-5, 15)),
            "wide": day(datetime.date(1900, 1, 1), datetime.date(2020, 12, 31)),
            "ward": some(*WARDS),
            "kind": some("x", "y", "other"),
            "is_new": some(True, False),
        }
        for _ in range(size)
    ]
    types = {"who": pa.int64(), "day": pa.date32(), "moment": pa.timestamp("us"), "n": pa.int64(), "wide": pa.date32()}
    types |= {"ward": pa.string(), "kind": pa.string(), "is_new": pa.bool_()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


_DAY = "FROM range(DATE '2023-11-20', DATE '2024-03-11', INTERVAL '1 day') AS t(d)"
_MINUTE = "FROM range(TIMESTAMP '2024-02-27 21:30', TIMESTAMP '2024-03-02 04:16', INTERVAL '1 minute') AS t(m)"
_N = "FROM range(-3, 13) AS t(n)"
# The keys of a question, and what DuckDB says of them over all declared values.
QUESTIONS = {
    "day, DATE_TRUNC('month', day) AS m": f"d::DATE, DATE_TRUNC('month', d)::DATE {_DAY}",
    "TO_CHAR(day, 'Mon') AS m, EXTRACT(MONTH FROM day) AS k": f"strftime(d, '%b'), MONTH(d) {_DAY}",
    "EXTRACT(YEAR FROM day) AS y, EXTRACT(QUARTER FROM day) AS q, EXTRACT(MONTH FROM day) AS m": (
        f"YEAR(d), QUARTER(d), MONTH(d) {_DAY}"
    ),
    "day, DATE_TRUNC('week', day) AS w, DATE_TRUNC('month', day) AS m, EXTRACT(DOW FROM day) AS k": (
        f"d::DATE, DATE_TRUNC('week', d)::DATE, DATE_TRUNC('month', d)::DATE, DAYOFWEEK(d) {_DAY}"
    ),
    "n, CASE WHEN n < 5 THEN 'few' ELSE 'many' END AS s": f"n, CASE WHEN n < 5 THEN 'few' ELSE 'many' END {_N}",
    "FLOOR(n / 5.0) AS f, n > 4 AS b": f"FLOOR(n / 5.0), n > 4 {_N}",
    "ward, UPPER(ward) AS u": "w, UPPER(w) FROM (VALUES ('north'), ('Nord'), ('west')) AS t(w)",
    "ward, LENGTH(ward) AS u, is_new": (
        "w, LENGTH(w), b FROM (VALUES ('north'), ('Nord'), ('west')) AS t(w), (VALUES (TRUE), (FALSE)) AS u(b)"
    ),
    "is_new, NOT is_new AS b": "b, NOT b FROM (VALUES (TRUE), (FALSE)) AS t(b)",
    "DATE_TRUNC('day', moment) AS d, EXTRACT(DOW FROM moment) AS w": (
        f"DATE_TRUNC('day', m)::TIMESTAMP, DAYOFWEEK(m) {_MINUTE}"
    ),
    "CAST(moment AS DATE) AS d, EXTRACT(HOUR FROM moment) AS h": f"m::DATE, HOUR(m) {_MINUTE}",
    "DATE_TRUNC('hour', moment) AS h, TO_CHAR(moment, 'Mon') AS m": (
        f"DATE_TRUNC('hour', m)::TIMESTAMP, strftime(m, '%b') {_MINUTE}"
    ),
    "CAST(moment + INTERVAL '90 minutes' AS DATE) AS d, EXTRACT(HOUR FROM moment) AS h": (
        f"(m + INTERVAL '90 minutes')::DATE, HOUR(m) {_MINUTE}"
    ),
    "EXTRACT(YEAR FROM wide) AS y, FLOOR(EXTRACT(YEAR FROM wide) / 10) AS e": (
        "y, FLOOR(y / 10) FROM range(1900, 2021) AS t(y)"
    ),
}


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[[pa.Table], Any]]:
    """Opens an engine over rows; equal rows are read once."""
    made: list[tuple[pa.Table, Any]] = []

    def find(rows: pa.Table) -> Any:
        if all(rows != known for known, _ in made):
            made.append((rows, open_engine(policy_of(), {"v": rows, "w": rows.select(["who", "day"])})))
        return next(engine for known, engine in made if known == rows)

    yield find
    for _, engine in made:
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("keys", QUESTIONS)
def test_the_groups_are_those_that_a_declared_value_has_and_every_row_is_in_its_own(keys, opened):
    plain = duckdb.connect()
    expected = set(plain.execute(f"SELECT DISTINCT {QUESTIONS[keys]}").fetchall())
    width = len(min(expected))
    places = ", ".join(map(str, range(1, width + 1)))
    sql = f"SELECT {keys}, COUNT(*) AS rows FROM v GROUP BY {places}"
    plan = planned(sql)
    assert plan.recipe.combinations is not None and plan.recipe.groups == len(expected)
    assert plan.cells == len(expected) * (width + 1) and plan.shown is None and plan.delta == 0
    for seed in range(TRIES):
        rows = make_rows(random.Random(seed), 200)
        plain.register("v", _clamp(plain, rows))
        found = {row[:width]: row[width] for row in answered(plan, opened(rows))}
        assert set(found) == expected
        told = {row[:width]: row[width] for row in plain.execute(_in_duckdb(sql)).fetchall()}
        for group, count in found.items():
            assert count == told.get(group, 0)
        assert sum(found.values()) == sum(count for group, count in told.items() if None not in group)


def _clamp(plain: duckdb.DuckDBPyConnection, rows: pa.Table) -> pa.Table:
    """The rows as the policy reads them, by DuckDB."""
    plain.register("raw", rows)
    low, high = (f"DATE '{day}'" for day in DAYS)
    first, last = (f"TIMESTAMP '{moment}'" for moment in MOMENTS)
    wide = ["DATE '1900-01-01'", "DATE '2020-12-31'"]

    def clamp(name: str, low: str, high: str) -> str:
        return f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE {name} END AS {name}"

    columns = [clamp("day", low, high), clamp("moment", first, last), clamp("n", "-3", "12"), clamp("wide", *wide)]
    return plain.execute(f"SELECT who, {', '.join(columns)}, ward, kind, is_new FROM raw").to_arrow_table()


def _in_duckdb(sql: str) -> str:
    """The question in DuckDB's words."""
    sql = re.sub(r"TO_CHAR\((\w+), 'Mon'\)", r"strftime(\1, '%b')", sql)
    return re.sub(r"(DATE_TRUNC\('\w+', day\))", r"\1::DATE", sql)


@pytest.mark.slow
def test_where_leaves_the_combinations_of_what_it_leaves():
    sql = "SELECT day, EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM v WHERE {} GROUP BY 1, 2"
    counts = {
        "day >= DATE '2024-03-01'": 10,
        "EXTRACT(DOW FROM day) = 1 AND day < DATE '2023-12-01'": 2,
        "EXTRACT(DAY FROM day) = 31": 2,  # which KeyNarrowing does not know
        "n > 3": 112,
    }
    for where, count in counts.items():
        assert planned(sql.format(where)).recipe.groups == count
    rows = "SELECT day AS d, EXTRACT(MONTH FROM day) AS m FROM v WHERE {}"
    inner = f"SELECT d, m, COUNT(*) AS n FROM ({rows}) AS t GROUP BY 1, 2"
    for where, count in counts.items():
        assert planned(inner.format(where)).recipe.groups == count
    moments = (
        "SELECT CAST(moment AS DATE) AS d, EXTRACT(HOUR FROM moment) AS h, COUNT(*) AS n FROM v WHERE {} GROUP BY 1, 2"
    )
    assert planned(moments.format("n > 3")).recipe.groups == 3 + 24 * 3 + 5  # from 21:30, and to 4:15
    assert planned(moments.format("moment >= TIMESTAMP '2024-03-01 12:00:00'")).recipe.groups == 12 + 5
    assert planned(moments.format("moment >= TIMESTAMP '2024-03-01 12:34:56'")).recipe.groups == 24 + 5


def test_a_condition_within_a_subquery_narrows_one_key_too():
    sql = "SELECT m, COUNT(*) AS n FROM (SELECT EXTRACT(MONTH FROM day) AS m, n FROM v WHERE {}) AS t GROUP BY m"
    for where, months in {
        "day >= DATE '2024-02-01'": [2, 3],
        "day >= DATE '2023-12-31' AND n > 3": [1, 2, 3, 12],
        "EXTRACT(DAY FROM day) = 31": [1, 12],
    }.items():
        groups = planned(sql.format(where)).recipe.list_groups()
        assert [month for (month,) in groups] == months
    assert planned(sql.format("n > 3")).recipe.combinations is None


@pytest.mark.slow
def test_a_cast_key_stays_on_the_grid_of_what_is_cast():
    sql = "SELECT {} AS k, COUNT(*) AS c FROM v GROUP BY 1"
    assert planned(sql.format("CAST(FLOOR(n / 5.0) * 5 AS INT)")).recipe.list_groups() == [(k,) for k in (-5, 0, 5, 10)]
    assert planned(sql.format("(FLOOR(n / 5.0) * 5)::INT")).recipe.groups == 4
    assert planned(sql.format("CAST(FLOOR(n / 5.0) AS INT)")).recipe.list_groups() == [(k,) for k in (-1, 0, 1, 2)]
    wide = "SELECT CAST(FLOOR((n + 3) * 1000 / 500.0) * 500 AS INT) AS k, COUNT(*) AS c FROM v GROUP BY 1"
    assert planned(wide).recipe.groups == 31  # 15,001 integers, which nobody would list
    rows = make_rows(random.Random(1), 300)
    engine = open_engine(policy_of(), {"v": rows, "w": rows.select(["who", "day"])})
    found = dict(answered(planned(sql.format("CAST(FLOOR(n / 5.0) * 5 AS INT)")), engine))
    engine.close()
    numbers = [min(12, max(-3, n)) for n in rows["n"].to_pylist() if n is not None]
    assert found == {k: sum(k <= n < k + 5 for n in numbers) for k in (-5, 0, 5, 10)}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", " WHERE ward IN ('north', 'west')", " WHERE ward <> 'west'"])
@pytest.mark.parametrize(
    "keys",
    [
        "CASE WHEN ward IN ('north', 'Nord', 'west') THEN 'known' ELSE 'rest' END AS a, ward IS NULL AS b",
        "CASE WHEN ward = 'north' THEN 1 WHEN ward IN ('Nord', 'west') THEN 2 ELSE 3 END AS a, ward IS NULL AS b",
        "ward IS NULL AS a, COALESCE(ward = 'west', FALSE) AS b",
    ],
)
def test_a_row_with_an_undeclared_value_is_in_the_group_that_its_keys_say(keys, where, opened):
    wards = [*WARDS, None, "east", "n"] * 3
    rows = make_rows(random.Random(1), len(wards)).set_column(5, "ward", pa.array(wards))
    plain = duckdb.connect()
    plain.register("v", rows)
    sql = f"SELECT {keys}, COUNT(*) AS rows FROM v{where} GROUP BY 1, 2"
    found = {row[:2]: row[2] for row in answered(planned(sql), opened(rows)) if row[2]}
    assert found == {row[:2]: row[2] for row in plain.execute(sql).fetchall()}


@pytest.mark.parametrize(
    "keys",
    [
        "ward, is_new",  # of two columns
        "LENGTH(ward) AS a, ward LIKE 'n%' AS b",  # of one, which may hold what is not declared
        "v.day, w.day",
        "EXTRACT(DOW FROM day), n > 4",
        "ward, EXTRACT(MONTH FROM day) % 2",
        "EXTRACT(DOW FROM day) AS a, EXTRACT(DAY FROM day) % 2 AS b",  # of one, and every combination occurs
        "n + EXTRACT(MONTH FROM day) AS a, n AS b",
        "EXTRACT(HOUR FROM moment) % 2 AS a, EXTRACT(MINUTE FROM moment) % 2 AS b",
    ],
)
def test_keys_that_do_not_depend_on_each_other_are_listed_in_all_combinations(keys):
    source = "v JOIN w ON w.who = v.who" if "w.day" in keys else "v"
    where = " WHERE v.day < DATE '2023-12-01' AND w.day < DATE '2023-12-01'" if "w.day" in keys else ""
    plan = planned(f"SELECT {keys}, COUNT(*) AS n FROM {source}{where} GROUP BY 1, 2")
    assert plan.recipe.combinations is None


def test_more_keys_may_be_grouped_by_than_all_combinations_admit():
    keys = "day, EXTRACT(WEEK FROM day) AS w, DATE_TRUNC('month', day) AS m, EXTRACT(DAY FROM day) AS d"
    assert planned(f"SELECT {keys}, COUNT(*) AS n FROM v GROUP BY 1, 2, 3, 4").recipe.groups == 112
    before = policy_of().without_dependent_keys
    with pytest.raises(Refused) as refused:
        planned(f"SELECT {keys}, COUNT(*) AS n FROM v GROUP BY 1, 2, 3, 4", before)
    assert refused.value.code is ErrorCode.TOO_MANY_GROUPS
    with pytest.raises(Refused) as refused:
        planned(
            "SELECT day, EXTRACT(MONTH FROM day) AS m, n, ward, is_new, COUNT(*) AS c FROM v GROUP BY 1, 2, 3, 4, 5"
        )
    assert refused.value.code is ErrorCode.TOO_MANY_GROUPS


def test_keys_of_letters_that_engines_change_in_different_ways_are_not_listed():
    columns = {"ward": {"type": "text", "values": ["west", "straße"]}}
    table = {"unit": "who", **caps(2, 3), "columns": columns}
    policy = load({"privacy": {"epsilon": 1}, "tables": {"v": table}, "analysts": {"ada": {"epsilon": 1}}})
    for keys in ("UPPER(ward)", "ward, UPPER(ward)", "LOWER(ward) || '!'"):
        with pytest.raises(Refused) as refused:
            planned(f"SELECT {keys}, COUNT(*) AS n FROM v GROUP BY ALL", policy)
        assert refused.value.code is ErrorCode.PRIVATE_KEY
    assert planned("SELECT LENGTH(ward), COUNT(*) AS n FROM v GROUP BY 1", policy).recipe.groups == 2


# The last letter of ΟΔΟΣ has another small form at the end of a word, to some.
@pytest.mark.parametrize(
    ("ward", "engine", "is_known"),
    [
        *[(ward, "duckdb", False) for ward in ("straße", "ΟΔΟΣ", "İzmir")],
        *[(ward, "duckdb", True) for ward in ("Zürich", "Ärzte", "plain", "北京")],
        *[(ward, "postgres", False) for ward in ("Zürich", "Ärzte", "straße", "ΟΔΟΣ")],
        *[(ward, "postgres", True) for ward in ("plain", "北京")],
    ],
)
def test_letters_that_engines_change_in_different_ways_take_no_key_away(ward, engine, is_known):
    """PostgreSQL before version 17 changes the letters A to Z alone."""
    columns = {"ward": {"type": "text", "values": ["west", ward]}}
    data = {"engine": engine, "source": "postgresql://host/clinic" if engine == "postgres" else "clinic.duckdb"}
    table = {"unit": "who", **caps(2, 3), "columns": columns}
    analysts = {"ada": {"epsilon": 1}}
    policy = load({"data": data, "privacy": {"epsilon": 1}, "tables": {"v": table}, "analysts": analysts})

    def groups(where: str) -> int | None:
        return planned(f"SELECT ward, COUNT(*) AS n FROM v WHERE {where} GROUP BY ward", policy).recipe.groups

    assert groups("UPPER(ward) = 'WEST'") == (1 if is_known else 2)
    assert groups("ward <> 'west'") == 1
    keys = "ward, CASE WHEN UPPER(ward) = 'WEST' THEN 'w' ELSE 'o' END AS k"
    found = planned(f"SELECT {keys}, COUNT(*) AS n FROM v GROUP BY 1, 2", policy).recipe.groups
    assert found == (2 if is_known else 4)


def test_a_key_that_no_time_changes_is_in_every_group_that_a_condition_leaves():
    """Times at or after the first one: TRUE for each of them, at five o'clock too."""
    first = "COALESCE(moment >= TIMESTAMP '0001-01-01', FALSE)"
    rows = f"SELECT {first} AS a, {first} AND TRUE AS b FROM v WHERE COALESCE(EXTRACT(HOUR FROM moment), 5) = 5"
    plan = planned(f"SELECT a, b, COUNT(*) AS n FROM ({rows}) AS t GROUP BY 1, 2")
    assert {(True, True), (False, False)} <= set(plan.recipe.list_groups())


def test_a_value_that_is_not_declared_is_left_out_where_the_column_itself_is_compared_alone():
    """A row with the kind X has the key for others, and meets LOWER(kind) = 'x'."""
    for where, groups in (("kind = 'x'", 1), ("kind IN ('x', 'y')", 2), ("LOWER(kind) = 'x'", 2)):
        plan = planned(f"SELECT kind, COUNT(*) AS n FROM v WHERE {where} GROUP BY kind")
        assert plan.recipe.groups == groups, where


@pytest.mark.parametrize("depth", [1, 4, 5, 6])
def test_what_takes_too_long_for_all_values_is_listed_in_all_combinations(depth):
    rows = "SELECT EXTRACT(DOY FROM wide) AS x FROM v"
    for _ in range(depth):
        rows = f"SELECT (x + (x + 3) % 7 + (x + 1) % 11) % 400 AS x FROM ({rows}) AS t"
    keys = "x > 100 AS a, x > 200 AS b, x > 300 AS c"
    plan = planned(f"SELECT {keys}, COUNT(*) AS n FROM ({rows}) AS t GROUP BY 1, 2, 3")
    assert plan.recipe.groups == (4 if depth == 1 else 8)


NEIGHBORS = ["add-remove", "replace"]
PAIRS = [(keys, NEIGHBORS[(place + shift) % 2]) for place, keys in enumerate(QUESTIONS) for shift in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "neighbors"), some(PAIRS, 5))  # by default six, three under each relation
def test_one_unit_moves_no_more_than_is_paid_for(keys, neighbors):
    rng = random.Random(keys + neighbors)
    width = len(next(iter(duckdb.execute(f"SELECT DISTINCT {QUESTIONS[keys]} LIMIT 1").fetchall())))
    places = ", ".join(map(str, range(1, width + 1)))
    for _ in range(TRIES):
        policy = policy_of(neighbors, rng.randint(1, 3), rng.randint(1, 3))
        plan = planned(f"SELECT {keys}, COUNT(*) AS rows, SUM(n) AS t FROM v GROUP BY {places}", policy)
        one, other = make_rows(rng, 60), make_rows(rng, 60)
        moved = one.filter(pa.compute.not_equal(one["who"], 2))
        if neighbors == "replace":
            moved = pa.concat_tables([moved, other.filter(pa.compute.equal(other["who"], 2))])
        engines = [open_engine(policy, {"v": rows, "w": rows.select(["who", "day"])}) for rows in (one, moved)]
        before, after = (engine.run(plan.exact) for engine in engines)
        for part in plan.parts:
            assert isinstance(part, Part)
            groups = plan.recipe.list_groups()
            pairs = [(before.get(group), after.get(group)) for group in groups]
            assert sum(abs(number(plan, part, a) - number(plan, part, b)) for a, b in pairs) <= part.sensitivity
        for engine in engines:
            engine.close()


def test_who_paid_for_all_combinations_does_not_pay_again():
    question = Question("SELECT day, EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM v GROUP BY 1, 2", epsilon=1)
    plans = make_plans(question, policy_of())
    before = planned_at(question, policy_of().without_dependent_keys)
    assert plans.plan.key != before.key and before.key in {plan.key for plan in plans.former}
    known = Planner(policy_of(), knows_only=lambda one, other: one == before.key)
    assert known.plan(question).key == before.key
    assert Planner(policy_of(), knows_only=lambda one, other: False).plan(question).key == plans.plan.key


def planned_at(question: Question, policy: Policy) -> Plan:
    plan = make_plans(question, policy).plan
    assert isinstance(plan, Plan)
    return plan
