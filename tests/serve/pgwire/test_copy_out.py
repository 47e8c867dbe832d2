"""COPY (question) TO STDOUT: what it sends is what PostgreSQL would, byte for byte, and it is one question."""

from __future__ import annotations

import datetime
import itertools
import math
import random
import struct
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg import sql as quoting
from tests.support.plain_postgres import run_plain_postgres

from tacit.serve.pgwire.copy_out import CopyFormat, encode_copy, parse_copy
from tacit.serve.pgwire.results import make_column
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.tokens import tokenize_statements
from tacit.serve.pgwire.types import BOOL, DATE, FLOAT8, INT8, TEXT, encode

pytestmark = pytest.mark.slow
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward ORDER BY ward"
TEXTS = [
    "",
    "a",
    "a,b",
    'say "hi"',
    "line\nbreak",
    "tab\there",
    "back\\slash",
    "\\.",
    "\\N",
    "cr\rlf",
    "ü€",
    "x|y",
    "'",
]
COLUMNS = {TEXT: "text", INT8: "bigint", FLOAT8: "double precision", BOOL: "boolean", DATE: "date"}
OPTIONS = [
    "",
    "(FORMAT text)",
    "(FORMAT csv)",
    "(FORMAT csv, HEADER)",
    "(FORMAT csv, HEADER true, DELIMITER ';', NULL 'none')",
    "(FORMAT csv, QUOTE '''', ESCAPE '\\')",
    "(FORMAT text, DELIMITER '|', NULL '', HEADER)",
    "(FORMAT binary)",
    "CSV HEADER",
    "WITH CSV DELIMITER AS '|' NULL AS 'x'",
    "WITH BINARY",
    "(FORMAT csv, HEADER false, ENCODING 'UTF8')",
]


@pytest.fixture(scope="module")
def plain():
    with (
        tempfile.TemporaryDirectory() as folder,
        run_plain_postgres(Path(folder)) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        yield connection


def rows_of_all_types() -> list[tuple[object, ...]]:
    draw = random.Random(5)
    numbers = [0, -1, 2**63 - 1, -(2**63), 7]
    floats = [0.25, -0.5, 1e300, 5e-324, 0.1]
    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2025, 2, 28)]
    made = list(itertools.zip_longest(TEXTS, numbers, floats, [True, False], days))
    made += [
        (draw.choice(TEXTS), draw.choice(numbers), draw.choice(floats), draw.random() < 0.5, draw.choice(days))
        for _ in range(20)
    ]
    return made


@pytest.mark.parametrize("options", OPTIONS)
def test_it_is_what_postgresql_sends(plain, options):
    rows = rows_of_all_types()
    cells = [
        "("
        + ", ".join(f"({quoting.Literal(v).as_string(plain)})::{t}" for v, t in zip(row, COLUMNS.values(), strict=True))
        + ")"
        for row in rows
    ]
    names = ["a", "b c", 'd"e', "f,g", "h"]
    named = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    values = f"SELECT * FROM (VALUES {', '.join(cells)}) AS t({named})"
    with plain.cursor().copy(f"COPY ({values}) TO STDOUT {options}") as copy:
        expected = b"".join(bytes(block) for block in copy)
    _, how = parse_copy(tokenize_statements(f"COPY (SELECT 1) TO STDOUT {options}"))
    fields = [make_column(name, oid) for name, oid in zip(names, COLUMNS, strict=True)]
    first, *data, last = encode_copy(how, fields, rows)
    assert b"".join(message[5:] for message in data) == expected
    assert (first[:1], last[:1]) == (b"H", b"c")
    assert {message[:1] for message in data} == {b"d"}


@pytest.mark.parametrize("how", ["text", "csv"])
def test_a_value_alone_in_its_line_ends_nothing(plain, how):
    texts = ", ".join(f"({quoting.Literal(text).as_string(plain)})" for text in TEXTS)
    with plain.cursor().copy(f"COPY (SELECT * FROM (VALUES {texts}) AS t(x)) TO STDOUT (FORMAT {how})") as copy:
        expected = b"".join(bytes(block) for block in copy)
    _, options = parse_copy(tokenize_statements(f"COPY (SELECT 1) TO STDOUT (FORMAT {how})"))
    _, *data, _ = encode_copy(options, [make_column("x", TEXT)], [(text,) for text in TEXTS])
    assert b"".join(message[5:] for message in data) == expected


def test_floats_are_written_as_postgresql_writes_them(plain):
    """Powers of ten and their neighbors, whole numbers and random ones: more than a thousand."""
    drawn = random.Random(1)
    floats = [sign * 10.0**power * factor for power in range(-20, 25) for factor in (1, 3, 1 / 3) for sign in (1, -1)]
    floats += [math.nextafter(each, 0) for each in floats]
    floats += [float(drawn.randrange(10 ** drawn.randint(1, 18))) for _ in range(300)]
    floats += [struct.unpack(">d", drawn.randbytes(8))[0] for _ in range(300)]
    floats = [each for each in floats if math.isfinite(each)] + [0.0, -0.0, math.inf, -math.inf]
    expected = [text for (text,) in plain.execute("SELECT unnest(%b::float8[])::text", (floats,)).fetchall()]
    found = [encode(each, FLOAT8, binary=False).decode() for each in floats]
    assert list(map(float, found)) == list(map(float, expected)) == floats
    exact = [abs(each) < 2**53 for each in floats]  # beyond, PostgreSQL writes more digits than it needs
    assert list(itertools.compress(found, exact)) == list(itertools.compress(expected, exact)) and sum(exact) > 500


@pytest.mark.parametrize("how", ["text", "csv", "binary"])
def test_a_question_is_asked_once_whichever_way_it_is_sent(served, how):
    with psycopg.connect(served.dsn("ada", options="-c tacit.epsilon=0.5"), autocommit=True) as ada:
        selected = ada.execute(QUESTION).fetchall()
        before = served.spent("ada")
        types = ["text", "int8", "float8"]
        with ada.cursor().copy(f"COPY ({QUESTION}) TO STDOUT (FORMAT {how})") as copy:
            if how == "csv":
                lines = b"".join(bytes(block) for block in copy).decode().splitlines()
                assert [line.split(",")[0] for line in lines] == [row[0] for row in selected]
            else:
                copy.set_types(types)
                assert list(copy.rows()) == selected
        assert served.spent("ada") == before  # the same question, so it is free
        with ada.cursor().copy(f"COPY (SELECT COUNT(*) FROM visits WHERE age < 3{len(how)}) TO STDOUT") as copy:
            assert len(list(copy)) == 1
        assert served.spent("ada") == pytest.approx(before + 0.5)


def test_constants_are_copied_for_nothing(served):
    with psycopg.connect(served.dsn("ada"), autocommit=True) as ada:
        before = served.spent("ada")
        with ada.cursor().copy("COPY (SELECT 1 AS a) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int8"])
            assert list(copy.rows()) == [(1,)]
        assert served.spent("ada") == before


def test_parameters_of_a_copy(served):
    with psycopg.connect(served.dsn("ada", options="-c tacit.epsilon=0.5"), autocommit=True) as ada:
        asked = "COPY (SELECT COUNT(*) FROM visits WHERE age > %s) TO STDOUT"
        with ada.cursor().copy(asked, (21,)) as copy:
            assert int(b"".join(bytes(block) for block in copy)) > 100


def test_psql_copies_into_a_file(psql, tmp_path):
    target = tmp_path / "out.csv"
    done = psql("SET tacit.epsilon = 0.5", f"\\copy ({QUESTION}) TO '{target}' WITH (FORMAT csv, HEADER)")
    assert done.returncode == 0, done.stderr
    assert target.read_text().splitlines()[0] == "ward,n,age"
    assert len(target.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("COPY visits TO STDOUT", "would show rows"),
        ("COPY visits FROM STDIN", "would show rows"),
        ("COPY (SELECT 1 FROM pg_class) TO STDOUT", "no question"),
        ("COPY () TO STDOUT", "no question"),
        (f"COPY ({QUESTION}) TO '/tmp/x'", "not what COPY takes"),
        (f"COPY ({QUESTION}) TO PROGRAM 'ls'", "not what COPY takes"),
        (f"COPY ({QUESTION}) TO STDOUT (FORMAT parquet)", "no format parquet"),
        (f"COPY ({QUESTION}) TO STDOUT (FORMAT binary, HEADER)", "not what COPY takes"),
        (f"COPY ({QUESTION}) TO STDOUT (FORMAT csv, DELIMITER 'ab')", "not what COPY takes"),
        (f"COPY ({QUESTION}) TO STDOUT (FORMAT csv, FREEZE)", "not what COPY takes"),
        (f"COPY ({QUESTION} TO STDOUT", "not what COPY takes"),
        ("COPY (SELECT age FROM visits) TO STDOUT", "raw-column"),
    ],
)
def test_what_is_no_copy_of_a_question_is_refused_and_free(served, statement, what):
    with psycopg.connect(served.dsn("ada", options="-c tacit.epsilon=0.5"), autocommit=True) as ada:
        before = served.spent("ada")
        with pytest.raises(psycopg.Error, match=what):
            ada.execute(statement)
        assert served.spent("ada") == before
        assert ada.execute("SELECT COUNT(*) FROM visits WHERE age > 21").fetchone() is not None


def test_nothing_is_left_out_where_the_options_end_early():
    for text in (
        "COPY",
        "COPY (",
        "COPY (SELECT 1) TO",
        "COPY (SELECT 1) TO STDOUT (",
        "COPY (SELECT 1) TO STDOUT NULL",
    ):
        with pytest.raises(WireError):
            parse_copy(tokenize_statements(text))
    assert parse_copy(tokenize_statements("COPY (SELECT 1) TO STDOUT"))[1] == CopyFormat()
