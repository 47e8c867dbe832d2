"""The operating system's randomness, where a caller brings no bits of their own."""

from __future__ import annotations

from functools import cache

from tacit.sampling.bits import Bits, SystemBits


def bits_or_system(bits: Bits | None) -> Bits:
    """Return the bits that were given, or the process's own source of fresh cryptographic ones."""
    return _source() if bits is None else bits


@cache
def _source() -> SystemBits:
    return SystemBits()
