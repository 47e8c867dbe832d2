"""Which tests full counts change."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import counted

TESTS = Path(__file__).parent


def test_a_file_that_names_the_counts_is_found_directly_and_over_others(monkeypatch, tmp_path):
    monkeypatch.setattr(counted, "ROOT", tmp_path)
    (tmp_path / "tests" / "support").mkdir(parents=True)
    (tmp_path / "tests" / "cli").mkdir()
    texts = {
        "tests/support/worlds.py": "from tests.support.counts import some",
        "tests/support/words.py": "WORDS = 3",
        "tests/cli/conftest.py": "import hypothesis.strategies",
        "tests/test_counts.py": "from tests.support.counts import FULL",
        "tests/test_over_another.py": "from tests.support import worlds",
        "tests/test_fixture.py": "def test_it(full): pass",
        "tests/test_examples.py": "from hypothesis import given",
        "tests/test_plain.py": "from tests.support import words\nimport hypothetical",
        "tests/cli/test_plain.py": "import os",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = {name for name in texts if "/test_" in name and counted.is_counted(tmp_path / name)}
    assert found == set(texts) - {name for name in texts if "/test_" not in name} - {"tests/test_plain.py"}


def test_no_file_that_says_full_is_left_out():
    """By another way: the word itself, and what hypothesis and the counts call their own."""
    word = re.compile(r"\bFULL\b(?!\b.*(JOIN|synchronous))|@given\b|\benough\(|\bexamples\(")
    files = sorted(TESTS.rglob("test_*.py"))
    missed = [file for file in files if word.search(file.read_text()) and not counted.is_counted(file)]
    assert [file.name for file in missed if file != Path(__file__)] == ["test_ledger_file.py"]  # PRAGMA of SQLite
