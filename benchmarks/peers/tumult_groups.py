"""Tumult Analytics' side, on Spark in this machine: rows in Spark's cache, which is filled off the clock."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from pipe import Table, Used, serve
from question import EPSILON, GROUPS, LARGEST, MOST_GROUPS, MOST_ROWS

warnings.simplefilter("ignore")
from pyspark.sql import SparkSession  # noqa: E402 - it warns on import
from tmlt.analytics import (  # noqa: E402 - the same
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)


def main() -> None:
    """Serve."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(sys.argv[1]).cache()
    frame.count()
    keys = KeySet.from_dict({"g": list(range(GROUPS))})
    bounded = (
        QueryBuilder("events").enforce(MaxGroupsPerID("g", MOST_GROUPS)).enforce(MaxRowsPerGroupPerID("g", MOST_ROWS))
    )

    def ask() -> Table:
        session = Session.from_dataframe(PureDPBudget(EPSILON), "events", frame, AddRowsWithID("who"))
        half = PureDPBudget(EPSILON / 2)
        counts = session.evaluate(bounded.groupby(keys).count(name="n"), half).collect()
        sums = session.evaluate(bounded.groupby(keys).sum("v", low=0, high=LARGEST, name="s"), half).collect()
        total = {row["g"]: row["s"] for row in sums}
        return [(row["g"], row["n"], total[row["g"]]) for row in counts]

    serve(ask, ("tmlt.analytics", "pyspark"), lambda: _used_by_java(spark))


def _used_by_java(spark: SparkSession) -> Used:
    """The most memory that Spark's process has held, and its processor time."""
    machine: Any = spark.sparkContext._jvm
    number = machine.java.lang.ProcessHandle.current().pid()
    lines = Path(f"/proc/{number}/status").read_text(encoding="utf-8").splitlines()
    most = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    ticks = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return most, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
