"""The condition of a join: its conjuncts, and the equalities among them that match rows."""

from __future__ import annotations

from tacit.plan.join_pairs import JoinPair, make_pair
from tacit.plan.joined_columns import put_together
from tacit.plan.relation import Relation
from tacit.query.conditions import conjuncts
from tacit.query.functions import Function
from tacit.query.nodes import Call, ColumnReference, Join, Scalar, walk


def common_equalities(scalar: Scalar) -> list[Scalar]:
    """The equalities that every branch of an OR has: where it holds, so do they."""
    if not isinstance(scalar, Call) or scalar.function != Function.OR:
        return []
    first, *others = [conjuncts(branch) for branch in scalar.arguments]
    equal = (part for part in first if isinstance(part, Call) and part.function == Function.EQUAL)
    return [part for part in equal if all(part in branch for branch in others)]


def find_pairs(left: Relation, right: Relation, node: Join) -> tuple[list[JoinPair], list[Scalar]]:
    """The equalities of a join between two relations, and the conditions that are none."""
    return find_pairs_among(left, right, put_together(left, right, node), node)


def find_pairs_among(
    left: Relation, right: Relation, both: Relation, node: Join
) -> tuple[list[JoinPair], list[Scalar]]:
    """The equalities between the two sides, and the conditions that are none."""
    pairs: list[JoinPair] = []
    rest: list[Scalar] = []
    for name in node.using:
        column = ColumnReference(name, at=node.at)
        pairs.append(make_pair(left, right, column, column))
    for part in conjuncts(node.on):
        sides = _sides(part, left, both)
        if sides is None:
            rest.append(part)
        else:
            pairs.append(make_pair(left, right, *sides))
    if not pairs:
        found = (_sides(part, left, both) for one in rest for part in common_equalities(one))
        pairs = [make_pair(left, right, *sides) for sides in found if sides is not None]
    return pairs, rest


def _sides(part: Scalar, left: Relation, both: Relation) -> tuple[Scalar, Scalar] | None:
    """The sides of an equality, the left relation's first, if each side is about one relation only."""
    if not isinstance(part, Call) or part.function != Function.EQUAL:
        return None
    ours = {id(f) for f in (*left.fields, *left.implied)}
    about = []
    for side in part.arguments:
        found = {id(both.field_of(n, links=True)) in ours for n in walk(side) if isinstance(n, ColumnReference)}
        about.append(found.pop() if len(found) == 1 else None)
    if about == [True, False]:
        return part.arguments[0], part.arguments[1]
    return (part.arguments[1], part.arguments[0]) if about == [False, True] else None
