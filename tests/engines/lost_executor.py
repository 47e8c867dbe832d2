"""Loses executors while a question runs: a process of its own, because a process has one Spark at most.

    python lost_executor.py folder once        # one executor is killed
    python lost_executor.py folder always      # each executor is killed a while after it has come up

Prints a line of JSON: what came of the question, what is left of the budget, and whether the next one is answered.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pyspark

import tacit
from tacit.errors import Failed

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "512m",
    "spark.log.level": "OFF",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.task.maxFailures": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
ROWS = 600_000
SLOW = (
    f"SELECT id AS who, CAST(pmod(hash(sha2(CAST(id AS STRING), 512)), 10) AS BIGINT) AS x FROM range(0, {ROWS}, 1, 1)"
)
GRACE = 2.0  # seconds in which an executor may get a task
PATIENCE = 280.0


def home_of_spark(folder: Path) -> Path:
    """Spark's own files under another name, because its workers write beside them."""
    home = folder / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    return home


def executors() -> list[int]:
    """The processes under this one that run tasks."""
    above, named = {}, []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                above[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                    named.append(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return [number for number in named if os.getpid() in _line(number, above)]


def _line(number: int, above: dict[int, int]) -> list[int]:
    found = []
    while number in above:
        number = above[number]
        found.append(number)
    return found


def is_running_tasks(session: Any) -> bool:
    """Whether a task runs just now."""
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return any(stage is not None and stage.numActiveTasks for stage in stages)


def main(folder: Path, how: str) -> None:
    """Ask, kill, and tell."""
    os.environ |= {"SPARK_HOME": str(home_of_spark(folder)), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[1,1,512]").appName("lost executors")
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    frames = {"visits": session.sql(SLOW), "few": session.sql("SELECT id AS who, 1L AS x FROM range(5)")}
    bounds = {"unit": "who", "max_groups": 1, "max_rows_per_group": 2}
    bounds["columns"] = {"x": {"type": "int", "lower": 0, "upper": 9}}
    policy = {
        "data": {"engine": "spark"},
        "ledger": {"store": str(folder / "x.ledger")},
        "privacy": {"epsilon": 1000},
        "tables": dict.fromkeys(frames, bounds),
        "analysts": {"ada": {"epsilon": 100}},
    }
    outcome: list[Any] = []
    seen: dict[int, float] = {}
    killed: set[int] = set()
    with tacit.open(policy, data=frames) as curator:
        ada = curator.analyst("ada")

        def ask() -> None:
            try:
                outcome.append(ada.ask("SELECT SUM(x) AS s FROM visits", epsilon=2))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        end = time.monotonic() + PATIENCE
        while thread.is_alive() and time.monotonic() < end:
            for number in set(executors()) - killed:
                old = time.monotonic() - seen.setdefault(number, time.monotonic()) > GRACE
                if old and is_running_tasks(session) and (how == "always" or not killed):
                    os.kill(number, signal.SIGKILL)
                    killed.add(number)
            thread.join(0.05)
        (found,) = outcome
        failed = isinstance(found, Failed) and str(found) == str(Failed()) and found.__cause__ is None
        told = {
            "killed": len(killed),
            "failed": failed,
            "sum": None if isinstance(found, Exception) else found["s"][0],
            "remaining": float(ada.budget.remaining),
            "next": len(ada.ask("SELECT COUNT(*) AS n FROM few", epsilon=1).to_dict()["rows"]),
        }
    print(json.dumps(told), flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
