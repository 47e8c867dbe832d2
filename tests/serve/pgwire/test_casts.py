"""Casts and constants of a client's question."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.serve.pgwire.test_lexer import POLICY, TEXTS
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.policy.load import load
from tacit.query.nodes import Call, Literal
from tacit.query.parameters import quote_text
from tacit.serve.pgwire import parameters
from tacit.serve.pgwire.casts import CastRewriter
from tacit.serve.pgwire.edits import EditedText
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.statements import adapt_to_parser
from tacit.serve.pgwire.tokens import tokenize_statements
from tacit.serve.pgwire.types import DATE, FLOAT8, INT4, TIMESTAMP, decode

MANY = 2_000 if FULL else 100
DAY = datetime.date(2025, 1, 31)


def question(text: str, *values: object) -> str:
    found = tokenize_statements(text)
    return EditedText(
        text, 0, len(text), [*parameters.substitute_values(found, values), *adapt_to_parser(found, POLICY)]
    ).text


def plain(text: str) -> str:
    """A condition as the question has it, without spaces."""
    whole = question(f"SELECT COUNT(*) AS n FROM visits WHERE {text}")
    parse(whole)
    return "".join(whole.split("WHERE", 1)[1].split())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("age >= ('30'::int4)", "age>=30"),
        ("age >= ('-30'::bigint)", "age>=(-30)"),
        ("age > 30::int8 AND cost < 0.5::float8", "age>30ANDcost<0.5"),
        ("cost < ('300.5'::double precision)", "cost<300.5"),
        ("cost < ('2.50'::numeric(10, 2))", "cost<2.50"),
        ("insured = ('TRUE')", "insured=TRUE"),
        ("insured = 'f'::bool", "insured=FALSE"),
        ("visited >= '2025-01-31'", "visited>=DATE'2025-01-31'"),
        ("visited >= ('2025-01-31 -05')", "visited>=DATE'2025-01-31'"),
        ("visited BETWEEN ('2025-01-31 +00') AND ('2025-01-31')", "visitedBETWEENDATE'2025-01-31'ANDDATE'2025-01-31'"),
        ("visited < '2025-01-31 00:00:00+00'::timestamp with time zone", "visited<DATE'2025-01-31'"),
        ("visits.visited IN (('2025-01-31'), '2025-01-31')", "visits.visitedIN(DATE'2025-01-31',DATE'2025-01-31')"),
        ("ward = ('A'::varchar(5)) OR ward = CAST('A' AS text)", "ward='A'ORward='A'"),
        ("ward IN (('A'), ('it''s'))", "wardIN(('A'),('it''s'))"),
        ("ward = E'it\\'s'", "ward='it''s'"),
        ("ward = '2025-01-31'", "ward='2025-01-31'"),
        ("visited >= DATE '2025-01-31'", "visited>=DATE'2025-01-31'"),
        ("CAST(visits.visited AS date) > '2025-01-31'", "(visits.visited)>'2025-01-31'"),
        ("CAST(age AS bigint) = 3 AND visits.cost::float8 < 3", "(age)=3ANDvisits.cost<3"),
        ("CAST('12' AS integer) < age", "12<age"),
        ("visited < timestamp '2025-01-31 00:00:00'", "visited<DATE'2025-01-31'"),
        ("visited < timestamp with time zone '2025-01-31 00:00:00.000Z'", "visited<DATE'2025-01-31'"),
    ],
)
def test_a_constant_has_the_type_of_its_cast_or_of_its_place(written, read):
    assert plain(written) == read


def test_a_cast_that_changes_something_is_left_for_the_question_to_refuse():
    for text in ("CAST(cost AS integer) = 3", "age::text = '3'", "CAST(SUM(age) AS date) > 3", "ward::date > 3"):
        assert question(f"SELECT COUNT(*) FROM visits WHERE {text}").endswith(text)


def test_a_constant_that_is_not_of_its_type_is_an_error_at_its_place():
    text = "SELECT COUNT(*) FROM visits WHERE age > 'x'::int4"
    with pytest.raises(WireError) as error:
        question(text)
    assert error.value.sqlstate == "22P02" and error.value.position == text.index("'x'") + 1


def test_a_column_of_two_types_gives_no_type():
    tables = {
        name: {"unit": "row", "columns": {"when": {"type": kind}, "day": {"type": "date"}}}
        for name, kind in (("visits", "date"), ("stays", "text"))
    }
    policy = load({"privacy": {"epsilon": 1}, "tables": tables, "analysts": {"ada": {"epsilon": 1}}})
    text = "SELECT COUNT(*) FROM visits WHERE when > '2025-01-31' AND day > '2025-01-31'"
    (edit,) = CastRewriter(tokenize_statements(text), policy).edits()
    assert edit.start == text.rindex("'2025")


@pytest.mark.slow
@settings(max_examples=MANY)
@given(TEXTS)
def test_a_text_stays_the_text_it_is(text):
    for written in (
        quote_text(text),
        f"({quote_text(text)})",
        f"{quote_text(text)}::text",
        f"CAST({quote_text(text)} AS varchar)",
    ):
        where = parse(question(f"SELECT COUNT(*) AS n FROM visits WHERE ward = {written}")).where
        assert isinstance(where, Call) and where.arguments[1] == Literal(text)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(st.one_of(st.integers(-(2**31), 2**31 - 1), st.decimals(-(10**9), 10**9, places=3), st.dates(), st.booleans()))
def test_a_value_written_as_a_text_is_the_value(value):
    column, kind = {
        int: ("age", "int4"),
        Decimal: ("cost", "numeric"),
        datetime.date: ("visited", "date"),
        bool: ("insured", "bool"),
    }[type(value)]
    given_so = question(f"SELECT COUNT(*) AS n FROM visits WHERE {column} = $1", value)
    for written in (f"'{value}'::{kind}", f"('{value}'::{kind})", f"CAST('{value}' AS {kind})", f"'{value}'"):
        cast = question(f"SELECT COUNT(*) AS n FROM visits WHERE {column} = {written}")
        if kind != "numeric" or "::" in written or "CAST" in written:  # a column of floats makes a float of a text
            assert parse(cast).where == parse(given_so).where


WORDS = (
    "CAST ( ) AS :: date int4 double precision '3' E'a' 3 age visited . , = $1 BETWEEN AND IN public DATE TIMESTAMP "
    "WITH TIME ZONE '2025-01-31'"
)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25))
@example(["'2025-01-31'", "::", "TIMESTAMP", "'2025-01-31'"])
def test_whatever_is_written_no_two_edits_meet(words):
    found = tokenize_statements(" ".join(words))
    with contextlib.suppress(WireError):
        made = [*parameters.substitute_values(found, [1]), *adapt_to_parser(found, POLICY)]
        made.sort(key=lambda edit: edit.start)
        assert all(before.end <= after.start for before, after in pairwise(made))


def test_a_parameter_takes_its_type_from_the_cast_around_it():
    text = "SELECT COUNT(*) FROM visits WHERE age > CAST($1 AS INTEGER) AND cost < CAST($2 AS double precision)"
    assert parameters.infer_types(tokenize_statements(text), [], POLICY) == (INT4, FLOAT8)
    assert "CAST" not in question(text, 30, 0.5)


@pytest.mark.parametrize("text", ["2025-01-31", "2025-01-31 +00", "2025-01-31 00:00:00-05", "2025-01-31T00:00:00.000Z"])
def test_midnight_of_a_day_is_the_day(text):
    assert decode(text.encode(), DATE, binary=False) == decode(text.encode(), TIMESTAMP, binary=False) == DAY


@pytest.mark.parametrize("text", ["2025-01-31 12:00:00", "2025-01-31 00:00:01+00"])
def test_another_moment_of_a_day_is_not(text):
    with pytest.raises(WireError, match="time of day"):
        decode(text.encode(), DATE, binary=False)


@pytest.mark.slow
def test_no_question_takes_long_to_edit():
    # would take minutes where the work grew with the square of the length
    for piece in ("CAST(", "('a'", "'a'::text ", "a.", ")::date", "(('a'))", "AND 'a' "):
        with contextlib.suppress(WireError):
            adapt_to_parser(tokenize_statements("SELECT (" + piece * 1_600), POLICY)


class CountedTokens(list):
    """Tokens that count how many of them are looked at."""

    looks = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        CountedTokens.looks += len(found) if isinstance(index, slice) else 1
        return found


SHAPES = {
    "casts": lambda n: " + ".join(["x::int::text::int"] * n),
    "nested": lambda n: "CAST(" * n + "x" + " AS int)" * n,
    "brackets": lambda n: "(" * n + "x" + ")::int" * n,
    "open modifiers": lambda n: " + ".join(["x::numeric("] * n),
    "arrays": lambda n: " + ".join(["(((ARRAY[1])))::int[]"] * n),
    "constants": lambda n: " + ".join(["'1'::int"] * n),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_text_is_twice_the_work(shape):
    looks = []
    for size in (200, 400):
        CountedTokens.looks = 0
        found = CountedTokens(tokenize_statements(f"SELECT {SHAPES[shape](size)} FROM visits"))
        list(CastRewriter(found, POLICY).edits())
        looks.append(CountedTokens.looks)
    assert looks[1] < 2.2 * looks[0]


def test_casts_in_a_row_are_read_once():
    looks = []
    for casts in (1, 20):
        CountedTokens.looks = 0
        found = CountedTokens(tokenize_statements("SELECT " + " ".join(["x" + "::int" * casts] * 100)))
        list(CastRewriter(found, POLICY).edits())
        looks.append(CountedTokens.looks / len(found))
    assert looks[1] < 2 * looks[0]  # for each token


@pytest.mark.parametrize("text", ["x" + "::int" * 21, "1" + "::int" * 21, "x" + "::int" * 3000])
def test_casts_in_a_row_are_limited(text):
    with pytest.raises(WireError, match="more than 20 casts in a row"):
        question(f"SELECT {text} FROM visits")
    assert question(f"SELECT age{'::int' * 20} FROM visits")
