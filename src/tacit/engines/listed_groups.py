"""Groups that are listed by their keys, as rows of constants that rows are matched with by equal values."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from tacit.query.conditions import conjunction, conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    ColumnReference,
    Constants,
    EquiJoin,
    Literal,
    Scalar,
    column_names,
)
from tacit.query.types import Key, Type

Group = tuple[Key | None, ...]
Pairs = tuple[tuple[Scalar, Scalar], ...]


def match_groups(
    keys: Sequence[Scalar],
    groups: Sequence[Group],
    told: tuple[str, Type, Sequence[Key | None]],
    prefix: str = "",
) -> tuple[Constants, Pairs]:
    """A row for each group, and the pairs of which all are equal where `keys` are those of the group.

    As a join of equal values, which every engine can hash. NULL is equal to nothing. Where it is listed, another listed
    value stands for it, and whether it does is matched too. `told` is one more column: its name, type and values.
    """
    columns: list[tuple[str, Type]] = [told[:2]]
    listed: list[Sequence[Key | None]] = [told[2]]
    on: list[tuple[Scalar, Scalar]] = []
    for i, (key, values) in enumerate(zip(keys, zip(*groups, strict=True), strict=True)):
        stand_in = next((value for value in values if value is not None), None)
        ours = key
        if None in values:
            columns.append((f"{prefix}null{i}", Type.BOOL))
            listed.append([value is None for value in values])
            on.append((Call(Function.IS_NULL, (key,)), ColumnReference(f"{prefix}null{i}")))
            ours = Call(Function.COALESCE, (key, Literal(stand_in)))
        if stand_in is not None:
            columns.append((f"{prefix}value{i}", _type_of(stand_in)))
            listed.append([stand_in if value is None else value for value in values])
            on.append((ours, ColumnReference(f"{prefix}value{i}")))
    return Constants(tuple(columns), tuple(zip(*listed, strict=True))), tuple(on)


def leave_out_groups(node: Aggregation) -> Aggregation:
    """The same aggregation without `excluded`: a join that keeps all rows says which of them are in these groups.

    No two of the groups are equal, so a row finds one at most, and none is there twice.
    """
    if not node.excluded:
        return replace(node, excluded=None)
    prefix = "excluded_"
    while any(name.startswith(prefix) for name in column_names(node.source)):
        prefix += "_"
    found = f"{prefix}is_listed"
    groups = list(dict.fromkeys(node.excluded))
    listed, on = match_groups(
        [key.scalar for key in node.keys], groups, (found, Type.BOOL, [True] * len(groups)), prefix
    )
    is_other = Call(Function.IS_NULL, (ColumnReference(found),))
    source = EquiJoin(node.source, listed, on, outer=True)
    return replace(node, source=source, where=conjunction([*conjuncts(node.where), is_other]), excluded=None)


def _type_of(value: Key) -> Type:
    match value:
        case bool():
            return Type.BOOL
        case int():
            return Type.INT
        case datetime.date():
            return Type.DATE
    return Type.TEXT
