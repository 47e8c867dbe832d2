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

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent.parent / "src" / "tacit"


@cache
def texts():
    """Every file of the package."""
    return {file: file.read_text(encoding="utf-8") for file in sorted(SOURCE.rglob("*.py"))}


@cache
def read_tree(file):
    return ast.parse(texts()[file])


@cache
def places():
    """The files in which a function or class of a name may be defined: its words stand there."""
    found = defaultdict(list)
    for file, text in texts().items():
        for name in set(re.findall(r"\b(?:class|def)\s+(\w+)", text)):
            found[name].append(file)
    return found


def is_defined(name):
    """Whether a function or class of the name is defined anywhere."""
    kinds = ast.ClassDef | ast.FunctionDef
    nodes = (node for file in places()[name] for node in ast.walk(read_tree(file)))
    return any(isinstance(node, kinds) and node.name == name for node in nodes)


def definitions(kind):
    """What stands at the beginning of a line as the definition of a class or a function, also within a string."""
    for file, text in texts().items():
        for name in re.findall(rf"^{kind}\s+(\w+)", text, re.MULTILINE):
            yield str(file.relative_to(SOURCE)), name


def test_public_class_names_are_unique():
    homes = defaultdict(list)
    for file, name in definitions("class"):
        if not name.startswith("_"):
            homes[name].append(file)
    assert len(homes) > 300
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_functions_of_modules_are_verbs():
    functions = list(definitions(r"(?:async\s+)?def"))
    assert len(functions) > 1_500
    assert not [(file, name) for file, name in functions if is_participle(name)]


def proposed_calls(folder):
    """The functions and classes that errors propose to call: the names before a parenthesis in a `fix`."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(read_tree(file)) if re.search(r"\bfix\s*=", texts()[file]) else ():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "fix":
                    parts = [part.value for part in ast.walk(keyword.value) if isinstance(part, ast.Constant)]
                    text = "".join(str(part) for part in parts)
                    yield from ((file.name, name) for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\(", text))


@pytest.mark.parametrize("package", ["attacks", "audit", "learn", "local", "trial"])
def test_errors_propose_names_that_exist(package):
    proposed = [(file, name) for file, name in proposed_calls(SOURCE / package) if not name.isupper()]
    unknown = {name for _, name in proposed} - set(dir(builtins))
    missing = {name for name in unknown if not is_defined(name)}
    assert not [(file, name) for file, name in proposed if name in missing]


def test_packages_have_no_import_cycles():
    """Imports inside functions and for types count: a module can be read once those it names are."""
    paths = modules_of(SOURCE.parent)
    parsed = {module: read_tree(path) for module, path in paths.items()}
    known = [["tacit.local.mean", "tacit.local.mean_summary"]]  # a summary names the protocol that it reads back
    assert [sorted(cycle) for cycle in cycles_inside_packages(parsed, paths, deferred=True)] == known
    both = {module: parsed[module] for module in known[0]}
    assert cycles_inside_packages(both, paths, deferred=False) == []  # and it does so inside a function
