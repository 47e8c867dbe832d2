"""Which layers can be booked, and how each is called.

`install` gives each module that has trainable parameters of its own a `forward` that writes the book while one is being
written, and does what it always did otherwise. A module whose per-example gradients cannot be had is an error with its
name: nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from torch import nn

from tacit.errors import ParameterError
from tacit.learn.torch.attention_layers import build_attention
from tacit.learn.torch.book import Book
from tacit.learn.torch.convolution_layers import build_convolution
from tacit.learn.torch.layer_parameters import FREEZE, Forward, list_trainable
from tacit.learn.torch.linear_layers import build_embedding, build_linear, build_transposed_linear
from tacit.learn.torch.mapped_layers import expand_parameters, map_module
from tacit.learn.torch.norm_layers import build_group_norm, build_layer_norm, build_rms_norm
from tacit.learn.torch.offset_layers import Offset, build_offset

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
        if isinstance(module, kind) and (kind is not nn.RNNBase or any(list_trainable(module))):
            raise ParameterError(layer, what, fix=fix)
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        raise ParameterError(layer, "keeps statistics of the data without noise", fix="track_running_stats=False")
    if "forward" in module.__dict__:
        raise ParameterError(layer, "has a forward of its own instance already", fix="make another model")
    own = dict(list_trainable(module))
    if hasattr(module, "parametrizations") and any(p.requires_grad for p in module.parameters()):
        raise ParameterError(layer, "is parametrized, so its gradients are not the layer's own", fix=FREEZE)
    if not own and not (isinstance(module, nn.MultiheadAttention) and module.out_proj.weight.requires_grad):
        return None
    builder = _BUILDERS.get(getattr(type(module), "forward", None))
    if builder is None and type(module).__name__ == "Conv1D" and set(own) <= {"weight", "bias"}:
        builder = build_transposed_linear if type(module).__module__.startswith("transformers.") else None
    if builder is None and isinstance(module, Offset):
        builder = build_offset
    if builder is not None:
        return builder(layer, module, book)
    if any(True for _ in module.children()):
        return expand_parameters(layer, module, own, book)
    return map_module(layer, module, book)


_BUILDERS: dict[Any, Callable[[str, Any, Callable[[], Book]], Forward]] = {
    nn.Linear.forward: build_linear,
    nn.Embedding.forward: build_embedding,
    nn.Conv1d.forward: build_convolution,
    nn.Conv2d.forward: build_convolution,
    nn.LayerNorm.forward: build_layer_norm,
    nn.RMSNorm.forward: build_rms_norm,
    nn.GroupNorm.forward: build_group_norm,
    nn.MultiheadAttention.forward: build_attention,
    Offset.forward: build_offset,
}
