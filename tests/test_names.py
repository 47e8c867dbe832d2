"""Names: a public class has a name of its own, and a module-level function is no lone participle."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from tools.measure import cycles_inside_packages, is_participle, modules_of

SOURCE = Path(__file__).parent.parent / "src" / "tacit"


@cache
def trees():
    """The syntax tree of every file of the package."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))}


@cache
def names():
    """Every function and class that is defined anywhere."""
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, kinds)}


def definitions():
    for file, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield str(file.relative_to(SOURCE)), node


@pytest.mark.slow
def test_public_class_names_are_unique():
    homes = defaultdict(list)
    for file, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(file)
    assert len(homes) > 300
    assert not {name: files for name, files in homes.items() if len(files) > 1}


@pytest.mark.slow
def test_functions_of_modules_are_verbs():
    functions = [(file, node.name) for file, node in definitions() if not isinstance(node, ast.ClassDef)]
    assert len(functions) > 1_500
    assert not [(file, name) for file, name in functions if is_participle(name)]


def proposed_calls(folder):
    """The functions and classes that errors propose to call: the names before a parenthesis in a `fix`."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(trees()[file]):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "fix":
                    parts = [part.value for part in ast.walk(keyword.value) if isinstance(part, ast.Constant)]
                    text = "".join(str(part) for part in parts)
                    yield from ((file.name, name) for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\(", text))


@pytest.mark.slow
@pytest.mark.parametrize("package", ["attacks", "audit", "learn", "local", "trial"])
def test_errors_propose_names_that_exist(package):
    known = set(dir(builtins)) | names()
    assert not [
        (file, name) for file, name in proposed_calls(SOURCE / package) if name not in known and not name.isupper()
    ]


@pytest.mark.slow
def test_packages_have_no_import_cycles():
    """Imports inside functions and for types count: a module can be read once those it names are."""
    paths = modules_of(SOURCE.parent)
    parsed = {module: trees()[path] for module, path in paths.items()}
    known = [["tacit.local.mean", "tacit.local.mean_summary"]]  # a summary names the protocol that it reads back
    assert [sorted(cycle) for cycle in cycles_inside_packages(parsed, paths, deferred=True)] == known
