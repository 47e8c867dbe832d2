"""One GPU kernel for both Gram matrices of a layer: sums over their elements, without storing them.

It is imported where Triton is installed. A block of tokens against a block of tokens is one program; by symmetry only
blocks on and below the diagonal are computed. The block sizes are timed once for each shape.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources

_CHOICES = ((64, 64, 4, 3), (64, 64, 4, 4), (64, 128, 4, 3), (128, 64, 8, 3), (128, 64, 8, 4), (128, 64, 4, 3))
_chosen: dict[tuple[Any, ...], tuple[int, int, int, int]] = {}


@triton.jit
def _gram_sums(
    x_start,
    y_start,
    out,
    tokens,
    x_width,
    y_width,
    programs,
    block: tl.constexpr,
    depth: tl.constexpr,
    single: tl.constexpr,
):
    unit = tl.program_id(0).to(tl.int64)
    index = tl.program_id(1)
    row = 0
    column = index
    while column > row:
        column = column - row - 1
        row = row + 1
    rows = row * block + tl.arange(0, block)
    columns = column * block + tl.arange(0, block)
    inner = tl.arange(0, depth)
    in_rows = (rows < tokens)[:, None]
    in_columns = (columns < tokens)[:, None]
    x_unit = x_start + unit * tokens * x_width
    y_unit = y_start + unit * tokens * y_width
    x_gram = tl.zeros((block, block), tl.float32)
    y_gram = tl.zeros((block, block), tl.float32)
    for start in range(0, x_width, depth):
        inside = (start + inner < x_width)[None, :]
        left = tl.load(x_unit + rows[:, None] * x_width + (start + inner)[None, :], mask=in_rows & inside, other=0.0)
        if single:
            right = left
        else:
            right = tl.load(
                x_unit + columns[:, None] * x_width + (start + inner)[None, :], mask=in_columns & inside, other=0.0
            )
        x_gram = tl.dot(left, tl.trans(right), x_gram)
    for start in range(0, y_width, depth):
        inside = (start + inner < y_width)[None, :]
        left = tl.load(y_unit + rows[:, None] * y_width + (start + inner)[None, :], mask=in_rows & inside, other=0.0)
        if single:
            right = left
        else:
            right = tl.load(
                y_unit + columns[:, None] * y_width + (start + inner)[None, :], mask=in_columns & inside, other=0.0
            )
        y_gram = tl.dot(left, tl.trans(right), y_gram)
    on_diagonal = rows[:, None] == columns[None, :]
    twice = tl.where(row == column, 1.0, 2.0)
    square = twice * tl.sum(tl.sum(x_gram * y_gram, 1), 0)
    paths = tl.sum(tl.sum(tl.where(on_diagonal, tl.sqrt(tl.maximum(x_gram * y_gram, 0.0)), 0.0), 1), 0)
    trace = tl.sum(tl.sum(tl.where(on_diagonal, x_gram, 0.0), 1), 0)
    y_square = twice * tl.sum(tl.sum(y_gram * y_gram, 1), 0)
    place = out + (unit * 4) * programs + index
    tl.store(place, square)
    tl.store(place + programs, paths)
    tl.store(place + 2 * programs, trace)
    tl.store(place + 3 * programs, y_square)


def _programs(tokens: int, block: int) -> int:
    blocks = -(-tokens // block)
    return blocks * (blocks + 1) // 2


def _launch(x: Tensor, y: Tensor, choice: tuple[int, int, int, int]) -> Tensor:
    block, depth, warps, stages = choice
    units, tokens, x_width = x.shape
    programs = _programs(tokens, block)
    out = torch.empty(units, 4, programs, device=x.device, dtype=torch.float32)
    _gram_sums[(units, programs)](
        x,
        y,
        out,
        tokens,
        x_width,
        y.shape[2],
        programs,
        block=block,
        depth=depth,
        single=tokens <= block,
        num_warps=warps,
        num_stages=stages,
    )
    return out.sum(2)


def _choose(x: Tensor, y: Tensor) -> tuple[int, int, int, int]:
    """The fastest block sizes of a shape; timed outside of a capture, the first of the table inside of one."""
    key = (tuple(x.shape), y.shape[2], x.dtype)
    if key not in _chosen:
        if torch.cuda.is_current_stream_capturing():
            return _CHOICES[0]
        timed = []
        for choice in _CHOICES:
            try:
                timed.append((triton.testing.do_bench(lambda c=choice: _launch(x, y, c), warmup=4, rep=12), choice))
            except (OutOfResources, RuntimeError):  # too large for this GPU: another one is
                continue
        _chosen[key] = min(timed)[1]
    return _chosen[key]


@torch.library.custom_op("tacit::gram_sums", mutates_args=())
def gram_sums(x: Tensor, y: Tensor) -> Tensor:
    """Return [units, 4]: <XX^T, YY^T>, the sum of |x_t| |y_t|, the trace of XX^T, and |YY^T|_F^2."""
    x, y = x.contiguous(), y.contiguous()
    return _launch(x, y, _choose(x, y))


@gram_sums.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], 4, dtype=torch.float32)
