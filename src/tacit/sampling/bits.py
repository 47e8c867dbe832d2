"""Where random bits come from.

`SystemBits` is the one that protects people: AES-256 in counter mode, keyed from the operating system, its key
replaced at every refill so that no past bit can be recovered from memory, and keyed anew in a forked child. The stream
is taken from AES-GCM, which encrypts by counter mode: where processors work on wide words, it is twice as fast in
OpenSSL as counter mode alone.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Words = npt.NDArray[np.uint64]

_KEY = 32
_REFILL = 1 << 12  # words of one refill: 32 KiB
_NONCE = bytes(12)  # constant: each key makes one stream only
_PIECE = bytes(1 << 16)  # zeros to encrypt, a piece at a time, so that it stays near the processor


class Bits(Protocol):
    """A source of independent fair bits."""

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits."""


class ReplayBits:
    """The same bits for the same seed. For tests, and for pictures of noise that protect nobody."""

    def __init__(self, seed: bytes) -> None:
        key = hashlib.sha256(seed).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """The next `count` words of the stream."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


class SystemBits:
    """Fresh cryptographic bits, safe across threads and forks."""

    _pool: Words
    _used: int

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rekey()
        _alive.add(self)

    def words(self, count: int) -> Words:
        """The next `count` words, none of which is ever given out again."""
        with self._lock:
            if self._process != os.getpid():
                self._rekey()
            if count > _REFILL:
                return self._made(count)
            if count > len(self._pool) - self._used:
                self._pool = self._made(_REFILL)
                self._used = 0
            part = self._pool[self._used : self._used + count]
            taken = part.copy()
            part.fill(0)
            self._used += count
            return taken

    def _rekey(self) -> None:
        """Start over from the operating system's randomness."""
        self._process = os.getpid()
        self._key = os.urandom(_KEY)
        self._pool = np.empty(0, dtype=np.uint64)
        self._used = 0

    def _made(self, count: int) -> Words:
        """New words; the stream's first bytes become the next key, and the old key is forgotten."""
        stream = Cipher(algorithms.AES(self._key), modes.GCM(_NONCE)).encryptor()
        self._key = stream.update(bytes(_KEY))
        made: Words = np.empty(count, dtype=np.uint64)
        room = made.view(np.uint8).data
        for start in range(0, len(room), len(_PIECE)):
            part = room[start : start + len(_PIECE)]
            stream.update_into(_PIECE[: len(part)], part)
        return made

    def _after_fork(self) -> None:
        """In a forked child: a new lock (the old one may be held by a thread that is gone) and a new key."""
        self._lock = threading.Lock()
        self._rekey()


_alive: weakref.WeakSet[SystemBits] = weakref.WeakSet()


def _forked() -> None:
    for source in list(_alive):
        source._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
