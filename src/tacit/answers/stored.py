"""Released integers as bytes, for the ledger to keep. What is stored is what is shown, now and on every repeat."""

from __future__ import annotations

import json


def pack(released: list[list[int]]) -> bytes:
    """The released vectors as canonical bytes; integers of any size."""
    return json.dumps(released, separators=(",", ":")).encode()


def unpack(stored: bytes) -> list[list[int]]:
    """The vectors that `pack` wrote."""
    released: list[list[int]] = json.loads(stored)
    return released
