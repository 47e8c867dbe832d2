"""Refusals, one file each: the question, a line of dashes, and exactly what the analyst reads.

Set TACIT_WRITE=1 to write what is printed now into the files, and review the difference.
"""

from __future__ import annotations

import math
import os
import pickle
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.accounting.guard import Cost
from tacit.curator.curator import Curator
from tacit.errors import Code, ParameterError, Refused
from tacit.plan.plan import plan_for
from tacit.policy.model import Policy
from tacit.query.sql import parse

FILES = sorted((Path(__file__).parent / "refusals").glob("*.txt"))
ABOUT_QUESTIONS = list(Code)[: list(Code).index(Code.UNKNOWN_ANALYST)]


def refused(curator: Curator, sql: Any, **price: Any) -> Refused:
    """The refusal of a whole `ask`, after a look at the ledger: the opening is its only entry and nothing is spent."""
    with pytest.raises(Refused) as caught:
        curator.analyst("ada").ask(sql, **({"epsilon": 0.5} | price))
    nothing_charged(curator)
    return caught.value


def nothing_charged(curator: Curator) -> None:
    assert [entry.kind for entry in curator.ledger.entries()] == ["open"]
    assert curator.ledger.standing("ada").spent == Cost.zero()
    assert curator.ledger.overall().spent == Cost.zero()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_refusal(file: Path, policy: Policy, curator: Curator) -> None:
    sql, _, expected = file.read_text(encoding="utf-8").partition("\n---\n")
    with pytest.raises(Refused) as caught:
        plan_for(parse(sql), policy, 0.5)
    if os.environ.get("TACIT_WRITE") == "1":
        file.write_text(f"{sql}\n---\n{caught.value}\n", encoding="utf-8")
        return
    assert f"{caught.value}\n" == expected
    assert f"{refused(curator, sql)}\n" == expected
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_every_code_about_a_question_has_a_file() -> None:
    # too-large needs longer texts than a person reads: they are below
    shown = {file.read_text(encoding="utf-8").partition("\n---\n")[2].split("]")[0] for file in FILES}
    assert shown == {f"refused [{code}" for code in ABOUT_QUESTIONS if code is not Code.TOO_LARGE}
    assert len(FILES) >= 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_refusal_says_what_to_do_and_marks_text_of_the_question(file: Path) -> None:
    sql, _, printed = file.read_text(encoding="utf-8").partition("\n---\n")
    lines = printed.splitlines()
    assert lines[-1].startswith("  fix: ")
    assert all(len(line) <= 140 for line in lines)
    if len(lines) > 2:
        excerpt, marks = lines[2][4:], lines[3][4:]
        assert excerpt in sql.replace("\t", " ").split("\n")
        assert excerpt[marks.index("^") : len(marks)].strip()


# What exists in the data but not in the policy is refused in the words used for what does not exist.


@pytest.mark.parametrize("where", ["SELECT COUNT(*) FROM {}", "SELECT COUNT(*) FROM {} WHERE age > 3"])
def test_a_table_of_the_data_and_no_table_read_alike(curator: Curator, where: str) -> None:
    unlisted, absent = refused(curator, where.format("staff")), refused(curator, where.format("stuff"))
    assert str(unlisted).replace("staff", "stuff") == str(absent)


@pytest.mark.parametrize(
    "where",
    [
        "SELECT COUNT(*) FROM visits WHERE {} = 'n1'",
        "SELECT {} FROM visits",
        "SELECT COUNT({}) FROM visits",
        "SELECT COUNT(*) FROM visits GROUP BY {}",
        "SELECT COUNT(*) FROM visits ORDER BY {}",
        "SELECT COUNT(*) FROM visits HAVING {} IS NULL",
        "SELECT COUNT(visits.{}) FROM visits",
    ],
)
def test_a_column_of_the_data_and_no_column_read_alike(curator: Curator, where: str) -> None:
    unlisted, absent = refused(curator, where.format("name")), refused(curator, where.format("nome"))
    assert unlisted.code is Code.UNKNOWN_COLUMN
    assert str(unlisted).replace("name", "nome") == str(absent)
    unit, other = refused(curator, where.format("patient_id")), refused(curator, where.format("patient_ix"))
    assert str(unit).replace("patient_id", "patient_ix") == str(other)


# Texts that no file should hold.

DEEP = 10**5


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("x" * 10_000_000, Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits " + " " * 20_000, Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE " + "(" * DEEP + "age > 1" + ")" * DEEP, Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE " + "(" * 41 + "age > 1" + ")" * 41, Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE " + "(" * 9000, Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE " + "NOT " * 4000 + "smoker", Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE " + "NOT\t" * 150 + "smoker", Code.TOO_LARGE),
        ("SELECT SUM(" + "- " * 4000 + "age) FROM visits", Code.TOO_LARGE),
        ("SELECT SUM(" + "age + " * 2000 + "1) FROM visits", Code.TOO_LARGE),
        ("SELECT SUM(" + "CASE WHEN smoker THEN " * 200 + "1" + " END" * 200 + ") FROM visits", Code.TOO_LARGE),
        ("SELECT SUM(" + "CASE/**/WHEN smoker THEN " * 200 + "1" + " END" * 200 + ") FROM visits", Code.TOO_LARGE),
        ("SELECT " + "COUNT(*), " * 1000 + "COUNT(*) FROM visits", Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits WHERE age IN (" + "1, " * 1001 + "1)", Code.TOO_LARGE),
        ("SELECT COUNT(*) FROM visits\0", Code.SYNTAX),
        ("\0", Code.SYNTAX),
        ("SELECT COUNT(*) FROM visits WHERE diagnosis = '\0'", Code.SYNTAX),
        ("   \n\t  ", Code.SYNTAX),
        (";;;", Code.SYNTAX),
        ("/* only */ -- a comment", Code.SYNTAX),
        ("\N{PILE OF POO}", Code.STATEMENT),
        (b"SELECT COUNT(*) FROM visits", Code.SYNTAX),
        (None, Code.SYNTAX),
        (7, Code.SYNTAX),
    ],
    ids=lambda value: str(value)[:40].replace("\0", "NUL") if not isinstance(value, Code) else None,
)
def test_texts_that_are_refused_at_once(curator: Curator, sql: Any, code: Code) -> None:
    start = time.process_time()
    assert refused(curator, sql).code is code
    # the largest takes a tenth of a second; nothing may grow with the square of the length
    assert time.process_time() - start < 2


def test_a_refusal_of_ten_megabytes_is_short(curator: Curator) -> None:
    assert len(str(refused(curator, "SELECT " + "'" + "x" * 10_000_000))) < 200


def test_the_column_counts_in_the_whole_line(curator: Curator) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE " + "age > 10 AND " * 10 + "heigth > 180 AND age > 16"
    printed = str(refused(curator, sql)).splitlines()
    # 34 characters up to WHERE and its space, 13 for each of the ten conditions, and columns count from 1
    assert printed[1] == "  line 1, column 165"
    start = printed[3].index("^")
    assert printed[2][start : len(printed[3])] == "heigth"


# Prices and confidences.

BAD_NUMBERS = [
    0,
    -1,
    -0.5,
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    1e308,
    1e-9,
    "0.5",
    b"1",
    None,
    True,
    False,
    [0.5],
    1j,
    np.float64("nan"),
    np.bool_(True),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e400"),
    Fraction(-1, 3),
    Fraction(10**400),
    10**400,
    10**5000,
]


@pytest.mark.parametrize(
    "value",
    BAD_NUMBERS,
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:12]}" if not isinstance(value, int) or value < 1e300 else "huge int"
    ),
)
def test_a_bad_epsilon_names_epsilon(curator: Curator, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=value)
    check_parameter(caught.value, "epsilon")
    nothing_charged(curator)


@pytest.mark.parametrize(
    "value",
    [*BAD_NUMBERS, 1, 1.0, 2, 0.009, 95, 1 - 1e-12],
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:12]}" if not isinstance(value, int) or value < 1e300 else "huge int"
    ),
)
def test_a_bad_confidence_names_confidence(curator: Curator, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=0.5, confidence=value)
    check_parameter(caught.value, "confidence")
    with pytest.raises(ParameterError, match="confidence"):
        curator.analyst("ada").explain("SELECT COUNT(*) FROM visits", epsilon=0.5, confidence=value)
    nothing_charged(curator)


def check_parameter(error: ParameterError, name: str) -> None:
    assert error.code is Code.PARAMETER
    assert error.name == name
    assert str(error).startswith(f"error [parameter]: {name}: ")
    assert "  fix: " in str(error) and name in error.fix
    assert len(str(error)) < 300


def test_the_ends_of_epsilon(policy: Policy) -> None:
    query = parse("SELECT COUNT(*) FROM visits")
    assert plan_for(query, policy, 1000).epsilon == 1000
    assert plan_for(query, policy, 1e-6).epsilon == Fraction(1, 10**6)
    with pytest.raises(ParameterError, match="between 1e-06 and 1000"):
        plan_for(query, policy, Fraction(10**6 + 1, 10**3))
    with pytest.raises(ParameterError, match="between 1e-06 and 1000"):
        plan_for(query, policy, Fraction(999, 10**9))


# Who asks, and for how much.


def test_a_price_above_the_budget_is_refused_before_the_data(curator: Curator) -> None:
    error = refused(curator, "SELECT COUNT(*) FROM visits", epsilon=5.5)
    assert str(error) == (
        "refused [budget]: it costs epsilon 5.5, and ada's own budget has 5 left of 5\n  fix: ask for at most epsilon=5"
    )


def test_an_analyst_whom_nobody_named(curator: Curator) -> None:
    with pytest.raises(Refused) as caught:
        curator.analyst("eve")
    assert caught.value.code is Code.UNKNOWN_ANALYST
    nothing_charged(curator)
