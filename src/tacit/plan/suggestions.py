"""Whether the suggestion of a refusal helps: the question that it suggests is bound before it is shown.

**Rule.** A suggestion stays where the question that it suggests is answered, or refused for a fault that stands apart
from what it changes. A refusal of what is changed, or of what surrounds it, was brought by the change, and the
suggestion is taken back; unless that refusal has a suggestion that leads to an answer in turn. The fix in words goes
with it, but where bounds alone are missing, which the owner may declare.

Only a refusal is looked at, so no question that is answered takes longer. At most `MOST_STEPS` questions are bound.
"""

from __future__ import annotations

from collections.abc import Callable

from tacit.errors import ErrorCode, Refused, SourceLocation, TacitError

MOST_STEPS = 3
_OTHER_FIX = "write what is marked in another way"


def drop_broken_suggestion(refusal: Refused, sql: str, bind: Callable[[str], object]) -> None:
    """Take back the suggestion of a refusal of a question, where it does not help.

    `bind` reads and binds a question, or raises what refuses it.
    """
    brought = None if refusal.suggestion is None else _find_brought(refusal.suggestion, sql, bind)
    if brought is None:
        return
    refusal.suggestion = None
    if brought.code is not ErrorCode.UNBOUNDED:
        refusal.fix = _OTHER_FIX


def _find_brought(suggestion: str, sql: str, bind: Callable[[str], object]) -> Refused | None:
    """What refuses a suggested question because of what it changes, and has no suggestion that is answered."""
    brought = None
    for _ in range(MOST_STEPS):
        try:
            bind(suggestion)
        except Refused as other:
            if not _is_brought(other.at, sql, suggestion):
                return None
            brought = other
            if other.suggestion is None:
                return brought
            sql, suggestion = suggestion, other.suggestion
        except TacitError:  # of an epsilon or the like, which no text changes
            return None
        else:
            return None
    return brought


def _is_brought(at: SourceLocation | None, before: str, after: str) -> bool:
    """Whether a refusal of the text after a change is of what was changed, or of what surrounds that."""
    if at is None or not at.text:
        return False
    start = _count_shared(before, after)
    rest = _count_shared(before[start:][::-1], after[start:][::-1])
    return at.start <= len(after) - rest and start <= at.end


def _count_shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
