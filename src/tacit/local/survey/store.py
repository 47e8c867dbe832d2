"""The store of reports: a file to which lines are appended, each synced to disk before it is acknowledged.

A line is a checksum and an entry, so a collector can be stopped at any moment. The first names the survey, and each
other one is a report:

    5f2a91c4 {"id":"0c1d...","answers":[1,"011",0]}

**Guarantees.** A report that was acknowledged is in the file: it is written and synced first. A line that was truncated
by a crash was never acknowledged, and is removed when the file is opened to append; `is_truncated` is then
true. A line that is damaged elsewhere is refused, not skipped. An id is accepted once.

**Nothing is removed from a file of another kind.** Where no line is complete, the file is empty or begins as the first
line of this survey's store does, or it is refused and stays as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.local.strict_json import parse
from tacit.local.survey.form import Survey
from tacit.local.survey.reports import SurveyReport
from tacit.local.survey.results import Support, SupportCounts

_FIX = "restore the file from a copy, or collect into a new one with --store"
_ID = 16  # bytes of a report's id
_log = logging.getLogger("tacit")


@dataclass(frozen=True)
class StoredReports:
    """The content of a file of reports: counts of constant size, and the ids, 16 bytes each."""

    counts: SupportCounts
    ids: frozenset[bytes]
    is_truncated: bool = False  # the last line is incomplete, and left out


def read_store(path: Path, survey: Survey) -> StoredReports:
    """Read a store without changing it; a last line that is being written is left out."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return StoredReports(SupportCounts.empty(survey), frozenset())
    except OSError as error:
        raise ParameterError("store", f"{path} cannot be read", fix=f"chmod u+r {path}") from error
    _check_beginning(data, path, survey)
    ids: set[bytes] = set()
    counts = SupportCounts.empty(survey).add(_count_reports(data, path, survey, ids))
    return StoredReports(counts, frozenset(ids), is_truncated=not data.endswith(b"\n") and bool(data))


def is_report_store(data: bytes) -> bool:
    """Return whether a file begins as a store of reports."""
    try:
        entry = _entry(data.partition(b"\n")[0])
    except ValueError:
        return False
    return entry is not None and "survey" in entry


def parse_store(data: bytes, path: Path, survey: Survey) -> list[SurveyReport]:
    """Return all reports of another collector's store of the same survey."""
    return [report for report, _ in _entries(data, path, survey)]


class ReportStore:
    """A file of reports, open to append by one process at a time."""

    def __init__(self, path: Path, survey: Survey) -> None:
        self.survey = survey
        self._path = path
        self._broken = False
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ParameterError("store", f"{path} cannot be written", fix="name another with --store") from error
        try:
            self._lock()
            data = _read_all(self._file)
            _check_beginning(data, path, survey)
            self._ids: set[bytes] = set()
            self.counts = SupportCounts.empty(survey).add(_count_reports(data, path, survey, self._ids))
            self._length = data.rfind(b"\n") + 1
            self.is_truncated = self._length < len(data)  # a crash while its last line was written
            if self.is_truncated:
                os.ftruncate(self._file, self._length)
            if not self._length:
                self._append(_first_line(survey))
            self._sync_folder()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that another process can append."""
        os.close(self._file)

    def has_report(self, report: SurveyReport) -> bool:
        """Return whether a report with this id is in the store."""
        return bytes.fromhex(report.id) in self._ids

    def add(self, reports: Sequence[SurveyReport]) -> list[bool]:
        """Append reports of this survey; for each, whether it was new. When this returns, they are on the disk.

        Of several with one id the first is accepted, whatever their answers.
        """
        fresh: list[bool] = []
        ids: set[bytes] = set()
        supports: list[Support] = []
        lines: list[bytes] = []
        for report in reports:
            if report.survey != self.survey.digest:
                raise Refused(
                    ErrorCode.REPORT, "this report answers another survey", fix="send it to its own collector"
                )
            support, name = self.survey.support(report), bytes.fromhex(report.id)
            fresh.append(name not in self._ids and name not in ids)
            if fresh[-1]:
                ids.add(name)
                supports.append(support)
                lines.append(_line({"id": report.id, "answers": list(report.answers)}))
        if lines:
            self._append(b"".join(lines))
            self._ids |= ids
            self.counts = self.counts.add(supports)
        return fresh

    def _append(self, data: bytes) -> None:
        """Write and sync; what cannot be synced is removed, and the next line is written at the same offset.

        After a failed sync the content of the disk beyond `_length` is unknown. All before it was synced. So the file
        is first truncated there, and that is synced; until this succeeds nothing is appended.
        """
        try:
            if self._broken:
                os.ftruncate(self._file, self._length)
                os.fsync(self._file)
            written = 0
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._length + written)
            os.fsync(self._file)
        except OSError as error:
            if not self._broken:  # once, not for each report that comes meanwhile
                _log.error("%s cannot be written (%s): no report is accepted", self._path.name, error.strerror)
            self._broken = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise _unwritable(self._path) from error
        self._length += len(data)
        if self._broken:
            self._broken = False
            _log.warning("%s can be written again: reports are accepted", self._path.name)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            what = f"another collector has {self._path.name} open"
            raise ParameterError("store", what, fix="stop it first, or name another with --store") from error

    def _sync_folder(self) -> None:
        """Sync the folder, so that a new file's name is on the disk too."""
        folder = os.open(self._path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _check_beginning(data: bytes, path: Path, survey: Survey) -> None:
    """Refuse a file without a complete line, unless a crash while the first line was written left it so."""
    if b"\n" not in data and not _first_line(survey).startswith(data):
        raise _refuse_line(1, path)


def _entries(data: bytes, path: Path, survey: Survey) -> Iterator[tuple[SurveyReport, Support]]:
    """Yield the reports of the complete lines, each with what it supports. The first line names the survey."""
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            entry = _entry(line)
            if entry is None:
                raise ValueError
            if number == 1:
                _check_digest(entry["survey"], path, survey)
                continue
            report = SurveyReport(survey.digest, entry["id"], tuple(entry["answers"]))
            if len(bytes.fromhex(report.id)) != _ID or not isinstance(entry["answers"], list):
                raise ValueError
            found = report, survey.support(report)
        except (ValueError, KeyError, TypeError) as error:
            raise _refuse_line(number, path) from error
        yield found


def _count_reports(data: bytes, path: Path, survey: Survey, ids: set[bytes]) -> Iterator[Support]:
    """Yield what the reports support, and add their ids to `ids`."""
    for report, support in _entries(data, path, survey):
        ids.add(bytes.fromhex(report.id))
        yield support


def _check_digest(digest: str, path: Path, survey: Survey) -> None:
    if digest != survey.digest:
        what = f"{path.name} has the reports of another survey, or of this one before it was changed"
        fix = "undo the change to the survey, or collect this one in a file of its own: --store FILE"
        raise Refused(ErrorCode.REPORT, what, fix=fix)


def _refuse_line(number: int, path: Path) -> Refused:
    what = f"line {number} of {path.name} is damaged"
    if number == 1:
        what += ", or it is not a store of reports"
    return Refused(ErrorCode.REPORT, what, fix=_FIX)


def _first_line(survey: Survey) -> bytes:
    return _line({"survey": survey.digest, "id": survey.id})


def _line(entry: dict[str, object]) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the entry of a line; None where its checksum differs. It detects accidental changes, not forgeries."""
    mark, _, text = line.partition(b" ")
    if mark != b"%08x" % zlib.crc32(text):
        return None
    found = parse(text)
    if not isinstance(found, dict):
        raise ValueError
    return found


def _read_all(file: int) -> bytes:
    """Return the content of an open file."""
    parts, place = [], 0
    while part := os.pread(file, 2**20, place):
        parts.append(part)
        place += len(part)
    return b"".join(parts)


def _unwritable(path: Path) -> TacitError:
    return TacitError(ErrorCode.BUSY, f"{path.name} cannot be written; no report was accepted", fix="try again later")
