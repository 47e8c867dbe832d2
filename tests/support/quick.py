"""A run of the quick tests, the inner loop: `pytest -p tests.support.quick --quick`.

What is marked slow is left out, and of each other test three of its cases are run at most. A file all of whose tests
are slow is not imported, and neither is what needs PyTorch, which alone takes seconds to import.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

_CASES = 3
_ALL_SLOW = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--quick", action="store_true", help="run quick tests alone, with three cases of each at most")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what is slow as a whole; None leaves it to others to say so."""
    if not config.getoption("quick") or collection_path.suffix != ".py":
        return None
    is_of_torch = collection_path.parent.parts[-2:] == ("learn", "torch")
    return True if is_of_torch or _ALL_SLOW.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(trylast=True)  # after tests/conftest.py has marked what starts a server
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, and cases beyond the third, those that stay being spread over all."""
    if not config.getoption("quick"):
        return
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    chosen = {item.nodeid for each in cases.values() for item in each[:: -(-len(each) // _CASES)]}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]
