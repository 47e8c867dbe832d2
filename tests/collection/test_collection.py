"""The collection itself: its labels are complete, its queries run in plain DuckDB, its pairs are what they say."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from tests.collection import load, worlds

PROBE = "8 zero-row-probe"


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    connections = {name: worlds.connect(name) for name in worlds.WORLDS}
    yield connections
    for connection in connections.values():
        connection.close()


def _plain(value: object) -> object:
    """Return a value that equals that of another spelling: 2 and 2.0, and a float in its first ten digits."""
    if isinstance(value, float | Decimal) and not isinstance(value, bool):
        number = float(value)
        return number if math.isnan(number) or number == 0 else float(f"{number:.10g}")
    if isinstance(value, int) and not isinstance(value, bool):
        return float(f"{value:.10g}")
    return value


def _result(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], Counter[tuple[object, ...]]]:
    """Return the names of the columns and the rows in any order."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return names, Counter(tuple(map(_plain, row)) for row in cursor.fetchall())


def _equal(connection: duckdb.DuckDBPyConnection, first: str, second: str) -> bool:
    """Tell whether two texts give the same rows; columns of the same names may be in another order."""
    names, rows = _result(connection, first)
    others, found = _result(connection, second)
    if len(set(names)) == len(names) and set(names) == set(others):
        order = [others.index(name) for name in names]
        found = Counter({tuple(row[n] for n in order): count for row, count in found.items()})
    return rows == found


def _squeezed(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()


def test_the_collection_is_large_enough_in_every_label_and_dialect():
    queries = load.queries()
    assert len(queries) >= 420
    assert sum(query.answerable for query in queries) >= 300
    assert sum(not query.answerable for query in queries) >= 100
    dialects = Counter(query.dialect for query in queries)
    assert set(dialects) == load.DIALECTS and min(dialects.values()) >= 40
    assert {shape[0] for query in queries if query.answerable for shape in query.shapes if shape[0].isdigit()} == set(
        "2345678"
    )


def test_ids_are_unique_and_name_the_world():
    ids = [query.id for query in load.queries()]
    assert len(set(ids)) == len(ids)
    for query in load.queries():
        assert query.world in worlds.WORLDS
        assert re.fullmatch(rf"{query.world}-\d{{3}}", query.id)


def test_no_query_is_written_twice():
    texts = Counter((query.world, _squeezed(query.sql)) for query in load.queries())
    assert [text for text, times in texts.items() if times > 1] == []


def test_the_source_is_the_file():
    for path in (load.FOLDER / "queries").glob("*.sql"):
        ids = set(re.findall(r"(?m)^-- id: (.*)$", path.read_text(encoding="utf-8")))
        assert {query.source for query in load.queries() if query.id in ids} == {path.stem}


@pytest.mark.slow
@pytest.mark.parametrize("world", worlds.WORLDS)
def test_answerable_queries_give_rows_in_plain_duckdb(world, databases):
    problems = []
    for query in load.queries():
        if query.world != world or not query.answerable:
            continue
        try:
            rows = databases[world].execute(query.in_duckdb).fetchall()
        except duckdb.Error as error:
            problems.append(f"{query.id}: {error}")
            continue
        if (not rows) != (PROBE in query.shapes):
            problems.append(f"{query.id}: {len(rows)} rows")
        if rows and all(value is None for row in rows for value in row):
            problems.append(f"{query.id}: nothing but NULL")
    assert problems == []


def test_there_are_a_hundred_pairs_and_forty_near_ones():
    same = [pair.number for pair in load.pairs() if pair.same]
    near = [pair.number for pair in load.pairs() if not pair.same]
    assert len(same) >= 100 and same == list(range(1, len(same) + 1))
    assert len(near) >= 40 and near == list(range(1, len(near) + 1))
    texts = Counter(frozenset((_squeezed(pair.first), _squeezed(pair.second))) for pair in load.pairs())
    assert max(texts.values()) == 1 and min(len(pair) for pair in texts) == 2


@pytest.mark.slow
def test_pairs_give_the_same_in_plain_duckdb(databases):
    wrong = [
        pair.number for pair in load.pairs() if pair.same and not _equal(databases[pair.world], pair.first, pair.second)
    ]
    assert wrong == []


def _sparse(world: str) -> duckdb.DuckDBPyConnection:
    """Return a world with NULL in a fifth of each private column in which its policy admits it."""
    connection = worlds.connect(world)
    for table, declared in _policy(world)["tables"].items():
        keys = {declared["unit"]["through"]} if isinstance(declared.get("unit"), dict) else set()
        keys |= {parent.split(".")[1] for parent in _parents(world)}
        for column, facts in declared["columns"].items():
            if not declared.get("public") and facts.get("nullable") is not False and column not in keys:
                connection.execute(
                    f"UPDATE main.{table} SET {column} = NULL WHERE hash(rowid::VARCHAR || '{column}') % 5 = 0"
                )
    return connection


def _parents(world: str) -> set[str]:
    """Return the keys over which tables reach their unit."""
    units = [declared.get("unit") for declared in _policy(world)["tables"].values()]
    return {unit["to"] for unit in units if isinstance(unit, dict)}


def _policy(world: str) -> dict[str, Any]:
    return tomllib.loads((worlds.FOLDER / f"{world}.toml").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("world", sorted({pair.world for pair in load.pairs()}))
def test_pairs_give_the_same_where_values_are_missing_and_where_tables_are_empty(world):
    pairs = [pair for pair in load.pairs() if pair.same and pair.world == world]
    connection = _sparse(world)
    assert [pair.number for pair in pairs if not _equal(connection, pair.first, pair.second)] == []
    for table, declared in _policy(world)["tables"].items():
        if not declared.get("public"):
            connection.execute(f"DELETE FROM main.{table}")
    assert [pair.number for pair in pairs if not _equal(connection, pair.first, pair.second)] == []
    connection.close()


@pytest.mark.slow
def test_near_pairs_differ_on_the_data_or_say_why_not(databases):
    wrong = [
        pair.number
        for pair in load.pairs()
        if not pair.same and _equal(databases[pair.world], pair.first, pair.second) != (pair.unseen is not None)
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("world", worlds.WORLDS)
def test_a_world_is_the_same_at_every_run(world):
    assert worlds.WORLDS[world]() == worlds.WORLDS[world]()


@pytest.mark.parametrize("world", worlds.WORLDS)
def test_the_bounds_and_values_of_a_policy_hold_all_of_its_data(world, databases):
    policy = _policy(world)
    tables = {name for (name,) in databases[world].execute("SHOW TABLES").fetchall()}
    assert set(policy["tables"]) == tables
    for table, declared in policy["tables"].items():
        for column, facts in declared["columns"].items():
            outside = []
            if "lower" in facts:
                outside.append(f"{column} NOT BETWEEN {_literal(facts['lower'])} AND {_literal(facts['upper'])}")
            if "values" in facts:
                outside.append(f"{column} NOT IN ({', '.join(map(_literal, facts['values']))})")
            if facts.get("nullable") is False:
                outside.append(f"{column} IS NULL")
            for condition in outside:
                found = databases[world].execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}").fetchone()
                assert found == (0,), (table, condition)
            if facts.get("unique"):
                times = f"SELECT COUNT(*) - COUNT(DISTINCT {column}) FROM {table}"
                assert databases[world].execute(times).fetchone() == (0,), (table, column)


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int | float) else f"'{value}'"


@pytest.mark.parametrize("world", worlds.WORLDS)
def test_the_caps_of_a_policy_cut_nothing(world, databases):
    policy = _policy(world)
    for table, declared in policy["tables"].items():
        if declared.get("public"):
            continue
        source, unit = table, declared["unit"]
        if isinstance(unit, dict):
            parent, key = unit["to"].split(".")
            source = f"{table} c JOIN {parent} p ON c.{unit['through']} = p.{key}"
            unit = policy["tables"][parent]["unit"]
        most = f"SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {source} GROUP BY {unit})"
        caps = {declared[cap] for cap in ("max_groups", "max_rows_per_group", "max_rows") if cap in declared}
        assert databases[world].execute(most).fetchone()[0] <= min(caps), table


def test_a_header_that_is_not_known_is_an_error(tmp_path):
    path = tmp_path / "x.sql"
    path.write_text("-- id: shop-999\n-- colour: red\nSELECT 1;\n", encoding="utf-8")
    ((found, text),) = load._blocks(path, "id")
    with pytest.raises(ValueError, match="needs exactly one header 'source'"):
        load._query(path, found, text)
    complete = {"id": ["x"], "source": ["x"], "dialect": ["duckdb"], "world": ["shop"], "label": ["answerable"]}
    with pytest.raises(ValueError, match="unknown header 'colour'"):
        load._query(path, {**complete, "shapes": ["ordinary"], "colour": ["red"]}, text)
