"""Stored times as timestamps: every stored type, in every zone, and what Python's own calendar says of them."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from tests.support.counts import FULL

from tacit.engines.base import TableSchema
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.evaluate import evaluate
from tacit.engines.read_times import INSTANT, read_date, read_timestamp
from tacit.engines.scalars import write_scalar
from tacit.engines.zones import list_offsets
from tacit.errors import DataError
from tacit.plan.bounds import TypedScalar, bind
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import DATE_UNITS, TIME_UNITS, Function
from tacit.query.nodes import Aggregation, Call, ColumnReference, ExactStatistic, GroupKey, Literal, Scalar, Scan
from tacit.query.timestamps import DAY, HOUR, LAST, MINUTE, SECOND, UNIX_EPOCH, to_datetime, to_microseconds
from tacit.query.types import Type

ZONES = ["Europe/Zurich", "Asia/Kolkata", "Australia/Lord_Howe"]
ZONES += ["America/New_York", "Pacific/Apia", "Etc/GMT+12", "Africa/Casablanca"] if FULL else []
COUNT = 20_000 if FULL else 600
UTC = datetime.UTC
T = ColumnReference("t")


def in_schema(url: str, schema: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-c%20search_path%3D{schema}"


def moments(rng: random.Random, count: int) -> list[int]:
    """Timestamps of all years, and of these; midnights, first and last ones."""
    recent = to_microseconds(datetime.datetime(1960, 1, 1)), to_microseconds(datetime.datetime(2040, 1, 1))
    found = [rng.randrange(LAST + 1) for _ in range(count // 3)] + [rng.randrange(*recent) for _ in range(count // 3)]
    found += [rng.randrange(LAST // DAY) * DAY + rng.choice([-1, 0, 1]) for _ in range(count // 3)]
    return [min(max(number, 0), LAST) for number in found] + [0, 1, DAY - 1, LAST - 1, LAST]


def read(values: pa.Array, stored: str, zone: str = "UTC", reader: Any = read_timestamp) -> list[Any]:
    with connect_in_memory() as connection:
        connection.register("here", pa.table({"c": values}))
        described = connection.execute("DESCRIBE SELECT c FROM here").fetchall()[0][1]
        assert described == stored
        return [row[0] for row in connection.execute(f"SELECT {reader('c', stored, zone)} FROM here").fetchall()]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", *ZONES])
def test_an_instant_is_what_the_clock_of_the_zone_showed(zone: str) -> None:
    rng = random.Random(zone)
    years = to_microseconds(datetime.datetime(1801, 1, 1)), to_microseconds(datetime.datetime(2199, 1, 1))
    instants = [rng.randrange(*years) for _ in range(COUNT)]
    if zone != "UTC":  # both sides of every change of the clock, gaps and folds alike
        changes = [start for start, _ in list_offsets(zone)[1:]]
        instants += [change + shift for change in changes for shift in (-HOUR, -1, 0, 1, HOUR)]
    stored = pa.array([instant - UNIX_EPOCH for instant in instants], pa.int64()).cast(pa.timestamp("us", "UTC"))
    place = ZoneInfo(zone)
    local = [to_datetime(instant).replace(tzinfo=UTC).astimezone(place) for instant in instants]
    assert read(stored, INSTANT, zone) == [to_microseconds(moment) for moment in local]
    assert read(stored, INSTANT, zone, read_date) == [moment.date() for moment in local]


@pytest.mark.slow
def test_both_passes_of_an_hour_that_a_clock_shows_twice_are_that_hour() -> None:
    # Summer time ended in Zurich on 2025-10-26 at 01:00 UTC: 02:30 was shown at 00:30 UTC and at 01:30 UTC.
    instants = [datetime.datetime(2025, 10, 26, hour, 30, tzinfo=UTC) for hour in (0, 1)]
    shown = to_microseconds(datetime.datetime(2025, 10, 26, 2, 30))
    assert read(pa.array(instants, pa.timestamp("us", "UTC")), INSTANT, "Europe/Zurich") == [shown, shown]


def test_a_time_without_a_zone_is_read_as_it_is() -> None:
    # The second is in the hour that Zurich skipped on 2025-03-30.
    times = [datetime.datetime(2025, 10, 26, 2, 30), datetime.datetime(2025, 3, 30, 2, 30), None]
    expected = [None if time is None else to_microseconds(time) for time in times]
    assert read(pa.array(times, pa.timestamp("us")), "TIMESTAMP", "Europe/Zurich") == expected


@pytest.mark.slow
def test_every_stored_type_of_a_time_means_the_same() -> None:
    wanted = moments(random.Random(1), COUNT)
    for unit, name, size in (("s", "TIMESTAMP_S", SECOND), ("ms", "TIMESTAMP_MS", 1000), ("us", "TIMESTAMP", 1)):
        cut = [number // size * size for number in wanted]
        stored = pa.array([(number - UNIX_EPOCH) // size for number in cut], pa.int64()).cast(pa.timestamp(unit))
        assert read(stored, name) == cut
    days = pa.array([to_datetime(number).date() for number in wanted])
    assert read(days, "DATE") == [number // DAY * DAY for number in wanted]


def test_nanoseconds_are_cut_off_toward_the_earlier_time() -> None:
    # 1677 to 2262 is all that 64 bits of nanoseconds reach; before 1970 they are negative.
    rng = random.Random(2)
    stored = [rng.randrange(-(2**63) + 10**14, 2**63 - 10**14) for _ in range(COUNT)] + [-1, -999, -1000, -1001, 0, 999]
    expected = [number // 1000 + UNIX_EPOCH for number in stored]
    assert read(pa.array(stored, pa.int64()).cast(pa.timestamp("ns")), "TIMESTAMP_NS") == expected


@pytest.mark.slow
def test_no_stored_time_raises_and_what_is_no_time_is_null() -> None:
    far = [2**63 - 1, -(2**63) + 1, 2**62, -(2**62), LAST - UNIX_EPOCH + 1, -UNIX_EPOCH - 1]
    assert read(pa.array(far, pa.int64()).cast(pa.timestamp("us")), "TIMESTAMP") == [None] * 6
    for zone in ("UTC", "Europe/Zurich"):
        assert read(pa.array(far, pa.int64()).cast(pa.timestamp("us", "UTC")), INSTANT, zone) == [None] * 6
    seconds = [2**62, -(2**62), 2**50, -(2**50), 2**63 - 1, -(2**63) + 1]
    assert read(pa.array(seconds, pa.int64()).cast(pa.timestamp("s")), "TIMESTAMP_S") == [None] * 6
    assert read(pa.array(seconds, pa.int64()).cast(pa.timestamp("ms")), "TIMESTAMP_MS") == [None] * 6
    for value in ("infinity", "-infinity"):
        with connect_in_memory() as connection:
            for stored in ("TIMESTAMP", INSTANT, "TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"):
                source = f"(SELECT CAST('{value}' AS {stored}) AS c)"
                for zone in ("UTC", "Asia/Kolkata"):
                    reading = read_timestamp("c", stored, zone)
                    assert connection.execute(f"SELECT {reading} FROM {source}").fetchall() == [(None,)]


@pytest.mark.slow
def test_a_clock_that_would_show_another_year_shows_the_first_or_the_last_moment() -> None:
    ends = pa.array([-UNIX_EPOCH, LAST - UNIX_EPOCH], pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert read(ends, INSTANT, "America/New_York")[0] == 0
    assert read(ends, INSTANT, "Asia/Kolkata")[1] == LAST


TEXTS: dict[str, datetime.datetime | None] = {
    "2025-03-01": datetime.datetime(2025, 3, 1),
    "2025-03-01 10:00": datetime.datetime(2025, 3, 1, 10),
    "2025-03-01T10:00:59": datetime.datetime(2025, 3, 1, 10, 0, 59),
    "2025-03-01 10:00:00.5": datetime.datetime(2025, 3, 1, 10, 0, 0, 500_000),
    "2025-03-01 10:00:00.123456999": datetime.datetime(2025, 3, 1, 10, 0, 0, 123_456),
    # Zurich was an hour ahead of UTC.
    "2025-03-01T10:00:00Z": datetime.datetime(2025, 3, 1, 11),
    "2025-03-01 10:00:00+00": datetime.datetime(2025, 3, 1, 11),
    "2025-03-01 10:00:00 +0530": datetime.datetime(2025, 3, 1, 5, 30),
    "2025-03-01T10:00:00.25-08:00": datetime.datetime(2025, 3, 1, 19, 0, 0, 250_000),
    "2025-07-01 23:30-00:00": datetime.datetime(2025, 7, 2, 1, 30),
    "0001-01-01 00:00:00": datetime.datetime(1, 1, 1),
    "9999-12-31 23:59:59.999999": datetime.datetime.max,
    "0001-01-01 00:00:00+01": None,
    "2025-02-29": None,
    "2025-03-01 24:00:00": None,
    "2025-03-01 10:00:60": None,
    "2025-03-01 10": None,
    "2025-03-01 10:00:00 Europe/Zurich": None,
    "2025-03-01 10:00:00+25": None,
    "01.03.2025": None,
    "infinity": None,
    "": None,
    " 2025-03-01": None,
    "2025-03-01\n": None,
    "now": None,
}


@pytest.mark.slow
def test_texts_are_read_as_iso_8601_with_and_without_an_offset() -> None:
    expected = [None if moment is None else to_microseconds(moment) for moment in TEXTS.values()]
    assert read(pa.array(list(TEXTS)), "VARCHAR", "Europe/Zurich") == expected


@pytest.mark.slow
def test_what_was_lost_is_counted_for_the_owner() -> None:
    frame = pa.table(
        {
            "t": pa.array([0, 2**62, None], pa.int64()).cast(pa.timestamp("us")),
            "d": pa.array([0, 2**62, -(2**62)], pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )
    shape = TableSchema("r", (("t", Type.TIMESTAMP), ("d", Type.DATE)), None, (), (("d", "Europe/Zurich"),))
    engine = DuckDBEngine([shape], None, {"r": frame})
    try:
        assert engine.tables["r"].misfits == {"t": 1, "d": 2}
    finally:
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "stored"), [("timestamp", "us"), ("date", "us"), ("timestamp", "ns")])
def test_a_time_that_is_cut_or_moved_is_no_unit(kind: str, stored: str) -> None:
    frame = pa.table({"t": pa.array([0, 1], pa.int64()).cast(pa.timestamp(stored))})
    with pytest.raises(DataError, match=r"r.t says whose row it is"):
        DuckDBEngine([TableSchema("r", (("t", Type(kind)),), "t")], None, {"r": frame})


def counts(engine: Any, *scalars: Scalar) -> Any:
    """How many rows each combination of values has."""
    source = Scan("r", (("t", "t"), ("d", "d")))
    keys = tuple(GroupKey(scalar, None) for scalar in scalars)
    return engine.run(Aggregation(source, None, None, keys, ContributionBounds(1, 1), (ExactStatistic("count", None),)))


INSTANTS = [
    *(datetime.datetime(2025, 10, 26, hour, 30, 0, 1, tzinfo=UTC) for hour in range(4)),
    *(datetime.datetime(2025, 3, 30, hour, 59, 59, 999_999, tzinfo=UTC) for hour in range(4)),
    datetime.datetime(1960, 5, 5, 23, 30, tzinfo=UTC),
    datetime.datetime(1850, 1, 1, tzinfo=UTC),
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    datetime.datetime(9999, 12, 31, 12, tzinfo=UTC),
    None,
]


def expected_counts(zone: str) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for instant in INSTANTS:
        key: tuple[Any, ...] = (None, None)
        if instant is not None:
            local = to_microseconds(instant) + _offset(instant, zone)
            key = (local, to_datetime(local).date())
        found[key] = (found.get(key, (0,))[0] + 1,)
    return found


def _offset(instant: datetime.datetime, zone: str) -> int:
    if instant.year in {1, 9999}:  # where Python has no room to move
        instant = instant.replace(year=1800 if instant.year == 1 else 2199)
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset // datetime.timedelta(microseconds=1)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich", *(["Asia/Kolkata"] if FULL else [])])
def test_every_engine_reads_instants_alike(zone: str, postgres: str, spark: Any, tmp_path: Any) -> None:
    import psycopg

    from tacit.engines.postgres import PostgresEngine
    from tacit.engines.spark import SparkEngine

    zones = (("t", zone), ("d", zone)) if zone != "UTC" else ()
    shape = TableSchema("r", (("t", Type.TIMESTAMP), ("d", Type.DATE)), None, (), zones)
    frame = pa.table({name: pa.array(INSTANTS, pa.timestamp("us", "UTC")) for name in "td"})
    engines = [DuckDBEngine([shape], None, {"r": frame})]
    schema = f"stamps_{zone.lower().replace('/', '_')}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.r (t timestamptz, d timestamptz)")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {schema}.r VALUES (%s, %s)", [(instant, instant) for instant in INSTANTS])
    engines.append(PostgresEngine([shape], in_schema(postgres, schema)))
    text = [None if i is None else i.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0") + "Z" for i in INSTANTS]
    rows = spark.createDataFrame([(each,) for each in text], "x STRING").selectExpr(
        "CAST(x AS TIMESTAMP) AS t", "CAST(x AS TIMESTAMP) AS d"
    )
    engines.append(SparkEngine([shape], spark, {"r": rows}))
    try:
        for engine in engines:
            assert counts(engine, ColumnReference("t"), ColumnReference("d")) == expected_counts(zone), type(engine)
    finally:
        for engine in engines:
            engine.close()


@pytest.mark.slow
def test_a_zone_that_the_server_does_not_know_is_said_at_open(postgres: str) -> None:
    import psycopg

    from tacit.engines.postgres import PostgresEngine

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA nowhere; CREATE TABLE nowhere.r (t timestamptz)")
    shape = TableSchema("r", (("t", Type.TIMESTAMP),), None, (), (("t", "Mars/Olympus"),))
    with pytest.raises(DataError, match="Mars/Olympus"):
        PostgresEngine([shape], in_schema(postgres, "nowhere"))


# What is computed of a timestamp, against the calendars of Python and of DuckDB.


def leaf(node: Scalar) -> TypedScalar | None:
    return TypedScalar(T, Type.TIMESTAMP, Fraction(0), Fraction(LAST), Fraction(1)) if node == T else None


def bound(function: Function, *before: Any) -> Scalar:
    return bind(Call(function, (*map(Literal, before), T)), leaf, rows=True).scalar


def truncated(unit: str, moment: datetime.datetime) -> datetime.datetime:
    """By Python's own calendar, field by field."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - datetime.timedelta(days=moment.weekday())
        case "day":
            return midnight
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
    return moment.replace(microsecond=0)


PARTS = {
    Function.YEAR: lambda m: m.year,
    Function.QUARTER: lambda m: (m.month - 1) // 3 + 1,
    Function.MONTH: lambda m: m.month,
    Function.DAY: lambda m: m.day,
    Function.WEEKDAY: lambda m: m.isoweekday(),
    Function.WEEK: lambda m: m.isocalendar().week,
    Function.HOUR: lambda m: m.hour,
    Function.MINUTE: lambda m: m.minute,
    Function.SECOND: lambda m: m.second,
}


@pytest.mark.slow
def test_functions_of_timestamps_are_those_of_python_s_calendar() -> None:
    for number in moments(random.Random(3), COUNT):
        moment = to_datetime(number)
        for unit in DATE_UNITS + TIME_UNITS:
            found = evaluate(bound(Function.DATE_TRUNC, unit), {"t": number}) if number % 7 == 0 or FULL else None
            assert found is None or to_datetime(found) == truncated(unit, moment)
        assert evaluate(bind(Call(Function.CAST, (T, Literal("date"))), leaf, rows=True).scalar, {"t": number}) == (
            moment.date()
        )
        for part, of in PARTS.items():
            assert number % 5 or evaluate(bound(part), {"t": number}) == of(moment)


def test_functions_of_timestamps_are_those_of_duckdb_s_own_timestamps() -> None:
    numbers = moments(random.Random(4), 5 * COUNT)
    stored = pa.array([number - UNIX_EPOCH for number in numbers], pa.int64()).cast(pa.timestamp("us"))
    asked = []
    for unit in DATE_UNITS + TIME_UNITS:
        asked.append((write_scalar(bound(Function.DATE_TRUNC, unit)), f"epoch_us(date_trunc('{unit}', c)::TIMESTAMP)"))
    asked = [(ours, f"{theirs} + {UNIX_EPOCH}") for ours, theirs in asked]
    asked += [(write_scalar(bound(part)), f"extract({part} FROM c)") for part in PARTS]
    asked.append((write_scalar(bind(Call(Function.CAST, (T, Literal("date"))), leaf, rows=True).scalar), "c::DATE"))
    differ = ", ".join(f"count(*) FILTER ({ours} IS DISTINCT FROM {theirs})" for ours, theirs in asked)
    with connect_in_memory() as connection:
        connection.register("here", pa.table({"t": pa.array(numbers, pa.int64()), "c": stored}))
        row = connection.execute(f"SELECT {differ} FROM here").fetchone()
    assert row == (0,) * len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_functions_of_timestamps_are_alike_in_every_engine(kind: str, computed: Any) -> None:
    rows = [{"t": number} for number in moments(random.Random(5), 300)]
    nodes = [bound(Function.DATE_TRUNC, unit) for unit in DATE_UNITS + TIME_UNITS] + [bound(part) for part in PARTS]
    nodes.append(bind(Call(Function.CAST, (T, Literal("date"))), leaf, rows=True).scalar)
    found = computed(kind, nodes, rows, {"t": Type.TIMESTAMP})
    for row, values in zip(rows, found, strict=True):
        assert tuple(values) == tuple(evaluate(node, row) for node in nodes)


@pytest.mark.slow
def test_functions_of_timestamps_are_those_of_postgresql_s_own(postgres: str) -> None:
    import psycopg

    numbers = moments(random.Random(6), 300)
    with psycopg.connect(postgres) as connection:
        for unit in DATE_UNITS + TIME_UNITS:
            theirs = connection.execute(
                f"SELECT date_trunc('{unit}', c) FROM unnest(%s::timestamp[]) WITH ORDINALITY AS r(c, i) ORDER BY i",
                ([to_datetime(number) for number in numbers],),
            ).fetchall()
            scalar = bound(Function.DATE_TRUNC, unit)
            assert [to_datetime(evaluate(scalar, {"t": number})) for number in numbers] == [row[0] for row in theirs]


def test_hours_minutes_and_seconds_between_two_are_as_duckdb_counts_them() -> None:
    rng = random.Random(7)
    pairs = [(rng.randrange(LAST), rng.randrange(LAST)) for _ in range(COUNT)]
    with connect_in_memory() as connection:
        for unit, period in (("hour", HOUR), ("minute", MINUTE), ("second", SECOND)):
            ends = {name: pa.array([pair[side] - UNIX_EPOCH for pair in pairs]) for side, name in enumerate("ab")}
            connection.register("here", pa.table({name: end.cast(pa.timestamp("us")) for name, end in ends.items()}))
            theirs = connection.execute(f"SELECT date_diff('{unit}', a, b) FROM here").fetchall()
            assert [late // period - early // period for early, late in pairs] == [row[0] for row in theirs]
