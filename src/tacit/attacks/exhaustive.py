"""Reconstruction by trying every candidate: what bounded noise on all subset counts reveals.

>>> import numpy as np
>>> said = [0.5, 0.5, 1.0, 1.0, 0.5, 1.5, 1.5, 2.5]  # to the subsets 000, 001, ..., 111 of three people
>>> find_consistent(all_subsets(3), np.array(said), error=0.5).astype(int)
array([[1, 1, 0]])

For more than 20 people there are too many candidates: see `tacit.attacks.linear`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.attacks.oracle import BitArray, FloatArray, Oracle, Progress, as_bits, collect_answers
from tacit.attacks.recovered import ReconstructionResult
from tacit.errors import ParameterError

MAX_PEOPLE = 20
_BLOCK = 1 << 22  # candidates times subsets that are compared at once
_SLACK = 1e-9  # of a double's rounding: 1.1 is within 0.1 of 1

Words = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class ConsistentCandidates:
    """The candidates that no answer rules out, and how far they can be from the truth.

    **Theorem** (Dinur, Nissim 2003). If every subset was asked and every answer is within E of the true count, then the
    truth survives, and every survivor differs from it in at most 4E places.

    Proof. The truth x is within E of every answer. Let c survive, and let S be the people with x = 1 and c = 0. Over S
    the true count is |S| and the count of c is 0. The answer to S is within E of both, so |S| <= 2E. The same holds for
    the people with x = 0 and c = 1. They are all the places where the two differ.

    It is tight: where x and c differ in 2E places of each kind, the answer half way between their counts is within E of
    both, whatever the subset, and both survive.

    Attributes
    ----------
    candidates : array of bool
        The candidates that survive, a row each, from 00...0 to 11...1.
    people : int
        How many bits a candidate has.
    error : float
        The bound E on the noise that was assumed, 0 or more.
    queries : int
        How many questions were answered.
    complete : bool
        Whether every subset was answered, as the theorem needs.
    stopped : str
        The refusal, where the budget was spent before the last question, else empty.

    Examples
    --------
    >>> from tacit.attacks import ExactOracle
    >>> print(reconstruct_exhaustively(ExactOracle([1, 1, 0]), 3, error=0))
    1 of 8 candidates survive: 110
    if the noise is at most 0, each differs from the truth in at most 0 of 3 places
    """

    candidates: BitArray  # a row each, from 00...0 to 11...1
    people: int
    error: float
    queries: int
    complete: bool  # whether every subset was answered, as the theorem needs
    stopped: str = ""  # the refusal, where the budget was spent before the last question

    @property
    def most_wrong(self) -> int | None:
        """The most places in which a survivor differs from the truth, by the theorem; None where it does not apply."""
        return min(self.people, math.floor(4 * self.error + _SLACK)) if self.complete else None

    def distances(self, truth: ArrayLike) -> NDArray[np.int64]:
        """Return in how many places each survivor differs from the truth.

        Parameters
        ----------
        truth : array of bits
            The true bit of each person.

        Returns
        -------
        array of int
            A distance for each candidate, from 0 to `people`.

        Raises
        ------
        ParameterError
            If the truth has another length.
        """
        bits = as_bits("truth", truth)
        if len(bits) != self.people:
            raise ParameterError(
                "truth", f"has {len(bits)} bits for {self.people} people", fix="one bit for each person"
            )
        distances: NDArray[np.int64] = np.count_nonzero(self.candidates != bits, axis=1)
        return distances

    def holds(self, truth: ArrayLike) -> bool:
        """Return whether the theorem holds here: the truth survives, and every survivor is within `most_wrong` of it.

        Parameters
        ----------
        truth : array of bits
            The true bit of each person.

        Returns
        -------
        bool
            False only where the noise exceeded `error`.
        """
        far = self.distances(truth)
        return bool((far == 0).any()) and (self.most_wrong is None or int(far.max()) <= self.most_wrong)

    def choose_candidate(self, truth: ArrayLike | None = None) -> ReconstructionResult:
        """Return the survivor that is nearest to the majority of all, as a guess that the theorem holds for.

        Parameters
        ----------
        truth : array of bits, optional
            The true bits, used only to count how many are guessed right.

        Returns
        -------
        ReconstructionResult
            The chosen candidate, and how many of its bits are right where the truth is given.

        Raises
        ------
        ParameterError
            If no candidate survives: the noise exceeded `error`.
        """
        if not len(self.candidates):
            raise ParameterError(
                "error",
                f"no candidate survives: some answer is off by more than {self.error:g}",
                fix="a larger error, or an attack that needs no bound: tacit.attacks.linear",
            )
        votes = self.candidates.mean(axis=0)
        nearest = int(np.argmin(self.candidates @ (1 - 2 * votes)))  # the distance to the votes, less what all share
        return ReconstructionResult(
            self.candidates[nearest],
            method="every candidate tried",
            queries=self.queries,
            noise=f"noise of at most {self.error:g}",
            truth=None if truth is None else as_bits("truth", truth),
            stopped=self.stopped,
        )

    def __str__(self) -> str:
        rows = ["".join("01"[bit] for bit in row) for row in self.candidates[:8].astype(int)]
        more = ", ..." if len(self.candidates) > len(rows) else ""
        text = f"{len(self.candidates):,} of {1 << self.people:,} candidates survive"
        text += f": {', '.join(rows)}{more}" if rows else ""
        if self.most_wrong is not None:
            text += (
                f"\nif the noise is at most {self.error:g}, each differs from the truth in at most {self.most_wrong}"
            )
            text += f" of {self.people} places"
        return f"{text}\n{self.stopped}" if self.stopped else text


def reconstruct_exhaustively(
    oracle: Oracle, n: int, error: Number, *, subsets: BitArray | None = None, progress: Progress | None = None
) -> ConsistentCandidates:
    """Ask about every subset, or about those given, and keep the candidates within `error` of all answers.

    Where the budget is spent before the last question, the answers so far are compared.

    Parameters
    ----------
    oracle : Oracle
        Answers counts of the secret bit over subsets.
    n : int
        How many people the oracle knows, from 1 to 20.
    error : number
        A bound on the noise of every answer, 0 or more; a larger one leaves more candidates.
    subsets : array of bool, optional
        The subsets to ask about, a row of `n` bits each; all 2^n where left out.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    ConsistentCandidates
        The candidates that no answer rules out.

    Raises
    ------
    ParameterError
        If there are more than 20 people, the error is negative, or the oracle fails.

    Examples
    --------
    >>> from tacit.attacks import RoundingOracle
    >>> found = reconstruct_exhaustively(RoundingOracle([1, 0, 1, 1], to=2), 4, error=1)
    >>> found.holds([1, 0, 1, 1]), found.most_wrong
    (True, 4)
    """
    count = _people(n)
    asked = all_subsets(count) if subsets is None else np.asarray(subsets)
    if asked.ndim == 2 and asked.shape[1] != count:
        raise ParameterError("subsets", f"have {asked.shape[1]} columns for {count} people", fix="a column each")
    told = progress or (lambda share: None)
    said, refusal = collect_answers(oracle, asked, progress and (lambda share: told(share / 2)))
    planned, asked = len(asked), asked[: len(said)]
    kept = find_consistent(asked, said, error, progress=lambda share: told((1 + share) / 2))
    told(1.0)
    complete = len(np.unique(_pack_rows(asked))) == 1 << count
    stopped = "" if refusal is None else f"{len(said):,} of {planned:,} questions were answered, then: {refusal.what}"
    return ConsistentCandidates(kept, count, float(error), len(asked), complete, stopped)


def find_consistent(
    subsets: BitArray, said: FloatArray, error: Number, *, progress: Progress | None = None
) -> BitArray:
    """Return the candidates whose counts are within `error` of the answer about each subset, a row each, in order.

    Candidates are ruled out subset by subset, so the work is the sum of those left at each. The subsets that rule out
    most come first, and one whose answer fits every candidate is skipped.

    Parameters
    ----------
    subsets : array of bool
        The subsets that were asked about, a row of bits each, for at most 20 people.
    said : array of float
        The answer about each subset.
    error : number
        A bound on the noise of every answer, 0 or more.
    progress : callable, optional
        Called with the share of the subsets that are compared, from 0 to 1.

    Returns
    -------
    array of bool
        The consistent candidates, a row each.

    Raises
    ------
    ParameterError
        If there are not as many finite answers as subsets, or the error is negative.

    Examples
    --------
    >>> import numpy as np
    >>> find_consistent(all_subsets(2), np.array([0.4, 0.6, 1.2, 2.0]), error=0.5).astype(int).tolist()
    [[1, 1]]
    """
    rows, numbers = np.asarray(subsets), np.asarray(said, dtype=np.float64)
    if rows.ndim != 2 or rows.dtype != np.bool_ or numbers.shape != (len(rows),) or not np.isfinite(numbers).all():
        raise ParameterError(
            "said",
            "needs a table of bits and one finite number for each of its rows",
            fix="said=ask_oracle(oracle, subsets)",
        )
    n, bound = _people(rows.shape[1]), float(to_rational("error", error))
    if bound < 0:
        raise ParameterError("error", f"must not be negative, got {error}", fix="choose an error of 0 or more")
    slack = _SLACK * (1 + bound + np.abs(numbers))
    least, most = numbers - bound - slack, numbers + bound + slack
    forced = np.maximum(least, rows.sum(axis=1) - most)  # how many ones or zeros the subset must have
    telling = np.argsort(-forced, kind="stable")[: np.count_nonzero(forced > 0)]
    words, left, start = _pack_rows(rows), np.arange(1 << n, dtype=np.uint32), 0
    while start < len(telling) and len(left):
        block = telling[start : start + max(1, _BLOCK // len(left))]
        counts = np.bitwise_count(left[:, np.newaxis] & words[block])
        left = left[((counts >= least[block]) & (counts <= most[block])).all(axis=1)]
        start += len(block)
        if progress is not None:
            progress(start / len(telling))
    return _unpack_words(left, n)


def all_subsets(n: int) -> BitArray:
    """Return all 2^n subsets of n people, from 00...0 to 11...1: the first person is the first digit.

    Parameters
    ----------
    n : int
        How many people there are, from 1 to 20.

    Returns
    -------
    array of bool
        A row for each subset.

    Raises
    ------
    ParameterError
        If there are more than 20 people.

    Examples
    --------
    >>> all_subsets(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    count = _people(n)
    return _unpack_words(np.arange(1 << count, dtype=np.uint32), count)


def _people(n: Any) -> int:
    count = to_integer("n", n, least=1)
    if count > MAX_PEOPLE:
        raise ParameterError(
            "n",
            f"{count:,} people have 2^{count} candidates, and {MAX_PEOPLE} people are the most that are all tried",
            fix="tacit.attacks.linear.reconstruct, which takes thousands of people",
        )
    return count


def _pack_rows(rows: BitArray) -> Words:
    places = np.arange(rows.shape[1] - 1, -1, -1, dtype=np.uint32)
    packed: Words = (rows.astype(np.uint32) << places).sum(axis=1, dtype=np.uint32)
    return packed


def _unpack_words(words: Words, n: int) -> BitArray:
    places = np.arange(n - 1, -1, -1, dtype=np.uint32)
    return (words[:, np.newaxis] >> places & np.uint32(1)).astype(np.bool_)
