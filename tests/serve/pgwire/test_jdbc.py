"""PostgreSQL's JDBC driver, which DBeaver and Metabase speak through, in a Java machine of its own.

The driver is Debian's libpostgresql-jdbc-java; a machine without it skips these and says so, and where
TACIT_NOTHING_SKIPPED=1 that is a failure. What the two programs ask is in recorded/, by their public sources and logs.
"""

from __future__ import annotations

import os
import shutil
import threading
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from tests.serve.pgwire.test_catalog import RECORDED, asked
from tests.support.counts import some

pytestmark = pytest.mark.slow

JAR = Path("/usr/share/java/postgresql.jar")
ZONE = "America/New_York"  # dates go as 2025-01-01 -05, and come back as the same day
GROUPED = "SELECT ward, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > 44"
FILTERED = """
    SELECT ward, COUNT(*) AS n, SUM(cost) AS total, MEDIAN(visited) AS m, TOP_K(ward, 2) AS k, COUNT(*) > 0 AS some
    FROM public.visits
    WHERE age >= ? AND ward IN (?, ?) AND visited BETWEEN ? AND ? AND cost < ? AND insured = ?
    GROUP BY ward LIMIT ?
"""
MODES = [
    {},
    {"prepareThreshold": "1"},
    {"prepareThreshold": "-1"},  # all that can be binary is, from the first time on
    {"binaryTransfer": "false"},
    {"preferQueryMode": "simple"},
    {"preferQueryMode": "extendedForPrepared"},
    {"preferQueryMode": "extendedCacheEverything"},
]
ENDLESS = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d"


@pytest.fixture(scope="module")
def jvm():
    """A Java machine with the driver."""
    missing = "" if JAR.exists() else f"there is no {JAR}: apt-get install libpostgresql-jdbc-java"
    if shutil.which("java") is None:
        missing = "there is no java: apt-get install default-jre-headless"
    try:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    except ModuleNotFoundError:
        missing = "py4j is not installed: it comes with pyspark"
    if missing:
        (pytest.fail if os.environ.get("TACIT_NOTHING_SKIPPED") == "1" else pytest.skip)(missing)
    options = [f"-Duser.timezone={ZONE}", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    port, token, process = launch_gateway(
        classpath=str(JAR), javaopts=options, die_on_exit=True, enable_auth=True, return_proc=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(30)


@pytest.fixture
def connect(jvm, served):
    """Makes connections, under TLS that is checked in full."""
    opened = []

    def connected(who="ada", **properties):
        given = {
            "user": who,
            "password": served.passwords[who],
            "sslmode": "verify-full",
            "sslrootcert": str(served.certificate),
            "options": "-c tacit.epsilon=1",
            **properties,
        }
        made = jvm.jvm.java.util.Properties()
        for name, value in given.items():
            made.setProperty(name, value)
        url = f"jdbc:postgresql://127.0.0.1:{served.port}/clinic"
        opened.append(jvm.jvm.java.sql.DriverManager.getConnection(url, made))
        return opened[-1]

    yield connected
    for each in opened:
        each.close()


@pytest.fixture
def ada(connect):
    return connect()


@pytest.fixture
def free(served):
    """Nothing may be written to the ledger meanwhile."""
    before = served.entries()
    yield
    assert served.entries() == before


def rows(result, *columns):
    """The rows of a result, of all columns or of some, as texts."""
    named = columns or range(1, result.getMetaData().getColumnCount() + 1)
    found = []
    while result.next():
        found.append(tuple(result.getString(column) for column in named))
    result.close()
    return found


def ask(connection, text):
    return rows(connection.createStatement().executeQuery(text))


def refused(work):
    """The SQLSTATE and the parts of the error that a call raises."""
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError) as error:
        work()
    raised = error.value.java_exception
    return raised.getSQLState(), raised.getServerErrorMessage()


def strings(jvm, *values):
    made = jvm.new_array(jvm.jvm.java.lang.String, len(values))
    for index, value in enumerate(values):
        made[index] = value
    return made


def test_the_driver_is_let_in_over_tls_and_by_password_only(connect, free):
    assert ask(connect(sslmode="require"), "SELECT current_user, current_database()") == [("ada", "clinic")]
    metadata = connect().getMetaData()
    version = ask(connect(), "SHOW server_version")[0][0]
    assert metadata.getDriverName() == "PostgreSQL JDBC Driver" and metadata.getDatabaseProductVersion() == version
    assert ask(connect(), "SELECT split_part(version(), ' ', 2)") == [(version,)]
    assert metadata.getUserName() == "ada"
    assert refused(lambda: connect(password="wrong"))[0] == "28P01"
    assert refused(lambda: connect(sslmode="disable"))[0] == "28000"


def test_the_price_is_given_in_the_address(jvm, served, free):
    known = f"user=ada&password={served.passwords['ada']}&sslmode=verify-full&sslrootcert={served.certificate}"
    address = f"jdbc:postgresql://127.0.0.1:{served.port}/clinic?{known}&options=-c%20tacit.epsilon%3D0.125"
    connection = jvm.jvm.java.sql.DriverManager.getConnection(address)
    assert ask(connection, "SHOW tacit.epsilon") == [("0.125",)]
    connection.close()


def test_the_driver_finds_tables_and_columns(ada, jvm, free):
    metadata = ada.getMetaData()
    tables = metadata.getTables(None, None, "%", strings(jvm, "TABLE", "VIEW"))
    assert rows(tables, "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS") == [
        ("public", "visits", "TABLE", "private: visits"),
        ("public", "wards", "TABLE", "public"),
        ("tacit", "budget", "VIEW", "What you have spent, and what is left."),
    ]
    columns = metadata.getColumns(None, "public", "visits", "%")
    found = rows(columns, "COLUMN_NAME", "TYPE_NAME", "DATA_TYPE", "IS_NULLABLE", "REMARKS", "ORDINAL_POSITION")
    # java.sql.Types: BIGINT -5, VARCHAR 12, DATE 91, DOUBLE 8, BIT -7
    assert found[:5] == [
        ("age", "int8", "-5", "YES", "from 0 to 110", "1"),
        ("ward", "text", "12", "YES", "keys A, B, it's", "2"),
        ("visited", "date", "91", "YES", "from 2025-01-01 to 2025-12-31", "3"),
        ("cost", "float8", "8", "YES", "from 0 to 1000", "4"),
        ("insured", "bool", "-7", "YES", "keys false, true", "5"),
    ]
    beds = metadata.getColumns("clinic", "public", "wards", "be%")
    assert rows(beds, "COLUMN_NAME", "IS_NULLABLE", "COLUMN_DEF") == [("beds", "NO", None)]


def test_the_driver_finds_schemas_types_and_keys(ada, free):
    metadata = ada.getMetaData()
    assert rows(metadata.getSchemas(), 1) == [("information_schema",), ("pg_catalog",), ("public",), ("tacit",)]
    assert rows(metadata.getSchemas(None, "pub%"), 1) == [("public",)]
    assert rows(metadata.getCatalogs()) == [("clinic",)]
    assert ("TABLE",) in rows(metadata.getTableTypes())
    types = dict(rows(metadata.getTypeInfo(), "TYPE_NAME", "DATA_TYPE"))
    assert types["int8"] == "-5" and types["date"] == "91" and types["text"] == "12"
    for nothing in (
        metadata.getPrimaryKeys(None, "public", "visits"),
        metadata.getImportedKeys(None, "public", "visits"),
        metadata.getExportedKeys(None, "public", "visits"),
        metadata.getCrossReference(None, "public", "visits", None, "public", "wards"),
        metadata.getIndexInfo(None, "public", "visits", False, True),
        metadata.getBestRowIdentifier(None, "public", "visits", 0, True),
        metadata.getFunctions(None, "public", "%"),
        metadata.getFunctionColumns(None, "public", "%", "%"),
        metadata.getProcedures(None, "public", "%"),
        metadata.getProcedureColumns(None, "public", "%", "%"),
    ):
        assert rows(nothing) == []
    assert rows(metadata.getFunctions(None, "tacit", "%"), "FUNCTION_NAME") == [("explain",)]
    assert rows(metadata.getUDTs(None, "public", "%", None), "TYPE_NAME") == [("visits",), ("wards",)]  # their rows
    unique = metadata.getIndexInfo(None, "public", "wards", True, True)
    assert rows(unique, "NON_UNIQUE", "COLUMN_NAME") == [("f", "ward")]


def test_everybody_may_select_and_nobody_may_write(ada, free):
    metadata = ada.getMetaData()
    granted = metadata.getTablePrivileges(None, "public", "%")
    found = rows(granted, "TABLE_NAME", "GRANTEE", "PRIVILEGE", "IS_GRANTABLE")
    assert [each for each in found if each[1] != "owner"] == [
        ("visits", "PUBLIC", "SELECT", "NO"),
        ("wards", "PUBLIC", "SELECT", "NO"),
    ]
    looked = (
        "SELECT has_table_privilege('visits', 'SELECT, INSERT'), has_table_privilege(current_user, 'visits', 'INSERT')"
    )
    assert ask(ada, looked) == [("t", "f")]


def test_the_limits_and_words_that_a_tool_asks_for_are_there(ada, free):
    metadata = ada.getMetaData()
    assert metadata.getMaxColumnNameLength() == 63 and metadata.getMaxColumnsInIndex() == 32
    assert "limit" in metadata.getSQLKeywords().split(",")
    assert ada.getSchema() == "public" and ada.getCatalog() == "clinic"


@pytest.mark.parametrize("name", ["dbeaver", "metabase"])
@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_what_the_programs_look_at_is_answered_and_free(connect, free, name, mode):
    connection = connect(preferQueryMode=mode)
    statement = connection.createStatement()
    (path,) = [each for each in RECORDED if each.stem == name]
    for text in asked(path):
        if statement.execute(text):
            rows(statement.getResultSet(), 1)


def test_what_metabase_learns_of_the_tables_is_what_there_is(ada, free):
    (path,) = [each for each in RECORDED if each.stem == "metabase"]
    statement = ada.createStatement()
    (privileges,) = [text for text in asked(path) if text.startswith("with table_privileges")]
    found = rows(statement.executeQuery(privileges), "schema", "table", "select", "update", "insert", "delete")
    tables = [("public", "visits"), ("public", "wards"), ("tacit", "budget")]
    assert sorted(found) == [(*each, *"tfff") for each in tables]
    (described,) = [text for text in asked(path) if '"database-type"' in text]
    found = rows(statement.executeQuery(described), "table-name", "name", "database-type", "field-comment", "pk?")
    assert ("visits", "cost", "float8", "from 0 to 1000", "f") in found
    assert ("wards", "beds", "int8", "from 0 to 100", "f") in found


def test_looks_take_parameters_as_dbeaver_gives_them(ada, free):
    prepared = ada.prepareStatement(
        "SELECT c.oid,c.* FROM pg_catalog.pg_class c WHERE c.relnamespace=? AND c.relname=?"
    )
    prepared.setLong(1, 2200)
    prepared.setString(2, "visits")
    ((number, name),) = rows(prepared.executeQuery(), "oid", "relname")
    assert name == "visits"
    prepared = ada.prepareStatement(
        "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid=? AND attnum > 0 ORDER BY attnum"
    )
    prepared.setLong(1, int(number))
    assert rows(prepared.executeQuery())[:2] == [("age",), ("ward",)]
    prepared = ada.prepareStatement("SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname=?")
    prepared.setString(1, "clinic")
    assert rows(prepared.executeQuery(), "datname") == [("clinic",)]


def given(jvm, prepared, how):
    """Give the parameters of FILTERED, by the calls of one kind of program."""
    java = jvm.jvm.java
    first, last = "2025-01-01", "2025-12-01"
    prepared.setString(2, "A")
    prepared.setString(3, "it's")
    if how == "int":
        prepared.setInt(1, 30)
        prepared.setDate(4, java.sql.Date.valueOf(first))
        prepared.setDate(5, java.sql.Date.valueOf(last))
        prepared.setDouble(6, 300.5)
        prepared.setBoolean(7, True)
        prepared.setInt(8, 2)
    elif how == "long":
        prepared.setLong(1, 30)
        prepared.setObject(4, java.time.LocalDate.parse(first))
        prepared.setTimestamp(5, java.sql.Timestamp.valueOf(f"{last} 00:00:00"))
        prepared.setBigDecimal(6, Decimal("300.5"))
        prepared.setObject(7, True)
        prepared.setLong(8, 2)
    else:
        prepared.setShort(1, 30)
        prepared.setString(4, first)
        prepared.setObject(5, java.time.LocalDateTime.parse(f"{last}T00:00:00"))
        prepared.setFloat(6, 300.5)
        prepared.setObject(7, True, java.sql.Types.BOOLEAN)
        prepared.setObject(8, 2)
    return prepared


def test_parameters_of_every_type_ask_the_same_in_every_mode_and_are_charged_once(connect, jvm, served):
    spent, found = served.spent(), set()
    for mode in MODES:
        prepared = connect(**mode).prepareStatement(FILTERED)
        for how in ("int", "long", "short", "int"):
            result = given(jvm, prepared, how).executeQuery()
            assert result.next()
            assert result.getString("ward") == "A" and isinstance(result.getLong("n"), int)
            values = (result.getLong(2), result.getDouble(3), result.getDate(4).toString(), result.getBoolean(6))
            found.add((*values, tuple(result.getArray(5).getArray())))
    assert len(found) == 1
    ((_, _, median, some, names),) = found
    assert "2025-01-01" <= median <= "2025-12-31" and isinstance(some, bool)
    assert len(names) == 2 and set(names) <= {"A", "B", "it's"}
    assert served.spent() == spent + 1


def test_a_parameter_is_a_value_in_every_mode(connect):
    texts = ("A' OR 1=1; --", "back\\slash'", "\u00e9\u2603")
    for number, mode in enumerate(MODES):
        prepared = connect(**mode).prepareStatement("SELECT COUNT(*) AS n FROM visits WHERE ward = ?")
        for text in some(texts, one_in=3, first=number):
            prepared.setString(1, text)
            ((count,),) = rows(prepared.executeQuery())
            # no row has that ward; noise of scale 3 is beyond 75 with probability e^-25 = 1.4e-11
            assert abs(int(count)) < 75


def test_columns_and_parameters_are_described_and_nothing_is_charged(connect, free):
    for mode in MODES:
        if mode.get("preferQueryMode") == "simple":
            continue  # where the driver cannot describe but by asking
        prepared = connect(**mode).prepareStatement(FILTERED)
        columns = prepared.getMetaData()
        assert [columns.getColumnLabel(i) for i in range(1, 7)] == ["ward", "n", "total", "m", "k", "some"]
        named = [columns.getColumnTypeName(i) for i in range(1, 7)]
        assert named == ["text", "int8", "float8", "date", "_text", "bool"]
        parameters = prepared.getParameterMetaData()
        named = [parameters.getParameterTypeName(i) for i in range(1, 9)]
        assert named == ["int8", "text", "text", "date", "date", "float8", "bool", "int8"]


def test_rows_come_in_small_numbers_of_one_answer(ada, served):
    ask(ada, GROUPED)
    spent = served.spent()
    ada.setAutoCommit(False)
    statement = ada.createStatement()
    statement.setFetchSize(1)
    entries = served.entries()
    result = statement.executeQuery(GROUPED)
    assert rows(result, "ward") == [("A",), ("B",), ("it's",)]
    assert served.spent() == spent and served.entries() == entries  # a free repeat, in three portions
    ada.commit()
    statement.setMaxRows(2)
    assert len(rows(statement.executeQuery(GROUPED))) == 2
    scrolled = ada.createStatement(1004, 1007).executeQuery(GROUPED)  # back and forth, read only
    assert scrolled.last() and scrolled.getString(1) == "it's" and scrolled.first() and scrolled.getRow() == 1


def test_transactions_change_settings_and_give_nothing_back(ada, served):
    ada.setAutoCommit(False)
    ask(ada, "SELECT 1")
    ada.createStatement().execute("SET tacit.epsilon = 0.5")
    spent = served.spent()
    ask(ada, "SELECT COUNT(*) AS rolled FROM visits WHERE age > 33")
    ada.rollback()
    assert served.spent() == spent + 0.5 and ask(ada, "SHOW tacit.epsilon") == [("1",)]
    ada.createStatement().execute("SET tacit.epsilon = 0.25")
    ada.commit()
    assert ask(ada, "SHOW tacit.epsilon") == [("0.25",)]
    place = ada.setSavepoint("here")
    assert refused(lambda: ask(ada, "SELECT COUNT(*) FROM visit"))[0] == "42P01"
    assert refused(lambda: ask(ada, "SELECT 1"))[0] == "25P02"  # the transaction has failed
    ada.rollback(place)
    assert ask(ada, "SELECT 1") == [("1",)]
    ada.releaseSavepoint(place)
    ada.rollback()
    ada.setAutoCommit(True)
    assert ask(ada, "SELECT 1") == [("1",)]


def test_a_session_is_set_up_as_tools_do(connect, free):
    ada = connect(ApplicationName="Metabase v0.55.1", readOnly="true", defaultRowFetchSize="500")
    assert ask(ada, "SHOW application_name") == [("Metabase v0.55.1",)]
    ada.setClientInfo("ApplicationName", "DBeaver 25.1.5 - Main <clinic>")
    assert ask(ada, "SHOW application_name") == [("DBeaver 25.1.5 - Main <clinic>",)]
    assert ask(ada, "SHOW extra_float_digits") == [("3",)]
    assert ask(ada, "SHOW timezone") == [(ZONE,)]
    for level in (1, 2, 4, 8):  # read uncommitted to serializable, which an answer is in any case
        ada.setTransactionIsolation(level)
        assert ada.getTransactionIsolation() == 8
    ada.setReadOnly(False)
    ada.setReadOnly(True)
    ada.setSchema("public")
    ada.setCatalog("clinic")
    assert ada.isValid(5)
    ada.close()
    assert not ada.isValid(5)


def test_what_runs_is_canceled_by_hand_and_by_a_timeout(ada, free):
    statement = ada.createStatement()
    done = threading.Event()

    def cancel():
        while not done.wait(0.2):  # one that comes before the statement is of no use
            statement.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    state, error = refused(lambda: statement.executeQuery(ENDLESS))
    done.set()
    thread.join()
    assert state == "57014" and error.getMessage().startswith("canceled")
    statement.setQueryTimeout(1)
    assert refused(lambda: statement.executeQuery(ENDLESS))[0] == "57014"
    assert ask(ada, "SELECT 1") == [("1",)]


def test_an_error_has_its_sqlstate_its_place_and_its_hint(connect, free):
    for mode in ("extended", "simple"):
        asks = partial(ask, connect(preferQueryMode=mode))
        state, error = refused(partial(asks, "SELECT COUNT(*) FROM visits WHERE heigth > 3"))
        assert state == "42703" and error.getHint().startswith("its columns are age, ward")
        # SELECT COUNT(*) FROM visits WHERE heigth: 34 characters stand before it
        assert error.getPosition() == 35 and "[unknown-column]" in error.getMessage()
        assert refused(partial(asks, "INSERT INTO visits VALUES (1)"))[0] == "0A000"
        assert refused(partial(asks, "SELECT * FROM pg_nothing"))[0] == "42P01"
    unpriced = connect(options="")
    state, error = refused(lambda: ask(unpriced, COUNT))
    assert state == "22023" and error.getHint().startswith("SET tacit.epsilon")


def test_the_receipt_is_a_warning(ada):
    statement = ada.createStatement()
    statement.executeQuery(COUNT)
    warning = statement.getWarnings()
    assert " of 900 left" in warning.getMessage() and warning.getSQLState() == "00000"
    assert warning.getServerErrorMessage().getDetail().startswith("After WHERE, each patient_id counts")
    statement.executeQuery(COUNT)
    assert statement.getWarnings().getMessage().startswith("a repeat, free")
    ada.createStatement().execute("SET client_min_messages = warning")
    statement.executeQuery(COUNT)
    assert statement.getWarnings() is None


def test_a_prepared_question_is_prepared_again_when_its_columns_change(connect):
    ada = connect(prepareThreshold="1")
    prepared = ada.prepareStatement("SELECT COUNT(*) AS n FROM visits WHERE age > ?")
    for switch, width in (("off", 1), ("on", 3), ("off", 1)):
        ada.createStatement().execute(f"SET tacit.intervals = {switch}")
        prepared.setInt(1, 44)
        for _ in range(2):
            assert len(rows(prepared.executeQuery())[0]) == width


VISITS = '"public"."visits"'
QUESTIONS = {  # as Metabase's editor writes them
    "count": f'-- Metabase:: userID: 1\nSELECT COUNT(*) AS "count" FROM {VISITS}',
    "by a key": f'SELECT {VISITS}."ward" AS "ward", COUNT(*) AS "count" FROM {VISITS} GROUP BY {VISITS}."ward" '
    f'ORDER BY {VISITS}."ward" ASC',
    "by month of the year": f'SELECT CAST(EXTRACT(month FROM {VISITS}."visited") AS integer) AS "visited", '
    f'COUNT(*) AS "count" FROM {VISITS} GROUP BY CAST(EXTRACT(month FROM {VISITS}."visited") AS integer)',
    "by bins": f'SELECT FLOOR((({VISITS}."cost" - 0.0) / 100.0)) * 100.0 + 0.0 AS "cost", COUNT(*) AS "count" '
    f'FROM {VISITS} GROUP BY FLOOR((({VISITS}."cost" - 0.0) / 100.0)) * 100.0 + 0.0',
    "of a stretch": f'SELECT SUM({VISITS}."cost") AS "sum" FROM {VISITS} '
    f"WHERE ({VISITS}.\"visited\" >= DATE '2025-03-01') AND ({VISITS}.\"visited\" < DATE '2025-06-01')",
    "median": f'SELECT PERCENTILE_CONT(0.5) within group (order by {VISITS}."cost") AS "median" FROM {VISITS}',
    "a ratio": f'SELECT CAST(SUM(CASE WHEN {VISITS}."insured" THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) '
    f'/ NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share" FROM {VISITS}',
    "of a question": f'SELECT "source"."ward" AS "ward", "source"."count" AS "count" FROM (SELECT {VISITS}."ward" AS '
    f'"ward", COUNT(*) AS "count" FROM {VISITS} GROUP BY {VISITS}."ward") AS "source" '
    'WHERE "source"."count" > 100 LIMIT 1048575',
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_as_metabase_writes_them_are_answered(ada, name):
    found = ask(ada, QUESTIONS[name])
    if name == "a ratio":
        # 900 of 1,200 visits are insured; noise of scale 6 moves either by 150 with probability e^-25 = 1.4e-11:
        # (900 + 150) / (1200 - 150) = 1 and (900 - 150) / (1200 + 150) = 0.56
        assert 0.55 < float(found[0][0]) <= 1
    elif name == "by a key":
        assert [row[0] for row in found] == ["A", "B", "it's"]
    else:
        assert found


@pytest.mark.parametrize(("unit", "count"), [("week", 53), ("month", 12), ("quarter", 4), ("year", 1)])
def test_groups_of_days_as_metabase_writes_them_are_answered(ada, unit, count):
    # the days of 2025 are in 53 weeks, from Monday, December 30 to the one that starts on December 29
    truncated = f"CAST(DATE_TRUNC('{unit}', {VISITS}.\"visited\") AS date)"
    counted = f'SELECT {truncated} AS "visited", AVG({VISITS}."cost") AS "avg" FROM {VISITS}'
    found = ask(ada, f"{counted} GROUP BY {truncated} ORDER BY {truncated} ASC")
    assert len(found) == count and found[0][0] == ("2024-12-30" if unit == "week" else "2025-01-01")


def test_what_counts_from_now_is_refused_with_what_to_write(ada, free):
    text = f"SELECT COUNT(*) FROM {VISITS} WHERE {VISITS}.\"visited\" >= CAST((NOW() + INTERVAL '-30 day') AS date)"
    state, error = refused(partial(ask, ada, text))
    hint = "write the date itself; the owner may declare what is today in the policy"
    assert state == "42883" and error.getHint() == hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.* FROM public.visits x",  # the rows of a table in DBeaver
        f'SELECT {VISITS}."ward" AS "ward", {VISITS}."age" AS "age" FROM {VISITS} LIMIT 10000',  # its fingerprints
        f'SELECT SUBSTRING({VISITS}."ward", 1, 1234) AS "substring0" FROM {VISITS} LIMIT 10000',
    ],
)
def test_what_would_show_rows_is_refused_and_free(connect, free, text):
    for mode in ("extended", "simple"):
        state, error = refused(partial(ask, connect(preferQueryMode=mode), text))
        assert state == "42803" and error.getHint()


def test_the_rows_of_a_public_table_are_shown(connect):
    for mode in ("extended", "simple"):
        found = ask(connect(preferQueryMode=mode), "SELECT * FROM public.wards LIMIT 200")
        assert found and all(len(row) == len(found[0]) for row in found)


def test_what_follows_from_the_policy_alone_is_answered(connect):
    asked = f'SELECT TRUE AS "_" FROM {VISITS} WHERE 1 <> 1 LIMIT 0'  # may Metabase read it?
    ages = (
        f'SELECT {VISITS}."age" AS "age" FROM {VISITS} GROUP BY {VISITS}."age" ORDER BY {VISITS}."age" ASC LIMIT 1001'
    )
    for mode in ("extended", "simple"):
        assert ask(connect(preferQueryMode=mode), asked) == []
        found = ask(connect(preferQueryMode=mode), ages)
        assert len(found) > 50 and found[0][0] is not None
