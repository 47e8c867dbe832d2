"""From the book to the sum of clipped gradients.

**Theorem (one unit).** Let G be what one unit's gradients are in exact arithmetic of the numbers in the book, c its
factor, and R what is added for it to the sum, in exact arithmetic of the scaled numbers. Then |R| <= C. **Proof.** By
the lemmas of `norms`, |G|^2 <= square + error, and |R - c G| <= c sqrt(scaling), with the three columns summed over the
parameters, so |R| <= c (sqrt(square + error) + sqrt(scaling)) = c n. `factors` returns at most (1 - 2^-10) C/n, and
2^-10 is more than the few roundings of n, of the division and of a product with 32 bits. A unit that is masked, or
whose n is not finite, has a factor of 0, and then R = 0: its numbers are replaced by zeros, since 0 times infinity is
no number. Under automatic clipping the factor is less still.

So sums of neighbors, one of which has one unit more, are at most C apart where the other units are in the same places
of their passes (`batches` has the theorem), but for the rounding of the sum itself: 32-bit additions in an order that
the hardware chooses. This is treated as exact, and the guarantee of `Private` says so; with `noise="exact"` there is no
such step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tacit.learn.torch.book import BookEntry, LayerCall
from tacit.learn.torch.functions import channels_first, channels_last, patches
from tacit.learn.torch.norms import cross_columns, outer_columns, row_columns, square_columns, to_units
from tacit.learn.torch.products import scaled_rows, transposed_product

MARGIN = 1 - 2.0**-10


@dataclass(frozen=True, eq=False)
class GradientPart:
    """An entry of a call, with what was written for it, and whether no other call has its parameter."""

    entry: BookEntry
    tensors: tuple[Tensor, ...]
    indices: Tensor | None
    alone: bool = False

    @property
    def operands(self) -> tuple[Tensor, Tensor]:
        """The a and g of "outer", for which the gradient is sum_t g_t a_t^T."""
        a, g = self.tensors
        return (g, a) if self.entry.transposed else (a, g)


def read_parts(
    calls: Sequence[LayerCall], written: Sequence[Tensor], indices: Sequence[Tensor | None]
) -> list[list[GradientPart]]:
    """Return the parts of each call, from what was written to the slots of all calls in order."""
    parts, start = [], 0
    for call, rows in zip(calls, indices, strict=True):
        mine = written[start : start + len(call.slots)]
        start += len(call.slots)
        parts.append(
            [GradientPart(entry, tuple(mine[n] for n in entry.slots), rows, call.alone) for entry in call.entries]
        )
    return parts


def total_columns(calls: Sequence[LayerCall], parts: list[list[GradientPart]], probe: Tensor | None) -> Tensor:
    """Return the columns of all parameters: the probe's, and those of parameters that several calls share."""
    shared: defaultdict[Any, list[GradientPart]] = defaultdict(list)
    for call, mine in zip(calls, parts, strict=True):
        if not call.alone:
            for part in mine:
                shared[part.entry.key[0]].append(part)
    columns = [_shared_columns(group) for mine in shared.values() for group in _align_rows(mine)]
    columns += [] if probe is None else [probe]
    return sum(columns[1:], start=columns[0])


def _align_rows(parts: list[GradientPart]) -> list[list[GradientPart]]:
    """Return the parts of one parameter, cut where one of them begins or ends, in groups of the same rows.

    One attention module may read its three matrices as one in one call, and one by one in another.
    """
    ranges = [_rows_of(part) for part in parts]
    if all(each == ranges[0] for each in ranges):
        return [parts]
    cuts = sorted({cut for each in ranges for cut in each})
    groups = []
    for n in range(len(cuts) - 1):
        first, last = cuts[n], cuts[n + 1]
        inside = [part for part, (start, end) in zip(parts, ranges, strict=True) if start <= first and last <= end]
        groups += [[_cut_rows(part, first, last) for part in inside]] if inside else []
    return groups


def _rows_of(part: GradientPart) -> tuple[int, int]:
    return part.entry.rows or (0, part.entry.parameter.shape[0])


def _cut_rows(part: GradientPart, first: int, last: int) -> GradientPart:
    """The part's gradients of these rows of the parameter, which are among its own."""
    start, end = _rows_of(part)
    if (start, end) == (first, last):
        return part
    kind = part.entry.kind if part.entry.kind in ("outer", "bias") else "gradient"
    if kind == "outer":
        a, g = part.operands
        tensors: tuple[Tensor, ...] = (a, g[..., first - start : last - start])
    elif kind == "bias":
        tensors = (part.tensors[0][..., first - start : last - start],)
    else:
        tensors = (materialize(part)[:, first - start : last - start],)
    return replace(part, entry=BookEntry(part.entry.parameter, kind, (), (first, last)), tensors=tensors)


def _shared_columns(group: list[GradientPart]) -> Tensor:
    """The columns of the sum of several gradients of one parameter.

    Linear layers are one over more tokens, and so are embeddings; both of one matrix have a cross term. Anything else
    is materialized.
    """
    outer = [part for part in group if part.entry.kind == "outer"]
    rows = [part for part in group if part.entry.kind == "rows"]
    if len(outer) + len(rows) < len(group):
        return square_columns(sum(materialize(part).float() for part in group))
    found = []
    if outer:
        a, g = (_join_tokens([part.operands[n] for part in outer]) for n in range(2))
        found.append(outer_columns(a, g))
    if rows:
        indices = _join_tokens([part.indices for part in rows if part.indices is not None])
        e = _join_tokens([part.tensors[0] for part in rows])
        found.append(row_columns(indices, e))
    if outer and rows:
        found.append(cross_columns(a, g, indices, e))
    return sum(found[1:], start=found[0])


def _join_tokens(tensors: list[Tensor]) -> Tensor:
    """The tokens of several tensors one after another, without a copy where there is one."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, 1)


def _unfold_part(part: GradientPart) -> list[tuple[Tensor, Tensor]]:
    """The patches and gradients of a convolution, for each group."""
    x, g = part.tensors
    return patches(x, g, part.entry.parameter.shape, part.entry.geometry, x.shape[0])


def materialize(part: GradientPart) -> Tensor:
    """Return the gradients of each unit: [units, *shape]."""
    entry = part.entry
    shape = entry.parameter.shape
    if entry.kind == "gradient":
        return channels_first(part.tensors[0], shape) if entry.channels_last else part.tensors[0]
    if entry.kind == "bias":
        return part.tensors[0][:, 0]
    if entry.kind == "rows":
        assert part.indices is not None
        units, tokens, width = part.tensors[0].shape
        zeros = part.tensors[0].new_zeros(units, entry.parameter.shape[0], width, dtype=torch.float32)
        return zeros.scatter_add(1, part.indices[:, :, None].expand(units, tokens, width), part.tensors[0].float())
    if entry.kind == "outer":
        a, g = part.operands
        return torch.bmm(g.float().transpose(1, 2), a.float())
    units = entry.units(part.tensors[0].shape[0])
    pairs = [(to_units(a, units), to_units(g, units)) for a, g in _unfold_part(part)]
    products = [torch.bmm(g.float().transpose(1, 2), a.float()) for a, g in pairs]
    return channels_first(torch.cat(products, 1).reshape(units, *channels_last(shape)), shape)


def factors(columns: Tensor, mask: Tensor, clip: Tensor, stability: float | None) -> tuple[Tensor, Tensor]:
    """Return the factor of each unit, and its norm from above; `stability` is that of automatic clipping."""
    square, error, scaling = columns.unbind(1)
    norms = ((square + error).clamp_min(0).sqrt() + scaling.sqrt()) * (1 + 2.0**-20)
    norms = torch.where(torch.isnan(square), torch.nan, norms)
    room = clip * MARGIN
    scale = torch.clamp(room / norms, max=1.0) if stability is None else room / (norms + stability)
    return torch.where(mask & torch.isfinite(norms), scale, 0.0), norms


def clipped_sums(parts: list[list[GradientPart]], scale: Tensor, *, clean: bool) -> dict[int, Tensor]:
    """Return the sum over units of scale times gradient, of each parameter by its id, in 32 bits.

    With `clean`, numbers of units whose scale is 0 are replaced by zeros; it is needed where one of them is not finite.
    """
    sums: dict[int, Tensor] = {}
    kept = [[_keep_finite(part, scale) if clean else part for part in mine] for mine in parts]
    pairs = [(part, outputs) for mine in kept for outputs in [_scale_outputs(mine, scale)] for part in mine]
    for part, outputs in sorted(pairs, key=lambda pair: pair[0].entry.kind == "rows"):
        entry = part.entry
        before = sums.get(id(entry.parameter))
        if entry.kind == "rows":
            sums[id(entry.parameter)] = _add_rows(part, scale, before)
            continue
        found = _weigh(part, scale, outputs)
        if entry.rows is not None:
            whole = torch.zeros(entry.parameter.shape, device=found.device) if before is None else before
            whole[entry.rows[0] : entry.rows[1]] += found
            sums[id(entry.parameter)] = whole
        else:
            sums[id(entry.parameter)] = found if before is None else before + found
    return sums


def _keep_finite(part: GradientPart, scale: Tensor) -> GradientPart:
    """The same part with zeros for units whose scale is 0."""
    kept = [torch.where(_along(scale, each) > 0, each, torch.zeros_like(each)) for each in part.tensors]
    return replace(part, tensors=tuple(kept))


def _scale_outputs(parts: list[GradientPart], scale: Tensor) -> tuple[Tensor, Tensor] | None:
    """The gradients of the outputs times the scale, and their sum, where a matrix and a bias need both.

    With one token for each unit the error of scaling is the same for both operands. Of a matrix that other calls use as
    well, the norm was that of more tokens, and the narrower operand has to be scaled.
    """
    outer = [part for part in parts if part.entry.kind == "outer" and part.alone]
    if not outer or all(part.entry.kind != "bias" for part in parts):
        return None
    return scaled_rows(outer[0].tensors[1][:, 0], scale)


def _along(scale: Tensor, tensor: Tensor) -> Tensor:
    """The scale of each unit beside a tensor of units or of rows."""
    rows = tensor.shape[0] // scale.shape[0]
    each = scale if rows == 1 else scale.repeat_interleave(rows)
    return each.reshape(-1, *([1] * (tensor.dim() - 1)))


def _weigh(part: GradientPart, scale: Tensor, outputs: tuple[Tensor, Tensor] | None) -> Tensor:
    """The sum over units of scale times gradient; `outputs` are what `_scale_outputs` found for the call."""
    entry, shape = part.entry, part.entry.parameter.shape
    if entry.kind == "outer" and outputs is None:
        return _product(*part.operands, scale)
    if entry.kind == "outer" and outputs is not None:
        a, g = replace(part, tensors=(part.tensors[0][:, 0], outputs[0])).operands
        return transposed_product(g, a)
    if entry.kind == "bias":
        return (part.tensors[0][:, 0].float() * scale[:, None]).sum(0) if outputs is None else outputs[1]
    if entry.kind == "kernel":
        found = torch.cat([_product(a, g, scale) for a, g in _unfold_part(part)]).reshape(channels_last(shape))
        return channels_first(found, shape).contiguous()
    gradients = part.tensors[0]
    found = (gradients.float() * _along(scale, gradients)).sum(0)
    return channels_first(found, shape).contiguous() if entry.channels_last else found


def _product(a: Tensor, g: Tensor, scale: Tensor) -> Tensor:
    """sum_u scale_u g_u^T a_u, in 32 bits; the narrower operand is scaled."""
    if a.shape[-1] <= g.shape[-1]:
        a = (a * _along(scale, a)).to(a.dtype)
    else:
        g = (g * _along(scale, g)).to(g.dtype)
    return transposed_product(g.reshape(-1, g.shape[-1]), a.reshape(-1, a.shape[-1]))


def _add_rows(part: GradientPart, scale: Tensor, before: Tensor | None) -> Tensor:
    """The rows of an embedding, added to what a tied layer has."""
    assert part.indices is not None
    e = part.tensors[0]
    scaled = (e.float() * _along(scale, e)).reshape(-1, e.shape[-1])
    if before is None:
        before = torch.zeros(part.entry.parameter.shape, device=e.device)
    return before.index_add(0, part.indices.reshape(-1), scaled)
