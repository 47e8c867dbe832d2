"""Four sums over TPC-H's tables with a clip that is chosen.

    python benchmarks/tpch_shapes.py [--scale 1] [--draws 41] [--epsilon 0.8]

Lines per order, orders and quantity per customer, lines per supplier. Nothing is declared but the bounds of a quantity,
1 to 50. Each sum is asked through `Analyst.ask`, as often as `--draws` says, with a condition that all rows meet and
that makes it another question. Beside the median and mean error stand the mean errors at scale 1 that the paper on R2T
reports (Dong, Fang, Yi, Tao, Machanavajjhala, SIGMOD 2022).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
from environment import HERE

import tacit

SHAPES = (
    ("lines per order", "lineitem", "l_orderkey", "COUNT(*)", 1_373),
    ("orders per customer", "orders", "o_custkey", "COUNT(*)", 2_615),
    ("quantity per customer", "bought", "o_custkey", "SUM(l_quantity)", 201_958),
    ("lines per supplier", "supplied", "l_suppkey", "COUNT(*)", 34_726),
)
VIEWS = """
CREATE TABLE lineitem AS SELECT l_orderkey, CAST(l_quantity AS INTEGER) AS l_quantity, l_linenumber FROM lines;
CREATE TABLE orders AS SELECT o_custkey, 1 AS l_linenumber FROM heads;
CREATE TABLE bought AS SELECT o_custkey, CAST(l_quantity AS INTEGER) AS l_quantity, l_linenumber
    FROM lines JOIN heads ON l_orderkey = o_orderkey;
CREATE TABLE supplied AS SELECT l_suppkey, l_linenumber FROM lines;
DROP TABLE lines;
DROP TABLE heads;
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--draws", type=int, default=41)
    options.add_argument("--epsilon", type=float, default=0.8)
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=".work-", dir=HERE))
    try:
        make_tables(folder, given.scale)
        print("| sum | true | median error | mean error | R2T's mean |\n|---|---|---|---|---|")
        with tacit.open(declare(folder, given.epsilon * given.draws * len(SHAPES))) as curator:
            for name, table, _, aggregate, published in SHAPES:
                errors, truth = ask(curator.analyst("ada"), folder, table, aggregate, given.draws, given.epsilon)
                median, mean = statistics.median(errors), statistics.fmean(errors)
                print(f"| {name} | {truth:,} | {median:,.0f} | {mean:,.0f} | {published:,} |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_tables(folder: Path, scale: float) -> None:
    program = shutil.which("tpchgen-cli") or str(Path(sys.executable).with_name("tpchgen-cli"))
    made = [program, "parquet", "-s", str(scale), "--tables", "orders,lineitem", f"--output-dir={folder}"]
    subprocess.run(made, check=True, capture_output=True)
    with duckdb.connect(str(folder / "tpch.duckdb")) as database:
        database.execute(f"CREATE TABLE lines AS SELECT * FROM read_parquet('{folder / 'lineitem'}.parquet')")
        database.execute(f"CREATE TABLE heads AS SELECT * FROM read_parquet('{folder / 'orders'}.parquet')")
        database.execute(VIEWS)


def declare(folder: Path, epsilon: float) -> dict[str, object]:
    columns = {"l_linenumber": {"type": "int", "lower": 1, "upper": 7}}
    quantity = {"l_quantity": {"type": "int", "lower": 1, "upper": 50}}
    summed = {table for _, table, _, aggregate, _ in SHAPES if "quantity" in aggregate}
    tables = {
        table: {"unit": unit, "max_rows": "auto", "columns": columns | (quantity if table in summed else {})}
        for _, table, unit, _, _ in SHAPES
    }
    return {
        "data": {"source": str(folder / "tpch.duckdb"), "copy": str(folder / "tpch.copy")},
        "ledger": {"store": str(folder / "tpch.ledger")},
        "privacy": {"epsilon": epsilon},
        "analysts": {"ada": {"epsilon": epsilon}},
        "tables": tables,
    }


def ask(
    analyst: tacit.Analyst, folder: Path, table: str, aggregate: str, draws: int, epsilon: float
) -> tuple[list[float], int]:
    with duckdb.connect(str(folder / "tpch.duckdb"), read_only=True) as plain:
        row = plain.execute(f"SELECT CAST({aggregate} AS BIGINT) FROM {table}").fetchone()
    assert row is not None
    errors = []
    for number in range(draws):
        # the first line of an order is at least 1, so the planner cannot tell these from one another, and all rows stay
        sql = f"SELECT {aggregate} AS v FROM {table} WHERE l_linenumber * 100 > {number}"
        errors.append(abs(float(analyst.ask(sql, epsilon=epsilon).value) - row[0]))
    return errors, row[0]


if __name__ == "__main__":
    main()
