"""Whether the book and the clipped sums are right: a first pass, looked at unit by unit.

Layers that are booked one by one say nothing about what happens between them. Code that mixes examples, or that takes
one row of a parameter for all examples, would give a unit more influence than the clipping norm. So the losses of two
units of the first pass are differentiated on their own. **Each must be written in the rows of its unit and in no
other**, the squared norm must be that of its gradients, which are materialized for once, and the clipped sums must be
these gradients times a factor that is no more than clipping allows. The same is asked of compiled functions, whose
results nothing else compares with those of the functions that they were compiled from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.book import Book, booked_parameters
from tacit.learn.torch.clipping import MARGIN, GradientPart, materialize, read_parts, total_columns

_CLOSE = 1e-3  # relative, beside the error that the columns admit
_ROUNDED = 2.0**-6  # relative, of clipped sums of gradients in 16 bits
_MIXED = "keep examples apart: no statistics over the batch, no parameter that is indexed by example"
_COMPILED = "train without compile, or with another version of torch"

Sums = Callable[[Tensor | None, list[Tensor], Tensor], list[Tensor]]
Scales = Callable[[Tensor, Tensor], Tensor]


def check_pass(losses: Callable[[], Tensor], book: Book, sums: Sums, scales: Scales, *, compiled: bool) -> None:
    """Refuse a model whose units are not apart, or whose norms or clipped sums are wrong.

    `losses` computes those of a pass: again each time where they are compiled, since a compiled backward pass may free
    what it reads. `sums` are the clipped sums that a step applies, by what was written; `scales` are the factors of
    columns.
    """
    slots = book.slots()
    for unit in checked_units(book):
        value = losses()
        weights = torch.zeros_like(value)
        weights[unit * book.rows_per_unit : (unit + 1) * book.rows_per_unit] = 1
        found = torch.autograd.grad(value, [*slots, book.probe], weights, retain_graph=not compiled, allow_unused=True)
        with torch.no_grad():
            written = [torch.zeros_like(s) if w is None else w.detach() for s, w in zip(slots, found[:-1], strict=True)]
            _check_unit(book, unit, found[-1], written, sums, scales, _COMPILED if compiled else _MIXED)


def checked_units(book: Book) -> list[int]:
    """Return the units that are looked at: the first and the last."""
    return sorted({0, book.units - 1})


def only(unit: int, units: int, device: torch.device) -> Tensor:
    """Return a mask that only one unit is in."""
    return torch.arange(units, device=device) == unit


def _check_unit(
    book: Book, unit: int, probe: Tensor | None, written: list[Tensor], sums: Sums, scales: Scales, fix: str
) -> None:
    parts = read_parts(book.calls, written, [call.indices for call in book.calls])
    columns = total_columns(book.calls, parts, probe)
    counted = only(unit, book.units, columns.device)
    if bool((columns[~counted, 0] > 0).any()):
        refuse("the loss of one example changes with another example", fix)
    gradients = _gradients(parts, unit, book.units)
    true = torch.stack([each.square().sum() for each in gradients.values()]).sum()
    if not bool(torch.isfinite(true)):
        return
    square, error, scaling = columns[unit].unbind()
    if bool((square - true).abs() > _CLOSE * true + error):
        refuse("a layer's norm is not that of its gradient", fix)
    exact = torch.zeros_like(columns)
    exact[unit, 0] = true
    least, most = scales(columns, counted)[unit], scales(exact, counted)[unit] / MARGIN
    applied = dict(zip(map(id, booked_parameters(book.calls)), sums(probe, written, counted), strict=True))
    factor = torch.stack([(applied[key].float() * each).sum() for key, each in gradients.items()]).sum() / true
    far = torch.stack([(applied[key] - factor * each).square().sum() for key, each in gradients.items()]).sum().sqrt()
    if not bool(true > 0):
        right = all(not bool(each.any()) for each in applied.values())
    else:
        near = _ROUNDED * true.sqrt() + error.clamp_min(0).sqrt() + scaling.sqrt()
        right = bool((least * (1 - _ROUNDED) <= factor) & (factor <= most * (1 + _CLOSE)) & (far <= most * near))
    if not right:
        refuse("a clipped sum is not the gradient times its factor", fix)


def refuse(what: str, fix: str = _COMPILED) -> None:
    """Raise the error of a first pass that is not right."""
    raise ParameterError("model", f"gradients of single examples differ from the batch's: {what}", fix=fix)


def _gradients(parts: Sequence[Sequence[GradientPart]], unit: int, units: int) -> dict[int, Tensor]:
    """A unit's gradient of each parameter, materialized."""
    sums: dict[int, Tensor] = {}
    for part in (each for mine in parts for each in mine):
        gradient = materialize(_of_unit(part, unit, units)).float()[0]
        key, rows = part.entry.key
        if rows is not None:
            whole = torch.zeros(part.entry.parameter.shape, device=gradient.device)
            whole[rows[0] : rows[1]] = gradient
            gradient = whole
        sums[key] = sums[key] + gradient if key in sums else gradient
    return sums


def _of_unit(part: GradientPart, unit: int, units: int) -> GradientPart:
    """The same part for one unit."""

    def one(tensor: Tensor) -> Tensor:
        rows = tensor.shape[0] // units
        return tensor[unit * rows : (unit + 1) * rows]

    return GradientPart(part.entry, tuple(map(one, part.tensors)), None if part.indices is None else one(part.indices))
