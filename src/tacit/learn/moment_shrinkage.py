"""The weights of a regression from noisy sums of products, each direction shrunk by how much of it is noise.

>>> exact = np.diag([900.0, 500.0, 4.0, 250.0])  # X^T X of three columns and a constant of 1/2, of 1000 rows
>>> weights = estimate_weights(exact, exact @ [0.5, -0.5, 0.5, 0.0], (5.0, 5.0), rows=1000, constant=0.5)
>>> [round(float(weight), 2) for weight in weights]  # the third is below the noise
[0.5, -0.5, 0.23, 0.0]
"""

from __future__ import annotations

import math

import numpy as np

from tacit.learn.losses import Array

# chosen on synthetic data: benchmarks/learn_defaults.md
_FLOOR = 0.7  # the least eigenvalue that is believed, in units of half the largest that noise alone has
_EXPLAINED = 1 / 8  # about the variance of what is predicted, in units of the squared bound of targets
_LEFT = 1 / 4  # of the noise of X^T X: what shrinking its eigenvalues leaves
_DOUBT = 3.0  # variances of its noise that are taken off the square of the mean target
_LEAST_COUNT = 0.5  # of the declared rows: a noisy number of rows below it is not believed
_CAUTION = 10.0  # powers of two by which weights are expected smaller, for noise as long as the longest X^T y
_FACTORS = np.arange(-24, 9)  # powers of two around the expected size of weights


def estimate_weights(
    second: Array, first: Array, sigmas: tuple[float, float], *, rows: int, constant: float = 0.0
) -> Array:
    """The weights for X^T X and X^T y that have symmetric and independent Gaussian noise of these deviations.

    `second` has noise of sigmas[0] on the diagonal and sigmas[0]/sqrt 2 beside it, `first` of sigmas[1]; rows are at
    most one long and targets at most one. The last column is `constant` for all rows, unless that is 0. All of it is
    post-processing: of the released sums, of public facts, and of nothing else.

    The weight of the constant is not shrunk with the others. With m the means of the columns over the constant, as
    released, [I, -m] takes the constant out of both sums; (I + m m^T)^-1/2 [I, -m] has orthonormal rows, so the noise
    of what is left is distributed as before.
    """
    if not constant:
        return _shrink(second, first, sigmas, rows)
    count = max(float(second[-1, -1]), _LEAST_COUNT * rows * constant**2)
    means = second[:-1, -1] / count
    square = float(means @ means)
    whiten = np.eye(len(means))
    if square > 0:
        whiten += np.outer(means, means) * ((1 / math.sqrt(1 + square) - 1) / square)
    centered = second[:-1, :-1] - count * np.outer(means, means)
    weights = whiten @ _shrink(whiten @ centered @ whiten, whiten @ (first[:-1] - means * first[-1]), sigmas, rows)
    total = float(first[-1])
    if total:
        total *= max(0.0, 1 - _DOUBT * (sigmas[1] / total) ** 2)
    return np.append(weights, total / count - means @ weights)


def denoise_eigenvalues(values: Array, sigma: float) -> Array:
    """The mean of v^T A v for eigenvectors v of a symmetric A with noise, from the rising eigenvalues with noise.

    The noise has the deviation `sigma` on the diagonal and sigma/sqrt 2 beside it. For large matrices, whatever A is,
    v_i^T A v_i = l_i - sigma^2 sum_j 1/(l_i - l_j): eigenvalues that noise has driven apart are drawn together again
    (Bun, Allez, Bouchaud and Potters 2016). The sum is smoothed over the distance of neighbors that noise alone has.
    """
    apart = values[:, None] - values[None, :]
    smooth = sigma**2 / 2
    return np.sort(values - sigma**2 * np.sum(apart / (apart**2 + smooth), axis=1))


def _shrink(second: Array, first: Array, sigmas: tuple[float, float], rows: int) -> Array:
    """The mean of weights w given p = A w + noise, where A has noise as well.

    Along an eigenvector of the noisy A with the eigenvalue a, noise taken off, the weight is taken to be normal of the
    variance t/sqrt(a): between directions that weigh the same (t) and that say the same (t/a). Then p is normal, of the
    variance a^2 t/sqrt(a) + sigma^2 + what is left of the noise of A times w, and the mean of w is the part of the
    first term in that, times p/a. The size t is unknown by a factor of two or so, around one for which predictions have
    the variance `_EXPLAINED`, or less where noise is long beside all that the rows can say: there a fit stays near a
    constant. The mean is over the probabilities of t given p.
    """
    values, vectors = np.linalg.eigh(second)
    spread = sigmas[0] * math.sqrt(len(values) / 2)  # half the largest eigenvalue that noise alone has
    values = np.maximum(denoise_eigenvalues(values, sigmas[0]), _FLOOR * spread)
    pulls = vectors.T @ first
    sizes = (_EXPLAINED * rows / np.sqrt(values).sum() * 2.0**_FACTORS)[:, None]
    variances = sizes / np.sqrt(values)
    signal = values**2 * variances
    total = signal + sigmas[1] ** 2 + _LEFT * sigmas[0] ** 2 / 2 * variances.sum(axis=1, keepdims=True)
    caution = _CAUTION * sigmas[1] * math.sqrt(len(values)) / rows
    evidence = -0.5 * np.sum(np.log(total) + pulls**2 / total, axis=1) - 0.5 * (_FACTORS + caution) ** 2
    chances = np.exp(evidence - evidence.max())
    kept = chances @ (signal / total) / chances.sum()
    return np.asarray(vectors @ (kept * pulls / values))
