"""A `tacit serve` on made-up data for clients to connect to, and what its analyst has spent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POLICY = """\
[data]
source = "data"
[ledger]
store = "clinic.ledger"
[privacy]
epsilon = 1000
[tables.visits]
unit = "patient_id"
max_groups = 2
max_rows_per_group = 3
[tables.visits.columns]
age = { type = "int", lower = 0, upper = 110 }
ward = { type = "text", values = ["Emergency", "Surgery"] }
visited = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }
cost = { type = "float", lower = 0, upper = 1000, step = 0.01 }
[analysts.ada]
epsilon = 900
"""
WARDS = ("Emergency", "Surgery")


@dataclass(frozen=True)
class DemoServer:
    """Where it listens, and the environment that clients read it from: PostgreSQL's own, and those of HTTP."""

    port: int
    password: str
    url: str
    key: str

    @property
    def environment(self) -> dict[str, str]:
        """How to connect, as libpq and others read it."""
        return {
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": "ada",
            "PGPASSWORD": self.password,
            "PGDATABASE": "clinic",
            "PGSSLMODE": "disable",
            "PGOPTIONS": "-c tacit.epsilon=0.1",
            "TACIT_URL": self.url,
            "TACIT_KEY": self.key,
        }

    def spent(self) -> str:
        """The epsilon that the analyst has spent, by psql."""
        command = ["psql", "-X", "-At", "-c", "SELECT spent FROM tacit.budget"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()


@contextmanager
def serve_demo(folder: Path) -> Iterator[DemoServer]:
    """Serve made-up visits from a folder, until the block ends."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    lines = ["patient_id,age,ward,visited,cost"]
    lines += [f"{n // 3},{20 + n % 60},{WARDS[n % 2]},2025-{1 + n % 12:02}-01,{n % 500}.5" for n in range(1_200)]
    (folder / "data" / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    policy = folder / "clinic.toml"
    policy.write_text(POLICY, encoding="utf-8")
    tacit = [sys.executable, "-m", "tacit"]
    added = subprocess.run(
        [*tacit, "analyst", "add", "ada", "-p", str(policy), "--json"], capture_output=True, text=True, check=True
    )
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, web = free.getsockname()[1], other.getsockname()[1]
    command = [*tacit, "serve", "-p", str(policy), "--http", str(web), "--postgres", str(port), "--rate", "500"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        secrets = json.loads(added.stdout)
        yield DemoServer(port, secrets["password"], f"http://127.0.0.1:{web}", secrets["key"])
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError("the server did not start")
