"""A session: what a client says after it was let in, message by message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import chain

from tacit.serve.pgwire import protocol, results
from tacit.serve.pgwire.credential import WireCredential
from tacit.serve.pgwire.execution import BYTES_PER_MESSAGE, StatementExecutor, WireServices
from tacit.serve.pgwire.prepared_statements import ExtendedProtocol
from tacit.serve.pgwire.protocol import MessageReader, MessageStream
from tacit.serve.pgwire.sqlstate import (
    INTERNAL,
    STOPPING,
    WireError,
    multiple_questions_error,
    protocol_error,
    unsupported_error,
)
from tacit.serve.pgwire.statements import Statement
from tacit.serve.pgwire.tokens import split_statements, tokenize_statements
from tacit.serve.pgwire.transaction import IDLE

_log = logging.getLogger("tacit.serve")
_BATCH = 200  # messages handed over before the client must have taken most of them
_SIZE = 65_536  # bytes of them
_EXTENDED = frozenset({b"P", b"B", b"D", b"E", b"C"})


class WireSession:
    """One client. Its errors are its own: whatever it sends, it gets an error or is closed, and others go on.

    **Theorem.** Between two messages of a session, or two statements of one message, everything else that is ready is
    served once; and an analyst's messages are served at the rate of `WireServices.messages`, however many connections
    they come through. Proof: `_wait` comes before each, gives way to the loop even where there is no delay, and charges
    the throttle of the analyst.

    **Rule.** A message is charged for what it makes the server read: its own bytes, and those that were sent before it
    and are read again for it. A statement without parameters is edited once, and not charged again.
    """

    def __init__(self, services: WireServices, channel: MessageStream, performer: StatementExecutor) -> None:
        self._services = services
        self._channel = channel
        self._performer = performer
        self._transaction = performer.transaction
        self._extended = ExtendedProtocol(performer)
        self._skipping = False  # after an error in the extended protocol, until Sync
        self._reported = self._transaction.settings.reported_settings
        self.idle = True
        self.stopping = False

    @property
    def credential(self) -> WireCredential:
        """What it was opened with."""
        return self._performer.credential

    def cancel(self) -> None:
        """Stop waiting for what runs."""
        self._performer.cancel()

    def end(self) -> None:
        """Forget what the client has left: prepared statements, and rows that it did not fetch."""
        self._extended.end()

    async def run(self) -> None:
        """Serve the client until it goes away, or must."""
        self._ready()
        await self._channel.flush()
        while True:
            if self.stopping:
                raise WireError(STOPPING, "the server is stopping", "connect again in a moment", fatal=True)
            self.idle = True
            kind, body = await self._channel.message()
            if kind == b"X":
                return
            again = 0.0 if self._skipping else self._extended.estimate_rereading(kind, body)
            await self._wait(1 + len(body) / BYTES_PER_MESSAGE + again)
            self.idle = False
            self.credential.check()
            if self._skipping and kind != b"S":
                continue
            await self._handle(kind, body)
            await self._channel.settle()

    async def _wait(self, cost: float) -> None:
        await asyncio.sleep(self._services.messages.delay(self.credential.name, cost))

    async def _handle(self, kind: bytes, body: MessageReader) -> None:
        try:
            if kind == b"Q":
                await self._simple(body)
            elif kind in _EXTENDED:
                await self._send(await self._step(kind, body))
            elif kind == b"S":
                self._skipping = False
                self._ready()
                await self._channel.flush()
            elif kind == b"H":
                await self._channel.flush()
            elif kind in {b"d", b"c", b"f"}:
                pass  # what is left of a COPY that was refused
            elif kind == b"F":
                raise unsupported_error("a function call", "SELECT ...")
            else:
                raise protocol_error("a message of a kind that is not known")
        except WireError as error:
            if error.fatal:
                raise
            await self._complain(error, kind)
        except (protocol.Disconnected, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the client learns only that it was
            # Neither text nor values go to the log: the kind of the error and where it was raised are enough.
            _log.error("a message of kind %r failed: %s", kind, type(error).__name__)
            await self._complain(WireError(INTERNAL, "the server failed at this", "tell the data owner"), kind)

    async def _complain(self, error: WireError, kind: bytes) -> None:
        self._transaction.fail()
        self._channel.send(protocol.encode_error(error))
        if kind in _EXTENDED:
            self._skipping = True
        else:
            self._ready()
        await self._channel.flush()

    def _ready(self) -> None:
        """Say that the next one may come; and before that, what changed of the settings that clients follow."""
        now = self._transaction.settings.reported_settings
        if now is not self._reported:
            changed = [(name, value) for name, value in now.items() if value != self._reported[name]]
            self._channel.hold(*(protocol.encode_parameter_status(name, value) for name, value in changed))
            self._reported = now
        if self._transaction.status == IDLE:
            self._extended.end_transaction()
        self._channel.send(protocol.encode_ready(self._transaction.status))

    async def _step(self, kind: bytes, body: MessageReader) -> Iterable[bytes]:
        match kind:
            case b"P":
                return [self._extended.parse(body)]
            case b"B":
                return [self._extended.bind(body)]
            case b"D":
                return [await self._extended.describe(body)]
            case b"E":
                return await self._extended.execute(body)
            case _:
                return [self._extended.close(body)]

    async def _simple(self, body: MessageReader) -> None:
        """A string of statements, of which one may be a question. All are read before the first is performed."""
        text = body.text()
        body.end()
        parts = [self._performer.classify(text, part) for part in split_statements(tokenize_statements(text))]
        questions = sum(part.is_question for part in parts)
        if questions > 1:
            raise multiple_questions_error(questions)
        if not parts:
            self._channel.send(protocol.EMPTY)
        for place, part in enumerate(parts):
            cost = bool(place) + self._performer.estimate_fetching(part)
            if cost:
                await self._wait(cost)
            await self._perform(part)
        self._ready()
        await self._channel.flush()

    async def _perform(self, part: Statement) -> None:
        outcome = await self._performer.outcome(part)
        self._extended.check_cursors(part)
        self._extended.forget_statements(part)
        if part.copy is not None:
            await self._send(outcome.encode_copy(part.copy))
            return
        first = [] if outcome.fields is None else [protocol.encode_row_description(outcome.fields)]
        rows = results.encode_rows(outcome.fields or (), outcome.rows)
        last = outcome.encode_notices()
        await self._send(chain(first, rows, last, [protocol.encode_complete(outcome.command_tag)]))

    async def _send(self, messages: Iterable[bytes]) -> None:
        """Send messages, never far ahead of a client that takes its time. The last ones go with what follows them."""
        waiting: list[bytes] = []
        size = 0
        for message in messages:
            waiting.append(message)
            size += len(message)
            if len(waiting) == _BATCH or size > _SIZE:
                self._channel.send(*waiting)
                waiting.clear()
                size = 0
                await self._channel.flush()
                await asyncio.sleep(0)  # others have their turn, however quickly this client takes its rows
        self._channel.hold(*waiting)
