"""Public keys of an expression: those that follow from the values that the policy declares, and from constants.

**Rule.** A list of keys is a function of the question and the policy, so showing all of it tells nothing of the data.
Of CASE and COALESCE the keys are those of their results. Of an expression of one column with declared values they are
what it gives for each of these, and for NULL. A row whose column holds another value has another key, if any, and is in
no group: as it is where the column itself is grouped by. So a column that has a key for all others gives no such list.
Nor has LOWER or UPPER of a text with a letter that engines change in different ways (`plan/letter_case.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tacit.engines.evaluate import evaluate
from tacit.plan.narrow import KeyNarrowing
from tacit.plan.relation import Field, Relation
from tacit.query.functions import Function
from tacit.query.nodes import Call, Case, ColumnReference, Literal, Scalar, walk
from tacit.query.types import Key, Type

_LISTED_TYPES = frozenset({Type.TEXT, Type.INT})


def list_keys(scalar: Scalar, relation: Relation, narrowing: KeyNarrowing, most: int) -> tuple[Key, ...] | None:
    """The keys that an expression has, in the order in which they are declared or written; None without a list."""
    if relation.bind(scalar).type not in _LISTED_TYPES:
        return None
    found = _list(scalar, relation, narrowing)
    if found is None:
        return None
    keys = tuple(dict.fromkeys(key for key in found if key is not None))
    return keys if 0 < len(keys) <= most else None


def _list(scalar: Scalar, relation: Relation, narrowing: KeyNarrowing) -> list[Key | None] | None:
    match scalar:
        case Literal(None):
            return []
        case Literal(str() | int() as value):
            return [value]
        case Case(branches, otherwise):
            return _join((*(then for _, then in branches), otherwise), relation, narrowing)
        case Call(Function.COALESCE, arguments):
            return _join(arguments, relation, narrowing)
    field = _only_column(scalar, relation)
    if field is None or field.values is None or field.other is not None or field.is_unit:
        return None
    declared = narrowing.values(ColumnReference(field.name, field.source or None), field.values, len(field.values))
    if isinstance(scalar, ColumnReference):
        return None if declared is None else list(declared)
    columns = {node.name for node in walk(field.bound.scalar) if isinstance(node, ColumnReference)}
    if len(columns) != 1:
        return None
    if not narrowing.knows_case(scalar, declared or field.values):
        return None
    (column,), bound = columns, relation.bind(scalar).scalar
    values = (evaluate(bound, {column: key}) for key in (*(declared or field.values), None))
    return [value for value in values if isinstance(value, str | int) and not isinstance(value, bool)]


def _join(results: Iterable[Scalar], relation: Relation, narrowing: KeyNarrowing) -> list[Key | None] | None:
    keys: list[Key | None] = []
    for result in results:
        found = _list(result, relation, narrowing)
        if found is None:
            return None
        keys += found
    return keys


def _only_column(scalar: Scalar, relation: Relation) -> Field | None:
    """The one column that an expression is made of; None where there are several, or none."""
    fields = [relation.field_of(node) for node in walk(scalar) if isinstance(node, ColumnReference)]
    return fields[0] if fields and all(field == fields[0] for field in fields) else None
