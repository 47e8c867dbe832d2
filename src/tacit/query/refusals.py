"""What is refused, and what to do instead: limits on size, clauses and functions, and how a refusal points at the text.

The tables are for people: each name of SQL that is not answered, and the rewriting that would be.
"""

from __future__ import annotations

from bisect import bisect_right
from difflib import get_close_matches

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.nodes import (
    ConstantTable,
    DerivedTable,
    FromItem,
    Join,
    Query,
    Scalar,
    SemiJoin,
    TableReference,
    UnionAll,
    children,
    find_location,
)

MAX_CHARACTERS = 50_000
MAX_TOKENS = 4_000  # words, signs and constants
MAX_DEPTH = 40  # brackets within brackets
MAX_LEVELS = 120  # operators within operators
MAX_NODES = 10_000  # in all expressions, a part of WITH counted at each use
MAX_ITEMS = 1_000
MAX_SOURCES = 50  # tables and subqueries, a part of WITH counted at each use
MAX_NESTED = 12  # subqueries within subqueries
_WIDTH = 100  # characters of a line that an error shows

SMALLER_FIX = "ask several smaller questions"
_PER_UNIT_FIX = "group the other table by the unit in a subquery, and join that on the unit"

_PATTERN = "compare with a pattern of like, where % is any text and _ is any one character"
MATCH_FIX = "compare with a pattern of like, or with a choice between a few texts: (one|other)"
CLOCK_FIX = "write the date itself; the owner may declare what is today in the policy"

# What may stand where the grammar has something else: the first word, what it is called, what to do instead.
UNSUPPORTED_CLAUSES = {
    "TABLESAMPLE": ("TABLESAMPLE", "leave it out: the noise already hides each row"),
    "SAMPLE": ("SAMPLE", "leave it out: the noise already hides each row"),
    "PIVOT": ("PIVOT", "aggregate once for each value, each time with a filter for it"),
    "UNPIVOT": ("UNPIVOT", "stack the columns: a subquery for each, put together with union all"),
    "CONNECT": ("CONNECT BY", "join the table with itself as often as needed"),
    "FOR": ("FOR UPDATE", "leave it out: nothing is ever written"),
    "INTO": ("INTO", "leave it out: take the answer with .to_pandas()"),
    "LATERAL": ("LATERAL", _PER_UNIT_FIX),
    "COLLATE": ("COLLATE", "leave it out, and compare in lower case"),
    "IGNORE": ("IGNORE NULLS", "leave it out: aggregates leave NULLs out"),
    "RESPECT": ("RESPECT NULLS", "leave it out: aggregates leave NULLs out"),
    "ESCAPE": ("ESCAPE", "write it after a pattern of like"),
    "GLOB": ("GLOB", _PATTERN),
    "REGEXP": ("REGEXP", MATCH_FIX),
    "RLIKE": ("RLIKE", MATCH_FIX),
}

UNSUPPORTED_JOINS = {
    "ASOF": "say which rows match by an equality of columns",
    "POSITIONAL": "say which rows match by an equality of columns",
}

# Words that name no column and no table unless they stand in double quotes.
_RESERVED = (
    "ALL AND ANTI ANY AS ASC BETWEEN BY CASE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FALSE FETCH FILTER FROM FULL "
    "GROUP HAVING ILIKE IN INNER INTERSECT IS ISNULL JOIN LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL NULLS OFFSET ON OR "
    "ORDER OUTER OVER QUALIFY RIGHT SELECT SEMI SIMILAR SOME THEN TRUE UNION USING VALUES WHEN WHERE WINDOW WITH "
    "WITHIN"
)
_NAMES_TOO = {"SAMPLE", "IGNORE", "RESPECT"}  # where no such clause can start
RESERVED = frozenset(_RESERVED.split()) | (UNSUPPORTED_CLAUSES.keys() - _NAMES_TOO) | UNSUPPORTED_JOINS.keys()

_STATEMENTS = (
    "ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DETACH DO DROP EXECUTE "
    "EXPORT GRANT IMPORT INSERT INSTALL LOAD MERGE PREPARE REPLACE RESET REVOKE ROLLBACK SET TRUNCATE UPDATE USE VACUUM"
)
WRITE_STATEMENTS = frozenset(_STATEMENTS.split())  # that write, or may
OTHER_STATEMENTS = frozenset({"PIVOT", "UNPIVOT"})
METADATA_STATEMENTS = frozenset({"DESC", "DESCRIBE", "EXPLAIN", "PRAGMA", "SHOW", "SUMMARIZE"})

_ORDER = "which row comes first decides it; ask for the min, max, median or mode"
_SHOWS = "it would show single rows; group by the values, and count the rows of each"
_WINDOW = "it needs a window: say over what, and in which order"
_TEXT = "use lower, upper, trim, length, substring and ||"
_WEEKDAY = "isodow is 1 on Monday and 7 on Sunday; extract dow is 0 on Sunday"
_HOUR = "use year, quarter, month, week, day or isodow; of a timestamp also hour, minute and second"
_CHANCE = "the answer depends on the data alone; leave it out"

_INSTEAD = {
    _ORDER: ("any_value arbitrary first last first_value last_value nth_value"),
    _SHOWS: "string_agg group_concat listagg list array_agg histogram map_agg json_group_array json_group_object",
    _WINDOW: "row_number rank dense_rank percent_rank cume_dist ntile lag lead fill",
    MATCH_FIX: "regexp_full_match regexp_extract regexp_replace regexp regexp_instr regexp_count regexp_substr",
    "take one part at a time, with split_part": "split string_split",
    _TEXT: (
        "repeat reverse translate format printf chr ascii ord md5 sha256 hash strlen "
        "octet_length bit_length levenshtein title initcap overlay"
    ),
    CLOCK_FIX: (
        "current_date current_timestamp current_time localtime localtimestamp now today get_current_timestamp getdate "
        "curdate current_datetime sysdate transaction_timestamp statement_timestamp"
    ),
    _WEEKDAY: "weekday day_of_week",
    _HOUR: "millisecond microsecond timezone century decade millennium era julian",
    "cut dates with date_trunc": "date_bin",
    "ask for the standard deviation and for the count, and compute it from the answer": "sem",
    "ask for the median first, then for the median of the distances from its answer": "mad",
    "group by the values, count the rows of each, and compute it from the answer": "entropy",
    "ask for the geometric mean, geomean, and for the count": "product",
    "count the rows that meet a condition, and compare with the count of all": "bit_and bit_or bit_xor",
    "ask for the sum": "total",
    "ask for the most frequent values, top_k": ("approx_top_count approx_top_sum approx_most_frequent most_frequent"),
    _CHANCE: "random rand uuid gen_random_uuid setseed nextval current_user session_user user version getenv",
    "divide, and take the floor": "fdiv divide",
    "write a case with one branch for each value": "choose",
    "list the values, in round brackets": "any some all array list_contains list_value",
    "name the columns one by one": "row struct struct_pack columns map unnest",
    "declare the type in the policy": "convert cast_to_type",
}
FUNCTION_SUGGESTIONS = {name: fix for fix, names in _INSTEAD.items() for name in names.split()}
ANY_FUNCTION = "use + - * / % ^, abs, floor, ceil, sqrt, ln, exp, least, greatest, coalesce or case"
_BARE = "current_date current_timestamp current_time localtime localtimestamp current_user session_user"
FUNCTIONS_WITHOUT_PARENTHESES = frozenset(_BARE.split())  # functions that SQL calls without brackets

# Other types than those of columns that CAST names, and what gives the same.
_CASTS = {
    "leave it out: the hour and the minute tell the time of day": "time timetz",
    "write the interval itself": "interval",
}
TIMESTAMPS = frozenset({"timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns"})  # other types of timestamps
CAST_SUGGESTIONS = {name: fix for fix, names in _CASTS.items() for name in names.split()}

# Signs of SQL that are not answered: what they make, and what to do instead.
_VALUE = "write the value into the question"
_BITS = "an operation on bits"
OPERATOR_SUGGESTIONS = {
    "[": ("a list", "list values in round brackets; substring gives a part of a text"),
    "]": ("a list", "list values in round brackets"),
    "{": ("a struct", "name the columns one by one"),
    "}": ("a struct", "name the columns one by one"),
    "?": ("a parameter", _VALUE),
    "$": ("a parameter or a quote with $", f"{_VALUE}, in single quotes if it is text"),
    ":": ("a parameter or a name with :", f"{_VALUE}; names stand behind"),
    ":=": (":=", f"{_VALUE}; names stand behind"),
    "@": ("@", f"{_VALUE}; abs is the size of a number"),
    "->": ("->", "compare columns with constants"),
    "->>": ("->>", "compare columns with constants"),
    "=>": ("=>", "give arguments by their position"),
    "&": (_BITS, "join conditions by the word and"),
    "&&": ("&&", "write AND"),
    "|": (_BITS, "join conditions by the word or, and texts with ||"),
    "|>": ("|>", "write one select, with all that is done in its clauses"),
    "<<": (_BITS, "multiply by a power of two"),
    ">>": (_BITS, "divide by a power of two, and take the floor"),
    "!": ("!", "write NOT"),
    "#": ("#", "start a comment with --"),
}
OPERATOR_REPLACEMENTS = {"&&": "AND", "!": "NOT ", "#": "--"}  # what may stand in the place of the sign


class LineIndex:
    """Where stretches of a text stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]

    def __call__(self, start: int, end: int) -> SourceLocation:
        """The place of text[start:end]: its line, its column, and the part of the line that shows it."""
        number = bisect_right(self._lines, start)
        begin = self._lines[number - 1]
        stop = self._lines[number] - 1 if number < len(self._lines) else len(self._text)
        column = start - begin
        first = max(0, min(column - _WIDTH // 2, stop - begin - _WIDTH))
        excerpt = self._text[begin + first : min(stop, begin + first + _WIDTH)]
        if not excerpt.isprintable():  # a control character could move the mark, or more
            excerpt = "".join(c if c.isprintable() else " " for c in excerpt).rstrip()
        length = max(1, min(end - start, len(excerpt) - (column - first)))
        return SourceLocation(
            number, column + 1, excerpt, length, offset=first, text=self._text, start=start, end=max(start, end)
        )


def to_printable(text: str) -> str:
    """As much of a text of the question as fits a sentence, without what could move a cursor."""
    return "".join(character if character.isprintable() else " " for character in text[:40])


def refuse_statement(key: str, at: SourceLocation) -> Refused:
    """A refusal of a statement that is no SELECT, by its first word."""
    if key in METADATA_STATEMENTS:
        return Refused(
            ErrorCode.STATEMENT, "only SELECT is answered", at=at, fix="use explain, schema and budget instead"
        )
    if key == "TABLE":
        rows = "SELECT * FROM"
        return Refused(ErrorCode.STATEMENT, "only SELECT is answered", at=at, fix=f"write {rows}", instead=rows)
    if key in OTHER_STATEMENTS:
        return Refused(ErrorCode.STATEMENT, "only SELECT is answered", at=at, fix="write it as a select")
    if key in WRITE_STATEMENTS:
        what = "only SELECT is answered; nothing is ever written"
        return Refused(ErrorCode.STATEMENT, what, at=at, fix="ask a question, which starts with select")
    meant = "SELECT" if get_close_matches(key, ["SELECT"]) else None
    fix = "a question starts with the word select" if meant is None else f"write {meant}"
    return Refused(ErrorCode.SYNTAX, "this is not SQL that can be read", at=at, fix=fix, instead=meant)


def refuse_unsupported(what: str, fix: str, at: SourceLocation | None, instead: str | None = None) -> Refused:
    """A refusal of a part of SQL that is not answered; `instead` is SQL that may stand in its place."""
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=at, fix=fix, instead=instead)


def refuse_too_large(what: str, at: SourceLocation | None, fix: str = SMALLER_FIX) -> Refused:
    """A refusal of a question that would keep the planner busy for long."""
    return Refused(ErrorCode.TOO_LARGE, what, at=at, fix=fix)


def refuse_unknown_function(name: str, at: SourceLocation | None) -> Refused:
    """A refusal of a function that is not in the table, with the one that does the same where there is one."""
    fix = FUNCTION_SUGGESTIONS.get(name.lower(), ANY_FUNCTION)
    return Refused(ErrorCode.UNKNOWN_FUNCTION, f"{name.upper():.40} is not answered", at=at, fix=fix)


def size(scalar: Scalar) -> int:
    """How many parts an expression has, level by level: a part that is shared counts wherever it stands.

    Refused where it is deeper or larger than the planner's recursion should meet. Takes no recursion itself, and stops
    at the limit, so a text of n tokens takes O(n + MAX_NODES) steps.
    """
    seen, level = 1, [scalar]
    for _ in range(MAX_LEVELS):
        level = [child for one in level for child in children(one)]
        seen += len(level)
        if not level:
            return seen
        if seen > MAX_NODES:
            break
    raise refuse_too_large("an expression has too many parts", find_location(scalar))


def nesting(query: Query | UnionAll) -> int:
    """How many subqueries stand within each other."""
    parts = query.parts if isinstance(query, UnionAll) else (query,)
    return max(_nesting(part.source) for part in parts)


def _nesting(source: FromItem) -> int:
    match source:
        case Join(left, right) | SemiJoin(left, right):
            return max(_nesting(left), _nesting(right))
        case DerivedTable(query):
            return 1 + nesting(query)
        case TableReference() | ConstantTable():
            return 0
