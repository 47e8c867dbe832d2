"""Noise for clipped sums: fast on the device, or exact on the CPU.

The fast noise comes from a generator of its own, seeded with 64 bits from the operating system; no seed that a program
sets can be it. Its numbers are floating-point approximations of a Gaussian from a generator that is
statistical, not cryptographic: `IDEALIZATIONS` says so, and a guarantee repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tacit.learn.torch.products import has_triton
from tacit.sampling.seed import draw_system_seed

IDEALIZATIONS = (
    "the generator of the device (Philox or Mersenne Twister), seeded by the operating system, is random",
    "its 32-bit floating-point normal numbers are real Gaussian ones",
    "errors of 32-bit dot products stay within 8 deviations, rounding being as good as random",
    "the sum of clipped gradients in 32-bit floating point is exact",
)
LENGTH_IS_PUBLIC = "the number of units in the dataset is public"


class DeviceNoise:
    """Gaussian noise from the device's generator, or from a kernel of our own on GPUs, which is twice as fast."""

    def __init__(self, device: torch.device) -> None:
        self.generator = torch.Generator(device)
        self.generator.manual_seed(draw_system_seed())
        self._state = torch.tensor([draw_system_seed(), 0], device=device)
        self._prepared: tuple[tuple[int, ...], Tensor] | None = None

    def add(self, sums: Sequence[Tensor], deviation: Tensor | float) -> None:
        """Add independent noise of this deviation to each number, in place."""
        scale = torch.as_tensor(deviation, device=self._state.device, dtype=torch.float32)
        if self._state.is_cuda and has_triton() and all(_is_plain(each) for each in sums):
            from tacit.learn.torch.noise_kernel import add_noise

            prepared = self._prepared if self._prepared is not None and self._prepared[0] == _places(sums) else None
            add_noise(sums, scale, self._state, None if prepared is None else prepared[1])
            return
        for each in sums:
            noise = torch.randn(each.shape, generator=self.generator, device=each.device, dtype=each.dtype)
            each.addcmul_(noise, scale.to(each.dtype))

    def prepare(self, sums: Sequence[Tensor]) -> None:
        """Make ready to add noise to tensors that stay where they are, by one kernel for all of them."""
        if self._state.is_cuda and has_triton() and all(_is_plain(each) for each in sums):
            from tacit.learn.torch.noise_kernel import blocks

            self._prepared = _places(sums), blocks(sums)


def _places(sums: Sequence[Tensor]) -> tuple[int, ...]:
    """Where tensors lie, and how large they are."""
    return tuple(number for each in sums for number in (each.data_ptr(), each.numel()))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.dtype == torch.float32 and tensor.data_ptr() % 16 == 0
