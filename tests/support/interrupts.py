"""Something that happens once at a chosen point of certain code: at any line of it, or at any bytecode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn


class Interrupt(BaseException):
    """Like KeyboardInterrupt: nothing should catch it."""


def interrupt() -> NoReturn:
    raise Interrupt


def at_every_point(
    work: Callable[[], object],
    inside: Callable[[str], bool],
    act: Callable[[], object] = interrupt,
    *,
    bytecodes: bool = False,
    step: int = 1,
) -> Iterator[int]:
    """Run `work` again and again: `act` is called at its first point, then at its second, until there is none left.

    A point is a call, a line (or a bytecode) or a return in a file whose name is `inside`. Yields the number of each
    point, after `work` has ended there. With a `step`, only each so many-th point is taken.
    """
    point = 1
    while _acted(work, inside, act, point, bytecodes):
        yield point
        point += step


def _acted(
    work: Callable[[], object], inside: Callable[[str], bool], act: Callable[[], object], point: int, bytecodes: bool
) -> bool:
    left = point

    def here(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            sys.settrace(None)
            act()
        return here

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        if not inside(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = bytecodes, not bytecodes
        return here(frame, event, argument)

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    except Interrupt:
        assert left <= 0
    else:
        assert left > 0 or act is not interrupt, "an interrupt was swallowed"
    finally:
        sys.settrace(before)
    return left <= 0
