"""A layer that adds a parameter to its input, and its forward that writes the book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tacit.learn.torch import functions
from tacit.learn.torch.book import Book, BookEntry
from tacit.learn.torch.layer_parameters import Forward


class Offset(nn.Module):
    """Adds a learned tensor to its input, such as the embedding of positions: x + weight.

    Parameters
    ----------
    *shape : int
        The shape of the tensor, without the dimension of the examples; its dimensions are the last ones of the input.

    Examples
    --------
    >>> import torch
    >>> Offset(4, 8)(torch.zeros(2, 4, 8)).shape
    torch.Size([2, 4, 8])
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + weight.

        Parameters
        ----------
        x : Tensor
            The input, whose last dimensions are those of the weight.

        Returns
        -------
        Tensor
            The sum, of the shape of the input.
        """
        return x + self.weight


def build_offset(layer: str, module: Offset, book: Callable[[], Book]) -> Forward:
    """The forward of `Offset`."""
    own = type(module).forward

    def forward(module: Any, x: Tensor) -> Any:
        page = book()
        return call_offset(page, layer, x, module.weight, None) if page.is_recording else own(module, x)

    return forward


def call_offset(book: Book, layer: str, x: Tensor, parameter: Tensor, rows: tuple[int, int] | None) -> Tensor:
    """x + parameter, or + some of its rows, booked."""
    book.check_rows(layer, x)
    value = parameter.detach() if rows is None else parameter.detach()[rows[0] : rows[1]]
    call = book.open(
        layer, [BookEntry(parameter, "gradient", (0,), rows)], [((book.units, *value.shape), torch.float32)]
    )
    found: Tensor = functions.OffsetFunction.apply(x, value, book.probe, book.units, book.alone(call), *call.slots)
    return found
