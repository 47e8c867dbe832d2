"""The pages for analysts say what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.support.counts import some

from tacit.aggregates.registry import SYNTAX
from tacit.aggregates.registry import read_question as parse
from tacit.curator.curator import open as open_curator
from tacit.curator.describe_schema import describe_schema
from tacit.demo import clinic
from tacit.errors import ErrorCode, Failed, Refused, TacitError
from tacit.learn.fit_warnings import FitWarning
from tacit.plan.bind_question import plan_for
from tacit.plan.compound_plan import plan_question
from tacit.plan.constants import MAX_CONSTANT_ROWS
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON
from tacit.plan.public_tables import MAX_JOINED_ROWS, MAX_PUBLIC_ROWS
from tacit.plan.split import MAX_GROUPS
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query import function_calls
from tacit.query.dialect_names import ALIASES, CLOCK_DATES, CLOCK_TIMES
from tacit.query.from_parser import SERIES
from tacit.query.functions import WINDOW_FUNCTIONS, WRITTEN_WINDOWS, Function
from tacit.query.refusals import MAX_CHARACTERS, MAX_DEPTH, MAX_ITEMS, MAX_SOURCES, MAX_TOKENS

DOCS = Path(__file__).parents[2] / "docs"
ERRORS = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
FUNCTIONS = (DOCS / "reference" / "functions.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "guide" / "sql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)\n```", GUIDE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def demo() -> Policy:
    return load(tomllib.loads(clinic.POLICY_TEXT))


def first_cells(text: str) -> list[str]:
    """What stands in code marks in the first column of the tables."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def test_every_code_is_explained_once():
    classes = {kind.__name__ for kind in (Refused, Failed, *TacitError.__subclasses__())}
    warnings = [kind.code for kind in FitWarning.__subclasses__()]
    assert sorted(set(first_cells(ERRORS)) - classes) == sorted([*ErrorCode, *warnings])
    assert len(first_cells(ERRORS)) == len(set(first_cells(ERRORS)))


def test_every_class_of_errors_is_explained():
    assert {kind.__name__ for kind in TacitError.__subclasses__()} <= set(first_cells(ERRORS))


def test_every_function_is_explained_once():
    rows = FUNCTIONS.partition("## Functions and operators")[2].partition("## Constants")[0]
    assert sorted(first_cells(rows)) == sorted(Function)


def test_every_function_that_the_pages_write_can_be_asked_for():
    names = [*SYNTAX, *function_calls.FUNCTION_NAMES, *ALIASES, *CLOCK_DATES, *CLOCK_TIMES]
    answered = {name.upper() for name in [*names, *WINDOW_FUNCTIONS, *WRITTEN_WINDOWS, *SERIES, "safe_cast"]}
    for page in (FUNCTIONS, GUIDE):
        code = " ".join(re.findall(r"`([^`\n]+)`", page))
        written = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)+)\b", code)) - {"ANY_VALUE", "TRY_CAST"}
        assert written
        assert not written - answered


def test_the_numbers_in_the_pages_are_those_of_the_code():
    too_large = next(line for line in ERRORS.splitlines() if line.startswith("| `too-large`"))
    for number in (MAX_CHARACTERS, MAX_TOKENS, MAX_DEPTH, MAX_ITEMS, MAX_SOURCES):
        assert f"{number:,}" in too_large
    assert f"more than {MAX_PUBLIC_ROWS:,} rows of public tables, or {MAX_JOINED_ROWS:,} of one" in too_large
    assert f"{MAX_PUBLIC_ROWS:,} rows of public tables" in GUIDE and f"of up to {MAX_CONSTANT_ROWS:,} rows" in GUIDE
    assert f"of constants, up to {MAX_CONSTANT_ROWS:,} rows" in FUNCTIONS
    assert f"more than {MAX_GROUPS:,} groups" in ERRORS
    assert f"at most {MAX_GROUPS:,} groups" in FUNCTIONS
    assert f"at most {MAX_ITEMS:,}" in FUNCTIONS
    assert f"`epsilon` from {float(MIN_EPSILON):f} to {MAX_EPSILON}" in ERRORS


def test_the_guide_shows_the_schema_of_the_clinic(demo: Policy):
    (shown,) = re.findall(r"```text\n(.*?)\n```", GUIDE, flags=re.DOTALL)
    assert shown == str(describe_schema(demo))


def test_the_guide_has_examples_of_both_kinds():
    refusals = [sql for sql in EXAMPLES if sql.startswith("-- refused: ")]
    assert len(refusals) >= 10 and len(EXAMPLES) - len(refusals) >= 10


@pytest.mark.parametrize("sql", EXAMPLES, ids=lambda sql: sql.splitlines()[-1][:50])
def test_an_example_is_planned_or_refused_as_it_says(demo: Policy, sql: str) -> None:
    expected = re.match(r"-- refused: (\S+)\n", sql)
    if expected is None:
        assert plan_question(parse(sql), demo, 0.5)
        return
    with pytest.raises(Refused) as caught:
        plan_question(parse(sql), demo, 0.5)
    assert caught.value.code == expected[1]


@pytest.mark.slow
def test_the_examples_are_answered(tmp_path: Path):
    answered = some((sql for sql in EXAMPLES if not sql.startswith("-- refused: ")), 6)
    with open_curator(clinic.build_clinic(tmp_path)) as curator:
        ada = curator.analyst("ada")
        answers = [ada.ask(sql, epsilon=0.02) for sql in answered]
    assert all(len(answer) > 0 for answer in answers)


def test_questions_that_differ_after_the_noise_are_one_question(demo: Policy):
    sql = "SELECT ward, sex, COUNT(*) AS visits FROM visits GROUP BY ward, sex"
    assert plan_for(parse(sql), demo, 0.5).key == plan_for(parse(f"{sql} ORDER BY visits LIMIT 5"), demo, 0.5).key


def test_what_a_refusal_advises_is_answered(demo: Policy):
    # the expressions that fixes hold up as examples
    for sql in (
        "SELECT COUNT(CASE WHEN age > 90 THEN 1 END) FROM visits",
        "SELECT AVG(age), AVG(age * age) FROM visits",
        "SELECT SUM(FLOOR(cost + 0.5)) FROM visits",
        "SELECT SUM(CASE WHEN ward = 'A' THEN cost END) FROM visits",
        "SELECT SUM(GREATEST(0, LEAST(cost / nights, 1000))) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE visited = DATE '2025-12-31' AND age BETWEEN 1 AND 1000",
        "SELECT COUNT(*) FILTER (WHERE age > 40) FROM visits HAVING COUNT(*) > 100",
        "SELECT AVG(age * nights) - AVG(age) * AVG(nights) FROM visits",
        "SELECT QUANTILE(age, 0.9), COUNT(DISTINCT ward), AVG(LN(age + 1) / LN(10)) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE ISODOW(visited) = 1 AND CONTAINS(diagnosis, 'flu')",
        "SELECT COUNT(*) FROM visits WHERE diagnosis LIKE 'flu%' AND DATE_DIFF('day', DATE '2025-01-01', visited) < 30",
        "SELECT COUNT(*) FROM visits WHERE SUBSTRING(diagnosis, 1, 3) = 'flu' OR LOWER(diagnosis) = 'flu'",
        "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('week', visited) = DATE '2025-12-29'",
    ):
        assert plan_for(parse(sql), demo, 0.5)
