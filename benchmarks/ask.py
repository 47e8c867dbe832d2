"""Speed of asking: planning, and ten million rows against the same query without protection.

    make bench
    python benchmarks/ask.py --rows 10000000

Writes benchmarks/ask.md. The ratio is of whole asks (parsing, charge on disk, engine, noise, stored answer, error bars)
to the plain query in the same DuckDB, the two taking turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from environment import HERE, say
from report import seconds, table

import tacit
from tacit.aggregates.registry import read_question as parse
from tacit.plan.bind_question import plan_for
from tacit.policy.load import load

COLUMNS = {
    "age": {"type": "int", "lower": 0, "upper": 110, "nullable": False},
    "cost": {"type": "float", "lower": 0, "upper": 5000, "step": 0.01},
    "ward": {"type": "text", "values": [f"W{number}" for number in range(10)]},
    "visited": {"type": "date", "lower": "2024-01-01", "upper": "2025-12-31"},
    "diagnosis": {"type": "text"},
}
QUESTIONS = {
    "count of a condition": "SELECT COUNT(*) AS n FROM visits WHERE age >= 40",
    "count by ward": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "sum and mean by ward": "SELECT ward, SUM(age) AS s, AVG(age) AS m FROM visits GROUP BY ward",
    "mean of a float": "SELECT AVG(cost) AS m FROM visits",
    "count by month": "SELECT DATE_TRUNC('month', visited) AS month, COUNT(*) AS n FROM visits GROUP BY 1",
    "count by diagnosis": "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis",
}
PLANNED = {
    **QUESTIONS,
    "median and deviation by ward": "SELECT ward, MEDIAN(age), STDDEV(cost) FROM visits GROUP BY ward",
    "mean of each person's total": "SELECT AVG(LEAST(total, 9000)) FROM"
    " (SELECT person, SUM(cost) AS total FROM visits GROUP BY person)",
}


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    chosen = options.parse_args()
    planning = plan_times()
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as folder:
        ratios = ask_times(Path(folder), chosen.rows)
    page = markdown(planning, ratios, chosen.rows)
    (HERE / "ask.md").write_text(page, encoding="utf-8")
    print(page)


def policy(folder: Path, unit: str) -> dict[str, Any]:
    """A policy over one table."""
    caps = {} if unit == "row" else {"max_groups": 4, "max_rows_per_group": 3}
    return {
        "data": {"source": folder / "visits.duckdb"},
        "ledger": {"store": folder / f"{unit}.ledger"},
        "privacy": {"epsilon": 1000, "delta": 1e-5},
        "tables": {"visits": {"unit": unit, **caps, "columns": COLUMNS}},
        "analysts": {"ada": {"epsilon": 1000, "delta": 1e-5}},
    }


def plan_times() -> dict[str, float]:
    """The median seconds from text to plan, each time at another price."""
    say("planning...")
    loaded = load(policy(Path("/nowhere"), "person"))
    found = {}
    for title, text in PLANNED.items():
        times = [clock(lambda n=number, t=text: plan_for(parse(t), loaded, 0.5 + n / 1000)) for number in range(101)]
        found[title] = statistics.median(times)
    return found


def ask_times(folder: Path, rows: int) -> dict[str, tuple[float, float]]:
    """For each question, the median seconds of the plain query and of the private one."""
    say(f"{rows:,} rows...")
    with duckdb.connect(str(folder / "visits.duckdb")) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT i // 3 AS person, CAST(hash(i) % 100 AS INTEGER) AS age,"
            " (hash(i + 1) % 500000) / 100.0 AS cost, 'W' || hash(i + 2) % 10 AS ward,"
            " DATE '2024-01-01' + CAST(hash(i + 3) % 730 AS INTEGER) AS visited,"
            f" 'D' || hash(i + 4) % 50 AS diagnosis FROM range({rows}) AS t(i)"
        )
    found = {}
    with (
        tacit.open(policy(folder, "row")) as curator,
        duckdb.connect(str(folder / "visits.duckdb"), read_only=True) as plain,
    ):
        ada = curator.analyst("ada")
        for title, text in QUESTIONS.items():
            say(f"  {title}")
            pairs = []
            for number in range(8):
                fast = clock(lambda t=text: plain.execute(t).fetchall())
                ours = clock(lambda t=text, n=number: ada.ask(t, epsilon=0.5 + n / 1000))
                pairs.append((fast, ours))
            found[title] = tuple(statistics.median(times) for times in zip(*pairs[1:], strict=True))
    return found


def clock(call: Callable[[], Any]) -> float:
    """The seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def markdown(planning: dict[str, float], asks: dict[str, tuple[float, float]], rows: int) -> str:
    """The page."""
    plans = [["question", "from text to plan"], *([title, seconds(time)] for title, time in planning.items())]
    ratios = [["question", "plain DuckDB", "Tacit", "ratio"]]
    ratios += [[title, seconds(a), seconds(b), f"{b / a:.2f}"] for title, (a, b) in asks.items()]
    return "\n".join(
        [
            "# Speed of asking",
            "",
            "One run of `make bench`. Planning, with a person as the unit: medians of 101.",
            "",
            *table(plans),
            "",
            f"{rows:,} rows, each row a unit: whole asks against the same query without protection, medians of 7.",
            "",
            *table(ratios),
            "",
        ]
    )


if __name__ == "__main__":
    main()
