"""The forward of convolutions that writes the book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tacit.errors import ParameterError
from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.layer_parameters import Forward, Shapes, cast_for_autocast, detach


def build_convolution(layer: str, module: nn.Conv1d | nn.Conv2d, book: Callable[[], Book]) -> Forward:
    """The forward of a convolution in one or two dimensions."""
    if module.padding_mode != "zeros":
        raise ParameterError(layer, "pads by other values than zeros", fix="padding_mode='zeros'")
    own = type(module).forward
    geometry = (module.stride, _read_padding(layer, module), module.dilation, module.groups)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        weight, bias = module.weight, module.bias
        x, kernel, offset = cast_for_autocast(x, weight.detach(), detach(bias))
        with torch.no_grad():
            size = _find_places(x, kernel.shape, geometry)
        places = size.numel() * page.rows_per_unit
        kinds: tuple[str, ...] = ()
        shapes: Shapes = []
        entries: list[BookEntry] = []
        if weight.requires_grad:
            if functions.is_kernel_materialized(places, kernel.shape, module.groups):
                kinds, shapes = ("weight",), [((page.units, *functions.channels_last(kernel.shape)), x.dtype)]
                entries.append(BookEntry(weight, "gradient", (0,), channels_last=True))
            else:
                kinds = ("input", "output")
                inputs, outputs = (*x.shape[2:], x.shape[1]), (*size, kernel.shape[0])
                shapes = [((x.shape[0], *inputs), x.dtype), ((x.shape[0], *outputs), x.dtype)]
                entries.append(BookEntry(weight, "kernel", (0, 1), geometry=geometry, rows_per_unit=page.rows_per_unit))
        if bias is not None and bias.requires_grad:
            entries.append(BookEntry(bias, "gradient", (len(kinds),)))
            kinds, shapes = (*kinds, "bias"), [*shapes, ((page.units, kernel.shape[0]), torch.float32)]
        call = page.open(layer, entries, shapes)
        return functions.ConvolutionFunction.apply(
            x, kernel, offset, page.probe, page.units, page.alone(call), geometry, kinds, *call.slots
        )

    return forward


def _read_padding(layer: str, module: Any) -> tuple[int, ...]:
    """The zeros on both sides of each dimension."""
    if not isinstance(module.padding, str):
        return tuple(module.padding)
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    total = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size, strict=True)]
    if any(each % 2 for each in total):
        raise ParameterError(layer, "pads one side more than the other", fix="choose an odd kernel_size")
    return tuple(each // 2 for each in total)


def _find_places(x: Tensor, shape: torch.Size, geometry: tuple[Any, ...]) -> torch.Size:
    """The size of what a convolution returns, without its channels."""
    stride, padding, dilation, _ = geometry
    return torch.Size(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(x.shape[2:], shape[2:], stride, padding, dilation, strict=True)
    )
