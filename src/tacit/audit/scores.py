"""Scores learned from outputs of both sides: the higher, the likelier the output is to come from `one`.

An event is a score above a threshold. What is learned here can only make a bound larger or smaller, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Reals
from tacit.audit.learners import fit_logistic, fit_nearest_neighbors
from tacit.audit.outputs import OutputSample, hash_columns

Keys = npt.NDArray[np.uint64]

MAX_TABULATED = 16  # distinct outputs: a table of them says all there is to say
_MOST_COLUMNS = 16
_MOST_NEAR = 6  # columns: in more, no output is near
_LISTED = 4


@dataclass(frozen=True)
class Score:
    """A number for each output. `words` tells the event "at least this" (or its complement)."""

    family: str
    of: Callable[[OutputSample], Reals]
    words: Callable[[float, bool], str]
    learned: bool = True  # from the outputs, which are then no witnesses of how good it is


@dataclass(frozen=True)
class _Table:
    """The log of the likelihood ratio of each value seen, with one output added to either side."""

    keys: Keys
    ratios: Reals
    first: npt.NDArray[np.int64]  # the row, of both sides one after the other, where a value was first seen

    @classmethod
    def of(cls, one: Keys, other: Keys) -> _Table:
        keys, first, place = np.unique(np.concatenate([one, other]), return_index=True, return_inverse=True)
        counts = [np.bincount(rows, minlength=len(keys)) for rows in np.split(place, [len(one)])]
        return cls(keys, np.log((counts[0] + 1.0) / (counts[1] + 1.0)), first)

    def look_up(self, keys: Keys) -> Reals:
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.ratios[place], 0.0)


def learn_scores(one: OutputSample, other: OutputSample, rng: np.random.Generator) -> Iterator[Score]:
    """All scores worth trying, in the order of their simplicity."""
    if one.numbers.shape[1] > _MOST_COLUMNS:
        columns = _most_different_columns(one, other)
        for score in learn_scores(one.keep(columns), other.keep(columns), rng):
            yield Score(score.family, _select_columns(score.of, columns), score.words, score.learned)
        return
    table = _Table.of(one.keys(), other.keys())
    kinds, numbers = len(table.keys), one.numbers.shape[1]
    if kinds <= _LISTED:
        yield _exact(table, one, other)
        return
    if numbers:
        yield from _categories(one, other)
    yield from _raw(one)
    if kinds <= (len(one) + len(other)) / 2:
        yield _exact(table, one, other)
    if kinds <= MAX_TABULATED:
        return
    yield _histogram(one, other)
    if numbers:
        yield _low_bits(one, other)
        yield logistic_score(one, other, rng)
    if 1 < numbers <= _MOST_NEAR:
        yield _rank_order(one, other)
        yield nearest_score(one, other, rng)


def _most_different_columns(one: OutputSample, other: OutputSample) -> list[int]:
    """The columns of numbers whose histograms differ most, in the order in which they come."""
    differences = []
    for column in range(one.numbers.shape[1]):
        sides = one.numbers[:, column], other.numbers[:, column]
        edges = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, 17)[1:-1], method="nearest"))
        x, y = (np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1) for side in sides)
        differences.append(float(((x - y) ** 2 / np.maximum(x + y, 1)).sum()) - len(edges))
    return sorted(np.argsort(differences)[-_MOST_COLUMNS:].tolist())


def _select_columns(of: Callable[[OutputSample], Reals], columns: list[int]) -> Callable[[OutputSample], Reals]:
    return lambda outputs: of(outputs.keep(columns))


def _exact(table: _Table, one: OutputSample, other: OutputSample) -> Score:
    """Exact values, however close to one another: a float Laplace has some that are possible on one side only."""

    def words(threshold: float, inside: bool) -> str:
        unseen = (threshold <= 0) == inside  # a value that was not seen has the score 0
        rows = table.first[(table.ratios >= threshold) == (inside != unseen)]
        if not len(rows):
            return "any output" if unseen else "no output that was seen"
        if len(rows) > _LISTED:
            return _ratio_words("the value of output", threshold, inside)
        shown = sorted(one.words(row) if row < len(one) else other.words(row - len(one)) for row in rows)
        if len(shown) == 1:
            return f"output {'!=' if unseen else '='} {shown[0]}"
        return f"output {'not in' if unseen else 'in'} {{{', '.join(shown)}}}"

    # A table of a few values has learned next to nothing.
    return Score("values", lambda outputs: table.look_up(outputs.keys()), words, learned=len(table.keys) > _LISTED)


def _categories(one: OutputSample, other: OutputSample) -> Iterator[Score]:
    """What an output is, where it is not always a number: NaN, None, an exception, or another form."""
    for column, labels in enumerate(one.labels):
        if len(labels) <= MAX_TABULATED:
            table = _Table.of(*(side.codes[:, column].astype(np.uint64) for side in (one, other)))
            found = dict(zip(table.keys.tolist(), table.ratios.tolist(), strict=True))
            ratios = [found.get(code, 0.0) for code in range(len(labels))]
            words = _category_words(one.category_name(column), labels, ratios)
            yield Score("categories", _category(table, column), words, learned=len(labels) > _LISTED)


def _category(table: _Table, column: int) -> Callable[[OutputSample], Reals]:
    return lambda outputs: table.look_up(outputs.codes[:, column].astype(np.uint64))


def _category_words(name: str, labels: list[object], ratios: list[float]) -> Callable[[float, bool], str]:
    def words(threshold: float, inside: bool) -> str:
        unseen = (threshold <= 0) == inside  # a label that was not seen has the score 0
        chosen = [
            label for label, ratio in zip(labels, ratios, strict=True) if (ratio >= threshold) == (inside != unseen)
        ]
        if not 0 < len(chosen) <= _LISTED:
            return _ratio_words(f"what {name} is", threshold, inside)
        return f"{name} is {'not ' if unseen else ''}{' or '.join(f'{label!r:.40}' for label in chosen)}"

    return words


def _raw(one: OutputSample) -> Iterator[Score]:
    """A coordinate as it is; of vectors also the sum and the extremes."""
    width = one.numbers.shape[1]
    for column in range(width):
        yield Score("threshold", _column(column), _threshold_words(one.name(column)), learned=False)
    if width > 1:
        summaries: dict[str, Callable[[Reals], Reals]] = {
            "the sum of output": lambda rows: _finite(rows).sum(axis=1),
            "the largest of output": lambda rows: rows.max(axis=1),
            "the smallest of output": lambda rows: rows.min(axis=1),
        }
        for name, summary in summaries.items():
            yield Score("threshold", _make_scores(summary), _threshold_words(name), learned=False)


def _histogram(one: OutputSample, other: OutputSample) -> Score:
    """The log of the likelihood ratio in bins of equal counts, added up over columns as if they were independent."""
    width, edges, tables = one.numbers.shape[1], [], []
    bins = int(np.clip(np.sqrt(len(one)) / 4, 8, 64))
    for column in range(width):
        both = np.concatenate([one.numbers[:, column], other.numbers[:, column]])
        edges.append(np.unique(np.quantile(both, np.linspace(0, 1, bins + 1)[1:-1], method="nearest")))
        sides = (np.searchsorted(edges[-1], side.numbers[:, column], side="right") for side in (one, other))
        tables.append(_Table.of(*(side.astype(np.uint64) for side in sides)))
    for column in range(one.codes.shape[1]):
        tables.append(_Table.of(*(side.codes[:, column].astype(np.uint64) for side in (one, other))))

    def of(outputs: OutputSample) -> Reals:
        total = np.zeros(len(outputs))
        for place, table in enumerate(tables):
            if place < width:
                keys = np.searchsorted(edges[place], outputs.numbers[:, place], side="right").astype(np.uint64)
            else:
                keys = outputs.codes[:, place - width].astype(np.uint64)
            total += table.look_up(keys)
        return total

    def words(threshold: float, inside: bool) -> str:
        if width == 1 and not one.codes.shape[1]:
            ratios = np.zeros(len(edges[0]) + 1)
            ratios[tables[0].keys.astype(np.int64)] = tables[0].ratios
            pieces = _pieces(edges[0], (ratios >= threshold) == inside)
            if 0 < len(pieces) <= _LISTED:
                return " or ".join(pieces)
        return _ratio_words("the histogram of output", threshold, inside)

    return Score("histogram", of, words)


def _pieces(edges: Reals, chosen: npt.NDArray[np.bool_]) -> list[str]:
    """A union of bins in words: bin i is [edges[i - 1], edges[i])."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    found = []
    for start, stop in zip(change[::2], change[1::2], strict=True):
        low = f"{edges[start - 1]:.6g} <= " if start else ""
        high = f" < {edges[stop - 1]:.6g}" if stop <= len(edges) else ""
        found.append(f"{low}output{high}" if high else f"output >= {edges[start - 1]:.6g}" if start else "any output")
    return found


def _low_bits(one: OutputSample, other: OutputSample) -> Score:
    """The size of a number and its last set bit: the rounding of a sum tells what was added to."""
    width = one.numbers.shape[1]
    tables = [_Table.of(*(bit_positions(side.numbers[:, column]) for side in (one, other))) for column in range(width)]

    def of(outputs: OutputSample) -> Reals:
        found = [table.look_up(bit_positions(outputs.numbers[:, place])) for place, table in enumerate(tables)]
        total: Reals = np.sum(found, axis=0)
        return total

    return Score("low bits", of, lambda threshold, inside: _ratio_words("the last bit of output", threshold, inside))


def bit_positions(values: Reals) -> Keys:
    """The exponents of a number's first and last set bits, as one key: x is a multiple of 2^last and of no more."""
    usable = np.isfinite(values) & (values != 0)
    fraction, first = np.frexp(np.where(usable, np.abs(values), 1.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    last = first - 53 + np.frexp((whole & -whole).astype(np.float64))[1]
    keys = (first.astype(np.int64) + 2048) * 8192 + last.astype(np.int64) + 4096
    return np.where(usable, keys, np.where(values == 0, 0, 1)).astype(np.uint64)


def _rank_order(one: OutputSample, other: OutputSample) -> Score:
    """The order of a vector's coordinates, and which are equal."""
    table = _Table.of(_sort_outputs(one), _sort_outputs(other))
    return Score(
        "order",
        lambda outputs: table.look_up(_sort_outputs(outputs)),
        lambda threshold, inside: _ratio_words("the order of the coordinates of output", threshold, inside),
    )


def _sort_outputs(outputs: OutputSample) -> Keys:
    rows = outputs.numbers
    ranks = [(rows < rows[:, [column]]).sum(axis=1).astype(np.uint64) + np.uint64(1) for column in range(rows.shape[1])]
    return hash_columns(ranks)


def logistic_score(one: OutputSample, other: OutputSample, rng: np.random.Generator) -> Score:
    """Logistic regression on the numbers, their sizes, squares and products."""
    predict = fit_logistic(one.numbers, other.numbers, rng)
    return Score(
        "logistic",
        lambda outputs: predict(outputs.numbers),
        lambda threshold, inside: _ratio_words("the logistic regression of output", threshold, inside),
    )


def nearest_score(one: OutputSample, other: OutputSample, rng: np.random.Generator) -> Score:
    """The sides of the nearest outputs that were seen."""
    predict = fit_nearest_neighbors(one.numbers, other.numbers, rng)
    return Score(
        "nearest",
        lambda outputs: predict(outputs.numbers),
        lambda threshold, inside: _ratio_words("the neighborhood of output", threshold, inside),
    )


def _column(column: int) -> Callable[[OutputSample], Reals]:
    return lambda outputs: outputs.numbers[:, column]


def _make_scores(summary: Callable[[Reals], Reals]) -> Callable[[OutputSample], Reals]:
    return lambda outputs: summary(outputs.numbers)


def _finite(rows: Reals) -> Reals:
    return np.clip(rows, -1e300, 1e300)


def _threshold_words(name: str) -> Callable[[float, bool], str]:
    return lambda threshold, inside: f"{name} {'>=' if inside else '<'} {threshold:.6g}"


def _ratio_words(name: str, threshold: float, inside: bool) -> str:
    return (
        f"{name} is {'at least' if inside else 'less than'} e^{threshold:.3g} times as likely under one as under other"
    )
