"""`tacit serve`: one process, one event loop, two listeners, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.curator.curator import Curator
from tacit.curator.curator import open as open_curator
from tacit.errors import ParameterError
from tacit.extras import missing_extra
from tacit.loops import has_compiler, load_compiler
from tacit.serve.addresses import LOOPBACK, Network
from tacit.serve.alert_webhook import AlertWebhook
from tacit.serve.authentication import Authenticator, credentials_path
from tacit.serve.budget_alerts import THRESHOLDS, BudgetAlerts
from tacit.serve.connections import Connections
from tacit.serve.descriptors import connections_allowed
from tacit.serve.epoch_change import EpochChange
from tacit.serve.fit_requests import MAX_FIT_ROWS
from tacit.serve.log_redaction import redact_logs
from tacit.serve.openid.configuration import ISSUER, OpenIdConfiguration
from tacit.serve.service import MAX_CELLS, MAX_ENGINE_SECONDS, CuratorService
from tacit.serve.tls import Certificate, is_loopback

if TYPE_CHECKING:
    import uvicorn

    from tacit.serve.openid.sign_in import OpenIdSignIn
    from tacit.serve.pgwire import Listener

_log = logging.getLogger("tacit.serve")
_THREAD_SWITCH_INTERVAL = (
    0.0001  # seconds a thread computes before another may: a repeat has some thirty calls that wait so long
)
_LAST_WORDS = 1.0  # seconds for sessions to end in, after the last question
_GC_THRESHOLDS = (10_000, 10, 10)  # a million new objects before all are looked through, while nobody else can work


@dataclass(frozen=True)
class ServerConfig:
    """Where to listen, and how. A port of 0 is any free one; None is no listener.

    `proxied` says that a proxy on the way to this server speaks TLS: plain connections are then accepted from
    elsewhere. The word of `proxies` is taken for who calls over HTTP, and over PostgreSQL's protocol where they speak
    the PROXY protocol; `proxied` without any is one on this machine. `rate` is how many requests a second a person may
    make, `cells` the most values of an answer, `fit_rows` to about how many rows models are fitted, `limit` the seconds
    that the engine may work on a question, `connections` how many there may be, by default what the system has
    descriptors for. `postgres_programs` is the folder of the PostgreSQL programs that answer statements about the
    catalog; without it those of the extra do. `alert_at` are the shares of a budget at which the owner is alerted, and
    `webhook` is where that is posted to. `openid` is the identity provider with which people sign in to the console;
    without `passwords` with nothing else.
    """

    host: str = "127.0.0.1"
    http: int | None = 8080
    postgres: int | None = 5433
    certificate: Certificate | None = None
    proxied: bool = False
    workers: int = 4
    seats: int = 64
    rate: float = 50.0
    patience: float = 10.0
    proxies: tuple[Network, ...] = ()
    proxy_protocol: bool = False
    cells: int = MAX_CELLS
    fit_rows: int = MAX_FIT_ROWS
    limit: float = MAX_ENGINE_SECONDS
    connections: int | None = None
    postgres_programs: Path | None = None
    alert_at: tuple[Fraction, ...] = THRESHOLDS
    webhook: AlertWebhook | None = None
    openid: OpenIdConfiguration | None = None
    passwords: bool = True

    def __post_init__(self) -> None:
        if self.certificate is None and not self.proxied and not is_loopback(self.host):
            what = f"keys and answers would travel to {self.host} for all to read"
            fix = "--tls-cert FILE --tls-key FILE, or --tls-self, or --insecure-behind-proxy where a proxy speaks TLS"
            raise ParameterError("host", what, fix=fix)
        if self.http is None and self.postgres is None:
            raise ParameterError("http", "there is nothing to listen on", fix="leave out --no-http or --no-postgres")
        if self.postgres_programs is not None and not _has_programs(self.postgres_programs):
            what = f"{self.postgres_programs} does not hold the programs postgres, initdb and pg_resetwal"
            fix = "name their folder, such as --postgres-programs /usr/lib/postgresql/16/bin"
            raise ParameterError("postgres-programs", what, fix=fix)
        if self.proxy_protocol and not self.trusted_proxies:
            what = "no trusted proxy is named, so the PROXY protocol cannot be used"
            raise ParameterError("proxy-protocol", what, fix="name the proxy: --proxy 192.0.2.7")
        if self.openid is None and not self.passwords:
            what = "no identity provider is named, so nobody could sign in"
            raise ParameterError("sign-in", what, fix=f"{ISSUER}=https://login.example.org tacit serve --sign-in oidc")
        if self.openid is not None and self.http is not None and self.openid.is_secure != self.is_secure:
            what = "is https, and this server speaks TLS neither itself nor by a proxy"
            fix = "--tls-cert FILE --tls-key FILE, or --insecure-behind-proxy where a proxy speaks TLS"
            if self.is_secure:
                what, fix = "is http, and browsers reach this server over TLS", "--public-url https://tacit.example.org"
            raise ParameterError("public-url", what, fix=fix)

    @property
    def is_secure(self) -> bool:
        """Whether callers come over TLS."""
        return self.certificate is not None or self.proxied

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The proxies whose word is taken for who calls."""
        return self.proxies or (LOOPBACK if self.proxied else ())


@dataclass(frozen=True)
class ListenAddresses:
    """Where the listeners are, once they are."""

    http: str
    postgres: str


@dataclass(frozen=True)
class LeftRunning:
    """What still runs in threads after a stop: how many questions, and whether a new epoch is being opened."""

    questions: int
    is_opening_epoch: bool


def _has_programs(folder: Path) -> bool:
    from tacit.serve.pgwire.catalog_programs import has_programs

    return has_programs(folder)


def run_server(policy: Path, settings: ServerConfig, ready: Callable[[ListenAddresses], None]) -> None:
    """Serve until a signal to stop. `ready` receives the addresses."""
    redact_logs()
    sys.setswitchinterval(_THREAD_SWITCH_INTERVAL)
    with open_curator(policy) as curator:
        authenticator = Authenticator(credentials_path(policy.absolute()), curator.policy)
        gc.collect()
        gc.freeze()  # what is here stays, and need not be looked through while people wait
        gc.set_threshold(*_GC_THRESHOLDS)
        try:
            left = asyncio.run(serve_curator(curator, authenticator, settings, ready, policy=policy))
        finally:
            gc.unfreeze()
        if left.questions:
            # Charges are on the ledger; whoever asks again goes on with them.
            running = left.questions
            _log.warning("stopped with %d questions running: they are charged, and asking again resumes them", running)
        if left.is_opening_epoch:
            _log.warning("stopped while a new epoch was being opened: the next start opens it")
        if left.questions or left.is_opening_epoch:  # threads cannot be stopped otherwise
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)


async def serve_curator(
    curator: Curator,
    authenticator: Authenticator,
    settings: ServerConfig,
    ready: Callable[[ListenAddresses], None],
    stop: asyncio.Event | None = None,
    policy: Path | None = None,
) -> LeftRunning:
    """Serve until `stop` is set or a signal comes; then what still runs.

    Where there is a file of the policy, SIGHUP says that it has another epoch.
    """
    stopping = stop or asyncio.Event()
    if has_compiler():
        load_compiler()  # before anyone waits for an answer
    service = CuratorService(
        curator,
        workers=settings.workers,
        seats=settings.seats,
        rate=settings.rate,
        cells=settings.cells,
        fit_rows=settings.fit_rows,
        limit=settings.limit,
    )
    connections = Connections(settings.connections or connections_allowed())
    change = EpochChange(service, policy)
    alerts = BudgetAlerts(
        lambda: service.curator,
        thresholds=settings.alert_at,
        webhook=settings.webhook,
        sent=None if policy is None else policy.absolute().with_suffix(".alerts"),
    )
    with _signals(stopping, change.begin), contextlib.ExitStack() as opened:
        openid = await _prepare_openid(settings)
        http = _make_http_server(service, authenticator, settings, connections, opened, openid)
        wire = await _start_pgwire(service, authenticator, settings, connections)
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait())]
        place = ""
        if http is not None:
            server, listener = http
            tasks.append(asyncio.create_task(server.serve(sockets=[listener])))
            place = _address("https" if settings.certificate else "http", listener)
        ready(ListenAddresses(place, _address("postgresql", wire.sockets[0]) if wire is not None else ""))
        sweeper = asyncio.create_task(connections.sweep_forever())
        if settings.alert_at:
            alerts.start()
            opened.callback(alerts.stop)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        _log.info("stopping")
        sweeper.cancel()
        stopping.set()
        if wire is not None:
            wire.close()
        if http is not None:
            http[0].should_exit = True
        await asyncio.gather(change.close(settings.patience), service.close(settings.patience))
        await asyncio.gather(*tasks)
        if wire is not None:
            await wire.wait_closed(_LAST_WORDS)
    return LeftRunning(service.in_use, change.is_opening)


async def _prepare_openid(settings: ServerConfig) -> OpenIdSignIn | None:
    """The identity provider, read once before anyone comes, so that a wrong configuration is said at once."""
    if settings.openid is None or settings.http is None:
        return None
    from tacit.serve.openid.sign_in import OpenIdSignIn

    made = OpenIdSignIn(settings.openid)
    await asyncio.to_thread(made.provider.read_at_start)
    return made


def _make_http_server(
    service: CuratorService,
    authenticator: Authenticator,
    settings: ServerConfig,
    connections: Connections,
    opened: contextlib.ExitStack,
    openid: OpenIdSignIn | None,
) -> tuple[uvicorn.Server, socket.socket] | None:
    """The HTTP server with its socket, bound before anything else, so that a taken port is said at once."""
    if settings.http is None:
        return None
    try:
        import uvicorn

        from tacit.serve.header_limits import choose_http_protocol
        from tacit.serve.http import build_app
    except ImportError:
        raise missing_extra("serve", "serving", "fastapi and uvicorn") from None

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # signals are for both listeners, and taken above

    certificate = settings.certificate
    config = uvicorn.Config(
        build_app(
            service,
            authenticator,
            secure=settings.is_secure,
            proxies=settings.trusted_proxies,
            openid=openid,
            passwords=settings.passwords,
        ),
        http=choose_http_protocol(connections),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # the guard reads them
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(settings.patience)),
        ssl_certfile=str(certificate.certificate) if certificate else None,
        ssl_keyfile=str(certificate.key) if certificate else None,
    )
    if certificate is not None:
        certificate.context()  # an error in our words
    listener = connections.listen(_bind_socket(settings.host, settings.http), settings.trusted_proxies)
    return Server(config), opened.enter_context(listener)


async def _start_pgwire(
    service: CuratorService, authenticator: Authenticator, settings: ServerConfig, connections: Connections
) -> Listener | None:
    if settings.postgres is None:
        return None
    from tacit.serve.pgwire import start_listener
    from tacit.serve.pgwire.catalog import Catalog

    made = settings.certificate
    tls, der = (made.context(), made.der) if made else (None, None)
    try:
        proxies = settings.trusted_proxies if settings.proxy_protocol else ()
        return await start_listener(
            service,
            authenticator,
            settings.host,
            settings.postgres,
            tls,
            certificate=der,
            connections=connections,
            proxies=proxies,
            catalog=Catalog(service.policy, programs=settings.postgres_programs),
        )
    except OSError as error:
        raise _port_error("postgres", settings.host, settings.postgres) from error


def _bind_socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends at once where it sees that it is TCP
    except OSError as error:
        raise ParameterError("host", f"{host} is not an address of this machine", fix="--host 127.0.0.1") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _port_error("http", host, port) from error
    listener.listen(1024)  # whoever comes before the loop takes them waits
    listener.setblocking(False)
    return listener


def _port_error(name: str, host: str, port: int) -> ParameterError:
    return ParameterError(name, f"{host}:{port} cannot be listened on", fix=f"choose another port: --{name} {port + 1}")


def _address(scheme: str, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@contextlib.contextmanager
def _signals(stopping: asyncio.Event, change: Callable[[], None]) -> Iterator[None]:
    """The first signal stops, a second one at once; SIGHUP is for `change`. Signals are a matter of the main thread."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            os._exit(1)
        stopping.set()

    kinds = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: change}
    taken = []
    with contextlib.suppress(RuntimeError, ValueError):
        for kind, handler in kinds.items():
            loop.add_signal_handler(kind, handler)
            taken.append(kind)
    try:
        yield
    finally:
        for kind in taken:
            loop.remove_signal_handler(kind)
