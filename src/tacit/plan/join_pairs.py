"""An equality between two relations that a join matches rows by, and what its sides name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar
from tacit.plan.relation import Field, Relation, RowReference
from tacit.query.nodes import ColumnReference, Scalar
from tacit.query.types import Type


@dataclass(frozen=True)
class JoinPair:
    """An equality between two relations: on each side the field, if it is one, and the scalar."""

    ours: Field | None
    theirs: Field | None
    left: TypedScalar
    right: TypedScalar

    @property
    def is_of_units(self) -> bool:
        """Whether both sides are units."""
        return self.ours is not None and self.theirs is not None and self.ours.is_unit and self.theirs.is_unit

    @property
    def links(self) -> tuple[RowReference, RowReference] | None:
        """What both sides name, where equal values name the same row of a private table."""
        one = None if self.ours is None else self.ours.link
        other = None if self.theirs is None else self.theirs.link
        return None if one is None or other is None or not one.names_same_row(other) else (one, other)

    def as_stored(self) -> JoinPair:
        """The equality of what is stored, where both sides name a row: clamped, two keys could be equal."""
        if self.links is None:
            return self
        one, other = (ColumnReference(link.column) for link in self.links)
        return replace(self, left=replace(self.left, scalar=one), right=replace(self.right, scalar=other))


def make_pair(left: Relation, right: Relation, ours: Scalar, theirs: Scalar) -> JoinPair:
    """An equality between two relations, or Refused where its sides cannot be compared.

    **Rule.** A column without a type, such as a unit that is not listed, is compared with what is stored alike alone:
    a unit with a unit, a key with what names it. Beside a value of a type an engine would convert one of them, and two
    texts that differ, as 1 and 01, may be equal to one unit, or a unit that is no number may make the question fail.
    """
    one, first = _side(left, ours)
    two, second = _side(right, theirs)
    pair = JoinPair(one, two, first, second)
    for relation, found, scalar in ((left, one, ours), (right, two, theirs)):
        if found is not None and found.is_unlisted_link and pair.links is None:
            assert isinstance(scalar, ColumnReference)
            raise relation.no_column(scalar)
    if None in (first.type, second.type) and not pair.is_of_units and pair.links is None:
        what = "a unit or key that is not listed cannot be matched with values of a type"
        fix = "match it with the unit of another table, or ask the owner to list its column"
        raise Refused(ErrorCode.TYPE, what, at=getattr(ours, "at", None), fix=fix)
    if first.type is not second.type and None not in (first.type, second.type):
        what = f"{first.type} and {second.type} do not go together"
        raise Refused(ErrorCode.TYPE, what, at=getattr(ours, "at", None), fix="join columns of one type")
    if first.type is Type.FLOAT:
        what = "a join on floats is not answered"
        raise Refused(
            ErrorCode.UNSUPPORTED, what, at=getattr(ours, "at", None), fix="join on int, text or date columns"
        )
    return pair


def _side(relation: Relation, scalar: Scalar) -> tuple[Field | None, TypedScalar]:
    """One side of an equality. A unit, and what is unique, is taken as it lies: clamped, two of them could be equal."""
    scalar = relation.bare(scalar)
    found = relation.field_of(scalar, links=True) if isinstance(scalar, ColumnReference) else None
    if found is not None and found.is_unit and relation.unit is not None:
        return found, replace(found.bound, scalar=ColumnReference(relation.unit))
    if found is not None and found.is_unlisted_link:
        return found, found.bound
    if found is not None and found.unique:
        return found, replace(found.bound, scalar=ColumnReference(found.raw))
    return found, relation.bind(scalar)
