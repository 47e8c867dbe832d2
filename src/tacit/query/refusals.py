"""What is refused, and what to do instead: limits on size, clauses and functions, and how a refusal points at the text.

The tables are for people: each name of SQL that is not answered, and the rewriting that would be.
"""

from __future__ import annotations

from bisect import bisect_right

from tacit.errors import ErrorCode, Refused, SourceLocation
from tacit.query.nodes import (
    ConstantTable,
    DerivedTable,
    FromItem,
    Join,
    Query,
    Scalar,
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
PER_UNIT_JOIN_EXAMPLE = "JOIN (SELECT id, COUNT(*) AS n FROM t GROUP BY id) AS s USING (id)"  # one row for each unit

_PATTERN = "use LIKE, where % is any text and _ is any one character: x LIKE 'flu%'"
MATCH_FIX = "write LIKE 'flu%', or a choice between a few such patterns: x ~ '^(flu|cold)'"
CLOCK_FIX = "write the date itself: DATE '2025-12-31'; the owner may declare what is today in the policy"

# What may stand where the grammar has something else: the first word, what it is called, what to do instead.
UNSUPPORTED_CLAUSES = {
    "TABLESAMPLE": ("TABLESAMPLE", "leave it out: the noise already hides each row"),
    "SAMPLE": ("SAMPLE", "leave it out: the noise already hides each row"),
    "PIVOT": ("PIVOT", "use CASE inside an aggregate: SUM(CASE WHEN ward = 'A' THEN cost END)"),
    "UNPIVOT": ("UNPIVOT", "stack the columns: (SELECT a AS x FROM t UNION ALL SELECT b FROM t) AS s"),
    "CONNECT": ("CONNECT BY", "join as often as needed: JOIN ... USING (id)"),
    "FOR": ("FOR UPDATE", "leave it out: nothing is ever written"),
    "INTO": ("INTO", "leave it out: take the answer with .to_pandas()"),
    "LATERAL": ("LATERAL", f"join one row for each unit: {PER_UNIT_JOIN_EXAMPLE}"),
    "COLLATE": ("COLLATE", "compare with LOWER(x) = 'flu'"),
    "IGNORE": ("IGNORE NULLS", "leave it out: aggregates leave NULLs out"),
    "RESPECT": ("RESPECT NULLS", "leave it out: aggregates leave NULLs out"),
    "ESCAPE": ("ESCAPE", "write it after the pattern: x LIKE 'a!_%' ESCAPE '!'"),
    "GLOB": ("GLOB", _PATTERN),
    "REGEXP": ("REGEXP", MATCH_FIX),
    "RLIKE": ("RLIKE", MATCH_FIX),
}

UNSUPPORTED_JOINS = {
    "SEMI": f"join one row for each unit: {PER_UNIT_JOIN_EXAMPLE}",
    "ANTI": f"keep those without a match: LEFT {PER_UNIT_JOIN_EXAMPLE} WHERE n IS NULL",
    "ASOF": "say which rows match: FROM a JOIN b USING (id)",
    "POSITIONAL": "say which rows match: FROM a JOIN b USING (id)",
}

# Words that name no column and no table unless they stand in double quotes.
_RESERVED = (
    "ALL AND ANY AS ASC BETWEEN BY CASE CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FALSE FILTER FROM FULL GROUP HAVING "
    "ILIKE IN INNER INTERSECT IS ISNULL JOIN LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL NULLS OFFSET ON OR ORDER OUTER "
    "RIGHT SELECT SIMILAR SOME THEN TRUE UNION USING VALUES WHEN WHERE WITH WITHIN WINDOW OVER QUALIFY FETCH"
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

_ORDER = "which row comes first decides it; ask for MIN, MAX, MEDIAN or MODE"
_SHOWS = "it would show single rows; count them: SELECT ward, COUNT(*) ... GROUP BY ward"
_WINDOW = "it needs a window: RANK() OVER (ORDER BY COUNT(*) DESC)"
_TEXT = "use LOWER, UPPER, TRIM, LENGTH, SUBSTRING and ||"
_WEEKDAY = "ISODOW(d) is 1 on Monday and 7 on Sunday; EXTRACT(DOW FROM d) is 0 on Sunday"
_HOUR = "use YEAR, QUARTER, MONTH, WEEK, DAY or ISODOW; of a timestamp also HOUR, MINUTE and SECOND"
_CHANCE = "the answer depends on the data alone; leave it out"

_INSTEAD = {
    _ORDER: (
        "any_value arbitrary first last arg_min arg_max argmin argmax min_by max_by first_value last_value nth_value"
    ),
    _SHOWS: "string_agg group_concat listagg list array_agg histogram map_agg json_group_array json_group_object",
    _WINDOW: "row_number rank dense_rank percent_rank cume_dist ntile lag lead fill",
    MATCH_FIX: "regexp_full_match regexp_extract regexp_replace regexp regexp_instr regexp_count regexp_substr",
    "write SPLIT_PART(x, ',', 1)": "split string_split",
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
    "use DATE_TRUNC('week', d)": "date_bin",
    "write STDDEV(x) / SQRT(COUNT(x))": "sem",
    "ask for MEDIAN(x) first, then for MEDIAN(ABS(x - 40)) with its answer in the place of 40": "mad",
    "count each value, and compute it from the answer: SELECT x, COUNT(*) FROM t GROUP BY x": "entropy",
    "write AVG(LN(x)) and take EXP of the answer": "product",
    "compare COUNT(*) FILTER (WHERE ...) with COUNT(*)": "bit_and bit_or bit_xor",
    "write SUM(x)": "total",
    "write TOP_K(x, 3)": "approx_top_count approx_top_sum approx_most_frequent most_frequent",
    _CHANCE: "random rand uuid gen_random_uuid setseed nextval current_user session_user user version getenv",
    "FLOOR(x / 10) gives the tens": "fdiv divide",
    "write CASE WHEN ... THEN ... ELSE ... END": "choose",
    "list the values: IN ('A', 'B')": "any some all array list_contains list_value",
    "name the columns one by one": "row struct struct_pack columns map unnest",
    "declare the type in the policy": "convert cast_to_type",
}
FUNCTION_SUGGESTIONS = {name: fix for fix, names in _INSTEAD.items() for name in names.split()}
ANY_FUNCTION = "use + - * / % ^, ABS, FLOOR, CEIL, SQRT, LN, EXP, LEAST, GREATEST, COALESCE or CASE"
_BARE = "current_date current_timestamp current_time localtime localtimestamp current_user session_user"
FUNCTIONS_WITHOUT_PARENTHESES = frozenset(_BARE.split())  # functions that SQL calls without brackets

# Other types than those of columns that CAST names, and what gives the same.
_CASTS = {
    "write CAST(x AS TIMESTAMP): the time in the column's zone": "timestamptz timestamp_s timestamp_ms timestamp_ns",
    "leave it out: HOUR(x) and MINUTE(x) tell the time of day": "time timetz",
    "write INTERVAL '7 days'": "interval",
}
CAST_SUGGESTIONS = {name: fix for fix, names in _CASTS.items() for name in names.split()}

# Signs of SQL that are not answered: what they make, and what to do instead.
_VALUE = "write the value into the question"
_BITS = "an operation on bits"
OPERATOR_SUGGESTIONS = {
    "[": ("a list", "list values in round brackets: IN ('A', 'B'); SUBSTRING(x, 1, 1) is a part of a text"),
    "]": ("a list", "list values in round brackets: IN ('A', 'B')"),
    "{": ("a struct", "name the columns one by one"),
    "}": ("a struct", "name the columns one by one"),
    "?": ("a parameter", _VALUE),
    "$": ("a parameter or a quote with $", f"{_VALUE}, in single quotes if it is text"),
    ":": ("a parameter or a name with :", f"{_VALUE}; names stand behind, with AS"),
    ":=": (":=", f"{_VALUE}; names stand behind, with AS"),
    "@": ("@", f"{_VALUE}; ABS(x) is the size of a number"),
    "->": ("->", "compare columns with constants: x > 0"),
    "->>": ("->>", "compare columns with constants: x > 0"),
    "=>": ("=>", "give arguments by their position"),
    "&": (_BITS, "join conditions with AND"),
    "&&": ("&&", "join conditions with AND"),
    "|": (_BITS, "join conditions with OR, and texts with ||"),
    "|>": ("|>", "write SELECT ... FROM ... WHERE ..."),
    "<<": (_BITS, "write x * 2"),
    ">>": (_BITS, "write FLOOR(x / 2)"),
    "!": ("!", "write NOT"),
    "#": ("#", "start a comment with --"),
}


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
        return SourceLocation(number, column + 1, excerpt, length, offset=first)


def to_printable(text: str) -> str:
    """As much of a text of the question as fits a sentence, without what could move a cursor."""
    return "".join(character if character.isprintable() else " " for character in text[:40])


def refuse_statement(key: str, at: SourceLocation) -> Refused:
    """A refusal of a statement that is no SELECT, by its first word."""
    if key in METADATA_STATEMENTS:
        return Refused(
            ErrorCode.STATEMENT, "only SELECT is answered", at=at, fix="use explain, schema and budget instead"
        )
    if key in OTHER_STATEMENTS:
        return Refused(ErrorCode.STATEMENT, "only SELECT is answered", at=at, fix="SELECT COUNT(*) FROM ...")
    if key in WRITE_STATEMENTS:
        what = "only SELECT is answered; nothing is ever written"
        return Refused(ErrorCode.STATEMENT, what, at=at, fix="SELECT COUNT(*) FROM ...")
    return Refused(ErrorCode.SYNTAX, "this is not SQL that can be read", at=at, fix="a question starts with SELECT")


def refuse_unsupported(what: str, fix: str, at: SourceLocation | None) -> Refused:
    """A refusal of a part of SQL that is not answered."""
    return Refused(ErrorCode.UNSUPPORTED, f"{what} is not answered", at=at, fix=fix)


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
        case Join(left, right):
            return max(_nesting(left), _nesting(right))
        case DerivedTable(query):
            return 1 + nesting(query)
        case TableReference() | ConstantTable():
            return 0
