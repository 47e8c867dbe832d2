"""Matrix products of 16-bit numbers with 32-bit results.

A product that is returned in 16 bits has rounded sums, which would spoil norms and clipped sums. On a GPU the hardware
adds in 32 bits, and these operators return what it has; elsewhere the operands are widened first. They are operators of
torch's library so that compilers take them as they are: one that widens the operands itself may skip their rounding to
16 bits, and then norms are those of other numbers than the ones that are summed.
"""

from __future__ import annotations

import torch
from torch import Tensor

_VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
_HAS_WIDE_RESULTS = _VERSION >= (2, 8)
_SHORT = (torch.bfloat16, torch.float16)
_LEAST = 512  # rows and columns from which one kernel that scales and sums is faster than a compiler's several


def _has_wide(x: Tensor) -> bool:
    return x.is_cuda and _HAS_WIDE_RESULTS


@torch.compiler.assume_constant_result
def has_triton() -> bool:
    """Return whether Triton is installed."""
    try:
        import triton  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def batched_product(x: Tensor, y: Tensor) -> Tensor:
    """Return x @ y^T of stacks of matrices, in 32 bits."""
    if x.dtype not in _SHORT:
        return torch.bmm(x.float(), y.float().transpose(1, 2))
    found: Tensor = _multiply_batches(x, y)
    return found


def transposed_product(x: Tensor, y: Tensor) -> Tensor:
    """Return x^T @ y of two matrices, in 32 bits."""
    if x.dtype not in _SHORT:
        return x.float().t() @ y.float()
    found: Tensor = _multiply_transposed(x, y)
    return found


def scaled_rows(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return scale_n x_n of a matrix in its precision, and their sum in 32 bits."""
    if x.is_cuda and min(x.shape) >= _LEAST and has_triton():
        from tacit.learn.torch.sums_kernel import scale_rows

        scaled, parts = scale_rows(x, scale)
        return scaled, parts.sum(0)
    wide = x.float() * scale[:, None]
    return wide.to(x.dtype), wide.sum(0)


@torch.library.custom_op("tacit::batched_product", mutates_args=())
def _multiply_batches(x: Tensor, y: Tensor) -> Tensor:
    y = y.transpose(1, 2)
    return torch.bmm(x, y, out_dtype=torch.float32) if _has_wide(x) else torch.bmm(x.float(), y.float())


@_multiply_batches.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[1], y.shape[1], dtype=torch.float32)


@torch.library.custom_op("tacit::transposed_product", mutates_args=())
def _multiply_transposed(x: Tensor, y: Tensor) -> Tensor:
    return torch.mm(x.t(), y, out_dtype=torch.float32) if _has_wide(x) else x.float().t() @ y.float()


@_multiply_transposed.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape[1], y.shape[1], dtype=torch.float32)
