"""Speed, as ratios in one run: Tacit beside OpenDP on the same questions, noise, and cold starts.

    make bench
    python benchmarks/run.py --json

Writes benchmarks/results.md, and prints the same, or JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile

import census
import environment
import measures
import report
from ours import Ours
from questions import UNITS

CALLS = 30
WARM = 3


def main() -> None:
    """Measure everything, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options.add_argument("--calls", type=int, default=CALLS, help=f"calls of each question, {CALLS} unless told")
    chosen = options.parse_args()
    results = measure(max(chosen.calls, 2))
    page = report.markdown(results)
    if chosen.calls >= CALLS:
        (environment.HERE / "results.md").write_text(page, encoding="utf-8")
    print(json.dumps(results, indent=2) if chosen.json else page)


def measure(calls: int) -> dict[str, object]:
    """All sections. The ledgers lie beside this file, on a disk that has to obey fsync, and go when it ends."""
    python = environment.make()
    with tempfile.TemporaryDirectory(dir=environment.HERE, prefix=".work-") as name:
        folder = environment.Path(name)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        table = census.records()
        census.write(table, folder)
        truths = census.truths(table)
        peer = environment.Process(python, folder / "people.parquet") if python else None
        ours = Ours(folder, UNITS)
        try:
            return {
                "machine": measures.machine(folder, peer),
                "asks": measures.asks(ours, peer, truths, calls, WARM),
                "setups": measures.setups(ours, peer, truths, max(calls // 6, 2)),
                "noise": measures.noise(peer),
                "cold": measures.cold(),
            }
        finally:
            ours.close()
            if peer:
                peer.close()


if __name__ == "__main__":
    main()
