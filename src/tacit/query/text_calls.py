"""Functions of texts, and patterns: LIKE with its relatives, and the regular expressions that are such patterns.

A pattern is a list of parts: `ANY` is any text, `ONE` any one character, and every other part is itself. It becomes
LIKE, or where it is a single text with % or _ in it, a comparison of the beginning, the end or the whole; so it takes
time in proportion to the text. A regular expression is answered where it is a choice between a few such patterns.
"""

from __future__ import annotations

import re
from itertools import product

from tacit.errors import SourceLocation
from tacit.query.call_syntax import MANY, Build, CallSyntax, check_count, constant_number, constant_text
from tacit.query.dialects import STRICT_DIALECTS, QuestionDialect
from tacit.query.functions import MOST_POSITION, Function
from tacit.query.nodes import Call, Case, Literal, Scalar
from tacit.query.refusals import MATCH_FIX, refuse_unsupported, to_printable

ANY, ONE = "\0%", "\0_"  # a question has no zero character
_MOST_CHOICES = 50  # patterns that a regular expression may stand for
_Pattern = tuple[str, ...]


def build_like(
    value: Scalar, pattern: Scalar, at: SourceLocation, *, any_case: bool = False, escape: str = ""
) -> Scalar:
    """x LIKE pattern; x ILIKE 'Flu%' is LOWER(x) LIKE 'flu%', for letters that all engines make small alike."""
    text = constant_text(pattern)
    if any_case:
        value, text = _lower(value, text, at)
    if text is None:
        return Call(Function.LIKE, (value, pattern), at)
    if not escape:
        return Call(Function.LIKE, (value, Literal(text, at)), at)
    parts: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == escape:
            parts.append(next(characters, ""))
        else:
            parts.append({"%": ANY, "_": ONE}.get(character, character))
    if "" in parts:
        raise refuse_unsupported("a pattern that ends with its escape", "write the character that it escapes", at)
    return _build_pattern(value, tuple(parts), at)


def _lower(value: Scalar, text: str | None, at: SourceLocation) -> tuple[Scalar, str]:
    if text is None or not text.isascii():
        what = "ILIKE with anything but a constant of letters from A to Z"
        raise refuse_unsupported(what, "compare it in lower case, or with a constant", at)
    return Call(Function.LOWER, (value,), at), text.lower()


def _build_pattern(value: Scalar, parts: _Pattern, at: SourceLocation) -> Scalar:
    """Whether a value is as a pattern says."""
    wild = {ANY: "%", ONE: "_"}
    if not any(part in {"%", "_", "\\"} for part in parts):
        return Call(Function.LIKE, (value, Literal("".join(wild.get(part, part) for part in parts), at)), at)
    before, after = parts[0] == ANY, parts[-1] == ANY
    inner = parts[before : len(parts) - after]
    if any(part in wild for part in inner):
        fix = "compare parts of it: its first characters with left, others with strpos"
        raise refuse_unsupported("a pattern with %, _ or \\ as themselves among others", fix, at)
    text = "".join(inner)
    if before and after:
        return Call(Function.GREATER, (Call(Function.POSITION, (value, Literal(text)), at), Literal(0)), at)
    compared: Scalar = value
    if after:
        compared = Call(Function.SUBSTRING, (value, Literal(1), Literal(len(text))), at)
    elif before:
        compared = Call(Function.RIGHT, (value, Literal(len(text))), at)
    return Call(Function.EQUAL, (compared, Literal(text, at)), at)


def _affix(before: bool, after: bool) -> Build:
    """STARTS_WITH, ENDS_WITH and CONTAINS as LIKE, of a constant in which nothing is a wildcard."""

    def build(written: CallSyntax) -> Scalar:
        name = written.name.upper()
        check_count(written, 2, 2)
        value, part = written.arguments
        text = constant_text(part)
        if text is None:
            raise refuse_unsupported(f"{name} with anything but a constant text", "write the text", written.at)
        return _build_pattern(value, ((ANY,) * before) + tuple(text) + ((ANY,) * after), written.at)

    return build


# Regular expressions.

_TOKEN = re.compile(r"\\(.)|\[([^\]\[^]+)\]|(.)", re.DOTALL)


def build_match(value: Scalar, pattern: Scalar, at: SourceLocation, *, any_case: bool = False) -> Scalar:
    """x ~ 'pattern', for the regular expressions that are a choice between a few patterns."""
    text = constant_text(pattern)
    if text is not None and text.startswith("(?i)"):
        any_case, text = True, text[len("(?i)") :]
    if any_case:
        value, text = _lower(value, text, at)
    choices = None if text is None else _read_choices(text, similar=False)
    return _build_choices(value, choices, text, at)


def build_similar(value: Scalar, pattern: Scalar, at: SourceLocation, dialect: QuestionDialect) -> Scalar:
    """x SIMILAR TO 'pattern', which is of the whole text, with % and _ as in LIKE and (a|b) for a choice.

    In DuckDB's dialect it is a regular expression, in which % and _ are themselves, and . is no line break.
    """
    text = constant_text(pattern)
    if text is not None and dialect is QuestionDialect.DUCKDB:
        choices = None if "\n" in text else _read_choices(f"^({text})$", similar=False)
        found = _build_choices(value, choices, text, at)
        if not any({ANY, ONE} & set(parts) for parts in choices or ()):
            return found
        lines = Call(Function.LIKE, (value, Literal("%\n%", at)), at)
        return Call(Function.AND, (found, Call(Function.NOT, (lines,), at)), at)
    choices = None if text is None else _read_choices(text, similar=True)
    return _build_choices(value, choices, text, at)


def _build_choices(value: Scalar, choices: list[_Pattern] | None, text: str | None, at: SourceLocation) -> Scalar:
    if not choices:
        what = "a regular expression that is not a constant"
        if text is not None:
            what = f"the regular expression '{to_printable(text)}'"
        raise refuse_unsupported(what, MATCH_FIX, at)
    texts = ["".join(parts) for parts in choices if not {ANY, ONE} & set(parts)]
    if len(texts) == len(choices):
        return Call(Function.IN, (value, *(Literal(one, at) for one in texts)), at)
    found = [_build_pattern(value, parts, at) for parts in choices]
    return found[0] if len(found) == 1 else Call(Function.OR, tuple(found), at)


def _read_choices(text: str, *, similar: bool) -> list[_Pattern] | None:
    """The patterns of which one has to fit the whole text; None where there is no short list of them."""
    reader = _ExpressionReader(text, similar)
    try:
        found = reader.choices()
    except ValueError:
        return None
    if reader.position < len(text):
        return None
    whole = []
    for parts in found:
        start = parts[:1] == (_START,)
        end = parts[-1:] == (_END,)
        inner = parts[start : len(parts) - end]
        if _START in inner or _END in inner:
            return None
        if not similar:
            inner = (() if start else (ANY,)) + inner + (() if end else (ANY,))
        whole.append(_merge(inner))
    return list(dict.fromkeys(whole))


def _merge(parts: _Pattern) -> _Pattern:
    """The same pattern without one ANY after another."""
    return tuple(part for n, part in enumerate(parts) if part != ANY or n == 0 or parts[n - 1] != ANY)


_START, _END = "\0^", "\0$"


class _ExpressionReader:
    """Reads a regular expression into the list of patterns that it is a choice between, or raises ValueError."""

    def __init__(self, text: str, similar: bool) -> None:
        self.text = text
        self.similar = similar
        self.position = 0
        self.depth = 0

    def choices(self) -> list[_Pattern]:
        """Choices with | between."""
        found = self.sequence()
        while self.take("|"):
            found += self.sequence()
        if len(found) > _MOST_CHOICES:
            raise ValueError
        return found

    def sequence(self) -> list[_Pattern]:
        """One part after another; the choices of all of them are combined."""
        found: list[_Pattern] = [()]
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            atom = self.atom()
            found = [before + part for before, part in product(found, self.repeat(atom))]
            if len(found) > _MOST_CHOICES:
                raise ValueError
        return found

    def take(self, sign: str) -> bool:
        """Whether this sign comes next. If so it is read."""
        if self.text[self.position : self.position + 1] != sign:
            return False
        self.position += 1
        return True

    def atom(self) -> list[_Pattern]:
        """A group, a character, or a list of characters."""
        if self.take("("):
            if self.take("?") and not self.take(":"):
                raise ValueError
            self.depth += 1
            if self.depth > 10:
                raise ValueError
            found = self.choices()
            if not self.take(")"):
                raise ValueError
            self.depth -= 1
            return found
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise ValueError
        self.position = match.end()
        escaped, listed, plain = match.groups()
        if escaped is not None:
            if escaped.isalnum():  # \d, \w and the like
                raise ValueError
            return [(escaped,)]
        if listed is not None:
            return [(character,) for character in _list_characters(listed)]
        if self.similar:
            if plain in "*+?{}[]^$.":
                if plain in "^$.":
                    return [(plain,)]
                raise ValueError
            return [({"%": ANY, "_": ONE}.get(plain, plain),)]
        if plain in "*+?{}[]":
            raise ValueError
        return [({".": ONE, "^": _START, "$": _END}.get(plain, plain),)]

    def repeat(self, atom: list[_Pattern]) -> list[_Pattern]:
        """An atom with the sign after it that says how often: ? of any, * and + of any one character."""
        if self.take("?"):
            atom = [*atom, ()]
        elif self.text[self.position : self.position + 1] in {"*", "+", "{"}:
            sign = self.text[self.position]
            if atom != [(ONE,)] or sign == "{":
                raise ValueError
            self.position += 1
            atom = [(ANY,)] if sign == "*" else [(ONE, ANY)]
        if self.text[self.position : self.position + 1] in {"*", "+", "?", "{"}:
            raise ValueError
        return atom


def _list_characters(listed: str) -> list[str]:
    """The characters that [abc] or [a-c] lists."""
    found: list[str] = []
    position = 0
    while position < len(listed):
        if listed[position] in "\\:":
            raise ValueError
        if position + 2 < len(listed) and listed[position + 1] == "-":
            first, last = ord(listed[position]), ord(listed[position + 2])
            if not first <= last <= first + _MOST_CHOICES:
                raise ValueError
            found += map(chr, range(first, last + 1))
            position += 3
        else:
            found.append(listed[position])
            position += 1
    return list(dict.fromkeys(found))


def _matches(written: CallSyntax) -> Scalar:
    """REGEXP_MATCHES(x, 'pattern'), of any part of the text, as ~ is; Snowflake's REGEXP_LIKE is of the whole."""
    check_count(written, 2, 2)
    value, pattern = written.arguments
    text = constant_text(pattern)
    if written.dialect is QuestionDialect.SNOWFLAKE and written.name == "regexp_like" and text is not None:
        pattern = Literal(f"^({text})$", pattern.at if isinstance(pattern, Literal) else written.at)
    return build_match(value, pattern, written.at)


# Texts.


def _concat(written: CallSyntax) -> Call:
    """CONCAT reads NULL as the empty text, which || does not; in some dialects it does not either."""
    check_count(written, 1, MANY, "CONCAT(x, y)")
    is_strict = written.dialect in STRICT_DIALECTS
    arguments = (each if is_strict else _present(each, written.at) for each in written.arguments)
    return Call(Function.CONCAT, tuple(arguments), written.at)


def _present(argument: Scalar, at: SourceLocation) -> Scalar:
    if isinstance(argument, Literal) and argument.value is not None:
        return argument
    return Call(Function.COALESCE, (argument, Literal("")), at)


def _concat_ws(written: CallSyntax) -> Call:
    """CONCAT_WS(',', x, y) leaves NULLs out: each value comes with the sign before it, less the first sign.

    In Snowflake it is NULL where a value is. BigQuery has none.
    """
    check_count(written, 2, MANY)
    sign, *values = written.arguments
    text = constant_text(sign)
    if text is None:
        raise refuse_unsupported("CONCAT_WS with a separator that is not a constant", "write the text", written.at)
    if written.dialect is QuestionDialect.BIGQUERY:
        fix = "put the values and the separators together with concat, which is of no value where one is missing"
        raise refuse_unsupported("CONCAT_WS, which BigQuery does not have,", fix, written.at)
    if written.dialect is QuestionDialect.SNOWFLAKE:
        separated = [part for value in values for part in (Literal(text), value)]
        return Call(Function.CONCAT, tuple(separated[1:]), written.at)
    parts = [
        Case(
            ((Call(Function.IS_NULL, (value,), written.at), Literal("")),),
            Call(Function.CONCAT, (Literal(text), value), written.at),
            written.at,
        )
        for value in values
    ]
    joined = Call(Function.CONCAT, tuple(parts), written.at)
    return Call(Function.SUBSTRING, (joined, Literal(len(text) + 1), Literal(MOST_POSITION)), written.at)


def _substring(written: CallSyntax) -> Call:
    """SUBSTRING(x, start, length); without a length, to the end."""
    check_count(written, 2, 3, "SUBSTRING(x, 1, 3)")
    rest = () if len(written.arguments) == 3 else (Literal(MOST_POSITION),)
    return Call(Function.SUBSTRING, (*written.arguments, *rest), written.at)


def _take_left(written: CallSyntax) -> Call:
    """The first characters of a text."""
    value, count = _count_characters(written)
    return Call(Function.SUBSTRING, (value, Literal(1), Literal(count)), written.at)


def _take_right(written: CallSyntax) -> Call:
    """The last characters of a text."""
    value, count = _count_characters(written)
    return Call(Function.RIGHT, (value, Literal(count)), written.at)


def _count_characters(written: CallSyntax) -> tuple[Scalar, int]:
    usage = f"{written.name.upper()}(x, 3)"
    check_count(written, 2, 2, usage)
    count = constant_number(written.arguments[1])
    if not isinstance(count, int) or not 1 <= count <= MOST_POSITION:
        what = f"{written.name.upper()} of anything but a constant number of characters, from 1"
        raise refuse_unsupported(what, "write the number", written.at)
    return written.arguments[0], count


def _position(written: CallSyntax) -> Call:
    """POSITION('flu' IN x) and LOCATE('flu', x): what is sought stands first."""
    check_count(written, 2, 2)
    sought, value = written.arguments
    return Call(Function.POSITION, (value, sought), written.at)


BUILDERS: dict[str, Build] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "substring": _substring,
    "left": _take_left,
    "right": _take_right,
    "position": _position,
    "locate": _position,
    "starts_with": _affix(before=False, after=True),
    "ends_with": _affix(before=True, after=False),
    "contains": _affix(before=True, after=True),
    "regexp_matches": _matches,
}
