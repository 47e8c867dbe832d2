"""How much each unit's gradient is scaled, and the sums of the scaled gradients."""

from __future__ import annotations

from torch import Tensor

from tacit.learn.torch.book import LayerCall, booked_parameters
from tacit.learn.torch.clipping import clipped_sums, factors, read_parts, total_columns


def unit_scales(
    calls: list[LayerCall],
    probe: Tensor | None,
    written: list[Tensor],
    indices: list[Tensor | None],
    mask: Tensor,
    clip: Tensor,
    stability: float | None,
    denominator: int,
) -> tuple[Tensor, Tensor]:
    """Return the factors of the units over a constant, and their norms."""
    columns = total_columns(calls, read_parts(calls, written, indices), probe)
    scale, norms = factors(columns, mask, clip, stability)
    return scale / denominator, norms


def scaled_sums(
    calls: list[LayerCall], written: list[Tensor], indices: list[Tensor | None], scale: Tensor, clean: bool
) -> list[Tensor]:
    """Return the sums of scaled gradients in the order of `booked_parameters`."""
    sums = clipped_sums(read_parts(calls, written, indices), scale, clean=clean)
    return [sums[id(parameter)] for parameter in booked_parameters(calls)]
