"""What is computed of constants, where every engine computes it as Python does.

**Rule.** The planner looks at the values of tables in the text to know that a row finds at most one of theirs
(`plan/constants.py`, `plan/range_join.py`). The join is computed by an engine. So it looks only where the two cannot
differ: where nothing but what is listed here is computed, of texts whose letters have one case everywhere if LOWER or
UPPER is among it. All else may be several rows, and is refused.

What is listed is exact: it is about integers, dates, conditions and the characters of texts, or is one operation on
floats that IEEE 754 rounds in one way. A product of floats is that only where PostgreSQL computes it as it is written:
it reads operands next to zero as zero, unless one of both is a whole number or a constant of at least one in size
(`engines/underflow.py`). Quotients are not listed, since PostgreSQL's have no subnormal numbers, nor are logarithms,
powers and roots, nor aggregates and windows, whose rows may be in another order.
"""

from __future__ import annotations

from collections.abc import Iterator

from tacit.engines.underflow import guards_products
from tacit.plan.letter_case import CHANGES_CASE, is_case_known
from tacit.query.functions import COMPARISONS, CONDITIONS, DATE_PARTS, Function
from tacit.query.nodes import (
    Call,
    Case,
    Clamp,
    ColumnReference,
    Constants,
    EquiJoin,
    Literal,
    Projection,
    RelationalNode,
    RowUnion,
    Scalar,
    ToFloat,
    walk,
)

_ALIKE = (
    COMPARISONS
    | CONDITIONS
    | DATE_PARTS
    | CHANGES_CASE
    | {
        Function.ADD,
        Function.SUBTRACT,
        Function.MULTIPLY,
        Function.NEGATE,
        Function.ABS,
        Function.SIGN,
        Function.FLOOR,
        Function.CEIL,
        Function.MOD,
        Function.QUOTIENT,
        Function.LEAST,
        Function.GREATEST,
        Function.COALESCE,
        Function.IN,
        Function.IS_NULL,
        Function.LIKE,
        Function.LENGTH,
        Function.SUBSTRING,
        Function.RIGHT,
        Function.CONCAT,
        Function.REPLACE,
        Function.SPLIT_PART,
        Function.POSITION,
        Function.TRIM,
        Function.LTRIM,
        Function.RTRIM,
        Function.LPAD,
        Function.RPAD,
        Function.TO_TEXT,
        Function.DATE_TRUNC,
        Function.DATE_OF,
        Function.DAYS,
        Function.ADD_MONTHS,
    }
)


def is_computed_alike(rows: RelationalNode, scalars: list[Scalar]) -> bool:
    """Whether every engine has the same rows of constants, and the same values of these scalars of them."""
    inside = _scalars(rows)
    if inside is None or guards_products(rows, scalars):
        return False
    return _are_alike([*inside, *scalars], list_texts(rows))


def is_distinct_alike(rows: RelationalNode, scalars: list[Scalar]) -> bool:
    """Whether scalars that differ between all rows of constants in Python do so in every engine.

    **Theorem.** Rows whose values are equal in some engine are equal in Python. Proof: where `is_computed_alike` holds,
    values are the same. Otherwise a scalar is LOWER or UPPER of a column, whose letters each have one other case at
    most, wherever they stand. Texts that are equal in an engine that changes A to Z alone differ in these letters at
    most, so they are equal in Python too. All other scalars are computed alike.
    """
    if is_computed_alike(rows, scalars):
        return True
    return is_computed_alike(rows, list(map(_drop_case, scalars))) and all(
        is_case_known(scalar, list_texts(rows), ascii_alone=False) for scalar in scalars
    )


def list_texts(rows: RelationalNode) -> list[str]:
    """The texts of tables of constants."""
    match rows:
        case Constants(_, values):
            return [value for row in values for value in row if isinstance(value, str)]
        case EquiJoin(left, right):
            return [*list_texts(left), *list_texts(right)]
        case RowUnion(parts):
            return [text for part in parts for text in list_texts(part)]
        case Projection(source):
            return list_texts(source)
    return []


def _scalars(rows: RelationalNode) -> list[Scalar] | None:
    """All scalars by which rows are made of constants; None where they are made in another way."""
    match rows:
        case Constants():
            return []
        case EquiJoin(left, right, on):
            below, pairs = [_scalars(left), _scalars(right)], [side for pair in on for side in pair]
        case RowUnion(parts):
            below, pairs = [_scalars(part) for part in parts], []
        case Projection(source, columns, where):
            below = [_scalars(source)]
            pairs = [*(scalar for _, scalar in columns), *([] if where is None else [where])]
        case _:
            return None
    found = list(pairs)
    for scalars in below:
        if scalars is None:
            return None
        found += scalars
    return found


def _are_alike(scalars: list[Scalar], texts: list[str]) -> bool:
    nodes = [node for scalar in scalars for node in walk(scalar)]
    if not all(map(_is_alike, nodes)):
        return False
    known = [*texts, *_list_literals(nodes)]
    return all(text.isascii() for text in known) or not any(map(_changes_case, nodes))


def _list_literals(nodes: list[Scalar]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, Literal) and isinstance(node.value, str))


def _is_alike(node: Scalar) -> bool:
    if isinstance(node, Call):
        return node.function in _ALIKE
    return isinstance(node, Literal | ColumnReference | Case | Clamp | ToFloat)


def _changes_case(node: Scalar) -> bool:
    return isinstance(node, Call) and node.function in CHANGES_CASE


def _drop_case(scalar: Scalar) -> Scalar:
    """The column of which a scalar is LOWER or UPPER; any other as it is."""
    match scalar:
        case Call(function, (ColumnReference() as column,)) if function in CHANGES_CASE:
            return column
    return scalar
