"""Spark, classic or Connect, over data frames or the tables of a catalog.

Questions are pushed down as SQL text: no row leaves the cluster, only groups that are added up already come back. There
are no RDDs and no Python functions. Only SQL that `engines/sql_statements.py` generates is ever run; an analyst's text
is not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from tacit.engines.base import GroupedMeasures, NothingSent, TableSchema
from tacit.engines.deadline import seconds_left
from tacit.engines.dialect import SPARK
from tacit.engines.left_out import suggest_type
from tacit.engines.limit_joins import limit_clipped_joins, limit_joins
from tacit.engines.profile_statements import run_profile
from tacit.engines.read_times import FIRST_DAY, LAST_DAY, keep_within_years, to_date
from tacit.engines.run_statements import run_aggregation
from tacit.engines.sql_statements import write_some_rows
from tacit.engines.uniqueness import write_is_unique
from tacit.engines.zones import UTC
from tacit.errors import DataError, ErrorCode
from tacit.extras import missing_extra
from tacit.privacy.contribution_profile import ContributionProfile
from tacit.query.clipped_aggregation import ClippedAggregation
from tacit.query.nodes import Aggregation, RelationalNode
from tacit.query.timestamps import DAY, HOUR, MINUTE, SECOND, UNIX_EPOCH
from tacit.query.types import Type

try:
    from pyspark.errors import AnalysisException, ParseException, PySparkAttributeError
except ImportError as error:  # an extra
    raise missing_extra("spark", "the Spark engine", "pyspark") from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_TEXT = {"string", "varchar", "char"}
_INSTANT = "timestamp"
_MOMENTS = {"timestamp_ntz", _INSTANT}
# The types of Spark that each declared type may be stored in. Others are said at open.
_STORED = {
    Type.INT: _WHOLE,
    Type.FLOAT: {"float", "double", "decimal", *_WHOLE},
    Type.TEXT: _TEXT,
    Type.BOOL: {"boolean"},
    Type.DATE: {"date", *_MOMENTS},
    Type.TIMESTAMP: {"date", *_MOMENTS},
}
_MATCHED = {*_TEXT, "decimal", "date", "boolean"}
# Settings that would change what a statement says.
_REQUIRED_SETTINGS = {
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.caseSensitive": "false",
}

_CHAR_OR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps a type that it reads as a string

_view_numbers = count(1)


class SparkEngine:
    """An engine over the tables of a policy: `frames` are data frames by name; other tables are those of the catalog
    and schema that `source` names, such as spark_catalog.clinic, or of the session's own.

    A question that needs several statements reads the tables once for each: they must not change meanwhile. `timeout`
    is the most seconds that a statement of a question may take, a public limit. Opening, which reads every value once,
    may take longer.
    """

    def __init__(
        self,
        shapes: Iterable[TableSchema],
        session: SparkSession | None = None,
        frames: Mapping[str, DataFrame] | None = None,
        source: str | None = None,
        timeout: float = 3600.0,
    ) -> None:
        self._timeout = timeout
        handed = dict(frames or {})
        self._session = session if session is not None else _find_session(handed)
        _check_settings(self._session)
        self._sources: dict[str, str] = {}
        self._kinds: dict[str, dict[str, Type]] = {}
        self._written: dict[str, dict[str, str]] = {}
        self._views: list[str] = []
        shapes = list(shapes)
        for table in handed:
            if table not in {shape.name for shape in shapes}:
                what = f"data for {table} was handed over, but the policy has no such table"
                raise DataError(ErrorCode.DATA, what, fix="check its name")
        try:
            for shape in shapes:
                frame = handed[shape.name] if shape.name in handed else _load_table(self._session, source, shape.name)
                view = f"tacit_{os.getpid()}_{next(_view_numbers)}"
                frame.createOrReplaceTempView(view)
                self._views.append(view)
                self._sources[shape.name], self._kinds[shape.name] = _read_declared_columns(shape, frame, view)
                self._written[shape.name] = _storage_forms(shape, frame)
                _check_readable(self._session, shape, self._sources[shape.name])
                self._read_through(shape)
        except BaseException:
            self.close()
            raise

    def run(self, aggregation: Aggregation) -> GroupedMeasures:
        """For each group that has rows, its keys and the cell of each measure."""
        self._check_session()
        return run_aggregation(limit_joins(aggregation), self._sources, SPARK, self._rows)

    def profile(self, aggregation: ClippedAggregation) -> ContributionProfile:
        """How many units there are of each L1 norm, and what those of a norm add, by one statement."""
        self._check_session()
        return run_profile(limit_clipped_joins(aggregation), self._sources, SPARK, self._rows)

    def _check_session(self) -> None:
        """Raise before anything is sent where the session is stopped; whatever fails later may be due to rows."""
        try:
            begin, end, _ = _job_tag_functions(self._session)
            begin("tacit")
            end("tacit")
        except Exception as error:
            raise NothingSent from error

    def read(self, rows: RelationalNode, most: int) -> list[tuple[Any, ...]]:
        """The rows of a node over public tables, at most so many of them, in no order."""
        return self._rows(write_some_rows(rows, most, self._sources, SPARK))

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns, as they are read; NULL is no value."""
        names = [SPARK.name(column) for column in columns]
        ((alike,),) = self._collect(write_is_unique(names, self._sources[table]))
        return bool(alike)

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        return self._kinds[table][column]

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit or of a column that matches tables are written."""
        return self._written[table][column]

    def source_digests(self) -> dict[str, str]:
        """Nothing for any table: it is read whenever it is asked about."""
        return dict.fromkeys(self._sources, "")

    def close(self) -> None:
        """Let go of the data. The session is the owner's, and stays."""
        while self._views:
            self._session.catalog.dropTempView(self._views.pop())

    def _read_through(self, shape: TableSchema) -> None:
        """Read every value once: a file that cannot be read or a cast that fails is the owner's error."""
        columns = ", ".join(map(SPARK.name, self._kinds[shape.name])) or "1"
        try:
            self._collect(f"SELECT bit_xor(xxhash64({columns})) FROM {self._sources[shape.name]}")
        except Exception as error:  # whatever the cluster raises; what it says may hold values, so it is the cause
            fix = "mend the files or the casts: write the table again, and open that"
            raise DataError(ErrorCode.DATA, f"{shape.name} cannot be read to its end", fix=fix) from error

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement of a question, which is stopped at its limit."""
        left = seconds_left()
        tag = f"tacit-{os.getpid()}-{next(_view_numbers)}"
        begin, end, stop = _job_tag_functions(self._session)
        limit = threading.Timer(self._timeout if left is None else min(left, self._timeout), stop, (tag,))
        limit.daemon = True
        begin(tag)
        limit.start()
        try:
            return self._collect(statement)
        finally:
            limit.cancel()
            end(tag)

    def _collect(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._session.sql(statement).collect()]


def _job_tag_functions(
    session: SparkSession,
) -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[str], Any]]:
    """How to tag what this thread runs, to take the tag away, and to stop all that has it, from any thread.

    In a classic session, the session itself finds the tags of its own thread only.
    """
    try:
        context = session.sparkContext
    except PySparkAttributeError:  # a session of Connect
        return session.addTag, session.removeTag, session.interruptTag
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _find_session(frames: Mapping[str, DataFrame]) -> SparkSession:
    """The session of the frames, the one that is active, or a new one as Spark's own settings have it."""
    from pyspark.sql import SparkSession

    for frame in frames.values():
        return frame.sparkSession
    return SparkSession.builder.appName("tacit").getOrCreate()


def _check_settings(session: SparkSession) -> None:
    for setting, wanted in _REQUIRED_SETTINGS.items():
        if str(session.conf.get(setting, wanted)).lower() != wanted:
            what = f"the session has another {setting}, under which statements would mean something else"
            raise DataError(ErrorCode.DATA, what, fix=f'session.conf.set("{setting}", "{wanted}")')


def _check_readable(session: SparkSession, shape: TableSchema, source: str) -> None:
    """That the declared columns can be read at all. No row is."""
    try:
        session.sql(f"SELECT * FROM {source}").schema  # noqa: B018  # a session of Connect looks only now
    except (AnalysisException, ParseException) as error:
        fix = "check that no two columns differ in capitals alone"
        raise DataError(ErrorCode.DATA, f"{shape.name} cannot be read", fix=fix) from error


def _load_table(session: SparkSession, source: str | None, name: str) -> DataFrame:
    parts = [*([] if source is None else source.split(".")), name]
    named = ".".join(map(SPARK.name, parts))
    try:
        frame = session.table(named)
        frame.schema  # noqa: B018  # a session of Connect looks for the table only now
    except (AnalysisException, ParseException) as error:
        where = "the session's own schema" if source is None else source
        fix = 'name catalog and schema as source in [data], or open(policy, data={"name": frame})'
        raise DataError(ErrorCode.DATA, f"table {name} was not found in {where}", fix=fix) from error
    found = session.catalog.getTable(named)
    if found.isTemporary or found.tableType == "VIEW":
        # In which order a question's filters and a view's casts are computed is not known.
        what, fix = (
            f"{name} is a view, which could fail on a row",
            f"CREATE TABLE {name}_stored AS SELECT * FROM {named}",
        )
        raise DataError(ErrorCode.DATA, what, fix=f"store it: {fix}")
    return frame


def _storage_forms(shape: TableSchema, frame: DataFrame) -> dict[str, str]:
    """How the unit and what matches tables is written: columns that are written alike hold one value as one."""
    stored = {column.lower(): kind for column, kind in _stored_types(frame).items()}
    kinds, written = dict(shape.columns), {}
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        found = stored[column.lower()]
        if kinds.get(column) is Type.FLOAT:
            what = f"{shape.name}.{column} says whose row it is or matches tables, and is declared float"
            raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text, and declare it so")
        if kinds.get(column) is Type.TIMESTAMP or (kinds.get(column) is Type.DATE and found in _MOMENTS):
            what = f"{shape.name}.{column} says whose row it is or matches tables, and is a time that is read in a zone"
            raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text, and declare it so")
        plain = "integer" if found in _WHOLE else "text" if _family(found) in {"string", "varchar"} else found
        written[column] = (
            plain if _family(found) != "decimal" else f"decimal of scale {found.rstrip(')').split(',')[-1]}"
        )
    return written


def _read_declared_columns(shape: TableSchema, frame: DataFrame, view: str) -> tuple[str, dict[str, Type]]:
    """The declared columns, each read in its declared type, and the types of all that are read."""
    stored = _stored_types(frame)
    exact = {column.lower(): column for column in stored}
    columns, kinds, zones = [], {}, dict(shape.zones)
    for column, kind in shape.columns:
        found = _find_column(shape, column, exact)
        if _family(stored[found]) not in _STORED[kind]:
            raise DataError(
                ErrorCode.DATA,
                f"{shape.name}.{column} is declared {kind} but stored as {stored[found]}",
                fix=suggest_type(_declarable(stored[found]), stored[found]),
            )
        value = _read(SPARK.name(found), kind, stored[found], zones.get(column, UTC))
        columns.append(f"{value} AS {SPARK.name(column)}")
        kinds[column] = kind
    for column in dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links]):
        if column not in kinds:
            found = _find_column(shape, column, exact)
            value, kinds[column] = _read_undeclared_column(shape, column, SPARK.name(found), stored[found])
            columns.append(f"{value} AS {SPARK.name(column)}")
    return f"(SELECT {', '.join(columns)} FROM {SPARK.name(view)}) AS source", kinds


def _read(column: str, kind: Type, stored: str, zone: str) -> str:
    """A column in its declared type. Dates outside the years 1 to 9999, which Python has not, are NULL, and so are
    texts that are not UTF-8. The blanks that Spark pads CHAR with are none of the text, as in PostgreSQL."""
    match kind:
        case Type.TEXT:
            text = f"CAST({column} AS STRING)"
            return f"try_validate_utf8({f'rtrim({text})' if _family(stored) == 'char' else text})"
        case Type.TIMESTAMP:
            return _read_timestamp(column, stored, zone)
        case Type.DATE if stored in _MOMENTS:
            return to_date(_read_timestamp(column, stored, zone), SPARK)
        case Type.DATE:
            return f"CASE WHEN {column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {column} END"
    return f"CAST({column} AS {SPARK.types[kind]})"


def _read_timestamp(column: str, stored: str, zone: str) -> str:
    """A stored time as a timestamp, by the rule of `engines/read_times.py`; the cluster's own database has the zones.

    A time without a zone is taken apart, and an instant is moved as an integer: the session's zone has no part in it.
    """
    if stored == _INSTANT:
        first, last = "TIMESTAMP '0001-01-01 00:00:00Z'", "TIMESTAMP '9999-12-31 23:59:59.999999Z'"
        clock = column if zone == UTC else f"from_utc_timestamp({column}, {SPARK.text(zone)})"
        wall = keep_within_years(f"(unix_micros({clock}) + {UNIX_EPOCH})")
        return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {wall} END"
    days = f"CAST(datediff(CAST({column} AS DATE), {FIRST_DAY}) AS BIGINT) * {DAY}"
    if stored == "timestamp_ntz":
        days += f" + CAST(hour({column}) AS BIGINT) * {HOUR} + CAST(minute({column}) AS BIGINT) * {MINUTE}"
        days += f" + CAST(EXTRACT(SECOND FROM {column}) * {SECOND} AS BIGINT)"
    return f"CASE WHEN CAST({column} AS DATE) BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {days} END"


def _read_undeclared_column(shape: TableSchema, column: str, found: str, stored: str) -> tuple[str, Type]:
    """A column by which tables are matched and which no type is declared for: integers stay so, all else is text.

    Values that Spark holds for equal must be equal texts: two names of one person would be two people.
    """
    if _family(stored) in _WHOLE:
        return f"CAST({found} AS BIGINT)", Type.INT
    if _family(stored) not in _MATCHED:
        what = f"{shape.name}.{column} says whose row it is or matches tables, and is stored as {stored}"
        raise DataError(ErrorCode.DATA, what, fix="store it as an integer or a text")
    return _read(found, Type.TEXT, stored, UTC) if _family(stored) in _TEXT else f"CAST({found} AS STRING)", Type.TEXT


def _find_column(shape: TableSchema, column: str, exact: dict[str, str]) -> str:
    if column.lower() not in exact:
        names = ", ".join(exact.values())
        raise DataError(ErrorCode.DATA, f"{shape.name} has no column {column}", fix=f"the data has {names[:300]}")
    if "${" in column:  # which Spark would take for a setting, wherever it stands in a statement
        raise DataError(ErrorCode.DATA, f"{shape.name}.{column} has a name with ${{", fix="rename the column")
    return exact[column.lower()]


def _stored_types(frame: DataFrame) -> dict[str, str]:
    """The type of each column. CHAR, which Spark pads, and VARCHAR are strings in a schema: the metadata names them."""
    return {
        found.name: str(found.metadata.get(_CHAR_OR_VARCHAR, found.dataType.simpleString()))
        for found in frame.schema.fields
    }


def _family(stored: str) -> str:
    """The type without its sizes. A text of another collation keeps the name of that: different texts may be equal."""
    return stored.split("(", maxsplit=1)[0].strip()


def _declarable(stored: str) -> Type | None:
    """The type to declare for a stored one."""
    if stored in _MOMENTS:
        return Type.TIMESTAMP
    order = (Type.INT, Type.FLOAT, Type.TEXT, Type.BOOL, Type.DATE)
    return next((kind for kind in order if _family(stored) in _STORED[kind]), None)
