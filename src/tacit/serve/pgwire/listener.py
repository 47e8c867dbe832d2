"""The listener: connections, TLS, who is there, cancel requests, and the stop.

Nothing of the data is reachable before SCRAM has succeeded, messages are small until then, and it must be over soon.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from tacit.errors import Refused
from tacit.serve.addresses import Network, is_trusted
from tacit.serve.authentication import Authenticator
from tacit.serve.connections import Connections, ServedConnection
from tacit.serve.descriptors import connections_allowed
from tacit.serve.pgwire import protocol
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.pgwire.credential import WireCredential
from tacit.serve.pgwire.execution import StatementExecutor, WireServices
from tacit.serve.pgwire.protocol import CANCEL, GSS, TLS, Disconnected, MessageReader, MessageStream
from tacit.serve.pgwire.scram import ScramExchange, channel_binding_hash
from tacit.serve.pgwire.session import WireSession
from tacit.serve.pgwire.settings import start_settings
from tacit.serve.pgwire.sqlstate import CONNECTIONS, FORBIDDEN, PASSWORD, STOPPING, WireError, protocol_error
from tacit.serve.pgwire.startup_settings import read_startup_settings
from tacit.serve.pgwire.throttle import Throttle
from tacit.serve.pgwire.transaction import Transaction
from tacit.serve.proxy_protocol import NotProxied, client_of
from tacit.serve.service import CuratorService

_log = logging.getLogger("tacit.serve")

AUTHENTICATION_TIMEOUT = 15.0  # to be let in
_MESSAGES = 10  # a second, for each request a second that an analyst may make: a question takes up to seven
_LEAST_BURST = 100  # messages at once, however few requests are allowed
_SWEEP = 1.0  # seconds between two looks for sessions whose password was changed
_DATABASE = "tacit"


class ConnectionHandler:
    """Speaks PostgreSQL's protocol for a service. `certificate` (DER) adds channel binding to SCRAM."""

    def __init__(
        self,
        service: CuratorService,
        authenticator: Authenticator,
        tls: ssl.SSLContext | None = None,
        certificate: bytes | None = None,
        connections: Connections | None = None,
        proxies: Sequence[Network] = (),
        catalog: Catalog | None = None,
    ) -> None:
        self._connections = Connections(connections_allowed()) if connections is None else connections
        self._proxies = proxies
        messages = _MESSAGES * service.rate
        self._services = WireServices(
            service, catalog or Catalog(service.policy), Throttle(messages, max(_LEAST_BURST, 2 * messages))
        )
        self._authenticator = authenticator
        self._tls = tls
        self._binding = None if tls is None or certificate is None else channel_binding_hash(certificate)
        self._sessions: dict[tuple[int, int], WireSession] = {}
        self._tasks: dict[asyncio.Task[Any], WireSession | None] = {}
        self._endings: dict[asyncio.Task[Any], WireError] = {}  # of tasks that were canceled for a reason of their own
        self._numbers = 0

    @property
    def connections(self) -> int:
        """How many connections there are, strangers among them."""
        return len(self._tasks)

    @property
    def catalog(self) -> Catalog:
        """What answers catalog statements."""
        return self._services.catalog

    def listeners(self, host: str, port: int) -> list[socket.socket]:
        """Sockets that listen on every address of a host, their connections counted."""
        found: list[socket.socket] = []
        for family, *_, address in dict.fromkeys(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)):
            same = found[0].getsockname()[1] if found else port  # 0 is any port, and one for all addresses
            plain = socket.create_server((address[0], same), family=family, backlog=1024)
            found.append(self._connections.listen(plain, self._proxies))
        return found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end. Never raises, whatever is sent."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = None
        channel = MessageStream(reader, writer)
        writers = [writer]
        try:
            await self._serve(channel, writers, task)
        except WireError as error:
            channel.send(protocol.encode_error(error))
            with contextlib.suppress(Disconnected):
                await channel.flush()
        except (Disconnected, ConnectionError, ssl.SSLError, TimeoutError):
            pass
        except asyncio.CancelledError:
            stopping = WireError(STOPPING, "the server is stopping", "connect again", fatal=True)
            channel.send(protocol.encode_error(self._endings.get(task, stopping)))
        finally:
            del self._tasks[task]
            self._endings.pop(task, None)
            for each in reversed(writers):
                each.close()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                async with asyncio.timeout(1):
                    await channel.writer.wait_closed()

    async def _serve(
        self, channel: MessageStream, writers: list[asyncio.StreamWriter], task: asyncio.Task[Any]
    ) -> None:
        _set_options(channel.writer)
        connection = self._connections.of_transport(channel.writer)
        async with asyncio.timeout(AUTHENTICATION_TIMEOUT):
            address = await self._caller(channel, connection)
            options = await self._start(channel, writers)
            if options is None:
                return
            credential = await self._let_in(channel, options, address)
        if connection is not None and not connection.let_in(credential.name):
            what = f"{credential.name} has too many connections open"
            raise WireError(CONNECTIONS, what, "close some of them", fatal=True)
        session = self._session(channel, credential, options)
        if connection is not None:
            connection.is_busy = lambda: not session.idle
        key = (self._numbers, secrets.randbits(32))
        self._sessions[key], self._tasks[task] = session, session
        channel.limit = protocol.MAX_MESSAGE_BYTES
        channel.send(protocol.encode_backend_key(*key))
        try:
            await session.run()
        finally:
            del self._sessions[key]
            session.end()

    async def _caller(self, channel: MessageStream, connection: ServedConnection | None) -> str:
        """The address of whoever connects, by a proxy's word where it is one that is believed."""
        address = _address(channel.writer)
        if is_trusted(address, self._proxies):
            try:
                address = await client_of(channel.reader, address)
            except NotProxied:
                raise Disconnected from None
            if connection is not None:
                connection.came_from(address)
        return address

    async def _start(self, channel: MessageStream, writers: list[asyncio.StreamWriter]) -> dict[str, str] | None:
        """The options of the startup message, after TLS where there is some; None where there is nothing to start."""
        code, body = await channel.startup()
        if code == GSS:
            channel.send(b"N")
            code, body = await channel.startup()
        if code == TLS:
            body.end()
            if self._tls is None:
                channel.send(b"N")
            else:
                writers.append(await _start_tls(channel, self._tls))
            code, body = await channel.startup()
            if code == GSS:
                channel.send(b"N")
                code, body = await channel.startup()
        if code == CANCEL:
            self._cancel(body)
            return None
        if code >> 16 != 3:
            raise protocol_error("this version of the protocol is not spoken; 3.0 is")
        if self._tls is not None and len(writers) == 1:
            raise WireError(FORBIDDEN, "connections are encrypted here", "connect with sslmode=require", fatal=True)
        options = _options(body)
        unknown = [name for name in options if name.startswith("_pq_.")]
        if code & 0xFFFF or unknown:
            channel.send(protocol.encode_negotiation(unknown))
        return options

    def _cancel(self, body: MessageReader) -> None:
        """Cancel what the session with this secret runs. The reply does not say whether there is one."""
        number, secret = body.int32(), body.int32() & 0xFFFFFFFF
        session = self._sessions.get((number, secret))
        if session is not None:
            session.cancel()

    async def _let_in(self, channel: MessageStream, options: dict[str, str], address: str) -> WireCredential:
        """SCRAM. A name that is not known takes the same steps and gets the same error as a wrong password."""
        name = options.get("user", "")
        verifier = await asyncio.to_thread(self._authenticator.verifier, name)
        exchange = ScramExchange(verifier, self._binding)
        channel.send(protocol.encode_mechanisms(exchange.mechanisms))
        body = await _response(channel)
        mechanism = body.text()
        first = body.value()
        body.end()
        if first is None:
            raise protocol_error("the first message of SCRAM is missing")
        channel.send(protocol.encode_authentication(11, exchange.first(mechanism, first)))
        final = (await _response(channel)).rest()
        try:
            async with self._authenticator.attempts.trying(name, address) as tried:
                proved = exchange.final(final)
                person = self._authenticator.person(name)
                if proved is not None and person is not None:
                    tried.record_success()
        except Refused as error:
            raise WireError(FORBIDDEN, error.what, error.fix, fatal=True) from None
        if proved is None or person is None:
            _log.warning("a wrong name or password from %s", address)
            hint = "check both; the data owner makes new ones: tacit analyst rotate"
            raise WireError(PASSWORD, "the name or the password is wrong", hint, fatal=True)
        credential = WireCredential(self._authenticator, name, verifier)
        credential.check()
        channel.send(protocol.encode_authentication(12, proved), protocol.encode_authentication(0))
        return credential

    def _session(self, channel: MessageStream, credential: WireCredential, options: dict[str, str]) -> WireSession:
        settings = start_settings(credential.name, self.catalog.version)
        given, source = read_startup_settings(options)
        try:
            for name, value in given:
                settings = settings.with_value(name, value)
        except WireError as error:
            error.fatal = True
            raise
        self._numbers = self._numbers % 0x7FFFFFFF + 1
        for name, value in settings.reported_settings.items():
            channel.send(protocol.encode_parameter_status(name, value))
        database = options.get("database", "") or _DATABASE
        performer = StatementExecutor(self._services, credential, Transaction(settings, source), database)
        return WireSession(self._services, channel, performer)

    def stop(self) -> None:
        """End the sessions that wait for their client, now; the others after what they do."""
        for task, session in list(self._tasks.items()):
            if session is None or session.idle:
                task.cancel()
            else:
                session.stopping = True

    async def sweep(self) -> None:
        """End idle sessions of analysts who were let out or have a new password. The others end at their next message.

        It never returns.
        """
        while True:
            await asyncio.sleep(_SWEEP)
            for task, session in list(self._tasks.items()):
                if session is not None and session.idle:
                    try:
                        session.credential.check()
                    except WireError as error:
                        self._endings[task] = error
                        task.cancel()

    async def wait_stopped(self) -> None:
        """Wait until every connection has ended."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


class Listener:
    """What `start_listener` returns. It is used as an asyncio.Server is: `sockets`, `close`, `wait_closed`."""

    def __init__(self, wire: ConnectionHandler, servers: Sequence[asyncio.Server]) -> None:
        self.wire = wire
        self._servers = servers
        self._sweeping = asyncio.create_task(wire.sweep())

    @property
    def sockets(self) -> tuple[Any, ...]:
        """The sockets that listen."""
        return tuple(each for server in self._servers for each in server.sockets)

    def close(self) -> None:
        """Take no more connections, and end those that are there as soon as their question is answered."""
        for server in self._servers:
            server.close()
        self._sweeping.cancel()
        self.wire.stop()

    async def wait_closed(self, patience: float | None = None) -> None:
        """Wait until all have ended, for `patience` seconds at most; then end the catalog, however long that takes."""
        try:
            async with asyncio.timeout(patience):
                await self.wire.wait_stopped()
                for server in self._servers:
                    await server.wait_closed()
        except TimeoutError:
            pass
        finally:
            await self.wire.catalog.close()


async def start_listener(
    service: CuratorService,
    authenticator: Authenticator,
    host: str = "127.0.0.1",
    port: int = 5433,
    tls: ssl.SSLContext | None = None,
    *,
    certificate: bytes | None = None,
    connections: Connections | None = None,
    proxies: Sequence[Network] = (),
    catalog: Catalog | None = None,
) -> Listener:
    """Listen for PostgreSQL clients. Catalog statements are answered by `catalog`, or by one that is made here.

    `proxies` must speak the PROXY protocol, and are believed.
    """
    wire = ConnectionHandler(service, authenticator, tls, certificate, connections, proxies, catalog)
    servers = [await asyncio.start_server(wire.serve, sock=each) for each in wire.listeners(host, port)]
    wire.catalog.warm()
    return Listener(wire, servers)


async def _start_tls(channel: MessageStream, tls: ssl.SSLContext) -> asyncio.StreamWriter:
    """Go on under TLS, with a reader of its own: what was sent in the clear before is not read as if it was not."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    channel.send(b"S")
    transport = await loop.start_tls(
        channel.writer.transport, protocol, tls, server_side=True, ssl_handshake_timeout=AUTHENTICATION_TIMEOUT
    )
    if transport is None:
        raise Disconnected
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    channel.reader, channel.writer = reader, writer
    return writer


def _set_options(writer: asyncio.StreamWriter) -> None:
    """Notice a client that vanished, and send at once: an error and what follows it are two writes."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _address(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


async def _response(channel: MessageStream) -> MessageReader:
    kind, body = await channel.message()
    if kind != b"p":
        raise protocol_error("an answer to the authentication was expected")
    return body


def _options(body: MessageReader) -> dict[str, str]:
    """Names and values until an empty name."""
    options: dict[str, str] = {}
    while name := body.text():
        options[name] = body.text()
    return options
