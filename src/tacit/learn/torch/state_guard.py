"""Whether a pass left a model as it was: a buffer or a parameter that it changes would keep rows without noise."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tacit.errors import ParameterError


class StateGuard:
    """Refuses a model whose buffers or parameters a pass replaced or changed.

    Both are compared by identity and by the versions that torch counts. Writing through `.data` is not counted, so
    buffers are compared by their numbers too, and parameters, trainable or frozen, by checksums: these take no copy of
    the model, but read it twice, so they are for a first pass.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._known: dict[str, tuple[str, Tensor, int, Tensor | None]] = {}
        self._sums: dict[str, Tensor] = {}

    def begin(self, *, with_checksums: bool = False) -> None:
        """Note what the model has before a pass; `with_checksums` the numbers of its parameters as well."""
        self._known = {
            name: (kind, tensor, tensor._version, tensor.detach().clone() if kind == "buffer" else None)
            for kind, name, tensor in self._list_tensors()
        }
        self._sums = (
            {name: add_checksums(each) for name, each in self._model.named_parameters()} if with_checksums else {}
        )

    def check(self) -> None:
        """Refuse what is not as it was at the beginning of the pass."""
        seen = set()
        changed: dict[str, Tensor] = {}
        for kind, name, tensor in self._list_tensors():
            seen.add(name)
            before = self._known.get(name)
            if before is None or before[1] is not tensor or before[2] != tensor._version:
                _refuse(kind, name)
            elif before[3] is not None:
                changed[name] = _differ(tensor, before[3])
            elif name in self._sums:
                changed[name] = _differ(add_checksums(tensor), self._sums[name])
        for name in self._known.keys() - seen:
            _refuse(self._known[name][0], name)
        if changed:
            here = next(iter(changed.values())).device
            if bool(torch.stack([each.to(here) for each in changed.values()]).any()):  # the device is asked once
                name = next(name for name, each in changed.items() if bool(each))
                _refuse(self._known[name][0], name)

    def _list_tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        for name, buffer in self._model.named_buffers():
            yield "buffer", name, buffer
        for name, parameter in self._model.named_parameters():
            yield "parameter", name, parameter


_BLOCK = 2**20  # numbers of a checksum
_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def add_checksums(tensor: Tensor) -> Tensor:
    """Return a 64-bit checksum of each block of a tensor: the sum of its bits, as integers, times odd numbers.

    One number that changes changes the sum, as an odd number is no divisor of zero modulo 2^64. Several that change at
    once keep it only if their changes are orthogonal to the factors, which are mixed from their places.
    """
    flat = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    flat = flat.contiguous().reshape(-1)
    bits = flat.view(_WHOLE[flat.element_size()])
    factors = torch.arange(min(_BLOCK, max(bits.numel(), 1)), device=bits.device)
    for multiplier in (-0x61C8864680B583EB, -0x40A7B892E31B1A47):  # of SplitMix64, modulo 2^64
        factors = (factors + 1) * multiplier
        factors = factors ^ (factors >> 31)
    factors = factors | 1
    return torch.stack([(part * factors[: len(part)]).sum() for part in bits.split(_BLOCK)])


def _differ(now: Tensor, before: Tensor) -> Tensor:
    """Whether two tensors differ in a number, where what is no number is equal to itself."""
    if now.shape != before.shape or now.dtype != before.dtype:
        return torch.ones((), dtype=torch.bool, device=now.device)
    if now.is_floating_point() or now.is_complex():
        return ((now != before) & ~(now.isnan() & before.isnan())).any()
    return (now != before).any()


def _refuse(kind: str, name: str) -> None:
    what = f"is a {kind} that a pass changed, without noise"
    raise ParameterError(name, what, fix="leave the layer out, or change it between a step and the next batch")
