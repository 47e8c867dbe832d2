"""A prepared copy: the same answers where no bound bites, and bounds that look at one unit at a time where they do."""

from __future__ import annotations

import datetime
import json
import math
import random
import shutil
import stat
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom
from tests.support.counts import FULL, enough, some
from tests.support.policies import caps, policy_of

import tacit
from tacit.aggregates.registry import read_question as parse
from tacit.curator import copies
from tacit.curator.copies import locate_copy
from tacit.curator.prepare import prepare
from tacit.curator.resources import open_engine
from tacit.engines import bound_contributions
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.layout import plan_copy_scan
from tacit.engines.limit_joins import limit_joins
from tacit.errors import DataError, LedgerError, PolicyError
from tacit.ledger.signing import SigningKey
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load

FIRST = datetime.date(2025, 1, 1)
COLUMNS: dict[str, dict[str, Any]] = {
    "g": {"type": "text", "values": ["A", "B", "C", "D"]},
    "t": {"type": "text"},
    "n": {"type": "int", "lower": 0, "upper": 6},
    "x": {"type": "int", "lower": -3, "upper": 10},
    "y": {"type": "float", "lower": -4, "upper": 9, "step": 0.25},
    "b": {"type": "bool"},
    "d": {"type": "date", "lower": "2025-01-01", "upper": "2025-02-15"},
    "big": {"type": "int", "lower": -(2**61), "upper": 2**61},
}
TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}
QUESTIONS = [
    "SELECT COUNT(*) FROM {t}",
    "SELECT COUNT(*), COUNT(x), SUM(x), SUM(y), AVG(y) FROM {t}",
    "SELECT g, COUNT(*), SUM(y) FROM {t} GROUP BY g",
    "SELECT g, n, COUNT(*), AVG(x) FROM {t} GROUP BY g, n",
    "SELECT n, SUM(x), COUNT(y) FROM {t} WHERE b AND y > -2 GROUP BY n",
    "SELECT t, COUNT(*) FROM {t} GROUP BY t",
    "SELECT t, b, COUNT(*) FROM {t} GROUP BY t, b",
    "SELECT LOWER(t) AS l, COUNT(*), SUM(n) FROM {t} GROUP BY l",
    "SELECT MONTH(d) AS m, COUNT(*) FROM {t} GROUP BY m",
    "SELECT d, COUNT(*) FROM {t} GROUP BY d",
    "SELECT g, MEDIAN(x), MIN(y) FROM {t} GROUP BY g",
    "SELECT MODE(g), COUNT(DISTINCT t) FROM {t}",
    "SELECT VAR_POP(y), STDDEV(x) FROM {t}",
    "SELECT g, COUNT(*) FROM (SELECT g, x + 1 AS z FROM {t} WHERE n <> 3) WHERE z > 0 GROUP BY g",
    "SELECT SUM(CASE WHEN t LIKE 'a%' THEN x END), SUM(y * x) FROM {t}",
    "SELECT g, SUM(big) FROM {t} GROUP BY g",
    "SELECT x, COUNT(*) FROM {t} WHERE g IN ('A', 'nowhere') GROUP BY x",
]
TABLES = ("visits", "names", "lines")  # a unit that is an integer, one that is text, one reached through another table


def policy(folder: Path, groups: int = 2, rows: int = 2, epoch: int = 1, total: int | None = None) -> dict[str, Any]:
    bounds = caps(groups, rows, total)
    who = {"unit": "who", "people": "persons", **bounds}
    tables = {
        "visits": {**who, "columns": COLUMNS},
        "names": {"unit": "called", **bounds, "columns": {"called": {"type": "text"}, **COLUMNS}},
        "orders": {**who, "columns": {"n": COLUMNS["n"]}},
        "lines": {"unit": {"through": "item", "to": "orders.id"}, **bounds, "columns": COLUMNS},
        "things": {"unit": "row", "columns": COLUMNS},
    }
    return {
        "data": {"source": str(folder / "data"), "prepared": str(folder / "data.prepared"), "epoch": epoch},
        **policy_of(tables, own={"epsilon": 1000, "delta": 1e-3}, folder=folder, delta=1e-3),
    }


def draw(rng: random.Random) -> dict[str, Any]:
    """A row as awkward as rows can be."""
    return {
        "g": rng.choice(["A", "B", "C", "D", "E", None]),
        "t": rng.choice(["a", "A", "", "é", "b\x1f", None]),
        "n": rng.choice([0, 1, 2, 3, 6, 99, -5, None]),
        "x": rng.choice([-3, 0, 1, 7, 10, 2**62, None]),
        "y": rng.choice([-4.0, 0.1, 0.25, 8.9, math.nan, math.inf, -math.inf, None]),
        "b": rng.choice([True, False, None]),
        "d": rng.choice([FIRST + datetime.timedelta(days=k) for k in (-9, 0, 20, 31, 45, 99)] + [None]),
        "big": rng.choice([2**61, -(2**61), 2**60 + 1, 5, None]),
    }


def database(rng: random.Random, people: int, rows: int) -> dict[str, list[dict[str, Any]]]:
    who = [None, *range(-2, people - 2)]
    orders = [{"id": i, "who": rng.choice(who), "n": 1} for i in range(2 * people)]
    return {
        "visits": [{"who": rng.choice(who), **draw(rng)} for _ in range(rows)],
        "names": [{"called": rng.choice([None, *(f"p{i}" for i in range(people))]), **draw(rng)} for _ in range(rows)],
        "orders": orders,
        "lines": [{"item": rng.choice([None, -1, *range(2 * people)]), **draw(rng)} for _ in range(rows)],
        "things": [draw(rng) for _ in range(5)],
    }


def write(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    extra = {"visits": {"who": "int"}, "names": {"called": "text"}, "orders": {"id": "int", "who": "int"}}
    extra["lines"] = {"item": "int"}
    (folder / "data").mkdir(exist_ok=True)
    for table, rows in tables.items():
        columns = {"n": COLUMNS["n"]} if table == "orders" else COLUMNS
        kinds = {name: c["type"] for name, c in columns.items()} | extra.get(table, {})
        arrow = pa.table({c: pa.array([row[c] for row in rows], TYPES[kind]) for c, kind in kinds.items()})
        pq.write_table(arrow, folder / "data" / f"{table}.parquet")


def prepared(
    folder: Path, tables: dict[str, list[dict[str, Any]]], asked: str = "", **options: int
) -> tuple[Any, DuckDBEngine]:
    """A policy and an engine over its copy, by default of the tables that are asked alone where these are named."""
    declared = policy(folder, **options)
    for name in () if FULL or not asked else tables.keys() - asked.split():
        del declared["tables"][name]
    write(folder, {name: tables[name] for name in declared["tables"]})
    loaded = load(declared)
    prepare(loaded, lambda what, share: None)
    return loaded, open_engine(loaded)


def exact(question: str, table: str, loaded: Any, salt: str = "salt") -> Any:
    return replace(plan_for(parse(question.format(t=table)), loaded, 1).exact, salt=salt)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Bounds that do not bite."""
    return prepared(tmp_path_factory.mktemp("wide"), database(random.Random(1), 30, 400), groups=900, rows=900)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_where_no_bound_bites_the_copy_gives_what_sql_gives(wide, question, table):
    loaded, engine = wide
    node = exact(question, table, loaded)
    assert plan_copy_scan(node, engine._copy.layouts) is not None
    assert engine.run(node) == engine._compute_in_sql(limit_joins(node))


def less(one: Any, other: Any) -> dict[Any, list[Any]]:
    """Group by group and cell by cell, one less the other; what is nothing is left out."""

    def difference(a: Any, b: Any) -> Any:
        if isinstance(a, dict) or isinstance(b, dict):
            a, b = a or {}, b or {}
            return {v: n for v in {*a, *b} if (n := a.get(v, 0) - b.get(v, 0))}
        return a - b

    found = {}
    for group in {*one, *other}:
        cells = one.get(group) or [type(c)() for c in other[group]]
        others = other.get(group) or [type(c)() for c in cells]
        moved = [difference(a, b) for a, b in zip(cells, others, strict=True)]
        if any(moved):
            found[group] = moved
    return found


ADDING = [q for q in QUESTIONS if "DISTINCT" not in q]  # the number of distinct values does not add up over units


SEEDS = 10 if FULL else 1
CAPS = [(table, seed, {}) for table in TABLES for seed in range(SEEDS)]
CAPS += [("visits", seed, {"groups": 3, "rows": 5, "total": 7}) for seed in range(SEEDS)]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "seed", "caps"), CAPS)
def test_what_is_kept_of_a_unit_does_not_depend_on_the_others(tmp_path, table, seed, caps):
    # Removing a unit takes away exactly what it gives alone: the bounds look at one unit at a time.
    rng = random.Random(seed)
    tables = database(rng, 6, 150)
    (unit,) = {"visits": ("who",), "names": ("called",), "lines": ("item",)}[table]
    if table == "lines":
        owner = {order["id"]: order["who"] for order in tables["orders"]}
        gone = rng.choice([w for w in owner.values() if w is not None])
        belongs = [owner.get(row["item"]) == gone for row in tables[table]]
    else:
        gone = rng.choice([row[unit] for row in tables[table] if row[unit] is not None])
        belongs = [row[unit] == gone for row in tables[table]]
    alone = [row for row, own in zip(tables[table], belongs, strict=True) if own]
    others = [row for row, own in zip(tables[table], belongs, strict=True) if not own]
    rng.shuffle(others)  # nor on where rows lie
    engines = []
    for name, rows in (("all", tables[table]), ("without", others), ("alone", alone)):
        (tmp_path / name).mkdir()
        asked = "orders lines" if table == "lines" else table
        engines.append(prepared(tmp_path / name, {**tables, table: rows}, asked, **caps))
    for question in some(ADDING, 4, list(TABLES).index(table) + len(caps)):  # with caps there are three of them
        whole, without, only = (engine.run(exact(question, table, loaded)) for loaded, engine in engines)
        assert less(whole, without) == less(only, {}), question


@pytest.mark.slow
def test_of_each_unit_so_many_groups_and_rows_are_kept_and_no_more(tmp_path):
    rng = random.Random(5)
    rows = [{"who": 1, **draw(rng), "g": rng.choice("AAAAABBC")} for _ in range(60)]
    held = Counter(row["g"] for row in rows)
    loaded, engine = prepared(tmp_path, {**database(rng, 3, 10), "visits": rows}, "visits", groups=2, rows=7)
    for salt in map(str, range(50 if FULL else 10)):
        found = engine.run(exact("SELECT g, COUNT(*) FROM {t} GROUP BY g", "visits", loaded, salt))
        assert len(found) == 2
        assert all(cells[0] == min(7, held[group[0]]) for group, cells in found.items())


@pytest.fixture(scope="module")
def capped(tmp_path_factory):
    """A unit of 21 rows, 3 in each of 7 groups, and 8 of them counted in all; another of 5 rows; and others."""
    common = {"t": "a", "y": 0.0, "b": True, "d": datetime.date(2025, 1, 2), "big": 0}
    rows = [{"who": 9, **common, "g": "A", "n": n, "x": x} for n in range(7) for x in range(3)]
    rows += [{"who": 8, **common, "g": "B", "n": n, "x": 0} for n in range(5)]
    tables = {**database(random.Random(0), 3, 10), "visits": rows}
    return prepared(tmp_path_factory.mktemp("capped"), tables, "visits", groups=8, rows=8, total=8)


@pytest.mark.slow
def test_of_all_rows_of_a_unit_so_many_are_kept_and_no_more(capped):
    loaded, engine = capped
    for salt in map(str, range(20 if FULL else 10)):
        found = engine.run(
            exact("SELECT n, COUNT(*), SUM(x) FROM {t} WHERE g = 'A' GROUP BY n", "visits", loaded, salt)
        )
        assert sum(cells[0] for cells in found.values()) == 8
        found = engine.run(exact("SELECT n, COUNT(*) FROM {t} GROUP BY n", "visits", loaded, salt))
        assert sum(cells[0] for cells in found.values()) == 8 + 5
        # WHERE comes first: of 7 rows none is left out
        found = engine.run(exact("SELECT n, COUNT(*) FROM {t} WHERE x = 0 AND g = 'A' GROUP BY n", "visits", loaded))
        assert sum(cells[0] for cells in found.values()) == 7


@pytest.mark.slow
def test_the_choice_among_all_rows_is_fair():
    # 20,000 units of 21 rows, of which 8 are left: each in 8/21 of the units. 21 two-sided binomial tests, each at
    # 1e-11: a false alarm in 1e-9. A choice that takes one of them 1.1 times as often as another is seen. Every third
    # row is in no group, and is neither counted nor left.
    units, rows, total = 20_000, 21, 8
    unit = np.repeat(np.arange(units) * 7919 - 10**6, rows * 3 // 2)
    code = np.tile(np.where(np.arange(rows * 3 // 2) % 3 == 2, -1, np.arange(rows * 3 // 2)), units)
    left = np.empty(len(unit), np.int32)
    runs = bound_contributions.UnitRuns(*np.empty((2, units), np.int64))
    assert bound_contributions.find_runs(unit, *runs) == units
    bound_contributions.bound_rows_per_unit(runs, code, 0, 99, total, bound_contributions.hash_salt("salt"), left)
    kept = (left >= 0).reshape(units, -1)
    assert (kept.sum(axis=1) == total).all()
    assert (left[left >= 0] == code[left >= 0]).all()
    counts = kept.sum(axis=0)
    low, high = (edge(0.5e-11, units, total / rows) for edge in (binom.ppf, binom.isf))
    assert sum(low <= count <= high for count in counts) == rows
    assert sum(count == 0 for count in counts) == rows // 2
    assert not low <= 1.1 * total / rows * units <= high


@pytest.mark.slow
def test_the_choice_is_fair(tmp_path):
    # One unit with 7 groups, of which 3 are kept; in each 5 rows, of which 2 are: each group in 3/7 of the salts, each
    # row in 6/35. 42 two-sided binomial tests, each at 1e-11: a false alarm in 1e-9. A choice that takes one of them
    # 1.6 times as often as another is seen; by default 2.2 times, twice as far off with a quarter of the salts.
    salts, often = enough(800), 1.6 if FULL else 2.2
    day = datetime.date(2025, 1, 2)
    common = {"t": "a", "y": 0.0, "b": True, "d": day, "big": 0}
    rows = [{"who": 9, **common, "g": "A", "n": n, "x": x} for n in range(7) for x in range(5)]
    tables = {**database(random.Random(0), 3, 10), "visits": rows}
    loaded, engine = prepared(tmp_path, tables, "visits", groups=3, rows=2)
    groups, kept = Counter(), Counter()
    node = exact("SELECT n, MEDIAN(x) FROM {t} GROUP BY n", "visits", loaded)
    for salt in range(salts):
        found = engine.run(replace(node, salt=f"s{salt}"))
        groups.update(group for group, cells in found.items())
        kept.update((group, value) for group, cells in found.items() for value, n in cells[0].items() for _ in range(n))
    for counts, chance in ((groups, 3 / 7), (kept, 6 / 35)):
        low, high = binom.ppf(0.5e-11, salts, chance), binom.isf(0.5e-11, salts, chance)
        assert all(low <= count <= high for count in counts.values())
        assert not low <= often * chance * salts <= high
    assert len(groups) == 7
    assert len(kept) == 35


@pytest.mark.slow
def test_rows_that_are_units_and_joins_are_answered_by_sql(wide):
    loaded, engine = wide
    for question in ("SELECT COUNT(*) FROM things", "SELECT COUNT(*) FROM visits JOIN orders USING (who)"):
        node = plan_for(parse(question), loaded, 1).exact
        assert plan_copy_scan(node, engine._copy.layouts) is None
        assert engine.run(node) == engine._compute_in_sql(limit_joins(node))


@pytest.mark.slow
def test_a_copy_is_used_through_ask(tmp_path):
    write(tmp_path, database(random.Random(2), 30, 400))
    prepare(load(policy(tmp_path)), lambda what, share: None)
    with tacit.open(policy(tmp_path)) as curator:
        answer = curator.analyst("ada").ask("SELECT g, COUNT(*) AS n FROM visits GROUP BY g", epsilon=100)
    assert len(answer.to_dict()["rows"]) == 4


@pytest.mark.slow
def test_a_copy_is_made_by_whoever_opens_first_and_is_the_owners_alone(tmp_path):
    write(tmp_path, database(random.Random(2), 30, 400))
    told: list[str] = []
    with tacit.open(policy(tmp_path), progress=lambda what, share: told.append(what)) as curator:
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=1)
    copy = tmp_path / "data.prepared"
    assert set(TABLES) <= set(told) and stat.S_IMODE(copy.stat().st_mode) == 0o600
    before = copy.stat()
    told.clear()
    shutil.rmtree(tmp_path / "data")  # nothing is read but the copy
    with tacit.open(policy(tmp_path), progress=lambda what, share: told.append(what)) as curator:
        curator.analyst("ada").ask("SELECT SUM(x) FROM visits", epsilon=1)
    assert told == [] and copy.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.slow
def test_a_copy_of_another_epoch_or_of_something_else_is_made_again(tmp_path):
    write(tmp_path, database(random.Random(2), 3, 20))
    copy = tmp_path / "data.prepared"
    stamps = []
    for epoch in (1, 2):
        tacit.open(policy(tmp_path, epoch=epoch)).close()
        with duckdb.connect(str(copy), read_only=True) as opened:
            stamps += opened.execute("SELECT stamp FROM tacit_copy").fetchall()
    assert stamps[0] != stamps[1]
    copy.write_bytes(b"half a copy")
    tacit.open(policy(tmp_path, epoch=2)).close()
    with duckdb.connect(str(copy), read_only=True) as opened:
        assert opened.execute("SELECT stamp FROM tacit_copy").fetchone() == stamps[1]


@pytest.mark.slow
def test_a_copy_of_a_higher_epoch_stays_where_it_is(tmp_path):
    write(tmp_path, database(random.Random(2), 3, 20))
    copy = tmp_path / "data.prepared"
    prepare(load(policy(tmp_path, epoch=2)), lambda what, share: None)
    before = copy.read_bytes()
    with pytest.raises(DataError, match="holds the data of epoch 2, so no copy of epoch 1") as caught:
        tacit.open(policy(tmp_path))
    assert copy.read_bytes() == before and "epoch = 2" in caught.value.fix and 'copy = "' in caught.value.fix
    entries = policy(tmp_path)
    entries["data"]["prepared"] = str(tmp_path / "other.prepared")
    tacit.open(entries).close()
    shutil.rmtree(tmp_path / "data")  # nothing is read but the copy
    tacit.open(policy(tmp_path, epoch=2)).close()


@pytest.mark.slow
@pytest.mark.parametrize("make", [tacit.open, lambda entries: prepare(load(entries), lambda what, share: None)])
def test_of_data_that_the_ledger_refuses_no_copy_is_left(make, tmp_path):
    entries, copy = policy(tmp_path), tmp_path / "data.prepared"
    former, other = (database(random.Random(seed), 3, 20) for seed in (2, 3))
    write(tmp_path, former)
    tacit.open(entries).close()
    before = copy.read_bytes()
    write(tmp_path, other)
    changed = policy(tmp_path, rows=3)  # so that a copy has to be made
    with pytest.raises(LedgerError, match="is not the data with which epoch 1 began"):
        make(changed)
    assert copy.read_bytes() == before
    copy.unlink()
    with pytest.raises(LedgerError, match="is not the data with which epoch 1 began") as caught:
        make(entries)
    assert not copy.exists() and "put the former data back" in caught.value.fix
    write(tmp_path, former)
    tacit.open(entries).close()


@pytest.mark.slow
@pytest.mark.parametrize("make", [tacit.open, lambda entries: prepare(load(entries), lambda what, share: None)])
def test_of_columns_that_are_not_as_declared_no_copy_is_left(make, tmp_path):
    # The error says to mend the data: what is read next must be the data that the owner has mended.
    entries, copy = policy(tmp_path), tmp_path / "data.prepared"
    tables = database(random.Random(3), 3, 20)
    write(tmp_path, tables | {"orders": [*tables["orders"], tables["orders"][0]]})
    with pytest.raises(DataError, match="is declared unique, and two rows share"):
        make(entries)
    assert not copy.exists()
    write(tmp_path, tables)
    make(entries)
    assert copy.exists()


@pytest.mark.slow
def test_a_copy_is_made_where_the_ledger_is_not_begun(tmp_path):
    write(tmp_path, database(random.Random(2), 3, 20))
    books = load(policy(tmp_path)).books
    SigningKey.at(books.key, create=True)
    books.store.touch()
    tacit.open(policy(tmp_path)).close()
    assert (tmp_path / "data.prepared").exists()


@pytest.mark.slow
def test_a_copy_that_does_not_say_its_epoch_is_opened_or_replaced(tmp_path):
    write(tmp_path, database(random.Random(2), 3, 20))
    copy = tmp_path / "data.prepared"
    prepare(load(policy(tmp_path)), lambda what, share: None)
    with duckdb.connect(str(copy)) as opened:
        opened.execute("ALTER TABLE tacit_copy DROP COLUMN epoch")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    tacit.open(policy(tmp_path)).close()
    (tmp_path / "elsewhere").rename(tmp_path / "data")
    tacit.open(policy(tmp_path, epoch=2)).close()
    with duckdb.connect(str(copy), read_only=True) as opened:
        assert opened.execute("SELECT epoch FROM tacit_copy").fetchone() == (2,)


@pytest.mark.slow
def test_of_several_processes_one_makes_the_copy(tmp_path):
    write(tmp_path, database(random.Random(2), 30, 3000))
    (tmp_path / "policy.json").write_text(json.dumps(policy(tmp_path)))
    code = (
        "import json, sys, tacit\n"
        "told = []\n"
        "policy = json.load(open(sys.argv[1]))\n"
        "with tacit.open(policy, progress=lambda what, share: told.append(what)) as curator:\n"
        "    print(bool(told), sorted(curator.engine.run.__self__.tables))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "policy.json")]
    processes = 3 if FULL else 2
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    said = sorted(process.communicate(timeout=120)[0].split()[0] for process in running)
    assert said == ["False"] * (processes - 1) + ["True"]


def test_a_policy_without_a_file_has_none_to_make(tmp_path):
    write(tmp_path, database(random.Random(2), 3, 20))
    for data in ({}, {"copy": "memory"}):
        entries = policy(tmp_path)
        del entries["data"]["prepared"]
        entries["data"] |= data
        with pytest.raises(PolicyError, match="not read into a file") as caught:
            prepare(load(entries), lambda what, share: None)
        assert 'copy = "' in caught.value.fix
        assert locate_copy(load(entries)) is None


@pytest.mark.slow
def test_a_large_source_is_read_into_a_file_beside_the_ledger(tmp_path, monkeypatch):
    write(tmp_path, database(random.Random(2), 3, 20))
    entries = policy(tmp_path)
    del entries["data"]["prepared"]
    monkeypatch.setattr(copies, "_SMALL", 100)
    found = locate_copy(load(entries))
    assert found is not None and found.path == load(entries).books.store.with_suffix(".copy")
    tacit.open(entries).close()
    assert found.path.exists()


def test_two_names_for_one_copy_are_an_error(tmp_path):
    entries = policy(tmp_path)
    entries["data"]["copy"] = "memory"
    with pytest.raises(PolicyError, match="is what copy says already"):
        load(entries)


@pytest.mark.slow
def test_stopped_half_way_it_leaves_the_copy_that_was_there(tmp_path):
    write(tmp_path, database(random.Random(2), 30, 300))
    prepare(load(policy(tmp_path)), lambda what, share: None)
    before = (tmp_path / "data.prepared").read_bytes()

    def stop(what: str, share: float) -> None:
        if what.startswith("lines"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(load(policy(tmp_path, epoch=2)), stop)
    assert (tmp_path / "data.prepared").read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"data", "data.prepared"}


@pytest.mark.slow
def test_units_that_many_batches_share_are_bounded_once(tmp_path, monkeypatch):
    from tacit.engines import unit_stretches

    loaded, engine = prepared(tmp_path, database(random.Random(3), 5, 6000), "visits")
    nodes = [exact(question, "visits", loaded) for question in QUESTIONS]
    whole = [engine.run(node) for node in nodes]
    monkeypatch.setattr(unit_stretches, "_BATCH", 2048)  # a unit has about 1,000 rows
    assert [engine.run(node) for node in nodes] == whole
