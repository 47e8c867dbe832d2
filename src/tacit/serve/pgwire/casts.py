"""Casts in a client's question. A question has none: a constant becomes one of its type, and what has the type stays.

PostgreSQL gives a text the type of the cast behind it, or of the column that is compared with it. Drivers that write
their parameters into the text count on that, ('30'::int4) and ('TRUE'), and BI tools cast what has the type already:
CAST(visited AS date).

**Theorem.** A constant never becomes anything but one literal. Proof: as for parameters, by whose `literal` it is
written; all that is left out are brackets around a constant alone, CAST, AS, :: and the name of a type. Where a place
is misjudged, a question is refused: no two types are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tacit.policy.model import Policy
from tacit.query.lexer import Token
from tacit.query.parameters import quote_text, write_literal
from tacit.serve.pgwire.edits import Edit
from tacit.serve.pgwire.parameters import enclosing_brackets, infer_type_at, skip_casts
from tacit.serve.pgwire.sqlstate import BAD_TEXT, WireError
from tacit.serve.pgwire.types import (
    DATE,
    INT4,
    INT8,
    OID_BY_NAME,
    TEXT,
    VARCHAR,
    array_of,
    decode,
    element_of,
    type_oid,
)

_TEXTS = frozenset({"text", "escaped"})
_CONSTANTS = _TEXTS | {"number"}
_NAMED = frozenset({"word", "name"})
_TYPED = frozenset({"DATE", "TIME", "TIMESTAMP", "INTERVAL"})  # before a text, which is then no text
_BEFORE = frozenset({"AND", "OR", "NOT", "BETWEEN", "LIKE", "ILIKE", "LIMIT", "OFFSET", "WHEN", "THEN", "ELSE"})
_SAME = {INT4: INT8, VARCHAR: TEXT}  # types that columns of a policy do not tell apart
_MOST_BRACKETS = 20  # around an array
_LONGEST_NAME = 7  # tokens: database.schema.table.column
_ZONES = frozenset({("WITH", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")})


class CastRewriter:
    """The casts and constants of one question."""

    def __init__(self, found: Sequence[Token], policy: Policy) -> None:
        self._found = found
        self._columns = _columns(policy)
        self._closing: dict[int, int] = {}
        opened: list[int] = []
        for index, token in enumerate(found):
            if token.key == "(":
                opened.append(index)
            elif token.key == ")" and opened:
                self._closing[opened.pop()] = index
        self._opening = {closing: opening for opening, closing in self._closing.items()}
        self._done: set[int] = set()  # where constants start that go with the CAST around them

    def edits(self) -> Iterator[Edit]:
        """The literals in place of constants that have a type, and what is left out of casts that change nothing.

        Casts in a row are read once, so this takes time in proportion to the tokens.
        """
        behind = 0  # the casts in a row that were read last
        for index, token in enumerate(self._found):
            if token.key == "CAST" and index + 1 in self._closing:
                yield from self._cast(index, self._closing[index + 1])
            elif token.key == "::" and index >= behind:
                behind, kind = skip_casts(self._found, index)
                yield from self._postfix(index, behind, kind)
            elif token.key == "TIMESTAMP":
                yield from self._moment(index)
        yield from self._constants()

    def _cast(self, index: int, last: int) -> Iterator[Edit]:
        """CAST(x AS type): x where it has the type, a literal where it is a constant."""
        found = self._found
        is_array = [token.key for token in found[last - 2 : last]] == ["[", "]"]
        behind = last - 2 if is_array else last
        at = behind - 2 if found[behind - 1].key == "PRECISION" else behind - 1
        first, end = index + 2, at - 2
        kind = OID_BY_NAME.get(found[at].text)
        kind = array_of(kind) if is_array else kind
        if kind is None or first > end or found[at - 1].key != "AS":
            return
        inner = found[first]
        alone = first == end
        if alone and inner.kind in _TEXTS:
            self._done.add(inner.start)
            yield Edit(found[index].start, found[last].end, _write_constant(inner, kind))
            return
        listed = is_array and self._is_array(end)
        if listed or (alone and inner.kind == "parameter") or self._type(first, end) == _SAME.get(kind, kind):
            yield Edit(found[index].start, found[index].end, "")
            yield Edit(found[at - 1].start, found[last - 1].end, "")

    def _postfix(self, index: int, end: int, kind: int | None) -> Iterator[Edit]:
        """x::type, where x is a column that has the type, or an array with its items; the casts go to `end`."""
        found = self._found
        if kind is not None and element_of(kind) is not None and self._is_array(index - 1):
            yield Edit(found[index].start, found[end - 1].end, "")
            return
        first = self._opening.get(index - 1, index) - 1
        while first > 1 and found[first - 1].key == "." and found[first - 2].kind in _NAMED:
            first -= 2
        if kind is not None and first >= 0 and self._type(first, index - 1) == _SAME.get(kind, kind):
            yield Edit(found[index].start, found[end - 1].end, "")

    def _is_array(self, last: int) -> bool:
        """Whether ARRAY[...] ends at a place, perhaps in brackets: its items have their own types."""
        for _ in range(_MOST_BRACKETS):
            if self._found[last].key != ")" or last not in self._opening:
                break
            last -= 1
        return self._found[last].key == "]"

    def _moment(self, index: int) -> Iterator[Edit]:
        """TIMESTAMP '2025-12-31 00:00:00', with or without a zone, which is a day where it is midnight."""
        if index > 0 and self._found[index - 1].key == "::":  # the type of what stands before it
            return
        following = tuple(token.key for token in self._found[index + 1 : index + 4])
        at = index + 4 if following in _ZONES else index + 1
        if at < len(self._found) and self._found[at].kind in _TEXTS:
            constant = self._found[at]
            value = _try_constant(constant, DATE)
            if value is not None:
                self._done.add(constant.start)
                yield Edit(self._found[index].start, constant.end, value)

    def _type(self, first: int, end: int) -> int | None:
        """The type of a column, perhaps with its table; None for anything else."""
        if end - first >= _LONGEST_NAME:
            return None
        inner = self._found[first : end + 1]
        named = all(token.kind in _NAMED for token in inner[::2]) and all(token.key == "." for token in inner[1::2])
        return self._columns.get(inner[-1].text.lower()) if named and len(inner) % 2 else None

    def _constants(self) -> Iterator[Edit]:
        """Literals for constants with a cast behind them, and for texts that are compared with what is no text."""
        units, kinds = _group_constants(self._found)
        brackets = enclosing_brackets(units)
        for index, (unit, kind) in enumerate(zip(units, kinds, strict=True)):
            typed = index > 0 and units[index - 1].key in _TYPED
            if unit.kind not in _CONSTANTS or unit.start in self._done or typed:
                continue
            if kind is not None:
                yield Edit(unit.start, unit.end, _write_constant(unit, kind))
            elif unit.kind in _TEXTS:
                place = infer_type_at(units, index, brackets[index], self._columns)
                value = _try_constant(unit, place) if place not in {None, TEXT} else None
                if value is not None:
                    yield Edit(unit.start, unit.end, value)
                elif unit.kind == "escaped":
                    yield Edit(unit.start, unit.end, quote_text(unit.text))


def _columns(policy: Policy) -> dict[str, int]:
    """The types of columns by their names, of those that have the same one in every table."""
    kinds: dict[str, set[int]] = {}
    for table in policy.tables:
        for column in table.columns:
            kinds.setdefault(column.name.lower(), set()).add(type_oid(column.type))
    return {name: min(types) for name, types in kinds.items() if len(types) == 1}


def _group_constants(found: Sequence[Token]) -> tuple[list[Token], list[int | None]]:
    """The tokens, each constant in one with its casts and the brackets around it alone, and the types of the casts."""
    units: list[Token] = []
    kinds: list[int | None] = []
    position = 0
    while position < len(found):
        token, kind = found[position], None
        position += 1
        if token.kind in _CONSTANTS:
            start = token.start
            position, kind = skip_casts(found, position)
            while position < len(found) and found[position].key == ")" and _is_plain_bracket(units):
                start = units.pop().start
                kinds.pop()
                position += 1
            token = token._replace(start=start, end=found[position - 1].end)
        units.append(token)
        kinds.append(kind)
    return units, kinds


def _is_plain_bracket(units: Sequence[Token]) -> bool:
    """Whether the last token is a bracket that only holds together, and no list or arguments."""
    if len(units) < 2 or units[-1].key != "(":
        return False
    before = units[-2]
    return before.key in _BEFORE or (before.kind == "sign" and before.key != ")")


def _write_constant(constant: Token, kind: int) -> str:
    value = _try_constant(constant, kind)
    if value is None:
        hint = "write a value of that type"
        raise WireError(BAD_TEXT, "a constant is not of the type that it is cast to", hint, constant.start + 1)
    return value


def _try_constant(constant: Token, kind: int | None) -> str | None:
    """A constant as a literal of a type, with a space on either side; None where it is not of that type."""
    try:
        return f" {write_literal(decode(constant.text.encode(), kind or TEXT, binary=False))} "
    except WireError:
        return None
