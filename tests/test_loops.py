"""Loops: compiled where that pays, and only there."""

from __future__ import annotations

import pytest

from tacit import loops


def double(number: int) -> int:
    return 2 * number


def half(number: int) -> int:
    return number // 2


@pytest.mark.slow
def test_few_bytes_load_no_compiler():
    # 2^26 bytes are half a million reports of 1,024 bits.
    assert loops.choose_implementation(2**26 - 1, double, half) is half
    assert loops.choose_implementation(2**26, double, half) is loops.compile_loop(double)


def test_without_a_compiler_the_plain_way_is_taken(monkeypatch):
    monkeypatch.setattr(loops, "find_spec", lambda name: None)
    assert loops.choose_implementation(2**40, double, half) is half


@pytest.mark.slow
def test_a_loop_is_compiled_once_and_does_the_same():
    assert loops.compile_loop(double) is loops.compile_loop(double)
    assert loops.compile_loop(double)(21) == double(21) == 42
