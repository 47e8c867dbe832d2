"""What an attack sees: something that counts a secret bit over subsets of people, with noise or without.

>>> import numpy as np
>>> from tacit.attacks.counting_oracles import ExactOracle
>>> secret = ExactOracle([1, 0, 1, 0, 1])
>>> ask_oracle(secret, np.array([[1, 0, 1, 0, 0], [0, 1, 0, 1, 1]], dtype=bool))
array([2., 1.])

Anything with the one method `ask` is an oracle. It may say what its noise is by an attribute `noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arithmetic import Number, to_rational
from tacit.errors import ErrorCode, ParameterError, Refused

BitArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Progress = Callable[[float], None]  # told the share that is done, from 0 to 1

_FIX = "let ask(subsets) give one finite number for each row of subsets"
_LARGEST = 1e15  # no count of people is that large
_STEPS = 50  # words of progress while asking


@dataclass(frozen=True)
class NoiseModel:
    """What is known of an oracle's noise.

    Attributes
    ----------
    words : str
        The noise in words, as reports print it.
    bound : float or None
        The largest absolute value that the noise ever has, where it is bounded.
    deviation : float or None
        The standard deviation of the noise, where it is known.

    Examples
    --------
    >>> print(NoiseModel("uniform noise of at most 2", bound=2.0))
    uniform noise of at most 2
    """

    words: str
    bound: float | None = None
    deviation: float | None = None

    def __str__(self) -> str:
        return self.words


UNKNOWN_NOISE = NoiseModel("noise of an unknown distribution")


class Ended(Exception):
    """The budget was spent before the last question: the answers to the first ones, and the refusal."""

    def __init__(self, answers: Sequence[Any], refusal: Refused) -> None:
        super().__init__(refusal.what)
        self.answers = answers
        self.refusal = refusal


class Oracle(Protocol):
    """Anything that takes m subsets of n people, as m rows of n bits, and gives m counts of the secret bit.

    It may say what its noise is by an attribute `noise`, a `NoiseModel`.

    Examples
    --------
    >>> import numpy as np
    >>> class Everyone:
    ...     def ask(self, subsets):
    ...         return subsets.sum(axis=1)
    >>> ask_oracle(Everyone(), np.array([[True, False, True]])).tolist()
    [2.0]
    """

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return the count of each subset, as the mechanism gives it.

        Parameters
        ----------
        subsets : array of bool
            A row of n bits for each question.

        Returns
        -------
        array of float
            A count for each row.
        """


@dataclass(frozen=True, eq=False)
class FunctionOracle:
    """An oracle made of any function from one subset, a row of n bits, to a number.

    Parameters
    ----------
    function : callable
        Maps a row of bits to a number. Where it raises `Refused` for the budget, the answers so far are used.
    noise : NoiseModel
        What is known of the noise; it helps `reconstruct` to choose its method.

    Examples
    --------
    >>> import numpy as np
    >>> FunctionOracle(lambda subset: int(subset.sum())).ask(np.array([[True, False], [True, True]]))
    [1, 2]
    """

    function: Callable[[BitArray], object]
    noise: NoiseModel = UNKNOWN_NOISE

    def ask(self, subsets: BitArray) -> FloatArray:
        """Call the function for each subset. Answers that are no numbers are left for `ask_oracle` to refuse.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question.

        Returns
        -------
        array of float
            What the function returns for each row.
        """
        given: Any = one_by_one(self.function, subsets)
        return given  # type: ignore[no-any-return]  # the function may return anything


def one_by_one(ask: Callable[[BitArray], Any], subsets: BitArray) -> list[Any]:
    """The answer to each subset; or Ended, with those so far, where the budget does not pay for the next."""
    given: list[Any] = []
    for subset in subsets:
        try:
            given.append(ask(subset))
        except Refused as refusal:
            if refusal.code != ErrorCode.BUDGET:
                raise
            raise Ended(given, refusal) from refusal
    return given


def ask_oracle(oracle: Oracle, subsets: BitArray, progress: Progress | None = None) -> FloatArray:
    """Ask an oracle, and check that it answers with one finite number for each subset.

    The oracle sees the subsets and cannot change them.

    Parameters
    ----------
    oracle : Oracle
        What is asked: anything with a method `ask`.
    subsets : array of bool
        A row of bits for each question, one bit for each person.
    progress : callable, optional
        Called with the share of the questions that are answered, from 0 to 1; the oracle is then asked in blocks.

    Returns
    -------
    array of float
        The answers, one for each subset.

    Raises
    ------
    ParameterError
        If the oracle fails, or its answers are not finite numbers; the error says what it did instead.
    Refused
        If the budget is spent before the last question.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.attacks import ExactOracle
    >>> ask_oracle(ExactOracle([1, 0, 1]), np.array([[True, True, True], [False, True, False]])).tolist()
    [2.0, 0.0]
    """
    given, refusal = collect_answers(oracle, subsets, progress)
    if refusal is not None:
        raise refusal
    return given


def collect_answers(
    oracle: Oracle, subsets: BitArray, progress: Progress | None = None
) -> tuple[FloatArray, Refused | None]:
    """The answers to the first subsets, until the budget is spent, and the refusal that said so; None for no refusal.

    There is an answer at least: where the first question is refused, that is raised.
    """
    rows = np.asarray(subsets)
    if rows.ndim != 2 or rows.dtype != np.bool_ or not rows.size:
        raise ParameterError(
            "subsets", "needs a table of bits, a row for each question", fix="subsets=rng.random((m, n)) < 0.5, say"
        )
    if not callable(getattr(oracle, "ask", None)):
        raise ParameterError(
            "oracle", f"a {type(oracle).__name__} has no method ask", fix="FunctionOracle(function), say"
        )
    shown = rows.view()
    shown.flags.writeable = False
    step = len(rows) if progress is None else max(1, math.ceil(len(rows) / _STEPS))
    parts: list[FloatArray] = []
    for start in range(0, len(rows), step):
        try:
            parts.append(_ask_block(oracle, shown[start : start + step]))
        except Ended as ended:
            parts.append(_check_answers(ended.answers, shown[start : start + len(ended.answers)]))
            found = np.concatenate(parts)
            if not len(found):
                raise ended.refusal from None
            return found, ended.refusal
        if progress is not None:
            progress(min(1.0, (start + step) / len(rows)))
    return np.concatenate(parts), None


def noise_model(oracle: Oracle) -> NoiseModel:
    """What the oracle says of its noise, if anything."""
    said = getattr(oracle, "noise", UNKNOWN_NOISE)
    return said if isinstance(said, NoiseModel) else UNKNOWN_NOISE


def as_bits(name: str, values: ArrayLike) -> BitArray:
    """A list of bits, each 0 or 1, or an error that names the parameter."""
    try:
        given = np.asarray(values)
        fits = given.ndim == 1 and given.size > 0 and given.dtype.kind in "biuf" and bool(np.isin(given, (0, 1)).all())
    except ValueError:  # rows of different lengths
        fits = False
    if not fits:
        raise ParameterError(name, "needs a list of bits, one for each person", fix=f"{name}=[1, 0, 1], say")
    return given.astype(np.bool_)


def positive(name: str, value: Number) -> float:
    """A positive number, or an error that names the parameter."""
    number = float(to_rational(name, value))
    if number <= 0:
        raise ParameterError(name, f"must be positive, got {number:g}", fix=f"choose {name} above 0")
    return number


def _ask_block(oracle: Oracle, subsets: BitArray) -> FloatArray:
    try:
        given = _ask_until_refused(oracle, subsets)
    except Ended:
        raise
    except Exception as problem:  # whatever it is, it is the oracle's
        text = f"raised {type(problem).__name__}: {problem!s:.200}"
        raise ParameterError("oracle", text, fix="make it answer every subset") from problem
    return _check_answers(given, subsets)


def _ask_until_refused(oracle: Oracle, subsets: BitArray) -> Any:
    """The answers to a block; where it is refused for the budget, those to one by one: a repeat may be free."""
    try:
        return oracle.ask(subsets)
    except Refused as refusal:
        if refusal.code != ErrorCode.BUDGET:
            raise
        return one_by_one(lambda subset: oracle.ask(subset[np.newaxis])[0], subsets)


def _check_answers(given: Any, subsets: BitArray) -> FloatArray:
    """One finite number for each subset."""
    numbers = _numbers(given)
    if numbers.shape != (len(subsets),):
        found = f"{len(numbers):,} answers" if numbers.ndim == 1 else f"answers of shape {numbers.shape}"
        raise ParameterError("oracle", f"gave {found} to {len(subsets):,} subsets", fix=_FIX)
    for what, wrong in (("NaN", np.isnan(numbers)), ("not a number of people", ~(np.abs(numbers) < _LARGEST))):
        if wrong.any():
            where = int(np.flatnonzero(wrong)[0])
            raise ParameterError("oracle", f"answer {where} is {what}: {numbers[where]:g}", fix=_FIX)
    return numbers


def _numbers(given: Any) -> FloatArray:
    """The answers as doubles: numbers of any kind, but no text, no truth values, no complex numbers, no gaps."""
    try:
        found = np.asarray(given)
        if found.dtype.kind == "O" and not any(isinstance(each, str | bytes | bool) for each in found.flat):
            found = np.array([float(each) for each in found.flat]).reshape(found.shape)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ParameterError("oracle", "gave answers that are not all numbers", fix=_FIX) from problem
    if found.dtype.kind not in "iuf":
        kind = type(given).__name__ if found.ndim == 0 else found.dtype.name
        raise ParameterError("oracle", f"gave {kind} where numbers are needed", fix=_FIX)
    return found.astype(np.float64)
