"""Processes are killed at random moments. What was shown was charged, and the ledger opens as before."""

from __future__ import annotations

import os
import random
import signal
import time
from fractions import Fraction

import pytest

from tacit.accounting.filter import Amount
from tacit.ledger.budget import Limits
from tacit.ledger.entries import Kind
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise

KILLS = 50
PRICE = LaplaceNoise(Fraction(100), 1)  # epsilon 0.01, 1e10 grains
LIMITS = Limits(Amount.cap(Fraction(10**6), Fraction(0)), {"ada": Amount.cap(Fraction(10**6), Fraction(0))})


def show_answers_for_ever(path, pipe: int, name: str) -> None:
    """Ask one question after the other, and write down each answer as it is shown."""
    with Ledger(path, LIMITS) as ledger:
        number = 0
        while True:
            number += 1
            key = f"{name}-{number}"
            claim = ledger.commit(ledger.reserve("ada", PRICE, key), f"answer to {key}".encode())
            os.write(pipe, key.encode() + b"\t" + (claim.stored or b"") + b"\n")


def killed(path, name: str, delay: float) -> list[list[str]]:
    """What a process showed before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            show_answers_for_ever(path, writing, name)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with os.fdopen(reading) as pipe:
        return [line.rstrip("\n").split("\t") for line in pipe]


def check(path, shown: list[list[str]]) -> None:
    with Ledger(path, LIMITS) as ledger:
        assert verify(ledger).problems == ()
        reserved = {entry.key for entry in ledger.entries() if entry.kind is Kind.RESERVE}
        assert reserved >= {key for key, _ in shown}
        assert ledger.standing("ada").spent == ledger.overall().spent == Amount(len(reserved) * 10**10, 0)


def test_fifty_kills(tmp_path):
    path = tmp_path / "ledger"
    chance = random.Random(1701)
    shown: list[list[str]] = []
    for number in range(KILLS):
        shown += killed(path, f"{number}", chance.uniform(0, 0.06))
        if number % 10 == 9:
            check(path, shown)
    assert len(shown) > KILLS
    with Ledger(path, LIMITS) as ledger:
        for key, answer in shown:
            claim = ledger.reserve("ada", PRICE, key)
            assert claim.stored == answer.encode()
            assert claim.receipt.charged == Amount.zero()


@pytest.mark.parametrize("delay", [0.002 * step for step in range(10)])
def test_kills_while_the_file_is_made(tmp_path, delay):
    path = tmp_path / "ledger"
    check(path, killed(path, "first", delay))


def test_a_kill_between_reserve_and_commit_keeps_the_charge(tmp_path):
    path = tmp_path / "ledger"
    child = os.fork()
    if child == 0:
        try:
            Ledger(path, LIMITS).reserve("ada", PRICE, "a")
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    with Ledger(path, LIMITS) as ledger:
        assert ledger.standing("ada").spent == Amount(10**10, 0)
        assert ledger.reserve("ada", PRICE, "a").stored is None  # it was never answered, so it is charged again
        assert ledger.standing("ada").spent == Amount(2 * 10**10, 0)
