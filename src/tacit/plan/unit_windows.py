"""Window functions over the rows of one unit, in subqueries: the first order, the plan after this one, the gap between.

**Theorem.** Let the partition of a window contain the unit. Then the rows that a subquery with such windows gives for a
unit are a function of the unit's own rows, as a multiset; so adding or removing a unit adds or removes its rows and
changes no others.

*Proof.* A partition holds rows of one unit only. rank and dense_rank, and counts, sums, least and largest values over
all rows or over rows with their peers, are functions of the multiset of the partition's rows: sums are of integers (a
float is put on its grid first). All other functions depend on the order of rows. Rows are ordered by ORDER BY, and
those that tie by all columns of the source, which are all that is used of a row from here on: its fields, what windows
are computed from, and what the windows before gave. Rows that still tie are equal, so whichever of them comes first the
same multiset of rows comes out. Where a row lies, and what other units hold, decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.aggregates.argument import quantize_argument, quote_aggregate, quote_argument
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, TypedScalar, after_cast
from tacit.plan.caps import Cap, cap_of, pass_cap
from tacit.plan.relation import Field, Relation, condition
from tacit.query.functions import Function
from tacit.query.integer_types import PostgresType, type_of_aggregate, type_of_window
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Literal,
    Projection,
    Query,
    RelationalNode,
    Scalar,
    SelectItem,
    ToFloat,
    UnitWindow,
    Window,
    WindowStatistic,
    find_location,
    rebuild,
    walk,
)
from tacit.query.suggest import quote_scalar
from tacit.query.types import Type

_MOST_WINDOWS = 50  # of one subquery; each may sort the table
_MOST_ROWS = 10**6  # that LAG, LEAD and NTH_VALUE go, and parts of NTILE
_LONGEST_FRAME = 1_000  # rows before and after a row: some engines add up each frame anew
_NUMBERS = frozenset({"row_number", "rank", "dense_rank"})
_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})
_VALUES = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})
_NEED_ORDER = frozenset({"rank", "dense_rank"})
Order = tuple[tuple[str, bool, bool], ...]


def has_windows(query: Query) -> bool:
    """Whether a query computes anything over a window."""
    clauses = [*(output.scalar for output in query.outputs), *([] if query.qualify is None else [query.qualify])]
    return any(isinstance(node, Window) for clause in clauses for node in walk(clause))


def separate_groups(query: Query, relation: Relation) -> tuple[Query, Query]:
    """A query that groups and has windows, as one that groups and one that has the windows over its rows."""
    keys = [relation.resolve(relation.bare(key)) for key in query.keys]
    found: list[Scalar] = list(query.keys)
    places: dict[Scalar, int] = {}

    def change(node: Scalar) -> Scalar | None:
        if isinstance(node, Aggregate):
            if node not in places:
                places[node] = len(found)
                found.append(node)
            return ColumnReference(_column_name(places[node]), None, node.at)
        if isinstance(node, ColumnReference | Call | Case) and _is_over_rows(node, relation):
            resolved = relation.resolve(relation.bare(node))
            if resolved in keys:
                return ColumnReference(_column_name(keys.index(resolved)), None, find_location(node))
        return None

    outputs = tuple(replace(output, scalar=rebuild(output.scalar, change)) for output in query.outputs)
    qualify = None if query.qualify is None else rebuild(query.qualify, change)
    inner = tuple(SelectItem(_column_name(place), scalar) for place, scalar in enumerate(found))
    grouped = replace(query, outputs=inner, qualify=None, distinct=False)
    return grouped, replace(query, outputs=outputs, qualify=qualify, keys=(), having=None, where=None)


def _column_name(place: int) -> str:
    return f"\0g{place}"


def _is_over_rows(scalar: Scalar, relation: Relation) -> bool:
    names = {found.name.lower() for found in (*relation.fields, *relation.implied)}
    return all(
        not isinstance(part, Aggregate | Window)
        and (not isinstance(part, ColumnReference) or part.name.lower() in names)
        for part in walk(scalar)
    )


def add_windows(query: Query, relation: Relation, names: Iterator[str]) -> tuple[Query, Relation]:
    """The rows that WHERE leaves with a column for each window, and the query over them: QUALIFY is its WHERE."""
    return _Windows(query, relation, names).add()


@dataclass
class _Windows:
    query: Query
    relation: Relation
    names: Iterator[str]
    columns: dict[Scalar, str] = field(default_factory=dict)  # of the rows below the windows, and their names
    fields: dict[Field, Field] = field(default_factory=dict)  # and what may be named of them
    nodes: dict[tuple[tuple[str, ...], Order], list[tuple[str, WindowStatistic]]] = field(default_factory=dict)
    made: list[Field] = field(default_factory=list)
    unit: str = ""

    def add(self) -> tuple[Query, Relation]:
        query, relation = self.query, self.relation
        where = None
        if query.where is not None:
            where = condition(relation.bind(query.where), "WHERE", find_location(query.where))
        qualify = None if query.qualify is None else self._read_names(query.qualify)
        clauses = [*(output.scalar for output in query.outputs), *([] if qualify is None else [qualify])]
        windows = list(dict.fromkeys(node for clause in clauses for node in walk(clause) if isinstance(node, Window)))
        if len(windows) > _MOST_WINDOWS:
            what = f"a subquery has more than {_MOST_WINDOWS} windows"
            raise Refused(ErrorCode.TOO_LARGE, what, at=query.at, fix="ask for fewer of them at a time")
        for window in windows:
            self._require_unit(window)
        assert relation.unit is not None
        self.unit = self._column(ColumnReference(relation.unit))
        self._pass_fields(clauses)
        places = {window: self._window(window, place) for place, window in enumerate(windows)}

        def change(node: Scalar) -> Scalar | None:
            return ColumnReference(places[node], None, node.at) if isinstance(node, Window) else None

        outputs = tuple(replace(output, scalar=rebuild(output.scalar, change)) for output in query.outputs)
        kept = None if qualify is None else rebuild(qualify, change)
        below = tuple((name, scalar) for scalar, name in self.columns.items())
        rows: RelationalNode = Projection(relation.rows, below, where)
        for (partition, order), columns in self.nodes.items():
            rows = UnitWindow(rows, partition, order, tuple(columns))
        passed = tuple(here for found, here in self.fields.items() if found not in relation.implied)
        implied = tuple(here for found, here in self.fields.items() if found in relation.implied)
        fields = (*passed, *self.made)
        found = replace(relation, rows=rows, fields=fields, unit=self.unit, implied=implied, keys=())
        return replace(query, outputs=outputs, where=kept, qualify=None), found

    def _read_names(self, qualify: Scalar) -> Scalar:
        """QUALIFY with the names of the select list as what they stand for; a column of the rows comes first."""
        known = {found.name.lower() for found in self.relation.fields}
        named = {output.name.lower(): output.scalar for output in self.query.outputs}

        def change(node: Scalar) -> Scalar | None:
            if isinstance(node, ColumnReference) and node.table is None and node.name.lower() not in known:
                return named.get(node.name.lower())
            return None

        return rebuild(qualify, change)

    def _require_unit(self, window: Window) -> None:
        """Refuse a window that holds rows of several units, or another window."""
        relation = self.relation
        inside = next((node for node in walk(window) if isinstance(node, Window) and node is not window), None)
        if inside is not None:
            what, fix = "a window inside another is not answered", "compute the inner one in a subquery"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=inside.at, fix=fix)
        if relation.unit is None:
            if relation.people is None:
                what, fix = "a window over public rows is not answered", "leave it out, or have it stored as a column"
                raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)
            what = "a window over rows that are each a unit of their own is not answered"
            fix = "aggregate in groups, and use the window on what comes out"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)
        if any(relation.is_unit(each) for each in window.partition):
            return
        unit = next((f.name if not f.hidden else f"{f.source}.{f.name}" for f in relation.fields if f.is_unit), None)
        unit = relation.called if unit is not None and unit.startswith("\0") else unit  # of a query that groups
        what = "a window over rows of several units is not answered"
        fix, instead = "aggregate in groups, and use the window on what comes out", None
        if relation.single:  # in a partition of its own each row would be the first
            fix = "ask for quantiles of it, and count the rows between them"
        elif unit is not None:
            instead = _add_partition(window, unit)
            fix = f"keep to one unit's rows: {instead or f'partition by {unit}'}"
        raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix, instead=instead)

    def _column(self, scalar: Scalar) -> str:
        """The column of a scalar below the windows; one needed twice is computed once."""
        if scalar not in self.columns:
            self.columns[scalar] = next(self.names)
        return self.columns[scalar]

    def _pass_fields(self, clauses: Iterable[Scalar]) -> None:
        """The fields that the subquery names, in the order in which the relation has them."""
        named = {
            id(self.relation.field_of(node, links=True))
            for clause in clauses
            for node in walk(clause)
            if isinstance(node, ColumnReference)
        }
        for found in (*self.relation.fields, *self.relation.implied):
            if id(found) in named:
                column = self._column(found.bound.scalar)
                here = replace(found.bound, scalar=ColumnReference(column))
                link = found.link_in(column, found.bound.scalar)
                self.fields[found] = replace(found, bound=here, unique=False, raw="", link=link)

    def _bind(self, written: Scalar) -> TypedScalar:
        scalar = self.relation.bare(written)
        plain = self.relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        return after_cast(written, plain.bound if plain is not None and plain.is_unit else self.relation.bind(scalar))

    def _window(self, window: Window, place: int) -> str:
        """The name of the field of a window."""
        partition = list(dict.fromkeys(map(self._partition, window.partition)))
        partition.sort(key=lambda name: name != self.unit)
        order = self._order(window)
        node = self.nodes.setdefault((tuple(partition), order), [])
        name = f"\0w{place}"
        if window.aggregate is None:
            found = self._function(window, node)
        else:
            bound = self._aggregate(window, window.aggregate, node)
            found = Field(name, "", replace(bound, capped=None), cap=cap_of(bound))
        self.made.append(replace(found, name=name))
        return name

    def _partition(self, scalar: Scalar) -> str:
        if self.relation.is_unit(scalar):
            return self.unit  # as it lies: clamped, two units could be one
        bound = self._bind(scalar)
        if bound.type is Type.FLOAT:
            what, at = "cannot partition by a float", find_location(scalar)
            fix, whole = "partition by whole numbers", None
            if bound.is_bounded:
                whole = f"CAST({quote_scalar(scalar)} AS INTEGER)"
                fix = f"{fix}: {whole}"
            raise Refused(ErrorCode.TYPE, what, at=at, fix=fix, instead=whole)
        return self._column(bound.scalar)

    def _order(self, window: Window) -> Order:
        items: list[tuple[str, bool, bool]] = []
        for item in window.order:
            if not self.relation.is_unit(item.scalar):  # which is the same in all rows of the partition
                items.append((self._column(self._bind(item.scalar).scalar), item.descending, item.nulls_first))
        return tuple(items)

    def _statistic(self, node: list[tuple[str, WindowStatistic]], statistic: WindowStatistic) -> ColumnReference:
        """The column of a statistic; one needed twice is computed once."""
        for name, known in node:
            if known == statistic:
                return ColumnReference(name)
        name = next(self.names)
        node.append((name, statistic))
        return ColumnReference(name)

    def _function(self, window: Window, node: list[tuple[str, WindowStatistic]]) -> Field:
        """A window function that is no aggregate."""
        function, most = window.function, self.relation.each.most
        if function not in _NUMBERS | _VALUES | {"ntile"}:
            what = f"{function.upper()} over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix="use row_number, rank or ntile")
        if function in _NEED_ORDER and not window.order:
            what = f"{function.upper()} without ORDER BY is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix="say in which order")
        if function in _NUMBERS:
            column = self._statistic(node, WindowStatistic(function))
            said = "" if window.at is None else window.at.words.split("(")[0].upper()
            note = (
                f"{said or function} counts at most {most:,} of each {self.relation.called}, as the policy's caps say."
            )
            known = TypedScalar(column, Type.INT, Fraction(1), MOST_INT, Fraction(1), nullable=False)
            known = replace(known, postgres_type=type_of_window(function, ()))
            return Field("", "", known, cap=Cap(Fraction(1), Fraction(most), note, self.relation.has_caps))
        if function == "ntile":
            parts = self._number(window, window.arguments[0], least=1)
            column = self._statistic(node, WindowStatistic(function, number=parts))
            return Field(
                "", "", TypedScalar(column, Type.INT, Fraction(1), Fraction(parts), Fraction(1), nullable=False)
            )
        return self._value(window, node)

    def _value(self, window: Window, node: list[tuple[str, WindowStatistic]]) -> Field:
        """A value of another row of the partition; it has the bounds and the declared values of that column."""
        scalar = self.relation.bare(window.arguments[0])
        plain = self.relation.field_of(scalar) if isinstance(scalar, ColumnReference) else None
        bound = after_cast(window.arguments[0], self.relation.bind(scalar))
        values = None if plain is None else (plain.values, plain.other)
        number, otherwise = None, None
        if window.function in {"lag", "lead"}:
            number = self._number(window, window.arguments[1], least=0) if len(window.arguments) > 1 else 1
            if len(window.arguments) > 2:
                default = window.arguments[2]
                # One of both, as CASE has it: their types go together, and the bounds hold both.
                either = self.relation.bind(Case(((Literal(True), window.arguments[0]),), default))
                assert isinstance(either.scalar, Case)
                bound = replace(either, scalar=either.scalar.branches[0][1])
                if either.scalar.otherwise != Literal(None):
                    otherwise = self._column(either.scalar.otherwise)
                known = isinstance(default, Literal) and values is not None and default.value in (values[0] or ())
                values = values if known else None
        elif window.function == "nth_value":
            number = self._number(window, window.arguments[1], least=1)
        argument = self._column(bound.scalar)
        start, end, _ = self._frame(window) if window.function not in {"lag", "lead"} else (None, None, False)
        statistic = WindowStatistic(window.function, argument, number, otherwise, start, end)
        here = pass_cap(bound, self._statistic(node, statistic))
        shared = replace(here, capped=None)
        keys, other = values or (None, None)
        cap = cap_of(here)
        return Field("", "", shared, keys, other, cap=cap, is_matched_unit=bound.is_per_unit, is_null=bound.is_null)

    def _number(self, window: Window, scalar: Scalar, least: int) -> int:
        value = scalar.value if isinstance(scalar, Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST_ROWS:
            what = f"{window.function.upper()} takes a constant whole number from {least} to a million"
            raise Refused(ErrorCode.TYPE, what, at=window.at, fix="write the number")
        return value

    def _frame(self, window: Window) -> tuple[int | None, int | None, bool]:
        """The rows that a window holds: where they start and end, counted from the row, and whether by peers.

        As SQL has it: without a frame all rows up to the row and its peers, and all rows where there is no order.
        """
        if not window.frame:
            return (None, 0, True) if window.order else (None, None, False)
        kind, _, ends = window.frame.partition(" BETWEEN ")
        first, _, last = ends.partition(" AND ")
        if kind == "GROUPS" or first == "UNBOUNDED FOLLOWING" or last == "UNBOUNDED PRECEDING":
            what = "such a frame of a window over rows is not answered"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix="count rows in the frame")
        start, end = _offset(first), _offset(last)
        if start is not None and end is not None and start > end:
            what, fix = "a window's frame ends before it starts", "write the end that comes first before the other"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)
        if max(abs(start or 0), abs(end or 0)) > _LONGEST_FRAME:
            what = f"a window's frame of more than {_LONGEST_FRAME:,} rows is not answered"
            raise Refused(ErrorCode.TOO_LARGE, what, at=window.at, fix="write fewer rows, or leave the frame unbounded")
        if kind == "RANGE" and not window.order:
            return None, None, False  # all rows are peers
        return start, end, kind == "RANGE" and (start, end) != (None, None)

    def _aggregate(self, window: Window, aggregate: Aggregate, node: list[tuple[str, WindowStatistic]]) -> TypedScalar:
        """An aggregate over a window: a count, a sum on a grid, their quotient, or the least or largest value."""
        name, relation = quote_aggregate(aggregate), self.relation
        if aggregate.function not in _AGGREGATES or aggregate.distinct:
            what = f"{name} over a window of rows is not answered"
            fix = "use count, sum, avg, min or max"
            if aggregate.function == "count":
                fix = f"group by {relation.called} in a subquery, count the values there, and join that on it"
            raise Refused(ErrorCode.UNSUPPORTED, what, at=window.at, fix=fix)
        start, end, peers = self._frame(window)
        size = None if peers or start is None or end is None else end - start + 1
        rows = relation.each.most if size is None else size
        argument = None if aggregate.argument is None else self._bind(aggregate.argument)

        def over(function: str, scalar: Scalar | None) -> ColumnReference:
            column = None if scalar is None else self._column(scalar)
            return self._statistic(node, WindowStatistic(function, column, None, None, start, end, peers))

        if aggregate.function == "count":
            column = over("count", None if argument is None else argument.scalar)
            most = MOST_INT if size is None else Fraction(size)
            note = f"{name} counts at most {rows:,} of each {relation.called}, as the policy's caps say."
            counted = TypedScalar(column, Type.INT, Fraction(0), most, Fraction(1), nullable=False)
            counted = replace(counted, postgres_type=PostgresType.BIGINT)
            return Cap(Fraction(0), Fraction(rows), note, relation.has_caps).add_to(counted)
        assert argument is not None
        if aggregate.function in {"min", "max"}:
            if argument.type in {Type.TEXT, Type.BOOL, None}:
                what, instead = f"{name} needs a number or a date", f"COUNT({quote_argument(aggregate)})"
                fix = f"count the rows that have a value: {instead}"
                raise Refused(ErrorCode.TYPE, what, at=aggregate.at, fix=fix, instead=instead)
            return pass_cap(argument, over(aggregate.function, argument.scalar))
        grid = quantize_argument(aggregate, argument, has_fine_grid=relation.has_fine_grids)
        total = over("sum", grid.scalar)
        scaled = Call(Function.MULTIPLY, (ToFloat(total), Literal(grid.step)))
        lower, upper = grid.lower * grid.step, grid.upper * grid.step
        if aggregate.function == "avg":
            mean = Call(Function.DIVIDE, (scaled, ToFloat(over("count", grid.scalar))))
            return TypedScalar(mean, Type.FLOAT, lower, upper)
        low, high = min(lower, lower * rows), max(upper, upper * rows)
        whole = argument.type is Type.INT
        scalar: Scalar = total if whole else scaled
        of_postgres = type_of_aggregate("sum", argument.postgres_type)
        if size is not None and (not whole or LEAST_INT < low <= high < MOST_INT):
            kind = Type.INT if whole else Type.FLOAT
            return TypedScalar(scalar, kind, low, high, grid.step, postgres_type=of_postgres)
        ends = f"from {float(low):,.10g} to {float(high):,.10g}"
        note = f"{name} of each {relation.called} is read as {ends}, as the policy's caps say."
        least, most_ = (Fraction(0) if lower >= 0 else None), (Fraction(0) if upper <= 0 else None)
        if whole:
            least, most_ = LEAST_INT if least is None else least, MOST_INT if most_ is None else most_
        added = TypedScalar(scalar, Type.INT if whole else Type.FLOAT, least, most_, grid.step)
        added = replace(added, postgres_type=of_postgres)
        return Cap(low, high, note, relation.has_caps).add_to(added)


def _add_partition(window: Window, unit: str) -> str | None:
    """A window in the analyst's own words, with the unit in its partition; None where it has only a name."""
    words = "" if window.at is None else window.at.written
    found = re.search(r"\bOVER\s*\(\s*(PARTITION\s+BY\s+)?", words, re.IGNORECASE)
    if found is None or not words.endswith(")"):
        return None
    rest = words[found.end() :]
    between = ", " if found[1] else " " if rest != ")" else ""
    return f"{words[: found.start()]}OVER (PARTITION BY {unit}{between}{rest}"


def _offset(end: str) -> int | None:
    """An end of a frame, in rows from the row itself; None where it is unbounded."""
    size, _, side = end.partition(" ")
    if end == "CURRENT ROW":
        return 0
    if size == "UNBOUNDED":
        return None
    return -int(size) if side == "PRECEDING" else int(size)
