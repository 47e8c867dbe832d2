"""Catalog queries of one hostile analyst: they end in an ordinary error, and nobody else notices."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.slow

GROWTH = 80_000_000  # bytes that the server may grow by; each of these queries asks for far more
ENDED = {"57014", "53200"}


def _memory(process: int, what: str) -> int:
    with open(f"/proc/{process}/status") as file:
        return 1024 * int(re.search(rf"{what}:\s+(\d+) kB", file.read())[1])


@contextlib.contextmanager
def _serve(policy):
    """The command itself, without TLS; its process and its two ports."""
    command = [sys.executable, "-m", "tacit.cli.main", "serve", "-p", str(policy), "--http", "0", "--postgres", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    while "Stop with" not in said and (line := child.stdout.readline()):
        said += line
    try:
        yield child, {scheme: int(port) for scheme, port in re.findall(r"on (\w+)://127.0.0.1:(\d+)", said)}
    finally:
        child.send_signal(signal.SIGTERM)
        child.stdout.read()
        child.stdout.close()
        child.wait(60)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_query_that_asks_for_gigabytes_takes_none_of_the_server_and_a_stop_leaves_nothing(make_clinic, tmp_path):
    poor = make_clinic(tmp_path, ada=0.5)
    with _serve(poor.policy) as (server, ports):

        def connect(who):
            password = poor.secrets[who].password
            return psycopg.connect(
                f"host=127.0.0.1 port={ports['postgresql']} user={who} password={password} dbname=clinic",
                autocommit=True,
                options="-c tacit.epsilon=0.5",
            )

        with connect("ada") as ada, connect("ben") as ben:
            ada.execute("SELECT COUNT(*) FROM visits").fetchall()
            with pytest.raises(psycopg.Error) as spent:
                ada.execute("SELECT COUNT(*) FROM visits WHERE age > 3")
            assert spent.value.sqlstate == "53400"  # nothing is left of her budget
            ben.execute("SELECT COUNT(*) FROM visits WHERE age > 7").fetchall()
            before = _memory(server.pid, "VmRSS")
            with pytest.raises(psycopg.Error) as error:
                ada.execute("SELECT length(repeat('x', 900000000))")
            assert error.value.sqlstate in ENDED
            assert ada.execute("SELECT 1").fetchone() == (1,)
            assert ben.execute(
                "SELECT tablename FROM pg_tables WHERE tableowner = 'owner' AND tablename = 'visits'"
            ).fetchall()
            assert ben.execute("SELECT COUNT(*) FROM visits WHERE age > 9").fetchone() is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{ports['http']}/healthz", timeout=30) as health:
                assert health.read() == b"ok\n"
            assert _memory(server.pid, "VmHWM") - before < GROWTH
            processes, folders = _catalog_of(server)
        assert server.poll() is None
    assert server.returncode == 0
    assert not [each for each in processes if _is_there(each)]
    assert not [each for each in folders if each.exists() or each.parent.exists()]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_the_processes_of_the_catalog_end_with_a_server_that_is_killed(clinic):
    with _serve(clinic.policy) as (server, ports):
        who = f"user=ada password={clinic.secrets['ada'].password}"
        with psycopg.connect(f"host=127.0.0.1 port={ports['postgresql']} {who} dbname=clinic", autocommit=True) as ada:
            ada.execute("SELECT relname FROM pg_class").fetchall()
            found, folders = _catalog_of(server)
            server.kill()
            until = time.monotonic() + 60
            while (any(map(_is_there, found)) or any(each.exists() for each in folders)) and time.monotonic() < until:
                time.sleep(0.01)
            assert not [each for each in found if _is_there(each)]
            assert not [each for each in folders if each.exists() or each.parent.exists()]


def _catalog_of(server) -> tuple[list[int], list[Path]]:
    """The processes of a server's catalog, and their folders."""
    found = _descendants(server.pid)
    folders = [Path(word) for each in found for word in _words(each) if "tacit-catalog-" in word]
    assert len(found) > 4 and folders
    return found, folders


def _descendants(process: int) -> list[int]:
    found = _children(process)
    return [*found, *(each for child in found for each in _descendants(child))]


def _words(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


def _children(process: int) -> list[int]:
    found = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for part in found for child in part]


def _is_there(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # ended, and its new parent has not yet noticed
    except FileNotFoundError:
        return False
