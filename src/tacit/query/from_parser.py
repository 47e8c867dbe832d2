"""FROM, JOIN and WITH. A name that WITH gave is replaced by its query at each use, and counted at each use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.dialects import QuestionDialect
from tacit.query.expression_parser import ExpressionParser
from tacit.query.function_calls import Aggregates
from tacit.query.nodes import (
    STAR,
    ColumnReference,
    ConstantTable,
    DerivedTable,
    FromItem,
    Join,
    Literal,
    Query,
    Scalar,
    SelectItem,
    SemiJoin,
    TableReference,
    UnionAll,
    is_star,
    rebuild,
    walk,
)
from tacit.query.refusals import (
    MAX_NESTED,
    MAX_NODES,
    MAX_SOURCES,
    RESERVED,
    UNSUPPORTED_JOINS,
    nesting,
    refuse_too_large,
    refuse_unsupported,
    size,
    to_printable,
)
from tacit.query.types import parse_iso_date

_FILTERS = frozenset({"SEMI", "ANTI"})
_JOINS = UNSUPPORTED_JOINS.keys() | _FILTERS | {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL"}
_SIDES = frozenset({"LEFT", "RIGHT", "FULL"})
_KINDS = frozenset({"", "INNER", "CROSS", *_SIDES, *(f"{side} OUTER" for side in _SIDES)}) | {
    f"{side}{kind}" for kind in _FILTERS for side in ("", "LEFT ")
}
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
SERIES = {  # functions that give a series, and whether the end is in it
    "GENERATE_SERIES": "inclusive",
    "GENERATE_DATE_ARRAY": "inclusive",
    "GENERATE_TIMESTAMP_ARRAY": "inclusive",
    "GENERATE_ARRAY": "inclusive",
    "RANGE": "exclusive",
}
_MAX_SERIES = 8
_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog"})


@dataclass(frozen=True)
class CommonTable:
    """A query that WITH names, and how many sources and nodes each use of it adds."""

    query: Query | UnionAll
    sources: int
    nodes: int


class FromParser(ExpressionParser):
    """Reads what a query is over."""

    def __init__(self, text: str, aggregates: Aggregates, dialect: QuestionDialect) -> None:
        super().__init__(text, aggregates, dialect)
        self.parts: dict[str, CommonTable] = {}  # by name in small letters
        self.sources = 0
        self.nodes = 0
        self.unnamed = 0
        self.series = 0
        self.schemas: dict[str, tuple[str, ...]] = {}  # of the tables that were named with one, in small letters

    def subquery(self) -> Query | UnionAll:
        """A query in brackets inside an expression."""
        start = self.index
        found = self._parse_bracketed()
        if nesting(found) >= MAX_NESTED:
            what = f"subqueries are nested more than {MAX_NESTED} deep"
            raise refuse_too_large(what, self.since(start), "compute more in each subquery")
        return found

    def count_parts(self, scalar: Scalar) -> Scalar:
        """The scalar, its parts counted against the limit of the whole question."""
        self._add(0, size(scalar))
        return scalar

    def _add(self, sources: int, nodes: int) -> None:
        """Count, so that names of WITH that use each other twice cannot double a question twenty times over."""
        self.sources += sources
        self.nodes += nodes
        if self.sources > MAX_SOURCES:
            fix = "join fewer; a named subquery counts at each use with all that it uses"
            raise refuse_too_large(
                f"the question is over more than {MAX_SOURCES} tables and subqueries", self.here(), fix
            )
        if self.nodes > MAX_NODES:
            raise refuse_too_large(f"the question has more than {MAX_NODES:,} parts", self.here())

    def with_(self) -> None:
        """The names of WITH, each known to those after it, and only to this query."""
        if self.sees("RECURSIVE"):
            raise refuse_unsupported("WITH RECURSIVE", "join the table with itself as often as needed", self.here())
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
            columns = self.column_names() if self.sees("(") else ()
            self.expect("AS")
            if not self.accept("MATERIALIZED"):  # a hint to an engine, which changes no rows
                self.accept("NOT", "MATERIALIZED")
            before = self.sources, self.nodes
            self.sources = self.nodes = 0
            query = self._parse_bracketed()
            if columns:
                query = _name_columns(query, columns, name, self.since(start))
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
        """What FROM names: tables, subqueries and joins of these, with commas between. A comma binds less than JOIN."""
        found = self._parse_joined()
        while self.sees(","):
            start = self.index
            self.index += 1
            if self.sees("LATERAL"):
                self.refuse_unexpected("a table")
            right = self._parse_joined()
            found = Join(found, right, None, (), False, self.since(start))
        return found

    def _parse_joined(self) -> FromItem:
        """A table or subquery, and those joined to it from left to right."""
        found = self._item()
        while self.token.key in _JOINS:
            found = self._join(found)
        return found

    def _join(self, left: FromItem) -> Join | SemiJoin:
        start = self.index
        words = []
        while self.token.key in _JOINS - {"JOIN"}:
            words.append(self.token.key)
            self.index += 1
        self.expect("JOIN")
        for word in words:
            if word in UNSUPPORTED_JOINS:
                raise refuse_unsupported(f"{word} JOIN", UNSUPPORTED_JOINS[word], self.since(start))
        natural = words[:1] == ["NATURAL"]
        kind = " ".join(words[1:] if natural else words)
        if kind not in _KINDS or (natural and kind == "CROSS"):
            at, fix = self.since(start), "write one kind of join"
            raise Refused(ErrorCode.SYNTAX, f"{' '.join(words):.40} JOIN is not a kind of join", at=at, fix=fix)
        right = self._item()
        on, using = self._condition(start) if not natural and kind != "CROSS" else (None, ())
        filtering = next((word for word in words if word in _FILTERS), "")
        if filtering:
            return SemiJoin(left, right, on, using, natural, filtering == "ANTI", self.since(start))
        side = next((word for word in words if word in _SIDES), "")
        swapped = side == "RIGHT"
        first, second = (right, left) if swapped else (left, right)
        return Join(first, second, on, using, bool(side), self.since(start), natural, swapped, side == "FULL")

    def _condition(self, start: int) -> tuple[Scalar | None, tuple[str, ...]]:
        """ON with a condition, or USING with the names of columns."""
        if self.accept("ON"):
            return self.count_parts(self.scalar()), ()
        if not self.accept("USING", "("):
            fix = "say which of their rows match, by an equality of columns"
            raise refuse_unsupported("JOIN without ON or USING", fix, self.since(start))
        using = [self.name("a column")]
        while self.accept(","):
            using.append(self.name("a column"))
        self.expect(")")
        return None, tuple(using)

    def _item(self) -> FromItem:
        start = self.index
        if self.sees("("):
            return self._brackets(start)
        if self.token.kind == "text":
            raise refuse_unsupported("a file", "name a table of the policy", self.here())
        if self.token.kind == "word" and self.after() == "(" and self.sees("LATERAL"):
            self.refuse_unexpected("a table")
        if self.token.kind == "word" and self.after() == "(" and self.token.key in {*SERIES, "UNNEST"}:
            return self._series(start)
        return self.table()

    def table(self) -> FromItem:
        """A table by its name, with those of its schemas before and an alias behind."""
        start = self.index
        names = self._qualified_name(start)
        table, part = names[-1], self.parts.get(names[-1].lower()) if len(names) == 1 else None
        alias, columns = self._alias()
        alias = alias or table
        self._add(1 if part is None else 1 + part.sources, 0 if part is None else part.nodes)
        if part is None:
            if columns:
                fix = "list the columns in a subquery, and name them there"
                raise refuse_unsupported("a table with names for its columns", fix, self.since(start))
            return TableReference(table, alias, self.since(start))
        at = self.since(start)
        return DerivedTable(_name_columns(part.query, columns, alias, at) if columns else part.query, alias, at)

    def _series(self, start: int) -> ConstantTable:
        """GENERATE_SERIES(a, b, step) and the like, or UNNEST of one. Its column is called as it is, or as is said."""
        nested = self.accept("UNNEST", "(")
        word = self.token.key
        if word not in SERIES or self.after() != "(":
            fix = "give it a series of constants, or name a table of the policy"
            raise refuse_unsupported("UNNEST of anything but a series", fix, self.since(start))
        self.index += 2
        arguments = [self.count_parts(self.scalar())]
        while self.accept(","):
            arguments.append(self.count_parts(self.scalar()))
        self.expect(")")
        if nested:
            self.expect(")")
        at = self.since(start)
        if len(arguments) == 1 and word == "RANGE":
            arguments.insert(0, Literal(0))
        if not 2 <= len(arguments) <= 3:
            raise Refused(
                ErrorCode.SYNTAX, f"{word} takes a start, an end and a step", at=at, fix=f"write {word}(1, 10, 1)"
            )
        if word == "GENERATE_DATE_ARRAY":
            arguments = [_to_date(argument) for argument in arguments]
        alias, columns = self._alias()
        alias = alias or word.lower()
        self._add(1, 0)
        self.series += 1
        if self.series > _MAX_SERIES:
            raise refuse_too_large(f"the question has more than {_MAX_SERIES} series", at)
        return ConstantTable(columns[:1] or (alias,), (tuple(arguments),), alias, SERIES[word], at)

    def _qualified_name(self, start: int) -> list[str]:
        """The name of a table with the schemas before it. There is one namespace, so any schema will do.

        But one table has one schema: a join of two that are called alike would be a join of one with itself.
        """
        names = []
        while True:
            if self.token.kind == "word" and self.after() == "(":
                at = self.through(start, self.closing[self.index + 1])
                raise refuse_unsupported("a table function", "name a table of the policy", at)
            names.append(self._dashed_name() if self.dialect is QuestionDialect.BIGQUERY else self.name("a table"))
            if not self.accept("."):
                break
        schemas = tuple(name.lower() for name in names[:-1])
        if _SYSTEM_SCHEMAS & set(schemas):
            raise refuse_unsupported("a table of the system", "name a table of the policy", self.since(start))
        if schemas and not _is_suffix(schemas, self.schemas.setdefault(names[-1].lower(), schemas)):
            what = f"{to_printable(names[-1])} is named in two schemas"
            fix = "the policy has one table of that name: write the same schema, or none"
            raise Refused(ErrorCode.AMBIGUOUS, what, at=self.since(start), fix=fix)
        return names

    def _dashed_name(self) -> str:
        """A name that may have dashes in it without quotes, as projects have in BigQuery."""
        name = self.name("a table")
        while self.sees("-") and self.tokens[self.index - 1].end == self.token.start:
            follows = self.tokens[self.index + 1]
            if follows.kind not in {"word", "number"} or follows.start != self.token.end:
                break
            name += f"-{follows.text}"
            self.index += 2
        return name

    def _brackets(self, start: int) -> FromItem:
        """A subquery, or a join in brackets. A join that has a name is a subquery of all its columns."""
        inner = next(token.key for token in self.tokens[start:] if token.key != "(")
        query: Query | UnionAll
        if inner not in _QUERIES:
            self.index += 1
            found = self.source()
            self.expect(")")
            at = self.since(start)
            alias, columns = self._alias()
            if not alias:
                return found
            every = SelectItem(STAR, ColumnReference(STAR, None, at))
            query = Query(found, (every,), None, (), None, (), None, 0, at=at)
        else:
            query = self._parse_bracketed()
            at = self.since(start)
            alias, columns = self._alias()
        if not alias:
            self.unnamed += 1
            alias = "subquery" if self.unnamed == 1 else f"subquery_{self.unnamed}"
        self._add(1, 0)
        return DerivedTable(_name_columns(query, columns, alias, at) if columns else query, alias, at)

    def _alias(self) -> tuple[str, tuple[str, ...]]:
        """The name after a table or subquery, or nothing; and the names of its columns, if they follow."""
        named = self.accept("AS")
        if not named and self.token.kind != "name" and (self.token.kind != "word" or self.token.key in RESERVED):
            return "", ()
        alias = self.name("a name")
        return alias, self.column_names() if self.sees("(") else ()

    def column_names(self) -> tuple[str, ...]:
        """Names of columns in brackets, each once."""
        self.expect("(")
        names = [self.name("a column")]
        while self.accept(","):
            names.append(self.name("a column"))
        self.expect(")")
        if len({name.lower() for name in names}) < len(names):
            at, fix = self.through(self.index - 1, self.index - 1), "give each column a name of its own"
            raise Refused(ErrorCode.AMBIGUOUS, "two columns have the same name", at=at, fix=fix)
        return tuple(names)


def _to_date(argument: Scalar) -> Scalar:
    """A text that is a date as one."""
    day = parse_iso_date(argument.value) if isinstance(argument, Literal) and isinstance(argument.value, str) else None
    return argument if day is None else Literal(day)


def _is_suffix(schemas: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether one of both is the end of the other: "clinic"."public" and "public"."""
    length = min(len(schemas), len(known))
    return schemas[-length:] == known[-length:]


def _name_columns(query: Query | UnionAll, names: tuple[str, ...], alias: str, at: SourceLocation) -> Query | UnionAll:
    """A query whose first columns have other names. Where it groups by the old ones it becomes a subquery."""
    first = query.parts[0] if isinstance(query, UnionAll) else query
    if any(is_star(output.scalar) for output in first.outputs):
        raise refuse_unsupported("names for the columns of *", "list the columns inside, and name them there", at)
    if len(names) > len(first.outputs):
        what = f"{len(names)} names for {len(first.outputs)} columns"
        raise Refused(ErrorCode.SYNTAX, what, at=at, fix="give one name for each column")
    called = [*names, *(output.name for output in first.outputs[len(names) :])]
    if isinstance(query, Query) and not _groups_by_output_names(query):
        outputs = tuple(SelectItem(name, o.scalar) for name, o in zip(called, query.outputs, strict=True))
        known = {output.name.lower(): output.scalar for output in query.outputs}

        def read(node: Scalar) -> Scalar | None:  # after grouping, the name of an output means the output
            return known.get(node.name.lower()) if isinstance(node, ColumnReference) and node.table is None else None

        having, qualify = (None if part is None else rebuild(part, read) for part in (query.having, query.qualify))
        order = tuple(replace(item, scalar=rebuild(item.scalar, read)) for item in query.order)
        return replace(query, outputs=outputs, having=having, qualify=qualify, order=order)
    outputs = tuple(
        SelectItem(name, ColumnReference(output.name, None, at))
        for name, output in zip(called, first.outputs, strict=True)
    )
    return Query(DerivedTable(query, alias, at), outputs, None, (), None, (), None, 0, at=at)


def _groups_by_output_names(query: Query) -> bool:
    """Whether GROUP BY may mean an output by its name, and not a column."""
    known = {
        o.name.lower()
        for o in query.outputs
        if not isinstance(o.scalar, ColumnReference) or o.scalar.name.lower() != o.name.lower()
    }
    return any(
        isinstance(node, ColumnReference) and node.table is None and node.name.lower() in known
        for key in query.keys
        for node in walk(key)
    )


def has_table(source: FromItem) -> bool:
    """Whether a source names a table itself, and not only inside a subquery."""
    match source:
        case Join(left, right) | SemiJoin(left, right):
            return has_table(left) or has_table(right)
        case TableReference():
            return True
        case _:
            return False
