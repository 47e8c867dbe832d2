"""Reconstruction from counts over random subsets: O(n) questions give most bits of thousands of people away.

>>> import numpy as np
>>> rng = np.random.default_rng(1)
>>> secret = rng.random(100) < 0.5
>>> from tacit.attacks.counting_oracles import RoundingOracle
>>> reconstruct(RoundingOracle(secret, to=5), n=100, queries=600, truth=secret).share
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arithmetic import Number, to_integer
from tacit.attacks import fit
from tacit.attacks.fit import Rows
from tacit.attacks.oracle import (
    BitArray,
    FloatArray,
    NoiseModel,
    Oracle,
    Progress,
    as_bits,
    collect_answers,
    noise_model,
    positive,
)
from tacit.attacks.recovered import ReconstructionResult
from tacit.errors import ParameterError

_METHODS: dict[str, Callable[[Rows, FloatArray, Progress | None], FloatArray]] = {
    "least-squares": fit.least_squares,
    "box": fit.bounded_least_squares,
    "linear-program": fit.least_absolute_deviations,
    "minimax": fit.least_maximum_residual,
}
_DESIGNS = ("subsets", "differences")
_MOST_CELLS = 1 << 30  # people times questions: a gigabyte of bits
_QUICK_CELLS = 1_000_000  # those of a linear program of a few seconds
_ASKING, _LOOKING = 0.4, 0.7  # shares of the way at which the stages end


def reconstruct(
    oracle: Oracle,
    n: int,
    queries: int,
    *,
    method: str = "auto",
    design: str = "subsets",
    sigma: Number | None = None,
    seed: int = 0,
    truth: ArrayLike | None = None,
    progress: Progress | None = None,
) -> ReconstructionResult:
    """Guess n bits from the counts of random subsets: fit numbers to the counts, and round them at 1/2.

    Where the budget is spent before the last question, the answers so far are fitted.

    Parameters
    ----------
    oracle : Oracle
        Answers counts of the secret bit over subsets.
    n : int
        How many people the oracle knows, 1 or more.
    queries : int
        How many subsets are asked about; a few times `n` reveal most bits.
    method : str
        "least-squares"; "box", least squares in [0, 1]; "linear-program", least absolute residuals; or "minimax", least
        largest residual. The last two are linear programs, of seconds up to about 500 people. "auto" takes minimax for
        an oracle that says its noise is bounded, box where `sigma` is given, and else looks at the residuals of least
        squares (`choose_method`).
    design : str
        "subsets" asks for fair random subsets. "differences" asks for such a subset and its complement in turn and uses
        the difference, which cancels an error that all answers share, and needs n more questions to be as accurate.
    sigma : number, optional
        The standard deviation of the noise, positive, where it is known.
    seed : int
        Seed of the random subsets, 0 or more.
    truth : array of bits, optional
        The true bits, used only to count how many guesses are right.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    ReconstructionResult
        The guessed bits, and how many are right where the truth is given.

    Raises
    ------
    ParameterError
        If an argument is out of range, the oracle fails, or the linear program is not solved.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.attacks import RoundingOracle
    >>> secret = np.random.default_rng(1).random(100) < 0.5
    >>> reconstruct(RoundingOracle(secret, to=5), n=100, queries=600, truth=secret).share
    1.0
    """
    people, asked = to_integer("n", n, least=1), to_integer("queries", queries, least=1)
    if people * asked > _MOST_CELLS:
        raise ParameterError(
            "queries", f"{asked:,} questions about {people:,} people are too many to hold", fix="fewer of either"
        )
    _check_choice("method", method, ("auto", *_METHODS))
    _check_choice("design", design, _DESIGNS)
    deviation = None if sigma is None else positive("sigma", sigma)
    known = None if truth is None else as_bits("truth", truth)
    if known is not None and len(known) != people:
        raise ParameterError("truth", f"has {len(known)} bits for {people} people", fix="one bit for each person")

    rng = np.random.default_rng(to_integer("seed", seed, least=0))
    subsets = random_subsets(people, asked, rng) if design == "subsets" else subsets_and_complements(people, asked, rng)
    said, refusal = collect_answers(oracle, subsets, _part(progress, 0, _ASKING))
    heard = len(said)
    rows = subsets[:heard].astype(np.int8)
    if design == "differences":
        if refusal is not None and heard < 2:
            raise refusal
        pairs = heard // 2 * 2
        rows, said = rows[0:pairs:2] - rows[1:pairs:2], said[0:pairs:2] - said[1:pairs:2]

    noise, chosen = noise_model(oracle), method
    if method == "auto":
        chosen = _choose_solver(rows, said, noise, deviation, _part(progress, _ASKING, _LOOKING))
    fitted = _METHODS[chosen](rows, said, _part(progress, _LOOKING, 1))
    if progress is not None:
        progress(1.0)
    words = noise.words if deviation is None else f"noise of deviation {deviation:.4g}"
    stopped = "" if refusal is None else refusal.what
    return ReconstructionResult(fitted > 0.5, chosen.replace("-", " "), heard, words, known, len(subsets), stopped)


def expected_accuracy(n: int, queries: int, sigma: Number) -> float:
    """Return the share of bits that least squares gets from m > n fair random subsets with noise of deviation sigma.

    **Theorem** (for large n, and m - n that grows with it). It is about Phi(sqrt(m - n)/(4 sigma)).

    Derivation. The answers are a = Sx + e, and x^ - x = (S^T S)^-1 S^T e. Given S, the error of x^_i has the mean 0 and
    the variance sigma^2 [(S^T S)^-1]_ii, and is normal, exactly or as a sum of many small parts. By the Schur
    complement, [(S^T S)^-1]_ii is one over the squared length of what is left of column i once its projection on the
    other n - 1 columns is taken out. Column i is (1 + r)/2 with r of m independent signs; the other columns nearly span
    the constant, so what is left is that of r/2, in m - n + 1 dimensions that are independent of r: its squared length
    is close to (m - n + 1)/4. So the error has the deviation 2 sigma/sqrt(m - n), and rounding at 1/2 is right
    where it is below 1/2 toward the other value: with the probability Phi((1/2)/(2 sigma/sqrt(m - n))).

    Parameters
    ----------
    n : int
        How many people there are, 1 or more.
    queries : int
        How many subsets are asked about, more than `n`.
    sigma : number
        The standard deviation of the noise on a count, positive.

    Returns
    -------
    float
        The expected share of right bits, between 1/2 and 1.

    Raises
    ------
    ParameterError
        If there are not more queries than people, or sigma is not positive.

    Examples
    --------
    >>> round(expected_accuracy(100, 500, sigma=5), 3)
    0.841
    """
    people, asked = to_integer("n", n, least=1), to_integer("queries", queries, least=1)
    if asked <= people:
        raise ParameterError("queries", "must be more than n for least squares to be unique", fix="queries=4 * n, say")
    return math.erfc(-math.sqrt(asked - people) / (4 * positive("sigma", sigma)) / math.sqrt(2)) / 2


def random_subsets(n: int, queries: int, rng: np.random.Generator) -> BitArray:
    """Subsets that each person is in with probability 1/2, independently."""
    return rng.integers(0, 2, size=(queries, n), dtype=np.bool_)


def subsets_and_complements(n: int, queries: int, rng: np.random.Generator) -> BitArray:
    """Random subsets, each followed by all people who are not in it; an even number, of 2 or more."""
    half = random_subsets(n, max(1, queries // 2), rng)
    return np.stack([half, ~half], axis=1).reshape(-1, n)


def choose_method(rows: Rows, residuals: FloatArray) -> str:
    """The method for noise of this shape, from the residuals of least squares: "box" unless they tell otherwise.

    Least squares keeps the part (1 - n/m) of each noise and adds a nearly normal rest, so it shrinks the excess
    kurtosis, which is -1.2 for uniform, 0 for normal and 3 for Laplace noise, by (1 - n/m)^2. Undo that, and take half
    way to uniform for bounded, 1 for heavy-tailed. Its standard error, sqrt(24/m) before, must be below these.
    """
    questions, people = rows.shape
    kept = 1 - people / questions
    spread = float(np.mean(residuals**2))
    if kept < 0.3 or math.sqrt(24 / questions) / kept**2 > 0.3 or spread < 1e-12:
        return "box"
    excess = (float(np.mean((residuals / math.sqrt(spread)) ** 4)) - 3) / kept**2
    return "minimax" if excess < -0.6 else "linear-program" if excess > 1 else "box"


def _choose_solver(
    rows: Rows, said: FloatArray, noise: NoiseModel, sigma: float | None, progress: Progress | None
) -> str:
    if sigma is not None or rows.size > _QUICK_CELLS:
        return "box"
    if noise.bound is not None:
        return "minimax"
    fitted = fit.least_squares(rows, said, progress)
    return choose_method(rows, said - rows @ fitted)


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Progress through one stage, as progress through all."""
    return None if progress is None else lambda share: progress(start + (end - start) * share)


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(name, f"there is no {value!r:.40}", fix=f"one of {', '.join(allowed)}")
