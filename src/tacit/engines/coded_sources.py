"""Where the coded rows of a question are: in one table with what its rows find, or in several put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tacit.engines.coded_columns import (
    CodedColumn,
    CodedTables,
    UnitEnds,
    is_coded_type,
    limit_values,
    narrowest_type,
    view_bits,
)
from tacit.engines.coded_rows import CodedRows, JoinedColumn, StackedTables
from tacit.engines.combinations import Combinations, count_combinations, limit_combinations
from tacit.engines.deadline import seconds_left
from tacit.engines.layout import UNIT_COLUMN
from tacit.engines.scalars import write_guarded
from tacit.query.conditions import named_columns
from tacit.query.nodes import Scalar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray


_MOST_VALUES = 1 << 26  # bytes of what the parts of a union have in a column
_MOST_STACKED = 1 << 26  # rows of a union whose columns are put together: a question may name a table many times


class CodedSource(Protocol):
    """Rows whose columns are coded. Those of a unit lie together, in an order that follows from them alone."""

    def count_rows(self) -> int:
        """How many rows there are."""
        ...

    def find_units(self) -> UnitEnds:
        """The units of the rows."""
        ...

    def find_column(self, name: str) -> CodedColumn | None:
        """A column by the name that scalars have for it; None where it is not coded."""
        ...

    def has_one_each(self) -> bool:
        """Whether each row finds at most one of every joined table, also where nothing of what it finds is used."""
        ...


def open_source(
    cursor: DuckDBPyConnection, coded: CodedTables, read: CodedRows, *, has_unit: bool
) -> CodedSource | None:
    """The rows that a question reads; where they have no unit, each is one. None for tables with units of different
    types: their integers are not the same, and SQL compares the units themselves."""
    if isinstance(read.table, str):
        return _CodedTable(cursor, coded, read.table, read.joined)
    if has_unit and len({coded.find_unit_type(cursor, part.table) for part in read.table.parts}) > 1:
        return None
    return _CodedStack(cursor, coded, read.table, has_unit=has_unit)


class _CodedTable:
    """The rows of one table of a copy, and what they find in others."""

    def __init__(
        self, cursor: DuckDBPyConnection, coded: CodedTables, table: str, joined: Mapping[str, JoinedColumn]
    ) -> None:
        self._cursor, self._coded, self.table, self.joined = cursor, coded, table, joined

    def count_rows(self) -> int:
        """How many rows there are."""
        return self._coded.count_rows(self._cursor, self.table)

    def find_units(self) -> UnitEnds:
        """The units of the rows."""
        return self._coded.find_units(self._cursor, self.table)

    def find_column(self, name: str) -> CodedColumn | None:
        """A column of the table, or of what its rows find."""
        joined = self.joined.get(name)
        if joined is None:
            return self._coded.find_column(self._cursor, self.table, name)
        return self._coded.find_joined_column(self._cursor, self.table, joined)

    def has_one_each(self) -> bool:
        """Whether each row finds at most one of every joined table."""
        matches = [name for name, joined in self.joined.items() if joined.column is None]
        return all(self.find_column(name) is not None for name in matches)

    def compute(self, scalar: Scalar, most: int) -> _ComputedColumn | None:
        """What a scalar is for each row; None where it has more combinations, or a column is not coded."""
        columns: dict[str, CodedColumn] = {}
        for name in sorted(named_columns(scalar)):
            found = None if name == UNIT_COLUMN else self.find_column(name)
            if found is None:
                return None
            columns[name] = found
        if not columns:
            read = self._cursor.sql(f"SELECT {write_guarded(scalar)}").to_arrow_table()
            return _ComputedColumn(read.column(0).combine_chunks(), None)
        if count_combinations(frozenset(columns), columns) > most:
            return None
        combinations, rows = Combinations(columns), self.count_rows()
        (values,) = combinations.evaluate(self._cursor, [scalar])
        return _ComputedColumn(values, combinations.encode(0, rows, np.empty(rows, np.uint32)))


class _ComputedColumn(NamedTuple):
    """Values, not all different, and for each row the place of its own; None where one value is that of all rows."""

    values: pa.Array
    places: NDArray[Any] | None


class _CodedStack:
    """The rows of several tables: those of a unit together, part after part, in each part as in the copy.

    **Theorem.** The order of a unit's rows follows from these rows alone, and is that of `layout.order_rows`. Proof:
    the parts come in the order of the question, and within a part rows lie as in the copy. Units are of one type in all
    of the tables, so each is the same integer in them (`copy_tables.unit_to_integer`), and merging the units by it puts
    the rows of each together.
    """

    def __init__(self, cursor: DuckDBPyConnection, coded: CodedTables, stack: StackedTables, *, has_unit: bool) -> None:
        self._coded, self._has_unit = coded, has_unit
        self._parts = [_CodedTable(cursor, coded, part.table, dict(part.joined)) for part in stack.parts]
        self._columns = [dict(part.columns) for part in stack.parts]
        self._tables = tuple(part.table for part in stack.parts)

    def count_rows(self) -> int:
        """How many rows all parts have."""
        return sum(part.count_rows() for part in self._parts)

    def has_one_each(self) -> bool:
        """Whether it is so in every part."""
        return all(part.has_one_each() for part in self._parts)

    def find_units(self) -> UnitEnds:
        """The units of all parts."""
        found = self._coded.keep(("units", self._tables), self._merge_units)
        assert isinstance(found, UnitEnds)
        return found

    def _merge_units(self) -> UnitEnds:
        parts = {part.table: part.find_units() for part in self._parts}
        who = np.unique(np.concatenate([units.who for units in parts.values()]))
        sizes = np.zeros(len(who), np.int64)
        for table, units in parts.items():
            times = self._tables.count(table)
            sizes[np.searchsorted(who, units.who)] += times * np.diff(units.ends, prepend=0)
        return UnitEnds.of(who, np.cumsum(sizes))

    def find_column(self, name: str) -> CodedColumn | None:
        """A column of the union; None also where that has too many rows."""
        if self.count_rows() > _MOST_STACKED:
            return None
        scalars = [columns[name] for columns in self._columns]
        joined = [
            tuple((name, part.joined.get(name)) for name in sorted(named_columns(scalar)))
            for part, scalar in zip(self._parts, scalars, strict=True)
        ]
        key = ("stacked", self._has_unit, self._tables, tuple(scalars), tuple(joined))
        found = self._coded.keep(key, lambda: self._put_together(scalars))
        assert found is None or isinstance(found, CodedColumn)
        return found

    def _put_together(self, scalars: Sequence[Scalar]) -> CodedColumn | None:
        """The values of each part in one column; None where they are of different types, or too many."""
        rows, size = self.count_rows(), 0
        found: list[_ComputedColumn] = []
        for table, scalar in zip(self._parts, scalars, strict=True):
            computed = table.compute(scalar, limit_combinations(rows, [scalar]))
            if computed is None or (size := size + computed.values.nbytes) > _MOST_VALUES:
                return None
            found.append(computed)
        values = _to_one_type([part.values for part in found])
        if values is None:
            return None
        met = pa.concat_arrays([view_bits(each) for each in values]).dictionary_encode(null_encoding="encode")
        if len(met.dictionary) > limit_values(rows):
            return None
        kind, first = narrowest_type(len(met.dictionary)), 0
        codes = np.empty(rows, kind)
        for part, places, each in zip(found, self._place_rows(), values, strict=True):
            seconds_left()
            numbers = met.indices[first : first + len(each)].to_numpy().astype(kind)
            codes[places] = numbers[0] if part.places is None else numbers[part.places]
            first += len(each)
        is_float = values[0].type == pa.float64()
        return CodedColumn(codes, met.dictionary.view(pa.float64()) if is_float else met.dictionary)

    def _place_rows(self) -> Iterator[Any]:
        """For each part, where its rows are among all."""
        if not self._has_unit:
            ends = np.cumsum([part.count_rows() for part in self._parts])
            yield from (slice(end - part.count_rows(), end) for part, end in zip(self._parts, ends, strict=True))
            return
        who, ends, *_ = self.find_units()
        next_row = np.concatenate([[0], ends[:-1]])
        for part in self._parts:
            units = part.find_units()
            at, sizes = np.searchsorted(who, units.who), np.diff(units.ends, prepend=0)
            yield np.arange(int(sizes.sum())) + np.repeat(next_row[at] - (units.ends - sizes), sizes)
            next_row[at] += sizes


def _to_one_type(parts: Sequence[pa.Array]) -> list[pa.Array] | None:
    """Values of one type, integers of different widths as the widest; None where they are of several."""
    widest = [_widen(part) for part in parts]
    kinds = {part.type for part in widest if part.null_count < len(part)} or {widest[0].type}
    if len(kinds) > 1 or not is_coded_type(kind := kinds.pop()):
        return None
    return [part if part.type == kind else pa.nulls(len(part), kind) for part in widest]


def _widen(values: pa.Array) -> pa.Array:
    if pa.types.is_signed_integer(values.type):
        return values.cast(pa.int64())
    return values.cast(pa.large_string()) if values.type == pa.string() else values
