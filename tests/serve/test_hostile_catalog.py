"""Catalog queries of one hostile analyst: they end in an ordinary error, and nobody else notices."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request

import psycopg
import pytest

GROWTH = 80_000_000  # bytes that the server may grow by; each of these queries asks for far more
ENDED = {"57014", "53200"}

# Some name a function that is not there, and are refused; the others run until their limits end them.
MEMORY = [
    "SELECT array_length(generate_series(1,100000000),1)",
    "SELECT generate_series(1, 30000000)",
    "SELECT array_agg(i) FROM generate_series(1, 100000000) AS g(i)",
    "SELECT string_agg(i::text, ',') FROM generate_series(1, 100000000) AS g(i)",
    "SELECT length(" + "replace(" * 9 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 9 + ")",
    "WITH a AS (SELECT generate_series(1, 3000000) AS x) SELECT array_length(x, 1) FROM a, generate_series(1, 99) AS g",
    "SELECT [x FOR x IN generate_series(1, 100000000)]",
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 1000000000)",
]
TIME = [
    "SELECT count(*) FROM generate_series(1, 10000000000000) AS g(i) WHERE i % 7 = 3",
    "SELECT count(*) FROM range(1000000000000)",
    "SELECT max(a.oid + i.oid) FROM " + ", ".join(f"pg_type {name}" for name in "abcdefghi"),
    "SELECT a.oid FROM " + ", ".join(f"pg_type {name}" for name in "abcdef") + " ORDER BY a.oid + f.oid, b.oid",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM generate_series(1, 1000000000) AS g(i) WHERE i::text ~ '(((a*)*)*)*b'",
    "SELECT regexp_replace(string_agg('ab', ''), '((a|b)*)*c', 'x') FROM generate_series(1, 9999999) AS g(i)",
    "SELECT pg_sleep(100)",
]
LARGE = [
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "NOT " * 4_000 + "true",
    "SELECT 1" + " + 1" * 2_400,
    "SELECT " + "[" * 2_000 + "]" * 2_000,
    "SELECT oid FROM pg_class WHERE oid IN (" + ", ".join(map(str, range(2_400))) + ")",
    "SELECT 1" + " UNION ALL SELECT 1" * 1_200,
    "SELECT " + "CASE WHEN true THEN " * 900 + "1" + " END" * 900,
    "SELECT '" + "x" * 59_000 + "' ~ '" + "(x?)" * 200 + "'",
    "SELECT i, " + ", ".join(["'" + "x" * 900 + "'"] * 60) + " FROM generate_series(1, 9000) AS g(i)",
]


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
def test_a_query_that_asks_for_gigabytes_takes_none_of_the_server(clinic, make_clinic, tmp_path):
    (tmp_path / "poor").mkdir()
    poor = make_clinic(tmp_path / "poor", ada=0.5)
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
                ada.execute("SELECT array_length(generate_series(1,100000000),1)")
            assert error.value.sqlstate in ENDED
            assert ada.execute("SELECT 1").fetchone() == (1,)
            assert ben.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall() == [("visits",)]
            assert ben.execute("SELECT COUNT(*) FROM visits WHERE age > 9").fetchone() is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{ports['http']}/healthz", timeout=30) as health:
                assert health.read() == b"ok\n"
            assert _memory(server.pid, "VmHWM") - before < GROWTH
        assert server.poll() is None
    assert server.returncode == 0
