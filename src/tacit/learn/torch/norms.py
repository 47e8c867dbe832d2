"""Squared norms of per-example weight gradients, without the gradients, and bounds on their rounding errors.

The gradient of a matrix for one example is G = sum_t g_t a_t^T, where a_t enters the layer and g_t is the gradient of
what leaves it. |G|^2 is the sum over s, t of (a_s . a_t)(g_s . g_t): two Gram matrices instead of G.

**Lemma (norm).** Let u be the unit roundoff of sums. If dot products of length n are computed with a relative error of
at most `dot_error(n)` of the sum of the absolute values, the computed |G|^2 is at least the true one less
`dot_error(n)` times S, S = (sum_t |a_t| |g_t|)^2. Proof: |(a_s . a_t)(g_s . g_t)| <= |a_s| |a_t| |g_s| |g_t|, which sum
to S; n counts both dot products and the sum over s and t.

**Lemma (scaling).** If each element of the scaled operand X (the a_t or the g_t) is off by a relative u, what is summed
is off from c G by at most u c |X|_F |Y|_2 <= u c sqrt(tr XX^T) |YY^T|_F^(1/2) in Frobenius norm, where Y is the other
operand. Proof: |E Y|_F <= |E|_F |Y|_2, and |Y|_2^2 = |YY^T|_2 <= |YY^T|_F.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tacit.learn.torch.products import batched_product, has_triton

COLUMNS = 3
"""What a layer reports of each example: |G|^2, a bound of its rounding error, and the squared error of scaling."""
LARGEST = 2.0**50
"""The largest squared norm of an operand: units beyond it count as infinite, so that squares that underflow are small.

A square below 2^-126 may be flushed to zero. Then the operand has a norm below 2^-63 sqrt(n), and the other one at most
2^25: what they contribute without being counted is below 2^-38 sqrt(n).
"""
MATERIALIZED = 1.0
"""How many times as large as its operands the gradient of a unit may be to be materialized: speed, not privacy."""
_DEVIATIONS = 8.0  # of a sum of rounding errors: a normal variable is beyond with a probability of 1e-15


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return half the distance from one to the next number, of numbers as matrix products read them."""
    if dtype == torch.float32 and _has_short_products():
        return 2.0**-11
    return torch.finfo(dtype).eps / 2


@torch.compiler.assume_constant_result
def _has_short_products() -> bool:
    """Whether matrix products read 32-bit numbers as TF32, with 11 bits."""
    return torch.cuda.is_available() and torch.get_float32_matmul_precision() != "highest"


def dot_error(length: int, dtype: torch.dtype) -> float:
    """Return the relative error of a dot product with 32-bit sums: min(n, 8 sqrt(n)) u (Higham and Mary 2019)."""
    rounded_operands = 2 * unit_roundoff(torch.float32) if dtype == torch.float32 else 0.0
    return min(length, _DEVIATIONS * math.sqrt(length)) * 2.0**-24 + rounded_operands


def is_materialized(tokens: int, inputs: int, outputs: int) -> bool:
    """Return whether the gradient of an example is smaller than the vectors it is made of."""
    return inputs * outputs <= MATERIALIZED * tokens * (inputs + outputs)


def to_units(x: Tensor, units: int) -> Tensor:
    """Return [rows, ..., d] as [units, tokens, d]: the rows of a unit lie one after another."""
    return x.reshape(units, -1, x.shape[-1])


def outer_columns(a: Tensor, g: Tensor) -> Tensor:
    """Return the columns of the gradients sum_t g_t a_t^T, for a [units, tokens, d] and g [units, tokens, p]."""
    scaled, other = (a, g) if a.shape[-1] <= g.shape[-1] else (g, a)
    length = a.shape[-1] + g.shape[-1] + a.shape[1] ** 2
    with torch.autocast(a.device.type, enabled=False):
        if a.shape[1] == 1:
            return _single_token(scaled[:, 0], other[:, 0])
        if use_kernel(scaled, other):
            from tacit.learn.torch.gram_kernel import gram_sums

            # Contiguous here, where a compiler writes them so, and not in the kernel's wrapper, which would copy them.
            square, path, trace, other_square = gram_sums(scaled.contiguous(), other.contiguous()).unbind(1)
        else:
            scaled_gram, other_gram = gram(scaled), gram(other)
            square = (scaled_gram * other_gram).sum((1, 2))
            diagonal = scaled_gram.diagonal(dim1=1, dim2=2)
            path = (diagonal * other_gram.diagonal(dim1=1, dim2=2)).clamp_min(0).sqrt().sum(1)
            trace, other_square = diagonal.sum(1), other_gram.square().sum((1, 2))
        far = (trace > LARGEST) | (other_square > LARGEST**2)
        error = unit_roundoff(a.dtype) ** 2 * trace * other_square.sqrt()
        return torch.stack((_or_infinite(square, far), dot_error(length, a.dtype) * path.square(), error), 1)


def _single_token(scaled: Tensor, other: Tensor) -> Tensor:
    """The columns where G = g a^T, whose norm is |g| |a|."""
    first, second = scaled.float().square().sum(1), other.float().square().sum(1)
    square = _or_infinite(first * second, (first > LARGEST) | (second > LARGEST))
    error = torch.zeros_like(square) if scaled.dtype == torch.float32 else _early_error(scaled.dtype, 2) * square
    return torch.stack((square, error, unit_roundoff(scaled.dtype) ** 2 * square), 1)


def _or_infinite(square: Tensor, far: Tensor) -> Tensor:
    """The squared norms, and infinity where an operand is too large; NaN stays."""
    return torch.where(far, torch.inf, square)


def gram(x: Tensor) -> Tensor:
    """Return the Gram matrices of [units, tokens, d], with products and sums in 32 bits."""
    return batched_product(x, x)


def square_columns(gradients: Tensor) -> Tensor:
    """Return the columns of per-example gradients [units, ...] that are materialized: their squared norms."""
    square = gradients.float().square().flatten(1).sum(1)
    zeros = torch.zeros_like(square)  # stacked: compilers have filled padding beside a sum with the sum
    error = zeros if gradients.dtype == torch.float32 else _early_error(gradients.dtype, 1) * square
    return torch.stack((square, error, zeros), 1)


def _early_error(dtype: torch.dtype, operands: int) -> float:
    """Return by what share a square of numbers may grow when they are rounded to 16 bits after it was taken.

    A compiler that fuses a layer with its norm may square numbers before it rounds them to what the book has.
    """
    return (1 + unit_roundoff(dtype)) ** (2 * operands) - 1


def use_kernel(scaled: Tensor, other: Tensor) -> bool:
    """Return whether the fused kernel computes both Gram matrices: on a GPU, for 16-bit numbers of common widths."""
    widths = max(scaled.shape[-1], other.shape[-1]) <= 8192
    return scaled.is_cuda and scaled.dtype in (torch.bfloat16, torch.float16) and widths and has_triton()


def row_columns(indices: Tensor, e: Tensor) -> Tensor:
    """Return the columns of gradients that add e_t to the row indices_t, for e [units, tokens, d]."""
    same = indices[:, :, None] == indices[:, None, :]
    with torch.autocast(e.device.type, enabled=False):
        products = gram(e)
        square = (products * same).sum((1, 2))
        path = products.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt().sum(1)
        square = _or_infinite(square, path > LARGEST**0.5)
        error = dot_error(e.shape[-1] + e.shape[1] ** 2, e.dtype) * path.square()
        return torch.stack((square, error, torch.zeros_like(square)), 1)


def cross_columns(a: Tensor, g: Tensor, indices: Tensor, e: Tensor) -> Tensor:
    """Return twice the inner products of sum_s g_s a_s^T and of the rows e_t at indices_t, of one tied matrix."""
    units, queries, tokens = a.shape[0], a.shape[1], e.shape[1]
    with torch.autocast(e.device.type, enabled=False):
        common = a.dtype if a.dtype == e.dtype else torch.float32
        products = batched_product(a.to(common), e.to(common))
        at = g.gather(2, indices[:, None, :].expand(units, queries, tokens)).float()
        square = 2 * (products * at).sum((1, 2))
        lengths = (vector_norm(a) * vector_norm(g)).sum(1) * vector_norm(e).sum(1)
        error = 2 * dot_error(a.shape[-1] + queries * tokens, e.dtype) * lengths
        return torch.stack((square, error, torch.zeros_like(square)), 1)


def vector_norm(x: Tensor) -> Tensor:
    """Return the norms of the vectors of [units, tokens, d], in 32 bits."""
    return x.float().square().sum(-1).sqrt()
