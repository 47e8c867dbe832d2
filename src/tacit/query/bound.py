"""A scalar over rows, and what is publicly known of its values: type, bounds, grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.query.integer_types import PostgresType
from tacit.query.nodes import Scalar
from tacit.query.types import Key, Type

LEAST_INT, MOST_INT = Fraction(-(2**63)), Fraction(2**63 - 1)
Listing = Callable[[int], tuple[Key, ...] | None]
"""All values of a scalar, in order; None if they are more than its argument."""


@dataclass(frozen=True)
class TypedScalar:
    """A lowered scalar and what is publicly known of its values.

    `type` is None for a bare NULL. A bound that is None is infinite. `step` is a grid that every value lies on, up to
    rounding, or None; zero where the only value is zero. `nullable` is False only where no row can give NULL. `unit`
    is year, quarter, month or week where a DATE is always the first day of one. `texts` is how many texts a TEXT is put
    together from, and `weight` how many operations the value takes. `listing` gives all values that are not NULL, or
    None where they are more than its argument, of what has no bounds, or fewer values than its bounds have. `capped` is
    the same clamped to what the policy's caps leave of one unit, where it has no bounds without them
    (`plan/caps.py`). `is_per_unit` says that the rows of a unit have the same value, or NULL. `postgres_type` is
    PostgreSQL's type of an INT, which `/` asks for: no two scalars differ by it, and no key has it.
    """

    scalar: Scalar
    type: Type | None
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    nullable: bool = True
    unit: str | None = None
    texts: int = 1
    weight: int = 1
    listing: Listing | None = field(default=None, compare=False, repr=False)
    capped: TypedScalar | None = None
    is_per_unit: bool = False
    postgres_type: PostgresType = field(default=PostgresType.INTEGER, compare=False, repr=False)

    @property
    def is_bounded(self) -> bool:
        """Whether both bounds are known and are more than those of the machine."""
        return self.lower is not None and self.upper is not None and not self.is_undeclared

    @property
    def is_null(self) -> bool:
        """Whether what is computed from constants and typed columns so is NULL in every row."""
        return self.type is None and not self.is_per_unit

    @property
    def has_whole_quotient(self) -> bool:
        """Whether PostgreSQL has an integer type for it, so that `/` between two of the kind cuts the quotient off."""
        return self.type is Type.INT and self.postgres_type < PostgresType.NUMERIC

    @property
    def is_undeclared(self) -> bool:
        """Whether this is an integer that 64 bits alone bound, on one side at least."""
        return self.type is Type.INT and (self.lower == LEAST_INT or self.upper == MOST_INT)
