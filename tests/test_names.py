"""Names: a public class has a name of its own, and a module-level function is no lone participle."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tools.measure import is_participle

SOURCE = Path(__file__).parent.parent / "src" / "tacit"


def definitions():
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield str(file.relative_to(SOURCE)), node


def test_public_class_names_are_unique():
    homes = defaultdict(list)
    for file, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(file)
    assert len(homes) > 300
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_functions_of_modules_are_verbs():
    functions = [(file, node.name) for file, node in definitions() if not isinstance(node, ast.ClassDef)]
    assert len(functions) > 1_500
    assert not [(file, name) for file, name in functions if is_participle(name)]
