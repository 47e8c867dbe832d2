"""From a TOML file, or a dict of the same shape, to a `Policy`. Each mistake names its place and its fix.

>>> load({"privacy": {"epsilon": 1}, "tables": {}, "analysts": {}})
Traceback (most recent call last):
...
tacit.errors.PolicyError: policy [policy]: tables: there is none
  fix: declare at least one: [tables.visits]
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from tacit.errors import Code, Place, PolicyError
from tacit.policy import locate
from tacit.policy.check import INT64, KEYS, MAX_NAME, decimal_text, exact, is_clean, key_of, name_flaw, shown
from tacit.policy.model import ROW, Analyst, Books, Budget, Column, Key, Policy, Table, Type
from tacit.privacy.unit import Neighbors

UNFILLED = "?"
MAX_EPSILON = 1000
MAX_GROUPS = 10_000
MAX_ROWS_PER_GROUP = 1_000_000
MAX_VALUES = 10_000
MAX_FLOAT = 10**15
MAX_STEPS = 2**52  # so that every point of a float's grid, and its number, is exact in double precision

_MEANING = {
    "max_groups": "the most groups of one answer that one unit may touch; more of its groups are left out",
    "max_rows_per_group": "the most rows of one unit that count in one group; more of its rows are left out",
}


def load(policy: str | os.PathLike[str] | Mapping[str, Any]) -> Policy:
    """The policy of a TOML file, or of a dict of the same shape. Relative paths start at the file's folder."""
    if isinstance(policy, Mapping):
        return _policy(_Section(policy, (), None), Path.cwd(), None)
    if not isinstance(policy, str | os.PathLike):
        what = f"a policy is a path or a dict, not {shown(policy)}"
        raise PolicyError(Code.POLICY, what, fix="start from a template: tacit init")
    path = Path(os.fsdecode(policy)).absolute()
    file = locate.File(_read(path), path.name)
    return _policy(_Section(_parse(file), (), file), path.parent, path)


def _read(path: Path) -> str:
    """The text of the file, with \\n at the end of each line."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "start from a template: tacit init"
        raise PolicyError(Code.POLICY, f"cannot read {path}: {(reason or 'it failed').lower()}", fix=fix) from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        at = locate.File(before, path.name).at(len(before), len(before))
        raise PolicyError(Code.POLICY, "the file is not UTF-8 text", at=at, fix="save it as UTF-8") from error


def _parse(file: locate.File) -> dict[str, Any]:
    """The tables of the file, with decimals as they are written."""
    try:
        return tomllib.loads(file.text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        what = re.sub(r" \(at .*\)$", "", str(error)).lower()
        fix = "text stands in quotes, an inline table { ... } on one line, and each key once"
        raise PolicyError(Code.POLICY, f"not TOML: {what}", at=_syntax_place(file, str(error)), fix=fix) from error
    except (ValueError, RecursionError) as error:
        what = "a number is too long, or lists are nested too deeply"
        raise PolicyError(Code.POLICY, what, fix="compare it with what tacit init writes") from error


def _syntax_place(file: locate.File, message: str) -> Place:
    """Where the parser says that it stopped."""
    found = re.search(r"\(at line (\d+), column (\d+)\)$", message)
    if found is None:  # at the end of the document
        end = len(file.text.rstrip())
        return file.at(end, end)
    start = sum(len(line) + 1 for line in file.text.split("\n")[: int(found[1]) - 1]) + int(found[2]) - 1
    return file.at(start, start)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal("Infinity")


@dataclass(frozen=True)
class _Section:
    """A table of the policy, which knows its path and so can say where a mistake is."""

    entries: Mapping[Any, Any]
    path: locate.Path
    file: locate.File | None

    def fail(self, what: str, *keys: str | int, fix: str = "", key: bool = False) -> NoReturn:
        """Refuse what stands at the keys below this table; `key` points at the key and not at its value."""
        path = (*self.path, *keys)
        at = self.file.place(path, key=key) if self.file else None
        raise PolicyError(Code.POLICY, f"{locate.dotted(path) or 'the policy'}: {what}", at=at, fix=fix)

    def only(self, *known: str) -> None:
        """Refuse keys that mean nothing here."""
        for name in self.names():
            if name not in known:
                fix = _nearest(name, known) or f"what may stand here: {', '.join(known)}"
                self.fail("no such key", name, fix=fix, key=True)

    def names(self) -> Iterator[str]:
        """The keys, which are text."""
        for name in self.entries:
            if not isinstance(name, str):
                self.fail(f"a key must be text, not {shown(name)}", fix="put it in quotes")
            yield str.__str__(name)

    def section(self, name: str, fix: str = "") -> _Section:
        """The table of that name; an empty one if it is not there."""
        value = self.entries.get(name, {})
        if not isinstance(value, Mapping):
            self.fail(f"must be a table, not {shown(value)}", name, fix=fix or f"write it as [{name}]")
        return _Section(value, (*self.path, name), self.file)

    def sections(self, entry: str, example: str, flaw: Callable[[str], str] = lambda name: "") -> Iterator[_Section]:
        """The tables below this one, of which there is at least one. Their names are the owner's, but for any flaw."""
        if not self.entries:
            self.fail("there is none", fix=f"declare at least one: {entry.format(example)}")
        for name in self.names():
            if wrong := flaw(name) or name_flaw(name):
                self.fail(wrong, name, fix="choose another name", key=True)
            yield self.section(name, fix=f"write it as {entry.format(locate.toml_key(name))}")

    def need(self, name: str, fix: str) -> Any:
        """The value, which must be there."""
        if name not in self.entries:
            self.fail("is missing", name, fix=fix)
        return self.entries[name]

    def number(self, name: str, rule: str, holds: Callable[[Fraction], bool]) -> Fraction:
        """A number that keeps the rule."""
        fix = f"give a number {rule}"
        value = self.need(name, fix)
        number = exact(value)
        if number is None or not holds(number):
            self.fail(f"must be a number {rule}, not {shown(value)}", name, fix=fix)
        return number

    def whole(self, name: str, least: int, most: int, fix: str) -> int:
        """An integer from `least` to `most`."""
        value = self.need(name, fix)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(f"must be a whole number from {least} to {most}, not {shown(value)}", name, fix=fix)
        return int(value)

    def text(self, name: str, fix: str) -> str:
        """A text that is not empty and has nothing unprintable in it."""
        value = self.need(name, fix)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str) or not value or not is_clean(value):
            self.fail(f"must be text, not empty and on one line, not {shown(value)}", name, fix=fix)
        return str.__str__(value)

    def choice(self, name: str, *options: str) -> str:
        """One of the options."""
        one_of = "one of " * (len(options) > 1) + ", ".join(options)
        value = self.need(name, f"give {one_of}")
        if not isinstance(value, str) or value not in options:
            fix = _nearest(value, options) if isinstance(value, str) else ""
            self.fail(f"must be {one_of}, not {shown(value)}", name, fix=fix or f"give {one_of}")
        return str.__str__(value)


def _nearest(name: str, known: Sequence[str]) -> str:
    """The question whether a known word was meant, if one is near."""
    longer = [word for word in known if len(name) > 2 and word.startswith(name)]
    near = longer or difflib.get_close_matches(name[:MAX_NAME].lower(), known, 1)
    return f"did you mean {near[0]}?" if near else ""


def _policy(top: _Section, folder: Path, path: Path | None) -> Policy:
    top.only("data", "ledger", "privacy", "tables", "analysts")
    source, epoch = _data(top.section("data"), folder)
    books = _books(top.section("ledger"), folder, path, source)
    privacy = top.section("privacy")
    privacy.only("neighbors", "epsilon", "delta", "delta_per_question")
    neighbors = privacy.choice("neighbors", *Neighbors) if "neighbors" in privacy.entries else Neighbors.ADD_REMOVE
    budget = _budget(privacy)
    tables = top.section("tables").sections("[tables.{}]", "visits", _Repeats())
    analysts = top.section("analysts").sections("[analysts.{}]", "ada", _spaced)
    return Policy(
        source,
        epoch,
        books,
        Neighbors(neighbors),
        budget,
        _delta_per_question(privacy, budget.delta),
        tuple(_table(section) for section in tables),
        tuple(_analyst(section) for section in analysts),
    )


def _data(at: _Section, folder: Path) -> tuple[Path | None, int]:
    at.only("engine", "source", "epoch")
    for engine in "postgres", "spark":
        if shown(at.entries.get("engine")) == f'"{engine}"':
            at.fail(f"{engine} is not supported yet by this version", "engine", fix='use engine = "duckdb"')
    if "engine" in at.entries:
        at.choice("engine", "duckdb")
    source = folder / at.text("source", "name a file or a folder") if "source" in at.entries else None
    fix = "count from 1, and raise it when the data has changed"
    return source, at.whole("epoch", 0, INT64[-1], fix) if "epoch" in at.entries else 1


def _books(at: _Section, folder: Path, path: Path | None, source: Path | None) -> Books | None:
    """The ledger, its key and its witness; the last two are named after the ledger unless the policy names them.

    A new ledger so has a new witness. They lie beside a ledger's file, and beside the policy where it is a database.
    """
    at.only("store", "key", "witness")
    store: Path | str | None = path.with_suffix(".ledger") if path else None
    if "store" in at.entries:
        store = _store(at, folder)
    if store is None:
        for name in ("key", "witness"):
            if name in at.entries:
                at.fail("there is no ledger for it", name, fix="name the store too")
        return None
    if isinstance(store, Path):
        beside = store.with_name(store.stem) if store.suffix == ".ledger" else store
    else:
        beside = folder / (urlsplit(store).fragment or (path.stem if path else "tacit"))
    key, witness = (
        folder / at.text(name, f"name a file for the {name}")
        if name in at.entries
        else beside.parent / f"{beside.name}.{name}"
        for name in ("key", "witness")
    )
    _check_apart(at, {"store": store, "key": key, "witness": witness}, {"policy": path, "data": source})
    return Books(store, key, witness)


def _store(at: _Section, folder: Path) -> Path | str:
    """A file, or the URL of a PostgreSQL database, whose fragment names one of several ledgers in it."""
    named = at.text("store", "name a file for the ledger, or a database: postgresql://host/database")
    if "://" not in named:
        return folder / named
    fix = "write postgresql://host/database, and #name at its end where it holds several ledgers"
    try:
        parts = urlsplit(named)
    except ValueError:
        at.fail("is not a URL", "store", fix=fix)
    if parts.scheme not in ("postgresql", "postgres"):
        at.fail(f"no ledger is kept in {shown(parts.scheme)}", "store", fix=f"name a file, or {fix}")
    if not parts.path.strip("/"):
        at.fail("the URL names no database", "store", fix=fix)
    if parts.fragment and not re.fullmatch(r"[A-Za-z0-9_]{1,50}", parts.fragment):
        what = f"{shown(parts.fragment)} does not name a ledger"
        at.fail(what, "store", fix="after the #, use up to 50 letters of the alphabet, digits and underscores")
    return named


def _check_apart(at: _Section, own: dict[str, Path | str], others: dict[str, Path | None]) -> None:
    """None of the ledger's files is the policy, the data or another of them."""
    taken = {os.path.abspath(file): name for name, file in others.items() if file is not None}
    for name, place in own.items():
        if isinstance(place, Path):
            first = taken.setdefault(os.path.abspath(place), name)
            if first != name:
                at.fail(f"cannot be the same file as the {first}", name, fix="give it a file of its own")


def _budget(at: _Section) -> Budget:
    epsilon = at.number("epsilon", f"above 0 and at most {MAX_EPSILON}", lambda e: 0 < e <= MAX_EPSILON)
    if "delta" not in at.entries:
        return Budget(epsilon, Fraction(0))
    return Budget(epsilon, at.number("delta", "from 0 to below 1", lambda d: 0 <= d < 1))


def _delta_per_question(at: _Section, delta: Fraction) -> Fraction:
    if "delta_per_question" not in at.entries:
        return delta / 1000
    rule = f"from 0 to delta, which is {decimal_text(delta)}"
    return at.number("delta_per_question", rule, lambda d: 0 <= d <= delta)


def _analyst(at: _Section) -> Analyst:
    at.only("epsilon", "delta", "refresh")
    monthly = "refresh" in at.entries and bool(at.choice("refresh", "monthly"))
    return Analyst(str(at.path[-1]), _budget(at), monthly)


def _table(at: _Section) -> Table:
    at.only("unit", "max_groups", "max_rows_per_group", "columns", "public")
    if at.entries.get("public", False) is not False:
        at.fail("public tables are not supported yet by this version", "public", fix="leave the table out")
    fix = f'name the column that says whose row it is, or write unit = "{ROW}" where each row is one person'
    unit = at.text("unit", fix)
    if unit == UNFILLED:
        at.fail("fill in the unit of protection: it is never read from the data", "unit", fix=fix)
    if len(unit) > MAX_NAME:
        at.fail(f"a name has at most {MAX_NAME} characters", "unit", fix=fix)
    groups = _contribution(at, unit, "max_groups", MAX_GROUPS)
    rows = _contribution(at, unit, "max_rows_per_group", MAX_ROWS_PER_GROUP)
    columns = at.section("columns").sections('{} = {{ type = "int" }}', "age", _Repeats())
    return Table(str(at.path[-1]), unit, tuple(_column(column) for column in columns), groups, rows)


def _contribution(at: _Section, unit: str, name: str, most: int) -> int:
    """How much of one unit is counted. No default for a unit of many rows: it decides both noise and bias."""
    fix = f'give {_MEANING[name]}; or write unit = "{ROW}" where each row is one person'
    if unit != ROW:
        return at.whole(name, 1, most, fix)
    if name in at.entries and at.whole(name, 1, most, fix) != 1:
        at.fail(f'must be 1 or left out where unit = "{ROW}"', name, fix="leave it out, or name a column as the unit")
    return 1


def _column(at: _Section) -> Column:
    at.only("type", "lower", "upper", "step", "values")
    kind = Type(at.choice("type", *Type))
    lower, upper = _bounds(at, kind)
    return Column(str(at.path[-1]), kind, lower, upper, _step(at, kind, lower, upper), _values(at, kind, lower, upper))


def _bounds(at: _Section, kind: Type) -> tuple[Fraction | None, Fraction | None]:
    given = [name for name in ("lower", "upper") if name in at.entries]
    if not given:
        return None, None
    if kind not in (Type.INT, Type.FLOAT):
        at.fail(f"{kind} columns have no bounds", given[0], fix="leave them out; bounds are for int and float")
    for name in given:
        if isinstance(at.entries[name], str) and at.entries[name] == UNFILLED:
            fix = "choose them from what the column means, or leave both out: it can then be counted and compared only"
            at.fail("fill in lower and upper: bounds are never read from the data", name, fix=fix)
    if kind is Type.INT:
        rule, holds = "that is whole and fits 64 bits", lambda x: x.denominator == 1 and x.numerator in INT64
    else:
        rule, holds = "from -1e15 to 1e15", lambda x: abs(x) <= MAX_FLOAT
    lower, upper = at.number("lower", rule, holds), at.number("upper", rule, holds)
    if lower > upper:
        at.fail(f"must be at least lower, which is {decimal_text(lower)}", "upper", fix="swap the two")
    return lower, upper


def _step(at: _Section, kind: Type, lower: Fraction | None, upper: Fraction | None) -> Fraction | None:
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
            fix = f"the nearest are {decimal_text(below)} and {decimal_text(below + step)}"
            at.fail(f"must be a multiple of the step, which is {decimal_text(step)}", name, fix=fix)
    return step


def _values(at: _Section, kind: Type, lower: Fraction | None, upper: Fraction | None) -> tuple[Key, ...] | None:
    if "values" not in at.entries:
        return (False, True) if kind is Type.BOOL else None
    values = at.entries["values"]
    if kind in (Type.BOOL, Type.FLOAT):
        why = "are always false and true" if kind is Type.BOOL else "cannot be listed"
        at.fail(f"the keys of {kind} columns {why}", "values", fix="leave it out")
    if not isinstance(values, list | tuple) or not 1 <= len(values) <= MAX_VALUES:
        size = f"{len(values)} of them" if isinstance(values, list | tuple) else shown(values)
        at.fail(f"must be a list of 1 to {MAX_VALUES} keys, not {size}", "values", fix="list the public keys")
    seen: dict[Key, int] = {}
    for index, value in enumerate(values):
        key = key_of(value, kind)
        if key is None:
            at.fail(f"must be {KEYS[kind]}, not {shown(value)}", "values", index, fix=f"give {KEYS[kind]}")
        if lower is not None and upper is not None and isinstance(key, int) and not lower <= key <= upper:
            limits = f"from {decimal_text(lower)} to {decimal_text(upper)}"
            at.fail(f"{key} is outside the bounds, {limits}", "values", index, fix="leave it out or widen the bounds")
        if seen.setdefault(key, index) != index:
            at.fail(f"{shown(value)} is there twice", "values", index, fix="leave one out")
    return tuple(seen)


class _Repeats:
    """Finds names that SQL, which ignores case, could not tell apart."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        first = self.seen.setdefault(name.lower(), name)
        return "" if first == name else f"differs from {shown(first)} in case only"


def _spaced(name: str) -> str:
    return "an analyst's name has no spaces" if any(c.isspace() for c in name) else ""
