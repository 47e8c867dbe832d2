"""What engines spell differently: one frozen table each, read by `engines/scalars.py` and `engines/sql_statements.py`.

All three put NaN above every number and equal to itself, skip NULL in LEAST and GREATEST, and have three-valued logic.
Where one of them differs, its table says how it is made to agree. In the templates {0} and {1} stand for operands.

>>> print(DUCKDB.name("my table"), SPARK.name("my table"))
"my table" `my table`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tacit.query.functions import Function
from tacit.query.types import Type

_QUOTES = (("'", "''"),)


@dataclass(frozen=True)
class Dialect:
    """The spellings of one engine.

    `finite` says that arithmetic of floats raises where others round to zero or to infinity, and `wide` that FLOOR of a
    float is an integer: both put numbers within bounds first. `quick` says that whole doubles are added exactly and
    sooner than integers.
    """

    title: str
    quote: str = '"'
    escapes: tuple[tuple[str, str], ...] = _QUOTES  # inside of a text
    real: str = "CAST({0} AS DOUBLE)"  # a constant
    is_nan: str = "isnan({0})"
    collated: str = "{0}"  # a text that is not stored: letter by letter
    types: Mapping[Type, str] = field(default_factory=dict, hash=False)
    calls: Mapping[Function, str] = field(default_factory=dict, hash=False)  # where they differ from engines/scalars.py
    like: Callable[[Dialect, str, str], str] = lambda dialect, value, pattern: dialect.plainly_like(value, pattern)
    derived: str = "({0})"  # a query in FROM
    hashed: str = "CAST(md5_number({0}) >> 65 AS BIGINT)"  # 63 bits of a text
    total: str = "SUM({0})"  # of 64-bit integers, without overflow
    quotient: str = "({0} // {1})"  # of integers that are not negative, rounded down
    widest: str = "HUGEINT"  # the type of the widest integers: of 126 bits at least
    wide_quotient: str = "({0} // {1})"  # the same of these
    after_first_day: str = "(DATE '0001-01-01' + {0})"  # so many days
    guarded: str = "{0}"  # a scalar, NULL where it would raise, if the engine has such a thing
    narrowed: str = "TRY_CAST({0} AS BIGINT)"  # a total that 64 bits hold, where CASE has found that they do
    log10: str = "log10"
    position: str = "strpos"  # of a text in another, which stands first
    order: str = "{0}"  # of rows, NULL last
    qualify: bool = True
    finite: bool = False
    wide: bool = False
    quick: bool = False

    def name(self, identifier: str) -> str:
        """A quoted identifier."""
        return self.quote + identifier.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        """A quoted string."""
        for character, written in self.escapes:
            value = value.replace(character, written)
        return f"'{value}'"

    def plainly_like(self, value: str, pattern: str) -> str:
        """LIKE, where the engine matches in time that grows with the length of the text alone."""
        return f"({value} LIKE {self.text(pattern)})"


def _like_duckdb(dialect: Dialect, value: str, pattern: str) -> str:
    """LIKE in time that grows with the length of the text alone.

    DuckDB before version 2 tries every place for every % of a pattern with _, so that k of them take n^k steps. Where
    there is more than one text to look for, such a pattern is a regular expression instead: RE2 never goes back.
    """
    sought = [part for part in pattern.split("%")[1:] if part]
    if "_" not in pattern or len(sought) <= 1:
        return dialect.plainly_like(value, pattern)
    expression = "".join({"%": ".*", "_": "."}.get(c, c if c.isalnum() else f"\\x{{{ord(c):x}}}") for c in pattern)
    return f"regexp_full_match({value}, {dialect.text(f'(?s){expression}')})"


def _like_spark(dialect: Dialect, value: str, pattern: str) -> str:
    """LIKE as a regular expression that never goes back.

    Spark makes LIKE a regular expression of Java's, which tries all places for every %. What stands between two % is
    found as early as can be, and need not be sought again: (?>...) says so. What stands after the last % has one place,
    at the end. So it takes at most len(text) * len(pattern) steps.
    """
    first, *rest = ["".join("." if c == "_" else _escape_for_java(c) for c in part) for part in pattern.split("%")]
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    expression = rf"(?s)\A{first}{middle}{'.*' + rest[-1] if rest else ''}\z"
    return f"({value} RLIKE {dialect.text(expression)})"


def _escape_for_java(character: str) -> str:
    return character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):x}}}"


DUCKDB = Dialect(
    "DuckDB",
    types={
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE",
        Type.TEXT: "VARCHAR",
        Type.BOOL: "BOOLEAN",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "BIGINT",
    },
    calls={Function.ADD_MONTHS: "CAST(({0} + to_months(CAST({1} AS INTEGER))) AS DATE)"},
    like=_like_duckdb,
    guarded="TRY({0})",
    quick=True,
)

# PostgreSQL raises where a product, a quotient, a power or an exponential rounds to zero or passes the largest double.
# Adding and subtracting 2^-298 leaves every double of at least 2^-244 as it is, and makes 0 of those below 2^-351: with
# operands below 2^665, as bounds have them, a quotient then stays between 2^-1016 and 2^1016.
FLUSH_TO_ZERO = 2.0**-298
_FLUSHED = f"(({{0}} + CAST('{FLUSH_TO_ZERO!r}' AS DOUBLE PRECISION)) - CAST('{FLUSH_TO_ZERO!r}' AS DOUBLE PRECISION))"
# OFFSET 0 keeps the planner from writing the operand out at every place where it is named.
_ONCE = "(SELECT {body} FROM (SELECT {{0}} AS v OFFSET 0) AS once)"

POSTGRES = Dialect(
    "PostgreSQL",
    real="CAST('{0}' AS DOUBLE PRECISION)",
    is_nan="({0} = CAST('NaN' AS DOUBLE PRECISION))",
    # As columns are read (`engines/relations.py`). A function of texts has their collation, so no text has that of the
    # database, in which UPPER('i') may be İ. In "C", LOWER and UPPER change the letters A to Z alone.
    collated='{0} COLLATE "C"',
    types={
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE PRECISION",
        Type.TEXT: "TEXT",
        Type.BOOL: "BOOLEAN",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "BIGINT",
    },
    calls={
        Function.DIVIDE: f"({_FLUSHED} / NULLIF({_FLUSHED.replace('{0}', '{1}')}, 0))",
        # The exponential of less than -745 rounds to zero.
        Function.EXP: _ONCE.format(body="CASE WHEN once.v < -745 THEN 0 ELSE exp(once.v) END"),
        # {1} is a constant whole exponent; a power below 1e-300 is read as zero.
        Function.POWER: _ONCE.format(
            body="CASE WHEN {1} > 0 AND abs(once.v) < power(CAST(1e-300 AS DOUBLE PRECISION), 1 / GREATEST({1}, 1))"
            " THEN 0 ELSE power(once.v, {1}) END"
        ),
        # Of a date it would be a point in time of the session's time zone.
        Function.DATE_TRUNC: "CAST(date_trunc({0}, CAST({1} AS TIMESTAMP)) AS DATE)",
        Function.ADD_MONTHS: "CAST(({0} + make_interval(months => {1})) AS DATE)",
    },
    derived="({0}) AS derived",
    # The last eight bytes of an md5 in the other order.
    hashed="(SELECT CAST(CAST("
    + " | ".join(f"(((once.v >> {8 * byte}) & 255) << {56 - 8 * byte})" for byte in range(8))
    + " AS BIT(64)) >> 1 AS BIGINT)"
    " FROM (SELECT CAST(CAST('x' || right(md5({0}), 16) AS BIT(64)) AS BIGINT) AS v OFFSET 0) AS once)",
    quotient="({0} / {1})",
    widest="NUMERIC",
    wide_quotient="div({0}, {1})",
    log10="log",
    narrowed="CAST({0} AS BIGINT)",
    qualify=False,
    finite=True,
)

# From version 17 on there is a collation in which LOWER and UPPER know all letters, the same ones in every database.
POSTGRES_17 = replace(
    POSTGRES,
    calls={
        **POSTGRES.calls,
        Function.LOWER: 'lower({0} COLLATE "pg_c_utf8") COLLATE "C"',
        Function.UPPER: 'upper({0} COLLATE "pg_c_utf8") COLLATE "C"',
    },
)

SPARK = Dialect(
    "Spark",
    quote="`",
    # In a text a backslash escapes, and ${x} would be the value of a setting.
    escapes=(("\\", "\\\\"), ("'", "\\'"), ("$", "\\u0024")),
    real="{0}D",
    types={
        Type.INT: "BIGINT",
        Type.FLOAT: "DOUBLE",
        Type.TEXT: "STRING",
        Type.BOOL: "BOOLEAN",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "BIGINT",
    },
    calls={
        # FLOOR and CEIL give a BIGINT; a double beyond 2^52 is whole already.
        Function.FLOOR: "transform(array({0}), v -> CASE WHEN abs(v) < 4503599627370496D THEN CAST(floor(v) AS DOUBLE)"
        " ELSE v END)[0]",
        Function.CEIL: "transform(array({0}), v -> CASE WHEN abs(v) < 4503599627370496D THEN CAST(ceil(v) AS DOUBLE)"
        " ELSE v END)[0]",
        Function.YEAR: "CAST(year({0}) AS BIGINT)",
        Function.QUARTER: "CAST(quarter({0}) AS BIGINT)",
        Function.MONTH: "CAST(month({0}) AS BIGINT)",
        Function.DAY: "CAST(day({0}) AS BIGINT)",
        Function.WEEKDAY: "CAST(weekday({0}) + 1 AS BIGINT)",
        Function.WEEK: "CAST(weekofyear({0}) AS BIGINT)",
        Function.DAY_OF_YEAR: "CAST(dayofyear({0}) AS BIGINT)",
        Function.ISO_YEAR: "CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)",
        # Of a text in Spark's own collation they follow the language of the machine: I is a capital ı in Turkish.
        Function.LOWER: "lower({0} COLLATE UNICODE) COLLATE UTF8_BINARY",
        Function.UPPER: "upper({0} COLLATE UNICODE) COLLATE UTF8_BINARY",
        Function.DATE_TRUNC: "trunc({1}, {0})",
        Function.DAYS: "CAST(datediff({0}, {1}) AS BIGINT)",
    },
    like=_like_spark,
    derived="({0}) AS derived",  # without a name, WHERE (x) after it would be its name and that of its column
    hashed="shiftrightunsigned(CAST(conv(regexp_replace(md5({0}), '^.{{16}}(..)(..)(..)(..)(..)(..)(..)(..)$',"
    " '$8$7$6$5$4$3$2$1'), 16, -10) AS BIGINT), 1)",
    total="SUM(CAST({0} AS DECIMAL(28, 0)))",
    quotient="({0} DIV {1})",
    widest="DECIMAL(38, 0)",
    wide_quotient="({0} DIV {1})",  # a BIGINT, which holds the shares of a norm
    after_first_day="date_add(DATE '0001-01-01', {0})",
    position="instr",
    order="{0} NULLS LAST",
    qualify=False,
    wide=True,
)
