"""An audit of one training run: canaries by coin tosses, guesses from the model, and a lower bound.

>>> def noisy_sum(rows, rng):
...     return rows.sum(axis=0) + rng.normal(scale=0.5, size=rows.shape[1])
>>> found = audit_training_run(noisy_sum, np.eye(500), lambda total, canaries: canaries @ total, Claim.epsilon(1, 1e-5))
>>> found.verdict
'refuted'
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.audit.claim import Claim, Reals
from tacit.audit.inputs import copy_deeply
from tacit.audit.one_run import one_run_lower_bound, one_run_p_value
from tacit.errors import ParameterError

Coins = npt.NDArray[np.bool_]

MIN_CANARIES = 10
SHARES = (1, 2, 4, 8, 16, 32)
"""Of the canaries, one in so many is guessed, where the number of guesses is not given."""
_FEW = 10  # guesses that can tell anything
_CURVE = 120  # values of a plot


@dataclass(frozen=True)
class CanaryGuesses:
    """How many canaries were guessed, how many guesses were right, and what that proves.

    Attributes
    ----------
    guesses : int
        How many canaries were guessed: half of them as in, by the largest scores, and half as out, by the least.
    right : int
        How many of the guesses were right.
    p_value : float
        The most probable that so many right guesses are, under the claim.
    lower : float
        The value of the claim's parameter that they refute, at this count's share of 1 - confidence.

    Examples
    --------
    >>> CanaryGuesses(guesses=100, right=90, p_value=6e-5, lower=1.66).share
    0.9
    """

    guesses: int
    right: int
    p_value: float
    lower: float

    @property
    def share(self) -> float:
        """The share of right guesses."""
        return self.right / self.guesses


@dataclass(frozen=True)
class TrainingAudit:
    """The result of an audit of one training run: with the stated confidence, the parameter is at least `lower`.

    Attributes
    ----------
    claim : Claim
        The guarantee that was audited.
    confidence : float
        The probability, in (0, 1), with which `lower` is a true bound.
    counts : tuple of CanaryGuesses
        One for each number of guesses that was tried, in the order in which they were asked for.
    scores : array of float
        The score of each canary: a larger one speaks for "in".
    is_included : array of bool
        The coin of each canary: whether it was in the run.

    Examples
    --------
    >>> coins = np.arange(200) % 2 == 0
    >>> found = audit_canary_scores(coins.astype(float), coins, Claim.epsilon(1))
    >>> found.verdict, found.best.guesses, found.best.right
    ('refuted', 200, 200)
    """

    claim: Claim
    confidence: float
    counts: tuple[CanaryGuesses, ...]
    scores: Reals = field(repr=False, compare=False)
    is_included: Coins = field(repr=False, compare=False)

    @property
    def canaries(self) -> int:
        """How many canaries there were."""
        return len(self.is_included)

    @property
    def best(self) -> CanaryGuesses:
        """The number of guesses that proves most."""
        return max(self.counts, key=lambda count: (count.lower, -count.p_value))

    @property
    def lower(self) -> float:
        """A lower bound on the claim's parameter: epsilon, at the claim's delta, mu or rho."""
        return self.best.lower

    @property
    def p_value(self) -> float:
        """The p-value of the claim, corrected for the numbers of guesses that were tried."""
        return min(1.0, len(self.counts) * min(count.p_value for count in self.counts))

    @property
    def most_provable(self) -> float:
        """The bound that would have come out if all guesses had been right: no leak of this run shows as more."""
        miss = (1 - self.confidence) / len(self.counts)
        return max(one_run_lower_bound(self.canaries, c.guesses, c.guesses, self.claim, miss) for c in self.counts)

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is wrong, at this confidence."""
        return self.lower > self.claim.value

    @property
    def verdict(self) -> str:
        """That in words."""
        return "refuted" if self.is_refuted else "not refuted"

    def __str__(self) -> str:
        best, many = self.best, len(self.counts)
        delta = f" at delta = {self.claim.delta:g}" if self.claim.delta else ""
        tried = "" if many == 1 else f", corrected for {many} numbers of guesses"
        lines = [
            f"{self.claim}: {self.verdict} by one training run.",
            f"With confidence {100 * self.confidence:g} %, {self.claim.name} is at least {self.lower:.4g}{delta}: "
            f"{best.right:,} of {best.guesses:,} guesses about {self.canaries:,} canaries are right "
            f"(p = {self.p_value:.2g} under the claim{tried}).",
        ]
        if not self.is_refuted:
            lines.append("Not refuted is not proved: other canaries, scores or more of them may tell more.")
        if self.most_provable <= self.claim.value:
            most = f"all guesses right would show {self.most_provable:.4g}"
            lines.append(f"No result of this audit could have refuted the claim: {most}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from tacit.notebook_html import render_list, render_paragraph, render_table

        rows = [
            [f"{c.guesses:,}", f"{c.right:,}", f"{c.share:.1%}", f"{c.p_value:.2g}", f"{c.lower:.4g}"]
            for c in self.counts
        ]
        heads = ["guesses", "right", "share", "p-value of the claim", f"{self.claim.name} at least"]
        first, *rest = str(self).split("\n")
        return render_paragraph(first, strong=True) + render_table(heads, rows, [False] * 5) + render_list(rest)

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON, without scores and coins.

        Returns
        -------
        dict
            The claim, the verdict, the bound with its confidence, the p-value, and the counts of guesses.
        """
        return {
            "claim": {"name": self.claim.name, "value": self.claim.value, "delta": self.claim.delta},
            "verdict": self.verdict,
            "refuted": self.is_refuted,
            "lower": self.lower,
            "confidence": self.confidence,
            "p_value": self.p_value,
            "canaries": self.canaries,
            "included": int(self.is_included.sum()),
            "most_provable": self.most_provable,
            "counts": [
                {"guesses": c.guesses, "right": c.right, "p_value": c.p_value, "lower": c.lower} for c in self.counts
            ],
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Plot the scores of canaries that were in and out, and the p-value of each value of the parameter.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows it.
        """
        from tacit.pictures import TEXT_COLOR, open_figure

        best, many, miss = self.best, len(self.counts), 1 - self.confidence
        ordered = np.sort(self.scores)
        half = best.guesses // 2
        end = 1.15 * max(self.lower, self.claim.value, 0.5)
        values = np.linspace(0, end, _CURVE)
        chances = [
            min(1.0, many * one_run_p_value(self.canaries, best.guesses, best.right, self.claim, value=float(each)))
            for each in values
        ]
        title = f"Scores of {self.canaries:,} canaries"
        with open_figure(path, title, "score", "canaries", size=(10.5, 4.2), panels=2) as (left, right):
            edges = np.histogram_bin_edges(self.scores, bins=min(40, max(10, self.canaries // 20)))
            left.hist(self.scores[self.is_included], bins=edges, alpha=0.6, label="in")
            left.hist(self.scores[~self.is_included], bins=edges, alpha=0.6, label="out")
            if half < self.canaries - half:
                left.axvline(float(ordered[half - 1]), color=TEXT_COLOR, ls=":", label="guessed beyond these")
                left.axvline(float(ordered[-half]), color=TEXT_COLOR, ls=":")
            else:
                left.axvline(float(np.median(ordered)), color=TEXT_COLOR, ls=":", label="guessed in above this")
            right.semilogy(values, np.maximum(chances, 1e-9), label=f"{best.right:,} of {best.guesses:,} right")
            right.axhline(miss, color=TEXT_COLOR, ls=":", label=f"1 - confidence = {miss:.2g}")
            right.axvline(self.claim.value, color="gray", ls="--", label=f"claimed: {self.claim}")
            right.set(xlabel=self.claim.name, ylabel="p-value")
            right.set_title(f"{self.claim.name} is at least {self.lower:.3g}")
            right.legend(loc="lower right")
            left.set_ylim(0, 1.35 * left.get_ylim()[1])  # the legend stands above


def audit_training_run(
    train: Callable[..., object],
    canaries: object,
    score: Callable[..., object],
    claim: Claim,
    *,
    rows: object = None,
    substitutes: object = None,
    guesses: int | Sequence[int] | None = None,
    confidence: Number = 0.95,
    seed: int | None = 0,
) -> TrainingAudit:
    """Audit a trainer by one run of it: a fair coin for each canary says whether it is in, and the model tells which.

    **Theorem** (Steinke, Nasr, Jagielski 2023; Mahloujifar, Melis, Chaudhuri 2024). If the trainer keeps the claim with
    some value of its parameter for a row more or less, or for a row replaced where `substitutes` are given, `lower` is
    above that value with probability at most 1 - confidence: whatever the rows, the canaries and the score. The coins
    are independent of all but the run, and each number of guesses is fixed before the scores are seen; where several
    are tried, each has an equal share of 1 - confidence (the union bound).

    **Proof idea.** Given the output, the odds of each coin are nearly even, whatever the others are: so right guesses
    are at most as likely as those of coins that differ from even by as much as the claim allows. `one_run_p_value` and
    the two bounds that it takes the smaller of, in `tacit.audit.one_run`, have the proofs.

    A score that tells nothing only makes the bound small. So a small bound is no evidence of privacy.

    The trainer has a deep copy of its rows, so that what it writes into them does not reach the score: the coins reach
    the score through what is released alone. A trainer that raises an exception releases that it failed, which no score
    sees: such a run is refused, and it would be wrong to try other seeds until one does not fail.

    Parameters
    ----------
    train : callable
        `train(rows)` gives a model, or whatever else is released. Where `rows` and `canaries` are tuples it is called
        with their parts, as in `train(features, labels)`. If it has a parameter `rng` it is given a generator.
    canaries : array, list, frame or tuple of these
        The rows that a coin puts in or leaves out, 10 or more; a few hundred or more for a useful bound. The best are
        far from all other rows and from each other, and have the largest gradients that clipping lets through.
    score : callable
        `score(model, canaries)` gives a number for each canary, larger for "in": minus its loss, say, or the product of
        its gradient with the weights. Called as `score(model, features, labels)` for a tuple. It must not know the
        coins.
    claim : Claim
        The guarantee to refute. Where the noise is Gaussian, mu says more than one (epsilon, delta) of it, and is
        refuted by fewer canaries.
    rows : array, list, frame or tuple of these, optional
        The rows that are in whatever the coins say, of the same kind as `canaries`.
    substitutes : array, list, frame or tuple of these, optional
        As many rows as canaries: each is in where its canary is not. This audits a claim about replaced rows.
    guesses : int or sequence of int, optional
        How many canaries to guess: half as in, half as out, the others not at all. By default all of them, a half, a
        quarter, down to one in 32, corrected for the search.
    confidence : number
        The probability, in (0, 1), with which the bound holds.
    seed : int, optional
        Seed of the coins and of `rng`, 0 or more. With None both come from the operating system, so that no trainer can
        know them.

    Returns
    -------
    TrainingAudit
        The lower bound, the p-value of the claim, and the counts of guesses.

    Raises
    ------
    ParameterError
        If an argument is out of range, rows cannot be copied, the trainer raises an exception, or a score is missing or
        not finite.

    See Also
    --------
    audit_canary_scores : The same for a run that was made elsewhere.

    Examples
    --------
    >>> def noisy_sum(rows, rng):  # mu = 2, so epsilon is 10.9 at delta 1e-5
    ...     return rows.sum(axis=0) + rng.normal(scale=0.5, size=rows.shape[1])
    >>> def project(total, canaries):
    ...     return canaries @ total
    >>> found = audit_training_run(noisy_sum, np.eye(500), project, Claim.epsilon(1, 1e-5))
    >>> found.verdict, found.lower > 1
    ('refuted', True)
    """
    for name, function in (("train", train), ("score", score)):
        if not callable(function):
            what = f"cannot be called: it is of type {type(function).__name__}"
            raise ParameterError(name, what, fix=f"give a function: {name}=lambda *arguments: ...")
    parts = _split_parts("canaries", canaries)
    count = len(parts[0])
    beside = None if rows is None else _split_parts("rows", rows, like=parts)
    instead = None if substitutes is None else _split_parts("substitutes", substitutes, like=parts)
    if instead is not None and len(instead[0]) != count:
        what = f"are {len(instead[0]):,}, and there are {count:,} canaries"
        raise ParameterError("substitutes", what, fix="give one substitute for each canary")
    chosen = _check_choices(claim, count, guesses, confidence)
    streams = np.random.SeedSequence(None if seed is None else to_integer("seed", seed, least=0)).spawn(2)
    coins = np.random.default_rng(streams[0]).integers(0, 2, count).astype(bool)
    data = [
        copy_deeply(
            _assemble(
                part, coins, None if beside is None else beside[place], None if instead is None else instead[place]
            )
        )
        for place, part in enumerate(parts)
    ]
    extra = {"rng": np.random.default_rng(streams[1])} if _takes_generator(train) else {}
    try:
        model = train(*data, **extra)
    except Exception as problem:
        what = f"raised {type(problem).__name__}, so this run cannot be audited: that it failed may tell of a row"
        fix = "catch the exception in train, return what is released then (None, say), and let score give 0 for it"
        raise ParameterError("train", what, fix=fix) from problem
    return _judge_scores(_check_scores(score(model, *parts), count), coins, claim, *chosen)


def audit_canary_scores(
    scores: npt.ArrayLike,
    is_included: npt.ArrayLike,
    claim: Claim,
    *,
    guesses: int | Sequence[int] | None = None,
    confidence: Number = 0.95,
) -> TrainingAudit:
    """Audit a training run that was made elsewhere, from the scores of its canaries and the coins that included them.

    **Theorem.** As for `audit_training_run`, if each canary was included by a fair coin of its own, independent of all
    else, and the scores depend on the coins through the run's output alone.

    Parameters
    ----------
    scores : array of float
        The score of each canary, larger for "in"; 10 or more.
    is_included : array of bool
        Whether each canary was in the run, by a fair coin.
    claim : Claim
        The guarantee to refute. Where the noise is Gaussian, mu says more than one (epsilon, delta) of it, and is
        refuted by fewer canaries.
    guesses : int or sequence of int, optional
        How many canaries to guess, chosen before anyone looked at the scores; by default as in `audit_training_run`.
    confidence : number
        The probability, in (0, 1), with which the bound holds.

    Returns
    -------
    TrainingAudit
        The lower bound, the p-value of the claim, and the counts of guesses.

    Raises
    ------
    ParameterError
        If an argument is out of range, or a score is not finite.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> coins = rng.random(1000) < 0.5
    >>> found = audit_canary_scores(coins + rng.normal(size=1000), coins, Claim.epsilon(4, 1e-5))
    >>> found.verdict, 0 < found.lower < 4
    ('not refuted', True)
    """
    coins = np.asarray(is_included)
    if coins.dtype != np.bool_ or coins.ndim != 1:
        raise ParameterError(
            "is_included", "needs one boolean for each canary", fix="is_included=rng.integers(0, 2, 1000).astype(bool)"
        )
    chosen = _check_choices(claim, len(coins), guesses, confidence)
    return _judge_scores(_check_scores(scores, len(coins)), coins, claim, *chosen)


def _judge_scores(scores: Reals, coins: Coins, claim: Claim, guesses: tuple[int, ...], sure: float) -> TrainingAudit:
    """Guess the coins of the largest and of the least scores, and say what the right guesses prove.

    Equal scores are in the order of the canaries, which the coins do not depend on.
    """
    order = np.argsort(scores, kind="stable")
    ordered, count, miss = coins[order], len(coins), (1 - sure) / len(guesses)
    found = []
    for number in guesses:
        lows = number // 2
        right = int(np.count_nonzero(~ordered[:lows])) + int(np.count_nonzero(ordered[count - (number - lows) :]))
        bound = one_run_lower_bound(count, number, right, claim, miss)
        found.append(CanaryGuesses(number, right, one_run_p_value(count, number, right, claim), bound))
    return TrainingAudit(claim, sure, tuple(found), scores, coins)


def _check_choices(
    claim: Claim, count: int, guesses: int | Sequence[int] | None, confidence: Number
) -> tuple[tuple[int, ...], float]:
    """Return the numbers of guesses and the confidence, before any training."""
    if not isinstance(claim, Claim):
        what = f"needs a Claim, got {type(claim).__name__}"
        raise ParameterError("claim", what, fix='Claim.epsilon(1) or Claim.parse("epsilon=1")')
    if count < MIN_CANARIES:
        what = f"{count} are too few for any verdict"
        raise ParameterError("canaries", what, fix=f"take {MIN_CANARIES} or more, 1,000 say")
    sure = float(to_rational("confidence", confidence))
    if not 0 < sure < 1:
        what = f"must be between 0 and 1, both excluded, got {confidence}"
        raise ParameterError("confidence", what, fix="confidence=0.95")
    if guesses is None:
        return tuple(count // share for share in SHARES if count // share >= _FEW), sure
    numbers: list[Any] = list(guesses) if np.iterable(guesses) else [guesses]
    found = tuple(to_integer("guesses", number, least=1) for number in numbers)
    if not found or max(found) > count or len(set(found)) < len(found):
        what = f"needs one number or several different ones, each at most the {count:,} canaries"
        raise ParameterError("guesses", what, fix=f"guesses={count}")
    return found, sure


def _check_scores(scores: Any, count: int) -> Reals:
    try:
        found = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (count,) or not np.isfinite(found).all():
        what = f"must be {count:,} finite numbers, one for each canary"
        raise ParameterError("score", what, fix="score=lambda model, canaries: canaries @ model")
    return found


def _split_parts(name: str, data: Any, like: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
    """Return the parts of a tuple, or the one part of anything else, each with as many rows."""
    parts = data if isinstance(data, tuple) else (data,)
    if not parts or any(not hasattr(part, "__len__") or isinstance(part, str | bytes) for part in parts):
        what = "needs rows: an array, a list, a frame or a tuple of these"
        raise ParameterError(name, what, fix=f"{name}=(features, labels)")
    if len({len(part) for part in parts}) > 1:
        raise ParameterError(name, "has parts of different lengths", fix=f"{name}=(features, labels)")
    if like is not None and [type(part) for part in like] != [type(part) for part in parts]:
        raise ParameterError(name, "is not of the kind that the canaries are", fix=f"{name}=canaries, for a start")
    return tuple(parts)


def _assemble(part: Any, coins: Coins, beside: Any, instead: Any) -> Any:
    """Return the rows that are always in, then the canaries that the coins include, or each one or its substitute."""
    count = len(coins)
    places = np.flatnonzero(coins) if instead is None else np.where(coins, 0, count) + np.arange(count)
    pool: Any
    if isinstance(part, list):
        pool = part + list(instead or [])
        return [*(beside or []), *(pool[place] for place in places)]
    if hasattr(part, "iloc"):
        import pandas

        pool = part if instead is None else pandas.concat([part, instead])
        return pandas.concat([*([] if beside is None else [beside]), pool.iloc[places]], ignore_index=True)
    pool = np.asarray(part) if instead is None else np.concatenate([np.asarray(part), np.asarray(instead)])
    return pool[places] if beside is None else np.concatenate([np.asarray(beside), pool[places]])


def _takes_generator(train: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(train).parameters
    except (TypeError, ValueError):  # a function that is not written in Python tells nothing
        return False
