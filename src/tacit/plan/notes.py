"""What an answer says of itself, in sentences. It is said before the question is paid for, and costs nothing.

**Theorem.** A note depends on the question and the policy only. Proof: all that is used here are the nodes of the
question, the fields that `plan/scope.py` makes of declared columns, and the caps of the policy; no engine is at hand.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from tacit.engines.evaluate import is_like
from tacit.engines.limit_joins import MOST_JOINED, MOST_WITH_TEXTS, has_joins_on_units
from tacit.errors import Refused
from tacit.plan.bounds import bind
from tacit.plan.relation import Field, Relation
from tacit.query.bound import TypedScalar
from tacit.query.functions import COMPARISONS, Function
from tacit.query.integer_types import PostgresType, type_of_aggregate
from tacit.query.nodes import (
    Aggregate,
    Aggregation,
    Call,
    Clamp,
    ColumnReference,
    EquiJoin,
    Literal,
    LiteralValue,
    PerUnitAggregation,
    Projection,
    Query,
    RelationalNode,
    RowUnion,
    Scalar,
    UnitWindow,
    Window,
    find_location,
    walk,
    walk_clauses,
)
from tacit.query.refusals import to_printable
from tacit.query.timestamps import parse_iso_timestamp, to_datetime, to_microseconds
from tacit.query.types import NUMERIC_TYPES, Key, Type, parse_iso_date

_MOST = 5  # notes about constants
_LOOKED_AT = 100  # comparisons, so that a long question takes no longer
_COMPARED = 1_000  # declared values that a pattern is held against
_LISTED = 10  # values that a note names
_LIKE_THEIR_ARGUMENT = frozenset({"sum", "min", "max"})
_WHOLE_RATIO = "x / y of whole numbers is a whole number, as in PostgreSQL; 1.0 * x / y has its fraction."
_SEEN_FROM_THE_RIGHT = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}


def about_reading(query: Query, relation: Relation) -> tuple[str, ...]:
    """What an answer says of how its text was read, where dialects differ."""
    parts = [node for clause in walk_clauses(query) for node in islice(walk(clause), _LOOKED_AT)]
    calls = [node for node in parts if isinstance(node, Call)]
    cut = {id(node.arguments[0]) for node in calls if node.function == Function.FLOOR}
    ratios = (node for node in calls if node.function == Function.RATIO and id(node) not in cut)
    return (*query.notes, _WHOLE_RATIO) if any(_is_cut_off(node, relation) for node in ratios) else query.notes


def _is_cut_off(ratio: Call, relation: Relation) -> bool:
    """Whether a quotient over rows or over released values is cut off, as far as it can be told."""

    def leaf(node: Scalar) -> TypedScalar | None:
        match node:
            case Aggregate(function="count"):
                return TypedScalar(node, Type.INT, postgres_type=PostgresType.BIGINT)
            case Aggregate(function, argument) if function in _LIKE_THEIR_ARGUMENT and argument is not None:
                inner = bind(argument, leaf, rows=False)
                return replace(inner, postgres_type=type_of_aggregate(function, inner.postgres_type))
            case Aggregate() | Window():
                return TypedScalar(node, Type.FLOAT)
        return relation.leaf(node)

    try:
        return bind(ratio, leaf, rows=False).type is Type.INT
    except Refused:
        return False


def about_null_key(scalar: Scalar, bound: TypedScalar) -> str:
    """What an answer says of rows whose key is NULL, where keys are listed."""
    at = find_location(scalar)
    words = "a key" if at is None else to_printable(at.words)
    if bound.type is Type.TEXT and isinstance(scalar, ColumnReference):
        return f"Rows where {words} is NULL are in no group; COALESCE({words}, 'none') has a group for them."
    return f"Rows where {words} is NULL are in no group."


def about_rows(exact: Aggregation, unit: str, *, is_clipped: bool = False) -> tuple[str, ...]:
    """What every answer says of the rows it is about."""
    bars = "Error bars are about the noise; what the bounds cut off is not in them."
    if not exact.measures and not is_clipped and all(key.values is not None for key in exact.keys):
        return ("All declared keys are listed, whether or not a row has them: no data was read.",)
    capped = _collect_clamp_notes(exact)
    if exact.unit is None:
        return (*capped, bars)
    rows = f"{exact.keep.rows} row{'s' if exact.keep.rows != 1 else ''}"
    groups = f"{exact.keep.groups} group{'s' if exact.keep.groups != 1 else ''}"
    kept_of = f"in at most {groups}, with at most {rows} in each" if exact.keys else f"with at most {rows}"
    if exact.keep.total is not None:
        kept_of = f"with at most {exact.keep.total} rows in all, {kept_of}"
    if has_joins_on_units(exact.source):
        most = f"{MOST_JOINED:,} rows of each {unit} on either side, after WHERE"
        capped = (*capped, f"A join matches at most {most}; {MOST_WITH_TEXTS} where texts are put together.")
    if is_clipped:
        selected = exact.keep.groups if any(key.values is None for key in exact.keys) else None
        shown = f" Which keys are shown is decided by at most {selected} of each {unit}." if selected else ""
        return (*capped, f"After WHERE, what each {unit} adds is clipped; by how much is chosen from the data.{shown}")
    return (*capped, f"After WHERE, each {unit} counts {kept_of}.", bars)


def _collect_clamp_notes(exact: Aggregation) -> tuple[str, ...]:
    """What is said of values that are clamped to the policy's caps, once each."""
    scalars = [measure.argument for measure in exact.measures if measure.argument is not None]
    scalars += [key.scalar for key in exact.keys]
    if exact.where is not None:
        scalars.append(exact.where)
    inside = (*scalars, *_scalars_of(exact.source))
    notes = (node.note for scalar in inside for node in walk(scalar) if isinstance(node, Clamp) and node.note)
    return tuple(dict.fromkeys(notes))


def _scalars_of(rows: RelationalNode) -> Iterator[Scalar]:
    """Every scalar that rows are computed by."""
    match rows:
        case Projection(source, columns, where):
            yield from _scalars_of(source)
            yield from (value for _, value in columns)
            if where is not None:
                yield where
        case EquiJoin(left, right):
            yield from _scalars_of(left)
            yield from _scalars_of(right)
        case PerUnitAggregation(source, keys, measures):
            yield from _scalars_of(source)
            yield from (value for _, value in keys)
            yield from (measure.argument for _, measure in measures if measure.argument is not None)
        case UnitWindow(source):
            yield from _scalars_of(source)
        case RowUnion(parts):
            for part in parts:
                yield from _scalars_of(part)


def about_constants(query: Query, relation: Relation) -> tuple[str, ...]:
    """Constants that a column is compared with although it has no such declared value, or lies within other bounds.

    The data may hold values that are not declared, so it is not said that none is equal. A column with bounds is read
    within them, so that no row meets a condition beyond them is true of all data.
    """
    return tuple(dict.fromkeys(_find_comparisons(query, relation)))[:_MOST]


def _find_comparisons(query: Query, relation: Relation) -> Iterator[str]:
    named = {output.name.lower(): output.scalar for output in query.outputs}
    finishing = {id(clause) for clause in (query.having, *(item.scalar for item in query.order))}
    nodes = ((clause, _read_comparison(node)) for clause in walk_clauses(query) for node in walk(clause))
    comparisons = ((clause, compared) for clause, compared in nodes if compared is not None)
    for clause, (column, function, values) in islice(comparisons, _LOOKED_AT):
        alias = named.get(column.name.lower(), column) if id(clause) in finishing else column
        if not isinstance(alias, ColumnReference) or alias.name.lower() != column.name.lower():
            continue  # the name of an output, which stands for something else there
        field = _field(column, relation)
        if field is not None:
            yield from _describe_comparison(field, function, values)


def _read_comparison(node: Scalar) -> tuple[ColumnReference, Function, list[LiteralValue]] | None:
    """The column, the comparison and the constants, where a node compares a column with constants."""
    if not isinstance(node, Call):
        return None
    parts = tuple(a.arguments[0] if isinstance(a, Call) and a.function == Function.CAST else a for a in node.arguments)
    match Call(node.function, parts):
        case Call(function, (ColumnReference() as column, Literal(value))) if function in COMPARISONS | {Function.LIKE}:
            return column, Function(function), [value]
        case Call(function, (Literal(value), ColumnReference() as column)) if function in COMPARISONS:
            return column, _SEEN_FROM_THE_RIGHT.get(Function(function), Function(function)), [value]
        case Call(Function.IN, (ColumnReference() as column, *items)):
            return column, Function.IN, [item.value for item in items if isinstance(item, Literal)]
    return None


def _field(column: ColumnReference, relation: Relation) -> Field | None:
    try:
        return relation.field_of(column)
    except Refused:  # the name of an output
        return None


def _describe_comparison(field: Field, function: Function, values: list[LiteralValue]) -> Iterator[str]:
    constants = [
        value for value in (_convert_constant(value, field.bound.type) for value in values) if value is not None
    ]
    if function is Function.LIKE:
        yield from _unlike(field, str(constants[0]) if constants else "%")
    elif field.values is not None and function in {Function.EQUAL, Function.UNEQUAL, Function.IN}:
        known = frozenset(field.values)
        yield from _describe_undeclared(field, field.values, [value for value in constants if value not in known])
    elif (
        field.raw  # a column as it is declared, and none that is computed
        and constants
        and all(_is_beyond(function, _number(value), field) for value in constants)
    ):
        listed = f"{function.upper()} ({_join_names(constants)})"
        sign = listed if function is Function.IN else f"{function} {_format_constant(constants[0])}"
        yield f"{field.name} {sign} is true of no row: {field.name} is declared from {_range(field)}."


def _describe_undeclared(field: Field, declared: tuple[Key, ...], values: list[Key | Fraction]) -> Iterator[str]:
    alike: dict[str, Key] = {_fold_case(known): known for known in declared} if values else {}
    for value in values[:_LOOKED_AT]:
        near = alike.get(_fold_case(value))
        if near is not None:
            yield f"No declared {field.name} is {_format_constant(value)}; did you mean {_format_constant(near)}?"
        elif field.other is None:  # where others are expected, it may be one of them
            yield f"No declared {field.name} is {_format_constant(value)}; there are {_join_names(declared)}."


def _fold_case(value: Key | Fraction) -> str:
    return str(value).strip().casefold()


def _unlike(field: Field, pattern: str) -> Iterator[str]:
    texts = [value for value in field.values or () if isinstance(value, str)]
    few = 0 < len(texts) <= _COMPARED
    if few and field.other is None and not any(is_like(text, pattern) for text in texts):
        yield f"No declared {field.name} is like {_format_constant(pattern)}; there are {_join_names(tuple(texts))}."


def _convert_constant(value: LiteralValue, kind: Type | None) -> Key | Fraction | None:
    """A constant as a value of the column's type, as comparing reads it; None for what is none."""
    if kind is Type.DATE and isinstance(value, str):
        return parse_iso_date(value)
    if kind is Type.TIMESTAMP:
        moment = parse_iso_timestamp(value) if isinstance(value, str) else value
        return moment if isinstance(moment, datetime.datetime) else _midnight(moment)
    if isinstance(value, datetime.datetime):
        return None  # a date that is compared with a timestamp
    return None if kind in {Type.BOOL, None} else value


def _midnight(value: LiteralValue) -> datetime.datetime | None:
    return datetime.datetime.combine(value, datetime.time()) if isinstance(value, datetime.date) else None


def _number(value: Key | Fraction) -> Fraction | None:
    if isinstance(value, datetime.datetime):
        return Fraction(to_microseconds(value))
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    return None if isinstance(value, str) else Fraction(value)


def _is_beyond(function: Function, value: Fraction | None, field: Field) -> bool:
    """Whether no value within the bounds compares so with this one, also where all three are rounded to doubles."""
    bound = field.bound
    if value is None or not bound.is_bounded or bound.lower is None or bound.upper is None:
        return False
    number, low, high = value, bound.lower, bound.upper
    if bound.type is Type.FLOAT:
        number, low, high = (Fraction(float(one)) for one in (value, low, high))
    match function:
        case Function.EQUAL | Function.IN:
            return not low <= number <= high
        case Function.LESS:
            return number <= low
        case Function.LESS_EQUAL:
            return number < low
        case Function.GREATER:
            return number >= high
        case Function.GREATER_EQUAL:
            return number > high
    return False


def _range(field: Field) -> str:
    ends = [end for end in (field.bound.lower, field.bound.upper) if end is not None]
    if field.bound.type in NUMERIC_TYPES:
        return " to ".join(_format_constant(end) for end in ends)
    if field.bound.type is Type.TIMESTAMP:
        return " to ".join(str(to_datetime(int(end))) for end in ends)
    return " to ".join(str(datetime.date.fromordinal(int(end))) for end in ends)


def _format_constant(value: Key | Fraction) -> str:
    match value:
        case str():
            return f"'{to_printable(value)}'"
        case Fraction() if value.denominator != 1:
            return f"{float(value):.10g}"
    return str(value)


def _join_names(values: tuple[Key, ...] | list[Key | Fraction]) -> str:
    more = len(values) - _LISTED
    shown = ", ".join(_format_constant(value) for value in values[:_LISTED])
    return f"{shown} and {more:,} more" if more > 0 else shown
