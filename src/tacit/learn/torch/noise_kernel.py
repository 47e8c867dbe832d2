"""One GPU kernel that draws Gaussian noise and adds it: a sum is read and written once.

It is imported where Triton is installed. Numbers come from Philox 4x32-10: the key has 64 bits from the operating
system, and no counter is used twice: it has the place of a number, the number of the tensor, which is below 2^24, and
in the 8 bits above it how often cells were divided, and the number of the call, the first of which is drawn by the
operating system too. Two 32-bit words give two normal numbers as the theorem of `noise` has it: the first bit of one
says which end of the uniform number it is near, the others are the cell. Words for cells that have to be divided are
drawn where a block has one, which one block in 2^7 has; that would end after 255 times, of a probability below
2^-8000. Sine and cosine are polynomials on an eighth of the circle to either side, which the first two bits of a word
turn to its quarter: as exact as 32-bit numbers, and without the branches for large angles that libraries have.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512
_FIELDS = 4  # of a block in a table: where its tensor lies, the tensor's size and number, and the block's number in it


@triton.jit
def _energy(word, value, depth):
    """The e of `noise` from a word, the place in its cell's units, and how often the cell was the last one before 0."""
    place = value * 2.3283064365386963e-10  # 2^-32
    length = place * tl.exp2(-32.0 * depth)
    is_below = (word >> 31) != 0
    uniform = tl.where(is_below, 1.0 - length, place)
    more = tl.where(is_below, (uniform - 1.0) + length, 22.180709777918249 * depth)  # 32 ln(2) each time
    return tl.maximum(more - tl.log(uniform), length)  # which e is never below


@triton.jit
def _divide(cell, value, depth, word):
    """Divide the cells that are near 0 by one more word."""
    is_last = cell == 0
    fine = word.to(tl.float32) + 0.5
    closer = tl.where(is_last, fine, cell.to(tl.float32) + fine * 2.3283064365386963e-10)
    value = tl.where(cell < 16384, closer, value)
    return tl.where(is_last, word, 16384 + (word & 0)), value, depth + is_last.to(tl.float32)


@triton.jit
def _is_near(cell, other):
    """Whether any cell is among those that are divided: `noise.RARE` in cells."""
    return tl.max((tl.minimum(cell, other) < 16384).to(tl.int32)) != 0


@triton.jit
def _pair(energy, second):
    radius = tl.sqrt(2.0 * energy)
    quarter = second >> 30
    angle = ((second & 0x3FFFFFFF).to(tl.float32) - 536870912.0) * 1.4629180792671596e-09  # 2 pi 2^-32
    square = angle * angle
    sine = (-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1
    sine = sine * square * angle + angle
    cosine = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    cosine = cosine * square * square - 0.5 * square + 1.0
    is_odd = (quarter & 1) == 1
    x = radius * tl.where(is_odd, -sine, cosine)
    y = radius * tl.where(is_odd, cosine, sine)
    is_turned = quarter >= 2
    return tl.where(is_turned, -x, x), tl.where(is_turned, -y, y)


@triton.jit
def _add_block(sums, deviation, state, size, tensor, program, block: tl.constexpr):
    lanes = tl.arange(0, block)
    key = tl.load(state)
    call = tl.load(state + 1)
    place = (program * block + lanes).to(tl.uint32)
    zero = place * 0
    low = (call & 0xFFFFFFFF).to(tl.uint32)
    high = (call >> 32).to(tl.uint32)
    a, b, c, d = tl.philox(key, place, zero + tensor.to(tl.uint32), zero + low, zero + high, 10)
    cell, other = a & 0x7FFFFFFF, c & 0x7FFFFFFF
    energy, other_energy = _energy(a, cell.to(tl.float32) + 0.5, 0.0), _energy(c, other.to(tl.float32) + 0.5, 0.0)
    if _is_near(cell, other):
        value, other_value = cell.to(tl.float32) + 0.5, other.to(tl.float32) + 0.5
        depth, other_depth = value * 0.0, value * 0.0
        number = tensor
        while _is_near(cell, other):
            number += 16777216  # 2^24
            e, f, _, _ = tl.philox(key, place, zero + number.to(tl.uint32), zero + low, zero + high, 10)
            cell, value, depth = _divide(cell, value, depth, e)
            other, other_value, other_depth = _divide(other, other_value, other_depth, f)
        energy, other_energy = _energy(a, value, depth), _energy(c, other_value, other_depth)
    scale = tl.load(deviation)
    first, second = _pair(energy, b)
    third, fourth = _pair(other_energy, d)
    at = program * 4 * block + lanes
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * first, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * second, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * third, mask=at < size)
    at += block
    tl.store(sums + at, tl.load(sums + at, mask=at < size) + scale * fourth, mask=at < size)


@triton.jit
def _add_noise(sums, deviation, state, size, tensor, block: tl.constexpr):
    number = tl.load(state) * 0 + tensor
    _add_block(sums, deviation, state, size, number, tl.program_id(0).to(tl.int64), block)


@triton.jit
def _add_to_all(table, deviation, state, block: tl.constexpr, fields: tl.constexpr):
    row = table + tl.program_id(0).to(tl.int64) * fields
    sums = tl.multiple_of(tl.load(row).to(tl.pointer_type(tl.float32)), 16)
    _add_block(sums, deviation, state, tl.load(row + 1), tl.load(row + 2), tl.load(row + 3), block)


def add_noise(sums: Sequence[Tensor], deviation: Tensor, state: Tensor, table: Tensor | None = None) -> None:
    """Add noise to contiguous 32-bit tensors in place; state has the key and the number of the call, which goes up.

    `table` are the `blocks` of these tensors, for one launch in place of one for each.
    """
    if table is not None:
        _add_to_all[(table.shape[0],)](table, deviation, state, block=_BLOCK, fields=_FIELDS)
    else:
        for number, each in enumerate(sums):
            size = each.numel()
            grid = (triton.cdiv(size, 4 * _BLOCK),)
            _add_noise[grid](each, deviation, state, size, number, block=_BLOCK)
    state[1] += 1


def blocks(sums: Sequence[Tensor]) -> Tensor:
    """Return where each block of each tensor lies, one row for each program of a launch."""
    rows = [
        (each.data_ptr(), each.numel(), number, block)
        for number, each in enumerate(sums)
        for block in range(triton.cdiv(each.numel(), 4 * _BLOCK))
    ]
    return torch.tensor(rows, dtype=torch.int64).to(sums[0].device)
