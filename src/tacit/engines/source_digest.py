"""Whether data is the same as before: a digest of files, or of a data frame.

A digest says something about rows, so it is kept for the owner only: in the copy, and in the ledger as a keyed MAC.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import DataError, ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_SHORT_TIMES = ("date32[day]", "time32[s]", "time32[ms]")  # of 32 bits
_NULL = np.uint64(0x9E3779B97F4A7C15)


def digest_files(files: Iterable[Path]) -> str:
    """The digest of what files hold, whatever their names and their order."""
    found = []
    for file in files:
        try:
            with file.open("rb") as content:
                found.append(hashlib.file_digest(content, "sha256").hexdigest())
        except OSError as problem:
            what = f"{file.name} cannot be read: {problem.strerror}"
            raise DataError(ErrorCode.DATA, what, fix="check the file and the rights to read it") from None
    return hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()


def digest_frame(table: pa.Table) -> str:
    """The digest of a table's columns and rows, whatever the order of the rows.

    Each row is hashed to 64 bits, and the hashes are added up twice, the second time squared: tables that differ by
    accident have the same digest with a probability of about 2^-64.
    """
    rows = np.zeros(table.num_rows, np.uint64)
    with np.errstate(over="ignore"):
        for column in table.columns:
            rows = _mix(rows * _FACTORS[0] + _hash_values(column))
        sums = [int(rows.sum(dtype=np.uint64)), int((rows * rows).sum(dtype=np.uint64))]
    return hashlib.sha256(json.dumps([table.column_names, table.num_rows, sums]).encode()).hexdigest()


def _hash_values(column: pa.ChunkedArray) -> Hashes:
    """A hash of each value. Numbers that are equal have the same, in whichever type they are stored."""
    import pyarrow as pa

    kind = column.type
    if not len(column):
        return np.zeros(0, np.uint64)
    if pa.types.is_dictionary(kind):
        return np.concatenate([_hash_codes(chunk) for chunk in column.chunks])
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if str(kind) in _SHORT_TIMES else pa.int64())
        kind = column.type
    nulls = column.is_null().to_numpy()
    if pa.types.is_integer(kind) and kind != pa.uint64():
        found = column.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
        numbers = column.cast(pa.float64()).fill_null(0).to_numpy() + 0.0  # -0.0 is 0.0
        found = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    else:
        texts = column if pa.types.is_string(kind) else pa.chunked_array([_write_values(column)])
        coded = texts.dictionary_encode().combine_chunks()
        values = np.array([_hash_text(value) for value in coded.dictionary.to_pylist()] or [0], np.uint64)
        found = values[coded.indices.fill_null(0).to_numpy()]
    return np.where(nulls, _NULL, _mix(found))


def _hash_codes(chunk: pa.DictionaryArray) -> Hashes:
    """The hash of each value of a column that holds numbers of values."""
    import pyarrow as pa

    values = np.append(_hash_values(pa.chunked_array([chunk.dictionary])), _NULL)
    found: Hashes = values[chunk.indices.cast(pa.int64()).fill_null(len(values) - 1).to_numpy()]
    return found


def _write_values(column: pa.ChunkedArray) -> pa.Array:
    """The values as texts."""
    import pyarrow as pa

    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _hash_text(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "big")


def _mix(numbers: Hashes) -> Hashes:
    """A bijection of 64 bits in which every bit moves about half of the others."""
    numbers = (numbers ^ (numbers >> _SHIFTS[0])) * _FACTORS[0]
    numbers = (numbers ^ (numbers >> _SHIFTS[1])) * _FACTORS[1]
    return numbers ^ (numbers >> _SHIFTS[2])
