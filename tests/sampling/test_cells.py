"""Bytes looked up by cells: the compiled way is the plain one, and each cell gives its own byte."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import loops
from tacit.arithmetic import to_interval
from tacit.sampling import table_lookup
from tacit.sampling.bits import ReplayBits
from tacit.sampling.packed import BLOCK, Coins

WAYS = [table_lookup.look_up_numpy, table_lookup.look_up_loop, loops.compile_loop(table_lookup.look_up_loop)]


def drawn(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, table_lookup.TABLE_CELLS, count, dtype=np.uint16)


def looked_up(way, chosen: np.ndarray, table: np.ndarray, owned: int) -> tuple[list[int], list[int]]:
    """The bytes found, and the places that are left."""
    found, rest = np.empty(len(chosen), dtype=np.uint8), np.empty(len(chosen), dtype=np.int64)
    left = way(chosen, table, owned, found, rest)
    return found.tolist(), rest[:left].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_cell_gives_its_byte_and_the_last_ones_are_told(way):
    # All 65,536 cells once: so with fair bits byte b comes with probability (cells of b)/65536, exactly.
    table = np.repeat(np.arange(256, dtype=np.uint8), 256)[::-1].copy()
    all_cells = np.arange(table_lookup.TABLE_CELLS, dtype=np.uint16)
    for owned in (65_417, table_lookup.TABLE_CELLS, 0):
        assert looked_up(way, all_cells, table, owned) == (table.tolist(), list(range(owned, 65_536)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(0, table_lookup.TABLE_CELLS), st.integers(0, 2**32))
def test_the_loop_is_the_plain_way_even_where_nothing_is_compiled(count, owned, seed):
    table, chosen = (
        np.random.default_rng(1).integers(0, 256, table_lookup.TABLE_CELLS, dtype=np.uint8),
        drawn(count, seed),
    )
    wanted = [table[cell] for cell in chosen], [place for place, cell in enumerate(chosen) if cell >= owned]
    assert (
        looked_up(table_lookup.look_up_numpy, chosen, table, owned)
        == looked_up(table_lookup.look_up_loop, chosen, table, owned)
        == wanted
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 7, 2**15, 2**15 + 1, 100_003])
def test_the_compiled_way_is_the_plain_one(count):
    table, chosen = (
        np.random.default_rng(1).integers(0, 256, table_lookup.TABLE_CELLS, dtype=np.uint8),
        drawn(count, count),
    )
    for owned in (0, 1, 40_000, 65_535, 65_536):
        plain, compiled = (
            looked_up(way, chosen, table, owned)
            for way in (table_lookup.look_up_numpy, loops.compile_loop(table_lookup.look_up_loop))
        )
        assert plain == compiled


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 2), Fraction(1, 1000)], ids=str)
def test_the_same_bits_make_the_same_coins_both_ways(chance, monkeypatch):
    # More than two blocks, so that blocks, their rest and the end are all met.
    coins, count = Coins(lambda: to_interval(chance)), 2 * BLOCK + 4_321
    plain = coins.octets(count, ReplayBits(b"both ways"))
    monkeypatch.setattr(loops, "_WORTHWHILE", 0)
    assert (coins.octets(count, ReplayBits(b"both ways")) == plain).all()
