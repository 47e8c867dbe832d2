"""Correlated noise: what it is made of, what it hides, and that it is smaller where parameters see it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from tests.support.deep import private_for, sum_of_squares
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.errors import ParameterError
from tacit.learn.torch import Private
from tacit.learn.torch.accountant import TrainingPlan
from tacit.learn.torch.correlated import CorrelatedNoise, column_norm, square_root_coefficients
from tacit.learn.torch.noise import DeviceNoise


def matrix(bands: int, steps: int) -> np.ndarray:
    found = np.zeros((steps, steps))
    for n, each in enumerate(square_root_coefficients(bands)):
        found += float(each) * np.eye(steps, k=-n)
    return found


def test_all_bands_are_the_square_root_of_the_prefix_sums():
    assert np.allclose(matrix(9, 9) @ matrix(9, 9), np.tril(np.ones((9, 9))))


def test_the_noise_times_the_matrix_is_independent():
    # 20,000 numbers: correlations have a deviation of 0.0071, so 0.044 is beyond 6.1 of them
    noise = CorrelatedNoise(DeviceNoise(torch.device("cpu")), 3)
    steps = []
    for _ in range(6):
        sums = [torch.zeros(20_000)]
        noise.add(sums, 2.0)
        steps.append(sums[0])
    seen = torch.stack(steps).double()
    fresh = torch.from_numpy(matrix(3, 6)) @ seen
    assert float((torch.corrcoef(fresh) - torch.eye(6)).abs().max()) < 0.044
    assert float(fresh.std()) == pytest.approx(2.0, rel=0.02)
    assert float(torch.corrcoef(seen)[0, 1]) < -0.3  # -c_1/sqrt(1 + c_1^2) is -0.45


@pytest.mark.parametrize(("bands", "per_epoch", "epochs"), [(1, 2, 3), (3, 4, 3), (4, 4, 2), (7, 8, 1)])
def test_a_unit_moves_the_stream_by_at_most_what_the_theorem_says(bands, per_epoch, epochs):
    # For each place in an epoch, and directions of its gradients that are equal, opposite or random.
    draw = np.random.default_rng(0)
    c = matrix(bands, per_epoch * epochs)
    most = float(column_norm(bands)) * math.sqrt(epochs)
    for place in range(per_epoch):
        for kind in range(12):
            g = np.zeros((per_epoch * epochs, 3))
            for epoch in range(epochs):
                v = draw.normal(size=3) if kind > 1 else np.array([(-1.0) ** (epoch * kind), 0, 0])
                g[place + epoch * per_epoch] = v / np.linalg.norm(v)
            assert np.linalg.norm(c @ g) <= most
    first = np.zeros((per_epoch * epochs, 1))
    first[::per_epoch] = 1
    assert np.linalg.norm(c @ first) > 0.8 * most  # and about so far it goes


def test_it_is_priced_by_the_norm_of_a_column():
    plan = TrainingPlan("shuffled", Fraction(1, 8), 24, 8, Fraction(8), bands=4)
    shorter = TrainingPlan("shuffled", Fraction(1, 8), 24, 8, Fraction(8) / column_norm(4))
    assert plan.epsilon(1e-6) == shorter.epsilon(1e-6)


def test_prefix_sums_have_less_of_it_at_the_same_guarantee():
    steps = 64

    def variance(bands: int) -> float:
        prefix = np.tril(np.ones((steps, steps))) @ np.linalg.inv(matrix(bands, steps))
        return float((prefix**2).sum() / steps * column_norm(bands) ** 2)

    assert variance(16) < 0.4 * variance(1)  # 9.3 beside 32.5


def test_batches_have_one_order_in_all_epochs():
    x = torch.arange(40.0)[:, None].repeat(1, 6) / 40
    model = nn.Linear(6, 2)
    loader = DataLoader(TensorDataset(x), batch_size=10)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    private = Private(model, optimizer, loader, noise_multiplier=4.0, epochs=3, sampling="shuffled", bands=4)
    seen = []
    for _ in range(3):
        for (rows,) in private.loader:
            seen.append(rows[:, 0].tolist())
            private.step(sum_of_squares(model, rows))
    assert seen[:4] == seen[4:8] == seen[8:] and sorted(each for rows in seen[:4] for each in rows) == x[:, 0].tolist()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({}, "correlated noise is for shuffled batches"),
        ({"sampling": "shuffled", "clipping": "adaptive"}, "correlated noise is for shuffled batches"),
        ({"sampling": "shuffled"}, "an epoch has only 1 steps"),
    ],
)
def test_what_it_does_not_go_with_is_said(settings, what):
    with pytest.raises(ParameterError, match=what):
        private_for(nn.Linear(6, 2), torch.randn(4, 6), bands=2, **settings)
