"""Noise for clipped sums: fast on the device, or exact on the CPU.

The fast noise comes from a generator of its own, seeded by the operating system; no seed that a program sets can be it.
On a CPU it is Philox 4x64-10 with a key of 128 bits, from a place among 2^256 that is drawn as well: a search for the
seed costs 2^128. Mersenne Twister, the generator of torch there, keeps 32 bits of a seed, and its words are linear in
its state, so that noise of it would be told from other noise whatever its seed is. On a GPU it is Philox 4x32-10, whose
key has 64 bits: so much a search for it costs there, and no more is claimed. The kernel of `noise_kernel` numbers its
calls from a place among 2^62 that is drawn as well; the generator of torch, for other numbers than contiguous 32-bit
ones, has nothing beside its key.

Its numbers are floating-point approximations of a Gaussian from generators that are statistical, not cryptographic:
`IDEALIZATIONS` says so, and a guarantee repeats it. Processes and copies that go on from one state would have the same
noise, and the difference of what they release would have none: a fork and a copy are seeded anew.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tacit.learn.torch.products import has_triton
from tacit.sampling.seed import draw_system_seed, make_philox

IDEALIZATIONS = (
    "the generator of the device (Philox, keyed by the operating system: 128 bits on a CPU, 64 on a GPU) is random",
    "its 32-bit floating-point normal numbers are real Gaussian ones",
    "errors of 32-bit dot products stay within 8 deviations, rounding being as good as random",
    "the sum of clipped gradients in 32-bit floating point is exact",
)
PLACES_ARE_ALIKE = "in batches of several passes, a gradient does not depend on where in its pass a unit is"
DRAWS_ARE_RANDOM = "what the model draws itself, such as the masks of dropout, is random"
LENGTH_IS_PUBLIC = "the number of units in the dataset is public"


class DeviceNoise:
    """Gaussian noise from the device's generator, or from a kernel of our own on GPUs, which is twice as fast."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._prepared: tuple[tuple[int, ...], Tensor] | None = None
        self._seed()

    def __reduce__(self) -> tuple[type[DeviceNoise], tuple[torch.device]]:
        return DeviceNoise, (self.device,)

    def _seed(self) -> None:
        self._process = os.getpid()
        if self.device.type == "cpu":
            self._host = make_philox([draw_system_seed() for _ in range(6)])
            return
        self.generator = torch.Generator(self.device)
        self.generator.manual_seed(draw_system_seed())
        self._state = torch.tensor([draw_system_seed(), draw_system_seed() % 2**62], device=self.device)

    def add(self, sums: Sequence[Tensor], deviation: Tensor | float) -> None:
        """Add independent noise of this deviation to each number, in place."""
        scale = torch.as_tensor(deviation, device=self.device, dtype=torch.float32)
        if self.device.type == "cuda" and has_triton() and all(_is_plain(each) for each in sums):
            from tacit.learn.torch.noise_kernel import add_noise

            prepared = self._prepared if self._prepared is not None and self._prepared[0] == _places(sums) else None
            add_noise(sums, scale, self._state, None if prepared is None else prepared[1])
            return
        for each in sums:
            each.addcmul_(self._draw(each), scale.to(each.dtype))

    def _draw(self, like: Tensor) -> Tensor:
        """Standard normal numbers of a tensor's shape and type."""
        if self.device.type != "cpu":
            return torch.randn(like.shape, generator=self.generator, device=like.device, dtype=like.dtype)
        if self._process != os.getpid():
            self._seed()
        if like.dtype == torch.float64:
            wide = self._host.standard_normal(like.numel())
            return torch.from_numpy(wide).reshape(like.shape)
        return _draw_pairs(self._host, like.numel()).reshape(like.shape).to(like.dtype)

    def prepare(self, sums: Sequence[Tensor]) -> None:
        """Make ready to add noise to tensors that stay where they are, by one kernel for all of them."""
        if self.device.type == "cuda" and has_triton() and all(_is_plain(each) for each in sums):
            from tacit.learn.torch.noise_kernel import blocks

            self._prepared = _places(sums), blocks(sums)


def _draw_pairs(host: Any, count: int) -> Tensor:
    """Standard normal numbers of 32 bits, by the transform of Box and Muller; the smallest uniform one is 2^-32."""
    pairs = -(-count // 2)
    first, second = torch.from_numpy(host.bit_generator.random_raw(pairs).view(np.int32)).reshape(2, pairs)
    uniform = (first & 0x7FFFFFFF).float().add_(0.5).mul_(2.0**-31).clamp_(max=1.0)
    radius = uniform.log_().mul_(-2.0).sqrt_()
    angle = second.float().mul_(math.pi * 2.0**-31)
    return torch.cat((angle.cos().mul_(radius), angle.sin().mul_(radius)))[:count]


def _places(sums: Sequence[Tensor]) -> tuple[int, ...]:
    """Where tensors lie, and how large they are."""
    return tuple(number for each in sums for number in (each.data_ptr(), each.numel()))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.dtype == torch.float32 and tensor.data_ptr() % 16 == 0
