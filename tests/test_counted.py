"""Which tests full counts change."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.support import counted
from tests.support.counts import some

TESTS = Path(__file__).parent


FILES = {
    "tests/conftest.py": """
import pytest
from tests.support.counts import FULL
@pytest.fixture
def full():
    return FULL
""",
    "tests/support/counts.py": "FULL = False",
    "tests/support/words.py": """
from tests.support.counts import some
WORDS = some("abc", 2)
OTHERS = 3
""",
    "tests/cli/conftest.py": """
import pytest
import hypothesis.strategies as st
@pytest.fixture(name="drawn")
def make():
    return st.integers()
@pytest.fixture
def plain():
    return 3
""",
    "tests/cli/test_it.py": """
import pytest
from hypothesis import given
from tests.support import words
from tests.support.words import OTHERS, WORDS as TEXTS
from tests.support.counts import FULL, enough
ROUNDS = 3 if FULL else 1
CASES = [1]
CASES.extend(range(ROUNDS))
def helper():
    return inner()
def inner():
    return enough(3)
@given(1)
def test_counted_decorated(): ...
def test_counted_by_a_fixture_of_all(full): ...
def test_counted_by_a_fixture(drawn): ...
@pytest.mark.usefixtures("drawn")
def test_counted_by_a_named_fixture(): ...
@pytest.mark.parametrize("case", CASES)
def test_counted_by_its_cases(case): ...
def test_counted_over_others(): helper()
def test_counted_by_another_file(): assert TEXTS
def test_counted_by_a_module(): assert words.OTHERS
def test_plain(plain): assert OTHERS
class TestCounted:
    def test_counted(self): helper()
""",
    "tests/cli/test_all.py": """
import pytest
from tests.support.counts import FULL
@pytest.fixture(autouse=True)
def every():
    return FULL
def test_counted(): ...
""",
    "tests/cli/test_marked.py": """
import pytest
from tests.support.counts import FULL
pytestmark = pytest.mark.skipif(FULL, reason="long")
def test_counted(): ...
""",
    "tests/cli/test_hypothetical.py": "import hypothetical\ndef test_plain(): hypothetical.given()",
}


def test_a_test_that_depends_on_the_counts_is_found_directly_and_over_others(monkeypatch, tmp_path):
    monkeypatch.setattr(counted, "ROOT", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tests = [
        (file, node.name, [each.arg for each in node.args.args] if isinstance(node, ast.FunctionDef) else [])
        for file in FILES
        if "/test_" in file
        for node in ast.parse(FILES[file]).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test")
    ]
    wrong = [
        name
        for file, name, arguments in tests
        if counted.is_counted(tmp_path / file, name, *arguments) != ("counted" in name.lower())
    ]
    assert (len(tests), wrong) == (13, [])


@pytest.mark.slow
def test_no_test_that_says_full_is_left_out():
    """By another way: the word itself, and what hypothesis and the counts call their own.

    By default in one of four files: what is left out matters where full counts are run.
    """
    word = re.compile(r"\bFULL\b(?!\b.*(JOIN|synchronous))|@given\b|\benough\(|\bexamples\(")
    missed = []
    files = {*some(sorted(TESTS.rglob("test_*.py")), 4), *TESTS.rglob("test_ledger_file.py")}
    for file in sorted(files):
        text = file.read_text()
        lines = text.split("\n")
        for node in ast.parse(text).body if word.search(text) else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min(part.lineno for part in (node, *node.decorator_list))
                is_said = word.search("\n".join(lines[first - 1 : node.end_lineno]))
                if is_said and not counted.is_counted(file, node.name, *(each.arg for each in node.args.args)):
                    missed.append(file.name)
    assert [name for name in missed if name != Path(__file__).name] == ["test_ledger_file.py"]  # PRAGMA of SQLite
