"""The GPU kernels in Triton's interpreter, on the CPU: they compute what the plain ways compute.

Where Triton is not installed they are left out. The interpreter has no bf16, so Gram matrices are of 16-bit floats.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.slow

SUMS = """
from tacit.learn.torch.sums_kernel import scale_rows
x, scale = torch.randn(130, 200), torch.rand(130)
scaled, parts = scale_rows(x, scale)
assert torch.equal(scaled, x * scale[:, None])
assert torch.allclose(parts.sum(0), (x * scale[:, None]).sum(0), atol=1e-4)
"""
PATCHES = """
from tacit.learn.torch.functions import _windows
from tacit.learn.torch.patches_kernel import copy_patches
x = torch.randn(3, 9, 7, 8)
for kernel, geometry in (((3, 3), (1, 1, 1, 1, 1, 1)), ((3, 2), (2, 1, 0, 1, 1, 2)), ((1, 5), (1, 2, 0, 2, 1, 1))):
    plain = _windows(x, torch.Size(kernel), geometry)
    assert torch.equal(copy_patches(x, list(kernel), list(geometry)).flatten(), plain.flatten())
"""
GRAMS = """
from tacit.learn.torch.gram_kernel import _launch
x, y = torch.randn(2, 70, 24).half(), torch.randn(2, 70, 40).half()
a, b = x.double(), y.double()
p, q = a @ a.transpose(1, 2), b @ b.transpose(1, 2)
lengths = (a.norm(dim=2) * b.norm(dim=2)).sum(1)
plain = torch.stack([(p * q).sum((1, 2)), lengths, a.square().sum((1, 2)), q.square().sum((1, 2))], 1)
assert torch.allclose(_launch(x, y, (64, 64, 4, 3)).double(), plain, rtol=1e-5)
"""
# 8,000 normal numbers: a mean or a deviation that is 6 of its own deviations off has probability below 1e-8. The seed
# is fixed. A deviation off by a tenth would be 12 off.
NOISE = """
from tacit.learn.torch.noise_kernel import add_noise, blocks
def draw(call, together):
    sums, state = [torch.zeros(5000), torch.zeros(3000)], torch.tensor([123456789012345, call])
    add_noise(sums, torch.tensor(2.0), state, blocks(sums) if together else None)
    assert state.tolist() == [123456789012345, call + 1]
    return torch.cat(sums)
once = draw(7, False)
assert torch.equal(once, draw(7, True))
assert not (once == draw(8, False)).any()
assert abs(once.mean()) < 6 * 2 / 8000**0.5
assert abs(once.std() - 2) < 6 * 2 / 16000**0.5
assert not (once[:3000] == once[5000:]).any()
"""


@pytest.mark.skipif(find_spec("torch") is None or find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("body", [SUMS, PATCHES, GRAMS, NOISE], ids=["sums", "patches", "grams", "noise"])
def test_a_kernel_computes_what_the_plain_way_does(body):
    script = f"import torch\ntorch.manual_seed(0)\n{body}"
    chosen = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", script], env=chosen, check=True, timeout=120)
