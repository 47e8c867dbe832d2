"""Sources with commas or CROSS JOIN between them, joined by the equalities of WHERE.

**Rule.** FROM a, b WHERE a.id = b.id AND c is FROM a JOIN b ON a.id = b.id WHERE c: both are the pairs of rows for
which all conditions hold. An equality of which each side is about other sources becomes the condition of a join.
Sources are joined in the order of the text, as far as equalities connect them to what is joined already; one whose join
keeps every row one unit's goes first. What an OR demands in each of its branches is demanded, and stays in WHERE too.
The rest of WHERE stays as it is. Of a LEFT JOIN it reaches into the left side alone, where it commutes with the join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from tacit.errors import Refused
from tacit.plan.foreign_keys import joins_of
from tacit.plan.join import join_relations
from tacit.plan.join_conditions import common_equalities
from tacit.plan.relation import Relation, belongs_to
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import (
    Call,
    ColumnReference,
    Exists,
    FromItem,
    InSubquery,
    Join,
    Query,
    Scalar,
    ScalarSubquery,
    SemiJoin,
    find_location,
    walk,
)

Look = Callable[[FromItem], Relation]
"""Tells what a source means, to look names up; with all keys that are not listed."""


def connect_sources(query: Query, look: Look) -> Query:
    """The query with the equalities of WHERE as the conditions of joins that have none."""
    source, lifted = _lift(query.source)
    if not lifted and not _has_cross(source):
        return query
    source, rest = _connect(source, [*conjuncts(query.where), *lifted], look)
    return replace(query, source=source, where=all_of(rest, query.where))


def _lift(source: FromItem) -> tuple[FromItem, list[Scalar]]:
    """The source without conditions of inner joins that hold a subquery: in WHERE they mean the same."""
    if not isinstance(source, Join | SemiJoin):
        return source, []
    left, lifted = _lift(source.left)
    if isinstance(source, SemiJoin) or source.outer:
        return replace(source, left=left), lifted
    right, others = _lift(source.right)
    parts = conjuncts(source.on)
    own = [part for part in parts if any(isinstance(node, InSubquery | Exists | ScalarSubquery) for node in walk(part))]
    on = all_of([part for part in parts if part not in own], source.on)
    if own and on is None and not source.using:
        return replace(source, left=left, right=right), [*lifted, *others]
    return replace(source, left=left, right=right, on=on), [*lifted, *others, *own]


def all_of(conditions: list[Scalar], former: Scalar | None) -> Scalar | None:
    """One condition of several, at the place of the former one."""
    if len(conditions) > 1:
        return Call(Function.AND, tuple(conditions), None if former is None else find_location(former))
    return conditions[0] if conditions else None


def has_own_column(relation: Relation, node: ColumnReference) -> bool:
    """Whether a name means a column that a relation has itself."""
    return any(f.name.lower() == node.name.lower() and belongs_to(f, node.table) for f in relation.fields)


def has_column(relation: Relation, node: ColumnReference) -> bool:
    """Whether a name means a column of a relation, or one that is implied: its own come before those of any other."""
    implied = any(f.name.lower() == node.name.lower() and belongs_to(f, node.table) for f in relation.implied)
    return implied or has_own_column(relation, node)


def _has_cross(source: FromItem) -> bool:
    return any(join.is_cross for join in joins_of(source))


def _connect(source: FromItem, conditions: list[Scalar], look: Look) -> tuple[FromItem, list[Scalar]]:
    """The source with conditions in its joins, and the conditions that are left."""
    if not isinstance(source, Join | SemiJoin) or not _has_cross(source):
        return source, conditions
    if isinstance(source, SemiJoin) or source.outer or source.using or source.natural or source.kept:
        left, rest = _connect(source.left, conditions, look)
        right, _ = _connect(source.right, [], look)
        return replace(source, left=left, right=right), rest
    found = list(_flatten(source))
    conditions = [*(condition for _, on in found for condition in on), *conditions]
    items = []
    for item, _ in found:
        connected, conditions = _connect(item, conditions, look)
        items.append(_Item(connected, look(connected)))
    return _Sources(items, conditions).join()


def _flatten(source: FromItem) -> Iterator[tuple[FromItem, list[Scalar]]]:
    """The sources of inner joins from left to right, each with the conditions of its join."""
    if not isinstance(source, Join) or source.outer or source.using or source.natural or source.kept:
        yield source, []
        return
    yield from _flatten(source.left)
    first, *others = _flatten(source.right)
    yield first[0], [*first[1], *conjuncts(source.on)]
    yield from others


_Equality = tuple[Scalar, set[int], set[int]]
"""A condition, and the sources that each of its sides is about."""


@dataclass(frozen=True)
class _Item:
    source: FromItem
    relation: Relation


class _Sources:
    """Sources, and the conditions between them."""

    def __init__(self, items: list[_Item], conditions: list[Scalar]) -> None:
        self.items = items
        self.conditions = conditions
        # Those that an OR demands are conditions too; they stay in the OR, so nothing is lost where none is used.
        self.demanded = [equal for condition in conditions for equal in common_equalities(condition)]

    def join(self) -> tuple[FromItem, list[Scalar]]:
        """One source, and the conditions that no join took."""
        taken: list[Scalar] = []
        equalities = self.find_equalities()
        joined, tree, known = {0}, self.items[0].source, self.items[0].relation
        left = list(range(1, len(self.items)))
        while left:
            choices = [(one, on) for one in left if (on := self.between(joined, one, equalities))] or [(left[0], [])]
            one, on = choices[0]
            for choice, condition in choices:
                sound = self.try_join(known, self.items[choice], self.make(tree, choice, condition))
                if sound is not None:
                    one, on, known = choice, condition, sound
                    break
            tree = self.make(tree, one, on)
            joined.add(one)
            left.remove(one)
            taken += on
        return tree, [condition for condition in self.conditions if not any(condition is one for one in taken)]

    def find_equalities(self) -> dict[int, list[_Equality]]:
        """The equalities between sources, by each source that they are about."""
        found: dict[int, list[_Equality]] = {number: [] for number in range(len(self.items))}
        for condition in (*self.conditions, *self.demanded):
            sides = self.sides(condition)
            for number in () if sides is None else sides[0] | sides[1]:
                assert sides is not None
                found[number].append((condition, *sides))
        return found

    def make(self, tree: FromItem, one: int, on: list[Scalar]) -> Join:
        item = self.items[one].source
        at = find_location(on[0]) if on else item.at
        return Join(tree, item, all_of(on, on[0]) if on else None, (), False, at)

    def try_join(self, known: Relation, item: _Item, node: Join) -> Relation | None:
        """The join, where it keeps every row one unit's."""
        if node.on is None:
            return None
        try:
            return join_relations(known, item.relation, node, (f"look{number}" for number in count()))
        except Refused:
            return None

    def between(self, joined: set[int], one: int, equalities: dict[int, list[_Equality]]) -> list[Scalar]:
        """The equalities between what is joined and one source more."""
        return [
            condition
            for condition, first, second in equalities[one]
            if (first <= joined and second == {one}) or (second <= joined and first == {one})
        ]

    def sides(self, condition: Scalar) -> tuple[set[int], set[int]] | None:
        """The sources that each side of an equality is about; None where it is no equality, or a name is not clear."""
        if not isinstance(condition, Call) or condition.function != Function.EQUAL:
            return None
        first, second = (self.about(side) for side in condition.arguments)
        return (first, second) if first and second and first.isdisjoint(second) else None

    def about(self, scalar: Scalar) -> set[int]:
        found: set[int] = set()
        for node in walk(scalar):
            if isinstance(node, ColumnReference):
                own = [number for number, item in enumerate(self.items) if has_own_column(item.relation, node)]
                named = own or [number for number, item in enumerate(self.items) if has_column(item.relation, node)]
                if len(named) != 1:
                    return set()
                found.update(named)
        return found
