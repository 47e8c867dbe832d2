"""The commands on the pages about the ledger and its backup print what these show."""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
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


@pytest.mark.parametrize("page", ["ledger.md", "deployment.md"])
def test_the_commands_print_what_the_page_shows(tacit, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    shown = "".join(textwrap.dedent(block) for block in BLOCK.findall((GUIDE / page).read_text(encoding="utf-8")))
    printed = ""
    for line in shown.splitlines():
        match shlex.split(line) if line.startswith("$ ") else []:
            case ["$", "cd", folder]:
                monkeypatch.chdir(folder)
            case ["$", "mkdir", folder]:
                Path(folder).mkdir()
            case ["$", "cp", source, target]:
                shutil.copy(source, target)
            case ["$", "rm", *files]:
                for file in files:
                    Path(file).unlink(missing_ok=file.endswith(("-wal", "-shm")))  # which SQLite may have removed
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
