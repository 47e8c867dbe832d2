"""Which layers can be booked, and how each is called.

`install` gives each module that has trainable parameters of its own a `forward` that writes the book while one is being
written, and does what it always did otherwise. A module whose per-example gradients cannot be had is an error with its
name: nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tacit.errors import ParameterError
from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.norms import is_materialized

Forward = Callable[..., Any]
Shapes = list[tuple[tuple[int, ...], torch.dtype]]

_UNSUPPORTED: tuple[tuple[type[nn.Module], str, str], ...] = (
    (nn.modules.batchnorm._BatchNorm, "mixes the examples of a batch", "use nn.GroupNorm in its place"),
    (nn.RNNBase, "has no per-example gradients here", "use attention or convolutions in its place, or freeze it"),
    (nn.EmbeddingBag, "has no per-example gradients here", "use nn.Embedding and a sum over tokens"),
)


def install(model: nn.Module, book: Callable[[], Book]) -> list[nn.Module]:
    """Book every trainable parameter of a model; return the modules whose forward was replaced."""
    plans = [(name, module, plan) for name, module in model.named_modules() if (plan := _plan(name, module, book))]
    for _, module, plan in plans:
        module.forward = MethodType(plan, module)  # bound, so that a copy of the model has parameters of its own
    return [module for _, module, _ in plans]


def uninstall(modules: list[nn.Module]) -> None:
    """Give modules their own forward back."""
    for module in modules:
        module.__dict__.pop("forward", None)


def _plan(name: str, module: nn.Module, book: Callable[[], Book]) -> Forward | None:
    """The forward of a module, or None where it has no trainable parameters of its own."""
    layer = f"{name or 'model'} ({type(module).__name__})"
    for kind, what, fix in _UNSUPPORTED:
        if isinstance(module, kind) and (kind is not nn.RNNBase or any(_trainable(module))):
            raise ParameterError(layer, what, fix=fix)
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        raise ParameterError(layer, "keeps statistics of the data without noise", fix="track_running_stats=False")
    if "forward" in module.__dict__:
        raise ParameterError(layer, "has a forward of its own instance already", fix="make another model")
    own = dict(_trainable(module))
    if hasattr(module, "parametrizations") and any(p.requires_grad for p in module.parameters()):
        raise ParameterError(layer, "is parametrized, so its gradients are not the layer's own", fix=_FREEZE)
    if not own and not (isinstance(module, nn.MultiheadAttention) and module.out_proj.weight.requires_grad):
        return None
    builder = _BUILDERS.get(getattr(type(module), "forward", None))
    if builder is None and type(module).__name__ == "Conv1D" and set(own) <= {"weight", "bias"}:
        builder = _transposed_linear if type(module).__module__.startswith("transformers.") else None
    if builder is None and isinstance(module, Offset):
        builder = _offset
    if builder is not None:
        return builder(layer, module, book)
    if any(True for _ in module.children()):
        return _expand_parameters(layer, module, own, book)
    return _map_module(layer, module, book)


_FREEZE = "put it in a layer that is supported, or freeze it: set requires_grad to False"


def _trainable(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The trainable parameters that are the module's own."""
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.requires_grad:
            yield name, parameter


def _cast(*tensors: Tensor | None) -> list[Any]:
    """The tensors in the precision of an enclosing autocast; parameters have been detached."""
    device = next(each.device.type for each in tensors if each is not None)
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device)
    return [None if each is None else each.to(dtype) for each in tensors]


def _detach(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()


def _linear_call(
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
    matrix, offset = weight.detach(), _detach(bias)
    if rows is not None:
        matrix, offset = matrix[rows[0] : rows[1]], None if offset is None else offset[rows[0] : rows[1]]
    if transposed:
        matrix = matrix.t()
    x, matrix, offset = _cast(x, matrix, offset)
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


def _linear(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        return _linear_call(page, layer, x, module.weight, module.bias)

    return forward


def _transposed_linear(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    """The Conv1D of transformers: a linear layer whose matrix is [inputs, outputs]."""
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        return _linear_call(page, layer, x, module.weight, module.bias, transposed=True)

    return forward


def _embedding(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
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


def _convolution(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    if module.padding_mode != "zeros":
        raise ParameterError(layer, "pads by other values than zeros", fix="padding_mode='zeros'")
    own = type(module).forward
    geometry = (module.stride, _padding(layer, module), module.dilation, module.groups)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        weight, bias = module.weight, module.bias
        x, kernel, offset = _cast(x, weight.detach(), _detach(bias))
        with torch.no_grad():
            size = _places(x, kernel.shape, geometry)
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


def _padding(layer: str, module: Any) -> tuple[int, ...]:
    """The zeros on both sides of each dimension."""
    if not isinstance(module.padding, str):
        return tuple(module.padding)
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    total = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size, strict=True)]
    if any(each % 2 for each in total):
        raise ParameterError(layer, "pads one side more than the other", fix="choose an odd kernel_size")
    return tuple(each // 2 for each in total)


def _places(x: Tensor, shape: torch.Size, geometry: tuple[Any, ...]) -> torch.Size:
    """The size of what a convolution returns, without its channels."""
    stride, padding, dilation, _ = geometry
    return torch.Size(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(x.shape[2:], shape[2:], stride, padding, dilation, strict=True)
    )


def _affine(module: Any, book: Book, shape: tuple[int, ...]) -> tuple[tuple[str, ...], list[BookEntry], Shapes]:
    """The trainable ones of a weight and a bias whose gradients are materialized."""
    entries: list[BookEntry] = []
    kinds: list[str] = []
    for kind in ("weight", "bias"):
        parameter = getattr(module, kind, None)
        if parameter is not None and parameter.requires_grad:
            entries.append(BookEntry(parameter, "gradient", (len(kinds),)))
            kinds.append(kind)
    return tuple(kinds), entries, [((book.units, *shape), torch.float32)] * len(kinds)


def _layer_norm(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    own = type(module).forward
    shape = tuple(module.normalized_shape)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        weight, bias = _detach(module.weight), _detach(module.bias)
        x, weight, bias = _to_float(x, weight, bias)
        kinds, entries, shapes = _affine(module, page, shape)
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


def _rms_norm(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    own = type(module).forward
    shape = tuple(module.normalized_shape)

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        x, weight = _to_float(x, module.weight.detach())
        eps = torch.finfo(x.dtype).eps if module.eps is None else module.eps
        kinds, entries, shapes = _affine(module, page, shape)
        call = page.open(layer, entries, shapes)
        return functions.RmsNormFunction.apply(
            x, weight, page.probe, page.units, page.alone(call), shape, eps, kinds, *call.slots
        )

    return forward


def _group_norm(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        if not page.is_recording:
            return own(module, x)
        page.check_rows(layer, x)
        x, weight, bias = _to_float(x, _detach(module.weight), _detach(module.bias))
        kinds, entries, shapes = _affine(module, page, (module.num_channels,))
        call = page.open(layer, entries, shapes)
        return functions.GroupNormFunction.apply(
            *(x, weight, bias, page.probe, page.units, page.alone(call)),
            *(module.num_groups, module.eps, kinds, *call.slots),
        )

    return forward


def _attention(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    """nn.MultiheadAttention: its projections as booked linear layers around the attention of torch."""
    if module.bias_k is not None or module.add_zero_attn:
        raise ParameterError(layer, "has add_bias_kv or add_zero_attn", fix="leave both out")
    own = type(module).forward
    size, heads = module.embed_dim, module.num_heads

    def project(module: Any, page: Book, queries: Tensor, keys: Tensor, values: Tensor) -> list[Tensor]:
        bias = module.in_proj_bias
        if module.in_proj_weight is None:
            matrices = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
            found = [
                _linear_call(page, layer, x, matrix, None)
                for x, matrix in zip((queries, keys, values), matrices, strict=True)
            ]
            if bias is None:
                return found
            parts = [(n * size, (n + 1) * size) for n in range(3)]
            return [_offset_call(page, layer, x, bias, rows) for x, rows in zip(found, parts, strict=True)]
        if queries is keys and keys is values:
            together = _linear_call(page, layer, queries, module.in_proj_weight, bias)
            return list(together.chunk(3, -1))
        return [
            _linear_call(page, layer, x, module.in_proj_weight, bias, rows=(n * size, (n + 1) * size))
            for n, x in enumerate((queries, keys, values))
        ]

    def forward(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        page = book()
        if not page.is_recording:
            return own(
                *(module, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
            )
        same = query is key and key is value
        if not module.batch_first:
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        q, k, v = project(module, page, query, key, value)
        rows, length = q.shape[0], q.shape[1]
        q, k, v = (x.reshape(rows, x.shape[1], heads, -1).transpose(1, 2) for x in (q, k, v))
        mask = _attention_mask(attn_mask, key_padding_mask, rows, heads, q.dtype)
        causal = is_causal and mask is None
        drop = module.dropout if module.training else 0.0
        weights = None
        if need_weights:
            if is_causal and mask is None:
                hidden = torch.ones(length, k.shape[2], dtype=torch.bool, device=q.device).triu(1)
                mask = torch.zeros_like(hidden, dtype=q.dtype).masked_fill(hidden, -torch.inf)
            scores = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5)
            scores = scores if mask is None else scores + mask
            weights = F.dropout(scores.float().softmax(-1).to(q.dtype), drop)
            mixed = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, mask, drop, causal)
        out = module.out_proj(mixed.transpose(1, 2).reshape(rows, length, -1))
        return out if module.batch_first else out.transpose(0, 1), weights

    return forward


def _attention_mask(
    attention: Tensor | None, padding: Tensor | None, rows: int, heads: int, dtype: torch.dtype
) -> Tensor | None:
    """Both masks as one of numbers that are added to the scores."""

    def added(mask: Tensor) -> Tensor:
        if mask.dtype == torch.bool:
            return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)
        return mask.to(dtype)

    found = None
    if attention is not None:
        found = added(attention)
        if found.dim() == 3:
            found = found.reshape(rows, heads, *found.shape[1:])
    if padding is not None:
        hidden = added(padding)[:, None, None, :]
        found = hidden if found is None else found + hidden
    return found


class Offset(nn.Module):
    """Adds a learned tensor to its input, such as the embedding of positions: x + weight.

    Parameters
    ----------
    *shape : int
        The shape of the tensor, without the dimension of the examples; its dimensions are the last ones of the input.

    Examples
    --------
    >>> import torch
    >>> Offset(4, 8)(torch.zeros(2, 4, 8)).shape
    torch.Size([2, 4, 8])
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + weight.

        Parameters
        ----------
        x : Tensor
            The input, [examples, ..., *shape].

        Returns
        -------
        Tensor
            The sum, of the shape of the input.
        """
        return x + self.weight


def _offset(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        return _offset_call(page, layer, x, module.weight, None) if page.is_recording else own(module, x)

    return forward


def _offset_call(book: Book, layer: str, x: Tensor, parameter: Tensor, rows: tuple[int, int] | None) -> Tensor:
    """x + parameter, or + some of its rows, booked."""
    book.check_rows(layer, x)
    value = parameter.detach() if rows is None else parameter.detach()[rows[0] : rows[1]]
    call = book.open(
        layer, [BookEntry(parameter, "gradient", (0,), rows)], [((book.units, *value.shape), torch.float32)]
    )
    found: Tensor = functions.OffsetFunction.apply(x, value, book.probe, book.units, book.alone(call), *call.slots)
    return found


def _per_row(book: Book, layer: str, own: dict[str, Tensor]) -> dict[str, Tensor]:
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


def _map_module(layer: str, module: Any, book: Callable[[], Book]) -> Forward:
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
            raise ParameterError(layer, "has no input with one row for each example", fix=_FREEZE)

        def one(parameters: dict[str, Tensor], *values: Any) -> Any:
            values = tuple(x[None] if is_mapped else x for x, is_mapped in zip(values, mapped, strict=True))
            positional, keywords = values[: len(inputs)], dict(zip(names, values[len(inputs) :], strict=True))
            with _Replaced(module, parameters):
                return _without_first(original(module, *positional, **keywords))

        mapping = torch.vmap(one, in_dims=(0, *(0 if each else None for each in mapped)), randomness="different")
        return mapping(_per_row(page, layer, dict(_trainable(module))), *given)

    return forward


def _without_first(result: Any) -> Any:
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


def _expand_parameters(layer: str, module: Any, own: dict[str, Tensor], book: Callable[[], Book]) -> Forward:
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
        mine = _per_row(page, layer, dict(_trainable(module)))
        each = {name: tensor.flatten(0, 1) for name, tensor in mine.items()}
        with _Replaced(module, each):
            return original(module, *inputs, **named)

    return forward


_BUILDERS: dict[Any, Callable[[str, Any, Callable[[], Book]], Forward]] = {
    nn.Linear.forward: _linear,
    nn.Embedding.forward: _embedding,
    nn.Conv1d.forward: _convolution,
    nn.Conv2d.forward: _convolution,
    nn.LayerNorm.forward: _layer_norm,
    nn.RMSNorm.forward: _rms_norm,
    nn.GroupNorm.forward: _group_norm,
    nn.MultiheadAttention.forward: _attention,
    Offset.forward: _offset,
}
