"""Audits of three networks
========================

The networks of the other examples, audited by canaries: made-up rows that a coin puts into the training or leaves out.
Whoever sees the training guesses the coins, and too many right guesses refute the guarantee. The same is done with half
of the noise, and without clipping. It needs PyTorch.

A network is trained many times, each time on the same rows and a few canaries of its own, so that canaries hide each
other little. One canary more or less changes one of these runs, so all of them together keep the guarantee of one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import deep_digits
import deep_text
import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, TensorDataset

from tacit.accounting import epsilon
from tacit.audit import Claim, TrainingAudit, audit_training_run
from tacit.learn.torch import Private, add_lora
from tacit.privacy import ContinuousGaussianNoise

EPSILON, DELTA = 5, Fraction(1, 10**5)
RUNS, STEPS = 100, 1
ROWS, CANARIES = 4, 16  # of each run
POOL = 400  # made-up rows of which canaries are taken

Parts = tuple[Tensor, ...]
Weights = dict[str, Tensor]
Released = list[tuple[Weights, Tensor]]


@dataclass(frozen=True)
class Subject:
    """A network before training, the loss of each row, rows, made-up rows, and a clipping norm below their norms."""

    name: str
    start: nn.Module
    losses: Callable[..., Tensor]
    rows: Parts
    pool: Parts
    clip: float


def make_subjects() -> list[Subject]:
    """The networks of the other examples. Made-up images are one column of noise, and made-up lines like "ababab"."""
    torch.manual_seed(0)
    images, labels = deep_digits.read_digits()
    columns = torch.randn(POOL, 1, 8, 8) * (torch.arange(8) == torch.randint(8, (POOL, 1, 1, 1)))
    digits = (images[:ROWS], labels[:ROWS]), (columns, torch.randint(10, (POOL,)))
    lines, words = deep_text.lines()
    length = lines.shape[1]
    text = (lines[:ROWS],), (torch.randint(words, (POOL, 2)).repeat(1, length)[:, :length],)
    adapted = add_lora(deep_text.Characters(words), rank=2, layers=["linear1", "linear2"])
    return [
        Subject("convolutions", deep_digits.make_network(), deep_digits.compute_losses, *digits, clip=1.0),
        Subject("transformer", deep_text.Characters(words), deep_text.compute_losses, *text, clip=1.0),
        Subject("adapters", adapted, deep_text.compute_losses, *text, clip=0.1),
    ]


def list_trainable(model: nn.Module) -> Weights:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def find_gradients(subject: Subject, weights: Weights, parts: Parts) -> Tensor:
    """The clipped gradient of each row, as PyTorch itself finds it."""

    def loss(mine: Weights, *row: Tensor) -> Tensor:
        return subject.losses(lambda x: functional_call(subject.start, mine, (x,)), *(each[None] for each in row))[0]

    with sdpa_kernel(SDPBackend.MATH):  # others cannot be mapped
        found = vmap(grad(loss), in_dims=(None, *[0] * len(parts)))(weights, *parts)
    gradients = torch.cat([each.flatten(1) for each in found.values()], 1)
    return gradients * torch.clamp(subject.clip / gradients.norm(dim=1), max=1.0)[:, None]


def find_first_gradients(subject: Subject, parts: Parts) -> Tensor:
    """The clipped gradients before training."""
    weights = {name: parameter.detach() for name, parameter in list_trainable(subject.start).items()}
    return find_gradients(subject, weights, parts)


def choose_canaries(subject: Subject) -> Parts:
    """Made-up rows, each with the gradient that has least in common with those of rows and of canaries before it."""
    known = torch.linalg.qr(find_first_gradients(subject, subject.rows).T).Q
    left = find_first_gradients(subject, subject.pool)
    left = left - left @ known @ known.T
    chosen = []
    for _ in range(CANARIES):
        chosen.append(int(left.norm(dim=1).argmax()))
        direction = left[chosen[-1]] / left[chosen[-1]].norm()
        left = left - torch.outer(left @ direction, direction)
    return tuple(part[chosen] for part in subject.pool)


def prepare(subject: Subject, parts: Parts, **options: object) -> tuple[Private, int]:
    """Private training of a copy of the network, and the size of its batches, which have all rows."""
    model, size = copy.deepcopy(subject.start), ROWS + CANARIES // 2
    optimizer = torch.optim.Adam(list_trainable(model).values(), lr=0.01)
    data = DataLoader(TensorDataset(*parts), batch_size=size)
    public = {"public": True, "check": False}  # made-up rows need no budget, and layers are checked elsewhere
    return Private(model, optimizer, data, epochs=STEPS, rows=size, **public, **options), size


def train(subject: Subject, parts: Parts, **options: object) -> Released:
    """The weights before each step and the noisy sum that the step follows, from which all else is computed."""
    private, size = prepare(subject, parts, **options)
    moved, released = list_trainable(private.model), Released()

    def keep(*_: object) -> None:
        total = size * torch.cat([parameter.grad.flatten() for parameter in moved.values()])
        released.append(({name: parameter.detach().clone() for name, parameter in moved.items()}, total))

    private.optimizer.register_step_pre_hook(keep)
    for _ in range(STEPS):
        for batch in private.loader:
            private.step(subject.losses(private.model, *batch))
    return released


def score(subject: Subject, both: Parts, first: Tensor, released: Released, multiplier: Fraction) -> np.ndarray:
    """The best linear estimate of the coins of a run, whatever the factors by which rows enter its sums.

    `both` are rows and canaries, and `first` are their gradients before training.
    """
    products, seen = torch.zeros(len(first), len(first)), torch.zeros(len(first))
    for number, (weights, total) in enumerate(released):
        gradients = find_gradients(subject, weights, both) if number else first
        products += gradients @ gradients.T
        seen += gradients @ (total - gradients[ROWS:].sum(0) / 2)
    variances = torch.cat([torch.full((ROWS,), 1e4), torch.full((CANARIES,), 0.25)])  # anything, or a coin
    noise = (float(multiplier) * subject.clip) ** 2 / variances
    return torch.linalg.solve(products + torch.diag(noise), seen)[ROWS:].numpy()


def audit(
    subject: Subject, canaries: Parts, multiplier: Fraction, runs: int = RUNS, seed: int | None = 0, **options: object
) -> TrainingAudit:
    """Audit what this noise multiplier promises, by trainings with these options of `Private`."""
    both = tuple(map(torch.cat, zip(subject.rows, canaries, strict=True)))
    first = find_first_gradients(subject, both)

    def train_all(owners: np.ndarray, *parts: np.ndarray) -> list[Released]:
        own = [[torch.from_numpy(part[owners == run]) for part in parts] for run in range(runs)]
        return [train(subject, tuple(map(torch.cat, zip(subject.rows, each, strict=True))), **options) for each in own]

    def score_all(released: list[Released], *_: np.ndarray) -> np.ndarray:
        return np.concatenate([score(subject, both, first, each, multiplier) for each in released])

    copies = np.repeat(np.arange(runs), CANARIES), *(np.concatenate([part.numpy()] * runs) for part in canaries)
    claim = Claim.mu(math.sqrt(STEPS) / multiplier)  # of Gaussian noise on sums of all rows
    return audit_training_run(train_all, copies, score_all, claim, guesses=runs * CANARIES // 4, seed=seed)


def to_epsilon(mu: float) -> float:
    """The epsilon of Gaussian noise of this mu."""
    return epsilon(ContinuousGaussianNoise(1 / Fraction(mu)), DELTA) if mu else 0.0


def list_trainings(clip: float, multiplier: Fraction) -> list[dict[str, object]]:
    """Options of `Private`: what is promised; half of the noise; and the same noise without clipping.

    A norm that no gradient reaches clips nothing, and a fiftieth of the multiplier gives it the promised noise.
    """
    whole = {"epsilon": EPSILON, "delta": DELTA, "clip": clip}
    half = {"noise_multiplier": multiplier / 2, "clip": clip}
    free = {"noise_multiplier": multiplier / 50, "clip": 50 * clip}
    return [whole, half, free]


def find_multiplier(subject: Subject) -> Fraction:
    """The noise multiplier that `Private` finds for the promised epsilon."""
    return prepare(subject, subject.rows, epsilon=EPSILON, delta=DELTA)[0].plan.multiplier


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'epsilon of':14} claimed  shown: as it is  half of the noise  no clipping")
    for subject in make_subjects():
        canaries, multiplier = choose_canaries(subject), find_multiplier(subject)
        trainings = list_trainings(subject.clip, multiplier)
        shown = [to_epsilon(audit(subject, canaries, multiplier, **each).lower) for each in trainings]
        print(f"{subject.name:14} {EPSILON:7.2f} {shown[0]:15.2f} {shown[1]:18.2f} {shown[2]:12.2f}")


if __name__ == "__main__":
    main()
