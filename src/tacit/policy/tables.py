"""The tables of a policy: whose rows they hold, and what may be named of them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tacit.arithmetic import format_decimal
from tacit.errors import PolicyError
from tacit.policy.check import INT64, KEY_DESCRIPTIONS, MAX_NAME, describe_value, parse_key
from tacit.policy.contribution_caps import load_caps
from tacit.policy.model import ROW_UNIT, Column, Key, Table, Type, UnitForeignKey
from tacit.policy.section import Section
from tacit.query.timestamps import parse_iso_timestamp, to_datetime, to_microseconds
from tacit.query.types import ORDERED_TYPES, TIME_TYPES

UNFILLED = "?"
MAX_VALUES = 10_000
MAX_UNIQUE = 16  # columns of a key
MAX_FLOAT = 10**15
UTC = "UTC"
MAX_STEPS = 2**52  # so that every point of a float's grid, and its number, is exact in double precision


def load_tables(at: Section) -> tuple[Table, ...]:
    """All tables. One that reaches its unit through another is checked against it."""
    sections = at.sections("[tables.{}]", "visits", DuplicateNames())
    read = at.read_each(sections, _read_table)
    if at.mistakes:  # what follows would rest on tables that were not read
        return ()
    found = {table.name: (section, table) for section, table in read}
    if all(table.public for _, table in found.values()):
        at.fail("all tables are public, so there is nothing to protect", fix="declare a private table, with its unit")
    return tuple(
        _follow_unit(section, table, {name: t for name, (_, t) in found.items()}) for section, table in found.values()
    )


def _follow_unit(at: Section, table: Table, known: dict[str, Table]) -> Table:
    """A table with the people of the one that it reaches its unit through."""
    by_name = {name.lower(): found for name, found in known.items()}
    above, seen = table, {table.name}
    while isinstance(above.unit, UnitForeignKey):
        parent = by_name.get(above.unit.table.lower())
        if parent is None or parent.name in seen:
            what = (
                f"there is no table {above.unit.table} to find the unit in"
                if parent is None
                else "refers back to itself"
            )
            at.fail(
                what,
                "unit",
                fix='name a private table and its unique column: { through = "order_id", to = "orders.id" }',
            )
        if parent.public or parent.unit == ROW_UNIT:
            at.fail(f"{parent.name} has no unit to be reached", "unit", fix=f"give {parent.name} a column as its unit")
        seen.add(parent.name)
        above = parent
    if isinstance(table.unit, UnitForeignKey):
        there = by_name[table.unit.table.lower()]
        way = replace(table.unit, table=there.name, key=_spell(table.unit.key, there.columns))
        table = replace(table, unit=way)
    return replace(table, people=above.people)


def _read_table(at: Section) -> tuple[Section, Table]:
    """A table with its section. Where all mistakes are asked for, its columns are read even if it has one itself."""
    try:
        return at, _table(at)
    except PolicyError:
        if at.mistakes is not None:
            at.read_each([at], _columns)
        raise


def _table(at: Section) -> Table:
    at.only("unit", "people", "max_groups", "max_rows_per_group", "max_rows", "columns", "public", "unique")
    name = str(at.path[-1])
    public = at.entries.get("public", False)
    if not isinstance(public, bool):
        at.fail(f"must be true or false, not {describe_value(public)}", "public", fix="write public = true")
    if public:
        for key in ("unit", "people", "max_groups", "max_rows_per_group", "max_rows"):
            if key in at.entries:
                at.fail("a public table has no unit: its rows are not protected", key, fix="leave it out")
        columns = _columns(at)
        return Table(name, None, columns, unique=_unique(at, columns))
    if "unique" in at.entries:
        at.fail(
            "stands in public tables only", "unique", fix="leave it out: it is for tables that others are joined to"
        )
    unit = _unit(at)
    caps = load_caps(at, unit)
    people = at.text("people", "name the people, as in other tables that hold them") if "people" in at.entries else name
    if "people" in at.entries and not isinstance(unit, str):
        at.fail("are those of the table that the unit is reached through", "people", fix="leave it out")
    columns = _columns(at)
    unit = _spell(unit, columns) if isinstance(unit, str) else replace(unit, column=_spell(unit.column, columns))
    return Table(name, unit, columns, people=people, **caps._asdict())


def _unique(at: Section, columns: tuple[Column, ...]) -> tuple[tuple[str, ...], ...]:
    """The lists of columns that no two rows of a public table share: one list of names, or several."""
    if "unique" not in at.entries:
        return ()
    fix = 'name the columns that no two rows share together: unique = ["product", "year"]'
    given = at.entries["unique"]
    lists = given if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple) else [given]
    known = {column.name.lower(): column for column in columns}
    found = []
    for names in lists:
        if not isinstance(names, list | tuple) or not 1 <= len(names) <= MAX_UNIQUE:
            at.fail(f"must be a list of 1 to {MAX_UNIQUE} columns", "unique", fix=fix)
        for name in names:
            column = known.get(name.lower()) if isinstance(name, str) else None
            if column is None:
                at.fail(f"{describe_value(name)} is not a column of this table", "unique", fix=fix)
            if column.type is Type.FLOAT:
                at.fail(f"{column.name} is a float, and tables are not joined on floats", "unique", fix=fix)
        found.append(tuple(dict.fromkeys(known[name.lower()].name for name in names)))
    return tuple(found)


def _spell(name: str, columns: tuple[Column, ...]) -> str:
    """A column's name as it is declared: SQL ignores case, and one column must not be read as two."""
    return next((c.name for c in columns if c.name.lower() == name.lower() and name != ROW_UNIT), name)


def _unit(at: Section) -> str | UnitForeignKey:
    fix = f'name the column that says whose row it is, or write unit = "{ROW_UNIT}" where each row is one person'
    if "unit" in at.entries and not isinstance(at.entries["unit"], str):
        way = at.section("unit", fix=fix)
        way.only("through", "to")
        column = way.text("through", "name the column that refers to the other table")
        table, _, key = way.text("to", "name the other table and its unique column: orders.id").partition(".")
        if not table or not key:
            way.fail("must be a table and its unique column", "to", fix='to = "orders.id"')
        return UnitForeignKey(column, table, key)
    unit = at.text("unit", fix)
    if unit == UNFILLED:
        at.fail("fill in the unit of protection: it is never read from the data", "unit", fix=fix)
    if len(unit) > MAX_NAME:
        at.fail(f"a name has at most {MAX_NAME} characters", "unit", fix=fix)
    return unit


def _columns(at: Section) -> tuple[Column, ...]:
    columns = at.section("columns").sections('{} = {{ type = "int" }}', "age", DuplicateNames())
    is_public = at.entries.get("public") is True
    return tuple(at.read_each(columns, lambda column: _column(column, public=is_public)))


def _column(at: Section, *, public: bool) -> Column:
    at.only("type", "lower", "upper", "step", "values", "other", "unique", "nullable", "zone")
    kind = Type(at.choice("type", *Type))
    zone = _zone(at, kind)
    lower, upper = _bounds(at, kind)
    values = _values(at, kind, lower, upper)
    unique = at.entries.get("unique", False)
    if not isinstance(unique, bool) or (unique and not public):
        fix = "leave it out: it is for the columns of public tables that others are joined on"
        at.fail("must be true or false, and stands in public tables only", "unique", fix=fix)
    other = _other(at, kind, values)
    nullable = at.entries.get("nullable", True)
    if not isinstance(nullable, bool) or (not nullable and (lower is None or kind in TIME_TYPES)):
        fix = "leave it out; nullable = false is for numbers with bounds, and reads a missing one as lower"
        at.fail("must be true or false, and false needs a number with bounds", "nullable", fix=fix)
    step = _step(at, kind, lower, upper)
    return Column(str(at.path[-1]), kind, lower, upper, step, values, other, unique, nullable, zone)


def _other(at: Section, kind: Type, values: tuple[Key, ...] | None) -> Key | None:
    """The key that stands for all values that are not listed."""
    if "other" not in at.entries:
        return None
    if values is None or kind not in (Type.TEXT, Type.INT):
        at.fail("stands for values that are not listed, so it needs a list", "other", fix="give values too")
    key = parse_key(at.entries["other"], kind)
    if key is None or key in values:
        at.fail(f"must be {KEY_DESCRIPTIONS[kind]}, and not one of the values", "other", fix='other = "Other", say')
    return key


def _bounds(at: Section, kind: Type) -> tuple[Fraction | None, Fraction | None]:
    given = [name for name in ("lower", "upper") if name in at.entries]
    if not given:
        return None, None
    if kind not in ORDERED_TYPES:
        fix = "leave them out; bounds are for int, float, date and timestamp"
        at.fail(f"{kind} columns have no bounds", given[0], fix=fix)
    for name in given:
        if isinstance(at.entries[name], str) and at.entries[name] == UNFILLED:
            fix = (
                "choose them from what the column means, or by tacit profile; or leave both out: sums and averages "
                "then choose them for each question"
            )
            at.fail("fill in lower and upper: bounds are never read from the data", name, fix=fix)
    if kind is Type.DATE:
        lower, upper = _day(at, "lower"), _day(at, "upper")
    elif kind is Type.TIMESTAMP:
        lower, upper = _moment(at, "lower"), _moment(at, "upper")
    elif kind is Type.INT:
        rule = "that is whole and fits 64 bits"
        lower, upper = (at.number(name, rule, _is_whole) for name in ("lower", "upper"))
    else:
        rule = "from -1e15 to 1e15"
        lower, upper = (at.number(name, rule, lambda x: abs(x) <= MAX_FLOAT) for name in ("lower", "upper"))
    if lower > upper:
        at.fail(f"must be at least lower, which is {_bound_text(kind, lower)}", "upper", fix="swap the two")
    return lower, upper


def _bound_text(kind: Type, bound: Fraction) -> str:
    """A bound as its owner wrote it: that of a date is a day, that of a timestamp a moment."""
    if kind is Type.TIMESTAMP:
        return to_datetime(int(bound)).isoformat()
    return datetime.date.fromordinal(int(bound)).isoformat() if kind is Type.DATE else format_decimal(bound)


def _is_whole(number: Fraction) -> bool:
    return number.denominator == 1 and number.numerator in INT64


def _day(at: Section, name: str) -> Fraction:
    """A date, as the number of its day."""
    fix = f'write {name} = 2025-12-31, or "2025-12-31"'
    day = parse_key(at.need(name, fix), Type.DATE)
    if not isinstance(day, datetime.date):
        at.fail(f"must be {KEY_DESCRIPTIONS[Type.DATE]}, not {describe_value(at.entries[name])}", name, fix=fix)
    return Fraction(day.toordinal())


def _moment(at: Section, name: str) -> Fraction:
    """A timestamp in the column's own zone. A day alone is its first moment, so it is no upper bound."""
    example = "2025-01-01T00:00:00" if name == "lower" else "2025-12-31T23:59:59"
    fix = f'write {name} = {example}, or "{example}": the time in the column\'s zone, without an offset'
    given = at.need(name, fix)
    moment = parse_iso_timestamp(given) if isinstance(given, str) else given
    if not isinstance(moment, datetime.date) or (isinstance(moment, datetime.datetime) and moment.tzinfo is not None):
        at.fail(f"must be a time such as {example}, not {describe_value(given)}", name, fix=fix)
    is_day = not isinstance(moment, datetime.datetime) or (isinstance(given, str) and len(given) == len("2025-12-31"))
    if is_day and name == "upper":
        what = f"{describe_value(given)} is the first moment of that day, so the day itself would be cut off"
        at.fail(what, name, fix=f"write upper = {moment.isoformat()[:10]}T23:59:59")
    return Fraction(to_microseconds(moment))


def _zone(at: Section, kind: Type) -> str | None:
    """The zone of a column, if one is named: one that Python's time zone database has."""
    if "zone" not in at.entries:
        return None
    fix = 'name a place of the time zone database: zone = "Europe/Zurich"; or leave it out for UTC'
    if kind not in TIME_TYPES:
        at.fail(f"{kind} columns have no zone", "zone", fix="leave it out; zones are for timestamp and date")
    zone = at.text("zone", fix)
    if zone == UTC:
        return None
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        found = f"{describe_value(zone)} is not in this machine's time zone database"
        at.fail(found, "zone", fix=f"{fix}; where a place is missing: pip install tzdata")
    return zone


def _step(at: Section, kind: Type, lower: Fraction | None, upper: Fraction | None) -> Fraction | None:
    if "step" not in at.entries:
        return None
    if kind is not Type.FLOAT:
        at.fail(f"{kind} columns have no step", "step", fix="leave it out; a step is the grid of a float")
    if lower is None or upper is None:
        at.fail("a step needs bounds", "step", fix="give lower and upper too, or leave the step out")
    step = at.number("step", "above 0", lambda x: x > 0)
    if max(upper - lower, abs(lower), abs(upper)) / step > MAX_STEPS:
        at.fail("too fine for these bounds: the grid has more than 2^52 steps", "step", fix="give a larger step")
    for name, bound in ("lower", lower), ("upper", upper):
        below = bound // step * step
        if below != bound:
            fix = f"the nearest are {format_decimal(below)} and {format_decimal(below + step)}"
            at.fail(f"must be a multiple of the step, which is {format_decimal(step)}", name, fix=fix)
    return step


def _values(at: Section, kind: Type, lower: Fraction | None, upper: Fraction | None) -> tuple[Key, ...] | None:
    if "values" not in at.entries:
        return (False, True) if kind is Type.BOOL else None
    values = at.entries["values"]
    if kind in (Type.BOOL, Type.FLOAT, Type.TIMESTAMP):
        why = "are always false and true" if kind is Type.BOOL else "cannot be listed"
        fix = "leave it out"
        if kind is Type.TIMESTAMP:
            fix += "; with lower and upper, the hours, days, weeks and months of DATE_TRUNC are public keys"
        at.fail(f"the keys of {kind} columns {why}", "values", fix=fix)
    if not isinstance(values, list | tuple) or not 1 <= len(values) <= MAX_VALUES:
        size = f"{len(values)} of them" if isinstance(values, list | tuple) else describe_value(values)
        at.fail(f"must be a list of 1 to {MAX_VALUES} keys, not {size}", "values", fix="list the public keys")
    seen: dict[Key, int] = {}
    for index, value in enumerate(values):
        key = parse_key(value, kind)
        if key is None:
            at.fail(
                f"must be {KEY_DESCRIPTIONS[kind]}, not {describe_value(value)}",
                "values",
                index,
                fix=f"give {KEY_DESCRIPTIONS[kind]}",
            )
        number = key.toordinal() if isinstance(key, datetime.date) else key
        if lower is not None and upper is not None and isinstance(number, int) and not lower <= number <= upper:
            limits = f"from {_bound_text(kind, lower)} to {_bound_text(kind, upper)}"
            at.fail(f"{key} is outside the bounds, {limits}", "values", index, fix="leave it out or widen the bounds")
        if seen.setdefault(key, index) != index:
            at.fail(f"{describe_value(value)} is there twice", "values", index, fix="leave one out")
    return tuple(seen)


class DuplicateNames:
    """Finds names that SQL, which ignores case, could not tell apart, and names that a copy has for its own."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """What is wrong with a name, after those before it."""
        if name.startswith("#"):
            return "begins with #, as names of Tacit's own do: rename it where it is stored, or in a view"
        first = self.seen.setdefault(name.lower(), name)
        return "" if first == name else f"differs from {describe_value(first)} in case only"
