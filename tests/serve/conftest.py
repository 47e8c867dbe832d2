"""A small clinic to serve: a policy with ample budget, its data, and who may come in."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.support.console import Visitor

import tacit
from tacit.curator.curator import Curator
from tacit.serve import credentials
from tacit.serve.authentication import Authenticator
from tacit.serve.credentials import IssuedSecrets, Role
from tacit.serve.server import ListenAddresses, ServerConfig, serve_curator
from tacit.serve.tls import load_self_signed

POLICY = """
[data]
source = "visits.csv"

[privacy]
epsilon = 1000
delta = 1e-6

[tables.visits]
unit = "patient"
max_groups = 2
max_rows_per_group = 2
columns.age = {{ type = "int", lower = 0, upper = 110 }}
columns.cost = {{ type = "float", lower = 0, upper = 100, step = 0.01 }}
columns.ward = {{ type = "text", values = ["A", "B", "=C"] }}
columns.seen = {{ type = "date", lower = 2025-01-01, upper = 2025-12-31 }}
columns.paid = {{ type = "bool" }}
columns.illness = {{ type = "text" }}

[analysts.ada]
epsilon = {ada}
delta = 1e-6
[analysts.ben]
epsilon = 1000
delta = 1e-6
"""


@dataclass(frozen=True)
class Clinic:
    """A policy on disk, and the keys and passwords of those who may come in."""

    policy: Path
    secrets: dict[str, IssuedSecrets]

    @property
    def people(self) -> Path:
        return credentials.credentials_path(self.policy)


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, IssuedSecrets]]:
    """The people of every clinic, made once: keys are slow to make on purpose."""
    path = tmp_path_factory.mktemp("people") / "clinic.people"
    roles = {"ada": Role.ANALYST, "ben": Role.ANALYST, "olga": Role.OWNER, "otto": Role.AUDITOR}
    return path, {name: credentials.add_credential(path, name, role) for name, role in roles.items()}


@pytest.fixture(scope="session")
def make_clinic(known: tuple[Path, dict[str, IssuedSecrets]]) -> Callable[..., Clinic]:
    """Writes a clinic to a folder: 400 visits of 200 patients; ada and ben, olga the owner, otto the auditor."""

    def make(folder: Path, ada: float = 1000) -> Clinic:
        rows = [
            f"{n % 200},{n % 111},{n % 90}.5,{('A', 'B', '=C')[n % 3]},2025-0{1 + n % 9}-11,{n % 2 == 0},flu"
            for n in range(400)
        ]
        (folder / "visits.csv").write_text("\n".join(["patient,age,cost,ward,seen,paid,illness", *rows]) + "\n")
        policy = folder / "clinic.toml"
        policy.write_text(POLICY.format(ada=ada))
        shutil.copy(known[0], credentials.credentials_path(policy))
        return Clinic(policy, known[1])

    return make


@pytest.fixture
def clinic(tmp_path: Path, make_clinic: Callable[..., Clinic]) -> Clinic:
    return make_clinic(tmp_path)


@pytest.fixture
def curator(clinic: Clinic) -> Iterator[Curator]:
    with tacit.open(clinic.policy) as opened:
        yield opened


@dataclass(frozen=True)
class Served:
    """A clinic with a server in front of it, over TLS."""

    clinic: Clinic
    curator: Curator
    http: str
    postgres: str
    cafile: Path

    def key(self, name: str) -> str:
        return self.clinic.secrets[name].key


@contextmanager
def _serving(clinic: Clinic, **settings: object) -> Iterator[Served]:
    """Both listeners on free ports, in a thread of their own, until the block ends."""
    certificate = load_self_signed(clinic.policy, "127.0.0.1")
    told: list[ListenAddresses] = []
    begun, failed = threading.Event(), []
    with tacit.open(clinic.policy) as curator:

        async def work() -> None:
            nonlocal loop, stop
            loop, stop = asyncio.get_running_loop(), asyncio.Event()
            where = ServerConfig(**{"http": 0, "postgres": 0, "certificate": certificate, **settings})  # type: ignore[arg-type]

            def ready(listening: ListenAddresses) -> None:
                told.append(listening)
                begun.set()

            await serve_curator(curator, Authenticator(clinic.people, curator.policy), where, ready, stop)

        def run() -> None:
            try:
                asyncio.run(work())
            except BaseException as error:
                failed.append(error)
            finally:
                begun.set()

        loop: asyncio.AbstractEventLoop
        stop: asyncio.Event
        thread = threading.Thread(target=run)
        thread.start()
        begun.wait(60)
        if failed:
            raise failed[0]
        try:
            yield Served(clinic, curator, told[0].http, told[0].postgres, certificate.certificate)
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(60)
        if failed:
            raise failed[0]


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[Served]]:
    """Serves a clinic for as long as a block lasts."""
    return _serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, make_clinic: Callable[..., Clinic]) -> Iterator[Served]:
    """A clinic over HTTP alone, which needs no PostgreSQL for its catalog."""
    with _serving(make_clinic(tmp_path_factory.mktemp("served")), postgres=None) as running:
        yield running


@pytest.fixture(scope="module")
def visitor(served):
    """Makes a visitor who has not signed in."""
    opened = []

    def make():
        tls = ssl.create_default_context(cafile=served.cafile)
        opened.append(httpx.Client(timeout=60, base_url=served.http, verify=tls))
        return Visitor(opened[-1])

    yield make
    for client in opened:
        client.close()


@pytest.fixture(scope="module")
def signed(visitor, served):
    """Makes a visitor who has."""

    def make(name):
        made = visitor()
        assert made.sign_in(name, served.clinic.secrets[name].password).status_code == 303
        return made

    return make


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    """A client of the server that trusts its certificate."""
    with httpx.Client(
        timeout=60, base_url=served.http, verify=ssl.create_default_context(cafile=served.cafile)
    ) as opened:
        yield opened
