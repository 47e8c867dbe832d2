"""From SQL text to nodes, by an allow-list: what is not converted here is refused.

>>> parse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").outputs[1]
Output(name='n', scalar=Aggregate(function='count', argument=None))
"""

from __future__ import annotations

import datetime
import logging
import re
from fractions import Fraction
from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.errors import Code, Refused
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregate, Call, Case, Column, Literal, Order, Output, Query, Scalar, scalars
from tacit.query.refuse import (
    ARITHMETIC,
    CLAUSES,
    INSTEAD,
    MAX_ITEMS,
    Places,
    check_size,
    check_tree,
    place_at,
    unsupported,
)
from tacit.query.types import iso_date

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns on standard error about text that is refused anyway

_ALLOWED_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}

_BINARY: dict[type[exp.Expr], Fn] = {
    exp.Add: Fn.ADD,
    exp.Sub: Fn.SUBTRACT,
    exp.Mul: Fn.MULTIPLY,
    exp.Div: Fn.DIVIDE,
    exp.EQ: Fn.EQUAL,
    exp.NEQ: Fn.UNEQUAL,
    exp.LT: Fn.LESS,
    exp.LTE: Fn.LESS_EQUAL,
    exp.GT: Fn.GREATER,
    exp.GTE: Fn.GREATER_EQUAL,
    exp.And: Fn.AND,
    exp.Or: Fn.OR,
}
_UNARY: dict[type[exp.Expr], Fn] = {
    exp.Neg: Fn.NEGATE,
    exp.Not: Fn.NOT,
    exp.Abs: Fn.ABS,
    exp.Floor: Fn.FLOOR,
    exp.Ceil: Fn.CEIL,
}
_MANY: dict[type[exp.Expr], Fn] = {
    exp.Least: Fn.LEAST,
    exp.Greatest: Fn.GREATEST,
    exp.Coalesce: Fn.COALESCE,
}
_AGGREGATES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}

# Flags that the parser sets by itself and that say nothing about the question.
_SILENT = {"typed", "safe", "big_int", "is_nvl", "is_null", "ignore_nulls", "is_string", "quoted"}


def parse(text: str) -> Query:
    """The question that `text` asks, or Refused with the place and the fix."""
    if not isinstance(text, str):
        raise Refused(
            Code.SYNTAX, f"a question is text, got {type(text).__name__}", fix='ask("SELECT COUNT(*) FROM ...")'
        )
    check_size(text)
    try:
        statement = _statement(text)
        query = _Reader(statement, text).query(statement)
    except RecursionError:
        raise Refused(
            Code.TOO_LARGE, "the question is nested too deeply", fix="ask several smaller questions"
        ) from None
    for scalar in scalars(query):
        check_tree(scalar)
    return query


def _statement(text: str) -> exp.Select:
    """The one SELECT in the text."""
    try:
        statements = [s for s in sqlglot.parse(text, read="duckdb") if s is not None]
    except SqlglotError as problem:
        raise _syntax(text, problem) from None
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise _syntax(text) from None  # the parser stumbled over a text that is no SQL
    if not statements:
        raise Refused(Code.SYNTAX, "the question is empty", fix='ask("SELECT COUNT(*) FROM ...")')
    if len(statements) > 1:
        raise Refused(Code.STATEMENT, "one question at a time", fix="ask the statements one after the other")
    (statement,) = statements
    if isinstance(statement, exp.SetOperation):
        raise unsupported(
            statement.key.upper(), "ask the parts one after the other", Places(statement, text)(statement)
        )
    if not isinstance(statement, exp.Select):
        if text.split(maxsplit=1)[0].upper() in {"EXPLAIN", "DESCRIBE", "DESC", "SHOW", "PRAGMA", "SUMMARIZE"}:
            raise Refused(Code.STATEMENT, "only SELECT is answered", fix="use explain, schema and budget instead")
        what = "only SELECT is answered; nothing is ever written"
        raise Refused(Code.STATEMENT, what, fix="SELECT COUNT(*) FROM ...")
    return statement


def _syntax(text: str, problem: SqlglotError | None = None) -> Refused:
    """A refusal of text that is no SQL, with the place the parser stopped at, or the quote that never ends."""
    what = "this is not SQL that can be read"
    if not text.lstrip("( \n\t").upper().startswith(("SELECT", "WITH")):
        return Refused(Code.SYNTAX, what, fix="a question starts with SELECT")
    details = getattr(problem, "errors", None)
    if not details:
        quote = text.rfind("'") if text.count("'") % 2 else text.rfind('"') if text.count('"') % 2 else -1
        at = place_at(text, quote, quote + 1) if quote >= 0 else None
        return Refused(Code.SYNTAX, what, at=at, fix="check quotes, comments and brackets")
    detail = details[0]
    lines = text.split("\n")
    line = min(max(int(detail.get("line") or 1), 1), len(lines))
    highlight = detail.get("highlight") or ""
    end = min(int(detail.get("col") or 1), len(lines[line - 1]))
    start = sum(len(before) + 1 for before in lines[: line - 1]) + max(0, end - max(1, len(highlight)))
    where = place_at(text, start, start + max(1, len(highlight)))
    return Refused(Code.SYNTAX, what, at=where, fix="check the text near the mark")


class _Reader:
    """Converts parsed nodes to ours, with the text at hand to point into."""

    def __init__(self, statement: exp.Select, text: str) -> None:
        self.place = Places(statement, text)

    def query(self, select: exp.Select) -> Query:
        for name, value in select.args.items():
            if value and name not in _ALLOWED_CLAUSES:
                what, fix = CLAUSES.get(name, (name.strip("_").upper(), "leave it out"))
                node = value[0] if isinstance(value, list) else value
                raise unsupported(what, fix, self.place(node) if isinstance(node, exp.Expr) else None)
        source = self.source(select)
        outputs = self.outputs(select.expressions)
        where = select.args.get("where")
        having = select.args.get("having")
        return Query(
            table=source.name,
            alias=source.alias_or_name,
            outputs=outputs,
            where=None if where is None else self.scalar(where.this),
            keys=self.keys(select.args.get("group"), outputs),
            having=None if having is None else self.scalar(having.this),
            order=self.order(select.args.get("order"), outputs),
            limit=self.whole("LIMIT", select.args.get("limit")),
            offset=self.whole("OFFSET", select.args.get("offset")) or 0,
            table_at=self.place(source),
        )

    def source(self, select: exp.Select) -> exp.Table:
        clause = select.args.get("from_")
        if clause is None:
            raise Refused(
                Code.UNKNOWN_TABLE, "the question names no table", fix="SELECT COUNT(*) FROM one of the tables"
            )
        table = clause.this
        if isinstance(table, exp.Subquery):
            raise unsupported("a subquery", "ask over one table of the policy", self.place(table))
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise unsupported("a table function", "ask over one table of the policy", self.place(clause))
        extra = [name for name, value in table.args.items() if value and name not in {"this", "alias"}]
        for name in extra:
            if name in CLAUSES:
                raise unsupported(*CLAUSES[name], self.place(table))
        if extra or (table.args.get("alias") and table.args["alias"].args.get("columns")):
            self.refuse(table, "this way of naming a table", "name it as the policy does, and nothing more")
        return table

    def outputs(self, items: list[exp.Expr]) -> tuple[Output, ...]:
        if len(items) > MAX_ITEMS:
            raise Refused(Code.TOO_LARGE, f"more than {MAX_ITEMS:,} columns", fix="ask several smaller questions")
        outputs: list[Output] = []
        taken: set[str] = set()
        for item in items:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                raise Refused(
                    Code.RAW_COLUMN,
                    "* would show rows as they are",
                    at=self.place(item),
                    fix="SELECT COUNT(*), AVG(x), ... instead",
                )
            inner = item.this if isinstance(item, exp.Alias) else item
            scalar = self.scalar(inner)
            name = item.alias if isinstance(item, exp.Alias) else _name(scalar, len(outputs) + 1)
            if name.lower() in taken:
                if isinstance(item, exp.Alias):
                    raise Refused(
                        Code.AMBIGUOUS,
                        f"two columns are called {name}",
                        at=self.place(item),
                        fix="give each column a name of its own with AS",
                    )
                name = next(f"{name}_{n}" for n in range(2, len(items) + 3) if f"{name}_{n}".lower() not in taken)
            taken.add(name.lower())
            outputs.append(Output(name, scalar))
        return tuple(outputs)

    def keys(self, group: exp.Group | None, outputs: tuple[Output, ...]) -> tuple[Scalar, ...]:
        if group is None:
            return ()
        for name, value in group.args.items():
            if value and name != "expressions":
                what = "GROUP BY ALL" if name == "all" else name.strip("_").upper()
                self.refuse(group, what, "list the columns: GROUP BY ward, sex")
        return tuple(self.numbered(item, outputs) for item in group.expressions)

    def order(self, order: exp.Order | None, outputs: tuple[Output, ...]) -> tuple[Order, ...]:
        if order is None:
            return ()
        items = []
        for item in order.expressions:
            self.only(item, "this", "desc", "nulls_first")
            descending = bool(item.args.get("desc"))
            scalar = self.numbered(item.this, outputs)
            if isinstance(item.this, exp.Literal) and not item.this.is_string:  # a number names the output itself
                scalar = Column(outputs[int(item.this.this) - 1].name)
            items.append(Order(scalar, descending, bool(item.args.get("nulls_first"))))
        return tuple(items)

    def numbered(self, item: exp.Expr, outputs: tuple[Output, ...]) -> Scalar:
        """A scalar, or the output that a bare number in GROUP BY or ORDER BY stands for."""
        if isinstance(item, exp.Literal) and not item.is_string:
            if item.this.isdigit() and 1 <= int(item.this) <= len(outputs):
                return outputs[int(item.this) - 1].scalar
            raise Refused(
                Code.UNKNOWN_COLUMN,
                f"there is no column number {item.this}",
                at=self.place(item),
                fix=f"the select list has columns 1 to {len(outputs)}",
            )
        return self.scalar(item)

    def whole(self, name: str, clause: exp.Expr | None) -> int | None:
        if clause is None:
            return None
        value = clause.args.get("expression")
        plain = all(part == "expression" or not more for part, more in clause.args.items())
        if plain and isinstance(value, exp.Literal) and not value.is_string and re.fullmatch(r"\d{1,9}", value.this):
            return int(value.this)
        self.refuse(clause, f"this {name}", f"{name} takes a whole number: {name} 10")

    def scalar(self, node: exp.Expr | None) -> Scalar:
        if node is None:
            raise Refused(Code.SYNTAX, "an argument is missing", fix="check the arguments of the functions")
        kind = type(node)
        at = self.place(node)
        match node:
            case exp.Paren():
                self.only(node, "this")
                return self.scalar(node.this)
            case exp.Column():
                self.only(node, "this", "table")
                if not isinstance(node.this, exp.Identifier):
                    self.refuse(node, "this", "name a column")
                return Column(node.name, node.table or None, at)
            case exp.Literal():
                return Literal(node.this if node.is_string else self.number(node), at)
            case exp.Boolean():
                return Literal(bool(node.this), at)
            case exp.Null():
                return Literal(None, at)
            case exp.Cast() | exp.Date():
                return Literal(self.date(node), at)
            case exp.Between():
                self.only(node, "this", "low", "high")
                value = self.scalar(node.this)
                low = Call(Fn.GREATER_EQUAL, (value, self.scalar(node.args["low"])), at)
                return Call(Fn.AND, (low, Call(Fn.LESS_EQUAL, (value, self.scalar(node.args["high"])), at)), at)
            case exp.In():
                return self.membership(node)
            case exp.Is():
                self.only(node, "this", "expression")
                if not isinstance(node.expression, exp.Null):
                    self.refuse(node, "IS, except with NULL,", "write x = TRUE, or x IS NULL")
                return Call(Fn.IS_NULL, (self.scalar(node.this),), at)
            case exp.Case():
                return self.case(node)
            case exp.Filter():
                return self.filtered(node)
            case exp.Round():
                self.only(node, "this", "decimals")
                digits = node.args.get("decimals")
                arguments = (
                    (self.scalar(node.this),) if digits is None else (self.scalar(node.this), self.scalar(digits))
                )
                return Call(Fn.ROUND, arguments, at)
        if kind in _AGGREGATES:
            return self.aggregate(node)
        if kind in {exp.And, exp.Or}:
            return Call(_BINARY[kind], tuple(self.scalar(part) for part in node.flatten()), at)
        if kind in _BINARY:
            self.only(node, "this", "expression")
            return Call(_BINARY[kind], (self.scalar(node.this), self.scalar(node.expression)), at)
        if kind in _UNARY:
            self.only(node, "this")
            return Call(_UNARY[kind], (self.scalar(node.this),), at)
        if kind in _MANY:
            self.only(node, "this", "expressions")
            self.few(node)
            return Call(_MANY[kind], tuple(self.scalar(part) for part in (node.this, *node.expressions)), at)
        self.unknown(node)

    def aggregate(self, node: exp.Expr) -> Aggregate:
        self.only(node, "this", "expressions")
        function = _AGGREGATES[type(node)]
        at = self.place(node)
        argument = node.this
        if isinstance(argument, exp.Distinct):
            fix = (
                "COUNT(x) counts rows; GROUP BY shows the declared keys"
                if function == "count"
                else "leave DISTINCT out"
            )
            self.refuse(node, f"{function.upper()}(DISTINCT ...)", fix)
        if node.args.get("expressions"):
            self.refuse(node, f"{function.upper()} of several columns", "give it one argument")
        if argument is None or isinstance(argument, exp.Star):
            if function != "count":
                self.refuse(node, f"{function.upper()} of nothing", "give it one argument")
            return Aggregate(function, None, at)
        return Aggregate(function, self.scalar(argument), at)

    def filtered(self, node: exp.Filter) -> Aggregate:
        """AGG(x) FILTER (WHERE c) is AGG(CASE WHEN c THEN x END)."""
        self.only(node, "this", "expression")
        inner = self.scalar(node.this)
        if not isinstance(inner, Aggregate) or not isinstance(node.expression, exp.Where):
            self.refuse(node, "this FILTER", "write COUNT(*) FILTER (WHERE age > 40)")
        condition = self.scalar(node.expression.this)
        argument = inner.argument if inner.argument is not None else Literal(1)
        chosen = Case(((condition, argument),), Literal(None), self.place(node))
        return Aggregate(inner.function, chosen, self.place(node))

    def case(self, node: exp.Case) -> Case:
        self.only(node, "this", "ifs", "default")
        subject = None if node.this is None else self.scalar(node.this)
        branches = []
        for branch in node.args["ifs"]:
            condition = self.scalar(branch.this)
            if subject is not None:
                condition = Call(Fn.EQUAL, (subject, condition), self.place(branch))
            branches.append((condition, self.scalar(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(None) if default is None else self.scalar(default)
        return Case(tuple(branches), otherwise, self.place(node))

    def membership(self, node: exp.In) -> Scalar:
        if node.args.get("query"):
            raise unsupported("a subquery", "list the values: IN ('A', 'B')", self.place(node))
        self.only(node, "this", "expressions")
        self.few(node)
        items = tuple(self.scalar(item) for item in node.expressions)
        if not items:
            raise Refused(Code.SYNTAX, "IN lists no values", at=self.place(node), fix="list the values: IN ('A', 'B')")
        if not all(isinstance(item, Literal) for item in items):
            self.refuse(node, "IN over anything but constants", "list the values: IN ('A', 'B')")
        return Call(Fn.IN, (self.scalar(node.this), *items), self.place(node))

    def number(self, node: exp.Literal) -> int | Fraction:
        text = node.this
        if text.isdigit():
            if len(text) > 38:
                self.refuse(node, "a number of more than 38 digits", "use a smaller number")
            return int(text)
        try:
            mantissa, _, exponent = text.lower().partition("e")
            if len(mantissa) > 40 or abs(int(exponent or 0)) > 300:
                raise ValueError
            return Fraction(text)
        except ValueError:
            self.refuse(node, "this number", "write it as 12, 0.5 or 1e6")

    def date(self, node: exp.Expr) -> datetime.date:
        """DATE 'YYYY-MM-DD', the only cast there is."""
        inner = node.this
        target = node.args.get("to")
        is_date = isinstance(node, exp.Date) or (isinstance(target, exp.DataType) and target.is_type("date"))
        if is_date and isinstance(inner, exp.Literal) and inner.is_string:
            date = iso_date(inner.this)
            if date is not None:
                return date
            self.refuse(node, f"the date '{inner.this[:20]}'", "write DATE '2025-12-31'")
        self.refuse(node, "CAST", "declare the type in the policy; dates are written DATE '2025-12-31'")

    def few(self, node: exp.Expr) -> None:
        if len(node.expressions) > MAX_ITEMS:
            raise Refused(
                Code.TOO_LARGE, f"a list of more than {MAX_ITEMS:,} items", fix="use a range: x BETWEEN 1 AND 1000"
            )

    def only(self, node: exp.Expr, *names: str) -> None:
        """Refuse a node that says more than what was understood of it."""
        for name, value in node.args.items():
            if value and name not in names and name not in _SILENT:
                self.refuse(node, f"{name.strip('_').upper()} in {node.key.upper()}", "leave it out")

    def unknown(self, node: exp.Expr) -> NoReturn:
        at = self.place(node)
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
            raise unsupported("a subquery", "ask over one table of the policy", at)
        if isinstance(node, exp.Window):
            raise unsupported("a window function", "aggregate with GROUP BY instead", at)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise unsupported("a parameter", "write the value into the question", at)
        written = "" if at is None else at.words
        called = re.match(r"\w+(?=\s*\()", written)
        name = node.name if isinstance(node, exp.Anonymous) else called[0] if called else node.key
        shown = name.upper() if called or not written else written
        fix = INSTEAD.get(name.lower()) or INSTEAD.get(node.key) or ARITHMETIC
        raise Refused(Code.UNKNOWN_FUNCTION, f"{shown:.40} is not answered", at=at, fix=fix)

    def refuse(self, node: exp.Expr, what: str, fix: str) -> NoReturn:
        raise unsupported(what, fix, self.place(node))


def _name(scalar: Scalar, position: int) -> str:
    """The name of a column that was given none."""
    match scalar:
        case Column(name):
            return name
        case Aggregate("count", None):
            return "count"
        case Aggregate(function, Column(name)):
            return f"{function}_{name}"
        case Aggregate(function):
            return function
    return f"column_{position}"
