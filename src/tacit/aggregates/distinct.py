"""SUM, AVG, VARIANCE and STDDEV of DISTINCT values: what each group measures of the set of its values.

**Theorem.** Give each value v of a grid a weight w(v) in [lower, upper], with lower <= 0 <= upper, and let a group's
number be the sum of w over the values that occur in it. Between neighbors it moves as a sum does to which each row
adds an integer in [lower, upper], so that it has the same sensitivity in L1 and in L2.

*Proof.* Let O be the values in a group of all other units, and A and B those of the unit in the two neighbors (one of
them empty where it is added or removed). The number moves by w(A - O - B) - w(B - O - A), where w of a set is the sum
over it. Take of the unit's rows one for each value of A - O - B, and of B - O - A: what is left are two units within
the same bounds on groups and rows, and the sum of w over rows moves by just as much when they take each other's place.
Where a row is its own unit, the same holds for each single row.

COUNT(DISTINCT x) is the case w = 1. A value's presence changes only where nobody else has it, which is why most units
move nothing; but the noise must do for those that do.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import QuantizedArgument, VectorMeasurement
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Clamp, ExactStatistic, Literal


def distinct_total(aggregate: Aggregate, quantized: QuantizedArgument) -> VectorMeasurement:
    """Return the sum of the values that occur: w(v) = v."""
    terms = ((1, ExactStatistic("distinct_sum", quantized.scalar)),)
    lower, upper = min(quantized.lower, 0), max(quantized.upper, 0)
    return VectorMeasurement(terms, lower, upper, quantized.step, name=quote_aggregate(aggregate))


def distinct_centered_measurements(
    aggregate: Aggregate, quantized: QuantizedArgument
) -> tuple[VectorMeasurement, VectorMeasurement]:
    """Return the centered sum of the values that occur, w(v) = 2v - (lower + upper), and their number."""
    width, number = quantized.upper - quantized.lower, ExactStatistic("distinct", quantized.scalar)
    terms = (
        (2, ExactStatistic("distinct_sum", quantized.scalar)),
        (-(quantized.lower + quantized.upper), number),
    )
    quoted = quote_aggregate(aggregate)
    centered = VectorMeasurement(terms, -width, width, quantized.step / 2, name=f"centered sum of {quoted}")
    return centered, VectorMeasurement(((1, number),), 0, 1, Fraction(1), name=f"count of {quoted}")


def distinct_squares(aggregate: Aggregate, quantized: QuantizedArgument) -> VectorMeasurement:
    """Return the centered squares of the values that occur: w(v) = 2 y^2 - W^2, y = 2v - (lower + upper), W the width.

    Two values on both sides of the center have the same y^2, so that it cannot be added up once for each of them. With
    z = v - lower, whose square tells values apart, y = 2z - W and w(v) = 8 z^2 - 8 W z + W^2.
    """
    lower, width = quantized.lower, quantized.upper - quantized.lower
    shifted = Call(Function.SUBTRACT, (quantized.scalar, Literal(lower)))
    square = Clamp(Call(Function.MULTIPLY, (shifted, shifted)), Fraction(0), Fraction(width**2), whole=True)
    terms = (
        (8, ExactStatistic("distinct_sum", square)),
        (-8 * width, ExactStatistic("distinct_sum", quantized.scalar)),
        (width**2 + 8 * width * lower, ExactStatistic("distinct", quantized.scalar)),
    )
    name = f"centered squares of {quote_aggregate(aggregate)}"
    return VectorMeasurement(terms, -(width**2), width**2, quantized.step**2 / 8, name=name)
