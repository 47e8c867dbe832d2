"""The error of COUNT(*) and SUM by 1,000 groups with a clip that is chosen, beside fixed caps on the rows of a unit.

    python benchmarks/clipped_queries.py [--sizes 100000 1000000 10000000] [--caps 50 100 200]

The rows are those of `query_data.py`. All answers are asked through `Analyst.ask` at epsilon 1, with nothing declared
but the bounds of values and, where a cap is fixed, that cap: so many rows of a unit count, whatever their groups. With
a delta of 10^-9 for a question, a chosen clip may be one of the L2 norm with Gaussian noise, and noise under fixed caps
Gaussian too. Errors are means over the groups and over the asks.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
import duckdb
from question import GROUPS, LARGEST, SQL

import tacit

HERE = Path(__file__).resolve().parent
SIZES = (100_000, 1_000_000, 10_000_000)
FIXED = (5, 10, 20, 50, 100, 200, 400, 800)  # rows of a unit
DELTAS = (0, 1e-9)
ASKS = 5


def policy(source: Path, bound: Any, delta: float, folder: Path) -> dict[str, Any]:
    """The policy with one bound on the rows of a unit."""
    columns = {
        "g": {"type": "int", "lower": 0, "upper": GROUPS - 1},
        "v": {"type": "float", "lower": 0, "upper": LARGEST, "step": 0.01},
    }
    caps = {"max_rows": bound} if bound == "auto" else dict.fromkeys(("max_groups", "max_rows_per_group"), bound)
    privacy = {"epsilon": 1000, **({"delta": 1e-6, "delta_per_question": delta} if delta else {})}
    return {
        "data": {"source": str(source)},
        "ledger": {"store": str(folder / f"{bound} {delta}.ledger")},
        "privacy": privacy,
        "tables": {"events": {"unit": "who", **caps, "max_rows": bound, "columns": columns}},
        "analysts": {"ada": {"epsilon": 900, **({"delta": 1e-7} if delta else {})}},
    }


def measure(source: Path, bound: Any, delta: float, truth: dict[int, tuple[int, float]], folder: Path) -> list[float]:
    """The mean errors of counts and of sums, the median seconds of an ask, and how many clips were of the L2 norm."""
    counts, sums, seconds, second_norms = [], [], [], 0
    with tacit.open(policy(source, bound, delta, folder)) as curator:
        ada = curator.analyst("ada")
        for number in range(ASKS):
            start = time.perf_counter()
            answer = ada.ask(SQL, epsilon=1 - number / 10**9)
            seconds.append(time.perf_counter() - start)
            rows = answer.to_arrow().to_pylist()
            counts.append(statistics.fmean(abs(row["n"] - truth[row["g"]][0]) for row in rows))
            sums.append(statistics.fmean(abs(row["s"] - truth[row["g"]][1]) for row in rows))
            second_norms += any("L2 norm" in note for note in answer.notes)
    return [statistics.fmean(counts), statistics.fmean(sums), statistics.median(seconds), second_norms]


def main() -> None:
    """Print a row for each size, delta and bound."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options.add_argument("--caps", type=int, nargs="+", default=list(FIXED), help="rows of a unit")
    given = options.parse_args()
    print("| rows | delta | rows of a unit | error of n | error of s | seconds | clips of L2 |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    for size in given.sizes:
        with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as name:
            folder = Path(name)
            source = folder / "events.parquet"
            subprocess.run([sys.executable, HERE / "query_data.py", "events", str(size), source], check=True)
            found = duckdb.sql(f"SELECT g, COUNT(*), SUM(v) FROM '{source}' GROUP BY g").fetchall()
            truth = dict.fromkeys(range(GROUPS), (0, 0.0)) | {g: (n, s) for g, n, s in found}
            for delta in DELTAS:
                for bound in ("auto", *given.caps):
                    n, s, seconds, second = measure(source, bound, delta, truth, folder)
                    said = f"{n:,.1f} | {s:,.0f} | {seconds:.2f} | {second if bound == 'auto' else ''}"
                    print(f"| {size:,} | {delta:g} | {bound} | {said} |", flush=True)


if __name__ == "__main__":
    main()
