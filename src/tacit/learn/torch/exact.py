"""Sums of integers, and exact discrete noise: nothing about floating point is taken for granted.

**Theorem.** A step is `GridGaussian`'s release of a vector of integers that one unit moves by at most 1, in units of
the clipping norm, in L2. **Proof.** The gradients of a unit are doubles, materialized. Their norm n is computed in
doubles, from squares that do not cancel: its relative error is below 2^-20. Each number is scaled by s <= MARGIN/n,
rounded in a product, and truncated towards zero to a multiple of 2^-`EXPONENT`; neither makes the vector longer than
1. A unit whose norm is not finite adds zeros. Integers are added without rounding: those of a pass, which has fewer
than 2^20 units, in 64 bits, and those of all passes as a `WholeSum`. Other units add the same with one unit more as
without it, if they are in the same places: the theorem of places of `batches` says when they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.noise import GridGaussian
from tacit.learn.torch.book import LayerCall
from tacit.learn.torch.clipping import MARGIN, materialize, read_parts
from tacit.sampling.bits import Bits

EXPONENT = 40
_MOST_UNITS = 2**20
_MOST_PASSES = 2**33
_LOW = 2**32


@dataclass(frozen=True, eq=False)
class WholeSum:
    """The integers high 2^32 + low: a sum of those of so many passes.

    **Theorem.** It is exact: no addition leaves 64 bits. **Proof.** Of n passes, |low| <= 2^60 and
    |high| <= (n - 1) 2^29, by induction. One pass has high = 0, and fewer than 2^20 units, each of which adds at most
    2^`EXPONENT` = 2^40. A sum of two takes the last 32 bits of either low, together below 2^33, and adds the rest, at
    most 2^28 each in size, to both high. And n is at most 2^33.
    """

    low: Tensor
    high: Tensor | int = 0
    passes: int = 1

    def __add__(self, other: WholeSum) -> WholeSum:
        """Return the sum of the passes of both."""
        passes = self.passes + other.passes
        if passes > _MOST_PASSES:
            raise ParameterError("units_per_pass", "a step has over 2^33 passes", fix="units_per_pass=1024")
        low = (self.low & (_LOW - 1)) + (other.low & (_LOW - 1))
        return WholeSum(low, self.high + other.high + (self.low >> 32) + (other.low >> 32), passes)

    def to_integers(self) -> npt.NDArray[Any]:
        """Return them as Python's."""
        low = self.low.numpy().astype(object)
        return low if isinstance(self.high, int) else low + self.high.numpy().astype(object) * _LOW


def integer_sums(
    calls: list[LayerCall],
    written: list[Tensor],
    counted: Tensor,
    parameters: list[Tensor],
    stability: float | None,
    clip: float,
) -> dict[int, WholeSum]:
    """Return the sum over units of each parameter's clipped gradients, in units of clip 2^-EXPONENT."""
    if counted.shape[0] >= _MOST_UNITS:
        raise ParameterError("units_per_pass", "must be below 2^20 for exact noise", fix="units_per_pass=1024")
    gradients: dict[int, Tensor] = {}
    for part in (each for mine in read_parts(calls, written, [call.indices for call in calls]) for each in mine):
        key, rows = part.entry.key
        found = materialize(part).double()
        whole = gradients.setdefault(key, torch.zeros(len(found), *part.entry.parameter.shape, dtype=torch.float64))
        if rows is None:
            whole += found
        else:
            whole[:, rows[0] : rows[1]] += found
    norms = torch.stack([each.flatten(1).square().sum(1) for each in gradients.values()]).sum(0).sqrt()
    scale = clip / norms if stability is None else clip / (norms + stability)
    scale = torch.clamp(scale, max=1.0) if stability is None else scale
    kept = counted & torch.isfinite(norms) & torch.isfinite(scale)
    factor = torch.where(kept, scale * (MARGIN / clip), 0.0)
    sums = {}
    for parameter in parameters:
        each = gradients[id(parameter)]
        along = [-1] + [1] * (each.dim() - 1)
        finite = torch.where(kept.reshape(along), each, 0.0)
        sums[id(parameter)] = WholeSum((finite * factor.reshape(along) * 2.0**EXPONENT).trunc().long().sum(0))
    return sums


def release(sums: dict[int, WholeSum], parameters: list[Tensor], grid: GridGaussian, bits: Bits) -> list[Tensor]:
    """Return the sums with exact noise, in units of the clipping norm."""
    values = np.concatenate([sums[id(parameter)].to_integers().ravel() for parameter in parameters])
    noisy = grid.release_whole(values, EXPONENT, bits)
    found, start = [], 0
    for parameter in parameters:
        size = parameter.numel()
        found.append(torch.from_numpy(noisy[start : start + size]).reshape(parameter.shape))
        start += size
    return found
