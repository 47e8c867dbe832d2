"""Compiled as one graph, a pass gives what it gives without; all layers at full counts, by the compiler for CPUs."""

from __future__ import annotations

import pytest
import torch
from tests.learn.torch.test_layers import MODELS, ROWS, moved
from tests.support.counts import FULL
from tests.support.deep import private_for, relative_error, sum_of_squares
from torch import nn

from tacit.errors import ParameterError
from tacit.learn.torch.batches import Pass

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of torch's own compiler
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FEW = ["a layer norm and a linear layer over tokens"]
ALL = [
    "embedding tied to the head",
    "convolution",
    "convolution, not materialized",
    "encoder layer",
    "offset",
    "group norm",
    "attention across",
    "LoRA",
    "one linear layer twice",
]
OWN = {FEW[0]: (lambda: nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 24)), torch.randn(ROWS, 3, 32))}


@pytest.mark.parametrize("name", [*FEW, *(ALL if FULL else [])])
@pytest.mark.parametrize("short", [True, False] if FULL else [True])
def test_a_compiled_pass_gives_the_same_sums(name, short):
    torch._dynamo.reset()
    torch.manual_seed(3)
    make, x = (OWN | MODELS)[name]
    model = moved(make())
    private = private_for(model, x, clip=0.5, check=True)
    hidden = Pass([0] * ROWS, torch.tensor([True] * (ROWS - 1) + [False]), False)

    def losses(x):
        with torch.autocast("cpu", torch.bfloat16, enabled=short):
            return sum_of_squares(model, x)

    def sums(function):
        private.begin(hidden)
        private.step(function(x))
        found, private._sums = private._sums, None
        return found

    plain = sums(losses)
    compiled = private.compile(losses, backend="inductor" if FULL else "aot_eager")
    close = 2.0**-6 if short and FULL else 1e-5
    for _ in range(2):
        found = sums(compiled)
        assert all(relative_error(found[key], each) < close for key, each in plain.items())


def test_another_shape_is_said():
    torch._dynamo.reset()
    model = nn.Linear(6, 3)
    private = private_for(model, torch.randn(4, 6))
    compiled = private.compile(lambda x: sum_of_squares(model, x), backend="eager")
    private.begin(Pass([0] * 4, torch.ones(4, dtype=torch.bool), False))
    private.step(compiled(torch.randn(4, 6)))
    private.begin(Pass([0] * 4, torch.ones(4, dtype=torch.bool), False))
    with pytest.raises(ParameterError, match="compiled for batches of another shape"):
        compiled(torch.randn(4, 2, 6))
