"""Collecting with SQL gives what adding the reports gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import Code, ParameterError, Refused
from tacit.local import Grid, Hadamard, Hybrid, KAry, OptimizedUnary, Piecewise, Projective, Rounding, Summary
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


@pytest.mark.parametrize("epsilon", [0.5, 2])
@pytest.mark.parametrize("kind", [Rounding, Piecewise, Hybrid])
def test_parquet_gives_the_tally_of_all_reports(kind, epsilon, tmp_path):
    protocol = kind(Grid(0, 24, 96), epsilon)
    reports = protocol.encode(np.linspace(0, 24, 3000), ReplayBits(b"parquet"))
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    for file, part in zip(files, np.array_split(reports, 3), strict=True):
        pq.write_table(pa.table({"report": part}), file)
    wanted = protocol.tally(reports, "sleep")
    assert from_parquet(protocol, tmp_path / "*.parquet", "report", survey="sleep") == wanted
    assert from_parquet(protocol, files, "report", survey="sleep").to_bytes() == wanted.to_bytes()
    assert (
        from_parquet(protocol, files[:2], "report", "sleep").merge(from_parquet(protocol, files[2], "report", "sleep"))
        == wanted
    )


def test_the_rows_of_a_mean_are_added_exactly():
    protocol = Piecewise(Grid(0, 1, 4), 1)
    top = protocol.report_limit - 1
    found = from_rows(protocol, [(top, 2**61), (top, 2**61 - 2), (0, 1)])
    # (2^62 - 2) top is beyond 64 bits
    assert (found.counts, found.totals) == ((2**62 - 1,), ((2**62 - 2) * top,))


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
    hours = Hybrid(Grid(0, 24, 96), 1)  # 96 places and a window of 58, then two ends: reports from 0 to 155
    assert from_rows(hours, [(155, 1)]).users == 1
    for report in (None, -1, 156, 0.5):
        with pytest.raises(Refused, match="from 0 to 155"):
            from_rows(hours, [(report, 1)])
    with pytest.raises(Refused):
        from_parquet(KAry(4, 1), tmp_path / "none.parquet", "report")
    with pytest.raises(ParameterError):
        from_rows(OptimizedUnary(4, 1), [(1, 1)])


def test_integers_of_other_libraries_are_integers():
    frame = pd.DataFrame({"report": [0, 2], "reports": [5, 7]})
    wanted = from_rows(KAry(3, 1), [(0, 5), (2, 7)]).to_bytes()
    for rows in (
        frame.values,
        frame.itertuples(index=False),
        frame.astype("uint8").values,
        [(np.int64(0), np.uint64(5)), (np.int8(2), 7)],
        [(0, 2), (2, 7), (0, 3)],
    ):
        assert from_rows(KAry(3, 1), rows).to_bytes() == wanted


def test_a_count_that_is_none_is_refused():
    for times in (2.7, 2.0, None, "2", -1, True, np.nan, 2**62, 2**63, 10**30):
        with pytest.raises(Refused) as caught:
            from_rows(KAry(3, 1), [(0, times)])
        assert caught.value.code is Code.REPORT and caught.value.fix
    for protocol in (KAry(3, 1), Hadamard(3, 1), Projective(3, 1), Rounding(Grid(0, 1, 1), 1)):
        with pytest.raises(Refused, match="2\\^62"):
            from_rows(protocol, [(0, 2**62 - 1), (1, 2**62 - 1)])
        assert from_rows(protocol, [(0, 2**61), (1, 2**61 - 1)]).users == 2**62 - 1
    supports = from_rows(Hadamard(3, 1), [(0, 2**62 - 1)]).support  # the report 0 agrees with every value
    assert supports.tolist() == [2**62 - 1] * 3


def test_what_is_wrong_is_said(tmp_path):
    for wrong in (
        lambda: from_rows(KAry(3, 1), None),
        lambda: from_rows(KAry(3, 1), [3, 4]),
        lambda: from_rows(KAry(3, 1), [(1, 2, 3)]),
        lambda: from_rows(KAry(3, 1), pd.DataFrame({"report": [0], "reports": [5]})),
        lambda: from_rows(KAry(3, 1), [(0, 1)], survey=5),
        lambda: from_rows("k-ary", [(0, 1)]),
        lambda: from_parquet(KAry(3, 1), [], "report"),
        lambda: from_parquet(KAry(3, 1), 5, "report"),
        lambda: from_parquet(KAry(3, 1), None, "report"),
        lambda: from_parquet(KAry(3, 1), b"x.parquet", "report"),
        lambda: from_parquet(KAry(3, 1), [tmp_path, 5], "report"),
        lambda: from_parquet(KAry(3, 1), tmp_path, 5),
        lambda: query("answers", None),
    ):
        with pytest.raises(ParameterError) as caught:
            wrong()
        assert caught.value.fix
