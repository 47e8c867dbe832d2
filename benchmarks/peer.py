"""OpenDP's side, in its own environment: reads one request a line, writes one reply a line, both JSON.

The clock runs here, so the pipe between the processes is not in the times.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
from opendp.measurements import make_private_lazyframe
from questions import EDUCATION, EPSILON, GROUPS_PER_PERSON, HOURS, QUESTIONS, ROWS, ROWS_PER_PERSON

KEYS = pl.LazyFrame({"education": EDUCATION})


class Peer:
    """Contexts over rows held in memory."""

    def __init__(self, data: Path) -> None:
        self._frame = pl.read_parquet(data)
        self._contexts: dict[str, dp.Context] = {}
        self._fresh = 0

    def context(self, unit: str, questions: int) -> dp.Context:
        """A context that shares its privacy loss evenly over this many questions of EPSILON each."""
        whose = {} if unit == "row" else {"identifier": "person"}
        return dp.Context.compositor(
            data=self._frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1, **whose),
            privacy_loss=dp.loss_of(epsilon=EPSILON * questions),
            split_evenly_over=questions,
            margins=[dp.polars.Margin(max_length=ROWS)],
        )

    def query(self, context: dp.Context, name: str, unit: str) -> Any:
        """The question as the documentation writes it: filter, truncate by person, aggregate, join the public keys."""
        self._fresh += 1
        query = context.query().filter(pl.col("capital_gain") >= -self._fresh)
        if name == "count":
            query = query.filter(pl.col("age") >= 40)
        if unit != "row" and name != "groups":
            query = query.truncate_per_group(ROWS_PER_PERSON)
        if unit != "row" and name == "groups":
            # keep="sample", the default, raises "multiple fields with name" with these versions.
            query = query.truncate_per_group(ROWS_PER_PERSON, by=["education"])
            query = query.truncate_num_groups(GROUPS_PER_PERSON, by=["education"], keep="first")
        if name == "count":
            return query.select(n=dp.len(signed=True))
        if name == "mean":
            return query.select(total=pl.col("hours").dp.sum(HOURS), mean=pl.col("hours").dp.mean(HOURS))
        return query.group_by("education").agg(n=dp.len(signed=True)).with_keys(KEYS)

    def open(self, unit: str, questions: int) -> dict[str, Any]:
        """Set up the context of a unit, off the clock."""
        self._contexts[unit] = self.context(unit, questions)
        return {}

    def ask(self, name: str, unit: str) -> dict[str, Any]:
        """One question to the open context."""
        start = time.perf_counter()
        frame = self.query(self._contexts[unit], name, unit).release().collect()
        rows = frame.rows(named=True)
        return _reply(name, time.perf_counter() - start, rows)

    def ask_with_setup(self, name: str, unit: str) -> dict[str, Any]:
        """The same with a context of its own."""
        start = time.perf_counter()
        frame = self.query(self.context(unit, 1), name, unit).release().collect()
        rows = frame.rows(named=True)
        return _reply(name, time.perf_counter() - start, rows)

    def ask_by_hand(self, name: str, unit: str) -> dict[str, Any]:
        """The same with the noise worked out beforehand by a person, so that nothing is searched for.

        The scale is relative to the sensitivity: epsilon shared by the vectors, 2 rows of a person, 2 groups.
        """
        each = {"row": 1, "person": ROWS_PER_PERSON * (GROUPS_PER_PERSON if name == "groups" else 1)}[unit]
        vectors = next(question.vectors for question in QUESTIONS if question.name == name)
        scale = each * vectors / EPSILON * (1 + 1e-9)  # a hair more, for rounding
        context = self._contexts[unit]
        start = time.perf_counter()
        query = self.query(context, name, unit)
        domain, metric = context.accountant.input_space
        measurement = make_private_lazyframe(
            domain, metric, context.accountant.output_measure, query.polars_plan, global_scale=scale
        )
        rows = context(measurement).collect().rows(named=True)
        seconds = time.perf_counter() - start
        price = measurement.map(context.d_in)
        if not 0.999 * EPSILON < price <= EPSILON:
            raise AssertionError(f"the price by hand is {price}")
        return _reply(name, seconds, rows)

    def draws(self, number: int, scale: float, calls: int) -> dict[str, Any]:
        """Seconds for a vector of integers with discrete Laplace noise, and for handing it over with none."""
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        zeros = [0] * number
        times = {}
        for label, width in (("noisy", scale), ("plain", 0.0)):
            mechanism = dp.m.make_laplace(*space, scale=width)
            seconds = []
            for _ in range(calls):
                start = time.perf_counter()
                mechanism(zeros)
                seconds.append(time.perf_counter() - start)
            times[label] = statistics.median(seconds)
        return times

    def versions(self) -> dict[str, str]:
        """What runs here."""
        return {name: version(name) for name in ("opendp", "polars")}


def _reply(name: str, seconds: float, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if name == "groups":
        rows.sort(key=lambda row: EDUCATION.index(row["education"]))
    columns = [column for column in rows[0] if column != "education"]
    return {"seconds": seconds, "values": {column: [float(row[column]) for row in rows] for column in columns}}


def main() -> None:
    """Answer requests until the pipe closes."""
    logging.disable(logging.WARNING)  # a total epsilon above 5 is warned of; the benchmark's total means nothing
    dp.enable_features("contrib")
    peer = Peer(Path(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(peer, request.pop("do"))(**request)), flush=True)


if __name__ == "__main__":
    main()
