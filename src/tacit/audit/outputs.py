"""The outputs of a mechanism, collected, checked, and laid out in columns of numbers and of categories."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Reals
from tacit.errors import ParameterError

Codes = npt.NDArray[np.int64]
Progress = Callable[[float], None]

_AT_ONCE = 65536  # outputs asked for in one call, where a call can give many
_BETWEEN = 1024  # calls between two words of progress, where each gives one
_SHAPES = "return a number, a text, or a tuple of these that always has the same length"


@dataclass(frozen=True)
class Outputs:
    """Outputs of one side, a row each. Category codes mean the same on both sides: places in `labels`."""

    numbers: Reals
    codes: Codes
    labels: tuple[list[Any], ...]
    places: tuple[int, ...]  # of each column in the output, the numbers first

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> Outputs:
        """Some of the rows."""
        return Outputs(self.numbers[start:stop], self.codes[start:stop], self.labels, self.places)

    def keep(self, columns: Sequence[int]) -> Outputs:
        """Some of the columns of numbers, and all of the categories."""
        places = [*(self.places[column] for column in columns), *self.places[self.numbers.shape[1] :]]
        return Outputs(self.numbers[:, columns], self.codes, self.labels, tuple(places))

    def keys(self) -> npt.NDArray[np.uint64]:
        """A number for each row that is the same for the same output, bit by bit.

        Two outputs may share one by chance; that only makes an event of their union.
        """
        bits = [self.numbers[:, column].copy().view(np.uint64) for column in range(self.numbers.shape[1])]
        bits += [self.codes[:, column].astype(np.uint64) for column in range(self.codes.shape[1])]
        return mixed(bits)

    def words(self, row: int) -> str:
        """One output as a person would write it."""
        shown: dict[int, str] = {}
        for column, place in enumerate(self.places):
            numeric = self.numbers.shape[1]
            if column < numeric:
                shown[place] = f"{self.numbers[row, column]:.17g}"
            else:
                label = self.labels[column - numeric][self.codes[row, column - numeric]]
                shown[place] = f"{str(label) if isinstance(label, str) else label!r:.40}"
        text = ", ".join(shown[place] for place in sorted(shown))
        return text if len(shown) == 1 else f"({text})"


def mixed(parts: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    """One hash of several columns of 64 bits."""
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        total = (total ^ part) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total


def collect(
    mechanism: Callable[..., Any],
    sides: tuple[Any, Any],
    samples: int,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Outputs, Outputs]:
    """So many outputs for each of the two inputs, in turns, so that what drifts drifts on both sides."""
    call, many = _caller(mechanism, rng)
    reader = _Reader()
    read: tuple[list[tuple[Reals, Codes]], ...] = ([], [])
    step = _AT_ONCE if many else _BETWEEN
    for start in range(0, samples, step):
        count = min(step, samples - start)
        for side, data in enumerate(sides):
            read[side].append(reader.read(call(data, count)))
        progress((start + count) / samples)
    one, other = (
        Outputs(
            np.concatenate([numbers for numbers, _ in chunks]),
            np.concatenate([codes for _, codes in chunks]),
            reader.labels,
            reader.places,
        )
        for chunks in read
    )
    return one, other


def _caller(mechanism: Callable[..., Any], rng: np.random.Generator) -> tuple[Callable[[Any, int], Any], bool]:
    """How to get n outputs, and whether one call gives them all."""
    if not callable(mechanism):
        raise ParameterError(
            "mechanism",
            f"cannot be called: it is of type {type(mechanism).__name__}",
            fix="give a function of the data",
        )
    try:
        names = set(inspect.signature(mechanism).parameters)
    except (TypeError, ValueError):  # a function that is not written in Python tells nothing
        names = set()
    extra = {"rng": rng} if "rng" in names else {}

    def ask(data: Any, **size: int) -> Any:
        try:
            return mechanism(data, **size, **extra)
        except Exception as problem:
            raise ParameterError(
                "mechanism",
                f"raised {type(problem).__name__}: {problem!s:.200}",
                fix="catch the error inside the mechanism, and return what a user would see",
            ) from problem

    def batch(data: Any, count: int) -> Any:
        found = ask(data, size=count)
        if isinstance(found, str | bytes) or not hasattr(found, "__len__") or not hasattr(found, "__getitem__"):
            raise ParameterError(
                "mechanism",
                f"gave a {type(found).__name__} where {count} outputs were asked for",
                fix="return a list or an array with one output a row, or leave the parameter size out",
            )
        if len(found) != count:
            raise ParameterError(
                "mechanism",
                f"gave {len(found)} outputs where {count} were asked for",
                fix="return as many outputs as size says",
            )
        return found

    if "size" in names:
        return batch, True
    return (lambda data, count: [ask(data) for _ in range(count)]), False


class _Reader:
    """Turns outputs into columns, and holds all of them to the form of the first."""

    def __init__(self) -> None:
        self._kinds: list[str] | None = None
        self._books: dict[int, dict[Any, int]] = {}

    def read(self, values: Any) -> tuple[Reals, Codes]:
        columns = list(_columns(values))
        kinds = [kind for kind, _ in columns]
        if not kinds:
            raise ParameterError("mechanism", "gave an empty output", fix=_SHAPES)
        if self._kinds is None:
            self._kinds = kinds
            self._books = {place: {} for place, kind in enumerate(kinds) if kind != "number"}
        if kinds != self._kinds:
            raise _unlike(_said(self._kinds), _said(kinds))
        numbers = [column for kind, column in columns if kind == "number"]
        if any(np.isnan(column).any() for column in numbers):
            raise ParameterError(
                "mechanism", "gave NaN, which is no number", fix='return what a user would see instead, such as "none"'
            )
        codes = [_coded(columns[place][1], book) for place, book in self._books.items()]
        return _stacked(numbers, len(values), np.float64), _stacked(codes, len(values), np.int64)

    @property
    def labels(self) -> tuple[list[Any], ...]:
        return tuple(list(book) for book in self._books.values())

    @property
    def places(self) -> tuple[int, ...]:
        kinds = self._kinds or []
        numeric = [place for place, kind in enumerate(kinds) if kind == "number"]
        return (*numeric, *self._books)


def _columns(values: Any) -> Iterator[tuple[str, Any]]:
    """The columns of many outputs, each with its kind; vectors and tuples are taken apart."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        flat = values.reshape(len(values), -1).astype(np.float64)
        yield from (("number", np.ascontiguousarray(flat[:, column])) for column in range(flat.shape[1]))
        return
    values = list(values)
    families = {_family(kind) for kind in set(map(type, values))}
    if len(families) != 1:
        raise _unlike(*sorted(families)[:2])
    family = families.pop()
    if family == "vector":
        values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
        if not all(isinstance(value, Sequence) for value in values):  # arrays without a dimension
            raise _unlike("a vector", "a number in an array")
        lengths = sorted(set(map(len, values)))
        if len(lengths) != 1:
            raise _unlike(f"{lengths[0]} long", f"{lengths[-1]} long")
        yield from chain.from_iterable(map(_columns, zip(*values, strict=True)))
    elif family == "number":
        yield "number", _floats(values)
    else:
        yield family, values


def _family(kind: type) -> str:
    """What outputs of this type are taken for."""
    if issubclass(kind, Real | np.bool_):
        return "number"
    if issubclass(kind, list | tuple | np.ndarray):
        return "vector"
    if issubclass(kind, str):
        return "text"
    return kind.__name__


def _floats(values: list[Any]) -> Reals:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # integers beyond a double
        limit = 1e308
        return np.array([float(min(max(value, -limit), limit)) for value in values])


def _coded(values: Sequence[Any], book: dict[Any, int]) -> Codes:
    try:
        return np.array([book.setdefault(value, len(book)) for value in values], dtype=np.int64)
    except TypeError as problem:
        raise ParameterError(
            "mechanism", f"gave a {type(values[0]).__name__}, which cannot be told apart by hash", fix=_SHAPES
        ) from problem


def _stacked(columns: list[Any], rows: int, kind: type[Any]) -> Any:
    return np.column_stack(columns) if columns else np.empty((rows, 0), dtype=kind)


def _said(kinds: Sequence[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"


def _unlike(one: str, other: str) -> ParameterError:
    return ParameterError("mechanism", f"gave outputs that are unlike: {one} and {other}", fix=_SHAPES)
