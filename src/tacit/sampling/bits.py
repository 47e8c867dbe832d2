"""Where random bits come from.

`SystemBits` is the one that protects people: AES-256 in counter mode, keyed from the operating system, its key
replaced at every refill so that no past bit can be recovered from memory, and keyed anew in a forked child. The stream
is taken from AES-GCM, which encrypts by counter mode: where processors work on wide words, it is twice as fast in
OpenSSL as counter mode alone.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import weakref
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tacit.arithmetic import to_integer

Words = npt.NDArray[np.uint64]

_KEY = 32
_REFILL = 1 << 12  # words of one refill: 32 KiB
_NONCE = bytes(12)  # constant: each key makes one stream only
_PIECE = bytes(1 << 16)  # zeros to encrypt, a piece at a time, so that it stays near the processor


class Bits(Protocol):
    """A source of independent fair bits."""

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits."""


class Uncopyable:
    """What `copy` and `pickle` refuse, because randomness that is used once would be used twice."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled: both would use the same randomness; make another one")


class ReplayBits(Uncopyable):
    """The same bits for the same seed. For tests, and for pictures of noise that protect nobody."""

    def __init__(self, seed: bytes) -> None:
        key = hashlib.sha256(seed).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """The next `count` words of the stream."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


class SystemBits(Uncopyable):
    """Fresh cryptographic bits, safe across threads, forks, signal handlers and interrupts.

    **Theorem.** Whatever exception is raised at whatever point, by a signal or by lack of memory, and whatever a signal
    handler or another thread draws in between: no word is given out twice, and no word that was wiped or never made is
    given out.

    **Proof.** Words come from streams. A stream is in the list `_idle`, or belongs to one call of `words`: `list.pop`
    takes it out in one step, and nothing else refers to it until the call puts it back, as its last act. So calls that
    use one stream do so one after the other, and each of them from its beginning to its end: a call that is interrupted
    leaves its stream behind, for nobody, with all that was half done. A signal handler that draws, or a second thread,
    finds the list without that stream and takes or makes another; nobody waits, so nobody waits for ever. Within a
    stream, words are counted before they are copied, and wiped after it. Different streams have different keys.

    A call that is in progress when the process forks, by a signal handler, goes on in both: in the child it finds
    another process number than its stream was made with, and begins again with a new one. A new stream asks for the
    process number before it asks for randomness, so no key is made before a fork and believed to be made after it.

    **Theorem** (`refresh`). What is drawn after a refresh is from a key that hashes the one before with new randomness
    of the operating system: to foretell it, both must be known. Streams of before, also those that are in use at that
    moment, are put back to a list that nobody reads.
    """

    def __init__(self) -> None:
        self._root = os.urandom(_KEY)
        self._idle: list[_Stream] = []
        _alive.add(self)

    def words(self, count: int) -> Words:
        """The next `count` words, none of which is ever given out again."""
        wanted = to_integer("count", count, least=0)
        while True:
            idle = self._idle  # this one list, should `refresh` replace it meanwhile
            try:
                stream = idle.pop()
            except IndexError:
                stream = self._new_stream()
            taken = stream.take(wanted)
            if stream.process == os.getpid():
                idle.append(stream)
                return taken

    def refresh(self) -> None:
        """Mix new randomness of the operating system into all that is drawn from now on.

        Before each release it makes two copies of one machine, in which keys and words are copied too, draw different
        noise.
        """
        self._idle = []

    def _new_stream(self) -> _Stream:
        """A stream of its own key: a hash of the last one made here, the operating system's randomness, and the time.

        The time is no secret. It tells copies of a machine apart whose operating system repeats its randomness too.
        """
        process = os.getpid()
        moment = f"{process} {next(_numbers)} {time.time_ns()} {time.perf_counter_ns()}"
        mixed = hashlib.sha512(self._root + os.urandom(_KEY) + moment.encode()).digest()
        self._root = mixed[:_KEY]
        return _Stream(process, mixed[_KEY:])


class _Stream:
    """Words under one key after another, for one call at a time; see `SystemBits`."""

    def __init__(self, process: int, key: bytes) -> None:
        self.process = process
        self._key = key
        self._pool: Words = np.zeros(0, dtype=np.uint64)
        self._used = 0

    def take(self, count: int) -> Words:
        """The next `count` words: counted, then copied, then wiped."""
        if count > _REFILL:
            return self._make_words(count)
        if count > len(self._pool) - self._used:
            self._pool = self._make_words(_REFILL)
            self._used = 0
        start = self._used
        self._used += count
        part = self._pool[start : self._used]
        taken = part.copy()
        part.fill(0)
        return taken

    def _make_words(self, count: int) -> Words:
        """New words; the stream's first bytes become the next key, and the old key is forgotten."""
        stream = Cipher(algorithms.AES(self._key), modes.GCM(_NONCE)).encryptor()
        self._key = stream.update(bytes(_KEY))
        made: Words = np.empty(count, dtype=np.uint64)
        room = made.view(np.uint8).data
        for start in range(0, len(room), len(_PIECE)):
            part = room[start : start + len(_PIECE)]
            stream.update_into(_PIECE[: len(part)], part)
        return made


def refresh_bits(bits: Bits) -> Bits:
    """The source itself, refreshed where it can be: replayed bits stay what they are."""
    refresh = getattr(bits, "refresh", None)
    if refresh is not None:
        refresh()
    return bits


_numbers = itertools.count()  # of streams: no two of a process are made of the same moment
_alive: weakref.WeakSet[SystemBits] = weakref.WeakSet()


def _forget_streams() -> None:
    """In a forked child: let go of the streams, which are the parent's."""
    for source in list(_alive):
        source.refresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_streams)
