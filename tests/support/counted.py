"""A run of those tests alone that full counts change: `TACIT_FULL=1 pytest -p tests.support.counted --counted`.

A test is one of them if what it is written with draws examples with hypothesis or asks for the counts: its function or
class with its decorators, its fixtures, those that every test of its file has, and whatever these name in turn, in
their own file or in others of tests/ that they import it from. A string that is the name of a fixture names it. What
tests/conftest.py does to all tests is not looked at: it sets how many examples hypothesis draws, which the first rule
covers, and where temporary files lie. All other tests run the same statements at either counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_COUNTED = ("tests.support.counts", "hypothesis")
_FOLLOWED = ("tests.", "hypothesis")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--counted", action="store_true", help="run those tests alone that full counts change")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what full counts do not change."""
    if config.getoption("counted"):
        changed = {item.nodeid for item in items if _is_changed(item)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in changed])
        items[:] = [item for item in items if item.nodeid in changed]


def _is_changed(item: pytest.Item) -> bool:
    if not item.path.is_relative_to(ROOT / "tests"):
        return False
    name = item.nodeid.split("::")[1].split("[")[0]  # the outermost class, or the function
    return is_counted(item.path, name, *getattr(item, "fixturenames", ()))


@cache
def is_counted(file: Path, *names: str) -> bool:
    """Whether full counts change what these names of a file of tests are, or a fixture that all its tests have."""
    seen = set[tuple[Path, str]]()
    left = [(file, name) for name in names]
    left += [(place, name) for place in (file, *_list_conftests(file)) for name in _read(place).everywhere]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        for next_file, next_name in _find(*here):
            if next_file is None:
                return True
            left.append((next_file, next_name))
    return False


def _find(file: Path, name: str) -> Iterator[tuple[Path | None, str]]:
    """What a name of a file is made of: names of files; no file where it is of the counts or of hypothesis."""
    read = _read(file)
    if name in read.imported:
        source = read.imported[name]
        if any(source == each or source.startswith(f"{each}.") for each in _COUNTED):
            yield None, name
        module, _, attribute = source.rpartition(".")
        if module.startswith("tests."):
            yield from ((place, attribute) for place in _places(module))
            yield from ((place, each) for place in _places(source) for each in _read(place).used)  # of a module: any
    elif name in read.used:
        yield from ((file, each) for each in read.used[name])
    else:
        yield from ((place, name) for place in _list_conftests(file) if name in _read(place).fixtures)


@cache
def _list_conftests(file: Path) -> list[Path]:
    """Where the fixtures of a file may stand, beside itself."""
    folders = [folder for folder in file.parents if folder.is_relative_to(ROOT / "tests")]
    return [place for folder in folders if (place := folder / "conftest.py") != file]


class _Read:
    """What a file imports, by name, and what each of its own names is defined with."""

    def __init__(self, file: Path) -> None:
        self.imported: dict[str, str] = {}
        self.used: dict[str, set[str]] = {}
        self.fixtures = set[str]()
        self.everywhere = {"pytestmark"}
        tree = ast.parse(file.read_bytes() if file.exists() else b"")
        conftests = _list_conftests(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.imported |= {each.asname or each.name: each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        for statement in tree.body:
            names = set(_list_names(statement))
            if isinstance(statement, ast.FunctionDef):
                own = {statement.name, *_list_other_names(statement)}
                self.fixtures |= own if statement.decorator_list else set()
                if any("autouse" in ast.unparse(decorator) for decorator in statement.decorator_list):
                    self.everywhere |= own
            elif isinstance(statement, ast.ClassDef):
                own = {statement.name}
            else:  # what it sets, or may change
                nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                own = {node.id for node in nodes if isinstance(node.ctx, ast.Store) or node.id in self.used}
            for name in own:
                self.used.setdefault(name, set()).update(names)
        self.imported = {name: source for name, source in self.imported.items() if source.startswith(_FOLLOWED)}
        known = (
            self.used.keys() | self.imported.keys() | set[str]().union(*(_read(each).fixtures for each in conftests))
        )
        self.used = {name: used & known for name, used in self.used.items()}


@cache
def _read(file: Path) -> _Read:
    return _Read(file)


def _list_other_names(function: ast.FunctionDef) -> Iterator[str]:
    """The name that a fixture is given: @pytest.fixture(name="...")."""
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def _list_names(statement: ast.stmt) -> Iterator[str]:
    """The names in a statement: of variables, parameters and attributes, and texts that may name a fixture."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
            yield node.value


def _places(name: str) -> list[Path]:
    """The files that a name of tests/ may be in."""
    path = ROOT.joinpath(*name.split("."))
    return [path.with_suffix(".py"), path / "__init__.py"]
