"""How much of what the rows could say noise leaves, by public facts; and the warning where that is next to nothing."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

from tacit.learn.facts import DeclaredParameters
from tacit.learn.fit_warnings import NoSignalWarning
from tacit.learn.gradient import l2_sensitivity, single_release_sigma

# chosen on synthetic data: benchmarks/learn_defaults.md
FAINT = 0.2  # noise over signal from which a fit is said to have learned next to nothing
FAINT_UNSCALED = 0.07  # the same where rows are too few to learn their norm: then bounds may be too wide as well
_MOST_FACTOR = 1e6  # of epsilon or rows that a fix names, at most
_STEP = 1.1  # by which a fix is searched


def compute_noise_to_signal(facts: DeclaredParameters, outputs: int) -> float:
    """How long the noise of one sum over the rows would be, in units of the longest that the sum can be.

    The sum is that of the rows times their residuals, whose part of a row is at most one; the noise is that of a single
    release at all of epsilon and delta, over all weights. No method has less. It is a public figure.
    """
    weights = facts.width * outputs
    if facts.delta:
        unit = single_release_sigma(facts.epsilon, facts.delta, facts.neighbors)
    else:
        unit = math.sqrt(2 * weights) / float(facts.epsilon) * float(l2_sensitivity(facts.neighbors))
    return unit * math.sqrt(weights) / facts.rows


def warn_of_noise(facts: DeclaredParameters, outputs: int, epsilon: Fraction, *, unscaled: bool) -> None:
    """Warn where noise leaves next to nothing of what the rows could say. It depends on public facts alone.

    `epsilon` is that of the whole fit. Where rows are `unscaled`, too few to learn how long they are, noise is for the
    longest that bounds allow, and much less of it is too much.
    """
    ratio = compute_noise_to_signal(facts, outputs)
    if ratio < (FAINT_UNSCALED if unscaled else FAINT):
        return
    what = (
        f"the noise of this fit is {ratio:.2g} of the most that {facts.rows:,} rows could say of "
        f"{facts.width * outputs} weights: the model has learned next to nothing"
    )
    if ratio < FAINT:
        what += ", unless the bounds are tight"
    factor = _find_factor(facts, outputs)
    enough, rows = _round_up(float(epsilon) * factor), int(_round_up(facts.rows * factor))
    fix = f"epsilon={enough:.2g} with these rows, or {rows:,} rows with this epsilon, or fewer columns"
    warnings.warn(NoSignalWarning(what, fix=fix), stacklevel=4)


def _find_factor(facts: DeclaredParameters, outputs: int) -> float:
    """About how many times the epsilon, or the rows, leave noise of half of `FAINT_UNSCALED`."""
    factor = 1.0
    while factor < _MOST_FACTOR:
        larger = replace(facts, epsilon=facts.epsilon * Fraction(factor))
        if compute_noise_to_signal(larger, outputs) <= FAINT_UNSCALED / 2:
            break
        factor *= _STEP
    return factor


def _round_up(number: float) -> float:
    """The number with two digits, from above."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step - 1e-9) * step
