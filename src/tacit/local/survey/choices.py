"""Questions with options: yes or no, one of several, any of several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.errors import ParameterError
from tacit.local.survey.questions import SurveyQuestion, TrueAnswer, check_answer_index
from tacit.local.survey.thresholds import TWO_TO_64, compute_flip_threshold, flip_coin
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

MAX_OPTIONS = 64
_SMALL = 8  # options of which every subset is listed in a matrix


@dataclass(frozen=True)
class ChoiceQuestion(SurveyQuestion):
    """One of several options: the true one is sent, or another one, each equally likely.

    **Theorem.** With k options and L = `flip_threshold`, the distribution is (2^64 - L)/2^64 on the diagonal and
    L/(2^64 (k - 1)) elsewhere, exactly; by `compute_flip_threshold` it is epsilon-LDP. The bits are one word that
    decides whether to flip, then the other option, which is drawn whether it is used or not.
    """

    options: tuple[str, ...]
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        _check_options(self.name, self.options)

    @cached_property
    def flip_threshold(self) -> int:
        """The probability of another option, out of 2^64."""
        return compute_flip_threshold(self.epsilon, others=len(self.options) - 1)

    @property
    def cells(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    @property
    def other(self) -> Fraction:
        """The probability of each other option."""
        return Fraction(self.flip_threshold, TWO_TO_64 * (len(self.options) - 1))

    def encode(self, truth: TrueAnswer, bits: Bits) -> int:
        """Return the index of the option to send."""
        index = check_answer_index(self.name, truth, len(self.options) - 1)
        is_flipped = flip_coin(self.flip_threshold, bits)
        drawn = draw_below(len(self.options) - 1, bits)
        return drawn + (drawn >= index) if is_flipped else index

    def support(self, sent: object) -> tuple[int, ...]:
        """Return 1 for the option that was sent, 0 for the others."""
        if type(sent) is not int or not 0 <= sent < len(self.options):
            raise self._refuse(f"a report is an integer from 0 to {len(self.options) - 1}")
        return tuple(int(place == sent) for place in range(len(self.options)))

    def matrix(self) -> TransitionMatrix:
        """Return P[sent | truth], a row and a column for each option."""
        places = range(len(self.options))
        return TransitionMatrix([[self.own if sent == truth else self.other for sent in places] for truth in places])

    def read(self, given: object) -> int:
        """Return the index of an option by its words."""
        return _find_option(self.name, self.options, given)

    def choose(self, typed: str) -> int:
        """Return the index of an option by its number, from 1 on."""
        return _find_option_number(self.name, self.options, typed)

    def describe_answer(self, truth: TrueAnswer) -> str:
        """Return the option's words."""
        return self.options[int(truth)]

    def _public_fields(self) -> dict[str, Any]:
        return {"options": list(self.options)}


@dataclass(frozen=True)
class YesNoQuestion(ChoiceQuestion):
    """A choice of no and yes: the truth, or the opposite."""

    options: tuple[str, ...] = ("No", "Yes")
    kind: ClassVar[str] = "yes-no"

    def read(self, given: object) -> int:
        """Return 1 for yes and 0 for no, also from y, n, true or false."""
        if isinstance(given, bool):
            return int(given)
        word = str(given).strip().lower()
        if word in {"y", "yes", "true"}:
            return 1
        if word in {"n", "no", "false"}:
            return 0
        raise ParameterError(self.name, "needs yes or no", fix=f'{self.name} = "yes"')

    def choose(self, typed: str) -> int:
        """Return the same as `read`: its options are not numbered."""
        return self.read(typed)


@dataclass(frozen=True)
class MultipleChoiceQuestion(SurveyQuestion):
    """Any of several options, at most `most`: a bit for each, each flipped independently.

    **Theorem.** Two answers differ in at most s = `hamming_sensitivity` = min(2 most, options) bits. With L =
    `flip_threshold` for epsilon/s, the probabilities of any report differ by at most ((2^64 - L)/L)^s <= e^epsilon.
    Proof: the bits are independent, and those in which the answers agree cancel. The bits are one word for each option,
    in order.
    """

    options: tuple[str, ...]
    most: int
    kind: ClassVar[str] = "several"

    def __post_init__(self) -> None:
        _check_options(self.name, self.options)
        if type(self.most) is not int or not 1 <= self.most <= len(self.options):
            raise ParameterError(
                f"{self.name}.most", "must be from 1 to the number of options", fix=f"most = {len(self.options)}"
            )

    @property
    def hamming_sensitivity(self) -> int:
        """The largest number of bits in which two answers can differ."""
        return min(2 * self.most, len(self.options))

    @cached_property
    def flip_threshold(self) -> int:
        """The probability that a bit is flipped, out of 2^64."""
        return compute_flip_threshold(self.epsilon, parts=self.hamming_sensitivity)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities: one bit's, to the power of the Hamming sensitivity."""
        return (self.own / self.other) ** self.hamming_sensitivity

    @property
    def cells(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    def encode(self, truth: TrueAnswer, bits: Bits) -> str:
        """Return the digit 0 or 1 to send for each option."""
        if not self._is_digits(truth) or truth.count("1") > self.most:
            raise ParameterError(self.name, f"needs at most {self.most} of the options", fix="leave some out")
        return "".join(str(int(bit) ^ flip_coin(self.flip_threshold, bits)) for bit in truth)

    def support(self, sent: object) -> tuple[int, ...]:
        """Return 1 for each option whose digit is 1, 0 for the others."""
        if not self._is_digits(sent):
            raise self._refuse(f"a report is {len(self.options)} digits 0 or 1")
        return tuple(map(int, sent))

    def matrix(self) -> TransitionMatrix:
        """Return P[sent | truth], a row for each possible answer, a column for each set of options."""
        if len(self.options) > _SMALL:
            raise ParameterError(
                self.name, f"has more than {_SMALL} options, so too many sets to list", fix="ask about fewer options"
            )
        every = list(itertools.product((0, 1), repeat=len(self.options)))

        def probability(truth: Sequence[int], sent: Sequence[int]) -> Fraction:
            equal = sum(a == b for a, b in zip(truth, sent, strict=True))
            return self.own**equal * self.other ** (len(truth) - equal)

        return TransitionMatrix(
            [[probability(truth, sent) for sent in every] for truth in every if sum(truth) <= self.most]
        )

    def read(self, given: object) -> str:
        """Return options by their words, from a list, or from a text with commas; an empty one for none."""
        if isinstance(given, str):
            given = [given] if _find_index(self.options, given) is not None else _parts(given)
        if not isinstance(given, list):
            raise ParameterError(self.name, "needs a list of options", fix=f'{self.name} = ["{self.options[0]}"]')
        return self._set({_find_option(self.name, self.options, item) for item in given})

    def choose(self, typed: str) -> str:
        """Return options by their numbers, from 1 on, with commas between them."""
        return self._set({_find_option_number(self.name, self.options, part) for part in _parts(typed)})

    def describe_answer(self, truth: TrueAnswer) -> str:
        """Return the options' words."""
        chosen = [option for option, bit in zip(self.options, str(truth), strict=True) if bit == "1"]
        return ", ".join(chosen) or "none of them"

    def _is_digits(self, given: object) -> TypeGuard[str]:
        return isinstance(given, str) and len(given) == len(self.options) and not set(given) - {"0", "1"}

    def _set(self, chosen: set[int]) -> str:
        if len(chosen) > self.most:
            raise ParameterError(self.name, f"needs at most {self.most} of the options", fix="leave some out")
        return "".join(str(int(place in chosen)) for place in range(len(self.options)))

    def _public_fields(self) -> dict[str, Any]:
        return {"options": list(self.options), "most": self.most}


def _check_options(name: str, options: tuple[str, ...]) -> None:
    if not 2 <= len(options) <= MAX_OPTIONS or len({option.strip().lower() for option in options}) != len(options):
        what = f"needs 2 to {MAX_OPTIONS} options, all different"
        raise ParameterError(f"{name}.options", what, fix='options = ["Soup", "Salad"]')


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def _find_index(options: tuple[str, ...], given: object) -> int | None:
    """Return the index of the option with these words; an integer has the words it is written with."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    word = str(given).strip().lower()
    return next((index for index, option in enumerate(options) if option.strip().lower() == word), None)


def _find_option(name: str, options: tuple[str, ...], given: object) -> int:
    index = _find_index(options, given)
    if index is None:
        fix = "choose from: " + ", ".join(f'"{option}"' for option in options)
        raise ParameterError(name, "needs one of its options, in the same words", fix=fix[:300])
    return index


def _find_option_number(name: str, options: tuple[str, ...], typed: str) -> int:
    word = typed.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 4 and 1 <= int(word) <= len(options)):
        what = f"needs the number before an option, from 1 to {len(options)}"
        raise ParameterError(name, what, fix="type 1 for the first")
    return int(word) - 1
