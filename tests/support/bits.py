"""Bits that a test chooses."""

from __future__ import annotations

from typing import NoReturn

import numpy as np


class Ones:
    """All bits are one: the uniform is next to 1, and every draw of noise is 0."""

    def words(self, count: int) -> np.ndarray:
        """So many words of ones."""
        return np.full(count, 2**64 - 1, dtype=np.uint64)


class Script:
    """Hands out chosen words, then fails."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        """The next words of those left."""
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more bits were asked for than the draw should need"
        return np.array(taken, dtype=np.uint64)


class Same:
    """The same word always; fails after ten thousand of them, where a draw would go on for ever."""

    def __init__(self, word: int) -> None:
        self.word, self.left = word, 10_000

    def words(self, count: int) -> np.ndarray:
        """So many copies of the word."""
        self.left -= count
        assert self.left >= 0, "the draw does not end"
        return np.full(count, self.word, dtype=np.uint64)


class Stopped(KeyboardInterrupt):
    """What `Stopping` raises, and nothing else."""


class Stopping:
    """Bits that are interrupted when they are first drawn."""

    def words(self, count: int) -> NoReturn:
        """Interrupt the draw."""
        raise Stopped
