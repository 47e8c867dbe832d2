"""Parameters become literals, whatever they hold."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.query import parameters
from tacit.query.lexer import QUESTION, scan
from tacit.query.parameters import bind_parameters, write_literal
from tacit.query.refusals import MAX_CHARACTERS

SQL = "SELECT COUNT(*) FROM visits WHERE a = $1"
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(-1e30, 1e30).filter(lambda value: value == 0 or abs(value) > 1e-30),
    st.decimals(-(10**9), 10**9, places=3),
    st.dates(),
    st.datetimes(),
    st.text().filter(lambda text: "\0" not in text),
    st.sampled_from(["' OR 1=1 --", "$1", "/*", "*/", "--", '"', "`", "\\'", "''", "'; DROP TABLE visits; --"]),
)


def tokens(text):
    return [(token.kind, token.text) for token in scan(text, QUESTION)]


@pytest.mark.slow
@given(VALUES, VALUES)
def test_a_value_is_one_literal_and_the_tokens_around_it_stay(first, second):
    text = "SELECT COUNT(*) AS n /* $3 */ FROM visits WHERE a = $1 AND 'it''s $2' <> b AND c = $2 -- $4"
    bound = tokens(bind_parameters(text, [first, second]))
    expected = (
        tokens("SELECT COUNT(*) AS n FROM visits WHERE a = ")
        + tokens(write_literal(first))
        + tokens(" AND 'it''s $2' <> b AND c = ")
        + tokens(write_literal(second))
    )
    assert bound == expected


@pytest.mark.slow
@given(st.text().filter(lambda text: "\0" not in text))
def test_a_text_is_the_text_that_the_parser_reads(text):
    ((kind, read),) = tokens(write_literal(text))
    assert (kind, read) == ("text", text)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (65, "65"),
        (-1, "(-1)"),
        (True, "TRUE"),
        (None, "NULL"),
        (0.5, "0.5"),
        (Decimal("0.10"), "0.10"),
        (datetime.date(2025, 3, 1), "DATE '2025-03-01'"),
        (datetime.datetime(2025, 3, 1, 10), "TIMESTAMP '2025-03-01 10:00:00'"),
        (["A", "it's"], "ARRAY['A', 'it''s']"),
        ((1, 2), "ARRAY[1, 2]"),
        (numpy.int64(7), "7"),
        (numpy.datetime64("2025-03-01"), "DATE '2025-03-01'"),
    ],
)
def test_values_are_written_by_their_types(value, literal):
    assert bind_parameters(SQL, [value]) == SQL.replace("$1", f" {literal} ")


@pytest.mark.parametrize(
    ("sql", "values", "what"),
    [
        (SQL, [], "there is no value for $1: 0 were given"),
        (SQL, [1, 2], "value 2 has no place in the question"),
        (SQL.replace("$1", "$0"), [1], "there is no value for $0"),
        (SQL.replace("$1", "'$1'"), [1], "value 1 has no place in the question"),
        (SQL, [float("nan")], "is not finite"),
        (SQL, [10**40], "too many digits"),
        (SQL, ["\0"], "NUL"),
        (SQL, [{}], "got dict"),
        (SQL, [[["A"]]], "got list"),
        (SQL, [datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)], "has a zone"),
        (SQL, "65", "is a list of values, got str"),
        (SQL, ["x" * 60_000], "too long together"),
        (SQL, [1] * 1_001, "1,000 is the most"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_fix(sql, values, what):
    with pytest.raises(ParameterError) as error:
        bind_parameters(sql, values)
    assert what in str(error.value) and error.value.fix


@pytest.mark.parametrize("sql", ["SELECT 'abc $1", 'SELECT "$1', "SELECT $1 /* open"])
def test_a_text_that_cannot_be_read_is_refused_for_its_fault(sql):
    with pytest.raises(Refused, match="is not closed"):
        bind_parameters(sql, [1])


class Injected(float):
    """A number that shows itself as SQL."""

    def __repr__(self) -> str:
        return "0 OR b > 3"

    __str__ = __format__ = lambda self, *_: "0 OR b > 3"


class InjectedInteger(int):
    __repr__ = __str__ = Injected.__repr__
    __format__ = lambda self, *_: "0 OR b > 3"  # noqa: E731
    __index__ = lambda self: 3  # noqa: E731


class InjectedText(str):
    __slots__ = ()

    def replace(self, *_) -> str:
        return self

    def __str__(self) -> str:
        return "' OR b > 3 --"


class InjectedDate(datetime.date):
    def isoformat(self) -> str:
        return "2024-01-01' OR b > 3 --"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Injected(4.5), "4.5"),
        (Injected(-0.0), "(-0.0)"),
        (InjectedInteger(-7), "(-7)"),
        (InjectedText("it's"), "'it''s'"),
        (InjectedDate(2024, 2, 1), "DATE '2024-02-01'"),
        (numpy.float64(4.5), "4.5"),
        (numpy.str_("it's"), "'it''s'"),
        (numpy.array([1, 2]), "ARRAY[1, 2]"),
        ([numpy.float64(0.5), Injected(1.5)], "ARRAY[0.5, 1.5]"),
    ],
)
def test_a_subclass_is_written_as_the_value_that_it_is(value, written):
    assert bind_parameters(SQL, [value]) == SQL.replace("$1", f" {written} ")


@pytest.mark.parametrize("value", [numpy.datetime64(5, "ns"), numpy.array([[1]]), numpy.array(["NaT"], "M8[ns]")])
def test_what_numpy_has_and_questions_do_not_is_an_error(value):
    with pytest.raises(ParameterError, match="is no value that can be written"):
        bind_parameters(SQL, [value])


def test_a_value_in_many_places_is_refused_before_anything_is_joined(monkeypatch):
    """16,000 places of a literal of 49,000 characters would be a text of 784 million."""
    monkeypatch.setattr(parameters, "_join", None)
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="with its values; 50,000 is the most") as error:
            bind_parameters("SELECT " + "$1," * 16_000, [["y" * 995] * 49])
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert error.value.code is ErrorCode.TOO_LARGE and error.value.fix


def test_a_text_beyond_the_bound_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(parameters, "scan", None)
    with pytest.raises(Refused) as error:
        bind_parameters("SELECT " + "$1," * 150_000, [1])
    assert error.value.code is ErrorCode.TOO_LARGE


def test_a_question_with_its_values_may_be_as_long_as_one_without():
    # 'SELECT ' and a value of a characters, with its quotes and a space on either side: 7 + a + 4
    a = MAX_CHARACTERS - 11
    assert len(bind_parameters("SELECT $1", ["x" * a])) == MAX_CHARACTERS
    with pytest.raises(Refused, match="the question has 50,001 characters"):
        bind_parameters("SELECT $1", ["x" * (a + 1)])
