"""Every question of the tests over many rows, against the same query without protection.

    python benchmarks/all_questions.py
    python benchmarks/all_questions.py --rows 1000000

Writes benchmarks/all_questions.md. Both sides read tables of DuckDB: the plain query the ones that are generated here,
the curator its own copy of them. Each query is run once before it is timed, so the time is that of a second question
to an open curator; the whole of `ask` counts, with the charge on disk.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from environment import HERE, say
from report import table

sys.path.insert(0, str(HERE.parent))
from tests.curator.test_questions import QUESTIONS, TABLES, declare

import tacit
from tacit.curator.curator import Curator
from tacit.errors import Refused

MEDIAN, WORST, PERSON = 2.0, 10.0, 1.6
# A GROUP BY with a person as the unit: the question that most people ask.
PERSON_LEVEL = (
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT day, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY day",
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=10_000_000, help="of the largest tables")
    options.add_argument("--every", type=int, default=1, help="take only each so manyth question")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=".work-", dir=HERE))
    try:
        found = measure(folder, chosen.rows, chosen.every)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    page = markdown(found, chosen.rows)
    (HERE / "all_questions.md").write_text(page, encoding="utf-8")
    print(page)


def generate(file: Path, rows: int) -> None:
    """The tables of the tests' clinic, with eight visits of each patient and two orders of two lines."""
    patients = rows // 8
    with duckdb.connect(str(file)) as made:
        made.execute("SELECT setseed(0.5)")
        made.execute(
            f"CREATE TABLE visits AS SELECT CAST(i // 8 AS BIGINT) AS patient,"
            " ['A', 'B', 'C'][1 + CAST(floor(random() * 3) AS INT)] AS ward,"
            " ['f', 'm'][1 + CAST(floor(random() * 2) AS INT)] AS sex,"
            " CASE WHEN random() < 0.9 THEN CAST(18 + floor(random() * 82) AS BIGINT) END AS age,"
            " CASE WHEN random() < 0.9 THEN floor(1 + random() * 900) / 2 END AS cost,"
            " DATE '2025-01-01' + CAST(floor(random() * 90) AS INT) AS day, random() < 0.4 AS urgent,"
            " CASE WHEN i % 8 = 0 THEN 'rare ' || (i // 80) WHEN random() < 0.5 THEN 'Fever' ELSE 'cough' END AS note,"
            " CAST(floor(random() * 4) AS BIGINT) AS code, CAST(floor(random() * 31) AS BIGINT) AS stay"
            f" FROM range({rows}) AS r(i) ORDER BY random()"
        )
        made.execute(
            "CREATE TABLE patients AS SELECT i AS patient, CAST(1900 + floor(random() * 121) AS BIGINT) AS born,"
            f" ['f', 'm'][1 + CAST(floor(random() * 2) AS INT)] AS city FROM range({patients}) AS r(i)"
        )
        made.execute(
            "CREATE TABLE orders AS SELECT i // 2 AS patient, i AS id, CAST(floor(random() * 10) AS BIGINT) AS weight"
            f" FROM range({2 * patients}) AS r(i) ORDER BY random()"
        )
        made.execute(
            "CREATE TABLE lines AS SELECT i // 2 AS order_id,"
            " ['pill', 'bed', 'lamp'][1 + CAST(floor(random() * 3) AS INT)] AS item,"
            " floor(random() * 201) / 2 AS price,"
            " CASE WHEN random() < 0.9 THEN CAST(floor(random() * 6) AS BIGINT) END AS amount"
            f" FROM range({4 * patients}) AS r(i) ORDER BY random()"
        )
        made.execute(
            "CREATE TABLE people AS SELECT"
            " CASE WHEN random() < 0.9 THEN CAST(floor(random() * 121) AS BIGINT) END AS age,"
            " ['f', 'm'][1 + CAST(floor(random() * 2) AS INT)] AS sex,"
            " ['A', 'B', 'C'][1 + CAST(floor(random() * 3) AS INT)] AS ward,"
            " CASE WHEN random() < 0.9 THEN floor(random() * 19) / 2 END AS pay,"
            " DATE '2025-01-01' + CAST(floor(random() * 90) AS INT) AS day,"
            " ['Ulm', 'Bonn', 'Hum'][1 + CAST(floor(random() * 3) AS INT)] AS town"
            f" FROM range({rows}) AS r(i)"
        )
        made.execute(
            "CREATE TABLE wards AS SELECT * FROM (VALUES ('A', CAST(5 AS BIGINT), 'f'), ('B', 20, 'f'), ('C', 50, 'm'))"
            " AS v(ward, beds, side)"
        )


def measure(folder: Path, rows: int, every: int) -> dict[str, Any]:
    say(f"writing {rows:,} rows...")
    source = folder / "clinic.duckdb"
    generate(source, rows)
    policy = declare(4, 5) | {"data": {"source": str(source), "copy": str(folder / "clinic.copy")}}
    policy["ledger"] = {"store": str(folder / "clinic.ledger")}
    policy["privacy"] = {**policy["privacy"], "epsilon": 1000}
    policy["analysts"] = {"ada": {"epsilon": 1000, "delta": policy["privacy"].get("delta", 0)}}
    say("reading them into the copy...")
    started = time.perf_counter()
    with tacit.open(policy) as curator:
        read = time.perf_counter() - started
        with duckdb.connect(str(source), read_only=True) as plain:
            scan = time_scan(plain)
            texts = [*PERSON_LEVEL, *(text for text in QUESTIONS[::every] if text not in PERSON_LEVEL)]
            found = [side for text in texts if (side := time_question(text, curator, plain)) is not None]
    started = time.perf_counter()
    with tacit.open(policy) as curator:
        curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.0003)
        again = time.perf_counter() - started
    return {"read": read, "scan": scan, "questions": found, "again": again}


def time_scan(plain: Any) -> float:
    """Seconds to read every column of every table into Arrow batches."""
    started = time.perf_counter()
    for name in TABLES:
        for _ in plain.sql(f"SELECT * FROM {name}").to_arrow_reader(1 << 20):
            pass
    return time.perf_counter() - started


def time_question(text: str, curator: Curator, plain: Any) -> dict[str, Any] | None:
    ada = curator.analyst("ada")
    try:
        ada.ask(text, epsilon=0.0001)
    except Refused:
        return None
    started = time.perf_counter()
    ada.ask(text, epsilon=0.0002)
    ours = time.perf_counter() - started
    try:
        plain.execute(text).fetchall()
        started = time.perf_counter()
        plain.execute(text).fetchall()
        theirs = time.perf_counter() - started
    except duckdb.Error:  # a function that DuckDB calls otherwise
        return None
    say(f"{ours / theirs:6.2f}  {1000 * ours:7.0f} ms  {1000 * theirs:7.0f} ms  {text[:110]}")
    return {"text": text, "ours": ours, "plain": theirs, "ratio": ours / theirs}


def markdown(found: dict[str, Any], rows: int) -> str:
    sides = sorted(found["questions"], key=lambda side: side["ratio"])
    ratios = [side["ratio"] for side in sides]
    person = [side["ratio"] for side in sides if side["text"] in PERSON_LEVEL]
    checks = [
        (f"median ratio {statistics.median(ratios):.2f} (goal: {MEDIAN:g})", statistics.median(ratios) <= MEDIAN),
        (f"worst ratio {ratios[-1]:.1f} (goal: {WORST:g})", ratios[-1] <= WORST),
        (f"GROUP BY with COUNT and SUM {max(person):.2f} (goal: {PERSON:g})", max(person) <= PERSON),
        (
            f"reading the data into its copy takes {found['read']:.1f} s, {found['read'] / found['scan']:.1f} scans of"
            " all tables (goal: 12)",
            found["read"] <= 12 * found["scan"],
        ),
        (f"opening again and one answer: {found['again']:.2f} s in a process that runs", found["again"] < 1.5),
    ]
    shown = [*sides[-25:][::-1], *sides[: -25 : max(1, len(sides) // 25)]]
    lines = [
        [
            f"{side['ratio']:.2f}",
            f"{1000 * side['ours']:.0f} ms",
            f"{1000 * side['plain']:.0f} ms",
            f"`{side['text'].replace('|', chr(92) + '|')}`",
        ]
        for side in shown
    ]
    return "\n".join(
        [
            "# Every question of the tests, over many rows",
            "",
            f"One run of `python benchmarks/all_questions.py --rows {rows}`: {len(sides)} questions, each against the"
            " same query without protection over DuckDB's own tables.",
            "",
            *(f"- {'yes' if good else '**NO**'}: {what}" for what, good in checks),
            "",
            "The 25 slowest, and one of each 25th part of the others:",
            "",
            *table([["ratio", "ask", "plain", "question"], *lines]),
            "",
        ]
    )


if __name__ == "__main__":
    main()
