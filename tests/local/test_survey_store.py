"""What a collector keeps: nothing that was acknowledged is lost, and nothing counts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.support.counts import FULL

from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.local.survey import store as storing
from tacit.local.survey.load import parse_survey
from tacit.local.survey.reports import SurveyReport
from tacit.local.survey.store import ReportStore, is_report_store, parse_store, read_store
from tacit.sampling.bits import ReplayBits

ENTRIES = {
    "id": "kept",
    "questions": [
        {"name": "a", "text": "?", "kind": "yes-no", "epsilon": 1},
        {"name": "b", "text": "?", "kind": "several", "options": ["x", "y", "z"], "epsilon": 1},
    ],
}
SURVEY = parse_survey(ENTRIES)
STEP = 1 if FULL else 11


def reports(count, seed=b"reports"):
    bits = ReplayBits(seed)
    return [SURVEY.respond([n % 2, "010"], bits) for n in range(count)]


def test_what_is_added_is_there_after_reopening(tmp_path):
    path = tmp_path / "kept.reports"
    with ReportStore(path, SURVEY) as store:
        assert store.add(reports(5)) == [True] * 5
        counts = store.counts
    with ReportStore(path, SURVEY) as store:
        assert store.counts == counts and counts.users == 5
        assert store.has_report(reports(1)[0])
    kept = read_store(path, SURVEY)
    assert kept.counts == counts and len(kept.ids) == 5
    assert path.stat().st_mode & 0o077 == 0  # for its owner's eyes


def test_an_id_counts_once_whatever_it_says(tmp_path):
    first, second = reports(2)
    again = SurveyReport(first.survey, first.id, second.answers)
    with ReportStore(tmp_path / "kept.reports", SURVEY) as store:
        assert store.add([first, again, second]) == [True, False, True]
        assert store.add([again, first]) == [False, False]
        assert store.counts.users == 2
    with ReportStore(tmp_path / "kept.reports", SURVEY) as store:
        assert store.add([first]) == [False]


def test_a_file_cut_at_any_byte_loses_only_the_line_that_was_cut(tmp_path):
    path = tmp_path / "kept.reports"
    with ReportStore(path, SURVEY) as store:
        store.add(reports(3))
    whole = path.read_bytes()
    ends = {place + near for place, byte in enumerate(whole) if byte == ord("\n") for near in (0, 1, 2)}
    for size in sorted({*range(0, len(whole), STEP), *ends} - {len(whole) + 1}):
        path.write_bytes(whole[:size])
        lines = whole[:size].count(b"\n")
        assert read_store(path, SURVEY).counts.users == max(0, lines - 1)  # reading repairs nothing
        assert path.stat().st_size == size
        is_cut = size > 0 and whole[size - 1] != ord("\n")
        assert read_store(path, SURVEY).is_truncated == is_cut
        with ReportStore(path, SURVEY) as store:
            assert store.is_truncated == is_cut
            assert store.counts.users == max(0, lines - 1)
            store.add(reports(1, b"another"))
        kept = path.read_bytes()
        assert kept.endswith(b"\n") and kept.count(b"\n") == max(1, lines) + 1


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path):
    with ReportStore(tmp_path / "mine.reports", SURVEY):
        pass
    with ReportStore(tmp_path / "other.reports", parse_survey({**ENTRIES, "id": "other"})):
        pass
    mine, other = ((tmp_path / f"{name}.reports").read_bytes() for name in ("mine", "other"))
    path = tmp_path / "kept.reports"
    for content in (b'{"name":"thesis"}', reports(1)[0].to_json().encode(), other[:-1], mine[:-1] + b" ", b"\0"):
        path.write_bytes(content)
        for opening in (ReportStore, read_store):
            with pytest.raises(Refused, match=r"line 1 of kept\.reports is damaged, or it is not a store") as caught:
                opening(path, SURVEY)
            assert caught.value.code is ErrorCode.REPORT
            assert path.read_bytes() == content


def test_a_line_that_is_damaged_is_refused_not_skipped(tmp_path):
    path = tmp_path / "kept.reports"
    with ReportStore(path, SURVEY) as store:
        store.add(reports(3))
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"\n") + 20] ^= 1  # in the second line
    path.write_bytes(whole)
    for opening in (ReportStore, read_store):
        with pytest.raises(Refused, match=r"line 2 of kept\.reports is damaged") as caught:
            opening(path, SURVEY)
        assert caught.value.code is ErrorCode.REPORT
    assert path.read_bytes() == whole


def test_reports_of_another_survey_stay_apart(tmp_path):
    other = parse_survey({**ENTRIES, "id": "other"})
    with ReportStore(tmp_path / "kept.reports", SURVEY) as store:
        store.add(reports(1))
        with pytest.raises(Refused, match="another survey"):
            store.add([other.respond([0, "000"], ReplayBits(b"o"))])
    with pytest.raises(Refused, match="the reports of another survey") as caught:
        ReportStore(tmp_path / "kept.reports", other)
    assert caught.value.fix.startswith("undo the change to the survey")


def test_two_stores_of_one_survey_become_one(tmp_path):
    here, there = tmp_path / "here.reports", tmp_path / "there.reports"
    with ReportStore(there, SURVEY) as store:
        store.add(reports(5))
    data = there.read_bytes()
    assert is_report_store(data) and not any(
        map(is_report_store, (b"", b"{}", reports(1)[0].to_json().encode(), data[3:]))
    )
    with ReportStore(here, SURVEY) as store:
        store.add([*reports(2), *reports(3, b"others")])
        # two are in both
        assert store.add(parse_store(data, there, SURVEY)) == [False] * 2 + [True] * 3
        assert store.counts.users == 8
    with pytest.raises(Refused, match="the reports of another survey"):
        parse_store(data, there, parse_survey({**ENTRIES, "id": "other"}))
    with pytest.raises(Refused, match=r"line 2 of there\.reports is damaged"):
        parse_store(data.replace(b"answers", b"Answers", 1), there, SURVEY)


def test_a_bad_report_in_a_batch_leaves_the_file_as_it_is(tmp_path):
    good = reports(1)[0]
    with ReportStore(tmp_path / "kept.reports", SURVEY) as store:
        with pytest.raises(Refused):
            store.add([good, SurveyReport(SURVEY.digest, "0" * 32, (7, "000"))])
        assert store.counts.users == 0 and store.add([good]) == [True]


def test_two_collectors_cannot_append_to_one_file(tmp_path):
    with ReportStore(tmp_path / "kept.reports", SURVEY), pytest.raises(ParameterError, match="another collector has"):
        ReportStore(tmp_path / "kept.reports", SURVEY)
    ReportStore(tmp_path / "kept.reports", SURVEY).close()


def test_what_cannot_be_synced_is_not_acknowledged_and_nothing_stands_after_it(tmp_path, monkeypatch, caplog):
    path = tmp_path / "kept.reports"
    first, second, third = reports(3)
    with ReportStore(path, SURVEY) as store:
        store.add([first])
        before = path.read_bytes()

        def full(file):
            raise OSError(28, "no space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(storing.os, "fsync", full)
            with pytest.raises(TacitError, match="no report was accepted") as caught:
                store.add([second])
            with pytest.raises(TacitError, match="no report was accepted"):  # and not before a sync succeeds
                store.add([third])
        assert caught.value.code is ErrorCode.BUSY
        assert store.counts.users == 1 and path.read_bytes() == before
        assert store.add([third, second]) == [True, True]  # once there is room it goes on, at the last whole line
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]  # once each
    assert "no space left on device" in caplog.text and "can be written again" in caplog.text
    assert read_store(path, SURVEY).counts.users == 3


def test_a_disk_that_is_full_takes_nothing_until_there_is_room(tmp_path):
    """The real thing: a limit on the size of files, in a process of its own."""
    code = f"""
import resource, signal
from pathlib import Path
from tacit.errors import TacitError
from tacit.local.survey.load import parse_survey
from tacit.local.survey.store import ReportStore, read_store
from tacit.sampling.bits import SystemBits
survey = parse_survey({ENTRIES!r})
path = Path("kept.reports")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with ReportStore(path, survey) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    taken = 0
    try:
        for _ in range(100):
            store.add([survey.respond([1, "010"], SystemBits())])
            taken += 1
    except TacitError as error:
        print(error.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    for _ in range(3):  # there is room again
        store.add([survey.respond([1, "010"], SystemBits())])
        taken += 1
print(taken == read_store(path, survey).counts.users > 5, path.read_bytes().endswith(b"\\n"))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["busy", "True", "True"]


def test_a_collector_that_is_killed_has_kept_all_it_acknowledged(tmp_path):
    code = f"""
from pathlib import Path
from tacit.local.survey.load import parse_survey
from tacit.local.survey.store import ReportStore
from tacit.sampling.bits import SystemBits
survey = parse_survey({ENTRIES!r})
with ReportStore(Path("kept.reports"), survey) as store:
    while True:
        report = survey.respond([1, "010"], SystemBits())
        store.add([report])
        print(report.id, flush=True)
"""
    running = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    told = [running.stdout.readline() for _ in range(50)]
    os.kill(running.pid, signal.SIGKILL)
    told += [line for line in running.stdout if line.endswith("\n")]
    running.stdout.close()
    running.wait(20)
    kept = read_store(tmp_path / "kept.reports", SURVEY).ids
    assert {bytes.fromhex(line.strip()) for line in told} <= kept
    assert len(told) <= len(kept) <= len(told) + 1  # one may have been on its way
