"""Names of functions, by dialect: what PostgreSQL, DuckDB, BigQuery, Snowflake and others call one and the same thing.

Where one name means different things in two dialects, it means what it means in PostgreSQL, and otherwise in DuckDB.
What a name stands for is decided by the table that has it:

- `PLAIN`: a function of `query/functions.py`, with its arguments as they are written;
- `ALIASES`: another name of a function that is known;
- the tables `BUILDERS` of `function_calls.py`, `date_calls.py`, `number_calls.py` and `text_calls.py`: what has to be
  put together.
"""

from __future__ import annotations

from tacit.query.call_syntax import MANY
from tacit.query.functions import Function

# The function, the least and the largest number of arguments, and how it is written.
PLAIN: dict[str, tuple[Function, int, int, str]] = {
    "abs": (Function.ABS, 1, 1, "ABS(x)"),
    "floor": (Function.FLOOR, 1, 1, "FLOOR(x)"),
    "ceil": (Function.CEIL, 1, 1, "CEIL(x)"),
    "ceiling": (Function.CEIL, 1, 1, "CEILING(x)"),
    "least": (Function.LEAST, 1, MANY, "LEAST(x, 100)"),
    "greatest": (Function.GREATEST, 1, MANY, "GREATEST(x, 0)"),
    "coalesce": (Function.COALESCE, 1, MANY, "COALESCE(x, 0)"),
    "ifnull": (Function.COALESCE, 2, 2, "IFNULL(x, 0)"),
    "nvl": (Function.COALESCE, 2, 2, "NVL(x, 0)"),
    "mod": (Function.MOD, 2, 2, "MOD(x, 10)"),
    "power": (Function.POWER, 2, 2, "POWER(x, 2)"),
    "pow": (Function.POWER, 2, 2, "POW(x, 2)"),
    "sqrt": (Function.SQRT, 1, 1, "SQRT(x)"),
    "ln": (Function.LN, 1, 1, "LN(x)"),
    "log10": (Function.LOG10, 1, 1, "LOG10(x)"),
    "exp": (Function.EXP, 1, 1, "EXP(x)"),
    "sign": (Function.SIGN, 1, 1, "SIGN(x)"),
    "div": (Function.DIV, 2, 2, "DIV(x, 10)"),
    "safe_divide": (Function.DIVIDE, 2, 2, "SAFE_DIVIDE(x, y)"),
    "lower": (Function.LOWER, 1, 1, "LOWER(x)"),
    "lcase": (Function.LOWER, 1, 1, "LCASE(x)"),
    "upper": (Function.UPPER, 1, 1, "UPPER(x)"),
    "ucase": (Function.UPPER, 1, 1, "UCASE(x)"),
    "trim": (Function.TRIM, 1, 1, "TRIM(x)"),
    "ltrim": (Function.LTRIM, 1, 1, "LTRIM(x)"),
    "rtrim": (Function.RTRIM, 1, 1, "RTRIM(x)"),
    "length": (Function.LENGTH, 1, 1, "LENGTH(x)"),
    "len": (Function.LENGTH, 1, 1, "LEN(x)"),
    "char_length": (Function.LENGTH, 1, 1, "CHAR_LENGTH(x)"),
    "character_length": (Function.LENGTH, 1, 1, "CHARACTER_LENGTH(x)"),
    "replace": (Function.REPLACE, 3, 3, ""),
    "split_part": (Function.SPLIT_PART, 3, 3, ""),
    "lpad": (Function.LPAD, 3, 3, "LPAD(x, 5, '0')"),
    "rpad": (Function.RPAD, 3, 3, "RPAD(x, 5, ' ')"),
    "strpos": (Function.POSITION, 2, 2, ""),
    "instr": (Function.POSITION, 2, 2, ""),
    "year": (Function.YEAR, 1, 1, "YEAR(d)"),
    "quarter": (Function.QUARTER, 1, 1, "QUARTER(d)"),
    "month": (Function.MONTH, 1, 1, "MONTH(d)"),
    "day": (Function.DAY, 1, 1, "DAY(d)"),
    "dayofmonth": (Function.DAY, 1, 1, "DAYOFMONTH(d)"),
    "isodow": (Function.WEEKDAY, 1, 1, "ISODOW(d)"),
    "week": (Function.WEEK, 1, 1, "WEEK(d)"),
    "weekofyear": (Function.WEEK, 1, 1, "WEEKOFYEAR(d)"),
    "dayofyear": (Function.DAY_OF_YEAR, 1, 1, "DAYOFYEAR(d)"),
    "isoyear": (Function.ISO_YEAR, 1, 1, "ISOYEAR(d)"),
    "yearweek": (Function.YEAR_WEEK, 1, 1, "YEARWEEK(d)"),
    "epoch": (Function.EPOCH, 1, 1, "EPOCH(t)"),
    "hour": (Function.HOUR, 1, 1, "HOUR(t)"),
    "minute": (Function.MINUTE, 1, 1, "MINUTE(t)"),
    "second": (Function.SECOND, 1, 1, "SECOND(t)"),
}

# Other names, and the dialects that have them.
ALIASES: dict[str, str] = {
    # conditions
    "iff": "if",  # Snowflake; IF is BigQuery's and DuckDB's
    "iif": "if",  # SQL Server, SQLite
    # numbers
    "truncate": "trunc",  # MySQL, Snowflake
    # texts
    "substr": "substring",
    "startswith": "starts_with",  # Snowflake
    "endswith": "ends_with",  # Snowflake, BigQuery: ENDS_WITH
    "prefix": "starts_with",  # DuckDB
    "suffix": "ends_with",  # DuckDB
    "charindex": "locate",  # Snowflake, SQL Server
    "regexp_like": "regexp_matches",  # PostgreSQL, Snowflake
    "regexp_contains": "regexp_matches",  # BigQuery
    # parts of dates
    "datepart": "date_part",  # DuckDB, SQL Server
    "day_of_year": "dayofyear",  # Presto
    "dayofweekiso": "isodow",  # Snowflake
    "weekiso": "week",  # Snowflake
    "week_of_year": "week",  # Presto
    "yearofweekiso": "isoyear",  # Snowflake
    "date_part_year": "year",
    "unix_timestamp": "epoch",  # MySQL, Spark
    "unix_seconds": "epoch",  # BigQuery
    "to_unixtime": "epoch",  # Presto
    "dow": "dayofweek",
    # dates
    "datetrunc": "date_trunc",  # DuckDB, SQL Server
    "timestamp_trunc": "date_trunc",  # BigQuery
    "datetime_trunc": "date_trunc",  # BigQuery
    "datediff": "date_diff",  # DuckDB, Snowflake, MySQL, Spark; DATE_DIFF is BigQuery's and DuckDB's
    "datetime_diff": "date_diff",  # BigQuery
    "timestampdiff": "date_diff",  # Snowflake
    "timediff": "date_diff",  # Snowflake
    "datesub": "date_sub",  # DuckDB
    "dateadd": "date_add",  # Snowflake, SQL Server; DATE_ADD is BigQuery's, MySQL's and Spark's
    "datetime_add": "date_add",  # BigQuery
    "timestamp_add": "date_add",  # BigQuery
    "timestampadd": "date_add",  # Snowflake
    "datetime_sub": "date_sub",  # BigQuery
    "timestamp_sub": "date_sub",  # BigQuery
    "to_varchar": "to_char",  # Snowflake
    "try_to_number": "to_number",  # Snowflake
    "format_timestamp": "format_date",  # BigQuery
    "format_datetime": "format_date",  # BigQuery
    "try_to_date": "to_date",  # Snowflake
    "strptime": "to_timestamp",  # DuckDB
    "try_to_timestamp": "to_timestamp",  # Snowflake
    "to_timestamp_ntz": "to_timestamp",  # Snowflake
    "parse_date": "to_date",  # BigQuery, whose format stands first
    "date_from_parts": "make_date",  # Snowflake
    "datefromparts": "make_date",  # Snowflake, SQL Server
    "timestamp_ntz_from_parts": "make_timestamp",  # Snowflake
}

CLOCK_DATES = frozenset({"current_date", "today", "curdate"})
CLOCK_TIMES = frozenset(
    {
        *("current_timestamp", "now", "getdate", "localtimestamp", "get_current_timestamp", "current_datetime"),
        *("sysdate", "transaction_timestamp", "statement_timestamp"),
    }
)

# Units of dates and times, by every name.
UNITS: dict[str, str] = {
    name: unit
    for unit, names in {
        "year": "year years y yy yyyy yr yrs",
        "quarter": "quarter quarters q qtr qtrs",
        "month": "month months mon mons mm",
        "week": "week weeks w wk isoweek week_iso iw",
        "day": "day days d dd",
        "hour": "hour hours h hh hr hrs",
        "minute": "minute minutes mi min mins",
        "second": "second seconds s ss sec secs",
        "millisecond": "millisecond milliseconds ms",
        "microsecond": "microsecond microseconds us",
    }.items()
    for name in names.split()
}
# Parts of dates that EXTRACT and DATE_PART have beyond the units, and the functions that give them.
PARTS: dict[str, str] = {
    "dow": "dayofweek",
    "dayofweek": "dayofweek",  # as DuckDB and Snowflake have it: Sunday is 0; BigQuery counts from 1
    "dayofweek_iso": "isodow",
    "dow_iso": "isodow",
    "isodow": "isodow",
    "weekday_iso": "isodow",
    "doy": "dayofyear",
    "dayofyear": "dayofyear",
    "isoweek": "week",
    "week_iso": "week",
    "weekiso": "week",
    "weekofyear": "week",
    "isoyear": "isoyear",
    "yearofweekiso": "isoyear",
    "yearweek": "yearweek",
    "epoch": "epoch",
    "epoch_second": "epoch",
    "dayofmonth": "day",
    "date": "date",
}
