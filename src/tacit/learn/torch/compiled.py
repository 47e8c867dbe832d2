"""Losses compiled as one graph with their backward pass, and the clipping of what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.unit_scaling import scaled_sums, unit_scales


def compile_losses(private: Any, losses: Callable[..., Tensor], options: dict[str, Any]) -> Callable[..., Tensor]:
    """Return the compiled function: its first call, without the compiler, records which layers it calls."""
    compiled = torch.compile(losses, fullgraph=True, **options)
    clippers = tuple(torch.compile(each, fullgraph=True, **options) for each in (unit_scales, scaled_sums))
    book = private._book
    shapes: list[torch.Size] = []

    def record(tensors: tuple[Tensor, ...]) -> None:
        book.start()
        plain = losses(*tensors)
        if private._check:
            private._check_pass(lambda: plain, compiled=False)
            private._check = False
        book.replay = True

    def replay(tensors: tuple[Tensor, ...]) -> Tensor:
        book.start()
        found: Tensor = compiled(*tensors)
        return found

    def run(*tensors: Tensor) -> Tensor:
        private._require_pass()
        if not shapes:
            shapes.extend(tensor.shape for tensor in tensors)
            if not book.replay:
                record(tensors)
            private._compiled = clippers[0], clippers[1]
            if private._checks:
                private._check_pass(lambda: replay(tensors), compiled=True)
        if [tensor.shape for tensor in tensors] != shapes:
            fix = "give batches of one shape, or train without compile"
            raise ParameterError("losses", "was compiled for batches of another shape", fix=fix)
        return replay(tensors)

    return run
