"""Tables as attacks take them: data frames, Arrow tables, lists of dicts; and their keys as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tacit.errors import ParameterError

Codes = npt.NDArray[np.int64]


class ArrowExportable(Protocol):
    """A data frame that Arrow reads: pandas', polars' and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream."""


Tabular: TypeAlias = pa.Table | ArrowExportable | Sequence[Mapping[str, object]] | Mapping[str, Sequence[object]]

NONE = -1
"""The code of a NULL or a NaN, and of a key that has one."""

_WIDEST = 2**62


def to_table(name: str, given: Any) -> pa.Table:
    """Any kind of table as Arrow's; an empty one says nothing and is refused."""
    try:
        table = given if isinstance(given, pa.Table) else _read(given)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as problem:
        raise ParameterError(
            name, f"is no table: {problem!s:.120}", fix="give an Arrow table, a data frame or a list of dicts"
        ) from problem
    if not len(table):
        raise ParameterError(name, "has no rows", fix="give at least one row")
    return table


def _read(given: Any) -> pa.Table:
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        columns = dict.fromkeys(key for row in given for key in row)  # a later row may have more columns
        return pa.table({column: pa.array([row.get(column) for row in given]) for column in columns})
    if type(given).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(given, preserve_index=False)
    return pa.table(given)


def list_columns(table: pa.Table) -> str:
    """What to name in place of a column that is not there."""
    return f"name one of {', '.join(table.column_names)[:200]}"


def encode_keys(
    tables: Sequence[pa.Table], names: Sequence[str], *, null_is_value: bool = False, parameter: str = "on"
) -> Codes:
    """A number for each key of all tables, one below the other: equal keys have equal numbers, from 0 on.

    A key with a NULL is `NONE`, unless a NULL is a value like any other. An error names `parameter`.
    """
    codes, kinds = np.zeros(sum(map(len, tables)), dtype=np.int64), 1
    gaps = np.zeros(len(codes), dtype=np.bool_)
    for name in names:
        column, several = encode_column(name, [table[name] for table in tables], parameter)
        if null_is_value:
            column, several = column + 1, several + 1
        gaps |= column == NONE
        if kinds * several > _WIDEST:
            codes, kinds = renumber(codes)
        codes, kinds = codes * several + column, kinds * several
    codes, _ = renumber(codes)
    codes[gaps] = NONE
    return codes


def renumber(codes: Codes) -> tuple[Codes, int]:
    """The same classes, numbered without gaps."""
    found, numbers = np.unique(codes, return_inverse=True)
    return numbers.astype(np.int64), len(found)


def encode_column(name: str, columns: Sequence[pa.ChunkedArray], parameter: str = "on") -> tuple[Codes, int]:
    """A number for each value of one column of all tables, `NONE` for NULL and NaN, and how many numbers there are."""
    parts = [_plain(column) for column in columns]
    fields = [pa.schema([pa.field("x", part.type)]) for part in parts]
    try:
        kind = pa.unify_schemas(fields, promote_options="permissive").field("x").type
        whole = pa.chunked_array([chunk for part in parts for chunk in part.cast(kind).chunks], type=kind)
        found = whole.combine_chunks().dictionary_encode()
    except pa.ArrowException as problem:
        kinds = ", ".join(dict.fromkeys(f"{column.type}" for column in columns))
        if len(columns) == 1:
            what, fix = f"{name!r} has values that cannot be compared: {kinds}", "give numbers, text, dates or times"
        else:
            what = f"{name!r} does not have one type in all tables: {kinds}"
            fix = "give all tables the same type"
        raise ParameterError(parameter, what, fix=fix) from problem
    numbers = found.indices if isinstance(found, pa.DictionaryArray) else found.combine_chunks().indices
    codes = pc.fill_null(numbers, NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_floating(kind):
        codes[np.isnan(whole.to_numpy())] = NONE
    return codes, max(int(codes.max(initial=0)) + 1, 1)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of categories as one of their values, and text of every layout as one kind."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.large_string()) if text else column
