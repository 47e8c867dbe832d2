"""Expressions, by recursive descent with one token of foresight: what is read is never read again.

So a text takes time in proportion to its tokens. Operators bind as they do in DuckDB and PostgreSQL, from OR, which
binds least, to a sign before a number; two comparisons in a row need brackets.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from tacit.errors import ErrorCode, Refused, SourceLocation, substitute
from tacit.query.call_syntax import CallSyntax, constant_number, constant_text, count_arguments
from tacit.query.cursor import TokenCursor
from tacit.query.date_calls import build_date, build_timestamp, day_of_clock, read_digits, time_of_clock
from tacit.query.dialect_names import CLOCK_DATES, CLOCK_TIMES, UNITS
from tacit.query.dialects import DIALECT_NOTES, QuestionDialect
from tacit.query.function_calls import Aggregates, build_call, is_known_function
from tacit.query.functions import (
    COMPARISONS,
    CONDITIONS,
    DATE_PARTS,
    GROUPING,
    LIST,
    TIME_PARTS,
    WINDOW_FUNCTIONS,
    WRITTEN_WINDOWS,
    Function,
)
from tacit.query.intervals import INTERVAL_FIX, add_interval, build_interval, is_interval, scale_interval
from tacit.query.nodes import (
    Aggregate,
    Call,
    Case,
    ColumnReference,
    ConstantTable,
    Exists,
    InSubquery,
    Literal,
    OrderItem,
    Query,
    Scalar,
    ScalarSubquery,
    UnionAll,
    Window,
    find_location,
)
from tacit.query.number_calls import MOST_DIGITS, TAKE_LISTS, build_same, fold_decimals
from tacit.query.refusals import (
    CAST_SUGGESTIONS,
    FUNCTIONS_WITHOUT_PARENTHESES,
    MAX_ITEMS,
    MAX_LEVELS,
    RESERVED,
    TIMESTAMPS,
    UNSUPPORTED_CLAUSES,
    refuse_too_large,
    refuse_unknown_function,
    refuse_unsupported,
    to_printable,
)
from tacit.query.text_calls import build_like, build_match, build_similar
from tacit.query.types import EXACT_TYPES, NUMERIC_TYPES, TYPES_BY_NAME, Type

_OR, _AND, _NOT, _IS, _COMPARISON, _RANGE, _CONCAT, _SUM, _PRODUCT, _POWER, _SIGN = range(11)
_ALONE = frozenset({_COMPARISON, _RANGE})
_INFIX: dict[str, tuple[int, Function]] = {
    "=": (_COMPARISON, Function.EQUAL),
    "==": (_COMPARISON, Function.EQUAL),
    "<>": (_COMPARISON, Function.UNEQUAL),
    "!=": (_COMPARISON, Function.UNEQUAL),
    "<": (_COMPARISON, Function.LESS),
    "<=": (_COMPARISON, Function.LESS_EQUAL),
    ">": (_COMPARISON, Function.GREATER),
    ">=": (_COMPARISON, Function.GREATER_EQUAL),
    "||": (_CONCAT, Function.CONCAT),
    "+": (_SUM, Function.ADD),
    "-": (_SUM, Function.SUBTRACT),
    "*": (_PRODUCT, Function.MULTIPLY),
    "/": (_PRODUCT, Function.DIVIDE),
    "%": (_PRODUCT, Function.MOD),
    "//": (_PRODUCT, Function.DIV),
    "^": (_POWER, Function.POWER),
    "**": (_POWER, Function.POWER),
}
_RANGES = frozenset({"BETWEEN", "IN", "LIKE", "ILIKE", "SIMILAR"})
_PATTERNS = frozenset({"~~", "~~*", "!~~", "~", "~*", "!~", "^@"})  # which bind as || does
_WORDS = (
    {"OR": _OR, "AND": _AND, "IS": _IS, "ISNULL": _IS, "NOTNULL": _IS, "<=>": _COMPARISON}
    | dict.fromkeys(_RANGES, _RANGE)
    | dict.fromkeys(_PATTERNS, _CONCAT)
)
_BRACKETS = "put brackets around what belongs together"
_CASTING = frozenset({"cast", "try_cast", "safe_cast"})
_CLOCK = CLOCK_DATES | CLOCK_TIMES
_IS_WHOLE = DATE_PARTS | TIME_PARTS | {Function.FLOOR, Function.CEIL}
_MATCHES = frozenset({"GLOB", "REGEXP", "RLIKE"})
_IS_CONDITION = COMPARISONS | CONDITIONS | {Function.IN, Function.IS_NULL, Function.LIKE}
_MOST_FRAME = 9  # digits of a number of rows
_SUBQUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_MOST_PARTS = 4  # of a name: database, schema, table and column


class ExpressionParser(TokenCursor, ABC):
    """Reads expressions."""

    def __init__(self, text: str, aggregates: Aggregates) -> None:
        super().__init__(text)
        self.aggregates = aggregates
        self.level = 0
        self.today: datetime.date | None = None  # what the policy declares as the present day, or time
        self.dialect = QuestionDialect.POSTGRES
        self.notes: list[str] = []  # what an answer says of names that dialects have for several things

    @abstractmethod
    def query(self) -> Query | UnionAll:
        """A query in brackets."""

    @abstractmethod
    def subquery(self) -> Query | UnionAll:
        """A query in brackets inside an expression."""

    def scalar(self, least: int = _OR) -> Scalar:
        """An expression, of operators that bind at least so much."""
        self.level += 1
        if self.level > MAX_LEVELS:
            raise refuse_too_large("an expression has too many parts within each other", self.here())
        start, last = self.index, _SIGN
        found = self._operand(least)
        while (level := self._binding()) is not None and level >= least:
            if level > last or (level == last and level in _ALONE):  # as in a < b < c, and in a IN (1, 2) + 3
                raise self._refuse_chain(found, start)
            found = self._operation(found, level, start)
            last = level
        self.level -= 1
        return found

    def _refuse_chain(self, found: Scalar, start: int) -> Refused:
        """A refusal of a second comparison in a row: a < b < c is a < b AND b < c."""
        what, at, fix = "a comparison inside another is not answered", self.through(start, self.index), _BRACKETS
        match found:
            case Call(name, (_, middle)) if name in COMPARISONS and (inner := find_location(middle)) is not None:
                if self.token.key in _INFIX and _INFIX[self.token.key][1] in COMPARISONS:
                    second = f"AND {inner.written} {self.token.text}"
                    fix = f"compare twice: {at.written.removesuffix(self.token.text)}{second}"
                    twice = substitute((self.here(), second))
                    return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix, suggestion=twice)
        return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix)

    def _binding(self) -> int | None:
        """How much the next operator binds, or None where there is none."""
        key = self.token.key
        if key == "NOT":
            return _RANGE if self.after() in _RANGES | _MATCHES else None
        return _INFIX[key][0] if key in _INFIX else _WORDS.get(key)

    def _operation(self, left: Scalar, level: int, start: int) -> Scalar:
        key = self.token.key
        if key in {"AND", "OR"}:
            return self._chain(left, level, start)
        if level == _IS:
            return self._is(left, start)
        if level == _RANGE:
            return self._range(left, start)
        self.index += 1
        if key in _PATTERNS:
            return self._pattern(left, key, start)
        right = self.scalar(level + 1)
        at = self.since(start)
        if key == "<=>":
            return build_same(left, right, at)
        if level in {_SUM, _PRODUCT} and (is_interval(left) or is_interval(right)):
            return self._interval_arithmetic(key, left, right, at)
        function = _INFIX[key][1]
        if function is Function.DIVIDE and self.dialect is QuestionDialect.POSTGRES:
            function = Function.RATIO
        return fold_decimals(Call(function, (left, right), at))

    def _interval_arithmetic(self, key: str, left: Scalar, right: Scalar, at: SourceLocation) -> Scalar:
        """d + INTERVAL '7 days', d - INTERVAL '7 days', INTERVAL '7 days' + d, and n * INTERVAL '1 day'."""
        if key in {"+", "-"} and not is_interval(left):
            return add_interval(left, right, at, subtract=key == "-")
        if key == "+" and not is_interval(right):
            return add_interval(right, left, at)
        if key == "*" and is_interval(left) != is_interval(right):
            return scale_interval(*((left, right) if is_interval(left) else (right, left)), at)
        raise refuse_unsupported(f"an interval with {key} beside another", INTERVAL_FIX, at)

    def _pattern(self, left: Scalar, key: str, start: int) -> Scalar:
        """x ~~ 'a%' is LIKE, x ~ '^a' a regular expression; a * is for any case, and a ! for NOT."""
        any_case = key.endswith("*") or (key.startswith("!") and self.accept("*"))
        right = self.scalar(_CONCAT + 1)
        at = self.since(start)
        if key == "^@":
            return build_call(CallSyntax("starts_with", (left, right), at), self.aggregates)
        build = build_like if "~~" in key else build_match
        found = build(left, right, at, any_case=any_case)
        return Call(Function.NOT, (found,), at) if key.startswith("!") else found

    def _chain(self, left: Scalar, level: int, start: int) -> Scalar:
        """Conditions joined by one word are one call, with or without brackets: a OR (b OR c)."""
        function = Function.AND if level == _AND else Function.OR
        parts = [left]
        while self.accept(function.upper()):
            parts.append(self.scalar(level + 1))
        flat = [
            inner
            for part in parts
            for inner in (part.arguments if isinstance(part, Call) and part.function == function else (part,))
        ]
        return Call(function, tuple(flat), self.since(start))

    def _is(self, left: Scalar, start: int) -> Scalar:
        """IS NULL, and IS TRUE or IS FALSE, which are never NULL: CASE WHEN x THEN TRUE ELSE FALSE END."""
        word = self.token.key
        self.index += 1
        negated = word == "NOTNULL" or (word == "IS" and self.accept("NOT"))
        if word != "IS" or self.accept("NULL") or self.accept("UNKNOWN"):
            found: Scalar = Call(Function.IS_NULL, (left,), self.since(start))
        elif self.sees("TRUE", "FALSE"):
            wanted = self.token.key == "TRUE"
            self.index += 1
            at = self.since(start)
            condition = left if wanted else Call(Function.NOT, (left,), at)
            found = Case(((condition, Literal(True, at)),), Literal(False, at), at)
        elif self.accept("DISTINCT", "FROM"):
            found = build_same(left, self.scalar(_IS + 1), self.since(start))
            negated = not negated
        else:
            self.refuse_unexpected("NULL, TRUE or FALSE")
        return Call(Function.NOT, (found,), self.since(start)) if negated else found

    def _range(self, left: Scalar, start: int) -> Scalar:
        negated = self.accept("NOT")
        word = self.token.key
        if word not in _RANGES:
            self.refuse_unexpected("LIKE")
        self.index += 1
        if word == "IN":
            found: Scalar = self._membership(left, start)
        elif word == "BETWEEN":
            found = self._between(left, start)
        elif word == "SIMILAR":
            self.expect("TO")
            found = build_similar(left, self.scalar(_CONCAT), self.since(start))
        elif self.sees("ANY", "ALL", "SOME") and self.after() == "(":
            found = self._like_several(left, start, any_case=word == "ILIKE")
        else:
            pattern = self.scalar(_CONCAT)
            escape = self._escape()
            found = build_like(left, pattern, self.since(start), any_case=word == "ILIKE", escape=escape)
        return Call(Function.NOT, (found,), self.since(start)) if negated else found

    def _between(self, left: Scalar, start: int) -> Scalar:
        """x BETWEEN a AND b; SYMMETRIC takes the ends in either order."""
        symmetric = self.accept("SYMMETRIC")
        if not symmetric:
            self.accept("ASYMMETRIC")
        low = self.scalar(_CONCAT)
        self.expect("AND")
        high = self.scalar(_CONCAT)
        at = self.since(start)

        def within(least: Scalar, most: Scalar) -> Call:
            ends = Call(Function.GREATER_EQUAL, (left, least), at), Call(Function.LESS_EQUAL, (left, most), at)
            return Call(Function.AND, ends, at)

        return Call(Function.OR, (within(low, high), within(high, low)), at) if symmetric else within(low, high)

    def _escape(self) -> str:
        """The character of ESCAPE after a pattern, or none."""
        if not self.accept("ESCAPE"):
            return ""
        if self.token.kind != "text" or len(self.token.text) != 1:
            raise refuse_unsupported("ESCAPE of anything but one character", "write one character", self.here())
        self.index += 1
        return self.tokens[self.index - 1].text

    def _like_several(self, left: Scalar, start: int, *, any_case: bool) -> Scalar:
        """x LIKE ANY ('a%', 'b%') is one of them, and x LIKE ALL (...) all of them."""
        function = Function.AND if self.token.key == "ALL" else Function.OR
        closing = self.closing[self.index + 1]
        if self.tokens[self.index + 2].key in _SUBQUERIES:
            raise refuse_unsupported("LIKE with a subquery", "list the patterns", self.through(start, closing))
        self.index += 2
        patterns = [self.scalar()]
        while self.accept(","):
            patterns.append(self.scalar())
        self.expect(")")
        escape, at = self._escape(), self.since(start)
        found = tuple(build_like(left, pattern, at, any_case=any_case, escape=escape) for pattern in patterns)
        return found[0] if len(found) == 1 else Call(function, found, at)

    def _membership(self, left: Scalar, start: int) -> Scalar:
        values = "list the values, with commas between"
        if not self.sees("("):
            self.refuse_unexpected("a list of values in brackets")
        closing = self.closing[self.index]
        if self.after() in _SUBQUERIES - {"VALUES"}:
            query = self.subquery()
            return InSubquery(left, query, self.since(start))
        if self.after() == "VALUES":
            raise refuse_unsupported("IN with VALUES", values, self.through(start, closing))
        self.index += 1
        if self.sees(")"):
            raise Refused(ErrorCode.SYNTAX, "IN lists no values", at=self.through(start, closing), fix=values)
        items = [self.scalar()]
        while self.accept(",") and not self.sees(")"):
            items.append(self.scalar())
            if len(items) > MAX_ITEMS:
                fix = "compare with the ends of a range"
                raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", self.since(start), fix)
        self.expect(")")
        at = self.since(start)
        constants = [item for item in items if isinstance(item, Literal)]
        if len(constants) == len(items):
            return Call(Function.IN, (left, *items), at)
        equal = [Call(Function.EQUAL, (left, item), at) for item in items if not isinstance(item, Literal)]
        listed = [Call(Function.IN, (left, *constants), at)] if constants else []
        return Call(Function.OR, (*listed, *equal), at) if len(listed + equal) > 1 else equal[0]

    def _operand(self, least: int) -> Scalar:
        start = self.index
        if least <= _RANGE and self.accept("NOT"):
            operand = self.scalar(_NOT)
            return Call(Function.NOT, (operand,), self.since(start))
        if self.accept("+"):
            return self.scalar(_SIGN)
        if self.accept("-"):
            operand = self.scalar(_SIGN)
            value = operand.value if isinstance(operand, Literal) else None
            if isinstance(value, int | Fraction) and not isinstance(value, bool):
                return Literal(-value, self.since(start))
            return Call(Function.NEGATE, (operand,), self.since(start))
        found = self.primary()
        while self.accept("::"):
            found = self._cast(found, start, *self._type())
        if self.sees("["):
            self.refuse_unexpected("an operator")
        return found

    def primary(self) -> Scalar:
        """A value without operators: a constant, a column, a call or what stands in brackets."""
        token, start = self.token, self.index
        match token.kind, token.key:
            case "number", _:
                self.index += 1
                return Literal(self._number(token.text, start), self.since(start))
            case "text", _:
                self.index += 1
                return Literal(token.text, self.since(start))
            case _, "TRUE" | "FALSE" | "NULL":
                self.index += 1
                return Literal({"TRUE": True, "FALSE": False, "NULL": None}[token.key], self.since(start))
            case _, "(":
                return self._bracket(start)
            case _, "CASE":
                return self._case(start)
            case _, "DATE" if self.tokens[self.index + 1].kind == "text":
                self.index += 1
                operand = self.primary()
                return build_date(operand, self.since(start))
            case _, "TIMESTAMP" | "DATETIME" if self.tokens[self.index + 1].kind == "text":
                self.index += 1
                operand = self.primary()
                return build_timestamp(operand, self.since(start))
            case _, "TIMESTAMPTZ" | "TIME" if self.tokens[self.index + 1].kind == "text":
                at = self.through(start, start + 1)
                instead = f"TIMESTAMP {at.written[len(token.text) :].strip()}" if token.key == "TIMESTAMPTZ" else None
                fix = (
                    "compare the hour and the minute"
                    if instead is None
                    else f"write it in the column's zone: {instead}"
                )
                raise refuse_unsupported(token.key, fix, at, instead)
            case _, "INTERVAL" if self._starts_interval():
                return self._interval(start)
        name = token.text.lower()
        alone = name in FUNCTIONS_WITHOUT_PARENTHESES and self.after() != "."
        if token.kind == "word" and name in _CLOCK and (self.after() == "(" or alone):
            return self._clock(start)
        if token.kind == "word" and self.after() == "(":
            return self._call(start)
        if token.kind == "word" and name in FUNCTIONS_WITHOUT_PARENTHESES and self.after() != ".":
            raise refuse_unknown_function(token.text, self.here())
        if token.key == "*":
            self._no_star(self.here())
        return self._column(start)

    def _starts_interval(self) -> bool:
        """Whether the word INTERVAL is followed by a number of units, and is no name."""
        following, end = self.tokens[self.index + 1], self.index + 1
        if following.kind in {"text", "number"}:
            return True
        if following.key == "(":
            end = self.closing[self.index + 1]
        elif following.key == "-" and self.tokens[self.index + 2].kind == "number":
            end += 1
        elif following.kind != "word" or following.key in RESERVED:
            return False
        unit = self.tokens[min(end + 1, len(self.tokens) - 1)]
        return unit.kind == "word" and unit.text.lower() in UNITS

    def _interval(self, start: int) -> Call:
        """INTERVAL '7 days', INTERVAL '7' DAY, INTERVAL 7 DAY, INTERVAL (n) DAY."""
        self.index += 1
        token = self.token
        if token.kind == "text":
            self.index += 1
            number: Scalar | str = token.text
        else:
            number = self.scalar(_SIGN)
        unit = UNITS.get(self.token.text.lower()) if self.token.kind == "word" else None
        if unit is not None and (not isinstance(number, str) or not any(c.isalpha() for c in number)):
            self.index += 1
        elif isinstance(number, str):
            unit = None
        else:
            self.refuse_unexpected("DAY, MONTH or another unit")
        return build_interval(number, unit, self.since(start))

    def _clock(self, start: int) -> Literal:
        """The declared present: CURRENT_DATE is its day, and NOW() its time, which is midnight unless declared."""
        name = self.token.text.lower()
        end = self.closing[start + 1] if self.after() == "(" else start
        if self.today is None:
            raise refuse_unknown_function(name, self.through(start, end))
        self.index += 1
        if self.accept("("):
            if self.token.kind == "number":  # CURRENT_TIMESTAMP(0)
                self.index += 1
            self.expect(")")
        at = self.since(start)
        return Literal(day_of_clock(self.today) if name in CLOCK_DATES else time_of_clock(self.today), at)

    def _no_star(self, at: SourceLocation) -> NoReturn:
        raise Refused(
            ErrorCode.SYNTAX,
            "* stands for rows, not for a value",
            at=at,
            fix="name a column",
        )

    def _column(self, start: int) -> ColumnReference:
        """A column, with its table and the schemas of that before it, of which the policy has one: it needs no name."""
        names = [self.name("a value")]
        while self.sees("."):
            if self.after() == "*":
                self._no_star(self.through(start, self.index + 1))
            self.index += 1
            names.append(self.name("a column"))
        if self.sees("("):
            at, call = self.through(start, self.closing[self.index]), self.through(self.index, self.closing[self.index])
            instead = f"{names[-1]}{call.written}" if names[-1].isidentifier() else None
            fix = "write its name alone" if instead is None else f"write its name alone: {instead}"
            raise refuse_unsupported("a function of a schema or in quotes", fix, at, instead)
        if len(names) > _MOST_PARTS:
            fix = "write the column, or table.column"
            raise refuse_unsupported(f"a name of more than {_MOST_PARTS} parts", fix, self.since(start))
        name, table = names[-1], names[-2] if len(names) > 1 else None
        self.after_column = self.index
        return ColumnReference(name, table, self.since(start))

    def name(self, what: str) -> str:
        """A name, which is a word that means nothing else, or stands in double quotes."""
        token = self.token
        if token.kind == "text":
            quoted, what = token.text.replace('"', '""'), "a name is written in double quotes or without quotes"
            fix, instead = f'write "{to_printable(quoted)}"', f'"{quoted}"'
            raise Refused(ErrorCode.SYNTAX, what, at=self.here(), fix=fix, instead=instead)
        if token.key in RESERVED - UNSUPPORTED_CLAUSES.keys():
            fix = f'write it at the mark; a name that is a word of SQL stands in quotes: "{token.text}"'
            raise Refused(ErrorCode.SYNTAX, f"expected {what} before {token.text}", at=self.here(), fix=fix)
        if (token.kind != "word" or token.key in RESERVED) and token.kind != "name":
            self.refuse_unexpected(what)
        if token.text in {"", "*"}:
            raise Refused(ErrorCode.SYNTAX, "this is not a name", at=self.here(), fix="write a name between the quotes")
        self.index += 1
        return token.text

    def _number(self, text: str, start: int) -> int | Fraction:
        if text.isdigit():
            if len(text) > 38:
                raise refuse_unsupported("a number of more than 38 digits", "use a smaller number", self.since(start))
            return int(text)
        mantissa, _, exponent = text.lower().partition("e")
        if len(mantissa) > 40 or len(exponent) > 4 or abs(int(exponent or 0)) > 300:
            raise refuse_unsupported("a number as large as this", "write it as 12, 0.5 or 1e6", self.since(start))
        return Fraction(text)

    def _bracket(self, start: int) -> Scalar:
        closing = self.closing[self.index]
        if self.after() in _SUBQUERIES:
            self.index += 1
            query = self.query()
            self.expect(")")
            return _only_value(query) or ScalarSubquery(query, self.since(start))
        self.index += 1
        found = self.scalar()
        if self.sees(","):
            return self._row_comparison(found, start, closing)
        self.expect(")")
        return found

    def _row_comparison(self, first: Scalar, start: int, closing: int) -> Scalar:
        """(a, b) = (1, 2), (a, b) <> (1, 2), (a, b) IN ((1, 2), (3, 4)) and (a, b) IN (SELECT ...): value by value."""
        left = [first, *self._rest_of_row()]
        negated = self.accept("NOT") if self.after() == "IN" else False
        if self.sees("IN") and self.after() == "(" and self.after(2) in _SUBQUERIES - {"VALUES"}:
            self.index += 1
            query = self.subquery()
            among = InSubquery(left[0], query, self.since(start), tuple(left[1:]))
            return Call(Function.NOT, (among,), self.since(start)) if negated else among
        if self.sees("IN") and self.after() == "(" and self.after(2) not in _SUBQUERIES:
            self.index += 2
            rows = [self._row()]
            while self.accept(","):
                rows.append(self._row())
            self.expect(")")
        elif self.sees("=", "<>", "!="):
            negated = not self.accept("=")
            self.index += negated
            rows = [self._row()]
        else:
            fix = "compare them one by one, without brackets"
            raise refuse_unsupported("a list of values in brackets", fix, self.through(start, closing))
        at = self.since(start)
        if any(len(row) != len(left) for row in rows):
            raise Refused(
                ErrorCode.TYPE, "the lists are of different lengths", at=at, fix="write as many values as columns"
            )
        equal = [
            Call(Function.AND, tuple(Call(Function.EQUAL, pair, at) for pair in zip(left, row, strict=True)), at)
            for row in rows
        ]
        found = equal[0] if len(equal) == 1 else Call(Function.OR, tuple(equal), at)
        return Call(Function.NOT, (found,), at) if negated else found

    def _row(self) -> list[Scalar]:
        if not self.sees("(") or self.after() in _SUBQUERIES:
            self.refuse_unexpected("values in brackets")
        self.index += 1
        return [self.scalar(), *self._rest_of_row()]

    def _rest_of_row(self) -> list[Scalar]:
        found = []
        while self.accept(","):
            found.append(self.scalar())
            if len(found) > MAX_ITEMS:
                raise refuse_too_large(f"a list of more than {MAX_ITEMS:,} items", self.here())
        self.expect(")")
        return found

    def _case(self, start: int) -> Case:
        """CASE WHEN c THEN x END; CASE s WHEN v THEN x END compares s with each v."""
        self.index += 1
        subject = None if self.sees("WHEN") else self.scalar()
        branches = []
        first = self.index
        while self.accept("WHEN"):
            condition = self.scalar()
            if subject is not None:
                condition = Call(Function.EQUAL, (subject, condition), self.since(first))
            self.expect("THEN")
            branches.append((condition, self.scalar()))
            first = self.index
        if not branches:
            self.refuse_unexpected("WHEN")
        otherwise = self.scalar() if self.accept("ELSE") else Literal(None)
        self.expect("END")
        return Case(tuple(branches), otherwise, self.since(start))

    def _call(self, start: int) -> Scalar:
        """A function with its arguments, and for an aggregate WITHIN GROUP and FILTER."""
        name = self.token.text.lower()
        closing = self.closing[self.index + 1]
        if name in WINDOW_FUNCTIONS and self.tokens[closing + 1].key in {"OVER", "IGNORE", "RESPECT"}:
            return self._window_function(name, start, closing)
        if name in WRITTEN_WINDOWS and self.tokens[closing + 1].key == "OVER":
            return self._written_window(name, start)
        if name in {"grouping", "grouping_id"}:
            return self._grouping(start)
        if name == "exists" and self.after(2) in _SUBQUERIES - {"VALUES"}:
            self.index += 1
            query = self.subquery()
            return Exists(query, self.since(start))
        if name in {"exists", "any", "some", "all"}:
            fix = "write a query in the brackets" if name == "exists" else "compare with one value, or list the values"
            raise refuse_unsupported(name.upper(), fix, self.through(start, closing))
        if self.token.key in RESERVED - {"LEFT", "RIGHT"}:
            self.refuse_unexpected("a value")
        if not is_known_function(name, self.aggregates) and name not in _CASTING:
            raise refuse_unknown_function(name, self.through(start, closing))
        self.index += 2
        if name in _CASTING:
            operand = self.scalar()
            self.expect("AS")
            kind = self._type()
            self.expect(")")
            return self._cast(operand, start, *kind)
        if name == "trim" and (self.sees("BOTH", "LEADING", "TRAILING", "FROM") or self.after() == "FROM"):
            return self._trim(start, closing)
        star, distinct, arguments = self._arguments(name, start, closing)
        within = self._within() if self.accept("WITHIN", "GROUP", "(", "ORDER", "BY") else None
        where = None
        if self.accept("FILTER", "("):
            self.accept("WHERE")
            where = self.scalar()
            self.expect(")")
        found = build_call(
            CallSyntax(
                name, tuple(arguments), self.since(start), star, distinct, within, where, self.today, self.dialect
            ),
            self.aggregates,
        )
        note = DIALECT_NOTES.get(name, {}).get(self.dialect)
        if note is not None:
            self.notes.append(note)
        if self.sees("[") and isinstance(found, Aggregate):
            found = self._element(found, name, start)
        if not self.sees("OVER"):
            return found
        if not isinstance(found, Aggregate):
            fix = "take an aggregate over the window"
            raise refuse_unsupported(f"{name.upper()} over a window", fix, self.through(start, self.index))
        return self._over("", (), found, start)

    def _trim(self, start: int, closing: int) -> Scalar:
        """TRIM(LEADING FROM x), TRIM(BOTH ' ' FROM x): spaces only."""
        side = self.token.key if self.sees("BOTH", "LEADING", "TRAILING") else "BOTH"
        self.index += self.sees("BOTH", "LEADING", "TRAILING")
        if self.token.kind == "text" and self.token.text == " ":
            self.index += 1
        if not self.accept("FROM"):
            fix = "take another character away everywhere, with replace"
            raise refuse_unsupported(f"TRIM {side} of anything but spaces", fix, self.through(start, closing))
        value = self.scalar()
        self.expect(")")
        function = {"LEADING": Function.LTRIM, "TRAILING": Function.RTRIM}.get(side, Function.TRIM)
        return Call(function, (value,), self.since(start))

    def _arguments(self, name: str, start: int, closing: int) -> tuple[bool, bool, list[Scalar]]:
        """What stands between the brackets of a call: whether it is *, whether it has DISTINCT, and the arguments."""
        if name == "extract":
            return False, False, self._extract()
        if self.accept("*"):
            self.expect(")")
            return True, False, []
        distinct = self.accept("DISTINCT")
        every = not distinct and self.accept("ALL")
        first = _CONCAT if name == "position" else _OR  # POSITION('a' IN x)
        arguments = [] if self.sees(")") and not distinct and not every else [self._argument(name, first)]
        if name in {"substring", "substr"} and self.sees("FROM", "FOR"):
            arguments.append(self.scalar() if self.accept("FROM") else Literal(1))
            arguments += [self.scalar()] if self.accept("FOR") else []
        if name == "position" and self.accept("IN"):
            arguments.append(self.scalar())
        while self.accept(","):
            arguments.append(self._argument(name))
        if self.sees("ORDER"):
            what, at = "ORDER BY in an aggregate is not answered", self.through(start, closing)
            fix, order = "leave it out: the order of rows decides nothing", self.through(self.index, closing)
            raise Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix, suggestion=substitute((order, ")")))
        self.expect(")")
        return False, distinct, arguments

    def _argument(self, name: str, least: int = _OR) -> Scalar:
        """An argument; of what takes a list also [0.25, 0.75] and ARRAY[0.25, 0.75]."""
        syntax, start = self.aggregates.get(name), self.index
        takes_list = name in TAKE_LISTS if syntax is None else syntax.takes_list
        if takes_list and self.sees("ARRAY") and self.after() == "[":
            self.index += 1
        if not takes_list or not self.accept("["):
            return self.scalar(least)
        items = [self.scalar()]
        while self.accept(","):
            items.append(self.scalar())
        self.expect("]")
        return Call(LIST, tuple(items), self.since(start))

    def _element(self, found: Aggregate, name: str, start: int) -> Aggregate:
        """An element of the list that an aggregate gives: [OFFSET(2)] counts from 0, [ORDINAL(3)] and [3] from 1."""
        element = self.aggregates[name].element
        if element is None:
            self.refuse_unexpected("an operator")
        self.index += 1
        word = self.token.key
        counted = word in {"OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL"} and self.after() == "("
        self.index += 2 if counted else 0
        number = self.token.text if self.token.kind == "number" else ""
        self.index += 1
        if counted:
            self.expect(")")
        self.expect("]")
        place = int(number) - (0 if counted and word.endswith("OFFSET") else 1) if number.isdigit() else -1
        chosen = element(found, place) if 0 <= place < MAX_ITEMS else None
        if chosen is None:
            fix = "name one that it has: of four parts the elements are 0 to 4"
            raise refuse_unsupported("an element that the list does not have", fix, self.since(start))
        return replace(chosen, at=self.since(start))

    def _extract(self) -> list[Scalar]:
        """EXTRACT(month FROM d), with the part as a word or a text."""
        part = self.token
        if part.kind not in {"word", "text"}:
            self.refuse_unexpected("a part of a date")
        self.index += 1
        named = Literal(part.text, self.since(self.index - 1))
        if part.key == "WEEK" and self.accept("(", "MONDAY", ")"):
            pass  # BigQuery's name of the weeks that start on Monday
        self.expect("FROM")
        value = self.scalar()
        self.expect(")")
        return [named, value]

    def _within(self) -> tuple[Scalar, bool]:
        """The rest of WITHIN GROUP (ORDER BY x DESC)."""
        operand = self.scalar()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        if self.sees(","):
            raise refuse_unsupported("WITHIN GROUP by several columns", "order by one column", self.here())
        self.expect(")")
        return operand, descending

    def _window_function(self, name: str, start: int, closing: int) -> Window:
        """RANK() OVER (...), LAG(n, 1) OVER (...)."""
        least, most = WINDOW_FUNCTIONS[name]
        self.index += 2
        _, distinct, arguments = self._arguments(name, start, closing)
        if distinct or not least <= len(arguments) <= most:
            fix = f"give it {count_arguments(least)}" if least == most else f"give it {least} to {most} arguments"
            raise refuse_unsupported(f"{name.upper()} with other arguments", fix, self.since(start))
        if self.accept("RESPECT"):
            self.expect("NULLS")
        if self.sees("IGNORE"):
            self.refuse_unexpected("OVER")
        return self._over(name, tuple(arguments), None, start)

    def _written_window(self, name: str, start: int) -> Scalar:
        """RATIO_TO_REPORT(x) is x / SUM(x), and CONDITIONAL_TRUE_EVENT(c) how often c was true, over the window."""
        self.index += 2
        value = self.scalar()
        self.expect(")")
        if name == "ratio_to_report":
            total = self._over("", (), Aggregate("sum", value, at=self.since(start)), start)
            return Call(Function.DIVIDE, (value, total), self.since(start))
        event = Case(((value, Literal(1)),), Literal(0), self.since(start))
        return self._over("", (), Aggregate("sum", event, at=self.since(start)), start)

    def _over(self, name: str, arguments: tuple[Scalar, ...], aggregate: Aggregate | None, start: int) -> Window:
        """The rest of a window function: OVER (...), or OVER and the name of a window."""
        self.expect("OVER")
        window = self.window_definition() if self.sees("(") else Window("", (), None, name=self.name("a window"))
        return replace(window, function=name, arguments=arguments, aggregate=aggregate, at=self.since(start))

    def window_definition(self) -> Window:
        """(PARTITION BY ward ORDER BY n DESC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)."""
        self.expect("(")
        partition: list[Scalar] = []
        order: list[OrderItem] = []
        if self.accept("PARTITION", "BY"):
            partition.append(self.scalar())
            while self.accept(","):
                partition.append(self.scalar())
        if self.accept("ORDER", "BY"):
            order.append(self.order_item())
            while self.accept(","):
                order.append(self.order_item())
        frame = self._frame() if self.sees("ROWS", "RANGE", "GROUPS") else ""
        self.expect(")")
        return Window("", (), None, tuple(partition), tuple(order), frame)

    def order_item(self) -> OrderItem:
        """An item of ORDER BY: an expression, its direction, and where NULLs come; last unless it says otherwise."""
        scalar = self.scalar()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        first = self.accept("NULLS", "FIRST")
        if not first:
            self.accept("NULLS", "LAST")
        return OrderItem(scalar, descending, first)

    def _frame(self) -> str:
        """ROWS BETWEEN 6 PRECEDING AND CURRENT ROW, in one spelling."""
        unit = self.token.key
        self.index += 1
        if self.accept("BETWEEN"):
            first = self._frame_end(unit)
            self.expect("AND")
            return f"{unit} BETWEEN {first} AND {self._frame_end(unit)}"
        return f"{unit} BETWEEN {self._frame_end(unit)} AND CURRENT ROW"

    def _frame_end(self, unit: str) -> str:
        start = self.index
        if self.accept("CURRENT", "ROW"):
            return "CURRENT ROW"
        if self.accept("UNBOUNDED"):
            size = "UNBOUNDED"
        else:
            size = self.token.text if self.token.kind == "number" else ""
            self.index += 1
            if not size.isdigit() or len(size) > _MOST_FRAME or unit == "RANGE":
                fix = "count rows in the frame"
                raise refuse_unsupported("a window's frame of anything but a number of rows", fix, self.since(start))
        if self.accept("PRECEDING"):
            return f"{size} PRECEDING"
        self.expect("FOLLOWING")
        return f"{size} FOLLOWING"

    def _grouping(self, start: int) -> Call:
        """GROUPING(a, b): which of these keys a row adds up over, as bits."""
        closing = self.closing[self.index + 1]
        self.index += 2
        _, _, arguments = self._arguments("grouping", start, closing)
        if not arguments:
            raise refuse_unsupported("GROUPING of nothing", "name a key", self.since(start))
        return Call(GROUPING, tuple(arguments), self.since(start))

    def _type(self) -> tuple[str, tuple[int, ...]]:
        """The name of a type, and its numbers: DECIMAL(10, 2)."""
        if self.token.kind not in {"word", "name"}:
            self.refuse_unexpected("a type")
        kind = self.token.text.lower()
        self.index += 1
        numbers: tuple[int, ...] = ()
        if self.sees("("):
            inside = self.tokens[self.index + 1 : self.closing[self.index]]
            numbers = tuple(int(token.text) for token in inside if token.kind == "number" and token.text.isdigit())
            self.index = self.closing[self.index] + 1
        elif kind in {"double", "character"}:
            self.accept("PRECISION" if kind == "double" else "VARYING")
        if kind == "timestamp":
            self.accept("WITHOUT", "TIME", "ZONE")
        return kind, numbers

    def _cast(self, operand: Scalar, start: int, kind: str, numbers: tuple[int, ...] = ()) -> Scalar:
        """The casts there are: a text to a date or a timestamp, numbers to a float, conditions to 1 and 0, and others.

        A number as DECIMAL(10, 2) is rounded to 2 digits; that it has at most 10 is not checked, for no row can fail.
        The others change nothing, as to make an integer of what is whole already, or of a column what it is declared
        as; or go between dates and timestamps. What the form does not show is left to `plan/casts.py`.
        """
        at, wanted = self.since(start), TYPES_BY_NAME.get(kind)
        match operand:
            case _ if kind == "interval" and (said := constant_text(operand)) is not None:
                return build_interval(said, None, at)
            case _ if wanted is None:
                raise self._refuse_cast(operand, kind, at)
            case Literal(str() as text) if wanted in NUMERIC_TYPES and _is_number(text):
                return self._cast(Literal(Fraction(text.strip())), start, kind, numbers)
            case Literal() if wanted is Type.INT and (value := constant_number(operand)) is not None:
                return Literal(_nearest(Fraction(value)), at)
            case _ if wanted is Type.FLOAT:
                number = Call(Function.MULTIPLY, (Literal(Fraction(1)), operand), at)
                digits = numbers[1:2] or ((0,) if numbers or kind == "number" else ())
                if kind not in EXACT_TYPES or not digits:
                    return number
                return Call(Function.ROUND, (number, Literal(min(digits[0], MOST_DIGITS))), at)
            case Literal() if wanted is Type.DATE and not isinstance(operand.value, datetime.date):
                return build_date(operand, at)
            case Literal() if wanted is Type.TIMESTAMP and not isinstance(operand.value, datetime.date):
                return build_timestamp(operand, at)
            case Call(function=function) if wanted is Type.INT and function in _IS_WHOLE:
                return operand
            case Call(Function.TO_CHAR) if wanted is Type.INT and (digits_of := read_digits(operand)) is not None:
                return digits_of
            case Call(function=function) if wanted is Type.INT and function in _IS_CONDITION:
                opposite = Call(Function.NOT, (operand,), at)
                return Case(((operand, Literal(1)), (opposite, Literal(0))), Literal(None), at)
        return Call(Function.CAST, (operand, Literal(kind)), at)

    @staticmethod
    def _refuse_cast(operand: Scalar, kind: str, at: SourceLocation) -> Refused:
        """A refusal of a cast to a type that columns do not have."""
        what, inner = f"CAST to {to_printable(kind).upper()}", find_location(operand)
        if kind in TIMESTAMPS and inner is not None:
            instead = f"CAST({inner.written} AS TIMESTAMP)"
            return refuse_unsupported(what, f"write {instead}: the time in the column's zone", at, instead)
        fix = CAST_SUGGESTIONS.get(kind, "leave it out: the types of columns are declared in the policy")
        return refuse_unsupported(what, fix, at)


def _only_value(query: Query | UnionAll) -> Scalar | None:
    """The value of (SELECT x), which has no FROM and nothing else; None for any other query."""
    if not isinstance(query, Query) or not isinstance(query.source, ConstantTable) or query.source.columns:
        return None
    bare = Query(query.source, query.outputs, None, (), None, (), None, 0)
    return query.outputs[0].scalar if query == bare and len(query.outputs) == 1 else None


def _nearest(number: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    size = int(abs(number) + Fraction(1, 2))
    return -size if number < 0 else size


def _is_number(text: str) -> bool:
    """Whether a text is a number as SQL writes one, and not a long one."""
    return len(text) < 30 and text.strip().lstrip("-").replace(".", "", 1).isdecimal() and text.isascii()
