"""Read the collection's queries and pairs into values.

>>> [query.label for query in queries() if query.id == "shop-001"]
['answerable']
>>> pairs()[0].same
True
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
DIALECTS = frozenset({"postgres", "duckdb", "bigquery", "snowflake"})

_HEADER = re.compile(r"-- ([a-z]+): (.*)")
_SHAPE = re.compile(r"(?:[2-8] )?[a-z][a-z0-9-]*")
_OF_QUERIES = ("id", "source", "dialect", "world", "label", "shapes")
_OF_PAIRS = ("world", "why")


@dataclass(frozen=True)
class Query:
    """A query, and whether a differentially private curator can answer it."""

    id: str
    source: str
    dialect: str
    world: str
    label: str
    """`answerable` or `unanswerable`."""
    reason: str | None
    """Why not, where it is unanswerable."""
    shapes: tuple[str, ...]
    sql: str
    plain: str | None
    """The same question in DuckDB's SQL, where the text itself is not or means something else there."""

    @property
    def answerable(self) -> bool:
        return self.label == "answerable"

    @property
    def in_duckdb(self) -> str:
        """The text that gives the exact answer in DuckDB."""
        return self.plain or self.sql


@dataclass(frozen=True)
class Pair:
    """Two texts that mean the same on every admissible table, or only look so."""

    number: int
    world: str
    why: str
    first: str
    second: str
    same: bool
    unseen: str | None
    """Why the two give the same on the world's data although they differ."""


def _blocks(path: Path, start: str) -> Iterator[tuple[dict[str, list[str]], str]]:
    """Yield the headers and the text of each block; a block begins with a header whose name `start` matches."""
    text = path.read_text(encoding="utf-8")
    for block in re.split(rf"(?m)^(?=-- (?:{start}): )", text):
        if not block.strip():
            continue
        headers: dict[str, list[str]] = {}
        lines = block.splitlines()
        while lines and lines[0].startswith("-- "):
            match = _HEADER.fullmatch(lines.pop(0))
            if match is None:
                raise ValueError(f"{path.name}: a header without a name in the block {block[:40]!r}")
            headers.setdefault(match[1], []).append(match[2])
        yield headers, "\n".join(lines).strip()


def _headers(path: Path, found: dict[str, list[str]], needed: tuple[str, ...], optional: str) -> dict[str, str | None]:
    """Return the headers' texts, all of the needed ones and no other than these and the optional one."""
    first = next(iter(found.values()))[0]
    for name in needed:
        if len(found.get(name, ())) != 1:
            raise ValueError(f"{path.name}: {first}: needs exactly one header {name!r}")
    for name in found:
        if name not in needed and name != optional:
            raise ValueError(f"{path.name}: {first}: unknown header {name!r}")
    extra = found.get(optional)
    return {**{name: found[name][0] for name in needed}, optional: "\n".join(extra) if extra else None}


def _query(path: Path, found: dict[str, list[str]], text: str) -> Query:
    headers = _headers(path, found, _OF_QUERIES, "plain")
    name = headers["id"]
    label, _, reason = str(headers["label"]).partition(": ")
    if (label, bool(reason)) not in {("answerable", False), ("unanswerable", True)}:
        raise ValueError(f"{path.name}: {name}: the label is 'answerable' or 'unanswerable: reason'")
    if headers["dialect"] not in DIALECTS:
        raise ValueError(f"{path.name}: {name}: unknown dialect {headers['dialect']!r}")
    shapes = tuple(str(headers["shapes"]).split(", "))
    for shape in shapes:
        if not _SHAPE.fullmatch(shape):
            raise ValueError(f"{path.name}: {name}: {shape!r} is no shape; write 'name' or '4 name'")
    if not text.endswith(";"):
        raise ValueError(f"{path.name}: {name}: the text does not end with a semicolon")
    return Query(
        id=str(name),
        source=str(headers["source"]),
        dialect=str(headers["dialect"]),
        world=str(headers["world"]),
        label=label,
        reason=reason or None,
        shapes=shapes,
        sql=text.removesuffix(";").rstrip(),
        plain=headers["plain"],
    )


def _pair(path: Path, found: dict[str, list[str]], text: str) -> Pair:
    kind = "pair" if "pair" in found else "near"
    headers = _headers(path, found, (kind, *_OF_PAIRS), "unseen")
    if kind == "pair" and headers["unseen"]:
        raise ValueError(f"{path.name}: pair {headers[kind]}: only a near pair has a header 'unseen'")
    texts = [part.strip() for part in re.split(r"(?m);$", text)]
    if len(texts) != 3 or texts[2]:
        raise ValueError(f"{path.name}: {kind} {headers[kind]}: needs two texts, each ended by a semicolon")
    return Pair(
        number=int(str(headers[kind])),
        world=str(headers["world"]),
        why=str(headers["why"]),
        first=texts[0],
        second=texts[1],
        same=kind == "pair",
        unseen=headers["unseen"],
    )


@cache
def queries() -> tuple[Query, ...]:
    """Return all queries, by file and then in the order in which they are written."""
    paths = sorted((FOLDER / "queries").glob("*.sql"))
    return tuple(_query(path, *block) for path in paths for block in _blocks(path, "id"))


@cache
def pairs() -> tuple[Pair, ...]:
    """Return all pairs, those that are the same first."""
    path = FOLDER / "pairs.sql"
    return tuple(_pair(path, *block) for block in _blocks(path, "pair|near"))
