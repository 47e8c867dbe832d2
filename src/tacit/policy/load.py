"""From a TOML file, or a dict of the same shape, to a `Policy`. Each mistake names its place and its fix.

>>> load({"privacy": {"epsilon": 1}, "tables": {}, "analysts": {}})
Traceback (most recent call last):
...
tacit.errors.PolicyError: policy [policy]: tables: there is none
  fix: declare at least one: [tables.visits]
"""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tacit.arithmetic import format_decimal
from tacit.errors import ErrorCode, PolicyError, SourceLocation
from tacit.policy import locate
from tacit.policy.access import KEYS as ACCESS_KEYS
from tacit.policy.access import load_access
from tacit.policy.check import INT64, describe_value, find_analyst_problem
from tacit.policy.model import (
    ENGINES,
    IN_MEMORY,
    DeclaredAnalyst,
    LedgerLocation,
    Policy,
    PrivacyBudget,
    QuestionDialect,
    Table,
    is_database_url,
)
from tacit.policy.section import Section
from tacit.policy.tables import UNFILLED, load_tables
from tacit.privacy.unit import Neighbors
from tacit.query.timestamps import parse_iso_timestamp

MAX_EPSILON = 1000
_SECTIONS = ("data", "ledger", "privacy", "tables", "analysts")


def load(policy: str | os.PathLike[str] | Mapping[str, Any], *, is_draft: bool = False) -> Policy:
    """The policy of a TOML file, or of a dict of the same shape. Relative paths start at the file's folder.

    Of a draft, `lower = "?"` and `upper = "?"` are read as bounds that are not declared.
    """
    if isinstance(policy, Mapping):
        return _policy(Section(_leave_unfilled(policy) if is_draft else policy, (), None), Path.cwd(), None)
    if not isinstance(policy, str | os.PathLike):
        what = f"a policy is a path or a dict, not {describe_value(policy)}"
        raise PolicyError(ErrorCode.POLICY, what, fix="start from a template: tacit init")
    path = Path(os.fsdecode(policy)).absolute()
    file = locate.TomlFile(_read(path), path.name)
    entries = _parse(file)
    return _policy(Section(_leave_unfilled(entries) if is_draft else entries, (), file), path.parent, path)


def load_text(text: str, path: Path) -> Policy:
    """The policy of a TOML text that is not written yet, as if it were the file at this path."""
    file = locate.TomlFile(text, path.name)
    return _policy(Section(_parse(file), (), file), path.absolute().parent, path.absolute())


def _leave_unfilled(value: Any) -> Any:
    """The same without bounds that are to be filled in."""
    if not isinstance(value, Mapping):
        return value
    unfilled = [name for name in ("lower", "upper") if isinstance(value.get(name), str) and value[name] == UNFILLED]
    return {name: _leave_unfilled(part) for name, part in value.items() if name not in unfilled}


def find_mistakes(policy: str | os.PathLike[str]) -> list[PolicyError]:
    """All mistakes of a policy file, in the order of its lines: each section, table and column is read by itself."""
    path = Path(os.fsdecode(policy)).absolute()
    found: list[PolicyError] = []
    try:
        file = locate.TomlFile(_read(path), path.name)
        top = Section(_parse(file), (), file, found)
    except PolicyError as mistake:
        return [mistake]
    source: list[Path | str | None] = [None]
    tables: list[Table] = []

    def read_data() -> None:
        source[0] = _read_data(top.section("data"), path.parent)["source"]

    def read_tables() -> None:
        tables.extend(load_tables(top.section("tables")))

    parts: tuple[Callable[[], object], ...] = (
        lambda: top.only(*_SECTIONS),
        read_data,
        lambda: _books(top.section("ledger"), path.parent, path, source[0]),
        lambda: _read_privacy(top.section("privacy")),
        read_tables,
        lambda: _read_analysts(top.section("analysts"), tables),
    )
    for read in parts:
        try:
            read()
        except PolicyError as mistake:
            found.append(mistake)
    once = {(mistake.what, mistake.at): mistake for mistake in found}.values()
    return sorted(once, key=lambda mistake: (0, 0) if mistake.at is None else (mistake.at.line, mistake.at.column))


def _read(path: Path) -> str:
    """The text of the file, with \\n at the end of each line."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "start from a template: tacit init"
        raise PolicyError(
            ErrorCode.POLICY, f"cannot read {path}: {(reason or 'it failed').lower()}", fix=fix
        ) from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        at = locate.TomlFile(before, path.name).at(len(before), len(before))
        raise PolicyError(ErrorCode.POLICY, "the file is not UTF-8 text", at=at, fix="save it as UTF-8") from error


def _parse(file: locate.TomlFile) -> dict[str, Any]:
    """The tables of the file, with decimals as they are written."""
    try:
        return tomllib.loads(file.text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        what = re.sub(r" \(at .*\)$", "", str(error)).lower()
        fix = "text stands in quotes, an inline table { ... } on one line, and each key once"
        raise PolicyError(ErrorCode.POLICY, f"not TOML: {what}", at=_syntax_place(file, str(error)), fix=fix) from error
    except (ValueError, RecursionError) as error:
        what = "a number is too long, or lists are nested too deeply"
        raise PolicyError(ErrorCode.POLICY, what, fix="compare it with what tacit init writes") from error


def _syntax_place(file: locate.TomlFile, message: str) -> SourceLocation:
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


def _policy(top: Section, folder: Path, path: Path | None) -> Policy:
    top.only(*_SECTIONS)
    data = _read_data(top.section("data"), folder)
    books = _books(top.section("ledger"), folder, path, data["source"])
    privacy = _read_privacy(top.section("privacy"))
    tables = load_tables(top.section("tables"))
    return Policy(
        **data,
        books=books,
        **privacy,
        tables=tables,
        analysts=_read_analysts(top.section("analysts"), tables),
    )


def _read_data(at: Section, folder: Path) -> dict[str, Any]:
    """The fields of a policy that [data] gives."""
    source, epoch = _data(at, folder)
    dialect = at.choice("dialect", *QuestionDialect) if "dialect" in at.entries else QuestionDialect.POSTGRES
    return {
        "source": source,
        "epoch": epoch,
        "engine": _engine(at),
        "copy": _copy(at, folder, source),
        "today": _today(at),
        "dialect": QuestionDialect(dialect),
    }


def _read_privacy(at: Section) -> dict[str, Any]:
    """The fields of a policy that [privacy] gives."""
    at.only("neighbors", "epsilon", "delta", "delta_per_question")
    neighbors = at.choice("neighbors", *Neighbors) if "neighbors" in at.entries else Neighbors.ADD_REMOVE
    budget = _budget(at)
    per_question = _delta_per_question(at, budget.delta)
    return {"neighbors": Neighbors(neighbors), "budget": budget, "delta_per_question": per_question}


def _read_analysts(at: Section, tables: Sequence[Table]) -> tuple[DeclaredAnalyst, ...]:
    """The analysts. What they may name is looked up in `tables`, unless these have mistakes of their own."""
    sections = at.sections("[analysts.{}]", "ada", find_analyst_problem)
    return tuple(at.read_each(sections, lambda section: _analyst(section, tables)))


def _data(at: Section, folder: Path) -> tuple[Path | str | None, int]:
    at.only("engine", "source", "copy", "prepared", "epoch", "today", "dialect")
    fix = "count from 1, and raise it when the data has changed"
    epoch = at.whole("epoch", 0, INT64[-1], fix) if "epoch" in at.entries else 1
    match _engine(at):
        case "postgres":
            source = at.text("source", "name the database: postgresql://host/database")
            if not is_database_url(source):
                at.fail("is not the URL of a database", "source", fix="write postgresql://host/database")
            return source, epoch
        case "spark":
            fix = 'name a catalog and schema, such as "spark_catalog.clinic", or leave it out and hand over data frames'
            return at.text("source", fix) if "source" in at.entries else None, epoch
    return folder / at.text("source", "name a file or a folder") if "source" in at.entries else None, epoch


def _engine(at: Section) -> str:
    return at.choice("engine", *ENGINES) if "engine" in at.entries else ENGINES[0]


def _copy(at: Section, folder: Path, source: Path | str | None) -> Path | str | None:
    """Where the data is read to, if the policy says so. `prepared` is the name that `copy` had before."""
    named = next((name for name in ("copy", "prepared") if name in at.entries), None)
    if named is None:
        return None
    if named == "copy" and "prepared" in at.entries:
        at.fail("is what copy says already", "prepared", fix="leave it out")
    if _engine(at) != ENGINES[0]:
        at.fail("only duckdb reads the data into a copy", named, fix="leave it out")
    text = at.text(named, f'name a file for the copy, or write "{IN_MEMORY}"')
    if text == IN_MEMORY:
        return IN_MEMORY
    if folder / text == source:
        at.fail("cannot be the same file as the data", named, fix="give it a file of its own")
    return folder / text


def _today(at: Section) -> datetime.date | None:
    """What CURRENT_DATE stands for: a date, or a time without a zone."""
    if "today" not in at.entries:
        return None
    given = at.entries["today"]
    found = parse_iso_timestamp(given) if isinstance(given, str) else given
    if not isinstance(found, datetime.date) or (isinstance(found, datetime.datetime) and found.tzinfo is not None):
        at.fail(f"must be a date, not {describe_value(given)}", "today", fix="write a day such as 2025-12-31")
    is_day = not isinstance(found, datetime.datetime) or (isinstance(given, str) and len(given) == len("2025-12-31"))
    return datetime.date(found.year, found.month, found.day) if is_day else found


def _books(at: Section, folder: Path, path: Path | None, source: Path | str | None) -> LedgerLocation | None:
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
    _check_apart(
        at,
        {"store": store, "key": key, "witness": witness},
        {"policy": path, "data": source if isinstance(source, Path) else None},
    )
    return LedgerLocation(store, key, witness)


def _store(at: Section, folder: Path) -> Path | str:
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
        at.fail(f"no ledger is kept in {describe_value(parts.scheme)}", "store", fix=f"name a file, or {fix}")
    if not parts.path.strip("/"):
        at.fail("the URL names no database", "store", fix=fix)
    if parts.fragment and not re.fullmatch(r"[A-Za-z0-9_]{1,50}", parts.fragment):
        what = f"{describe_value(parts.fragment)} does not name a ledger"
        at.fail(what, "store", fix="after the #, use up to 50 letters of the alphabet, digits and underscores")
    return named


def _check_apart(at: Section, own: dict[str, Path | str], others: dict[str, Path | None]) -> None:
    """None of the ledger's files is the policy, the data or another of them."""
    taken = {os.path.abspath(file): name for name, file in others.items() if file is not None}
    for name, place in own.items():
        if isinstance(place, Path):
            first = taken.setdefault(os.path.abspath(place), name)
            if first != name:
                at.fail(f"cannot be the same file as the {first}", name, fix="give it a file of its own")


def _budget(at: Section) -> PrivacyBudget:
    epsilon = at.number("epsilon", f"above 0 and at most {MAX_EPSILON}", lambda e: 0 < e <= MAX_EPSILON)
    if "delta" not in at.entries:
        return PrivacyBudget(epsilon, Fraction(0))
    return PrivacyBudget(epsilon, at.number("delta", "from 0 to below 1", lambda d: 0 <= d < 1))


def _delta_per_question(at: Section, delta: Fraction) -> Fraction:
    if "delta_per_question" not in at.entries:
        return delta / 1000
    rule = f"from 0 to delta, which is {format_decimal(delta)}"
    return at.number("delta_per_question", rule, lambda d: 0 <= d <= delta)


def _analyst(at: Section, tables: Sequence[Table]) -> DeclaredAnalyst:
    at.only("epsilon", "delta", "refresh", *ACCESS_KEYS)
    monthly = "refresh" in at.entries and bool(at.choice("refresh", "monthly"))
    access = load_access(at, tables) if tables else None
    return DeclaredAnalyst(str(at.path[-1]), _budget(at), monthly, access)
