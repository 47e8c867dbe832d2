"""What needs PyTorch is not imported where it is not installed; `tests/learn/test_torch_missing.py` says so."""

from __future__ import annotations

import os
from importlib.util import find_spec

_NEED_TORCH = ["src/tacit/learn/torch/[!_]*.py", "tests/learn/torch/*", "tests/support/deep.py"]
_NEED_TRITON = ["src/tacit/learn/torch/*_kernel.py"]  # which comes with PyTorch for GPUs
collect_ignore_glob = [
    *([] if find_spec("torch") else _NEED_TORCH),
    *([] if find_spec("triton") else _NEED_TRITON),
]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # tests run side by side
