"""The dialect of a question: what a name means where dialects have one name for several things.

Most names mean the same wherever they exist (`dialect_names.py`), and each is answered under every name. A few do not:

| written | PostgreSQL | DuckDB | BigQuery | Snowflake |
|---|---|---|---|---|
| `7 / 2` | 3 | 3.5 | 3.5 | 3.5 |
| `LOG(x)` | to the base 10 | to the base 10 | natural | refused |
| `LOG(a, b)` | of b to the base a | of b to the base a | of a to the base b | of b to the base a |
| the week of `DATE_TRUNC` | from Monday | from Monday | from Sunday | from Monday |
| weeks of `DATE_DIFF` | from Monday | whole ones | from Sunday | from Monday |
| `DAYOFWEEK` of a Sunday | 0 | 0 | 1 | 0 |
| `DAYNAME`, `MONTHNAME` | Monday, January | Monday, January | | Mon, Jan |
| `REGEXP_LIKE` | of a part | of a part | | of the whole text |

The policy declares one (`[data] dialect`), PostgreSQL's unless it says otherwise; a question or a connection may name
another. An answer that depends on it says so.
"""

from __future__ import annotations

from enum import StrEnum


class QuestionDialect(StrEnum):
    """The dialect that a question is read in."""

    POSTGRES = "postgres"
    DUCKDB = "duckdb"
    BIGQUERY = "bigquery"
    SNOWFLAKE = "snowflake"
    MYSQL = "mysql"


STRICT_DIALECTS = frozenset({QuestionDialect.BIGQUERY, QuestionDialect.SNOWFLAKE, QuestionDialect.MYSQL})
"""Those in which LEAST, GREATEST and CONCAT are NULL where an argument is; in others they leave NULLs out."""

_TO_TEN = "LOG(x) is to the base 10, as in PostgreSQL; LN(x) is the natural logarithm."
_FROM_ZERO = "DAYOFWEEK counts from Sunday, which is 0; EXTRACT(isodow FROM d) from Monday, which is 1."
_ANYWHERE = "REGEXP_LIKE looks for a match anywhere in the text, as in PostgreSQL."
DIALECT_NOTES: dict[str, dict[QuestionDialect, str]] = {
    "log": {
        QuestionDialect.POSTGRES: _TO_TEN,
        QuestionDialect.DUCKDB: _TO_TEN,
        QuestionDialect.BIGQUERY: "LOG(x) is the natural logarithm, as in BigQuery.",
        QuestionDialect.MYSQL: "LOG(x) is the natural logarithm, as in MySQL.",
    },
    "dayofweek": {
        QuestionDialect.POSTGRES: _FROM_ZERO,
        QuestionDialect.DUCKDB: _FROM_ZERO,
        QuestionDialect.BIGQUERY: "DAYOFWEEK counts from Sunday, which is 1, as in BigQuery.",
        QuestionDialect.SNOWFLAKE: _FROM_ZERO,
        QuestionDialect.MYSQL: "DAYOFWEEK counts from Sunday, which is 1, as in MySQL.",
    },
    "regexp_like": {
        QuestionDialect.POSTGRES: _ANYWHERE,
        QuestionDialect.SNOWFLAKE: "REGEXP_LIKE is of the whole text, as in Snowflake.",
    },
}
"""What an answer says where it depends on the dialect."""
