"""Layers as autograd functions whose backward pass writes the book.

Each function takes, beside its ordinary inputs, the `probe` and some slots: zeros that change nothing in the forward
pass. What its backward pass returns as their gradients is what it has to say of each unit: columns of squared norms
(`norms.COLUMNS`) for the probe, which autograd adds up over the layers, and the parts of the per-example gradients for
the slots. So one backward pass gives all, and `torch.compile` needs to know nothing about it. The parameters enter
detached: a parameter that has an ordinary gradient was used outside of the book. So is what a backward pass computes
from them: its own gradient would lack the terms of these parameters, and is refused.

`alone` is whether no other call uses the same parameters. If one does, norms need the cross terms, and are computed
when all calls are known (`clipping`). It is a bool, or a call whose attribute `alone` is read in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.norms import is_materialized, outer_columns, row_columns, square_columns, to_units
from tacit.learn.torch.products import has_triton

Grads = tuple[Any, ...]


def _first_order(backward: Callable[..., Grads]) -> Callable[..., Grads]:
    """The same backward pass, refused where autograd is to differentiate it: where it runs with gradients enabled."""

    @wraps(backward)
    def checked(ctx: Any, g: Tensor) -> Grads:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            what = "need the gradient of a gradient, of which the terms of single examples are not known"
            raise ParameterError("losses", what, fix="leave out create_graph=True, as of a gradient penalty")
        return backward(ctx, g)

    return checked


def _is_alone(alone: Any) -> bool:
    return alone if isinstance(alone, bool) else bool(alone.alone)


def _matrix_gradient(a: Tensor, g: Tensor) -> Tensor:
    """sum_t g_t a_t^T of each unit, in the precision of the operands."""
    with torch.autocast(a.device.type, enabled=False):
        return torch.bmm(g.transpose(1, 2), a)


class LinearFunction(torch.autograd.Function):
    """y = x W^T + b. Slots: (a, g), or the gradients of W where they are smaller; and those of b."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        probe: Tensor,
        units: int,
        alone: Any,
        kinds: tuple[str, ...],
        *slots: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.units, ctx.alone, ctx.kinds = units, alone, kinds
        return F.linear(x, weight, bias)

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight = ctx.saved_tensors
        alone = _is_alone(ctx.alone)
        gx = g @ weight if ctx.needs_input_grad[0] else None
        a, h = to_units(x, ctx.units), to_units(g, ctx.units)
        columns, book = linear_book(a, h, ctx.kinds, alone)
        return gx, None, None, columns, None, None, None, *book


def linear_book(a: Tensor, g: Tensor, kinds: tuple[str, ...], alone: bool) -> tuple[Tensor | None, list[Tensor]]:
    """Return the columns, and what is written to the slots of these kinds."""
    columns: list[Tensor] = []
    book: list[Tensor] = []
    for kind in kinds:
        if kind == "input":
            book.append(a)
        elif kind == "output":
            book.append(g)
            if alone:
                columns.append(outer_columns(a, g))
        elif kind in ("output-bias", "same-bias"):  # one token: the gradient of the bias is that of the output
            if kind == "output-bias":  # "same-bias" reads the slot of the output
                book.append(g)
            if alone:
                columns.append(square_columns(g))
        else:
            gradients = _matrix_gradient(a, g) if kind == "weight" else g.sum(1, dtype=torch.float32)
            book.append(gradients)
            if alone:
                columns.append(square_columns(gradients))
    return _total(columns), book


def _total(columns: list[Tensor]) -> Tensor | None:
    return sum(columns[1:], start=columns[0]) if columns else None


class EmbeddingFunction(torch.autograd.Function):
    """y_t = W[indices_t]. Slot: the gradients of y, those of the padding row made zero."""

    @staticmethod
    def forward(
        ctx: Any,
        indices: Tensor,
        weight: Tensor,
        probe: Tensor,
        units: int,
        alone: Any,
        padding: int | None,
        slot: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.units, ctx.alone, ctx.padding = units, alone, padding
        return F.embedding(indices, weight)

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        (indices,) = ctx.saved_tensors
        e, rows = to_units(g, ctx.units), indices.reshape(ctx.units, -1)
        if ctx.padding is not None:
            e = torch.where((rows == ctx.padding)[:, :, None], torch.zeros_like(e), e)
        columns = row_columns(rows, e) if _is_alone(ctx.alone) else None
        return None, None, columns, None, None, None, e


class ConvolutionFunction(torch.autograd.Function):
    """A convolution of one or two dimensions, as a product with unfolded patches. Slots as those of a linear layer.

    Where the gradients of the kernel are not materialized, the slots take the input and the gradient of the output.
    All slots have channels last, as patches have: kernels are [units, outputs, *kernel, inputs].
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        probe: Tensor,
        units: int,
        alone: Any,
        geometry: tuple[Any, ...],
        kinds: tuple[str, ...],
        *slots: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.units, ctx.alone, ctx.geometry, ctx.kinds = units, alone, geometry, kinds
        return convolve(x, weight, bias, geometry)

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight = ctx.saved_tensors
        alone = _is_alone(ctx.alone)
        gx = None
        if ctx.needs_input_grad[0]:
            gx = convolution_gradients(x, weight, g, ctx.geometry, (True, False))[0]
        columns: list[Tensor] = []
        book: list[Tensor] = []
        x, g = x.movedim(1, -1), g.movedim(1, -1)
        for kind in ctx.kinds:
            if kind == "input":
                x = x.contiguous()
                book.append(x)
            elif kind == "output":
                g = g.contiguous()
                book.append(g)
                if alone:
                    for a, h in patches(x, g, weight.shape, ctx.geometry, ctx.units):
                        columns.append(outer_columns(a, h))
            else:
                gradients = _kernel_gradients(ctx, x, weight, g) if kind == "weight" else _bias_gradients(ctx, g)
                book.append(gradients)
                if alone:
                    columns.append(square_columns(gradients))
        return gx, None, None, _total(columns), None, None, None, None, *book


def _kernel_gradients(ctx: Any, x: Tensor, weight: Tensor, g: Tensor) -> Tensor:
    parts = [_matrix_gradient(a, h) for a, h in patches(x, g, weight.shape, ctx.geometry, ctx.units)]
    together = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
    return together.reshape(ctx.units, *channels_last(weight.shape))


def channels_last(shape: torch.Size) -> tuple[int, ...]:
    """Return the shape of a convolution's kernel with its input channels last: [outputs, *kernel, inputs]."""
    return shape[0], *shape[2:], shape[1]


def channels_first(gradients: Tensor, shape: torch.Size) -> Tensor:
    """Return gradients [..., *channels_last(shape)] as [..., *shape]."""
    return gradients.movedim(-1, 1 - len(shape))


def _bias_gradients(ctx: Any, g: Tensor) -> Tensor:
    return to_units(g, ctx.units).sum(1, dtype=torch.float32)


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: tuple[Any, ...]) -> Tensor:
    """Return the convolution; geometry is (stride, padding, dilation, groups)."""
    stride, padding, dilation, groups = geometry
    return (F.conv1d if x.dim() == 3 else F.conv2d)(x, weight, bias, stride, padding, dilation, groups)


def convolution_gradients(
    x: Tensor, weight: Tensor, g: Tensor, geometry: tuple[Any, ...], wanted: tuple[bool, bool]
) -> tuple[Any, Any]:
    """Return the gradients of a convolution for its input and its kernel, where they are wanted."""
    stride, padding, dilation, groups = geometry
    zeros = [0] * len(stride)
    found = torch.ops.aten.convolution_backward(
        g, x, weight, None, list(stride), list(padding), list(dilation), False, zeros, groups, [*wanted, False]
    )
    return found[0], found[1]


def patches(
    x: Tensor, g: Tensor, shape: torch.Size, geometry: tuple[Any, ...], units: int
) -> list[tuple[Tensor, Tensor]]:
    """Return for each group the patches [units, places, d] that enter it and the gradients [units, places, p].

    Channels are last everywhere, so that whole rows are copied.
    """
    stride, padding, dilation, groups = geometry
    kernel = shape[2:]
    if x.dim() == 3:
        x = x[:, None]
        kernel, stride, padding, dilation = torch.Size((1, *kernel)), (1, *stride), (0, *padding), (1, *dilation)
    found = []
    windows = _windows(x, kernel, (*stride, *padding, *dilation))
    for a, b in zip(windows.chunk(groups, -1), g.chunk(groups, -1), strict=True):
        found.append((a.reshape(units, -1, kernel.numel() * a.shape[-1]), to_units(b, units)))
    return found


def _windows(x: Tensor, kernel: torch.Size, geometry: tuple[int, ...]) -> Tensor:
    """The patches of [rows, height, width, channels], as [..., kernel, channels] in the order of rows and places."""
    stride, padding, dilation = geometry[0:2], geometry[2:4], geometry[4:6]
    if kernel == (1, 1) and padding == (0, 0):
        return x[:, :: stride[0], :: stride[1], None, :]
    if x.is_cuda and x.shape[-1] % 8 == 0 and has_triton():
        from tacit.learn.torch.patches_kernel import copy_patches

        found: Tensor = copy_patches(x, list(kernel), list(geometry))
        return found
    wide = F.pad(x, (0, 0, padding[1], padding[1], padding[0], padding[0]))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    windows = wide.unfold(1, spans[0], stride[0])[..., :: dilation[0]]
    windows = windows.unfold(2, spans[1], stride[1])[..., :: dilation[1]]
    return windows.permute(0, 1, 2, 4, 5, 3).flatten(3, 4)


class LayerNormFunction(torch.autograd.Function):
    """Layer normalization. Slots: the gradients of its weight and bias."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        probe: Tensor,
        units: int,
        alone: Any,
        shape: tuple[int, ...],
        eps: float,
        kinds: tuple[str, ...],
        *slots: Tensor,
    ) -> Tensor:
        y, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.units, ctx.alone, ctx.shape, ctx.kinds = units, alone, shape, kinds
        return y

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight, mean, rstd = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            gx = torch.ops.aten.native_layer_norm_backward(
                g, x, list(ctx.shape), mean, rstd, weight, None, [True, False, False]
            )[0]
        columns, book = _affine_book(ctx, g, (x.float() - mean) * rstd, ctx.shape)
        return gx, None, None, columns, None, None, None, None, None, *book


def _affine_book(ctx: Any, g: Tensor, normal: Tensor, shape: tuple[int, ...]) -> tuple[Tensor | None, list[Tensor]]:
    """The gradients of weight and bias of y = normal * weight + bias, for parameters of the last dimensions."""
    g = g.float()
    book = []
    for kind in ctx.kinds:
        part = g * normal if kind == "weight" else g
        book.append(part.reshape(ctx.units, -1, *shape).sum(1))
    return _total([square_columns(each) for each in book] if _is_alone(ctx.alone) else []), book


class RmsNormFunction(torch.autograd.Function):
    """Root-mean-square normalization over the last dimensions. Slot: the gradients of its weight."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        probe: Tensor,
        units: int,
        alone: Any,
        shape: tuple[int, ...],
        eps: float,
        kinds: tuple[str, ...],
        *slots: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.units, ctx.alone, ctx.shape, ctx.eps, ctx.kinds = units, alone, shape, eps, kinds
        return F.rms_norm(x, shape, weight, eps)

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight = ctx.saved_tensors
        over = tuple(range(-len(ctx.shape), 0))
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(over, keepdim=True) + ctx.eps)
        normal = wide * scale
        gx = None
        if ctx.needs_input_grad[0]:
            inner = g.float() * weight.float()
            gx = (scale * (inner - normal * (inner * normal).mean(over, keepdim=True))).to(x.dtype)
        columns, book = _affine_book(ctx, g, normal, ctx.shape)
        return gx, None, columns, None, None, None, None, None, *book


class GroupNormFunction(torch.autograd.Function):
    """Group normalization of [rows, channels, ...]. Slots: the gradients of its weight and bias."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        probe: Tensor,
        units: int,
        alone: Any,
        groups: int,
        eps: float,
        kinds: tuple[str, ...],
        *slots: Tensor,
    ) -> Tensor:
        x = x.contiguous()
        rows, channels = x.shape[0], x.shape[1]
        size = x.numel() // (rows * channels)
        y, mean, rstd = torch.native_group_norm(x, weight, bias, rows, channels, size, groups, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.units, ctx.alone, ctx.groups, ctx.kinds = units, alone, groups, kinds
        return y

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        x, weight, mean, rstd = ctx.saved_tensors
        rows, channels = x.shape[0], x.shape[1]
        size = x.numel() // (rows * channels)
        gx = None
        if ctx.needs_input_grad[0]:
            gx = torch.ops.aten.native_group_norm_backward(
                g.contiguous(), x, mean, rstd, weight, rows, channels, size, ctx.groups, [True, False, False]
            )[0]
        # The sums that the gradient of the input needs as well, in the terms that compilers have for it.
        outer = torch.mul(g.contiguous().float(), x.float()).view(rows, channels, size).sum(dim=[2])
        inner = g.contiguous().float().view(rows, channels, size).sum(dim=[2])
        book = []
        for kind in ctx.kinds:
            part = inner
            if kind == "weight":
                grouped = [each.view(rows, ctx.groups, -1) for each in (outer, inner)]
                part = ((grouped[0] - grouped[1] * mean[:, :, None]) * rstd[:, :, None]).view(rows, channels)
            book.append(part.reshape(ctx.units, -1, channels).sum(1))
        columns = _total([square_columns(each) for each in book] if _is_alone(ctx.alone) else [])
        return gx, None, None, columns, None, None, None, None, None, *book


class ParameterFunction(torch.autograd.Function):
    """A parameter, once for each row: [rows, ...]. Slot: its gradients, summed over the rows of a unit."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, probe: Tensor, rows: int, units: int, alone: Any, slot: Tensor) -> Tensor:
        ctx.units, ctx.alone = units, alone
        return parameter.expand(rows, *parameter.shape).clone()

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        gradients = g.reshape(ctx.units, -1, *g.shape[1:]).sum(1)
        columns = square_columns(gradients) if _is_alone(ctx.alone) else None
        return None, columns, None, None, None, gradients


def is_kernel_materialized(places: int, shape: torch.Size, groups: int) -> bool:
    """Return whether a convolution's gradients are materialized: like those of a linear layer, for each group."""
    width = shape[1:].numel()
    return is_materialized(places, width, shape[0] // groups)


class OffsetFunction(torch.autograd.Function):
    """y = x + parameter, for a parameter of the last dimensions. Slot: its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, parameter: Tensor, probe: Tensor, units: int, alone: Any, slot: Tensor) -> Tensor:
        ctx.units, ctx.alone, ctx.shape, ctx.dtype = units, alone, tuple(parameter.shape), x.dtype
        return x + parameter

    @staticmethod
    @_first_order
    def backward(ctx: Any, g: Tensor) -> Grads:
        gradients = g.reshape(ctx.units, -1, *ctx.shape).sum(1, dtype=torch.float32)
        columns = square_columns(gradients) if _is_alone(ctx.alone) else None
        return g.to(ctx.dtype), None, columns, None, None, gradients
