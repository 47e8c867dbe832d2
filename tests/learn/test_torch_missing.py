"""Without PyTorch its tests are left out, and this says so; under TACIT_NOTHING_SKIPPED=1 that is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

HIDE = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
"""


@pytest.mark.parametrize(
    ("needed", "missing"),
    [
        ("torch", "PyTorch is not installed, so tacit.learn.torch is not tested: pip install 'tacit-dp[torch]'"),
        ("transformers", "transformers is not installed, so examples/deep_trainer.py is not run: make torch"),
    ],
)
def test_what_is_left_out_is_said(needed: str, missing: str):
    if find_spec(needed) is None:
        (pytest.fail if os.environ.get("TACIT_NOTHING_SKIPPED") == "1" else pytest.skip)(missing)


@pytest.mark.slow
def test_the_error_without_it_says_how_to_install_it_and_nothing_else_needs_it():
    script = HIDE + "import tacit, tacit.learn, tacit.learn.torch\ntacit.learn.torch.Private"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert "ParameterError" in done.stderr and "pip install 'tacit-dp[torch]'" in done.stderr
