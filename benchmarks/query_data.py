"""The rows that the query benchmarks ask about, the same on every machine: Parquet, written a stretch at a time.

    python benchmarks/query_data.py events 1000000 events.parquet
    python benchmarks/query_data.py orders 1500000 shop

`events` has units = rows/10. A row is of the unit of rank floor(units x^2), x uniform, so the largest unit has about
sqrt(10 rows) rows: 1,000 of 100,000, and 31,623 of 100 million. Groups 0 to 999 follow Zipf's law. `orders` is a shop:
customers, ten orders each on average, four lines an order, the sizes of TPC-H.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.question import GROUPS, LARGEST, SHIPPING

STRETCH = 1 << 20


def events(rows: int, path: Path) -> None:
    """One table: who, in which group, how much."""
    units = max(1, rows // 10)
    zipf = np.cumsum(1 / np.arange(1, GROUPS + 1))
    edges = zipf / zipf[-1]
    schema = pa.schema([("who", pa.int64()), ("g", pa.int32()), ("v", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="snappy") as file:
        for draw, size in stretches(rows):
            rank = (units * draw.random(size) ** 2).astype(np.int64)
            group = np.minimum(np.searchsorted(edges, draw.random(size)), GROUPS - 1)
            value = draw.integers(0, 100 * LARGEST, size, endpoint=True) / 100
            file.write_table(pa.table([scattered(rank, units), group.astype(np.int32), value], schema=schema))


def orders(number: int, folder: Path) -> None:
    """Three tables: customers, their orders, the lines of these."""
    folder.mkdir(exist_ok=True)
    customers = max(1, number // 10)
    people = {"customer": np.arange(customers, dtype=np.int64), "segment": (np.arange(customers) % 5).astype(np.int32)}
    pq.write_table(pa.table(people), folder / "customers.parquet")
    head = pa.schema([("order_id", pa.int64()), ("customer", pa.int64()), ("priority", pa.int32())])
    body = pa.schema(
        [("order_id", pa.int64()), ("shipping", pa.string()), ("quantity", pa.int32()), ("price", pa.float64())]
    )
    with (
        pq.ParquetWriter(folder / "orders.parquet", head, compression="snappy") as heads,
        pq.ParquetWriter(folder / "lines.parquet", body, compression="snappy") as bodies,
    ):
        first = 0
        for draw, size in stretches(number):
            order = np.arange(first, first + size, dtype=np.int64)
            rank = (customers * draw.random(size) ** 2).astype(np.int64)
            heads.write_table(
                pa.table([order, scattered(rank, customers), draw.integers(0, 5, size, dtype=np.int32)], schema=head)
            )
            line = np.repeat(order, draw.integers(1, 7, size, endpoint=True))
            way = pa.array(SHIPPING).take(pa.array(draw.integers(0, len(SHIPPING), len(line))))
            quantity = draw.integers(1, 50, len(line), endpoint=True, dtype=np.int32)
            price = draw.integers(100, 100_000, len(line), endpoint=True) / 100
            bodies.write_table(pa.table([line, way, quantity, price], schema=body))
            first += size


def stretches(rows: int) -> Iterator[tuple[Any, int]]:
    """A generator of its own for each stretch of rows, and how many there are in it."""
    for number, first in enumerate(range(0, rows, STRETCH)):
        yield np.random.Generator(np.random.PCG64([20_260_101, number])), min(STRETCH, rows - first)


def scattered(rank: Any, units: int) -> Any:
    """Ranks as the names of units, so that a name says nothing of the size: a bijection of 0 to units - 1."""
    step = next(s for s in range(int(units * 0.618) | 1, 2 * units + 3, 2) if np.gcd(s, units) == 1)
    return rank * step % units


def main() -> None:
    """Write what the command line names."""
    what, rows, path = sys.argv[1:]
    {"events": events, "orders": orders}[what](int(rows), Path(path))


if __name__ == "__main__":
    main()
