"""What an analyst may name: the keys `tables` and `columns` of [analysts.NAME].

`tables` are the tables that may be named; without it, those of `columns`. Of a table that `columns` names, only the
columns that it names may be named; of any other, all. Without both keys there is no restriction.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from tacit.policy.check import MAX_NAME, describe_value
from tacit.policy.model import Table, TableAccess
from tacit.policy.section import Section

KEYS = ("tables", "columns")


def load_access(at: Section, tables: Sequence[Table]) -> TableAccess | None:
    """The restriction of an analyst, or None where there is none. `tables` are those that the policy declares."""
    if not any(key in at.entries for key in KEYS):
        return None
    shown: dict[str, dict[str, None] | None] = {}
    if "tables" in at.entries:
        shown = dict.fromkeys(_find_table(at, place, name, tables) for place, name in _read_names(at, "tables"))
    if "columns" in at.entries:
        for place, name in _read_names(at, "columns"):
            table, column = _find_column(at, place, name, tables)
            if "tables" in at.entries and table not in shown:
                what = f"{describe_value(table)} is not among the tables of this analyst"
                at.fail(what, "columns", place, fix=f"name {describe_value(table)} in tables too, or leave this out")
            named = shown.get(table)
            if named is None:
                named = shown[table] = {}
            named[column] = None
    order = [table.name for table in tables if table.name in shown]
    return TableAccess(tuple((name, _sort_columns(name, shown[name], tables)) for name in order))


def _sort_columns(name: str, named: dict[str, None] | None, tables: Sequence[Table]) -> tuple[str, ...] | None:
    """The columns in the order of the table, so that equal restrictions are equal values."""
    table = next(table for table in tables if table.name == name)
    return None if named is None else tuple(column.name for column in table.columns if column.name in named)


def _read_names(at: Section, key: str) -> list[tuple[int, str]]:
    """The names of a list, each with its place."""
    example = '["visits"]' if key == "tables" else '["visits.age", "visits.cost"]'
    given = at.entries[key]
    fix = f"list them, such as {key} = {example}; leave it out where all may be named"
    if not isinstance(given, list | tuple) or not given:
        what = "names none" if isinstance(given, list | tuple) else f"must be a list, not {describe_value(given)}"
        at.fail(what, key, fix=fix)
    for place, name in enumerate(given):
        if not isinstance(name, str):
            at.fail(f"must be text, not {describe_value(name)}", key, place, fix=fix)
    return list(enumerate(given))


def _find_table(at: Section, place: int, name: str, tables: Sequence[Table]) -> str:
    """The table that is named, in any case, as the policy spells it."""
    found = next((table.name for table in tables if table.name.lower() == name.lower()), None)
    if found is None:
        fix = _nearest(name, [table.name for table in tables])
        at.fail(f"there is no table {describe_value(name)}", "tables", place, fix=fix)
    return found


def _find_column(at: Section, place: int, name: str, tables: Sequence[Table]) -> tuple[str, str]:
    """The table and the column of a name such as visits.age, in any case."""
    known = [(table.name, column.name) for table in tables for column in table.columns]
    pairs = [pair for pair in known if ".".join(pair).lower() == name.lower()]
    if len(pairs) > 1:
        what = f"{describe_value(name)} names several columns, because names have dots in them"
        at.fail(what, "columns", place, fix="name their tables in tables, and none of their columns")
    if pairs:
        return pairs[0]
    if any(table.name.lower() == name.lower() for table in tables):
        what = f"{describe_value(name)} is a table"
        at.fail(what, "columns", place, fix=f'name its columns, such as "{_first_column(name, tables)}"')
    at.fail(
        f"there is no column {describe_value(name)}",
        "columns",
        place,
        fix=_nearest(name, [".".join(pair) for pair in known]),
    )


def _first_column(name: str, tables: Sequence[Table]) -> str:
    table = next(table for table in tables if table.name.lower() == name.lower())
    return f"{table.name}.{table.columns[0].name}"


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name[:MAX_NAME], known, 1)
    return f"did you mean {near[0]}?" if near else f"name one of {', '.join(known[:20])}"
