"""A uniform real number U in (0, 1), known by its first bits, and by more of them when they do not settle a question.

Every exact distribution ends here: the machine decides from the first word where it can, and what it cannot decide is
asked of interval arithmetic, with 64 more bits of U each time, until the answer is the same for every U that begins
with them. The bits already drawn are kept, so what is decided is a function of one U, and the distribution is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tacit.arithmetic import working_precision
from tacit.sampling.bits import Bits

if TYPE_CHECKING:
    from flint import arb

Found = TypeVar("Found")


def refine_until_decided(
    word: int, known: int, bits: Bits, decide: Callable[[int, int], Found | None], more: int = 0
) -> Found:
    """What `draw_until_decided` says of every U in [word, word + 1] / 2^known, as soon as it says anything.

    It is asked with a working precision of twice the known bits and `more`.
    """
    while True:
        with working_precision(2 * known + 64 + more):
            found = decide(word, known)
        if found is not None:
            return found
        word, known = word << 64 | int(bits.words(1)[0]), known + 64


def draw_until_decided(bits: Bits, decide: Callable[[int, int], Found | None], more: int = 0) -> Found:
    """The same for a fresh U."""
    return refine_until_decided(int(bits.words(1)[0]), 64, bits, decide, more)


def is_below(word: int, known: int, bits: Bits, edge: Callable[[], arb]) -> bool:
    """Whether U < edge, for the U that begins with these bits; the edge is an interval at the working precision."""
    return refine_until_decided(word, known, bits, lambda word, known: _is_below(word, known, edge()))


def uniform_interval(word: int, known: int) -> tuple[arb, arb]:
    """The least and the largest U that begins with these bits."""
    from flint import arb

    unit = arb(2) ** -known
    return arb(word) * unit, arb(word + 1) * unit


def _is_below(word: int, known: int, edge: arb) -> bool | None:
    low, high = uniform_interval(word, known)
    return True if high <= edge else False if low >= edge else None
