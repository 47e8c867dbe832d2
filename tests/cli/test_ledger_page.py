"""The commands on the page about the ledger print what it shows."""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "ledger.md"
BLOCK = re.compile(r"^ *```console\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def same_everywhere(shown):
    """Without hashes, keys, times and folders, which differ from run to run."""
    for pattern, word in (
        (r"[0-9a-f]{12,}", "HASH"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00)?", "TIME"),
        (r"/\S*/", "/"),
    ):
        shown = re.sub(pattern, word, shown)
    return shown.splitlines()


def test_the_commands_print_what_the_page_shows(tacit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = "".join(textwrap.dedent(block) for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    printed = ""
    for line in shown.splitlines():
        match shlex.split(line) if line.startswith("$ ") else []:
            case ["$", "cd", folder]:
                monkeypatch.chdir(folder)
            case ["$", "cp", source, target]:
                shutil.copy(source, target)
            case ["$", "tacit", *arguments, ">", file]:
                Path(file).write_text(tacit(*arguments).stdout)
            case ["$", "tacit", *arguments]:
                done = tacit(*arguments)
                printed += f"{line}\n{done.stdout}{done.stderr}"
                continue
            case _:
                continue
        printed += f"{line}\n"
    assert same_everywhere(printed) == same_everywhere(shown)
