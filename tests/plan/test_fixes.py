"""Every fix of every refusal fixture: where it is code it is pasted, answered, and of the same value in plain DuckDB.

A fix is code where the refusal has a `suggestion`, the whole question with the fix put in. All others are advice in
words, as to ask the owner, and name no keyword or function of SQL in capital letters: nobody could paste that.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.aggregates.registry import SYNTAX
from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan.compound_plan import plan_question
from tacit.policy.model import Column, Policy
from tacit.query.dialect_names import ALIASES
from tacit.query.function_calls import FUNCTION_NAMES
from tacit.query.functions import WINDOW_FUNCTIONS
from tacit.query.refusals import (
    FUNCTION_SUGGESTIONS,
    RESERVED,
)
from tacit.query.types import Type

TESTS = Path(__file__).parent.parent
FILES = {
    f"{folder}/{file.stem}": file
    for folder in ("plan", "query")
    for file in sorted((TESTS / folder / "refusals").glob("*.txt"))
}
MOST_PASTES = 4  # faults that one question of the fixtures has, each with its own refusal
UNKNOWN = {ErrorCode.UNKNOWN_TABLE, ErrorCode.UNKNOWN_COLUMN}

# Words of SQL that nobody writes in capital letters in advice.
_OTHERS = "BY PARTITION ROWS RANGE GROUPS PRECEDING FOLLOWING CURRENT ROW ROLLUP CUBE SETS ORDINAL DATE TIMESTAMP TABLE"
SQL_WORDS = {
    *RESERVED,
    *_OTHERS.split(),
    *(name.upper() for name in (*FUNCTION_NAMES, *ALIASES, *SYNTAX, *WINDOW_FUNCTIONS, *FUNCTION_SUGGESTIONS)),
}

# Where the value in plain DuckDB cannot stay the same, and why.
DIFFERENT: dict[str, set[str]] = {}


def read(file: Path) -> str:
    return file.read_bytes().decode().partition("\n---\n")[0]


def refusal(sql: str, policy: Policy) -> Refused | None:
    """What refuses a question, if anything does."""
    try:
        plan_question(parse(sql), policy, 0.5)
    except Refused as found:
        return found
    return None


def paste(sql: str, policy: Policy) -> tuple[str, Refused | None]:
    """The question with the suggestions of its refusals put in, one after the other, and what still refuses it."""
    for _ in range(MOST_PASTES):
        found = refusal(sql, policy)
        if found is None or found.suggestion is None:
            return sql, found
        sql = found.suggestion
    return sql, refusal(sql, policy)


def capital_words(fix: str) -> set[str]:
    """The words of SQL in capital letters in a fix, outside of quotes."""
    return set(re.findall(r"\b[A-Z][A-Z_]+\b", re.sub(r"\"[^\"]*\"|'[^']*'", "", fix))) & SQL_WORDS


TYPES = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE"}
UNLISTED = {"visits": ("visit_id", "patient_id"), "labs": ("patient_id",), "items": ("visit_id",)}


def cell(column: Column, draw: random.Random) -> Any:
    """A value of a column, or NULL."""
    if column.nullable and draw.random() < 0.2:
        return None
    if column.values:
        return draw.choice(column.values)
    low, high = float(column.lower or 0), float(column.upper or 2_000)
    match column.type:
        case Type.INT:
            return draw.randint(int(low), int(high))
        case Type.FLOAT:
            return round(draw.uniform(low, high), 1)
        case Type.BOOL:
            return draw.random() < 0.5
        case Type.DATE:
            return datetime.date(2024, 1, 1) + datetime.timedelta(days=draw.randint(0, 300))
    return draw.choice(["flu", "cold", "A", "50%", "blood"])


@pytest.fixture(scope="module")
def database(policy: Policy) -> Iterator[duckdb.DuckDBPyConnection]:
    """Forty rows of each private table, three of each public one."""
    draw = random.Random(7)
    with duckdb.connect(config={"threads": 1}) as connection:
        for table in policy.tables:
            unlisted = UNLISTED.get(table.name, ())
            heads = [f"{name} BIGINT" for name in unlisted] + [f"{c.name} {TYPES[c.type]}" for c in table.columns]
            connection.execute(f"CREATE TABLE {table.name} ({', '.join(heads)})")
            for row in range(3 if table.public else 40):
                keys = [row, draw.randint(1, 12)][-len(unlisted) :] if unlisted else []
                cells = ["ABC"[row] if column.unique else cell(column, draw) for column in table.columns]
                marks = ", ".join("?" * len(keys + cells))
                connection.execute(f"INSERT INTO {table.name} VALUES ({marks})", keys + cells)
        yield connection


def value_of(sql: str, database: duckdb.DuckDBPyConnection) -> list[Any] | None:
    """The rows of a question in plain DuckDB; None where it has no meaning there."""
    try:
        return sorted(database.execute(sql).fetchall(), key=repr)
    except duckdb.Error:
        return None


@pytest.mark.parametrize("name", FILES)
def test_a_fix_is_code_that_can_be_pasted_or_words(name: str, policy: Policy) -> None:
    found = refusal(read(FILES[name]), policy)
    assert found is not None
    if found.suggestion is None:
        assert not capital_words(found.fix), found.fix
    else:
        assert found.suggestion != read(FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_a_fix_that_is_code_is_answered_and_means_the_same(
    name: str, policy: Policy, database: duckdb.DuckDBPyConnection
) -> None:
    sql = read(FILES[name])
    first = refusal(sql, policy)
    assert first is not None
    if first.suggestion is None:
        return
    pasted, left = paste(sql, policy)
    # questions that are refused by their text alone may be over tables that this policy does not have
    assert left is None or (name.startswith("query/") and left.code in UNKNOWN), f"{pasted}\n{left}"
    before = value_of(sql, database)
    if before is None:
        return
    assert (value_of(pasted, database) == before) != any(name in names for names in DIFFERENT.values()), pasted
