"""A run of those tests alone that full counts change: `TACIT_FULL=1 pytest -p tests.support.counted --counted`.

A test is one of them if its file draws examples with hypothesis or asks for the counts, or if a file of tests/ does
that it imports, directly or over others, or a conftest.py of its folder. That of tests/ itself is not looked at: it
sets how many examples hypothesis draws, which the first rule covers, and where temporary files lie. All other tests run
the same statements at either counts.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_COUNTED = ("tests.support.counts", "hypothesis")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--counted", action="store_true", help="run those tests alone that full counts change")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what full counts do not change."""
    if config.getoption("counted"):
        changed = {item.nodeid for item in items if is_counted(item.path)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in changed])
        items[:] = [item for item in items if item.nodeid in changed]


def is_counted(file: Path) -> bool:
    """Whether full counts change the tests of a file."""
    folders = [folder for folder in file.parents if ROOT / "tests" in folder.parents]
    return any(map(_depends, [file, *(folder / "conftest.py" for folder in folders)]))


@cache
def _depends(file: Path) -> bool:
    seen, left = set[Path](), [file]
    while left:
        here = left.pop()
        if here in seen or not here.exists() or here.suffix != ".py":
            continue
        seen.add(here)
        tree = ast.parse(here.read_bytes())
        names = _list_imports(tree)
        if any(name == each or name.startswith(f"{each}.") for name in names for each in _COUNTED):
            return True
        if any(isinstance(node, ast.arg) and node.arg == "full" for node in ast.walk(tree)):  # the fixture
            return True
        left += [place for name in names if name.startswith("tests.") for place in _places(name)]
    return False


def _list_imports(tree: ast.Module) -> set[str]:
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def _places(name: str) -> list[Path]:
    """The files that a name of tests/ may be in."""
    path = ROOT.joinpath(*name.split("."))
    return [path.with_suffix(".py"), path / "__init__.py"]
