"""Tracing: is this person in the study? The published averages of many attributes tell.

>>> rng = np.random.default_rng(0)
>>> study = SimulatedStudy.draw(people=50, attributes=2000, rng=rng)
>>> found = infer_membership(study.members, study.means, study.reference, false_positive_rate=0.01)
>>> others = infer_membership(study.outsiders, study.means, study.reference)
>>> bool(found.is_accused.mean() > 0.95), bool(others.is_accused.mean() < 0.1)
(True, True)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import Number, to_integer, to_rational
from tacit.errors import ParameterError

Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_EDGE = 1e-3  # a frequency is kept this far from 0 and 1: a rare allele proves little


def inner_product_score(targets: Bits, means: Floats, frequencies: Floats) -> Floats:
    """<x - p, m - p>: how much the averages lean toward the person (Dwork, Smith, Steinke, Ullman, Vadhan 2015)."""
    return np.asarray((targets - frequencies) @ (means - frequencies), dtype=np.float64)


def distance_score(targets: Bits, means: Floats, frequencies: Floats) -> Floats:
    """The sum of |x - p| - |x - m|: whether the person is nearer to the study than to everyone (Homer et al. 2008)."""
    # For a bit x and y in [0, 1], |x - y| is y + x (1 - 2 y).
    kept = np.clip(means, 0.0, 1.0)
    return np.asarray((frequencies - kept).sum() + targets @ (2 * (kept - frequencies)), dtype=np.float64)


def likelihood_ratio_score(targets: Bits, means: Floats, frequencies: Floats) -> Floats:
    """The log-likelihood ratio of "drawn from the study" to "drawn from everyone" (Sankararaman et al. 2009)."""
    kept = np.clip(means, _EDGE, 1 - _EDGE)
    ones, zeros = np.log(kept / frequencies), np.log((1 - kept) / (1 - frequencies))
    return np.asarray(zeros.sum() + targets @ (ones - zeros), dtype=np.float64)


STATISTICS: dict[str, Callable[[Bits, Floats, Floats], Floats]] = {
    "inner-product": inner_product_score,
    "distance": distance_score,
    "likelihood": likelihood_ratio_score,
}


@dataclass(frozen=True, eq=False)
class MembershipResult:
    """Which targets are accused of being in the study.

    **Theorem.** Someone who is not in it, drawn as the reference people were, is accused with probability at most
    `false_positive_rate`. Proof: the threshold is the k-th largest score of R reference people that nothing else was
    fitted to, with k = floor(rate (R + 1)). With the outsider they are R + 1 exchangeable scores, and the outsider's is
    above the k-th largest of the others only if it is among the k largest of all: probability at most k/(R + 1).

    Attributes
    ----------
    statistic : str
        The test statistic: "inner-product", "distance" or "likelihood".
    scores : array of float
        The statistic of each target; a larger one speaks for membership.
    threshold : float
        The score above which a target is accused; infinite where the rate is too small for the reference.
    false_positive_rate : float
        The largest probability, in [0, 1], with which an outsider is accused.
    attributes : int
        How many published averages were used.
    reference : array of float
        The scores of the reference people that the threshold is taken from.

    Examples
    --------
    >>> found = MembershipResult("distance", np.array([3.0, 0.5]), 1.0, 0.01, 200, np.array([1.0, -2.0]))
    >>> found.is_accused.tolist(), found.share
    ([True, False], 0.5)
    """

    statistic: str
    scores: Floats
    threshold: float
    false_positive_rate: float
    attributes: int
    reference: Floats  # the scores that the threshold is taken from

    @property
    def is_accused(self) -> Bits:
        """For each target, whether the score is above the threshold."""
        return np.asarray(self.scores > self.threshold)

    @property
    def share(self) -> float:
        """The share of the targets that are accused."""
        return float(self.is_accused.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval of that share; it takes the targets of one study as independent."""
        return clopper_pearson_interval(int(self.is_accused.sum()), len(self.scores))

    @property
    def verdict(self) -> str:
        """ "traced" where significantly more are accused than outsiders would be, else "not traced"."""
        return "traced" if self.interval[0] > self.false_positive_rate else "not traced"

    def rates(self, alarms: Sequence[float]) -> Floats:
        """Return the share of the targets that are accused at each false positive rate.

        Parameters
        ----------
        alarms : sequence of float
            False positive rates, each in [0, 1].

        Returns
        -------
        array of float
            The share of accused targets for each rate.
        """
        ordered = np.sort(self.reference)[::-1]
        edges = [_threshold(ordered, float(alarm)) for alarm in alarms]
        return np.array([float((self.scores > edge).mean()) for edge in edges])

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.verdict}: {int(self.is_accused.sum()):,} of {len(self.scores):,} targets are said to be in the "
            f"study, {self.share:.1%} ({low:.1%} to {high:.1%} at 99 % confidence), by the {self.statistic} test of "
            f"{self.attributes:,} averages; an outsider is accused with at most {self.false_positive_rate:.2%}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts and the verdict as plain values, for JSON, without the scores.

        Returns
        -------
        dict
            The statistic, the share of accused targets with its interval, and the threshold.
        """
        return {
            "attack": "tracing",
            "verdict": self.verdict,
            "statistic": self.statistic,
            "attributes": self.attributes,
            "targets": len(self.scores),
            "accused": int(self.is_accused.sum()),
            "share": self.share,
            "interval": list(self.interval),
            "false_positive_rate": self.false_positive_rate,
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
        }

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, epsilon: float | None = None, delta: float = 0.0
    ) -> None:
        """Plot the share of the targets found against the false positive rate, with the most that epsilon allows.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        epsilon : float, optional
            The privacy loss of the averages, 0 or more; its bound is drawn where it is given.
        delta : float
            The delta of that bound, in [0, 1].
        """
        from tacit.accounting.interpretation import max_true_positive_rate
        from tacit.pictures import open_figure

        alarms = np.linspace(0, 1, 201)
        with open_figure(path, "Tracing", "false positive rate", "targets found", size=(5.5, 5)) as axes:
            axes.plot(alarms, self.rates(list(alarms)), label=f"{self.statistic} test")
            axes.plot([0, 1], [0, 1], ":", color="gray", label="a blind guess")
            if epsilon is not None:
                most = [max_true_positive_rate(epsilon, float(alarm), delta) for alarm in alarms]
                axes.plot(alarms, most, "--", label=f"the most under epsilon {epsilon:g}")


def infer_membership(
    targets: npt.ArrayLike,
    means: npt.ArrayLike,
    reference: npt.ArrayLike,
    *,
    frequencies: npt.ArrayLike | None = None,
    false_positive_rate: Number = 0.01,
    statistic: str = "inner-product",
) -> MembershipResult:
    """Infer which targets are in the study whose averages were published.

    Parameters
    ----------
    targets : array of bits
        A row for each person, a bit for each attribute; a single row is one person.
    means : array of float
        The published average of each attribute, with noise or without.
    reference : array of bits
        Rows of people who are known not to be in the study; they set the threshold.
    frequencies : array of float, optional
        The frequency of each attribute in the population. Without them half of the reference people estimate them and
        the other half set the threshold.
    false_positive_rate : number
        The largest probability, in [0, 1], with which an outsider is accused.
    statistic : str
        "inner-product", "distance" or "likelihood".

    Returns
    -------
    MembershipResult
        The score of each target, and whether it is accused.

    Raises
    ------
    ParameterError
        If the tables do not have a bit for each average, or an argument is out of range.

    Examples
    --------
    >>> study = SimulatedStudy.draw(people=50, attributes=2000, rng=np.random.default_rng(0))
    >>> infer_membership(study.members, study.means, study.reference).verdict
    'traced'
    """
    if statistic not in STATISTICS:
        raise ParameterError(
            "statistic", f"{statistic!r:.40} is none of them", fix=f"choose one of {', '.join(STATISTICS)}"
        )
    alarm = float(to_rational("false_positive_rate", false_positive_rate))
    if not 0 <= alarm <= 1:
        raise ParameterError("false_positive_rate", f"is no share: {alarm}", fix="false_positive_rate=0.01, say")
    published = _numbers("means", means)
    people, others = _bits("targets", targets, len(published)), _bits("reference", reference, len(published))
    if frequencies is None:
        if len(others) < 2:
            raise ParameterError("reference", "has fewer than two people", fix="give more, or the frequencies")
        half = len(others) // 2
        known, others = (others[:half].sum(axis=0) + 0.5) / (half + 1), others[half:]
    else:
        known = _numbers("frequencies", frequencies)
        if known.shape != published.shape:
            raise ParameterError("frequencies", "are not as many as the means", fix="give one for each attribute")
    known = np.clip(known, _EDGE, 1 - _EDGE)
    score = STATISTICS[statistic]
    calm = score(others, published, known)
    threshold = _threshold(np.sort(calm)[::-1], alarm)
    return MembershipResult(statistic, score(people, published, known), threshold, alarm, len(published), calm)


def expected_power(
    attributes: int, people: int, false_positive_rate: float, *, noise: float = 0.0, reference: int = 0
) -> float:
    """Return the share of members that the inner product finds, for frequencies near 1/2 and many attributes.

    **Theorem.** With d attributes of variance v = 1/4 and n people, noise of standard deviation s on each average, and
    frequencies estimated from r people (0: known), an outsider's score has the variance d v^2 (1/n + 1/r + s^2/v), and
    a member's has a mean that is d v/n larger. So the power is Phi(g - z), z the upper quantile of the rate, with

        g = sqrt(d/n) / sqrt(1 + n/r + n s^2/v).

    It is the ratio d/n that counts: each person needs about as many averages as there are people.

    Parameters
    ----------
    attributes : int
        How many averages are published, 1 or more.
    people : int
        How many people are in the study, 1 or more.
    false_positive_rate : float
        The probability, in (0, 1), with which an outsider is accused.
    noise : float
        The standard deviation of the noise on an average, 0 or more.
    reference : int
        How many people the frequencies are estimated from; 0 where they are known.

    Returns
    -------
    float
        The probability that a member is accused.

    Examples
    --------
    >>> round(expected_power(attributes=1000, people=100, false_positive_rate=0.01), 3)
    0.798
    """
    from scipy.stats import norm

    d, n = to_integer("attributes", attributes, least=1), to_integer("people", people, least=1)
    r = to_integer("reference", reference, least=0)
    growth = math.sqrt(d / n) / math.sqrt(1 + (n / r if r else 0) + 4 * n * float(noise) ** 2)
    return float(norm.cdf(growth - norm.isf(float(false_positive_rate))))


@dataclass(frozen=True, eq=False)
class SimulatedStudy:
    """A simulated study: its members, others like them, and people who are known not to be in it.

    Attributes
    ----------
    members, outsiders, reference : array of bool
        A row for each person, a bit for each attribute.
    frequencies : array of float
        The frequency of each attribute in the population, in (0, 1).

    Examples
    --------
    >>> study = SimulatedStudy.draw(people=50, attributes=200, rng=np.random.default_rng(0))
    >>> study.members.shape, len(study.means)
    ((50, 200), 200)
    """

    members: Bits
    outsiders: Bits
    reference: Bits
    frequencies: Floats

    @classmethod
    def draw(
        cls,
        people: int,
        attributes: int,
        rng: np.random.Generator,
        *,
        outsiders: int = 500,
        reference: int = 1000,
        spread: tuple[float, float] = (0.1, 0.9),
    ) -> SimulatedStudy:
        """Draw a study with independent attributes, whose frequencies are uniform in `spread`.

        Parameters
        ----------
        people : int
            How many members the study has, 1 or more.
        attributes : int
            How many bits each person has, 1 or more.
        rng : numpy.random.Generator
            The generator of frequencies and bits.
        outsiders : int
            How many people outside the study are drawn as targets.
        reference : int
            How many people outside the study set the threshold.
        spread : pair of float
            The least and the largest frequency, in [0, 1].

        Returns
        -------
        SimulatedStudy
            The bits of all people, and the frequencies.
        """
        frequencies = rng.uniform(*spread, attributes)
        groups = [rng.random((count, attributes)) < frequencies for count in (people, outsiders, reference)]
        return cls(groups[0], groups[1], groups[2], frequencies)

    @property
    def counts(self) -> list[int]:
        """How many members have each attribute: what a curator releases with noise."""
        return [int(count) for count in self.members.sum(axis=0)]

    @property
    def means(self) -> Floats:
        """The exact averages."""
        return np.asarray(self.members.mean(axis=0))


def _threshold(descending: Floats, alarm: float) -> float:
    """The k-th largest of R scores, k = floor(alarm (R + 1)): infinite where k is 0, and -infinite beyond R."""
    rank = math.floor(to_rational("false_positive_rate", alarm) * (len(descending) + 1))
    if rank == 0:
        return math.inf
    return float(descending[rank - 1]) if rank <= len(descending) else -math.inf


def _numbers(name: str, given: Any) -> Floats:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ParameterError(name, "needs numbers, one for each attribute", fix="give a list of averages") from problem
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise ParameterError(name, "needs finite numbers, one for each attribute", fix="give a list of averages")
    return numbers


def _bits(name: str, given: Any, attributes: int) -> Bits:
    table = np.atleast_2d(np.asarray(given))
    if table.ndim != 2 or table.shape[1] != attributes or not len(table) or not np.isin(table, (0, 1)).all():
        raise ParameterError(
            name, f"needs rows of {attributes:,} bits", fix="a row for each person, 0 or 1 in each place"
        )
    return table.astype(np.bool_)
