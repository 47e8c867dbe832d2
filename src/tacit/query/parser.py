"""From SQL text to nodes, by an allow-list: what is not read here is refused.

>>> from tacit.query.function_calls import AggregateSyntax
>>> counting = {"count": AggregateSyntax(lambda written: Aggregate("count", None))}
>>> parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", counting).outputs[1].scalar
Aggregate(function='count', argument=None, distinct=False, share=None, count=None, others=())

The grammar is a part of DuckDB's, and means what it means there. It is closed and small, and each token is read once,
so reading takes time in proportion to the text; parsers of all of SQL try and go back, and may take hours over thirty
joins.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple, NoReturn

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.cursor import check_text
from tacit.query.dialects import QuestionDialect
from tacit.query.from_parser import FromParser
from tacit.query.function_calls import Aggregates
from tacit.query.functions import Function
from tacit.query.nodes import (
    STAR,
    Aggregate,
    Call,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    FromItem,
    Literal,
    OrderItem,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    UnionAll,
    Window,
    is_star,
    rebuild,
    walk,
)
from tacit.query.refusals import (
    MAX_ITEMS,
    MAX_NESTED,
    OTHER_STATEMENTS,
    RESERVED,
    UNSUPPORTED_CLAUSES,
    WRITE_STATEMENTS,
    nesting,
    refuse_statement,
    refuse_too_large,
    refuse_unsupported,
    to_printable,
)

_MOST_ROWS = 10**9  # that LIMIT and OFFSET take
_MOST_LEVELS = 8  # keys of ROLLUP and CUBE
MAX_SETS = 32  # grouping sets of a question
_STACKS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_AFTER_KEYS = _STACKS | {"HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH", "WITH"}
Sets = tuple[tuple[int, ...], ...]
_CLAUSES = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "SELECT", "JOIN", "ON"})
_ORDER = "the order is select, from, join, where, group by, having, order by, limit, offset"


def parse(
    text: str,
    aggregates: Aggregates,
    today: datetime.date | None = None,
    dialect: QuestionDialect = QuestionDialect.POSTGRES,
) -> Query:
    """The question that `text` asks of the `aggregates` that there are, or Refused with the place and the fix.

    `today` is the date, or the time, that CURRENT_DATE and NOW() stand for; without one they are refused. `dialect`
    says what a name means that dialects have for several things.
    """
    parser = _QueryParser(check_text(text), aggregates)
    parser.today, parser.dialect = today, dialect
    found = parser.question()
    return replace(found, notes=tuple(dict.fromkeys(parser.notes)))


class _QueryParser(FromParser):
    """Reads queries, clause by clause."""

    def __init__(self, text: str, aggregates: Aggregates) -> None:
        super().__init__(text, aggregates)
        self.windows: dict[str, Window] = {}  # of the query that was read last
        self.once: Window | None = None  # the row numbers that its DISTINCT ON means

    def question(self) -> Query:
        """The whole text: one query, and nothing after it."""
        if self.token.kind == "end":
            raise Refused(ErrorCode.SYNTAX, "the question is empty", fix="ask a question, which starts with select")
        found = self.query(whole=True)
        ended = self.sees(";")
        while self.accept(";"):
            pass
        if self.token.kind != "end" and ended:
            fix = "ask the statements one after the other"
            raise Refused(ErrorCode.STATEMENT, "one question at a time", at=self.here(), fix=fix)
        if self.token.kind != "end":
            self._end()
        if isinstance(found, UnionAll):
            found = _around(found, found.at)
        if nesting(found) > MAX_NESTED:
            what = f"subqueries are nested more than {MAX_NESTED} deep"
            raise refuse_too_large(what, found.at, "compute more in each subquery")
        return found

    def _end(self) -> NoReturn:
        if self.token.key in _CLAUSES:
            what = f"{self.token.key} is in the wrong place"
            raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix=_ORDER)
        if self.accept("USING") or self.token.key in {"[", "]", *UNSUPPORTED_CLAUSES}:  # USING SAMPLE
            self.refuse_unexpected("the end of the question")
        fix = self.two_words()
        what = (
            f"{self.excerpt()} is not expected after the end of the question"
            if not fix
            else f"{self.excerpt()} is not expected here"
        )
        fix = fix or "remove it, or check the words before it"
        raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix=fix)

    def query(self, *, whole: bool = False) -> Query | UnionAll:
        """A query with its WITH, or several under UNION ALL; `whole` is the question itself."""
        start, outer = self.index, self.parts
        if self.accept("WITH"):
            self.with_()
        bare = not self.sees("(")
        found = self._part(whole=whole)
        operations = set()
        while self.token.key in _STACKS:
            first, operation = self.index, self._stack()
            operations.add(operation)
            if len(operations) > 1:
                fix = "put brackets around what belongs together"
                raise refuse_unsupported("a mix of UNION, INTERSECT and EXCEPT", fix, self.since(first))
            part = self._part(whole=whole)
            found = _stack_queries(found, operation, part, self.since(start))
        self.parts = outer
        if not self.sees("ORDER", "LIMIT", "OFFSET", "FETCH"):
            return found
        if not bare or isinstance(found, UnionAll):
            found, self.once = _around(found, self.since(start)), None
        once, tailed = self.once, self._tail(found)
        if once is None:
            return tailed
        numbered = _order_once(tailed, once)
        # In a subquery the order says which row of each comes first, and nothing more.
        return numbered if whole or tailed.limit is not None or tailed.offset else replace(numbered, order=())

    def _part(self, *, whole: bool) -> Query | UnionAll:
        if not self.accept("("):
            return self._select(whole=whole)
        found = self.query(whole=whole)
        self.expect(")")
        return found

    def _stack(self) -> str:
        """Read UNION ALL or what else puts queries together, or refuse it."""
        start, word = self.index, self.token.key
        self.index += 1
        word = "EXCEPT" if word == "MINUS" else word
        every = self.accept("ALL")
        if not every:
            self.accept("DISTINCT")
        if self.sees("BY"):
            raise refuse_unsupported(f"{word} ALL BY NAME", "select the columns in the same order", self.since(start))
        return f"{word.lower()} all" if every else word.lower()

    def _refuse_from(self) -> Refused:
        """A refusal of FROM visits, which is SELECT * FROM visits, and of FROM visits SELECT ward."""
        end = self.index
        while self.tokens[end].kind != "end" and self.tokens[end].key not in {")", "SELECT"}:
            end = self.closing.get(end, end) + 1
        instead = None if self.tokens[end].key == "SELECT" else "SELECT * FROM"
        fix = "write the select list first" if instead is None else f"write {instead}"
        return refuse_unsupported("FROM before SELECT", fix, self.here(), instead)

    def _select(self, *, whole: bool) -> Query:
        """SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ..."""
        start = self.index
        if self.sees("VALUES"):
            return self._values(start)
        if self.accept("TABLE"):
            return self._every(self.table(), start)
        source = self.source() if self.accept("FROM") else None
        if source is not None and not self.sees("SELECT"):  # FROM t, which is SELECT * FROM t
            where = self.count_parts(self.scalar()) if self.accept("WHERE") else None
            return replace(self._every(source, start), where=where)
        if self.token.key in WRITE_STATEMENTS | OTHER_STATEMENTS:
            raise refuse_statement(self.token.key, self.here())
        self.expect("SELECT")
        distinct = self.accept("DISTINCT")
        once = self._distinct_on(start) if distinct and self.accept("ON") else None
        if once is not None:
            distinct = False
        if not distinct:
            self.accept("ALL")
        top = self._top() if self.sees("TOP") and self.tokens[self.index + 1].kind == "number" else None
        outputs = self._outputs()
        if source is None and not self._is_over():
            self.expect("FROM")
            source = self.source()
        if source is None:
            source = self._nothing(outputs, start)
        where = self.count_parts(self.scalar()) if self.accept("WHERE") else None
        keys, sets = self._keys(outputs) if self.accept("GROUP", "BY") else ((), None)
        having = self.count_parts(self.scalar()) if self.accept("HAVING") else None
        windows = self._windows() if self.accept("WINDOW") else {}
        qualify = self.count_parts(self.scalar()) if self.accept("QUALIFY") else None
        if not windows and self.accept("WINDOW"):
            windows = self._windows()
        if distinct and not keys and not any(is_star(o.scalar) or has_aggregate(o.scalar) for o in outputs):
            keys, distinct = tuple(dict.fromkeys(output.scalar for output in outputs)), False  # each value once
        found = Query(source, outputs, where, keys, having, (), top, 0, distinct, sets, qualify, self.since(start))
        self.windows, self.once = windows, once
        found = _with_windows(found, windows)
        if once is None:
            return found
        kept = _first_of(once) if found.qualify is None else Call(Function.AND, (found.qualify, _first_of(once)))
        return replace(found, qualify=kept)

    def _is_over(self) -> bool:
        """Whether a select list is not followed by FROM, as in SELECT 1."""
        over = self.token.kind == "end" or self.sees(")", ";") or self.token.key in _CLAUSES | _STACKS
        return over and not self.sees("FROM")

    def _nothing(self, outputs: tuple[SelectItem, ...], start: int) -> ConstantTable:
        """What a query without FROM is over: one row without columns, so that it names none."""
        if any(isinstance(node, ColumnReference) for output in outputs for node in walk(output.scalar)):
            what, fix = "the question does not name a table", "name one of the tables"
            raise Refused(ErrorCode.UNKNOWN_TABLE, what, at=self.since(start), fix=fix)
        return ConstantTable((), ((),), "", at=self.since(start))

    def _every(self, source: FromItem, start: int) -> Query:
        """SELECT * FROM a source."""
        self.windows, self.once = {}, None
        at = self.since(start)
        every = SelectItem(STAR, ColumnReference(STAR, None, at))
        return Query(source, (every,), None, (), None, (), None, 0, at=at)

    def _values(self, start: int) -> Query:
        """VALUES (1, 'a'), (2, 'b'): rows of constants, whose columns are column1, column2, ..."""
        self.expect("VALUES")
        rows = [self._values_row()]
        while self.accept(","):
            rows.append(self._values_row())
        if any(len(row) != len(rows[0]) for row in rows):
            what, fix = "the rows of VALUES have different lengths", "write as many values in each row"
            raise Refused(ErrorCode.SYNTAX, what, at=self.since(start), fix=fix)
        at = self.since(start)
        names = tuple(f"column{number}" for number in range(1, len(rows[0]) + 1))
        self.windows, self.once = {}, None
        outputs = tuple(SelectItem(name, ColumnReference(name, None, at)) for name in names)
        return Query(ConstantTable(names, tuple(rows), "values", at=at), outputs, None, (), None, (), None, 0, at=at)

    def _values_row(self) -> tuple[Scalar, ...]:
        self.expect("(")
        row = [self.count_parts(self.scalar())]
        while self.accept(","):
            row.append(self.count_parts(self.scalar()))
        self.expect(")")
        return tuple(row)

    def _distinct_on(self, start: int) -> Window:
        """DISTINCT ON (a, b): one row of each, the first in the order of the query. It means a number of rows."""
        self.expect("(")
        partition = [self.count_parts(self.scalar())]
        while self.accept(","):
            partition.append(self.count_parts(self.scalar()))
        self.expect(")")
        return Window("row_number", (), None, tuple(partition), at=self.since(start))

    def _windows(self) -> dict[str, Window]:
        """WINDOW w AS (PARTITION BY ward ORDER BY n), ...: by name in small letters."""
        found: dict[str, Window] = {}
        while True:
            name = self.name("a name").lower()
            self.expect("AS")
            found[name] = self.window_definition()
            if not self.accept(","):
                return found

    def _top(self) -> int:
        """The number of TOP 10, which is LIMIT 10."""
        return self._whole("TOP")

    def _tail(self, query: Query) -> Query:
        """ORDER BY, LIMIT and OFFSET, or FETCH FIRST."""
        order = self._order(query.outputs) if self.accept("ORDER", "BY") else ()
        order = tuple(replace(item, scalar=_resolve_windows(item.scalar, self.windows)) for item in order)
        limit, offset = query.limit, 0
        while self.sees("LIMIT", "OFFSET", "FETCH"):
            if self.sees("FETCH"):
                limit = self._fetch()
            elif self.sees("OFFSET"):
                offset = self._whole("OFFSET")
            elif self.after() == "ALL":
                self.index += 2
            else:
                limit = self._whole("LIMIT")
                if self.accept(","):  # LIMIT 5, 10: which to leave out comes first
                    self.index -= 1
                    limit, offset = self._whole("LIMIT"), limit
        return replace(query, order=order, limit=limit, offset=offset)

    def _fetch(self) -> int:
        """FETCH FIRST 10 ROWS ONLY."""
        self.index += 1
        if not self.accept("FIRST"):
            self.expect("NEXT")
        if self.sees("ROW", "ROWS"):
            number = 1
        else:
            self.index -= 1
            number = self._whole("FETCH FIRST")
        if not self.accept("ROWS"):
            self.expect("ROW")
        self.expect("ONLY")
        return number

    def _outputs(self) -> tuple[SelectItem, ...]:
        """The select list."""
        items: list[_Item] = []
        while True:
            start = self.index
            if len(items) == MAX_ITEMS:
                raise refuse_too_large(f"more than {MAX_ITEMS:,} columns", self.here())
            scalar = self._star() or self.count_parts(self.scalar())
            given = None if is_star(scalar) else self._given_name()
            items.append(_Item(scalar, given, self.since(start)))
            if not self.accept(",") or self.sees("FROM"):
                self._no_comma()
                return _name_items(items)

    def _no_comma(self) -> None:
        """Refuse SELECT ward COUNT(*), in which the name of a function was read as that of the column before it."""
        first = self.index - 1 if self.sees("(") else self.index
        call = self.tokens[first]
        if call.kind == "word" and call.key not in RESERVED and self.tokens[first + 1].key == "(":
            what = f"a comma is missing before {to_printable(call.text)}"
            at, fix = self.through(first, first), "write a comma between two columns"
            raise Refused(ErrorCode.SYNTAX, what, at=at, fix=fix, instead=f", {at.written}")

    def _star(self) -> ColumnReference | None:
        """A column called * stands for all of them, of a subquery or of a table in it."""
        start, table = self.index, None
        if self.after() == "." and self.after(2) == "*":
            table = self.name("a table")
            self.index += 1
        if not self.accept("*"):
            return None
        at = self.since(start)
        if self.sees("REPLACE", "RENAME", "LIKE", "ILIKE"):
            raise refuse_unsupported(f"* {self.token.key}", "list the columns", self.through(start, self.index))
        without: tuple[str, ...] | None = None
        if self.accept("EXCLUDE") or self.accept("EXCEPT"):
            without = self._column_names() if self.sees("(") else (self.name("a column"),)
        return ColumnReference(STAR, table, at, without)

    def _given_name(self) -> str | None:
        token = self.token
        if self.accept("AS"):
            token = self.token
            if token.kind == "word":
                self.index += 1
                return token.text
            return self.name("a name")
        if token.kind == "name" or (token.kind == "word" and token.key not in RESERVED):
            return self.name("a name")
        return None

    def _keys(self, outputs: tuple[SelectItem, ...]) -> tuple[tuple[Scalar, ...], Sets | None]:
        """GROUP BY: expressions, numbers of columns, ALL that hold no aggregate, or grouping sets of them.

        Several grouping sets in a list mean every combination of one of each.
        """
        start = self.index
        if self.accept("ALL"):
            if any(is_star(output.scalar) for output in outputs):
                raise refuse_unsupported("GROUP BY ALL with *", "list the columns", self.since(start - 2))
            return tuple(output.scalar for output in outputs if not has_aggregate(output.scalar)), None
        keys: list[Scalar] = []
        sets: list[tuple[int, ...]] = [()]
        while True:
            added = self._grouping_element(keys, outputs)
            sets = [tuple(dict.fromkeys((*one, *other))) for one in sets for other in added]
            if len(sets) > MAX_SETS:
                raise refuse_too_large(f"more than {MAX_SETS} grouping sets", self.since(start))
            if not self.accept(","):
                break
        if self.accept("WITH"):  # GROUP BY a, b WITH ROLLUP
            everything = tuple((place,) for place in range(len(keys)))
            if self.accept("ROLLUP"):
                sets = _rollup(everything)
            elif self.accept("CUBE"):
                sets = _cube(everything)
            else:
                self.refuse_unexpected("the end of GROUP BY")
        return tuple(keys), None if sets == [tuple(range(len(keys)))] and keys else tuple(sets)

    def _grouping_element(self, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> list[tuple[int, ...]]:
        """The grouping sets of one element of GROUP BY, as positions in `keys`, which it may add to."""
        if self.accept("ROLLUP", "("):
            return _rollup(self._grouping_lists(keys, outputs))
        if self.accept("CUBE", "("):
            return _cube(self._grouping_lists(keys, outputs))
        if self.accept("GROUPING", "SETS", "("):
            found: list[tuple[int, ...]] = []
            while True:
                found += self._grouping_element(keys, outputs)
                if not self.accept(","):
                    break
            self.expect(")")
            return found
        return [self._grouping_list(keys, outputs)]

    def _grouping_lists(self, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> tuple[tuple[int, ...], ...]:
        found = [self._grouping_list(keys, outputs)]
        while self.accept(","):
            found.append(self._grouping_list(keys, outputs))
        self.expect(")")
        if len(found) > _MOST_LEVELS:
            raise refuse_too_large(f"ROLLUP or CUBE of more than {_MOST_LEVELS} keys", self.here())
        return tuple(found)

    def _grouping_list(self, keys: list[Scalar], outputs: tuple[SelectItem, ...]) -> tuple[int, ...]:
        """One key, several in brackets, or none: ()."""
        start = self.index
        if not self.sees("("):
            return (_place_of(self._key(outputs), keys),)
        end = self.closing[self.index]
        if end == start + 1:
            self.index = end + 1
            return ()
        if self.tokens[end + 1].key not in {",", ")", ";", ""} | _AFTER_KEYS:  # (a + b) / 2
            return (_place_of(self._key(outputs), keys),)
        self.index += 1
        places = [_place_of(self._key(outputs), keys)]
        while self.accept(","):
            places.append(_place_of(self._key(outputs), keys))
        self.expect(")")
        return tuple(places)

    def _key(self, outputs: tuple[SelectItem, ...]) -> Scalar:
        start = self.index
        key = self.count_parts(self.scalar())
        if not isinstance(key, Literal):
            return key
        if isinstance(key.value, bool) or not isinstance(key.value, int | Fraction):
            raise refuse_unsupported("GROUP BY a constant", "leave it out, or name a column", self.since(start))
        return self._column_at(key.value, outputs, start).scalar

    def _order(self, outputs: tuple[SelectItem, ...]) -> tuple[OrderItem, ...]:
        """ORDER BY. A number means the column of that name in the answer. NULLs come last unless it says otherwise."""
        if self.sees("ALL"):
            first = self.index
            self.index += 1
            descending = self.accept("DESC")
            if any(is_star(output.scalar) for output in outputs):
                raise refuse_unsupported("ORDER BY ALL with *", "name the columns", self.since(first))
            return tuple(OrderItem(ColumnReference(o.name), descending, nulls_first=False) for o in outputs)
        items = []
        while True:
            start = self.index
            item = self.order_item()
            scalar = self.count_parts(item.scalar)
            if isinstance(scalar, Literal) and type(scalar.value) in {int, Fraction}:
                scalar = ColumnReference(self._column_at(scalar.value, outputs, start).name, None, self.since(start))
            items.append(replace(item, scalar=scalar))
            if not self.accept(","):
                return tuple(items)

    def _column_at(self, number: object, outputs: tuple[SelectItem, ...], start: int) -> SelectItem:
        """The column that a number in GROUP BY or ORDER BY stands for."""
        if any(is_star(output.scalar) for output in outputs):
            raise refuse_unsupported("the number of a column beside *", "write its name", self.since(start))
        if not isinstance(number, int) or not 1 <= number <= len(outputs):
            fix = f"the select list has columns 1 to {len(outputs)}"
            at = self.since(start)
            raise Refused(ErrorCode.UNKNOWN_COLUMN, f"there is no column number {at.words:.20}", at=at, fix=fix)
        return outputs[number - 1]

    def _whole(self, name: str) -> int:
        """The number of LIMIT or OFFSET."""
        start = self.index
        self.index += 1
        if self.after() == "%":
            raise refuse_unsupported(f"{name} by percent", "write a whole number", self.through(start, self.index + 1))
        value = self.primary() if name == "TOP" else self.scalar()
        number = value.value if isinstance(value, Literal) else None
        if type(number) is not int or not 0 <= number < _MOST_ROWS:
            what = f"{name} of anything but a whole number below a billion"
            raise refuse_unsupported(what, "write a whole number", self.since(start))
        if name == "OFFSET" and not self.accept("ROWS"):
            self.accept("ROW")
        return number


def _first_of(once: Window) -> Call:
    """ROW_NUMBER() OVER (...) = 1."""
    return Call(Function.EQUAL, (once, Literal(1)), once.at)


def _order_once(query: Query, once: Window) -> Query:
    """The query whose DISTINCT ON takes the first rows in its order; a name of the select list is what it names."""
    named = {output.name.lower(): output.scalar for output in query.outputs if not is_star(output.scalar)}

    def read(item: OrderItem) -> OrderItem:
        scalar = item.scalar
        if isinstance(scalar, ColumnReference) and scalar.table is None:
            scalar = named.get(scalar.name.lower(), scalar)
        return replace(item, scalar=scalar)

    ordered = replace(once, order=tuple(map(read, query.order)))
    assert query.qualify is not None
    return replace(query, qualify=rebuild(query.qualify, lambda node: ordered if node is once else None))


def has_aggregate(scalar: Scalar) -> bool:
    """Whether a scalar holds an aggregate, or what is computed over a window of them."""
    return any(isinstance(node, Aggregate | Window | ScalarSubquery) for node in walk(scalar))


def _rollup(lists: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """ROLLUP (a, b): (a, b), (a), ()."""
    return [_join(lists[:size]) for size in range(len(lists), -1, -1)]


def _cube(lists: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """CUBE (a, b): (a, b), (a), (b), ()."""
    sizes = range(len(lists), -1, -1)
    return [_join(some) for size in sizes for some in combinations(lists, size)]


def _join(lists: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(place for some in lists for place in some))


def _place_of(key: Scalar, keys: list[Scalar]) -> int:
    """The position of a key, which is added where it is new."""
    if key not in keys:
        keys.append(key)
    return keys.index(key)


def _around(query: Query | UnionAll, at: SourceLocation | None) -> Query:
    """SELECT the same columns FROM (query)."""
    first = query
    while isinstance(first, UnionAll):
        first = first.parts[0]
    outputs = tuple(SelectItem(output.name, ColumnReference(output.name)) for output in first.outputs)
    return Query(DerivedTable(query, "subquery", at), outputs, None, (), None, (), None, 0, at=at)


def _stack_queries(
    left: Query | UnionAll, operation: str, right: Query | UnionAll, at: SourceLocation | None
) -> UnionAll:
    """Two queries put together; a chain of one operation that may be done in any order is one node."""

    def parts(side: Query | UnionAll) -> tuple[Query, ...]:
        if isinstance(side, Query):
            return (side,)
        same = side.operation == operation and operation.startswith("union")
        return side.parts if same else (_around(side, side.at),)

    return UnionAll((*parts(left), *parts(right)), operation, at)


def _with_windows(query: Query, windows: dict[str, Window]) -> Query:
    """The query with each name of a window replaced by what WINDOW says it is."""
    outputs = tuple(replace(output, scalar=_resolve_windows(output.scalar, windows)) for output in query.outputs)
    qualify = None if query.qualify is None else _resolve_windows(query.qualify, windows)
    return replace(query, outputs=outputs, qualify=qualify)


def _resolve_windows(scalar: Scalar, windows: dict[str, Window]) -> Scalar:
    def change(node: Scalar) -> Scalar | None:
        if not isinstance(node, Window) or not node.name:
            return None
        known = windows.get(node.name.lower())
        if known is None:
            what, fix = (
                f"there is no window {to_printable(node.name)}",
                "define it after the groups, or write it in brackets",
            )
            raise Refused(ErrorCode.SYNTAX, what, at=node.at, fix=fix)
        return replace(node, partition=known.partition, order=known.order, frame=known.frame, name="")

    return rebuild(scalar, change)


class _Item(NamedTuple):
    """An item of the select list: what it is, the name it was given, and where it stands."""

    scalar: Scalar
    given: str | None
    at: SourceLocation


def _name_items(items: list[_Item]) -> tuple[SelectItem, ...]:
    """Items with names. One that was given none gets one that is free; numbers go on, so none is tried twice."""
    taken: dict[str, int] = {}  # names in small letters, and the last number tried after each
    for item in items:
        if item.given is not None and item.given.lower() in taken:
            raise _called_alike(item.given, item.at)
        if item.given is not None:
            taken[item.given.lower()] = 1
    given = set(taken)
    outputs = []
    for position, item in enumerate(items, start=1):
        name = item.given or _name(item.scalar, position)
        if item.given is None and not is_star(item.scalar):
            if isinstance(item.scalar, ColumnReference) and name.lower() in given:
                raise _called_alike(name, item.at)
            wanted = name
            while name.lower() in taken:
                taken[wanted.lower()] += 1
                name = f"{wanted}_{taken[wanted.lower()]}"
            taken[name.lower()] = 1
        outputs.append(SelectItem(name, item.scalar))
    return tuple(outputs)


def _called_alike(name: str, at: SourceLocation) -> Refused:
    what, fix = f"two columns are named {to_printable(name)}", "give each column a name of its own"
    return Refused(ErrorCode.AMBIGUOUS, what, at=at, fix=fix)


def _name(scalar: Scalar, position: int) -> str:
    """The name of a column that was given none."""
    match scalar:
        case ColumnReference(name) | Call(Function.CAST, (ColumnReference(name), _)):
            return name
        case Aggregate("count", None):
            return "count"
        case Window(function, _, aggregate):
            return function if aggregate is None else _name(aggregate, position)
        case Aggregate(function, argument, distinct, share):
            word = "median" if share == Fraction(1, 2) else f"{function}_distinct" if distinct else function
            return f"{word}_{argument.name}" if isinstance(argument, ColumnReference) else word
    return f"column_{position}"
