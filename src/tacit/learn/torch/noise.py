"""Noise for clipped sums: fast on the device, or exact on the CPU.

The fast noise is `torch.randn` of a generator of its own, seeded with 64 bits from the operating system; no seed that a
program sets can be it. Its numbers are floating-point approximations of a Gaussian from a generator that is
statistical, not cryptographic: `IDEALIZATIONS` says so, and a guarantee repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

IDEALIZATIONS = (
    "the generator of the device (Philox or Mersenne Twister), seeded by the operating system, is random",
    "its 32-bit floating-point normal numbers are real Gaussian ones",
    "the sum of clipped gradients in 32-bit floating point is exact",
)
LENGTH_IS_PUBLIC = "the number of units in the dataset is public"


class DeviceNoise:
    """Gaussian noise from the device's generator."""

    def __init__(self, device: torch.device) -> None:
        self.generator = torch.Generator(device)
        self.generator.manual_seed(int.from_bytes(os.urandom(8), "little", signed=True))

    def add(self, sums: Sequence[Tensor], deviation: Tensor | float) -> None:
        """Add independent noise of this deviation to each number, in place."""
        for each in sums:
            noise = torch.randn(each.shape, generator=self.generator, device=each.device, dtype=each.dtype)
            each.addcmul_(noise, torch.as_tensor(deviation, device=each.device, dtype=each.dtype))
