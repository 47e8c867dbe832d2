"""Collecting with SQL: where a report is a number, how often each came is all there is to know.

>>> from tacit.local import Grid, Hadamard, Hybrid
>>> print(query("answers", "report"))
SELECT "report" AS report, COUNT(*) AS reports FROM "answers" GROUP BY 1
>>> from_rows(Hadamard(4, 1), [(0, 2), (3, 1)]).users
3
>>> hours = Hybrid(Grid(0, 24, steps=96), 1)
>>> from_rows(hours, [(0, 2), (50, 1)]) == hours.tally([0, 50, 0])
True
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np

from tacit.errors import Code, ParameterError, Refused
from tacit.local.average import Mean
from tacit.local.frequency import Counts, Frequency
from tacit.local.summary import MOST_USERS, Summary, survey_name
from tacit.local.tally import Tally

Path: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = Path | Sequence[Path]
Rows: TypeAlias = Iterable[tuple[Any, Any]]


@runtime_checkable
class Grouped(Protocol):
    """A protocol whose reports are numbers below a limit, few enough to count each: k-ary, Hadamard, projective.

    Those for means are grouped too, and need no more than the limit.
    """

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""

    def support_of_counts(self, counts: Counts) -> Counts:
        """The supports, from how often each report came."""


def query(table: str, column: str) -> str:
    """The statement that counts reports, for an engine of standard SQL: its rows go to `from_rows`."""
    return f"SELECT {_quoted(column)} AS report, COUNT(*) AS reports FROM {_quoted(table)} GROUP BY 1"


@overload
def from_rows(protocol: Frequency, rows: Rows, survey: str = "") -> Summary: ...
@overload
def from_rows(protocol: Mean, rows: Rows, survey: str = "") -> Tally: ...
def from_rows(protocol: Frequency | Mean, rows: Rows, survey: str = "") -> Summary | Tally:
    """What was collected, from reports and how often each came. A report that the protocol does not send is refused.

    It is exactly the summary, or for a mean the tally, of all those reports.
    """
    counts = np.zeros(_limit(protocol), dtype=np.int64)
    users = 0
    for report, times in _pairs(rows):
        if report is None or not 0 <= report < len(counts):
            raise _unknown(protocol)
        if times is None or times < 0:
            raise Refused(Code.REPORT, "how often a report came is no count", fix="give each report with its COUNT(*)")
        users += times
        if users >= MOST_USERS:  # the transforms double it
            raise Refused(Code.REPORT, "these are 2^62 reports or more", fix="check how often each report came")
        counts[report] += times
    if isinstance(protocol, Mean):
        return Tally.empty(protocol, survey).add_counts(counts)
    assert isinstance(protocol, Grouped)
    return Summary(protocol, users, protocol.support_of_counts(counts), survey_name(survey))


@overload
def from_parquet(protocol: Frequency, path: Paths, column: str, survey: str = "") -> Summary: ...
@overload
def from_parquet(protocol: Mean, path: Paths, column: str, survey: str = "") -> Tally: ...
def from_parquet(protocol: Frequency | Mean, path: Paths, column: str, survey: str = "") -> Summary | Tally:
    """What a column of reports in Parquet files comes to, counted by DuckDB. A path may hold a pattern; several may do.

    Nothing but the counts leaves DuckDB.
    """
    import duckdb

    text = f"SELECT {_quoted(column)}, COUNT(*) FROM read_parquet(?) GROUP BY 1 LIMIT {_limit(protocol) + 1}"
    files = _files(path)
    with duckdb.connect() as connection:
        try:
            rows = connection.execute(text, [files]).fetchall()
        except duckdb.Error as problem:
            raise Refused(Code.REPORT, f"the reports cannot be read: {problem}", fix="check path and column") from None
    return from_rows(protocol, _few(protocol, rows), survey)


@overload
def from_spark(protocol: Frequency, frame: Any, column: str, survey: str = "") -> Summary: ...
@overload
def from_spark(protocol: Mean, frame: Any, column: str, survey: str = "") -> Tally: ...
def from_spark(protocol: Frequency | Mean, frame: Any, column: str, survey: str = "") -> Summary | Tally:
    """What a column of reports in a Spark DataFrame comes to, counted there: nothing but the counts is collected."""
    from pyspark.errors import PySparkException

    most = _limit(protocol) + 1
    try:
        reports = frame["`" + _name(column).replace("`", "``") + "`"].alias("report")
        rows = [tuple(row) for row in frame.groupBy(reports).count().limit(most).collect()]
    except PySparkException as problem:
        raise Refused(Code.REPORT, f"the reports cannot be read: {problem}", fix="check frame and column") from None
    return from_rows(protocol, _few(protocol, rows), survey)


def _limit(protocol: Frequency | Mean) -> int:
    """How many different reports there are."""
    if isinstance(protocol, Mean | Grouped):
        return protocol.report_limit
    if not isinstance(protocol, Frequency):
        fix = "KAry(domain, epsilon), say"
        raise ParameterError("protocol", f"needs a protocol, got {type(protocol).__name__}", fix=fix)
    raise ParameterError("protocol", f"{protocol.kind} reports are no numbers to group by", fix="add the reports")


def _few(protocol: Frequency | Mean, rows: list[Any]) -> list[Any]:
    """The rows, if there are no more than there are different reports; at most one more of them was fetched."""
    if len(rows) > _limit(protocol):
        raise _unknown(protocol)
    return rows


def _pairs(rows: Rows) -> Iterable[tuple[int | None, int | None]]:
    """Each report and how often it came, as integers; None is what is no integer."""
    try:
        for report, times in rows:
            yield _integer(report), _integer(times)
    except (TypeError, ValueError):
        what = "needs pairs of a report and how often it came"
        raise ParameterError("rows", what, fix="rows=[(0, 12), (1, 5)], or frame.values") from None


def _integer(given: Any) -> int | None:
    """Python's integers and other libraries'; no boolean, and no float even where it has no fraction."""
    try:
        return None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return None


def _files(path: Paths) -> str | list[str]:
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    files = list(path) if isinstance(path, Iterable) and not isinstance(path, bytes) else []
    if not files or not all(isinstance(each, str | os.PathLike) for each in files):
        raise ParameterError("path", "needs a path, or a list of them", fix='path="reports/*.parquet", say')
    return [os.fspath(each) for each in files]


def _unknown(protocol: Frequency | Mean) -> Refused:
    what = f"there are reports that {protocol.kind} does not send"
    return Refused(Code.REPORT, what, fix=f"keep those from 0 to {_limit(protocol) - 1}")


def _name(column: str) -> str:
    if not isinstance(column, str):
        raise ParameterError("column", f"needs a name, got {type(column).__name__}", fix='column="report", say')
    return column


def _quoted(name: str) -> str:
    return '"' + _name(name).replace('"', '""') + '"'
