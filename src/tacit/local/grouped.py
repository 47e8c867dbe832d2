"""Collecting with SQL: where a report is a number, how often each came is all there is to know.

>>> from tacit.local import Hadamard
>>> print(query("answers", "report"))
SELECT "report" AS report, COUNT(*) AS reports FROM "answers" GROUP BY 1
>>> from_rows(Hadamard(4, 1), [(0, 2), (3, 1)]).users
3
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit.errors import Code, ParameterError, Refused
from tacit.local.frequency import Counts, Frequency
from tacit.local.summary import Summary


@runtime_checkable
class Grouped(Protocol):
    """A protocol whose reports are numbers below a limit, few enough to count each: k-ary, Hadamard, projective."""

    @property
    def report_limit(self) -> int:
        """Reports are the integers below this."""

    def support_of_counts(self, counts: Counts) -> Counts:
        """The supports, from how often each report came."""


def query(table: str, column: str) -> str:
    """The statement that counts reports, for an engine of standard SQL: its rows go to `from_rows`."""
    return f"SELECT {_quoted(column)} AS report, COUNT(*) AS reports FROM {_quoted(table)} GROUP BY 1"


def from_rows(protocol: Frequency, rows: Iterable[tuple[int | None, int]], survey: str = "") -> Summary:
    """The summary of reports that came so often each. A report that the protocol does not send is refused."""
    counts = np.zeros(_limit(protocol), dtype=np.int64)
    assert isinstance(protocol, Grouped)
    for report, times in rows:
        if not isinstance(report, int) or isinstance(report, bool) or not 0 <= report < len(counts) or times < 0:
            raise Refused(
                Code.REPORT,
                f"there are reports that {protocol.kind} does not send",
                fix=f"keep those from 0 to {len(counts) - 1}",
            )
        counts[report] += times
    empty = Summary.empty(protocol, survey)
    return Summary(protocol, int(counts.sum()), protocol.support_of_counts(counts), empty.survey)


def from_parquet(protocol: Frequency, path: str | os.PathLike[str], column: str, survey: str = "") -> Summary:
    """The summary of a column of reports in Parquet files, counted by DuckDB; the path may hold a pattern."""
    import duckdb

    with duckdb.connect() as connection:
        text = f"SELECT {_quoted(column)}, COUNT(*) FROM read_parquet(?) GROUP BY 1 LIMIT {_limit(protocol) + 1}"
        try:
            rows = connection.execute(text, [os.fspath(path)]).fetchall()
        except duckdb.Error as problem:
            raise Refused(Code.REPORT, f"the reports cannot be read: {problem}", fix="check path and column") from None
    return from_rows(protocol, _few(protocol, rows), survey)


def from_spark(protocol: Frequency, frame: Any, column: str, survey: str = "") -> Summary:
    """The summary of a column of reports in a Spark DataFrame, counted there: nothing but the counts is collected."""
    from pyspark.errors import PySparkException

    most = _limit(protocol) + 1
    try:
        reports = frame["`" + column.replace("`", "``") + "`"].alias("report")
        rows = [tuple(row) for row in frame.groupBy(reports).count().limit(most).collect()]
    except PySparkException as problem:
        raise Refused(Code.REPORT, f"the reports cannot be read: {problem}", fix="check frame and column") from None
    return from_rows(protocol, _few(protocol, rows), survey)


def _limit(protocol: Frequency) -> int:
    """How many different reports there are."""
    if not isinstance(protocol, Grouped):
        raise ParameterError("protocol", f"{protocol.kind} reports are no numbers to group by", fix="add the reports")
    return protocol.report_limit


def _few(protocol: Frequency, rows: list[Any]) -> list[Any]:
    """The rows, if there are no more than there are different reports; at most one more of them was fetched."""
    if len(rows) > _limit(protocol):
        what = f"there are reports that {protocol.kind} does not send"
        raise Refused(Code.REPORT, what, fix=f"keep those from 0 to {_limit(protocol) - 1}")
    return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
