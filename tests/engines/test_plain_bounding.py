"""The plain ways of the bounding loops have the loops' results, and a few small questions load no compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.engines import bound_contributions as loops
from tacit.loops import CompiledLoop

EXAMPLES = 2000 if FULL else 40
INT64 = 2**63
LOOPS = [value for value in vars(loops).values() if isinstance(value, CompiledLoop) and value.plain is not None]

# Rows of units, each with the number of its group; 3 to 5 and less than -2 are no groups.
rows = st.lists(st.tuples(st.sampled_from([-INT64, -7, 0, 1, 2, INT64 - 1]), st.integers(-4, 5)), max_size=60)
caps = st.one_of(st.integers(1, 4), st.just(2**62))
KINDS = [np.int8, np.int32, np.int64] if FULL else [np.int8, np.int32]  # each takes numba seconds to compile
LOW, GROUPS = -2, 5


def results(ways: dict[str, object], some: list[tuple[int, int]], k: int, r: int, kind: type) -> list[object]:
    """Everything that the functions of one way write and return, over the same rows."""
    unit, code = np.array([u for u, _ in some], np.int64), np.array([g for _, g in some], kind)
    values = np.array([7 * i % 100 - 60 for i in range(len(some))], np.int8)
    values[::5] = -128
    buffers, key, found = loops.BoundingBuffers.of(len(some)), loops.hash_salt(f"{k}{r}"), []

    def totals() -> np.ndarray:
        return np.zeros((2, GROUPS), np.int64)

    def note(many: int, kept: np.ndarray, counts: np.ndarray) -> None:
        found.append((many, kept[: max(0, many)].tolist(), counts.tolist()))

    many = ways["find_runs"](unit, buffers.who, buffers.ends)
    runs = loops.UnitRuns(buffers.who[:many], buffers.ends[:many])
    found += [runs.who.tolist(), runs.ends.tolist()]
    counts = totals()
    many = ways["bound_contributions"](runs, code, LOW, k, r, key, buffers, *counts)
    kept = buffers.kept[:many].copy()
    note(many, kept, counts)
    counts, few = totals(), np.zeros(len(some) + 1, np.int32)
    note(ways["bound_few_groups"](runs, code, LOW, r, key, few, *counts), few, counts)
    for one in (np.zeros(len(some) + 1, np.int32), np.zeros(0, np.int32)):
        counts = totals()
        note(ways["bound_one_group"](runs, r, key, one, *counts), one, counts)
    left = np.zeros(len(some), np.int32)
    ways["bound_rows_per_unit"](runs, code, LOW, GROUPS, min(r, 2**31), key, left)
    counts = totals()
    ways["add_all_valid"](values, -128, *counts)
    ways["add_valid_by_group"](code, LOW, kept, values, -128, *counts)
    ways["add_by_group"](code, LOW, kept, values, counts[1])
    return [*found, left.tolist(), counts.tolist()]


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(some=rows, k=caps, r=caps, kind=st.sampled_from(KINDS))
def test_both_ways_write_and_return_the_same(some, k, r, kind):
    some = sorted(some, key=lambda row: row[0])
    plain, fast = ({loop.__name__: way(loop) for loop in LOOPS} for way in (lambda x: x.plain, lambda x: x.compile()))
    assert results(plain, some, k, r, kind) == results(fast, some, k, r, kind)


def test_every_loop_has_a_plain_way_of_the_same_name():
    # Three more are parts of the others.
    assert len(LOOPS) == 9
    assert all(loop.plain.__name__ == loop.__name__ for loop in LOOPS)


def test_units_out_of_order_are_found():
    buffers = loops.BoundingBuffers.of(3)
    (find,) = (loop.plain for loop in LOOPS if loop.__name__ == "find_runs")
    assert find(np.array([1, 0, 0]), buffers.who, buffers.ends) == -1


@pytest.mark.parametrize("way", ["plain", "compile"])
@pytest.mark.parametrize(("numbers", "expected"), [([], True), ([4, 5, 6], True), ([4, 6], False), ([5], False)])
def test_consecutive_numbers_are_told(way, numbers, expected):
    (loop,) = (loop for loop in LOOPS if loop.__name__ == "are_consecutive")
    told = loop.plain if way == "plain" else loop.compile()
    assert told(np.array(numbers, np.int64), 4) is expected


@pytest.mark.slow
def test_few_questions_over_a_small_table_load_no_compiler_and_many_do():
    code = """
import sys, tempfile, pathlib
import pyarrow as pa
import tacit

table = pa.table({"person": [i // 3 for i in range(3000)], "age": [i * 7 % 90 for i in range(3000)]})
columns = {"age": {"type": "int", "lower": 0, "upper": 100, "nullable": False}}
with tempfile.TemporaryDirectory() as folder:
    policy = {
        "ledger": {"store": pathlib.Path(folder) / "x.ledger"},
        "privacy": {"epsilon": 1000, "delta": 1e-5},
        "tables": {"t": {"unit": "person", "max_groups": 2, "max_rows_per_group": 2, "columns": columns}},
        "analysts": {"ada": {"epsilon": 1000}},
    }
    with tacit.open(policy, data={"t": table}) as curator:
        for number in range(9):
            sql = "SELECT age >= 40 AS old, COUNT(*) AS n, AVG(age) AS m FROM t GROUP BY 1"
            curator.analyst("ada").ask(sql, epsilon=1 + number)
            print(number + 1, "numba" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert found[:9] == [f"{number} {number > 8}" for number in range(1, 10)]
