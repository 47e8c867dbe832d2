"""Hostile files and frames end in a documented reading or in the owner's error, and then no question fails.

That a question fails because of a row would tell of that row, at any epsilon. So after each case of the corpus has
opened as documented, random questions about it are answered or refused; nothing else is allowed.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.command import run_command
from tests.support.counts import FULL, some
from tests.support.hostile.case import Case, Fact, Outcome
from tests.support.hostile_files import corpus
from tests.support.hostile_questions import Questions, toml_of

import tacit

SEED = int(os.environ.get("TACIT_SEED", "18"))
CASES = corpus(FULL)
CHECKED = {case.name for case in some(CASES, 8)}  # by `tacit check` too, which opens it once more
EACH = 20 if FULL else 1  # random questions for each case that opens: about 10,000, or 50
# At epsilon 30 a count has noise with probability 2 exp(-30) / (1 + exp(-30)) < 2e-13. A run of every day has some 500
# counts and a full one fewer than 5,000: a false alarm has probability below 1e-9. A budget of 1000 holds 33 facts.
EXACT = 30


def policy_of(case: Case, folder: Path, source: Any) -> dict[str, Any]:
    """The policy of a case, with all that may be spent."""
    return {
        "data": {"source": source} if isinstance(source, str) else {},
        "ledger": {"store": str(folder / "x.ledger")},
        "privacy": {"epsilon": 1000, "delta": 1e-3},
        "tables": dict(case.tables),
        "analysts": {"ada": {"epsilon": 1000, "delta": 9e-4}},
    }


def check(policy: dict[str, Any], folder: Path) -> tuple[int, str]:
    """The exit code of `tacit check` in this process, and what it printed."""
    (folder / "tacit.toml").write_text(toml_of(policy))
    try:
        done = run_command("check", "-p", folder / "tacit.toml")
    except Exception as error:  # whatever it is
        return -1, f"{type(error).__name__}: {error}"
    return done.returncode, done.stdout + done.stderr


def rows_of(answer: Any) -> dict[Any, Any]:
    """The numbers of an answer by its first column, or by None where there is one number."""
    rows = [list(row.values()) for row in answer.plain_rows()]
    return {(row[0] if len(row) > 1 else None): row[-1]["value"] for row in rows}


def wrong_fact(ada: Any, fact: Fact, spoiled: bool) -> str | None:
    """What is wrong with the answer to a fact; a DataError is right once the file was changed."""
    try:
        found = rows_of(ada.ask(fact.sql, epsilon=EXACT + spoiled))  # at another epsilon it is no repeat
    except tacit.DataError as error:
        return None if spoiled else f"{fact.sql}: {error}"
    except Exception as error:  # whatever it is
        return f"{fact.sql}: {type(error).__name__}: {error}"
    actual = {key: found.get(key, 0) for key in fact.rows}
    return None if actual == fact.rows else f"{fact.sql}: {actual} and not {fact.rows}"


def wrong_answer(ada: Any, sql: str, spoiled: bool) -> tuple[str | None, bool]:
    """What is wrong about a random question, and whether it was answered."""
    try:
        ada.ask(sql, epsilon=0.01)
    except tacit.Refused as error:
        return (f"{sql}: {error}" if error.code == "budget" else None), False
    except tacit.DataError as error:
        return (None if spoiled else f"{sql}: {error}"), False
    except Exception as error:  # whatever it is
        return f"{sql}: {type(error).__name__}: {error}", False
    return None, True


def open_apart(name: str, folder: str) -> None:
    """Open a case in a process of its own, and say how it ended."""
    case = next(case for case in CASES if case.name == name)
    source = case.write(Path(folder))
    try:
        tacit.open(policy_of(case, Path(folder), source), data=None if isinstance(source, str) else source)
    except (tacit.DataError, tacit.PolicyError):
        print(Outcome.ERROR)


class Cause(logging.Handler):
    """Keeps why the last question failed, which only the owner's log says."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.text = self.format(record)[-600:]


@pytest.fixture
def cause() -> Any:
    """What the owner's log said last."""
    handler = Cause()
    logging.getLogger("tacit").addHandler(handler)
    yield handler
    logging.getLogger("tacit").removeHandler(handler)


answered: list[bool] = []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_documented_reading_or_the_owners_error(case: Case, tmp_path: Path, cause: Cause) -> None:
    if case.apart:
        script = (
            f"from tests.curator.test_hostile_files import open_apart; open_apart({case.name!r}, {str(tmp_path)!r})"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, f"{Outcome.ERROR}\n"), done.stderr[-600:]
        return
    written = tmp_path / "written"
    written.mkdir()
    source = case.write(written)
    policy = policy_of(case, tmp_path, source)
    curator, error = None, None
    try:
        curator = tacit.open(policy, data=None if isinstance(source, str) else source)
    except (tacit.DataError, tacit.PolicyError) as raised:
        error = raised
    faults: list[str | None] = []
    if isinstance(source, str) and case.name in CHECKED:
        code, printed = check(policy, tmp_path)
        faults.append(None if code in ((0,) if curator else (4, 5)) else f"tacit check ends with {code}: {printed}")
    if curator is None:
        assert error is not None
        assert case.outcome is not Outcome.READ, error
        assert case.named in str(error)
        assert error.fix
    else:
        assert case.outcome is not Outcome.ERROR, "it opened"
        ada = curator.analyst("ada")
        faults += [wrong_fact(ada, fact, False) for fact in case.facts]
        if case.spoil is not None:
            case.spoil(written)
            faults += [wrong_fact(ada, fact, True) for fact in case.facts]
        questions = Questions(case.tables, Random(f"{SEED} {case.name}"))
        for _ in range(EACH):
            fault, was_answered = wrong_answer(ada, questions.draw(), case.spoil is not None)
            faults.append(fault)
            answered.append(was_answered)
    found = [fault for fault in faults if fault]
    assert not found, "\n".join([f"TACIT_SEED={SEED}", *found[:5], cause.text])


def test_a_third_of_the_random_questions_is_answered() -> None:
    # Were nearly all refused, the cases above would show little. It says nothing where they were not run.
    assert 3 * sum(answered) >= len(answered)
