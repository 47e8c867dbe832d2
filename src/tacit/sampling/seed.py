"""Seeds for generators of other libraries, which draw where exact sampling cannot: on a GPU.

It needs no more than the operating system, so that a training machine without the curator's packages has it too.
"""

from __future__ import annotations

import os


def draw_system_seed() -> int:
    """Return a fresh integer of 64 bits, with a sign, from the operating system."""
    return int.from_bytes(os.urandom(8), "little", signed=True)
