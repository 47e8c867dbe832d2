"""The settings that a connection starts with, and where they were given: its options, or the name of its database.

Some tools have fields for a host, a port, a database and a user, and none for options. They give settings behind the
name of the database, which may be any name:

>>> read_startup_settings({"user": "ada", "database": "clinic?tacit.epsilon=0.1&tacit.intervals=on"})
([('tacit.epsilon', '0.1'), ('tacit.intervals', 'on')], 'the name of the database')
>>> read_startup_settings({"user": "ada", "database": "clinic", "options": "-c tacit.epsilon=0.1"})
([('tacit.epsilon', '0.1')], 'the options of the connection')
"""

from __future__ import annotations

from collections.abc import Mapping

OPTIONS, DATABASE_NAME = "the options of the connection", "the name of the database"
_NO_SETTINGS = frozenset({"user", "database", "options", "replication"})
_MARK = "?tacit."  # what stands in the name of a database before settings


def read_startup_settings(options: Mapping[str, str]) -> tuple[list[tuple[str, str]], str]:
    """Return the names and values that a startup message sets, and what set the epsilon or the accuracy, "" for none.

    Options come after the name of the database, so they win.
    """
    by_name = _read_database_name(options.get("database", ""))
    by_options = [
        (name, value) for name, value in options.items() if name not in _NO_SETTINGS and not name.startswith("_pq_.")
    ]
    by_options += _read_options(options.get("options", ""))
    for found, source in ((by_options, OPTIONS), (by_name, DATABASE_NAME)):
        if any(name.lower() in {"tacit.epsilon", "tacit.within"} for name, _ in found):
            return [*by_name, *by_options], source
    return [*by_name, *by_options], ""


def _read_database_name(name: str) -> list[tuple[str, str]]:
    """The settings behind the name of a database: clinic?tacit.epsilon=0.1&tacit.intervals=on."""
    if _MARK not in name:
        return []
    parts = name.partition("?")[2].split("&")
    return [(setting, value) for setting, _, value in (part.partition("=") for part in parts)]


def _read_options(text: str) -> list[tuple[str, str]]:
    """The settings in options, as in -c tacit.epsilon=0.5."""
    found = []
    words = text.replace("\\ ", "\0").split()
    position = 0
    while position < len(words):
        word = words[position].replace("\0", " ")
        if word == "-c" and position + 1 < len(words):
            position += 1
            word = words[position].replace("\0", " ")
        else:
            word = word.removeprefix("--").removeprefix("-c")
        name, _, value = word.partition("=")
        found.append((name.replace("-", "_"), value))
        position += 1
    return found
