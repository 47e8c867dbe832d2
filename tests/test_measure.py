"""What `tools/measure.py` counts, on a tree small enough to count by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.counts import FULL

SCRIPT = Path(__file__).parent.parent / "tools" / "measure.py"
ONE = '''
from typing import TYPE_CHECKING, Any
from house.room import two
if TYPE_CHECKING:
    from house.other import Plan

class Plan:
    def said(self, given: Any) -> int:
        """Lacks its sections."""
    def _kept(self): ...

def tell(word: str) -> list[Any]:
    """Tell a word.

    Parameters
    ----------
    word
        What to tell.

    Returns
    -------
    list
        All that was told.
    """
    import json
    from house.other import Plan
'''
TWO = "def found() -> None:\n    from house.room import one\n"
OTHER = "class Plan:\n    pass\n\ndef seed(): ...\ndef moved(given: 'int | Any'): ...\n"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_small_house_is_counted(measure: ModuleType, tmp_path: Path) -> None:
    room = tmp_path / "house" / "room"
    room.mkdir(parents=True)
    for name, text in (("one", ONE), ("two", TWO), ("__init__", "")):
        (room / f"{name}.py").write_text(text)
    (tmp_path / "house" / "other.py").write_text(OTHER)
    (tmp_path / "house" / "__init__.py").write_text("")
    assert measure.measure(tmp_path) == {
        "files": 5,
        "lines": len(ONE.splitlines()) + 2 + 5,
        "median file": 2,
        "import cycles inside packages": 0,  # one imports two; two imports one inside a function
        "the same, counting deferred imports": 1,
        "deferred imports": 3,
        "deferred imports of the package itself": 2,
        "duplicate public class names": 1,  # Plan; the import for types is no class
        "functions": 6,  # said, _kept, tell, found, seed, moved
        "public functions": 5,
        "public functions with a docstring": 2,
        "public functions with numpydoc sections": 1,  # tell
        "public functions with a bare Any": 2,  # said and moved, and not list[Any]
        "participle names": 4,  # said, _kept, found, moved
    }


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("said", True), ("_felt", True), ("planned", True), ("seed", False), ("embed", False), ("planned_for", False)],
)
def test_participles_stand_alone(measure: ModuleType, name: str, is_one: bool) -> None:
    assert measure.is_participle(name) is is_one


@pytest.mark.slow
def test_the_package_is_measured(measure: ModuleType) -> None:
    """By default a part of it: that no package has import cycles is said of all by `test_names.py`."""
    source = SCRIPT.parent.parent / "src"
    found = measure.measure(source if FULL else source / "tacit" / "ledger")
    assert found["files"] > (100 if FULL else 10) and found["import cycles inside packages"] == 0
