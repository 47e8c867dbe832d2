"""What can be set, and what that means."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused, SourceLocation
from tacit.serve.pgwire.settings import SessionSettings
from tacit.serve.pgwire.sqlstate import WireError, sqlstate, to_wire_error
from tacit.serve.pgwire.transaction import Transaction


def test_a_question_without_a_price_is_told_how_to_set_one():
    with pytest.raises(WireError) as error:
        _ = SessionSettings().epsilon_or_within
    assert error.value.hint.startswith("SET tacit.epsilon = 0.5")


def test_a_price_and_an_accuracy_replace_each_other():
    settings = SessionSettings().with_value("tacit.epsilon", "0.5")
    assert settings.epsilon_or_within == (Fraction(1, 2), None)
    settings = settings.with_value("tacit.within", "n=50, total = 1e3")
    assert settings.epsilon_or_within == (None, {"n": 50, "total": 1000})
    assert settings.get("tacit.epsilon") == ""
    assert settings.with_value("tacit.epsilon", "2").epsilon_or_within == (2, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tacit.epsilon", "much"),
        ("tacit.epsilon", "-1"),
        ("tacit.epsilon", "1e999999999"),
        ("tacit.epsilon", "nan"),
        ("tacit.within", "n"),
        ("tacit.within", "n=0"),
        ("tacit.within", "n=1,,"),
        ("tacit.confidence", "1"),
        ("tacit.intervals", "perhaps"),
        ("client_encoding", "latin1"),
        ("datestyle", "german"),
        ("server_version", "16"),
        ("tacit.nothing", "1"),
        ("application_name", "a" * 501),
        ("statement_timeout", "soon"),
        ("statement_timeout", "-1"),
        ("statement_timeout", "25d"),  # beyond 2^31 - 1 milliseconds
    ],
)
def test_a_value_that_cannot_be_is_refused_with_a_hint(name, value):
    with pytest.raises(WireError) as error:
        SessionSettings().with_value(name, value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("written", "shown", "seconds"),
    [("0", "0", None), ("250", "250ms", 0.25), ("5000", "5s", 5), ("90 s", "90s", 90), ("2min", "2min", 120)],
)
def test_a_time_is_in_milliseconds_or_has_a_unit(written, shown, seconds):
    settings = SessionSettings().with_value("statement_timeout", written)
    assert (settings.get("statement_timeout"), settings.timeout) == (shown, seconds)
    assert SessionSettings().timeout is None


def test_settings_go_back_with_a_rollback_and_stay_with_a_commit():
    state = Transaction(SessionSettings())
    state.begin()
    state.assign("tacit.epsilon", "1", local=False)
    state.assign("tacit.confidence", "0.9", local=True)
    assert state.settings.get("tacit.confidence") == "0.9"
    state.commit()
    assert state.settings.get("tacit.epsilon") == "1"
    assert state.settings.get("tacit.confidence") == "0.95"
    state.begin()
    state.assign("", None, local=False)
    assert state.settings.get("tacit.epsilon") == ""
    state.fail()
    with pytest.raises(WireError, match="failed"):
        state.check()
    assert state.commit() == "ROLLBACK"
    assert state.settings.get("tacit.epsilon") == "1"


def test_every_code_has_an_sqlstate():
    elsewhere = {"policy", "data", "report", "failed"}  # which do not come from a question, or are XX000
    for code in ErrorCode:
        error = LedgerError(code, "x") if code.startswith("ledger") else Refused(code, "x")
        assert (sqlstate(error) == "XX000") == (code in elsewhere), code
    assert sqlstate(Failed()) == "XX000"
    assert sqlstate(ParameterError("epsilon", "x")) == "22023"


def test_a_complaint_has_the_position_the_hint_and_the_stable_code():
    text = "SELECT a,\n  heigth FROM visits"
    error = to_wire_error(
        Refused(ErrorCode.UNKNOWN_COLUMN, "no heigth", at=SourceLocation(2, 3, "  heigth FROM visits"), fix="age"), text
    )
    assert error.position == text.index("heigth") + 1
    assert (error.sqlstate, error.hint) == ("42703", "age")
    assert error.message == "refused [unknown-column]: no heigth"
