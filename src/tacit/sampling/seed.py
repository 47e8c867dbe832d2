"""Seeds for generators of other libraries, which draw where exact sampling cannot: on a GPU.

It needs no more than the operating system, so that a training machine without the curator's packages has it too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator


def draw_system_seed() -> int:
    """Return a fresh integer of 64 bits, with a sign, from the operating system."""
    return int.from_bytes(os.urandom(8), "little", signed=True)


def make_philox(words: Sequence[int]) -> Generator:
    """Return Philox 4x64-10 by six words: its key of 128 bits, and from which of 2^256 places it goes on."""
    import numpy as np

    key, counter = (np.array([word % 2**64 for word in part], dtype=np.uint64) for part in (words[:2], words[2:]))
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
