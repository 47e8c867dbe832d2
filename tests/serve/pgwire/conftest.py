"""A served curator for the tests of the wire: small tables, an ample budget, TLS with a certificate of its own."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import hmac
import ipaddress
import os
import shutil
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.curator.curator import Curator
from tacit.serve import credentials
from tacit.serve.authentication import Authenticator
from tacit.serve.pgwire import Listener, start_listener
from tacit.serve.pgwire.catalog import Catalog
from tacit.serve.service import CuratorService

PATIENCE = 120  # seconds, for what takes a few: other tests may have the processors meanwhile

POLICY = """\
[data]
source = "data"
[ledger]
store = "clinic.ledger"
[privacy]
epsilon = 1000
delta = 1e-3
delta_per_question = 1e-9
[tables.visits]
unit = "patient_id"
max_groups = 2
max_rows_per_group = 3
[tables.visits.columns]
age = { type = "int", lower = 0, upper = 110 }
ward = { type = "text", values = ["A", "B", "it's"] }
visited = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }
cost = { type = "float", lower = 0, upper = 1000, step = 0.01 }
insured = { type = "bool" }
[tables.wards]
public = true
[tables.wards.columns]
ward = { type = "text", unique = true }
beds = { type = "int", lower = 0, upper = 100, nullable = false }
[analysts.ada]
epsilon = 900
delta = 1e-4
[analysts.ben]
epsilon = 1
delta = 1e-7
"""


@dataclass
class Served:
    """A running server, and what is needed to connect to it."""

    port: int
    folder: Path
    passwords: dict[str, str]
    curator: Curator
    service: CuratorService
    authenticator: Authenticator
    listener: Listener
    loop: asyncio.AbstractEventLoop
    certificate: Path

    def dsn(self, who: str = "ada", **options: str) -> str:
        """A connection string, under TLS that is checked in full."""
        given = {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": who,
            "password": self.passwords.get(who, "wrong"),
            "dbname": "clinic",
            "sslmode": "verify-full",
            "sslrootcert": str(self.certificate),
            **options,
        }
        return " ".join(f"{name}='{value}'" for name, value in given.items())

    def context(self) -> ssl.SSLContext:
        """The client's side of TLS."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def spent(self, who: str = "ada") -> float:
        """The epsilon that an analyst has spent."""
        return float(self.curator.analyst(who).budget.to_dict()["own"]["spent"])

    def entries(self) -> int:
        """How many entries the ledger has."""
        return sum(1 for _ in self.curator.ledger.entries())

    def run(self, work: Any) -> Any:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)


class Raw:
    """A client by hand, which can say what no driver would."""

    def __init__(self, served: Served, *, tls: bool = True, port: int = 0, source: str = "") -> None:
        place = ("127.0.0.1", port or served.port)
        self.socket: Any = socket.create_connection(place, timeout=20, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as all drivers do: messages are short
        self.served = served
        if tls:
            self.socket.sendall(struct.pack(">II", 8, 80877103))
            assert self.socket.recv(1) == b"S"
            self.socket = served.context().wrap_socket(self.socket, server_hostname="127.0.0.1")

    def startup(self, **options: str) -> None:
        """The first message."""
        pairs = "".join(f"{name}\0{value}\0" for name, value in options.items()).encode() + b"\0"
        self.socket.sendall(struct.pack(">II", len(pairs) + 8, 3 << 16) + pairs)

    def login(self, who: str = "ada", password: str | None = None, **options: str) -> list[tuple[bytes, bytes]]:
        """SCRAM-SHA-256; the messages until ready, or until an error."""
        self.startup(user=who, database="clinic", **options)
        kind, body = self.receive()
        if kind == b"E":
            return [(kind, body)]
        assert body[:4] == b"\0\0\0\n"
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = f"n=,r={nonce}"
        hello = f"n,,{first}".encode()
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(hello)) + hello)
        kind, body = self.receive()
        if kind == b"E":
            return [(kind, body)]
        self.challenge = body[4:].decode()
        server, salt, rounds = (part[2:] for part in self.challenge.split(","))
        secret = (self.served.passwords.get(who, "wrong") if password is None else password).encode()
        salted = hashlib.pbkdf2_hmac("sha256", secret, base64.b64decode(salt), int(rounds))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        unproved = f"c=biws,r={server}"
        signed = f"{first},{self.challenge},{unproved}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        self.send(b"p", f"{unproved},p={proof}".encode())
        found = [self.receive()]
        if found[0][0] == b"E":
            return found
        expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        assert found[0][1][4:] == b"v=" + base64.b64encode(expected)
        return found + self.until(b"Z")

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """A message."""
        self.socket.sendall(kind + struct.pack(">I", len(body) + 4) + body)

    def query(self, text: str) -> list[tuple[bytes, bytes]]:
        """A string by the simple protocol; the messages until ready."""
        self.send(b"Q", text.encode() + b"\0")
        return self.until(b"Z")

    def receive(self) -> tuple[bytes, bytes]:
        """The next message; no kind where the server has hung up."""
        head = self._exactly(5)
        if len(head) < 5:
            return b"", head
        return head[:1], self._exactly(int.from_bytes(head[1:], "big") - 4)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except (ConnectionError, ssl.SSLError):
                return data
            if not part:
                return data
            data += part
        return data

    def until(self, last: bytes) -> list[tuple[bytes, bytes]]:
        """The messages up to one of this kind."""
        found = [self.receive()]
        while found[-1][0] not in {last, b""}:
            found.append(self.receive())
        return found

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


@pytest.fixture
def raw(served: Served) -> Callable[..., Raw]:
    """Makes clients by hand."""
    return lambda **options: Raw(served, **options)


def _certificate(folder: Path) -> tuple[Path, Path, bytes]:
    """A certificate for 127.0.0.1 and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tacit")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "server.crt", folder / "server.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return public, private, made.public_bytes(serialization.Encoding.DER)


def _data(folder: Path) -> None:
    """400 patients with three visits each."""
    rows = range(1200)
    visits = {
        "patient_id": pa.array([i // 3 for i in rows], pa.int64()),
        "age": pa.array([20 + i % 60 for i in rows], pa.int64()),
        "ward": pa.array([["A", "B", "it's"][i % 3] for i in rows]),
        "visited": pa.array([datetime.date(2025, 1 + i % 12, 1) for i in rows]),
        "cost": pa.array([float(i % 500) for i in rows]),
        "insured": pa.array([i % 4 != 0 for i in rows]),
    }
    (folder / "data").mkdir()
    pq.write_table(pa.table(visits), folder / "data" / "visits.parquet")
    wards = {"ward": pa.array(["A", "B", "it's"]), "beds": pa.array([10, 20, 30], pa.int64())}
    pq.write_table(pa.table(wards), folder / "data" / "wards.parquet")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server, in a thread of its own."""
    folder = tmp_path_factory.mktemp("served")
    _data(folder)
    with serve_folder(folder, POLICY, ("ada", "ben")) as found:
        yield found


@contextmanager
def serve_folder(folder: Path, policy: str, analysts: Sequence[str]) -> Iterator[Served]:
    """Serve the data of a folder under a policy, in a thread of its own, until the block ends."""
    (folder / "clinic.toml").write_text(policy)
    roster = credentials.credentials_path(folder / "clinic.toml")
    passwords = {name: credentials.add_credential(roster, name, credentials.Role.ANALYST).password for name in analysts}
    public, private, der = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    ready: Future[tuple[asyncio.AbstractEventLoop, Listener]] = Future()
    ended = threading.Event()
    with tacit.open(folder / "clinic.toml") as curator:
        service, authenticator = CuratorService(curator, rate=1e6, first=0.0), Authenticator(roster, curator.policy)

        async def serving() -> None:
            catalog = Catalog(curator.policy, share=10.0, burst=1000.0)
            options = {"certificate": der, "catalog": catalog}
            listener = await start_listener(service, authenticator, "127.0.0.1", 0, context, **options)
            ready.set_result((asyncio.get_running_loop(), listener))
            while not ended.is_set():
                await asyncio.sleep(0.02)
            listener.close()
            await listener.wait_closed()
            await service.close()

        thread = threading.Thread(target=lambda: asyncio.run(serving()))
        thread.start()
        try:
            loop, listener = ready.result(PATIENCE)
            port = listener.sockets[0].getsockname()[1]
            yield Served(port, folder, passwords, curator, service, authenticator, listener, loop, public)
        finally:
            ended.set()
            thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def psql(served: Served) -> Callable[..., Any]:
    """Runs psql with commands; skips where there is none."""
    import subprocess

    program = shutil.which("psql")
    if program is None:
        if os.environ.get("TACIT_NOTHING_SKIPPED") == "1":
            raise FileNotFoundError("psql")
        pytest.skip("psql is not installed")

    def run(*commands: str, who: str = "ada", **options: str) -> subprocess.CompletedProcess[str]:
        given = [part for command in commands for part in ("-c", command)]
        arguments = [program, served.dsn(who, **options), "-X", "-P", "pager=off", *given]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)

    return run
