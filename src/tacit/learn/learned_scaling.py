"""Which parts of the scaling of rows are learned, and with how much of the budget: decided by public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import ParameterError
from tacit.learn.column_ranges import ColumnRanges
from tacit.learn.facts import DeclaredParameters
from tacit.learn.losses import Array
from tacit.learn.row_norm import RowNorm
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits

SCALINGS = ("auto", "bounds", "norm", "ranges")
# chosen on synthetic data: benchmarks/learn_defaults.md
SHARES = Fraction(1, 64), Fraction(1, 32), Fraction(1, 16), Fraction(1, 8)  # of epsilon and delta, for one release
AMPLE_RANGES, AMPLE_NORM = 40.0, 40.0  # rows in deviations of a count's noise: a share that gives as many is enough
LEAST_RANGES, LEAST_NORM = 20.0, 8.0  # at the largest share; where they are fewer nothing is learned by "auto"
WORTH_LINEAR = 0.75  # of the norm by the bounds: a longer one is not used for a regression
CHEAP_LINEAR = Fraction(1, 32)  # the largest share for the ranges of a regression with fewer rows than `MANY_LINEAR`
MANY_LINEAR, AMPLE_LINEAR = 5_000, 60.0  # rows, and the same in deviations, from which a larger share is worth it


@dataclass(frozen=True)
class LearnedScaling:
    """What of the scaling is learned before the weights: ranges of columns, the norm of rows, both or nothing.

    **Theorem.** `learn` loses at most the composition of `losses`, and its guarantee is (`epsilon`, `delta`). Proof:
    basic composition. The norm is that of rows scaled by the ranges that were released before, a function of the row
    and of what is public by then.
    """

    ranges: ColumnRanges | None = None
    norm: RowNorm | None = None

    @property
    def epsilon(self) -> Fraction:
        """The part of epsilon that is spent here."""
        return sum((part.epsilon for part in (self.ranges, self.norm) if part is not None), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The part of delta that is spent here."""
        return Fraction(0) if self.ranges is None else self.ranges.delta

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The privacy losses of what is released, in their order."""
        return tuple(part.privacy_loss for part in (self.ranges, self.norm) if part is not None)

    def learn(self, facts: DeclaredParameters, features: Array, bits: Bits) -> DeclaredParameters:
        """The facts with the scaling that is learned from these rows."""
        if self.ranges is not None:
            facts = facts.with_ranges(*self.ranges.release(facts.fill_missing(features), bits))
        if self.norm is not None:
            facts = facts.with_norm(self.norm.release(facts.read_scaled(features), bits))
        return facts


def plan_scaling(
    scaling: str, facts: DeclaredParameters, *, has_bounds: bool, has_norm: bool, is_linear: bool
) -> LearnedScaling:
    """What is learned for what is declared.

    "bounds" learns nothing, "norm" the norm, "ranges" the ranges and the norm. "auto" learns each of them where public
    facts say that a count stands out of its noise at a small share of the budget, and neither where a norm is declared,
    which is one of columns that are scaled by the bounds. What `is_linear` predicts numbers, and clipped columns and
    shortened rows bend its line: "auto" learns ranges for it where rows are many, and a norm is used where it is below
    the bounds'.
    """
    if not isinstance(scaling, str) or scaling not in SCALINGS:
        raise ParameterError("scaling", f"there is no {scaling!r:.60}", fix=f"choose one of {', '.join(SCALINGS)}")
    if scaling in {"norm", "ranges"} and not has_bounds:
        what = f"{scaling} is learned inside of declared bounds, and there are none"
        raise ParameterError("scaling", what, fix='declare rough ones, bounds=(-1e6, 1e6), or scaling="bounds"')
    if scaling == "bounds" or not has_bounds or (scaling == "auto" and has_norm):
        return LearnedScaling()
    worth = WORTH_LINEAR if is_linear else 1.0
    ranges = None if scaling == "norm" else _plan_ranges(facts, always=scaling == "ranges", is_linear=is_linear)
    return LearnedScaling(ranges, None if has_norm else _plan_norm(facts, worth, always=scaling == "norm"))


def _plan_ranges(facts: DeclaredParameters, *, always: bool, is_linear: bool) -> ColumnRanges | None:
    """The release of ranges at the least share with which counts stand out; None where none is enough."""
    ends = facts.lower, facts.upper
    for share in SHARES:
        plan = ColumnRanges.calibrate(
            facts.epsilon * share, facts.delta * share, ends, rows=facts.rows, neighbors=facts.neighbors
        )
        if facts.rows >= AMPLE_RANGES * plan.deviation and (always or not is_linear or _is_worth(facts, share, plan)):
            return plan
    return plan if always or (not is_linear and facts.rows >= LEAST_RANGES * plan.deviation) else None


def _is_worth(facts: DeclaredParameters, share: Fraction, plan: ColumnRanges) -> bool:
    """Whether a regression gains by ranges at this share."""
    return share <= CHEAP_LINEAR or facts.rows >= max(MANY_LINEAR, AMPLE_LINEAR * plan.deviation)


def _plan_norm(facts: DeclaredParameters, worth: float, *, always: bool) -> RowNorm | None:
    """The release of the norm at the least share with which counts stand out; None where none is enough."""
    for share in SHARES:
        plan = RowNorm.calibrate(
            facts.epsilon * share, norm=facts.inner, rows=facts.rows, neighbors=facts.neighbors, worth=worth
        )
        if facts.rows >= AMPLE_NORM * plan.deviation:
            return plan
    return plan if always or facts.rows >= LEAST_NORM * plan.deviation else None
