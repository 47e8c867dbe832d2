"""Events learned on outputs that are not counted: thresholds of scores, the most promising first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.audit.bound import ErrorAllocation, choose_allocation, choose_weight, lower_confidence_bound
from tacit.audit.claim import Claim, Reals
from tacit.audit.outputs import CollectedOutputs, OutputSample
from tacit.audit.scores import MAX_TABULATED, Score, learn_scores

Flags = npt.NDArray[np.bool_]

_TINY = 3  # different outputs
_LEAST_SHARE = 0.02  # of the samples, to learn from
_LEAST_LEARNED_FROM, _MOST_LOOKED_AT = 500, 2000
_THRESHOLDS = 50  # from either end of a score
_CELLS = 6
_CAUTIOUS, _BOLD = 2.5, 0.5  # standard deviations of the outputs looked at, by which a forecast is lowered
_SOLID = 0.5  # a cautious forecast of this share of the bold one is to be relied on
_ALLOTTED = ((1.0,), (0.85, 0.15))  # shares of the probability of a wrong bound
_GAIN = 1.1  # what the bolder event must promise, as a multiple of what the first one does
_PLAINER = 0.98  # a family must promise this much more than a simpler one
_ALIKE = 0.1  # two events that differ in this share of their outputs or less are one


@dataclass(frozen=True)
class ThresholdEvent:
    """A score that is at least `threshold`, expected to be likelier under one (or under other)."""

    score: Score
    threshold: float
    under_one: bool
    cautious: float  # forecasts of the bound
    bold: float
    significance: float  # of the difference, in standard deviations
    likelier: float  # the counts to expect
    rarer: float

    def holds(self, outputs: OutputSample) -> Flags:
        """Which outputs are in it."""
        return self.score.of(outputs) >= self.threshold


@dataclass(frozen=True)
class EventTest:
    """An event with its part of the probability of a wrong bound, and how that is spent: all fixed before counting."""

    event: ThresholdEvent
    miss: float
    weight: float
    spending: ErrorAllocation


def training_size(outputs: CollectedOutputs, samples: int) -> int:
    """How many outputs a side to learn from: few where there are few different ones, more for vectors.

    **Theorem.** It is a stopping time: whether it is n depends on the first n outputs of both sides alone. Proof: no
    size is below that of the least share, and only so many outputs are looked at.
    """
    first = min(_size(samples, _LEAST_SHARE), _MOST_LOOKED_AT)
    one, other = outputs.first(first).lay_out(first)
    kinds = len(np.unique(np.concatenate([one.keys(), other.keys()])))
    if kinds <= _TINY:
        return _size(samples, _LEAST_SHARE)
    return _size(samples, 0.1 if kinds <= MAX_TABULATED else 0.125 if one.is_scalar else 0.3)


def _size(samples: int, share: float) -> int:
    return min(max(int(samples * share), min(samples // 5, _LEAST_LEARNED_FROM)), 100_000)


def choose_events(
    one: OutputSample, other: OutputSample, claim: Claim, trials: int, miss: float, rng: np.random.Generator
) -> list[EventTest]:
    """One or two events to count in `trials` outputs a side: a cautious choice, and a bold one that may prove more.

    The first half of the outputs teaches scores. On the second half (on all, if it was not learned) the bound of every
    threshold is forecast: its width is that of the outputs to be counted, and some deviations of those looked at, since
    the best of many looks better than it is. Where no forecast is solid, the most significant difference is chosen. The
    bold choice, with less doubt, may be a rarer and more telling event; it gets a small share of the error.
    """
    middle = len(one) // 2
    fresh = [side.part(middle, len(side)) for side in (one, other)]
    found: list[ThresholdEvent] = []
    ranks: dict[str, float] = {}  # of families, in the order of simplicity
    for score in learn_scores(one.part(0, middle), other.part(0, middle), rng):
        ranks.setdefault(score.family, _PLAINER ** len(ranks))
        sides = fresh if score.learned else [one, other]
        found += _forecast_thresholds(score, sides[0], sides[1], claim, trials, miss)
    first = max(found, key=lambda event: event.cautious * ranks[event.score.family])
    if first.cautious <= _SOLID * first.bold:
        first = max(found, key=lambda event: event.significance * ranks[event.score.family])
    second = max(found, key=lambda event: event.bold * ranks[event.score.family])
    flags = [np.concatenate([event.holds(side) for side in fresh]) for event in (first, second)]
    worth = second.bold > _GAIN * first.bold and not _nearly_equal(flags[0], flags[1])
    events = [first, second] if worth else [first]
    return [
        EventTest(
            event,
            share * miss,
            float(choose_weight(claim, event.likelier, event.rarer, trials)),
            choose_allocation(claim, event.likelier, event.rarer, trials, share * miss),
        )
        for share, event in zip(_ALLOTTED[len(events) - 1], events, strict=True)
    ]


def _forecast_thresholds(
    score: Score, one: OutputSample, other: OutputSample, claim: Claim, trials: int, miss: float
) -> Iterator[ThresholdEvent]:
    """The thresholds of a score with the largest forecasts, and with the most significant difference."""
    from scipy.special import ndtr, ndtri

    first, second = np.sort(score.of(one)), np.sort(score.of(other))
    values = _values(np.sort(np.concatenate([first, second])))
    x, y = (len(side) - np.searchsorted(side, values, side="left") for side in (first, second))
    likelier, rarer, size = np.maximum(x, y), np.minimum(x, y), len(one)
    width = -float(ndtri(miss)) * np.sqrt(size / trials)
    cautious, bold = (
        lower_confidence_bound(claim, likelier, rarer, size, float(ndtr(-doubt - width)), cells=_CELLS)
        for doubt in (_CAUTIOUS, _BOLD)
    )
    significance = (likelier - rarer) / np.sqrt(likelier * (1 - likelier / size) + rarer * (1 - rarer / size) + 1)
    for place in {int(np.argmax(rank)) for rank in (cautious, bold, significance)}:
        yield ThresholdEvent(
            score,
            float(values[place]),
            bool(x[place] >= y[place]),
            float(cautious[place]),
            float(bold[place]),
            float(significance[place]),
            float(likelier[place] * trials / size),
            float(rarer[place] * trials / size),
        )


def _values(ascending: Reals) -> Reals:
    """Thresholds to try: every value, or some at ranks that are dense toward both ends."""
    values = np.unique(ascending)
    if len(values) > 2 * _THRESHOLDS:
        ranks = np.geomspace(1, len(ascending) / 2, _THRESHOLDS).astype(np.int64)
        values = np.unique(ascending[np.concatenate([ranks - 1, len(ascending) - ranks])])
    return values


def _nearly_equal(one: Flags, other: Flags) -> bool:
    size = min(int(one.sum()), int((~one).sum()), int(other.sum()), int((~other).sum()))
    return min(int((one != other).sum()), int((one == other).sum())) <= _ALIKE * size
