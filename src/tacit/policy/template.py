"""A policy to start from, made from the names and types of columns, and from what the owner decides.

Nothing that is in the rows stands in it: a policy is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.arithmetic import format_decimal
from tacit.engines.left_out import LeftOut
from tacit.engines.source_columns import SourceColumn
from tacit.policy.check import DELTA_RULE, find_name_problem
from tacit.policy.locate import format_key, quote_string
from tacit.policy.model import ROW_UNIT, Type, UnitForeignKey, is_database_url
from tacit.policy.propose import (
    Tables,
    UnitProposal,
    find_what_names_somebody,
    is_identifier_name,
    propose_person,
    propose_units,
)
from tacit.policy.tables import DuplicateNames
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
# dialect = "postgres"       # whose SQL it is where dialects differ; or "duckdb", "bigquery", "snowflake", "mysql"

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
epsilon = {epsilon}
delta = 1e-6                # or 0; one question may use a thousandth of it
"""

_SOURCE = "source = {}"
_NO_SOURCE = '# source = "clinic.duckdb"    # a file or a folder; without it, data frames are given at open'

_TABLE = """
# The unit is whom the promise protects: the column that says whose row it is, or "row" where each row is one person.
# A table without such a column may reach it: unit = {{ through = "order_id", to = "orders.id" }}. Where the unit means
# the same people in several tables, give these the same people = "patients"; they can then be joined on it. A table
# about nobody has public = true in place of a unit, and unique = true at the columns that others are joined on.
[tables.{name}]
{unit}
# For a unit that is a column: how much one unit may add to an answer is chosen for each question, privately. A maximum
# is max_rows = {{ auto_up_to = 500 }}. Leave it out where unit = "row" or public = true.
{commented}max_rows = "auto"

# The columns that analysts may name; delete the others. Types are those of the source; a CSV file has none, so they are
# guessed from its values. What names or describes somebody is left out: the unit needs no listing to be counted,
# grouped by in a subquery or joined on, and listed it could be named in WHERE, to ask about one alone.
# Numbers are read as if within lower and upper, where they have these: they come from what a column means, or from
# tacit profile, and never from the data. Where one is never missing, nullable = false makes averages sharper; a missing
# one is then read as lower.
[tables.{name}.columns]
"""

_NO_WAY = """
# The table {name} is left out: no column of it leads to {person}. About nobody, it would have public = true; if it is
# about people, give it a unit.
"""

_NO_COLUMNS = """
# The table {name} is left out: no column of it is listed, and no other table is reached over it.
"""

_ANALYSTS = """
# Who may ask, each up to a cap of their own; the overall cap holds as well, and never refreshes.
[analysts.{name}]
epsilon = {epsilon}
delta = 1e-7                # at most the overall one; without it, their questions use none
# refresh = "monthly"       # epsilon {epsilon} in each calendar month, so {year} over a year
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
    Type.INT: '{ type = "int" }    # lower = 0, upper = 100 make sums and averages sharper, and it a key',
    Type.FLOAT: '{ type = "float" }    # lower = 0, upper = 100 make sums and averages sharper; step = 0.01 a grid',
    Type.TEXT: '{ type = "text" }    # values = ["A", "B"] makes these its public keys, other = "C" takes all others',
    Type.BOOL: '{ type = "bool" }',
    Type.DATE: '{ type = "date" }    # lower = 2025-01-01, upper = 2025-12-31 allow MIN, MAX, MEDIAN and public keys',
    Type.TIMESTAMP: '{ type = "timestamp" }    # zone = "Europe/Zurich", lower = 2025-01-01T00:00:00, upper = ...',
}


@dataclass(frozen=True)
class StarterChoices:
    """What the owner decides: the person's column or "row", the budget, who asks, and what is listed.

    `listed` are columns that would be left out, and `left_out` others that are. `bounds` are the texts of lower and
    upper, and `keys` the public keys of texts, by table and column. `without` are tables that are left out, and `links`
    keys that are listed because other tables are reached over them: see `leave_out_empty_tables`.
    """

    person: str | None = None
    epsilon: Fraction = Fraction(1)
    analyst: str = "ada"
    listed: frozenset[tuple[str, str]] = frozenset()
    bounds: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    keys: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    left_out: frozenset[tuple[str, str]] = frozenset()
    without: frozenset[str] = frozenset()
    links: frozenset[tuple[str, str]] = frozenset()


def render_template(source: str | None, tables: Tables, choices: StarterChoices | None = None) -> str:
    """The text of a policy for these tables, with a "?" as the unit where the owner has not decided.

    `load` refuses it, naming the line, until every "?" is filled in. Without tables it is a complete example. A column
    of a type that is not read is a comment with the reason, and so is a table that no column connects with the person.
    """
    choices = choices or StarterChoices()
    engine = "postgres" if source is not None and is_database_url(source) else "duckdb"
    named = _NO_SOURCE if source is None else _SOURCE.format(quote_string(source))
    data = _DATA.format(engine=engine, source=named, rule=DELTA_RULE, epsilon=format_decimal(choices.epsilon))
    if tables:
        what = "see what it promises: tacit check"
        hint = f'Fill in each "?", then {what}' if choices.person is None else what.capitalize()
        body = _write_tables(tables, choices)
    else:
        hint = "An example: put your own tables and columns, then see what it promises: tacit check"
        body = _EXAMPLE
    half = choices.epsilon / 2
    analysts = _ANALYSTS.format(
        name=format_key(choices.analyst), epsilon=format_decimal(half), year=format_decimal(12 * half)
    )
    return _TOP.format(hint=hint) + data + body + analysts


def _write_tables(tables: Tables, choices: StarterChoices) -> str:
    person = propose_person(tables) if choices.person is None else choices.person
    units = {} if person is None or person == ROW_UNIT else propose_units(tables, person)
    written = []
    for name, columns in tables.items():
        if choices.person is not None and choices.person != ROW_UNIT and name not in units:
            written.append(_NO_WAY.format(name=one_line(name), person=one_line(choices.person)))
        elif name in choices.without:
            written.append(_NO_COLUMNS.format(name=one_line(name)))
        else:
            written.append(_write_table(name, columns, units.get(name), choices))
    return "".join(written)


def leave_out_empty_tables(tables: Tables, choices: StarterChoices) -> StarterChoices:
    """The choices, without the tables of which analysts may name no column: a table of a policy has at least one.

    A table over which another that has columns is reached stays, and lists the key that leads to it and nothing else.
    Where no table has columns all stay, and the policy cannot be loaded: there is nothing to ask about.
    """
    with_columns = {name for name, columns in tables.items() if _has_columns(name, columns, choices)}
    links = _find_link_keys(tables, choices)
    without = set(tables) - with_columns - {name for name, _ in links} if with_columns else set()
    return replace(choices, without=frozenset(without), links=links)


def _has_columns(table: str, columns: Sequence[SourceColumn], choices: StarterChoices) -> bool:
    names = DuplicateNames()
    problems = [find_name_problem(column.name) or names(column.name) for column in columns]
    return any(
        not problem and isinstance(column.kind, Type) and _is_named(table, column, choices)
        for column, problem in zip(columns, problems, strict=True)
    )


def _find_link_keys(tables: Tables, choices: StarterChoices) -> frozenset[tuple[str, str]]:
    """The keys of tables without columns over which other tables are reached.

    A table of a policy has at least one column, so these have the key that leads to them.
    """
    if choices.person is None or choices.person == ROW_UNIT:
        return frozenset()
    units = propose_units(tables, choices.person)
    found = set()
    for name in units:
        if _has_columns(name, tables[name], choices):
            way = units[name].unit
            while isinstance(way, UnitForeignKey):
                if not _has_columns(way.table, tables[way.table], choices):
                    found.add((way.table, way.key))
                way = units[way.table].unit
    return frozenset(found)


def _write_table(
    name: str, columns: Sequence[SourceColumn], proposal: UnitProposal | None, choices: StarterChoices
) -> str:
    names = DuplicateNames()
    problems = [find_name_problem(column.name) or names(column.name) for column in columns]
    keys = [format_key(column.name) for column in columns]
    width = max((len(key) for key, problem in zip(keys, problems, strict=True) if not problem), default=0)
    # Such a name is not written: it may hold rows of a CSV file, where a quote of its header is never closed.
    lines = [
        f"# column {number} is left out, for its name: {problem}\n"
        if problem
        else f"{_write_column(name, column, f'{key:<{width}}', choices)}\n"
        for number, (key, column, problem) in enumerate(zip(keys, columns, problems, strict=True), 1)
    ]
    # without such a column the unit is likely each row, or nobody, and max_rows would be an error
    commented = "# " if proposal is None else ""
    unit = _write_unit(proposal, choices.person)
    return _TABLE.format(name=format_key(name), unit=unit, commented=commented) + "".join(lines)


def _write_unit(proposal: UnitProposal | None, decided: str | None) -> str:
    """The line of the unit; where nothing is decided, what it may be is a comment."""
    if proposal is None:
        return f"unit = {quote_string(ROW_UNIT if decided == ROW_UNIT else '?')}"
    way = proposal.unit
    if isinstance(way, UnitForeignKey):
        through, to = quote_string(way.column), quote_string(f"{way.table}.{way.key}")
        unit = f"{{ through = {through}, to = {to} }}"
    else:
        unit = quote_string(way)
    if decided is None:
        people = "" if proposal.people is None else f", with people = {quote_string(proposal.people)}"
        return f'unit = "?"    # {unit}, perhaps{people}'
    return f"unit = {unit}" + ("" if proposal.people is None else f"\npeople = {quote_string(proposal.people)}")


def _write_column(table: str, column: SourceColumn, key: str, choices: StarterChoices) -> str:
    if isinstance(column.kind, LeftOut):
        return f"# {key} is left out, {one_line(str(column.kind))}"
    declared = _COLUMNS[column.kind]
    if not _is_named(table, column, choices):
        # bounds and keys that may have been given for it are not published with a column that is not
        declared = declared.partition("    #")[0]
        if (table, column.name) in choices.left_out:
            return f"# {key} = {declared}    # left out"
        reason = explain_left_out(column)
        if explain_left_out(column._replace(distinct=None, length=None)) != reason:
            reason = "it may describe somebody"  # what its values are like is for the owner alone
        return f"# {key} = {declared}    # left out: {reason}"
    if (bounds := choices.bounds.get((table, column.name))) is not None:
        declared = f'{{ type = "{column.kind}", lower = {bounds[0]}, upper = {bounds[1]} }}'
    elif keys := choices.keys.get((table, column.name)):
        declared = f'{{ type = "{column.kind}", values = [{", ".join(map(quote_string, keys))}] }}'
    if (table, column.name) in choices.links:
        return f"{key} = {declared.partition('    #')[0]}    # listed because other tables are reached over it"
    return f"{key} = {declared}"


def _is_named(table: str, column: SourceColumn, choices: StarterChoices) -> bool:
    """Whether analysts may name a column that can be declared."""
    here = (table, column.name)
    if here in choices.links:
        return True
    return here not in choices.left_out and (here in choices.listed or explain_left_out(column) is None)


def explain_left_out(column: SourceColumn) -> str | None:
    """Why a column is left out unless its owner lists it: it is a key, or names or describes somebody."""
    return "a key" if is_identifier_name(column.name) else find_what_names_somebody(column)
