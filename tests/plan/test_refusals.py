"""Refusals that follow from the policy, one file each: the question, a line of dashes, and what the analyst reads.

Set TACIT_WRITE=1 to write what is printed now into the files, and review the difference.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.counts import some

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.plan.compound_plan import plan_question, require_one
from tacit.policy.model import Policy

FILES = sorted((Path(__file__).parent / "refusals").glob("*.txt"))
ABOUT_MEANING = list(ErrorCode)[
    list(ErrorCode).index(ErrorCode.UNKNOWN_TABLE) : list(ErrorCode).index(ErrorCode.UNKNOWN_ANALYST)
]


def read(file: Path) -> tuple[str, str]:
    sql, _, printed = file.read_text(encoding="utf-8").partition("\n---\n")
    return sql, printed


def refusal(sql: str, policy: Policy) -> Refused:
    with pytest.raises(Refused) as caught:
        plan_question(parse(sql), policy, 0.5)
    return caught.value


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_refusal_reads_as_in_its_file(file: Path, policy: Policy) -> None:
    sql, expected = read(file)
    found = refusal(sql, policy)
    if os.environ.get("TACIT_WRITE") == "1":
        file.write_text(f"{sql}\n---\n{found}\n", encoding="utf-8")
        return
    assert f"{found}\n" == expected
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_refusal_has_a_place_a_reason_and_a_fix(file: Path) -> None:
    sql, printed = read(file)
    lines = printed.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("refused [")
    assert lines[4].startswith("  fix: ")
    excerpt, marks = lines[2][4:], lines[3][4:]
    assert any(excerpt in line for line in sql.replace("\t", " ").split("\n"))
    assert set(marks.strip()) == {"^"}


@pytest.mark.slow
@pytest.mark.parametrize("file", some(FILES, 3), ids=lambda file: file.stem)
def test_a_refusal_does_not_depend_on_the_relation(file: Path, policy_with: Callable[..., Policy]) -> None:
    sql, expected = read(file)
    assert f"{refusal(sql, policy_with('replace'))}\n" == expected


def test_every_code_about_the_meaning_has_a_file() -> None:
    shown = {read(file)[1].split("]")[0] for file in FILES}
    assert shown >= {f"refused [{code}" for code in ABOUT_MEANING if code is not ErrorCode.UNKNOWN_FUNCTION}
    assert len(FILES) >= 140


@pytest.mark.parametrize(
    ("hidden", "absent"),
    [
        # `name` and `salaries` are in the database and not in the policy, `nome` and `wages` are in neither
        ("SELECT AVG(name) FROM visits", "SELECT AVG(nome) FROM visits"),
        ("SELECT COUNT(*) FROM visits WHERE visit_id = 3", "SELECT COUNT(*) FROM visits WHERE visit_no = 3"),
        ("SELECT COUNT(*) FROM items WHERE visit_id = 3", "SELECT COUNT(*) FROM items WHERE visit_no = 3"),
        ("SELECT COUNT(*) FROM salaries", "SELECT COUNT(*) FROM wages"),
        ("SELECT COUNT(*) FROM visits JOIN salaries USING (x)", "SELECT COUNT(*) FROM visits JOIN wages USING (x)"),
    ],
)
def test_what_the_policy_hides_reads_like_what_is_not_there(hidden: str, absent: str, policy: Policy) -> None:
    one, other = refusal(hidden, policy), refusal(absent, policy)
    assert one.at is not None and other.at is not None
    assert (one.code, one.fix) == (other.code, other.fix)
    assert one.what.replace(one.at.words, "") == other.what.replace(other.at.words, "")


@pytest.mark.parametrize(
    "sql",
    [
        # each is the rewriting that a refusal names
        "SELECT SUM(GREATEST(0, LEAST(pulse, 200))) FROM visits",
        "SELECT QUANTILE(GREATEST(0, LEAST(prior, 1000)), 0.9) FROM visits",
        "SELECT COUNT(DISTINCT GREATEST(0, LEAST(pulse, 1000))) FROM visits",
        "SELECT STDDEV(GREATEST(-1073741824, LEAST(points, 1073741824))) FROM visits",
        "SELECT COUNT(DISTINCT patient_id) FROM visits",
        "SELECT COUNT(*) FROM visits JOIN labs ON visits.patient_id = labs.patient_id",
        "SELECT COUNT(*) FROM visits JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM wards JOIN regions USING (region) JOIN visits ON visits.ward = wards.ward",
        "SELECT TOP_K(ward, 3) FROM visits",
        "SELECT AVG(LEAST(n, 9)) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s",
        "SELECT AVG(born - DATE '2025-01-01') FROM visits",
        "SELECT MEDIAN(born) FROM visits",
        "SELECT COUNT(*) FILTER (WHERE smoker) FROM visits",
        "SELECT SUM(FLOOR(cost + 0.5)) FROM visits",
        "SELECT ROUND(AVG(cost)) FROM visits",
        "SELECT CASE WHEN smoker THEN 'yes' ELSE 'no' END = 'yes' AS s, COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE age <> 0 AND smoker = TRUE AND ward = '1' AND age = 40",
        "SELECT MAX(YEAR(born)) FROM visits WHERE YEAR(visited) > 2024 OR visited > '2025-12-31'",
        "SELECT SUM(CAST(age AS INTEGER)) FROM visits",
        "SELECT FLOOR(cost / 1000) AS k, COUNT(*) FROM visits GROUP BY FLOOR(cost / 1000)",
        "SELECT AVG(LEAST(d, 9)) FROM (SELECT patient_id, COUNT(DISTINCT ward) AS d FROM visits GROUP BY patient_id) s",
    ],
)
def test_what_a_fix_says_is_answered(sql: str, policy: Policy) -> None:
    assert plan_question(parse(sql), policy, 0.5).epsilon_delta == (0.5, 0)


def test_an_unknown_name_cannot_move_the_cursor_of_who_reads_it(policy: Policy) -> None:
    # \x1b[2J empties a terminal
    found = refusal('SELECT COUNT(*) FROM visits WHERE ward = "\x1b[2J"', policy)
    assert all(character.isprintable() or character == "\n" for character in str(found))


def test_private_keys_over_rows_that_may_occur_twice_are_refused_even_with_a_delta(policy_with_delta: Policy) -> None:
    # each row of beds stands in both parts, so a key of its own would be held by two rows and look like two units
    twice = "(SELECT TRIM(ward) AS w FROM beds UNION ALL SELECT TRIM(ward) FROM beds) AS s"
    found = refusal(f"SELECT w, COUNT(*) FROM {twice} GROUP BY w", policy_with_delta)
    assert found.code is ErrorCode.PRIVATE_KEY
    assert "several times" in found.what
    once = "(SELECT TRIM(ward) AS w FROM beds) AS s"
    plan = require_one(plan_question(parse(f"SELECT w, COUNT(*) FROM {once} GROUP BY w"), policy_with_delta, 0.5))
    assert plan.shown is not None
