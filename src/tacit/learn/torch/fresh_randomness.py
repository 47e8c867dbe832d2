"""Random numbers of a pass that no seed of the program decides: masks of dropout, and what datasets draw.

Such numbers go by the place of a row and by how many were drawn before. If an adversary knows them, as those of a
program that calls `torch.manual_seed`, one unit more gives other units other masks, and moves the sum by far more than
what it adds.

**Theorem.** If the numbers of a pass are independent, identically distributed for all rows, and unknown, a unit moves
the distribution of sums as if every other unit had the same numbers with it and without it. **Proof.** Couple both: the
units that both have get the same numbers, which does not change the distribution of either. A release is then a mixture
of ones whose sums are at most the clipping norm apart, over what does not depend on the unit.

So from the reading of a pass to its step the generators of torch, numpy and Python are in states of our own, which come
from the operating system, once in each process and in each worker of a loader: of at least 128 bits on a CPU, and a key
of 64 bits on a GPU. Afterwards they are as the program left them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tacit.sampling.seed import draw_system_seed

_numpy: Any = np.random  # whose types leave out how to exchange its generator
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
    """The generators that models and datasets draw from: those of the program, but during a pass states of our own.

    Ours come from the operating system, once for each process, and go on from pass to pass.
    """

    def __init__(self, device: torch.device) -> None:
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            self._generators.append(torch.cuda.default_generators[index])
        self._ways: list[tuple[Callable[[], Any], Callable[[Any], object]]] = [
            (random.getstate, random.setstate),
            (_numpy.get_bit_generator, _numpy.set_bit_generator),  # itself: to copy its state takes as long as a pass
            *((generator.get_state, generator.set_state) for generator in self._generators),
        ]
        self._process = 0
        self._own: tuple[Any, ...] = ()
        self._left: tuple[Any, ...] | None = None

    def begin(self, *, in_graphs: bool = False) -> None:
        """Go on from our own states; those of the program are kept. Recorded graphs draw from the device's alone."""
        if self._left is not None:
            return
        if self._process != os.getpid():
            self._process = os.getpid()
            self._own = self._draw()
        self._left = self._exchange(self._own[-1:] if in_graphs else self._own)

    def end(self) -> None:
        """Give the program its states back."""
        if self._left is not None:
            left, self._left = self._left, None
            own = self._exchange(left)
            self._own = (*self._own[: len(self._own) - len(own)], *own)

    def _draw(self) -> tuple[Any, ...]:
        """Fresh states: of Python's generator, numpy's, and torch's on the CPU and on the device."""
        generators = [torch.Generator(generator.device) for generator in self._generators]
        for generator in generators:
            seed_generator(generator)
        states = [generator.get_state() for generator in generators]
        return random.Random().getstate(), np.random.MT19937(), *states  # noqa: S311 - models draw from it, and no noise is

    def _exchange(self, states: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take on states, those of the last generators where they are fewer, and return what was there."""
        found = []
        for (read, write), state in zip(self._ways[len(self._ways) - len(states) :], states, strict=True):
            found.append(read())
            write(state)
        return tuple(found)
