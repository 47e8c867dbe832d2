"""Sums of neighbors: one unit more moves them by at most one clipping norm, whatever its rows are."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
import torch
from tests.support.deep import clipped_step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.errors import ParameterError
from tacit.learn.torch import Private
from tacit.learn.torch.batches import Pass, UnitTable, split_into_passes
from tacit.learn.torch.fresh_randomness import fresh_generator
from tacit.learn.torch.noise import DRAWS_ARE_RANDOM, LENGTH_IS_PUBLIC, PLACES_ARE_ALIKE
from tacit.sampling.bits import ReplayBits

ROUNDING = 1e-3  # of a sum of 32-bit numbers; exact sums have none


def squared_error(model, tensors):
    return (model(tensors[0]) - tensors[1]).square().sum(1)


def product(model, tensors):
    return model(tensors[0])[:, 0] * tensors[1][:, 0]


# Units of several rows.
@pytest.mark.parametrize("noise", ["exact", "device"])
@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38, 1e8])
def test_a_persons_row_is_not_seen_by_units_with_fewer_rows_than_others(noise, value):
    # Person 0 has the first row, which overflows. The 20 others have one row each, of two that a step could use.
    torch.manual_seed(1)
    x, y = torch.randn(21, 64), torch.full((21, 64), 50.0)
    x[0] = value

    def sums(first):
        torch.manual_seed(0)
        data = TensorDataset(x[first:], y[first:])
        people = list(range(first, 21))
        settings = {"units": people, "rows_per_unit": 2, "rows": 20, "batch": 20, "units_per_pass": 24}
        return clipped_step(nn.Linear(64, 64), data, squared_error, noise=noise, **settings)

    assert float(np.linalg.norm(sums(0) - sums(1))) <= 1 + ROUNDING


def test_places_of_a_unit_hold_rows_of_its_own_and_the_others_rows_of_the_batch():
    owners = [0, 1, 1, 2, 3, 3, 3, 4]
    table = UnitTable.of(8, owners, rows_per_unit=2)
    for each in split_into_passes([1, 2, 3], 5, table, ReplayBits(b"places")):
        places = np.reshape([owners[position] for position in each.positions], (5, 2))
        assert (places[:, 0] == places[:, 1]).all()
        counted = each.mask.reshape(5, 2).any(1).numpy()
        assert sorted(places[counted, 0]) == [1, 2, 3] and set(places[~counted, 0]) <= {1, 2, 3}
        assert int(each.mask.sum()) == 5  # unit 2 has one row, and units 1 and 3 two


@pytest.mark.parametrize("people", [["0", "1\0", "1"], [1, 2**63, 2**63 + 1]])
def test_persons_whose_ids_an_array_would_round_are_clipped_one_by_one(people):
    # The gradients of the last two, 10 and -30, are clipped to 1 and -1; as those of one person they were -1 together.
    def sums(persons):
        data = TensorDataset(torch.ones(3, 1)[:persons], torch.tensor([[0.0], [10.0], [-30.0]])[:persons])
        settings = {"units": people[:persons], "rows": 3, "batch": 3, "units_per_pass": 8}
        return clipped_step(nn.Linear(1, 1, bias=False), data, product, noise="exact", **settings)

    assert abs(sums(3)) < ROUNDING and float(np.linalg.norm(sums(3) - sums(2))) <= 1


def test_examples_without_a_person_are_refused():
    # Object arrays with NaN have no order: sorted, equal ids are not adjacent, and each example was a unit of its own.
    people = np.array([3, math.nan, 1, 3, math.nan, 1, 2, 3], dtype=object)
    with pytest.raises(ParameterError, match="units: has rows whose id is missing"):
        UnitTable.of(8, people, rows_per_unit=2)


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


# Places in a pass.
def test_units_lie_in_random_places_that_do_not_depend_on_the_others():
    # Two units in three places: each of 6 ways has probability 1/6. Of 1,500 draws, 250 with a deviation of 14.4; 90 is
    # 6.2 of them: beyond with probability 6e-10. Alone, a unit is in each place in 500 (deviation 18.3; 114).
    table, bits = UnitTable(9), ReplayBits(b"places")
    pairs: Counter[tuple[int, ...]] = Counter()
    alone: Counter[int] = Counter()
    for _ in range(1500):
        (two,) = split_into_passes([4, 7], 3, table, bits)
        (one,) = split_into_passes([4], 3, table, bits)
        assert sorted(np.array(two.positions)[two.mask.numpy()]) == [4, 7]
        pairs[tuple(position if counted else 0 for position, counted in zip(two.positions, two.mask, strict=True))] += 1
        alone[int(one.mask.int().argmax())] += 1
    assert len(pairs) == 6 and all(abs(count - 250) < 90 for count in pairs.values())
    assert all(abs(count - 500) < 114 for count in alone.values())


def test_all_units_of_a_batch_are_in_its_passes_once():
    passes = list(split_into_passes(list(range(10, 20)), 4, UnitTable(20), ReplayBits(b"passes")))
    assert [int(each.mask.sum()) for each in passes] == [4, 4, 2] and [each.is_last for each in passes] == [0, 0, 1]
    seen = [n for each in passes for n in np.array(each.positions)[each.mask.numpy()]]
    assert sorted(seen) == list(range(10, 20))


def test_places_are_idealized_where_a_batch_may_take_several_passes():
    def named(**settings):
        loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        return Private(model, optimizer, loader, noise_multiplier=1, noise="exact", **settings).guarantee_.idealizations

    assert named(units_per_pass=8) == (LENGTH_IS_PUBLIC,)
    assert named(units_per_pass=7) == (PLACES_ARE_ALIKE, LENGTH_IS_PUBLIC)
    assert named(units_per_pass=8, rows=8) == (PLACES_ARE_ALIKE,)  # there may be more than 8
    assert named(units_per_pass=2, sampling="shuffled") == ()


# One parameter in several layers.
class SelfAndCross(nn.Module):
    """One module as self-attention, which reads its three matrices as one, and as cross-attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x, context):
        own, _ = self.attention(x, x, x)
        return own + self.attention(x, context, context)[0]


@pytest.mark.parametrize("noise", ["exact", "device"])
@pytest.mark.parametrize(("width", "tokens"), [(8, 5), (16, 3), (4, 9), (8, 1)])
def test_attention_to_itself_and_to_others_is_clipped_as_one(noise, width, tokens):
    def losses(model, tensors):
        x, context, y = tensors
        return (model(x, context) - y).square().sum((1, 2))

    for unit in range(3):
        torch.manual_seed(unit)
        x, y = torch.randn(1, tokens, width), torch.randn(1, tokens, width) * 10
        data = TensorDataset(x, x + 0.01 * torch.randn(1, tokens, width), y)
        length = float(np.linalg.norm(clipped_step(SelfAndCross(width), data, losses, noise=noise)))
        assert 0.99 < length <= 1 + ROUNDING


# Random numbers of the model and the loader.
def draw_twice(model, data, **settings):
    def sums():
        torch.manual_seed(42)
        np.random.seed(42)
        random.seed(42)
        return clipped_step(model, data, squared_error, noise="exact", **settings)

    return sums(), sums()


def test_masks_of_dropout_are_not_those_of_the_programs_seed():
    # With known masks, a unit more shifts all others to masks of others: their sums moved by 6.8 clipping norms.
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(20, 1))
    first, second = draw_twice(model, TensorDataset(torch.randn(30, 20), torch.full((30, 1), 1000.0)))
    assert np.linalg.norm(first - second) > 0.1


DRAWS = [lambda: torch.rand(()).item(), np.random.random, random.random]


@pytest.mark.parametrize(("draw", "workers"), [*((draw, 0) for draw in DRAWS), (DRAWS[0], 1)])
def test_what_a_dataset_draws_is_not_of_the_programs_seed(draw, workers):
    class Shaken(TensorDataset):
        def __getitem__(self, index):
            x, y = super().__getitem__(index)
            return x * draw(), y

    first, second = draw_twice(
        nn.Linear(20, 1), Shaken(torch.randn(30, 20), torch.full((30, 1), 1000.0)), workers=workers
    )
    assert np.linalg.norm(first - second) > 0.01


def test_the_programs_own_random_numbers_go_on_as_if_nothing_was_drawn():
    def draws():
        return torch.rand(()).item(), np.random.random(), random.random()

    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    expected = [draws() for _ in range(3)]
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 1))
    loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    private = Private(model, optimizer, loader, noise_multiplier=1, check=False, units_per_pass=8)
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    found = []
    for (x,) in private.loader:
        private.step(model(x).square().sum(1))
        found.append(draws())
    assert [*found, draws()] == expected


def test_dropout_is_an_idealization():
    loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=8)
    for model, is_named in ((nn.Sequential(nn.Dropout(0.1), nn.Linear(2, 1)), True), (nn.Linear(2, 1), False)):
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        private = Private(model, optimizer, loader, noise_multiplier=1, noise="exact")
        assert (DRAWS_ARE_RANDOM in private.guarantee_.idealizations) == is_named


def test_all_words_of_a_generator_are_drawn():
    one, other = (fresh_generator().get_state()[24 : 24 + 8 * 624].numpy().view(np.uint64) for _ in range(2))
    assert (one < 2**32).all() and (one != other).sum() > 620
    drawn = torch.rand(100_000, generator=fresh_generator())
    assert abs(float(drawn.mean()) - 0.5) < 6.2 * 12**-0.5 / 100_000**0.5
