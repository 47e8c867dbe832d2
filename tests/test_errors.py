"""Errors: a code, what is wrong, where, and how to fix it; they travel between processes."""

from __future__ import annotations

import copy
import pickle

import pytest

import tacit
from tacit.errors import (
    DataError,
    ErrorCode,
    Failed,
    LedgerError,
    ParameterError,
    PolicyError,
    Refused,
    SourceLocation,
    TacitError,
)

PLACE = SourceLocation(line=2, column=8, excerpt="SELECT AGE FROM visits", length=3)
ERRORS = [
    Refused(ErrorCode.RAW_COLUMN, "AGE would show the values of single rows", at=PLACE, fix="AVG(AGE)"),
    Refused(ErrorCode.BUDGET, "nothing is left"),
    ParameterError("epsilon", "must be positive, got -1", fix="choose an epsilon above 0"),
    PolicyError(
        ErrorCode.POLICY,
        "epsilon: is missing",
        at=SourceLocation(3, 1, "[privacy]", 9, "clinic.toml"),
        fix="give a number",
    ),
    DataError(ErrorCode.DATA, "there is no clinic.duckdb"),
    LedgerError(ErrorCode.LEDGER_TAMPERED, "the chain is broken at entry 5", fix="ask the owner"),
    Failed(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_and_back(error, protocol):
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert (again.code, again.what, again.at, again.fix) == (error.code, error.what, error.at, error.fix)
    assert str(again) == str(error)
    assert again.args == error.args
    assert getattr(again, "name", None) == getattr(error, "name", None)
    assert str(copy.copy(error)) == str(copy.deepcopy(error)) == str(error)


def test_the_whole_text():
    assert str(ERRORS[0]) == (
        "refused [raw-column]: AGE would show the values of single rows\n"
        "  line 2, column 8\n"
        "    SELECT AGE FROM visits\n"
        "           ^^^\n"
        "  fix: AVG(AGE)"
    )
    assert str(ERRORS[1]) == "refused [budget]: nothing is left"
    assert str(ERRORS[2]) == ("error [parameter]: epsilon: must be positive, got -1\n  fix: choose an epsilon above 0")


def test_a_place_in_a_file_names_it():
    assert "clinic.toml, line 3, column 1" in str(ERRORS[3])


def test_one_tree():
    assert all(isinstance(error, TacitError) for error in ERRORS)
    assert isinstance(ERRORS[2], ValueError)  # so that code which knows nothing of Tacit catches it
    kinds = [tacit.Refused, tacit.ParameterError, tacit.PolicyError, tacit.DataError, tacit.LedgerError, tacit.Failed]
    assert {type(error) for error in ERRORS} == set(kinds)


def test_failed_is_always_the_same():
    assert str(Failed()) == str(Failed())
    with pytest.raises(TypeError):
        Failed("a row had age 200")


def test_codes_are_words():
    assert all(code == code.lower() and code.replace("-", "").isalpha() for code in ErrorCode)
    assert len(set(ErrorCode)) == len(list(ErrorCode))
