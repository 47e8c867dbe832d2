"""The SQL that makes the catalog's database: the policy's tables, empty, and what a statement may not do there.

Everything in it follows from the policy, which is public.

**Theorem.** No statement is answered by reading an empty table. Proof: each has a row-level policy whose condition is a
constant that cannot be computed, the cast of a text that is no truth value. PostgreSQL adds the condition wherever the
table is read, by whatever function or view, and computes constants when it plans, before anything runs: so every plan
that would read the table ends in an error, EXPLAIN's too. The condition is left out for superusers and the table's
owner, which a statement is not, and where row_security is off the plan ends in another error. What is left of the
tables is their description. A part that PostgreSQL drops before it plans, such as rows WHERE false or a query in WITH
that nothing uses, is not read: what is said then would be true of any rows.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from itertools import islice

from tacit.policy.model import Column, Policy, Table, Type, UnitForeignKey
from tacit.query.parameters import quote_text
from tacit.query.timestamps import to_datetime
from tacit.query.types import NUMERIC_TYPES

OWNER, ROLE, DATABASE = "owner", "analyst", "tacit"
GUARD = "asked through Tacit"
BUDGET, EXPLAINED = "tacit.budget", "tacit.explained"  # settings: what the view and the function of these names show
_SHOWN_KEYS = 8
_LONGEST = 63  # bytes of a name
_TYPES = {
    Type.INT: "bigint",
    Type.FLOAT: "double precision",
    Type.TEXT: "text",
    Type.BOOL: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
# Volatile functions that a statement may call; all others are refused, those of later versions too.
_ALLOWED = (
    "array_sample array_shuffle clock_timestamp current_query gen_random_uuid pg_advisory_unlock_all pg_blocking_pids "
    "pg_collation_actual_version pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn "
    "pg_database_collation_actual_version pg_database_size pg_get_wal_replay_pause_state pg_get_wal_resource_managers "
    "pg_indexes_size pg_is_in_recovery pg_is_wal_replay_paused pg_jit_available pg_last_wal_receive_lsn "
    "pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage "
    "pg_partition_ancestors pg_partition_tree pg_prepared_xact pg_relation_size pg_sequence_last_value "
    "pg_show_replication_origin_status pg_table_size pg_tablespace_size pg_total_relation_size random random_normal "
    "set_config timeofday"
)
_REFUSED = r"_to_xml(schema|_and_xmlschema)?$"  # beside these, functions that read tables by their names


def quote_name(name: str) -> str:
    """A name as SQL, in quotes, no longer than PostgreSQL takes it."""
    short = re.sub(r"[\0\r\n]", " ", name).encode()[:_LONGEST].decode(errors="ignore")
    return '"' + short.replace('"', '""') + '"'


def cluster_statements() -> list[str]:
    """What is done once for all databases: one role that may do nothing, and one database."""
    return [
        f"CREATE ROLE {ROLE} LOGIN",
        f"CREATE DATABASE {DATABASE}",
        f"REVOKE ALL ON DATABASE {DATABASE}, template1 FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {DATABASE} TO {ROLE}",
        "DROP DATABASE postgres",
        "ALTER DATABASE template0 IS_TEMPLATE false",
        "DROP DATABASE template0",
    ]


def database_statements(policy: Policy) -> list[str]:
    """What is done in the database: functions are taken away, and the tables are made."""
    made = [_revoke_functions(), "DROP EXTENSION plpgsql", "REVOKE ALL ON SCHEMA public FROM PUBLIC"]
    made += ["GRANT USAGE ON SCHEMA public TO PUBLIC"]
    made += [
        "CREATE SCHEMA tacit",
        "GRANT USAGE ON SCHEMA tacit TO PUBLIC",
        f"CREATE VIEW tacit.budget AS SELECT * FROM json_to_record(current_setting('{BUDGET}', true)::json) AS budget("
        "who text, month text, spent float8, cap float8, remaining float8, spent_by_all float8, cap_of_all float8, "
        "remaining_of_all float8, each_question text, set_by text)",
        "GRANT SELECT ON tacit.budget TO PUBLIC",
        "CREATE FUNCTION tacit.explain(question text) RETURNS text STABLE LANGUAGE sql AS "
        + quote_text(f"SELECT current_setting('{EXPLAINED}', true)::json ->> question"),
        "COMMENT ON VIEW tacit.budget IS 'What you have spent, and what is left.'",
        "COMMENT ON FUNCTION tacit.explain(text) IS 'What a question would do and cost. Free.'",
    ]
    for table in policy.tables:
        made += _table_statements(table, policy)
    for table in policy.tables:
        made += _foreign_keys(table, policy)
    return made


def _revoke_functions() -> str:
    """Take every volatile function away from everybody, but for those that are allowed."""
    allowed = ", ".join(map(quote_text, _ALLOWED.split()))
    condition = (
        "(provolatile = 'v' AND proname NOT IN (" + allowed + ") AND proname NOT LIKE 'pg\\_stat\\_get\\_%')"
        f" OR proname ~ '{_REFUSED}'"
    )
    return (
        "DO $$ DECLARE each regprocedure; BEGIN FOR each IN SELECT oid FROM pg_proc"
        f" WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND ({condition})"
        " LOOP EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', each); END LOOP; END $$"
    )


def _table_statements(table: Table, policy: Policy) -> Iterator[str]:
    name = "public." + quote_name(table.name)
    inner = [
        f"{quote_name(each.name)} {_TYPES[each.type]}{'' if each.nullable else ' NOT NULL'}" for each in table.columns
    ]
    for place, names in enumerate(_unique_columns(table, policy)):
        kind = "UNIQUE" if place or not _is_never_null(names, table) else "PRIMARY KEY"
        inner.append(f"{kind} ({', '.join(map(quote_name, names))})")
    yield f"CREATE TABLE {name} ({', '.join(inner)})"
    yield f"GRANT SELECT ON {name} TO PUBLIC"
    yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
    yield f"CREATE POLICY {quote_name(GUARD)} ON {name} USING ({quote_text(GUARD)}::text::boolean)"
    described = "public" if table.public else f"private: {table.people or table.name}"
    yield f"COMMENT ON TABLE {name} IS {_one_line(described)}"
    for column in table.columns:
        yield f"COMMENT ON COLUMN {name}.{quote_name(column.name)} IS {_one_line(describe_column(column))}"


def _unique_columns(table: Table, policy: Policy) -> list[tuple[str, ...]]:
    """The lists of columns of which the policy says that no two rows share them; those with NULLs come last."""
    said: list[tuple[str, ...]] = [(each.name,) for each in table.columns if each.unique]
    said += [(name,) for name in policy.nameable_keys.get(table.name, ())]
    said += list(table.unique)
    found: dict[tuple[str, ...], None] = {}
    for names in said:
        columns = [table.column(name) for name in names]
        listed = tuple(each.name for each in columns if each is not None)
        if len(listed) == len(names):
            found[listed] = None
    return sorted(found, key=lambda names: not _is_never_null(names, table))


def _is_never_null(names: tuple[str, ...], table: Table) -> bool:
    columns = [table.column(name) for name in names]
    return all(each is not None and not each.nullable for each in columns)


def _foreign_keys(table: Table, policy: Policy) -> Iterator[str]:
    """The way to the unit, where both of its columns are listed and have one type."""
    unit = table.unit
    if not isinstance(unit, UnitForeignKey):
        return
    other = policy.table(unit.table)
    column, key = table.column(unit.column), None if other is None else other.column(unit.key)
    if other is None or column is None or key is None or column.type is not key.type:
        return
    if (key.name,) in _unique_columns(other, policy):
        yield (
            f"ALTER TABLE public.{quote_name(table.name)} ADD FOREIGN KEY ({quote_name(column.name)})"
            f" REFERENCES public.{quote_name(other.name)} ({quote_name(key.name)})"
        )


def _one_line(text: str) -> str:
    """A text as SQL in one line: PostgreSQL reads a statement to the end of its line when it runs alone."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\r", "\\r").replace("\0", " ")
    return f"E'{escaped}'"


def describe_column(column: Column) -> str:
    """What is public about a column, in a few words."""
    if column.values is not None:
        more = ", ..." if len(column.values) > _SHOWN_KEYS else ""
        shown = (str(value).lower() if isinstance(value, bool) else str(value) for value in column.values)
        return "keys " + ", ".join(islice(shown, _SHOWN_KEYS)) + more
    if column.lower is None or column.upper is None:
        return "no bounds" if column.type in NUMERIC_TYPES else "keys are private"
    ends = (column.lower, column.upper)
    if column.type is Type.DATE:
        return "from {} to {}".format(*(datetime.date.fromordinal(int(end)) for end in ends))
    if column.type is Type.TIMESTAMP:
        zone = "" if column.zone is None else f", {column.zone}"
        return "from {} to {}".format(*(to_datetime(int(end)) for end in ends)) + zone
    return "from {:g} to {:g}".format(*map(float, ends))
