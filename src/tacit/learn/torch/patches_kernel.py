"""One GPU kernel that writes out the patches that enter a convolution, channels last.

It is imported where Triton is installed. Compilers compute the place of every number; here it is computed once for all
channels of a pixel, which are copied as one row, at the speed of memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_NUMBERS = 4096  # that a program copies
_TAGS: dict[str, Any] = {}
if "tags" in inspect.signature(torch.library.custom_op).parameters and hasattr(torch.Tag, "flexible_layout"):
    _TAGS["tags"] = (torch.Tag.flexible_layout,)  # a compiler that has channels last in memory need not change it


@triton.jit
def _copy_patches(
    x,
    out,
    places,
    height,
    width,
    channels,
    out_height,
    out_width,
    kernel_width,
    offsets,
    row_stride,
    column_stride,
    row_padding,
    column_padding,
    row_dilation,
    column_dilation,
    block: tl.constexpr,
    lanes: tl.constexpr,
):
    offset = tl.program_id(0) % offsets
    place = (tl.program_id(0) // offsets) * block + tl.arange(0, block)
    channel = tl.arange(0, lanes)
    row = (place // out_width) % out_height * row_stride - row_padding + offset // kernel_width * row_dilation
    column = place % out_width * column_stride - column_padding + offset % kernel_width * column_dilation
    unit = (place // out_width // out_height).to(tl.int64)
    inside = (place < places) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    source = ((unit * height + row) * width + column) * channels
    target = (place.to(tl.int64) * offsets + offset) * channels
    known = (channel < channels)[None, :]
    numbers = tl.load(x + source[:, None] + channel[None, :], mask=inside[:, None] & known, other=0.0)
    tl.store(out + target[:, None] + channel[None, :], numbers, mask=(place < places)[:, None] & known)


def _size(x: Tensor, kernel: Sequence[int], geometry: Sequence[int]) -> tuple[int, int]:
    """The rows and columns of places; geometry is stride, padding and dilation, of rows and of columns each."""
    stride, padding, dilation = geometry[0:2], geometry[2:4], geometry[4:6]
    rows, columns = (
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(x.shape[1:3], kernel, stride, padding, dilation, strict=True)
    )
    return rows, columns


@torch.library.custom_op("tacit::copy_patches", mutates_args=(), **_TAGS)
def copy_patches(x: Tensor, kernel: Sequence[int], geometry: Sequence[int]) -> Tensor:
    """Return [rows, places, kernel, channels] for x [rows, height, width, channels]."""
    x = x.contiguous()
    count, height, width, channels = x.shape
    out_height, out_width = _size(x, kernel, geometry)
    places, offsets = count * out_height * out_width, kernel[0] * kernel[1]
    out = x.new_empty(count, out_height * out_width, offsets, channels)
    lanes = triton.next_power_of_2(channels)
    block = max(1, _NUMBERS // lanes)
    _copy_patches[(triton.cdiv(places, block) * offsets,)](
        *(x, out, places, height, width, channels, out_height, out_width, kernel[1], offsets, *geometry),
        block=block,
        lanes=lanes,
    )
    return out


@copy_patches.register_fake
def _(x: Tensor, kernel: Sequence[int], geometry: Sequence[int]) -> Tensor:
    rows, columns = _size(x, kernel, geometry)
    return x.new_empty(x.shape[0], rows * columns, kernel[0] * kernel[1], x.shape[3])
