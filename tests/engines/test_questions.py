"""Whole questions, the noise set aside: as plain SQL where no bound bites, as the reference where bounds do."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tacit.answers.answer import Answer, Bars


def close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def is_empty(answer: Answer, row: tuple[Any, ...]) -> bool:
    """Whether this is what a declared group without rows looks like: counts and sums are 0, means NULL."""
    return all(value in (0, None) for value, h in zip(row, answer.headings, strict=True) if h.bars is Bars.EXACT)


def test_there_are_enough_questions(all_questions):
    assert len({question.sql for question in all_questions}) == len(all_questions) >= 60


def test_plain_sql_where_no_bound_bites(question, unbounded, plain):
    answer = unbounded.ask(question.sql, epsilon=1)
    if not question.standard:
        assert [tuple(row.values()) for row in answer] == [(None, 900)]  # 900/0
        return
    expected = plain.sql(question.sql).fetchall()
    rows = [tuple(row.values()) for row in answer]
    # Off the declared grid a value is rounded to a default one: a millionth of the bound, for each row.
    alike = close if question.exact else lambda a, b: close(a, b) or math.isclose(a, b, rel_tol=1e-4)
    matched = []
    left = list(enumerate(rows))
    for wanted in expected:
        found = next((n for n, row in left if all(map(alike, row, wanted))), None)
        assert found is not None, (wanted, rows)
        left = [(n, row) for n, row in left if n != found]
        matched.append(found)
    assert all(is_empty(answer, row) for _, row in left), left
    if "ORDER BY" in question.sql.upper():
        assert matched == sorted(matched)


def test_the_reference_where_bounds_bite(question, both):
    duck, reference = both
    one, other = duck.ask(question.sql, epsilon=1), reference.ask(question.sql, epsilon=1)
    assert one.cells() == other.cells()
    assert one.headings == other.headings


def test_bounds_do_bite(both, unbounded):
    # 600 rows over some 92 patients, two of them with 75 each: k r = 2 or 3 rows are kept of each.
    duck, _ = both
    count = duck.ask("SELECT COUNT(*) FROM visits WHERE age IS NOT NULL", epsilon=1).value
    assert 0 < count <= 92 * 3
    assert unbounded.ask("SELECT COUNT(*) FROM visits", epsilon=1).value == 900


def test_questions_at_once(both, all_questions):
    duck, reference = both
    few = [question.sql for question in all_questions if question.name.startswith("groups")][:12]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda sql: duck.ask(sql, epsilon=0.5).cells(), few))
    assert found == [reference.ask(sql, epsilon=0.5).cells() for sql in few]
