"""Tables of PostgreSQL that compute their rows when they are read: views, generated columns, row security, servers.

**Rule.** No row may decide whether a question fails. A stored row can always be read; one that is computed may raise,
as CAST does on a text that is not a number, and in which order a question's filters and a view's casts are computed is
the server's choice. So of a view only what cannot raise is taken: columns, constants, comparisons of values of one
type, AND, OR, NOT, IS NULL, IN, CASE and COALESCE, over tables of which the same holds.
"""

from __future__ import annotations

import re

from tacit.engines.base import TableSchema
from tacit.engines.dialect import POSTGRES
from tacit.engines.relations import Connection
from tacit.errors import DataError, ErrorCode

# The table itself, what the views among them read, and their partitions.
_PARTS = """
WITH RECURSIVE parts(oid) AS (
    SELECT CAST(%s AS regclass)::oid
    UNION SELECT found.oid FROM parts JOIN pg_class AS here ON here.oid = parts.oid CROSS JOIN LATERAL (
        SELECT refobjid AS oid FROM pg_rewrite JOIN pg_depend ON objid = pg_rewrite.oid
        WHERE ev_class = parts.oid AND here.relkind = 'v' AND classid = CAST('pg_rewrite' AS regclass)
            AND refclassid = CAST('pg_class' AS regclass) AND refobjid <> parts.oid
        UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = parts.oid
    ) AS found
)
SELECT relname::text, relkind::text, row_security_active(pg_class.oid),
    (SELECT min(attname::text) FROM pg_attribute WHERE attrelid = pg_class.oid AND attgenerated = 'v'),
    CASE WHEN relkind = 'v' THEN (SELECT min(ev_action::text) FROM pg_rewrite WHERE ev_class = pg_class.oid) END
FROM parts JOIN pg_class ON pg_class.oid = parts.oid ORDER BY relname
"""
# Comparisons of two values of one type, which PostgreSQL has itself and which raise for no value.
_COMPARED = """ANY(CAST(ARRAY['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'text',
    'character', 'boolean', 'date', 'uuid', 'timestamp', 'timestamptz'] AS regtype[]))"""
_COMPARISONS = f"""
SELECT amopopr::bigint FROM pg_amop JOIN pg_am ON amopmethod = pg_am.oid
WHERE amname = 'btree' AND amoplefttype = amoprighttype AND amoplefttype = {_COMPARED}
UNION SELECT oid::bigint FROM pg_operator WHERE oprname = '<>' AND oprnamespace = CAST('pg_catalog' AS regnamespace)
    AND oprleft = oprright AND oprleft = {_COMPARED}
"""
# The nodes of a view's tree that raise for no row; those that apply an operator say which.
_NODE, _OPERATOR = re.compile(r"\{([A-Z_]+)"), re.compile(r":opno ([0-9]+)")
_SAFE = frozenset(
    [
        *("QUERY", "TARGETENTRY", "VAR", "RANGETBLENTRY", "RTEPERMISSIONINFO", "RANGETBLREF", "FROMEXPR", "JOINEXPR"),
        *("ALIAS", "SETOPERATIONSTMT", "SORTGROUPCLAUSE", "CONST", "ARRAYEXPR", "RELABELTYPE", "OPEXPR"),
        *("SCALARARRAYOPEXPR", "BOOLEXPR", "NULLTEST", "BOOLEANTEST", "CASEEXPR", "CASEWHEN", "COALESCEEXPR"),
    ]
)


def check_computed(connection: Connection, shape: TableSchema, table: tuple[str, str]) -> None:
    """Refuse a table of which reading a row can raise."""
    named = ".".join(map(POSTGRES.name, table))
    fix = f"store it: CREATE MATERIALIZED VIEW {POSTGRES.name(f'{shape.name}_stored')} AS SELECT * FROM {named}"
    compared: set[int] | None = None
    for part, kind, is_filtered, generated, tree in connection.execute(_PARTS, (named,)).fetchall():
        where = shape.name if part == table[1] else f"{shape.name} reads {part}, which"
        if kind == "f":
            raise DataError(ErrorCode.DATA, f"{where} is read from another server whenever it is asked about", fix=fix)
        if is_filtered:
            what = f"{where} has row security, whose conditions could fail on a row"
            raise DataError(
                ErrorCode.DATA, what, fix="name a role in the source that bypasses it: ALTER ROLE ... BYPASSRLS"
            )
        if generated is not None:
            what = f"{where} computes {generated} whenever it is read, which could fail on a row"
            raise DataError(ErrorCode.DATA, what, fix="make the column STORED")
        if tree is None:
            continue
        if compared is None:
            compared = {number for (number,) in connection.execute(_COMPARISONS).fetchall()}
        if not (set(_NODE.findall(tree)) <= _SAFE and set(map(int, _OPERATOR.findall(tree))) <= compared):
            what = f"{where} is a view that computes more than columns and comparisons, which could fail on a row"
            raise DataError(ErrorCode.DATA, what, fix=fix)
