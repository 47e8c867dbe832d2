"""Who starts next: few in their first moments, and nobody waits for a long one."""

from __future__ import annotations

import threading

from tacit.serve.start_limiter import StartLimiter


def test_who_waits_comes_in_when_another_leaves():
    pace, order = StartLimiter(1, moment=60), []

    def come() -> None:
        with pace:
            order.append("second in")

    with pace:
        other = threading.Thread(target=come)
        other.start()
        other.join(0.05)
        order.append("first out")
    other.join(20)
    assert order == ["first out", "second in"] and pace.young == 0


def test_a_long_one_lets_others_in():
    pace, came = StartLimiter(1, moment=0.01), threading.Event()

    def come() -> None:
        with pace:
            came.set()

    with pace:
        other = threading.Thread(target=come)
        other.start()
        assert came.wait(20)  # while the first is still inside
    other.join(20)


def test_several_may_be_young():
    pace, inside = StartLimiter(2, moment=60), threading.Barrier(2)

    def come() -> None:
        with pace:
            inside.wait(20)  # which only two can pass

    others = [threading.Thread(target=come) for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join(20)
    assert not inside.broken and pace.young == 0
