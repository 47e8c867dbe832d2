"""How far a column of an answer may be off, where that is known before it is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.arithmetic import to_rational
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.query.nodes import ReleasedValue

_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class WantedAccuracy:
    """How close each named column shall be to its bounded value, and how often."""

    widths: tuple[tuple[str, Fraction], ...]
    confidence: Fraction

    @classmethod
    def parse(cls, within: Mapping[str, Any], confidence: Fraction) -> WantedAccuracy:
        """Read the widths as they are given."""
        if not isinstance(within, Mapping) or not within:
            raise ParameterError("within", "does not name a column", fix='within={"n": 50}')
        examples = {str(name): f"{{{_quote(name)}: 50}}" for name in within}
        wanted = {str(name): to_rational("within", width, examples[str(name)]) for name, width in within.items()}
        for name, width in wanted.items():
            if width <= 0:
                raise ParameterError("within", f"{name} must be above zero", fix=f"within={examples[name]}")
        return cls(tuple(wanted.items()), confidence)

    def is_met(self, recipe: PostProcessingPlan) -> bool:
        """Whether all named columns are so close; Refused where that is not known of one."""
        return all(find_column_error(recipe, name, self.confidence) <= width for name, width in self.widths)

    def describe_errors(self, recipe: PostProcessingPlan) -> str:
        """The widths that a recipe reaches, as `within` takes them."""
        errors = ((name, find_column_error(recipe, name, self.confidence)) for name, _ in self.widths)
        return ", ".join(f"{_quote(name)}: {_round_up(error):g}" for name, error in errors)


def _quote(name: object) -> str:
    """The name of a column as Python's text."""
    return json.dumps(str(name), ensure_ascii=False)


def _round_up(error: Fraction) -> Decimal:
    """A number of six digits that is not below an error: a width that is reached."""
    return _SIX_DIGITS.divide(Decimal(error.numerator), Decimal(error.denominator)).normalize(_SIX_DIGITS)


def find_column_error(recipe: PostProcessingPlan, name: str, confidence: Fraction) -> Fraction:
    """Return how far a column may be off; refused where that depends on the data."""
    found = next((result for result in recipe.results if result.name.lower() == name.lower()), None)
    if found is None:
        names = ", ".join(result.name for result in recipe.results)
        raise ParameterError("within", f"there is no column {name!r}", fix=f"the columns are {names}")
    value = recipe.values[found.scalar.index] if isinstance(found.scalar, ReleasedValue) else None
    error = None if value is None else value.half_width(recipe.parts, confidence)
    if error is None:
        raise Refused(
            ErrorCode.PARAMETER,
            f"the error of {name} depends on the data, so no epsilon can be found for it",
            fix="name a COUNT or SUM column; explain shows the error of others for several numbers of rows",
        )
    return error
