"""Texts that no file should hold. Each is read or refused within a tenth of a second."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.query.refusals import MAX_CHARACTERS, MAX_DEPTH, MAX_ITEMS, MAX_NESTED, MAX_SOURCES, MAX_TOKENS

DEEP = 10**5
COUNT = "SELECT COUNT(*) FROM visits "
WHERE = COUNT + "WHERE "


def in_a_tenth_of_a_second(sql: Any) -> Refused | None:
    """The refusal, if it is one. Of up to ten runs the best counts, on a machine that counts to a million in 20 ms.

    A slower machine, or a busier one, has as much more time as it takes to count.
    """
    best, found = 1.0, None
    for _ in range(10):
        start = time.process_time()
        for _ in range(1_000_000):
            pass
        slower = max(1.0, (time.process_time() - start) / 0.02)
        start = time.process_time()
        try:
            parse(sql)
        except Refused as error:
            found = error
        best = min(best, (time.process_time() - start) / slower)
        if best < 0.1:
            break
    assert best < 0.1
    return found


def listed(item: str, count: int, by: str = ", ") -> str:
    return by.join([item] * count)


def uses(count: int, each: str) -> str:
    """A chain of names in WITH, each made of the one before it."""
    names = ", ".join(f"c{i + 1} AS ({each.replace('?', f'c{i}')})" for i in range(count))
    return f"WITH c0 AS (SELECT a FROM t), {names} SELECT COUNT(*) FROM c{count}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("x" * 10_000_000, ErrorCode.TOO_LARGE),
        ("SELECT '" + "x" * 10_000_000, ErrorCode.TOO_LARGE),
        (COUNT + " " * MAX_CHARACTERS, ErrorCode.TOO_LARGE),
        (COUNT + "/*" * 20_000, ErrorCode.TOO_LARGE),
        (WHERE + "a = '" + "''" * 20_000, ErrorCode.SYNTAX),
        (WHERE + "(" * DEEP + "a" + ")" * DEEP, ErrorCode.TOO_LARGE),
        (WHERE + "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), ErrorCode.TOO_LARGE),
        (WHERE + "(" * 9000, ErrorCode.TOO_LARGE),
        (WHERE + ")" * 9000, ErrorCode.SYNTAX),
        (WHERE + "NOT " * DEEP + "a", ErrorCode.TOO_LARGE),
        (WHERE + "NOT " * 3900 + "a", ErrorCode.TOO_LARGE),
        (WHERE + "NOT\t" * 150 + "a", ErrorCode.TOO_LARGE),
        (WHERE + "- " * DEEP + "a", ErrorCode.TOO_LARGE),
        ("SELECT SUM(" + "- " * 3900 + "age) FROM visits", ErrorCode.TOO_LARGE),
        ("SELECT " + "CASE WHEN a THEN " * DEEP + "1" + " END" * DEEP + " FROM t", ErrorCode.TOO_LARGE),
        ("SELECT " + "CASE/**/WHEN a THEN " * 700 + "1" + " END" * 700 + " FROM t", ErrorCode.TOO_LARGE),
        ("SELECT COUNT(*) FROM " + "(SELECT a FROM " * DEEP + "t" + ")" * DEEP, ErrorCode.TOO_LARGE),
        ("SELECT COUNT(*) FROM " + "(SELECT a FROM " * 39 + "t" + ")" * 39, ErrorCode.TOO_LARGE),
        (WHERE + f"a IN ({listed('1', DEEP)})", ErrorCode.TOO_LARGE),
        (WHERE + f"a IN ({listed('1', MAX_ITEMS + 1)})", ErrorCode.TOO_LARGE),
        (WHERE + f"LEAST({listed('a', MAX_ITEMS + 1)}) = 1", ErrorCode.TOO_LARGE),
        (f"SELECT SUM({listed('a', 5000, ' + ')}) FROM t", ErrorCode.TOO_LARGE),
        (f"SELECT SUM({listed('a', 1990, ' + ')}) FROM t", ErrorCode.TOO_LARGE),
        (f"SELECT SUM({listed('a', 150, ' * ')}) FROM t", ErrorCode.TOO_LARGE),
        (WHERE + listed("a = 1", 1500, " OR "), ErrorCode.TOO_LARGE),
        (f"SELECT {listed('COUNT(*)', MAX_ITEMS + 1)} FROM visits", ErrorCode.TOO_LARGE),
        (f"SELECT {listed('a', MAX_ITEMS + 1)} FROM visits", ErrorCode.TOO_LARGE),
        (COUNT + "JOIN b USING (x) " * 1000, ErrorCode.TOO_LARGE),
        (COUNT + "JOIN b USING (x) " * MAX_SOURCES, ErrorCode.TOO_LARGE),
        (COUNT + "JOIN b " * 1000, ErrorCode.UNSUPPORTED),
        (COUNT + "LEFT JOIN b " * 30, ErrorCode.UNSUPPORTED),
        (uses(1000, "SELECT a FROM t"), ErrorCode.TOO_LARGE),
        (uses(40, "SELECT x.a FROM ? AS x JOIN ? AS y USING (a)"), ErrorCode.TOO_LARGE),
        (uses(40, "SELECT a FROM ?"), ErrorCode.TOO_LARGE),
        (uses(5, f"SELECT a FROM t WHERE a IN ({listed('1', 100)}) UNION ALL SELECT a FROM ?") + "0", None),
        ("SELECT COUNT(*) FROM (SELECT a FROM t" + " UNION ALL SELECT a FROM t" * 600 + ") AS s", ErrorCode.TOO_LARGE),
        # each of these writes its operand twice, so forty of them would be 2^40 nodes
        (WHERE + "(" * 39 + "a" + " BETWEEN 1 AND 2)" * 39, ErrorCode.TOO_LARGE),
        ("SELECT SUM(" + "NULLIF(" * 38 + "a" + ", 1)" * 38 + ") FROM t", ErrorCode.TOO_LARGE),
        # all the levels of operators within each other, in brackets within each other
        (WHERE + "(a OR b AND c = d || e + f * g ^ " * 39 + "1" + ")" * 39, ErrorCode.TOO_LARGE),
        (WHERE + "COALESCE(a OR b AND c = d || e + f * g ^ " * 39 + "1" + ")" * 39, ErrorCode.TOO_LARGE),
        # what makes parsers go back and try again
        (WHERE + "DATE(" * 39 + "1" + ")" * 39, ErrorCode.UNSUPPORTED),
        (WHERE + "STRUCT(" * 39 + "1" + ")" * 39, ErrorCode.UNKNOWN_FUNCTION),
        (WHERE + "DECIMAL(" * 39 + "1" + ")" * 39, ErrorCode.UNKNOWN_FUNCTION),
        ("WITH " * 2000, ErrorCode.SYNTAX),
        ("SELECT " * 2000, ErrorCode.SYNTAX),
        (WHERE + "a !" * 9000, ErrorCode.UNSUPPORTED),
        ("SELECT " + "1" * 40_000 + " FROM t", ErrorCode.UNSUPPORTED),
        ("SELECT 1e" + "9" * 40_000 + " FROM t", ErrorCode.UNSUPPORTED),
        (COUNT + "\0", ErrorCode.SYNTAX),
        ("\0", ErrorCode.SYNTAX),
        (WHERE + "diagnosis = '\0'", ErrorCode.SYNTAX),
        (WHERE + "diagnosis = '\ud800'", ErrorCode.SYNTAX),
        ("   \n\t  ", ErrorCode.SYNTAX),
        (";;;", ErrorCode.SYNTAX),
        ("/* only */ -- a comment", ErrorCode.SYNTAX),
        ("\N{PILE OF POO}", ErrorCode.SYNTAX),
        (b"SELECT COUNT(*) FROM visits", ErrorCode.SYNTAX),
        (None, ErrorCode.SYNTAX),
        (7, ErrorCode.SYNTAX),
    ],
    ids=lambda value: str(value)[:60].replace("\0", "NUL").replace("\ud800", "HALF") if value else "read",
)
def test_a_text_is_refused_at_once(sql: Any, code: ErrorCode | None) -> None:
    found = in_a_tenth_of_a_second(sql if code else sql[:-1])
    assert (found and found.code) is code
    assert found is None or (found.fix and len(str(found)) < 400)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        WHERE + "(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH,
        WHERE + "NOT " * 110 + "a",
        "SELECT " + "CASE WHEN a THEN " * 100 + "1" + " END" * 100 + " FROM t",
        WHERE + f"a IN ({', '.join(map(str, range(MAX_ITEMS)))})",
        WHERE + f"a IN ({listed('-1', MAX_ITEMS)})",
        WHERE + f"a IN ({listed(chr(39) + 'b' * 36 + chr(39), MAX_ITEMS)})",
        WHERE + f"a IN ({listed('DATE ' + repr('2025-01-01'), MAX_ITEMS)})",
        f"SELECT SUM({listed('a', 100, ' + ')}) FROM t",
        WHERE + listed("a = 1", 900, " OR "),
        f"SELECT {listed('a', MAX_ITEMS)} FROM visits",
        COUNT + "JOIN b USING (x) " * (MAX_SOURCES - 1),
        uses(MAX_NESTED - 1, "SELECT a FROM ?"),
        "WITH " + ", ".join(f"c{i} AS (SELECT a FROM t)" for i in range(400)) + " SELECT COUNT(*) FROM c3",
        COUNT + "-- " + "x" * 49_000,
        WHERE + "a = '" + "''" * 20_000 + "'",
        "SELECT " + "é" * 49_000 + " FROM visits",
    ],
    ids=lambda sql: sql[:60],
)
def test_a_large_question_is_read_at_once(sql: str) -> None:
    assert in_a_tenth_of_a_second(sql) is None


@pytest.mark.slow
def test_the_work_grows_with_the_number_of_tokens() -> None:
    # 3,900 tokens against 390; a square would take a hundred times as many calls
    def calls(terms: int) -> int:
        text, seen = WHERE + listed("a = 1", terms, " OR "), 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal seen
            seen += event in {"call", "c_call"}

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            parse(text)
        finally:
            sys.setprofile(before)
        return seen

    assert calls(900) < 12 * calls(90)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "CASE WHEN a THEN " * 119 + "1" + " END" * 119 + " FROM t",
        WHERE + "COALESCE(" * 39 + "CASE WHEN a THEN " * 75 + "1" + " END" * 75 + ")" * 39,
        "SELECT COUNT(*) FROM " + "(a JOIN " * 38 + "t" + " USING (a))" * 38,
    ],
    ids=["cases", "calls", "joins"],
)
def test_a_question_is_read_from_deep_within_a_program(sql: str) -> None:
    # these take the most frames, below 600 of the thousand that Python gives; a server and a test runner take 100
    def within(frames: int) -> object:
        return parse(sql) if frames == 0 else within(frames - 1)

    assert within(250)


def test_a_thousand_values_fit_into_the_tokens_of_a_question() -> None:
    # a value and a comma each, three tokens if the values are dates or negative
    assert MAX_TOKENS >= 3 * MAX_ITEMS + 100


def test_the_column_counts_in_the_whole_line() -> None:
    sql = WHERE + "age > 10 AND " * 10 + "SIN(height) > 180 AND age > 16"
    with pytest.raises(Refused) as caught:
        parse(sql)
    printed = str(caught.value).splitlines()
    # 34 characters up to WHERE and its space, 13 for each of the ten conditions, and columns count from 1
    assert printed[1] == "  line 1, column 165"
    start = printed[3].index("^")
    assert printed[2][start : len(printed[3])] == "SIN(height)"
