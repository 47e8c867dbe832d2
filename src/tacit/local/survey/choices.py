"""Questions with options: yes or no, one of several, any of several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.errors import ParameterError
from tacit.local.survey.questions import SurveyQuestion, check_answer_index
from tacit.local.survey.thresholds import TWO_TO_64, compute_flip_threshold, flip_coin
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

MAX_OPTIONS = 64
_SMALL = 8  # options of which every subset is listed in a matrix


@dataclass(frozen=True)
class ChoiceQuestion(SurveyQuestion):
    """One of several options: sent as it is, or replaced by another one, each equally likely.

    **Theorem.** With k options and L = `lie`, the distribution is (2^64 - L)/2^64 on the diagonal and L/(2^64 (k - 1))
    elsewhere, exactly; by `lies` it is epsilon-LDP. The bits are one word for the coin, then the other option, which is
    drawn whether it is needed or not.
    """

    options: tuple[str, ...]
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        _check_options(self.name, self.options)

    @cached_property
    def lie(self) -> int:
        """The probability of another option, out of 2^64."""
        return compute_flip_threshold(self.price, others=len(self.options) - 1)

    @property
    def cells(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    @property
    def other(self) -> Fraction:
        """The probability of each other option."""
        return Fraction(self.lie, TWO_TO_64 * (len(self.options) - 1))

    def encode(self, truth: int, bits: Bits) -> int:
        """The number of an option."""
        check_answer_index(self.name, truth, len(self.options) - 1)
        turned = flip_coin(self.lie, bits)
        drawn = draw_below(len(self.options) - 1, bits)
        return drawn + (drawn >= truth) if turned else truth

    def support(self, sent: Any) -> tuple[int, ...]:
        """The option that was sent."""
        if type(sent) is not int or not 0 <= sent < len(self.options):
            raise self._refuse(f"a report is a number from 0 to {len(self.options) - 1}")
        return tuple(int(place == sent) for place in range(len(self.options)))

    def matrix(self) -> TransitionMatrix:
        """A row and a column for each option."""
        places = range(len(self.options))
        return TransitionMatrix([[self.own if sent == truth else self.other for sent in places] for truth in places])

    def read(self, given: Any) -> int:
        """An option by its words."""
        return _find_option(self.name, self.options, given)

    def choose(self, typed: str) -> int:
        """An option by its number, from 1 on."""
        return _find_option_number(self.name, self.options, typed)

    def shown(self, truth: int) -> str:
        """The option's words."""
        return self.options[truth]

    def _more(self) -> dict[str, Any]:
        return {"options": list(self.options)}


@dataclass(frozen=True)
class YesNoQuestion(ChoiceQuestion):
    """A choice of no and yes: the truth, or the opposite."""

    options: tuple[str, ...] = ("No", "Yes")
    kind: ClassVar[str] = "yes-no"

    def read(self, given: Any) -> int:
        """Yes or no, also as y, n, true or false."""
        if isinstance(given, bool):
            return int(given)
        word = str(given).strip().lower()
        if word in {"y", "yes", "true"}:
            return 1
        if word in {"n", "no", "false"}:
            return 0
        raise ParameterError(self.name, "needs yes or no", fix=f'{self.name} = "yes"')

    def choose(self, typed: str) -> int:
        """The same: its options are not numbered."""
        return self.read(typed)


@dataclass(frozen=True)
class MultipleChoiceQuestion(SurveyQuestion):
    """Any of several options, at most `most`: a bit for each, every one sent as it is or turned, on its own.

    **Theorem.** Two answers differ in at most `turns` = min(2 most, options) bits. With L = `lie` for epsilon/turns,
    the probabilities of any report differ by at most ((2^64 - L)/L)^turns <= e^epsilon. Proof: the bits are
    independent, and those in which the answers agree cancel. The bits are one word for each option, in order.
    """

    options: tuple[str, ...]
    most: int
    kind: ClassVar[str] = "several"

    def __post_init__(self) -> None:
        _check_options(self.name, self.options)
        if type(self.most) is not int or not 1 <= self.most <= len(self.options):
            raise ParameterError(f"{self.name}.most", "must be from 1 to the number of options", fix="most = 3, say")

    @property
    def turns(self) -> int:
        """In how many bits two answers can differ."""
        return min(2 * self.most, len(self.options))

    @cached_property
    def lie(self) -> int:
        """The probability that a bit is turned, out of 2^64."""
        return compute_flip_threshold(self.price, parts=self.turns)

    @property
    def ratio(self) -> Fraction:
        """The power of one bit's."""
        return (self.own / self.other) ** self.turns

    @property
    def cells(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    def encode(self, truth: str, bits: Bits) -> str:
        """A digit 0 or 1 for each option."""
        if len(truth) != len(self.options) or set(truth) - {"0", "1"} or truth.count("1") > self.most:
            raise ParameterError(self.name, f"needs at most {self.most} of the options", fix="leave some out")
        return "".join(str(int(bit) ^ flip_coin(self.lie, bits)) for bit in truth)

    def support(self, sent: Any) -> tuple[int, ...]:
        """The options whose digit is 1."""
        if type(sent) is not str or len(sent) != len(self.options) or set(sent) - {"0", "1"}:
            raise self._refuse(f"a report is {len(self.options)} digits 0 or 1")
        return tuple(map(int, sent))

    def matrix(self) -> TransitionMatrix:
        """A row for each set of options that may be answered, a column for each that may be sent."""
        if len(self.options) > _SMALL:
            raise ParameterError(self.name, "there are too many sets to list", fix="ask about fewer options")
        every = list(itertools.product((0, 1), repeat=len(self.options)))

        def chance(truth: Sequence[int], sent: Sequence[int]) -> Fraction:
            kept = sum(a == b for a, b in zip(truth, sent, strict=True))
            return self.own**kept * self.other ** (len(truth) - kept)

        return TransitionMatrix([[chance(truth, sent) for sent in every] for truth in every if sum(truth) <= self.most])

    def read(self, given: Any) -> str:
        """Options by their words: a list, or a text with commas between them; an empty one for none."""
        if isinstance(given, str):
            given = [given] if _place(self.options, given) is not None else _parts(given)
        if not isinstance(given, list):
            raise ParameterError(self.name, "needs a list of options", fix=f'{self.name} = ["{self.options[0]}"]')
        return self._set({_find_option(self.name, self.options, item) for item in given})

    def choose(self, typed: str) -> str:
        """Options by their numbers, from 1 on, with commas between them."""
        return self._set({_find_option_number(self.name, self.options, part) for part in _parts(typed)})

    def shown(self, truth: str) -> str:
        """The options' words."""
        chosen = [option for option, bit in zip(self.options, truth, strict=True) if bit == "1"]
        return ", ".join(chosen) or "none of them"

    def _set(self, chosen: set[int]) -> str:
        if len(chosen) > self.most:
            raise ParameterError(self.name, f"needs at most {self.most} of the options", fix="leave some out")
        return "".join(str(int(place in chosen)) for place in range(len(self.options)))

    def _more(self) -> dict[str, Any]:
        return {"options": list(self.options), "most": self.most}


def _check_options(name: str, options: tuple[str, ...]) -> None:
    if not 2 <= len(options) <= MAX_OPTIONS or len({option.strip().lower() for option in options}) != len(options):
        what = f"needs 2 to {MAX_OPTIONS} options, all different"
        raise ParameterError(f"{name}.options", what, fix='options = ["Soup", "Salad"]')


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def _place(options: tuple[str, ...], given: Any) -> int | None:
    """Where an option with these words is; an integer has the words it is written with."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    word = str(given).strip().lower()
    return next((place for place, option in enumerate(options) if option.strip().lower() == word), None)


def _find_option(name: str, options: tuple[str, ...], given: Any) -> int:
    place = _place(options, given)
    if place is None:
        fix = "choose from: " + ", ".join(f'"{option}"' for option in options)
        raise ParameterError(name, "needs one of its options, in the same words", fix=fix[:300])
    return place


def _find_option_number(name: str, options: tuple[str, ...], typed: str) -> int:
    word = typed.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 4 and 1 <= int(word) <= len(options)):
        what = f"needs the number before an option, from 1 to {len(options)}"
        raise ParameterError(name, what, fix="type 1 for the first")
    return int(word) - 1
