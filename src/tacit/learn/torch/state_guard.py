"""Whether a pass left a model as it was: a buffer or a parameter that it changes would keep rows without noise."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tacit.errors import ParameterError


class StateGuard:
    """Refuses a model whose buffers or parameters a pass replaced or changed.

    Both are compared by identity and by the versions that torch counts. Buffers are compared by their numbers too, as
    writing through `.data` is not counted; parameters are not, which would take a copy of the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._known: dict[str, tuple[str, Tensor, int, Tensor | None]] = {}

    def begin(self) -> None:
        """Note what the model has before a pass."""
        self._known = {
            name: (kind, tensor, tensor._version, tensor.detach().clone() if kind == "buffer" else None)
            for kind, name, tensor in self._list_tensors()
        }

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
        for name in self._known.keys() - seen:
            _refuse(self._known[name][0], name)
        if changed:
            here = next(iter(changed.values())).device
            if bool(torch.stack([each.to(here) for each in changed.values()]).any()):  # the device is asked once
                _refuse("buffer", next(name for name, each in changed.items() if bool(each)))

    def _list_tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        for name, buffer in self._model.named_buffers():
            yield "buffer", name, buffer
        for name, parameter in self._model.named_parameters():
            yield "parameter", name, parameter


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
