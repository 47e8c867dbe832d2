"""The tables of a ledger, and the locks that the database itself holds. Each is written once, for every database.

The locks are the second ones: the ledger never tries what they forbid.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.ledger.entries import COST_COLUMNS, EntryKind

APPLICATION_ID = 0x54414349  # "TACI" in the header of a file
SCHEMA_VERSION = 3
FORMER_VERSION = 2  # which has no locks; opening a ledger for charges upgrades it

_FORMER_KINDS = tuple(kind for kind in EntryKind if kind not in {EntryKind.LOCK, EntryKind.UNLOCK})


def _cost_columns(*prefixes: str) -> str:
    """Columns of grains, which are never negative."""
    names = [f"{prefix}{grain}" for prefix in prefixes for grain in COST_COLUMNS]
    return ",\n    ".join(f"{name} {{integer}} NOT NULL CHECK ({name} >= 0)" for name in names)


_TABLES = f"""
CREATE TABLE entries (
    sequence {{integer}} PRIMARY KEY CHECK (sequence > 0),
    time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK ({{kinds}}),
    who TEXT NOT NULL,
    month TEXT NOT NULL,
    request TEXT NOT NULL,
    key TEXT NOT NULL,
    loss TEXT NOT NULL,
    claim {{integer}} NOT NULL,
    shared {{integer}} NOT NULL CHECK (shared IN (0, 1)),
    {_cost_columns("charge_", "spent_", "overall_", "everyone_")},
    answer_digest TEXT NOT NULL,
    note TEXT NOT NULL,
    previous TEXT NOT NULL CHECK (length(previous) = 64),
    hash TEXT NOT NULL CHECK (length(hash) = 64)
){{strict}};

CREATE INDEX entries_by_who ON entries (who, sequence);

CREATE INDEX entries_by_key ON entries (key, who);

CREATE UNIQUE INDEX entries_by_request ON entries (who, request) WHERE request <> '';

CREATE UNIQUE INDEX entries_by_claim ON entries (claim) WHERE kind IN ('commit', 'fail');

CREATE TABLE answers (
    entry {{integer}} PRIMARY KEY REFERENCES entries (sequence),
    key TEXT NOT NULL,
    loss TEXT NOT NULL,
    answer {{blob}} NOT NULL
){{strict}};

CREATE INDEX answers_by_key ON answers (key);

CREATE TABLE flights (
    claim {{integer}} PRIMARY KEY REFERENCES entries (sequence),
    key TEXT NOT NULL,
    holder TEXT NOT NULL
){{strict}};

CREATE INDEX flights_by_key ON flights (key);

CREATE TABLE totals (
    who TEXT PRIMARY KEY,
    month TEXT NOT NULL,
    {_cost_columns("", "cap_")}
){{strict}};

CREATE TABLE head (
    one {{integer}} PRIMARY KEY CHECK (one = 1),
    sequence {{integer}} NOT NULL,
    hash TEXT NOT NULL
){{strict}}
"""

_ANY_DECREASE = " OR ".join(f"NEW.{grain} < OLD.{grain}" for grain in COST_COLUMNS)
_ANY_INCREASE = "(" + " OR ".join(f"NEW.{grain} > OLD.{grain}" for grain in COST_COLUMNS) + ")"


@dataclass(frozen=True)
class Trigger:
    """What the database refuses: an event on a table, where the condition holds of OLD and NEW."""

    name: str
    event: str
    table: str
    condition: str = "1 = 1"


# A cap may be lowered below what is spent, so the caps bind charges, not rows. Sums start anew in a later month only,
# and go on where a cap begins or ceases to refresh. What the owner accepts as lost may be more than any cap.
TRIGGERS = (
    Trigger("entries_stay", "UPDATE", "entries"),
    Trigger("entries_remain", "DELETE", "entries"),
    Trigger("answers_stay", "UPDATE", "answers"),
    Trigger("answers_remain", "DELETE", "answers"),
    Trigger("totals_remain", "DELETE", "totals"),
    Trigger(
        "totals_grow",
        "UPDATE",
        "totals",
        f"(NEW.month <> '' AND NEW.month < OLD.month)"
        f" OR ((NEW.month = OLD.month OR NEW.month = '' OR OLD.month = '') AND ({_ANY_DECREASE}))",
    ),
    Trigger(
        "totals_are_capped",
        "UPDATE",
        "totals",
        f"(({_ANY_INCREASE} AND NEW.month = OLD.month) OR (NEW.month > OLD.month AND OLD.month <> ''))"
        " AND (NEW.epsilon > NEW.cap_epsilon OR NEW.delta_a > NEW.cap_delta_a)"
        " AND (NEW.rho > NEW.cap_rho OR NEW.delta_b > NEW.cap_delta_b)"
        f" AND (SELECT kind FROM entries ORDER BY sequence DESC LIMIT 1) <> '{EntryKind.ACCEPT}'",
    ),
)


def kind_condition(version: int = SCHEMA_VERSION) -> str:
    """What holds of the kind of every entry in a version."""
    kinds = EntryKind if version == SCHEMA_VERSION else _FORMER_KINDS
    listing = ", ".join(f"'{kind}'" for kind in kinds)
    return f"kind IN ({listing})"


def create_statements(*, integer: str, blob: str, strict: str, version: int = SCHEMA_VERSION) -> list[str]:
    """The statements that make the tables of a version, in a database's own words for its types."""
    text = _TABLES.format(integer=integer, blob=blob, strict=strict, kinds=kind_condition(version))
    return [statement.strip() for statement in text.split(";")]
