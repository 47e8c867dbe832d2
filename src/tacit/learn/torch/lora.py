"""Low-rank adapters: few parameters to learn beside frozen linear layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tacit.errors import ParameterError


class LowRankLinear(nn.Module):
    """A frozen linear layer, plus `scale` up(down(x)) of two small ones that are learned."""

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        place = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.down = nn.Linear(base.in_features, rank, bias=False, **place)
        self.up = nn.Linear(rank, base.out_features, bias=False, **place)
        with torch.no_grad():
            self.up.weight.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """The frozen layer's output, and the adapter's."""
        found: Tensor = self.base(x) + self.scale * self.up(self.down(x))
        return found


def add_lora(model: nn.Module, *, rank: int, scale: float = 1.0, layers: Sequence[str] | None = None) -> nn.Module:
    """Freeze a model, and give linear layers of it low-rank adapters that are learned.

    Parameters
    ----------
    model : nn.Module
        Changed in place: its linear layers are replaced by ones with adapters.
    rank : int
        Rank of the adapters, far below the widths of the layers.
    scale : float, default 1.0
        Factor of what the adapters add.
    layers : sequence of str, optional
        Ends of the names of the layers that get adapters; all linear layers where it is left out.

    Returns
    -------
    nn.Module
        The same model.

    Examples
    --------
    >>> model = add_lora(nn.Sequential(nn.Linear(64, 64)), rank=2)
    >>> sum(p.numel() for p in model.parameters() if p.requires_grad)
    256
    """
    model.requires_grad_(False)
    found = 0
    for parent_name, parent in list(model.named_modules()):
        if isinstance(parent, nn.MultiheadAttention | LowRankLinear):
            continue
        for name, child in list(parent.named_children()):
            full = f"{parent_name}.{name}".removeprefix(".")
            if type(child) is nn.Linear and (layers is None or full.endswith(tuple(layers))):
                setattr(parent, name, LowRankLinear(child, rank, scale))
                found += 1
    if not found:
        raise ParameterError("layers", "no linear layer has such a name", fix="leave layers out")
    return model
