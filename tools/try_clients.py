"""Try PostgreSQL clients against a served curator, and print a table of what each does and what it costs.

    python tools/try_clients.py                      # all of them, in some ten minutes
    python tools/try_clients.py psql psycopg pg      # these
    python tools/try_clients.py --folder build/clients

Each client is installed into an environment of its own under the folder. It needs the package indexes of Python and
Node.js, and for some clients programs of the machine, which the table names where they are not there.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from clients.registry import CLIENTS, Client
from clients.server import DemoServer, serve_demo

STEPS = ("connect", "introspect", "question", "parameters", "refusal", "probe", "refresh")
SHOWN = ("connect", "introspect", "question", "parameters", "refusal with fix", "probe", "refresh")
FREE = frozenset({"connect", "introspect", "refusal", "probe", "refresh"})
EXPECTED = {"introspect": "cost", "question": "Surgery", "refresh": "Surgery", "probe": "ward"}
NAMELESS = frozenset({"kysely", "typeorm"})  # clients whose results without rows have no names of columns
NONE = 77  # a program's word that its client has no such step


def main() -> None:
    """Try the clients that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("build/clients"))
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in CLIENTS if not given.names or each.name in given.names]
    print("| client | " + " | ".join(SHOWN) + " |")
    print("|---" * (len(SHOWN) + 1) + "|")
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tacit-clients-") as made, serve_demo(Path(made)) as server:
        for client in chosen:
            cells = try_client(client, folder, server, notes)
            print(f"| {client.name} | " + " | ".join(cells) + " |", flush=True)
    print(*("", *notes), sep="\n")


def try_client(client: Client, folder: Path, server: DemoServer, notes: list[str]) -> list[str]:
    """The cells of a client; what went wrong is added to the notes."""
    missing = client.missing()
    try:
        if not missing:
            client.install(folder)
    except subprocess.SubprocessError as error:
        missing = f"it could not be installed: {str(getattr(error, 'stderr', '') or error)[-200:]}"
    if missing:
        notes.append(f"{client.name}: {missing}")
        return ["not tried"] * len(STEPS)
    cells, before = [], server.spent()
    for step in STEPS:
        cell = try_step(client, folder, server, step, notes)
        after = server.spent()
        if step in FREE and after != before:
            notes.append(f"{client.name}, {step}: it was charged")
            cell = "**charged**"
        cells.append(cell)
        before = after
    return cells


def try_step(client: Client, folder: Path, server: DemoServer, step: str, notes: list[str]) -> str:
    """Run a step, and say whether it did what it should."""
    command, more = client.command(folder, step)
    try:
        done = subprocess.run(
            command, env=server.environment | more, capture_output=True, text=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        notes.append(f"{client.name}, {step}: no answer in ten minutes")
        return "**no answer**"
    shown = done.stdout + done.stderr
    if done.returncode == NONE:
        return "none"
    if step == "refusal":
        succeeded = done.returncode != 0 and "refused [unknown-column]" in shown
        note = "yes" if "its columns are" in shown else "yes, without the fix"
    else:
        expected = "" if step == "probe" and client.name in NAMELESS else EXPECTED.get(step, "")
        succeeded, note = done.returncode == 0 and expected in shown, "yes"
    if not succeeded:
        lines = [line for line in shown.strip().splitlines() if line.strip()]
        notes.append(f"{client.name}, {step}: {' | '.join(lines[-3:])[-400:]}")
        return "**no**"
    return f"{note}, free" if step in {"introspect", "probe", "refresh"} else note


if __name__ == "__main__":
    main()
