"""The two halves of a question: private aggregates over rows, and the post-processing of what is released.

Whatever stands outside an aggregate sees released values and keys only, so it is post-processing and free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import BoundAggregate
from tacit.aggregates.registry import function_of
from tacit.answers.post_processing_plan import OutputColumn
from tacit.answers.stored import GroupKeys
from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.plan.bounds import TypedScalar, after_cast, bind, domain
from tacit.plan.key_lists import list_keys
from tacit.plan.narrow import KeyNarrowing
from tacit.plan.notes import about_null_key
from tacit.plan.relation import Field, Relation, condition
from tacit.plan.simplify import order_operands, simplify_filter
from tacit.query.functions import Function
from tacit.query.integer_types import PostgresType, type_of_aggregate
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    GroupKey,
    Literal,
    OrderItem,
    Quantize,
    Query,
    ReleasedKey,
    ReleasedValue,
    Scalar,
    SelectItem,
    find_location,
    is_star,
    walk,
)
from tacit.query.suggest import quote_scalar, refuse_without_aggregate
from tacit.query.types import NUMERIC_TYPES, Key, Type

MAX_GROUPS = 10_000
_MOST_SUGGESTED = 1_000  # groups that a fix makes
_LARGEST_KEY = 2**62  # of a float that is a whole number: doubles and integers of 64 bits have it
MAX_RANGE = 1_000  # public keys that a range of numbers or dates may make by itself


@dataclass(frozen=True)
class Halves:
    """The aggregates in order of appearance, and the post-processing over them."""

    where: Scalar | None
    keys: tuple[GroupKey, ...]
    key_types: tuple[Type, ...]
    aggregates: tuple[BoundAggregate, ...]
    results: tuple[OutputColumn, ...]
    having: Scalar | None
    order: tuple[OrderItem, ...]
    notes: tuple[str, ...] = ()
    combinations: tuple[GroupKeys, ...] | None = None  # the groups, where not all combinations of public keys are
    cast_values: tuple[tuple[Key, ...] | None, ...] = ()  # of each key, where a cast has fewer values than its bounds

    @property
    def groups(self) -> int | None:
        """How many groups there are; None where which keys occur is private."""
        if self.combinations is not None:
            return len(self.combinations)
        sizes = [len(key.values) for key in self.keys if key.values is not None]
        return prod(sizes) if len(sizes) == len(self.keys) else None


def split(query: Query, relation: Relation, *, canonical: bool = True, ascii_case: bool = False) -> Halves:
    """Both halves of the question, bound to its rows.

    Where it is `canonical`, its WHERE has one form for all that mean the same, a sum of ones is a count, and its public
    keys are those that WHERE leaves, and those that follow from declared values and constants. `ascii_case` says that
    the engine may change the letters A to Z alone.
    """
    narrowing = KeyNarrowing(relation, query.where if canonical else None, ascii_case=ascii_case)
    found = _Splitter(query, relation, narrowing, canonical=canonical).halves()
    if not canonical or found.where is None:
        return found
    return replace(found, where=simplify_filter(found.where))


class _Splitter:
    def __init__(self, query: Query, relation: Relation, narrowing: KeyNarrowing, *, canonical: bool) -> None:
        self.query = query
        self.canonical = canonical
        self.narrowing = narrowing
        self.relation = relation
        self.named = {output.name.lower(): output.scalar for output in query.outputs}
        self.keys: list[GroupKey] = []
        self.key_types: list[Type] = []
        self.cast_values: list[tuple[Key, ...] | None] = []
        self.known: list[Scalar] = []
        self.aggregates: dict[BoundAggregate, int] = {}  # and their places, in order of appearance
        self.notes: list[str] = []

    def halves(self) -> Halves:
        query = self.query
        where = (
            None
            if query.where is None
            else condition(self.relation.bind(query.where), "WHERE", find_location(query.where))
        )
        for scalar in query.keys:
            self.key(scalar)
        results = tuple(self.result(output) for output in query.outputs)
        having = (
            None
            if query.having is None
            else condition(self.finishing(query.having), "HAVING", find_location(query.having))
        )
        order = tuple(
            OrderItem(self.finishing(item.scalar).scalar, item.descending, item.nulls_first) for item in query.order
        )
        if not self.aggregates and not self.keys:
            raise refuse_without_aggregate(query)
        return Halves(
            where,
            tuple(self.keys),
            tuple(self.key_types),
            tuple(self.aggregates),
            results,
            having,
            order,
            tuple(self.notes),
            cast_values=tuple(self.cast_values),
        )

    def key(self, scalar: Scalar) -> None:
        """A grouping scalar, with its public keys if it has some. An alias of an output stands for it."""
        if isinstance(scalar, ColumnReference) and scalar.table is None and not self.is_field(scalar):
            scalar = self.named.get(scalar.name.lower(), scalar)
        scalar = self.relation.bare(scalar)
        if any(isinstance(node, Aggregate) for node in walk(scalar)):
            raise Refused(
                ErrorCode.AGGREGATE, "GROUP BY takes no aggregate", at=find_location(scalar), fix="group by columns"
            )
        found = self.relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        bound = self.relation.bind(scalar)
        if bound.type is None:
            raise Refused(ErrorCode.TYPE, "cannot group by NULL", at=find_location(scalar), fix="group by a column")
        resolved = self.relation.resolve(scalar)
        if resolved in self.known:
            raise Refused(
                ErrorCode.AMBIGUOUS, "GROUP BY names a column twice", at=find_location(scalar), fix="name each once"
            )
        self.known.append(resolved)
        values = found.values if found is not None and found.values is not None else domain(bound, MAX_RANGE)
        values = self.narrowing.values(scalar, values, MAX_RANGE)
        if values is None and found is None and self.canonical:
            values = list_keys(scalar, self.relation, self.narrowing, MAX_RANGE)
        self.cast_values.append(self.list_cast(scalar, bound))
        others = found is not None and found.other is not None and not self.narrowing.excludes_others(found)
        if (
            (values or self.cast_values[-1]) is not None
            and bound.nullable
            and not others
            and not self.narrowing.demands(scalar)
        ):
            self.notes.append(about_null_key(scalar, bound))
        if bound.type is Type.FLOAT:
            self.keys.append(self.whole_key(bound, values, scalar))
            self.key_types.append(Type.INT)
            return
        self.keys.append(GroupKey(*_with_other(bound.scalar, values, found if others else None)))
        self.key_types.append(bound.type)

    def list_cast(self, scalar: Scalar, bound: TypedScalar) -> tuple[Key, ...] | None:
        """The values of a float on a grid of whole numbers that is cast to an integer, which stays on it."""
        match scalar:
            case Call(Function.CAST, (operand, _)) if bound.type is Type.INT:
                step = self.relation.bind(operand).step
                if step is not None and step > 1 and step.denominator == 1:
                    values = domain(replace(bound, step=step), MAX_RANGE)
                    return None if values is None else self.narrowing.values(scalar, values, MAX_RANGE)
        return None

    def whole_key(self, bound: TypedScalar, values: tuple[Key, ...] | None, scalar: Scalar) -> GroupKey:
        """A float that is always a whole number, such as FLOOR(age / 10), as an integer."""
        whole = bound.step is not None and bound.step > 0 and bound.step % 1 == 0
        if not whole or not bound.is_bounded or bound.lower is None or bound.upper is None:
            raise self.refuse_float(bound, scalar)
        if max(abs(bound.lower), abs(bound.upper)) > _LARGEST_KEY:
            what, fix = "cannot group by numbers that may be larger than 2^62", "group by smaller ones"
            raise Refused(ErrorCode.OVERFLOW, what, at=find_location(scalar), fix=fix)
        return GroupKey(Quantize(bound.scalar, Fraction(1), int(bound.lower), int(bound.upper)), values)

    def refuse_float(self, bound: TypedScalar, scalar: Scalar) -> Refused:
        """A refusal of a key that is a float, which FLOOR makes whole; of many values, of tens or more."""
        what, at = "cannot group by a float", find_location(scalar)
        if not bound.is_bounded or bound.lower is None or bound.upper is None:
            return Refused(ErrorCode.TYPE, what, at=at, fix="group by whole numbers that have bounds")
        width = 1
        while (bound.upper - bound.lower) / width > _MOST_SUGGESTED:
            width *= 10
        inner = quote_scalar(scalar)
        floor = f"FLOOR({inner})" if width == 1 else f"FLOOR({f'({inner})' if ' ' in inner else inner} / {width})"
        query = self.query
        named = (*(o.scalar for o in query.outputs), *query.keys, *(item.scalar for item in query.order))
        suggestion = substitute((at, floor), *((find_location(one), floor) for one in named if one == scalar))
        return Refused(ErrorCode.TYPE, what, at=at, fix=f"group by {floor}", suggestion=suggestion)

    def is_field(self, column: ColumnReference) -> bool:
        return any(f.name.lower() == column.name.lower() for f in self.relation.fields)

    def result(self, output: SelectItem) -> OutputColumn:
        if is_star(output.scalar):
            what, at = "* would show rows as they are", find_location(output.scalar)
            raise Refused(ErrorCode.RAW_COLUMN, what, at=at, fix="count them: COUNT(*)", instead="COUNT(*)")
        if isinstance(output.scalar, Aggregate) and function_of(output.scalar).gives_list:
            bound = self.aggregate(output.scalar)
            assert bound.type is not None
            return OutputColumn(output.name, bound.scalar, bound.type, many=True)
        bound = bind(output.scalar, self.leaf, rows=False)
        if bound.type is None:
            what = f"column {output.name} is always NULL"
            raise Refused(ErrorCode.TYPE, what, at=find_location(output.scalar), fix="leave it out")
        return OutputColumn(output.name, bound.scalar, bound.type, postgres_type=bound.postgres_type)

    def finishing(self, scalar: Scalar) -> TypedScalar:
        """A scalar of HAVING or ORDER BY, where the names of outputs may be used too."""
        return bind(scalar, self.leaf_or_output, rows=False)

    def leaf_or_output(self, node: Scalar) -> TypedScalar | None:
        if isinstance(node, ColumnReference) and node.table is None and node.name.lower() in self.named:
            named = self.named[node.name.lower()]
            if isinstance(named, Aggregate) and function_of(named).gives_list:
                raise _a_list(named, node.at)
            return bind(named, self.leaf, rows=False)
        return self.leaf(node)

    def leaf(self, node: Scalar) -> TypedScalar | None:
        """An aggregate or a key, as a value of the noisy table; None for what is computed from these."""
        if isinstance(node, Aggregate):
            if function_of(node).gives_list:
                raise _a_list(node, node.at)
            return self.aggregate(node)
        if self.known and isinstance(node, ColumnReference | Call | Case) and self.is_over_rows(node):
            known = self.relation.resolve(node)
            if known in self.known:
                index, bound = self.known.index(known), self.relation.bind(node)
                of_postgres = PostgresType.NUMERIC if bound.type is Type.FLOAT else bound.postgres_type
                return TypedScalar(ReleasedKey(index), self.key_types[index], postgres_type=of_postgres)
        if isinstance(node, ColumnReference):
            raise self.raw(node)
        return None

    def is_over_rows(self, scalar: Scalar) -> bool:
        """Whether it is made of columns alone: no aggregate, and no name of an output."""
        return not any(
            isinstance(node, Aggregate) or (isinstance(node, ColumnReference) and not self.is_field(node))
            for node in walk(scalar)
        )

    def raw(self, node: ColumnReference) -> Refused:
        shadowed = self.shadowed_name(node)
        if shadowed is not None:
            return shadowed
        found = self.relation.field_of(node)
        function = "AVG" if found.bound.type in NUMERIC_TYPES else "COUNT"
        group = "" if found.values is None else ", or group by it"
        instead = f"{function}({quote_scalar(node)})"
        return Refused(
            ErrorCode.RAW_COLUMN,
            f"{node.name} would show the values of single rows",
            at=node.at,
            fix=f"put it into an aggregate: {instead}{group}",
            instead=instead,
        )

    def shadowed_name(self, node: ColumnReference) -> Refused | None:
        """The refusal of a column in an output whose name GROUP BY has, where that is the name of a column too."""
        keys = {key.name.lower(): key for key in self.query.keys if isinstance(key, ColumnReference)}
        for output in self.query.outputs:
            key = keys.get(output.name.lower())
            if key is None or isinstance(output.scalar, ColumnReference):
                continue
            if any(part is node for part in walk(output.scalar)):
                scalar, what = quote_scalar(output.scalar), f"{node.name} would show the values of single rows"
                what += f": GROUP BY {quote_scalar(key)} is by the column of that name"
                suggestion = substitute((key.at, scalar))
                fix = f"group by {scalar}"
                return Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=fix, suggestion=suggestion)
        return None

    def aggregate(self, node: Aggregate) -> TypedScalar:
        node = count_of_ones(node) if self.canonical else node
        asked = replace(self.split_question(node), has_fine_grid=self.relation.has_fine_grids)
        place = self.aggregates.setdefault(asked, len(self.aggregates))
        argument = PostgresType.INTEGER
        if node.argument is not None and asked.argument is not None:
            argument = after_cast(node.argument, asked.argument).postgres_type
        kind, of_postgres = function_of(node).result_type(asked), type_of_aggregate(node.function, argument)
        return TypedScalar(ReleasedValue(place), kind, postgres_type=of_postgres)

    def split_question(self, node: Aggregate) -> BoundAggregate:
        if node.argument is None:
            return BoundAggregate(node, None, None, of_unit=False)
        node = replace(node, argument=self.relation.bare(node.argument))
        assert node.argument is not None
        found = self.relation.field_of(node.argument) if isinstance(node.argument, ColumnReference) else None
        if node.function == "count" and node.distinct and found is not None and found.is_unit:
            return BoundAggregate(node, None, None, of_unit=True)
        if node.function == "count" and node.distinct and self.relation.unit is not None:
            chosen = self.units_where(node.argument)
            if chosen is not None:
                return BoundAggregate(node, chosen, None, of_unit=True)
        if node.function == "count" and found is not None and found.is_unlisted:  # a row without a unit counts nowhere
            return BoundAggregate(replace(node, argument=None), None, None, of_unit=False)
        others = tuple(self.relation.bind(self.relation.bare(other)) for other in node.others)
        values = self.declared_values(node.argument)
        return BoundAggregate(node, self.bind_argument(node.argument), values, False, others)

    def bind_argument(self, scalar: Scalar) -> TypedScalar:
        """The argument of an aggregate; where it is canonical, without a COALESCE that changes nothing, and ordered."""
        if not self.canonical:
            return self.relation.bind(scalar)
        if isinstance(scalar, Call) and scalar.function == Function.COALESCE:
            first = self.relation.bind(scalar.arguments[0])
            if not first.nullable:
                return first
        try:
            bound = self.relation.bind(scalar)
        except Refused as refusal:
            if refusal.code is not ErrorCode.UNBOUNDED:
                raise
            bound = self.narrowing.bind(scalar)  # WHERE may say what the policy does not
        if not bound.is_bounded and bound.capped is None and bound.type in NUMERIC_TYPES:
            bound = self.narrowing.bind(scalar)
        return replace(bound, scalar=order_operands(bound.scalar))

    def units_where(self, scalar: Scalar) -> TypedScalar | None:
        """CASE WHEN c THEN unit END, which FILTER makes too: the unit of the rows that meet a condition."""
        match scalar:
            case Case(((when, ColumnReference() as column),), Literal(None)) if self.relation.is_unit(column):
                assert self.relation.unit is not None
                met = condition(self.relation.bind(when), "WHEN", find_location(when))
                return TypedScalar(Case(((met, ColumnReference(self.relation.unit)),), Literal(None)), None)
        return None

    def declared_values(self, scalar: Scalar) -> tuple[Key, ...] | None:
        """The declared values of a column, or of one that FILTER leaves out of some rows."""
        match scalar:
            case ColumnReference():
                return self.relation.field_of(scalar).values
            case Case(((_, ColumnReference() as column),), Literal(None)):
                return self.relation.field_of(column).values
        return None


def check_groups(query: Query, halves: Halves) -> None:
    """Refuse a question of more public groups than are listed."""
    if halves.groups is not None and halves.groups > MAX_GROUPS:
        raise Refused(
            ErrorCode.TOO_MANY_GROUPS,
            f"the keys make {halves.groups:,} groups; {MAX_GROUPS:,} is the most",
            at=find_location(query.keys[0]),
            fix="group by fewer columns, or by coarser ones",
        )


def count_of_ones(node: Aggregate) -> Aggregate:
    """SUM(1) and SUM(CASE WHEN c THEN 1 ELSE 0 END) count rows: a sum of nothing is 0 here, as a count is."""
    if node.function != "sum" or node.distinct:
        return node
    match node.argument:
        case Literal(value) if value == 1 and type(value) is int:
            return replace(node, function="count", argument=None)
        case Case(((when, Literal(one)),), Literal(other)) if type(one) is int and one == 1 and other in (0, None):
            if other is None or type(other) is int:
                return replace(node, function="count", argument=Case(((when, Literal(1)),), Literal(None), node.at))
    return node


def _a_list(node: Aggregate, at: SourceLocation | None) -> Refused:
    what = f"{quote_aggregate(node)} gives a list, and a list stands by itself in the select list"
    fix = "leave out what is computed, compared or ordered with it"
    return Refused(ErrorCode.TYPE, what, at=at, fix=fix)


def _with_other(
    scalar: Scalar, values: tuple[Key, ...] | None, found: Field | None
) -> tuple[Scalar, tuple[Key, ...] | None]:
    """A key whose undeclared values are read as the one that stands for all others, where there is one."""
    if found is None or found.other is None or values is None:
        return scalar, values
    listed = Call(Function.IN, (scalar, *(Literal(value) for value in values)))
    return Case(((listed, scalar),), Literal(found.other)), (*values, found.other)
