"""Random bits: the same for the same seed in tests, never the same twice where they protect people."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import threading
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.support.forks import fork, outcome

from tacit.errors import ParameterError
from tacit.sampling import bits as module
from tacit.sampling.bits import ReplayBits, SystemBits, refresh_bits

ALARM = 1e-9


def in_child(work) -> list[int]:
    """The words that a forked child, and whoever it forks, writes down."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(work().tobytes())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        words = np.frombuffer(pipe.read(), dtype=np.uint64).tolist()
    assert outcome(child) == 0
    return words


def test_the_same_seed_gives_the_same_words():
    one, other = ReplayBits(b"seed"), ReplayBits(b"seed")
    assert one.words(5).tolist() == other.words(5).tolist()
    # However they are asked for.
    assert one.words(7).tolist() == [*other.words(3).tolist(), *other.words(0).tolist(), *other.words(4).tolist()]
    assert ReplayBits(b"other").words(5).tolist() != ReplayBits(b"seed").words(5).tolist()


def test_replayed_words_are_known():
    # AES-256-CTR with the key SHA-256(b"seed") and a counter from zero, little-endian: the same on every machine.
    assert [f"{word:016x}" for word in ReplayBits(b"seed").words(2).tolist()] == [
        "932167f13ee02410",
        "1656647b132296f3",
    ]


@pytest.mark.parametrize("make", [SystemBits, lambda: ReplayBits(b"seed")], ids=["system", "replay"])
def test_words_are_what_numpy_expects(make):
    words = make().words(3)
    assert words.dtype == np.uint64
    assert words.shape == (3,)
    assert make().words(0).shape == (0,)


@pytest.mark.slow
def test_forked_children_go_their_own_way():
    source = SystemBits()
    source.words(10)  # a pool is there, and would be copied

    def child():
        mine = source.words(500)
        return np.concatenate([mine, np.array(in_child(lambda: source.words(500)), dtype=np.uint64)])

    first, second = in_child(child), in_child(child)
    own = source.words(1_500).tolist()
    assert len(first) == len(second) == 1_000
    # 3,500 words of 64 bits: any two are equal with probability 3500^2 / 2^65 = 3e-13.
    assert len({*first, *second, *own}) == 3_500


def test_a_child_whose_fork_went_unnoticed_is_noticed(monkeypatch):
    # As where a fork does not run the hooks of Python: the process number differs from the one that made the pool.
    source = SystemBits()
    source.words(1)
    (stream,) = source._idle
    monkeypatch.setattr(module.os, "getpid", lambda: stream.process + 1)
    assert not set(source.words(1_000).tolist()) & set(stream._pool.tolist())
    assert stream not in source._idle


@pytest.mark.parametrize("make", [SystemBits, lambda: ReplayBits(b"seed")], ids=["system", "replay"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_source_is_never_copied(make, again):
    # A copy would share the pool, or repeat it.
    with pytest.raises(TypeError, match="cannot be copied or pickled: both would use the same randomness"):
        again(make())


@pytest.mark.parametrize("count", [-1, -4_096, 1.0, "1", None])
def test_what_is_no_number_of_words_gives_none_and_takes_none_back(count):
    # Counting by -1 would give a wiped word out again.
    source = SystemBits()
    source.words(10)
    with pytest.raises(ParameterError, match="count"):
        source.words(count)
    assert source.words(4_000).all()


def test_narrow_integers_do_not_count_round():
    # 100 + 100 as bytes is -56.
    source = SystemBits()
    words = np.concatenate([source.words(np.int8(100)) for _ in range(30)])
    assert len(np.unique(words)) == 3_000
    assert words.all()


class Clone:
    """A copy of a machine, made by a fork: it has the same process number, streams and keys, and runs no hook."""

    def __init__(self, source: SystemBits) -> None:
        self._source, self._state, self._number = source, dict(vars(source)), os.getpid()

    def draw(self, work) -> list[int]:
        def inside():
            vars(self._source).update(self._state)
            module.os.getpid = lambda: self._number
            return work()

        return in_child(inside)


@pytest.mark.slow
def test_a_cloned_machine_draws_other_words_after_a_refresh():
    source = SystemBits()
    source.words(10)
    machine = Clone(source)
    assert machine.draw(lambda: source.words(500)) == source.words(500).tolist()  # it is a clone
    machine = Clone(source)

    def question():
        source.refresh()
        return source.words(500)

    both = [*machine.draw(question), *machine.draw(question), *question().tolist()]
    assert len(set(both)) == 1_500  # 1500^2 / 2^65 = 6e-14


def test_clones_differ_though_their_operating_system_repeats_itself(monkeypatch):
    # A clone of a machine without a generation counter: the kernel's randomness is the same in both, the time is not.
    monkeypatch.setattr(module.os, "urandom", lambda size: b"\1" * size)
    source = SystemBits()
    source.words(10)
    machine = Clone(source)

    def question():
        source.refresh()
        return source.words(500)

    assert len({*machine.draw(question), *machine.draw(question), *question().tolist()}) == 1_500


def test_a_refresh_needs_both_the_old_key_and_new_randomness_to_be_foretold(monkeypatch):
    # Whoever knows what the operating system gives, and the time, still lacks the key before; and the other way round.
    monkeypatch.setattr(module.time, "time_ns", lambda: 0)
    monkeypatch.setattr(module.time, "perf_counter_ns", lambda: 0)
    monkeypatch.setattr(module, "_numbers", itertools.repeat(0))
    given = {}
    for before, now in product((1, 2), repeat=2):
        monkeypatch.setattr(module.os, "urandom", lambda size, first=before: bytes([first]) * size)
        source = SystemBits()
        monkeypatch.setattr(module.os, "urandom", lambda size, then=now: bytes([then]) * size)
        source.refresh()
        given[before, now] = source.words(100).tolist()
    assert len({word for words in given.values() for word in words}) == 400


def test_replayed_bits_stay_what_they_are():
    one, other = ReplayBits(b"seed"), ReplayBits(b"seed")
    one.words(3)
    other.words(3)
    assert refresh_bits(one) is one
    assert one.words(3).tolist() == other.words(3).tolist()


def test_threads_share_nothing():
    source = SystemBits()
    taken: list[list[int]] = [[] for _ in range(8)]

    def work(mine: list[int]) -> None:
        for size in range(1, 200):
            mine += source.words(size).tolist()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 8 * (1 + ... + 199) = 159,200 words; two are equal with probability 159200^2 / 2^65 = 7e-10
    words = [word for mine in taken for word in mine]
    assert len(set(words)) == len(words) == 159_200


def test_refills_and_large_requests_repeat_nothing():
    source = SystemBits()
    sizes = [1, 4_095, 1, 4_096, 4_097, 10, 100_000, 5, 3]
    words = np.concatenate([source.words(size) for size in sizes])
    assert len(set(words.tolist())) == len(words) == sum(sizes)


def test_system_words_are_those_of_counter_mode():
    # AES-256 of 2, 3, ... under the key; the first 32 bytes are the next key and are handed to nobody.
    stream = SystemBits()._new_stream()
    for count in (5_000, 100_000, 1):
        counter = Cipher(algorithms.AES(stream._key), modes.CTR((2).to_bytes(16, "big"))).encryptor()
        words = stream.take(count)
        assert stream._key == counter.update(bytes(32))
        assert words.tobytes() == counter.update(bytes(8 * count))


def test_every_refill_has_a_key_of_its_own():
    stream = SystemBits()._new_stream()
    keys = {stream._key}
    for _ in range(5):
        stream.take(4_096)
        keys.add(stream._key)
    assert len(keys) == 6


def test_a_used_pool_is_wiped():
    source = SystemBits()
    taken = source.words(100)
    (stream,) = source._idle
    assert not stream._pool[:100].any()
    assert stream._pool[100:].all()
    assert not set(taken.tolist()) & set(stream._pool.tolist())
    kept = taken.copy()
    source.words(4_000)  # what was handed out belongs to the caller
    assert np.array_equal(taken, kept)


def test_two_sources_differ():
    assert not set(SystemBits().words(1_000).tolist()) & set(SystemBits().words(1_000).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("make", [SystemBits, lambda: ReplayBits(b"fair")], ids=["system", "replay"])
def test_bits_are_fair(chi_square, make):
    # The only test here whose words differ from run to run: it alarms falsely with probability 2e-9 at most.
    octets = make().words(1_000_000).view(np.uint8)
    counts = np.bincount(octets, minlength=256)
    assert chi_square(counts.tolist(), [8_000_000 / 256] * 256) > ALARM
    ones = int(np.unpackbits(octets).sum())
    assert chi_square([ones, 64_000_000 - ones], [32_000_000] * 2) > ALARM
    # Even bytes that come 1.2 % more often than odd ones are seen.
    biased = np.where(np.arange(256) % 2 == 0, 1.006, 0.994) * counts
    assert chi_square(biased.tolist(), [biased.sum() / 256] * 256) < ALARM
