"""Files and outputs that the system does not read or write: one message, an exit code, and nothing is charged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import output
from tacit.errors import ParameterError

COUNT = "SELECT COUNT(*) AS n FROM t"
ASK = ("ask", "-p", "t.toml", "--as", "ada", COUNT, "--epsilon", "0.25")
LONG = "y" * 300


def fail(*given: object, **named: object) -> None:
    raise PermissionError(13, "Permission denied", "some/file")


def test_an_error_of_the_system_is_one_message_with_the_file_and_the_reason(tacit, folder, monkeypatch):
    monkeypatch.setattr("tacit.policy.load.load", fail)
    shown = tacit("schema", "-p", "t.toml", cwd=folder)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("error [failed]: some/file cannot be read or written: Permission denied\n  fix: ")
    told = tacit("schema", "-p", "t.toml", "--json", cwd=folder)
    assert told.returncode == 1
    assert json.loads(told.stdout)["error"]["what"] == "some/file cannot be read or written: Permission denied"


def test_a_log_that_cannot_be_written_is_an_error_of_the_command(process, folder):
    shown = process("schema", "-p", "t.toml", cwd=folder, TACIT_LOG="none/log")
    assert shown.returncode == 1
    assert "none/log cannot be read or written: No such file" in shown.stderr and "Traceback" not in shown.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_answer_that_cannot_be_shown_is_charged_once(tacit, folder, more):
    command = [sys.executable, "-m", "tacit.cli.main", *ASK, *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error [failed]: the output cannot be written: No space left on device\n")
    assert "the answer is charged and stored, and asking the same again is free" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert "a repeat, free" in tacit(*ASK, cwd=folder).stdout
    assert "has spent epsilon 0.25 " in tacit("budget", "-p", "t.toml", "--as", "ada", cwd=folder).stdout


def test_a_refusal_whose_json_nobody_reads_keeps_its_exit_code(folder):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tacit.cli.main", "explain", "-p", "t.toml", "--as", "bob", COUNT]
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [*command, "--epsilon", "1", "--json"],
            cwd=folder,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "there is no analyst 'bob'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("plot", "what"),
    [
        ("taken.svg", "taken.svg is a folder"),
        (f"{LONG}.svg", "cannot be written: File name too long"),
        ("none/n.svg", "there is no folder none"),
    ],
)
def test_nothing_is_charged_for_a_picture_that_cannot_be_saved(tacit, folder, plot, what):
    (folder / "taken.svg").mkdir()
    shown = tacit(*ASK, "--plot", plot, cwd=folder)
    assert shown.returncode == 2 and what in shown.stderr
    assert not (folder / "t.ledger").exists()


@pytest.mark.parametrize("name", ["new.svg", "there.svg"])
def test_a_picture_that_this_user_may_not_write_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "there.svg").touch()
    output.check_plot_path(tmp_path / name)
    monkeypatch.setattr(output.os, "access", lambda *given, **named: False)
    with pytest.raises(ParameterError, match="cannot be written: Permission denied"):
        output.check_plot_path(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("t.parquet", "-p", f"{LONG}.toml"), 2, "cannot be written: file name too long"),
        (("t.parquet", "-p", "none/new.toml", "--guided"), 2, "cannot be written: no such file or directory"),
        ((f"{LONG}.csv", "-p", "new.toml"), 5, "cannot be read: File name too long"),
        (("t.parquet/t.csv", "-p", "new.toml"), 5, "there is no t.parquet/t.csv"),
        (("caf\udce9.csv", "-p", "new.toml"), 2, "is not UTF-8, so no policy can name it"),
    ],
)
def test_a_path_that_cannot_be_used_is_said_before_anything_is_asked_or_written(tacit, folder, arguments, code, what):
    shown = tacit("init", *arguments, cwd=folder)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert what in shown.stderr
    assert not (folder / "new.toml").exists()


def test_a_policy_that_this_user_may_not_write_is_said_before_anything_is_asked(tacit, folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *given, **named: False)
    shown = tacit("init", "t.parquet", "-p", "new.toml", "--guided", cwd=folder)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "new.toml cannot be written: permission denied" in shown.stderr
