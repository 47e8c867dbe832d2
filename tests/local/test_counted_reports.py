"""Reports that an engine has counted give what adding them one by one gives."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local import (
    FrequencySummary,
    HadamardResponse,
    HybridMechanism,
    KAryRandomizedResponse,
    MeanSummary,
    OptimizedUnaryEncoding,
    PiecewiseMechanism,
    ProjectiveGeometryResponse,
    StochasticRounding,
    UniformGrid,
)
from tacit.sampling.bits import ReplayBits

GROUPED = "SELECT report, COUNT(*) FROM answers GROUP BY 1"


def counted(protocol, rows, survey=""):
    kept = FrequencySummary if hasattr(protocol, "domain") else MeanSummary
    return kept.empty(protocol, survey).add_counts(rows)


@pytest.mark.parametrize("kind", [KAryRandomizedResponse, HadamardResponse, ProjectiveGeometryResponse])
def test_rows_of_a_group_by_give_what_adding_gives(kind):
    protocol = kind(20, 1)
    reports = protocol.encode(np.arange(3000) % 20, ReplayBits(b"parquet"))
    wanted = FrequencySummary.empty(protocol, "s").add(reports)
    first, last = (
        duckdb.sql(GROUPED).fetchall()
        for answers in (pd.DataFrame({"report": part}) for part in np.array_split(reports, 2))
    )
    assert counted(protocol, first, "s").add_counts(last).to_bytes() == wanted.to_bytes()
    assert counted(protocol, first, "s").merge(counted(protocol, last, "s")).to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize("epsilon", [0.5, 2])
@pytest.mark.parametrize("kind", [StochasticRounding, PiecewiseMechanism, HybridMechanism])
def test_rows_of_a_group_by_give_the_summary_of_all_reports(kind, epsilon):
    protocol = kind(UniformGrid(0, 24, 96), epsilon)
    reports = protocol.encode(np.linspace(0, 24, 3000), ReplayBits(b"parquet"))
    wanted = protocol.summarize(reports, "sleep")
    first, last = (
        duckdb.sql(GROUPED).fetchall()
        for answers in (pd.DataFrame({"report": part}) for part in np.array_split(reports, 2))
    )
    assert counted(protocol, first, "sleep").add_counts(last) == wanted
    assert counted(protocol, first, "sleep").merge(counted(protocol, last, "sleep")).to_bytes() == wanted.to_bytes()


def test_the_rows_of_a_mean_are_added_exactly():
    protocol = PiecewiseMechanism(UniformGrid(0, 1, 4), 1)
    top = protocol.report_limit - 1
    found = counted(protocol, [(top, 2**61), (top, 2**61 - 2), (0, 1)])
    # (2^62 - 2) top is beyond 64 bits
    assert (found.counts, found.totals) == ((2**62 - 1,), ((2**62 - 2) * top,))


def test_bad_reports_are_refused_and_nothing_changes():
    for report in (None, -1, 4, "1", 0.5, True):
        summary = FrequencySummary.empty(KAryRandomizedResponse(4, 1)).add([3])
        with pytest.raises(Refused) as caught:
            summary.add_counts([(0, 5), (report, 1)])
        assert caught.value.code is ErrorCode.REPORT
        assert summary.support.tolist() == [0, 0, 0, 1]
    with pytest.raises(Refused):
        counted(KAryRandomizedResponse(4, 1), [(1, -1)])
    hours = HybridMechanism(
        UniformGrid(0, 24, 96), 1
    )  # 96 places and a window of 58, then two ends: reports from 0 to 155
    assert counted(hours, [(155, 1)]).users == 1
    for report in (None, -1, 156, 0.5):
        with pytest.raises(Refused, match="from 0 to 155"):
            counted(hours, [(report, 1)])
    with pytest.raises(ParameterError, match="not integers that can be counted by GROUP BY"):
        counted(OptimizedUnaryEncoding(4, 1), [(1, 1)])


def test_integers_of_other_libraries_are_integers():
    frame = pd.DataFrame({"report": [0, 2], "reports": [5, 7]})
    wanted = counted(KAryRandomizedResponse(3, 1), [(0, 5), (2, 7)]).to_bytes()
    for rows in (
        frame.values,
        frame.itertuples(index=False),
        frame.astype("uint8").values,
        [(np.int64(0), np.uint64(5)), (np.int8(2), 7)],
        [(0, 2), (2, 7), (0, 3)],
    ):
        assert counted(KAryRandomizedResponse(3, 1), rows).to_bytes() == wanted


def test_a_count_that_is_none_is_refused():
    for times in (2.7, 2.0, None, "2", -1, True, np.nan, 2**62, 2**63, 10**30):
        with pytest.raises(Refused) as caught:
            counted(KAryRandomizedResponse(3, 1), [(0, times)])
        assert caught.value.code is ErrorCode.REPORT and caught.value.fix
    for protocol in (
        KAryRandomizedResponse(3, 1),
        HadamardResponse(3, 1),
        ProjectiveGeometryResponse(3, 1),
        StochasticRounding(UniformGrid(0, 1, 1), 1),
    ):
        with pytest.raises(Refused, match="2\\^62"):
            counted(protocol, [(0, 2**62 - 1), (1, 2**62 - 1)])
        most = counted(protocol, [(0, 2**61), (1, 2**61 - 1)])
        assert most.users == 2**62 - 1
        assert most.add_counts([(0, 1)]).users == 2**62
        with pytest.raises(Refused, match="more than 2\\^62"):
            most.add_counts([(0, 2)])
    supports = counted(HadamardResponse(3, 1), [(0, 2**62 - 1)]).support  # the report 0 agrees with every value
    assert supports.tolist() == [2**62 - 1] * 3


def test_what_is_no_list_of_pairs_is_an_error():
    for rows in (None, [3, 4], [(1, 2, 3)], pd.DataFrame({"report": [0], "reports": [5]})):
        with pytest.raises(ParameterError) as caught:
            counted(KAryRandomizedResponse(3, 1), rows)
        assert caught.value.fix
