"""Random numbers of a pass that no seed of the program decides: masks of dropout, and what datasets draw.

Such numbers go by the place of a row and by how many were drawn before. If an adversary knows them, as those of a
program that calls `torch.manual_seed`, one unit more gives other units other masks, and moves the sum by far more than
what it adds.

**Theorem.** If the numbers of a pass are independent, identically distributed for all rows, and unknown, a unit moves
the distribution of sums as if every other unit had the same numbers with it and without it. **Proof.** Couple both: the
units that both have get the same numbers, which does not change the distribution of either. A release is then a mixture
of ones whose sums are at most the clipping norm apart, over what does not depend on the unit.

So from the reading of a pass to its step the generators of torch, numpy and Python go on from fresh states of the
operating system, in the workers of a loader too: of at least 128 bits on a CPU, and a key of 64 bits on a GPU.
Afterwards they are as the program left them.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tacit.sampling.seed import draw_system_seed

_WORDS = slice(24, 24 + 8 * 624)  # of the state of torch's Mersenne Twister: 32 bits each, in 64


def _draw_words() -> npt.NDArray[np.uint32]:
    """The words of a Mersenne Twister, from the operating system."""
    return np.frombuffer(os.urandom(4 * 624), dtype=np.uint32)


def seed_generator(generator: torch.Generator) -> None:
    """Give a generator a fresh state: all 624 words on a CPU, where `manual_seed` keeps 32 bits."""
    if generator.device.type != "cpu":
        generator.manual_seed(draw_system_seed())
        return
    state = torch.Generator().get_state()
    state[_WORDS] = torch.from_numpy(_draw_words().astype(np.uint64).view(np.uint8))
    generator.set_state(state)


def fresh_generator() -> torch.Generator:
    """Return a generator of the CPU in a fresh state, such as loaders seed their workers from."""
    generator = torch.Generator()
    seed_generator(generator)
    return generator


def seed_worker(_: int) -> None:
    """Give the generators of a loader's worker fresh states: it would seed torch's with 32 bits."""
    FreshRandomness(torch.device("cpu")).begin()


def has_random_layers(model: nn.Module) -> bool:
    """Return whether a layer of torch's own is random in training."""
    kinds = (nn.modules.dropout._DropoutNd, nn.RReLU)
    return any(
        isinstance(module, kinds) or (isinstance(getattr(module, "dropout", None), float | int) and module.dropout)
        for module in model.modules()
    )


class FreshRandomness:
    """The states of the generators that models and datasets draw from, set aside during a pass."""

    def __init__(self, device: torch.device) -> None:
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            self._generators.append(torch.cuda.default_generators[index])
        self._left: tuple[Any, ...] | None = None

    def begin(self) -> None:
        """Draw fresh states; those of the program are kept."""
        if self._left is None:
            states = [generator.get_state() for generator in self._generators]
            self._left = random.getstate(), np.random.get_state(), states
            random.seed()
            np.random.set_state(("MT19937", _draw_words(), 624, 0, 0.0))
            for generator in self._generators:
                seed_generator(generator)

    def end(self) -> None:
        """Give the program its states back."""
        if self._left is not None:
            ours, numpys, states = self._left
            self._left = None
            random.setstate(ours)
            np.random.set_state(numpys)
            for generator, state in zip(self._generators, states, strict=True):
                generator.set_state(state)
