"""Tests of private deep learning. Without PyTorch they are skipped, or fail under TACIT_NOTHING_SKIPPED=1."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
    if os.environ.get("TACIT_NOTHING_SKIPPED") == "1":
        pytest.fail("PyTorch is not installed: pip install 'tacit-dp[torch]'")
else:
    import torch

    torch.set_num_threads(1)  # tests run side by side
