from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether to run the full counts: TACIT_FULL=1."""
    return os.environ.get("TACIT_FULL") == "1"
