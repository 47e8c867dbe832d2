"""What a statement is: a question, a look at the catalog, or one of the small things that clients say.

Only questions are ever charged, and they are told from the rest by the tables they name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from itertools import pairwise

from tacit.policy.model import Policy
from tacit.query.lexer import Token
from tacit.serve.pgwire.casts import CastRewriter
from tacit.serve.pgwire.copy_out import CopyFormat, parse_copy
from tacit.serve.pgwire.cursor_statements import (
    CursorDeclaration,
    FetchCommand,
    parse_close,
    parse_declare,
    parse_fetch,
)
from tacit.serve.pgwire.edits import Edit, KeptText
from tacit.serve.pgwire.session_views import DroppedViews, ViewDefinition, parse_create_view, parse_drop_view
from tacit.serve.pgwire.settings import is_setting
from tacit.serve.pgwire.sqlstate import SYNTAX, WireError, unsupported_error

SCHEMA = "public"
_TOKEN = 300  # bytes of one, about, with the edits of it
_SELECTS = frozenset({"SELECT", "WITH", "(", "VALUES", "TABLE", "FROM"})
_CATALOG_SCHEMAS = frozenset({"pg_catalog", "information_schema", "tacit"})
_IGNORED = {
    "DEALLOCATE": "DEALLOCATE",
    "UNLISTEN": "UNLISTEN",
    "RELEASE": "RELEASE",
    "SAVEPOINT": "SAVEPOINT",
}
_FROM_INSIDE = frozenset({"EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"})  # functions with FROM between their arguments
_NEVER = "nothing is ever written: SELECT ... only"
_REFUSED = {
    "LISTEN": "there is nothing to wait for",
    "NOTIFY": "notifications are not supported",
    "PREPARE": "let the client prepare the statement: the protocol has messages for it",
    "EXECUTE": "let the client prepare the statement: the protocol has messages for it",
    "LOCK": "there is nothing to lock",
}


class StatementKind(Enum):
    """The kinds of statements."""

    QUESTION = auto()
    EXPLAIN = auto()
    CATALOG = auto()
    SHOW = auto()
    SET = auto()
    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    ROLLBACK_TO = auto()
    DECLARE = auto()
    FETCH = auto()
    CLOSE = auto()
    CREATE_VIEW = auto()
    DROP_VIEW = auto()
    IGNORED = auto()
    EMPTY = auto()


@dataclass(frozen=True)
class Assignment:
    """A setting and its new value, None for the first one; no name resets all. `local` lasts until COMMIT."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True)
class Statement:
    """A statement of the client's text, from `start` to `end` in it. Rows are sent as `copy` says where it is there.

    DECLARE has the `declaration` of a cursor, and `tokens` and `kind_inside` of the question that it is for. FETCH and
    MOVE have `fetch`, and CLOSE the `name` of a cursor, "" for all. CREATE TEMP VIEW has `view` and the `tokens` of its
    question, and DROP VIEW `dropped`. `kept` is its text as it was edited last.
    """

    kind: StatementKind
    text: str
    tokens: tuple[Token, ...]
    tag: str = ""
    name: str = ""
    assignments: tuple[Assignment, ...] = ()
    copy: CopyFormat | None = None
    declaration: CursorDeclaration | None = None
    fetch: FetchCommand | None = None
    kind_inside: StatementKind | None = None
    view: ViewDefinition | None = None
    dropped: DroppedViews | None = None
    kept: KeptText = field(default_factory=KeptText, compare=False, repr=False)

    @property
    def subject(self) -> Statement:
        """The statement that is performed in the end, whose parameters are bound: of DECLARE the question in it."""
        if self.kind_inside is None:
            return self
        return self._inner

    @cached_property
    def _inner(self) -> Statement:
        assert self.kind_inside is not None
        return replace(self, kind=self.kind_inside, tag="SELECT", declaration=None, kind_inside=None, view=None)

    @cached_property
    def is_constant(self) -> bool:
        """Whether it is a SELECT that names no table and calls no function."""
        return is_constant(self.tokens)

    @cached_property
    def has_trivial_constant(self) -> bool:
        """Whether it has a constant that a condition without a column is made of: 0, 1, TRUE, FALSE, NULL."""
        return any(token.key in {"FALSE", "TRUE", "NULL"} or token.text in {"0", "1"} for token in self.tokens)

    @cached_property
    def byte_size(self) -> int:
        """About how many bytes it takes, with its edits."""
        return 2 * sys.getsizeof(self.text) + _TOKEN * len(self.tokens)

    @property
    def is_question(self) -> bool:
        """Whether it is a question, or a cursor for one."""
        return self.kind is not StatementKind.CREATE_VIEW and self.subject.kind is StatementKind.QUESTION

    @property
    def forgets(self) -> str | None:
        """The prepared statement that is to be forgotten: its name, "" for all of them, None for none."""
        if self.tag == "DISCARD ALL":
            return ""
        return self.name if self.tag == "DEALLOCATE" else None

    @property
    def start(self) -> int:
        """Where it starts."""
        return self.tokens[0].start if self.tokens else 0

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.tokens[-1].end if self.tokens else 0


EMPTY = Statement(StatementKind.EMPTY, "", ())


def classify_statement(text: str, found: Sequence[Token], policy: Policy, *, has_catalog: bool = True) -> Statement:
    """The statement that these tokens of a text are, or an error for what is not taken.

    Where there is no catalog, constants are a question, which costs nothing: clients ask SELECT 1 to see that all is
    well. A cursor and a view hold a SELECT and no other statement, so this never reads a statement inside another.
    """
    first = found[0]
    made = tuple(found)
    if first.key in _SELECTS:
        return Statement(_select_kind(found, policy, has_catalog=has_catalog), text, made, "SELECT")
    second = found[1].key if len(found) > 1 else ""
    match first.key:
        case "SHOW":
            name = _parse_show(found)
            own = not name or is_setting(name)
            return Statement(StatementKind.SHOW if own else StatementKind.CATALOG, text, made, "SHOW", name=name)
        case "SET":
            return Statement(StatementKind.SET, text, made, "SET", assignments=_parse_set(found))
        case "RESET":
            name = "" if second == "ALL" else _name(found[1:])[0]
            return Statement(StatementKind.SET, text, made, "RESET", assignments=(Assignment(name, None),))
        case "DISCARD":
            return Statement(StatementKind.SET, text, made, "DISCARD ALL", assignments=(Assignment("", None),))
        case "BEGIN" | "START":
            return Statement(StatementKind.BEGIN, text, made, "BEGIN" if first.key == "BEGIN" else "START TRANSACTION")
        case "COMMIT" | "END":
            return Statement(StatementKind.COMMIT, text, made, "COMMIT")
        case "ROLLBACK" | "ABORT":
            to = any(token.key == "TO" for token in found)
            return Statement(StatementKind.ROLLBACK_TO if to else StatementKind.ROLLBACK, text, made, "ROLLBACK")
        case "EXPLAIN":
            return _parse_explain(text, found)
        case "COPY":
            inner, copy = parse_copy(found)
            if not inner or not (_is_question(inner, policy) or is_constant(inner)):
                raise unsupported_error("COPY of what is no question", "COPY (SELECT COUNT(*) FROM ...) TO STDOUT")
            return Statement(StatementKind.QUESTION, text, tuple(inner), "COPY", copy=copy)
        case "DECLARE":
            declaration, inner = parse_declare(found)
            if inner[0].key not in _SELECTS:
                raise unsupported_error("a cursor for what is no question", "DECLARE c CURSOR FOR SELECT ...")
            tag, of = "DECLARE CURSOR", _select_kind(inner, policy, has_catalog=has_catalog)
            return Statement(StatementKind.DECLARE, text, tuple(inner), tag, declaration=declaration, kind_inside=of)
        case "CREATE":
            view, inner = parse_create_view(found)
            of = _select_kind(inner, policy, has_catalog=has_catalog)
            if inner[0].key not in _SELECTS or of is not StatementKind.QUESTION:
                raise unsupported_error("a view of what is no question", "CREATE TEMP VIEW v AS SELECT ... FROM ...")
            if any(token.kind == "parameter" for token in inner):
                raise unsupported_error("a view with parameters", "write the values into its question")
            kind = StatementKind.CREATE_VIEW
            return Statement(kind, text, tuple(inner), "CREATE VIEW", view=view, kind_inside=of)
        case "DROP":
            return Statement(StatementKind.DROP_VIEW, text, made, "DROP VIEW", dropped=parse_drop_view(found))
        case "FETCH" | "MOVE":
            return Statement(StatementKind.FETCH, text, made, first.key, fetch=parse_fetch(found))
        case "CLOSE":
            name = parse_close(found)
            return Statement(StatementKind.CLOSE, text, made, "CLOSE CURSOR" if name else "CLOSE CURSOR ALL", name=name)
    if first.key in _IGNORED:
        name = found[-1].text if first.key == "DEALLOCATE" and found[-1].key != "ALL" else ""
        return Statement(StatementKind.IGNORED, text, made, _IGNORED[first.key], name=name)
    if first.key in _REFUSED:
        raise unsupported_error(first.key, _REFUSED[first.key], first.start + 1)
    if first.kind == "word" and first.key:
        raise unsupported_error(first.key[:20], _NEVER, first.start + 1)
    raise WireError(SYNTAX, "refused [syntax]: this is no SQL", "a question starts with SELECT", first.start + 1)


def _select_kind(found: Sequence[Token], policy: Policy, *, has_catalog: bool) -> StatementKind:
    """What a SELECT is: a question, or about the catalog."""
    is_question = _is_question(found, policy) or (not has_catalog and is_constant(found))
    return StatementKind.QUESTION if is_question else StatementKind.CATALOG


def _is_question(found: Sequence[Token], policy: Policy) -> bool:
    """Whether a SELECT is about tables of the policy.

    It is where FROM or JOIN names one. Where they name some other table, it is, and hears that there is none, unless
    something of the catalog is named too. Without any table it is about the catalog, which knows the constants.
    """
    named, inner = False, _operand_places(found)
    for index, token in enumerate(found[:-1]):
        if token.key in {"FROM", "JOIN"} and index not in inner:
            at = index + 1
            if found[at].text == SCHEMA and at + 2 < len(found) and found[at + 1].key == ".":
                at += 2
            following = found[at + 1].key if at + 1 < len(found) else ""
            if found[at].kind in {"word", "name"} and following != "(":
                named = True
                if following != "." and policy.table(found[at].text):
                    return True
    return named and not any(_is_catalog_name(found, index) for index in range(len(found)))


def _operand_places(found: Sequence[Token]) -> set[int]:
    """Where FROM comes before an operand and no table: extract(year FROM now()), x IS DISTINCT FROM y."""
    places, callers = set(), [""]
    for index, token in enumerate(found):
        before = found[index - 1].key if index else ""
        if token.key == "(":
            callers.append(before)
        elif token.key == ")" and len(callers) > 1:
            callers.pop()
        elif token.key == "FROM":
            tested = before == "DISTINCT" and index > 1 and found[index - 2].key in {"IS", "NOT"}
            if tested or callers[-1] in _FROM_INSIDE:
                places.add(index)
    return places


def is_constant(found: Sequence[Token]) -> bool:
    """Whether a SELECT names no table and calls no function."""
    calls = (before.kind in {"word", "name"} and after.key == "(" for before, after in pairwise(found))
    return not any(token.key == "FROM" for token in found) and not any(calls)


def may_have_no_rows(statement: Statement, values: Sequence[object]) -> bool:
    """Whether a question has a constant by which tools ask for no rows: LIMIT 0, WHERE 1 = 0, FALSE, NOT TRUE.

    Where it has none, its plan alone says whether there may be rows.
    """
    return statement.has_trivial_constant or any(value in {0, 1} for value in values if isinstance(value, int))


def _is_catalog_name(found: Sequence[Token], index: int) -> bool:
    token = found[index]
    if token.kind not in {"word", "name"}:
        return False
    qualifies = index + 1 < len(found) and found[index + 1].key == "."
    return token.text.startswith("pg_") or (qualifies and token.text in _CATALOG_SCHEMAS)


def adapt_to_parser(found: Sequence[Token], policy: Policy) -> list[Edit]:
    """The edits that make a client's question one that Tacit reads: no casts, no schema before a table, no escapes.

    A schema becomes spaces, so that places stay where they are.
    """
    made = list(CastRewriter(found, policy).edits())
    if policy.table(SCHEMA) is None:
        for index in range(len(found) - 2):
            first, dot = found[index], found[index + 1]
            inner = index > 0 and found[index - 1].key == "."
            if first.kind in {"word", "name"} and first.text == SCHEMA and dot.key == "." and not inner:
                made.append(Edit(first.start, dot.end, " " * (dot.end - first.start)))
    return made


def _parse_explain(text: str, found: Sequence[Token]) -> Statement:
    """EXPLAIN, with or without options, and the question after it."""
    at = 1
    if len(found) > 1 and found[1].key == "(" and found[min(2, len(found) - 1)].key not in _SELECTS:
        while at < len(found) and found[at].key != ")":
            at += 1
        at += 1
    while at < len(found) and found[at].key in {"ANALYZE", "VERBOSE"}:
        at += 1
    if at >= len(found):
        raise WireError(SYNTAX, "refused [syntax]: there is no question to explain", "EXPLAIN SELECT ...")
    return Statement(StatementKind.EXPLAIN, text, tuple(found[at:]), "EXPLAIN")


def _parse_show(found: Sequence[Token]) -> str:
    words = [token.key for token in found[1:]]
    if words == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return "transaction_isolation"
    if words == ["TIME", "ZONE"]:
        return "timezone"
    if words == ["SESSION", "AUTHORIZATION"]:
        return "session_authorization"
    if words == ["ALL"]:
        return ""
    name, rest = _name(found[1:])
    if rest:
        raise _syntax_error(rest[0])
    return name


def _name(found: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """The name of a setting, perhaps of two parts, and what comes after it."""
    if not found or found[0].kind not in {"word", "name"}:
        hint = "SET tacit.epsilon = 0.5, SHOW tacit.epsilon"
        raise WireError(SYNTAX, "refused [syntax]: there is no name of a setting", hint)
    parts, at = [found[0].text], 1
    while at + 1 < len(found) and found[at].key == ".":
        parts.append(found[at + 1].text)
        at += 2
    return ".".join(parts), found[at:]


def _parse_set(found: Sequence[Token]) -> tuple[Assignment, ...]:
    rest = found[1:]
    keys = [token.key for token in rest[:2]]
    if keys[:1] == ["TRANSACTION"] or keys == ["SESSION", "CHARACTERISTICS"]:
        return ()  # every answer is as isolated as can be
    local = keys[:1] == ["LOCAL"]
    if keys[:1] == ["NAMES"]:
        return (Assignment("client_encoding", _value(rest[1:])),)
    if keys[:1] in (["SESSION"], ["LOCAL"]):
        rest = rest[1:]
    if [token.key for token in rest[:2]] == ["TIME", "ZONE"]:
        return (Assignment("timezone", _value(rest[2:]), local),)
    name, rest = _name(rest)
    if not rest or rest[0].key not in {"=", "TO"}:
        raise WireError(SYNTAX, "refused [syntax]: there is no value to set", f"SET {name[:60]} = 0.5")
    return (Assignment(name, _value(rest[1:]), local),)


def _value(found: Sequence[Token]) -> str | None:
    """The value of a setting: words, numbers and texts; None for DEFAULT."""
    if [token.key for token in found] in (["DEFAULT"], ["LOCAL"]):
        return None
    parts = []
    for token in found:
        if token.kind not in {"word", "name", "text", "escaped", "number"} and token.key not in {",", "-", "+", "="}:
            raise _syntax_error(token)
        parts.append(token.text + " " if token.key == "," else token.text)
    if not parts:
        raise WireError(SYNTAX, "refused [syntax]: there is no value to set", "SET tacit.epsilon = 0.5")
    return "".join(parts)


def _syntax_error(token: Token) -> WireError:
    return WireError(SYNTAX, "refused [syntax]: this is not a value", "SET tacit.epsilon = 0.5", token.start + 1)
