"""Tables in the text: VALUES (1, 'a'), (2, 'b'), a series of numbers or dates, and one row where there is no FROM.

**Rule.** Their rows follow from the question, so they are public, and what is known of them is known to the plan: the
values of a column are its keys, the least and the largest bound it, and whether two rows share one can be looked up.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tacit.engines.evaluate import Row, evaluate
from tacit.engines.reference import evaluate_rows
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import TypedScalar, bind
from tacit.plan.engine_agreement import is_distinct_alike
from tacit.plan.relation import Field, Relation
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.integer_types import PostgresType, widest
from tacit.query.intervals import interval_parts, is_interval
from tacit.query.nodes import (
    ColumnReference,
    Constants,
    ConstantTable,
    EquiJoin,
    Literal,
    LiteralValue,
    RelationalNode,
    RowUnion,
    Scalar,
    Scan,
    find_location,
    scanned_tables,
)
from tacit.query.timestamps import to_datetime, to_microseconds
from tacit.query.types import Type

MAX_CONSTANT_ROWS = 2_000
_MOST_WORK = 10_000  # rows that are looked at while a question is planned
_NUMBERS = frozenset({Type.INT, Type.FLOAT, Type.TIMESTAMP})
_Types = tuple[Type, PostgresType]


def read_constants(source: ConstantTable, names: Iterator[str]) -> Relation:
    """The rows of constants that a source means."""
    if source.series:
        types, rows = _series(source)
    else:
        types, rows = _values(source)
    columns = tuple((next(names), kind) for kind, _ in types)
    fields = []
    for place, ((here, kind), (_, of_postgres), name) in enumerate(zip(columns, types, source.columns, strict=True)):
        values = [row[place] for row in rows]
        found = _field(name, source.alias, here, kind, values)
        fields.append(replace(found, bound=replace(found.bound, postgres_type=of_postgres)))
    each = ContributionBounds(1, 1)
    return Relation(Constants(columns, rows), tuple(fields), None, None, each, sources=(source.alias,))


def evaluate_constants(rows: RelationalNode) -> list[Row] | None:
    """The rows of a node of constants; None where it reads a table, or takes too long to look at."""
    return None if scanned_tables(rows) or _work(rows)[1] > _MOST_WORK else evaluate_rows(rows, {})


def count_combinations(rows: RelationalNode) -> int:
    """The rows that all tables of constants in a node would make together."""
    match rows:
        case Scan():
            return 1
        case Constants(_, values):
            return max(1, len(values))
        case EquiJoin(left, right):
            return count_combinations(left) * count_combinations(right)
        case RowUnion(parts):
            return sum(map(count_combinations, parts))
    return count_combinations(rows.source)


def _work(rows: RelationalNode) -> tuple[int, int]:
    """The most rows that a node of constants has, and how many are looked at to make them."""
    match rows:
        case Scan():
            return 0, 0
        case Constants(_, values):
            return len(values), len(values)
        case EquiJoin(left, right):
            (one, before), (other, after) = _work(left), _work(right)
            return one * other + one, before + after + one * other
        case RowUnion(parts):
            found = [_work(part) for part in parts]
            return sum(size for size, _ in found), sum(work for _, work in found)
    size, work = _work(rows.source)
    return size, size + work


def has_distinct_values(relation: Relation, scalars: list[Scalar]) -> bool:
    """Whether a relation is of constants, and no two rows of it share the values of these scalars in any engine."""
    rows = None if relation.people is not None else evaluate_constants(relation.rows)
    if rows is None or not is_distinct_alike(relation.rows, scalars):
        return False
    found = [tuple(evaluate(scalar, row) for scalar in scalars) for row in rows]
    known = [values for values in found if None not in values]
    return len(set(known)) == len(known)


def _field(name: str, alias: str, here: str, kind: Type, values: list[LiteralValue]) -> Field:
    known = [value for value in values if value is not None]
    lower = upper = None
    if known and kind in _NUMBERS:
        numbers = [Fraction(value) for value in known if not isinstance(value, str | datetime.date)]
        lower, upper = min(numbers), max(numbers)
    elif known and kind is Type.DATE:
        days = [Fraction(value.toordinal()) for value in known if isinstance(value, datetime.date)]
        lower, upper = min(days), max(days)
    step = None if kind is Type.FLOAT or lower is None else Fraction(1)
    bound = TypedScalar(ColumnReference(here), kind, lower, upper, step, nullable=len(known) < len(values))
    distinct = tuple(dict.fromkeys(value for value in known if not isinstance(value, Fraction)))
    keys = distinct if kind is not Type.FLOAT and len(known) == len(values) else None
    return Field(name, alias, bound, keys, unique=len(set(known)) == len(known), raw=here)


def _values(source: ConstantTable) -> tuple[list[_Types], tuple[tuple[LiteralValue, ...], ...]]:
    """The types of the columns of VALUES, and its rows."""
    if len(source.rows) > MAX_CONSTANT_ROWS:
        raise _too_many(source)
    found = [[_constant(scalar) for scalar in row] for row in source.rows]
    types: list[_Types] = []
    for place, name in enumerate(source.columns):
        kinds = {row[place][0].type for row in found} - {None}
        kinds = {Type.FLOAT} if kinds == {Type.INT, Type.FLOAT} else kinds
        if len(kinds) > 1:
            what = f"column {name} of VALUES has different types"
            raise Refused(ErrorCode.TYPE, what, at=source.at, fix="write values of one type below each other")
        kind = next(iter(kinds - {None}), Type.INT) or Type.INT
        types.append((kind, widest(row[place][0].postgres_type for row in found)))
    rows = tuple(
        tuple(_as_type(value, kind) for (_, value), (kind, _) in zip(row, types, strict=True)) for row in found
    )
    return types, rows


def _as_type(value: LiteralValue, kind: Type) -> LiteralValue:
    return Fraction(value) if kind is Type.FLOAT and isinstance(value, int) else value


def _constant(scalar: Scalar) -> tuple[TypedScalar, LiteralValue]:
    """A constant, or what is computed from some, bound, and its value."""

    def no_name(node: Scalar) -> TypedScalar | None:
        if isinstance(node, ColumnReference):
            what = f"{node.name} is no constant"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=node.at, fix="write constants, texts in single quotes")
        return None

    bound = bind(scalar, no_name, rows=False)
    value = evaluate(bound.scalar, {})
    return bound, Fraction(value) if isinstance(value, float) else value


def _series(source: ConstantTable) -> tuple[list[_Types], tuple[tuple[LiteralValue, ...], ...]]:
    """The types and the values of a series, from its start to its end."""
    (first, last, *rest) = source.rows[0]
    (lower, start), (upper, end) = _constant(first), _constant(last)
    kind, of_postgres = lower.type, widest((lower.postgres_type, upper.postgres_type))
    step: Scalar | None = rest[0] if rest else None
    if start is None or end is None or kind is not upper.type or kind not in {Type.INT, Type.DATE, Type.TIMESTAMP}:
        what = "a series goes from a whole number, a date or a timestamp to another"
        raise Refused(
            ErrorCode.TYPE, what, at=source.at, fix="write GENERATE_SERIES(1, 10), or dates and INTERVAL '1 day'"
        )
    if kind is Type.INT:
        return [(kind, of_postgres)], _numbers(source, start, end, step)
    months, days, moments = _interval(source, kind, step)
    if kind is Type.DATE and moments:
        kind = Type.TIMESTAMP
    one, stop = _to_moment(start), _to_moment(end)
    found: list[datetime.datetime] = []
    forward = (months, days, moments) > (0, 0, 0)
    try:
        while (one <= stop if forward else one >= stop) and (source.series == "inclusive" or one != stop):
            found.append(one)
            if len(found) > MAX_CONSTANT_ROWS:
                raise _too_many(source)
            one = _add_months(one, months) + datetime.timedelta(days, microseconds=moments)
    except (OverflowError, ValueError):
        pass  # it ends with the calendar
    if kind is Type.DATE:
        return [(kind, of_postgres)], tuple((moment.date(),) for moment in found)
    return [(kind, of_postgres)], tuple((to_microseconds(moment),) for moment in found)


def _numbers(
    source: ConstantTable, start: object, end: object, step: Scalar | None
) -> tuple[tuple[LiteralValue, ...], ...]:
    by: LiteralValue = 1
    kind: Type | None = Type.INT
    if step is not None:
        bound, by = _constant(step)
        kind = bound.type
    if kind is not Type.INT or not isinstance(by, int) or by == 0:
        what = "a series of numbers has a whole number as its step, other than 0"
        raise Refused(ErrorCode.TYPE, what, at=source.at, fix="write GENERATE_SERIES(0, 100, 10)")
    assert isinstance(start, int)
    assert isinstance(end, int)
    stop = end + (1 if by > 0 else -1) if source.series == "inclusive" else end
    found = range(start, stop, by)
    if found[MAX_CONSTANT_ROWS : MAX_CONSTANT_ROWS + 1]:
        raise _too_many(source)
    return tuple((number,) for number in found)


def _interval(source: ConstantTable, kind: Type, step: Scalar | None) -> tuple[int, int, int]:
    """The months, days and microseconds of a step, which are all forwards or all backwards."""
    if step is None and kind is Type.DATE:
        return 0, 1, 0
    parts = dict(interval_parts(step)) if step is not None and is_interval(step) else {}
    numbers = {unit: number.value for unit, number in parts.items() if isinstance(number, Literal)}
    whole = {unit: number for unit, number in numbers.items() if isinstance(number, int)}
    if (
        not whole
        or len(whole) < len(parts)
        or (min(whole.values()) < 0 < max(whole.values()))
        or not any(whole.values())
    ):
        what, fix = "a series of dates has an interval as its step", "write INTERVAL '1 day' or INTERVAL '1 month'"
        raise Refused(ErrorCode.TYPE, what, at=find_location(step) if step is not None else source.at, fix=fix)
    return whole.get("month", 0), whole.get("day", 0), whole.get("microsecond", 0)


def _to_moment(value: object) -> datetime.datetime:
    if isinstance(value, int):
        return to_datetime(value)
    assert isinstance(value, datetime.date)
    return datetime.datetime.combine(value, datetime.time())


def _add_months(moment: datetime.datetime, months: int) -> datetime.datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 28
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _too_many(source: ConstantTable) -> Refused:
    what = f"a table of more than {MAX_CONSTANT_ROWS:,} rows in the text is not answered"
    return Refused(ErrorCode.TOO_LARGE, what, at=source.at, fix="write a larger step, or fewer rows")
