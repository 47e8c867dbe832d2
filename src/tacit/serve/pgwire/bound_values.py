"""The values of parameters: kept as the bytes that the client sent, and decoded where one is read.

**Rule.** What is kept of a value is what was sent. A list takes many times its bytes once it is decoded, so none is
kept decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from tacit.serve.pgwire.catalog_backend import BoundParameters
from tacit.serve.pgwire.types import decode


class DecodedValues(Sequence[Any]):
    """The values of parameters, each decoded anew whenever it is read.

    >>> values = DecodedValues(BoundParameters(types=(23, 1007), values=(b"7", b"{1,2}")))
    >>> len(values), values[0], values[1]
    (2, 7, [1, 2])
    """

    def __init__(self, bound: BoundParameters) -> None:
        self._bound = bound

    def __len__(self) -> int:
        return len(self._bound.values)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        data, formats = self._bound.values[index], self._bound.formats
        binary = bool(formats) and formats[0 if len(formats) == 1 else index]
        return None if data is None else decode(data, self._bound.types[index], binary=binary)

    def check(self) -> None:
        """Raise WireError where a value is not of its type."""
        for _ in self:
            pass
