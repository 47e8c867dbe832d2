"""Arrays of Arrow as numpy's, without what Arrow loads for its own conversion: pandas, wherever that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """The values of an array without NULL: those of integers are not copied, and cannot be written."""
    values = None if array.null_count or pa.types.is_null(array.type) else array.buffers()[1]
    if pa.types.is_boolean(array.type) and values is not None:
        return _unpack_bits(values, array.offset, len(array))
    if not pa.types.is_integer(array.type) or values is None:
        other: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return other
    kind = np.dtype(array.type.to_pandas_dtype())
    found = np.frombuffer(values, kind, len(array), array.offset * kind.itemsize)
    found.flags.writeable = False
    return found


def _unpack_bits(values: pa.Buffer, offset: int, count: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(values, np.uint8), count=offset + count, bitorder="little")
    return bits[offset:].view(np.bool_)
