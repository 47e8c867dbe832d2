"""Spark: what it stores and how that is read, what comes back of it, and settings that would change a statement."""

from __future__ import annotations

import datetime
import decimal
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.counts import FULL, some

import tacit
from tacit.engines import sql_statements
from tacit.engines.base import TableSchema
from tacit.engines.deadline import time_limit
from tacit.engines.dialect import SPARK
from tacit.engines.scalars import write_scalar
from tacit.errors import DataError
from tacit.local import FrequencySummary, HybridMechanism, KAryRandomizedResponse, MeanSummary, UniformGrid
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, ColumnReference, ExactStatistic, GroupKey, Literal, Quantize, Scan
from tacit.query.types import Type
from tacit.sampling.bits import ReplayBits

pytestmark = pytest.mark.slow

COUNT = ExactStatistic("count", None)


def shape(unit: str | None = None, table: str = "t", **columns: str) -> TableSchema:
    return TableSchema(table, tuple((column, Type(kind)) for column, kind in columns.items()), unit)


def by(*names: str, measures: tuple[ExactStatistic, ...] = (COUNT,), unit: str | None = None) -> Aggregation:
    """How many rows have each combination of values."""
    columns = [*names, *([] if unit is None else [unit])]
    keys = tuple(GroupKey(ColumnReference(name), None) for name in names)
    source = Scan("t", tuple((name, name) for name in columns))
    return Aggregation(source, None, unit, keys, ContributionBounds(9, 9), measures)


@pytest.fixture
def engine(spark):
    """Makes an engine over one frame, of rows and their schema."""
    from tacit.engines.spark import SparkEngine

    made = []

    def make(rows: list[tuple[Any, ...]], schema: str, declared: TableSchema) -> SparkEngine:
        made.append(SparkEngine([declared], spark, {"t": spark.createDataFrame(rows, schema)}))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_every_stored_type_is_read_as_the_declared_one(engine):
    schema = "a TINYINT, b SMALLINT, c INT, f FLOAT, g DECIMAL(10, 2), v STRING, o BOOLEAN, d DATE"
    day = datetime.date(2024, 2, 29)
    row = (1, 2, 3, 0.5, decimal.Decimal("2.25"), "é", True, day)
    kinds = dict(zip("abcfgvod", ["int", "int", "int", "float", "float", "text", "bool", "date"], strict=True))
    found = engine([row], schema, shape(**kinds))
    grids = tuple(ExactStatistic("sum", Quantize(ColumnReference(name), Fraction(1, 4), 0, 99)) for name in "fg")
    node = Aggregation(
        Scan("t", tuple((name, name) for name in kinds)),
        None,
        None,
        tuple(GroupKey(ColumnReference(name), None) for name in "abcvod"),
        ContributionBounds(1, 1),
        grids,
    )
    assert found.run(node) == {(1, 2, 3, "é", True, day): (2, 9)}


@pytest.mark.parametrize(
    ("schema", "declared", "said"),
    [
        ("x STRING", {"x": "int"}, "t.x is declared int but stored as string"),
        ("x BINARY", {"x": "date"}, "t.x is declared date but stored as binary"),
        ("x STRING COLLATE UNICODE_CI", {"x": "text"}, "stored as string collate UNICODE_CI"),
        ("y STRING", {"x": "text"}, "t has no column x"),
        ("`a${x}` INT", {"a${x}": "int"}, "has a name with ${"),
    ],
)
def test_columns_that_are_not_as_declared_are_said_at_open(schema, declared, said, engine):
    with pytest.raises(DataError) as caught:
        engine([], schema, shape(**declared))
    assert said in caught.value.what and caught.value.fix


@pytest.mark.parametrize("kind", ["DOUBLE", "STRING COLLATE UNICODE_CI", "ARRAY<INT>"])
def test_a_unit_of_which_equal_values_may_differ_as_texts_is_no_unit(kind, engine):
    with pytest.raises(DataError, match=r"t\.who says whose row it is"):
        engine([], f"x INT, who {kind}", shape(unit="who", x="int"))


def test_a_text_that_is_none_and_dates_that_python_has_not_are_null(spark):
    from tacit.engines.spark import SparkEngine

    frame = spark.sql(
        "SELECT CAST(X'61ff' AS STRING) AS s, DATE '9999-12-31' + 1 AS d UNION ALL SELECT 'a', DATE '0001-01-01'"
    )
    engine = SparkEngine([shape(s="text", d="date")], spark, {"t": frame})
    assert engine.run(by("s", "d")) == {(None, None): (1,), ("a", datetime.date(1, 1, 1)): (1,)}
    engine.close()


def test_letters_change_alike_whatever_the_language_of_the_machine(spark, engine):
    texts = ["Iı", "ıI", "iİé", "Ìé", "άα", "I"]
    found = engine([(text,) for text in texts], "t STRING", shape(t="text"))
    cases = tuple(Call(function, (ColumnReference("t"),)) for function in (Function.LOWER, Function.UPPER))
    keys = tuple(GroupKey(scalar, None) for scalar in cases)
    node = Aggregation(Scan("t", (("t", "t"),)), None, None, keys, ContributionBounds(9, 9), (COUNT,))
    locale = spark.sparkContext._jvm.java.util.Locale
    own = locale.getDefault()
    try:
        for language in ("tr", "lt", "el"):
            locale.setDefault(locale.forLanguageTag(language))
            assert found.run(node) == {(text.lower(), text.upper()): (1,) for text in texts}, language
    finally:
        locale.setDefault(own)


def test_tables_of_a_catalog_are_found_and_a_missing_one_is_said(spark):
    from tacit.engines.spark import SparkEngine

    spark.sql("CREATE SCHEMA clinic")
    spark.sql("CREATE TABLE clinic.t USING parquet AS SELECT 3 AS x, 'u' AS who")
    try:
        engine = SparkEngine([shape(unit="who", x="int")], spark, source="spark_catalog.clinic")
        assert engine.run(by("x", unit="who")) == {(3,): (1,)}
        assert (engine.type_of("t", "who"), engine.type_of("t", "x")) == (Type.TEXT, Type.INT)
        (view,) = engine._views
        assert spark.catalog.tableExists(view)
        engine.close()
        assert not spark.catalog.tableExists(view)
        with pytest.raises(DataError, match=r"table nothing was not found in spark_catalog\.clinic"):
            SparkEngine([shape(table="nothing", x="int")], spark, source="spark_catalog.clinic")
    finally:
        spark.sql("DROP SCHEMA clinic CASCADE")


FAILING = {
    "a cast": "SELECT CAST(s AS INT) AS x FROM VALUES ('1'), ('no number') AS v(s)",
    "a division": "SELECT CAST(1 DIV y AS INT) AS x FROM VALUES (1), (0) AS v(y)",
    "an overflow": "SELECT CAST(y AS INT) AS x FROM VALUES (1L), (5000000000L) AS v(y)",
}


@pytest.mark.parametrize("made", FAILING)
def test_what_fails_on_a_row_is_said_at_open(made, spark):
    from tacit.engines.spark import SparkEngine

    with pytest.raises(DataError, match="t cannot be read to its end") as caught:
        SparkEngine([shape(x="int")], spark, {"t": spark.sql(FAILING[made])})
    assert "no number" not in str(caught.value) and caught.value.fix


def test_a_view_is_said_at_open(spark):
    from tacit.engines.spark import SparkEngine

    spark.sql("CREATE SCHEMA views")
    spark.sql("CREATE TABLE views.base USING parquet AS SELECT 3 AS x")
    spark.sql("CREATE VIEW views.t AS SELECT x FROM views.base")
    try:
        with pytest.raises(DataError, match="t is a view") as caught:
            SparkEngine([shape(x="int")], spark, source="spark_catalog.views")
        assert "CREATE TABLE" in caught.value.fix
    finally:
        spark.sql("DROP SCHEMA views CASCADE")


def test_units_are_written_as_they_are_stored(spark):
    from tacit.engines.spark import SparkEngine

    kinds = {"INT": "integer", "BIGINT": "integer", "STRING": "text", "DATE": "date"}
    kinds |= {
        "DECIMAL(9,1)": "decimal of scale 1",
        "DECIMAL(12,1)": "decimal of scale 1",
        "DECIMAL(9,2)": "decimal of scale 2",
    }
    for kind, written in some(kinds.items(), 2):
        engine = SparkEngine(
            [shape(unit="who", x="int")], spark, {"t": spark.createDataFrame([], f"x INT, who {kind}")}
        )
        assert engine.written_as("t", "who") == written
        engine.close()
    with pytest.raises(DataError, match=r"t\.x says whose row it is or matches tables, and is declared float"):
        SparkEngine([shape(unit="x", x="float")], spark, {"t": spark.createDataFrame([], "x INT")})


def test_a_padded_text_is_not_stored_like_a_plain_one(spark):
    # Spark pads what is stored as CHAR when it reads it: 'ab' would be 'ab  ' there, and one person two.
    from tacit.engines.spark import SparkEngine

    spark.sql("CREATE SCHEMA padded")
    spark.sql("CREATE TABLE padded.t (who CHAR(4), v VARCHAR(4), x INT) USING parquet")
    spark.sql("INSERT INTO padded.t VALUES ('ab', 'ab', 1)")
    try:
        for unit, written in (("who", "char(4)"), ("v", "text")):
            engine = SparkEngine([shape(unit=unit, x="int")], spark, source="spark_catalog.padded")
            assert engine.written_as("t", unit) == written
            engine.close()
        for declared in (shape(who="text", v="text"), shape(unit="who", v="text")):  # the blanks are read as none
            engine = SparkEngine([declared], spark, source="spark_catalog.padded")
            assert engine.run(by("who", "v")) == {("ab", "ab"): (1,)}
            engine.close()
    finally:
        spark.sql("DROP SCHEMA padded CASCADE")


def test_a_temporary_view_is_said_at_open(spark):
    from tacit.engines.spark import SparkEngine

    spark.sql("CREATE TEMPORARY VIEW t AS SELECT CAST(s AS INT) AS x FROM VALUES ('1') AS v(s)")
    try:
        with pytest.raises(DataError, match="t is a view") as caught:
            SparkEngine([shape(x="int")], spark)
        assert "CREATE TABLE" in caught.value.fix
    finally:
        spark.catalog.dropTempView("t")


def test_a_unit_that_is_no_text_is_nobody_whether_or_not_it_is_declared(spark):
    from tacit.engines.spark import SparkEngine

    frame = spark.sql("SELECT CAST(X'61ff' AS STRING) AS who, 1 AS x UNION ALL SELECT 'a', 1")
    for declared in ({"x": "int"}, {"x": "int", "who": "text"}):
        engine = SparkEngine([shape(unit="who", **declared)], spark, {"t": frame})
        assert engine.run(by("x", unit="who")) == {(1,): (1,)}
        engine.close()


def test_columns_that_differ_in_capitals_alone_are_said(engine):
    with pytest.raises(DataError, match="t cannot be read"):
        engine([], "x INT, X INT", shape(x="int"))


def test_a_frame_for_no_table_is_said(spark):
    from tacit.engines.spark import SparkEngine

    with pytest.raises(DataError, match="the policy has no such table"):
        SparkEngine([], spark, {"t": spark.range(1)})


def test_settings_that_change_statements_are_said(spark):
    from tacit.engines.spark import SparkEngine

    spark.conf.set("spark.sql.groupByOrdinal", "false")
    try:
        with pytest.raises(DataError, match=r"spark\.sql\.groupByOrdinal"):
            SparkEngine([], spark)
    finally:
        spark.conf.set("spark.sql.groupByOrdinal", "true")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_nothing_raises_whether_or_not_spark_is_strict(ansi, spark, engine):
    hard = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.0, None]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = engine([(x, 2**63 - 1) for x in hard], "x DOUBLE, i BIGINT", shape(x="float", i="int"))
        steps = (Fraction(1), Fraction(1, 100), Fraction(1000))
        measures = tuple(ExactStatistic("sum", Quantize(ColumnReference("x"), step, -3, 5)) for step in steps)
        node = Aggregation(
            Scan("t", (("x", "x"), ("i", "i"))),
            Call(Function.GREATER, (Call(Function.MOD, (ColumnReference("i"), Literal(2))), Literal(0))),
            None,
            (),
            ContributionBounds(1, 1),
            (*measures, ExactStatistic("sum", ColumnReference("i"))),
        )
        # two values at each end: 2 * 5 - 2 * 3
        assert found.run(node) == {(): (4, 4, 4, 8 * (2**63 - 1))}
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_only_what_is_aggregated_comes_back(spark, engine):
    found = engine([("u", 1, 2)], "who STRING, g INT, i INT", shape(unit="who", g="int", i="int"))
    asked = []

    with pytest.MonkeyPatch.context() as patch:
        run = found._rows
        patch.setattr(found, "_rows", lambda statement: asked.append(statement) or run(statement))
        found.run(
            by(
                "g",
                measures=(
                    COUNT,
                    ExactStatistic("sum", ColumnReference("g")),
                    ExactStatistic("histogram", ColumnReference("g")),
                ),
                unit="who",
            )
        )
    assert len(asked) == 2
    for statement in asked:
        frame = spark.sql(statement)
        plan = frame._jdf.queryExecution()
        # The outermost node adds up: a row for each group, and none of a person.
        assert plan.analyzed().nodeName() == "Aggregate"
        text = plan.executedPlan().toString()
        assert "Python" not in text and "MapPartitions" not in text


def test_a_statement_that_takes_too_long_is_stopped_and_the_next_is_not(spark):
    from py4j.protocol import Py4JJavaError

    from tacit.engines.spark import SparkEngine

    engine = SparkEngine([shape(id="int")], spark, {"t": spark.range(10)}, timeout=1)
    engine._sources["t"] = f"(SELECT id FROM range({10**13})) AS source"
    with pytest.raises(Py4JJavaError):
        engine.run(
            Aggregation(
                Scan("t", (("id", "id"),)),
                None,
                None,
                (),
                ContributionBounds(1, 1),
                (ExactStatistic("sum", ColumnReference("id")),),
            )
        )
    engine.close()
    assert list(spark.sparkContext.getJobTags()) == []
    assert spark.range(3).count() == 3


def test_opening_may_take_longer_than_a_question(spark):
    from tacit.engines.spark import SparkEngine

    engine = SparkEngine([shape(id="int")], spark, {"t": spark.range(10)}, timeout=1e-6)
    assert engine.is_unique("t", "id")
    engine.close()


def test_a_question_s_own_limit_stops_it(spark):
    from py4j.protocol import Py4JJavaError

    from tacit.engines.spark import SparkEngine

    engine = SparkEngine([shape(id="int")], spark, {"t": spark.range(10)})
    engine._sources["t"] = f"(SELECT id FROM range({10**13})) AS source"  # opening reads all rows once
    with time_limit(1), pytest.raises(Py4JJavaError):
        engine.run(
            Aggregation(
                Scan("t", (("id", "id"),)),
                None,
                None,
                (),
                ContributionBounds(1, 1),
                (ExactStatistic("sum", ColumnReference("id")),),
            )
        )
    engine.close()


def test_patterns_never_go_back():
    like = write_scalar(Call(Function.LIKE, (ColumnReference("s"), Literal("a_%b%c_"))), SPARK)
    assert like == r"(`s` RLIKE '(?s)\\Aa.(?>.*?b).*c.\\z')"
    assert (
        write_scalar(Call(Function.LIKE, (ColumnReference("s"), Literal("a.'"))), SPARK)
        == r"(`s` RLIKE '(?s)\\Aa\\x{2e}\\x{27}\\z')"
    )


def test_patterns_take_time_that_grows_with_the_text_alone(spark):
    """A search that tried all places would take 3000**4 / 4! steps a row for the first pattern: hours."""
    frame = spark.sql("SELECT repeat('a', 3000) || chr(99 + id) AS s FROM range(20)")
    for pattern in ("%a_%a_%a_%b", "a%a%a%a%a%b", "%" + "a" * 50 + "_" + "a" * 40 + "b%", "%_a" * 30):
        assert (
            frame.selectExpr(
                write_scalar(Call(Function.LIKE, (ColumnReference("s"), Literal(pattern))), SPARK) + " AS found"
            )
            .distinct()
            .count()
            == 1
        )


def test_statements_have_no_function_of_python_or_of_chance():
    rng = random.Random(3)
    node = by("g", measures=(COUNT, ExactStatistic("sum", ColumnReference("g"))), unit="who")
    statement = sql_statements.write_aggregation(node, {"t": f"t{rng.randrange(9)}"}, SPARK).lower()
    assert not any(word in statement for word in ("rand(", "uuid(", "now(", "current_", "monotonically", "transform("))


def test_a_policy_over_data_frames(spark, tmp_path):
    columns = {"ward": {"type": "text", "values": ["a", "b"]}}
    policy = {
        "data": {"engine": "spark"},
        "ledger": {"store": str(tmp_path / "visits.ledger")},
        "privacy": {"epsilon": 1000},
        "tables": {"visits": {"unit": "patient", "max_groups": 1, "max_rows_per_group": 2, "columns": columns}},
        "analysts": {"ada": {"epsilon": 1000}},
    }
    frame = spark.sql("SELECT id % 20 AS patient, CASE WHEN id % 20 < 5 THEN 'a' ELSE 'b' END AS ward FROM range(100)")
    with tacit.open(policy, data={"visits": frame}) as curator:
        found = curator.analyst("ada").ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=100)
    # 5 and 15 patients, 2 of 5 rows each; the noise is not 0 with a chance of 2 e^(-100/2) = 4e-22
    assert [tuple(row.values()) for row in found] == [("a", 10), ("b", 30)]


CONNECT = """
import warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from tacit.engines.base import TableSchema
from tacit.engines.spark import SparkEngine
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import Aggregation, ColumnReference, ExactStatistic, Scan
from tacit.query.types import Type
session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.createDataFrame([("u", 1), ("u", 2), ("v", None)], "who STRING, i BIGINT")
engine = SparkEngine([TableSchema("t", (("i", Type.INT),), "who")], session, {"t": frame})
i = ColumnReference("i")
measures = (ExactStatistic("count", None), ExactStatistic("sum", i), ExactStatistic("histogram", i))
source = Scan("t", (("who", "w"), ("i", "i")))
print(engine.run(Aggregation(source, None, "w", (), ContributionBounds(1, 9), measures)), engine.is_unique("t", "i"))
engine.close()
session.stop()
"""


if FULL:  # a second Spark takes long to start

    def test_a_session_of_connect_says_the_same(tmp_path):
        command = [sys.executable, "-c", CONNECT]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert done.stdout.strip().endswith("{(): (3, 3, {1: 1, 2: 1})} True"), done.stderr[-2000:]


def test_reports_that_people_randomized_are_counted_by_spark(spark):
    # Spark groups the reports, and the summary is that of the reports one by one.
    protocol, hours = KAryRandomizedResponse(20, 1), HybridMechanism(UniformGrid(0, 24, 96), 1)
    reports, slept = (
        protocol.encode(np.arange(400) % 20, ReplayBits(b"spark")),
        hours.encode(np.linspace(0, 24, 400), ReplayBits(b"spark")),
    )

    def rows(reports):
        frame = spark.createDataFrame([(int(report),) for report in reports], "report INT")
        return frame.groupBy("report").count().collect()

    found = FrequencySummary.empty(protocol, "s").add_counts(rows(reports))
    assert found.to_bytes() == FrequencySummary.empty(protocol, "s").add(reports).to_bytes()
    assert MeanSummary.empty(hours, "sleep").add_counts(rows(slept)) == hours.summarize(slept, "sleep")
