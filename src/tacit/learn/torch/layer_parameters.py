"""What the forwards of all layers share: their trainable parameters, and the precision these are used in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

Forward = Callable[..., Any]
Shapes = list[tuple[tuple[int, ...], torch.dtype]]
FREEZE = "put it in a layer that is supported, or freeze it: set requires_grad to False"


def list_trainable(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The trainable parameters that are the module's own."""
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.requires_grad:
            yield name, parameter


def cast_for_autocast(*tensors: Tensor | None) -> list[Any]:
    """The tensors in the precision of an enclosing autocast; parameters have been detached."""
    device = next(each.device.type for each in tensors if each is not None)
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device)
    return [None if each is None else each.to(dtype) for each in tensors]


def detach(parameter: Tensor | None) -> Tensor | None:
    """A parameter without its gradient, or None."""
    return None if parameter is None else parameter.detach()
