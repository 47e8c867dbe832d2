"""A served clinic under attack: what four ordinary analysts notice of one hostile analyst and one stranger.

    python benchmarks/hostile.py
    python benchmarks/hostile.py --seconds 10 --scale 0.2

Writes benchmarks/hostile.md. The server runs in a process of its own with 1.5 GB of memory and 1,024 descriptors.
Ordinary analysts ask counts that nobody asked before, one after the other, first alone and then for as long as the
attack lasts. All at once, the hostile analyst asks the largest questions that are answered, larger ones, catalog
statements of a gigabyte, pipelines of messages, and holds sessions open; the stranger holds connections
open and guesses passwords and keys. Everything is on loopback addresses of this machine, which server and load share;
the attack's own process has low priority, since its work would be done on other machines.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from environment import HERE, say
from report import table

from tacit.curator.resources import ledger_files
from tacit.demo.clinic import POLICY_TEXT, build_clinic
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness
from tacit.policy.load import load
from tacit.serve.credentials import Role, add_credential, credentials_path

MEMORY = 1_500_000_000
DESCRIPTORS = 1024
ORDINARY = ("ada", "ben", "cleo", "dan")
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > {} AND cost > {}"
GROUPS = "FROM visits GROUP BY visited, sex, ward"  # 365 x 3 x 6 = 6,570 groups
BOMB = "SELECT length(repeat('x', 900000000))"
LOG = 1_000_000  # bytes that the log may have
RATIO = 3.0
WRONG = "wrong"
_NICE = 10  # of the attack's own process, whose work other machines would do


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60, help="how long the attack lasts")
    options.add_argument("--scale", type=float, default=1.0, help="share of the connections and guesses")
    options.add_argument("--json", type=Path, help="write the figures here, and no page")
    options.add_argument("--server", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--attack", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.server is not None:
        serve(chosen.server)
    elif chosen.attack is not None:
        asyncio.run(attack(json.loads(chosen.attack.read_text()), chosen.seconds, chosen.scale))
    else:
        with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as folder:
            found = measure(Path(folder), chosen.seconds, chosen.scale)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(found))
        else:
            page = markdown(found, chosen.seconds)
            (HERE / "hostile.md").write_text(page, encoding="utf-8")
            print(page)


# The server, in a process of its own, held to its limits by the system


def serve(policy: Path) -> None:
    from tacit.serve.server import ListenAddresses, ServerConfig, run_server

    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    def ready(listening: ListenAddresses) -> None:
        print(json.dumps({"http": listening.http, "postgres": listening.postgres}), flush=True)

    import logging

    from tacit.serve.log_redaction import OwnerFile

    logging.basicConfig(handlers=[OwnerFile(policy.with_suffix(".log"))])
    run_server(policy, ServerConfig(http=0, postgres=0), ready)


class Watch:
    """The most memory that a process and its children have at once, looked up ten times a second.

    Above the limit the process is killed, as the system would: limits of address space count what is only reserved.
    """

    def __init__(self, process: int) -> None:
        self.peak = 0
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.peak

    def _run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._stop.wait(0.1):
            parents: dict[int, int] = {}
            sizes: dict[int, int] = {}
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                        parents[int(entry)], sizes[int(entry)] = int(fields[1]), int(fields[21]) * page
            family = {self._process}
            while more := {child for child, parent in parents.items() if parent in family} - family:
                family |= more
            self.peak = max(self.peak, sum(sizes.get(each, 0) for each in family))
            if self.peak > MEMORY:
                with contextlib.suppress(OSError):
                    os.kill(self._process, signal.SIGKILL)


# What is measured


def measure(folder: Path, seconds: float, scale: float) -> dict[str, Any]:
    policy = clinic(folder)
    secrets = {name: add_credential(credentials_path(policy), name, Role.ANALYST) for name in (*ORDINARY, "eve")}
    command = [sys.executable, __file__, "--server", str(policy)]
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())
            where["eve"] = {"key": secrets["eve"].key, "password": secrets["eve"].password}
            (folder / "where.json").write_text(json.dumps(where))
            watch = Watch(server.pid)
            found = asyncio.run(phases(where, secrets, folder / "where.json", seconds, scale))
            found["memory"] = watch.stop()
            found["alive"] = server.poll() is None
            server.send_signal(signal.SIGTERM)
            found["status"] = server.wait(120)
        finally:
            if server.poll() is None:
                server.kill()
    found["log"] = policy.with_suffix(".log").stat().st_size
    books = ledger_files(load(policy))
    with LedgerReader(books.store) as history:
        report = verify(history, Witness(books.witness))
        found["entries"], found["ledger"] = report.entries, report.ok
    return found


def clinic(folder: Path) -> Path:
    build_clinic(folder)
    head = POLICY_TEXT.partition("[analysts.")[0].replace("epsilon = 5.0", "epsilon = 1000.0")
    text = head + "".join(f"[analysts.{name}]\nepsilon = 1000\n" for name in (*ORDINARY, "eve"))
    policy = folder / "served.toml"
    policy.write_text(text.replace("clinic.ledger", "served.ledger"), encoding="utf-8")
    return policy


async def phases(
    where: dict[str, Any], secrets: dict[str, Any], file: Path, seconds: float, scale: float
) -> dict[str, Any]:
    lines: list[Any] = []
    for number, name in enumerate(ORDINARY):
        kind = Http if number % 2 == 0 else Wire
        address = where["http" if kind is Http else "postgres"]
        secret = secrets[name].key if kind is Http else secrets[name].password
        lines.append(await kind.open(address, name, secret, f"127.0.0.{2 + number}"))
    fresh = Fresh()
    for line in lines:  # what is loaded at the first question is loaded now
        await line.ask(fresh.next())
    say("without the attack...")
    before, _ = await asked(lines, fresh, max(2.0, seconds / 2))
    say(f"under attack for {seconds:g} seconds...")
    command = [sys.executable, __file__, "--attack", str(file), "--seconds", str(seconds), "--scale", str(scale)]
    hostile = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(_NICE))
    await asyncio.sleep(min(2.0, seconds / 4))  # until it has begun
    during, errors = await asked(lines, fresh, seconds - min(2.0, seconds / 4))
    output, _ = await asyncio.wait_for(hostile.communicate(), seconds + 60)
    after, late = await asked(lines, fresh, 1.0)  # everyone is still there
    for line in lines:
        line.close()
    return {
        "before": before,
        "during": during,
        "answered_after": len(after),
        "errors": errors + late,
        "attack": json.loads(output or b"{}"),
    }


async def asked(lines: list[Any], fresh: Fresh, seconds: float) -> tuple[list[float], int]:
    """Seconds of each answer, and how many questions were not answered."""
    times: list[float] = []
    errors = 0

    async def one(line: Any) -> None:
        nonlocal errors
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            started = time.monotonic()
            try:
                async with asyncio.timeout(60):
                    good = await line.ask(fresh.next())
            except (OSError, EOFError, TimeoutError):  # the connection is gone
                errors += 1
                return
            if good:
                times.append(time.monotonic() - started)
            else:
                errors += 1
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(one, lines))
    return times, errors


class Fresh:
    """Counts that nobody asked before."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return COUNT.format(self._count % 97, self._count)


# Clients


@cache
def salted_password(password: str, salt: str, iterations: int) -> bytes:
    """What a client computes once: an attacker's own work is not the server's. A guess needs none."""
    if password == WRONG:
        return bytes(32)
    return hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), iterations)


def place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition("://")[2].rpartition(":")
    return host, int(port)


class Http:
    """A connection over HTTP, kept open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer, self._key = reader, writer, key

    @classmethod
    async def open(cls, address: str, name: str, key: str, source: str) -> Http:
        line = cls(*await asyncio.open_connection(*place(address), local_addr=(source, 0)), key)
        await line.send("GET", "/v1/schema")
        return line

    async def ask(self, sql: str, epsilon: float = 0.001, path: str = "/v1/ask") -> bool:
        status, _ = await self.send("POST", path, json.dumps({"sql": sql, "epsilon": epsilon}).encode())
        return status == 200

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: clinic\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


class Wire:
    """A connection over PostgreSQL's protocol, by its bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, address: str, name: str, password: str, source: str) -> Wire:
        line = cls(*await asyncio.open_connection(*place(address), local_addr=(source, 0)))
        options = b"user\0" + name.encode() + b"\0database\0clinic\0\0"
        line.writer.write(struct.pack(">ii", 8 + len(options), 196608) + options)
        await line.message()
        nonce = base64.b64encode(os.urandom(18)).decode()
        bare = f"n=,r={nonce}"
        first = f"n,,{bare}".encode()
        line.say(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first)
        _, answer = await line.message()
        said = answer[4:].decode()
        parts = dict(part.split("=", 1) for part in said.split(","))
        salted = salted_password(password, parts["s"], int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        last = f"c=biws,r={parts['r']}"
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{said},{last}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        line.say(b"p", f"{last},p={proof}".encode())
        kind = b""
        while kind != b"Z":
            kind, _ = await line.message()
            if kind == b"E":
                raise ConnectionError("not let in")
        await line.query("SET tacit.epsilon = 0.001")
        return line

    def say(self, kind: bytes, body: bytes) -> None:
        self.writer.write(kind + struct.pack(">i", 4 + len(body)) + body)

    async def message(self) -> tuple[bytes, bytes]:
        head = await self.reader.readexactly(5)
        return head[:1], await self.reader.readexactly(struct.unpack(">i", head[1:])[0] - 4)

    async def query(self, sql: str) -> bool:
        self.say(b"Q", sql.encode() + b"\0")
        good, kind = True, b""
        while kind != b"Z":
            kind, _ = await self.message()
            good = good and kind != b"E"
        return good

    ask = query

    def close(self) -> None:
        self.writer.close()


# The attack


async def attack(where: dict[str, Any], seconds: float, scale: float) -> None:
    """Everything at once, until the time is over; then how often each was tried and what came of it."""
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    idle = int(1000 * scale)
    tasks = [
        *(heavy(where, counts, number) for number in range(6)),
        *(explains(where, counts) for _ in range(2)),
        *(bombs(where, counts) for _ in range(3)),
        *(pipelines(where, counts) for _ in range(2)),
        *(idle_sessions(where, counts, idle // 10) for _ in range(10)),
        *(idle_strangers(where, counts, idle // 10) for _ in range(10)),
        *(wrong_keys(where, counts) for _ in range(max(1, int(20 * scale)))),
        *(wrong_passwords(where, counts) for _ in range(max(1, int(20 * scale)))),
        *(wrong_forms(where, counts) for _ in range(max(1, int(5 * scale)))),
    ]
    running = [asyncio.create_task(again(task, counts)) for task in tasks]
    await asyncio.sleep(max(0.0, end - time.monotonic()))
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    print(json.dumps(counts))


Step = Callable[[], Awaitable[None]]


async def again(work: Awaitable[Step], counts: Counter[str]) -> None:
    """Prepare an attack and repeat it, whatever becomes of it."""
    step = await work
    while True:
        try:
            async with asyncio.timeout(30):
                await step()
        except (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError, ValueError, StopIteration):
            counts["cut off"] += 1
            await asyncio.sleep(0.2)


async def heavy(where: dict[str, Any], counts: Counter[str], number: int) -> Step:
    """The largest questions that are answered, and larger ones, at the least price."""
    state: dict[str, Any] = {"n": number}

    async def step() -> None:
        line = state.get("line")
        if line is None:
            line = state["line"] = await Http.open(where["http"], "eve", where["eve"]["key"], "127.0.0.20")
        state["n"] += 6
        for columns in (120, 15):
            sums = ", ".join(f"SUM(cost * {1 + (state['n'] + each) / 1e4:.4f}) AS s{each}" for each in range(columns))
            try:
                good = await line.ask(f"SELECT {sums} {GROUPS}", 0.000001)
            except BaseException:
                state.pop("line", None)
                line.close()
                raise
            counts[f"{columns} sums: {'answered' if good else 'refused'}"] += 1
        await asyncio.sleep(0.05)

    return step


async def explains(where: dict[str, Any], counts: Counter[str]) -> Step:
    async def step() -> None:
        line = await Http.open(where["http"], "eve", where["eve"]["key"], "127.0.0.20")
        with contextlib.closing(line):
            for number in range(50):
                sums = ", ".join(f"SUM(cost * {1 + (number + each) / 1e4:.4f})" for each in range(200))
                await line.ask(f"SELECT {sums} FROM visits", 0.000001, "/v1/explain")
                counts["explains"] += 1

    return step


async def bombs(where: dict[str, Any], counts: Counter[str]) -> Step:
    async def step() -> None:
        line = await Wire.open(where["postgres"], "eve", where["eve"]["password"], "127.0.0.20")
        with contextlib.closing(line):
            while True:
                counts[f"catalog bombs: {'answered' if await line.query(BOMB) else 'refused'}"] += 1
                await asyncio.sleep(0.02)

    return step


async def pipelines(where: dict[str, Any], counts: Counter[str]) -> Step:
    async def step() -> None:
        line = await Wire.open(where["postgres"], "eve", where["eve"]["password"], "127.0.0.20")
        with contextlib.closing(line):
            while True:
                line.writer.write(2_000 * (b"S" + struct.pack(">i", 4)))
                for _ in range(2_000):
                    await line.message()
                counts["thousands of pipelined messages"] += 2

    return step


async def idle_sessions(where: dict[str, Any], counts: Counter[str], count: int) -> Step:
    return held(counts, count, "sessions opened", lambda: eve(where))


async def eve(where: dict[str, Any]) -> asyncio.StreamWriter:
    return (await Wire.open(where["postgres"], "eve", where["eve"]["password"], "127.0.0.20")).writer


async def idle_strangers(where: dict[str, Any], counts: Counter[str], count: int) -> Step:
    async def opened() -> asyncio.StreamWriter:
        counts["strangers' turn"] += 1
        address = where["http" if counts["strangers' turn"] % 2 else "postgres"]
        return (await asyncio.open_connection(*place(address), local_addr=("127.0.0.30", 0)))[1]

    return held(counts, count, "strangers' connections opened", opened)


def held(counts: Counter[str], count: int, name: str, opened: Callable[[], Awaitable[asyncio.StreamWriter]]) -> Step:
    """Hold so many connections open; where the server closes one, open another, at most twenty a second."""
    writers: list[asyncio.StreamWriter] = []

    async def step() -> None:
        writers[:] = [each for each in writers if not each.transport.is_closing()]
        if len(writers) < count:
            writers.append(await opened())
            counts[name] += 1
        await asyncio.sleep(0.05 if len(writers) > count // 2 else 0.01)

    return step


async def wrong_keys(where: dict[str, Any], counts: Counter[str]) -> Step:
    async def step() -> None:
        line = Http(*await asyncio.open_connection(*place(where["http"]), local_addr=("127.0.0.30", 0)), "tacit_1_2")
        with contextlib.closing(line):
            while True:
                status, _ = await line.send("GET", "/v1/budget")
                counts[f"wrong keys: {status}"] += 1

    return step


async def wrong_passwords(where: dict[str, Any], counts: Counter[str]) -> Step:
    async def step() -> None:
        counts["wrong passwords"] += 1
        await Wire.open(where["postgres"], "ada", WRONG, "127.0.0.30")

    return step


async def wrong_forms(where: dict[str, Any], counts: Counter[str]) -> Step:
    import re

    async def step() -> None:
        reader, writer = await asyncio.open_connection(*place(where["http"]), local_addr=("127.0.0.30", 0))
        try:
            writer.write(b"GET /console/sign-in HTTP/1.1\r\nHost: clinic\r\nConnection: close\r\n\r\n")
            page = (await reader.read()).decode()
            cookie = re.search(r"set-cookie: (tacit-visit=[^;]+)", page)
            token = re.search(r'name="csrf" value="([^"]+)"', page)
            if cookie is None or token is None:
                raise ValueError
            writer.close()
            reader, writer = await asyncio.open_connection(*place(where["http"]), local_addr=("127.0.0.30", 0))
            body = f"name=ada&password=wrong&csrf={token[1]}".encode()
            head = (
                f"POST /console/sign-in HTTP/1.1\r\nHost: clinic\r\nCookie: {cookie[1]}\r\nConnection: close\r\n"
                f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            counts[f"wrong forms: {(await reader.read()).decode()[9:12]}"] += 1
        finally:
            writer.close()

    return step


# What is told


def share(times: list[float], part: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("inf")


def markdown(found: dict[str, Any], seconds: float) -> str:
    rows = [["", "asked", "median", "p99", "largest"]]
    for name, times in (("without the attack", found["before"]), ("under attack", found["during"])):
        rows.append([name, f"{len(times):,}", *(f"{1000 * share(times, part):.0f} ms" for part in (0.5, 0.99, 1))])
    ratio = share(found["during"], 0.99) / share(found["before"], 0.99)
    checks = [
        (f"p99 of a fresh count, {ratio:.1f} times that without the attack (goal: {RATIO:g})", ratio <= RATIO),
        (f"questions of others that were not answered: {found['errors']}", not found["errors"]),
        (
            f"the server was up at the end and stopped with status {found['status']}",
            found["alive"] and not found["status"],
        ),
        (f"log: {found['log']:,} bytes (goal: below {LOG:,})", found["log"] < LOG),
        (f"memory of the server and its children: {found['memory'] / 1e6:,.0f} MB at most", found["memory"] < MEMORY),
        (f"ledger: {found['entries']:,} entries, {'in order' if found['ledger'] else 'NOT in order'}", found["ledger"]),
    ]
    lines = [
        "# A served clinic under attack",
        "",
        f"One run of `python benchmarks/hostile.py` on {os.cpu_count()} cores, which server, ordinary analysts and"
        f" attack share; the attack's own process has low priority. The demo's clinic in a process with"
        f" {MEMORY / 1e9:g} GB of memory and {DESCRIPTORS:,}"
        f" descriptors; four ordinary analysts, half over HTTP and half over PostgreSQL's protocol, ask fresh counts;"
        f" then one hostile analyst and one stranger attack for {seconds:g} seconds.",
        "",
        *table(rows),
        "",
        *(f"- {'yes' if good else '**NO**'}: {what}" for what, good in checks),
        "",
        "What the attack did, and what came of it:",
        "",
        *table([["", "times"], *([name, f"{count:,}"] for name, count in sorted(found["attack"].items()))]),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
