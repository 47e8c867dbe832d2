"""The extended protocol: prepared statements, and portals, which are statements with their parameters bound.

**Theorem.** A portal is charged at most once. Proof: only `Portal.execute` asks, and it keeps the outcome, so every
later call takes rows from it; Parse, Bind and Describe of a question make plans and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from tacit.query.parameters import MOST_PARAMETERS
from tacit.serve.pgwire import parameters, protocol, results
from tacit.serve.pgwire.bound_values import DecodedValues
from tacit.serve.pgwire.catalog_backend import BoundParameters
from tacit.serve.pgwire.cursors import OpenCursor
from tacit.serve.pgwire.execution import StatementExecutor
from tacit.serve.pgwire.protocol import MessageReader, WireColumn
from tacit.serve.pgwire.results import EncodedRows, StatementResult
from tacit.serve.pgwire.session_views import DroppedViews
from tacit.serve.pgwire.sqlstate import (
    PORTAL_EXISTS,
    PROTOCOL,
    STATEMENT_EXISTS,
    SYNTAX,
    TOO_MUCH,
    UNKNOWN_PORTAL,
    UNKNOWN_STATEMENT,
    UNSUPPORTED,
    WireError,
)
from tacit.serve.pgwire.statements import EMPTY, Statement, StatementKind
from tacit.serve.pgwire.tokens import split_statements, tokenize_statements

_MOST_STATEMENTS = 256
_MOST_TOKENS = 50_000  # of all prepared statements of a session together
_MOST_CHARACTERS = 500_000  # of their texts
_CELL = 60  # bytes of one value of an answer, about
_LONGEST_NAME = 200  # of a statement or a portal
_MOST_PORTALS = 16  # each may hold an answer
_MOST_HELD = 4_000_000  # bytes of rows that they hold for later
_MOST_HELD_BY_ANALYST = 64_000_000  # over all sessions: rows, statements, values and views
_MOST_BYTES = 200_000  # of all values of a portal
_TRANSACTION_ENDS = frozenset({StatementKind.COMMIT, StatementKind.ROLLBACK})
_SHORT = 4_000  # bytes of a statement such as COMMIT or DEALLOCATE, which frees what others keep
_KEEPING = {StatementKind.QUESTION, StatementKind.CATALOG, StatementKind.FETCH}
_KEEPING |= {StatementKind.DECLARE, StatementKind.CREATE_VIEW}
_CURSOR_KINDS = _TRANSACTION_ENDS | {
    StatementKind.DECLARE,
    StatementKind.FETCH,
    StatementKind.CLOSE,
    StatementKind.SET,
    StatementKind.CREATE_VIEW,
    StatementKind.DROP_VIEW,
}


@dataclass(frozen=True)
class PreparedStatement:
    """A statement and the types of its parameters; those of a catalog statement are the given ones until Describe."""

    statement: Statement
    types: tuple[int, ...]


@dataclass
class Portal:
    """A statement with its values, the formats of its columns, and what of its outcome was not yet sent.

    `described` is what the client was told of the columns, and `intervals` whether they had intervals then: what it
    gets must be the same, and where it would not be, nothing is asked. `called` is the name of the statement.
    `bound` is its parameters as they came.
    """

    called: str
    prepared: PreparedStatement
    formats: tuple[bool, ...]
    bound: BoundParameters
    described: tuple[WireColumn, ...] | None = None
    intervals: bool = False
    outcome: StatementResult | None = None
    sent: int = 0

    @property
    def values(self) -> Sequence[Any]:
        """The values of the parameters of a question; PostgreSQL reads those of a catalog statement."""
        is_catalog = self.prepared.statement.subject.kind is StatementKind.CATALOG
        return () if is_catalog else DecodedValues(self.bound)

    @property
    def byte_size(self) -> int:
        """About how many bytes its rows take."""
        return 0 if self.outcome is None else _estimate_bytes(self.outcome)

    async def execute(self, performer: StatementExecutor, most: int) -> Iterable[bytes]:
        """The next rows, `most` of them unless that is 0, and the end or a pause. The first call performs."""
        if self.prepared.statement.kind is StatementKind.EMPTY:
            return [protocol.EMPTY]
        first = self.outcome is None
        if self.outcome is None:
            asks = self.prepared.statement.kind is StatementKind.QUESTION and self.described is not None
            if asks and self.intervals != performer.transaction.settings.intervals:
                raise _result_type_error()
            self.outcome = await performer.outcome(self.prepared.statement, self.values, self.bound)
        outcome, copy = self.outcome, self.prepared.statement.copy
        if copy is not None:
            self.outcome = replace(outcome, rows=())  # asked once, and all of it is sent
            return outcome.encode_copy(copy)
        if outcome.fields is None:
            notices = outcome.encode_notices() if first else []
            return [*notices, protocol.encode_complete(outcome.tag)]
        if outcome.tag == "FETCH" and isinstance(outcome.rows, EncodedRows) and any(self.formats):
            what = "rows about the catalog from a cursor are sent as text"
            raise WireError(UNSUPPORTED, what, "ask for text results, or without a cursor")
        fields = results.apply_formats(outcome.fields, self.formats)
        if self.described is not None and fields != self.described:
            raise _result_type_error()
        left = outcome.rows[self.sent :] if not most else outcome.rows[self.sent : self.sent + most]
        self.sent += len(left)
        rows = results.encode_rows(fields, left)
        notices = outcome.encode_notices() if first else []
        if self.sent < len(outcome.rows):
            return chain(rows, notices, [protocol.SUSPENDED])
        self.outcome, self.sent = replace(outcome, rows=()), 0  # asked once, and all of it is sent
        return chain(rows, notices, [protocol.encode_complete(outcome.write_tag(len(left)))])


def _is_short_command(statement: Statement) -> bool:
    """Whether a statement keeps next to nothing, and may be the one that frees something."""
    return statement.kind not in _KEEPING and statement.byte_size <= _SHORT


def _cursor_bytes(cursor: OpenCursor) -> int:
    """About how many bytes the rows of a cursor take."""
    return 0 if cursor.outcome is None else _estimate_bytes(cursor.outcome)


def _estimate_bytes(outcome: StatementResult) -> int:
    """About how many bytes rows take."""
    rows = outcome.rows
    return rows.size if isinstance(rows, EncodedRows) else _CELL * len(rows) * len(outcome.fields or ())


def _name(body: MessageReader) -> str:
    """The name of a statement or portal. A session keeps many, so each is short."""
    found = body.text()
    if len(found) > _LONGEST_NAME:
        what = f"a name has {len(found):,} characters; {_LONGEST_NAME} is the most"
        raise WireError(TOO_MUCH, what, "choose a shorter one")
    return found


def _count(body: MessageReader) -> int:
    """How many parameters follow, before any of them is read."""
    found = body.count()
    if found > MOST_PARAMETERS:
        what = f"there are {found:,} parameters; {MOST_PARAMETERS:,} is the most"
        raise WireError(TOO_MUCH, what, "ask with fewer")
    return found


def _result_type_error() -> WireError:
    """As PostgreSQL says it, so that drivers prepare the statement again by themselves."""
    what = "cached plan must not change result type"
    return WireError(UNSUPPORTED, what, "prepare the statement again", routine="RevalidateCachedQuery")


@dataclass
class ExtendedProtocol:
    """The prepared statements and the portals of a session."""

    performer: StatementExecutor
    statements: dict[str, PreparedStatement] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    described: dict[str, tuple[tuple[WireColumn, ...] | None, bool]] = field(default_factory=dict)
    held: int = 0  # bytes of all that is kept, as counted in `performer.held`
    rows: int = 0  # bytes of rows among them

    def estimate_rereading(self, kind: bytes, body: MessageReader) -> float:
        """How many messages more Describe and Execute count as, for the statement and values that they read again."""
        if kind not in {b"D", b"E"}:
            return 0.0
        ahead = body.copy()
        try:
            of = ahead.take(1) if kind == b"D" else b"P"
            name = ahead.text()
        except WireError:
            return 0.0  # it is refused where it is handled
        if of == b"S":
            prepared = self.statements.get(name)
            if prepared is None:
                return 0.0
            return self.performer.estimate_rereading(prepared.statement, BoundParameters(prepared.types))
        portal = self.portals.get(name)
        if portal is None or portal.outcome is not None:
            return 0.0
        return self.performer.estimate_rereading(portal.prepared.statement, portal.bound)

    def parse(self, body: MessageReader) -> bytes:
        """Prepare a statement. Free."""
        name, text = _name(body), body.text()
        given = [body.int32() & 0xFFFFFFFF for _ in range(_count(body))]
        body.end()
        if name and name in self.statements:
            raise WireError(STATEMENT_EXISTS, "there is a prepared statement of that name", "close it first")
        if len(self.statements) >= _MOST_STATEMENTS:
            raise WireError(TOO_MUCH, f"there are {_MOST_STATEMENTS} prepared statements already", "close some")
        parts = split_statements(tokenize_statements(text))
        if len(parts) > 1:
            raise WireError(SYNTAX, "there are several statements in one that is to be prepared", "send one at a time")
        made = self.performer.classify(text, parts[0]) if parts else EMPTY
        if made.kind not in {StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO}:
            self.performer.transaction.check()
        others = [each.statement for known, each in self.statements.items() if known != name]
        words = sum(len(each.tokens) for each in (*others, made))
        if words > _MOST_TOKENS or sum(len(each.text) for each in (*others, made)) > _MOST_CHARACTERS:
            raise WireError(TOO_MUCH, "the prepared statements are too long together", "close some")
        self.described.pop(name, None)
        catalog = made.subject.kind is StatementKind.CATALOG  # whose types PostgreSQL finds
        types = tuple(given) if catalog else parameters.infer_types(made.tokens, given, self.performer.policy)
        self.statements[name] = PreparedStatement(made, types)
        if not _is_short_command(made):
            self._check_kept(partial(self._forget, name))
        return protocol.PARSED

    def bind(self, body: MessageReader) -> bytes:
        """Give a statement its values. Free."""
        name, called = _name(body), _name(body)
        formats = body.formats()
        values = [body.value() for _ in range(_count(body))]
        wanted = body.formats()
        body.end()
        prepared = self._statement(called)
        catalog = prepared.statement.subject.kind is StatementKind.CATALOG  # whose parameters PostgreSQL reads
        if not catalog and (len(values) != len(prepared.types) or len(formats) not in {0, 1, len(values)}):
            what = f"there are {len(values)} values for {len(prepared.types)} parameters"
            raise WireError(PROTOCOL, what, "give one value for each parameter")
        if sum(len(value) for value in values if value is not None) > _MOST_BYTES:
            raise WireError(TOO_MUCH, f"the values have more than {_MOST_BYTES:,} bytes", "give shorter ones")
        if name and name in self.portals:
            raise WireError(PORTAL_EXISTS, "there is a portal of that name", "close it first")
        if len(self.portals) >= _MOST_PORTALS:
            raise WireError(TOO_MUCH, f"there are {_MOST_PORTALS} portals already", "close some")
        portal = Portal(called, prepared, wanted, BoundParameters(prepared.types, formats, tuple(values), wanted))
        if not catalog:
            DecodedValues(portal.bound).check()
        told, portal.intervals = self.described.get(called, (None, False))
        portal.described = None if told is None else results.apply_formats(told, wanted)
        self.portals[name] = portal
        if not _is_short_command(prepared.statement):
            self._check_kept(partial(self.portals.pop, name))
        return protocol.BOUND

    async def describe(self, body: MessageReader) -> bytes:
        """The parameters and columns of a statement, or the columns of a portal. Free."""
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._statement(name)
            types = prepared.types
            if prepared.statement.subject.kind is StatementKind.CATALOG:
                types, fields = await self.performer.describe_catalog(prepared.statement.subject, types)
                fields = None if prepared.statement.kind is StatementKind.DECLARE else fields
                self.statements[name] = replace(prepared, types=types)
            else:
                examples = parameters.example_values(prepared.statement.tokens, types) if types else ()
                fields = await self.performer.fields(prepared.statement, examples)
            self.described[name] = fields, self.performer.transaction.settings.intervals
            self._check_kept(partial(self.described.pop, name))
            shown = protocol.NO_DATA if fields is None else protocol.encode_row_description(fields)
            return protocol.encode_parameter_description(types) + shown
        if kind != b"P":
            raise WireError(PROTOCOL, "only statements and portals are described")
        if name not in self.portals and name in self.performer.cursors.opened:
            return protocol.encode_row_description(self.performer.cursors.opened[name].fields)
        portal = self._portal(name)
        if portal.prepared.statement.kind is StatementKind.CATALOG and portal.outcome is None:
            portal.outcome = await self.performer.outcome(portal.prepared.statement, (), portal.bound)  # free, and once
            self._check_held(name)
        found = (
            await self.performer.fields(portal.prepared.statement, portal.values)
            if portal.outcome is None
            else portal.outcome.fields
        )
        if found is None:
            return protocol.NO_DATA
        portal.described = results.apply_formats(found, portal.formats)
        portal.intervals = self.performer.transaction.settings.intervals
        if self.statements.get(portal.called) is portal.prepared:  # drivers keep the columns for its next portals
            self.described[portal.called] = found, portal.intervals
            self._check_kept(partial(self.described.pop, portal.called))
        return protocol.encode_row_description(portal.described)

    async def execute(self, body: MessageReader) -> Iterable[bytes]:
        """Run a portal, or go on with it."""
        name, most = body.text(), body.int32()
        body.end()
        portal = self._portal(name)
        messages = await portal.execute(self.performer, max(0, most))
        self.check_cursors(portal.prepared.statement)
        self._check_held(name)
        self.forget_statements(portal.prepared.statement)
        return messages

    def _check_held(self, name: str) -> None:
        """Forget the portal of this name where all of them hold too much, or those of all sessions of the analyst."""
        total = self._count_held()
        own = self.portals[name].byte_size
        if own and own < self.rows and self.rows > _MOST_HELD:
            most = _MOST_HELD
        elif own and total > _MOST_HELD_BY_ANALYST:
            most = _MOST_HELD_BY_ANALYST
        else:
            return
        del self.portals[name]
        self._count_held()
        what = f"the portals hold more than {most // 1_000_000:,} MB of rows that were not fetched"
        raise WireError(TOO_MUCH, what, "fetch all rows of a portal at once, or close some")

    def check_cursors(self, done: Statement) -> None:
        """After a statement about cursors or views, count what they hold, and forget its own where it is too much."""
        if done.kind not in _CURSOR_KINDS:
            return
        total, cursors = self._count_held(), self.performer.cursors
        if done.declaration is not None:
            self._check_kept(partial(cursors.close, done.declaration.name))
        elif done.view is not None:
            self._check_kept(partial(self.performer.views.drop, DroppedViews((done.view.name,))))
        if done.fetch is None or done.fetch.name not in cursors.opened:
            return
        own = _cursor_bytes(cursors.opened[done.fetch.name])
        if own < self.rows and self.rows > _MOST_HELD:
            most = _MOST_HELD
        elif total > _MOST_HELD_BY_ANALYST:
            most = _MOST_HELD_BY_ANALYST
        else:
            return
        cursors.close(done.fetch.name)
        self._count_held()
        what = f"the cursors and portals hold more than {most // 1_000_000:,} MB of rows"
        raise WireError(TOO_MUCH, what, "close some cursors")

    def _check_kept(self, forget: Callable[[], object]) -> None:
        """Forget what was kept last where all sessions of the analyst hold too much."""
        if self._count_held() <= _MOST_HELD_BY_ANALYST:
            return
        forget()
        self._count_held()
        most = _MOST_HELD_BY_ANALYST // 1_000_000
        what = f"the sessions of this analyst hold more than {most:,} MB of statements, values, views and rows"
        raise WireError(TOO_MUCH, what, "close statements and portals, or sessions")

    def _count_held(self) -> int:
        """Count what this session holds for later; the bytes that all sessions of the analyst hold."""
        performer, who = self.performer, self.performer.credential.name
        cursors, portals = performer.cursors.opened.values(), self.portals.values()
        self.rows = sum(each.byte_size for each in portals) + sum(map(_cursor_bytes, cursors))
        now = self.rows + performer.views.byte_size
        now += sum(each.bound.byte_size for each in portals) + sum(each.byte_size for each in cursors)
        now += sum(each.statement.byte_size for each in self.statements.values())
        now += sum(each.byte_size for fields, _ in self.described.values() for each in fields or ())
        total = self.performer.held.get(who, 0) + now - self.held
        self.held = now
        self.performer.held[who] = total
        if not total:
            del self.performer.held[who]
        return total

    def close(self, body: MessageReader) -> bytes:
        """Forget a statement or a portal."""
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            self._forget(name)
        elif kind == b"P":
            self.portals.pop(name, None)
        else:
            raise WireError(PROTOCOL, "only statements and portals are closed")
        self._count_held()
        return protocol.CLOSED

    def forget_statements(self, done: Statement) -> None:
        """After DEALLOCATE and DISCARD, prepared statements are forgotten."""
        if done.forgets is not None:
            for each in [done.forgets] if done.forgets else list(self.statements):
                self._forget(each)
            self._count_held()

    def _forget(self, name: str) -> None:
        self.statements.pop(name, None)
        self.described.pop(name, None)

    def end_transaction(self) -> None:
        """Portals end with their transaction."""
        if self.portals:
            self.portals.clear()
            self._count_held()

    def end(self) -> None:
        """Forget everything now: the garbage collector may be long in coming."""
        self.end_transaction()
        self.performer.cursors.close("")
        self.performer.views.end()
        self.statements.clear()
        self.described.clear()
        self._count_held()

    def _statement(self, name: str) -> PreparedStatement:
        if name not in self.statements:
            raise WireError(UNKNOWN_STATEMENT, "there is no prepared statement of that name", "prepare it")
        return self.statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise WireError(UNKNOWN_PORTAL, "there is no portal of that name", "bind it")
        return self.portals[name]
