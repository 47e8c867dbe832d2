"""Steps: batches, masks, passes, noise, clipping, and what is kept between them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.support.counts import FULL
from tests.support.deep import one_by_one, private_for, relative_error, sum_of_squares
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.errors import ParameterError
from tacit.learn.torch import Private
from tacit.learn.torch import unit_scaling as module
from tacit.learn.torch.batches import Pass
from tacit.learn.torch.state_guard import add_checksums
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(5)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def all_rows(rows: int, hidden: tuple[int, ...] = (), last: bool = True) -> Pass:
    mask = torch.ones(rows, dtype=torch.bool)
    mask[list(hidden)] = False
    return Pass(list(range(rows)), mask, last)


def silent(private: Private) -> Private:
    """The same without noise, to see what is under it."""
    private._multiplier = 0.0
    return private


def gradient_of(private: Private, x: torch.Tensor, *passes: tuple[torch.Tensor, Pass]) -> torch.Tensor:
    """What the optimizer sees, as one vector: parameters move by it at a rate of one."""
    before = torch.cat([p.detach().flatten().clone() for p in private.parameters])
    for group in private.optimizer.param_groups:
        group["lr"] = 1.0
    for rows, given_pass in passes or ((x, all_rows(len(x))),):
        private.begin(given_pass)
        private.step(sum_of_squares(private.model, rows))
    after = torch.cat([p.detach().flatten() for p in private.parameters])
    with torch.no_grad():
        start = 0
        for p in private.parameters:
            p.copy_(before[start : start + p.numel()].reshape(p.shape))
            start += p.numel()
    return before - after


def clipped_by_hand(model: nn.Module, x: torch.Tensor, clip: float) -> torch.Tensor:
    """The sum of gradients, each shortened to the clipping norm."""
    each = torch.cat([g.flatten(1) for g in one_by_one(model, x).values()], 1).double()
    return (each * (clip * (1 - 2.0**-10) / each.norm(dim=1)).clamp(max=1)[:, None]).sum(0)


def test_a_step_is_the_clipped_sum_over_a_constant():
    model, x = small(), torch.randn(8, 6)
    true = clipped_by_hand(model, x, 0.7) / 8
    assert relative_error(gradient_of(silent(private_for(model, x, clip=0.7)), x), true) < 1e-4


def test_hidden_rows_change_nothing_and_the_divisor_is_not_their_number():
    # A divisor that counts rows would tell how many were drawn: here it is 8 whether 8, 5 or none count.
    model, x = small(), torch.randn(8, 6)
    private = silent(private_for(model, x, epochs=3))
    found = gradient_of(private, x, (x, all_rows(8, hidden=(1, 4, 6))))
    assert relative_error(found, clipped_by_hand(model, x[[0, 2, 3, 5, 7]], 1.0) / 8) < 1e-4
    other = torch.where(torch.tensor([n in {1, 4, 6} for n in range(8)])[:, None], torch.inf, x)
    assert relative_error(gradient_of(private, x, (other, all_rows(8, hidden=(1, 4, 6)))), found) < 1e-5
    assert not gradient_of(private, x, (x, all_rows(8, hidden=tuple(range(8))))).any()


def test_several_passes_are_one_large_batch():
    model, x = small(), torch.randn(12, 6)
    whole = gradient_of(silent(private_for(model, x)), x)
    model2 = small()
    model2.load_state_dict(model.state_dict())
    private = silent(private_for(model2, x, units_per_pass=4))
    parts = [(x[n : n + 4], all_rows(4, last=n == 8)) for n in (0, 4, 8)]
    assert relative_error(gradient_of(private, x, *parts), whole) < 1e-5
    assert private.steps_ == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_an_example_that_is_not_finite_adds_nothing(bad):
    model, x = small(), torch.randn(8, 6)
    x[3, 2] = bad
    model[1] = nn.Identity()
    private = silent(private_for(model, x))
    assert relative_error(gradient_of(private, x), clipped_by_hand(model, x[[0, 1, 2, 4, 5, 6, 7]], 1.0) / 8) < 1e-4


def test_automatic_clipping_scales_all_to_the_clipping_norm():
    model, x = small(), torch.randn(8, 6)
    each = torch.cat([g.flatten(1) for g in one_by_one(model, x).values()], 1).double()
    true = (each * ((1 - 2.0**-10) / (each.norm(dim=1) + 0.01))[:, None]).sum(0) / 8
    assert relative_error(gradient_of(silent(private_for(model, x, clipping="automatic")), x), true) < 1e-4


def test_adaptive_clipping_goes_to_the_quantile():
    model, x = small(), torch.randn(64, 6)
    norms = torch.cat([g.flatten(1) for g in one_by_one(model, x).values()], 1).norm(dim=1)
    private = private_for(model, x, clipping="adaptive", quantile=0.8, clip=100.0, epochs=400, noise_multiplier=0.5)
    for _ in range(200):
        private.begin(all_rows(64))
        private.step(sum_of_squares(model, x))  # the learning rate is 0
    assert float(torch.quantile(norms, 0.6)) < private.clip < float(torch.quantile(norms, 0.95))


def test_the_count_of_adaptive_clipping_is_within_the_noise():
    # 1/s^2 + 1/(2b)^2 = 1/z^2: sums with deviation s and a count of +-1/2 with deviation b move by 1/z together.
    private = private_for(small(), torch.randn(100, 6), clipping="adaptive", noise_multiplier=1.5)
    s, b = private._multiplier, private._bit_deviation
    assert 1 / s**2 + 1 / (2 * b) ** 2 <= 1 / 1.5**2


def test_the_noise_is_that_of_the_multiplier_and_no_seed_of_a_program():
    model, x = nn.Linear(100, 100), torch.randn(4, 100)
    private = private_for(model, x, clip=0.5, noise_multiplier=2.0, epochs=10)
    nothing = (x, all_rows(4, hidden=(0, 1, 2, 3)))
    torch.manual_seed(0)
    first = gradient_of(private, x, nothing)
    torch.manual_seed(0)
    second = gradient_of(private, x, nothing)
    # 10,100 numbers: the deviation is estimated to 0.7%, so 5% is beyond 7 deviations (3e-12)
    assert float(first.std()) == pytest.approx(0.5 * 2.0 / 4, rel=0.05)
    assert not torch.equal(first, second) and abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.07


# Distances of sums of neighbors.
EXTREME = some.sampled_from([0.0, 1.0, -1.0, 1e-45, 1e-38, -1e-30, 1e-19, 3e-5, 40.0, 1e4, -1e7, 1e19, 1e30, 3e38])
NUMBERS = some.one_of(
    EXTREME, EXTREME, some.sampled_from([math.nan, math.inf, -math.inf]), some.floats(-3, 3, width=32)
)


class Reader(nn.Module):
    """Tokens by Gram matrices, a norm, and a head on their mean."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.head = nn.Linear(24, 16, bias=False), nn.LayerNorm(16), nn.Linear(16, 2)

    def forward(self, x):
        h = self.first(x)
        return self.head((h + self.norm(h)).mean(1))


@settings(max_examples=400 if FULL else 8)
@given(
    some.lists(some.lists(NUMBERS, min_size=2, max_size=6), min_size=1, max_size=3),
    some.floats(1e-3, 1e3),
    some.sampled_from(["flat", "automatic"]),
    some.booleans(),
)
def test_one_more_example_moves_the_sum_by_at_most_the_clipping_norm(values, clip, clipping, short):
    torch.manual_seed(1)
    model = Reader()
    x = torch.zeros(4, 3, 24)
    for n, row in enumerate(values):
        x[0, n, : len(row)] = torch.tensor(row)
        x[0, n, 12:] = torch.tensor(row[0])
    x[1:] = torch.randn(3, 3, 24) * 10

    def sums(hidden: tuple[int, ...]) -> torch.Tensor:
        private = private_for(model, x, clip=clip, clipping=clipping)
        private.begin(all_rows(4, hidden, last=False))
        with torch.autocast("cpu", torch.bfloat16, enabled=short):
            losses = sum_of_squares(model, x)
        private.step(losses)
        found = private._sums
        private.close()
        assert found is not None
        return torch.cat([found[id(p)].double().flatten() for p in private.parameters]) * private.expected_batch

    near, far = sums((0,)), sums(())
    assert torch.isfinite(near).all() and torch.isfinite(far).all()
    assert float((near - far).norm()) <= clip


def test_cancelling_tokens_do_not_hide_a_gradient():
    # Two tokens whose contributions nearly cancel: what is left is far below the rounding of the Gram matrices.
    model = nn.Linear(24, 16, bias=False)
    x = torch.randn(2, 1, 24).repeat(1, 2, 1) * 1e5
    x[:, 1] *= 1 + 2e-7
    signs = torch.tensor([1.0, -1.0])[:, None] * 1e5

    def losses(model, x):
        return (model(x) * signs).sum((1, 2))

    private = private_for(model, x)
    private.begin(all_rows(2, hidden=(1,), last=False))
    private.step(losses(model, x))
    (total,) = private._sums.values()
    assert float(total.double().norm()) * 2 <= 1.0


# A canary, and what an observer makes of it.
class Watched(torch.optim.Optimizer):
    """Moves nothing, and shows what it was given."""

    def __init__(self, parameters) -> None:
        super().__init__(list(parameters), {})

    def step(self) -> None:
        self.seen = torch.cat([p.grad.double().flatten() for group in self.param_groups for p in group["params"]])


CANARIES = 50  # each in a coordinate of its own, so that a step is as many trials
TRIALS = CANARIES * (80 if FULL else 10)
CLAIM = math.erf(1 / (2 * math.sqrt(2)))  # noise of one clipping norm: 2 Phi(1/2) - 1 = 0.383
CAUGHT = CLAIM + 6.1 * math.sqrt(0.5 / TRIALS)  # beyond by chance with a probability below 1e-9


def watched(**settings) -> Private:
    model, x = nn.Linear(CANARIES, 1, bias=False), torch.zeros(CANARIES, 1)
    nn.init.constant_(model.weight, 0.1)  # so that no canary has next to no gradient
    given = {"noise_multiplier": 1.0, "epochs": 10**6, "units_per_pass": CANARIES, "check": False} | settings
    return Private(model, Watched(model.parameters()), DataLoader(TensorDataset(x), batch_size=CANARIES), **given)


def distance(private: Private) -> float:
    """How much more often a canary's coordinate passes the middle with it than without: at most the total variation."""
    x = 10 * torch.eye(CANARIES)
    signs = torch.sign(private.model(x)[:, 0].detach().double() - 0.3)  # of the gradient of each canary
    shares = []
    for hidden in ((), tuple(range(CANARIES))):
        passed = 0
        for _ in range(TRIALS // CANARIES):
            private.begin(all_rows(CANARIES, hidden))
            private.step(sum_of_squares(private.model, x))
            passed += int((private.optimizer.seen * signs * CANARIES > 0.5).sum())
        shares.append(passed / TRIALS)
    return shares[0] - shares[1]


@pytest.mark.parametrize("clipping", ["flat", "automatic"])
def test_a_canary_is_not_seen_beyond_the_claim(clipping):
    assert distance(watched(clipping=clipping)) < CAUGHT


def test_halved_noise_is_seen():
    # 2 Phi(1) - 1 = 0.683, which is 4.6 deviations above what is caught: it is missed twice in a million runs
    private = watched()
    private._multiplier /= 2
    assert distance(private) > CAUGHT


def test_skipped_clipping_is_seen(monkeypatch):
    monkeypatch.setattr(module, "factors", lambda columns, mask, *rest: (mask.float(), columns[:, 0].sqrt()))
    assert distance(watched()) > CAUGHT


# Batches.
def trained(**settings) -> tuple[Private, list[int]]:
    """Private training on 200 rows that are their own numbers, and how many of each epoch's passes a row was in."""
    x = torch.arange(200.0)[:, None].repeat(1, 6)
    model = small()
    given = {"noise_multiplier": 1.0, "epochs": 3, "check": False, "bits": ReplayBits(b"batches")} | settings
    loader = DataLoader(TensorDataset(x), batch_size=20)
    private = Private(model, torch.optim.SGD(model.parameters(), 0.1), loader, **given)
    seen = [0] * 200
    for _ in range(private.epochs):
        for (rows,) in private.loader:
            assert len(rows) == private._book.rows
            mask = private._require_pass().mask
            for row in rows[mask, 0].long().tolist():
                seen[row] += 1
            private.step(sum_of_squares(model, rows / 200))
    return private, seen


def test_poisson_batches_have_every_row_at_the_rate():
    private, seen = trained(epochs=20)
    assert private.steps_ == private.plan.steps == 200 and private.plan.rate == pytest.approx(0.1, rel=1e-12)
    # 40,000 coins of 1/10: 4,000 heads with a deviation of 60; and a row's own 200 have a variance of 18
    assert abs(sum(seen) - 4000) < 6.1 * 60
    assert 8 < np.var(seen) < 32


def test_batches_that_are_larger_than_a_pass_take_several():
    private, seen = trained(units_per_pass=8)
    assert private.steps_ == 30 and sum(seen) > 400


def test_an_empty_batch_is_a_step():
    x = torch.randn(2, 6)
    private = private_for(small(), x, units_per_pass=4, rows=2**30, epochs=1)
    before = [p.clone() for p in private.parameters]
    for group in private.optimizer.param_groups:
        group["lr"] = 0.1
    for n, (rows,) in enumerate(private.loader):
        assert not private._require_pass().mask.any() and len(rows) == 4
        assert private.step(sum_of_squares(private.model, rows))
        if n == 2:
            break
    assert private.steps_ == 3 and all(not torch.equal(p, q) for p, q in zip(private.parameters, before, strict=True))


def test_shuffled_batches_have_every_row_once_an_epoch_and_are_priced_so():
    private, seen = trained(sampling="shuffled")
    assert seen == [3] * 200
    assert private.guarantee_.neighbors is Neighbors.REPLACE
    from tacit.accounting import epsilon
    from tacit.privacy import ContinuousGaussianNoise, Repeat

    assert private.spent(1e-6) == epsilon(Repeat(ContinuousGaussianNoise(Fraction(1, 2)), 3), 1e-6)


def test_an_epoch_that_is_left_and_taken_up_again_has_every_row_once():
    x = torch.arange(40.0)[:, None].repeat(1, 6) / 40
    model = small()
    loader = DataLoader(TensorDataset(x), batch_size=10)
    private = Private(
        model, torch.optim.SGD(model.parameters(), 0.1), loader, noise_multiplier=1.0, epochs=2, sampling="shuffled"
    )
    seen = []
    for _ in range(4):
        for (rows,) in private.loader:
            seen += rows[:, 0].tolist()
            private.step(sum_of_squares(model, rows))
            break
    assert private.steps_ == 4 and sorted(seen) == x[:, 0].tolist()


def test_passes_of_a_batch_that_is_left_are_forgotten():
    # Else a row could be in the sum twice: in a pass before, and in the batch that is taken up.
    private, _ = trained(units_per_pass=4, epochs=1)
    again, _ = trained(units_per_pass=4, epochs=1, bits=ReplayBits(b"other"))
    for one in (private, again):
        one.steps_ = 0
        for (rows,) in one.loader:
            if one.step(sum_of_squares(one.model, rows)):
                continue
            break  # after the first of several passes
        assert one._sums is not None
        next(iter(one.loader))
        assert one._sums is None


def test_only_the_last_iteration_goes_on():
    private, _ = trained(epochs=1)
    private.steps_ = 0
    first, second = iter(private.loader), iter(private.loader)
    next(first)
    next(second)
    with pytest.raises(ParameterError, match="another iteration over the loader was begun"):
        next(first)


def test_units_of_several_examples_are_drawn_together():
    owners = [n // 8 for n in range(200)]  # 25 people of 8 examples; 3 of them are used in a step
    private, seen = trained(units=owners, rows_per_unit=3, epochs=1, units_per_pass=25)
    assert private._book.rows == 75 and private.plan.rate == pytest.approx(20 / 25, rel=1e-12)
    assert private.steps_ == 2 and sum(seen) <= 2 * 75 and sum(seen) % 3 == 0


def test_the_gradients_of_a_person_are_clipped_as_one():
    model, x = small(), torch.randn(6, 6)
    private = silent(private_for(model, x, units=[0, 0, 1, 1, 2, 2], rows_per_unit=2, units_per_pass=3))
    each = torch.cat([g.flatten(1) for g in one_by_one(model, x).values()], 1).double().reshape(3, 2, -1).sum(1)
    true = (each * ((1 - 2.0**-10) / each.norm(dim=1)).clamp(max=1)[:, None]).sum(0) / private.expected_batch
    assert relative_error(gradient_of(private, x), true) < 1e-4


# Exact noise.
def test_exact_noise_is_on_sums_of_integers():
    model, x = small(), torch.randn(8, 6)
    private = private_for(model, x, noise="exact", noise_multiplier=2.0, clip=0.5, bits=ReplayBits(b"exact"))
    true = clipped_by_hand(model, x, 0.5) / 8
    found = gradient_of(private, x)
    # noise of 2 * 0.5 / 8 in each of 83 numbers; the sum of squares is beyond 4 times its mean never
    assert 0 < float((found - true).norm()) < 2 * 0.125 * math.sqrt(true.numel())
    assert private.guarantee_.idealizations == ("the number of units in the dataset is public",)


@settings(max_examples=200 if FULL else 5)
@given(some.lists(NUMBERS, min_size=6, max_size=6), some.sampled_from(["flat", "automatic"]))
def test_exact_sums_of_neighbors_are_within_one(values, clipping):
    from tacit.learn.torch.exact import EXPONENT

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    x = torch.randn(3, 6)
    x[0] = torch.tensor(values)

    def sums(hidden):
        private = private_for(model, x, noise="exact", clip=0.5, clipping=clipping)
        private.begin(all_rows(3, hidden, last=False))
        private.step(sum_of_squares(model, x))
        found = private._sums
        private.close()
        return np.concatenate([found[id(p)].to_integers().ravel() for p in private.parameters])

    moved = sums(()) - sums((0,))
    assert int((moved * moved).sum()) <= 4**EXPONENT


# What is kept.
def test_a_run_continues_from_a_checkpoint_with_its_steps():
    x = torch.randn(64, 6)
    settings = {"noise_multiplier": 1.0, "epochs": 2, "check": False}
    model = small()
    loader = DataLoader(TensorDataset(x), batch_size=16)
    private = Private(model, torch.optim.Adam(model.parameters()), loader, **settings)
    for (rows,) in private.loader:  # a large batch takes two passes, and one step
        private.step(sum_of_squares(model, rows))
        if private.steps_ == 3:
            break
    state = private.state_dict()
    assert state["steps"] == 3
    other = small()
    again = Private(other, torch.optim.Adam(other.parameters()), loader, **settings)
    again.load_state_dict(state)
    left = 0
    for _ in range(2):
        for (rows,) in again.loader:
            left += again.step(sum_of_squares(other, rows))
    assert left == 5 and again.steps_ == 8 and again.spent(1e-6) == private.plan.epsilon(1e-6)
    with pytest.raises(ParameterError, match="all 8 planned steps are taken"):
        next(iter(again.loader))
    with pytest.raises(ParameterError, match="fewer steps than were taken"):
        again.load_state_dict(state)
    with pytest.raises(ParameterError, match="of another plan"):
        private.load_state_dict({**state, "plan": {}})


def test_an_epoch_of_shuffled_batches_that_was_begun_counts_as_done():
    x = torch.randn(64, 6)
    model = small()
    loader = DataLoader(TensorDataset(x), batch_size=16)
    private = Private(
        model, torch.optim.SGD(model.parameters(), 0.1), loader, noise_multiplier=1.0, epochs=3, sampling="shuffled"
    )
    private.load_state_dict({**private.state_dict(), "steps": 5})
    assert private.steps_ == 8


class Counting(nn.Linear):
    """Keeps the mean of its input, in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__(6, 3)
        self.how = how
        self.register_buffer("mean", torch.zeros(6))
        self.known = nn.Parameter(torch.zeros(6), requires_grad=False)

    def forward(self, x):
        mean = x.detach().mean(0) if x.dim() == 2 else x.detach().mean((0, 1))
        if self.how == "in place":
            self.mean.add_(mean)
        elif self.how == "assigned":
            self.mean = self.mean + mean
        elif self.how == "data":
            self.mean.data.copy_(mean)
        elif self.how == "replaced data":
            self.mean.data = mean
        elif self.how == "new":
            self.register_buffer("other", mean)
        elif self.how == "parameter":
            self.known.add_(mean)
        elif self.how == "data of a parameter":
            self.known.data.mul_(0.9).add_(mean)
        return super().forward(x)


class Writing(nn.Module):
    """Adds the mean of its input to the weight of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        self.layer.weight.data[1].add_(x.detach().mean(0))
        return self.layer(x)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 6), Counting("data of a parameter").requires_grad_(False)), "1.known"),
        (Writing, "layer.weight"),
    ],
)
def test_what_a_first_pass_writes_into_parameters_through_their_data_is_named(make, name):
    # No version counts it: a mean of rows in a parameter would be released with the model, without noise.
    model = make()
    private = private_for(model, torch.randn(4, 6), check=True)
    private.begin(all_rows(4))
    with pytest.raises(ParameterError, match=f"{name}: is a parameter that a pass changed"):
        private.step(sum_of_squares(model, torch.randn(4, 6)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64, torch.uint8])
def test_a_checksum_changes_with_any_number(dtype):
    tensor = (torch.randn(7, 5) * 50).abs().to(dtype)
    before = add_checksums(tensor)
    assert torch.equal(add_checksums(tensor.clone()), before) and add_checksums(tensor[:0]).numel() == 1
    for place in np.ndindex(7, 5):
        other = tensor.clone()
        other[place] += 1
        assert not torch.equal(add_checksums(other), before)
    assert not torch.equal(add_checksums(tensor + 1), before)
    assert not torch.equal(add_checksums(tensor.flip(0)), before)


@pytest.mark.parametrize("how", ["in place", "assigned", "data", "replaced data", "new", "parameter"])
def test_what_a_pass_changes_in_a_model_is_named(how):
    model = nn.Sequential(nn.Linear(6, 6), Counting(how).requires_grad_(False))
    private = private_for(model, torch.randn(4, 6))
    private.begin(all_rows(4))
    name = {"new": "1.other: is a buffer", "parameter": "1.known: is a parameter"}.get(how, "1.mean: is a buffer")
    with pytest.raises(ParameterError, match=f"{name} that a pass changed"):
        private.step(sum_of_squares(model, torch.randn(4, 6)))


def test_a_frozen_embedding_that_shortens_its_vectors_is_named():
    model = nn.Sequential(nn.Embedding(5, 6, max_norm=0.1).requires_grad_(False), nn.Linear(6, 3))
    private = private_for(model, torch.zeros(4, 2))
    private.begin(all_rows(4))
    with pytest.raises(ParameterError, match=r"0.weight: is a parameter that a pass changed"):
        private.step(sum_of_squares(model, torch.tensor([[0, 1], [2, 3], [4, 0], [1, 2]])))


def test_a_buffer_may_be_changed_between_steps():
    model = nn.Sequential(nn.Linear(6, 6), Counting("nothing").requires_grad_(False))
    model[1].mean[0] = math.nan  # and what is no number is equal to itself
    private = private_for(model, torch.randn(4, 6), epochs=2)
    for value in (1.0, 2.0):
        model[1].mean.data[1] = value
        private.begin(all_rows(4))
        assert private.step(sum_of_squares(model, torch.randn(4, 6)))


def test_a_batch_that_was_not_stepped_is_an_error():
    private = private_for(small(), torch.randn(4, 6))
    private.begin(all_rows(4))
    with pytest.raises(ParameterError, match="was not stepped"):
        private.begin(all_rows(4))
    with pytest.raises(ParameterError, match="needs one loss for each of 4 rows"):
        private.step(private.model(torch.randn(4, 6)).mean())


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"noise_multiplier": None}, "epsilon and delta are needed"),
        ({"epsilon": 1.0, "delta": 1e-6}, "is not needed beside noise_multiplier"),
        ({"noise_multiplier": None, "epsilon": -1.0, "delta": 1e-6}, "epsilon must be above 0"),
        ({"clip": 0.0}, "clip"),
        ({"clipping": "some"}, "clipping: is 'some'"),
        ({"sampling": "some"}, "sampling: is 'some'"),
        ({"rows_per_unit": 2}, "is for units of several examples"),
        ({"units": [1, 2]}, "needs one id for each of 4 examples"),
        ({"epochs": 0}, "epochs"),
        ({"noise": "exact", "clipping": "adaptive"}, "adaptive clipping has no exact noise"),
    ],
)
def test_what_is_out_of_range_is_said_before_data_is_read(settings, what):
    with pytest.raises(ParameterError, match=what):
        private_for(small(), torch.randn(4, 6), **settings)


def test_a_model_learns():
    x = torch.randn(2000, 6)
    y = (x[:, 0] + x[:, 1] > 0).long()
    model = small()
    loader = DataLoader(TensorDataset(x, y), batch_size=250)
    private = Private(model, torch.optim.SGD(model.parameters(), 1.0), loader, epsilon=3, delta=1e-5, epochs=4)
    for _ in range(private.epochs):
        for rows, target in private.loader:
            private.step(F.cross_entropy(model(rows), target, reduction="none"))
    assert float((model(x).argmax(1) == y).float().mean()) > 0.8
    assert private.guarantee_.epsilon == 3 and 2.9 < private.spent(1e-5) <= 3
