"""Reports of a bit for each value, eight to a byte: shape, checks and column sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import Code, Refused
from tacit.local.frequency import array_of
from tacit.sampling.bits import Bits
from tacit.sampling.packed import BLOCK, Coins

_ROWS = 255  # as many ones as a byte can count

Octets = npt.NDArray[np.uint8]


def width(domain: int) -> int:
    """The bytes of one report."""
    return -(-domain // 8)


def shaped(reports: Any, domain: int) -> Octets:
    """The reports as rows of bytes, or a refusal."""
    given = array_of(reports)
    if given.dtype != np.uint8 or given.ndim != 2 or given.shape[1] != width(domain):
        raise Refused(
            Code.REPORT, f"a report is {width(domain)} bytes: a bit for each value", fix="send what encode made"
        )
    return given


def fill(reports: Octets, domain: int, others: Coins, bits: Bits) -> Iterator[slice]:
    """Fill the rows with coins, but no bit beyond the last value; yields each block while it is near the processor."""
    step = max(1, BLOCK // width(domain))
    for start in range(0, len(reports), step):
        part = slice(start, start + step)
        others.fill(reports[part].reshape(-1), bits)
        if spare(domain):
            reports[part, -1] &= ~spare(domain)
        yield part


def padded_with_zeros(reports: Octets, domain: int) -> npt.NDArray[np.bool_]:
    """Whether the bits beyond the last value are 0, for each report."""
    if not spare(domain):
        return np.ones(len(reports), dtype=np.bool_)
    return np.asarray((reports[:, -1] & spare(domain)) == 0)


def spare(domain: int) -> np.uint8:
    """The bits of the last byte that are no value's."""
    return np.uint8((1 << (-domain % 8)) - 1)


def column_sums(reports: Octets, domain: int) -> npt.NDArray[np.int64]:
    """How many reports have each bit set: 255 rows at a time, added up as bytes."""
    total = np.zeros(8 * width(domain), dtype=np.int64)
    for start in range(0, len(reports), _ROWS):
        total += np.add.reduce(np.unpackbits(reports[start : start + _ROWS], axis=1), axis=0, dtype=np.uint8)
    return total[:domain]


def set_bits(reports: Octets, values: npt.NDArray[np.int64], ones: npt.NDArray[np.bool_]) -> None:
    """Put the bit of each row's own value to what is given, in place."""
    rows, place = np.arange(len(reports)), values >> 3
    masks = (128 >> (values & 7)).astype(np.uint8)
    old = reports[rows, place]
    reports[rows, place] = np.where(ones, old | masks, old & ~masks)


def all_rows(domain: int) -> Octets:
    """All reports there are."""
    numbers = np.arange(1 << domain, dtype=np.int64)
    return np.packbits(((numbers[:, None] >> np.arange(domain)) & 1).astype(np.uint8), axis=1)
