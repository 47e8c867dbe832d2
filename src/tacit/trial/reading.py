"""Answers as numbers and words, for audits: all that an analyst is shown of them, one answer after the other.

Post-processing many releases one by one is slow, and most of the time goes into setting up. `postprocess_all` stacks
them into one table, with the number of the release as a further key, and runs the real post-processing once. Its rows
are those of the single answers: post-processing works row by row, except that LIMIT counts rows, which is done here for
each answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tacit.answers.answer import Answer
from tacit.answers.post_process import post_process
from tacit.answers.post_processing_plan import KeyColumn, OutputColumn, PostProcessingPlan
from tacit.answers.stored import GroupKeys, Release, pack
from tacit.query.nodes import ReleasedKey, ReleasedValue
from tacit.query.timestamps import to_microseconds
from tacit.query.types import Type

Rows = list[tuple[Any, ...]]
_STACKED = 4_000  # rows finished at once
_LEVEL = Fraction(19, 20)
_NUMBERS = frozenset({Type.INT, Type.FLOAT, Type.DATE, Type.TIMESTAMP})


def postprocess_all(releases: Sequence[Release], recipe: PostProcessingPlan) -> Iterator[Rows]:
    """What `finish` shows of each release: the values of its rows, without their error bars."""
    public = recipe.list_groups()
    keys = (*(replace(key, values=None) for key in recipe.keys), KeyColumn(Type.INT, None))
    results = [replace(result, name=f"c{index}") for index, result in enumerate(recipe.results)]
    results.append(OutputColumn("number", ReleasedKey(len(recipe.keys)), Type.INT))
    stacked = replace(recipe, keys=keys, results=tuple(results), limit=None, offset=0)
    last = None if recipe.limit is None else recipe.offset + recipe.limit
    start = 0
    while start < len(releases):
        groups: list[GroupKeys] = []
        end = start
        while end < len(releases) and (end == start or len(groups) < _STACKED):
            shown = releases[end].groups
            groups += [(*group, end - start) for group in (public if shown is None else shown)]
            end += 1
        some = releases[start:end]
        parts = [[number for release in some for number in release.parts[part]] for part in range(len(recipe.parts))]
        nobody: Any = None  # no receipt: nothing is charged
        table = post_process(pack(Release(groups, parts)), stacked, nobody, _LEVEL).to_arrow(intervals=False)
        rows: list[Rows] = [[] for _ in some]
        *columns, numbers = [column.to_pylist() for column in table.columns]
        for number, *values in zip(numbers, *columns, strict=True):
            rows[number].append(tuple(values))
        yield from (found[recipe.offset : last] for found in rows)
        start = end


def answer_rows(answer: Answer) -> Rows:
    """The values of an answer's rows, without their error bars."""
    return [tuple(cell.value for cell in row) for row in answer.cells()]


@dataclass(frozen=True)
class AnswerEncoder:
    """Turns the rows of answers into outputs of one shape.

    Where every answer has the same rows and no NULL, an output is its numbers. Otherwise it starts with a word for
    what is shown (which keys, which values are NULL, which names were chosen), and numbers that are not shown are 0.
    Two answers with different values have different outputs. `places` are the groups in a fixed order.
    """

    recipe: PostProcessingPlan
    places: tuple[GroupKeys, ...]

    def outputs(self, answers: Iterable[Rows]) -> Any:
        """One output for each answer: an array of numbers, a list of words, or a list of tuples of both."""
        results = self.recipe.results
        counted = [i for i, r in enumerate(results) if r.type in _NUMBERS and not isinstance(r.scalar, ReleasedKey)]
        words = [i for i in range(len(results)) if i not in counted]
        if self.is_steady:
            numbers = np.array([self._numbers(rows, counted) for rows in answers], dtype=np.float64)
            return numbers[:, 0] if numbers.shape[1:] == (1,) else numbers
        found = []
        for rows in answers:
            word = "; ".join(_words(row, words, counted) for row in rows)
            found.append((word, *self._numbers(rows, counted)) if counted else word)
        return found

    def encode_releases(self, releases: Sequence[Release]) -> Any:
        """The same for the released integers themselves; for private keys a word for those shown comes first."""
        if self.recipe.groups is not None:
            return np.array([[number for part in r.parts for number in part] for r in releases], dtype=np.float64)
        several = {position: value.values_per_group for value in self.recipe.values for position in value.positions}
        outputs = []
        for release in releases:
            groups = release.groups or []
            numbers: list[float] = []
            for index, part in enumerate(release.parts):
                each = several.get(index, 1)
                found = {group: part[place * each : (place + 1) * each] for place, group in enumerate(groups)}
                numbers += [float(number) for group in self.places for number in found.get(group, [0] * each)]
            outputs.append(("; ".join(map(str, groups)), *numbers))
        return outputs

    @cached_property
    def is_steady(self) -> bool:
        """Whether all answers have the same rows of numbers, whatever was released."""
        recipe = self.recipe
        never_null = all(
            isinstance(result.scalar, ReleasedKey)
            or (isinstance(result.scalar, ReleasedValue) and recipe.values[result.scalar.index].is_always_number)
            for result in recipe.results
        )
        return never_null and recipe.groups is not None and not self._is_ranked and recipe.having is None

    @cached_property
    def _is_ranked(self) -> bool:
        """Whether a row is known by its place rather than by its keys."""
        named = {result.scalar.index for result in self.recipe.results if isinstance(result.scalar, ReleasedKey)}
        chosen = self.recipe.order or self.recipe.limit is not None or self.recipe.offset
        return bool(chosen) or len(named) < len(self.recipe.keys)

    def _numbers(self, rows: Rows, counted: list[int]) -> list[float]:
        """The numbers of each row at the place of the row; 0 for what is not shown."""
        numbers = [0.0] * (len(self.places) * len(counted))
        for index, row in enumerate(rows):
            place = (
                index
                if self._is_ranked
                else self._known_groups.get(tuple(row[key] for key in self._keys), len(self.places))
            )
            if place < len(self.places):
                for number, column in enumerate(counted, start=place * len(counted)):
                    if row[column] is not None:
                        numbers[number] = _number(row[column])
        return numbers

    @cached_property
    def _known_groups(self) -> dict[GroupKeys, int]:
        return {group: place for place, group in enumerate(self.places)}

    @cached_property
    def _keys(self) -> list[int]:
        """In which column each key is shown."""
        shown = {
            r.scalar.index: column for column, r in enumerate(self.recipe.results) if isinstance(r.scalar, ReleasedKey)
        }
        return [shown[key] for key in sorted(shown)]


def _words(row: tuple[Any, ...], words: list[int], counted: list[int]) -> str:
    """What a row shows besides numbers."""
    said = [_word(row[column]) for column in words] + ["NULL" for column in counted if row[column] is None]
    return " ".join(said) or "shown"


def _number(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return float(to_microseconds(value))
    return float(value.toordinal()) if isinstance(value, datetime.date) else float(value)


def _word(value: Any) -> str:
    return "NULL" if value is None else str(value)
