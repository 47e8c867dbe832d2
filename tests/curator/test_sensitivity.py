"""How far one unit moves the exact integers, through the real engine, against what the plan charges for.

With the noise set aside, the release of a plan on D and on a neighbor D' must differ by at most each part's sensitivity
in L1; and the losses of all parts together must be at most the price. Databases are generated to be as awkward as rows
can be. Known worst cases reach the sensitivity exactly, so these tests would notice one that is too small by one.
"""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.curator.curator import shapes
from tacit.engines.duckdb import DuckDB
from tacit.errors import Refused
from tacit.plan.plan import plan_for
from tacit.policy.load import load
from tacit.query.sql import parse

TABLES = ("without", "old", "new")  # a database without the unit, with it, and with another unit in its place
NAN, INF = math.nan, math.inf
EXAMPLES = 120 if os.environ.get("TACIT_FULL") == "1" else 20

AGGREGATES = [
    "COUNT(*)",
    "COUNT(x)",
    "SUM(x)",
    "SUM(y)",
    "AVG(x)",
    "AVG(y)",
    "COUNT(*), SUM(x), AVG(x), COUNT(y)",
    "SUM(-x), SUM(ABS(x) * 3 - 100)",
    "AVG(x + 100), SUM(x * y)",
    "AVG(COALESCE(x, 7)), SUM(GREATEST(0, LEAST(y, 0.25)))",
    "SUM(CASE WHEN y < 0 THEN x ELSE NULL END), AVG(CASE WHEN w THEN 1 ELSE 0 END)",
    "SUM(x / (y + 5)), AVG(FLOOR(y))",
    "SUM(y / 3), AVG(x / y)",
    "SUM(CEIL(x))",
    "SUM(0), COUNT(g)",
]
CLAUSES = ["", "WHERE w", "WHERE x >= 2 OR y IS NULL", "GROUP BY g", "WHERE x <> 5 GROUP BY g", "GROUP BY g, w"]


def questions() -> list[str]:
    found = []
    for aggregate in AGGREGATES:
        for clause in CLAUSES:
            where, _, keys = clause.partition("GROUP BY")
            found.append(f"SELECT {aggregate} FROM without {where}" + (f"GROUP BY{keys}" if keys else ""))
    return found


QUESTIONS = questions()
UNBOUNDED = [text for text in QUESTIONS if "x / y" in text]  # y may be zero, so there is no bound: refused
ASKED = [text for text in QUESTIONS if text not in UNBOUNDED]

ROW = st.tuples(
    st.sampled_from(["A", "B", "C", "D", "Z", "a", "", None]),
    st.sampled_from([-3, 0, 1, 5, 10, -4, 11, 2**62, -(2**63), 2**63 - 1, None]),
    st.sampled_from([-4.0, 1.0, 0.0, -0.0, 0.25, 0.75, -0.1, 1e308, -1e308, 5e-324, NAN, INF, -INF, None]),
    st.sampled_from([True, True, True, False, None]),
)
OTHERS = st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), ROW), max_size=12)


def loss(plan, one, other, ones) -> Fraction:
    """How much of the price the move from one database to the other uses up; at most the price."""
    released = [plan.release(exact, ones) for exact in (one, other)]
    total = Fraction(0)
    for part, before, after in zip(plan.parts, *released, strict=True):
        moved = sum(abs(a - b) for a, b in zip(before, after, strict=True))
        assert moved <= part.sensitivity, part
        total += moved / part.mechanism.scale
    assert total <= plan.epsilon
    return total


class World:
    """A policy and three tables that share an engine."""

    def __init__(self, folder: Path, declared, write, unit: str, neighbors: str, caps: dict[str, int], rows) -> None:
        for table in TABLES:
            write(folder / f"{table}.parquet", rows[table])
        self.policy = load(declared(TABLES, unit, neighbors, **caps))
        self.engine = DuckDB(shapes(self.policy), folder)

    def exact(self, plan):
        """The exact integers of each of the three tables, by the same aggregation with the same salt."""
        return [self.engine.run(replace(plan.exact, table=table)) for table in TABLES]

    def losses(self, text: str, ones) -> tuple[Fraction, Fraction, Fraction]:
        """The losses of adding the old unit, of adding the new one, and (where it is a neighbor) of the replacement."""
        plan = plan_for(parse(text), self.policy, 1)
        without, old, new = self.exact(plan)
        swapped = loss(plan, old, new, ones) if self.policy.neighbors == "replace" else Fraction(0)
        if self.policy.neighbors == "replace":
            return Fraction(0), Fraction(0), swapped
        return loss(plan, without, old, ones), loss(plan, without, new, ones), Fraction(0)


def owned(unit: int | None, rows) -> list[tuple]:
    return [(unit, *row) for row in rows]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", ["row", "who"])
def test_one_unit_moves_no_more_than_is_charged(unit, neighbors, declared, write, ones):
    from_one = st.lists(ROW, min_size=1, max_size=1 if unit == "row" else 14)

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        others=OTHERS,
        old=from_one,
        new=from_one,
        groups=st.integers(1, 5),
        most=st.integers(1, 3),
        asked=st.lists(st.sampled_from(ASKED), min_size=6, max_size=6, unique=True),
    )
    def body(others, old, new, groups, most, asked):
        base = [(owner, *row) for owner, row in others]
        rows = {"without": base, "old": owned(8, old) + base, "new": base + owned(9, new)}
        with tempfile.TemporaryDirectory() as folder:
            caps = {"max_groups": groups, "max_rows_per_group": most}
            world = World(Path(folder), declared, write, unit, neighbors, caps, rows)
            try:
                for text in asked:
                    world.losses(text, ones)
            finally:
                world.engine.close()

    body()


@pytest.mark.parametrize("text", UNBOUNDED)
def test_what_has_no_bound_is_refused(text, declared):
    with pytest.raises(Refused, match="unbounded"):
        plan_for(parse(text), load(declared(TABLES, "row", "add-remove")), 1)


# Worst cases that use up the whole price: (question, rows of the old unit, rows of the new unit, loss).
# x lies in [-3, 10]: M = 10, W = 13. y lies in [-4, 1] in steps of 1/2. A row is (g, x, y, w).
HIGH, LOW, NONE = ("A", 99, INF, True), ("A", -99, -INF, True), ("A", None, None, None)
MOVED = ("B", 99, -INF, True)


@pytest.mark.parametrize(
    ("text", "old", "share"),
    [
        ("SELECT COUNT(*) FROM without", HIGH, 1),
        ("SELECT COUNT(x) FROM without", HIGH, 1),
        ("SELECT SUM(x) FROM without", HIGH, 1),  # 10 of 10
        ("SELECT SUM(x) FROM without", LOW, Fraction(3, 10)),
        ("SELECT SUM(y) FROM without", LOW, 1),  # -8 half steps of 8
        ("SELECT SUM(y) FROM without", HIGH, Fraction(1, 4)),  # 2 of 8
        ("SELECT AVG(x) FROM without", HIGH, 1),  # centered 13 of 13, and one row of one
        ("SELECT AVG(x) FROM without", LOW, 1),
        ("SELECT AVG(x) FROM without", NONE, 0),
        ("SELECT COUNT(*), SUM(x) FROM without GROUP BY g", HIGH, 1),
    ],
)
def test_adding_a_row(text, old, share, declared, write, tmp_path, ones):
    rows = {"without": [], "old": owned(8, [old]), "new": []}
    world = World(tmp_path, declared, write, "row", "add-remove", {}, rows)
    assert world.losses(text, ones)[0] == share


@pytest.mark.parametrize(
    ("text", "old", "new", "share"),
    [
        ("SELECT COUNT(*) FROM without WHERE w", HIGH, NONE, 1),
        ("SELECT COUNT(*) FROM without", HIGH, NONE, 0),  # the number of rows is public under replacement
        ("SELECT SUM(x) FROM without", HIGH, LOW, 1),  # 13 of 13
        ("SELECT SUM(y) FROM without", HIGH, LOW, 1),  # 10 half steps of 10
        ("SELECT AVG(x) FROM without", HIGH, LOW, Fraction(1, 2)),  # centered 26 of 26, the count does not move
        ("SELECT AVG(x) FROM without", HIGH, NONE, Fraction(3, 4)),  # centered 13 of 26, the count one of one
        ("SELECT COUNT(*) FROM without GROUP BY g", HIGH, MOVED, 1),  # one less here, one more there: 2 of 2
        ("SELECT SUM(x) FROM without GROUP BY g", HIGH, MOVED, 1),  # 20 of 20
        ("SELECT AVG(x) FROM without GROUP BY g", HIGH, MOVED, 1),
    ],
)
def test_replacing_a_row(text, old, new, share, declared, write, tmp_path, ones):
    rows = {"without": [], "old": owned(8, [old]), "new": owned(9, [new])}
    world = World(tmp_path, declared, write, "row", "replace", {}, rows)
    assert world.losses(text, ones)[2] == share


MANY = [(g, 99, -INF, True) for g in "ABCD" for _ in range(9)]
CAPS = {"max_groups": 2, "max_rows_per_group": 3}


@pytest.mark.parametrize(
    "aggregate", ["COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(y)", "AVG(x)", "AVG(y)", "SUM(x), SUM(y)"]
)
@pytest.mark.parametrize("keys", ["", " GROUP BY g", " GROUP BY w, g"])
def test_adding_a_unit_with_many_rows_in_many_groups(aggregate, keys, declared, write, tmp_path, ones):
    # 3 of 9 rows in 2 of 4 groups count: k r M with k = 2 (or 1 without groups) and r = 3, reached exactly.
    world = World(
        tmp_path, declared, write, "who", "add-remove", CAPS, {"without": [], "old": owned(8, MANY), "new": []}
    )
    assert world.losses(f"SELECT {aggregate} FROM without{keys}", ones)[0] == 1


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "SUM(y)", "AVG(x)"])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 9])
def test_replacing_a_unit_whose_groups_are_elsewhere(aggregate, groups, declared, write, tmp_path, ones):
    # With up to 2 groups the two units need not meet: 2 k r M. With 3 of 4 they meet in 2 at least, with 4 in all.
    here, there = "ABCD"[: min(groups, 4)], "DCBA"[: min(groups, 4)]
    shared = set(here) & set(there)
    # Where both are, the rows go from the one extreme to the other; elsewhere the larger one counts.
    old = [(g, 99, INF if g in shared else -INF, True) for g in here for _ in range(4)]
    new = [(g, -99 if g in shared else 99, -INF, True) for g in there for _ in range(4)]
    rows = {"without": [], "old": owned(8, old), "new": owned(9, new)}
    caps = {"max_groups": groups, "max_rows_per_group": 3}
    world = World(tmp_path, declared, write, "who", "replace", caps, rows)
    lost = world.losses(f"SELECT {aggregate} FROM without GROUP BY g", ones)[2]
    if aggregate.startswith("SUM") or groups <= 2:
        assert lost == 1
    else:
        assert 0 <= lost <= 1  # counts of groups that both have do not move


def test_replacing_a_unit_by_rows_that_do_not_count(declared, write, tmp_path, ones):
    # All four groups, 3 rows each, against none: 12 rows go, and 12 is what is charged for.
    rows = {"without": [], "old": owned(8, MANY), "new": owned(9, [("A", 1, 1.0, False)])}
    caps = {"max_groups": 9, "max_rows_per_group": 3}
    world = World(tmp_path, declared, write, "who", "replace", caps, rows)
    assert world.losses("SELECT COUNT(*) FROM without WHERE w GROUP BY g", ones)[2] == 1


# Arithmetic in doubles must not open a gap between what is bounded and what is added up.


@pytest.mark.parametrize(
    "argument",
    [
        "105 + 1e-300 / (1e-200 * 1e-200)",  # the divisor underflows to zero, so the quotient is NULL
        "105 + 0.0 / (1e-200 * 1e-200)",
        "105 + COALESCE(y, 1) * 1e-300 / (1e-200 * 1e-200)",
        "105 + 1 / (COALESCE(x, 1) * 0.1 + 0.4 - 0.1)",  # 0.4 - 0.1 - 0.3 is not quite zero in doubles
        "x * 1e150 * 1e40",
    ],
)
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "COUNT"])
def test_rounding_and_underflow_stay_within_the_bounds(aggregate, argument, declared, write, tmp_path, ones):
    rows = {"without": [], "old": owned(8, [HIGH]), "new": owned(9, [LOW])}
    for neighbors in ("add-remove", "replace"):
        (tmp_path / neighbors).mkdir()
        world = World(tmp_path / neighbors, declared, write, "row", neighbors, {}, rows)
        try:
            plan_for(parse(f"SELECT {aggregate}({argument}) FROM without"), world.policy, 1)
        except Refused:
            continue  # refusing is one right answer
        world.losses(f"SELECT {aggregate}({argument}) FROM without", ones)


@pytest.mark.parametrize(
    "argument", ["x", "-x", "ABS(x)", "FLOOR(x)", "CEIL(x)", "FLOOR(-x)", "x - 1", "COALESCE(x, 0)"]
)
def test_wide_integers_are_added_up_exactly(argument, declared, write, tmp_path, ones):
    # The upper bound 2^61 - 1 is no double: whatever goes through doubles becomes 2^61, one more than is charged for.
    top = 2**61 - 1
    rows = {"without": [], "old": owned(8, [("A", top, 0.0, True)]), "new": owned(9, [("A", -top, 0.0, True)])}
    plain = declared(TABLES, "row", "add-remove")
    for table in TABLES:
        plain["tables"][table]["columns"]["x"] = {"type": "int", "lower": -top, "upper": top}
        write(tmp_path / f"{table}.parquet", rows[table])
    policy = load(plain)
    engine = DuckDB(shapes(policy), tmp_path)
    plan = plan_for(parse(f"SELECT SUM({argument}) FROM without"), policy, 1)
    without, old, new = (engine.run(replace(plan.exact, table=table)) for table in TABLES)
    assert plan.release(without, ones) == [[0]]
    values = {
        "x": (top, -top),
        "-x": (-top, top),
        "ABS(x)": (top, top),
        "FLOOR(-x)": (-top, top),
        "x - 1": (top - 1, -top - 1),
    }
    expected = values.get(argument, (top, -top))
    assert [plan.release(old, ones), plan.release(new, ones)] == [[[expected[0]]], [[expected[1]]]]
    assert loss(plan, without, old, ones) <= 1


def test_sums_beyond_64_bits_are_exact(declared, write, tmp_path, ones):
    # 100 rows of 2^61 - 1
    top = 2**61 - 1
    plain = declared(("t",), "row", "add-remove")
    plain["tables"]["t"]["columns"]["x"] = {"type": "int", "lower": -top, "upper": top}
    write(tmp_path / "t.parquet", owned(None, [("A", top, 0.0, True)] * 100))
    policy = load(plain)
    engine = DuckDB(shapes(policy), tmp_path)
    for argument in ("x", "FLOOR(x)"):
        plan = plan_for(parse(f"SELECT SUM({argument}) FROM t"), policy, 1)
        assert plan.release(engine.run(plan.exact), ones) == [[100 * top]]


def test_the_order_of_rows_does_not_matter(declared, write, tmp_path, ones):
    # Which rows of a unit count is decided by their contents, never by where they lie.
    rows = owned(8, [("A", i % 12, i / 7, True) for i in range(50)]) + owned(3, [("B", 2, None, True)] * 5)
    world = World(
        tmp_path,
        declared,
        write,
        "who",
        "add-remove",
        CAPS,
        {"without": rows, "old": rows[::-1], "new": rows[20:] + rows[:20]},
    )
    plan = plan_for(parse("SELECT SUM(x), SUM(y), COUNT(*) FROM without GROUP BY g"), world.policy, 1)
    first, second, third = world.exact(plan)
    assert first == second == third
