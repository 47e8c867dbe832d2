"""What the documentation shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.demo.clinic import build
from tacit.errors import Code
from tacit.policy.load import load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_ten_lines_of_the_readme_run(tmp_path):
    (code,) = blocks(ROOT / "README.md", "python")
    assert len(code.strip().splitlines()) <= 11  # ten, and an empty one
    assert re.search(r"^north +[\d,]+ +", run(code, tmp_path), re.MULTILINE)


def test_the_first_answer_runs_on_the_clinic_that_the_page_makes(tmp_path):
    (tmp_path / "clinic").mkdir()
    build(tmp_path / "clinic")
    (code,) = blocks(ROOT / "docs" / "guide" / "first-answer.md", "python")
    assert "95% interval" in run(code, tmp_path)


@pytest.mark.parametrize("page", ["mechanisms", "counting-the-cost", "choosing-epsilon", "glossary"])
def test_the_python_of_the_guide_runs(page, tmp_path):
    code = "\n".join(blocks(ROOT / "docs" / "guide" / f"{page}.md", "python"))
    run(code, tmp_path)


def test_the_figures_of_the_ledger_page_come_out(tmp_path):
    (code,) = blocks(ROOT / "docs" / "guide" / "ledger.md", "python")
    assert run(code, tmp_path).splitlines() == re.findall(r"^print.*  # (.+)$", code, re.MULTILINE) != []


def test_the_table_of_failures_has_every_code_of_the_ledger():
    page = (ROOT / "docs" / "guide" / "ledger.md").read_text(encoding="utf-8")
    table = page.partition("## Everything that can break")[2]
    told = set(re.findall(r"^\|.*\| `([a-z-]+)` \|.*\|$", table, re.MULTILINE))
    assert told == {code for code in Code if code.startswith("ledger")} | {Code.FAILED}


def test_the_policy_of_the_guide_loads(tmp_path):
    (text,) = blocks(ROOT / "docs" / "guide" / "policy.md", "toml")
    (tmp_path / "policy.toml").write_text(text)
    assert load(tmp_path / "policy.toml").table("visits") is not None


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    arguments = [str(tmp_path / "out.svg")] if "sys.argv" in example.read_text(encoding="utf-8") else []
    done = subprocess.run(
        [sys.executable, example, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
