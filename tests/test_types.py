"""What a type checker accepts of the public calls, and what it rejects."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mypy import api
from tests.support.counts import FULL

SOURCE = Path(__file__).parents[1] / "src"
REJECTED = "# rejected"

ANALYST = f"""
from decimal import Decimal
from fractions import Fraction
from tacit.answers.answer import Answer
from tacit.analyst import Analyst
from tacit.curator.curator import Curator
from tacit.privacy.loss import LaplaceNoise

class Expression:
    def op(self) -> object: ...
    def unbind(self) -> object: ...

def ask(curator: Curator) -> None:
    ada: Analyst = curator.analyst("ada")
    answer: Answer = ada.ask("SELECT 1", epsilon=1, confidence=Decimal("0.9"))
    ada.ask(Expression(), within={{"n": Fraction(1, 2), "m": 3.5}})
    LaplaceNoise(scale=0.5, sensitivity=1)
    ada.ask(3, epsilon=1)  {REJECTED}
    ada.ask("SELECT 1", epsilon=[])  {REJECTED}
    ada.ask("SELECT 1", epsilon=1, confidence="high")  {REJECTED}
    ada.ask("SELECT 1", within={{"n": "close"}})  {REJECTED}
    ada.explain(None, epsilon=1)  {REJECTED}
    curator.analyst(7)  {REJECTED}
    LaplaceNoise(scale="10", sensitivity=1)  {REJECTED}
"""

MECHANISMS = f"""
import numpy as np
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace

number: int = Laplace(scale=10).release(5)
numbers: list[int] = Gaussian.calibrated(epsilon=0.5, delta=1e-6, sensitivity=3).release([1, 2, 3])
array: np.ndarray = Laplace.calibrated(epsilon=0.5, sensitivity=3).release(np.arange(3))
Laplace(scale="10")  {REJECTED}
Laplace.calibrated(epsilon=None, sensitivity=1)  {REJECTED}
Gaussian.calibrated(epsilon=1, delta=1e-6, shift=1)  {REJECTED}
Laplace(scale=10).release("5")  {REJECTED}
Laplace(scale=10).release(np.zeros(3))  {REJECTED}
"""


def check(snippet: str, follow: str, modules: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type a snippet together with these modules; `follow` says whether those that they import are skipped."""
    (folder / "snippet.py").write_text(snippet, encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", f"{folder}{os.pathsep}{SOURCE}")
    options = [f"--follow-imports={follow}", "--config-file=", f"--cache-dir={os.devnull}"]
    named = [word for name in ["snippet", *modules] for word in ("-m", name)]
    said, broken, _ = api.run([*options, *named])
    assert not broken
    expected = {number for number, line in enumerate(snippet.splitlines(), 1) if line.endswith(REJECTED)}
    assert {int(line) for line in re.findall(r"snippet\.py:(\d+): error", said)} == expected, said


@pytest.mark.slow
def test_what_an_analyst_hands_over(tmp_path, monkeypatch):
    modules = ["arithmetic", "analyst", "answers.answer", "curator.curator", "query.ibis_expressions", "privacy.loss"]
    check(ANALYST, "skip", [f"tacit.{name}" for name in modules], tmp_path, monkeypatch)


@pytest.mark.skipif(not FULL, reason="reading numpy's stubs takes ten seconds; TACIT_FULL=1 does it")
def test_what_a_mechanism_takes(tmp_path, monkeypatch):
    check(MECHANISMS, "silent", [], tmp_path, monkeypatch)
