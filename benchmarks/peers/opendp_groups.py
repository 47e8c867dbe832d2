"""OpenDP's side, by polars: rows in memory, at most so many groups of a unit and rows of it in each, public keys."""

from __future__ import annotations

import logging
import sys
from typing import Any

import opendp.prelude as dp
import polars as pl
from pipe import Table, serve
from question import EPSILON, GROUPS, LARGEST, MOST_GROUPS, MOST_ROWS


def main() -> None:
    """Serve."""
    logging.disable(logging.WARNING)
    dp.enable_features("contrib")
    frame = pl.read_parquet(sys.argv[1])
    keys = pl.LazyFrame({"g": pl.Series(range(GROUPS), dtype=pl.Int32)})

    def ask() -> Table:
        context = dp.Context.compositor(
            data=frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1, identifier="who"),
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=len(frame))],
        )
        query: Any = context.query().truncate_per_group(MOST_ROWS, by=["g"])
        # keep="sample", the default, raises "multiple fields with name" with these versions. Asked for k groups it
        # keeps k - 1, and takes noise for k: it compares a rank that starts at 1 with `< k`.
        query = query.truncate_num_groups(MOST_GROUPS, by=["g"], keep="first")
        value = pl.col("v").fill_null(0.0).fill_nan(0.0)
        query = query.group_by("g").agg(n=dp.len(signed=True), s=value.dp.sum((0.0, float(LARGEST))))
        rows: Table = query.with_keys(keys).release().collect().select("g", "n", "s").rows()
        return rows

    serve(ask, ("opendp", "polars"))


if __name__ == "__main__":
    main()
