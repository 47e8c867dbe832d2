"""Every fix of every refusal fixture: where it is code it is pasted, answered, and of the same value in plain DuckDB.

A fix is code where the refusal has a `suggestion`, the whole question with the fix put in. All others are advice in
words, as to ask the owner, and name no keyword or function of SQL in capital letters: nobody could paste that.
"""

from __future__ import annotations

import datetime
import pickle
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.aggregates.registry import SYNTAX
from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan.compound_plan import plan_question
from tacit.plan.plan import Plan
from tacit.policy.model import Column, Policy
from tacit.query.dialect_names import ALIASES
from tacit.query.function_calls import FUNCTION_NAMES
from tacit.query.functions import WINDOW_FUNCTIONS
from tacit.query.refusals import (
    CAST_SUGGESTIONS,
    FUNCTION_SUGGESTIONS,
    OPERATOR_REPLACEMENTS,
    OPERATOR_SUGGESTIONS,
    RESERVED,
    UNSUPPORTED_CLAUSES,
    UNSUPPORTED_JOINS,
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
DIFFERENT = {
    "single rows are never shown, so they are aggregated": {
        "plan/aggregate_none_constant",
        "plan/column_raw_of_a_subquery",
        "plan/raw_column",
        "plan/raw_star",
        "plan/raw_star_of_a_table",
    },
    "what a single row decides, or what has no noise, is counted": {
        "plan/bool_or_over_rows",
        "plan/exists_in_select",
        "plan/median_of_bool",
        "plan/median_of_text",
    },
    "values beyond the bounds of the fix are clamped": {
        "plan/alias_shadows_a_bounded_column",
        "plan/bound_lost_by_coalesce",
        "plan/bound_lost_by_division",
        "plan/days_without_bounds",
        "plan/sum_of_quotient",
    },
    "keys are made coarser, for floats have too many": {"plan/group_by_float"},
    "rows are matched by the unit or a unique column, where any pair of them was asked for": {
        "plan/join_comma_or",
        "plan/join_comma_without_equality",
        "plan/join_cross",
        "plan/join_or",
        "plan/join_private_not_on_the_unit",
        "plan/join_with_itself",
        "plan/join_without_equality",
    },
    "rows that are nobody's are left out": {
        "plan/join_full_with_public",
        "plan/join_left_from_public",
        "plan/join_right_from_public",
    },
    "a window keeps to the rows of one unit": {
        "plan/subquery_window",
        "plan/window_without_partition",
        "plan/window_without_unit",
    },
    "all rows of a subquery are taken, for which come first depends on other people's": {
        "plan/subquery_limit",
        "plan/subquery_offset",
        "plan/union_with_limit",
        "plan/with_limit",
    },
    "a comparison with NULL is never true, and so not what was meant": {"plan/null_comparison"},
}


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
    low, high = float(column.lower or 0), min(float(column.upper or 900), 1e9)  # within what a fix clamps to
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
    """Forty rows of each private table, and four of each public one, of which some match nothing."""
    draw = random.Random(7)
    with duckdb.connect(config={"threads": 1}) as connection:
        for table in policy.tables:
            unlisted = UNLISTED.get(table.name, ())
            heads = [f"{name} BIGINT" for name in unlisted] + [f"{c.name} {TYPES[c.type]}" for c in table.columns]
            connection.execute(f"CREATE TABLE {table.name} ({', '.join(heads)})")
            for row in range(4 if table.public else 40):
                keys = [row, draw.randint(1, 12)][-len(unlisted) :] if unlisted else []
                cells = ["ABCD"[row] if column.unique else cell(column, draw) for column in table.columns]
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


@pytest.mark.slow
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


def test_a_fix_that_means_another_thing_is_in_the_list_for_one_reason(policy: Policy) -> None:
    listed = [name for names in DIFFERENT.values() for name in names]
    assert len(listed) == len(set(listed)) and set(listed) <= FILES.keys()


@pytest.mark.slow
def test_how_many_fixes_are_code(policy: Policy) -> None:
    found = [refusal(read(file), policy) for file in FILES.values()]
    assert sum(one is not None and one.suggestion is not None for one in found) >= 130


@pytest.mark.parametrize("name", sorted(FUNCTION_SUGGESTIONS))
def test_a_function_that_is_not_answered_has_a_fix_in_words(name: str) -> None:
    assert not capital_words(FUNCTION_SUGGESTIONS[name])


def test_parts_of_sql_that_are_not_answered_have_fixes_in_words() -> None:
    clauses = [fix for _, fix in UNSUPPORTED_CLAUSES.values()]
    signs = [fix for sign, (_, fix) in OPERATOR_SUGGESTIONS.items() if sign not in OPERATOR_REPLACEMENTS]
    fixes = [*clauses, *signs, *UNSUPPORTED_JOINS.values(), *CAST_SUGGESTIONS.values()]
    assert not [fix for fix in fixes if capital_words(fix)]


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        # over several lines, with the analyst's own spaces, case and comments
        (
            "SELECT ward,\n  variance(pulse  -- of the heart\n) AS s\nFROM visits GROUP BY ward",
            "SELECT ward,\n  variance(GREATEST(0, LEAST(pulse, 1000))  -- of the heart\n) "
            "FILTER (WHERE pulse IS NOT NULL) AS s\nFROM visits GROUP BY ward",
        ),
        # beyond what an error shows of a line
        (
            f"SELECT COUNT(*) FROM visits WHERE {' AND '.join(['age > 10'] * 30)} AND ward = 1",
            f"SELECT COUNT(*) FROM visits WHERE {' AND '.join(['age > 10'] * 30)} AND ward = '1'",
        ),
        # a key is made coarser in the select list and in ORDER BY too, and not in WHERE or in an aggregate
        (
            "SELECT cost AS c, SUM(cost) FROM visits WHERE cost > 3 GROUP BY cost ORDER BY cost",
            "SELECT FLOOR(cost / 10) AS c, SUM(cost) FROM visits WHERE cost > 3 GROUP BY FLOOR(cost / 10) "
            "ORDER BY FLOOR(cost / 10)",
        ),
        # what is clamped is clamped wherever it stands, and alone
        (
            "SELECT COUNT(*) FROM visits WHERE pulse > 3 AND (ROUND(pulse) = 3 OR round( pulse ) = 4)",
            "SELECT COUNT(*) FROM visits WHERE pulse > 3 AND (ROUND(CASE WHEN pulse IS NOT NULL THEN "
            "GREATEST(0, LEAST(pulse, 1000)) END) = 3 OR ROUND(CASE WHEN pulse IS NOT NULL THEN "
            "GREATEST(0, LEAST(pulse, 1000)) END) = 4)",
        ),
        # in a part of WITH
        (
            "WITH s AS (SELECT LEFT(diagnosis) AS d FROM visits) SELECT COUNT(DISTINCT d) FROM s",
            "WITH s AS (SELECT LEFT(diagnosis, 3) AS d FROM visits) SELECT COUNT(DISTINCT d) FROM s",
        ),
    ],
)
def test_a_suggestion_is_the_whole_question(sql: str, suggestion: str, policy: Policy) -> None:
    found = refusal(sql, policy)
    assert found is not None and found.suggestion == suggestion
    assert pickle.loads(pickle.dumps(found)).suggestion == suggestion
    assert refusal(suggestion, policy) is None


@pytest.mark.slow
def test_a_clamp_leaves_missing_values_missing(policy: Policy, database: duckdb.DuckDBPyConnection) -> None:
    # all values are within 0 to 900, so only a NULL that becomes a bound could move the sum
    for sql in ("SELECT SUM(pulse) FROM visits", "SELECT AVG(pulse) FILTER (WHERE age > 40) FROM visits"):
        pasted, left = paste(sql, policy)
        assert left is None and value_of(pasted, database) == value_of(sql, database)


def test_the_order_of_a_subquery_decides_nothing(plan: Callable[..., Plan]) -> None:
    for inner in ("SELECT age FROM visits", "SELECT patient_id, COUNT(*) AS age FROM visits GROUP BY patient_id"):
        sql = "SELECT COUNT(*) FROM ({}) AS s WHERE age > 3"
        assert plan(sql.format(f"{inner} ORDER BY age DESC")) == plan(sql.format(inner))
