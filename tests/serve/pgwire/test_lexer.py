"""The words of a client, and its parameters as literals."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.policy.load import load
from tacit.query.nodes import Call, Literal
from tacit.query.parameters import quote_text
from tacit.serve.pgwire import parameters
from tacit.serve.pgwire.edits import EditedText
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.statements import StatementKind, adapt_to_parser, classify_statement
from tacit.serve.pgwire.tokens import split_statements, tokenize_statements
from tacit.serve.pgwire.types import BOOL, DATE, FLOAT8, INT4, INT8, TEXT

MANY = 2_000 if FULL else 100
POLICY = load(
    {
        "privacy": {"epsilon": 1},
        "tables": {
            "visits": {
                "unit": "row",
                "columns": {
                    "age": {"type": "int", "lower": 0, "upper": 110},
                    "cost": {"type": "float", "lower": 0, "upper": 10, "step": 0.5},
                    "ward": {"type": "text", "values": ["A"]},
                    "visited": {"type": "date"},
                    "insured": {"type": "bool"},
                },
            }
        },
        "analysts": {"ada": {"epsilon": 1}},
    }
)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
VALUES = st.one_of(
    TEXTS,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e15, 1e15).filter(lambda number: number == 0 or abs(number) > 1e-200),
    st.decimals(-(10**9), 10**9, places=3),
    st.booleans(),
    st.none(),
    st.dates(),
)


def question(text: str, values: list[object]) -> str:
    found = tokenize_statements(text)
    edits = [*parameters.substitute_values(found, values), *adapt_to_parser(found, POLICY)]
    return EditedText(text, 0, len(text), edits).text


@pytest.mark.slow
@settings(max_examples=MANY)
@given(VALUES)
def test_a_parameter_is_one_literal_whatever_its_value_is(value):
    text = question("SELECT COUNT(*) AS n FROM visits WHERE ward = $1", [value])
    query = parse(text)
    assert isinstance(query.where, Call)
    literal = query.where.arguments[1]
    assert isinstance(literal, Literal)
    if isinstance(value, float | Decimal):
        assert float(literal.value) == pytest.approx(float(value), rel=1e-15, abs=0)
    else:
        assert literal.value == value and type(literal.value) is type(value)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(st.lists(VALUES, min_size=2, max_size=2))
def test_nothing_around_a_parameter_changes_with_its_value(values):
    text = question("SELECT COUNT(*) FROM visits WHERE ward=$1 OR ward=$2--$1\nOR ward = '$2'", values)
    where = parse(text).where
    assert str(where).count("Literal") == 3
    assert isinstance(where, Call) and where.arguments[2].arguments[1].value == "$2"


def test_a_negative_number_is_no_comment_and_keeps_its_sign():
    # x--5 would be a comment, and -5 ^ 2 would be -25
    assert question("SELECT SUM(age-$1) FROM visits", [-5]) == "SELECT SUM(age- (-5) ) FROM visits"


def test_a_cast_of_a_parameter_is_its_type_and_goes_away():
    text = (
        "SELECT COUNT(*) FROM visits WHERE age > $1::INTEGER AND cost < $2::double precision AND ward = $3::VARCHAR(5)"
    )
    assert parameters.infer_types(tokenize_statements(text), [], POLICY)[:2] == (INT4, FLOAT8)
    assert "::" not in question(text, [1, 0.5, "A"])


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("WHERE age > $1", (INT8,)),
        ("WHERE $1 < visits.age", (INT8,)),
        ("WHERE visits.ward = $1 AND visited >= $2", (TEXT, DATE)),
        ("WHERE visited NOT BETWEEN $1 AND $2", (DATE, DATE)),
        ("WHERE ward IN ($1, $2) AND age NOT IN ($3)", (TEXT, TEXT, INT8)),
        ("WHERE insured = $1 AND ward LIKE $2", (BOOL, TEXT)),
        ("WHERE cost * 2 + $1 > $2", (FLOAT8, FLOAT8)),
        ("WHERE LEAST(cost, $1) > 3", (FLOAT8,)),
        ("LIMIT $1 OFFSET $2", (INT8, INT8)),
        ("HAVING QUANTILE(age, $1) > 4", (FLOAT8,)),
        ("WHERE CONTAINS(ward, $1)", (TEXT,)),
    ],
)
def test_the_type_of_a_parameter_follows_from_its_place(text, types):
    assert parameters.infer_types(tokenize_statements(f"SELECT COUNT(*) FROM visits {text}"), [], POLICY) == types


def test_a_value_is_written_once_however_many_places_it_has(monkeypatch):
    written = []
    monkeypatch.setattr(parameters, "write_literal", lambda value: written.append(value) or "x" * 100)
    found = tokenize_statements("SELECT " + "$1 + " * 400 + "$2")
    # 400 places of 102 characters are 40,800, and 600 would be 61,200
    assert len(parameters.substitute_values(found, [1, 2])) == 401 and written == [1, 2]
    with pytest.raises(WireError, match="with its values; 50,000 is the most") as error:
        parameters.substitute_values(tokenize_statements("SELECT " + "$1 + " * 600 + "1"), [1])
    assert error.value.sqlstate == "54000" and error.value.hint and written == [1, 2, 1]


def test_a_type_that_the_client_gives_is_taken():
    assert parameters.infer_types(
        tokenize_statements("SELECT COUNT(*) FROM visits WHERE age > $1"), [FLOAT8], POLICY
    ) == (FLOAT8,)


def test_a_place_in_the_edited_text_is_found_in_the_clients():
    text = "SELECT COUNT(*) FROM public.visits WHERE ward = $1 AND heigth > 3"
    found = tokenize_statements(text)
    made = EditedText(
        text, 0, len(text), [*parameters.substitute_values(found, ["A longer text"]), *adapt_to_parser(found, POLICY)]
    )
    assert made.text.index("visits") == text.index("visits")  # the schema became spaces
    assert made.original_offset(made.text.index("heigth")) == text.index("heigth")


def test_a_schema_before_a_table_or_its_column_is_left_out():
    text = question('SELECT "public"."visits"."ward", COUNT(*) FROM public.visits GROUP BY public.visits.ward', [])
    assert parse(text).keys


def test_escapes_in_a_text_are_read_as_postgresql_reads_them():
    text = r"SELECT COUNT(*) FROM visits WHERE ward = E'it\'s\n\\ \x41\101\u0041'"
    assert parse(question(text, [])).where.arguments[1].value == "it's\n\\ AAA"


def test_statements_are_split_outside_of_quotes_and_comments():
    text = "SELECT ';' ; /* ; /* ; */ */ SELECT $a$;$a$; -- ;\nSELECT \";\" ;;"
    assert len(split_statements(tokenize_statements(text))) == 3


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "SELECT /* a", "SELECT /* /* */", "SELECT $a$ b $$"])
def test_what_never_ends_is_said_to(text):
    with pytest.raises(WireError, match="not closed"):
        tokenize_statements(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT COUNT(*) FROM visits", StatementKind.QUESTION),
        ("select count(*) from Public.Visits v", StatementKind.QUESTION),
        ('SELECT COUNT(*) FROM "visits"', StatementKind.QUESTION),
        ("WITH a AS (SELECT * FROM visits) SELECT COUNT(*) FROM a", StatementKind.QUESTION),
        ("SELECT COUNT(*) FROM nothing", StatementKind.QUESTION),  # which says that there is no such table
        ("SELECT 1", StatementKind.CATALOG),
        ("SELECT i FROM generate_series(1, 3) AS g(i)", StatementKind.CATALOG),
        ("SELECT relname FROM pg_class", StatementKind.CATALOG),
        ("SELECT * FROM information_schema.tables", StatementKind.CATALOG),
        ("SELECT * FROM tacit.budget", StatementKind.CATALOG),
        ("SHOW tacit.epsilon", StatementKind.SHOW),
        ("SET tacit.epsilon TO 1", StatementKind.SET),
        ("RESET ALL", StatementKind.SET),
        ("START TRANSACTION READ ONLY", StatementKind.BEGIN),
        ("END", StatementKind.COMMIT),
        ("ABORT", StatementKind.ROLLBACK),
        ("ROLLBACK TO SAVEPOINT a", StatementKind.ROLLBACK_TO),
        ("EXPLAIN (COSTS OFF) SELECT COUNT(*) FROM visits", StatementKind.EXPLAIN),
        ("DEALLOCATE ALL", StatementKind.IGNORED),
    ],
)
def test_what_a_statement_is(text, kind):
    assert classify_statement(text, tokenize_statements(text), POLICY).kind is kind


@pytest.mark.parametrize(
    "text",
    [
        "COPY visits TO STDOUT",
        "LISTEN a",
        "DROP TABLE visits",
        "DECLARE c CURSOR FOR x",
        "DECLARE c CURSOR FOR DECLARE d CURSOR FOR SELECT 1",
        "DECLARE c CURSOR FOR " * 2_300 + "SELECT 1",
        "CREATE TEMP VIEW v AS " * 2_300 + "SELECT 1",
        "CREATE TEMP VIEW v AS COPY (SELECT COUNT(*) FROM visits) TO STDOUT",
    ],
    ids=lambda text: text[:60],
)
def test_what_is_not_taken_is_named(text):
    with pytest.raises(WireError) as error:
        classify_statement(text, tokenize_statements(text), POLICY)
    assert error.value.sqlstate == "0A000" and error.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["$a$", "$1+", "($1,", "COALESCE($1,", "e'", "/*", "$a", "''", "--\n", "::text", "public.", "tacit.explain('"],
)
def test_no_text_takes_long_to_read(piece):
    # would take minutes where the work grew with the square of the length
    for text in ("SELECT " + piece * (50_000 // len(piece)), "SELECT " + piece * 900):
        with contextlib.suppress(WireError):
            found = tokenize_statements(text)
            parameters.infer_types(found, [], POLICY)
            classify_statement(text, found, POLICY)


@given(TEXTS)
def test_a_quoted_text_is_read_back(text):
    (token,) = tokenize_statements(quote_text(text))
    assert token.kind == "text" and token.text == text


@pytest.mark.slow
@settings(max_examples=MANY)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = tokenize_statements(text)
    except WireError:
        return
    for part in split_statements(found):
        try:
            classify_statement(text, part, POLICY)
        except WireError:
            continue


def test_a_date_is_a_literal_of_its_own():
    assert parameters.write_literal(datetime.date(2025, 12, 31)) == "DATE '2025-12-31'"
