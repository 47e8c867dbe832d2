"""Every error code has a status for each way that it is told."""

from __future__ import annotations

import pickle
import re
from http import HTTPStatus

import pytest

from tacit.errors import Code, Failed, LedgerError, ParameterError, Refused
from tacit.serve.replies import failure, status_of
from tacit.statuses import STATUSES


def test_every_code_has_its_statuses():
    assert set(STATUSES) == set(Code)
    for status in STATUSES.values():
        assert 400 <= HTTPStatus(status.http) < 600
        assert re.fullmatch("[0-9A-Z]{5}", status.sqlstate)
        assert status.exit in range(1, 7)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Refused(Code.RAW_COLUMN, "x"), (422, "42803", 3)),
        (ParameterError("x", "y"), (400, "22023", 2)),
        (LedgerError(Code.LEDGER_FULL, "x"), (503, "58000", 6)),
        (Failed(), (500, "XX000", 1)),
    ],
)
def test_a_few_of_them(error, expected):
    assert STATUSES[error.code] == expected
    assert status_of(error) == expected[0]


def test_how_long_to_wait_is_a_number_that_clients_are_told():
    error = Refused(Code.RATE, "ada asks too often", fix="wait 2.4 seconds", retry_after=2.4)
    assert failure(error).headers["retry-after"] == "3"
    assert pickle.loads(pickle.dumps(error)).retry_after == 2.4
    assert failure(Refused(Code.BUSY, "all places are taken")).headers["retry-after"] == "1"
    assert "retry-after" not in failure(Refused(Code.BUDGET, "nothing is left")).headers
