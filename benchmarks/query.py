"""Queries at scale: time, memory and error of protected group-bys, beside the query without protection.

    make bench-query
    python benchmarks/query.py --sizes 100000 1000000
    python benchmarks/query.py --page        # the page again, from the results that are there

Writes benchmarks/query.json, docs/benchmarks.md and docs/images/query.svg. With other sizes than the full ones it
prints the page and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers.environments import Missing, python_of
from peers.question import SHIPPING
from query_turns import HERE, Failed, Side, middles, once, summary, take_turns

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
SHOP = 1_500_000  # orders; TPC-H at scale 1
MOST_OF_PEERS = 10_000_000
GIVE_UP = 120.0  # seconds that a question would take, going by fewer rows
PEERS = ("opendp", "smartnoise", "pipelinedp", "tumult")
RESULTS = HERE / "query.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PICTURE = HERE.parent / "docs" / "images" / "query.svg"


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="rows")
    options.add_argument("--orders", type=int, default=SHOP, help="orders of the shop")
    options.add_argument("--alone", action="store_true", help="leave the other libraries out")
    options.add_argument("--page", action="store_true", help="measure nothing: write the page of the last results")
    chosen = options.parse_args()
    full = (tuple(chosen.sizes), chosen.orders, chosen.alone) == (SIZES, SHOP, False)
    import deep_report
    import query_report

    if chosen.page:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        results = measure(chosen.sizes, chosen.orders, [] if chosen.alone else list(PEERS), RESULTS if full else None)
    page = query_report.markdown(results)
    page += "\n" + deep_report.markdown(json.loads(deep_report.RESULTS.read_text(encoding="utf-8")))
    if chosen.page or full:
        PAGE.write_text(page, encoding="utf-8")
        query_report.plot(results, PICTURE)
    print(page)


def measure(sizes: list[int], orders: int, peers: list[str], save: Path | None) -> dict[str, Any]:
    """All sections, one thing at a time; what there is so far is saved after each."""
    results: dict[str, Any] = {"machine": machine(), "versions": {}, "copies": [], "asks": [], "shop": {}}

    def keep() -> None:
        if save is not None:
            save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as name:
        folder = Path(name)
        say(f"a shop of {orders:,} orders...")
        results["shop"] = shop(generate("orders", orders, folder / "shop"), orders)
        truths = []
        for rows in sizes:
            say(f"{rows:,} rows: making them...")
            source = generate("events", rows, folder / f"{rows}.parquet")
            say("  a scan, and a prepared copy")
            results["copies"].append({"rows": rows, **middles(("scan", "prepare"), source)})
            say("  the question")
            part, truth = asks(source, rows, results["versions"])
            results["asks"].append(part)
            truths.append(truth)
            keep()
        for number, rows in enumerate(sizes):
            for side in ("sql", "rows", "auto", *peers) if rows <= MOST_OF_PEERS else ():
                say(f"{rows:,} rows: {side}")
                source, parts = folder / f"{rows}.parquet", results["asks"][: number + 1]
                one_more(side, source, parts, truths[number], results["versions"])
                keep()
    return results


def machine() -> dict[str, Any]:
    """What it ran on."""
    return {
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def generate(what: str, rows: int, path: Path) -> Path:
    """The data as Parquet and as DuckDB's own tables, made by processes of their own."""
    subprocess.run([sys.executable, HERE / "query_data.py", what, str(rows), path], check=True)
    once("tables", path)
    return path


def asks(source: Path, rows: int, versions: dict[str, dict[str, str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The question to the quick sides, in turn; and the true answer."""
    sides = {name: ours(name, source) for name in ("plain", "parquet", "prepared")}
    take_turns(sides)
    truth = sides["plain"].replies[0]
    found = {name: summary(side, truth, len(truth["n"])) for name, side in sides.items()}
    for side in sides.values():
        side.close()
    versions["tacit"] = sides["prepared"].versions
    return {"rows": rows, "sides": found, "left_out": {}}, truth


def one_more(
    name: str, source: Path, parts: list[dict[str, Any]], truth: dict[str, Any], versions: dict[str, dict[str, str]]
) -> None:
    """The question to a slower side, added to the last of the parts, unless it would take too long."""
    *earlier, last = parts
    before = [(part["rows"], part["sides"][name]["median"]) for part in earlier if name in part["sides"]]
    if len(before) < len(earlier):
        return  # it is said at a smaller size why
    if (expected := forecast(before, last["rows"])) > GIVE_UP:
        last["left_out"][name] = f"would take about {expected:.0f} s a question, going by {before[-1][0]:,} rows"
        return
    try:
        script = f"peers/{name}_groups.py"
        if name in {"rows", "auto"}:
            once(f"prepare-{name}", source)  # a copy is of one policy
        side = ours(name, source) if name in {"sql", "rows", "auto"} else Side(python_of(name), script, str(source))
        take_turns({name: side})
    except (Missing, Failed) as problem:
        last["left_out"][name] = str(problem)
        return
    last["sides"][name] = summary(side, truth, len(truth["n"]))
    versions[name] = side.versions
    side.close()


def forecast(before: list[tuple[int, float]], rows: int) -> float:
    """The seconds of so many rows on the line through the last two measurements; 0 where there are no two."""
    if len(before) < 2:
        return 0.0
    (less, quick), (more, slow) = before[-2:]
    return slow + (slow - quick) / (more - less) * (rows - more)


def ours(name: str, source: Path) -> Side:
    """A side that runs in this environment."""
    return Side(sys.executable, "query_sides.py", f"ask-{name}", str(source))


def shop(source: Path, orders: int) -> dict[str, Any]:
    """Lines whose unit is the customer of their order."""
    copy = once("prepare", source)
    sides = {name: ours(name, source) for name in ("plain", "unjoined", "prepared", "sql")}
    take_turns(sides)
    truth = sides["plain"].replies[0]
    found = {name: summary(side, truth, len(SHIPPING)) for name, side in sides.items()}
    for side in sides.values():
        side.close()
    return {"orders": orders, "lines": int(sum(truth["n"])), "prepare": copy, "sides": found}


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
