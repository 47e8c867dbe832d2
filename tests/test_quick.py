"""Which tests the inner loop runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FILES = {
    "test_some.py": """
import pytest
def test_once(): ...
@pytest.mark.slow
def test_slow(): ...
@pytest.mark.parametrize("case", range(4))
def test_four(case): ...
@pytest.mark.parametrize("case", range(100))
def test_many(case): ...
@pytest.mark.parametrize("case", [pytest.param(0, marks=pytest.mark.slow), 1, 2, 3])
def test_but_one(case): ...
""",
    "test_slow_file.py": "import pytest\nimport not_there\npytestmark = pytest.mark.slow\ndef test_slow(): ...",
    "test_slow_and_more.py": "import pytest\npytestmark = [pytest.mark.a, pytest.mark.slow]\ndef test_slow(): ...",
    "learn/torch/test_it.py": "import not_there_either",
    "pytest.ini": "[pytest]\nmarkers = slow\n    a",
}


def test_quick_tests_run_with_three_cases_and_slow_files_are_not_imported(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "tests.support.quick", "--quick"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line] == [
        "test_once",
        "test_four[0]",
        "test_four[2]",
        "test_many[0]",
        "test_many[34]",
        "test_many[68]",
        "test_but_one[1]",
        "test_but_one[2]",
        "test_but_one[3]",
    ]
