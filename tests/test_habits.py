"""The workflow, the hooks and the citation name what is there, and every package has quick tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import tacit

ROOT = Path(__file__).parent.parent
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    return found


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_workflow_calls_targets_that_exist() -> None:
    called = {
        name: re.findall(r"\bmake ([a-z-]+)", "\n".join(commands(job))) for name, job in workflow()["jobs"].items()
    }
    assert all(called.values())
    assert {target for targets in called.values() for target in targets} <= TARGETS


def test_the_workflow_runs_all_tests_on_every_platform_and_version() -> None:
    jobs = workflow()["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-24.04", "ubuntu-24.04-arm", "macos-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]  # as text: 3.10 would be 3.1
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert least == f">={matrix['python'][0]}"
    assert any("make test" in line for line in commands(jobs["test"]))
    assert any("make test" in line for line in commands(jobs["bare"])) and "setup-java" not in str(jobs["bare"])
    assert jobs["nothing-skipped"]["env"]["TACIT_NOTHING_SKIPPED"] == "1"


def test_hooks_run_the_tools_of_the_project() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"].split()[0] for hook in repository["hooks"]]
    assert entries == [f".venv/bin/{tool}" for tool in ("ruff", "ruff", "mypy", "lint-imports")]
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == tacit.__version__ and cited["license"] == "Apache-2.0"


def test_targets_in_contributing_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"`make ([a-z-]+)", table)) <= TARGETS


@pytest.mark.parametrize(
    "folder",
    [
        path
        for path in sorted((ROOT / "tests").iterdir())
        if (ROOT / "src" / "tacit" / path.name / "__init__.py").exists()
    ],
    ids=lambda path: path.name,
)
def test_every_package_has_quick_tests(folder: Path) -> None:
    texts = [path.read_text() for path in folder.rglob("test_*.py")]
    assert any(not re.search(r"^pytestmark = .*mark\.slow", text, re.MULTILINE) for text in texts)
