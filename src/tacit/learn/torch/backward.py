"""The one backward pass, and whether the book then has every parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.book import Book


def backward(
    book: Book, losses: Tensor, mask: Tensor, parameters: Sequence[Tensor], names: Mapping[int, str]
) -> tuple[Tensor | None, list[Tensor]]:
    """Return the probe's gradient and what layers wrote; every parameter must be in the book, and in it alone."""
    slots = book.slots()
    wanted = [*slots, *parameters, book.probe]
    found = torch.autograd.grad(losses, wanted, mask.to(losses.dtype), allow_unused=True)
    written, outside, probe = found[: len(slots)], found[len(slots) : -1], found[-1]
    _check_book(book, parameters, names, outside)
    if not any(each is not None for each in written):
        raise ParameterError("losses", "do not depend on the model's parameters", fix="compute them from model(batch)")
    return probe, [torch.zeros_like(s) if w is None else w.detach() for s, w in zip(slots, written, strict=True)]


def _check_book(
    book: Book, parameters: Sequence[Tensor], names: Mapping[int, str], outside: Sequence[Tensor | None]
) -> None:
    booked = {id(entry.parameter) for call in book.calls for entry in call.entries}
    for parameter, gradient in zip(parameters, outside, strict=True):
        name = names[id(parameter)]
        if gradient is not None:
            what = "is used outside of the layer that it belongs to, where its gradient per example is not known"
            raise ParameterError(name, what, fix="call the layer itself, or freeze the parameter")
        if id(parameter) not in booked:
            what = "is trainable, but no supported layer used it in this batch"
            raise ParameterError(name, what, fix="use it in every batch, or freeze it: requires_grad=False")
    if booked - {id(parameter) for parameter in parameters}:
        raise ParameterError("model", "a copy of the model was called in a step", fix="call it under torch.no_grad()")
