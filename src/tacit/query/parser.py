"""From SQL text to nodes, by an allow-list: what is not read here is refused.

>>> from tacit.query.nodes import Aggregate
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
from typing import NoReturn

from tacit.errors import ErrorCode, Refused
from tacit.query.composition import SET_OPERATIONS, compose_queries, wrap_query
from tacit.query.cursor import check_text
from tacit.query.dialects import QuestionDialect
from tacit.query.distinct_on import build_first_of, order_first_rows, read_distinct_on
from tacit.query.from_parser import FromParser
from tacit.query.function_calls import Aggregates
from tacit.query.functions import Function
from tacit.query.grouping_parser import read_keys
from tacit.query.named_windows import read_named_windows, replace_named_windows
from tacit.query.nodes import (
    STAR,
    Call,
    ColumnReference,
    ConstantTable,
    FromItem,
    Query,
    Scalar,
    SelectItem,
    UnionAll,
    Window,
    is_star,
    walk,
)
from tacit.query.order_parser import read_tail, read_whole_number
from tacit.query.refusals import (
    MAX_NESTED,
    OTHER_STATEMENTS,
    UNSUPPORTED_CLAUSES,
    WRITE_STATEMENTS,
    nesting,
    refuse_statement,
    refuse_too_large,
    refuse_unsupported,
)
from tacit.query.select_list_parser import has_aggregate, read_select_list

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
    parser = _QueryParser(check_text(text), aggregates, dialect)
    parser.today = today
    found = parser.question()
    return replace(found, notes=tuple(dict.fromkeys(parser.notes)))


class _QueryParser(FromParser):
    """Reads queries, clause by clause."""

    def __init__(self, text: str, aggregates: Aggregates, dialect: QuestionDialect) -> None:
        super().__init__(text, aggregates, dialect)
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
            found = wrap_query(found, found.at)
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
        while self.token.key in SET_OPERATIONS:
            first, operation = self.index, self._stack()
            operations.add(operation)
            if len(operations) > 1:
                fix = "put brackets around what belongs together"
                raise refuse_unsupported("a mix of UNION, INTERSECT and EXCEPT", fix, self.since(first))
            part = self._part(whole=whole)
            found = compose_queries(found, operation, part, self.since(start))
        self.parts = outer
        if not self.sees("ORDER", "LIMIT", "OFFSET", "FETCH"):
            return found
        if not bare or isinstance(found, UnionAll):
            found, self.once = wrap_query(found, self.since(start)), None
        once, tailed = self.once, read_tail(self, found, self.windows)
        if once is None:
            return tailed
        numbered = order_first_rows(tailed, once)
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
        once = read_distinct_on(self, start) if distinct and self.accept("ON") else None
        if once is not None:
            distinct = False
        if not distinct:
            self.accept("ALL")
        top = self._top() if self.sees("TOP") and self.tokens[self.index + 1].kind == "number" else None
        outputs = read_select_list(self)
        if source is None and not self._is_over():
            self.expect("FROM")
            source = self.source()
        if source is None:
            source = self._nothing(outputs, start)
        where = self.count_parts(self.scalar()) if self.accept("WHERE") else None
        keys, sets = read_keys(self, outputs) if self.accept("GROUP", "BY") else ((), None)
        having = self.count_parts(self.scalar()) if self.accept("HAVING") else None
        windows = read_named_windows(self) if self.accept("WINDOW") else {}
        qualify = self.count_parts(self.scalar()) if self.accept("QUALIFY") else None
        if not windows and self.accept("WINDOW"):
            windows = read_named_windows(self)
        if distinct and not keys and not any(is_star(o.scalar) or has_aggregate(o.scalar) for o in outputs):
            keys, distinct = tuple(dict.fromkeys(output.scalar for output in outputs)), False  # each value once
        found = Query(source, outputs, where, keys, having, (), top, 0, distinct, sets, qualify, self.since(start))
        self.windows, self.once = windows, once
        found = replace_named_windows(found, windows)
        if once is None:
            return found
        kept = (
            build_first_of(once) if found.qualify is None else Call(Function.AND, (found.qualify, build_first_of(once)))
        )
        return replace(found, qualify=kept)

    def _is_over(self) -> bool:
        """Whether a select list is not followed by FROM, as in SELECT 1."""
        over = self.token.kind == "end" or self.sees(")", ";") or self.token.key in _CLAUSES | SET_OPERATIONS
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

    def _top(self) -> int:
        """The number of TOP 10, which is LIMIT 10."""
        return read_whole_number(self, "TOP")
