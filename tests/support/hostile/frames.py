"""Data frames."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tests.support.hostile.case import (
    BOOL,
    DATE,
    FLOAT,
    INT,
    TEXT,
    Case,
    Fact,
    Outcome,
    counted,
    frame,
    private,
    split,
    texts_of,
)


def frames() -> list[Case]:
    """Data frames: object columns of mixed types, categoricals, nullable numbers, chunks, slices, dictionaries."""
    three = [0, 1, 2]
    bad = texts_of([b"a", b"\xff", None])
    long = pa.table({"id": range(10), "x": range(10), "s": [str(n) for n in range(10)]})
    chunks = pa.table(
        {"id": pa.chunked_array([[0], [], [1, 2]], pa.int64()), "x": pa.chunked_array([[], [1, 7], [7]], pa.int64())}
    )
    index = pa.array([0, 1, None, 0], pa.int8())
    made: dict[str, tuple[Callable[[], Any], Mapping[str, Any], Outcome, Sequence[Fact]]] = {
        "objects-mixed-text": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series(["a", 1, None], dtype=object)}),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x = 'a'": 1, "x IS NULL": 2})],
        ),
        "objects-mixed-int": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([1, "a", 2.5], dtype=object)}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 1": 1, "x IS NULL": 2})],
        ),
        "objects-bytes": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([b"a", b"\xff", None], dtype=object)}),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "objects-huge-ints": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([1, 2**70, None], dtype=object)}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 1": 1, "x IS NULL": 2})],
        ),
        "objects-decimals": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([Decimal("1.5"), Decimal("NaN"), None], dtype=object)}),
            {"x": FLOAT},
            Outcome.EITHER,
            [split({"x = 1.5": 1, "x IS NULL": 2})],
        ),
        "objects-dates": (
            lambda: pd.DataFrame(
                {
                    "id": three,
                    "x": pd.Series([datetime.date(2025, 1, 1), datetime.date(9999, 12, 31), None], dtype=object),
                }
            ),
            {"x": DATE},
            Outcome.READ,
            [split({"x = DATE '2025-01-01'": 1, "x = DATE '9999-12-31'": 1, "x IS NULL": 1})],
        ),
        "objects-lists": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([[1], {"a": 1}, None], dtype=object)}),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "objects-surrogates": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series(["a", "\ud800", None], dtype=object)}),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x = 'a'": 1, "x IS NULL": 2})],
        ),
        "objects-themselves": (
            lambda: pd.DataFrame({"id": three, "x": pd.Series([object()] * 3, dtype=object)}),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "objects-undeclared": (
            lambda: pd.DataFrame({"id": three, "x": three, "o": pd.Series([object(), 1, "a"], dtype=object)}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 0": 1, "x = 1": 1, "x = 2": 1})],
        ),
        "categorical-text": (
            lambda: pd.DataFrame({"id": three, "x": pd.Categorical(["a", None, "b"], categories=["b", "a", "c"])}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})],
        ),
        "categorical-int": (
            lambda: pd.DataFrame({"id": three, "x": pd.Categorical([7, None, 8])}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 7": 1, "x = 8": 1, "x IS NULL": 1})],
        ),
        "nullable-int": (
            lambda: pd.DataFrame({"id": three, "x": pd.array([1, None, 2**63 - 1], dtype="Int64")}),
            {"x": INT},
            Outcome.READ,
            [split({"x = 1": 1, "x IS NULL": 1, "x = 9223372036854775807": 1})],
        ),
        "nullable-uint": (
            lambda: pd.DataFrame({"id": three, "x": pd.array([1, None, 2**64 - 1], dtype="UInt64")}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 1": 1, "x IS NULL": 2})],
        ),
        "nullable-bool": (
            lambda: pd.DataFrame({"id": three, "x": pd.array([True, None, False], dtype="boolean")}),
            {"x": BOOL},
            Outcome.READ,
            [split({"x": 1, "NOT x": 1, "x IS NULL": 1})],
        ),
        "nullable-float": (
            lambda: pd.DataFrame({"id": three, "x": pd.array([0.5, None, float("inf")], dtype="Float64")}),
            {"x": FLOAT},
            Outcome.READ,
            [split({"x = 0.5": 1, "x IS NULL": 1, "x > 1e100": 1})],
        ),
        "numpy-float16": (
            lambda: pd.DataFrame({"id": three, "x": np.array([0.5, np.nan, np.inf], dtype=np.float16)}),
            {"x": FLOAT},
            Outcome.EITHER,
            [split({"x = 0.5": 1, "x IS NULL": 1, "x > 60000": 1})],
        ),
        "numpy-complex": (
            lambda: pd.DataFrame({"id": three, "x": np.array([1j, 2, 3])}),
            {"x": FLOAT},
            Outcome.ERROR,
            (),
        ),
        "timestamps-as-date": (
            lambda: pd.DataFrame({"id": three, "x": pd.to_datetime(["2025-01-01", None, "2025-01-02"])}),
            {"x": DATE},
            Outcome.EITHER,
            [split({"x = DATE '2025-01-01'": 1, "x = DATE '2025-01-02'": 1, "x IS NULL": 1})],
        ),
        "periods": (
            lambda: pd.DataFrame({"id": three, "x": pd.period_range("2025-01", periods=3, freq="M")}),
            {"x": DATE},
            Outcome.ERROR,
            (),
        ),
        "sparse": (
            lambda: pd.DataFrame({"id": three, "x": pd.arrays.SparseArray([0, 0, 7])}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 0": 2, "x = 7": 1})],
        ),
        "unit-with-nan": (lambda: pd.DataFrame({"id": [1, None, 2], "x": three}), {"x": INT}, Outcome.ERROR, ()),
        "arrow-chunked": (lambda: chunks, {"x": INT}, Outcome.READ, [split({"x = 1": 1, "x = 7": 2})]),
        "arrow-sliced": (
            lambda: long.slice(3, 4),
            {"x": INT, "s": TEXT},
            Outcome.READ,
            [counted(4), split({"x = 3 AND s = '3'": 1, "x = 6 AND s = '6'": 1}, rest=2)],
        ),
        "arrow-dictionary": (
            lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", "b"])}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 2, "x = 'b'": 1, "x IS NULL": 1})],
        ),
        "arrow-dictionary-twice": (
            lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", "a"])}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 3, "x IS NULL": 1})],
        ),
        "arrow-dictionary-null": (
            lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", None])}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 2, "x IS NULL": 2})],
        ),
        "arrow-dictionary-beyond": (
            lambda: pa.table(
                {"id": range(3), "x": pa.DictionaryArray.from_arrays(pa.array([0, 9, 1]), ["a", "b"], safe=False)}
            ),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "arrow-dictionary-int": (
            lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, pa.array([7, 8]))}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 7": 2, "x = 8": 1, "x IS NULL": 1})],
        ),
        "arrow-dictionary-bad-text": (
            lambda: pa.table(
                {"id": range(4), "x": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), bad, safe=False)}
            ),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x = 'a'": 2, "x IS NULL": 2})],
        ),
        "arrow-dictionary-bad-text-unused": (
            lambda: pa.table({"id": range(2), "x": pa.DictionaryArray.from_arrays(pa.array([0, 0]), bad, safe=False)}),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x = 'a'": 2})],
        ),
        "arrow-bad-text": (
            lambda: pa.table({"id": range(3), "x": bad}),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x = 'a'": 1, "x IS NULL": 2})],
        ),
        "arrow-bad-text-undeclared": (
            lambda: pa.table({"id": range(3), "x": three, "y": bad}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 0": 1, "x = 1": 1, "x = 2": 1})],
        ),
        "arrow-bad-text-view": (
            lambda: pa.table(
                {"id": range(3), "x": bad.cast(pa.binary()).cast(pa.binary_view()).cast(pa.binary_view())}
            ),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "arrow-null-type": (
            lambda: pa.table({"id": range(3), "x": pa.nulls(3)}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x IS NULL": 3})],
        ),
        "arrow-null-type-text": (
            lambda: pa.table({"id": range(3), "x": pa.nulls(3)}),
            {"x": TEXT},
            Outcome.EITHER,
            [split({"x IS NULL": 3})],
        ),
        "arrow-null-unit": (
            lambda: pa.table({"id": pa.nulls(3), "x": three}),
            {"x": INT},
            Outcome.EITHER,
            [counted(0)],
        ),
        "arrow-offsets-beyond": (_beyond, {"x": TEXT}, Outcome.ERROR, ()),
        "polars-categorical": (
            lambda: pl.DataFrame({"id": three, "x": pl.Series(["a", None, "b"], dtype=pl.Categorical)}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})],
        ),
        "polars-enum": (
            lambda: pl.DataFrame({"id": three, "x": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"]))}),
            {"x": TEXT},
            Outcome.READ,
            [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})],
        ),
        "polars-object": (
            lambda: pl.DataFrame({"id": three, "x": pl.Series([object()] * 3, dtype=pl.Object)}),
            {"x": TEXT},
            Outcome.ERROR,
            (),
        ),
        "polars-int128": (
            lambda: pl.DataFrame({"id": three, "x": pl.Series([1, 2**100, None], dtype=pl.Int128)}),
            {"x": INT},
            Outcome.EITHER,
            [split({"x = 1": 1, "x IS NULL": 2})],
        ),
        "polars-lazy": (lambda: pl.LazyFrame({"id": three, "x": three}), {"x": INT}, Outcome.EITHER, [counted(3)]),
        "not-a-frame": (lambda: 7, {"x": INT}, Outcome.ERROR, ()),
        "none": (lambda: None, {"x": INT}, Outcome.ERROR, ()),
        "series": (lambda: pd.Series([1, 2], name="x"), {"x": INT}, Outcome.ERROR, ()),
        "array": (lambda: np.zeros((2, 2)), {"x": INT}, Outcome.ERROR, ()),
    }
    return [
        Case(
            f"frame-{name}",
            partial(frame, make),
            {"t": private(columns)},
            outcome,
            facts,
            "t",
            apart=name.endswith("-beyond"),
        )
        for name, (make, columns, outcome, facts) in made.items()
    ]


def _beyond() -> pa.Table:
    """Texts whose offsets go backward: reading them as they are would leave the buffer."""
    offsets, data = pa.py_buffer(np.array([0, 1, 0, 2], dtype=np.int32)), pa.py_buffer(b"ab")
    return pa.table({"id": range(3), "x": pa.Array.from_buffers(pa.string(), 3, [None, offsets, data])})
