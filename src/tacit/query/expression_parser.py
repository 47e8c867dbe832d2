"""Expressions, by recursive descent with one token of foresight: what is read is never read again.

`ExpressionParser` joins operands (`query/operand_parser.py`) by operators (`query/operator_parser.py`), and both read
what they hold through its `scalar`. So a text takes time in proportion to its tokens. Operators bind as they do in
DuckDB and PostgreSQL, from OR, which binds least, to a sign before a number; two comparisons in a row need brackets.
"""

from __future__ import annotations

from abc import ABC

from tacit.errors import ErrorCode, Refused, substitute
from tacit.query.expression_cursor import ExpressionCursor
from tacit.query.functions import COMPARISONS
from tacit.query.nodes import Call, Scalar, find_location
from tacit.query.operand_parser import read_operand
from tacit.query.operator_parser import read_operation
from tacit.query.operators import ALONE, INFIX, Precedence, find_precedence
from tacit.query.refusals import MAX_LEVELS, refuse_too_large

_BRACKETS = "put brackets around what belongs together"


class ExpressionParser(ExpressionCursor, ABC):
    """Reads expressions."""

    def scalar(self, least: int = Precedence.OR) -> Scalar:
        """An expression, of operators that bind at least so much."""
        self.level += 1
        if self.level > MAX_LEVELS:
            raise refuse_too_large("an expression has too many parts within each other", self.here())
        start, last = self.index, int(Precedence.SIGN)
        found = read_operand(self, least)
        while (level := find_precedence(self)) is not None and level >= least:
            if level > last or (level == last and level in ALONE):  # as in a < b < c, and in a IN (1, 2) + 3
                raise self._refuse_chain(found, start)
            found = read_operation(self, found, level, start)
            last = level
        self.level -= 1
        return found

    def _refuse_chain(self, found: Scalar, start: int) -> Refused:
        """A refusal of a second comparison in a row: a < b < c is a < b AND b < c."""
        what, at, fix = "a comparison inside another is not answered", self.through(start, self.index), _BRACKETS
        match found:
            case Call(name, (_, middle)) if name in COMPARISONS and (inner := find_location(middle)) is not None:
                if self.token.key in INFIX and INFIX[self.token.key][1] in COMPARISONS:
                    second = f"AND {inner.written} {self.token.text}"
                    fix = f"compare twice: {at.written.removesuffix(self.token.text)}{second}"
                    twice = substitute((self.here(), second))
                    return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix, suggestion=twice)
        return Refused(ErrorCode.UNSUPPORTED, what, at=at, fix=fix)
