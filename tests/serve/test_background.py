"""Calls in another process: what they return, what they raise, and what happens when that process dies."""

from __future__ import annotations

import os
import signal
import threading
from fractions import Fraction

import pytest

from tacit.errors import ErrorCode, Refused
from tacit.plan.planner import make_plans
from tacit.plan.question import Question
from tacit.serve.background import BackgroundProcess

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def background():
    found = BackgroundProcess()
    yield found
    found.close()


def test_a_call_returns_what_the_function_returns_from_another_process(background):
    assert background.call(os.getpid) not in (os.getpid(), None)
    assert background.call(divmod, 7, Fraction(2)) == divmod(7, Fraction(2))


@pytest.mark.slow
def test_a_plan_from_another_process_is_the_one_that_is_made_here(background, curator):
    for question in (Question(COUNT, epsilon=1 / 3), Question(COUNT, within={"n": 9})):
        assert background.call(make_plans, question, curator.policy, None) == make_plans(question, curator.policy)


@pytest.mark.slow
def test_what_is_raised_there_is_raised_here(background, curator):
    with pytest.raises(Refused) as caught:
        background.call(make_plans, Question("SELECT age FROM visits", epsilon=1), curator.policy, None)
    with pytest.raises(Refused) as expected:
        make_plans(Question("SELECT age FROM visits", epsilon=1), curator.policy)
    assert str(caught.value) == str(expected.value) and caught.value.code is ErrorCode.RAW_COLUMN


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_the_call_is_made_here(background):
    first = background.call(os.getpid)
    os.kill(first, signal.SIGKILL)
    assert background.call(abs, -3) == 3
    assert background.call(os.getpid) not in (first, os.getpid())


def test_threads_share_it(background):
    found = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: background.call(pow, n, 2)})) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n * n for n in range(20)}


def test_what_is_printed_there_is_no_reply(background):
    assert background.call(print, "not a reply") is None
    assert background.call(abs, -1) == 1


def test_after_the_end_calls_are_made_here(background):
    assert background.call(os.getpid) != os.getpid()
    background.close()
    assert background.call(os.getpid) == os.getpid()
