"""Public names: offered by completion, imported when they are asked for, and the same for type checkers."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = [
    "tacit",
    "tacit.accounting",
    "tacit.attacks",
    "tacit.audit",
    "tacit.learn",
    "tacit.local",
    "tacit.mechanisms",
    "tacit.privacy",
]
UNNAMED = {"Loss", "METHODS"}  # a union and a tuple


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_offered(package: str) -> None:
    module = import_module(package)
    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert name in UNNAMED or getattr(module, name).__name__ == name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_star_import_gives_the_public_names_and_no_others(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    del names["__builtins__"]
    assert set(names) == set(import_module(package).__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = import_module(package).nothing


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ["numpy", "duckdb", "pyarrow", "scipy", "sklearn", "pandas", "cryptography", "flint", "apsw"]
    script = f"import sys, {', '.join(PACKAGES)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(heavy) & set(done.stdout.split())
