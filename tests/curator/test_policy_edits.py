"""What costs again after a policy was edited, as the page on growing data says it."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.counts import FULL
from tests.support.interrupts import at_every_point

import tacit
from tacit.accounting.filters import compute_limits
from tacit.curator import curator as curators
from tacit.curator import resources
from tacit.curator.policy_edits import list_edit_remarks
from tacit.errors import ErrorCode, LedgerError, PolicyError, Refused
from tacit.ledger.reader import LedgerReader
from tacit.policy.load import load

pytestmark = pytest.mark.slow
SQL = "SELECT ward, SUM(age) AS s FROM visits GROUP BY ward"
POLICY: dict[str, Any] = {
    "data": {"epoch": 1},
    "privacy": {"epsilon": 10, "delta": 1e-6, "delta_per_question": 1e-9},
    "analysts": {"ada": {"epsilon": 5}},
    "tables": {
        "visits": {
            "unit": "who",
            "max_rows": "auto",
            "columns": {
                "ward": {"type": "text", "values": ["A", "B"]},
                "age": {"type": "int", "lower": 0, "upper": 100},
            },
        }
    },
}
FILE = """
[data]
source = "visits.csv"
copy = "memory"
[ledger]
store = "t.ledger"
[privacy]
epsilon = {epsilon}
[analysts]
ada = {{ epsilon = 5 }}
[tables.visits]
unit = "who"
max_groups = 1
max_rows_per_group = 1
columns.age = {{ type = "int", lower = 0, upper = 100 }}
"""
ROWS = "\n".join(["who,ward,age,nights", *(f"{who},{'AB'[who % 2]},40,1" for who in range(200))])


def spent_twice(folder: Path, edit: Callable[[dict[str, Any]], object]) -> float:
    """How much the second asking costs, after an edit, as a share of the first."""
    first = copy.deepcopy(POLICY) | {"ledger": {"store": str(folder / "t.ledger")}}
    (folder / "visits.csv").write_text(ROWS + "\n")
    first["data"]["source"] = str(folder / "visits.csv")
    second = copy.deepcopy(first)
    edit(second)
    spent = []
    for policy in (first, second):
        with tacit.open(policy) as curator:
            ada = curator.analyst("ada")
            ada.ask(SQL, epsilon=1)
            spent.append(float(ada.budget.to_dict()["own"]["spent"]))
    return (spent[1] - spent[0]) / spent[0]


def test_a_budget_that_is_lowered_while_another_opening_reads_the_data_stays_lowered(tmp_path, monkeypatch):
    (tmp_path / "visits.csv").write_text(ROWS + "\n")
    former = copy.deepcopy(POLICY) | {"ledger": {"store": str(tmp_path / "t.ledger")}}
    former["data"]["source"] = str(tmp_path / "visits.csv")
    lowered = former | {"privacy": {"epsilon": 1, "delta": 1e-6, "delta_per_question": 1e-9}}
    read_data = curators.open_engine

    def read_slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(curators, "open_engine", read_data)
        tacit.open(lowered).close()
        return read_data(*arguments)

    with tacit.open(former) as running:
        ada = running.analyst("ada")
        monkeypatch.setattr(curators, "open_engine", read_slowly)
        with pytest.raises(LedgerError, match="has changed the budgets since the policy was read") as caught:
            tacit.open(former)
        assert caught.value.code is ErrorCode.LEDGER_BUSY
        with pytest.raises(Refused):
            ada.ask(SQL, epsilon=2)
        ada.ask(SQL, epsilon=1)


def test_a_budget_that_is_lowered_at_any_line_of_another_opening_is_not_raised_by_it(tmp_path):
    file, former, outcomes = tmp_path, FILE.format(epsilon=10), set()

    def lower() -> None:
        file.write_text(FILE.format(epsilon=1))
        tacit.open(file).close()

    def open_former() -> None:
        nonlocal file
        file = Path(tempfile.mkdtemp(dir=tmp_path)) / "t.toml"
        (file.parent / "visits.csv").write_text(ROWS + "\n")
        file.write_text(former)
        try:
            tacit.open(file).close()
            outcomes.add("opened")
        except (LedgerError, PolicyError) as error:
            outcomes.add(error.code)
        with LedgerReader(file.parent / "t.ledger") as history:
            is_lowered = history.overall().cap.epsilon == compute_limits(Fraction(1), Fraction(0)).epsilon
        assert is_lowered is (file.read_text() != former)

    code = (curators.__file__, resources.__file__)
    assert len(list(at_every_point(open_former, lambda name: name in code, lower, step=1 if FULL else 5))) > 10
    assert outcomes == {"opened", ErrorCode.POLICY, ErrorCode.LEDGER_BUSY}


FREE: dict[str, Callable[[dict[str, Any]], object]] = {
    "who may ask": lambda p: p["analysts"].update(ben={"epsilon": 1}),
    "how much": lambda p: p["analysts"]["ada"].update(epsilon=7),
    "the overall budget": lambda p: p["privacy"].update(epsilon=20, delta=1e-5),
    "today": lambda p: p["data"].update(today="2025-12-31"),
    "dialect": lambda p: p["data"].update(dialect="duckdb"),
}
AGAIN: dict[str, Callable[[dict[str, Any]], object]] = {
    "delta_per_question": lambda p: p["privacy"].update(delta_per_question=1e-8),
    "epoch": lambda p: p["data"].update(epoch=2),
    "a column more": lambda p: p["tables"]["visits"]["columns"].update(nights={"type": "int"}),
    "bounds": lambda p: p["tables"]["visits"]["columns"]["age"].update(upper=110),
    "keys": lambda p: p["tables"]["visits"]["columns"]["ward"].update(values=["A", "B", "C"]),
    "caps": lambda p: p["tables"]["visits"].update(max_rows={"auto_up_to": 50}),
}


@pytest.mark.parametrize("edit", FREE)
def test_what_does_not_change_the_meaning_is_free(tmp_path: Path, edit: str):
    assert spent_twice(tmp_path, FREE[edit]) == 0


@pytest.mark.parametrize("edit", AGAIN)
def test_what_changes_the_meaning_costs_again(tmp_path: Path, edit: str):
    assert spent_twice(tmp_path, AGAIN[edit]) == pytest.approx(1)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rows, and with a ledger of one question that was asked under the first policy."""
    folder = tmp_path_factory.mktemp("asked")
    spent_twice(folder, lambda _: None)
    return folder


def _check(folder: Path, edit: Callable[[dict[str, Any]], object]) -> list[str]:
    """What `tacit check` says of an edited policy about paid questions."""
    ledger, source = str(folder / "t.ledger"), str(folder / "visits.csv")
    edited = copy.deepcopy(POLICY) | {"ledger": {"store": ledger}}
    edited["data"]["source"] = source
    edit(edited)
    with LedgerReader(Path(ledger)) as reader:
        return [str(remark) for remark in list_edit_remarks(load(edited), reader)]


@pytest.mark.parametrize("edit", FREE)
def test_an_edit_that_costs_nothing_is_not_remarked_on(asked: Path, edit: str):
    assert _check(asked, FREE[edit]) == []


@pytest.mark.parametrize("edit", AGAIN)
def test_an_edit_after_which_questions_cost_again_is_remarked_on(asked: Path, edit: str):
    (remark,) = _check(asked, AGAIN[edit])
    assert "every question that was paid for costs again" in remark
    assert remark.startswith("data.epoch: is 2, and was 1" if edit == "epoch" else "tables: ")
