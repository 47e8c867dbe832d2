"""How HTTP is read: by httptools where that is installed, which takes a third of h11's time, and with h11's care.

A head, which is all before the body, has at most 64 KiB. h11 sees to that itself; httptools would go on reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import Protocol

LARGEST_HEAD = 64 * 1024


def protocol() -> type[Protocol] | str:
    """What uvicorn is to read HTTP with."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"

    class Bounded(HttpToolsProtocol):
        """Ends a connection whose head is too long.

        **Theorem.** At most 64 KiB of a head are held, and what one read gives. Proof: each read that ends inside a
        head adds its length, and where the sum is too large, nothing more is read.
        """

        _inside = False
        _size = 0

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._inside:
                self._size += len(data)
                if self._size > LARGEST_HEAD and not self.transport.is_closing():
                    self.send_400_response("The head of the request is too long.")

        def on_message_begin(self) -> None:
            self._inside, self._size = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> Any:
            self._inside = False
            return super().on_headers_complete()

    return Bounded
