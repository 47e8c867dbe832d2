"""Forwards of layer, group and root-mean-square normalization that write the book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.layer_parameters import Forward, Shapes, detach


def _book_affine(module: Any, book: Book, shape: tuple[int, ...]) -> tuple[tuple[str, ...], list[BookEntry], Shapes]:
    """The trainable ones of a weight and a bias whose gradients are materialized."""
    entries: list[BookEntry] = []
    kinds: list[str] = []
    for kind in ("weight", "bias"):
        parameter = getattr(module, kind, None)
        if parameter is not None and parameter.requires_grad:
            entries.append(BookEntry(parameter, "gradient", (len(kinds),)))
            kinds.append(kind)
    return tuple(kinds), entries, [((book.units, *shape), torch.float32)] * len(kinds)


def build_layer_norm(layer: str, module: nn.LayerNorm, book: Callable[[], Book]) -> Forward:
    """The forward of a layer normalization."""
    own = type(module).forward
    shape = tuple(module.normalized_shape)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        weight, bias = detach(module.weight), detach(module.bias)
        x, weight, bias = _to_float(x, weight, bias)
        kinds, entries, shapes = _book_affine(module, page, shape)
        call = page.open(layer, entries, shapes)
        return functions.LayerNormFunction.apply(
            x, weight, bias, page.probe, page.units, page.alone(call), shape, module.eps, kinds, *call.slots
        )

    return forward


def _to_float(x: Tensor, *parameters: Tensor | None) -> list[Any]:
    """Normalizations of an enclosing autocast are in 32 bits."""
    if torch.is_autocast_enabled(x.device.type):
        return [None if each is None else each.float() for each in (x, *parameters)]
    return [x, *parameters]


def build_rms_norm(layer: str, module: nn.RMSNorm, book: Callable[[], Book]) -> Forward:
    """The forward of a root-mean-square normalization."""
    own = type(module).forward
    shape = tuple(module.normalized_shape)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        x, weight = _to_float(x, module.weight.detach())
        eps = torch.finfo(x.dtype).eps if module.eps is None else module.eps
        kinds, entries, shapes = _book_affine(module, page, shape)
        call = page.open(layer, entries, shapes)
        return functions.RmsNormFunction.apply(
            x, weight, page.probe, page.units, page.alone(call), shape, eps, kinds, *call.slots
        )

    return forward


def build_group_norm(layer: str, module: nn.GroupNorm, book: Callable[[], Book]) -> Forward:
    """The forward of a group normalization."""
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        x, weight, bias = _to_float(x, detach(module.weight), detach(module.bias))
        kinds, entries, shapes = _book_affine(module, page, (module.num_channels,))
        call = page.open(layer, entries, shapes)
        return functions.GroupNormFunction.apply(
            *(x, weight, bias, page.probe, page.units, page.alone(call)),
            *(module.num_groups, module.eps, kinds, *call.slots),
        )

    return forward
