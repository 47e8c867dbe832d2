"""What is read means what DuckDB means by it. Its own parser, and its own answers, are the witness."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from functools import cache

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.errors import Refused
from tacit.query.dialects import QuestionDialect
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, Literal, Query, Scalar

pytestmark = pytest.mark.slow

EXAMPLES = 5000 if FULL else 120


def bracketed(node: Scalar) -> str:
    """A scalar as SQL with every bracket, so that no rule about precedence is needed to read it."""
    match node:
        case Literal(None):
            return "NULL"
        case Literal(bool() as value):
            return str(value).upper()
        case Literal(int() as value):
            return f"({value})"
        case Literal(Fraction() as value):
            return f"({value.numerator / value.denominator})"
        case Literal(datetime.date() as value):
            return f"DATE '{value}'"
        case Literal(value):
            return "'" + str(value).replace("'", "''") + "'"
        case Case(branches, otherwise):
            parts = " ".join(f"WHEN {bracketed(when)} THEN {bracketed(then)}" for when, then in branches)
            return f"(CASE {parts} ELSE {bracketed(otherwise)} END)"
        case Call(function, arguments):
            return written(str(function), [bracketed(argument) for argument in arguments])
    raise AssertionError(node)


def written(function: str, arguments: list[str]) -> str:
    match function:
        case "not" | "negate":
            return f"({'NOT' if function == 'not' else '-'} {arguments[0]})"
        case "is null":
            return f"({arguments[0]} IS NULL)"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        case "days":
            return f"({arguments[0]} - {arguments[1]})"
        case "date_trunc":
            return f"CAST(date_trunc({arguments[0]}, {arguments[1]}) AS DATE)"
        case "cast":
            return f"CAST({arguments[0]} AS {arguments[1][1:-1]})"
    infix = {Function.MOD: "%", Function.POWER: "**", Function.CONCAT: "||"}.get(Function(function), function)
    if not infix.isidentifier() or infix in {"and", "or", "like"}:
        return "(" + f" {infix} ".join(arguments) + ")"
    return f"{function}({', '.join(arguments)})"


def read(expression: str) -> Scalar | None:
    """An expression, or None where it is refused."""
    try:
        return parse(f"SELECT {expression} AS x FROM t", dialect=QuestionDialect.DUCKDB).outputs[0].scalar
    except Refused:
        return None


@cache
def witness() -> duckdb.DuckDBPyConnection:
    """One connection for all."""
    return duckdb.connect()


def value(expression: str) -> object:
    """What DuckDB computes."""
    (row,) = witness().execute(f"SELECT {expression}").fetchall()
    return row[0]


OPERATORS = ["+", "-", "*", "/", "%", "^", "**", "||", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "AND", "OR"]
AFTER = [
    *("IS NULL", "IS NOT NULL", "ISNULL", "NOTNULL", "IS TRUE", "IS NOT FALSE", "IN (1, 2)", "NOT IN (3)", "IN (TRUE)"),
    *("LIKE 'a%'", "NOT LIKE '%1'", "BETWEEN 1 AND 3", "NOT BETWEEN 2 AND 4"),
]
OPERANDS = [
    *("1", "2", "3", "0.5", "TRUE", "FALSE", "NULL", "'a'", "'1'", "- 2", "- - 1", "+ 3", "NOT TRUE", "NOT NOT FALSE"),
    *("(1)", "(2 + 3)", "CASE WHEN TRUE THEN 1 END", "CASE 1 WHEN 2 THEN 3 ELSE 4 END", "NULLIF(1, 2)"),
    *("IF(TRUE, 1, 2)", "COALESCE(NULL, 2)"),
]


def chain(random: random.Random) -> str:
    """Operands and operators in a row, without a bracket to say what belongs together."""
    found = random.choice(OPERANDS)
    for _ in range(random.randint(1, 6)):
        if random.random() < 0.4:
            found += f" {random.choice(AFTER)}"
        else:
            found += f" {random.choice(OPERATORS)} {random.choice(OPERANDS)}"
    return found


def test_operators_bind_as_they_do_in_duckdb() -> None:
    source = random.Random(20250101)
    compared = 0
    for _ in range(40_000 if FULL else 1_000):
        text = chain(source)
        node = read(text)
        if node is None:
            continue
        try:
            theirs = value(text)
            ours = value(bracketed(node))
        except duckdb.ParserException as error:
            pytest.fail(f"read here but not there: {text}: {error}")
        except duckdb.Error:
            continue  # types that do not go together, in one of the two spellings
        assert ours == theirs or str(ours) == str(theirs), text  # -0.0 is 0.0, and NaN is NaN
        compared += 1
    # one in four of the chains is of types that DuckDB can compute with
    assert compared > (500 if FULL else 170)


@pytest.mark.parametrize(
    "expression",
    """
    -2 ^ 2
    2 ^ 3 ^ 2
    2 - 3 - 4
    2 * 3 % 4
    -5 % 3
    MOD(-5, 3)
    POWER(2, 10)
    NOT 1 = 2
    TRUE OR FALSE AND FALSE
    1 + 2 || '3'
    'a' || 'b' = 'ab'
    'a' || NULL
    CONCAT('a', NULL, 'b')
    CONCAT(NULL)
    NULLIF(1, 1)
    NULLIF(1, NULL)
    NULLIF(NULL, 1)
    IF(NULL, 1, 2)
    IFNULL(NULL, 3)
    NULL IS TRUE
    NULL IS NOT TRUE
    NULL IS FALSE
    NULL IS NOT FALSE
    FALSE IS FALSE
    (1 = NULL) IS UNKNOWN
    'abc' LIKE 'a_c'
    'abc' NOT LIKE '%b%'
    'ABC' ILIKE 'aB%'
    'ABC' NOT ILIKE 'aB%'
    NULL LIKE 'a'
    STARTS_WITH('abc', 'ab')
    PREFIX('abc', 'b')
    ENDS_WITH('abc', 'bc')
    SUFFIX('abc', 'b')
    CONTAINS('abc', 'b')
    CONTAINS('abc', '')
    STARTS_WITH(NULL, 'a')
    SUBSTRING('abcdef', 2)
    SUBSTRING('abcdef', 2, 3)
    SUBSTR('abcdef', 2, 3)
    SUBSTRING('abcdef' FROM 2 FOR 3)
    SUBSTRING('abcdef' FROM 2)
    SUBSTRING('abcdef' FOR 3)
    TRIM('  a b  ')
    LENGTH('naïve')
    LEN('abc')
    CHAR_LENGTH('abc')
    LCASE('ABC')
    UCASE('abc')
    CEILING(1.5)
    SIGN(-3)
    LEAST(3, NULL, 2)
    GREATEST(3, NULL, 2)
    1 BETWEEN 0 AND 2 AND FALSE
    3 NOT BETWEEN 1 AND 2
    2 IN (1, 2, NULL)
    -1 IN (-1, +2)
    CASE 1 WHEN 1 THEN 'a' WHEN 1 THEN 'b' END
    CASE WHEN NULL THEN 1 END
    YEAR(DATE '2025-03-30')
    QUARTER(DATE '2025-03-30')
    MONTH(DATE '2025-03-30')
    DAY(DATE '2025-03-30')
    DAYOFMONTH(DATE '2025-03-30')
    ISODOW(DATE '2025-03-30')
    EXTRACT(month FROM DATE '2025-03-30')
    EXTRACT('quarter' FROM DATE '2025-03-30')
    EXTRACT(ISODOW FROM DATE '2025-03-30')
    DATE_PART('day', DATE '2025-03-30')
    CAST(DATE_TRUNC('month', DATE '2025-03-30') AS DATE)
    DATE_DIFF('day', DATE '2025-03-30', DATE '2025-04-02')
    DATEDIFF('day', DATE '2025-03-30', DATE '2025-03-01')
    CAST('2025-03-30' AS DATE)
    DATE_TRUNC('week', DATE '2025-03-30')::DATE
    EXTRACT(month FROM DATE '2025-03-30')::INT
    CAST(YEAR(DATE '2025-03-30') AS BIGINT)
    CAST(7 AS DOUBLE) / 2
    CAST(3.5 AS DOUBLE PRECISION) / 2
    7::FLOAT / 2
    TRUE::INT + 1
    CAST(NULL AS INTEGER)
    TRY_CAST(7 AS BIGINT)
    'a'::VARCHAR(10) || 'b'
    COALESCE(NULL, FALSE)::BOOLEAN
    '2025-03-30'::DATE
    1_000 + .5 + 5. + 1e3
    'it''s'
    """.strip().splitlines(),
)
def test_an_expression_has_the_value_that_duckdb_gives_it(expression: str) -> None:
    text = expression.strip()
    node = read(text)
    assert node is not None
    assert str(value(bracketed(node))) == str(value(text))


VOCABULARY = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET COUNT ( ) ( ) * SUM AVG age cost ward smoker visits , , . + - / =
<> < > <= AND OR NOT IN BETWEEN CASE WHEN THEN ELSE END NULL IS TRUE 1 2.5 'A' "ward" AS n ; -- /* */ ? $1 :x [ ] { } '
" DISTINCT ALL UNION JOIN LEFT ON USING WITH OVER FILTER LEAST COALESCE ROUND DATE '2025-01-01' :: INTEGER LIKE EXISTS
MIN MEDIAN QUANTILE MODE WITHIN ASC DESC NULLS FIRST LAST EXTRACT SUBSTRING FOR ROLLUP % ^ || IF NULLIF
"""
WORDS = VOCABULARY.split()
# Some questions, one to a paragraph, to be cut and mixed at their words: most mixtures are nearly SQL.
QUESTIONS = """
SELECT ward , COUNT ( * ) AS n FROM visits WHERE age > 3 AND NOT smoker GROUP BY ward HAVING COUNT ( * ) > 3
ORDER BY n DESC LIMIT 3

WITH a AS ( SELECT age , cost FROM visits ) , b AS ( SELECT age FROM a UNION ALL SELECT age FROM a )
SELECT AVG ( age ) FROM b AS c

SELECT SUM ( CASE WHEN age IN ( 1 , 2 ) THEN cost ELSE 0 END ) FILTER ( WHERE smoker )
FROM visits AS v LEFT JOIN beds USING ( ward )

SELECT QUANTILE ( age , 0.5 ) , MODE ( ) WITHIN GROUP ( ORDER BY ward )
FROM ( SELECT * FROM visits ) t JOIN beds ON t . ward = beds . ward

SELECT COUNT ( DISTINCT ward ) FROM visits
WHERE EXTRACT ( month FROM visited ) = 1 OR ward LIKE 'A%' AND age BETWEEN 1 AND 2 IS TRUE
""".strip().split("\n\n")


def outcome(text: str) -> Query | Refused:
    """What reading the text comes to. Any other exception is a failure of the test."""
    try:
        return parse(text)
    except Refused as error:
        return error


def check(text: str) -> bool:
    """Whether a text is read. If so DuckDB reads it too; if not, the refusal has a fix."""
    found = outcome(text)
    if isinstance(found, Refused):
        assert found.fix and str(found)
        return False
    assert len(witness().extract_statements(text)) == 1
    return True


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.booleans())
def test_words_of_sql_in_any_order_are_refused_or_read_by_duckdb_too(words: list[str], begun: bool) -> None:
    check(("SELECT COUNT(*) FROM visits " if begun else "") + " ".join(words))


def test_questions_with_a_word_changed_are_refused_or_read_by_duckdb_too() -> None:
    source = random.Random(20250102)
    read = 0
    for _ in range(40_000 if FULL else 1_500):
        words = source.choice(QUESTIONS).split()
        for _ in range(source.randint(1, 2)):
            place = source.randrange(len(words))
            other = source.choice(WORDS)
            words[place : place + source.randint(0, 1)] = [other] if source.random() < 0.7 else []
        read += check(" ".join(words))
    # of 1,500 questions with a word or two put in, taken out or replaced, more than one in ten is still one
    assert read > (400 if FULL else 150)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for sql in (text, f"SELECT COUNT(*) FROM visits WHERE {text}", f"SELECT COUNT(*) AS {text} FROM visits"):
        found = outcome(sql)
        assert isinstance(found, Query) or (found.fix and str(found))


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(TEXTS)
def test_a_quoted_text_means_itself(text: str) -> None:
    query = parse("SELECT COUNT(*) FROM visits WHERE diagnosis = '" + text.replace("'", "''") + "' AND age > 3")
    condition = query.where.arguments[0]
    assert condition.arguments[1].value == text
    assert len(query.where.arguments) == 2


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(TEXTS.filter(lambda text: text not in {"", "*"}))
def test_a_quoted_name_means_itself(text: str) -> None:
    name = '"' + text.replace('"', '""') + '"'
    query = parse(f"SELECT COUNT(*) AS {name} FROM {name} AS {name} WHERE {name}.{name} > 3")
    assert query.outputs[0].name == query.source.table == query.source.alias == text
    column = query.where.arguments[0]
    assert (column.table, column.name) == (text, text)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.integers(-(10**37), 10**37))
def test_a_whole_number_means_itself(number: int) -> None:
    assert parse(f"SELECT {number} AS x FROM t").outputs[0].scalar == Literal(number)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290).filter(lambda x: x != 0))
def test_a_float_means_the_fraction_that_its_digits_say(number: float) -> None:
    # shortest digits, as Python writes them, are at most 17 and an exponent
    if abs(number) < 1e-290:
        return
    text = repr(number)
    found = parse(f"SELECT {text} AS x FROM t").outputs[0].scalar
    assert found == Literal(Fraction(text))
    assert float(Fraction(text)) == number


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.dates())
def test_a_date_means_itself(day: datetime.date) -> None:
    assert parse(f"SELECT DATE '{day}' AS x FROM t").outputs[0].scalar == Literal(day)


SPACES = st.sampled_from([" ", "\n", "\t", "\r\n", "  ", " -- note ' ( \n", '/* ) " */', " /* FROM */ "])


@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
@given(st.sampled_from(QUESTIONS), st.lists(SPACES, min_size=80, max_size=80), st.randoms(use_true_random=False))
def test_spaces_comments_and_capitals_change_nothing(question: str, spaces: list[str], source: random.Random) -> None:
    words = [word if "'" in word else source.choice([word, word.lower(), word.upper()]) for word in question.split()]
    loose = "".join(space + word for space, word in zip(spaces, words, strict=False))
    assert repr(parse(loose)).lower() == repr(parse(question)).lower()
