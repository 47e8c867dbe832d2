"""Trainings are charged to the budgets that they are inside of: as a whole, once, before a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.support.forks import in_child, outcome
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.errors import Refused
from tacit.learn import budget
from tacit.learn.torch import MLPClassifier, Private

pytestmark = pytest.mark.slow


def train(**more) -> Private:
    """One step of a training that is planned for two epochs of ten."""
    model = nn.Linear(2, 1)
    loader = DataLoader(TensorDataset(torch.zeros(100, 2)), batch_size=10)
    given = {"delta": 1e-6, "epochs": 2, **more}
    with Private(model, torch.optim.SGD(model.parameters(), 0.1), loader, **given) as private:
        (rows,) = next(iter(private.loader))
        private.step(model(rows).square().sum(1))
        return private


def test_a_training_is_charged_as_it_was_planned_and_one_too_many_is_refused():
    with budget(epsilon=3, delta=1e-5) as account:
        assert train(epsilon=1).steps_ == 1
        first = account.spent_.epsilon
        assert 0.99 < first <= 1
        train(epsilon=1)
        assert first < account.spent_.epsilon <= 2
        before = account.spent_
        with pytest.raises(Refused):
            train(epsilon=2.5)
        train(epsilon=2.5, public=True)
        assert account.spent_ == before


def test_a_noise_multiplier_is_charged_at_what_it_costs():
    with budget(epsilon=3, delta=1e-5) as account:
        private = train(delta=None, noise_multiplier=3)
        assert account.spent_.epsilon >= private.plan.epsilon(account.spent_.delta)


def test_a_perceptron_is_charged_once():
    model = MLPClassifier(
        epsilon=1, delta=1e-6, classes=[0, 1], bounds=(-1, 1), rows=40, hidden_layer_sizes=(2,), epochs=1, batch_size=20
    )
    with budget(epsilon=1.5, delta=1e-5) as account:
        model.fit(np.zeros((40, 2)), np.arange(40) % 2)
        assert account.spent_.epsilon <= 1


def test_a_fork_that_trains_on_is_charged_by_itself():
    model = nn.Linear(2, 1)
    loader = DataLoader(TensorDataset(torch.zeros(100, 2)), batch_size=10)
    with budget(epsilon=1.5, delta=1e-5) as account:
        private = Private(model, torch.optim.SGD(model.parameters(), 0.1), loader, epsilon=1, delta=1e-6)

        def step() -> None:
            (rows,) = next(iter(private.loader))
            private.step(model(rows).square().sum(1))

        def is_refused() -> int:
            with pytest.raises(Refused):
                step()
            return 7

        step()
        assert outcome(in_child(is_refused)) == 7  # another epsilon of 1 does not fit
        assert account.fits_ == 1
