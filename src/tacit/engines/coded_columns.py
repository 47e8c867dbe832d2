"""Columns of a copy as small numbers in memory, each with the table of its distinct values.

**Theorem.** A coded column holds exactly the values of the column in the copy's order: `values[codes[row]]` is the
value of the row, floats bit by bit, so that -0.0 and 0.0 are two values. Proof: rows are numbered as they lie and the
numbers are checked as they come; a batch's own codes index its own distinct values, which are looked up among all.

Codes stand for values and are nothing else. They follow from which values occur in the whole table, so they enter no
hash, no order and no choice of rows: a code is used only to look up what was computed for its value.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.engines.bound_contributions import are_consecutive
from tacit.engines.coded_rows import JoinedColumn
from tacit.engines.copy_tables import OpenTables, find_unit_type, is_large, locate_table, locate_units
from tacit.engines.deadline import seconds_left
from tacit.engines.layout import text_code_column
from tacit.engines.match_rows import MatchedRows, match_rows
from tacit.engines.scalars import quote_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

_MOST_BYTES = 1 << 29  # of all coded columns of an engine; those not used for longest are forgotten
_MOST_EVALUATED = 1 << 26  # bytes of what scalars gave, and of the values that they were computed from
_MOST_KNOWN = 64  # questions for which that is kept; their texts, which are keys, are of limited length
_MOST_MET = 256  # questions whose keys are remembered
_LOOK = 0.05  # seconds after which a question that waits for another one's reading looks at its time limit
_MOST_VALUES = 1 << 20
_MOST_KEPT = 1_000  # columns and matches, those too that were found not to be coded
_MOST_VALUE_BYTES = 1 << 25  # of the distinct values of a column
_ROWS_PER_VALUE = 8
_BATCH = 1 << 20
_SMALL_BATCH = 1 << 13  # of a small table, in which every value may be another one, and long


class CodedColumn(NamedTuple):
    """For each row the number of its value, and the distinct values; NULL is one of them where it occurs."""

    codes: NDArray[Any]
    values: pa.Array

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.codes.nbytes + self.values.nbytes)


class UnitEnds(NamedTuple):
    """The units of a table in order, the number of the row after the last one of each, and how many have how many rows.

    `sizes` are numbers of rows, and `units` how many units have so many.
    """

    who: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.int64]
    units: NDArray[np.int64]

    @classmethod
    def of(cls, who: NDArray[np.int64], ends: NDArray[np.int64]) -> UnitEnds:
        """These units."""
        return cls(who, ends, *np.unique(np.diff(ends, prepend=0), return_counts=True))

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(int(array.nbytes) for array in self)


_Kept: TypeAlias = "CodedColumn | MatchedRows | UnitEnds | None"


class EvaluatedScalars:
    """What scalars gave for all combinations of some columns' values, for the questions that ask for them next.

    It is exact and never released. It is used only with the very values it was computed from: those of a column that
    was forgotten and read again are others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, tuple[list[pa.Array], list[pa.Array]]] = OrderedDict()
        self._met: OrderedDict[Hashable, None] = OrderedDict()

    def is_met(self, key: Hashable) -> bool:
        """Whether a key was asked about before: what is computed for it now may be asked for again."""
        with self._lock:
            found = key in self._met
            self._met[key] = None
            self._met.move_to_end(key)
            if len(self._met) > _MOST_MET:
                self._met.popitem(last=False)
            return found

    def find(self, key: Hashable, values: list[pa.Array], compute: Callable[[], list[pa.Array]]) -> list[pa.Array]:
        """What is known under a key of columns with these values, or else is computed."""
        with self._lock:
            known = self._known.get(key)
        if known is not None and all(one is other for one, other in zip(known[0], values, strict=True)):
            found = known[1]
        else:
            found = compute()
        with self._lock:
            self._known[key] = values, found
            self._known.move_to_end(key)
            while len(self._known) > _MOST_KNOWN or self._count_bytes() > _MOST_EVALUATED:
                self._known.popitem(last=False)
        return found

    def _count_bytes(self) -> int:
        """The memory that is held: of what scalars gave, and of the values it was computed from, each once."""
        held = {id(array): array.nbytes for both in self._known.values() for arrays in both for array in arrays}
        return sum(held.values())


@dataclass
class CodedTables:
    """The coded columns of the tables of a copy, made when they are first asked for.

    **Rule.** A column is coded where its distinct values take at most 32 MB, are at most a million, and in a large
    table one for every eight rows. What is coded, and what is in memory already, changes how long a question takes,
    and nothing else.
    """

    tables: OpenTables

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # of the tables below; not held while rows are read
        self._readings: dict[Hashable, _Reading] = {}
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._units: dict[str, UnitEnds] = {}
        self._rows: dict[str, int] = {}
        self._unit_types: dict[str, str] = {}
        self.evaluated = EvaluatedScalars()

    def count_rows(self, cursor: DuckDBPyConnection, table: str) -> int:
        """How many rows of a table lie in the copy."""
        if table in self.tables.layouts:
            ends = self.find_units(cursor, table).ends
            return int(ends[-1]) if len(ends) else 0
        if table not in self._rows:
            ((rows,),) = cursor.execute(f"SELECT COUNT(*) FROM {locate_table(table)}").fetchall()
            self._rows[table] = int(rows)
        return self._rows[table]

    def find_column(self, cursor: DuckDBPyConnection, table: str, column: str) -> CodedColumn | None:
        """A column of a table; None where it has too many values, or is of a type that is not coded."""
        rows = self.count_rows(cursor, table)
        found = self.keep((table, column), lambda: self._read(cursor, table, column, limit_values(rows)))
        assert found is None or isinstance(found, CodedColumn)
        return found

    def find_joined_column(self, cursor: DuckDBPyConnection, table: str, joined: JoinedColumn) -> CodedColumn | None:
        """A column of the rows that those of a table find; None also where a row finds several."""
        found = self.keep((table, joined), lambda: self._join(cursor, table, joined))
        assert found is None or isinstance(found, CodedColumn)
        return found

    def _join(self, cursor: DuckDBPyConnection, table: str, joined: JoinedColumn) -> CodedColumn | None:
        match, column = joined
        rows, others = self.count_rows(cursor, table), self.count_rows(cursor, match.table)
        matched = self.keep((table, match), lambda: match_rows(cursor, self.tables, table, match, rows, others))
        if not isinstance(matched, MatchedRows):
            return None
        if column is None:
            return CodedColumn((matched.rows >= 0).view(np.uint8), pa.array([False, True]))
        read = self._read(cursor, match.table, column, limit_values(rows))
        if read is None:
            return None
        values = pa.concat_arrays([read.values, pa.nulls(1, read.values.type)])
        # A row that finds none has the number -1, which is the last place.
        places = np.append(read.codes, np.int64(len(read.values))).astype(narrowest_type(len(values)))
        return CodedColumn(places[matched.rows], values)

    def find_units(self, cursor: DuckDBPyConnection, table: str) -> UnitEnds:
        """The units of a table that is sorted by them."""
        with self._read_once(table):
            if table not in self._units:
                read = cursor.sql(f"SELECT unit, last + 1 FROM {locate_units(table)} ORDER BY unit").to_arrow_table()
                who, ends = (column.to_numpy() for column in read.columns)
                self._units[table] = UnitEnds.of(who, ends)
            return self._units[table]

    def find_unit_type(self, cursor: DuckDBPyConnection, table: str) -> str:
        """The type of a table's units, which says what integers stand for them."""
        if table not in self._unit_types:
            self._unit_types[table] = find_unit_type(cursor, self.tables.layouts[table], self.tables.sources)
        return self._unit_types[table]

    def keep(self, key: Hashable, read: Callable[[], _Kept]) -> _Kept:
        """What is kept under a key, or else is read."""
        with self._read_once(key):
            with self._lock:
                is_known, found = key in self._kept, self._kept.get(key)
            if not is_known:
                found = read()
            with self._lock:
                self._kept[key] = found
                self._kept.move_to_end(key)
                while len(self._kept) > 1 and (self._count_bytes() > _MOST_BYTES or len(self._kept) > _MOST_KEPT):
                    self._kept.popitem(last=False)
            return found

    def _count_bytes(self) -> int:
        return sum(each.nbytes for each in self._kept.values() if each is not None)

    @contextmanager
    def _read_once(self, key: Hashable) -> Iterator[None]:
        """Wait until no other question reads the same, and no longer than this one may: TimeLimit is raised then."""
        with self._lock:
            reading = self._readings.setdefault(key, _Reading())
            reading.questions += 1
        try:
            while not reading.lock.acquire(timeout=_LOOK):
                seconds_left()
            try:
                yield
            finally:
                reading.lock.release()
        finally:
            with self._lock:
                reading.questions -= 1
                if not reading.questions:
                    del self._readings[key]

    def _read(self, cursor: DuckDBPyConnection, table: str, column: str, most: int) -> CodedColumn | None:
        texts = self.tables.texts.get(table, {}).get(column)
        known = self.tables.columns.get(table)
        if texts is not None:
            sql = f"enum_code({quote_name(text_code_column(column))})"
        elif known is None:
            sql = quote_name(column)
        elif column in known:
            sql = known[column]
        else:
            return None
        rows = self.count_rows(cursor, table)
        with closing(cursor.cursor()) as beside:
            read = beside.sql(f"SELECT rowid, {sql} FROM {locate_table(table)}")
            batches = read.to_arrow_reader(_BATCH if is_large(rows) else _SMALL_BATCH)
            found = encode_column(batches, rows, most)
        if found is None or texts is None:
            return found
        return CodedColumn(found.codes, pa.array(texts, pa.large_string()).take(found.values))


@dataclass
class _Reading:
    """What is being read, and by how many questions it is waited for."""

    questions: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def limit_values(rows: int) -> int:
    """How many distinct values a column may have where so many rows look them up."""
    return min(_MOST_VALUES, rows // _ROWS_PER_VALUE if is_large(rows) else rows)


def encode_column(batches: pa.RecordBatchReader, rows: int, most: int) -> CodedColumn | None:
    """Number the values of a column, of which there are so many rows and may be so many values.

    Batches have the numbers of rows and the values. None where rows do not come in the order of their numbers, where
    there are too many values, or where the column is of a type that is not coded.

    Raises TimeLimit where the time of the question that reads it is over.
    """
    kind = batches.schema.field(1).type
    if not is_coded_type(kind):
        return None
    own: list[tuple[NDArray[Any], pa.Array]] = []
    row = held = 0
    for batch in batches:
        seconds_left()
        numbers = batch.column(0)
        if numbers.type != pa.int64() or numbers.null_count or not are_consecutive(numbers.to_numpy(), row):
            return None  # a column has that name
        row += batch.num_rows
        met = view_bits(batch.column(1)).dictionary_encode(null_encoding="encode")
        held += met.dictionary.nbytes
        if len(met.dictionary) > most or (held > _MOST_VALUE_BYTES and not is_large(rows)):
            return None
        own.append((met.indices.to_numpy().astype(narrowest_type(len(met.dictionary))), met.dictionary))
    if row != rows or not own:
        return None
    values = pa.chunked_array([dictionary for _, dictionary in own]).unique()
    if len(values) > most or values.nbytes > _MOST_VALUE_BYTES:
        return None
    codes = np.empty(rows, narrowest_type(len(values)))
    row = 0
    for indices, dictionary in own:
        place = pc.index_in(dictionary, values).to_numpy().astype(codes.dtype)
        np.take(place, indices, out=codes[row : row + len(indices)])
        row += len(indices)
    return CodedColumn(codes, values.view(pa.float64()) if kind == pa.float64() else values)


_KINDS = {pa.float64(), pa.date32(), pa.string(), pa.large_string()}


def is_coded_type(kind: pa.DataType) -> bool:
    """Whether columns of a type are coded."""
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or kind in _KINDS)


def view_bits(values: pa.Array) -> pa.Array:
    """Floats as the integers of the same bits, of which -0.0 and 0.0 have different ones; all else as it is."""
    return values.view(pa.int64()) if values.type == pa.float64() else values


def narrowest_type(values: int) -> Any:
    """The narrowest type that numbers so many values from 0."""
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if values <= int(np.iinfo(kind).max) + 1)
