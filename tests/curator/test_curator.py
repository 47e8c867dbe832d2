"""The curator as its users see it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from tests.support.ledgers import spent

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON, BudgetCharge
from tacit.curator.curator import Curator
from tacit.curator.resources import budget_limits
from tacit.curator.tables import table_schemas
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.verify import check_receipt, verify
from tacit.policy.load import load
from tacit.privacy.loss import LaplaceNoise
from tacit.sampling.bits import ReplayBits, SystemBits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward"

TOML = """
[data]
source = "visits.csv"
epoch = {epoch}

[privacy]
epsilon = {epsilon}

[tables.visits]
unit = "patient"
max_groups = 2
max_rows_per_group = 2
columns.age = {{ type = "int", lower = 0, upper = {upper} }}
columns.ward = {{ type = "text", values = ["A", "B", "C"] }}

[analysts.ada]
epsilon = 3
[analysts.bo]
epsilon = 1
"""
ROWS = [(n, n % 111, "AB"[n % 2]) for n in range(300)]  # 300 patients with one visit each, none in ward C


@pytest.fixture
def write(tmp_path):
    """Writes the policy and its data; returns the path of the policy."""

    def to(epoch: int = 1, epsilon: float = 5, upper: int = 110):
        lines = ["patient,age,ward", *(",".join(map(str, row)) for row in ROWS)]
        (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
        (tmp_path / "clinic.toml").write_text(TOML.format(epoch=epoch, epsilon=epsilon, upper=upper))
        return tmp_path / "clinic.toml"

    return to


@pytest.fixture
def curator(write):
    with tacit.open(write()) as opened:
        yield opened


@pytest.fixture
def ada(curator):
    return curator.analyst("ada")


class Raising:
    """An engine that fails on every row, and says a secret as it does."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, aggregation: Any) -> Any:
        self.runs += 1
        raise RuntimeError("row 17: age 42 of patient Smith")

    def source_digests(self) -> dict[str, str]:
        return {"visits": "of a copy"}

    def close(self) -> None:
        pass


@pytest.fixture
def broken(write, tmp_path):
    """A curator whose engine raises."""
    policy = load(write())
    with Curator(policy, Raising(), Ledger(tmp_path / "broken.ledger", budget_limits(policy)), ReplayBits(b"")) as made:
        yield made


# Opening.


def test_open_a_toml_file(curator, tmp_path):
    answer = curator.analyst("ada").ask(COUNT, epsilon=1)
    # Scale 2 (two rows of a patient may count): 300 within 2 * 30 but for a probability of e^-30 = 1e-13
    assert abs(answer.value - 300) < 60
    assert (tmp_path / "clinic.ledger").exists()


def test_open_a_path_as_text(write):
    with tacit.open(str(write())) as curator:
        assert curator.analyst("ada").name == "ada"


FRAMES = {"arrow": pa.table, "pandas": pandas.DataFrame, "polars": polars.DataFrame}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
def test_open_a_dict_with_a_frame(kind, tmp_path):
    frame = FRAMES[kind]({"age": [n % 111 for n in range(300)], "name": ["Smith"] * 300})
    policy = {
        "ledger": {"store": tmp_path / "people.ledger"},
        "privacy": {"epsilon": 5},
        "tables": {"people": {"unit": "row", "columns": {"age": {"type": "int", "lower": 0, "upper": 110}}}},
        "analysts": {"ada": {"epsilon": 5}},
    }
    with tacit.open(policy, data={"people": frame}) as curator:
        answer = curator.analyst("ada").ask("SELECT COUNT(*) FROM people", epsilon=1)
        assert abs(answer.value - 300) < 40  # scale 1: e^-40
        with pytest.raises(Refused) as caught:
            curator.analyst("ada").ask("SELECT COUNT(name) FROM people", epsilon=1)
        assert caught.value.code is ErrorCode.UNKNOWN_COLUMN  # in the frame, but not in the policy


def test_a_dict_without_a_ledger_is_no_policy():
    policy = {
        "privacy": {"epsilon": 5},
        "tables": {"people": {"unit": "row", "columns": {"age": {"type": "int"}}}},
        "analysts": {"ada": {"epsilon": 5}},
    }
    with pytest.raises(ParameterError, match="spending cannot be recorded"):
        tacit.open(policy, data={"people": pa.table({"age": [1]})})


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(tacit.PolicyError, match="cannot read"):
        tacit.open(tmp_path / "none.toml")


def test_a_source_that_is_not_there(write, tmp_path):
    path = write()
    (tmp_path / "visits.csv").unlink()
    with pytest.raises(tacit.DataError, match="there is no"):
        tacit.open(path)


def test_an_unknown_analyst(curator):
    with pytest.raises(Refused) as caught:
        curator.analyst("eve")
    assert caught.value.code is ErrorCode.UNKNOWN_ANALYST
    assert caught.value.fix


@pytest.mark.slow
def test_a_closed_curator_answers_nothing(write):
    path = write()
    with tacit.open(path) as curator:
        ada = curator.analyst("ada")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whichever; what matters is below
        ada.ask(COUNT, epsilon=1)
    with tacit.open(path) as again:
        assert spent(again) == 0
    curator.close()  # twice does no harm


# Asking.


@pytest.mark.slow
def test_every_declared_key_appears(ada):
    answer = ada.ask(BY_WARD, epsilon=1)
    assert answer.columns == ("ward", "n", "mean")
    assert answer["ward"] == ["A", "B", "C"]
    assert all(low <= value <= high for value, (low, high) in zip(answer["n"], answer.interval("n"), strict=True))
    assert answer.confidence == 0.95


@pytest.mark.slow
def test_the_receipt_and_the_budget(curator, ada):
    receipt = ada.ask(COUNT, epsilon=0.5).receipt
    assert (receipt.analyst, receipt.repeat) == ("ada", False)
    assert receipt.charged == receipt.cost
    assert receipt.charged.epsilon == GRAINS_PER_EPSILON // 2
    assert receipt.analyst_budget.remaining == 5 * GRAINS_PER_EPSILON // 2
    assert receipt.overall_budget.remaining == 9 * GRAINS_PER_EPSILON // 2
    assert check_receipt(curator.ledger, receipt.to_dict()) == []
    assert ada.budget.remaining == 2.5
    assert str(ada.budget) == (
        "ada has spent epsilon 0.5 of 3, with 2.5 left; all analysts together epsilon 0.5 of 5, with 4.5 left"
    )
    assert ada.budget.to_dict()["own"] == {
        **{"spent": "0.5", "cap": "3", "remaining": "2.5"},
        "delta": {"spent": "0", "cap": "0", "remaining": "0"},
    }
    assert repr(ada) == f"<Analyst ada: {ada.budget}>"


def test_remaining_is_the_smaller_of_the_two(write):
    with tacit.open(write(epsilon=2)) as curator:
        assert curator.analyst("ada").budget.remaining == 2
        assert curator.analyst("bo").budget.remaining == 1


@pytest.mark.slow
def test_the_schema_is_what_the_policy_says(ada):
    assert ada.schema.to_dict() == {
        "neighbors": "add-remove",
        "tables": {
            "visits": {
                "unit": "patient",
                "people": "visits",
                "max_groups": 2,
                "max_rows_per_group": 2,
                "columns": {
                    "age": {"type": "int", "lower": 0, "upper": 110},
                    "ward": {"type": "text", "values": ["A", "B", "C"]},
                },
            }
        },
    }
    assert "keys A, B, C" in str(ada.schema)


@pytest.mark.slow
def test_a_repeat_is_free_and_the_same(curator, ada):
    first = ada.ask(BY_WARD, epsilon=1)
    again = ada.ask(BY_WARD.lower().replace(" n,", " N,"), epsilon=Fraction(1))
    assert again["n" if "n" in again.columns else "N"] == first["n"]
    assert again["mean"] == first["mean"]
    assert again.receipt.repeat
    assert again.receipt.charged == BudgetCharge.zero()
    assert again.receipt.cost == first.receipt.cost
    assert spent(curator, "ada") == 1


@pytest.mark.slow
def test_finishing_differs_and_the_private_half_is_the_same(curator, ada):
    first = ada.ask(BY_WARD, epsilon=1)
    best = ada.ask(BY_WARD + " ORDER BY n DESC LIMIT 1", epsilon=1, confidence=0.5)
    assert best["n"] == [max(first["n"])]
    assert best.receipt.repeat
    assert spent(curator, "ada") == 1


@pytest.mark.slow
def test_another_price_is_another_question(curator, ada):
    ada.ask(COUNT, epsilon=1)
    assert not ada.ask(COUNT, epsilon=Fraction(1, 2)).receipt.repeat
    assert spent(curator, "ada") == Fraction(3, 2)


@pytest.mark.slow
def test_two_analysts_share_an_answer(curator, ada):
    first = ada.ask(COUNT, epsilon=1)
    second = curator.analyst("bo").ask(COUNT, epsilon=1)
    assert second.value == first.value
    # Charged to bo's own cap, and not to what all share: nothing new was released.
    assert (second.receipt.repeat, second.receipt.charged) == (True, first.receipt.charged)
    assert (spent(curator, "ada"), spent(curator, "bo"), spent(curator)) == (1, 1, 1)
    third = curator.analyst("bo").ask(COUNT, epsilon=1)
    assert third.receipt.charged == BudgetCharge.zero()
    # bo's cap of 1 is spent: a stored answer that bo has not paid for is refused too.
    ada.ask(BY_WARD, epsilon=1)
    with pytest.raises(Refused) as caught:
        curator.analyst("bo").ask(BY_WARD, epsilon=1)
    assert caught.value.code is ErrorCode.BUDGET


@pytest.mark.slow
def test_the_overall_cap_binds_all(write):
    with tacit.open(write(epsilon=1.5)) as curator:
        curator.analyst("ada").ask(COUNT, epsilon=1)
        with pytest.raises(Refused, match="shared by all analysts") as caught:
            curator.analyst("bo").ask(BY_WARD, epsilon=0.6)
        assert caught.value.fix == "ask for at most epsilon=0.5"
        curator.analyst("bo").ask(BY_WARD, epsilon=0.5)
        assert spent(curator) == Fraction(3, 2)


REFUSED = [
    ("SELECT age FROM visits", ErrorCode.RAW_COLUMN),
    ("SELECT COUNT(*) FROM people", ErrorCode.UNKNOWN_TABLE),
    ("SELECT SUM(patient) FROM visits", ErrorCode.UNKNOWN_COLUMN),
    ("SELECT COUNT(* FROM visits", ErrorCode.SYNTAX),
    ("DROP TABLE visits", ErrorCode.STATEMENT),
]


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_a_refusal_costs_nothing_and_touches_nothing(broken, text, code):
    before = len(list(broken.ledger.entries()))
    for ask in (broken.analyst("ada").ask, broken.analyst("ada").explain):
        with pytest.raises(Refused) as caught:
            ask(text, epsilon=1)
        assert caught.value.code == code
    assert broken.engine.runs == 0
    assert spent(broken) == 0
    assert len(list(broken.ledger.entries())) == before


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, True, 1e-7, 1001, [1], 1j])
def test_an_epsilon_that_is_none(broken, epsilon):
    for ask in (broken.analyst("ada").ask, broken.analyst("ada").explain):
        with pytest.raises(ParameterError) as caught:
            ask(COUNT, epsilon=epsilon)
        assert caught.value.name == "epsilon"
    assert broken.engine.runs == 0
    assert spent(broken) == 0


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), "0.95", None, True])
def test_a_confidence_that_is_none(broken, confidence):
    for ask in (broken.analyst("ada").ask, broken.analyst("ada").explain):
        with pytest.raises(ParameterError) as caught:
            ask(COUNT, epsilon=1, confidence=confidence)
        assert caught.value.name == "confidence"
    assert broken.engine.runs == 0
    assert spent(broken) == 0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_an_epsilon_of_any_type_is_the_same_tenth(curator, ada, epsilon):
    assert ada.ask(COUNT, epsilon=epsilon).receipt.charged.epsilon == 10**11
    assert ada.ask(COUNT, epsilon=0.1).receipt.repeat
    assert spent(curator) == Fraction(1, 10)


@pytest.mark.slow
def test_epsilon_must_be_named(ada):
    with pytest.raises(ParameterError, match="parameters: is a list of values, got int"):
        ada.ask(COUNT, 1)
    with pytest.raises(ParameterError, match="either epsilon or within"):
        ada.ask(COUNT)


# Other kinds of questions, as an analyst asks them.

CLINIC: dict[str, Any] = {
    "privacy": {"epsilon": 100, "delta": 1e-3, "delta_per_question": 1e-6},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_groups": 2,
            "max_rows_per_group": 2,
            "columns": {
                "age": {"type": "int", "lower": 0, "upper": 110},
                "ward": {"type": "text", "values": ["A", "B", "C"]},
                "note": {"type": "text"},
            },
        },
        "wards": {
            "public": True,
            "columns": {"ward": {"type": "text", "unique": True}, "beds": {"type": "int", "lower": 0, "upper": 50}},
        },
    },
    "analysts": {"ada": {"epsilon": 100, "delta": 1e-3}, "bo": {"epsilon": 100}},
}


@pytest.fixture
def clinic(tmp_path):
    """300 patients: notes that 150 of them have, and one that a single patient has."""
    visits = {
        "patient": [n for n, _, _ in ROWS],
        "age": [age for _, age, _ in ROWS],
        "ward": [ward for _, _, ward in ROWS],
        "note": ["secret" if n == 7 else "ab"[n % 2] for n, _, _ in ROWS],
    }
    wards = {"ward": ["A", "B", "C"], "beds": [10, 20, 30]}
    policy = CLINIC | {"ledger": {"store": tmp_path / "clinic.ledger"}}
    with tacit.open(policy, data={"visits": pa.table(visits), "wards": pa.table(wards)}) as opened:
        yield opened


def test_a_private_key_of_one_patient_is_not_shown(clinic):
    # Shown with a probability of at most 1e-6; the others, with 150 patients each, always.
    answer = clinic.analyst("ada").ask("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", epsilon=5)
    assert answer["note"] == ["a", "b"]
    again = clinic.analyst("ada").ask("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", epsilon=5)
    assert (again["note"], again["n"], again.receipt.repeat) == (answer["note"], answer["n"], True)
    assert answer.receipt.charged.delta_a == 10**12  # 1e-6 in parts of 1e-18


def test_private_keys_need_a_delta_of_the_analyst_too(clinic):
    with pytest.raises(Refused, match="delta") as caught:
        clinic.analyst("bo").ask("SELECT note, COUNT(*) FROM visits GROUP BY note", epsilon=1)
    assert caught.value.code is ErrorCode.PRIVATE_KEY
    assert spent(clinic) == 0


@pytest.mark.slow
def test_private_keys_without_a_delta_are_refused(ada):
    with pytest.raises(Refused) as caught:
        ada.ask("SELECT age + 1000 * age AS k, COUNT(*) FROM visits GROUP BY k", epsilon=1)
    assert caught.value.code is ErrorCode.PRIVATE_KEY
    assert caught.value.fix


@pytest.mark.slow
def test_within_is_the_least_price_of_that_error(clinic):
    told = clinic.analyst("ada").explain(COUNT, within={"n": 20})
    answer = clinic.analyst("ada").ask(COUNT, within={"n": 20})
    ((low, high),) = answer.interval("n")
    assert high - low <= 40
    assert told.epsilon == answer.receipt.charged.epsilon / GRAINS_PER_EPSILON
    # A tenth less would not do.
    less = clinic.analyst("ada").explain(COUNT, epsilon=told.epsilon * 9 / 10)
    assert less.columns[0].error > 20


def test_within_and_a_price_are_one_too_many(clinic):
    for given in ({"epsilon": 1, "within": {"n": 5}}, {}):
        with pytest.raises(ParameterError) as caught:
            clinic.analyst("ada").ask(COUNT, **given)
        assert caught.value.name == "epsilon"
    with pytest.raises(Refused):
        clinic.analyst("ada").ask("SELECT AVG(age) AS n FROM visits", within={"n": 5})
    assert spent(clinic) == 0


@pytest.mark.slow
def test_a_median_and_a_join_are_answered(clinic):
    ada = clinic.analyst("ada")
    # Ages are 0, ..., 110, spread evenly: at epsilon 20 the rank error is a few rows of 300.
    assert abs(ada.ask("SELECT MEDIAN(age) FROM visits", epsilon=20).value - 53) < 20
    beds = ada.ask("SELECT AVG(beds) FROM visits JOIN wards USING (ward)", epsilon=20).value
    assert abs(beds - 15) < 3  # half the patients lie in A with 10 beds, half in B with 20
    per = "SELECT AVG(n) FROM (SELECT patient, LEAST(COUNT(*), 5) AS n FROM visits GROUP BY patient)"
    assert abs(ada.ask(per, epsilon=20).value - 1) < 0.5


def test_a_public_column_that_is_not_unique_after_all(tmp_path):
    frames = {
        "visits": pa.table({"patient": [1], "age": [1], "ward": ["A"], "note": [""]}),
        "wards": pa.table({"ward": ["A", "A"], "beds": [1, 2]}),
    }
    with pytest.raises(tacit.DataError, match="two rows share a value"):
        tacit.open(CLINIC | {"ledger": {"store": tmp_path / "x.ledger"}}, data=frames)


# Explaining.


def test_explain_costs_nothing_and_touches_no_data(broken):
    ada = broken.analyst("ada")
    told = ada.explain(BY_WARD, epsilon=1)
    assert broken.engine.runs == 0
    assert spent(broken) == 0
    assert (told.epsilon, told.delta, told.unit, told.groups) == (1, 0, "patient", 3)
    # Three vectors: all rows, rows with an age, and the centered sum of ages. A patient has 2 rows in each of 2 groups,
    # so a count moves by 4 and has the scale 4 / (1/3) = 12; ages lie within 55 of their center: 220 and 660.
    assert sorted((noise.sensitivity, noise.scale) for noise in told.noise) == [(4, 12), (4, 12), (220, 660)]
    assert str(told).startswith("costs epsilon 1, delta 0; protects each patient (add-remove)")


def test_explain_says_what_ask_would_be_refused_for(clinic):
    ada = clinic.analyst("ada")
    spent = ada.ask(COUNT, epsilon=1).receipt
    before = ada.budget
    told = ada.explain(BY_WARD, epsilon=1000)
    with pytest.raises(Refused) as refused:
        ada.ask(BY_WARD, epsilon=1000)
    assert told.refused is not None
    assert (told.refused.code, told.refused.what, told.refused.fix) == (
        ErrorCode.BUDGET,
        refused.value.what,
        refused.value.fix,
    )
    assert f"asking it would be refused now: {refused.value.what}; {refused.value.fix}" in str(told).splitlines()[1]
    assert told.to_dict()["refused"] == {"code": "budget", "what": refused.value.what, "fix": refused.value.fix}
    # what is left fits, and what is paid for is free however little is left
    fits = ada.explain(BY_WARD, epsilon=ada.budget.remaining)
    assert fits.refused is None and fits.to_dict()["refused"] is None and "refused" not in str(fits)
    assert ada.budget == before and spent.charged
    ada.ask(BY_WARD, epsilon=ada.budget.remaining)
    assert ada.explain(COUNT, epsilon=1).refused is None
    assert ada.explain(COUNT, epsilon=0.5).refused is not None


def test_an_explanation_is_the_same_whether_others_have_asked(clinic):
    ada, bo = clinic.analyst("ada"), clinic.analyst("bo")
    other = "SELECT COUNT(*) AS n FROM visits WHERE age > 50"

    def refusals(analyst):
        told = [analyst.explain(sql, epsilon=1).refused for sql in (COUNT, other)]
        return [None if refused is None else refused.code for refused in told]

    before = bo.explain(COUNT, epsilon=1)
    stored = ada.ask(COUNT, epsilon=1)
    assert bo.explain(COUNT, epsilon=1) == before
    clinic.live_tables = frozenset({"visits"})
    claim = clinic.ledger.reserve("ada", LaplaceNoise(1, 1), "fails", tables=clinic.live_tables)
    clinic.ledger.fail(claim)
    assert refusals(bo) == ["table-locked", "table-locked"]
    assert refusals(ada) == [None, "table-locked"]
    assert bo.ask(COUNT, epsilon=1)["n"] == stored["n"]  # whoever asks pays to learn that
    assert refusals(bo) == [None, "table-locked"]


def test_an_explanation_is_the_same_where_nothing_is_left_for_all(clinic):
    ada, bo = clinic.analyst("ada"), clinic.analyst("bo")
    stored = ada.ask(COUNT, epsilon=1)
    ada.ask(BY_WARD, epsilon=99)
    told = [bo.explain(COUNT, epsilon=epsilon).refused for epsilon in (1, 2)]
    assert ["shared by all analysts" in refused.what for refused in told] == [True, True]
    assert bo.ask(COUNT, epsilon=1)["n"] == stored["n"]


def test_explain_tells_the_error_that_ask_has(ada):
    told = ada.explain(COUNT, epsilon=1)
    answer = ada.ask(COUNT, epsilon=1)
    ((low, high),) = answer.interval("n")
    assert told.columns[0].error == (high - low) / 2


# Failing.


def test_a_failure_says_nothing_and_keeps_the_charge(broken, caplog):
    with caplog.at_level(logging.ERROR, logger="tacit"), pytest.raises(Failed) as caught:
        broken.analyst("ada").ask(COUNT, epsilon=1)
    assert str(caught.value) == str(Failed())
    assert "Smith" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # nothing of the engine hangs on it
    assert spent(broken) == spent(broken, "ada") == 1
    assert [entry.kind for entry in broken.ledger.entries()] == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.FAIL]
    assert verify(broken.ledger).ok
    # The owner sees the cause.
    (record,) = [record for record in caplog.records if record.name == "tacit"]
    assert record.getMessage() == "entry 2 failed"
    assert "Smith" in str(record.exc_info[1])


def test_a_failure_carries_no_trace_of_the_cause(broken):
    # Whoever shows or pickles the error, or walks its context, must not find the row in it.
    with pytest.raises(Failed) as caught:
        broken.analyst("ada").ask(COUNT, epsilon=1)
    assert caught.value.__context__ is None or "Smith" not in str(caught.value.__context__)


def test_a_failed_question_may_be_asked_again_and_is_charged_again(broken):
    for _ in range(2):
        with pytest.raises(Failed):
            broken.analyst("ada").ask(COUNT, epsilon=1)
    assert spent(broken) == 2


def test_a_failure_that_cannot_be_written_down_carries_no_trace_either(broken, monkeypatch):
    def fail(claim, **more):
        raise LedgerError(ErrorCode.LEDGER_FULL, "no room")

    monkeypatch.setattr(broken.ledger, "fail", fail)
    with pytest.raises(LedgerError) as caught:
        broken.analyst("ada").ask(COUNT, epsilon=1)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert spent(broken) == 1


def interrupted(stop):
    """An engine's run that is stopped from outside."""

    def run(aggregation):
        raise stop

    return run


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_keeps_the_charge(broken, monkeypatch, stop):
    monkeypatch.setattr(broken.engine, "run", interrupted(stop))
    with pytest.raises(stop):
        broken.analyst("ada").ask(COUNT, epsilon=1)
    assert spent(broken) == 1


def test_after_an_interrupt_the_same_analyst_goes_on_at_once_with_the_same_charge(curator, ada, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(curator.engine, "run", interrupted(KeyboardInterrupt))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                ada.ask(COUNT, epsilon=1)
    begun = time.monotonic()
    answer = ada.ask(COUNT, epsilon=1)
    assert time.monotonic() - begun < 60  # it waits for nobody; patience is two minutes
    assert not answer.receipt.repeat
    assert spent(curator) == spent(curator, "ada") == 1
    assert ada.ask(COUNT, epsilon=1).value == answer.value
    kinds = [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.RESUME, EntryKind.RESUME, EntryKind.COMMIT]
    assert [entry.kind for entry in curator.ledger.entries()] == kinds
    assert verify(curator.ledger).ok


def test_after_an_interrupt_another_analyst_pays_for_a_charge_of_their_own(curator, ada, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(curator.engine, "run", interrupted(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ada.ask(COUNT, epsilon=1)
    answer = curator.analyst("bo").ask(COUNT, epsilon=1)
    assert (spent(curator), spent(curator, "bo")) == (2, 1)
    # The question has one answer: ada, who has paid, is shown the same.
    assert ada.ask(COUNT, epsilon=1).value == answer.value
    assert (spent(curator), spent(curator, "ada")) == (2, 1)
    assert verify(curator.ledger).ok


# Asking under a name.


@pytest.mark.slow
def test_a_named_request_asked_again_is_the_same_answer_charged_once(write):
    path = write()
    with tacit.open(path) as curator:
        first = curator.analyst("ada").ask(COUNT, epsilon=1, request="mine")
        entries = len(list(curator.ledger.entries()))
    with tacit.open(path) as curator:
        again = curator.analyst("ada").ask(COUNT, epsilon=1, request="mine")
        # One question with one receipt, not a repeat: the charge it names is the one of the first time.
        assert again.value == first.value
        assert again.receipt == first.receipt
        assert again.receipt.request == "mine"
        assert len(list(curator.ledger.entries())) == entries
        assert spent(curator) == 1
        assert check_receipt(curator.ledger, again.receipt.to_dict()) == []


def test_another_question_under_the_same_name_is_refused(curator, ada):
    ada.ask(COUNT, epsilon=1, request="mine")
    for text, epsilon in ((BY_WARD, 1), (COUNT, 0.5)):
        with pytest.raises(Refused) as caught:
            ada.ask(text, epsilon=epsilon, request="mine")
        assert caught.value.code is ErrorCode.REQUEST
    assert spent(curator) == 1
    curator.analyst("bo").ask(BY_WARD, epsilon=1, request="mine")  # bo has names of their own


def test_a_named_request_that_failed_has_failed(broken):
    for _ in range(2):
        with pytest.raises(Failed):
            broken.analyst("ada").ask(COUNT, epsilon=1, request="mine")
    assert broken.engine.runs == 1
    assert spent(broken) == 1


# Change.


@pytest.mark.slow
def test_a_new_epoch_is_a_new_answer(write):
    with tacit.open(write(epoch=1)) as curator:
        first = curator.analyst("ada").ask(COUNT, epsilon=1)
    with tacit.open(write(epoch=2)) as curator:
        second = curator.analyst("ada").ask(COUNT, epsilon=1)
        assert not second.receipt.repeat
        assert second.receipt.key != first.receipt.key
        assert spent(curator) == 2
    # An epoch that is over stays over: its answers and those of the next one would be mixed.
    with pytest.raises(LedgerError, match="epoch 1 of visits is over: it was opened with epoch 2"):
        tacit.open(write(epoch=1))


@pytest.mark.slow
def test_a_changed_policy_keeps_what_was_spent(write):
    with tacit.open(write()) as curator:
        curator.analyst("ada").ask(COUNT, epsilon=2)
    with tacit.open(write(upper=90)) as curator:
        assert not curator.analyst("ada").ask(COUNT, epsilon=Fraction(1, 2)).receipt.repeat
        assert spent(curator) == spent(curator, "ada") == Fraction(5, 2)
    with tacit.open(write(epsilon=1)) as curator:  # a cap below what was spent: nothing is left
        assert curator.analyst("ada").budget.remaining == 0
        with pytest.raises(Refused, match="nothing remains"):
            curator.analyst("ada").ask(BY_WARD, epsilon=0.1)


@pytest.mark.slow
def test_a_ledger_reopened_gives_the_same_answers(write):
    path = write()
    with tacit.open(path) as curator:
        first = curator.analyst("ada").ask(BY_WARD, epsilon=1)
    with tacit.open(path) as curator:
        again = curator.analyst("ada").ask(BY_WARD, epsilon=1)
    assert again.to_dict()["rows"] == first.to_dict()["rows"]
    assert again.receipt.charged == BudgetCharge.zero()


@pytest.mark.slow
def test_answers_of_two_curators_differ(write, tmp_path):
    # Ten sums with noise of scale 2 * 110 / 0.1 = 2200: two are equal with probability 1/8800, ten with 1e-39
    texts = [f"SELECT SUM(age) FROM visits WHERE age <> {n}" for n in range(10)]
    seen = []
    for name in ("one", "two"):
        policy = load(write())
        ledger = Ledger(tmp_path / f"{name}.ledger", budget_limits(policy))
        with Curator(policy, DuckDBEngine(table_schemas(policy), policy.source), ledger, SystemBits()) as curator:
            seen.append([curator.analyst("ada").ask(text, epsilon=0.1).value for text in texts])
    assert seen[0] != seen[1]


# Many at once.


@pytest.mark.slow
def test_threads_that_ask_different_questions(curator):
    # 3 for ada: 30 of 40 questions of 0.1 fit, whichever they are.
    def ask(number: int) -> bool:
        try:
            curator.analyst("ada").ask(f"SELECT COUNT(*) FROM visits WHERE age > {number}", epsilon=0.1)
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 30
    assert spent(curator) == 3
    assert verify(curator.ledger).ok


@pytest.mark.slow
def test_threads_that_ask_the_same_question(write):
    with tacit.open(write(epsilon=1000)) as curator:
        barrier = threading.Barrier(4)

        def ask(_: int) -> Any:
            barrier.wait()
            return curator.analyst("ada").ask(COUNT, epsilon=0.1).value

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, range(4)))
        # The first is charged, and the others wait for its answer.
        assert len(set(answers)) == 1
        assert spent(curator) == Fraction(1, 10)
        assert curator.analyst("ada").ask(COUNT, epsilon=0.1).value == answers[0]
        assert verify(curator.ledger).ok
