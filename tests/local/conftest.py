"""Most tests of this folder count many draws: `make check` leaves them out."""

from __future__ import annotations

from pathlib import Path

import pytest

QUICK = {"test_loaders.py", "test_recommend.py", "test_survey.py", "test_walsh_hadamard.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in QUICK:
            item.add_marker(pytest.mark.slow)
