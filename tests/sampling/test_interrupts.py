"""An exception at any point of the sampling path: no word is given out twice, and none that was wiped or never made."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.forks import fork, outcome
from tests.support.interrupts import at_every_point

import tacit
from tacit import mechanisms as made
from tacit.privacy.unit import Neighbors
from tacit.sampling import bernoulli, exponential_weights, gaussian, geometric, laplace, packed, uint16, uniform, wide
from tacit.sampling.bits import Bits, SystemBits, Words

pytestmark = pytest.mark.slow

ROOT = Path(tacit.__file__).parent
POOL = 4_096  # words of a refill
WIDE, THIRD = Fraction(30), Fraction(1, 3)
BROAD = Fraction(2**40)
SCORES = [3, 1, 4, 1, 5]
COUNTS = dict.fromkeys(range(50), 9)


class Recorded:
    """A source, and every word that it has given out."""

    def __init__(self) -> None:
        self.source = SystemBits()
        self.given: list[Words] = []

    def words(self, count: int) -> Words:
        taken = self.source.words(count)
        self.given.append(taken.copy())
        return taken

    def check(self, least: int) -> None:
        """State that all words differ and none is zero. Among n fair ones that fails with probability n^2 / 2^65."""
        words = np.concatenate(self.given)
        assert len(words) >= least
        assert np.count_nonzero(words == 0) == 0
        assert len(np.unique(words)) == len(words)


def in_bits(file: str) -> bool:
    return file.endswith("sampling/bits.py")


def in_sampling(file: str) -> bool:
    return file.startswith((str(ROOT / "sampling"), str(ROOT / "mechanisms")))


def around_the_pool(bits: Bits) -> None:
    """Take words in every way: out of a pool, up to its end, beyond it, and more than it holds."""
    for count in (1, 0, POOL - 1, 1, POOL, POOL + 1, 3):
        bits.words(count)


def coins(bits: Bits) -> None:
    bernoulli.draw_rational(THIRD, bits)
    bernoulli.draw_array_dyadic(Fraction(1, 4), 3, bits)
    bernoulli.draw_exp(THIRD, bits)
    bernoulli.draw_exp(THIRD, bits, trusted=0)  # interval arithmetic decides, with more words where it needs them
    bernoulli.draw_exp_array(np.array([0.5, 1.0]), 1.0, lambda i: Fraction(i + 1, 2), bits)


def paths() -> dict[str, Callable[[Any], object]]:
    """Everything that draws: where a last argument is 0, interval arithmetic decides every draw."""
    octets = packed.Coins(THIRD)
    exponential, largest, flip = (
        kind.calibrated(epsilon=1, sensitivity=1) for kind in (made.Exponential, made.NoisyMax, made.PermuteAndFlip)
    )
    best = made.TopK.calibrated(epsilon=2, count=2, sensitivity=1)
    keys, threshold = made.PartitionSelection(1, 1e-6), made.Threshold.calibrated(1, 1e-5)
    median = made.Quantile.calibrated(1, Fraction(1, 2), rows=1, neighbors=Neighbors.ADD_REMOVE, lower=0, upper=100)
    alarm = made.SparseVector.calibrated(epsilon=1, threshold=9, count=1, sensitivity=1)
    stairs, response = made.Staircase.calibrated(epsilon=4, sensitivity=10), made.RandomizedResponse(epsilon=1)
    proposed = made.ProposedMedian.calibrated(epsilon=1, delta=1e-6, lower=0, upper=100, bound=1)
    smooth = made.SmoothMedian.calibrated(epsilon=1, lower=0, upper=100)
    auction = made.Pricing.calibrated(epsilon=2, prices=[10, 50, 500])
    return {
        "words": around_the_pool,
        "uniform": lambda bits: (uniform.draw_below(10**30, bits), uniform.draw_array_below(6, 9, bits)),
        "coins": coins,
        "narrow": lambda bits: (octets.octets(40, bits), uint16.draw_array_below(3, 9, bits)),
        "laplace": lambda bits: (
            laplace.draw(WIDE, bits),
            laplace.draw(WIDE, bits, 0),
            laplace.draw_array(WIDE, 9, bits),
        ),
        "table": lambda bits: laplace._table(WIDE).draws(9, bits),
        "gaussian": lambda bits: (gaussian.draw(WIDE, bits), gaussian.draw_array(WIDE, 9, bits)),
        "wide": lambda bits: (wide.draw_array(BROAD, 9, bits), wide.draw_integers(BROAD, 9, bits)),
        "Laplace, wide": lambda bits: made.Laplace(2**60).release([1] * 9, bits),
        "Gaussian, wide": lambda bits: made.Gaussian(2**120).release([1] * 9, bits),
        "geometric": lambda bits: (geometric.draw(WIDE, bits), geometric.draw_array(WIDE, 2, bits, 0)),
        "choice": lambda bits: (
            exponential_weights.choose(SCORES, THIRD, bits),
            exponential_weights.choices(SCORES, THIRD, 2, bits, 0),
        ),
        "Laplace": lambda bits: made.Laplace(WIDE).release([1] * 9, bits),
        "Gaussian": lambda bits: made.Gaussian(WIDE).release([1] * 9, bits),
        "Exponential": lambda bits: exponential.release(SCORES, bits),
        "NoisyMax": lambda bits: largest.release(SCORES, bits),
        "PermuteAndFlip": lambda bits: flip.release(SCORES, bits),
        "TopK": lambda bits: best.release(SCORES, bits),
        "PartitionSelection": lambda bits: keys.release(COUNTS, bits),
        "Threshold": lambda bits: threshold.release(COUNTS, bits),
        "Quantile": lambda bits: median.release({20: 15, 40: 20}, bits),
        "SparseVector": lambda bits: alarm.release([1, 30, 1], bits),
        "Staircase": lambda bits: stairs.release(3, bits),
        "RandomizedResponse": lambda bits: response.release([1, 0, 1], bits),
        "ProposedMedian": lambda bits: proposed.release([50] * 9, bits),
        "SmoothMedian": lambda bits: smooth.release([50] * 9, bits),
        "Pricing": lambda bits: auction.release([10, 500], bits),
    }


PATHS = paths()


@pytest.mark.parametrize("name", PATHS)
def test_an_interrupt_at_any_line_repeats_no_word(name, full):
    # By chance 10^6 words fail with probability 10^12 / 2^65 = 3e-8, fewer less often.
    draw, bits = PATHS[name], Recorded()
    draw(bits)
    points = 0
    for _ in at_every_point(lambda: draw(bits), in_sampling, step=1 if full else 5):
        draw(bits)
        points += 1
    assert points > 5
    other = threading.Thread(target=draw, args=(bits,), daemon=True)
    other.start()
    other.join(60)
    assert not other.is_alive()  # no lock is left behind
    bits.check(points)


@pytest.mark.parametrize("name", ["words", "laplace", "PartitionSelection"])
def test_an_interrupt_at_any_bytecode_of_the_source_repeats_no_word(name, full):
    draw, bits = PATHS[name], Recorded()
    draw(bits)
    points = 0
    for _ in at_every_point(lambda: draw(bits), in_bits, bytecodes=True, step=1 if full else 5):
        bits.words(7)
        points += 1
    assert points > 15
    bits.check(7 * points)


@pytest.mark.parametrize("bytecodes", [False, True], ids=["lines", "bytecodes"])
def test_a_handler_that_draws_gets_words_of_its_own(bytecodes):
    # Whatever a signal handler draws in the middle of a draw: it neither waits for ever nor takes the same words.
    bits = Recorded()
    points = 0
    work = lambda: [bits.words(count) for count in (1, POOL, 2)]  # noqa: E731 - with a pool, its end, and the next
    for _ in at_every_point(work, in_bits, lambda: bits.words(5), bytecodes=bytecodes, step=3 if bytecodes else 1):
        points += 1
    assert points > 30
    bits.check((5 + 1 + POOL + 2) * points)


def test_a_fork_in_the_middle_of_a_draw_repeats_no_word(tmp_path):
    # A signal handler that forks: the draw continues in the parent and in the child, and ends in different words.
    source, file = SystemBits(), tmp_path / "words"
    parent, child, taken = os.getpid(), [], []

    def work() -> None:
        taken[:] = source.words(3).tolist()
        if os.getpid() != parent:
            file.write_bytes(np.array([*taken, *source.words(3)], dtype=np.uint64).tobytes())
            os._exit(0)

    work()
    drawn, finished, points = list(taken), 0, 0
    for _ in at_every_point(work, in_bits, lambda: child.append(fork())):
        assert outcome(child.pop()) == 0
        theirs = np.frombuffer(file.read_bytes(), dtype=np.uint64).tolist()
        if theirs[:3] == taken:  # the words were drawn, and about to be returned: the same as a fork after the draw
            finished, theirs = finished + 1, theirs[3:]
        drawn += [*taken, *theirs, *source.words(3).tolist()]
        points += 1
    assert points > 15
    assert finished == 3  # two lines and the return
    assert len(set(drawn)) == len(drawn) == 3 + 12 * points - 3 * finished
    assert all(drawn)


def test_a_refresh_in_the_middle_of_a_draw_lets_go_of_its_stream():
    source = SystemBits()
    source.words(3)
    before = list(source._idle)
    for _ in at_every_point(lambda: source.words(3), in_bits, source.refresh):
        assert not any(stream is old for stream in source._idle for old in before)
        source.words(3)
        before = list(source._idle)


@pytest.mark.parametrize("draws", [2, 5, 12])
def test_a_signal_at_any_time_repeats_no_word(draws):
    # In a process of its own, interrupted by a real timer until 3,000 interrupts and 1,000 words have come, however
    # slow the machine: within the first draw, which makes a new stream because the one before was interrupted, or
    # after it and about so many more.
    code = f"""
import itertools, signal, sys, timeit
import numpy as np
from tacit.sampling.bits import SystemBits

class Timer(BaseException):
    pass

def ring(*unused):
    raise Timer

source, given, rung = SystemBits(), [], 0
once = min(timeit.repeat(lambda: source.words(2), number=100, repeat=20)) / 100
first = min(timeit.repeat(lambda: (source.refresh(), source.words(2)), number=20, repeat=20)) / 20
signal.signal(signal.SIGALRM, ring)
for turn in itertools.count():
    if rung >= 3000 and sum(map(len, given)) > 1000:
        break
    taken = None
    try:
        wait = turn % 50 / 20 * first + {draws} * once
        signal.setitimer(signal.ITIMER_REAL, wait * (1 + turn // 3000))
        while True:
            taken = source.words(1 + turn % 3)
            given.append(taken)
            taken = None
    except Timer:
        rung += 1
        if taken is not None and (not given or given[-1] is not taken):
            given.append(taken)
signal.setitimer(signal.ITIMER_REAL, 0)
words = np.concatenate(given)
print(rung, len(words), int((words == 0).sum()), len(words) - len(np.unique(words)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    rung, count, zero, repeated = map(int, done.stdout.split())
    assert rung >= 3_000
    assert count > 1_000
    assert (zero, repeated) == (0, 0)
