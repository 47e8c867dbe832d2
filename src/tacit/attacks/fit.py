"""Four ways to fit n numbers between 0 and 1 to many noisy sums of them.

Each takes `rows`, whose entries are -1, 0 or 1, and `said`, a number for each row, and gives x such that rows x is near
to what was said:

- `least_squares`: the least sum of squares. The quickest, and the one with a formula for its success.
- `bounded_least_squares`: the same with every x in [0, 1]. Never much worse, and far better where questions are few.
- `least_absolute_deviations`: the least sum of absolute residuals, x in [0, 1]. For noise with heavy tails: it ignores
  wild answers.
- `least_maximum_residual`: the least largest residual, x in [0, 1]. For bounded noise; one wild answer ruins it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.attacks.oracle import FloatArray, Progress
from tacit.errors import ParameterError

Rows = NDArray[np.int8]

_BLOCK = 1024  # rows that are turned to floats at once
_TURNS = 2000  # of `bounded_least_squares`, at the most
_STILL = 1e-6  # where it stops


def least_squares(rows: Rows, said: FloatArray, progress: Progress | None = None) -> FloatArray:
    """The x that minimizes |said - rows x|^2; the one nearest to 1/2 where many do.

    By the normal equations, whose matrix is exact: its entries are integers far below 2^24, so single precision adds
    them without rounding. With fewer rows than people, by those of the transpose.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    wide = len(rows) < rows.shape[1]
    off = said - rows.sum(axis=1) / 2
    try:
        factor = cho_factor(_gram(rows.T if wide else rows, progress), lower=True, overwrite_a=True)
        found: FloatArray = (
            _transpose_product(rows, cho_solve(factor, off))
            if wide
            else cho_solve(factor, _transpose_product(rows, off))
        )
    except LinAlgError:  # rows that depend on each other
        found = np.linalg.lstsq(rows.astype(np.float64), off)[0]
    return found + 0.5


def bounded_least_squares(rows: Rows, said: FloatArray, progress: Progress | None = None) -> FloatArray:
    """The x in [0, 1]^n that minimizes |said - rows x|^2.

    By alternating directions: x solves the normal equations pulled toward z, z is x + u clipped to the box, and u adds
    up how far they are apart; both converge to the minimum from anywhere (Boyd et al. 2011, section 3). One
    factorization serves all turns, and the large eigenvalue that all subsets share does no harm.
    """
    from scipy.linalg import cho_factor, cho_solve

    people = rows.shape[1]
    matrix = _gram(rows, progress)
    pull = float(np.trace(matrix)) / people + 1.0
    matrix[np.diag_indices(people)] += pull
    factor = cho_factor(matrix, lower=True, overwrite_a=True)
    target = _transpose_product(rows, said - rows.sum(axis=1) / 2)
    z, u = np.zeros(people), np.zeros(people)
    for _ in range(_TURNS):
        x = cho_solve(factor, target + pull * (z - u), check_finite=False)
        before, z = z, np.clip(x + u, -0.5, 0.5)
        u += x - z
        if max(np.abs(z - before).max(), np.abs(x - z).max()) < _STILL:
            break
    return z + 0.5


def least_absolute_deviations(rows: Rows, said: FloatArray, progress: Progress | None = None) -> FloatArray:
    """The x in [0, 1]^n that minimizes the sum of |said - rows x|.

    Solved as its dual, which has a row for each person only: |r| is the largest l r over -1 <= l <= 1, so the minimum
    over x is the largest of l said - sum of max(0, rows^T l), and x is the multiplier of s >= rows^T l.
    """
    questions, people = rows.shape
    solved = _linear_program(
        np.concatenate([-said, np.ones(people)]),
        np.concatenate([rows.T.astype(np.float64), -np.eye(people)], axis=1),
        np.zeros(people),
        [(-1, 1)] * questions + [(0, None)] * people,
        progress,
    )
    found: FloatArray = np.clip(-solved.ineqlin.marginals, 0, 1)
    return found


def least_maximum_residual(rows: Rows, said: FloatArray, progress: Progress | None = None) -> FloatArray:
    """The x in [0, 1]^n that minimizes the largest |said - rows x|."""
    questions, people = rows.shape
    sums, ones = rows.astype(np.float64), np.ones((questions, 1))
    solved = _linear_program(
        np.concatenate([np.zeros(people), [1.0]]),
        np.block([[sums, -ones], [-sums, -ones]]),
        np.concatenate([said, -said]),
        [(0, 1)] * people + [(0, None)],
        progress,
    )
    found: FloatArray = solved.x[:people]
    return found


def _linear_program(
    costs: FloatArray,
    matrix: FloatArray,
    most: FloatArray,
    bounds: list[tuple[float, float | None]],
    progress: Progress | None,
) -> Any:
    """The solution of: least costs v with matrix v <= most, by HiGHS. It tells nothing on its way."""
    from scipy.optimize import linprog

    solved = linprog(costs, A_ub=matrix, b_ub=most, bounds=bounds, method="highs-ipm")
    if solved.status != 0:
        raise ParameterError("method", f"the linear program was not solved: {solved.message:.120}", fix='method="box"')
    if progress is not None:
        progress(1.0)
    return solved


def _gram(rows: Rows, progress: Progress | None) -> FloatArray:
    """rows^T rows, block by block."""
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = np.ascontiguousarray(rows[start : start + _BLOCK], dtype=np.float32)
        total += block.T @ block
        if progress is not None:
            progress(min(1.0, (start + _BLOCK) / len(rows)))
    return total.astype(np.float64)


def _transpose_product(rows: Rows, numbers: FloatArray) -> FloatArray:
    """rows^T numbers in double precision, block by block."""
    total = np.zeros(rows.shape[1])
    for start in range(0, len(rows), _BLOCK):
        total += numbers[start : start + _BLOCK] @ rows[start : start + _BLOCK].astype(np.float64)
    return total
