"""One GPU kernel that draws Gaussian noise and adds it: a sum is read and written once.

It is imported where Triton is installed. Numbers come from Philox 4x32-10: the key has 64 bits from the operating
system, and no counter is used twice: it has the place of a number, the number of the tensor, and the number of the
call. Two 32-bit words give two normal numbers by the transform of Box and Muller, the smallest uniform one being 2^-33.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


@triton.jit
def _pair(first, second):
    uniform = (first.to(tl.float32) + 0.5) * 2.3283064365386963e-10  # 2^-32
    angle = second.to(tl.float32) * 1.4629180792671596e-09  # 2 pi 2^-32
    radius = tl.sqrt(-2.0 * tl.log(tl.minimum(uniform, 1.0)))
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def _add_noise(sums, deviation, state, size, tensor, block: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, block)
    key = tl.load(state)
    call = tl.load(state + 1)
    place = (program * block + lanes).to(tl.uint32)
    zero = place * 0
    low = (call & 0xFFFFFFFF).to(tl.uint32)
    high = (call >> 32).to(tl.uint32)
    a, b, c, d = tl.philox(key, place, zero + tensor, zero + low, zero + high, 10)
    scale = tl.load(deviation)
    first, second = _pair(a, b)
    third, fourth = _pair(c, d)
    at = program * 4 * block + lanes
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * first, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * second, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * third, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * fourth, mask=at < size)


def add_noise(sums: Sequence[Tensor], deviation: Tensor, state: Tensor) -> None:
    """Add noise to contiguous 32-bit tensors in place; state has the key and the number of the call, which goes up."""
    for number, each in enumerate(sums):
        size = each.numel()
        grid = (triton.cdiv(size, 4 * _BLOCK),)
        _add_noise[grid](each, deviation, state, size, number, block=_BLOCK)
    state[1] += 1
