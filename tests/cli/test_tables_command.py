"""`tacit tables`: the owner sees which tables are locked and why, and unlocks one. The data need not be reachable."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tacit.cli.tables import complete_table
from tacit.curator.resources import budget_limits, ledger_files
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import SigningKey
from tacit.ledger.witness import Witness
from tacit.policy.load import load
from tacit.privacy.loss import LaplaceNoise

POLICY = """\
[data]
engine = "postgres"
source = "postgresql://reader@nowhere.invalid/clinic"
[privacy]
epsilon = 100
[tables.visits]
unit = "patient"
max_groups = 1
max_rows_per_group = 1
columns.x = { type = "int", lower = 0, upper = 3 }
[tables.wards]
public = true
columns.ward = { type = "text" }
[analysts.ada]
epsilon = 100
"""


@pytest.fixture
def owner(tacit, tmp_path):
    """The command over a policy of which the third question about visits has failed."""
    (tmp_path / "clinic.toml").write_text(POLICY)
    policy = load(tmp_path / "clinic.toml")
    books = ledger_files(policy)
    key, witness = SigningKey.at(books.key, create=True), Witness(books.witness)
    with Ledger(books.store, budget_limits(policy), key=key, witness=witness) as ledger:
        for name in "ab":
            ledger.commit(ledger.reserve("ada", LaplaceNoise(1, 1), name, tables=["visits"]), b"x")
        ledger.fail(ledger.reserve("ada", LaplaceNoise(1, 1), "c", tables=["visits"]), cause="errors.DivisionByZero")

    def run(*arguments, **more):
        return tacit(*arguments, "-p", tmp_path / "clinic.toml", **more)

    return run


def test_the_tables_with_their_locks(owner):
    shown = owner("tables")
    assert shown.returncode == 0
    head, _, visits, wards = shown.stdout.splitlines()
    assert head.split() == ["table", "unit", "reads", "locked", "(UTC)", "epoch"]
    assert visits.split()[:4] == ["visits", "patient", "live", "since"]
    assert wards.split() == ["wards", "public", "-", "-", "1"]
    found = json.loads(owner("tables", "--json").stdout)
    # Three questions were asked: at most log2(3 + 1) = 2 bits.
    assert found[0] | {"since": ""} == {
        **{"table": "visits", "unit": "patient", "epoch": 1, "live": True, "locked": True, "since": "", "entry": 7},
        **{"cause": "errors.DivisionByZero", "claim": 6, "who": "ada", "questions": 3, "bits": 2.0},
    }
    assert found[1] == {"table": "wards", "unit": None, "epoch": 1, "live": False, "locked": False}


def test_a_table_is_unlocked_once_the_owner_has_seen_the_cause(owner, tmp_path):
    refused = owner("tables", "unlock", "visits", stdin="n\n")
    assert refused.returncode == 1 and "Stopped; nothing was done." in refused.stderr
    assert "charge 6, of ada, failed (errors.DivisionByZero)" in refused.stdout
    assert "entry 6 failed" in refused.stdout and "at most 2.0 bits" in refused.stdout
    done = owner("tables", "unlock", "Visits", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "visits is unlocked. A server that runs has noticed."
    with LedgerReader(tmp_path / "clinic.ledger") as history:
        assert list(history.entries())[-1].kind is EntryKind.UNLOCK
        assert history.locks() == {}
    assert "all in order" in owner("ledger", "verify").stdout
    again = owner("tables", "unlock", "visits", "--yes")
    assert again.returncode == 2 and "visits is not locked" in again.stderr


def test_an_unlock_as_json(owner):
    done = json.loads(owner("tables", "unlock", "visits", "--yes", "--json").stdout)
    assert (done["table"], done["locked"], done["cause"]) == ("visits", False, "errors.DivisionByZero")


def test_a_table_that_is_not_there(owner):
    done = owner("tables", "unlock", "visit", "--yes")
    assert done.returncode == 2
    assert "the policy has no table visit" in done.stderr and "visits, wards" in done.stderr


def test_before_any_ledger_nothing_is_locked(tacit, tmp_path):
    (tmp_path / "clinic.toml").write_text(POLICY)
    found = json.loads(tacit("tables", "--json", "-p", tmp_path / "clinic.toml").stdout)
    assert [row["locked"] for row in found] == [False, False]


def test_explaining_says_that_a_table_is_locked(owner):
    shown = owner("explain", "SELECT COUNT(*) FROM visits", "--as", "ada", "--epsilon", "1")
    assert shown.returncode == 0
    assert "visits is locked" in shown.stdout and "tacit tables unlock visits" in shown.stdout


def test_the_history_names_locks(owner):
    assert [row["kind"] for row in json.loads(owner("ledger", "history", "--json").stdout)][-2:] == ["lock", "fail"]


def test_a_shell_completes_the_tables_of_the_policy(owner, tmp_path):
    context = SimpleNamespace(params={"policy": tmp_path / "clinic.toml"})
    assert complete_table(context, "v") == ["visits"]
    assert complete_table(SimpleNamespace(params={"policy": tmp_path / "none.toml"}), "v") == []
