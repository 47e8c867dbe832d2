"""Ledgers that release 0.1.0 wrote: every question of theirs is still answered for free, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.command import invoke_command

import tacit
from tacit import learn
from tacit.accounting.filters import BudgetCharge

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RELEASE = HERE / "v0_1_0"
ASKED = json.loads((HERE / "questions.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The recorded files, in a place of the test's own."""
    copied = Path(shutil.copytree(RELEASE, tmp_path / "recorded"))
    for key in copied.glob("*.key"):
        key.chmod(0o600)  # a checkout does not keep this
    return copied


def _told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RELEASE / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", ["clinic", "survey"])
def test_every_recorded_question_is_answered_again_for_free_and_byte_for_byte(folder: Path, name: str) -> None:
    analysts = ("ada", "ben") if name == "clinic" else ("ada",)
    with tacit.open(folder / f"{name}.toml") as curator:
        before = [str(curator.analyst(who).budget) for who in analysts]
        for question, told in zip(ASKED["questions"][name], _told(name)["answers"], strict=True):
            answer = curator.analyst(question["who"]).ask(question["sql"], **question["how"])
            assert answer.receipt.charged == BudgetCharge.zero(), question["sql"]
            again, key = answer.to_dict(), told.pop("receipt")["key"]
            assert again.pop("receipt")["key"] == key, question["sql"]
            assert set(told.pop("notes")) <= set(again.pop("notes")), question["sql"]  # of which there may be more
            assert json.dumps(again) == json.dumps(told), question["sql"]
        assert [str(curator.analyst(who).budget) for who in analysts] == before


def test_every_recorded_fit_is_given_again_for_free(folder: Path) -> None:
    with tacit.open(folder / "clinic.toml") as curator:
        for fit, told in zip(ASKED["fits"], _told("clinic")["fits"], strict=True):
            estimator = getattr(learn, fit["estimator"])(**fit["parameters"])
            model = curator.analyst("ada").fit(estimator, fit["sql"], target=fit["target"], epsilon=fit["epsilon"])
            assert model.receipt_.charged == BudgetCharge.zero(), fit["estimator"]
            assert [float(x).hex() for x in np.append(model.coef_, model.intercept_)] == told["weights"]


@pytest.mark.parametrize("name", ["clinic", "survey"])
def test_the_recorded_ledger_and_its_receipts_verify(folder: Path, name: str, tmp_path: Path) -> None:
    policy = str(folder / f"{name}.toml")
    assert invoke_command("ledger", "verify", "--policy", policy).exit_code == 0
    for told in _told(name)["answers"]:
        receipt = tmp_path / "receipt.json"
        receipt.write_text(json.dumps(told["receipt"]))
        done = invoke_command("ledger", "verify", "--policy", policy, "--receipt", receipt)
        assert done.exit_code == 0, done.output
