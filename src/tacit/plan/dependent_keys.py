"""Keys that depend on each other: of those computed from one column, the combinations that its values have are listed.

    SELECT ordered, DATE_TRUNC('month', ordered), COUNT(*) FROM orders GROUP BY 1, 2

**Rule.** Let several keys with public values be computed from one and the same column of a table, for which the policy
declares values or bounds. Listed are the combinations that these keys have for a declared value or NULL, where those
parts of WHERE are true that are about this column alone; with them go all combinations of the other keys.

*Proof that no group is lost.* A value outside the bounds is read as the nearest bound, so every row has the keys of a
value within. A column with declared values may hold others, for which CASE has a key as well. So its combinations are
listed only where the column itself is one of the keys, or WHERE compares it with declared values: a row with another
value is in no group then.

**Theorem.** The release is (epsilon, delta)-DP as that of all combinations is. *Proof.* The list is a function of the
question and the policy, and what is released is that of the groups on it, noise included, of fewer groups.

A timestamp has too many values. Where it is read in whole hours or days, say, no key changes within one of these, and
the list is that of their starts: `_find_grain`.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from math import gcd, prod
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from tacit.answers.released_table import ARROW_TYPES, connection
from tacit.answers.stored import GroupKeys
from tacit.engines.scalars import write_scalar
from tacit.plan.key_sources import KeySources
from tacit.plan.letter_case import is_case_known
from tacit.policy.model import Column, Policy
from tacit.query.conditions import conjuncts, named_columns
from tacit.query.functions import WRITES_TEXT, Function
from tacit.query.nodes import (
    Call,
    Clamp,
    ColumnReference,
    GroupKey,
    Literal,
    Placeholder,
    RelationalNode,
    Scalar,
    Scan,
    children,
    walk,
)
from tacit.query.timestamps import DAY
from tacit.query.types import Key, Type

_MOST_VALUES = 50_000  # of a column: more than a century of days
_MOST_TEXTS = 2_000  # where a text is put together from them
_MOST_OPERATIONS = 10_000_000  # to compute all keys and conditions for all values: a fraction of a second
_MOST_PRODUCT = 1_000_000  # of the values of all keys, which engines number


class KeyList(NamedTuple):
    """Some keys of a question, by their places, and the combinations of values that they have."""

    places: tuple[int, ...]
    values: tuple[GroupKeys, ...]


def list_dependent_keys(
    keys: Sequence[GroupKey], rows: RelationalNode, where: Scalar | None, policy: Policy
) -> list[KeyList]:
    """The lists of keys with public values, by what they depend on; a key that depends on no other has its own.

    WHERE in a subquery of rows narrows a key as well: of WHERE around it `KeyNarrowing` knows.
    """
    public = [place for place, key in enumerate(keys) if key.values is not None]
    alone = [KeyList((place,), tuple((value,) for value in keys[place].values or ())) for place in public]
    if not policy.lists_dependent_keys or prod(len(each.values) for each in alone) > _MOST_PRODUCT:
        return alone
    found = KeySources.of(rows, [key.scalar for key in keys], where)
    columns = _declared_columns(found, policy)
    narrowed = {name for part in found.conditions[len(conjuncts(where)) :] for name in named_columns(part)}
    by_column: dict[str, list[int]] = {}
    for place in public:
        names = named_columns(found.keys[place])
        if len(names) == 1 and not _has_placeholder(found.keys[place]):
            by_column.setdefault(min(names), []).append(place)
    joined: list[KeyList] = []
    for name, places in by_column.items():
        if name in columns and (len(places) > 1 or name in narrowed):
            values = _list_image(name, columns[name], places, keys, found, policy.has_ascii_case)
            if 0 < len(values) < prod(len(keys[place].values or ()) for place in places):
                joined.append(KeyList(tuple(places), values))
    listed = {place for each in joined for place in each.places}
    return [*joined, *(each for each in alone if each.places[0] not in listed)]


def count_groups(lists: Sequence[KeyList]) -> int:
    """How many combinations there are of what is listed."""
    return prod(len(each.values) for each in lists)


def combine(lists: Sequence[KeyList], keys: Sequence[GroupKey]) -> tuple[GroupKeys, ...]:
    """All combinations of what is listed, those of the last key that is listed changing first."""
    places = sorted(place for each in lists for place in each.places)
    order: dict[int, dict[Key | None, int]] = {
        place: {value: at for at, value in enumerate(keys[place].values or ())} for place in places
    }
    found: list[dict[int, Key | None]] = [{}]
    for each in lists:
        found = [group | dict(zip(each.places, values, strict=True)) for group in found for values in each.values]
    groups = [tuple(group[place] for place in places) for group in found]
    return tuple(sorted(groups, key=lambda group: [order[p][value] for p, value in zip(places, group, strict=True)]))


def _declared_columns(found: KeySources, policy: Policy) -> dict[str, Column]:
    """The columns of tables that are named in a question, by their names in it."""
    columns: dict[str, Column] = {}
    for source in found.sources:
        if isinstance(source.rows, Scan):
            table = policy.declared_table(source.rows.table)
            declared = {} if table is None else {column.name.lower(): column for column in table.columns}
            columns |= {here: declared[name.lower()] for name, here in source.rows.columns if name.lower() in declared}
    return columns


def _list_image(
    name: str, column: Column, places: list[int], keys: Sequence[GroupKey], found: KeySources, ascii_case: bool
) -> tuple[GroupKeys, ...]:
    """The combinations of some keys for all values of the column that they are computed from; empty where not known."""
    scalars = [found.keys[place] for place in places]
    about = [part for part in found.conditions if named_columns(part) == {name} and not _has_placeholder(part)]
    values = _list_values(column, scalars)
    if values is None or (column.values is not None and not _has_declared_value(column.values, scalars, about)):
        return ()
    if not all(is_case_known(scalar, values, ascii_alone=ascii_case) for scalar in scalars):
        return ()
    about = [part for part in about if is_case_known(part, values, ascii_alone=ascii_case)]
    if column.type is Type.TIMESTAMP:
        grain = _common_grain(scalars, column)
        grains = [_find_grain(part, column) for part in about]
        about = [part for part, own in zip(about, grains, strict=True) if _is_multiple(own, grain)]
    if len(values) * sum(1 for part in (*scalars, *about) for _ in walk(part)) > _MOST_OPERATIONS:
        return ()
    shown = [set(keys[place].values or ()) for place in places]
    image = _compute(name, column.type, values, scalars, about)
    return tuple(row for row in image if all(value in known for value, known in zip(row, shown, strict=True)))


def _is_multiple(own: int | None, grain: int | None) -> bool:
    """Whether a condition of the grain `own` changes only where the keys of the other grain do; 0 never changes."""
    return own is not None and (own % grain == 0 if grain else own == 0)


def _has_placeholder(scalar: Scalar) -> bool:
    return any(isinstance(node, Placeholder) for node in walk(scalar))


def _has_declared_value(values: tuple[Key, ...], scalars: list[Scalar], about: list[Scalar]) -> bool:
    """Whether a column has a declared value in every row that is in a group."""
    if any(isinstance(scalar, ColumnReference) for scalar in scalars):
        return True
    for part in about:
        match part:
            case Call(Function.EQUAL | Function.IN, (ColumnReference(), *others)):
                if all(isinstance(other, Literal) and other.value in values for other in others):
                    return True
    return False


def _compute(
    name: str, kind: Type, values: list[Any], scalars: list[Scalar], about: list[Scalar]
) -> list[tuple[Any, ...]]:
    """What scalars of one column give for values of it that meet conditions, each combination once."""
    results = ", ".join(f"{write_scalar(scalar)} AS k{place}" for place, scalar in enumerate(scalars))
    where = "".join(f" {'AND' if place else 'WHERE'} ({write_scalar(part)})" for place, part in enumerate(about))
    cursor = connection(os.getpid()).cursor()
    try:
        cursor.register("declared_values", pa.table({name: pa.array(values, ARROW_TYPES[kind])}))
        return cursor.execute(f"SELECT DISTINCT {results} FROM declared_values{where}").fetchall()
    except duckdb.Error:  # of a value for which one is not defined: all combinations are listed
        return []
    finally:
        cursor.close()


def _list_values(column: Column, scalars: list[Scalar]) -> list[Any] | None:
    """The values of a column that have all combinations of scalars of it, and NULL; None where they are too many."""
    functions = {node.function for scalar in scalars for node in walk(scalar) if isinstance(node, Call)}
    most = _MOST_VALUES if functions.isdisjoint(WRITES_TEXT) else _MOST_TEXTS
    if column.values is not None:
        known = None if column.other is not None else list(column.values)
        return None if known is None or len(known) > most else [*known, None]
    if column.type is Type.BOOL:
        return [False, True, None]
    if column.lower is None or column.upper is None or column.type not in {Type.INT, Type.DATE, Type.TIMESTAMP}:
        return None
    low, high, grain = int(column.lower), int(column.upper), 1
    if column.type is Type.TIMESTAMP:
        common = _common_grain(scalars, column)
        if common is None:
            return None
        grain = common or high + 1
    if high // grain - low // grain >= most:
        return None
    numbers = [low, *range((low // grain + 1) * grain, high + 1, grain)]
    return [*(map(datetime.date.fromordinal, numbers) if column.type is Type.DATE else numbers), None]


def _common_grain(scalars: list[Scalar], column: Column) -> int | None:
    grains = [_find_grain(scalar, column) for scalar in scalars]
    return None if None in grains else gcd(*(grain for grain in grains if grain is not None))


def _find_grain(scalar: Scalar, column: Column) -> int | None:
    """A number of microseconds such that a scalar of a timestamp changes at multiples of it alone.

    0 where it never changes; None where no such number is known.
    """
    parts: list[int | None]
    match scalar:
        case ColumnReference():
            return None
        case Call(Function.DATE_OF, (moment,)):
            parts = [DAY, _find_shift(moment, column)]
        case Call(Function.QUOTIENT, (Call(Function.MOD, (moment, Literal(int() as cycle))), Literal(int() as size))):
            parts = [cycle, size, _find_shift(moment, column)]
        case Call(Function.QUOTIENT, (moment, Literal(int() as size))):
            parts = [size, _find_shift(moment, column)]
        case Call(Function.LESS | Function.GREATER_EQUAL, (moment, Literal(int() as other))):
            parts = [other, _find_shift(moment, column)]
        case _:
            parts = [None]
    if None in parts:
        parts = [_find_grain(part, column) for part in children(scalar)]
    known = [part for part in parts if part is not None]
    return gcd(*known) if len(known) == len(parts) else None


def _find_shift(scalar: Scalar, column: Column) -> int | None:
    """By how many microseconds a scalar is later than the timestamp; None where it is not that timestamp, shifted."""
    match scalar:
        case ColumnReference():
            return 0
        case Clamp(operand, lower, upper) if (lower, upper) == (column.lower, column.upper):
            return _find_shift(operand, column)
        case Call(Function.ADD, (moment, Literal(int() as more))):
            shift = _find_shift(moment, column)
            return None if shift is None else shift + more
    return None
