"""`import tacit` is quick: what is heavy is imported when it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tacit

HEAVY = [
    *("numpy", "scipy", "duckdb", "pyarrow", "sqlglot", "flint", "pandas", "polars"),
    *("rich", "typer", "apsw", "cryptography", "matplotlib"),
]


def loaded_after(statement: str) -> set[str]:
    """The packages that a fresh interpreter holds after the statement."""
    listing = "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    code = f"import sys\n{statement}\nimport json\n{listing}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(run.stdout))


def test_import_loads_nothing_heavy():
    assert not loaded_after("import tacit") & set(HEAVY)


def test_errors_load_nothing_heavy():
    assert not loaded_after("from tacit import Refused, TacitError; str(TacitError)") & set(HEAVY)


@pytest.mark.slow
def test_what_is_used_is_loaded():
    # The test above has power: opening needs these.
    assert {"numpy", "duckdb", "pyarrow", "cryptography"} <= loaded_after("import tacit; tacit.open")


@pytest.mark.slow
def test_reading_a_question_loads_nothing_heavy():
    reading = "from tacit.query.parser import parse; parse('SELECT age FROM t', {})"
    assert not loaded_after(reading) & set(HEAVY)


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_public_name_is_there(name):
    assert getattr(tacit, name) is not None


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'tacit' has no attribute 'opne'"):
        _ = tacit.opne
    assert not hasattr(tacit, "numpy")


def test_the_version_is_one():
    assert len(tacit.__version__.split(".")) == 3
