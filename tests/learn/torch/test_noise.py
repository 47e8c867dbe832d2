"""The noise of the device on a CPU: how it is seeded, who has the same, that it is Gaussian, and has no end."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.support.forks import in_child, outcome

from tacit.learn.torch import noise

CPU = torch.device("cpu")


def draw(source: noise.DeviceNoise, count: int = 8, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    sums = [torch.zeros(count, dtype=dtype)]
    source.add(sums, 1.0)
    return sums[0]


def draw_seeded(monkeypatch, words: list[int]) -> torch.Tensor:
    given = iter(words)
    monkeypatch.setattr(noise, "draw_system_seed", lambda: next(given))
    return draw(noise.DeviceNoise(CPU))


def test_every_bit_of_the_seed_counts(monkeypatch):
    # A search for the seed costs what its bits cost: each of at least 128 bits must change what is drawn.
    words = [1234567 + n for n in range(8)]
    first = draw_seeded(monkeypatch, words)
    used = 0
    for place, bit in itertools.product(range(8), (0, 31, 32, 62)):
        other = [word ^ (1 << bit) if n == place else word for n, word in enumerate(words)]
        used += not torch.equal(first, draw_seeded(monkeypatch, other))
    assert used >= 2 * 4  # every probed bit of two words of 64 bits
    assert torch.equal(first, draw_seeded(monkeypatch, words))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))])
def test_a_copy_of_it_draws_noise_of_its_own(duplicate):
    # Two releases with the same noise would show the difference of their sums.
    source = noise.DeviceNoise(CPU)
    other = duplicate(source)
    assert not (draw(source) == draw(other)).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_draws_noise_of_its_own():
    source = noise.DeviceNoise(CPU)
    reader, writer = os.pipe()

    def send() -> int:
        return os.write(writer, draw(source).numpy().tobytes()) - 32

    assert outcome(in_child(send)) == 0
    theirs = torch.frombuffer(bytearray(os.read(reader, 4 * 8)), dtype=torch.float32)
    os.close(reader), os.close(writer)
    assert not (draw(source) == theirs).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_gaussian(monkeypatch, dtype):
    # Of n = 400,000 numbers, those beyond each limit are binomial: 6.2 deviations off has probability below 1e-9, and a
    # deviation of the noise that is off by a tenth is at least 17 off at the first three limits.
    seeds = itertools.count(7)
    monkeypatch.setattr(noise, "draw_system_seed", lambda: next(seeds))
    n = 400_000
    drawn = draw(noise.DeviceNoise(CPU), n, dtype)

    def farthest(numbers: torch.Tensor) -> float:
        far = []
        for limit in (1.0, 2.0, 3.0):
            p = float(torch.special.erfc(torch.tensor(limit / 2**0.5)))
            far.append(abs(int((numbers.abs() > limit).sum()) - n * p) / (n * p * (1 - p)) ** 0.5)
        return max(far)

    assert farthest(drawn) < 6.2 < farthest(drawn * 1.1)
    assert abs(float(drawn.mean())) < 6.2 / n**0.5
    assert abs(float((drawn[1:] * drawn[:-1]).mean())) < 6.2 / n**0.5


def test_calls_and_tensors_have_noise_of_their_own():
    source = noise.DeviceNoise(CPU)
    sums = [torch.zeros(3, 4), torch.zeros(12)]
    source.add(sums, 1.0)
    again = draw(source, 12)
    assert not (sums[0].flatten() == sums[1]).any() and not (sums[1] == again).any()


def draw_from(words: list[int], count: int, dtype: torch.dtype) -> torch.Tensor:
    """Normal numbers from these words of 64 bits."""
    left = iter(words)
    raw = SimpleNamespace(random_raw=lambda size: np.array([next(left) for _ in range(size)], dtype=np.uint64))
    source = noise.DeviceNoise(CPU)
    source._host = SimpleNamespace(bit_generator=raw)
    return draw(source, count, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("times", [0, 1, 3])
def test_no_value_is_too_far_off_to_occur(dtype, times):
    # Words of zeros are ever smaller uniform numbers: here 2^53 cells of 2^-bits, and the direction is that of 0. What
    # ends at 6.66 deviations, as 31 bits do, gives outputs there that a neighbor cannot have.
    bits = (32 if dtype == torch.float32 else 64) + 64 * (times + 1)
    found = draw_from([0] * (times + (1 if dtype == torch.float32 else 2)) + [2**53], 1, dtype)
    assert float(found) == pytest.approx(math.sqrt(2 * (bits - 53) * math.log(2)), rel=1e-6)
    assert float(found) > (7.7, 12.1, 0, 18)[times]


def test_none_is_too_near_to_zero_either():
    # The other end: 1 - 2^-43, whose logarithm is about -2^-43, from 2^53 cells of 32 and 64 bits.
    found = draw_from([2**32 - 1, 2**53], 1, torch.float32)
    assert float(found) == pytest.approx(2.0**-21, rel=1e-6, abs=0)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 32), (torch.float64, 64)])
def test_a_pair_is_a_real_one_that_was_hardly_moved(dtype, bits):
    # A word stands for all uniform numbers of its cell: the lengths at both ends of it are 2^-15 apart at most.
    last = 2 ** (bits - 1) - 1
    few = 2 ** (bits - 18)
    for cell in (few, few + 1, 3 * few, last // 3, last - 1, last):
        places = [cell * 2.0**-bits, (cell + 1) * 2.0**-bits]
        for word, energies in (
            (cell, [-math.log(place) for place in places]),
            (2**bits - 1 - cell, [-math.log1p(-place) for place in places]),
        ):
            words = [word] if dtype == torch.float32 else [word, 0]
            for at, turn in enumerate((0, 2 ** (bits - 2))):  # a quarter of the circle
                words = [word + (turn << 32)] if dtype == torch.float32 else [word, turn]
                found = float(draw_from(words, 2, dtype)[at])
                for energy in energies:
                    assert found == pytest.approx(math.sqrt(2 * energy), rel=2.0**-15)
