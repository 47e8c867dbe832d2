"""What can be set, and what that means."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused, SourceLocation
from tacit.serve.pgwire.settings import SessionSettings
from tacit.serve.pgwire.sqlstate import WireError, sqlstate, to_wire_error
from tacit.serve.pgwire.startup_settings import read_startup_settings
from tacit.serve.pgwire.transaction import Transaction


def test_a_question_without_a_price_is_told_how_to_set_one():
    with pytest.raises(WireError) as error:
        _ = SessionSettings().epsilon_or_within
    assert error.value.hint.startswith("SET tacit.epsilon = 0.5")
    assert dict(error.value.fields())[b"M"].endswith(f"; fix: {error.value.hint}")


def test_the_fix_is_in_the_message_but_for_words_that_are_postgresqls():
    own = WireError("42601", "refused [syntax]: this is no SQL", "SELECT 1")
    assert dict(own.fields()) | {b"S": "", b"V": ""} == {
        b"S": "",
        b"V": "",
        b"C": "42601",
        b"M": "refused [syntax]: this is no SQL; fix: SELECT 1",
        b"H": "SELECT 1",
    }
    assert dict(WireError("42601", "wrong").fields())[b"M"] == "wrong"
    for known in (
        WireError("42703", 'column "a" does not exist', 'Perhaps you meant "b".', is_postgresql=True),
        WireError("0A000", "cached plan must not change result type", "prepare it", routine="RevalidateCachedQuery"),
    ):
        assert dict(known.fields())[b"M"] == known.message and dict(known.fields())[b"H"] == known.hint


@pytest.mark.parametrize(
    ("options", "expected", "source"),
    [
        ({"database": "clinic"}, {}, ""),
        ({"database": "what?is=this"}, {}, ""),
        ({"options": "-c tacit.epsilon=0.5"}, {"tacit.epsilon": "0.5"}, "the options of the connection"),
        ({"options": "--tacit.epsilon=0.5"}, {"tacit.epsilon": "0.5"}, "the options of the connection"),
        ({"tacit.within": "n=50"}, {"tacit.within": "n=50"}, "the options of the connection"),
        ({"database": "clinic?tacit.epsilon=0.1"}, {"tacit.epsilon": "0.1"}, "the name of the database"),
        ({"database": "clinic?tacit.intervals=on"}, {"tacit.intervals": "on"}, ""),
        (
            {"database": "clinic?tacit.within=n=50&tacit.intervals=on", "application_name": "grafana"},
            {"tacit.within": "n=50", "tacit.intervals": "on", "application_name": "grafana"},
            "the name of the database",
        ),
        (
            {"database": "clinic?tacit.epsilon=0.1", "options": "-c tacit.epsilon=0.5"},
            {"tacit.epsilon": "0.5"},
            "the options of the connection",
        ),
    ],
)
def test_a_connection_starts_with_the_settings_of_its_options_and_of_its_database(options, expected, source):
    found, given_by = read_startup_settings({"user": "ada", **options})
    assert (dict(found), given_by) == (expected, source)


def test_what_set_the_epsilon_is_known_and_reset_goes_back_to_it():
    state = Transaction(SessionSettings().with_value("tacit.epsilon", "0.1"), "the options of the connection")
    assert state.find_privacy_source(state.settings) == "the options of the connection"
    state.assign("tacit.within", "n=50", local=False)
    assert (state.settings.privacy, state.find_privacy_source(state.settings)) == ("within 'n=50'", "SET")
    state.assign("tacit.within", None, local=False)
    assert (state.settings.privacy, state.settings.get("tacit.within")) == ("epsilon 0.1", "")
    assert state.find_privacy_source(state.settings) == "the options of the connection"
    state.assign("tacit.epsilon", "2", local=False)
    state.assign("tacit.within", None, local=False)  # which is not set
    assert (state.settings.privacy, state.find_privacy_source(state.settings)) == ("epsilon 2", "SET")
    state.assign("", None, local=False)
    assert state.settings.privacy == "epsilon 0.1"
    assert Transaction(SessionSettings()).find_privacy_source(SessionSettings()) == ""


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
