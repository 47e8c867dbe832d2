"""The shadow: an in-memory DuckDB with PostgreSQL's catalog of the policy's tables, and none of their rows.

Everything in it follows from the policy, which is public, so what clients find out here is free.
"""

from __future__ import annotations

import datetime
import re
import threading
from dataclasses import replace
from functools import cached_property
from importlib import resources
from itertools import islice
from typing import Any

import duckdb

from tacit.policy.model import Column, Policy, Type
from tacit.query.types import NUMBERS
from tacit.serve.pgwire.codec import Field
from tacit.serve.pgwire.lexer import quoted
from tacit.serve.pgwire.looks import HINT, SAYS, Names, rewritten
from tacit.serve.pgwire.results import field
from tacit.serve.pgwire.settings import Settings
from tacit.serve.pgwire.types import oid_of, oid_of_engine, size_of
from tacit.serve.pgwire.words import CANCELED, UNSUPPORTED, Complaint

FIRST = 16384  # the first OID of a table
_OWN = 12000  # and of one of the catalog, but for those that clients know by heart
_KNOWN = {"pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262}
_KNOWN |= {"pg_constraint": 2606, "pg_namespace": 2615}
MOST_ROWS = 10_000
SECONDS = 2.0
_SHOWN_KEYS = 8
_COLLATED = 100
_GRANTED = ["=r/owner"]  # everybody who is let in may SELECT, by the owner's grant
_CALL = re.compile(r"(?:\w+\.)?(\w+)\(.*\)$", re.DOTALL)
_UNNAMED = re.compile(r"['(0-9-]|CAST\(|NULL$")


class Shadow:
    """Answers looks at the catalog. Safe from several threads: each look has a cursor of its own."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._lock = threading.Lock()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        config: dict[str, str | bool | int | float | list[str]] = {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "threads": "1",
            "memory_limit": "128MB",
        }
        connection = duckdb.connect(":memory:", config=config)
        connection.execute("SET python_enable_replacements = false")
        connection.execute(resources.files(__package__).joinpath("shadow.sql").read_text())
        for name, rows in _rows(self._policy).items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.execute("SET lock_configuration = true")
        return connection

    def names(self) -> Names:
        """What a look may name."""
        with self._lock:
            return self._names

    @cached_property
    def _names(self) -> Names:
        cursor = self._connection.cursor()
        relations = cursor.execute("SELECT table_name FROM information_schema.tables").fetchall()
        functions = cursor.execute(
            "SELECT function_name FROM duckdb_functions() WHERE schema_name = 'shadow'"
        ).fetchall()
        numbers = cursor.execute("SELECT said, oid FROM shadow.types UNION ALL SELECT typname, oid FROM shadow.types")
        numbers_of = {name.lower(): oid for name, oid in numbers.fetchall()}
        numbers_of |= {name: _OWN + index for index, name in enumerate(sorted(_first(relations)))} | _KNOWN
        numbers_of |= {table.name.lower(): FIRST + index for index, table in enumerate(self._policy.tables)}
        cursor.close()
        return Names(_first(relations), _first(functions), numbers_of)

    def look(self, text: str, names: Names) -> tuple[tuple[Field, ...], list[tuple[Any, ...]]]:
        """The columns and rows of a look, or an error. It takes two seconds and 10,000 rows at most."""
        known = self.names()
        names = replace(names, relations=known.relations, functions=known.functions, numbers=known.numbers)
        statement = rewritten(text, names)
        cursor = self._connection.cursor()
        stop = threading.Timer(SECONDS, cursor.interrupt)
        stop.daemon = True
        stop.start()
        try:
            cursor.execute("SET search_path = 'shadow'")
            cursor.execute(f"SET VARIABLE database = {quoted(names.database)}")
            cursor.execute(f"SET VARIABLE user_name = {quoted(names.user)}")
            cursor.execute(statement)
            fields = tuple(field(_named(each[0]), oid_of_engine(str(each[1]))) for each in cursor.description or ())
            rows = cursor.fetchmany(MOST_ROWS + 1)
        except duckdb.InterruptException:
            raise Complaint(CANCELED, f"the catalog was searched for more than {SECONDS:g} seconds", HINT) from None
        except duckdb.Error as error:
            raise Complaint(UNSUPPORTED, "the catalog cannot answer this", HINT) from error
        finally:
            stop.cancel()
            cursor.close()
        if len(rows) > MOST_ROWS:
            raise Complaint(UNSUPPORTED, f"the catalog shows {MOST_ROWS:,} rows at most", "look at less, with LIMIT")
        return fields, rows


def _named(heading: str) -> str:
    """A column's name as PostgreSQL has it: that of the function, or ?column? where an expression has none."""
    function = _CALL.match(heading)
    if function is not None:
        return function[1].removesuffix(SAYS)
    return "?column?" if _UNNAMED.match(heading) else heading


def _first(rows: list[tuple[Any, ...]]) -> frozenset[str]:
    return frozenset(str(row[0]).lower() for row in rows)


def _rows(policy: Policy) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of pg_class, pg_attribute and pg_description for the policy's tables, and those of pg_settings."""
    classes: list[tuple[Any, ...]] = []
    attributes: list[tuple[Any, ...]] = []
    descriptions: list[tuple[Any, ...]] = []
    for index, table in enumerate(policy.tables):
        oid, width = FIRST + index, len(table.columns)
        flags = (False, False, "p", "r", width, 0, False, False, False, False, False, True, "d", False)
        classes.append(
            (oid, table.name, 2200, 0, 0, 10, 2, oid, 0, 0, -1.0, 0, 0, *flags, 0, 0, 0, _GRANTED, None, None, 0, 1259)
        )
        said = "public" if table.public else f"private: {table.people or table.name}"
        descriptions.append((oid, 1259, 0, said))
        for number, column in enumerate(table.columns, 1):
            kind = oid_of(column.type)
            text = column.type is Type.TEXT
            start = (oid, column.name, kind, -1, size_of(kind), number, 0, -1, -1, size_of(kind) > 0, "i", "p", "")
            state = (not column.nullable, False, False, "", "", False, True, 0, _COLLATED if text else 0)
            attributes.append((*start, *state, None, None, None, None))
            descriptions.append((oid, 1259, number, described(column)))
    settings = [
        (name, value, None, "", "", None, "user", "string", "default", *[None] * 3, value, value, None, None, False)
        for name, value in Settings().listed()
    ]
    return {
        "pg_class": classes,
        "pg_attribute": attributes,
        "pg_description": descriptions,
        "pg_settings": settings,
    }


def described(column: Column) -> str:
    """What is public about a column, in a few words."""
    if column.values is not None:
        more = ", ..." if len(column.values) > _SHOWN_KEYS else ""
        shown = (str(value).lower() if isinstance(value, bool) else str(value) for value in column.values)
        return "keys " + ", ".join(islice(shown, _SHOWN_KEYS)) + more
    if column.lower is None or column.upper is None:
        return "no bounds" if column.type in NUMBERS else "keys are private"
    ends = (column.lower, column.upper)
    if column.type is Type.DATE:
        return "from {} to {}".format(*(datetime.date.fromordinal(int(end)) for end in ends))
    return "from {:g} to {:g}".format(*map(float, ends))
