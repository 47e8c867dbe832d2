"""Relations: rows, the columns that may be named, and whose rows they are. The rules are in `plan/scope.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.plan.bounds import TypedScalar
from tacit.plan.caps import Cap, bind_within_caps
from tacit.policy.model import ROW_UNIT
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Exists,
    InSubquery,
    Literal,
    RelationalNode,
    Scalar,
    rebuild,
    walk,
)
from tacit.query.refusals import to_printable as printable
from tacit.query.types import NUMERIC_TYPES, TYPES_BY_NAME, Key, Type

INTERNAL = "\0"
"""Before the names of columns that only the planner uses."""


@dataclass(frozen=True)
class RowReference:
    """What the values of a column name: a row of a private table by its `key`, which is unique there.

    **Invariant.** In every row of a relation such a value is NULL, or the key of a row of `table` that belongs to the
    same unit as the row itself. `column` is where the value lies as it is stored. `is_key` says that no two rows of the
    relation share it. `most` is how many of them may share it as the caps count, which only what is kept of a unit is
    computed from; None where nothing is known.
    """

    table: str  # in small letters, like the key
    key: str
    column: str
    is_key: bool = False
    most: int | None = None

    def names_same_row(self, other: RowReference) -> bool:
        """Whether equal values name the same row."""
        return (self.table, self.key) == (other.table, other.key)


@dataclass(frozen=True)
class Field:
    """A column that may be named: where it stands, what it gives, its public keys and the one for all others.

    `hidden` is one that only its qualified name means, because USING made it one with another. `raw` is the column of a
    scan as it lies: where it is `unique` no two rows share a value, but two of its clamped values may be equal. `link`
    is there where it names a row of a private table, by a foreign key that the policy declares. `cap` are bounds that
    the policy's caps give where there are no others. `is_matched_unit` is a column that holds the unit of its row or
    NULL, as the unit of the right side of a LEFT JOIN does. `is_null` is one that is NULL in every row: no other column
    without a type may be computed with, since it holds units or keys as they lie.
    """

    name: str
    source: str
    bound: TypedScalar
    values: tuple[Key, ...] | None = None
    other: Key | None = None
    is_unit: bool = False
    unique: bool = False
    hidden: bool = False
    raw: str = ""
    link: RowReference | None = None
    cap: Cap | None = None
    is_matched_unit: bool = False
    is_null: bool = False

    @property
    def is_unlisted(self) -> bool:
        """Whether this is a unit that is no listed column: it may be counted, joined on and grouped by, and no more."""
        return self.is_unit and self.bound.type is None

    @property
    def holds_unlisted_unit(self) -> bool:
        """Whether its values are units that no listed column has, or NULL."""
        return self.bound.type is None and (self.is_unit or self.is_matched_unit)

    @property
    def is_unlisted_link(self) -> bool:
        """Whether this is no listed column, but names a row of a table: it may be joined on and passed on, no more."""
        return self.link is not None and self.bound.type is None and not self.is_unit

    def link_in(self, column: str, scalar: Scalar) -> RowReference | None:
        """What a column that holds a scalar of this field names: the same, if that is the value as it is stored."""
        link = self.link
        return None if link is None or scalar != ColumnReference(link.column) else replace(link, column=column)

    @property
    def is_internal(self) -> bool:
        """Whether no question can name it: a question holds no such character."""
        return self.name.startswith(INTERNAL)


@dataclass(frozen=True)
class ChosenBound:
    """That what a unit adds is bounded by a clip, which is chosen for each question.

    No more than `at_most` rows add is chosen, where that is declared. `has_caps` says whether the policy also declares
    caps on rows, for what cannot be clipped.
    """

    at_most: int | None
    has_caps: bool


@dataclass(frozen=True)
class Relation:
    """Rows and what is known of them.

    `people` says whose units they are, and is None where the rows are public. `unit` is the column that holds the unit,
    or None where each row is a unit, or public. `each` is what may be kept of one unit; where each row is one, how
    often it may occur. `single` says that a unit has at most one row. `implied` are columns that a name means where no
    other has it: the unit that a table reaches through another, and keys that are not listed. `keys` are sets of
    columns, as they lie, of which no two rows share all values. `chosen` says that a clip is chosen in place of caps.
    `has_fine_grids` is False where floats are rounded as in earlier versions.
    """

    rows: RelationalNode
    fields: tuple[Field, ...]
    people: str | None
    unit: str | None
    each: ContributionBounds
    called: str = ROW_UNIT  # the name of the unit, for people
    single: bool = False
    sources: tuple[str, ...] = ()
    implied: tuple[Field, ...] = ()
    keys: tuple[frozenset[str], ...] = ()
    chosen: ChosenBound | None = None
    has_fine_grids: bool = True

    @property
    def has_caps(self) -> bool:
        """Whether `each` is what the policy declares."""
        return self.chosen is None or self.chosen.has_caps

    @property
    def most_rows(self) -> int | None:
        """The most rows of a unit that count, where that is declared."""
        return self.each.most if self.chosen is None else self.chosen.at_most

    @cached_property
    def _named(self) -> dict[str, list[Field]]:
        """The fields by their names in lower case."""
        found: dict[str, list[Field]] = {}
        for each in self.fields:
            found.setdefault(each.name.lower(), []).append(each)
        return found

    @cached_property
    def _bound(self) -> dict[Scalar, TypedScalar]:
        """The scalars that were bound: a question is read as it is written too, with most of them again."""
        return {}

    def field_of(self, node: ColumnReference, *, links: bool = False) -> Field:
        """The field that a name means, or Refused. Unlisted columns and absent ones are refused alike.

        With `links` it may also be a key that is not listed, which tables can be joined on.
        """
        if node.table is not None and node.table.lower() not in {s.lower() for s in self.sources}:
            what = f"{node.table} is not a table of this question"
            raise Refused(
                ErrorCode.UNKNOWN_TABLE, what, at=node.at, fix=f"this question is over {', '.join(self.sources)}"
            )
        found = [f for f in self._named.get(node.name.lower(), ()) if belongs_to(f, node.table)]
        if not found:
            found = [
                f
                for f in self.implied
                if f.name.lower() == node.name.lower() and belongs_to(f, node.table) and (links or f.is_unit)
            ]
            if found and all(f.is_unit for f in found):
                return found[0]  # the same unit in every row
        if not found:
            raise self.no_column(node)
        if len(found) > 1:
            first, second = (f"{one.source}.{node.name}" for one in found[:2])
            what, fix = f"{node.name} is a column of several tables", f"say which: {first} or {second}"
            raise Refused(ErrorCode.AMBIGUOUS, what, at=node.at, fix=fix, instead=first)
        return found[0]

    def no_column(self, node: ColumnReference) -> Refused:
        """A refusal of a name that is no column here."""
        where = node.table or " or ".join(self.sources)
        here = [f for f in self.fields if belongs_to(f, node.table, loose=True) and not f.is_internal]
        implied = [f for f in self.implied if belongs_to(f, node.table)]
        unit = next((f.name for f in (*here, *implied) if f.is_unlisted), "")
        listed = [f.name for f in here if not f.is_unlisted and not f.is_unlisted_link]
        return no_column(where, node, listed, unit)

    def leaf(self, node: Scalar) -> TypedScalar | None:
        """What a column's name means over rows; None for what is not a name."""
        if isinstance(node, Aggregate):
            raise Refused(
                ErrorCode.AGGREGATE,
                f"{node.function.upper()} cannot stand inside WHERE or another aggregate",
                at=node.at,
                fix="filter groups by it after they are made, and combine aggregates outside of each other",
            )
        if isinstance(node, InSubquery | Exists):
            what = "IN or EXISTS with a subquery is answered in WHERE and in what is aggregated, and not here"
            fix = "compute it in the select list of a subquery"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix=fix)
        if not isinstance(node, ColumnReference):
            return None
        found = self.field_of(node)
        if found.is_unlisted_link:
            raise refuse_link(node)
        if found.is_unlisted:
            raise refuse_unit(node)
        if found.bound.type is None and not found.is_null:
            raise refuse_link(node)
        return found.bound if found.cap is None else found.cap.add_to(found.bound)

    def bind(self, scalar: Scalar) -> TypedScalar:
        """A scalar over the rows. A unit that is no listed column may be counted where a condition holds, and no more.

        So it may stand alone as a result of CASE, whose value is then the unit of its row or NULL. One that a LEFT JOIN
        has matched may also be asked whether it is NULL. Anything else would compute with a column of no type.
        """
        found = self._bound.get(scalar)
        if found is None:
            found = self._bound[scalar] = self._bind(scalar)
        return found

    def _bind(self, scalar: Scalar) -> TypedScalar:
        # An alias may have put one object in several places, of which it is allowed in one.
        scalar = rebuild(scalar, lambda node: replace(node) if isinstance(node, ColumnReference) else None)
        results = {id(node) for node in self._unit_results(scalar)}
        calls = (node for node in walk(scalar) if isinstance(node, Call))
        told = {id(call.arguments[0]) for call in calls if call.function == Function.IS_NULL}

        def leaf(node: Scalar) -> TypedScalar | None:
            if not isinstance(node, ColumnReference):
                return self.leaf(node)
            found = self.field_of(node)
            if id(node) in results or (found.is_matched_unit and id(node) in told):
                return found.bound
            if found.holds_unlisted_unit:
                raise refuse_unit(node)
            return self.leaf(node)

        return replace(bind_within_caps(scalar, leaf), is_per_unit=bool(results))

    def _unit_results(self, scalar: Scalar) -> list[ColumnReference]:
        """The columns that a scalar gives, where these are units of no listed column or NULL; else nothing."""
        found = []
        for result in _results(scalar):
            if isinstance(result, ColumnReference):
                field = self.field_of(result)
                # One that is listed is a number or a text like others; the row's own stands under COUNT(DISTINCT).
                if field.holds_unlisted_unit and (field.is_matched_unit or result is not scalar):
                    found.append(result)
                    continue
            if not (isinstance(result, Literal) and result.value is None):
                return []
        return found

    def bare(self, scalar: Scalar) -> Scalar:
        """The column alone, where a scalar is a column that is cast to its own type; otherwise as it is."""
        match scalar:
            case Call(Function.CAST, (ColumnReference() as column, Literal(kind))):
                same = self.field_of(column).bound.type is TYPES_BY_NAME[str(kind)]
                return column if same else scalar
        return scalar

    def resolve(self, scalar: Scalar) -> Scalar:
        """The scalar with every name replaced by the column it means, so that equal ones are equal."""
        scalar = self.bare(scalar)
        match scalar:
            case ColumnReference():
                return self.field_of(scalar, links=True).bound.scalar
            case Call(function, arguments):
                return Call(function, tuple(self.resolve(a) for a in arguments))
            case Case(branches, otherwise):
                parts = tuple((self.resolve(when), self.resolve(then)) for when, then in branches)
                return Case(parts, self.resolve(otherwise))
        return scalar

    def is_unit(self, scalar: Scalar | None) -> bool:
        """Whether a scalar is the unit itself."""
        return isinstance(scalar, ColumnReference) and self.field_of(scalar, links=True).is_unit


def _results(scalar: Scalar) -> Iterator[Scalar]:
    """The scalars of which one is the value of a scalar, as CASE has them."""
    if isinstance(scalar, Case):
        for result in (*(then for _, then in scalar.branches), scalar.otherwise):
            yield from _results(result)
    else:
        yield scalar


def refuse_unit(node: ColumnReference) -> Refused:
    """A refusal to compute with a unit that is no listed column."""
    return Refused(
        ErrorCode.UNKNOWN_COLUMN,
        f"{node.name} is the unit of protection, and no listed column",
        at=node.at,
        fix=f"count the units of {node.name} distinctly, join on it, or group by it in a subquery",
    )


def refuse_link(node: ColumnReference) -> Refused:
    """A refusal to compute with a key that is not listed."""
    what = f"{node.name} is a key that is not listed"
    return Refused(ErrorCode.UNKNOWN_COLUMN, what, at=node.at, fix="join on it, or leave it out")


def belongs_to(found: Field, table: str | None, *, loose: bool = False) -> bool:
    """Return whether a field can be named with this table, or without one."""
    return (loose or not found.hidden) if table is None else found.source.lower() == table.lower()


def no_column(where: str, node: ColumnReference, names: list[str], unit: str = "") -> Refused:
    """A refusal of a name that is no column, with what may have been meant; `unit` is one that is not listed."""
    fix = f"its columns are {', '.join(dict.fromkeys(names))}"
    if not names:
        fix = "no column of it is listed; count its rows"
    if unit:
        fix += f"; its unit is {unit}"
    instead = None
    longer = next((name for name in names if name.lower().startswith(f"{node.name.lower()} ")), None)
    if longer is not None:
        fix, instead = f'write "{longer}", in double quotes', f'"{longer}"'
    elif node.at is not None and node.at.words.startswith('"'):
        text = node.name.replace("'", "''")
        instead = f"'{text}'"
        fix = f"write '{printable(text)}' if it is a text: single quotes are for texts, double ones for names; {fix}"
    what = f"{where} has no column {printable(node.name)}"
    return Refused(ErrorCode.UNKNOWN_COLUMN, what, at=node.at, fix=fix, instead=instead)


def condition(bound: TypedScalar, clause: str, at: SourceLocation | None = None) -> Scalar:
    """The scalar of a clause that takes a condition."""
    if bound.type is not Type.BOOL:
        instead = f"({at.written} <> 0)" if at is not None and bound.type in NUMERIC_TYPES else None
        fix = "write a condition" if instead is None else f"compare it with zero: {instead}"
        what = f"{clause} takes a condition, got {bound.type or 'NULL'}"
        raise Refused(ErrorCode.TYPE, what, at=at, fix=fix, instead=instead)
    return bound.scalar
