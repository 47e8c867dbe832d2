"""The sides that run in Tacit's own environment: the query without protection, and Tacit's answers.

    python benchmarks/query_sides.py ask-plain events.parquet

Each is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from pipe import Table, peak, serve
from question import (
    EPSILON,
    GROUPS,
    JOINED_SQL,
    LARGEST,
    MOST_GROUPS,
    MOST_ROWS,
    SHIPPING,
    SHOP_ROWS,
    SHOP_SQL,
    SQL,
)


def policy(source: Path, *, prepared: bool, name: str, caps: str = "") -> dict[str, Any]:
    """The policy over one table of events, or over a shop where the source is a folder."""
    data: dict[str, Any] = {"source": str(source)}
    if prepared:
        data["copy"] = str(source.with_suffix(f".{caps}.prepared" if caps else ".prepared"))
    return {
        "data": data,
        "ledger": {"store": str(source.with_suffix(f".{name}.ledger"))},
        "privacy": {"epsilon": 1000},
        "tables": shop() if source.is_dir() else events(caps),
        "analysts": {"ada": {"epsilon": 1000}},
    }


CAPS: dict[str, dict[str, Any]] = {
    "": {"max_groups": MOST_GROUPS, "max_rows_per_group": MOST_ROWS},
    "rows": dict.fromkeys(("max_groups", "max_rows_per_group", "max_rows"), MOST_GROUPS * MOST_ROWS),
    "auto": {"max_rows": "auto"},
}
"""How much of a unit counts: rows in groups, as many rows whatever their groups, or a clip that is chosen."""


def events(caps: str = "") -> dict[str, Any]:
    """One table, whose unit is a column."""
    columns = {
        "g": {"type": "int", "lower": 0, "upper": GROUPS - 1},
        "v": {"type": "float", "lower": 0, "upper": LARGEST, "step": 0.01},
    }
    return {"events": {"unit": "who", **CAPS[caps], "columns": columns}}


def shop() -> dict[str, Any]:
    """Lines, whose unit is the customer of their order."""
    lines = {
        "shipping": {"type": "text", "values": list(SHIPPING)},
        "quantity": {"type": "int", "lower": 1, "upper": 50},
        "price": {"type": "float", "lower": 0, "upper": 1000, "step": 0.01},
    }
    caps = {"max_groups": len(SHIPPING), "max_rows_per_group": SHOP_ROWS}
    return {
        "orders": {"unit": "customer", **caps, "columns": {"priority": {"type": "int", "lower": 0, "upper": 4}}},
        "lines": {"unit": {"through": "order_id", "to": "orders.order_id"}, **caps, "columns": lines},
    }


def numbered(rows: list[Any]) -> Table:
    """The rows of an answer, texts as their numbers."""
    return [(SHIPPING.index(key) if isinstance(key, str) else key, n, s) for key, n, s in rows]


def ask_plain(source: Path, *, sql: str = "", table: bool = True) -> None:
    """The query without protection, over DuckDB's own tables, or over the Parquet files."""
    import duckdb

    where = str(source.with_suffix(".duckdb")) if table else ":memory:"
    with duckdb.connect(where, read_only=table) as connection:
        if not table:
            connection.execute(f"CREATE VIEW events AS FROM read_parquet('{source}')")
        text = sql or (JOINED_SQL if source.is_dir() else SQL)
        serve(lambda: numbered(connection.execute(text).fetchall()), ("duckdb",))


def ask_tacit(source: Path, *, prepared: bool, caps: str = "") -> None:
    """Whole asks, each a question never asked before: its price is a billionth less than that of the last one."""
    import tacit

    name = caps or ("prepared" if prepared else "sql")
    text, key = (SHOP_SQL, "shipping") if source.is_dir() else (SQL, "g")
    prices = count()
    with tacit.open(policy(source, prepared=prepared, name=name, caps=caps)) as curator:
        ada = curator.analyst("ada")

        def ask() -> Table:
            answer = ada.ask(text, epsilon=EPSILON - next(prices) / 10**9)
            rows = [(row[key], row["n"], row["s"]) for row in answer]
            if answer.receipt.repeat:
                raise AssertionError("a stored answer was measured")
            return numbered(rows)

        serve(ask, ("tacit-dp", "duckdb"))


def tables(source: Path) -> None:
    """Parquet as DuckDB's own tables, which is what the unprotected query reads."""
    import duckdb

    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    with duckdb.connect(str(source.with_suffix(".duckdb"))) as connection:
        for file in files:
            name = file.stem if source.is_dir() else "events"
            connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{file}')")


def scan(source: Path) -> None:
    """Read every column of the source into Arrow batches: the median seconds of three."""
    import duckdb

    seconds, used = [], []
    with duckdb.connect() as connection:
        for _ in range(3):
            start, before = time.perf_counter(), time.process_time()
            rows = sum(b.num_rows for b in connection.sql(f"FROM read_parquet('{source}')").to_arrow_reader(1 << 20))
            seconds.append(time.perf_counter() - start)
            used.append(time.process_time() - before)
    found = {"seconds": statistics.median(seconds), "processor": statistics.median(used)}
    print(json.dumps({**found, "rows": rows, "peak": peak()}))


def prepare(source: Path, *, caps: str = "") -> None:
    """Make the copy, as `tacit prepare` does where there is none."""
    from tacit.curator import prepare as preparing
    from tacit.policy.load import load

    start, before = time.perf_counter(), time.process_time()
    declared = load(policy(source, prepared=True, name="prepared", caps=caps))
    if isinstance(declared.copy, Path):
        declared.copy.unlink(missing_ok=True)
    path = preparing.prepare(declared, lambda what, share: None)
    found = {"seconds": time.perf_counter() - start, "processor": time.process_time() - before}
    print(json.dumps({**found, "bytes": path.stat().st_size, "peak": peak()}))


COMMANDS: dict[str, Callable[[Path], None]] = {
    "ask-plain": ask_plain,
    "ask-parquet": lambda source: ask_plain(source, table=False),
    "ask-unjoined": lambda source: ask_plain(source, sql=SHOP_SQL),
    "ask-prepared": lambda source: ask_tacit(source, prepared=True),
    "ask-rows": lambda source: ask_tacit(source, prepared=True, caps="rows"),
    "ask-auto": lambda source: ask_tacit(source, prepared=True, caps="auto"),
    "ask-sql": lambda source: ask_tacit(source, prepared=False),
    "tables": tables,
    "scan": scan,
    "prepare": prepare,
    "prepare-rows": lambda source: prepare(source, caps="rows"),
    "prepare-auto": lambda source: prepare(source, caps="auto"),
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]))
