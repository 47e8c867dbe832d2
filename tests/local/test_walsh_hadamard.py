"""The Walsh-Hadamard transform is its definition."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.local import HadamardResponse, OptimizedLocalHashing
from tacit.local.walsh_hadamard import walsh_hadamard
from tacit.sampling.bits import ReplayBits


@pytest.mark.parametrize("bits", range(11))
def test_the_transform_is_the_signed_sum(bits):
    # Lengths below, at and above the 64 places that are taken on their own.
    counts = np.random.default_rng(bits).integers(-1000, 1000, 1 << bits)
    places = np.arange(1 << bits)
    signs = 1 - 2 * (np.bitwise_count(places[:, None] & places) & 1).astype(np.int64)
    kept = counts.copy()
    assert walsh_hadamard(counts).tolist() == (signs @ counts).tolist()
    assert (counts == kept).all()


def test_twice_is_the_length_times_the_counts_and_large_ones_are_exact():
    counts = np.random.default_rng(1).integers(0, 2**40, 2**12)
    assert (walsh_hadamard(walsh_hadamard(counts)) == counts * 2**12).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", [OptimizedLocalHashing(2**17, 6), HadamardResponse(2**17, 1)], ids=lambda one: one.kind
)
def test_few_reports_over_many_values_are_counted_as_many_are(protocol):
    # 20 reports touch few of 2^18 places, 70,000 many; what they support is the same in one batch or in two.
    reports = protocol.encode(np.arange(70_000), ReplayBits(b"few and many"))
    few, many = protocol.support(reports[:20]), protocol.support(reports[20:])
    assert (few + many == protocol.support(reports)).all()
    assert few.max() <= 20
