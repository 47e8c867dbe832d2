"""Exponential weights over integers, without a list of them: P(x) proportional to exp(factor u(x)), exactly.

u is linear on each of a few pieces, of which the outermost may be infinite.

**How.** A `Piece` has `size` points, near, near + step, near + 2 step and so on, and the score top - drop k at the
k-th, with drop >= 0. With q = exp(-factor drop) its weight is exp(factor top) (1 - q^size)/(1 - q), or
exp(factor top) size where drop = 0, or exp(factor top)/(1 - q) where it is infinite. One uniform U chooses the piece:
the least i with U W < w_0 + ... + w_i, decided by interval arithmetic, with more bits of U until it is certain.

In an infinite piece k is geometric, P(k) proportional to q^k. In a finite one it is the remainder of a geometric number
by `size`: P(j) = sum over i of (1 - q) q^(j + i size), proportional to q^j. Where drop = 0 it is uniform.

**Timing residual.** The work depends on the number of pieces, and seldom on more bits of U.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import to_interval
from tacit.errors import ParameterError
from tacit.sampling import geometric
from tacit.sampling.bernoulli import draw_exp
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import draw_until_decided, uniform_interval
from tacit.sampling.uniform import draw_below

if TYPE_CHECKING:
    from flint import arb

FARTHEST = 2**512 - 1
"""Where the ends of a concave score lie that are not declared: the most that a declared one may be."""


@dataclass(frozen=True)
class Piece:
    """The points near + step k for k = 0, ..., size - 1, without an end where size is None; scores top - drop k."""

    near: int
    step: int  # 1 or -1
    size: int | None
    top: int
    drop: int


def draw_point(pieces: Sequence[Piece], factor: Fraction, bits: Bits) -> int:
    """One point, by the weight of its score."""
    piece = pieces[_choose_piece(pieces, factor, bits)] if len(pieces) > 1 else pieces[0]
    if piece.drop:
        place = geometric.draw(1 / (factor * piece.drop), bits)
        place = place if piece.size is None else place % piece.size
    else:
        assert piece.size is not None
        place = draw_below(piece.size, bits)
    return piece.near + piece.step * place


def weigh_pieces(pieces: Sequence[Piece], factor: Fraction, best: int) -> list[arb]:
    """The weight of each piece, where a score of `best` weighs one, as intervals at the working precision."""
    return [_weigh(piece, to_interval(factor), best) for piece in pieces]


def _weigh(piece: Piece, factor: arb, best: int) -> arb:
    first = (factor * (piece.top - best)).exp()
    if not piece.drop:
        assert piece.size is not None
        return first * piece.size
    # expm1 keeps its digits where factor drop is tiny
    ratio = -factor * piece.drop
    whole = -ratio.expm1()
    return first / whole if piece.size is None else first * -(ratio * piece.size).expm1() / whole


def _choose_piece(pieces: Sequence[Piece], factor: Fraction, bits: Bits) -> int:
    best = max(piece.top for piece in pieces)
    last = len(pieces) - 1
    # the scores and sizes are known to this many bits, and so have to be the exponents
    more = 64 + max(abs(best - piece.top).bit_length() for piece in pieces) + factor.numerator.bit_length()

    def decide(word: int, known: int) -> int | None:
        sums = weigh_pieces(pieces, factor, best)
        for place in range(last):
            sums[place + 1] += sums[place]
        low, high = (end * sums[-1] for end in uniform_interval(word, known))
        first = bisect_left(range(last), True, key=lambda place: not low >= sums[place])
        return first if first == last or high <= sums[first] else None

    return draw_until_decided(bits, decide, more)


def draw_concave(
    score: Callable[[int], int], start: int, factor: Fraction, bits: Bits, lower: int | None, upper: int | None
) -> int:
    """One integer between the ends, by the weight of a concave score.

    An end that is None lies at FARTHEST, or at -FARTHEST. So the search ends whatever the score is, and no error
    depends on how large its numbers are or on where it falls. A limit on the search itself would be one that some
    scores exceed and their neighbors do not.

    **Theorem.** Let m have the best score, and let b > m be the first point whose score is at least ceil(1/factor)
    below it, and a < m the last such point. u is at most u(m) between a and b, at most u(b) - (u(b - 1) - u(b)) (x - b)
    from b on, as differences of a concave u never rise, and likewise to the left. This bound is linear on three pieces.
    A point x drawn by its weight and kept with probability exp(-factor (bound(x) - u(x))) has probability proportional
    to exp(factor u(x)).

    Of all draws more than 1/(e + 4) = 0.148 are kept. Between a and b a point is short of u(m) by less than 1/factor,
    and so is kept with probability above 1/e. From b on the bound falls by at least 1/(factor (b - m)) with each step,
    and begins 1/factor below u(m): it weighs at most (b - m + 1)/e, in units of exp(factor u(m)). Both sides weigh at
    most (b - a + 2)/e, which is at most 4/e times the b - a - 1 between a and b.
    """
    low, high = -FARTHEST if lower is None else lower, FARTHEST if upper is None else upper
    best = _find_best(score, start, low, high)
    top = score(best)
    gap = -(-factor.denominator // factor.numerator)
    ends = {}
    pieces = []
    for step, limit in ((1, high), (-1, low)):
        far = _first_below(score, best, step, limit, top - gap)
        ends[step] = limit if far is None else far - step
        if far is not None:
            pieces.append(Piece(far, step, abs(limit - far) + 1, score(far), score(far - step) - score(far)))
    pieces.append(Piece(ends[-1], 1, ends[1] - ends[-1] + 1, top, 0))
    while True:
        point = draw_point(pieces, factor, bits)
        piece = next((each for each in pieces[:-1] if each.step * (point - each.near) >= 0), pieces[-1])
        short = piece.top - piece.drop * abs(point - piece.near) - score(point)
        if short < 0:
            raise ParameterError("score", "is not concave", fix="give pieces of it in place of a function")
        if draw_exp(factor * short, bits):
            return point


def _find_best(score: Callable[[int], int], start: int, lower: int, upper: int) -> int:
    """The point from which on, away from the start, a concave score no longer rises."""
    for step, limit in ((1, upper), (-1, lower)):

        def is_over(distance: int, step: int = step, limit: int = limit) -> bool:
            point = start + step * distance
            return step * (limit - point) <= 0 or score(point + step) <= score(point)

        if not is_over(0):
            return start + step * _first(is_over)
    return start


def _first_below(score: Callable[[int], int], best: int, step: int, limit: int, level: int) -> int | None:
    """The first point from the best on that scores at most `level`; None where the limit comes before it."""
    if score(limit) > level:
        return None

    def is_low(distance: int) -> bool:
        point = best + step * distance
        return step * (limit - point) <= 0 or score(point) <= level

    return best + step * _first(is_low)


def _first(is_true: Callable[[int], bool]) -> int:
    """The least distance from 1 on for which something is true, that stays true: by doubling, then by halving.

    Distances are integers of any size, which `bisect` does not take.
    """
    short, enough = 0, 1
    while not is_true(enough):
        short, enough = enough, 2 * enough
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if is_true(middle) else (middle, enough)
    return enough
