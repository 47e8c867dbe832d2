"""The outputs of a mechanism, collected and laid out in columns of numbers and of categories.

Whatever a mechanism gives is an outcome: a number, a text, None, NaN, an exception, or a vector of these, and outputs
may differ in kind and in length. Each place of an output has a column of numbers, or one of categories, or both where
it is a number in some outputs only.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Reals
from tacit.audit.inputs import copies
from tacit.errors import ParameterError

Codes = npt.NDArray[np.int64]
Progress = Callable[[float], None]

_AT_ONCE = 65536  # outputs asked for in one call, where a call can give many
_BETWEEN = 1024  # calls between two words of progress, where each gives one
_SHAPES = "return a number, a text, or a tuple of these"
_AGAIN = 0.01  # the share of the probability of a wrong bound for outputs that are asked for again, one by one
_FORM = -1  # the place of an output's form: its length, and what lies inside of what


@dataclass(frozen=True)
class Label:
    """A category that is no value of its own: the kind of a number, or what came in the place of a value."""

    words: str
    numeric: bool = False

    def __repr__(self) -> str:
        return self.words


_BOOLEAN, _INTEGER, _NUMBER = (Label(kind, numeric=True) for kind in ("a boolean", "an integer", "a number"))
_KINDS = {"b": _BOOLEAN, "i": _INTEGER, "u": _INTEGER, "f": _NUMBER}
_NAN, _NOTHING, _OTHER = Label("NaN"), Label("nothing"), Label("another value")


@dataclass(frozen=True)
class Raised:
    """The outcome of a call that raised an exception."""

    problem: Exception

    @property
    def label(self) -> Label:
        """The event that it was raised, whatever its text."""
        return Label(f"raised {type(self.problem).__qualname__}")


@dataclass(frozen=True)
class OutputSample:
    """Outputs of one side, a row each. Category codes mean the same on both sides: places in `labels`.

    A number is -inf where an output has none in that place; the code tells what it has instead. The code after the last
    label stands for every other one.
    """

    numbers: Reals
    codes: Codes
    labels: tuple[list[Any], ...]
    places: tuple[int, ...]  # of each column in the output, the numbers first

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_scalar(self) -> bool:
        """Whether an output has one place only."""
        return len({*self.places} - {_FORM}) == 1

    def name(self, column: int) -> str:
        """A column of numbers in words."""
        place, numeric = self.places[column], self.numbers.shape[1]
        beside = [labels for labels, here in zip(self.labels, self.places[numeric:], strict=True) if here == place]
        partial = any(not _is_kind(label) for labels in beside for label in labels)
        shown = self._place_name(place)
        return f"{shown} (-inf where it is not a number)" if partial else shown

    def category_name(self, column: int) -> str:
        """A column of categories in words."""
        return self._place_name(self.places[self.numbers.shape[1] + column])

    def _place_name(self, place: int) -> str:
        if place == _FORM:
            return "the form of output"
        return "output" if self.is_scalar else f"output[{place}]"

    def part(self, start: int, stop: int) -> OutputSample:
        """Some of the rows."""
        return replace(self, numbers=self.numbers[start:stop], codes=self.codes[start:stop])

    def keep(self, columns: Sequence[int]) -> OutputSample:
        """Some of the columns of numbers, and all of the categories."""
        places = [*(self.places[column] for column in columns), *self.places[self.numbers.shape[1] :]]
        return replace(self, numbers=self.numbers[:, columns], places=tuple(places))

    def keys(self) -> npt.NDArray[np.uint64]:
        """A number for each row that is the same for the same output, bit by bit: 0.0 and -0.0 are two outputs.

        Two outputs may share one by chance; that only makes an event of their union.
        """
        bits = [self.numbers[:, column].copy().view(np.uint64) for column in range(self.numbers.shape[1])]
        bits += [self.codes[:, column].astype(np.uint64) for column in range(self.codes.shape[1])]
        return hash_columns(bits)

    def words(self, row: int) -> str:
        """One output as a person would write it."""
        shown: dict[int, str] = {}
        numeric = self.numbers.shape[1]
        for column, place in enumerate(self.places):
            if column < numeric:
                shown[place] = f"{self.numbers[row, column]:.17g}"
                continue
            labels, code = self.labels[column - numeric], self.codes[row, column - numeric]
            label = labels[code] if code < len(labels) else _OTHER
            if place == _FORM or _is_kind(label):
                continue
            shown[place] = f"{str(label) if isinstance(label, str) else label!r:.40}"
            if label is _NOTHING:
                del shown[place]
        text = ", ".join(shown[place] for place in sorted(shown))
        return text if len(shown) == 1 else f"({text})"


def hash_columns(parts: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    """One hash of several columns of 64 bits."""
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        total = (total ^ part) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total


def collect_outputs(
    mechanism: Callable[..., Any],
    sides: tuple[Any, Any],
    samples: int,
    rng: np.random.Generator,
    progress: Progress,
) -> CollectedOutputs:
    """So many outputs for each of the two inputs, in turns, so that what drifts drifts on both sides.

    Every call has a copy of its input to itself. An exception is an outcome; where a call for many outputs raises one,
    it belongs to none of them, and all are asked for again, one by one.

    **Theorem.** Let outputs be independent, and a bound wrong with probability at most m times the `share`. Then it
    is wrong with probability at most m, asked again or not. Proof: a call for many gives what so many calls for one
    give, unless one of these raises. So with calls for one, the event "none raises and the bound of these outputs is
    wrong" has probability at most (1 - _AGAIN) m, and it is what happens where nothing is asked again. Where it is,
    whatever came before, the bound of the new outputs is wrong with probability at most _AGAIN m.
    """
    call, many = _caller(mechanism, rng)
    fresh = [copies(data) for data in sides]
    done = 0.0

    def say(share: float) -> None:
        nonlocal done
        done = max(done, share)  # what is asked again goes back, and progress does not
        progress(done)

    def gather(ask: Callable[[Any, int], Any], step: int, share: float) -> CollectedOutputs:
        chunks: tuple[list[_Chunk], list[_Chunk]] = ([], [])
        for start in range(0, samples, step):
            count = min(step, samples - start)
            for side in (0, 1):
                chunks[side].append(_Chunk.of(ask(fresh[side], count)))
            say((start + count) / samples)
        _check([*chunks[0], *chunks[1]])
        return CollectedOutputs(chunks, share)

    def one_by_one(copy: Callable[[], Any], count: int) -> list[Any]:
        return [_outcome(call, copy) for _ in range(count)]

    if not many:
        return gather(one_by_one, _BETWEEN, 1.0)
    try:
        return gather(lambda copy, count: _batch(call, copy(), count), _AT_ONCE, 1 - _AGAIN)
    except _InBatch:
        return gather(one_by_one, _BETWEEN, _AGAIN)


class _InBatch(Exception):
    """A call for many outputs raised an exception."""


def _caller(mechanism: Callable[..., Any], rng: np.random.Generator) -> tuple[Callable[[Any, int], Any], bool]:
    """How to call the mechanism for data and a number of outputs, and whether one call gives them all."""
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
    if "size" in names:
        return (lambda data, count: mechanism(data, size=count, **extra)), True
    return (lambda data, count: [mechanism(data, **extra)]), False


def _outcome(call: Callable[[Any, int], Any], copy: Callable[[], Any]) -> Any:
    """One output, or what was raised in its place."""
    data = copy()
    try:
        found = call(data, 1)
    except Exception as problem:  # noqa: BLE001 - whatever it was, it is what a user would see
        return Raised(problem.with_traceback(None))
    return _check_size(found, 1)[0]


def _batch(call: Callable[[Any, int], Any], data: Any, count: int) -> Any:
    """So many outputs at once."""
    try:
        found = call(data, count)
    except Exception as problem:
        raise _InBatch from problem
    return _check_size(found, count)


def _check_size(found: Any, count: int) -> Any:
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


@dataclass(frozen=True)
class _Column:
    """One place of many outputs: their numbers, where there are any, and what each of them is (one label for all)."""

    numbers: Reals | None
    labels: list[Any]

    def first(self, count: int) -> _Column:
        """That of the first so many outputs."""
        return _Column(
            None if self.numbers is None else self.numbers[:count],
            self.labels if len(self.labels) == 1 else self.labels[:count],
        )


@dataclass(frozen=True)
class _Chunk:
    """Outputs of one side, taken apart by places. What stands in a column depends on its own output only."""

    count: int
    columns: dict[int, _Column]
    raised: tuple[Raised, ...] = ()

    @classmethod
    def of(cls, values: Any) -> _Chunk:
        if isinstance(values, np.ndarray) and values.dtype.kind in _KINDS:
            flat = values.reshape(len(values), -1)
            columns = {place: _of_array(flat[:, place]) for place in range(flat.shape[1])}
            form = "."
            for length in values.shape[:0:-1]:
                form = f"[{form * length}]"
            return cls(len(values), columns | {_FORM: _Column(None, [form])})
        values = list(values)
        if all(issubclass(kind, Real | np.bool_) for kind in set(map(type, values))):
            return cls(len(values), {0: _of_cells(values), _FORM: _Column(None, ["."])})
        rows, forms = [], []
        for value in values:
            cells: list[Any] = []
            forms.append(_taken_apart(value, cells))
            rows.append(cells)
        columns = {
            place: _of_cells([row[place] if place < len(row) else _NOTHING for row in rows])
            for place in range(max(map(len, rows)))
        }
        raised = tuple(value for value in values if isinstance(value, Raised))
        return cls(len(values), columns | {_FORM: _Column(None, forms)}, raised)

    def first(self, count: int) -> _Chunk:
        """The first so many outputs."""
        if count >= self.count:
            return self
        return _Chunk(count, {place: column.first(count) for place, column in self.columns.items()})


@dataclass(frozen=True)
class CollectedOutputs:
    """The outputs of both sides in the order in which they came.

    `share` is the part of the probability of a wrong bound that may be spent on these outputs.
    """

    chunks: tuple[list[_Chunk], list[_Chunk]]
    share: float = 1.0

    def first(self, count: int) -> CollectedOutputs:
        """The first so many outputs of each side."""
        return CollectedOutputs((_first(self.chunks[0], count), _first(self.chunks[1], count)), self.share)

    def lay_out(self, learned: int) -> tuple[OutputSample, OutputSample]:
        """Both sides in the same columns: of numbers where there are any, of categories where there is more than one.

        **Theorem.** Which columns there are and which label each code has are functions of the first `learned` outputs
        of both sides, and each row is a function of these and of its own output. So, given these, the later rows of
        independent outputs are independent. Proof: only these outputs are looked at before the columns are fixed; a
        label or a place that only later ones have is not among them, and has the last code or no column.
        """
        nothing = _Column(None, [_NOTHING])
        seen = [chunk for side in self.chunks for chunk in _first(side, learned)]
        numeric: list[int] = []
        books: dict[int, dict[Any, int]] = {}
        for place in sorted({place for chunk in seen for place in chunk.columns}, key=lambda at: (at == _FORM, at)):
            book: dict[Any, int] = {}
            for chunk in seen:
                for label in chunk.columns.get(place, nothing).labels:
                    book.setdefault(label, len(book))
            if all(label is _NOTHING for label in book):
                continue  # a later output of the same call has this place
            has_numbers = any(_is_kind(label) or label is _NAN for label in book)
            if has_numbers:
                numeric.append(place)
            if len(book) > 1 or not (has_numbers or (place == _FORM and (numeric or books))):
                books[place] = book

        def side(own: list[_Chunk]) -> OutputSample:
            numbers = [np.concatenate([_numbers(chunk, place) for chunk in own]) for place in numeric]
            codes = [
                np.concatenate([_codes(chunk, chunk.columns.get(place, nothing), book) for chunk in own])
                for place, book in books.items()
            ]
            rows = sum(chunk.count for chunk in own)
            return OutputSample(
                _stack_columns(numbers, rows, np.float64),
                _stack_columns(codes, rows, np.int64),
                tuple(list(book) for book in books.values()),
                (*numeric, *books),
            )

        return side(self.chunks[0]), side(self.chunks[1])


def _first(chunks: list[_Chunk], count: int) -> list[_Chunk]:
    """The first so many outputs of one side."""
    found = []
    for chunk in chunks:
        if count <= 0:
            break
        found.append(chunk.first(count))
        count -= chunk.count
    return found


def _taken_apart(value: Any, cells: list[Any]) -> str:
    """Add the numbers and categories of one output to the cells, and return how they lie together."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{''.join(_taken_apart(inner, cells) for inner in value)}]"
    if isinstance(value, Raised):
        cells += [value.label, str(value.problem)]
        return "raised"
    cells.append(value)
    return "."


def _of_array(values: npt.NDArray[Any]) -> _Column:
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    return _with_nan(numbers, [_KINDS[values.dtype.kind]])


def _of_cells(values: list[Any]) -> _Column:
    kinds = {kind: _kind_of(kind) for kind in set(map(type, values))}
    labels = [kinds[type(value)] or _category(value) for value in values]
    if not any(kinds.values()):
        return _Column(None, labels)
    numbers = _floats([-np.inf if kinds[type(value)] is None else value for value in values])
    return _with_nan(numbers, labels[:1] if len(kinds) == 1 else labels)


def _with_nan(numbers: Reals, labels: list[Any]) -> _Column:
    missing = np.isnan(numbers)
    if not missing.any():
        return _Column(numbers, labels)
    each = labels * len(numbers) if len(labels) == 1 else labels
    named = [_NAN if gone else label for gone, label in zip(missing.tolist(), each, strict=True)]
    return _Column(np.where(missing, -np.inf, numbers), named)


def _kind_of(kind: type) -> Label | None:
    """What numbers of this type are; None for what is not a number."""
    if issubclass(kind, bool | np.bool_):
        return _BOOLEAN
    if issubclass(kind, Integral):
        return _INTEGER
    return _NUMBER if issubclass(kind, Real) else None


def _category(value: Any) -> Any:
    """What tells the value from others. A NaN of another kind is one category, though it does not equal itself."""
    try:
        hash(value)
        is_nan = bool(value != value)  # noqa: PLR0124 - no other value differs from itself
        return Label(f"{type(value).__name__} {value!r:.40}") if is_nan else value
    except Exception as problem:
        raise ParameterError(
            "mechanism", f"gave a {type(value).__name__}, which cannot be told apart by hash", fix=_SHAPES
        ) from problem


def _is_kind(label: Any) -> bool:
    return isinstance(label, Label) and label.numeric


def _check(chunks: list[_Chunk]) -> None:
    """A mechanism that gives nothing at all, or fails always in the same way, has not been called as it should be."""
    if not any(set(chunk.columns) - {_FORM} for chunk in chunks):
        raise ParameterError("mechanism", "gave an empty output", fix=_SHAPES)
    raised = [each for chunk in chunks for each in chunk.raised]
    if len(raised) == sum(chunk.count for chunk in chunks) and len({(e.label, str(e.problem)) for e in raised}) == 1:
        problem = raised[0].problem
        raise ParameterError(
            "mechanism",
            f"raised {type(problem).__name__} in every call: {problem!s:.200}",
            fix="call it once yourself, with the data that you audit it on",
        ) from problem


def _numbers(chunk: _Chunk, place: int) -> Reals:
    column = chunk.columns.get(place)
    return np.full(chunk.count, -np.inf) if column is None or column.numbers is None else column.numbers


def _codes(chunk: _Chunk, column: _Column, book: dict[Any, int]) -> Codes:
    if len(column.labels) == 1:
        return np.full(chunk.count, book.get(column.labels[0], len(book)), dtype=np.int64)
    return np.array([book.get(label, len(book)) for label in column.labels], dtype=np.int64)


def _floats(values: list[Any]) -> Reals:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # integers beyond a double
        return np.array([_float(value) for value in values])


def _float(value: Any) -> float:
    """The number as a double, or the largest one: what it becomes is up to no other output."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def _stack_columns(columns: list[Any], rows: int, kind: type[Any]) -> Any:
    return np.column_stack(columns) if columns else np.empty((rows, 0), dtype=kind)
