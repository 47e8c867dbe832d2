"""A question that another asks already: who cannot pay for its answer does not learn when that comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.conftest import limits, noise

from tacit.errors import ErrorCode, TacitError
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger

HOUR = 3600.0
LIMITS = limits("3", ada="2", bob="0.5", eve="2")


@pytest.fixture
def ledger(place: Path) -> Iterator[Ledger]:
    with Ledger(place, LIMITS, patience=HOUR) as ledger:
        yield ledger


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    outcomes: list[Any] = []

    def run() -> None:
        try:
            outcomes.append(work())
        except TacitError as error:
            outcomes.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcomes


def test_who_cannot_pay_is_refused_before_the_answer_is_there(ledger):
    claim = ledger.reserve("ada", noise("1"), "a")
    asking, outcomes = in_thread(lambda: ledger.reserve("bob", noise("1"), "a"))
    asking.join(20)
    assert [outcome.code for outcome in outcomes] == [ErrorCode.BUDGET]
    ledger.commit(claim, b"7")


def test_who_can_pay_waits_for_the_answer_though_a_second_charge_would_not_fit_for_all(ledger):
    # 2 of the 3 of all are charged; eve's answer is ada's, which costs nothing of what all have
    claim = ledger.reserve("ada", noise("2"), "a")
    asking, outcomes = in_thread(lambda: ledger.reserve("eve", noise("2"), "a"))
    asking.join(0.05)
    assert not outcomes
    ledger.commit(claim, b"7")
    asking.join(20)
    assert outcomes[0].stored == b"7" and outcomes[0].receipt.repeat


def test_who_has_paid_waits_whatever_is_left(ledger):
    claim = ledger.reserve("ada", noise("2"), "a")  # all that ada has
    asking, outcomes = in_thread(lambda: ledger.reserve("ada", noise("2"), "a"))
    asking.join(0.05)
    assert not outcomes
    ledger.commit(claim, b"7")
    asking.join(20)
    assert outcomes[0].stored == b"7"
    assert [entry.kind for entry in ledger.entries()].count(EntryKind.RESERVE) == 1


def test_who_waited_for_a_question_that_fails_is_refused_then_where_it_does_not_fit(place):
    with Ledger(place, limits("2", ada="2", eve="2"), patience=HOUR) as ledger:
        claim = ledger.reserve("ada", noise("2"), "a")
        asking, outcomes = in_thread(lambda: ledger.reserve("eve", noise("2"), "a"))
        asking.join(0.05)
        assert not outcomes
        ledger.fail(claim)
        asking.join(20)
        assert [outcome.code for outcome in outcomes] == [ErrorCode.BUDGET]
