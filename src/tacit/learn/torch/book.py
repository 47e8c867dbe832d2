"""The book of one forward and backward pass: which layer was called, on which parameters, and what it wrote.

A layer that is called opens a `LayerCall`, which hands it the slots for its parts of the per-example gradients. Without
`torch.compile` slots are made as they are asked for. A compiled function needs them before: a first pass without it
(`Book.layout`) records the calls, and the compiled passes replay them in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.norms import COLUMNS


@dataclass(frozen=True, eq=False)
class BookEntry:
    """One parameter of a call, and the slots that its gradient is made from.

    `kind` says how: "outer" is sum_t g_t a_t^T (transposed where `transposed`), "kernel" a convolution of the given
    `geometry`, "rows" adds g_t to the rows of the call's indices, "bias" is the gradient of the one token there is, and
    "gradient" is the gradient of each unit itself, where `channels_last` that of a convolution's kernel, so ordered.
    `rows` is the part of the parameter that is meant, or None for all.
    """

    parameter: Tensor
    kind: str
    slots: tuple[int, ...]
    rows: tuple[int, int] | None = None
    transposed: bool = False
    geometry: tuple[Any, ...] = ()
    rows_per_unit: int = 1
    channels_last: bool = False

    def units(self, rows: int) -> int:
        """The units of so many rows."""
        return rows // self.rows_per_unit

    @property
    def key(self) -> tuple[int, tuple[int, int] | None]:
        """What the entry is the gradient of."""
        return id(self.parameter), self.rows

    def overlaps(self, other: BookEntry) -> bool:
        """Whether both are gradients of some of the same numbers, so that their squared norms do not just add up."""
        if self.parameter is not other.parameter:
            return False
        if self.rows is None or other.rows is None:
            return True
        return max(self.rows[0], other.rows[0]) < min(self.rows[1], other.rows[1])


@dataclass(eq=False)
class LayerCall:
    """One call of a layer in a forward pass."""

    layer: str
    entries: tuple[BookEntry, ...]
    slots: tuple[Tensor, ...]
    signature: tuple[Any, ...]
    alone: bool = True
    indices: Tensor | None = None


@dataclass(eq=False)
class Book:
    """The calls of a pass over `rows` rows, of which each `rows_per_unit` that follow one another are one unit."""

    rows: int
    rows_per_unit: int
    device: torch.device
    active: bool = False
    replay: bool = False
    cursor: int = 0
    calls: list[LayerCall] = field(default_factory=list)
    probe: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.probe = torch.zeros(self.units, COLUMNS, device=self.device, requires_grad=True)

    @property
    def units(self) -> int:
        """The units of a pass."""
        return self.rows // self.rows_per_unit

    def start(self) -> None:
        """Begin a pass: what layers are called with from here on is written down."""
        self.active, self.cursor = True, 0
        if not self.replay:
            self.calls = []

    def stop(self) -> None:
        """End a pass."""
        self.active = False

    @property
    def is_recording(self) -> bool:
        """Whether a call now belongs to the book."""
        return self.active and torch.is_grad_enabled()

    def check_rows(self, layer: str, x: Tensor) -> None:
        """Refuse an input whose first dimension does not count the rows of the batch."""
        if x.shape[0] != self.rows:
            what = f"has an input of shape {tuple(x.shape)}, but the batch has {self.rows} rows"
            raise ParameterError(layer, what, fix="keep examples along the first dimension in every layer")

    def open(
        self,
        layer: str,
        entries: Sequence[BookEntry],
        shapes: Sequence[tuple[tuple[int, ...], torch.dtype]],
    ) -> LayerCall:
        """Return the call with its slots: zeros of these shapes, which take no memory."""
        signature = tuple(shapes)
        if self.replay:
            call = self.calls[self.cursor]
            self.cursor = self.cursor + 1
            if call.layer != layer or call.signature != signature:
                raise ParameterError(layer, "is called in another order or shape than in the first pass", fix=_ORDER)
            return call
        slots = tuple(
            torch.zeros((), dtype=dtype, device=self.device).expand(shape).requires_grad_() for shape, dtype in shapes
        )
        call = LayerCall(layer, tuple(entries), slots, signature)
        for other in self.calls:
            if any(mine.overlaps(theirs) for mine in call.entries for theirs in other.entries):
                other.alone = call.alone = False
        self.calls.append(call)
        return call

    def alone(self, call: LayerCall) -> Any:
        """Return what `functions` takes as `alone`: later calls may still share, unless all are known."""
        return call.alone if self.replay else call

    def slots(self) -> list[Tensor]:
        """The slots of all calls, in order."""
        return [slot for call in self.calls for slot in call.slots]


_ORDER = "give batches of one shape, or train without compile"


def booked_parameters(calls: list[LayerCall]) -> list[Tensor]:
    """Return the parameters of the book, each once."""
    return list({id(entry.parameter): entry.parameter for call in calls for entry in call.entries}.values())
