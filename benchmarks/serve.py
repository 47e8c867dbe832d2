"""A served clinic under load: many analysts over both protocols, then as many fresh questions as it can take.

    python benchmarks/serve.py
    python benchmarks/serve.py --analysts 200 --seconds 60

Writes benchmarks/serve.md. Half of the analysts speak HTTP and half PostgreSQL's protocol, all over TLS, each asking
about every two seconds: four of five questions are repeats of their own, the fifth is new. The load comes from the same
machine as the server, so both share its cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environment import HERE, say
from report import table

from tacit.curator.prepare import prepare
from tacit.curator.resources import ledger_files
from tacit.demo.clinic import POLICY_TEXT, build_clinic
from tacit.ledger.entries import EntryKind
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.policy.load import load
from tacit.serve.credentials import IssuedSecrets, Role, add_credential, credentials_path

EPSILON = 0.001
KINDS = (
    "SELECT COUNT(*) AS n FROM visits WHERE age > {} AND cost > {}",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age > {} AND cost > {} GROUP BY ward",
    "SELECT sex, AVG(nights) AS m FROM visits WHERE age > {} AND cost > {} GROUP BY sex",
    "SELECT SUM(cost) AS s FROM visits WHERE age > {} AND cost > {}",
)
# What a busy thread is doing, by the innermost of these functions on its stack.
PARTS = {
    "registry.py:read_question": "reading the question",
    "planner.py:plan": "planning",
    "ledger.py:reserve": "ledger: reserve",
    "ledger.py:commit": "ledger: commit",
    "ledger.py:repeats": "ledger: repeats",
    "duckdb.py:run": "the engine",
    "plan.py:release": "noise",
    "post_process.py:post_process": "post-processing: error bars",
    "responses.py:write_answer": "writing the answer",
    "base_events.py:_run_once": "event loop: HTTP, TLS, PostgreSQL",
}
CPU = "microseconds of processor time"
IDLE = {"thread.py:_worker", "selectors.py:select", "threading.py:wait", "base_events.py:select", "serve.py:sample"}


@dataclass
class Load:
    """What was measured: seconds of each response by kind, and errors."""

    times: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, seconds: float) -> None:
        self.times.setdefault(kind, []).append(seconds)


class Fresh:
    """Questions that nobody asked before."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return KINDS[self._count % len(KINDS)].format(self._count % 97, self._count)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--analysts", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--server", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.server is not None:
        serve(chosen.server, chosen.workers)
        return
    others = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as folder:
        found = measure(Path(folder), chosen.analysts, chosen.seconds, chosen.workers)
    page = markdown({**found, "others": others}, chosen)
    (HERE / "serve.md").write_text(page, encoding="utf-8")
    print(page)


# The server, in a process of its own, with a profile


def serve(policy: Path, workers: int) -> None:
    from tacit.serve.server import ListenAddresses, ServerConfig, run_server
    from tacit.serve.tls import load_self_signed

    samples: Counter[str] = Counter()
    threading.Thread(target=sample, args=(samples, policy.with_suffix(".profile")), daemon=True).start()

    def ready(listening: ListenAddresses) -> None:
        print(json.dumps({"http": listening.http, "postgres": listening.postgres}), flush=True)

    certificate = load_self_signed(policy, "127.0.0.1")
    run_server(policy, ServerConfig(http=0, postgres=0, certificate=certificate, workers=workers), ready)
    os._exit(0)  # without waiting for the thread that samples


def sample(samples: Counter[str], path: Path) -> None:
    """Look at all threads twenty times a second and count what the busy ones do; written down every second."""
    me = threading.get_ident()
    while True:
        for _ in range(20):
            time.sleep(0.05)
            for number, frame in sys._current_frames().items():
                if number != me:
                    samples[doing(frame)] += 1
        samples[CPU] = int(1e6 * time.process_time())
        path.write_text(json.dumps(samples), encoding="utf-8")


def doing(frame: Any) -> str:
    stack = []
    while frame is not None:
        stack.append(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}")
        frame = frame.f_back
    if stack[0] in IDLE:
        return "idle"
    return next((PARTS[name] for name in stack if name in PARTS), "other")


# The load


def measure(folder: Path, analysts: int, seconds: float, workers: int) -> dict[str, Any]:
    names = [f"analyst{number}" for number in range(analysts)]
    policy = clinic(folder, names)
    say(f"letting {analysts} analysts in...")
    secrets = {name: add_credential(credentials_path(policy), name, Role.ANALYST) for name in names}
    command = [sys.executable, __file__, "--server", str(policy), "--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())
            found = asyncio.run(loads(where, policy, secrets, seconds))
        finally:
            server.terminate()
    books = ledger_files(load(policy))
    with LedgerReader(books.store) as history:
        report = verify(history, Witness(books.witness))
        found["entries"], found["ok"] = report.entries, report.ok
        found["charges"] = sum(entry.kind is EntryKind.RESERVE for entry in history.entries())
    return found


def clinic(folder: Path, names: list[str]) -> Path:
    build_clinic(folder)
    head = POLICY_TEXT.partition("[analysts.")[0].replace("epsilon = 5.0", "epsilon = 1000.0")
    text = head + "".join(f"[analysts.{name}]\nepsilon = 1000\n" for name in names)
    text = text.replace("clinic.ledger", "served.ledger").replace(
        "epoch = 1", 'prepared = "clinic.prepared"\nepoch = 1'
    )
    policy = folder / "served.toml"
    policy.write_text(text, encoding="utf-8")
    prepare(load(policy), lambda what, share: None)
    return policy


async def loads(
    where: dict[str, str], policy: Path, secrets: dict[str, IssuedSecrets], seconds: float
) -> dict[str, Any]:
    trust = ssl.create_default_context(cafile=policy.with_suffix(".tls.pem"))
    fresh, load_of = Fresh(), Load()
    say("connecting...")
    lines = await connected(where, trust, secrets)
    for kind, some in (("HTTP", lines[::2]), ("PostgreSQL", lines[1::2])):
        say(f"{len(some)} speak {kind}")
    known = {}
    for line in lines:  # everyone has a question to repeat; the first of each kind compiles what all others use
        known[line] = [fresh.next()]
        await timed(line, known[line][0], "first", Load())
    before = profile_of(policy)
    say(f"asking for {seconds:g} seconds...")
    await asyncio.gather(*(analyst(line, known[line], fresh, load_of, seconds) for line in lines))
    between = profile_of(policy)
    say("fresh questions only...")
    limit = Load()
    started = time.monotonic()
    await asyncio.gather(*(hurried(line, fresh, limit, min(20.0, seconds)) for line in lines[:32]))
    took = time.monotonic() - started
    await asyncio.sleep(1.5)
    for line in lines:
        await line.close()
    after = profile_of(policy)
    answered = sum(map(len, limit.times.values()))
    return {
        "load": load_of,
        "limit": limit,
        "per_second": answered / took,
        "profile": {"load": between - before, "limit": after - between},
    }


def profile_of(policy: Path) -> Counter[str]:
    with contextlib.suppress(OSError, ValueError):
        return Counter(json.loads(policy.with_suffix(".profile").read_text(encoding="utf-8")))
    return Counter()


async def connected(where: dict[str, str], trust: ssl.SSLContext, secrets: dict[str, IssuedSecrets]) -> list[Any]:
    lines: list[Any] = []
    for number, (name, made) in enumerate(secrets.items()):
        kind = Http if number % 2 == 0 else Wire
        address = where["http"] if kind is Http else where["postgres"]
        lines.append(await kind.open(address, trust, name, made))
        await asyncio.sleep(0.06)  # one address may open 20 connections a second
    return lines


async def analyst(line: Any, known: list[str], fresh: Fresh, load_of: Load, seconds: float) -> None:
    """Ask about every two seconds: a new question one time in five."""
    choose = random.Random(id(line))
    await asyncio.sleep(choose.uniform(0, 2))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        repeat = choose.random() < 0.8
        sql = choose.choice(known) if repeat else fresh.next()
        await timed(line, sql, f"{line.kind}, {'repeat' if repeat else 'fresh'}", load_of)
        known += [] if repeat else [sql]
        await asyncio.sleep(choose.uniform(1, 3))


async def hurried(line: Any, fresh: Fresh, load_of: Load, seconds: float) -> None:
    """Ask new questions, one after the other."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await timed(line, fresh.next(), f"{line.kind}, fresh", load_of)


async def timed(line: Any, sql: str, kind: str, load_of: Load) -> None:
    started = time.monotonic()
    problem = await line.ask(sql)
    if problem:
        load_of.errors[problem] += 1
        await asyncio.sleep(0.2)
    else:
        load_of.note(kind, time.monotonic() - started)


class Http:
    """One analyst's connection over HTTP, kept open."""

    kind = "HTTP"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer, self._key = reader, writer, key

    @classmethod
    async def open(cls, address: str, trust: ssl.SSLContext, name: str, made: IssuedSecrets) -> Http:
        host, _, port = address.removeprefix("https://").partition(":")
        line = cls(*await asyncio.open_connection(host, int(port), ssl=trust), made.key)
        await line._send("GET", "/v1/schema", b"")  # the first check of a key is slow on purpose
        return line

    async def ask(self, sql: str) -> str:
        status, body = await self._send("POST", "/v1/ask", json.dumps({"sql": sql, "epsilon": EPSILON}).encode())
        return "" if status == 200 else f"{status} {json.loads(body)['error']['code']}"

    async def _send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: clinic\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    async def close(self) -> None:
        self._writer.close()


class Wire:
    """One analyst's connection over PostgreSQL's protocol."""

    kind = "PostgreSQL"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, address: str, trust: ssl.SSLContext, name: str, made: IssuedSecrets) -> Wire:
        import asyncpg

        host, _, port = address.removeprefix("postgresql://").partition(":")
        connection = await asyncpg.connect(
            host=host, port=int(port), user=name, password=made.password, database="clinic", ssl=trust
        )
        await connection.execute(f"SET tacit.epsilon = {EPSILON}")
        return cls(connection)

    async def ask(self, sql: str) -> str:
        import asyncpg

        try:
            await self._connection.fetch(sql)
        except asyncpg.PostgresError as error:
            return f"{error.sqlstate} {type(error).__name__}"
        return ""

    async def close(self) -> None:
        await self._connection.close()


# What is told


def markdown(found: dict[str, Any], chosen: argparse.Namespace) -> str:
    load_of, limit = found["load"], found["limit"]
    asked = sum(map(len, load_of.times.values()))
    rows = [[kind, f"{len(times):,}", *shares(times)] for kind, times in sorted(load_of.times.items())]
    repeats = [t for kind, times in load_of.times.items() if kind.endswith("repeat") for t in times]
    rows.append(["all repeats", f"{len(repeats):,}", *shares(repeats)])
    state = "in order" if found["ok"] else "NOT in order"
    lines = [
        "# A served clinic under load",
        "",
        f"One run of `python benchmarks/serve.py` on {os.cpu_count()} cores, which server and load share;"
        f" before it, other work had a load of {found['others']:.1f}. The demo's"
        f" clinic, {chosen.analysts} analysts, half over HTTP and half over PostgreSQL's protocol, all over TLS, for"
        f" {chosen.seconds:g} seconds: {asked:,} questions, {asked / chosen.seconds:.0f} a second;"
        f" errors: {dict(load_of.errors) or 'none'}.",
        "",
        *table([["question", "asked", "median", "p95", "p99", "largest"], *rows]),
        "",
        "Fresh answers are held to steps of time, of which the first is 20 ms. The clinic has a prepared copy, and"
        " everyone had asked one question before.",
        "",
        f"**Fresh questions only**, 32 analysts one after the other: **{found['per_second']:.0f} a second**; errors:"
        f" {dict(limit.errors) or 'none'}. The ledger has {found['entries']:,} entries, {found['charges']:,} of them"
        f" charges, and is {state}.",
        "",
        f"The server used {each(found['profile']['load'], asked)} of processor time a question under load, and"
        f" {each(found['profile']['limit'], sum(map(len, limit.times.values())))} a question where all are fresh. What"
        " its busy threads do, by share of samples:",
        "",
        *table([["doing", "under load", "fresh only"], *profile_rows(found["profile"])]),
        "",
    ]
    return "\n".join(lines)


def shares(times: list[float]) -> list[str]:
    if not times:
        return ["-"] * 4
    ordered = sorted(times)

    def at(share: float) -> str:
        return f"{1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.0f} ms"

    return [at(0.5), at(0.95), at(0.99), at(1.0)]


def each(profile: Counter[str], questions: int) -> str:
    return f"{profile[CPU] / 1000 / max(1, questions):.1f} ms"


def profile_rows(profile: dict[str, Counter[str]]) -> list[list[str]]:
    apart = {"idle", CPU}
    totals = {phase: sum(count for name, count in some.items() if name not in apart) for phase, some in profile.items()}
    names = sorted({name for some in profile.values() for name in some} - apart, key=lambda n: -profile["limit"][n])
    rows = []
    for name in names:
        parts = [f"{profile[phase][name] / max(1, totals[phase]):.0%}" for phase in ("load", "limit")]
        rows.append([name, *parts])
    return rows


if __name__ == "__main__":
    main()
