"""Reports of a bit for each value, eight to a byte: shape, checks and column sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit import loops
from tacit.errors import ErrorCode, Refused
from tacit.local.frequency_oracle import Counts, as_array
from tacit.sampling.bits import Bits, Words
from tacit.sampling.packed import BLOCK, Coins

_CHUNK = 2**16 - 1  # bytes of rows that are added at a time: they stay in the processor's cache, and 16 bits count them

PackedRows: TypeAlias = npt.NDArray[np.uint8]


def bytes_per_report(domain: int) -> int:
    """Return the bytes of one report."""
    return -(-domain // 8)


def as_packed_rows(reports: npt.ArrayLike, domain: int) -> PackedRows:
    """Return the reports as rows of bytes; refuse others. Lists of bytes, or of numbers up to 255, are rows too."""
    given = as_array(_rows(reports))
    if given.dtype != np.uint8 or given.ndim != 2 or given.shape[1] != bytes_per_report(domain):
        raise Refused(
            ErrorCode.REPORT,
            f"a report is {bytes_per_report(domain)} bytes: a bit for each value",
            fix="send what encode returned",
        )
    return given


def _rows(reports: Any) -> Any:
    """Return a list of received rows, each as an array of bytes; anything else as it is."""
    if not isinstance(reports, list | tuple) or not all(isinstance(row, bytes | bytearray | list) for row in reports):
        return reports
    try:
        return [np.frombuffer(bytes(row), dtype=np.uint8) for row in reports]
    except (TypeError, ValueError):
        return reports


def fill_with_coins(reports: PackedRows, domain: int, others: Coins, bits: Bits) -> Iterator[slice]:
    """Fill the rows with random bits, none beyond the last value; yield each block while it is in the cache."""
    wide = bytes_per_report(domain)
    for octets in others.filling(reports.reshape(-1), max(1, BLOCK // wide) * wide, bits):
        part = slice(octets.start // wide, octets.stop // wide)
        if padding_mask(domain):
            reports[part, -1] &= ~padding_mask(domain)
        yield part


def has_zero_padding(reports: PackedRows, domain: int) -> npt.NDArray[np.bool_]:
    """Return whether the bits beyond the last value are 0, for each report."""
    if not padding_mask(domain):
        return np.ones(len(reports), dtype=np.bool_)
    return np.asarray((reports[:, -1] & padding_mask(domain)) == 0)


def padding_mask(domain: int) -> np.uint8:
    """Return the bits of the last byte that belong to no value."""
    return np.uint8((1 << (-domain % 8)) - 1)


def row_sums(reports: PackedRows) -> Counts:
    """Count the bits that each report has set, in the longest words that a row is made of."""
    words = np.ascontiguousarray(reports).view(f"u{math.gcd(reports.shape[1], 8)}")
    return np.asarray(np.einsum("ij->i", np.bitwise_count(words), dtype=np.int64))


def column_sums(reports: PackedRows, domain: int) -> Counts:
    """Count the reports that have each bit set.

    Rows are added bit-sliced, a bit of each sum in a plane (a carry-save adder): of three planes of one weight, their
    parity keeps the weight and their majority has twice it, for a + b + c = 2 [two or more are set] + [one or three are
    set]. So a level combines every two incoming planes with the one it holds, and passes a plane of twice the weight to
    the next. Each plane is as high as a chunk of rows; its rows are counted in the end.
    """
    wide = bytes_per_report(domain)
    chunk = max(1, _CHUNK // wide // 8) * 8  # rows, whose bytes are whole words
    whole = len(reports) // chunk * chunk
    add = loops.choose_implementation(reports.size, _add_by_loop, _add)
    levels: list[list[Words]] = []  # one or two planes of weight 2^level
    for start in range(0, whole, chunk):
        plane, level = np.ascontiguousarray(reports[start : start + chunk]).reshape(-1).view(np.uint64), 0
        while level < len(levels) and len(levels[level]) == 2:
            one, other = levels[level]
            parity, majority = np.empty_like(plane), np.empty_like(plane)
            add(one, other, plane, parity, majority)
            levels[level] = [parity]
            plane = majority
            level += 1
        if level == len(levels):
            levels.append([])
        levels[level].append(plane)
    total = _count_chunk(reports[whole:])
    for level, planes in enumerate(levels):
        for plane in planes:
            total += _count_chunk(plane.view(np.uint8).reshape(chunk, wide)) << level
    return total[:domain]


def _add(one: Words, other: Words, third: Words, parity: Words, majority: Words) -> None:
    np.bitwise_xor(one, other, out=parity)
    np.bitwise_and(parity, third, out=majority)
    majority |= one & other
    parity ^= third


def _add_by_loop(one: Words, other: Words, third: Words, parity: Words, majority: Words) -> None:
    for place in range(len(one)):
        a, b, c = one[place], other[place], third[place]
        parity[place] = a ^ b ^ c
        majority[place] = (a & b) | ((a ^ b) & c)


def _count_chunk(rows: PackedRows) -> Counts:
    """Count the rows of a chunk that have each bit set."""
    counts: npt.NDArray[np.uint16] = np.add.reduce(np.unpackbits(rows, axis=1), axis=0, dtype=np.uint16)
    return counts.astype(np.int64)


SetBits: TypeAlias = Callable[[PackedRows, Counts, npt.NDArray[np.bool_]], None]


def choose_bit_setter(reports: PackedRows) -> SetBits:
    """Return the faster function that sets the bit of each row's own value, in place, in contiguous rows."""
    return loops.choose_implementation(reports.size, _set_by_loop, _set)


def _set(reports: PackedRows, values: Counts, ones: npt.NDArray[np.bool_]) -> None:
    wide, octets = reports.shape[1], reports.reshape(-1)
    places = (values >> 3) + np.arange(0, len(octets), wide)
    shifts = np.uint8(7) - (values & 7).astype(np.uint8)
    octets[places] = (octets[places] & ~(np.uint8(1) << shifts)) | (ones.view(np.uint8) << shifts)


def _set_by_loop(reports: PackedRows, values: Counts, ones: npt.NDArray[np.bool_]) -> None:
    for row in range(len(values)):
        place, mask = values[row] >> 3, 128 >> (values[row] & 7)
        reports[row, place] = reports[row, place] & ~mask | mask * ones[row]


def enumerate_rows(domain: int) -> PackedRows:
    """Return all rows of `domain` bits."""
    numbers = np.arange(1 << domain, dtype=np.int64)
    return np.packbits(((numbers[:, None] >> np.arange(domain)) & 1).astype(np.uint8), axis=1)
