"""The catalog: it says what PostgreSQL says, and nothing of a policy's table is ever answered from it."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import psycopg
import pytest
from tests.support.plain_postgres import run_plain_postgres

from tacit.errors import ParameterError
from tacit.policy.load import load
from tacit.serve.pgwire import start_listener
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.catalog_backend import CatalogStatement
from tacit.serve.pgwire.catalog_schema import database_statements, describe_column, quote_name
from tacit.serve.server import ServerConfig

pytestmark = pytest.mark.slow
RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.sql"))


def asked(path: Path) -> list[str]:
    """What a client asked; statements are apart by two semicolons."""
    text = path.read_text().split("\n", 1)[1]
    return [part.strip() for part in text.split("\n;;") if part.strip()]


@pytest.fixture(scope="module")
def plain():
    """A connection to a PostgreSQL with the same tables, which the tests have made by hand."""
    with (
        tempfile.TemporaryDirectory(prefix="plain-") as folder,
        run_plain_postgres(Path(folder)) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        yield connection


@pytest.fixture(scope="module")
def ada(served):
    with psycopg.connect(served.dsn("ada"), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def ben(served):
    with psycopg.connect(served.dsn("ben"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def free(served):
    """Nothing is charged and nothing is written to the ledger."""
    before = served.entries(), served.spent("ada"), served.spent("ben")
    yield
    assert (served.entries(), served.spent("ada"), served.spent("ben")) == before


def look(connection, text, values=None, *, binary=False):
    """The names and types of the columns, and the rows."""
    cursor = connection.execute(text, values, binary=binary)
    return [(each.name, each.type_code) for each in cursor.description], cursor.fetchall()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_clients_ask_is_answered_and_free_to_describe(path, raw, free):
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


# What needs OIDs of tables, roles or policies that two servers do not share is compared by names.
SAME = [
    "SELECT generate_series(1,3)",
    "SELECT '150000'::int/100, 7/2, 7/2.0, -7/2, 1.50 + 1, 0.1::float8 + 0.2",
    "SELECT * FROM current_schema()",
    "SELECT extract(year FROM current_date) > 2000, trim(both FROM current_user), substring(current_user FROM 2)",
    "SELECT extract(day FROM d) FROM generate_series('2025-01-01'::date, '2025-01-03', '1 day') d",
    "SELECT current_user IS DISTINCT FROM session_user, current_user IS NOT DISTINCT FROM session_user",
    "SELECT current_user, session_user, current_database(), current_catalog, current_schema, current_schemas(true)",
    "SELECT version(), current_setting('server_version'), current_setting('server_version_num')",
    "SELECT column_name, data_type, ordinal_position, is_nullable FROM information_schema.columns "
    "WHERE table_schema = 'public'",
    "SELECT attname FROM pg_attribute WHERE attrelid = 'visits'::regclass AND attnum > 0",
    "SELECT * FROM unnest(ARRAY['a','b']) WITH ORDINALITY cols(a, b)",
    "SELECT 'trigger'::regtype, 'visits'::regclass::text, 'int4'::regtype::oid, 'public'::regnamespace",
    "SELECT oid, typname, typreceive::text, typinput::text, typlen FROM pg_type WHERE typrelid = 0 AND oid < 10000 "
    "ORDER BY oid",
    "SELECT oid::int, proname, prorettype::regtype::text FROM pg_proc WHERE oid < 10000 AND provolatile <> 'v' "
    "ORDER BY oid",
    "SELECT count(*) FROM pg_stat_gssapi WHERE pid = pg_backend_pid()",
    "SELECT gss_authenticated, encrypted FROM pg_stat_gssapi WHERE pid = pg_backend_pid()",
    "SELECT * FROM pg_replication_slots",
    "SELECT set_config('application_name', 'x', true)",
    "SELECT conname, contype, conkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'wards'::regclass",
    "SELECT obj_description('visits'::regclass), col_description('visits'::regclass, 2), "
    "col_description('wards'::regclass, 2)",
    "SELECT relname, relkind, relnatts, reltuples, relpages, relhasindex FROM pg_class "
    "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
    "SELECT has_table_privilege('visits', 'SELECT'), has_table_privilege('visits', 'INSERT'), "
    "has_schema_privilege('public', 'USAGE'), has_schema_privilege('public', 'CREATE')",
    "SELECT format('%I.%s', 'A b', 1), quote_ident('x y'), to_regclass('nothing'), to_regclass('wards')::text",
    "SELECT indexrelid::regclass::text, indisunique, indkey, pg_get_indexdef(indexrelid) FROM pg_index "
    "WHERE indrelid = 'wards'::regclass",
    "SELECT DATE '2025-12-31', TIMESTAMP '2025-12-31 01:02:03.5', INTERVAL '1 day 2 hours', ARRAY[1, NULL], "
    "'{\"a\": 1}'::jsonb, 'x'::bytea, 1e300, 'nan'::float8, 12345678901234567890::numeric, '{}'::int[]",
    "VALUES (1, 'a'), (2, NULL)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n, pg_am "
    "WHERE amname = 'heap'",
    "TABLE pg_am",
    "SHOW max_identifier_length",
    "SHOW block_size",
    "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' "
    "ORDER BY 2",
    "SELECT rolname FROM pg_roles WHERE rolname = current_user",
    "SELECT row_number() OVER (ORDER BY oid) AS n, relname FROM pg_class WHERE relname LIKE 'pg\\_a%%' AND oid < 10000 "
    "ORDER BY n",
    "SELECT string_agg(word, ' ' ORDER BY word) FROM pg_get_keywords() WHERE catcode = 'R'",
]


@pytest.mark.parametrize("text", SAME)
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_plain_postgresql_says_the_same(ada, plain, free, text, binary):
    values = () if "%%" in text else None
    assert look(ada, text, values, binary=binary)[0] == look(plain, text, values, binary=binary)[0]
    found, expected = (repr(look(each, text, values, binary=binary)[1]) for each in (ada, plain))
    assert found == expected


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_clients_ask_has_the_columns_of_plain_postgresql(path, ada, plain, free):
    for text in asked(path):
        own = "tacit" in text or "FROM visits" in text or "FROM public.visits" in text
        if text.upper().startswith(("SELECT", "WITH")) and not own and not text.rstrip(";").count(";"):
            with psycopg.RawCursor(ada) as ours, psycopg.RawCursor(plain) as theirs:
                try:
                    theirs.execute(text)
                except psycopg.errors.UndefinedParameter:
                    continue  # it has parameters, which this test does not know
                ours.execute(text)
                kinds = [[(each.name, each.type_code) for each in cursor.description] for cursor in (ours, theirs)]
                assert kinds[0] == kinds[1], text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT relname FROM pg_class WHERE relname = %s", ("visits",)),
        ("SELECT %s::int + 1, %s::text, %s::date", (1, "a", "2025-01-01")),
        ("SELECT typname FROM pg_type WHERE oid = ANY(%s) ORDER BY oid", ([16, 20, 25],)),
        ("SELECT relname FROM pg_class WHERE oid = to_regclass(%s)", ("public.wards",)),
        ("SELECT %s::text IS NULL, coalesce(%s, 'x')", (None, None)),
    ],
)
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_parameters_are_postgresqls_own(ada, plain, free, text, values, binary):
    assert look(ada, text, values, binary=binary) == look(plain, text, values, binary=binary)


def test_types_of_parameters_and_columns_are_known_before_values_are(raw, plain, free):
    with raw() as client:
        client.login()
        client.send(b"P", b"\0SELECT relname, oid FROM pg_class WHERE oid = $1 AND relname = ANY($2) LIMIT $3\0\0\0")
        client.send(b"D", b"S\0")
        client.send(b"S")
        found = dict(client.until(b"Z"))
        # oid, name[], int8: what PostgreSQL's ParameterDescription says
        assert found[b"t"] == b"\0\3" + b"".join(each.to_bytes(4, "big") for each in (26, 1003, 20))
        # relname is column 2 of pg_class (1259), a name (19) of 64 bytes
        assert found[b"T"].startswith(b"\0\2relname\0" + (1259).to_bytes(4, "big") + b"\0\2" + (19).to_bytes(4, "big"))


def test_errors_are_postgresqls_own_with_their_place(ada, plain, free):
    for text in (
        "SELECT nothing FROM pg_class",
        "SELECT 1/0",
        "SELECT 'x'::regclass",
        "SELECT pg_nothing(1)",
        "SELECT",
    ):
        told = []
        for connection in (ada, plain):
            try:
                connection.execute(text)
                told.append(None)
            except psycopg.Error as error:
                diagnosis = error.diag
                told.append((error.sqlstate, diagnosis.message_primary, diagnosis.statement_position))
        assert told[0] == told[1], text
    with pytest.raises(psycopg.errors.UndefinedColumn) as error:
        ada.execute("SET tacit.intervals = off; SELECT nothing FROM pg_class")
    assert error.value.diag.statement_position == str(len("SET tacit.intervals = off; SELECT ") + 1)


def test_what_a_statement_sets_is_kept_by_its_session_alone(served, free):
    with psycopg.connect(served.dsn(), autocommit=True) as one, psycopg.connect(served.dsn(), autocommit=True) as other:
        one.execute("SELECT set_config('search_path', 'pg_catalog', false), set_config('tacit.epsilon', '0.5', false)")
        assert one.execute("SHOW search_path").fetchone() == ("pg_catalog",)
        assert one.execute("SELECT current_schema(), current_setting('tacit.epsilon')").fetchone() == (
            "pg_catalog",
            "0.5",
        )
        assert other.execute("SELECT current_schema(), current_setting('tacit.epsilon')").fetchone() == ("public", "")
        assert one.execute("SHOW tacit.epsilon").fetchone() == ("0.5",)
        with one.transaction():
            one.execute("SELECT set_config('timezone', 'Asia/Tokyo', true)")
            assert one.execute("SELECT current_setting('timezone')").fetchone() == ("Asia/Tokyo",)
        assert one.execute("SELECT current_setting('timezone')").fetchone() == ("UTC",)
        one.execute("SET timezone = 'Asia/Tokyo'")
        assert (
            str(one.execute("SELECT '2025-01-01 00:00Z'::timestamptz::text").fetchone()[0]) == "2025-01-01 09:00:00+09"
        )
        with pytest.raises(psycopg.Error, match="not a number in its range"):
            one.execute("SELECT set_config('tacit.epsilon', 'much', false)")
        for local in ("true", "false"):
            with pytest.raises(psycopg.Error, match="client_encoding is not spoken here"):
                one.execute(f"SELECT set_config('client_encoding', 'LATIN1', {local}), 'é'")
        with pytest.raises(psycopg.Error, match="client_encoding is not spoken here"):
            one.execute(
                "SELECT set_config('client_encoding', 'LATIN1', false), set_config('tacit.request', 'é', false)"
            )
        one.execute("SET timezone = 'nowhere'")  # which Tacit keeps and PostgreSQL does not take
        assert one.execute("SELECT 1").fetchone() == (1,)


def test_the_budget_and_explanations_are_views_of_the_session(ada, ben, free):
    assert ada.execute("SELECT who, cap FROM tacit.budget").fetchone() == ("ada", 900.0)
    assert ben.execute("SELECT who, cap, month FROM tacit.budget AS b WHERE b.cap < 2").fetchone() == ("ben", 1.0, None)
    ada.execute("SET tacit.epsilon = 0.5")
    text = "SELECT COUNT(*) FROM visits"
    told = ada.execute("SELECT tacit.explain('SELECT COUNT(*) FROM visits')").fetchone()[0]
    assert told.startswith("costs epsilon 0.5")
    assert ada.execute("SELECT tacit.explain(%s)", (text,)).fetchone()[0] == told
    ada.execute("RESET tacit.epsilon")


def test_a_policys_keys_and_comments_are_declared(served, tmp_path):
    (tmp_path / "policy.toml").write_text("""
[data]
source = "data"
[privacy]
epsilon = 1
delta = 1e-6
[tables.patients]
unit = "person"
max_groups = 1
max_rows_per_group = 1
[tables.patients.columns]
id = { type = "int", lower = 0, upper = 9, nullable = false }
[tables.visits]
unit = { through = "patient", to = "patients.id" }
max_groups = 1
max_rows_per_group = 1
[tables.visits.columns]
"it's" = { type = "text", values = ["a\\nb", "it's \\\\"] }
patient = { type = "int", lower = 0, upper = 9 }
[tables.wards]
public = true
[tables.wards.columns]
name = { type = "text", unique = true }
code = { type = "int", lower = 0, upper = 9, unique = true, nullable = false }
[analysts.ada]
epsilon = 1
""")
    policy = load(tmp_path / "policy.toml")
    made = database_statements(policy)
    assert not any("\n" in each for each in made)
    assert any("FOREIGN KEY" in each for each in made)
    found = [each for each in made if each.startswith("CREATE TABLE")]
    assert found == [
        'CREATE TABLE public."patients" ("id" bigint NOT NULL, PRIMARY KEY ("id"))',
        'CREATE TABLE public."visits" ("it\'s" text, "patient" bigint)',
        'CREATE TABLE public."wards" ("name" text, "code" bigint NOT NULL, PRIMARY KEY ("code"), UNIQUE ("name"))',
    ]
    assert describe_column(policy.tables[1].columns[0]) == "keys a\nb, it's \\"
    assert quote_name('a"b') == '"a""b"'

    async def declared():
        catalog = Catalog(policy)
        try:
            texts = (
                "SELECT string_agg(pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint"
                " WHERE connamespace = 'public'::regnamespace",
                "SELECT col_description('visits'::regclass, 1)",
            )
            return [(await catalog.run("ada", "clinic", CatalogStatement(text))).rows[0][11:] for text in texts]
        finally:
            await catalog.close()

    keys = "PRIMARY KEY (id); FOREIGN KEY (patient) REFERENCES patients(id); UNIQUE (name); PRIMARY KEY (code)"
    assert served.run(declared()) == [keys.encode(), b"keys a\nb, it's \\"]


# Every way to read a table by its name that PostgreSQL has, and the places a table can stand in a statement.
READS = [
    "SELECT {n} FROM {t}, pg_class",
    "SELECT {n} FROM pg_class, {t}",
    "SELECT {n} FROM pg_class c, public.{t} v WHERE c.oid > 0",
    "SELECT (SELECT {n} FROM pg_am, {t})",
    "SELECT EXISTS (SELECT FROM pg_am, {t})",
    "SELECT ARRAY(SELECT 1 FROM pg_am, ONLY {t})",
    "SELECT 1 FROM pg_am WHERE NOT EXISTS (TABLE {t})",
    "SELECT {n} FROM pg_am LEFT OUTER JOIN LATERAL (TABLE {t}) v ON true",
    "WITH v AS (TABLE {t}) SELECT {n} FROM v, pg_am",
    "WITH v AS MATERIALIZED (SELECT * FROM pg_am, {t}) SELECT {n} FROM v",
    "SELECT {n} FROM (pg_am CROSS JOIN {t})",
    "SELECT {n} FROM (({t} CROSS JOIN pg_am))",
    "(TABLE {t})",
    "TABLE {t}",
    "TABLE ONLY public.{t}",
    "TABLE {t} LIMIT 0",
    "SELECT 0 FROM pg_am UNION ALL SELECT 1 FROM (TABLE {t}) v",
    "SELECT {n} FROM pg_am, {t} TABLESAMPLE SYSTEM (100)",
    "SELECT {n} FROM pg_am, {t} WHERE false",
    "SELECT {n} FROM pg_am, {t} LIMIT 0",
    'SELECT {n} FROM pg_am, "{t}"',
    'SELECT {n} FROM pg_am, U&"\\00{hex}{rest}"',
    "SELECT {n} FROM pg_am, {t} FOR SHARE",
    "SELECT {t} FROM pg_am, {t}",
    "SELECT row_to_json(v) FROM pg_am, {t} v",
    "SELECT query_to_xml('SELECT * FROM {t}', true, true, '')",
    "SELECT query_to_xml_and_xmlschema('SELECT * FROM {t}', true, true, '')",
    "SELECT table_to_xml('{t}'::regclass, true, true, '')",
    "SELECT schema_to_xml('public', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT cursor_to_xml('c', 1, true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(ward) FROM {t}')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery FROM {t}')",
    "SELECT set_config('row_security', 'off', false), {n} FROM pg_am, {t}",
    "SELECT /* pg_class */ {n} FROM/**/{t}, pg_am -- pg_class",
    "EXPLAIN SELECT {n} FROM pg_am, {t}",
    "EXPLAIN ANALYZE TABLE {t}",
    "SELECT * FROM json_populate_recordset(NULL::{t}, (SELECT json_agg(v) FROM pg_am, {t} v))",
]
NUMBERS = ["count(*)", "sum(1)", "max(1)"]
NEVER = [
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_read_binary_file('postgresql.conf')",
    "SELECT pg_stat_file('postgresql.conf')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_sleep(10)",
    "SELECT pg_sleep_for('10 s')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1)",
    "SELECT pg_reload_conf()",
    "SELECT pg_rotate_logfile()",
    "SELECT pg_switch_wal()",
    "SELECT pg_create_restore_point('a')",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT pg_create_physical_replication_slot('a')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_promote()",
    "SELECT pg_stat_reset()",
    "SELECT pg_stat_reset_shared('wal')",
    "SELECT setseed(0.5)",
    "SELECT nextval('a')",
    "SELECT setval('a', 1)",
    "SELECT dblink('host=/tmp', 'SELECT 1')",
    "SELECT set_config('role', 'owner', false)",
    "SELECT set_config('session_authorization', 'owner', false)",
    "SELECT set_config('temp_file_limit', '-1', false)",
    "SELECT set_config('session_preload_libraries', 'x', false)",
    "SELECT rolpassword FROM pg_authid",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_file_settings",
    "SELECT current_setting('data_directory')",
    "SELECT current_setting('unix_socket_directories')",
    "SELECT 1 INTO left_here",
    "SELECT 1 AS a INTO TEMP left_here FROM pg_am",
    "WITH a AS (INSERT INTO wards VALUES ('a', 1) RETURNING 1) SELECT * FROM a, pg_am",
    "WITH a AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM a",
    "CREATE TABLE a (b int)",
    "CREATE TEMP TABLE a (b int)",
    "CREATE EXTENSION vector",
    "CREATE FUNCTION a() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DO $$ BEGIN NULL; END $$",
    "COPY pg_class TO STDOUT",
    "COPY pg_class TO PROGRAM 'cat'",
    "LOAD 'plpgsql'",
    "ALTER ROLE ada SUPERUSER",
    "GRANT owner TO ada",
    "LISTEN a",
    "NOTIFY a",
    "LOCK TABLE visits",
    "VACUUM",
    "CHECKPOINT",
    "TRUNCATE visits",
    "PREPARE a AS TABLE visits",
    "DECLARE a CURSOR FOR TABLE visits",
    "SET ROLE owner",
    "SET SESSION AUTHORIZATION owner",
]


def hostile_statements():
    for text, table in itertools.product(READS, ("visits", "wards")):
        numbers = NUMBERS if "{n}" in text else NUMBERS[:1]
        for number in numbers:
            yield text.format(t=table, n=number, hex=f"{ord(table[0]):02x}", rest=table[1:])
    yield from NEVER


def test_without_the_guard_the_same_statements_read_the_tables(plain):
    """So that what refuses them is the guard, and no mistake in them: few have no answer in a PostgreSQL without it."""
    refused = []
    for text in [each for each in hostile_statements() if each not in NEVER]:
        try:
            plain.execute(text)
        except psycopg.Error as error:
            refused.append((text, error.sqlstate))
    kinds = ("FOR SHARE", "max(1)", "sum(1)", "cursor_to_xml", "ts_stat", "_to_xml", "row_security", "ts_rewrite")
    assert "42601" not in {state for _, state in refused}
    assert all(any(kind in text for kind in kinds) for text, _ in refused), refused


def test_two_hundred_hostile_statements_get_nothing(served, ada, free):
    """None is answered, by the simple or the extended protocol, and each session goes on as it was."""
    statements = list(hostile_statements())
    assert len(statements) >= 200
    for text in statements:
        for prepare in (False, True):
            with pytest.raises(psycopg.Error) as error:
                ada.execute(text, prepare=prepare).fetchall()
            assert error.value.sqlstate not in {"XX000", None}, text
    assert ada.execute("SELECT current_user, current_setting('is_superuser')").fetchone() == ("ada", "off")
    assert ada.execute("SELECT count(*) FROM pg_class WHERE relname IN ('left_here', 'a')").fetchone() == (0,)
    assert ada.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchone() == (0,)


def test_an_analyst_finds_no_trace_of_another(served, ada, ben, free):
    ada.execute("SELECT set_config('application_name', 'the work of ada', false)")
    ada.execute("SELECT 'a secret of ada', txid_current()")
    shown = [
        "SELECT * FROM pg_roles",
        "SELECT * FROM pg_user",
        "SELECT * FROM pg_database",
        "SELECT * FROM pg_stat_activity",
        "SELECT * FROM pg_stat_ssl",
        "SELECT * FROM pg_locks l JOIN pg_class c ON l.relation = c.oid",
        "SELECT * FROM pg_prepared_statements",
        "SELECT * FROM pg_cursors",
        "SELECT * FROM pg_settings",
        "SELECT * FROM pg_db_role_setting",
        "SELECT * FROM pg_shdescription",
        "SELECT * FROM pg_stat_database",
        "SELECT * FROM pg_stat_user_tables",
        "SELECT * FROM pg_auth_members",
        "SELECT pg_listening_channels()",
        "SELECT * FROM tacit.budget",
    ]
    for text in shown:
        assert "ada" not in repr(ben.execute(text).fetchall()).replace("adapt", ""), text
    first = ada.execute("SELECT pg_postmaster_start_time()").fetchone()
    assert ben.execute("SELECT pg_postmaster_start_time()").fetchone() != first  # another server altogether
    assert ben.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'ben'").fetchone() == (1,)


def test_nothing_false_is_said_of_how_many_rows_there_are(ada, free):
    found = ada.execute(
        "SELECT reltuples FROM pg_class WHERE relname IN ('visits', 'wards') AND relkind = 'r'"
    ).fetchall()
    assert found == [(-1.0,), (-1.0,)]  # which is what PostgreSQL says where it does not know
    assert ada.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'visits'").fetchone() == (0,)


def test_a_question_is_still_a_question(served, ada):
    before = served.entries()
    ada.execute("SET tacit.epsilon = 0.25")
    ((found,),) = ada.execute("SELECT COUNT(*) FROM visits WHERE age > 21").fetchall()
    assert found > 100 and served.entries() > before
    ada.execute("RESET tacit.epsilon")


def test_without_the_programs_questions_are_answered_and_statements_say_what_to_install(served, tmp_path):
    async def begin():
        catalog = Catalog(served.curator.policy, programs=tmp_path)
        return await start_listener(served.service, served.authenticator, "127.0.0.1", 0, catalog=catalog)

    async def end():
        listener.close()
        await listener.wait_closed()

    listener = served.run(begin())
    try:
        port = str(listener.sockets[0].getsockname()[1])
        dsn = served.dsn("ada", port=port, sslmode="disable", options="-c tacit.epsilon=0.25")
        with psycopg.connect(dsn, autocommit=True) as connection:
            assert connection.execute("SELECT COUNT(*) FROM visits WHERE age > 21").fetchone()[0] > 100
            before = served.spent("ada")
            assert connection.execute("SELECT 1").fetchone() == (1,)  # what pools of connections ask
            assert connection.execute("SELECT 1 AS one, 'two'", prepare=True).fetchone() == (1, "two")
            assert served.spent("ada") == before
            for statement in ("SELECT relname FROM pg_class", "SELECT version()", "SELECT 1 FROM pg_class"):
                with pytest.raises(psycopg.errors.FeatureNotSupported, match="programs") as error:
                    connection.execute(statement)
            assert "pip install 'tacit-dp[catalog]'" in error.value.diag.message_hint
    finally:
        served.run(end())


def test_a_name_that_postgresql_keeps_for_itself_does_not_stop_a_client(served, raw):
    for database in ("template1", "postgres", "x" * 200, "o'b\"c", ""):
        with psycopg.connect(served.dsn("ada", dbname=database.replace("'", "\\'")), autocommit=True) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("ada",)
            shown = connection.execute("SELECT current_database()").fetchone()[0]
            assert shown == ("clinic" if database == "template1" else database[:63]) or not database


def test_wire_errors_of_the_catalog_have_no_path_of_the_server(ada):
    with pytest.raises(psycopg.Error) as error:
        ada.execute("SELECT pg_read_file('x')")
    assert "/" not in str(error.value).replace("and/or", "")


def test_a_folder_without_programs_is_refused_before_the_server_starts(tmp_path):
    with pytest.raises(ParameterError, match="does not hold the programs") as error:
        ServerConfig(postgres_programs=tmp_path)
    assert "--postgres-programs" in error.value.fix
