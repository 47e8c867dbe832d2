"""Forwards of modules without a rule of their own: each row gets parameters of its own, and the module is mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

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
        names = list(named)
        given = [*inputs, *named.values()]
        mapped = [isinstance(x, Tensor) and x.dim() > 0 and x.shape[0] == page.rows for x in given]
        if not any(mapped):
            raise ParameterError(layer, "has no input with one row for each example", fix=FREEZE)

        def one(parameters: dict[str, Tensor], *values: Any) -> Any:
            values = tuple(x[None] if is_mapped else x for x, is_mapped in zip(values, mapped, strict=True))
            positional, keywords = values[: len(inputs)], dict(zip(names, values[len(inputs) :], strict=True))
            with _Replaced(module, parameters):
                return _drop_first(original(module, *positional, **keywords))

        mapping = torch.vmap(one, in_dims=(0, *(0 if each else None for each in mapped)), randomness="different")
        return mapping(_expand_rows(page, layer, dict(list_trainable(module))), *given)

    return forward


def _drop_first(result: Any) -> Any:
    return tuple(each[0] for each in result) if isinstance(result, tuple | list) else result[0]


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
