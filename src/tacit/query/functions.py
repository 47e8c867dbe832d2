"""The closed table of functions and operators. What is not here cannot be asked.

To add one: a row here, its rule in the module of its family that `plan/bounds.py` names, its SQL in
`engines/scalars.py`, its meaning in `engines/evaluate.py` and its line in `docs/reference/functions.md`. Every function
is total: no argument can raise, overflow or take longer than another of its length.
"""

from __future__ import annotations

from enum import StrEnum


class Function(StrEnum):
    """Functions over rows and over released values, by the name SQL has for them."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    NEGATE = "negate"
    ABS = "abs"
    FLOOR = "floor"
    CEIL = "ceil"
    LEAST = "least"
    GREATEST = "greatest"
    COALESCE = "coalesce"
    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IN = "in"
    IS_NULL = "is null"
    AND = "and"
    OR = "or"
    NOT = "not"
    ROUND = "round"
    MOD = "mod"
    POWER = "power"
    SQRT = "sqrt"
    LN = "ln"
    EXP = "exp"
    SIGN = "sign"
    LOWER = "lower"
    UPPER = "upper"
    TRIM = "trim"
    LENGTH = "length"
    SUBSTRING = "substring"
    CONCAT = "concat"
    LIKE = "like"
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    WEEKDAY = "isodow"
    WEEK = "week"
    DAY_OF_YEAR = "doy"
    ISO_YEAR = "isoyear"
    HOUR = "hour"  # as MINUTE and SECOND, of integers in the end: no engine sees it
    MINUTE = "minute"
    SECOND = "second"
    DATE_TRUNC = "date_trunc"
    DAYS = "days"
    QUOTIENT = "quotient"  # of an integer that is not negative and a positive constant, rounded down
    DATE_OF = "date_of"  # the date of a timestamp (`query/timestamps.py`)
    CAST = "cast"  # bound by the types of columns, and seen by no engine
    LOG10 = "log10"
    LTRIM = "ltrim"
    RTRIM = "rtrim"
    RIGHT = "right"
    REPLACE = "replace"
    SPLIT_PART = "split_part"
    LPAD = "lpad"  # as RPAD, with the length last for an engine
    RPAD = "rpad"
    POSITION = "position"
    TO_TEXT = "to_text"  # of an integer
    ADD_MONTHS = "add_months"  # of a date and a constant; a day that the month lacks is its last
    # What follows is made of the others where the types are known (`plan/bounds.py`): no engine sees it.
    TRUNC = "trunc"
    DIV = "div"
    RATIO = "ratio"  # x / y where it is DIV of whole numbers, and DIVIDE of others: the binder knows
    INTERVAL = "interval"  # of units, each with a number
    DATE_ADD = "date_add"  # of a unit, a number and a date or timestamp
    DATE_DIFF = "date_diff"  # in weeks, months, quarters or years, from one date to another
    ELAPSED = "elapsed"  # whole units of one length from one timestamp to another, rounded toward zero
    AGE = "age"  # whole years or months from one date to another, as PostgreSQL counts them
    EPOCH = "epoch"
    YEAR_WEEK = "yearweek"
    WEEK_START = "week_start"  # the first day of a week that starts on another day than Monday
    LAST_DAY = "last_day"
    TO_CHAR = "to_char"  # of a date or timestamp and a format of `query/date_formats.py`


COMPARISONS = frozenset(
    {Function.EQUAL, Function.UNEQUAL, Function.LESS, Function.LESS_EQUAL, Function.GREATER, Function.GREATER_EQUAL}
)
CONDITIONS = frozenset({Function.AND, Function.OR, Function.NOT})
IS_CONDITION = COMPARISONS | CONDITIONS | {Function.IN, Function.IS_NULL, Function.LIKE}  # what is true or false
WRITES_TEXT = frozenset({Function.CONCAT, Function.REPLACE, Function.LPAD, Function.RPAD})  # may give long texts
DATE_PARTS = frozenset(
    {
        Function.YEAR,
        Function.QUARTER,
        Function.MONTH,
        Function.DAY,
        Function.WEEKDAY,
        Function.WEEK,
        Function.DAY_OF_YEAR,
        Function.ISO_YEAR,
    }
)
TIME_PARTS = frozenset({Function.HOUR, Function.MINUTE, Function.SECOND})

DATE_UNITS = ("year", "quarter", "month", "week", "day")  # of DATE_TRUNC; a week starts on Monday
TIME_UNITS = ("hour", "minute", "second")  # of timestamps only
MAX_POWER = 10  # the largest exponent of POWER
MOST_TEXTS = 8  # texts that one text may be put together from
MOST_LITERAL = 250  # characters of a text in a question about rows
MOST_PATTERN = 100  # characters of a pattern of LIKE
MOST_POSITION = 2**31 - 1  # the largest start and length of SUBSTRING

# Functions over windows of released values or of one unit's rows, and the least and largest number of their arguments.
WINDOW_FUNCTIONS = {
    "row_number": (0, 0),
    "rank": (0, 0),
    "dense_rank": (0, 0),
    "percent_rank": (0, 0),
    "cume_dist": (0, 0),
    "ntile": (1, 1),
    "lag": (1, 3),
    "lead": (1, 3),
    "first_value": (1, 1),
    "last_value": (1, 1),
    "nth_value": (2, 2),
}
WRITTEN_WINDOWS = frozenset({"ratio_to_report", "conditional_true_event"})  # of Snowflake, with SUM over the window
LIST = "list"  # of constants, as an argument of an aggregate that takes one
GROUPING = "grouping"  # of keys, replaced by a constant in each grouping set
