"""PipelineDP's side, on its local backend: rows in memory, plain Python."""

from __future__ import annotations

import sys

import pipeline_dp
import pyarrow.parquet as pq
from pipe import Table, serve
from question import EPSILON, GROUPS, LARGEST, MOST_GROUPS, MOST_ROWS


def main() -> None:
    """Serve."""
    columns = pq.read_table(sys.argv[1])
    rows = list(zip(*(columns[name].to_pylist() for name in ("who", "g", "v")), strict=True))
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
        max_partitions_contributed=MOST_GROUPS,
        max_contributions_per_partition=MOST_ROWS,
        min_value=0,
        max_value=LARGEST,
    )

    def ask() -> Table:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=1e-9)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        found = engine.aggregate(rows, parameters, extractors, public_partitions=list(range(GROUPS)))
        accountant.compute_budgets()
        return [(group, cells.count, cells.sum) for group, cells in found]

    serve(ask, ("pipeline-dp", "python-dp"))


if __name__ == "__main__":
    main()
