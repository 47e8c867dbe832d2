"""All combinations of the distinct values of some coded columns, and what a question computes for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tacit.engines.code_loops import write_combined
from tacit.engines.coded_columns import CodedColumn
from tacit.engines.copy_tables import is_large
from tacit.engines.plain_scalars import compute_plain
from tacit.engines.scalars import write_guarded
from tacit.query.conditions import named_columns
from tacit.query.functions import WRITES_TEXT
from tacit.query.nodes import Call, Scalar, walk

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

Names = frozenset[str]

_NUMBER = '"#number"'
_SMALL = 1 << 12  # combinations whose table stays in the nearest memory
_MOST = 1 << 20
_MOST_TEXTS = 1 << 15
_ROWS_EACH = 16  # rows for each combination, where there are more than a few


class Combinations:
    """The combinations of the values of some columns, at least one, numbered by their codes."""

    def __init__(self, columns: Mapping[str, CodedColumn]) -> None:
        self._columns = dict(columns)
        self._sizes = [len(column.values) for column in columns.values()]
        self.size = prod(self._sizes)

    def evaluate(self, cursor: DuckDBPyConnection, scalars: Sequence[Scalar]) -> list[pa.Array]:
        """The value of each scalar for each combination."""
        listed = {name: self._list(name, column.values) for name, column in self._columns.items()}
        listed["#number"] = pa.array(np.arange(self.size))
        results = ", ".join(f"{write_guarded(scalar)} AS x{i}" for i, scalar in enumerate(scalars))
        cursor.register("combinations", pa.table(listed))
        try:
            statement = f"SELECT {_NUMBER}, {results} FROM combinations ORDER BY {_NUMBER}"
            read = cursor.execute(statement).to_arrow_table()
        finally:
            cursor.unregister("combinations")
        if read is None or read.num_rows != self.size:
            raise RuntimeError("there are other combinations than were asked for")
        return [column.chunk(0) for column in read.combine_chunks().columns[1:]]

    def compute_plain(self, scalar: Scalar) -> pa.Array | None:
        """The value of a scalar for each combination; None where it is left to the database."""
        names = named_columns(scalar)
        if len(names) != 1:
            return None
        (name,) = names
        found = compute_plain(scalar, self._columns[name].values)
        return None if found is None else self._list(name, found)

    def _list(self, name: str, values: pa.Array) -> pa.Array:
        """For each combination what is computed of a column's value in it."""
        if len(self._columns) == 1:
            return values
        place = list(self._columns).index(name)
        stride = prod(self._sizes[place + 1 :])
        return values.take(pa.array(np.arange(self.size) // stride % self._sizes[place]))

    def encode(self, start: int, end: int, into: NDArray[np.uint32]) -> NDArray[Any]:
        """The number of each row's combination, for the rows from `start` to before `end`."""
        first, *others = self._columns.values()
        codes = first.codes[start:end]
        for column in others:
            write_combined(codes, column.codes[start:end], len(column.values), into)
            codes = into[: end - start]
        return codes


def join_small_sets(sets: Iterable[Names], columns: Mapping[str, CodedColumn]) -> list[Names]:
    """Sets of columns such that each given one is part of one of them: joined where few combinations remain."""
    joined: list[Names] = []
    for names in sorted(filter(None, sets), key=lambda names: (-count_combinations(names, columns), sorted(names))):
        at = next((i for i, known in enumerate(joined) if names <= known), None)
        if at is None:
            at = next((i for i, s in enumerate(joined) if count_combinations(s | names, columns) <= _SMALL), None)
        if at is None:
            joined.append(names)
        else:
            joined[at] |= names
    return joined


def join_subsets(sets: Iterable[Names]) -> list[Names]:
    """The same where a set is left out only if it is part of another."""
    joined: list[Names] = []
    for names in sorted(filter(None, sets), key=lambda names: (-len(names), sorted(names))):
        if not any(names <= known for known in joined):
            joined.append(names)
    return joined


def limit_combinations(rows: int, scalars: Iterable[Scalar]) -> int:
    """Of how many combinations scalars are computed where so many rows look them up.

    Texts that are put together take up to some thousand bytes each, so there are fewer of them.
    """
    functions = {part.function for scalar in scalars for part in walk(scalar) if isinstance(part, Call)}
    most = _MOST if functions.isdisjoint(WRITES_TEXT) else _MOST_TEXTS
    return min(most, max(_SMALL, rows // _ROWS_EACH if is_large(rows) else rows))


def limit_counted(rows: int) -> int:
    """How many combinations are counted where there are so many rows."""
    return max(_SMALL, rows // _ROWS_EACH)


def count_combinations(names: Names, columns: Mapping[str, CodedColumn]) -> int:
    """How many combinations the values of these columns have."""
    return prod(len(columns[name].values) for name in names)
