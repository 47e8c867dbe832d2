"""A file is whole or not there; one that is made where there was none is never written over another."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.forks import in_child, outcome
from tests.support.interrupts import at_every_point

from tacit.cli import survey
from tacit.demo import clinic
from tacit.durable_files import link_draft, make_file, replace_file
from tacit.errors import ParameterError
from tacit.policy.write_policy import write_new_policy

TEXT = "# a policy\n" + "x = 1\n" * 3000


def inside(file) -> bool:
    return file.endswith(("tacit/durable_files.py", "policy/write_policy.py", "cli/survey.py", "demo/clinic.py"))


class Folders:
    """Empty folders, one after the other."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def new(self) -> Path:
        self.last = Path(tempfile.mkdtemp(dir=self.root))
        return self.last


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o777])
def test_a_file_has_the_permissions_of_the_umask_or_those_that_are_given(tmp_path, mask):
    def work() -> int:
        os.umask(mask)
        assert make_file(tmp_path / "open", b"") and make_file(tmp_path / "private", b"", 0o600)
        write_new_policy(tmp_path / "policy", "")
        found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert found == {"open": 0o666 & ~mask, "policy": 0o666 & ~mask, "private": 0o600}
        return 7

    assert outcome(in_child(work)) == 7


def test_a_file_that_is_there_is_left_as_it_is(tmp_path):
    assert make_file(tmp_path / "a", b"first") and not make_file(tmp_path / "a", b"second")
    (tmp_path / "draft").touch()
    assert not link_draft(tmp_path / "draft", tmp_path / "a") and link_draft(tmp_path / "draft", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert {file.name for file in tmp_path.iterdir()} == {"a", "b", "draft"}


def test_a_file_is_made_where_there_are_no_links(tmp_path, monkeypatch):
    def refuse(*names: Path) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert make_file(tmp_path / "a", b"first", 0o600) and not make_file(tmp_path / "a", b"second")
    assert not link_draft(tmp_path / "a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"first" and stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    with pytest.raises(FileNotFoundError):
        make_file(tmp_path / "none" / "a", b"")


def test_a_reader_sees_the_old_file_or_the_new_one_while_it_is_replaced(folders):
    seen = []

    def replace() -> None:
        (folders.new() / "a").write_bytes(b"old")
        replace_file(folders.last / "a", TEXT.encode(), 0o600)
        assert [file.name for file in folders.last.iterdir()] == ["a"]

    def look() -> None:
        seen.append((folders.last / "a").read_bytes())

    for _ in at_every_point(replace, lambda file: file.endswith("tacit/durable_files.py"), look):
        pass
    assert set(seen) == {b"old", TEXT.encode()}


def test_a_link_to_where_there_is_no_file_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "real" / "a")
    assert make_file(tmp_path / "a", b"first")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "real" / "a").read_bytes() == b"first"


def test_a_reader_sees_all_of_a_policy_or_none_while_it_is_written(folders):
    seen = []

    def read() -> None:
        path = folders.last / "a.toml"
        seen.append(path.read_text() if path.exists() else None)

    for _ in at_every_point(lambda: write_new_policy(folders.new() / "a.toml", TEXT), inside, read):
        pass
    assert set(seen) == {None, TEXT}


def test_a_full_disk_leaves_no_part_of_a_policy(tmp_path):
    def work() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.raises(ParameterError, match="cannot be written: file too large"):
            write_new_policy(tmp_path / "a.toml", TEXT)
        return 7

    assert outcome(in_child(work)) == 7 and list(tmp_path.iterdir()) == []
    write_new_policy(tmp_path / "a.toml", TEXT)


def test_a_survey_that_another_writes_at_the_same_moment_is_kept(folders):
    others = []

    def init() -> None:
        with suppress(ParameterError):
            survey.init(folders.new() / "s.toml")

    def write() -> None:
        with suppress(FileExistsError), (folders.last / "s.toml").open("x") as file:
            file.write("another's")
            others.append(folders.last)

    for _ in at_every_point(init, inside, write):
        pass
    assert len(others) > 20
    assert {(folder / "s.toml").read_text() for folder in others} == {"another's"}
    assert {len(list(folder.iterdir())) for folder in others} == {1}


def test_a_clinic_that_another_builds_and_edits_at_the_same_moment_is_kept(folders, monkeypatch):
    monkeypatch.setattr(clinic, "_write_database", lambda path: path.write_text(str(path)))
    built = {}

    def build_and_edit() -> None:
        clinic.build_clinic(folders.last).write_text("edited")
        built[folders.last] = (folders.last / clinic.DATABASE).read_text()

    for _ in at_every_point(lambda: clinic.build_clinic(folders.new()), inside, build_and_edit):
        pass
    assert len(built) > 40
    for folder, database in built.items():
        assert {file.name for file in folder.iterdir()} == {clinic.DATABASE, clinic.POLICY}
        assert (folder / clinic.DATABASE).read_text() == database
        assert (folder / clinic.POLICY).read_text() == "edited"
