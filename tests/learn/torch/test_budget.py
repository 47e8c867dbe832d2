"""Trainings are charged to the budgets that their steps are inside of: as a whole, once, before a step."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from tests.support.forks import in_child, outcome
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.errors import Refused
from tacit.learn import budget
from tacit.learn.torch import MLPClassifier, Private
from tacit.learn.torch.batches import Pass

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


class Training:
    """A training that is planned for two epochs of ten, step by step."""

    def __init__(self, epsilon: float = 1) -> None:
        self.model = nn.Linear(2, 1)
        loader = DataLoader(TensorDataset(torch.zeros(100, 2)), batch_size=10)
        optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.private = Private(self.model, optimizer, loader, epsilon=epsilon, delta=1e-6, epochs=2)
        self.batches = self.read()

    def read(self) -> Iterator[torch.Tensor]:
        while True:
            for (rows,) in self.private.loader:
                yield rows

    def step(self, rows: torch.Tensor | None = None) -> int:
        found = next(self.batches) if rows is None else rows
        self.private.step(self.model(found).square().sum(1))
        return self.private.steps_


def test_a_training_that_began_outside_is_charged_once_to_each_budget_it_goes_on_in():
    training = Training()
    assert training.step() == 1
    with budget(epsilon=1.5, delta=1e-5) as first:
        assert training.step() == 2
        assert training.step() == 3
        assert (first.fits_, first.spent_.epsilon <= 1) == (1, True)
        with budget(epsilon=1.2, delta=1e-5) as second:
            training.step()
            assert (first.fits_, second.fits_) == (1, 1)
    training.step()
    with first:  # the same one again
        assert training.step() == 6
        assert first.fits_ == 1


def test_a_training_that_began_outside_is_refused_where_it_does_not_fit():
    training = Training(epsilon=50)
    training.step()
    with budget(epsilon=0.001, delta=1e-9) as account:
        with pytest.raises(Refused):
            training.step()
        assert (account.fits_, training.private.steps_) == (0, 1)
    training.batches = training.read()
    assert training.step() == 2


def test_a_budget_that_is_opened_between_a_batch_and_its_step_is_charged():
    training = Training()
    rows = next(training.batches)
    with budget(epsilon=0.5, delta=1e-5), pytest.raises(Refused):
        training.step(rows)
    with budget(epsilon=1.5, delta=1e-5) as account:
        assert training.step(rows) == 1
        assert account.fits_ == 1


def test_a_copy_is_charged_by_itself():
    with budget(epsilon=3, delta=1e-5) as account:
        training = Training()
        training.step()
        copied = copy.copy(training.private)
        copied.begin(Pass(list(range(10)), torch.ones(10, dtype=torch.bool), True))
        assert account.fits_ == 2


def test_a_process_is_charged_to_what_its_parent_opens_while_it_trains():
    # The child takes a step outside, one inside of the parent's block, and one after its end, which costs nothing.
    training = Training()
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()

    def follow() -> int:
        for _ in range(3):
            training.step()
            os.write(from_write, b".")
            os.read(to_read, 1)
        return training.private.steps_

    child = in_child(follow)
    os.read(from_read, 1)
    with budget(epsilon=1.5, delta=1e-5) as account:
        os.write(to_write, b".")
        os.read(from_read, 1)
        assert account.fits_ == 1
    os.write(to_write, b".")
    os.read(from_read, 1)
    os.write(to_write, b".")
    assert outcome(child) == 3
    for end in (to_read, to_write, from_read, from_write):
        os.close(end)
