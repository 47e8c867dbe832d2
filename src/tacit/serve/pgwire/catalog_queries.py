"""Queries of the catalog, checked and rewritten for the tables that stand for it.

What may be named is listed: the catalog's own tables, a few functions, and nothing with a schema but PostgreSQL's two.
The catalog holds no rows of the data and has no way out of memory, so this list is a second line of defense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tacit.query.lexer import Token
from tacit.serve.pgwire.edits import Edit, EditedText, quote_text
from tacit.serve.pgwire.settings import VERSION as NUMBER
from tacit.serve.pgwire.sqlstate import UNKNOWN_SETTING, UNKNOWN_TABLE, WireError, unsupported_error
from tacit.serve.pgwire.tokens import tokenize_statements

_ALLOWED_FUNCTIONS = (
    "count sum min max avg coalesce nullif array_agg string_agg array_to_string lower upper length char_length "
    "substring substr replace trim ltrim rtrim btrim left right concat concat_ws split_part position strpos unnest "
    "generate_series generate_subscripts array_length cardinality array_position row_number rank bool_and bool_or "
    "every greatest least abs round floor ceil regexp_replace version current_database current_schema to_json row "
    "json_build_object"
)
_FUNCTIONS = frozenset(_ALLOWED_FUNCTIONS.split())
_BEFORE_BRACKETS = (
    "SELECT FROM WHERE AND OR NOT IN ANY ALL SOME EXISTS AS ON USING JOIN CASE WHEN THEN ELSE UNION EXCEPT INTERSECT "
    "BY OVER FILTER VALUES LATERAL LIMIT OFFSET HAVING DISTINCT CAST ARRAY WITHIN MATERIALIZED LIKE ILIKE BETWEEN IS "
    "OPERATOR EXTRACT WITH INTERVAL"
)
_KEYWORDS = frozenset(_BEFORE_BRACKETS.split())
_WRITES = (
    "INSERT UPDATE DELETE CREATE DROP ALTER ATTACH DETACH COPY PRAGMA INTO RECURSIVE INSTALL LOAD CALL EXPORT IMPORT "
    "CHECKPOINT VACUUM PIVOT UNPIVOT SUMMARIZE DESCRIBE SHOW"
)
_FORBIDDEN = frozenset(_WRITES.split())
_ENGINE = ("duckdb_", "sqlite_", "pragma_", "read_", "parquet_", "shadow")
_SCHEMAS = frozenset({"main", "system", "temp", "memory"})
_USERS = frozenset({"CURRENT_USER", "SESSION_USER", "USER", "CURRENT_ROLE"})
_REGISTERED = frozenset({"regclass", "regtype"})
_FAR = 200  # tokens that a cast of a look may have
_EXPANDS = frozenset({"_pg_expandarray"})
VERSION = f"PostgreSQL {NUMBER}, as spoken by Tacit"
ECHO_SUFFIX = "_says"  # ends the macros that say what they are given: current_user_says('ada')
HINT = "look with pg_catalog and information_schema; ask about the tables of the policy"


@dataclass(frozen=True)
class CatalogNames:
    """What a look may name, and what some words mean for this session.

    `relations` are the tables of the catalog, `functions` its macros, `numbers` the OIDs by names of tables and types.
    """

    relations: frozenset[str]
    functions: frozenset[str]
    numbers: Mapping[str, int]
    user: str = "owner"
    database: str = "tacit"
    budget: str = ""
    explained: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def find_explained_questions(text: str) -> list[str]:
    """The questions inside tacit.explain('...')."""
    found = tokenize_statements(text)
    inside = [found[index + 4] for index in range(len(found) - 5) if _is_explain(found, index)]
    return [token.text for token in inside if not token.key]


def has_budget_table(text: str) -> bool:
    """Whether tacit.budget is named."""
    found = tokenize_statements(text)
    return any(_keys(found, index, "TACIT", ".", "BUDGET") for index in range(len(found)))


def _is_explain(found: Sequence[Token], index: int) -> bool:
    inner = index + 5 < len(found) and (found[index + 4].kind in {"text", "escaped"} or found[index + 4].key == "NULL")
    return _keys(found, index, "TACIT", ".", "EXPLAIN", "(") and inner and found[index + 5].key == ")"


def _keys(found: Sequence[Token], index: int, *keys: str) -> bool:
    return all(index + step < len(found) and found[index + step].key == key for step, key in enumerate(keys))


def rewrite_query(text: str, names: CatalogNames) -> str:
    """The query as the catalog's engine takes it; an error for whatever it may not name."""
    found = tokenize_statements(text)
    edits: list[Edit] = []
    index = 0
    while index < len(found):
        index += _TokenRewriter(found, index, names).step(edits)
    return EditedText(text, 0, len(text), edits).text


class _TokenRewriter:
    """One token, and those around it."""

    def __init__(self, found: Sequence[Token], index: int, names: CatalogNames) -> None:
        self._found = found
        self._index = index
        self._names = names
        self._token = found[index]

    def _key(self, step: int) -> str:
        at = self._index + step
        return self._found[at].key if 0 <= at < len(self._found) else ""

    def step(self, edits: list[Edit]) -> int:
        """Check the token, add what it becomes, and say how many tokens were read."""
        token = self._token
        if token.kind in {"other", "dollar", "parameter"}:
            raise unsupported_error("this way of quoting", "write texts in single quotes", token.start + 1)
        if token.kind == "escaped":
            edits.append(Edit(token.start, token.end, quote_text(token.text)))
        if token.kind == "text":
            return self._text(edits)
        if token.kind not in {"word", "name"}:
            return 1
        if self._key(-1) == ".":
            if self._key(1) == "(":  # DuckDB calls functions so too: ('a').lower()
                self._check_function(token.text.lower(), edits)
            return 1
        if self._key(1) == ".":
            return self._rewrite_qualified(edits)
        return self._word(edits)

    def _text(self, edits: list[Edit]) -> int:
        """A text: a list as PostgreSQL writes it, or the name of a table or type with a cast to its number."""
        token = self._token
        if self._key(-1) in {"FROM", "JOIN"}:
            raise unsupported_error("a file", HINT, token.start + 1)
        cast = 4 if self._key(2) == "PG_CATALOG" and self._key(3) == "." else 2
        at = self._index + cast
        if self._key(1) in {"::", "AS"} and at < len(self._found) and self._found[at].text in _REGISTERED:
            called = token.text.removeprefix("public.").removeprefix("pg_catalog.").strip('"').lower()
            known = int(called) if called.isascii() and called.isdigit() else self._names.numbers.get(called)
            if known is None:
                raise WireError(UNKNOWN_TABLE, "there is no table or type of that name", HINT, token.start + 1)
            written = self._key(1) == "::"
            edits.append(Edit(token.start, self._found[at].end if written else token.end, str(known)))
            return cast + 1 if written else 1
        if self._key(1) == "::" and at < len(self._found) and self._found[at].text == "regproc":
            edits.append(Edit(token.start, token.end, quote_text(token.text.removeprefix("pg_catalog."))))
        elif token.text.startswith("{") and token.text.endswith("}"):
            items = ", ".join(quote_text(item.strip('"')) for item in token.text[1:-1].split(",") if item)
            edits.append(Edit(token.start, token.end, f"[{items}]"))
        return 1

    def _rewrite_qualified(self, edits: list[Edit]) -> int:
        """A name with something before it: a schema of the catalog, something of Tacit, or a table's own column."""
        token, dot = self._token, self._found[self._index + 1]
        called = token.text.lower()
        if called in _SCHEMAS or called.startswith(_ENGINE) or self._index + 2 >= len(self._found):
            raise self._nothing()
        if called in {"pg_catalog", "public"}:
            edits.append(Edit(token.start, dot.end, ""))
            inner = _TokenRewriter(
                [*self._found[: self._index], *self._found[self._index + 2 :]], self._index, self._names
            )
            return 2 + inner.step(edits)
        if called == "information_schema":
            if self._key(3) == "(" and self._found[self._index + 2].text not in _EXPANDS:
                raise unsupported_error("this function", HINT, token.start + 1)
            edits.append(Edit(token.start, token.end, "shadow_information"))
            return 3
        if _keys(self._found, self._index, "TACIT", ".", "BUDGET"):
            end = self._found[self._index + 2].end
            unnamed = not (self._key(3) == "AS" or self._is_name(3))
            edits.append(Edit(token.start, end, f"({self._names.budget})" + (" AS budget" if unnamed else "")))
            return 3
        if _is_explain(self._found, self._index):
            said = self._names.explained.get(self._found[self._index + 4].text, "")
            edits.append(
                Edit(token.start, self._found[self._index + 5].end, f"explain{ECHO_SUFFIX}({quote_text(said)})")
            )
            return 6
        if called == "tacit":
            raise WireError(UNKNOWN_TABLE, "there are tacit.budget and tacit.explain('...')", HINT, token.start + 1)
        return 1

    def _is_name(self, step: int) -> bool:
        """Whether a name stands there, and no keyword."""
        at = self._index + step
        clause = {"WHERE", "ORDER", "LIMIT", "GROUP", "JOIN", "LEFT", "OFFSET", "UNION", "HAVING"}
        return at < len(self._found) and self._found[at].kind in {"word", "name"} and self._found[at].key not in clause

    def _word(self, edits: list[Edit]) -> int:
        token, names = self._token, self._names
        called = token.text.lower()
        if token.key in _FORBIDDEN and self._key(-1) != "AS":
            raise unsupported_error(token.key, HINT, token.start + 1)
        if token.key == "COLLATE":
            end = 3 if _keys(self._found, self._index + 1, "PG_CATALOG", ".") else 1
            last = self._found[min(self._index + end, len(self._found) - 1)]
            edits.append(Edit(token.start, last.end, ""))
            return end + 1
        if token.key == "OPERATOR" and self._key(1) == "(":
            return self._operator(edits)
        if self._key(-1) != "AS":
            called_so = self._key(1) == "(" and self._key(2) == ")"
            said = {"version": VERSION, "current_database": names.database}.get(called) if called_so else None
            if not called_so:
                said = {"CURRENT_CATALOG": names.database, "CURRENT_SCHEMA": "public"}.get(token.key)
                said = names.user if token.key in _USERS else said
            if said is not None:
                end = self._found[self._index + 2].end if called_so else token.end
                edits.append(Edit(token.start, end, f"{called}{ECHO_SUFFIX}({quote_text(said)})"))
                return 3 if called_so else 1
        if called == "current_setting" and self._key(1) == "(":
            return self._setting(edits)
        if token.key == "CAST" and self._key(1) == "(":
            self._register(edits)
        if called.startswith(_ENGINE):
            raise self._nothing()
        if self._key(1) == "(" and token.key not in _KEYWORDS:
            if self._key(-1) not in {"AS", "WITH", ")", "::"}:  # there it is a name or a type with a list
                self._check_function(called, edits)
        elif called.startswith("pg_") and self._key(-1) != "AS" and called not in names.relations:
            raise self._nothing()
        return 1

    def _setting(self, edits: list[Edit]) -> int:
        """current_setting('name'), which is NULL for what is not set where a second argument says so."""
        close = 3 if self._key(3) == ")" else 5
        name = self._found[min(self._index + 2, len(self._found) - 1)]
        if self._key(close) != ")" or name.kind != "text":
            raise unsupported_error("this form of current_setting", "SHOW a setting by its name", self._token.start + 1)
        known = self._names.settings.get(name.text.lower())
        if known is None and close == 3:
            raise WireError(UNKNOWN_SETTING, f"there is no setting {name.text[:60]}", "SHOW ALL", name.start + 1)
        said = "NULL" if known is None else quote_text(known)
        edits.append(
            Edit(self._token.start, self._found[self._index + close].end, f"current_setting{ECHO_SUFFIX}({said})")
        )
        return close + 1

    def _register(self, edits: list[Edit]) -> None:
        """CAST(x AS regclass), where x is no text but makes one: what it is called, or its number, gives its number."""
        depth = 0
        for close in range(self._index + 1, min(self._index + _FAR, len(self._found))):
            depth += {"(": 1, ")": -1}.get(self._found[close].key, 0)
            if not depth:
                break
        else:
            return
        named = self._found[close - 2 : close]
        if close - self._index > 4 and [each.key for each in named] == ["AS", "REGCLASS"]:
            edits.append(Edit(self._token.start, self._token.end, "regclass_of"))
            edits.append(Edit(named[0].start, named[1].end, ""))

    def _check_function(self, called: str, edits: list[Edit]) -> None:
        if called not in _FUNCTIONS and called not in self._names.functions:
            raise unsupported_error(f"the function {called[:40]}", HINT, self._token.start + 1)
        if called == "json_build_object":
            edits.append(Edit(self._token.start, self._token.end, "json_object"))

    def _operator(self, edits: list[Edit]) -> int:
        """OPERATOR(pg_catalog.~) is the operator itself."""
        close = self._index
        while close < len(self._found) and self._found[close].key != ")":
            close += 1
        inner = self._found[self._index + 2 : close]
        signs = "".join(token.text for token in inner if token.kind == "sign" and token.key != ".")
        edits.append(Edit(self._token.start, self._found[min(close, len(self._found) - 1)].end, f" {signs} "))
        return close - self._index + 1

    def _nothing(self) -> WireError:
        return WireError(UNKNOWN_TABLE, f"the catalog has no {self._token.text[:60]}", HINT, self._token.start + 1)
