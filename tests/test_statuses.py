"""Every error code has a status for each way that it is told."""

from __future__ import annotations

import pickle
import re
from http import HTTPStatus

import pytest

from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.serve.responses import error_response, http_status
from tacit.statuses import STATUSES


def test_every_code_has_its_statuses():
    assert set(STATUSES) == set(ErrorCode)
    for status in STATUSES.values():
        assert 400 <= HTTPStatus(status.http) < 600
        assert re.fullmatch("[0-9A-Z]{5}", status.sqlstate)
        assert status.exit in range(1, 7)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Refused(ErrorCode.RAW_COLUMN, "x"), (422, "42803", 3)),
        (ParameterError("x", "y"), (400, "22023", 2)),
        (LedgerError(ErrorCode.LEDGER_FULL, "x"), (503, "58000", 6)),
        (Failed(), (500, "XX000", 1)),
    ],
)
def test_a_few_of_them(error, expected):
    assert STATUSES[error.code] == expected
    assert http_status(error) == expected[0]


def test_how_long_to_wait_is_a_number_that_clients_are_told():
    error = Refused(ErrorCode.RATE, "ada asks too often", fix="wait 2.4 seconds", retry_after=2.4)
    assert error_response(error).headers["retry-after"] == "3"
    assert pickle.loads(pickle.dumps(error)).retry_after == 2.4
    assert error_response(Refused(ErrorCode.BUSY, "all places are taken")).headers["retry-after"] == "1"
    assert "retry-after" not in error_response(Refused(ErrorCode.BUDGET, "nothing is left")).headers
