"""Which files are looked at: what needs PyTorch where it is installed, as `tests/learn/test_torch_missing.py` says, and
for examples in docstrings those that have some."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

_NEED_TORCH = ["src/tacit/learn/torch/[!_]*.py", "tests/learn/torch/*", "tests/support/deep.py"]
_NEED_TRITON = ["src/tacit/learn/torch/*_kernel.py"]  # which comes with PyTorch for GPUs
collect_ignore_glob = [
    *([] if find_spec("torch") else _NEED_TORCH),
    *([] if find_spec("triton") else _NEED_TRITON),
]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # tests run side by side


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples where there are none: it would import the file, and see all that is defined there."""
    found = yield
    has_examples = file_path.suffix != ".py" or b">>> " in file_path.read_bytes()
    return [each for each in found if has_examples or not isinstance(each, DoctestModule)]
