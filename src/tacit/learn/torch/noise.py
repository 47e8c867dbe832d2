"""Noise for clipped sums: fast on the device, or exact on the CPU.

**Theorem.** Where the words of the generator are uniform and independent, the noise comes in independent pairs, and
each pair is one of independent real standard normal numbers that was moved by at most 2^-15 of its length. It has no
end: what can be given with one neighbor can be given with the other, no part of the Gaussian that a plan is priced by
is cut off, and nothing has to be added to delta. What is idealized is that this rounding tells nothing.

**Proof.** Let v be uniform between -1/2 and 1/2, and let u be v where v > 0, else 1 + v: it is uniform between 0 and 1.
A pair has the length sqrt(2 e) with e = -ln(u), and any direction (Box and Muller). A word gives v as the middle of one
of 2^32 cells. Where |v| < `RARE`, among the 2^14 cells to either side of 0, more words divide the cell, until it is at
most 2^-14 of |v|: none is the last one before 0. So v is off by at most 2^-15 of itself, and by roundings, of 2^-24
each. For v > 0, e is at least 18 ln(2) where v is off by as much, and ln(2) where only roundings count. For v < 0, e is
between |v| and 1.4 |v|. If rounding makes 1 + v larger by r, r - ln(1 + v + r) is -ln(1 + v) but for 2 r |v| and for
the logarithm's rounding, a part of itself. So e is off by little more than 2^-15 of itself, and its root by half as
much. A direction is one of 2^32, and off by roundings of less than 2^-20. (A length below 2^-60, of which a number can
be too short for the device, may be 0.)

The fast noise comes from a generator of its own, seeded by the operating system; no seed that a program sets can be it.
On a CPU it is Philox 4x64-10 with a key of 128 bits, from a place among 2^256 that is drawn as well: a search for the
seed costs 2^128. Mersenne Twister, the generator of torch there, keeps 32 bits of a seed, and its words are linear in
its state, so that noise of it would be told from other noise whatever its seed is. On a GPU it is Philox 4x32-10, whose
key has 64 bits: so much a search for it costs there, and no more is claimed. The kernel of `noise_kernel` numbers its
calls from a place among 2^62 that is drawn as well; the generator of torch, which stands in where there is no Triton,
has nothing beside its key.

Its numbers are rounded, and from generators that are statistical, not cryptographic: `IDEALIZATIONS` says so, and a
guarantee repeats it. Processes and copies that go on from one state would have the same noise, and the difference of
what they release would have none: a fork and a copy are seeded anew.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tacit.learn.torch.products import has_triton
from tacit.sampling.seed import draw_system_seed, make_philox

IDEALIZATIONS = (
    "the generator of the device (Philox, keyed by the operating system: 128 bits on a CPU, 64 on a GPU) is random",
    "its normal numbers, which are rounded to 32-bit floating point, are real Gaussian ones",
    "errors of 32-bit dot products stay within 8 deviations, rounding being as good as random",
    "the sum of clipped gradients in 32-bit floating point is exact",
)
PLACES_ARE_ALIKE = "in batches of several passes, a gradient does not depend on where in its pass a unit is"
DRAWS_ARE_RANDOM = "what the model draws itself, such as the masks of dropout, is random"
LENGTH_IS_PUBLIC = "the number of units in the dataset is public"
_BLOCK = 2**17  # pairs that are drawn at a time: they stay in the cache
RARE = 2.0**-18  # of a uniform number between -1/2 and 1/2: nearer to 0 it is drawn from more than one word


class DeviceNoise:
    """Gaussian noise from the device's generator, or from a kernel of our own on GPUs, which is faster."""

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
        if self.device.type == "cuda" and has_triton():
            self._add_by_kernel(sums, scale)
            return
        if self._process != os.getpid():
            self._seed()
        for dtype in {torch.float64 if each.dtype == torch.float64 else torch.float32 for each in sums}:
            alike = [each for each in sums if (each.dtype == torch.float64) == (dtype == torch.float64)]
            sizes = [each.numel() for each in alike]
            drawn = draw_normal(self._draw_words, sum(sizes), dtype, self.device)
            for each, part in zip(alike, drawn.split(sizes), strict=True):
                each.addcmul_(part.reshape(each.shape).to(each.dtype), scale.to(each.dtype))

    def _add_by_kernel(self, sums: Sequence[Tensor], scale: Tensor) -> None:
        from tacit.learn.torch.noise_kernel import add_noise

        if not all(map(_is_plain, sums)):
            drawn = [torch.zeros(each.shape, device=self.device) for each in sums]
            add_noise(drawn, scale, self._state)
            for each, noise in zip(sums, drawn, strict=True):
                each.add_(noise)
            return
        prepared = self._prepared if self._prepared is not None and self._prepared[0] == _places(sums) else None
        add_noise(sums, scale, self._state, None if prepared is None else prepared[1])

    def _draw_words(self, count: int) -> Tensor:
        """Return words of 64 bits."""
        if self.device.type == "cpu":
            return torch.from_numpy(self._host.bit_generator.random_raw(count).view(np.int64))
        words = torch.empty(count, dtype=torch.int64, device=self.device)
        return words.random_(-(2**63), None, generator=self.generator)

    def prepare(self, sums: Sequence[Tensor]) -> None:
        """Make ready to add noise to tensors that stay where they are, by one kernel for all of them."""
        if self.device.type == "cuda" and has_triton() and all(_is_plain(each) for each in sums):
            from tacit.learn.torch.noise_kernel import blocks

            self._prepared = _places(sums), blocks(sums)


def draw_normal(draw_words: Callable[[int], Tensor], count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Standard normal numbers of 32 or 64 bits, from words of 64 bits, as the theorem of this module has it."""
    pairs = -(-count // 2)
    found = torch.empty(2 * pairs, dtype=dtype, device=device)
    for start in range(0, 2 * pairs, 2 * _BLOCK):
        _fill(found[start : start + 2 * _BLOCK].reshape(2, -1), draw_words)
    return found[:count]


def _fill(pairs: Tensor, draw_words: Callable[[int], Tensor]) -> None:
    """Write the first and the second numbers of pairs.

    Numbers of 64 bits take twice as many words: their cells are smaller, and divided from the same `RARE` on.
    """
    count, dtype = pairs.shape[1], pairs.dtype
    words = draw_words(2 * count) if dtype == torch.float64 else draw_words(count).view(torch.int32)
    bits = 8 * words.element_size()
    first, second = words.reshape(2, count)
    place = first.to(dtype).add_(0.5).mul_(2.0**-bits)
    rare = np.flatnonzero((place.abs() < RARE).cpu())
    below = place.floor()  # -1 or 0
    uniform = place - below
    energy = below.add_(uniform).sub_(place).sub_(uniform.log_())  # the rounding of 1 + v is taken off
    for index in rare.tolist():
        energy[index] = _divide_cell(int(first[index]), bits, draw_words)
    length = energy.mul_(2.0).sqrt_()
    angle = second.to(dtype).mul_(math.pi * 2.0 ** (1 - bits))
    for half, direction in zip(pairs, (torch.cos, torch.sin), strict=True):
        direction(angle, out=half).mul_(length)


def _divide_cell(word: int, bits: int, draw_words: Callable[[int], Tensor]) -> float:
    """The e of a word whose cell is one of the nearest to 0, from so many more words that a double tells no more."""
    cell = word if word >= 0 else ~word
    while cell < 2**53:
        cell, bits = (cell << 64) + int(draw_words(1)) % 2**64, bits + 64
    return bits * math.log(2) - math.log(cell) if word >= 0 else -math.log1p(-cell / 2**bits)


def _places(sums: Sequence[Tensor]) -> tuple[int, ...]:
    """Where tensors lie, and how large they are."""
    return tuple(number for each in sums for number in (each.data_ptr(), each.numel()))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.dtype == torch.float32 and tensor.data_ptr() % 16 == 0
