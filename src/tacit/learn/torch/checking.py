"""Whether the book and the clipped sums are right: a first pass, looked at unit by unit.

Layers that are booked one by one say nothing about what happens between them. Code that mixes examples, or that takes
one row of a parameter for all examples, would give a unit more influence than the clipping norm. So the losses of two
units of the first pass are differentiated on their own. **Each must be written in the rows of its unit and in no
other**, the squared norm must be that of its gradients, which are materialized for once, and the clipped sums must be
these gradients times a factor that is no more than clipping allows. Then the losses of all units are differentiated at
once, those of others times `_LOUD`: **what is written in the rows of the unit must be what was written there alone**.
Code of a backward pass that reads gradients of other examples, as one that divides by their norm over the batch, does
nothing forbidden to a unit alone. Made loud, the others also pass the threshold of code that mixes where gradients are
large. The same is asked of compiled functions, whose results nothing else compares with those of the functions that
they were compiled from; captured steps are recorded from them.

The check takes four backward passes, and four forward passes more where they are compiled.
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
_LOUD = 2.0**10  # the factor of the other units' losses: a power of two, so that nothing is rounded otherwise
_COMPILED = "train without compile, or with another version of torch"

Sums = Callable[[Tensor | None, list[Tensor], Tensor], list[Tensor]]
Scales = Callable[[Tensor, Tensor], Tensor]


def check_pass(losses: Callable[[], Tensor], book: Book, sums: Sums, scales: Scales, *, compiled: bool) -> None:
    """Refuse a model whose units are not apart, or whose norms or clipped sums are wrong.

    `losses` computes those of a pass: again each time where they are compiled, since a compiled backward pass may free
    what it reads. `sums` are the clipped sums that a step applies, by what was written; `scales` are the factors of
    columns.
    """
    for unit in checked_units(book):
        probe, written = _differentiate(losses, book, _weigh_losses(book, unit, 0.0), compiled=compiled)
        with torch.no_grad():
            fix = _COMPILED if compiled else _MIXED
            _check_unit(book, unit, probe, written, sums, scales, fix)
            alone = [each.clone() for each in _rows_of(book, unit, probe, written)]  # the next pass may overwrite it
        probe, written = _differentiate(losses, book, _weigh_losses(book, unit, _LOUD), compiled=compiled)
        with torch.no_grad():
            if not all(map(_is_same, alone, _rows_of(book, unit, probe, written))):
                refuse("the gradients of one example change with those of others", fix)


def _differentiate(
    losses: Callable[[], Tensor], book: Book, weights: Tensor, *, compiled: bool
) -> tuple[Tensor | None, list[Tensor]]:
    """The probe's gradient and what layers write, for weighted losses; a forward pass draws the same numbers again."""
    slots = book.slots()
    with torch.random.fork_rng([weights.device] if weights.is_cuda else []):
        value = losses()
        wanted, each = [*slots, book.probe], weights.to(value.dtype)
        found = torch.autograd.grad(value, wanted, each, retain_graph=not compiled, allow_unused=True)
    return found[-1], [torch.zeros_like(s) if w is None else w.detach() for s, w in zip(slots, found[:-1], strict=True)]


def _weigh_losses(book: Book, unit: int, others: float) -> Tensor:
    """The weights of the losses: 1 for the rows of the unit, and `others` for all else."""
    mine = only(unit, book.units, book.device).repeat_interleave(book.rows_per_unit)
    return torch.where(mine, 1.0, others)


def _rows_of(book: Book, unit: int, probe: Tensor | None, written: list[Tensor]) -> list[Tensor]:
    """What was written for one unit."""
    return [_take_unit(each, unit, book.units) for each in (*written, *([] if probe is None else [probe]))]


def _take_unit(tensor: Tensor, unit: int, units: int) -> Tensor:
    rows = tensor.shape[0] // units
    return tensor[unit * rows : (unit + 1) * rows]


def _is_same(alone: Tensor, among: Tensor) -> bool:
    """Whether two tensors are the same but for rounding; numbers that are not finite add nothing, and may differ."""
    first, second = alone.float(), among.float()
    if not bool(torch.isfinite(first.square().sum())):
        return True
    return bool((first - second).norm() <= _ROUNDED * first.norm())


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
        return _take_unit(tensor, unit, units)

    return GradientPart(part.entry, tuple(map(one, part.tensors)), None if part.indices is None else one(part.indices))
