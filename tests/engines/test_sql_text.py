"""The generated SQL: only functions whose cost does not depend on a value, and every name and text quoted."""

from __future__ import annotations

import re
from fractions import Fraction

import duckdb
import pytest

from tacit.answers.answer import Heading
from tacit.answers.finish import _bars, _statement
from tacit.engines import sql
from tacit.plan.plan import plan_for
from tacit.privacy.sensitivity import Contribution
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregation, Call, Column, Domain, Literal, Measure
from tacit.query.sql import parse

# What may stand before a bracket: functions of constant cost over fixed-size values, and words of the language.
FUNCTIONS = {"abs", "cast", "ceil", "chr", "coalesce", "floor", "greatest", "isnan", "isfinite", "least", "md5"}
FUNCTIONS |= {"nullif", "round", "try", "try_cast", "count", "sum", "row_number", "dense_rank"}
WORDS = {"and", "as", "by", "else", "from", "in", "not", "or", "over", "replace", "then", "when", "where", "select"}

ADVERSARIAL = [
    "'",
    '"',
    "''",
    '""',
    "'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "a -- b",
    "/* a */",
    "*/",
    "a;b",
    "\\",
    "\\'",
    "$$",
    "$1",
    "?",
    "{}",
    "%s",
    "E'\\n'",
    "line\nbreak",
    "tab\t",
    "é",
    "日本語",
    "🦆",
    "a\u0301",
    " ",
    "NULL",
]


def called(statement: str) -> set[str]:
    """The names before brackets, outside of quotes."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", " x ", statement)
    return {word.lower() for word in re.findall(r"([A-Za-z_0-9]+)\s*\(", bare)}


def test_only_functions_of_constant_cost(question, plan_policy):
    plan = plan_for(parse(question.sql), plan_policy, 1)
    statement = sql.aggregation(plan.exact, "source")
    assert called(statement) <= FUNCTIONS | WORDS
    headings = tuple(Heading(r.name, r.type, _bars(r)) for r in plan.recipe.results)
    assert called(_statement(plan.recipe, headings)) <= FUNCTIONS | WORDS


def test_the_check_sees_what_is_called():
    assert called("SELECT regexp_matches(a, 'unnest(b)'), REPEAT (\"md5(\", 3)") == {"regexp_matches", "repeat"}


@pytest.mark.parametrize("value", ADVERSARIAL)
def test_texts_and_names_are_quoted(value):
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({sql.name(value)} VARCHAR, other INTEGER)")
        connection.execute(f"INSERT INTO t VALUES ({sql.text(value)}, 1), ('else', 2), (NULL, 3)")
        assert connection.execute("SELECT * FROM t ORDER BY other LIMIT 1").fetchall() == [(value, 1)]
        statement = sql.aggregation(
            Aggregation(
                table="t",
                where=Call(Fn.EQUAL, (Column(value), Literal(value))),
                unit=value,
                keys=(Domain(value, (value, "else")),),
                keep=Contribution(1, 1),
                measures=(Measure("count", None), Measure("sum", Literal(7))),
                salt=value,
            ),
            "t",
        )
        assert connection.execute(statement).fetchall() == [(value, 1, 7)]
        assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (3,)


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_integers_are_written_exactly(number):
    assert duckdb.sql(f"SELECT {sql.literal(number)}").fetchall() == [(number,)]


@pytest.mark.parametrize(
    "number", [Fraction(1, 10), Fraction(-1, 3), Fraction(10) ** 200, Fraction(1, 10**300), Fraction(2**53 + 1)]
)
def test_fractions_are_the_nearest_double(number):
    assert duckdb.sql(f"SELECT {sql.literal(number)}").fetchall() == [(float(number),)]
