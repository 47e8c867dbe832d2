"""The attack of benchmarks/hostile.py, small and short: all are answered, nothing crashes, the log stays small."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_ordinary_analysts_are_answered_while_another_attacks(tmp_path, full, monkeypatch):
    seconds, scale = (20, 1) if full else (2, 0.1)
    monkeypatch.syspath_prepend(BENCHMARKS)
    found = importlib.import_module("hostile").measure(tmp_path, seconds, scale)
    assert found["alive"] and found["status"] == 0
    assert found["errors"] == 0 and found["during"] and found["answered_after"] >= 4
    assert found["ledger"] and found["entries"] > 4
    assert found["log"] < 1_000_000 and found["memory"] < 1_500_000_000
    assert any(name.startswith("wrong keys") for name in found["attack"])  # it did attack
    assert found["attack"].get("120 sums: answered", 0) == 0
