"""Forwards of modules without a rule of their own: each row gets parameters of its own, and the module is mapped.

**Theorem.** What a mapped module returns for a row is a function of its parameters, its buffers, numbers and text, and
of that row of each tensor that it is given. **Proof.** Tensors are found in tuples, lists and dicts however deep, and
all are mapped along their first dimension, which has one row for each example; anything else that may hold rows is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from tacit.errors import ParameterError
from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.layer_parameters import FREEZE, Forward, list_trainable


def _expand_rows(book: Book, layer: str, own: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each parameter once for each row, booked with materialized gradients."""
    entries = [BookEntry(parameter, "gradient", (n,)) for n, parameter in enumerate(own.values())]
    shapes = [((book.units, *parameter.shape), parameter.dtype) for parameter in own.values()]
    call = book.open(layer, entries, shapes)
    return {
        name: functions.ParameterFunction.apply(
            parameter.detach(), book.probe, book.rows, book.units, book.alone(call), slot
        )
        for (name, parameter), slot in zip(own.items(), call.slots, strict=True)
    }


def map_module(layer: str, module: nn.Module, book: Callable[[], Book]) -> Forward:
    """Any module without children: mapped over the examples, each with parameters of its own."""
    original = type(module).forward

    def forward(module: Any, *inputs: Any, **named: Any) -> Any:
        page = book()
        if not page.is_recording:
            return original(module, *inputs, **named)
        leaves, structure = tree_flatten((inputs, named))
        _check_leaves(layer, leaves, page.rows)

        def one(parameters: dict[str, Tensor], *tensors: Tensor) -> Any:
            rows = iter(tensors)
            values = [next(rows)[None] if isinstance(leaf, Tensor) else leaf for leaf in leaves]
            positional, keywords = tree_unflatten(values, structure)
            with _Replaced(module, parameters):
                return tree_map(_drop_first, original(module, *positional, **keywords))

        mapping = torch.vmap(one, randomness="different")
        own = _expand_rows(page, layer, dict(list_trainable(module)))
        return mapping(own, *(leaf for leaf in leaves if isinstance(leaf, Tensor)))

    return forward


def _check_leaves(layer: str, leaves: list[Any], rows: int) -> None:
    """Refuse inputs that do not say which of their numbers are of which example.

    A tensor without rows may have been computed from all examples of the batch, and an object may hold rows.
    """
    for leaf in leaves:
        if isinstance(leaf, Tensor) and (leaf.dim() == 0 or leaf.shape[0] != rows):
            what = f"has an input of shape {tuple(leaf.shape)}, but the batch has {rows} rows"
            raise ParameterError(layer, what, fix="make what is the same for all examples a buffer of the layer")
        if not isinstance(leaf, _LEAVES):
            what = f"has an input of the type {type(leaf).__name__}, which may hold rows"
            raise ParameterError(layer, what, fix="give the layer tensors, or tuples, lists and dicts of tensors")
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        raise ParameterError(layer, "has no input with one row for each example", fix=FREEZE)


_LEAVES = (Tensor, bool, int, float, complex, str, bytes, torch.dtype, torch.device, type(None))


def _drop_first(result: Any) -> Any:
    return result[0]


class _Replaced:
    """Parameters of a module replaced by tensors, inside a with statement."""

    def __init__(self, module: nn.Module, tensors: dict[str, Tensor]) -> None:
        self.module, self.tensors = module, tensors

    def __enter__(self) -> None:
        self.own = {name: self.module._parameters[name] for name in self.tensors}
        for name, tensor in self.tensors.items():
            self.module._parameters[name] = tensor

    def __exit__(self, *details: object) -> None:
        for name, parameter in self.own.items():
            self.module._parameters[name] = parameter


def expand_parameters(layer: str, module: nn.Module, own: dict[str, Tensor], book: Callable[[], Book]) -> Forward:
    """Parameters [1, ...] of a module with other layers, used once for each row: positions, a class token."""
    for name, parameter in own.items():
        if parameter.dim() < 2 or parameter.shape[0] != 1:
            what = f"uses its parameter {name!r} of shape {tuple(parameter.shape)} beside other layers"
            raise ParameterError(layer, what, fix=f"put {name} in a module of its own, or freeze it")
    original = type(module).forward

    def forward(module: Any, *inputs: Any, **named: Any) -> Any:
        page = book()
        if not page.is_recording:
            return original(module, *inputs, **named)
        mine = _expand_rows(page, layer, dict(list_trainable(module)))
        each = {name: tensor.flatten(0, 1) for name, tensor in mine.items()}
        with _Replaced(module, each):
            return original(module, *inputs, **named)

    return forward
