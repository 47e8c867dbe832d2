"""Arrays of Arrow are read as Arrow itself converts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tacit.engines.arrow_arrays import to_numpy

KINDS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.bool_(), pa.float64()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("start", "count"), [(0, 40), (3, 21), (9, 0), (40, 0)])
def test_a_slice_has_the_values_that_arrow_gives(kind, start, count):
    array = pa.array([i * 5 % 3 == 1 if kind == pa.bool_() else i * 5 % 100 for i in range(40)], kind)
    found, expected = to_numpy(array.slice(start, count)), array.slice(start, count).to_numpy(zero_copy_only=False)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_integers_are_not_copied_and_cannot_be_written():
    array = pa.array(range(10), pa.int64())
    found = to_numpy(array)
    assert found.ctypes.data == array.buffers()[1].address
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_an_array_of_nothing_and_one_with_null_are_converted_by_arrow():
    assert to_numpy(pa.array([], pa.int32())).tolist() == to_numpy(pa.array([])).tolist() == []
    assert np.isnan(to_numpy(pa.array([None, 2], pa.int64()))).tolist() == [True, False]
