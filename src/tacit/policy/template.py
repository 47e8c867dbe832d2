"""A policy to start from, made from the names and types of columns and never from what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.policy.locate import quoted, toml_key
from tacit.policy.model import Type

_TOP = """\
# Who is protected, what may be asked about, and how much may be told. Everything in this file is public.
# {hint}
"""

_DATA = """
# Where the data lies. Raise epoch when the data has changed.
[data]
engine = "duckdb"
{source}
epoch = 1

# Where spending is recorded, durably: a file, or a database that several hosts share. The key signs receipts. The
# witness notices an older copy of the ledger, best from another disk. What is not named lies beside this file.
[ledger]
# store = "clinic.ledger"    # or "postgresql://host/database"
# key = "clinic.key"
# witness = "/elsewhere/clinic.witness"

# What is promised over all analysts together. An epsilon below 0.1 is high privacy, 0.1 to 1 is good,
# above 5 is large, above 10 is close to meaningless. Delta is the chance that the promise fails altogether; a small
# one, far below one over the number of people (1e-9, say), admits many more small questions.
[privacy]
neighbors = "add-remove"    # or "replace"
epsilon = 1.0
delta = 0
"""

_SOURCE = "source = {}"
_NO_SOURCE = '# source = "clinic.duckdb"    # a file or a folder; without it, data frames are given at open'

_TABLE = """
# The unit is whom the promise protects: the column that says whose row it is, or "row" where each row is one person.
[tables.{name}]
unit = "?"
# For a unit that is a column, say how much of one unit counts. What exceeds it is left out; more means more noise.
# max_groups = 4            # groups of one answer that one unit may touch
# max_rows_per_group = 3    # rows of one unit in each group

# The columns that analysts may name; delete the others. Numbers are read as if within lower and upper, which come
# from what a column means and never from the data. A number without them can be counted and compared only.
[tables.{name}.columns]
"""

_ANALYSTS = """
# Who may ask, each up to a cap of their own; the overall cap holds as well, and never refreshes.
[analysts.ada]
epsilon = 0.5
# delta = 1e-9
# refresh = "monthly"       # epsilon 0.5 in each calendar month, so 6 over a year
"""

_EXAMPLE = """
# The unit is whom the promise protects: the column that says whose row it is, or "row" where each row is one person.
[tables.visits]
unit = "patient_id"
max_groups = 4              # groups of one answer that one patient may touch
max_rows_per_group = 3      # rows of one patient in each group

# The columns that analysts may name. Numbers are read as if within lower and upper, which come from what a column
# means and never from the data. The keys of GROUP BY are public: all values listed are shown, and no others.
[tables.visits.columns]
age     = { type = "int", lower = 0, upper = 110 }
cost    = { type = "float", lower = 0, upper = 5000, step = 0.01 }
ward    = { type = "text", values = ["A", "B", "C"] }
smoker  = { type = "bool" }
"""

_COLUMNS = {
    Type.INT: '{ type = "int", lower = "?", upper = "?" }',
    Type.FLOAT: '{ type = "float", lower = "?", upper = "?" }    # step = 0.01 chooses its grid',
    Type.TEXT: '{ type = "text" }    # values = ["A", "B"] makes it a GROUP BY key',
    Type.BOOL: '{ type = "bool" }',
    Type.DATE: '{ type = "date" }    # values = [2024-01-01, 2024-01-02] makes it a GROUP BY key',
}


def template(source: str | None, tables: Mapping[str, Sequence[tuple[str, Type]]]) -> str:
    """The text of a policy for these tables, with a "?" wherever the owner must decide.

    `load` refuses it, naming the line, until every "?" is filled in. Without tables it is a complete example.
    """
    data = _DATA.format(source=_NO_SOURCE if source is None else _SOURCE.format(quoted(source)))
    if tables:
        hint = 'Fill in each "?", then see what it promises: tacit check'
        body = "".join(_table(name, columns) for name, columns in tables.items())
    else:
        hint = "An example: put your own tables and columns, then see what it promises: tacit check"
        body = _EXAMPLE
    return _TOP.format(hint=hint) + data + body + _ANALYSTS


def _table(name: str, columns: Sequence[tuple[str, Type]]) -> str:
    keys = [toml_key(column) for column, _ in columns]
    width = max(map(len, keys), default=0)
    lines = [f"{key:<{width}} = {_COLUMNS[kind]}\n" for key, (_, kind) in zip(keys, columns, strict=True)]
    return _TABLE.format(name=toml_key(name)) + "".join(lines)
