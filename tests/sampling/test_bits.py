"""Random bits: the same for the same seed in tests, never the same twice where they protect people."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.forks import fork, outcome

from tacit.sampling import bits as module
from tacit.sampling.bits import ReplayBits, SystemBits

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


def test_a_child_forked_while_the_lock_is_held_does_not_hang():
    source = SystemBits()
    source._lock.acquire()  # as a thread would that is in the middle of words()
    try:
        words = in_child(lambda: source.words(10))
    finally:
        source._lock.release()
    assert len(set(words)) == 10


def test_a_child_whose_fork_went_unnoticed_is_noticed(monkeypatch):
    # As where a fork does not run the hooks of Python: the process number differs from the one that made the pool.
    source = SystemBits()
    source.words(1)
    key, pool = source._key, source._pool.copy()
    monkeypatch.setattr(module.os, "getpid", lambda: source._process + 1)
    assert not set(source.words(1_000).tolist()) & set(pool.tolist())
    assert source._key != key


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
    source = SystemBits()
    for count in (5_000, 100_000, 1):
        counter = Cipher(algorithms.AES(source._key), modes.CTR((2).to_bytes(16, "big"))).encryptor()
        words = source.words(count)
        assert source._key == counter.update(bytes(32))
        assert words.tobytes() == counter.update(bytes(8 * count))


def test_every_refill_has_a_key_of_its_own():
    source = SystemBits()
    keys = {source._key}
    for _ in range(5):
        source.words(4_096)
        keys.add(source._key)
    assert len(keys) == 6


def test_a_used_pool_is_wiped():
    source = SystemBits()
    taken = source.words(100)
    assert not source._pool[:100].any()
    assert source._pool[100:].any()
    assert not set(taken.tolist()) & set(source._pool.tolist())
    kept = taken.copy()
    source.words(4_000)  # what was handed out belongs to the caller
    assert np.array_equal(taken, kept)


def test_two_sources_differ():
    assert not set(SystemBits().words(1_000).tolist()) & set(SystemBits().words(1_000).tolist())


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
