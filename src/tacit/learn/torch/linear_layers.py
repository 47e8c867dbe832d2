"""Forwards of linear layers and embeddings that write the book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tacit.errors import ParameterError
from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.layer_parameters import Forward, Shapes, cast_for_autocast, detach
from tacit.learn.torch.norms import is_materialized


def call_linear(
    book: Book,
    layer: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    rows: tuple[int, int] | None = None,
    transposed: bool = False,
) -> Tensor:
    """x W^T + b, booked; `rows` are those of a parameter that holds several matrices."""
    book.check_rows(layer, x)
    matrix, offset = weight.detach(), detach(bias)
    if rows is not None:
        matrix, offset = matrix[rows[0] : rows[1]], None if offset is None else offset[rows[0] : rows[1]]
    if transposed:
        matrix = matrix.t()
    x, matrix, offset = cast_for_autocast(x, matrix, offset)
    outputs, inputs = matrix.shape
    tokens = x.numel() // inputs // book.units
    kinds: tuple[str, ...] = ()
    shapes: Shapes = []
    entries: list[BookEntry] = []
    has_bias = bias is not None and bias.requires_grad
    if weight.requires_grad:
        if tokens > 1 and is_materialized(tokens, inputs, outputs) and not transposed:
            kinds, shapes = ("weight",), [((book.units, outputs, inputs), x.dtype)]
            entries.append(BookEntry(weight, "gradient", (0,), rows))
        else:
            kinds = ("input", "output")
            shapes = [((book.units, tokens, inputs), x.dtype), ((book.units, tokens, outputs), x.dtype)]
            entries.append(BookEntry(weight, "outer", (0, 1), rows, transposed))
    if has_bias and bias is not None:
        place = (len(kinds),)
        if tokens == 1 and kinds:
            kinds = (*kinds, "same-bias")
            entries.append(BookEntry(bias, "bias", (1,), rows))
        elif tokens == 1:
            kinds, shapes = (*kinds, "output-bias"), [*shapes, ((book.units, 1, outputs), x.dtype)]
            entries.append(BookEntry(bias, "bias", place, rows))
        else:
            kinds, shapes = (*kinds, "bias"), [*shapes, ((book.units, outputs), torch.float32)]
            entries.append(BookEntry(bias, "gradient", place, rows))
    if not entries:
        return F.linear(x, matrix, offset)
    call = book.open(layer, entries, shapes)
    found: Tensor = functions.LinearFunction.apply(
        x, matrix, offset, book.probe, book.units, book.alone(call), kinds, *call.slots
    )
    return found


def build_linear(layer: str, module: nn.Linear, book: Callable[[], Book]) -> Forward:
    """The forward of a linear layer."""
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        return call_linear(page, layer, x, module.weight, module.bias)

    return forward


def build_transposed_linear(layer: str, module: nn.Module, book: Callable[[], Book]) -> Forward:
    """The Conv1D of transformers: a linear layer whose matrix is [inputs, outputs]."""
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        return call_linear(page, layer, x, module.weight, module.bias, transposed=True)

    return forward


def build_embedding(layer: str, module: nn.Embedding, book: Callable[[], Book]) -> Forward:
    """The forward of an embedding."""
    if module.max_norm is not None or module.scale_grad_by_freq or module.sparse:
        what = "has max_norm, scale_grad_by_freq or sparse, which mix examples or hide gradients"
        raise ParameterError(layer, what, fix="leave these three out")
    own = type(module).forward

    def forward(module: Any, indices: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, indices)
        page.check_rows(layer, indices)
        weight = module.weight.detach()
        tokens = indices.numel() // page.units
        shape = (page.units, tokens, weight.shape[1])
        call = page.open(layer, [BookEntry(module.weight, "rows", (0,))], [(shape, weight.dtype)])
        call.indices = indices.reshape(page.units, -1)
        return functions.EmbeddingFunction.apply(
            indices, weight, page.probe, page.units, page.alone(call), module.padding_idx, *call.slots
        )

    return forward
