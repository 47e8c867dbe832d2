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
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, NoReturn

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.cursor import check_text
from tacit.query.from_parser import FromParser, has_table
from tacit.query.function_calls import Aggregates
from tacit.query.functions import Function
from tacit.query.nodes import (
    STAR,
    Aggregate,
    Call,
    ColumnReference,
    Literal,
    OrderItem,
    Query,
    Scalar,
    SelectItem,
    UnionAll,
    is_star,
    walk,
)
from tacit.query.refusals import (
    GROUPING_SETS_FIX,
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
_MOST_LEVELS = 4  # of ROLLUP that a refusal spells out
_CLAUSES = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "SELECT", "JOIN", "ON"})
_ORDER = "the order is SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET"
_WITHOUT_MATCH = "keep those without a match: FROM a LEFT JOIN b USING (id) WHERE b.x IS NULL"
_STACKS = {
    "UNION": "write UNION ALL, which keeps every row, and group what comes out of it",
    "INTERSECT": "join on the unit: FROM a JOIN b USING (id)",
    "EXCEPT": _WITHOUT_MATCH,
    "MINUS": _WITHOUT_MATCH,
}


def parse(text: str, aggregates: Aggregates, today: datetime.date | None = None) -> Query:
    """The question that `text` asks of the `aggregates` that there are, or Refused with the place and the fix.

    `today` is the date, or the time, that CURRENT_DATE and NOW() stand for; without one they are refused.
    """
    parser = _QueryParser(check_text(text), aggregates)
    parser.today = today
    return parser.question()


class _QueryParser(FromParser):
    """Reads queries, clause by clause."""

    def question(self) -> Query:
        """The whole text: one query, and nothing after it."""
        if self.token.kind == "end":
            raise Refused(ErrorCode.SYNTAX, "the question is empty", fix='ask("SELECT COUNT(*) FROM ...")')
        found = self.query(whole=True)
        ended = self.sees(";")
        while self.accept(";"):
            pass
        if self.token.kind != "end" and ended:
            fix = "ask the statements one after the other"
            raise Refused(ErrorCode.STATEMENT, "one question at a time", at=self.here(), fix=fix)
        if self.token.kind != "end":
            self._end()
        assert isinstance(found, Query)
        if nesting(found) > MAX_NESTED:
            what = f"subqueries are nested more than {MAX_NESTED} deep"
            raise refuse_too_large(what, found.at, "compute more in each subquery")
        return found

    def _end(self) -> NoReturn:
        if self.token.key in _CLAUSES:
            what = f"{self.token.key} is in the wrong place"
            raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix=_ORDER)
        if self.accept("USING") or self.token.key in UNSUPPORTED_CLAUSES:  # USING SAMPLE
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
        """A query with its WITH, or several under UNION ALL; the `whole` question is one."""
        start, outer = self.index, self.parts
        if self.accept("WITH"):
            self.with_()
        bare = not self.sees("(")
        stacked = [self._part(whole=whole)]
        while self.token.key in _STACKS:
            self._stack(whole=whole)
            stacked.append(self._part(whole=whole))
        self.parts = outer
        if bare and len(stacked) == 1 and isinstance(stacked[0], Query):
            return self._tail(stacked[0])
        if self.sees("ORDER", "LIMIT", "OFFSET"):
            word = "ORDER BY" if self.sees("ORDER") else self.token.key
            fix = "put it into the brackets, or after the outer question"
            raise refuse_unsupported(f"{word} after brackets or UNION ALL", fix, self.here())
        if len(stacked) == 1:
            return stacked[0]
        flat = [query for part in stacked for query in (part.parts if isinstance(part, UnionAll) else (part,))]
        return UnionAll(tuple(flat), self.since(start))

    def _part(self, *, whole: bool) -> Query | UnionAll:
        if not self.accept("("):
            return self._select(whole=whole)
        found = self.query(whole=whole)
        self.expect(")")
        return found

    def _stack(self, *, whole: bool) -> None:
        """Read UNION ALL, or refuse what else stacks queries."""
        start, word = self.index, self.token.key
        self.index += 1
        every = self.accept("ALL")
        if whole:
            raise refuse_unsupported(f"{word} of questions", "ask the parts one after the other", self.since(start))
        if word != "UNION" or not every:
            raise refuse_unsupported(word, _STACKS[word], self.since(start))
        if self.sees("BY"):
            raise refuse_unsupported("UNION ALL BY NAME", "select the columns in the same order", self.since(start))

    def _select(self, *, whole: bool) -> Query:
        """SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ..."""
        start = self.index
        if self.sees("FROM"):
            raise refuse_unsupported("FROM before SELECT", "start with SELECT: SELECT COUNT(*) FROM ...", self.here())
        if self.token.key in WRITE_STATEMENTS | OTHER_STATEMENTS:
            raise refuse_statement(self.token.key, self.here())
        self.expect("SELECT")
        if self.sees("TOP") and self.tokens[self.index + 1].kind == "number":
            raise refuse_unsupported("TOP", "write LIMIT 3 at the end", self.through(self.index, self.index + 1))
        if self.sees("DISTINCT"):
            fix = "SELECT ward, COUNT(*) ... GROUP BY ward shows each value once"
            raise refuse_unsupported("SELECT DISTINCT", fix, self.through(start, self.index))
        self.accept("ALL")
        outputs = self._outputs()
        if not self.sees("FROM") and (self.token.kind == "end" or self.sees(")", ";") or self.token.key in _CLAUSES):
            what = "the question does not name a table"
            raise Refused(
                ErrorCode.UNKNOWN_TABLE, what, at=self.since(start), fix="SELECT COUNT(*) FROM one of the tables"
            )
        self.expect("FROM")
        source = self.source()
        if whole and has_table(source):
            _refuse_rows(outputs)
        where = self.count_parts(self.scalar()) if self.accept("WHERE") else None
        keys = self._keys(outputs) if self.accept("GROUP", "BY") else ()
        having = self.count_parts(self.scalar()) if self.accept("HAVING") else None
        return Query(source, outputs, where, keys, having, (), None, 0, self.since(start))

    def _tail(self, query: Query) -> Query:
        """ORDER BY, LIMIT and OFFSET."""
        order = self._order(query.outputs) if self.accept("ORDER", "BY") else ()
        limit = self._whole("LIMIT") if self.sees("LIMIT") else None
        offset = self._whole("OFFSET") if self.sees("OFFSET") else 0
        if limit is None and self.sees("LIMIT"):
            limit = self._whole("LIMIT")
        return replace(query, order=order, limit=limit, offset=offset)

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
            raise Refused(
                ErrorCode.SYNTAX, what, at=self.through(first, first), fix="write a comma between two columns"
            )

    def _star(self) -> ColumnReference | None:
        """A column called * stands for all of them, of a subquery or of a table in it."""
        start, table = self.index, None
        if self.after() == "." and self.after(2) == "*":
            table = self.name("a table")
            self.index += 1
        if not self.accept("*"):
            return None
        at = self.since(start)
        if self.sees("EXCLUDE", "EXCEPT", "REPLACE", "RENAME", "LIKE", "ILIKE"):
            raise refuse_unsupported(f"* {self.token.key}", "list the columns", self.through(start, self.index))
        return ColumnReference(STAR, table, at)

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

    def _keys(self, outputs: tuple[SelectItem, ...]) -> tuple[Scalar, ...]:
        """GROUP BY: expressions, numbers of columns, or ALL that hold no aggregate."""
        start = self.index
        if self.accept("ALL"):
            if any(is_star(output.scalar) for output in outputs):
                raise refuse_unsupported("GROUP BY ALL with *", "list the columns", self.since(start - 2))
            return tuple(output.scalar for output in outputs if not has_aggregate(output.scalar))
        keys = [self._key(outputs)]
        while self.accept(","):
            keys.append(self._key(outputs))
        if self.accept("WITH"):
            self.refuse_unexpected("the end of GROUP BY")
        return tuple(keys)

    def _key(self, outputs: tuple[SelectItem, ...]) -> Scalar:
        start = self.index
        if self.sees("ROLLUP") and self.after() == "(":
            raise self._refuse_rollup()
        if (self.sees("CUBE") and self.after() == "(") or (self.sees("GROUPING") and self.after() == "SETS"):
            self.refuse_unexpected("a key")
        if self.sees("(") and self.after() == ")":
            raise refuse_unsupported("GROUP BY ()", "leave GROUP BY out", self.through(start, start + 1))
        key = self.count_parts(self.scalar())
        if not isinstance(key, Literal):
            return key
        if isinstance(key.value, bool) or not isinstance(key.value, int | Fraction):
            raise refuse_unsupported("GROUP BY a constant", "leave it out, or name a column", self.since(start))
        return self._column_at(key.value, outputs, start).scalar

    def _refuse_rollup(self) -> Refused:
        """A refusal of ROLLUP (a, b), with the questions that it stands for where it is of few names."""
        first = end = self.index + 2
        while self.tokens[end].key != ")":  # every bracket is closed
            end += 1
        names = [self.through(item, item).words for item in range(first, end, 2)]
        simple = all(self.tokens[item].kind in {"word", "name"} for item in range(first, end, 2))
        if (
            not simple
            or not 1 <= len(names) <= _MOST_LEVELS
            or {self.tokens[item].key for item in range(first + 1, end, 2)} - {","}
        ):
            return refuse_unsupported("ROLLUP", GROUPING_SETS_FIX, self.here())
        longest, *others = [f"GROUP BY {', '.join(names[:size])}" for size in range(len(names), 0, -1)]
        rest = "".join(f"with {some}, " for some in others) + ("and " if others else "")
        fix = f"ask with {longest} and add its counts and sums up, which is free; or ask {rest}without GROUP BY too"
        return refuse_unsupported("ROLLUP", fix, self.through(self.index, end))

    def _order(self, outputs: tuple[SelectItem, ...]) -> tuple[OrderItem, ...]:
        """ORDER BY. A number means the column of that name in the answer. NULLs come last unless it says otherwise."""
        if self.sees("ALL"):
            raise refuse_unsupported("ORDER BY ALL", "name the columns: ORDER BY ward, n DESC", self.here())
        items = []
        while True:
            start = self.index
            scalar = self.count_parts(self.scalar())
            if isinstance(scalar, Literal) and type(scalar.value) in {int, Fraction}:
                scalar = ColumnReference(self._column_at(scalar.value, outputs, start).name, None, self.since(start))
            descending = self.accept("DESC")
            if not descending:
                self.accept("ASC")
            first = self.accept("NULLS", "FIRST")
            if not first:
                self.accept("NULLS", "LAST")
            items.append(OrderItem(scalar, descending, first))
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
            raise refuse_unsupported(f"{name} by percent", f"write {name} 10", self.through(start, self.index + 1))
        if self.sees("ALL"):
            raise refuse_unsupported(f"{name} ALL", "leave it out", self.through(start, self.index))
        value = self.scalar()
        number = value.value if isinstance(value, Literal) else None
        if type(number) is not int or not 0 <= number < _MOST_ROWS:
            what = f"{name} of anything but a whole number below a billion"
            raise refuse_unsupported(what, f"write {name} 10", self.since(start))
        if self.sees(","):
            raise refuse_unsupported(f"{name} with a comma", "write LIMIT 10 OFFSET 5", self.through(start, self.index))
        if name == "OFFSET" and not self.accept("ROWS"):
            self.accept("ROW")
        return number


def has_aggregate(scalar: Scalar) -> bool:
    """Whether a scalar holds an aggregate."""
    return any(isinstance(node, Aggregate) for node in walk(scalar))


def _refuse_rows(outputs: tuple[SelectItem, ...]) -> None:
    for output in outputs:
        if isinstance(output.scalar, ColumnReference) and is_star(output.scalar):
            what, fix = "* would show rows as they are", "SELECT COUNT(*), AVG(x), ... instead"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=output.scalar.at, fix=fix)


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
    what, fix = f"two columns are named {to_printable(name)}", "give each column a name of its own with AS"
    return Refused(ErrorCode.AMBIGUOUS, what, at=at, fix=fix)


def _name(scalar: Scalar, position: int) -> str:
    """The name of a column that was given none."""
    match scalar:
        case ColumnReference(name) | Call(Function.CAST, (ColumnReference(name), _)):
            return name
        case Aggregate("count", None):
            return "count"
        case Aggregate(function, argument, distinct, share):
            word = "median" if share == Fraction(1, 2) else f"{function}_distinct" if distinct else function
            return f"{word}_{argument.name}" if isinstance(argument, ColumnReference) else word
    return f"column_{position}"
