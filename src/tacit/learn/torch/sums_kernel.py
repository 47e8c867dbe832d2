"""One GPU kernel that scales the rows of a matrix and sums them.

It is imported where Triton is installed. Compilers take one kernel for each, and the matrix is read from memory twice.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS, _COLUMNS = 64, 128


@triton.jit
def _scale_rows(x, scale, out, parts, rows, width, depth: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0) * depth + tl.arange(0, depth)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    factor = tl.load(scale + row, mask=row < rows, other=0.0)
    scaled = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * factor[:, None]
    tl.store(out + at, scaled, mask=inside)
    tl.store(parts + tl.program_id(0) * width + column, tl.sum(scaled, 0), mask=column < width)


@torch.library.custom_op("tacit::scale_rows", mutates_args=())
def scale_rows(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return scale_n x_n for x [rows, width], and sums of 64 of them each, in 32 bits."""
    x, scale = x.contiguous(), scale.contiguous()
    rows, width = x.shape
    grid = (triton.cdiv(rows, _ROWS), triton.cdiv(width, _COLUMNS))
    out, parts = torch.empty_like(x), torch.empty(grid[0], width, device=x.device, dtype=torch.float32)
    _scale_rows[grid](x, scale, out, parts, rows, width, depth=_ROWS, block=_COLUMNS)
    return out, parts


@scale_rows.register_fake
def _(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    parts = x.new_empty(-(-x.shape[0] // _ROWS), x.shape[1], dtype=torch.float32)
    return torch.empty_like(x, memory_format=torch.contiguous_format), parts
