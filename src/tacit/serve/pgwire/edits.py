"""Edits of a client's text, and the way back from a place in the edited text to the client's own."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tacit.policy.model import Policy
from tacit.serve.pgwire.tokens import replace_limit


@dataclass(frozen=True, slots=True)
class Edit:
    """What stands in place of a stretch of the text."""

    start: int
    end: int
    text: str


class EditedText:
    """A text with edits made, and the way back to where things stood.

    >>> made = EditedText("a = $1 AND b", 0, 12, [Edit(4, 6, "'x'")])
    >>> made.text, made.original_offset(made.text.index("b"))
    ("a = 'x' AND b", 11)
    """

    def __init__(self, text: str, start: int, end: int, edits: Sequence[Edit]) -> None:
        self._stretches: list[tuple[int, int, bool]] = []  # where it starts here, where there, and whether it is new
        parts: list[str] = []
        length, position = 0, start
        for edit in sorted(edits, key=lambda each: each.start):
            for piece, origin, new in ((text[position : edit.start], position, False), (edit.text, edit.start, True)):
                self._stretches.append((length, origin, new))
                parts.append(piece)
                length += len(piece)
            position = edit.end
        self._stretches.append((length, position, False))
        self._starts = [start for start, _, _ in self._stretches]
        parts.append(text[position:end])
        self.text = "".join(parts)

    def original_offset(self, offset: int) -> int:
        """The offset in the client's own text."""
        begin = self._starts[bisect_right(self._starts, offset) - 1]
        _, origin, new = self._stretches[bisect_left(self._starts, begin)]
        return origin if new else origin + offset - begin

    @cached_property
    def without_rows(self) -> str:
        """The text as a question for no rows."""
        return replace_limit(self.text)


@dataclass
class KeptText:
    """The edited text of a statement without parameters, and the policy that it was made for."""

    policy: Policy | None = None
    edited: EditedText | None = None
