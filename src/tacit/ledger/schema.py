"""The tables of a ledger file, and the locks that the database itself holds.

The locks are the second ones: the ledger never tries what they forbid.
"""

from __future__ import annotations

import apsw

from tacit.ledger.entries import GENESIS

APPLICATION = 0x54414349  # "TACI" in the file's header
VERSION = 1

_TABLES = """
CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY CHECK (sequence > 0),
    time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('open', 'reserve', 'commit', 'fail', 'repeat')),
    who TEXT NOT NULL,
    key TEXT NOT NULL,
    epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    overall_epsilon INTEGER NOT NULL CHECK (overall_epsilon IN (0, epsilon)),
    overall_delta INTEGER NOT NULL CHECK (overall_delta IN (0, delta)),
    spent_epsilon INTEGER NOT NULL CHECK (spent_epsilon >= epsilon),
    spent_delta INTEGER NOT NULL CHECK (spent_delta >= delta),
    overall_spent_epsilon INTEGER NOT NULL CHECK (overall_spent_epsilon >= overall_epsilon),
    overall_spent_delta INTEGER NOT NULL CHECK (overall_spent_delta >= overall_delta),
    loss TEXT NOT NULL,
    claim INTEGER NOT NULL,
    answer_digest TEXT NOT NULL,
    note TEXT NOT NULL,
    previous TEXT NOT NULL CHECK (length(previous) = 64),
    hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

CREATE INDEX entries_by_who ON entries (who);

CREATE INDEX entries_by_key ON entries (key, who);

CREATE UNIQUE INDEX entries_by_claim ON entries (claim) WHERE claim > 0;

CREATE TABLE answers (
    entry INTEGER PRIMARY KEY REFERENCES entries (sequence),
    key TEXT NOT NULL,
    loss TEXT NOT NULL,
    answer BLOB NOT NULL,
    UNIQUE (key, loss)
) STRICT;

CREATE TABLE totals (
    who TEXT PRIMARY KEY,
    epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    cap_epsilon INTEGER NOT NULL CHECK (cap_epsilon >= 0),
    cap_delta INTEGER NOT NULL CHECK (cap_delta >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
"""

# A cap may be lowered below what is spent, so the cap binds charges, not rows.
_LOCKS = {
    "entries_stay": "BEFORE UPDATE ON entries",
    "entries_remain": "BEFORE DELETE ON entries",
    "answers_stay": "BEFORE UPDATE ON answers",
    "answers_remain": "BEFORE DELETE ON answers",
    "totals_remain": "BEFORE DELETE ON totals",
    "totals_grow": "BEFORE UPDATE ON totals WHEN NEW.epsilon < OLD.epsilon OR NEW.delta < OLD.delta",
    "totals_are_capped": "BEFORE UPDATE OF epsilon, delta ON totals"
    " WHEN NEW.epsilon > NEW.cap_epsilon OR NEW.delta > NEW.cap_delta",
}

STATEMENTS = [text.strip() for text in _TABLES.split(";") if text.strip()] + [
    f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{name}'); END" for name, when in _LOCKS.items()
]


def create(connection: apsw.Connection) -> None:
    """Write the tables of a new ledger, inside the caller's transaction."""
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (GENESIS,))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def is_blank(connection: apsw.Connection) -> bool:
    """Whether nothing was ever written to the file."""
    return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,) and marks(connection) == (0, 0)


def marks(connection: apsw.Connection) -> tuple[int, int]:
    """The application and the schema version that the file's header names."""
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    return int(str(application)), int(str(version))


def is_whole(connection: apsw.Connection) -> bool:
    """Whether the tables and the locks are those written at the start."""
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'").fetchall()
    return sorted(str(sql) for (sql,) in rows) == sorted(STATEMENTS)
