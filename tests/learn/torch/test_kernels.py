"""The GPU kernels in Triton's interpreter, on the CPU: they compute what the plain ways compute.

Where Triton is not installed they are left out. The interpreter has no bf16, so Gram matrices are of 16-bit floats. The
noise is drawn on a GPU too, where there is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


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
# All numbers of a call beside those of the theorem of `noise`, in doubles. With the first key the word c of place 624
# is cell 8359 below 0, and with the second that of place 58 is cell 843 above it. They are divided: the middle of the
# latter would be off by up to 2e-5 of the length.
PAIRS = """
import numpy as np
from tacit.learn.torch.noise_kernel import add_noise

def philox(key, place, tensor, call):
    ones = np.ones(len(place), dtype=np.uint64)
    a, b, c, d = place, ones * np.uint64(tensor), ones * np.uint64(call % 2**32), ones * np.uint64(call >> 32)
    for n in range(10):
        low, high = np.uint64((key + n * 0x9E3779B9) % 2**32), np.uint64(((key >> 32) + n * 0xBB67AE85) % 2**32)
        p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (q >> 32) ^ b ^ low, q % 2**32, (p >> 32) ^ d ^ high, p % 2**32
    return a, b, c, d

def energies(words, more):
    cells = words % 2**31
    is_near = cells < 2**14
    v = np.where(is_near, cells + (more + 0.5) * 2.0**-32, cells + 0.5) * 2.0**-32
    return np.where(words >> 31, -np.log1p(-v), -np.log(v)), is_near

def pairs(energy, word):
    angle = (word.astype(float) % 2**30 - 2**29 + (word >> 30) * 2.0**30) * np.pi * 2.0**-31
    return np.sqrt(2 * energy) * np.cos(angle), np.sqrt(2 * energy) * np.sin(angle)

call, blocks = 2**40 + 7, 3
for key, place in ((123456789012353, 624), (123456789012538, 58)):
    drawn = torch.zeros(2, 2048 * blocks)
    add_noise([drawn[0]], torch.tensor(1.0), torch.tensor([key, 7]))
    add_noise([drawn[1]], torch.tensor(1.0), torch.tensor([key, call]))
    for found, each in zip(drawn.cpu().double().numpy(), (7, call)):
        places = np.arange(512 * blocks, dtype=np.uint64)
        a, b, c, d = philox(key, places, 0, each)
        more = philox(key, places, 2**24, each)
        (e, _), (f, is_near) = energies(a, more[0]), energies(c, more[1])
        assert each == call or is_near[place]
        numbers = found.reshape(blocks, 4, 512).transpose(1, 0, 2).reshape(4, -1)
        for energy, word, x, y in ((e, b, *numbers[:2]), (f, d, *numbers[2:])):
            right = pairs(energy, word)
            assert (np.hypot(x - right[0], y - right[1]) < 2.0**-19 * np.sqrt(2 * energy)).all()
"""
# Cells next to 0 are divided until there is something: ln(2) each of the zeros before it is the tail, which has no end.
CELLS = """
import math
import triton, triton.language as tl
from tacit.learn.torch.noise_kernel import _divide, _energy

@triton.jit
def probe(words, more, found, times: tl.constexpr, block: tl.constexpr):
    at = tl.arange(0, block)
    word = tl.load(words + at).to(tl.uint32)
    cell = word & 0x7FFFFFFF
    value = cell.to(tl.float32) + 0.5
    depth = value * 0.0
    for time in tl.static_range(times):
        cell, value, depth = _divide(cell, value, depth, tl.load(more + time * block + at).to(tl.uint32))
    tl.store(found + at, _energy(word, value, depth))

times = 6
words = torch.tensor([0, 0, 0, 1, 16383, 16384, 2**31 - 1, 2**31, 2**31, 2**31 + 5, 2**31 + 16384, 2**32 - 1] + 4 * [7])
zeros = torch.tensor([0, 2, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0] + 4 * [0])
more = torch.where(torch.arange(times)[:, None] < zeros, 0, 2**32 - 2**20 + torch.arange(16))
found = torch.zeros(16)
probe[(1,)](words, more.contiguous(), found, times, 16)
for word, count, last, energy in zip(words.tolist(), zeros.tolist(), more[-1].tolist(), found.tolist()):
    cell, bits = word % 2**31, 32
    if cell < 2**14:
        cell, bits = (cell << 32 * (count + 1)) + last, 32 * (count + 2)
    right = -math.log1p(-(cell + 0.5) / 2**bits) if word >> 31 else bits * math.log(2) - math.log(cell + 0.5)
    assert math.isclose(energy, right, rel_tol=2.0**-20), (word, count, energy, right)
assert found.max() > 132  # 16.2 deviations
"""


@pytest.mark.skipif(find_spec("torch") is None or find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    "body", [SUMS, PATCHES, GRAMS, NOISE, PAIRS, CELLS], ids=["sums", "patches", "grams", "noise", "pairs", "cells"]
)
def test_a_kernel_computes_what_the_plain_way_does(body, tmp_path):
    run(body, tmp_path, "cpu", {"TRITON_INTERPRET": "1"})


@pytest.mark.skipif(find_spec("triton") is None or not has_gpu(), reason="there is no GPU, or no Triton")
@pytest.mark.parametrize("body", [NOISE, PAIRS, CELLS], ids=["noise", "pairs", "cells"])
def test_a_gpu_draws_the_same_noise(body, tmp_path):
    run(body, tmp_path, "cuda", {})


def run(body: str, folder: Path, device: str, settings: dict[str, str]) -> None:
    script = folder / "kernel.py"  # Triton reads the source of what it compiles
    script.write_text(f"import torch\ntorch.manual_seed(0)\ntorch.set_default_device({device!r})\n{body}")
    subprocess.run([sys.executable, script], env={**os.environ, **settings}, check=True, timeout=120)
