"""A query over rows as one question for each of its grouping sets, and a query over what these release."""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import ErrorCode, Refused
from tacit.plan.relation import Relation
from tacit.query.functions import GROUPING, Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    Literal,
    Query,
    Scalar,
    ScalarSubquery,
    SelectItem,
    Window,
    find_location,
    rebuild,
    walk,
)
from tacit.query.refusals import to_printable


def key_name(place: int) -> str:
    """The name of a key, by its place in GROUP BY."""
    return f"\0k{place}"


def _aggregate_name(place: int) -> str:
    return f"\0a{place}"


class GroupedQuery:
    """A query over rows as members, which give keys and aggregates, and a query over these.

    Keys and aggregates have names in both that no question can have.
    """

    def __init__(self, query: Query, relation: Relation) -> None:
        self.query, self.relation = query, relation
        self.named = {output.name.lower(): output.scalar for output in query.outputs}
        self.keys = [self._key(key) for key in query.keys]
        self.sets = query.sets if query.sets is not None else (tuple(range(len(self.keys))),)
        self.resolved = [relation.resolve(relation.bare(key)) for key in self.keys]
        self.aggregates: list[Aggregate] = []
        finishing = [*(item.scalar for item in query.order)]
        finishing += [clause for clause in (query.having, query.qualify) if clause is not None]
        self.outputs = tuple(replace(output, scalar=self._read(output.scalar)) for output in query.outputs)
        self.finishing = {id(scalar): self._read(scalar) for scalar in finishing}

    def names(self) -> list[str]:
        """The names of keys and aggregates."""
        return [*map(key_name, range(len(self.keys))), *map(_aggregate_name, range(len(self.aggregates)))]

    def key_words(self) -> tuple[str, ...]:
        """The keys, as the question writes them."""
        places = (find_location(key) for key in self.keys)
        return tuple("the key" if at is None else to_printable(at.words) for at in places)

    @property
    def bits(self) -> list[str]:
        """The names of the bits of GROUPING, one for each key."""
        return [f"\0g{place}" for place in range(len(self.keys))]

    def member(self, places: tuple[int, ...]) -> Query:
        """The question of one grouping set."""
        outputs = [SelectItem(key_name(place), self.keys[place]) for place in places]
        outputs += [SelectItem(_aggregate_name(place), each) for place, each in enumerate(self.aggregates)]
        keys = tuple(self.keys[place] for place in places)
        return Query(self.query.source, tuple(outputs), self.query.where, keys, None, (), None, 0, at=self.query.at)

    def outer(self) -> Query:
        """The query over what the members release; its source is handed over with it."""
        query = self.query
        return replace(
            query,
            outputs=self.outputs,
            where=None if query.having is None else self.finishing[id(query.having)],
            keys=(),
            having=None,
            order=tuple(replace(item, scalar=self.finishing[id(item.scalar)]) for item in query.order),
            sets=None,
            qualify=None if query.qualify is None else self.finishing[id(query.qualify)],
        )

    def _key(self, key: Scalar) -> Scalar:
        """A key; a name of the select list stands for what it names."""
        if isinstance(key, ColumnReference) and key.table is None and not self._is_field(key):
            return self.named.get(key.name.lower(), key)
        return key

    def _is_field(self, column: ColumnReference) -> bool:
        return any(f.name.lower() == column.name.lower() for f in self.relation.fields)

    def _read(self, scalar: Scalar) -> Scalar:
        """A scalar of the select list, HAVING, QUALIFY or ORDER BY over what the members release."""
        return rebuild(scalar, self._change)

    def _change(self, node: Scalar) -> Scalar | None:
        match node:
            case Aggregate():
                if node not in self.aggregates:
                    self.aggregates.append(node)
                return ColumnReference(_aggregate_name(self.aggregates.index(node)), None, node.at)
            case Call(function, arguments) if function == GROUPING:
                return self._grouping(node, arguments)
            case ColumnReference() | Call() | Case() if self._is_over_rows(node):
                found = self.relation.resolve(self.relation.bare(node))
                if found in self.resolved:
                    return ColumnReference(key_name(self.resolved.index(found)), None, find_location(node))
        if isinstance(node, ColumnReference) and node.name != "*" and self._is_field(node):
            what = f"{node.name} would show the values of single rows"
            raise Refused(ErrorCode.RAW_COLUMN, what, at=node.at, fix=f"group by {node.name} too")
        return None

    def _is_over_rows(self, scalar: Scalar) -> bool:
        parts = list(walk(scalar))
        columns = [part for part in parts if isinstance(part, ColumnReference)]
        return (
            bool(columns)
            and all(map(self._is_field, columns))
            and not any(
                isinstance(part, Aggregate | Window | ScalarSubquery)
                or (isinstance(part, Call) and part.function == GROUPING)
                for part in parts
            )
        )

    def _grouping(self, node: Call, arguments: tuple[Scalar, ...]) -> Scalar:
        """GROUPING(a, b) is 2 for each row that adds up over a, and 1 more where it does over b."""
        found: Scalar = Literal(0)
        for argument in arguments:
            resolved = self.relation.resolve(self.relation.bare(argument))
            if resolved not in self.resolved:
                what = "GROUPING takes keys of GROUP BY"
                raise Refused(ErrorCode.TYPE, what, at=node.at, fix="name a key")
            bit: Scalar = Literal(0)
            if len(self.sets) > 1:
                bit = ColumnReference(self.bits[self.resolved.index(resolved)])
            double = Call(Function.MULTIPLY, (Literal(2), found))
            found = bit if found == Literal(0) else Call(Function.ADD, (double, bit))
        return found
