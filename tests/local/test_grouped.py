"""Collecting with SQL gives what adding the reports gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import Code, ParameterError, Refused
from tacit.local import Hadamard, KAry, OptimizedUnary, Projective, Summary
from tacit.local.grouped import from_parquet, from_rows, query
from tacit.sampling.bits import ReplayBits


@pytest.mark.parametrize("kind", [KAry, Hadamard, Projective])
def test_parquet_gives_what_adding_gives(kind, tmp_path):
    protocol = kind(20, 1)
    reports = protocol.encode(np.arange(3000) % 20, ReplayBits(b"parquet"))
    for number, part in enumerate(np.array_split(reports, 3)):
        pq.write_table(pa.table({'the "report"': part}), tmp_path / f"{number}.parquet")
    found = from_parquet(protocol, tmp_path / "*.parquet", 'the "report"', survey="s")
    wanted = Summary.empty(protocol, "s").add(reports)
    assert found.to_bytes() == wanted.to_bytes()


def test_the_statement_runs_anywhere():
    import duckdb

    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "my answers" AS SELECT unnest([0, 0, 2, 3]) AS "x y"')
        rows = connection.execute(query("my answers", "x y")).fetchall()
    assert from_rows(KAry(4, 1), rows).support.tolist() == [2, 0, 1, 1]


def test_bad_reports_are_refused(tmp_path):
    for report in (None, -1, 4, "1", 0.5, True):
        with pytest.raises(Refused) as caught:
            from_rows(KAry(4, 1), [(report, 1)])
        assert caught.value.code is Code.REPORT
    with pytest.raises(Refused):
        from_rows(KAry(4, 1), [(1, -1)])
    with pytest.raises(Refused):
        from_parquet(KAry(4, 1), tmp_path / "none.parquet", "report")
    with pytest.raises(ParameterError):
        from_rows(OptimizedUnary(4, 1), [(1, 1)])
