"""The catalog: what clients ask of it, and what nobody gets out of it."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.catalog_process import Limits
from tacit.serve.pgwire.catalog_queries import rewrite_query
from tacit.serve.pgwire.sqlstate import WireError

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.sql"))


def asked(path: Path) -> list[str]:
    """What a client asked; statements are apart by two semicolons."""
    text = path.read_text().split("\n", 1)[1]
    return [part.strip() for part in text.split("\n;;\n") if part.strip()]


@pytest.fixture(scope="module")
def catalog(served):
    """A catalog of its own, in the server's loop, with little patience."""

    async def made():
        return Catalog(served.curator.policy, Limits(cpu=0.3), share=1.0, burst=60.0)

    catalog = served.run(made())
    yield catalog
    served.run(catalog.close())


@pytest.fixture
def look(served, catalog):
    async def answered(text):
        names = await catalog.names()
        return list((await catalog.run(catalog.prepare(text, names), names))[1])

    return lambda text: served.run(answered(text))


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_clients_ask_is_answered_and_free_to_describe(path, raw, served):
    before = served.entries()
    with raw() as client:
        client.login()
        for text in asked(path):
            if text.rstrip(";").count(";"):
                found = client.query(text)
            else:
                client.send(b"P", b"\0" + text.encode() + b"\0\0\0")
                client.send(b"D", b"S\0")
                client.send(b"S")
                found = client.until(b"Z")
            assert not [body for kind, body in found if kind == b"E"], text
    assert served.entries() == before


@pytest.mark.slow
def test_the_tables_of_the_policy_are_there_and_have_no_rows(look):
    assert look("SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r' ORDER BY 1") == [("visits",), ("wards",)]
    assert look(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'wards' ORDER BY 1 DESC"
    ) == [
        ("ward", "text"),
        ("beds", "bigint"),
    ]
    with pytest.raises(WireError):
        look("SELECT * FROM pg_class, visits")


def test_a_column_says_what_is_public_about_it(look):
    oid = look("SELECT 'visits'::regclass")[0][0]
    found = look(f"SELECT col_description({oid}, 1), col_description({oid}, 2), col_description({oid}, 3)")
    assert found == [("from 0 to 110", "keys A, B, it's", "from 2025-01-01 to 2025-12-31")]


def test_everybody_may_select_and_nobody_may_write(look):
    kinds = "has_table_privilege('visits', {0}), has_any_column_privilege('ada', 'visits', {0})"
    assert look("SELECT " + kinds.format("'SELECT'")) == [(True, True)]
    assert look("SELECT " + kinds.format("'INSERT, UPDATE'")) == [(False, False)]
    assert look("SELECT has_schema_privilege('public', 'USAGE'), has_schema_privilege('public', 'CREATE')") == [
        (True, False)
    ]
    assert look("SELECT grantee, table_name, privilege_type FROM information_schema.table_privileges") == [
        ("PUBLIC", "visits", "SELECT"),
        ("PUBLIC", "wards", "SELECT"),
    ]


def test_format_fills_in_texts_and_names(look):
    assert look("""SELECT format('%s', 'a%s'), format('%I.%I', 'public', 'A"b'), format('(%s)%s', 1, '\\1')""") == [
        ("a%s", 'public."A""b"', "(1)\\1")
    ]
    assert look("SELECT format('none', 1), format('%s-%s', NULL, 2), format('%s', 1, 2)") == [("none", "-2", "1")]


def test_a_name_that_is_put_together_gives_a_table(look):
    oid = look("SELECT 'visits'::regclass")[0][0]
    assert look("SELECT CAST(CAST(format('%I.%I', 'public', 'visits') AS REGCLASS) AS OID)") == [(oid,)]
    assert look(f"SELECT CAST(CAST({oid} + 0 AS regclass) AS oid)") == [(oid,)]
    assert look("SELECT count(*) FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typelem = 25") == [
        (1,)
    ]


def test_an_argument_is_not_taken_for_a_name_inside_of_a_macro(look):
    # every type has its own name, whatever the table is called where it is asked for
    for alias in ("t", "d", "types", "c"):
        assert look(f"SELECT count(DISTINCT format_type({alias}.oid, -1)) = count(*) FROM pg_type {alias}") == [(True,)]
    assert look("SELECT count(DISTINCT format_type(oid, -1)) = count(*) FROM pg_type") == [(True,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM pg_class, '/etc/passwd'",
        'SELECT * FROM "/etc/passwd"',
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM system.information_schema.tables",
        "SELECT * FROM memory.shadow.pg_class",
        "SELECT * FROM shadow.types",
        'SELECT * FROM "Main".x',
        'SELECT * FROM "SYSTEM".information_schema.tables',
        'SELECT * FROM "Duckdb_Settings"()',
        "SELECT \"GetEnv\"('HOME')",
        "SELECT ('HOME').getenv()",
        "SELECT ('a').repeat(1000000000)",
        "SELECT lambda_of(x) FROM pg_class",
        "SELECT pg_catalog.",
        "SELECT information_schema.getenv('HOME')",
        "SELECT COLUMNS('oid') FROM pg_class",
        "SELECT [getenv(x) FOR x IN ['HOME']]",
        "SELECT * FROM pragma_version()",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('pg_class')",
        "SELECT current_setting('home_directory')",
        "WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a",
        "SELECT repeat('a', 1000000000)",
        "SELECT pg_sleep(100)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT U&'\\0041'",
        "SELECT $$a$$",
        "SELECT * FROM pg_nothing",
        "SELECT 'nothing'::regclass",
        "SELECT * FROM tacit.nothing",
        "CREATE TABLE a (b INT)",
        "INSERT INTO pg_class SELECT * FROM pg_class",
        "DELETE FROM pg_class",
        "ATTACH 'a.duckdb'",
        "COPY pg_class TO 'a.csv'",
        "SET memory_limit = '1TB'",
        "LOAD httpfs",
    ],
)
def test_there_is_no_way_out_of_the_shadow(look, text):
    with pytest.raises(WireError) as error:
        look(text)
    assert "passwd" not in error.value.message
    assert look("SELECT count(*) FROM pg_class WHERE relkind = 'r'") == [(2,)]


WORDS = (
    "SELECT FROM JOIN pg_catalog information_schema public tacit budget explain current_setting current_user version "
    "pg_class pg_type format_type regclass COLLATE OPERATOR AS CAST :: . ( ) , ~ = [ ] * 'visits' '{1,2}' 'x' E'a' 1 "
    'NULL "Main" read_csv ANY ARRAY WITH c oid'
)


@settings(max_examples=4_000 if FULL else 150)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25))
def test_any_words_are_put_into_others_or_refused(served, catalog, words):
    names = served.run(catalog.names())
    with contextlib.suppress(WireError):
        rewrite_query(" ".join(words), names)


@pytest.mark.slow
def test_a_look_that_never_ends_is_ended(look):
    with pytest.raises(WireError) as error:
        look("SELECT count(*) FROM generate_series(1, 10000000000000) AS g(i) WHERE i % 7 = 3")
    assert error.value.sqlstate == "57014"
    names = ", ".join(f"pg_type t{i}" for i in range(9))  # sixty types to the power of nine
    with pytest.raises(WireError):
        look(f"SELECT count(*), t1.oid + t2.oid FROM {names} GROUP BY 2")


def test_a_look_has_a_limit_on_rows_and_on_memory(look):
    with pytest.raises(WireError, match="rows at most"):
        look("SELECT i FROM generate_series(1, 20000) AS g(i)")
    with pytest.raises(WireError):
        look("SELECT array_agg(i) FROM generate_series(1, 100000000) AS g(i)")


def test_a_client_is_told_its_own_name_and_database(raw):
    with raw() as client:
        client.login()
        found = dict(client.query("SELECT current_user, current_database(), current_setting('tacit.confidence')"))
        assert found[b"D"] == struct.pack(">HI3sI6sI4s", 3, 3, b"ada", 6, b"clinic", 4, b"0.95")
        assert b"current_user\0" in found[b"T"] and b"current_database\0" in found[b"T"]
