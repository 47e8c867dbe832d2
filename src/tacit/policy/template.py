"""A policy to start from, made from the names and types of columns and never from what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.engines.left_out import LeftOut
from tacit.policy.check import DELTA_RULE
from tacit.policy.locate import format_key, quote_string
from tacit.policy.model import Type, is_database_url
from tacit.terminal import one_line

_TOP = """\
# Who is protected, what may be asked about, and how much may be told. Everything in this file is public.
# {hint}
"""

_DATA = """
# Where the data lies. Raise epoch when the data has changed.
[data]
engine = "{engine}"
{source}
epoch = 1
# today = 2025-12-31         # what CURRENT_DATE stands for in questions, which are refused without it
# dialect = "postgres"       # whose SQL it is where dialects differ, as in 7 / 2; or "duckdb", "bigquery", "snowflake"

# Where spending is recorded, durably: a file, or a database that several hosts share. The key signs receipts. The
# witness notices an older copy of the ledger, best from another disk. What is not named lies beside this file.
[ledger]
# store = "clinic.ledger"    # or "postgresql://host/database"
# key = "clinic.key"
# witness = "/elsewhere/clinic.witness"

# What is promised over all analysts together. An epsilon below 0.1 is high privacy, 0.1 to 1 is good,
# above 5 is large, above 10 is close to meaningless. Delta is the chance that the promise fails altogether. Keep it
# {rule}. A small one
# admits many more small questions, and is needed to show GROUP BY keys that are not declared: then only those that
# enough people share.
[privacy]
neighbors = "add-remove"    # or "replace"
epsilon = 1.0
delta = 0                   # or 1e-6; one question may use a thousandth of it
"""

_SOURCE = "source = {}"
_NO_SOURCE = '# source = "clinic.duckdb"    # a file or a folder; without it, data frames are given at open'

_TABLE = """
# The unit is whom the promise protects: the column that says whose row it is, or "row" where each row is one person.
# A table without such a column may reach it: unit = {{ through = "order_id", to = "orders.id" }}. Where the unit means
# the same people in several tables, give these the same people = "patients"; they can then be joined on it. A table
# about nobody has public = true in place of a unit, and unique = true at the columns that others are joined on.
[tables.{name}]
unit = "?"{hint}
# For a unit that is a column: how much one unit may add to an answer is chosen for each question, privately. A maximum
# is max_rows = {{ auto_up_to = 500 }}. Leave it out where unit = "row" or public = true.
{commented}max_rows = "auto"

# The columns that analysts may name; delete the others. Types are those of the source; a CSV file has none, so they are
# guessed from its values. What looks like the name of someone is left out: the unit needs no listing to be counted,
# grouped by in a subquery or joined on, and listed it could be named in WHERE, to ask about one alone.
# Numbers are read as if within lower and upper, which come from what a column means and never from the data. A number
# without them can be counted and compared only. Where one is never missing, nullable = false makes averages sharper; a
# missing one is then read as lower.
[tables.{name}.columns]
"""

_ANALYSTS = """
# Who may ask, each up to a cap of their own; the overall cap holds as well, and never refreshes.
[analysts.ada]
epsilon = 0.5
# delta = 1e-7              # at most the overall one; without it, their questions use none
# refresh = "monthly"       # epsilon 0.5 in each calendar month, so 6 over a year
"""

_EXAMPLE = """
# The unit is whom the promise protects: the column that says whose row it is, or "row" where each row is one person.
[tables.visits]
unit = "patient_id"
max_rows = "auto"           # how much one patient may add is chosen for each question; or { auto_up_to = 500 }

# The columns that analysts may name. Numbers are read as if within lower and upper, which come from what a column
# means and never from the data. Keys that are listed are public: all of them are shown, and a value that is not listed
# is in no group, or in that of `other`. Keys that are not listed need a delta, and are shown where enough people share
# one.
[tables.visits.columns]
age     = { type = "int", lower = 0, upper = 110 }
cost    = { type = "float", lower = 0, upper = 5000, step = 0.01 }
nights  = { type = "int", lower = 0, upper = 60, nullable = false }    # a missing one is read as 0
ward    = { type = "text", values = ["A", "B", "C"], other = "elsewhere" }
smoker  = { type = "bool" }
visited = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }

# A table about nobody: analysts may join it on a column of which no two rows share a value.
[tables.wards]
public = true

# Its columns, as above.
[tables.wards.columns]
ward = { type = "text", unique = true }
beds = { type = "int", lower = 0, upper = 100 }
"""

_COLUMNS = {
    Type.INT: '{ type = "int", lower = "?", upper = "?" }',
    Type.FLOAT: '{ type = "float", lower = "?", upper = "?" }    # step = 0.01 chooses its grid',
    Type.TEXT: '{ type = "text" }    # values = ["A", "B"] makes these its public keys, other = "C" takes all others',
    Type.BOOL: '{ type = "bool" }',
    Type.DATE: '{ type = "date" }    # lower = 2025-01-01, upper = 2025-12-31 allow MIN, MAX, MEDIAN and public keys',
    Type.TIMESTAMP: '{ type = "timestamp" }    # zone = "Europe/Zurich", lower = 2025-01-01T00:00:00, upper = ...',
}


ColumnTypes = Sequence[tuple[str, Type | LeftOut]]


def render_template(source: str | None, tables: Mapping[str, ColumnTypes]) -> str:
    """The text of a policy for these tables, with a "?" wherever the owner must decide.

    `load` refuses it, naming the line, until every "?" is filled in. Without tables it is a complete example. A column
    of a type that is not read is a comment with the reason.
    """
    engine = "postgres" if source is not None and is_database_url(source) else "duckdb"
    named = _NO_SOURCE if source is None else _SOURCE.format(quote_string(source))
    data = _DATA.format(engine=engine, source=named, rule=DELTA_RULE)
    if tables:
        hint = 'Fill in each "?", then see what it promises: tacit check'
        body = "".join(_table(name, columns) for name, columns in tables.items())
    else:
        hint = "An example: put your own tables and columns, then see what it promises: tacit check"
        body = _EXAMPLE
    return _TOP.format(hint=hint) + data + body + _ANALYSTS


def _table(name: str, columns: ColumnTypes) -> str:
    keys = [format_key(column) for column, _ in columns]
    width = max(map(len, keys), default=0)
    lines = [
        f"# {key:<{width}} is left out, {one_line(str(kind))}\n"
        if isinstance(kind, LeftOut)
        else f"{'# ' * is_identifier_name(column)}{key:<{width}} = {_COLUMNS[kind]}\n"
        for key, (column, kind) in zip(keys, columns, strict=True)
    ]
    unit = next((column for column, _ in columns if is_identifier_name(column)), None)
    hint = "" if unit is None else f"    # {quote_string(unit)}, perhaps"
    # without such a column the unit is likely each row, or nobody, and max_rows would be an error
    commented = "# " if unit is None else ""
    return _TABLE.format(name=format_key(name), hint=hint, commented=commented) + "".join(lines)


def is_identifier_name(column: str) -> bool:
    """Whether a column is called like one that says whose row it is.

    >>> [is_identifier_name(name) for name in ("id", "patient_id", "CustomerId", "paid", "age")]
    [True, True, True, False, False]
    """
    return column.lower() == "id" or column.lower().endswith(("_id", "-id", " id")) or column.endswith(("Id", "ID"))
