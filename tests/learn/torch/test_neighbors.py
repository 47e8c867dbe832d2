"""Sums of neighbors: one unit more moves them by at most one clipping norm, whatever its rows are."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Private
from tacit.learn.torch.batches import Pass


# Many passes.
def test_exact_sums_of_many_passes_do_not_wrap():
    # 17 passes of 2^19 alike units are 8,912,896 clipping norms: in 64 bits 2^23 of them would wrap.
    rows = 2**19
    model = nn.Linear(1, 1)
    loader = DataLoader(TensorDataset(torch.zeros(4, 1)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    settings = {"noise": "exact", "units_per_pass": rows, "public": True, "check": False}
    private = Private(model, optimizer, loader, noise_multiplier=1, **settings)
    private.begin(Pass([0] * rows, torch.ones(rows, dtype=torch.bool), False))
    private.step((model(torch.zeros(rows, 1))[:, 0] - 5).square())
    assert private._sums is not None
    once = dict(private._sums)
    found = [once[id(model.bias)].to_integers().item()]
    for _ in range(16):
        private._add(once)
        found.append(private._sums[id(model.bias)].to_integers().item())
    assert -found[0] > 0.99 * rows * 2**40 and found == [n * found[0] for n in range(1, 18)]
