"""The two halves of a question: private aggregates over rows, and the finishing of what is released.

Whatever stands outside an aggregate sees released values and declared keys only, so it is post-processing and free.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.answers.recipe import Result
from tacit.errors import Code, Refused
from tacit.plan.bind import Bound, bind_released, bind_row, find
from tacit.policy.model import Table
from tacit.query.nodes import Aggregate, Column, Domain, KeyOf, Order, Output, Query, Released, Scalar
from tacit.query.types import NUMBERS, Type

MAX_GROUPS = 10_000


@dataclass(frozen=True)
class Halves:
    """The aggregates in order of appearance, each with its bound argument, and the finishing over them."""

    where: Bound | None
    keys: tuple[Domain, ...]
    aggregates: tuple[tuple[Aggregate, Bound | None], ...]
    results: tuple[Result, ...]
    having: Scalar | None
    order: tuple[Order, ...]


def split(query: Query, table: Table) -> Halves:
    """Both halves of the question, bound to the table."""
    return _Splitter(query, table).halves()


class _Splitter:
    def __init__(self, query: Query, table: Table) -> None:
        self.query = query
        self.table = table
        self.keys = [self.key(scalar) for scalar in query.keys]
        self.aggregates: list[tuple[Aggregate, Bound | None]] = []
        self.named = {output.name.lower(): output.scalar for output in query.outputs}

    def halves(self) -> Halves:
        where = None if self.query.where is None else self.row(self.query.where)
        if where is not None and where.type is not Type.BOOL:
            raise Refused(Code.TYPE, "WHERE takes a condition", fix="write WHERE age >= 40")
        self.count_groups()
        results = tuple(self.result(output) for output in self.query.outputs)
        having = None if self.query.having is None else self.finishing(self.query.having)
        if having is not None and having.type is not Type.BOOL:
            raise Refused(Code.TYPE, "HAVING takes a condition", fix="write HAVING COUNT(*) > 100")
        order = tuple(
            Order(self.finishing(item.scalar).scalar, item.descending, item.nulls_first) for item in self.query.order
        )
        if not self.aggregates:
            raise Refused(Code.AGGREGATE, "the question asks for no aggregate", fix="add COUNT(*), SUM(x) or AVG(x)")
        scalar = None if having is None else having.scalar
        return Halves(where, tuple(self.keys), tuple(self.aggregates), results, scalar, order)

    def row(self, scalar: Scalar) -> Bound:
        return bind_row(scalar, self.table, self.query.alias)

    def key(self, scalar: Scalar) -> Domain:
        """A grouping column with declared keys. An alias of a plain column stands for it."""
        if isinstance(scalar, Column) and scalar.table is None and self.table.column(scalar.name) is None:
            scalar = {o.name.lower(): o.scalar for o in self.query.outputs}.get(scalar.name.lower(), scalar)
        if not isinstance(scalar, Column):
            raise Refused(
                Code.UNSUPPORTED,
                "GROUP BY an expression is not answered",
                at=getattr(scalar, "at", None),
                fix="group by a column, or count cases: COUNT(CASE WHEN age < 18 THEN 1 END)",
            )
        column = self.table.column(find(scalar, self.table, self.query.alias))
        assert column is not None
        if column.values is None:
            raise Refused(
                Code.PRIVATE_KEY,
                f"the values of {column.name} are not public, so a group could reveal that someone exists",
                at=scalar.at,
                fix=f"ask the owner to declare values for {column.name}, or count one value: WHERE {column.name} = ...",
            )
        return Domain(column.name, column.values)

    def count_groups(self) -> None:
        groups = 1
        for domain in self.keys:
            groups *= len(domain.values)
        if groups > MAX_GROUPS:
            raise Refused(
                Code.TOO_MANY_GROUPS,
                f"the keys make {groups:,} groups; {MAX_GROUPS:,} is the most",
                fix="group by fewer columns",
            )
        if len({domain.column for domain in self.keys}) < len(self.keys):
            raise Refused(Code.AMBIGUOUS, "GROUP BY names a column twice", fix="name each column once")

    def result(self, output: Output) -> Result:
        bound = bind_released(output.scalar, self.leaf)
        if bound.type is None:
            raise Refused(Code.TYPE, f"column {output.name} is always NULL", fix="leave it out")
        return Result(output.name, bound.scalar, bound.type)

    def finishing(self, scalar: Scalar) -> Bound:
        """A scalar of HAVING or ORDER BY, where the names of outputs may be used too."""
        return bind_released(scalar, self.leaf_or_output)

    def leaf_or_output(self, node: Scalar) -> Bound:
        if isinstance(node, Column) and node.table is None and node.name.lower() in self.named:
            return bind_released(self.named[node.name.lower()], self.leaf)
        return self.leaf(node)

    def leaf(self, node: Scalar) -> Bound:
        """An aggregate or a key, as a value of the noisy table."""
        if isinstance(node, Aggregate):
            return self.aggregate(node)
        assert isinstance(node, Column)
        name = find(node, self.table, self.query.alias)
        for index, domain in enumerate(self.keys):
            if domain.column == name:
                column = self.table.column(name)
                assert column is not None
                return Bound(KeyOf(index), column.type)
        column = self.table.column(name)
        assert column is not None
        function = "AVG" if column.type in NUMBERS else "COUNT"
        group = "" if column.values is None else ", or into GROUP BY"
        raise Refused(
            Code.RAW_COLUMN,
            f"{node.name} would show the values of single rows",
            at=node.at,
            fix=f"put it into an aggregate: {function}({node.name}){group}",
        )

    def aggregate(self, node: Aggregate) -> Bound:
        argument = None if node.argument is None else self.row(node.argument)
        if (node, argument) not in self.aggregates:
            self.aggregates.append((node, argument))
        kind = Type.FLOAT
        if node.function == "count" or (node.function == "sum" and argument is not None and argument.type is Type.INT):
            kind = Type.INT
        return Bound(Released(self.aggregates.index((node, argument))), kind)
