"""A search for the pair of neighbors on which a mechanism is at its worst.

>>> [pair.name for pair in candidate_pairs("median", Neighbors.REPLACE, lower=0, upper=10, rows=5)][:2]
['half at each end, one moved up', 'half at each end, one moved down']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.audit.claim import Claim
from tacit.audit.outputs import Progress
from tacit.audit.statistical import MIN_SAMPLES, AuditResult, audit
from tacit.errors import ParameterError
from tacit.privacy.unit import Neighbors

QUERY_SHAPES = ("count", "sum", "mean", "median", "top-k")
_RANKING = 0.25  # the share of the samples that ranks the pairs
_EVEN = 0.5  # the confidence of a rank: as often too high as too low
_TIED = 5  # values of a top-k that are all as frequent

Rows = list[Any]


@dataclass(frozen=True)
class NeighboringLists:
    """Two neighboring lists of numbers.

    Attributes
    ----------
    name : str
        The pair in words, such as "all at the lower end, one moved up".
    one, other : list of numbers
        The lists: they differ in one row that is replaced, or that one of them has more.

    Examples
    --------
    >>> NeighboringLists("no row, and one at the upper end", [], [10]).other
    [10]
    """

    name: str
    one: Rows
    other: Rows


def audit_worst_pair(
    mechanism: Callable[..., object],
    shape: str,
    claim: Claim,
    *,
    neighbors: Neighbors,
    lower: Number,
    upper: Number,
    rows: int = 20,
    samples: int = 100_000,
    confidence: Number = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditResult:
    """Audit a mechanism on lists of numbers in [lower, upper] at the worst of the classic pairs for its shape.

    **Theorem.** The finding has the confidence of an audit of the one pair, however many were tried.

    **Proof.** A part of the samples ranks the pairs. Given the ranking, the audit of the first pair draws fresh ones.

    Parameters
    ----------
    mechanism : callable
        Maps a list of numbers to an output, as in `audit`.
    shape : str
        What the mechanism computes: "count", "sum", "mean", "median" or "top-k". It chooses the pairs that are tried.
    claim : Claim
        The guarantee to refute.
    neighbors : Neighbors
        The relation that the claim is for: REPLACE keeps the number of rows, ADD_REMOVE changes it by one.
    lower, upper : number
        The declared range of the values, `lower` below `upper`. Where both are integers, so are the rows.
    rows : int
        The length of the lists, 1 or more.
    samples : int
        All outputs that are drawn on each side; a quarter of them, shared by the pairs, ranks these.
    confidence : float
        The probability, below 1, with which the lower bound holds.
    seed : int
        Seed of all draws, 0 or more: the same seed gives the same result.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The audit of the worst pair; its attribute `pair` names the pair.

    Raises
    ------
    ParameterError
        If there are too few samples to rank the pairs, or an argument is out of range.

    Examples
    --------
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=0.25, size=size)
    >>> found = audit_worst_pair(
    ...     noisy_count, "count", Claim.epsilon(1), neighbors=Neighbors.ADD_REMOVE, lower=0, upper=1, samples=8000
    ... )
    >>> found.verdict  # the scale is for epsilon = 4
    'refuted'
    """
    found = list(candidate_pairs(shape, neighbors, lower=lower, upper=upper, rows=rows))
    total, start = to_integer("samples", samples), to_integer("seed", seed, least=0)
    each = int(total * _RANKING) // len(found)
    if each < MIN_SAMPLES:
        least = int(np.ceil(MIN_SAMPLES * len(found) / _RANKING))
        raise ParameterError("samples", f"{total} are too few to rank {len(found)} pairs", fix=f"take {least} or more")
    seeds = np.random.SeedSequence(start).generate_state(len(found) + 1).tolist()
    say = progress or (lambda share: None)

    def look(
        pair: NeighboringLists, count: int, sure: Number, number: int, told: Progress | None = None
    ) -> AuditResult:
        try:
            finding = audit(
                mechanism, pair.one, pair.other, claim, samples=count, confidence=sure, seed=number, progress=told
            )
        except ParameterError as problem:
            if problem.name != "mechanism":
                raise
            reason = problem.what.removeprefix("mechanism: ")
            raise ParameterError("mechanism", f"on the pair: {pair.name}: {reason}", fix=problem.fix) from problem
        return replace(finding, pair=pair.name)

    ranks: list[float] = []
    for pair, number in zip(found, seeds, strict=False):
        ranks.append(look(pair, each, _EVEN, number).lower)
        say(_RANKING * len(ranks) / len(found))
    worst, rest = found[int(np.argmax(ranks))], total - each * len(found)
    finding = look(worst, rest, confidence, seeds[-1], lambda share: say(_RANKING + (1 - _RANKING) * share))
    return replace(finding, samples=total)


def candidate_pairs(
    shape: str, neighbors: Neighbors, *, lower: Number, upper: Number, rows: int
) -> Iterator[NeighboringLists]:
    """Yield the classic worst pairs of a shape: ends of the range, halves, ties, one row and none.

    Where a row is replaced the number of rows is public, so all lists have `rows` of them.

    Parameters
    ----------
    shape : str
        What is computed from the lists: "count", "sum", "mean", "median" or "top-k".
    neighbors : Neighbors
        Whether the lists of a pair differ by one row replaced, or by one row more.
    lower, upper : number
        The ends of the values' range, `lower` below `upper`; many rows lie at an end.
    rows : int
        The length of the lists, 1 or more.

    Yields
    ------
    NeighboringLists
        Two lists and the name of the pair.

    Raises
    ------
    ParameterError
        If the shape is unknown, or the range is empty.

    Examples
    --------
    >>> next(candidate_pairs("sum", Neighbors.REPLACE, lower=0, upper=10, rows=3)).other
    [0, 0, 10]
    """
    if shape not in QUERY_SHAPES:
        raise ParameterError("shape", f"there is no shape {shape!r:.40}", fix=f"one of {', '.join(QUERY_SHAPES)}")
    if not isinstance(neighbors, Neighbors):
        raise ParameterError(
            "neighbors", f"{neighbors!r:.40} is not a neighbor relation", fix="Neighbors.ADD_REMOVE or REPLACE"
        )
    count = to_integer("rows", rows, least=1)
    low, high = _ends(lower, upper)
    moves = _replace_pairs if neighbors is Neighbors.REPLACE else _add_pairs
    for name, base, values in _bases(shape, low, high, count):
        yield from moves(name, base, values)
    if neighbors is Neighbors.ADD_REMOVE:
        yield NeighboringLists("no row, and one at the upper end", [], [high])
        yield NeighboringLists("no row, and one at the lower end", [], [low])


def _bases(shape: str, low: Any, high: Any, rows: int) -> Iterator[tuple[str, Rows, tuple[Any, Any]]]:
    """Lists of rows with their names, and the two values between which one row moves: from, to."""
    halves = [low] * (rows - rows // 2) + [high] * (rows // 2)
    if shape == "top-k":
        ties = max((count for count in range(2, _TIED + 1) if rows % count == 0), default=2)
        tied = _spread(low, high, ties)
        yield "all values tied", sorted((tied * rows)[:rows]), (low, high)
    if shape in {"median", "top-k"}:
        yield "half at each end", halves, (low, high)
    yield "all at the lower end", [low] * rows, (low, high)
    yield "all at the upper end", [high] * rows, (high, low)
    if shape in {"sum", "mean", "count"}:
        yield "half at each end", halves, (low, high)
    if shape in {"mean", "median"}:
        yield "spread evenly", _spread(low, high, rows), (low, high)


def _replace_pairs(name: str, base: Rows, values: tuple[Any, Any]) -> Iterator[NeighboringLists]:
    """One row replaced: of the first value by the second, and where there is one, of the second by the first."""
    ways = [values, values[::-1]] if values[1] in base else [values]
    for old, new in ways:
        rest = list(base)
        rest.remove(old)
        yield NeighboringLists(f"{name}, one moved {'up' if new >= old else 'down'}", base, sorted([*rest, new]))


def _add_pairs(name: str, base: Rows, values: tuple[Any, Any]) -> Iterator[NeighboringLists]:
    """One row added, of either value."""
    for value in values:
        place = "at the upper end" if value == max(values) else "at the lower end"
        yield NeighboringLists(f"{name}, one added {place}", base, sorted([*base, value]))


def _spread(low: Any, high: Any, count: int) -> Rows:
    """Evenly spread values from one end to the other; integers where the ends are."""
    steps = [low + (high - low) * Fraction(place, max(count - 1, 1)) for place in range(count)]
    return [round(step) if isinstance(low, int) else float(step) for step in steps]


def _ends(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The ends of the range as plain integers, or as floats."""
    low, high = to_rational("lower", lower), to_rational("upper", upper)
    if low >= high:
        raise ParameterError("upper", f"must be above lower = {lower}, got {upper}", fix="lower=0, upper=1, say")
    if all(isinstance(end, Integral) for end in (lower, upper)):
        return int(low), int(high)
    return float(low), float(high)
