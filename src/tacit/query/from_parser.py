"""FROM, JOIN and WITH. A name that WITH gave is replaced by its query at each use, and counted at each use."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import ErrorCode, Refused
from tacit.query.expression_parser import ExpressionParser
from tacit.query.function_calls import Aggregates
from tacit.query.nodes import DerivedTable, FromItem, Join, Query, Scalar, TableReference, UnionAll
from tacit.query.refusals import (
    MAX_NODES,
    MAX_SOURCES,
    RESERVED,
    UNSUPPORTED_JOINS,
    refuse_too_large,
    refuse_unsupported,
    size,
    to_printable,
)

_JOINS = UNSUPPORTED_JOINS.keys() | {"JOIN", "INNER", "LEFT", "OUTER"}
_QUERIES = frozenset({"SELECT", "WITH", "FROM"})


@dataclass(frozen=True)
class CommonTable:
    """A query that WITH names, and how many sources and nodes each use of it adds."""

    query: Query | UnionAll
    sources: int
    nodes: int


class FromParser(ExpressionParser):
    """Reads what a query is over."""

    def __init__(self, text: str, aggregates: Aggregates) -> None:
        super().__init__(text, aggregates)
        self.parts: dict[str, CommonTable] = {}  # by name in small letters
        self.sources = 0
        self.nodes = 0
        self.unnamed = 0

    def count_parts(self, scalar: Scalar) -> Scalar:
        """The scalar, its parts counted against the limit of the whole question."""
        self._add(0, size(scalar))
        return scalar

    def _add(self, sources: int, nodes: int) -> None:
        """Count, so that names of WITH that use each other twice cannot double a question twenty times over."""
        self.sources += sources
        self.nodes += nodes
        if self.sources > MAX_SOURCES:
            fix = "join fewer; a name of WITH counts at each use with all that it uses"
            raise refuse_too_large(
                f"the question is over more than {MAX_SOURCES} tables and subqueries", self.here(), fix
            )
        if self.nodes > MAX_NODES:
            raise refuse_too_large(f"the question has more than {MAX_NODES:,} parts", self.here())

    def with_(self) -> None:
        """The names of WITH, each known to those after it, and only to this query."""
        if self.sees("RECURSIVE"):
            raise refuse_unsupported("WITH RECURSIVE", "join as often as needed: JOIN ... USING (id)", self.here())
        self.parts = dict(self.parts)
        taken: set[str] = set()
        while True:
            start = self.index
            name = self.name("a name").lower()
            if name in taken:
                fix = "give each a name of its own"
                raise Refused(
                    ErrorCode.AMBIGUOUS, f"WITH names {to_printable(name)} twice", at=self.since(start), fix=fix
                )
            taken.add(name)
            if self.sees("("):
                at = self.through(start, self.closing[self.index])
                raise refuse_unsupported("a name of WITH with columns", "name them inside: SELECT age AS a", at)
            self.expect("AS")
            if self.sees("MATERIALIZED", "NOT"):
                raise refuse_unsupported("MATERIALIZED", "leave it out", self.here())
            before = self.sources, self.nodes
            self.sources = self.nodes = 0
            query = self._parse_bracketed()
            self.parts[name] = CommonTable(query, self.sources, self.nodes)
            self.sources, self.nodes = before
            if not self.accept(","):
                return

    def _parse_bracketed(self) -> Query | UnionAll:
        outside, self.unnamed = self.unnamed, 0
        self.expect("(")
        query = self.query()
        self.expect(")")
        self.unnamed = outside
        return query

    def source(self) -> FromItem:
        """A table or subquery, and those joined to it from left to right."""
        found = self._item()
        while True:
            if self.sees(",") and self.after() == "LATERAL":
                self.index += 1
                self.refuse_unexpected("a table")
            if self.sees(","):
                at = self.through(self.index, min(self.index + 1, len(self.tokens) - 2))
                raise refuse_unsupported("a join by a comma", "write FROM a JOIN b USING (id)", at)
            if self.token.key not in _JOINS:
                return found
            found = self._join(found)

    def _join(self, left: FromItem) -> Join:
        start = self.index
        words = []
        while self.token.key in _JOINS - {"JOIN"}:
            words.append(self.token.key)
            self.index += 1
        self.expect("JOIN")
        for word in words:
            if word in UNSUPPORTED_JOINS:
                raise refuse_unsupported(f"{word} JOIN", UNSUPPORTED_JOINS[word], self.since(start))
        if words not in ([], ["INNER"], ["LEFT"], ["LEFT", "OUTER"]):
            at, fix = self.since(start), "write JOIN or LEFT JOIN"
            raise Refused(ErrorCode.SYNTAX, f"{' '.join(words):.40} JOIN is not a kind of join", at=at, fix=fix)
        right = self._item()
        on, using = None, list[str]()
        if self.accept("ON"):
            on = self.count_parts(self.scalar())
        elif self.accept("USING", "("):
            using.append(self.name("a column"))
            while self.accept(","):
                using.append(self.name("a column"))
            self.expect(")")
        else:
            fix = "say which rows match: JOIN b USING (id), or JOIN b ON a.id = b.id"
            raise refuse_unsupported("JOIN without ON or USING", fix, self.since(start))
        return Join(left, right, on, tuple(using), "LEFT" in words, self.since(start))

    def _item(self) -> FromItem:
        start = self.index
        if self.sees("("):
            return self._brackets(start)
        if self.token.kind == "text":
            raise refuse_unsupported("a file", "name a table of the policy", self.here())
        if self.token.kind == "word" and self.after() == "(":
            at = self.through(start, self.closing[self.index + 1])
            if self.sees("LATERAL"):
                self.refuse_unexpected("a table")
            raise refuse_unsupported("a table function", "name a table of the policy", at)
        table = self.name("a table")
        if self.sees("."):
            at = self.through(start, self.index + 1)
            raise refuse_unsupported("a table of a schema", "name it as the policy does, and nothing more", at)
        alias = self._alias() or table
        part = self.parts.get(table.lower())
        self._add(1 if part is None else 1 + part.sources, 0 if part is None else part.nodes)
        if part is None:
            return TableReference(table, alias, self.since(start))
        return DerivedTable(part.query, alias, self.since(start))

    def _brackets(self, start: int) -> FromItem:
        """A subquery, or a join in brackets."""
        inner = next(token.key for token in self.tokens[start:] if token.key != "(")
        if inner == "VALUES":
            at = self.through(start, self.closing[start])
            raise refuse_unsupported("VALUES", "name a table of the policy", at)
        if inner not in _QUERIES:
            self.index += 1
            found = self.source()
            self.expect(")")
            if self._alias():
                raise refuse_unsupported("a name for a join", "name each table in it", self.since(start))
            return found
        query = self._parse_bracketed()
        at = self.since(start)
        alias = self._alias()
        if not alias:
            self.unnamed += 1
            alias = "subquery" if self.unnamed == 1 else f"subquery_{self.unnamed}"
        self._add(1, 0)
        return DerivedTable(query, alias, at)

    def _alias(self) -> str:
        """The name after a table or subquery, or nothing."""
        named = self.accept("AS")
        start = self.index
        if not named and self.token.kind != "name" and (self.token.kind != "word" or self.token.key in RESERVED):
            return ""
        alias = self.name("a name")
        if self.sees("("):
            at = self.through(start, self.closing[self.index])
            raise refuse_unsupported("a name with columns", "name them inside: SELECT age AS a", at)
        return alias


def has_table(source: FromItem) -> bool:
    """Whether a source names a table itself, and not only inside a subquery."""
    match source:
        case Join(left, right):
            return has_table(left) or has_table(right)
        case TableReference():
            return True
        case _:
            return False
